"""The strict tier: what the strict JSON schemas ask for, which the specification only recommends. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from zarrfs.ngff.checks.report import Finding, pointer
from zarrfs.ngff.checks.units import SPACE_UNITS, TIME_UNITS
from zarrfs.text import short_repr

__all__ = ["strict_findings"]


def strict_findings(document: Mapping[str, Any], version: str) -> Iterator[Finding]:
    """Yield what is recommended and absent. From 0.5 on the version stands beside the parts, not in them."""
    versioned = ("version",) if version < "0.5" else ()
    for number, item in _objects(document.get("multiscales")):
        place = pointer("multiscales", number)
        yield from _recommended(item, place, (*versioned, "metadata", "type", "name"))
        for position, axis in _objects(item.get("axes")):
            yield from _unit(axis, place + pointer("axes", position))
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


def _recommended(item: Mapping[str, Any], place: str, keys: tuple[str, ...]) -> Iterator[Finding]:
    for key in keys:
        if key not in item:
            yield Finding(place, f"{short_repr(key)} is recommended, but missing")


def _unit(axis: Mapping[str, Any], place: str) -> Iterator[Finding]:
    known = {"space": SPACE_UNITS, "time": TIME_UNITS}.get(str(axis.get("type")))
    unit = axis.get("unit")
    if known is not None and isinstance(unit, str) and unit not in known:
        example = "micrometer" if axis["type"] == "space" else "second"
        yield Finding(
            place + "/unit", f"{short_repr(unit)} is no unit of UDUNITS-2, such as {short_repr(example)}"
        )
