"""zstd: Zstandard (RFC 8878).

Specification: https://github.com/zarr-developers/zarr-extensions/tree/main/codecs/zstd

Names: ``zstd``; the same in Zarr v2.

Example::

    {"name": "zstd", "configuration": {"level": 3, "checksum": false}}

The header of a frame may declare the decoded size. A frame that declares more than the expected size is rejected before
memory is allocated. Frames without a declared size, and several frames, are decompressed as a stream up to the expected
size.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self

from zarrfs.engine.codecs.base import Buffer, BytesBytesCodec, CodecError
from zarrfs.engine.codecs.configuration import check_keys, flag, integer
from zarrfs.engine.codecs.limits import limit_error, size_error, variable_limit
from zarrfs.libraries import import_library

__all__ = ["ZstdCodec", "declared_size"]

LIBRARY = "numcodecs.zstd"
"""Imported with the first chunk: importing numcodecs takes as long as reading the metadata of hundreds of arrays."""

MAGIC = b"\x28\xb5\x2f\xfd"
MIN_LEVEL = -131072
MAX_LEVEL = 22


def declared_size(data: memoryview) -> int | None:
    """Return the content size that the first frame declares, or None if there is no frame or no declared size."""
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
    """bytes -> bytes: Zstandard with a compression ``level``, and a checksum per frame if ``checksum`` is true."""

    name: ClassVar[str] = "zstd"
    native_decoder: ClassVar[str] = "zstd"

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
        packed: bytes = import_library(LIBRARY).compress(data, self.level, self.checksum)
        return packed

    def decode(self, data: Buffer, size: int | None, out: memoryview | None = None) -> Buffer:
        view = memoryview(data)
        declared = declared_size(view)
        if size is not None and declared == size and size > 0:
            target: Buffer = bytearray(size) if out is None else out
            try:
                import_library(LIBRARY).decompress(data, target)
            except Exception:
                # More frames may follow the first. The stream decoder decodes them, or raises a more specific error.
                return _decode_stream(data, size)
            return target
        if size is not None and declared is not None and declared > size:
            raise size_error(declared, size)
        return _decode_stream(data, size)


INPUT_NBYTES = 512
"""How many bytes the stream decoder receives at once. Few bytes can decode to 128 KiB, so a larger input could
decode to gigabytes before the limit is checked.
"""


def _decode_stream(data: Buffer, size: int | None) -> bytes:
    """Decompress all frames to ``size`` bytes, or, if ``size`` is None, to at most ``variable_limit``."""
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
            chunk = view[position : position + INPUT_NBYTES]
            if not len(chunk):
                raise CodecError(f"the data are truncated: a frame is incomplete after {done} decoded bytes")
            try:
                part = frame.decompress(chunk)
            except zstandard.ZstdError as error:
                raise CodecError(f"the data are corrupt: {error}") from error
            position += len(chunk)
            parts.append(part)
            done += len(part)
            if done > limit:
                raise limit_error(limit) if size is None else size_error(f"more than {size}", size)
        position -= len(frame.unused_data)
    if size is not None and done != size:
        raise size_error(done, size)
    return b"".join(parts)
