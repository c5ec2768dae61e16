"""OME-Zarr images for xarray: the axes are the dimensions, and scale and translation give physical coordinates."""

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
"""The names of the variable, the same in all levels."""

MAX_COORDINATES = 1 << 22
"""A longer axis gets no coordinates: they are made at once, and the length of an axis is only declared."""

LEGACY_AXES = ("t", "c", "z", "y", "x")


@dataclass(frozen=True, eq=False)
class LevelArray:
    """One level of a pyramid: its path below the image, its array, and what the metadata tell about it."""

    path: str
    array: Array
    level: Level
    axes: tuple[Axis, ...]
    channels: tuple[str, ...]
    name: str


def multiscale_levels(group: Group) -> tuple[LevelArray, ...]:
    """Return the levels of the images in a group, the finest first; those that cannot be opened are left out."""
    ngff = parse(group.attrs)
    found: dict[str, LevelArray] = {}
    for multiscales in ngff.multiscales:
        for level in multiscales.levels:
            path = level.path.strip("/")
            if not path or path in found or ".." in path.split("/"):
                continue
            try:
                array = group[path]
            except (ZarrError, KeyError):
                continue
            if isinstance(array, Array):
                found[path] = _level_array(path, array, level, multiscales, ngff)
    return tuple(found.values())


def _level_array(path: str, array: Array, level: Level, multiscales: Multiscales, ngff: Ngff) -> LevelArray:
    channels = ngff.omero.channels if ngff.omero is not None else ()
    labels = tuple(channel.label for channel in channels if channel.label)
    name = LABELS if ngff.image_label is not None else IMAGE
    return LevelArray(path, array, level, multiscales.axes, labels, name)


def level_variables(level: LevelArray, mask: bool | None) -> dict[str, Variable]:
    """Return the array of a level and the coordinates of its axes.

    The fill value of an image means a value, not a missing one, unless ``mask`` says otherwise.
    """
    array = level.array
    dimensions = _dimensions(level)
    variables = {level.name: make_variable(array, dimensions, bool(mask))}
    for number, name in enumerate(dimensions):
        coordinates = _coordinates(level, number)
        if coordinates is not None and name != level.name:
            unit = level.axes[number].unit if len(level.axes) == array.ndim else None
            attributes = {} if unit is None else {"units": unit}
            variables[name] = Variable((name,), coordinates, attributes)
    return variables


def _dimensions(level: LevelArray) -> tuple[str, ...]:
    rank = level.array.ndim
    names = tuple(axis.name for axis in level.axes)
    if len(names) == rank and len(set(names)) == rank and all(names):
        return names
    own = named_dimensions(level.array)
    if own is not None and len(set(own)) == rank:
        return own
    if not level.axes and rank <= len(LEGACY_AXES):
        return LEGACY_AXES[len(LEGACY_AXES) - rank :]
    return tuple(f"dim_{number}" for number in range(rank))


def _coordinates(level: LevelArray, number: int) -> np.ndarray[Any, Any] | None:
    """Return the coordinates of an axis: names of channels, else physical positions; None where none are known."""
    length = level.array.shape[number]
    rank = level.array.ndim
    if length > MAX_COORDINATES or len(level.axes) != rank:
        return None
    if level.axes[number].type == "channel":
        unique = len(level.channels) == length == len(set(level.channels))
        return np.array(level.channels, dtype=np.str_) if unique and length else None
    scale, translation = level.level.scale, level.level.translation
    if scale is None or len(scale) != rank:
        return None
    origin = translation[number] if translation is not None and len(translation) == rank else 0.0
    return origin + scale[number] * np.arange(length, dtype=np.float64)
