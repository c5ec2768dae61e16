"""Parallel execution of many tasks on the calling thread and a shared pool of worker threads.

The calling thread executes tasks too, and can execute all of them alone. Therefore nested calls (chunks, then the
inner chunks of a shard) cannot deadlock, whatever the size of the pool is.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

__all__ = ["CORES", "available_cores", "check_stopped", "for_each", "limit_threads", "permitted_threads"]

T = TypeVar("T")

QUOTA_FILES = ("/sys/fs/cgroup/cpu.max", "/sys/fs/cgroup/cpu/cpu.cfs_quota_us")
"""Where Linux shows the CPU quota of a container: "QUOTA PERIOD" (version 2), QUOTA (version 1)."""


def available_cores(quota_files: tuple[str, str] = QUOTA_FILES) -> int:
    """Return the number of processors that this process may use: by its affinity, and by the quota of its container."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    for path in quota_files:
        try:
            with open(path) as file:
                quota, *rest = file.read().split()
            if rest:
                period = rest[0]
            else:
                with open(path.replace("quota", "period")) as file:
                    period = file.read()
            if int(quota) > 0 and int(period) > 0:
                return max(1, min(cores, -(-int(quota) // int(period))))
        except (OSError, ValueError):  # There is no such file, or the quota is "max".
            continue
    return cores


CORES = available_cores()
MAX_THREADS = 64

_pool: ThreadPoolExecutor | None = None
_pool_lock = threading.Lock()
_state = threading.local()


def _get_pool() -> ThreadPoolExecutor:
    global _pool
    with _pool_lock:
        if _pool is None:
            _pool = ThreadPoolExecutor(MAX_THREADS, thread_name_prefix="zarrfs-worker")
        return _pool


def _after_fork() -> None:
    # Threads do not survive a fork. A pool that still counts them would wait forever.
    global _pool, _pool_lock
    _pool = None
    _pool_lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


class _StoppedError(BaseException):
    """Ends a call of ``work`` whose ``for_each`` has failed or was interrupted. No code that calls it sees this.

    It is not an Exception, so that functions that convert errors do not convert it.
    """


def check_stopped() -> None:
    """End the call of ``work`` on this thread if its ``for_each`` has failed or was interrupted.

    Long calls check this between their parts. Ctrl-C interrupts the main thread only; the others would complete their
    blocks, which takes seconds.
    """
    if getattr(_state, "errors", None):
        raise _StoppedError


class limit_threads:  # noqa: N801 - used as a function
    """Limit the number of threads of ``for_each`` calls on this thread during the block. None sets no limit.

    In nested blocks the smallest limit applies. A block can be entered once.
    """

    # Not a generator: every read enters a block, and a generator takes several times as long.
    __slots__ = ("_outer_limit", "_threads")

    def __init__(self, threads: int | None) -> None:
        self._threads = threads

    def __enter__(self) -> None:
        outer_limit: int | None = getattr(_state, "limit", None)
        self._outer_limit = outer_limit
        if self._threads is not None:
            _state.limit = self._threads if outer_limit is None else min(outer_limit, self._threads)

    def __exit__(self, *_: object) -> None:
        _state.limit = self._outer_limit


def permitted_threads(threads: int) -> int:
    """Return how many of ``threads`` threads this thread may use: 1 within a call of ``for_each``, and at most the
    limit of ``limit_threads``.
    """
    if getattr(_state, "busy", False):
        return 1
    limit: int | None = getattr(_state, "limit", None)
    return threads if limit is None else min(threads, limit)


def _call_first(calls: list[Callable[[], None]]) -> None:
    calls[0]()


def for_each(work: Callable[[T], object], items: Iterable[T], workers: int) -> None:
    """Call ``work`` for every item, on at most ``workers`` threads including the calling one.

    Returns after all calls have returned. After the first exception no further calls start; it is raised here when the
    running calls have ended, which ``check_stopped`` ends early. A call from within ``work`` runs on its own thread
    only.
    """
    workers = permitted_threads(workers)
    if workers <= 1:
        # A nested call is not parallelized, because the threads are in use already.
        for item in items:
            check_stopped()
            work(item)
        return
    queue = deque(items)
    errors: list[BaseException] = []

    def drain() -> None:
        _state.busy, _state.errors = True, errors
        try:
            while not errors:
                try:
                    item = queue.popleft()
                except IndexError:
                    return
                try:
                    work(item)
                except BaseException as error:
                    errors.append(error)
        finally:
            _state.busy, _state.errors = False, None

    helpers: list[Future[None]] = []
    # The queue of the pool contains cancelled calls until a thread takes them. They must not keep the items and the
    # results: many short calls would add up to several times their memory while all processors are in use.
    calls = [drain]
    count = min(workers, len(queue)) - 1
    if count > 0:
        try:
            pool = _get_pool()
            helpers = [pool.submit(_call_first, calls) for _ in range(count)]
        except RuntimeError:
            # The interpreter is shutting down and accepts no new tasks: execute all of them on this thread.
            helpers = []
    drain()
    for helper in helpers:
        # A helper that has not started has nothing left to do, and may start late.
        if not helper.cancel():
            try:
                helper.result()
            except BaseException as error:  # Ctrl-C while this thread waits; a second Ctrl-C ends the wait
                errors.append(error)
                helper.result()
    calls.clear()
    if errors:
        raise errors[0]
