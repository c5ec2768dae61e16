"""Parsing the rendering settings in the ``omero`` and ``image-label`` objects. Missing parts are tolerated."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from zarrfs.ngff.model import Channel, ImageLabel, Omero, Rgba, Window
from zarrfs.ngff.reader import Reader
from zarrfs.text import short_repr

__all__ = ["parse_image_label", "parse_omero"]


def parse_omero(omero: Reader) -> Omero:
    """Return the model of an ``omero`` object."""
    rdefs = omero.mapping("rdefs")
    return Omero(
        channels=tuple(_channel(channel) for channel in omero.mappings("channels")),
        default_t=rdefs.integer("defaultT") if rdefs else None,
        default_z=rdefs.integer("defaultZ") if rdefs else None,
        model=rdefs.string("model") if rdefs else None,
    )


def _channel(channel: Reader) -> Channel:
    label = channel.document.get("label")
    return Channel(
        label=None if label is None else str(label),
        color=_color(channel),
        window=_window(channel.mapping("window")),
        active=channel.boolean("active", True),
        inverted=channel.boolean("inverted", False),
    )


def _color(channel: Reader) -> tuple[int, int, int] | None:
    text = channel.string("color")
    if text is None:
        return None
    digits = text.strip().removeprefix("#")
    if len(digits) == 8:  # some writers append the alpha channel
        digits = digits[:6]
    try:
        if len(digits) != 6:
            raise ValueError(digits)
        red, green, blue = bytes.fromhex(digits)
    except ValueError:
        channel.note("color", f"expected 6 hexadecimal digits, found {short_repr(text)}: ignored")
        return None
    return red, green, blue


def _window(window: Reader | None) -> Window | None:
    if window is None:
        return None
    low, high = window.number("min"), window.number("max")
    start, end = window.number("start"), window.number("end")
    start = low if start is None else start
    end = high if end is None else end
    if start is None or end is None:
        return None
    if start > end:
        window.note("start", f"start {start} is greater than end {end}: swapped")
        start, end = end, start
    low = start if low is None else min(low, start)
    high = end if high is None else max(high, end)
    return Window(float(start), float(end), float(low), float(high))


def parse_image_label(image_label: Reader) -> ImageLabel:
    """Return the model of an ``image-label`` object. If a label is repeated, the last entry is used."""
    colors: dict[int, Rgba] = {}
    for item in image_label.mappings("colors"):
        value, rgba = item.integer("label-value"), _rgba(item)
        if value is not None and rgba is not None:
            colors[value] = rgba
    properties: dict[int, Mapping[str, Any]] = {}
    for item in image_label.mappings("properties"):
        value = item.integer("label-value")
        if value is not None:
            properties[value] = {key: entry for key, entry in item.document.items() if key != "label-value"}
    source = image_label.mapping("source")
    return ImageLabel(colors, properties, (source.string("image") if source else None) or "../../")


def _rgba(item: Reader) -> Rgba | None:
    values = item.document.get("rgba")
    if values is None:
        return None
    has_valid_length = isinstance(values, list) and len(values) in (3, 4)
    if not has_valid_length or not all(isinstance(v, int) and 0 <= v <= 255 for v in values):
        item.note("rgba", f"expected four integers from 0 to 255, found {short_repr(values)}: ignored")
        return None
    red, green, blue, alpha = (*values, 255)[:4]
    return int(red), int(green), int(blue), int(alpha)
