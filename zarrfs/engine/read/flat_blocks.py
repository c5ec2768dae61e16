"""The flat byte stream of an array, divided into blocks that contain whole chunks, and windows for strided reads.

A sequential reader of the stream needs the same chunks once for each row that they contain; if it reads block by block,
each chunk is decoded once. A reader of one plane across the slowest dimension needs the same chunks once for each index
in that dimension; if it reads window by window, each chunk is decoded once for the plane.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from math import prod

from zarrfs.engine.array_context import ArrayContext
from zarrfs.engine.indexing.flat_ranges import FlatOrder, flat_axes, flat_boxes

__all__ = [
    "Box",
    "FlatBlockGrid",
    "Window",
    "box_version",
    "enclosing_box",
    "flat_block_grid",
    "flat_version",
    "strided_window",
]

Box = tuple[tuple[int, int], ...]
"""The first index and the end in each dimension, from the slowest to the fastest dimension of a stream."""

TARGET_BLOCK_NBYTES = 8 << 20
"""Blocks are at least this large where the array permits, so that the overhead per block is negligible."""

MAX_PART_NBYTES = 32 << 20
"""Blocks that contain a part of a layer of chunks are at most this large: two of them are in memory."""

MAX_VERSIONED_CHUNKS = 4096
"""The version of a range that intersects more chunks is not determined: that would take too many stat calls."""

MAX_BLOCK_CHUNKS = 16_384
"""A block consists of at most this many chunks, if it consists of whole chunks. It is read in a small part of the time
for which data of an unknown version are used, also if each chunk is a file of a few bytes.
"""

PAGE_NBYTES = 4096
"""Reads of mapped files begin and end at page boundaries. Their distance therefore varies by at most one page."""

MAX_SURPLUS_FACTOR = 4
"""A window consists of complete rows if they have at most this many times the bytes of the range."""


@dataclass(frozen=True)
class FlatBlockGrid:
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
        """Return the offsets of the first byte of a block and of the end of the block."""
        period, index = divmod(number, self._blocks_per_period)
        start = period * self.period + index * self.block
        return start, min(start + self.block, (period + 1) * self.period, self.nbytes)

    @cached_property
    def count(self) -> int:
        """The number of blocks."""
        return self.find(self.nbytes - 1) + 1 if self.nbytes else 0

    @cached_property
    def _blocks_per_period(self) -> int:
        return -(-self.period // self.block)


def flat_block_grid(storage: ArrayContext, order: FlatOrder, max_nbytes: int) -> FlatBlockGrid:
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
        return FlatBlockGrid(nbytes, max(nbytes, 1), target, nbytes <= target)
    chunks = tuple(chunks[axis] for axis in axes)
    counts = [-(-length // chunk) for length, chunk in zip(shape, chunks, strict=True)]
    axis = 0
    while (
        axis < len(shape) - 1
        and chunks[axis] == 1
        and (prod(shape[axis + 1 :]) * itemsize > target or prod(counts[axis + 1 :]) > MAX_BLOCK_CHUNKS)
    ):
        axis += 1
    period = prod(shape[axis:]) * itemsize
    slab = min(chunks[axis], shape[axis]) * prod(shape[axis + 1 :]) * itemsize
    if slab > max_nbytes:
        # Each block of a slab reads from all its chunks. Therefore blocks are large, and each belongs to one slab.
        plane = prod(shape[axis + 1 :]) * itemsize
        planes = min(max_nbytes, MAX_PART_NBYTES) // plane
        if planes == 0:
            return FlatBlockGrid(nbytes, nbytes, target, False)
        length = slab // plane
        part = -(-length // -(-length // planes)) * plane
        return FlatBlockGrid(nbytes, period if axis else slab, part, False)
    slabs = min(target // slab, MAX_BLOCK_CHUNKS // prod(counts[axis + 1 :]))
    return FlatBlockGrid(nbytes, period, min(period, slab * max(1, slabs)), True)


@dataclass(frozen=True)
class Window:
    """A range of each plane of one layer of chunks. A plane is one index of a dimension.

    Attributes:
        box: the elements, in the order of the stream.
        axis: the dimension whose indices are the planes.
        start: the offset of the first element in the stream, in bytes.
        pitch: the distance of two planes in the stream, in bytes.
        plane_nbytes: the size of the range of one plane, in bytes.
    """

    box: Box
    axis: int
    start: int
    pitch: int
    plane_nbytes: int

    @property
    def plane_count(self) -> int:
        return self.box[self.axis][1] - self.box[self.axis][0]

    @property
    def nbytes(self) -> int:
        return self.plane_count * self.plane_nbytes

    def locate(self, offset: int, size: int) -> int | None:
        """Return the position of a range of the stream in the window, or None if it is not in one plane of it."""
        plane, rest = divmod(offset - self.start, self.pitch)
        if 0 <= plane < self.plane_count and rest + size <= self.plane_nbytes:
            return plane * self.plane_nbytes + rest
        return None

    def adjacent_offset(self, offset: int, *, forwards: bool) -> int:
        """Return the offset in the next layer (``forwards``) or the previous one that corresponds to an offset in this
        layer.
        """
        plane = (offset - self.start) // self.pitch
        return offset + self.pitch * (self.plane_count - plane if forwards else -plane - 1)


def strided_window(
    storage: ArrayContext, order: FlatOrder, offset: int, nbytes: int, stride: int, max_nbytes: int
) -> Window | None:
    """Return a window that contains a range of a strided access and the corresponding ranges of other planes.

    ``stride`` is the distance of the reads in bytes. Return None if no chunk contains two of the ranges, or if the
    window would be larger than ``max_nbytes``.
    """
    axes = flat_axes(order, len(storage.spec.shape))
    shape = [storage.spec.shape[axis] for axis in axes]
    itemsize = storage.dtype.itemsize
    sharding = storage.sharding()
    chunks = storage.chunk_shape if sharding is None else sharding[1]
    if chunks is None or not itemsize or not prod(shape):
        return None
    pitches = [prod(shape[axis + 1 :]) * itemsize for axis in range(len(shape))]
    axis = next((i for i, pitch in enumerate(pitches) if pitch <= abs(stride) + PAGE_NBYTES), None)
    if axis is None or pitches[axis] <= nbytes:
        return None
    pitch = pitches[axis]
    chunk = chunks[axes[axis]]
    if round(abs(stride) / pitch) >= min(chunk, shape[axis]):
        return None
    if offset % pitch + nbytes > pitch:
        return None
    # Reads begin at pages. If planes do not, the ranges of other planes may begin a page earlier or later.
    margin = PAGE_NBYTES if pitch % PAGE_NBYTES else 0
    low = max(0, offset % pitch - margin)
    high = min(pitch, offset % pitch + nbytes + margin)
    rows, begin = enclosing_box(shape[axis + 1 :], low // itemsize, -(-high // itemsize))
    plane_nbytes = prod(stop - start for start, stop in rows) * itemsize
    if plane_nbytes > MAX_SURPLUS_FACTOR * (high - low):
        return None
    leading: list[int] = []
    plane = offset // pitch
    for length in reversed(shape[: axis + 1]):
        plane, index = divmod(plane, length)
        leading.insert(0, index)
    first = leading[axis] // chunk * chunk
    planes = (first, min(first + chunk, shape[axis]))
    box = (*((index, index + 1) for index in leading[:axis]), planes, *rows)
    start = (offset // pitch - leading[axis] + first) * pitch + begin * itemsize
    window = Window(box, axis, start, pitch, plane_nbytes)
    return window if window.nbytes <= max_nbytes else None


def enclosing_box(shape: Sequence[int], first: int, last: int) -> tuple[Box, int]:
    """Return the smallest box of complete rows that contains a range of elements, and the number of its first element.

    Elements are counted in C order. The range ``first`` to ``last`` is not empty.
    """
    box: list[tuple[int, int]] = []
    begin, low, high = 0, first, last - 1
    stride = prod(shape)
    is_divided = False
    for length in shape:
        if is_divided:
            box.append((0, length))
            continue
        stride //= length
        start, low = divmod(low, stride)
        stop, high = divmod(high, stride)
        box.append((start, stop + 1))
        begin += start * stride
        is_divided = start != stop
    return tuple(box), begin


def flat_version(storage: ArrayContext, offset: int, nbytes: int, order: FlatOrder) -> Hashable | None:
    """Return a value that changes when the chunks of a range of the flat stream change, or None where that is unknown.

    Costs a stamp of each chunk (a stat call in a directory). The value is taken before the range is read: an equal
    value afterwards proves the bytes current.
    """
    itemsize = storage.dtype.itemsize
    if not itemsize or nbytes <= 0:
        return None
    shape = [storage.spec.shape[axis] for axis in flat_axes(order, len(storage.spec.shape))]
    boxes = flat_boxes(offset // itemsize, -(-(offset + nbytes) // itemsize), shape)
    return _version(
        storage, (tuple((part.start, part.stop) for part in slices) for _, slices in boxes), order
    )


def box_version(storage: ArrayContext, box: Box, order: FlatOrder) -> Hashable | None:
    """Return a value that changes when the chunks of a box change, or None where that is unknown."""
    return _version(storage, [box], order)


def _version(storage: ArrayContext, boxes: Iterable[Box], order: FlatOrder) -> Hashable | None:
    stamps: list[Hashable] = []
    ranges = [_chunk_ranges(storage, box, order) for box in boxes]
    if sum(prod(map(len, each)) for each in ranges) > MAX_VERSIONED_CHUNKS:
        return None
    # Two boxes may intersect the same chunks.
    for coords in dict.fromkeys(coords for each in ranges for coords in product(*each)):
        stamp = storage.stamp(coords)
        if stamp is None and storage.store.exists(storage.key(coords)):
            return None
        stamps.append(stamp)
    return tuple(stamps)


def _chunk_ranges(storage: ArrayContext, box: Box, order: FlatOrder) -> list[range]:
    """Return the stored chunks (shards) that a box intersects, by dimension of the array."""
    axes = flat_axes(order, len(storage.spec.shape))
    bounds = [box[axes.index(axis)] for axis in range(len(axes))]
    return [
        range(axis.find(low), axis.find(high - 1) + 1)
        for axis, (low, high) in zip(storage.axes, bounds, strict=True)
    ]
