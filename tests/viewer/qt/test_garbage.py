"""Cyclic garbage is collected in the GUI thread only."""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Iterator

import pytest
from PyQt6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot
from zarrfs_viewer.qt.support.garbage import GuiThreadCollector

from tests.viewer.qt.waiting import TIMEOUT_MILLISECONDS


class Cycle:
    def __init__(self) -> None:
        self.itself = self


@pytest.fixture
def collector(qapp: QApplication) -> Iterator[GuiThreadCollector]:
    gc.enable()
    collector = GuiThreadCollector(qapp)
    yield collector
    collector.stop()
    gc.disable()  # as the collector of the session expects


def test_a_worker_thread_does_not_collect(collector: GuiThreadCollector, qtbot: QtBot) -> None:
    threads: list[int] = []
    cycle = Cycle()
    weakref.finalize(cycle, lambda: threads.append(threading.get_ident()))
    del cycle

    def allocate() -> None:
        assert len([[number] for number in range(200_000)]) == 200_000

    worker = threading.Thread(target=allocate)
    worker.start()
    worker.join()
    assert threads == []
    held = [[number] for number in range(2 * gc.get_threshold()[0])]
    qtbot.waitUntil(lambda: bool(threads), timeout=TIMEOUT_MILLISECONDS)
    assert threads == [threading.get_ident()]
    assert held


def test_the_automatic_collection_is_enabled_again(collector: GuiThreadCollector) -> None:
    assert not gc.isenabled()
    collector.stop()
    assert gc.isenabled()
