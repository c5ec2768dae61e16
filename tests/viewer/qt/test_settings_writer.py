"""Changed settings are written to their file on a worker thread."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from PyQt6.QtCore import QSettings
from PyQt6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot
from zarrfs_viewer.qt.support.worker import Worker
from zarrfs_viewer.qt.window import settings_writer
from zarrfs_viewer.qt.window.settings_writer import SettingsWriter

from tests.viewer.qt.waiting import TIMEOUT_MILLISECONDS


@pytest.fixture
def worker() -> Iterator[Worker]:
    result = Worker()
    yield result
    result.close()


@pytest.fixture
def writer(
    qapp: QApplication, settings: QSettings, worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> Iterator[SettingsWriter]:
    monkeypatch.setattr(settings_writer, "DELAY_MILLISECONDS", 0)
    result = SettingsWriter(settings, worker, qapp)
    yield result
    result.stop()
    result.deleteLater()


def _text(settings: QSettings) -> str:
    file = Path(settings.fileName())
    return file.read_text(encoding="utf-8") if file.exists() else ""


def test_each_change_is_written_on_a_worker_thread(
    qtbot: QtBot, settings: QSettings, worker: Worker, writer: SettingsWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: list[int] = []

    class RecordedSettings(QSettings):
        def __init__(self, file: str, file_format: QSettings.Format) -> None:
            threads.append(threading.get_ident())
            before = _text(settings)
            super().__init__(file, file_format)
            assert _text(settings) != before

    monkeypatch.setattr(settings_writer, "QSettings", RecordedSettings)
    for count, name in enumerate(("first", "second"), 1):
        settings.setValue(name, "value")
        qtbot.waitUntil(lambda name=name: f"{name}=value" in _text(settings), timeout=TIMEOUT_MILLISECONDS)  # type: ignore[misc]
        qtbot.waitUntil(lambda: worker.is_idle, timeout=TIMEOUT_MILLISECONDS)
        assert len(threads) == count
    assert threading.get_ident() not in threads


def test_a_stopped_writer_leaves_the_settings_to_qt(
    qtbot: QtBot, qapp: QApplication, settings: QSettings, writer: SettingsWriter
) -> None:
    settings.setValue("name", "value")
    qapp.sendPostedEvents(settings)
    assert "name=value" not in _text(settings)
    writer.stop()
    qapp.sendPostedEvents(settings)
    assert "name=value" in _text(settings)
    settings.setValue("name", "other")
    qapp.sendPostedEvents(settings)
    assert "name=other" in _text(settings)
