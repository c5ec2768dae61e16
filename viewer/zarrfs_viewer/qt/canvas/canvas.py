"""The canvas widget: draws the latest frame in the current viewport and handles mouse and keyboard input.

Nothing is read, decoded or composed here: frames arrive complete. While the user pans or zooms, the previous frame
is drawn at its new position until the next frame arrives.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from PyQt6.QtCore import QPointF, QSize, Qt, pyqtSignal
from PyQt6.QtGui import (
    QColor,
    QImage,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QResizeEvent,
    QWheelEvent,
)
from PyQt6.QtWidgets import QSizePolicy, QWidget

from zarrfs_viewer.analysis.chunk_overlay import ChunkGrid
from zarrfs_viewer.analysis.readout import scale_bar
from zarrfs_viewer.analysis.regions import Region
from zarrfs_viewer.analysis.shapes import Shape
from zarrfs_viewer.display.levels import pixel_aspect
from zarrfs_viewer.images.image import Image
from zarrfs_viewer.qt.canvas.cross_hair import CrossHair
from zarrfs_viewer.qt.canvas.painting import (
    PictureOverlay,
    Rect,
    draw_cross,
    draw_grid,
    draw_missing,
    draw_picture,
    draw_picture_overlay,
    draw_regions,
    draw_scale_bar,
    draw_shape,
    draw_status,
)
from zarrfs_viewer.qt.canvas.shape_tools import ShapeTools, Tool
from zarrfs_viewer.rendering.renderer import Frame
from zarrfs_viewer.state.view_state import (
    FIT_MARGIN,
    Viewport,
    fit,
    mirrored,
    one_to_one,
    pan,
    rotated,
    zoom_at,
)

__all__ = ["KEY_ZOOM", "Canvas", "Tool"]

BACKGROUND = QColor(18, 18, 22)
ZOOM_STEP = 1.0015
KEY_ZOOM = 1.25
KEY_PAN = 60
MAX_SCALE_BAR, MAX_SCALE_BAR_PART = 120.0, 0.4
"""The length of the scale bar in pixels, and as a part of the width of the pane."""
MIN_WIDTH_OF_ROW, STATUS_HEIGHT = 260, 40
"""Pixels. In narrower panes the scale bar and the state are not beside each other."""
MAX_CLICK_DISTANCE = 4
"""Pixels. A press and release at a smaller distance is a click."""


class Canvas(QWidget):
    """The image of one pane.

    Attributes:
        wheel_steps: whether the wheel steps through slices and zooms with Ctrl, instead of the reverse.
        title: the names of the displayed axes, drawn beside the loading state.

    Signals:
        viewport_changed: another part of the plane is displayed.
        orientation_changed: (before) the user rotated or mirrored the picture; ``before`` is the former orientation.
        pointed: the pointer is at (row, column) in data coordinates; None when it left the canvas.
        clicked: (row, column) a click without a drag.
        stepped: (slices) Ctrl and the wheel, Page Up or Page Down.
        cross_dragged: (row or None, column or None) the user drags lines of the cross-hair to a position.
        shape_deselected: the user begins another shape, or presses Escape.
        shape_changed: (shape or None, finished); ``finished`` is False while the user drags.
    """

    viewport_changed = pyqtSignal()
    orientation_changed = pyqtSignal(object)
    pointed = pyqtSignal(object)
    clicked = pyqtSignal(float, float)
    stepped = pyqtSignal(int)
    cross_dragged = pyqtSignal(object, object)
    shape_deselected = pyqtSignal()
    shape_changed = pyqtSignal(object, bool)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAccessibleName("Image")
        self.setAttribute(Qt.WidgetAttribute.WA_OpaquePaintEvent)  # the widgets behind are not painted
        self.setMouseTracking(True)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        self.setMinimumSize(120, 90)
        self.title = ""
        self.wheel_steps = False
        self.show_scale_bar = True
        self._image: Image | None = None
        self._displayed = (0, 1)
        self._viewport = Viewport(1, 1, (0.0, 0.0), 1.0)
        self._frame: Frame | None = None
        self._pixels: QImage | None = None
        self._fitted = True
        self._grid: ChunkGrid | None = None
        self._missing: tuple[Rect, ...] = ()
        self._cross = CrossHair()
        self._tools = ShapeTools()
        self._regions: tuple[Region, ...] = ()
        self._overlay: PictureOverlay | None = None
        self._pointer: QPointF | None = None
        self._pressed: QPointF | None = None
        self._last_position: QPointF | None = None
        self._is_panning = False

    def sizeHint(self) -> QSize:
        return QSize(900, 700)

    # -- display -----------------------------------------------------------------------------------------------

    @property
    def viewport(self) -> Viewport:
        """The displayed part of the plane. Its size is in device pixels."""
        return self._viewport

    @property
    def frame(self) -> Frame | None:
        """The frame that is drawn."""
        return self._frame

    @property
    def shape(self) -> Shape | None:
        """The shape that was drawn for measuring, or None."""
        return self._tools.shape

    @property
    def tool(self) -> Tool:
        """The effect of dragging with the left button. The middle button always moves the image."""
        return self._tools.tool

    @property
    def is_drawing(self) -> bool:
        """Whether a polygon is being drawn."""
        return self._tools.is_drawing

    def show_image(self, image: Image | None, displayed: tuple[int, int]) -> None:
        """Prepare for another image or other axes. Removes the frame, the chunk grid, the cross-hair and the shape."""
        if image is not self._image:
            self._viewport = replace(self._viewport, turns=0, mirrored=False)
        self._image, self._displayed = image, displayed
        self._frame = self._pixels = self._grid = self._cross.position = None
        self._tools.show(None)
        self._missing = ()
        self.fit()

    def show_frame(self, frame: Frame) -> None:
        """Draw this frame until the next one is set."""
        self._frame = frame
        height, width = frame.pixels.shape
        # The QImage is a view of the array, which the frame keeps alive.
        data: Any = frame.pixels.data
        self._pixels = QImage(data, width, height, width * 4, QImage.Format.Format_ARGB32_Premultiplied)
        self.update()
        if self._pointer is not None:
            # The value below the pointer changes with the slice, level and viewport, even if the pointer rests.
            self.pointed.emit(self._data(self._pointer))

    def show_grid(self, grid: ChunkGrid | None, missing: tuple[Rect, ...] = ()) -> None:
        """Draw the chunk boundaries, and hatch the missing chunks. None removes the grid."""
        if (grid, missing) != (self._grid, self._missing):
            self._grid, self._missing = grid, missing
            self.update()

    def show_picture_overlay(self, overlay: PictureOverlay | None) -> None:
        """Draw a second image over the image. None removes it."""
        if overlay is not None or self._overlay is not None:
            self._overlay = overlay
            self.update()

    def show_cross(self, point: tuple[float, float] | None) -> None:
        """Draw a cross-hair at (row, column). None removes it."""
        if point != self._cross.position:
            self._cross.position = point
            self.update()

    def show_shape(self, shape: Shape | None, finished: bool = True) -> None:
        """Draw a shape and emit ``shape_changed``. None removes it."""
        self._tools.show(shape)
        self.update()
        self.shape_changed.emit(shape, finished)

    def show_regions(self, regions: tuple[Region, ...]) -> None:
        """Draw the outlines and the names of regions."""
        if regions != self._regions:
            self._regions = regions
            self.update()

    def set_viewport(self, viewport: Viewport, fitted: bool = False) -> None:
        """Display another part of the plane."""
        self._fitted = fitted
        if viewport != self._viewport:
            self._viewport = viewport
            self.update()
            self.viewport_changed.emit()

    def follow(self, viewport: Viewport) -> None:
        """Display the viewport that follows from a linked pane, with the size of this canvas."""
        width, height = self._device_size()
        self.set_viewport(replace(viewport, width=width, height=height))

    def fit(self) -> None:
        """Display the whole plane."""
        self._fitted = True
        if self._image is None:
            self.update()
            return
        rows, columns = (self._image.shape[axis] for axis in self._displayed)
        width, height = self._device_size()
        aspect = pixel_aspect(self._image, self._displayed)
        turns, is_mirrored = self._viewport.turns, self._viewport.mirrored
        self.set_viewport(
            fit(width, height, rows, columns, aspect, FIT_MARGIN, turns, is_mirrored), fitted=True
        )

    @property
    def orientation(self) -> tuple[int, bool]:
        """The number of clockwise quarter turns, and whether the picture is mirrored before."""
        return self._viewport.turns, self._viewport.mirrored

    def rotate(self) -> None:
        """Rotate the picture clockwise by a quarter turn."""
        self._change_orientation(rotated(self._viewport))

    def mirror(self) -> None:
        """Mirror the picture from left to right."""
        self._change_orientation(mirrored(self._viewport))

    def _change_orientation(self, viewport: Viewport) -> None:
        before = self.orientation
        self.set_orientation(viewport.turns, viewport.mirrored)
        self.orientation_changed.emit(before)

    def set_orientation(self, turns: int, is_mirrored: bool) -> None:
        """Display the picture in an orientation."""
        was_fitted = self._fitted
        self.set_viewport(replace(self._viewport, turns=turns, mirrored=is_mirrored))
        if was_fitted:
            self.fit()

    def one_to_one(self) -> None:
        """Display one data pixel per screen pixel."""
        self.set_viewport(one_to_one(self._viewport))

    def zoom(self, factor: float) -> None:
        """Zoom around the center."""
        self.set_viewport(
            zoom_at(self._viewport, factor, self._viewport.width / 2, self._viewport.height / 2)
        )

    def _device_size(self) -> tuple[int, int]:
        ratio = self.devicePixelRatioF()
        return max(1, round(self.width() * ratio)), max(1, round(self.height() * ratio))

    # -- drawing -----------------------------------------------------------------------------------------------

    def paintEvent(self, event: QPaintEvent | None) -> None:
        painter = QPainter(self)
        try:
            self._paint(painter)
        finally:
            # Something that refers to the frame of this call, such as a debugger, would keep the painter active.
            painter.end()

    def _paint(self, painter: QPainter) -> None:
        painter.fillRect(self.rect(), BACKGROUND)
        if self._image is None:
            return
        painter.setFont(self.font())
        ratio = self.devicePixelRatioF()
        painter.scale(1 / ratio, 1 / ratio)
        if self._frame is not None and self._pixels is not None:
            draw_picture(painter, self._viewport, self._frame.grid.rect, self._pixels)
        if self._overlay is not None and self._frame is not None:
            draw_picture_overlay(painter, self._viewport, self._overlay)
        draw_missing(painter, self._viewport, self._missing)
        if self._grid is not None:
            draw_grid(painter, self._viewport, self._grid)
        if self._cross.position is not None:
            draw_cross(painter, self._viewport, self._cross.position)
        draw_regions(painter, self._viewport, self._regions)
        if self._tools.shape is not None:
            draw_shape(painter, self._viewport, self._tools.shape, self._tools.is_drawing)
        # Texts have the size that they have in other widgets, whatever the number of device pixels per pixel is.
        painter.scale(ratio, ratio)
        logical = replace(self._viewport, width=self.width(), height=self.height())
        if self.show_scale_bar:
            is_turned = self._viewport.turns % 2 == 1
            axis, zoom = self._displayed[not is_turned], self._viewport.zooms[not is_turned]
            target = min(MAX_SCALE_BAR, MAX_SCALE_BAR_PART * logical.width)
            bar = scale_bar(self._image, axis, zoom / ratio, target)
            # In a narrow pane the bar is above the state.
            is_narrow = logical.width < MIN_WIDTH_OF_ROW
            above = replace(logical, height=logical.height - STATUS_HEIGHT) if is_narrow else logical
            draw_scale_bar(painter, above, bar.pixels, bar.text)
        draw_status(painter, logical, self._frame, self.title)

    # -- input -------------------------------------------------------------------------------------------------

    def resizeEvent(self, event: QResizeEvent | None) -> None:
        width, height = self._device_size()
        if self._fitted and self._image is not None:
            self.fit()
        else:
            self.set_viewport(replace(self._viewport, width=width, height=height))

    def _device(self, point: QPointF) -> tuple[float, float]:
        ratio = self.devicePixelRatioF()
        return point.x() * ratio, point.y() * ratio

    def _data(self, point: QPointF) -> tuple[float, float]:
        return self._viewport.to_data(*self._device(point))

    def wheelEvent(self, event: QWheelEvent | None) -> None:
        if event is None:
            return
        delta = event.angleDelta().y()
        has_control = bool(event.modifiers() & Qt.KeyboardModifier.ControlModifier)
        if has_control != self.wheel_steps:
            self.stepped.emit(1 if delta > 0 else -1)
        else:
            self.set_viewport(zoom_at(self._viewport, ZOOM_STEP**delta, *self._device(event.position())))
        event.accept()

    def mousePressEvent(self, event: QMouseEvent | None) -> None:
        if event is None or event.button() not in (Qt.MouseButton.LeftButton, Qt.MouseButton.MiddleButton):
            return
        self._pressed = self._last_position = event.position()
        is_left = event.button() == Qt.MouseButton.LeftButton
        if (
            is_left
            and self.tool == "move"
            and self._cross.grab(self._viewport, *self._device(event.position()))
        ):
            return
        outcome = "none"
        if is_left and self._image is not None:
            outcome = self._tools.press(self._viewport, *self._device(event.position()))
            if outcome == "new":
                self.shape_deselected.emit()
        self._is_panning = outcome == "none"
        if not self._is_panning:
            self._emit_shape(finished=outcome == "finished")
        self.setCursor(Qt.CursorShape.ClosedHandCursor if self._is_panning else Qt.CursorShape.CrossCursor)

    def _emit_shape(self, finished: bool) -> None:
        self.update()
        self.shape_changed.emit(self._tools.shape, finished)

    def mouseMoveEvent(self, event: QMouseEvent | None) -> None:
        if event is None:
            return
        position = event.position()
        if self._cross.is_dragged:
            self.cross_dragged.emit(*self._cross.dragged_to(self._data(position)))
        elif self._last_position is not None and self._is_panning:
            x0, y0 = self._device(self._last_position)
            x1, y1 = self._device(position)
            self.set_viewport(pan(self._viewport, x1 - x0, y1 - y0))
        elif self._tools.move(self._data(self._last_position or position), self._data(position)):
            self._emit_shape(finished=False)
        if self._last_position is not None:
            self._last_position = position
        else:
            self._show_tool_cursor()
            cursor = self._cross.cursor(self._viewport, *self._device(position))
            if cursor is not None and self.tool == "move":
                self.setCursor(cursor)
        self._pointer = position
        self.pointed.emit(self._data(position))

    def mouseReleaseEvent(self, event: QMouseEvent | None) -> None:
        pressed = self._pressed
        is_cross = self._cross.release()
        self._pressed = self._last_position = None
        self._is_panning = False
        self._show_tool_cursor()
        if event is None or pressed is None:
            return
        if not is_cross and self._tools.release():
            self._emit_shape(finished=True)
        if (event.position() - pressed).manhattanLength() < MAX_CLICK_DISTANCE:
            self.clicked.emit(*self._data(event.position()))

    def set_tool(self, tool: Tool) -> None:
        """Set the effect of dragging with the left button."""
        if self._tools.is_drawing:
            self.finish_shape()
        self._tools.tool = tool
        self._show_tool_cursor()

    def finish_shape(self) -> bool:
        """Finish the polygon that is drawn. Returns False if there is none."""
        is_finished = self._tools.finish()
        if is_finished:
            self._emit_shape(finished=True)
        return is_finished

    def _show_tool_cursor(self) -> None:
        if self.tool == "move":
            self.unsetCursor()
        else:
            self.setCursor(Qt.CursorShape.CrossCursor)

    def mouseDoubleClickEvent(self, event: QMouseEvent | None) -> None:
        if self.tool == "move":
            self.fit()
        else:
            self.finish_shape()

    def leaveEvent(self, event: object) -> None:
        self._pointer = None
        self.pointed.emit(None)

    def keyPressEvent(self, event: QKeyEvent | None) -> None:
        if event is None:
            return
        pans = {
            Qt.Key.Key_Left: (KEY_PAN, 0),
            Qt.Key.Key_Right: (-KEY_PAN, 0),
            Qt.Key.Key_Up: (0, KEY_PAN),
            Qt.Key.Key_Down: (0, -KEY_PAN),
        }
        key = Qt.Key(event.key())
        if key in pans:
            self.set_viewport(pan(self._viewport, *pans[key]))
        elif key in (Qt.Key.Key_PageUp, Qt.Key.Key_PageDown):
            self.stepped.emit(1 if key == Qt.Key.Key_PageUp else -1)
        elif key in (Qt.Key.Key_Return, Qt.Key.Key_Enter) and self.finish_shape():
            pass
        elif key in (Qt.Key.Key_Escape, Qt.Key.Key_Delete) and self.shape is not None:
            if key == Qt.Key.Key_Escape:
                self.shape_deselected.emit()
            self.show_shape(None)
        else:
            super().keyPressEvent(event)
