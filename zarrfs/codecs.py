"""The codecs of the Zarr v3 specification, for ``create_array``, with the class names of zarr-python.

Each object is the metadata of a codec: ``BloscCodec(cname="lz4", clevel=3)`` is a dictionary in the form of a v3
document. ``create_array`` chooses the parameters that are not given. It also accepts plain dictionaries and codec
objects of numcodecs and zarr-python.
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
    """The metadata of a codec: its name and the configuration. Parameters that are None are omitted."""

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
    """Compresses bytes with Blosc. By default ``typesize`` and ``shuffle`` follow from the data type."""

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
    """Converts numbers to bytes in a byte order. ``endian`` is None for data types of one byte."""

    def __init__(self, *, endian: Literal["little", "big"] | None = "little") -> None:
        super().__init__("bytes", endian=endian)


class Crc32cCodec(CodecMetadata):
    """Appends a CRC-32C checksum."""

    def __init__(self) -> None:
        super().__init__("crc32c")


class GzipCodec(CodecMetadata):
    """Compresses bytes with gzip."""

    def __init__(self, *, level: int = 5) -> None:
        super().__init__("gzip", level=level)


class ShardingCodec(CodecMetadata):
    """Stores many inner chunks in one value. The option ``shards`` of ``create_array`` is simpler to use."""

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
    """Permutes the dimensions."""

    def __init__(self, *, order: Sequence[int]) -> None:
        super().__init__("transpose", order=list(order))


class VLenBytesCodec(CodecMetadata):
    """Encodes byte strings of variable length."""

    def __init__(self) -> None:
        super().__init__("vlen-bytes")


class VLenUTF8Codec(CodecMetadata):
    """Encodes strings of variable length as UTF-8."""

    def __init__(self) -> None:
        super().__init__("vlen-utf8")


class ZstdCodec(CodecMetadata):
    """Compresses bytes with Zstandard."""

    def __init__(self, *, level: int = 0, checksum: bool = False) -> None:
        super().__init__("zstd", level=level, checksum=checksum)
