"""Execution of writes by the native library (``zarrfs/engine/native``).

The library encodes chunks, and writes and renames their files, without the interpreter. It is used for regular chunk
grids, selections of slices, local files, and the codecs that it supports. It writes the same bytes as the Python
executor. Chunks that it cannot write, for whatever reason, are returned to the Python executor, which supports
everything and raises the errors.

A chunk is written while its lock is held. The calling thread takes the locks of a batch of chunks without waiting: a
chunk whose lock another thread holds is returned to the Python executor, which waits for it. Thus no thread waits for a
lock while it holds another one.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Generator, Sequence
from itertools import islice, product
from math import prod
from threading import RLock
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from zarrfs.engine.codecs.base import CodecError
from zarrfs.engine.indexing.normalized import CoordinateSelection, OrthogonalSelection, Span
from zarrfs.engine.io.native_plan import (
    BUDGET_NS,
    MAX_SCRATCH_NBYTES,
    NativeArray,
    NativeRead,
    native_array,
)
from zarrfs.engine.io.storage import ArrayStorage
from zarrfs.engine.native.chains import NativeChain
from zarrfs.engine.native.library import NativeLibrary, native_library
from zarrfs.engine.native.write_structures import StepOptionsStructure, WriteStructure
from zarrfs.engine.parallel import CORES, check_stopped, permitted_threads
from zarrfs.engine.stores.base import Store
from zarrfs.engine.stores.local import LocalStore
from zarrfs.engine.stores.temporary_files import unique_prefix

if TYPE_CHECKING:
    from zarrfs.engine.native.encoders import NativeWriter

__all__ = ["write_natively"]

Array = np.ndarray[Any, Any]

MIN_CHUNKS = 2
"""Writes of fewer chunks are left to the Python executor, which is as fast, unless the array is sharded."""

MAX_VALUES = 1 << 24
"""The largest number of chunks or shards of one native write; each takes a byte of memory."""

MAX_ENTRIES = 1 << 20
"""The largest number of chunks (or inner chunks) along one dimension; each takes about 200 bytes of memory."""

MIN_TASK_NBYTES = 64 << 10
MIN_TASK_FILES = 8
"""One thread is used per this many decoded bytes or files: starting another thread takes as long as writing them."""

MAX_BATCH_VALUES = 2048
"""The maximum number of chunks or shards whose locks are held at a time, until they are written or the time budget of a
call is used up. Each batch starts the threads again and waits for the one that ends last.
"""

MAX_RETURNED = 64
"""If the library returns more chunks than this, the Python executor writes all remaining chunks."""


def write_natively(
    storage: ArrayStorage,
    selection: OrthogonalSelection | CoordinateSelection,
    values: Array,
    write_empty: bool,
) -> Generator[Sequence[int]] | None:
    """Write ``values`` to the selected elements with the native library.

    Return None if the library does not support the write. Otherwise return a generator that performs it. It yields the
    positions, in the order of ``chunk_projections``, of chunks that were not written; the caller writes them before it
    continues. No lock is held then.
    """
    library = native_library()
    if library is None or not isinstance(selection, OrthogonalSelection):
        return None
    spans = [selector for selector in selection.selectors if isinstance(selector, Span)]
    if not _writes_files(storage.store) or len(spans) != len(selection.selectors) or not spans:
        return None
    if values.dtype != storage.dtype or values.shape != selection.shape or storage.access.assumed == "only":
        return None
    array = native_array(storage, library)
    if array is None:
        return None
    counts = [axis.find(s.last) - axis.find(s.start) + 1 for axis, s in zip(array.axes, spans, strict=True)]
    if max(counts) > MAX_ENTRIES or prod(counts) > MAX_VALUES:
        return None
    if prod(counts) < MIN_CHUNKS and not array.native.shard.present:
        return None
    encoding = _encoding(storage, array, library)
    if encoding is None:
        return None
    return _execute(_NativeWrite(storage, values, library, array, encoding, spans, write_empty), storage)


def _writes_files(store: Store) -> bool:
    """Return whether the values of the store are files that can be written, and no subclass changes how."""
    names = ("get_within", "get_into", "open_directory", "set", "set_parts", "delete", "lock")
    return (
        isinstance(store, LocalStore)
        and not store.read_only
        and all(getattr(type(store), name) is getattr(LocalStore, name) for name in names)
    )


class _Encoding(NamedTuple):
    """What is the same for all native writes of one array.

    Attributes:
        writer: the functions of the library.
        options: the parameters of the codecs, in the order of the steps.
        stored_fill: the bytes of the fill value as it is stored.
        max_stored: the largest size of a stored chunk in bytes.
    """

    writer: NativeWriter
    options: list[StepOptionsStructure]
    stored_fill: bytes
    max_stored: int


_encodings: WeakKeyDictionary[ArrayStorage, _Encoding | None] = WeakKeyDictionary()


def _encoding(storage: ArrayStorage, array: NativeArray, library: NativeLibrary) -> _Encoding | None:
    """Return the parameters of an array, which are made once, or None if the library cannot encode its chunks."""
    try:
        return _encodings[storage]
    except KeyError:
        encoding = _encodings[storage] = _make_encoding(storage, array, library)
        return encoding


def _make_encoding(storage: ArrayStorage, array: NativeArray, library: NativeLibrary) -> _Encoding | None:
    # The module loads the codecs of numcodecs, therefore it is imported here.
    from zarrfs.engine.native.encoders import native_writer

    pipeline = storage.pipeline
    if pipeline is None:
        return None
    try:
        _ = pipeline.encoder
        writer = native_writer(library)
    except (CodecError, OSError):  # CodecError: the Python executor raises it.
        return None
    options = []
    for codec, size in array.native.steps:
        found = writer.options(codec, size)
        if found is None:
            return None
        options.append(found[1])
    group = max(1, array.native.chain.element)
    stored_fill = b"".join(
        array.fill[start : start + group][::-1] for start in range(0, len(array.fill), group)
    )
    return _Encoding(writer, options, stored_fill, pipeline.chain.max_encoded_size or 0)


class _NativeWrite:
    """One write: its structure, and the memory to which the structure refers.

    Attributes:
        structure: the argument of the library's functions.
        writer: the functions of the library.
        unwritten: one byte per value (chunk or shard), in the order of ``chunk_projections``: 1 if the library must not
            write it, or could not write it.
        values: the numbers of the values in each dimension.
    """

    def __init__(
        self,
        storage: ArrayStorage,
        data: Array,
        library: NativeLibrary,
        array: NativeArray,
        encoding: _Encoding,
        spans: Sequence[Span],
        write_empty: bool,
    ) -> None:
        read = NativeRead(data, library, array, spans)
        self._read = read  # The structure refers to its memory.
        self._encoding = encoding
        self.writer = encoding.writer
        self.unwritten = read.unread
        self.values = read.values
        self.structure = structure = WriteStructure()
        native = array.native
        structure.read = read.structure
        structure.read.parts = 1
        structure.read.stamps = None
        structure.read.budget_ns = BUDGET_NS
        structure.read.threads = threads = _threads(native, read)
        structure.encoders = ctypes.addressof(encoding.writer.encoders)
        for position, options in enumerate(encoding.options):
            structure.options[position] = options
        structure.stored_fill = encoding.stored_fill
        structure.temporary = unique_prefix().encode()
        structure.shape[: data.ndim] = storage.spec.shape
        structure.max_stored = encoding.max_stored
        structure.delete_filled = not write_empty and storage.spec.fill_value is not None
        store = storage.store
        structure.durable = isinstance(store, LocalStore) and store.durable
        structure.parts = 1
        count = len(read.unread)
        inner_count = prod(native.shard.grid[i] for i in range(data.ndim)) if native.shard.present else 1
        if native.shard.present and threads > 1 and count < 4 * threads:
            structure.parts = max(1, min(4 * threads, inner_count))

    def begin(self) -> int:
        """Return the position of the next value."""
        return int(self.structure.next // self.structure.parts)


def _threads(native: NativeChain, read: NativeRead) -> int:
    """Return the number of threads. Compression takes longer than the reading for which ``NativeRead`` decides."""
    dimensions = read.structure.dimensions
    inner_count = prod(dimensions[i].entry_count for i in range(len(read.values)))
    tasks = max(1, inner_count * native.chain.nbytes // MIN_TASK_NBYTES, len(read.unread) // MIN_TASK_FILES)
    in_memory = max(1, MAX_SCRATCH_NBYTES // (3 * native.chain.nbytes))
    return permitted_threads(min(CORES, inner_count, tasks, in_memory))


def _execute(write: _NativeWrite, storage: ArrayStorage) -> Generator[Sequence[int]]:
    store = storage.store
    assert isinstance(store, LocalStore)
    structure, count = write.structure, len(write.unwritten)
    reference = ctypes.byref(structure)
    directory = store.open_directory(storage.prefix.rstrip("/"))
    if directory is None or write.writer.check(reference):
        if directory is not None:
            os.close(directory)
        yield range(count)
        return
    structure.read.directory = directory
    coords = product(*write.values)
    pending: list[tuple[int, ...]] = []
    returned = 0
    try:
        while (first := write.begin()) < count and returned <= MAX_RETURNED:
            check_stopped()
            end = min(first + MAX_BATCH_VALUES, count)
            pending += islice(coords, end - first - len(pending))
            _write_batch(write, storage, first, pending)
            done = write.begin()
            flagged = [i for i in range(first, done) if write.unwritten[i]]
            pending = pending[done - first :]
            returned += len(flagged)
            if flagged:
                yield flagged
    finally:
        write.writer.end(reference)
        os.close(directory)
        if structure.pruned:
            store.invalidate_directory_checks()
    if first < count:
        yield range(first, count)


def _write_batch(
    write: _NativeWrite, storage: ArrayStorage, first: int, chunks: Sequence[tuple[int, ...]]
) -> None:
    """Write chunks, of which ``first`` is the position of the first one, until one fails or the budget is used up."""
    structure = write.structure
    reference = ctypes.byref(structure)
    held: list[RLock] = []
    try:
        for position, coords in enumerate(chunks, first):
            lock = storage.lock(coords)
            is_free = lock.acquire(blocking=False)
            if is_free:
                held.append(lock)
            # The chunk may have been locked when an earlier batch ended before it.
            write.unwritten[position] = not is_free
        structure.limit = (first + len(chunks)) * structure.parts
        write.writer.execute(reference)
    finally:
        storage.invalidate_all(chunks[: write.begin() - first])
        for lock in held:
            lock.release()
