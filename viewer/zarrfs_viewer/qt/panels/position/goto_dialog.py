"""The dialog to go to a coordinate, in pixels of level 0 or in physical units."""

from __future__ import annotations

from PyQt6.QtWidgets import QComboBox, QDialog, QDialogButtonBox, QDoubleSpinBox, QFormLayout, QWidget

from zarrfs_viewer.analysis.readout import short_unit
from zarrfs_viewer.images.image import Image
from zarrfs_viewer.qt.support.number_box import NumberBox
from zarrfs_viewer.qt.support.plain_text import PlainLabel, plain, plain_name
from zarrfs_viewer.state.view_state import DisplaySettings

__all__ = ["GoToDialog"]

PIXEL_DECIMALS, PHYSICAL_DECIMALS = 1, 6

MIN_WIDTH = 300
"""The minimum width in pixels. A narrower dialog would truncate its title."""


class GoToDialog(QDialog):
    """A number for each axis that can be displayed or has a slider. Values outside of the image are not accepted."""

    def __init__(
        self,
        image: Image,
        settings: DisplaySettings,
        center: tuple[float, float],
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self.setWindowTitle("Go to coordinate")
        self.setMinimumWidth(MIN_WIDTH)
        self._image = image
        self._position = list(settings.position)
        for axis, value in zip(settings.displayed, center, strict=True):
            self._position[axis] = min(max(value, 0.0), image.shape[axis] - 1.0)
        self.unit = QComboBox()
        self.unit.setAccessibleName("Unit of the coordinates")
        self.unit.addItem("Pixels of level 0", False)
        self.unit.addItem("Physical units", True)
        self.boxes: dict[int, QDoubleSpinBox] = {}
        form = QFormLayout(self)
        form.addRow(PlainLabel("Unit"), self.unit)
        for axis in image.slider_axes:
            name = image.axes[axis].name or f"dim {axis}"
            box = NumberBox()
            box.setAccessibleName(plain(f"Coordinate along {name}"))
            self.boxes[axis] = box
            form.addRow(PlainLabel(plain_name(name)), box)
        self.buttons = QDialogButtonBox(
            QDialogButtonBox.StandardButton.Ok | QDialogButtonBox.StandardButton.Cancel
        )
        self.buttons.accepted.connect(self.accept)
        self.buttons.rejected.connect(self.reject)
        form.addRow(self.buttons)
        self._is_physical = False
        self._show_position()
        self.unit.currentIndexChanged.connect(self._change_unit)
        first = next(iter(self.boxes.values()), None)
        if first is not None:
            first.setFocus()
            first.selectAll()

    def position(self) -> tuple[float, ...]:
        """Return the coordinates in data coordinates, one per axis of the image."""
        self._read_boxes()
        return tuple(self._position)

    def _change_unit(self) -> None:
        self._read_boxes()
        self._is_physical = bool(self.unit.currentData())
        self._show_position()

    def _read_boxes(self) -> None:
        for axis, box in self.boxes.items():
            value = box.value()
            if self._is_physical:
                value = self._image.from_physical(axis, value)
            self._position[axis] = min(max(value, 0.0), self._image.shape[axis] - 1.0)

    def _show_position(self) -> None:
        for axis, box in self.boxes.items():
            ends = 0.0, self._image.shape[axis] - 1.0
            value, unit, step = self._position[axis], "", 1.0
            if self._is_physical:
                ends = self._image.to_physical(axis, ends[0]), self._image.to_physical(axis, ends[1])
                value = self._image.to_physical(axis, value)
                unit = self._image.axes[axis].unit or ""
                step = abs(self._image.levels[0].scale[axis])
            box.setDecimals(PHYSICAL_DECIMALS if self._is_physical else PIXEL_DECIMALS)
            box.setRange(min(ends), max(ends))
            box.setSingleStep(step)
            box.setSuffix(plain_name(f" {short_unit(unit)}" if unit else ""))
            box.setValue(value)
