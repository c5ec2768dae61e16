"""Functions that wait until a window has loaded and displayed an image."""

from __future__ import annotations

from collections.abc import Callable

from pytestqt.qtbot import QtBot
from zarrfs_viewer.qt.panels.metadata.metadata import Metadata
from zarrfs_viewer.qt.window.main_window import MainWindow

from tests.processes import TIMEOUT

__all__ = ["TIMEOUT_MILLISECONDS", "is_exact", "wait_until_exact", "wait_until_opened"]

TIMEOUT_MILLISECONDS = round(1000 * TIMEOUT)


def is_exact(window: MainWindow) -> bool:
    """Return whether the main pane displays a complete frame of the current settings and viewport."""
    frame, pane = window.canvas.frame, window.panes.main
    return (
        frame is not None
        and frame.complete
        and frame.state.settings == window.display_settings
        and frame.state.viewport == pane.canvas.viewport
    )


def wait_until_exact(qtbot: QtBot, window: MainWindow, act: Callable[[], object]) -> None:
    """Call ``act``, which changes the display settings, and wait until the image is completely displayed."""
    act()
    qtbot.waitUntil(lambda: is_exact(window), timeout=TIMEOUT_MILLISECONDS)


def wait_until_opened(qtbot: QtBot, window: MainWindow, act: Callable[[], object]) -> None:
    """Call ``act``, which opens another image, and wait until the image and its metadata are completely displayed."""
    with qtbot.waitSignal(window.session.image_changed, timeout=TIMEOUT_MILLISECONDS):
        act()
    qtbot.waitUntil(
        lambda: is_exact(window) and window.panel(Metadata).panel.is_current, timeout=TIMEOUT_MILLISECONDS
    )
