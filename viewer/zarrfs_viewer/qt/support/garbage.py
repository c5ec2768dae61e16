"""Garbage collection in the GUI thread.

Python collects cyclic garbage in whatever thread allocates memory. If that is a worker thread and the garbage contains
widgets, Qt destroys them in this thread while the GUI thread may be using them, which crashes the process.
"""

from __future__ import annotations

import gc

from PyQt6.QtCore import QObject, QTimer

__all__ = ["GuiThreadCollector"]

INTERVAL_MILLISECONDS = 500


class GuiThreadCollector(QObject):
    """Replaces the automatic garbage collection of the process by one that runs in the event loop.

    Create it in the GUI thread, before the windows. It uses the thresholds of the automatic collection, and one step of
    the event loop collects one generation. ``stop`` enables the automatic collection again.
    """

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._was_enabled = gc.isenabled()
        self._timer = QTimer(self)
        self._timer.setInterval(INTERVAL_MILLISECONDS)
        self._timer.timeout.connect(self.collect)
        self.freeze()
        gc.disable()
        self._timer.start()

    def freeze(self) -> None:
        """Exclude all existing objects from the collection. Call it when the modules are imported.

        Their objects exist until the process ends. Without them a collection takes a third of the time.
        """
        gc.freeze()

    def collect(self) -> None:
        """Collect the oldest generation whose threshold is exceeded, and the younger ones."""
        counts, thresholds = gc.get_count(), gc.get_threshold()
        for generation in (2, 1, 0):
            if counts[generation] > thresholds[generation] > 0:
                gc.collect(generation)
                return

    def stop(self) -> None:
        """End the collection in the event loop."""
        self._timer.stop()
        gc.unfreeze()
        if self._was_enabled:
            gc.enable()
