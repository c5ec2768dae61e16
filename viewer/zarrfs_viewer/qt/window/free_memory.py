"""Returning freed memory to the operating system while pictures change."""

from __future__ import annotations

from PyQt6.QtCore import QObject, QTimer

from zarrfs_viewer.process_memory import release_free_memory
from zarrfs_viewer.qt.support.worker import Worker

__all__ = ["MemoryRelease"]

INTERVAL_MILLISECONDS = 2000
"""Releasing 60 MiB takes 4 ms, and each thread that allocates waits for it."""


class MemoryRelease(QObject):
    """Releases freed memory on a worker thread, at most once per interval.

    Chunks and tiles that are removed from the caches leave gaps. After 60 slices of a large volume they
    occupy 60 MiB.
    """

    def __init__(self, worker: Worker, parent: QObject) -> None:
        super().__init__(parent)
        self._worker = worker
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.setInterval(INTERVAL_MILLISECONDS)
        self._timer.timeout.connect(self._release)

    def request(self) -> None:
        """Release memory soon. Call it for every picture."""
        if not self._timer.isActive():
            self._timer.start()

    def stop(self) -> None:
        """Stop the timer."""
        self._timer.stop()

    def _release(self) -> None:
        self._worker.submit(
            release_free_memory, lambda _: None, lambda _: None, "free memory", low_priority=True
        )
