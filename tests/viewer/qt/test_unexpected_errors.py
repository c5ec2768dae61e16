"""An exception in a function that Qt calls does not end the viewer."""

from __future__ import annotations

import sys

import pytest
from PyQt6.QtCore import QTimer
from pytestqt.qtbot import QtBot
from zarrfs_viewer.qt.panels.messages import Messages
from zarrfs_viewer.qt.support.unexpected_errors import UnexpectedErrorsAreReported
from zarrfs_viewer.qt.window.main_window import MainWindow

from tests.viewer.qt.waiting import TIMEOUT_MILLISECONDS


def test_an_exception_in_the_event_loop_is_reported(
    qtbot: QtBot,
    window: MainWindow,
    capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    def fail() -> None:
        raise ValueError("a fault of the viewer")

    before = sys.excepthook
    with UnexpectedErrorsAreReported():
        QTimer.singleShot(0, fail)
        qtbot.waitUntil(
            lambda: "a fault of the viewer" in window.panel(Messages).log.text(), timeout=TIMEOUT_MILLISECONDS
        )
    assert sys.excepthook is before
    assert "unexpected error in the viewer: ValueError" in caplog.text
    assert "Traceback" in capsys.readouterr().err
