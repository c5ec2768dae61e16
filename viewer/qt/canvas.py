"""The picture: draws the newest frame under the current viewport, and turns the mouse into pan and zoom.

Nothing is read, decoded or composed here: a frame arrives ready, and panning moves the one that is there until a
better one comes.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from PyQt6.QtCore import QPointF, QRectF, QSize, Qt, pyqtSignal
from PyQt6.QtGui import (
    QColor,
    QFont,
    QImage,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPen,
    QResizeEvent,
    QWheelEvent,
)
from PyQt6.QtWidgets import QSizePolicy, QWidget

from viewer.chunk_overlay import ChunkGrid
from viewer.image import Image
from viewer.levels import pixel_aspect
from viewer.readout import scale_bar
from viewer.rendering import Frame
from viewer.state import Viewport, fit, one_to_one, pan, zoom_at

__all__ = ["Canvas"]

BACKGROUND = QColor(18, 18, 22)
ZOOM_STEP = 1.0015
KEY_ZOOM = 1.25
KEY_PAN = 60


class Canvas(QWidget):
    """One pane.

    Signals:
        viewport_changed: another part of the plane is to be seen.
        pointed: the pointer is at (row, column) in data coordinates; None when it left.
        stepped: the wheel with Control held, or the keys, ask for so many slices on.
    """

    viewport_changed = pyqtSignal()
    pointed = pyqtSignal(object)
    stepped = pyqtSignal(int)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAccessibleName("Image")
        self.setMouseTracking(True)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        self.setMinimumSize(200, 150)
        self._image: Image | None = None
        self._displayed = (0, 1)
        self._viewport = Viewport(1, 1, (0.0, 0.0), 1.0)
        self._frame: Frame | None = None
        self._pixels: QImage | None = None
        self._dragged: QPointF | None = None
        self._fitted = True
        self._grid: ChunkGrid | None = None
        self.show_scale_bar = True

    def sizeHint(self) -> QSize:
        return QSize(900, 700)

    # -- what is shown -----------------------------------------------------------------------------------------

    @property
    def viewport(self) -> Viewport:
        """The window onto the plane, in device pixels."""
        return self._viewport

    @property
    def frame(self) -> Frame | None:
        """The frame that is drawn."""
        return self._frame

    def show_image(self, image: Image | None, displayed: tuple[int, int]) -> None:
        """Prepare for another image or other axes; the old frame goes."""
        self._image, self._displayed = image, displayed
        self._frame = self._pixels = self._grid = None
        self.fit()

    def show_frame(self, frame: Frame) -> None:
        """Draw a frame from now on."""
        self._frame = frame
        height, width = frame.pixels.shape
        # The array stays alive with the frame; the image is a view of it.
        data: Any = frame.pixels.data
        self._pixels = QImage(data, width, height, width * 4, QImage.Format.Format_ARGB32_Premultiplied)
        self.update()

    def show_grid(self, grid: ChunkGrid | None) -> None:
        """Draw the borders of chunks, or none."""
        self._grid = grid
        self.update()

    def set_viewport(self, viewport: Viewport) -> None:
        """Show another part of the plane."""
        if viewport != self._viewport:
            self._viewport = viewport
            self.update()
            self.viewport_changed.emit()

    def fit(self) -> None:
        """Show the whole plane."""
        self._fitted = True
        if self._image is None:
            self.update()
            return
        rows, columns = (self._image.shape[axis] for axis in self._displayed)
        width, height = self._device_size()
        aspect = pixel_aspect(self._image, self._displayed)
        self.set_viewport(fit(width, height, rows, columns, aspect, 0.02))

    def one_to_one(self) -> None:
        """Show one data pixel per screen pixel."""
        self._fitted = False
        self.set_viewport(one_to_one(self._viewport))

    def zoom(self, factor: float) -> None:
        """Zoom around the middle."""
        self._fitted = False
        self.set_viewport(
            zoom_at(self._viewport, factor, self._viewport.width / 2, self._viewport.height / 2)
        )

    def _device_size(self) -> tuple[int, int]:
        ratio = self.devicePixelRatioF()
        return max(1, round(self.width() * ratio)), max(1, round(self.height() * ratio))

    # -- drawing -----------------------------------------------------------------------------------------------

    def paintEvent(self, event: QPaintEvent | None) -> None:
        painter = QPainter(self)
        painter.fillRect(self.rect(), BACKGROUND)
        if self._image is None:
            return
        ratio = self.devicePixelRatioF()
        painter.scale(1 / ratio, 1 / ratio)
        if self._frame is not None and self._pixels is not None:
            painter.setRenderHint(QPainter.RenderHint.SmoothPixmapTransform, self._viewport.zoom < 1)
            painter.drawImage(self._target(self._frame), self._pixels)
        if self._grid is not None:
            self._draw_grid(painter, self._grid)
        if self.show_scale_bar:
            self._draw_scale_bar(painter)
        self._draw_sign(painter)

    def _target(self, frame: Frame) -> QRectF:
        top, left, bottom, right = frame.grid.rect
        x0, y0 = self._viewport.to_device(top, left)
        x1, y1 = self._viewport.to_device(bottom, right)
        return QRectF(QPointF(x0, y0), QPointF(x1, y1))

    def _draw_grid(self, painter: QPainter, grid: ChunkGrid) -> None:
        width, height = self._viewport.width, self._viewport.height
        chunks = QColor(255, 210, 80, 110), grid.chunk_rows, grid.chunk_columns
        shards = QColor(80, 200, 255, 190), grid.shard_rows, grid.shard_columns
        for colour, rows, columns in (chunks, shards):
            painter.setPen(QPen(colour, 0))
            for row in rows:
                y = self._viewport.to_device(row, 0)[1]
                painter.drawLine(QPointF(0, y), QPointF(width, y))
            for column in columns:
                x = self._viewport.to_device(0, column)[0]
                painter.drawLine(QPointF(x, 0), QPointF(x, height))

    def _draw_scale_bar(self, painter: QPainter) -> None:
        if self._image is None:
            return
        bar = scale_bar(self._image, self._displayed[1], self._viewport.zoom)
        margin = 18
        y = self._viewport.height - margin
        x = self._viewport.width - margin - bar.pixels
        painter.fillRect(QRectF(x - 8, y - 24, bar.pixels + 16, 34), QColor(0, 0, 0, 110))
        painter.fillRect(QRectF(x, y, bar.pixels, 3), QColor(255, 255, 255))
        painter.setPen(QColor(255, 255, 255))
        painter.setFont(QFont(self.font().family(), 9))
        box = QRectF(x - 8, y - 22, bar.pixels + 16, 18)
        painter.drawText(box, Qt.AlignmentFlag.AlignCenter, bar.text)

    def _draw_sign(self, painter: QPainter) -> None:
        """Say whether the picture is all there, and at which level."""
        frame = self._frame
        text = (
            "loading" if frame is None else f"level {frame.state.level}{'' if frame.exact else '  loading'}"
        )
        if frame is not None and frame.settled and not frame.exact:
            text = f"level {frame.state.level}  incomplete"
        exact = frame is not None and frame.exact
        painter.setFont(QFont(self.font().family(), 9))
        metrics = painter.fontMetrics()
        width = metrics.horizontalAdvance(text) + 30
        painter.fillRect(QRectF(12, self._viewport.height - 38, width, 24), QColor(0, 0, 0, 110))
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(QColor(90, 220, 120) if exact else QColor(240, 180, 60))
        painter.drawEllipse(QPointF(24, self._viewport.height - 26), 4, 4)
        painter.setPen(QColor(235, 235, 235))
        painter.drawText(QPointF(36, self._viewport.height - 21), text)

    # -- input -------------------------------------------------------------------------------------------------

    def resizeEvent(self, event: QResizeEvent | None) -> None:
        width, height = self._device_size()
        if self._fitted:
            self._viewport = replace(self._viewport, width=width, height=height)
            self.fit()
        else:
            self.set_viewport(replace(self._viewport, width=width, height=height))

    def _device(self, point: QPointF) -> tuple[float, float]:
        ratio = self.devicePixelRatioF()
        return point.x() * ratio, point.y() * ratio

    def wheelEvent(self, event: QWheelEvent | None) -> None:
        if event is None:
            return
        delta = event.angleDelta().y()
        if event.modifiers() & Qt.KeyboardModifier.ControlModifier:
            self.stepped.emit(1 if delta > 0 else -1)
        else:
            self._fitted = False
            self.set_viewport(zoom_at(self._viewport, ZOOM_STEP**delta, *self._device(event.position())))
        event.accept()

    def mousePressEvent(self, event: QMouseEvent | None) -> None:
        if event is not None and event.button() in (Qt.MouseButton.LeftButton, Qt.MouseButton.MiddleButton):
            self._dragged = event.position()
            self.setCursor(Qt.CursorShape.ClosedHandCursor)

    def mouseMoveEvent(self, event: QMouseEvent | None) -> None:
        if event is None:
            return
        if self._dragged is not None:
            x0, y0 = self._device(self._dragged)
            x1, y1 = self._device(event.position())
            self._fitted = False
            self._dragged = event.position()
            self.set_viewport(pan(self._viewport, x1 - x0, y1 - y0))
        self.pointed.emit(self._viewport.to_data(*self._device(event.position())))

    def mouseReleaseEvent(self, event: QMouseEvent | None) -> None:
        self._dragged = None
        self.unsetCursor()

    def mouseDoubleClickEvent(self, event: QMouseEvent | None) -> None:
        self.fit()

    def leaveEvent(self, event: object) -> None:
        self.pointed.emit(None)

    def keyPressEvent(self, event: QKeyEvent | None) -> None:
        if event is None:
            return
        moves = {
            Qt.Key.Key_Left: (KEY_PAN, 0),
            Qt.Key.Key_Right: (-KEY_PAN, 0),
            Qt.Key.Key_Up: (0, KEY_PAN),
            Qt.Key.Key_Down: (0, -KEY_PAN),
        }
        key = Qt.Key(event.key())
        if key in moves:
            self._fitted = False
            self.set_viewport(pan(self._viewport, *moves[key]))
        elif key in (Qt.Key.Key_PageUp, Qt.Key.Key_PageDown):
            self.stepped.emit(1 if key == Qt.Key.Key_PageUp else -1)
        else:
            super().keyPressEvent(event)
