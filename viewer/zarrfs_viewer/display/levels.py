"""The pyramid level for a viewport, and the pixel grid of the frame that is drawn from it. Pure functions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from zarrfs_viewer.images.image import Image
from zarrfs_viewer.state.view_state import DisplaySettings, Viewport

__all__ = [
    "FrameGrid",
    "choose_level",
    "frame_grid",
    "levels_in_use",
    "pixel_aspect",
    "sampling_steps",
    "strides",
    "visible_spans",
]

MIN_LEVEL_PIXELS_PER_DEVICE_PIXEL = 0.75
"""A level is used while a device pixel covers at least this fraction of one of its pixels. Larger fractions need up to
1.8 times as many tiles; smaller ones are visible as blur.
"""
HYSTERESIS = 1.2
"""The level changes when the zoom has passed the threshold by this factor."""
MAX_SIDES_RATIO = 50
"""A longer or higher plane is displayed with wider or higher pixels, because a single row or column of a fitted picture
would be too narrow to be visible."""
MAX_BACKDROP_PIXELS = 1 << 20
"""The coarsest level is fetched first if its plane is not larger than this. It is displayed until finer tiles
arrive."""


@dataclass(frozen=True)
class FrameGrid:
    """The pixel grid of a frame: every ``stride``-th pixel of the target level.

    Frame pixel (r, c) is level pixel (top + r * stride[0], left + c * stride[1]). Only every ``steps``-th pixel of the
    level is read; the strides are multiples. ``rect`` is the area of the
    frame, as (top, left, bottom, right) edges in data coordinates.
    """

    level: int
    top: int
    left: int
    shape: tuple[int, int]
    stride: tuple[int, int]
    rect: tuple[float, float, float, float]
    steps: tuple[int, int] = (1, 1)


def pixel_aspect(image: Image, displayed: tuple[int, int]) -> float:
    """Return the ratio of height to width of a displayed data pixel.

    It is the ratio of the physical scales if both axes are spatial and have the same unit, otherwise 1. A ratio
    outside of 1e-3 .. 1e3 is assumed to be an error in the metadata, and is replaced by 1. The sides of the displayed
    plane differ by at most the factor ``MAX_SIDES_RATIO``, or that of the pixels.
    """
    rows, columns = (image.shape[axis] for axis in displayed)
    aspect = _physical_aspect(image, displayed)
    sides = rows * aspect / columns
    limit = max(MAX_SIDES_RATIO, aspect, 1 / aspect)
    limited = min(max(sides, 1 / limit), limit)
    return aspect if limited == sides else aspect * limited / sides


def _physical_aspect(image: Image, displayed: tuple[int, int]) -> float:
    row, column = (image.axes[axis] for axis in displayed)
    if row.type != "space" or column.type != "space" or row.unit != column.unit:
        return 1.0
    scale = image.levels[0].scale
    ratio = abs(scale[displayed[0]] / scale[displayed[1]])
    return ratio if 1e-3 < ratio < 1e3 else 1.0


def choose_level(
    image: Image, viewport: Viewport, displayed: tuple[int, int], previous: int | None = None
) -> int:
    """Return the coarsest level whose pixels are not much larger than device pixels.

    ``previous`` is the current level. It changes with hysteresis, so that zooming around a threshold does not
    flicker.
    """
    sizes = [_device_size(image, level, viewport, displayed) for level in range(len(image.levels))]
    max_size = 1 / MIN_LEVEL_PIXELS_PER_DEVICE_PIXEL
    chosen = _coarsest_within(sizes, max_size)
    if previous is None or not 0 <= previous < len(sizes) or chosen == previous:
        return chosen
    finer = _coarsest_within(sizes, max_size * HYSTERESIS)
    coarser = _coarsest_within(sizes, max_size / HYSTERESIS)
    return previous if min(finer, coarser) <= previous <= max(finer, coarser) else chosen


def _coarsest_within(sizes: Sequence[float], limit: float) -> int:
    return max((level for level, size in enumerate(sizes) if size <= limit), default=0)


def _device_size(image: Image, level: int, viewport: Viewport, displayed: tuple[int, int]) -> float:
    """Return the longer side of a level's pixel in device pixels."""
    return max(
        image.downsampling(level, axis) * zoom for axis, zoom in zip(displayed, viewport.zooms, strict=True)
    )


def levels_in_use(image: Image, level: int, displayed: tuple[int, int]) -> tuple[int, ...]:
    """Return the levels that are drawn on top of each other: the coarsest level if it is small, then ``level``."""
    coarsest = len(image.levels) - 1
    shape = image.levels[coarsest].shape
    if coarsest > level and shape[displayed[0]] * shape[displayed[1]] <= MAX_BACKDROP_PIXELS:
        return coarsest, level
    return (level,)


def strides(
    image: Image, level: int, displayed: tuple[int, int], zooms: tuple[float, float]
) -> tuple[int, int]:
    """Return the distance of the rows and of the columns of a level that are drawn. ``zooms`` are device pixels per
    data pixel along both axes.

    It is more than 1 if the pixels of the level are smaller than device pixels: there is no pyramid, or the level is
    fixed.
    """
    sizes = (image.downsampling(level, axis) * zoom for axis, zoom in zip(displayed, zooms, strict=True))
    row_stride, column_stride = (max(1, int(1 / size + 1 / 3)) for size in sizes)
    return row_stride, column_stride


def sampling_steps(strides: tuple[int, int]) -> tuple[int, int]:
    """Return the steps with which a plane is read that is drawn with strides: the largest powers of two.

    All strides of the same octave have the same steps, so that zooming rarely reads the plane again.
    """
    rows, columns = (1 << (stride.bit_length() - 1) for stride in strides)
    return rows, columns


def frame_grid(
    image: Image, level: int, settings: DisplaySettings, viewport: Viewport, steps: tuple[int, int] = (1, 1)
) -> FrameGrid:
    """Return the grid of the visible part of a level; it is empty if the level is outside of the viewport.

    A level with pixels smaller than device pixels is drawn with a stride, so that a frame does not have many more
    pixels than the viewport. Strides are multiples of ``steps``, with which the level is read. They begin at pixel 0,
    so that panning draws the same pixels.
    """
    spans = []
    limits = strides(image, level, settings.displayed, viewport.zooms)
    for (axis, _, low, high), limit, step in zip(
        visible_spans(settings.displayed, viewport), limits, steps, strict=True
    ):
        stride = max(1, limit // step) * step
        ends = sorted(image.to_level(level, axis, edge) for edge in (low, high))
        length = image.levels[level].shape[axis]
        first = max(0, math.floor(ends[0] + 0.5)) // stride
        last = min(length - 1, math.floor(ends[1] + 0.5)) // stride
        count = max(0, last - first + 1)
        top = first * stride - 0.5
        edges = (image.from_level(level, axis, edge) for edge in (top, top + count * stride))
        spans.append((first * stride, count, stride, tuple(edges)))
    (top, rows, row_stride, (upper, lower)), (left, columns, column_stride, (west, east)) = spans
    return FrameGrid(
        level, top, left, (rows, columns), (row_stride, column_stride), (upper, west, lower, east), steps
    )


def visible_spans(
    displayed: tuple[int, int], viewport: Viewport
) -> tuple[tuple[int, float, float, float], tuple[int, float, float, float]]:
    """Return (axis, zoom, low, high) of the visible rows and columns, in data coordinates."""
    top, left, bottom, right = viewport.rect
    row_zoom, column_zoom = viewport.zooms
    return (displayed[0], row_zoom, top, bottom), (displayed[1], column_zoom, left, right)
