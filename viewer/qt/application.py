"""Starting the program: with its windows, or for one picture of them."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

from PyQt6.QtCore import QMessageLogContext, QSettings, Qt, QTimer, QtMsgType, qInstallMessageHandler
from PyQt6.QtWidgets import QApplication

from viewer.locations import node_location
from viewer.qt.main_window import MainWindow
from viewer.rendering import Frame
from zarrfs.engine.cache import set_default_capacity

__all__ = ["make_application", "open_window", "show", "take_screenshot"]


ENGINE_CACHE_NBYTES = 128 << 20
"""Tiles are kept by the viewer itself; the engine keeps the chunks that several of them are cut from."""

FINISHING_TRIES = 40
"""Twentieths of a second that a screenshot waits for the panels once the picture is exact."""

SWITCH_SECONDS = 0.0005
"""A window that is painted asks for the interpreter a dozen times; by default a worker that imports or computes may
keep it for 5 ms each time.
"""

OFFSCREEN_CHATTER = "This plugin does not support propagateSizeHints()"


def _only_what_matters(kind: QtMsgType, context: QMessageLogContext, text: str | None) -> None:
    if text and text != OFFSCREEN_CHATTER:
        sys.stderr.write(f"Qt: {text}\n")


def make_application() -> QApplication:
    """Return the application, made if there is none."""
    set_default_capacity(ENGINE_CACHE_NBYTES)
    sys.setswitchinterval(SWITCH_SECONDS)
    running = QApplication.instance()
    if isinstance(running, QApplication):
        return running
    QApplication.setApplicationName("zarrfs viewer")
    QApplication.setDesktopFileName("zarrfs-viewer")
    return QApplication(sys.argv[:1])


def show(locations: list[str]) -> int:
    """Open a window with these locations; return the exit code when it is closed."""
    application = make_application()
    window = open_window()
    for location in locations:
        window.open_location(node_location(location))
    return application.exec()


def open_window(settings: QSettings | None = None) -> MainWindow:
    """Open a window; it can open further ones. It goes when it is closed."""
    window = MainWindow(settings)
    window.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
    window.wants_window.connect(lambda: open_window(settings))
    _windows.add(window)
    window.destroyed.connect(lambda: _windows.discard(window))
    window.show()
    return window


_windows: set[MainWindow] = set()
"""Python would delete a window that nobody holds."""


def take_screenshot(location: str, file: Path, size: tuple[int, int], patience: float) -> str:
    """Open a location, wait until its picture is exact, and write the window to a PNG file.

    Returns why that was not possible, or an empty text. Needs no display.
    """
    if not os.environ.get("DISPLAY") and not os.environ.get("WAYLAND_DISPLAY"):
        os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
    qInstallMessageHandler(_only_what_matters)
    application = make_application()
    with tempfile.TemporaryDirectory() as scratch:
        # The state of the user's own window is neither used nor changed.
        settings = QSettings(os.path.join(scratch, "settings.ini"), QSettings.Format.IniFormat)
        window = MainWindow(settings)
        window.resize(*size)
        window.show()
        problems: list[str] = []

        def fail(text: str) -> None:
            problems.append(text)
            application.quit()

        window.failed.connect(fail)

        def finish(tries: int) -> None:
            """End when the panels are filled too, such as the histogram; but they are not waited for long."""
            if window.session.worker.idle or not tries:
                # One turn of the loop more, so that what has come is drawn.
                QTimer.singleShot(150, application.quit)
            else:
                QTimer.singleShot(50, lambda: finish(tries - 1))

        def done(frame: Frame) -> None:
            if frame.settled:
                if not frame.exact:
                    problems.append(window.notice.text() or "a part of the picture could not be read")
                finish(FINISHING_TRIES)

        window.framed.connect(done)
        QTimer.singleShot(round(patience * 1000), lambda: fail("the picture took too long"))
        window.open_location(node_location(location))
        application.exec()
        if not problems and not window.grab().save(str(file), "PNG"):
            problems.append(f"{file} cannot be written")
        window.close()
        window.deleteLater()
        application.processEvents()
    return problems[0] if problems else ""
