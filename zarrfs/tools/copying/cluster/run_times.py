"""The expected time of a run on a Dask cluster, from short runs of some of its items.

A run takes the time that the threads of the workers spend on items, and in addition some time for each Dask task: the
client and the scheduler process one after the other, and their result is a message. With items of a few milliseconds
this is most of the time.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from zarrfs.tools.copying.cluster.batches import batch_count
from zarrfs.tools.copying.cluster.executor import IN_FLIGHT_PER_THREAD, ClusterExecutor

__all__ = ["RunTimes", "ShortRun", "run_times", "timed_run"]


@dataclass(frozen=True)
class ShortRun:
    """The measured times of a run of some items.

    Attributes:
        items: the number of items.
        dask_tasks: the number of Dask tasks in which they were processed.
        busy_seconds: the time that all threads have spent on them, in total.
        busiest_seconds: the time of each thread of the worker that has spent most.
        seconds: the time of the whole run.
    """

    items: int
    dask_tasks: int
    busy_seconds: float
    busiest_seconds: float
    seconds: float


@dataclass(frozen=True)
class RunTimes:
    """The times from which that of a run follows.

    Attributes:
        item_seconds: the time that a thread spends on one item while all threads are busy.
        dask_task_seconds: the time that a Dask task takes in addition to that of its items.
        start_seconds: the time until the workers have opened the stores.
    """

    item_seconds: float
    dask_task_seconds: float = 0.0
    start_seconds: float = 0.0

    def expected_seconds(self, items: int, threads: int, relative: float = 1.0) -> float:
        """Return the time of a run on so many threads. Items take ``relative`` times as long as measured."""
        if not items:
            return 0.0
        seconds = self.item_seconds * relative
        expected = self.start_seconds + seconds * items / min(threads, items)
        if self.dask_task_seconds:
            dask_tasks = batch_count(items, threads, seconds, IN_FLIGHT_PER_THREAD * threads)
            expected += self.dask_task_seconds * dask_tasks
        return expected


def timed_run(cluster: ClusterExecutor, run: Callable[[], object], items: int) -> ShortRun:
    """Call ``run``, which processes so many items on the cluster, and return its times."""
    before = {worker: (found.dask_tasks, found.busy_seconds) for worker, found in cluster.statistics.items()}
    begin = time.perf_counter()
    run()
    seconds = time.perf_counter() - begin
    threads = cluster.worker_threads()
    dask_tasks, busy, busiest = 0, 0.0, 0.0
    for worker, after in cluster.statistics.items():
        tasks_before, busy_before = before.get(worker, (0, 0.0))
        dask_tasks += after.dask_tasks - tasks_before
        worker_busy = after.busy_seconds - busy_before
        busy += worker_busy
        busiest = max(busiest, worker_busy / threads.get(worker, 1))
    return ShortRun(items, dask_tasks, busy, busiest, seconds)


def run_times(runs: Sequence[ShortRun], threads: int) -> RunTimes:
    """Return the times per item, per Dask task, and for the start, from runs on so many threads.

    The first run opens stores and connections. What it takes longer than the others is the time for the start. If it is
    the only one, this is a part of the time per item.

    A short run ends with the worker that has most to do. The others are idle meanwhile, which is not the time of Dask.
    """
    if not runs:
        return RunTimes(0.0)
    timed = runs[1:] or runs
    items, dask_tasks = sum(run.items for run in timed), sum(run.dask_tasks for run in timed)
    added = sum(max(0.0, run.seconds - run.busiest_seconds) for run in timed)
    item_seconds = sum(run.busy_seconds for run in timed) / items
    dask_task_seconds = added / max(1, dask_tasks)
    first, start = runs[0], 0.0
    if len(runs) > 1:
        without_start = item_seconds * first.items / min(threads, first.items)
        start = max(0.0, first.seconds - without_start - dask_task_seconds * first.dask_tasks)
    return RunTimes(item_seconds, dask_task_seconds, start)
