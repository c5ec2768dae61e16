"""A virtual file: pieces one after the other, each known in size beforehand and read when asked for."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import Literal, Protocol

import numpy as np

from zarrfs.engine.nodes.array import Array
from zarrfs.mount.blocks import BlockPool, BlockReader

__all__ = ["ArraySegment", "BytesSegment", "Segment", "VirtualFileContent"]


class Segment(Protocol):
    """A run of bytes of a virtual file."""

    nbytes: int

    def read_into(self, offset: int, out: memoryview) -> None:
        """Fill ``out`` with the bytes from ``offset``; they are all there."""


class BytesSegment:
    """Bytes in memory: a header or trailer."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.nbytes = len(data)

    def read_into(self, offset: int, out: memoryview) -> None:
        out[:] = self._data[offset : offset + len(out)]


class ArraySegment:
    """The elements of an array in C or F order, decoded as they are read.

    ``swap`` reverses the bytes of each element (of each half of complex ones), for formats of the other byte order.
    """

    def __init__(self, array: Array, order: Literal["C", "F"] = "C", swap: bool = False) -> None:
        self._array = array
        self._order: Literal["C", "F"] = order
        self._blocks: BlockReader | None = None
        self._swap = array.itemsize // (2 if array.dtype.kind == "c" else 1) if swap else 1
        self.nbytes = array.nbytes

    def blocks(self, pool: BlockPool) -> BlockReader | None:
        """Return the reader of this segment's blocks in a pool, or None for a segment that is not read in blocks.

        All open files that show the segment share the reader, and so its blocks.
        """
        if self._swap != 1:
            return None
        reader = self._blocks
        if reader is None or reader.pool is not pool:
            reader = self._blocks = BlockReader(self._array, self._order, pool)
        return reader

    def read_into(self, offset: int, out: memoryview) -> None:
        if self._swap == 1:
            self._array.read_bytes_into(offset, out, self._order)
            return
        skip = offset % self._swap
        start, stop = offset - skip, -(-(offset + len(out)) // self._swap) * self._swap
        raw = np.frombuffer(self._array.read_bytes(start, stop - start, self._order), np.uint8)
        swapped = raw.reshape(-1, self._swap)[:, ::-1].reshape(-1)
        out[:] = swapped[skip : skip + len(out)].tobytes()


class VirtualFileContent:
    """Pieces in order. ``size`` is exact and known without reading anything."""

    def __init__(self, pieces: Sequence[Segment]) -> None:
        self._pieces = [piece for piece in pieces if piece.nbytes]
        self._starts: list[int] = []
        self.size = 0
        for piece in self._pieces:
            self._starts.append(self.size)
            self.size += piece.nbytes

    @property
    def in_memory(self) -> bool:
        """Whether all bytes are in memory, so that the layout refers to no array."""
        return all(isinstance(piece, BytesSegment) for piece in self._pieces)

    @property
    def held_nbytes(self) -> int:
        """The bytes that are in memory."""
        return sum(piece.nbytes for piece in self._pieces if isinstance(piece, BytesSegment))

    def parts(self, offset: int, size: int) -> Iterator[tuple[Segment, int, int]]:
        """Yield (segment, offset in it, length) for each segment that a range intersects, in order.

        The range is clipped to the file.
        """
        stop = min(offset + size, self.size)
        index = bisect_right(self._starts, offset) - 1
        while offset < stop:
            segment = self._pieces[index]
            start = offset - self._starts[index]
            length = min(stop - offset, segment.nbytes - start)
            yield segment, start, length
            offset += length
            index += 1

    def read_into(self, offset: int, out: memoryview) -> int:
        """Fill ``out`` from ``offset``, as far as the file goes. Return the number of bytes."""
        done = 0
        for segment, start, length in self.parts(offset, len(out)):
            segment.read_into(start, out[done : done + length])
            done += length
        return done

    def read(self, offset: int, size: int) -> bytes:
        """Return up to ``size`` bytes from ``offset``."""
        out = bytearray(max(0, min(size, self.size - offset)))
        self.read_into(offset, memoryview(out))
        return bytes(out)
