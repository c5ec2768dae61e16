"""The overview of a plate in the centre of the window, the strip of fields, and the steps between wells."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from PyQt6.QtCore import QPoint, QSize, Qt
from PyQt6.QtGui import QIcon
from pytestqt.qtbot import QtBot
from zarrfs_viewer.images.dataset import describe
from zarrfs_viewer.qt.panels.channels.channels import Channels
from zarrfs_viewer.qt.panels.plate.plate_grid import PlateContrast
from zarrfs_viewer.qt.panels.plate.plates import Plates
from zarrfs_viewer.qt.panels.position.position import Position
from zarrfs_viewer.qt.panels.thumbnails import THUMBNAIL_SIZE, to_icon
from zarrfs_viewer.qt.window.main_window import MainWindow

import zarrfs
from tests.viewer.qt.waiting import TIMEOUT_MILLISECONDS, wait_until_opened
from zarrfs.engine.stores.base import Store
from zarrfs.engine.stores.memory import MemoryStore
from zarrfs.testing import CountingStore


def write_plate(store: Store, rows: int, columns: int, fields: int = 1, *, has_windows: bool = False) -> None:
    """Write a plate of images of 8 x 8 pixels. The values of well (r, c) are at most 100 * (r + c + 1).

    With ``has_windows``, the metadata of each image have a contrast window, which is the range of its own values.
    """
    wells = [
        {"path": f"{r}/{c}", "rowIndex": r, "columnIndex": c} for r in range(rows) for c in range(columns)
    ]
    names = {
        "rows": [{"name": chr(65 + r)} for r in range(rows)],
        "columns": [{"name": str(c + 1)} for c in range(columns)],
    }
    root = zarrfs.create_group(
        store, attributes={"ome": {"version": "0.5", "plate": {**names, "wells": wells}}}
    )
    axes = [{"name": name, "type": "space"} for name in "yx"]
    scale = [{"type": "scale", "scale": [1.0, 1.0]}]
    image = {"axes": axes, "datasets": [{"path": "0", "coordinateTransformations": scale}]}
    for row in range(rows):
        for column in range(columns):
            images = [{"path": str(number)} for number in range(fields)]
            ome: dict[str, Any] = {"version": "0.5", "well": {"images": images}}
            well = root.create_group(f"{row}/{column}", attributes={"ome": ome})
            brightest = 100 * (row + column + 1)
            fields_ome: dict[str, Any] = {"version": "0.5", "multiscales": [image]}
            if has_windows:
                window = {"min": 0, "start": 0, "end": brightest, "max": 65535}
                fields_ome["omero"] = {"channels": [{"color": "FFFFFF", "active": True, "window": window}]}
            for number in range(fields):
                field = well.create_group(str(number), attributes={"ome": fields_ome})
                data = np.linspace(0, brightest, 64).reshape(8, 8).astype("u2")
                field.create_array("0", data=data, chunks=(8, 8))


def open_plate(qtbot: QtBot, window: MainWindow, store: Store) -> None:
    with qtbot.waitSignal(window.session.dataset_changed, timeout=TIMEOUT_MILLISECONDS):
        window.open_location(store)


def wait_for_thumbnails(qtbot: QtBot, window: MainWindow) -> None:
    qtbot.waitUntil(
        lambda: len(window.panel(Plates).plate.thumbnails._requested) > 0, timeout=TIMEOUT_MILLISECONDS
    )
    qtbot.waitUntil(lambda: window.session.worker.is_idle, timeout=TIMEOUT_MILLISECONDS)


@pytest.mark.parametrize("size", [(1280, 900), (900, 600)])
@pytest.mark.parametrize("shape", [(8, 12), (16, 24)])
def test_the_overview_fills_the_center_and_fits(
    qtbot: QtBot, window: MainWindow, shape: tuple[int, int], size: tuple[int, int]
) -> None:
    window.resize(*size)
    store = MemoryStore()
    names = [[{"name": str(n)} for n in range(count)] for count in shape]
    wells = [
        {"path": f"{r}/{c}", "rowIndex": r, "columnIndex": c}
        for r in range(shape[0])
        for c in range(shape[1])
    ]
    plate = {"rows": names[0], "columns": names[1], "wells": wells}
    zarrfs.create_group(store, attributes={"ome": {"version": "0.5", "plate": plate}})
    open_plate(qtbot, window, store)
    overview = window.panel(Plates).overview
    qtbot.waitUntil(overview.isVisible, timeout=TIMEOUT_MILLISECONDS)
    view = overview.view
    qtbot.waitUntil(lambda: view.columnAt(view.width() // 2) >= 0, timeout=TIMEOUT_MILLISECONDS)
    for bar in (view.horizontalScrollBar(), view.verticalScrollBar()):
        assert bar is not None
        qtbot.waitUntil(lambda bar=bar: bar.maximum() == 0, timeout=TIMEOUT_MILLISECONDS)
    assert (window.width(), window.height()) == size
    model = view.model()
    assert model is not None
    last = view.visualRect(model.index(shape[0] - 1, shape[1] - 1))
    viewport = view.viewport()
    assert viewport is not None
    assert viewport.rect().contains(last)
    filled = max((last.right() + 1) / viewport.width(), (last.bottom() + 1) / viewport.height())
    assert filled > 0.75


def test_a_double_click_opens_a_well_and_keys_move_between_wells(qtbot: QtBot, window: MainWindow) -> None:
    store = MemoryStore()
    write_plate(store, 2, 3, fields=3)
    open_plate(qtbot, window, store)
    plates = window.panel(Plates)
    qtbot.waitUntil(plates.overview.isVisible, timeout=TIMEOUT_MILLISECONDS)
    wait_for_thumbnails(qtbot, window)
    view = plates.overview.view
    qtbot.keyClick(view, Qt.Key.Key_Right)
    assert view.currentIndex().column() == 1
    wait_until_opened(qtbot, window, lambda: qtbot.keyClick(view, Qt.Key.Key_Return))
    assert window.image is not None
    assert window.image.path == "0/1/0"
    assert window.panes.isVisible()
    assert plates.strip.count() == 3
    assert plates.strip.isVisible()
    wait_until_opened(qtbot, window, window.actions_by_name["well_down"].trigger)
    assert window.image.path == "1/1/0"
    wait_until_opened(qtbot, window, window.actions_by_name["well_left"].trigger)
    assert window.image.path == "1/0/0"
    window.actions_by_name["well_down"].trigger()
    assert window.image.path == "1/0/0"
    last = plates.strip.item(2)
    wait_until_opened(qtbot, window, lambda: plates.strip.itemClicked.emit(last))
    assert window.image.path == "1/0/2"
    window.actions_by_name["plate"].trigger()
    assert plates.overview.isVisible()
    assert view.currentIndex().row() == 1
    window.actions_by_name["plate"].trigger()
    assert window.panes.isVisible()
    window.panel(Plates).plate.overview.click()
    model = view.model()
    assert model is not None
    middle: QPoint = view.visualRect(model.index(0, 2)).center()
    viewport = view.viewport()
    qtbot.mouseClick(viewport, Qt.MouseButton.LeftButton, pos=middle)
    wait_until_opened(
        qtbot, window, lambda: qtbot.mouseDClick(viewport, Qt.MouseButton.LeftButton, pos=middle)
    )
    assert window.image.path == "0/2/2", "the number of the field is kept"


@pytest.mark.parametrize("has_windows", [False, True])
def test_thumbnails_share_their_contrast_and_the_number_of_requests_is_bounded(
    qtbot: QtBot, window: MainWindow, has_windows: bool
) -> None:
    memory = MemoryStore()
    write_plate(memory, 8, 12, has_windows=has_windows)
    store = CountingStore(memory)
    open_plate(qtbot, window, store)
    qtbot.waitUntil(window.panel(Plates).overview.isVisible, timeout=TIMEOUT_MILLISECONDS)
    wait_for_thumbnails(qtbot, window)

    def brightness(row: int, column: int) -> int:
        item = window.panel(Plates).plate.table.item(row, column)
        assert item is not None
        image = item.icon().pixmap(96, 96).toImage()
        return max(image.pixelColor(x, y).value() for x in range(40, 56) for y in range(40, 56))

    assert brightness(0, 0) < 40, "each thumbnail has its own contrast"
    assert brightness(0, 0) < brightness(4, 6) < brightness(7, 11)
    # Per well: the documents of the well, the field and its level, and one chunk; six wells twice for the contrast.
    reads = sum(store.keys.values())
    assert reads <= 102 * 12, store.keys.most_common(5)


def test_unreadable_wells_do_not_prevent_a_shared_contrast() -> None:
    store = MemoryStore()
    write_plate(store, 2, 2)
    root = zarrfs.open(store, mode="r+")
    first = PlateContrast(describe(root)).limits()
    del root["0/0"]
    second = PlateContrast(describe(zarrfs.open(store))).limits()
    assert len(first) == len(second) == 1
    assert first[0] is not None
    assert second[0] is not None
    assert first[0][1] == second[0][1]


@pytest.mark.parametrize("has_windows", [False, True])
def test_the_first_well_has_the_contrast_of_the_overview(
    qtbot: QtBot, window: MainWindow, has_windows: bool
) -> None:
    store = MemoryStore()
    write_plate(store, 2, 3, has_windows=has_windows)
    open_plate(qtbot, window, store)
    assert not window.notice.isVisible(), "a message covers the names of the columns"
    wait_for_thumbnails(qtbot, window)
    wait_until_opened(qtbot, window, lambda: window.panel(Plates).plate.open_well(0, 0))
    assert window.display_settings is not None
    (shared,) = PlateContrast(describe(zarrfs.open(store))).limits()
    assert shared is not None
    assert window.display_settings.channels[0].limits == shared
    assert shared[1] > 300, "the limits are those of the darkest well"


def test_the_channels_panel_controls_the_whole_plate_before_and_after_a_well_is_opened(
    qtbot: QtBot, window: MainWindow
) -> None:
    memory = MemoryStore()
    write_plate(memory, 2, 3)
    store = CountingStore(memory)
    open_plate(qtbot, window, store)
    plates, panel = window.panel(Plates), window.panel(Channels).panel
    qtbot.waitUntil(lambda: len(panel.rows) == 1, timeout=TIMEOUT_MILLISECONDS)
    wait_for_thumbnails(qtbot, window)
    assert window.image is None
    initial = plates.plate.channels
    assert panel._settings == initial
    assert initial[0].limits is not None

    def colors(row: int, column: int) -> set[tuple[int, int, int]]:
        item = plates.plate.table.item(row, column)
        assert item is not None
        image = item.icon().pixmap(96, 96).toImage()
        places = [(x, y) for x in range(2, 94, 6) for y in range(2, 94, 6)]
        found = [image.pixelColor(*place) for place in places]
        return {(color.red(), color.green(), color.blue()) for color in found}

    reads = sum(store.keys.values())
    panel.changed.emit(0, {"colormap": "#FF0000", "limits": (0.0, 50.0)})
    for place in ((0, 0), (1, 2)):
        qtbot.waitUntil(lambda place=place: (255, 0, 0) in colors(*place), timeout=TIMEOUT_MILLISECONDS)
        assert all(color[1:] == (0, 0) for color in colors(*place))
    assert panel.rows[0].high.value() == 50
    panel.auto.emit(0)
    assert plates.plate.channels[0].limits == initial[0].limits
    panel.visibility_changed.emit([0], False)
    qtbot.waitUntil(lambda: colors(1, 2) == {(0, 0, 0)}, timeout=TIMEOUT_MILLISECONDS)
    panel.visibility_changed.emit([0], True)
    qtbot.waitUntil(lambda: (255, 0, 0) in colors(1, 2), timeout=TIMEOUT_MILLISECONDS)
    assert sum(store.keys.values()) == reads, "the wells were read again"
    wait_until_opened(qtbot, window, lambda: plates.plate.open_well(0, 0))
    assert window.display_settings is not None
    assert window.display_settings.channels[0].colormap == "#FF0000"
    assert window.display_settings.channels[0].limits == initial[0].limits
    panel.changed.emit(0, {"colormap": "#0000FF"})
    assert window.display_settings.channels[0].colormap == "#0000FF"
    qtbot.waitUntil(lambda: (0, 0, 255) in colors(1, 2), timeout=TIMEOUT_MILLISECONDS)


def test_auto_contrast_for_each_well_keeps_colours_and_visibility(qtbot: QtBot, window: MainWindow) -> None:
    store = MemoryStore()
    write_plate(store, 1, 2)
    open_plate(qtbot, window, store)
    wait_until_opened(qtbot, window, lambda: window.panel(Plates).plate.open_well(0, 0))
    window.session.change_channel(0, colormap="viridis", gamma=0.5, limits=(0.0, 9.0))
    window.actions_by_name["auto_contrast_per_image"].trigger()
    wait_until_opened(qtbot, window, lambda: window.panel(Plates).plate.open_well(0, 1))
    assert window.display_settings is not None
    channel = window.display_settings.channels[0]
    assert (channel.colormap, channel.gamma) == ("viridis", 0.5)
    qtbot.waitUntil(
        lambda: (
            window.display_settings is not None and window.display_settings.channels[0].limits is not None
        ),
        timeout=TIMEOUT_MILLISECONDS,
    )
    limits = window.display_settings.channels[0].limits
    assert limits is not None
    assert limits[1] > 100


def test_the_slice_is_kept_in_the_next_series(qtbot: QtBot, window: MainWindow) -> None:
    store = MemoryStore()
    root = zarrfs.create_group(store, attributes={"ome": {"version": "0.5", "bioformats2raw.layout": 3}})
    axes = [{"name": name, "type": "space"} for name in "zyx"]
    scale = [{"type": "scale", "scale": [1.0, 1.0, 1.0]}]
    image = {"axes": axes, "datasets": [{"path": "0", "coordinateTransformations": scale}]}
    for name, depth in (("0", 9), ("1", 9), ("2", 5)):
        series = root.create_group(name, attributes={"ome": {"version": "0.5", "multiscales": [image]}})
        series.create_array("0", data=np.ones((depth, 8, 8), "u2"))
    wait_until_opened(qtbot, window, lambda: window.open_location(store))
    window.panel(Position).set_position(0, 7.0)
    wait_until_opened(qtbot, window, lambda: window.session.open_image("1"))
    assert window.display_settings is not None
    assert window.display_settings.position[0] == 7
    wait_until_opened(qtbot, window, lambda: window.session.open_image("2"))
    assert window.display_settings.position[0] == 2, (
        "an image with another number of slices begins in its middle"
    )


def test_a_selected_thumbnail_has_the_colours_of_the_picture_and_a_small_one_is_enlarged() -> None:
    pixels = np.full((8, 16), 0xFFFF0000, np.uint32)
    icon = to_icon(pixels)
    for mode in (QIcon.Mode.Normal, QIcon.Mode.Selected):
        image = icon.pixmap(QSize(THUMBNAIL_SIZE, THUMBNAIL_SIZE), mode).toImage()
        colors = [image.pixelColor(x, THUMBNAIL_SIZE // 2).name() for x in (1, THUMBNAIL_SIZE - 2)]
        assert colors == ["#ff0000", "#ff0000"]
        assert image.pixelColor(THUMBNAIL_SIZE // 2, 10).name() == "#000000"
