"""Building a pyramid for the displayed image, on a worker thread, with progress and cancelling."""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from PyQt6.QtCore import pyqtSignal
from PyQt6.QtWidgets import QMessageBox, QProgressDialog

from zarrfs.errors import ZarrError
from zarrfs_viewer.export.writers import Cancelled
from zarrfs_viewer.qt.canvas.painting import stride_text
from zarrfs_viewer.qt.panels.panel import Panel, PanelContext
from zarrfs_viewer.qt.panels.pictures.export_dialog import file_name
from zarrfs_viewer.qt.support.actions import ActionSpec
from zarrfs_viewer.qt.support.file_dialogs import ask_new_file
from zarrfs_viewer.qt.support.plain_text import PlainLabel, plain, plain_lines
from zarrfs_viewer.qt.support.widgets import close_progress_dialog
from zarrfs_viewer.rendering.renderer import Frame

__all__ = ["PyramidActions"]

STEPS = 1000


class PyramidActions(Panel):
    """Builds the coarser levels of an image that has only one.

    The levels are added to an OME-NGFF image in a directory that can be written. For other images a new OME-Zarr image
    is written, with a copy of the values. A run that was cancelled is continued by the next one.

    Signals:
        finished: (location) a pyramid is complete.
    """

    finished = pyqtSignal(str)
    _progressed = pyqtSignal(str, float)

    def __init__(self, context: PanelContext) -> None:
        super().__init__(context)
        self._parent = context.window
        self._stop = threading.Event()
        self._dialog: QProgressDialog | None = None
        self._offered: int | None = None
        self._progressed.connect(self._show_progress)
        context.panes.frame_shown.connect(self.offer)

    def actions(self) -> Sequence[ActionSpec]:
        return (
            ActionSpec(
                "pyramid",
                "&Image",
                "&Build a pyramid...",
                "Ctrl+B",
                self.ask,
                place=210,
                needs="image",
                synonyms="multiscale downsample resolution",
            ),
        )

    def offer(self, frame: Frame) -> None:
        """Propose to build a pyramid if a frame contains only a part of the pixels, once for each image."""
        image = frame.state.image
        if not frame.state.is_sampled or image.uid == self._offered:
            return
        self._offered = image.uid
        text = f"{stride_text(frame.grid.stride).capitalize()} is displayed"
        if len(image.levels) == 1:
            text += f": {image.name} has no coarser levels. Build a pyramid (Ctrl+B) writes them."
        else:
            text += f": the coarsest level of {image.name} is large."
        self._session.add_hint(text)

    def ask(self) -> None:
        """Ask where to write the levels of the displayed image, and build them."""
        image, dataset = self._session.image, self._session.dataset
        if self._dialog is not None:
            self._session.show_message("A pyramid is being built. Wait until it is complete, or cancel it.")
        elif image is None or dataset is None:
            self._session.show_message("No image is open.")
        elif len(image.levels) > 1:
            self._session.show_message(f"{image.name} has {len(image.levels)} pyramid levels already.")
        else:
            path = image.path.partition("#")[0]
            node = dataset.node[path] if path else dataset.node
            directory = _writable_image(node) if "#" not in image.path else None
            if directory is not None and not self._confirm(directory):
                return
            if directory is not None:
                self.build(node, str(directory), None, dataset.location)
                return
            name, _ = ask_new_file(
                self._parent, "New image with a pyramid", f"{file_name(image.name)}.ome.zarr", "*.ome.zarr"
            )
            if name:
                self.build(node, node, name, name)

    def _confirm(self, directory: Path) -> bool:
        text = f"Pyramid levels will be written to\n{directory}\nThe existing values do not change."
        box = QMessageBox(self._parent)
        box.setWindowTitle("Build a pyramid")
        box.setText(plain_lines(text))
        box.setStandardButtons(QMessageBox.StandardButton.Ok | QMessageBox.StandardButton.Cancel)
        return box.exec() == QMessageBox.StandardButton.Ok

    def build(self, node: Any, source: Any, target: str | None, location: str) -> None:
        """Build a pyramid on a worker thread, and open ``location`` when it is complete. Returns at once.

        ``source`` is the location of the image, which gets the levels, unless there is a ``target`` for a new image.
        """
        self._stop.clear()
        self._dialog = dialog = QProgressDialog("", "Cancel", 0, STEPS, self._parent)
        dialog.setLabel(PlainLabel(plain("Building a pyramid...")))
        dialog.setWindowTitle("Build a pyramid")
        dialog.setMinimumDuration(400)
        dialog.setAutoClose(False)
        dialog.setAutoReset(False)
        dialog.canceled.connect(self._stop.set)
        self._session.worker.submit(
            lambda: self._build_levels(source, target),
            lambda _: self._report_finished(location),
            self._report_error,
            "pyramid",
            low_priority=True,
        )

    def _build_levels(self, source: Any, target: str | None) -> None:
        """Build the levels. Called on a worker thread."""
        from zarrfs.tools import build_pyramid  # takes long to import

        build_pyramid(source, target, if_exists="resume", progress=self._report)

    def close(self) -> None:
        """Cancel the run. The next run continues it."""
        self._stop.set()

    def _report(self, name: str, done: int, total: int) -> None:
        """Emit the progress. Raises Cancelled to stop. Called on threads that write."""
        if self._stop.is_set():
            raise Cancelled
        self._progressed.emit(name, done / total if total else 1.0)

    def _show_progress(self, name: str, fraction: float) -> None:
        if self._dialog is not None:
            self._dialog.setLabelText(plain(f"Building a pyramid: {name}"))
            self._dialog.setValue(min(STEPS - 1, int(fraction * STEPS)))

    def _close_dialog(self) -> None:
        dialog, self._dialog = self._dialog, None
        close_progress_dialog(dialog)

    def _report_finished(self, location: str) -> None:
        self._close_dialog()
        self._session.open_location(location)
        self.finished.emit(location)

    def _report_error(self, error: Exception) -> None:
        self._close_dialog()
        if isinstance(error, Cancelled) or isinstance(error.__cause__, Cancelled):
            self._session.show_message("The pyramid is not complete. The same action continues it.")
        elif isinstance(error, ZarrError):
            self._session.report_outcome(str(error), True)
        else:
            self._session.report_outcome(f"The pyramid could not be built: {error}", True)


def _writable_image(node: Any) -> Path | None:
    """Return the directory of an OME-NGFF image to which levels can be added, or None."""
    from zarrfs.engine.stores.local.store import LocalStore

    store = getattr(node, "store", None)
    if not isinstance(store, LocalStore) or hasattr(node, "dtype"):
        return None
    directory = Path(store.root) / node.path
    return directory if os.access(directory, os.W_OK) else None
