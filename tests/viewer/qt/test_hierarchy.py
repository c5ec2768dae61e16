"""The hierarchy: lazily opened nodes, folded levels, search in branches that are not expanded, the context menu."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PyQt6.QtCore import QModelIndex, Qt
from PyQt6.QtGui import QContextMenuEvent
from PyQt6.QtWidgets import QApplication, QMenu
from pytestqt.modeltest import ModelTester
from pytestqt.qtbot import QtBot
from zarrfs_viewer.qt.panels.hierarchy.hierarchy import Hierarchy
from zarrfs_viewer.qt.panels.hierarchy.tree_items import describe, shape_text
from zarrfs_viewer.qt.panels.hierarchy.tree_model import SUMMARY
from zarrfs_viewer.qt.panels.hierarchy.tree_panel import TreePanel
from zarrfs_viewer.qt.window.main_window import MainWindow

import zarrfs
from tests.viewer.qt.hierarchies import write_plate, write_series
from tests.viewer.qt.waiting import TIMEOUT_MILLISECONDS, wait_until_exact, wait_until_opened

OpenInWindow = Callable[[object], MainWindow]


@pytest.fixture
def branches(tmp_path: Path) -> Path:
    """Arrays ``deep0`` to ``deep2`` two groups below the root, and an array ``flat``."""
    path = tmp_path / "branches.zarr"
    zarrfs.create_group(path)
    zarrfs.create_array(path, "flat", data=np.zeros((16, 16), "u1"))
    for number in range(3):
        zarrfs.create_array(path, f"outer{number}/inner/deep{number}", data=np.zeros((4, 8), "i2"))
    return path


def names_below(panel: TreePanel, index: QModelIndex) -> list[str]:
    return [panel.model.index(row, 0, index).data() for row in range(panel.model.rowCount(index))]


def shown_names(panel: TreePanel) -> list[str]:
    """Return the names of all rows that are visible without expanding anything, from top to bottom."""
    names, index = [], panel.model.index(0, 0)
    while index.isValid():
        names.append(index.data())
        index = panel.view.indexBelow(index)
    return names


def test_an_image_is_one_row_with_a_summary_and_its_levels_are_folded(
    qtbot: QtBot, open_in_window: OpenInWindow, cells: Path
) -> None:
    window = open_in_window(cells)
    panel = window.panel(Hierarchy).tree
    top = panel.model.index(0, 0)
    qtbot.waitUntil(lambda: panel.model.tops[0].kind == "image", timeout=TIMEOUT_MILLISECONDS)
    shape = "x".join(map(str, zarrfs.open(cells, "0").shape))
    assert top.data(SUMMARY) == f"{shape} uint16, 3 levels"
    assert shown_names(panel) == ["cells.ome.zarr"]
    assert panel.model.hasChildren(top)
    panel.view.expand(top)
    qtbot.waitUntil(lambda: "0" in names_below(panel, top), timeout=TIMEOUT_MILLISECONDS)


def test_a_level_is_displayed_with_the_channels_and_the_scale_of_its_image(
    qtbot: QtBot, window: MainWindow, cells: Path, branches: Path
) -> None:
    window.open_location(str(cells))
    qtbot.waitUntil(lambda: window.image is not None, timeout=TIMEOUT_MILLISECONDS)
    expected = window.image
    assert expected is not None
    panel = window.panel(Hierarchy).tree
    top = panel.model.index(0, 0)
    panel.view.expand(top)
    children = lambda: panel.model.tops[0].children or []  # noqa: E731
    qtbot.waitUntil(
        lambda: bool(children()) and all(child.description for child in children()),
        timeout=TIMEOUT_MILLISECONDS,
    )
    window.open_location(str(branches))
    qtbot.waitUntil(
        lambda: window.image is not None and window.image.name == "flat", timeout=TIMEOUT_MILLISECONDS
    )
    wait_until_exact(qtbot, window, lambda: None)
    level = panel.model.index(names_below(panel, top).index("1"), 0, top)
    panel.view.activated.emit(level)
    qtbot.waitUntil(
        lambda: window.display_settings is not None and window.display_settings.level_lock == 1,
        timeout=TIMEOUT_MILLISECONDS,
    )
    assert window.image is not None
    assert window.image.axes == expected.axes
    assert window.image.levels[0].scale == expected.levels[0].scale
    assert [c.colormap for c in window.image.channels] == [c.colormap for c in expected.channels]


def test_the_name_of_the_displayed_image_is_bold(
    qtbot: QtBot, open_in_window: OpenInWindow, cells: Path, branches: Path
) -> None:
    window = open_in_window(cells)
    qtbot.waitUntil(
        lambda: window.panel(Hierarchy).tree.model.tops[0].kind == "image", timeout=TIMEOUT_MILLISECONDS
    )
    wait_until_opened(qtbot, window, lambda: window.open_location(str(branches)))
    model = window.panel(Hierarchy).tree.model
    first, second = model.index(0, 0), model.index(1, 0)
    qtbot.waitUntil(lambda: model.rowCount(second) == 4, timeout=TIMEOUT_MILLISECONDS)
    flat = model.index(names_below(window.panel(Hierarchy).tree, second).index("flat"), 0, second)

    def displayed() -> list[bool]:
        return [bool(index.data(Qt.ItemDataRole.FontRole)) for index in (first, second, flat)]

    assert displayed() == [False, True, True]
    assert "displayed" in flat.data(Qt.ItemDataRole.AccessibleTextRole)
    wait_until_opened(qtbot, window, lambda: window.panel(Hierarchy).tree.view.activated.emit(first))
    assert displayed() == [True, False, False]


def test_only_visible_nodes_of_a_large_group_are_opened(
    qtbot: QtBot, open_in_window: OpenInWindow, tmp_path: Path
) -> None:
    path = tmp_path / "many.zarr"
    zarrfs.create_group(path)
    zarrfs.create_array(path, "a0000", data=np.zeros((8, 8), "u1"))
    document = (path / "a0000" / "zarr.json").read_bytes()
    for number in range(1, 600):
        (path / f"a{number:04d}").mkdir()
        (path / f"a{number:04d}" / "zarr.json").write_bytes(document)
    window = open_in_window(path)
    panel = window.panel(Hierarchy).tree
    top = panel.model.index(0, 0)
    qtbot.waitUntil(lambda: panel.model.rowCount(top) == 600, timeout=TIMEOUT_MILLISECONDS)
    children = panel.model.tops[0].children or []
    qtbot.waitUntil(lambda: children[0].kind == "array", timeout=TIMEOUT_MILLISECONDS)
    assert children[-1].description is None
    panel.view.scrollToBottom()
    qtbot.waitUntil(lambda: children[-1].kind == "array", timeout=TIMEOUT_MILLISECONDS)
    assert children[300].description is None


def test_a_search_finds_nodes_in_branches_that_are_not_expanded(
    qtbot: QtBot, open_in_window: OpenInWindow, branches: Path
) -> None:
    window = open_in_window(branches)
    panel = window.panel(Hierarchy).tree
    qtbot.waitUntil(lambda: "flat" in shown_names(panel), timeout=TIMEOUT_MILLISECONDS)
    before = shown_names(panel)
    assert before == ["branches.zarr", "flat", "outer0", "outer1", "outer2"]
    panel.search.setText("DEEP1")
    found = ["branches.zarr", "outer1", "inner", "deep1"]
    qtbot.waitUntil(lambda: shown_names(panel) == found, timeout=TIMEOUT_MILLISECONDS)
    panel.search.setText("deep")
    qtbot.waitUntil(lambda: len(shown_names(panel)) == 10, timeout=TIMEOUT_MILLISECONDS)
    panel.search.setText("nothing")
    assert shown_names(panel) == []
    panel.search.clear()
    assert shown_names(panel) == before


def test_the_current_row_remains_during_a_search(
    qtbot: QtBot, open_in_window: OpenInWindow, branches: Path
) -> None:
    window = open_in_window(branches)
    panel = window.panel(Hierarchy).tree
    qtbot.waitUntil(lambda: "flat" in shown_names(panel), timeout=TIMEOUT_MILLISECONDS)
    flat = panel.model.index(0, 0, panel.model.index(0, 0))
    qtbot.waitUntil(lambda: panel.model.item(flat).node is not None, timeout=TIMEOUT_MILLISECONDS)
    panel.view.setCurrentIndex(flat)
    with qtbot.assertNotEmitted(window.session.node_changed, wait=10):
        panel.search.setText("fl")
        assert panel.view.currentIndex().data() == "flat"
        panel.search.clear()
    assert panel.view.currentIndex().data() == "flat"


def test_the_model_is_consistent_during_a_search(
    qtbot: QtBot, open_in_window: OpenInWindow, branches: Path, qtmodeltester: ModelTester
) -> None:
    window = open_in_window(branches)
    panel = window.panel(Hierarchy).tree
    panel.search.setText("inner")
    qtbot.waitUntil(lambda: len(shown_names(panel)) == 7, timeout=TIMEOUT_MILLISECONDS)
    qtmodeltester.check(panel.model)


def test_the_first_right_click_on_a_row_opens_its_menu(
    qtbot: QtBot, open_in_window: OpenInWindow, branches: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    window = open_in_window(branches)
    view = window.panel(Hierarchy).tree.view
    qtbot.waitUntil(lambda: "flat" in shown_names(window.panel(Hierarchy).tree), timeout=TIMEOUT_MILLISECONDS)
    opened: list[list[str]] = []
    monkeypatch.setattr(
        QMenu, "exec", lambda menu, *_: opened.append([action.text() for action in menu.actions()])
    )
    model = window.panel(Hierarchy).tree.model
    index = model.index(0, 0, model.index(0, 0))
    # Nodes are opened in the background.
    qtbot.waitUntil(lambda: model.item(index).node is not None, timeout=TIMEOUT_MILLISECONDS)
    viewport = view.viewport()
    assert viewport is not None
    point = view.visualRect(index).center()
    event = QContextMenuEvent(QContextMenuEvent.Reason.Mouse, point, viewport.mapToGlobal(point))
    QApplication.sendEvent(viewport, event)
    assert len(opened) == 1
    assert "Copy path" in opened[0]
    assert opened[0][0] == "Display"
    assert "Close" not in opened[0]


def test_a_location_is_closed(qtbot: QtBot, open_in_window: OpenInWindow, branches: Path) -> None:
    window = open_in_window(branches)
    panel = window.panel(Hierarchy).tree
    item = panel.model.tops[0]
    close = next(action for action in panel.menu(item).actions() if action.text() == "Close")
    close.trigger()
    assert panel.model.rowCount() == 0
    assert window.image is None
    assert window.dataset is None


def test_summaries_of_groups(tmp_path: Path, cells: Path) -> None:
    plate = describe(zarrfs.open(write_plate(tmp_path / "plate.zarr")))
    assert (plate.kind, plate.summary) == ("plate", "plate 2x3")
    well = describe(zarrfs.open(tmp_path / "plate.zarr", "A/1"))
    assert (well.kind, well.summary) == ("well", "well, 2 fields")
    series = describe(zarrfs.open(write_series(tmp_path / "series.zarr")))
    assert (series.kind, series.summary) == ("series", "3 series")
    assert describe(zarrfs.open(cells, "labels")).summary == "1 label image"
    assert describe(zarrfs.open(cells, "0"), is_level=True).kind == "level"
    assert describe(zarrfs.create_group(tmp_path / "g.zarr")).summary == ""


@pytest.mark.parametrize(
    ("shape", "dtype", "text"),
    [
        ((256, 2048, 2048), "u2", "256x2048x2048 uint16"),
        ((), "f4", "scalar float32"),
        ((3,), "?", "3 bool"),
        ((3,), "S12", "3 S12"),
        ((3,), "M8[D]", "3 M8[D]"),
    ],
)
def test_shapes_and_data_types_are_short(
    tmp_path: Path, shape: tuple[int, ...], dtype: str, text: str
) -> None:
    assert shape_text(zarrfs.create_array(tmp_path / "a.zarr", shape=shape, dtype=dtype)) == text
