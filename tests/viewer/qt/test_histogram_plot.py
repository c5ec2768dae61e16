"""The painted histogram of the channels panel: its axis, and its lines for the contrast limits."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PyQt6.QtCore import QPoint, Qt
from PyQt6.QtTest import QTest
from pytestqt.qtbot import QtBot
from zarrfs_viewer.qt.panels.channels.histogram_plot import MAX_GRAB_DISTANCE, HistogramPlot
from zarrfs_viewer.rendering.contrast import histogram

finite = st.floats(allow_nan=False, allow_infinity=False)


@pytest.fixture
def plot(qtbot: QtBot) -> HistogramPlot:
    widget = HistogramPlot()
    qtbot.addWidget(widget)
    widget.resize(400, widget.height())
    return widget


@settings(max_examples=40)
@given(values=st.lists(finite, min_size=1, max_size=20), limits=st.tuples(finite, finite).map(sorted))
def test_any_values_and_limits_are_drawn(qapp: object, values: list[float], limits: list[float]) -> None:
    plot = HistogramPlot()
    plot.resize(300, plot.height())
    try:
        found = histogram(np.array(values) / 4, 16)
    except ValueError:
        return  # NumPy finds no bins in a range of the smallest numbers
    plot.show_histogram(found, (limits[0] / 4, limits[1] / 4), True)
    low, high = plot.range
    assert low <= found.span()[0]
    assert high >= found.span()[1]
    ticks = plot.ticks()
    assert all(low <= value <= high for value, _ in ticks)
    assert len({text for _, text in ticks}) == len(ticks)
    plot.grab()
    plot.deleteLater()


def test_the_labels_of_the_axis_are_round_numbers(plot: HistogramPlot) -> None:
    plot.show_histogram(histogram(np.arange(1000, dtype="u2")), None, False)
    texts = [text for _, text in plot.ticks()]
    assert texts == ["0", "200", "400", "600", "800", "1000"]
    plot.show_histogram(histogram(np.linspace(900, 1000, 101)), None, False)
    assert [text for _, text in plot.ticks()] == ["900", "920", "940", "960", "980", "1000"]
    plot.show_histogram(histogram(np.linspace(1e-7, 3e-7, 100)), None, False)
    assert "1e-07" in [text for _, text in plot.ticks()]


def test_positions_and_values_correspond(plot: HistogramPlot) -> None:
    plot.show_histogram(histogram(np.linspace(-3, 5, 100)), (-1.0, 2.0), False)
    for value in (-2.5, 0.0, 4.75):
        assert math.isclose(plot.value_at(plot.position_of(value)), value, abs_tol=1e-12)
    plot.is_integer = True
    assert plot.value_at(plot.position_of(1.2)) == 1.0


def test_dragging_a_line_moves_one_limit_as_far_as_the_other(plot: HistogramPlot) -> None:
    plot.show_histogram(histogram(np.linspace(0, 100, 1000)), (20.0, 80.0), False)
    moves: list[tuple[int, float]] = []
    plot.moved.connect(lambda number, value: moves.append((number, value)))

    def drag(start: float, end: float) -> None:
        positions = [QPoint(round(plot.position_of(value)), 30) for value in (start, end)]
        QTest.mousePress(plot, Qt.MouseButton.LeftButton, pos=positions[0])
        QTest.mouseMove(plot, positions[1])
        QTest.mouseRelease(plot, Qt.MouseButton.LeftButton, pos=positions[1])

    drag(20, 40)
    assert moves[-1] == pytest.approx((0, 40), abs=0.3)
    drag(20, 95)
    assert moves[-1] == (0, 80.0)
    drag(80, 70)
    assert moves[-1] == pytest.approx((1, 70), abs=0.3)
    count = len(moves)
    drag(50, 60)
    assert len(moves) == count, "the region between the lines can be dragged"
    # Both lines at one position: the side of the pointer selects the line.
    plot.show_limits((50.0, 50.0))
    beside = (MAX_GRAB_DISTANCE - 2) * (plot.range[1] - plot.range[0]) / plot.width()
    drag(50 - beside, 30)
    assert moves[-1] == pytest.approx((0, 30), abs=0.3)
    drag(50 + beside, 75)
    assert moves[-1] == pytest.approx((1, 75), abs=0.3)


def test_the_axis_does_not_change_while_a_line_is_dragged(plot: HistogramPlot) -> None:
    plot.show_histogram(histogram(np.linspace(0, 100, 1000)), (0.0, 400.0), False)
    before = plot.range
    plot.moved.connect(lambda number, value: plot.show_limits((0.0, value)))
    start, end = (QPoint(round(plot.position_of(value)), 30) for value in (400.0, 200.0))
    QTest.mousePress(plot, Qt.MouseButton.LeftButton, pos=start)
    QTest.mouseMove(plot, end)
    assert plot.range == before
    QTest.mouseRelease(plot, Qt.MouseButton.LeftButton, pos=end)
    assert plot.range[1] < 250


def test_without_a_histogram_nothing_is_drawn_or_dragged(plot: HistogramPlot) -> None:
    plot.show_histogram(None, (0.0, 1.0), False)
    empty = plot.grab().toImage()
    plot.show_histogram(histogram(np.linspace(0, 1, 100)), (0.0, 1.0), False)
    assert plot.grab().toImage() != empty
    plot.show_histogram(None, (0.0, 1.0), False)
    assert plot.grab().toImage() == empty
