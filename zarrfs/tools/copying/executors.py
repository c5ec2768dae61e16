"""Executors of the tasks of a copy: the protocol, and threads of this process. ``cluster`` has another."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

from zarrfs.engine.array.array import Array
from zarrfs.engine.group.group import Group
from zarrfs.engine.parallel import for_each
from zarrfs.engine.stores.base import Store

__all__ = ["Executor", "ThreadExecutor"]

T = TypeVar("T")

BATCH_SIZE = 100_000
"""The number of items that are passed to ``for_each`` at once. A sequence may have more items than fit into a list."""


class Executor(Protocol):
    """Runs many tasks concurrently."""

    def check(self, source: Array | Group, target: Store) -> None:
        """Raise a ZarrError if the executor cannot read the node or write to the store. Leaves no keys in it."""

    def threads(self, workers: int) -> int:
        """Return the number of tasks that run at the same time if ``workers`` threads of this process are permitted."""

    def run(
        self,
        work: Callable[[T], object],
        items: Sequence[T],
        workers: int,
        on_done: Callable[[int], object],
        item_nbytes: float = 0.0,
    ) -> None:
        """Call ``work`` on every item. ``workers`` is the number of threads if threads of this process are used.

        ``on_done(count)`` is called whenever ``count`` more items are done. ``item_nbytes`` are the decoded bytes of an
        item for the statistics of workers. After the first exception or interruption
        no further items are started; it is raised when all running ones have ended.
        """


class ThreadExecutor:
    """Runs tasks on threads of this process."""

    def check(self, source: Array | Group, target: Store) -> None:
        """Do nothing: threads share the stores that this process has opened."""

    def threads(self, workers: int) -> int:
        """Return ``workers``."""
        return workers

    def run(
        self,
        work: Callable[[T], object],
        items: Sequence[T],
        workers: int,
        on_done: Callable[[int], object],
        item_nbytes: float = 0.0,
    ) -> None:
        def work_on(item: T) -> None:
            work(item)
            on_done(1)

        for start in range(0, len(items), BATCH_SIZE):  # for_each makes a list of its items
            for_each(work_on, items[start : start + BATCH_SIZE], workers)
