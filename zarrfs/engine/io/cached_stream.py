"""Copying ranges of an array's flat stream from the decoded chunks in the cache.

A copy takes a few microseconds per chunk: there is no plan, no thread and no request to the store, except that each
chunk is compared with the store once per ``max_age``.
"""

from __future__ import annotations

import time
import weakref
from collections.abc import Callable, Sequence
from itertools import product
from math import prod
from typing import Any, NamedTuple

import numpy as np

from zarrfs.engine.cache import MAX_RECENT_READS
from zarrfs.engine.indexing.flat_ranges import FlatOrder, flat_axes, flat_boxes
from zarrfs.engine.io.cached_chunks import NOT_STORED, CachedChunks
from zarrfs.engine.io.flat_blocks import MAX_SURPLUS_FACTOR, Box, enclosing_box
from zarrfs.engine.io.storage import ArrayStorage

__all__ = ["CachedStream"]

Array = np.ndarray[Any, Any]
Coords = tuple[int, ...]

MAX_MEMOIZED_PARTS = 1 << 10
"""The maximum number of memoized results of ``_divide``: an interval of one dimension, divided into chunks."""

MAX_RECENT_BOXES = 1 << 10
"""The maximum number of boxes whose chunks are remembered."""

MAX_RECENT_CHUNKS = 64
"""The chunks of a box are remembered if there are at most this many."""


class _Part(NamedTuple):
    """The part of an interval of one dimension that lies in one chunk."""

    chunk: int
    region: slice
    target: slice


class _CachedBox(NamedTuple):
    """The cached chunks of a box. The references are weak: they do not keep evicted chunks in memory.

    Attributes:
        changes: the number of writes to the array (``ArrayStorage.changes``) when the chunks were found.
        checked: the time of the earliest comparison of one of the chunks with the store.
        references: one function per chunk, which returns the chunk, or None if it was evicted.
    """

    changes: int
    checked: float
    references: list[Callable[[], Any]]


def _not_stored() -> object:
    return NOT_STORED


class CachedStream:
    """The flat stream of one array in one order, as far as its decoded chunks are in the cache. Thread-safe.

    A cached chunk is compared with the store if the last comparison was more than ``max_age`` seconds ago; with None it
    is never compared. ``check_metadata`` is called after each comparison. It raises an error if the array has been
    replaced or removed, because a missing chunk then does not mean the fill value.

    Attributes:
        decodes_whole_chunks: whether the codecs cannot decode a part of a chunk (of an inner chunk, if the array is
            sharded).
    """

    def __init__(
        self,
        storage: ArrayStorage,
        order: FlatOrder,
        max_age: float | None,
        check_metadata: Callable[[], None] = lambda: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._storage = storage
        self._max_age = max_age
        self._clock = clock
        ndim = len(storage.spec.shape)
        self._axes = flat_axes(order, ndim)
        self._positions = (
            None if self._axes == tuple(range(ndim)) else [self._axes.index(i) for i in range(ndim)]
        )
        self._shape = tuple(storage.spec.shape[axis] for axis in self._axes)
        self._cached = CachedChunks(storage, check_metadata)
        chunks = self._cached.chunk_shape
        self._chunks = None if chunks is None else tuple(chunks[axis] for axis in self._axes)
        self.decodes_whole_chunks = self._cached.decodes_whole_chunks
        self._parts: dict[tuple[int, int, int], list[_Part]] = {}
        self._recent: dict[Coords, _CachedBox] = {}

    def copy(self, offset: int, out: np.ndarray[Any, np.dtype[np.uint8]]) -> bool:
        """Fill ``out`` with the bytes from ``offset`` of the stream. The range lies within the stream.

        Return False, with undefined contents of ``out``, if a chunk is not in the cache or has changed, or if the
        chunks of this array are not supported.
        """
        if self._chunks is None or not out.size:
            return False
        itemsize = self._storage.dtype.itemsize
        first, skip = divmod(offset, itemsize)
        last = -(-(offset + out.size) // itemsize)
        count = last - first
        box, begin = enclosing_box(self._shape, first, last)
        size = prod(high - low for low, high in box)
        if size == count and not skip and count * itemsize == out.size:
            return self._copy_box(box, out.view(self._storage.dtype))
        if size <= MAX_SURPLUS_FACTOR * count:
            elements = np.empty(size, self._storage.dtype)
            if self._copy_box(box, elements):
                position = offset - begin * itemsize
                out[...] = elements.view(np.uint8)[position : position + out.size]
                return True
            # The box may contain chunks that the range does not intersect.
        elements = np.empty(count, self._storage.dtype)
        for position, slices in flat_boxes(first, last, self._shape):
            box = tuple([(part.start, part.stop) for part in slices])
            size = prod(high - low for low, high in box)
            if not self._copy_box(box, elements[position - first : position - first + size]):
                return False
        out[...] = elements.view(np.uint8)[skip : skip + out.size]
        return True

    def expect_reads(self, offset: int, nbytes: int) -> None:
        """Let the next read of a range decode its chunks whole and keep them in the cache, if they fit."""
        if self._chunks is not None and nbytes:
            itemsize = self._storage.dtype.itemsize
            boxes = flat_boxes(offset // itemsize, -(-(offset + nbytes) // itemsize), self._shape)
            for _, slices in boxes:
                self.expect_box_reads(tuple([(part.start, part.stop) for part in slices]))

    def expect_box_reads(self, box: Box) -> None:
        """Let the next read of a box decode its chunks whole and keep them in the cache, if they fit."""
        if self._chunks is None:
            return
        ranges = [
            range(low // length, (high - 1) // length + 1)
            for (low, high), length in zip(box, self._chunks, strict=True)
        ]
        if prod(map(len, ranges)) <= MAX_RECENT_READS // 4:
            values, keys = self._cached.keys(self._in_array_order(list(product(*ranges))))
            self._storage.cache.record_reads(list({*values, *keys}))

    def copy_box(
        self, box: Box, out: np.ndarray[Any, np.dtype[np.uint8]], *, revalidate: bool = False
    ) -> bool:
        """Fill ``out`` with a box, in the order of the stream. Return False in the same cases as ``copy``.

        With ``revalidate`` each chunk is compared with the store now, unless ``max_age`` is None.
        """
        return self._chunks is not None and self._copy_box(box, out.view(self._storage.dtype), revalidate)

    def _copy_box(self, box: Sequence[tuple[int, int]], elements: Array, revalidate: bool = False) -> bool:
        """Copy a box into ``elements``, a one-dimensional array of its size."""
        # Usually only the last dimension has more than one chunk, so the loop over chunks is along this dimension.
        *leading, line = [self._divide(axis, low, high) for axis, (low, high) in enumerate(box)]
        heads = list(product(*leading))
        chunks = self._find(heads, line, revalidate)
        if chunks is None:
            return False
        view = elements.reshape([high - low for low, high in box])
        if len(heads) == 1:
            self._copy_line(heads[0], line, chunks, view)
            return True
        for number, head in enumerate(heads):
            target = view[tuple([part.target for part in head])]
            self._copy_line(head, line, chunks[number * len(line) : (number + 1) * len(line)], target)
        return True

    def _copy_line(self, head: tuple[_Part, ...], line: list[_Part], chunks: list[Any], out: Array) -> None:
        """Copy the parts of chunks that are adjacent in the last dimension into ``out``."""
        if self._positions is not None:
            chunks = [c if c is NOT_STORED else c.transpose(self._axes) for c in chunks]
        region = [part.region for part in head]
        missing = [chunk for chunk in chunks if chunk is NOT_STORED]
        if not missing:
            # One call for all parts takes half of the time of an assignment for each.
            parts = [chunk[(*region, part.region)] for chunk, part in zip(chunks, line, strict=True)]
            np.concatenate(parts, axis=-1, out=out)
            return
        for chunk, part in zip(chunks, line, strict=True):
            if chunk is NOT_STORED:
                out[..., part.target] = self._storage.effective_fill_value
            else:
                out[..., part.target] = chunk[(*region, part.region)]

    def _divide(self, axis: int, low: int, high: int) -> list[_Part]:
        """Return the parts of an interval of a dimension in the order of the stream."""
        known = self._parts.get((axis, low, high))
        if known is not None:
            return known
        assert self._chunks is not None
        length = self._chunks[axis]
        parts = []
        for chunk in range(low // length, (high - 1) // length + 1):
            begin = chunk * length
            start, stop = max(low, begin), min(high, begin + length)
            parts.append(_Part(chunk, slice(start - begin, stop - begin), slice(start - low, stop - low)))
        if high - low > 1:
            if len(self._parts) >= MAX_MEMOIZED_PARTS:
                self._parts.clear()
            self._parts[axis, low, high] = parts
        return parts

    def _find(self, heads: list[tuple[_Part, ...]], line: list[_Part], revalidate: bool) -> list[Any] | None:
        """Return the decoded chunks of a box, NOT_STORED for each missing chunk; None if a chunk is not cached or has
        changed. ``heads`` are the parts of the box in all dimensions except the last, ``line`` those in the last.
        """
        storage = self._storage
        count = len(heads) * len(line)
        key = (*[part.chunk for part in (*heads[0], *heads[-1])], line[0].chunk, line[-1].chunk)
        changes = storage.changes
        now = self._clock()
        max_age = 0.0 if revalidate and self._max_age is not None else self._max_age
        oldest = float("-inf") if max_age is None else now - max_age
        recent = self._recent.get(key)
        if recent is not None and recent.changes == changes and recent.checked > oldest:
            chunks = [reference() for reference in recent.references]
            evicted = [chunk for chunk in chunks if chunk is None]
            if not evicted:
                storage.cache.count_hits(count)
                return chunks
        coords = [(*[part.chunk for part in head], part.chunk) for head in heads for part in line]
        found = self._cached.find(self._in_array_order(coords), now, oldest)
        if found is None:
            return None
        chunks, checked = found
        if count <= MAX_RECENT_CHUNKS:
            if len(self._recent) >= MAX_RECENT_BOXES:
                self._recent.clear()
            references = [_not_stored if chunk is NOT_STORED else weakref.ref(chunk) for chunk in chunks]
            self._recent[key] = _CachedBox(changes, checked, references)
        return chunks

    def _in_array_order(self, coords: list[Coords]) -> list[Coords]:
        """Return coordinates with the dimensions in the order of the array instead of the order of the stream."""
        if self._positions is None:
            return coords
        return [tuple([each[i] for i in self._positions]) for each in coords]
