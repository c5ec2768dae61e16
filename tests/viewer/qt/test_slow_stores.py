"""What a window shows while a slow store is read: never the start page, an empty area, or a value of another slice."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from pytestqt.qtbot import QtBot
from zarrfs_viewer.qt.canvas.canvas import BACKGROUND
from zarrfs_viewer.qt.panels.position.position import Position
from zarrfs_viewer.qt.window.main_window import IMAGE_PAGE, MainWindow
from zarrfs_viewer.state.view_state import pan

import zarrfs
from tests.processes import TIMEOUT
from tests.viewer.qt.waiting import TIMEOUT_MILLISECONDS, is_exact, wait_until_exact, wait_until_opened
from zarrfs.engine.stores.local.store import LocalStore
from zarrfs.testing import LatencyStore


class Gates:
    """Gates for the metadata and for the chunks of each slice. Reads wait at a gate that is closed. Whether a chunk
    exists is known at once, because a location is opened at a slice with data.
    """

    def __init__(self) -> None:
        self.metadata = threading.Event()
        self.slices = {z: threading.Event() for z in range(5)}
        self.open()

    def open(self) -> None:
        for gate in (self.metadata, *self.slices.values()):
            gate.set()

    def wait(self, operation: str, key: str) -> None:
        parts = key.split("/")
        if operation in ("exists", "size", "stamp"):
            return
        gate = self.slices[int(parts[1])] if parts[0] == "c" else self.metadata
        assert gate.wait(TIMEOUT)


@pytest.fixture
def gates() -> Iterator[Gates]:
    gates = Gates()
    yield gates
    gates.open()


@pytest.fixture
def store(tmp_path: Path, gates: Gates) -> LatencyStore:
    """A stack whose slices have the values 50, 100 ... 250."""
    data = np.repeat(np.arange(50, 300, 50, dtype="u1"), 64 * 64).reshape(5, 64, 64)
    path = tmp_path / "slow.zarr"
    zarrfs.create_array(path, data=data, chunks=(1, 64, 64), dimension_names=["z", "y", "x"])
    return LatencyStore(LocalStore(str(path)), gates.wait)


def test_the_window_shows_what_is_opened_and_loaded_instead_of_the_start_page(
    qtbot: QtBot, window: MainWindow, store: LatencyStore, gates: Gates
) -> None:
    layers = window.canvas.layers
    gates.metadata.clear()
    for gate in gates.slices.values():
        gate.clear()
    window.open_location(store)
    qtbot.waitUntil(lambda: window.stack.currentIndex() == IMAGE_PAGE, timeout=TIMEOUT_MILLISECONDS)
    assert layers.progress.startswith("Opening slow.zarr")
    gates.metadata.set()
    qtbot.waitUntil(lambda: "0 of 1 tiles" in layers.progress, timeout=TIMEOUT_MILLISECONDS)
    assert "slow.zarr" in layers.progress
    assert "z 5 × y 64 × x 64" in layers.progress
    gates.open()
    qtbot.waitUntil(lambda: is_exact(window), timeout=TIMEOUT_MILLISECONDS)
    assert layers.progress == ""


def test_a_location_that_cannot_be_opened_leaves_the_start_page(
    qtbot: QtBot, window: MainWindow, tmp_path: Path
) -> None:
    with qtbot.waitSignal(window.failed, timeout=TIMEOUT_MILLISECONDS):
        window.open_location(str(tmp_path / "missing.zarr"))
    assert window.stack.currentIndex() == 0


def test_the_picture_of_the_former_slice_is_marked_and_not_read_out(
    qtbot: QtBot, window: MainWindow, store: LatencyStore, gates: Gates
) -> None:
    wait_until_opened(qtbot, window, lambda: window.open_location(store))
    canvas, position = window.canvas, window.panel(Position).dimensions
    wait_until_exact(qtbot, window, lambda: position.set_position(0, 0))
    gates.slices[4].clear()
    position.set_position(0, 4)
    qtbot.waitUntil(lambda: canvas.layers.is_late, timeout=TIMEOUT_MILLISECONDS)
    found = window.panes.main.values_at(10, 10)
    assert found is not None
    assert [value for _, value in found.values] == [None]
    wait_until_exact(qtbot, window, gates.open)
    assert not canvas.layers.is_late
    found = window.panes.main.values_at(10, 10)
    assert found is not None
    assert [value for _, value in found.values] == [250]


def test_panning_and_zooming_out_show_no_empty_area_before_the_next_frame(
    qtbot: QtBot, window: MainWindow, store: LatencyStore
) -> None:
    wait_until_opened(qtbot, window, lambda: window.open_location(store))
    canvas = window.canvas
    whole: Callable[[], object] = canvas.fit
    wait_until_exact(qtbot, window, whole)
    wait_until_exact(qtbot, window, lambda: canvas.zoom(4))
    for act in (lambda: canvas.set_viewport(pan(canvas.viewport, 150, 90)), lambda: canvas.zoom(0.5)):
        act()
        picture = canvas.grab().toImage()  # the next frame cannot arrive before the event loop runs
        x, y, middle = picture.width() // 3, picture.height() // 3, picture.height() // 2
        colors = {
            picture.pixelColor(column, row).name() for column in (x, 2 * x) for row in (y, middle, 2 * y)
        }
        assert BACKGROUND.name() not in colors
