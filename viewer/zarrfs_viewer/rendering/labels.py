"""Drawing of label images over a picture: colours, opacity and outlines. Pure NumPy."""

from __future__ import annotations

import colorsys
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from zarrfs.ngff import ImageLabel, Rgba
from zarrfs_viewer.rendering.compose import OPAQUE, Pixels
from zarrfs_viewer.state.view_state import LabelsSettings

__all__ = ["blend_labels", "label_color", "outlines"]

PALETTE_BITS = 12
MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
"""The multiplier of Fibonacci hashing. Consecutive labels, which are often neighbours, get different hues."""
BAND_ROWS = 128
HIGHLIGHT = 0xFFFFFFFF
HIGHLIGHT_WIDTH = 1
"""The outline of the highlighted label, in pixels of the picture."""


def blend_labels(
    pixels: Pixels,
    labels: npt.NDArray[Any],
    settings: LabelsSettings,
    image_label: ImageLabel | None = None,
) -> None:
    """Draw labels over ``pixels`` in place. Both have the same shape, otherwise ValueError is raised.

    The colour of a label is that of ``image_label``, otherwise it depends on the label's value only. Label 0 is
    not drawn unless ``image_label`` has a colour for it. Pixels with a label become opaque. The outline of the
    highlighted label is white.
    """
    if pixels.shape != labels.shape:
        raise ValueError(f"labels have shape {labels.shape}; expected the picture's shape {pixels.shape}")
    contours = outlines(labels, settings.contour) if settings.contour > 0 else None
    explicit = tuple(sorted(image_label.colors.items())) if image_label is not None else ()
    opacity = min(max(settings.opacity, 0.0), 1.0)
    for top in range(0, len(pixels), BAND_ROWS):
        rows = slice(top, top + BAND_ROWS)
        colors = _colors(labels[rows], explicit)
        if contours is not None:
            colors[~contours[rows]] = 0
        if settings.selected is not None:
            colors[labels[rows] != settings.selected] = 0
        _blend(pixels[rows], colors, opacity)
    if settings.highlighted is not None and (settings.selected in (None, settings.highlighted)):
        pixels[outlines(labels == settings.highlighted, HIGHLIGHT_WIDTH)] = HIGHLIGHT


def label_color(value: int, image_label: ImageLabel | None = None) -> Rgba:
    """Return the colour (r, g, b, a) of one label, as ``blend_labels`` draws it at full opacity."""
    if image_label is not None and value in image_label.colors:
        return image_label.colors[value]
    packed = int(_palette()[_hash(np.array([value & 0xFFFFFFFFFFFFFFFF], np.uint64))[0]]) if value else 0
    return packed >> 16 & 255, packed >> 8 & 255, packed & 255, packed >> 24


def outlines(labels: npt.NDArray[Any], width: int = 1) -> npt.NDArray[np.bool_]:
    """Return a mask of the pixels that have another label at most ``width`` pixels above, below, left or right."""
    edge = np.zeros(labels.shape, np.bool_)
    for step in range(1, width + 1):
        down = labels[step:] != labels[:-step]
        edge[step:] |= down
        edge[:-step] |= down
        across = labels[:, step:] != labels[:, :-step]
        edge[:, step:] |= across
        edge[:, :-step] |= across
    return edge


@lru_cache(maxsize=1)
def _palette() -> npt.NDArray[np.uint32]:
    """Return opaque colours 0xffRRGGBB of all hues, each in four combinations of saturation and brightness."""
    colors = np.empty(1 << PALETTE_BITS, np.uint32)
    for index in range(len(colors)):
        variant = index & 3
        hue = (index >> 2) / (len(colors) >> 2)
        red, green, blue = colorsys.hsv_to_rgb(
            hue, (1.0, 0.75, 0.55, 0.9)[variant], (1.0, 0.95, 1.0, 0.75)[variant]
        )
        colors[index] = 0xFF000000 | round(red * 255) << 16 | round(green * 255) << 8 | round(blue * 255)
    colors.flags.writeable = False
    return colors


def _hash(values: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Return the palette index of each label."""
    return values * MULTIPLIER >> np.uint64(64 - PALETTE_BITS)


def _colors(labels: npt.NDArray[Any], explicit: tuple[tuple[int, Rgba], ...]) -> npt.NDArray[np.uint32]:
    """Return the colour 0xAARRGGBB of each pixel, 0 for labels that are not drawn."""
    if labels.dtype.kind in "biu" and labels.dtype.itemsize <= 2:
        view: npt.NDArray[Any] = labels.view(f"u{labels.dtype.itemsize}")
        table = _complete_table(labels.dtype.str, explicit)
        looked_up: npt.NDArray[np.uint32] = np.take(table, view, mode="clip")
        return looked_up
    integers = labels.astype(np.int64) if labels.dtype.kind == "f" else labels
    values = integers.astype(np.uint64)  # negative labels wrap around, as in label_color
    colors = np.take(_palette(), _hash(values).astype(np.intp), mode="clip")
    colors[values == 0] = 0
    return _with_explicit(values, colors, explicit)


@lru_cache(maxsize=8)
def _complete_table(dtype: str, explicit: tuple[tuple[int, Rgba], ...]) -> npt.NDArray[np.uint32]:
    """Return the colours of all values of an 8-bit or 16-bit data type."""
    label_dtype = np.dtype(dtype)
    codes = np.arange(1 << 8 * label_dtype.itemsize, dtype=np.uint32)
    labels = codes.astype(f"u{label_dtype.itemsize}").view(label_dtype)
    values = labels.astype(np.int64).astype(np.uint64)
    colors = _palette()[_hash(values).astype(np.intp)].copy()
    colors[values == 0] = 0
    return _with_explicit(values, colors, explicit)


def _with_explicit(
    values: npt.NDArray[np.uint64], colors: npt.NDArray[np.uint32], explicit: tuple[tuple[int, Rgba], ...]
) -> npt.NDArray[np.uint32]:
    """Return ``colors`` with the colours that the metadata declare."""
    if not explicit:
        return colors
    pairs = sorted((value & 0xFFFFFFFFFFFFFFFF, rgba) for value, rgba in explicit)
    keys = np.array([value for value, _ in pairs], np.uint64)
    packed = np.array([a << 24 | r << 16 | g << 8 | b for _, (r, g, b, a) in pairs], np.uint32)
    index = np.minimum(np.searchsorted(keys, values), len(keys) - 1)
    return np.where(keys[index] == values, packed[index], colors)


def _blend(pixels: Pixels, colors: npt.NDArray[np.uint32], opacity: float) -> None:
    """Blend ``colors`` over ``pixels`` in place. Where alpha is 0 the pixels are not changed."""
    drawn = np.flatnonzero(colors >> np.uint32(24))
    if not len(drawn):
        return
    foreground = colors.reshape(-1)[drawn]
    flat = pixels.reshape(-1)
    background = flat[drawn]
    alpha = np.round((foreground >> np.uint32(24)) * opacity).astype(np.uint16)
    transparency = np.uint16(255) - alpha
    result = np.full(len(drawn), OPAQUE, np.uint32)
    for shift in (np.uint32(0), np.uint32(8), np.uint32(16)):
        lane = (foreground >> shift & np.uint32(255)).astype(np.uint16) * alpha
        lane += (background >> shift & np.uint32(255)).astype(np.uint16) * transparency
        lane += np.uint16(127)
        result |= (lane // np.uint16(255)).astype(np.uint32) << shift
    flat[drawn] = result
