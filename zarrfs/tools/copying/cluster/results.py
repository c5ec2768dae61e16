"""The results that the workers of a Dask cluster return, and their statistics."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from math import inf
from typing import Any, NamedTuple

__all__ = ["BatchResult", "Statistics", "WorkerStatistics"]


@dataclass
class WorkerStatistics:
    """What a worker has done.

    Attributes:
        tasks: the number of tasks.
        nbytes: their decoded bytes, as they count in the progress.
        dask_tasks: the number of Dask tasks in which they were processed.
        busy_seconds: the time that its threads have spent on them, in total.
        seconds: the time from the start of its first task until the end of its last one.
    """

    tasks: int = 0
    nbytes: float = 0.0
    dask_tasks: int = 0
    busy_seconds: float = 0.0
    seconds: float = 0.0
    _start: float = inf

    def add(self, tasks: int, nbytes: float, seconds: float) -> None:
        """Add the tasks of a Dask task that has ended now, and has taken ``seconds``."""
        now = time.monotonic()
        self.tasks += tasks
        self.nbytes += nbytes
        self.dask_tasks += 1
        self.busy_seconds += seconds
        self._start = min(self._start, now - seconds)
        self.seconds = now - self._start

    @property
    def rate(self) -> float:
        """The decoded bytes per second."""
        return self.nbytes / self.seconds if self.seconds else 0.0


Statistics = Mapping[str, WorkerStatistics]
"""The statistics of the workers, by their addresses."""


class BatchResult(NamedTuple):
    """The result of a Dask task.

    Attributes:
        done: the number of items that were processed: not all of them if the run was stopped.
        values: what the function returned for each processed item, if the caller asks for them.
        worker: the address of the worker.
        seconds: the time that the batch took.
    """

    done: int
    values: list[Any]
    worker: str
    seconds: float
