"""The export dialog, and the export on a worker thread with a progress dialog."""

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
    QFormLayout,
    QHBoxLayout,
    QProgressDialog,
    QSpinBox,
    QWidget,
)

from zarrfs.errors import UnsupportedError, ZarrError
from zarrfs_viewer.analysis.readout import format_bytes
from zarrfs_viewer.analysis.shapes import Shape
from zarrfs_viewer.display.resolve import plane_key
from zarrfs_viewer.export.picture import render_region
from zarrfs_viewer.export.writers import Cancelled, ExportRegion, export_npy, export_ome_zarr, export_tiff
from zarrfs_viewer.images.image import Image
from zarrfs_viewer.qt.session import Session
from zarrfs_viewer.qt.support.file_dialogs import ask_new_file
from zarrfs_viewer.qt.support.plain_text import MAX_NAME, PlainLabel, plain, plain_lines, plain_name
from zarrfs_viewer.qt.support.png import write_png
from zarrfs_viewer.qt.support.widgets import close_progress_dialog
from zarrfs_viewer.state.view_state import DisplaySettings, Viewport, with_projection

__all__ = ["ExportDialog", "ExportFormat", "Exporter"]

ExportFormat = Literal["png", "tiff", "npy", "ome-zarr"]

FORMATS: dict[ExportFormat, tuple[str, str]] = {
    "png": ("PNG: rendered image with the current colours", ".png"),
    "tiff": ("OME-TIFF: array values with physical sizes", ".ome.tif"),
    "npy": ("NumPy: array values", ".npy"),
    "ome-zarr": ("OME-Zarr: array values with axes and channels", ".ome.zarr"),
}

SUFFIXES: dict[ExportFormat, tuple[str, ...]] = {
    "png": (".png",),
    "tiff": (".tif", ".tiff"),
    "npy": (".npy",),
    "ome-zarr": (".zarr", ".ozx"),
}
"""The accepted suffixes of each format. A name without one of them gets the suffix of ``FORMATS``."""

MAX_PNG_PIXELS = 1 << 28
"""The maximum number of pixels of a PNG, which is rendered in memory."""


@dataclass(frozen=True)
class ExportChoice:
    """The selected region and format."""

    region: ExportRegion
    format: ExportFormat


class ExportDialog(QDialog):
    """A dialog for the region, the pyramid level and the format of an export."""

    def __init__(
        self,
        image: Image,
        settings: DisplaySettings,
        viewport: Viewport,
        level: int,
        shape: Shape | None,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self.setWindowTitle("Export")
        self._image, self._settings = image, settings
        self.part, self.level, self.format = QComboBox(), QComboBox(), QComboBox()
        self.content = QComboBox()
        projected = is_projected(image, settings)
        rows, columns = (image.shape[axis] for axis in settings.displayed)
        if shape is not None and shape.kind != "line":
            self.part.addItem("Drawn region", shape.rect)
        self.part.addItem("Visible region", viewport.rect)
        self.part.addItem("Whole slice", (-0.5, -0.5, rows - 0.5, columns - 0.5))
        self.part.addItem("All slices, not projected" if projected else "All slices", None)
        if projected:
            self.content.addItem(plain(f"As displayed: {projection_text(image, settings)}"), True)
        self.content.addItem("The current slice", False)
        self.ranges = _range_rows(image, settings)
        if self.ranges:
            self.content.addItem("A range of slices", "range")
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
        boxes = [("Region", self.part), ("Level", self.level), ("Format", self.format)]
        if projected or self.ranges:
            boxes.insert(1, ("Slices", self.content))
        for title, box in boxes:
            box.setAccessibleName(plain(f"{title} of the export"))
            box.currentIndexChanged.connect(self._update_summary)
            form.addRow(PlainLabel(plain(title)), box)
            if box is self.content:
                self._add_ranges(form)
        form.addRow("Size", self.summary)
        form.addRow(self.buttons)
        self._update_summary()

    def _add_ranges(self, form: QFormLayout) -> None:
        """Add a row with the first and the last slice of each axis."""
        for axis, boxes in self.ranges.items():
            name = plain_name(self._image.axes[axis].name or f"axis {axis}")
            row = QHBoxLayout()
            for box, title in zip(boxes, ("First slice", "Last slice"), strict=True):
                box.setAccessibleName(plain(f"{title} along {name}"))
                box.valueChanged.connect(self._update_summary)
                row.addWidget(box)
            form.addRow(PlainLabel(plain(f"{name} from, to")), row)

    def choice(self) -> ExportChoice:
        """Return the selected region and format. Raises UnsupportedError if a PNG cannot contain the region."""
        level, rect = self.level.currentData(), self.part.currentData()
        self.content.setEnabled(rect is not None)
        form: ExportFormat = self.format.currentData()
        if rect is None:
            if form == "png":
                raise UnsupportedError("A PNG contains only one slice. Select another region or format.")
            shape = self._image.levels[level].shape
            return ExportChoice(ExportRegion(self._image, level, tuple(slice(0, n) for n in shape)), form)
        content = self.content.currentData()
        settings = self._settings if content is True else with_projection(self._settings, None)
        ranges = None
        if content == "range":
            if form == "png":
                raise UnsupportedError(
                    "A PNG contains only one slice. Select another format, or save a movie."
                )
            ranges = {axis: (float(a.value()), float(b.value())) for axis, (a, b) in self.ranges.items()}
        region = ExportRegion.visible(self._image, settings, tuple(rect), level, ranges)
        row, column = (region.shape[axis] for axis in self._settings.displayed)
        if form == "png" and row * column > MAX_PNG_PIXELS:
            raise UnsupportedError(
                f"{row} x {column} pixels are too many for a PNG, which has at most {MAX_PNG_PIXELS:,}. Select a "
                "coarser level or a smaller region."
            )
        return ExportChoice(region, form)

    def _update_summary(self) -> None:
        """Show the size of the export, or why it is not possible."""
        has_range = self.content.currentData() == "range" and self.part.currentData() is not None
        for boxes in self.ranges.values():
            for box in boxes:
                box.setEnabled(has_range)
        save = self.buttons.button(QDialogButtonBox.StandardButton.Save)
        is_possible = True
        try:
            region = self.choice().region
        except ZarrError as error:
            self.summary.setText(plain_lines(error))
            is_possible = False
        else:
            nbytes = region.dtype.itemsize
            for length in region.shape:
                nbytes *= length
            size = f"{' x '.join(map(str, region.shape))} values, {format_bytes(nbytes)}"
            self.summary.setText(plain(size))
        if save is not None:
            save.setEnabled(is_possible)


class Exporter(QObject):
    """Writes exports on a worker thread, with a progress dialog.

    Signals:
        finished: (file) an export is complete.
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

    def ask(self, dialog: ExportDialog, settings: DisplaySettings) -> None:
        """Run the dialog, ask for a file, and write the export to it."""
        if dialog.exec() != QDialog.DialogCode.Accepted:
            return
        choice = dialog.choice()
        suffix = FORMATS[choice.format][1]
        name = file_name(choice.region.image.name) + suffix
        chosen, _ = ask_new_file(self._parent, "Export to", name, f"*{suffix}")
        if not chosen:
            return
        file = Path(chosen)
        if not file.name.lower().endswith(SUFFIXES[choice.format]):
            file = file.with_name(file.name + suffix)
            if file.exists():  # the user has not confirmed that this file is replaced
                self._session.show_message(f"{file} exists; export to another name.", True)
                return
        self.write(choice, file, settings)

    def write(self, choice: ExportChoice, file: Path, settings: DisplaySettings) -> None:
        """Write an export to a file on a worker thread. Returns at once."""
        overlays = self._session.overlays
        self.run(lambda progress: _write(choice, file, settings, overlays, progress), file)

    def run(self, write: Callable[[Callable[[float], bool]], str | None], file: Path) -> None:
        """Call ``write`` on a worker thread with a function that reports its progress. Returns at once.

        ``write`` may return a warning, which is shown when the file is complete.
        """
        self._stop.clear()
        self._dialog = QProgressDialog("", "Cancel", 0, 1000, self._parent)
        self._dialog.setLabel(PlainLabel(plain(f"Exporting {file.name}...")))
        self._dialog.setWindowTitle("Export")
        self._dialog.setMinimumDuration(400)
        self._dialog.canceled.connect(self._stop.set)
        self._session.worker.submit(
            lambda: write(self._report_progress),
            lambda warning: self._report_finished(file, warning or ""),
            self._report_error,
            "export",
        )

    def close(self) -> None:
        """Cancel the running export. A partly written file is deleted."""
        self._stop.set()

    def _report_progress(self, fraction: float) -> bool:
        """Emit the progress. Returns whether to continue. Called on the worker thread."""
        self._progressed.emit(fraction)
        return not self._stop.is_set()

    def _show_progress(self, fraction: float) -> None:
        if self._dialog is not None:
            self._dialog.setValue(min(999, int(fraction * 1000)))

    def _close_dialog(self) -> None:
        dialog, self._dialog = self._dialog, None
        close_progress_dialog(dialog)

    def _report_finished(self, file: Path, warning: str) -> None:
        self._close_dialog()
        text = f"Exported to {file}"
        self._session.report_outcome(f"{text}. {warning}" if warning else text, bool(warning))
        self.finished.emit(str(file))

    def _report_error(self, error: Exception) -> None:
        self._close_dialog()
        if isinstance(error, Cancelled):
            self._session.show_message("The export was cancelled. No file was written.")
        else:
            self._session.report_outcome(str(error), True)


def _range_rows(image: Image, settings: DisplaySettings) -> dict[int, tuple[QSpinBox, QSpinBox]]:
    """Return boxes for the first and the last slice along each axis with a slider."""
    rows = {}
    for axis in image.slider_axes:
        if axis not in settings.displayed and image.shape[axis] > 1:
            rows[axis] = QSpinBox(), QSpinBox()
            for box, value in zip(rows[axis], (0, image.shape[axis] - 1), strict=True):
                box.setRange(0, image.shape[axis] - 1)
                box.setValue(value)
    return rows


def is_projected(image: Image, settings: DisplaySettings) -> bool:
    """Return whether a projection of several slices is displayed."""
    return plane_key(image, 0, settings).slab is not None


def projection_text(image: Image, settings: DisplaySettings) -> str:
    """Return the displayed projection as text, such as ``maximum of 10 slices along z``."""
    slab = plane_key(image, 0, settings).slab
    if slab is None:
        return "a single slice"
    mode = "maximum" if slab.mode == "max" else "mean"
    return f"{mode} of {slab.stop - slab.start} slices along {image.axes[slab.axis].name}"


def file_name(name: str) -> str:
    """Return a safe file name without a suffix for an image of any name."""
    stem = re.sub(r"[^\w \-+()]", "_", name.partition(".")[0][:MAX_NAME]).strip()
    return stem or "image"


def _write(
    choice: ExportChoice,
    file: Path,
    settings: DisplaySettings,
    overlays: tuple[Image, ...],
    progress: Callable[[float], bool],
) -> None:
    """Write an export. Blocks. Raises ZarrError, or Cancelled if ``progress`` returns False."""
    if choice.format == "png":
        shown = settings if choice.region.slab is not None else with_projection(settings, None)
        write_png(file, render_region(choice.region, shown, overlays))
    elif choice.format == "tiff":
        export_tiff(choice.region, file, progress, settings.channels)
    elif choice.format == "npy":
        export_npy(choice.region, file, progress)
    else:
        export_ome_zarr(choice.region, file, progress, settings.channels)
