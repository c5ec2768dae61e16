"""The chunk and shard grid of the displayed plane, its missing chunks, and those that cannot be read.

Only ``missing_chunks`` accesses the store; the other functions are pure.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from zarrfs_viewer.display.levels import visible_spans
from zarrfs_viewer.display.overlay import level_map
from zarrfs_viewer.display.resolve import DisplayState, plane_key
from zarrfs_viewer.images.chunk_keys import stored, stored_chunk_shape
from zarrfs_viewer.images.image import Image
from zarrfs_viewer.images.resampling import ResampledArray
from zarrfs_viewer.images.tile_grid import ALL
from zarrfs_viewer.state.view_state import DisplaySettings, Viewport
from zarrfs_viewer.streaming.streamer import TileError

__all__ = ["ChunkGrid", "chunk_grid", "missing_chunks", "unreadable_chunks"]

MIN_LINE_SPACING = 6.0
"""Chunk lines are not drawn if their distance is smaller, in device pixels."""


@dataclass(frozen=True)
class ChunkGrid:
    """The lines at the borders of chunks and shards, in data coordinates, and the plane that they cross.

    ``rect`` is the plane: (top, left, bottom, right). ``chunk_rows`` are positions of horizontal lines,
    ``chunk_columns`` of vertical lines. The positions for shards are empty if the array is not sharded. ``dense``
    means that chunk lines are omitted because they would be closer than ``MIN_LINE_SPACING``.
    """

    level: int
    rect: tuple[float, float, float, float]
    chunk_rows: tuple[float, ...]
    chunk_columns: tuple[float, ...]
    shard_rows: tuple[float, ...] = ()
    shard_columns: tuple[float, ...] = ()
    dense: bool = False


def chunk_grid(image: Image, settings: DisplaySettings, viewport: Viewport, level: int) -> ChunkGrid:
    """Return the visible lines, including those at the border of the image."""
    array = image.levels[level].array
    chunks, stored_chunks = image.levels[level].chunks, stored_chunk_shape(array)
    is_sharded = stored_chunks != chunks and any(
        stored_chunks[axis] != min(chunks[axis], image.levels[level].shape[axis])
        for axis in settings.displayed
    )
    spans = visible_spans(settings.displayed, viewport)
    chunk_lines = [_lines(image, level, span, chunks) for span in spans]
    shard_lines = [_lines(image, level, span, stored_chunks) for span in spans]
    dense = any(lines is None for lines in chunk_lines)
    rows, columns = (lines or () for lines in chunk_lines)
    top, left = (image.from_level(level, axis, -0.5) for axis in settings.displayed)
    bottom, right = (
        image.from_level(level, axis, image.levels[level].shape[axis] - 0.5) for axis in settings.displayed
    )
    rect = top, left, bottom, right
    if _is_resampled(image, settings, level):
        return ChunkGrid(level, rect, (), ())
    if not is_sharded:
        return ChunkGrid(level, rect, () if dense else rows, () if dense else columns, dense=dense)
    shard_rows, shard_columns = (lines or () for lines in shard_lines)
    return ChunkGrid(
        level, rect, () if dense else rows, () if dense else columns, shard_rows, shard_columns, dense
    )


def _is_resampled(image: Image, settings: DisplaySettings, level: int) -> bool:
    """Return whether the displayed plane is oblique to the chunks, so that they have no borders along its axes."""
    array = image.levels[level].array
    return isinstance(array, ResampledArray) and bool({*settings.displayed} & {*array.axes})


def _lines(
    image: Image, level: int, span: tuple[int, float, float, float], shape: Sequence[int]
) -> tuple[float, ...] | None:
    """Return the visible borders along one axis, or None if they are closer than ``MIN_LINE_SPACING``."""
    axis, zoom, low, high = span
    step, length = shape[axis], image.levels[level].shape[axis]
    if step * image.downsampling(level, axis) * zoom < MIN_LINE_SPACING:
        return None
    first, last = _visible_pixels(image, level, span)
    borders = [min(number * step, length) for number in range(first // step, last // step + 2)]
    lines = (image.from_level(level, axis, border - 0.5) for border in dict.fromkeys(borders))
    return tuple(line for line in lines if low <= line <= high)


def _visible_pixels(image: Image, level: int, span: tuple[int, float, float, float]) -> tuple[int, int]:
    """Return the first and the last visible pixel of a level along one axis; last < first if there is none."""
    axis, _, low, high = span
    ends = sorted(image.to_level(level, axis, edge) for edge in (low, high))
    return max(0, math.floor(ends[0] + 0.5)), min(
        image.levels[level].shape[axis] - 1, math.floor(ends[1] + 0.5)
    )


def missing_chunks(
    image: Image, settings: DisplaySettings, viewport: Viewport, level: int, limit: int = 4096
) -> tuple[tuple[float, float, float, float], ...]:
    """Return the rectangles (top, left, bottom, right in data coordinates) of the visible missing chunks, or of
    the missing shards if the array is sharded. If there are several channels, the first one that is drawn is examined.

    Blocks; queries the store once per chunk. If more than ``limit`` chunks are visible, the store is not queried
    and the result is empty. Raises ZarrError.
    """
    array = image.levels[level].array
    if _is_resampled(image, settings, level):
        return ()
    stored_chunks = stored_chunk_shape(array)
    spans = visible_spans(settings.displayed, viewport)
    ranges = []
    for span in spans:
        first, last = _visible_pixels(image, level, span)
        length = stored_chunks[span[0]]
        ranges.append(range(first // length, last // length + 1) if first <= last else range(0))
    if len(ranges[0]) * len(ranges[1]) > limit:
        return ()
    channel = settings.shown_channels[0].index if settings.shown_channels else 0
    origin = [0 if index == ALL else index for index in plane_key(image, level, settings, channel).indices]
    chunk_coords = [(row, column) for row in ranges[0] for column in ranges[1]]
    elements = []
    for row, column in chunk_coords:
        element = list(origin)
        element[settings.displayed[0]] = row * stored_chunks[settings.displayed[0]]
        element[settings.displayed[1]] = column * stored_chunks[settings.displayed[1]]
        elements.append(element)
    return tuple(
        _rect(image, level, settings.displayed, stored_chunks, coords)
        for coords, is_stored in zip(chunk_coords, stored(array, elements), strict=True)
        if not is_stored
    )


def unreadable_chunks(
    state: DisplayState, errors: Iterable[TileError]
) -> tuple[tuple[float, float, float, float], ...]:
    """Return the rectangles (top, left, bottom, right in data coordinates) of the parts of the displayed planes that
    could not be read.
    """
    images = {layer.planes[-1]: layer.image for layer in state.layers}
    rects = []
    for error in errors:
        plane = error.key.plane
        image = images.get(plane)
        if image is None:
            continue  # of a coarser level, which is drawn only until the displayed level is read
        sides = zip(state.settings.displayed, plane.displayed, plane.steps, strict=True)
        maps = [
            (*level_map(state.image, image, plane.level, front, axis), step) for front, axis, step in sides
        ]
        for top, left, bottom, right in error.failed:
            (low, high), (west, east) = (
                sorted((edge * step - 0.5 - offset) / factor for edge in edges)
                for (factor, offset, step), edges in zip(maps, ((top, bottom), (left, right)), strict=True)
            )
            rects.append((low, west, high, east))
    return tuple(dict.fromkeys(rects))


def _rect(
    image: Image,
    level: int,
    displayed: tuple[int, int],
    stored_chunks: Sequence[int],
    coords: tuple[int, int],
) -> tuple[float, float, float, float]:
    edges = []
    for axis, number in zip(displayed, coords, strict=True):
        start = number * stored_chunks[axis]
        stop = min(start + stored_chunks[axis], image.levels[level].shape[axis])
        edges.append([image.from_level(level, axis, edge - 0.5) for edge in (start, stop)])
    (top, bottom), (left, right) = edges
    return top, left, bottom, right
