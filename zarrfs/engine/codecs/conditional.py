"""conditional: bytes->bytes codecs that are applied to a chunk or not, according to a mask in the chunk.

Specification: https://github.com/zarr-developers/zarr-extensions/pull/27

Names: ``conditional``.

Example::

    {"name": "conditional", "configuration": {"codecs": [{"name": "gzip", "configuration": {"level": 5}}],
     "header_bits": 8}}

An encoded chunk begins with a little-endian mask of ``header_bits`` bits. Bit ``i`` is set if codec ``i`` was applied.
By default the mask has the fewest bytes that hold one bit per codec.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self

from zarrfs.engine.codecs.base import Buffer, BytesBytesCodec, ChunkSpec, CodecError
from zarrfs.engine.codecs.configuration import check_keys, integer
from zarrfs.engine.codecs.limits import bounded, check_size, intermediate_limit, variable_limit
from zarrfs.errors import MetadataError
from zarrfs.text import short_repr

__all__ = ["ConditionalCodec"]

MAX_HEADER_BITS = 512


class ConditionalCodec(BytesBytesCodec):
    """bytes -> bytes: encoding applies a compressor if the result is smaller, and any other codec (a shuffle, a
    checksum) always.
    """

    name: ClassVar[str] = "conditional"

    def __init__(self, codecs: Sequence[BytesBytesCodec], header_bits: int | None = None) -> None:
        self.codecs = tuple(codecs)
        self.header_bits = header_bits
        self._header_size = (header_bits or -(-len(self.codecs) // 8) * 8) // 8

    @classmethod
    def from_configuration(cls, configuration: Mapping[str, Any]) -> Self:
        from zarrfs.engine.codecs.registry import codec_from_json

        check_keys(cls.name, configuration, ("codecs", "header_bits"))
        entries = configuration.get("codecs")
        if not isinstance(entries, list | tuple) or not entries:
            raise MetadataError(
                f"codec 'conditional': codecs must be a non-empty list of codecs, found {short_repr(entries)}"
            )
        codecs: list[BytesBytesCodec] = []
        for index, entry in enumerate(entries):
            codec = codec_from_json(entry, f"codec 'conditional': codecs/{index}")
            if not isinstance(codec, BytesBytesCodec):
                raise MetadataError(
                    f"codec 'conditional': codecs/{index} must be a bytes->bytes codec, found {short_repr(entry)}"
                )
            codecs.append(codec)
        bits = configuration.get("header_bits")
        if bits is not None:
            bits = integer(cls.name, configuration, "header_bits", len(codecs), MAX_HEADER_BITS)
            if bits % 8:
                raise MetadataError(f"codec 'conditional': header_bits must be a multiple of 8, found {bits}")
        return cls(codecs, bits)

    def configuration(self) -> dict[str, Any]:
        from zarrfs.engine.codecs.registry import codec_to_json

        entries = {"codecs": [codec_to_json(codec) for codec in self.codecs]}
        return entries if self.header_bits is None else {**entries, "header_bits": self.header_bits}

    def for_chunks(self, spec: ChunkSpec) -> Self:
        return type(self)([codec.for_chunks(spec) for codec in self.codecs], self.header_bits)

    def check(self, spec: ChunkSpec) -> None:
        for codec in self.codecs:
            codec.check(spec)

    def check_encoding(self) -> None:
        for codec in self.codecs:
            codec.check_encoding()

    def encode(self, data: Buffer) -> Buffer:
        mask = 0
        for index, codec in enumerate(self.codecs):
            size = memoryview(data).nbytes
            encoded = codec.encode(data)
            if codec.encoded_size(size) is not None or memoryview(encoded).nbytes < size:
                data = encoded
                mask |= 1 << index
        return mask.to_bytes(self._header_size, "little") + bytes(data)

    def decode(self, data: Buffer, size: int | None, out: memoryview | None = None) -> Buffer:
        view = memoryview(data)
        if len(view) < self._header_size:
            raise CodecError(
                f"the data are truncated: {len(view)} bytes cannot hold the mask of {self._header_size} bytes"
            )
        mask = int.from_bytes(view[: self._header_size], "little")
        if mask >> len(self.codecs):
            raise CodecError(f"the mask {mask:#x} has more bits than the {len(self.codecs)} codecs")
        decoded: Buffer = view[self._header_size :]
        applied = [codec for index, codec in enumerate(self.codecs) if mask >> index & 1]
        chunk_size = size
        sizes: list[int | None] = []
        for codec in applied:
            sizes.append(size)
            size = None if size is None else codec.encoded_size(size)
        with bounded(variable_limit(len(view)) if chunk_size is None else intermediate_limit(chunk_size)):
            for codec, decoded_size in zip(reversed(applied), reversed(sizes), strict=True):
                decoded = codec.decode(decoded, decoded_size)
        check_size(memoryview(decoded).nbytes, sizes[0] if sizes else size)
        return decoded
