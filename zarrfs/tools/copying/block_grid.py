"""An array cut into boxes of one shape, without a list of all of them: an empty array may have 10^18."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import product
from math import prod
from typing import overload

from zarrfs.engine.nodes.array import Array
from zarrfs.errors import UnsupportedError

__all__ = ["Block", "BlockGrid", "ChunkCoords", "Coords", "stored_boxes", "stored_part"]

Block = tuple[slice, ...]
"""A box of an array: one slice per dimension, with start and stop."""

Coords = tuple[int, ...]
"""The place of a chunk, or a block, in its grid."""

MAX_BLOCKS = 1 << 32
"""More pieces than this are not copied one by one: at ten microseconds each that takes half a day."""


class ChunkCoords(Sequence[Coords]):
    """The coordinates of all cells of a grid, in C order.

    Raises UnsupportedError when there are more than ``MAX_BLOCKS``, as soon as their number is needed.
    """

    def __init__(self, counts: Sequence[int]) -> None:
        self.counts = tuple(counts)

    def __len__(self) -> int:
        count = prod(self.counts)
        if count > MAX_BLOCKS:
            raise UnsupportedError(
                f"there are {count:,} chunks or blocks to copy one by one, at most {MAX_BLOCKS:,} are; "
                "choose larger chunks"
            )
        return count

    @overload
    def __getitem__(self, index: int) -> Coords: ...

    @overload
    def __getitem__(self, index: slice) -> list[Coords]: ...

    def __getitem__(self, index: int | slice) -> Coords | list[Coords]:
        if isinstance(index, slice):
            return [self[number] for number in range(*index.indices(len(self)))]
        if not 0 <= index < len(self):
            raise IndexError(index)
        coords = []
        for count in reversed(self.counts):
            index, coord = divmod(index, count)
            coords.append(coord)
        return tuple(coords[::-1])


class BlockGrid(Sequence[Block]):
    """The boxes of shape ``step`` that tile an array of ``shape``, in C order; the last along a dimension is cut off.
    As many as ``ChunkCoords`` allows.
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
        """How many blocks there are, be they too many."""
        return prod(self._coords.counts)

    @overload
    def __getitem__(self, index: int) -> Block: ...

    @overload
    def __getitem__(self, index: slice) -> list[Block]: ...

    def __getitem__(self, index: int | slice) -> Block | list[Block]:
        if isinstance(index, slice):
            return [self._block(coords) for coords in self._coords[index]]
        return self._block(self._coords[index])

    def _block(self, coords: Iterable[int]) -> Block:
        return tuple(
            slice(coord * side, min((coord + 1) * side, length))
            for coord, side, length in zip(coords, self.step, self.shape, strict=True)
        )

    def touching(self, boxes: Iterable[Block]) -> list[Block]:
        """Return the blocks that have an element of any of the boxes, each once, in C order."""
        found: set[tuple[int, ...]] = set()
        for box in boxes:
            spans = [
                range(part.start // side, -(-min(part.stop, length) // side))
                for part, side, length in zip(box, self.step, self.shape, strict=True)
            ]
            found.update(product(*spans))
        return [self._block(coords) for coords in sorted(found)]


def stored_part(
    shape: Sequence[int], step: Sequence[int], itemsize: int, nbytes: int, boxes: Iterable[Block] | None
) -> Sequence[Block]:
    """Return the blocks to copy of an array: those with an element of any of the ``boxes``, all for None.

    A block is ``step``, or as many of it as fit into ``nbytes`` where most of the array is stored: where little is,
    large blocks would be made of chunks that are absent.
    """
    small = BlockGrid(shape, [max(1, side) for side in step])
    found = None if boxes is None else small.touching(boxes)
    if found is not None and 2 * len(found) < small.total:
        return found
    large = BlockGrid(shape, _enlarged(shape, small.step, itemsize, nbytes))
    return large if found is None else large.touching(found)


def _enlarged(shape: Sequence[int], step: Sequence[int], itemsize: int, nbytes: int) -> list[int]:
    """Return the shape of a block of whole steps, doubled from the last dimension on while it fits into ``nbytes``."""
    sides = list(step)
    for axis in reversed(range(len(shape))):
        while sides[axis] < shape[axis] and prod(sides) * itemsize * 2 <= nbytes:
            sides[axis] *= 2
    return sides


def stored_boxes(array: Array) -> Iterator[Block]:
    """Yield the boxes of the chunks (shards) of an array that are stored, from a listing."""
    axes = array.storage.axes
    for coords in array.storage.stored_chunks():
        starts = [axis.begin(chunk) for axis, chunk in zip(axes, coords, strict=True)]
        yield tuple(
            slice(start, min(start + axis.size(chunk), axis.length))
            for start, axis, chunk in zip(starts, axes, coords, strict=True)
        )
