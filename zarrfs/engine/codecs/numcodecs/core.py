"""Adapters that give the blosc, zstd, gzip and crc32c codecs of this package the names and parameters of numcodecs.

Specification: https://numcodecs.readthedocs.io

Names: ``numcodecs.blosc``, ``numcodecs.zstd``, ``numcodecs.gzip``, ``numcodecs.crc32c``; in Zarr v2 the bare names.

Example::

    {"name": "numcodecs.blosc", "configuration": {"cname": "lz4", "clevel": 5, "shuffle": 1, "blocksize": 0}}

The encoded bytes are those of the codecs without the prefix. Only names and parameters differ.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

from zarrfs.engine.codecs.base import ChunkSpec, Codec
from zarrfs.engine.codecs.bytes_to_bytes.blosc import SHUFFLES, BloscCodec
from zarrfs.engine.codecs.bytes_to_bytes.crc32c import Crc32cCodec
from zarrfs.engine.codecs.bytes_to_bytes.gzip import GzipCodec
from zarrfs.engine.codecs.bytes_to_bytes.zstd import ZstdCodec
from zarrfs.engine.codecs.configuration import integer
from zarrfs.engine.codecs.numcodecs.instances import NumcodecsOptions
from zarrfs.errors import MetadataError
from zarrfs.text import short_repr

__all__ = [
    "NumcodecsBloscCodec",
    "NumcodecsCrc32cCodec",
    "NumcodecsGzipCodec",
    "NumcodecsZstdCodec",
    "core_codec",
]

AUTOSHUFFLE = -1

ZLIB_DEFAULT_LEVEL = 6
"""The level that zlib uses for -1."""


class NumcodecsBloscCodec(NumcodecsOptions, BloscCodec):
    """Blosc with ``shuffle`` as a number (-1: chosen by the element size) and ``typesize`` from the array's dtype."""

    name = "numcodecs.blosc"

    def __init__(self, options: Mapping[str, Any]) -> None:
        NumcodecsOptions.__init__(self, options)
        shuffle = options.get("shuffle", 1)
        if type(shuffle) is int and -1 <= shuffle <= 2:
            shuffle = "shuffle" if shuffle == AUTOSHUFFLE else list(SHUFFLES)[shuffle]
        else:
            shuffle = None  # Decoding does not use it, and check_encoding rejects it.
        BloscCodec.__init__(
            self,
            options.get("cname", "lz4"),
            options.get("clevel", 5),
            shuffle,
            options.get("typesize", 1),
            options.get("blocksize", 0),
        )

    def check_encoding(self) -> None:
        if self.shuffle is None:
            raise MetadataError(
                f"codec 'blosc': shuffle must be -1, 0, 1 or 2, found {short_repr(self._options['shuffle'])}"
            )
        super().check_encoding()

    def for_chunks(self, spec: ChunkSpec) -> Self:
        # The parameters do not contain the element size.
        codec = type(self)(self._options)
        codec.typesize = 1 if spec.dtype.hasobject else max(1, spec.dtype.itemsize)
        if self._options.get("shuffle", 1) == AUTOSHUFFLE:
            codec.shuffle = "bitshuffle" if codec.typesize == 1 else "shuffle"
        return codec


class NumcodecsZstdCodec(NumcodecsOptions, ZstdCodec):
    """Zstandard with the parameters of numcodecs. Unknown keys are preserved."""

    name = "numcodecs.zstd"

    def __init__(self, options: Mapping[str, Any]) -> None:
        NumcodecsOptions.__init__(self, options)
        ZstdCodec.__init__(self, options.get("level", 0), options.get("checksum") or False)


class NumcodecsGzipCodec(NumcodecsOptions, GzipCodec):
    """gzip with the parameters of numcodecs."""

    name = "numcodecs.gzip"

    def __init__(self, options: Mapping[str, Any]) -> None:
        NumcodecsOptions.__init__(self, options)
        GzipCodec.__init__(self, options.get("level", 1))

    def check_encoding(self) -> None:
        # numcodecs accepts -1, the default level of zlib.
        integer("gzip", self._options, "level", -1, 9, 1)


class NumcodecsCrc32cCodec(NumcodecsOptions, Crc32cCodec):
    """CRC-32C at the end of the data, as numcodecs writes it by default."""

    name = "numcodecs.crc32c"

    @classmethod
    def from_configuration(cls, configuration: Mapping[str, Any]) -> Any:
        if configuration.get("location", "end") != "end":
            from zarrfs.engine.codecs.numcodecs.bytes import bytes_adapter

            return bytes_adapter("crc32c")(configuration)
        return cls(configuration)


def core_codec(codec: Codec, spec: ChunkSpec) -> Codec:
    """Return the v3 codec with the same encoded bytes for chunks of ``spec``, or ``codec`` itself if none exists."""
    if isinstance(codec, NumcodecsBloscCodec):
        codec = codec.for_chunks(spec)
        return BloscCodec(codec.cname, codec.clevel, codec.shuffle, codec.typesize, codec.blocksize)
    if isinstance(codec, NumcodecsZstdCodec):
        return ZstdCodec(codec.level, codec.checksum)
    if isinstance(codec, NumcodecsGzipCodec):
        return GzipCodec(ZLIB_DEFAULT_LEVEL if codec.level == -1 else codec.level)
    return codec
