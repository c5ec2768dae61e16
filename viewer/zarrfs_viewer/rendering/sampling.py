"""Tiles of any level -> one plane of values on the pixel grid of a frame, nearest neighbour. Pure NumPy.

Frame pixels and level pixels are both on straight grids, so that a tile is sampled by one slice where the
steps agree (the level that the frame is made for), and by two index lists where they do not.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from zarrfs_viewer.display.levels import FrameGrid
from zarrfs_viewer.display.overlay import level_map
from zarrfs_viewer.images.image import Image
from zarrfs_viewer.images.tile_grid import PlaneKey, TileKey

__all__ = ["LayerBuffer", "resample", "sample_plane"]

AnyArray = npt.NDArray[Any]
Indices = npt.NDArray[np.intp]
Fetch = Callable[[TileKey], AnyArray | None]


class LayerBuffer:
    """The values of one layer on a frame's grid, and where there are any (``covered`` None: everywhere)."""

    __slots__ = ("covered", "grid", "values")

    def __init__(self, values: AnyArray, covered: npt.NDArray[np.bool_] | None, grid: FrameGrid) -> None:
        self.values = values
        self.covered = covered
        self.grid = grid


def sample_plane(
    front: Image, image: Image, plane: PlaneKey, displayed: tuple[int, int], grid: FrameGrid, fetch: Fetch
) -> Callable[[LayerBuffer | None], tuple[LayerBuffer | None, bool]]:
    """Return a function that paints the tiles of a plane that are there over a buffer, and tells whether all
    were.

    ``displayed`` are the axes of ``front`` in whose data coordinates the frame lies. The buffer given is
    changed; None starts an empty one, and None comes back where no tile was there.
    """
    rows = _indices(front, image, plane, displayed[0], 0, grid)
    columns = _indices(front, image, plane, displayed[1], 1, grid)

    def paint(buffer: LayerBuffer | None) -> tuple[LayerBuffer | None, bool]:
        return _paint(image, plane, grid, rows, columns, fetch, buffer)

    return paint


def _indices(
    front: Image, image: Image, plane: PlaneKey, front_axis: int, side: int, grid: FrameGrid
) -> Indices:
    """Return for each frame row or column the pixel of the plane's level; -1 outside of it."""
    start, stride, count = (grid.top, grid.left)[side], grid.stride[side], grid.shape[side]
    own = start + stride * np.arange(count, dtype=np.intp)
    length = image.levels[plane.level].shape[plane.displayed[side]]
    if image is not front or plane.level != grid.level:
        to_front = [front.from_level(grid.level, front_axis, pixel) for pixel in (0.0, 1.0)]
        factor, offset = level_map(front, image, plane.level, front_axis, plane.displayed[side])
        data = to_front[0] + (to_front[1] - to_front[0]) * own
        own = np.floor(factor * data + offset + 0.5 + 1e-9).astype(np.intp)
        if image is front:  # its own levels cover the same, whatever rounding says at the border
            return np.asarray(np.clip(own, 0, length - 1))
    own[(own < 0) | (own >= length)] = -1
    return own


def _paint(
    image: Image,
    plane: PlaneKey,
    grid: FrameGrid,
    rows: Indices,
    columns: Indices,
    fetch: Fetch,
    buffer: LayerBuffer | None,
) -> tuple[LayerBuffer | None, bool]:
    tiles = image.grid(plane.level, plane.displayed)
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
            chosen_rows = _step(rows[row_run] - tile_row * tiles.tile[0])
            chosen_columns = _step(columns[column_run] - tile_column * tiles.tile[1])
            if isinstance(chosen_rows, slice) or isinstance(chosen_columns, slice):
                buffer.values[row_run, column_run] = tile[chosen_rows, chosen_columns]
            else:
                buffer.values[row_run, column_run] = tile[chosen_rows[:, None], chosen_columns]
            if buffer.covered is not None:
                buffer.covered[row_run, column_run] = True
    inside = complete and bool((rows >= 0).all() and (columns >= 0).all())
    if inside and buffer is not None:
        buffer.covered = None
    return buffer, complete


def _runs(indices: Indices, tile: int) -> list[tuple[int, slice]]:
    """Cut frame rows (or columns) where they pass from one tile to the next; those outside are left out."""
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


def _step(indices: Indices) -> slice | Indices:
    """Return the indices as a slice where they are evenly spaced and rising."""
    if len(indices) == 1:
        return slice(int(indices[0]), int(indices[0]) + 1)
    step = int(indices[1] - indices[0])
    if step <= 0 or (np.diff(indices) != step).any():
        return indices
    return slice(int(indices[0]), int(indices[-1]) + 1, step)


def resample(buffer: LayerBuffer, grid: FrameGrid) -> LayerBuffer:
    """Return old pixels on a new frame's grid: what stays on the screen until better is there."""
    old = buffer.grid
    if old == grid:
        return LayerBuffer(
            buffer.values.copy(), None if buffer.covered is None else buffer.covered.copy(), grid
        )
    rows = _resampled(old.rect[0], old.rect[2], old.shape[0], grid.rect[0], grid.rect[2], grid.shape[0])
    columns = _resampled(old.rect[1], old.rect[3], old.shape[1], grid.rect[1], grid.rect[3], grid.shape[1])
    covered = (rows >= 0)[:, None] & (columns >= 0)
    if not covered.any():
        values = np.zeros((*grid.shape, *buffer.values.shape[2:]), buffer.values.dtype)
        return LayerBuffer(values, covered, grid)
    chosen = np.maximum(rows, 0)[:, None], np.maximum(columns, 0)
    if buffer.covered is not None:
        covered &= buffer.covered[chosen]
    return LayerBuffer(buffer.values[chosen], None if covered.all() else covered, grid)


def _resampled(
    old_start: float, old_stop: float, old_count: int, start: float, stop: float, count: int
) -> Indices:
    """Return for each new pixel the old one at its centre, -1 where there is none."""
    if not old_count or not count or old_stop == old_start:
        return np.full(count, -1, np.intp)
    centers = start + (stop - start) * (np.arange(count) + 0.5) / count
    found = np.floor((centers - old_start) / (old_stop - old_start) * old_count).astype(np.intp)
    return np.where((found >= 0) & (found < old_count), found, -1)
