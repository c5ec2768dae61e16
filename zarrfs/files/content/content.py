"""The content of a virtual file: a sequence of segments, whose sizes are known before any of them is read."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import Protocol

import numpy as np

from zarrfs.engine.array.array import Array
from zarrfs.engine.indexing.flat_ranges import FlatOrder
from zarrfs.files.content.block_reader import BlockReader
from zarrfs.files.content.blocks import BlockPool
from zarrfs.files.content.streams import ArrayStream, ByteSwappedStream, FlatStream

__all__ = ["ArraySegment", "BytesSegment", "PartSegment", "Segment", "StreamSegment", "VirtualFileContent"]


class Segment(Protocol):
    """A contiguous range of bytes of a virtual file."""

    nbytes: int

    def read_into(self, offset: int, out: memoryview) -> None:
        """Fill ``out`` with the bytes from ``offset``. The range lies within the segment."""


class BytesSegment:
    """Bytes in memory, such as a header."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.nbytes = len(data)

    def read_into(self, offset: int, out: memoryview) -> None:
        out[:] = self.data[offset : offset + len(out)]


class StreamSegment:
    """A flat byte stream that is read in blocks when it is read sequentially."""

    def __init__(self, stream: FlatStream) -> None:
        self._stream = stream
        self._blocks: BlockReader | None = None
        self.nbytes = stream.nbytes

    @property
    def shape(self) -> tuple[int, ...]:
        """The length of each dimension, from the slowest to the fastest one in the segment."""
        return self._stream.shape

    def blocks(self, pool: BlockPool) -> BlockReader:
        """Return the reader of this segment's blocks in a pool.

        All open files that show the segment share the reader, and so its blocks.
        """
        reader = self._blocks
        if reader is None or reader.pool is not pool:
            reader = self._blocks = BlockReader(self._stream, pool)
        return reader

    def read_into(self, offset: int, out: memoryview) -> None:
        self._stream.read_into(offset, np.frombuffer(out, np.uint8))

    def stored_ranges(self) -> list[tuple[int, int]] | None:
        """Return ranges (start, stop), in ascending order, outside of which all bytes are 0 now, because the chunks are
        missing. None if that is unknown. Raises ZarrError and OSError if the store cannot be listed.
        """
        return self._stream.stored_ranges()


class ArraySegment(StreamSegment):
    """The elements of an array in C or F order, or with the dimensions in another order (see ``FlatOrder``).

    ``swap`` reverses the bytes of each element. In complex elements it reverses those of each part.

    Attributes:
        array, order: the array and the order of its dimensions.
        swap_width: the number of bytes that are reversed together; 1 for none.
    """

    def __init__(self, array: Array, order: FlatOrder = "C", swap: bool = False) -> None:
        stream: FlatStream = ArrayStream(array, order)
        self.array = array
        self.order = order
        self.swap_width = array.itemsize // (2 if array.dtype.kind == "c" else 1) if swap else 1
        if self.swap_width > 1:
            stream = ByteSwappedStream(stream, self.swap_width)
        super().__init__(stream)


class PartSegment:
    """The ``nbytes`` bytes of another segment from ``start``, such as one plane of an array.

    A file can contain several parts of one segment, in any order. They share its blocks.
    """

    def __init__(self, segment: Segment, start: int, nbytes: int) -> None:
        if start < 0 or nbytes < 0 or start + nbytes > segment.nbytes:
            raise ValueError(
                f"the bytes {start} to {start + nbytes} are not part of a segment of {segment.nbytes} bytes"
            )
        self.segment = segment
        self.start = start
        self.nbytes = nbytes

    def read_into(self, offset: int, out: memoryview) -> None:
        self.segment.read_into(self.start + offset, out)


class VirtualFileContent:
    """Segments in order. ``size`` is exact and is known without reading any data."""

    def __init__(self, segments: Sequence[Segment]) -> None:
        self._segments: list[Segment] = []
        self._starts: list[int] = []
        self._ends: list[int] = []
        self._skipped: list[int] = []
        self.size = 0
        for segment in segments:
            source, skipped = segment, 0
            while isinstance(source, PartSegment):
                skipped += source.start
                source = source.segment
            if segment.nbytes:
                self._segments.append(source)
                self._starts.append(self.size)
                self._skipped.append(skipped)
                self.size += segment.nbytes
                self._ends.append(self.size)

    @property
    def in_memory(self) -> bool:
        """Whether all bytes are in memory, so that no array is referenced."""
        return all(isinstance(segment, BytesSegment) for segment in self._segments)

    @property
    def arrays(self) -> list[Array]:
        """The arrays whose elements the file contains, each once."""
        arrays = {id(s.array): s.array for s in self._segments if isinstance(s, ArraySegment)}
        return list(arrays.values())

    @property
    def is_c_ordered(self) -> bool:
        """Whether the elements of all arrays are in C order."""
        return all(s.order == "C" for s in self._segments if isinstance(s, ArraySegment))

    @property
    def memory_nbytes(self) -> int:
        """The number of bytes that are in memory."""
        return sum(segment.nbytes for segment in self._segments if isinstance(segment, BytesSegment))

    def has_same_layout(self, other: VirtualFileContent) -> bool:
        """Return whether both contents have the same bytes if the elements of their arrays are equal. The bytes in
        memory are compared. The other content may be longer if it is an array without a header that was extended.
        """
        pairs = list(zip(self._segments, other._segments, strict=False))
        if len(pairs) == len(self._segments) == len(other._segments) == 1:
            old, new = pairs[0]
            if isinstance(old, StreamSegment) and isinstance(new, StreamSegment) and self.size == old.nbytes:
                return old.shape[1:] == new.shape[1:] and self.size <= new.nbytes == other.size
        if (self.size, self._starts, self._skipped) != (other.size, other._starts, other._skipped):
            return False
        return all(_continues(old, new) for old, new in pairs)

    def locate(self, offset: int) -> tuple[Segment, int, int]:
        """Return the segment that contains a byte of the file, the offset of the byte in it, and the number of bytes of
        the file from there to the end of the segment.

        Instead of a part of a segment, the segment itself is returned.
        """
        index = bisect_right(self._starts, offset) - 1
        start = self._skipped[index] + offset - self._starts[index]
        return self._segments[index], start, self._ends[index] - offset

    def parts(self, offset: int, size: int) -> Iterator[tuple[Segment, int, int]]:
        """Yield (segment, offset in it, length) for each segment that a range intersects, in order; see ``locate``.

        The range is clipped to the file.
        """
        stop = min(offset + size, self.size)
        while offset < stop:
            segment, start, available = self.locate(offset)
            length = min(stop - offset, available)
            yield segment, start, length
            offset += length

    def data_ranges(self) -> list[tuple[int, int]]:
        """Return the ranges (start, stop) of the file, in ascending order, that are not known to consist of missing
        chunks and to be 0. Raises ZarrError and OSError if the store cannot be listed.
        """
        ranges: list[tuple[int, int]] = []
        for segment, begin, end, skipped in zip(
            self._segments, self._starts, self._ends, self._skipped, strict=True
        ):
            stored = segment.stored_ranges() if isinstance(segment, StreamSegment) else None
            for start, stop in [(skipped, skipped + end - begin)] if stored is None else stored:
                low, high = max(begin, start - skipped + begin), min(end, stop - skipped + begin)
                if low < high:
                    low = ranges.pop()[0] if ranges and ranges[-1][1] == low else low
                    ranges.append((low, high))
        return ranges

    def read_into(self, offset: int, out: memoryview) -> int:
        """Fill ``out`` from ``offset``, as far as the file goes. Return the number of bytes."""
        done = 0
        for segment, start, length in self.parts(offset, len(out)):
            segment.read_into(start, out[done : done + length])
            done += length
        return done

    def read(self, offset: int, size: int) -> bytes:
        """Return at most ``size`` bytes from ``offset``."""
        out = bytearray(max(0, min(size, self.size - offset)))
        self.read_into(offset, memoryview(out))
        return bytes(out)


def _continues(old: Segment, new: Segment) -> bool:
    if isinstance(old, BytesSegment) and isinstance(new, BytesSegment):
        return old.data == new.data
    return isinstance(old, StreamSegment) and isinstance(new, StreamSegment) and old.shape == new.shape
