"""The pieces of a copy: one chunk, one block of values, one block to compare. Each may be done anywhere.

They are pickled, with the arrays as store and path, to be done by other processes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from zarrfs.engine.nodes.array import Array
from zarrfs.errors import StoreError
from zarrfs.tools.copying.block_grid import Block, Coords

__all__ = ["CompareBlock", "CopyBlock", "CopyChunk"]


@dataclass(frozen=True)
class CopyChunk:
    """Copies the stored bytes of a chunk. ``resume``: unless it is there."""

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
    """Copies the values of a block; each chunk of it is written once, whole. ``resume``: unless all are there."""

    source: Array
    target: Array
    resume: bool

    def __call__(self, block: Block) -> None:
        if not (self.resume and _is_there(self.target, block)):
            self.target[block] = self.source[block]


@dataclass(frozen=True)
class CompareBlock:
    """Compares the values of a block. Raises StoreError where they differ."""

    source: Array
    target: Array

    def __call__(self, block: Block) -> None:
        one, other = np.asarray(self.source[block]), np.asarray(self.target[block])
        if one.dtype.hasobject or one.dtype.names is not None:
            same = bool(np.array_equal(one, other))
        else:
            same = one.astype(other.dtype).tobytes() == other.tobytes()
        if not same:
            raise StoreError(
                f"{self.target.store.url}: {self.target.name} differs from the source at {block}"
            )


def _is_there(target: Array, block: Block) -> bool:
    """Whether all chunks of a block are stored. Each was written whole, or not at all."""
    layout = target.storage
    spans = [
        range(axis.find(part.start), axis.find(part.stop - 1) + 1)
        for axis, part in zip(layout.axes, block, strict=True)
    ]
    coordinates: Iterator[Coords] = (
        tuple(span[i] for span, i in zip(spans, index, strict=True))
        for index in np.ndindex(*(len(span) for span in spans))
    )
    return all(target.store.exists(layout.key(coords)) for coords in coordinates)
