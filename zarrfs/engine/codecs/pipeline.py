"""The codecs of an array as one: whole chunks and regions, decoded and encoded.

The representations between the codecs (the specification's "determination of encoded representations") are worked
out once, when the pipeline is made. Reading asks a ``ByteSource`` for as little as the chain allows: a chain whose
bytes->bytes codecs can open sources and whose array->bytes codec can decode regions costs just the bytes of the
region; any other decodes the chunk whole.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from zarrfs.engine.cache import CacheSlot
from zarrfs.engine.codecs.base import (
    ArrayArrayCodec,
    ArrayBytesCodec,
    Buffer,
    BytesBytesCodec,
    ByteSource,
    ChunkSpec,
    Codec,
    CodecError,
    Region,
)
from zarrfs.engine.codecs.bytes import BytesCodec
from zarrfs.errors import MetadataError, ZarrError

__all__ = ["LEAST_PARTIAL_NBYTES", "CodecPipeline", "RegionCodec", "guarded"]

Array = np.ndarray[Any, Any]

LEAST_PARTIAL_NBYTES = 64 << 10
"""A chunk smaller than this is decoded whole: opening it in part costs more than it saves."""

MOST_WHOLE_NBYTES = 256 << 20
"""A chunk larger than this is read in part where that is possible, even when it is looked at again and again."""

_scratch = threading.local()


class RegionCodec(ArrayBytesCodec):
    """An array->bytes codec that is made of smaller chunks, and so writes a region straight into an output."""

    def read_region(
        self, source: ByteSource, region: Region, spec: ChunkSpec, out: Array, slot: CacheSlot | None
    ) -> bool:
        """Decode ``region`` into ``out`` (of the region's shape); False when the value is absent."""
        raise NotImplementedError


class guarded:  # noqa: N801 - used as a statement
    """Turn what codec libraries raise on bad bytes into CodecError, naming the codec."""

    __slots__ = ("codec", "verb")

    def __init__(self, codec: Codec, verb: str = "decode") -> None:
        self.codec = codec
        self.verb = verb

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        if error is None or isinstance(error, ZarrError) or not isinstance(error, Exception):
            return
        if isinstance(error, CodecError) and getattr(error, "named", False):
            return
        text = str(error) or type(error).__name__
        wrapped = CodecError(f"codec {self.codec.name!r} cannot {self.verb}: {text}")
        wrapped.named = True  # type: ignore[attr-defined]
        raise wrapped from error


class CodecPipeline:
    """The codec chain of an array, made ready for chunks of one shape.

    Immutable after construction and shared by threads. Raises MetadataError on construction when a codec does not
    fit what comes before it.

    Attributes:
        spec: the decoded representation, that is, a chunk in memory.
        partial: whether a region can cost less than the whole chunk.
        codecs: the chain as given.
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
        self.encoded_size = sizes[-1]
        self._viewable = all(codec.view(_nothing(a)) is not None for codec, a in self._arrays)
        self._regional = all(
            codec.encoded_region(tuple(slice(0, n, 1) for n in a.shape), a) is not None for codec, a in self._arrays
        )
        self._direct = isinstance(self._middle, BytesCodec) and self._can_fill_directly(spec)
        self.partial = self._regional and self._middle.partial and all(c.partial for c, _ in self._tail)
        self.compressed = any(size is None for size in sizes)

    def _can_fill_directly(self, spec: ChunkSpec) -> bool:
        """Whether the decoded bytes are the array's own memory, so that decompressing may fill the output."""
        if not self._viewable or spec.dtype.hasobject or spec.dtype.kind == "b" or spec.nbytes == 0:
            return False
        stored = self._middle.stored_dtype(self._middle_spec.dtype)  # type: ignore[attr-defined]
        return bool(stored == spec.dtype)

    # -- decoding ----------------------------------------------------------------------------------------------

    def decode(self, data: Buffer, out: Array | None = None) -> Array:
        """Decode a whole chunk; return an array of ``spec.shape``, which is ``out`` where that could be filled.

        ``out`` is an array of the chunk's shape and dtype. What is returned may be read-only, and of another byte
        order than ``spec.dtype``. Raises CodecError.
        """
        direct = None
        if out is not None and self._direct:
            direct = self._encoded_view(out)
            if not direct.flags.c_contiguous:
                direct = None
        target = None if direct is None or not self._tail else direct.reshape(-1).view(np.uint8).data
        for index in range(len(self._tail) - 1, -1, -1):
            codec, size = self._tail[index]
            with guarded(codec):
                data = codec.decode(data, size, target if index == 0 else None)
        if target is not None and data is target:
            assert out is not None
            return out
        with guarded(self._middle):
            array = self._middle.decode(data, self._middle_spec)
        for array_codec, spec in reversed(self._arrays):
            with guarded(array_codec):
                array = array_codec.decode(array, spec)
        if out is not None:
            out[...] = array
            return out
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
        whole = self._covers(region)
        if not whole and self.partial and self._worth_partial(region, slot):
            return self._read_partial(source, region, out)
        if slot is not None and slot.keep:
            array = slot.load(lambda: self._read_whole(source))
        elif whole:
            data = source.read()
            if data is None:
                return False
            self.decode(data, out)
            return True
        else:
            array = self._read_whole(source, scratch=True)
        if array is None:
            return False
        out[...] = array[region]
        return True

    def _read_whole(self, source: ByteSource, scratch: bool = False) -> Array | None:
        data = source.read()
        if data is None:
            return None
        return self.decode(data, self.scratch() if scratch else None)

    def _covers(self, region: Region) -> bool:
        return all(part.stop - part.start == length for part, length in zip(region, self.spec.shape, strict=True))

    def _worth_partial(self, region: Region, slot: CacheSlot | None) -> bool:
        """Whether to decode just the region, rather than the chunk for this and the next time.

        Uncompressed bytes are always read in part: the next time costs no more. Compressed ones the first time;
        who comes back soon (a scan in small steps) gets the chunk decoded whole, and kept.
        """
        nbytes = self.spec.nbytes
        if nbytes is None or nbytes < LEAST_PARTIAL_NBYTES:
            return False
        if not self.compressed or nbytes > MOST_WHOLE_NBYTES:
            return True
        wanted = self.spec.dtype.itemsize
        for part in region:
            wanted *= part.stop - part.start
        if wanted * 2 > nbytes:
            return False
        return slot is None or not slot.keep or not slot.touched_before()

    def _read_partial(self, source: ByteSource, region: Region, out: Array) -> bool:
        for codec, size in reversed(self._tail):
            if size is None:
                return self._read_unopened(source, region, out)
            with guarded(codec):
                opened = codec.open_source(source, size)
            if opened is None:
                return self._read_unopened(source, region, out)
            source = opened
        inner = region
        for array_codec, spec in self._arrays:
            mapped = array_codec.encoded_region(inner, spec)
            if mapped is None:
                return self._read_unopened(source, region, out)
            inner = mapped
        with guarded(self._middle):
            array = self._middle.decode_region(source, inner, self._middle_spec)
        if array is None:
            return False
        for array_codec, spec in reversed(self._arrays):
            with guarded(array_codec):
                array = array_codec.decode(array, spec)
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
        inner = region
        target = out
        direct = True
        for codec, spec in self._arrays:
            mapped = codec.encoded_region(inner, spec)
            viewed = codec.view(target) if direct else None
            if mapped is None:
                inner = tuple(slice(0, length, 1) for length in self._middle_spec.shape)
                direct = False
                break
            inner = mapped
            direct = viewed is not None
            if viewed is not None:
                target = viewed
        if direct:
            with guarded(middle):
                return middle.read_region(source, inner, self._middle_spec, target, slot)
        shape = tuple(part.stop - part.start for part in inner)
        array = np.empty(shape, self._middle_spec.dtype)
        with guarded(middle):
            if not middle.read_region(source, inner, self._middle_spec, array, slot):
                return False
        for codec, spec in reversed(self._arrays):
            with guarded(codec):
                array = codec.decode(array, spec)
        out[...] = array if array.shape == out.shape else array[region]
        return True

    def _open_tail(self, source: ByteSource) -> ByteSource | None:
        from zarrfs.engine.codecs.base import BufferSource

        for codec, size in reversed(self._tail):
            opened = None
            if size is not None:
                with guarded(codec):
                    opened = codec.open_source(source, size)
            if opened is None:
                data = source.read()
                if data is None:
                    return None
                with guarded(codec):
                    opened = BufferSource(codec.decode(data, size))
            source = opened
        return source

    def _encoded_view(self, array: Array) -> Array:
        for codec, _ in self._arrays:
            viewed = codec.view(array)
            assert viewed is not None
            array = viewed
        return array

    def scratch(self) -> Array | None:
        """Return this thread's buffer in the shape of a decoded chunk, or None where decoding cannot use one.

        Fresh memory costs more than decoding into it: its pages must be mapped one by one.
        """
        nbytes = self.spec.nbytes
        if not self._direct or nbytes is None or nbytes > MOST_WHOLE_NBYTES:
            return None
        buffer: Array | None = getattr(_scratch, "buffer", None)
        if buffer is None or buffer.nbytes < nbytes:
            buffer = _scratch.buffer = np.empty(nbytes, np.uint8)
        flat = buffer[:nbytes].view(self.spec.dtype)
        shape = self.spec.shape
        if not self._arrays:
            return flat.reshape(shape)
        # The memory is laid out as encoded; the caller sees it decoded.
        array = flat.reshape(self._middle_spec.shape)
        for codec, spec in reversed(self._arrays):
            array = codec.decode(array, spec)
        return array

    # -- encoding ----------------------------------------------------------------------------------------------

    def encode(self, array: Array) -> Buffer:
        """Encode a whole chunk of ``spec.shape``. Raises CodecError."""
        for array_codec, spec in self._arrays:
            with guarded(array_codec, "encode"):
                array = array_codec.encode(array, spec)
        with guarded(self._middle, "encode"):
            data = self._middle.encode(array, self._middle_spec)
        for codec, _ in self._tail:
            with guarded(codec, "encode"):
                data = codec.encode(data)
        return data


def _nothing(spec: ChunkSpec) -> Array:
    """Return an array of the right rank and dtype without memory behind it, to ask codecs about views."""
    return np.empty((0,) * len(spec.shape), spec.dtype)


def is_ordered(codecs: Sequence[Codec]) -> bool:
    """Tell whether the kinds of the codecs stand in the order that the specification demands."""
    ranks = [0 if isinstance(c, ArrayArrayCodec) else 1 if isinstance(c, ArrayBytesCodec) else 2 for c in codecs]
    return ranks.count(1) == 1 and all(a <= b for a, b in pairwise(ranks))
