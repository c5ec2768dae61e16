"""Work in steps: one function for each iteration of the event loop, so that together they do not stall the window."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from PyQt6.QtCore import QObject, QTimer

__all__ = ["Steps"]


class Steps(QObject):
    """Calls functions one after the other in the next iterations of the event loop. Use it only on the GUI thread."""

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        self._functions: list[Callable[[], object]] = []
        self._timer = QTimer(self)
        self._timer.setInterval(0)
        self._timer.timeout.connect(self._call_next)

    @property
    def is_active(self) -> bool:
        """Whether functions are left."""
        return bool(self._functions)

    def start(self, functions: Sequence[Callable[[], object]]) -> None:
        """Call these functions, in this order. Functions that are left from before are not called."""
        self._functions = list(functions)
        self._timer.start()

    def cancel(self) -> None:
        """Do not call the functions that are left."""
        self._functions = []
        self._timer.stop()

    def finish(self) -> None:
        """Call the functions that are left now."""
        while self._functions:
            self._call_next()

    def _call_next(self) -> None:
        function = self._functions.pop(0)
        if not self._functions:
            self._timer.stop()
        function()
