"""The metadata of an image with named axes as OME-NGFF attributes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from zarrfs.files.foreign_array import ForeignArray
from zarrfs.ngff.geometry import axis_type
from zarrfs.ngff.model import Multiscales
from zarrfs.ngff.orientation import Vector, directions_attribute, orientation_document

__all__ = ["ImageAxis", "image_axes", "image_nodes"]


class ImageAxis(NamedTuple):
    """One dimension: its name, the distance of its elements, their unit, and the position of the first element.

    ``orientation`` is the nearest anatomical orientation of a spatial axis, and ``direction`` the exact direction if it
    differs; see ``ngff.orientation``.
    """

    name: str
    scale: float = 1.0
    unit: str | None = None
    origin: float = 0.0
    orientation: str | None = None
    direction: Vector | None = None


def image_axes(image: Multiscales, ndim: int) -> list[ImageAxis]:
    """Return the axes of level 0 of an image with ``ndim`` dimensions. The samples of a pixel in TIFF are channels."""
    level = image.levels[0]
    scale = level.scale or (1.0,) * ndim
    origin = level.translation or (0.0,) * ndim
    axes = []
    for number, axis in enumerate(image.axes):
        name = "c" if axis.name == "s" else axis.name
        axes.append(
            ImageAxis(name, scale[number], axis.unit, origin[number], axis.orientation, axis.direction)
        )
    return axes


def image_nodes(
    array: ForeignArray, axes: Sequence[ImageAxis], name: str
) -> dict[str, ForeignArray | dict[str, Any]]:
    """Return the nodes of an OME-NGFF 0.5 image with one level, ``0``. ``axes`` are those of the array."""
    listed: list[dict[str, Any]] = []
    for axis in axes:
        kind = axis_type(axis.name)
        is_oriented = axis.orientation is not None and kind == "space"
        orientation = orientation_document(str(axis.orientation)) if is_oriented else None
        entry = {"name": axis.name, "type": kind, "unit": axis.unit, "orientation": orientation}
        listed.append({key: value for key, value in entry.items() if value is not None})
    steps: list[dict[str, Any]] = [{"type": "scale", "scale": [axis.scale for axis in axes]}]
    if any(axis.origin for axis in axes):
        steps.append({"type": "translation", "translation": [axis.origin for axis in axes]})
    datasets = [{"path": "0", "coordinateTransformations": steps}]
    multiscales = {"name": name, "axes": listed, "datasets": datasets}
    ome = {"version": "0.5", "multiscales": [multiscales]}
    return {"": {"ome": ome, **directions_attribute(axes)}, "0": array}
