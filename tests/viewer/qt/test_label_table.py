"""Labels in a window: shown from the tree, picked by a click, listed with their properties, and found again."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PyQt6.QtCore import QPoint, Qt
from PyQt6.QtGui import QGuiApplication
from pytestqt.qtbot import QtBot
from zarrfs_viewer.qt.panels.channels.channels import Channels
from zarrfs_viewer.qt.panels.hierarchy.hierarchy import Hierarchy
from zarrfs_viewer.qt.panels.labels.labels_panel import Labels
from zarrfs_viewer.qt.panels.position.position import Position
from zarrfs_viewer.qt.window.main_window import MainWindow

import zarrfs
from tests.viewer.qt.waiting import TIMEOUT_MILLISECONDS, is_exact, wait_until_exact, wait_until_opened
from zarrfs.synthetic import make_picture, write_image

OpenInWindow = Callable[[object], MainWindow]


@pytest.fixture
def cells() -> np.ndarray:
    data = np.zeros((6, 64, 64), "u4")
    data[1, 4:20, 4:20] = 11
    data[4, 30:60, 30:50] = 22
    return data


@pytest.fixture
def hierarchy(tmp_path: Path, cells: np.ndarray) -> Path:
    """A group with an image, and integers that are labels without metadata that say so."""
    group = zarrfs.create_group(tmp_path / "a.zarr")
    names = ["z", "y", "x"]
    ramp = np.broadcast_to(np.arange(64, dtype="u2"), cells.shape)
    group.create_array("image", data=ramp, chunks=(1, 32, 32), dimension_names=names)
    ome = {"version": "0.5", "image-label": {"properties": [{"label-value": 22, "class": "mitosis"}]}}
    group.create_array(
        "segments", data=cells, chunks=(1, 32, 32), dimension_names=names, attributes={"ome": ome}
    )
    group.create_array("plain", data=cells, chunks=(1, 32, 32), dimension_names=names)
    return tmp_path / "a.zarr"


def run_menu(qtbot: QtBot, window: MainWindow, name: str, title: str) -> None:
    """Run an entry of the context menu of a member of the opened group."""
    model = window.panel(Hierarchy).tree.model
    top = model.index(0, 0)
    window.panel(Hierarchy).tree.view.expand(top)
    qtbot.waitUntil(lambda: model.rowCount(top) > 0, timeout=TIMEOUT_MILLISECONDS)
    item = next(child for child in model.item(top).children or () if child.name == name)
    model.request(item)
    qtbot.waitUntil(lambda: item.node is not None, timeout=TIMEOUT_MILLISECONDS)
    actions = {action.text(): action for action in window.panel(Hierarchy).tree.menu(item).actions()}
    actions[title].trigger()


def click(qtbot: QtBot, window: MainWindow, row: float, column: float) -> None:
    x, y = window.canvas.viewport.to_device(row, column)
    qtbot.mouseClick(window.canvas, Qt.MouseButton.LeftButton, pos=QPoint(round(x), round(y)))


def wait_for_table(qtbot: QtBot, window: MainWindow, count: int) -> None:
    window.panels.setCurrentWidget(window.panel(Labels).panel)
    table = window.panel(Labels).panel.table
    qtbot.waitUntil(lambda: table.model.rowCount() == count, timeout=TIMEOUT_MILLISECONDS)


def test_an_array_of_integers_is_shown_as_labels_over_the_image(
    qtbot: QtBot, open_in_window: OpenInWindow, hierarchy: Path
) -> None:
    window = open_in_window(hierarchy)
    assert window.image is not None
    wait_until_opened(qtbot, window, lambda: window.session.open_image("image"))
    run_menu(qtbot, window, "segments", "Show as labels over the image")
    qtbot.waitUntil(lambda: len(window.session.overlays) == 1, timeout=TIMEOUT_MILLISECONDS)
    wait_until_exact(qtbot, window, lambda: window.panel(Position).dimensions.set_position(0, 4))
    frame = window.canvas.frame
    assert frame is not None
    assert frame.state.layers[-1].labels is not None
    wait_for_table(qtbot, window, 2)
    model = window.panel(Labels).panel.table.model
    assert [model.headerData(n, Qt.Orientation.Horizontal) for n in range(3)] == [
        "Label",
        "Size (px)",
        "class",
    ]
    assert [[model.index(row, column).data() for column in range(3)] for row in range(2)] == [
        ["11", "256", ""],
        ["22", "600", "mitosis"],
    ]


def test_the_channels_of_a_label_image_are_explained(open_in_window: OpenInWindow, tmp_path: Path) -> None:
    path = tmp_path / "cells.ome.zarr"
    write_image(path, make_picture((4, 96, 96)))
    window = open_in_window(path / "labels" / "nuclei")
    assert window.panels.currentWidget() is window.panel(Labels).panel
    window.panels.setCurrentWidget(window.panel(Channels).panel)
    assert "consists of labels" in window.panel(Channels).panel.hint.text()
    assert window.panel(Channels).panel.hint.isVisible()
    assert not window.panel(Channels).panel.plot.isVisible()
    open_in_window(path)
    window.panels.setCurrentWidget(window.panel(Channels).panel)
    assert not window.panel(Channels).panel.hint.isVisible()
    assert window.panel(Channels).panel.plot.isVisible()


def test_labels_are_picked_highlighted_and_shown_alone(
    qtbot: QtBot, open_in_window: OpenInWindow, hierarchy: Path
) -> None:
    window = open_in_window(hierarchy / "segments")
    assert window.image is not None
    assert window.image.kind == "labels"
    wait_until_exact(qtbot, window, lambda: window.panel(Position).dimensions.set_position(0, 4))
    wait_for_table(qtbot, window, 2)
    table = window.panel(Labels).panel.table
    wait_until_exact(qtbot, window, lambda: click(qtbot, window, 45, 40))
    assert table.selected() == 22
    assert window.display_settings is not None
    assert (window.display_settings.labels[0].highlighted, window.display_settings.labels[0].selected) == (
        22,
        None,
    )
    frame = window.canvas.frame
    assert frame is not None
    assert (frame.pixels == 0xFFFFFFFF).any()
    wait_until_exact(qtbot, window, lambda: table.single.setChecked(True))
    assert window.display_settings.labels[0].selected == 22
    undo, redo = window.actions_by_name["undo"], window.actions_by_name["redo"]
    wait_until_exact(qtbot, window, undo.trigger)
    assert not table.single.isChecked(), "undo shows all labels"
    wait_until_exact(qtbot, window, undo.trigger)
    assert table.selected() is None
    wait_until_exact(qtbot, window, redo.trigger)
    assert table.selected() == 22
    wait_until_exact(qtbot, window, redo.trigger)
    assert table.single.isChecked()
    assert window.display_settings.labels[0].selected == 22
    wait_until_exact(qtbot, window, lambda: click(qtbot, window, 2, 2))
    assert table.selected() is None
    assert window.display_settings.labels[0].highlighted is None


def test_the_table_moves_the_picture_to_a_label(
    qtbot: QtBot, open_in_window: OpenInWindow, hierarchy: Path, cells: np.ndarray
) -> None:
    window = open_in_window(hierarchy / "segments")
    wait_for_table(qtbot, window, 2)
    table = window.panel(Labels).panel.table
    for value in (22, 11):
        table.select(value)
        with qtbot.waitSignal(table.position_selected, timeout=TIMEOUT_MILLISECONDS):
            qtbot.keyClick(table.view, Qt.Key.Key_Return)
        assert window.display_settings is not None
        z = int(window.display_settings.position[0])
        row, column = (round(part) for part in window.canvas.viewport.center)
        assert cells[z, row, column] == value
    columns = table.view.horizontalHeader()
    assert columns is not None
    columns.setSortIndicator(1, Qt.SortOrder.DescendingOrder)
    assert [table.filtered.index(row, 0).data() for row in range(2)] == ["22", "11"]
    table.search.setText("mitosis")
    assert table.filtered.rowCount() == 1
    table.copy.click()
    clipboard = QGuiApplication.clipboard()
    assert clipboard is not None
    assert "22,600" in clipboard.text()


def test_labels_are_not_offered_for_floats_and_need_an_image(
    qtbot: QtBot, open_in_window: OpenInWindow, tmp_path: Path
) -> None:
    group = zarrfs.create_group(tmp_path / "a.zarr")
    group.create_array("f", data=np.ones((8, 8), "f4"), chunks=(8, 8))
    group.create_array("i", data=np.ones((8, 8), "u1"), chunks=(8, 8))
    window = open_in_window(tmp_path / "a.zarr")
    model, top = window.panel(Hierarchy).tree.model, window.panel(Hierarchy).tree.model.index(0, 0)
    qtbot.waitUntil(
        lambda: all(child.node is not None for child in model.item(top).children or (model.item(top),)),
        timeout=TIMEOUT_MILLISECONDS,
    )
    titles = {
        child.name: [action.text() for action in window.panel(Hierarchy).tree.menu(child).actions()]
        for child in model.item(top).children or ()
    }
    assert "Show as labels" in titles["i"]
    assert "Show as labels" not in titles["f"]
    run_menu(qtbot, window, "i", "Show as labels")
    qtbot.waitUntil(lambda: window.image is not None and window.image.kind == "labels")
    qtbot.waitUntil(lambda: is_exact(window), timeout=TIMEOUT_MILLISECONDS)
    assert window.session.overlays == ()
