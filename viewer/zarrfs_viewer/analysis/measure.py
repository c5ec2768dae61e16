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
from zarrfs_viewer.analysis.statistics import RunningStatistics, table_value
from zarrfs_viewer.display.resolve import plane_key
from zarrfs_viewer.images.image import Image
from zarrfs_viewer.images.values import component
from zarrfs_viewer.state.view_state import ChannelSettings, DisplaySettings
from zarrfs_viewer.streaming.tile_reading import read_parts

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
    the line, or the name of the axis along which the profile was measured. ``unreadable`` is the number of samples of
    each channel that lack values of unreadable chunks; they are NaN, or the mean of the other values.
    """

    distance: npt.NDArray[np.float64]
    values: npt.NDArray[np.float64]
    channels: tuple[str, ...]
    unit: str | None
    quantity: str = "distance"
    unreadable: tuple[int, ...] = ()


def line_profile(
    image: Image,
    settings: DisplaySettings,
    start: tuple[float, float],
    end: tuple[float, float],
    level: int = 0,
) -> Profile:
    """Sample all channels of the displayed plane along a line between two (row, column) points.

    There is one sample per pixel of the level, with bilinear interpolation. Only tiles that the line intersects
    are read. Samples in unreadable chunks are NaN. Blocks. Raises ZarrError.
    """
    rows, columns = settings.displayed
    ends = [
        (image.to_level(level, rows, row), image.to_level(level, columns, column))
        for row, column in (start, end)
    ]
    count = max(2, min(MAX_SAMPLES, math.ceil(math.dist(*ends)) + 1))
    row = np.linspace(ends[0][0], ends[1][0], count)
    column = np.linspace(ends[0][1], ends[1][1], count)
    unit, pixel_height, pixel_width = pixel_size(image, settings.displayed)
    length = math.hypot((end[0] - start[0]) * pixel_height, (end[1] - start[1]) * pixel_width)
    values, unreadable = [], []
    for channel, sample in _curves(image, settings):
        curve, is_missing = _interpolate(image, settings, channel, sample, level, row, column)
        values.append(curve)
        unreadable.append(int(is_missing.sum()))
    return Profile(
        np.linspace(0.0, length, count),
        np.array(values),
        curve_names(image, settings),
        unit,
        unreadable=tuple(unreadable),
    )


def pixel_size(image: Image, displayed: tuple[int, int]) -> tuple[str | None, float, float]:
    """Return (unit, height, width) of a data pixel, or (None, 1, 1) if the displayed axes have no common unit."""
    row, column = (image.axes[axis] for axis in displayed)
    if row.type != "space" or column.type != "space" or row.unit != column.unit or row.unit is None:
        return None, 1.0, 1.0
    scale = image.levels[0].scale
    return row.unit, abs(scale[displayed[0]]), abs(scale[displayed[1]])


def _curves(image: Image, settings: DisplaySettings) -> list[tuple[ChannelSettings, int | None]]:
    """Return (channel, RGB sample) of each curve. The sample is None if the image is not RGB."""
    if image.rgb_axis is not None:
        return [(settings.channels[0], sample) for sample in range(min(3, image.shape[image.rgb_axis]))]
    return [(channel, None) for channel in settings.channels or (ChannelSettings(label="label"),)]


def curve_names(image: Image, settings: DisplaySettings) -> tuple[str, ...]:
    """Return the names of the curves of a profile and of the rows of statistics: the channels, or the RGB samples."""
    if image.rgb_axis is not None:
        return ("red", "green", "blue")
    return tuple(channel.label or f"Channel {channel.index}" for channel, _ in _curves(image, settings))


def _interpolate(
    image: Image,
    settings: DisplaySettings,
    channel: ChannelSettings,
    sample: int | None,
    level: int,
    row: npt.NDArray[np.float64],
    column: npt.NDArray[np.float64],
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.bool_]]:
    """Return bilinear samples at fractional pixels of a level, and which of them are in unreadable chunks. They are
    read tile by tile.
    """
    plane = plane_key(image, level, settings, channel.index)
    grid = image.grid(level, settings.displayed)
    height, width = grid.shape
    inside = (row >= -0.5) & (row <= height - 0.5) & (column >= -0.5) & (column <= width - 0.5)
    row, column = np.clip(row, 0, height - 1), np.clip(column, 0, width - 1)
    result, unreadable = np.full(len(row), np.nan), np.zeros(len(row), np.bool_)
    tiles = (row // grid.tile[0]).astype(np.intp) * grid.counts[1] + (column // grid.tile[1]).astype(np.intp)
    for tile in np.unique(tiles[inside]):
        in_tile = inside & (tiles == tile)
        tile_rows, tile_columns = grid.rect(*divmod(int(tile), grid.counts[1]))
        # Interpolation needs one more row and column, which belong to the next tiles.
        rows = slice(tile_rows.start, min(tile_rows.stop + 1, height))
        columns = slice(tile_columns.start, min(tile_columns.stop + 1, width))
        values = np.full((rows.stop - rows.start, columns.stop - columns.start), np.nan)
        corrupt = np.zeros(values.shape)
        for part, read in read_parts(image, plane, rows, columns):
            place = tuple(
                slice(span.start - whole.start, span.stop - whole.start)
                for span, whole in zip(part, (rows, columns), strict=True)
            )
            if isinstance(read, Exception):
                corrupt[place] = np.nan
            else:
                samples = read if sample is None else read[..., sample]
                values[place] = component(samples, channel.component, channel.field)
        points = row[in_tile] - rows.start, column[in_tile] - columns.start
        result[in_tile] = _bilinear(values, *points)
        if corrupt.any():
            unreadable[in_tile] = np.isnan(_bilinear(corrupt, *points))
    return result, unreadable


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

    ``area`` is in ``unit`` squared, or in pixels if that is None. ``nans`` is the number of NaNs and ``unreadable``
    that of pixels in unreadable chunks. Both are excluded from the statistics, and included in the area. The statistics
    of no values are NaN. The median of more than 16 million values is the median of an evenly spaced sample.
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
    unreadable: int = 0


def roi_statistics(
    image: Image, settings: DisplaySettings, roi: Roi, level: int = 0
) -> Iterator[RoiStatistics]:
    """Yield the statistics of each channel. Blocks while it is iterated. Raises ZarrError.

    The region is read tile by tile, so that the memory does not depend on its size.
    """
    unit, pixel_height, pixel_width = pixel_size(image, settings.displayed)
    pixel_area = pixel_height * pixel_width
    for axis in settings.displayed:
        pixel_area *= image.downsampling(level, axis)
    curves = zip(_curves(image, settings), curve_names(image, settings), strict=True)
    for (channel, sample), name in curves:
        running, unreadable = RunningStatistics(), 0
        for values, count in _roi_values(image, settings, roi, level, channel):
            if values is None:
                unreadable += count
                continue
            samples = values if sample is None else values[:, sample]
            running.add(component(samples, channel.component, channel.field))
        summary = running.result()
        area = (summary.count + summary.nans + unreadable) * pixel_area
        yield RoiStatistics(
            name, summary.count, summary.nans, area, unit, **summary.moments(), unreadable=unreadable
        )


def roi_means(
    image: Image, settings: DisplaySettings, roi: Roi, level: int = 0
) -> tuple[list[float], tuple[int, ...]]:
    """Return the mean of each channel in a region, without NaNs, and its number of pixels in unreadable chunks, which
    are left out, too. The mean of no values is NaN. Blocks. Raises ZarrError.
    """
    means, unreadable = [], []
    for channel, sample in _curves(image, settings):
        total, count, missing = 0.0, 0, 0
        for values, pixels in _roi_values(image, settings, roi, level, channel):
            if values is None:
                missing += pixels
                continue
            samples = values if sample is None else values[:, sample]
            real = component(samples, channel.component, channel.field).astype(np.float64)
            total += float(np.nansum(real))
            count += int(np.count_nonzero(~np.isnan(real)))
        means.append(total / count if count else math.nan)
        unreadable.append(missing)
    return means, tuple(unreadable)


def _roi_values(
    image: Image, settings: DisplaySettings, roi: Roi, level: int, channel: ChannelSettings
) -> Iterator[tuple[npt.NDArray[Any] | None, int]]:
    """Yield the values of a region tile by tile, with shape (pixels,) or (pixels, samples), and their number. The
    values of unreadable chunks are None.
    """
    rows, columns = settings.displayed
    plane = plane_key(image, level, settings, channel.index)
    grid = image.grid(level, settings.displayed)
    top, bottom = sorted(image.to_level(level, rows, edge) for edge in roi.rect[::2])
    left, right = sorted(image.to_level(level, columns, edge) for edge in roi.rect[1::2])
    vertices = [
        (image.to_level(level, rows, row), image.to_level(level, columns, column))
        for row, column in roi.points
    ]
    for tile_row, tile_column in grid.within(top, left, bottom, right):
        tile_rows, tile_columns = grid.rect(tile_row, tile_column)
        region = _clip(tile_rows, top, bottom), _clip(tile_columns, left, right)
        if region[0].stop <= region[0].start or region[1].stop <= region[1].start:
            continue
        for part, values in read_parts(image, plane, *region):
            if roi.shape == "rectangle":
                inside = np.ones([span.stop - span.start for span in part], np.bool_)
            elif roi.shape == "ellipse":
                inside = ellipse_mask(part, (top, left, bottom, right))
            else:
                inside = polygon_mask(part, vertices)
            yield None if isinstance(values, Exception) else values[inside], int(np.count_nonzero(inside))


def _clip(span: slice, low: float, high: float) -> slice:
    return slice(max(span.start, math.ceil(low)), min(span.stop, math.floor(high) + 1))


def statistics_csv(statistics: Sequence[RoiStatistics]) -> str:
    """Return a CSV table with a header row, one row per channel."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    counts = ("channel", "count", "nans", "unreadable")
    names = (*counts, "area", "unit", "mean", "std", "minimum", "maximum", "median", "sum")
    writer.writerow(names)
    for row in statistics:
        writer.writerow([table_value(name, getattr(row, name)) for name in names])
    return text.getvalue()
