"""Decoded chunks and shard indexes, in one byte-bounded LRU with single flight.

Everything that the process remembers of chunks is here, so that one number bounds it. An entry is keyed by the
array that it belongs to and its place in it, and carries the stamp of the stored value at the time of reading:
an entry whose stamp no longer fits is not found, so that changed data are never shown stale (see ``Store.stamp``).
"""

from __future__ import annotations

import os
import sys
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any, NamedTuple

import numpy as np

__all__ = ["CacheEntry", "ChunkCache", "default_cache", "set_default_capacity"]

FRACTION_OF_MEMORY = 8
"""The default cache takes an eighth of the machine's memory, within the two bounds below."""
MIN_CAPACITY = 128 << 20
MAX_CAPACITY = 2 << 30

MAX_RECENT_READS = 4096
"""The number of recent partial reads that are recorded."""


class _Flight:
    """One load under way; the threads that want the same wait for it."""

    __slots__ = ("done", "error", "stamp", "value")

    def __init__(self, stamp: Hashable) -> None:
        self.done = threading.Event()
        self.stamp = stamp
        self.value: Any = None
        self.error: BaseException | None = None


class ChunkCache:
    """A thread-safe LRU of values with known sizes.

    ``capacity`` is in bytes; 0 keeps nothing, but still lets concurrent loads of one key share their work. Values
    handed out are shared: nobody writes into them (arrays are made read-only on the way in).
    """

    def __init__(self, capacity: int) -> None:
        if capacity < 0:
            raise ValueError(
                f"cache size {capacity} is negative; give a number of bytes, or 0 to keep nothing"
            )
        self._capacity = capacity
        self._entries: OrderedDict[Hashable, tuple[Hashable, Any, int]] = OrderedDict()
        self._nbytes = 0
        self._flights: dict[Hashable, _Flight] = {}
        self._recent_reads: OrderedDict[Hashable, None] = OrderedDict()
        self._lock = threading.Lock()

    @property
    def capacity(self) -> int:
        """The bound in bytes. Setting it evicts at once."""
        return self._capacity

    @capacity.setter
    def capacity(self, capacity: int) -> None:
        with self._lock:
            self._capacity = capacity
            self._evict()

    @property
    def nbytes(self) -> int:
        """Bytes kept now."""
        return self._nbytes

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, key: Hashable, stamp: Hashable) -> Any | None:
        """Return the value stored under ``key`` with an equal stamp, or None."""
        if not self._entries:
            return None
        with self._lock:
            entry = self._entries.get(key)
            if entry is None:
                return None
            if entry[0] != stamp:
                self._remove(key)
                return None
            self._entries.move_to_end(key)
            return entry[1]

    def put(self, key: Hashable, stamp: Hashable, value: Any, nbytes: int) -> None:
        """Keep a value; one larger than half the capacity is not kept, as it would drive out all others."""
        if nbytes * 2 > self._capacity:
            return
        with self._lock:
            if key in self._entries:
                self._remove(key)
            self._entries[key] = (stamp, value, nbytes)
            self._nbytes += nbytes
            self._evict()

    def load(self, key: Hashable, stamp: Hashable, loader: Callable[[], tuple[Any, int]]) -> Any:
        """Return the value under ``key``, made by ``loader`` (value, size in bytes) if it is not there.

        Threads that ask for the same key and stamp at the same time share one call; if it fails, all of them
        see its exception. A value None is passed on but not kept.
        """
        with self._lock:
            entry = self._entries.get(key)
            if entry is not None and entry[0] == stamp:
                self._entries.move_to_end(key)
                return entry[1]
            flight = self._flights.get(key)
            mine = flight is None or flight.stamp != stamp
            if mine:
                flight = self._flights[key] = _Flight(stamp)
        assert flight is not None
        if not mine:
            flight.done.wait()
            if flight.error is not None:
                raise flight.error
            return flight.value
        try:
            value, nbytes = loader()
            flight.value = value
            if value is not None:
                self.put(key, stamp, value, nbytes)
            return value
        except BaseException as error:
            flight.error = error
            raise
        finally:
            with self._lock:
                if self._flights.get(key) is flight:
                    del self._flights[key]
            flight.done.set()

    def was_read_recently(self, key: Hashable) -> bool:
        """Return whether ``record_read`` was called for ``key`` recently."""
        return key in self._recent_reads

    def record_read(self, key: Hashable) -> None:
        """Record a partial read of ``key``, so that the planner can tell a repeated read from a first one."""
        with self._lock:
            self._recent_reads[key] = None
            self._recent_reads.move_to_end(key)
            if len(self._recent_reads) > MAX_RECENT_READS:
                self._recent_reads.popitem(last=False)

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._entries.clear()
            self._recent_reads.clear()
            self._nbytes = 0

    def _remove(self, key: Hashable) -> None:
        self._nbytes -= self._entries.pop(key)[2]

    def _evict(self) -> None:
        while self._nbytes > self._capacity:
            _, (_, _, nbytes) = self._entries.popitem(last=False)
            self._nbytes -= nbytes


class CacheEntry(NamedTuple):
    """A place in a cache: where one chunk, inner chunk or shard index is kept. ``keep`` False only looks."""

    cache: ChunkCache
    key: tuple[Hashable, ...]
    stamp: Hashable
    keep: bool = True

    def child(self, part: Hashable) -> CacheEntry:
        """Return the slot of a part of this value (an inner chunk, a shard index)."""
        return CacheEntry(self.cache, (*self.key, part), self.stamp, self.keep)

    def get(self) -> Any | None:
        """Return the value kept here, or None."""
        return self.cache.get(self.key, self.stamp)

    def put(self, array: np.ndarray[Any, Any]) -> None:
        """Keep an array here."""
        kept, nbytes = keepable(array)
        self.cache.put(self.key, self.stamp, kept, nbytes)

    def load(self, loader: Callable[[], np.ndarray[Any, Any] | None]) -> Any | None:
        """Return the array kept here, made by ``loader`` if need be (one call for all threads that ask)."""

        def sized() -> tuple[np.ndarray[Any, Any] | None, int]:
            array = loader()
            return (None, 0) if array is None else keepable(array)

        return self.cache.load(self.key, self.stamp, sized)

    def was_read_recently(self) -> bool:
        """Return whether ``record_read`` was called for this entry recently."""
        return self.cache.was_read_recently(self.key)

    def record_read(self) -> None:
        """Record that a part of the chunk was decoded without being kept."""
        self.cache.record_read(self.key)


def keepable(array: np.ndarray[Any, Any]) -> tuple[np.ndarray[Any, Any], int]:
    """Return a read-only array fit to be kept and the bytes that keeping it costs.

    An array that is a small view of a large buffer is copied, since the buffer would be kept alive with it.
    """
    if array.dtype.hasobject:
        nbytes = array.nbytes + sum(map(sys.getsizeof, array.flat))
    else:
        nbytes = held_nbytes(array)
        if nbytes > array.nbytes + array.nbytes // 4 + 1024:
            array = array.copy()
            nbytes = array.nbytes
    view = array.view()
    view.flags.writeable = False
    return view, nbytes + 256


def held_nbytes(array: np.ndarray[Any, Any]) -> int:
    """Return the size of the memory that an array keeps alive, which may be larger than the array."""
    base: Any = array
    while True:
        if isinstance(base, np.ndarray) and base.base is not None:
            base = base.base
        elif isinstance(base, memoryview) and base.obj is not None:
            base = base.obj
        else:
            break
    if isinstance(base, np.ndarray):
        return base.nbytes
    try:
        return memoryview(base).nbytes
    except (TypeError, ValueError):
        return array.nbytes


def _memory_size() -> int:
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError, AttributeError):
        return MAX_CAPACITY


_default = ChunkCache(max(MIN_CAPACITY, min(MAX_CAPACITY, _memory_size() // FRACTION_OF_MEMORY)))


def default_cache() -> ChunkCache:
    """Return the cache that all nodes of the process share unless they were opened with ``cache_size=``."""
    return _default


def set_default_capacity(nbytes: int) -> None:
    """Set the size of the shared cache."""
    _default.capacity = nbytes


def _after_fork() -> None:
    # Another thread may have held the lock or been in flight when the process forked.
    global _default
    _default = ChunkCache(_default.capacity)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
