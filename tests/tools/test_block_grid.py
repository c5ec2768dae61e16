"""The blocks of a copy: those that overlap stored regions, and their memory."""

from __future__ import annotations

import tracemalloc
from itertools import product

import numpy as np
import pytest

from zarrfs.tools.copying.block_grid import Block, BlockGrid


def random_regions(shape: tuple[int, ...], count: int) -> list[Block]:
    generator = np.random.default_rng(0)
    regions = []
    for _ in range(count):
        starts = [int(generator.integers(0, length)) for length in shape]
        regions.append(tuple(slice(start, start + int(generator.integers(1, 5))) for start in starts))
    return regions


@pytest.mark.parametrize(
    ("shape", "step"), [((13,), (4,)), ((13, 5), (4, 5)), ((7, 9, 11), (2, 9, 3)), ((), ())]
)
@pytest.mark.parametrize("count", [0, 1, 20])
def test_blocks_that_overlap_regions_are_found_once_and_in_order(
    shape: tuple[int, ...], step: tuple[int, ...], count: int
) -> None:
    grid = BlockGrid(shape, step)
    regions = random_regions(shape, count)
    expected = [
        block
        for block in grid
        if any(
            all(
                part.start < stop and start < part.stop
                for part, start, stop in zip(block, *limits, strict=True)
            )
            for limits in (
                ([part.start for part in region], [part.stop for part in region]) for region in regions
            )
        )
    ]
    found = grid.overlapping(regions)
    assert list(found) == expected
    assert len(found) == len(expected)
    assert list(found[1:3]) == expected[1:3]


def test_selected_blocks_need_little_memory() -> None:
    """A copy of very many chunks holds the blocks of all of them."""
    side = 30
    grid = BlockGrid((side, side, side), (1, 1, 1))
    regions = (
        tuple(slice(start, start + 1) for start in coords) for coords in product(range(side), repeat=3)
    )
    tracemalloc.start()
    blocks = grid.overlapping(regions)
    nbytes, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(blocks) == side**3
    assert nbytes < 40 * side**3
    assert peak < 150 * side**3
