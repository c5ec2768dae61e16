"""Windows without a screen, each with settings of its own, closed whatever happens."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

from PyQt6.QtCore import QSettings
from PyQt6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot
from zarrfs_viewer.qt.window.main_window import MainWindow

from tests.viewer.qt.waiting import opened


@pytest.fixture
def window(qtbot: QtBot, tmp_path: Path) -> Iterator[MainWindow]:
    made = MainWindow(QSettings(str(tmp_path / "settings.ini"), QSettings.Format.IniFormat))
    made.show()
    yield made
    made.close()
    made.deleteLater()
    QApplication.processEvents()


@pytest.fixture
def shown(qtbot: QtBot, window: MainWindow) -> Callable[[object], MainWindow]:
    """Open a location and wait until its picture is exact."""

    def open_and_wait(location: object) -> MainWindow:
        opened(qtbot, window, lambda: window.open_location(str(location)))
        return window

    return open_and_wait
