"""Reading a single element.

The result is that of an ordinary read. Planning one takes longer than reading the chunk.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from zarrfs.engine.indexing.projections import ChunkProjection
from zarrfs.engine.io.planning import element_policy
from zarrfs.engine.io.reading import read_chunk
from zarrfs.engine.io.storage import ArrayStorage

__all__ = ["read_element"]

_FIRST = slice(0, 1, 1)


def read_element(storage: ArrayStorage, index: Sequence[int]) -> np.ndarray[Any, Any] | None:
    """Return one element as an array of one element in each dimension; None if the index is out of bounds.

    ``index`` has an integer for each dimension; negative ones count from the end. Raises the errors of
    ``reading.execute``.
    """
    coords: list[int] = []
    region: list[slice] = []
    is_whole = True
    for position, axis in zip(index, storage.axes, strict=True):
        length = axis.length
        if position < 0:
            position += length
        if not 0 <= position < length:
            return None
        chunk = axis.find(position)
        offset = position - axis.begin(chunk)
        coords.append(chunk)
        region.append(slice(offset, offset + 1, 1))
        if offset or (position + 1 < length and axis.size(chunk) > 1):
            is_whole = False
    ndim = len(coords)
    out = np.empty((1,) * ndim, storage.dtype)
    projection = ChunkProjection(tuple(coords), tuple(region), None, (_FIRST,) * ndim, is_whole)
    read_chunk(storage, element_policy(storage), projection, out)
    return out
