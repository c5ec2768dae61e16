"""Prefetching: the values of several keys are requested before they are read.

One thread can then wait for many requests. A thread for each request takes more processor time than the request.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterable
from concurrent.futures import CancelledError, Future
from functools import partial
from itertools import islice
from types import TracebackType
from typing import Any, Self

from zarrfs.engine.stores.base import Buffer, Store
from zarrfs.engine.stores.wrappers.wrapper import WrapperStore

__all__ = ["PrefetchQueue", "PrefetchingStore"]

REQUESTS_PER_STEP = 2
"""The number of requests that are started in one iteration of the event loop."""

Request = Callable[[str], Coroutine[Any, Any, Buffer]]


class PrefetchQueue:
    """Requests the values of keys in order. As a context manager it cancels the remaining requests at the end.

    At most ``max_pending`` values are requested and not yet taken, which bounds the memory. ``request`` is called in
    the event loop, with the path of a key. ``paths`` yields pairs of key and path.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        request: Request,
        paths: Iterable[tuple[str, str]],
        max_pending: int,
    ) -> None:
        self._loop = loop
        self._request = request
        self._waiting = iter(paths)
        self._lock = threading.Lock()
        self._futures: dict[str, Future[Buffer]] = {}
        self._tasks: set[asyncio.Task[Buffer]] = set()
        self._ended = False
        self._send(max_pending)

    def take(self, key: str) -> Future[Buffer] | None:
        """Return the future of a requested value, and request the next key when it is done. None if the value was not
        requested or has been taken.
        """
        with self._lock:
            future = self._futures.pop(key, None)
        if future is not None:
            future.add_done_callback(self._send_next)
        return future

    def _send_next(self, future: Future[Buffer]) -> None:
        self._send(1)

    def _send(self, count: int) -> None:
        batch: list[tuple[str, Future[Buffer]]] = []
        with self._lock:
            for key, path in islice(self._waiting, count):
                future = self._futures[key] = Future[Buffer]()
                batch.append((path, future))
        if batch:
            self._loop.call_soon_threadsafe(self._start, batch)

    def _start(self, batch: list[tuple[str, Future[Buffer]]]) -> None:
        if self._ended:
            return
        # The event loop starts to open the connections of all requests of a step before it sends the first of them.
        if len(batch) > REQUESTS_PER_STEP:
            self._loop.call_soon(self._start, batch[REQUESTS_PER_STEP:])
        for path, future in batch[:REQUESTS_PER_STEP]:
            task = self._loop.create_task(self._request(path))
            self._tasks.add(task)
            task.add_done_callback(partial(self._finish, future))

    def _finish(self, future: Future[Buffer], task: asyncio.Task[Buffer]) -> None:
        self._tasks.discard(task)
        if task.cancelled():
            future.set_exception(CancelledError())
        elif (error := task.exception()) is not None:
            future.set_exception(error)
        else:
            future.set_result(task.result())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._lock:
            self._waiting = iter(())
            self._futures.clear()
        self._loop.call_soon_threadsafe(self._cancel)

    def _cancel(self) -> None:
        self._ended = True
        for task in self._tasks:
            task.cancel()


class PrefetchingStore(WrapperStore):
    """Reads the values of a PrefetchQueue, and all others from the wrapped store, which it does not own.

    ``get`` takes each value of the queue once. ``wait(key, result)`` returns ``result()`` and converts its errors.
    """

    def __init__(
        self,
        store: Store,
        queue: PrefetchQueue,
        wait: Callable[[str, Callable[[], Buffer]], Buffer | None],
    ) -> None:
        super().__init__(store)
        self._queue = queue
        self._wait = wait

    def get(self, key: str) -> Buffer | None:
        future = self._queue.take(key)
        return self.store.get(key) if future is None else self._wait(key, future.result)

    def get_into(self, key: str, out: memoryview) -> int | None:
        return Store.get_into(self, key, out)
