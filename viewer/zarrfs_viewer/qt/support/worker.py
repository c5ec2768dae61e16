"""Work off the GUI thread, its result back on it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from PyQt6.QtCore import QObject, Qt, pyqtSignal

__all__ = ["Worker"]

Packet = tuple[Future[Any], Any, Any, str, int]
"""What was submitted, to be delivered."""


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
        self._patient = ThreadPoolExecutor(1, thread_name_prefix="viewer-patient")
        self._generations: dict[str, int] = {}
        self._running = 0
        self._closed = False
        self._closing = threading.Lock()
        # Queued: what is done at once is delivered later all the same, never within ``submit``.
        self._finished.connect(self._deliver, Qt.ConnectionType.QueuedConnection)  # type: ignore[call-arg]

    def submit(
        self,
        function: Callable[[], Any],
        done: Callable[[Any], None],
        failed: Callable[[Exception], None],
        owner: str = "",
        last: bool = False,
    ) -> None:
        """Call ``function`` on a thread, then ``done`` with its result or ``failed`` with its exception here.

        What nobody waits for is ``last``: it has a thread of its own, and holds nothing else up. Functions whose owner
        was forgotten before they began are not called at all.
        """
        generation = self._generations.get(owner, 0)
        self._running += 1
        self.busy.emit(self._running)

        def call() -> Any:
            return function() if generation == self._generations.get(owner, 0) else None

        future = (self._patient if last else self._pool).submit(call)
        future.add_done_callback(lambda f: self._emit((f, done, failed, owner, generation)))

    def _emit(self, packet: Packet) -> None:
        with self._closing:
            if not self._closed:  # else the object may be deleted
                self._finished.emit(packet)

    @property
    def idle(self) -> bool:
        """Whether nothing is under way."""
        return self._running == 0

    def forget(self, owner: str) -> None:
        """Drop the callbacks of what was submitted for ``owner`` and has not come back."""
        self._generations[owner] = self._generations.get(owner, 0) + 1

    def close(self) -> None:
        """Call nothing back any more, and do not wait: what is running may be a read that takes minutes."""
        with self._closing:
            self._closed = True
        self._finished.disconnect(self._deliver)
        for pool in (self._pool, self._patient):
            pool.shutdown(wait=False, cancel_futures=True)

    def _deliver(self, packet: Packet) -> None:
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
