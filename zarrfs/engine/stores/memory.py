"""A dictionary as a store."""

from __future__ import annotations

import itertools
import time
from collections.abc import Hashable, Iterator, MutableMapping, Sequence
from functools import cached_property

from zarrfs.engine.stores.base import (
    Buffer,
    ByteRange,
    Listing,
    Store,
    StoredValue,
    Usage,
    ValueTooLargeError,
    check_key,
)

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
        if self._closed:
            self._check_open()
        return self.values.get(key)

    def size(self, key: str) -> int | None:
        if self._closed:
            self._check_open()
        value = self.values.get(key)
        return None if value is None else len(value)

    def stamp(self, key: str) -> Hashable | None:
        if self._closed:
            self._check_open()
        value = self.values.get(key)
        if value is None:
            return None
        # The owner of a given dictionary may change it behind our back: then only the value itself tells.
        return self._stamps[key] if self._owned else hash(bytes(value))

    def open_value(self, key: str, max_nbytes: int | None = None) -> StoredValue:
        return _MemoryValue(self, key, max_nbytes)

    def list_dir(self, prefix: str = "") -> Listing:
        return list_keys(self.list_prefix(prefix), prefix)

    def list_prefix(self, prefix: str = "") -> Iterator[str]:
        if self._closed:
            self._check_open()
        start = prefix + "/" if prefix else ""
        return iter([key for key in list(self.values) if key.startswith(start)])

    def usage(self, prefix: str = "") -> Usage:
        keys = list(self.list_prefix(prefix))
        times = [self._stamps[key][1] / 1e9 for key in keys if key in self._stamps]
        return Usage(len(keys), sum(self.size(key) or 0 for key in keys), max(times, default=None))

    def set(self, key: str, value: Buffer) -> None:
        if self.read_only:
            raise self._refuse(f"writing {key!r}")
        self._check_open()
        self.values[check_key(key)] = bytes(value)
        self._stamps[key] = (next(_numbers), time.time_ns())

    def delete(self, key: str) -> None:
        if self.read_only:
            raise self._refuse(f"deleting {key!r}")
        self._check_open()
        self.values.pop(key, None)
        self._stamps.pop(key, None)


class _MemoryValue(StoredValue):
    """A value that is looked up once: the mapping may be slow, and all parts belong to the same version."""

    in_memory = True

    def __init__(self, store: MemoryStore, key: str, max_nbytes: int | None) -> None:
        super().__init__(store, key, max_nbytes)
        self._memory_store = store

    @cached_property
    def _stamped(self) -> tuple[bytes, Hashable] | None:
        store, key = self._memory_store, self._key
        # The stamp is taken before the value, so that an older value is never found under a newer stamp.
        stamp = store._stamps.get(key)
        value = store.values.get(key)
        if value is None:
            return None
        return value, stamp if store._owned else hash(bytes(value))

    def stamp(self) -> Hashable | None:
        return None if self._stamped is None else self._stamped[1]

    def version(self) -> Hashable | None:
        return self.stamp()

    def is_unchanged(self, stamp: Hashable) -> bool:
        return True

    def has_version(self, version: Hashable) -> bool:
        return True

    def size(self) -> int | None:
        return None if self._stamped is None else len(self._stamped[0])

    def read(self) -> Buffer | None:
        if self._stamped is None:
            return None
        value = self._stamped[0]
        if self._max_nbytes is not None and len(value) > self._max_nbytes:
            raise ValueTooLargeError(len(value), self._max_nbytes)
        return value

    def read_ranges(self, ranges: Sequence[ByteRange]) -> list[Buffer] | None:
        if self._stamped is None:
            return None
        view = memoryview(self._stamped[0])
        resolved = (byte_range.resolve(len(view)) for byte_range in ranges)
        return [view[start:stop] for start, stop in resolved]


def list_keys(keys: Iterator[str], prefix: str) -> Listing:
    """Make a one-level listing out of all keys below a prefix, for stores that can only list those."""
    cut = len(prefix) + 1 if prefix else 0
    names: set[str] = set()
    prefixes: set[str] = set()
    for key in keys:
        head, slash, _ = key[cut:].partition("/")
        (prefixes if slash else names).add(head)
    return Listing(sorted(names), sorted(prefixes))
