"""Waiting for a cluster: requests that may never be answered, messages about tasks that do not end, and interruption
by Ctrl-C.
"""

from __future__ import annotations

import asyncio
import signal
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from distributed import Client

__all__ = ["Stall", "ask_worker", "deferred_interrupt", "request"]

T = TypeVar("T")

STALLED_SECONDS = 60.0
"""After this time without a completed task, a message names the workers that have tasks."""


def request(client: Client, call: Callable[[], Awaitable[T]]) -> Future[T]:
    """Start a call of a method of the client, without waiting for it: the scheduler or a worker may hang.

    The methods of a synchronous client return awaitables in its event loop. ``cancel`` of the result ends the call.
    """

    async def run() -> T:
        return await call()

    return asyncio.run_coroutine_threadsafe(run(), client.loop.asyncio_loop)


def ask_worker(client: Client, worker: str, function: Callable[..., Any], *arguments: Any) -> Future[Any]:
    """Start a call of a function on a worker, outside of its threads for tasks. The result is what it returns, or the
    exception that it raises, or None if there is no such worker.
    """

    async def call() -> Any:
        replies = await client.run(function, *arguments, workers=[worker], on_error="return")
        return replies.get(worker)

    return request(client, call)


class Stall:
    """The time since the last result of a task."""

    def __init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        """Note that there is a result."""
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
