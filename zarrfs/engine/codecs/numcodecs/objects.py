"""numcodecs' codecs that make bytes of arrays: object codecs of Zarr v2.

Specification: https://numcodecs.readthedocs.io

Names: ``vlen-array``, and ``numcodecs.`` with ``json2``, ``msgpack2``, ``categorize``, ``pickle``; in Zarr v2
the bare name.

Example::

    {"name": "numcodecs.json2", "configuration": {}}

numcodecs encodes. Decoding is done here, because numcodecs allocates memory for the counts, shapes and data types that
the data declare: they are compared with the chunk's before anything is allocated.

``pickle`` runs code that the data choose. It is refused unless a caller allows it by name.
"""

from __future__ import annotations

import codecs
import json
import pickle
from collections.abc import Mapping
from math import prod
from typing import Any, ClassVar, Self

import numpy as np

from zarrfs.engine.codecs.array_to_bytes.vlen import objects, split
from zarrfs.engine.codecs.base import ArrayBytesCodec, Buffer, ChunkSpec, CodecError
from zarrfs.engine.codecs.libraries import import_library
from zarrfs.engine.codecs.limits import check_size
from zarrfs.engine.codecs.numcodecs.instances import make_numcodec
from zarrfs.errors import MetadataError, UnsupportedError

__all__ = ["OBJECT_CODECS", "NumcodecsObjectCodec", "object_codec"]

OBJECT_CODECS = (
    "vlen-array",
    "json2",
    "json",
    "msgpack2",
    "msgpack",
    "categorize",
    "pickle",
)

Array = np.ndarray[Any, Any]


class NumcodecsObjectCodec(ArrayBytesCodec):
    """array -> bytes: the codec that numcodecs registers as ``id``, with numcodecs' own parameters."""

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

    def encode(self, array: Array, spec: ChunkSpec) -> Buffer:
        # vlen-array takes no array that is read-only, as one that was broadcast is.
        return bytes(self._codec.encode(np.require(np.ascontiguousarray(array), requirements="W")))

    def decode(self, data: Buffer, spec: ChunkSpec) -> Array:
        raise CodecError(f"codec {self.id!r} has no decoder here")


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
            raise MetadataError(f"codec 'json2': there is no text encoding {encoding!r}") from error
        if self._encoding not in TEXT_ENCODINGS:
            raise MetadataError(
                f"codec 'json2': encoding must be one of {', '.join(TEXT_ENCODINGS)}, found {encoding!r}"
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
"""Those whose decoders take a time that is linear in the size of the data."""


class MessagePackCodec(NumcodecsObjectCodec):
    """array -> bytes: a MessagePack list of the elements, the data type and the shape."""

    name: ClassVar[str] = "numcodecs.msgpack2"
    id: ClassVar[str] = "msgpack2"

    def decode(self, data: Buffer, spec: ChunkSpec) -> Array:
        items = import_library("msgpack").unpackb(memoryview(data), raw=bool(self._options.get("raw", False)))
        return _from_items(items, spec)


class VlenArrayCodec(NumcodecsObjectCodec):
    """array -> bytes: arrays of one dimension and any length, each behind its number of bytes."""

    name: ClassVar[str] = "vlen-array"
    id: ClassVar[str] = "vlen-array"
    element_type = np.ndarray

    def __init__(self, options: Mapping[str, Any]) -> None:
        super().__init__(options)
        self._dtype = _dtype_option("vlen-array", options.get("dtype"), "biufcmMSUV")

    def check(self, spec: ChunkSpec) -> None:
        if not spec.dtype.hasobject:
            raise MetadataError(f"codec 'vlen-array' is for arrays as elements, not for {spec.dtype}")

    def decode(self, data: Buffer, spec: ChunkSpec) -> Array:
        return objects(split(data, spec.size, self._element), spec.shape)

    def _element(self, item: memoryview) -> Array:
        if self._dtype.kind == "b":
            # NumPy relies on booleans being 0 or 1.
            return np.asarray(np.frombuffer(item, np.uint8) != 0)
        if len(item) % self._dtype.itemsize:
            raise CodecError(f"an element has {len(item)} bytes, which are no whole number of {self._dtype}")
        return np.frombuffer(item, self._dtype).copy()


class CategorizeCodec(NumcodecsObjectCodec):
    """array -> bytes: the number of each string in a list of labels, from 1; 0 where there is none."""

    name: ClassVar[str] = "numcodecs.categorize"
    id: ClassVar[str] = "categorize"
    element_type = str

    def __init__(self, options: Mapping[str, Any]) -> None:
        super().__init__(options)
        self._stored = _dtype_option("categorize", options.get("astype", "u1"), "biu")

    def check(self, spec: ChunkSpec) -> None:
        if spec.dtype.kind not in "UO":
            raise MetadataError(f"codec 'categorize' is for text, not for {spec.dtype}")

    def encoded_size(self, spec: ChunkSpec) -> int | None:
        return spec.size * self._stored.itemsize

    def decode(self, data: Buffer, spec: ChunkSpec) -> Array:
        check_size(memoryview(data).nbytes, spec.size * self._stored.itemsize)
        stored = np.frombuffer(data, self._stored)
        labels = np.array(["", *self._codec.labels], object)
        # What is no label reads as no text.
        known = (stored > 0) & (stored <= len(labels) - 1)
        numbers = np.where(known, stored, 0).astype(np.intp)
        out = np.empty(spec.size, spec.dtype)
        out[...] = labels[numbers]
        return out.reshape(spec.shape)


class PickleCodec(NumcodecsObjectCodec):
    """Pickles, for who allowed them when opening. numcodecs refuses them unless the whole process allows them, also to
    those who did not ask; what is allowed here is one array.
    """

    name: ClassVar[str] = "numcodecs.pickle"
    id: ClassVar[str] = "pickle"

    def decode(self, data: Buffer, spec: ChunkSpec) -> Array:
        decoded = pickle.loads(data)
        if spec.dtype.hasobject and not (isinstance(decoded, np.ndarray) and decoded.size == spec.size):
            # An array of one element, or of equal lists, may have become something of another shape.
            decoded = _objects(list(decoded), spec.size)
        array = np.asarray(decoded, spec.dtype if spec.dtype.hasobject else None)
        array = _of_dtype(array, spec)
        if array.size != spec.size:
            raise CodecError(f"{array.size} elements come out, expected are {spec.size}")
        # A pickled array keeps its memory order, which is that of the chunk; zarr-python 2 lays it down so too.
        return array.reshape(-1, order="A").reshape(spec.shape)


def _dtype_option(codec_id: str, value: Any, kinds: str) -> np.dtype[Any]:
    """Return a dtype that is given as a parameter. Raises MetadataError unless it is of a simple kind."""
    try:
        dtype = np.dtype(value) if isinstance(value, str | np.dtype | type) else None
    except (TypeError, ValueError, OverflowError, MemoryError) as error:
        raise MetadataError(f"codec {codec_id!r}: {value!r} is no dtype: {error}") from error
    if dtype is None or dtype.kind not in kinds or not dtype.itemsize or dtype.names or dtype.subdtype:
        raise MetadataError(
            f"codec {codec_id!r}: expected the name of a dtype of a kind in {kinds!r}, found {value!r}"
        )
    return dtype


def _from_items(items: Any, spec: ChunkSpec) -> Array:
    """Return the array of numcodecs' list: the elements, nested as the shape says, then data type and shape."""
    if not isinstance(items, list) or len(items) < 2:
        raise CodecError(f"expected a list of elements, data type and shape, found {type(items).__name__}")
    *elements, declared, shape = items
    if not isinstance(shape, list | tuple) or not all(type(n) is int and n >= 0 for n in shape):
        raise CodecError("expected the shape of the chunk at the end of the list")
    if prod(shape) != spec.size:
        raise CodecError(f"{prod(shape)} elements are stored, expected are {spec.size}")
    flat = _flatten(elements, tuple(shape))
    if spec.dtype.hasobject:
        return _objects(flat, spec.size).reshape(spec.shape)
    dtype = _declared_dtype(declared, spec)
    array = np.array(flat, dtype)
    if array.shape != (spec.size,):
        raise CodecError(f"an array of shape {array.shape} is stored, expected are {spec.size} elements")
    return _of_dtype(array, spec).reshape(spec.shape)


def _flatten(elements: list[Any], shape: tuple[int, ...]) -> list[Any]:
    level = elements
    for depth, length in enumerate(shape or (1,)):
        if depth:
            if not all(isinstance(part, list) and len(part) == length for part in level):
                raise CodecError(f"the elements are not nested as the shape {shape} says")
            level = [item for part in level for item in part]
        elif len(level) != length:
            raise CodecError(f"{len(level)} elements are stored, expected are {length}")
    return level


def _declared_dtype(declared: Any, spec: ChunkSpec) -> np.dtype[Any]:
    """Return the dtype in which the values are to be read; its size is that of the chunk's elements."""
    try:
        dtype = np.dtype(declared if isinstance(declared, str) else "O")
    except (TypeError, ValueError) as error:
        raise CodecError(f"{declared!r} is no data type") from error
    return spec.dtype if dtype.hasobject or dtype.itemsize != spec.dtype.itemsize else dtype


def _of_dtype(array: Array, spec: ChunkSpec) -> Array:
    if spec.dtype.hasobject or array.dtype == spec.dtype:
        return array
    if array.dtype.kind in "uV" and array.dtype.itemsize == spec.dtype.itemsize:
        return array.view(spec.dtype)
    return array.astype(spec.dtype)


def _objects(items: list[Any], count: int) -> Array:
    if len(items) != count:
        raise CodecError(f"{len(items)} elements come out, expected are {count}")
    array = np.empty(count, object)
    for i, item in enumerate(items):
        array[i] = item
    return array


_CLASSES: dict[str, type[NumcodecsObjectCodec]] = {
    "json2": JsonCodec,
    "msgpack2": MessagePackCodec,
    "vlen-array": VlenArrayCodec,
    "categorize": CategorizeCodec,
    "pickle": PickleCodec,
}


def object_codec(codec_id: str) -> type[NumcodecsObjectCodec]:
    """Return the class for one numcodecs codec; its name is in v3 form."""
    made = _CLASSES.get(codec_id)
    if made is None:
        raise UnsupportedError(f"codec {codec_id!r} is not read; known are {', '.join(_CLASSES)}")
    return made
