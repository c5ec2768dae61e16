"""Tasks of building a pyramid: build or compare all levels of one block.

Tasks are picklable and can run in any thread or process. An array is pickled as its store and path.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from zarrfs.engine.nodes.array import Array
from zarrfs.tools.copying.block_grid import Block
from zarrfs.tools.copying.copy_tasks import check_equal, is_stored
from zarrfs.tools.pyramids.downsampling import Method, downsample

__all__ = ["BuildBlock", "CompareLevels", "LevelTarget"]


@dataclass(frozen=True)
class LevelTarget:
    """The array of a level, and its downsampling factors relative to the previous level."""

    array: Array
    factors: tuple[int, ...]


@dataclass(frozen=True)
class BuildBlock:
    """Reads a block of the source, and writes its part of each level. The factors of a copy of the source are 1.

    ``resume`` skips blocks whose chunks exist at all levels.
    """

    source: Array
    levels: tuple[LevelTarget, ...]
    method: Method
    resume: bool

    def __call__(self, block: Block) -> None:
        if self.resume and all(is_stored(level.array, part) for level, part in _parts(self.levels, block)):
            return
        values = np.asarray(self.source[block])
        for level, part in _parts(self.levels, block):
            values = downsample(values, level.factors, self.method)
            level.array[part] = values


@dataclass(frozen=True)
class CompareLevels:
    """Compares all levels of a block with those computed from the source. Raises StoreError if they differ."""

    source: Array
    levels: tuple[LevelTarget, ...]
    method: Method

    def __call__(self, block: Block) -> None:
        expected: np.ndarray[Any, Any] = np.asarray(self.source[block])
        for level, part in _parts(self.levels, block):
            expected = downsample(expected, level.factors, self.method)
            check_equal(level.array, part, expected)


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
