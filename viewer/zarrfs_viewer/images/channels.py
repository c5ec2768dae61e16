"""The initial channel settings of an image: from the ``omero`` metadata, otherwise defaults. Pure functions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from zarrfs.ngff import Channel, Omero, Window
from zarrfs_viewer.images.values import data_limits, fields
from zarrfs_viewer.state.view_state import ChannelSettings

__all__ = ["PALETTES", "default_channels", "set_palette"]

PALETTES = {
    "green-magenta": ("#00FF00", "#FF00FF", "#00FFFF", "#FFFF00", "#FF4040", "#4060FF"),
    "red-green-blue": ("#FF0000", "#00FF00", "#0000FF", "#FFFF00", "#FF00FF", "#00FFFF"),
    "cyan-magenta-yellow": ("#00FFFF", "#FF00FF", "#FFFF00", "#FF4040", "#00FF00", "#4060FF"),
}
"""The colours of channels without a declared colour, by the name of the palette. In the first palette, people with
colour vision deficiency can distinguish the first two colours.
"""
_palette = [PALETTES["green-magenta"]]
MAX_INITIALLY_VISIBLE = 3
"""The number of channels without metadata that are visible at first."""
MAX_DECLARED_VISIBLE = 8
"""If metadata declare all of more channels than this active, as some writers always do, only the first
``MAX_INITIALLY_VISIBLE`` are visible at first. The sum of so many channels is white."""


def set_palette(name: str) -> None:
    """Use a palette of ``PALETTES`` for the images that are opened from now on. An unknown name is ignored."""
    _palette[:] = [PALETTES.get(name, _palette[0])]


def default_channels(
    dtype: np.dtype[Any],
    shape: Sequence[int],
    channel_axis: int | None,
    rgb_axis: int | None,
    omero: Omero | None,
) -> tuple[ChannelSettings, ...]:
    """Return one entry per channel, or per channel and field of a structured data type."""
    if rgb_axis is not None:
        return (ChannelSettings(label="RGB", limits=data_limits(dtype) if dtype == np.uint8 else None),)
    declared = omero.channels if omero is not None else ()
    names: tuple[str | None, ...] = fields(dtype) or (None,)
    count = 1 if channel_axis is None else shape[channel_axis]
    total = count * len(names)
    channels: list[ChannelSettings] = []
    for index in range(count):
        channel = declared[index] if index < len(declared) else None
        for field in names:
            channels.append(_channel_settings(dtype, index, len(channels), total, channel, field))
    if total > MAX_DECLARED_VISIBLE and all(channel.visible for channel in channels):
        hidden = (replace(channel, visible=False) for channel in channels[MAX_INITIALLY_VISIBLE:])
        return (*channels[:MAX_INITIALLY_VISIBLE], *hidden)
    if not any(channel.visible for channel in channels):
        return (replace(channels[0], visible=True), *channels[1:])
    return tuple(channels)


def _channel_settings(
    dtype: np.dtype[Any], index: int, number: int, total: int, declared: Channel | None, field: str | None
) -> ChannelSettings:
    scalar = dtype if field is None or dtype.fields is None else dtype.fields[field][0]
    window = _informative_window(declared.window if declared else None, scalar)
    colormap = "gray" if total == 1 else _palette[0][number % len(_palette[0])]
    if declared is not None and declared.color is not None:
        red, green, blue = declared.color
        # A single channel declared as a darker gray is drawn with the full ramp, which has more contrast.
        is_gray = total == 1 and red == green == blue
        colormap = "gray" if is_gray else f"#{red:02X}{green:02X}{blue:02X}"
    label = (declared.label if declared else None) or (f"Channel {index}" if total > 1 else "")
    if field is not None:
        label = f"{label} {field}".strip() if declared or total > len(dtype.names or ()) else field
    return ChannelSettings(
        index=index,
        label=label,
        colormap=colormap,
        limits=(window.start, window.end) if window else (0.0, 1.0) if scalar.kind == "b" else None,
        limits_range=(window.min, window.max) if window else None,
        invert=bool(declared and declared.inverted),
        visible=declared.active if declared else number < MAX_INITIALLY_VISIBLE,
        component="abs" if scalar.kind == "c" else "value",
        field=field,
    )


def _informative_window(window: Window | None, dtype: np.dtype[Any]) -> Window | None:
    """Return the window, or None if it is the range of the data type.

    Most cameras do not use the range 0 to 65535, so their data would be drawn black. 8-bit windows are accepted.
    """
    if window is None or not window.start < window.end:
        return None
    if dtype.kind in "iu" and dtype.itemsize > 1:
        low, high = data_limits(dtype)
        if (float(window.start), float(window.end)) == (float(low), float(high)):
            return None
    return window
