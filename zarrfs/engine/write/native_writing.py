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

from zarrfs.engine.array_context import ArrayContext
from zarrfs.engine.codecs.base import CodecError
from zarrfs.engine.indexing.projections import ChunkProjections
from zarrfs.engine.native.write_structures import StepOptionsStructure, WriteStructure
from zarrfs.engine.parallel import check_stopped
from zarrfs.engine.read.native_reading import (
    NativeArray,
    NativeChunks,
    NativeSelection,
    native_array,
    native_chunks,
)
from zarrfs.engine.read.planning import (
    MAX_NATIVE_ENTRIES,
    MAX_NATIVE_VALUES,
    MIN_NATIVE_CHUNKS,
    native_threads,
)
from zarrfs.engine.stores.base import Store
from zarrfs.engine.stores.local.store import LocalStore
from zarrfs.engine.stores.temporary_files import unique_prefix

if TYPE_CHECKING:
    from zarrfs.engine.native.encoders import NativeWriter

__all__ = ["write_natively"]

Array = np.ndarray[Any, Any]

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
    storage: ArrayContext, projections: ChunkProjections, values: Array, write_empty: bool
) -> Generator[Sequence[int]] | None:
    """Write ``values`` to the selected elements, whose projections are given, with the native library.

    Return None if the library does not support the write. Otherwise return a generator that performs it. It yields the
    positions, in the order of the projections, of chunks that were not written; the caller writes them before it
    continues. No lock is held then.
    """
    if not projections.spans or not _writes_files(storage.store) or storage.access.assumed == "only":
        return None
    if values.dtype != storage.dtype or projections.count > MAX_NATIVE_VALUES:
        return None
    array = native_array(storage)
    chunks = None if array is None else native_chunks(array, projections)
    if array is None or chunks is None:
        return None
    if (
        chunks.count > MAX_NATIVE_VALUES
        or max([len(span.chunks) for span in chunks.spans]) > MAX_NATIVE_ENTRIES
    ):
        return None
    if chunks.count < MIN_NATIVE_CHUNKS and not array.native.shard.present:
        return None
    encoding = _encoding(storage, array)
    if encoding is None:
        return None
    return _execute(_NativeWrite(storage, values, array, chunks, encoding, write_empty), storage)


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


_encodings: WeakKeyDictionary[ArrayContext, _Encoding | None] = WeakKeyDictionary()


def _encoding(storage: ArrayContext, array: NativeArray) -> _Encoding | None:
    """Return the parameters of an array, which are made once, or None if the library cannot encode its chunks."""
    try:
        return _encodings[storage]
    except KeyError:
        encoding = _encodings[storage] = _make_encoding(storage, array)
        return encoding


def _make_encoding(storage: ArrayContext, array: NativeArray) -> _Encoding | None:
    # The module loads the codecs of numcodecs, therefore it is imported here.
    from zarrfs.engine.native.encoders import native_writer

    pipeline = storage.pipeline
    if pipeline is None:
        return None
    try:
        _ = pipeline.encoder
        writer = native_writer(array.library)
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
        unwritten: one byte per value (chunk or shard), in the order of the projections: 1 if the library must not
            write it, or could not write it.
        chunks: the chunks that are written.
    """

    def __init__(
        self,
        storage: ArrayContext,
        data: Array,
        array: NativeArray,
        chunks: NativeChunks,
        encoding: _Encoding,
        write_empty: bool,
    ) -> None:
        native = array.native
        # Compression takes longer than decompression, so that threads are used for less.
        threads = native_threads(storage, chunks, array, 3, MIN_TASK_NBYTES, MIN_TASK_FILES)
        selection = NativeSelection(data, array, chunks, threads)
        self._selection = selection  # The structure refers to its memory.
        self._encoding = encoding
        self.writer = encoding.writer
        self.unwritten = selection.flags
        self.chunks = chunks
        self.structure = structure = WriteStructure()
        structure.read = selection.structure
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
        if native.shard.present and threads > 1 and chunks.value_count < 4 * threads:
            structure.parts = max(1, min(4 * threads, prod(native.shard.grid[: data.ndim])))

    def begin(self) -> int:
        """Return the position of the next value."""
        return int(self.structure.next // self.structure.parts)


def _execute(write: _NativeWrite, storage: ArrayContext) -> Generator[Sequence[int]]:
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
    coords = product(*write.chunks.values)
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
    write: _NativeWrite, storage: ArrayContext, first: int, chunks: Sequence[tuple[int, ...]]
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
