"""The codecs of the Zarr v3 specification by the names that zarr-python has for them, to give to ``create_array``.

Each is the metadata of a codec: ``BloscCodec(cname="lz4", clevel=3)`` is the dictionary that a v3 document has. What is
not given, ``create_array`` chooses. Metadata written by hand, and codec objects of numcodecs and zarr-python, serve
as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from zarrfs.engine.codecs.registry import register_codec

__all__ = [
    "BloscCodec",
    "BytesCodec",
    "CodecMetadata",
    "Crc32cCodec",
    "GzipCodec",
    "ShardingCodec",
    "TransposeCodec",
    "VLenBytesCodec",
    "VLenUTF8Codec",
    "ZstdCodec",
    "register_codec",
]


class CodecMetadata(dict[str, Any]):
    """The metadata of a codec: its name, and what of its configuration is not None."""

    def __init__(self, name: str, **configuration: Any) -> None:
        super().__init__(
            name=name,
            configuration={key: value for key, value in configuration.items() if value is not None},
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the metadata as a plain dictionary."""
        return dict(self)

    def __repr__(self) -> str:
        arguments = ", ".join(f"{key}={value!r}" for key, value in self["configuration"].items())
        return f"{type(self).__name__}({arguments})"


class BloscCodec(CodecMetadata):
    """Compresses bytes by Blosc. ``typesize`` and ``shuffle`` are chosen by the data type if they are not given."""

    def __init__(
        self,
        *,
        typesize: int | None = None,
        cname: Literal["lz4", "lz4hc", "blosclz", "zstd", "snappy", "zlib"] = "zstd",
        clevel: int = 5,
        shuffle: Literal["noshuffle", "shuffle", "bitshuffle"] | None = None,
        blocksize: int = 0,
    ) -> None:
        super().__init__(
            "blosc", typesize=typesize, cname=cname, clevel=clevel, shuffle=shuffle, blocksize=blocksize
        )


class BytesCodec(CodecMetadata):
    """Makes bytes of numbers, in a byte order."""

    def __init__(self, *, endian: Literal["little", "big"] | None = "little") -> None:
        super().__init__("bytes", endian=endian)


class Crc32cCodec(CodecMetadata):
    """Appends a CRC-32C checksum."""

    def __init__(self) -> None:
        super().__init__("crc32c")


class GzipCodec(CodecMetadata):
    """Compresses bytes by gzip."""

    def __init__(self, *, level: int = 5) -> None:
        super().__init__("gzip", level=level)


class ShardingCodec(CodecMetadata):
    """Packs many inner chunks into one value. The option ``shards`` of ``create_array`` is the simpler way."""

    def __init__(
        self,
        *,
        chunk_shape: Sequence[int],
        codecs: Sequence[Any] = (BytesCodec(),),
        index_codecs: Sequence[Any] = (BytesCodec(), Crc32cCodec()),
        index_location: Literal["start", "end"] = "end",
    ) -> None:
        super().__init__(
            "sharding_indexed",
            chunk_shape=list(chunk_shape),
            codecs=list(codecs),
            index_codecs=list(index_codecs),
            index_location=index_location,
        )


class TransposeCodec(CodecMetadata):
    """Changes the order of the dimensions."""

    def __init__(self, *, order: Sequence[int]) -> None:
        super().__init__("transpose", order=list(order))


class VLenBytesCodec(CodecMetadata):
    """Makes bytes of byte strings of any length."""

    def __init__(self) -> None:
        super().__init__("vlen-bytes")


class VLenUTF8Codec(CodecMetadata):
    """Makes bytes of strings of any length."""

    def __init__(self) -> None:
        super().__init__("vlen-utf8")


class ZstdCodec(CodecMetadata):
    """Compresses bytes by Zstandard."""

    def __init__(self, *, level: int = 0, checksum: bool = False) -> None:
        super().__init__("zstd", level=level, checksum=checksum)
