"""A slider with two handles for the contrast limits of a channel, filled with the channel's colours."""

from __future__ import annotations

import math

from PyQt6.QtCore import QPointF, QRectF, QSize, Qt, pyqtSignal
from PyQt6.QtGui import QColor, QLinearGradient, QMouseEvent, QPainter, QPaintEvent, QPen
from PyQt6.QtWidgets import QSizePolicy, QWidget

from zarrfs_viewer.rendering.value_scale import fraction, interpolated
from zarrfs_viewer.state.colormaps import lookup

__all__ = ["RangeSlider"]

HEIGHT = 18
BAR_HEIGHT = 8
HANDLE_WIDTH = 8
GRADIENT_STEPS = 9
BORDER = QColor(140, 145, 155)
HANDLE = QColor(225, 228, 234)
MARGIN_PART = 0.5
"""Without a useful range, the slider extends beyond each limit by this fraction of their distance."""
MIN_LIMITS_PART = 0.2
"""The limits initially occupy at least this fraction of the slider."""


def _useful_range(low: float, high: float, limits_range: tuple[float, float] | None) -> tuple[float, float]:
    """Return the range of a slider for limits.

    The range in the metadata is often that of the data type. It is not used if the handles would be close together.
    """
    margin = (high - low) * MARGIN_PART
    if isinstance(high - low, int):
        margin = math.ceil(margin)
    if limits_range is None:
        return low - margin, high + margin
    start, stop = min(limits_range), max(limits_range)
    if high - low >= (stop - start) * MIN_LIMITS_PART:
        return start, stop
    return max(start, low - margin), min(stop, high + margin)


class RangeSlider(QWidget):
    """Two handles. Each moves one limit, and they do not pass each other.

    Signals:
        moved: (number, value) the user moved the minimum (0) or the maximum (1).
        pressed: the user pressed a mouse button.
    """

    moved = pyqtSignal(int, object)
    pressed = pyqtSignal()

    def __init__(self, is_integer: bool, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self._is_integer = is_integer
        self._limits: tuple[float, float] | None = None
        self._range = (0.0, 1.0)
        self._colormap = "gray"
        self._is_inverted = False
        self._dragged: int | None = None

    def sizeHint(self) -> QSize:
        return QSize(90, HEIGHT)

    def minimumSizeHint(self) -> QSize:
        return QSize(40, HEIGHT)

    def show_limits(
        self,
        limits: tuple[float, float] | None,
        limits_range: tuple[float, float] | None,
        colormap: str,
        is_inverted: bool,
    ) -> None:
        """Display limits. The range follows from the first limits and ``limits_range``, and grows with later limits."""
        self._colormap, self._is_inverted = colormap, is_inverted
        if limits is not None:
            low, high = min(limits), max(limits)
            start, stop = self._range if self._limits is not None else _useful_range(low, high, limits_range)
            self._range = min(start, low), max(stop, high)
        self._limits = limits
        self.update()

    # -- geometry ----------------------------------------------------------------------------------------------

    def position_of(self, value: float) -> float:
        """Return the x coordinate of a value."""
        start, stop = self._range
        part = fraction(value, start, stop)
        return HANDLE_WIDTH / 2 + min(max(part, 0.0), 1.0) * (self.width() - HANDLE_WIDTH)

    def value_at(self, x: float) -> float:
        """Return the value at an x coordinate."""
        start, stop = self._range
        part = min(max((x - HANDLE_WIDTH / 2) / max(1, self.width() - HANDLE_WIDTH), 0.0), 1.0)
        return interpolated(start, stop, part, self._is_integer)

    # -- drawing -----------------------------------------------------------------------------------------------

    def paintEvent(self, event: QPaintEvent | None) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        top = (self.height() - BAR_HEIGHT) / 2
        bar = QRectF(HANDLE_WIDTH / 2, top, self.width() - HANDLE_WIDTH, BAR_HEIGHT)
        painter.setPen(QPen(BORDER, 0.7))
        painter.setBrush(QColor(0, 0, 0))
        if self._limits is None or not all(map(math.isfinite, self._range)):
            painter.drawRoundedRect(bar, 2, 2)
            return
        ends = [self.position_of(limit) for limit in sorted(self._limits)]
        gradient = QLinearGradient(QPointF(ends[0], 0), QPointF(max(ends[1], ends[0] + 0.1), 0))
        table = lookup(self._colormap)
        for step in range(GRADIENT_STEPS):
            part = step / (GRADIENT_STEPS - 1)
            index = round(255 * (1 - part if self._is_inverted else part))
            red, green, blue = (int(component) for component in table[index][:3])
            gradient.setColorAt(part, QColor(red, green, blue))
        painter.setBrush(gradient)
        painter.drawRoundedRect(bar, 2, 2)
        painter.setPen(QPen(QColor(30, 30, 34), 1))
        painter.setBrush(HANDLE if self.isEnabled() else BORDER)
        for x in ends:
            painter.drawRoundedRect(
                QRectF(x - HANDLE_WIDTH / 2 + 0.5, 1.5, HANDLE_WIDTH - 1, self.height() - 3), 2, 2
            )

    # -- input -------------------------------------------------------------------------------------------------

    def mousePressEvent(self, event: QMouseEvent | None) -> None:
        self.pressed.emit()
        if event is None or self._limits is None or event.button() != Qt.MouseButton.LeftButton:
            return
        x = event.position().x()
        distances = [abs(x - self.position_of(limit)) for limit in self._limits]
        self._dragged = 0 if distances[0] < distances[1] else 1
        if (
            distances[0] == distances[1]
        ):  # both handles are at the same position: the side of the pointer selects one
            self._dragged = 0 if x < self.position_of(self._limits[0]) else 1
        self._move(x)

    def mouseMoveEvent(self, event: QMouseEvent | None) -> None:
        if event is not None and self._dragged is not None:
            self._move(event.position().x())

    def mouseReleaseEvent(self, event: QMouseEvent | None) -> None:
        self._dragged = None

    def _move(self, x: float) -> None:
        if self._limits is None or self._dragged is None:
            return
        value = self.value_at(x)
        other = self._limits[1 - self._dragged]
        value = min(value, other) if self._dragged == 0 else max(value, other)
        if value != self._limits[self._dragged]:
            self.moved.emit(self._dragged, value)
