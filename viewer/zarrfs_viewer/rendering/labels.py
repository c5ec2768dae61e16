"""Label images laid over a picture: colours by label, opacity, outlines. Pure NumPy."""

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
"""Fibonacci hashing: neighbouring labels, which touch in the image, get far-apart colours."""
BAND_ROWS = 128


def blend_labels(
    pixels: Pixels,
    labels: npt.NDArray[Any],
    settings: LabelsSettings,
    image_label: ImageLabel | None = None,
) -> None:
    """Lay labels of the same shape over ``pixels``, in place.

    Colours are those of ``image_label``, else of a stable palette by the label's value. Label 0 is nothing,
    unless ``image_label`` colours it. Where a label is drawn the pixel becomes opaque.
    """
    if pixels.shape != labels.shape:
        raise ValueError(f"labels of shape {labels.shape} do not fit a picture of shape {pixels.shape}")
    drawn = outlines(labels, settings.contour) if settings.contour > 0 else None
    explicit = tuple(sorted(image_label.colors.items())) if image_label is not None else ()
    opacity = min(max(settings.opacity, 0.0), 1.0)
    for top in range(0, len(pixels), BAND_ROWS):
        rows = slice(top, top + BAND_ROWS)
        colors = _colors(labels[rows], explicit)
        if drawn is not None:
            colors[~drawn[rows]] = 0
        if settings.selected is not None:
            colors[labels[rows] != settings.selected] = 0
        _blend(pixels[rows], colors, opacity)


def label_color(value: int, image_label: ImageLabel | None = None) -> Rgba:
    """Return the colour (r, g, b, a) of one label, as ``blend_labels`` draws it at full opacity."""
    if image_label is not None and value in image_label.colors:
        return image_label.colors[value]
    packed = int(_palette()[_slot(np.array([value & 0xFFFFFFFFFFFFFFFF], np.uint64))[0]]) if value else 0
    return packed >> 16 & 255, packed >> 8 & 255, packed & 255, packed >> 24


def outlines(labels: npt.NDArray[Any], width: int = 1) -> npt.NDArray[np.bool_]:
    """Return where a pixel lies within ``width`` pixels, straight up, down, left or right, of another
    label.
    """
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
    """Return opaque colours 0xffRRGGBB: hues all round, each in a few strengths, none too dark or pale to
    see.
    """
    colors = np.empty(1 << PALETTE_BITS, np.uint32)
    for slot in range(len(colors)):
        strength = slot & 3
        hue = (slot >> 2) / (len(colors) >> 2)
        red, green, blue = colorsys.hsv_to_rgb(
            hue, (1.0, 0.75, 0.55, 0.9)[strength], (1.0, 0.95, 1.0, 0.75)[strength]
        )
        colors[slot] = 0xFF000000 | round(red * 255) << 16 | round(green * 255) << 8 | round(blue * 255)
    colors.flags.writeable = False
    return colors


def _slot(values: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    return values * MULTIPLIER >> np.uint64(64 - PALETTE_BITS)


def _colors(labels: npt.NDArray[Any], explicit: tuple[tuple[int, Rgba], ...]) -> npt.NDArray[np.uint32]:
    """Return the colour 0xAARRGGBB of each pixel, 0 where nothing is drawn."""
    if labels.dtype.kind in "biu" and labels.dtype.itemsize <= 2:
        view: npt.NDArray[Any] = labels.view(f"u{labels.dtype.itemsize}")
        table = _small_table(labels.dtype.str, explicit)
        chosen: npt.NDArray[np.uint32] = np.take(table, view, mode="clip")
        return chosen
    integers = labels.astype(np.int64) if labels.dtype.kind == "f" else labels
    values = integers.astype(np.uint64)  # negative labels wrap, as in label_color
    colors = np.take(_palette(), _slot(values).astype(np.intp), mode="clip")
    colors[values == 0] = 0
    return _with_explicit(values, colors, explicit)


@lru_cache(maxsize=8)
def _small_table(dtype: str, explicit: tuple[tuple[int, Rgba], ...]) -> npt.NDArray[np.uint32]:
    kind = np.dtype(dtype)
    values = np.arange(1 << 8 * kind.itemsize, dtype=np.uint32)
    labels = values.astype(f"u{kind.itemsize}").view(kind)
    wide = labels.astype(np.int64).astype(np.uint64)
    colors = _palette()[_slot(wide).astype(np.intp)].copy()
    colors[wide == 0] = 0
    return _with_explicit(wide, colors, explicit)


def _with_explicit(
    values: npt.NDArray[np.uint64], colors: npt.NDArray[np.uint32], explicit: tuple[tuple[int, Rgba], ...]
) -> npt.NDArray[np.uint32]:
    if not explicit:
        return colors
    pairs = sorted((value & 0xFFFFFFFFFFFFFFFF, rgba) for value, rgba in explicit)
    keys = np.array([value for value, _ in pairs], np.uint64)
    packed = np.array([a << 24 | r << 16 | g << 8 | b for _, (r, g, b, a) in pairs], np.uint32)
    place = np.minimum(np.searchsorted(keys, values), len(keys) - 1)
    return np.where(keys[place] == values, packed[place], colors)


def _blend(pixels: Pixels, colors: npt.NDArray[np.uint32], opacity: float) -> None:
    """Lay ``colors`` over ``pixels``: what has no alpha leaves them as they are, bit for bit."""
    drawn = np.flatnonzero(colors >> np.uint32(24))
    if not len(drawn):
        return
    over = colors.reshape(-1)[drawn]
    flat = pixels.reshape(-1)
    below = flat[drawn]
    alpha = np.round((over >> np.uint32(24)) * opacity).astype(np.uint16)
    rest = np.uint16(255) - alpha
    result = np.full(len(drawn), OPAQUE, np.uint32)
    for shift in (np.uint32(0), np.uint32(8), np.uint32(16)):
        lane = (over >> shift & np.uint32(255)).astype(np.uint16) * alpha
        lane += (below >> shift & np.uint32(255)).astype(np.uint16) * rest
        lane += np.uint16(127)
        result |= (lane // np.uint16(255)).astype(np.uint32) << shift
    flat[drawn] = result
