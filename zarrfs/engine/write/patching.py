"""Writing of single bytes of chunks, and of ranges of the flat stream of an array.

A patch is a box of bytes of one chunk, with a mask that selects the bytes to write. Patches are merged into the stored
chunk while the chunk is locked, so that writers of different bytes of one element or chunk do not overwrite each
other's data. The chunk is read first only if the patches do not cover it.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np

from zarrfs.engine.array_context import ArrayContext
from zarrfs.engine.codecs.base import BufferSource, CodecError, Region
from zarrfs.engine.codecs.fill_values import is_filled
from zarrfs.engine.codecs.pipeline.pipeline import CodecPipeline
from zarrfs.engine.codecs.pipeline.scratch import new_chunk
from zarrfs.engine.codecs.sharding.codec import ShardingCodec
from zarrfs.engine.indexing.flat_ranges import FlatOrder, flat_axes, flat_boxes
from zarrfs.engine.indexing.normalized import OrthogonalSelection, Span
from zarrfs.engine.read.reading import read_region
from zarrfs.engine.stores.base import ValueTooLargeError
from zarrfs.engine.write.writing import Parts, encode_chunk, read_chunk, replace_chunk, write_selection

__all__ = ["Patch", "shard_codec", "write_flat", "write_patches"]

Array = np.ndarray[Any, Any]


class Patch(NamedTuple):
    """Bytes to write to a box of a chunk.

    Attributes:
        region: the box in the chunk. In a sharded array it lies in one inner chunk.
        data: the bytes of the elements: uint8 of the shape of the box, with an additional last dimension of the size of
            an element. Contiguous in C order.
        mask: the bytes of ``data`` to write, as booleans of the same shape; None for all.
    """

    region: Region
    data: Array
    mask: Array | None


def shard_codec(storage: ArrayContext) -> ShardingCodec | None:
    """Return the sharding codec of an array whose inner chunks can be replaced one by one, else None."""
    codecs = storage.spec.codecs
    return codecs[0] if len(codecs) == 1 and isinstance(codecs[0], ShardingCodec) else None


def write_patches(
    storage: ArrayContext, coords: tuple[int, ...], patches: Sequence[Patch], write_empty: bool = False
) -> None:
    """Merge patches that do not overlap into one chunk (one shard, if the array is sharded), which is replaced
    atomically.

    Raises ChunkEncodeError, ChunkDecodeError for the old data, and StoreError. The stored chunk is then unchanged.
    """
    pipeline = storage.pipeline_of(coords)
    replace_chunk(storage, coords, lambda: _patched(storage, pipeline, coords, patches, write_empty))


def _patched(
    storage: ArrayContext,
    pipeline: CodecPipeline,
    coords: tuple[int, ...],
    patches: Sequence[Patch],
    write_empty: bool,
) -> Parts | None:
    """Return the encoded chunk after the patches, or None if it contains only the fill value."""
    _ = pipeline.encoder  # Raises before anything is read if a codec cannot encode.
    covered = _is_covered(storage, pipeline, coords, patches)
    codec = shard_codec(storage)
    if codec is not None:
        return _patched_shard(storage, pipeline, codec, coords, patches, covered, write_empty)
    if covered:
        chunk = pipeline.encoder.working_chunk()
        chunk[...] = storage.effective_fill_value
    else:
        chunk = read_chunk(storage, pipeline, coords)
    for patch in patches:
        _apply(chunk, patch.region, patch)
    return encode_chunk(storage, pipeline, chunk, write_empty)


def _is_covered(
    storage: ArrayContext, pipeline: CodecPipeline, coords: tuple[int, ...], patches: Sequence[Patch]
) -> bool:
    """Return whether the patches replace all elements of a chunk, so that its old data are not needed."""
    if any(patch.mask is not None for patch in patches):
        return False
    shape: tuple[int, ...] = pipeline.chain.spec.shape
    if not storage.store.synchronized:
        # Another process may enlarge an array in a synchronized store: the rest of the chunk then has to be retained.
        shape = tuple(
            min(length, axis.length - axis.begin(chunk))
            for length, axis, chunk in zip(shape, storage.axes, coords, strict=True)
        )
    covered: int = sum(prod(patch.data.shape[:-1]) for patch in patches)
    return covered == prod(shape)


def _patched_shard(
    storage: ArrayContext,
    pipeline: CodecPipeline,
    codec: ShardingCodec,
    coords: tuple[int, ...],
    patches: Sequence[Patch],
    covered: bool,
    write_empty: bool,
) -> Parts | None:
    spec = pipeline.chain.spec
    inner = codec.shard_layout(spec).pipeline
    by_inner_chunk: dict[tuple[int, ...], list[Patch]] = {}
    for patch in patches:
        inner_coords = tuple(part.start // n for part, n in zip(patch.region, codec.chunk_shape, strict=True))
        by_inner_chunk.setdefault(inner_coords, []).append(patch)
    try:
        stored = (
            None
            if covered
            else storage.store.get_within(storage.key(coords), pipeline.chain.max_encoded_size)
        )
        shard = codec.open_shard(stored, spec)
        for inner_coords, group in by_inner_chunk.items():
            begin = [index * n for index, n in zip(inner_coords, codec.chunk_shape, strict=True)]
            chunk = new_chunk(inner.chain.spec)
            elements = sum(patch.data[..., 0].size for patch in group if patch.mask is None)
            old = None if elements == chunk.size else shard.get(inner_coords)
            whole = tuple(slice(0, n, 1) for n in codec.chunk_shape)
            if old is None or not read_region(inner, BufferSource(old), whole, chunk):
                chunk[...] = storage.effective_fill_value
            for patch in group:
                region = tuple(
                    slice(part.start - b, part.stop - b) for part, b in zip(patch.region, begin, strict=True)
                )
                _apply(chunk, region, patch)
            if not write_empty and is_filled(chunk, storage.spec.fill_value):
                shard.set(inner_coords, None)
                continue
            try:
                shard.set(inner_coords, inner.encoder.encode(chunk, keep_filled=write_empty))
            except CodecError as error:
                raise storage.encode_error(coords, error) from error
        return None if shard.empty and not write_empty else codec.assemble(shard, spec)
    except (CodecError, ValueTooLargeError) as error:
        raise storage.decode_error(coords, CodecError(str(error))) from error


def _apply(chunk: Array, region: tuple[slice, ...], patch: Patch) -> None:
    shape = patch.data.shape[:-1]
    if patch.mask is None:
        values = patch.data
    else:
        box = np.empty(shape, chunk.dtype)
        box[...] = chunk[region]
        values = box.reshape(-1).view(np.uint8).reshape(patch.data.shape)
        np.copyto(values, patch.data, where=patch.mask)
    chunk[region] = values.reshape(-1).view(chunk.dtype).reshape(shape)


# -- the flat stream -------------------------------------------------------------------------------------------


def write_flat(
    storage: ArrayContext, offset: int, data: Array, order: FlatOrder, write_empty: bool = False
) -> None:
    """Write ``data``, a contiguous one-dimensional array of uint8, to the flat stream of the array from ``offset``.

    The range must lie in the array; see ``check_flat``. Elements of which only some bytes are written keep the others.
    """
    itemsize = storage.dtype.itemsize
    stop = offset + data.size
    first, last = -(-offset // itemsize), stop // itemsize
    if first * itemsize > offset:
        _write_part_of_element(storage, offset, data[: first * itemsize - offset], order, write_empty)
    if last > first:
        middle = data[first * itemsize - offset : last * itemsize - offset]
        elements = np.require(middle.view(storage.dtype), requirements="A")
        _write_elements(storage, first, elements, order, write_empty)
    if last >= first and last * itemsize < stop:
        _write_part_of_element(storage, last * itemsize, data[last * itemsize - offset :], order, write_empty)


def _write_elements(
    storage: ArrayContext, first: int, elements: Array, order: FlatOrder, write_empty: bool
) -> None:
    axes = flat_axes(order, len(storage.spec.shape))
    shape = tuple(storage.spec.shape[axis] for axis in axes)
    positions = [axes.index(axis) for axis in range(len(axes))]
    for position, box in flat_boxes(first, first + elements.size, shape):
        lengths = tuple(part.stop - part.start for part in box)
        begin = position - first
        view = elements[begin : begin + prod(lengths)].reshape(lengths).transpose(positions)
        spans = tuple(Span(box[i].start, 1, box[i].stop - box[i].start) for i in positions)
        selection = OrthogonalSelection(spans, view.shape, (slice(None),) * view.ndim)
        write_selection(storage, selection, view, write_empty)


def _write_part_of_element(
    storage: ArrayContext, offset: int, data: Array, order: FlatOrder, write_empty: bool
) -> None:
    """Write bytes from ``offset``, at most to the end of the element that contains it."""
    itemsize = storage.dtype.itemsize
    index, skip = divmod(offset, itemsize)
    size = min(data.size, itemsize - skip)
    axes = flat_axes(order, len(storage.spec.shape))
    place = np.unravel_index(index, tuple(storage.spec.shape[axis] for axis in axes)) if axes else ()
    position = [int(place[axes.index(axis)]) for axis in range(len(axes))]
    coords = tuple(axis.find(i) for axis, i in zip(storage.axes, position, strict=True))
    inside = [i - axis.begin(chunk) for axis, i, chunk in zip(storage.axes, position, coords, strict=True)]
    element = np.zeros((*(1 for _ in inside), itemsize), np.uint8)
    mask = np.zeros(element.shape, bool)
    element[..., skip : skip + size] = data[:size]
    mask[..., skip : skip + size] = True
    region = tuple(slice(i, i + 1, 1) for i in inside)
    write_patches(storage, coords, [Patch(region, element, mask)], write_empty)
