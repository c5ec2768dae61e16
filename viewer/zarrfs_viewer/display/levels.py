"""Which pyramid level serves a window, and the pixel grid of the frame cut from it. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from zarrfs_viewer.images.image import Image
from zarrfs_viewer.state.view_state import ViewIntent, Viewport

__all__ = ["FrameGrid", "choose_level", "frame_grid", "levels_in_use", "pixel_aspect", "visible_spans"]

SHARPEST = 0.75
"""A level is sharp enough while a device pixel is at least this part of one of its pixels. A finer level costs up to
1.8 times the tiles of the next one, a coarser one is seen as blur."""
HYSTERESIS = 1.2
"""The level in use is kept until the zoom is past the border by this factor."""
BACKDROP_PIXELS = 1 << 20
"""The coarsest level is fetched first, as something to see at once, where its plane is no larger than
this.
"""


@dataclass(frozen=True)
class FrameGrid:
    """The pixel grid of a frame: pixels of the target level, every ``stride``-th of them.

    Frame pixel (r, c) shows level pixel (top + r * stride[0], left + c * stride[1]). ``rect`` is the covered
    area in data coordinates (top, left, bottom, right edges): where the frame is to be drawn.
    """

    level: int
    top: int
    left: int
    shape: tuple[int, int]
    stride: tuple[int, int]
    rect: tuple[float, float, float, float]


def pixel_aspect(image: Image, displayed: tuple[int, int]) -> float:
    """Return how much taller than wide a data pixel is drawn: the ratio of the physical scales where both
    axes are of space and share a unit, else 1 (seconds and micrometres have no common measure).
    """
    row, column = (image.axes[axis] for axis in displayed)
    if row.type != "space" or column.type != "space" or row.unit != column.unit:
        return 1.0
    scale = image.levels[0].scale
    ratio = abs(scale[displayed[0]] / scale[displayed[1]])
    return ratio if 1e-3 < ratio < 1e3 else 1.0


def choose_level(
    image: Image, viewport: Viewport, displayed: tuple[int, int], previous: int | None = None
) -> int:
    """Return the coarsest level that is still sharp: whose pixels are at least about as small as device
    pixels.

    ``previous`` is kept until another is clearly better (hysteresis), so that zooming to and fro over a
    border does not flicker.
    """
    sizes = [_device_size(image, level, viewport, displayed) for level in range(len(image.levels))]
    chosen = _coarsest_within(sizes, 1 / SHARPEST)
    if previous is None or not 0 <= previous < len(sizes) or chosen == previous:
        return chosen
    finer = _coarsest_within(sizes, HYSTERESIS / SHARPEST)
    coarser = _coarsest_within(sizes, 1 / SHARPEST / HYSTERESIS)
    return previous if min(finer, coarser) <= previous <= max(finer, coarser) else chosen


def _coarsest_within(sizes: Sequence[float], limit: float) -> int:
    return max((level for level, size in enumerate(sizes) if size <= limit), default=0)


def _device_size(image: Image, level: int, viewport: Viewport, displayed: tuple[int, int]) -> float:
    """Return the length of a level's pixel in device pixels, the larger of the two."""
    return max(
        image.downsampling(level, axis) * zoom for axis, zoom in zip(displayed, viewport.zooms, strict=True)
    )


def levels_in_use(image: Image, level: int, displayed: tuple[int, int]) -> tuple[int, ...]:
    """Return the levels drawn over one another, coarsest first: a small coarsest one as a backdrop, then
    ``level``.
    """
    coarsest = len(image.levels) - 1
    shape = image.levels[coarsest].shape
    if coarsest > level and shape[displayed[0]] * shape[displayed[1]] <= BACKDROP_PIXELS:
        return coarsest, level
    return (level,)


def frame_grid(image: Image, level: int, intent: ViewIntent, viewport: Viewport) -> FrameGrid:
    """Return the frame that covers what the viewport shows of a level; empty where it shows nothing.

    Levels finer than the window (no pyramid, or a locked level) are drawn with a stride, so that a frame
    never has much more pixels than the window. Strides are anchored at pixel 0: panning does not make the
    picture shimmer.
    """
    spans = []
    for axis, zoom, low, high in visible_spans(intent.displayed, viewport):
        size = image.downsampling(level, axis) * zoom
        stride = max(1, int(1 / size + 1 / 3))
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
        level, top, left, (rows, columns), (row_stride, column_stride), (upper, west, lower, east)
    )


def visible_spans(
    displayed: tuple[int, int], viewport: Viewport
) -> tuple[tuple[int, float, float, float], tuple[int, float, float, float]]:
    """Return (axis, zoom, low, high) for rows and columns, in data coordinates."""
    top, left, bottom, right = viewport.rect
    row_zoom, column_zoom = viewport.zooms
    return (displayed[0], row_zoom, top, bottom), (displayed[1], column_zoom, left, right)
