"""Edits of an OME-NGFF image whose channels and axes are given by number or name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from zarrfs.engine.array.array import Array
from zarrfs.engine.group.group import Group
from zarrfs.errors import MetadataError, NodeTypeError, OptionError
from zarrfs.ngff import Multiscales, ome_attributes, parse
from zarrfs.ngff.editing import with_channels, with_placed_image
from zarrfs.ngff.transformations import Matrix
from zarrfs.ngff.version_0_6 import SYSTEMS, VERSION_0_6, axes_of
from zarrfs.tools.editing.editing import Edit

__all__ = ["axis_edit", "channel_edit", "placement_edit"]

Attributes = Mapping[str, Any]


def axis_edit(function: Callable[[Attributes, int], dict[str, Any]], axis: str) -> Edit:
    """Return an edit that calls ``function`` with the number of the axis that ``axis`` denotes.

    It raises MetadataError without an OME-NGFF image, OptionError if the image has no such axis.
    """

    def apply(attributes: Attributes, node: Array | Group) -> dict[str, Any]:
        names = [item.name for item in _image(attributes).axes]
        if axis in names:
            return function(attributes, names.index(axis))
        if axis.isdecimal() and int(axis) < len(names):
            return function(attributes, int(axis))
        raise OptionError(f"the image has no axis {axis!r}; its axes are {', '.join(names) or 'not named'}")

    return apply


def channel_edit(function: Callable[[Attributes, int], dict[str, Any]], channel: str) -> Edit:
    """Return an edit that calls ``function`` with the number of the channel that ``channel`` denotes.

    If the image has no metadata of its channels, they are added; the data type of level 0 gives the
    range of their values. It raises MetadataError without an OME-NGFF image, OptionError if the image has no such
    channel.
    """

    def apply(attributes: Attributes, node: Array | Group) -> dict[str, Any]:
        attributes = _with_channels(attributes, node)
        omero = parse(attributes).omero
        labels = [item.label for item in omero.channels] if omero is not None else []
        if channel in labels:
            return function(attributes, labels.index(channel))
        if channel.isdecimal() and int(channel) < len(labels):
            return function(attributes, int(channel))
        names = ", ".join(f"{number} {label or ''}".strip() for number, label in enumerate(labels))
        raise OptionError(
            f"the image has no channel {channel!r}; its channels are {names or 'not described'}"
        )

    return apply


def placement_edit(path: str, rows: Matrix) -> Edit:
    """Return an edit that places the image at a path in the scene of the group.

    It raises MetadataError if there is no image of OME-NGFF 0.6, NodeTypeError if the node is not a group.
    """

    def apply(attributes: Attributes, node: Array | Group) -> dict[str, Any]:
        if not isinstance(node, Group):
            raise NodeTypeError("a scene is a group; the location is an array")
        image = node[path.strip("/")]
        models = parse(image.attrs).multiscales
        stored = ome_attributes(image.attrs)[0].get("multiscales")
        items = [item for item in stored if isinstance(item, Mapping)] if isinstance(stored, list) else []
        if not models or SYSTEMS not in items[0]:
            raise MetadataError(f"{path!r} is not an image of OME-NGFF {VERSION_0_6}")
        return with_placed_image(attributes, path.strip("/"), models[0].system_name, axes_of(items[0]), rows)

    return apply


def _image(attributes: Attributes) -> Multiscales:
    images = parse(attributes).multiscales
    if not images:
        raise MetadataError("the attributes contain no OME-NGFF image ('multiscales')")
    return images[0]


def _with_channels(attributes: Attributes, node: Array | Group) -> Attributes:
    image = _image(attributes)
    omero = parse(attributes).omero
    if (omero is not None and omero.channels) or not image.levels or not isinstance(node, Group):
        return attributes
    level = node[image.levels[0].path]
    if not isinstance(level, Array) or level.dtype.kind not in "biuf":
        return attributes
    axis = next((number for number, item in enumerate(image.axes) if item.type == "channel"), None)
    count = 1 if axis is None else level.shape[axis]
    lowest, highest = 0.0, 1.0
    if level.dtype.kind in "iu":
        limits = np.iinfo(level.dtype)
        lowest, highest = int(limits.min), int(limits.max)
    return with_channels(attributes, count, lowest, highest)
