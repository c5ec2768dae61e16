"""A volume or plane in a rotated or sheared coordinate system: an array whose values are interpolated when it is read.

The values are those of another array at positions that an affine transformation of the indices yields. Such an array is
read in regions as every other one, so that tiles, levels and the cache are used in the same way.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt

from zarrfs_viewer.images.reading import SourceArray

__all__ = ["ResampledArray", "source_array"]

AnyArray = npt.NDArray[Any]
Floats = npt.NDArray[np.float64]
Box = tuple[tuple[int, int], ...]
"""The first and the exclusive last index along each of some axes."""

CHUNK_LENGTH = 32
"""The chunk length along resampled axes. If a stored chunk cannot be read, the values of these chunks are missing."""

MAX_BLOCK_ELEMENTS = 1 << 18
"""Elements of the source that are read at once. The box around an oblique plane contains many more elements than are
near the plane; parts of the plane have smaller boxes."""

MIN_SPLIT_LENGTH = 8
"""Parts of a region that are shorter along all axes are not divided."""

ROUNDING = 1e-9
"""Positions half way between two elements belong to the next one in spite of rounding errors."""


class ResampledArray:
    """The values of an array on another grid.

    ``axes`` are the axes that the transformation mixes; the others are unchanged. ``matrix`` has one row for each of
    them and maps the indices of this array along ``axes`` to fractional indices of the source; its last column is the
    translation. Elements of the source cover half an index on each side. Values are interpolated linearly, with
    ``nearest`` not at all; outside of the source they are 0.
    """

    def __init__(
        self,
        source: SourceArray,
        axes: tuple[int, ...],
        matrix: Floats,
        lengths: tuple[int, ...],
        nearest: bool,
    ) -> None:
        self.source = source
        self.axes = axes
        self.matrix = matrix
        shape = list(source.shape)
        for axis, length in zip(axes, lengths, strict=True):
            shape[axis] = length
        self._shape = tuple(shape)
        kind = source.dtype.kind
        self._nearest = nearest or source.dtype.names is not None or kind not in "iufc"

    @property
    def shape(self) -> tuple[int, ...]:
        return self._shape

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.source.dtype

    @property
    def chunks(self) -> tuple[int, ...]:
        lengths = [max(c, default=1) if isinstance(c, tuple) else c for c in self.source.chunks]
        for axis in self.axes:
            lengths[axis] = min(CHUNK_LENGTH, self._shape[axis])
        return tuple(lengths)

    def source_positions(self, positions: tuple[Any, ...]) -> list[Any]:
        """Return the fractional indices of the source, one array per axis of ``axes``, for positions along ``axes``.

        The positions are numbers or arrays that can be broadcast.
        """
        return [
            sum((row[number] * position for number, position in enumerate(positions)), row[-1])
            for row in self.matrix
        ]

    def covers(self, positions: tuple[Any, ...]) -> npt.NDArray[np.bool_]:
        """Return whether the positions, as in ``source_positions``, are within the source."""
        inside: Any = True
        for axis, position in zip(self.axes, self.source_positions(positions), strict=True):
            inside = inside & self._is_inside(axis, position)
        return np.asarray(inside, np.bool_)

    def covers_any(
        self, positions: tuple[Any, ...], number: int, first: float, last: float
    ) -> npt.NDArray[np.bool_]:
        """Return whether any position along ``axes[number]`` from ``first`` to ``last`` is within the source.

        The entry ``number`` of ``positions`` is ignored.
        """
        at_zero = self.source_positions((*positions[:number], 0.0, *positions[number + 1 :]))
        low: Any = first
        high: Any = last
        for axis, row, start in zip(self.axes, self.matrix, at_zero, strict=True):
            slope, length = row[number], self.source.shape[axis]
            if abs(slope) < ROUNDING:
                low = np.where(self._is_inside(axis, start), low, np.inf)
                continue
            ends = (-0.5 - start) / slope, (length - 0.5 - start) / slope
            low = np.maximum(low, np.minimum(*ends))
            high = np.minimum(high, np.maximum(*ends))
        return np.asarray(low <= high + ROUNDING, np.bool_)

    def _is_inside(self, axis: int, position: Any) -> Any:
        return (position >= -0.5 - ROUNDING) & (position < self.source.shape[axis] - 0.5 - ROUNDING)

    def __getitem__(self, selection: Any, /) -> AnyArray:
        """Read with one integer or slice with a positive step per axis. Blocks. Raises ZarrError."""
        selection = selection if isinstance(selection, tuple) else (selection,)
        parts = [*selection, *([slice(None)] * (len(self._shape) - len(selection)))]
        indices = [
            np.atleast_1d(np.arange(length)[part]) for part, length in zip(parts, self._shape, strict=True)
        ]
        # Axes that are not mixed are read as they are; an integer keeps its axis until the end.
        kept = [
            slice(int(part), int(part) + 1) if isinstance(part, int | np.integer) else part for part in parts
        ]
        values = np.zeros([len(each) for each in indices], self.dtype)
        grids = [indices[axis] for axis in self.axes]
        for box in self._boxes(grids, tuple((0, len(grid)) for grid in grids)):
            self._fill(values, kept, [grid[slice(*span)] for grid, span in zip(grids, box, strict=True)], box)
        dropped = tuple(0 if isinstance(part, int | np.integer) else slice(None) for part in parts)
        return values[dropped]

    def _boxes(self, grids: list[npt.NDArray[np.intp]], box: Box) -> Iterator[Box]:
        """Yield the parts of a region whose elements of the source are read at once."""
        if any(start >= stop for start, stop in box):
            return
        bounds = self._bounds([grid[slice(*span)] for grid, span in zip(grids, box, strict=True)])
        if bounds is None:
            return
        lengths = [stop - start for start, stop in box]
        longest = max(range(len(box)), key=lengths.__getitem__)
        size = int(np.prod([stop - start for start, stop in bounds], dtype=np.int64))
        if size <= MAX_BLOCK_ELEMENTS or lengths[longest] <= MIN_SPLIT_LENGTH:
            yield box
            return
        start, stop = box[longest]
        middle = (start + stop) // 2
        for span in ((start, middle), (middle, stop)):
            yield from self._boxes(grids, (*box[:longest], span, *box[longest + 1 :]))

    def _bounds(self, grids: list[npt.NDArray[np.intp]]) -> Box | None:
        """Return the part of the source that the values at indices need; None if it is outside of the source."""
        bounds = []
        for axis, row in zip(self.axes, self.matrix, strict=True):
            ends = [sorted((row[n] * grid[0], row[n] * grid[-1])) for n, grid in enumerate(grids)]
            low, high = (row[-1] + sum(pair[side] for pair in ends) for side in (0, 1))
            length = self.source.shape[axis]
            if high < -0.5 - ROUNDING or low > length - 0.5:
                return None
            start = min(max(int(np.floor(low)), 0), length - 1)
            bounds.append((start, min(max(int(np.floor(high)) + 2, start + 1), length)))
        return tuple(bounds)

    def _fill(self, values: AnyArray, kept: list[Any], grids: list[npt.NDArray[np.intp]], box: Box) -> None:
        bounds = self._bounds(grids)
        if bounds is None:
            return
        selection, target = list(kept), [slice(None)] * len(kept)
        for axis, bound, span in zip(self.axes, bounds, box, strict=True):
            selection[axis], target[axis] = slice(*bound), slice(*span)
        block = np.moveaxis(np.asarray(self.source[tuple(selection)]), self.axes, range(-len(self.axes), 0))
        count = len(grids)
        open_grid = tuple(
            grid.reshape([-1 if other == number else 1 for other in range(count)]).astype(np.float64)
            for number, grid in enumerate(grids)
        )
        inside = self.covers(open_grid)
        shape = tuple(len(grid) for grid in grids)
        positions = [
            np.broadcast_to(np.clip(position, 0, self.source.shape[axis] - 1) - start, shape)
            for axis, position, (start, _) in zip(
                self.axes, self.source_positions(open_grid), bounds, strict=True
            )
        ]
        found = _nearest(block, positions) if self._nearest else _linear(block, positions)
        found = np.where(np.broadcast_to(inside, shape), found, np.zeros((), found.dtype))
        values[tuple(target)] = np.moveaxis(found, range(-count, 0), self.axes)


def source_array(array: SourceArray) -> SourceArray:
    """Return the array that is resampled, or another array itself."""
    return array.source if isinstance(array, ResampledArray) else array


def _nearest(block: AnyArray, positions: list[Floats]) -> AnyArray:
    """Return the elements of a block that are nearest to positions along its last axes."""
    axes = block.shape[block.ndim - len(positions) :]
    indices = tuple(
        np.clip(np.floor(position + 0.5 + ROUNDING).astype(np.intp), 0, length - 1)
        for position, length in zip(positions, axes, strict=True)
    )
    found: AnyArray = block[(Ellipsis, *indices)]  # type: ignore[arg-type]
    return found


def _linear(block: AnyArray, positions: list[Floats]) -> AnyArray:
    """Return the values of a block at positions along its last axes, interpolated linearly."""
    axes = block.shape[block.ndim - len(positions) :]
    lower, weights = [], []
    for position, length in zip(positions, axes, strict=True):
        index = np.clip(np.floor(position + ROUNDING).astype(np.intp), 0, length - 1)
        lower.append(index)
        weights.append(np.clip(position - index, 0.0, 1.0))
    total: Any = None
    for corner in product((0, 1), repeat=len(positions)):
        weight: Any = 1.0
        for side, part in zip(corner, weights, strict=True):
            weight = weight * (part if side else 1 - part)
        if not np.any(weight):
            continue
        indices = tuple(
            np.minimum(index + side, length - 1)
            for index, side, length in zip(lower, corner, axes, strict=True)
        )
        # Missing values (NaN) of an element without weight do not count.
        part = np.where(weight > 0, block[(..., *indices)], 0) * weight
        total = part if total is None else total + part
    if block.dtype.kind in "iu":
        limits = np.iinfo(block.dtype)
        total = np.clip(np.rint(total), limits.min, limits.max)
        if block.dtype.itemsize == 8:  # the largest integers are not representable as floats
            total = np.clip(total, float(limits.min), np.nextafter(float(limits.max), 0))
    return np.asarray(total).astype(block.dtype)
