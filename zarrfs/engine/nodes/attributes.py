"""The user attributes of a node: a mapping that writes through to the store."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, MutableMapping
from typing import Any

__all__ = ["Attributes", "Change"]

Change = Callable[[dict[str, Any]], dict[str, Any]]
"""Given the attributes that are stored, returns those that are to be. It changes nothing itself."""


class Attributes(MutableMapping[str, Any]):
    """User attributes as a dictionary. Each change is written at once; use ``update`` to write several as one.

    A change is made to what is stored at that moment, so that two who change different attributes both keep theirs:
    threads of one process, and processes that share a ``ProcessSynchronizer``. Values are what JSON can hold. On a
    node opened read-only every change raises ReadOnlyError.
    """

    def __init__(self, current: Callable[[], Mapping[str, Any]], save: Callable[[Change], None]) -> None:
        self._current = current
        self._save = save

    @property
    def _values(self) -> Mapping[str, Any]:
        return self._current()

    def __getitem__(self, name: str) -> Any:
        return self._values[name]

    def __setitem__(self, name: str, value: Any) -> None:
        self._save(lambda stored: {**stored, name: value})

    def __delitem__(self, name: str) -> None:
        def without(stored: dict[str, Any]) -> dict[str, Any]:
            if name not in stored:
                raise KeyError(name)
            return {key: value for key, value in stored.items() if key != name}

        self._save(without)

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def update(self, *args: Any, **values: Any) -> None:
        """Set several attributes and write once."""
        new = dict(*args, **values)
        self._save(lambda stored: {**stored, **new})

    def put(self, values: Mapping[str, Any]) -> None:
        """Replace all attributes."""
        new = dict(values)
        self._save(lambda stored: new)

    def asdict(self) -> dict[str, Any]:
        """Return a copy as a plain dictionary."""
        return dict(self._values)

    def __repr__(self) -> str:
        return f"Attributes({dict(self._values)!r})"
