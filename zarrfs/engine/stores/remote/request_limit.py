"""The requests in progress: one limit for all remote requests of the process.

The process, each server and each store have a limit, and a request needs a place in all three. The limit of a server
adapts to it: it is halved when the server is overloaded or does not respond, and raised while more requests at a time
give more bytes per second. The limit of a store is what the user has set.
"""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Awaitable, Callable, Hashable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar
from weakref import WeakValueDictionary

from zarrfs.engine.stores.base import RequestStatistics
from zarrfs.engine.stores.remote.presence import is_overload

__all__ = [
    "MAX_REQUESTS",
    "MIN_REQUESTS",
    "START_REQUESTS",
    "RequestLimit",
    "ServerLimit",
]

T = TypeVar("T")

MIN_REQUESTS = 4
START_REQUESTS = 64
MAX_REQUESTS = 256
"""The limits of a server: the smallest, the first, and the largest, which is also the limit of the process."""

MIN_GROWTH = 1.15
"""A limit is raised by half. It is kept if the throughput grows at least by this factor, else reduced again."""

PROBE_ROUNDS = 16
"""After so many rounds at a limit that did not grow, a larger one is tried again. A round ends when as many requests
have ended as the limit permits.
"""


class ServerLimit:
    """The limit of one server, which adapts to it. The caller synchronizes threads. ``clock`` returns seconds.

    A failure changes the limit once for all requests that were in progress at that time: each request remembers the
    ``generation`` of the limit at its start.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.limit = START_REQUESTS
        self.in_progress = 0
        self.generation = 0
        self._clock = clock
        self._ceiling = MAX_REQUESTS
        self._previous: tuple[int, float] | None = (
            None  # the limit before the last rise, and its bytes per second
        )
        self._rounds_kept = 0
        self._begin_round()

    def _begin_round(self) -> None:
        self._ended = self._nbytes = 0
        self._is_full = True
        self._start = self._clock()

    def end_request(self, generation: int, nbytes: int, *, is_overload: bool, others_wait: bool) -> None:
        """Adapt the limit to the end of a request that began in ``generation``.

        ``others_wait`` is whether requests wait for a place. The throughput of a limit is known only while they do.
        """
        if is_overload:
            if generation == self.generation:
                self._ceiling = max(MIN_REQUESTS, min(self._ceiling, self.limit))
                self._set(max(MIN_REQUESTS, self.limit // 2))
                self._previous = None
            return
        self._ended += 1
        # Of responses without a value, and of some libraries, the size is not known.
        self._nbytes += nbytes or 1
        self._is_full = self._is_full and others_wait
        if self._ended < self.limit:
            return
        if self._is_full and generation == self.generation:
            self._end_round(self._nbytes / max(self._clock() - self._start, 1e-9))
        self._begin_round()

    def _end_round(self, rate: float) -> None:
        if self._previous is not None:
            limit, previous_rate = self._previous
            if rate < MIN_GROWTH * previous_rate:
                self._previous = None
                self._rounds_kept = PROBE_ROUNDS
                self._set(limit)
                return
        if self._rounds_kept > 0:
            self._rounds_kept -= 1
            return
        # A limit at which the server was overloaded is approached slowly.
        raised = self.limit + self.limit // 2
        raised = raised if raised < self._ceiling or self._ceiling == MAX_REQUESTS else self.limit + 1
        raised = min(raised, MAX_REQUESTS)
        if raised > self.limit:
            self._previous = (self.limit, rate) if raised > self.limit + 1 else None
            self._set(raised)

    def _set(self, limit: int) -> None:
        self.limit = limit
        self.generation += 1
        self._begin_round()


class _Waiter:
    """A request, or several, that wait for a place. ``wake`` is called without the lock when ``granted`` is set."""

    __slots__ = ("count", "granted", "wake")

    def __init__(self, count: int, wake: Callable[[], object]) -> None:
        self.count = count
        self.granted = 0
        self.wake = wake


_lock = threading.Lock()
_in_progress = 0
_servers: WeakValueDictionary[Hashable, ServerLimit] = WeakValueDictionary()
_waiting: OrderedDict[RequestLimit, deque[_Waiter]] = OrderedDict()
"""The stores that wait for places, which get them in turn."""


def _after_fork() -> None:
    # The requests of the parent do not end in its child.
    global _lock, _in_progress
    _lock = threading.Lock()
    _in_progress = 0
    _servers.clear()
    _waiting.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


class RequestLimit:
    """Permits and counts the requests of one store to a ``server``. Thread-safe.

    Threads use ``reserve``, coroutines ``send``. Requests in progress never wait for a place, so that none waits for
    another one forever.
    """

    def __init__(self, server: Hashable) -> None:
        self._permitted: int | None = None
        self._in_progress = self._requests = self._nbytes = self._retries = 0
        with _lock:
            self._server = _servers.setdefault(server, ServerLimit())

    @property
    def count(self) -> int:
        """The maximum number of requests in progress at present."""
        limit = self._server.limit
        return limit if self._permitted is None else min(self._permitted, limit)

    @property
    def permitted(self) -> int | None:
        """The limit of the store, or None."""
        return self._permitted

    def reduce(self, count: int) -> None:
        """Set the limit of the store unless it is smaller already."""
        with _lock:
            self._permitted = max(1, count if self._permitted is None else min(self._permitted, count))

    @property
    def statistics(self) -> RequestStatistics:
        """The counters of the store."""
        with _lock:
            return RequestStatistics(self._requests, self._nbytes, self._retries, self._in_progress)

    def count_bytes(self, nbytes: int) -> None:
        """Count bytes of requests that were reserved."""
        with _lock:
            self._nbytes += nbytes

    def count_retry(self) -> None:
        """Count the repetition of a failed request."""
        with _lock:
            self._retries += 1

    # -- places ------------------------------------------------------------------------------------------------

    def _take(self, count: int) -> int:
        """Take up to ``count`` free places and return their number. The caller holds the lock."""
        global _in_progress
        server = self._server
        free = min(
            self.count - self._in_progress, server.limit - server.in_progress, MAX_REQUESTS - _in_progress
        )
        number = min(count, free)
        if number <= 0:
            return 0
        self._in_progress += number
        server.in_progress += number
        _in_progress += number
        self._requests += number
        return number

    def _wait(self, count: int, wake: Callable[[], object]) -> _Waiter:
        waiter = _Waiter(count, wake)
        _waiting.setdefault(self, deque()).append(waiter)
        return waiter

    def _abandon(self, waiter: _Waiter) -> None:
        """Stop waiting. Places that were granted meanwhile are released."""
        with _lock:
            queue = _waiting.get(self)
            if queue is not None and waiter in queue:
                queue.remove(waiter)
                if not queue:
                    del _waiting[self]
        if waiter.granted:
            self._release(waiter.granted, -1, 0)

    def _release(self, count: int, generation: int, nbytes: int, error: BaseException | None = None) -> None:
        """Release places, after a request that has received or sent ``nbytes`` bytes or has failed."""
        global _in_progress
        granted: list[_Waiter] = []
        with _lock:
            self._in_progress -= count
            self._server.in_progress -= count
            _in_progress -= count
            self._nbytes += nbytes
            if error is None or is_overload(error):
                self._server.end_request(
                    generation, nbytes, is_overload=error is not None, others_wait=bool(_waiting)
                )
            if _waiting:
                granted = _grant()
        for waiter in granted:
            waiter.wake()

    @contextmanager
    def reserve(self, count: int = 1) -> Iterator[int]:
        """Reserve up to ``count`` places, and yield their number, at least 1. Waits until one is free."""
        waiter = None
        with _lock:
            number = 0 if self in _waiting else self._take(count)
            if not number:
                event = threading.Event()
                waiter = self._wait(count, event.set)
        if waiter is not None:
            try:
                event.wait()
            except BaseException:  # Ctrl-C
                self._abandon(waiter)
                raise
            number = waiter.granted
        generation = self._server.generation
        try:
            yield number
        except BaseException as error:
            self._release(number, generation, 0, error)
            raise
        self._release(number, generation, 0)

    async def send(self, operation: Callable[[], Awaitable[T]], nbytes: int = 0) -> T:
        """Return the result of ``operation()``, which sends one request, when there is a place for it.

        The bytes of the result are counted, and ``nbytes`` that the request sends.
        """
        with _lock:
            waiter = None
            if self in _waiting or not self._take(1):
                future = (loop := asyncio.get_running_loop()).create_future()
                waiter = self._wait(1, lambda: loop.call_soon_threadsafe(_set_done, future))
        if waiter is not None:
            try:
                await future
            except BaseException:  # cancelled
                self._abandon(waiter)
                raise
        generation = self._server.generation
        try:
            result = await operation()
        except BaseException as error:
            self._release(1, generation, 0, error)
            raise
        self._release(1, generation, nbytes + len(result) if isinstance(result, BUFFERS) else nbytes)
        return result


BUFFERS = (bytes, bytearray, memoryview)


def _set_done(future: asyncio.Future[Any]) -> None:
    if not future.done():
        future.set_result(None)


def _grant() -> list[_Waiter]:
    """Give free places to the requests that wait, and return those that have one. The caller holds the lock."""
    granted: list[_Waiter] = []
    for limit in list(_waiting):
        queue = _waiting[limit]
        while queue and (number := limit._take(queue[0].count)):
            waiter = queue.popleft()
            waiter.granted = number
            granted.append(waiter)
        if not queue:
            del _waiting[limit]
        elif granted:
            _waiting.move_to_end(limit)
    return granted
