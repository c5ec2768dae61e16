"""A shard that is being made or changed: the bytes that were stored, their index, and what is to be another now.

The format is that of ``sharding.py``. Nothing is done for each inner chunk that stays: those that lie one after the
other are taken over as one piece of memory, be they thousands.
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
"""Parts that are on average smaller than this are joined: handing them on one by one costs more."""


class OpenShard:
    """The encoded inner chunks of one shard, by their coordinates. Inner chunks may be set from several threads.

    ``grid`` is the number of inner chunks in each dimension. ``stored`` and ``index`` (of shape (*grid, 2), as
    decoded) are None for a shard that is not there yet. Raises CodecError when the index leads outside.
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
        # By differences, as sums of what an index claims may overflow.
        outside = self._present & (
            (entries[:, 0] > size) | (entries[:, 1] > size - np.minimum(entries[:, 0], size))
        )
        if outside.any():
            number = int(np.nonzero(outside)[0][0])
            offset, nbytes = map(int, entries[number])
            coords = tuple(map(int, np.unravel_index(number, grid)))
            raise CodecError(
                f"inner chunk {coords} is said to be at bytes {offset} to {offset + nbytes}, but the shard has {size} "
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
        """Return an inner chunk as it was stored, or None when there was none."""
        number = self._number(coords)
        if not self._present[number]:
            return None
        offset, nbytes = map(int, self._entries[number])
        return self._view[offset : offset + nbytes]

    def set(self, coords: tuple[int, ...], data: Buffer | None) -> None:
        """Let an inner chunk be ``data``, which stays as it is until ``parts`` are used; None to leave it out."""
        self._changed[self._number(coords)] = data

    @property
    def empty(self) -> bool:
        """Whether it is to hold no inner chunk."""
        if any(data is not None for data in self._changed.values()):
            return False
        return int(self._present.sum()) == sum(bool(self._present[number]) for number in self._changed)

    def parts(
        self, encode_index: Callable[[Array], Buffer], index_nbytes: int, index_first: bool
    ) -> list[Buffer]:
        """Return the shard as it is to be stored, in parts to be joined.

        Inner chunks are laid down in C order of their coordinates. ``encode_index`` makes bytes of the index.
        """
        sizes = self._entries[:, 1].copy()
        present = self._present.copy()
        fresh = np.zeros(len(sizes), bool)
        for number, data in self._changed.items():
            fresh[number] = True
            present[number] = data is not None
            sizes[number] = 0 if data is None else memoryview(data).nbytes
        order = np.nonzero(present)[0]
        sizes = sizes[order]
        ends = np.cumsum(sizes) + (index_nbytes if index_first else 0)
        index = np.full((len(present), 2), MISSING, INDEX_DTYPE)
        index[order, 0] = ends - sizes
        index[order, 1] = sizes
        encoded_index = encode_index(index.reshape((*self._grid, 2)))
        parts = [] if not len(order) else self._runs(order, sizes, fresh[order])
        parts.insert(0 if index_first else len(parts), encoded_index)
        small = int(sizes.sum()) < len(parts) * MIN_PART_NBYTES
        return [b"".join(parts)] if small else parts

    def _runs(self, order: Array, sizes: Array, fresh: Array) -> list[Buffer]:
        """Return the data: each inner chunk that changed, and runs of those that lay one after the other."""
        begins = self._entries[order, 0]
        edges = np.ones(len(order), bool)
        edges[1:] = fresh[1:] | fresh[:-1] | (begins[1:] != begins[:-1] + sizes[:-1])
        firsts = np.nonzero(edges)[0]
        lasts = np.append(firsts[1:], len(order)) - 1
        starts = begins[firsts].tolist()
        stops = (begins[lasts] + sizes[lasts]).tolist()
        parts: list[Buffer] = []
        for number, is_fresh, start, stop in zip(
            order[firsts].tolist(), fresh[firsts].tolist(), starts, stops, strict=True
        ):
            data = self._changed[number] if is_fresh else self._view[start:stop]
            parts.append(data or b"")
        return parts
