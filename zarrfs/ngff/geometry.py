"""The geometry of an array: what each of its dimensions means, and where its elements are in space and time.

The sources are, in this order: the OME-NGFF multiscales metadata of a group that contains the array, the attribute
``transform`` of the array, the attributes that N5 software writes, the names and units of the dimensions, and the
position of the dimensions. No chunk is read.

An image in a scene is presented in the first coordinate system of the scene, which the specification of OME-Zarr 0.6
recommends to display. Only the metadata of the groups that contain the array are used: a path through other images, and
parameters that are stored in arrays, are not followed, and the image is then presented in its own coordinate system.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from math import isfinite
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from zarrfs.engine.model import ArraySpec
from zarrfs.errors import MetadataError
from zarrfs.ngff.array_transforms import TRANSFORM, parse_transform
from zarrfs.ngff.coordinate_graphs import compose, coordinate_graph
from zarrfs.ngff.model import (
    Axis,
    Channel,
    CoordinateSystem,
    Level,
    Multiscales,
    Ngff,
    Scene,
    SystemReference,
)
from zarrfs.ngff.orientation import Vector, with_exact_directions
from zarrfs.ngff.reader import is_number
from zarrfs.ngff.units import convert, is_length, is_time

__all__ = [
    "GEOMETRY_ATTRIBUTES",
    "Ancestor",
    "ArrayAxis",
    "Geometry",
    "PhysicalGrid",
    "Role",
    "array_geometry",
    "axis_type",
    "geometry_in_system",
]

Role = Literal["x", "y", "z", "t", "c"]

AXIS_NAMES: dict[str, tuple[str, ...]] = {
    "space": (
        "x",
        "y",
        "z",
        "lat",
        "lon",
        "latitude",
        "longitude",
        "depth",
        "row",
        "column",
        "height",
        "width",
    ),
    "time": ("t", "time", "frame"),
    "channel": (
        *("c", "ch", "channel", "channels", "band", "bands", "wavelength"),
        *("s", "sample", "samples", "rgb", "rgba"),
    ),
}
"""The names of axes whose type is known."""

SPACE_ROLES: tuple[Role, ...] = ("x", "y", "z")
MIN_SPATIAL_AXES = 2
"""The spatial axes of an image. An array has fewer if the names of its axes are not known."""
LEGACY_AXES = ("t", "c", "z", "y", "x")
"""The axes of OME-NGFF 0.1 and 0.2, whose documents do not list them."""

DIMENSION_UNITS, DOWNSAMPLING_FACTORS, PIXEL_RESOLUTION = (
    "dimension_units",
    "downsamplingFactors",
    "pixelResolution",
)

GEOMETRY_ATTRIBUTES = frozenset((TRANSFORM, DIMENSION_UNITS, DOWNSAMPLING_FACTORS, PIXEL_RESOLUTION))
"""The user attributes of an array that its geometry depends on."""

MAX_UNIT_LENGTH = 64


@dataclass(frozen=True)
class ArrayAxis:
    """One dimension of an array.

    Attributes:
        name: the name, or None.
        type: ``space``, ``time``, ``channel``, another string, or None if it is unknown.
        unit: the name of the unit of ``scale`` and ``translation``, preferably a UDUNITS name, or None.
        scale: the distance between two elements. Never 0.
        translation: the position of the centre of the first element.
        role: the role of the axis in an image with up to five dimensions (x, y, z, c, t), or None. No two axes have the
            same role.
        orientation: the anatomical orientation (RFC-4) of a spatial axis, such as ``left-to-right``, or None.
        direction: the direction in anatomical space (RAS), a unit vector, if it is not the one of the orientation.
    """

    name: str | None = None
    type: str | None = None
    unit: str | None = None
    scale: float = 1.0
    translation: float = 0.0
    role: Role | None = None
    orientation: str | None = None
    direction: Vector | None = None


@dataclass(frozen=True)
class SpatialAffine:
    """The positions of elements in a coordinate system whose axes are not parallel to those of the array.

    Attributes:
        rows: for x, y and z of the system, the factors of the indices along x, y and z, and the position of the first
            element.
        axes: the axes x, y and z of the system; None for one that neither the system nor the array has.
    """

    rows: tuple[tuple[float, ...], ...]
    axes: tuple[ArrayAxis | None, ...]


class PhysicalGrid(NamedTuple):
    """The distances and the position of elements along some dimensions, in one unit.

    Attributes:
        scale: the distance between two elements along each dimension.
        translation: the position of the centre of the first element.
        unit: the unit of all numbers, or None if it is unknown.
    """

    scale: tuple[float, ...]
    translation: tuple[float, ...]
    unit: str | None


class Ancestor(NamedTuple):
    """A group that contains an array, directly or in a member.

    Attributes:
        path: the path of the array relative to the group.
        attributes: the user attributes of the group.
        ngff: the OME-NGFF metadata in these attributes.
    """

    path: str
    attributes: Mapping[str, Any]
    ngff: Ngff


@dataclass(frozen=True)
class Geometry:
    """The axes of an array, one per dimension.

    Attributes:
        axes: the meaning, scale and translation of each dimension.
        image_name: the name of the image in its metadata; empty if it has none.
        channels: the rendering settings of the channels, as far as the metadata contain them.
        affine: the positions in the coordinate system that is presented, if scales and translations along the axes do
            not state them; ``axes`` are then those of the image alone.
    """

    axes: tuple[ArrayAxis, ...]
    image_name: str = ""
    channels: tuple[Channel, ...] = ()
    affine: SpatialAffine | None = None

    def find(self, role: Role) -> int | None:
        """Return the number of the dimension with a role, or None if there is none."""
        return next((i for i, axis in enumerate(self.axes) if axis.role == role), None)

    @property
    def others(self) -> tuple[int, ...]:
        """The dimensions without a role."""
        return tuple(i for i, axis in enumerate(self.axes) if axis.role is None)

    def physical_grid(self, dimensions: Sequence[int], unit: str) -> PhysicalGrid:
        """Return the scale and translation along some dimensions in ``unit``.

        An axis without a unit gets the unit of the other axes if these have the same unit. If an axis still has no
        unit, or its unit cannot be converted, all numbers are returned as stored, and the unit is None.
        """
        axes = [self.axes[dimension] for dimension in dimensions]
        units = {axis.unit for axis in axes if axis.unit is not None}
        common = units.pop() if len(units) == 1 else None
        pairs = []
        for axis in axes:
            scale = convert(axis.scale, axis.unit or common, unit)
            translation = convert(axis.translation, axis.unit or common, unit)
            if scale is None or translation is None:
                return PhysicalGrid(
                    tuple(axis.scale for axis in axes), tuple(axis.translation for axis in axes), None
                )
            pairs.append((scale, translation))
        return PhysicalGrid(
            tuple(scale for scale, _ in pairs), tuple(translation for _, translation in pairs), unit
        )


def array_geometry(spec: ArraySpec, ancestors: Iterable[Ancestor] = ()) -> Geometry:
    """Return the geometry of an array. ``ancestors`` are the groups that contain it, the nearest one first."""
    ancestors = tuple(ancestors)
    ndim = len(spec.shape)
    for number, ancestor in enumerate(ancestors):
        for multiscales in ancestor.ngff.multiscales:
            level = _find_level(multiscales, ancestor.path)
            axes = None if level is None else _ngff_axes(multiscales, level, ndim)
            if axes is not None:
                omero = ancestor.ngff.omero
                axes, affine = _axes_in_scene(_with_roles(axes), multiscales, ancestors[number:])
                return Geometry(axes, multiscales.name, omero.channels if omero else (), affine)
    transform_axes = _transform_axes(spec)
    if transform_axes is not None:
        return Geometry(_with_roles(with_exact_directions(transform_axes, spec.attributes)))
    n5_axes = _n5_axes(spec, ancestors[0].attributes if ancestors else {})
    return Geometry(_named_axes(spec) if n5_axes is None else _with_roles(n5_axes))


def geometry_in_system(
    geometry: Geometry, system: CoordinateSystem, matrix: npt.NDArray[np.float64]
) -> Geometry | None:
    """Return the geometry of an array in another coordinate system. ``matrix`` is the affine transformation of indices
    to the system.

    None if spatial axes depend on others, or others on spatial axes: formats cannot state that.
    """
    outputs = [
        ArrayAxis(axis.name, axis.type, axis.unit, orientation=axis.orientation, direction=axis.direction)
        for axis in system.axes
    ]
    placed = _placed_axes(geometry.axes, _with_roles(tuple(outputs)), matrix)
    return None if placed is None else replace(geometry, axes=placed[0], affine=placed[1])


def axis_type(name: str | None) -> str | None:
    """Return the type of an axis with a well-known name, or None."""
    return next((kind for kind, names in AXIS_NAMES.items() if (name or "").lower() in names), None)


def _axes_in_scene(
    axes: tuple[ArrayAxis, ...], image: Multiscales, ancestors: Sequence[Ancestor]
) -> tuple[tuple[ArrayAxis, ...], SpatialAffine | None]:
    """Return the axes of an array in the coordinate system of the scene that contains its image, if there is one.

    The first one of ``ancestors`` is the group of the image.
    """
    inner = ancestors[0].path
    for ancestor in ancestors[1:]:
        if ancestor.ngff.scene is not None:
            path = ancestor.path.removesuffix(inner).strip("/")
            found = _transformation_to_scene(image, path, ancestor.path, ancestor.ngff.scene)
            if found is None:
                break
            placed = geometry_in_system(Geometry(axes), *found)
            return (axes, None) if placed is None else (placed.axes, placed.affine)
    return axes, None


def _placed_axes(
    axes: Sequence[ArrayAxis], outputs: Sequence[ArrayAxis], matrix: npt.NDArray[np.float64]
) -> tuple[tuple[ArrayAxis, ...], SpatialAffine | None] | None:
    """Return the axes of an array, with their roles, in another coordinate system.

    ``outputs`` are the axes of that system, with their roles, and ``matrix`` is the transformation of the indices to
    it. Scale, translation and unit of an axis are replaced if an axis of the system depends only on it. For spatial
    axes that do not, the second result is their affine transformation; the axes are then unchanged.

    Returns None if spatial axes depend on others, or others on spatial axes: no format can state that.
    """
    rows: dict[Role, int] = {axis.role: row for row, axis in enumerate(outputs) if axis.role is not None}
    spatial = [number for number, axis in enumerate(axes) if axis.role in SPACE_ROLES]
    result = list(axes)
    is_plain = True
    for role, row in rows.items():
        used = [number for number in range(len(axes)) if matrix[row, number]]
        own = next((number for number, axis in enumerate(axes) if axis.role == role), None)
        if role in SPACE_ROLES:
            if any(number not in spatial for number in used):
                return None
            is_plain = is_plain and (used == [own] or (own is None and not used and not matrix[row, -1]))
        elif used not in ([own], []):
            return None
        if own is not None and used == [own]:
            result[own] = replace(
                axes[own],
                scale=float(matrix[row, own]),
                translation=float(matrix[row, -1]),
                unit=outputs[row].unit,
                orientation=outputs[row].orientation,
                direction=outputs[row].direction,
            )
    if is_plain:
        return tuple(result), None
    affine = np.zeros((3, 4))
    targets: list[ArrayAxis | None] = []
    for place, role in enumerate(SPACE_ROLES):
        own = next((number for number in spatial if axes[number].role == role), None)
        if role in rows:
            row = rows[role]
            for column, other in enumerate(SPACE_ROLES):
                number = next((n for n in spatial if axes[n].role == other), None)
                affine[place, column] = 0 if number is None else matrix[row, number]
            affine[place, 3] = matrix[row, -1]
            targets.append(outputs[row])
        else:
            affine[place, [place, 3]] = (0, 0) if own is None else (axes[own].scale, axes[own].translation)
            targets.append(None if own is None else axes[own])
    placed = [axis if axis.role not in SPACE_ROLES else axes[number] for number, axis in enumerate(result)]
    return tuple(placed), SpatialAffine(tuple(map(tuple, affine.tolist())), tuple(targets))


def _transformation_to_scene(
    image: Multiscales, image_path: str, array_path: str, scene: Scene
) -> tuple[CoordinateSystem, npt.NDArray[np.float64]] | None:
    """Return the system of a scene that is displayed, and the affine matrix from the indices of an array to it.

    Both paths are relative to the scene. None if the scene has no system, or if no affine path to it is known.
    """
    graph = coordinate_graph([(image_path, image)], scene)
    if graph.shown is None:
        return None
    try:
        found = compose(graph, SystemReference(array_path), graph.shown)
    except MetadataError:
        return None
    return None if found.matrix is None else (found.output, np.array(found.matrix))


def _find_level(multiscales: Multiscales, path: str) -> Level | None:
    return next((level for level in multiscales.levels if level.path.strip("/") == path), None)


def _ngff_axes(multiscales: Multiscales, level: Level, ndim: int) -> tuple[ArrayAxis, ...] | None:
    """Return the axes of a level, or None if the metadata do not fit an array with ``ndim`` dimensions."""
    axes = multiscales.axes
    if not axes:
        if ndim > len(LEGACY_AXES):
            return None
        axes = tuple(Axis(name, axis_type(name)) for name in LEGACY_AXES[len(LEGACY_AXES) - ndim :])
    scale, translation = level.scale or (1.0,) * ndim, level.translation or (0.0,) * ndim
    if not len(axes) == len(scale) == len(translation) == ndim:
        return None
    return tuple(
        _checked(
            ArrayAxis(axis.name, axis.type, axis.unit, step, origin, None, axis.orientation, axis.direction)
        )
        for axis, step, origin in zip(axes, scale, translation, strict=True)
    )


def _named_axes(spec: ArraySpec) -> tuple[ArrayAxis, ...]:
    """Return the axes that the names and units of the dimensions describe, with their roles."""
    ndim = len(spec.shape)
    names = spec.dimension_names or (None,) * ndim
    units = spec.dimension_units or _unit_strings(spec.attributes.get(DIMENSION_UNITS), ndim)
    return _axes_by_name(names, units)


@lru_cache(maxsize=256)
def _axes_by_name(names: tuple[str | None, ...], units: tuple[str | None, ...]) -> tuple[ArrayAxis, ...]:
    axes = []
    for name, unit in zip(names, units, strict=True):
        scale, base_unit = _split_unit(unit)
        axes.append(_checked(ArrayAxis(name, _type_of(name, base_unit), base_unit, scale)))
    return _with_roles(tuple(axes))


def _unit_strings(value: Any, ndim: int) -> tuple[str | None, ...]:
    """Return the attribute in which TensorStore stores the units of Zarr arrays, with None for each invalid unit."""
    if not isinstance(value, list) or len(value) != ndim:
        return (None,) * ndim
    return tuple(unit if isinstance(unit, str) else None for unit in value)


def _type_of(name: str | None, unit: str | None) -> str | None:
    if is_time(unit):
        return "time"
    if is_length(unit):
        return "space"
    return axis_type(name)


def _split_unit(unit: str | None) -> tuple[float, str | None]:
    """Return the spacing and the base unit of a unit such as ``"4 nm"``."""
    number, _, base = (unit or "").strip().partition(" ")
    try:
        return float(number), base.strip() or None
    except ValueError:
        return 1.0, unit or None


def _transform_axes(spec: ArraySpec) -> tuple[ArrayAxis, ...] | None:
    """Return the axes that the attribute ``transform`` describes, or None if it is missing or invalid."""
    transform = parse_transform(spec.attributes.get(TRANSFORM), len(spec.shape))
    if transform is None:
        return None
    axes = []
    for axis, (name, unit, scale, translation, orientation) in zip(_named_axes(spec), transform, strict=True):
        name, unit = name or axis.name, unit or axis.unit
        placed = ArrayAxis(name, _type_of(name, unit), unit, scale, translation, orientation=orientation)
        axes.append(_checked(placed))
    return tuple(axes)


def _n5_axes(spec: ArraySpec, parent: Mapping[str, Any]) -> tuple[ArrayAxis, ...] | None:
    """Return the axes that ``pixelResolution`` and ``downsamplingFactors`` of N5 viewers describe; None without both.

    Their lists begin with the fastest dimension, which is the last one of the array. ``pixelResolution`` is an
    attribute of the array or of the group of its resolution levels.
    """
    ndim = len(spec.shape)
    factors = _numbers(spec.attributes.get(DOWNSAMPLING_FACTORS), ndim)
    resolution: Any = spec.attributes.get(PIXEL_RESOLUTION, parent.get(PIXEL_RESOLUTION))
    unit = None
    if isinstance(resolution, Mapping):
        unit, resolution = resolution.get("unit"), resolution.get("dimensions")
    sizes = _numbers(resolution, ndim)
    if sizes is None and factors is None:
        return None
    axes = []
    for axis, factor, size in zip(
        _named_axes(spec), factors or (1.0,) * ndim, sizes or (None,) * ndim, strict=True
    ):
        if size is not None:
            name = unit if isinstance(unit, str) and unit else axis.unit
            axis = replace(axis, scale=size, unit=name, type=axis.type or _type_of(axis.name, name))
        # A downsampled element is the mean of the elements that it replaces.
        axis = replace(axis, scale=axis.scale * factor, translation=axis.scale * (factor - 1) / 2)
        axes.append(_checked(axis))
    return tuple(axes)


def _numbers(value: Any, count: int) -> tuple[float, ...] | None:
    """Return a list of ``count`` positive numbers in reverse order, or None if ``value`` is not such a list."""
    if not isinstance(value, list) or len(value) != count or not all(map(is_number, value)):
        return None
    numbers = tuple(float(number) for number in reversed(value))
    return numbers if all(number > 0 for number in numbers) else None


def _checked(axis: ArrayAxis) -> ArrayAxis:
    """Return the axis with numbers that all formats can represent, and without control characters in its unit."""
    scale = axis.scale if isfinite(axis.scale) and axis.scale != 0 else 1.0
    translation = axis.translation if isfinite(axis.translation) else 0.0
    unit = axis.unit
    if unit is not None and (len(unit) > MAX_UNIT_LENGTH or not unit.isprintable()):
        unit = None
    if axis.type != "space":
        axis = replace(axis, orientation=None, direction=None)
    return replace(axis, unit=unit, scale=float(scale), translation=float(translation))


def _with_roles(axes: tuple[ArrayAxis, ...]) -> tuple[ArrayAxis, ...]:
    """Return the axes with their roles.

    The axes named x, y and z have these roles; other spatial axes have the remaining ones, the last axis first. If
    fewer than two axes are known to be spatial, the axes of unknown type are spatial, too: ``row`` and ``col`` are a
    plane, although only the first name is known. The first time axis is t and the first channel axis c.
    """
    roles: dict[int, Role] = {}
    kinds: tuple[tuple[str, Role], ...] = (("time", "t"), ("channel", "c"))
    for kind, role in kinds:
        candidates = [i for i, axis in enumerate(axes) if axis.type == kind]
        candidates.sort(key=lambda i: (axes[i].name or "").lower() != role)
        roles.update((i, role) for i in candidates[:1])
    spatial = [i for i, axis in enumerate(axes) if axis.type == "space"]
    if len(spatial) < MIN_SPATIAL_AXES:
        spatial = [i for i, axis in enumerate(axes) if axis.type in ("space", None)]
    free = list(SPACE_ROLES)
    for role in SPACE_ROLES:
        named = [i for i in spatial if (axes[i].name or "").lower() == role]
        if named:
            roles[named[-1]] = role
            free.remove(role)
    for i in reversed([i for i in spatial if i not in roles]):
        if free:
            roles[i] = free.pop(0)
    return tuple(replace(axis, role=roles.get(i)) for i, axis in enumerate(axes))
