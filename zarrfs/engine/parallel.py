"""Doing many pieces of work on a few threads, the calling one among them.

The caller always works too and could do everything alone, so that nested calls (chunks, then inner chunks of a
shard) cannot wait for each other in a circle, however small the pool is.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

__all__ = ["CORES", "at_most", "for_each"]

T = TypeVar("T")

CORES = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
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
    # Threads do not survive a fork; a pool that believes in them would wait for ever.
    global _pool, _pool_lock
    _pool = None
    _pool_lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


@contextmanager
def at_most(threads: int | None) -> Iterator[None]:
    """Within, ``for_each`` on this thread uses no more threads than this; None sets no bound."""
    before = getattr(_state, "most", None)
    _state.most = threads if before is None else before if threads is None else min(before, threads)
    try:
        yield
    finally:
        _state.most = before


def for_each(work: Callable[[T], object], items: Iterable[T], workers: int) -> None:
    """Call ``work`` on every item, on at most ``workers`` threads including this one.

    Returns when all is done. The first exception stops the handing out of items and is raised here after the
    others have finished what they hold.
    """
    most = getattr(_state, "most", None)
    if most is not None:
        workers = min(workers, most)
    if workers <= 1 or getattr(_state, "busy", False):
        # Work that is itself one of many pieces does not split further: the threads are all in use already.
        for item in items:
            work(item)
        return
    queue = deque(items)
    errors: list[BaseException] = []

    def drain() -> None:
        _state.busy = True
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
            _state.busy = False

    helpers: list[Future[None]] = []
    count = min(workers, len(queue)) - 1
    if count > 0:
        try:
            pool = _get_pool()
            helpers = [pool.submit(drain) for _ in range(count)]
        except RuntimeError:
            # The interpreter is shutting down and takes no new work: the caller does it all.
            helpers = []
    drain()
    for helper in helpers:
        # One that has not started has nothing left to do, and its turn may come late.
        if not helper.cancel():
            helper.result()
    if errors:
        raise errors[0]
