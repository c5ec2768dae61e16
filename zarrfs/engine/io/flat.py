"""The flat byte stream of an array, divided into blocks that contain whole chunks.

A sequential reader of the stream passes the same chunks once for each row that they contain. Read
block by block, each chunk is decoded once.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from itertools import product
from math import prod

from zarrfs.engine.indexing.projections import FlatOrder, flat_axes, flat_boxes
from zarrfs.engine.io.storage import ArrayStorage

__all__ = ["BlockGrid", "block_grid", "flat_version"]

TARGET_BLOCK_NBYTES = 8 << 20
"""Blocks are at least this large where the array permits: per-block overhead is then negligible."""

MAX_VERSIONED_CHUNKS = 4096
"""The version of a range that intersects more chunks is not determined: that would take too many stat calls."""


@dataclass(frozen=True)
class BlockGrid:
    """A division of a flat byte stream into blocks.

    The stream consists of periods of equal size, and each period of blocks of equal size; the last block of each
    period may be shorter.

    Attributes:
        nbytes: the size of the stream.
        period: the size of a period in bytes.
        block: the size of a block in bytes.
        holds_whole_chunks: whether no chunk extends over two blocks, so that reading block by block decodes it once.
    """

    nbytes: int
    period: int
    block: int
    holds_whole_chunks: bool

    def find(self, offset: int) -> int:
        """Return the number of the block that contains the byte at ``offset``."""
        period, rest = divmod(offset, self.period)
        return period * self._blocks_per_period + rest // self.block

    def bounds(self, number: int) -> tuple[int, int]:
        """Return the first byte of a block and the end of it."""
        period, index = divmod(number, self._blocks_per_period)
        start = period * self.period + index * self.block
        return start, min(start + self.block, (period + 1) * self.period, self.nbytes)

    @property
    def count(self) -> int:
        """The number of blocks."""
        return self.find(self.nbytes - 1) + 1 if self.nbytes else 0

    @property
    def _blocks_per_period(self) -> int:
        return -(-self.period // self.block)


def block_grid(storage: ArrayStorage, order: FlatOrder, max_nbytes: int) -> BlockGrid:
    """Return the division of an array's flat stream into blocks of at most ``max_nbytes`` bytes.

    If the chunks of one slab (all chunks with the same index in the slowest dimension) exceed ``max_nbytes``, the
    blocks do not contain whole chunks.
    """
    axes = flat_axes(order, len(storage.spec.shape))
    shape = [storage.spec.shape[axis] for axis in axes]
    itemsize = storage.dtype.itemsize
    nbytes = prod(shape) * itemsize
    target = min(TARGET_BLOCK_NBYTES, max_nbytes)
    target = max(itemsize, target - target % itemsize) if itemsize else target
    sharding = storage.sharding()
    chunks = storage.chunk_shape if sharding is None else sharding[1]
    if nbytes == 0 or not shape or chunks is None:
        return BlockGrid(nbytes, max(nbytes, 1), target, nbytes <= target)
    chunks = tuple(chunks[axis] for axis in axes)
    axis = 0
    while axis < len(shape) - 1 and chunks[axis] == 1 and prod(shape[axis + 1 :]) * itemsize > target:
        axis += 1
    period = prod(shape[axis:]) * itemsize
    slab = min(chunks[axis], shape[axis]) * prod(shape[axis + 1 :]) * itemsize
    if slab > max_nbytes:
        return BlockGrid(nbytes, nbytes, target, False)
    return BlockGrid(nbytes, period, min(period, slab * max(1, target // slab)), True)


def flat_version(storage: ArrayStorage, offset: int, nbytes: int, order: FlatOrder) -> Hashable | None:
    """Return a value that changes when the chunks of a range of the flat stream change, or None where that is unknown.

    Costs a stamp of each chunk (a stat call in a directory). The value is taken before the range is read: an equal
    value afterwards proves the bytes current.
    """
    itemsize = storage.dtype.itemsize
    if not itemsize or nbytes <= 0:
        return None
    stamps: list[Hashable] = []
    for coords in _chunks_of_range(storage, offset // itemsize, -(-(offset + nbytes) // itemsize), order):
        if len(stamps) >= MAX_VERSIONED_CHUNKS:
            return None
        with storage.store.open_value(storage.key(coords)) as value:
            stamp = storage.access.stamp(value)
        if stamp is None and storage.store.exists(storage.key(coords)):
            return None
        stamps.append(stamp)
    return tuple(stamps)


def _chunks_of_range(
    storage: ArrayStorage, start: int, stop: int, order: FlatOrder
) -> Iterator[tuple[int, ...]]:
    """Yield the coordinates of the stored chunks (shards) that a range of elements intersects, each once."""
    axes = flat_axes(order, len(storage.spec.shape))
    positions = [axes.index(axis) for axis in range(len(axes))]
    seen: set[tuple[int, ...]] = set()
    for _, box in flat_boxes(start, stop, [storage.spec.shape[axis] for axis in axes]):
        ranges = [
            range(axis.find(box[i].start), axis.find(box[i].stop - 1) + 1)
            for axis, i in zip(storage.axes, positions, strict=True)
        ]
        for coords in product(*ranges):
            if coords not in seen:
                seen.add(coords)
                yield coords
