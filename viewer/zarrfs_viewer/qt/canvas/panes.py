"""Panes: one image, or three linked orthogonal planes, each with its own render pipeline.

Panes display the session's intent. Clicks and wheel events change the intent.
"""

from __future__ import annotations

from PyQt6.QtCore import QObject, QTimer, pyqtSignal
from PyQt6.QtWidgets import QGridLayout, QToolTip, QWidget

from zarrfs_viewer.analysis.chunk_overlay import ChunkGrid, chunk_grid, missing_chunks
from zarrfs_viewer.analysis.readout import Readout, readout
from zarrfs_viewer.display.linking import linked_axes, linked_viewport
from zarrfs_viewer.qt.canvas.canvas import Canvas
from zarrfs_viewer.qt.canvas.painting import Rect
from zarrfs_viewer.qt.session import Session
from zarrfs_viewer.qt.support.plain_text import tooltip
from zarrfs_viewer.rendering.pipeline import ViewPipeline
from zarrfs_viewer.rendering.renderer import Frame
from zarrfs_viewer.saved_views.views import fitted_viewport
from zarrfs_viewer.state.view_state import ViewIntent, with_channel, with_displayed, with_position
from zarrfs_viewer.streaming.streamer import TileError

__all__ = ["Pane", "Panes"]

AxisPair = tuple[int, int]

MISSING_DELAY_MILLISECONDS = 150
"""Missing chunks are looked up when the displayed region has not changed for this long."""


class Pane(QObject):
    """A canvas and its pipeline.

    Signals:
        frame_shown: (frame) another frame is displayed.
        pointed: (readout or None) the values below the pointer.
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
        self.canvas = Canvas()
        self.show_chunks = False
        self._missing: tuple[ChunkGrid, tuple[Rect, ...]] | None = None
        self._error = ""
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
        self._frame_received.connect(self._show_frame)
        self._tile_failed.connect(self._show_tile_error)
        self._pane_failed.connect(
            lambda error: session.show_message(f"The image could not be rendered: {error}", True)
        )
        self.canvas.viewport_changed.connect(self.refresh)
        self.canvas.pointed.connect(self._update_readout)

    @property
    def intent(self) -> ViewIntent | None:
        """The session's intent with the axes of this pane."""
        intent = self._session.intent
        if intent is None or intent.displayed == self.displayed:
            return intent
        return with_displayed(intent, *self.displayed)

    def show_axes(self, displayed: AxisPair) -> None:
        """Display these axes of the session's image. Removes the previous frame."""
        self.displayed = displayed
        image = self._session.image
        self._missing = None
        if image is None:
            self.pipeline.clear()
        else:
            self.canvas.title = "".join(image.axes[axis].name for axis in displayed[::-1])
        self.canvas.show_image(image, displayed)

    def refresh(self) -> None:
        """Send the current intent and viewport to the pipeline."""
        image, intent = self._session.image, self.intent
        if image is not None and intent is not None:
            self.pipeline.show(image, intent, self.canvas.viewport, self._session.overlays)
            self.draw_grid()

    def draw_grid(self) -> None:
        """Draw the chunk grid, if it is enabled."""
        image, intent, state = self._session.image, self.intent, self.pipeline.state
        if not self.show_chunks or image is None or intent is None:
            self._missing_timer.stop()
            self.canvas.show_grid(None)
            return
        level = state.level if state is not None and state.image is image else 0
        grid = chunk_grid(image, intent, self.canvas.viewport, level)
        missing = self._missing
        self.canvas.show_grid(
            grid, missing[1] if missing is not None and missing[0].level == grid.level else ()
        )
        self._missing_timer.start()

    def _find_missing(self) -> None:
        image, intent, viewport = self._session.image, self.intent, self.canvas.viewport
        if image is None or intent is None or not self.show_chunks:
            return
        state = self.pipeline.state
        level = state.level if state is not None and state.image is image else 0
        grid = chunk_grid(image, intent, viewport, level)

        def show(missing: tuple[Rect, ...]) -> None:
            self._missing = grid, missing
            if self.show_chunks:
                self.canvas.show_grid(grid, missing)

        owner = f"missing {id(self)}"
        self._session.run_for_image(lambda: missing_chunks(image, intent, viewport, level), show, owner)

    def _show_frame(self, frame: Frame) -> None:
        if frame.state.image is self._session.image and frame.state.intent.displayed == self.displayed:
            self.canvas.show_frame(frame)
            if frame.exact:
                # The chunk that could not be read is not in the displayed region any more.
                self._session.withdraw_message(self._error)
                self._error = ""
            self.frame_shown.emit(frame)

    def _show_tile_error(self, error: TileError) -> None:
        # The signal is queued: after a retry, or with another image, the error may be obsolete.
        if error in self._session.streamer.failures([error.key]):
            self._error = error.message
            self._session.show_message(error.message, True)

    def _update_readout(self, position: tuple[float, float] | None) -> None:
        state = self.pipeline.state
        values = None
        if position is not None and state is not None:
            values = readout(state, self._session.streamer, *position)
        self.pointed.emit(values)
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
        self.pipeline.close()


class Panes(QWidget):
    """The main pane, and two side panes while linked panes are enabled.

    Signals:
        frame_shown: (frame) the main pane displays another frame.
        pointed: (readout or None) the values below the pointer, in any pane.
        stepped: (slices) a step requested in the main pane.
    """

    frame_shown = pyqtSignal(object)
    pointed = pyqtSignal(object)
    stepped = pyqtSignal(int)

    def __init__(self, session: Session, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._session = session
        self._is_synchronizing = False
        self.linked = False
        self.main = self._create_pane()
        self.side: tuple[Pane, ...] = ()
        self._grid = QGridLayout(self)
        self._grid.setContentsMargins(0, 0, 0, 0)
        self._grid.setSpacing(2)
        self._grid.addWidget(self.main.canvas, 0, 0)
        self.main.frame_shown.connect(self._adopt_limits)
        self.main.canvas.stepped.connect(self.stepped)
        session.axes_changed.connect(self._show_axes)
        session.intent_changed.connect(self.refresh)

    def _create_pane(self) -> Pane:
        pane = Pane(self._session, self)
        pane.pointed.connect(self.pointed)
        pane.canvas.clicked.connect(lambda row, column: self._set_cross_position(pane, row, column))
        pane.canvas.viewport_changed.connect(lambda: self._synchronize_viewports(pane))
        return pane

    @property
    def all(self) -> tuple[Pane, ...]:
        """All panes, the main pane first."""
        return (self.main, *self.side)

    def set_linked(self, linked: bool) -> bool:
        """Show three panes, or one. Returns False, with no change, if the image has no third axis."""
        image, intent = self._session.image, self._session.intent
        if linked and (image is None or intent is None or linked_axes(image, intent.displayed) is None):
            return False
        self.linked = linked
        self._show_axes()
        return True

    def set_show_chunks(self, on: bool) -> None:
        """Show or hide the chunk grid in all panes."""
        for pane in self.all:
            pane.show_chunks = on
            pane.draw_grid()

    def set_show_scale_bar(self, on: bool) -> None:
        """Show or hide the scale bar in all panes."""
        for pane in self.all:
            pane.canvas.show_scale_bar = on
            pane.canvas.update()

    def set_wheel_steps(self, on: bool) -> None:
        """Let the wheel step through slices, and zoom with Ctrl, or the reverse, in all panes."""
        for pane in self.all:
            pane.canvas.wheel_steps = on

    def refresh(self) -> None:
        """Display the current intent."""
        self._update_cross()
        for pane in self.all:
            pane.refresh()

    def close_panes(self) -> None:
        """Stop all pipelines."""
        for pane in self.all:
            pane.close()

    def _show_axes(self) -> None:
        image, intent = self._session.image, self._session.intent
        pairs = None
        if self.linked and image is not None and intent is not None:
            pairs = linked_axes(image, intent.displayed)
        self._set_side_pane_count(0 if pairs is None else len(pairs))
        self._is_synchronizing = True
        self.main.show_axes((0, 1) if intent is None else intent.displayed)
        for pane, pair in zip(self.side, pairs or (), strict=True):
            pane.show_axes(pair)
        self._is_synchronizing = False
        viewport, self._session.pending_viewport = self._session.pending_viewport, None
        if viewport is not None:
            self.main.canvas.set_viewport(fitted_viewport(viewport, self.main.canvas.viewport))
        if self.side:
            self._synchronize_viewports(self.main)
        self.refresh()

    def _set_side_pane_count(self, count: int) -> None:
        """Create or delete the panes at the right and below."""
        if len(self.side) == count:
            return
        for pane in self.side:
            pane.close()
            pane.canvas.setParent(None)
            pane.canvas.deleteLater()
            pane.deleteLater()
        self.side = tuple(self._create_pane() for _ in range(count))
        for pane, (row, column) in zip(self.side, ((0, 1), (1, 0)), strict=False):
            pane.show_chunks = self.main.show_chunks
            pane.canvas.show_scale_bar = self.main.canvas.show_scale_bar
            pane.canvas.wheel_steps = self.main.canvas.wheel_steps
            pane.canvas.stepped.connect(lambda count, pane=pane: self._step_depth(pane, count))
            self._grid.addWidget(pane.canvas, row, column)
        for number, stretch in enumerate((2, 1 if count else 0)):
            self._grid.setColumnStretch(number, stretch)
            self._grid.setRowStretch(number, stretch)

    def _adopt_limits(self, frame: Frame) -> None:
        """Copy the contrast limits that the renderer chose into the intent, so that the panel shows them."""
        intent = self._session.intent
        if intent is None:
            return
        frame_limits = {(channel.index, channel.field): channel.limits for channel in frame.channels}
        for number, channel in enumerate(intent.channels):
            limits = frame_limits.get((channel.index, channel.field))
            # A frame with an unreadable chunk never becomes exact. Its limits are those of the readable chunks.
            if channel.limits is None and limits is not None and frame.settled:
                intent = with_channel(intent, number, limits=limits)
        self._session.change(intent)
        self.frame_shown.emit(frame)

    # -- linking -----------------------------------------------------------------------------------------------

    def _synchronize_viewports(self, source: Pane) -> None:
        """Apply the viewport of one pane to the other panes."""
        image = self._session.image
        if self._is_synchronizing or not self.side or image is None:
            return
        self._is_synchronizing = True
        for pane in self.all:
            if pane is not source:
                current = pane.canvas.viewport
                pane.canvas.follow(
                    linked_viewport(image, source.displayed, source.canvas.viewport, pane.displayed, current)
                )
        self._is_synchronizing = False

    def _set_cross_position(self, pane: Pane, row: float, column: float) -> None:
        """Move the cross-hair, and with it the planes of the other panes, to the clicked position."""
        image, intent = self._session.image, self._session.intent
        if image is None or intent is None or not self.side or pane.canvas.tool != "move":
            return
        for axis, value in zip(pane.displayed, (row, column), strict=True):
            nearest = min(max(round(value), 0), image.shape[axis] - 1)
            intent = with_position(intent, axis, nearest)
        self._session.change(intent)

    def _step_depth(self, pane: Pane, count: int) -> None:
        image, intent = self._session.image, self._session.intent
        if image is None or intent is None:
            return
        axis = next(axis for axis in intent.displayed if axis not in pane.displayed)
        value = min(max(intent.position[axis] + count, 0), image.shape[axis] - 1)
        self._session.change(with_position(intent, axis, value))

    def _update_cross(self) -> None:
        intent = self._session.intent
        for pane in self.all:
            cross = None
            if self.side and intent is not None:
                cross = intent.position[pane.displayed[0]], intent.position[pane.displayed[1]]
            pane.canvas.show_cross(cross)
