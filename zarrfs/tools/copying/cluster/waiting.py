"""Waiting for the tasks of a cluster: messages about tasks that do not end, and interruption by Ctrl-C."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["Stall", "deferred_interrupt"]

STALLED_SECONDS = 60.0
"""The time without a completed task after which the workers that have tasks are named."""


class Stall:
    """The time since the last completed task."""

    def __init__(self) -> None:
        self._start = time.monotonic()
        self._limit = STALLED_SECONDS

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._start

    def is_due(self) -> bool:
        """Return whether a message is due. The time until the next one doubles."""
        if self.seconds < self._limit:
            return False
        self._limit *= 2
        return True


@contextmanager
def deferred_interrupt() -> Iterator[threading.Event]:
    """Set the event on SIGINT instead of raising KeyboardInterrupt, if this thread receives signals.

    Python discards an exception that is raised while a finalizer runs. Futures of Dask have finalizers that take locks,
    so that a KeyboardInterrupt can be lost there. A handler that another program has installed stays in place.
    """
    interrupted = threading.Event()
    is_default = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if not is_default or threading.current_thread() is not threading.main_thread():
        yield interrupted
        return

    def handle(number: int, frame: object) -> None:
        if interrupted.is_set():  # A second Ctrl-C does not wait for the result that is being fetched.
            raise KeyboardInterrupt
        interrupted.set()

    signal.signal(signal.SIGINT, handle)
    try:
        yield interrupted
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
