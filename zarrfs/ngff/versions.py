"""Conversion of OME-NGFF metadata between version 0.4 (stored in Zarr v2) and 0.5 (stored in Zarr v3).

In 0.5 all metadata and the version are in the attribute ``ome``, and the dimension names of arrays are the names of the
axes. See https://ngff.openmicroscopy.org/0.5/#version-history
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from zarrfs.text import MAX_VALUE, safe_text

__all__ = ["VersionChange", "for_zarr_format"]

VERSIONED = ("plate", "well", "image-label")
"""Objects with a version member in 0.4, in addition to multiscales."""

OME = "ome"


@dataclass(frozen=True)
class VersionChange:
    """The result of a conversion.

    Attributes:
        attributes: all attributes of the node after the conversion.
        note: what was converted, or why nothing was converted; empty if the node has no OME-NGFF metadata.
        axes: the axis names of the arrays, by path relative to the node.
    """

    attributes: dict[str, Any]
    note: str = ""
    axes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def for_zarr_format(attributes: Mapping[str, Any], name: str, zarr_format: int | str) -> VersionChange:
    """Return the attributes of a group with the OME-NGFF version of a Zarr format: 0.5 for format 3, 0.4 for format 2.
    ``name`` is the name of the group. Other versions and other attributes are unchanged.
    """
    conversions: dict[int | str, Callable[[Mapping[str, Any], str], VersionChange]] = {3: _to_0_5, 2: _to_0_4}
    convert = conversions.get(zarr_format)
    return VersionChange(dict(attributes)) if convert is None else convert(attributes, name)


def _to_0_5(attributes: Mapping[str, Any], name: str) -> VersionChange:
    ngff = _parts_of_0_4(attributes, name)
    if not ngff or OME in attributes:
        return VersionChange(dict(attributes))
    versions = {_version(part) for part in _versioned(ngff)} - {None, "0.4"}
    if versions or not all(_has_axes(item) for item in ngff.get("multiscales", ())):
        found_versions = safe_text(", ".join(sorted(map(str, versions))) or "before 0.4", MAX_VALUE)
        return VersionChange(
            dict(attributes), f"OME-NGFF {found_versions} is unchanged: only 0.4 can be converted to 0.5"
        )
    other_attributes = {key: value for key, value in attributes.items() if key not in ngff}
    ome: dict[str, Any] = {"version": "0.5"}
    for key, value in ngff.items():
        if key == "multiscales":
            ome[key] = [_without_version(item) for item in value]
        else:
            ome[key] = _without_version(value) if isinstance(value, Mapping) else value
    return VersionChange({**other_attributes, OME: ome}, "OME-NGFF 0.4 converted to 0.5", _axes(ome))


def _to_0_4(attributes: Mapping[str, Any], name: str) -> VersionChange:
    ome = attributes.get(OME)
    if not isinstance(ome, Mapping):
        return VersionChange(dict(attributes))
    if ome.get("version") != "0.5":
        return VersionChange(
            dict(attributes),
            f"OME-NGFF {safe_text(str(ome.get('version')), MAX_VALUE)} is unchanged: only 0.5 can be converted to 0.4",
        )
    ngff = {}
    for key, value in ome.items():
        if key == "version":
            continue
        if key == "multiscales" and isinstance(value, list):
            value = [_with_version(item) for item in value]
        elif key in VERSIONED:
            value = _with_version(value)
        ngff[key] = value
    other_attributes = {key: value for key, value in attributes.items() if key != OME}
    return VersionChange({**other_attributes, **ngff}, "OME-NGFF 0.5 converted to 0.4", _axes(ome))


def _parts_of_0_4(attributes: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return the attributes that are OME-NGFF metadata. ``labels`` and ``series`` count only in groups of the name that
    the specification requires, because other software uses these keys as well.
    """
    ngff: dict[str, Any] = {}
    multiscales = attributes.get("multiscales")
    if (
        isinstance(multiscales, list)
        and multiscales
        and all(isinstance(item, Mapping) and isinstance(item.get("datasets"), list) for item in multiscales)
    ):
        ngff["multiscales"] = multiscales
        for key in ("omero", "image-label"):
            if isinstance(attributes.get(key), Mapping):
                ngff[key] = attributes[key]
    for key, inner in (("plate", "wells"), ("well", "images")):
        value = attributes.get(key)
        if isinstance(value, Mapping) and isinstance(value.get(inner), list):
            ngff[key] = value
    for key, group in (("labels", "labels"), ("series", "OME")):
        value = attributes.get(key)
        if name == group and isinstance(value, list) and all(isinstance(item, str) for item in value):
            ngff[key] = value
    if "bioformats2raw.layout" in attributes:
        ngff["bioformats2raw.layout"] = attributes["bioformats2raw.layout"]
    return ngff


def _versioned(ngff: Mapping[str, Any]) -> list[Any]:
    return [*ngff.get("multiscales", ()), *(ngff[key] for key in VERSIONED if key in ngff)]


def _version(part: Mapping[str, Any]) -> Any:
    version = part.get("version")
    return version if version is None or isinstance(version, str) else repr(version)


def _has_axes(item: Mapping[str, Any]) -> bool:
    axes = item.get("axes")
    return isinstance(axes, list) and all(
        isinstance(axis, Mapping) and isinstance(axis.get("name"), str) for axis in axes
    )


def _without_version(part: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in part.items() if key != "version"}


def _with_version(part: Any) -> Any:
    return {"version": "0.4", **_without_version(part)} if isinstance(part, Mapping) else part


def _axes(ome: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    ngff: dict[str, tuple[str, ...]] = {}
    multiscales = ome.get("multiscales")
    for item in multiscales if isinstance(multiscales, list) else ():
        if not isinstance(item, Mapping) or not _has_axes(item):
            continue
        for dataset in item.get("datasets", ()):
            if isinstance(dataset, Mapping) and isinstance(dataset.get("path"), str):
                ngff[dataset["path"].strip("/")] = tuple(axis["name"] for axis in item["axes"])
    return ngff
