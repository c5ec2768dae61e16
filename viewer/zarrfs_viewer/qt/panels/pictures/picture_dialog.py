"""The dialog for a picture of the view or a movie through its slices."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from PyQt6.QtWidgets import (
    QCheckBox,
    QComboBox,
    QDialog,
    QDialogButtonBox,
    QFormLayout,
    QSpinBox,
    QWidget,
)

from zarrfs_viewer.display.levels import pixel_aspect
from zarrfs_viewer.images.image import Image
from zarrfs_viewer.qt.support.number_box import NumberBox
from zarrfs_viewer.qt.support.plain_text import PlainLabel, plain, plain_name
from zarrfs_viewer.state.view_state import DisplaySettings, Viewport, cropped, fit

__all__ = ["MovieChoice", "PictureDialog", "movie_axes"]

MIN_WIDTH, MAX_WIDTH = 16, 16384
MAX_HEIGHT = 16384
MovieFormat = Literal["mp4", "png"]


@dataclass(frozen=True)
class MovieChoice:
    """The slices of a movie: positions along an axis, in pixels of the finest level, and how they are written."""

    axis: int
    first: int
    last: int
    step: int
    frames_per_second: float
    format: MovieFormat


class PictureDialog(QDialog):
    """A dialog for the region and the size of a picture, and with ``movie`` also for the slices of a movie."""

    def __init__(
        self,
        image: Image,
        settings: DisplaySettings,
        viewport: Viewport,
        movie: bool = False,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self.setWindowTitle("Movie" if movie else "Picture")
        self._image, self._settings = image, settings
        rows, columns = (image.shape[axis] for axis in settings.displayed)
        self._cropped = viewport = cropped(viewport, rows, columns)
        self.part = QComboBox()
        self.part.addItem("Visible region", "visible")
        self.part.addItem("Whole slice", "whole")
        self.width_box = _number_box(
            MIN_WIDTH, MAX_WIDTH, min(max(viewport.width, MIN_WIDTH), MAX_WIDTH), " px"
        )
        self.scale_bar = QCheckBox("Scale bar")
        self.scale_bar.setChecked(True)
        self.summary = PlainLabel()
        form = QFormLayout(self)
        for title, widget in (("Region", self.part), ("Width", self.width_box)):
            widget.setAccessibleName(plain(f"{title} of the picture"))
            form.addRow(PlainLabel(plain(title)), widget)
        form.addRow(self.scale_bar)
        self._is_movie = movie
        if movie:
            self._add_movie_rows(form)
        self.buttons = QDialogButtonBox(
            QDialogButtonBox.StandardButton.Save | QDialogButtonBox.StandardButton.Cancel
        )
        self.buttons.accepted.connect(self.accept)
        self.buttons.rejected.connect(self.reject)
        form.addRow("Size", self.summary)
        form.addRow(self.buttons)
        self.part.currentIndexChanged.connect(lambda _: self._update_summary())
        self.width_box.valueChanged.connect(lambda _: self._update_summary())
        self._update_summary()

    def _add_movie_rows(self, form: QFormLayout) -> None:
        self.axis, self.format = QComboBox(), QComboBox()
        for axis in movie_axes(self._image, self._settings):
            self.axis.addItem(plain_name(self._image.axes[axis].name or f"axis {axis}"), axis)
        self.first, self.last, self.step = (_number_box(0, 0, 0) for _ in range(3))
        self.rate = NumberBox()
        self.rate.setRange(0.1, 120.0)
        self.rate.setValue(12.0)
        self.rate.setSuffix(" frames/s")
        self.format.addItem("MP4", "mp4")
        self.format.addItem("PNG series", "png")
        for title, widget in (
            ("Along", self.axis),
            ("First slice", self.first),
            ("Last slice", self.last),
            ("Step", self.step),
            ("Speed", self.rate),
            ("Format", self.format),
        ):
            widget.setAccessibleName(plain(f"{title} of the movie"))
            form.addRow(PlainLabel(plain(title)), widget)
        self.axis.currentIndexChanged.connect(lambda _: self._show_range())
        self._show_range()
        for box in (self.first, self.last, self.step):
            box.valueChanged.connect(lambda _: self._update_summary())

    def _show_range(self) -> None:
        last = self._image.shape[self.axis.currentData()] - 1
        for box, value in ((self.first, 0), (self.last, last)):
            box.setRange(0, last)
            box.setValue(value)
        self.step.setRange(1, max(1, last))
        self.step.setValue(1)

    def viewport(self) -> Viewport:
        """Return the viewport of the picture: its size and the visible part of the plane."""
        width, current = self.width_box.value(), self._cropped
        if self.part.currentData() == "visible":
            factor = width / current.width
            height = min(max(1, round(current.height * factor)), MAX_HEIGHT)
            return replace(current, width=width, height=height, zoom=current.zoom * factor)
        rows, columns = (self._image.shape[axis] for axis in self._settings.displayed)
        aspect = pixel_aspect(self._image, self._settings.displayed)
        ratio = rows * aspect / columns
        height = min(max(1, round(width / ratio if current.turns % 2 else width * ratio)), MAX_HEIGHT)
        return fit(width, height, rows, columns, aspect, 0.0, current.turns, current.mirrored)

    def movie(self) -> MovieChoice:
        """Return the slices and the format of the movie."""
        return MovieChoice(
            self.axis.currentData(),
            self.first.value(),
            self.last.value(),
            self.step.value(),
            self.rate.value(),
            self.format.currentData(),
        )

    def _update_summary(self) -> None:
        viewport = self.viewport()
        text = f"{viewport.width} x {viewport.height} pixels"
        if self._is_movie:
            count = abs(self.last.value() - self.first.value()) // self.step.value() + 1
            text += f", {count} frame{'s' if count != 1 else ''}"
        self.summary.setText(plain(text))


def movie_axes(image: Image, settings: DisplaySettings) -> tuple[int, ...]:
    """Return the axes along which a movie is possible: those with a slider and more than one slice."""
    return tuple(
        axis for axis in image.slider_axes if axis not in settings.displayed and image.shape[axis] > 1
    )


def _number_box(low: int, high: int, value: int, suffix: str = "") -> QSpinBox:
    box = QSpinBox()
    box.setRange(low, high)
    box.setValue(value)
    box.setSuffix(plain(suffix))
    return box
