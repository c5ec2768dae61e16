"""The division of the items of a run into Dask tasks. Each Dask task costs the scheduler several milliseconds.
Therefore it has as many items as a thread processes in some seconds.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

from zarrfs.tools.copying.cluster.results import BatchResult

__all__ = [
    "BATCH_SECONDS",
    "MAX_BATCH_SIZE",
    "MAX_UNMEASURED_BATCH_SIZE",
    "SCHEDULING_SECONDS",
    "Batches",
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
    """The items of a run that have not been submitted. They are taken from the iterable when they are needed, so that
    only those of the tasks in flight are in memory. ``count`` is their number, as far as it is known.
    """

    def __init__(self, items: Iterable[Any], count: int) -> None:
        self._items = iter(items)
        self._remaining = count
        self._done = 0
        self._seconds = 0.0

    def measure(self, result: BatchResult) -> None:
        """Note how long items take."""
        self._done += result.done
        self._seconds += result.seconds

    def take(self, count: int, threads: int) -> Iterator[list[Any]]:
        """Yield up to ``count`` batches for a cluster with so many threads."""
        for _ in range(count):
            item_seconds = self._seconds / self._done if self._done else None
            batch = list(islice(self._items, batch_size(self._remaining, threads, item_seconds)))
            if not batch:
                return
            self._remaining = max(0, self._remaining - len(batch))
            yield batch


def batch_size(remaining: int, threads: int, item_seconds: float | None) -> int:
    """Return the number of items of the next Dask task. ``item_seconds`` is the time per item, None if unknown."""
    limit = MAX_UNMEASURED_BATCH_SIZE
    if item_seconds is not None:
        seconds = max(BATCH_SECONDS, threads * SCHEDULING_SECONDS)
        limit = int(min(MAX_BATCH_SIZE, seconds / max(item_seconds, seconds / MAX_BATCH_SIZE)))
    return max(1, min(limit, remaining // (threads * MIN_TASKS_PER_THREAD)))
