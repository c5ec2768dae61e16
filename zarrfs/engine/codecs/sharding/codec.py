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

Reading one inner chunk reads the index and the bytes of that inner chunk. The index and the decoded inner chunks are
cached in the cache entry of the shard. Nearby inner chunks are fetched in one range. If most of a shard is requested,
the shard is fetched whole. Inner chunks are written in C order of their coordinates. Those that contain only the fill
value are omitted.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from typing import Any, ClassVar, Self

import numpy as np

from zarrfs.engine.codecs.base import (
    Buffer,
    BufferSource,
    ByteSource,
    ChunkSpec,
    Codec,
    CodecError,
    Region,
)
from zarrfs.engine.codecs.fill_values import is_filled
from zarrfs.engine.codecs.pipeline.chain import RegionCodec
from zarrfs.engine.codecs.registry import codec_to_json, codecs_from_json
from zarrfs.engine.codecs.sharding.encoding import OpenShard
from zarrfs.engine.codecs.sharding.fetching import (
    InnerChunk,
    PartSource,
    check_bounds,
)
from zarrfs.engine.codecs.sharding.layout import ShardLayout
from zarrfs.engine.json_checks import MAX_RANK
from zarrfs.engine.parallel import CORES, for_each
from zarrfs.engine.read_limits import MIN_PARALLEL_INNER_NBYTES
from zarrfs.errors import MetadataError, UnsupportedError
from zarrfs.text import short_repr

__all__ = ["ShardingCodec"]

Array = np.ndarray[Any, Any]

MIN_PARALLEL_ENCODED_NBYTES = 32 << 10
"""Smaller inner chunks are compressed on one thread. The limit is lower because compression is slower."""


class ShardingCodec(RegionCodec):
    """array -> bytes: a grid of inner chunks, which are encoded separately, and an index of their byte ranges."""

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
        self._shard_layouts: dict[tuple[tuple[int, ...], str], ShardLayout] = {}
        self._latest: tuple[ChunkSpec | None, ShardLayout | None] = None, None
        self._lock = threading.Lock()

    @classmethod
    def from_configuration(cls, configuration: Mapping[str, Any]) -> Self:
        known = {"chunk_shape", "codecs", "index_codecs", "index_location"}
        for key in configuration:
            if key not in known:
                raise MetadataError(
                    f"sharding_indexed: unknown key {short_repr(key)}; expected {sorted(known)}"
                )
        for key in ("chunk_shape", "codecs", "index_codecs"):
            if key not in configuration:
                raise MetadataError(f"sharding_indexed: {key!r} is missing from the configuration")
        shape = configuration["chunk_shape"]
        if not isinstance(shape, list | tuple) or not all(
            isinstance(n, int) and not isinstance(n, bool) and n > 0 for n in shape
        ):
            raise MetadataError(
                f"sharding_indexed: chunk_shape must be a list of positive integers, found {short_repr(shape)}"
            )
        location = configuration.get("index_location", "end")
        if location not in ("start", "end"):
            raise MetadataError(
                f"sharding_indexed: index_location must be 'start' or 'end', found {short_repr(location)}"
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
                f"codec 'sharding_indexed': the index of shards of {len(spec.shape)} dimensions has one more, but "
                f"arrays of more than {MAX_RANK} dimensions are not supported"
            )
        self.shard_layout(spec)

    def check_encoding(self) -> None:
        for codec in (*self.codecs, *self.index_codecs):
            codec.check_encoding()

    def shard_layout(self, spec: ChunkSpec) -> ShardLayout:
        """Return the layout of shards of ``spec``. It is computed once."""
        latest, layout = self._latest
        if latest is spec and layout is not None:
            return layout
        key = (spec.shape, spec.dtype.str if not spec.dtype.fields else str(spec.dtype.descr))
        layout = self._shard_layouts.get(key)
        # Two arrays may share a codec and differ only in the fill value.
        if (
            layout is None
            or layout.chunk_spec.dtype != spec.dtype
            or layout.chunk_spec.fill_value is not spec.fill_value
        ):
            with self._lock:
                layout = self._shard_layouts[key] = ShardLayout(
                    self.chunk_shape, self.codecs, self.index_codecs, self.index_location, spec
                )
        self._latest = spec, layout
        return layout

    # -- reading -----------------------------------------------------------------------------------------------

    def first_missing(self, source: ByteSource, region: Region, spec: ChunkSpec) -> tuple[int, ...] | None:
        layout = self.shard_layout(spec)
        index = layout.read_index(source)
        if index is None:
            raise CodecError("the shard was deleted while it was being read")
        for chunk in layout.inner_chunks(index, region):
            if chunk.is_missing:
                return chunk.coords
            if layout.pipeline.chain.sharded:
                part = PartSource(source, chunk.offset, chunk.nbytes)
                below = layout.pipeline.decoder.first_missing(part, chunk.region)
                if below is not None:
                    return (*chunk.coords, *below)
        return None

    def decode(self, data: Buffer, spec: ChunkSpec) -> Array:
        whole = tuple(slice(0, n, 1) for n in spec.shape)
        array = self.decode_region(BufferSource(data), whole, spec)
        assert array is not None
        return array

    def decode_region(self, source: ByteSource, region: Region, spec: ChunkSpec) -> Array | None:
        """Decode each inner chunk of the region whole. Reads of arrays decode parts, and use the cache; see
        ``zarrfs.engine.read.reading``.
        """
        layout = self.shard_layout(spec)
        index = layout.read_index(source)
        size = source.size()
        if index is None or size is None:
            return None
        out = np.empty(tuple(part.stop - part.start for part in region), spec.dtype)
        out[...] = spec.fill_value
        chunks = [chunk for chunk in layout.inner_chunks(index, region) if not chunk.is_missing]
        check_bounds(chunks, size, layout.pipeline.chain.max_encoded_size)

        def decode(chunk: InnerChunk) -> None:
            try:
                data = PartSource(source, chunk.offset, chunk.nbytes).read()
                if data is None:
                    raise CodecError("the shard was deleted while it was being read")
                out[chunk.target] = layout.pipeline.decoder.decode(data)[chunk.region]
            except CodecError as error:
                raise chunk.located(error) from error

        for_each(decode, chunks, self.workers(spec))
        return out

    # -- writing -----------------------------------------------------------------------------------------------

    def encode(self, array: Array, spec: ChunkSpec) -> Buffer:
        return b"".join(self.encode_parts(array, spec))

    def encode_parts(self, array: Array, spec: ChunkSpec, keep_filled: bool = False) -> list[Buffer]:
        layout = self.shard_layout(spec)
        shard = OpenShard(layout.grid)

        def encode(coords: tuple[int, ...]) -> None:
            part = array[
                _view_index(slice(i * n, (i + 1) * n) for i, n in zip(coords, self.chunk_shape, strict=True))
            ]
            if keep_filled or not is_filled(part, spec.fill_value):
                shard.set(coords, layout.pipeline.encoder.encode(part, keep_filled=keep_filled))

        for_each(encode, product(*(range(n) for n in layout.grid)), self.workers(spec))
        return self.assemble(shard, spec)

    def workers(self, spec: ChunkSpec) -> int:
        """Return the number of threads for encoding the inner chunks of one shard."""
        layout = self.shard_layout(spec)
        nbytes = layout.chunk_spec.nbytes
        min_nbytes = (
            MIN_PARALLEL_ENCODED_NBYTES if layout.pipeline.chain.compressed else MIN_PARALLEL_INNER_NBYTES
        )
        return CORES if nbytes is not None and nbytes >= min_nbytes else 1

    def open_shard(self, data: Buffer | None, spec: ChunkSpec) -> OpenShard:
        """Return a stored shard, or an empty one if ``data`` is None, whose inner chunks can be changed."""
        layout = self.shard_layout(spec)
        return OpenShard(layout.grid, data, None if data is None else layout.read_index(BufferSource(data)))

    def assemble(self, shard: OpenShard, spec: ChunkSpec) -> list[Buffer]:
        """Return the encoded shard, in parts that the caller concatenates."""
        layout = self.shard_layout(spec)
        return shard.parts(
            layout.index_pipeline.encoder.encode, layout.index_nbytes, self.index_location == "start"
        )


def _view_index(slices: Iterable[slice]) -> Any:
    """Return an index for NumPy that returns a view, also of an array without dimensions."""
    return tuple(slices) or Ellipsis
