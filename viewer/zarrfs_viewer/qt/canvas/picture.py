"""Pictures of a view at any size, with a scale bar, as QImage. The functions can be called on any thread."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from PyQt6.QtGui import QColor, QImage, QPainter

from zarrfs_viewer.analysis.readout import scale_bar
from zarrfs_viewer.qt.canvas.painting import PictureOverlay, draw_picture_overlay, draw_scale_bar
from zarrfs_viewer.qt.canvas.painting import draw_picture as draw_plane
from zarrfs_viewer.rendering.compose import Pixels
from zarrfs_viewer.rendering.renderer import Frame

__all__ = ["draw_picture", "to_pixels"]

UNSCALED_WIDTH = 1000
"""Pixels. The scale bar and its text become larger in wider pictures."""


def draw_picture(
    frame: Frame,
    with_scale_bar: bool,
    layers: Sequence[PictureOverlay] = (),
    shows_first: bool = True,
) -> QImage:
    """Return the picture of a frame with the size of its viewport, and layers over it, from back to front.

    What is outside of the images is black. Without ``shows_first`` the frame itself is not drawn.
    """
    viewport, image = frame.state.viewport, frame.state.image
    picture = QImage(viewport.width, viewport.height, QImage.Format.Format_RGB32)
    picture.fill(QColor(0, 0, 0))
    height, width = frame.pixels.shape
    data: Any = frame.pixels.data
    source = QImage(data, width, height, width * 4, QImage.Format.Format_ARGB32_Premultiplied)
    painter = QPainter(picture)
    if shows_first:
        draw_plane(painter, viewport, frame.grid.rect, source)
    for layer in layers:
        draw_picture_overlay(painter, viewport, layer)
    if with_scale_bar:
        factor = max(1.0, viewport.width / UNSCALED_WIDTH)
        painter.scale(factor, factor)
        side = 0 if viewport.turns % 2 else 1  # the axis that is horizontal
        bar = scale_bar(image, frame.state.settings.displayed[side], viewport.zooms[side] / factor)
        scaled = replace(
            viewport, width=round(viewport.width / factor), height=round(viewport.height / factor)
        )
        draw_scale_bar(painter, scaled, bar.pixels, bar.text)
    painter.end()
    return picture


def to_pixels(picture: QImage) -> Pixels:
    """Return a picture in the format RGB32 as an array of 0xffRRGGBB."""
    bits: Any = picture.constBits()
    bits.setsize(picture.sizeInBytes())
    rows = np.frombuffer(bits, np.uint32).reshape(picture.height(), picture.bytesPerLine() // 4)
    return rows[:, : picture.width()].copy()
