"""The attribute ``transform`` of an array: names, units, distances and position of its elements.

OME-NGFF metadata belongs to a group. A single array states the same in the attribute that COSEM and fibsem-tools
define: ``{"axes": ["z", "y", "x"], "units": ["nm", ...], "scale": [...], "translate": [...], "ordering": "C"}``. See
https://github.com/janelia-cellmap/schemas/blob/master/multiscale.md

The member ``orientation``, which this package adds, lists the orientations of the axes (RFC-4 of OME-NGFF); the text of
an axis without one is empty.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from zarrfs.ngff.orientation import ORIENTATIONS
from zarrfs.ngff.reader import is_number

__all__ = ["TRANSFORM", "parse_transform", "transform_attribute"]

TRANSFORM = "transform"
"""The name of the attribute."""

Transform = list[tuple[str | None, str | None, float, float, str | None]]
"""Name, unit, scale, translation and orientation of each dimension."""


class PlacedAxis(Protocol):
    """One dimension: its name, the distance of its elements, their unit, the position of the first element, and the
    anatomical orientation.
    """

    @property
    def name(self) -> str: ...

    @property
    def scale(self) -> float: ...

    @property
    def unit(self) -> str | None: ...

    @property
    def origin(self) -> float: ...

    @property
    def orientation(self) -> str | None: ...


def transform_attribute(axes: Sequence[PlacedAxis]) -> dict[str, Any]:
    """Return the value of the attribute for the dimensions of an array."""
    value = {
        "ordering": "C",
        "axes": [axis.name for axis in axes],
        "units": [axis.unit or "" for axis in axes],
        "scale": [axis.scale for axis in axes],
        "translate": [axis.origin for axis in axes],
    }
    if any(axis.orientation for axis in axes):
        value["orientation"] = [axis.orientation or "" for axis in axes]
    return value


def parse_transform(value: object, ndim: int) -> Transform | None:
    """Return the dimensions that the attribute describes, in the order of the array; None if it is not valid.

    The member ``scale`` is required. ``ordering`` is ``"F"`` if the lists begin with the last dimension.
    """
    if not isinstance(value, Mapping):
        return None
    scale = _numbers(value.get("scale"), ndim)
    if scale is None:
        return None
    translate = _numbers(value.get("translate"), ndim) or [0.0] * ndim
    names, units = _texts(value.get("axes"), ndim), _texts(value.get("units"), ndim)
    stated = _texts(value.get("orientation"), ndim)
    orientations = [item if item in ORIENTATIONS else None for item in stated]
    parts = [*zip(names, units, scale, translate, orientations, strict=True)]
    return parts[::-1] if value.get("ordering") == "F" else parts


def _numbers(value: object, count: int) -> list[float] | None:
    if not isinstance(value, list) or len(value) != count or not all(map(is_number, value)):
        return None
    return [float(number) for number in value]


def _texts(value: object, count: int) -> list[str | None]:
    if not isinstance(value, list) or len(value) != count:
        return [None] * count
    return [item if isinstance(item, str) and item else None for item in value]
