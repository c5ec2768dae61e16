"""Reading what a selection takes from one chunk: from the cache, by decoding the chunk, or by decoding a part of it."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

import numpy as np

from zarrfs.engine.cache import CacheEntry
from zarrfs.engine.codecs.base import BufferSource, ByteSource, CodecError, Region
from zarrfs.engine.codecs.pipeline.pipeline import CodecPipeline
from zarrfs.engine.indexing.projections import ChunkProjection
from zarrfs.engine.io.planning import ChunkMethod, ChunkPolicy, choose_method, decoded_share
from zarrfs.engine.io.storage import ArrayStorage
from zarrfs.engine.stores.base import IMMUTABLE, StoredValue, ValueTooLargeError
from zarrfs.errors import MissingChunkError

__all__ = ["read_chunk", "read_region"]

Array = np.ndarray[Any, Any]

MAX_ATTEMPTS = 8
"""The maximum number of attempts to read a chunk in parts, if it is replaced during each of them. After that it is read
in one request.
"""


def read_chunk(storage: ArrayStorage, policy: ChunkPolicy, chunk: ChunkProjection, out: Array) -> None:
    """Read what a selection takes from one chunk into ``out``, an array of the shape of the read buffer.

    Raises the errors of ``reading.execute``.
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
    if codecs.chain.sharded:
        return codecs.decoder.read_inner_chunks(source, region, out, _InnerChunks(entry, errors))
    if entry is not None:
        cached = entry.get()
        if cached is not None:
            out[...] = cached[region]
            return True
    return _decode_region(codecs, source, region, out, entry)


def _decode_region(
    codecs: CodecPipeline, source: ByteSource, region: Region, out: Array, entry: CacheEntry | None
) -> bool:
    """Decode a region of one chunk that is not sharded and not cached. The other arguments are those of
    ``read_region``.
    """
    chain, decoder = codecs.chain, codecs.decoder
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
            if codecs.chain.sharded:
                return read_region(codecs, source, region, out, entry, self.errors)
            return _decode_region(codecs, source, region, out, entry)
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
