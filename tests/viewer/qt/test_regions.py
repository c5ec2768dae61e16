"""Named regions in a window: drawing polygons, the list, statistics, profiles along z, and files."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PyQt6.QtCore import QPoint, Qt
from PyQt6.QtGui import QKeyEvent
from PyQt6.QtWidgets import QFileDialog
from pytestqt.qtbot import QtBot
from zarrfs_viewer.analysis.shapes import Shape
from zarrfs_viewer.qt.panels.measure.measurements import Measurements
from zarrfs_viewer.qt.panels.measure.regions_panel import RegionsPanel
from zarrfs_viewer.qt.panels.position.position import Position
from zarrfs_viewer.qt.window.last_session import restore_window, window_state
from zarrfs_viewer.qt.window.main_window import MainWindow

import zarrfs
from tests.viewer.qt.waiting import TIMEOUT_MILLISECONDS, wait_until_exact, wait_until_opened

OpenInWindow = Callable[[object], MainWindow]


@pytest.fixture(scope="module")
def ramp(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two arrays of one plane size, with the values 1000 z + 10 y + x, and one of another size."""
    path = tmp_path_factory.mktemp("ramp") / "a.zarr"
    group = zarrfs.create_group(path)
    z, y, x = np.indices((4, 40, 60))
    data = (1000 * z + 10 * y + x).astype("u2")
    for name, values in (("one", data), ("two", data + 1), ("wide", data[:, :20])):
        group.create_array(name, data=values, chunks=(1, 40, 30), dimension_names=["z", "y", "x"])
    return path


def at(window: MainWindow, row: float, column: float) -> QPoint:
    x, y = window.canvas.viewport.to_device(row, column)
    ratio = window.canvas.devicePixelRatioF()
    return QPoint(round(x / ratio), round(y / ratio))


def click(qtbot: QtBot, window: MainWindow, row: float, column: float) -> None:
    qtbot.mouseMove(window.canvas, at(window, row, column))
    qtbot.mouseClick(window.canvas, Qt.MouseButton.LeftButton, pos=at(window, row, column))


def list_of(window: MainWindow) -> RegionsPanel:
    return window.panel(Measurements).panel


def test_a_polygon_is_drawn_with_clicks(qtbot: QtBot, open_in_window: OpenInWindow, ramp: Path) -> None:
    window = open_in_window(ramp / "one")
    window.actions_by_name["polygon"].trigger()
    points = [(5.0, 5.0), (30.0, 8.0), (20.0, 50.0)]
    for point in points:
        click(qtbot, window, *point)
    assert window.canvas.is_drawing
    assert not list_of(window).regions
    window.actions_by_name["add_region"].trigger()
    assert not list_of(window).regions, "a polygon is added while it is drawn"
    click(qtbot, window, *points[0])  # the first vertex closes the polygon
    shape = window.canvas.shape
    assert shape is not None
    assert not window.canvas.is_drawing
    assert np.allclose(shape.points, points, atol=0.5)
    qtbot.waitUntil(lambda: bool(window.panel(Measurements).measure.text), timeout=TIMEOUT_MILLISECONDS)
    for finish in ("double click", "Enter", "tool"):
        window.canvas.show_shape(None)
        for point in points:
            click(qtbot, window, point[0] + 2, point[1] + 2)
        assert window.canvas.is_drawing
        if finish == "double click":
            qtbot.mouseDClick(window.canvas, Qt.MouseButton.LeftButton, pos=at(window, 22, 52))
        elif finish == "Enter":
            event = QKeyEvent(QKeyEvent.Type.KeyPress, Qt.Key.Key_Return, Qt.KeyboardModifier.NoModifier)
            window.canvas.keyPressEvent(event)
        else:
            window.actions_by_name["line"].trigger()
        assert not window.canvas.is_drawing
        assert window.canvas.shape is not None
        assert len(window.canvas.shape.points) == 3


def test_regions_are_added_measured_selected_and_removed(
    qtbot: QtBot, open_in_window: OpenInWindow, ramp: Path
) -> None:
    window = open_in_window(ramp / "one")
    wait_until_exact(qtbot, window, lambda: window.panel(Position).dimensions.set_position(0, 2))
    panel, canvas = list_of(window), window.canvas
    window.actions_by_name["add_region"].trigger()
    assert "no shape" in window.notice.text()
    window.panel(Measurements).set_tool("rectangle")
    for left in (5.0, 30.0):
        canvas.shape_deselected.emit()
        canvas.show_shape(Shape("rectangle", ((9.5, left - 0.5), (19.5, left + 9.5))))
        window.actions_by_name["add_region"].trigger()
    assert [region.name for region in panel.regions] == ["rectangle 1", "rectangle 2"]
    assert panel.selected == 1
    qtbot.waitUntil(lambda: panel.text.count("\n") == 3, timeout=TIMEOUT_MILLISECONDS)
    rows = list(csv.DictReader(io.StringIO(panel.text)))
    assert [float(row["mean"]) for row in rows] == [2000 + 145 + 9.5, 2000 + 145 + 34.5]
    assert {row["count"] for row in rows} == {"100"}
    assert {row["z"] for row in rows} == {"2.0"}
    wait_until_exact(qtbot, window, lambda: window.panel(Position).dimensions.set_position(0, 3))
    qtbot.waitUntil(lambda: "3154.5" in panel.text, timeout=TIMEOUT_MILLISECONDS)
    # A change of the shape changes the selected region.
    canvas.show_shape(Shape("rectangle", ((9.5, 30.5), (19.5, 40.5))))
    assert panel.regions[1].shape == canvas.shape
    qtbot.waitUntil(lambda: "3180.5" in panel.text, timeout=TIMEOUT_MILLISECONDS)
    # Escape ends the selection, a click selects the region below the pointer, Delete removes it.
    event = QKeyEvent(QKeyEvent.Type.KeyPress, Qt.Key.Key_Escape, Qt.KeyboardModifier.NoModifier)
    canvas.keyPressEvent(event)
    assert canvas.shape is None
    assert len(panel.regions) == 2
    click(qtbot, window, 15, 8)
    assert panel.selected == 0
    assert canvas.shape == panel.regions[0].shape
    item = panel.table.item(0, 0)
    assert item is not None
    item.setText("nucleus")
    assert [region.name for region in panel.regions] == ["nucleus", "rectangle 2"]
    window.actions_by_name["delete_shape"].trigger()
    assert [region.name for region in panel.regions] == ["rectangle 2"]
    panel.table.selectRow(0)
    assert panel.selected == 0
    assert canvas.shape == panel.regions[0].shape
    panel.remove_button.click()
    assert panel.regions == ()
    assert canvas.shape is None
    assert panel.text == ""


def test_regions_remain_on_planes_of_the_same_size(
    qtbot: QtBot, open_in_window: OpenInWindow, ramp: Path
) -> None:
    window = open_in_window(ramp / "one")
    panel = list_of(window)
    window.canvas.show_shape(Shape("ellipse", ((2.0, 3.0), (9.0, 12.0))))
    window.actions_by_name["add_region"].trigger()
    before = panel.regions
    qtbot.waitUntil(lambda: bool(panel.text), timeout=TIMEOUT_MILLISECONDS)
    first = panel.text
    wait_until_opened(qtbot, window, lambda: window.open_location(str(ramp / "two")))
    assert panel.regions == before
    assert panel.selected is None
    qtbot.waitUntil(lambda: panel.text not in ("", first), timeout=TIMEOUT_MILLISECONDS)
    wait_until_opened(qtbot, window, lambda: window.open_location(str(ramp / "wide")))
    assert panel.regions == ()
    assert panel.text == ""
    wait_until_opened(qtbot, window, lambda: window.open_location(str(ramp / "one")))
    assert panel.regions == before


def test_the_profile_along_z_is_plotted(qtbot: QtBot, open_in_window: OpenInWindow, ramp: Path) -> None:
    window = open_in_window(ramp / "one")
    window.canvas.show_shape(Shape("rectangle", ((9.5, 4.5), (19.5, 14.5))))
    qtbot.waitUntil(lambda: "median" in window.panel(Measurements).measure.text, timeout=TIMEOUT_MILLISECONDS)
    window.panel(Measurements).measure.along.setChecked(True)
    qtbot.waitUntil(
        lambda: window.panel(Measurements).measure.text.startswith("z ["), timeout=TIMEOUT_MILLISECONDS
    )
    rows = list(csv.reader(io.StringIO(window.panel(Measurements).measure.text)))[1:]
    assert [float(value) for _, value in rows] == [1000 * z + 145 + 9.5 for z in range(4)]
    window.panel(Measurements).measure.along.setChecked(False)
    qtbot.waitUntil(lambda: "median" in window.panel(Measurements).measure.text, timeout=TIMEOUT_MILLISECONDS)


def test_regions_are_saved_to_and_loaded_from_files(
    qtbot: QtBot, open_in_window: OpenInWindow, ramp: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    window = open_in_window(ramp / "one")
    panel, actions = list_of(window), window.panel(Measurements)
    actions.ask_save()
    assert "no regions" in window.notice.text()
    for points in (((2.5, 3.0), (9.0, 12.0)), ((12.5, 3.0), (19.0, 12.0))):
        window.canvas.shape_deselected.emit()
        window.canvas.show_shape(Shape("rectangle", points))
        actions.add()
    before = panel.regions
    file = tmp_path / "regions"
    chosen = (str(file), "ImageJ ROI set (*.zip)")
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *a: chosen)
    actions.ask_save()
    qtbot.waitUntil(lambda: "saved to" in window.notice.text(), timeout=TIMEOUT_MILLISECONDS)
    qtbot.waitUntil(lambda: bool(panel.text), timeout=TIMEOUT_MILLISECONDS)
    actions.save_table(tmp_path / "table.csv")
    qtbot.waitUntil(lambda: "table.csv" in window.notice.text(), timeout=TIMEOUT_MILLISECONDS)
    assert (tmp_path / "table.csv").read_text() == panel.text
    while panel.regions:
        panel.remove(0)
    monkeypatch.setattr(QFileDialog, "getOpenFileNames", lambda *a: ([str(tmp_path / "regions.zip")], ""))
    actions.ask_load()
    qtbot.waitUntil(lambda: len(panel.regions) == 2, timeout=TIMEOUT_MILLISECONDS)
    assert panel.regions == before
    (tmp_path / "bad.geojson").write_text("{")
    actions.load(tmp_path / "bad.geojson")
    qtbot.waitUntil(lambda: "not a valid file" in window.notice.text(), timeout=TIMEOUT_MILLISECONDS)


def test_regions_are_undone_and_are_part_of_the_last_session(
    qtbot: QtBot, open_in_window: OpenInWindow, ramp: Path
) -> None:
    window = open_in_window(ramp / "one")
    panel = list_of(window)
    shapes = [Shape("rectangle", ((2.0, 3.0), (10.0, 12.0))), Shape("line", ((0.0, 0.0), (9.0, 9.0)))]
    for shape in shapes:
        window.canvas.show_shape(shape)
        window.actions_by_name["add_region"].trigger()
        panel.select(None)
    both = panel.by_plane
    assert [region.shape for region in panel.regions] == shapes
    window.actions_by_name["undo"].trigger()
    assert [region.shape for region in panel.regions] == shapes[:1]
    window.actions_by_name["redo"].trigger()
    assert panel.by_plane == both
    panel.remove(0)
    assert [region.shape for region in panel.regions] == shapes[1:]
    window.actions_by_name["undo"].trigger()
    assert panel.by_plane == both
    assert window_state(window).regions == both
    other = open_in_window(ramp / "two")
    restore_window(other, window_state(window))
    assert list_of(other).by_plane == both
    wait_until_exact(qtbot, other, lambda: other.panel(Position).dimensions.set_position(0, 2))
    assert [region.shape for region in list_of(other).regions] == shapes
