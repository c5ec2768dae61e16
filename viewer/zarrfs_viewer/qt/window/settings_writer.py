"""Writing of the settings on a worker thread.

Qt writes changed settings in the event loop and waits until the disk has stored them: twice, because it also stores the
lock file. That takes a third of a second on a busy disk.
"""

from __future__ import annotations

import sys

from PyQt6.QtCore import QCoreApplication, QEvent, QObject, QSettings, QTimer

from zarrfs_viewer.qt.support.worker import Worker

__all__ = ["SettingsWriter"]

DELAY_MILLISECONDS = 500
"""Settings are written this long after the first change. A window that opens a location reads them meanwhile, and
reading waits for writing.
"""


class SettingsWriter(QObject):
    """Writes changed settings to their file on a worker thread. Call ``stop`` before the worker is closed.

    Qt shares the values of all ``QSettings`` of one file in a process, so that the worker can use its own object.
    Settings that are not in a file, as on Windows, are written by Qt.
    """

    def __init__(self, settings: QSettings, worker: Worker, parent: QObject) -> None:
        super().__init__(parent)
        self._settings = settings
        self._worker = worker
        self._is_pending = False
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.setInterval(DELAY_MILLISECONDS)
        self._timer.timeout.connect(self._write)
        if settings.format() == QSettings.Format.IniFormat or sys.platform == "linux":
            settings.installEventFilter(self)

    def eventFilter(self, watched: QObject | None, event: QEvent | None) -> bool:
        """Replace the event in which Qt writes the settings."""
        if watched is not self._settings or event is None or event.type() != QEvent.Type.UpdateRequest:
            return False
        self._is_pending = True
        if not self._timer.isActive():
            self._timer.start()
        return True

    def stop(self) -> None:
        """Let Qt write the settings again, also those that are not written yet."""
        self._timer.stop()
        self._settings.removeEventFilter(self)
        if self._is_pending:
            QCoreApplication.postEvent(self._settings, QEvent(QEvent.Type.UpdateRequest))

    def _write(self) -> None:
        file, file_format = self._settings.fileName(), self._settings.format()
        # The constructor writes the changes of the other object and reads the file.
        self._worker.submit(
            lambda: QSettings(file, file_format).status(),
            self._finish,
            lambda _: None,
            "settings",
            low_priority=True,
        )

    def _finish(self, status: QSettings.Status) -> None:
        self._is_pending = False
        self._settings.sync()  # nothing is left to write; without it, Qt would not announce further changes
