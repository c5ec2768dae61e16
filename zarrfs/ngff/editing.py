"""Edits of OME-NGFF metadata: names, channels, axes, sizes, units and positions. Pure functions on attributes.

Each function takes the attributes of a group, and returns changed ones. The argument is not changed, and all other
parts of the metadata stay as they are stored. The metadata are at the root of the attributes (0.4) or in the member
``ome`` (since 0.5). All functions raise MetadataError if the metadata have no place for the value, and OptionError for
a value that is not valid. Nothing is written.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from copy import deepcopy
from itertools import chain
from typing import Any

from zarrfs.errors import MetadataError, OptionError
from zarrfs.ngff.orientation import ANATOMICAL_DIRECTIONS, ORIENTATIONS, orientation_document
from zarrfs.ngff.parse import ome_attributes, parse
from zarrfs.ngff.reader import is_number
from zarrfs.ngff.transformations import Matrix, simplified
from zarrfs.ngff.version_0_6 import (
    SYSTEMS,
    TRANSFORMATIONS,
    VERSION_0_6,
    axes_of,
    transformation_document,
)
from zarrfs.text import short_repr

__all__ = [
    "with_affine",
    "with_axis_name",
    "with_axis_orientation",
    "with_axis_unit",
    "with_channel_active",
    "with_channel_color",
    "with_channel_label",
    "with_channel_window",
    "with_channels",
    "with_image_name",
    "with_pixel_size",
    "with_placed_image",
]

DEFAULT_COLORS = ("FFFFFF", "00FF00", "FF00FF", "00FFFF", "FFFF00", "0000FF", "FF0000")

Attributes = Mapping[str, Any]

WORLD = "world"
"""The name of the coordinate system of a new scene."""

CONVERT = "zarrfs convert --ome-version 0.6 writes a copy of that version"


def with_channel_label(attributes: Attributes, channel: int, label: str) -> dict[str, Any]:
    """Return the attributes with another name of a channel."""
    edited, ome = _copied(attributes)
    _channel(ome, channel)["label"] = label
    return edited


def with_channel_color(attributes: Attributes, channel: int, color: tuple[int, int, int]) -> dict[str, Any]:
    """Return the attributes with another colour (red, green, blue; each 0 to 255) of a channel."""
    if len(color) != 3 or not all(0 <= part <= 255 for part in color):
        raise OptionError(f"expected a colour of three numbers from 0 to 255, found {color}")
    edited, ome = _copied(attributes)
    _channel(ome, channel)["color"] = "".join(f"{part:02X}" for part in color)
    return edited


def with_channel_window(attributes: Attributes, channel: int, start: float, end: float) -> dict[str, Any]:
    """Return the attributes with other contrast limits of a channel. The range of its values includes them."""
    if not (math.isfinite(start) and math.isfinite(end) and start < end):
        raise OptionError(f"expected contrast limits in ascending order, found {start} and {end}")
    edited, ome = _copied(attributes)
    item = _channel(ome, channel)
    window = item.get("window")
    window = window if isinstance(window, dict) else {}
    stored: list[Any] = [window.get("min"), window.get("max")]
    bounds = [start, end, *(value for value in stored if is_number(value))]
    limits = {"start": start, "end": end, "min": min(bounds), "max": max(bounds)}
    item["window"] = {**window, **limits}
    return edited


def with_channel_active(attributes: Attributes, channel: int, active: bool) -> dict[str, Any]:
    """Return the attributes with a channel that is displayed at first, or not."""
    edited, ome = _copied(attributes)
    _channel(ome, channel)["active"] = active
    return edited


def with_channels(attributes: Attributes, count: int, lowest: float, highest: float) -> dict[str, Any]:
    """Return the attributes with an object ``omero`` for all channels. Existing channels are kept.

    ``lowest`` and ``highest`` are the range of the values of an added channel, which has a colour and no name.
    """
    edited, ome = _copied(attributes)
    omero = ome.setdefault("omero", {})
    channels = omero.setdefault("channels", []) if isinstance(omero, dict) else None
    if not isinstance(channels, list):
        raise MetadataError("the metadata 'omero' has no list of channels")
    window = {"start": lowest, "end": highest, "min": lowest, "max": highest}
    for number in range(len(channels), count):
        color = DEFAULT_COLORS[(number + (count > 1)) % len(DEFAULT_COLORS)]
        channels.append({"label": "", "color": color, "active": True, "window": dict(window)})
    return edited


def with_image_name(attributes: Attributes, name: str, image: int = 0) -> dict[str, Any]:
    """Return the attributes with another name of a multiscale image."""
    edited, ome = _copied(attributes)
    _multiscales(ome, image)["name"] = name
    return edited


def with_axis_name(attributes: Attributes, axis: int, name: str, image: int = 0) -> dict[str, Any]:
    """Return the attributes with another name of an axis. Its type does not change."""
    edited, ome = _copied(attributes)
    axes = axes_of(_multiscales(ome, image))
    if axis >= len(axes):
        raise MetadataError(f"the metadata has no axis {axis}")
    old = axes[axis].get("name") if isinstance(axes[axis], dict) else axes[axis]
    if isinstance(axes[axis], dict):
        axes[axis]["name"] = name
    else:
        axes[axis] = name
    directions = edited.get(ANATOMICAL_DIRECTIONS)
    if isinstance(directions, dict) and isinstance(listed := directions.get("axes"), list):
        directions["axes"] = [name if item == old else item for item in listed]
    return edited


def with_pixel_size(attributes: Attributes, axis: int, size: float, image: int = 0) -> dict[str, Any]:
    """Return the attributes with another size of the pixels of level 0 along an axis of a multiscale image.

    The sizes of the other levels change by the same factor. The origin of level 0 stays; the distances of the origins
    of the other levels from it change by the factor too. A transformation of the whole image is kept.
    """
    if not math.isfinite(size) or size <= 0:
        raise OptionError(f"expected a pixel size above 0, found {size}")
    edited, ome = _copied(attributes)
    datasets = _multiscales(ome, image).get("datasets")
    datasets = datasets if isinstance(datasets, list) else []
    models = parse(attributes).multiscales
    scale = models[image].levels[0].scale if image < len(models) else None
    scales = [values for dataset in datasets if (values := _numbers(dataset, "scale", axis)) is not None]
    if scale is None or not scales or len(scales) != len(datasets):
        raise MetadataError(
            f"not every level has a scale for axis {axis}; only existing scales can be changed"
        )
    factor = size / abs(scale[axis])
    first = scales[0][axis]
    # Not ``first * factor``: the stored size is exactly the given one if the whole image has no transformation.
    new_first = first / scale[axis] * math.copysign(size, scale[axis])
    for values in scales:
        values[axis] = new_first * (values[axis] / first)
    translations = [_numbers(dataset, "translation", axis) for dataset in datasets]
    origin = 0.0 if translations[0] is None else translations[0][axis]
    for translation in translations:
        if translation is not None:
            translation[axis] = origin + (translation[axis] - origin) * factor
    return edited


def with_axis_unit(attributes: Attributes, axis: int, unit: str, image: int = 0) -> dict[str, Any]:
    """Return the attributes with another unit of an axis, such as ``micrometer``. An empty unit removes it.

    The numbers of the pixel sizes do not change.
    """
    edited, ome = _copied(attributes)
    axes = axes_of(_multiscales(ome, image))
    if axis >= len(axes) or not isinstance(axes[axis], dict):
        raise MetadataError(f"axis {axis} has no place for a unit: axes are objects since OME-NGFF 0.4")
    if unit:
        axes[axis]["unit"] = unit
    else:
        axes[axis].pop("unit", None)
    return edited


def with_axis_orientation(
    attributes: Attributes, axis: int, orientation: str, image: int = 0
) -> dict[str, Any]:
    """Return the attributes with another anatomical orientation of a spatial axis, such as ``left-to-right`` (RFC-4).

    An empty orientation removes it. The numbers of the pixel sizes and positions do not change.
    """
    edited, ome = _copied(attributes)
    axes = axes_of(_multiscales(ome, image))
    if axis >= len(axes) or not isinstance(axes[axis], dict):
        raise MetadataError(
            f"axis {axis} has no place for an orientation: axes are objects since OME-NGFF 0.4"
        )
    if not orientation:
        axes[axis].pop("orientation", None)
        return edited
    if orientation not in ORIENTATIONS:
        raise OptionError(
            f"expected one of the orientations of RFC-4, found {short_repr(orientation)}; they are "
            f"{', '.join(ORIENTATIONS)}"
        )
    if axes[axis].get("type") != "space":
        raise OptionError(f"axis {axis} is not of type space; only spatial axes have an orientation")
    axes[axis]["orientation"] = orientation_document(orientation)
    return edited


def with_affine(attributes: Attributes, name: str, rows: Matrix, image: int = 0) -> dict[str, Any]:
    """Return the attributes with an affine transformation from the coordinate system of the levels to the system
    ``name`` (0.6). A system that does not exist yet gets the axes of the levels.

    ``rows`` has a row for each axis of the system; the last number of a row is the translation.
    """
    edited, ome = _copied(attributes)
    item = _multiscales(ome, image)
    models = parse(attributes).multiscales
    if SYSTEMS not in item or image >= len(models):
        raise MetadataError(f"coordinate systems exist since OME-NGFF {VERSION_0_6}: {CONVERT}")
    own = models[image].system_name
    if name == own:
        raise OptionError(f"{short_repr(name)} is the coordinate system of the levels; name another one")
    _add_system(item, name, axes_of(item))
    _replace_edge(item, {"name": own}, {"name": name}, rows)
    return edited


def with_placed_image(
    attributes: Attributes, path: str, system: str, axes: list[Any], rows: Matrix
) -> dict[str, Any]:
    """Return the attributes with a scene (0.6) in which an image is placed by an affine transformation.

    ``path`` is the path of the image relative to the scene, and ``system`` is its coordinate system, with ``axes``. The
    image is placed in the first coordinate system of the scene. A scene without one gets the system ``world`` with
    these axes. ``rows`` is as for ``with_affine``.
    """
    edited, ome = _copied(attributes)
    if parse(attributes).version not in (None, VERSION_0_6):
        raise MetadataError(f"scenes exist since OME-NGFF {VERSION_0_6}: {CONVERT}")
    if "ome" not in edited:
        ome = edited["ome"] = {"version": VERSION_0_6}
    scene = ome.setdefault("scene", {})
    if not isinstance(scene, dict):
        raise MetadataError("the metadata 'scene' is not an object")
    scenes = parse(edited).scene
    target = scenes.systems[0].name if scenes is not None and scenes.systems else WORLD
    _add_system(scene, target, axes)
    _replace_edge(scene, {"path": path, "name": system}, {"name": target}, rows)
    return edited


def _add_system(item: dict[str, Any], name: str, axes: list[Any]) -> None:
    systems = item.setdefault(SYSTEMS, [])
    if not isinstance(systems, list):
        raise MetadataError(f"the metadata {SYSTEMS!r} are not a list")
    if not any(isinstance(system, dict) and system.get("name") == name for system in systems):
        systems.append({"name": name, "axes": deepcopy(axes)})


def _replace_edge(item: dict[str, Any], source: Any, target: Any, rows: Matrix) -> None:
    """Replace the transformation between two systems in place, or add it."""
    if not rows or any(len(row) != len(rows[0]) for row in rows) or not all(map(is_number, chain(*rows))):
        raise OptionError(f"expected rows of finite numbers, of the same length, found {short_repr(rows)}")
    edges = item.setdefault(TRANSFORMATIONS, [])
    if not isinstance(edges, list):
        raise MetadataError(f"the metadata {TRANSFORMATIONS!r} are not a list")
    edge = {**transformation_document(simplified(rows)), "input": source, "output": target}
    for number, other in enumerate(edges):
        if isinstance(other, dict) and (other.get("input"), other.get("output")) == (source, target):
            edges[number] = edge
            return
    edges.append(edge)


def _copied(attributes: Attributes) -> tuple[dict[str, Any], Any]:
    """Return a deep copy of the attributes, and the object in it that contains the OME-NGFF metadata."""
    edited = deepcopy(dict(attributes))
    return edited, ome_attributes(edited)[0]


def _channel(ome: Any, number: int) -> dict[str, Any]:
    omero = ome.get("omero")
    channels = omero.get("channels") if isinstance(omero, dict) else None
    if not isinstance(channels, list) or number >= len(channels) or not isinstance(channels[number], dict):
        raise MetadataError(f"the metadata 'omero' has no channel {number}")
    channel: dict[str, Any] = channels[number]
    return channel


def _multiscales(ome: Any, image: int) -> dict[str, Any]:
    items = ome.get("multiscales")
    if not isinstance(items, list) or image >= len(items) or not isinstance(items[image], dict):
        raise MetadataError(f"the metadata 'multiscales' has no image {image}")
    item: dict[str, Any] = items[image]
    return item


def _numbers(dataset: Any, kind: str, axis: int) -> list[float] | None:
    """Return the list of a level's scale or translation, to be changed in place; None if it has none for the axis."""
    steps = dataset.get("coordinateTransformations") if isinstance(dataset, dict) else None
    steps = [step for step in steps if isinstance(step, dict)] if isinstance(steps, list) else []
    if [step.get("type") for step in steps] == ["sequence"]:  # since 0.6
        return _numbers({"coordinateTransformations": steps[0].get("transformations")}, kind, axis)
    values = [step.get(kind) for step in steps if step.get("type") == kind]
    if len(values) != 1 or not isinstance(values[0], list) or axis >= len(values[0]):
        return None
    return values[0] if is_number(values[0][axis]) and (values[0][axis] or kind != "scale") else None
