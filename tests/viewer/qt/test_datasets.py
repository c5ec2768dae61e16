"""Plates, wells, series and labels in a window, the actions of the hierarchy, and the OME-NGFF check."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import tifffile
from PyQt6.QtCore import QPoint, Qt
from PyQt6.QtGui import QDesktopServices, QGuiApplication, QIcon
from pytestqt.qtbot import QtBot
from zarrfs_viewer.qt.panels.gallery import Series
from zarrfs_viewer.qt.panels.hierarchy.hierarchy import Hierarchy
from zarrfs_viewer.qt.panels.labels.labels_panel import Labels
from zarrfs_viewer.qt.panels.metadata.metadata import Metadata
from zarrfs_viewer.qt.panels.plate.plates import Plates
from zarrfs_viewer.qt.window.main_window import MainWindow

import zarrfs
from tests.mount.mounted import needs_fuse
from tests.viewer.qt.hierarchies import write_plate, write_series
from tests.viewer.qt.waiting import TIMEOUT_MILLISECONDS, wait_until_exact, wait_until_opened
from zarrfs.mount import is_mounted
from zarrfs.synthetic import make_picture, write_image

OpenInWindow = Callable[[object], MainWindow]


@pytest.fixture(scope="module")
def cells(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("labels") / "cells.ome.zarr"
    write_image(path, make_picture((6, 96, 128)))
    return path


@pytest.fixture(scope="module")
def plate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_plate(tmp_path_factory.mktemp("plate") / "screen.ome.zarr")


def pixels_of(icon: QIcon) -> set[int]:
    image = icon.pixmap(96).toImage()
    return {image.pixel(x, y) for x in range(0, 96, 7) for y in range(0, 96, 7)}


def open_plate(qtbot: QtBot, window: MainWindow, plate: Path) -> None:
    with qtbot.waitSignal(window.session.dataset_changed, timeout=TIMEOUT_MILLISECONDS):
        window.open_location(str(plate))


def test_a_plate_is_displayed_as_a_grid_of_wells(qtbot: QtBot, window: MainWindow, plate: Path) -> None:
    open_plate(qtbot, window, plate)
    table = window.panel(Plates).plate.table
    assert window.panel(Plates).dock.isVisible()
    assert (table.rowCount(), table.columnCount()) == (2, 3)
    assert table.item(1, 2) is None
    first = table.item(0, 0)
    assert first is not None
    qtbot.waitUntil(lambda: len(pixels_of(first.icon())) > 5, timeout=TIMEOUT_MILLISECONDS)
    wait_until_opened(qtbot, window, lambda: table.setCurrentItem(table.item(1, 1)))
    assert window.image is not None
    assert window.image.path == "B/2/0"
    assert window.panel(Plates).plate.field.count() == 2
    assert window.panel(Plates).dock.isVisible()


def test_fields_and_acquisitions_can_be_selected(qtbot: QtBot, window: MainWindow, plate: Path) -> None:
    open_plate(qtbot, window, plate)
    table = window.panel(Plates).plate.table
    wait_until_opened(
        qtbot,
        window,
        lambda: table.setCurrentItem(table.item(0, 1)),
    )
    window.panel(Plates).plate.field.setCurrentIndex(1)
    wait_until_opened(qtbot, window, lambda: window.panel(Plates).plate.field.activated.emit(1))
    assert window.image is not None
    assert window.image.path == "A/2/1"
    box = window.panel(Plates).plate.acquisition
    assert [box.itemText(row) for row in range(box.count())] == [
        "All acquisitions",
        "first day",
        "second day",
    ]
    box.setCurrentIndex(2)
    wait_until_opened(qtbot, window, lambda: box.activated.emit(2))
    assert window.panel(Plates).plate.field.count() == 1
    assert window.image.path == "A/2/1"


def test_a_single_well_shows_its_fields(qtbot: QtBot, open_in_window: OpenInWindow, plate: Path) -> None:
    window = open_in_window(plate / "A" / "1")
    assert window.panel(Series).dock.isVisible()
    assert window.panel(Series).gallery.count() == 2


def test_a_series_is_selected_by_its_thumbnail(
    qtbot: QtBot, open_in_window: OpenInWindow, tmp_path: Path
) -> None:
    window = open_in_window(write_series(tmp_path / "slide.zarr"))
    gallery = window.panel(Series).gallery
    assert window.panel(Series).dock.isVisible()
    assert gallery.count() == 3
    icons = [gallery.item(row) for row in range(3)]
    qtbot.waitUntil(
        lambda: all(i and len(pixels_of(i.icon())) > 5 for i in icons), timeout=TIMEOUT_MILLISECONDS
    )
    wait_until_opened(qtbot, window, lambda: gallery.itemClicked.emit(gallery.item(2)))
    assert window.image is not None
    assert window.image.path == "2"
    assert window.image.shape[-1] == 60


def test_an_unreadable_series_is_marked_in_the_gallery(
    qtbot: QtBot, open_in_window: OpenInWindow, tmp_path: Path
) -> None:
    path = write_series(tmp_path / "slide.zarr")
    (path / "1" / "0" / "zarr.json").write_text("{")
    window = open_in_window(path)
    item = window.panel(Series).gallery.item(1)
    assert item is not None
    qtbot.waitUntil(lambda: "cannot be displayed" in item.text(), timeout=TIMEOUT_MILLISECONDS)
    assert "zarr.json" in item.toolTip()


def test_label_settings_change_the_image(qtbot: QtBot, open_in_window: OpenInWindow, cells: Path) -> None:
    window = open_in_window(cells)
    (row,) = window.panel(Labels).panel.rows
    before = window.canvas.frame.pixels.copy()  # type: ignore[union-attr]
    for change in (
        lambda: row.opacity.setValue(100),
        lambda: row.contour.setValue(2),
        lambda: row.selected.setValue(1),
        lambda: row.visible.setChecked(False),
    ):
        wait_until_exact(qtbot, window, change)
        after = window.canvas.frame.pixels.copy()  # type: ignore[union-attr]
        assert not np.array_equal(before, after)
        before = after
    assert window.display_settings is not None
    settings = window.display_settings.labels[0]
    assert (settings.opacity, settings.contour, settings.selected, settings.visible) == (1.0, 2, 1, False)


def test_the_readout_contains_label_properties(qtbot: QtBot, window: MainWindow, tmp_path: Path) -> None:
    path = tmp_path / "l.zarr"
    write_image(path, make_picture((1, 48, 48)), levels=1)
    label = path / "labels" / "nuclei"
    group = zarrfs.open(label, mode="r+")
    data = group["0"][...]
    where = np.argwhere(data.reshape(data.shape[-2:]) > 0)[0]
    value = int(data.reshape(data.shape[-2:])[tuple(where)])
    ome = dict(group.attrs["ome"])
    ome["image-label"] = {"properties": [{"label-value": value, "kind": "telophase"}]}
    group.attrs["ome"] = ome
    wait_until_opened(qtbot, window, lambda: window.open_location(str(path)))
    window.canvas.pointed.emit((float(where[0]), float(where[1])))
    assert "kind=telophase" in window.status.position.text()


def test_a_check_message_selects_its_attribute(
    qtbot: QtBot, open_in_window: OpenInWindow, tmp_path: Path
) -> None:
    path = tmp_path / "bad.zarr"
    write_image(path, make_picture((1, 32, 32)), levels=1)
    group = zarrfs.open(path, mode="r+")
    ome = dict(group.attrs["ome"])
    ome["omero"] = {"channels": [{"color": 5}]}
    group.attrs["ome"] = ome
    window = open_in_window(path)
    panel = window.panel(Metadata).panel.check
    window.panels.setCurrentWidget(window.panel(Metadata).panel)
    window.panel(Metadata).panel.tabs.setCurrentWidget(panel)
    qtbot.waitUntil(lambda: "not valid" in panel.result_label.text(), timeout=TIMEOUT_MILLISECONDS)
    top = panel.messages.topLevelItem(0)
    assert top is not None
    message = top.child(0)
    assert message is not None
    panel.messages.itemClicked.emit(message, 0)
    assert window.panel(Metadata).panel.tabs.currentWidget() is window.panel(Metadata).panel.attributes
    current = window.panel(Metadata).panel.attributes.currentItem()
    assert current is not None
    assert message.text(0).startswith(current.data(0, Qt.ItemDataRole.UserRole))
    assert "channels" in message.text(0)


def test_the_check_reports_valid_and_absent_metadata(
    qtbot: QtBot, open_in_window: OpenInWindow, cells: Path, tmp_path: Path
) -> None:
    window = open_in_window(cells)
    panel = window.panel(Metadata).panel.check
    window.panels.setCurrentWidget(window.panel(Metadata).panel)
    window.panel(Metadata).panel.tabs.setCurrentWidget(panel)
    qtbot.waitUntil(lambda: "0.5: valid" in panel.result_label.text(), timeout=TIMEOUT_MILLISECONDS)
    zarrfs.create_group(tmp_path / "plain.zarr")
    with qtbot.waitSignal(window.failed, timeout=TIMEOUT_MILLISECONDS):
        window.open_location(str(tmp_path / "plain.zarr"))
    window.panels.setCurrentWidget(window.panel(Metadata).panel)
    qtbot.waitUntil(lambda: "no OME-NGFF" in panel.result_label.text(), timeout=TIMEOUT_MILLISECONDS)


def test_the_summary_contains_the_stored_chunks(qtbot: QtBot, window: MainWindow, tmp_path: Path) -> None:
    array = zarrfs.create_array(tmp_path / "a.zarr", shape=(64, 64), dtype="u1", chunks=(32, 32))
    array[:32] = np.arange(64, dtype="u1")
    wait_until_opened(qtbot, window, lambda: window.open_location(str(tmp_path / "a.zarr")))

    def facts() -> dict[str, str]:
        tree = window.panel(Metadata).panel.summary
        items = [tree.topLevelItem(row) for row in range(tree.topLevelItemCount())]
        return {item.text(0): item.text(1) for item in items if item is not None}

    qtbot.waitUntil(lambda: "Stored chunks" in facts(), timeout=TIMEOUT_MILLISECONDS)
    assert facts()["Stored chunks"] == "2 of 4"
    assert float(facts()["Compression ratio"]) > 1


def test_the_tree_copies_path_url_and_python_code(
    qtbot: QtBot, open_in_window: OpenInWindow, cells: Path
) -> None:
    window = open_in_window(cells)
    panel = window.panel(Hierarchy).tree
    clipboard = QGuiApplication.clipboard()
    assert clipboard is not None
    item = panel.current()
    assert item is not None
    clipboard_texts = {}
    for action in panel.menu(item).actions():
        if action.text().startswith("Copy"):
            action.trigger()
            clipboard_texts[action.text()] = clipboard.text()
    assert clipboard_texts["Copy path"] == str(cells)
    assert clipboard_texts["Copy URL"] == cells.as_uri()
    namespace: dict[str, object] = {}
    exec(clipboard_texts["Copy Python code"], namespace)
    node = namespace["node"]
    assert isinstance(node, zarrfs.Group)
    assert np.array_equal(node["2"][0, 0], zarrfs.open(cells, "2")[0, 0])


@needs_fuse
def test_a_node_is_mounted_and_dragged_as_a_file(
    qtbot: QtBot, open_in_window: OpenInWindow, cells: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    window = open_in_window(cells)
    opened: list[str] = []
    monkeypatch.setattr(QDesktopServices, "openUrl", lambda url: opened.append(url.toLocalFile()) or True)
    panel = window.panel(Hierarchy).tree
    panel.mount_and_open(panel.current())
    qtbot.waitUntil(lambda: bool(opened), timeout=TIMEOUT_MILLISECONDS)
    mountpoint = Path(opened[0])
    try:
        assert is_mounted(str(mountpoint))
        top = panel.model.index(0, 0)
        panel.view.expand(top)
        qtbot.waitUntil(lambda: panel.model.rowCount(top) >= 3, timeout=TIMEOUT_MILLISECONDS)
        qtbot.waitUntil(
            lambda: all(item.node is not None for item in panel.model.tops[0].children or ()),
            timeout=TIMEOUT_MILLISECONDS,
        )
        rows = [panel.model.index(row, 0, top) for row in range(panel.model.rowCount(top))]
        level = next(index for index in rows if index.data() == "0")
        data = panel.model.mimeData([level])
        assert data is not None
        (url,) = data.urls()
        assert np.array_equal(np.load(url.toLocalFile()), zarrfs.open(cells, "0")[...])
        assert panel.model.flags(level) & Qt.ItemFlag.ItemIsDragEnabled
        for suffix, read in ((".ome.tif", tifffile.imread), (".npy", np.load)):
            panel.files.select(suffix)
            for index in (level, top):  # an image is the file of its finest level
                dragged = panel.model.mimeData([index])
                assert dragged is not None
                file = dragged.urls()[0].toLocalFile()
                assert file.endswith(f"0{suffix}")
                expected = zarrfs.open(cells, "0")[...]
                assert np.array_equal(read(file).reshape(expected.shape), expected)
        panel.files.select(".csv")
        panel.files.copy_path(panel.model.item(level))
        qtbot.waitUntil(lambda: "cannot represent" in window.notice.text(), timeout=TIMEOUT_MILLISECONDS)
    finally:
        window.close()
    assert not is_mounted(str(mountpoint))
    assert not mountpoint.exists()


def test_the_file_manager_opens_the_directory(
    qtbot: QtBot, open_in_window: OpenInWindow, cells: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    window = open_in_window(cells)
    opened: list[str] = []
    monkeypatch.setattr(QDesktopServices, "openUrl", lambda url: opened.append(url.toLocalFile()) or True)
    window.actions_by_name["file_manager"].trigger()
    assert opened == [str(cells)]


def test_the_context_menu_contains_mount_actions(
    qtbot: QtBot, open_in_window: OpenInWindow, cells: Path
) -> None:
    window = open_in_window(cells)
    item = window.panel(Hierarchy).tree.current()
    assert item is not None
    titles = [action.text() for action in window.panel(Hierarchy).tree.menu(item).actions()]
    assert "Mount and open folder" in titles
    # Below the last row no menu opens: an open menu would block here.
    window.panel(Hierarchy).tree.view.customContextMenuRequested.emit(QPoint(5, 5000))
