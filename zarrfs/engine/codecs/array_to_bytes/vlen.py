"""vlen-utf8, vlen-bytes: variable-length elements, each preceded by its length.

Specification: https://github.com/zarr-developers/zarr-extensions/tree/main/codecs/vlen-utf8 and ``vlen-bytes``

Names: ``vlen-utf8``, ``vlen-bytes``; the Zarr v2 filters of these names have the same format.

Example::

    {"name": "vlen-utf8"}

The format is the number of elements as little-endian uint32, then for each element its length as uint32 and its bytes.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Self

import numpy as np

from zarrfs.engine.codecs.base import ArrayBytesCodec, Buffer, ChunkSpec, CodecError
from zarrfs.engine.codecs.configuration import check_keys
from zarrfs.errors import MetadataError
from zarrfs.text import short_repr

__all__ = ["VlenBytesCodec", "VlenUtf8Codec"]

LENGTH = struct.Struct("<I")


def split(data: Buffer, count: int, convert: Callable[[memoryview], Any]) -> list[Any]:
    """Return the ``count`` stored elements, each passed through ``convert``. Raises CodecError for another count."""
    view = memoryview(data).cast("B")
    end = len(view)
    if end < LENGTH.size:
        raise CodecError(f"the data are truncated: {end} bytes cannot hold the number of elements")
    (found,) = LENGTH.unpack_from(view)
    if found != count:
        raise CodecError(f"{found} elements are stored, expected {count}")
    if count * LENGTH.size > end - LENGTH.size:
        raise CodecError(f"the data are truncated: {end} bytes cannot hold {count} elements")
    position = LENGTH.size
    items = []
    unpack = LENGTH.unpack_from
    for i in range(count):
        start = position + LENGTH.size
        if start > end:
            raise CodecError(f"the data are truncated: {end} bytes end before element {i} of {count}")
        position = start + unpack(view, position)[0]
        if position > end:
            raise CodecError(
                f"the data are truncated: element {i} of {count} has {position - start} bytes, but only "
                f"{end - start} are left"
            )
        items.append(convert(view[start:position]))
    return items


def join(items: list[bytes]) -> bytes:
    """Return the stored form of the elements."""
    parts = [LENGTH.pack(len(items))]
    for item in items:
        parts.append(LENGTH.pack(len(item)))
        parts.append(item)
    return b"".join(parts)


def objects(items: list[Any], shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    """Return an object array of the items, each unchanged."""
    array = np.empty(len(items), object)
    if items and isinstance(items[0], np.ndarray):
        # A single assignment would combine arrays of equal length to one array.
        for i, item in enumerate(items):
            array[i] = item
    else:
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
                f"codec {self.name!r} needs variable-length elements, found {spec.dtype}; use codec 'bytes' instead"
            )


class VlenUtf8Codec(_VlenCodec):
    """array -> bytes: strings as UTF-8."""

    name: ClassVar[str] = "vlen-utf8"
    element_type = str

    def encode(self, array: np.ndarray[Any, Any], spec: ChunkSpec) -> Buffer:
        return join([_utf8(item) for item in array.reshape(-1).tolist()])

    def decode(self, data: Buffer, spec: ChunkSpec) -> np.ndarray[Any, Any]:
        try:
            return objects(split(data, spec.size, _text), spec.shape)
        except UnicodeDecodeError as error:
            raise CodecError(f"an element is not valid UTF-8: {error}") from error


def _text(item: memoryview) -> str:
    return str(item, "utf-8")


def _utf8(item: Any) -> bytes:
    if item is None or (type(item) is int and item == 0):
        # Elements of v2 arrays that were never set are None or 0.
        return b""
    if not isinstance(item, str):
        raise CodecError(f"expected a string, found {short_repr(item)} ({type(item).__name__})")
    return item.encode("utf-8")


class VlenBytesCodec(_VlenCodec):
    """array -> bytes: byte strings."""

    name: ClassVar[str] = "vlen-bytes"
    element_type = bytes

    def encode(self, array: np.ndarray[Any, Any], spec: ChunkSpec) -> Buffer:
        return join([_bytes(item) for item in array.reshape(-1).tolist()])

    def decode(self, data: Buffer, spec: ChunkSpec) -> np.ndarray[Any, Any]:
        return objects(split(data, spec.size, bytes), spec.shape)


def _bytes(item: Any) -> bytes:
    if item is None or (type(item) is int and item == 0):
        return b""
    if not isinstance(item, bytes | bytearray | memoryview):
        raise CodecError(f"expected bytes, found {short_repr(item)} ({type(item).__name__})")
    return bytes(item)
