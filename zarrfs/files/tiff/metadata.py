"""The metadata of a TIFF image as OME-NGFF attributes: axes, pixel sizes, units and channels."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any
from xml.etree import ElementTree

import numpy as np

from zarrfs.files.tiff.checks import ome_root
from zarrfs.files.tiff.colors import imagej_channels, palette_colors
from zarrfs.ngff.units import unit_name

__all__ = ["image_attributes"]

AXIS_TYPES = {"X": "space", "Y": "space", "Z": "space", "T": "time", "C": "channel", "S": "channel"}

Sizes = dict[str, tuple[float, str | None]]
"""The size of a pixel and its unit, by axis."""


def image_attributes(
    file: Any, path: str, number: int, series: Any, shapes: Sequence[tuple[int, ...]]
) -> dict[str, Any]:
    """Return the attributes of the group of an image with levels of the given shapes, in the form of OME-NGFF 0.5.

    ``path`` is that of the file, for messages.
    """
    axes = series.axes[: len(shapes[0])]
    sizes, name, channels = _from_ome(file, number)
    if not sizes and not channels:
        sizes = _from_imagej(file)
    listed = []
    for letter in axes:
        entry: dict[str, Any] = {"name": letter.lower()}
        if letter in AXIS_TYPES:
            entry["type"] = AXIS_TYPES[letter]
        unit = sizes.get(letter, (1.0, None))[1]
        if unit is not None:
            entry["unit"] = unit
        listed.append(entry)
    datasets = []
    for level, shape in enumerate(shapes):
        factors = [full / length if length else 1.0 for full, length in zip(shapes[0], shape, strict=True)]
        base = [sizes.get(letter, (1.0, None))[0] for letter in axes]
        scale = [one * factor for one, factor in zip(base, factors, strict=True)]
        offset = [one * (factor - 1) / 2 for one, factor in zip(base, factors, strict=True)]
        transforms: list[dict[str, Any]] = [{"type": "scale", "scale": scale}]
        if any(offset):
            transforms.append({"type": "translation", "translation": offset})
        datasets.append({"path": str(level), "coordinateTransformations": transforms})
    multiscales: dict[str, Any] = {"axes": listed, "datasets": datasets}
    title = name or str(getattr(series, "name", "") or "")
    if title:
        multiscales["name"] = title
    ome: dict[str, Any] = {"version": "0.5", "multiscales": [multiscales]}
    count = shapes[0][axes.index("C")] if "C" in axes else 1
    if not channels and "S" not in axes:
        color, labels = palette_colors(series.keyframe, path)
        if color is not None and count == 1:
            channels = [{"color": color}]
        if labels is not None:
            ome["image-label"] = labels
        channels = _merged(channels, imagej_channels(file.imagej_metadata, count, path), series.dtype)
    if channels and len(channels) == count:
        ome["omero"] = {"channels": channels}
    return {"ome": ome}


def _merged(
    channels: list[dict[str, Any]], others: list[dict[str, Any]], dtype: np.dtype[Any]
) -> list[dict[str, Any]]:
    """Return the channels with what others state besides. Their windows get the range of an integer data type."""
    merged = [
        {**other, **channel} for channel, other in zip(channels or [{}] * len(others), others, strict=False)
    ]
    for channel in merged:
        window = channel.get("window")
        if window is not None:
            limits = [window["start"], window["end"]]
            if dtype.kind in "iu":
                limits += [int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)]
            channel["window"] = {**window, "min": min(limits), "max": max(limits)}
    return merged or channels


def _from_ome(file: Any, number: int) -> tuple[Sizes, str, list[dict[str, Any]]]:
    """Return the pixel sizes, the name and the channels of an image from the OME-XML of a file."""
    root = ome_root(file)
    if root is None:
        return {}, "", []
    images = [element for element in root if _tag(element) == "Image"]
    if number >= len(images):
        return {}, "", []
    image = images[number]
    pixels = next((element for element in image if _tag(element) == "Pixels"), None)
    if pixels is None:
        return {}, image.get("Name", ""), []
    sizes: Sizes = {}
    for letter in "XYZ":
        size = _positive(pixels.get(f"PhysicalSize{letter}"))
        if size is not None:
            sizes[letter] = size, _unit(pixels.get(f"PhysicalSize{letter}Unit", "µm"))
    step = _positive(pixels.get("TimeIncrement"))
    if step is not None:
        sizes["T"] = step, _unit(pixels.get("TimeIncrementUnit", "s"))
    channels = []
    for index, channel in enumerate(element for element in pixels if _tag(element) == "Channel"):
        entry: dict[str, Any] = {"label": channel.get("Name") or f"Channel {index}"}
        color = channel.get("Color")
        if color is not None and color.lstrip("-").isdigit() and len(color) < 12:
            entry["color"] = f"{(int(color) >> 8) & 0xFFFFFF:06X}"  # RGBA
        channels.append(entry)
    has_names = any(element.get("Name") or element.get("Color") for element in pixels)
    return sizes, image.get("Name", ""), channels if has_names else []


def _from_imagej(file: Any) -> Sizes:
    """Return the pixel sizes in the metadata of ImageJ, which states the unit; other files only have a print size."""
    metadata = file.imagej_metadata
    if not isinstance(metadata, dict):
        return {}
    unit = _unit(str(metadata.get("unit", "")))
    if unit is None:
        return {}
    sizes: Sizes = {}
    tags = file.pages[0].tags
    for letter, tag in (("X", "XResolution"), ("Y", "YResolution")):
        value = tags.get(tag)
        if value is not None and len(value.value) == 2 and value.value[0]:
            size = _positive(value.value[1] / value.value[0])
            if size is not None:
                sizes[letter] = size, unit
    spacing = _positive(metadata.get("spacing"))
    if spacing is not None:
        sizes["Z"] = spacing, unit
    interval = _positive(metadata.get("finterval"))
    if interval is not None:
        sizes["T"] = interval, _unit(str(metadata.get("tunit", "s")))
    return sizes


def _tag(element: ElementTree.Element) -> str:
    return element.tag.rpartition("}")[2]


def _positive(value: Any) -> float | None:
    try:
        number = float(value)
    except (TypeError, ValueError):
        return None
    return number if math.isfinite(number) and number > 0 else None


def _unit(symbol: str) -> str | None:
    """Return the OME-NGFF name of a unit; None for an unknown one. ImageJ writes the micro sign as ``\\u00B5``."""
    return unit_name(symbol.strip().replace("\\u00B5", "\u00b5"))
