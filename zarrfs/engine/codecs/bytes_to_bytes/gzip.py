"""gzip: the GNU zip format (RFC 1952).

Specification: https://zarr-specs.readthedocs.io/en/latest/v3/codecs/gzip/ (version 1.0)

Names: ``gzip``.

Example::

    {"name": "gzip", "configuration": {"level": 1}}

Decoding uses Intel's ISA-L if the package ``isal`` is installed, and zlib otherwise. Consecutive members are one
stream, according to the RFC.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from types import ModuleType
from typing import Any, ClassVar, Self

from zarrfs.engine.codecs.base import Buffer, BytesBytesCodec, CodecError
from zarrfs.engine.codecs.configuration import check_keys, integer
from zarrfs.engine.codecs.limits import check_size, limit_error, size_error, variable_limit

fast_zlib: ModuleType
try:
    from isal import isal_zlib

    fast_zlib = isal_zlib
except ImportError:
    fast_zlib = zlib

__all__ = ["GzipCodec", "inflate"]

GZIP_WBITS = 31
ZLIB_WBITS = 15

ZLIB_ERRORS: tuple[type[Exception], ...] = (zlib.error, getattr(fast_zlib, "error", zlib.error))


def inflate(data: Buffer, size: int | None, wbits: int) -> bytes:
    """Decompress a deflate stream to ``size`` bytes, or, if ``size`` is None, to at most ``variable_limit``.

    ``wbits`` selects the container, as in zlib. Zero bytes after a gzip member are padding. Any other bytes must be
    another member. Raises CodecError.
    """
    limit = variable_limit(len(data)) if size is None else size
    view = memoryview(data)
    parts: list[bytes] = []
    done = position = 0
    while True:
        position, done = _inflate_member(view, position, wbits, parts, done, limit, size)
        if wbits != GZIP_WBITS or position == len(view):
            break
        if not view[position] and not bytes(view[position:]).strip(b"\0"):
            break
    check_size(done, size)
    return parts[0] if len(parts) == 1 else b"".join(parts)


FIRST_INPUT_NBYTES = 512
"""How many bytes the decoder of a second or later member receives first. The number is doubled for each further input.

The decoder copies the input that follows its member. If it received all remaining data for each of a million short
members, the time would grow with the square of their number.
"""


def _inflate_member(
    view: memoryview, position: int, wbits: int, parts: list[bytes], done: int, limit: int, size: int | None
) -> tuple[int, int]:
    """Decompress one member and append it to ``parts``. Return its end and the new number of decoded bytes."""
    decoder = fast_zlib.decompressobj(wbits)
    length = FIRST_INPUT_NBYTES if position else len(view)
    chunk: Any = view[position : position + length]
    position += len(chunk)
    while True:
        try:
            # One byte more than allowed, to detect a stream that is too long.
            part = decoder.decompress(chunk, limit - done + 1)
        except ZLIB_ERRORS as error:
            raise CodecError(f"the stream is corrupt: {error}") from error
        done += len(part)
        parts.append(part)
        if done > limit:
            raise limit_error(limit) if size is None else size_error(f"more than {size}", size)
        if decoder.eof:
            return position - len(decoder.unused_data), done
        rest = decoder.unconsumed_tail
        if rest and (part or len(rest) < len(chunk)):
            chunk = rest
            continue
        if rest or position == len(view):
            raise CodecError(f"the stream is truncated: it ends after {done} bytes")
        length *= 2
        chunk = view[position : position + length]
        position += len(chunk)


class GzipCodec(BytesBytesCodec):
    """bytes -> bytes: gzip with ``level`` 0 (no compression) to 9 (smallest result)."""

    name: ClassVar[str] = "gzip"
    native_decoder: ClassVar[str] = "gzip"

    def __init__(self, level: Any = 5) -> None:
        self.level = level

    @classmethod
    def from_configuration(cls, configuration: Mapping[str, Any]) -> Self:
        check_keys(cls.name, configuration, ("level",))
        return cls(configuration.get("level", 5))

    def check_encoding(self) -> None:
        integer(self.name, self.configuration(), "level", 0, 9)

    def configuration(self) -> dict[str, Any]:
        return {"level": self.level}

    def encode(self, data: Buffer) -> Buffer:
        encoder = zlib.compressobj(self.level, zlib.DEFLATED, GZIP_WBITS)
        return encoder.compress(data) + encoder.flush()

    def decode(self, data: Buffer, size: int | None, out: memoryview | None = None) -> Buffer:
        return inflate(data, size, GZIP_WBITS)
