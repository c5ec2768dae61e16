"""Plots that are created when they are needed, in steps of the event loop."""

from __future__ import annotations

from pytestqt.qtbot import QtBot
from zarrfs_viewer.qt.support.plots import LazyPlot

from tests.viewer.qt.waiting import TIMEOUT_MILLISECONDS


def test_a_plot_is_created_before_the_last_function_that_needs_it_is_called(qtbot: QtBot) -> None:
    plot = LazyPlot("plot")
    qtbot.addWidget(plot)
    calls: list[tuple[str, bool]] = []
    for name in ("replaced", "called"):
        plot.call_when_created(lambda name=name: calls.append((name, plot.is_created)))  # type: ignore[misc]
    assert calls == []
    qtbot.waitUntil(lambda: bool(calls), timeout=TIMEOUT_MILLISECONDS)
    plot.call_when_created(lambda: calls.append(("at once", True)))
    assert calls == [("called", True), ("at once", True)]


def test_a_cancelled_function_is_not_called(qtbot: QtBot) -> None:
    plot = LazyPlot("plot")
    qtbot.addWidget(plot)
    calls: list[str] = []
    plot.call_when_created(lambda: calls.append("cancelled"))
    plot.cancel()
    plot.call_when_created(lambda: calls.append("called"))
    qtbot.waitUntil(lambda: bool(calls), timeout=TIMEOUT_MILLISECONDS)
    assert calls == ["called"]
