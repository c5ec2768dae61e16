"""Functions on worker threads with callbacks on the GUI thread."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from PyQt6.QtCore import QObject, Qt, pyqtSignal

__all__ = ["Worker"]

Submission = tuple[Future[Any], Any, Any, str, int]
"""A finished future, its two callbacks, its owner and the generation of the owner."""


class Worker(QObject):
    """Runs functions on a thread pool and calls back on the GUI thread.

    ``cancel(owner)`` cancels the functions and callbacks of an owner that are not finished.

    Signals:
        busy: (count) the number of unfinished functions changed.
    """

    busy = pyqtSignal(int)
    _finished = pyqtSignal(object)

    def __init__(self, threads: int = 2) -> None:
        super().__init__()
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="viewer-work")
        self._low_priority_pool = ThreadPoolExecutor(1, thread_name_prefix="viewer-patient")
        self._generations: dict[str, int] = {}
        self._running_count = 0
        self._is_closed = False
        self._close_lock = threading.Lock()
        # A queued connection: a callback is never called within ``submit``.
        self._finished.connect(self._deliver, Qt.ConnectionType.QueuedConnection)  # type: ignore[call-arg]

    def submit(
        self,
        function: Callable[[], Any],
        done: Callable[[Any], None],
        failed: Callable[[Exception], None],
        owner: str = "",
        low_priority: bool = False,
    ) -> None:
        """Call ``function`` on a thread, then ``done`` with its result or ``failed`` with its exception.

        Both callbacks run on the GUI thread. Functions with ``low_priority`` share a separate thread, so that they do
        not delay others. A function whose owner is cancelled before it starts is not called. Nothing is called after
        ``close``.
        """
        if self._is_closed:  # a timer of a closed window
            return
        generation = self._generations.get(owner, 0)
        self._running_count += 1
        self.busy.emit(self._running_count)

        def call() -> Any:
            return function() if generation == self._generations.get(owner, 0) else None

        future = (self._low_priority_pool if low_priority else self._pool).submit(call)
        future.add_done_callback(lambda f: self._emit((f, done, failed, owner, generation)))

    def _emit(self, submission: Submission) -> None:
        with self._close_lock:
            if not self._is_closed:  # after ``close`` the QObject may be deleted
                self._finished.emit(submission)

    @property
    def is_idle(self) -> bool:
        """Whether no function is unfinished."""
        return self._running_count == 0

    def cancel(self, owner: str) -> None:
        """Cancel the functions of ``owner`` that have not started, and the callbacks of those that are running."""
        self._generations[owner] = self._generations.get(owner, 0) + 1

    def close(self) -> None:
        """Cancel all callbacks. Does not wait for running functions: a read may take minutes."""
        with self._close_lock:
            if self._is_closed:
                return
            self._is_closed = True
        self._finished.disconnect(self._deliver)
        for pool in (self._pool, self._low_priority_pool):
            pool.shutdown(wait=False, cancel_futures=True)

    def _deliver(self, submission: Submission) -> None:
        future, done, failed, owner, generation = submission
        self._running_count -= 1
        self.busy.emit(self._running_count)
        if future.cancelled() or generation != self._generations.get(owner, 0):
            return
        error = future.exception()
        if error is None:
            done(future.result())
        elif isinstance(error, Exception):
            failed(error)
