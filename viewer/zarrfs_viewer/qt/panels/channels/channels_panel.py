"""The channels: one row each, a filter for many channels, and the histogram of the selected channel."""

from __future__ import annotations

from functools import partial
from itertools import chain

from PyQt6.QtCore import pyqtSignal
from PyQt6.QtWidgets import QCheckBox, QFrame, QHBoxLayout, QPushButton, QScrollArea, QVBoxLayout, QWidget

from zarrfs_viewer.qt.panels.channels.channel_row import ChannelRow
from zarrfs_viewer.qt.panels.channels.histogram_plot import HistogramPlot
from zarrfs_viewer.qt.support.fixed_size_label import FixedSizeLabel
from zarrfs_viewer.qt.support.plain_text import PlainLabel, button_text, plain, plain_lines, tooltip
from zarrfs_viewer.qt.support.widgets import search_box, set_tab_order
from zarrfs_viewer.rendering.contrast import Histogram
from zarrfs_viewer.state.view_state import ChannelSettings

__all__ = ["ChannelsPanel"]

MIN_FILTERED_CHANNELS = 5
"""The minimum number of channels for a filter and buttons that show all or none of them."""


class ChannelsPanel(QWidget):
    """The settings of all channels, and the histogram of the selected one.

    Signals:
        changed: (channel number, dictionary of changed settings).
        visibility_changed: (channel numbers, whether visible) the user shows or hides several channels at once.
        auto: (channel number) the user requested automatic contrast limits.
        histogram_requested: (channel number, whether of the whole stack).
        more_requested: (channel number) the user requested a list of more colour maps.
        import_requested: (channel number) the user requested to import a lookup table.
    """

    changed = pyqtSignal(int, dict)
    visibility_changed = pyqtSignal(list, bool)
    auto = pyqtSignal(int)
    histogram_requested = pyqtSignal(int, bool)
    more_requested = pyqtSignal(int)
    import_requested = pyqtSignal(int)

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
        self.plot = HistogramPlot()
        self.plot.moved.connect(self._move_limit)
        self.logarithmic = QCheckBox("Log scale")
        self.logarithmic.toggled.connect(self._draw)
        self.volume = QCheckBox("Whole stack")
        self.volume.setToolTip("Histogram of the whole stack at this time point instead of the current slice")
        self.volume.toggled.connect(lambda on: self.request_histogram())
        self._title = FixedSizeLabel()
        self._unit: str | None = None
        self._histogram: Histogram | None = None
        self._settings: tuple[ChannelSettings, ...] = ()
        self.current = 0
        self._extra_colormaps: tuple[str, ...] = ()
        bottom = QHBoxLayout()
        bottom.addWidget(self._title, 1)
        bottom.addWidget(self.volume)
        bottom.addWidget(self.logarithmic)
        self.filter = search_box("Find channel")
        self.filter.textChanged.connect(self._filter)
        self.show_all, self.show_none = QPushButton(button_text("All")), QPushButton(button_text("None"))
        self.show_all.setToolTip("Show all channels that the filter shows")
        self.show_none.setToolTip("Hide all channels that the filter shows")
        self.show_all.clicked.connect(lambda: self._set_all_visible(True))
        self.show_none.clicked.connect(lambda: self._set_all_visible(False))
        self.tools = QWidget()
        tools = QHBoxLayout(self.tools)
        tools.setContentsMargins(0, 0, 0, 0)
        for widget in (self.filter, self.show_all, self.show_none):
            tools.addWidget(widget)
        self.hint = PlainLabel(wrap=True)
        self.hint.hide()
        layout = QVBoxLayout(self)
        layout.setContentsMargins(4, 4, 4, 4)
        layout.addWidget(self.hint)
        layout.addWidget(self.tools)
        layout.addWidget(scroll, 1)
        layout.addWidget(self.plot)
        layout.addLayout(bottom)

    def show_channels(
        self, channels: tuple[ChannelSettings, ...], kind: str, rgb: bool, unit: str | None = None
    ) -> None:
        """Create the controls of these channels. ``kind`` is the kind of the NumPy data type, ``unit`` that of the
        values.
        """
        self._unit = unit
        for row in self.rows:
            row.setParent(None)
            row.deleteLater()
        self.rows = []
        self._histogram = None
        self.plot.is_integer = kind in "iub"
        for number, settings in enumerate(channels):
            row = ChannelRow(settings, kind, rgb)
            row.changed.connect(partial(self.changed.emit, number))
            row.auto.connect(partial(self.auto.emit, number))
            row.activated.connect(partial(self.select_channel, number))
            row.more_requested.connect(partial(self.more_requested.emit, number))
            row.import_requested.connect(partial(self.import_requested.emit, number))
            row.show_extra_colormaps(self._extra_colormaps)
            row.set_selected(False)
            self._column.insertWidget(number, row)
            self.rows.append(row)
        # The rows are newer than the widgets below them.
        fields = chain.from_iterable(row.focus_order() for row in self.rows)
        set_tab_order(*fields, self.volume, self.logarithmic)
        self.current = -1
        self.filter.clear()
        self.tools.setVisible(len(channels) >= MIN_FILTERED_CHANNELS)
        self._title.setText("")
        if channels:
            self.select_channel(0)
        self._draw()

    def show_hint(self, text: str) -> None:
        """Show why there are no channels, in place of the histogram. An empty text shows the histogram."""
        self.hint.setText(plain_lines(text))
        self.hint.setVisible(bool(text))
        for widget in (self.plot, self._title, self.volume, self.logarithmic):
            widget.setVisible(not text)

    def select_channel(self, number: int) -> None:
        """Select the channel whose details and histogram are displayed."""
        if number != self.current and 0 <= number < len(self.rows):
            self.current = number
            for other, row in enumerate(self.rows):
                row.set_selected(other == number)
            self._show_title()
            self.histogram_requested.emit(number, self.volume.isChecked())

    def show_extra_colormaps(self, names: tuple[str, ...]) -> None:
        """Offer these colour maps for all channels, after the built-in ones."""
        self._extra_colormaps = names
        for row in self.rows:
            row.show_extra_colormaps(names)

    def _filter(self, text: str) -> None:
        for row in self.rows:
            row.setVisible(text.casefold() in row.name.casefold())

    def _set_all_visible(self, on: bool) -> None:
        numbers = [number for number, row in enumerate(self.rows) if not row.isHidden()]
        self.visibility_changed.emit(numbers, on)

    def request_histogram(self) -> None:
        """Request the histogram of the selected channel again."""
        if 0 <= self.current < len(self.rows):
            self.histogram_requested.emit(self.current, self.volume.isChecked())

    def show_settings(self, channels: tuple[ChannelSettings, ...]) -> None:
        """Display settings that were changed elsewhere, without emitting signals."""
        self._settings = channels
        for row, settings in zip(self.rows, channels, strict=False):
            row.show_settings(settings)
        self.plot.show_limits(self._limits())

    def show_histogram(self, number: int, histogram: Histogram | None) -> None:
        """Draw the histogram of a channel, if it is still selected. None removes the histogram."""
        if number == self.current:
            self._histogram = histogram
            self._show_title()
            self._draw()

    def _show_title(self) -> None:
        """Show the name of the selected channel, and what its histogram lacks."""
        name, found = self.rows[self.current].name, self._histogram
        title = f"{name} [{self._unit}]" if self._unit else name
        if found is not None and found.unreadable:
            total = int(found.counts.sum()) + found.nans + found.unreadable
            title = f"{100 * found.unreadable / total:.2g} % unreadable: {title}"
        self._title.setText(plain(title))
        self._title.setToolTip(tooltip(title))

    def _limits(self) -> tuple[float, float] | None:
        """Return the limits of the selected channel, or None."""
        return self._settings[self.current].limits if 0 <= self.current < len(self._settings) else None

    def _draw(self) -> None:
        self.plot.show_histogram(self._histogram, self._limits(), self.logarithmic.isChecked())

    def _move_limit(self, number: int, value: float) -> None:
        limits = self._limits()
        if limits is not None:
            moved = (value, limits[1]) if number == 0 else (limits[0], value)
            self.changed.emit(self.current, {"limits": moved})
