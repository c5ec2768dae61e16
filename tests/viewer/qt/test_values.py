"""Arrays that are not pictures, and the values around the pointer, in a window."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PyQt6.QtCore import QItemSelectionModel, Qt
from PyQt6.QtGui import QFontMetrics, QGuiApplication
from PyQt6.QtWidgets import QTableWidgetItem
from pytestqt.qtbot import QtBot
from zarrfs_viewer.qt.panels.hierarchy.hierarchy import Hierarchy
from zarrfs_viewer.qt.panels.position.position import Position
from zarrfs_viewer.qt.panels.values.neighbourhood_panel import NeighbourhoodTable
from zarrfs_viewer.qt.panels.values.values import Values
from zarrfs_viewer.qt.panels.values.values_view import PageModel, ValuesView
from zarrfs_viewer.qt.window.main_window import MainWindow

import zarrfs
from tests.viewer.qt.waiting import TIMEOUT_MILLISECONDS, wait_until_exact, wait_until_opened

OpenInWindow = Callable[[object], MainWindow]

QT_HORIZONTAL = Qt.Orientation.Horizontal


def open_values(qtbot: QtBot, window: MainWindow, path: Path) -> None:
    window.open_location(str(path))
    view = window.panel(Values).view
    qtbot.waitUntil(
        lambda: view.model.page is not None or bool(view.number.text()), timeout=TIMEOUT_MILLISECONDS
    )
    assert window.panel(Values).is_shown
    assert not window.notice.isVisible()


def test_the_picture_is_not_read_while_the_values_are_shown(
    qtbot: QtBot, window: MainWindow, tmp_path: Path
) -> None:
    zarrfs.create_array(tmp_path / "a.zarr", data=np.arange(5000.0), chunks=(1000,))
    open_values(qtbot, window, tmp_path / "a.zarr")
    streamer = window.session.streamer
    window.canvas.set_viewport(window.canvas.viewport)
    window.panes.refresh()
    assert window.panes.main.pipeline.state is None
    assert streamer.memory.hits + streamer.memory.misses == 0
    wait_until_exact(qtbot, window, window.actions_by_name["values"].trigger)  # the picture is shown
    assert streamer.memory.misses
    window.actions_by_name["values"].trigger()
    qtbot.waitUntil(lambda: window.panes.main.pipeline.state is None, timeout=TIMEOUT_MILLISECONDS)


@pytest.mark.parametrize(
    ("data", "options"),
    [
        (np.sin(np.arange(500) / 20), {}),
        (np.array(["alpha", "beta"], object), {"dtype": "string"}),
        (np.array([(1, 2.5), (3, 4.5)], [("n", "i4"), ("v", "f8")]), {}),
        (np.zeros((0, 3), "u1"), {}),
    ],
)
def test_arrays_of_rank_1_strings_and_tables_are_shown(
    qtbot: QtBot, window: MainWindow, tmp_path: Path, data: Any, options: dict[str, Any]
) -> None:
    zarrfs.create_array(tmp_path / "a.zarr", data=data, **options)
    open_values(qtbot, window, tmp_path / "a.zarr")
    view = window.panel(Values).view
    top = window.panel(Hierarchy).tree.model.index(0, 0)
    assert top.data(Qt.ItemDataRole.FontRole).bold()
    assert view.model.rowCount() == len(data)
    if data.dtype.names:
        assert [view.model.headerData(n, QT_HORIZONTAL) for n in range(2)] == ["n", "v"]
    if len(data):
        shown = [view.model.data(view.model.index(1, column)) for column in range(view.model.columnCount())]
        expected = data[1].tolist() if data.dtype.names else [data[1]]
        assert shown == [str(value) for value in expected]
    assert view.plot.isVisible() == (data.dtype == np.float64)
    clipboard = QGuiApplication.clipboard()
    assert clipboard is not None
    clipboard.clear()
    view.copy_csv()
    qtbot.waitUntil(lambda: clipboard.text().count("\n") == len(data) + 1, timeout=TIMEOUT_MILLISECONDS)


def show_table(qtbot: QtBot, window: MainWindow) -> ValuesView:
    """Show the values of the displayed picture as a table."""
    window.actions_by_name["values"].trigger()
    view = window.panel(Values).view
    qtbot.waitUntil(lambda: view.model.page is not None, timeout=TIMEOUT_MILLISECONDS)
    return view


def test_the_selected_rows_are_copied(qtbot: QtBot, open_in_window: OpenInWindow, tmp_path: Path) -> None:
    zarrfs.create_array(tmp_path / "a.zarr", data=np.arange(30).reshape(10, 3) * 0.5)
    view = show_table(qtbot, open_in_window(tmp_path / "a.zarr"))
    selection = view.table.selectionModel()
    clipboard = QGuiApplication.clipboard()
    assert selection is not None
    assert clipboard is not None
    for row in (2, 7):
        flag = QItemSelectionModel.SelectionFlag
        selection.select(view.model.index(row, 1), flag.Select | flag.Rows)
    view.copy_csv()
    expected = "index,0,1,2\n2,3.0,3.5,4.0\n7,10.5,11.0,11.5\n"
    qtbot.waitUntil(lambda: clipboard.text() == expected, timeout=TIMEOUT_MILLISECONDS)


def test_painting_a_wide_table_costs_as_much_with_all_cells_selected(
    qtbot: QtBot, open_in_window: OpenInWindow, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    zarrfs.create_array(tmp_path / "a.zarr", data=np.zeros((200, 400), "u1"))
    view = show_table(qtbot, open_in_window(tmp_path / "a.zarr"))
    counts: list[None] = []
    original = PageModel.columnCount
    monkeypatch.setattr(
        PageModel, "columnCount", lambda self, parent=None: (counts.append(None), original(self, parent))[1]
    )

    def painting_cost() -> int:
        view.table.grab()
        counts.clear()
        view.table.grab()
        return len(counts)

    cost = painting_cost()
    view.table.selectAll()
    assert 0 < painting_cost() <= 2 * cost


def test_a_number_is_shown(qtbot: QtBot, window: MainWindow, tmp_path: Path) -> None:
    zarrfs.create_array(tmp_path / "a.zarr", data=np.float64(0.1) + 0.2)
    open_values(qtbot, window, tmp_path / "a.zarr")
    assert window.panel(Values).view.number.text() == "0.30000000000000004"


def test_an_image_is_shown_as_a_table_and_as_a_picture_again(
    qtbot: QtBot, open_in_window: OpenInWindow, tmp_path: Path
) -> None:
    data = np.arange(3 * 20 * 30, dtype="u2").reshape(3, 20, 30)
    zarrfs.create_array(tmp_path / "a.zarr", data=data, dimension_names=["z", "y", "x"])
    window = open_in_window(tmp_path / "a.zarr")
    values = window.panel(Values)
    assert not values.is_shown
    window.actions_by_name["values"].trigger()
    view = values.view
    view.leading[0].setValue(2)
    qtbot.waitUntil(
        lambda: view.model.page is not None and view.model.page.text(0, 0) == str(data[2, 0, 0]),
        timeout=TIMEOUT_MILLISECONDS,
    )
    window.actions_by_name["values"].trigger()
    assert window.panes.isVisible()


def test_the_values_around_the_pointer_follow_the_slice(
    qtbot: QtBot, open_in_window: OpenInWindow, tmp_path: Path
) -> None:
    data = np.arange(3 * 20 * 30, dtype="u2").reshape(3, 20, 30)
    zarrfs.create_array(tmp_path / "a.zarr", data=data, dimension_names=["z", "y", "x"])
    window = open_in_window(tmp_path / "a.zarr")
    window.actions_by_name["neighbourhood"].trigger()
    panel = window.panel(Values).neighbourhood
    assert panel.isVisible()

    def current() -> str:
        item = panel.table.currentItem()
        return "" if item is None else item.text()

    window.canvas.pointed.emit((7.0, 11.0))
    qtbot.waitUntil(lambda: current() == str(data[1, 7, 11]), timeout=TIMEOUT_MILLISECONDS)
    wait_until_exact(qtbot, window, lambda: window.panel(Position).dimensions.set_position(0, 2))
    qtbot.waitUntil(lambda: current() == str(data[2, 7, 11]), timeout=TIMEOUT_MILLISECONDS)
    window.panel(Values).dock.close()
    assert not window.actions_by_name["neighbourhood"].isChecked()


def test_the_values_around_the_pointer_of_the_previous_image_are_removed(
    qtbot: QtBot, open_in_window: OpenInWindow, tmp_path: Path
) -> None:
    for name, value in (("a.zarr", 11), ("b.zarr", 22)):
        zarrfs.create_array(tmp_path / name, data=np.full((20, 30), value, "u2"), dimension_names=["y", "x"])
    window = open_in_window(tmp_path / "a.zarr")
    window.actions_by_name["neighbourhood"].trigger()
    panel = window.panel(Values).neighbourhood
    window.canvas.pointed.emit((7.0, 11.0))
    qtbot.waitUntil(lambda: panel.table.currentItem() is not None, timeout=TIMEOUT_MILLISECONDS)
    assert "row 7, column 11" in panel.title.text()
    wait_until_opened(qtbot, window, lambda: window.open_location(str(tmp_path / "b.zarr")))
    assert panel.table.rowCount() == 0
    assert "row 7" not in panel.title.text()


def test_times_around_the_pointer_are_not_cut(
    qtbot: QtBot, open_in_window: OpenInWindow, tmp_path: Path
) -> None:
    data = np.datetime64("2020-01-01T00:00:00", "s") + np.arange(600).reshape(20, 30)
    zarrfs.create_array(tmp_path / "a.zarr", data=data, dimension_names=["y", "x"])
    window = open_in_window(tmp_path / "a.zarr")
    window.actions_by_name["neighbourhood"].trigger()
    table = window.panel(Values).neighbourhood.table
    window.canvas.pointed.emit((7.0, 11.0))
    qtbot.waitUntil(lambda: table.currentItem() is not None, timeout=TIMEOUT_MILLISECONDS)
    item = table.currentItem()
    assert item is not None
    assert item.text() == str(data[7, 11])
    assert table.columnWidth(item.column()) >= QFontMetrics(item.font()).horizontalAdvance(item.text())
    assert table.viewport().rect().contains(table.visualItemRect(item))


def test_the_value_at_the_pointer_is_visible_at_every_size_of_the_table(qtbot: QtBot) -> None:
    table = NeighbourhoodTable()
    qtbot.addWidget(table)
    table.setRowCount(9)
    table.setColumnCount(5)
    item = QTableWidgetItem("2020-01-01T00:03:41")
    table.setItem(4, 2, item)
    table.setCurrentItem(item)
    text_width = QFontMetrics(item.font()).horizontalAdvance(item.text())
    table.resize(297, 150)
    table.show()
    table.fit(text_width)
    viewport = table.viewport()
    assert viewport is not None
    for width in (*range(290, 300), 5 * text_width + 50, 200):
        for height in (150, 100, 151, 300):
            table.resize(width, height)
            assert min(table.columnWidth(column) for column in range(5)) >= text_width
            assert viewport.rect().contains(table.visualItemRect(item))


def test_a_string_array_of_a_group_is_displayed_on_activation(
    qtbot: QtBot, open_in_window: OpenInWindow, tmp_path: Path
) -> None:
    group = zarrfs.create_group(tmp_path / "g.zarr")
    group.create_array("image", shape=(8, 8), dtype="u1")
    names = zarrfs.create_array(
        tmp_path / "g.zarr", "names", data=np.array(["a", "b"], object), dtype="string"
    )
    window = open_in_window(tmp_path / "g.zarr")
    window.session.show_node(names, str(tmp_path / "g.zarr"), "names")
    view = window.panel(Values).view
    qtbot.waitUntil(lambda: view.model.page is not None, timeout=TIMEOUT_MILLISECONDS)
    assert window.panel(Values).is_shown


def test_the_columns_of_a_wide_table_fit_their_values_without_measuring_every_cell(
    qtbot: QtBot, open_in_window: OpenInWindow, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    values = np.zeros((300, 400), "i8")
    values[150, :] = -123_456_789_012
    zarrfs.create_array(tmp_path / "a.zarr", data=values)
    window = open_in_window(tmp_path / "a.zarr")
    calls = []
    original = PageModel.data

    def data(model: PageModel, *arguments: Any) -> Any:
        calls.append(1)
        return original(model, *arguments)

    monkeypatch.setattr(PageModel, "data", data)
    view = window.panel(Values).view
    view.hide()  # painting asks for values too
    window.panel(Values).view.show_array(window.panel(Values)._array(), "a")
    qtbot.waitUntil(lambda: view.model.page is not None, timeout=TIMEOUT_MILLISECONDS)
    assert len(calls) < 1000
    widths = {view.table.columnWidth(column) for column in (0, 100, 399)}
    assert len(widths) == 1
    assert widths.pop() >= view.table.fontMetrics().horizontalAdvance("-123456789012")


def test_values_are_current_when_their_curve_is_drawn(qtbot: QtBot, window: MainWindow) -> None:
    """A screenshot waits until all panels are current."""
    values = window.panel(Values)
    assert values.is_current
    drawn: list[bool] = []
    values.view.plot.call_when_created(lambda: drawn.append(True))
    assert not values.is_current
    qtbot.waitUntil(lambda: values.is_current, timeout=TIMEOUT_MILLISECONDS)
    assert drawn


def test_the_curve_of_another_array_is_shown_completely(
    qtbot: QtBot, window: MainWindow, tmp_path: Path
) -> None:
    """The curves are clipped to the view, so that their bounds do not contain what the former range hides."""
    group = zarrfs.create_group(tmp_path / "a.zarr")
    group.create_array("short", data=np.arange(30, dtype="f8"))
    long = np.concatenate([np.linspace(0, 500, 4000), [np.nan, np.inf]])
    group.create_array("long", data=long)
    view = window.panel(Values).view
    for name, length, top in (("short", 30, 29.0), ("long", 4002, 500.0)):
        open_values(qtbot, window, tmp_path / "a.zarr" / name)
        qtbot.waitUntil(lambda n=length: view.model.rowCount() == n, timeout=TIMEOUT_MILLISECONDS)
        is_drawn = lambda n=length: view.plot.is_created and view.plot.plot().viewRange()[0][1] >= n - 1  # noqa: E731
        qtbot.waitUntil(is_drawn, timeout=TIMEOUT_MILLISECONDS)
        (x_range, y_range) = view.plot.plot().viewRange()
        assert x_range[0] <= 0
        assert length - 1 <= x_range[1] < 1.2 * length
        assert top <= y_range[1] < 1.2 * top
