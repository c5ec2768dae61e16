"""The schema tier of OME-Zarr 0.6rc0: the rules of its JSON schemas.

Where a schema and the text of the specification differ, both are accepted: the interpolation ``bspline-cubic`` of the
text is ``cubic`` in the schema, and paths may be null by the text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from zarrfs.ngff.checks.members import (
    BOOLEAN,
    COUNT,
    INDEX,
    INTEGER,
    NUMBER,
    OBJECT,
    STRING,
    Kind,
    field,
    items,
)
from zarrfs.ngff.checks.report import Finding, pointer
from zarrfs.ngff.checks.schema_old import field_of_view_findings, image_label_findings, labels_findings
from zarrfs.ngff.parse import OME_KEYS
from zarrfs.ngff.reader import is_number
from zarrfs.ngff.version_0_6 import MAX_DEPTH, SYSTEMS, TRANSFORMATIONS, VERSION_0_6
from zarrfs.text import short_repr

__all__ = ["schema_0_6_findings"]

Findings = Iterator[Finding]

NAME: Kind = ("a non-empty string", lambda value: isinstance(value, str) and value != "")
PATH: Kind = ("a string or null", lambda value: value is None or isinstance(value, str))
NAMED_PART: Kind = (
    "letters and digits",
    lambda value: isinstance(value, str) and re.fullmatch(r"[A-Za-z0-9]+", value) is not None,
)
WELL_PATH: Kind = (
    "the name of a row, '/' and the name of a column",
    lambda value: isinstance(value, str) and re.fullmatch(r"[A-Za-z0-9]+/[A-Za-z0-9]+", value) is not None,
)
AXIS_NUMBER: Kind = ("an integer from 0 to 4", lambda value: INTEGER[1](value) and 0 <= value <= 4)
POSITIVE: Kind = ("a number above 0", lambda value: is_number(value) and value > 0)

MAX_AXES = 5
INTERPOLATIONS = ("nearest", "linear", "cubic", "bspline-cubic")


def schema_0_6_findings(document: Mapping[str, Any]) -> Findings:
    """Yield the violations of the schemas of OME-Zarr 0.6rc0."""
    if document.get("version") != VERSION_0_6:
        found = short_repr(document["version"]) if "version" in document else "none"
        yield Finding(
            "/version" if "version" in document else "", f"expected version {VERSION_0_6!r}, found {found}"
        )
    if not any(key in document for key in OME_KEYS):
        yield Finding("", f"expected one of the members {', '.join(OME_KEYS)}")
    if "multiscales" in document:
        yield from items(document, "", "multiscales", _multiscale)
    checks: dict[str, Callable[[Mapping[str, Any]], Findings]] = {
        "scene": _scene,
        "omero": _omero,
        "plate": _plate,
        "well": _well,
    }
    for key, check in checks.items():
        if key in document:
            yield from field(document, "", key, OBJECT)
            if isinstance(document[key], Mapping):
                yield from check(document[key])
    if "image-label" in document:
        yield from image_label_findings(document["image-label"], None)
    if "labels" in document:
        yield from labels_findings(document["labels"])
    if "series" in document:
        yield from _list(document, "", "series", STRING)
    if document.get("bioformats2raw.layout", 3) != 3:
        found = short_repr(document["bioformats2raw.layout"])
        yield Finding("/bioformats2raw.layout", f"expected 3, found {found}")


def _list(
    item: Mapping[str, Any], location: str, key: str, kind: Kind, lengths: tuple[int, int] | None = None
) -> Findings:
    """Check a required list of values of one kind, which are distinct if ``lengths`` limits their number."""
    values = item.get(key)
    if key not in item:
        yield Finding(location, f"{short_repr(key)} is missing")
        return
    location += pointer(key)
    if not isinstance(values, list):
        yield Finding(location, f"expected a list, found {short_repr(values)}")
        return
    invalid = [number for number, value in enumerate(values) if not kind[1](value)]
    for number in invalid:
        yield Finding(location + pointer(number), f"expected {kind[0]}, found {short_repr(values[number])}")
    if lengths is None or invalid:
        return
    if not lengths[0] <= len(values) <= lengths[1]:
        yield Finding(location, f"expected {lengths[0]} to {lengths[1]} items, found {len(values)}")
    elif len(set(values)) < len(values):
        yield Finding(location, f"the items must be distinct, found {short_repr(values)}")


# -- images and scenes -------------------------------------------------------------------------------------------


def _multiscale(item: Mapping[str, Any], location: str) -> Findings:
    yield from field(item, location, "name", STRING)
    yield from items(item, location, "datasets", _dataset, unique=False)
    yield from items(item, location, SYSTEMS, _system, unique=False)
    if TRANSFORMATIONS in item:
        yield from items(item, location, TRANSFORMATIONS, _edge, unique=False)


def _scene(scene: Mapping[str, Any]) -> Findings:
    yield from items(scene, "/scene", TRANSFORMATIONS, _scene_edge, unique=False)
    if scene.get(SYSTEMS, []) != []:
        yield from items(scene, "/scene", SYSTEMS, _system)


def _system(item: Mapping[str, Any], location: str) -> Findings:
    yield from field(item, location, "name", NAME, required=True)
    yield from items(item, location, "axes", _axis)
    axes = item.get("axes")
    if not isinstance(axes, list) or not axes:
        return
    if len(axes) > MAX_AXES:
        yield Finding(location + "/axes", f"expected at most {MAX_AXES} axes, found {len(axes)}")
    types = [axis.get("type") for axis in axes if isinstance(axis, Mapping)]
    spatial, indices = types.count("space"), types.count("array")
    if (2 <= spatial <= 3) == (indices >= 2):
        found = f"{spatial} of type 'space' and {indices} of type 'array'"
        yield Finding(
            location + "/axes",
            f"expected two or three axes of type 'space', or at least two of type 'array', found {found}",
        )


def _axis(item: Mapping[str, Any], location: str) -> Findings:
    yield from field(item, location, "name", NAME, required=True)
    for key in ("longName", "type", "unit"):
        yield from field(item, location, key, STRING)
    yield from field(item, location, "discrete", BOOLEAN)


def _dataset(item: Mapping[str, Any], location: str) -> Findings:
    yield from field(item, location, "path", STRING, required=True)
    steps = item.get(TRANSFORMATIONS)
    yield from items(item, location, TRANSFORMATIONS, _level_edge, unique=False)
    if isinstance(steps, list) and len(steps) > 1:
        yield Finding(location + pointer(TRANSFORMATIONS), f"expected one transformation, found {len(steps)}")


def _level_edge(item: Mapping[str, Any], location: str) -> Findings:
    kind = item.get("type")
    if kind not in ("scale", "identity", "sequence"):
        yield Finding(
            location + ("/type" if "type" in item else ""),
            "the transformation of a level must be a scale, an identity, or a sequence of a scale and a translation, "
            f"found {short_repr(kind)}",
        )
    else:
        yield from _transformation(item, location)
        steps = item.get("transformations")
        if kind == "sequence" and isinstance(steps, list):
            kinds = [step.get("type") if isinstance(step, Mapping) else None for step in steps]
            if len(kinds) != 2 or not all(found in ("scale", "translation") for found in kinds):
                yield Finding(
                    location + "/transformations",
                    f"expected a scale and a translation, found {short_repr(kinds)}",
                )
    yield from _reference(item, location, "input", "path")
    yield from _reference(item, location, "output", "name")


def _edge(item: Mapping[str, Any], location: str) -> Findings:
    yield from _transformation(item, location)
    for key in ("input", "output"):
        yield from _reference(item, location, key, "name")


def _scene_edge(item: Mapping[str, Any], location: str) -> Findings:
    yield from _edge(item, location)
    for key in ("input", "output"):
        reference = item.get(key)
        unknown = sorted(set(reference) - {"name", "path"}) if isinstance(reference, Mapping) else ()
        if unknown:
            yield Finding(f"{location}/{key}", f"unknown members: {', '.join(map(short_repr, unknown))}")


def _reference(item: Mapping[str, Any], location: str, key: str, required: str) -> Findings:
    """Check a reference to a coordinate system, of which the member ``required`` must exist."""
    reference = item.get(key)
    yield from field(item, location, key, OBJECT, required=True)
    if isinstance(reference, Mapping):
        for member in ("name", "path"):
            kind = STRING if member == required else PATH
            yield from field(reference, f"{location}/{key}", member, kind, member == required)


# -- transformations ---------------------------------------------------------------------------------------------


def _transformation(item: Mapping[str, Any], location: str, depth: int = 0) -> Findings:
    yield from field(item, location, "name", STRING)
    kind = item.get("type")
    check = TYPES.get(kind) if isinstance(kind, str) else None
    if depth > MAX_DEPTH:
        yield Finding(location, f"transformations contain each other more than {MAX_DEPTH} times")
    elif check is not None:
        yield from check(item, location, depth)
    elif "type" not in item:
        yield Finding(location, "'type' is missing")
    else:
        yield Finding(location + "/type", f"expected one of {', '.join(TYPES)}, found {short_repr(kind)}")


def _identity(item: Mapping[str, Any], location: str, depth: int) -> Findings:
    return iter(())


def _scale(item: Mapping[str, Any], location: str, depth: int) -> Findings:
    return _list(item, location, "scale", POSITIVE)


def _translation(item: Mapping[str, Any], location: str, depth: int) -> Findings:
    return _list(item, location, "translation", NUMBER)


def _map_axis(item: Mapping[str, Any], location: str, depth: int) -> Findings:
    return _list(item, location, "mapAxis", AXIS_NUMBER, (2, MAX_AXES))


def _project_axis(item: Mapping[str, Any], location: str, depth: int) -> Findings:
    keys = ("droppedInputs", "createdOutputs")
    if not any(key in item for key in keys):
        yield Finding(location, "'droppedInputs' or 'createdOutputs' is missing")
    for key in keys:
        if key in item:
            yield from _list(item, location, key, AXIS_NUMBER, (1, 3))


def _matrix(item: Mapping[str, Any], location: str, depth: int) -> Findings:
    key = str(item["type"])
    if (key in item) == ("path" in item):
        found = "both" if key in item else "neither"
        yield Finding(location, f"expected either {key!r} or 'path', found {found}")
        return
    yield from field(item, location, "path", STRING)
    if "path" in item:
        return
    rows = item[key]
    location += pointer(key)
    if not isinstance(rows, list):
        yield Finding(location, f"expected a list of rows, found {short_repr(rows)}")
        return
    before = len(rows)
    for number, row in enumerate(rows):
        if not isinstance(row, list) or not all(map(is_number, row)):
            yield Finding(location + pointer(number), f"expected a list of numbers, found {short_repr(row)}")
        elif key == "rotation" and len(row) != before:
            yield Finding(
                location + pointer(number),
                f"expected a square matrix, found {len(row)} numbers in one of {before} rows",
            )
    if key == "rotation" and not 2 <= len(rows) <= MAX_AXES:
        yield Finding(location, f"expected 2 to {MAX_AXES} rows, found {len(rows)}")


def _bijection(item: Mapping[str, Any], location: str, depth: int) -> Findings:
    for key in ("forward", "inverse"):
        yield from field(item, location, key, OBJECT, required=True)
        if isinstance(item.get(key), Mapping):
            yield from _transformation(item[key], f"{location}/{key}", depth + 1)


def _sequence(item: Mapping[str, Any], location: str, depth: int) -> Findings:
    return items(
        item,
        location,
        "transformations",
        lambda step, place: _transformation(step, place, depth + 1),
        unique=False,
    )


def _by_dimension(item: Mapping[str, Any], location: str, depth: int) -> Findings:
    def part(member: Mapping[str, Any], place: str) -> Findings:
        yield from field(member, place, "transformation", OBJECT, required=True)
        if isinstance(member.get("transformation"), Mapping):
            yield from _transformation(member["transformation"], place + "/transformation", depth + 1)
        for key in ("inputAxes", "outputAxes"):
            yield from _list(member, place, key, INTEGER)

    return items(item, location, "transformations", part, unique=False)


def _field(item: Mapping[str, Any], location: str, depth: int) -> Findings:
    yield from field(item, location, "path", STRING, required=True)
    method = item.get("interpolation", "linear")
    if method not in INTERPOLATIONS:
        yield Finding(
            location + "/interpolation",
            f"expected one of {', '.join(INTERPOLATIONS)}, found {short_repr(method)}",
        )


TYPES: Mapping[str, Callable[[Mapping[str, Any], str, int], Findings]] = {
    "identity": _identity,
    "mapAxis": _map_axis,
    "projectAxis": _project_axis,
    "scale": _scale,
    "translation": _translation,
    "affine": _matrix,
    "rotation": _matrix,
    "bijection": _bijection,
    "sequence": _sequence,
    "byDimension": _by_dimension,
    "displacements": _field,
    "coordinates": _field,
}
"""The rules for the members of each type of transformation."""


# -- channels and plates -----------------------------------------------------------------------------------------


def _omero(omero: Mapping[str, Any]) -> Findings:
    if omero.get("channels") != []:
        yield from items(omero, "/omero", "channels", _channel, unique=False)


def _channel(item: Mapping[str, Any], location: str) -> Findings:
    for key in ("label", "family", "color"):
        yield from field(item, location, key, STRING)
    yield from field(item, location, "active", BOOLEAN)
    yield from field(item, location, "window", OBJECT)
    window = item.get("window")
    if isinstance(window, Mapping):
        for key in ("start", "min", "end", "max"):
            yield from field(window, location + "/window", key, NUMBER, required=True)


def _plate(plate: Mapping[str, Any]) -> Findings:
    yield from field(plate, "/plate", "name", STRING)
    yield from field(plate, "/plate", "field_count", COUNT)
    yield from items(plate, "/plate", "rows", _named)
    yield from items(plate, "/plate", "columns", _named)
    yield from items(plate, "/plate", "wells", _plate_well)
    if plate.get("acquisitions", []) != []:
        yield from items(plate, "/plate", "acquisitions", _acquisition, unique=False)


def _named(item: Mapping[str, Any], location: str) -> Findings:
    return field(item, location, "name", NAMED_PART, required=True)


def _plate_well(item: Mapping[str, Any], location: str) -> Findings:
    yield from field(item, location, "path", WELL_PATH, required=True)
    for key in ("rowIndex", "columnIndex"):
        yield from field(item, location, key, INDEX, required=True)


def _acquisition(item: Mapping[str, Any], location: str) -> Findings:
    yield from field(item, location, "id", INDEX, required=True)
    for key in ("name", "description"):
        yield from field(item, location, key, STRING)
    yield from field(item, location, "maximumfieldcount", COUNT)
    for key in ("starttime", "endtime"):
        yield from field(item, location, key, INDEX)


def _well(well: Mapping[str, Any]) -> Findings:
    yield from items(well, "/well", "images", _field_of_view)
    yield from field_of_view_findings(well)


def _field_of_view(item: Mapping[str, Any], location: str) -> Findings:
    yield from field(item, location, "path", NAME, required=True)
    yield from field(item, location, "acquisition", INTEGER)
    path = item.get("path")
    if isinstance(path, str) and (path.startswith("__") or (path and not path.strip("."))):
        yield Finding(location + "/path", f"expected a name that is not reserved, found {short_repr(path)}")
