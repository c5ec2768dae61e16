"""The grid of pixels that the formats of ITK describe (NRRD and MetaImage): axes, fastest first, in physical space.

ITK measures space in millimetres and time in seconds by convention. Lengths and times with a known unit are converted;
other numbers are written as they are stored. Time, channel and other axes of length 1 are omitted, and an image with
one dimension has a second one of length 1, since ITK reads images with two to five dimensions. An image whose axes
state an anatomical orientation has three spatial axes, since only these have a direction in the space of a patient. So
has an image whose axes are not parallel to those of its scene.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any, Literal

import numpy as np

from zarrfs.engine.array.array import Array
from zarrfs.engine.indexing.flat_ranges import FlatOrder
from zarrfs.files.view import PresentedArray, fixed_size_unsupported_reason
from zarrfs.ngff.geometry import Geometry
from zarrfs.ngff.orientation import Vector
from zarrfs.ngff.spatial_frames import SPACE_ROLES, SpatialFrame, spatial_frame

__all__ = [
    "GridAxis",
    "PixelGrid",
    "WorldFrame",
    "array_unsupported_reason",
    "element_unsupported_reason",
    "image_unsupported_reason",
    "ordered_grid",
    "stored_grid",
]

ROLE_ORDER = (*SPACE_ROLES, "t", "c", None)
"""The order of the axes in the formats that list x first."""


@dataclass(frozen=True)
class GridAxis:
    """One axis of the grid.

    Attributes:
        size: the number of pixels.
        kind: what the axis means.
        label: its name; empty if it has none.
        scale: the distance between two pixels. It is negative if the axis points in the opposite direction.
        origin: the position of the centre of the first pixel along an axis that is not spatial.
        unit: ``mm``, ``s``, the stored unit of other axes, or an empty string.
        world: its place in the order of the world axes: x, y, z (left, posterior, superior), and then the others.
        direction: the unit vector of a spatial axis in LPS coordinates, or None for another axis.
    """

    size: int
    kind: Literal["space", "time", "channel", "other"]
    label: str = ""
    scale: float = 1.0
    origin: float = 0.0
    unit: str = ""
    world: int = 0
    direction: Vector | None = None


@dataclass(frozen=True)
class WorldFrame:
    """The world axes of an image: those of its axes other than the components of pixels.

    Attributes:
        directions: for each axis of the image, fastest first, a unit vector with one component per world axis.
        origin: the position of the centre of the first pixel, one number per world axis.
        units: the unit of each world axis.
        has_patient_space: whether the first three world axes are left, posterior and superior, and the only spatial
            ones.
        has_time: whether time is the fourth and last world axis.
    """

    directions: tuple[tuple[float, ...], ...]
    origin: tuple[float, ...]
    units: tuple[str, ...]
    has_patient_space: bool
    has_time: bool


@dataclass(frozen=True)
class PixelGrid:
    """The axes of an image, fastest first, and the order of the dimensions of the array in its bytes.

    ``frame`` is the space of the spatial axes.
    """

    axes: tuple[GridAxis, ...]
    order: FlatOrder
    frame: SpatialFrame

    def world(self, axes: Sequence[GridAxis]) -> WorldFrame:
        """Return the world axes of an image with these axes of the grid."""
        by_world = sorted(axes, key=lambda axis: axis.world)
        rows = [axis.world if axis.direction is not None else None for axis in by_world]
        directions = [
            tuple(
                float(axis is other) if row is None or axis.direction is None else axis.direction[row]
                for row, other in zip(rows, by_world, strict=True)
            )
            for axis in axes
        ]
        origin = [
            axis.origin if row is None else self.frame.origin[row]
            for row, axis in zip(rows, by_world, strict=True)
        ]
        kinds = [axis.kind for axis in by_world]
        return WorldFrame(
            tuple(directions),
            tuple(origin),
            tuple(axis.unit for axis in by_world),
            kinds in (["space"] * 3, ["space"] * 3 + ["time"]),
            kinds[3:] == ["time"],
        )


def stored_grid(presented: PresentedArray) -> PixelGrid:
    """Return the grid of the .raw file: the dimensions of the array, the last one first."""
    array, geometry = presented.array, presented.geometry
    dimensions = _without_omitted(range(array.ndim), array.shape, geometry)[::-1]
    frame = spatial_frame(geometry)
    return PixelGrid(_grid_axes(dimensions, array.shape, geometry, frame), "C", frame)


def ordered_grid(presented: PresentedArray) -> PixelGrid:
    """Return the grid with the axes x, y, z, t, c and others.

    The channel axis is the first one if it is the last dimension of the array: the components of each pixel are then
    adjacent, as in an RGB image.
    """
    array, geometry = presented.array, presented.geometry
    dimensions = _without_omitted(range(array.ndim), array.shape, geometry)
    # Of several axes without a role the last dimension is the fastest one.
    dimensions.sort(key=lambda i: (ROLE_ORDER.index(geometry.axes[i].role), -i))
    last = array.ndim - 1
    if last in dimensions and geometry.axes[last].role == "c":
        dimensions.remove(last)
        dimensions.insert(0, last)
    omitted = [i for i in range(array.ndim) if i not in dimensions]
    frame = spatial_frame(geometry)
    axes = _grid_axes(dimensions, array.shape, geometry, frame)
    return PixelGrid(axes, (*omitted, *reversed(dimensions)), frame)


def image_unsupported_reason(
    presented: PresentedArray,
    types: Mapping[str, Any],
    name: str,
    max_axes: int,
    max_length: int | None = None,
) -> str | None:
    """Return the reason why the format ``name`` cannot present an array, or None.

    ``max_axes`` is its maximum number of axes. The other arguments are those of ``array_unsupported_reason``.
    """
    array = presented.array
    reason = array_unsupported_reason(array, types, name, max_length)
    # The geometry is not needed for an array of fewer dimensions. Up to two spatial axes of length 1 are added.
    if reason is None and array.ndim > max_axes - 2:
        count = len(stored_grid(presented).axes)
        if count > max_axes:
            return f"it has {count} dimensions, and {name} supports at most {max_axes}"
    return reason


def array_unsupported_reason(
    array: Array, types: Mapping[str, Any], name: str, max_length: int | None = None
) -> str | None:
    """Return the reason why the format ``name`` cannot present the elements of an array, or None if it can.

    ``types`` has the data types of the format by the name of the NumPy dtype. ``max_length`` is its maximum length of
    a dimension, if it has one.
    """
    reason = fixed_size_unsupported_reason(array) or element_unsupported_reason(array.dtype, types, name)
    if reason is not None:
        return reason
    shape = array.shape
    if prod(shape) == 0:
        return f"its shape {shape} has a dimension of length 0, and {name} requires at least 1"
    if max_length is not None and max(shape, default=1) > max_length:
        return f"it has a dimension of length {max(shape):,}, and {name} supports at most {max_length:,}"
    return None


def element_unsupported_reason(dtype: np.dtype[Any], types: Mapping[str, Any], name: str) -> str | None:
    """Return the reason why a format has no data type for a dtype, or None if it has one."""
    if dtype.fields is not None:
        return f"{name} has no data type for elements with fields"
    return None if dtype.name in types else f"{name} has no data type for {dtype.name}"


def _without_omitted(dimensions: Sequence[int], shape: tuple[int, ...], geometry: Geometry) -> list[int]:
    return [i for i in dimensions if shape[i] != 1 or geometry.axes[i].role in SPACE_ROLES]


def _grid_axes(
    dimensions: Sequence[int], shape: tuple[int, ...], geometry: Geometry, frame: SpatialFrame
) -> tuple[GridAxis, ...]:
    axes = [_grid_axis(i, shape[i], geometry, frame) for i in dimensions]
    if frame.is_anatomical or geometry.affine is not None:
        for row, role in enumerate(SPACE_ROLES):
            if geometry.find(role) is None:
                unit = "" if frame.unit is None else "mm"
                axes.append(GridAxis(1, "space", unit=unit, world=row, direction=frame.directions[row]))
    domain_count = sum(axis.kind != "channel" for axis in axes)
    axes += [GridAxis(1, "other") for _ in range(domain_count, 2)]
    others = sorted((axis for axis in axes if axis.direction is None), key=_kind_order)
    return tuple(
        axis
        if axis.direction is not None
        else replace(axis, world=_position(axis, others) + len(SPACE_ROLES))
        for axis in axes
    )


def _grid_axis(dimension: int, size: int, geometry: Geometry, frame: SpatialFrame) -> GridAxis:
    axis = geometry.axes[dimension]
    label = axis.name if axis.name is not None and axis.name.isprintable() else ""
    if axis.role in SPACE_ROLES:
        row, unit = SPACE_ROLES.index(axis.role), "" if frame.unit is None else "mm"
        return GridAxis(
            size, "space", label, frame.scale[row], unit=unit, world=row, direction=frame.directions[row]
        )
    if axis.role == "t":
        grid = geometry.physical_grid([dimension], "second")
        unit = "" if grid.unit is None else "s"
        return GridAxis(size, "time", label, grid.scale[0], grid.translation[0], unit)
    kind: Literal["channel", "other"] = "channel" if axis.role == "c" else "other"
    return GridAxis(size, kind, label, axis.scale, axis.translation, axis.unit or "")


def _kind_order(axis: GridAxis) -> int:
    return ("time", "channel", "other").index(axis.kind)


def _position(axis: GridAxis, axes: Sequence[GridAxis]) -> int:
    """Return the place of an axis, by its identity: axes can be equal."""
    return next(place for place, other in enumerate(axes) if other is axis)
