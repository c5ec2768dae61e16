"""The panes: one picture, or three linked ones of the same point, each with a pipeline of its own.

They take the session's intent and show what follows from it; clicks and wheels go back as changes of the intent.
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

Pair = tuple[int, int]

MISSING_DELAY = 150
"""The store is asked for missing chunks when the picture has stood still for so many milliseconds."""


class Pane(QObject):
    """A canvas and its pipeline.

    Signals:
        framed: (frame) another frame is on the screen.
        pointed: (readout or None) what is below the pointer.
    """

    framed = pyqtSignal(object)
    pointed = pyqtSignal(object)
    _frame_came = pyqtSignal(object)
    _tile_failed = pyqtSignal(object)
    _pane_failed = pyqtSignal(object)

    def __init__(self, session: Session, parent: QObject) -> None:
        super().__init__(parent)
        self._session = session
        self.displayed: Pair = (0, 1)
        self.canvas = Canvas()
        self.show_chunks = False
        self._missing: tuple[ChunkGrid, tuple[Rect, ...]] | None = None
        self._error = ""
        self.pipeline = ViewPipeline(
            session.streamer,
            on_frame=self._frame_came.emit,
            on_error=self._tile_failed.emit,
            on_failure=self._pane_failed.emit,
        )
        self._still = QTimer(self)
        self._still.setSingleShot(True)
        self._still.setInterval(MISSING_DELAY)
        self._still.timeout.connect(self._look_for_missing)
        self._frame_came.connect(self._show_frame)
        self._tile_failed.connect(self._tell)
        self._pane_failed.connect(lambda error: session.say(f"The picture could not be drawn: {error}", True))
        self.canvas.viewport_changed.connect(self.refresh)
        self.canvas.pointed.connect(self._point)

    @property
    def intent(self) -> ViewIntent | None:
        """The session's intent with this pane's axes."""
        intent = self._session.intent
        if intent is None or intent.displayed == self.displayed:
            return intent
        return with_displayed(intent, *self.displayed)

    def show_axes(self, displayed: Pair) -> None:
        """Show these axes of the session's image; the old picture goes."""
        self.displayed = displayed
        image = self._session.image
        self._missing = None
        if image is None:
            self.pipeline.clear()
        else:
            self.canvas.title = "".join(image.axes[axis].name for axis in displayed[::-1])
        self.canvas.show_image(image, displayed)

    def refresh(self) -> None:
        """Hand the newest wish to the pipeline."""
        image, intent = self._session.image, self.intent
        if image is not None and intent is not None:
            self.pipeline.show(image, intent, self.canvas.viewport, self._session.overlays)
            self.draw_grid()

    def draw_grid(self) -> None:
        """Draw the chunk grid, if it is to be seen."""
        image, intent, state = self._session.image, self.intent, self.pipeline.state
        if not self.show_chunks or image is None or intent is None:
            self._still.stop()
            self.canvas.show_grid(None)
            return
        level = state.level if state is not None and state.image is image else 0
        grid = chunk_grid(image, intent, self.canvas.viewport, level)
        known = self._missing
        self.canvas.show_grid(grid, known[1] if known is not None and known[0].level == grid.level else ())
        self._still.start()

    def _look_for_missing(self) -> None:
        image, intent, viewport = self._session.image, self.intent, self.canvas.viewport
        if image is None or intent is None or not self.show_chunks:
            return
        state = self.pipeline.state
        level = state.level if state is not None and state.image is image else 0
        grid = chunk_grid(image, intent, viewport, level)

        def show(found: tuple[Rect, ...]) -> None:
            self._missing = grid, found
            if self.show_chunks:
                self.canvas.show_grid(grid, found)

        owner = f"missing {id(self)}"
        self._session.ask_of_image(lambda: missing_chunks(image, intent, viewport, level), show, owner)

    def _show_frame(self, frame: Frame) -> None:
        if frame.state.image is self._session.image and frame.state.intent.displayed == self.displayed:
            self.canvas.show_frame(frame)
            if frame.exact:
                # What could not be read belongs to another slice or another part of the plane.
                self._session.take_back(self._error)
                self._error = ""
            self.framed.emit(frame)

    def _tell(self, error: TileError) -> None:
        # The signal is queued: a retry, or another image, may have made the error obsolete in the meantime.
        if error in self._session.streamer.failures([error.key]):
            self._error = error.message
            self._session.say(error.message, True)

    def _point(self, place: Pair | None) -> None:
        state = self.pipeline.state
        found = None if place is None or state is None else readout(state, self._session.streamer, *place)
        self.pointed.emit(found)
        self._show_properties(found)

    def _show_properties(self, found: Readout | None) -> None:
        """Show the properties of the label below the pointer beside it."""
        lines = [
            f"{label.name} {label.value}: " + ", ".join(f"{k} = {v}" for k, v in label.properties.items())
            for label in (found.labels if found is not None else ())
            if label.value and label.properties
        ]
        if lines:
            QToolTip.showText(self.canvas.cursor().pos(), tooltip("\n".join(lines)), self.canvas)
        else:
            QToolTip.hideText()

    def close(self) -> None:
        """Stop the pipeline."""
        self._still.stop()
        self.pipeline.close()


class Panes(QWidget):
    """The main pane, and the two that are linked to it when ``set_linked`` says so.

    Signals:
        framed: (frame) the main pane has another frame.
        pointed: (readout or None) what is below the pointer, in whichever pane.
        stepped: (slices) along the first slider, from the main pane.
    """

    framed = pyqtSignal(object)
    pointed = pyqtSignal(object)
    stepped = pyqtSignal(int)

    def __init__(self, session: Session, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._session = session
        self._following = False
        self.linked = False
        self.main = self._pane()
        self.side: tuple[Pane, ...] = ()
        self._grid = QGridLayout(self)
        self._grid.setContentsMargins(0, 0, 0, 0)
        self._grid.setSpacing(2)
        self._grid.addWidget(self.main.canvas, 0, 0)
        self.main.framed.connect(self._framed)
        self.main.canvas.stepped.connect(self.stepped)
        session.axes_changed.connect(self._show_axes)
        session.intent_changed.connect(self.refresh)

    def _pane(self) -> Pane:
        pane = Pane(self._session, self)
        pane.pointed.connect(self.pointed)
        pane.canvas.clicked.connect(lambda row, column: self._cut_at(pane, row, column))
        pane.canvas.viewport_changed.connect(lambda: self._lead(pane))
        return pane

    @property
    def all(self) -> tuple[Pane, ...]:
        """The panes that are seen, the main one first."""
        return (self.main, *self.side)

    def set_linked(self, linked: bool) -> bool:
        """Show three panes, or one. Returns whether that can be: an image needs a third axis."""
        image, intent = self._session.image, self._session.intent
        if linked and (image is None or intent is None or linked_axes(image, intent.displayed) is None):
            return False
        self.linked = linked
        self._show_axes()
        return True

    def set_show_chunks(self, on: bool) -> None:
        """Draw the chunk grid in all panes, or in none."""
        for pane in self.all:
            pane.show_chunks = on
            pane.draw_grid()

    def set_show_scale_bar(self, on: bool) -> None:
        """Draw the scale bar, or not."""
        for pane in self.all:
            pane.canvas.show_scale_bar = on
            pane.canvas.update()

    def refresh(self) -> None:
        """Show the newest intent."""
        self._draw_cross()
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
        self._have_side_panes(0 if pairs is None else len(pairs))
        self._following = True
        self.main.show_axes((0, 1) if intent is None else intent.displayed)
        for pane, pair in zip(self.side, pairs or (), strict=True):
            pane.show_axes(pair)
        self._following = False
        wanted, self._session.wanted_viewport = self._session.wanted_viewport, None
        if wanted is not None:
            self.main.canvas.set_viewport(fitted_viewport(wanted, self.main.canvas.viewport))
        if self.side:
            self._lead(self.main)
        self.refresh()

    def _have_side_panes(self, count: int) -> None:
        """Make or end the panes at the right and below."""
        if len(self.side) == count:
            return
        for pane in self.side:
            pane.close()
            pane.canvas.setParent(None)
            pane.canvas.deleteLater()
            pane.deleteLater()
        self.side = tuple(self._pane() for _ in range(count))
        for pane, place in zip(self.side, ((0, 1), (1, 0)), strict=False):
            pane.show_chunks = self.main.show_chunks
            pane.canvas.show_scale_bar = self.main.canvas.show_scale_bar
            pane.canvas.stepped.connect(lambda count, pane=pane: self._step_depth(pane, count))
            self._grid.addWidget(pane.canvas, *place)
        for number, stretch in enumerate((2, 1 if count else 0)):
            self._grid.setColumnStretch(number, stretch)
            self._grid.setRowStretch(number, stretch)

    def _framed(self, frame: Frame) -> None:
        """Keep the contrast that was chosen for a first look: it shows in the panel from now on."""
        intent = self._session.intent
        if intent is None:
            return
        known = {(channel.index, channel.field): channel.limits for channel in frame.channels}
        for number, channel in enumerate(intent.channels):
            limits = known.get((channel.index, channel.field))
            # A frame with a chunk that cannot be read never becomes exact; the limits are those of the rest.
            if channel.limits is None and limits is not None and frame.settled:
                intent = with_channel(intent, number, limits=limits)
        self._session.change(intent)
        self.framed.emit(frame)

    # -- linking -----------------------------------------------------------------------------------------------

    def _lead(self, leader: Pane) -> None:
        """Let the other panes follow a window that has moved."""
        image = self._session.image
        if self._following or not self.side or image is None:
            return
        self._following = True
        for pane in self.all:
            if pane is not leader:
                now = pane.canvas.viewport
                pane.canvas.follow(
                    linked_viewport(image, leader.displayed, leader.canvas.viewport, pane.displayed, now)
                )
        self._following = False

    def _cut_at(self, pane: Pane, row: float, column: float) -> None:
        """Put the cross-hair where the user clicked: the other panes are cut there."""
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

    def _draw_cross(self) -> None:
        intent = self._session.intent
        for pane in self.all:
            cross = None
            if self.side and intent is not None:
                cross = intent.position[pane.displayed[0]], intent.position[pane.displayed[1]]
            pane.canvas.show_cross(cross)
