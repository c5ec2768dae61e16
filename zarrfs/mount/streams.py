"""Flat byte streams of virtual files that are read in blocks: the elements of an array in some order, possibly with
the bytes of each element reversed.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, Protocol

import numpy as np

from zarrfs.engine.indexing.projections import FlatOrder
from zarrfs.engine.io.flat import BlockGrid, block_grid, flat_version
from zarrfs.engine.nodes.array import Array

__all__ = ["ArrayStream", "Bytes", "FlatStream", "SignFlippedStream", "SwappedStream"]

Bytes = np.ndarray[Any, np.dtype[np.uint8]]


SIGN_BIT = 0x80


class FlatStream(Protocol):
    """A stream of bytes of known size that can be read at any offset. Thread-safe.

    Attributes:
        nbytes: the size of the stream.
    """

    nbytes: int

    def grid(self, max_block_nbytes: int) -> BlockGrid:
        """Return the division of the stream into blocks of at most ``max_block_nbytes`` bytes."""

    def read_into(self, start: int, out: Bytes, *, keep_chunks: bool = True) -> None:
        """Fill ``out``, a one-dimensional array of uint8, with the bytes from ``start``. The range lies in the stream.

        With ``keep_chunks=False`` decoded chunks do not enter the cache of chunks.
        """

    def version(self, start: int, stop: int) -> Hashable | None:
        """Return a value that changes when the bytes of the range change, or None where that is unknown."""


class ArrayStream:
    """The elements of an array in C or F order, or with the dimensions in another order (see ``FlatOrder``)."""

    def __init__(self, array: Array, order: FlatOrder = "C") -> None:
        self._array = array
        self._order = order
        self.nbytes = array.nbytes

    def grid(self, max_block_nbytes: int) -> BlockGrid:
        return block_grid(self._array.storage, self._order, max_block_nbytes)

    def read_into(self, start: int, out: Bytes, *, keep_chunks: bool = True) -> None:
        self._array.read_bytes_into(start, out, self._order, keep_chunks=keep_chunks)

    def version(self, start: int, stop: int) -> Hashable | None:
        return flat_version(self._array.storage, start, stop - start, self._order)


class SwappedStream:
    """Another stream in which the bytes of each group of ``width`` bytes are reversed."""

    def __init__(self, stream: FlatStream, width: int) -> None:
        self._stream = stream
        self._width = width
        self.nbytes = stream.nbytes

    def grid(self, max_block_nbytes: int) -> BlockGrid:
        return self._stream.grid(max_block_nbytes)

    def read_into(self, start: int, out: Bytes, *, keep_chunks: bool = True) -> None:
        width = self._width
        skip = start % width
        stop = -(-(start + out.size) // width) * width
        is_aligned = skip == 0 and stop - start == out.size
        raw = out if is_aligned else np.empty(stop - start + skip, np.uint8)
        self._stream.read_into(start - skip, raw, keep_chunks=keep_chunks)
        if width in (2, 4, 8):
            raw.view(f"u{width}").byteswap(inplace=True)
        else:
            groups = raw.reshape(-1, width)
            groups[...] = groups[:, ::-1].copy()
        if not is_aligned:
            out[...] = raw[skip : skip + out.size]

    def version(self, start: int, stop: int) -> Hashable | None:
        return self._stream.version(start, stop)


class SignFlippedStream:
    """A stream of big-endian integers of ``width`` bytes whose highest bits are inverted.

    This subtracts half of the range from unsigned integers, which become signed ones, and the reverse.
    """

    def __init__(self, stream: FlatStream, width: int) -> None:
        self._stream = stream
        self._width = width
        self.nbytes = stream.nbytes

    def grid(self, max_block_nbytes: int) -> BlockGrid:
        return self._stream.grid(max_block_nbytes)

    def read_into(self, start: int, out: Bytes, *, keep_chunks: bool = True) -> None:
        self._stream.read_into(start, out, keep_chunks=keep_chunks)
        out[-start % self._width :: self._width] ^= SIGN_BIT

    def version(self, start: int, stop: int) -> Hashable | None:
        return self._stream.version(start, stop)
