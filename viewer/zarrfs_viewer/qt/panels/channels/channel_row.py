"""The row of one channel: visibility, name, colours and limits; further controls while the channel is selected."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from PyQt6.QtCore import QPoint, QSignalBlocker, QSize, Qt, pyqtSignal
from PyQt6.QtGui import QColor, QIcon, QImage, QMouseEvent, QPaintEvent, QPixmap
from PyQt6.QtWidgets import (
    QCheckBox,
    QColorDialog,
    QComboBox,
    QFrame,
    QGridLayout,
    QHBoxLayout,
    QStyle,
    QStyleOptionButton,
    QStylePainter,
    QVBoxLayout,
    QWidget,
)

from zarrfs_viewer.qt.panels.channels.range_slider import RangeSlider
from zarrfs_viewer.qt.support.limit_box import LimitBox
from zarrfs_viewer.qt.support.number_box import NumberBox
from zarrfs_viewer.qt.support.plain_text import allow_narrow, button_text, plain, plain_name, tooltip
from zarrfs_viewer.qt.support.widgets import ignore_wheel_unless_focused, return_focus_on_enter, tool_button
from zarrfs_viewer.state.colormaps import CHOICES, COLOR_BLIND_SAFE, colormap_title, lookup
from zarrfs_viewer.state.view_state import ChannelSettings

__all__ = ["ChannelRow"]

MIN_NAME_WIDTH = 70
INDICATOR_MARGIN = 4
"""Pixels around the indicator of a check box that also toggle it."""
SWATCH_WIDTH, SWATCH_HEIGHT = 22, 12
COLUMNS = 32
"""The number of colours in an icon of a colour map."""
COMPONENTS = ("abs", "phase", "real", "imag")
CUSTOM, MORE, IMPORT = "Custom colour...", "More colour maps...", "Import LUT file..."


class VisibilityBox(QCheckBox):
    """A check box that is toggled only by a click on its indicator. A click on its text selects the channel.

    A text that is too long for the width ends with an ellipsis.
    """

    def hitButton(self, position: QPoint) -> bool:
        option = QStyleOptionButton()
        self.initStyleOption(option)
        style = self.style()
        if style is None:
            return super().hitButton(position)
        indicator = style.subElementRect(QStyle.SubElement.SE_CheckBoxIndicator, option, self)
        margin = INDICATOR_MARGIN
        return indicator.adjusted(-margin, -margin, margin, margin).contains(position)

    def paintEvent(self, event: QPaintEvent | None) -> None:
        option = QStyleOptionButton()
        self.initStyleOption(option)
        painter = QStylePainter(self)
        style = self.style()
        if style is not None:
            contents = style.subElementRect(QStyle.SubElement.SE_CheckBoxContents, option, self)
            option.text = self.fontMetrics().elidedText(
                option.text, Qt.TextElideMode.ElideRight, contents.width(), Qt.TextFlag.TextShowMnemonic.value
            )
        painter.drawControl(QStyle.ControlElement.CE_CheckBox, option)


class ChannelRow(QFrame):
    """The controls of one channel.

    Signals:
        changed: (settings) a dictionary of the settings that the user changed.
        auto: the user requested automatic contrast limits.
        activated: the user changed this channel.
        more_requested: the user requested a list of more colour maps.
        import_requested: the user requested to import a lookup table.
    """

    changed = pyqtSignal(dict)
    auto = pyqtSignal()
    more_requested = pyqtSignal()
    import_requested = pyqtSignal()
    activated = pyqtSignal()

    def __init__(
        self, settings: ChannelSettings, kind: str, rgb: bool = False, parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        is_integer = kind in "iub"
        self._settings: ChannelSettings | None = None
        self._limits: tuple[float, float] | None = None
        self._color_name = settings.colormap
        self._extra: tuple[str, ...] = ()
        self._names: list[str] = []
        self.setFrameShape(QFrame.Shape.StyledPanel)
        label = settings.label or f"Channel {settings.index}"
        self.name = name = plain_name(label)
        self.visible = VisibilityBox(button_text(label))
        self.visible.setToolTip(tooltip(label))
        allow_narrow(self.visible, MIN_NAME_WIDTH)
        self.visible.setAccessibleName(plain(f"Show {name}"))
        self.colormap = QComboBox()
        self.colormap.setAccessibleName(plain(f"Colour map of {name}"))
        allow_narrow(self.colormap, MIN_NAME_WIDTH)
        self.low = self._create_limit_box(f"Minimum contrast limit of {name}", is_integer)
        self.high = self._create_limit_box(f"Maximum contrast limit of {name}", is_integer)
        self.gamma = NumberBox()
        self.gamma.setRange(0.1, 10)
        self.gamma.setSingleStep(0.1)
        self.gamma.setValue(1)
        self.gamma.setPrefix("γ ")
        self.gamma.setAccessibleName(plain(f"Gamma of {name}"))
        # The value of "1" would replace the text before "1.5" is complete.
        self.gamma.setKeyboardTracking(False)
        self.automatic = tool_button("Auto", f"Auto-contrast {name}, ignoring outliers")
        self.invert = tool_button("Inv", f"Invert the colour map of {name}", checkable=True)
        self.solo = tool_button("Solo", f"Show only {name}", checkable=True)
        self.component = QComboBox()
        self.component.setAccessibleName(plain(f"Component of the complex values of {name}"))
        for part in COMPONENTS:
            self.component.addItem(plain(part))
        self.slider = RangeSlider(is_integer)
        self.slider.setAccessibleName(plain(f"Contrast limits of {name}"))
        self.color = tool_button("", f"Custom colour of {name}")
        self.color.setAutoRaise(True)
        self.color.setIconSize(QSize(SWATCH_WIDTH, SWATCH_HEIGHT))
        self.details = QWidget(self)
        self._arrange()
        # Not before: a widget that is shown without a parent becomes a window of its own for a moment.
        self.component.setVisible(kind == "c")
        for widget in (self.colormap, self.slider, self.color):
            widget.setVisible(not rgb)
        ignore_wheel_unless_focused(self.colormap, self.low, self.high, self.gamma, self.component)
        return_focus_on_enter(self.low, self.high, self.gamma)
        self.show_settings(settings)
        self.visible.toggled.connect(self._emit_visibility)
        self.colormap.activated.connect(self._pick_colormap)
        self.low.changed.connect(lambda value: self._emit_limit(0, value))
        self.high.changed.connect(lambda value: self._emit_limit(1, value))
        self.gamma.valueChanged.connect(lambda value: self._emit_changed(gamma=value))
        self.invert.toggled.connect(lambda on: self._emit_changed(invert=on))
        self.solo.toggled.connect(lambda on: self._emit_changed(solo=on))
        self.automatic.clicked.connect(self.auto)
        self.color.clicked.connect(self._pick_color)
        self.slider.moved.connect(self._emit_limit)
        self.slider.pressed.connect(self.activated)
        self.component.activated.connect(self._pick_component)

    def _arrange(self) -> None:
        """Place the widgets: one row, and below it the details."""
        header = QHBoxLayout()
        header.setSpacing(4)
        header.addWidget(self.visible, 2)
        header.addWidget(self.color)
        header.addWidget(self.slider, 3)
        grid = QGridLayout(self.details)
        grid.setContentsMargins(0, 0, 0, 0)
        grid.addWidget(self.low, 0, 0)
        grid.addWidget(self.high, 0, 1)
        grid.addWidget(self.colormap, 1, 0)
        grid.addWidget(self.gamma, 1, 1)
        for column in (0, 1):
            grid.setColumnStretch(column, 1)
        buttons = QHBoxLayout()
        for widget in (self.automatic, self.invert, self.solo):
            buttons.addWidget(widget)
        buttons.addStretch(1)
        grid.addLayout(buttons, 2, 0, 1, 2)
        grid.addWidget(self.component, 3, 0, 1, 2)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(6, 3, 6, 3)
        layout.setSpacing(4)
        layout.addLayout(header)
        layout.addWidget(self.details)

    def focus_order(self) -> tuple[QWidget, ...]:
        """Return the widgets in the order of the Tab key: the details follow the first row."""
        fields = (self.low, self.high, self.colormap, self.gamma, self.automatic, self.invert, self.solo)
        return (self.visible, self.color, *fields, self.component)

    def set_selected(self, on: bool) -> None:
        """Show the details of the selected channel."""
        self.details.setVisible(on)

    def mousePressEvent(self, event: QMouseEvent | None) -> None:
        self.activated.emit()
        super().mousePressEvent(event)

    def _create_limit_box(self, name: str, is_integer: bool) -> LimitBox:
        box = LimitBox(is_integer)
        box.setAccessibleName(plain(name))
        box.setMinimumWidth(70)
        return box

    def show_settings(self, settings: ChannelSettings) -> None:
        """Display these settings without emitting signals."""
        if settings is self._settings:  # another slice: the row is not drawn again
            return
        self._settings = settings
        with QSignalBlocker(self):
            self.visible.setChecked(settings.visible)
            self.invert.setChecked(settings.invert)
            self.solo.setChecked(settings.solo)
            self.gamma.setValue(settings.gamma)
            self._fill_colormaps(settings.colormap)
            if settings.component in COMPONENTS:
                self.component.setCurrentText(settings.component)
            self._limits = settings.limits
            self._color_name = settings.colormap
            self.color.setIcon(swatch(settings.colormap))
            self.slider.show_limits(
                settings.limits, settings.limits_range, settings.colormap, settings.invert
            )
            for number, box in enumerate((self.low, self.high)):
                # The limits cannot be edited before they have been computed.
                box.setEnabled(settings.limits is not None)
                if settings.limits is not None:
                    box.zero_step = abs(settings.limits[1] - settings.limits[0]) / 100 or 1
                    box.setValue(settings.limits[number])

    def show_extra_colormaps(self, names: tuple[str, ...]) -> None:
        """Offer these colour maps after the built-in ones."""
        if names != self._extra:
            self._extra = names
            self._fill_colormaps(self._color_name)

    def _fill_colormaps(self, current: str) -> None:
        """List the colour maps, with the current one first if it is not one of them."""
        # The same colour can be written in two ways: #00FF00 and #00ff00.
        names = [current if name == current.lower() else name for name in (*CHOICES, *self._extra)]
        names = names if current in names else [current, *names]
        if names != self._names:
            self._names = names
            self.colormap.clear()
            for name in names:
                self.colormap.addItem(swatch(name), plain_name(colormap_title(name)))
                if name in COLOR_BLIND_SAFE:
                    self.colormap.setItemData(self.colormap.count() - 1, "Colour-blind safe", 3)
            for entry in (MORE, IMPORT, CUSTOM):
                self.colormap.addItem(plain(entry))
        self.colormap.setCurrentIndex(names.index(current))

    def _pick_component(self) -> None:
        # Another component has another value range: the limits are computed again.
        self._emit_changed(component=self.component.currentText(), limits=None)

    def _pick_colormap(self, index: int) -> None:
        if index < len(self._names):
            self._emit_changed(colormap=self._names[index])
            return
        entry = self.colormap.itemText(index)
        self.colormap.setCurrentIndex(self._names.index(self._color_name))
        if entry == CUSTOM:
            self._pick_color()
        elif entry == MORE:
            self.more_requested.emit()
        else:
            self.import_requested.emit()

    def _pick_color(self) -> None:
        """Ask for a colour, beginning with the current one."""
        self.activated.emit()
        red, green, blue = (int(part) for part in lookup(self._color_name)[-1][:3])
        color = QColorDialog.getColor(QColor(red, green, blue), self)
        if color.isValid():
            self._emit_changed(colormap=color.name())

    def _emit_limit(self, number: int, value: float) -> None:
        """Emit both limits. The limit that was not edited comes from the settings: its box may show fewer digits."""
        if self._limits is not None:
            other = self._limits[1 - number]
            self._emit_changed(limits=(min(value, other), max(value, other)))

    def _emit_visibility(self, on: bool) -> None:
        """Emit the visibility. The channel is not selected: the rows would move away from below the pointer."""
        self.changed.emit({"visible": on})

    def _emit_changed(self, **changes: Any) -> None:
        self.activated.emit()
        self.changed.emit(changes)


@lru_cache(maxsize=256)
def swatch(name: str) -> QIcon:
    """Return an icon with the colours of a colour map."""
    row = np.ascontiguousarray(lookup(name)[:: 256 // COLUMNS])
    data: Any = row.data
    # One image instead of a rectangle for each colour: a list of colour maps is filled in one step of the event loop.
    picture = QImage(data, COLUMNS, 1, row.nbytes, QImage.Format.Format_RGB888)
    pixmap = QPixmap.fromImage(picture.scaled(COLUMNS, 12))
    return QIcon(pixmap)
