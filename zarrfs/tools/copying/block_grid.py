"""Partition of an array into blocks of one shape. Blocks are computed on demand: an empty array may have 10^18."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, product
from math import prod
from typing import overload

from zarrfs.engine.array.array import Array
from zarrfs.errors import UnsupportedError
from zarrfs.tools.copying.cells import Cells

__all__ = ["Block", "BlockGrid", "ChunkCoords", "Coords", "blocks_to_copy", "stored_regions"]

Block = tuple[slice, ...]
"""A region of an array: one slice per dimension, with start and stop."""

Coords = tuple[int, ...]
"""The coordinates of a chunk or block in its grid."""

MAX_BLOCKS = 1 << 32
"""The maximum number of chunks or blocks of one copy. At ten microseconds each, this many take half a day."""


class ChunkCoords(Sequence[Coords]):
    """The coordinates of all cells of a grid, in C order.

    ``len`` and indexing raise UnsupportedError if there are more than ``MAX_BLOCKS`` cells.
    """

    def __init__(self, counts: Sequence[int]) -> None:
        self.counts = tuple(counts)

    def __len__(self) -> int:
        count = prod(self.counts)
        if count > MAX_BLOCKS:
            raise UnsupportedError(
                f"the copy has {count:,} chunks or blocks, the limit is {MAX_BLOCKS:,}; choose larger chunks"
            )
        return count

    @overload
    def __getitem__(self, index: int) -> Coords: ...

    @overload
    def __getitem__(self, index: slice) -> list[Coords]: ...

    def __getitem__(self, index: int | slice) -> Coords | list[Coords]:
        if isinstance(index, slice):
            return [self[position] for position in range(*index.indices(len(self)))]
        if not 0 <= index < len(self):
            raise IndexError(index)
        coords = []
        for count in reversed(self.counts):
            index, coord = divmod(index, count)
            coords.append(coord)
        return tuple(coords[::-1])


class BlockGrid(Sequence[Block]):
    """The blocks of shape ``step`` that tile an array of ``shape``, in C order. The last block of a dimension is
    clipped to the array. The number of blocks is limited as in ``ChunkCoords``.
    """

    def __init__(self, shape: Sequence[int], step: Sequence[int]) -> None:
        self.shape = tuple(shape)
        self.step = tuple(step)
        self._coords = ChunkCoords(
            [-(-length // side) for length, side in zip(self.shape, self.step, strict=True)]
        )

    def __len__(self) -> int:
        return len(self._coords)

    @property
    def total(self) -> int:
        """The number of blocks, not limited by ``MAX_BLOCKS``."""
        return prod(self._coords.counts)

    @overload
    def __getitem__(self, index: int) -> Block: ...

    @overload
    def __getitem__(self, index: slice) -> list[Block]: ...

    def __getitem__(self, index: int | slice) -> Block | list[Block]:
        if isinstance(index, slice):
            return [self.block(coords) for coords in self._coords[index]]
        return self.block(self._coords[index])

    def block(self, coords: Iterable[int]) -> Block:
        """Return the block at the coordinates in the grid."""
        return tuple(
            slice(coord * side, min((coord + 1) * side, length))
            for coord, side, length in zip(coords, self.step, self.shape, strict=True)
        )

    def overlapping(self, regions: Iterable[Block]) -> Sequence[Block]:
        """Return the blocks that overlap any of the regions, each once, in C order. They are computed on demand."""
        spans = (
            product(
                *(
                    range(part.start // side, -(-min(part.stop, length) // side))
                    for part, side, length in zip(region, self.step, self.shape, strict=True)
                )
            )
            for region in regions
        )
        return _SelectedBlocks(self, Cells(self._coords.counts, chain.from_iterable(spans)))


class _SelectedBlocks(Sequence[Block]):
    """Some blocks of a grid, by their cells."""

    def __init__(self, grid: BlockGrid, cells: Cells) -> None:
        self._grid = grid
        self._cells = cells

    def __len__(self) -> int:
        return len(self._cells)

    @overload
    def __getitem__(self, index: int) -> Block: ...

    @overload
    def __getitem__(self, index: slice) -> list[Block]: ...

    def __getitem__(self, index: int | slice) -> Block | list[Block]:
        if isinstance(index, slice):
            return [self._grid.block(coords) for coords in self._cells[index]]
        return self._grid.block(self._cells[index])

    def __iter__(self) -> Iterator[Block]:
        return map(self._grid.block, self._cells)


def blocks_to_copy(
    shape: Sequence[int], step: Sequence[int], itemsize: int, nbytes: int, regions: Iterable[Block] | None
) -> Sequence[Block]:
    """Return the blocks of an array to copy: those that overlap any of the ``regions``, or all if that is None.

    If at least half of the array is stored, a block is a multiple of ``step`` of at most ``nbytes`` bytes. Otherwise
    it is ``step``, because larger blocks would consist mostly of missing chunks.
    """
    step_grid = BlockGrid(shape, [max(1, side) for side in step])
    step_blocks = None if regions is None else step_grid.overlapping(regions)
    if step_blocks is not None and 2 * len(step_blocks) < step_grid.total:
        return step_blocks
    block_grid = BlockGrid(shape, _enlarged_step(shape, step_grid.step, itemsize, nbytes))
    return block_grid if step_blocks is None else block_grid.overlapping(step_blocks)


def _enlarged_step(shape: Sequence[int], step: Sequence[int], itemsize: int, nbytes: int) -> list[int]:
    """Return ``step`` doubled along each dimension, the last one first, while the block has at most ``nbytes``."""
    sides = list(step)
    for axis in reversed(range(len(shape))):
        while sides[axis] < shape[axis] and prod(sides) * itemsize * 2 <= nbytes:
            sides[axis] *= 2
    return sides


def stored_regions(array: Array) -> Iterator[Block]:
    """Yield the array regions of the stored chunks (shards), from a listing of the store."""
    axes = array.storage.axes
    for coords in array.storage.stored_chunks():
        starts = [axis.begin(chunk) for axis, chunk in zip(axes, coords, strict=True)]
        yield tuple(
            slice(start, min(start + axis.size(chunk), axis.length))
            for start, axis, chunk in zip(starts, axes, coords, strict=True)
        )
