"""Regression tests of the window: readout, tree, contrast of corrupt data, paths, focus, closing, screenshots."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PyQt6.QtCore import QModelIndex, QPoint, QPointF, Qt
from PyQt6.QtGui import QImage, QWheelEvent
from PyQt6.QtTest import QTest
from PyQt6.QtWidgets import QApplication, QWidget
from pytestqt.qtbot import QtBot
from zarrfs_viewer.analysis.shapes import Shape
from zarrfs_viewer.locations import absolute_location
from zarrfs_viewer.qt.panels.channels.channels import Channels
from zarrfs_viewer.qt.panels.hierarchy.hierarchy import Hierarchy
from zarrfs_viewer.qt.panels.measure.measurements import Measurements
from zarrfs_viewer.qt.panels.metadata.metadata import Metadata
from zarrfs_viewer.qt.panels.pictures.pictures import PictureActions
from zarrfs_viewer.qt.panels.plate.plates import Plates
from zarrfs_viewer.qt.panels.position.position import Position
from zarrfs_viewer.qt.panels.saved_views import SavedViewsMenu
from zarrfs_viewer.qt.support.limit_box import LimitBox
from zarrfs_viewer.qt.window.main_window import MainWindow
from zarrfs_viewer.saved_views.views import from_json, to_json

import zarrfs
from tests.viewer.qt.hierarchies import write_plate
from tests.viewer.qt.waiting import TIMEOUT_MILLISECONDS, wait_until_exact, wait_until_opened
from tests.viewer.screenshots import take_screenshot
from zarrfs.engine.stores.local.store import LocalStore
from zarrfs.testing.stores import ObservedStore

OpenInWindow = Callable[[object], MainWindow]


@pytest.fixture
def stack(tmp_path: Path) -> Path:
    """A stack of five slices with the offsets 0, 10, 20, 30 and 40 and the same gradient from 0 to 9."""
    data = np.arange(5)[:, None, None] * 10.0 + np.linspace(0, 9, 64)[None, None, :] + np.zeros((5, 64, 64))
    path = tmp_path / "stack.zarr"
    zarrfs.create_array(path, data=data.astype("u1"), chunks=(1, 32, 32), dimension_names=["z", "y", "x"])
    return path


def find_in_tree(qtbot: QtBot, window: MainWindow, name: str) -> QModelIndex:
    model = window.panel(Hierarchy).tree.model
    top = model.index(model.rowCount() - 1, 0)
    window.panel(Hierarchy).tree.view.expand(top)
    qtbot.waitUntil(lambda: model.rowCount(top) >= 3, timeout=TIMEOUT_MILLISECONDS)
    for row in range(model.rowCount(top)):
        if model.index(row, 0, top).data() == name:
            return model.index(row, 0, top)
    raise AssertionError(f"the tree contains no {name}")


def test_the_readout_follows_the_slice_while_the_pointer_rests(
    qtbot: QtBot, open_in_window: OpenInWindow, stack: Path
) -> None:
    window = open_in_window(stack)
    canvas = window.canvas
    middle = canvas.rect().center()
    QTest.mouseMove(canvas, middle)
    qtbot.waitUntil(lambda: canvas._pointer.position is not None, timeout=TIMEOUT_MILLISECONDS)
    for z in (0, 4, 1):
        wait_until_exact(qtbot, window, lambda z=z: window.panel(Position).dimensions.set_position(0, z))
        value = 10 * z + 4
        assert f"z {z}" in window.status.position.text()
        assert (
            f" {value} " in f" {window.status.position.text()} "
            or f" {value + 1} " in f" {window.status.position.text()} "
        )
    wait_until_exact(qtbot, window, lambda: canvas.zoom(4))
    assert window.status.position.text()
    canvas.leaveEvent(None)
    wait_until_exact(qtbot, window, lambda: window.panel(Position).dimensions.set_position(0, 3))
    assert window.status.position.text() == ""


def test_a_click_in_the_tree_shows_metadata_and_keeps_the_image(
    qtbot: QtBot, open_in_window: OpenInWindow, cells: Path
) -> None:
    window = open_in_window(cells)
    view = window.panel(Hierarchy).tree.view
    wait_until_exact(
        qtbot, window, lambda: window.session.change_channel(0, limits=(3.0, 77.0), colormap="#123456")
    )
    before = window.session.image
    line = find_in_tree(qtbot, window, "1")
    view.setCurrentIndex(line)
    view.clicked.emit(line)
    opened = lambda: window.panel(Hierarchy).tree.model.item(line).kind == "level"  # noqa: E731
    qtbot.waitUntil(opened, timeout=TIMEOUT_MILLISECONDS)
    assert window.panels.currentWidget() is window.panel(Metadata).panel
    document = window.panel(Metadata).panel.document
    qtbot.waitUntil(lambda: "array" in document.toPlainText(), timeout=TIMEOUT_MILLISECONDS)
    assert window.session.image is before
    top = window.panel(Hierarchy).tree.model.index(0, 0)
    with qtbot.assertNotEmitted(window.session.image_changed, wait=100):
        view.setCurrentIndex(top)
        view.clicked.emit(top)
        view.activated.emit(top)
    assert window.panels.currentWidget() is window.panel(Metadata).panel
    assert window.display_settings is not None
    assert window.display_settings.channels[0].limits == (3.0, 77.0)
    assert window.display_settings.channels[0].colormap == "#123456"
    with qtbot.assertNotEmitted(window.session.image_changed, wait=100):
        wait_until_exact(qtbot, window, lambda: view.activated.emit(line))
        assert window.display_settings.level_lock == 1
        wait_until_exact(qtbot, window, lambda: view.activated.emit(top))
        assert window.display_settings.level_lock is None
    assert window.display_settings.channels[0].colormap == "#123456"


def test_contrast_is_computed_despite_an_unreadable_chunk(
    qtbot: QtBot, window: MainWindow, stack: Path
) -> None:
    (stack / "c" / "2" / "0" / "0").write_bytes(b"broken")
    window.open_location(str(stack))

    def row_limits() -> Any:
        return None if window.display_settings is None else window.display_settings.channels[0].limits

    qtbot.waitUntil(lambda: row_limits() is not None, timeout=TIMEOUT_MILLISECONDS)
    assert "c/2/0/0" in window.notice.text()
    assert (
        window.panel(Channels).panel.rows[0].high.value() > window.panel(Channels).panel.rows[0].low.value()
    )
    assert row_limits() != (0.0, 255.0)
    wait_until_exact(qtbot, window, lambda: window.panel(Position).dimensions.set_position(0, 3))
    assert not window.notice.isVisible()
    qtbot.waitUntil(lambda: window.panel(Channels).panel._histogram is not None, timeout=TIMEOUT_MILLISECONDS)
    window.panel(Position).dimensions.set_position(0, 2)
    qtbot.waitUntil(lambda: "c/2/0/0" in window.notice.text(), timeout=TIMEOUT_MILLISECONDS)

    def is_of_intact_chunks() -> bool:
        found = window.panel(Channels).panel._histogram
        return found is not None and 19.5 <= found.edges[0] < 29.5

    qtbot.waitUntil(is_of_intact_chunks, timeout=TIMEOUT_MILLISECONDS)


def test_the_histogram_of_a_slice_with_a_corrupt_chunk_contains_the_other_values(
    qtbot: QtBot, window: MainWindow, tmp_path: Path
) -> None:
    data = np.full((5, 64, 64), 7, "u1")
    data[0] = np.arange(64, dtype="u1")[:, None] + 100
    zarrfs.create_array(tmp_path / "a.zarr", data=data, chunks=(1, 32, 32), dimension_names=["z", "y", "x"])
    (tmp_path / "a.zarr" / "c" / "0" / "0" / "1").write_bytes(b"broken")
    wait_until_opened(qtbot, window, lambda: window.open_location(str(tmp_path / "a.zarr")))
    window.panel(Position).dimensions.set_position(0, 0)

    def found() -> tuple[int, float, float]:
        histogram = window.panel(Channels).panel._histogram
        if histogram is None:
            return 0, 0, 0
        return int(histogram.counts.sum()), histogram.edges[0], histogram.edges[-1]

    qtbot.waitUntil(lambda: found() == (3 * 32 * 32, 99.5, 163.5), timeout=TIMEOUT_MILLISECONDS)
    assert "c/0/0/1" in window.notice.text()
    assert "values that can be read" in window.notice.text()
    assert "25 % unreadable" in window.panel(Channels).panel._title.text()
    window.actions_by_name["auto_all"].trigger()
    limits = lambda: None if window.display_settings is None else window.display_settings.channels[0].limits  # noqa: E731
    qtbot.waitUntil(lambda: limits() == (100.0, 163.0), timeout=TIMEOUT_MILLISECONDS)
    assert "c/0/0/1" in window.notice.text()


def test_the_value_of_an_unreadable_chunk_is_not_copied_and_the_statistics_state_it(
    qtbot: QtBot, window: MainWindow, tmp_path: Path
) -> None:
    data = np.linspace(1000, 2000, 64 * 64).reshape(64, 64).astype("u2")
    zarrfs.create_array(tmp_path / "a.zarr", data=data, chunks=(32, 32))
    chunk = tmp_path / "a.zarr" / "c" / "0" / "1"
    intact_bytes = chunk.read_bytes()
    chunk.write_bytes(b"broken")
    window.open_location(str(tmp_path / "a.zarr"))
    qtbot.waitUntil(
        lambda: window.canvas.frame is not None and window.canvas.frame.finished, timeout=TIMEOUT_MILLISECONDS
    )
    pane = window.panes.main

    def titles() -> list[str]:
        menu = window.panel(PictureActions).menu.menu(pane, 5, 40)
        return [action.text() for action in menu.actions()]

    assert not any(title.startswith("Copy value") for title in titles())
    assert "Copy why it is unreadable" in titles()
    window.status.show_readout(pane.values_at(5, 40))
    assert "unreadable: " in window.status.position.text()
    window.canvas.show_shape(Shape("rectangle", ((0.0, 0.0), (63.0, 63.0))))
    qtbot.waitUntil(
        lambda: "1,024 of 4,096 pixels" in window.panel(Measurements).measure.title.text(),
        timeout=TIMEOUT_MILLISECONDS,
    )
    window.panel(Measurements).add()
    regions = window.panel(Measurements).panel
    qtbot.waitUntil(lambda: "incomplete" in regions.title.text(), timeout=TIMEOUT_MILLISECONDS)
    chunk.write_bytes(intact_bytes)
    assert window.notice.act.text() == "Retry failed reads"
    assert window.notice.act.isVisible()
    wait_until_exact(qtbot, window, window.notice.act.click)
    window.session.show_message("another message")
    assert not window.notice.act.isVisible()
    assert any(title.startswith("Copy value") for title in titles())
    assert "unreadable" not in pane.values_at(5, 40).text()  # type: ignore[union-attr]


def test_the_blank_area_of_an_unreadable_chunk_does_not_count_for_the_contrast(
    qtbot: QtBot, window: MainWindow, tmp_path: Path
) -> None:
    data = np.linspace(1000, 2000, 64 * 64).reshape(64, 64).astype("u2")
    zarrfs.create_array(tmp_path / "a.zarr", data=data, chunks=(32, 32))
    (tmp_path / "a.zarr" / "c" / "0" / "1").write_bytes(b"broken")
    window.open_location(str(tmp_path / "a.zarr"))
    limits = lambda: None if window.display_settings is None else window.display_settings.channels[0].limits  # noqa: E731
    qtbot.waitUntil(lambda: limits() is not None, timeout=TIMEOUT_MILLISECONDS)
    found = limits()
    assert found is not None
    assert 1000 <= found[0] < found[1] <= 2000


def test_the_histogram_follows_the_slice(qtbot: QtBot, open_in_window: OpenInWindow, stack: Path) -> None:
    window = open_in_window(stack)
    for z in (4, 0):
        wait_until_exact(qtbot, window, lambda z=z: window.panel(Position).dimensions.set_position(0, z))

        def is_of_slice(z: int = z) -> bool:
            found = window.panel(Channels).panel._histogram
            return found is not None and found.edges[0] == 10 * z - 0.5

        qtbot.waitUntil(is_of_slice, timeout=TIMEOUT_MILLISECONDS)


@pytest.mark.parametrize("factor", [1e-7, 1e-30, 1.0, 1e30])
def test_limits_of_any_magnitude_are_displayed_with_significant_digits(
    qtbot: QtBot, open_in_window: OpenInWindow, tmp_path: Path, factor: float
) -> None:
    data = (np.linspace(1.0 / 3, 2.0 / 3, 64 * 64) * factor).reshape(64, 64)
    zarrfs.create_array(tmp_path / "f.zarr", data=data, chunks=(32, 32))
    window = open_in_window(tmp_path / "f.zarr")
    qtbot.waitUntil(
        lambda: window.panel(Channels).panel.rows[0].low.isEnabled(), timeout=TIMEOUT_MILLISECONDS
    )
    row = window.panel(Channels).panel.rows[0]
    assert window.display_settings is not None
    low, high = window.display_settings.channels[0].limits  # type: ignore[misc]
    assert row.low.text() == f"{low:.6g}"
    assert row.low.value() == low
    for box in (row.low, row.high):
        QTest.keyClick(box, Qt.Key.Key_Return)
    assert window.display_settings.channels[0].limits == (low, high), "Enter without an edit changed a limit"
    edit = row.high.lineEdit()
    assert edit is not None
    edit.setText(f"{0.6 * factor:.6g}")
    QTest.keyClick(row.high, Qt.Key.Key_Return)
    assert window.display_settings.channels[0].limits == (low, float(f"{0.6 * factor:.6g}")), (
        "the other limit changed"
    )


def test_limit_boxes_accept_scientific_notation(qtbot: QtBot) -> None:
    box = LimitBox(is_integer=False)
    qtbot.addWidget(box)
    for text in ("1e-5", "-.5", "+3.25E2", "7.", "1e300", "-1.7e308"):
        assert box.validate(text, 0)[0].name == "Acceptable"
        assert box.valueFromText(text) == float(text)
    for text in ("", "-", "1e", "1e-", "."):
        assert box.validate(text, 0)[0].name == "Intermediate"
    assert box.valueFromText("1,5") == 1.5
    for text in ("x", "nan", "inf", "1,000.5", "1e400"):
        assert box.validate(text, 0)[0].name != "Acceptable"
    assert box.valueFromText("x") == box.value()
    box.setValue(1 / 3)
    assert "0.3333333333333333" in box.toolTip()
    assert "0.3333333333333333" not in box.text()


def test_limit_boxes_of_integers_are_exact(qtbot: QtBot) -> None:
    box = LimitBox(is_integer=True)
    qtbot.addWidget(box)
    box.setValue(2**63 + 1)
    assert (box.text(), box.value()) == ("9223372036854775809", 2**63 + 1)
    for text, value in (("18446744073709551615", 2**64 - 1), ("-5", -5), ("1e300", 10**300), ("+7", 7)):
        assert box.validate(text, 0)[0].name == "Acceptable"
        assert box.valueFromText(text) == value
    for text in ("", "-", "1e"):
        assert box.validate(text, 0)[0].name == "Intermediate"
    for text in ("x", "1.5", "1,000", "nan", "1e400", "1e-3", "9" * 400):
        assert box.validate(text, 0)[0].name != "Acceptable"
        assert box.valueFromText(text) == box.value()


@pytest.mark.parametrize(
    ("is_integer", "value", "steps", "expected"),
    [
        (True, 2**63, 1, 2**63 + 10**17),
        (True, 100, 1, 110),
        (True, 100, -1, 99),
        (True, 9, 1, 10),
        (True, 0, -1, -1),
        (True, -100, 1, -99),
        (False, 100.0, -1, 99.0),
        (False, 0.25, 1, 0.26),
        (False, 1e300, 1, 1.1e300),
        (False, 0.0, 1, 0.5),
    ],
)
def test_a_step_of_a_limit_box_changes_the_second_digit(
    qtbot: QtBot, is_integer: bool, value: float, steps: int, expected: float
) -> None:
    box = LimitBox(is_integer)
    qtbot.addWidget(box)
    box.zero_step = 0.5
    box.setValue(value)
    box.stepBy(steps)
    assert box.value() == pytest.approx(expected, rel=1e-12)


def test_limits_of_64_bit_integers_are_exact_everywhere(
    qtbot: QtBot, open_in_window: OpenInWindow, tmp_path: Path
) -> None:
    """The limits of automatic contrast, the fields, the slider, the histogram, a link and the picture."""
    first = 2**63
    data = first + np.arange(256, dtype=np.uint64).reshape(16, 16)
    zarrfs.create_array(tmp_path / "a.zarr", data=data, chunks=(8, 8))
    window = open_in_window(tmp_path / "a.zarr")
    limits = lambda: None if window.display_settings is None else window.display_settings.channels[0].limits  # noqa: E731
    qtbot.waitUntil(lambda: limits() == (first + 1, first + 254), timeout=TIMEOUT_MILLISECONDS)
    row = window.panel(Channels).panel.rows[0]
    assert (row.low.text(), row.high.text()) == (str(first + 1), str(first + 254))
    qtbot.waitUntil(lambda: window.panel(Channels).panel._histogram is not None, timeout=TIMEOUT_MILLISECONDS)
    found = window.panel(Channels).panel._histogram
    assert found is not None
    assert found.origin == first
    assert found.counts.tolist() == [1] * 256
    for slider in (row.slider, window.panel(Channels).panel.plot):
        for limit in (first + 1, first + 100, first + 254):
            value = slider.value_at(slider.position_of(limit))
            assert isinstance(value, int)
            assert abs(value - limit) <= 4
    edit = row.high.lineEdit()
    assert edit is not None
    edit.setText(str(first + 3))
    wait_until_exact(qtbot, window, lambda: QTest.keyClick(row.high, Qt.Key.Key_Return))
    assert limits() == (first + 1, first + 3)
    restored = from_json(json.loads(json.dumps(to_json(window.panel(SavedViewsMenu).current_view("v")))))
    assert restored.settings.channels[0].limits == (first + 1, first + 3)
    assert window.canvas.frame is not None
    assert set(np.unique(window.canvas.frame.pixels & 0xFF)) == {0, 128, 255}


def test_limits_cannot_be_edited_before_they_are_computed(
    qtbot: QtBot, open_in_window: OpenInWindow, stack: Path
) -> None:
    window = open_in_window(stack)
    row = window.panel(Channels).panel.rows[0]
    window.session.change_channel(0, limits=None)
    assert not row.low.isEnabled()
    with qtbot.assertNotEmitted(row.changed, wait=10):
        row.low.setValue(5)


@pytest.mark.parametrize(
    ("location", "expected"),
    [
        ("a/b.zarr", "{here}/a/b.zarr"),
        ("../b.zarr/", "{above}/b.zarr"),
        (".", "{here}"),
        ("/a/b.zarr", "/a/b.zarr"),
        ("https://host/a.zarr", "https://host/a.zarr"),
        ("s3://bucket/a", "s3://bucket/a"),
        ("file:///a", "file:///a"),
        ("zip::file:///a.zip", "zip::file:///a.zip"),
        ("", ""),
    ],
)
def test_relative_paths_become_absolute(
    location: str, expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert absolute_location(location) == expected.format(here=tmp_path, above=tmp_path.parent)


def test_recent_locations_and_views_have_absolute_paths(
    qtbot: QtBot, window: MainWindow, stack: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(stack.parent)
    wait_until_opened(qtbot, window, lambda: window.open_location("stack.zarr"))
    assert window.opener.recent() == [str(stack)]
    view = window.panel(SavedViewsMenu).current_view("v")
    assert view is not None
    assert view.location == str(stack)


def test_another_well_keeps_the_channel_settings(qtbot: QtBot, window: MainWindow, tmp_path: Path) -> None:
    window.open_location(str(write_plate(tmp_path / "plate.zarr")))
    qtbot.waitUntil(lambda: window.panel(Plates).plate.table.rowCount() == 2, timeout=TIMEOUT_MILLISECONDS)
    table = window.panel(Plates).plate.table
    table.setFocus()
    wait_until_opened(qtbot, window, lambda: table.setCurrentCell(0, 0))
    wait_until_exact(
        qtbot, window, lambda: window.session.change_channel(0, limits=(3.0, 77.0), colormap="magma")
    )
    wait_until_exact(qtbot, window, lambda: window.session.change_channel(1, visible=False))

    def observed() -> list[object]:
        assert window.display_settings is not None
        return [(c.limits, c.colormap, c.visible) for c in window.display_settings.channels[:2]]

    before = observed()
    wait_until_opened(qtbot, window, lambda: QTest.keyClick(table, Qt.Key.Key_Right))
    assert table.currentColumn() == 1, "an arrow key does not select the next well"
    assert observed() == before
    wait_until_opened(qtbot, window, lambda: QTest.keyClick(table, Qt.Key.Key_Down))
    assert table.currentRow() == 1
    assert observed() == before
    wait_until_opened(qtbot, window, lambda: window.panel(Plates).plate.field.activated.emit(0))
    assert observed() == before
    window.actions_by_name["auto_contrast_per_image"].trigger()
    wait_until_opened(qtbot, window, lambda: table.setCurrentCell(0, 2))
    assert observed() != before
    assert window.display_settings is not None
    assert window.display_settings.channels[0].colormap == "magma", "auto contrast changes only the contrast"
    assert not window.display_settings.channels[1].visible


def test_the_histogram_spans_nearly_all_values_and_the_limits(
    qtbot: QtBot, open_in_window: OpenInWindow, tmp_path: Path
) -> None:
    data = np.random.default_rng(0).normal(1000, 20, (128, 128)).astype("u2")
    data[0, 0] = 65535
    zarrfs.create_array(tmp_path / "h.zarr", data=data, chunks=(64, 64))
    window = open_in_window(tmp_path / "h.zarr")
    qtbot.waitUntil(lambda: window.panel(Channels).panel._histogram is not None, timeout=TIMEOUT_MILLISECONDS)
    found = window.panel(Channels).panel._histogram
    assert found is not None
    assert found.edges[-1] > 65000
    high = found.span()[1]
    assert high < 2000

    def seen() -> tuple[float, float]:
        return window.panel(Channels).panel.plot.range

    assert seen()[1] < 2500
    wait_until_exact(qtbot, window, lambda: window.session.change_channel(0, limits=(0.0, 5000.0)))
    assert seen()[1] >= 5000


def test_a_histogram_handle_moves_one_limit(qtbot: QtBot, open_in_window: OpenInWindow, stack: Path) -> None:
    window = open_in_window(stack)
    wait_until_exact(qtbot, window, lambda: window.session.change_channel(0, limits=(1.25, 7.0 / 3)))
    qtbot.waitUntil(lambda: window.panel(Channels).panel._histogram is not None, timeout=TIMEOUT_MILLISECONDS)
    plot = window.panel(Channels).panel.plot
    middle = plot.height() // 2

    def drag(start: float, end: float) -> None:
        positions = [QPoint(round(plot.position_of(value)), middle) for value in (start, end)]
        QTest.mousePress(plot, Qt.MouseButton.LeftButton, pos=positions[0])
        QTest.mouseMove(plot, positions[1])
        QTest.mouseRelease(plot, Qt.MouseButton.LeftButton, pos=positions[1])

    def limits() -> tuple[float, float] | None:
        assert window.display_settings is not None
        return window.display_settings.channels[0].limits

    low, high = plot.range
    inside = low + 0.2 * (high - low), low + 0.8 * (high - low)
    wait_until_exact(qtbot, window, lambda: window.session.change_channel(0, limits=inside))
    drag(inside[1], inside[1] + 0.1 * (high - low))
    moved = limits()
    assert moved is not None
    assert moved[0] == inside[0]
    assert moved[1] > inside[1]
    drag((inside[0] + inside[1]) / 2, high)
    assert limits() == moved, "the region between the lines can be dragged"
    drag(inside[0], high)
    assert limits() == (moved[1], moved[1]), "the lines have passed each other"


def wheel(widget: QWidget) -> QWheelEvent:
    center = QPointF(widget.rect().center())
    event = QWheelEvent(
        center,
        QPointF(widget.mapToGlobal(widget.rect().center())),
        QPoint(0, 0),
        QPoint(0, -120),
        Qt.MouseButton.NoButton,
        Qt.KeyboardModifier.NoModifier,
        Qt.ScrollPhase.NoScrollPhase,
        False,
    )
    QApplication.sendEvent(widget, event)
    return event


def test_the_wheel_changes_only_a_focused_widget(
    qtbot: QtBot, open_in_window: OpenInWindow, cells: Path
) -> None:
    window = open_in_window(cells)
    row = window.panel(Channels).panel.rows[0]
    before = window.display_settings
    for widget in (row.low, row.high, row.gamma, row.colormap):
        assert not wheel(widget).isAccepted(), "a widget without focus consumed the wheel event"
    assert window.display_settings == before
    window.activateWindow()
    row.gamma.setFocus()
    qtbot.waitUntil(row.gamma.hasFocus, timeout=TIMEOUT_MILLISECONDS)
    wheel(row.gamma)
    assert window.display_settings is not None
    assert window.display_settings.channels[0].gamma == pytest.approx(0.9)


def test_the_canvas_has_the_focus_until_a_field_is_clicked(
    qtbot: QtBot, window: MainWindow, cells: Path
) -> None:
    window.activateWindow()
    assert window.focusWidget() is window.empty
    wait_until_opened(qtbot, window, lambda: window.open_location(str(cells)))
    assert window.focusWidget() is window.canvas
    low = window.panel(Channels).panel.rows[0].low
    low.setFocus()
    QTest.keyClick(low, Qt.Key.Key_Return)
    assert window.focusWidget() is window.canvas


class BlockedStore(ObservedStore):
    """A store whose chunk reads block until ``unblock`` is set."""

    def __init__(self, path: Path) -> None:
        super().__init__(LocalStore(path))
        self.unblock = threading.Event()
        self.is_blocked = threading.Event()

    def _before(self, operation: str, key: str) -> None:
        if "/" in key:
            self.is_blocked.set()
            self.unblock.wait()


def test_a_window_closes_while_a_read_is_running(qtbot: QtBot, window: MainWindow, stack: Path) -> None:
    store = BlockedStore(stack)
    try:
        window.open_location(store)
        qtbot.waitUntil(store.is_blocked.is_set, timeout=TIMEOUT_MILLISECONDS)
        # The read is blocked until the end of the test. Closing does not wait for it.
        window.close()
        assert not window.isVisible()
    finally:
        store.unblock.set()


def test_a_screenshot_of_a_plate_shows_its_overview(tmp_path: Path) -> None:
    plate = write_plate(tmp_path / "plate.zarr")
    done = take_screenshot(plate, tmp_path / "plate.png")
    assert (done.returncode, done.stderr) == (0, "")
    assert not QImage(str(tmp_path / "plate.png")).isNull()


WITHOUT_PANELS = """
import sys
from zarrfs_viewer.main import run
from zarrfs_viewer.qt.window import application

application.MAX_PANEL_POLLS = 0
run(sys.argv[1:])
"""
"""A program that takes screenshots without waiting for the panels, as if they needed a long time."""


def test_a_screenshot_of_a_curve_waits_for_it(tmp_path: Path) -> None:
    zarrfs.create_array(tmp_path / "curve.zarr", data=np.tile(np.array([0.0, 1.0]), 40))
    done = take_screenshot(tmp_path / "curve.zarr", tmp_path / "curve.png", ("-c", WITHOUT_PANELS))
    assert (done.returncode, done.stderr) == (0, "")
    picture = QImage(str(tmp_path / "curve.png"))
    center = [picture.pixelColor(x, y) for x in range(250, 550, 3) for y in range(120, 400)]
    assert sum(color.blue() > 200 and color.red() < 150 for color in center) > 100, "the curve is not drawn"


WITH_A_WARNING = """
import sys
from PyQt6.QtCore import qWarning
from zarrfs_viewer.main import run
from zarrfs_viewer.qt.window import application


class Window(application.MainWindow):
    def __init__(self, *arguments):
        super().__init__(*arguments)
        qWarning("a font is missing")


application.MainWindow = Window
run(sys.argv[1:])
"""
"""A program that takes screenshots while Qt reports a problem."""


def test_messages_of_qt_are_printed_while_a_screenshot_is_taken(stack: Path, tmp_path: Path) -> None:
    done = take_screenshot(stack, tmp_path / "stack.png", ("-c", WITH_A_WARNING))
    assert (done.returncode, done.stderr) == (0, "Qt: a font is missing\n")


def test_a_screenshot_of_a_plate_without_readable_wells_terminates(tmp_path: Path) -> None:
    plate = write_plate(tmp_path / "plate.zarr")
    for document in plate.glob("*/*/zarr.json"):
        document.write_text("{")
    done = take_screenshot(plate, tmp_path / "plate.png")
    assert done.returncode == 0, done.stderr
    assert not QImage(str(tmp_path / "plate.png")).isNull()
