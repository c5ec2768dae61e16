"""A dictionary as a store."""

from __future__ import annotations

import itertools
import time
from collections.abc import Hashable, Iterator, MutableMapping

from zarrfs.engine.stores.base import Buffer, Listing, Store, Usage, ValueTooLargeError, check_key

__all__ = ["MemoryStore", "list_keys"]

_numbers = itertools.count(1)


class MemoryStore(Store):
    """Values in a dictionary, its own or one that is given (which is then seen as it is, and changed)."""

    in_process = True

    def __init__(self, values: MutableMapping[str, bytes] | None = None, *, read_only: bool = False) -> None:
        self.values: MutableMapping[str, bytes] = {} if values is None else values
        self._owned = values is None
        self.read_only = read_only
        self._number = next(_numbers)
        self._stamps: dict[str, tuple[int, int]] = {}

    @property
    def url(self) -> str:
        return f"memory://{self._number}"

    def get(self, key: str) -> bytes | None:
        return self.values.get(key)

    def size(self, key: str) -> int | None:
        value = self.values.get(key)
        return None if value is None else len(value)

    def stamp(self, key: str) -> Hashable | None:
        value = self.values.get(key)
        if value is None:
            return None
        # The owner of a given dictionary may change it behind our back: then only the value itself tells.
        return self._stamps[key] if self._owned else hash(value)

    def get_stamped(self, key: str, most: int | None) -> tuple[Buffer, Hashable | None] | None:
        # One look into the mapping: one that is given may be slow, and may change between two looks.
        stamp = self._stamps.get(key)
        value = self.values.get(key)
        if value is None:
            return None
        if most is not None and len(value) > most:
            raise ValueTooLargeError(len(value), most)
        return value, stamp if self._owned else hash(bytes(value))

    def list_dir(self, prefix: str = "") -> Listing:
        return list_keys(self.list_prefix(prefix), prefix)

    def list_prefix(self, prefix: str = "") -> Iterator[str]:
        start = prefix + "/" if prefix else ""
        return iter([key for key in list(self.values) if key.startswith(start)])

    def usage(self, prefix: str = "") -> Usage:
        keys = list(self.list_prefix(prefix))
        times = [self._stamps[key][1] / 1e9 for key in keys if key in self._stamps]
        return Usage(len(keys), sum(self.size(key) or 0 for key in keys), max(times, default=None))

    def set(self, key: str, value: Buffer) -> None:
        if self.read_only:
            raise self._refuse(f"writing {key!r}")
        self.values[check_key(key)] = bytes(value)
        self._stamps[key] = (next(_numbers), time.time_ns())

    def delete(self, key: str) -> None:
        if self.read_only:
            raise self._refuse(f"deleting {key!r}")
        self.values.pop(key, None)
        self._stamps.pop(key, None)


def list_keys(keys: Iterator[str], prefix: str) -> Listing:
    """Make a one-level listing out of all keys below a prefix, for stores that can only list those."""
    cut = len(prefix) + 1 if prefix else 0
    names: set[str] = set()
    prefixes: set[str] = set()
    for key in keys:
        head, slash, _ = key[cut:].partition("/")
        (prefixes if slash else names).add(head)
    return Listing(sorted(names), sorted(prefixes))
