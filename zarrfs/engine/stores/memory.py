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

_counter = itertools.count(1)


class MemoryStore(Store):
    """Values in a dictionary. A given dictionary is used without a copy: reads and writes access it directly."""

    in_process = True
    renames = True  # the values themselves are not copied

    def __init__(self, values: MutableMapping[str, bytes] | None = None, *, read_only: bool = False) -> None:
        self.values: MutableMapping[str, bytes] = {} if values is None else values
        self._owned = values is None
        self.read_only = read_only
        self._store_number = next(_counter)
        self._stamps: dict[str, tuple[int, int]] = {}

    @property
    def url(self) -> str:
        return f"memory://{self._store_number}"

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
        # The caller can modify a given dictionary directly, so the stamp is a hash of the value.
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
            raise self._read_only_error(f"writing {key!r}")
        self._check_open()
        self.values[check_key(key)] = bytes(value)
        self._stamps[key] = (next(_counter), time.time_ns())

    def delete(self, key: str) -> None:
        if self.read_only:
            raise self._read_only_error(f"deleting {key!r}")
        self._check_open()
        self.values.pop(key, None)
        self._stamps.pop(key, None)


class _MemoryValue(StoredValue):
    """A value that is looked up once, so that all parts belong to the same version. The mapping can be slow."""

    in_memory = True

    def __init__(self, store: MemoryStore, key: str, max_nbytes: int | None) -> None:
        super().__init__(store, key, max_nbytes)
        self._memory_store = store

    @cached_property
    def _value_and_stamp(self) -> tuple[bytes, Hashable] | None:
        store, key = self._memory_store, self._key
        # The stamp is taken before the value, so that an older value never gets a newer stamp.
        stamp = store._stamps.get(key)
        value = store.values.get(key)
        if value is None:
            return None
        return value, stamp if store._owned else hash(bytes(value))

    def stamp(self) -> Hashable | None:
        return None if self._value_and_stamp is None else self._value_and_stamp[1]

    def version(self) -> Hashable | None:
        return self.stamp()

    def is_unchanged(self, stamp: Hashable) -> bool:
        return True

    def has_version(self, version: Hashable) -> bool:
        return True

    def size(self) -> int | None:
        return None if self._value_and_stamp is None else len(self._value_and_stamp[0])

    def read(self) -> Buffer | None:
        if self._value_and_stamp is None:
            return None
        value = self._value_and_stamp[0]
        if self._max_nbytes is not None and len(value) > self._max_nbytes:
            raise ValueTooLargeError(len(value), self._max_nbytes)
        return value

    def read_ranges(self, ranges: Sequence[ByteRange]) -> list[Buffer] | None:
        if self._value_and_stamp is None:
            return None
        view = memoryview(self._value_and_stamp[0])
        resolved = (byte_range.resolve(len(view)) for byte_range in ranges)
        return [view[start:stop] for start, stop in resolved]


def list_keys(keys: Iterator[str], prefix: str) -> Listing:
    """Return the listing one level below a prefix from all keys below it, for stores that only list keys."""
    prefix_length = len(prefix) + 1 if prefix else 0
    names: set[str] = set()
    prefixes: set[str] = set()
    for key in keys:
        head, slash, _ = key[prefix_length:].partition("/")
        (prefixes if slash else names).add(head)
    return Listing(sorted(names), sorted(prefixes))
