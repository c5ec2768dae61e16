"""Two images in one window: beside each other with linked views, and blended."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PyQt6.QtCore import Qt
from PyQt6.QtGui import QColor, QImage, QPainter
from pytestqt.qtbot import QtBot
from zarrfs_viewer.qt.canvas.painting import PictureOverlay, draw_picture_overlay
from zarrfs_viewer.qt.canvas.second_image import SecondImage
from zarrfs_viewer.qt.panels.hierarchy.hierarchy import Hierarchy
from zarrfs_viewer.qt.panels.hierarchy.tree_model import SUMMARY
from zarrfs_viewer.qt.panels.position.position import Position
from zarrfs_viewer.qt.panels.second.second_image_view import SecondImageView
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
) -> tuple[MainWindow, SecondImage]:
    """Open the stack "one", and "two" as second image from the menu of the tree."""
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
    second = window.panel(SecondImageView).image
    with qtbot.waitSignal(second.image_changed, timeout=TIMEOUT_MILLISECONDS):
        actions[title].trigger()
    second.change_channel(0, limits=(0.0, 255.0))
    return window, second


def second_value(second: SecondImage) -> int | None:
    """The value in the middle of the frame of the second image; None while it is not drawn with its own limits."""
    frame = second.frame
    if frame is None or not frame.complete or frame.state.settings != second.displayed_settings():
        return None
    rows, columns = frame.pixels.shape
    return int(frame.pixels[rows // 2, columns // 2]) & 0xFF


def drawn_value(window: MainWindow) -> int:
    """The value in the middle of the picture of the main pane on the screen."""
    picture = window.canvas.grab().toImage()
    return picture.pixelColor(picture.width() // 2, picture.height() // 2).blue()


def test_two_images_are_linked(qtbot: QtBot, open_in_window: OpenInWindow, hierarchy: Path) -> None:
    window, second = open_both(qtbot, open_in_window, hierarchy, "Show beside")
    assert second.canvas.isVisible()
    assert window.panels.currentWidget() is window.panel(SecondImageView).panel
    model = window.panel(Hierarchy).tree.model
    names = {child.name: model.index_of(child) for child in model.tops[0].children or ()}
    assert names["one"].data(Qt.ItemDataRole.FontRole).bold()
    assert names["two"].data(Qt.ItemDataRole.FontRole).italic()
    assert names["two"].data(SUMMARY) == "5x32x32 uint8 · second image"
    assert names["two"].data(Qt.ItemDataRole.AccessibleTextRole).endswith(", second image")
    assert names["plane"].data(Qt.ItemDataRole.FontRole) is None
    qtbot.waitUntil(lambda: is_exact(window), timeout=TIMEOUT_MILLISECONDS)
    assert window.canvas.viewport.center == (15.5, 15.5)
    assert window.canvas.viewport.zoom < 1.01 * window.canvas.width() / 32, (
        "the first image is not fitted any more"
    )
    assert second.canvas.viewport.center == (15.5, 15.5)
    for z in (4, 1):
        wait_until_exact(qtbot, window, lambda z=z: window.panel(Position).dimensions.set_position(0, z))
        qtbot.waitUntil(lambda z=z: second_value(second) == 100 + 10 * z, timeout=TIMEOUT_MILLISECONDS)
    wait_until_exact(qtbot, window, lambda: window.canvas.zoom(4))
    assert second.canvas.viewport.zoom == pytest.approx(window.canvas.viewport.zoom)
    wait_until_exact(qtbot, window, lambda: second.canvas.zoom(0.5))
    assert window.canvas.viewport.zoom == pytest.approx(second.canvas.viewport.zoom)
    second.canvas.stepped.emit(1)
    qtbot.waitUntil(lambda: second_value(second) == 120, timeout=TIMEOUT_MILLISECONDS)
    window.panel(SecondImageView).panel.remove.click()
    assert not second.canvas.isVisible()
    assert window.panels.indexOf(window.panel(SecondImageView).panel) < 0


def test_the_second_image_has_the_settings_that_were_changed_before(
    qtbot: QtBot, open_in_window: OpenInWindow, hierarchy: Path
) -> None:
    window = open_in_window(hierarchy / "two")
    wait_until_exact(qtbot, window, lambda: window.session.change_channel(0, colormap="magma", gamma=2.0))
    wait_until_opened(qtbot, window, lambda: window.open_location(str(hierarchy / "one")))
    second = window.panel(SecondImageView).image
    with qtbot.waitSignal(second.image_changed, timeout=TIMEOUT_MILLISECONDS):
        second.open(zarrfs.open(str(hierarchy))["two"], str(hierarchy), "two")
    assert second.settings is not None
    assert (second.settings.channels[0].colormap, second.settings.channels[0].gamma) == ("magma", 2.0)


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
def test_the_second_image_is_blended(
    qtbot: QtBot,
    open_in_window: OpenInWindow,
    hierarchy: Path,
    arrangement: str,
    opacity: float,
    expected: float,
) -> None:
    window, second = open_both(qtbot, open_in_window, hierarchy, "Show over the image")
    assert not second.canvas.isVisible()
    wait_until_exact(qtbot, window, lambda: window.panel(Position).dimensions.set_position(0, 3))
    panel = window.panel(SecondImageView).panel
    panel.arrangement.setCurrentIndex(panel.arrangement.findData(arrangement))
    panel.arrangement.activated.emit(panel.arrangement.currentIndex())
    panel.opacity.setValue(round(100 * opacity))
    qtbot.waitUntil(lambda: second_value(second) == 130, timeout=TIMEOUT_MILLISECONDS)
    qtbot.waitUntil(lambda: abs(drawn_value(window) - expected) <= 2, timeout=TIMEOUT_MILLISECONDS)
    second.close_image()
    qtbot.waitUntil(lambda: abs(drawn_value(window) - 60) <= 1, timeout=TIMEOUT_MILLISECONDS)


@pytest.mark.parametrize(
    "image_format", [QImage.Format.Format_RGB32, QImage.Format.Format_ARGB32_Premultiplied]
)
@pytest.mark.parametrize(("opacity", "expected"), [(0.0, 200), (0.25, 232), (0.5, 255), (1.0, 255)])
def test_a_sum_is_limited_after_the_second_image_was_darkened(
    qapp: object, image_format: QImage.Format, opacity: float, expected: int
) -> None:
    drawn = QImage(8, 8, image_format)
    drawn.fill(QColor(200, 200, 200))
    second = QImage(8, 8, image_format)
    second.fill(QColor(130, 130, 130))
    painter = QPainter(drawn)
    overlay = PictureOverlay(second, (0, 0, 8, 8), "additive", opacity)
    draw_picture_overlay(painter, Viewport(8, 8, (4.0, 4.0), 1.0), overlay)
    painter.end()
    assert abs(drawn.pixelColor(4, 4).red() - expected) <= 1
    assert second.pixelColor(4, 4).red() == 130


def test_the_second_image_is_hidden_if_it_lacks_the_displayed_axes(
    qtbot: QtBot, open_in_window: OpenInWindow, hierarchy: Path
) -> None:
    window, second = open_both(qtbot, open_in_window, hierarchy, "Show beside")
    second.open(zarrfs.open(str(hierarchy))["plane"], str(hierarchy), "plane")
    qtbot.waitUntil(
        lambda: second.image is not None and second.image.name == "plane", timeout=TIMEOUT_MILLISECONDS
    )
    assert second.canvas.isVisible()
    wait_until_exact(qtbot, window, window.actions_by_name["next_axes"].trigger)
    assert not second.canvas.isVisible()
    assert "does not have the displayed axes" in window.notice.text()
    window.open_location(str(hierarchy / "plane"))
    qtbot.waitUntil(
        lambda: window.image is not None and window.image.name == "plane", timeout=TIMEOUT_MILLISECONDS
    )
    qtbot.waitUntil(lambda: is_exact(window), timeout=TIMEOUT_MILLISECONDS)
    assert second.canvas.isVisible()


def test_a_difference_of_equal_pictures_is_black_at_first(
    qtbot: QtBot, open_in_window: OpenInWindow, hierarchy: Path
) -> None:
    window, second = open_both(qtbot, open_in_window, hierarchy, "Show over the image")
    assert second.opacity == 0.5
    panel = window.panel(SecondImageView).panel
    for name, opacity in (("difference", 1.0), ("translucent", 0.5), ("minimum", 1.0)):
        panel.arrangement.setCurrentIndex(panel.arrangement.findData(name))
        panel.arrangement.activated.emit(panel.arrangement.currentIndex())
        assert (second.arrangement, second.opacity) == (name, opacity)
        assert panel.opacity.value() == 100 * opacity
    panel.opacity.setValue(30)
    assert (second.arrangement, second.opacity) == ("minimum", 0.3)
