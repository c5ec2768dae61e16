"""Axes, physical sizes and channels as metadata of OME-TIFF and OME-NGFF. Pure functions."""

from __future__ import annotations

import re
from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from zarrfs.ngff.orientation import orientation_document
from zarrfs.ngff.units import convert
from zarrfs.text import safe_text
from zarrfs_viewer.images.image import Image
from zarrfs_viewer.images.values import data_limits
from zarrfs_viewer.state.colormaps import lookup
from zarrfs_viewer.state.view_state import ChannelSettings

__all__ = ["OME_DTYPES", "ngff_document", "physical_sizes", "plane_positions", "tiff_axes", "tiff_channels"]

OME_DTYPES = frozenset(
    ("int8", "int16", "int32", "uint8", "uint16", "uint32", "float32", "float64", "complex64", "complex128")
)
"""The data types that OME-XML defines. TIFF also has 64-bit integers."""


def tiff_axes(image: Image) -> str | None:
    """Return the axes as a string for OME-TIFF, such as ``TCZYX``, or None if OME-TIFF cannot represent them."""
    letters = "".join(
        "S" if number == image.rgb_axis else axis.name[:1].upper() or "Q"
        for number, axis in enumerate(image.axes)
    )
    if len(set(letters)) != len(letters) or not re.fullmatch(r"[TCZ]*YXS?", letters):
        return None
    return letters


def physical_sizes(image: Image, scale: Sequence[float]) -> dict[str, Any]:
    """Return the pixel size as metadata for ``tifffile``, in micrometres and seconds."""
    sizes: dict[str, Any] = {}
    for axis, size in zip(image.axes, scale, strict=True):
        letter = axis.name[:1].upper()
        micrometers = convert(abs(size), axis.unit, "micrometer") if letter in "XYZ" else None
        seconds = convert(abs(size), axis.unit, "second") if letter == "T" else None
        if micrometers is not None:
            sizes[f"PhysicalSize{letter}"] = micrometers
            sizes[f"PhysicalSize{letter}Unit"] = "µm"
        elif seconds is not None:
            sizes["TimeIncrement"] = seconds
            sizes["TimeIncrementUnit"] = "s"
    return sizes


def plane_positions(
    image: Image, shape: Sequence[int], scale: Sequence[float], translation: Sequence[float]
) -> dict[str, Any]:
    """Return the positions of the planes of an array with the axes of an image as metadata for ``tifffile``: those of
    the centre of the first pixel, in micrometres. Empty if all are 0 or without a unit of length.
    """
    leading = [number for number, axis in enumerate(image.axes) if axis.name[:1].upper() in ("T", "C", "Z")]
    lengths = [shape[number] for number in leading]
    count = prod(lengths)
    indices = np.indices(lengths).reshape(len(leading), count)
    planes: dict[str, Any] = {}
    is_moved = False
    for number, axis in enumerate(image.axes):
        letter = axis.name[:1].upper()
        factor = convert(1.0, axis.unit, "micrometer") if letter and letter in "XYZ" else None
        if factor is None:
            continue
        is_moved |= bool(translation[number])
        steps = indices[leading.index(number)] if number in leading else np.zeros(count)
        values = (translation[number] + scale[number] * steps) * factor
        planes[f"Position{letter}"] = [float(f"{value:.12g}") for value in values.tolist()]
        planes[f"Position{letter}Unit"] = ["µm"] * count
    return {"Plane": planes} if is_moved else {}


def tiff_channels(image: Image, channels: Sequence[ChannelSettings] = ()) -> dict[str, Any]:
    """Return the names and colours of the channels as metadata for ``tifffile``; empty for RGB and structured images.

    ``channels`` are by default the initial channels of the image.
    """
    described = channels or image.channels
    count = 1 if image.channel_axis is None else image.shape[image.channel_axis]
    if image.rgb_axis is not None or image.dtype.names is not None or len(described) != count:
        return {}
    ordered = sorted(described, key=lambda channel: channel.index)
    entries: dict[str, Any] = {"Color": [_ome_color(channel) for channel in ordered]}
    if any(channel.label for channel in ordered):
        entries["Name"] = [
            safe_text(channel.label) or f"Channel {number}" for number, channel in enumerate(ordered)
        ]
    return {"Channel": entries}


def _ome_color(channel: ChannelSettings) -> int:
    """Return a colour as OME-XML stores it: RGBA as a signed 32-bit integer."""
    rgba = int(_color(channel), 16) << 8 | 0xFF
    return rgba - (1 << 32) if rgba >= 1 << 31 else rgba


def _color(channel: ChannelSettings) -> str:
    """Return the colour of a channel as six hexadecimal digits. A named colour map has the colour of its last entry."""
    if channel.colormap.startswith("#"):
        return channel.colormap[1:].upper()
    red, green, blue = lookup(channel.colormap)[-1][:3]
    return f"{int(red):02X}{int(green):02X}{int(blue):02X}"


def ngff_document(
    image: Image,
    scale: Sequence[float],
    translation: Sequence[float],
    channels: Sequence[ChannelSettings] = (),
) -> dict[str, Any]:
    """Return the ``ome`` attributes (OME-NGFF 0.5) of an image with one level at path ``0``.

    ``channels`` are by default the initial channels of the image.
    """
    axes = []
    for number, axis in enumerate(image.axes):
        entry: dict[str, Any] = {"name": axis.name or f"dim{number}"}
        if axis.type is not None:
            entry["type"] = axis.type
        if axis.unit is not None:
            entry["unit"] = axis.unit
        if axis.orientation is not None and axis.type == "space":
            entry["orientation"] = orientation_document(axis.orientation)
        axes.append(entry)
    transformations: list[dict[str, Any]] = [{"type": "scale", "scale": list(scale)}]
    if any(translation):
        transformations.append({"type": "translation", "translation": list(translation)})
    document: dict[str, Any] = {
        "version": "0.5",
        "multiscales": [
            {
                "name": image.name,
                "axes": axes,
                "datasets": [{"path": "0", "coordinateTransformations": transformations}],
            }
        ],
    }
    described = [_omero_channel(channel, image.dtype) for channel in (channels or image.channels)]
    omero_channels = [entry for entry in described if entry is not None]
    if image.channel_axis is not None and len(omero_channels) == image.shape[image.channel_axis]:
        document["omero"] = {"channels": omero_channels}
    return document


def _omero_channel(channel: ChannelSettings, dtype: np.dtype[Any]) -> dict[str, Any] | None:
    """Return the ``omero`` metadata of a channel, or None if its limits are not known: ``window`` is required."""
    limits = channel.limits or (data_limits(dtype) if dtype.kind in "iu" else None)
    if limits is None:
        return None
    low, high = limits
    range_min, range_max = channel.limits_range or limits
    entry: dict[str, Any] = {"label": channel.label, "active": channel.visible, "inverted": channel.invert}
    entry["color"] = _color(channel)  # ``omero`` has a single colour per channel
    entry["window"] = {"start": low, "end": high, "min": range_min, "max": range_max}
    return entry
