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
    held: list[list[int]] = []

    def is_collected() -> bool:
        # Objects of earlier tests that are freed meanwhile are subtracted from the number of new ones.
        held.extend([number] for number in range(gc.get_threshold()[0] + 1))
        return bool(threads)

    qtbot.waitUntil(is_collected, timeout=TIMEOUT_MILLISECONDS)
    assert threads == [threading.get_ident()]


def test_the_automatic_collection_is_enabled_again(collector: GuiThreadCollector) -> None:
    assert not gc.isenabled()
    assert gc.get_freeze_count(), "the objects of modules are examined by each collection"
    collector.stop()
    assert gc.isenabled()
    assert not gc.get_freeze_count()
