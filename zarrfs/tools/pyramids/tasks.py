"""Tasks of building a pyramid: build or compare all levels of one block.

Tasks are picklable and can run in any thread or process. An array is pickled as its store and path.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import lcm, prod
from typing import Any

import numpy as np

from zarrfs.engine.array.array import Array
from zarrfs.tools.copying.block_grid import Block, BlockGrid
from zarrfs.tools.copying.copy_tasks import check_equal, is_stored
from zarrfs.tools.pyramids.downsampling import Method, downsample
from zarrfs.tools.pyramids.passes import BUFFERS

__all__ = ["BuildBlock", "CompareLevels", "LevelTarget", "block_nbytes"]

MIN_PART_NBYTES = 1 << 20
"""The size of the values that are read at once, even if the memory is smaller."""


@dataclass(frozen=True)
class LevelTarget:
    """The array of a level, and its downsampling factors relative to the previous level."""

    array: Array
    factors: tuple[int, ...]


@dataclass(frozen=True)
class BuildBlock:
    """Reads a block of the source, and writes its part of each level. The factors of a copy of the source are 1.

    ``resume`` skips blocks whose chunks exist at all levels. ``memory`` is the memory for the values of the source in
    bytes. A block can be larger, because it has whole shards of the levels: it is read in parts.
    """

    source: Array
    levels: tuple[LevelTarget, ...]
    method: Method
    memory: int
    resume: bool

    def __call__(self, block: Block) -> None:
        if self.resume and all(is_stored(level.array, part) for level, part in _parts(self.levels, block)):
            return
        for level, part, values in _level_values(self.source, self.levels, block, self.method, self.memory):
            level.array[part] = values


@dataclass(frozen=True)
class CompareLevels:
    """Compares all levels of a block with those computed from the source. Raises StoreError if they differ."""

    source: Array
    levels: tuple[LevelTarget, ...]
    method: Method
    memory: int

    def __call__(self, block: Block) -> None:
        for level, part, values in _level_values(self.source, self.levels, block, self.method, self.memory):
            check_equal(level.array, part, values)


def block_nbytes(block: Sequence[int], factors: Sequence[int], itemsize: int, memory: int) -> int:
    """Return the memory for the values of a block of the source, and of the first level that is built from it."""
    nbytes = prod(block) * itemsize
    if BUFFERS * nbytes <= memory or prod(factors) == 1:
        return BUFFERS * nbytes
    return max(memory, BUFFERS * MIN_PART_NBYTES) + BUFFERS * nbytes // prod(factors)


def _level_values(
    source: Array, levels: tuple[LevelTarget, ...], block: Block, method: Method, memory: int
) -> Iterator[tuple[LevelTarget, Block, np.ndarray[Any, Any]]]:
    """Yield each level, the region that a block of the source has in it, and the values of this region."""
    values = None
    for level, part in _parts(levels, block):
        if values is None:
            values = _first_values(source, block, level.factors, method, memory)
        else:
            values = downsample(values, level.factors, method)
        yield level, part, values


def _first_values(
    source: Array, block: Block, factors: Sequence[int], method: Method, memory: int
) -> np.ndarray[Any, Any]:
    """Read a block of the source, in parts if it is too large, and downsample it."""
    shape = [part.stop - part.start for part in block]
    step = _part_shape(source, shape, factors, max(memory // BUFFERS, MIN_PART_NBYTES))
    if step == shape or prod(factors) == 1:
        return downsample(np.asarray(source[block]), factors, method)
    values = np.empty(
        [-(-length // factor) for length, factor in zip(shape, factors, strict=True)], source.dtype
    )
    for part in BlockGrid(shape, step):
        region = tuple(
            slice(whole.start + side.start, whole.start + side.stop)
            for whole, side in zip(block, part, strict=True)
        )
        target = tuple(
            slice(side.start // factor, -(-side.stop // factor))
            for side, factor in zip(part, factors, strict=True)
        )
        values[target] = downsample(np.asarray(source[region]), factors, method)
    return values


def _part_shape(source: Array, shape: Sequence[int], factors: Sequence[int], nbytes: int) -> list[int]:
    """Return the shape of the parts of a block of at most ``nbytes`` bytes, or of one window: the first dimensions are
    divided. The parts have whole windows, and whole chunks of the source as long as these are smaller.
    """
    chunks = source.shards or source.chunks
    sides = list(shape)
    for is_aligned in (True, False):
        for axis, factor in enumerate(factors):
            chunk = chunks[axis]
            unit = lcm(factor, chunk) if is_aligned and isinstance(chunk, int) else factor
            rest = prod(sides) // max(1, sides[axis]) * max(1, source.dtype.itemsize)
            if rest * sides[axis] > nbytes and unit < sides[axis]:
                sides[axis] = max(unit, nbytes // max(1, rest) // unit * unit)
    return sides


def _parts(levels: tuple[LevelTarget, ...], block: Block) -> Iterator[tuple[LevelTarget, Block]]:
    """Yield each level and the region that a block of the source has in it.

    The block begins at a multiple of the factors, and ends there or at the end of the array.
    """
    for level in levels:
        block = tuple(
            slice(part.start // factor, -(-part.stop // factor))
            for part, factor in zip(block, level.factors, strict=True)
        )
        yield level, block
