"""The histogram of a channel, with two lines that set its contrast limits.

It is painted here, because a plot of pyqtgraph takes an import of 0.3 seconds and 30 ms of the event loop, when the
first image is displayed.
"""

from __future__ import annotations

import math

import numpy as np
from PyQt6.QtCore import QPointF, QRectF, Qt, pyqtSignal
from PyQt6.QtGui import QColor, QMouseEvent, QPainter, QPaintEvent, QPalette, QPen, QPolygonF
from PyQt6.QtWidgets import QWidget

from zarrfs_viewer.qt.support.plain_text import plain
from zarrfs_viewer.rendering.contrast import Histogram
from zarrfs_viewer.rendering.value_scale import fraction, interpolated

__all__ = ["HistogramPlot"]

HEIGHT = 120
PADDING_PART = 0.03
"""The part of the range that is left free at each side."""
MIN_TICK_DISTANCE = 60
"""The minimum distance in pixels between the labels of the axis."""
MIN_STEP, MAX_STEP = 1e-300, 1e300
"""Smaller and larger distances of values have no labels: their calculation could overflow."""
TICK_LENGTH = 4
HANDLE_SIZE = 12
"""The size in pixels of the triangles beside a line, which are a larger target for the mouse."""
MAX_GRAB_DISTANCE = 9
"""The maximum distance in pixels between the pointer and the line that it drags."""
BARS = QColor(130, 150, 190, 160)
LINE_ON_DARK, LINE_ON_LIGHT = QColor(150, 180, 240), QColor(45, 95, 190)
HOVERED_ON_DARK, HOVERED_ON_LIGHT = QColor(255, 230, 90), QColor(200, 100, 0)
MAX_LIGHTNESS_OF_DARK = 128


class HistogramPlot(QWidget):
    """A histogram over an axis of values, and a line for each contrast limit. The lines do not pass each other.

    The axis covers nearly all values, and the limits. It is not changed while a line is dragged.

    Signals:
        moved: (number, value) the user moved the minimum (0) or the maximum (1).
    """

    moved = pyqtSignal(int, object)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAccessibleName("Histogram")
        self.setFixedHeight(HEIGHT)
        self.setMouseTracking(True)
        self.is_integer = False
        self._histogram: Histogram | None = None
        self._is_logarithmic = False
        self._limits: tuple[float, float] | None = None
        self._range = (0.0, 1.0)  # relative to the origin of the histogram, as its edges
        self._origin = 0
        self._hovered: int | None = None
        self._dragged: int | None = None

    @property
    def range(self) -> tuple[float, float]:
        """The first and the last value of the axis."""
        return self._origin + self._range[0], self._origin + self._range[1]

    def show_histogram(
        self, histogram: Histogram | None, limits: tuple[float, float] | None, is_logarithmic: bool
    ) -> None:
        """Draw a histogram and the limits. None removes the histogram."""
        self._histogram, self._is_logarithmic = histogram, is_logarithmic
        self._limits = limits
        self._arrange()

    def show_limits(self, limits: tuple[float, float] | None) -> None:
        """Move the lines to these limits."""
        if limits != self._limits:
            self._limits = limits
            if self._dragged is None:
                self._arrange()
            self.update()

    def _arrange(self) -> None:
        """Choose the range of the axis."""
        if self._histogram is None:
            self._hovered = self._dragged = None
            self.update()
            return
        low, high = self._histogram.span()
        self._origin = self._histogram.origin
        if self._limits is not None:
            offsets = [float(limit - self._origin) for limit in self._limits]
            low, high = min(low, *offsets), max(high, *offsets)
        padding = PADDING_PART * (high - low)
        if math.isfinite(padding):
            low, high = low - padding, high + padding
        self._range = low, high
        self.update()

    # -- geometry ----------------------------------------------------------------------------------------------

    def position_of(self, value: float) -> float:
        """Return the x coordinate of a value. Values beyond the axis have coordinates beyond the widget."""
        return self._x_of(float(value - self._origin))

    def _x_of(self, offset: float) -> float:
        """Return the x coordinate of a difference from the origin of the histogram."""
        return self.width() * fraction(offset, *self._range)

    def value_at(self, x: float) -> float:
        """Return the value at an x coordinate, within the axis."""
        part = min(max(x / max(1, self.width()), 0.0), 1.0)
        return self._origin + interpolated(*self._range, part, self.is_integer)

    def ticks(self) -> list[tuple[float, str]]:
        """Return the values of the axis with a label, and the labels: multiples of 1, 2 or 5 times a power of ten."""
        low, high = self._range
        longest = 0 if not self._origin else self.fontMetrics().horizontalAdvance(f" {self._origin} ")
        rough = (high / 2 - low / 2) / max(1.0, self.width() / max(MIN_TICK_DISTANCE, longest)) * 2
        if not MIN_STEP < rough < MAX_STEP:
            return []
        power = 10.0 ** math.floor(math.log10(rough))
        step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough * (1 - 1e-9))
        if self._origin:
            return self._exact_ticks(max(1, int(step)))
        largest = max(abs(low), abs(high))
        digits = max(1, math.ceil(math.log10(largest / step)) + 1)
        first, last = math.ceil(low / step), math.floor(high / step)
        values = [number * step for number in range(first, last + 1)]
        return [(value, f"{value:.{max(digits, 6)}g}") for value in values]

    def _exact_ticks(self, step: int) -> list[tuple[float, str]]:
        """Return the multiples of an integer and their digits."""
        low, high = (self._origin + round(offset) for offset in self._range)
        values = [number * step for number in range(-(-low // step), high // step + 1)]
        return [(value, str(value)) for value in values]

    # -- drawing -----------------------------------------------------------------------------------------------

    def paintEvent(self, event: QPaintEvent | None) -> None:
        if self._histogram is None:
            return
        painter = QPainter(self)
        painter.fillRect(self.rect(), self.palette().base())
        bottom = self.height() - self.fontMetrics().height() - TICK_LENGTH
        self._draw_bars(painter, self._histogram, bottom)
        self._draw_axis(painter, bottom)
        if self._limits is not None:
            self._draw_limits(painter, self._limits, bottom)
        painter.end()

    def _draw_bars(self, painter: QPainter, histogram: Histogram, bottom: float) -> None:
        # The edges are relative to the origin, as the range.
        edges, heights = histogram.edges, histogram.heights(self._is_logarithmic)
        low, high = self._range
        is_seen = (edges[1:] >= low) & (edges[:-1] <= high)
        first, last = int(np.argmax(is_seen)), len(is_seen) - int(np.argmax(is_seen[::-1]))
        outline = QPolygonF()
        for number in range(first, last if is_seen.any() else first):
            y = bottom - float(heights[number]) * (bottom - 2)
            outline.append(QPointF(self._x_of(float(edges[number])), y))
            outline.append(QPointF(self._x_of(float(edges[number + 1])), y))
        if outline.isEmpty():
            return
        outline.append(QPointF(outline.last().x(), bottom))
        outline.append(QPointF(outline.first().x(), bottom))
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(BARS)
        painter.drawPolygon(outline)

    def _draw_axis(self, painter: QPainter, bottom: float) -> None:
        painter.setPen(self.palette().color(QPalette.ColorRole.PlaceholderText))
        painter.drawLine(QPointF(0, bottom), QPointF(self.width(), bottom))
        metrics = self.fontMetrics()
        for value, text in self.ticks():
            x, width = self.position_of(value), metrics.horizontalAdvance(text)
            painter.drawLine(QPointF(x, bottom), QPointF(x, bottom + TICK_LENGTH))
            left = x - width / 2
            if self._origin:  # a label with all digits nearly fills the axis
                left = min(max(left, 0.0), self.width() - width)
            if left >= 0 and left + width <= self.width():
                painter.drawText(QPointF(left, self.height() - metrics.descent()), plain(text))

    def _draw_limits(self, painter: QPainter, limits: tuple[float, float], bottom: float) -> None:
        is_dark = self.palette().base().color().lightness() < MAX_LIGHTNESS_OF_DARK
        normal = LINE_ON_DARK if is_dark else LINE_ON_LIGHT
        hovered = HOVERED_ON_DARK if is_dark else HOVERED_ON_LIGHT
        left, right = (self.position_of(limit) for limit in limits)
        shade = QColor(normal)
        shade.setAlpha(40)
        painter.fillRect(QRectF(left, 0, right - left, bottom), shade)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        for number, x in enumerate((left, right)):
            is_active = number in (self._hovered, self._dragged)
            color = hovered if is_active else normal
            painter.setPen(QPen(color, 4 if is_active else 2))
            painter.drawLine(QPointF(x, 0), QPointF(x, bottom))
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(color)
            middle, half = bottom / 2, HANDLE_SIZE / 2
            for sign in (-1, 1):
                base = x + sign * 3
                corners = ((base, middle - half), (base, middle + half), (base + sign * half, middle))
                painter.drawPolygon(QPolygonF([QPointF(*corner) for corner in corners]))

    # -- input -------------------------------------------------------------------------------------------------

    def _line_at(self, x: float) -> int | None:
        """Return the number of the line at an x coordinate, or None."""
        if self._limits is None or self._histogram is None:
            return None
        distances = [abs(x - self.position_of(limit)) for limit in self._limits]
        if min(distances) > MAX_GRAB_DISTANCE:
            return None
        if (
            distances[0] == distances[1]
        ):  # both lines are at the same position: the side of the pointer selects one
            return 0 if x < self.position_of(self._limits[0]) else 1
        return 0 if distances[0] < distances[1] else 1

    def _hover(self, number: int | None) -> None:
        if number != self._hovered:
            self._hovered = number
            if number is None:
                self.unsetCursor()
            else:
                self.setCursor(Qt.CursorShape.SplitHCursor)
            self.update()

    def mousePressEvent(self, event: QMouseEvent | None) -> None:
        if event is not None and event.button() == Qt.MouseButton.LeftButton:
            self._dragged = self._line_at(event.position().x())

    def mouseMoveEvent(self, event: QMouseEvent | None) -> None:
        if event is None:
            return
        if self._dragged is None:
            self._hover(self._line_at(event.position().x()))
        else:
            self._move(self._dragged, self.value_at(event.position().x()))

    def mouseReleaseEvent(self, event: QMouseEvent | None) -> None:
        if self._dragged is not None:
            self._dragged = None
            self._arrange()

    def leaveEvent(self, event: object) -> None:
        self._hover(None)

    def _move(self, number: int, value: float) -> None:
        if self._limits is None:
            return
        other = self._limits[1 - number]
        value = min(value, other) if number == 0 else max(value, other)
        if value != self._limits[number]:
            self.moved.emit(number, value)
