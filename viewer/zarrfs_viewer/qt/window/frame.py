"""The part of a window that is visible at once: the start page, the titles of the menus, and empty bars.

The other parts need the engine and numpy, whose import takes longer than everything else at the start. They are
created when the frame is visible: their modules are imported on a thread, and each later iteration of the event loop
creates some of them. This module, ``parts`` and ``main_window`` therefore import none of them at their beginning.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from importlib import import_module

from PyQt6.QtCore import QMimeData, QSettings, QSize, QTimer, QUrl, pyqtSignal
from PyQt6.QtGui import QCloseEvent, QDragEnterEvent, QDropEvent
from PyQt6.QtWidgets import QApplication, QMainWindow, QStackedWidget, QVBoxLayout, QWidget

from zarrfs_viewer.qt.support.actions import add_menus
from zarrfs_viewer.qt.support.theme import apply_theme
from zarrfs_viewer.qt.window.preferences import Preferences
from zarrfs_viewer.qt.window.recent import RecentLocations
from zarrfs_viewer.qt.window.start_page import StartPage
from zarrfs_viewer.qt.window.toolbar import ToolBar

__all__ = ["WindowFrame", "dropped_text"]

MIN_WIDTH, MIN_HEIGHT = 700, 480
DEFAULT_WIDTH, DEFAULT_HEIGHT = 1280, 900
STATUS_BAR_HEIGHT = 27
"""The height with its fields. Without it, the page above the empty bar would move when the fields are added."""

IMPORT_POLL_MILLISECONDS = 5
"""The interval at which the event loop checks whether the modules are imported."""


class WindowFrame(QMainWindow):
    """A window with a start page, to which a subclass adds the other parts.

    Attributes:
        settings: the settings of the application.
        recent: the recent locations.
        empty: the start page.
        stack: the pages in the centre. The first one is the start page.
        toolbar: the toolbar; empty until the actions exist.
        is_complete: whether all parts exist.

    Signals:
        completed: all parts exist.
    """

    completed = pyqtSignal()

    part_modules: tuple[str, ...] = ()
    """The modules of the other parts."""

    def __init__(self, settings: QSettings) -> None:
        super().__init__()
        self.setWindowTitle("zarrfs viewer")
        self.setMinimumSize(MIN_WIDTH, MIN_HEIGHT)
        self.resize(DEFAULT_WIDTH, DEFAULT_HEIGHT)
        self.setAcceptDrops(True)
        self.settings = settings
        self.is_complete = False
        self._has_parts = False
        self._steps = self._create_parts()
        self._next_step = QTimer(self)
        self._next_step.timeout.connect(self._continue)
        self._import: threading.Thread | None = None
        application = QApplication.instance()
        if isinstance(application, QApplication):
            apply_theme(application, Preferences.load(settings).dark)
        self.recent = RecentLocations(settings)
        self.empty = StartPage(self.recent)
        self.stack = QStackedWidget()
        self.stack.addWidget(self.empty)
        center = QWidget()
        layout = QVBoxLayout(center)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        layout.addWidget(self.stack, 1)
        self.setCentralWidget(center)
        add_menus(self)
        self.toolbar = ToolBar(self)
        self.addToolBar(self.toolbar)
        bar = self.statusBar()
        if bar is not None:
            bar.setMinimumHeight(STATUS_BAR_HEIGHT)
        geometry = settings.value("geometry")
        if geometry is not None:
            self.restoreGeometry(geometry)

    def _create_parts(self) -> Iterator[None]:
        """Create the other parts. Each ``yield`` ends a step."""
        raise NotImplementedError

    def complete(self) -> None:
        """Create all parts that do not exist yet, and return when they exist."""
        self._create_remaining_parts()
        self._finish()

    def complete_in_steps(self) -> None:
        """Create the parts in later iterations of the event loop. Call it when the window is shown. Returns at once."""
        if not self.is_complete:
            # The thread has no reference to the window: it must not be the one that deletes it.
            self._import = threading.Thread(
                target=_import_modules, args=(self.part_modules,), name="viewer-import", daemon=True
            )
            self._import.start()
            self._next_step.start(IMPORT_POLL_MILLISECONDS)

    def call_when_complete(self, function: Callable[[], object]) -> None:
        """Call a function when all parts exist: at once, or later in the event loop, unless the window is closed."""
        if self.is_complete:
            function()
        else:
            self.completed.connect(function)

    def _create_remaining_parts(self) -> None:
        self._next_step.stop()
        self._has_parts = True
        for _ in self._steps:
            pass

    def _continue(self) -> None:
        if self._import is not None and self._import.is_alive():
            return
        self._next_step.setInterval(0)
        self._has_parts = True
        try:
            next(self._steps)
        except StopIteration:
            self._next_step.stop()
            self._finish()

    def _finish(self) -> None:
        if not self.is_complete:
            self.is_complete = True
            self.completed.emit()

    def drop(self, data: QMimeData) -> None:
        """Open dropped files, URLs or text."""
        self.open_dropped(dropped_text(data))

    def open_dropped(self, text: str) -> None:
        """Open dropped locations, one per line."""
        raise NotImplementedError

    def _close_parts(self) -> None:
        """Stop the threads of the parts, and save what the user has changed. All parts exist."""
        raise NotImplementedError

    def dragEnterEvent(self, event: QDragEnterEvent | None) -> None:
        data = event.mimeData() if event is not None else None
        # Items that are dragged out of this window are meant for other programs.
        if (
            event is not None
            and data is not None
            and event.source() is None
            and (data.hasUrls() or data.hasText())
        ):
            event.acceptProposedAction()

    def dropEvent(self, event: QDropEvent | None) -> None:
        data = event.mimeData() if event is not None else None
        if event is not None and data is not None:
            self.drop(data)
            event.acceptProposedAction()

    def closeEvent(self, event: QCloseEvent | None) -> None:
        self._next_step.stop()
        self.settings.setValue("geometry", self.saveGeometry())
        if self._has_parts:
            self._create_remaining_parts()
            self._close_parts()
        super().closeEvent(event)

    def sizeHint(self) -> QSize:
        return QSize(DEFAULT_WIDTH, DEFAULT_HEIGHT)


def dropped_text(data: QMimeData) -> str:
    """Return the locations of dropped files, URLs or text, one per line."""
    urls = [
        url.toLocalFile() or url.toString(QUrl.ComponentFormattingOption.FullyEncoded) for url in data.urls()
    ]
    return "\n".join(urls) if urls else data.text()


def _import_modules(names: tuple[str, ...]) -> None:
    for name in names:
        import_module(name)
