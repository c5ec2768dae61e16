"""A store whose operations end within a time limit, even if a server never responds."""

from __future__ import annotations

import errno
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from queue import Empty, SimpleQueue
from typing import Any, TypeVar, cast

from zarrfs.engine.stores.base import OPERATIONS, Store
from zarrfs.engine.stores.wrappers.wrapper import WrapperStore
from zarrfs.errors import ServerError, StoreError
from zarrfs.logs import logger

__all__ = ["DaemonExecutor", "DaemonThreads", "TimeoutStore"]

T = TypeVar("T")

MAX_THREADS = 64
"""Requests that a server never answers occupy their threads. Further requests wait for a thread, and fail when their
time is over."""

IDLE_SECONDS = 10.0
"""A thread without a task exits after this time."""

MAX_REMEMBERED = 4096

MAX_REMEMBERED_NBYTES = 1 << 20
"""Larger metadata documents are not remembered."""

STALE_SECONDS = 1.0
"""A remembered value is used if the server has not responded after this time."""

REPEATED_SECONDS = 0.1
"""How long a read of a key that timed out recently waits for the request that is in progress."""

MAX_FAILED = 1024
"""The maximum number of keys that timed out recently."""

LOCAL_OPERATIONS = ("stamp", "is_irregular", "listing_stamp", "lock", "clean")
"""Operations that send no request."""

VALUE_OPERATIONS = {
    "get": "get",
    "get_within": "get",
    "get_ranges": "get_ranges",
    "size": "size",
    "exists": "exists",
}
"""Operations on one key whose results are remembered for metadata documents -> the name of the remembered result."""


class _Task:
    __slots__ = ("done", "error", "function", "is_abandoned", "result")

    def __init__(self, function: Callable[[], Any]) -> None:
        self.function = function
        self.done = threading.Event()
        self.is_abandoned = False
        self.result: Any = None
        self.error: BaseException | None = None


class DaemonThreads:
    """At most ``max_threads`` threads that run functions. They do not delay the exit of the process."""

    def __init__(self, max_threads: int = MAX_THREADS) -> None:
        self._max_threads = max_threads
        self._tasks: SimpleQueue[_Task] = SimpleQueue()
        self._threads = 0
        self._free = 0
        """The number of threads without a task, minus the number of tasks that no thread has taken."""
        self._lock = threading.Lock()

    def start(self, function: Callable[[], Any]) -> _Task:
        """Run a function in a thread, as soon as one is free."""
        task = _Task(function)
        self._tasks.put(task)
        with self._lock:
            self._free -= 1
            if self._free >= 0 or self._threads >= self._max_threads:
                return task
            self._threads += 1
            self._free += 1
        threading.Thread(target=self._work, name="zarrfs-request", daemon=True).start()
        return task

    def _work(self) -> None:
        while True:
            try:
                task = self._tasks.get(timeout=IDLE_SECONDS)
            except Empty:
                with self._lock:
                    if self._free > 0:
                        self._free -= 1
                        self._threads -= 1
                        return
                continue
            try:
                if task.is_abandoned:
                    raise TimeoutError("no thread was free")
                task.result = task.function()
            except BaseException as error:
                task.error = error
            task.done.set()
            del task
            with self._lock:
                self._free += 1


class DaemonExecutor(ThreadPoolExecutor):
    """An executor that does not delay the exit of the process, as the default one of an event loop does."""

    def __init__(self) -> None:
        super().__init__(1)
        self._daemons = DaemonThreads()

    def submit(self, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> Future[T]:
        future: Future[T] = Future()

        def run() -> None:
            if future.set_running_or_notify_cancel():
                try:
                    future.set_result(fn(*args, **kwargs))
                except BaseException as error:
                    future.set_exception(error)

        self._daemons.start(run)
        return future


class _Failure:
    """A read that timed out.

    Attributes:
        task: the request that was abandoned, or the one that was sent later to find out whether the server responds.
        until: the time until which reads of the key fail at once.
    """

    __slots__ = ("task", "until")

    def __init__(self, task: _Task, until: float) -> None:
        self.task = task
        self.until = until


class TimeoutStore(WrapperStore):
    """Delegates to another store, which it owns. An operation that takes longer than ``timeout`` seconds raises
    StoreError with the error number ETIMEDOUT; its request continues in the background and its result is dropped.

    The results of listings, and the values and sizes of keys for which ``is_metadata`` is true, are remembered. If the
    server does not respond within ``STALE_SECONDS``, or fails, the remembered result is returned, and a warning is
    logged once.
    While no request is answered, remembered results are returned at once. Other reads then fail after
    ``STALE_SECONDS``: programs and the kernel repeat a read that failed, and each would take ``timeout`` seconds.

    A read of a key that timed out fails after ``REPEATED_SECONDS`` if it is repeated within ``timeout`` seconds,
    unless its request is answered: the kernel sends the reads of the same data by several programs one after another.
    """

    def __init__(
        self,
        store: Store,
        timeout: float,
        is_metadata: Callable[[str], bool] = lambda key: False,
        stale: float = STALE_SECONDS,
    ) -> None:
        super().__init__(store)
        self.timeout = timeout
        self._is_metadata = is_metadata
        self._stale = min(stale, timeout)
        self._threads = DaemonThreads()
        self._remembered: OrderedDict[tuple[str, str], Any] = OrderedDict()
        self._lock = threading.Lock()
        self._is_hung = False
        self._is_reported = False
        """Whether the warning was logged since the last operation that succeeded."""
        self._responses = 0
        self._failures: OrderedDict[str, _Failure] = OrderedDict()
        """By key, the reads that timed out."""
        self._probe: _Task | None = None
        """A request that succeeds when the server responds again."""

    def _limit(
        self, operation: Callable[[], T], key: str, timeout: float | None = None, *, is_read: bool = False
    ) -> T:
        """Return the result of an operation. Raises StoreError when the time is over."""
        responses = self._responses
        task = self._threads.start(lambda: self._run(operation))
        limit = self.timeout if timeout is None else timeout
        if not task.done.wait(limit):
            task.is_abandoned = True
            if self._responses == responses:
                self._is_hung = True
            if is_read:
                self._record_failure(key, task)
            raise self._timeout_error(key, limit)
        if task.error is not None:
            if _is_timeout(task.error):
                if is_read:
                    self._record_failure(key, task)
                raise self._timeout_error(key, self.timeout) from task.error
            raise task.error
        return cast(T, task.result)

    def _read(self, operation: Callable[[], T], key: str) -> T:
        """Return the result of an operation that changes nothing, as ``_limit`` does."""
        if self._failures:
            self._check_failure(operation, key)
        return self._limit(operation, key, self._stale if self._is_hung else None, is_read=True)

    def _timeout_error(self, key: str, limit: float) -> ServerError:
        where = f"{self.url}/{key}" if key else self.url
        before = "" if limit == self.timeout else f", nor to an earlier request within {self.timeout:g} s"
        return ServerError(
            f"{where}: the server did not respond within {limit:g} s{before} (--timeout)", errno.ETIMEDOUT
        )

    def _record_failure(self, key: str, task: _Task) -> None:
        with self._lock:
            self._failures[key] = _Failure(task, time.monotonic() + self.timeout)
            self._failures.move_to_end(key)
            if len(self._failures) > MAX_FAILED:
                self._failures.popitem(last=False)

    def _check_failure(self, operation: Callable[[], object], key: str) -> None:
        """Raise ServerError if a read of the key timed out recently, and the server still does not respond."""
        with self._lock:
            failure = self._failures.get(key)
            if failure is not None and time.monotonic() >= failure.until:
                del self._failures[key]
                failure = None
            if failure is None:
                return
            if (
                failure.task.done.is_set()
                and failure.task.error is not None
                and _is_timeout(failure.task.error)
            ):
                # The client has given up, too. Another request finds out whether the server responds again.
                failure.task = self._threads.start(lambda: self._run(operation))
            task = failure.task
        limit = min(REPEATED_SECONDS, self.timeout)
        if not task.done.wait(limit) or (task.error is not None and _is_timeout(task.error)):
            raise self._timeout_error(key, limit)
        with self._lock:
            if self._failures.get(key) is failure:
                del self._failures[key]

    def _run(self, operation: Callable[[], T]) -> T:
        try:
            result = operation()
        except BaseException as error:
            if not _is_timeout(error):
                self._mark_response()  # an error of the server is also a response
            raise
        self._mark_response()
        self._is_reported = False
        return result

    def _mark_response(self) -> None:
        self._responses += 1
        self._is_hung = False

    def _call_remembering(self, name: str, key: str, operation: Callable[[], T]) -> T:
        """Return the result of an operation, or the remembered result if the server does not respond."""
        with self._lock:
            is_remembered = (name, key) in self._remembered
            remembered = self._remembered.get((name, key))

        def run() -> T:
            result = operation()
            self._remember(name, key, result)
            return result

        if not is_remembered:
            return self._read(run, key)
        if self._is_hung:
            if self._probe is None or self._probe.done.is_set():
                self._probe = self._threads.start(lambda: self._run(run))
            return cast(T, remembered)
        try:
            return self._limit(run, key, self._stale)
        except ServerError as error:
            self._is_hung = self._is_hung or error.errno == errno.ETIMEDOUT
        if not self._is_reported:
            self._is_reported = True
            logger.warning("%s: the server does not respond; known metadata is used meanwhile", self.url)
        return cast(T, remembered)

    def _remember(self, name: str, key: str, result: Any) -> None:
        buffers = result if isinstance(result, list) else [result]
        if sum(len(each) for each in buffers if isinstance(each, bytes | bytearray | memoryview)) > (
            MAX_REMEMBERED_NBYTES
        ):
            return
        with self._lock:
            self._remembered[name, key] = result
            self._remembered.move_to_end((name, key))
            if len(self._remembered) > MAX_REMEMBERED:
                self._remembered.popitem(last=False)

    # -- operations --------------------------------------------------------------------------------------------

    def perform(self, name: str, *args: Any) -> Any:
        if name in LOCAL_OPERATIONS:
            return super().perform(name, *args)
        operation = OPERATIONS[name]
        key = args[0] if operation.names in ("key", "prefixes") else ""
        # The caller may change its buffers when the operation has been given up.
        if name == "set":
            args = key, bytes(args[1])
        elif name in ("set_parts", "create"):
            args = key, [bytes(part) for part in args[1]]

        def request() -> Any:
            return self._complete(name, args)

        if name == "list_dir" or (name in VALUE_OPERATIONS and self._is_metadata(key)):
            result_name = VALUE_OPERATIONS.get(name, name)
            if name == "get_ranges":
                # Documents are read as one range, whose length limits their size.
                result_name = f"{name} {list(args[1])}"
            return self._call_remembering(result_name, key, request)
        # A change is never answered by the failure of an earlier operation.
        return self._limit(request, key) if operation.changes else self._read(request, key)

    def get_into(self, key: str, out: memoryview) -> int | None:
        # An operation that is given up must not write to the memory of the caller later.
        value = self.get(key)
        if value is None:
            return None
        data = memoryview(value).cast("B")
        if len(data) == len(out):
            out[:] = data
        return len(data)

    def close(self) -> None:
        """Close the store. A store that cannot be closed in time is abandoned: the process is about to exit."""
        Store.close(self)
        try:
            self._limit(self.store.close, "", self._stale)
        except StoreError as error:
            if error.errno != errno.ETIMEDOUT:
                raise


def _is_timeout(error: BaseException) -> bool:
    """Return whether an error states that the server did not respond: the client has a time limit of its own."""
    link: BaseException | None = error
    while link is not None:
        # Clients of object stores have classes of their own, such as ReadTimeoutError.
        if isinstance(link, TimeoutError) or "Timeout" in type(link).__name__:
            return True
        link = link.__cause__
    return getattr(error, "errno", None) == errno.ETIMEDOUT
