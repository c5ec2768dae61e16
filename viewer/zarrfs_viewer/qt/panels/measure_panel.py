"""The results of measurements of all channels, as a plot or table and as CSV.

A line gives an intensity profile, a region gives statistics.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

from PyQt6.QtWidgets import (
    QFileDialog,
    QHBoxLayout,
    QPushButton,
    QStackedWidget,
    QTableWidget,
    QTableWidgetItem,
    QVBoxLayout,
    QWidget,
)

from zarrfs_viewer.analysis.measure import (
    Profile,
    RoiStatistics,
    line_profile,
    profile_csv,
    roi_statistics,
    statistics_csv,
)
from zarrfs_viewer.analysis.readout import format_value, short_unit
from zarrfs_viewer.analysis.shapes import Shape
from zarrfs_viewer.export.replacing import replacing
from zarrfs_viewer.images.image import Image
from zarrfs_viewer.qt.session import Session
from zarrfs_viewer.qt.support.plain_text import MAX_NAME, PlainLabel, html_text, plain, plain_name
from zarrfs_viewer.qt.support.plots import LazyPlot, with_pyqtgraph
from zarrfs_viewer.qt.support.widgets import copy_to_clipboard
from zarrfs_viewer.state.colormaps import lookup
from zarrfs_viewer.state.view_state import ViewIntent

__all__ = ["MeasurePanel"]

HINT = (
    "Select a tool (P: line profile, R: rectangle, O: ellipse) and drag on the image. Drag the ends or the center of "
    "the shape to change it. Delete removes the shape. M returns to moving the image."
)
ROWS = ("count", "area", "mean", "std", "minimum", "maximum", "median", "sum", "nans")
RESULT_HEIGHT = 330
MAX_PIXELS = 1 << 26
"""Regions with more pixels are measured at the displayed level instead of the finest one, as the title states."""


class MeasurePanel(QWidget):
    """The results of the measurement of one shape. Values are read on a worker thread.

    Attributes:
        text: the results as CSV; empty without results.
    """

    def __init__(self, session: Session, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._session = session
        self.text = ""
        self.title = PlainLabel(HINT, wrap=True)
        self.title.setAccessibleName("Measurement")
        self.plot = LazyPlot("Profile")
        self.table = QTableWidget()
        self.table.setAccessibleName("Statistics of the region")
        self.table.setEditTriggers(QTableWidget.EditTrigger.NoEditTriggers)
        self.stack = QStackedWidget()
        for widget in (QWidget(), self.plot, self.table):
            self.stack.addWidget(widget)
        self.copy = QPushButton("Copy CSV")
        self.save = QPushButton("Save CSV...")
        self.copy.clicked.connect(self.copy_csv)
        self.save.clicked.connect(self.ask_file)
        self.stack.setFixedHeight(RESULT_HEIGHT)
        buttons = QHBoxLayout()
        buttons.addWidget(self.copy)
        buttons.addWidget(self.save)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(4, 4, 4, 4)
        layout.addWidget(self.title)
        layout.addWidget(self.stack)
        layout.addLayout(buttons)
        layout.addStretch(1)
        self.clear()

    def clear(self) -> None:
        """Remove the results and show the instructions."""
        self._session.worker.cancel("measure")
        self.title.setText(HINT)
        self.stack.setCurrentIndex(0)
        self._set_csv("")

    def _set_csv(self, text: str) -> None:
        self.text = text
        for button in (self.copy, self.save):
            button.setEnabled(bool(text))

    def measure(self, shape: Shape | None, intent: ViewIntent | None, level: int) -> None:
        """Measure a shape on the plane of ``intent``. ``level`` is the displayed level. None clears the results."""
        image = self._session.image
        if shape is None or intent is None or image is None:
            self.clear()
            return
        if shape.kind == "line":
            self._session.run_for_image(
                with_pyqtgraph(lambda: line_profile(image, intent, shape.start, shape.end)),
                lambda profile: self._show_profile(profile, intent),
                "measure",
            )
            return
        measured_level = level_for(image, intent, shape, level)
        self._session.run_for_image(
            lambda: list(roi_statistics(image, intent, shape.roi(), measured_level)),
            lambda statistics: self._show_statistics(statistics, measured_level),
            "measure",
        )

    def _show_profile(self, profile: Profile, intent: ViewIntent) -> None:
        unit = short_unit(profile.unit) if profile.unit else "px"
        text = f"Line profile: {profile.distance[-1]:.6g} {unit}, {len(profile.distance)} samples"
        self.title.setText(plain(text))
        is_first = not self.plot.is_created
        plot = self.plot.plot()
        if is_first:
            plot.showGrid(x=True, y=True, alpha=0.2)
            plot.addLegend(offset=(-5, 5))
        plot.clear()
        plot.setLabel("bottom", html_text(f"Distance [{unit}]", MAX_NAME))
        for number, (name, values) in enumerate(zip(profile.channels, profile.values, strict=True)):
            pen = import_module("pyqtgraph").mkPen(_colour(intent, number, len(profile.channels)), width=1.5)
            plot.plot(profile.distance, values, pen=pen, name=html_text(name, MAX_NAME), connect="finite")
        self.stack.setCurrentWidget(self.plot)
        self._set_csv(profile_csv(profile))

    def _show_statistics(self, statistics: Sequence[RoiStatistics], level: int) -> None:
        suffix = "" if level == 0 else f" at level {level} (too large for level 0)"
        self.title.setText(plain(f"Statistics of the region{suffix}"))
        unit = short_unit(statistics[0].unit) if statistics and statistics[0].unit else "px"
        self.table.setRowCount(len(ROWS))
        self.table.setColumnCount(len(statistics))
        self.table.setHorizontalHeaderLabels([plain_name(entry.channel) for entry in statistics])
        self.table.setVerticalHeaderLabels(
            [plain_name(f"area [{unit}²]" if row == "area" else row) for row in ROWS]
        )
        for column, entry in enumerate(statistics):
            for row, name in enumerate(ROWS):
                self.table.setItem(row, column, QTableWidgetItem(plain(format_value(getattr(entry, name)))))
        self.stack.setCurrentWidget(self.table)
        self._set_csv(statistics_csv(statistics))

    def copy_csv(self) -> None:
        """Copy the results to the clipboard as CSV."""
        if self.text:
            copy_to_clipboard(self.text)

    def ask_file(self) -> None:
        """Ask for a file and write the results to it."""
        file, _ = QFileDialog.getSaveFileName(self, "Save CSV", "measurements.csv", "CSV (*.csv)")
        if file:
            self.write_csv(Path(file))

    def write_csv(self, file: Path) -> None:
        """Write the results to a file on a worker thread. The file is replaced atomically. Errors are shown."""
        text = self.text

        def write() -> None:
            with replacing(file) as temporary:
                temporary.write_bytes(text.encode("utf-8"))

        self._session.run_in_worker(write, lambda _: self._session.show_message(f"Saved to {file}"), "csv")


def level_for(image: Image, intent: ViewIntent, shape: Shape, level: int) -> int:
    """Return the level at which to measure a region: 0, or ``level`` if the region has too many pixels at level 0."""
    top, left, bottom, right = shape.rect
    rows, columns = (image.shape[axis] for axis in intent.displayed)
    height = min(bottom, rows) - max(top, 0)
    width = min(right, columns) - max(left, 0)
    return level if max(0.0, height) * max(0.0, width) > MAX_PIXELS else 0


def _colour(intent: ViewIntent, number: int, count: int) -> tuple[int, int, int]:
    """Return the brightest color of a channel's colormap, or the color of an RGB sample."""
    if count != len(intent.channels):
        return [(230, 80, 80), (80, 200, 90), (90, 140, 255)][number % 3]
    table = lookup(intent.channels[number].colormap)
    red, green, blue = (int(part) for part in table[-1][:3])
    # Black, or white on a white background, would be invisible.
    return (150, 150, 160) if red == green == blue else (red, green, blue)
