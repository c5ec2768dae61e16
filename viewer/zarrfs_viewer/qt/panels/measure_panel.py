"""What was measured: the profile along the line, or the statistics of the region, of all channels; and its CSV."""

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
from zarrfs_viewer.qt.support.plots import PlotHolder, with_plots
from zarrfs_viewer.qt.support.widgets import copy_to_clipboard
from zarrfs_viewer.state.colormaps import lookup
from zarrfs_viewer.state.view_state import ViewIntent

__all__ = ["MeasurePanel"]

HINT = (
    "Choose a tool: P draws a line, R a rectangle, O an ellipse; drag on the picture. M goes back to moving it. "
    "Drag the ends or the middle to change it, Delete takes it away."
)
ROWS = ("count", "area", "mean", "std", "minimum", "maximum", "median", "sum", "nans")
RESULT_HEIGHT = 330
MAX_PIXELS = 1 << 26
"""Regions of more pixels are measured at the level on the screen, not the finest; the panel says so."""


class MeasurePanel(QWidget):
    """The results, read by the session's worker."""

    def __init__(self, session: Session, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._session = session
        self.text = ""
        self.title = PlainLabel(HINT, wrap=True)
        self.title.setAccessibleName("What was measured")
        self.plot = PlotHolder("Profile")
        self.table = QTableWidget()
        self.table.setAccessibleName("Statistics of the region")
        self.table.setEditTriggers(QTableWidget.EditTrigger.NoEditTriggers)
        self.stack = QStackedWidget()
        for widget in (QWidget(), self.plot, self.table):
            self.stack.addWidget(widget)
        self.copy = QPushButton("Copy CSV")
        self.save = QPushButton("Save CSV ...")
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
        """Show nothing but how to measure."""
        self._session.worker.forget("measure")
        self.title.setText(HINT)
        self.stack.setCurrentIndex(0)
        self._have("")

    def _have(self, text: str) -> None:
        self.text = text
        for button in (self.copy, self.save):
            button.setEnabled(bool(text))

    def measure(self, shape: Shape | None, intent: ViewIntent | None, level: int) -> None:
        """Measure on the pane with this intent; ``level`` is the one on the screen."""
        image = self._session.image
        if shape is None or intent is None or image is None:
            self.clear()
            return
        if shape.kind == "line":
            self._session.ask_of_image(
                with_plots(lambda: line_profile(image, intent, shape.start, shape.end)),
                lambda found: self._show_profile(found, intent),
                "measure",
            )
            return
        used = level_for(image, intent, shape, level)
        self._session.ask_of_image(
            lambda: list(roi_statistics(image, intent, shape.roi(), used)),
            lambda found: self._show_statistics(found, used),
            "measure",
        )

    def _show_profile(self, profile: Profile, intent: ViewIntent) -> None:
        unit = short_unit(profile.unit) if profile.unit else "px"
        text = f"Line of {profile.distance[-1]:.6g} {unit}, {len(profile.distance)} samples"
        self.title.setText(plain(text))
        new = not self.plot.made
        plot = self.plot.plot()
        if new:
            plot.showGrid(x=True, y=True, alpha=0.2)
            plot.addLegend(offset=(-5, 5))
        plot.clear()
        plot.setLabel("bottom", html_text(f"distance [{unit}]", MAX_NAME))
        for number, (name, values) in enumerate(zip(profile.channels, profile.values, strict=True)):
            pen = import_module("pyqtgraph").mkPen(_colour(intent, number, len(profile.channels)), width=1.5)
            plot.plot(profile.distance, values, pen=pen, name=html_text(name, MAX_NAME), connect="finite")
        self.stack.setCurrentWidget(self.plot)
        self._have(profile_csv(profile))

    def _show_statistics(self, found: Sequence[RoiStatistics], level: int) -> None:
        where = "" if level == 0 else f" at level {level} (it is too large for the finest)"
        self.title.setText(plain(f"Statistics of the region{where}"))
        unit = short_unit(found[0].unit) if found and found[0].unit else "px"
        self.table.setRowCount(len(ROWS))
        self.table.setColumnCount(len(found))
        self.table.setHorizontalHeaderLabels([plain_name(entry.channel) for entry in found])
        self.table.setVerticalHeaderLabels(
            [plain_name(f"area [{unit}²]" if row == "area" else row) for row in ROWS]
        )
        for column, entry in enumerate(found):
            for row, name in enumerate(ROWS):
                self.table.setItem(row, column, QTableWidgetItem(plain(format_value(getattr(entry, name)))))
        self.stack.setCurrentWidget(self.table)
        self._have(statistics_csv(found))

    def copy_csv(self) -> None:
        """Put the numbers on the clipboard."""
        if self.text:
            copy_to_clipboard(self.text)

    def ask_file(self) -> None:
        """Ask for a file and write the numbers to it."""
        file, _ = QFileDialog.getSaveFileName(self, "Save the numbers", "measured.csv", "CSV (*.csv)")
        if file:
            self.write_csv(Path(file))

    def write_csv(self, file: Path) -> None:
        """Write the numbers to a file, replaced as a whole; errors are told."""
        text = self.text

        def write() -> None:
            with replacing(file) as temporary:
                temporary.write_bytes(text.encode("utf-8"))

        self._session.ask(write, lambda _: self._session.say(f"Saved to {file}"), "csv")


def level_for(image: Image, intent: ViewIntent, shape: Shape, level: int) -> int:
    """Return the level to measure a region at: the finest, unless the region has too many pixels there."""
    top, left, bottom, right = shape.rect
    rows, columns = (image.shape[axis] for axis in intent.displayed)
    height = min(bottom, rows) - max(top, 0)
    width = min(right, columns) - max(left, 0)
    return level if max(0.0, height) * max(0.0, width) > MAX_PIXELS else 0


def _colour(intent: ViewIntent, number: int, count: int) -> tuple[int, int, int]:
    """Return the brightest colour of a channel's map; the samples of RGB have their own."""
    if count != len(intent.channels):
        return [(230, 80, 80), (80, 200, 90), (90, 140, 255)][number % 3]
    table = lookup(intent.channels[number].colormap)
    red, green, blue = (int(part) for part in table[-1][:3])
    # A map that ends in black, or white on a white ground, could not be seen.
    return (150, 150, 160) if red == green == blue else (red, green, blue)
