"""Execution of read plans by the native library (``zarrfs/engine/native``).

The library reads local files, decodes them and copies the requested elements, without the interpreter. It is used
for regular chunk grids, selections of slices, and the codecs that it supports. Chunks that it cannot read, for whatever
reason, are returned to the Python executor. That executor supports everything and produces all error messages, so both
executors have the same results.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Generator, Hashable, Iterable
from itertools import compress
from math import prod
from typing import Any

import numpy as np

from zarrfs.engine.cache import CacheEntry
from zarrfs.engine.counters import decoded
from zarrfs.engine.indexing.normalized import OrthogonalSelection, Span
from zarrfs.engine.indexing.projections import ChunkProjection
from zarrfs.engine.io.native_plan import NativeArray, NativeRead, native_array
from zarrfs.engine.io.planning import ReadPlan, choose_native_methods, natively_decoded_share
from zarrfs.engine.io.storage import ArrayStorage
from zarrfs.engine.native.library import NativeLibrary, native_library
from zarrfs.engine.stores.base import Store, StoredValue
from zarrfs.engine.stores.local import LocalStore

__all__ = ["read_natively"]

Array = np.ndarray[Any, Any]

MIN_CHUNKS = 2
"""Reads of fewer chunks (inner chunks, if the array is sharded) are left to the Python executor. For one chunk it is as
fast, and it keeps the index of a shard.
"""

MAX_VALUES = 1 << 24
"""The largest number of chunks or shards of one native read; each takes a byte of memory."""

MAX_ENTRIES = 1 << 20
"""The largest number of chunks (or inner chunks) along one dimension; each takes about 200 bytes of memory."""

MAX_SPARSE_INDEX_NBYTES = 1 << 20
"""The library reads the whole index of each shard and keeps none. Larger indexes are read only for whole arrays."""


def read_natively(plan: ReadPlan, out: Array) -> Generator[list[ChunkProjection]] | None:
    """Execute a plan with the native library.

    Return None if the library does not support the read. Otherwise return a generator that performs it. It yields lists
    of chunks that the library could not read; the caller reads them before it continues, and closes the generator.
    """
    library = native_library()
    selection, storage = plan.selection, plan.storage
    if plan.max_chunks < MIN_CHUNKS and not plan.sharded:
        return None
    if library is None or not isinstance(selection, OrthogonalSelection):
        return None
    if not _reads_files(storage.store) or plan.max_chunks > MAX_VALUES:
        return None
    if out.dtype != storage.dtype or out.shape != selection.shape or not out.flags.writeable:
        return None
    spans = [selector for selector in selection.selectors if isinstance(selector, Span)]
    array = native_array(storage, library) if len(spans) == len(selection.selectors) else None
    if array is None:
        return None
    counts = [axis.find(s.last) - axis.find(s.start) + 1 for axis, s in zip(array.axes, spans, strict=True)]
    if prod(counts) < MIN_CHUNKS or max(counts) > MAX_ENTRIES:
        return None
    shard = array.native.shard
    if shard.present and shard.index_nbytes > MAX_SPARSE_INDEX_NBYTES and out.size < prod(storage.spec.shape):
        return None
    read = NativeRead(out, library, array, spans)
    new_entries = _use_cache(plan, read, array)
    if all(read.unread):
        return None
    return _execute(plan, read, library, new_entries, out.nbytes)


def _reads_files(store: Store) -> bool:
    """Return whether the values of the store are files, and no subclass changes how they are read."""
    return isinstance(store, LocalStore) and all(
        getattr(type(store), name) is getattr(LocalStore, name)
        for name in ("get_within", "get_into", "open_value", "open_directory")
    )


def _execute(
    plan: ReadPlan,
    read: NativeRead,
    library: NativeLibrary,
    new_entries: _NewCacheEntries | None,
    out_nbytes: int,
) -> Generator[list[ChunkProjection]]:
    storage = plan.storage
    store = storage.store
    assert isinstance(store, LocalStore)
    read.structure.missing_falls_back = not storage.access.fill_missing
    reference = ctypes.byref(read.structure)
    directory = store.open_directory(storage.prefix.rstrip("/"))
    if directory is None or library.check(reference):
        if directory is not None:
            os.close(directory)
        yield list(plan.chunks())
        return
    try:
        read.structure.directory = directory
        reported = bytes(len(read.unread))
        while True:
            is_incomplete = library.execute(reference)
            if not is_incomplete:
                read.reject_mixed_versions()
            if read.unread != reported:
                new = np.frombuffer(read.unread, np.uint8) > np.frombuffer(reported, np.uint8)
                reported = bytes(read.unread)
                yield list(compress(plan.chunks(), new.tolist()))
            if not is_incomplete:
                break
        _count(read, storage, new_entries, out_nbytes)
    finally:
        os.close(directory)
    if new_entries is not None:
        new_entries.add(read)


def _count(
    read: NativeRead, storage: ArrayStorage, new_entries: _NewCacheEntries | None, out_nbytes: int
) -> None:
    """Count what was decoded. Missing chunks are included: the library does not report them."""
    dimensions = read.structure.dimensions
    chunk_count = prod([dimensions[i].entry_count for i in range(len(read.values))])
    if new_entries is None and 1 not in read.unread:
        decoded.add(out_nbytes, chunk_count)
        return
    is_read = np.frombuffer(read.unread, np.uint8) == 0
    counts = read.selected_counts()
    for position, chunk in new_entries.chunks.items() if new_entries is not None else ():
        counts[position] = chunk.size
    decoded.add(int(counts[is_read].sum()) * storage.dtype.itemsize, round(is_read.mean() * chunk_count))


# -- the cache -------------------------------------------------------------------------------------------------


class _FileVersion(StoredValue):
    """A value that is not read. It has the version stamp under which the options cache its data."""

    def __init__(self) -> None:
        self.current: Hashable = object()

    def stamp(self) -> Hashable:
        return self.current

    def version(self) -> Hashable:
        return self.current


class _NewCacheEntries:
    """The chunks of a read that are added to the cache when the read has ended."""

    def __init__(
        self,
        storage: ArrayStorage,
        keys: dict[int, tuple[Hashable, ...]],
        shape: tuple[int, ...],
        used: Iterable[Hashable],
    ) -> None:
        self._cache = storage.cache
        self._keys = keys
        # All chunks of the read are allocated now. Together with the entries that they replace they would exceed the
        # capacity.
        self._cache.make_room(len(keys) * prod(shape) * storage.dtype.itemsize, used)
        self.chunks = {position: np.empty(shape, storage.dtype) for position in keys}
        # The stamps are determined before the chunks are read, so that they are never newer than the data.
        version = _FileVersion()
        stamp = storage.access.stamp(version)
        self._stamp = None if stamp is version.current else stamp

    def add(self, read: NativeRead) -> None:
        """Add the chunks that the library has read to the cache."""
        for position, key in self._keys.items():
            version = read.stamp(position)
            if version is not None and not read.unread[position]:
                stamp = version if self._stamp is None else self._stamp
                CacheEntry(self._cache, key, stamp).put(self.chunks[position])


def _use_cache(plan: ReadPlan, read: NativeRead, array: NativeArray) -> _NewCacheEntries | None:
    """Exclude the chunks that the Python executor reads through the cache. Return those that are added to the cache."""
    if not plan.look_up and not plan.keep_whole and (not plan.keep_partial or read.all_whole):
        return None
    storage = plan.storage
    keys = storage.cache_keys(read.coords())
    share = 1.0
    if storage.pipeline is not None and not plan.sharded:
        share = natively_decoded_share(storage.pipeline.chain, read.largest_region())
    methods = choose_native_methods(plan, keys, read.is_whole(), share)
    for position in methods.others:
        read.unread[position] = 1
    if not methods.kept:
        return None
    new_entries = _NewCacheEntries(
        storage, {i: keys[i] for i in methods.kept}, array.native.chunk_shape, keys
    )
    read.keep(new_entries.chunks)
    return new_entries
