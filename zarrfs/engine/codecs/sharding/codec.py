"""sharding_indexed: many inner chunks and their index in one stored value.

Specification: https://zarr-specs.readthedocs.io/en/latest/v3/codecs/sharding-indexed/ (version 1.0)

Names: ``sharding_indexed``.

Example::

    {
      "name": "sharding_indexed",
      "configuration": {
        "chunk_shape": [32, 32],
        "codecs": [
          {"name": "bytes", "configuration": {"endian": "little"}},
          {"name": "gzip", "configuration": {"level": 1}}
        ],
        "index_codecs": [{"name": "bytes", "configuration": {"endian": "little"}}, {"name": "crc32c"}],
        "index_location": "end"
      }
    }

Reading one inner chunk costs the index and that chunk's bytes; the index and decoded inner chunks are kept in the
cache slot of the shard. Inner chunks near each other are fetched in one range; when most of a shard is wanted it
is fetched whole. Writing lays inner chunks down in C order of their coordinates; those that hold nothing but the
fill value are left out.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import product
from typing import Any, ClassVar, Self

import numpy as np

from zarrfs.engine.codecs.base import (
    Buffer,
    BufferSource,
    ByteRange,
    ByteSource,
    ChunkSpec,
    Codec,
    CodecError,
    InnerChunkReader,
    Region,
)
from zarrfs.engine.codecs.fill_values import is_filled
from zarrfs.engine.codecs.pipeline.chain import RegionCodec
from zarrfs.engine.codecs.pipeline.pipeline import CodecPipeline
from zarrfs.engine.codecs.registry import codec_to_json, codecs_from_json
from zarrfs.engine.codecs.sharding.encoding import INDEX_DTYPE, OpenShard
from zarrfs.engine.codecs.sharding.fetching import (
    MISSING,
    InnerChunk,
    PartSource,
    check_bounds,
    fetch_inner_chunks,
    shard_end,
)
from zarrfs.engine.json_checks import MAX_RANK
from zarrfs.engine.parallel import CORES, for_each
from zarrfs.errors import MetadataError, UnsupportedError

__all__ = ["ShardingCodec", "UncachedReader"]

Array = np.ndarray[Any, Any]

PARALLEL_NBYTES = 128 << 10
"""Inner chunks smaller than this are decoded on one thread: handing them out costs more than it gains."""

PARALLEL_ENCODED_NBYTES = 32 << 10
"""Compressing takes several times as long as decompressing, and is worth handing out sooner."""

MAX_INDEX_NBYTES = 1 << 30
"""An index of 67 million inner chunks; one that claims to be larger is a mistake or a trap."""


class _Layout:
    """What follows from the shape of the shard: grid, pipelines for inner chunks and for the index."""

    def __init__(self, codec: ShardingCodec, spec: ChunkSpec) -> None:
        inner = codec.chunk_shape
        if len(inner) != len(spec.shape):
            raise MetadataError(
                f"sharding_indexed: chunk_shape {list(inner)} has {len(inner)} dimensions, "
                f"the shard {list(spec.shape)} has {len(spec.shape)}; they must agree"
            )
        for axis, (part, length) in enumerate(zip(inner, spec.shape, strict=True)):
            if length % part:
                raise MetadataError(
                    f"sharding_indexed: inner chunk length {part} does not divide the shard length {length} in "
                    f"dimension {axis}"
                )
        self.grid = tuple(length // part for part, length in zip(inner, spec.shape, strict=True))
        self.chunk_spec = ChunkSpec(inner, spec.dtype, spec.fill_value)
        self.pipeline = CodecPipeline(codec.codecs, self.chunk_spec)
        index_spec = ChunkSpec((*self.grid, 2), INDEX_DTYPE, INDEX_DTYPE.type(MISSING))
        self.index_pipeline = CodecPipeline(codec.index_codecs, index_spec)
        if self.index_pipeline.chain.encoded_size is None:
            raise MetadataError(
                f"sharding_indexed: index_codecs {[c.name for c in codec.index_codecs]} give a size that varies "
                "with the data; the index must have a fixed size, so compression is not allowed there"
            )
        self.index_nbytes = self.index_pipeline.chain.encoded_size
        if self.index_nbytes > MAX_INDEX_NBYTES:
            raise MetadataError(
                f"sharding_indexed: a shard of {list(spec.shape)} in inner chunks of {list(inner)} needs an index of "
                f"{self.index_nbytes:,} bytes, more than the {MAX_INDEX_NBYTES:,} that are taken for sensible"
            )


class ShardingCodec(RegionCodec):
    """array -> bytes: a grid of inner chunks, each with its own codecs, and an index of where they are."""

    name: ClassVar[str] = "sharding_indexed"
    partial: ClassVar[bool] = True

    def __init__(
        self,
        chunk_shape: Sequence[int],
        codecs: Sequence[Codec],
        index_codecs: Sequence[Codec],
        index_location: str = "end",
    ) -> None:
        self.chunk_shape = tuple(chunk_shape)
        self.codecs = tuple(codecs)
        self.index_codecs = tuple(index_codecs)
        self.index_location = index_location
        self._layouts: dict[tuple[tuple[int, ...], str], _Layout] = {}
        self._lock = threading.Lock()

    @classmethod
    def from_configuration(cls, configuration: Mapping[str, Any]) -> Self:
        known = {"chunk_shape", "codecs", "index_codecs", "index_location"}
        for key in configuration:
            if key not in known:
                raise MetadataError(f"sharding_indexed: unknown key {key!r}; known are {sorted(known)}")
        for key in ("chunk_shape", "codecs", "index_codecs"):
            if key not in configuration:
                raise MetadataError(f"sharding_indexed: {key!r} is missing from the configuration")
        shape = configuration["chunk_shape"]
        if not isinstance(shape, list | tuple) or not all(
            isinstance(n, int) and not isinstance(n, bool) and n > 0 for n in shape
        ):
            raise MetadataError(
                f"sharding_indexed: chunk_shape must be a list of positive integers, found {shape!r}"
            )
        location = configuration.get("index_location", "end")
        if location not in ("start", "end"):
            raise MetadataError(
                f"sharding_indexed: index_location must be 'start' or 'end', found {location!r}"
            )
        return cls(
            tuple(shape),
            codecs_from_json(configuration["codecs"], "sharding_indexed/codecs"),
            codecs_from_json(configuration["index_codecs"], "sharding_indexed/index_codecs"),
            location,
        )

    def configuration(self) -> dict[str, Any]:
        return {
            "chunk_shape": list(self.chunk_shape),
            "codecs": [codec_to_json(codec) for codec in self.codecs],
            "index_codecs": [codec_to_json(codec) for codec in self.index_codecs],
            "index_location": self.index_location,
        }

    def check(self, spec: ChunkSpec) -> None:
        if len(spec.shape) >= MAX_RANK:
            raise UnsupportedError(
                f"codec 'sharding_indexed': the index of shards of {len(spec.shape)} dimensions has one more, and "
                f"arrays of more than {MAX_RANK} are not known here"
            )
        self.layout(spec)

    def check_encoding(self) -> None:
        for codec in (*self.codecs, *self.index_codecs):
            codec.check_encoding()

    def layout(self, spec: ChunkSpec) -> _Layout:
        """Return what follows from the shard's shape and dtype, worked out once."""
        key = (spec.shape, spec.dtype.str if not spec.dtype.fields else str(spec.dtype.descr))
        layout = self._layouts.get(key)
        # Two arrays may share a codec and differ in the fill value alone.
        if (
            layout is None
            or layout.chunk_spec.dtype != spec.dtype
            or layout.chunk_spec.fill_value is not spec.fill_value
        ):
            with self._lock:
                layout = self._layouts[key] = _Layout(self, spec)
        return layout

    # -- reading -----------------------------------------------------------------------------------------------

    def read_region(
        self, source: ByteSource, region: Region, spec: ChunkSpec, out: Array, reader: InnerChunkReader
    ) -> bool:
        layout = self.layout(spec)
        index = reader.index(lambda: self._read_index(source, layout))
        if index is None:
            return False
        wanted: list[InnerChunk] = []
        inner = layout.pipeline
        for chunk in self._inner_chunks(index, region):
            if chunk.is_missing:
                out[chunk.target] = spec.fill_value
                continue
            if not inner.chain.sharded:
                cached = reader.cached(chunk.coords)
                if cached is not None:
                    out[chunk.target] = cached[chunk.region]
                    continue
            wanted.append(chunk)
        if not wanted:
            return True
        # With high latency the size would cost a request of its own; there a short response shows the truncation.
        size = shard_end(index) + layout.index_nbytes if source.high_latency else source.size()
        if size is None:
            raise CodecError("the shard was deleted while it was being read")
        check_bounds(wanted, size, inner.chain.max_encoded_size)
        sources = fetch_inner_chunks(source, wanted, size, layout.index_nbytes, inner.chain)

        def read(job: tuple[InnerChunk, ByteSource]) -> None:
            chunk, chunk_source = job
            view = out[chunk.target] if chunk.target else out
            try:
                reader.read(inner, chunk.coords, chunk_source, chunk.region, view)
            except CodecError as error:
                raise _located(error, chunk) from error

        nbytes = layout.chunk_spec.nbytes
        parallel = len(wanted) > 1 and nbytes is not None and nbytes >= PARALLEL_NBYTES
        for_each(read, zip(wanted, sources, strict=True), CORES if parallel else 1)
        return True

    def first_missing(self, source: ByteSource, region: Region, spec: ChunkSpec) -> tuple[int, ...] | None:
        layout = self.layout(spec)
        index = self._read_index(source, layout)
        if index is None:
            raise CodecError("the shard was deleted while it was being read")
        for chunk in self._inner_chunks(index, region):
            if chunk.is_missing:
                return chunk.coords
            if layout.pipeline.chain.sharded:
                part = PartSource(source, chunk.offset, chunk.nbytes)
                below = layout.pipeline.decoder.first_missing(part, chunk.region)
                if below is not None:
                    return (*chunk.coords, *below)
        return None

    def _read_index(self, source: ByteSource, layout: _Layout) -> Array | None:
        """Return the index, an array of shape (*grid, 2), or None when the shard is missing."""
        size = layout.index_nbytes
        byte_range = ByteRange(0, size) if self.index_location == "start" else ByteRange(-size)
        ranges = source.read_ranges([byte_range])
        if ranges is None:
            return None
        if len(ranges[0]) != size:
            raise CodecError(
                f"the shard has {len(ranges[0])} bytes, too few for its index of {size} bytes "
                f"({layout.grid} inner chunks): it is truncated, or chunk_shape or index_codecs are wrong"
            )
        return np.ascontiguousarray(layout.index_pipeline.decoder.decode(ranges[0]), INDEX_DTYPE)

    def _inner_chunks(self, index: Array, region: Region) -> Iterator[InnerChunk]:
        """Yield the inner chunks that the region intersects, in C order."""
        spans = []
        axes = []
        for part, length in zip(region, self.chunk_shape, strict=True):
            if part.stop <= part.start:
                return
            first, last = part.start // length, (part.stop - 1) // length
            spans.append(slice(first, last + 1))
            axis = []
            for i in range(first, last + 1):
                begin = i * length
                low, high = max(part.start, begin), min(part.stop, begin + length)
                axis.append(
                    (i, slice(low - begin, high - begin, 1), slice(low - part.start, high - part.start, 1))
                )
            axes.append(axis)
        entries = index[tuple(spans)].reshape(-1, 2).tolist()
        for (offset, nbytes), parts in zip(entries, product(*axes), strict=True):
            yield InnerChunk(
                tuple(p[0] for p in parts),
                offset,
                nbytes,
                tuple(p[1] for p in parts),
                tuple(p[2] for p in parts),
            )

    def decode(self, data: Buffer, spec: ChunkSpec) -> Array:
        out = np.empty(spec.shape, spec.dtype)
        whole = tuple(slice(0, n, 1) for n in spec.shape)
        self.read_region(BufferSource(data), whole, spec, out, UncachedReader())
        return out

    def decode_region(self, source: ByteSource, region: Region, spec: ChunkSpec) -> Array | None:
        out = np.empty(tuple(part.stop - part.start for part in region), spec.dtype)
        return out if self.read_region(source, region, spec, out, UncachedReader()) else None

    # -- writing -----------------------------------------------------------------------------------------------

    def encode(self, array: Array, spec: ChunkSpec) -> Buffer:
        return b"".join(self.encode_parts(array, spec))

    def encode_parts(self, array: Array, spec: ChunkSpec, keep_filled: bool = False) -> list[Buffer]:
        layout = self.layout(spec)
        shard = OpenShard(layout.grid)

        def encode(coords: tuple[int, ...]) -> None:
            part = array[
                _whole(slice(i * n, (i + 1) * n) for i, n in zip(coords, self.chunk_shape, strict=True))
            ]
            if keep_filled or not is_filled(part, spec.fill_value):
                shard.set(coords, layout.pipeline.encoder.encode(part, keep_filled=keep_filled))

        for_each(encode, product(*(range(n) for n in layout.grid)), self.workers(spec))
        return self.assemble(shard, spec)

    def workers(self, spec: ChunkSpec) -> int:
        """Return how many threads are worth having to encode the inner chunks of one shard."""
        layout = self.layout(spec)
        nbytes = layout.chunk_spec.nbytes
        least = PARALLEL_ENCODED_NBYTES if layout.pipeline.chain.compressed else PARALLEL_NBYTES
        return CORES if nbytes is not None and nbytes >= least else 1

    def open_shard(self, data: Buffer | None, spec: ChunkSpec) -> OpenShard:
        """Return a stored shard (None: one that is not there yet) to be changed inner chunk by inner chunk."""
        layout = self.layout(spec)
        return OpenShard(
            layout.grid, data, None if data is None else self._read_index(BufferSource(data), layout)
        )

    def assemble(self, shard: OpenShard, spec: ChunkSpec) -> list[Buffer]:
        """Return what is to be stored of a shard, in parts that are to be joined."""
        layout = self.layout(spec)
        return shard.parts(
            layout.index_pipeline.encoder.encode, layout.index_nbytes, self.index_location == "start"
        )


class UncachedReader:
    """An InnerChunkReader that caches nothing."""

    def index(self, load: Callable[[], Array | None]) -> Array | None:
        return load()

    def cached(self, coords: tuple[int, ...]) -> None:
        return None

    def read(
        self,
        codecs: CodecPipeline,
        coords: tuple[int, ...],
        source: ByteSource,
        region: Region,
        out: Array,
    ) -> bool:
        decoder = codecs.decoder
        if codecs.chain.sharded:
            return decoder.read_inner_chunks(source, region, out, self)
        if codecs.chain.is_whole(region):
            data = source.read()
            if data is None:
                return False
            decoder.decode(data, out)
            return True
        return decoder.decode_region(source, region, out)


def _located(error: CodecError, chunk: InnerChunk) -> CodecError:
    located = CodecError(
        f"inner chunk {chunk.coords} at bytes {chunk.offset}+{chunk.nbytes} of the shard: {error}"
    )
    located.located = True
    return located


def _whole(slices: Iterable[slice]) -> Any:
    """Return an index that gives an array even of one without dimensions, and not its element."""
    return tuple(slices) or Ellipsis
