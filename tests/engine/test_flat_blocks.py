"""The division of the flat stream of an array into blocks of whole chunks."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

import zarrfs
from zarrfs.engine.read.flat_blocks import MAX_PART_NBYTES, FlatBlockGrid, flat_block_grid

KIB = 1 << 10


def grid(max_nbytes: int, order: Any = "C", **options: Any) -> FlatBlockGrid:
    return flat_block_grid(zarrfs.create_array({}, dtype="u2", **options)._storage, order, max_nbytes)


def test_a_block_contains_whole_chunks() -> None:
    slab = 16 * 64 * 2
    for max_nbytes, slabs in ((slab, 1), (2 * slab, 2), (3 * slab - 1, 2), (1 << 30, 4)):
        blocks = grid(max_nbytes, shape=(64, 64), chunks=(16, 32))
        assert blocks == FlatBlockGrid(64 * 64 * 2, 64 * 64 * 2, slabs * slab, True)
    assert grid(2 * slab, "F", shape=(64, 64), chunks=(32, 16)).block == 2 * slab


def test_blocks_of_chunks_that_are_too_large_do_not_contain_whole_chunks() -> None:
    slab = 16 * 64 * 2
    # Equal numbers of planes, so that no block extends over two layers of chunks.
    for max_nbytes, planes in ((slab - 1, 8), (slab // 3, 4), (64 * 2, 1)):
        blocks = grid(max_nbytes, shape=(64, 64), chunks=(16, 32))
        assert blocks == FlatBlockGrid(64 * 64 * 2, slab, planes * 64 * 2, False)
    last = grid(slab - 1, shape=(60, 64), chunks=(16, 32))
    assert [last.bounds(last.count - 1), last.count] == [(56 * 64 * 2, 60 * 64 * 2), 8]
    # The planes that one index of the first dimension contains.
    blocks = grid(8 * 64 * 2, shape=(3, 60, 64), chunks=(1, 16, 32))
    assert blocks == FlatBlockGrid(3 * 60 * 64 * 2, 60 * 64 * 2, 8 * 64 * 2, False)
    # A plane that is too large is divided anywhere.
    blocks = grid(64, shape=(64, 64), chunks=(16, 32))
    assert blocks == FlatBlockGrid(64 * 64 * 2, 64 * 64 * 2, 64, False)


def test_blocks_of_a_part_of_a_layer_of_chunks_are_bounded() -> None:
    blocks = grid(MAX_PART_NBYTES * 2, shape=(256, 1024, 1024), chunks=(64, 64, 64))
    assert (blocks.block, blocks.holds_whole_chunks) == (MAX_PART_NBYTES, False)


def test_a_block_of_a_shard_contains_whole_inner_chunks() -> None:
    blocks = grid(8 * 64 * 2, shape=(64, 64), chunks=(8, 8), shards=(64, 64))
    assert (blocks.block, blocks.holds_whole_chunks) == (8 * 64 * 2, True)


@pytest.mark.parametrize("shape", [(0, 5), ()])
def test_an_array_without_chunks_of_a_length_has_one_block(shape: tuple[int, ...]) -> None:
    blocks = grid(KIB, shape=shape)
    assert blocks.count == (1 if shape == () else 0)
    assert blocks.holds_whole_chunks


def test_offsets_are_found_in_the_blocks_that_contain_them() -> None:
    blocks = grid(2 * 3 * 5 * 2, shape=(4, 7, 5), chunks=(1, 3, 5))
    bounds = [blocks.bounds(number) for number in range(blocks.count)]
    assert bounds[0][0] == 0
    assert bounds[-1][1] == blocks.nbytes == 4 * 7 * 5 * 2
    assert all(stop == start for (_, stop), (start, _) in pairwise(bounds))
    for number, (start, stop) in enumerate(bounds):
        assert blocks.find(start) == blocks.find(stop - 1) == number
