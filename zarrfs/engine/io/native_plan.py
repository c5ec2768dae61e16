"""Translation of read plans to the structures of the native library."""

from __future__ import annotations

import ctypes
from array import array
from collections.abc import Hashable, Mapping, Sequence
from functools import cached_property
from itertools import pairwise, product
from math import prod
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from zarrfs.engine.chunking.chunk_key_encodings import ChunkKeyEncoding
from zarrfs.engine.codecs.base import Region
from zarrfs.engine.indexing.axes import RegularAxis
from zarrfs.engine.indexing.normalized import Span
from zarrfs.engine.indexing.projections import SpanProjections, span_projections
from zarrfs.engine.io.storage import ArrayStorage
from zarrfs.engine.native.chains import NativeChain, native_chain
from zarrfs.engine.native.library import NativeLibrary
from zarrfs.engine.native.structures import ReadStructure
from zarrfs.engine.parallel import CORES, permitted_threads

__all__ = ["NativeArray", "NativeRead", "native_array"]

Array = np.ndarray[Any, Any]

BUDGET_NS = 200_000_000
"""After this time the library returns to the interpreter, so that signals are handled. Each return costs time: the
threads wait for the one that ends last, and a large chunk takes 20 ms.
"""

MIN_TASK_NBYTES = 128 << 10
MIN_TASK_FILES = 32
"""One thread is used per this many decoded bytes or files: starting another thread takes as long as reading them."""


MAX_SCRATCH_NBYTES = 512 << 20
"""The maximum scratch memory of all threads of a read together. Each thread has one encoded and one decoded chunk."""


class NativeArray(NamedTuple):
    """What is the same for all native reads of one array.

    Attributes:
        native: the codecs.
        axes: the grid of the chunks, of the inner chunks if the array is sharded.
        head, separator, is_reversed: the form of the keys relative to the directory of the array.
        fill: the bytes of the fill value.
    """

    native: NativeChain
    axes: tuple[RegularAxis, ...]
    head: bytes
    separator: str
    is_reversed: bool
    fill: bytes


_native_arrays: WeakKeyDictionary[ArrayStorage, NativeArray | None] = WeakKeyDictionary()


class _Dimension(NamedTuple):
    """One dimension of a read. ``values`` are the stored values, of ``grid`` chunks each, and ``first`` their entries;
    see ``_values``.
    """

    step: int
    axis: RegularAxis
    grid: int
    entries: SpanProjections
    values: Sequence[int]
    first: Sequence[int]

    def selected(self) -> Sequence[int]:
        """Return for each value the number of indices that are requested."""
        if self.grid == 1:
            return self.entries.counts
        return [sum(self.entries.counts[low:high]) for low, high in pairwise(self.first)]

    def is_whole(self) -> list[bool]:
        """Return for each value whether all its indices in the array are requested."""
        length = self.grid * self.axis.chunk
        return [
            count == min(length, self.axis.length - value * length)
            for value, count in zip(self.values, self.selected(), strict=True)
        ]

    def largest(self) -> slice:
        """Return the largest range that is requested of a chunk."""
        counts = self.entries.counts
        longest = max(range(len(counts)), key=counts.__getitem__)
        start = self.entries.starts[longest]
        return slice(start, start + (counts[longest] - 1) * self.step + 1, 1)


class NativeRead:
    """One read: its structure, and the memory to which the structure refers.

    Attributes:
        structure: the argument of the library's functions.
        unread: one byte per value (chunk or shard), in the order of ``ReadPlan.chunks``: 1 if the library must not read
            it, or could not read it.
        values: the numbers of the values in each dimension.
    """

    def __init__(
        self, out: Array, library: NativeLibrary, native_array: NativeArray, spans: Sequence[Span]
    ) -> None:
        self.structure = structure = ReadStructure()
        self.values: list[Sequence[int]] = []
        self._dimensions: list[_Dimension] = []
        native = native_array.native
        self._memory: list[object] = [native_array, out]
        entry_count = self._add_dimensions(native_array, spans)
        structure.value_count = prod(map(len, self.values))
        self.unread = bytearray(structure.value_count)
        flags = (ctypes.c_char * len(self.unread)).from_buffer(self.unread)
        self._memory.append(flags)
        structure.functions = ctypes.addressof(library.functions)
        structure.chain = ctypes.addressof(native.chain)
        structure.shard = ctypes.addressof(native.shard)
        structure.head = native_array.head
        structure.separator = ord(native_array.separator)
        structure.names_reversed = native_array.is_reversed
        structure.fill = native_array.fill
        structure.out = out.ctypes.data
        structure.out_shape[: out.ndim] = out.shape
        structure.out_strides[: out.ndim] = out.strides
        structure.unread = ctypes.addressof(flags)
        structure.budget_ns = BUDGET_NS
        tasks = max(
            1, entry_count * native.chain.nbytes // MIN_TASK_NBYTES, structure.value_count // MIN_TASK_FILES
        )
        in_memory = max(1, MAX_SCRATCH_NBYTES // (2 * native.chain.nbytes))
        structure.threads = threads = permitted_threads(min(CORES, entry_count, tasks, in_memory))
        structure.parts = 1
        if native.shard.present and threads > 1 and structure.value_count < 4 * threads:
            structure.parts = min(4 * threads, -(-entry_count // structure.value_count))
            self._add_stamps()

    def _add_dimensions(self, native_array: NativeArray, spans: Sequence[Span]) -> int:
        """Describe the dimensions. Return the number of chunks (inner chunks, if the array is sharded)."""
        native = native_array.native
        numbers = array("q")
        self._memory.append(numbers)
        counts: list[int] = []
        for dimension, (span, axis) in enumerate(zip(spans, native_array.axes, strict=True)):
            entries = span_projections(span, axis)
            grid = native.shard.grid[dimension] if native.shard.present else 1
            values, first = _values(entries, grid)
            for numbers_of_dimension in (*entries, values, first):
                numbers.extend(numbers_of_dimension)
            counts.append(len(entries.chunks))
            self.values.append(values)
            self._dimensions.append(_Dimension(span.step, axis, grid, entries, values, first))
        address, _ = numbers.buffer_info()
        for dimension, entry_count in enumerate(counts):
            structure = self.structure.dimensions[dimension]
            structure.entry_count, structure.value_count = entry_count, len(self.values[dimension])
            structure.step = spans[dimension].step
            for field in ("chunk", "start", "length", "target"):
                setattr(structure, field, address)
                address += 8 * entry_count
            structure.value = address
            structure.first = address + 8 * structure.value_count
            address += 8 * (2 * structure.value_count + 1)
        return prod(counts)

    @cached_property
    def _is_whole(self) -> list[list[bool]]:
        return [dimension.is_whole() for dimension in self._dimensions]

    def coords(self) -> list[tuple[int, ...]]:
        """Return the coordinates of the values."""
        return list(product(*self.values))

    def is_whole(self) -> list[bool]:
        """Return for each value whether all its elements that lie in the array are requested."""
        return [all(parts) for parts in product(*self._is_whole)]

    def selected_counts(self) -> Array:
        """Return for each value the number of its elements that are requested."""
        counts = np.ones(1, np.int64)
        for dimension in self._dimensions:
            counts = np.multiply.outer(counts, np.asarray(dimension.selected(), np.int64)).reshape(-1)
        return counts

    def largest_region(self) -> Region:
        """Return the largest of the regions that are requested of the chunks, or of the inner chunks."""
        return tuple(dimension.largest() for dimension in self._dimensions)

    @property
    def all_whole(self) -> bool:
        """Whether all values are requested as a whole."""
        return all(map(all, self._is_whole))

    def keep(self, chunks: Mapping[int, Array]) -> None:
        """Decode the values at these positions whole into the given arrays, which are C-contiguous."""
        count = self.structure.value_count
        pointers = (ctypes.c_void_p * count)()
        for position, chunk in chunks.items():
            pointers[position] = chunk.ctypes.data
        self.structure.kept = ctypes.addressof(pointers)
        self._memory.append(pointers)
        self._add_stamps()

    def _add_stamps(self) -> None:
        self._stamps = (ctypes.c_int64 * (3 * self.structure.value_count * self.structure.parts))()
        self.structure.stamps = ctypes.addressof(self._stamps)

    def reject_mixed_versions(self) -> None:
        """Mark as unread each value that was replaced while its parts were read."""
        parts = self.structure.parts
        if parts == 1:
            return
        for position in range(len(self.unread)):
            stamps = self._stamps[3 * parts * position : 3 * parts * (position + 1)]
            if stamps != stamps[:3] * parts:
                self.unread[position] = 1

    def stamp(self, position: int) -> Hashable | None:
        """Return the version stamp of a value that was decoded whole, as ``LocalStore.stamp``; None: it is missing."""
        time, size, inode = self._stamps[3 * position : 3 * position + 3]
        return None if time == -1 else (time, size, inode)


def _values(entries: SpanProjections, grid: int) -> tuple[Sequence[int], Sequence[int]]:
    """Return the numbers of the stored values along a dimension, and the bounds of their entries: the first entry of
    each value, and the end of the last.

    A value has ``grid`` chunks along the dimension.
    """
    if grid == 1:
        return entries.chunks, range(len(entries.chunks) + 1)
    values: list[int] = []
    first: list[int] = []
    for position, chunk in enumerate(entries.chunks):
        if not values or values[-1] != chunk // grid:
            values.append(chunk // grid)
            first.append(position)
    return values, [*first, len(entries.chunks)]


def native_array(storage: ArrayStorage, library: NativeLibrary) -> NativeArray | None:
    """Return the description of an array, which is made once, or None if the library does not support the array."""
    try:
        return _native_arrays[storage]
    except KeyError:
        plan = _native_arrays[storage] = _make_native_array(storage, library)
        return plan


def _make_native_array(storage: ArrayStorage, library: NativeLibrary) -> NativeArray | None:
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
    return NativeArray(native, axes, *form, fill.tobytes())


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
