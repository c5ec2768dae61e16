"""Work off the GUI thread, its result back on it."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from PyQt6.QtCore import QObject, Qt, pyqtSignal

__all__ = ["Worker"]


class Worker(QObject):
    """Runs functions on a few threads and calls back on the GUI thread.

    A callback that belongs to an owner is dropped when ``forget(owner)`` was called meanwhile: its question is no
    longer asked.

    Signals:
        busy: the number of functions under way has changed.
    """

    busy = pyqtSignal(int)
    _finished = pyqtSignal(object)

    def __init__(self, threads: int = 2) -> None:
        super().__init__()
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="viewer-work")
        self._generations: dict[str, int] = {}
        self._running = 0
        # Queued: what is done at once is delivered later all the same, never within ``submit``.
        self._finished.connect(self._deliver, Qt.ConnectionType.QueuedConnection)  # type: ignore[call-arg]

    def submit(
        self,
        function: Callable[[], Any],
        done: Callable[[Any], None],
        failed: Callable[[Exception], None],
        owner: str = "",
    ) -> None:
        """Call ``function`` on a thread, then ``done`` with its result or ``failed`` with its exception here."""
        generation = self._generations.get(owner, 0)
        self._running += 1
        self.busy.emit(self._running)
        future = self._pool.submit(function)
        future.add_done_callback(lambda f: self._finished.emit((f, done, failed, owner, generation)))

    def forget(self, owner: str) -> None:
        """Drop the callbacks of what was submitted for ``owner`` and has not come back."""
        self._generations[owner] = self._generations.get(owner, 0) + 1

    def close(self) -> None:
        """Wait for what is running; nothing is called back any more."""
        self._finished.disconnect(self._deliver)
        self._pool.shutdown(wait=True, cancel_futures=True)

    def _deliver(self, packet: tuple[Future[Any], Any, Any, str, int]) -> None:
        future, done, failed, owner, generation = packet
        self._running -= 1
        self.busy.emit(self._running)
        if future.cancelled() or generation != self._generations.get(owner, 0):
            return
        error = future.exception()
        if error is None:
            done(future.result())
        elif isinstance(error, Exception):
            failed(error)
