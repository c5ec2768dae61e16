"""Reading: the chunks of a plan are read from the cache or the store, decoded, and copied into the output.

``planning.py`` decides how each chunk is read. For several chunks of local files ``native_reading.py`` executes the
plan; this module reads what the native library does not.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from contextlib import closing
from copy import copy
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np

from zarrfs.engine.array_context import ArrayContext
from zarrfs.engine.cache import CacheEntry
from zarrfs.engine.codecs.base import BufferSource, ByteSource, Codec, CodecError, Region
from zarrfs.engine.codecs.pipeline.chain import raise_located
from zarrfs.engine.codecs.pipeline.pipeline import CodecPipeline
from zarrfs.engine.codecs.sharding.codec import ShardingCodec
from zarrfs.engine.codecs.sharding.fetching import (
    InnerChunk,
    PartSource,
    check_bounds,
    fetch_ranges,
    fetch_whole,
    shard_end,
)
from zarrfs.engine.codecs.sharding.layout import ShardLayout
from zarrfs.engine.indexing.normalized import CoordinateSelection, OrthogonalSelection
from zarrfs.engine.indexing.projections import ChunkProjection, ChunkProjections
from zarrfs.engine.parallel import CORES, for_each, limit_threads, permitted_threads
from zarrfs.engine.read.planning import (
    ChunkMethod,
    ChunkRequest,
    ReadPlan,
    choose_method,
    plan_box,
    plan_fetch,
    plan_read,
)
from zarrfs.engine.stores.base import IMMUTABLE, StoredValue, ValueTooLargeError
from zarrfs.errors import MissingChunkError, SelectionError

__all__ = [
    "empty",
    "execute",
    "read_basic",
    "read_into",
    "read_out",
    "read_region",
    "read_selection",
]

Array = np.ndarray[Any, Any]

MAX_ATTEMPTS = 8
"""The maximum number of attempts to read a chunk in parts, if it is replaced during each of them. After that it is read
in one request.
"""

# -- selections ------------------------------------------------------------------------------------------------


def read_basic(storage: ArrayContext, selection: Sequence[int | slice]) -> Any | None:
    """Return the elements that integers and slices select, as an array without the dimensions of the integers, or a
    scalar if all entries are integers. Return None if the expression has to be normalized first; see ``plan_box``.
    """
    box = plan_box(storage, selection)
    if box is None:
        return None
    plan, shape, view = box
    out = empty(shape, storage)
    execute(plan, out)
    return out[view]


def read_selection(storage: ArrayContext, selection: OrthogonalSelection | CoordinateSelection) -> Array:
    """Return the selected elements as a new array, in the shape and order of the read buffer (see
    ``selections.py``).
    """
    shape = selection.shape if isinstance(selection, OrthogonalSelection) else (prod(selection.shape),)
    out = empty(shape, storage)
    read_into(storage, selection, out)
    return out


def read_out(
    storage: ArrayContext,
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


def empty(shape: tuple[int, ...], storage: ArrayContext) -> Array:
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
    storage: ArrayContext,
    selection: OrthogonalSelection | CoordinateSelection,
    out: Array,
    may_cache: bool = True,
    continues: bool = False,
) -> None:
    """Read the selection into ``out``, an array (or view) of the shape of the read buffer and the dtype of the array.

    With ``may_cache=False`` decoded chunks do not enter the cache. ``continues`` is whether the read is a range of the
    flat stream, of which the following range is likely to be read next.
    """
    if out.size == 0:
        return
    execute(plan_read(storage, selection, out.nbytes, may_cache, continues), out)


# -- plans -----------------------------------------------------------------------------------------------------


def execute(plan: ReadPlan, out: Array) -> None:
    """Execute a plan: fill ``out``, an array of the shape of the read buffer. Missing chunks read as the fill value.

    Raises ChunkDecodeError for a chunk that cannot be decoded, unless ``ReadWriteOptions.on_corrupt`` is set,
    MissingChunkError for a missing chunk if ``ReadWriteOptions.fill_missing`` is False, and StoreError.
    """
    concurrency = plan.storage.access.concurrency
    if concurrency is None and plan.is_serial:
        for chunk in plan.chunks:
            _read_chunk(plan, chunk, out)
        return
    with limit_threads(concurrency):
        _execute_several(plan, out)


def _execute_several(plan: ReadPlan, out: Array) -> None:
    """Execute a plan of several chunks, or inner chunks, on the permitted number of threads."""
    if plan.native is not None and isinstance(plan.chunks, ChunkProjections):
        from zarrfs.engine.read.native_reading import read_natively

        with closing(read_natively(plan.native, plan.storage, out)) as unread:
            for positions in unread:
                for_each(lambda chunk: _read_chunk(plan, chunk, out), plan.chunks.at(positions), plan.workers)
    elif plan.prefetched:
        _execute_prefetched(plan, out)
    else:
        for_each(lambda chunk: _read_chunk(plan, chunk, out), plan.chunks, plan.workers)


def _execute_prefetched(plan: ReadPlan, out: Array) -> None:
    """Execute a plan for a store with latency. Its event loop sends all requests before the first chunk is decoded.

    Otherwise each request is sent by a thread, which then waits for the response; this takes more processor time.
    """
    storage = plan.storage
    workers = plan.workers
    count = permitted_threads(workers)
    prefetch = storage.store.prefetch(list(map(storage.key, plan.prefetched)), count) if count > 1 else None
    if prefetch is None:
        for_each(lambda chunk: _read_chunk(plan, chunk, out), plan.chunks, workers)
        return
    with prefetch as store:
        prefetched = copy(storage)
        prefetched.store = store
        requested = replace(plan, storage=prefetched)
        for_each(lambda chunk: _read_chunk(requested, chunk, out), plan.chunks, min(count, CORES))


# -- one chunk -------------------------------------------------------------------------------------------------


def _read_chunk(plan: ReadPlan, chunk: ChunkProjection, out: Array) -> None:
    """Read what a selection takes from one chunk into ``out``, an array of the shape of the read buffer."""
    coords, region, local, target, whole = chunk
    storage = plan.storage
    access = storage.access
    codecs = storage.pipeline or storage.pipeline_of(coords)
    view = out[target] if local is None else np.empty([r.stop - r.start for r in region], storage.dtype)
    errors: list[CodecError] | None = None if access.on_corrupt is None else []
    try:
        if not access.fill_missing:
            _check_present(storage, chunk, codecs)
        request = plan.request(chunk, codecs.chain)
        may_cache = plan.may_cache_whole if whole else plan.may_cache_parts
        if request is ChunkRequest.BYPASS_CACHE:
            present = _read_whole(storage, coords, codecs, region, view)
        elif request is ChunkRequest.PARTS:
            present = _read_parts(plan, may_cache, chunk, codecs, view, errors)
        else:
            with storage.open_chunk(coords, codecs) as value:
                entry = None
                if may_cache or plan.may_be_cached:
                    entry = storage.cache_entry(coords, value, may_cache, plan.cache_on_first_read)
                present = read_region(codecs, value, region, view, entry, errors)
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


def _read_whole(
    storage: ArrayContext, coords: tuple[int, ...], codecs: CodecPipeline, region: Region, view: Array
) -> bool:
    """Read a whole chunk with one request, without the cache. Return False if it is missing."""
    key = storage.key(coords)
    if codecs.chain.uncompressed:
        return codecs.decoder.read_uncompressed(lambda memory: storage.store.get_into(key, memory), view)
    data = storage.store.get_within(key, codecs.chain.max_encoded_size)
    if data is None:
        return False
    if codecs.chain.is_whole(region):
        codecs.decoder.decode(data, view)
    else:
        view[...] = codecs.decoder.decode_to_scratch(data)[region]
    return True


def _read_parts(
    plan: ReadPlan,
    may_cache: bool,
    chunk: ChunkProjection,
    codecs: CodecPipeline,
    view: Array,
    errors: list[CodecError] | None,
) -> bool:
    """Read a region of a chunk with several requests that all belong to the same version of the chunk.

    If the chunk is replaced between two requests, the index of the old value would be combined with bytes of the new
    value. Such a read is repeated. Return False if the chunk is missing.
    """
    storage, coords, region = plan.storage, chunk.chunk_coords, chunk.chunk_region
    with storage.open_chunk(coords, codecs) as value:
        for _ in range(MAX_ATTEMPTS):
            stamp = value.stamp()
            version, is_current = _version_check(storage, value, stamp)
            if version is None:
                break
            if errors is not None:
                errors.clear()
            try:
                entry = storage.cache_entry(coords, value, may_cache, plan.cache_on_first_read, stamp)
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


def read_region(
    codecs: CodecPipeline,
    source: ByteSource,
    region: Region,
    out: Array,
    entry: CacheEntry | None = None,
    errors: list[CodecError] | None = None,
) -> bool:
    """Decode a region of one chunk, or inner chunk, into ``out``, an array of the shape of the region. Raises
    CodecError.

    The cache entry, if there is one, is used and filled as the planner decides. Return False if the chunk is missing;
    ``out`` is then unchanged. If ``errors`` is a list, an inner chunk that cannot be decoded reads as missing, and its
    error is appended.
    """
    if codecs.chain.sharded:
        return _read_shard(codecs, source, region, out, entry, errors)
    if entry is not None:
        cached = entry.get()
        if cached is not None:
            out[...] = cached[region]
            return True
    return _decode_region(codecs, source, region, out, entry)


def _decode_region(
    codecs: CodecPipeline, source: ByteSource, region: Region, out: Array, entry: CacheEntry | None
) -> bool:
    """Decode a region of one chunk that is not sharded and not cached, as ``read_region`` does."""
    chain, decoder = codecs.chain, codecs.decoder
    method = choose_method(chain, region, entry, high_latency=source.high_latency)
    if method is ChunkMethod.PARTIAL:
        return decoder.decode_region(source, region, out)
    if method is ChunkMethod.CACHE and entry is not None:
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


# -- shards ----------------------------------------------------------------------------------------------------


def _read_shard(
    codecs: CodecPipeline,
    source: ByteSource,
    region: Region,
    out: Array,
    entry: CacheEntry | None,
    errors: list[CodecError] | None,
) -> bool:
    """Decode a region of a shard, as ``read_region`` does: in the layout of the sharding codec if the codecs before it
    have views, otherwise through them.
    """
    chain = codecs.chain
    codec, spec = chain.array_bytes_codec, chain.array_bytes_spec
    assert isinstance(codec, ShardingCodec)
    if chain.bytes_codecs:
        # Codecs around a whole shard are rare. Unless they decode in part, the shard is decoded first.
        opened = codecs.decoder.open_bytes_codecs(source)
        if opened is None:
            return False
        source = opened
    layout = codec.shard_layout(spec)
    failing: Codec = codec
    try:
        inner = chain.encoded_region(region)
        if inner is not None and chain.has_views:
            return _read_inner_chunks(layout, source, inner, chain.encoded_view(out), entry, errors)
        box = tuple(slice(0, length, 1) for length in spec.shape) if inner is None else inner
        array = np.empty(tuple(part.stop - part.start for part in box), spec.dtype)
        if not _read_inner_chunks(layout, source, box, array, entry, errors):
            return False
        for array_codec, decoded_spec in reversed(chain.array_codecs):
            failing = array_codec
            array = array_codec.decode(array, decoded_spec)
        out[...] = array[region] if inner is None else array
    except Exception as error:
        raise_located(error, failing)
    return True


def _read_inner_chunks(
    layout: ShardLayout,
    source: ByteSource,
    region: Region,
    out: Array,
    entry: CacheEntry | None,
    errors: list[CodecError] | None,
) -> bool:
    """Read the inner chunks that a region of a shard intersects. The index is in the cache entry of the shard."""

    def load_index() -> Array | None:
        return layout.read_index(source)

    index = load_index() if entry is None else entry.child("index").load(load_index)
    if index is None:
        return False
    inner = layout.pipeline
    chunks: list[InnerChunk] = []
    for chunk in layout.inner_chunks(index, region):
        if chunk.is_missing:
            out[chunk.target] = layout.chunk_spec.fill_value
            continue
        if entry is not None and not inner.chain.sharded:
            cached = entry.cache.get((*entry.key, chunk.coords), entry.stamp)
            if cached is not None:
                out[chunk.target] = cached[chunk.region]
                continue
        chunks.append(chunk)
    if not chunks:
        return True
    # With high latency the size would cost another request. A truncated shard is then detected by a short response.
    size = shard_end(index) + layout.index_nbytes if source.high_latency else source.size()
    if size is None:
        raise CodecError("the shard was deleted while it was being read")
    check_bounds(chunks, size, inner.chain.max_encoded_size)
    fetch = plan_fetch(source, chunks, size - layout.index_nbytes, inner.chain)
    fetched: list[BufferSource] = []
    if fetch.at_once:
        at_once = fetch.at_once
        fetched = fetch_whole(source, at_once, size) if fetch.whole else fetch_ranges(source, at_once)
    sources = dict(zip([chunk.coords for chunk in fetch.at_once], fetched, strict=True))

    def read(chunk: InnerChunk) -> None:
        view = out[chunk.target] if chunk.target else out
        part = sources.get(chunk.coords) or PartSource(source, chunk.offset, chunk.nbytes)
        try:
            below = None if entry is None else entry.child(chunk.coords)
            if inner.chain.sharded:
                present = _read_shard(inner, part, chunk.region, view, below, errors)
            else:
                present = _decode_region(inner, part, chunk.region, view, below)
        except CodecError as error:
            if errors is None:
                raise chunk.located(error) from error
            errors.append(error)
            present = False
        if not present:
            view[...] = layout.chunk_spec.fill_value

    if len(chunks) == 1:
        read(chunks[0])
    else:
        for_each(read, chunks, fetch.workers)
    return True


# -- versions and missing chunks -------------------------------------------------------------------------------


def _version_check(
    storage: ArrayContext, value: StoredValue, stamp: Hashable
) -> tuple[Hashable | None, Callable[[Hashable], bool]]:
    """Return the version of a value with this stamp, and a function that returns whether a version is still current.

    The version is None if the value is missing or the store has no versions.
    """
    if stamp is not None:
        return stamp, value.is_unchanged
    if storage.access.assumes_unchanged_data:
        return IMMUTABLE, lambda version: True
    return value.version(), value.has_version


def _check_present(storage: ArrayContext, chunk: ChunkProjection, codecs: CodecPipeline) -> None:
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
