"""Measurements, slab projections, linked panes, export, saved views, messages and histograms."""

from __future__ import annotations

import csv
import io
import logging
import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import tifffile
from PyQt6.QtCore import QPoint, Qt
from PyQt6.QtGui import QGuiApplication, QImage
from PyQt6.QtWidgets import QDialog, QFileDialog, QInputDialog
from pytestqt.qtbot import QtBot
from zarrfs_viewer.analysis.shapes import Shape
from zarrfs_viewer.qt.panels.channels.channels import Channels
from zarrfs_viewer.qt.panels.measure.measurements import Measurements
from zarrfs_viewer.qt.panels.messages import Messages
from zarrfs_viewer.qt.panels.metadata.metadata import Metadata
from zarrfs_viewer.qt.panels.pictures.export_dialog import ExportDialog
from zarrfs_viewer.qt.panels.pictures.pictures import PictureActions
from zarrfs_viewer.qt.panels.position.position import Position
from zarrfs_viewer.qt.window.application import open_window
from zarrfs_viewer.qt.window.main_window import MainWindow
from zarrfs_viewer.state.view_state import Projection

import zarrfs
from tests.viewer.qt.waiting import TIMEOUT_MILLISECONDS, wait_until_exact, wait_until_opened
from zarrfs.engine.stores.local.store import LocalStore
from zarrfs.testing import LatencyStore

OpenInWindow = Callable[[object], MainWindow]


@pytest.fixture(scope="module")
def ramp(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An array with the axes z, y, x, the shape (6, 40, 60) and the values 1000 z + 10 y + x.

    One of the two chunks at z = 5 is missing.
    """
    path = tmp_path_factory.mktemp("ramp") / "ramp.zarr"
    z, y, x = np.indices((6, 40, 60))
    data = (1000 * z + 10 * y + x).astype("u2")
    zarrfs.create_array(
        path,
        data=data,
        chunks=(1, 40, 30),
        dimension_names=["z", "y", "x"],
        fill_value=7,
        attributes={},
    )
    (path / "c" / "5" / "0" / "1").unlink()
    return path


def at(window: MainWindow, row: float, column: float) -> QPoint:
    x, y = window.canvas.viewport.to_device(row, column)
    ratio = window.canvas.devicePixelRatioF()
    return QPoint(round(x / ratio), round(y / ratio))


def drag(qtbot: QtBot, window: MainWindow, start: QPoint, end: QPoint) -> None:
    qtbot.mousePress(window.canvas, Qt.MouseButton.LeftButton, pos=start)
    qtbot.mouseMove(window.canvas, (start + end) / 2)
    qtbot.mouseMove(window.canvas, end)
    qtbot.mouseRelease(window.canvas, Qt.MouseButton.LeftButton, pos=end)


def table(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def test_a_line_profile_is_measured_and_copied(
    qtbot: QtBot, open_in_window: OpenInWindow, ramp: Path
) -> None:
    window = open_in_window(ramp)
    window.actions_by_name["line"].trigger()
    assert window.panels.currentWidget() is window.panel(Measurements).measure
    drag(qtbot, window, at(window, 10, 5), at(window, 10, 45))
    shape = window.canvas.shape
    assert shape is not None
    assert shape.kind == "line"
    qtbot.waitUntil(lambda: bool(window.panel(Measurements).measure.text), timeout=TIMEOUT_MILLISECONDS)
    rows = table(window.panel(Measurements).measure.text)
    values = np.array([float(list(row.values())[1]) for row in rows])
    position = window.display_settings.position[0] if window.display_settings is not None else 0
    expected = 1000 * position + 10 * shape.start[0] + np.linspace(shape.start[1], shape.end[1], len(rows))
    slope = np.linspace(0, 10 * (shape.end[0] - shape.start[0]), len(rows))
    assert np.allclose(values, expected + slope, atol=0.01)
    window.actions_by_name["copy_csv"].trigger()
    clipboard = QGuiApplication.clipboard()
    assert clipboard is not None
    assert clipboard.text() == window.panel(Measurements).measure.text


@pytest.mark.parametrize("kind", ["rectangle", "ellipse"])
def test_region_statistics_are_measured(
    kind: str, qtbot: QtBot, open_in_window: OpenInWindow, ramp: Path
) -> None:
    window = open_in_window(ramp)
    wait_until_exact(qtbot, window, lambda: window.panel(Position).dimensions.set_position(0, 2))
    window.actions_by_name[kind].trigger()
    window.canvas.show_shape(
        Shape("rectangle" if kind == "rectangle" else "ellipse", ((9.6, 4.6), (20.4, 25.4)))
    )
    qtbot.waitUntil(lambda: bool(window.panel(Measurements).measure.text), timeout=TIMEOUT_MILLISECONDS)
    (row,) = table(window.panel(Measurements).measure.text)
    data = zarrfs.open(ramp)[2]
    y, x = np.indices(data.shape)
    inside = (abs(y - 15) <= 5.4) & (abs(x - 15) <= 10.4)
    if kind == "ellipse":
        inside = ((y - 15) / 5.4) ** 2 + ((x - 15) / 10.4) ** 2 <= 1
    assert int(row["count"]) == inside.sum()
    assert float(row["mean"]) == pytest.approx(data[inside].mean())
    before = window.panel(Measurements).measure.text
    wait_until_exact(qtbot, window, lambda: window.panel(Position).dimensions.set_position(0, 3))
    qtbot.waitUntil(lambda: window.panel(Measurements).measure.text != before, timeout=TIMEOUT_MILLISECONDS)
    (again,) = table(window.panel(Measurements).measure.text)
    assert float(again["mean"]) == pytest.approx(data[inside].mean() + 1000)


def test_shapes_are_moved_resized_saved_and_deleted(
    qtbot: QtBot, open_in_window: OpenInWindow, ramp: Path, tmp_path: Path
) -> None:
    window = open_in_window(ramp)
    window.panel(Measurements).set_tool("rectangle")
    drag(qtbot, window, at(window, 10, 10), at(window, 20, 30))
    first = window.canvas.shape
    assert first is not None
    drag(qtbot, window, at(window, 15, 20), at(window, 20, 25))
    second = window.canvas.shape
    assert second is not None
    assert np.allclose(np.subtract(second.rect, first.rect), 5, atol=0.5)
    drag(qtbot, window, at(window, *second.end), at(window, 35, 50))
    third = window.canvas.shape
    assert third is not None
    assert third.start == second.start
    assert np.allclose(third.end, (35, 50), atol=0.5)
    qtbot.waitUntil(lambda: bool(window.panel(Measurements).measure.text), timeout=TIMEOUT_MILLISECONDS)
    window.panel(Measurements).measure.write_csv(tmp_path / "numbers.csv")
    qtbot.waitUntil(lambda: "numbers.csv" in window.notice.text(), timeout=TIMEOUT_MILLISECONDS)
    assert (tmp_path / "numbers.csv").read_bytes() == window.panel(Measurements).measure.text.encode()
    assert "\r" not in window.panel(Measurements).measure.text
    assert window.panel(Measurements).measure.text.endswith("\n")
    window.panel(Measurements).measure.write_csv(tmp_path / "nowhere" / "numbers.csv")
    qtbot.waitUntil(lambda: "cannot be written" in window.notice.text(), timeout=TIMEOUT_MILLISECONDS)
    window.actions_by_name["delete_shape"].trigger()
    assert window.canvas.shape is None
    assert not window.panel(Measurements).measure.text
    window.panel(Measurements).set_tool("move")
    before = window.canvas.viewport.center
    drag(qtbot, window, at(window, 10, 10), at(window, 20, 30))
    assert window.canvas.shape is None
    assert window.canvas.viewport.center != before


def test_the_slab_action_cycles_through_the_projections(
    qtbot: QtBot, open_in_window: OpenInWindow, ramp: Path
) -> None:
    window = open_in_window(ramp)
    wait_until_exact(qtbot, window, lambda: window.panel(Position).dimensions.set_position(0, 2))
    window.panel(Position).dimensions.thickness.setValue(3)
    wait_until_exact(qtbot, window, window.actions_by_name["slab"].trigger)
    assert window.display_settings is not None
    assert window.display_settings.projection == Projection(0, "max", 3.0)
    window.canvas.pointed.emit((4.0, 6.0))
    assert "3046" in window.status.position.text()
    wait_until_exact(qtbot, window, window.actions_by_name["slab"].trigger)
    assert window.display_settings.projection == Projection(0, "mean", 3.0)
    window.canvas.pointed.emit((4.0, 6.0))
    assert "2046" in window.status.position.text()
    wait_until_exact(qtbot, window, window.actions_by_name["slab"].trigger)
    assert window.display_settings.projection is None


def test_playback_displays_every_slice(qtbot: QtBot, open_in_window: OpenInWindow, ramp: Path) -> None:
    window = open_in_window(ramp)
    start = window.display_settings.position[0] if window.display_settings is not None else 0
    window.actions_by_name["play"].trigger()
    seen: list[float] = []
    window.frame_shown.connect(lambda frame: seen.append(frame.state.settings.position[0]))
    qtbot.waitUntil(lambda: len(set(seen) - {start}) >= 3, timeout=TIMEOUT_MILLISECONDS)
    window.actions_by_name["play"].trigger()
    order = [position for position in dict.fromkeys(seen) if position != start]
    assert order[:3] == [(start + step) % 6 for step in (1, 2, 3)]


def test_linked_panes_share_position_and_zoom(qtbot: QtBot, open_in_window: OpenInWindow, ramp: Path) -> None:
    window = open_in_window(ramp)
    window.actions_by_name["linked"].trigger()
    right, below, _slab = window.panes.side
    assert [pane.displayed for pane in window.panes.all] == [(1, 2), (1, 0), (0, 2), (1, 2)]
    qtbot.waitUntil(
        lambda: all(p.canvas.frame is not None and p.canvas.frame.complete for p in window.panes.all),
        timeout=TIMEOUT_MILLISECONDS,
    )
    # A click in the lower pane selects the slice and the column of the other panes.
    below.canvas.clicked.emit(4.2, 17.8)
    assert window.display_settings is not None
    assert window.display_settings.position == (4.0, window.display_settings.position[1], 18.0)
    assert window.panel(Position).dimensions._sliders[0].value() == 4
    # Zooming one pane zooms all panes around the same point of the shared axes.
    window.canvas.zoom(2)
    viewports = [pane.canvas.viewport for pane in window.panes.all]
    assert viewports[1].zooms[0] == pytest.approx(viewports[0].zooms[0])
    assert viewports[2].zooms[1] == pytest.approx(viewports[0].zooms[1])
    assert viewports[1].center[0] == pytest.approx(viewports[0].center[0])
    before = window.display_settings.position
    right.canvas.stepped.emit(1)
    assert window.display_settings.position == (before[0], before[1], before[2] + 1)
    below.canvas.pointed.emit((3.0, 20.0))
    assert str(3000 + 10 * round(before[1]) + 20) in window.status.position.text()
    window.actions_by_name["linked"].trigger()
    assert window.panes.side == ()


def test_linked_panes_rotate_and_mirror_with_the_main_pane(
    qtbot: QtBot, open_in_window: OpenInWindow, ramp: Path
) -> None:
    window = open_in_window(ramp)
    window.actions_by_name["linked"].trigger()
    canvas = window.canvas
    seen = set()

    def device(number: int, point: tuple[float, ...]) -> tuple[float, float]:
        pane = window.panes.all[number]
        row, column = (point[axis] for axis in pane.displayed)
        viewport = pane.canvas.viewport
        x, y = viewport.to_device(row, column)
        return x - viewport.width / 2, y - viewport.height / 2

    for action in ["rotate"] * 4 + ["mirror"] + ["rotate"] * 4:
        window.actions_by_name[action].trigger()
        seen.add(canvas.orientation)
        for point in ((0, 0, 0), (3, 30, 10), (5, 7, 50)):
            x, y = device(0, point)
            assert device(3, point) == pytest.approx((x, y))
            right, below = device(1, point), device(2, point)
            assert right[1] == pytest.approx(y)
            assert below[0] == pytest.approx(x)
        assert device(1, (5, 0, 0))[0] > device(1, (0, 0, 0))[0]
        assert device(2, (5, 0, 0))[1] > device(2, (0, 0, 0))[1]
    assert len(seen) == 8
    qtbot.waitUntil(
        lambda: all(p.canvas.frame is not None and p.canvas.frame.complete for p in window.panes.all),
        timeout=TIMEOUT_MILLISECONDS,
    )
    window.actions_by_name["undo"].trigger()
    assert device(1, (0, 3, 9))[1] == pytest.approx(device(0, (0, 3, 9))[1])


def test_linked_panes_keep_the_region_and_the_drawn_shape(
    qtbot: QtBot, open_in_window: OpenInWindow, ramp: Path
) -> None:
    window = open_in_window(ramp)
    window.canvas.one_to_one()
    shape = Shape("rectangle", ((2.0, 3.0), (9.0, 12.0)))
    window.canvas.show_shape(shape)
    for _ in range(2):
        window.actions_by_name["linked"].trigger()
        assert window.canvas.viewport.zoom == 1.0
        assert window.canvas.shape == shape


def test_linked_panes_require_a_third_axis(
    qtbot: QtBot, open_in_window: OpenInWindow, tmp_path: Path
) -> None:
    zarrfs.create_array(tmp_path / "flat.zarr", data=np.eye(8), chunks=(8, 8))
    window = open_in_window(tmp_path / "flat.zarr")
    window.actions_by_name["linked"].trigger()
    assert "third axis" in window.notice.text()
    assert not window.actions_by_name["linked"].isChecked()


def test_missing_chunks_are_hatched(qtbot: QtBot, open_in_window: OpenInWindow, ramp: Path) -> None:
    window = open_in_window(ramp)
    window.actions_by_name["chunks"].trigger()
    wait_until_exact(qtbot, window, lambda: window.panel(Position).dimensions.set_position(0, 5))
    qtbot.waitUntil(lambda: len(window.canvas.layers.missing) == 1, timeout=TIMEOUT_MILLISECONDS)
    assert window.canvas.layers.missing[0] == (-0.5, 29.5, 39.5, 59.5)
    wait_until_exact(qtbot, window, lambda: window.panel(Position).dimensions.set_position(0, 1))
    qtbot.waitUntil(lambda: window.canvas.layers.missing == (), timeout=TIMEOUT_MILLISECONDS)


def chosen(window: MainWindow, part: str, form: str) -> ExportDialog:
    assert window.image is not None
    assert window.display_settings is not None
    dialog = ExportDialog(
        window.image, window.display_settings, window.canvas.viewport, 0, window.canvas.shape, window
    )
    dialog.part.setCurrentText(part)
    dialog.format.setCurrentIndex(dialog.format.findData(form))
    return dialog


def test_every_export_format_contains_the_selected_values(
    qtbot: QtBot, open_in_window: OpenInWindow, ramp: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    window = open_in_window(ramp)
    wait_until_exact(qtbot, window, lambda: window.panel(Position).dimensions.set_position(0, 3))
    window.canvas.show_shape(Shape("rectangle", ((3.5, 9.5), (13.5, 29.5))))
    data = zarrfs.open(ramp)[...]
    part = data[3:4, 4:14, 10:30]
    monkeypatch.setattr(ExportDialog, "exec", lambda self: QDialog.DialogCode.Accepted)
    for form, suffix in (("npy", ".npy"), ("tiff", ".ome.tif"), ("ome-zarr", ".ome.zarr"), ("png", ".png")):
        file = tmp_path / f"part{suffix}"
        monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *a, file=file: (str(file), ""))
        dialog = chosen(window, "Drawn region", form)
        assert window.display_settings is not None
        with qtbot.waitSignal(window.panel(PictureActions).exporter.finished, timeout=TIMEOUT_MILLISECONDS):
            window.panel(PictureActions).exporter.ask(dialog, window.display_settings)
        dialog.deleteLater()
    assert np.array_equal(np.load(tmp_path / "part.npy"), part)
    assert np.array_equal(tifffile.imread(tmp_path / "part.ome.tif").reshape(part.shape), part)
    assert np.array_equal(zarrfs.open(tmp_path / "part.ome.zarr", "0")[...], part)
    assert QImage(str(tmp_path / "part.png")).size().width() == 20
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *a: (str(tmp_path / "all.npy"), ""))
    with qtbot.waitSignal(window.panel(PictureActions).exporter.finished, timeout=TIMEOUT_MILLISECONDS):
        dialog = chosen(window, "All slices", "npy")
        window.panel(PictureActions).exporter.ask(dialog, window.display_settings)
    assert np.array_equal(np.load(tmp_path / "all.npy"), data)


def test_an_impossible_export_shows_the_reason(
    qtbot: QtBot, open_in_window: OpenInWindow, ramp: Path, tmp_path: Path
) -> None:
    window = open_in_window(ramp)
    dialog = chosen(window, "All slices", "png")
    qtbot.addWidget(dialog)
    save = dialog.buttons.button(dialog.buttons.StandardButton.Save)
    assert save is not None
    assert not save.isEnabled()
    assert "one slice" in dialog.summary.text()
    dialog.format.setCurrentIndex(dialog.format.findData("npy"))
    assert save.isEnabled()
    assert "6 x 40 x 60 values, " in dialog.summary.text()
    assert "KiB" in dialog.summary.text()
    assert window.display_settings is not None
    window.panel(PictureActions).exporter.write(
        dialog.choice(), tmp_path / "no" / "where.npy", window.display_settings
    )
    qtbot.waitUntil(lambda: "cannot be written" in window.outcome.text(), timeout=TIMEOUT_MILLISECONDS)


def test_a_cancelled_export_leaves_no_file(
    qtbot: QtBot, open_in_window: OpenInWindow, ramp: Path, tmp_path: Path
) -> None:
    window = open_in_window(ramp)
    dialog = chosen(window, "All slices", "npy")
    qtbot.addWidget(dialog)
    assert window.display_settings is not None
    window.panel(PictureActions).exporter.write(dialog.choice(), tmp_path / "x.npy", window.display_settings)
    window.panel(PictureActions).exporter.close()
    qtbot.waitUntil(lambda: bool(window.notice.text() or window.outcome.text()), timeout=TIMEOUT_MILLISECONDS)
    stopped = "cancelled" in window.notice.text()
    assert stopped or "Exported" in window.outcome.text()
    files = [file.name for file in tmp_path.iterdir() if file.name not in ("settings.ini", "thumbnails")]
    assert files == ([] if stopped else ["x.npy"])


def test_views_are_saved_opened_and_deleted(
    qtbot: QtBot, open_in_window: OpenInWindow, ramp: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    window = open_in_window(ramp)
    wait_until_exact(qtbot, window, lambda: window.panel(Position).dimensions.set_position(0, 4))
    wait_until_exact(
        qtbot, window, lambda: window.session.change_channel(0, colormap="magma", limits=(5.0, 900.0))
    )
    wait_until_exact(qtbot, window, lambda: window.canvas.zoom(3))
    saved_settings, saved_viewport = window.display_settings, window.canvas.viewport
    monkeypatch.setattr(QInputDialog, "getText", lambda *a, **k: ("a saved view", True))
    window.actions_by_name["save_view"].trigger()
    qtbot.waitUntil(lambda: "Saved the view" in window.notice.text(), timeout=TIMEOUT_MILLISECONDS)
    with qtbot.waitSignal(window.session.image_changed, timeout=TIMEOUT_MILLISECONDS):
        window.open_location(str(ramp))
    assert window.display_settings != saved_settings
    offered: list[list[str]] = []

    def choose(*arguments: object) -> tuple[str, bool]:
        names = arguments[3]
        assert isinstance(names, list)
        offered.append(names)
        return names[0], True

    monkeypatch.setattr(QInputDialog, "getItem", choose)
    window.actions_by_name["open_view"].trigger()
    qtbot.waitUntil(lambda: window.display_settings == saved_settings, timeout=TIMEOUT_MILLISECONDS)
    assert window.canvas.viewport == saved_viewport
    assert "a saved view" in offered[0][0]
    window.actions_by_name["delete_view"].trigger()
    qtbot.waitUntil(lambda: "Deleted the view" in window.notice.text(), timeout=TIMEOUT_MILLISECONDS)
    window.actions_by_name["open_view"].trigger()
    qtbot.waitUntil(lambda: "no saved views" in window.notice.text(), timeout=TIMEOUT_MILLISECONDS)


def test_a_link_restores_the_view(qtbot: QtBot, open_in_window: OpenInWindow, ramp: Path) -> None:
    window = open_in_window(ramp)
    wait_until_exact(qtbot, window, lambda: window.panel(Position).dimensions.set_position(0, 1))
    wait_until_exact(qtbot, window, lambda: window.canvas.zoom(2))
    settings, viewport = window.display_settings, window.canvas.viewport
    window.actions_by_name["copy_link"].trigger()
    wait_until_exact(qtbot, window, window.canvas.fit)
    window.actions_by_name["paste"].trigger()
    qtbot.waitUntil(lambda: window.canvas.viewport == viewport, timeout=TIMEOUT_MILLISECONDS)
    assert window.display_settings == settings
    assert window.canvas.viewport == viewport
    window.actions_by_name["copy_command"].trigger()
    clipboard = QGuiApplication.clipboard()
    assert clipboard is not None
    assert clipboard.text().startswith("zarrfs-viewer ")


def test_a_damaged_link_is_reported(qtbot: QtBot, window: MainWindow, ramp: Path) -> None:
    window.open_location(f"{ramp}#view=AAAA")
    assert "damaged" in window.notice.text()


def test_a_view_that_does_not_fit_the_image_is_reported(
    qtbot: QtBot, open_in_window: OpenInWindow, ramp: Path, tmp_path: Path
) -> None:
    window = open_in_window(ramp)
    view = window.session.view("v", window.canvas.viewport)
    assert view is not None
    zarrfs.create_array(tmp_path / "flat.zarr", data=np.eye(8), chunks=(8, 8))
    other = type(view)("v", str(tmp_path / "flat.zarr"), "", view.settings, view.viewport)
    wait_until_opened(qtbot, window, lambda: window.session.open_view(other))
    assert "the default view is displayed" in window.notice.text()


def test_the_log_contains_messages_and_engine_warnings(qtbot: QtBot, window: MainWindow) -> None:
    window.session.show_message("an information")
    window.session.show_message("a warning", True)
    assert window.panel(Messages).log.messages.count() == 2
    assert window.status.warnings.isVisible()
    record = logging.LogRecord("zarrfs", logging.WARNING, "", 0, "from the engine", None, None)
    thread = threading.Thread(target=lambda: window.panel(Messages).handler.handle(record))
    thread.start()
    thread.join()
    qtbot.waitUntil(
        lambda: "from the engine" in window.panel(Messages).log.text(), timeout=TIMEOUT_MILLISECONDS
    )
    window.actions_by_name["messages"].trigger()
    assert window.panel(Messages).dock.isVisible()
    window.panel(Messages).log.copy()
    clipboard = QGuiApplication.clipboard()
    assert clipboard is not None
    assert "a warning" in clipboard.text()
    window.panel(Messages).log.clear()
    assert not window.status.warnings.isVisible()


def test_the_component_of_complex_values_can_be_selected(
    qtbot: QtBot, open_in_window: OpenInWindow, tmp_path: Path
) -> None:
    data = (np.indices((20, 30)).sum(0) * np.exp(1j * np.linspace(0, 3, 30))).astype("c8")
    zarrfs.create_array(tmp_path / "c.zarr", data=data, chunks=(20, 30))
    window = open_in_window(tmp_path / "c.zarr")
    box = window.panel(Channels).panel.rows[0].component
    assert box.isVisibleTo(window)
    before = window.canvas.frame.pixels.copy()  # type: ignore[union-attr]
    box.setCurrentText("phase")
    wait_until_exact(qtbot, window, lambda: box.activated.emit(1))
    assert window.display_settings is not None
    assert window.display_settings.channels[0].component == "phase"
    assert not np.array_equal(before, window.canvas.frame.pixels)  # type: ignore[union-attr]


def test_the_histogram_covers_the_slice_or_the_stack(
    qtbot: QtBot, open_in_window: OpenInWindow, ramp: Path
) -> None:
    window = open_in_window(ramp)
    qtbot.waitUntil(lambda: window.panel(Channels).panel._histogram is not None, timeout=TIMEOUT_MILLISECONDS)
    first = window.panel(Channels).panel._histogram
    assert first is not None
    window.panel(Channels).panel.volume.setChecked(True)
    qtbot.waitUntil(
        lambda: window.panel(Channels).panel._histogram is not first, timeout=TIMEOUT_MILLISECONDS
    )
    stack = window.panel(Channels).panel._histogram
    assert stack is not None
    assert stack.edges[-1] - stack.edges[0] > first.edges[-1] - first.edges[0]


def test_a_closed_window_is_deleted(qtbot: QtBot, window: MainWindow) -> None:
    other = open_window(window.settings)
    with qtbot.waitSignal(other.destroyed, timeout=TIMEOUT_MILLISECONDS):
        other.close()


def test_the_gui_thread_does_not_access_the_store(qtbot: QtBot, window: MainWindow, ramp: Path) -> None:
    threads: set[int] = set()
    store = LatencyStore(LocalStore(ramp), lambda operation, key: threads.add(threading.get_ident()))
    wait_until_opened(qtbot, window, lambda: window.open_location(store))
    wait_until_exact(qtbot, window, lambda: window.panel(Position).dimensions.set_position(0, 4))
    window.actions_by_name["chunks"].trigger()
    window.actions_by_name["linked"].trigger()
    window.panel(Channels).contrast.auto_contrast()
    window.panel(Channels).panel.volume.setChecked(True)
    window.panels.setCurrentWidget(window.panel(Metadata).panel)
    for row in range(4):
        window.panel(Metadata).panel.tabs.setCurrentIndex(row)
    window.canvas.show_shape(Shape("line", ((1.0, 1.0), (20.0, 30.0))))
    wait_until_exact(qtbot, window, window.panel(Position).show_next_axes)
    qtbot.waitUntil(lambda: not window.status.busy.isVisible(), timeout=TIMEOUT_MILLISECONDS)
    assert threads
    assert threading.get_ident() not in threads
