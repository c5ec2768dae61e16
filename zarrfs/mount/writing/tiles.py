"""The division of an array into tiles, the units in which written bytes are kept in memory.

A tile is an inner chunk of a sharded array, or else a chunk. Large chunks are divided further, so that a small write to
a large chunk needs little memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import Any, NamedTuple

import numpy as np

from zarrfs.engine.array_context import ArrayContext
from zarrfs.engine.indexing.axes import Axis
from zarrfs.engine.indexing.flat_ranges import FlatOrder, flat_axes, flat_boxes
from zarrfs.engine.indexing.normalized import OrthogonalSelection, Span
from zarrfs.engine.indexing.projections import ChunkProjections
from zarrfs.engine.write.patching import shard_codec

__all__ = ["ElementBytes", "TilePart", "element_bytes", "tile_axes", "tile_parts"]

MAX_TILE_NBYTES = 4 << 20

Bytes = np.ndarray[Any, Any]


class TileAxis(NamedTuple):
    """A dimension of ``length`` elements in units (chunks or inner chunks) of equal length, divided into tiles."""

    length: int
    unit: int
    tile: int

    @property
    def tiles_per_unit(self) -> int:
        return -(-self.unit // self.tile)

    def locate(self, indices: Any) -> Any:
        return indices // self.unit * self.tiles_per_unit + indices % self.unit // self.tile

    def find(self, index: int) -> int:
        return index // self.unit * self.tiles_per_unit + index % self.unit // self.tile

    def begin(self, chunk: int) -> int:
        unit, tile = divmod(chunk, self.tiles_per_unit)
        return unit * self.unit + tile * self.tile

    def size(self, chunk: int) -> int:
        return min(self.tile, self.unit - chunk % self.tiles_per_unit * self.tile)


def tile_axes(storage: ArrayContext) -> tuple[Axis, ...]:
    """Return the division of each dimension of an array into tiles."""
    codec = shard_codec(storage)
    units = storage.chunk_shape if codec is None else codec.chunk_shape
    if units is None:
        return storage.axes
    tile = [max(1, n) for n in units]
    for axis, unit in enumerate(tile):
        rest = prod(tile) // unit * storage.dtype.itemsize
        if rest * unit > MAX_TILE_NBYTES:
            tile[axis] = max(1, MAX_TILE_NBYTES // rest)
    return tuple(
        TileAxis(length, max(1, unit), n)
        for length, unit, n in zip(storage.spec.shape, units, tile, strict=True)
    )


class ElementBytes(NamedTuple):
    """Bytes of consecutive elements of a flat stream.

    Attributes:
        first: the index of the first element in the stream.
        data: uint8 of the shape (number of elements, size of an element), in the byte order of the array.
        mask: the bytes of ``data`` that count, as booleans of the same shape; None for all.
    """

    first: int
    data: Bytes
    mask: Bytes | None


def element_bytes(offset: int, data: Bytes, itemsize: int, swap_width: int) -> Iterator[ElementBytes]:
    """Divide bytes at ``offset`` of a flat stream into whole elements, and parts of elements at both ends.

    ``swap_width`` is the number of bytes that the stream reverses; 1 for none.
    """
    stop = offset + data.size
    first, last = -(-offset // itemsize), stop // itemsize
    if first > last or first * itemsize > offset:
        index, skip = divmod(offset, itemsize)
        yield _part_of_element(index, skip, data[: itemsize - skip], itemsize, swap_width)
    if last > first:
        middle = data[first * itemsize - offset : last * itemsize - offset].reshape(-1, itemsize)
        yield ElementBytes(first, swapped(middle, swap_width), None)
    if last >= first and last * itemsize < stop:
        yield _part_of_element(last, 0, data[last * itemsize - offset :], itemsize, swap_width)


def _part_of_element(index: int, skip: int, part: Bytes, itemsize: int, swap_width: int) -> ElementBytes:
    data = np.zeros((1, itemsize), np.uint8)
    mask = np.zeros((1, itemsize), bool)
    data[0, skip : skip + part.size] = part
    mask[0, skip : skip + part.size] = True
    return ElementBytes(index, swapped(data, swap_width), swapped(mask, swap_width))


def swapped(elements: Bytes, width: int) -> Bytes:
    """Return elements in which the bytes of each group of ``width`` bytes are reversed."""
    if width == 1:
        return elements
    groups = elements.reshape(len(elements), -1, width)
    return groups[..., ::-1].reshape(elements.shape)


class TilePart(NamedTuple):
    """The intersection of a range of elements with a tile.

    Attributes:
        coords: the tile.
        begin: the first index of the tile in each dimension of the array.
        shape: the shape of the tile inside the array.
        region: the intersection in the tile.
        view, mask: the data and the mask of the range in the intersection. Their shape is that of the region, with an
            additional last dimension of the size of an element.
    """

    coords: tuple[int, ...]
    begin: tuple[int, ...]
    shape: tuple[int, ...]
    region: tuple[slice, ...]
    view: Bytes
    mask: Bytes | None


def tile_parts(
    storage: ArrayContext, axes: tuple[Axis, ...], order: FlatOrder, elements: ElementBytes
) -> Iterator[TilePart]:
    """Yield the intersections of a range of elements with tiles.

    ``view`` and ``mask`` of a part refer to the memory of ``elements``.
    """
    ndim = len(axes)
    dimensions = flat_axes(order, ndim)
    shape = tuple(storage.spec.shape[axis] for axis in dimensions)
    positions = [dimensions.index(axis) for axis in range(ndim)]
    for position, box in flat_boxes(elements.first, elements.first + len(elements.data), shape):
        lengths = tuple(part.stop - part.start for part in box)
        rows = slice(position - elements.first, position - elements.first + prod(lengths))

        def arranged(values: Bytes, rows: slice = rows, lengths: tuple[int, ...] = lengths) -> Bytes:
            return values[rows].reshape((*lengths, -1)).transpose((*positions, ndim))

        view = arranged(elements.data)
        mask = None if elements.mask is None else arranged(elements.mask)
        spans = tuple(Span(box[i].start, 1, box[i].stop - box[i].start) for i in positions)
        selection = OrthogonalSelection(spans, view.shape[:-1], (slice(None),) * ndim)
        for projection in ChunkProjections(selection, axes):
            begin = tuple(axis.begin(c) for axis, c in zip(axes, projection.chunk_coords, strict=True))
            yield TilePart(
                projection.chunk_coords,
                begin,
                tuple(
                    min(axis.size(c), axis.length - b)
                    for axis, c, b in zip(axes, projection.chunk_coords, begin, strict=True)
                ),
                projection.chunk_region,
                view[projection.target],
                None if mask is None else mask[projection.target],
            )
