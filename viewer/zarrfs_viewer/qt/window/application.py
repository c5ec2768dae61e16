"""The application: start it with its windows, or write a screenshot of one window."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from PyQt6.QtCore import (
    QMessageLogContext,
    QSettings,
    QSize,
    QSocketNotifier,
    Qt,
    QTimer,
    QtMsgType,
    qInstallMessageHandler,
)
from PyQt6.QtWidgets import QApplication

from zarrfs_viewer.locations import node_location
from zarrfs_viewer.process_memory import limit_arenas
from zarrfs_viewer.qt.support.garbage import GuiThreadCollector
from zarrfs_viewer.qt.support.icons import window_icon
from zarrfs_viewer.qt.support.unexpected_errors import UnexpectedErrorsAreReported
from zarrfs_viewer.qt.window.main_window import MainWindow
from zarrfs_viewer.qt.window.preferences import Preferences

if TYPE_CHECKING:
    from zarrfs_viewer.qt.window.last_session import LastSession
    from zarrfs_viewer.rendering.renderer import Frame

__all__ = ["make_application", "open_window", "show", "take_screenshot"]


POLL_INTERVAL_MILLISECONDS = 50

MAX_PANEL_POLLS = 40
"""A screenshot waits at most this many intervals for the panels after the image is complete."""

MAX_PLATE_POLLS = 600
"""A screenshot waits at most this many intervals for the thumbnails of a plate."""

THUMBNAIL_DELAY_MILLISECONDS = 200
"""After this delay a plate has requested the thumbnails of the visible wells."""

SWITCH_INTERVAL_SECONDS = 0.0005
"""Interval for ``sys.setswitchinterval``. Painting a window takes the interpreter lock a dozen times. With the default
interval, a worker thread that imports or computes can hold it for 5 ms each time.
"""

DISPLAY_VARIABLES = ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM")

OFFSCREEN_WARNING = "This plugin does not support propagateSizeHints()"


def _print_qt_message(kind: QtMsgType, context: QMessageLogContext, text: str | None) -> None:
    if text and text != OFFSCREEN_WARNING:
        sys.stderr.write(f"Qt: {text}\n")


class DisplayCheck:
    """A context manager for the creation of the application that reports a missing display in one line.

    Without a usable display, Qt emits a fatal message and aborts the process. ``fail`` is called with the reason
    instead, and must not return. Other messages are written to stderr at the end.
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
    """Return one line with the reason why no window can be opened, and what to do."""
    variables = ", ".join(f"{name}={os.environ[name]}" for name in DISPLAY_VARIABLES if os.environ.get(name))
    reason = "; ".join(warnings) or fatal.partition(". ")[0]
    hint = "set DISPLAY or WAYLAND_DISPLAY, or use --screenshot FILE, which needs no display"
    return f"no window can be opened: {reason} (found {variables or 'no ' + ' or '.join(DISPLAY_VARIABLES)}); {hint}"


def make_application(fail: Callable[[str], NoReturn] | None = None) -> QApplication:
    """Return the application; create it if necessary. ``fail`` is called with the reason if Qt cannot start."""
    limit_arenas()
    sys.setswitchinterval(SWITCH_INTERVAL_SECONDS)
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
    # Qt aborts the process when its message handler returns, and an exception does not propagate out of the handler.
    os._exit(1)


class SignalsCloseWindows:
    """A context manager in which SIGTERM, SIGINT and SIGHUP close all windows, so that mounts are removed.

    Python runs the handler only when the interpreter runs. The pipe of ``set_wakeup_fd`` wakes up the event loop.
    """

    def __init__(self, application: QApplication) -> None:
        self._application = application
        self._previous: dict[signal.Signals, Any] = {}
        self._pipe = os.pipe()
        for end in self._pipe:
            os.set_blocking(end, False)
        descriptor: Any = self._pipe[0]
        self._notifier = QSocketNotifier(descriptor, QSocketNotifier.Type.Read)
        self._notifier.activated.connect(lambda *_: os.read(self._pipe[0], 64))

    def __enter__(self) -> None:
        self._descriptor = signal.set_wakeup_fd(self._pipe[1])
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            self._previous[number] = signal.signal(number, self._close)

    def __exit__(self, *_: object) -> None:
        signal.set_wakeup_fd(self._descriptor)
        for number, handler in self._previous.items():
            signal.signal(number, handler)
        self._notifier.setEnabled(False)
        for end in self._pipe:
            os.close(end)

    def _close(self, *_: object) -> None:
        for dialog in (QApplication.activeModalWidget(), QApplication.activePopupWidget()):
            if dialog is not None:
                dialog.close()
        self._application.closeAllWindows()
        self._application.quit()


def show(
    locations: list[str],
    fail: Callable[[str], NoReturn] | None = None,
    size: tuple[int, int] | None = None,
) -> int:
    """Open a window with these locations. Returns the exit code when the last window is closed.

    ``size`` is the width and height of the window in pixels, by default those of the last window.
    ``fail`` is called with the reason if no window can be opened. It must end the process.
    """
    application = make_application(fail)
    collector = GuiThreadCollector(application)
    with SignalsCloseWindows(application), UnexpectedErrorsAreReported():
        settings = QSettings("zarrfs", "viewer")
        window = _show_window(settings, size)
        window.call_when_complete(collector.freeze)
        window.call_when_complete(lambda: _open_first(window, locations))
        # A step of its own when the first window is complete: reading and sending the pictures takes 6 ms.
        window.call_when_complete(
            lambda: QTimer.singleShot(0, lambda: application.setWindowIcon(window_icon()))
        )
        code = application.exec()
        settings.sync()  # after a signal, the event loop ends before the settings are written
    collector.stop()
    return code


def _open_first(window: MainWindow, locations: list[str]) -> None:
    """Open locations in the first window, or without locations what the windows of the last session displayed."""
    from zarrfs_viewer.qt.window.last_session import LastSession, restore_window

    settings = window.settings
    last_session = LastSession(Path(settings.fileName()).with_name("session.json"), QApplication.instance())
    states = () if locations or not Preferences.load(settings).restore else last_session.load()
    _connect_window(window, last_session)
    # The window that was closed last has left its geometry in the settings: the first window has it already.
    for number, state in enumerate(reversed(states)):
        restored = open_window(settings, last_session) if number else window
        restored.call_when_complete(partial(restore_window, restored, state))
    for location in locations:
        window.open_location(node_location(location))


def open_window(settings: QSettings | None = None, last_session: LastSession | None = None) -> MainWindow:
    """Open a window, which can open further windows. It is deleted when it is closed. Returns at once.

    Most parts of the window are created in the event loop. ``last_session`` records its state.
    """
    window = _show_window(settings)
    window.call_when_complete(lambda: _connect_window(window, last_session))
    return window


DECORATION = QSize(16, 40)
"""Room for the borders and the title of a window, which have no known size before it is visible."""


def _show_window(settings: QSettings | None, size: tuple[int, int] | None = None) -> MainWindow:
    window = MainWindow(settings, in_steps=True)
    window.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
    _windows.add(window)
    window.destroyed.connect(lambda: _windows.discard(window))
    screen = window.screen()
    wanted = window.size() if size is None else QSize(*size)
    window.resize(wanted if screen is None else wanted.boundedTo(screen.availableSize() - DECORATION))
    window.show()
    window.complete_in_steps()
    return window


def _connect_window(window: MainWindow, last_session: LastSession | None) -> None:
    """Let a window open further windows, and record its state."""
    window.new_window_requested.connect(lambda: open_window(window.settings, last_session))
    window.location_window_requested.connect(
        lambda location: open_window(window.settings, last_session).open_location(location)
    )
    if last_session is not None:
        last_session.add(window)


_windows: set[MainWindow] = set()
"""Open windows. PyQt deletes a window without a Python reference."""


def take_screenshot(
    location: str,
    file: Path,
    size: tuple[int, int],
    timeout_seconds: float,
    fail: Callable[[str], NoReturn] | None = None,
) -> str:
    """Open a location, wait until its image is completely displayed, and write the window to a PNG file.

    Returns the reason if that fails, else an empty text. Needs no display.
    """
    import tempfile

    # These need numpy, which windows import later.
    from zarrfs_viewer.qt.panels.layers.layers_view import LayersView
    from zarrfs_viewer.qt.panels.values.values import Values

    os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
    application = make_application(fail)
    collector = GuiThreadCollector(application)
    qInstallMessageHandler(_print_qt_message)
    with tempfile.TemporaryDirectory() as scratch, UnexpectedErrorsAreReported():
        # The settings of the user are neither used nor changed.
        settings = QSettings(os.path.join(scratch, "settings.ini"), QSettings.Format.IniFormat)
        window = MainWindow(settings)
        window.resize(*size)
        window.show()
        problems: list[str] = []

        def give_up(text: str) -> None:
            problems.append(text)
            application.quit()

        window.failed.connect(give_up)

        def finish(polls: int) -> None:
            """Quit when the panels, such as the histogram, are complete, or after a number of polls."""
            is_complete = window.session.worker.is_idle and all(
                panel.is_current for panel in window.panel_context.panels
            )
            if is_complete or not polls:
                # The event loop needs some time to paint the results.
                QTimer.singleShot(150, application.quit)
            else:
                QTimer.singleShot(POLL_INTERVAL_MILLISECONDS, lambda: finish(polls - 1))

        def done(frame: Frame) -> None:
            if frame.finished:
                if not frame.complete:
                    problems.append(window.notice.text() or "a part of the image could not be read")
                is_long = window.panel(Values).is_shown or window.panel(LayersView).layers.layers
                finish(MAX_PLATE_POLLS if is_long else MAX_PANEL_POLLS)

        def show_other() -> None:
            """Finish if no image is displayed: when the overview of a plate, or a table of values, is complete."""
            dataset = window.session.dataset
            is_plate = dataset is not None and dataset.plate is not None and window.session.image is None
            if is_plate or window.panel(Values).is_shown:
                finish(MAX_PLATE_POLLS)

        window.frame_shown.connect(done)
        window.session.image_changed.connect(
            lambda: QTimer.singleShot(THUMBNAIL_DELAY_MILLISECONDS, show_other)
        )
        QTimer.singleShot(
            round(timeout_seconds * 1000),
            lambda: give_up(f"the image was not complete after {timeout_seconds:g} seconds"),
        )
        window.open_location(node_location(location))
        application.exec()
        if not problems and not window.grab().save(str(file), "PNG"):
            problems.append(f"{file} cannot be written")
        window.close()
        window.deleteLater()
        application.processEvents()
    collector.stop()
    return problems[0] if problems else ""
