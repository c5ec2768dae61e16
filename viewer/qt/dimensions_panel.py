"""A slider, a number and a play button for every axis that is not displayed."""

from __future__ import annotations

from functools import partial

from PyQt6.QtCore import Qt, QTimer, pyqtSignal
from PyQt6.QtWidgets import QGridLayout, QLabel, QSlider, QSpinBox, QToolButton, QWidget

from viewer.image import Image
from viewer.qt.widgets import tool_button
from viewer.readout import short_unit

__all__ = ["DimensionsPanel"]

PLAY_MILLISECONDS = 80


class DimensionsPanel(QWidget):
    """Where the slice is.

    Signals:
        moved: (axis, data coordinate) the user wants to see.
    """

    moved = pyqtSignal(int, float)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._grid = QGridLayout(self)
        self._grid.setContentsMargins(8, 2, 8, 6)
        self._grid.setColumnStretch(1, 1)
        self._sliders: dict[int, QSlider] = {}
        self._labels: dict[int, QLabel] = {}
        self._buttons: dict[int, QToolButton] = {}
        self._image: Image | None = None
        self._playing: int | None = None
        self._timer = QTimer(self)
        self._timer.setInterval(PLAY_MILLISECONDS)
        self._timer.timeout.connect(self._play_on)

    def show_image(
        self, image: Image | None, displayed: tuple[int, int], position: tuple[float, ...]
    ) -> None:
        """Make a row for each axis that is left."""
        self.stop()
        while self._grid.count():
            entry = self._grid.takeAt(0)
            widget = entry.widget() if entry is not None else None
            if widget is not None:
                widget.setParent(None)
                widget.deleteLater()
        self._sliders.clear()
        self._labels.clear()
        self._buttons.clear()
        self._image = image
        if image is None:
            return
        for axis in image.slider_axes:
            if axis not in displayed and image.shape[axis] > 1:
                self._add(image, axis, round(position[axis]))

    def _add(self, image: Image, axis: int, value: int) -> None:
        row = len(self._sliders)
        name = image.axes[axis].name
        last = image.shape[axis] - 1
        play = tool_button("▶", f"Play along {name}", checkable=True)
        play.setAutoRaise(True)
        play.toggled.connect(partial(self._toggle, axis))
        slider = QSlider(Qt.Orientation.Horizontal)
        slider.setAccessibleName(f"Slice along {name}")
        slider.setRange(0, last)
        slider.setPageStep(max(1, last // 10))
        box = QSpinBox()
        box.setAccessibleName(f"Slice number along {name}")
        box.setRange(0, last)
        box.setSuffix(f" / {last}")
        box.setKeyboardTracking(False)
        label = QLabel()
        label.setMinimumWidth(80)
        slider.setValue(value)
        box.setValue(value)
        slider.valueChanged.connect(box.setValue)
        box.valueChanged.connect(slider.setValue)
        slider.valueChanged.connect(partial(self._moved, axis))
        title = QLabel(name)
        title.setMinimumWidth(20)
        for column, widget in enumerate((title, slider, box, label, play)):
            self._grid.addWidget(widget, row, column)
        self._sliders[axis], self._labels[axis], self._buttons[axis] = slider, label, play
        self._tell(axis, value)

    def _moved(self, axis: int, value: int) -> None:
        self._tell(axis, value)
        self.moved.emit(axis, float(value))

    def _tell(self, axis: int, value: int) -> None:
        image = self._image
        if image is not None:
            unit = image.axes[axis].unit
            text = f"{image.to_physical(axis, value):.4g} {short_unit(unit)}" if unit else ""
            self._labels[axis].setText(text)

    @property
    def axes(self) -> tuple[int, ...]:
        """The axes that have a slider."""
        return tuple(self._sliders)

    def set_position(self, axis: int, value: int) -> None:
        """Move a slider, as the user would."""
        if axis in self._sliders:
            self._sliders[axis].setValue(value)

    def step(self, count: int) -> None:
        """Move the first slider by so many slices."""
        for slider in list(self._sliders.values())[:1]:
            slider.setValue(slider.value() + count)

    # -- playing -----------------------------------------------------------------------------------------------

    def _toggle(self, axis: int, playing: bool) -> None:
        for other, button in self._buttons.items():
            button.setText("▶")
            if other != axis and playing:
                button.setChecked(False)
        if playing:
            self._playing = axis
            self._buttons[axis].setText("⏸")
            self._timer.start()
        elif self._playing == axis:
            self._playing = None
            self._timer.stop()

    def stop(self) -> None:
        """Stop playing."""
        self._timer.stop()
        self._playing = None

    def _play_on(self) -> None:
        slider = self._sliders.get(self._playing if self._playing is not None else -1)
        if slider is not None:
            slider.setValue(0 if slider.value() == slider.maximum() else slider.value() + 1)
