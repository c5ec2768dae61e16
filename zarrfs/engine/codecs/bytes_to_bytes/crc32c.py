"""crc32c: appends a checksum of the bytes.

Specification: https://zarr-specs.readthedocs.io/en/latest/v3/codecs/crc32c/ (version 1.0)

Names: ``crc32c``.

Example::

    {"name": "crc32c"}

The checksum is verified on every read. Partial decoding is therefore not possible.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any, ClassVar, Self

import google_crc32c

from zarrfs.engine.codecs.base import Buffer, BytesBytesCodec, CodecError
from zarrfs.engine.codecs.configuration import check_keys
from zarrfs.engine.codecs.limits import check_size

__all__ = ["Crc32cCodec"]

CHECKSUM = struct.Struct("<I")


class Crc32cCodec(BytesBytesCodec):
    """bytes -> bytes: CRC-32C (RFC 3720) as four little-endian bytes at the end."""

    name: ClassVar[str] = "crc32c"
    native_decoder: ClassVar[str] = "crc32c"

    @classmethod
    def from_configuration(cls, configuration: Mapping[str, Any]) -> Self:
        check_keys(cls.name, configuration, ())
        return cls()

    def configuration(self) -> dict[str, Any]:
        return {}

    def encoded_size(self, size: int) -> int:
        return size + CHECKSUM.size

    def encode(self, data: Buffer) -> Buffer:
        return bytes(data) + CHECKSUM.pack(_crc(data))

    def decode(self, data: Buffer, size: int | None, out: memoryview | None = None) -> Buffer:
        view = memoryview(data)
        if len(view) < CHECKSUM.size:
            raise CodecError(
                f"the data are truncated: {len(view)} bytes cannot hold a checksum of {CHECKSUM.size} bytes"
            )
        body = view[: -CHECKSUM.size]
        check_size(len(body), size)
        (stored,) = CHECKSUM.unpack(view[-CHECKSUM.size :])
        computed = _crc(body)
        if computed != stored:
            raise CodecError(
                f"the checksum of the data is {computed:#010x}, the stored checksum is {stored:#010x}"
            )
        return body


def _crc(data: Buffer) -> int:
    # The library only accepts bytes.
    return google_crc32c.value(data if isinstance(data, bytes) else bytes(data))  # type: ignore[no-any-return]
