"""Adapters for the array->bytes codecs of numcodecs for Python objects, the object codecs of Zarr v2.

Specification: https://numcodecs.readthedocs.io

Names: ``vlen-array``, and ``numcodecs.`` with ``json2``, ``msgpack2``, ``categorize``, ``pickle``; in Zarr v2
the bare name.

Example::

    {"name": "numcodecs.json2", "configuration": {}}

numcodecs encodes. Decoding is implemented here, because numcodecs allocates memory for the counts, shapes and data
types that the data declare. Here they are compared with those of the chunk before memory is allocated.

``pickle`` executes code from the data. It is refused unless the caller allows it explicitly.
"""

from __future__ import annotations

import codecs
import json
import pickle
from collections.abc import Mapping
from math import prod
from typing import Any, ClassVar

import numpy as np

from zarrfs.engine.codecs.array_to_bytes.vlen import objects, split
from zarrfs.engine.codecs.base import ArrayBytesCodec, Buffer, ChunkSpec, CodecError
from zarrfs.engine.codecs.limits import check_size
from zarrfs.engine.codecs.numcodecs.instances import NumcodecsOptions, make_numcodec
from zarrfs.errors import MetadataError
from zarrfs.libraries import import_library
from zarrfs.text import short_repr

__all__ = [
    "CategorizeCodec",
    "JsonCodec",
    "MessagePackCodec",
    "NumcodecsObjectCodec",
    "PickleCodec",
    "VlenArrayCodec",
]

Array = np.ndarray[Any, Any]


class NumcodecsObjectCodec(NumcodecsOptions, ArrayBytesCodec):
    """array -> bytes: the codec that numcodecs registers as ``id``, with the parameters of numcodecs."""

    name: ClassVar[str] = "numcodecs"
    id: ClassVar[str] = ""

    def __init__(self, options: Mapping[str, Any]) -> None:
        super().__init__(options)
        self._codec = make_numcodec(self.id, self._options)

    def encode(self, array: Array, spec: ChunkSpec) -> Buffer:
        # vlen-array does not accept read-only arrays, such as broadcast ones.
        return bytes(self._codec.encode(np.require(np.ascontiguousarray(array), requirements="W")))

    def decode(self, data: Buffer, spec: ChunkSpec) -> Array:
        raise CodecError(f"codec {self.id!r} cannot be decoded")


class JsonCodec(NumcodecsObjectCodec):
    """array -> bytes: a JSON list of the elements, the data type and the shape."""

    name: ClassVar[str] = "numcodecs.json2"
    id: ClassVar[str] = "json2"

    def __init__(self, options: Mapping[str, Any]) -> None:
        super().__init__(options)
        encoding = options.get("encoding", "utf-8")
        try:
            self._encoding = codecs.lookup(encoding).name
        except (LookupError, TypeError, ValueError) as error:
            raise MetadataError(f"codec 'json2': unknown text encoding {short_repr(encoding)}") from error
        if self._encoding not in TEXT_ENCODINGS:
            raise MetadataError(
                f"codec 'json2': encoding must be one of {', '.join(TEXT_ENCODINGS)}, found {short_repr(encoding)}"
            )

    def decode(self, data: Buffer, spec: ChunkSpec) -> Array:
        text = str(memoryview(data), self._encoding)
        return _from_items(json.loads(text, strict=bool(self._options.get("strict", True))), spec)


TEXT_ENCODINGS = (
    "utf-8",
    "utf-8-sig",
    "ascii",
    "iso8859-1",
    "cp1252",
    *(f"utf-{bits}{order}" for bits in (16, 32) for order in ("", "-le", "-be")),
)
"""The text encodings whose decoders run in linear time."""


class MessagePackCodec(NumcodecsObjectCodec):
    """array -> bytes: a MessagePack list of the elements, the data type and the shape."""

    name: ClassVar[str] = "numcodecs.msgpack2"
    id: ClassVar[str] = "msgpack2"

    def decode(self, data: Buffer, spec: ChunkSpec) -> Array:
        items = import_library("msgpack").unpackb(memoryview(data), raw=bool(self._options.get("raw", False)))
        return _from_items(items, spec)


class VlenArrayCodec(NumcodecsObjectCodec):
    """array -> bytes: one-dimensional arrays of variable length, each preceded by its size in bytes."""

    name: ClassVar[str] = "vlen-array"
    id: ClassVar[str] = "vlen-array"
    element_type = np.ndarray

    def __init__(self, options: Mapping[str, Any]) -> None:
        super().__init__(options)
        self._dtype = _dtype_option("vlen-array", options.get("dtype"), "biufcmMSUV")

    def check(self, spec: ChunkSpec) -> None:
        if not spec.dtype.hasobject:
            raise MetadataError(f"codec 'vlen-array' needs arrays as elements, found {spec.dtype}")

    def encode(self, array: Array, spec: ChunkSpec) -> Buffer:
        # Elements that were never set are the fill value. numcodecs encodes None as an array without elements.
        if spec.fill_value is not None and any(element is None for element in array.flat):
            raise CodecError(
                "None is not an array; use an empty array, or another one that means a missing value"
            )
        return super().encode(array, spec)

    def decode(self, data: Buffer, spec: ChunkSpec) -> Array:
        return objects(split(data, spec.size, self._element), spec.shape)

    def _element(self, item: memoryview) -> Array:
        if self._dtype.kind == "b":
            # NumPy relies on booleans being 0 or 1.
            return np.asarray(np.frombuffer(item, np.uint8) != 0)
        if len(item) % self._dtype.itemsize:
            raise CodecError(
                f"an element has {len(item)} bytes, expected a multiple of the size of {self._dtype}"
            )
        return np.frombuffer(item, self._dtype).copy()


class CategorizeCodec(NumcodecsObjectCodec):
    """array -> bytes: the position of each string in a list of labels, counted from 1; 0 for an empty string."""

    name: ClassVar[str] = "numcodecs.categorize"
    id: ClassVar[str] = "categorize"
    element_type = str

    def __init__(self, options: Mapping[str, Any]) -> None:
        super().__init__(options)
        self._stored = _dtype_option("categorize", options.get("astype", "u1"), "biu")

    def check(self, spec: ChunkSpec) -> None:
        if spec.dtype.kind not in "UO":
            raise MetadataError(f"codec 'categorize' needs text, found {spec.dtype}")

    def encoded_size(self, spec: ChunkSpec) -> int | None:
        return spec.size * self._stored.itemsize

    def decode(self, data: Buffer, spec: ChunkSpec) -> Array:
        check_size(memoryview(data).nbytes, spec.size * self._stored.itemsize)
        stored = np.frombuffer(data, self._stored)
        labels = np.array(["", *self._codec.labels], object)
        # Numbers without a label are decoded as an empty string.
        is_label = (stored > 0) & (stored <= len(labels) - 1)
        numbers = np.where(is_label, stored, 0).astype(np.intp)
        out = np.empty(spec.size, spec.dtype)
        out[...] = labels[numbers]
        return out.reshape(spec.shape)


class PickleCodec(NumcodecsObjectCodec):
    """array -> bytes: pickled arrays. The caller must allow them when opening the array.

    numcodecs can allow pickles only for the whole process. Decoding here is allowed per array.
    """

    name: ClassVar[str] = "numcodecs.pickle"
    id: ClassVar[str] = "pickle"

    def decode(self, data: Buffer, spec: ChunkSpec) -> Array:
        decoded = pickle.loads(data)
        if spec.dtype.hasobject and not (isinstance(decoded, np.ndarray) and decoded.size == spec.size):
            # An array of one element or of lists of equal length may have been pickled in another shape.
            decoded = _objects(list(decoded), spec.size)
        array = np.asarray(decoded, spec.dtype if spec.dtype.hasobject else None)
        array = _of_dtype(array, spec)
        if array.size != spec.size:
            raise CodecError(f"the data decode to {array.size} elements, expected {spec.size}")
        # A pickled array has the memory order of the chunk. zarr-python 2 does the same.
        return array.reshape(-1, order="A").reshape(spec.shape)


def _dtype_option(codec_id: str, value: Any, kinds: str) -> np.dtype[Any]:
    """Return the dtype of a parameter. Raises MetadataError unless it is a simple dtype of one of the ``kinds``."""
    try:
        dtype = np.dtype(value) if isinstance(value, str | np.dtype | type) else None
    except (TypeError, ValueError, OverflowError, MemoryError) as error:
        raise MetadataError(f"codec {codec_id!r}: {short_repr(value)} is not a dtype: {error}") from error
    if dtype is None or dtype.kind not in kinds or not dtype.itemsize or dtype.names or dtype.subdtype:
        raise MetadataError(
            f"codec {codec_id!r}: expected the name of a dtype of a kind in {kinds!r}, found {short_repr(value)}"
        )
    return dtype


def _from_items(items: Any, spec: ChunkSpec) -> Array:
    """Return the array of a list of numcodecs: the elements, nested according to the shape, data type and shape."""
    if not isinstance(items, list) or len(items) < 2:
        raise CodecError(f"expected a list of elements, data type and shape, found {type(items).__name__}")
    *elements, declared, shape = items
    if not isinstance(shape, list | tuple) or not all(type(n) is int and n >= 0 for n in shape):
        raise CodecError("expected the shape of the chunk as last element of the list")
    if prod(shape) != spec.size:
        raise CodecError(f"{prod(shape)} elements are stored, expected {spec.size}")
    flat = _flatten(elements, tuple(shape))
    if spec.dtype.hasobject:
        return _objects(flat, spec.size).reshape(spec.shape)
    dtype = _declared_dtype(declared, spec)
    array = np.array(flat, dtype)
    if array.shape != (spec.size,):
        raise CodecError(f"an array of shape {array.shape} is stored, expected {spec.size} elements")
    return _of_dtype(array, spec).reshape(spec.shape)


def _flatten(elements: list[Any], shape: tuple[int, ...]) -> list[Any]:
    level = elements
    for depth, length in enumerate(shape or (1,)):
        if depth:
            if not all(isinstance(part, list) and len(part) == length for part in level):
                raise CodecError(f"the nesting of the elements differs from the shape {shape}")
            level = [item for part in level for item in part]
        elif len(level) != length:
            raise CodecError(f"{len(level)} elements are stored, expected {length}")
    return level


def _declared_dtype(declared: Any, spec: ChunkSpec) -> np.dtype[Any]:
    """Return the dtype of the stored values. Its item size is that of the chunk's dtype."""
    try:
        dtype = np.dtype(declared if isinstance(declared, str) else "O")
    except (TypeError, ValueError) as error:
        raise CodecError(f"{short_repr(declared)} is not a data type") from error
    return spec.dtype if dtype.hasobject or dtype.itemsize != spec.dtype.itemsize else dtype


def _of_dtype(array: Array, spec: ChunkSpec) -> Array:
    if spec.dtype.hasobject or array.dtype == spec.dtype:
        return array
    if array.dtype.kind in "uV" and array.dtype.itemsize == spec.dtype.itemsize:
        return array.view(spec.dtype)
    return array.astype(spec.dtype)


def _objects(items: list[Any], count: int) -> Array:
    if len(items) != count:
        raise CodecError(f"the data decode to {len(items)} elements, expected {count}")
    array = np.empty(count, object)
    for i, item in enumerate(items):
        array[i] = item
    return array
