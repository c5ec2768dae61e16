"""Asking what to write to a file, and writing it on a worker with progress and a way to stop."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from PyQt6.QtCore import QObject, pyqtSignal
from PyQt6.QtWidgets import (
    QComboBox,
    QDialog,
    QDialogButtonBox,
    QFileDialog,
    QFormLayout,
    QProgressDialog,
    QWidget,
)

from zarrfs.errors import UnsupportedError, ZarrError
from zarrfs_viewer.analysis.readout import format_bytes
from zarrfs_viewer.analysis.shapes import Shape
from zarrfs_viewer.export.picture import render_region, write_png
from zarrfs_viewer.export.writers import Cancelled, ExportRegion, export_npy, export_ome_zarr, export_tiff
from zarrfs_viewer.images.image import Image
from zarrfs_viewer.qt.session import Session
from zarrfs_viewer.qt.support.plain_text import MAX_NAME, PlainLabel, plain, plain_lines
from zarrfs_viewer.state.view_state import ViewIntent, Viewport

__all__ = ["ExportDialog", "ExportFormat", "Exporter"]

ExportFormat = Literal["png", "tiff", "npy", "ome-zarr"]

FORMATS: dict[ExportFormat, tuple[str, str]] = {
    "png": ("PNG: the picture, as its colours are now", ".png"),
    "tiff": ("OME-TIFF: the values, with physical sizes", ".ome.tif"),
    "npy": ("NumPy: the values", ".npy"),
    "ome-zarr": ("OME-Zarr: the values, with axes and channels", ".ome.zarr"),
}

MAX_PICTURE_PIXELS = 1 << 28
"""Pixels. A PNG is drawn in memory."""


@dataclass(frozen=True)
class Choice:
    """What the user wants written."""

    region: ExportRegion
    format: ExportFormat


class ExportDialog(QDialog):
    """Which part, at which level, as what."""

    def __init__(
        self,
        image: Image,
        intent: ViewIntent,
        viewport: Viewport,
        level: int,
        shape: Shape | None,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self.setWindowTitle("Export")
        self._image, self._intent = image, intent
        self.part, self.level, self.format = QComboBox(), QComboBox(), QComboBox()
        rows, columns = (image.shape[axis] for axis in intent.displayed)
        if shape is not None and shape.kind != "line":
            self.part.addItem("the region drawn", shape.rect)
        self.part.addItem("what is seen", viewport.rect)
        self.part.addItem("the whole slice", (-0.5, -0.5, rows - 0.5, columns - 0.5))
        self.part.addItem("all slices", None)
        for number, entry in enumerate(image.levels):
            self.level.addItem(plain(f"{number}: {' x '.join(map(str, entry.shape))}"), number)
        self.level.setCurrentIndex(level)
        for name, (title, _) in FORMATS.items():
            self.format.addItem(plain(title), name)
        self.summary = PlainLabel()
        self.buttons = QDialogButtonBox(
            QDialogButtonBox.StandardButton.Save | QDialogButtonBox.StandardButton.Cancel
        )
        self.buttons.accepted.connect(self.accept)
        self.buttons.rejected.connect(self.reject)
        form = QFormLayout(self)
        for title, box in (("Part", self.part), ("Level", self.level), ("As", self.format)):
            box.setAccessibleName(plain(f"{title} to export"))
            box.currentIndexChanged.connect(self._tell)
            form.addRow(PlainLabel(plain(title)), box)
        form.addRow("Size", self.summary)
        form.addRow(self.buttons)
        self._tell()

    def choice(self) -> Choice:
        """Return what is chosen. Raises ZarrError where that is nothing."""
        level, rect = self.level.currentData(), self.part.currentData()
        form: ExportFormat = self.format.currentData()
        if rect is None:
            if form == "png":
                raise UnsupportedError("a PNG holds one slice: choose another part or another format")
            shape = self._image.levels[level].shape
            return Choice(ExportRegion(self._image, level, tuple(slice(0, n) for n in shape)), form)
        region = ExportRegion.visible(self._image, self._intent, tuple(rect), level)
        row, column = (region.shape[axis] for axis in self._intent.displayed)
        if form == "png" and row * column > MAX_PICTURE_PIXELS:
            raise UnsupportedError(
                f"{row} x {column} pixels are too many for one PNG: choose a coarser level or a smaller part"
            )
        return Choice(region, form)

    def _tell(self) -> None:
        """Say how large it gets, or why it cannot be."""
        save = self.buttons.button(QDialogButtonBox.StandardButton.Save)
        possible = True
        try:
            region = self.choice().region
        except ZarrError as error:
            self.summary.setText(plain_lines(error))
            possible = False
        else:
            nbytes = self._image.dtype.itemsize
            for length in region.shape:
                nbytes *= length
            size = f"{' x '.join(map(str, region.shape))} values, {format_bytes(nbytes)}"
            self.summary.setText(plain(size))
        if save is not None:
            save.setEnabled(possible)


class Exporter(QObject):
    """Writes one choice after the other.

    Signals:
        finished: (file) something was written.
    """

    finished = pyqtSignal(str)
    _progressed = pyqtSignal(float)

    def __init__(self, session: Session, parent: QWidget) -> None:
        super().__init__(parent)
        self._session = session
        self._parent = parent
        self._stop = threading.Event()
        self._dialog: QProgressDialog | None = None
        self._progressed.connect(self._show_progress)

    def ask(self, dialog: ExportDialog, intent: ViewIntent) -> None:
        """Let the user choose a part and a file, and write it."""
        if dialog.exec() != QDialog.DialogCode.Accepted:
            return
        choice = dialog.choice()
        suffix = FORMATS[choice.format][1]
        name = file_name(choice.region.image.name) + suffix
        file, _ = QFileDialog.getSaveFileName(self._parent, "Export to", name, f"*{suffix}")
        if file:
            self.write(choice, Path(file), intent)

    def write(self, choice: Choice, file: Path, intent: ViewIntent) -> None:
        """Write a choice to a file, on a worker."""
        self._stop.clear()
        self._dialog = QProgressDialog("", "Stop", 0, 1000, self._parent)
        self._dialog.setLabel(PlainLabel(plain(f"Writing {file.name} ...")))
        self._dialog.setWindowTitle("Export")
        self._dialog.setMinimumDuration(400)
        self._dialog.canceled.connect(self._stop.set)
        overlays = self._session.overlays
        self._session.worker.submit(
            lambda: _write(choice, file, intent, overlays, self._go_on),
            lambda _: self._done(file),
            self._failed,
            "export",
        )

    def close(self) -> None:
        """Stop what is being written; nothing is left of it."""
        self._stop.set()

    def _go_on(self, done: float) -> bool:
        self._progressed.emit(done)
        return not self._stop.is_set()

    def _show_progress(self, done: float) -> None:
        if self._dialog is not None:
            self._dialog.setValue(min(999, int(done * 1000)))

    def _end(self) -> None:
        dialog, self._dialog = self._dialog, None
        if dialog is not None:
            dialog.canceled.disconnect()
            dialog.close()
            dialog.deleteLater()

    def _done(self, file: Path) -> None:
        self._end()
        self._session.say(f"Exported to {file}")
        self.finished.emit(str(file))

    def _failed(self, error: Exception) -> None:
        self._end()
        if isinstance(error, Cancelled):
            self._session.say("The export was stopped; nothing was written.")
        else:
            self._session.show_error(error)


def file_name(name: str) -> str:
    """Return a name for a file, without its suffix, for an image of any name."""
    kept = re.sub(r"[^\w \-+()]", "_", name.partition(".")[0][:MAX_NAME]).strip()
    return kept or "image"


def _write(
    choice: Choice,
    file: Path,
    intent: ViewIntent,
    overlays: tuple[Image, ...],
    progress: Callable[[float], bool],
) -> None:
    """Write what was chosen. Blocks. Raises ZarrError, or Cancelled."""
    if choice.format == "png":
        write_png(file, render_region(choice.region, intent, overlays))
    elif choice.format == "tiff":
        export_tiff(choice.region, file, progress)
    elif choice.format == "npy":
        export_npy(choice.region, file, progress)
    else:
        export_ome_zarr(choice.region, file, progress, intent.channels)
