"""A shard that is being created or changed: the stored bytes, their index, and the inner chunks that are replaced.

The cost does not grow with the number of unchanged inner chunks: adjacent ones are copied as one run of bytes. The
codec, which encodes inner chunks and the index, is in ``codec.py``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from zarrfs.engine.codecs.base import Buffer, CodecError
from zarrfs.engine.codecs.sharding.fetching import MISSING

__all__ = ["INDEX_DTYPE", "OpenShard"]

Array = np.ndarray[Any, Any]

INDEX_DTYPE = np.dtype("<u8")

MIN_PART_NBYTES = 8 << 10
"""Parts that are smaller than this on average are joined: writing them separately costs more."""


class OpenShard:
    """The encoded inner chunks of one shard, by their coordinates. Inner chunks may be set from several threads.

    ``grid`` is the number of inner chunks in each dimension. ``stored`` is the encoded shard and ``index`` its decoded
    index of shape (*grid, 2). Both are None for a new shard. Raises CodecError if the index refers to bytes outside of
    the shard.
    """

    def __init__(
        self, grid: tuple[int, ...], stored: Buffer | None = None, index: Array | None = None
    ) -> None:
        self._grid = grid
        self._view = memoryview(b"" if stored is None else stored).cast("B")
        size = len(self._view)
        count = int(np.prod(grid, dtype=np.int64))
        entries = np.full((count, 2), MISSING, INDEX_DTYPE) if index is None else index.reshape(-1, 2)
        self._present = (entries != MISSING).any(axis=1)
        # Differences are compared, because sums of the values in an invalid index may overflow.
        outside = self._present & (
            (entries[:, 0] > size) | (entries[:, 1] > size - np.minimum(entries[:, 0], size))
        )
        if outside.any():
            number = int(np.nonzero(outside)[0][0])
            offset, nbytes = map(int, entries[number])
            coords = tuple(map(int, np.unravel_index(number, grid)))
            raise CodecError(
                f"inner chunk {coords}: the index gives bytes {offset} to {offset + nbytes}, but the shard has {size} "
                "bytes: it is truncated or its index is wrong"
            )
        self._entries = np.where(self._present[:, None], entries, 0).astype(np.int64)
        self._changed: dict[int, Buffer | None] = {}

    def _number(self, coords: tuple[int, ...]) -> int:
        number = 0
        for i, length in zip(coords, self._grid, strict=True):
            number = number * length + i
        return number

    def get(self, coords: tuple[int, ...]) -> Buffer | None:
        """Return the stored bytes of an inner chunk, or None if it is missing."""
        number = self._number(coords)
        if not self._present[number]:
            return None
        offset, nbytes = map(int, self._entries[number])
        return self._view[offset : offset + nbytes]

    def set(self, coords: tuple[int, ...], data: Buffer | None) -> None:
        """Replace an inner chunk. ``data`` must stay unchanged while ``parts`` are used. None omits the inner chunk."""
        self._changed[self._number(coords)] = data

    @property
    def empty(self) -> bool:
        """Whether the shard contains no inner chunk."""
        if any(data is not None for data in self._changed.values()):
            return False
        return int(self._present.sum()) == sum(bool(self._present[number]) for number in self._changed)

    def parts(
        self, encode_index: Callable[[Array], Buffer], index_nbytes: int, index_first: bool
    ) -> list[Buffer]:
        """Return the encoded shard, in parts that the caller concatenates.

        Inner chunks are in C order of their coordinates. ``encode_index`` encodes the index, an array of shape
        (*grid, 2), to ``index_nbytes`` bytes.
        """
        sizes = self._entries[:, 1].copy()
        present = self._present.copy()
        replaced = np.zeros(len(sizes), bool)
        for number, data in self._changed.items():
            replaced[number] = True
            present[number] = data is not None
            sizes[number] = 0 if data is None else memoryview(data).nbytes
        order = np.nonzero(present)[0]
        sizes = sizes[order]
        ends = np.cumsum(sizes) + (index_nbytes if index_first else 0)
        index = np.full((len(present), 2), MISSING, INDEX_DTYPE)
        index[order, 0] = ends - sizes
        index[order, 1] = sizes
        encoded_index = encode_index(index.reshape((*self._grid, 2)))
        parts = [] if not len(order) else self._runs(order, sizes, replaced[order])
        parts.insert(0 if index_first else len(parts), encoded_index)
        are_small = int(sizes.sum()) < len(parts) * MIN_PART_NBYTES
        return [b"".join(parts)] if are_small else parts

    def _runs(self, order: Array, sizes: Array, replaced: Array) -> list[Buffer]:
        """Return the data: each replaced inner chunk, and runs of unchanged ones that are adjacent in the stored
        shard.
        """
        begins = self._entries[order, 0]
        edges = np.ones(len(order), bool)
        edges[1:] = replaced[1:] | replaced[:-1] | (begins[1:] != begins[:-1] + sizes[:-1])
        firsts = np.nonzero(edges)[0]
        lasts = np.append(firsts[1:], len(order)) - 1
        starts = begins[firsts].tolist()
        stops = (begins[lasts] + sizes[lasts]).tolist()
        parts: list[Buffer] = []
        for number, is_replaced, start, stop in zip(
            order[firsts].tolist(), replaced[firsts].tolist(), starts, stops, strict=True
        ):
            data = self._changed[number] if is_replaced else self._view[start:stop]
            parts.append(data or b"")
        return parts
