"""The main window: opening, display, panels, errors, actions and screenshots."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PyQt6.QtCore import QMimeData, QPointF, Qt, QTimer, QUrl
from PyQt6.QtGui import QDropEvent, QImage
from PyQt6.QtWidgets import QAbstractSpinBox, QDockWidget, QLabel, QMenu, QWidget
from pytestqt.modeltest import ModelTester
from pytestqt.qtbot import QtBot
from zarrfs_viewer.qt.panels.channels.channels import Channels
from zarrfs_viewer.qt.panels.hierarchy.hierarchy import Hierarchy
from zarrfs_viewer.qt.panels.metadata.metadata import Metadata
from zarrfs_viewer.qt.panels.position.position import Position
from zarrfs_viewer.qt.window.command_palette import CommandPalette, KeyHelp, key_help
from zarrfs_viewer.qt.window.main_window import MainWindow

import zarrfs
from tests.processes import TIMEOUT
from tests.viewer.qt.waiting import TIMEOUT_MILLISECONDS, wait_until_exact, wait_until_opened
from tests.viewer.screenshots import take_screenshot
from zarrfs.engine.stores.local.store import LocalStore
from zarrfs.errors import StoreError
from zarrfs.synthetic import make_picture, write_image
from zarrfs.testing import FailingStore, LatencyStore

OpenInWindow = Callable[[object], MainWindow]

DOCUMENTS = Path(__file__).resolve().parents[3] / "docs"


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An image with three channels, a pyramid and labels."""
    path = tmp_path_factory.mktemp("stack") / "cells.ome.zarr"
    write_image(path, make_picture((12, 128, 160)))
    return path


def pixels(window: MainWindow) -> np.ndarray:
    frame = window.canvas.frame
    assert frame is not None
    return np.asarray(frame.pixels)


def test_an_empty_window_shows_instructions(window: MainWindow) -> None:
    assert window.stack.currentWidget() is window.empty
    texts = [label.text() for label in window.empty.findChildren(QLabel)]
    assert any("Drop folders, zip files, metadata files or links" in text for text in texts)
    assert all(dock.isHidden() for dock in window.findChildren(QDockWidget))


def test_an_image_is_displayed_with_its_channels(
    qtbot: QtBot, open_in_window: OpenInWindow, stack: Path
) -> None:
    window = open_in_window(stack)
    assert window.image is not None
    assert len(window.panel(Channels).panel.rows) == 3
    assert pixels(window).any()
    assert window.panel(Position).dimensions.axes == (1,)
    assert stack.name in window.windowTitle() or window.image.name in window.windowTitle()
    assert not window.notice.isVisible()
    image = window.canvas.grab().toImage()
    assert image.pixelColor(image.width() // 2, image.height() // 2).value() > 0


def test_displayed_slices_match_the_data(qtbot: QtBot, open_in_window: OpenInWindow, tmp_path: Path) -> None:
    data = np.zeros((5, 64, 64), "u1")
    for z in range(5):
        data[z] = 50 * z
    zarrfs.create_array(tmp_path / "a.zarr", data=data, chunks=(1, 32, 32), dimension_names=["z", "y", "x"])
    window = open_in_window(tmp_path / "a.zarr")
    wait_until_exact(qtbot, window, lambda: window.session.change_channel(0, limits=(0.0, 255.0)))
    for z in (0, 4, 2):
        if window.display_settings is not None and window.display_settings.position[0] != z:
            wait_until_exact(qtbot, window, lambda z=z: window.panel(Position).dimensions.set_position(0, z))
        middle = pixels(window)[pixels(window).shape[0] // 2, pixels(window).shape[1] // 2]
        assert abs(int(middle & 0xFF) - 50 * z) <= 1


def test_channels_are_changed_from_their_controls(
    qtbot: QtBot, open_in_window: OpenInWindow, stack: Path
) -> None:
    window = open_in_window(stack)
    before = pixels(window).copy()
    row = window.panel(Channels).panel.rows[0]
    wait_until_exact(qtbot, window, lambda: row.visible.setChecked(False))
    assert not np.array_equal(pixels(window), before)
    wait_until_exact(qtbot, window, lambda: window.panel(Channels).panel.rows[1].solo.setChecked(True))
    assert window.display_settings is not None
    assert len(window.display_settings.shown_channels) == 1
    wait_until_exact(qtbot, window, lambda: row.gamma.setValue(2.0))
    assert window.display_settings.channels[0].gamma == 2.0
    wait_until_exact(qtbot, window, lambda: row.low.setValue(17))
    assert window.display_settings.channels[0].limits is not None
    assert window.display_settings.channels[0].limits[0] == 17
    wait_until_exact(qtbot, window, window.panel(Channels).contrast.auto_contrast)


def test_zoom_pan_and_fit_change_the_viewport(
    qtbot: QtBot, open_in_window: OpenInWindow, stack: Path
) -> None:
    window = open_in_window(stack)
    whole = window.canvas.viewport
    wait_until_exact(qtbot, window, lambda: window.canvas.zoom(3))
    assert window.canvas.viewport.zoom == pytest.approx(3 * whole.zoom)
    wait_until_exact(qtbot, window, lambda: qtbot.keyClick(window.canvas, Qt.Key.Key_Right))
    assert window.canvas.viewport.center != whole.center
    wait_until_exact(qtbot, window, window.canvas.one_to_one)
    assert window.canvas.viewport.zoom == 1
    wait_until_exact(qtbot, window, window.canvas.fit)
    assert window.canvas.viewport.zoom == pytest.approx(whole.zoom)


def test_the_next_axes_action_cycles_through_the_axis_pairs(
    qtbot: QtBot, open_in_window: OpenInWindow, stack: Path
) -> None:
    window = open_in_window(stack)
    assert window.display_settings is not None
    first = window.display_settings.displayed
    wait_until_exact(qtbot, window, window.panel(Position).show_next_axes)
    assert window.display_settings.displayed != first
    assert window.panel(Position).dimensions.axes != (1,)
    for _ in range(2):
        wait_until_exact(qtbot, window, window.panel(Position).show_next_axes)
    assert window.display_settings.displayed == first


def test_the_readout_is_shown_while_the_pointer_is_over_the_image(
    qtbot: QtBot, open_in_window: OpenInWindow, stack: Path
) -> None:
    window = open_in_window(stack)
    window.canvas.pointed.emit((10.0, 20.0))
    assert window.status.position.text()
    window.canvas.pointed.emit(None)
    assert window.status.position.text() == ""


def test_activating_a_node_in_the_tree_displays_its_image_and_metadata(
    qtbot: QtBot, open_in_window: OpenInWindow, stack: Path
) -> None:
    window = open_in_window(stack)
    model, view = window.panel(Hierarchy).tree.model, window.panel(Hierarchy).tree.view
    top = model.index(0, 0)
    view.expand(top)
    qtbot.waitUntil(lambda: model.rowCount(top) >= 3, timeout=TIMEOUT_MILLISECONDS)
    names = [model.index(row, 0, top).data() for row in range(model.rowCount(top))]
    assert "labels" in names
    assert "0" in names
    index = model.index(names.index("labels"), 0, top)
    view.setCurrentIndex(index)
    qtbot.waitUntil(lambda: model.item(index).is_group, timeout=TIMEOUT_MILLISECONDS)
    wait_until_opened(qtbot, window, lambda: view.activated.emit(index))
    index = model.index(names.index("1"), 0, top)
    view.setCurrentIndex(index)
    wait_until_opened(qtbot, window, lambda: view.activated.emit(index))
    assert window.display_settings is not None
    assert window.display_settings.level_lock == 1
    summary = {
        window.panel(Metadata).panel.summary.topLevelItem(i).text(0)
        for i in range(window.panel(Metadata).panel.summary.topLevelItemCount())
    }
    assert {"Shape", "Compression", "Chunks"} <= summary
    window.panel(Hierarchy).tree.search.setText("labels")
    assert window.panel(Hierarchy).tree.model.rowCount(window.panel(Hierarchy).tree.model.index(0, 0)) == 1


def test_the_tree_model_passes_the_qt_model_tester(
    qtbot: QtBot, open_in_window: OpenInWindow, stack: Path, qtmodeltester: ModelTester
) -> None:
    window = open_in_window(stack)
    window.panel(Hierarchy).tree.view.expand(window.panel(Hierarchy).tree.model.index(0, 0))
    qtbot.waitUntil(
        lambda: (
            window.panel(Hierarchy).tree.model.rowCount(window.panel(Hierarchy).tree.model.index(0, 0)) >= 3
        ),
        timeout=TIMEOUT_MILLISECONDS,
    )
    qtmodeltester.check(window.panel(Hierarchy).tree.model)


def test_the_metadata_search_hides_other_attributes(open_in_window: OpenInWindow, stack: Path) -> None:
    window = open_in_window(stack)
    root = window.panel(Metadata).panel.attributes.invisibleRootItem()
    assert root is not None
    window.panel(Metadata).panel.search.setText("micrometer")
    assert any(not root.child(i).isHidden() for i in range(root.childCount()))
    window.panel(Metadata).panel.search.setText("nothing has this")
    assert all(root.child(i).isHidden() for i in range(root.childCount()))


def test_dropped_urls_and_text_are_opened(qtbot: QtBot, window: MainWindow, stack: Path) -> None:
    urls, text = QMimeData(), QMimeData()
    urls.setUrls([QUrl.fromLocalFile(str(stack / "zarr.json"))])
    text.setText(f"  '{stack}/1' ")
    for data, expected in ((urls, str(stack)), (text, f"{stack}/1")):
        event = QDropEvent(
            QPointF(5, 5),
            Qt.DropAction.CopyAction,
            data,
            Qt.MouseButton.LeftButton,
            Qt.KeyboardModifier.NoModifier,
        )
        wait_until_opened(qtbot, window, lambda event=event: window.dropEvent(event))
        assert window.opener.recent()[0] == expected


@pytest.mark.parametrize("kind", ["missing", "empty group"])
def test_a_location_without_an_image_shows_the_reason(
    kind: str, qtbot: QtBot, window: MainWindow, tmp_path: Path
) -> None:
    path = tmp_path / "x.zarr"
    if kind == "empty group":
        zarrfs.create_group(path, attributes={"still": "shown"})
    with qtbot.waitSignal(window.failed, timeout=TIMEOUT_MILLISECONDS):
        window.open_location(str(path))
    assert window.notice.text()
    assert window.notice.isVisible()
    if kind == "empty group":
        document = window.panel(Metadata).panel.document
        qtbot.waitUntil(lambda: "still" in document.toPlainText(), timeout=TIMEOUT_MILLISECONDS)


def test_a_corrupt_chunk_is_reported_and_other_chunks_are_displayed(
    qtbot: QtBot, window: MainWindow, tmp_path: Path
) -> None:
    path = tmp_path / "b.zarr"
    zarrfs.create_array(
        path, data=np.indices((512, 512)).sum(0).astype("u2"), chunks=(256, 256), dimension_names=["y", "x"]
    )
    chunk = path / "c" / "1" / "1"
    chunk.write_bytes(chunk.read_bytes()[:15])
    with qtbot.waitSignal(
        window.frame_shown, timeout=TIMEOUT_MILLISECONDS, check_params_cb=lambda frame: frame.finished
    ):
        window.open_location(str(path))
    qtbot.waitUntil(lambda: "c/1/1" in window.notice.text(), timeout=TIMEOUT_MILLISECONDS)
    frame = window.canvas.frame
    assert frame is not None
    assert not frame.complete
    assert (frame.pixels & 0xFF).any()


def test_the_event_loop_runs_while_a_chunk_is_read(qtbot: QtBot, window: MainWindow, tmp_path: Path) -> None:
    zarrfs.create_array(tmp_path / "s.zarr", data=np.ones((64, 64), "u1"), chunks=(64, 64))
    gate, entered = threading.Event(), threading.Event()

    def wait(operation: str, key: str) -> None:
        if key.startswith("c/") and operation.startswith("get"):
            entered.set()
            gate.wait(TIMEOUT)

    store = LatencyStore(LocalStore(tmp_path / "s.zarr"), wait)
    try:
        window.open_location(store)  # type: ignore[arg-type]
        qtbot.waitUntil(entered.is_set, timeout=TIMEOUT_MILLISECONDS)
        ticks: list[bool] = []
        timer = QTimer()
        timer.timeout.connect(lambda: ticks.append(True))
        timer.start(0)
        window.canvas.zoom(1.1)
        qtbot.waitUntil(lambda: len(ticks) >= 5, timeout=TIMEOUT_MILLISECONDS)
        timer.stop()
        assert window.canvas.frame is None
    finally:
        with qtbot.waitSignal(
            window.frame_shown, timeout=TIMEOUT_MILLISECONDS, check_params_cb=lambda frame: frame.complete
        ):
            gate.set()


def test_a_store_failure_is_reported_and_hatched(qtbot: QtBot, window: MainWindow, tmp_path: Path) -> None:
    path = tmp_path / "v.zarr"
    zarrfs.create_array(path, data=np.full((9, 64, 64), 9, "u1"), chunks=(1, 64, 64))
    gone: list[bool] = []
    store = FailingStore(
        LocalStore(path), lambda _, key: StoreError(f"{key}: the disk is gone") if gone else None
    )
    wait_until_opened(qtbot, window, lambda: window.open_location(store))
    before = pixels(window).copy()
    assert before.any()
    gone.append(True)
    window.panel(Position).dimensions.set_position(0, 8)
    qtbot.waitUntil(lambda: "the disk is gone" in window.notice.text(), timeout=TIMEOUT_MILLISECONDS)
    assert "c/8/0/0" in window.notice.text()
    assert window.notice.isVisible()
    qtbot.waitUntil(lambda: bool((pixels(window) == 0xFF600060).any()), timeout=TIMEOUT_MILLISECONDS)
    assert set(np.unique(pixels(window))) == {0xFF600060, 0xFF200020}, "pixels of another slice remain"
    gone.clear()
    wait_until_exact(qtbot, window, window.actions_by_name["retry"].trigger)
    assert not window.notice.isVisible()


def test_an_error_delivered_after_a_retry_is_not_shown(
    qtbot: QtBot, window: MainWindow, tmp_path: Path
) -> None:
    path = tmp_path / "v.zarr"
    zarrfs.create_array(path, data=np.full((9, 64, 64), 9, "u1"), chunks=(1, 64, 64))
    gone = threading.Event()
    store = FailingStore(
        LocalStore(path), lambda _, key: StoreError(f"{key}: the disk is gone") if gone.is_set() else None
    )
    wait_until_opened(qtbot, window, lambda: window.open_location(store))
    reported = threading.Event()
    window.panes.main._tile_failed.connect(reported.set, Qt.ConnectionType.DirectConnection)  # type: ignore[call-arg]
    messages: list[str] = []
    window.session.message_changed.connect(lambda text, is_warning, action: messages.append(text))
    gone.set()
    window.panel(Position).dimensions.set_position(0, 8)
    # The error is in the event queue of this thread, which is not processed while the thread waits.
    assert reported.wait(TIMEOUT)
    gone.clear()
    wait_until_exact(qtbot, window, window.actions_by_name["retry"].trigger)
    assert messages == [""]
    assert not window.notice.isVisible()


def test_every_action_has_a_shortcut_and_a_palette_entry(qtbot: QtBot, window: MainWindow) -> None:
    keys = [action.shortcut().toString() for action in window.actions_by_name.values()]
    assert all(keys)
    assert len(set(keys)) == len(keys)
    palette = CommandPalette(window.actions_by_name, window)
    qtbot.addWidget(palette)
    enabled = [action for action in window.actions_by_name.values() if action.isEnabled()]
    assert palette.matches.count() == len(enabled)
    palette.search.setText("chunk grid")
    assert palette.matches.count() == 1
    qtbot.keyClick(palette.search, Qt.Key.Key_Return)
    assert window.actions_by_name["chunks"].isChecked()
    help_dialog = KeyHelp(window.actions_by_name, window)
    qtbot.addWidget(help_dialog)
    assert help_dialog.keys.topLevelItemCount() == len(key_help(window.actions_by_name))
    assert ("Ctrl+Shift+P", "Command palette") in key_help(window.actions_by_name)
    assert "?" in keys
    assert [key.toString() for key in window.actions_by_name["keys"].shortcuts()] == ["?", "F1"]
    file_menu = window.actions_by_name["quit"].associatedObjects()
    assert [menu.actions()[-1].text() for menu in file_menu if isinstance(menu, QMenu)] == ["&Close"]


def test_the_documents_name_shortcuts_that_exist(window: MainWindow) -> None:
    """Those after a title in bold, such as **Undo** (Ctrl+Z)."""
    actions = dict(key_help(window.actions_by_name))
    text = " ".join(
        (DOCUMENTS / name).read_text("utf-8") for name in ("viewer-images.md", "concurrent-access.md")
    )
    documented = re.findall(r"\*\*([^*]+)\*\*\s+\(((?:Ctrl\+|Shift\+|Alt\+)*(?:[A-Z,?]|F\d+))\)", text)
    assert ("Undo", "Ctrl+Z") in documented
    assert [(title, keys) for title, keys in documented if not actions.get(keys, "").startswith(title)] == []


def test_view_actions_toggle_chunk_grid_labels_and_theme(
    qtbot: QtBot, open_in_window: OpenInWindow, stack: Path
) -> None:
    window = open_in_window(stack)
    plain = window.canvas.grab().toImage()
    window.actions_by_name["chunks"].trigger()
    with_grid = window.canvas.grab().toImage()
    assert with_grid != plain
    left, top = (round(value) for value in window.canvas.viewport.to_device(-0.5, -0.5))
    beside = [
        (x, y)
        for x in range(with_grid.width())
        for y in range(with_grid.height())
        if x < left - 3 or y < top - 3
    ]
    assert beside
    assert all(with_grid.pixel(x, y) == plain.pixel(x, y) for x, y in beside), "the lines leave the image"
    window.actions_by_name["chunks"].trigger()
    before = pixels(window).copy()
    wait_until_exact(qtbot, window, window.actions_by_name["labels"].trigger)
    assert not np.array_equal(pixels(window), before)
    window.actions_by_name["dark"].trigger()
    assert window.settings.value("dark", True, bool) is False


def test_widgets_have_accessible_names(open_in_window: OpenInWindow, stack: Path) -> None:
    window = open_in_window(stack)
    for widget in (
        window.canvas,
        window.panel(Hierarchy).tree.view,
        window.panel(Metadata).panel.search,
        window.panel(Channels).panel.plot,
        window.panel(Channels).panel.rows[0].low,
    ):
        assert widget.accessibleName()


def test_each_control_of_a_channel_is_named_after_it(open_in_window: OpenInWindow, tmp_path: Path) -> None:
    data = np.zeros((2, 8, 8), "c8")
    zarrfs.create_array(tmp_path / "a.zarr", data=data, dimension_names=["c", "y", "x"])
    row = open_in_window(tmp_path / "a.zarr").panel(Channels).panel.rows[1]
    controls = [
        widget
        for widget in row.findChildren(QWidget)
        if widget.focusPolicy() & Qt.FocusPolicy.TabFocus
        and widget.window() is row.window()  # not the popup of a combo box
        and not isinstance(widget.parent(), QAbstractSpinBox)
    ]
    assert len(controls) > 5
    assert row.component in controls
    assert [widget for widget in controls if row.name not in widget.accessibleName()] == []


@pytest.mark.parametrize("size", ["640x480", "1280x900"])
def test_a_screenshot_from_the_command_line(size: str, stack: Path, tmp_path: Path) -> None:
    file = tmp_path / "picture.png"
    environment = {
        key: value for key, value in os.environ.items() if key not in ("DISPLAY", "QT_QPA_PLATFORM")
    }
    done = take_screenshot(stack, file, size=size, environment=environment)
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""
    image = QImage(str(file))
    assert image.width() >= int(size.partition("x")[0])
    done = take_screenshot(tmp_path / "no", file, size=size, environment=environment)
    assert done.returncode == 1
    assert [line for line in done.stderr.splitlines() if "zarrfs-viewer:" in line and "no such file" in line]


@pytest.mark.parametrize(
    ("display", "expected"),
    [
        ({}, "no DISPLAY or WAYLAND_DISPLAY or QT_QPA_PLATFORM"),
        ({"DISPLAY": ":4711"}, "DISPLAY=:4711"),
        ({"DISPLAY": "\x1b]0;x\x07"}, "\\x1b]0;x\\x07"),
        ({"WAYLAND_DISPLAY": "no-such-socket"}, "WAYLAND_DISPLAY=no-such-socket"),
        ({"QT_QPA_PLATFORM": "no-such-platform"}, "no-such-platform"),
    ],
)
def test_without_a_display_the_command_fails_with_one_line(
    display: dict[str, str], expected: str, tmp_path: Path
) -> None:
    names = ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM", "XDG_SESSION_TYPE")
    environment = {key: value for key, value in os.environ.items() if key not in names}
    environment["XDG_RUNTIME_DIR"] = str(tmp_path)
    done = subprocess.run(
        [sys.executable, "-m", "zarrfs_viewer.main", str(tmp_path)],
        capture_output=True,
        text=True,
        env={**environment, **display},
        check=False,
        timeout=120,
    )
    assert done.returncode == 1
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    assert line.startswith("zarrfs-viewer: no window can be opened: ")
    assert expected in line


def test_a_screenshot_needs_no_display(stack: Path, tmp_path: Path) -> None:
    file = tmp_path / "picture.png"
    environment = {key: value for key, value in os.environ.items() if key != "QT_QPA_PLATFORM"}
    done = take_screenshot(stack, file, size=None, environment={**environment, "DISPLAY": ":4711"})
    assert (done.returncode, done.stderr) == (0, "")
    assert QImage(str(file)).width() == 1280
