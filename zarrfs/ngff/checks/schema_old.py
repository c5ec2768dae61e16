"""The rules of the JSON schemas of OME-NGFF 0.1 to 0.3, and those for axes and label images that all versions share.
Pure.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from zarrfs.ngff.checks.report import Finding, pointer
from zarrfs.ngff.reader import is_number
from zarrfs.text import short_repr

__all__ = ["axes_findings", "image_label_findings", "labels_findings", "old_findings"]

Kind = tuple[str, Callable[[Any], bool]]

TEXT: Kind = ("text", lambda value: isinstance(value, str))
NUMBER: Kind = ("a number", is_number)
BOOLEAN: Kind = ("true or false", lambda value: isinstance(value, bool))
INTEGER: Kind = ("a whole number", lambda value: is_number(value) and value == int(value))
COUNT: Kind = ("a whole number above 0", lambda value: INTEGER[1](value) and value > 0)
INDEX: Kind = ("a whole number, 0 or above", lambda value: INTEGER[1](value) and value >= 0)
OBJECT: Kind = ("an object", lambda value: isinstance(value, Mapping))
LIST: Kind = ("a list", lambda value: isinstance(value, list))


def old_findings(document: Mapping[str, Any], version: str) -> Iterator[Finding]:
    """Yield what breaks the schemas of 0.1, 0.2 or 0.3."""
    if "multiscales" in document:
        yield from _items(document, "", "multiscales", lambda item, place: _multiscale(item, place, version))
    if "omero" in document:
        yield from _omero(document["omero"])
    if "plate" in document:
        yield from _plate(document["plate"], version)
    if "well" in document:
        yield from _well(document["well"], version)
    if "labels" in document:
        yield from labels_findings(document["labels"])
    if "image-label" in document:
        yield from image_label_findings(document["image-label"], version)


def _field(
    item: Mapping[str, Any], place: str, key: str, kind: Kind, required: bool = False
) -> Iterator[Finding]:
    if key not in item:
        if required:
            yield Finding(place, f"{short_repr(key)} is missing")
    elif not kind[1](item[key]):
        yield Finding(place + pointer(key), f"expected {kind[0]}, found {short_repr(item[key])}")


def _items(
    item: Mapping[str, Any],
    place: str,
    key: str,
    check: Callable[[Mapping[str, Any], str], Iterator[Finding]],
    unique: bool = True,
) -> Iterator[Finding]:
    """Check a required list of objects: at least one, and no two alike."""
    values = item.get(key)
    here = place + pointer(key)
    if key not in item:
        yield Finding(place, f"{short_repr(key)} is missing")
        return
    if not isinstance(values, list) or not values:
        yield Finding(here, f"expected a list that is not empty, found {short_repr(values)}")
        return
    first: dict[str, int] = {}
    for number, value in enumerate(values):
        if not isinstance(value, Mapping):
            yield Finding(here + pointer(number), f"expected an object, found {short_repr(value)}")
            continue
        if unique:
            earlier = first.setdefault(canonical_json(value), number)
            if earlier != number:
                yield Finding(here + pointer(number), f"is the same as item {earlier}")
        yield from check(value, here + pointer(number))


def canonical_json(value: Any) -> str:
    """Return a text that is the same for equal values, whatever the order of their keys."""
    return json.dumps(value, sort_keys=True)


def _version(item: Mapping[str, Any], place: str, version: str) -> Iterator[Finding]:
    if "version" in item and item["version"] != version:
        yield Finding(
            place + "/version", f"expected {short_repr(version)}, found {short_repr(item['version'])}"
        )


def _multiscale(item: Mapping[str, Any], place: str, version: str) -> Iterator[Finding]:
    yield from _version(item, place, version)
    yield from _field(item, place, "name", TEXT)
    yield from _items(item, place, "datasets", _dataset, unique=False)
    if version != "0.3":
        return
    axes = item.get("axes")
    if not isinstance(axes, list) or len(axes) < 2:
        yield Finding(
            place + ("/axes" if "axes" in item else ""),
            f"expected at least two axes, found {short_repr(axes)}",
        )
        return
    for number, axis in enumerate(axes):
        if axis not in ("t", "c", "z", "y", "x"):
            yield Finding(
                place + pointer("axes", number), f"expected one of t, c, z, y, x, found {short_repr(axis)}"
            )


def _dataset(item: Mapping[str, Any], place: str) -> Iterator[Finding]:
    yield from _field(item, place, "path", TEXT, required=True)


def _omero(omero: Any) -> Iterator[Finding]:
    if not isinstance(omero, Mapping):
        yield Finding("/omero", f"expected an object, found {short_repr(omero)}")
    elif omero.get("channels") != []:
        yield from _items(omero, "/omero", "channels", _channel, unique=False)


def _channel(item: Mapping[str, Any], place: str) -> Iterator[Finding]:
    yield from _field(item, place, "color", TEXT, required=True)
    yield from _field(item, place, "label", TEXT)
    yield from _field(item, place, "family", TEXT)
    yield from _field(item, place, "active", BOOLEAN)
    yield from _field(item, place, "window", OBJECT, required=True)
    window = item.get("window")
    if isinstance(window, Mapping):
        for key in ("start", "min", "end", "max"):
            yield from _field(window, place + "/window", key, NUMBER, required=True)


def _plate(plate: Any, version: str) -> Iterator[Finding]:
    if not isinstance(plate, Mapping):
        yield Finding("/plate", f"expected an object, found {short_repr(plate)}")
        return
    yield from _version(plate, "/plate", version)
    yield from _field(plate, "/plate", "name", TEXT)
    yield from _field(plate, "/plate", "field_count", COUNT)
    yield from _items(plate, "/plate", "rows", _named)
    yield from _items(plate, "/plate", "columns", _named)
    yield from _items(plate, "/plate", "wells", _plate_well)
    if plate.get("acquisitions", []) != []:
        yield from _items(plate, "/plate", "acquisitions", _acquisition, unique=False)


def _named(item: Mapping[str, Any], place: str) -> Iterator[Finding]:
    yield from _field(item, place, "name", TEXT, required=True)


def _plate_well(item: Mapping[str, Any], place: str) -> Iterator[Finding]:
    yield from _field(item, place, "path", TEXT, required=True)


def _acquisition(item: Mapping[str, Any], place: str) -> Iterator[Finding]:
    yield from _field(item, place, "id", INDEX, required=True)
    yield from _field(item, place, "name", TEXT)
    yield from _field(item, place, "maximumfieldcount", COUNT)


def _well(well: Any, version: str) -> Iterator[Finding]:
    if not isinstance(well, Mapping):
        yield Finding("/well", f"expected an object, found {short_repr(well)}")
        return
    yield from _version(well, "/well", version)
    yield from _items(well, "/well", "images", _field_of_view)


def _field_of_view(item: Mapping[str, Any], place: str) -> Iterator[Finding]:
    yield from _field(item, place, "path", TEXT, required=True)
    yield from _field(item, place, "acquisition", INTEGER)


def labels_findings(labels: Any) -> Iterator[Finding]:
    """Yield what is wrong with the list of label images of a ``labels`` group."""
    if not isinstance(labels, list) or not labels:
        yield Finding("/labels", f"expected a list that is not empty, found {short_repr(labels)}")
        return
    for number, path in enumerate(labels):
        if not isinstance(path, str):
            yield Finding(pointer("labels", number), f"expected text, found {short_repr(path)}")


def image_label_findings(label: Any, version: str) -> Iterator[Finding]:
    """Yield what breaks the schema of ``image-label``, which is the same in all versions."""
    if not isinstance(label, Mapping):
        yield Finding("/image-label", f"expected an object, found {short_repr(label)}")
        return
    yield from _version(label, "/image-label", version)
    for key, check in (("colors", _label_color), ("properties", _label_property)):
        if key in label:
            yield from _items(label, "/image-label", key, check)
    yield from _field(label, "/image-label", "source", OBJECT)
    source = label.get("source")
    if isinstance(source, Mapping):
        yield from _field(source, "/image-label/source", "image", TEXT)


def _label_color(item: Mapping[str, Any], place: str) -> Iterator[Finding]:
    yield from _field(item, place, "label-value", NUMBER, required=True)
    if "rgba" in item:
        rgba = item["rgba"]
        if not isinstance(rgba, list) or len(rgba) != 4:
            yield Finding(place + "/rgba", f"expected a list of four numbers, found {short_repr(rgba)}")
            return
        for number, value in enumerate(rgba):
            if not INTEGER[1](value) or not 0 <= value <= 255:
                yield Finding(
                    place + pointer("rgba", number),
                    f"expected a whole number from 0 to 255, found {short_repr(value)}",
                )


def _label_property(item: Mapping[str, Any], place: str) -> Iterator[Finding]:
    yield from _field(item, place, "label-value", INTEGER, required=True)


def axes_findings(item: Mapping[str, Any], place: str) -> Iterator[Finding]:
    """Yield the schema's counting of a multiscale's axes in 0.4 and 0.5: two or three of space.

    The model library only counts where nothing else is wrong with the axes.
    """
    axes = item.get("axes")
    if not isinstance(axes, list) or not all(isinstance(axis, Mapping) for axis in axes):
        return
    if not 2 <= len(axes) <= 5:
        return
    space = sum(axis.get("type") == "space" for axis in axes)
    if not 2 <= space <= 3:
        yield Finding(place + "/axes", "There must be 2 or 3 axes of type 'space'.")
