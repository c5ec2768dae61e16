"""Conversion of OME-NGFF metadata between version 0.4 (stored in Zarr v2), 0.5 and 0.6 (stored in Zarr v3).

In 0.5 all metadata and the version are in the attribute ``ome``, and the dimension names of arrays are the names of the
axes. In 0.6 the axes are those of a coordinate system. See https://ngff.openmicroscopy.org/0.5/#version-history

Each version is converted to its neighbours. The names of the coordinate system of the levels, and whether the axes are
discrete, are not regarded as a loss: earlier versions have one system, whose axes are discrete by their types.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from zarrfs.errors import MetadataError, OptionError
from zarrfs.ngff.model import PHYSICAL, Level, Multiscales
from zarrfs.ngff.parse import parse
from zarrfs.ngff.transformations import Scale, Transformation, Translation, sequence
from zarrfs.ngff.version_0_6 import (
    SYSTEMS,
    TRANSFORMATIONS,
    VERSION_0_6,
    axes_of,
    transformation_document,
)
from zarrfs.text import MAX_VALUE, safe_text

__all__ = ["OME_VERSIONS", "VersionChange", "for_zarr_format", "full_version", "to_version", "zarr_format_of"]

VERSIONED = ("plate", "well", "image-label")
"""Objects with a version member in 0.4, in addition to multiscales."""

OME = "ome"

OME_VERSIONS = ("0.4", "0.5", "0.6")
"""The versions that can be written, as options name them."""

ZARR_FORMATS = {"0.4": 2, "0.5": 3, VERSION_0_6: 3}

Attributes = Mapping[str, Any]


@dataclass(frozen=True)
class VersionChange:
    """The result of a conversion.

    Attributes:
        attributes: all attributes of the node after the conversion.
        note: what was converted, or why nothing was converted; empty if the node has no OME-NGFF metadata.
        axes: the axis names of the arrays, by path relative to the node.
        lost: what the version cannot state. The attributes are without it.
        refused: whether the metadata cannot be converted, so that the attributes are unchanged.
    """

    attributes: dict[str, Any]
    note: str = ""
    axes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    lost: tuple[str, ...] = ()
    refused: bool = False


def full_version(version: str) -> str:
    """Return the text of the member ``version`` for one of ``OME_VERSIONS``. Raises OptionError for others."""
    if version == VERSION_0_6[:3]:
        return VERSION_0_6
    if version not in ZARR_FORMATS:
        *others, last = OME_VERSIONS
        raise OptionError(f"version: expected {', '.join(others)} or {last}, found {version!r}")
    return version


def zarr_format_of(version: str) -> int:
    """Return the Zarr format of an OME-NGFF version. Raises OptionError for versions that cannot be written."""
    return ZARR_FORMATS[full_version(version)]


def for_zarr_format(attributes: Attributes, name: str, zarr_format: int | str) -> VersionChange:
    """Return the attributes of a group with an OME-NGFF version of a Zarr format: 0.4 becomes 0.5 for format 3, and
    later versions become 0.4 for format 2. ``name`` is the name of the group. Other versions, metadata that 0.4 cannot
    state, and other attributes are unchanged.
    """
    if zarr_format == 3 and _stated_version(attributes, name) != VERSION_0_6:
        return to_version(attributes, name, "0.5")
    if zarr_format != 2:
        return VersionChange(dict(attributes))
    change = to_version(attributes, name, "0.4")
    if not change.lost:
        return change
    return _refused(attributes, name, f"0.4 cannot state {', '.join(change.lost)}")


def to_version(attributes: Attributes, name: str, version: str) -> VersionChange:
    """Return the attributes of a group with an OME-NGFF version. ``name`` is the name of the group.

    What the version cannot state is left out and listed. Raises OptionError for versions that cannot be written.
    """
    version = full_version(version)
    found = _stated_version(attributes, name)
    if found is None or found == version:
        return VersionChange(dict(attributes))
    order = list(ZARR_FORMATS)
    if found not in order:
        return _refused(attributes, name, f"only {', '.join(order)} can be converted")
    converted = dict(attributes)
    lost: list[str] = []
    while (position := order.index(_stated_version(converted, name) or version)) != order.index(version):
        try:
            if position < order.index(version):
                converted = _to_0_5(converted, name) if position == 0 else _to_0_6(converted)
            else:
                converted = _to_0_4(converted) if position == 1 else _from_0_6(converted, lost)
        except MetadataError as error:
            return _refused(attributes, name, str(error))
    metadata = converted if version == "0.4" else converted[OME]
    return VersionChange(converted, f"OME-NGFF {found} converted to {version}", _axes(metadata), tuple(lost))


def _refused(attributes: Attributes, name: str, reason: str) -> VersionChange:
    found = safe_text(str(_stated_version(attributes, name)), MAX_VALUE)
    return VersionChange(dict(attributes), f"OME-NGFF {found} is unchanged: {reason}", refused=True)


def _stated_version(attributes: Attributes, name: str) -> str | None:
    """Return the version of the metadata of a group, None if it has none."""
    ome = attributes.get(OME)
    if isinstance(ome, Mapping):
        return str(ome.get("version"))
    ngff = _parts_of_0_4(attributes, name)
    if not ngff:
        return None
    versions = {_version(part) for part in _versioned(ngff)} - {None, "0.4"}
    if versions or not all(_has_axes(item) for item in ngff.get("multiscales", ())):
        return ", ".join(sorted(map(str, versions))) or "before 0.4"
    return "0.4"


def _to_0_5(attributes: Attributes, name: str) -> dict[str, Any]:
    ngff = _parts_of_0_4(attributes, name)
    other_attributes = {key: value for key, value in attributes.items() if key not in ngff}
    ome: dict[str, Any] = {"version": "0.5"}
    for key, value in ngff.items():
        if key == "multiscales":
            ome[key] = [_without_version(item) for item in value]
        else:
            ome[key] = _without_version(value) if isinstance(value, Mapping) else value
    return {**other_attributes, OME: ome}


def _to_0_4(attributes: Attributes) -> dict[str, Any]:
    ngff = {}
    for key, value in attributes[OME].items():
        if key == "version":
            continue
        if key == "multiscales" and isinstance(value, list):
            value = [_with_version(item) for item in value]
        elif key in VERSIONED:
            value = _with_version(value)
        ngff[key] = value
    return {**{key: value for key, value in attributes.items() if key != OME}, **ngff}


def _to_0_6(attributes: Attributes) -> dict[str, Any]:
    """Raises MetadataError for an image whose levels have no scales."""
    ome = {**attributes[OME], "version": VERSION_0_6}
    if "multiscales" in ome:
        ome["multiscales"] = [_image_of_0_6(item, image) for item, image in _images(ome)]
    return {**attributes, OME: ome}


def _image_of_0_6(item: Mapping[str, Any], image: Multiscales) -> dict[str, Any]:
    converted = {
        key: value for key, value in item.items() if key not in ("axes", "datasets", TRANSFORMATIONS)
    }
    converted[SYSTEMS] = [{"name": PHYSICAL, "axes": item["axes"]}]
    converted["datasets"] = [
        {
            **dataset,
            TRANSFORMATIONS: [
                {
                    **transformation_document(sequence(_steps(level))),
                    "input": {"path": level.path},
                    "output": {"name": PHYSICAL},
                }
            ],
        }
        for dataset, level in zip(item["datasets"], image.levels, strict=True)
    ]
    return converted


def _from_0_6(attributes: Attributes, lost: list[str]) -> dict[str, Any]:
    """What 0.5 cannot state is added to ``lost``. Raises MetadataError for an image whose levels have no scales."""
    ome = {**attributes[OME], "version": "0.5"}
    if ome.pop("scene", None) is not None:
        lost.append("the scene")
    if "multiscales" in ome:
        ome["multiscales"] = [_image_of_0_5(item, image, lost) for item, image in _images(ome)]
    return {**attributes, OME: ome}


def _image_of_0_5(item: Mapping[str, Any], image: Multiscales, lost: list[str]) -> dict[str, Any]:
    if image.other_systems:
        names = ", ".join(safe_text(repr(system.name), MAX_VALUE) for system in image.other_systems)
        lost.append(f"the coordinate systems {names}")
    elif item.get(TRANSFORMATIONS):
        lost.append("transformations between coordinate systems")
    if any(axis.long_name for axis in image.axes):
        lost.append("the long names of axes")
    if not 2 <= sum(axis.type == "space" for axis in image.axes) <= 3:
        raise MetadataError("images of 0.5 have two or three axes of type 'space'")
    converted = {
        key: value for key, value in item.items() if key not in (SYSTEMS, "datasets", TRANSFORMATIONS)
    }
    converted["axes"] = [
        {key: value for key, value in axis.items() if key not in ("discrete", "longName")}
        for axis in axes_of(item)
    ]
    converted["datasets"] = [
        {**dataset, TRANSFORMATIONS: [transformation_document(step) for step in _steps(level)]}
        for dataset, level in zip(item["datasets"], image.levels, strict=True)
    ]
    return converted


def _images(ome: Mapping[str, Any]) -> list[tuple[Mapping[str, Any], Multiscales]]:
    """Return the images of a document with their models. Raises MetadataError if a part of one is not valid."""
    items = ome["multiscales"]
    models = parse({OME: ome}).multiscales
    if not isinstance(items, list) or len(models) != len(items):
        raise MetadataError("its list of images is not valid")
    for item, image in zip(items, models, strict=True):
        if len(image.levels) != len(item["datasets"]) or not all(
            isinstance(axis, Mapping) and isinstance(axis.get("name"), str)
            for axis in axes_of(item) or [None]
        ):
            raise MetadataError("its axes or levels are not valid")
        if image.unapplied or any(level.scale is None for level in image.levels):
            raise MetadataError("the scales of its levels are not known")
    return list(zip(items, models, strict=True))


def _steps(level: Level) -> tuple[Transformation, ...]:
    """Return the scale of a level, and its translation if there is one."""
    scale = Scale(level.scale or ())
    if level.translation is None or not any(level.translation):
        return (scale,)
    return scale, Translation(level.translation)


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
        axes = axes_of(item) if isinstance(item, Mapping) else []
        if not axes or not all(
            isinstance(axis, Mapping) and isinstance(axis.get("name"), str) for axis in axes
        ):
            continue
        for dataset in item.get("datasets", ()):
            if isinstance(dataset, Mapping) and isinstance(dataset.get("path"), str):
                ngff[dataset["path"].strip("/")] = tuple(axis["name"] for axis in axes)
    return ngff
