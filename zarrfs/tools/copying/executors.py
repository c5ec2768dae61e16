"""Who does the pieces of a copy: threads of this process, or what else keeps the contract (``dask_cluster.py``)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

from zarrfs.engine.nodes.array import Array
from zarrfs.engine.nodes.group import Group
from zarrfs.engine.parallel import for_each
from zarrfs.engine.stores.base import Store

__all__ = ["Executor", "Threads"]

T = TypeVar("T")

BATCH = 100_000
"""How many items threads are given at a time: a sequence may be much longer than a list can be."""


class Executor(Protocol):
    """Does many pieces of work, several at once."""

    def check(self, source: Array | Group, target: Store) -> None:
        """Raise a ZarrError if it cannot read the node and write to the store. Leaves nothing in it."""

    def run(
        self,
        work: Callable[[T], object],
        items: Sequence[T],
        workers: int,
        done: Callable[[int], object],
    ) -> None:
        """Call ``work`` on every item, on ``workers`` threads at once where threads of this process do it.

        ``done(count)`` is told of every so many more. The first exception, or an interruption, stops the handing out
        of items and is raised here once nobody works any more.
        """


class Threads:
    """Threads of this process."""

    def check(self, source: Array | Group, target: Store) -> None:
        """Whatever this process has opened its threads can use."""

    def run(
        self,
        work: Callable[[T], object],
        items: Sequence[T],
        workers: int,
        done: Callable[[int], object],
    ) -> None:
        def do(item: T) -> None:
            work(item)
            done(1)

        for start in range(0, len(items), BATCH):  # which has a list of its items
            for_each(do, items[start : start + BATCH], workers)
