"""vlen-utf8, vlen-bytes: elements of varying length, each behind its length.

Specification: https://github.com/zarr-developers/zarr-extensions/tree/main/codecs/vlen-utf8 and ``vlen-bytes``

Names: ``vlen-utf8``, ``vlen-bytes``; in Zarr v2 the filters of these names.

Example::

    {"name": "vlen-utf8"}

A little-endian uint32 count, then for each element a uint32 length and its bytes.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np

from zarrfs.engine.codecs.base import ArrayBytesCodec, Buffer, ChunkSpec, CodecError
from zarrfs.engine.codecs.configuration import check_keys
from zarrfs.errors import MetadataError

__all__ = ["VlenBytesCodec", "VlenUtf8Codec"]

LENGTH = struct.Struct("<I")


def split(data: Buffer, count: int) -> list[memoryview]:
    """Return the elements of the stored form, after checking that there are ``count``."""
    view = memoryview(data)
    if len(view) < LENGTH.size:
        raise CodecError(f"{len(view)} bytes are too few to hold the number of elements")
    (found,) = LENGTH.unpack_from(view)
    if found != count:
        raise CodecError(f"{found} elements are stored, expected are {count}")
    position = LENGTH.size
    items = []
    for i in range(count):
        if position + LENGTH.size > len(view):
            raise CodecError(f"the data are truncated: they end before element {i} of {count}")
        (length,) = LENGTH.unpack_from(view, position)
        position += LENGTH.size
        if position + length > len(view):
            raise CodecError(
                f"the data are truncated: element {i} of {count} has {length} bytes, which are not there"
            )
        items.append(view[position : position + length])
        position += length
    return items


def join(items: list[bytes]) -> bytes:
    """Return the stored form of the elements."""
    parts = [LENGTH.pack(len(items))]
    for item in items:
        parts.append(LENGTH.pack(len(item)))
        parts.append(item)
    return b"".join(parts)


def objects(items: list[Any], shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    """Return an object array of the items, each kept as it is."""
    array = np.empty(len(items), object)
    array[:] = items
    return array.reshape(shape)


class _VlenCodec(ArrayBytesCodec):
    @classmethod
    def from_configuration(cls, configuration: Mapping[str, Any]) -> Self:
        check_keys(cls.name, configuration, ())
        return cls()

    def configuration(self) -> dict[str, Any]:
        return {}

    def check(self, spec: ChunkSpec) -> None:
        if not spec.dtype.hasobject:
            raise MetadataError(
                f"codec {self.name!r} is for elements of varying length, not for {spec.dtype}; expected 'bytes'"
            )


class VlenUtf8Codec(_VlenCodec):
    """array -> bytes: strings as UTF-8."""

    name: ClassVar[str] = "vlen-utf8"

    def encode(self, array: np.ndarray[Any, Any], spec: ChunkSpec) -> Buffer:
        return join([_utf8(item) for item in array.reshape(-1).tolist()])

    def decode(self, data: Buffer, spec: ChunkSpec) -> np.ndarray[Any, Any]:
        try:
            return objects([str(item, "utf-8") for item in split(data, spec.size)], spec.shape)
        except UnicodeDecodeError as error:
            raise CodecError(f"an element is not valid UTF-8: {error}") from error


def _utf8(item: Any) -> bytes:
    if item is None or (type(item) is int and item == 0):
        # What was never set: v2 arrays have None or 0 there.
        return b""
    if not isinstance(item, str):
        raise CodecError(f"expected a string, found {item!r} ({type(item).__name__})")
    return item.encode("utf-8")


class VlenBytesCodec(_VlenCodec):
    """array -> bytes: byte strings."""

    name: ClassVar[str] = "vlen-bytes"

    def encode(self, array: np.ndarray[Any, Any], spec: ChunkSpec) -> Buffer:
        return join([_bytes(item) for item in array.reshape(-1).tolist()])

    def decode(self, data: Buffer, spec: ChunkSpec) -> np.ndarray[Any, Any]:
        return objects([bytes(item) for item in split(data, spec.size)], spec.shape)


def _bytes(item: Any) -> bytes:
    if item is None or (type(item) is int and item == 0):
        return b""
    if not isinstance(item, bytes | bytearray | memoryview):
        raise CodecError(f"expected bytes, found {item!r} ({type(item).__name__})")
    return bytes(item)
