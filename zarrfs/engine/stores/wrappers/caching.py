"""Caching stores: values up to a number of bytes, or metadata for a period of time."""

from __future__ import annotations

import threading
from abc import abstractmethod
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from time import monotonic
from typing import Any

from zarrfs.engine.stores.base import DOCUMENT_NAMES, OPERATIONS, Buffer, ByteRange, Listing, Store
from zarrfs.engine.stores.wrappers.wrapper import WrapperStore

__all__ = ["LRUStore", "MetadataCacheStore"]

CachedValue = tuple[Buffer | None]
"""A value, or None for a missing key."""


class _InvalidatingStore(WrapperStore):
    """Removes values from a cache when they are changed through this store, also if the change fails halfway."""

    @abstractmethod
    def _invalidate(self, key: str | None) -> None:
        """Remove what a change of one key, or of any keys if None, makes invalid."""

    def perform(self, name: str, *args: Any) -> Any:
        try:
            return super().perform(name, *args)
        finally:
            changed = OPERATIONS[name].changed_keys(args)
            for key in (None,) if changed is None else changed:
                self._invalidate(key)


class LRUStore(_InvalidatingStore):
    """Caches encoded values up to ``capacity`` bytes. The least recently used values are evicted first.

    This is useful for a slow store that several arrays of this process read. Changes that are written through this
    store are visible at once, other changes after ``invalidate``. Safe to use from several threads.
    """

    def __init__(self, store: Store, capacity: int) -> None:
        super().__init__(store)
        self.capacity = capacity
        self._values: OrderedDict[str, Buffer] = OrderedDict()
        self._stamps: dict[str, Hashable | None] = {}
        self._nbytes = 0
        self._epoch = 0
        self._lock = threading.Lock()

    @property
    def nbytes(self) -> int:
        """The size of the cached values in bytes."""
        return self._nbytes

    def invalidate(self, key: str | None = None) -> None:
        """Remove one value, or all values, from the cache."""
        with self._lock:
            self._epoch += 1
            for name in [key] if key is not None else list(self._values):
                value = self._values.pop(name, None)
                self._stamps.pop(name, None)
                self._nbytes -= 0 if value is None else len(value)

    def get(self, key: str) -> Buffer | None:
        self._check_open()
        with self._lock:
            value = self._values.get(key)
            if value is not None:
                self._values.move_to_end(key)
                return value
            epoch = self._epoch
        stamp = super().stamp(key)
        value = super().get(key)
        if value is not None and len(value) <= self.capacity:
            with self._lock:
                # A value that was written during the read is newer and is not replaced.
                if epoch == self._epoch and key not in self._values:
                    self._values[key] = value
                    self._stamps[key] = stamp
                    self._nbytes += len(value)
                    while self._nbytes > self.capacity:
                        name, oldest = self._values.popitem(last=False)
                        del self._stamps[name]
                        self._nbytes -= len(oldest)
        return value

    def stamp(self, key: str) -> Hashable | None:
        self._check_open()
        # The stamp belongs to the cached value. The store can have a newer value.
        with self._lock:
            if key in self._values:
                return self._stamps[key]
        return super().stamp(key)

    def version(self, key: str) -> Hashable | None:
        return self.stamp(key)

    def get_ranges(self, key: str, ranges: Sequence[ByteRange]) -> list[Buffer] | None:
        self._check_open()
        with self._lock:
            value = self._values.get(key)
        if value is None:
            return super().get_ranges(key, ranges)
        view = memoryview(value)
        return [view[slice(*byte_range.resolve(len(view)))] for byte_range in ranges]

    def get_into(self, key: str, out: memoryview) -> int | None:
        return Store.get_into(self, key, out)

    def size(self, key: str) -> int | None:
        self._check_open()
        with self._lock:
            value = self._values.get(key)
        return super().size(key) if value is None else len(value)

    @contextmanager
    def lock(self, key: str) -> Iterator[Any]:
        # A value is modified under the lock. Another process may have written it after it was cached.
        with self.store.lock(key) as is_missing:
            self.invalidate(key)
            yield is_missing

    def _invalidate(self, key: str | None) -> None:
        self.invalidate(key)


class MetadataCacheStore(_InvalidatingStore):
    """Caches metadata documents, missing documents and listings, each for ``seconds``. Chunks are not cached.

    This is useful for a high-latency store whose nodes are opened repeatedly. Changes that are written through this
    store are visible at once. Safe to use from several threads.
    """

    def __init__(self, store: Store, seconds: float, clock: Callable[[], float] = monotonic) -> None:
        super().__init__(store)
        self.seconds = seconds
        self._clock = clock
        self._lock = threading.Lock()
        self._documents: dict[str, tuple[float, CachedValue]] = {}
        self._listings: dict[str, tuple[float, Listing]] = {}

    def invalidate(self) -> None:
        """Clear the cache."""
        with self._lock:
            self._documents = {}
            self._listings = {}

    def get(self, key: str) -> Buffer | None:
        self._check_open()
        if key.rpartition("/")[2] not in DOCUMENT_NAMES:
            return super().get(key)
        documents, now = self._documents, self._clock()
        entry = documents.get(key)
        if entry is not None and now < entry[0]:
            return entry[1][0]
        value = super().get(key)
        # ``invalidate`` replaces the dictionary. An older value must not be added to the new one.
        documents[key] = now + self.seconds, (value,)
        return value

    def get_ranges(self, key: str, ranges: Sequence[ByteRange]) -> list[Buffer] | None:
        if key.rpartition("/")[2] not in DOCUMENT_NAMES:
            return super().get_ranges(key, ranges)
        documents, now = self._documents, self._clock()
        entry = documents.get(key)
        if len(ranges) != 1 or ranges[0].start != 0 or (entry is not None and now < entry[0]):
            return Store.get_ranges(self, key, ranges)
        # The number of bytes is limited, because the document may be too large.
        found, length = super().get_ranges(key, ranges), ranges[0].length
        if found is None or length is None or len(found[0]) < length:
            documents[key] = now + self.seconds, (None if found is None else found[0],)
        return found

    def get_into(self, key: str, out: memoryview) -> int | None:
        if key.rpartition("/")[2] not in DOCUMENT_NAMES:
            return super().get_into(key, out)
        return Store.get_into(self, key, out)

    def size(self, key: str) -> int | None:
        if key.rpartition("/")[2] not in DOCUMENT_NAMES:
            return super().size(key)
        value = self.get(key)
        return None if value is None else len(value)

    def list_dir(self, prefix: str = "") -> Listing:
        self._check_open()
        listings, now = self._listings, self._clock()
        entry = listings.get(prefix)
        if entry is not None and now < entry[0]:
            return entry[1]
        listing = super().list_dir(prefix)
        listings[prefix] = now + self.seconds, listing
        return listing

    is_empty = WrapperStore.is_empty

    @contextmanager
    def lock(self, key: str) -> Iterator[Any]:
        # See LRUStore.lock. All documents are removed, because a node can have other documents than the locked one.
        with self.store.lock(key) as is_missing:
            if key.rpartition("/")[2] in DOCUMENT_NAMES:
                self.invalidate()
            yield is_missing

    def _invalidate(self, key: str | None) -> None:
        if key is None:
            self.invalidate()
            return
        with self._lock:
            # The dictionaries are replaced, as in ``invalidate``.
            self._listings = {}
            if key.rpartition("/")[2] in DOCUMENT_NAMES:
                self._documents = {other: entry for other, entry in self._documents.items() if other != key}
