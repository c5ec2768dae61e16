"""The readable summary of an image, copying of values, and going to a coordinate."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PyQt6.QtCore import QLocale, Qt
from PyQt6.QtGui import QGuiApplication
from PyQt6.QtWidgets import QDialog, QMenu, QTreeWidget
from pytestqt.qtbot import QtBot
from zarrfs_viewer.qt.panels.metadata.metadata import Metadata
from zarrfs_viewer.qt.panels.position.goto_dialog import GoToDialog
from zarrfs_viewer.qt.panels.position.position import Position
from zarrfs_viewer.qt.window.main_window import MainWindow

import zarrfs
from tests.viewer.qt.waiting import TIMEOUT_MILLISECONDS, wait_until_exact

OpenInWindow = Callable[[object], MainWindow]


def rows(tree: QTreeWidget) -> dict[str, str]:
    items = [tree.topLevelItem(row) for row in range(tree.topLevelItemCount())]
    return {item.text(0): item.text(1) for item in items if item is not None}


def children(tree: QTreeWidget, key: str) -> dict[str, str]:
    found = tree.findItems(key, Qt.MatchFlag.MatchExactly)
    if not found:
        return {}
    parent = found[0]
    items = [parent.child(row) for row in range(parent.childCount())]
    return {item.text(0): item.text(1) for item in items if item is not None}


def test_the_summary_of_an_image_is_readable(qtbot: QtBot, open_in_window: OpenInWindow, cells: Path) -> None:
    window = open_in_window(cells)
    summary = window.panel(Metadata).panel.summary
    qtbot.waitUntil(lambda: "Compression ratio" in rows(summary), timeout=TIMEOUT_MILLISECONDS)
    shown = rows(summary)
    assert window.image is not None
    z, y, x = (window.image.levels[0].scale[axis] for axis in (1, 2, 3))
    assert shown["Axes"] == "c z y x"
    assert children(summary, "Pixel size") == {"z": f"{z:g} µm", "y": f"{y:g} µm", "x": f"{x:g} µm"}
    assert children(summary, "Extent")["x"] == f"{96 * x:.6g} µm"
    assert children(summary, "Levels") == {
        "0": "3 x 4 x 96 x 96",
        "1": "3 x 4 x 48 x 48",
        "2": "3 x 4 x 24 x 24",
    }
    assert shown["Shape"] == "3 x 4 x 96 x 96"
    assert shown["Data type"] == "uint16"
    assert shown["OME-NGFF"] == "0.5"
    assert float(shown["Compression ratio"]) > 1
    assert next(iter(shown)) == "Image"


def test_the_summary_of_an_array_and_of_a_plain_group(
    qtbot: QtBot, open_in_window: OpenInWindow, tmp_path: Path
) -> None:
    zarrfs.create_group(tmp_path / "g.zarr")
    array = zarrfs.create_array(tmp_path / "g.zarr", "a", data=np.zeros((8, 16), "u1"), chunks=(4, 8))
    window = open_in_window(tmp_path / "g.zarr")
    qtbot.waitUntil(
        lambda: rows(window.panel(Metadata).panel.summary).get("Group") == "/", timeout=TIMEOUT_MILLISECONDS
    )
    window.panel(Metadata).panel.show_node(array)
    qtbot.waitUntil(
        lambda: rows(window.panel(Metadata).panel.summary).get("Shape") == "8 x 16",
        timeout=TIMEOUT_MILLISECONDS,
    )
    assert rows(window.panel(Metadata).panel.summary)["Chunks"] == "4 x 8"


def test_the_summary_has_the_status_of_the_metadata_with_details(
    qtbot: QtBot, open_in_window: OpenInWindow, cells: Path
) -> None:
    window = open_in_window(cells)
    summary = window.panel(Metadata).panel.summary
    window.panels.setCurrentWidget(window.panel(Metadata).panel)
    qtbot.waitUntil(lambda: rows(summary).get("OME-NGFF") == "0.5, valid", timeout=TIMEOUT_MILLISECONDS)
    group = zarrfs.open_group(cells, mode="r+")
    attributes = group.attrs.asdict()
    attributes["ome"]["multiscales"][0]["axes"][-1]["type"] = 5
    group.attrs.put(attributes)
    window.panel(Metadata).panel.show_node(zarrfs.open_group(cells))
    qtbot.waitUntil(lambda: "Status" in children(summary, "OME-NGFF"), timeout=TIMEOUT_MILLISECONDS)
    details = children(summary, "OME-NGFF")
    assert details["Status"].startswith("not valid, ")
    assert any("/axes/3" in text for text in details.values())


def test_values_and_pointers_are_copied(
    open_in_window: OpenInWindow, cells: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    window = open_in_window(cells)
    menus: list[dict[str, str]] = []
    clipboard = QGuiApplication.clipboard()
    assert clipboard is not None

    def trigger_all(menu: QMenu, *_: object) -> None:
        copied = {}
        for action in menu.actions():
            action.trigger()
            copied[action.text()] = clipboard.text()
        menus.append(copied)

    monkeypatch.setattr(QMenu, "exec", trigger_all)
    window.panels.setCurrentWidget(window.panel(Metadata).panel)
    window.panel(Metadata).panel.tabs.setCurrentWidget(window.panel(Metadata).panel.attributes)
    window.panel(Metadata).panel.go_to("/ome/version")
    tree = window.panel(Metadata).panel.attributes
    window.panel(Metadata).panel._menu(tree, tree.visualItemRect(tree.currentItem()).center())
    assert menus == [{"Copy value": "0.5", "Copy JSON": '"0.5"', "Copy JSON pointer": "/ome/version"}]
    window.panel(Metadata).panel.tabs.setCurrentWidget(window.panel(Metadata).panel.summary)
    summary = window.panel(Metadata).panel.summary
    window.panel(Metadata).panel._menu(summary, summary.visualItemRect(summary.topLevelItem(0)).center())
    assert "Copy JSON pointer" not in menus[1]


def test_a_coordinate_is_shown_in_the_middle(
    qtbot: QtBot, open_in_window: OpenInWindow, cells: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    window = open_in_window(cells)
    image = window.image
    assert image is not None

    def enter(dialog: GoToDialog) -> int:
        assert list(dialog.boxes) == [1, 2, 3]
        dialog.unit.setCurrentIndex(1)
        assert dialog.boxes[1].suffix() == " µm"
        dialog.boxes[1].setValue(image.to_physical(1, 3))
        dialog.boxes[2].setValue(image.to_physical(2, 20))
        dialog.unit.setCurrentIndex(0)
        assert dialog.boxes[1].value() == pytest.approx(3)
        dialog.boxes[3].setValue(50)
        return QDialog.DialogCode.Accepted.value

    monkeypatch.setattr(GoToDialog, "exec", enter)
    wait_until_exact(qtbot, window, window.actions_by_name["go_to"].trigger)
    assert window.display_settings is not None
    assert window.display_settings.position[1] == pytest.approx(3)
    assert window.canvas.viewport.center == pytest.approx((20, 50))


def test_coordinates_are_limited_to_the_image(open_in_window: OpenInWindow, cells: Path) -> None:
    window = open_in_window(cells)
    assert window.image is not None
    assert window.display_settings is not None
    dialog = GoToDialog(window.image, window.display_settings, (-40.0, 1e9), window)
    assert dialog.position()[2:] == (0.0, 95.0)
    dialog.boxes[1].setValue(1e6)
    assert dialog.position()[1] == 3.0
    dialog.deleteLater()


def test_without_an_image_a_position_cannot_be_requested(window: MainWindow) -> None:
    assert not window.actions_by_name["go_to"].isEnabled()
    window.panel(Position).ask_position()
    assert window.notice.text() == "No image is open."


@pytest.mark.parametrize("typed", ["2.5", "2,5"])
def test_coordinates_are_typed_with_a_point_or_a_comma(
    qtbot: QtBot, open_in_window: OpenInWindow, cells: Path, typed: str
) -> None:
    window = open_in_window(cells)
    assert window.image is not None
    assert window.display_settings is not None
    dialog = GoToDialog(window.image, window.display_settings, (1.0, 1.0), window)
    box = dialog.boxes[3]
    box.setLocale(QLocale("de_DE"))
    box.selectAll()
    qtbot.keyClicks(box, typed)
    assert dialog.position()[3] == 2.5
    dialog.deleteLater()
