"""n5_lz4: LZ4 as written by the Java implementation of N5, a stream of ``LZ4Block`` frames.

Specification: the class ``LZ4BlockOutputStream`` of https://github.com/lz4/lz4-java; there is no document. A frame
consists of the magic ``LZ4Block``, a token (method in the high half, level in the low half), the compressed length, the
decompressed length and a checksum (little-endian, 32 bits each), and the compressed bytes. An empty frame ends the
stream.

z5py writes one LZ4 block without frames. It is read if the size of the decoded data is known. It cannot begin with the
magic: this would be a match before the first byte.

Names: ``n5_lz4``.

Example::

    {"name": "n5_lz4", "configuration": {"block_size": 65536}}
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any, ClassVar, Self

from zarrfs.engine.codecs.base import Buffer, BytesBytesCodec, CodecError
from zarrfs.engine.codecs.configuration import check_keys, integer
from zarrfs.engine.codecs.limits import limit_error, size_error, variable_limit
from zarrfs.libraries import import_library

__all__ = ["N5Lz4Codec"]

MAGIC = b"LZ4Block"
RAW, LZ4 = 0x10, 0x20
LEVEL_BASE = 10
"""A level in the token stands for a block size of 2^(level + 10)."""

MAX_EXPANSION = 255
"""The maximum number of bytes that LZ4 decodes from one byte."""

_FRAME = struct.Struct("<8sBIII")
_SEED = 0x9747B28C
_CHECKSUM_MASK = 0x0FFFFFFF


class N5Lz4Codec(BytesBytesCodec):
    """bytes -> bytes: LZ4 in blocks of ``block_size`` bytes, each with a checksum."""

    name: ClassVar[str] = "n5_lz4"

    def __init__(self, block_size: Any = 1 << 16) -> None:
        self.block_size = block_size

    @classmethod
    def from_configuration(cls, configuration: Mapping[str, Any]) -> Self:
        check_keys(cls.name, configuration, ("block_size",))
        return cls(configuration.get("block_size", 1 << 16))

    def check_encoding(self) -> None:
        integer(self.name, self.configuration(), "block_size", 64, 1 << 25)

    def configuration(self) -> dict[str, Any]:
        return {"block_size": self.block_size}

    def encode(self, data: Buffer) -> Buffer:
        lz4 = import_library("numcodecs.lz4")

        level = max(0, (self.block_size - 1).bit_length() - LEVEL_BASE)
        view = memoryview(data).cast("B")
        parts = []
        for start in range(0, len(view), self.block_size):
            block = bytes(view[start : start + self.block_size])
            # numcodecs writes the decompressed length before the LZ4 block.
            packed = bytes(lz4.compress(block))[4:]
            method, stored = (LZ4, packed) if len(packed) < len(block) else (RAW, block)
            parts.append(_FRAME.pack(MAGIC, method | level, len(stored), len(block), _checksum(block)))
            parts.append(stored)
        parts.append(_FRAME.pack(MAGIC, RAW | level, 0, 0, 0))
        return b"".join(parts)

    def decode(self, data: Buffer, size: int | None, out: memoryview | None = None) -> Buffer:
        if size is not None and bytes(data[: len(MAGIC)]) != MAGIC:
            return _decode_unframed(memoryview(data).cast("B"), size)
        limit = variable_limit(len(data)) if size is None else size
        blocks = []
        total = 0
        for method, stored, length, checksum in _frames(memoryview(data).cast("B")):
            total += length
            if total > limit:
                raise limit_error(limit) if size is None else size_error(f"at least {total}", size)
            block = _unpack(method, stored, length)
            if _checksum(block) != checksum:
                raise CodecError(
                    f"the checksum of a block is {_checksum(block):#x}, the stored checksum is {checksum:#x}"
                )
            blocks.append(block)
        if size is not None and total != size:
            raise size_error(total, size)
        return b"".join(blocks)


def _decode_unframed(data: memoryview, size: int) -> bytes:
    """Return the bytes of a block of z5py. Raises CodecError."""
    if size <= MAX_EXPANSION * len(data):  # The decoder allocates the size.
        with suppress(RuntimeError):
            return _unpack(LZ4, data, size)
    raise CodecError(
        f"expected the magic {MAGIC!r} at byte 0, or one LZ4 block of {size} decoded bytes; found "
        f"{bytes(data[: len(MAGIC)])!r}"
    )


def _frames(data: memoryview) -> Iterator[tuple[int, memoryview, int, int]]:
    """Yield method, stored bytes, decompressed length and checksum of each frame. Raises CodecError."""
    position = 0
    while True:
        if len(data) - position < _FRAME.size:
            raise CodecError(
                f"the data are truncated: they end at byte {len(data)}, expected another frame at byte {position}"
            )
        magic, token, stored, length, checksum = _FRAME.unpack_from(data, position)
        if magic != MAGIC:
            raise CodecError(f"expected the magic {MAGIC!r} at byte {position}, found {magic!r}")
        position += _FRAME.size
        if stored == 0 and length == 0:
            return
        method = token & 0xF0
        if method not in (RAW, LZ4) or length == 0 or (method == RAW and stored != length):
            raise CodecError(
                f"a frame has method {method:#x}, {stored} encoded bytes and {length} decoded bytes, which is invalid"
            )
        if length > 1 << ((token & 0x0F) + LEVEL_BASE):
            raise CodecError(
                f"a frame declares {length} decoded bytes, more than its level {token & 0x0F} allows"
            )
        if len(data) - position < stored:
            raise CodecError(
                f"a frame declares {stored} encoded bytes, but only {len(data) - position} are left"
            )
        yield method, data[position : position + stored], length, checksum
        position += stored


def _unpack(method: int, stored: memoryview, length: int) -> bytes:
    if method == RAW:
        return bytes(stored)
    lz4 = import_library("numcodecs.lz4")

    block = bytes(lz4.decompress(struct.pack("<I", length) + bytes(stored)))
    if len(block) != length:
        raise size_error(len(block), length)
    return block


def _checksum(block: bytes) -> int:
    return int(import_library("xxhash").xxh32_intdigest(block, _SEED)) & _CHECKSUM_MASK
