"""Starting the program: with its windows, or for one picture of them."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

from PyQt6.QtCore import QMessageLogContext, QSettings, Qt, QTimer, QtMsgType, qInstallMessageHandler
from PyQt6.QtWidgets import QApplication

from zarrfs.engine.cache import set_default_capacity
from zarrfs_viewer.locations import node_location
from zarrfs_viewer.qt.window.main_window import MainWindow
from zarrfs_viewer.rendering.renderer import Frame

__all__ = ["make_application", "open_window", "show", "take_screenshot"]


ENGINE_CACHE_NBYTES = 128 << 20
"""Tiles are kept by the viewer itself; the engine keeps the chunks that several of them are cut from."""

FINISHING_TRIES = 40
"""Twentieths of a second that a screenshot waits for the panels once the picture is exact."""

PLATE_TRIES = 600
"""Twentieths of a second that a screenshot waits for the thumbnails of a plate."""

THUMBNAILS_BEGIN = 200
"""Milliseconds until a plate has asked for the thumbnails of the wells in sight."""

SWITCH_SECONDS = 0.0005
"""A window that is painted asks for the interpreter a dozen times; by default a worker that imports or computes may
keep it for 5 ms each time.
"""

DISPLAY_VARIABLES = ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM")

OFFSCREEN_CHATTER = "This plugin does not support propagateSizeHints()"


def _only_what_matters(kind: QtMsgType, context: QMessageLogContext, text: str | None) -> None:
    if text and text != OFFSCREEN_CHATTER:
        sys.stderr.write(f"Qt: {text}\n")


class DisplayCheck:
    """Reports that Qt cannot start, for example without a display, in one line instead of an abort.

    Qt ends the process with a fatal message in that case. Use it as a context around the creation of the application;
    ``fail`` is called with the reason and must not return. Other messages are printed at the end.
    """

    def __init__(self, fail: Callable[[str], NoReturn]) -> None:
        self._fail = fail
        self._messages: list[str] = []
        self._previous: Any = None

    def __enter__(self) -> None:
        self._previous = qInstallMessageHandler(self._handle)

    def __exit__(self, *_: object) -> None:
        qInstallMessageHandler(self._previous)
        for message in self._messages:
            sys.stderr.write(f"Qt: {message}\n")

    def _handle(self, kind: QtMsgType, context: QMessageLogContext, text: str | None) -> None:
        if kind == QtMsgType.QtFatalMsg:
            self._fail(no_display_message(self._messages, text or ""))
        if text and kind != QtMsgType.QtDebugMsg:
            self._messages.append(text)


def no_display_message(warnings: list[str], fatal: str) -> str:
    """Return why the window cannot open, in one line, and what to do."""
    found = ", ".join(f"{name}={os.environ[name]}" for name in DISPLAY_VARIABLES if os.environ.get(name))
    reason = "; ".join(warnings) or fatal.partition(". ")[0]
    hint = "set DISPLAY or WAYLAND_DISPLAY, or use --screenshot FILE, which needs no display"
    return (
        f"no window can be opened: {reason} (found {found or 'no ' + ' or '.join(DISPLAY_VARIABLES)}); {hint}"
    )


def make_application(fail: Callable[[str], NoReturn] | None = None) -> QApplication:
    """Return the application, made if there is none; ``fail`` is called with the reason if that is not possible."""
    set_default_capacity(ENGINE_CACHE_NBYTES)
    sys.setswitchinterval(SWITCH_SECONDS)
    running = QApplication.instance()
    if isinstance(running, QApplication):
        return running
    QApplication.setApplicationName("zarrfs viewer")
    QApplication.setDesktopFileName("zarrfs-viewer")
    with DisplayCheck(fail or _exit):
        return QApplication(sys.argv[:1])


def _exit(reason: str) -> NoReturn:
    sys.stderr.write(f"{reason}\n")
    sys.stderr.flush()
    # Qt would abort the process after this, and an exception does not leave its message handler.
    os._exit(1)


def show(locations: list[str], fail: Callable[[str], NoReturn] | None = None) -> int:
    """Open a window with these locations; return the exit code when it is closed.

    ``fail`` is called with the reason if no window can be opened, and must end the process.
    """
    application = make_application(fail)
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


def take_screenshot(
    location: str,
    file: Path,
    size: tuple[int, int],
    patience: float,
    fail: Callable[[str], NoReturn] | None = None,
) -> str:
    """Open a location, wait until its picture is exact, and write the window to a PNG file.

    Returns why that was not possible, or an empty text. Needs no display.
    """
    os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
    application = make_application(fail)
    qInstallMessageHandler(_only_what_matters)
    with tempfile.TemporaryDirectory() as scratch:
        # The state of the user's own window is neither used nor changed.
        settings = QSettings(os.path.join(scratch, "settings.ini"), QSettings.Format.IniFormat)
        window = MainWindow(settings)
        window.resize(*size)
        window.show()
        problems: list[str] = []

        def give_up(text: str) -> None:
            problems.append(text)
            application.quit()

        window.failed.connect(give_up)

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

        def show_plate() -> None:
            """A plate has no picture of its own: its overview is complete when its thumbnails are."""
            dataset = window.session.dataset
            if dataset is not None and dataset.plate is not None and window.session.image is None:
                finish(PLATE_TRIES)

        window.framed.connect(done)
        window.session.image_changed.connect(lambda: QTimer.singleShot(THUMBNAILS_BEGIN, show_plate))
        QTimer.singleShot(round(patience * 1000), lambda: give_up("the picture took too long"))
        window.open_location(node_location(location))
        application.exec()
        if not problems and not window.grab().save(str(file), "PNG"):
            problems.append(f"{file} cannot be written")
        window.close()
        window.deleteLater()
        application.processEvents()
    return problems[0] if problems else ""
