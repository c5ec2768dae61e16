"""Measuring: profiles along lines, statistics of regions; and, from ``readout``, what is below the pointer.

Positions are data coordinates (see ``state``). Functions that read block: call them from a worker.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from zarrfs_viewer.analysis.readout import LabelReadout, Readout, ScaleBar, readout, scale_bar
from zarrfs_viewer.analysis.statistics import RunningStatistics
from zarrfs_viewer.display.resolve import plane_key
from zarrfs_viewer.images.image import Image
from zarrfs_viewer.images.values import component
from zarrfs_viewer.state.view_state import ChannelSettings, ViewIntent

__all__ = [
    "LabelReadout",
    "Profile",
    "Readout",
    "Roi",
    "RoiStatistics",
    "ScaleBar",
    "line_profile",
    "profile_csv",
    "readout",
    "roi_statistics",
    "scale_bar",
    "statistics_csv",
]

MAX_SAMPLES = 1 << 16
"""A profile has no more samples than this: a line may be drawn across a slide of a million pixels."""


@dataclass(frozen=True, eq=False)
class Profile:
    """Values along a line: ``distance`` in ``unit`` (pixels where None), one row of ``values`` per channel.
    Samples outside of the image are NaN.
    """

    distance: npt.NDArray[np.float64]
    values: npt.NDArray[np.float64]
    channels: tuple[str, ...]
    unit: str | None


def line_profile(
    image: Image,
    intent: ViewIntent,
    start: tuple[float, float],
    end: tuple[float, float],
    level: int = 0,
) -> Profile:
    """Sample all channels of the displayed plane along a line between two (row, column) points, linearly
    interpolated, one sample per pixel of the level. Blocks. Raises ZarrError.

    Only the tiles that the line touches are read.
    """
    rows, columns = intent.displayed
    ends = [
        (image.to_level(level, rows, row), image.to_level(level, columns, column))
        for row, column in (start, end)
    ]
    count = max(2, min(MAX_SAMPLES, math.ceil(math.dist(*ends)) + 1))
    row = np.linspace(ends[0][0], ends[1][0], count)
    column = np.linspace(ends[0][1], ends[1][1], count)
    unit, pixel_height, pixel_width = _measures(image, intent.displayed)
    length = math.hypot((end[0] - start[0]) * pixel_height, (end[1] - start[1]) * pixel_width)
    parts = [
        _interpolated(image, intent, channel, sample, level, row, column)
        for channel, sample in _components(image, intent)
    ]
    names = tuple(name for name, _ in _named_components(image, intent))
    return Profile(np.linspace(0.0, length, count), np.array(parts), names, unit)


def _measures(image: Image, displayed: tuple[int, int]) -> tuple[str | None, float, float]:
    """Return unit, and height and width of a data pixel in it; (None, 1, 1) where there is no common
    measure.
    """
    row, column = (image.axes[axis] for axis in displayed)
    if row.type != "space" or column.type != "space" or row.unit != column.unit or row.unit is None:
        return None, 1.0, 1.0
    scale = image.levels[0].scale
    return row.unit, abs(scale[displayed[0]]), abs(scale[displayed[1]])


def _components(image: Image, intent: ViewIntent) -> list[tuple[ChannelSettings, int | None]]:
    """Return (channel, sample) of all curves: RGB has three samples, other channels none to choose from."""
    if image.rgb_axis is not None:
        return [(intent.channels[0], sample) for sample in range(min(3, image.shape[image.rgb_axis]))]
    return [(channel, None) for channel in intent.channels or (ChannelSettings(label="label"),)]


def _named_components(image: Image, intent: ViewIntent) -> list[tuple[str, int | None]]:
    if image.rgb_axis is not None:
        return [(name, number) for number, name in enumerate(("red", "green", "blue"))]
    channels = intent.channels or (ChannelSettings(label="label"),)
    return [(channel.label or f"channel {channel.index}", None) for channel in channels]


def _interpolated(
    image: Image,
    intent: ViewIntent,
    channel: ChannelSettings,
    sample: int | None,
    level: int,
    row: npt.NDArray[np.float64],
    column: npt.NDArray[np.float64],
) -> npt.NDArray[np.float64]:
    """Return bilinear samples, read tile by tile."""
    plane = plane_key(image, level, intent, channel.index)
    grid = image.grid(level, intent.displayed)
    height, width = grid.shape
    inside = (row >= -0.5) & (row <= height - 0.5) & (column >= -0.5) & (column <= width - 0.5)
    row, column = np.clip(row, 0, height - 1), np.clip(column, 0, width - 1)
    result = np.full(len(row), np.nan)
    owners = (row // grid.tile[0]).astype(np.intp) * grid.counts[1] + (column // grid.tile[1]).astype(np.intp)
    for owner in np.unique(owners[inside]):
        chosen = inside & (owners == owner)
        tops, lefts = grid.rect(*divmod(int(owner), grid.counts[1]))
        # One pixel more to the right and below: the neighbour to interpolate with may be in the next tile.
        rows = slice(tops.start, min(tops.stop + 1, height))
        columns = slice(lefts.start, min(lefts.stop + 1, width))
        values = image.read_region(plane, rows, columns)
        values = component(
            values if sample is None else values[..., sample], channel.component, channel.field
        )
        result[chosen] = _bilinear(
            values.astype(np.float64), row[chosen] - rows.start, column[chosen] - columns.start
        )
    return result


def _bilinear(
    values: npt.NDArray[np.float64], row: npt.NDArray[np.float64], column: npt.NDArray[np.float64]
) -> npt.NDArray[np.float64]:
    top, left = np.floor(row).astype(np.intp), np.floor(column).astype(np.intp)
    bottom = np.minimum(top + 1, values.shape[0] - 1)
    right = np.minimum(left + 1, values.shape[1] - 1)
    down, across = row - top, column - left
    total = np.zeros(len(row))
    for r, c, weight in (
        (top, left, (1 - down) * (1 - across)),
        (top, right, (1 - down) * across),
        (bottom, left, down * (1 - across)),
        (bottom, right, down * across),
    ):
        used = weight > 0  # a neighbour that does not count must not bring in its NaN
        total[used] += weight[used] * values[r[used], c[used]]
    return total


def profile_csv(profile: Profile) -> str:
    """Return a CSV table: a header row, then the distance and the value of each channel per sample."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([f"distance [{profile.unit or 'pixel'}]", *profile.channels])
    for distance, values in zip(profile.distance, profile.values.T, strict=True):
        writer.writerow([repr(float(distance)), *(repr(float(value)) for value in values)])
    return text.getvalue()


@dataclass(frozen=True)
class Roi:
    """A region of the displayed plane: the box (top, left, bottom, right) or the ellipse inscribed in it. A
    pixel belongs to it if its centre lies within.
    """

    shape: Literal["rectangle", "ellipse"]
    rect: tuple[float, float, float, float]


@dataclass(frozen=True)
class RoiStatistics:
    """Statistics of one channel in one region. ``area`` in ``unit`` squared (pixels where None); ``nans`` are
    not in the statistics, which are NaN where nothing is left. The median of more than 16 million pixels is
    that of an even sample.
    """

    channel: str
    count: int
    nans: int
    area: float
    unit: str | None
    mean: float
    std: float
    minimum: float
    maximum: float
    median: float
    sum: float


def roi_statistics(image: Image, intent: ViewIntent, roi: Roi, level: int = 0) -> Iterator[RoiStatistics]:
    """Yield the statistics per channel, read tile by tile so that a large region takes little memory. Blocks
    while it is iterated. Raises ZarrError.
    """
    unit, pixel_height, pixel_width = _measures(image, intent.displayed)
    pixel_area = pixel_height * pixel_width
    for axis in intent.displayed:
        pixel_area *= image.downsampling(level, axis)
    curves = zip(_components(image, intent), _named_components(image, intent), strict=True)
    for (channel, sample), (name, _) in curves:
        running = RunningStatistics()
        for values in _roi_values(image, intent, roi, level, channel):
            chosen = values if sample is None else values[:, sample]
            running.add(component(chosen, channel.component, channel.field))
        found = running.result()
        yield replace(
            RoiStatistics(name, found.count, found.nans, 0.0, unit, **found.moments()),
            area=(found.count + found.nans) * pixel_area,
        )


def _roi_values(
    image: Image, intent: ViewIntent, roi: Roi, level: int, channel: ChannelSettings
) -> Iterator[npt.NDArray[Any]]:
    """Yield the values within a region, flat but for samples, a tile at a time."""
    rows, columns = intent.displayed
    plane = plane_key(image, level, intent, channel.index)
    grid = image.grid(level, intent.displayed)
    top, bottom = sorted(image.to_level(level, rows, edge) for edge in roi.rect[::2])
    left, right = sorted(image.to_level(level, columns, edge) for edge in roi.rect[1::2])
    for tile_row, tile_column in grid.within(top, left, bottom, right):
        tile_rows, tile_columns = grid.rect(tile_row, tile_column)
        part = _clip(tile_rows, top, bottom), _clip(tile_columns, left, right)
        if part[0].stop <= part[0].start or part[1].stop <= part[1].start:
            continue
        values = image.read_region(plane, *part)
        if roi.shape == "rectangle":
            yield values.reshape(-1, *values.shape[2:])
        else:
            yield values[_ellipse(part, top, left, bottom, right)]


def _clip(part: slice, low: float, high: float) -> slice:
    return slice(max(part.start, math.ceil(low)), min(part.stop, math.floor(high) + 1))


def _ellipse(
    part: tuple[slice, slice], top: float, left: float, bottom: float, right: float
) -> npt.NDArray[np.bool_]:
    sides = []
    for span, low, high in ((part[0], top, bottom), (part[1], left, right)):
        half = max((high - low) / 2, 1e-12)
        sides.append(((np.arange(span.start, span.stop) - (low + high) / 2) / half) ** 2)
    return np.asarray(sides[0][:, None] + sides[1] <= 1.0)


def statistics_csv(statistics: Sequence[RoiStatistics]) -> str:
    """Return a CSV table with a header row, one row per channel."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    names = ("channel", "count", "nans", "area", "unit", "mean", "std", "minimum", "maximum", "median", "sum")
    writer.writerow(names)
    for row in statistics:
        values = [getattr(row, name) for name in names]
        writer.writerow(["" if value is None else value for value in values])
    return text.getvalue()
