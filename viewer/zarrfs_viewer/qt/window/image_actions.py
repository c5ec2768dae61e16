"""The user's actions on the displayed image: axes, position, pyramid level, labels, measurements and exports."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from PyQt6.QtCore import QObject
from PyQt6.QtWidgets import QInputDialog, QWidget

from zarrfs_viewer.analysis.shapes import Shape
from zarrfs_viewer.qt.canvas.panes import Panes
from zarrfs_viewer.qt.panels.export_dialog import ExportDialog, Exporter
from zarrfs_viewer.qt.panels.goto_dialog import GoToDialog
from zarrfs_viewer.qt.panels.measure_panel import MeasurePanel
from zarrfs_viewer.qt.session import Session
from zarrfs_viewer.qt.support.file_dialogs import ask_new_file
from zarrfs_viewer.qt.support.plain_text import plain
from zarrfs_viewer.state.view_state import with_displayed, with_level_lock, with_position, with_projection

__all__ = ["ImageActions"]

NO_IMAGE = "No image is open."


class ImageActions(QObject):
    """Changes the display settings of the image of a session. Dialogs are children of ``parent``."""

    def __init__(
        self, session: Session, panes: Panes, measure: MeasurePanel, exporter: Exporter, parent: QWidget
    ) -> None:
        super().__init__(parent)
        self._session = session
        self._panes = panes
        self._measure_panel = measure
        self._exporter = exporter
        self._parent = parent

    # -- position and axes -------------------------------------------------------------------------------------

    def set_position(self, axis: int, value: float) -> None:
        """Show another slice along an axis."""
        if self._session.intent is not None:
            self._session.change(with_position(self._session.intent, axis, value))

    def set_projection(self, projection: Any) -> None:
        """Show a projection of a slab; None shows a single slice."""
        if self._session.intent is not None:
            self._session.change(with_projection(self._session.intent, projection))

    def show_next_axes(self) -> None:
        """Display the next pair of axes: XY, XZ, YZ."""
        image, intent = self._session.image, self._session.intent
        if image is None or intent is None:
            return
        axes = image.slider_axes
        pairs = [(a, b) for i, a in enumerate(axes) for b in axes[i + 1 :]]
        if len(pairs) > 1:
            current = pairs.index(intent.displayed) if intent.displayed in pairs else 0
            self._session.change(with_displayed(intent, *pairs[(current - 1) % len(pairs)]))

    def ask_position(self) -> None:
        """Ask for a coordinate, and show it: its slice, with the position in the middle of the canvas."""
        image, intent = self._session.image, self._session.intent
        if image is None or intent is None:
            self._session.show_message(NO_IMAGE)
            return
        dialog = GoToDialog(image, intent, self._panes.main.canvas.viewport.center, self._parent)
        if dialog.exec():
            self.go_to(dialog.position())

    def go_to(self, position: tuple[float, ...]) -> None:
        """Show a position, given in data coordinates, in the middle of the canvas."""
        intent = self._session.intent
        if intent is None:
            return
        center = position[intent.displayed[0]], position[intent.displayed[1]]
        for axis, value in enumerate(position):
            intent = with_position(intent, axis, value)
        self._session.change(intent)
        canvas = self._panes.main.canvas
        canvas.set_viewport(replace(canvas.viewport, center=center))

    def is_slice_drawn(self) -> bool:
        """Return whether the current slice is displayed. Playback waits for it."""
        frame, intent = self._panes.main.canvas.frame, self._session.intent
        if frame is None or intent is None:
            return False
        return frame.settled and frame.state.intent.position == intent.position

    # -- level, labels, failed reads ---------------------------------------------------------------------------

    def ask_level(self) -> None:
        """Ask for the pyramid level to display."""
        image, intent = self._session.image, self._session.intent
        if image is None or intent is None:
            return
        names = ["Automatic"] + [
            plain(f"{number}: {' x '.join(map(str, level.shape))}")
            for number, level in enumerate(image.levels)
        ]
        lock = intent.level_lock
        text, accepted = QInputDialog.getItem(
            self._parent, "Pyramid level", "Level:", names, 0 if lock is None else lock + 1, False
        )
        if accepted:
            number = names.index(text) - 1
            self._session.change(with_level_lock(intent, None if number < 0 else number))

    def show_labels(self, on: bool) -> None:
        """Show or hide all label images."""
        intent = self._session.intent
        for number in range(len(intent.labels) if intent is not None else 0):
            self._session.change_labels(number, visible=on)

    def reload(self) -> None:
        """Open the displayed location again, with the same settings."""
        self._session.reload(self._panes.main.canvas.viewport)

    def retry(self) -> None:
        """Read the tiles again that could not be read."""
        self._session.show_message("")
        self._session.streamer.retry()
        self._panes.refresh()

    # -- measurements and files --------------------------------------------------------------------------------

    def measure(self, shape: Shape | None, finished: bool) -> None:
        """Measure a shape of the main pane, unless the user still drags it."""
        if finished:
            pane = self._panes.main
            state = pane.pipeline.state
            self._measure_panel.measure(shape, pane.intent, 0 if state is None else state.level)

    def measure_again(self) -> None:
        """Measure the shape again: the slice or a channel changed."""
        shape = self._panes.main.canvas.shape
        if shape is not None:
            self.measure(shape, True)

    def ask_export(self) -> None:
        """Ask for the part and format to export, and export it."""
        image, intent = self._session.image, self._session.intent
        if image is None or intent is None:
            self._session.show_message(NO_IMAGE)
            return
        pane = self._panes.main
        state = pane.pipeline.state
        level = state.level if state is not None and state.image is image else 0
        canvas = pane.canvas
        dialog = ExportDialog(image, intent, canvas.viewport, level, canvas.shape, self._parent)
        self._exporter.ask(dialog, intent)

    def ask_screenshot(self) -> None:
        """Ask for a file and write the panes to it as they are drawn."""
        file, _ = ask_new_file(self._parent, "Save screenshot", "screenshot.png", "PNG (*.png)")
        if file:
            is_saved = self._panes.grab().save(file, "PNG")
            text = f"Saved to {file}" if is_saved else f"{file} cannot be written"
            self._session.show_message(text, not is_saved)
