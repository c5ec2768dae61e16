"""Fixtures for windows on the offscreen platform. Each window has its own settings and is closed after the test."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

from PyQt6.QtCore import QSettings
from PyQt6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot
from zarrfs_viewer.images.opening import import_engine
from zarrfs_viewer.qt.support.garbage import GuiThreadCollector
from zarrfs_viewer.qt.window.main_window import MainWindow

from tests.viewer.qt.waiting import wait_until_opened
from zarrfs.synthetic import make_picture, write_image


@pytest.fixture(scope="session", autouse=True)
def garbage_collection(qapp: QApplication) -> Iterator[None]:
    """As in the application, no worker thread destroys the widgets of a closed window."""
    collector = GuiThreadCollector(qapp)
    yield
    collector.stop()


@pytest.fixture(scope="session", autouse=True)
def imported_engine() -> None:
    """The first window of a process imports the engine on a thread. A test of a few milliseconds would end, and close
    its window, before: the thread would be left, for seconds if the machine is busy.
    """
    import_engine()


@pytest.fixture
def settings(tmp_path: Path) -> QSettings:
    """Empty settings, which the fixture ``window`` uses."""
    return QSettings(str(tmp_path / "settings.ini"), QSettings.Format.IniFormat)


@pytest.fixture
def cells(tmp_path: Path) -> Path:
    """An OME-Zarr image of four planes with three channels and labels."""
    path = tmp_path / "cells.ome.zarr"
    write_image(path, make_picture((4, 96, 96)))
    return path


@pytest.fixture
def window(qtbot: QtBot, settings: QSettings) -> Iterator[MainWindow]:
    window = MainWindow(settings)
    window.show()
    yield window
    window.close()
    window.deleteLater()
    QApplication.processEvents()


@pytest.fixture
def open_in_window(qtbot: QtBot, window: MainWindow) -> Callable[[object], MainWindow]:
    """A function that opens a location, waits until its image is completely displayed, and returns the window."""

    def open_and_wait(location: object) -> MainWindow:
        wait_until_opened(qtbot, window, lambda: window.open_location(str(location)))
        return window

    return open_and_wait
