"""The channel settings (visibility, colormap, contrast limits, gamma) and the histogram of the selected channel."""

from __future__ import annotations

import math
import re
from functools import lru_cache, partial
from importlib import import_module
from typing import Any

from PyQt6.QtCore import Qt, pyqtSignal
from PyQt6.QtGui import QColor, QIcon, QPainter, QPixmap, QValidator
from PyQt6.QtWidgets import (
    QCheckBox,
    QColorDialog,
    QComboBox,
    QDoubleSpinBox,
    QFrame,
    QGridLayout,
    QHBoxLayout,
    QScrollArea,
    QVBoxLayout,
    QWidget,
)

from zarrfs_viewer.qt.support.plain_text import (
    PlainLabel,
    allow_narrow,
    button_text,
    plain,
    plain_name,
    tooltip,
)
from zarrfs_viewer.qt.support.plots import LazyPlot
from zarrfs_viewer.qt.support.widgets import ignore_wheel_unless_focused, return_focus_on_enter, tool_button
from zarrfs_viewer.rendering.contrast import Histogram
from zarrfs_viewer.state.colormaps import COLOR_BLIND_SAFE, NAMES, lookup
from zarrfs_viewer.state.view_state import ChannelSettings

__all__ = ["ChannelsPanel"]

MAX_LIMIT = 1e300
MIN_NAME_WIDTH = 90
HANDLE_SIZE = 12
"""Pixels of the handles of the limits in the histogram."""
MAX_DECIMALS = 323
"""The maximum of Qt, so that limits as small as 1e-300 are not rounded."""
COMPONENTS = ("abs", "phase", "real", "imag")
CUSTOM = "Custom color..."


class SignificantBox(QDoubleSpinBox):
    """A spin box that displays six significant digits instead of a fixed number of decimals."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setDecimals(MAX_DECIMALS)

    def textFromValue(self, value: float) -> str:
        return f"{value:.6g}"

    def valueFromText(self, text: str | None) -> float:
        stripped = (text or "").strip()
        if stripped == self.textFromValue(self.value()):
            return self.value()  # the text was not edited and has fewer digits than the value
        try:
            return float(stripped)
        except ValueError:
            return self.value()

    def validate(self, text: str | None, position: int) -> tuple[QValidator.State, str, int]:
        value = text or ""
        try:
            is_finite = math.isfinite(float(value))
        except ValueError:
            is_finite = False
        if is_finite:
            return QValidator.State.Acceptable, value, position
        is_prefix = re.fullmatch(r"\s*[+-]?\d*\.?\d*(e[+-]?\d*)?\s*", value, re.IGNORECASE)
        return QValidator.State.Intermediate if is_prefix else QValidator.State.Invalid, value, position


class ChannelRow(QFrame):
    """The controls of one channel.

    Signals:
        changed: (settings) a dictionary of the settings that the user changed.
        auto: the user requested automatic contrast limits.
        activated: the user changed this channel.
    """

    changed = pyqtSignal(dict)
    auto = pyqtSignal()
    activated = pyqtSignal()

    def __init__(
        self, settings: ChannelSettings, kind: str, rgb: bool = False, parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        is_integer = kind in "iub"
        self._limits: tuple[float, float] | None = None
        self.setFrameShape(QFrame.Shape.StyledPanel)
        self._is_updating = False
        label = settings.label or f"Channel {settings.index}"
        self.name = name = plain_name(label)
        self.visible = QCheckBox(button_text(label))
        self.visible.setToolTip(tooltip(label))
        allow_narrow(self.visible, MIN_NAME_WIDTH)
        self.visible.setAccessibleName(plain(f"Show {name}"))
        self.colormap = QComboBox()
        self.colormap.setAccessibleName(plain(f"Colormap of {name}"))
        self.low = self._create_limit_box(f"Minimum contrast limit of {name}", is_integer)
        self.high = self._create_limit_box(f"Maximum contrast limit of {name}", is_integer)
        self.gamma = QDoubleSpinBox()
        self.gamma.setRange(0.1, 10)
        self.gamma.setSingleStep(0.1)
        self.gamma.setValue(1)
        self.gamma.setPrefix("γ ")
        self.gamma.setAccessibleName(plain(f"Gamma of {name}"))
        self.automatic = tool_button("Auto", f"Auto-contrast {name}, ignoring outliers")
        self.invert = tool_button("Inv", f"Invert the colormap of {name}", checkable=True)
        self.solo = tool_button("Solo", f"Show only {name}", checkable=True)
        self.component = QComboBox()
        self.component.setAccessibleName(plain(f"Component of the complex values of {name}"))
        for part in COMPONENTS:
            self.component.addItem(plain(part))
        self.component.setVisible(kind == "c")
        self.colormap.setVisible(not rgb)
        grid = QGridLayout(self)
        grid.setContentsMargins(6, 4, 6, 4)
        grid.addWidget(self.visible, 0, 0, 1, 2)
        grid.addWidget(self.colormap, 0, 2, 1, 2)
        grid.addWidget(self.low, 1, 0, 1, 2)
        grid.addWidget(self.high, 1, 2, 1, 2)
        buttons = QHBoxLayout()
        for widget in (self.automatic, self.invert, self.solo, self.gamma):
            buttons.addWidget(widget)
        grid.addLayout(buttons, 2, 0, 1, 4)
        grid.addWidget(self.component, 3, 0, 1, 4)
        ignore_wheel_unless_focused(self.colormap, self.low, self.high, self.gamma, self.component)
        return_focus_on_enter(self.low, self.high, self.gamma)
        self.show_settings(settings)
        self.visible.toggled.connect(lambda on: self._emit_changed(visible=on))
        self.colormap.activated.connect(self._pick_colormap)
        self.low.valueChanged.connect(lambda value: self._emit_limit(0, value))
        self.high.valueChanged.connect(lambda value: self._emit_limit(1, value))
        self.gamma.valueChanged.connect(lambda value: self._emit_changed(gamma=value))
        self.invert.toggled.connect(lambda on: self._emit_changed(invert=on))
        self.solo.toggled.connect(lambda on: self._emit_changed(solo=on))
        self.automatic.clicked.connect(self.auto)
        self.component.activated.connect(self._pick_component)

    def _create_limit_box(self, name: str, is_integer: bool) -> QDoubleSpinBox:
        box = QDoubleSpinBox() if is_integer else SignificantBox()
        box.setRange(-MAX_LIMIT, MAX_LIMIT)
        if is_integer:
            box.setDecimals(0)
        box.setAccessibleName(plain(name))
        box.setStepType(QDoubleSpinBox.StepType.AdaptiveDecimalStepType)
        box.setKeyboardTracking(False)
        box.setMinimumWidth(90)
        return box

    def show_settings(self, settings: ChannelSettings) -> None:
        """Display these settings without emitting signals."""
        self._is_updating = True
        self.visible.setChecked(settings.visible)
        self.invert.setChecked(settings.invert)
        self.solo.setChecked(settings.solo)
        self.gamma.setValue(settings.gamma)
        names = [*NAMES] if settings.colormap in NAMES else [settings.colormap, *NAMES]
        if [self.colormap.itemText(i) for i in range(self.colormap.count() - 1)] != names:
            self.colormap.clear()
            for name in names:
                self.colormap.addItem(swatch(name), plain(name))
                if name in COLOR_BLIND_SAFE:
                    self.colormap.setItemData(self.colormap.count() - 1, "Color-blind safe", 3)
            self.colormap.addItem(CUSTOM)
        self.colormap.setCurrentText(settings.colormap)
        if settings.component in COMPONENTS:
            self.component.setCurrentText(settings.component)
        self._limits = settings.limits
        for number, box in enumerate((self.low, self.high)):
            # The limits cannot be edited before they have been computed.
            box.setEnabled(settings.limits is not None)
            if settings.limits is not None:
                box.setValue(settings.limits[number])
        self._is_updating = False

    def _pick_component(self) -> None:
        # Another component has another value range: the limits are computed again.
        self._emit_changed(component=self.component.currentText(), limits=None)

    def _pick_colormap(self, index: int) -> None:
        name = self.colormap.itemText(index)
        if name == CUSTOM:
            color = QColorDialog.getColor(QColor(255, 255, 255), self)
            if not color.isValid():
                return
            name = color.name()
        self._emit_changed(colormap=name)

    def _emit_limit(self, number: int, value: float) -> None:
        """Emit both limits. The limit that was not edited comes from the settings: its box may show fewer digits."""
        if self._limits is not None:
            other = self._limits[1 - number]
            self._emit_changed(limits=(min(value, other), max(value, other)))

    def _emit_changed(self, **changes: Any) -> None:
        if not self._is_updating:
            self.activated.emit()
            self.changed.emit(changes)


@lru_cache(maxsize=256)
def swatch(name: str) -> QIcon:
    """Return an icon with the colors of a colormap."""
    table = lookup(name)
    pixmap = QPixmap(32, 12)
    pixmap.fill(Qt.GlobalColor.transparent)
    painter = QPainter(pixmap)
    for x in range(32):
        red, green, blue = (int(part) for part in table[min(255, x * 8)][:3])
        painter.fillRect(x, 0, 1, 12, QColor(red, green, blue))
    painter.end()
    return QIcon(pixmap)


class ChannelsPanel(QWidget):
    """The settings of all channels, and the histogram of the selected one.

    Signals:
        changed: (channel number, dictionary of changed settings).
        auto: (channel number) the user requested automatic contrast limits.
        histogram_requested: (channel number, whether of the whole stack).
    """

    changed = pyqtSignal(int, dict)
    auto = pyqtSignal(int)
    histogram_requested = pyqtSignal(int, bool)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.rows: list[ChannelRow] = []
        self._column = QVBoxLayout()
        self._column.setContentsMargins(0, 0, 0, 0)
        self._column.addStretch(1)
        inner = QWidget()
        inner.setLayout(self._column)
        scroll = QScrollArea()
        scroll.setWidgetResizable(True)
        scroll.setFrameShape(QFrame.Shape.NoFrame)
        scroll.setWidget(inner)
        self.plot = LazyPlot("Histogram")
        self.plot.setFixedHeight(120)
        self._curve: Any = None
        self._range: Any = None
        self.logarithmic = QCheckBox("Log scale")
        self.logarithmic.toggled.connect(self._draw)
        self.volume = QCheckBox("Whole stack")
        self.volume.setToolTip("Histogram of the whole stack at this time point instead of the current slice")
        self.volume.toggled.connect(lambda on: self.request_histogram())
        self._title = PlainLabel()
        allow_narrow(self._title)
        self._histogram: Histogram | None = None
        self._settings: tuple[ChannelSettings, ...] = ()
        self.current = 0
        self._is_updating = False
        bottom = QHBoxLayout()
        bottom.addWidget(self._title, 1)
        bottom.addWidget(self.volume)
        bottom.addWidget(self.logarithmic)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(4, 4, 4, 4)
        layout.addWidget(scroll, 1)
        layout.addWidget(self.plot)
        layout.addLayout(bottom)

    def show_channels(self, channels: tuple[ChannelSettings, ...], kind: str, rgb: bool) -> None:
        """Create the controls of these channels. ``kind`` is the kind of the NumPy data type."""
        for row in self.rows:
            row.setParent(None)
            row.deleteLater()
        self.rows = []
        self._histogram = None
        for number, settings in enumerate(channels):
            row = ChannelRow(settings, kind, rgb)
            row.changed.connect(partial(self.changed.emit, number))
            row.auto.connect(partial(self.auto.emit, number))
            row.activated.connect(partial(self.select_channel, number))
            self._column.insertWidget(number, row)
            self.rows.append(row)
        self.current = -1
        self._title.setText("")
        if channels:
            self.select_channel(0)
        self._draw()

    def select_channel(self, number: int) -> None:
        """Select the channel whose histogram is displayed."""
        if number != self.current and 0 <= number < len(self.rows):
            self.current = number
            self._title.setText(plain(self.rows[number].name))
            self.histogram_requested.emit(number, self.volume.isChecked())

    def request_histogram(self) -> None:
        """Request the histogram of the selected channel again."""
        if 0 <= self.current < len(self.rows):
            self.histogram_requested.emit(self.current, self.volume.isChecked())

    def show_settings(self, channels: tuple[ChannelSettings, ...]) -> None:
        """Display settings that were changed elsewhere, without emitting signals."""
        self._settings = channels
        for row, settings in zip(self.rows, channels, strict=False):
            row.show_settings(settings)
        if 0 <= self.current < len(channels):
            limits = channels[self.current].limits
            if limits is not None and self._range is not None:
                self._is_updating = True
                self._range.setRegion(limits)
                self._is_updating = False

    def show_histogram(self, number: int, histogram: Histogram | None) -> None:
        """Draw the histogram of a channel, if it is still selected. None removes the histogram."""
        if number == self.current:
            self._histogram = histogram
            self._draw()

    def _create_plot(self) -> None:
        plot = self.plot.plot()
        plot.hideAxis("left")
        plot.setMouseEnabled(x=False, y=False)
        plot.setMenuEnabled(False)
        plot.hideButtons()
        self._curve = plot.plot([0, 1], [0], stepMode="center", fillLevel=0, brush=(130, 150, 190, 160))
        region = import_module("pyqtgraph").LinearRegionItem
        # Only the lines can be dragged: dragging the region between them would move both limits.
        self._range = region(swapMode="block", brush=(120, 150, 220, 40), movable=False)
        for line in self._range.lines:
            line.setMovable(True)
            line.setPen((150, 180, 240), width=2)
            line.setHoverPen((255, 230, 90), width=4)
            line.addMarker(
                "<|>", position=0.5, size=HANDLE_SIZE
            )  # the marker is a larger target for the mouse
        self._range.sigRegionChanged.connect(self._emit_dragged_limits)
        plot.addItem(self._range)

    def _draw(self) -> None:
        histogram = self._histogram
        if histogram is not None and not self.plot.is_created:
            self._create_plot()
            self.show_settings(self._settings)
        if not self.plot.is_created:
            return
        self._range.setVisible(histogram is not None)
        if histogram is None:
            self._curve.setData([0, 1], [0])
            return
        plot = self.plot.plot()
        self._curve.setData(histogram.edges, histogram.heights(self.logarithmic.isChecked()))
        low, high = histogram.span()
        limits = self._settings[self.current].limits if 0 <= self.current < len(self._settings) else None
        if limits is not None:
            low, high = min(low, limits[0]), max(high, limits[1])
        plot.setXRange(low, high, padding=0.02)
        plot.enableAutoRange("y")

    def _emit_dragged_limits(self) -> None:
        if not self._is_updating and 0 <= self.current < len(self.rows):
            moved = tuple(float(value) for value in self._range.getRegion())
            limits = self._settings[self.current].limits if self.current < len(self._settings) else None
            if limits is not None:
                # The limit that was not dragged keeps all its digits.
                scale = abs(limits[1] - limits[0]) * 1e-9
                moved = tuple(
                    old if abs(new - old) <= scale else new for new, old in zip(moved, limits, strict=True)
                )
            self.changed.emit(self.current, {"limits": moved})
