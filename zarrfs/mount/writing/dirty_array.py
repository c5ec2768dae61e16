"""Written bytes of one array that are not yet in the store.

This module only keeps and merges bytes. ``write_buffer.py`` synchronizes the access, bounds the memory, and writes the
chunks.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from zarrfs.engine.array.array import Array
from zarrfs.engine.indexing.flat_ranges import FlatOrder
from zarrfs.engine.write.patching import Patch
from zarrfs.mount.writing.tiles import ElementBytes, TilePart, swapped, tile_axes, tile_parts

__all__ = ["DirtyArray", "DirtyChunk", "Overlay"]

Bytes = np.ndarray[Any, Any]
Coords = tuple[int, ...]


class _Tile:
    """The bytes of a tile of which some or all were written.

    Attributes:
        begin: the first index in each dimension of the array.
        data: uint8 of the shape of the tile and the size of an element.
        mask: the bytes that were written; None for all.
        unwritten: the number of bytes that were not written.
    """

    __slots__ = ("begin", "data", "mask", "unwritten")

    def __init__(self, begin: Coords, shape: tuple[int, ...], itemsize: int) -> None:
        self.begin = begin
        self.data: Bytes = np.empty((*shape, itemsize), np.uint8)
        self.mask: Bytes | None = None
        self.unwritten = self.data.size

    @property
    def nbytes(self) -> int:
        return self.data.nbytes + (0 if self.mask is None else self.mask.nbytes)

    def put(self, region: tuple[slice, ...], data: Bytes, mask: Bytes | None) -> None:
        """Write bytes to a region; with a mask, only those that it selects."""
        if mask is None and data.size == self.data.size:
            self.data[region] = data
            self.mask, self.unwritten = None, 0
            return
        if self.unwritten and self.mask is None:
            self.mask = np.zeros(self.data.shape, bool)
        if mask is None:
            self.data[region] = data
        else:
            np.copyto(self.data[region], data, where=mask)
        if self.mask is None:
            return
        target = self.mask[region]
        before = int(np.count_nonzero(target))
        if mask is None:
            target[...] = True
            after = target.size
        else:
            target |= mask
            after = int(np.count_nonzero(target))
        self.unwritten -= after - before
        if not self.unwritten:
            self.mask = None

    def get(self, region: tuple[slice, ...], data: Bytes, mask: Bytes) -> None:
        """Copy the written bytes of a region to ``data`` and mark them in ``mask``."""
        if self.mask is None:
            data[...] = self.data[region]
            mask[...] = True
        else:
            np.copyto(data, self.data[region], where=self.mask[region])
            mask |= self.mask[region]


@dataclass
class DirtyChunk:
    """The written bytes of one chunk (one shard, if the array is sharded).

    Attributes:
        tiles: the tiles of which bytes were written.
        written_at: the time of the last write.
    """

    tiles: dict[Coords, _Tile] = field(default_factory=dict)
    written_at: float = 0.0

    @property
    def nbytes(self) -> int:
        return sum(tile.nbytes for tile in self.tiles.values())

    @property
    def is_complete(self) -> bool:
        """Whether all bytes of its tiles were written."""
        return not any(tile.unwritten for tile in self.tiles.values())

    def merge_older(self, older: DirtyChunk) -> None:
        """Add the bytes of ``older`` that were not written since."""
        for coords, old in older.tiles.items():
            new = self.tiles.get(coords)
            if new is None or new.data.shape != old.data.shape:
                self.tiles.setdefault(coords, old)
                continue
            whole = tuple(slice(0, n) for n in new.data.shape[:-1])
            missing = np.zeros(new.data.shape, bool) if new.mask is None else ~new.mask
            if old.mask is not None:
                missing &= old.mask
            new.put(whole, old.data, missing)

    def patches(self, array: Array, coords: Coords) -> list[Patch]:
        """Return the bytes as patches of the chunk, without what lies outside the present shape of the array."""
        axes = array.storage.axes
        chunk_begin = [axis.begin(c) for axis, c in zip(axes, coords, strict=True)]
        patches = []
        for tile in self.tiles.values():
            lengths = [
                min(n, axis.length - b)
                for n, axis, b in zip(tile.data.shape[:-1], axes, tile.begin, strict=True)
            ]
            if any(n <= 0 for n in lengths):
                continue
            inside = tuple(slice(0, n) for n in lengths)
            region = tuple(
                slice(b - c, b - c + n, 1) for b, c, n in zip(tile.begin, chunk_begin, lengths, strict=True)
            )
            mask = None if tile.mask is None else tile.mask[inside]
            patches.append(Patch(region, np.ascontiguousarray(tile.data[inside]), mask))
        return patches


class DirtyArray:
    """The written bytes of one array. Not thread-safe.

    Attributes:
        array: the array.
        chunks: the chunks with bytes to be written.
        flushing: the chunks that are being written to the store. Their bytes are older than those of ``chunks``.
        written_at, flushed_at: the time of the last write and of the last change of the store.
    """

    def __init__(self, array: Array) -> None:
        self.array = array
        self.chunks: dict[Coords, DirtyChunk] = {}
        self.flushing: dict[Coords, DirtyChunk] = {}
        self.written_at = float("-inf")
        self.flushed_at = float("-inf")

    @property
    def is_dirty(self) -> bool:
        return bool(self.chunks or self.flushing)

    @staticmethod
    def parts(array: Array, order: FlatOrder, elements: ElementBytes) -> Iterator[TilePart]:
        """Yield the parts of a range in tiles; see ``tile_parts``. The shape of ``array`` defines the flat stream."""
        storage = array.storage
        return tile_parts(storage, tile_axes(storage), order, elements)

    def chunk_of(self, part: TilePart) -> Coords:
        """Return the chunk that contains a tile."""
        return tuple(
            axis.find(begin) for axis, begin in zip(self.array.storage.axes, part.begin, strict=True)
        )

    def put(self, coords: Coords, part: TilePart, now: float) -> int | None:
        """Keep the bytes of a part in the chunk at ``coords``. Return the number of bytes by which the memory grows.

        None: the tile has another shape, because the array was resized. The chunk has to be flushed first.
        """
        chunk = self.chunks.get(coords)
        if chunk is None:
            chunk = self.chunks[coords] = DirtyChunk()
        tile = chunk.tiles.get(part.coords)
        if tile is None:
            tile = chunk.tiles[part.coords] = _Tile(part.begin, part.shape, part.view.shape[-1])
            before = 0
        elif tile.data.shape[:-1] != part.shape:
            return None
        else:
            before = tile.nbytes
        tile.put(part.region, part.view, part.mask)
        chunk.written_at = self.written_at = now
        return tile.nbytes - before

    def overlay(
        self, array: Array, order: FlatOrder, swap_width: int, offset: int, size: int
    ) -> Overlay | None:
        """Return a copy of the written bytes in a range of a flat stream, or None if there are none."""
        itemsize = self.array.itemsize
        first, skip = divmod(offset, itemsize)
        count = -(-(offset + size) // itemsize) - first
        data = np.empty((count, itemsize), np.uint8)
        mask = np.zeros((count, itemsize), bool)
        found = False
        for part in self.parts(array, order, ElementBytes(first, data, mask)):
            coords = self.chunk_of(part)
            for chunks in (self.flushing, self.chunks):
                chunk = chunks.get(coords)
                tile = None if chunk is None else chunk.tiles.get(part.coords)
                if tile is None:
                    continue
                region = part.region
                if tile.data.shape[:-1] != part.shape:
                    # The array was resized: the tile has only some of the elements, or more of them.
                    region = tuple(
                        slice(r.start, min(r.stop, n))
                        for r, n in zip(region, tile.data.shape[:-1], strict=True)
                    )
                inside = tuple(slice(0, max(0, r.stop - r.start)) for r in region)
                assert part.mask is not None
                tile.get(region, part.view[inside], part.mask[inside])
                found = True
        if not found:
            return None
        return Overlay(
            swapped(data, swap_width).reshape(-1)[skip : skip + size],
            swapped(mask, swap_width).reshape(-1)[skip : skip + size],
        )


class Overlay:
    """Bytes that replace some of the bytes of a range that is read from the store."""

    def __init__(self, data: Bytes, mask: Bytes) -> None:
        self._data = data
        self._mask = mask
        self.is_complete = bool(mask.all())
        """Whether the range need not be read from the store."""

    def apply(self, out: Bytes) -> None:
        """Replace bytes of ``out``, a one-dimensional array of uint8 of the size of the range."""
        np.copyto(out, self._data, where=self._mask)
