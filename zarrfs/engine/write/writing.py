"""Execution of writes.

A chunk that is written as a whole is encoded directly from the data. A partial write reads, modifies and writes back
the chunk. A chunk is written as one store value, atomically.

A chunk is replaced under its lock (``replace_chunk``), so that threads that write to different parts of one chunk do
not overwrite each other's data. If the store is synchronized, as directories are, the same holds for processes. In such
a store a chunk at the end of the array is read first even if all its elements inside the array are written, because
another process may have made the array larger.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from typing import Any

import numpy as np

from zarrfs.engine.array_context import ArrayContext
from zarrfs.engine.codecs.base import Buffer, BufferSource, CodecError, Region
from zarrfs.engine.codecs.fill_values import is_filled
from zarrfs.engine.codecs.pipeline.pipeline import CodecPipeline
from zarrfs.engine.codecs.pipeline.scratch import new_chunk
from zarrfs.engine.codecs.sharding.codec import ShardingCodec
from zarrfs.engine.indexing.axes import RegularAxis
from zarrfs.engine.indexing.normalized import CoordinateSelection, OrthogonalSelection, Span
from zarrfs.engine.indexing.projections import (
    ChunkProjection,
    ChunkProjections,
)
from zarrfs.engine.parallel import CORES, for_each, limit_threads
from zarrfs.engine.read.reading import read_region
from zarrfs.engine.read_limits import MIN_PARALLEL_COMPRESSED_NBYTES, MIN_PARALLEL_UNCOMPRESSED_NBYTES
from zarrfs.engine.stores.base import ValueCreatedError, ValueTooLargeError
from zarrfs.engine.stores.locks import repeated_after_conflicts
from zarrfs.errors import ChunkDecodeError, ConflictError, import_failure

__all__ = [
    "Parts",
    "clear_regions",
    "encode_chunk",
    "read_chunk",
    "replace_chunk",
    "write_selection",
    "writing_threads",
]

WRITERS = 2 * CORES
"""The number of threads that write large chunks. While one waits for the interpreter or disk, another compresses."""

Array = np.ndarray[Any, Any]
Parts = list[Buffer]
"""An encoded chunk as a list of buffers, for ``Store.set_parts``."""


def write_selection(
    storage: ArrayContext,
    selection: OrthogonalSelection | CoordinateSelection,
    values: Array,
    write_empty: bool = False,
) -> None:
    """Write ``values``, an array of the shape of the write buffer (see ``selections.py``), to the selected elements.

    Chunks that contain only the fill value afterwards are deleted unless ``write_empty`` is set. Raises
    ChunkEncodeError, ChunkDecodeError for the old data of a partially written chunk, and StoreError.
    """
    chunks = ChunkProjections(selection, storage.axes)
    if values.size == 0 or chunks.count == 0:
        return
    # Most programs only read. The modules of the native library are imported when they are needed.
    try:
        from zarrfs.engine.write.native_writing import write_natively
    except OSError as error:
        raise import_failure(error) from error

    def write(projection: ChunkProjection) -> None:
        replace_chunk(
            storage,
            projection.chunk_coords,
            lambda: _encoded(storage, projection, values[projection.target], write_empty),
        )

    workers = writing_threads(storage) if chunks.count > 1 else 1
    with limit_threads(storage.access.concurrency):
        native = write_natively(storage, chunks, values, write_empty)
        if native is None:
            for_each(write, chunks, workers)
            return
        with closing(native):
            for positions in native:
                for_each(write, chunks.at(positions), workers)


def writing_threads(storage: ArrayContext) -> int:
    """Return the number of threads with which several chunks are written."""
    threshold = MIN_PARALLEL_COMPRESSED_NBYTES if storage.compressed else MIN_PARALLEL_UNCOMPRESSED_NBYTES
    return max(WRITERS if storage.typical_nbytes >= threshold else 1, storage.store.concurrency)


def clear_regions(
    storage: ArrayContext, coords: tuple[int, ...], regions: Iterable[Region], write_empty: bool = False
) -> None:
    """Set the elements of regions of a stored chunk to the fill value. A missing chunk stays missing. The chunk is
    locked, read and written once.

    The regions may extend beyond the array, up to the shape of the chunk. Raises ChunkEncodeError, ChunkDecodeError for
    the old data, and StoreError.
    """
    pipeline = storage.pipeline_of(coords)
    if not storage.store.exists(storage.key(coords)):
        return
    fill = _filled(storage, ())
    changes = [
        (
            ChunkProjection(coords, region, None, (Ellipsis,), False),
            np.broadcast_to(fill, [part.stop - part.start for part in region]),
        )
        for region in regions
    ]
    replace_chunk(storage, coords, lambda: _update(storage, pipeline, changes, write_empty, only_stored=True))


def replace_chunk(storage: ArrayContext, coords: tuple[int, ...], encode: Callable[[], Parts | None]) -> None:
    """Replace a chunk by what ``encode`` returns, which may read it; None deletes it. No other writer changes it
    meanwhile. ``encode`` is called again if another process has created the chunk, or changed it on a server.

    Raises ChunkEncodeError for a CodecError of ``encode``, and StoreError.
    """
    key = storage.key(coords)

    def replace_once() -> None:
        try:
            with storage.store.lock(key) as is_missing:
                _store_chunk(storage, coords, key, encode(), bool(is_missing))
        except ValueCreatedError as error:
            raise ConflictError(f"{error} was created again and again by other processes") from error
        except CodecError as error:
            raise storage.encode_error(coords, error) from error

    with storage.lock(coords):
        repeated_after_conflicts(replace_once)


def _encoded(
    storage: ArrayContext, projection: ChunkProjection, values: Array, write_empty: bool
) -> Parts | None:
    """Return the encoded chunk with ``values``, or None if it is to be deleted."""
    coords, region = projection.chunk_coords, projection.chunk_region
    pipeline = storage.pipeline_of(coords)
    shape = pipeline.chain.spec.shape
    encoder = pipeline.encoder  # Raises before anything is read if a codec cannot encode.
    if projection.local is None and _covers(region, shape):
        return encode_chunk(storage, pipeline, np.asarray(values, storage.dtype), write_empty)
    try:
        if storage.store.synchronized or not projection.whole:
            return _update(storage, pipeline, [(projection, values)], write_empty)
    except ChunkDecodeError:
        # All elements of the array that are in the broken chunk are written.
        if not projection.whole:
            raise
    chunk = encoder.working_chunk()
    chunk[...] = storage.effective_fill_value
    chunk[region] = values
    return encode_chunk(storage, pipeline, chunk, write_empty)


def _store_chunk(
    storage: ArrayContext, coords: tuple[int, ...], key: str, data: Parts | None, is_missing: bool
) -> None:
    """Store or delete a chunk. ``is_missing`` is the value of its lock."""
    if data is None:
        if not is_missing:  # otherwise another process may have created it
            storage.store.delete(key)
    elif is_missing:
        storage.store.create(key, data)
    elif len(data) > 1:
        storage.store.set_parts(key, data)
    else:
        storage.store.set(key, data[0])
    storage.invalidate(coords)


def encode_chunk(
    storage: ArrayContext, pipeline: CodecPipeline, chunk: Array, write_empty: bool
) -> Parts | None:
    """Return the encoded chunk, or None if it contains only the fill value and ``write_empty`` is not set."""
    if not write_empty and is_filled(chunk, storage.spec.fill_value):
        return None
    return pipeline.encoder.encode_parts(chunk, keep_filled=write_empty)


def _update(
    storage: ArrayContext,
    pipeline: CodecPipeline,
    changes: Sequence[tuple[ChunkProjection, Array]],
    write_empty: bool,
    only_stored: bool = False,
) -> Parts | None:
    """Read a chunk, assign values to the regions of projections of this chunk, and return it encoded again.

    With ``only_stored`` the missing inner chunks of a shard stay missing.
    """
    coords = changes[0][0].chunk_coords
    codec = pipeline.chain.codecs[0]
    if isinstance(codec, ShardingCodec) and len(pipeline.chain.codecs) == 1:
        try:
            stored = storage.store.get_within(storage.key(coords), pipeline.chain.max_encoded_size)
            parts: Parts | None = None
            for number, (projection, values) in enumerate(changes):
                if number:
                    stored = None if parts is None else b"".join(parts)
                parts = _update_shard(
                    storage, pipeline, codec, projection, values, stored, write_empty, only_stored
                )
            return parts
        except (CodecError, ValueTooLargeError) as error:
            raise storage.decode_error(coords, CodecError(str(error))) from error
    chunk = read_chunk(storage, pipeline, coords)
    for projection, values in changes:
        _assign(chunk, projection.chunk_region, projection.local, values)
    return encode_chunk(storage, pipeline, chunk, write_empty)


def read_chunk(storage: ArrayContext, pipeline: CodecPipeline, coords: tuple[int, ...]) -> Array:
    """Return the working memory of the encoder with the decoded chunk, or with the fill value if it is missing.

    Raises ChunkDecodeError.
    """
    key = storage.key(coords)
    try:
        chunk = pipeline.encoder.working_chunk()
        if pipeline.chain.uncompressed:
            present = pipeline.decoder.read_uncompressed(
                lambda memory: storage.store.get_into(key, memory), chunk
            )
        else:
            stored = storage.store.get_within(key, pipeline.chain.max_encoded_size)
            present = stored is not None
            if stored is not None:
                pipeline.decoder.decode(stored, chunk)
    except (CodecError, ValueTooLargeError) as error:
        raise storage.decode_error(coords, CodecError(str(error))) from error
    if not present:
        chunk[...] = storage.effective_fill_value
    return chunk


def _update_shard(
    storage: ArrayContext,
    pipeline: CodecPipeline,
    codec: ShardingCodec,
    projection: ChunkProjection,
    values: Array,
    stored: Buffer | None,
    write_empty: bool,
    only_stored: bool,
) -> Parts | None:
    """Return the shard with the modified inner chunks encoded again. The encoded bytes of the others do not change."""
    spec = pipeline.chain.spec
    shard = codec.open_shard(stored, spec)
    inner = codec.shard_layout(spec).pipeline
    whole_inner_chunk = tuple(slice(0, n, 1) for n in codec.chunk_shape)
    box = values
    if projection.local is not None:
        box = _filled(storage, tuple(r.stop - r.start for r in projection.chunk_region))
        if stored is not None:
            read_region(pipeline, BufferSource(stored), projection.chunk_region, box)
        _assign(box, tuple(slice(0, n) for n in box.shape), projection.local, values)
    spans = tuple(Span(r.start, 1, r.stop - r.start) for r in projection.chunk_region)
    box_selection = OrthogonalSelection(spans, box.shape, (slice(None),) * box.ndim)
    axes = [RegularAxis(length, n) for length, n in zip(spec.shape, codec.chunk_shape, strict=True)]

    def update_inner_chunk(inner_projection: ChunkProjection) -> None:
        old = shard.get(inner_projection.chunk_coords)
        if old is None and only_stored:
            return
        chunk = new_chunk(inner.chain.spec)
        if not _covers(inner_projection.chunk_region, codec.chunk_shape) and (
            old is None or not read_region(inner, BufferSource(old), whole_inner_chunk, chunk)
        ):
            chunk[...] = storage.effective_fill_value
        new_values = box[inner_projection.target] if inner_projection.chunk_region else box
        _assign(chunk, inner_projection.chunk_region, None, new_values)
        if not write_empty and is_filled(chunk, storage.spec.fill_value):
            shard.set(inner_projection.chunk_coords, None)
        else:
            try:
                shard.set(inner_projection.chunk_coords, inner.encoder.encode(chunk, keep_filled=write_empty))
            except CodecError as error:
                raise storage.encode_error(projection.chunk_coords, error) from error

    for_each(update_inner_chunk, ChunkProjections(box_selection, axes), codec.workers(spec))
    return None if shard.empty and not write_empty else codec.assemble(shard, spec)


def _filled(storage: ArrayContext, shape: tuple[int, ...]) -> Array:
    """Return a new array that contains only the fill value."""
    chunk = np.empty(shape, storage.dtype)
    chunk[...] = storage.effective_fill_value
    return chunk


def _assign(chunk: Array, region: Region, local: tuple[Any, ...] | None, values: Array) -> None:
    """Assign values to a region of a chunk, or to the elements of the region that ``local`` selects."""
    if not region:
        # The only element of a 0-d array. As in NumPy, the last of several values is assigned.
        np.copyto(chunk, values.reshape(-1)[-1:].reshape(()))
    elif local is None:
        chunk[region] = values
    else:
        chunk[region][local] = values


def _covers(region: Region, shape: tuple[int, ...]) -> bool:
    """Return whether a region is the whole chunk."""
    return all(part.stop - part.start == length for part, length in zip(region, shape, strict=True))
