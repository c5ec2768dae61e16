"""Several images in one window: over the first one, beside it with linked views, and at their places in a scene."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PyQt6.QtCore import Qt
from PyQt6.QtGui import QColor, QImage, QPainter
from pytestqt.qtbot import QtBot
from zarrfs_viewer.qt.canvas.image_layers import ImageLayer, ImageLayers
from zarrfs_viewer.qt.canvas.painting import PictureOverlay, draw_picture_overlay
from zarrfs_viewer.qt.panels.hierarchy.hierarchy import Hierarchy
from zarrfs_viewer.qt.panels.hierarchy.tree_model import SUMMARY
from zarrfs_viewer.qt.panels.layers.layers_view import LayersView
from zarrfs_viewer.qt.panels.position.position import Position
from zarrfs_viewer.qt.window.main_window import MainWindow
from zarrfs_viewer.state.view_state import Viewport

import zarrfs
from tests.viewer.qt.waiting import TIMEOUT_MILLISECONDS, is_exact, wait_until_exact, wait_until_opened

OpenInWindow = Callable[[object], MainWindow]


@pytest.fixture
def hierarchy(tmp_path: Path) -> Path:
    """Two stacks whose slices z have the values 20 z and 100 + 10 z, and a plane without z."""
    group = zarrfs.create_group(tmp_path / "a.zarr")
    for name, base, step in (("one", 0, 20), ("two", 100, 10)):
        data = np.zeros((5, 32, 32), "u1") + (base + step * np.arange(5, dtype="u1"))[:, None, None]
        group.create_array(name, data=data, chunks=(1, 32, 32), dimension_names=["z", "y", "x"])
    data = np.full((32, 32), 7, "u1")
    group.create_array("plane", data=data, chunks=(32, 32), dimension_names=["y", "x"])
    return tmp_path / "a.zarr"


def open_both(
    qtbot: QtBot, open_in_window: OpenInWindow, path: Path, title: str
) -> tuple[MainWindow, ImageLayers]:
    """Open the stack "one", and "two" as layer from the menu of the tree."""
    window = open_in_window(path)
    wait_until_exact(qtbot, window, lambda: window.session.change_channel(0, limits=(0.0, 255.0)))
    model = window.panel(Hierarchy).tree.model
    top = model.index(0, 0)
    window.panel(Hierarchy).tree.view.expand(top)
    qtbot.waitUntil(lambda: model.rowCount(top) == 3, timeout=TIMEOUT_MILLISECONDS)
    item = next(child for child in model.item(top).children or () if child.name == "two")
    model.request(item)
    qtbot.waitUntil(lambda: item.node is not None, timeout=TIMEOUT_MILLISECONDS)
    actions = {action.text(): action for action in window.panel(Hierarchy).tree.menu(item).actions()}
    layers = window.panel(LayersView).layers
    add(qtbot, layers, actions[title].trigger)
    layers.change_channel(0, limits=(0.0, 255.0))
    return window, layers


def add(qtbot: QtBot, layers: ImageLayers, act: Callable[[], object]) -> ImageLayer:
    """Call ``act``, which adds a layer, and wait until its image is open."""
    count = len(layers.layers)
    act()
    qtbot.waitUntil(lambda: len(layers.layers) == count + 1, timeout=TIMEOUT_MILLISECONDS)
    layer = layers.layers[-1]
    qtbot.waitUntil(lambda: layer.image is not None, timeout=TIMEOUT_MILLISECONDS)
    return layer


def current(layers: ImageLayers) -> ImageLayer:
    assert layers.current is not None
    return layers.current


def layer_value(layers: ImageLayers) -> int | None:
    """The value in the middle of the frame of the current layer; None while it is not drawn with its own limits."""
    frame = current(layers).frame
    if frame is None or not frame.complete or frame.state.settings != current(layers).displayed_settings():
        return None
    rows, columns = frame.pixels.shape
    return int(frame.pixels[rows // 2, columns // 2]) & 0xFF


def drawn_value(window: MainWindow) -> int:
    """The value in the middle of the picture of the main pane on the screen."""
    picture = window.canvas.grab().toImage()
    return picture.pixelColor(picture.width() // 2, picture.height() // 2).blue()


def test_two_images_are_linked(qtbot: QtBot, open_in_window: OpenInWindow, hierarchy: Path) -> None:
    window, layers = open_both(qtbot, open_in_window, hierarchy, "Show beside")
    assert layers.canvas.isVisible()
    assert window.panels.currentWidget() is window.panel(LayersView).panel
    model = window.panel(Hierarchy).tree.model
    names = {child.name: model.index_of(child) for child in model.tops[0].children or ()}
    assert names["one"].data(Qt.ItemDataRole.FontRole).bold()
    assert names["two"].data(Qt.ItemDataRole.FontRole).italic()
    assert names["two"].data(SUMMARY) == "5x32x32 uint8 · layer"
    assert names["two"].data(Qt.ItemDataRole.AccessibleTextRole).endswith(", layer")
    assert names["plane"].data(Qt.ItemDataRole.FontRole) is None
    qtbot.waitUntil(lambda: is_exact(window), timeout=TIMEOUT_MILLISECONDS)
    assert window.canvas.viewport.center == (15.5, 15.5)
    assert window.canvas.viewport.zoom < 1.01 * window.canvas.width() / 32, (
        "the first image is not fitted any more"
    )
    assert layers.canvas.viewport.center == (15.5, 15.5)
    for z in (4, 1):
        wait_until_exact(qtbot, window, lambda z=z: window.panel(Position).dimensions.set_position(0, z))
        qtbot.waitUntil(lambda z=z: layer_value(layers) == 100 + 10 * z, timeout=TIMEOUT_MILLISECONDS)
    wait_until_exact(qtbot, window, lambda: window.canvas.zoom(4))
    assert layers.canvas.viewport.zoom == pytest.approx(window.canvas.viewport.zoom)
    wait_until_exact(qtbot, window, lambda: layers.canvas.zoom(0.5))
    assert window.canvas.viewport.zoom == pytest.approx(layers.canvas.viewport.zoom)
    layers.canvas.stepped.emit(1)
    qtbot.waitUntil(lambda: layer_value(layers) == 120, timeout=TIMEOUT_MILLISECONDS)
    window.panel(LayersView).panel.remove.click()
    assert not layers.canvas.isVisible()
    assert window.panels.indexOf(window.panel(LayersView).panel) < 0


def test_a_layer_has_the_settings_that_were_changed_before(
    qtbot: QtBot, open_in_window: OpenInWindow, hierarchy: Path
) -> None:
    window = open_in_window(hierarchy / "two")
    wait_until_exact(qtbot, window, lambda: window.session.change_channel(0, colormap="magma", gamma=2.0))
    wait_until_opened(qtbot, window, lambda: window.open_location(str(hierarchy / "one")))
    layers = window.panel(LayersView).layers
    node = zarrfs.open(str(hierarchy))["two"]
    layer = add(qtbot, layers, lambda: layers.open(node, str(hierarchy), "two"))
    assert layer.settings is not None
    assert (layer.settings.channels[0].colormap, layer.settings.channels[0].gamma) == ("magma", 2.0)


@pytest.mark.parametrize(
    ("arrangement", "opacity", "expected"),
    [
        ("translucent", 0.5, (60 + 130) / 2),
        ("translucent", 1.0, 130),
        ("additive", 1.0, 190),
        ("minimum", 1.0, 60),
        ("difference", 1.0, 70),
    ],
)
def test_a_layer_is_blended(
    qtbot: QtBot,
    open_in_window: OpenInWindow,
    hierarchy: Path,
    arrangement: str,
    opacity: float,
    expected: float,
) -> None:
    window, layers = open_both(qtbot, open_in_window, hierarchy, "Show over the image")
    assert not layers.canvas.isVisible()
    wait_until_exact(qtbot, window, lambda: window.panel(Position).dimensions.set_position(0, 3))
    panel = window.panel(LayersView).panel
    panel.arrangement.setCurrentIndex(panel.arrangement.findData(arrangement))
    panel.arrangement.activated.emit(panel.arrangement.currentIndex())
    panel.opacity.setValue(round(100 * opacity))
    qtbot.waitUntil(lambda: layer_value(layers) == 130, timeout=TIMEOUT_MILLISECONDS)
    qtbot.waitUntil(lambda: abs(drawn_value(window) - expected) <= 2, timeout=TIMEOUT_MILLISECONDS)
    panel.remove.click()
    qtbot.waitUntil(lambda: abs(drawn_value(window) - 60) <= 1, timeout=TIMEOUT_MILLISECONDS)


@pytest.mark.parametrize(
    "image_format", [QImage.Format.Format_RGB32, QImage.Format.Format_ARGB32_Premultiplied]
)
@pytest.mark.parametrize(("opacity", "expected"), [(0.0, 200), (0.25, 232), (0.5, 255), (1.0, 255)])
def test_a_sum_is_limited_after_the_layer_was_darkened(
    qapp: object, image_format: QImage.Format, opacity: float, expected: int
) -> None:
    drawn = QImage(8, 8, image_format)
    drawn.fill(QColor(200, 200, 200))
    layer = QImage(8, 8, image_format)
    layer.fill(QColor(130, 130, 130))
    painter = QPainter(drawn)
    overlay = PictureOverlay(layer, (0, 0, 8, 8), "additive", opacity)
    draw_picture_overlay(painter, Viewport(8, 8, (4.0, 4.0), 1.0), overlay)
    painter.end()
    assert abs(drawn.pixelColor(4, 4).red() - expected) <= 1
    assert layer.pixelColor(4, 4).red() == 130


def test_a_layer_is_hidden_if_it_lacks_the_displayed_axes(
    qtbot: QtBot, open_in_window: OpenInWindow, hierarchy: Path
) -> None:
    window, layers = open_both(qtbot, open_in_window, hierarchy, "Show beside")
    plane = zarrfs.open(str(hierarchy))["plane"]
    add(qtbot, layers, lambda: layers.open(plane, str(hierarchy), "plane", "beside"))
    assert layers.canvas.isVisible()
    wait_until_exact(qtbot, window, window.actions_by_name["next_axes"].trigger)
    assert not layers.canvas.isVisible()
    assert "does not have the displayed axes" in window.notice.text()
    window.open_location(str(hierarchy / "plane"))
    qtbot.waitUntil(
        lambda: window.image is not None and window.image.name == "plane", timeout=TIMEOUT_MILLISECONDS
    )
    qtbot.waitUntil(lambda: is_exact(window), timeout=TIMEOUT_MILLISECONDS)
    assert layers.canvas.isVisible()


def test_a_difference_of_equal_pictures_is_black_at_first(
    qtbot: QtBot, open_in_window: OpenInWindow, hierarchy: Path
) -> None:
    window, layers = open_both(qtbot, open_in_window, hierarchy, "Show over the image")
    assert current(layers).opacity == 0.5
    panel = window.panel(LayersView).panel
    for name, opacity in (("difference", 1.0), ("translucent", 0.5), ("minimum", 1.0)):
        panel.arrangement.setCurrentIndex(panel.arrangement.findData(name))
        panel.arrangement.activated.emit(panel.arrangement.currentIndex())
        assert (current(layers).arrangement, current(layers).opacity) == (name, opacity)
        assert panel.opacity.value() == 100 * opacity
    panel.opacity.setValue(30)
    assert (current(layers).arrangement, current(layers).opacity) == ("minimum", 0.3)


def test_the_first_image_is_displayed_when_the_last_layer_is_removed(
    qtbot: QtBot, open_in_window: OpenInWindow, hierarchy: Path
) -> None:
    window, layers = open_both(qtbot, open_in_window, hierarchy, "Show over the image")
    wait_until_exact(qtbot, window, lambda: window.panel(Position).dimensions.set_position(0, 3))
    layers.show(None, False)
    layers.show(layers.layers[0], False)
    qtbot.waitUntil(lambda: drawn_value(window) == 22, timeout=TIMEOUT_MILLISECONDS)  # the background
    layers.remove(layers.layers[0])
    assert abs(drawn_value(window) - 60) <= 1
