"""Execution of read plans by the native library (``zarrfs/engine/native``).

The library reads local files, decodes them and copies the requested elements, without the interpreter. It is used
for regular chunk grids, selections of slices, and the codecs that it supports. Chunks that it cannot read, for whatever
reason, are returned to the Python executor. That executor supports everything and produces all error messages, so both
executors have the same results.
"""

from __future__ import annotations

import ctypes
import os
from array import array
from collections.abc import Iterator, Sequence
from itertools import compress
from math import prod
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from zarrfs.engine.chunking.chunk_key_encodings import ChunkKeyEncoding
from zarrfs.engine.indexing.projections import (
    ChunkProjection,
    RegularAxis,
    SpanProjections,
    span_projections,
)
from zarrfs.engine.indexing.selections import OrthogonalSelection, Span
from zarrfs.engine.io.planning import ReadPlan
from zarrfs.engine.io.storage import ArrayStorage
from zarrfs.engine.native.chains import NativeChain, native_chain
from zarrfs.engine.native.library import NativeLibrary, native_library
from zarrfs.engine.native.structures import ReadStructure
from zarrfs.engine.parallel import CORES, permitted_threads
from zarrfs.engine.stores.base import Store
from zarrfs.engine.stores.local import LocalStore

__all__ = ["read_natively"]

Array = np.ndarray[Any, Any]

BUDGET_NS = 50_000_000
"""After this time the library returns to the interpreter, so that signals are handled."""

MIN_TASK_NBYTES = 128 << 10
"""A further thread is used for each so many decoded bytes: starting a thread takes as long as decoding them."""

MIN_CHUNKS = 2
"""Reads of fewer chunks (inner chunks, if the array is sharded) are left to the Python executor. For one chunk it is as
fast, and it keeps the index of a shard.
"""

MAX_VALUES = 1 << 24
"""The largest number of chunks or shards of one native read; each takes a byte of memory."""

MAX_SPARSE_INDEX_NBYTES = 1 << 20
"""The library reads the whole index of each shard and keeps none. Larger indexes are read only for whole arrays."""


class _ArrayPlan(NamedTuple):
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


_array_plans: WeakKeyDictionary[ArrayStorage, _ArrayPlan | None] = WeakKeyDictionary()


def read_natively(plan: ReadPlan, out: Array) -> Iterator[list[ChunkProjection]] | None:
    """Execute a plan with the native library.

    Return None if the library does not support the read. Otherwise return an iterator that performs it. The iterator
    yields lists of chunks that the library could not read; the caller reads them before it continues the iteration.
    """
    library = native_library()
    selection, storage = plan.selection, plan.storage
    if library is None or not isinstance(selection, OrthogonalSelection):
        return None
    if not _reads_files(storage.store) or plan.max_chunks > MAX_VALUES:
        return None
    if plan.keep_whole or plan.keep_partial or plan.look_up:
        return None
    if out.dtype != storage.dtype or out.shape != selection.shape or not out.flags.writeable:
        return None
    spans = [selector for selector in selection.selectors if isinstance(selector, Span)]
    if len(spans) < len(selection.selectors):
        return None
    array_plan = _array_plan(storage, library)
    if array_plan is None:
        return None
    axes = array_plan.axes
    if (
        prod(axis.find(s.last) - axis.find(s.start) + 1 for axis, s in zip(axes, spans, strict=True))
        < MIN_CHUNKS
    ):
        return None
    shard = array_plan.native.shard
    if shard.present and shard.index_nbytes > MAX_SPARSE_INDEX_NBYTES and out.size < prod(storage.spec.shape):
        return None
    return _execute(plan, out, library, array_plan, spans)


def _reads_files(store: Store) -> bool:
    """Return whether the values of the store are files, and no subclass changes how they are read."""
    return isinstance(store, LocalStore) and all(
        getattr(type(store), name) is getattr(LocalStore, name)
        for name in ("get_within", "get_into", "open_value", "open_directory")
    )


def _execute(
    plan: ReadPlan, out: Array, library: NativeLibrary, array_plan: _ArrayPlan, spans: Sequence[Span]
) -> Iterator[list[ChunkProjection]]:
    storage = plan.storage
    store = storage.store
    assert isinstance(store, LocalStore)
    read, memory, fallback = _structure(out, library, array_plan, spans)
    read.missing_falls_back = not storage.access.fill_missing
    reference = ctypes.byref(read)
    directory = store.open_directory(storage.prefix.rstrip("/"))
    if directory is None or library.check(reference):
        if directory is not None:
            os.close(directory)
        yield list(plan.chunks())
        return
    try:
        read.directory = directory
        is_reported = np.zeros(len(fallback), np.uint8)
        while True:
            is_incomplete = library.execute(reference)
            flagged = np.frombuffer(fallback, np.uint8)
            if flagged.any() and (new := flagged > is_reported).any():
                is_reported = flagged.copy()
                yield list(compress(plan.chunks(), new.tolist()))
            if not is_incomplete:
                break
    finally:
        os.close(directory)
    del memory


def _structure(
    out: Array, library: NativeLibrary, array_plan: _ArrayPlan, spans: Sequence[Span]
) -> tuple[ReadStructure, object, bytearray]:
    """Return the structure of a read, an object that keeps its memory alive, and its flags of unread values."""
    native = array_plan.native
    ndim = len(spans)
    numbers = array("q")
    sizes: list[tuple[int, int]] = []
    for dimension, (span, axis) in enumerate(zip(spans, array_plan.axes, strict=True)):
        entries = span_projections(span, axis)
        values, first = _values(entries, native.shard.grid[dimension] if native.shard.present else 1)
        sizes.append((len(entries.chunks), len(values)))
        for numbers_of_dimension in (*entries, values, first):
            numbers.extend(numbers_of_dimension)
    read = ReadStructure()
    address, _ = numbers.buffer_info()
    for dimension, (entry_count, value_count) in enumerate(sizes):
        structure = read.dimensions[dimension]
        structure.entry_count, structure.value_count = entry_count, value_count
        structure.step = spans[dimension].step
        for field in ("chunk", "start", "length", "target"):
            setattr(structure, field, address)
            address += 8 * entry_count
        structure.value = address
        structure.first = address + 8 * value_count
        address += 8 * (2 * value_count + 1)
    read.value_count = prod(value_count for _, value_count in sizes)
    entry_count = prod(entry_count for entry_count, _ in sizes)
    fallback = bytearray(read.value_count)
    flags = (ctypes.c_char * len(fallback)).from_buffer(fallback)
    read.functions = ctypes.addressof(library.functions)
    read.chain = ctypes.addressof(native.chain)
    read.shard = ctypes.addressof(native.shard)
    read.head = array_plan.head
    read.separator = ord(array_plan.separator)
    read.names_reversed = array_plan.is_reversed
    read.fill = array_plan.fill
    read.out = out.ctypes.data
    read.out_shape[:ndim] = out.shape
    read.out_strides[:ndim] = out.strides
    read.fallback = ctypes.addressof(flags)
    read.budget_ns = BUDGET_NS
    tasks = max(1, entry_count * native.chain.nbytes // MIN_TASK_NBYTES)
    read.threads = threads = permitted_threads(min(CORES, entry_count, tasks))
    read.parts = 1
    if native.shard.present and threads > 1 and read.value_count < 4 * threads:
        read.parts = min(4 * threads, -(-entry_count // read.value_count))
    return read, (numbers, flags, array_plan), fallback


def _values(entries: SpanProjections, grid: int) -> tuple[Sequence[int], Sequence[int]]:
    """Return the numbers of the stored values along a dimension, and the first entry of each and the end.

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


def _array_plan(storage: ArrayStorage, library: NativeLibrary) -> _ArrayPlan | None:
    try:
        return _array_plans[storage]
    except KeyError:
        plan = _array_plans[storage] = _make_array_plan(storage, library)
        return plan


def _make_array_plan(storage: ArrayStorage, library: NativeLibrary) -> _ArrayPlan | None:
    if storage.pipeline is None or not all(isinstance(axis, RegularAxis) for axis in storage.axes):
        return None
    native = native_chain(storage.pipeline.chain, library)
    form = _key_form(storage.spec.chunk_key_encoding, len(storage.axes))
    if native is None or form is None:
        return None
    fill = np.empty((), storage.dtype)
    fill[...] = storage.fill
    axes = tuple(
        RegularAxis(axis.length, chunk) for axis, chunk in zip(storage.axes, native.chunk_shape, strict=True)
    )
    return _ArrayPlan(native, axes, *form, fill.tobytes())


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
