"""Opening of several locations: order and completeness."""

from __future__ import annotations

import threading
from pathlib import Path

import numpy as np
import pytest
from pytestqt.qtbot import QtBot
from zarrfs_viewer.qt.window.main_window import MainWindow

import zarrfs
from tests.viewer.qt.waiting import TIMEOUT_MILLISECONDS
from zarrfs.engine.stores.local import LocalStore
from zarrfs.engine.stores.wrappers.wrapper import WrapperStore


class BlockedStore(WrapperStore):
    """A store whose reads block until ``unblock`` is set."""

    def __init__(self, path: Path) -> None:
        super().__init__(LocalStore(path))
        self.unblock = threading.Event()

    def _before(self, operation: str, key: str) -> None:
        self.unblock.wait()


@pytest.fixture
def locations(tmp_path: Path) -> list[Path]:
    paths = [tmp_path / f"{name}.zarr" for name in "abc"]
    for number, path in enumerate(paths):
        zarrfs.create_array(path, data=np.full((16, 16), number, "u1"))
    return paths


def top_names(window: MainWindow) -> list[str]:
    model = window.tree_panel.model
    return [model.index(row, 0).data() for row in range(model.rowCount())]


def test_several_locations_are_listed_in_the_order_given_and_the_last_is_displayed(
    qtbot: QtBot, window: MainWindow, locations: list[Path]
) -> None:
    slow = BlockedStore(locations[0])
    try:
        window.open_location(slow)
        for path in locations[1:]:
            window.open_location(str(path))
        qtbot.waitUntil(lambda: len(top_names(window)) == 2, timeout=TIMEOUT_MILLISECONDS)
        shown = window.dataset
        assert shown is not None
    finally:
        slow.unblock.set()
    qtbot.waitUntil(lambda: len(top_names(window)) == 3, timeout=TIMEOUT_MILLISECONDS)
    assert top_names(window) == ["a.zarr", "b.zarr", "c.zarr"]
    assert window.dataset is shown, "a location that was requested earlier replaced the image"
    assert window.dataset.location == str(locations[2])


def test_a_location_that_cannot_be_opened_does_not_prevent_the_others(
    qtbot: QtBot, window: MainWindow, locations: list[Path], tmp_path: Path
) -> None:
    for path in (locations[0], tmp_path / "missing.zarr", locations[1]):
        window.open_location(str(path))
    qtbot.waitUntil(lambda: window.session.worker.is_idle, timeout=TIMEOUT_MILLISECONDS)
    assert top_names(window) == ["a.zarr", "b.zarr"]
    assert window.dataset is not None
    assert window.dataset.location == str(locations[1])
