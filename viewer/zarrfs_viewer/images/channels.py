"""The channels that an image begins with: colours, ranges and labels from ``omero``, else sensible ones.
Pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from zarrfs.ngff import Channel, Omero, Window
from zarrfs_viewer.images.values import data_limits, fields
from zarrfs_viewer.state.view_state import ChannelSettings

__all__ = ["default_channels"]

COLORS = ("#00FF00", "#FF00FF", "#00FFFF", "#FFFF00", "#FF4040", "#4060FF")
"""For channels that bring no colour; the first two are told apart by colour-blind eyes."""
VISIBLE = 6
"""Of channels without metadata, so many are shown at first."""


def default_channels(
    dtype: np.dtype[Any],
    shape: Sequence[int],
    channel_axis: int | None,
    rgb_axis: int | None,
    omero: Omero | None,
) -> tuple[ChannelSettings, ...]:
    """Return one entry per channel (and field of a structured type)."""
    if rgb_axis is not None:
        return (ChannelSettings(label="RGB", limits=_known_limits(dtype)),)
    hints = omero.channels if omero is not None else ()
    names: tuple[str | None, ...] = fields(dtype) or (None,)
    count = 1 if channel_axis is None else shape[channel_axis]
    total = count * len(names)
    channels: list[ChannelSettings] = []
    for index in range(count):
        hint = hints[index] if index < len(hints) else None
        for field in names:
            channels.append(_channel(dtype, index, len(channels), total, hint, field))
    if not any(channel.visible for channel in channels):
        return (_shown(channels[0]), *channels[1:])
    return tuple(channels)


def _shown(channel: ChannelSettings) -> ChannelSettings:
    return ChannelSettings(**{**channel.__dict__, "visible": True})


def _channel(
    dtype: np.dtype[Any], index: int, number: int, total: int, hint: Channel | None, field: str | None
) -> ChannelSettings:
    scalar = dtype if field is None or dtype.fields is None else dtype.fields[field][0]
    window = _useful_window(hint.window if hint else None, scalar)
    colormap = "gray" if total == 1 else COLORS[number % len(COLORS)]
    if hint is not None and hint.color is not None:
        red, green, blue = hint.color
        # One grey is as good as another for the only channel, and the full ramp shows more than 808080 would.
        gray = total == 1 and red == green == blue
        colormap = "gray" if gray else f"#{red:02X}{green:02X}{blue:02X}"
    label = (hint.label if hint else None) or (f"Channel {index}" if total > 1 else "")
    if field is not None:
        label = f"{label} {field}".strip() if hint or total > len(dtype.names or ()) else field
    return ChannelSettings(
        index=index,
        label=label,
        colormap=colormap,
        limits=(window.start, window.end) if window else _known_limits(scalar, only_bool=True),
        limits_range=(window.min, window.max) if window else None,
        invert=bool(hint and hint.inverted),
        visible=hint.active if hint else number < VISIBLE,
        component="abs" if scalar.kind == "c" else "value",
        field=field,
    )


def _useful_window(window: Window | None, dtype: np.dtype[Any]) -> Window | None:
    """Return the window if it says more than the data type does: 0 to 65535 would show most cameras' data
    black.
    """
    if window is None or not window.start < window.end:
        return None
    if dtype.kind in "iu" and dtype.itemsize > 1 and (window.start, window.end) == data_limits(dtype):
        return None
    return window


def _known_limits(dtype: np.dtype[Any], only_bool: bool = False) -> tuple[float, float] | None:
    if dtype.kind == "b":
        return (0.0, 1.0)
    if only_bool:
        return None
    return data_limits(dtype) if dtype.itemsize == 1 or dtype.kind in "fc" else None
