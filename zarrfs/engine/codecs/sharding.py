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
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from zarrfs.engine.cache import CacheSlot
from zarrfs.engine.codecs.base import (
    Buffer,
    BufferSource,
    ByteRange,
    ByteSource,
    ChunkSpec,
    Codec,
    CodecError,
    Region,
)
from zarrfs.engine.codecs.pipeline import CodecPipeline, RegionCodec
from zarrfs.engine.codecs.registry import codec_to_json, codecs_from_json
from zarrfs.engine.codecs.shards import ABSENT, INDEX_DTYPE, OpenShard
from zarrfs.engine.json_checks import MAX_RANK
from zarrfs.engine.parallel import CORES, for_each
from zarrfs.errors import MetadataError, UnsupportedError

__all__ = ["ShardingCodec", "is_filled"]

Array = np.ndarray[Any, Any]

COALESCING_GAP = 64 << 10
"""Inner chunks closer than this are fetched in one range: skipping costs more than reading on."""

WHOLE_SHARE = 0.7
"""When this share of a shard's bytes is wanted, the shard is read whole."""

PARALLEL_NBYTES = 128 << 10
"""Inner chunks smaller than this are decoded on one thread: handing them out costs more than it gains."""

PARALLEL_ENCODED_NBYTES = 32 << 10
"""Compressing takes several times as long as decompressing, and is worth handing out sooner."""

MOST_INDEX_NBYTES = 1 << 30
"""An index of 67 million inner chunks; one that claims to be larger is a mistake or a trap."""


class _Piece(NamedTuple):
    """An inner chunk that a region touches."""

    coords: tuple[int, ...]
    offset: int
    nbytes: int
    region: Region
    target: Region


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
        index_spec = ChunkSpec((*self.grid, 2), INDEX_DTYPE, INDEX_DTYPE.type(ABSENT))
        self.index_pipeline = CodecPipeline(codec.index_codecs, index_spec)
        if self.index_pipeline.encoded_size is None:
            raise MetadataError(
                f"sharding_indexed: index_codecs {[c.name for c in codec.index_codecs]} give a size that varies "
                "with the data; the index must have a fixed size, so compression is not allowed there"
            )
        self.index_nbytes = self.index_pipeline.encoded_size
        if self.index_nbytes > MOST_INDEX_NBYTES:
            raise MetadataError(
                f"sharding_indexed: a shard of {list(spec.shape)} in inner chunks of {list(inner)} needs an index of "
                f"{self.index_nbytes:,} bytes, more than the {MOST_INDEX_NBYTES:,} that are taken for sensible"
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
        self, source: ByteSource, region: Region, spec: ChunkSpec, out: Array, slot: CacheSlot | None
    ) -> bool:
        layout = self.layout(spec)
        index = self._index(source, layout, slot)
        if index is None:
            return False
        wanted: list[_Piece] = []
        fill = spec.fill_value
        pipeline = layout.pipeline
        leaf = not isinstance(pipeline.codecs[0], RegionCodec)
        for piece in self._pieces(index, region):
            if piece.offset == ABSENT and piece.nbytes == ABSENT:
                out[piece.target] = fill
                continue
            if slot is not None and leaf:
                cached = slot.cache.get((*slot.key, piece.coords), slot.stamp)
                if cached is not None:
                    out[piece.target] = cached[piece.region]
                    continue
            wanted.append(piece)
        if not wanted:
            return True
        sources = self._sources(source, wanted, layout, index)

        def read(job: tuple[_Piece, ByteSource]) -> None:
            piece, piece_source = job
            child = None if slot is None else slot.child(piece.coords)
            try:
                pipeline.read(piece_source, piece.region, out[piece.target] if piece.target else out, child)
            except CodecError as error:
                raise _located(error, piece, layout) from error

        nbytes = layout.chunk_spec.nbytes
        parallel = len(wanted) > 1 and nbytes is not None and nbytes >= PARALLEL_NBYTES
        for_each(read, zip(wanted, sources, strict=True), CORES if parallel else 1)
        return True

    def first_absent(self, source: ByteSource, region: Region, spec: ChunkSpec) -> tuple[int, ...] | None:
        layout = self.layout(spec)
        index = self._index(source, layout, None)
        if index is None:
            raise CodecError("the shard vanished while it was being read")
        for piece in self._pieces(index, region):
            if piece.offset == ABSENT and piece.nbytes == ABSENT:
                return piece.coords
            if layout.pipeline.sharded:
                part = PartSource(source, piece.offset, piece.nbytes)
                below = layout.pipeline.first_absent(part, piece.region)
                if below is not None:
                    return (*piece.coords, *below)
        return None

    def _index(self, source: ByteSource, layout: _Layout, slot: CacheSlot | None) -> Array | None:
        """Return the index, of shape (*grid, 2), or None when there is no shard."""

        def load() -> Array | None:
            size = layout.index_nbytes
            at = ByteRange(0, size) if self.index_location == "start" else ByteRange(-size)
            ranges = source.read_ranges([at])
            if ranges is None:
                return None
            if len(ranges[0]) != size:
                raise CodecError(
                    f"the shard has {len(ranges[0])} bytes, too few for its index of {size} bytes "
                    f"({layout.grid} inner chunks): it is truncated, or chunk_shape or index_codecs are wrong"
                )
            return np.ascontiguousarray(layout.index_pipeline.decode(ranges[0]), INDEX_DTYPE)

        index: Array | None = load() if slot is None else slot.child("index").load(load)
        return index

    def _pieces(self, index: Array, region: Region) -> Iterator[_Piece]:
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
            yield _Piece(
                tuple(p[0] for p in parts),
                offset,
                nbytes,
                tuple(p[1] for p in parts),
                tuple(p[2] for p in parts),
            )

    def _sources(
        self, source: ByteSource, wanted: list[_Piece], layout: _Layout, index: Array
    ) -> list[ByteSource]:
        """Return a source for each piece, having fetched what is to be fetched in as few ranges as is wise."""
        # Asking a far store for the size is a request of its own; there what is fetched shows whether it is all.
        size = _extent(index) + layout.index_nbytes if source.far else source.size()
        if size is None:
            raise CodecError("the shard vanished while it was being read")
        most = layout.pipeline.most_stored
        for piece in wanted:
            if most is not None and piece.nbytes > most:
                raise CodecError(
                    f"inner chunk {piece.coords} is said to have {piece.nbytes:,} bytes, far more than it can have "
                    f"(at most {most:,})"
                )
            if piece.offset + piece.nbytes > size:
                raise CodecError(
                    f"inner chunk {piece.coords} is said to be at bytes {piece.offset} to "
                    f"{piece.offset + piece.nbytes}, but the shard has {size} bytes: it is truncated "
                    "or its index is wrong"
                )
        total = sum(piece.nbytes for piece in wanted)
        if source.in_memory or total >= WHOLE_SHARE * (size - layout.index_nbytes):
            data = source.read()
            if data is None:
                raise CodecError("the shard vanished while it was being read")
            view = memoryview(data)
            sources: list[ByteSource] = []
            for piece in wanted:
                part = view[piece.offset : piece.offset + piece.nbytes]
                if len(part) != piece.nbytes:
                    raise CodecError(
                        f"inner chunk {piece.coords} is said to end at byte {piece.offset + piece.nbytes}, but the "
                        f"shard has {len(view)} bytes: it is truncated, or was changed while it was being read"
                    )
                sources.append(BufferSource(part))
            return sources
        if layout.pipeline.partial or isinstance(layout.pipeline.codecs[0], RegionCodec):
            # The inner chunk decides what it needs of itself.
            chunk = layout.chunk_spec
            small = [p for p in wanted if _covers(p.region, chunk.shape) or p.nbytes < COALESCING_GAP]
            if len(small) < len(wanted):
                fetched = (
                    dict(zip([p.coords for p in small], _fetch(source, small), strict=True)) if small else {}
                )
                return [fetched.get(p.coords) or PartSource(source, p.offset, p.nbytes) for p in wanted]
        return list(_fetch(source, wanted))

    def decode(self, data: Buffer, spec: ChunkSpec) -> Array:
        out = np.empty(spec.shape, spec.dtype)
        self.read_region(BufferSource(data), tuple(slice(0, n, 1) for n in spec.shape), spec, out, None)
        return out

    def decode_region(self, source: ByteSource, region: Region, spec: ChunkSpec) -> Array | None:
        out = np.empty(tuple(part.stop - part.start for part in region), spec.dtype)
        return out if self.read_region(source, region, spec, out, None) else None

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
                shard.set(coords, layout.pipeline.encode(part, keep_filled=keep_filled))

        for_each(encode, product(*(range(n) for n in layout.grid)), self.workers(spec))
        return self.assemble(shard, spec)

    def workers(self, spec: ChunkSpec) -> int:
        """Return how many threads are worth having to encode the inner chunks of one shard."""
        layout = self.layout(spec)
        nbytes = layout.chunk_spec.nbytes
        least = PARALLEL_ENCODED_NBYTES if layout.pipeline.compressed else PARALLEL_NBYTES
        return CORES if nbytes is not None and nbytes >= least else 1

    def open_shard(self, data: Buffer | None, spec: ChunkSpec) -> OpenShard:
        """Return a stored shard (None: one that is not there yet) to be changed inner chunk by inner chunk."""
        layout = self.layout(spec)
        return OpenShard(
            layout.grid, data, None if data is None else self._index(BufferSource(data), layout, None)
        )

    def assemble(self, shard: OpenShard, spec: ChunkSpec) -> list[Buffer]:
        """Return what is to be stored of a shard, in parts that are to be joined."""
        layout = self.layout(spec)
        return shard.parts(layout.index_pipeline.encode, layout.index_nbytes, self.index_location == "start")


class PartSource:
    """A ByteSource that is a range of another: one inner chunk of a shard."""

    in_memory = False

    def __init__(self, source: ByteSource, offset: int, nbytes: int) -> None:
        self.far = source.far
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


def _extent(index: Array) -> int:
    """Return where the last inner chunk ends, by the index."""
    entries = index.reshape(-1, 2)
    there = entries[entries[:, 0] != ABSENT]
    return int((there[:, 0] + there[:, 1]).max()) if len(there) else 0


def _fetch(source: ByteSource, wanted: Sequence[_Piece]) -> list[BufferSource]:
    """Fetch the pieces, near ones together, and return a source for each in the order given."""
    order = sorted(range(len(wanted)), key=lambda i: wanted[i].offset)
    runs: list[list[int]] = []
    ranges: list[tuple[int, int]] = []
    for i in order:
        start, stop = wanted[i].offset, wanted[i].offset + wanted[i].nbytes
        if ranges and start <= ranges[-1][1] + COALESCING_GAP:
            ranges[-1] = (ranges[-1][0], max(ranges[-1][1], stop))
            runs[-1].append(i)
        else:
            ranges.append((start, stop))
            runs.append([i])
    fetched = source.read_ranges([ByteRange(start, stop - start) for start, stop in ranges])
    if fetched is None:
        raise CodecError("the shard vanished while it was being read")
    sources: dict[int, BufferSource] = {}
    for run, (start, stop), data in zip(runs, ranges, fetched, strict=True):
        view = memoryview(data)
        if len(view) != stop - start:
            raise CodecError(f"{len(view)} bytes came of {stop - start} at {start}: the shard is truncated")
        for i in run:
            begin = wanted[i].offset - start
            sources[i] = BufferSource(view[begin : begin + wanted[i].nbytes])
    return [sources[i] for i in range(len(wanted))]


def _covers(region: Region, shape: tuple[int, ...]) -> bool:
    return all(part.stop - part.start == length for part, length in zip(region, shape, strict=True))


def _located(error: CodecError, piece: _Piece, layout: _Layout) -> CodecError:
    located = CodecError(
        f"inner chunk {piece.coords} at bytes {piece.offset}+{piece.nbytes} of the shard: {error}"
    )
    located.located = True
    return located


def _whole(slices: Iterable[slice]) -> Any:
    """Return an index that gives an array even of one without dimensions, and not its element."""
    return tuple(slices) or Ellipsis


def is_filled(array: Array, fill_value: Any) -> bool:
    """Tell whether every element is bit for bit the fill value, so that nothing need be stored.

    Bit for bit: -0.0 is not 0.0 here, and a NaN is one only with the same payload.
    """
    if array.dtype.hasobject:
        return fill_value is not None and all(_same_object(item, fill_value) for item in array.flat)
    if fill_value is None or array.size == 0:
        return False
    # Most chunks that hold data show it at their first element: an array, as a scalar has lost the byte order of its
    # dtype and the zeros that text is filled up with.
    fill = np.asarray(fill_value, array.dtype)
    first: Array = array[_whole(slice(0, 1) for _ in array.shape)]
    if first.tobytes() != fill.tobytes():
        return False
    itemsize = array.dtype.itemsize
    if itemsize in (1, 2, 4, 8):
        kind = f"u{itemsize}"
        bits, wanted = array.view(kind), fill.reshape(1).view(kind)[0]
    else:
        raw = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        bits, wanted = raw.reshape(-1, itemsize), np.frombuffer(fill.tobytes(), np.uint8)
    # Piece by piece: where an image has a dark corner, the rest of it need not be looked at.
    if bits.ndim > 1:
        return all(bool((piece == wanted).all()) for piece in bits)
    return bool((bits == wanted).all())


def _same_object(item: Any, fill_value: Any) -> bool:
    return type(item) is type(fill_value) and not isinstance(item, np.ndarray) and bool(item == fill_value)
