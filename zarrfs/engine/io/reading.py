"""Execution of reads: each chunk of a ``ReadPlan`` is decoded into the output.

``planning.py`` decides which chunks are cached and how many threads are used.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from contextlib import closing
from math import prod
from typing import Any

import numpy as np

from zarrfs.engine.cache import CacheEntry
from zarrfs.engine.codecs.base import BufferSource, ByteSource, CodecError, Region
from zarrfs.engine.codecs.pipeline.pipeline import CodecPipeline
from zarrfs.engine.indexing.normalized import CoordinateSelection, OrthogonalSelection
from zarrfs.engine.indexing.projections import ChunkProjection
from zarrfs.engine.io.planning import (
    ChunkMethod,
    ChunkPolicy,
    ReadPlan,
    choose_method,
    decoded_share,
    plan_read,
)
from zarrfs.engine.io.requested import chunks_requested
from zarrfs.engine.io.storage import ArrayStorage
from zarrfs.engine.parallel import for_each, limit_threads
from zarrfs.engine.stores.base import IMMUTABLE, StoredValue, ValueTooLargeError
from zarrfs.errors import MissingChunkError, SelectionError, import_failure

__all__ = ["read_chunk", "read_region", "read_selection"]

Array = np.ndarray[Any, Any]

MAX_ATTEMPTS = 8
"""The maximum number of attempts to read a chunk in parts, if it is replaced during each of them. After that it is read
in one request.
"""

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
            with chunks_requested(plan) as (requested, workers):
                for_each(lambda chunk: read_chunk(requested, plan, chunk, out), plan.chunks(), workers)
            return
        with closing(native):
            for chunks in native:
                for_each(read, chunks, plan.workers)


def read_chunk(storage: ArrayStorage, policy: ChunkPolicy, chunk: ChunkProjection, out: Array) -> None:
    """Read what a selection takes from one chunk into ``out``, an array of the shape of the read buffer.

    Raises the errors of ``execute``.
    """
    coords, region, local, target, _ = chunk
    access = storage.access
    codecs = storage.pipeline or storage.pipeline_of(coords)
    view = out[target] if local is None else np.empty([r.stop - r.start for r in region], storage.dtype)
    errors: list[CodecError] | None = None if access.on_corrupt is None else []
    try:
        if not access.fill_missing:
            _check_present(storage, chunk, codecs)
        if policy.needs_parts(chunk, codecs.chain):
            present = _read_consistent(storage, policy, chunk, codecs, view, errors)
        elif not policy.is_streamed(chunk, codecs.chain):
            keep = policy.keeps(chunk)
            with storage.open_chunk(coords, codecs) as value:
                use_cache = keep or policy.look_up
                entry = storage.cache_entry(coords, value, keep, policy.eager) if use_cache else None
                present = read_region(codecs, value, region, view, entry, errors)
        elif codecs.chain.uncompressed:
            key = storage.key(coords)
            present = codecs.decoder.read_uncompressed(
                lambda memory: storage.store.get_into(key, memory), view
            )
        else:
            data = storage.store.get_within(storage.key(coords), codecs.chain.max_encoded_size)
            present = data is not None
            if data is not None and codecs.chain.is_whole(region):
                codecs.decoder.decode(data, view)
            elif data is not None:
                view[...] = codecs.decoder.decode_to_scratch(data)[region]
    except (CodecError, ValueTooLargeError) as error:
        codec_error = error if isinstance(error, CodecError) else CodecError(str(error))
        if errors is None:
            raise storage.decode_error(coords, codec_error) from error
        errors.append(codec_error)
        present = False
    except MemoryError as error:
        raise storage.decode_error(coords, CodecError("it does not fit into memory")) from error
    if not present:
        view[...] = storage.effective_fill_value
    if local is not None:
        out[target] = view[local]
    for each in errors or ():
        if access.on_corrupt is not None:
            access.on_corrupt(storage.decode_error(coords, each))


def _cached_chunks(plan: ReadPlan) -> list[ChunkProjection]:
    """Return the chunks of a small plan if the cache has all of them, in whatever version; otherwise an empty list."""
    storage = plan.storage
    if plan.sharded or not 1 < plan.max_chunks <= MAX_SERIAL_CHUNKS or storage.store.concurrency > 1:
        return []
    chunks = list(plan.chunks())
    keys = storage.cache_keys([chunk.chunk_coords for chunk in chunks])
    return chunks if len(storage.cache.cached_among(keys)) == len(keys) else []


def read_region(
    codecs: CodecPipeline,
    source: ByteSource,
    region: Region,
    out: Array,
    entry: CacheEntry | None = None,
    errors: list[CodecError] | None = None,
) -> bool:
    """Decode a region of one chunk into ``out``, an array of the shape of the region. Raises CodecError.

    The cache entry, if there is one, is used and filled as the planner decides. Return False if the chunk is missing;
    ``out`` is then unchanged. If ``errors`` is a list, an inner chunk that cannot be decoded reads as missing, and its
    error is appended.
    """
    chain, decoder = codecs.chain, codecs.decoder
    if chain.sharded:
        return decoder.read_inner_chunks(source, region, out, _InnerChunks(entry, errors))
    if entry is not None:
        cached = entry.get()
        if cached is not None:
            out[...] = cached[region]
            return True
    method = choose_method(chain, region, entry)
    if entry is not None and entry.keep and method is not ChunkMethod.KEEP and chain.compressed:
        entry.record_read(decoded_share(chain, region))
    if method is ChunkMethod.PARTIAL:
        return decoder.decode_region(source, region, out)
    if method is ChunkMethod.KEEP and entry is not None:
        array = entry.load(lambda: None if (data := source.read()) is None else decoder.decode(data))
        if array is None:
            return False
        out[...] = array[region]
        return True
    data = source.read()
    if data is None:
        return False
    if chain.is_whole(region):
        decoder.decode(data, out)
    else:
        out[...] = decoder.decode_to_scratch(data)[region]
    return True


class _InnerChunks:
    """Reads the index and the inner chunks of one shard through the cache entry of the shard (None: no cache).

    If ``errors`` is a list, an inner chunk that cannot be decoded reads as missing, and its error is appended.
    """

    def __init__(self, entry: CacheEntry | None, errors: list[CodecError] | None = None) -> None:
        self.entry = entry
        self.errors = errors

    def index(self, load: Callable[[], Array | None]) -> Array | None:
        return load() if self.entry is None else self.entry.child("index").load(load)

    def cached(self, coords: tuple[int, ...]) -> Array | None:
        entry = self.entry
        return None if entry is None else entry.cache.get((*entry.key, coords), entry.stamp)

    def read(
        self, codecs: CodecPipeline, coords: tuple[int, ...], source: ByteSource, region: Region, out: Array
    ) -> bool:
        entry = None if self.entry is None else self.entry.child(coords)
        try:
            return read_region(codecs, source, region, out, entry, self.errors)
        except CodecError as error:
            if self.errors is None:
                raise
            self.errors.append(error)
            return False


def _read_consistent(
    storage: ArrayStorage,
    policy: ChunkPolicy,
    chunk: ChunkProjection,
    codecs: CodecPipeline,
    view: Array,
    errors: list[CodecError] | None = None,
) -> bool:
    """Read a region with several requests that all belong to the same version of the chunk.

    If the chunk is replaced between two requests, the index of the old value would be combined with bytes of the new
    value. Such a read is repeated.
    """
    coords, region = chunk.chunk_coords, chunk.chunk_region
    with storage.open_chunk(coords, codecs) as value:
        for _ in range(MAX_ATTEMPTS):
            stamp = value.stamp()
            version, is_current = _version_check(storage, value, stamp)
            if version is None:
                break
            if errors is not None:
                errors.clear()
            try:
                entry = storage.cache_entry(coords, value, policy.keeps(chunk), policy.eager, stamp)
                present = read_region(codecs, value, region, view, entry, errors)
            except CodecError:
                if is_current(version):
                    raise
            else:
                if is_current(version):
                    return present
            value.close()
        # The chunk is missing, the store has no versions, or the chunk keeps changing: use one request.
        data = value.read()
    if errors is not None:
        errors.clear()
    return data is not None and read_region(codecs, BufferSource(data), region, view, None, errors)


def _version_check(
    storage: ArrayStorage, value: StoredValue, stamp: Hashable
) -> tuple[Hashable | None, Callable[[Hashable], bool]]:
    """Return the version of a value with this stamp, and a function that returns whether a version is still current.

    The version is None if the value is missing or the store has no versions.
    """
    if stamp is not None:
        return stamp, value.is_unchanged
    if storage.access.assumes_unchanged_data:
        return IMMUTABLE, lambda version: True
    return value.version(), value.has_version


def _check_present(storage: ArrayStorage, chunk: ChunkProjection, codecs: CodecPipeline) -> None:
    """Raise MissingChunkError if the chunk, or an inner chunk of the requested region, is not stored."""
    with storage.open_chunk(chunk.chunk_coords, codecs) as value:
        if value.size() is None:
            inner = ""
        else:
            missing = codecs.decoder.first_missing(value, chunk.chunk_region)
            if missing is None:
                return
            inner = f" inner chunk {missing} of"
    raise MissingChunkError(
        f"{storage.where}:{inner} chunk {chunk.chunk_coords} (key {storage.key(chunk.chunk_coords)!r}) is missing; "
        "open the array with fill_missing=True to read missing chunks as the fill value"
    )
