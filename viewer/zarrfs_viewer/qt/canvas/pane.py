"""One pane: a canvas with the render pipeline that fills it."""

from __future__ import annotations

from collections.abc import Callable

from PyQt6.QtCore import QObject, QTimer, pyqtSignal
from PyQt6.QtWidgets import QToolTip

from zarrfs_viewer.analysis.chunk_overlay import ChunkGrid, chunk_grid, missing_chunks
from zarrfs_viewer.analysis.readout import LayerReadout, LayersReadout, Readout, readout
from zarrfs_viewer.display.linking import complementary_slab
from zarrfs_viewer.images.image import Image
from zarrfs_viewer.qt.canvas.canvas import Canvas
from zarrfs_viewer.qt.canvas.painting import Rect
from zarrfs_viewer.qt.session import Session
from zarrfs_viewer.qt.support.plain_text import tooltip
from zarrfs_viewer.qt.support.steps import Steps
from zarrfs_viewer.rendering.pipeline import ViewPipeline
from zarrfs_viewer.rendering.renderer import Frame, slice_id
from zarrfs_viewer.state.view_state import DisplaySettings, with_displayed
from zarrfs_viewer.streaming.streamer import TileError

__all__ = ["Pane"]

AxisPair = tuple[int, int]

WAITING_MILLISECONDS = 150
"""A picture that has not arrived after this time is stated to be loaded, and its progress in the same interval."""
INTACT_VALUES_ONLY = "Histogram and automatic contrast are those of the values that can be read."
MISSING_DELAY_MILLISECONDS = 150
"""Missing chunks are looked up when the displayed region has not changed for this long."""


class Pane(QObject):
    """A canvas and its pipeline.

    Attributes:
        displayed, image: the axes and the image that the canvas is prepared for. The session may have another image
            until ``show_axes`` is called; the pane shows nothing of it until then.
        read_layers: returns the values of the layers over the image at a point.
        shows_slab: whether the pane shows a slab of the plane, or a single slice while the other panes show slabs.

    Signals:
        frame_shown: (frame) another frame is displayed.
        pointed: (Readout, LayersReadout or None) the values below the pointer.
    """

    frame_shown = pyqtSignal(object)
    pointed = pyqtSignal(object)
    _frame_received = pyqtSignal(object)
    _tile_failed = pyqtSignal(object)
    _pane_failed = pyqtSignal(object)

    def __init__(self, session: Session, parent: QObject) -> None:
        super().__init__(parent)
        self._session = session
        self.displayed: AxisPair = (0, 1)
        self.image: Image | None = None
        self.canvas = Canvas()
        self.show_chunks = False
        self.shows_slab = False
        self.read_layers: Callable[[float, float], tuple[LayerReadout, ...]] = lambda row, column: ()
        self._missing: tuple[ChunkGrid, tuple[Rect, ...]] | None = None
        self._error = ""
        self._first_request = Steps(self)
        self.pipeline = ViewPipeline(
            session.streamer,
            on_frame=self._frame_received.emit,
            on_error=self._tile_failed.emit,
            on_failure=self._pane_failed.emit,
        )
        self._missing_timer = QTimer(self)
        self._missing_timer.setSingleShot(True)
        self._missing_timer.setInterval(MISSING_DELAY_MILLISECONDS)
        self._missing_timer.timeout.connect(self._find_missing)
        self._waiting_timer = QTimer(self)
        self._waiting_timer.setInterval(WAITING_MILLISECONDS)
        self._waiting_timer.timeout.connect(self._show_waiting)
        self._frame_received.connect(self._show_frame)
        self._tile_failed.connect(self._show_tile_error)
        self._pane_failed.connect(
            lambda error: session.show_message(f"The image could not be rendered: {error}", True)
        )
        self.canvas.viewport_changed.connect(self.refresh)
        self.canvas.visibility_changed.connect(self.refresh)
        self.canvas.pointed.connect(self._update_readout)

    @property
    def settings(self) -> DisplaySettings | None:
        """The session's settings with the axes of this pane, and with its slab."""
        settings, image = self._session.settings, self._session.image
        if settings is None or image is None or image is not self.image:
            return None
        if settings.displayed != self.displayed:
            return with_displayed(settings, *self.displayed)
        return complementary_slab(image, settings) if self.shows_slab else settings

    def show_axes(self, displayed: AxisPair) -> None:
        """Display these axes of the session's image. Removes the previous frame."""
        self.displayed = displayed
        is_other = self.image is not self._session.image
        self.image = image = self._session.image
        self._missing = None
        if image is None:
            self._waiting_timer.stop()
            self.pipeline.clear()
        else:
            title = "".join(image.axes[axis].name for axis in displayed[::-1])
            self.canvas.layers.title = f"{title}  slab" if self.shows_slab else title
            if is_other:
                # The controls of another image change the size of the canvas in the next iteration of the event loop.
                # Reading begins after it: the threads that read would delay the layout and read for the former size.
                self._first_request.start((lambda: None, self._send))
        self.canvas.show_image(image, displayed)

    def refresh(self) -> None:
        """Send the current settings and viewport to the pipeline."""
        if not self._first_request.is_active:
            self._send()

    def _send(self) -> None:
        image, settings = self._session.image, self.settings
        if not self.canvas.isVisible():
            self._waiting_timer.stop()
            self.pipeline.clear()  # nothing is read that is not displayed
        elif image is not None and settings is not None:
            self.pipeline.show(image, settings, self.canvas.viewport, self._session.overlays)
            if not self._waiting_timer.isActive():
                self._waiting_timer.start()
            self.draw_grid()

    def _show_waiting(self) -> None:
        """State that the requested picture has not arrived, and how many of its tiles have."""
        image, state, frame = self.image, self.pipeline.state, self.canvas.frame
        if image is None:
            return
        progress = f"{image.name}\n{_shape_text(image)}\nloading"
        if state is not None and state.image is image:
            if frame is not None and slice_id(frame.state) == slice_id(state):
                self._waiting_timer.stop()
                return
            keys = [request.key for request in state.tiles]
            progress += f" {len(self._session.streamer.cached_keys(keys))} of {len(keys)} tiles"
        self.canvas.show_waiting(progress)

    def draw_grid(self) -> None:
        """Draw the chunk grid, if it is enabled."""
        image, settings, state = self._session.image, self.settings, self.pipeline.state
        if not self.show_chunks or image is None or settings is None:
            self._missing_timer.stop()
            self.canvas.show_grid(None)
            return
        level = state.level if state is not None and state.image is image else 0
        grid = chunk_grid(image, settings, self.canvas.viewport, level)
        missing = self._missing
        self.canvas.show_grid(
            grid, missing[1] if missing is not None and missing[0].level == grid.level else ()
        )
        self._missing_timer.start()

    def _find_missing(self) -> None:
        image, settings, viewport = self._session.image, self.settings, self.canvas.viewport
        if image is None or settings is None or not self.show_chunks:
            return
        state = self.pipeline.state
        level = state.level if state is not None and state.image is image else 0
        grid = chunk_grid(image, settings, viewport, level)

        def show(missing: tuple[Rect, ...]) -> None:
            self._missing = grid, missing
            if self.show_chunks:
                self.canvas.show_grid(grid, missing)

        owner = f"missing {id(self)}"
        self._session.run_for_image(lambda: missing_chunks(image, settings, viewport, level), show, owner)

    def _show_frame(self, frame: Frame) -> None:
        if frame.state.image is self._session.image and frame.state.settings.displayed == self.displayed:
            self.canvas.show_frame(frame)
            if frame.complete:
                # The chunk that could not be read is not in the displayed region any more.
                self._session.withdraw_message(self._error)
                self._error = ""
            self.frame_shown.emit(frame)

    def _show_tile_error(self, error: TileError) -> None:
        # The signal is queued: after a retry, or with another image, the error may be obsolete.
        if error in self._session.streamer.failures([error.key]):
            self._error = error.message
            if error.is_partial:
                self._error += f"\n{INTACT_VALUES_ONLY}"
            self._session.show_message(self._error, True, "retry")

    def values_at(self, row: float, column: float) -> Readout | None:
        """Return the values at a point of the pane, from cached tiles; None outside of the image."""
        state = self.pipeline.state
        return None if state is None else readout(state, self._session.streamer, row, column)

    def _update_readout(self, position: tuple[float, float] | None) -> None:
        values = None if position is None else self.values_at(*position)
        layers = () if position is None else self.read_layers(*position)
        self.pointed.emit(LayersReadout(values, layers) if layers else values)
        self._show_properties(values)

    def _show_properties(self, values: Readout | None) -> None:
        """Show a tooltip with the properties of the label below the pointer."""
        lines = [
            f"{label.name} {label.value}: " + ", ".join(f"{k} = {v}" for k, v in label.properties.items())
            for label in (values.labels if values is not None else ())
            if label.value and label.properties
        ]
        if lines:
            QToolTip.showText(self.canvas.cursor().pos(), tooltip("\n".join(lines)), self.canvas)
        else:
            QToolTip.hideText()

    def close(self) -> None:
        """Stop the pipeline."""
        self._missing_timer.stop()
        self._waiting_timer.stop()
        self._first_request.cancel()
        self.pipeline.close()


def _shape_text(image: Image) -> str:
    """Return the names and the lengths of the axes of an image."""
    names = [axis.name or f"axis {number}" for number, axis in enumerate(image.axes)]
    lengths = zip(names, image.shape, strict=True)
    return " \N{MULTIPLICATION SIGN} ".join(f"{name} {length:,}" for name, length in lengths)
