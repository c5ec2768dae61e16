"""Tasks of a copy: copy one chunk, copy one block of values, or compare one block.

Tasks are picklable and can run in any thread or process. An array is pickled as its store and path.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from zarrfs.engine.array.array import Array
from zarrfs.errors import StoreError
from zarrfs.tools.copying.block_grid import Block, Coords

__all__ = ["CompareBlock", "CopyBlock", "CopyChunk", "check_equal", "have_equal_values", "is_stored"]


@dataclass(frozen=True)
class CopyChunk:
    """Copies the encoded bytes of a chunk. ``resume`` skips chunks that exist in the target."""

    source: Array
    target: Array
    resume: bool

    def __call__(self, coords: Coords) -> None:
        key = self.target.storage.key(coords)
        if self.resume and self.target.store.exists(key):
            return
        value = self.source.store.get(self.source.storage.key(coords))
        if value is not None:
            self.target.store.set(key, value)


@dataclass(frozen=True)
class CopyBlock:
    """Copies the values of a block of whole target chunks. ``resume`` skips blocks whose chunks all exist."""

    source: Array
    target: Array
    resume: bool

    def __call__(self, block: Block) -> None:
        if not (self.resume and is_stored(self.target, block)):
            self.target[block] = self.source[block]


@dataclass(frozen=True)
class CompareBlock:
    """Compares the values of a block. Raises StoreError if they differ."""

    source: Array
    target: Array

    def __call__(self, block: Block) -> None:
        check_equal(self.target, block, np.asarray(self.source[block]))


def check_equal(target: Array, block: Block, expected: np.ndarray[Any, Any]) -> None:
    """Raise StoreError if the values of a block of the target differ from the expected ones."""
    if not have_equal_values(expected, np.asarray(target[block])):
        raise StoreError(f"{target.store.url}: {target.name} differs from the source at {block}")


def have_equal_values(one: np.ndarray[Any, Any], other: np.ndarray[Any, Any]) -> bool:
    """Return whether two arrays of the same shape have the same values; NaN equals NaN only with the same bits.

    Values are copied only if an array is not contiguous or has another byte order than ``other``.
    """
    if one.dtype.hasobject or one.dtype.names is not None or not other.dtype.itemsize:
        return bool(np.array_equal(one, other))
    first, second = (
        np.ascontiguousarray(values, other.dtype).reshape(-1).view(np.uint8) for values in (one, other)
    )
    # Eight bytes at a time: the result of a comparison by bytes would be as large as the values.
    whole = len(first) // 8 * 8
    return np.array_equal(first[:whole].view(np.uint64), second[:whole].view(np.uint64)) and np.array_equal(
        first[whole:], second[whole:]
    )


def is_stored(target: Array, block: Block) -> bool:
    """Return whether all chunks of a block are stored. Chunks are written atomically."""
    storage = target.storage
    chunk_ranges = [
        range(axis.find(part.start), axis.find(part.stop - 1) + 1)
        for axis, part in zip(storage.axes, block, strict=True)
    ]
    chunk_coords: Iterator[Coords] = (
        tuple(chunk_range[i] for chunk_range, i in zip(chunk_ranges, index, strict=True))
        for index in np.ndindex(*(len(chunk_range) for chunk_range in chunk_ranges))
    )
    return all(target.store.exists(storage.key(coords)) for coords in chunk_coords)
