"""OME-Zarr images for xarray: axes are dimensions, and scale and translation give physical coordinates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from xarray import Variable

from zarrfs.engine.array.array import Array
from zarrfs.engine.group.group import Group
from zarrfs.ngff import Axis, Level, Multiscales, Ngff, parse
from zarrfs.tools.xarray.variables import make_variable, named_dimensions

__all__ = ["ImageLevel", "level_variables", "multiscale_levels"]

IMAGE, LABELS = "image", "labels"
"""The name of the variable of an image and of a label image, the same in all levels."""

MAX_COORDINATES = 1 << 22
"""Longer axes have no coordinates. Coordinates are allocated eagerly, and metadata can declare any length."""

LEGACY_AXES = ("t", "c", "z", "y", "x")


@dataclass(frozen=True)
class ImageLevel:
    """One level of a multiscale image: its path below the image, and its metadata. Its array may be missing."""

    path: str
    level: Level
    axes: tuple[Axis, ...]
    channels: tuple[str, ...]
    name: str


def multiscale_levels(group: Group) -> tuple[ImageLevel, ...]:
    """Return the levels of the images that the metadata of a group list, the finest first. No array is opened."""
    ngff = parse(group.attrs)
    levels_by_path: dict[str, ImageLevel] = {}
    for multiscales in ngff.multiscales:
        for level in multiscales.levels:
            path = level.path.strip("/")
            if path and path not in levels_by_path and ".." not in path.split("/"):
                levels_by_path[path] = _image_level(path, level, multiscales, ngff)
    return tuple(levels_by_path.values())


def _image_level(path: str, level: Level, multiscales: Multiscales, ngff: Ngff) -> ImageLevel:
    channels = ngff.omero.channels if ngff.omero is not None else ()
    labels = tuple(channel.label for channel in channels if channel.label)
    name = LABELS if ngff.image_label is not None else IMAGE
    return ImageLevel(path, level, multiscales.axes, labels, name)


def level_variables(array: Array, level: ImageLevel, mask: bool | None) -> dict[str, Variable]:
    """Return the variables of the array of a level and of the coordinates of its axes.

    The fill value of an image is an ordinary value unless ``mask`` is True.
    """
    dimensions = _dimensions(array, level)
    variables = {level.name: make_variable(array, dimensions, bool(mask))}
    for axis_number, name in enumerate(dimensions):
        coordinates = _coordinates(array, level, axis_number)
        if coordinates is not None and name != level.name:
            unit = level.axes[axis_number].unit if len(level.axes) == array.ndim else None
            attributes = {} if unit is None else {"units": unit}
            variables[name] = Variable((name,), coordinates, attributes)
    return variables


def _dimensions(array: Array, level: ImageLevel) -> tuple[str, ...]:
    rank = array.ndim
    names = tuple(axis.name for axis in level.axes)
    if len(names) == rank and len(set(names)) == rank and all(names):
        return names
    names_of_array = named_dimensions(array)
    if names_of_array is not None and len(set(names_of_array)) == rank:
        return names_of_array
    if not level.axes and rank <= len(LEGACY_AXES):
        return LEGACY_AXES[len(LEGACY_AXES) - rank :]
    return tuple(f"dim_{axis_number}" for axis_number in range(rank))


def _coordinates(array: Array, level: ImageLevel, axis_number: int) -> np.ndarray[Any, Any] | None:
    """Return the coordinates of an axis: channel names or physical positions; None if unknown."""
    length = array.shape[axis_number]
    rank = array.ndim
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
