"""A slider, a spin box and a play button for every axis that is not displayed, and the slab projection."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import chain

from PyQt6.QtCore import QSignalBlocker, Qt, QTimer, pyqtSignal
from PyQt6.QtWidgets import QComboBox, QGridLayout, QSlider, QSpinBox, QToolButton, QVBoxLayout, QWidget

from zarrfs_viewer.analysis.readout import format_coordinate, short_unit
from zarrfs_viewer.images.image import Image
from zarrfs_viewer.qt.support.fixed_size_label import FixedSizeLabel
from zarrfs_viewer.qt.support.flow_layout import FlowLayout
from zarrfs_viewer.qt.support.plain_text import PlainLabel, plain, plain_name, tooltip
from zarrfs_viewer.qt.support.widgets import ignore_wheel_unless_focused, return_focus_on_enter, tool_button
from zarrfs_viewer.state.view_state import DisplaySettings, Projection

__all__ = ["DimensionsPanel"]

DEFAULT_RATE = 12
"""Slices per second of playback. Playback waits for each slice to be displayed."""
MAX_RATE = 60
SLAB_MODES = (("Single slice", None), ("Maximum of slab", "max"), ("Mean of slab", "mean"))
REPEATS = (("Loop", "loop"), ("Bounce", "bounce"), ("Once", "once"))
DEFAULT_THICKNESS = 10
MAX_LABEL = 40
MIN_SLIDER_WIDTH = 40
SPACING = 6
"""Pixels between the widgets of the slab."""
LABEL_WIDTH = 80
"""The initial width in pixels. Longer texts widen the label for good, so that the slider does not move again."""
MAX_AXIS = 20
"""The maximum number of characters of the name of an axis beside its slider. The tooltip contains the whole name."""


class DimensionsPanel(QWidget):
    """The position of the displayed slice along the other axes, and the slab projection.

    Attributes:
        is_ready_for_next: called before each step of playback. While it returns False, playback waits, so that every
            slice is displayed.

    Signals:
        moved: (axis, data coordinate) the user moved a slider.
        projected: (Projection or None) the user changed the projection.
    """

    moved = pyqtSignal(int, float)
    projected = pyqtSignal(object)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._sliders: dict[int, QSlider] = {}
        self._boxes: dict[int, QSpinBox] = {}
        self._labels: dict[int, FixedSizeLabel] = {}
        self._buttons: dict[int, QToolButton] = {}
        self._image: Image | None = None
        self._playing: int | None = None
        self.is_ready_for_next: Callable[[], bool] = lambda: True
        self._timer = QTimer(self)
        self._level = 0
        self._direction = 1
        self._timer.timeout.connect(self._play_next)
        self._grid = QGridLayout()
        self._grid.setColumnStretch(1, 1)
        self._create_slab()
        layout = QVBoxLayout(self)
        layout.setContentsMargins(8, 2, 8, 6)
        layout.setSpacing(2)
        layout.addLayout(self._grid)
        layout.addWidget(self.slab)

    def _create_slab(self) -> None:
        self.slab = QWidget()
        self.mode = QComboBox()
        self.mode.setAccessibleName("Slab projection")
        for title, mode in SLAB_MODES:
            self.mode.addItem(plain(title), mode)
        self.axis = QComboBox()
        self.axis.setAccessibleName("Axis of the slab")
        self.thickness = QSpinBox()
        self.thickness.setAccessibleName("Thickness of the slab in slices")
        self.thickness.setRange(1, 1_000_000)
        self.thickness.setValue(DEFAULT_THICKNESS)
        self.thickness.setSuffix(" slices")
        self.thickness.setKeyboardTracking(False)
        self.physical = PlainLabel()
        ignore_wheel_unless_focused(self.mode, self.axis, self.thickness)
        return_focus_on_enter(self.thickness)
        row = FlowLayout(self.slab, SPACING)
        for widget in (PlainLabel("Show"), self.mode, self.axis, self.thickness, self.physical):
            row.addWidget(widget)
        self.rate = QSpinBox()
        self.rate.setAccessibleName("Slices per second of playback")
        self.rate.setToolTip("Slices per second of playback")
        self.rate.setRange(1, MAX_RATE)
        self.rate.setSuffix(" /s")
        self.rate.setKeyboardTracking(False)
        self.rate.valueChanged.connect(self._set_rate)
        self.rate.setValue(DEFAULT_RATE)
        self.repeat = QComboBox()
        self.repeat.setAccessibleName("What playback does after the last slice")
        self.repeat.setToolTip("What playback does after the last slice")
        for title, repeat in REPEATS:
            self.repeat.addItem(plain(title), repeat)
        ignore_wheel_unless_focused(self.rate, self.repeat)
        return_focus_on_enter(self.rate)
        row.addWidget(self.rate)
        row.addWidget(self.repeat)
        self.mode.activated.connect(self._emit_projection)
        self.axis.activated.connect(self._emit_projection)
        self.thickness.valueChanged.connect(self._emit_projection)
        self.show_slab(None)

    # -- display -----------------------------------------------------------------------------------------------

    def show_image(self, image: Image | None, settings: DisplaySettings | None) -> None:
        """Create a row for each axis that is not displayed and has more than one element."""
        self.stop()
        while self._grid.count():
            entry = self._grid.takeAt(0)
            widget = entry.widget() if entry is not None else None
            if widget is not None:
                widget.setParent(None)
                widget.deleteLater()
        for widgets in (self._sliders, self._boxes, self._labels, self._buttons):
            widgets.clear()
        self._image = image
        self._level = 0
        if image is not None and settings is not None:
            for axis in image.slider_axes:
                if axis not in settings.displayed and image.shape[axis] > 1:
                    self._add_axis(image, axis, round(settings.position[axis]))
        self.axis.clear()
        for axis in self._sliders:
            self.axis.addItem("" if image is None else plain_name(f"along {image.axes[axis].name}"), axis)
        if self.axis.count():
            # Most stacks have the axes t, c, z, y, x: the last slider is z.
            self.axis.setCurrentIndex(self.axis.count() - 1)
        self.slab.setVisible(bool(self._sliders))
        if settings is not None:
            self.show_slab(settings.projection)

    def focus_order(self) -> tuple[QWidget, ...]:
        """Return the widgets in the order of the Tab key: the rows from above."""
        rows = [(slider, self._boxes[axis], self._buttons[axis]) for axis, slider in self._sliders.items()]
        return (*chain(*rows), self.mode, self.axis, self.thickness, self.rate, self.repeat)

    def create_first_row(self) -> None:
        """Create and delete a row: the first row takes PyQt several times as long as the next ones."""
        self._add_row(0, "", 1, 0)
        self.show_image(None, None)

    def _add_axis(self, image: Image, axis: int, value: int) -> None:
        self._add_row(axis, image.axes[axis].name, image.shape[axis] - 1, value)
        self._show_physical_position(axis, value)

    def _add_row(self, axis: int, name: str, last: int, value: int) -> None:
        row = len(self._sliders)
        play = tool_button("▶", f"Play along {name}", checkable=True)
        play.setAutoRaise(True)
        play.toggled.connect(partial(self._toggle_playback, axis))
        slider = QSlider(Qt.Orientation.Horizontal)
        slider.setAccessibleName(plain(f"Slice along {name}"))
        slider.setRange(0, last)
        slider.setMinimumWidth(MIN_SLIDER_WIDTH)
        slider.setPageStep(max(1, last // 10))
        box = QSpinBox()
        box.setAccessibleName(plain(f"Slice number along {name}"))
        box.setRange(0, last)
        box.setSuffix(plain(f" / {last}"))
        box.setKeyboardTracking(False)
        ignore_wheel_unless_focused(box)
        return_focus_on_enter(box)
        label = FixedSizeLabel(LABEL_WIDTH)
        slider.setValue(value)
        box.setValue(value)
        slider.valueChanged.connect(partial(self.set_position, axis))
        box.valueChanged.connect(partial(self.set_position, axis))
        title = PlainLabel(plain(name, MAX_AXIS))
        title.setToolTip(tooltip(name))
        title.setMinimumWidth(20)
        for column, widget in enumerate((title, slider, box, label, play)):
            self._grid.addWidget(widget, row, column)
        self._sliders[axis], self._boxes[axis] = slider, box
        self._labels[axis], self._buttons[axis] = label, play

    def show_position(self, position: Sequence[float]) -> None:
        """Display a position."""
        for axis, slider in self._sliders.items():
            value = round(position[axis])
            if value == slider.value() == self._boxes[axis].value():
                continue
            for widget in (slider, self._boxes[axis]):
                with QSignalBlocker(widget):
                    widget.setValue(value)
            self._show_physical_position(axis, value)

    def show_slab(self, projection: Projection | None) -> None:
        is_projected = projection is not None
        self.mode.setCurrentIndex(self.mode.findData(projection.mode) if projection is not None else 0)
        if projection is not None:
            index = self.axis.findData(projection.axis)
            if index >= 0:
                self.axis.setCurrentIndex(index)
            with QSignalBlocker(self.thickness):
                self.thickness.setValue(round(projection.thickness))
        self.axis.setVisible(is_projected and self.axis.count() > 1)
        self.thickness.setVisible(is_projected)
        self.physical.setVisible(is_projected)
        image = self._image
        if image is not None and projection is not None:
            unit = image.axes[projection.axis].unit
            size = abs(image.levels[0].scale[projection.axis]) * projection.thickness
            self.physical.setText(plain_name(f"{size:.4g} {short_unit(unit)}") if unit else "")

    # -- user actions ------------------------------------------------------------------------------------------

    def _emit_projection(self) -> None:
        axis = self.axis.currentData()
        if axis is None:
            return
        mode = self.mode.currentData()
        self.projected.emit(None if mode is None else Projection(axis, mode, float(self.thickness.value())))

    def _show_physical_position(self, axis: int, value: int) -> None:
        image = self._image
        if image is not None:
            unit = image.axes[axis].unit
            position = format_coordinate(image.to_physical(axis, value), image.levels[0].scale[axis])
            text = f"{position} {short_unit(unit)}" if unit else ""
            step = self.step_size(axis)
            if step > 1:
                text = f"{text} (step {step})".strip()
            label = self._labels[axis]
            label.setText(plain(text, MAX_LABEL))
            label.widen_for(label.text())
            reason = (
                f"Level {self._level} has one slice for {step} slices of level 0. Zoom in to see all slices."
            )
            label.setToolTip(tooltip(reason if step > 1 else ""))

    @property
    def axes(self) -> tuple[int, ...]:
        """The axes that have a slider."""
        return tuple(self._sliders)

    def set_position(self, axis: int, value: int) -> None:
        """Emit ``moved`` with the nearest slice that exists."""
        slider = self._sliders.get(axis)
        if slider is not None:
            self.moved.emit(axis, float(min(max(value, slider.minimum()), slider.maximum())))

    def show_level(self, level: int) -> None:
        """Use the slices of the displayed pyramid level for steps, so that each step changes the picture."""
        if level != self._level:
            self._level = level
            for axis, slider in self._sliders.items():
                self._show_physical_position(axis, slider.value())
                slider.setSingleStep(self.step_size(axis))

    def step_size(self, axis: int) -> int:
        """Return the number of level-0 slices between two slices of the displayed level."""
        image = self._image
        if image is None or not 0 <= self._level < len(image.levels):
            return 1
        return max(1, round(image.downsampling(self._level, axis)))

    @property
    def last_axis(self) -> int | None:
        """The axis of the last slider, which is z in most stacks; None without sliders."""
        return next(reversed(self._sliders), None)

    def step(self, count: int) -> None:
        """Move the last slider by ``count`` slices of the displayed level."""
        if self.last_axis is not None:
            self.step_along(self.last_axis, count)

    def step_time(self, count: int) -> None:
        """Move along the time axis; without one, along the first axis with a slider."""
        image = self._image
        if image is not None and self._sliders:
            times = [axis for axis in self._sliders if image.axes[axis].type == "time"]
            self.step_along((times or list(self._sliders))[0], count)

    def step_along(self, axis: int, count: int) -> None:
        """Move along an axis by ``count`` slices of the displayed level."""
        image, slider = self._image, self._sliders[axis]
        if image is None or self.step_size(axis) == 1:
            self.set_position(axis, slider.value() + count)
            return
        level = self._level
        last = image.levels[level].shape[axis] - 1
        index = min(max(image.level_index(level, axis, slider.value()) + count, 0), last)
        self.set_position(axis, round(image.from_level(level, axis, index)))

    def next_mode(self) -> None:
        """Select the next mode: single slice, maximum of slab, mean of slab."""
        if self._sliders:
            self.mode.setCurrentIndex((self.mode.currentIndex() + 1) % self.mode.count())
            self._emit_projection()

    # -- playback ----------------------------------------------------------------------------------------------

    def play(self) -> None:
        """Start or stop playback along the last axis."""
        for button in list(self._buttons.values())[-1:]:
            button.toggle()

    def _toggle_playback(self, axis: int, playing: bool) -> None:
        for other, button in self._buttons.items():
            button.setText("▶")
            if other != axis and playing:
                button.setChecked(False)
        if playing:
            self._playing = axis
            self._direction = 1
            self._buttons[axis].setText("■")
            self._timer.start()
        elif self._playing == axis:
            self._playing = None
            self._timer.stop()

    def stop(self) -> None:
        """Stop playback."""
        self._timer.stop()
        self._playing = None

    def _set_rate(self, rate: int) -> None:
        self._timer.setInterval(round(1000 / rate))

    def _play_next(self) -> None:
        axis = self._playing
        slider = self._sliders.get(axis if axis is not None else -1)
        if axis is None or slider is None or not self.is_ready_for_next():
            return
        before = slider.value()
        self.step_along(axis, self._direction)
        if slider.value() != before:
            return
        # The end has been reached.
        repeat = self.repeat.currentData()
        if repeat == "loop":
            self.set_position(axis, 0 if self._direction > 0 else slider.maximum())
        elif repeat == "bounce":
            self._direction = -self._direction
            self.step_along(axis, self._direction)
        else:
            self._buttons[axis].setChecked(False)
