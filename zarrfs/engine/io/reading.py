"""Execution of reads: each chunk of a ``ReadPlan`` is decoded into the output.

``planning.py`` decides which chunks are cached and how many threads are used; ``chunk_reading.py`` reads one chunk.
"""

from __future__ import annotations

from contextlib import closing
from math import prod
from typing import Any

import numpy as np

from zarrfs.engine.indexing.normalized import CoordinateSelection, OrthogonalSelection
from zarrfs.engine.indexing.projections import ChunkProjection
from zarrfs.engine.io.chunk_reading import read_chunk
from zarrfs.engine.io.planning import ReadPlan, plan_read
from zarrfs.engine.io.prefetching import prefetched_chunks
from zarrfs.engine.io.storage import ArrayStorage
from zarrfs.engine.parallel import for_each, limit_threads
from zarrfs.errors import SelectionError, import_failure

__all__ = ["empty", "execute", "read_into", "read_out", "read_selection"]

Array = np.ndarray[Any, Any]

MAX_SERIAL_CHUNKS = 64
MAX_SERIAL_NBYTES = 4 << 20
"""A read of at most this many chunks and bytes that are all cached is done on the calling thread. Copying takes less
time than planning a native read, or passing the interpreter lock from thread to thread.
"""


def read_selection(storage: ArrayStorage, selection: OrthogonalSelection | CoordinateSelection) -> Array:
    """Return the selected elements as a new array, in the shape and order of the read buffer (see
    ``selections.py``).
    """
    shape = selection.shape if isinstance(selection, OrthogonalSelection) else (prod(selection.shape),)
    out = empty(shape, storage)
    read_into(storage, selection, out)
    return out


def read_out(
    storage: ArrayStorage,
    selection: OrthogonalSelection | CoordinateSelection,
    out: Array,
    fields: Any = None,
) -> Array:
    """Read the selection, or some ``fields`` of its records, into ``out`` and return ``out``.

    ``out`` has the shape of the result. Chunks are decoded directly into it if it has the dtype of the array and is
    writable, and the selection consists of integers and slices only. Otherwise the result is copied, and cast to the
    dtype of ``out``. Raises TypeError if ``out`` is not a NumPy array, ValueError if it has another shape.
    """
    shape = selection.result_shape if isinstance(selection, OrthogonalSelection) else selection.shape
    if not isinstance(out, np.ndarray):
        raise TypeError(f"{storage.where}: out must be a NumPy array, found {type(out).__name__}")
    if out.shape != shape and fields is None:
        raise ValueError(
            f"{storage.where}: out has the shape {out.shape}, the selection has the shape {shape}"
        )
    if fields is None and out.dtype == storage.dtype and out.flags.writeable:
        buffer = selection.to_buffer(out) if isinstance(selection, OrthogonalSelection) else out.reshape(-1)
        if np.may_share_memory(buffer, out):
            read_into(storage, selection, buffer)
            return out
    buffer = read_selection(storage, selection)
    result = selection.result(buffer) if isinstance(selection, OrthogonalSelection) else buffer.reshape(shape)
    out[...] = result if fields is None else result[fields]
    return out


def empty(shape: tuple[int, ...], storage: ArrayStorage) -> Array:
    """Return a new uninitialized array of the array's dtype. Raises SelectionError if it cannot be allocated."""
    try:
        return np.empty(shape, storage.dtype)
    except (MemoryError, ValueError) as error:
        nbytes = prod(shape) * storage.dtype.itemsize
        raise SelectionError(
            f"{storage.where}: a selection of shape {shape} needs {nbytes:,} bytes of memory, which cannot be "
            "allocated; select less at a time"
        ) from error


def read_into(
    storage: ArrayStorage,
    selection: OrthogonalSelection | CoordinateSelection,
    out: Array,
    keep_chunks: bool = True,
    flat: bool = False,
) -> None:
    """Read the selection into ``out``, an array (or view) of the shape of the read buffer.

    ``keep_chunks`` and ``flat`` are those of ``plan_read``.
    """
    if out.size == 0:
        return
    plan = plan_read(storage, selection, out.nbytes, keep_chunks, flat)
    if plan.max_chunks:
        execute(plan, out)


def execute(plan: ReadPlan, out: Array) -> None:
    """Execute a plan: fill ``out``, an array of the shape of the read buffer. Missing chunks read as the fill value.

    Raises ChunkDecodeError for a chunk that cannot be decoded, unless ``Access.on_corrupt`` is set, MissingChunkError
    for a missing chunk if ``Access.fill_missing`` is False, and StoreError.
    """
    storage = plan.storage

    def read(chunk: ChunkProjection) -> None:
        read_chunk(storage, plan, chunk, out)

    # ctypes and the codec libraries are imported with the first read and not with the package.
    try:
        from zarrfs.engine.io.native_reading import read_natively
    except OSError as error:
        raise import_failure(error) from error

    with limit_threads(storage.access.concurrency):
        if plan.look_up and out.nbytes <= MAX_SERIAL_NBYTES and (cached := _cached_chunks(plan)):
            for chunk in cached:
                read(chunk)
            return
        native = read_natively(plan, out)
        if native is None:
            with prefetched_chunks(plan) as (requested, workers):
                for_each(lambda chunk: read_chunk(requested, plan, chunk, out), plan.chunks(), workers)
            return
        with closing(native):
            for chunks in native:
                for_each(read, chunks, plan.workers)


def _cached_chunks(plan: ReadPlan) -> list[ChunkProjection]:
    """Return the chunks of a small plan if the cache has all of them, in whatever version; otherwise an empty list."""
    storage = plan.storage
    if plan.sharded or not 1 < plan.max_chunks <= MAX_SERIAL_CHUNKS or storage.store.concurrency > 1:
        return []
    chunks = list(plan.chunks())
    keys = storage.cache_keys([chunk.chunk_coords for chunk in chunks])
    return chunks if len(storage.cache.cached_among(keys)) == len(keys) else []
