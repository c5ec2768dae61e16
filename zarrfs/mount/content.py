"""A virtual file: pieces one after the other, each known in size beforehand and read when asked for."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import Literal, Protocol

import numpy as np

from zarrfs.engine.nodes.array import Array

__all__ = ["ArraySegment", "BytesSegment", "Piece", "VirtualFileContent"]


class Piece(Protocol):
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
        self._swap = array.itemsize // (2 if array.dtype.kind == "c" else 1) if swap else 1
        self.nbytes = array.nbytes

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

    def __init__(self, pieces: Sequence[Piece]) -> None:
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

    def read_into(self, offset: int, out: memoryview) -> int:
        """Fill ``out`` from ``offset``, as far as the file goes; return how many bytes that is."""
        count = max(0, min(len(out), self.size - offset))
        done = 0
        index = bisect_right(self._starts, offset) - 1
        while done < count:
            piece = self._pieces[index]
            inside = offset + done - self._starts[index]
            step = min(count - done, piece.nbytes - inside)
            piece.read_into(inside, out[done : done + step])
            done += step
            index += 1
        return count

    def read(self, offset: int, size: int) -> bytes:
        """Return up to ``size`` bytes from ``offset``."""
        out = bytearray(max(0, min(size, self.size - offset)))
        self.read_into(offset, memoryview(out))
        return bytes(out)
