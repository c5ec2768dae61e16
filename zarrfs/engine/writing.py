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
from zarrfs.engine.codecs.pipeline import CodecPipeline
from zarrfs.engine.codecs.sharding import ShardingCodec, is_filled
from zarrfs.engine.indexing import ChunkPart, RegularAxis, chunk_parts, count_parts
from zarrfs.engine.layout import ArrayLayout, StoreSource
from zarrfs.engine.parallel import CORES, at_most, for_each
from zarrfs.engine.reading import PARALLEL_CHUNK_NBYTES, PARALLEL_PLAIN_NBYTES
from zarrfs.engine.selections import OuterSelection, PointSelection, Span

__all__ = ["write_selection"]

WRITERS = 2 * CORES
"""Threads that write large chunks: while one waits for the interpreter or for the disk, another compresses."""

Array = np.ndarray[Any, Any]
Parts = list[Buffer]
"""An encoded chunk, for ``Store.set_parts``."""


def write_selection(
    layout: ArrayLayout, selection: OuterSelection | PointSelection, values: Array, write_empty: bool = False
) -> None:
    """Write ``values``, of the shape in which chunks are laid down, to what the selection names."""
    count = count_parts(selection, layout.axes)
    if values.size == 0 or count == 0:
        return

    def write(part: ChunkPart) -> None:
        try:
            with layout.lock(part.coords), layout.store.lock(layout.key(part.coords)):
                _write_chunk(layout, part, values[part.target], write_empty)
        except CodecError as error:
            raise layout.encode_error(part.coords, error) from error

    workers = 1
    if count > 1:
        least = PARALLEL_CHUNK_NBYTES if layout.compressed else PARALLEL_PLAIN_NBYTES
        workers = max(WRITERS if layout.typical_nbytes >= least else 1, layout.store.concurrency)
    with at_most(layout.access.concurrency):
        for_each(write, chunk_parts(selection, layout.axes), workers)


def _write_chunk(layout: ArrayLayout, part: ChunkPart, values: Array, write_empty: bool) -> None:
    coords, region = part.coords, part.region
    pipeline = layout.pipeline_of(coords)
    key = layout.key(coords)
    shape = pipeline.spec.shape
    if part.local is None and _covers(region, shape):
        data = _encode(layout, pipeline, np.asarray(values, layout.dtype), write_empty)
    elif part.whole and not layout.store.synchronized:
        chunk = pipeline.working_chunk()
        chunk[...] = layout.fill
        chunk[region] = values
        data = _encode(layout, pipeline, chunk, write_empty)
    else:
        data = _update(layout, pipeline, part, values, write_empty)
    if data is None:
        layout.store.delete(key)
    else:
        if len(data) > 1:
            layout.store.set_parts(key, data)
        else:
            layout.store.set(key, data[0])
    layout.changed(coords)


def _encode(layout: ArrayLayout, pipeline: CodecPipeline, chunk: Array, write_empty: bool) -> Parts | None:
    """Return the encoded chunk, or None when it holds nothing but the fill value and need not be stored."""
    if not write_empty and is_filled(chunk, layout.spec.fill_value):
        return None
    return pipeline.encode_parts(chunk, keep_filled=write_empty)


def _update(
    layout: ArrayLayout, pipeline: CodecPipeline, part: ChunkPart, values: Array, write_empty: bool
) -> Parts | None:
    """Return the chunk with ``values`` put in: the old one is read, changed and encoded again."""
    key = layout.key(part.coords)
    source = StoreSource(layout.store, key, pipeline.most_stored)
    codec = pipeline.codecs[0]
    try:
        if isinstance(codec, ShardingCodec) and len(pipeline.codecs) == 1:
            return _update_shard(layout, pipeline, codec, part, values, source.read(), write_empty)
        chunk = pipeline.working_chunk()
        if pipeline.plain:
            present = pipeline.fill(lambda memory: layout.store.get_into(key, memory), chunk)
        else:
            stored = source.read()
            present = stored is not None
            if stored is not None:
                pipeline.decode(stored, chunk)
        if not present:
            chunk[...] = layout.fill
    except CodecError as error:
        raise layout.decode_error(part.coords, error) from error
    _put(chunk, part.region, part.local, values)
    return _encode(layout, pipeline, chunk, write_empty)


def _update_shard(
    layout: ArrayLayout,
    pipeline: CodecPipeline,
    codec: ShardingCodec,
    part: ChunkPart,
    values: Array,
    stored: Buffer | None,
    write_empty: bool,
) -> Parts | None:
    """Re-encode only the inner chunks that change; the others keep their bytes."""
    spec = pipeline.spec
    shard = codec.open_shard(stored, spec)
    inner = codec.layout(spec).pipeline
    everything = tuple(slice(0, n, 1) for n in codec.chunk_shape)
    box = values
    if part.local is not None:
        box = _filled(layout, tuple(r.stop - r.start for r in part.region))
        if stored is not None:
            pipeline.read(BufferSource(stored), part.region, box, None)
        _put(box, tuple(slice(0, n) for n in box.shape), part.local, values)
    spans = tuple(Span(r.start, 1, r.stop - r.start) for r in part.region)
    whole_box = OuterSelection(spans, box.shape, (slice(None),) * box.ndim)
    axes = [RegularAxis(length, n) for length, n in zip(spec.shape, codec.chunk_shape, strict=True)]

    def change(piece: ChunkPart) -> None:
        chunk = np.empty(codec.chunk_shape, layout.dtype)
        if not _covers(piece.region, codec.chunk_shape):
            old = shard.get(piece.coords)
            if old is None or not inner.read(BufferSource(old), everything, chunk, None):
                chunk[...] = layout.fill
        _put(chunk, piece.region, None, box[piece.target] if piece.region else box)
        if not write_empty and is_filled(chunk, layout.spec.fill_value):
            shard.set(piece.coords, None)
        else:
            try:
                shard.set(piece.coords, inner.encode(chunk, keep_filled=write_empty))
            except CodecError as error:
                raise layout.encode_error(part.coords, error) from error

    for_each(change, chunk_parts(whole_box, axes), codec.workers(spec))
    return None if shard.empty and not write_empty else codec.assemble(shard, spec)


def _filled(layout: ArrayLayout, shape: tuple[int, ...]) -> Array:
    """Return a new chunk full of the fill value."""
    chunk = np.empty(shape, layout.dtype)
    chunk[...] = layout.fill
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
