"""Adapters for the bytes->bytes codecs of numcodecs: compressors, checksums and shuffles of Zarr v2.

Specification: https://numcodecs.readthedocs.io

Names: ``numcodecs.`` and the numcodecs name (``zlib``, ``lz4``, ``bz2``, ``lzma``, ``shuffle``, ``crc32``, ``adler32``,
``fletcher32``, ``jenkins_lookup3``, ``base64``); in Zarr v2 the bare name.

Example::

    {"name": "numcodecs.zlib", "configuration": {"level": 1}}

numcodecs does not check the sizes that data declare. The adapters check them first and stop streams at the
expected size.

Codecs of numcodecs that process the elements of arrays (``zfpy``, ``pcodec``, ``vlen-array`` ...) read or write outside
of their buffers when they receive arbitrary bytes. Therefore only the codecs of ``BYTES_CODECS``, and those that
another package registers with numcodecs, are used as bytes->bytes codecs.
"""

from __future__ import annotations

import bz2
import lzma
import struct
from collections.abc import Mapping
from typing import Any, ClassVar

from zarrfs.engine.codecs.base import Buffer, BytesBytesCodec, CodecError
from zarrfs.engine.codecs.bytes_to_bytes.gzip import FIRST_INPUT_NBYTES, ZLIB_WBITS, inflate
from zarrfs.engine.codecs.configuration import integer
from zarrfs.engine.codecs.limits import check_size, limit_error, size_error, variable_limit
from zarrfs.engine.codecs.numcodecs.instances import NumcodecsOptions, is_third_party, make_numcodec
from zarrfs.errors import MetadataError, UnsupportedError
from zarrfs.text import short_repr

__all__ = [
    "Adler32Codec",
    "Base64Codec",
    "Bz2Codec",
    "Crc32Codec",
    "Fletcher32Codec",
    "JenkinsLookup3Codec",
    "Lz4Codec",
    "LzmaCodec",
    "NumcodecsBytesCodec",
    "ShuffleCodec",
    "ZlibCodec",
    "bytes_adapter",
]

CHECKSUM_NBYTES = {"crc32": 4, "adler32": 4, "fletcher32": 4, "jenkins_lookup3": 4, "crc32c": 4}

BYTES_CODECS = ("zlib", "lz4", "bz2", "lzma", "shuffle", "base64", *CHECKSUM_NBYTES)


class NumcodecsBytesCodec(NumcodecsOptions, BytesBytesCodec):
    """bytes -> bytes: the codec that numcodecs registers as ``id``, with the parameters of numcodecs."""

    name: ClassVar[str] = "numcodecs"
    id: ClassVar[str] = ""

    def __init__(self, options: Mapping[str, Any]) -> None:
        super().__init__(options)
        self._codec = make_numcodec(self.id, self._options)
        if self.id == "shuffle":
            integer("shuffle", self._options, "elementsize", -(2**31), 2**31 - 1, 4)
        elif self.id == "lzma":
            _check_lzma(self._options)

    def check_encoding(self) -> None:
        if self.id == "zlib":
            integer("zlib", self._options, "level", -1, 9, 1)
        elif self.id == "bz2":
            integer("bz2", self._options, "level", 1, 9, 1)
        elif self.id == "lz4":
            integer("lz4", self._options, "acceleration", -(2**31), 2**31 - 1, 1)

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
            return _decode_streams(bz2.BZ2Decompressor, data, size)
        if self.id == "lzma":
            return self._decode_lzma(data, size)
        if self.id == "lz4":
            _check_lz4(data, size)
        decoded = _as_bytes(self._codec.decode(memoryview(data)))
        nbytes = memoryview(decoded).nbytes
        if size is None and nbytes > variable_limit(len(data)):
            raise limit_error(variable_limit(len(data)))
        check_size(nbytes, size)
        return decoded

    def _decode_lzma(self, data: Buffer, size: int | None) -> bytes:
        form = self._options.get("format", lzma.FORMAT_XZ)
        filters = self._options.get("filters") if form == lzma.FORMAT_RAW else None
        memory = None if form == lzma.FORMAT_RAW else 256 << 20
        return _decode_streams(lambda: lzma.LZMADecompressor(form, memory, filters), data, size)


LZ4_HEADER = struct.Struct("<i")
LZ4_EXPANSION = 255


def _check_lz4(data: Buffer, size: int | None) -> None:
    """Check the size that precedes the data, because the decoder allocates as much memory. Raises CodecError."""
    if len(data) < LZ4_HEADER.size:
        raise CodecError(f"the data are truncated: {len(data)} bytes cannot hold the decoded size")
    (declared,) = LZ4_HEADER.unpack_from(data)
    check_size(declared, size)
    if declared < 0 or declared > LZ4_EXPANSION * len(data) + 64:
        raise CodecError(
            f"the declared size is {declared} bytes, which LZ4 cannot store in {len(data)} bytes"
        )
    if size is None and declared > variable_limit(len(data)):
        raise limit_error(variable_limit(len(data)))


MAX_LZMA_DICTIONARY = 256 << 20
"""The largest dictionary of a raw LZMA stream. The decoder allocates it before it reads any data."""

LZMA_CHECKS = (-1, lzma.CHECK_NONE, lzma.CHECK_CRC32, lzma.CHECK_CRC64, lzma.CHECK_SHA256)


def _check_lzma(options: Mapping[str, Any]) -> None:
    """Raise MetadataError unless the parameters are valid for a decoder with a bounded amount of memory."""
    form = integer("lzma", options, "format", lzma.FORMAT_AUTO, lzma.FORMAT_RAW, lzma.FORMAT_XZ)
    if form != lzma.FORMAT_RAW:
        return
    filters = options.get("filters")
    if not isinstance(filters, list | tuple) or not all(isinstance(entry, Mapping) for entry in filters):
        raise MetadataError("codec 'lzma': filters must be a list of objects for raw streams")
    for entry in filters:
        integer("lzma", entry, "dict_size", 0, MAX_LZMA_DICTIONARY, 0)


def _check_lzma_encoding(options: Mapping[str, Any]) -> None:
    if options.get("preset") is not None:
        preset = integer("lzma", options, "preset", 0, 9 | lzma.PRESET_EXTREME)
        if preset & ~lzma.PRESET_EXTREME > 9:
            raise MetadataError(f"codec 'lzma': preset must be 0 to 9, found {preset}")
    if integer("lzma", options, "check", -1, lzma.CHECK_SHA256, -1) not in LZMA_CHECKS:
        raise MetadataError(
            f"codec 'lzma': check must be one of {LZMA_CHECKS}, found {short_repr(options['check'])}"
        )


def _decode_streams(make_decoder: Any, data: Buffer, size: int | None) -> bytes:
    """Decompress consecutive streams to ``size`` bytes, or, if ``size`` is None, to at most ``variable_limit``."""
    limit = variable_limit(len(data)) if size is None else size
    view = memoryview(data)
    parts: list[bytes] = []
    done = position = 0
    while True:
        decoder = make_decoder()
        # The decoder copies the input that follows its stream. Later streams therefore receive small inputs, as in
        # gzip.
        length = FIRST_INPUT_NBYTES if position else len(view)
        while not decoder.eof:
            chunk: Buffer = b""
            if decoder.needs_input:
                chunk = view[position : position + length]
                position += len(chunk)
                length *= 2
            try:
                part = decoder.decompress(chunk, limit - done + 1)
            except (OSError, lzma.LZMAError, EOFError, ValueError) as error:
                raise CodecError(f"the stream is corrupt: {error}") from error
            done += len(part)
            parts.append(part)
            if done > limit:
                raise limit_error(limit) if size is None else size_error(f"more than {size}", size)
            if not part and not decoder.eof and position == len(view):
                raise CodecError(f"the stream is truncated: it ends after {done} bytes")
        position -= len(decoder.unused_data)
        if position == len(view):
            break
    check_size(done, size)
    return b"".join(parts)


def _as_bytes(data: Any) -> Buffer:
    if isinstance(data, bytes | bytearray):
        return data
    view = memoryview(data)
    return view.cast("B") if view.contiguous and view.nbytes else view.tobytes()


class ZlibCodec(NumcodecsBytesCodec):
    """bytes -> bytes: zlib streams (RFC 1950)."""

    name: ClassVar[str] = "numcodecs.zlib"
    id: ClassVar[str] = "zlib"
    native_decoder: ClassVar[str] = "zlib"


class Lz4Codec(NumcodecsBytesCodec):
    """bytes -> bytes: LZ4 blocks, each preceded by its decoded size."""

    name: ClassVar[str] = "numcodecs.lz4"
    id: ClassVar[str] = "lz4"
    native_decoder: ClassVar[str] = "lz4"


class Bz2Codec(NumcodecsBytesCodec):
    """bytes -> bytes: bzip2 streams."""

    name: ClassVar[str] = "numcodecs.bz2"
    id: ClassVar[str] = "bz2"


class LzmaCodec(NumcodecsBytesCodec):
    """bytes -> bytes: LZMA and XZ streams.

    ``delta`` is a parameter of GDAL, which numcodecs has not: the distance of a delta filter before LZMA2, in bytes.
    """

    name: ClassVar[str] = "numcodecs.lzma"
    id: ClassVar[str] = "lzma"

    def __init__(self, options: Mapping[str, Any]) -> None:
        self._given = dict(options)
        if options.get("delta") is None or options.get("filters") is not None:
            super().__init__({name: value for name, value in options.items() if name != "delta"})
            return
        delta = {"id": lzma.FILTER_DELTA, "dist": integer("lzma", options, "delta", 1, 256, 1)}
        lzma2: dict[str, Any] = {"id": lzma.FILTER_LZMA2}
        if options.get("preset") is not None:
            lzma2["preset"] = options["preset"]
        others = {name: value for name, value in options.items() if name not in ("delta", "preset")}
        super().__init__({**others, "filters": [delta, lzma2]})

    def configuration(self) -> dict[str, Any]:
        return dict(self._given)

    def check_encoding(self) -> None:
        _check_lzma_encoding(self._given)


class ShuffleCodec(NumcodecsBytesCodec):
    """bytes -> bytes: the bytes of the elements grouped by significance."""

    name: ClassVar[str] = "numcodecs.shuffle"
    id: ClassVar[str] = "shuffle"


class Base64Codec(NumcodecsBytesCodec):
    """bytes -> bytes: Base64 text."""

    name: ClassVar[str] = "numcodecs.base64"
    id: ClassVar[str] = "base64"


class Crc32Codec(NumcodecsBytesCodec):
    """bytes -> bytes: a CRC-32 before or after the data."""

    name: ClassVar[str] = "numcodecs.crc32"
    id: ClassVar[str] = "crc32"


class Adler32Codec(NumcodecsBytesCodec):
    """bytes -> bytes: an Adler-32 checksum before or after the data."""

    name: ClassVar[str] = "numcodecs.adler32"
    id: ClassVar[str] = "adler32"


class Fletcher32Codec(NumcodecsBytesCodec):
    """bytes -> bytes: a Fletcher-32 checksum after the data, as in HDF5."""

    name: ClassVar[str] = "numcodecs.fletcher32"
    id: ClassVar[str] = "fletcher32"


class JenkinsLookup3Codec(NumcodecsBytesCodec):
    """bytes -> bytes: a checksum by Jenkins' lookup3 after the data."""

    name: ClassVar[str] = "numcodecs.jenkins_lookup3"
    id: ClassVar[str] = "jenkins_lookup3"


def bytes_adapter(codec_id: str) -> type[NumcodecsBytesCodec]:
    """Return an adapter class for a codec that the table does not contain. Its ``name`` is the v3 name.

    Raises UnsupportedError for a codec that is not installed or is not a bytes->bytes codec.
    """
    adapter = _classes.get(codec_id)
    if adapter is None:
        if codec_id not in BYTES_CODECS and not is_third_party(codec_id):
            raise UnsupportedError(f"codec {short_repr(codec_id)} is not a bytes->bytes codec")
        members = {"name": f"numcodecs.{codec_id}", "id": codec_id, "__doc__": NumcodecsBytesCodec.__doc__}
        class_name = f"Numcodecs{codec_id.title().replace('_', '')}Codec"
        adapter = _classes[codec_id] = type(class_name, (NumcodecsBytesCodec,), members)
    return adapter


_classes: dict[str, type[NumcodecsBytesCodec]] = {}
