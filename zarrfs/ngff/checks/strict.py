"""The strict tier: violations of the strict JSON schemas, which cover recommendations of the specification.

The orientation of axes is checked here too: RFC-4, which defines it, is not a part of the versions up to 0.5.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from zarrfs.ngff.checks.report import Finding, pointer
from zarrfs.ngff.checks.units import SPACE_UNITS, TIME_UNITS
from zarrfs.ngff.orientation import parse_orientation
from zarrfs.ngff.version_0_6 import SYSTEMS
from zarrfs.text import short_repr

__all__ = ["strict_findings"]


def strict_findings(document: Mapping[str, Any], version: str) -> Iterator[Finding]:
    """Yield recommended members that are missing. From 0.5 on the version is not in the individual objects."""
    versioned = ("version",) if version < "0.5" else ()
    for number, item in _objects(document.get("multiscales")):
        location = pointer("multiscales", number)
        yield from _recommended(item, location, (*versioned, "metadata", "type", "name"))
        owners = [(item, location)]
        owners += [
            (system, location + pointer(SYSTEMS, position))
            for position, system in _objects(item.get(SYSTEMS))
        ]
        for owner, place in owners:
            for position, axis in _objects(owner.get("axes")):
                yield from _unit(axis, place + pointer("axes", position))
            yield from _orientations(owner, place + "/axes")
    label = document.get("image-label")
    if isinstance(label, Mapping):
        yield from _recommended(label, "/image-label", (*versioned, "colors"))
    well = document.get("well")
    if isinstance(well, Mapping):
        yield from _recommended(well, "/well", versioned)
    plate = document.get("plate")
    if isinstance(plate, Mapping):
        yield from _recommended(plate, "/plate", (*versioned, "name"))
        for number, item in _objects(plate.get("acquisitions")):
            yield from _recommended(
                item, pointer("plate", "acquisitions", number), ("name", "maximumfieldcount")
            )


def _objects(value: Any) -> Iterator[tuple[int, Mapping[str, Any]]]:
    for number, item in enumerate(value if isinstance(value, list) else []):
        if isinstance(item, Mapping):
            yield number, item


def _recommended(item: Mapping[str, Any], location: str, keys: tuple[str, ...]) -> Iterator[Finding]:
    for key in keys:
        if key not in item:
            yield Finding(location, f"recommended member {short_repr(key)} is missing")


def _unit(axis: Mapping[str, Any], location: str) -> Iterator[Finding]:
    known = {"space": SPACE_UNITS, "time": TIME_UNITS}.get(str(axis.get("type")))
    unit = axis.get("unit")
    if known is not None and isinstance(unit, str) and unit not in known:
        example = "micrometer" if axis["type"] == "space" else "second"
        yield Finding(
            location + "/unit", f"{short_repr(unit)} is not a UDUNITS-2 unit such as {short_repr(example)}"
        )


def _orientations(item: Mapping[str, Any], location: str) -> Iterator[Finding]:
    """Yield the violations of RFC-4."""
    axes = [(number, axis) for number, axis in _objects(item.get("axes"))]
    spatial = [axis for _, axis in axes if axis.get("type") == "space"]
    values = []
    for number, axis in axes:
        if axis.get("orientation") is None:
            continue
        value = parse_orientation(axis)
        if value is None or axis.get("type") != "space":
            found = short_repr(axis["orientation"])
            what = (
                "an orientation of RFC-4"
                if value is None
                else "no orientation, because the axis is not spatial"
            )
            yield Finding(f"{location}/{number}/orientation", f"expected {what}, found {found}")
        else:
            values.append(value)
    if values and len(values) < len(spatial):
        yield Finding(
            location, f"{len(values)} of {len(spatial)} spatial axes have an orientation, expected all"
        )
    if len({frozenset(value.split("-to-")) for value in values}) < len(values):
        yield Finding(location, f"the orientations of two axes are parallel: {', '.join(values)}")
