"""The picture area: orientation, overview map, cross-hair, borders of panes, the slab pane, and the cost of a step."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PyQt6.QtCore import QEvent, QObject, QPoint, Qt
from PyQt6.QtGui import QContextMenuEvent, QGuiApplication, QPainter, QPixmap
from PyQt6.QtWidgets import QApplication, QMenu
from pytestqt.qtbot import QtBot
from zarrfs_viewer.qt.canvas import layers
from zarrfs_viewer.qt.panels.channels.channels import Channels
from zarrfs_viewer.qt.panels.measure.measurements import Measurements
from zarrfs_viewer.qt.panels.position.position import Position
from zarrfs_viewer.qt.window.main_window import MainWindow

import zarrfs
from tests.viewer.qt.waiting import TIMEOUT_MILLISECONDS, wait_until_exact

OpenInWindow = Callable[[object], MainWindow]

SHAPE = (5, 4, 6)


@pytest.fixture
def blocks(tmp_path: Path) -> Path:
    """A stack of slices without symmetry: value 100 * z + 10 * y + x."""
    z, y, x = np.indices(SHAPE)
    data = (100 * z + 10 * y + x).astype("u2")
    zarrfs.create_array(tmp_path / "blocks.zarr", data=data, dimension_names=("z", "y", "x"))
    return tmp_path / "blocks.zarr"


def drawn_values(window: MainWindow) -> list[list[int]]:
    """Return the gray values that the screen shows at the centres of the pixels of the slice."""
    canvas = window.canvas
    picture = canvas.grab().toImage()
    rows = []
    for row in range(SHAPE[1]):
        points = [canvas.viewport.to_device(row, column) for column in range(SHAPE[2])]
        rows.append([picture.pixelColor(round(x), round(y)).red() for x, y in points])
    return rows


def test_the_picture_is_rotated_and_mirrored(
    qtbot: QtBot, open_in_window: OpenInWindow, blocks: Path
) -> None:
    window = open_in_window(blocks)
    window.actions_by_name["scale_bar"].setChecked(False)
    before = drawn_values(window)
    assert len({value for row in before for value in row}) > 10
    for action, turns, is_mirrored in (
        ("rotate", 1, False),
        ("rotate", 2, False),
        ("mirror", 2, True),
        ("rotate", 3, True),
        ("rotate", 0, True),
        ("mirror", 0, False),
    ):
        wait_until_exact(qtbot, window, window.actions_by_name[action].trigger)
        viewport = window.canvas.viewport
        assert (viewport.turns, viewport.mirrored) == (turns, is_mirrored)
        assert (
            drawn_values(window) == before
        )  # each value is drawn where the viewport converts its position to


def test_the_scale_bar_does_not_cover_the_state(
    qtbot: QtBot, open_in_window: OpenInWindow, blocks: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    window = open_in_window(blocks)
    for action in ("rotate", "mirror"):
        wait_until_exact(qtbot, window, window.actions_by_name[action].trigger)
    heights: list[int] = []
    monkeypatch.setattr(
        layers, "draw_scale_bar", lambda painter, viewport, length, text: heights.append(viewport.height)
    )
    for width in (600, 280):
        picture = QPixmap(width, 200)
        painter = QPainter(picture)
        viewport = replace(window.canvas.viewport, width=width, height=200)
        window.canvas.layers.paint(painter, viewport, (width, 200), 1.0, None, None, False)
        painter.end()
    assert heights == [200, 200 - layers.STATUS_HEIGHT]


def test_another_image_is_not_rotated(qtbot: QtBot, open_in_window: OpenInWindow, blocks: Path) -> None:
    window = open_in_window(blocks)
    wait_until_exact(qtbot, window, window.actions_by_name["rotate"].trigger)
    zarrfs.create_array(blocks.with_name("other.zarr"), data=np.zeros((4, 4), "u1"))
    open_in_window(blocks.with_name("other.zarr"))
    assert window.canvas.viewport.turns == 0


def test_the_overview_map_shows_and_moves_the_visible_part(
    qtbot: QtBot, open_in_window: OpenInWindow, blocks: Path
) -> None:
    window = open_in_window(blocks)
    overview = window.panes.overview
    assert overview.isHidden()
    window.canvas.zoom(4)
    assert overview.isVisible()
    qtbot.waitUntil(lambda: overview._frame is not None, timeout=TIMEOUT_MILLISECONDS)
    before = window.canvas.viewport.center
    qtbot.mouseClick(overview, Qt.MouseButton.LeftButton, pos=QPoint(5, 5))
    center = window.canvas.viewport.center
    assert center[0] < before[0]
    assert center[1] < before[1]
    window.actions_by_name["overview"].setChecked(False)
    assert overview.isHidden()
    window.actions_by_name["overview"].setChecked(True)
    window.canvas.fit()
    assert overview.isHidden()


def test_lines_of_the_cross_hair_are_dragged(
    qtbot: QtBot, open_in_window: OpenInWindow, blocks: Path
) -> None:
    window = open_in_window(blocks)
    window.actions_by_name["linked"].trigger()
    canvas = window.canvas
    window.panel(Position).go_to((2.0, 1.0, 1.0))
    ratio = canvas.devicePixelRatioF()

    def at(row: float, column: float) -> QPoint:
        x, y = canvas.viewport.to_device(row, column)
        return QPoint(round(x / ratio), round(y / ratio))

    viewport = canvas.viewport
    qtbot.mousePress(canvas, Qt.MouseButton.LeftButton, pos=at(1, 3))
    qtbot.mouseMove(canvas, at(2.1, 3.4))
    qtbot.mouseRelease(canvas, Qt.MouseButton.LeftButton, pos=at(2.1, 3.4))
    assert window.display_settings is not None
    assert window.display_settings.position == (2.0, 2.0, 1.0)  # only the row was dragged
    assert canvas.viewport == viewport


def test_the_last_pane_shows_a_slab_and_the_borders_move_together(
    qtbot: QtBot, open_in_window: OpenInWindow, blocks: Path
) -> None:
    window = open_in_window(blocks)
    window.actions_by_name["linked"].trigger()
    slab = window.panes.side[-1]
    qtbot.waitUntil(
        lambda: slab.canvas.frame is not None and slab.canvas.frame.complete, timeout=TIMEOUT_MILLISECONDS
    )
    assert slab.settings is not None
    assert slab.settings.projection is not None
    assert slab.settings.projection.mode == "max"
    upper, lower = window.panes.grid.columns
    first, second = upper.sizes()
    upper.moveSplitter(first - 60, 1)
    assert upper.sizes() != [first, second]
    assert lower.sizes() == upper.sizes()
    window.panel(
        Position
    ).dimensions.next_mode()  # the main pane shows the slab: the last pane shows the slice
    assert slab.settings is not None
    assert slab.settings.projection is None
    window.actions_by_name["linked"].trigger()
    assert lower.isHidden()


def test_an_image_with_fewer_axes_replaces_linked_panes(
    qtbot: QtBot, open_in_window: OpenInWindow, blocks: Path
) -> None:
    window = open_in_window(blocks)
    window.actions_by_name["linked"].trigger()
    flat = blocks.with_name("flat.zarr")
    zarrfs.create_array(flat, data=np.zeros((4, 4), "u1"))
    # The panels of the other image may resize the canvas before the panes have its axes.
    window.session.image_changed.connect(lambda: window.canvas.zoom(1.5))
    open_in_window(flat)
    assert window.panes.side == ()
    open_in_window(blocks)
    assert len(window.panes.side) == 3


class LayoutCounter(QObject):
    """Counts the requests to arrange widgets, and the events that draw panels, by kind."""

    def __init__(self) -> None:
        super().__init__()
        self.counts: Counter[str] = Counter()

    def eventFilter(self, watched: QObject | None, event: QEvent | None) -> bool:  # noqa: N802
        if event is not None and event.type() == QEvent.Type.LayoutRequest:
            self.counts["layout"] += 1
        elif event is not None and event.type() == QEvent.Type.Paint:
            self.counts[type(watched).__name__] += 1
        return False


def test_a_step_does_not_arrange_or_draw_the_panels(
    qtbot: QtBot, open_in_window: OpenInWindow, blocks: Path
) -> None:
    window = open_in_window(blocks)
    qtbot.waitUntil(lambda: window.session.worker.is_idle, timeout=TIMEOUT_MILLISECONDS)
    for z in (0, 4, 0):
        wait_until_exact(qtbot, window, lambda z=z: window.panel(Position).dimensions.set_position(0, z))
    window.panel(Channels).contrast.stop()
    QApplication.processEvents()
    counter = LayoutCounter()
    application = QApplication.instance()
    assert application is not None
    application.installEventFilter(counter)
    try:
        wait_until_exact(qtbot, window, lambda: window.panel(Position).dimensions.set_position(0, 3))
        window.panel(Channels).contrast.stop()
        QApplication.processEvents()
    finally:
        application.removeEventFilter(counter)
    assert counter.counts["layout"] == 0
    assert counter.counts["ChannelRow"] == 0
    assert counter.counts["MainWindow"] <= counter.counts["Canvas"] + 2


def test_the_status_bar_shows_the_memory_of_the_process(
    qtbot: QtBot, open_in_window: OpenInWindow, blocks: Path
) -> None:
    window = open_in_window(blocks)
    qtbot.waitUntil(lambda: "of 256 MiB" in window.status.memory.text(), timeout=TIMEOUT_MILLISECONDS)


def test_the_picture_has_a_context_menu(
    qtbot: QtBot, open_in_window: OpenInWindow, blocks: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    window = open_in_window(blocks)
    clipboard = QGuiApplication.clipboard()
    assert clipboard is not None
    shown: list[QMenu] = []
    monkeypatch.setattr(QMenu, "popup", lambda menu, place: shown.append(menu))
    canvas, image = window.canvas, window.image
    assert image is not None
    ratio = canvas.devicePixelRatioF()
    x, y = canvas.viewport.to_device(1, 2)
    position = QPoint(round(x / ratio), round(y / ratio))
    QApplication.sendEvent(
        canvas,
        QContextMenuEvent(QContextMenuEvent.Reason.Mouse, position, canvas.mapToGlobal(position)),
    )
    actions = {action.text(): action for action in shown[0].actions()}
    values = window.panes.main.values_at(1, 2)
    assert values is not None
    index = ", ".join(map(str, values.pixel))
    value = np.asarray(image.levels[0].array)[values.pixel] if not values.level else None
    for title, text in (
        (f"Copy value {value}", str(value)),
        (f"Copy index ({index})", index),
        (f"Copy chunk key {values.chunk}", values.chunk),
    ):
        actions[title].trigger()
        assert clipboard.text() == text
    assert window.actions_by_name["export"] in shown[0].actions()
    actions["Add this point to the regions"].trigger()
    assert [region.shape.kind for region in window.panel(Measurements).panel.regions] == ["point"]
    actions["Show this chunk"].trigger()
    top, left, bottom, right = canvas.viewport.rect
    chunk_rows, chunk_columns = image.levels[0].chunks[-2:]
    assert top <= -0.5
    assert left <= -0.5
    assert min((bottom - top) / chunk_rows, (right - left) / chunk_columns) < 1.2
    assert window.actions_by_name["chunks"].isChecked()
    QApplication.sendEvent(
        canvas, QContextMenuEvent(QContextMenuEvent.Reason.Keyboard, QPoint(), QPoint(0, 0))
    )
    assert len(shown) == 2
