"""OME-Zarr images for xarray: axes are dimensions, and scale and translation give physical coordinates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from xarray import Variable

from zarrfs.engine.nodes.array import Array
from zarrfs.engine.nodes.group import Group
from zarrfs.errors import ZarrError
from zarrfs.ngff import Axis, Level, Multiscales, Ngff, parse
from zarrfs.tools.xarray.variables import make_variable, named_dimensions

__all__ = ["LevelArray", "level_variables", "multiscale_levels"]

IMAGE, LABELS = "image", "labels"
"""The name of the variable of an image and of a label image, the same in all levels."""

MAX_COORDINATES = 1 << 22
"""Longer axes have no coordinates. Coordinates are allocated eagerly, and metadata can declare any length."""

LEGACY_AXES = ("t", "c", "z", "y", "x")


@dataclass(frozen=True, eq=False)
class LevelArray:
    """One level of a multiscale image: its path below the image, its array, and its metadata."""

    path: str
    array: Array
    level: Level
    axes: tuple[Axis, ...]
    channels: tuple[str, ...]
    name: str


def multiscale_levels(group: Group) -> tuple[LevelArray, ...]:
    """Return the levels of the images of a group, the finest first. Levels that cannot be opened are omitted."""
    ngff = parse(group.attrs)
    levels_by_path: dict[str, LevelArray] = {}
    for multiscales in ngff.multiscales:
        for level in multiscales.levels:
            path = level.path.strip("/")
            if not path or path in levels_by_path or ".." in path.split("/"):
                continue
            try:
                array = group[path]
            except (ZarrError, KeyError):
                continue
            if isinstance(array, Array):
                levels_by_path[path] = _level_array(path, array, level, multiscales, ngff)
    return tuple(levels_by_path.values())


def _level_array(path: str, array: Array, level: Level, multiscales: Multiscales, ngff: Ngff) -> LevelArray:
    channels = ngff.omero.channels if ngff.omero is not None else ()
    labels = tuple(channel.label for channel in channels if channel.label)
    name = LABELS if ngff.image_label is not None else IMAGE
    return LevelArray(path, array, level, multiscales.axes, labels, name)


def level_variables(level: LevelArray, mask: bool | None) -> dict[str, Variable]:
    """Return the variables of the array of a level and of the coordinates of its axes.

    The fill value of an image is an ordinary value unless ``mask`` is True.
    """
    array = level.array
    dimensions = _dimensions(level)
    variables = {level.name: make_variable(array, dimensions, bool(mask))}
    for axis_number, name in enumerate(dimensions):
        coordinates = _coordinates(level, axis_number)
        if coordinates is not None and name != level.name:
            unit = level.axes[axis_number].unit if len(level.axes) == array.ndim else None
            attributes = {} if unit is None else {"units": unit}
            variables[name] = Variable((name,), coordinates, attributes)
    return variables


def _dimensions(level: LevelArray) -> tuple[str, ...]:
    rank = level.array.ndim
    names = tuple(axis.name for axis in level.axes)
    if len(names) == rank and len(set(names)) == rank and all(names):
        return names
    names_of_array = named_dimensions(level.array)
    if names_of_array is not None and len(set(names_of_array)) == rank:
        return names_of_array
    if not level.axes and rank <= len(LEGACY_AXES):
        return LEGACY_AXES[len(LEGACY_AXES) - rank :]
    return tuple(f"dim_{axis_number}" for axis_number in range(rank))


def _coordinates(level: LevelArray, axis_number: int) -> np.ndarray[Any, Any] | None:
    """Return the coordinates of an axis: channel names or physical positions; None if unknown."""
    length = level.array.shape[axis_number]
    rank = level.array.ndim
    if length > MAX_COORDINATES or len(level.axes) != rank:
        return None
    if level.axes[axis_number].type == "channel":
        unique = len(level.channels) == length == len(set(level.channels))
        return np.array(level.channels, dtype=np.str_) if unique and length else None
    scale, translation = level.level.scale, level.level.translation
    if scale is None or len(scale) != rank:
        return None
    origin = translation[axis_number] if translation is not None and len(translation) == rank else 0.0
    return origin + scale[axis_number] * np.arange(length, dtype=np.float64)
