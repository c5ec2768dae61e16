"""Codecs of our own under numcodecs' names and with its parameters: blosc, zstd, gzip, crc32c.

Specification: https://numcodecs.readthedocs.io

Names: ``numcodecs.blosc``, ``numcodecs.zstd``, ``numcodecs.gzip``, ``numcodecs.crc32c``; in Zarr v2 the bare names.

Example::

    {"name": "numcodecs.blosc", "configuration": {"cname": "lz4", "clevel": 5, "shuffle": 1, "blocksize": 0}}

The bytes are those of the codecs without the prefix; only the parameters are written otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

from zarrfs.engine.codecs.base import BytesBytesCodec, ChunkSpec, Codec
from zarrfs.engine.codecs.bytes_to_bytes.blosc import SHUFFLES, BloscCodec
from zarrfs.engine.codecs.bytes_to_bytes.crc32c import Crc32cCodec
from zarrfs.engine.codecs.bytes_to_bytes.gzip import GzipCodec
from zarrfs.engine.codecs.bytes_to_bytes.zstd import ZstdCodec
from zarrfs.engine.codecs.configuration import integer, shown
from zarrfs.errors import MetadataError

__all__ = ["NumcodecsBloscCodec", "core_codec", "twin_codec"]

AUTOSHUFFLE = -1

ZLIB_DEFAULT_LEVEL = 6
"""What zlib takes -1 for."""


class NumcodecsBloscCodec(BloscCodec):
    """Blosc with ``shuffle`` as a number (-1 chooses by the element size) and no ``typesize``: the data tell it."""

    name = "numcodecs.blosc"

    def __init__(self, options: Mapping[str, Any]) -> None:
        self._options = dict(options)
        shuffle = options.get("shuffle", 1)
        if type(shuffle) is int and -1 <= shuffle <= 2:
            shuffle = "shuffle" if shuffle == AUTOSHUFFLE else list(SHUFFLES)[shuffle]
        else:
            shuffle = None  # Of no consequence for reading; check_encoding refuses it.
        super().__init__(
            options.get("cname", "lz4"),
            options.get("clevel", 5),
            shuffle,
            options.get("typesize", 1),
            options.get("blocksize", 0),
        )

    def check_encoding(self) -> None:
        if self.shuffle is None:
            found = shown(self._options["shuffle"])
            raise MetadataError(f"codec 'blosc': shuffle must be -1, 0, 1 or 2, found {found}")
        super().check_encoding()

    @classmethod
    def from_configuration(cls, configuration: Mapping[str, Any]) -> Self:
        return cls(configuration)

    def configuration(self) -> dict[str, Any]:
        return dict(self._options)

    def check(self, spec: ChunkSpec) -> None:
        # The element size is not in the parameters; it is known once the codec meets its array.
        self.typesize = 1 if spec.dtype.hasobject else max(1, spec.dtype.itemsize)
        if self._options.get("shuffle", 1) == AUTOSHUFFLE:
            self.shuffle = "bitshuffle" if self.typesize == 1 else "shuffle"


class NumcodecsZstdCodec(ZstdCodec):
    """Zstandard with numcodecs' parameters; keys it does not know are kept."""

    name = "numcodecs.zstd"

    def __init__(self, options: Mapping[str, Any]) -> None:
        self._options = dict(options)
        super().__init__(options.get("level", 0), options.get("checksum") or False)

    @classmethod
    def from_configuration(cls, configuration: Mapping[str, Any]) -> Self:
        return cls(configuration)

    def configuration(self) -> dict[str, Any]:
        return dict(self._options)


class NumcodecsGzipCodec(GzipCodec):
    """gzip with numcodecs' parameters."""

    name = "numcodecs.gzip"

    def __init__(self, options: Mapping[str, Any]) -> None:
        self._options = dict(options)
        super().__init__(options.get("level", 1))

    def check_encoding(self) -> None:
        # -1 is zlib's default, and numcodecs takes it.
        integer("gzip", self._options, "level", -1, 9, 1)

    @classmethod
    def from_configuration(cls, configuration: Mapping[str, Any]) -> Self:
        return cls(configuration)

    def configuration(self) -> dict[str, Any]:
        return dict(self._options)


class NumcodecsCrc32cCodec(Crc32cCodec):
    """CRC-32C at the end, as numcodecs writes it unless told to put it at the start."""

    name = "numcodecs.crc32c"

    def __init__(self, options: Mapping[str, Any]) -> None:
        self._options = dict(options)

    @classmethod
    def from_configuration(cls, configuration: Mapping[str, Any]) -> Any:
        if configuration.get("location", "end") != "end":
            from zarrfs.engine.codecs.numcodecs.bytes import bytes_codec

            return bytes_codec("crc32c")(configuration)
        return cls(configuration)

    def configuration(self) -> dict[str, Any]:
        return dict(self._options)


TWINS: dict[str, type[BytesBytesCodec]] = {
    "blosc": NumcodecsBloscCodec,
    "zstd": NumcodecsZstdCodec,
    "gzip": NumcodecsGzipCodec,
    "crc32c": NumcodecsCrc32cCodec,
}


def twin_codec(codec_id: str) -> type[BytesBytesCodec]:
    """Return the class for one numcodecs codec of which there is one of our own."""
    return TWINS[codec_id]


def core_codec(codec: Codec, spec: ChunkSpec) -> Codec:
    """Return the codec of the Zarr v3 core that makes the same bytes of these chunks, or the codec itself."""
    if isinstance(codec, NumcodecsBloscCodec):
        codec.check(spec)
        return BloscCodec(codec.cname, codec.clevel, codec.shuffle, codec.typesize, codec.blocksize)
    if isinstance(codec, NumcodecsZstdCodec):
        return ZstdCodec(codec.level, codec.checksum)
    if isinstance(codec, NumcodecsGzipCodec):
        return GzipCodec(ZLIB_DEFAULT_LEVEL if codec.level == -1 else codec.level)
    return codec
