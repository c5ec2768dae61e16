"""OME-NGFF metadata of version 0.4 <-> 0.5. Version 0.4 is kept in Zarr v2, 0.5 in Zarr v3.

0.5 differs from 0.4 in where things are: all is below the attribute ``ome``, which has the version, and arrays have the
names of the axes as names of their dimensions. https://ngff.openmicroscopy.org/0.5/#version-history
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

__all__ = ["VersionChange", "for_zarr_format"]

VERSIONED = ("plate", "well", "image-label")
"""Objects that have a version of their own in 0.4."""

OME = "ome"


@dataclass(frozen=True)
class VersionChange:
    """Attributes of a node as the other version has them.

    Attributes:
        attributes: all attributes of the node.
        note: what was done, or why nothing was; empty where the node has no OME-NGFF metadata.
        axes: the names of the axes of the arrays, by path relative to the node.
    """

    attributes: dict[str, Any]
    note: str = ""
    axes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def for_zarr_format(attributes: Mapping[str, Any], name: str, zarr_format: int | str) -> VersionChange:
    """Return the attributes of a group with the version of OME-NGFF that belongs into a Zarr format: 0.5 in 3, 0.4 in
    2. ``name`` is that of the group. Other versions, and what is no OME-NGFF, stay as they are.
    """
    if zarr_format == 3:
        return _upgraded(attributes, name)
    if zarr_format == 2:
        return _downgraded(attributes)
    return VersionChange(dict(attributes))


def _upgraded(attributes: Mapping[str, Any], name: str) -> VersionChange:
    found = _parts_of_0_4(attributes, name)
    if not found or OME in attributes:
        return VersionChange(dict(attributes))
    versions = {_version(part) for part in _versioned(found)} - {None, "0.4"}
    if versions or not all(_has_axes(item) for item in found.get("multiscales", ())):
        known = ", ".join(sorted(map(str, versions))) or "before 0.4"
        return VersionChange(dict(attributes), f"OME-NGFF {known} stays as it is, only 0.4 can become 0.5")
    rest = {key: value for key, value in attributes.items() if key not in found}
    ome: dict[str, Any] = {"version": "0.5"}
    for key, value in found.items():
        if key == "multiscales":
            ome[key] = [_without_version(item) for item in value]
        else:
            ome[key] = _without_version(value) if isinstance(value, Mapping) else value
    return VersionChange({**rest, OME: ome}, "OME-NGFF 0.4 becomes 0.5", _axes(ome))


def _downgraded(attributes: Mapping[str, Any]) -> VersionChange:
    ome = attributes.get(OME)
    if not isinstance(ome, Mapping):
        return VersionChange(dict(attributes))
    if ome.get("version") != "0.5":
        return VersionChange(
            dict(attributes), f"OME-NGFF {ome.get('version')} stays as it is, only 0.5 can become 0.4"
        )
    found = {}
    for key, value in ome.items():
        if key == "version":
            continue
        if key == "multiscales" and isinstance(value, list):
            value = [_with_version(item) for item in value]
        elif key in VERSIONED:
            value = _with_version(value)
        found[key] = value
    rest = {key: value for key, value in attributes.items() if key != OME}
    return VersionChange({**rest, **found}, "OME-NGFF 0.5 becomes 0.4", _axes(ome))


def _parts_of_0_4(attributes: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return the attributes that are OME-NGFF: ``labels`` and ``series`` are words that others use too."""
    found: dict[str, Any] = {}
    multiscales = attributes.get("multiscales")
    if (
        isinstance(multiscales, list)
        and multiscales
        and all(isinstance(item, Mapping) and isinstance(item.get("datasets"), list) for item in multiscales)
    ):
        found["multiscales"] = multiscales
        for key in ("omero", "image-label"):
            if isinstance(attributes.get(key), Mapping):
                found[key] = attributes[key]
    for key, inner in (("plate", "wells"), ("well", "images")):
        value = attributes.get(key)
        if isinstance(value, Mapping) and isinstance(value.get(inner), list):
            found[key] = value
    for key, group in (("labels", "labels"), ("series", "OME")):
        value = attributes.get(key)
        if name == group and isinstance(value, list) and all(isinstance(item, str) for item in value):
            found[key] = value
    if "bioformats2raw.layout" in attributes:
        found["bioformats2raw.layout"] = attributes["bioformats2raw.layout"]
    return found


def _versioned(found: Mapping[str, Any]) -> list[Any]:
    return [*found.get("multiscales", ()), *(found[key] for key in VERSIONED if key in found)]


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
    found: dict[str, tuple[str, ...]] = {}
    multiscales = ome.get("multiscales")
    for item in multiscales if isinstance(multiscales, list) else ():
        if not isinstance(item, Mapping) or not _has_axes(item):
            continue
        for dataset in item.get("datasets", ()):
            if isinstance(dataset, Mapping) and isinstance(dataset.get("path"), str):
                found[dataset["path"].strip("/")] = tuple(axis["name"] for axis in item["axes"])
    return found
