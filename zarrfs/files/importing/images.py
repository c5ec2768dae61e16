"""The images of a foreign hierarchy, with their axes in the order that OME-NGFF prescribes: time, channel, space."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from zarrfs.engine.array.array import Array
from zarrfs.engine.group.group import Group
from zarrfs.errors import MetadataError, OptionError, ServerError, ZarrError
from zarrfs.files.foreign_array import ForeignArray
from zarrfs.files.foreign_store import ForeignStore
from zarrfs.files.image_groups import ImageAxis, image_axes, image_nodes
from zarrfs.files.stacks.reader import DEFAULT_NAMES
from zarrfs.ngff.editing import with_channels
from zarrfs.ngff.geometry import axis_type
from zarrfs.ngff.parse import parse
from zarrfs.tools.copying.reports import CopyReport, incomplete_copy_error

__all__ = ["SourceImage", "find_images", "image_of_array", "image_of_group", "ordered_image"]

RANKS = {"time": 0, "channel": 1, None: 1, "space": 2}


@dataclass(frozen=True)
class SourceImage:
    """An array with the image metadata of its file. ``omero`` are the channel metadata of OME-NGFF, and ``label`` the
    colours of labels (``image-label``), or None.
    """

    array: Array
    axes: Sequence[ImageAxis]
    name: str
    omero: Mapping[str, Any] | None = None
    label: Mapping[str, Any] | None = None


def find_images(
    node: Array | Group, *, skip_broken: bool = False, report: CopyReport | None = None
) -> dict[str, Group]:
    """Return the images at a node by their paths: the node itself, or its members (the series of a file).

    Members that cannot be opened are added to ``report.skipped``. Raises IncompleteCopyError for them, unless
    ``skip_broken`` is set.
    """
    report = CopyReport() if report is None else report
    if isinstance(node, Array):
        return {}
    if parse(node.attrs).multiscales:
        return {"": node}
    images: dict[str, Group] = {}
    for name in node.names():
        try:
            member = node[name]
        except ServerError:
            raise
        except ZarrError as error:
            report.skipped[name] = str(error)
            continue
        if isinstance(member, Group) and parse(member.attrs).multiscales:
            images[name] = member
    if not images:
        report.skipped.clear()  # the node is copied as it is, which reports them
    elif report.skipped and not skip_broken:
        raise incomplete_copy_error(node.store.url, "nothing was written", report.skipped)
    return images


def image_of_group(group: Group) -> SourceImage:
    """Return level 0 of an image."""
    model = parse(group.attrs)
    image = model.multiscales[0]
    array = group[image.levels[0].path]
    if not isinstance(array, Array):
        raise MetadataError(f"{group.store.url}: level 0 of the image, {image.levels[0].path!r}, is a group")
    ome = group.attrs.get("ome", {})
    omero, label = (
        (found if isinstance(found := ome.get(key), dict) else None) for key in ("omero", "image-label")
    )
    return SourceImage(array, image_axes(image, array.ndim), image.name, omero, label)


def image_of_array(array: Array) -> SourceImage:
    """Return an array without metadata as an image. Its axes are the last ones of t, c, z, y, x."""
    axes = [ImageAxis(name) for name in DEFAULT_NAMES[-array.ndim :]]
    return SourceImage(array, axes, "")


def ordered_image(
    image: SourceImage,
    names: Sequence[str] | None = None,
    scale: Sequence[float] | None = None,
    unit: str | None = None,
) -> ForeignStore:
    """Return a store with an image that is transposed so that time precedes channels, and channels precede space.

    ``names`` and ``scale`` replace those of the dimensions, in the order of the file, and ``unit`` that of the spatial
    ones. Raises OptionError if they do not have one item for each dimension.
    """
    array = image.array
    axes = _replaced(image, names, scale, unit)
    order = sorted(range(array.ndim), key=lambda number: (RANKS.get(axis_type(axes[number].name), 1), number))

    def read(region: tuple[slice, ...]) -> npt.NDArray[Any]:
        stored = [slice(None)] * array.ndim
        for position, number in enumerate(order):
            stored[number] = region[position]
        return np.asarray(array[tuple(stored)]).transpose(order)

    presented = ForeignArray(
        tuple(array.shape[number] for number in order),
        tuple(_chunk(array, number) for number in order),
        array.dtype,
        read,
    )
    nodes = image_nodes(presented, [axes[number] for number in order], image.name)
    attributes = nodes[""]
    if image.omero is not None and isinstance(attributes, dict):
        attributes["ome"]["omero"] = _complete(image.omero, array.dtype)
    if image.label is not None and isinstance(attributes, dict):
        attributes["ome"]["image-label"] = dict(image.label)
    place = f"{array.store.url}/{array.path}".rstrip("/")
    return ForeignStore(place, nodes, lambda: array.store.stamp("zarr.json"), lambda: None)


def _replaced(
    image: SourceImage, names: Sequence[str] | None, scale: Sequence[float] | None, unit: str | None
) -> list[ImageAxis]:
    axes = list(image.axes)
    for option_name, values in (("axes", names), ("scale", scale)):
        if values is not None and len(values) != len(axes):
            raise OptionError(
                f"{option_name}: expected one item for each dimension of the shape {image.array.shape}, "
                f"found {len(values)}"
            )
    if names is not None:
        axes = [axis._replace(name=name) for axis, name in zip(axes, names, strict=True)]
    if scale is not None:
        axes = [axis._replace(scale=float(step), origin=0.0) for axis, step in zip(axes, scale, strict=True)]
    if unit is not None:
        axes = [axis._replace(unit=unit) if axis_type(axis.name) == "space" else axis for axis in axes]
    return axes


def _complete(omero: Mapping[str, Any], dtype: np.dtype[Any]) -> dict[str, Any]:
    """Return channel metadata in which each channel has the members that OME-NGFF requires: a colour and a window.

    The contrast limits of a channel without them are the range of integers, and 0 to 1 for other numbers.
    """
    lowest, highest = (int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)) if dtype.kind in "iu" else (0, 1)
    listed = omero.get("channels")
    channels = [dict(item) for item in listed if isinstance(item, dict)] if isinstance(listed, list) else []
    defaults = with_channels({"multiscales": []}, len(channels), lowest, highest)["omero"]["channels"]
    return {
        **omero,
        "channels": [{**default, **item} for default, item in zip(defaults, channels, strict=True)],
    }


def _chunk(array: Array, axis: int) -> int:
    length = array.chunks[axis]
    return max(length) if isinstance(length, tuple) else length
