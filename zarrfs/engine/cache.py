"""The cache of decoded chunks and shard indexes: an LRU cache that is bounded in bytes and loads each entry once.

All data of chunks that the process caches are here, so that one number bounds them. The key of an entry contains the
array object and the chunk coordinates. An entry has the version stamp of the stored value at the time of reading;
an entry with another stamp is not returned, so that changed data are never read from the cache (see ``Store.stamp``).
"""

from __future__ import annotations

import os
import sys
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

__all__ = ["CacheEntry", "ChunkCache", "available_memory", "default_cache", "set_default_capacity"]

FRACTION_OF_MEMORY = 8
"""The default capacity is this fraction of ``available_memory``, within the two bounds below (in bytes)."""
MIN_CAPACITY = 128 << 20
MAX_CAPACITY = 2 << 30

UNKNOWN_MEMORY = 4 << 30
"""Assumed where the system does not state its memory, in bytes."""

MAX_RECENT_READS = 4096
"""The maximum number of chunks of which partial reads are recorded."""

MIN_SHARE = 1 / 8
"""A partial read counts as at least this share of the chunk: opening the value and its blocks costs time too."""

MAX_SHARE = 1 / 2
"""Half of a chunk counts as decoded if its recorded partial reads amount to this share of the chunk. Decoding the whole
chunk then costs at most about three times as much as these reads did, and makes all further reads of the chunk cheap.
"""


class _Load:
    """A load in progress. Threads that request the same entry wait for it: the first of them sets ``done``. Creating an
    event for each load would take longer than decoding a small chunk.
    """

    __slots__ = ("done", "error", "stamp", "value")

    def __init__(self, stamp: Hashable) -> None:
        self.done: threading.Event | None = None
        self.stamp = stamp
        self.value: Any = None
        self.error: BaseException | None = None


class ChunkCache:
    """A thread-safe LRU cache of values with known sizes.

    ``capacity`` is in bytes. With 0 nothing is cached, but concurrent loads of one key still share one call. Returned
    values are shared and must not be modified; arrays are read-only.

    Attributes:
        hits: the number of calls of ``get`` that found a current entry.
        misses: the number of calls of ``get`` that did not.
    """

    def __init__(self, capacity: int) -> None:
        if capacity < 0:
            raise ValueError(
                f"cache size must be at least 0, found {capacity}; it is a number of bytes, and 0 caches nothing"
            )
        self.hits = 0
        self.misses = 0
        self._capacity = capacity
        self._entries: OrderedDict[Hashable, tuple[Hashable, Any, int]] = OrderedDict()
        self._nbytes = 0
        self._loads: dict[Hashable, _Load] = {}
        self._decoded_shares: OrderedDict[Hashable, float] = OrderedDict()
        self._lock = threading.Lock()

    def __reduce__(self) -> tuple[type[ChunkCache], tuple[int]]:
        return ChunkCache, (self.capacity,)  # nodes that are pickled together share an empty cache

    @property
    def capacity(self) -> int:
        """The capacity in bytes. Setting it evicts entries immediately."""
        return self._capacity

    @capacity.setter
    def capacity(self, capacity: int) -> None:
        with self._lock:
            self._capacity = capacity
            self._evict()

    @property
    def nbytes(self) -> int:
        """The size of all entries in bytes."""
        return self._nbytes

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, key: Hashable, stamp: Hashable) -> Any | None:
        """Return the value of ``key`` if its stamp is equal to ``stamp``, else None. An outdated entry is removed."""
        with self._lock:
            entry = self._entries.get(key)
            if entry is None or entry[0] != stamp:
                self.misses += 1
                if entry is not None:
                    self._remove(key)
                return None
            self.hits += 1
            self._entries.move_to_end(key)
            return entry[1]

    def put(self, key: Hashable, stamp: Hashable, value: Any, nbytes: int) -> None:
        """Add a value of ``nbytes`` bytes, unless it is larger than half the capacity: it would evict most entries."""
        if nbytes * 2 > self._capacity:
            return
        with self._lock:
            if key in self._entries:
                self._remove(key)
            self._entries[key] = (stamp, value, nbytes)
            self._nbytes += nbytes
            self._evict()

    def make_room(self, nbytes: int, used: Iterable[Hashable] = ()) -> None:
        """Remove the least recently used entries, except those of ``used``, until ``nbytes`` bytes can be added. Call
        this before allocating them.
        """
        with self._lock:
            surplus = self._nbytes + nbytes - self._capacity
            if surplus <= 0:
                return
            remaining, removed = set(used), []
            for key, (_, _, size) in self._entries.items():
                if surplus <= 0:
                    break
                if key not in remaining:
                    surplus -= size
                    removed.append(key)
            for key in removed:
                self._remove(key)

    def load(self, key: Hashable, stamp: Hashable, loader: Callable[[], tuple[Any, int]]) -> Any:
        """Return the value of ``key``. If it is not cached, call ``loader``, which returns (value, size in bytes).

        Concurrent calls with the same key and stamp share one call of ``loader``. An exception of it is raised in all
        of them. The value None is returned but not cached.
        """
        with self._lock:
            entry = self._entries.get(key)
            if entry is not None and entry[0] == stamp:
                self._entries.move_to_end(key)
                return entry[1]
            load = self._loads.get(key)
            done = None
            if load is None or load.stamp != stamp:
                load = self._loads[key] = _Load(stamp)
            else:
                done = load.done = load.done or threading.Event()
        if done is not None:
            done.wait()
            if load.error is not None:
                raise load.error
            return load.value
        try:
            value, nbytes = loader()
            load.value = value
            if value is not None:
                self.put(key, stamp, value, nbytes)
            return value
        except BaseException as error:
            load.error = error
            raise
        finally:
            with self._lock:
                if self._loads.get(key) is load:
                    del self._loads[key]
                done = load.done
            if done is not None:
                done.set()

    def cached_among(self, keys: Sequence[Hashable]) -> set[Hashable]:
        """Return those of the keys that have an entry, whatever its stamp is."""
        with self._lock:
            return self._entries.keys() & set(keys)

    def find(self, keys: Sequence[Hashable]) -> list[tuple[Hashable, Any] | None]:
        """Return (stamp, value) of the entry of each key, None for a key without an entry.

        The caller decides whether the stamps are current. ``hits`` and ``misses`` are counted.
        """
        found: list[tuple[Hashable, Any] | None] = []
        with self._lock:
            entries = self._entries
            for key in keys:
                entry = entries.get(key)
                if entry is None:
                    found.append(None)
                    self.misses += 1
                else:
                    entries.move_to_end(key)
                    found.append((entry[0], entry[1]))
                    self.hits += 1
        return found

    def count_hits(self, count: int) -> None:
        """Count the use of entries that the caller has found before."""
        with self._lock:
            self.hits += count

    def record_reads(self, keys: Sequence[Hashable], share: float = 1.0) -> set[Hashable]:
        """Record that a share of each key's value was decoded. Return the keys of which half was decoded before."""
        share = max(share, MIN_SHARE)
        with self._lock:
            recent: set[Hashable] = set()
            for key in keys:
                before = self._decoded_shares.get(key, 0.0)
                if before >= MAX_SHARE:
                    recent.add(key)
                self._decoded_shares[key] = before + share
                self._decoded_shares.move_to_end(key)
            while len(self._decoded_shares) > MAX_RECENT_READS:
                self._decoded_shares.popitem(last=False)
            return recent

    def half_was_decoded(self, key: Hashable) -> bool:
        """Return whether the recorded partial reads of ``key`` amount to a large share of its value."""
        return self._decoded_shares.get(key, 0.0) >= MAX_SHARE

    def clear(self) -> None:
        """Remove all entries and recorded reads."""
        with self._lock:
            self._entries.clear()
            self._decoded_shares.clear()
            self._nbytes = 0

    def _remove(self, key: Hashable) -> None:
        self._nbytes -= self._entries.pop(key)[2]

    def _evict(self) -> None:
        while self._nbytes > self._capacity:
            _, (_, _, nbytes) = self._entries.popitem(last=False)
            self._nbytes -= nbytes


class CacheEntry(NamedTuple):
    """The key and the version stamp of one chunk, inner chunk or shard index in a cache.

    ``may_cache`` is whether it may be added to the cache. If False, it is only looked up. ``cache_on_first_read`` is
    whether it is added when a part of it is read for the first time.
    """

    cache: ChunkCache
    key: tuple[Hashable, ...]
    stamp: Hashable
    may_cache: bool = True
    cache_on_first_read: bool = True

    def child(self, part: Hashable) -> CacheEntry:
        """Return the entry of a part of this value: an inner chunk or the shard index."""
        return CacheEntry(self.cache, (*self.key, part), self.stamp, self.may_cache, self.cache_on_first_read)

    def get(self) -> Any | None:
        """Return the cached value, or None."""
        return self.cache.get(self.key, self.stamp)

    def put(self, array: np.ndarray[Any, Any]) -> None:
        """Add an array to the cache. The caller must not modify it afterwards."""
        cacheable, nbytes = as_cacheable(array)
        self.cache.put(self.key, self.stamp, cacheable, nbytes)

    def load(self, loader: Callable[[], np.ndarray[Any, Any] | None]) -> Any | None:
        """Return the cached array, or the result of ``loader``, which is cached; see ``ChunkCache.load``."""

        def sized() -> tuple[np.ndarray[Any, Any] | None, int]:
            array = loader()
            return (None, 0) if array is None else as_cacheable(array)

        return self.cache.load(self.key, self.stamp, sized)

    def half_was_decoded(self) -> bool:
        """Return whether the recorded partial reads amount to a large share of the value."""
        return self.cache.half_was_decoded(self.key)

    def record_read(self, share: float = 1.0) -> None:
        """Record that a share of the chunk was decoded without being cached."""
        self.cache.record_reads([self.key], share)


def as_cacheable(array: np.ndarray[Any, Any]) -> tuple[np.ndarray[Any, Any], int]:
    """Return a read-only view of an array, and the memory in bytes that caching it occupies.

    An array that is a small view of a large buffer is copied, because the view would keep the buffer alive.
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
    """Return the size in bytes of the memory that an array keeps alive, which may be larger than the array."""
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


def available_memory(groups: str = "/proc/self/cgroup", limits: str = "/sys/fs/cgroup") -> int:
    """Return the bytes of memory that this process may use: those of the machine, or of its container or batch job.

    Arguments:
        groups: the file in which Linux lists the control groups of the process.
        limits: the directory of the limits of control groups, of version 1 or 2.
    """
    try:
        size = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError, AttributeError):
        size = UNKNOWN_MEMORY
    try:
        with open(groups, encoding="utf-8", errors="surrogateescape") as file:
            lines = file.read().splitlines()
    except OSError:
        return size
    for line in lines:
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if controllers == "":
            directory, name = limits, "memory.max"
        elif "memory" in controllers.split(","):
            directory, name = os.path.join(limits, "memory"), "memory.limit_in_bytes"
        else:
            continue
        # The limit of a group applies to the groups in it, too. In a container the path can be that of the host.
        names = [each for each in path.split("/") if each not in ("", "..")]
        for depth in range(len(names) + 1):
            try:
                with open(os.path.join(directory, *names[:depth], name), "rb") as file:
                    size = min(size, int(file.read()))
            except (OSError, ValueError):  # There is no such file, or no limit ("max").
                continue
    return size


_default = ChunkCache(max(MIN_CAPACITY, min(MAX_CAPACITY, available_memory() // FRACTION_OF_MEMORY)))


def default_cache() -> ChunkCache:
    """Return the cache that all nodes of the process share, except those opened with ``cache_size=``."""
    return _default


def set_default_capacity(nbytes: int) -> None:
    """Set the capacity of the shared cache in bytes."""
    _default.capacity = nbytes


def _after_fork() -> None:
    # Another thread may have held the lock or been loading when the process forked.
    global _default
    _default = ChunkCache(_default.capacity)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
