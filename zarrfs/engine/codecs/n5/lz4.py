"""n5_lz4: LZ4 as written by the Java implementation of N5, a stream of ``LZ4Block`` frames.

Specification: the class ``LZ4BlockOutputStream`` of https://github.com/lz4/lz4-java; there is no document. A frame
consists of the magic ``LZ4Block``, a token (method in the high half, level in the low half), the compressed length, the
decompressed length and a checksum (little-endian, 32 bits each), and the compressed bytes. An empty frame ends the
stream.

Names: ``n5_lz4``.

Example::

    {"name": "n5_lz4", "configuration": {"block_size": 65536}}
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Self

from zarrfs.engine.codecs.base import Buffer, BytesBytesCodec, CodecError
from zarrfs.engine.codecs.configuration import check_keys, integer
from zarrfs.engine.codecs.libraries import import_library
from zarrfs.engine.codecs.limits import limit_error, size_error, variable_limit

__all__ = ["N5Lz4Codec", "xxhash32"]

MAGIC = b"LZ4Block"
RAW, LZ4 = 0x10, 0x20
LEVEL_BASE = 10
"""A level in the token stands for a block size of 2^(level + 10)."""

_FRAME = struct.Struct("<8sBIII")
_SEED = 0x9747B28C
_CHECKSUM_MASK = 0x0FFFFFFF

_PRIME1, _PRIME2, _PRIME3, _PRIME4, _PRIME5 = 2654435761, 2246822519, 3266489917, 668265263, 374761393
_MASK = 0xFFFFFFFF


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
    return xxhash32(block, _SEED) & _CHECKSUM_MASK


def xxhash32(data: bytes, seed: int = 0) -> int:
    """Return the xxHash-32 of the bytes (https://github.com/Cyan4973/xxHash/blob/dev/doc/xxhash_spec.md).

    This Python implementation processes about 15 MB/s, which is sufficient for a rarely used codec.
    """
    size = len(data)
    striped_size = size - size % 16
    if striped_size:
        acc1, acc2 = (seed + _PRIME1 + _PRIME2) & _MASK, (seed + _PRIME2) & _MASK
        acc3, acc4 = seed, (seed - _PRIME1) & _MASK
        for first, second, third, fourth in struct.iter_unpack("<4I", data[:striped_size]):
            acc1 = (acc1 + first * _PRIME2) & _MASK
            acc1 = ((acc1 << 13 | acc1 >> 19) & _MASK) * _PRIME1 & _MASK
            acc2 = (acc2 + second * _PRIME2) & _MASK
            acc2 = ((acc2 << 13 | acc2 >> 19) & _MASK) * _PRIME1 & _MASK
            acc3 = (acc3 + third * _PRIME2) & _MASK
            acc3 = ((acc3 << 13 | acc3 >> 19) & _MASK) * _PRIME1 & _MASK
            acc4 = (acc4 + fourth * _PRIME2) & _MASK
            acc4 = ((acc4 << 13 | acc4 >> 19) & _MASK) * _PRIME1 & _MASK
        total = _rotate(acc1, 1) + _rotate(acc2, 7) + _rotate(acc3, 12) + _rotate(acc4, 18)
    else:
        total = seed + _PRIME5
    total = (total + size) & _MASK
    words_end = striped_size + (size - striped_size) // 4 * 4
    for (word,) in struct.iter_unpack("<I", data[striped_size:words_end]):
        total = _rotate((total + word * _PRIME3) & _MASK, 17) * _PRIME4 & _MASK
    for byte in data[words_end:]:
        total = _rotate((total + byte * _PRIME5) & _MASK, 11) * _PRIME1 & _MASK
    total = (total ^ total >> 15) * _PRIME2 & _MASK
    total = (total ^ total >> 13) * _PRIME3 & _MASK
    return total ^ total >> 16


def _rotate(value: int, bits: int) -> int:
    return (value << bits | value >> (32 - bits)) & _MASK
