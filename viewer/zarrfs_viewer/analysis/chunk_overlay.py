"""The chunk and shard grid of the displayed plane, with the chunks that are not stored marked. Pure, but for
asking the store which chunks there are.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from zarrfs_viewer.display.levels import visible_spans
from zarrfs_viewer.display.resolve import plane_key
from zarrfs_viewer.images.chunk_keys import stored, stored_chunk_shape
from zarrfs_viewer.images.image import Image
from zarrfs_viewer.images.tile_grid import ALL
from zarrfs_viewer.state.view_state import ViewIntent, Viewport

__all__ = ["ChunkGrid", "chunk_grid", "missing_chunks"]

MIN_SPACING = 6.0
"""Lines nearer than this many device pixels would be a grey veil."""


@dataclass(frozen=True)
class ChunkGrid:
    """Lines to draw, in data coordinates: positions of horizontal lines (``chunk_rows``) and vertical lines
    (``chunk_columns``) at the borders of chunks, and of shards where there are any. ``dense`` says that chunk
    lines would be too near to one another and were left out.
    """

    level: int
    chunk_rows: tuple[float, ...]
    chunk_columns: tuple[float, ...]
    shard_rows: tuple[float, ...] = ()
    shard_columns: tuple[float, ...] = ()
    dense: bool = False


def chunk_grid(image: Image, intent: ViewIntent, viewport: Viewport, level: int) -> ChunkGrid:
    """Return the lines that cross the viewport, those along the border of the image included."""
    array = image.levels[level].array
    chunks, outer = image.levels[level].chunks, stored_chunk_shape(array)
    sharded = any(
        outer[axis] != min(chunks[axis], image.levels[level].shape[axis]) for axis in intent.displayed
    )
    sharded = sharded and outer != chunks
    chunk_lines = [_lines(image, level, span, chunks) for span in visible_spans(intent.displayed, viewport)]
    shard_lines = [_lines(image, level, span, outer) for span in visible_spans(intent.displayed, viewport)]
    dense = any(lines is None for lines in chunk_lines)
    rows, columns = (lines or () for lines in chunk_lines)
    if not sharded:
        return ChunkGrid(level, () if dense else rows, () if dense else columns, dense=dense)
    shard_rows, shard_columns = (lines or () for lines in shard_lines)
    return ChunkGrid(level, () if dense else rows, () if dense else columns, shard_rows, shard_columns, dense)


def _lines(
    image: Image, level: int, span: tuple[int, float, float, float], shape: Sequence[int]
) -> tuple[float, ...] | None:
    """Return the borders along one axis within sight; None where they are too near to one another."""
    axis, zoom, low, high = span
    step, length = shape[axis], image.levels[level].shape[axis]
    if step * image.downsampling(level, axis) * zoom < MIN_SPACING:
        return None
    first, last = _within(image, level, span)
    borders = [min(number * step, length) for number in range(first // step, last // step + 2)]
    lines = (image.from_level(level, axis, border - 0.5) for border in dict.fromkeys(borders))
    return tuple(line for line in lines if low <= line <= high)


def _within(image: Image, level: int, span: tuple[int, float, float, float]) -> tuple[int, int]:
    """Return the first and the last pixel of a level in sight along one axis; last below first for none."""
    axis, _, low, high = span
    ends = sorted(image.to_level(level, axis, edge) for edge in (low, high))
    return max(0, math.floor(ends[0] + 0.5)), min(
        image.levels[level].shape[axis] - 1, math.floor(ends[1] + 0.5)
    )


def missing_chunks(
    image: Image, intent: ViewIntent, viewport: Viewport, level: int, limit: int = 4096
) -> tuple[tuple[float, float, float, float], ...]:
    """Return the rectangles (top, left, bottom, right in data coordinates) of chunks, or shards where there
    are any, in the viewport's plane that are not stored, for the first shown channel.

    Blocks on the store, once per chunk; where more than ``limit`` are in sight none is asked for, and the
    answer is empty. Raises ZarrError.
    """
    array = image.levels[level].array
    outer = stored_chunk_shape(array)
    spans = visible_spans(intent.displayed, viewport)
    ranges = []
    for span in spans:
        first, last = _within(image, level, span)
        ranges.append(
            range(first // outer[span[0]], last // outer[span[0]] + 1) if first <= last else range(0)
        )
    if len(ranges[0]) * len(ranges[1]) > limit:
        return ()
    channel = intent.shown_channels[0].index if intent.shown_channels else 0
    base = [0 if index == ALL else index for index in plane_key(image, level, intent, channel).indices]
    places = [(row, column) for row in ranges[0] for column in ranges[1]]
    elements = []
    for row, column in places:
        element = list(base)
        element[intent.displayed[0]] = row * outer[intent.displayed[0]]
        element[intent.displayed[1]] = column * outer[intent.displayed[1]]
        elements.append(element)
    found = zip(places, stored(array, elements), strict=True)
    return tuple(_rect(image, level, intent.displayed, outer, place) for place, there in found if not there)


def _rect(
    image: Image, level: int, displayed: tuple[int, int], outer: Sequence[int], place: tuple[int, int]
) -> tuple[float, float, float, float]:
    edges = []
    for axis, number in zip(displayed, place, strict=True):
        start = number * outer[axis]
        stop = min(start + outer[axis], image.levels[level].shape[axis])
        edges.append([image.from_level(level, axis, edge - 0.5) for edge in (start, stop)])
    (top, bottom), (left, right) = edges
    return top, left, bottom, right
