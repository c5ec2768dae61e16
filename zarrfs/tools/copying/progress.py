"""Progress of the blocks or chunks of one array."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

from zarrfs.engine.array.array import Array
from zarrfs.tools.copying.block_grid import Block
from zarrfs.tools.copying.cluster.results import Statistics

__all__ = ["Progress", "ProgressCounter", "WorkerProgress", "nbytes_of_blocks", "nbytes_of_chunks"]

Progress = Callable[[str, int, int], object]
"""Called with (name of the array or the step, decoded bytes done, decoded bytes in total)."""


WorkerProgress = Callable[[Statistics], object]
"""Called with the statistics of the workers of a Dask cluster whenever they have changed."""


class ProgressCounter:
    """Counts completed tasks and reports progress in bytes.

    ``nbytes`` is the decoded size of all ``tasks``, which count as equally large.
    """

    def __init__(self, name: str, tasks: int, nbytes: int, progress: Progress | None) -> None:
        self._name, self._tasks, self._nbytes, self._progress = name, tasks, nbytes, progress
        self._done = 0
        self._report()

    @property
    def item_nbytes(self) -> float:
        """The bytes of one task."""
        return self._nbytes / self._tasks if self._tasks else 0.0

    def add(self, count: int) -> None:
        """Report ``count`` more tasks as done. Not locked: a lost update only makes a progress bar slightly wrong."""
        self._done += count
        self._report()

    def _report(self) -> None:
        if self._progress is not None:
            done = self._nbytes * self._done // self._tasks if self._tasks else self._nbytes
            self._progress(self._name, done, self._nbytes)


def nbytes_of_blocks(array: Array, blocks: Sequence[Block]) -> int:
    """Return the decoded bytes of blocks of an array, all of which count as being as large as the first one."""
    if not blocks:
        return 0
    elements: int = prod(part.stop - part.start for part in blocks[0])
    return min(array.nbytes, len(blocks) * elements * array.itemsize)


def nbytes_of_chunks(array: Array, count: int) -> int:
    """Return the decoded bytes of ``count`` chunks or shards of an array, as their share of all of them."""
    chunks = prod(array.storage.grid_shape)
    return array.nbytes * count // max(1, chunks)
