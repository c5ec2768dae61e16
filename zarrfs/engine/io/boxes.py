"""Reading a box that lies within one chunk, or within one inner chunk of a shard.

The result is that of an ordinary read. Planning one takes about as long as reading a small chunk. The native library
reads no single chunks, so this module does not need it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from zarrfs.engine.indexing.projections import ChunkProjection
from zarrfs.engine.io.chunk_reading import read_chunk
from zarrfs.engine.io.planning import single_chunk_policy
from zarrfs.engine.io.reading import empty
from zarrfs.engine.io.storage import ArrayStorage
from zarrfs.engine.parallel import limit_threads

__all__ = ["read_box"]

_ALL = slice(None)
_WHOLE_OUTPUT = (Ellipsis,)


def read_box(storage: ArrayStorage, selection: Sequence[int | slice]) -> Any | None:
    """Return the selected elements, as an array without the dimensions of the integers, or a scalar if all entries are
    integers.

    ``selection`` consists of integers and slices, by the rules of NumPy. Return None if it is not a box within one
    (inner) chunk of the array: the number of entries differs from that of the dimensions, an index is out of bounds, a
    slice is empty, invalid or has a step, or the selection intersects several chunks. Raises the errors of
    ``reading.execute``.
    """
    axes = storage.axes
    if len(selection) != len(axes):
        return None
    inner_shape = storage.inner_chunk_shape
    coords: list[int] = []
    region: list[slice] = []
    shape: list[int] = []
    view: list[int | slice] = []
    is_whole = True
    for dimension, part in enumerate(selection):
        axis = axes[dimension]
        length = axis.length
        if isinstance(part, slice):
            try:
                start, stop, step = part.indices(length)
            except (TypeError, ValueError):
                return None
            if step != 1 or start >= stop:
                return None
            view.append(_ALL)
        else:
            start = part + length if part < 0 else part
            if not 0 <= start < length:
                return None
            stop = start + 1
            view.append(0)
        chunk = axis.find(start)
        begin = axis.begin(chunk)
        size = axis.size(chunk)
        low, high = start - begin, stop - begin
        if high > size:
            return None
        if inner_shape is not None:
            inner = inner_shape[dimension]
            if low // inner != (high - 1) // inner:
                return None
        coords.append(chunk)
        region.append(slice(low, high, 1))
        shape.append(high - low)
        if low or (high < size and stop < length):
            is_whole = False
    out = empty(tuple(shape), storage)
    projection = ChunkProjection(tuple(coords), tuple(region), None, _WHOLE_OUTPUT, is_whole)
    with limit_threads(storage.access.concurrency):
        read_chunk(storage, single_chunk_policy(storage, out.nbytes), projection, out)
    return out[tuple(view)]
