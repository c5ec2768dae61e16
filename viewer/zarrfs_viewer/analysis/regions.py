"""Named regions of a plane: their statistics, and the profile of a shape along an axis.

Functions that read block; call them from a worker thread.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from zarrfs_viewer.analysis.measure import (
    Profile,
    RoiStatistics,
    curve_names,
    line_profile,
    roi_means,
    roi_statistics,
)
from zarrfs_viewer.analysis.shapes import Shape
from zarrfs_viewer.analysis.statistics import RunningStatistics, table_value
from zarrfs_viewer.images.image import Image
from zarrfs_viewer.state.view_state import DisplaySettings, with_position, with_projection

__all__ = [
    "MAX_PIXELS",
    "PlaneKey",
    "PlaneRegions",
    "Region",
    "RegionStatistics",
    "axis_profile",
    "level_for",
    "measure_region",
    "profile_axes",
    "regions_csv",
    "unique_name",
]

MAX_PIXELS = 1 << 26
"""Regions with more pixels are measured at the displayed level instead of the finest one."""

MAX_PROFILE_VALUES = 1 << 28
"""A profile along an axis reads at most this number of values per channel, unless the coarsest level has more."""


@dataclass(frozen=True)
class Region:
    """A shape with a name. The name is unique in a list of regions."""

    name: str
    shape: Shape


PlaneKey = tuple[tuple[str, int], tuple[str, int]]
"""The name and the size of the row axis and of the column axis."""

PlaneRegions = tuple[PlaneKey, tuple[Region, ...]]
"""The regions of one plane."""


@dataclass(frozen=True)
class RegionStatistics:
    """Statistics of one channel in one region.

    ``length`` is that of a line and ``area`` that of all other shapes, in ``unit`` or its square, or in pixels if the
    unit is None. The values of a line are those of its profile. ``unreadable`` is the number of pixels, or of samples
    of a line, in unreadable chunks. They are excluded from the statistics.
    """

    region: str
    kind: str
    channel: str
    length: float | None
    area: float | None
    unit: str | None
    count: int
    nans: int
    mean: float
    std: float
    minimum: float
    maximum: float
    median: float
    sum: float
    unreadable: int = 0


def level_for(image: Image, settings: DisplaySettings, shape: Shape, level: int) -> int:
    """Return the level at which to measure a region: 0, or ``level`` if the region has too many pixels at level 0."""
    return level if _pixel_count(image, settings, shape) > MAX_PIXELS else 0


def _pixel_count(image: Image, settings: DisplaySettings, shape: Shape) -> float:
    """Return the number of pixels of the finest level in the part of the bounding rectangle inside of the image."""
    top, left, bottom, right = shape.rect
    rows, columns = (image.shape[axis] for axis in settings.displayed)
    return max(0.0, min(bottom, rows) - max(top, 0)) * max(0.0, min(right, columns) - max(left, 0))


def measure_region(
    image: Image, settings: DisplaySettings, region: Region, level: int = 0
) -> list[RegionStatistics]:
    """Return the statistics of a region on the plane of ``settings``, one entry per channel. Blocks. Raises ZarrError.

    ``level`` is the displayed level, at which very large regions are measured.
    """
    shape = region.shape
    if shape.kind == "line":
        profile = line_profile(image, settings, shape.start, shape.end)
        unit, length = profile.unit, float(profile.distance[-1])
        entries = []
        for name, values, unreadable in zip(
            profile.channels, profile.values, profile.unreadable, strict=True
        ):
            running = RunningStatistics()
            running.add(values)
            summary = running.result()
            entries.append(
                RegionStatistics(
                    region.name,
                    shape.kind,
                    name,
                    length,
                    None,
                    unit,
                    summary.count,
                    summary.nans - unreadable,
                    **summary.moments(),
                    unreadable=unreadable,
                )
            )
        return entries
    found = roi_statistics(image, settings, shape.roi(), level_for(image, settings, shape, level))
    names = set(RegionStatistics.__dataclass_fields__) & set(RoiStatistics.__dataclass_fields__)
    return [
        RegionStatistics(
            region=region.name,
            kind=shape.kind,
            length=None,
            **{name: getattr(entry, name) for name in names},
        )
        for entry in found
    ]


def regions_csv(statistics: Sequence[RegionStatistics], position: Sequence[tuple[str, float]] = ()) -> str:
    """Return a CSV table with a header row, one row per region and channel.

    ``position`` has the names and the indices of the measured slice; they become columns.
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    names = list(RegionStatistics.__dataclass_fields__)
    writer.writerow([*names, *(name for name, _ in position)])
    for row in statistics:
        values = [table_value(name, getattr(row, name)) for name in names]
        writer.writerow([*values, *(index for _, index in position)])
    return text.getvalue()


def profile_axes(image: Image, settings: DisplaySettings) -> tuple[int, ...]:
    """Return the axes along which a profile can be measured: those with a slider, z first, then time."""
    axes = [axis for axis in image.slider_axes if axis not in settings.displayed and image.shape[axis] > 1]
    order = {"z": 0, "t": 1}
    return tuple(sorted(axes, key=lambda axis: order.get(image.axes[axis].name.lower(), 2)))


def axis_profile(
    image: Image,
    settings: DisplaySettings,
    shape: Shape,
    axis: int,
    is_wanted: Callable[[], bool] = lambda: True,
) -> tuple[Profile, int] | None:
    """Measure the mean of each channel in a shape, for every slice along an axis. Blocks. Raises ZarrError.

    Returns the profile and the pyramid level that was measured, which is the finest one with at most
    ``MAX_PROFILE_VALUES`` values. ``distance`` is the physical coordinate along the axis if it has a unit, else the
    index. Returns None as soon as ``is_wanted`` returns False.
    """
    settings = with_projection(settings, None)
    level = _profile_level(image, settings, shape, axis)
    count = image.levels[level].shape[axis]
    unit = image.axes[axis].unit
    positions, values = np.empty(count), np.full((len(curve_names(image, settings)), count), math.nan)
    incomplete = np.zeros(len(values), np.intp)
    for index in range(count):
        if not is_wanted():
            return None
        coordinate = image.from_level(level, axis, index)
        at = with_position(settings, axis, coordinate)
        positions[index] = image.to_physical(axis, coordinate) if unit is not None else coordinate
        if shape.kind == "line":
            profile = line_profile(image, at, shape.start, shape.end, level)
            samples, unreadable = profile.values, profile.unreadable
            known = np.count_nonzero(~np.isnan(samples), axis=1)
            sums = np.nansum(samples, axis=1)
            values[:, index] = np.divide(sums, known, out=np.full(len(sums), math.nan), where=known > 0)
        else:
            values[:, index], unreadable = roi_means(image, at, shape.roi(), level)
        incomplete += np.array(unreadable) > 0
    name = image.axes[axis].name or f"axis {axis}"
    return Profile(
        positions, values, curve_names(image, settings), unit, name, tuple(incomplete.tolist())
    ), level


def _profile_level(image: Image, settings: DisplaySettings, shape: Shape, axis: int) -> int:
    if not shape.is_region or shape.kind == "point":
        return 0
    pixels = _pixel_count(image, settings, shape)
    for level in range(len(image.levels)):
        per_pixel = math.prod(image.downsampling(level, displayed) for displayed in settings.displayed)
        if pixels / per_pixel * image.levels[level].shape[axis] <= MAX_PROFILE_VALUES:
            return level
    return len(image.levels) - 1


def unique_name(name: str, used: Sequence[str]) -> str:
    """Return a name that is not used: the name itself, or with a number."""
    if name not in used:
        return name
    return next(text for number in range(2, len(used) + 3) if (text := f"{name} {number}") not in used)
