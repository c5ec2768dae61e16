"""The codecs of an array as one: whole chunks and regions, decoded and encoded.

The representations between the codecs (the specification's "determination of encoded representations") are worked
out once, when the pipeline is made. Reading asks a ``ByteSource`` for as little as the chain allows: a chain whose
bytes->bytes codecs can open sources and whose array->bytes codec can decode regions costs just the bytes of the
region; any other decodes the chunk whole.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import numpy as np

from zarrfs.engine.cache import CacheSlot
from zarrfs.engine.codecs.base import (
    ArrayArrayCodec,
    ArrayBytesCodec,
    Buffer,
    BufferSource,
    BytesBytesCodec,
    ByteSource,
    ChunkSpec,
    Codec,
    CodecError,
    Region,
)
from zarrfs.engine.codecs.bytes import BytesCodec, needs_canonical
from zarrfs.engine.codecs.limits import bounded, intermediate_limit, variable_limit
from zarrfs.errors import MetadataError, ZarrError

__all__ = ["LEAST_PARTIAL_NBYTES", "CodecPipeline", "RegionCodec", "new_chunk", "raise_located"]

Array = np.ndarray[Any, Any]

LEAST_PARTIAL_NBYTES = 16 << 10
LEAST_PARTIAL_COMPRESSED_NBYTES = 1 << 20
"""Chunks smaller than these are decoded whole: opening them in part costs more than it saves."""

LEAST_DIRECT_NBYTES = 96 << 10
"""Chunks of at least this size are decompressed straight into memory that is at hand. Below about 128 KiB the allocator
gives memory that is warm already, and handing over a buffer costs more than it saves.
"""

MOST_WHOLE_NBYTES = 256 << 20
"""A chunk larger than this is read in part where that is possible, even when it is looked at again and again."""

MOST_SCRATCH_NBYTES = 32 << 20
"""Scratch memory larger than this is not kept from one chunk to the next."""

_local = threading.local()


class RegionCodec(ArrayBytesCodec):
    """An array->bytes codec that is made of smaller chunks, and so writes a region straight into an output."""

    def read_region(
        self, source: ByteSource, region: Region, spec: ChunkSpec, out: Array, slot: CacheSlot | None
    ) -> bool:
        """Decode ``region`` into ``out`` (of the region's shape); False when the value is absent."""
        raise NotImplementedError

    def encode_parts(self, array: Array, spec: ChunkSpec, keep_filled: bool = False) -> list[Buffer]:
        """Encode as ``encode``, to parts that are still to be joined. ``keep_filled`` leaves out no inner chunk, even
        if it holds nothing but the fill value.
        """
        raise NotImplementedError

    def first_absent(self, source: ByteSource, region: Region, spec: ChunkSpec) -> tuple[int, ...] | None:
        """Return the coordinates of the first part that ``region`` touches and that is not stored, or None."""
        raise NotImplementedError


def raise_located(error: Exception, codec: Codec, verb: str = "decode") -> NoReturn:
    """Raise what is to be raised for an error that a codec met: a CodecError that names the innermost codec.

    Codec libraries raise all kinds of exceptions on bad bytes; none of them reaches a user bare.
    """
    if isinstance(error, ZarrError) or (isinstance(error, CodecError) and error.located):
        raise error
    said = " ".join(str(error).split()) or type(error).__name__  # One line, whatever the library says.
    located = CodecError(f"codec {codec.name!r} cannot {verb}: {said}")
    located.located = True
    raise located from error


class CodecPipeline:
    """The codec chain of an array, made ready for chunks of one shape.

    Immutable after construction and shared by threads. Raises MetadataError on construction when a codec does not
    fit what comes before it.

    Attributes:
        spec: the decoded representation, that is, a chunk in memory.
        partial: whether a region can cost less than the whole chunk.
        compressed: whether the size of what is stored depends on the data.
        plain: whether what is stored is, byte for byte, an array in memory.
        codecs: the chain as given.
        most_stored: how many bytes an encoded chunk can have at most; None where nothing says how many.
    """

    def __init__(self, codecs: Sequence[Codec], spec: ChunkSpec) -> None:
        self.codecs = tuple(codecs)
        self.spec = spec
        arrays = [codec for codec in codecs if isinstance(codec, ArrayArrayCodec)]
        middle = [codec for codec in codecs if isinstance(codec, ArrayBytesCodec)]
        tail = [codec for codec in codecs if isinstance(codec, BytesBytesCodec)]
        if len(middle) != 1 or [*arrays, *middle, *tail] != list(codecs):
            raise MetadataError(
                f"codecs {[codec.name for codec in codecs]}: expected any number of array->array codecs, exactly one "
                "array->bytes codec, then any number of bytes->bytes codecs"
            )
        specs = [spec]
        for codec in arrays:
            codec.check(specs[-1])
            specs.append(codec.encoded_spec(specs[-1]))
        self._arrays = list(zip(arrays, specs[:-1], strict=True))
        self._middle = middle[0]
        self._middle_spec = specs[-1]
        self._middle.check(self._middle_spec)
        sizes: list[int | None] = [self._middle.encoded_size(self._middle_spec)]
        for tail_codec in tail:
            tail_codec.check(self._middle_spec)
            before = sizes[-1]
            sizes.append(None if before is None else tail_codec.encoded_size(before))
        self._tail = list(zip(tail, sizes[:-1], strict=True))
        self._tail_reversed = [(codec, size, codec is tail[0]) for codec, size in reversed(self._tail)]
        self._arrays_reversed = self._arrays[::-1]
        self._identity = not arrays
        self.encoded_size = sizes[-1]
        nbytes = self._middle_spec.nbytes
        largest = max(nbytes or 0, spec.nbytes or 0, *(size or 0 for size in sizes), 0)
        self.most_stored = None if nbytes is None or spec.nbytes is None else intermediate_limit(largest)
        unknown = sum(size is None for _, size in self._tail)
        self._needs_bound = unknown > (1 if self.most_stored is None else 0)
        self._encoding_checked = False
        self._viewable = all(codec.view(_nothing(a)) is not None for codec, a in self._arrays)
        self._regional = all(
            codec.encoded_region(tuple(slice(0, n, 1) for n in a.shape), a) is not None
            for codec, a in self._arrays
        )
        self._direct = isinstance(self._middle, BytesCodec) and self._can_fill_directly(spec)
        self._direct_encoding = self._direct and not any(codec.rounds for codec in arrays)
        self.plain = self._direct and not tail
        self._nbytes = spec.nbytes
        self._direct_tail = self._direct and bool(tail) and (self._nbytes or 0) >= LEAST_DIRECT_NBYTES
        self.partial = self._regional and self._middle.partial and all(c.partial for c, _ in self._tail)
        self.compressed = any(size is None for size in sizes)

    def _can_fill_directly(self, spec: ChunkSpec) -> bool:
        """Whether the decoded bytes are the array's own memory, so that decompressing may fill the output."""
        if not self._viewable or spec.dtype.hasobject or needs_canonical(spec.dtype) or spec.nbytes == 0:
            return False
        stored = self._middle.stored_dtype(self._middle_spec.dtype)  # type: ignore[attr-defined]
        return bool(stored == spec.dtype)

    # -- decoding ----------------------------------------------------------------------------------------------

    def decode(self, data: Buffer, out: Array | None = None) -> Array:
        """Decode a whole chunk; return an array of ``spec.shape``, which is ``out`` where that could be filled.

        ``out`` is an array of the chunk's shape and dtype. What is returned may be read-only, and of another byte
        order than ``spec.dtype``. Raises CodecError.
        """
        if out is None:
            return self._decode_new(data)
        if not self._direct_tail:
            out[...] = self._decode_new(data)
            return out
        encoded = out if self._identity else self._encoded_view(out)
        if encoded.flags.c_contiguous:
            target = encoded.reshape(-1).view(np.uint8).data
            plain = self._decompress(data, target)
            if plain is not target:
                out[...] = self._interpret(plain)
            return out
        # The output lies scattered: decode into memory that is at hand, and copy once.
        array, target = self._scratch()
        plain = self._decompress(data, target)
        out[...] = array if plain is target else self._interpret(plain)
        return out

    def fill(self, read_into: Callable[[memoryview], int | None], out: Array) -> bool:
        """Read an uncompressed chunk (``plain``) into ``out``, without a buffer between; False when it is absent.

        ``read_into`` fills memory with the stored value and returns that value's size, as ``Store.get_into``.
        """
        encoded = out if self._identity else self._encoded_view(out)
        if encoded.flags.c_contiguous:
            array, target = out, encoded.reshape(-1).view(np.uint8).data
        else:
            array, target = self._scratch()
        size = read_into(target)
        if size is None:
            return False
        if size != len(target):
            raise_located(CodecError(f"{size} bytes are stored, expected are {len(target)}"), self._middle)
        if array is not out:
            out[...] = array
        return True

    def _decode_new(self, data: Buffer) -> Array:
        return self._interpret(self._decompress(data, None))

    def _decompress(self, data: Buffer, target: memoryview | None) -> Buffer:
        """Undo the bytes->bytes codecs; the last to be undone may fill ``target`` and then returns it."""
        if self._needs_bound:
            with bounded(self.most_stored or variable_limit(len(data))):
                return self._decompress_tail(data, target)
        return self._decompress_tail(data, target)

    def _decompress_tail(self, data: Buffer, target: memoryview | None) -> Buffer:
        codec: Codec = self._middle
        try:
            for codec, size, last in self._tail_reversed:
                data = codec.decode(data, size, target if last else None)
        except Exception as error:
            raise_located(error, codec)
        return data

    def _interpret(self, data: Buffer) -> Array:
        """Undo the array->bytes codec and the array->array codecs."""
        if self._identity and self._direct and len(data) == self._nbytes:
            # What the general way comes to, without its steps, which small chunks feel.
            return np.ndarray(self.spec.shape, self.spec.dtype, data)
        codec: Codec = self._middle
        try:
            array = self._middle.decode(data, self._middle_spec)
            for codec, spec in self._arrays_reversed:
                array = codec.decode(array, spec)
        except Exception as error:
            raise_located(error, codec)
        return array

    def read(self, source: ByteSource, region: Region, out: Array, slot: CacheSlot | None = None) -> bool:
        """Decode ``region`` of the chunk behind ``source`` into ``out``; False, with ``out`` unchanged, when absent.

        ``slot`` is where decoded chunks are looked up and kept; None where nothing is. Raises CodecError.
        """
        if isinstance(self._middle, RegionCodec):
            return self._read_regions(self._middle, source, region, out, slot)
        if slot is not None:
            cached = slot.get()
            if cached is not None:
                out[...] = cached[region]
                return True
        whole = self.covers(region)
        if not whole and self.partial and self._worth_partial(region, slot):
            return self._read_partial(source, region, out)
        if slot is not None and slot.keep:
            array = slot.load(lambda: self._read_whole(source))
        else:
            data = source.read()
            if data is None:
                return False
            if whole:
                self.decode(data, out)
                return True
            array = self.decode(data, self._scratch()[0] if self._direct_tail else None)
        if array is None:
            return False
        out[...] = array[region]
        return True

    def _read_whole(self, source: ByteSource) -> Array | None:
        data = source.read()
        return None if data is None else self._decode_new(data)

    @property
    def sharded(self) -> bool:
        """Whether chunks are made of smaller ones."""
        return isinstance(self._middle, RegionCodec)

    def covers(self, region: Region) -> bool:
        """Tell whether the region is the whole chunk."""
        # A loop and not all(...): this runs for every small chunk, where a generator is felt.
        for part, length in zip(region, self.spec.shape, strict=True):  # noqa: SIM110
            if part.stop - part.start != length:
                return False
        return True

    def _worth_partial(self, region: Region, slot: CacheSlot | None) -> bool:
        """Whether to decode just the region, rather than the chunk for this and the next time.

        Uncompressed bytes are always read in part: the next time costs no more. Compressed ones the first time;
        who comes back soon (a scan in small steps) gets the chunk decoded whole, and kept.
        """
        nbytes = self._nbytes
        if nbytes is None or nbytes < LEAST_PARTIAL_NBYTES:
            return False
        if not self.compressed or nbytes > MOST_WHOLE_NBYTES:
            return True
        if nbytes < LEAST_PARTIAL_COMPRESSED_NBYTES or self._span(region) * 2 > nbytes:
            return False
        return slot is None or not slot.keep or not slot.touched_before()

    def _span(self, region: Region) -> int:
        """Return how far apart the first and last byte of the region lie in the encoded array: what lies between in
        the same compressed blocks must be decoded too.
        """
        inner = self._encoded_region(region)
        if inner is None:
            return self.spec.nbytes or 0
        span = 0
        stride = 1
        for part, length in zip(reversed(inner), reversed(self._middle_spec.shape), strict=True):
            span += (part.stop - part.start - 1) * stride
            stride *= length
        return (span + 1) * self._middle_spec.dtype.itemsize

    def _read_partial(self, source: ByteSource, region: Region, out: Array) -> bool:
        codec: Codec = self._middle
        try:
            for codec, size, _ in self._tail_reversed:
                opened = None if size is None else codec.open_source(source, size)
                if opened is None:
                    return self._read_unopened(source, region, out)
                source = opened
            inner = region
            for codec, spec in self._arrays:
                mapped = codec.encoded_region(inner, spec)
                if mapped is None:
                    return self._read_unopened(source, region, out)
                inner = mapped
            codec = self._middle
            array = self._middle.decode_region(source, inner, self._middle_spec)
            if array is None:
                return False
            for codec, spec in self._arrays_reversed:
                array = codec.decode(array, spec)
        except Exception as error:
            raise_located(error, codec)
        out[...] = array
        return True

    def _read_unopened(self, source: ByteSource, region: Region, out: Array) -> bool:
        array = self._read_whole(source)
        if array is None:
            return False
        out[...] = array[region]
        return True

    def _read_regions(
        self, middle: RegionCodec, source: ByteSource, region: Region, out: Array, slot: CacheSlot | None
    ) -> bool:
        if self._tail:
            # A codec around whole shards: rare, and unless it can be opened, the shard is decoded first.
            opened = self._open_tail(source)
            if opened is None:
                return False
            source = opened
        try:
            return self._read_inner(middle, source, region, out, slot)
        except Exception as error:
            raise_located(error, middle)

    def _read_inner(
        self, middle: RegionCodec, source: ByteSource, region: Region, out: Array, slot: CacheSlot | None
    ) -> bool:
        inner = self._encoded_region(region)
        if inner is not None and self._viewable:
            return middle.read_region(source, inner, self._middle_spec, self._encoded_view(out), slot)
        everything = tuple(slice(0, length, 1) for length in self._middle_spec.shape)
        box = everything if inner is None else inner
        array = np.empty(tuple(part.stop - part.start for part in box), self._middle_spec.dtype)
        if not middle.read_region(source, box, self._middle_spec, array, slot):
            return False
        for codec, spec in self._arrays_reversed:
            array = codec.decode(array, spec)
        out[...] = array[region] if inner is None else array
        return True

    def first_absent(self, source: ByteSource, region: Region) -> tuple[int, ...] | None:
        """Return the coordinates of the first inner chunk that ``region`` touches and that is not stored; None when
        all are, as in a chunk that is not made of smaller ones. The chunk itself must be there.
        """
        if not isinstance(self._middle, RegionCodec):
            return None
        opened = self._open_tail(source) if self._tail else source
        inner = self._encoded_region(region)
        everything = tuple(slice(0, length, 1) for length in self._middle_spec.shape)
        if opened is None:
            raise CodecError("the chunk vanished while it was being read")
        try:
            return self._middle.first_absent(opened, inner or everything, self._middle_spec)
        except Exception as error:
            raise_located(error, self._middle)

    def _encoded_region(self, region: Region) -> Region | None:
        """Return where the region lies in what the array->bytes codec is given; None where that takes the whole."""
        inner: Region | None = region
        for codec, spec in self._arrays:
            inner = None if inner is None else codec.encoded_region(inner, spec)
        return inner

    def _open_tail(self, source: ByteSource) -> ByteSource | None:
        """Return a source of what the bytes->bytes codecs decode to, opened in part where they can."""
        codec: Codec = self._middle
        try:
            for codec, size, _ in self._tail_reversed:
                opened = None if size is None else codec.open_source(source, size)
                if opened is None:
                    data = source.read()
                    if data is None:
                        return None
                    with bounded(self.most_stored or variable_limit(len(data))):
                        opened = BufferSource(codec.decode(data, size))
                source = opened
        except Exception as error:
            raise_located(error, codec)
        return source

    def _encoded_view(self, array: Array) -> Array:
        for codec, _ in self._arrays:
            viewed = codec.view(array)
            assert viewed is not None
            array = viewed
        return array

    def _scratch(self) -> tuple[Array, memoryview]:
        """Return this thread's memory for one decoded chunk: as an array of ``spec.shape``, and its bytes.

        Fresh memory costs more than decoding into it: its pages must be mapped one by one. One chunk is kept per
        thread, of the pipeline used last.
        """
        if getattr(_local, "owner", None) is not self:
            encoded = new_chunk(self._middle_spec)
            array = encoded
            for codec, spec in self._arrays_reversed:
                array = codec.decode(array, spec)
            _local.scratch = array, encoded.reshape(-1).view(np.uint8).data
            _local.owner = self if encoded.nbytes <= MOST_SCRATCH_NBYTES else None
        scratch: tuple[Array, memoryview] = _local.scratch
        return scratch

    # -- encoding ----------------------------------------------------------------------------------------------

    def encode(self, array: Array, *, passing: bool = False, keep_filled: bool = False) -> Buffer:
        """Encode a whole chunk of ``spec.shape``. Raises CodecError.

        What is returned may be the memory of ``array``. With ``passing`` it may also be this thread's scratch memory,
        and is to be used before the next chunk is encoded or decoded. ``keep_filled`` stores parts (inner chunks) that
        hold nothing but the fill value, which otherwise are left out.
        """
        if not self._encoding_checked:
            self._check_encoding()
        codec: Codec = self._middle
        try:
            if self._direct_encoding and (passing or self._tail) and self._scattered(array):
                scratch, memory = self._scratch()
                scratch[...] = array
                data: Buffer = memory
                borrowed = not passing
            else:
                for codec, spec in self._arrays:
                    array = codec.encode(array, spec)
                codec = self._middle
                if keep_filled and isinstance(self._middle, RegionCodec):
                    data = b"".join(self._middle.encode_parts(array, self._middle_spec, True))
                else:
                    data = self._middle.encode(array, self._middle_spec)
                borrowed = False
            for codec, _ in self._tail:
                data = codec.encode(data)
        except Exception as error:
            raise_located(error, codec, "encode")
        # A codec may have passed on what it was given.
        return bytes(data) if borrowed and not isinstance(data, bytes) else data

    def encode_parts(self, array: Array, keep_filled: bool = False) -> list[Buffer]:
        """Encode a whole chunk to parts of its value, for ``Store.set_parts``; to be used before the next chunk is
        encoded or decoded by this thread. Raises CodecError.
        """
        if not isinstance(self._middle, RegionCodec) or self._tail:
            return [self.encode(array, passing=True, keep_filled=keep_filled)]
        if not self._encoding_checked:
            self._check_encoding()
        codec: Codec = self._middle
        try:
            for codec, spec in self._arrays:
                array = codec.encode(array, spec)
            codec = self._middle
            return self._middle.encode_parts(array, self._middle_spec, keep_filled)
        except Exception as error:
            raise_located(error, codec, "encode")

    def _check_encoding(self) -> None:
        """Raise CodecError if a codec has a parameter that it cannot encode with."""
        for codec in self.codecs:
            try:
                codec.check_encoding()
            except MetadataError as error:
                raise CodecError(f"{error}; the array can be read, but not written") from error
        self._encoding_checked = True

    def working_chunk(self) -> Array:
        """Return memory for one decoded chunk, to be changed and then given to ``encode_parts``. It is this thread's
        scratch memory, where that saves anything.
        """
        return self._scratch()[0] if self._direct else new_chunk(self.spec)

    def _scattered(self, array: Array) -> bool:
        """Whether the bytes of a decoded chunk lie in another order than they are to be encoded in."""
        return not self._encoded_view(array).flags.c_contiguous


def new_chunk(spec: ChunkSpec) -> Array:
    """Return memory for a chunk. Raises CodecError where there is not enough: metadata can declare any size."""
    try:
        return np.empty(spec.shape, spec.dtype)
    except (MemoryError, ValueError) as error:
        raise CodecError(
            f"a chunk of shape {spec.shape} and data type {spec.dtype} does not fit into memory"
        ) from error


def _nothing(spec: ChunkSpec) -> Array:
    """Return an array of the right rank and dtype without memory behind it, to ask codecs about views."""
    return np.empty((0,) * len(spec.shape), spec.dtype)
