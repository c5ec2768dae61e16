"""Fetching inner chunks of a shard: bounds, strategy, and byte ranges.

Nearby inner chunks are fetched in one range. When most of a shard is requested it is fetched whole. Large inner chunks
that can be decoded in part are not fetched here; their codecs request the ranges that they need. If each request needs
a network round trip, larger inner chunks are fetched whole, so that a read needs fewer requests.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from zarrfs.engine.codecs.base import Buffer, BufferSource, ByteRange, ByteSource, CodecError, Region
from zarrfs.engine.codecs.pipeline.chain import CodecChain

__all__ = ["MISSING", "InnerChunk", "PartSource", "check_bounds", "fetch_inner_chunks", "shard_end"]

Array = np.ndarray[Any, Any]

MISSING = 2**64 - 1
"""Offset and size in the index of an inner chunk that is not stored."""

COALESCING_GAP = 64 << 10
"""Inner chunks closer than this many bytes are fetched in one range: a second request costs more than the gap."""

MIN_REMOTE_PART_NBYTES = 256 << 10
"""Smaller inner chunks are fetched whole from stores with high latency."""

MAX_REMOTE_WHOLE_NBYTES = 2 << 20
"""Compressed inner chunks up to this size are fetched whole from stores with high latency: decoding a part of one needs
at least two requests, one after the other.
"""

WHOLE_SHARE = 0.7
"""When at least this share of a shard's bytes is requested, the shard is fetched whole."""


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


def fetch_inner_chunks(
    source: ByteSource, chunks: Sequence[InnerChunk], size: int, index_nbytes: int, chain: CodecChain
) -> list[ByteSource]:
    """Return a source for each inner chunk, after fetching those that are cheapest to fetch together.

    ``size`` is the size of the shard and ``index_nbytes`` that of its index. ``chain`` is the codec chain of the inner
    chunks.
    """
    at_once = chunks
    if not source.in_memory and (chain.supports_partial or chain.sharded):
        limit = _max_whole_nbytes(source, chain)
        at_once = [c for c in chunks if c.nbytes < limit or not _is_partial(chain, c.region)]
    if source.in_memory or sum([c.nbytes for c in at_once]) >= WHOLE_SHARE * (size - index_nbytes):
        return _fetch_whole(source, chunks)
    fetched = _fetch_ranges(source, at_once) if at_once else []
    if len(at_once) == len(chunks):
        return list(fetched)
    by_coords = dict(zip([c.coords for c in at_once], fetched, strict=True))
    return [by_coords.get(c.coords) or PartSource(source, c.offset, c.nbytes) for c in chunks]


def _is_partial(chain: CodecChain, region: Region) -> bool:
    """Return whether a region of an inner chunk can be decoded from a part of its bytes."""
    return not chain.is_whole(region) if chain.sharded else chain.prefers_partial(region)


def _max_whole_nbytes(source: ByteSource, chain: CodecChain) -> int:
    """Return the size below which an inner chunk is fetched whole even if only a part of it is needed."""
    if not source.high_latency:
        return COALESCING_GAP
    return MAX_REMOTE_WHOLE_NBYTES if chain.compressed else MIN_REMOTE_PART_NBYTES


def _fetch_whole(source: ByteSource, chunks: Sequence[InnerChunk]) -> list[ByteSource]:
    data = source.read()
    if data is None:
        raise CodecError("the shard was deleted while it was being read")
    view = memoryview(data)
    sources: list[ByteSource] = []
    for chunk in chunks:
        part = view[chunk.offset : chunk.offset + chunk.nbytes]
        if len(part) != chunk.nbytes:
            raise CodecError(
                f"inner chunk {chunk.coords}: the index gives an end at byte {chunk.offset + chunk.nbytes}, but "
                f"the shard has {len(view)} bytes: it is truncated, or was changed while it was being read"
            )
        sources.append(BufferSource(part))
    return sources


def _fetch_ranges(source: ByteSource, chunks: Sequence[InnerChunk]) -> list[BufferSource]:
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
        if ranges and start <= end + COALESCING_GAP:
            end = max(end, stop)
            ranges[-1] = ByteRange(ranges[-1].start, end - ranges[-1].start)
            groups[-1].append(i)
        else:
            end = stop
            ranges.append(ByteRange(start, end - start))
            groups.append([i])
    return ranges, groups
