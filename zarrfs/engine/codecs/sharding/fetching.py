"""Fetching inner chunks of a shard: bounds, the whole shard, or byte ranges. The planner of reads decides which."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from zarrfs.engine.codecs.base import Buffer, BufferSource, ByteRange, ByteSource, CodecError, Region
from zarrfs.engine.read_limits import INNER_CHUNK_GAP

__all__ = ["MISSING", "InnerChunk", "PartSource", "check_bounds", "fetch_ranges", "fetch_whole", "shard_end"]

Array = np.ndarray[Any, Any]

MISSING = 2**64 - 1
"""Offset and size in the index of an inner chunk that is not stored."""


class InnerChunk(NamedTuple):
    """An inner chunk that a region of a shard intersects.

    Attributes:
        coords: the position in the grid of inner chunks.
        offset, nbytes: the byte range in the shard, ``MISSING`` where the inner chunk is not stored.
        region: the intersection, in the inner chunk.
        target: the intersection, in the output.
    """

    coords: tuple[int, ...]
    offset: int
    nbytes: int
    region: Region
    target: Region

    @property
    def is_missing(self) -> bool:
        """Whether the inner chunk is not stored."""
        return self.offset == MISSING and self.nbytes == MISSING

    def located(self, error: CodecError) -> CodecError:
        """Return the error with the place of the inner chunk."""
        located = CodecError(
            f"inner chunk {self.coords} at bytes {self.offset}+{self.nbytes} of the shard: {error}"
        )
        located.located = True
        return located


class PartSource:
    """A ByteSource that is a byte range of another one: one inner chunk of a shard."""

    in_memory = False

    def __init__(self, source: ByteSource, offset: int, nbytes: int) -> None:
        self.high_latency = source.high_latency
        self._source = source
        self._offset = offset
        self._nbytes = nbytes

    def read(self) -> Buffer | None:
        ranges = self.read_ranges([ByteRange(0, self._nbytes)])
        return None if ranges is None else ranges[0]

    def read_ranges(self, ranges: Sequence[ByteRange]) -> list[Buffer] | None:
        absolute = []
        for byte_range in ranges:
            start, stop = byte_range.resolve(self._nbytes)
            absolute.append(ByteRange(self._offset + start, stop - start))
        return self._source.read_ranges(absolute)

    def size(self) -> int:
        return self._nbytes


def shard_end(index: Array) -> int:
    """Return the offset at which the last inner chunk ends, according to the index."""
    entries = index.reshape(-1, 2)
    stored = entries[entries[:, 0] != MISSING]
    return int((stored[:, 0] + stored[:, 1]).max()) if len(stored) else 0


def check_bounds(chunks: Sequence[InnerChunk], size: int, max_nbytes: int | None) -> None:
    """Raise CodecError for an inner chunk outside of the shard's ``size`` bytes or larger than ``max_nbytes``."""
    for chunk in chunks:
        if max_nbytes is not None and chunk.nbytes > max_nbytes:
            raise CodecError(
                f"inner chunk {chunk.coords}: the index gives {chunk.nbytes:,} bytes, expected at most {max_nbytes:,}"
            )
        if chunk.offset + chunk.nbytes > size:
            raise CodecError(
                f"inner chunk {chunk.coords}: the index gives bytes {chunk.offset} to {chunk.offset + chunk.nbytes}, "
                f"but the shard has {size} bytes: it is truncated or its index is wrong"
            )


def fetch_whole(source: ByteSource, chunks: Sequence[InnerChunk], size: int) -> list[BufferSource]:
    """Fetch the shard, which has ``size`` bytes. Return a source for each inner chunk.

    Stores on servers divide a range of a known size among several connections.
    """
    if source.high_latency:
        ranges = source.read_ranges([ByteRange(0, size)])
        data = None if ranges is None else ranges[0]
    else:
        data = source.read()
    if data is None:
        raise CodecError("the shard was deleted while it was being read")
    view = memoryview(data)
    sources: list[BufferSource] = []
    for chunk in chunks:
        part = view[chunk.offset : chunk.offset + chunk.nbytes]
        if len(part) != chunk.nbytes:
            raise CodecError(
                f"inner chunk {chunk.coords}: the index gives an end at byte {chunk.offset + chunk.nbytes}, but "
                f"the shard has {len(view)} bytes: it is truncated, or was changed while it was being read"
            )
        sources.append(BufferSource(part))
    return sources


def fetch_ranges(source: ByteSource, chunks: Sequence[InnerChunk]) -> list[BufferSource]:
    """Fetch the inner chunks, nearby ones in one range. Return a source for each, in the given order."""
    ranges, groups = _coalesce(chunks)
    fetched = source.read_ranges(ranges)
    if fetched is None:
        raise CodecError("the shard was deleted while it was being read")
    sources: dict[int, BufferSource] = {}
    for group, (start, length), data in zip(groups, ranges, fetched, strict=True):
        if len(data) != length:
            raise CodecError(
                f"{len(data)} bytes of {length} were read at offset {start}: the shard is truncated"
            )
        view = memoryview(data)
        for i in group:
            begin = chunks[i].offset - start
            sources[i] = BufferSource(view[begin : begin + chunks[i].nbytes])
    return [sources[i] for i in range(len(chunks))]


def _coalesce(chunks: Sequence[InnerChunk]) -> tuple[list[ByteRange], list[list[int]]]:
    """Return the ranges that contain the inner chunks, and for each range the positions of its inner chunks."""
    if len(chunks) == 1:
        return [ByteRange(chunks[0].offset, chunks[0].nbytes)], [[0]]
    groups: list[list[int]] = []
    ranges: list[ByteRange] = []
    end = 0
    for i in sorted(range(len(chunks)), key=lambda i: chunks[i].offset):
        start, stop = chunks[i].offset, chunks[i].offset + chunks[i].nbytes
        if ranges and start <= end + INNER_CHUNK_GAP:
            end = max(end, stop)
            ranges[-1] = ByteRange(ranges[-1].start, end - ranges[-1].start)
            groups[-1].append(i)
        else:
            end = stop
            ranges.append(ByteRange(start, end - start))
            groups.append([i])
    return ranges, groups
