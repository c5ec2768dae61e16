"""The pictures of layers: frames at their places over another image. The functions can be called on any thread."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from PyQt6.QtGui import QImage

from zarrfs.errors import ZarrError
from zarrfs_viewer.display.pairing import Pairing, pair
from zarrfs_viewer.export.picture import render_view
from zarrfs_viewer.images.image import Image
from zarrfs_viewer.qt.canvas.painting import Blending, PictureOverlay
from zarrfs_viewer.rendering.renderer import Frame
from zarrfs_viewer.state.view_state import DisplaySettings, Viewport

__all__ = ["LayerDrawing", "layer_settings", "picture_overlay", "render_layers"]


@dataclass(frozen=True)
class LayerDrawing:
    """What is needed to draw a layer. ``open`` returns its image and its settings, and may block."""

    name: str
    open: Callable[[], tuple[Image, DisplaySettings]]
    blending: Blending
    opacity: float


def layer_settings(settings: DisplaySettings, pairing: Pairing) -> DisplaySettings:
    """Return the settings of a layer at the position of the first image."""
    place = pairing.settings
    return replace(settings, displayed=place.displayed, position=place.position, projection=place.projection)


def picture_overlay(frame: Frame, pairing: Pairing, blending: Blending, opacity: float) -> PictureOverlay:
    """Return the picture of a frame in the data coordinates of the first image."""
    height, width = frame.pixels.shape
    data: Any = frame.pixels.data
    picture = QImage(data, width, height, width * 4, QImage.Format.Format_ARGB32_Premultiplied)
    by_rows, by_columns = pairing.mirrored
    if by_rows or by_columns:
        picture = picture.mirrored(by_columns, by_rows)
    rect = pairing.rect_to_first(frame.grid.rect)
    return PictureOverlay(picture, rect, blending, opacity, frame.state.viewport.zoom < 1, frame)


def render_layers(
    first: Image, settings: DisplaySettings, viewport: Viewport, layers: Sequence[LayerDrawing]
) -> tuple[list[PictureOverlay], str]:
    """Return the pictures of layers over a view of the first image, and why parts are missing. Blocks."""
    overlays, problem = [], ""
    for layer in layers:
        try:
            image, own = layer.open()
            pairing = pair(first, settings, image)
            if pairing is None or not pairing.is_displayed(viewport):
                continue
            frame = render_view(
                image, layer_settings(own, pairing), pairing.to_second(viewport), skip_corrupt=True
            )
        except ZarrError as error:
            problem = problem or f"{layer.name}: {error}"
            continue
        if frame.errors:
            problem = problem or f"{layer.name}: {frame.errors[0].message}"
        overlays.append(picture_overlay(frame, pairing, layer.blending, layer.opacity))
    return overlays, problem
