"""Execution of read plans by the native library (``zarrfs/engine/native``).

The library reads local files, decodes them and copies the requested elements, without the interpreter. Chunks that it
cannot read, for whatever reason, are returned to the Python executor. That executor supports everything and produces
all error messages, so both executors have the same results. The planner decides what the library reads, and how; this
module describes it by the structures of the library, which the writes share.
"""

from __future__ import annotations

import ctypes
import os
from array import array
from collections.abc import Generator, Hashable, Sequence
from functools import cache, cached_property
from itertools import pairwise, product
from math import prod
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from zarrfs.engine.array_context import ArrayContext
from zarrfs.engine.cache import CacheEntry
from zarrfs.engine.chunks.chunk_key_encodings import ChunkKeyEncoding
from zarrfs.engine.codecs.base import Region
from zarrfs.engine.counters import decoded
from zarrfs.engine.indexing.axes import RegularAxis
from zarrfs.engine.indexing.normalized import Span
from zarrfs.engine.indexing.projections import ChunkProjections, SpanProjections, span_projections
from zarrfs.engine.native.chains import NativeChain, native_chain
from zarrfs.engine.native.library import NativeLibrary, native_library
from zarrfs.engine.native.structures import LIMITS, ReadStructure
from zarrfs.engine.read_limits import BUDGET_NS
from zarrfs.engine.stores.base import StoredValue
from zarrfs.engine.stores.local.store import LocalStore

__all__ = [
    "NativeArray",
    "NativeChunks",
    "NativePlan",
    "NativeSelection",
    "native_array",
    "native_chunks",
    "read_natively",
]

Array = np.ndarray[Any, Any]

# -- arrays ----------------------------------------------------------------------------------------------------


class NativeArray(NamedTuple):
    """What is the same for all native reads and writes of one array.

    Attributes:
        library: the native library.
        native: the codecs.
        axes: the grid of the chunks, of the inner chunks if the array is sharded.
        head, separator, is_reversed: the form of the keys relative to the directory of the array.
        fill: the bytes of the fill value.
        nbytes: the size of the array in bytes.
    """

    library: NativeLibrary
    native: NativeChain
    axes: tuple[RegularAxis, ...]
    head: bytes
    separator: str
    is_reversed: bool
    fill: bytes
    nbytes: int


_native_arrays: WeakKeyDictionary[ArrayContext, NativeArray | None] = WeakKeyDictionary()


def native_array(storage: ArrayContext) -> NativeArray | None:
    """Return the description of an array, which is made once, or None if the library does not support the array or is
    not used.
    """
    library = native_library()
    if library is None or not _reads_files(type(storage.store)):
        return None
    try:
        return _native_arrays[storage]
    except KeyError:
        found = _native_arrays[storage] = _make_native_array(storage, library)
        return found


@cache
def _reads_files(kind: type) -> bool:
    """Return whether the values of stores of this class are files, and no subclass changes how they are read."""
    names = ("get_within", "get_into", "open_value", "open_directory")
    return issubclass(kind, LocalStore) and all(
        getattr(kind, name) is getattr(LocalStore, name) for name in names
    )


def _make_native_array(storage: ArrayContext, library: NativeLibrary) -> NativeArray | None:
    if storage.pipeline is None or not all(isinstance(axis, RegularAxis) for axis in storage.axes):
        return None
    native = native_chain(storage.pipeline.chain, library)
    form = _key_form(storage.spec.chunk_key_encoding, len(storage.axes))
    if native is None or form is None:
        return None
    fill = np.empty((), storage.dtype)
    try:
        fill[...] = storage.effective_fill_value
    except (TypeError, ValueError):  # The Python executor raises the same error if a chunk is missing.
        return None
    axes = tuple(
        RegularAxis(axis.length, chunk) for axis, chunk in zip(storage.axes, native.chunk_shape, strict=True)
    )
    nbytes = prod(storage.spec.shape) * storage.dtype.itemsize
    return NativeArray(library, native, axes, *form, fill.tobytes(), nbytes)


def _key_form(encoding: ChunkKeyEncoding, ndim: int) -> tuple[bytes, str, bool] | None:
    """Return head, separator and direction of the keys, or None for keys of another form."""
    if not type(encoding).__module__.startswith("zarrfs.engine."):
        return None
    samples = (tuple(range(ndim)), tuple(range(1000, 1000 + 7 * ndim, 7)))
    for head in ("", "c"):
        for separator in ("/", "."):
            for is_reversed in (False, True):
                for sample in samples:
                    parts = [head] if head else []
                    parts += map(str, reversed(sample) if is_reversed else sample)
                    if encoding.encode(sample) != separator.join(parts):
                        break
                else:
                    return head.encode(), separator, is_reversed
    return None


# -- chunks ----------------------------------------------------------------------------------------------------


class NativeChunks:
    """The chunks that a product of Spans intersects; the inner chunks, if the array is sharded.

    Attributes:
        step, chunks, starts, counts, targets: per dimension, as in SpanProjections.
        values, first: per dimension the numbers of the stored values, and the bounds of their chunks: the first one of
            each value, and the end of the last.
        count: the number of chunks.
        value_count: the number of stored values.
    """

    def __init__(
        self, spans: Sequence[SpanProjections], axes: Sequence[RegularAxis], grid: Sequence[int]
    ) -> None:
        self._axes = axes
        self._grid = grid
        self.spans = spans
        self.starts = [span.starts for span in spans]
        found = [_values(span, n) for span, n in zip(spans, grid, strict=True)]
        self.values = [values for values, _ in found]
        self.first = [first for _, first in found]
        self.count = prod([len(span.chunks) for span in spans])
        self.value_count = prod(map(len, self.values))

    def coords(self) -> list[tuple[int, ...]]:
        """Return the coordinates of the values."""
        return list(product(*self.values))

    def _selected(self, dimension: int) -> Sequence[int]:
        """Return for each value along a dimension the number of indices that are requested."""
        counts = self.spans[dimension].counts
        if self._grid[dimension] == 1:
            return counts
        return [sum(counts[low:high]) for low, high in pairwise(self.first[dimension])]

    @cached_property
    def _whole(self) -> list[list[bool]]:
        whole = []
        for dimension, (axis, grid) in enumerate(zip(self._axes, self._grid, strict=True)):
            length = grid * axis.chunk
            selected = zip(self.values[dimension], self._selected(dimension), strict=True)
            whole.append([count == min(length, axis.length - value * length) for value, count in selected])
        return whole

    @property
    def all_whole(self) -> bool:
        """Whether all values are requested as a whole."""
        return all(map(all, self._whole))

    def whole(self) -> list[bool]:
        """Return for each value whether all its elements that lie in the array are requested."""
        return list(map(all, product(*self._whole)))

    def selected_counts(self) -> Array:
        """Return for each value the number of its elements that are requested."""
        counts = np.ones(1, np.int64)
        for dimension in range(len(self.spans)):
            counts = np.multiply.outer(counts, np.asarray(self._selected(dimension), np.int64)).reshape(-1)
        return counts

    def largest_region(self) -> Region:
        """Return the largest of the regions that are requested of the chunks, or of the inner chunks."""
        region = []
        for span in self.spans:
            count = max(span.counts)
            start = span.starts[span.counts.index(count)]
            region.append(slice(start, start + (count - 1) * span.step + 1, 1))
        return tuple(region)


def native_chunks(array: NativeArray, projections: ChunkProjections) -> NativeChunks | None:
    """Return the chunks of a selection, or None if it is not a product of Spans.

    The inner chunks of shards are projected here.
    """
    spans = projections.spans
    if not spans:
        return None
    shard = array.native.shard
    if not shard.present:
        return NativeChunks(spans, array.axes, [1] * len(spans))
    inner = [
        span_projections(span, axis)
        for span, axis in zip(projections.selectors, array.axes, strict=True)
        if isinstance(span, Span)
    ]
    return NativeChunks(inner, array.axes, shard.grid[: len(spans)])


def _values(span: SpanProjections, grid: int) -> tuple[Sequence[int], Sequence[int]]:
    """Return the numbers of the stored values along a dimension, which have ``grid`` chunks each, and the bounds of
    their chunks.
    """
    if grid == 1:
        return span.chunks, range(len(span.chunks) + 1)
    values: list[int] = []
    first: list[int] = []
    for position, chunk in enumerate(span.chunks):
        if not values or values[-1] != chunk // grid:
            values.append(chunk // grid)
            first.append(position)
    return values, [*first, len(span.chunks)]


class NativePlan(NamedTuple):
    """What the native library reads of a plan. Positions are indices of ``ReadPlan.chunks``.

    Attributes:
        array: the array, as the library knows it.
        chunks: the chunks, or the inner chunks of the shards.
        others: the chunks that the Python executor reads, because they are, or will be, in the cache.
        cached: the chunks that the library decodes whole, so that they are cached, with their cache keys.
        keys: the cache keys of all chunks if chunks are cached.
        threads: the number of threads.
        parts: into how many tasks each shard is divided.
    """

    array: NativeArray
    chunks: NativeChunks
    others: Sequence[int]
    cached: dict[int, tuple[Hashable, ...]]
    keys: Sequence[tuple[Hashable, ...]]
    threads: int
    parts: int


class NativeSelection:
    """The structure that describes the chunks of a read or write, and the memory to which it refers.

    Attributes:
        structure: the argument of the library's functions.
        flags: one byte per value (chunk or shard), in the order of ``ReadPlan.chunks``: 1 if the library must not read
            or write it, or could not.
    """

    def __init__(
        self, memory: Array, array: NativeArray, chunks: NativeChunks, threads: int, parts: int = 1
    ) -> None:
        self.structure = structure = ReadStructure()
        self.flags = bytearray(chunks.value_count)
        flags = (ctypes.c_char * chunks.value_count).from_buffer(self.flags)
        structure.value_count = chunks.value_count
        structure.functions = ctypes.addressof(array.library.functions)
        structure.chain = ctypes.addressof(array.native.chain)
        structure.shard = ctypes.addressof(array.native.shard)
        structure.limits = ctypes.addressof(LIMITS)
        structure.head = array.head
        structure.separator = ord(array.separator)
        structure.names_reversed = array.is_reversed
        structure.fill = array.fill
        structure.out = memory.ctypes.data
        structure.out_shape[: memory.ndim] = memory.shape
        structure.out_strides[: memory.ndim] = memory.strides
        structure.unread = ctypes.addressof(flags)
        structure.budget_ns = BUDGET_NS
        structure.threads = threads
        structure.parts = parts
        self._memory: list[object] = [array, memory, flags, self._set_dimensions(chunks)]

    def _set_dimensions(self, chunks: NativeChunks) -> object:
        numbers = array("q")
        for span, values, first in zip(chunks.spans, chunks.values, chunks.first, strict=True):
            for numbers_of_dimension in (*span[:4], values, first):
                numbers.extend(numbers_of_dimension)
        address, _ = numbers.buffer_info()
        for dimension, span in enumerate(chunks.spans):
            structure = self.structure.dimensions[dimension]
            structure.entry_count = entry_count = len(span.chunks)
            structure.value_count = value_count = len(chunks.values[dimension])
            structure.step = span.step
            for field in ("chunk", "start", "length", "target"):
                setattr(structure, field, address)
                address += 8 * entry_count
            structure.value = address
            structure.first = address + 8 * value_count
            address += 8 * (2 * value_count + 1)
        return numbers


# -- execution -------------------------------------------------------------------------------------------------


def read_natively(
    plan: NativePlan, storage: ArrayContext, out: Array
) -> Generator[list[int] | range, None, None]:
    """Read what the library reads of a plan into ``out``, an array of the shape of the read buffer.

    Yields the positions of chunks that were not read; the caller reads them before it continues, and closes the
    generator.
    """
    store = storage.store
    assert isinstance(store, LocalStore)
    read = NativeSelection(out, plan.array, plan.chunks, plan.threads, plan.parts)
    for position in plan.others:
        read.flags[position] = 1
    structure = read.structure
    structure.missing_falls_back = not storage.access.fill_missing
    entries = _NewCacheEntries(storage, plan, read) if plan.cached else None
    stamps = None
    if entries is not None or plan.parts > 1:
        stamps = (ctypes.c_int64 * (3 * len(read.flags) * plan.parts))()
        structure.stamps = ctypes.addressof(stamps)
    reference = ctypes.byref(structure)
    library = plan.array.library
    directory = store.open_directory(storage.prefix.rstrip("/"))
    if directory is None or library.check(reference):
        if directory is not None:
            os.close(directory)
        yield range(len(read.flags))
        return
    try:
        structure.directory = directory
        reported = bytes(len(read.flags))
        while True:
            is_incomplete = library.execute(reference)
            if not is_incomplete and plan.parts > 1 and stamps is not None:
                _reject_mixed_versions(read.flags, stamps, plan.parts)
            if read.flags != reported:
                new = np.frombuffer(read.flags, np.uint8) > np.frombuffer(reported, np.uint8)
                reported = bytes(read.flags)
                yield np.flatnonzero(new).tolist()
            if not is_incomplete:
                break
        _count(read, plan, storage, out.nbytes)
    finally:
        os.close(directory)
    if entries is not None and stamps is not None:
        entries.add(read, stamps)


def _reject_mixed_versions(flags: bytearray, stamps: Any, parts: int) -> None:
    """Mark as unread each value that was replaced while its parts were read."""
    for position in range(len(flags)):
        found = stamps[3 * parts * position : 3 * parts * (position + 1)]
        if found != found[:3] * parts:
            flags[position] = 1


def _count(read: NativeSelection, plan: NativePlan, storage: ArrayContext, out_nbytes: int) -> None:
    """Count what was decoded. Missing chunks are included: the library does not report them."""
    if not plan.cached and 1 not in read.flags:
        decoded.add(out_nbytes, plan.chunks.count)
        return
    is_read = np.frombuffer(read.flags, np.uint8) == 0
    counts = plan.chunks.selected_counts()
    counts[list(plan.cached)] = prod(plan.array.native.chunk_shape)
    decoded.add(
        int(counts[is_read].sum()) * storage.dtype.itemsize, round(is_read.mean() * plan.chunks.count)
    )


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
    """The chunks of a read that are added to the cache when the read has ended. They are decoded whole."""

    def __init__(self, storage: ArrayContext, plan: NativePlan, read: NativeSelection) -> None:
        self._cache = storage.cache
        self._keys = plan.cached
        shape = plan.array.native.chunk_shape
        # All chunks of the read are allocated now. Together with the entries that they replace they would exceed the
        # capacity.
        self._cache.make_room(len(plan.cached) * prod(shape) * storage.dtype.itemsize, plan.keys)
        self._chunks = {position: np.empty(shape, storage.dtype) for position in plan.cached}
        # The stamps are determined before the chunks are read, so that they are never newer than the data.
        version = _FileVersion()
        stamp = storage.access.stamp(version)
        self._stamp = None if stamp is version.current else stamp
        self._pointers = (ctypes.c_void_p * len(read.flags))()
        for position, chunk in self._chunks.items():
            self._pointers[position] = chunk.ctypes.data
        read.structure.kept = ctypes.addressof(self._pointers)

    def add(self, read: NativeSelection, stamps: Any) -> None:
        """Add the chunks that the library has read to the cache. ``stamps`` are those of the files, as
        ``LocalStore.stamp`` returns them; the first number is -1 for a missing file.
        """
        for position, key in self._keys.items():
            time, size, inode = stamps[3 * position : 3 * position + 3]
            if time != -1 and not read.flags[position]:
                stamp = (time, size, inode) if self._stamp is None else self._stamp
                CacheEntry(self._cache, key, stamp).put(self._chunks[position])
