"""numcodecs' bytes->bytes codecs: what Zarr v2 calls compressors, checksums and shuffles.

Specification: https://numcodecs.readthedocs.io

Names: ``numcodecs.`` and the numcodecs name (``zlib``, ``lz4``, ``bz2``, ``lzma``, ``shuffle``, ``crc32``, ``adler32``,
``fletcher32``, ``jenkins_lookup3``, ``base64``); in Zarr v2 the bare name.

Example::

    {"name": "numcodecs.zlib", "configuration": {"level": 1}}

numcodecs believes the sizes that data declare; here they are checked first, and streams are stopped at the size.
"""

from __future__ import annotations

import bz2
import lzma
import struct
from collections.abc import Mapping
from typing import Any, ClassVar, Self

from zarrfs.engine.codecs.base import Buffer, BytesBytesCodec, CodecError
from zarrfs.engine.codecs.gzip import ZLIB_WBITS, inflate
from zarrfs.engine.codecs.limits import check_size, limit_error, size_error, variable_limit
from zarrfs.engine.codecs.numcodecs_make import make_numcodec

__all__ = ["BYTES_CODECS", "NumcodecsBytesCodec", "bytes_codec"]

CHECKSUM_NBYTES = {"crc32": 4, "adler32": 4, "fletcher32": 4, "jenkins_lookup3": 4, "crc32c": 4}

BYTES_CODECS = ("zlib", "lz4", "bz2", "lzma", "shuffle", "base64", *CHECKSUM_NBYTES)


class NumcodecsBytesCodec(BytesBytesCodec):
    """bytes -> bytes: the codec that numcodecs registers as ``id``, with numcodecs' own parameters."""

    name: ClassVar[str] = "numcodecs"
    id: ClassVar[str] = ""

    def __init__(self, options: Mapping[str, Any]) -> None:
        self._options = dict(options)
        self._codec = make_numcodec(self.id, self._options)

    @classmethod
    def from_configuration(cls, configuration: Mapping[str, Any]) -> Self:
        return cls(configuration)

    def configuration(self) -> dict[str, Any]:
        return dict(self._options)

    def encoded_size(self, size: int) -> int | None:
        if self.id in CHECKSUM_NBYTES:
            return size + CHECKSUM_NBYTES[self.id]
        return size if self.id == "shuffle" else None

    def encode(self, data: Buffer) -> Buffer:
        return _as_bytes(self._codec.encode(memoryview(data)))

    def decode(self, data: Buffer, size: int | None, out: memoryview | None = None) -> Buffer:
        if self.id == "zlib":
            return inflate(data, size, ZLIB_WBITS)
        if self.id == "bz2":
            return _drain(bz2.BZ2Decompressor, data, size)
        if self.id == "lzma":
            return self._decode_lzma(data, size)
        if self.id == "lz4":
            _check_lz4(data, size)
        plain = _as_bytes(self._codec.decode(memoryview(data)))
        check_size(memoryview(plain).nbytes, size)
        return plain

    def _decode_lzma(self, data: Buffer, size: int | None) -> bytes:
        form = self._options.get("format", lzma.FORMAT_XZ)
        filters = self._options.get("filters") if form == lzma.FORMAT_RAW else None
        memory = None if form == lzma.FORMAT_RAW else 256 << 20
        return _drain(lambda: lzma.LZMADecompressor(form, memory, filters), data, size)


LZ4_HEADER = struct.Struct("<i")
LZ4_EXPANSION = 255


def _check_lz4(data: Buffer, size: int | None) -> None:
    """Check the size in front of the data, which the decoder takes memory for."""
    if len(data) < LZ4_HEADER.size:
        raise CodecError(f"{len(data)} bytes are too few to hold a size")
    (declared,) = LZ4_HEADER.unpack_from(data)
    check_size(declared, size)
    if declared < 0 or declared > LZ4_EXPANSION * len(data) + 64:
        raise CodecError(f"{declared} bytes are said to come out of {len(data)}, more than LZ4 can hold")


def _drain(make: Any, data: Buffer, size: int | None) -> bytes:
    """Decompress streams that follow each other, to ``size`` bytes or to the limit."""
    limit = variable_limit(len(data)) if size is None else size
    parts: list[bytes] = []
    done = 0
    rest: Buffer = data
    while True:
        decoder = make()
        chunk: Buffer = rest
        while not decoder.eof:
            try:
                part = decoder.decompress(chunk, limit - done + 1)
            except (OSError, lzma.LZMAError, EOFError, ValueError) as error:
                raise CodecError(f"the stream is broken: {error}") from error
            done += len(part)
            parts.append(part)
            if done > limit:
                raise limit_error(limit) if size is None else size_error(f"more than {size}", size)
            if not part and not decoder.eof:
                raise CodecError(f"the stream is truncated: it ends after {done} bytes")
            chunk = b""
        rest = decoder.unused_data
        if not rest:
            break
    check_size(done, size)
    return b"".join(parts)


def _as_bytes(data: Any) -> Buffer:
    if isinstance(data, bytes | bytearray):
        return data
    view = memoryview(data)
    return view.cast("B") if view.contiguous and view.nbytes else view.tobytes()


def bytes_codec(codec_id: str) -> type[NumcodecsBytesCodec]:
    """Return the class for one numcodecs codec; its name is in v3 form."""
    made = _classes.get(codec_id)
    if made is None:
        names = {"name": f"numcodecs.{codec_id}", "id": codec_id, "__doc__": NumcodecsBytesCodec.__doc__}
        made = _classes[codec_id] = type(
            f"Numcodecs{codec_id.title().replace('_', '')}Codec", (NumcodecsBytesCodec,), names
        )
    return made


_classes: dict[str, type[NumcodecsBytesCodec]] = {}
