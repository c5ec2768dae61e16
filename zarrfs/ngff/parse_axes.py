"""Parsing of axes, which images have had since OME-NGFF 0.3, and coordinate systems since 0.6."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from zarrfs.ngff.model import Axis
from zarrfs.ngff.orientation import parse_orientation
from zarrfs.ngff.reader import Reader
from zarrfs.text import short_repr

__all__ = ["parse_axes"]

AXIS_TYPES = {"x": "space", "y": "space", "z": "space", "t": "time", "c": "channel"}
"""The types of axes that state none, by their names."""


def parse_axes(item: Reader) -> tuple[Axis, ...]:
    """Return the axes in the member ``axes`` of an object. Invalid members are noted."""
    axes = item.document.get("axes", [])
    if not isinstance(axes, list):
        item.note("axes", f"expected a list, found {short_repr(axes)}: ignored")
        return ()
    return tuple(_axis(item, number, axis) for number, axis in enumerate(axes))


def _axis(item: Reader, number: int, axis: Any) -> Axis:
    if isinstance(axis, str):
        return Axis(axis, AXIS_TYPES.get(axis.lower()))
    if not isinstance(axis, Mapping) or not isinstance(axis.get("name"), str):
        item.note(f"axes/{number}", f"expected an object with a name, found {short_repr(axis)}")
        axis = axis if isinstance(axis, Mapping) else {}
    name = axis["name"] if isinstance(axis.get("name"), str) else f"axis {number}"
    kind, unit = axis.get("type"), axis.get("unit")
    discrete, long_name = axis.get("discrete"), axis.get("longName")
    return Axis(
        name,
        kind if isinstance(kind, str) else AXIS_TYPES.get(name.lower()),
        unit if isinstance(unit, str) and unit else None,
        parse_orientation(axis),
        discrete=discrete if isinstance(discrete, bool) else None,
        long_name=long_name if isinstance(long_name, str) else None,
    )
