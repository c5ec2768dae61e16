"""Decoding whole chunks and regions of chunks.

A region is decoded from a ``ByteSource``, of which as few bytes are read as the chain allows. This module does not
decide what is cached and what is decoded in part; ``zarrfs.engine.read.planning`` does.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from zarrfs.engine.codecs.base import (
    Buffer,
    BufferSource,
    ByteSource,
    Codec,
    CodecError,
    Region,
)
from zarrfs.engine.codecs.limits import bounded, variable_limit
from zarrfs.engine.codecs.pipeline.chain import CodecChain, RegionCodec, raise_located
from zarrfs.engine.codecs.pipeline.scratch import scratch_chunk
from zarrfs.engine.counters import decoded as decode_counter

__all__ = ["ChunkDecoder"]

Array = np.ndarray[Any, Any]

MIN_DIRECT_NBYTES = 96 << 10
"""Chunks of at least this size are decompressed into existing memory. For smaller chunks the allocator returns
memory that is already mapped, and passing a buffer costs more than it saves.
"""


class ChunkDecoder:
    """Decodes the chunks of one codec chain. Immutable and thread-safe. All methods raise CodecError."""

    def __init__(self, chain: CodecChain) -> None:
        self.chain = chain
        first = chain.bytes_codecs[0][0] if chain.bytes_codecs else None
        self._bytes_codecs = [(codec, size, codec is first) for codec, size in reversed(chain.bytes_codecs)]
        self._array_codecs = chain.array_codecs[::-1]
        self._nbytes = chain.nbytes
        unknown_sizes = sum(size is None for _, size in chain.bytes_codecs)
        self._needs_bound = unknown_sizes > (1 if chain.max_encoded_size is None else 0)
        self._interpret_is_view = not chain.array_codecs and chain.direct
        self._fills_output = (
            chain.direct and bool(chain.bytes_codecs) and (self._nbytes or 0) >= MIN_DIRECT_NBYTES
        )

    # -- whole chunks ------------------------------------------------------------------------------------------

    def decode(self, data: Buffer, out: Array | None = None) -> Array:
        """Decode a whole chunk. Return an array of ``chain.spec.shape``, which is ``out`` if it is not None.

        ``out`` has the shape and dtype of the chunk. A result that is not ``out`` may be read-only and may have another
        byte order than ``chain.spec.dtype``.
        """
        array = self._decode(data, out)
        decode_counter.add(array.nbytes)
        return array

    def _decode(self, data: Buffer, out: Array | None) -> Array:
        if out is None:
            return self._interpret(self._decompress(data, None))
        if not self._fills_output:
            out[...] = self._interpret(self._decompress(data, None))
            return out
        encoded = self.chain.encoded_view(out)
        if encoded.flags.c_contiguous:
            target = encoded.reshape(-1).view(np.uint8).data
            decoded = self._decompress(data, target)
            if decoded is not target:
                out[...] = self._interpret(decoded)
            return out
        # The output is not contiguous: decode into scratch memory and copy once.
        array, target = scratch_chunk(self.chain)
        decoded = self._decompress(data, target)
        out[...] = array if decoded is target else self._interpret(decoded)
        return out

    def decode_to_scratch(self, data: Buffer) -> Array:
        """Decode a whole chunk, into this thread's scratch memory if that is faster than allocating memory.

        The result is valid until this thread decodes or encodes the next chunk.
        """
        return self.decode(data, scratch_chunk(self.chain)[0] if self._fills_output else None)

    def read_uncompressed(self, read_into: Callable[[memoryview], int | None], out: Array) -> bool:
        """Read a chunk of an ``uncompressed`` chain into ``out`` without an intermediate buffer.

        ``read_into`` fills memory with the stored value and returns its size, as ``Store.get_into`` does. Return False
        when the chunk is missing.
        """
        encoded = self.chain.encoded_view(out)
        if encoded.flags.c_contiguous:
            array, target = out, encoded.reshape(-1).view(np.uint8).data
        else:
            array, target = scratch_chunk(self.chain)
        size = read_into(target)
        if size is None:
            return False
        if size != len(target):
            raise_located(
                CodecError(f"{size} bytes are stored, expected {len(target)}"),
                self.chain.array_bytes_codec,
            )
        if array is not out:
            out[...] = array
        decode_counter.add(out.nbytes)
        return True

    def _decompress(self, data: Buffer, target: memoryview | None) -> Buffer:
        """Decode the bytes->bytes codecs. The last decoding step may fill ``target`` and then returns it."""
        if self._needs_bound:
            # Each codec may expand its input. Without a common bound the factors would multiply.
            with bounded(self.chain.max_encoded_size or variable_limit(len(data))):
                return self._decode_bytes_codecs(data, target)
        return self._decode_bytes_codecs(data, target)

    def _decode_bytes_codecs(self, data: Buffer, target: memoryview | None) -> Buffer:
        codec: Codec = self.chain.array_bytes_codec
        try:
            for codec, size, is_last in self._bytes_codecs:
                data = codec.decode(data, size, target if is_last else None)
        except Exception as error:
            raise_located(error, codec)
        return data

    def _interpret(self, data: Buffer) -> Array:
        """Decode the array->bytes codec and the array->array codecs."""
        if self._interpret_is_view and len(data) == self._nbytes:
            # A shortcut with the same result as the general case; it is measurable for small chunks.
            return np.ndarray(self.chain.spec.shape, self.chain.spec.dtype, data)
        codec: Codec = self.chain.array_bytes_codec
        try:
            array = self.chain.array_bytes_codec.decode(data, self.chain.array_bytes_spec)
            for codec, spec in self._array_codecs:
                array = codec.decode(array, spec)
        except Exception as error:
            raise_located(error, codec)
        return array

    # -- regions -----------------------------------------------------------------------------------------------

    def decode_region(self, source: ByteSource, region: Region, out: Array) -> bool:
        """Decode ``region`` into ``out`` from as few bytes of ``source`` as the chain allows.

        Where a codec cannot decode in part for this chunk, the whole chunk is decoded. Return False when the value is
        missing; ``out`` is then unchanged.
        """
        codec: Codec = self.chain.array_bytes_codec
        try:
            decoded: ByteSource | None = source
            for codec, size, _ in self._bytes_codecs:
                decoded = None if size is None or decoded is None else codec.open_source(decoded, size)
            inner = self.chain.encoded_region(region)
            if decoded is None or inner is None:
                return self._decode_region_of_whole(source, region, out)
            codec = self.chain.array_bytes_codec
            array = self.chain.array_bytes_codec.decode_region(decoded, inner, self.chain.array_bytes_spec)
            if array is None:
                return False
            for codec, spec in self._array_codecs:
                array = codec.decode(array, spec)
        except Exception as error:
            raise_located(error, codec)
        out[...] = array
        decode_counter.add(out.nbytes)
        return True

    def _decode_region_of_whole(self, source: ByteSource, region: Region, out: Array) -> bool:
        data = source.read()
        if data is None:
            return False
        out[...] = self.decode(data)[region]
        return True

    # -- inner chunks ------------------------------------------------------------------------------------------

    def first_missing(self, source: ByteSource, region: Region) -> tuple[int, ...] | None:
        """Return the coordinates of the first inner chunk that ``region`` intersects and that is not stored.

        Return None when all are stored, or the chunk has no inner chunks. The chunk itself must exist.
        """
        if not self.chain.sharded:
            return None
        codec = self._region_codec()
        opened = self.open_bytes_codecs(source) if self.chain.bytes_codecs else source
        inner = self.chain.encoded_region(region)
        whole = tuple(slice(0, length, 1) for length in self.chain.array_bytes_spec.shape)
        if opened is None:
            raise CodecError("the chunk was deleted while it was being read")
        try:
            return codec.first_missing(opened, inner or whole, self.chain.array_bytes_spec)
        except Exception as error:
            raise_located(error, codec)

    def _region_codec(self) -> RegionCodec:
        codec = self.chain.array_bytes_codec
        if not isinstance(codec, RegionCodec):
            raise TypeError(f"codec {codec.name!r} has no inner chunks")
        return codec

    def open_bytes_codecs(self, source: ByteSource) -> ByteSource | None:
        """Return a source of what the bytes->bytes codecs decode to, or None when the value is missing."""
        codec: Codec = self.chain.array_bytes_codec
        try:
            for codec, size, _ in self._bytes_codecs:
                opened = None if size is None else codec.open_source(source, size)
                if opened is None:
                    data = source.read()
                    if data is None:
                        return None
                    with bounded(self.chain.max_encoded_size or variable_limit(len(data))):
                        opened = BufferSource(codec.decode(data, size))
                source = opened
        except Exception as error:
            raise_located(error, codec)
        return source
