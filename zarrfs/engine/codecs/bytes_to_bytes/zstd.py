"""zstd: Zstandard (RFC 8878).

Specification: https://github.com/zarr-developers/zarr-extensions/tree/main/codecs/zstd

Names: ``zstd``; in Zarr v2 too.

Example::

    {"name": "zstd", "configuration": {"level": 3, "checksum": false}}

A frame says in its header how large it becomes; one that says something else than the chunk's size is refused before
any memory is taken. Frames that do not say, and several frames in a row, are decompressed as a stream up to the size.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self

from zarrfs.engine.codecs.base import Buffer, BytesBytesCodec, CodecError
from zarrfs.engine.codecs.configuration import check_keys, flag, integer
from zarrfs.engine.codecs.libraries import import_library
from zarrfs.engine.codecs.limits import limit_error, size_error, variable_limit

__all__ = ["ZstdCodec", "declared_size"]

zstd = import_library("numcodecs.zstd")

MAGIC = b"\x28\xb5\x2f\xfd"
MIN_LEVEL = -131072
MAX_LEVEL = 22


def declared_size(data: memoryview) -> int | None:
    """Return the content size that the first frame declares, or None when it is no frame or does not say."""
    if len(data) < 6 or data[:4] != MAGIC:
        return None
    descriptor = data[4]
    single_segment = descriptor & 0x20
    flag_value = descriptor >> 6
    width = (1 if single_segment else 0, 2, 4, 8)[flag_value]
    if not width:
        return None
    start = 5 + (0 if single_segment else 1) + (0, 1, 2, 4)[descriptor & 3]
    if len(data) < start + width:
        return None
    value = int.from_bytes(data[start : start + width], "little")
    return value + 256 if width == 2 else value


class ZstdCodec(BytesBytesCodec):
    """bytes -> bytes: Zstandard at ``level``, with a checksum of each frame if ``checksum``."""

    name: ClassVar[str] = "zstd"

    def __init__(self, level: Any = 0, checksum: Any = False) -> None:
        self.level = level
        self.checksum = checksum

    @classmethod
    def from_configuration(cls, configuration: Mapping[str, Any]) -> Self:
        check_keys(cls.name, configuration, ("level", "checksum"))
        return cls(configuration.get("level", 0), configuration.get("checksum", False))

    def check_encoding(self) -> None:
        integer(self.name, {"level": self.level}, "level", MIN_LEVEL, MAX_LEVEL)
        flag(self.name, {"checksum": self.checksum}, "checksum")

    def configuration(self) -> dict[str, Any]:
        return {"level": self.level, "checksum": self.checksum}

    def encode(self, data: Buffer) -> Buffer:
        packed: bytes = zstd.compress(data, self.level, self.checksum)
        return packed

    def decode(self, data: Buffer, size: int | None, out: memoryview | None = None) -> Buffer:
        view = memoryview(data)
        declared = declared_size(view)
        if size is not None and declared == size and size > 0:
            target: Buffer = bytearray(size) if out is None else out
            try:
                zstd.decompress(data, target)
            except Exception:
                # Perhaps more frames follow the first; the stream decoder tells, and gives the better error.
                return _decode_stream(data, size)
            return target
        if size is not None and declared is not None and declared > size:
            raise size_error(declared, size)
        return _decode_stream(data, size)


PIECE = 512
"""How much is fed to the stream decoder at once: a few bytes can become 128 KiB, so that more than a little could
become gigabytes before anybody looks.
"""


def _decode_stream(data: Buffer, size: int | None) -> bytes:
    """Decompress any number of frames, to ``size`` bytes or to the limit."""
    zstandard = import_library("zstandard")

    limit = variable_limit(len(data)) if size is None else size
    decoder = zstandard.ZstdDecompressor()
    parts: list[bytes] = []
    done = 0
    view = memoryview(data)
    position = 0
    while position < len(view) or not parts:
        frame = decoder.decompressobj()
        while not frame.eof:
            piece = view[position : position + PIECE]
            if not len(piece):
                raise CodecError(f"the data are truncated: they end within a frame, after {done} bytes")
            try:
                part = frame.decompress(piece)
            except zstandard.ZstdError as error:
                raise CodecError(f"the data are broken: {error}") from error
            position += len(piece)
            parts.append(part)
            done += len(part)
            if done > limit:
                raise limit_error(limit) if size is None else size_error(f"more than {size}", size)
        position -= len(frame.unused_data)
    if size is not None and done != size:
        raise size_error(done, size)
    return b"".join(parts)
