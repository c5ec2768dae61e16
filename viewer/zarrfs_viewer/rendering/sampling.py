"""Sampling of tiles of any level on the pixel grid of a frame, with the nearest neighbour. Pure NumPy.

Both grids are axis-aligned. A tile of the frame's own level is sampled with slices, a tile of another level with
two index arrays.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from zarrfs_viewer.display.levels import FrameGrid
from zarrfs_viewer.display.overlay import level_map
from zarrfs_viewer.images.image import Image
from zarrfs_viewer.images.resampling import ResampledArray
from zarrfs_viewer.images.tile_grid import PlaneKey, TileKey

__all__ = ["LayerBuffer", "footprint", "plane_pixels", "resample", "sample_plane"]

AnyArray = npt.NDArray[Any]
Indices = npt.NDArray[np.intp]
Fetch = Callable[[TileKey], AnyArray | None]


class LayerBuffer:
    """The values of one layer on a frame's grid. ``covered`` is the mask of valid values; None: all are valid."""

    __slots__ = ("covered", "grid", "values")

    def __init__(self, values: AnyArray, covered: npt.NDArray[np.bool_] | None, grid: FrameGrid) -> None:
        self.values = values
        self.covered = covered
        self.grid = grid


def sample_plane(
    front: Image, image: Image, plane: PlaneKey, displayed: tuple[int, int], grid: FrameGrid, fetch: Fetch
) -> Callable[[LayerBuffer | None], tuple[LayerBuffer | None, bool]]:
    """Return a function that paints the available tiles of a plane over a buffer.

    The function modifies and returns the buffer, and returns whether all tiles were available. For None it creates
    a buffer, unless no tile is available. ``displayed`` are the axes of ``front`` in whose data coordinates
    ``grid`` is given. ``fetch`` returns a tile or None.
    """
    rows, columns = plane_pixels(front, image, plane, displayed, grid)

    def paint(buffer: LayerBuffer | None) -> tuple[LayerBuffer | None, bool]:
        return _paint(image, plane, grid, rows, columns, fetch, buffer)

    return paint


def plane_pixels(
    front: Image, image: Image, plane: PlaneKey, displayed: tuple[int, int], grid: FrameGrid
) -> tuple[Indices, Indices]:
    """Return for each row and each column of a frame the pixel of the plane, or -1 outside of it."""
    # The pixel of a sampled plane is the one at or before that of the level. -1 remains -1.
    rows = _indices(front, image, plane, displayed[0], 0, grid) // plane.steps[0]
    columns = _indices(front, image, plane, displayed[1], 1, grid) // plane.steps[1]
    return rows, columns


def footprint(
    front: Image, image: Image, plane: PlaneKey, displayed: tuple[int, int], grid: FrameGrid
) -> npt.NDArray[np.bool_] | None:
    """Return a mask of the pixels of a frame that are within a resampled image; None for other images.

    The box of a rotated image contains pixels outside of the image, whose values mean nothing.
    """
    array = image.levels[plane.level].array
    if not isinstance(array, ResampledArray):
        return None
    positions: list[Any] = [float(plane.indices[axis]) for axis in array.axes]
    for side, (front_axis, axis) in enumerate(zip(displayed, plane.displayed, strict=True)):
        if axis in array.axes:
            count = grid.shape[side]
            first, last = (grid.rect[side], grid.rect[side + 2])
            data = first + (last - first) * (np.arange(count) + 0.5) / max(1, count)
            factor, offset = level_map(front, image, plane.level, front_axis, axis)
            pixels = factor * data + offset
            positions[array.axes.index(axis)] = pixels[:, None] if side == 0 else pixels[None, :]
    slab = plane.slab
    if slab is None or slab.axis not in array.axes:
        return np.broadcast_to(array.covers(tuple(positions)), grid.shape)
    number = array.axes.index(slab.axis)
    covered = array.covers_any(tuple(positions), number, slab.start, slab.stop - 1)
    return np.broadcast_to(covered, grid.shape)


def _indices(
    front: Image, image: Image, plane: PlaneKey, front_axis: int, side: int, grid: FrameGrid
) -> Indices:
    """Return for each frame row (``side`` 0) or column (1) the pixel of the plane's level, or -1 outside of it."""
    start, stride, count = (grid.top, grid.left)[side], grid.stride[side], grid.shape[side]
    indices = start + stride * np.arange(count, dtype=np.intp)
    length = image.levels[plane.level].shape[plane.displayed[side]]
    if image is not front or plane.level != grid.level:
        to_front = [front.from_level(grid.level, front_axis, pixel) for pixel in (0.0, 1.0)]
        factor, offset = level_map(front, image, plane.level, front_axis, plane.displayed[side])
        data = to_front[0] + (to_front[1] - to_front[0]) * indices
        indices = np.floor(factor * data + offset + 0.5 + 1e-9).astype(np.intp)
        if image is front:  # levels of one image have the same extent; indices outside are rounding errors
            return np.asarray(np.clip(indices, 0, length - 1))
    indices[(indices < 0) | (indices >= length)] = -1
    return indices


def _paint(
    image: Image,
    plane: PlaneKey,
    grid: FrameGrid,
    rows: Indices,
    columns: Indices,
    fetch: Fetch,
    buffer: LayerBuffer | None,
) -> tuple[LayerBuffer | None, bool]:
    tiles = image.grid(plane.level, plane.displayed, plane.steps)
    complete = True
    for tile_row, row_run in _runs(rows, tiles.tile[0]):
        for tile_column, column_run in _runs(columns, tiles.tile[1]):
            tile = fetch(TileKey(plane, tile_row, tile_column))
            if tile is None:
                complete = False
                continue
            if (
                buffer is None
                or buffer.values.dtype != tile.dtype
                or buffer.values.shape[2:] != tile.shape[2:]
            ):
                values = np.zeros((*grid.shape, *tile.shape[2:]), tile.dtype)
                buffer = LayerBuffer(values, np.zeros(grid.shape, np.bool_), grid)
            tile_rows = _as_slice(rows[row_run] - tile_row * tiles.tile[0])
            tile_columns = _as_slice(columns[column_run] - tile_column * tiles.tile[1])
            if isinstance(tile_rows, slice) or isinstance(tile_columns, slice):
                buffer.values[row_run, column_run] = tile[tile_rows, tile_columns]
            else:
                buffer.values[row_run, column_run] = tile[tile_rows[:, None], tile_columns]
            if buffer.covered is not None:
                buffer.covered[row_run, column_run] = True
    covers_frame = complete and bool((rows >= 0).all() and (columns >= 0).all())
    if covers_frame and buffer is not None:
        buffer.covered = None
    return buffer, complete


def _runs(indices: Indices, tile: int) -> list[tuple[int, slice]]:
    """Return (tile index, frame rows or columns) for each run of pixels in one tile. Pixels outside are omitted."""
    if not len(indices):
        return []
    owners = np.where(indices < 0, -1, indices // tile)
    starts = np.flatnonzero(np.diff(owners, prepend=owners[0] - 1))
    stops = [*starts[1:].tolist(), len(owners)]
    return [
        (int(owners[start]), slice(start, stop))
        for start, stop in zip(starts.tolist(), stops, strict=True)
        if owners[start] >= 0
    ]


def _as_slice(indices: Indices) -> slice | Indices:
    """Return the indices as a slice if they are evenly spaced and increasing, otherwise unchanged."""
    if len(indices) == 1:
        return slice(int(indices[0]), int(indices[0]) + 1)
    step = int(indices[1] - indices[0])
    if step <= 0 or (np.diff(indices) != step).any():
        return indices
    return slice(int(indices[0]), int(indices[-1]) + 1, step)


def resample(buffer: LayerBuffer, grid: FrameGrid) -> LayerBuffer:
    """Return the values of an old frame on the grid of a new one. They are drawn until new tiles arrive."""
    old = buffer.grid
    if old == grid:
        return LayerBuffer(
            buffer.values.copy(), None if buffer.covered is None else buffer.covered.copy(), grid
        )
    rows = _nearest_indices(old.rect[0], old.rect[2], old.shape[0], grid.rect[0], grid.rect[2], grid.shape[0])
    columns = _nearest_indices(
        old.rect[1], old.rect[3], old.shape[1], grid.rect[1], grid.rect[3], grid.shape[1]
    )
    covered = (rows >= 0)[:, None] & (columns >= 0)
    if not covered.any():
        values = np.zeros((*grid.shape, *buffer.values.shape[2:]), buffer.values.dtype)
        return LayerBuffer(values, covered, grid)
    indices = np.maximum(rows, 0)[:, None], np.maximum(columns, 0)
    if buffer.covered is not None:
        covered &= buffer.covered[indices]
    return LayerBuffer(buffer.values[indices], None if covered.all() else covered, grid)


def _nearest_indices(
    old_start: float, old_stop: float, old_count: int, start: float, stop: float, count: int
) -> Indices:
    """Return for each new pixel the index of the old pixel at its centre, or -1."""
    if not old_count or not count or old_stop == old_start:
        return np.full(count, -1, np.intp)
    centers = start + (stop - start) * (np.arange(count) + 0.5) / count
    indices = np.floor((centers - old_start) / (old_stop - old_start) * old_count).astype(np.intp)
    return np.where((indices >= 0) & (indices < old_count), indices, -1)
