"""The rules of the JSON schemas of OME-NGFF 0.1 to 0.3, and those of later versions that the models do not check."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from zarrfs.ngff.checks.members import BOOLEAN, COUNT, INDEX, INTEGER, NUMBER, OBJECT, STRING, field, items
from zarrfs.ngff.checks.report import Finding, pointer
from zarrfs.text import short_repr

__all__ = [
    "axes_findings",
    "field_of_view_findings",
    "image_label_findings",
    "labels_findings",
    "old_findings",
    "scale_findings",
]


def old_findings(document: Mapping[str, Any], version: str) -> Iterator[Finding]:
    """Yield the violations of the schemas of 0.1, 0.2 or 0.3."""
    if "multiscales" in document:
        yield from items(
            document, "", "multiscales", lambda item, location: _multiscale(item, location, version)
        )
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


def _version(item: Mapping[str, Any], location: str, version: str) -> Iterator[Finding]:
    if "version" in item and item["version"] != version:
        yield Finding(
            location + "/version", f"expected {short_repr(version)}, found {short_repr(item['version'])}"
        )


def _multiscale(item: Mapping[str, Any], location: str, version: str) -> Iterator[Finding]:
    yield from _version(item, location, version)
    yield from field(item, location, "name", STRING)
    yield from items(item, location, "datasets", _dataset, unique=False)
    if version != "0.3":
        return
    axes = item.get("axes")
    if not isinstance(axes, list) or len(axes) < 2:
        yield Finding(
            location + ("/axes" if "axes" in item else ""),
            f"expected at least two axes, found {short_repr(axes)}",
        )
        return
    for number, axis in enumerate(axes):
        if axis not in ("t", "c", "z", "y", "x"):
            yield Finding(
                location + pointer("axes", number), f"expected one of t, c, z, y, x, found {short_repr(axis)}"
            )


def _dataset(item: Mapping[str, Any], location: str) -> Iterator[Finding]:
    yield from field(item, location, "path", STRING, required=True)


def _omero(omero: Any) -> Iterator[Finding]:
    if not isinstance(omero, Mapping):
        yield Finding("/omero", f"expected an object, found {short_repr(omero)}")
    elif omero.get("channels") != []:
        yield from items(omero, "/omero", "channels", _channel, unique=False)


def _channel(item: Mapping[str, Any], location: str) -> Iterator[Finding]:
    yield from field(item, location, "color", STRING, required=True)
    yield from field(item, location, "label", STRING)
    yield from field(item, location, "family", STRING)
    yield from field(item, location, "active", BOOLEAN)
    yield from field(item, location, "window", OBJECT, required=True)
    window = item.get("window")
    if isinstance(window, Mapping):
        for key in ("start", "min", "end", "max"):
            yield from field(window, location + "/window", key, NUMBER, required=True)


def _plate(plate: Any, version: str) -> Iterator[Finding]:
    if not isinstance(plate, Mapping):
        yield Finding("/plate", f"expected an object, found {short_repr(plate)}")
        return
    yield from _version(plate, "/plate", version)
    yield from field(plate, "/plate", "name", STRING)
    yield from field(plate, "/plate", "field_count", COUNT)
    yield from items(plate, "/plate", "rows", _named)
    yield from items(plate, "/plate", "columns", _named)
    yield from items(plate, "/plate", "wells", _plate_well)
    if plate.get("acquisitions", []) != []:
        yield from items(plate, "/plate", "acquisitions", _acquisition, unique=False)


def _named(item: Mapping[str, Any], location: str) -> Iterator[Finding]:
    yield from field(item, location, "name", STRING, required=True)


def _plate_well(item: Mapping[str, Any], location: str) -> Iterator[Finding]:
    yield from field(item, location, "path", STRING, required=True)


def _acquisition(item: Mapping[str, Any], location: str) -> Iterator[Finding]:
    yield from field(item, location, "id", INDEX, required=True)
    yield from field(item, location, "name", STRING)
    yield from field(item, location, "maximumfieldcount", COUNT)


def _well(well: Any, version: str) -> Iterator[Finding]:
    if not isinstance(well, Mapping):
        yield Finding("/well", f"expected an object, found {short_repr(well)}")
        return
    yield from _version(well, "/well", version)
    yield from items(well, "/well", "images", _field_of_view)


def _field_of_view(item: Mapping[str, Any], location: str) -> Iterator[Finding]:
    yield from field(item, location, "path", STRING, required=True)
    yield from field(item, location, "acquisition", INTEGER)


def labels_findings(labels: Any) -> Iterator[Finding]:
    """Yield the violations in the list of label images of a ``labels`` group."""
    if not isinstance(labels, list) or not labels:
        yield Finding("/labels", f"expected a non-empty list, found {short_repr(labels)}")
        return
    for number, path in enumerate(labels):
        if not isinstance(path, str):
            yield Finding(pointer("labels", number), f"expected a string, found {short_repr(path)}")


def image_label_findings(label: Any, version: str | None) -> Iterator[Finding]:
    """Yield the violations of the schema of ``image-label``, which is the same in all versions. ``version`` is the one
    that it may state, None if it states none (since 0.6).
    """
    if not isinstance(label, Mapping):
        yield Finding("/image-label", f"expected an object, found {short_repr(label)}")
        return
    if version is not None:
        yield from _version(label, "/image-label", version)
    for key, check in (("colors", _label_color), ("properties", _label_property)):
        if key in label:
            yield from items(label, "/image-label", key, check)
    yield from field(label, "/image-label", "source", OBJECT)
    source = label.get("source")
    if isinstance(source, Mapping):
        yield from field(source, "/image-label/source", "image", STRING)


def _label_color(item: Mapping[str, Any], location: str) -> Iterator[Finding]:
    yield from field(item, location, "label-value", NUMBER, required=True)
    if "rgba" in item:
        rgba = item["rgba"]
        if not isinstance(rgba, list) or len(rgba) != 4:
            yield Finding(location + "/rgba", f"expected a list of four numbers, found {short_repr(rgba)}")
            return
        for number, value in enumerate(rgba):
            if not INTEGER[1](value) or not 0 <= value <= 255:
                yield Finding(
                    location + pointer("rgba", number),
                    f"expected an integer from 0 to 255, found {short_repr(value)}",
                )


def _label_property(item: Mapping[str, Any], location: str) -> Iterator[Finding]:
    yield from field(item, location, "label-value", INTEGER, required=True)


def axes_findings(item: Mapping[str, Any], location: str) -> Iterator[Finding]:
    """Yield a finding unless a multiscale image of 0.4 or 0.5 has two or three space axes."""
    axes = item.get("axes")
    if not isinstance(axes, list) or not all(isinstance(axis, Mapping) for axis in axes):
        return
    if not 2 <= len(axes) <= 5:
        return
    space_axes_count = sum(axis.get("type") == "space" for axis in axes)
    if not 2 <= space_axes_count <= 3:
        yield Finding(
            location + "/axes", f"expected two or three axes of type 'space', found {space_axes_count}"
        )


def scale_findings(item: Mapping[str, Any], location: str) -> Iterator[Finding]:
    """Yield a finding for each list of transformations of 0.4 or 0.5 that does not contain exactly one scale."""
    datasets = item.get("datasets")
    owners = [(item, location)]
    for number, dataset in enumerate(datasets if isinstance(datasets, list) else ()):
        if isinstance(dataset, Mapping):
            owners.append((dataset, location + pointer("datasets", number)))
    for owner, owner_location in owners:
        transformations = owner.get("coordinateTransformations")
        if not isinstance(transformations, list) or not transformations:
            continue
        types = [entry.get("type") if isinstance(entry, Mapping) else None for entry in transformations]
        if all(kind in ("scale", "translation") for kind in types) and types.count("scale") != 1:
            yield Finding(
                f"{owner_location}/coordinateTransformations",
                f"expected exactly one scale transformation, found {types.count('scale')}",
            )


FIELD_OF_VIEW = re.compile(r"[A-Za-z0-9._-]+")


def field_of_view_findings(well: Mapping[str, Any]) -> Iterator[Finding]:
    """Yield a finding for each path of a field of view of 0.4 or 0.5 that is not one alphanumeric name."""
    images = well.get("images")
    for number, image in enumerate(images if isinstance(images, list) else ()):
        path = image.get("path") if isinstance(image, Mapping) else None
        if isinstance(path, str) and not FIELD_OF_VIEW.fullmatch(path):
            yield Finding(
                pointer("well", "images", number, "path"),
                f"expected a name of letters, digits, '.', '_' and '-', found {short_repr(path)}",
            )
