"""The results that the workers of a Dask cluster return, and their statistics."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from zarrfs.errors import ZarrError

__all__ = ["BatchResult", "WorkerStatistics"]


@dataclass
class WorkerStatistics:
    """The number of tasks of a worker, and the seconds that its threads have spent on them, in total."""

    tasks: int = 0
    seconds: float = 0.0


class BatchResult(NamedTuple):
    """The result of a Dask task.

    Attributes:
        done: the number of items that were processed.
        error: the error that stopped the batch, or None.
        values: what the function returned for each processed item, if the caller asks for them.
        worker: the address of the worker.
        seconds: the time that the batch took.
    """

    done: int
    error: ZarrError | None
    values: list[Any]
    worker: str
    seconds: float
