"""The results of measurements of all channels, as a plot or table and as CSV.

A line gives an intensity profile, a region gives statistics.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

from PyQt6.QtWidgets import (
    QCheckBox,
    QComboBox,
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
from zarrfs_viewer.analysis.regions import axis_profile, level_for, profile_axes
from zarrfs_viewer.analysis.shapes import Shape
from zarrfs_viewer.export.replacing import replacing
from zarrfs_viewer.qt.session import Session
from zarrfs_viewer.qt.support.file_dialogs import ask_new_file
from zarrfs_viewer.qt.support.plain_text import (
    MAX_NAME,
    PlainLabel,
    button_text,
    html_text,
    plain,
    plain_lines,
    plain_name,
    tooltip,
)
from zarrfs_viewer.qt.support.plots import LazyPlot, with_pyqtgraph
from zarrfs_viewer.qt.support.widgets import copy_to_clipboard, ignore_wheel_unless_focused
from zarrfs_viewer.state.colormaps import lookup
from zarrfs_viewer.state.view_state import DisplaySettings

__all__ = ["MeasurePanel"]

HINT = (
    "Select a tool (P: line profile, R: rectangle, O: ellipse, Y: polygon, I: point) and draw on the image. A double "
    "click ends a polygon. Drag the points or the inside of a shape to change it. Delete removes it, D adds it to the "
    "regions. M returns to moving the image."
)
ROWS = ("count", "area", "mean", "std", "minimum", "maximum", "median", "sum", "nans", "unreadable")
ROWS_WITH_UNIT = ("mean", "std", "minimum", "maximum", "median", "sum")
"""The statistics in the unit of the values."""
MIN_RESULT_HEIGHT, MAX_RESULT_HEIGHT = 150, 330


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
        self.stack.setMinimumHeight(MIN_RESULT_HEIGHT)
        self.stack.setMaximumHeight(MAX_RESULT_HEIGHT)
        self.along = QCheckBox(button_text("Profile along"))
        self.along.setToolTip(tooltip("Measure the mean of the shape in every slice along an axis"))
        self.axis = QComboBox()
        self.axis.setAccessibleName(plain("Axis of the profile"))
        ignore_wheel_unless_focused(self.axis)
        self.along.toggled.connect(lambda _: self._measure_along())
        self.axis.activated.connect(lambda _: self._measure_along())
        buttons = QHBoxLayout()
        buttons.addWidget(self.copy)
        buttons.addWidget(self.save)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(4, 4, 4, 4)
        layout.addWidget(self.title)
        choice = QHBoxLayout()
        choice.addWidget(self.along)
        choice.addWidget(self.axis)
        choice.addStretch(1)
        layout.addLayout(choice)
        layout.addWidget(self.stack)
        layout.addLayout(buttons)
        self._arguments: tuple[Shape, DisplaySettings, int] | None = None
        self._request = object()
        self._along_measured: object = None
        self.clear()

    def clear(self) -> None:
        """Remove the results and show the instructions."""
        self._session.worker.cancel("measure")
        self.plot.cancel()
        self._request = object()
        self._arguments = self._along_measured = None
        self.title.setText(HINT)
        self.stack.setCurrentIndex(0)
        self.stack.hide()
        self._show_axes()
        self._set_csv("")

    def _show_axes(self) -> None:
        """Offer the axes along which the mean of a shape can be measured."""
        image, settings = self._session.image, self._session.settings
        axes = () if image is None or settings is None else profile_axes(image, settings)
        if image is not None and list(axes) != [self.axis.itemData(row) for row in range(self.axis.count())]:
            self.axis.clear()
            for axis in axes:
                self.axis.addItem(plain_name(image.axes[axis].name or f"axis {axis}"), axis)
        for widget in (self.along, self.axis):
            widget.setVisible(bool(axes))

    def _set_csv(self, text: str) -> None:
        self.text = text
        for button in (self.copy, self.save):
            button.setEnabled(bool(text))

    def measure(self, shape: Shape | None, settings: DisplaySettings | None, level: int) -> None:
        """Measure a shape on the plane of ``settings``. ``level`` is the displayed level. None clears the results."""
        image = self._session.image
        self.plot.cancel()
        if shape is None or settings is None or image is None:
            self.clear()
            return
        self._arguments = shape, settings, level
        self._show_axes()
        if self.along.isChecked() and self.axis.count():
            self._measure_along()
            return
        self._along_measured, self._request = None, object()
        if shape.kind == "line":
            self._session.run_for_image(
                with_pyqtgraph(lambda: line_profile(image, settings, shape.start, shape.end)),
                lambda profile: self._show_profile(profile, settings),
                "measure",
            )
            return
        measured_level = level_for(image, settings, shape, level)
        self._session.run_for_image(
            lambda: list(roi_statistics(image, settings, shape.roi(), measured_level)),
            lambda statistics: self._show_statistics(statistics, measured_level),
            "measure",
        )

    def _measure_along(self) -> None:
        """Measure the profile along the selected axis, or the shape on the displayed slice, as the box selects."""
        image = self._session.image
        if self._arguments is None or image is None:
            return
        shape, settings, level = self._arguments
        if not self.along.isChecked():
            self.measure(shape, settings, level)
            return
        axis = self.axis.currentData()
        position = tuple(value for number, value in enumerate(settings.position) if number != axis)
        channels = tuple((one.index, one.component, one.field) for one in settings.channels)
        measured = image.uid, shape, axis, settings.displayed, position, channels
        if measured == self._along_measured:
            return  # only the slice along the axis, or a colour, changed
        self._along_measured = measured
        self._request = request = object()
        self._session.worker.cancel("measure")
        self.title.setText(plain("Measuring all slices..."))

        def show(result: tuple[Profile, int] | None) -> None:
            if result is not None and request is self._request:
                self._show_profile(result[0], settings, result[1])

        self._session.worker.submit(
            with_pyqtgraph(
                lambda: axis_profile(image, settings, shape, axis, lambda: request is self._request)
            ),
            show,
            self._session.show_error,
            "measure",
            low_priority=True,
        )

    def _show_profile(self, profile: Profile, settings: DisplaySettings, level: int | None = None) -> None:
        """Draw a profile along a line, or along an axis if the measured pyramid level is given."""
        unit = short_unit(profile.unit) if profile.unit else "px"
        text = f"Line profile: {profile.distance[-1]:.6g} {unit}, {len(profile.distance)} samples"
        quantity = "Distance"
        if level is not None:
            quantity = profile.quantity
            suffix = f", measured at level {level}" if level else ""
            text = f"Mean along {quantity}: {len(profile.distance)} slices{suffix}"
        kind = "samples" if level is None else "slices"
        text += _unreadable_text(max(profile.unreadable, default=0), len(profile.distance), kind)
        self.title.setText(plain_lines(text))
        self._set_csv(profile_csv(profile))
        self.plot.call_when_created(lambda: self._draw(profile, settings, f"{quantity} [{unit}]"))

    def _draw(self, profile: Profile, settings: DisplaySettings, label: str) -> None:
        plot = self.plot.plot()
        if plot.plotItem.legend is None:
            plot.showGrid(x=True, y=True, alpha=0.2)
            plot.addLegend(offset=(-5, 5))
        plot.clear()
        plot.setLabel("bottom", html_text(label, MAX_NAME))
        image = self._session.image
        plot.setLabel("left", html_text(image.value_unit or "" if image is not None else "", MAX_NAME))
        for number, (name, values) in enumerate(zip(profile.channels, profile.values, strict=True)):
            pen = import_module("pyqtgraph").mkPen(_color(settings, number, len(profile.channels)), width=1.5)
            plot.plot(profile.distance, values, pen=pen, name=html_text(name, MAX_NAME), connect="finite")
        self.stack.setCurrentWidget(self.plot)
        self.stack.show()

    def _show_statistics(self, statistics: Sequence[RoiStatistics], level: int) -> None:
        suffix = "" if level == 0 else f" at level {level} (too large for level 0)"
        worst = max(statistics, key=lambda entry: entry.unreadable, default=None)
        if worst is not None:
            total = worst.count + worst.nans + worst.unreadable
            suffix += _unreadable_text(worst.unreadable, total, "pixels")
        self.title.setText(plain_lines(f"Statistics of the region{suffix}"))
        unit = short_unit(statistics[0].unit) if statistics and statistics[0].unit else "px"
        self.table.setRowCount(len(ROWS))
        self.table.setColumnCount(len(statistics))
        self.table.setHorizontalHeaderLabels([plain_name(entry.channel) for entry in statistics])
        image = self._session.image
        value_unit = image.value_unit if image is not None else None
        units = {"area": f"{unit}²"} | {row: value_unit for row in ROWS_WITH_UNIT if value_unit}
        self.table.setVerticalHeaderLabels(
            [plain_name(f"{row} [{units[row]}]" if row in units else row) for row in ROWS]
        )
        for column, entry in enumerate(statistics):
            for row, name in enumerate(ROWS):
                self.table.setItem(row, column, QTableWidgetItem(plain(format_value(getattr(entry, name)))))
        self.stack.setCurrentWidget(self.table)
        self.stack.show()
        self._set_csv(statistics_csv(statistics))

    def copy_csv(self) -> None:
        """Copy the results to the clipboard as CSV."""
        if self.text:
            copy_to_clipboard(self.text)

    def ask_file(self) -> None:
        """Ask for a file and write the results to it."""
        file, _ = ask_new_file(self, "Save CSV", "measurements.csv", "CSV (*.csv)")
        if file:
            self.write_csv(Path(file))

    def write_csv(self, file: Path) -> None:
        """Write the results to a file on a worker thread. The file is replaced atomically. Errors are shown."""
        text = self.text

        def write() -> None:
            with replacing(file) as temporary:
                temporary.write_bytes(text.encode("utf-8"))

        self._session.run_in_worker(write, lambda _: self._session.show_message(f"Saved to {file}"), "csv")


def _unreadable_text(unreadable: int, total: int, kind: str) -> str:
    """Return the statement that a result lacks the values of corrupt chunks; an empty text if it does not."""
    if not unreadable:
        return ""
    lack = "are missing" if kind != "slices" else "are incomplete"
    return f"\n{unreadable:,} of {total:,} {kind} {lack}: their chunks cannot be read."


def _color(settings: DisplaySettings, number: int, count: int) -> tuple[int, int, int]:
    """Return the brightest colour of a channel's colour map, or the colour of an RGB sample."""
    if count != len(settings.channels):
        return [(230, 80, 80), (80, 200, 90), (90, 140, 255)][number % 3]
    table = lookup(settings.channels[number].colormap)
    red, green, blue = (int(part) for part in table[-1][:3])
    # Black, or white on a white background, would be invisible.
    return (150, 150, 160) if red == green == blue else (red, green, blue)
