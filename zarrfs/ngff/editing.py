"""Edits of OME-NGFF metadata: channel names, channel colours, pixel sizes and units. Pure functions on attributes.

Each function takes the attributes of a group, and returns changed ones. The argument is not changed, and what the edit
does not concern stays as it is stored. The metadata are at the root of the attributes (0.4) or in the member ``ome``
(0.5). All functions raise MetadataError if the metadata have no place for the value. Nothing is written.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from copy import deepcopy
from typing import Any

from zarrfs.errors import MetadataError
from zarrfs.ngff.parse import ome_attributes, parse
from zarrfs.ngff.reader import is_number

__all__ = ["with_axis_unit", "with_channel_color", "with_channel_label", "with_pixel_size"]

Attributes = Mapping[str, Any]


def with_channel_label(attributes: Attributes, channel: int, label: str) -> dict[str, Any]:
    """Return the attributes with another name of a channel."""
    edited, ome = _copied(attributes)
    _channel(ome, channel)["label"] = label
    return edited


def with_channel_color(attributes: Attributes, channel: int, color: tuple[int, int, int]) -> dict[str, Any]:
    """Return the attributes with another colour (red, green, blue; each 0 to 255) of a channel."""
    if len(color) != 3 or not all(0 <= part <= 255 for part in color):
        raise MetadataError(f"expected a color of three numbers from 0 to 255, found {color}")
    edited, ome = _copied(attributes)
    _channel(ome, channel)["color"] = "".join(f"{part:02X}" for part in color)
    return edited


def with_pixel_size(attributes: Attributes, axis: int, size: float, image: int = 0) -> dict[str, Any]:
    """Return the attributes with another size of the pixels of level 0 along an axis of a multiscale image.

    The sizes of the other levels change by the same factor. The origin of level 0 stays; the distances of the origins
    of the other levels from it change by the factor too. A transformation of the whole image is kept.
    """
    if not math.isfinite(size) or size <= 0:
        raise MetadataError(f"expected a pixel size above 0, found {size}")
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
    axes = _multiscales(ome, image).get("axes")
    if not isinstance(axes, list) or axis >= len(axes) or not isinstance(axes[axis], dict):
        raise MetadataError(f"axis {axis} has no place for a unit: axes are objects since OME-NGFF 0.4")
    if unit:
        axes[axis]["unit"] = unit
    else:
        axes[axis].pop("unit", None)
    return edited


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
    values = [step.get(kind) for step in steps if step.get("type") == kind]
    if len(values) != 1 or not isinstance(values[0], list) or axis >= len(values[0]):
        return None
    return values[0] if is_number(values[0][axis]) and (values[0][axis] or kind != "scale") else None
