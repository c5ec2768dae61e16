"""The reaction to the mouse on a canvas: it moves the picture, drags the cross-hair, and draws and changes shapes."""

from __future__ import annotations

from PyQt6.QtCore import QObject, QPointF, Qt, pyqtSignal
from PyQt6.QtWidgets import QWidget

from zarrfs_viewer.analysis.shapes import Shape
from zarrfs_viewer.qt.canvas.cross_hair import CrossHair
from zarrfs_viewer.qt.canvas.shape_tools import ShapeTools, Tool
from zarrfs_viewer.state.view_state import Viewport

__all__ = ["CanvasPointer"]

MAX_CLICK_DISTANCE = 4
"""The maximum distance in pixels between the press and the release of a click."""


class CanvasPointer(QObject):
    """The pointer on a canvas. The canvas forwards its mouse events with its viewport, and draws cross-hair and shape.

    Positions of events are in the pixels of the widget, viewports in device pixels.

    Attributes:
        cross: the cross-hair.
        position: where the pointer is; None if it is not on the canvas.

    Signals:
        panned: (x, y) the user moves the picture by this distance in device pixels.
        pointed: the pointer is at (row, column) in data coordinates; None when it left the canvas.
        clicked: (row, column) a click without a drag.
        cross_dragged: (row or None, column or None) the user drags lines of the cross-hair to a position.
        shape_deselected: the user begins another shape.
        shape_changed: (shape or None, finished); ``finished`` is False while the user drags.
    """

    panned = pyqtSignal(float, float)
    pointed = pyqtSignal(object)
    clicked = pyqtSignal(float, float)
    cross_dragged = pyqtSignal(object, object)
    shape_deselected = pyqtSignal()
    shape_changed = pyqtSignal(object, bool)

    def __init__(self, canvas: QWidget) -> None:
        super().__init__(canvas)
        self._canvas = canvas
        self.cross = CrossHair()
        self.position: QPointF | None = None
        self._tools = ShapeTools()
        self._pressed: QPointF | None = None
        self._last_position: QPointF | None = None
        self._is_panning = False

    # -- tools -------------------------------------------------------------------------------------------------

    @property
    def shape(self) -> Shape | None:
        """The shape that was drawn, or None."""
        return self._tools.shape

    @property
    def tool(self) -> Tool:
        """The effect of dragging with the left button. The middle button always moves the picture."""
        return self._tools.tool

    @property
    def is_drawing(self) -> bool:
        """Whether a polygon is being drawn."""
        return self._tools.is_drawing

    def set_tool(self, tool: Tool) -> None:
        """Set the effect of dragging with the left button. A polygon that is being drawn is finished."""
        if self._tools.is_drawing:
            self.finish_shape()
        self._tools.tool = tool
        self._show_tool_cursor()

    def show_shape(self, shape: Shape | None) -> None:
        """Replace the shape. Emits no signal."""
        self._tools.show(shape)

    def finish_shape(self) -> bool:
        """Finish the polygon that is drawn. Returns False if there is none."""
        is_finished = self._tools.finish()
        if is_finished:
            self.shape_changed.emit(self._tools.shape, True)
        return is_finished

    def _show_tool_cursor(self) -> None:
        if self.tool == "move":
            self._canvas.unsetCursor()
        else:
            self._canvas.setCursor(Qt.CursorShape.CrossCursor)

    # -- events ------------------------------------------------------------------------------------------------

    def _device(self, point: QPointF) -> tuple[float, float]:
        ratio = self._canvas.devicePixelRatioF()
        return point.x() * ratio, point.y() * ratio

    def _data(self, viewport: Viewport, point: QPointF) -> tuple[float, float]:
        return viewport.to_data(*self._device(point))

    def press(self, viewport: Viewport, position: QPointF, button: Qt.MouseButton, has_image: bool) -> None:
        """React to a press of a button. Other buttons than the left and the middle one are ignored."""
        if button not in (Qt.MouseButton.LeftButton, Qt.MouseButton.MiddleButton):
            return
        self._pressed = self._last_position = position
        is_left = button == Qt.MouseButton.LeftButton
        if is_left and self.tool == "move" and self.cross.grab(viewport, *self._device(position)):
            return
        outcome = "none"
        if is_left and has_image:
            outcome = self._tools.press(viewport, *self._device(position))
            if outcome == "new":
                self.shape_deselected.emit()
        self._is_panning = outcome == "none"
        if not self._is_panning:
            self.shape_changed.emit(self.shape, outcome == "finished")
        shape = Qt.CursorShape.ClosedHandCursor if self._is_panning else Qt.CursorShape.CrossCursor
        self._canvas.setCursor(shape)

    def move(self, viewport: Viewport, position: QPointF) -> None:
        """React to a movement, with or without a pressed button."""
        last = self._last_position
        if self.cross.is_dragged:
            self.cross_dragged.emit(*self.cross.dragged_to(self._data(viewport, position)))
        elif last is not None and self._is_panning:
            x0, y0 = self._device(last)
            x1, y1 = self._device(position)
            self.panned.emit(x1 - x0, y1 - y0)
        elif self._tools.move(self._data(viewport, last or position), self._data(viewport, position)):
            self.shape_changed.emit(self.shape, False)
        if last is not None:
            self._last_position = position
        else:
            self._show_tool_cursor()
            cursor = self.cross.cursor(viewport, *self._device(position))
            if cursor is not None and self.tool == "move":
                self._canvas.setCursor(cursor)
        self.position = position

    def release(self, viewport: Viewport, position: QPointF | None) -> None:
        """React to the release of a button; None if its position is unknown."""
        pressed = self._pressed
        is_cross = self.cross.release()
        self._pressed = self._last_position = None
        self._is_panning = False
        self._show_tool_cursor()
        if position is None or pressed is None:
            return
        if not is_cross and self._tools.release():
            self.shape_changed.emit(self.shape, True)
        if (position - pressed).manhattanLength() < MAX_CLICK_DISTANCE:
            self.clicked.emit(*self._data(viewport, position))

    def leave(self) -> None:
        """React to the pointer leaving the canvas."""
        self.position = None
        self.pointed.emit(None)

    def point(self, viewport: Viewport) -> None:
        """Emit ``pointed`` if the pointer is on the canvas: the viewport or the frame below it has changed."""
        if self.position is not None:
            self.pointed.emit(self._data(viewport, self.position))
