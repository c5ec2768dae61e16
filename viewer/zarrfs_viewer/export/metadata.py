"""Axes and physical sizes in the words of other formats: OME-TIFF, OME-NGFF. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from zarrfs_viewer.analysis.readout import METERS, SECONDS
from zarrfs_viewer.images.image import Image
from zarrfs_viewer.images.values import data_limits
from zarrfs_viewer.state.view_state import ChannelSettings

__all__ = ["OME_DTYPES", "ngff_document", "physical_sizes", "tiff_axes"]

OME_DTYPES = frozenset(
    ("int8", "int16", "int32", "uint8", "uint16", "uint32", "float32", "float64", "complex64", "complex128")
)
"""What OME-XML can name; TIFF itself has 64-bit integers too."""


def tiff_axes(image: Image) -> str | None:
    """Return the axes as OME-TIFF has them, such as ``TCZYX``; None where they do not fit."""
    letters = "".join(
        "S" if number == image.rgb_axis else axis.name[:1].upper() or "Q"
        for number, axis in enumerate(image.axes)
    )
    if len(set(letters)) != len(letters) or not re.fullmatch(r"[TCZ]*YXS?", letters):
        return None
    return letters


def physical_sizes(image: Image, scale: Sequence[float]) -> dict[str, Any]:
    """Return the sizes of a pixel as ``tifffile`` takes them for OME-XML: in micrometres and seconds."""
    found: dict[str, Any] = {}
    for axis, size in zip(image.axes, scale, strict=True):
        letter = axis.name[:1].upper()
        if letter in "XYZ" and axis.unit in METERS:
            found[f"PhysicalSize{letter}"] = abs(size) * METERS[axis.unit] / 1e-6
            found[f"PhysicalSize{letter}Unit"] = "µm"
        elif letter == "T" and axis.unit in SECONDS:
            found["TimeIncrement"] = abs(size) * SECONDS[axis.unit]
            found["TimeIncrementUnit"] = "s"
    return found


def ngff_document(
    image: Image,
    scale: Sequence[float],
    translation: Sequence[float],
    channels: Sequence[ChannelSettings] = (),
) -> dict[str, Any]:
    """Return the ``ome`` attributes of an image of one level, at path ``0``; channels as given, else the image's."""
    axes = []
    for number, axis in enumerate(image.axes):
        entry = {"name": axis.name or f"dim{number}"}
        if axis.type is not None:
            entry["type"] = axis.type
        if axis.unit is not None:
            entry["unit"] = axis.unit
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
    described = [_channel(channel, image.dtype) for channel in (channels or image.channels)]
    known = [entry for entry in described if entry is not None]
    if image.channel_axis is not None and len(known) == image.shape[image.channel_axis]:
        document["omero"] = {"channels": known}
    return document


def _channel(channel: ChannelSettings, dtype: np.dtype[Any]) -> dict[str, Any] | None:
    """Return a channel of ``omero``; None where its window, which must be given, is not known."""
    limits = channel.limits or (data_limits(dtype) if dtype.kind in "iu" else None)
    if limits is None:
        return None
    low, high = limits
    least, most = channel.limits_range or limits
    entry: dict[str, Any] = {"label": channel.label, "active": channel.visible, "inverted": channel.invert}
    # OMERO knows ramps to a colour only; other maps are written as white.
    entry["color"] = channel.colormap[1:].upper() if channel.colormap.startswith("#") else "FFFFFF"
    entry["window"] = {"start": low, "end": high, "min": least, "max": most}
    return entry
