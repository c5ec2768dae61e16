"""Waiting for what a real window does on its own threads."""

from __future__ import annotations

from collections.abc import Callable

from pytestqt.qtbot import QtBot
from zarrfs_viewer.qt.window.main_window import MainWindow

from tests.processes import TIMEOUT

__all__ = ["MILLISECONDS", "exact", "opened"]

MILLISECONDS = round(1000 * TIMEOUT)


def is_exact(window: MainWindow) -> bool:
    """Whether the main pane shows all of what is wanted now."""
    frame, pane = window.canvas.frame, window.panes.main
    return (
        frame is not None
        and frame.exact
        and frame.state.intent == window.intent
        and frame.state.viewport == pane.canvas.viewport
    )


def exact(qtbot: QtBot, window: MainWindow, act: Callable[[], object]) -> None:
    """Do something to the picture, and wait until it is exact again."""
    act()
    qtbot.waitUntil(lambda: is_exact(window), timeout=MILLISECONDS)


def opened(qtbot: QtBot, window: MainWindow, act: Callable[[], object]) -> None:
    """Do something that puts another image in front, and wait until its picture is exact."""
    with qtbot.waitSignal(window.session.image_changed, timeout=MILLISECONDS):
        act()
    qtbot.waitUntil(lambda: is_exact(window), timeout=MILLISECONDS)
