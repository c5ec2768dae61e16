"""The division of the items of a run into Dask tasks. Each Dask task costs the scheduler several milliseconds.
Therefore it has as many items as a thread processes in some seconds.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from zarrfs.tools.copying.cluster.results import BatchResult

__all__ = [
    "BATCH_SECONDS",
    "MAX_BATCH_SIZE",
    "MAX_UNMEASURED_BATCH_SIZE",
    "SCHEDULING_SECONDS",
    "Batches",
    "batch_count",
    "batch_size",
]

MIN_TASKS_PER_THREAD = 4
"""A Dask task has at most this fraction of the remaining items per thread, so that all threads end at nearly the same
time. The number of Dask tasks grows with it.
"""

BATCH_SECONDS = 2.0
SCHEDULING_SECONDS = 0.02
"""A Dask task takes at least ``BATCH_SECONDS``, and with many threads so long that the scheduler starts one in
``SCHEDULING_SECONDS``: it needs several milliseconds for each. A task stops after any item if the run is interrupted.
"""

MAX_UNMEASURED_BATCH_SIZE = 32
"""The maximum number of items of a Dask task before any has ended."""

MAX_BATCH_SIZE = 1024
"""The maximum number of items of a Dask task. The scheduler holds the items of all tasks in flight."""


class Batches:
    """The items of a run that have not been submitted."""

    def __init__(self, items: Sequence[Any]) -> None:
        self._items = items
        self._next = 0
        self._done = 0
        self._seconds = 0.0

    def measure(self, result: BatchResult) -> None:
        """Note how long items take."""
        self._done += result.done
        self._seconds += result.seconds

    def take(self, count: int, threads: int) -> Iterator[Sequence[Any]]:
        """Yield up to ``count`` batches for a cluster with so many threads."""
        for _ in range(count):
            if self._next == len(self._items):
                return
            item_seconds = self._seconds / self._done if self._done else None
            size = batch_size(len(self._items) - self._next, threads, item_seconds)
            yield self._items[self._next : self._next + size]
            self._next = min(len(self._items), self._next + size)


def batch_size(remaining: int, threads: int, item_seconds: float | None) -> int:
    """Return the number of items of the next Dask task. ``item_seconds`` is the time per item, None if unknown."""
    limit = MAX_UNMEASURED_BATCH_SIZE
    if item_seconds is not None:
        seconds = max(BATCH_SECONDS, threads * SCHEDULING_SECONDS)
        limit = int(min(MAX_BATCH_SIZE, seconds / max(item_seconds, seconds / MAX_BATCH_SIZE)))
    return max(1, min(limit, remaining // (threads * MIN_TASKS_PER_THREAD)))


def batch_count(items: int, threads: int, item_seconds: float, unmeasured: int) -> int:
    """Return the number of Dask tasks of a run. The sizes of the first ``unmeasured`` are determined before it is known
    how long items take.
    """
    count, remaining = 0, items
    while remaining:
        size = batch_size(remaining, threads, None if count < unmeasured else item_seconds)
        # The size does not change before fewer items remain than threads take together.
        equal = (remaining - size * threads * MIN_TASKS_PER_THREAD) // size if count >= unmeasured else 0
        equal = max(1, equal)
        count += equal
        remaining -= min(remaining, equal * size)
    return count
