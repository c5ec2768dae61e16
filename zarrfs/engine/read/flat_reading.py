"""Reading ranges of the flat stream of an array's elements."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from zarrfs.engine.array_context import ArrayContext
from zarrfs.engine.indexing.flat_ranges import FlatOrder, flat_axes, flat_boxes
from zarrfs.engine.indexing.normalized import OrthogonalSelection, Span
from zarrfs.engine.read.reading import read_into
from zarrfs.errors import SelectionError

__all__ = ["check_flat", "read_flat", "read_flat_box"]

Array = np.ndarray[Any, Any]


def read_flat(
    storage: ArrayContext, offset: int, out: Array, order: FlatOrder, *, keep_chunks: bool = True
) -> None:
    """Fill ``out``, a one-dimensional array of uint8, with the bytes from ``offset`` of the flat stream of the array.

    The range must lie in the array; see ``check_flat``. With ``keep_chunks=False`` decoded chunks do not
    enter the cache.
    """
    itemsize = storage.dtype.itemsize
    if out.size == 0 or itemsize == 0:
        return
    first, skip = divmod(offset, itemsize)
    last = -(-(offset + out.size) // itemsize)
    aligned = skip == 0 and (last - first) * itemsize == out.size
    raw = out if aligned else np.empty((last - first) * itemsize, np.uint8)
    elements = raw.view(storage.dtype)
    axes = flat_axes(order, len(storage.spec.shape))
    shape = tuple(storage.spec.shape[axis] for axis in axes)
    for position, box in flat_boxes(first, last, shape):
        size = prod(part.stop - part.start for part in box)
        begin = position - first
        read_flat_box(storage, box, elements[begin : begin + size], axes, keep_chunks=keep_chunks)
    if not aligned:
        out[...] = raw[skip : skip + out.size]


def read_flat_box(
    storage: ArrayContext,
    box: Sequence[slice],
    out: Array,
    axes: tuple[int, ...],
    *,
    keep_chunks: bool = True,
) -> None:
    """Fill ``out``, a one-dimensional array of the dtype of the array, with a box of the flat stream.

    ``axes`` are the dimensions from the slowest to the fastest one, and ``box`` has a slice for each of them.
    """
    positions = [axes.index(axis) for axis in range(len(axes))]
    view = out.reshape([part.stop - part.start for part in box]).transpose(positions)
    spans = tuple(Span(box[i].start, 1, box[i].stop - box[i].start) for i in positions)
    selection = OrthogonalSelection(spans, view.shape, (slice(None),) * view.ndim)
    read_into(storage, selection, view, may_cache=keep_chunks, continues=True)


def check_flat(storage: ArrayContext, offset: int, size: int, order: FlatOrder) -> int:
    """Return the number of bytes that can be read from ``offset``, at most ``size``.

    Raises SelectionError for an array of variable-length elements, an unknown order, and a negative or non-integer
    offset or size.
    """
    if storage.dtype.hasobject:
        raise SelectionError(
            f"{storage.where}: {storage.spec.data_type.name} elements vary in length and have no flat byte stream"
        )
    try:
        flat_axes(order, len(storage.spec.shape))
    except ValueError as error:
        raise SelectionError(f"{storage.where}: {error}") from None
    for name, value in (("offset", offset), ("size", size)):
        if not isinstance(value, int | np.integer):
            raise SelectionError(f"{name} must be an integer, found {value!r}")
    if offset < 0 or size < 0:
        raise SelectionError(f"offset and size must not be negative, found {offset} and {size}")
    nbytes = prod(storage.spec.shape) * storage.dtype.itemsize
    return max(0, min(size, nbytes - offset))
