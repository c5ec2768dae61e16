"""The user attributes of a node: a mapping that writes through to the store."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, MutableMapping
from typing import Any

__all__ = ["Attributes"]


class Attributes(MutableMapping[str, Any]):
    """User attributes as a dictionary. Each change is written at once; use ``update`` to write several as one.

    Values are what JSON can hold. On a node opened read-only every change raises ReadOnlyError.
    """

    def __init__(self, values: Mapping[str, Any], save: Callable[[dict[str, Any]], None]) -> None:
        self._values = dict(values)
        self._save = save

    def __getitem__(self, name: str) -> Any:
        return self._values[name]

    def __setitem__(self, name: str, value: Any) -> None:
        self._replace({**self._values, name: value})

    def __delitem__(self, name: str) -> None:
        if name not in self._values:
            raise KeyError(name)
        self._replace({key: value for key, value in self._values.items() if key != name})

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def update(self, *args: Any, **values: Any) -> None:
        """Set several attributes and write once."""
        self._replace({**self._values, **dict(*args, **values)})

    def put(self, values: Mapping[str, Any]) -> None:
        """Replace all attributes."""
        self._replace(dict(values))

    def asdict(self) -> dict[str, Any]:
        """Return a copy as a plain dictionary."""
        return dict(self._values)

    def _replace(self, values: dict[str, Any]) -> None:
        self._save(values)
        self._values = values

    def __repr__(self) -> str:
        return f"Attributes({self._values!r})"
