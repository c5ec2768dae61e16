"""What is drawn on a canvas: the pictures of the image and of layers, the chunk grid, shapes, scale bar and state."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from PyQt6.QtGui import QImage, QPainter

from zarrfs_viewer.analysis.chunk_overlay import ChunkGrid, unreadable_chunks
from zarrfs_viewer.analysis.readout import scale_bar
from zarrfs_viewer.analysis.regions import Region
from zarrfs_viewer.analysis.shapes import Shape
from zarrfs_viewer.images.image import Image
from zarrfs_viewer.qt.canvas.painting import (
    PictureOverlay,
    Rect,
    draw_cross,
    draw_grid,
    draw_missing,
    draw_picture,
    draw_picture_overlay,
    draw_progress,
    draw_regions,
    draw_scale_bar,
    draw_shape,
    draw_status,
    draw_unreadable,
    scale_bar_width,
    status_width,
)
from zarrfs_viewer.rendering.renderer import Frame, slice_id
from zarrfs_viewer.state.view_state import Viewport

__all__ = ["CanvasLayers"]

MAX_SCALE_BAR, MAX_SCALE_BAR_PART = 120.0, 0.4
"""The length of the scale bar in pixels, and as a part of the width of the pane."""
STATUS_HEIGHT = 40
"""Pixels. In a narrow pane the scale bar is so much higher than the state."""


class CanvasLayers:
    """The layers of one canvas, which are drawn in a viewport from back to front.

    Attributes:
        title: the names of the displayed axes, drawn beside the loading state.
        show_scale_bar: whether the scale bar is drawn.
        image, displayed: the image and its displayed axes (rows, columns).
        frame: the frame that is drawn.
        backdrop: a frame of a larger part of the same slice, which is drawn below it: panning and zooming out show it
            until the next frame arrives.
        is_late: whether another slice is requested than that of the frame, and has not arrived for some time.
        progress: what is loaded before the first frame, in the middle of the canvas.
        note: a note about the picture, in the middle of the canvas.
        grid, missing: the chunk grid, and the chunks that are hatched. With a grid, unreadable chunks are marked too.
        regions: the regions whose outlines and names are drawn.
        overlays: the pictures of layers over the picture, from back to front.
        shows_picture: whether the picture itself is drawn.
        extent: the box (top, left, bottom, right) of the picture and its layers in data coordinates; None if it is the
            picture.
    """

    def __init__(self) -> None:
        self.title = ""
        self.show_scale_bar = True
        self.image: Image | None = None
        self.displayed = (0, 1)
        self.frame: Frame | None = None
        self._pixels: QImage | None = None
        self.backdrop: Frame | None = None
        self._backdrop_pixels: QImage | None = None
        self.is_late = False
        self.progress = self.note = ""
        self.grid: ChunkGrid | None = None
        self.missing: tuple[Rect, ...] = ()
        self.regions: tuple[Region, ...] = ()
        self.overlays: tuple[PictureOverlay, ...] = ()
        self.shows_picture = True
        self.extent: Rect | None = None

    def show_image(self, image: Image | None, displayed: tuple[int, int]) -> None:
        """Prepare for another image or other axes. Removes the frame and the chunk grid."""
        self.image, self.displayed = image, displayed
        self.frame = self._pixels = self.grid = self.extent = None
        self.backdrop = self._backdrop_pixels = None
        self.missing, self.overlays, self.is_late = (), (), False
        self.progress = self.note = ""

    def show_frame(self, frame: Frame) -> None:
        """Draw another frame."""
        former = self.frame
        self.frame, self._pixels = frame, _picture(frame)
        self.is_late, self.progress = False, ""
        if self.backdrop is not None and not frame.is_replaced and not _is_same_picture(self.backdrop, frame):
            self.backdrop = self._backdrop_pixels = None
        if former is not None:
            self.offer_backdrop(former)

    def offer_backdrop(self, frame: Frame) -> None:
        """Draw a frame below the current one if both are of the same slice, and it is of a larger part than others."""
        if self.frame is None or not frame.complete or not _is_same_picture(frame, self.frame):
            return
        areas = [0.0 if each is None else _area(each) for each in (self.frame, self.backdrop)]
        if _area(frame) > max(areas):
            self.backdrop, self._backdrop_pixels = frame, _picture(frame)

    def paint(
        self,
        painter: QPainter,
        viewport: Viewport,
        size: tuple[int, int],
        ratio: float,
        cross: tuple[float, float] | None,
        shape: Shape | None,
        is_drawing: bool,
    ) -> None:
        """Draw all layers, or without an image what is being opened.

        Args:
            painter: a painter whose unit is a pixel of the widget.
            viewport: the displayed part of the plane. Its size is in device pixels.
            size: the width and the height of the widget in its pixels.
            ratio: the number of device pixels per pixel of the widget.
            cross: the position of the cross-hair, or None.
            shape: the shape, or None.
            is_drawing: whether the shape is a polygon that is being drawn.
        """
        logical = replace(viewport, width=size[0], height=size[1])
        if self.frame is None:
            draw_progress(painter, logical, self.progress)
        if self.image is None:
            return
        painter.save()
        painter.scale(1 / ratio, 1 / ratio)
        if self.backdrop is not None and self._backdrop_pixels is not None and self.shows_picture:
            draw_picture(painter, viewport, self.backdrop.grid.rect, self._backdrop_pixels)
        if self.frame is not None and self._pixels is not None and self.shows_picture:
            draw_picture(painter, viewport, self.frame.grid.rect, self._pixels)
        for overlay in self.overlays:
            draw_picture_overlay(painter, viewport, overlay)
        draw_missing(painter, viewport, self.missing)
        if self.grid is not None:
            draw_grid(painter, viewport, self.grid)
            if self.frame is not None:
                draw_unreadable(painter, viewport, unreadable_chunks(self.frame.state, self.frame.errors))
        if cross is not None:
            draw_cross(painter, viewport, cross)
        draw_regions(painter, viewport, self.regions)
        if shape is not None:
            draw_shape(painter, viewport, shape, is_drawing)
        painter.restore()
        # Texts have the size that they have in other widgets, whatever the number of device pixels per pixel is.
        if self.show_scale_bar:
            self._draw_scale_bar(painter, self.image, logical, ratio)
        draw_status(painter, logical, self.frame, self.title, self.is_late)
        if self.frame is not None and self.note:
            draw_progress(painter, logical, self.note)

    def _draw_scale_bar(self, painter: QPainter, image: Image, viewport: Viewport, ratio: float) -> None:
        is_turned = viewport.turns % 2 == 1
        axis, zoom = self.displayed[not is_turned], viewport.zooms[not is_turned]
        target = min(MAX_SCALE_BAR, MAX_SCALE_BAR_PART * viewport.width)
        bar = scale_bar(image, axis, zoom / ratio, target)
        width = status_width(painter, viewport, self.frame, self.title)
        is_narrow = width + scale_bar_width(bar.pixels) > viewport.width
        above = replace(viewport, height=viewport.height - STATUS_HEIGHT) if is_narrow else viewport
        draw_scale_bar(painter, above, bar.pixels, bar.text)


def _picture(frame: Frame) -> QImage:
    """Return a view of the pixels of a frame, which keeps them in memory."""
    height, width = frame.pixels.shape
    data: Any = frame.pixels.data
    return QImage(data, width, height, width * 4, QImage.Format.Format_ARGB32_Premultiplied)


def _is_same_picture(frame: Frame, other: Frame) -> bool:
    """Return whether two frames show parts of the same slice in the same colours."""
    parts = ("channels", "labels", "level_lock")
    settings, other_settings = frame.state.settings, other.state.settings
    return slice_id(frame.state) == slice_id(other.state) and all(
        getattr(settings, name) == getattr(other_settings, name) for name in parts
    )


def _area(frame: Frame) -> float:
    top, left, bottom, right = frame.grid.rect
    return abs((bottom - top) * (right - left))
