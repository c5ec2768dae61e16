"""Freed memory is returned to the operating system."""

from __future__ import annotations

import threading

import pytest
from PyQt6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot
from zarrfs_viewer.qt.support.worker import Worker
from zarrfs_viewer.qt.window import free_memory
from zarrfs_viewer.qt.window.free_memory import MemoryRelease

from tests.viewer.qt.waiting import TIMEOUT_MILLISECONDS


def test_memory_is_released_once_for_several_pictures(
    qtbot: QtBot, qapp: QApplication, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: list[int] = []
    monkeypatch.setattr(free_memory, "INTERVAL_MILLISECONDS", 0)
    monkeypatch.setattr(free_memory, "release_free_memory", lambda: threads.append(threading.get_ident()))
    worker = Worker()
    release = MemoryRelease(worker, qapp)
    for _ in range(3):
        release.request()
    qtbot.waitUntil(lambda: bool(threads) and worker.is_idle, timeout=TIMEOUT_MILLISECONDS)
    assert len(threads) == 1
    assert threads[0] != threading.get_ident()
    release.request()
    release.stop()
    assert worker.is_idle
    worker.close()
    release.deleteLater()
