"""The canvas widget: draws the latest frame in the current viewport and handles mouse and keyboard input.

Nothing is read, decoded or composed here: frames arrive complete. While the user pans or zooms, the previous frame
is drawn at its new position until the next frame arrives. ``layers`` draws, and ``pointer`` reacts to the mouse.
"""

from __future__ import annotations

from dataclasses import replace

from PyQt6.QtCore import QPoint, QSize, Qt, pyqtSignal
from PyQt6.QtGui import (
    QColor,
    QContextMenuEvent,
    QHideEvent,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QResizeEvent,
    QShowEvent,
    QWheelEvent,
)
from PyQt6.QtWidgets import QSizePolicy, QWidget

from zarrfs_viewer.analysis.chunk_overlay import ChunkGrid
from zarrfs_viewer.analysis.regions import Region
from zarrfs_viewer.analysis.shapes import Shape
from zarrfs_viewer.display.levels import pixel_aspect
from zarrfs_viewer.images.image import Image
from zarrfs_viewer.qt.canvas.layers import CanvasLayers
from zarrfs_viewer.qt.canvas.painting import PictureOverlay, Rect
from zarrfs_viewer.qt.canvas.pointer import CanvasPointer
from zarrfs_viewer.qt.canvas.shape_tools import Tool
from zarrfs_viewer.rendering.renderer import Frame
from zarrfs_viewer.state.view_state import (
    FIT_MARGIN,
    Viewport,
    fit,
    is_same_place,
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


class Canvas(QWidget):
    """The image of one pane.

    Attributes:
        wheel_steps: whether the wheel steps through slices and zooms with Ctrl, instead of the reverse.
        layers: what is drawn.

    Signals:
        viewport_changed: another part of the plane is displayed.
        visibility_changed: the canvas has appeared or disappeared.
        orientation_changed: (before) the user rotated or mirrored the picture; ``before`` is the former orientation.
        pointed: the pointer is at (row, column) in data coordinates; None when it left the canvas.
        clicked: (row, column) a click without a drag.
        menu_requested: (position on the screen, row, column) the user requests the context menu at a data position.
        stepped: (slices) Ctrl and the wheel, Page Up or Page Down.
        cross_dragged: (row or None, column or None) the user drags lines of the cross-hair to a position.
        shape_deselected: the user begins another shape, or presses Escape.
        shape_changed: (shape or None, finished); ``finished`` is False while the user drags.
    """

    viewport_changed = pyqtSignal()
    visibility_changed = pyqtSignal()
    orientation_changed = pyqtSignal(object)
    pointed = pyqtSignal(object)
    clicked = pyqtSignal(float, float)
    menu_requested = pyqtSignal(QPoint, float, float)
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
        self.wheel_steps = False
        self.layers = CanvasLayers()
        self._viewport = Viewport(1, 1, (0.0, 0.0), 1.0)
        self._fitted = True
        self._pointer = CanvasPointer(self)
        self._pointer.panned.connect(lambda x, y: self.set_viewport(pan(self._viewport, x, y)))
        self._pointer.pointed.connect(self.pointed)
        self._pointer.clicked.connect(self.clicked)
        self._pointer.cross_dragged.connect(self.cross_dragged)
        self._pointer.shape_deselected.connect(self.shape_deselected)
        self._pointer.shape_changed.connect(self._change_shape)

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
        return self.layers.frame

    @property
    def shape(self) -> Shape | None:
        """The shape that was drawn for measuring, or None."""
        return self._pointer.shape

    @property
    def tool(self) -> Tool:
        """The effect of dragging with the left button. The middle button always moves the image."""
        return self._pointer.tool

    @property
    def is_drawing(self) -> bool:
        """Whether a polygon is being drawn."""
        return self._pointer.is_drawing

    def show_image(self, image: Image | None, displayed: tuple[int, int]) -> None:
        """Prepare for another image or other axes. Removes the frame, the chunk grid, the cross-hair and the shape."""
        if image is not self.layers.image:
            self._viewport = replace(self._viewport, turns=0, mirrored=False)
        self.layers.show_image(image, displayed)
        self._pointer.cross.position = None
        self._pointer.show_shape(None)
        self.fit()

    def show_frame(self, frame: Frame) -> None:
        """Draw this frame until the next one is set."""
        self.layers.show_frame(frame)
        self.update()
        # The value below the pointer changes with the slice, level and viewport, even if the pointer rests.
        self._pointer.point(self._viewport)

    def offer_backdrop(self, frame: Frame) -> None:
        """Draw a frame of a larger part of the same slice below the current one."""
        self.layers.offer_backdrop(frame)

    def show_waiting(self, progress: str = "") -> None:
        """Show that the frame is of another slice than the one that is requested, or without a frame what is loaded."""
        layers = self.layers
        if (layers.frame is None and progress != layers.progress) or (
            layers.frame is not None and not layers.is_late
        ):
            layers.is_late, layers.progress = layers.frame is not None, progress
            self.update()

    def show_note(self, note: str) -> None:
        """Draw a note in the middle of the picture. An empty text removes it."""
        if note != self.layers.note:
            self.layers.note = note
            self.update()

    def show_grid(self, grid: ChunkGrid | None, missing: tuple[Rect, ...] = ()) -> None:
        """Draw the chunk boundaries, and hatch the missing chunks. None removes the grid."""
        layers = self.layers
        if (grid, missing) != (layers.grid, layers.missing):
            layers.grid, layers.missing = grid, missing
            self.update()

    def show_picture_overlays(self, overlays: tuple[PictureOverlay, ...], shows_picture: bool = True) -> None:
        """Draw the pictures of layers over the image, from back to front, and the image itself or not."""
        layers = self.layers
        if overlays or layers.overlays or shows_picture != layers.shows_picture:
            layers.overlays, layers.shows_picture = overlays, shows_picture
            self.update()

    def show_extent(self, extent: Rect | None) -> None:
        """Fit the view to a box of data coordinates instead of the image, also now if the view is fitted."""
        if extent != self.layers.extent:
            self.layers.extent = extent
            if self._fitted:
                self.fit()

    def show_cross(self, point: tuple[float, float] | None) -> None:
        """Draw a cross-hair at (row, column). None removes it."""
        if point != self._pointer.cross.position:
            self._pointer.cross.position = point
            self.update()

    def show_shape(self, shape: Shape | None, finished: bool = True) -> None:
        """Draw a shape and emit ``shape_changed``. None removes it."""
        self._pointer.show_shape(shape)
        self._change_shape(shape, finished)

    def _change_shape(self, shape: Shape | None, finished: bool) -> None:
        self.update()
        self.shape_changed.emit(shape, finished)

    def show_regions(self, regions: tuple[Region, ...]) -> None:
        """Draw the outlines and the names of regions."""
        if regions != self.layers.regions:
            self.layers.regions = regions
            self.update()

    def set_viewport(self, viewport: Viewport, fitted: bool = False) -> None:
        """Display another part of the plane."""
        self._fitted = fitted
        if viewport != self._viewport:
            self._viewport = viewport
            self.update()
            self.viewport_changed.emit()

    def follow(self, viewport: Viewport) -> None:
        """Display the viewport that follows from a linked pane, with the size of this canvas.

        A pane whose size changes has the same place. This canvas then remains fitted if it is.
        """
        width, height = self._device_size()
        followed = replace(viewport, width=width, height=height)
        if not (self._fitted and is_same_place(followed, self._viewport)):
            self.set_viewport(followed)

    def fit(self) -> None:
        """Display the whole plane with its layers."""
        self._fitted = True
        image, displayed = self.layers.image, self.layers.displayed
        if image is None:
            self.update()
            return
        rows, columns = (image.shape[axis] for axis in displayed)
        width, height = self._device_size()
        aspect = pixel_aspect(image, displayed)
        turns, is_mirrored = self._viewport.turns, self._viewport.mirrored
        extent = self.layers.extent
        if extent is None:
            viewport = fit(width, height, rows, columns, aspect, FIT_MARGIN, turns, is_mirrored)
        else:
            top, left, bottom, right = extent
            viewport = fit(width, height, bottom - top, right - left, aspect, FIT_MARGIN, turns, is_mirrored)
            viewport = replace(viewport, center=((top + bottom) / 2, (left + right) / 2))
        self.set_viewport(viewport, fitted=True)

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
        """Zoom around the centre."""
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
        painter.setFont(self.font())
        size, ratio, pointer = (self.width(), self.height()), self.devicePixelRatioF(), self._pointer
        cross = pointer.cross.position
        self.layers.paint(painter, self._viewport, size, ratio, cross, pointer.shape, pointer.is_drawing)

    # -- input -------------------------------------------------------------------------------------------------

    def resizeEvent(self, event: QResizeEvent | None) -> None:
        width, height = self._device_size()
        if self._fitted and self.layers.image is not None:
            self.fit()
        else:
            self.set_viewport(replace(self._viewport, width=width, height=height))

    def showEvent(self, event: QShowEvent | None) -> None:
        super().showEvent(event)
        self.visibility_changed.emit()

    def hideEvent(self, event: QHideEvent | None) -> None:
        super().hideEvent(event)
        self.visibility_changed.emit()

    def wheelEvent(self, event: QWheelEvent | None) -> None:
        if event is None:
            return
        delta = event.angleDelta().y()
        has_control = bool(event.modifiers() & Qt.KeyboardModifier.ControlModifier)
        if has_control != self.wheel_steps:
            self.stepped.emit(1 if delta > 0 else -1)
        else:
            position = self.devicePixelRatioF() * event.position()
            self.set_viewport(zoom_at(self._viewport, ZOOM_STEP**delta, position.x(), position.y()))
        event.accept()

    def mousePressEvent(self, event: QMouseEvent | None) -> None:
        if event is not None:
            has_image = self.layers.image is not None
            self._pointer.press(self._viewport, event.position(), event.button(), has_image)

    def mouseMoveEvent(self, event: QMouseEvent | None) -> None:
        if event is not None:
            self._pointer.move(self._viewport, event.position())
            self._pointer.point(self._viewport)  # the movement may have changed the viewport

    def mouseReleaseEvent(self, event: QMouseEvent | None) -> None:
        self._pointer.release(self._viewport, None if event is None else event.position())

    def set_tool(self, tool: Tool) -> None:
        """Set the effect of dragging with the left button."""
        self._pointer.set_tool(tool)

    def finish_shape(self) -> bool:
        """Finish the polygon that is drawn. Returns False if there is none."""
        return self._pointer.finish_shape()

    def mouseDoubleClickEvent(self, event: QMouseEvent | None) -> None:
        if self.tool == "move":
            self.fit()
        else:
            self.finish_shape()

    def contextMenuEvent(self, event: QContextMenuEvent | None) -> None:
        if event is None or self.layers.image is None:
            return
        is_key = event.reason() == QContextMenuEvent.Reason.Keyboard
        place = self.rect().center() if is_key else event.pos()
        ratio = self.devicePixelRatioF()
        position = self._viewport.to_data(place.x() * ratio, place.y() * ratio)
        self.menu_requested.emit(self.mapToGlobal(place), *position)

    def leaveEvent(self, event: object) -> None:
        self._pointer.leave()

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
