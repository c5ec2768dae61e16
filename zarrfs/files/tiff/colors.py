"""The colours of TIFF images: colour maps (TIFF 6.0, section 5) and the lookup tables of ImageJ.

The values of an image are never replaced by colours. A table from black to one colour is the colour of a channel. A map
whose colours differ from one value to the next is that of labels, which OME-NGFF can represent. The metadata of
OME-NGFF cannot represent a map whose colours change gradually, such as the "fire" of ImageJ: it displays intensities
and is ignored.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from zarrfs.logs import logger

__all__ = ["imagej_channels", "palette_colors"]

PALETTE = 3
"""The value of the tag PhotometricInterpretation for a palette."""

MAX_COLORS = 4096
"""The maximum number of values whose colours are kept. The metadata have an entry for each."""

MAX_8_BIT = 255

MAX_GRADUAL_STEP = 32
"""The largest median difference of successive colours, in the channel where they differ most, of a gradual map. Common
maps of intensities have at most 6, those of labels at least 50.
"""

Colors = npt.NDArray[np.uint8]
"""Red, green and blue of each value, as an array of shape (3, values)."""


def palette_colors(page: Any, path: str) -> tuple[str | None, dict[str, Any] | None]:
    """Return the colour of the channel, as ``RRGGBB``, and the object ``image-label`` of a palette image.

    At most one of them is not None. A warning is logged if the colour map cannot be kept.
    """
    if page.photometric != PALETTE or page.colormap is None:
        return None, None
    stored = np.asarray(page.colormap)
    if stored.ndim != 2 or stored.shape[0] != 3 or not stored.size:
        logger.warning("%s: the colour map is damaged and is ignored", path)
        return None, None
    # The colours have 16 bits. Some programs write 8 bits, as libtiff does when it reads them.
    colors = (stored if stored.max() <= MAX_8_BIT else stored >> 8).astype(np.uint8)
    color = _ramp_color(colors)
    if color is not None:
        return color, None
    if _is_gradual(colors):
        logger.warning(
            "%s: the colour map is not a ramp from black to one colour and is ignored: OME-NGFF cannot represent it",
            path,
        )
        return None, None
    if colors.shape[1] > MAX_COLORS:
        logger.warning(
            "%s: the colour map has %d colours and is ignored; at most %d are kept",
            path,
            colors.shape[1],
            MAX_COLORS,
        )
        return None, None
    listed = [
        {"label-value": value, "rgba": [*(int(part) for part in parts), MAX_8_BIT]}
        for value, parts in enumerate(colors.T)
    ]
    return None, {"colors": listed}


def imagej_channels(metadata: Any, count: int, path: str) -> list[dict[str, Any]]:
    """Return the colours and display ranges of the channels in the metadata of ImageJ; an empty list without them."""
    if not isinstance(metadata, dict):
        return []
    channels: list[dict[str, Any]] = [{} for _ in range(count)]
    tables = metadata.get("LUTs")
    if isinstance(tables, np.ndarray):  # of one channel
        tables = [tables]
    if isinstance(tables, list) and len(tables) == count:
        for number, (channel, table) in enumerate(zip(channels, tables, strict=True)):
            colors = np.asarray(table)
            color = _ramp_color(colors) if colors.ndim == 2 and colors.shape[0] == 3 else None
            if color is None:
                logger.warning(
                    "%s: the lookup table of channel %d is not a ramp from black to a colour and is ignored",
                    path,
                    number,
                )
            else:
                channel["color"] = color
    ranges = metadata.get("Ranges")
    if isinstance(ranges, tuple | list) and len(ranges) == 2 * count:
        for channel, start, end in zip(channels, ranges[::2], ranges[1::2], strict=True):
            if math.isfinite(start) and math.isfinite(end) and start < end:
                channel["window"] = {"start": float(start), "end": float(end)}
    return channels if any(channels) else []


def _ramp_color(colors: npt.NDArray[Any]) -> str | None:
    """Return the last colour of a table that increases evenly from black to it, or None for another table."""
    last = colors[:, -1].astype(float)
    steps = np.linspace(0, 1, colors.shape[1])
    if not last.any() or np.abs(colors - last[:, None] * steps).max() > 1:
        return None
    return "".join(f"{int(part):02X}" for part in last)


def _is_gradual(colors: Colors) -> bool:
    """Return whether the colours of successive values are similar. Equal colours, such as those of unused values, do
    not count.
    """
    steps = np.abs(np.diff(colors.astype(np.int16), axis=1)).max(axis=0, initial=0)
    steps = steps[steps > 0]
    return steps.size > 0 and float(np.median(steps)) <= MAX_GRADUAL_STEP
