"""The windows of the last session: recorded while they are open, and opened again when the viewer starts."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from PyQt6.QtCore import QByteArray, QEvent, QObject, QTimer

from zarrfs_viewer.qt.window.main_window import MainWindow
from zarrfs_viewer.saved_views.views import View
from zarrfs_viewer.saved_views.window_state import WindowState, load_windows, save_windows

__all__ = ["LastSession", "restore_window", "window_state"]

SAVE_DELAY_MILLISECONDS = 2000
"""The windows are recorded when nothing has been opened for this long."""

FORGET_DELAY_MILLISECONDS = 2000
"""A window that the user closes is forgotten after this time, unless the application ends: then all windows were closed
together."""


class LastSession(QObject):
    """Records the windows in a file, so that it has the last state also after a crash."""

    def __init__(self, file: Path, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._file = file
        self._windows: list[MainWindow] = []
        self._closed: list[WindowState] = []
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.setInterval(SAVE_DELAY_MILLISECONDS)
        self._timer.timeout.connect(self.save)

    def load(self) -> tuple[WindowState, ...]:
        """Return the recorded windows."""
        return load_windows(self._file)

    def add(self, window: MainWindow) -> None:
        """Record a window until it is closed."""
        self._windows.append(window)
        window.installEventFilter(self)
        window.session.image_changed.connect(self._timer.start)
        window.session.opened.connect(lambda *_: self._timer.start())
        window.features.regions.panel.changed.connect(self._timer.start)

    def eventFilter(self, watched: QObject | None, event: QEvent | None) -> bool:
        if event is not None and event.type() == QEvent.Type.Close and watched in self._windows:
            window = self._windows.pop(self._windows.index(watched))
            self._closed.append(window_state(window))
            self.save()
            if self._windows:
                QTimer.singleShot(FORGET_DELAY_MILLISECONDS, self._forget_closed)
        return False

    def _forget_closed(self) -> None:
        if self._windows:
            self._closed.clear()
            self.save()

    def save(self) -> None:
        """Write the state of all windows with an open location."""
        states = [*self._closed, *map(window_state, self._windows)]
        try:
            save_windows(self._file, [state for state in states if state.locations])
        except OSError as error:
            logging.getLogger("zarrfs").warning("the open windows cannot be recorded: %s", error)


def window_state(window: MainWindow) -> WindowState:
    """Return the state of a window."""
    session = window.session
    state = WindowState(
        geometry=window.saveGeometry().toHex().data().decode(),
        locations=tuple(item.location for item in window.tree_panel.model.tops),
        panel=window.panels.currentIndex(),
        is_linked=window.panes.linked,
        regions=window.features.regions.panel.by_plane,
    )
    dataset, image, intent = session.dataset, session.image, session.intent
    if dataset is None or image is None or intent is None:
        return state
    view = View("", dataset.location, image.path, intent, window.canvas.viewport)
    return replace(state, path=dataset.path, view=view)


def restore_window(window: MainWindow, state: WindowState) -> None:
    """Open what a window displayed. Returns at once; locations that do not exist any more are reported."""
    if state.geometry:
        window.restoreGeometry(QByteArray.fromHex(state.geometry.encode()))
    window.features.regions.panel.restore(state.regions)
    view, session = state.view, window.session
    for location in state.locations:
        if view is None or location != view.location:
            window.open_location(location)
    if view is None:
        return

    def show_panels() -> None:
        session.image_changed.disconnect(show_panels)
        # The panels follow the image in other slots of the same signal.
        _call_later(window, apply_panels)

    def apply_panels() -> None:
        window.panels.setCurrentIndex(state.panel)
        window.actions_by_name["linked"].setChecked(state.is_linked)

    def show_inner(location: str, node: object, number: int) -> None:
        if location == view.location:
            session.opened.disconnect(show_inner)
            # After the location itself is displayed.
            _call_later(window, lambda: show_view(node))

    def show_view(node: object) -> None:
        session.image_changed.connect(show_panels)
        session.show_view(node, view.location, state.path, view)

    if state.path:
        session.opened.connect(show_inner)
        window.open_location(view.location)
    else:
        session.image_changed.connect(show_panels)
        session.open_view(view)


def _call_later(window: MainWindow, function: Callable[[], None]) -> None:
    """Call a function in the next iteration of the event loop, unless the window is deleted by then."""
    timer = QTimer(window)
    timer.setSingleShot(True)
    timer.timeout.connect(function)
    timer.timeout.connect(timer.deleteLater)
    timer.start(0)
