"""Stores that remember what another one said: values up to so many bytes, or metadata for so long."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from time import monotonic

from zarrfs.engine.stores.base import Buffer, ByteRange, Listing, Store
from zarrfs.engine.stores.wrappers.wrapper import WrapperStore

__all__ = ["LRUStore", "MetadataCacheStore"]

DOCUMENTS = ("zarr.json", ".zarray", ".zgroup", ".zattrs", ".zmetadata", "attributes.json", "meta", "attrs")
"""Last parts of the keys of metadata, in all formats but the draft of 2019, whose keys end as these do not."""

Entry = tuple[Buffer | None]
"""A value, or that there is none."""


class LRUStore(WrapperStore):
    """Keeps values, encoded as they are, up to ``capacity`` bytes, the least recently used out first.

    For a slow store that several arrays or programs of this process read. What others write to it meanwhile is not
    seen until ``forget``; what is written through this store is. Safe under threads.
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
        """The bytes that are kept."""
        return self._nbytes

    def forget(self, key: str | None = None) -> None:
        """Drop one value, or all."""
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
                # What was written while this was read is newer than what was read.
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
        # Of the value that is kept: the store may have a newer one, which is not seen.
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
    def lock(self, key: str) -> Iterator[None]:
        # Who changes a value must change what is stored: others who take turns may have written since it was kept.
        with self.store.lock(key):
            self.forget(key)
            yield

    def set(self, key: str, value: Buffer) -> None:
        try:
            super().set(key, value)
        finally:
            self.forget(key)

    def delete(self, key: str) -> None:
        try:
            super().delete(key)
        finally:
            self.forget(key)

    def delete_prefix(self, prefix: str) -> None:
        try:
            super().delete_prefix(prefix)
        finally:
            self.forget()

    def move_prefix(self, prefix: str, target: str) -> None:
        try:
            super().move_prefix(prefix, target)
        finally:
            self.forget()


class MetadataCacheStore(WrapperStore):
    """Keeps metadata documents, that there are none, and listings, each for ``seconds``; chunks pass through.

    For a far store whose nodes are looked up again and again. What is written through this store is seen at once.
    Safe under threads.
    """

    def __init__(self, store: Store, seconds: float, clock: Callable[[], float] = monotonic) -> None:
        super().__init__(store)
        self.seconds = seconds
        self._clock = clock
        self._lock = threading.Lock()
        self._documents: dict[str, tuple[float, Entry]] = {}
        self._listings: dict[str, tuple[float, Listing]] = {}

    def forget(self) -> None:
        """Ask anew from now on."""
        with self._lock:
            self._documents = {}
            self._listings = {}

    def get(self, key: str) -> Buffer | None:
        self._check_open()
        if key.rpartition("/")[2] not in DOCUMENTS:
            return super().get(key)
        documents, now = self._documents, self._clock()
        found = documents.get(key)
        if found is not None and now < found[0]:
            return found[1][0]
        value = super().get(key)
        # Into the dictionary that was there when it was asked: one that was forgotten meanwhile stays forgotten.
        documents[key] = now + self.seconds, (value,)
        return value

    def get_ranges(self, key: str, ranges: Sequence[ByteRange]) -> list[Buffer] | None:
        if key.rpartition("/")[2] not in DOCUMENTS:
            return super().get_ranges(key, ranges)
        return Store.get_ranges(self, key, ranges)

    def get_into(self, key: str, out: memoryview) -> int | None:
        if key.rpartition("/")[2] not in DOCUMENTS:
            return super().get_into(key, out)
        return Store.get_into(self, key, out)

    def size(self, key: str) -> int | None:
        if key.rpartition("/")[2] not in DOCUMENTS:
            return super().size(key)
        value = self.get(key)
        return None if value is None else len(value)

    def list_dir(self, prefix: str = "") -> Listing:
        self._check_open()
        listings, now = self._listings, self._clock()
        found = listings.get(prefix)
        if found is not None and now < found[0]:
            return found[1]
        listing = super().list_dir(prefix)
        listings[prefix] = now + self.seconds, listing
        return listing

    @contextmanager
    def lock(self, key: str) -> Iterator[None]:
        # As of LRUStore. A node may have further documents than the one that is locked.
        with self.store.lock(key):
            if key.rpartition("/")[2] in DOCUMENTS:
                self.forget()
            yield

    def set(self, key: str, value: Buffer) -> None:
        try:
            super().set(key, value)
        finally:
            self.forget()

    def delete(self, key: str) -> None:
        try:
            super().delete(key)
        finally:
            self.forget()

    def delete_prefix(self, prefix: str) -> None:
        try:
            super().delete_prefix(prefix)
        finally:
            self.forget()

    def move_prefix(self, prefix: str, target: str) -> None:
        try:
            super().move_prefix(prefix, target)
        finally:
            self.forget()
