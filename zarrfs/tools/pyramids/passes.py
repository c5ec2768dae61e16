"""The passes over the data in which a pyramid is built.

A pass reads an array once, block by block, and builds as many of the next levels as fit: a block contains whole chunks
(shards) of each of them, so that each chunk is written once and blocks can be processed concurrently. The next pass
reads the coarsest of these levels, which is much smaller.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import lcm, prod

__all__ = ["LevelGrid", "Pass", "plan_passes"]

BUFFERS = 2
"""The memory of a block relative to its values: the values, and those of the levels and of their encoded chunks."""

BLOCKS_PER_THREAD = 2
"""The number of blocks of the first pass for each thread, if the array is large enough."""

MIN_SHARED_BLOCK = 1 << 20
"""The number of elements up to which blocks are not made smaller for the sake of several threads."""


@dataclass(frozen=True)
class LevelGrid:
    """The shape of a level, the shape of its chunks or shards, and its factors relative to the previous level."""

    shape: tuple[int, ...]
    chunks: tuple[int, ...]
    factors: tuple[int, ...]


@dataclass(frozen=True)
class Pass:
    """One pass: from level ``source`` to the levels ``first`` to ``last``, in blocks of shape ``block`` of the source.

    ``source`` is None for the array that the pyramid is built from.
    """

    source: int | None
    first: int
    last: int
    block: tuple[int, ...]


def plan_passes(
    grids: Sequence[LevelGrid],
    writes_first: bool,
    source_chunks: Sequence[int],
    itemsize: int,
    memory: int,
    threads: int = 1,
) -> list[Pass]:
    """Return the passes that build all levels.

    ``writes_first`` states whether level 0 is written, as a copy of the source. A pass builds at least one level. It
    builds more as long as a block needs at most ``memory`` bytes. Blocks are extended towards the chunks of the source,
    ``source_chunks``, so that few of these are decoded more than once. With more than one thread, blocks are so small
    that each thread processes several blocks of the array, where the chunks permit it.
    """
    passes = []
    base = 0
    first = 0 if writes_first else 1
    limit = memory // (BUFFERS * max(1, itemsize))
    if threads > 1:
        share = prod(grids[0].shape) // (BLOCKS_PER_THREAD * threads)
        limit = min(limit, max(share, MIN_SHARED_BLOCK))
    while first < len(grids):
        block = _block(grids, base, first, first)
        last = first
        while last + 1 < len(grids):
            larger = _block(grids, base, first, last + 1)
            if prod(larger) > limit:
                break
            block, last = larger, last + 1
        chunks = source_chunks if base == 0 else grids[base].chunks
        block = _extended(block, grids[base].shape, chunks, limit)
        passes.append(Pass(None if base == 0 else base, first, last, block))
        base, first = last, last + 1
    return passes


def _block(grids: Sequence[LevelGrid], base: int, first: int, last: int) -> tuple[int, ...]:
    """Return the smallest block of level ``base`` that has whole chunks of the levels ``first`` to ``last``."""
    block = []
    for axis, length in enumerate(grids[base].shape):
        step = factor = 1
        for number in range(base, last + 1):
            grid = grids[number]
            if number > base:
                factor *= grid.factors[axis]
            # A pass of several levels writes nothing between base and first.
            chunk = grid.chunks[axis] if number >= first else 1
            step = length if chunk >= grid.shape[axis] > 1 else lcm(step, max(1, chunk) * factor)
        block.append(max(1, min(step, length)))
    return tuple(block)


def _extended(
    block: Sequence[int], shape: Sequence[int], chunks: Sequence[int], limit: int
) -> tuple[int, ...]:
    """Return the block doubled along each dimension, the last one first, while it is smaller than a chunk."""
    sides = list(block)
    for axis in reversed(range(len(sides))):
        while sides[axis] < min(shape[axis], chunks[axis]) and 2 * prod(sides) <= limit:
            sides[axis] = min(2 * sides[axis], shape[axis])
    return tuple(sides)
