"""Copies of ranges of an array's flat stream from decoded chunks in the cache.

Such a copy takes a few microseconds per chunk: there is no plan, no thread, and no request to the store, except that
each chunk is compared with the store once per ``max_age``.
"""

from __future__ import annotations

import time
import weakref
from collections.abc import Callable, Hashable, Sequence
from itertools import product
from math import prod
from typing import Any, NamedTuple

import numpy as np

from zarrfs.engine.cache import MAX_RECENT_READS
from zarrfs.engine.codecs.base import BytesBytesCodec
from zarrfs.engine.codecs.sharding.codec import ShardingCodec
from zarrfs.engine.codecs.sharding.fetching import MISSING
from zarrfs.engine.indexing.flat_ranges import FlatOrder, flat_axes, flat_boxes
from zarrfs.engine.io.flat import MAX_SURPLUS_FACTOR, Box, enclosing_box
from zarrfs.engine.io.storage import ArrayStorage

__all__ = ["DecodedChunks"]

Array = np.ndarray[Any, Any]
Coords = tuple[int, ...]
_Key = tuple[Hashable, ...]

MAX_CHECKED = 1 << 16
"""The maximum number of stored values whose last comparison with the store is remembered."""

MAX_MEMOIZED_PARTS = 1 << 10
"""The maximum number of remembered divisions of an interval of one dimension into chunks."""

MAX_RECENT_BOXES = 1 << 10
MAX_RECENT_CHUNKS = 64
"""The maximum number of remembered ranges of chunks that were found together, and of the chunks of one of them."""

NOT_STORED = object()
"""In place of the stamp of a stored value that does not exist."""


class _Part(NamedTuple):
    """The part of an interval of one dimension that lies in one chunk."""

    chunk: int
    region: slice
    target: slice


class _Found(NamedTuple):
    """The chunks of a box, found in the cache together. The references do not keep evicted chunks in memory."""

    changes: int
    checked: float
    references: list[Callable[[], Any]]


def _not_stored() -> object:
    return NOT_STORED


class DecodedChunks:
    """The decoded chunks of one array in the cache, as a source of its flat stream in one order. Thread-safe.

    A cached chunk is used without a comparison with the store for ``max_age`` seconds after the last one; with None it
    is never compared. ``confirm`` is called after each comparison. It raises an error if the array has been replaced or
    removed, so that the absence of a chunk does not mean the fill value.

    Attributes:
        decodes_whole_chunks: whether the codecs of the chunks (of the inner chunks) cannot decode a part of them.
    """

    def __init__(
        self,
        storage: ArrayStorage,
        order: FlatOrder,
        max_age: float | None,
        confirm: Callable[[], None] = lambda: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._storage = storage
        self._max_age = max_age
        self._confirm = confirm
        self._clock = clock
        ndim = len(storage.spec.shape)
        self._axes = flat_axes(order, ndim)
        self._positions = (
            None if self._axes == tuple(range(ndim)) else [self._axes.index(i) for i in range(ndim)]
        )
        self._shape = tuple(storage.spec.shape[axis] for axis in self._axes)
        self._shards = _shard_grid(storage)
        chunks = _chunk_shape(storage)
        self._chunks = None if chunks is None else tuple(chunks[axis] for axis in self._axes)
        self.decodes_whole_chunks = self._chunks is not None and _decodes_whole_chunks(storage)
        self._checked: dict[Hashable, tuple[float, Hashable]] = {}
        self._parts: dict[tuple[int, int, int], list[_Part]] = {}
        self._recent: dict[Coords, _Found] = {}

    def copy(self, offset: int, out: np.ndarray[Any, np.dtype[np.uint8]]) -> bool:
        """Fill ``out`` with the bytes from ``offset`` of the stream, in which the range lies.

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

    def expect(self, offset: int, nbytes: int) -> None:
        """Let the next read of a range decode its chunks whole and keep them in the cache, if they fit."""
        if self._chunks is not None and nbytes:
            itemsize = self._storage.dtype.itemsize
            boxes = flat_boxes(offset // itemsize, -(-(offset + nbytes) // itemsize), self._shape)
            for _, slices in boxes:
                self.expect_box(tuple([(part.start, part.stop) for part in slices]))

    def expect_box(self, box: Box) -> None:
        """Let the next read of a box decode its chunks whole and keep them in the cache, if they fit."""
        if self._chunks is None:
            return
        ranges = [
            range(low // length, (high - 1) // length + 1)
            for (low, high), length in zip(box, self._chunks, strict=True)
        ]
        if prod(map(len, ranges)) <= MAX_RECENT_READS // 4:
            values, keys = self._keys(self._in_array_order(list(product(*ranges))))
            self._storage.cache.record_reads(list({*values, *keys}))

    def copy_box(
        self, box: Box, out: np.ndarray[Any, np.dtype[np.uint8]], *, checks_again: bool = False
    ) -> bool:
        """Fill ``out`` with a box, in the order of the stream. Return False as ``copy`` does.

        With ``checks_again`` each chunk is compared with the store now, unless chunks are never compared.
        """
        return self._chunks is not None and self._copy_box(box, out.view(self._storage.dtype), checks_again)

    def _copy_box(self, box: Sequence[tuple[int, int]], elements: Array, checks_again: bool = False) -> bool:
        """Copy a box into one-dimensional memory of its size."""
        # Only the last dimension usually has more than one chunk, so that the work per chunk is done for it alone.
        *leading, line = [self._divide(axis, low, high) for axis, (low, high) in enumerate(box)]
        heads = list(product(*leading))
        chunks = self._find(heads, line, checks_again)
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

    def _find(
        self, heads: list[tuple[_Part, ...]], line: list[_Part], checks_again: bool
    ) -> list[Any] | None:
        """Return the decoded chunks of a box, NOT_STORED for each missing one; or None if one of them is not cached or
        has changed. ``heads`` are the parts of the box in all dimensions but the last one, ``line`` those in the last.
        """
        storage = self._storage
        count = len(heads) * len(line)
        key = (*[part.chunk for part in (*heads[0], *heads[-1])], line[0].chunk, line[-1].chunk)
        changes = storage.changes
        now = self._clock()
        max_age = 0.0 if checks_again and self._max_age is not None else self._max_age
        oldest = float("-inf") if max_age is None else now - max_age
        recent = self._recent.get(key)
        if recent is not None and recent.changes == changes and recent.checked > oldest:
            chunks = [reference() for reference in recent.references]
            evicted = [chunk for chunk in chunks if chunk is None]
            if not evicted:
                storage.cache.count_hits(count)
                return chunks
        coords = [(*[part.chunk for part in head], part.chunk) for head in heads for part in line]
        found = self._look_up(self._in_array_order(coords), now, oldest)
        if found is None:
            return None
        chunks, checked = found
        if count <= MAX_RECENT_CHUNKS:
            if len(self._recent) >= MAX_RECENT_BOXES:
                self._recent.clear()
            references = [_not_stored if chunk is NOT_STORED else weakref.ref(chunk) for chunk in chunks]
            self._recent[key] = _Found(changes, checked, references)
        return chunks

    def _look_up(self, coords: list[Coords], now: float, oldest: float) -> tuple[list[Any], float] | None:
        """Return the decoded chunks as ``_find`` does, and the time of the earliest of the comparisons with the store.
        Comparisons that were made until ``oldest`` are repeated.
        """
        storage = self._storage
        values, keys = self._keys(coords)
        is_checked = False
        earliest = now
        chunks: list[Any] = []
        for value, key, entry in zip(values, keys, storage.cache.find(keys), strict=True):
            known = self._checked.get(value)
            # An entry with another stamp was added after the last comparison.
            if known is None or known[0] <= oldest or (entry is not None and entry[0] != known[1]):
                known = self._check(value, now)
                is_checked = True
            earliest = min(earliest, known[0])
            if entry is not None:
                if entry[0] != known[1]:
                    return None
                chunks.append(entry[1])
            elif storage.access.fill_missing and (known[1] is NOT_STORED or self._is_empty(key, known[1])):
                chunks.append(NOT_STORED)
            else:
                return None
        if is_checked:
            self._confirm()
        return chunks, earliest

    def _in_array_order(self, coords: list[Coords]) -> list[Coords]:
        """Return coordinates with the dimensions in the order of the array instead of that of the stream."""
        if self._positions is None:
            return coords
        return [tuple([each[i] for i in self._positions]) for each in coords]

    def _keys(self, coords: list[Coords]) -> tuple[list[_Key], list[_Key]]:
        """Return the cache keys of the stored values that contain chunks, and those of the chunks."""
        grid = self._shards
        if grid is None:
            keys = self._storage.cache_keys(coords)
            return keys, keys
        values = self._storage.cache_keys(
            tuple([c // n for c, n in zip(each, grid, strict=True)]) for each in coords
        )
        inner = [tuple([c % n for c, n in zip(each, grid, strict=True)]) for each in coords]
        return values, [(*value, part) for value, part in zip(values, inner, strict=True)]

    def _check(self, key: _Key, now: float) -> tuple[float, Hashable]:
        """Compare a stored value with the store: return the time, and its stamp or NOT_STORED. ``key`` is its cache
        key.
        """
        store, access = self._storage.store, self._storage.access
        coords: Any = key[-1]
        name = self._storage.key(coords)
        with store.open_value(name) as value:
            stamp = access.stamp(value)
        has_unknown_version = stamp is None or access.assumes_unchanged_data
        if has_unknown_version and store.concurrency == 1 and not store.exists(name):
            stamp = NOT_STORED
        checked = (now, object() if stamp is None else stamp)
        if len(self._checked) >= MAX_CHECKED:
            self._checked.clear()
        self._checked[key] = checked
        return checked

    def _is_empty(self, key: _Key, stamp: Hashable) -> bool:
        """Return whether the cached index of the shard states that an inner chunk is missing."""
        if self._shards is None:
            return False
        (found,) = self._storage.cache.find([(*key[:-1], "index")])
        if found is None or found[0] != stamp:
            return False
        return bool((found[1][key[-1]] == MISSING).all())


def _shard_grid(storage: ArrayStorage) -> Coords | None:
    """Return the number of inner chunks of a shard in each dimension, or None if the array is not sharded."""
    sharding = storage.sharding()
    if sharding is None or storage.chunk_shape is None:
        return None
    return tuple(-(-n // part) for n, part in zip(storage.chunk_shape, sharding[1], strict=True))


def _chunk_shape(storage: ArrayStorage) -> Coords | None:
    """Return the shape of the chunks (of the inner chunks) that the cache holds, or None if it is not used."""
    if storage.pipeline is None or storage.dtype.hasobject or not storage.dtype.itemsize:
        return None
    if not storage.spec.shape or not prod(storage.spec.shape) or storage.chunk_shape is None:
        return None
    if storage.store.concurrency > 1 and not storage.access.assumes_unchanged_data:
        return None
    if not storage.pipeline.chain.sharded:
        return tuple(max(1, length) for length in storage.chunk_shape)
    codecs = storage.spec.codecs
    if len(codecs) != 1 or not isinstance(codecs[0], ShardingCodec):
        return None
    if any(isinstance(codec, ShardingCodec) for codec in codecs[0].codecs):
        return None
    return codecs[0].chunk_shape


def _decodes_whole_chunks(storage: ArrayStorage) -> bool:
    codecs = storage.spec.codecs
    if len(codecs) == 1 and isinstance(codecs[0], ShardingCodec):
        return not all(codec.partial for codec in codecs[0].codecs if isinstance(codec, BytesBytesCodec))
    return storage.pipeline is not None and not storage.pipeline.chain.supports_partial
