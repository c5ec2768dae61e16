"""Running a write: whole chunks encoded straight from the data, partial ones read, changed and written back.

A chunk is written as one store value, atomically; what of it is not written to keeps its old bytes. Two threads
that write to different parts of one chunk take turns, so that neither loses its part. Processes do where the store is
synchronized; there a chunk at the edge is read first though all of it that lies in the array is written, because
another process may have made the array longer.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from zarrfs.engine.codecs.base import Buffer, BufferSource, CodecError, Region
from zarrfs.engine.codecs.fill_values import is_filled
from zarrfs.engine.codecs.pipeline.pipeline import CodecPipeline
from zarrfs.engine.codecs.pipeline.scratch import new_chunk
from zarrfs.engine.codecs.sharding.codec import ShardingCodec
from zarrfs.engine.indexing.projections import ChunkProjection, RegularAxis, chunk_projections, count_chunks
from zarrfs.engine.indexing.selections import CoordinateSelection, OrthogonalSelection, Span
from zarrfs.engine.io.planning import MIN_PARALLEL_COMPRESSED_NBYTES, MIN_PARALLEL_UNCOMPRESSED_NBYTES
from zarrfs.engine.io.reading import read_region
from zarrfs.engine.io.storage import ArrayStorage
from zarrfs.engine.parallel import CORES, at_most, for_each
from zarrfs.engine.stores.base import ValueTooLargeError

__all__ = ["write_selection"]

WRITERS = 2 * CORES
"""Threads that write large chunks: while one waits for the interpreter or for the disk, another compresses."""

Array = np.ndarray[Any, Any]
Parts = list[Buffer]
"""An encoded chunk, for ``Store.set_parts``."""


def write_selection(
    storage: ArrayStorage,
    selection: OrthogonalSelection | CoordinateSelection,
    values: Array,
    write_empty: bool = False,
) -> None:
    """Write ``values``, of the shape in which chunks are laid down, to what the selection names."""
    count = count_chunks(selection, storage.axes)
    if values.size == 0 or count == 0:
        return

    def write(part: ChunkProjection) -> None:
        try:
            with storage.lock(part.coords), storage.store.lock(storage.key(part.coords)):
                _write_chunk(storage, part, values[part.target], write_empty)
        except CodecError as error:
            raise storage.encode_error(part.coords, error) from error

    workers = 1
    if count > 1:
        least = MIN_PARALLEL_COMPRESSED_NBYTES if storage.compressed else MIN_PARALLEL_UNCOMPRESSED_NBYTES
        workers = max(WRITERS if storage.typical_nbytes >= least else 1, storage.store.concurrency)
    with at_most(storage.access.concurrency):
        for_each(write, chunk_projections(selection, storage.axes), workers)


def _write_chunk(storage: ArrayStorage, part: ChunkProjection, values: Array, write_empty: bool) -> None:
    coords, region = part.coords, part.region
    pipeline = storage.pipeline_of(coords)
    key = storage.key(coords)
    shape = pipeline.chain.spec.shape
    encoder = pipeline.encoder  # Raises before anything is read if a codec cannot encode.
    if part.local is None and _covers(region, shape):
        data = _encode(storage, pipeline, np.asarray(values, storage.dtype), write_empty)
    elif part.whole and not storage.store.synchronized:
        chunk = encoder.working_chunk()
        chunk[...] = storage.fill
        chunk[region] = values
        data = _encode(storage, pipeline, chunk, write_empty)
    else:
        data = _update(storage, pipeline, part, values, write_empty)
    if data is None:
        storage.store.delete(key)
    else:
        if len(data) > 1:
            storage.store.set_parts(key, data)
        else:
            storage.store.set(key, data[0])
    storage.changed(coords)


def _encode(storage: ArrayStorage, pipeline: CodecPipeline, chunk: Array, write_empty: bool) -> Parts | None:
    """Return the encoded chunk, or None when it holds nothing but the fill value and need not be stored."""
    if not write_empty and is_filled(chunk, storage.spec.fill_value):
        return None
    return pipeline.encoder.encode_parts(chunk, keep_filled=write_empty)


def _update(
    storage: ArrayStorage, pipeline: CodecPipeline, part: ChunkProjection, values: Array, write_empty: bool
) -> Parts | None:
    """Return the chunk with ``values`` put in: the old one is read, changed and encoded again."""
    key = storage.key(part.coords)
    most = pipeline.chain.max_encoded_size
    codec = pipeline.chain.codecs[0]
    try:
        if isinstance(codec, ShardingCodec) and len(pipeline.chain.codecs) == 1:
            return _update_shard(
                storage, pipeline, codec, part, values, storage.store.get_within(key, most), write_empty
            )
        chunk = pipeline.encoder.working_chunk()
        if pipeline.chain.uncompressed:
            present = pipeline.decoder.read_uncompressed(
                lambda memory: storage.store.get_into(key, memory), chunk
            )
        else:
            stored = storage.store.get_within(key, most)
            present = stored is not None
            if stored is not None:
                pipeline.decoder.decode(stored, chunk)
        if not present:
            chunk[...] = storage.fill
    except (CodecError, ValueTooLargeError) as error:
        raise storage.decode_error(part.coords, CodecError(str(error))) from error
    _put(chunk, part.region, part.local, values)
    return _encode(storage, pipeline, chunk, write_empty)


def _update_shard(
    storage: ArrayStorage,
    pipeline: CodecPipeline,
    codec: ShardingCodec,
    part: ChunkProjection,
    values: Array,
    stored: Buffer | None,
    write_empty: bool,
) -> Parts | None:
    """Re-encode only the inner chunks that change; the others keep their bytes."""
    spec = pipeline.chain.spec
    shard = codec.open_shard(stored, spec)
    inner = codec.shard_layout(spec).pipeline
    everything = tuple(slice(0, n, 1) for n in codec.chunk_shape)
    box = values
    if part.local is not None:
        box = _filled(storage, tuple(r.stop - r.start for r in part.region))
        if stored is not None:
            read_region(pipeline, BufferSource(stored), part.region, box)
        _put(box, tuple(slice(0, n) for n in box.shape), part.local, values)
    spans = tuple(Span(r.start, 1, r.stop - r.start) for r in part.region)
    whole_box = OrthogonalSelection(spans, box.shape, (slice(None),) * box.ndim)
    axes = [RegularAxis(length, n) for length, n in zip(spec.shape, codec.chunk_shape, strict=True)]

    def change(piece: ChunkProjection) -> None:
        chunk = new_chunk(inner.chain.spec)
        if not _covers(piece.region, codec.chunk_shape):
            old = shard.get(piece.coords)
            if old is None or not read_region(inner, BufferSource(old), everything, chunk):
                chunk[...] = storage.fill
        _put(chunk, piece.region, None, box[piece.target] if piece.region else box)
        if not write_empty and is_filled(chunk, storage.spec.fill_value):
            shard.set(piece.coords, None)
        else:
            try:
                shard.set(piece.coords, inner.encoder.encode(chunk, keep_filled=write_empty))
            except CodecError as error:
                raise storage.encode_error(part.coords, error) from error

    for_each(change, chunk_projections(whole_box, axes), codec.workers(spec))
    return None if shard.empty and not write_empty else codec.assemble(shard, spec)


def _filled(storage: ArrayStorage, shape: tuple[int, ...]) -> Array:
    """Return a new chunk full of the fill value."""
    chunk = np.empty(shape, storage.dtype)
    chunk[...] = storage.fill
    return chunk


def _put(chunk: Array, region: Region, local: tuple[Any, ...] | None, values: Array) -> None:
    if not region:
        # The one element of a 0-d array: NumPy lets the last of several values win.
        np.copyto(chunk, values.reshape(-1)[-1:].reshape(()))
    elif local is None:
        chunk[region] = values
    else:
        chunk[region][local] = values


def _covers(region: Region, shape: tuple[int, ...]) -> bool:
    return all(part.stop - part.start == length for part, length in zip(region, shape, strict=True))
