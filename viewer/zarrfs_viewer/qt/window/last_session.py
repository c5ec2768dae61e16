"""The windows of the last session: recorded while they are open, and opened again when the viewer starts."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from PyQt6.QtCore import QByteArray, QEvent, QObject, QTimer

from zarrfs_viewer.qt.panels.hierarchy.hierarchy import Hierarchy
from zarrfs_viewer.qt.panels.layers.layers_view import LayersView
from zarrfs_viewer.qt.panels.measure.measurements import Measurements
from zarrfs_viewer.qt.window.main_window import MainWindow
from zarrfs_viewer.saved_views.views import View
from zarrfs_viewer.saved_views.window_state import (
    AddedLabels,
    LayerView,
    WindowState,
    load_windows,
    save_windows,
)

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
        window.panel(Measurements).panel.changed.connect(self._timer.start)

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
        docks=window.docks.state(),
        locations=tuple(item.location for item in window.panel(Hierarchy).tree.model.tops),
        panel=window.panels.currentIndex(),
        is_linked=window.panes.linked,
        regions=window.panel(Measurements).panel.by_plane,
    )
    dataset, image, settings = session.dataset, session.image, session.settings
    if dataset is None or image is None or settings is None:
        return state
    view = View("", dataset.location, image.path, settings, window.canvas.viewport, dataset.system)
    added = settings.labels[len(settings.labels) - len(session.added) :]
    return replace(
        state,
        path=dataset.path,
        view=view,
        layers=window.panel(LayersView).layers.views(),
        as_labels=image.kind == "labels",
        labels=tuple(AddedLabels(*place, each) for place, each in zip(session.added, added, strict=True)),
    )


def restore_window(window: MainWindow, state: WindowState) -> None:
    """Open what a window displayed. Returns at once; locations that do not exist any more are reported."""
    if state.geometry:
        window.restoreGeometry(QByteArray.fromHex(state.geometry.encode()))
    window.docks.restore(state.docks)
    window.panel(Measurements).panel.restore(state.regions)
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
        for layer in state.layers:
            _restore_layer(window, layer, state.panel)
        for labels in state.labels:
            _restore_labels(window, labels)

    def show_inner(location: str, node: object, number: int) -> None:
        if location == view.location:
            session.opened.disconnect(show_inner)
            # After the location itself is displayed.
            _call_later(window, lambda: show_view(node))

    def show_view(node: object) -> None:
        session.image_changed.connect(show_panels)
        session.show_view(node, view.location, state.path, view, state.as_labels)

    if state.path:
        session.opened.connect(show_inner)
        window.open_location(view.location)
    else:
        session.image_changed.connect(show_panels)
        session.open_view(view, state.as_labels)


def _restore_layer(window: MainWindow, layer: LayerView, panel: int) -> None:
    """Display a layer as soon as its location is open. It adds a panel: another one may have been visible."""
    layers = window.panel(LayersView).layers

    def show(node: object) -> None:
        layers.restore(node, layer)
        window.panels.setCurrentIndex(panel)

    _call_when_open(window, layer.view.location, show)


def _restore_labels(window: MainWindow, labels: AddedLabels) -> None:
    """Draw labels over the image as soon as their location is open."""
    _call_when_open(
        window,
        labels.location,
        lambda node: window.session.restore_labels(node, labels.location, labels.path, labels.settings),
    )


def _call_when_open(window: MainWindow, location: str, function: Callable[[object], None]) -> None:
    """Call a function with the node of a location that is open or being opened, unless another image is displayed."""
    session = window.session
    image = session.image

    def call(opened: str, node: object, number: int) -> None:
        if opened == location:
            session.opened.disconnect(call)
            if session.image is image:
                function(node)

    for item in window.panel(Hierarchy).tree.model.tops:
        if item.location == location:
            function(item.node)
            return
    session.opened.connect(call)


def _call_later(window: MainWindow, function: Callable[[], None]) -> None:
    """Call a function in the next iteration of the event loop, unless the window is deleted by then."""
    timer = QTimer(window)
    timer.setSingleShot(True)
    timer.timeout.connect(function)
    timer.timeout.connect(timer.deleteLater)
    timer.start(0)
