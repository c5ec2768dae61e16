"""The axes and the OME-NGFF metadata of a pyramid, versions 0.4 to 0.6.

See https://ngff.openmicroscopy.org/0.5/#multiscale-md
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from zarrfs.errors import OptionError, UnsupportedError
from zarrfs.ngff.geometry import ArrayAxis, Geometry, axis_type
from zarrfs.ngff.orientation import ANATOMICAL_DIRECTIONS, directions_attribute, orientation_document
from zarrfs.ngff.version_0_6 import with_systems_of
from zarrfs.ngff.versions import to_version
from zarrfs.tools.pyramids.downsampling import Method
from zarrfs.tools.pyramids.levels import PyramidLevel

__all__ = ["image_axes", "multiscales_attributes"]

DEFAULT_NAMES = "tczyx"
MAX_DIMENSIONS = 5
RANKS = {"time": 0, "channel": 1, None: 1, "space": 2}
"""The order of axes by their type. An axis of another type counts as a channel axis."""

DESCRIPTIONS: dict[Method, str] = {
    "mean": "Mean of each window. Integers are rounded to the nearest one, halves upwards.",
    "median": "Median of each window. Integers are rounded to the nearest one, halves upwards.",
    "max": "Maximum of each window.",
    "min": "Minimum of each window.",
    "mode": "Most frequent value of each window; the smallest of several such values.",
    "nearest": "First element of each window.",
}


def image_axes(
    shape: Sequence[int],
    geometry: Geometry,
    names: Sequence[str] | None = None,
    scale: Sequence[float] | None = None,
    unit: str | None = None,
) -> tuple[ArrayAxis, ...]:
    """Return the axes of an image. Each has a name and a type.

    ``names``, ``scale`` (one number for each dimension) and ``unit`` (of the spatial axes) replace those of the
    geometry. Without any names, the last of the names t, c, z, y, x are used.

    Raises OptionError for options that do not fit the array, UnsupportedError for axes that OME-NGFF does not allow.
    """
    ndim = len(shape)
    if not 2 <= ndim <= MAX_DIMENSIONS:
        raise UnsupportedError(
            f"an OME-NGFF image has 2 to {MAX_DIMENSIONS} dimensions, this array has {ndim}"
        )
    for option, value in (("axes", names), ("scale", scale)):
        if value is not None and len(value) != ndim:
            raise OptionError(f"{option}: expected {ndim} items, one for each dimension; found {len(value)}")
    if scale is not None and not all(0 < size < float("inf") for size in scale):
        raise OptionError(f"scale: expected positive numbers, found {list(scale)}")
    axes = []
    for i, axis in enumerate(geometry.axes):
        name = axis.name or axis.role if names is None else names[i]
        if name is None or (names is None and not any(axis.name or axis.role for axis in geometry.axes)):
            name = DEFAULT_NAMES[len(DEFAULT_NAMES) - ndim + i]
        kind = axis.type if names is None else None
        axes.append(_typed(axis, name, kind or axis_type(name) or axis.type))
    if not any(axis.type == "space" for axis in axes):
        axes = [replace(axis, type="space") if axis.type is None else axis for axis in axes]
    if scale is not None:
        axes = [replace(axis, scale=float(size)) for axis, size in zip(axes, scale, strict=True)]
    if unit is not None:
        axes = [replace(axis, unit=unit) if axis.type == "space" else axis for axis in axes]
    _check_axes(axes)
    return tuple(axes)


def _typed(axis: ArrayAxis, name: str, kind: str | None) -> ArrayAxis:
    """Return an axis with another name and type. Only spatial axes have an orientation."""
    if kind != "space":
        axis = replace(axis, orientation=None, direction=None)
    return replace(axis, name=name, type=kind)


def _check_axes(axes: Sequence[ArrayAxis]) -> None:
    found = ", ".join(f"{axis.name} ({axis.type or 'no type'})" for axis in axes)
    if len({axis.name for axis in axes}) < len(axes):
        raise UnsupportedError(
            f"the names of the axes have to differ; found {found}; name them, as in axes zyx"
        )
    if not 2 <= sum(axis.type == "space" for axis in axes) <= 3:
        raise UnsupportedError(
            f"an OME-NGFF image has 2 or 3 axes of space; found {found}; name the axes, as in axes tczyx"
        )
    ranks = [RANKS.get(axis.type, 1) for axis in axes]
    if ranks != sorted(ranks) or ranks.count(0) > 1 or ranks.count(1) > 1:
        raise UnsupportedError(
            "the axes of an OME-NGFF image are at most one of time, then at most one of channels, then those of "
            f"space; found {found}"
        )


def multiscales_attributes(
    version: str,
    name: str,
    axes: Sequence[ArrayAxis],
    paths: Sequence[str],
    levels: Sequence[PyramidLevel],
    method: Method,
    previous: Mapping[str, Any],
) -> dict[str, Any]:
    """Return the attributes of the group of a pyramid. Those in ``previous`` other than multiscales are retained.

    The exact directions of the axes in anatomical space are those of ``axes``.
    """
    previous = {key: value for key, value in previous.items() if key != ANATOMICAL_DIRECTIONS}
    previous |= directions_attribute(axes)
    multiscales: dict[str, Any] = {
        "name": name,
        "axes": [_axis_document(axis) for axis in axes],
        "datasets": [
            {
                "path": path,
                "coordinateTransformations": [
                    {"type": "scale", "scale": list(level.scale)},
                    {"type": "translation", "translation": list(level.translation)},
                ],
            }
            for path, level in zip(paths, levels, strict=True)
        ],
        "type": method,
        "metadata": {"description": DESCRIPTIONS[method], "method": "zarrfs.tools.build_pyramid"},
    }
    if version == "0.4":
        return {**previous, "multiscales": [{"version": version, **multiscales}]}
    ome = previous.get("ome")
    ome = dict(ome) if isinstance(ome, Mapping) else {}
    attributes = {**previous, "ome": {**ome, "version": "0.5", "multiscales": [multiscales]}}
    if version == "0.5":
        return attributes
    return with_systems_of(to_version(attributes, "", version).attributes, ome)


def _axis_document(axis: ArrayAxis) -> dict[str, Any]:
    document: dict[str, Any] = {"name": axis.name}
    if axis.type is not None:
        document["type"] = axis.type
    if axis.unit is not None:
        document["unit"] = axis.unit
    if axis.orientation is not None:
        document["orientation"] = orientation_document(axis.orientation)
    return document
