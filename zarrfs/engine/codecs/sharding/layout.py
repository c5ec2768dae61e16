"""The inner chunks of shards of one shape: their codecs, the index, and those that a region intersects."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any

import numpy as np

from zarrfs.engine.codecs.base import ByteRange, ByteSource, ChunkSpec, Codec, CodecError, Region
from zarrfs.engine.codecs.pipeline.pipeline import CodecPipeline
from zarrfs.engine.codecs.sharding.encoding import INDEX_DTYPE
from zarrfs.engine.codecs.sharding.fetching import MISSING, InnerChunk
from zarrfs.errors import MetadataError

__all__ = ["ShardLayout"]

Array = np.ndarray[Any, Any]

MAX_INDEX_NBYTES = 1 << 30
"""The largest supported index, that of 67 million inner chunks. It bounds the memory that metadata can request."""


class ShardLayout:
    """The inner chunks of shards of one shape.

    Raises MetadataError on construction if the inner chunks do not fit the shard, or the index has no fixed size.

    Attributes:
        grid: the number of inner chunks per dimension.
        chunk_spec: the decoded inner chunk.
        pipeline: the codecs of the inner chunks.
        index_pipeline: the codecs of the index.
        index_nbytes: the size of the encoded index.
        index_location: ``"start"`` or ``"end"``, where the index is in the shard.
    """

    def __init__(
        self,
        chunk_shape: Sequence[int],
        codecs: Sequence[Codec],
        index_codecs: Sequence[Codec],
        index_location: str,
        spec: ChunkSpec,
    ) -> None:
        inner = tuple(chunk_shape)
        if len(inner) != len(spec.shape):
            raise MetadataError(
                f"sharding_indexed: chunk_shape {list(inner)} has {len(inner)} dimensions, "
                f"the shard {list(spec.shape)} has {len(spec.shape)}; expected equal numbers"
            )
        for axis, (part, length) in enumerate(zip(inner, spec.shape, strict=True)):
            if length % part:
                raise MetadataError(
                    f"sharding_indexed: inner chunk length {part} does not divide the shard length {length} in "
                    f"dimension {axis}"
                )
        self.grid = tuple(length // part for part, length in zip(inner, spec.shape, strict=True))
        self.chunk_spec = ChunkSpec(inner, spec.dtype, spec.fill_value)
        self.index_location = index_location
        self.pipeline = CodecPipeline(codecs, self.chunk_spec)
        index_spec = ChunkSpec((*self.grid, 2), INDEX_DTYPE, INDEX_DTYPE.type(MISSING))
        self.index_pipeline = CodecPipeline(index_codecs, index_spec)
        if self.index_pipeline.chain.encoded_size is None:
            raise MetadataError(
                f"sharding_indexed: index_codecs {[c.name for c in index_codecs]} encode to a size that depends "
                "on the data; the index must have a fixed size and cannot be compressed"
            )
        self.index_nbytes = self.index_pipeline.chain.encoded_size
        if self.index_nbytes > MAX_INDEX_NBYTES:
            raise MetadataError(
                f"sharding_indexed: a shard of {list(spec.shape)} in inner chunks of {list(inner)} needs an index of "
                f"{self.index_nbytes:,} bytes, expected at most {MAX_INDEX_NBYTES:,}"
            )

    def read_index(self, source: ByteSource) -> Array | None:
        """Return the index of a shard, an array of shape (*grid, 2), or None if the shard is missing."""
        size = self.index_nbytes
        byte_range = ByteRange(0, size) if self.index_location == "start" else ByteRange(-size)
        ranges = source.read_ranges([byte_range])
        if ranges is None:
            return None
        if len(ranges[0]) != size:
            raise CodecError(
                f"the shard has {len(ranges[0])} bytes, expected at least the {size} bytes of its index "
                f"({self.grid} inner chunks): it is truncated, or chunk_shape or index_codecs are wrong"
            )
        return np.ascontiguousarray(self.index_pipeline.decoder.decode(ranges[0]), INDEX_DTYPE)

    def inner_chunks(self, index: Array, region: Region) -> Iterator[InnerChunk]:
        """Yield the inner chunks that a region of the shard intersects, in C order. ``index`` is that of the shard."""
        spans = []
        axes = []
        for part, length in zip(region, self.chunk_spec.shape, strict=True):
            start, stop = part.start, part.stop
            if stop <= start:
                return
            axis = []
            first = i = start // length
            begin = i * length
            low = start
            while low < stop:
                end = begin + length
                high = stop if stop < end else end
                axis.append((i, slice(low - begin, high - begin, 1), slice(low - start, high - start, 1)))
                i += 1
                low = begin = end
            spans.append(slice(first, i))
            axes.append(axis)
        entries = index[tuple(spans)].reshape(-1, 2).tolist()
        for (offset, nbytes), parts in zip(entries, product(*axes), strict=True):
            coords, inner, target = zip(*parts, strict=True) if parts else ((), (), ())
            yield InnerChunk(coords, offset, nbytes, inner, target)
