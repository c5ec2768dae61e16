"""Missing chunks whose neighbours are all stored."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

__all__ = ["missing_between"]

Indices = np.ndarray[Any, np.dtype[np.int64]]

MAX_CHUNKS = 1 << 62


def missing_between(stored: Sequence[tuple[int, ...]], grid: Sequence[int]) -> list[tuple[int, ...]]:
    """Return the coordinates of the chunks that are missing although all their neighbours are stored, in C order.

    ``stored`` are the coordinates of the stored chunks, ``grid`` is the number of chunks in each dimension. The
    neighbours of a chunk are the previous and the next one in each dimension, as far as they exist. A grid of one
    chunk has none.
    """
    axes = [axis for axis, count in enumerate(grid) if count > 1]
    if not stored or not axes or prod(grid) > MAX_CHUNKS:
        return []
    present = np.sort(np.ravel_multi_index(tuple(np.array(stored, np.int64).T), tuple(grid)))
    strides = [prod(grid[axis + 1 :]) for axis in range(len(grid))]

    def is_present(indices: Indices) -> Any:
        positions = np.searchsorted(present, indices)
        return present[np.minimum(positions, len(present) - 1)] == indices

    # Each candidate has a stored neighbour in the first of the dimensions.
    first = axes[0]
    position = present // strides[first] % grid[first]
    candidates = np.unique(
        np.concatenate(
            [
                present[position + 1 < grid[first]] + strides[first],
                present[position > 0] - strides[first],
            ]
        )
    )
    candidates = candidates[~is_present(candidates)]
    for axis in axes:
        position = candidates // strides[axis] % grid[axis]
        has_next, has_previous = position + 1 < grid[axis], position > 0
        is_enclosed = np.ones(len(candidates), bool)
        is_enclosed[has_next] &= is_present(candidates[has_next] + strides[axis])
        is_enclosed[has_previous] &= is_present(candidates[has_previous] - strides[axis])
        candidates = candidates[is_enclosed]
    coords = np.unravel_index(candidates, tuple(grid))
    return [tuple(int(c) for c in chunk) for chunk in zip(*coords, strict=True)]
