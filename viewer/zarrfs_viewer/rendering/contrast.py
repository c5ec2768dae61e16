"""Histograms and automatic contrast limits. Only ``channel_values`` and ``channel_histogram`` read."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt

from zarrfs.errors import ZarrError
from zarrfs_viewer.display.resolve import plane_key
from zarrfs_viewer.images.image import Image
from zarrfs_viewer.images.resampling import ResampledArray
from zarrfs_viewer.images.tile_grid import PlaneKey
from zarrfs_viewer.images.values import component, unsigned_offsets
from zarrfs_viewer.state.view_state import ChannelSettings, DisplaySettings
from zarrfs_viewer.streaming.tile_reading import is_of_chunk, read_intact

__all__ = ["Histogram", "auto_limits", "channel_histogram", "channel_values", "histogram", "rgb_limits"]

MAX_PERCENTILE_VALUES = 1 << 18
"""Percentiles are computed from about this number of evenly spaced values: 1 ms instead of 44 ms for a plane of
2048 x 2048, with the same result in practice."""

MAX_READ_PIXELS = 1 << 20
"""Histograms and limits are those of the finest level with at most this number of pixels."""
MAX_EXACT_FLOAT = 1 << 52
"""The halves between integers up to this number are exact as floats."""
MAX_SAMPLED_TILES = 256
"""Percentiles and histograms of a large plane are those of at most this number of its tiles."""
BINCOUNT_BLOCK = 1 << 18
"""The number of values per call of ``np.bincount``, which takes about a millisecond."""


@dataclass(frozen=True, eq=False)
class Histogram:
    """Counts per bin. ``edges`` has one entry more, relative to ``origin``, which is 0 except for integers that are not
    exact as floats. ``nans`` is the number of NaNs; infinities are not counted. ``unreadable`` is the number of values
    that could not be read.
    """

    counts: npt.NDArray[np.int64]
    edges: npt.NDArray[np.float64]
    nans: int = 0
    origin: int = 0
    unreadable: int = 0

    def heights(self, logarithmic: bool = False) -> npt.NDArray[np.float64]:
        """Return the counts, or log(1 + counts), divided by their maximum: 0 to 1."""
        heights = np.log1p(self.counts) if logarithmic else self.counts.astype(np.float64)
        largest = heights.max(initial=0.0)
        return np.asarray(heights / largest if largest else heights, np.float64)

    def span(self, low: float = 0.05, high: float = 99.95) -> tuple[float, float]:
        """Return the outer edges of the bins that contain the percentiles, relative to ``origin``."""
        cumulated = np.cumsum(self.counts)
        if not cumulated.size or not cumulated[-1]:
            return float(self.edges[0]), float(self.edges[-1])
        first = int(np.searchsorted(cumulated, cumulated[-1] * low / 100, side="right"))
        last = int(np.searchsorted(cumulated, cumulated[-1] * high / 100, side="left"))
        return float(self.edges[first]), float(self.edges[min(last, len(cumulated) - 1) + 1])


def histogram(values: npt.NDArray[Any], bins: int = 256) -> Histogram:
    """Return the histogram of real values over their finite range.

    The width of bins of integers is a whole number, so that every bin covers the same number of values. The
    histogram may therefore have fewer than ``bins`` bins.
    """
    flat = values.reshape(-1)
    nans = 0
    if flat.dtype.kind == "f":
        nans = int(np.isnan(flat).sum())
        flat = flat[np.isfinite(flat)]
    elif flat.dtype.kind == "b":
        flat = flat.view(np.uint8)
    low, high = (flat.min().item(), flat.max().item()) if flat.size else (0, 1)
    if flat.dtype.kind in "iu":
        return _histogram_of_integers(flat, low, high, max(1, bins))
    if not high > low:
        high = low + (abs(low) * 1e-6 or 1.0)
    scale = 1.0 if np.isfinite(high - low) else 4.0  # so that the range does not overflow
    floats = flat.astype(np.float64)
    counts, edges = np.histogram(floats / scale, max(1, bins), (low / scale, high / scale))
    return Histogram(counts.astype(np.int64), edges * scale, nans)


def _histogram_of_integers(flat: npt.NDArray[Any], low: int, high: int, bins: int) -> Histogram:
    """Return the histogram of integers from ``low`` to ``high``, with bins of a whole number of values."""
    width = -(-(high - low + 1) // bins)
    count = -(-(high - low + 1) // width)
    origin = low if max(abs(low), abs(high)) > MAX_EXACT_FLOAT else 0
    edges = (low - origin) + width * np.arange(count + 1, dtype=np.float64) - 0.5
    if flat.dtype.itemsize <= 2 and flat.dtype.kind == "u":  # one pass over the values
        value_counts = np.zeros(width * count, np.int64)
        found = _count_values(flat, low + width * count)[low : low + width * count]
        value_counts[: len(found)] = found
        return Histogram(value_counts.reshape(count, width).sum(axis=1), edges)
    numbers = unsigned_offsets(flat, low).astype(np.uint64) // np.uint64(width) if flat.size else flat
    return Histogram(_count_values(numbers.astype(np.intp), count), edges, origin=origin)


def _count_values(flat: npt.NDArray[Any], length: int) -> npt.NDArray[np.int64]:
    """Return the number of occurrences of each integer from 0, for at least ``length`` integers.

    The values are counted in blocks, because ``np.bincount`` holds the GIL: one call for a whole stack would
    freeze the window.
    """
    total = np.zeros(max(length, int(flat.max(initial=0)) + 1), np.int64)
    for start in range(0, flat.size, BINCOUNT_BLOCK):
        total += np.bincount(flat[start : start + BINCOUNT_BLOCK], minlength=len(total))
    return total


def auto_limits(values: npt.NDArray[Any], low: float = 0.1, high: float = 99.9) -> tuple[float, float]:
    """Return contrast limits: percentiles of the finite real values, which single outliers do not affect.

    The limits of integers are ints. The lower limit is always less than the upper limit. If the percentiles are equal,
    as for a few cells on an empty background, the limits are those of the other values, which would otherwise be
    saturated. The limits of bool values are 0 and 1.
    """
    flat = values.reshape(-1)
    if flat.dtype.kind == "b":
        return 0.0, 1.0
    flat = flat[:: max(1, flat.size // MAX_PERCENTILE_VALUES)]
    if flat.dtype.kind == "f":
        flat = flat[np.isfinite(flat)]
    if not flat.size:
        return 0.0, 1.0
    bottom, top = _percentiles(flat, low, high)
    if not top > bottom:
        others = flat[flat != bottom]
        if others.size > max(4, flat.size * 1e-5):
            other_bottom, other_top = _percentiles(others, low, high)
            bottom, top = min(bottom, other_bottom), max(bottom, other_top)
    if not top > bottom:
        top = bottom + (1 if flat.dtype.kind in "iu" else abs(bottom) * 1e-3 or 1.0)
    return bottom, top


def rgb_limits(values: npt.NDArray[Any]) -> tuple[float, float]:
    """Return contrast limits for RGB samples: black is 0 and the upper limit that of ``auto_limits``, so that colours
    are not changed. Floats from 0 to 1 have the limits 0 and 1.
    """
    low, high = auto_limits(values)
    if values.dtype.kind == "f" and low >= 0 and high <= 1:
        return 0.0, 1.0
    return min(low, type(low)(0)), high


def _percentiles(values: npt.NDArray[Any], low: float, high: float) -> tuple[float, float]:
    last = values.size - 1
    # At least one value is ignored at each end, so that a single hot pixel does not set the limit of a small image.
    ignored = 1 if values.size >= 16 else 0
    ranks = [max(ignored, int(last * low / 100)), last - max(ignored, int(last * (100 - high) / 100))]
    ordered = np.partition(values, ranks)
    return ordered[ranks[0]].item(), ordered[ranks[1]].item()


def _within_image(
    image: Image, plane: PlaneKey, region: tuple[slice, slice], values: npt.NDArray[Any]
) -> npt.NDArray[Any]:
    """Return the values of a region of a plane that are within a resampled image, as (number,) or (number, samples).

    All values are returned of other images, of slabs, of parts of a region, and if none is within the image.
    """
    array = image.levels[plane.level].array
    lengths = tuple(span.stop - span.start for span in region)
    is_plane = (
        plane.slab is None or not isinstance(array, ResampledArray) or plane.slab.axis not in array.axes
    )
    if not isinstance(array, ResampledArray) or not is_plane or values.shape[:2] != lengths:
        return values
    positions: list[Any] = [plane.indices[axis] for axis in array.axes]
    for side, (axis, span, step) in enumerate(zip(plane.displayed, region, plane.steps, strict=True)):
        if axis in array.axes:
            pixels = np.arange(span.start, span.stop) * step
            positions[array.axes.index(axis)] = pixels[:, None] if side == 0 else pixels[None, :]
    inside = np.broadcast_to(array.covers(tuple(positions)), lengths)
    return values[inside] if inside.any() else values


def channel_values(
    image: Image,
    channel: ChannelSettings,
    settings: DisplaySettings,
    volume: bool = False,
    max_pixels: int = MAX_READ_PIXELS,
) -> npt.NDArray[Any]:
    """Read the values of one channel for a histogram, as a flat array. Blocks; call it from a worker thread.

    The values are those of the displayed slice, or with ``volume`` of the whole stack at the same time point.
    They are read from the finest level with at most ``max_pixels`` pixels. If the coarsest level has more pixels,
    evenly spaced planes are read, and evenly spaced pixels of evenly spaced tiles of one plane. The values of
    unreadable chunks are omitted. Raises ZarrError if nothing can be read.
    """
    return _read_values(image, channel, settings, volume, max_pixels)[0]


def channel_histogram(
    image: Image, channel: ChannelSettings, settings: DisplaySettings, volume: bool = False
) -> Histogram:
    """Return the histogram of the values of ``channel_values``. Blocks. Raises ZarrError if nothing can be read."""
    values, unreadable = _read_values(image, channel, settings, volume, MAX_READ_PIXELS)
    return replace(histogram(values), unreadable=unreadable)


def _read_values(
    image: Image, channel: ChannelSettings, settings: DisplaySettings, volume: bool, max_pixels: int
) -> tuple[npt.NDArray[Any], int]:
    """Return the values of ``channel_values``, and the number of those that cannot be read."""
    depth = _depth_axes(image, settings) if volume else ()
    if volume:
        settings = replace(settings, projection=None)
    level = _finest_level_within(image, (*settings.displayed, *depth), max_pixels)
    shape = image.levels[level].shape
    rows, columns = (shape[axis] for axis in settings.displayed)
    max_planes = max(1, max_pixels // max(1, rows * columns))
    indices_per_axis = [_evenly_spaced(shape[axis], max_planes, len(depth)) for axis in depth]
    planes, unreadable = [], 0
    error: ZarrError | None = None
    for indices in product(*indices_per_axis):
        position = list(settings.position)
        for axis, index in zip(depth, indices, strict=True):
            position[axis] = image.from_level(level, axis, index)
        plane = plane_key(image, level, replace(settings, position=tuple(position)), channel.index)
        parts: list[npt.NDArray[Any]] = []
        for sampled, region in _sampled_regions(image, plane, rows, columns, max_pixels):
            try:
                intact, missing = read_intact(image, sampled, *region)
            except ZarrError as failure:
                if not is_of_chunk(failure):
                    raise
                error, intact = failure, []
                missing = math.prod(span.stop - span.start for span in region)
            parts += [_within_image(image, sampled, region, part) for part in intact]
            unreadable += missing
        for part in parts:
            values = component(part, channel.component, channel.field)
            planes.append((values[..., :3] if image.rgb_axis is not None else values).reshape(-1))
    if not planes and error is not None:
        raise error
    return np.concatenate(planes), unreadable


def _depth_axes(image: Image, settings: DisplaySettings) -> tuple[int, ...]:
    return tuple(
        axis
        for axis in image.slider_axes
        if axis not in settings.displayed and image.axes[axis].type != "time" and image.shape[axis] > 1
    )


def _finest_level_within(image: Image, axes: tuple[int, ...], max_pixels: int) -> int:
    for number, level in enumerate(image.levels):
        if int(np.prod([float(level.shape[axis]) for axis in axes])) <= max_pixels:
            return number
    return len(image.levels) - 1


def _evenly_spaced(length: int, max_planes: int, axis_count: int) -> list[int]:
    """Return evenly spaced indices along one axis. If ``axis_count`` axes have as many, they have at most
    ``max_planes`` combinations.
    """
    count = min(length, max(1, int(max_planes ** (1 / max(1, axis_count)) + 1e-9)))
    return [int((number + 0.5) * length / count) for number in range(count)]


def _sampled_regions(
    image: Image, plane: PlaneKey, rows: int, columns: int, max_pixels: int
) -> Iterator[tuple[PlaneKey, tuple[slice, slice]]]:
    """Yield the parts of a plane of ``rows`` x ``columns`` pixels that represent it: the plane if it has at most
    ``max_pixels``, else evenly spaced pixels of evenly spaced tiles.
    """
    if rows * columns <= max_pixels:
        yield plane, (slice(0, rows), slice(0, columns))
        return
    grid = image.grid(plane.level, plane.displayed)
    numbers = [_evenly_spaced(count, MAX_SAMPLED_TILES, 2) for count in grid.counts]
    rects = [grid.rect(row, column) for row, column in product(*numbers)]
    pixels = sum((down.stop - down.start) * (across.stop - across.start) for down, across in rects)
    # The same step along both axes, unless an axis is shorter.
    steps = _steps(pixels / max_pixels, min(rows, grid.tile[0]), min(columns, grid.tile[1]))
    for rect in rects:
        region = [
            slice(-(-part.start // step), -(-part.stop // step))
            for part, step in zip(rect, steps, strict=True)
        ]
        if all(part.start < part.stop for part in region):
            yield plane._replace(steps=steps), (region[0], region[1])


def _steps(ratio: float, rows: int, columns: int) -> tuple[int, int]:
    """Return the steps with which a tile has ``ratio`` times fewer pixels."""
    step = max(1, math.ceil(math.sqrt(ratio)))
    row_step, column_step = min(step, rows), min(step, columns)
    return (
        max(row_step, min(rows, math.ceil(ratio / column_step))) if column_step < step else row_step,
        max(column_step, min(columns, math.ceil(ratio / row_step))) if row_step < step else column_step,
    )
