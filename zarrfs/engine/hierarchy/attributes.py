"""The user attributes of a node: a mapping whose changes are written to the store."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from typing import Any

from zarrfs.errors import StoreError

__all__ = ["Attributes", "Change", "ChangedAttributesError"]

Change = Callable[[dict[str, Any]], dict[str, Any]]
"""A function that receives the stored attributes and returns the new ones. It does not modify its argument."""


class ChangedAttributesError(StoreError):
    """Attributes were not replaced, because another writer has changed them."""


class Attributes(MutableMapping[str, Any]):
    """The user attributes of a node as a mutable mapping. Values are those of JSON.

    Each change is written to the store before it returns; ``update`` writes several changes at once. A change is
    applied to the attributes that are stored at that time, while the metadata document is locked. Therefore concurrent
    changes of different attributes are all kept: by threads of one process, by processes that share a
    ``ProcessSynchronizer``, and by all processes that use zarrfs with a local directory, unless its file system has no
    locks of directories.

    On a node that is open read-only, a change raises ReadOnlyError. A value that JSON cannot represent raises
    MetadataError.
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

    def put_if_unchanged(self, expected: Mapping[str, Any], values: Mapping[str, Any]) -> None:
        """Replace all attributes, if the stored ones still equal ``expected``.

        Raises ChangedAttributesError otherwise, and nothing is written.
        """
        new, old = dict(values), dict(expected)

        def replaced(stored: dict[str, Any]) -> dict[str, Any]:
            if not _same_attributes(stored, old):
                raise ChangedAttributesError(
                    "the attributes were changed by another writer in the meantime: nothing was written"
                )
            return new

        self._save(replaced)

    def asdict(self) -> dict[str, Any]:
        """Return the attributes as a new dictionary. Nested values are not copied."""
        return dict(self._values)

    def __repr__(self) -> str:
        return f"Attributes({dict(self._values)!r})"


def _same_attributes(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Return whether attributes are equal. Here NaN equals NaN."""
    return one == other or json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)
