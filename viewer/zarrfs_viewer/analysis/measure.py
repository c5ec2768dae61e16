"""Measurements: profiles along lines and statistics of regions. Re-exports the functions of ``readout``.

Positions are data coordinates; see ``state.view_state``. Functions that read block; call them from a worker thread.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from zarrfs_viewer.analysis.masks import ellipse_mask, polygon_mask
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
    "curve_names",
    "line_profile",
    "pixel_size",
    "profile_csv",
    "readout",
    "roi_means",
    "roi_statistics",
    "scale_bar",
    "statistics_csv",
]

MAX_SAMPLES = 1 << 16
"""The maximum number of samples of a profile. A line can be a million pixels long."""


@dataclass(frozen=True, eq=False)
class Profile:
    """Values along a line. ``values`` has shape (channels, samples); samples outside of the image are NaN.

    ``distance`` is in ``unit``, or in pixels if that is None. ``quantity`` is its name: the distance from the start of
    the line, or the name of the axis along which the profile was measured.
    """

    distance: npt.NDArray[np.float64]
    values: npt.NDArray[np.float64]
    channels: tuple[str, ...]
    unit: str | None
    quantity: str = "distance"


def line_profile(
    image: Image,
    intent: ViewIntent,
    start: tuple[float, float],
    end: tuple[float, float],
    level: int = 0,
) -> Profile:
    """Sample all channels of the displayed plane along a line between two (row, column) points.

    There is one sample per pixel of the level, with bilinear interpolation. Only tiles that the line intersects
    are read. Blocks. Raises ZarrError.
    """
    rows, columns = intent.displayed
    ends = [
        (image.to_level(level, rows, row), image.to_level(level, columns, column))
        for row, column in (start, end)
    ]
    count = max(2, min(MAX_SAMPLES, math.ceil(math.dist(*ends)) + 1))
    row = np.linspace(ends[0][0], ends[1][0], count)
    column = np.linspace(ends[0][1], ends[1][1], count)
    unit, pixel_height, pixel_width = pixel_size(image, intent.displayed)
    length = math.hypot((end[0] - start[0]) * pixel_height, (end[1] - start[1]) * pixel_width)
    values = [
        _interpolate(image, intent, channel, sample, level, row, column)
        for channel, sample in _curves(image, intent)
    ]
    return Profile(np.linspace(0.0, length, count), np.array(values), curve_names(image, intent), unit)


def pixel_size(image: Image, displayed: tuple[int, int]) -> tuple[str | None, float, float]:
    """Return (unit, height, width) of a data pixel, or (None, 1, 1) if the displayed axes have no common unit."""
    row, column = (image.axes[axis] for axis in displayed)
    if row.type != "space" or column.type != "space" or row.unit != column.unit or row.unit is None:
        return None, 1.0, 1.0
    scale = image.levels[0].scale
    return row.unit, abs(scale[displayed[0]]), abs(scale[displayed[1]])


def _curves(image: Image, intent: ViewIntent) -> list[tuple[ChannelSettings, int | None]]:
    """Return (channel, RGB sample) of each curve. The sample is None if the image is not RGB."""
    if image.rgb_axis is not None:
        return [(intent.channels[0], sample) for sample in range(min(3, image.shape[image.rgb_axis]))]
    return [(channel, None) for channel in intent.channels or (ChannelSettings(label="label"),)]


def curve_names(image: Image, intent: ViewIntent) -> tuple[str, ...]:
    """Return the names of the curves of a profile and of the rows of statistics: the channels, or the RGB samples."""
    if image.rgb_axis is not None:
        return ("red", "green", "blue")
    return tuple(channel.label or f"Channel {channel.index}" for channel, _ in _curves(image, intent))


def _interpolate(
    image: Image,
    intent: ViewIntent,
    channel: ChannelSettings,
    sample: int | None,
    level: int,
    row: npt.NDArray[np.float64],
    column: npt.NDArray[np.float64],
) -> npt.NDArray[np.float64]:
    """Return bilinear samples at fractional pixels of a level. They are read tile by tile."""
    plane = plane_key(image, level, intent, channel.index)
    grid = image.grid(level, intent.displayed)
    height, width = grid.shape
    inside = (row >= -0.5) & (row <= height - 0.5) & (column >= -0.5) & (column <= width - 0.5)
    row, column = np.clip(row, 0, height - 1), np.clip(column, 0, width - 1)
    result = np.full(len(row), np.nan)
    tiles = (row // grid.tile[0]).astype(np.intp) * grid.counts[1] + (column // grid.tile[1]).astype(np.intp)
    for tile in np.unique(tiles[inside]):
        in_tile = inside & (tiles == tile)
        tile_rows, tile_columns = grid.rect(*divmod(int(tile), grid.counts[1]))
        # Interpolation needs one more row and column, which belong to the next tiles.
        rows = slice(tile_rows.start, min(tile_rows.stop + 1, height))
        columns = slice(tile_columns.start, min(tile_columns.stop + 1, width))
        values = image.read_region(plane, rows, columns)
        values = component(
            values if sample is None else values[..., sample], channel.component, channel.field
        )
        result[in_tile] = _bilinear(
            values.astype(np.float64), row[in_tile] - rows.start, column[in_tile] - columns.start
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
        used = weight > 0  # a NaN with weight 0 would make the sum NaN
        total[used] += weight[used] * values[r[used], c[used]]
    return total


def profile_csv(profile: Profile) -> str:
    """Return a CSV table: a header row, then the distance and the value of each channel per sample."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([f"{profile.quantity} [{profile.unit or 'pixel'}]", *profile.channels])
    for distance, values in zip(profile.distance, profile.values.T, strict=True):
        writer.writerow([repr(float(distance)), *(repr(float(value)) for value in values)])
    return text.getvalue()


@dataclass(frozen=True)
class Roi:
    """A region of the displayed plane: the rectangle (top, left, bottom, right), the inscribed ellipse, or a polygon.

    It contains the pixels whose centres are inside. ``points`` are the vertices (row, column) of a polygon.
    """

    shape: Literal["rectangle", "ellipse", "polygon"]
    rect: tuple[float, float, float, float]
    points: tuple[tuple[float, float], ...] = ()


@dataclass(frozen=True)
class RoiStatistics:
    """Statistics of one channel in one region.

    ``area`` is in ``unit`` squared, or in pixels if that is None. ``nans`` is the number of NaNs, which are
    excluded from the statistics. The statistics of no values are NaN. The median of more than 16 million values is
    the median of an evenly spaced sample.
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
    """Yield the statistics of each channel. Blocks while it is iterated. Raises ZarrError.

    The region is read tile by tile, so that the memory does not depend on its size.
    """
    unit, pixel_height, pixel_width = pixel_size(image, intent.displayed)
    pixel_area = pixel_height * pixel_width
    for axis in intent.displayed:
        pixel_area *= image.downsampling(level, axis)
    curves = zip(_curves(image, intent), curve_names(image, intent), strict=True)
    for (channel, sample), name in curves:
        running = RunningStatistics()
        for values in _roi_values(image, intent, roi, level, channel):
            samples = values if sample is None else values[:, sample]
            running.add(component(samples, channel.component, channel.field))
        summary = running.result()
        area = (summary.count + summary.nans) * pixel_area
        yield RoiStatistics(name, summary.count, summary.nans, area, unit, **summary.moments())


def roi_means(image: Image, intent: ViewIntent, roi: Roi, level: int = 0) -> list[float]:
    """Return the mean of each channel in a region, without NaNs; NaN if it has no values. Blocks. Raises ZarrError."""
    means = []
    for channel, sample in _curves(image, intent):
        total, count = 0.0, 0
        for values in _roi_values(image, intent, roi, level, channel):
            samples = values if sample is None else values[:, sample]
            real = component(samples, channel.component, channel.field).astype(np.float64)
            total += float(np.nansum(real))
            count += int(np.count_nonzero(~np.isnan(real)))
        means.append(total / count if count else math.nan)
    return means


def _roi_values(
    image: Image, intent: ViewIntent, roi: Roi, level: int, channel: ChannelSettings
) -> Iterator[npt.NDArray[Any]]:
    """Yield the values of a region tile by tile, with shape (pixels,) or (pixels, samples)."""
    rows, columns = intent.displayed
    plane = plane_key(image, level, intent, channel.index)
    grid = image.grid(level, intent.displayed)
    top, bottom = sorted(image.to_level(level, rows, edge) for edge in roi.rect[::2])
    left, right = sorted(image.to_level(level, columns, edge) for edge in roi.rect[1::2])
    for tile_row, tile_column in grid.within(top, left, bottom, right):
        tile_rows, tile_columns = grid.rect(tile_row, tile_column)
        region = _clip(tile_rows, top, bottom), _clip(tile_columns, left, right)
        if region[0].stop <= region[0].start or region[1].stop <= region[1].start:
            continue
        values = image.read_region(plane, *region)
        if roi.shape == "rectangle":
            yield values.reshape(-1, *values.shape[2:])
        elif roi.shape == "ellipse":
            yield values[ellipse_mask(region, (top, left, bottom, right))]
        else:
            vertices = [
                (image.to_level(level, rows, row), image.to_level(level, columns, column))
                for row, column in roi.points
            ]
            yield values[polygon_mask(region, vertices)]


def _clip(span: slice, low: float, high: float) -> slice:
    return slice(max(span.start, math.ceil(low)), min(span.stop, math.floor(high) + 1))


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
