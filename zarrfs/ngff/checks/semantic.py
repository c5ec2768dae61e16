"""The part of the semantic tier that needs only the document: requirements of the specification's text.

Members of the wrong type are ignored; the schema tier reports them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

from zarrfs.ngff.checks.report import Finding, pointer
from zarrfs.ngff.reader import is_number
from zarrfs.ngff.version_0_6 import SYSTEMS, axes_of
from zarrfs.text import short_repr

__all__ = ["semantic_findings"]

AXES = ("t", "c", "z", "y", "x")
"""The axis names of OME-NGFF 0.3, in the required order."""


def semantic_findings(document: Mapping[str, Any], version: str) -> Iterator[Finding]:
    """Yield the violations of the specification's text, and contradictions within the document."""
    for number, item in _objects(document.get("multiscales")):
        location = pointer("multiscales", number)
        if SYSTEMS in item and "axes" not in item:
            for position, system in _objects(item[SYSTEMS]):
                yield from _axes(system, location + pointer(SYSTEMS, position), version)
        else:
            yield from _axes(item, location, version)
        yield from _transformations(item, location)
        yield from _datasets(item, location)
    yield from _omero(document.get("omero"))
    if isinstance(document.get("image-label"), Mapping) and "multiscales" not in document:
        yield Finding("/image-label", "a label image must have 'multiscales' in addition to 'image-label'")
    yield from _image_label(document.get("image-label"))
    yield from _plate(document.get("plate"))
    yield from _paths(document, "labels")
    yield from _paths(document, "series")


def _objects(value: Any) -> Iterator[tuple[int, Mapping[str, Any]]]:
    for number, item in enumerate(value if isinstance(value, list) else []):
        if isinstance(item, Mapping):
            yield number, item


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _repeated(values: list[Any]) -> list[Any]:
    return [value for value, count in Counter(values).items() if count > 1]


# -- images ------------------------------------------------------------------------------------------------------


def _axes(item: Mapping[str, Any], location: str, version: str) -> Iterator[Finding]:
    axes = _list(item.get("axes"))
    list_location = location + "/axes"
    names = [
        axis if isinstance(axis, str) else axis.get("name")
        for axis in axes
        if isinstance(axis, str | Mapping)
    ]
    for name in _repeated([name for name in names if isinstance(name, str)]):
        yield Finding(
            list_location, f"axis names must be unique, but {short_repr(name)} occurs more than once"
        )
    if version == "0.3":
        order = [name for name in AXES if name in names]
        known = all(isinstance(name, str) and name in AXES for name in names)
        if known and not _repeated(names) and names != order:
            yield Finding(
                list_location, f"axes must be in the order t, c, z, y, x, found {', '.join(map(str, names))}"
            )
        return
    types = [axis.get("type") for axis in axes if isinstance(axis, Mapping)]
    for kind in ("time", "channel"):
        if types.count(kind) > 1:
            yield Finding(
                list_location,
                f"there may be at most one axis of type {short_repr(kind)}, found {types.count(kind)}",
            )
    ranks = [0 if kind == "time" else 2 if kind == "space" else 1 for kind in types]
    if ranks != sorted(ranks):
        yield Finding(
            list_location, "axes must be ordered by type: time first, then channel or custom, then space"
        )


def _transformations(item: Mapping[str, Any], location: str) -> Iterator[Finding]:
    rank = len(axes_of(item)) or None
    if SYSTEMS not in item:
        yield from _sequence(item, location, rank)
    for number, dataset in _objects(item.get("datasets")):
        yield from _sequence(dataset, location + pointer("datasets", number), rank)


def _sequence(item: Mapping[str, Any], location: str, rank: int | None) -> Iterator[Finding]:
    kinds = []
    list_location = location + "/coordinateTransformations"
    if [step.get("type") for _, step in _objects(item.get("coordinateTransformations"))] == ["sequence"]:
        item, list_location = item["coordinateTransformations"][0], list_location + "/0/transformations"
        item = {"coordinateTransformations": item.get("transformations")}
    for number, step in _objects(item.get("coordinateTransformations")):
        kind = step.get("type")
        kinds.append(kind)
        values = step.get(kind) if isinstance(kind, str) else None
        if not isinstance(values, list) or not all(is_number(value) for value in values):
            continue
        step_location = list_location + pointer(number, str(kind))
        if rank is not None and len(values) != rank:
            yield Finding(step_location, f"expected {rank} numbers, one per axis, found {len(values)}")
        if kind == "scale" and any(value <= 0 for value in values):
            yield Finding(step_location, f"scale factors must be positive, found {short_repr(values)}")
    if kinds.count("translation") > 1:
        yield Finding(
            list_location, f"there may be at most one translation, found {kinds.count('translation')}"
        )
    if "scale" in kinds and "translation" in kinds and kinds.index("translation") < kinds.index("scale"):
        yield Finding(list_location, "the translation must come after the scale")


def _datasets(item: Mapping[str, Any], location: str) -> Iterator[Finding]:
    list_location = location + "/datasets"
    datasets = list(_objects(item.get("datasets")))
    paths = [dataset["path"] for _, dataset in datasets if isinstance(dataset.get("path"), str)]
    for path in _repeated(paths):
        yield Finding(list_location, f"path {short_repr(path)} is used by more than one level")
    for number, dataset in datasets:
        if isinstance(dataset.get("path"), str):
            yield from _path(dataset["path"], list_location + pointer(number, "path"))
    space = [
        number
        for number, axis in enumerate(axes_of(item))
        if isinstance(axis, Mapping) and axis.get("type") == "space"
    ]
    scales = [scale for _, dataset in datasets if (scale := _scale(dataset)) is not None]
    for finer, coarser in pairwise(scales):
        if len(finer) == len(coarser) and any(coarser[a] < finer[a] for a in space if a < len(finer)):
            yield Finding(
                list_location,
                f"levels must be ordered from fine to coarse, but scale {coarser} follows {finer}",
            )


def _scale(dataset: Mapping[str, Any]) -> list[float] | None:
    for _, step in _objects(dataset.get("coordinateTransformations")):
        if step.get("type") == "sequence":
            return _scale({"coordinateTransformations": step.get("transformations")})
        values = step.get("scale")
        if step.get("type") == "scale" and isinstance(values, list) and all(is_number(v) for v in values):
            return values
    return None


def _path(path: str, location: str) -> Iterator[Finding]:
    if path.startswith("/") or ".." in path.split("/"):
        yield Finding(location, f"path {short_repr(path)} points outside its group")


def _omero(omero: Any) -> Iterator[Finding]:
    if not isinstance(omero, Mapping):
        return
    for number, channel in _objects(omero.get("channels")):
        location = pointer("omero", "channels", number)
        color = channel.get("color")
        if isinstance(color, str) and not re.fullmatch(r"[0-9A-Fa-f]{6}", color):
            yield Finding(location + "/color", f"expected 6 hexadecimal digits, found {short_repr(color)}")
        window = channel.get("window")
        if not isinstance(window, Mapping):
            continue
        values = {key: window[key] for key in ("min", "start", "end", "max") if is_number(window.get(key))}
        for low, high in (("start", "end"), ("min", "max")):
            if low in values and high in values and values[low] > values[high]:
                yield Finding(
                    location + "/window", f"{low} {values[low]} is greater than {high} {values[high]}"
                )


# -- labels, plates ----------------------------------------------------------------------------------------------


def _image_label(label: Any) -> Iterator[Finding]:
    if not isinstance(label, Mapping):
        return
    for key in ("colors", "properties"):
        values = [item.get("label-value") for _, item in _objects(label.get(key))]
        for value in _repeated([value for value in values if is_number(value)]):
            yield Finding(
                pointer("image-label", key), f"label {value} occurs more than once; the last one is used"
            )
        for number, item in _objects(label.get(key)):
            found: Any = item.get("label-value")
            if is_number(found) and found != int(found):
                yield Finding(
                    pointer("image-label", key, number, "label-value"),
                    f"label values must be integers, found {short_repr(found)}",
                )


def _plate(plate: Any) -> Iterator[Finding]:
    if not isinstance(plate, Mapping):
        return
    names = {}
    for key in ("rows", "columns"):
        names[key] = [item.get("name") for _, item in _objects(plate.get(key))]
        for name in _repeated([name for name in names[key] if isinstance(name, str)]):
            yield Finding(pointer("plate", key), f"name {short_repr(name)} occurs more than once")
    known = {key: {name for name in found if isinstance(name, str)} for key, found in names.items()}
    wells = list(_objects(plate.get("wells")))
    for path in _repeated([well["path"] for _, well in wells if isinstance(well.get("path"), str)]):
        yield Finding("/plate/wells", f"well {short_repr(path)} occurs more than once")
    for number, well in wells:
        yield from _plate_well(well, pointer("plate", "wells", number), names, known)
    ids = [item.get("id") for _, item in _objects(plate.get("acquisitions"))]
    for value in _repeated([value for value in ids if is_number(value)]):
        yield Finding("/plate/acquisitions", f"id {value} occurs more than once")


def _plate_well(
    well: Mapping[str, Any], location: str, names: Mapping[str, list[Any]], known: Mapping[str, set[str]]
) -> Iterator[Finding]:
    path = well.get("path")
    parts = path.split("/") if isinstance(path, str) else []
    for position, (key, list_key) in enumerate((("rowIndex", "rows"), ("columnIndex", "columns"))):
        index = well.get(key)
        if len(parts) == 2 and names[list_key] and parts[position] not in known[list_key]:
            yield Finding(location + "/path", f"{short_repr(parts[position])} is not one of the {list_key}")
        if not isinstance(index, int) or isinstance(index, bool):
            continue
        if not 0 <= index < len(names[list_key]):
            yield Finding(
                f"{location}/{key}",
                f"index {index} is out of range: there are {len(names[list_key])} {list_key}",
            )
        elif len(parts) == 2 and parts[position] != names[list_key][index]:
            found = names[list_key][index]
            yield Finding(
                f"{location}/{key}",
                f"index {index} is {short_repr(found)}, but the path has {short_repr(parts[position])}",
            )


def _paths(document: Mapping[str, Any], key: str) -> Iterator[Finding]:
    seen: set[str] = set()
    for number, path in enumerate(_list(document.get(key))):
        if isinstance(path, str):
            yield from _path(path, pointer(key, number))
            if path in seen:
                yield Finding(pointer(key, number), f"{path!r} occurs more than once")
            seen.add(path)
