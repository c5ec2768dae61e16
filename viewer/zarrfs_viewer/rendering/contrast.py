"""Histograms and automatic contrast limits. Pure but for ``channel_values``, which reads."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt

from zarrfs_viewer.display.resolve import plane_key
from zarrfs_viewer.images.image import Image
from zarrfs_viewer.images.values import component
from zarrfs_viewer.state.view_state import ChannelSettings, ViewIntent

__all__ = ["Histogram", "auto_limits", "channel_values", "histogram"]

SAMPLE = 1 << 18
"""Percentiles of so many values are as good as those of all: 1 ms instead of 44 for a 2048 x 2048 plane."""


COUNTED_AT_ONCE = 1 << 18
"""Values: a millisecond or so."""


@dataclass(frozen=True, eq=False)
class Histogram:
    """Counts per bin; ``edges`` has one more entry. ``nans`` are counted apart, infinities left out."""

    counts: npt.NDArray[np.int64]
    edges: npt.NDArray[np.float64]
    nans: int = 0

    def heights(self, logarithmic: bool = False) -> npt.NDArray[np.float64]:
        """Return what to draw, 0 to 1: counts, or log(1 + counts), over their largest."""
        heights = np.log1p(self.counts) if logarithmic else self.counts.astype(np.float64)
        largest = heights.max(initial=0.0)
        return np.asarray(heights / largest if largest else heights, np.float64)

    def span(self, low: float = 0.05, high: float = 99.95) -> tuple[float, float]:
        """Return the edges of the bins between which all but a few values lie, given in percent."""
        total = np.cumsum(self.counts)
        if not total.size or not total[-1]:
            return float(self.edges[0]), float(self.edges[-1])
        first = int(np.searchsorted(total, total[-1] * low / 100, side="right"))
        last = int(np.searchsorted(total, total[-1] * high / 100, side="left"))
        return float(self.edges[first]), float(self.edges[min(last, len(total) - 1) + 1])


def histogram(
    values: npt.NDArray[Any], bins: int = 256, limits: tuple[float, float] | None = None
) -> Histogram:
    """Count real values in ``bins`` bins over ``limits`` (by default their finite range).

    Bins of integers are whole numbers wide, so that none is emptier for holding fewer values; there may be
    fewer bins than asked for.
    """
    flat = values.reshape(-1)
    nans = 0
    if flat.dtype.kind == "f":
        nans = int(np.isnan(flat).sum())
        flat = flat[np.isfinite(flat)]
    elif flat.dtype.kind == "b":
        flat = flat.view(np.uint8)
    if limits is None:
        low, high = (flat.min().item(), flat.max().item()) if flat.size else (0, 1)
    else:
        low, high = min(limits), max(limits)
    if flat.dtype.kind in "iu":
        low = int(np.floor(low))
        width = max(1, -(-(int(np.floor(high)) - low + 1) // max(1, bins)))
        count = max(1, -(-(int(np.floor(high)) - low + 1) // width))
        edges = low + width * np.arange(count + 1, dtype=np.float64)
        if flat.size and flat.dtype.itemsize <= 2 and flat.dtype.kind == "u":
            every = _count_each(flat, low + width * count + 1)[max(low, 0) :]
            return Histogram(_add_up(every, width, count, max(low, 0) - low), edges - 0.5, nans)
        counts, _ = np.histogram(flat.astype(np.float64), edges - 0.5)
        return Histogram(counts.astype(np.int64), edges - 0.5, nans)
    if not high > low:
        high = low + (abs(low) * 1e-6 or 1.0)
    counts, edges = np.histogram(flat.astype(np.float64), max(1, bins), (low, high))
    return Histogram(counts.astype(np.int64), edges, nans)


def _count_each(flat: npt.NDArray[Any], length: int) -> npt.NDArray[np.intp]:
    """Return how often each small whole number occurs, at least ``length`` of them.

    In pieces: ``np.bincount`` keeps the interpreter to itself, and the window would stand still for all of a stack.
    """
    total = np.zeros(max(length, int(flat.max()) + 1), np.intp)
    for start in range(0, flat.size, COUNTED_AT_ONCE):
        total += np.bincount(flat[start : start + COUNTED_AT_ONCE], minlength=len(total))
    return total


def _add_up(every: npt.NDArray[Any], width: int, count: int, skip: int) -> npt.NDArray[np.int64]:
    """Sum counts per value into bins of ``width`` values, the first of which lack ``skip`` values."""
    padded = np.zeros(width * count, np.int64)
    part = every[: max(0, len(padded) - skip)]
    padded[skip : skip + len(part)] = part
    return np.asarray(padded.reshape(count, width).sum(axis=1), np.int64)


def auto_limits(values: npt.NDArray[Any], low: float = 0.1, high: float = 99.9) -> tuple[float, float]:
    """Return contrast limits that single hot or dead pixels cannot spoil: percentiles of the finite real
    values, with ``low < high`` always. Integers keep a width of at least 1, bool is shown from 0 to 1.

    Where nearly all values are equal (a few cells on an empty ground) the limits are those of the values that
    differ: else what little there is would be cut off.
    """
    flat = values.reshape(-1)
    if flat.dtype.kind == "b":
        return 0.0, 1.0
    flat = flat[:: max(1, flat.size // SAMPLE)]
    if flat.dtype.kind == "f":
        flat = flat[np.isfinite(flat)]
    if not flat.size:
        return 0.0, 1.0
    bottom, top = _percentiles(flat, low, high)
    if not top > bottom:
        others = flat[flat != bottom]
        if others.size > max(4, flat.size * 1e-5):
            some = _percentiles(others, low, high)
            bottom, top = min(bottom, some[0]), max(bottom, some[1])
    if not top > bottom:
        top = bottom + (1.0 if flat.dtype.kind in "iu" else abs(bottom) * 1e-3 or 1.0)
    return bottom, top


def _percentiles(values: npt.NDArray[Any], low: float, high: float) -> tuple[float, float]:
    last = values.size - 1
    # One value is left out on either side even of a small picture, which one hot pixel would spoil as well.
    spare = 1 if values.size >= 16 else 0
    ranks = [max(spare, int(last * low / 100)), last - max(spare, int(last * (100 - high) / 100))]
    ordered = np.partition(values, ranks)
    return float(ordered[ranks[0]]), float(ordered[ranks[1]])


def channel_values(
    image: Image,
    channel: ChannelSettings,
    intent: ViewIntent,
    volume: bool = False,
    max_pixels: int = 1 << 22,
) -> npt.NDArray[Any]:
    """Read values of one channel for a histogram, flat: the displayed slice, or with ``volume`` the whole
    stack at the same time point, from the finest level that has at most ``max_pixels``. Blocks: call it from
    a worker.

    Where even the coarsest level has more, evenly spaced planes, and of one plane a central part, are read.
    """
    depth = _depth_axes(image, intent) if volume else ()
    if volume:
        intent = replace(intent, projection=None)
    level = _level_within(image, (*intent.displayed, *depth), max_pixels)
    shape = image.levels[level].shape
    rows, columns = (shape[axis] for axis in intent.displayed)
    planes = max(1, max_pixels // max(1, rows * columns))
    chosen = [_spread(shape[axis], planes, len(depth)) for axis in depth]
    parts = _center(rows, max_pixels), _center(columns, max_pixels)
    found = []
    for indices in product(*chosen):
        position = list(intent.position)
        for axis, index in zip(depth, indices, strict=True):
            position[axis] = image.from_level(level, axis, index)
        plane = plane_key(image, level, replace(intent, position=tuple(position)), channel.index)
        values = component(image.read_region(plane, *parts), channel.component, channel.field)
        found.append((values[..., :3] if image.rgb_axis is not None else values).reshape(-1))
    return np.concatenate(found)


def _depth_axes(image: Image, intent: ViewIntent) -> tuple[int, ...]:
    return tuple(
        axis
        for axis in image.slider_axes
        if axis not in intent.displayed and image.axes[axis].type != "time" and image.shape[axis] > 1
    )


def _level_within(image: Image, axes: tuple[int, ...], max_pixels: int) -> int:
    for number, level in enumerate(image.levels):
        if int(np.prod([float(level.shape[axis]) for axis in axes])) <= max_pixels:
            return number
    return len(image.levels) - 1


def _spread(length: int, planes: int, axes: int) -> list[int]:
    """Return evenly spaced indices, so many that all axes together give no more than ``planes``."""
    count = min(length, max(1, int(planes ** (1 / max(1, axes)) + 1e-9)))
    return [int((number + 0.5) * length / count) for number in range(count)]


def _center(length: int, max_pixels: int) -> slice:
    side = min(length, max(1, int(max_pixels**0.5)))
    start = (length - side) // 2
    return slice(start, start + side)
