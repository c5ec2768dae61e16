"""Undo, redo and reset in a window; settings of images that are opened again; windows of the last session."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from PyQt6.QtCore import QSettings
from PyQt6.QtWidgets import QApplication, QDockWidget
from pytestqt.qtbot import QtBot
from zarrfs_viewer.qt.panels.hierarchy.hierarchy import Hierarchy
from zarrfs_viewer.qt.panels.layers.layers_view import LayersView
from zarrfs_viewer.qt.panels.measure.measurements import Measurements
from zarrfs_viewer.qt.panels.position.position import Position
from zarrfs_viewer.qt.window.last_session import LastSession, restore_window, window_state
from zarrfs_viewer.qt.window.main_window import MainWindow
from zarrfs_viewer.saved_views.window_state import Arrangement, load_windows, save_windows
from zarrfs_viewer.state.view_state import FIT_MARGIN, fit, with_channel

import zarrfs
from tests.viewer.qt.waiting import TIMEOUT_MILLISECONDS, is_exact, wait_until_exact, wait_until_opened

OpenInWindow = Callable[[object], MainWindow]


@pytest.fixture
def hierarchy(tmp_path: Path) -> Path:
    group = zarrfs.create_group(tmp_path / "a.zarr")
    data = np.arange(4 * 32 * 32, dtype="u2").reshape(4, 32, 32)
    for name in ("one", "two"):
        group.create_array(name, data=data, chunks=(1, 32, 32), dimension_names=["z", "y", "x"])
    return tmp_path / "a.zarr"


@pytest.fixture
def new_window(qtbot: QtBot, tmp_path: Path) -> Iterator[Callable[[], MainWindow]]:
    """A function that creates a window with the same settings as the other windows of the test."""
    windows: list[MainWindow] = []

    def create() -> MainWindow:
        settings = QSettings(str(tmp_path / "settings.ini"), QSettings.Format.IniFormat)
        windows.append(MainWindow(settings))
        windows[-1].show()
        return windows[-1]

    yield create
    for window in windows:
        window.close()
        window.deleteLater()
    QApplication.processEvents()


def test_settings_are_undone_redone_and_reset(
    qtbot: QtBot, open_in_window: OpenInWindow, hierarchy: Path
) -> None:
    window = open_in_window(hierarchy / "one")
    start = window.display_settings
    assert start is not None
    wait_until_exact(qtbot, window, lambda: window.session.change_channel(0, limits=(7.0, 99.0)))
    wait_until_exact(qtbot, window, lambda: window.panel(Position).dimensions.set_position(0, 3))
    wait_until_exact(qtbot, window, lambda: window.session.change_channel(0, colormap="viridis"))
    changed = window.display_settings
    for _ in range(3):
        window.actions_by_name["undo"].trigger()
    assert window.display_settings == start
    for _ in range(3):
        window.actions_by_name["redo"].trigger()
    assert window.display_settings == changed
    wait_until_exact(qtbot, window, window.actions_by_name["reset"].trigger)
    assert window.display_settings is not None
    assert window.display_settings.channels[0].colormap == start.channels[0].colormap
    assert window.display_settings.position == start.position
    window.actions_by_name["undo"].trigger()
    assert window.display_settings == changed
    wait_until_opened(qtbot, window, lambda: window.open_location(str(hierarchy / "two")))
    window.actions_by_name["undo"].trigger()
    assert window.notice.text() == "There is nothing to undo."


def test_rotation_and_mirroring_are_undone_redone_and_reset(
    qtbot: QtBot, open_in_window: OpenInWindow, hierarchy: Path
) -> None:
    window = open_in_window(hierarchy / "one")
    undo, redo = window.actions_by_name["undo"], window.actions_by_name["redo"]
    window.actions_by_name["rotate"].trigger()
    wait_until_exact(qtbot, window, lambda: window.session.change_channel(0, colormap="viridis"))
    window.actions_by_name["mirror"].trigger()
    changed = window.display_settings
    # Mirroring the rotated picture is mirroring before the opposite rotation.
    assert window.canvas.orientation == (3, True)
    states = []
    for _ in range(3):
        undo.trigger()
        assert window.display_settings is not None
        states.append((window.canvas.orientation, window.display_settings.channels[0].colormap == "viridis"))
    assert states == [((1, False), True), ((1, False), False), ((0, False), False)]
    undo.trigger()
    assert window.notice.text() == "There is nothing to undo."
    for _ in range(3):
        redo.trigger()
    assert (window.canvas.orientation, window.display_settings) == ((3, True), changed)
    window.actions_by_name["reset"].trigger()
    assert window.canvas.orientation == (0, False)
    undo.trigger()
    assert (window.canvas.orientation, window.display_settings) == ((3, True), changed)


def test_the_orientation_of_a_restored_view_is_not_a_change(
    qtbot: QtBot, open_in_window: OpenInWindow, hierarchy: Path
) -> None:
    window = open_in_window(hierarchy / "one")
    wait_until_exact(qtbot, window, window.actions_by_name["rotate"].trigger)
    view = window.session.view("turned", window.canvas.viewport)
    assert view is not None
    wait_until_opened(qtbot, window, lambda: window.session.open_view(view))
    assert window.canvas.orientation == (1, False)
    wait_until_exact(qtbot, window, lambda: window.session.change_channel(0, colormap="viridis"))
    window.actions_by_name["undo"].trigger()
    assert window.canvas.orientation == (1, False)


def test_an_image_that_is_opened_again_has_its_settings(
    qtbot: QtBot, new_window: Callable[[], MainWindow], hierarchy: Path
) -> None:
    first = new_window()
    wait_until_opened(qtbot, first, lambda: first.open_location(str(hierarchy / "one")))
    wait_until_exact(qtbot, first, lambda: first.session.change_channel(0, limits=(7.0, 99.0)))
    wait_until_exact(qtbot, first, lambda: first.panel(Position).dimensions.set_position(0, 3))
    changed = first.display_settings
    wait_until_opened(qtbot, first, lambda: first.open_location(str(hierarchy / "two")))
    assert first.display_settings is not None
    assert first.display_settings.channels[0].limits != (7.0, 99.0)
    wait_until_opened(qtbot, first, lambda: first.open_location(str(hierarchy / "one")))
    assert first.display_settings == changed
    first.close()
    second = new_window()
    wait_until_opened(qtbot, second, lambda: second.open_location(str(hierarchy / "one")))
    assert second.display_settings == changed


def test_an_image_with_other_axes_ignores_its_old_settings(
    qtbot: QtBot, open_in_window: OpenInWindow, hierarchy: Path
) -> None:
    window = open_in_window(hierarchy / "one")
    wait_until_exact(qtbot, window, lambda: window.panel(Position).dimensions.set_position(0, 3))
    zarrfs.create_array(hierarchy / "one", data=np.ones((8, 8), "u1"), chunks=(8, 8), overwrite=True)
    wait_until_opened(qtbot, window, lambda: window.open_location(str(hierarchy / "one")))
    assert window.display_settings is not None
    assert len(window.display_settings.position) == 2
    assert not window.notice.isVisible()


@pytest.mark.parametrize("inner", ["", "two"])
def test_windows_of_the_last_session_are_restored(
    qtbot: QtBot, new_window: Callable[[], MainWindow], hierarchy: Path, tmp_path: Path, inner: str
) -> None:
    last = LastSession(tmp_path / "session.json")
    window = new_window()
    last.add(window)
    wait_until_opened(qtbot, window, lambda: window.open_location(str(hierarchy)))
    if inner:
        node = zarrfs.open(str(hierarchy))[inner]
        wait_until_opened(qtbot, window, lambda: window.session.show_node(node, str(hierarchy), inner))
    assert window.display_settings is not None
    wait_until_exact(qtbot, window, lambda: window.panel(Position).dimensions.set_position(0, 2))
    wait_until_exact(
        qtbot,
        window,
        lambda: window.session.change(with_channel(window.display_settings, 0, colormap="magma")),
    )
    wait_until_exact(qtbot, window, lambda: window.canvas.zoom(3))
    window.panels.setCurrentWidget(window.panel(Measurements).measure)
    window.actions_by_name["linked"].setChecked(True)
    settings = window.display_settings
    state = window_state(window)
    window.close()
    assert last.load() == (state,)

    restored = new_window()
    restore_window(restored, last.load()[0])
    qtbot.waitUntil(lambda: restored.display_settings == settings, timeout=TIMEOUT_MILLISECONDS)
    qtbot.waitUntil(lambda: restored.panes.linked and is_exact(restored), timeout=TIMEOUT_MILLISECONDS)
    assert restored.panels.currentWidget() is restored.panel(Measurements).measure
    assert restored.image is not None
    assert restored.image.name in ("one", "two")
    assert [item.location for item in restored.panel(Hierarchy).tree.model.tops] == [str(hierarchy)]
    assert state.view is not None
    assert state.view.viewport is not None
    assert restored.canvas.viewport.center == pytest.approx(state.view.viewport.center)
    assert restored.canvas.viewport.zoom == pytest.approx(state.view.viewport.zoom)


def fitted_zoom(window: MainWindow) -> float:
    """Return the zoom with which the plane fits the main pane."""
    assert window.image is not None
    viewport, (rows, columns) = window.canvas.viewport, window.image.shape[-2:]
    return fit(viewport.width, viewport.height, rows, columns, viewport.aspect, FIT_MARGIN).zoom


@pytest.mark.parametrize("factor", [1.0, 3.0])
def test_three_planes_have_the_same_scale_after_each_start(
    qtbot: QtBot, new_window: Callable[[], MainWindow], hierarchy: Path, factor: float
) -> None:
    window = new_window()
    wait_until_opened(qtbot, window, lambda: window.open_location(str(hierarchy / "one")))
    window.actions_by_name["linked"].setChecked(True)
    qtbot.waitUntil(lambda: is_exact(window), timeout=TIMEOUT_MILLISECONDS)
    if factor != 1:
        wait_until_exact(qtbot, window, lambda: window.canvas.zoom(factor))
    zoom, center = window.canvas.viewport.zoom, window.canvas.viewport.center
    state = window_state(window)
    for _ in range(2):
        restored = new_window()
        restored.resize(window.size())
        restore_window(restored, state)
        qtbot.waitUntil(
            lambda restored=restored: restored.panes.linked and is_exact(restored),
            timeout=TIMEOUT_MILLISECONDS,
        )
        # The window may have another size than the first one, for instance on another screen.
        expected = fitted_zoom(restored) if factor == 1 else zoom
        assert restored.canvas.viewport.zoom == pytest.approx(expected)
        assert restored.canvas.viewport.center == pytest.approx(center)
        state = window_state(restored)


def test_the_scale_and_the_fit_survive_entering_and_leaving_three_planes(
    qtbot: QtBot, open_in_window: OpenInWindow, hierarchy: Path
) -> None:
    window = open_in_window(hierarchy / "one")
    linked, canvas = window.actions_by_name["linked"], window.canvas
    single = canvas.viewport

    linked.setChecked(True)
    qtbot.waitUntil(lambda: canvas.viewport.width < single.width, timeout=TIMEOUT_MILLISECONDS)
    assert canvas.viewport.zoom == pytest.approx(fitted_zoom(window))
    fitted_view = window.session.view("fitted", canvas.viewport)
    linked.setChecked(False)
    qtbot.waitUntil(lambda: canvas.viewport == single, timeout=TIMEOUT_MILLISECONDS)
    canvas.zoom(3)
    for on in (True, False):
        linked.setChecked(on)
        qtbot.waitUntil(
            lambda on=on: (canvas.viewport.width < single.width) == on, timeout=TIMEOUT_MILLISECONDS
        )
        assert canvas.viewport.zoom == pytest.approx(3 * single.zoom)
    part = window.session.view("part", canvas.viewport)
    assert fitted_view is not None
    assert part is not None
    wait_until_opened(qtbot, window, lambda: window.session.open_view(fitted_view))
    assert canvas.viewport == single
    linked.setChecked(True)
    qtbot.waitUntil(lambda: canvas.viewport.width < single.width, timeout=TIMEOUT_MILLISECONDS)
    wait_until_opened(qtbot, window, lambda: window.session.open_view(part))
    assert canvas.viewport.zoom == pytest.approx(3 * single.zoom)
    canvas.fit()
    canvas.rotate()
    window.actions_by_name["undo"].trigger()
    assert canvas.viewport.zoom == pytest.approx(fitted_zoom(window))


@pytest.mark.parametrize("arrangement", ["beside", "difference"])
def test_the_layers_of_the_last_session_are_restored(
    qtbot: QtBot,
    new_window: Callable[[], MainWindow],
    hierarchy: Path,
    tmp_path: Path,
    arrangement: Arrangement,
) -> None:
    one, two = str(hierarchy / "one"), str(hierarchy)
    window = new_window()
    for location in (two, one):
        wait_until_opened(qtbot, window, lambda location=location: window.open_location(location))
    wait_until_exact(qtbot, window, lambda: window.panel(Position).dimensions.set_position(0, 2))
    layers = window.panel(LayersView).layers
    for path in ("one", "two"):
        layers.open(zarrfs.open(two)[path], two, path)
    last, hidden = layers.layers[1], layers.layers[0]
    qtbot.waitUntil(lambda: None not in (hidden.settings, last.settings), timeout=TIMEOUT_MILLISECONDS)
    layers.show(hidden, False)
    layers.arrange(last, arrangement, 0.75)
    layers.change_channel(0, limits=(5.0, 50.0), colormap="magma")
    window.panels.setCurrentWidget(window.panel(Measurements).measure)
    settings, state = last.displayed_settings(), window_state(window)
    assert settings is not None
    save_windows(tmp_path / "session.json", [state])

    restored = new_window()
    restore_window(restored, *load_windows(tmp_path / "session.json"))
    layers = restored.panel(LayersView).layers
    qtbot.waitUntil(
        lambda: len(layers.layers) == 2 and layers.layers[1].frame is not None, timeout=TIMEOUT_MILLISECONDS
    )
    hidden, last = layers.layers
    assert last.displayed_settings() == settings
    assert (last.arrangement, last.opacity, hidden.visible) == (arrangement, 0.75, False)
    assert layers.canvas.isVisible() == (arrangement == "beside")
    assert restored.panels.currentWidget() is restored.panel(Measurements).measure
    qtbot.waitUntil(lambda: window_state(restored).layers == state.layers, timeout=TIMEOUT_MILLISECONDS)


@pytest.mark.parametrize("as_labels", [False, True])
def test_labels_of_the_last_session_are_restored(
    qtbot: QtBot, new_window: Callable[[], MainWindow], hierarchy: Path, tmp_path: Path, as_labels: bool
) -> None:
    location = str(hierarchy)
    window = new_window()
    wait_until_opened(qtbot, window, lambda: window.open_location(location))
    nodes = zarrfs.open(location)
    if as_labels:
        wait_until_opened(qtbot, window, lambda: window.session.show_as_labels(nodes["one"], location, "one"))
    with qtbot.waitSignal(window.session.overlays_changed, timeout=TIMEOUT_MILLISECONDS):
        window.session.add_labels(nodes["two"], location, "two")
    window.session.change_labels(int(as_labels), opacity=0.25, contour=2, highlighted=7)
    save_windows(tmp_path / "session.json", [window_state(window)])

    restored = new_window()
    with qtbot.waitSignal(restored.session.overlays_changed, timeout=TIMEOUT_MILLISECONDS):
        restore_window(restored, *load_windows(tmp_path / "session.json"))
    assert restored.display_settings == window.display_settings
    assert [image.name for image in restored.session.label_images] == ["one", "two"][not as_labels :]
    assert not restored.notice.isVisible()
    assert window_state(restored).labels == window_state(window).labels


def test_each_window_regains_its_own_panels(
    qtbot: QtBot, new_window: Callable[[], MainWindow], hierarchy: Path
) -> None:
    states = []
    for is_shown in (False, True):
        window = new_window()
        wait_until_opened(qtbot, window, lambda window=window: window.open_location(str(hierarchy / "one")))
        dock = window.findChild(QDockWidget, "Hierarchy")
        assert dock is not None
        dock.setVisible(is_shown)
        states.append((window_state(window), is_shown))
        window.close()
    for state, is_shown in states:
        restored = new_window()
        wait_until_opened(qtbot, restored, lambda window=restored, state=state: restore_window(window, state))
        dock = restored.findChild(QDockWidget, "Hierarchy")
        assert dock is not None
        assert dock.isVisible() == is_shown


def test_closed_windows_are_forgotten_and_the_last_one_is_kept(
    qtbot: QtBot, new_window: Callable[[], MainWindow], hierarchy: Path, tmp_path: Path
) -> None:
    last = LastSession(tmp_path / "session.json")
    first, second = new_window(), new_window()
    for window, name in ((first, "one"), (second, "two")):
        last.add(window)
        wait_until_opened(qtbot, window, lambda w=window, n=name: w.open_location(str(hierarchy / n)))
    first.close()
    assert len(last.load()) == 2, "all windows may be closed together"
    qtbot.waitUntil(lambda: len(last.load()) == 1, timeout=TIMEOUT_MILLISECONDS)
    second.close()
    assert [state.locations for state in last.load()] == [(str(hierarchy / "two"),)]


def test_a_view_of_the_whole_plane_remains_fitted(
    qtbot: QtBot, open_in_window: OpenInWindow, hierarchy: Path
) -> None:
    window = open_in_window(hierarchy / "one")
    whole = window.session.view("v", window.canvas.viewport)
    assert whole is not None
    window.canvas.zoom(3)
    part = window.session.view("v", window.canvas.viewport)
    assert part is not None
    for view, is_fitted in ((part, False), (whole, True)):
        wait_until_opened(qtbot, window, lambda view=view: window.session.open_view(view))
        window.resize(window.width() - 150, window.height() - 100)
        restored = window.canvas.viewport
        window.canvas.fit()
        assert (window.canvas.viewport == restored) == is_fitted
