"""Some cells of a grid of chunks or blocks, in C order, in little memory: their number can be in the billions."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from math import prod
from typing import Any, overload

import numpy as np
import numpy.typing as npt

from zarrfs.errors import StoreError

__all__ = ["Cells", "Indices"]

Indices = npt.NDArray[np.int64]
"""The positions of cells in the C order of their grid."""

MAX_GRID_CELLS = 1 << 62
"""The cells of larger grids have no position that fits into 64 bits. They are held as tuples."""

MAX_INDICES_IN_MEMORY = 1 << 20
"""More positions, of eight bytes each, are held in a temporary file, which has no name."""

BLOCK = 1 << 16
"""The number of cells that are converted at once."""


class Cells(Sequence[tuple[int, ...]]):
    """Cells of a grid with ``counts`` cells in each dimension, by their coordinates: sorted, and each once.

    The memory does not depend on the number of cells, unless the grid has more than ``MAX_GRID_CELLS``. Raises
    StoreError if the temporary file cannot be written.

    Attributes:
        indices: the positions, sorted; None for a grid of more than ``MAX_GRID_CELLS`` cells.
    """

    def __init__(self, counts: Sequence[int], cells: Iterable[tuple[int, ...]]) -> None:
        self.counts = tuple(counts)
        self.indices: Indices | None = None
        self._tuples: list[tuple[int, ...]] = []
        if prod(self.counts) > MAX_GRID_CELLS:
            self._tuples = sorted(set(cells))
        else:
            self.indices = _sorted_indices(self._positions(cells))

    def _positions(self, cells: Iterable[tuple[int, ...]]) -> Iterator[Indices]:
        remaining = iter(cells)
        while block := list(islice(remaining, BLOCK)):
            if not self.counts:
                yield np.zeros(1, np.int64)
            else:
                yield np.asarray(np.ravel_multi_index(tuple(np.array(block, np.int64).T), self.counts))

    def __len__(self) -> int:
        return len(self._tuples) if self.indices is None else len(self.indices)

    @overload
    def __getitem__(self, index: int) -> tuple[int, ...]: ...

    @overload
    def __getitem__(self, index: slice) -> list[tuple[int, ...]]: ...

    def __getitem__(self, index: int | slice) -> tuple[int, ...] | list[tuple[int, ...]]:
        if self.indices is None:
            return self._tuples[index]
        if isinstance(index, slice):
            return self.coords_of(self.indices[index])
        return self.coords_of(self.indices[index : index + 1 or None])[0]

    def __iter__(self) -> Iterator[tuple[int, ...]]:
        for start in range(0, len(self), BLOCK):
            yield from self[start : start + BLOCK]

    def coords_of(self, indices: Indices) -> list[tuple[int, ...]]:
        """Return the coordinates of cells by their positions."""
        if not self.counts or not len(indices):
            return [()] * len(indices)
        columns = np.unravel_index(indices, self.counts)
        return list(zip(*(column.tolist() for column in columns), strict=True))


def _sorted_indices(blocks: Iterable[Indices]) -> Indices:
    """Return all positions of the blocks, sorted and each once."""
    in_memory: list[Indices] = []
    count = 0
    file: Any = None
    try:
        for block in blocks:
            in_memory.append(block)
            count += len(block)
            if count > MAX_INDICES_IN_MEMORY:
                if file is None:
                    file = tempfile.TemporaryFile()  # noqa: SIM115  # it is mapped, and closed below
                np.concatenate(in_memory).tofile(file)
                in_memory, count = [], 0
        if file is None:
            return np.unique(np.concatenate([np.empty(0, np.int64), *in_memory]))
        np.concatenate([np.empty(0, np.int64), *in_memory]).tofile(file)
        file.flush()
        mapped: Indices = np.memmap(file, np.int64, "r+")
    except OSError as error:
        raise StoreError(
            f"the list of chunks cannot be written to a temporary file in {tempfile.gettempdir()}: "
            f"{error.strerror or error}; set TMPDIR to a directory with more space",
            error.errno,
        ) from error
    finally:
        if file is not None:
            file.close()
    mapped.sort()
    return mapped[: _without_repetitions(mapped)]


def _without_repetitions(indices: Indices) -> int:
    """Move the different values of a sorted array to its beginning. Return their number."""
    count = 0
    for start in range(0, len(indices), BLOCK):
        block = np.array(indices[start : start + BLOCK])
        is_new = np.ones(len(block), bool)
        is_new[1:] = block[1:] != block[:-1]
        if count:
            is_new[0] = block[0] != indices[count - 1]
        block = block[is_new]
        indices[count : count + len(block)] = block
        count += len(block)
    return count
