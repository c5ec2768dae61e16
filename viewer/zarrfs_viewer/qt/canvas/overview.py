"""The overview map: the whole plane, with a frame around the part that the canvas shows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from PyQt6.QtCore import QRectF, Qt, QTimer, pyqtSignal
from PyQt6.QtGui import QColor, QHideEvent, QImage, QMouseEvent, QPainter, QPaintEvent, QPen, QShowEvent
from PyQt6.QtWidgets import QWidget

from zarrfs_viewer.display.levels import pixel_aspect
from zarrfs_viewer.images.image import Image
from zarrfs_viewer.qt.canvas.canvas import Canvas
from zarrfs_viewer.qt.canvas.painting import device_rect, draw_picture
from zarrfs_viewer.rendering.pipeline import ViewPipeline
from zarrfs_viewer.rendering.renderer import Frame
from zarrfs_viewer.state.view_state import DisplaySettings, Viewport, fit
from zarrfs_viewer.streaming.streamer import TileStreamer

__all__ = ["OverviewMap"]

SIZE = 150
"""The length of the longer side in pixels."""
MARGIN = 12
DELAY_MILLISECONDS = 120
"""The map is drawn when the slice has not changed for this long, so that it does not delay steps."""
MAX_VISIBLE_PART = 0.95
"""The map is hidden while at least this part of both axes is visible."""
BACKGROUND, BORDER = QColor(18, 18, 22, 220), QColor(150, 150, 160)
VISIBLE = QColor(255, 230, 90)


class OverviewMap(QWidget):
    """A map in a corner of a canvas. It is visible while the canvas shows a part of the plane.

    Signals:
        moved: (row, column) the user selected another centre of the canvas, in data coordinates.
    """

    moved = pyqtSignal(float, float)
    _frame_received = pyqtSignal(object)

    def __init__(self, canvas: Canvas, streamer: TileStreamer) -> None:
        super().__init__(canvas)
        self.setAccessibleName("Overview map")
        self.setToolTip("The visible part of the image. Click or drag to move it.")
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self._canvas = canvas
        self._streamer = streamer
        self._pipeline: ViewPipeline | None = None
        self._request: tuple[Image, DisplaySettings, Sequence[Image]] | None = None
        self._viewport = Viewport(SIZE, SIZE, (0.0, 0.0), 1.0)
        self._frame: Frame | None = None
        self._is_enabled = True
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.setInterval(DELAY_MILLISECONDS)
        self._timer.timeout.connect(self._draw)
        self._frame_received.connect(self._show_frame)
        canvas.viewport_changed.connect(self._arrange)
        self.hide()

    def set_enabled(self, on: bool) -> None:
        """Show the map when a part of the plane is visible, or never."""
        self._is_enabled = on
        self._arrange()

    def show_settings(
        self, image: Image | None, settings: DisplaySettings | None, overlays: Sequence[Image]
    ) -> None:
        """Show the plane of settings. Without an image the map is hidden."""
        previous = self._request
        self._request = None if image is None or settings is None else (image, settings, overlays)
        if (
            previous is None
            or image is not previous[0]
            or settings is None
            or previous[1].displayed != settings.displayed
        ):
            self._frame = None
        self._arrange()
        if not self.isHidden():
            self._timer.start()

    def close_map(self) -> None:
        """Stop the pipeline."""
        self._timer.stop()
        if self._pipeline is not None:
            self._pipeline.close()

    # -- display -----------------------------------------------------------------------------------------------

    def _arrange(self) -> None:
        """Set the size and the visibility for the viewport of the canvas."""
        is_needed = self._is_enabled and self._request is not None and self._is_part_visible()
        if is_needed and self._request is not None:
            image, settings, _ = self._request
            shown = self._canvas.viewport
            rows, columns = (image.shape[axis] for axis in settings.displayed)
            ratio = self.devicePixelRatioF()
            size = round(SIZE * ratio)
            aspect = pixel_aspect(image, settings.displayed)
            viewport = fit(size, size, rows, columns, aspect, 0.0, shown.turns, shown.mirrored)
            height, width = rows * viewport.zooms[0], columns * viewport.zooms[1]
            if shown.turns % 2:
                height, width = width, height
            viewport = replace(viewport, width=max(8, round(width)), height=max(8, round(height)))
            if viewport != self._viewport or self.isHidden():
                self._viewport = viewport
                self._timer.start()
            across, down = round(viewport.width / ratio), round(viewport.height / ratio)
            self.setGeometry(self._canvas.width() - across - MARGIN, MARGIN, across, down)
            self.update()
        self.setVisible(is_needed)

    def _is_part_visible(self) -> bool:
        if self._request is None:
            return False
        image, settings, _ = self._request
        top, left, bottom, right = self._canvas.viewport.rect
        for axis, low, high in zip(settings.displayed, (top, left), (bottom, right), strict=True):
            length = image.shape[axis]
            visible = min(high, length - 0.5) - max(low, -0.5)
            if length > 1 and visible < MAX_VISIBLE_PART * length:
                return True
        return False

    def _draw(self) -> None:
        if self._request is None or not self.isVisible():
            return
        if self._pipeline is None:
            self._pipeline = ViewPipeline(self._streamer, on_frame=self._frame_received.emit)
        image, settings, overlays = self._request
        self._pipeline.show(image, replace(settings, level_lock=None), self._viewport, overlays)

    def _show_frame(self, frame: Frame) -> None:
        if self._request is not None and frame.state.image is self._request[0]:
            self._frame = frame
            self._canvas.offer_backdrop(frame)
            self.update()

    def showEvent(self, event: QShowEvent | None) -> None:
        super().showEvent(event)
        self._timer.start()

    def hideEvent(self, event: QHideEvent | None) -> None:
        """Stop reading. The canvas may have disappeared, and the map with it."""
        super().hideEvent(event)
        if self._pipeline is not None:
            self._pipeline.clear()

    def paintEvent(self, event: QPaintEvent | None) -> None:
        painter = QPainter(self)
        painter.fillRect(self.rect(), BACKGROUND)
        ratio = self.devicePixelRatioF()
        painter.scale(1 / ratio, 1 / ratio)
        frame = self._frame
        if frame is not None and frame.pixels.size:
            height, width = frame.pixels.shape
            data: Any = frame.pixels.data
            picture = QImage(data, width, height, width * 4, QImage.Format.Format_ARGB32_Premultiplied)
            draw_picture(painter, self._viewport, frame.grid.rect, picture)
        area = QRectF(0, 0, self._viewport.width, self._viewport.height)
        painter.setPen(QPen(BORDER, 1))
        painter.drawRect(area.adjusted(0.5, 0.5, -0.5, -0.5))
        visible = device_rect(self._viewport, self._canvas.viewport.rect)
        painter.setPen(QPen(VISIBLE, 2))
        painter.drawRect(visible.intersected(area).adjusted(1, 1, -1, -1))
        painter.end()

    # -- input -------------------------------------------------------------------------------------------------

    def mousePressEvent(self, event: QMouseEvent | None) -> None:
        self._move(event)

    def mouseMoveEvent(self, event: QMouseEvent | None) -> None:
        self._move(event)

    def mouseReleaseEvent(self, event: QMouseEvent | None) -> None:
        """Accept the event: the canvas below would handle it as a click."""

    def mouseDoubleClickEvent(self, event: QMouseEvent | None) -> None:
        self._move(event)

    def _move(self, event: QMouseEvent | None) -> None:
        if event is not None and event.buttons() & Qt.MouseButton.LeftButton:
            ratio = self.devicePixelRatioF()
            point = event.position() * ratio
            self.moved.emit(*self._viewport.to_data(point.x(), point.y()))
