"""numcodecs' codecs that make bytes of arrays: object codecs of Zarr v2.

Specification: https://numcodecs.readthedocs.io

Names: ``vlen-array``, and ``numcodecs.`` with ``json2``, ``msgpack2``, ``categorize``, ``pickle``; in Zarr v2
the bare name.

Example::

    {"name": "numcodecs.json2", "configuration": {}}

``pickle`` runs code that the data choose. It is refused unless a caller allows it by name.
"""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np

from zarrfs.engine.codecs.base import ArrayBytesCodec, Buffer, ChunkSpec, CodecError
from zarrfs.engine.codecs.numcodecs_make import make_numcodec

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

    def encoded_size(self, spec: ChunkSpec) -> int | None:
        return spec.size * np.dtype(self._codec.astype).itemsize if self.id == "categorize" else None

    def encode(self, array: np.ndarray[Any, Any], spec: ChunkSpec) -> Buffer:
        # vlen-array takes no array that is read-only, as one that was broadcast is.
        return bytes(self._codec.encode(np.require(np.ascontiguousarray(array), requirements="W")))

    def decode(self, data: Buffer, spec: ChunkSpec) -> np.ndarray[Any, Any]:
        source: Any = data
        if self.id == "categorize":
            source = np.frombuffer(data, self._codec.astype)
        decoded = self._decoded(source)
        if spec.dtype.hasobject and not (isinstance(decoded, np.ndarray) and decoded.size == spec.size):
            # JSON and MessagePack turn an array of one element, or of equal lists, into something of another shape.
            decoded = _objects(decoded, spec.size)
        array = np.asarray(decoded, spec.dtype if spec.dtype.hasobject else None)
        if not spec.dtype.hasobject and array.dtype != spec.dtype:
            array = (
                array.reshape(-1).view(spec.dtype) if array.dtype.kind in "uV" else array.astype(spec.dtype)
            )
        if array.size != spec.size:
            raise CodecError(f"{array.size} elements come out, expected are {spec.size}")
        # A pickled array keeps its memory order, which is that of the chunk; zarr-python 2 lays it down so too.
        return array.reshape(-1, order="A").reshape(spec.shape)

    def _decoded(self, data: Any) -> Any:
        return self._codec.decode(data)


class PickleCodec(NumcodecsObjectCodec):
    """Pickles, for who allowed them when opening. numcodecs refuses them unless the whole process allows them, also to
    those who did not ask; what is allowed here is one array.
    """

    name: ClassVar[str] = "numcodecs.pickle"
    id: ClassVar[str] = "pickle"

    def _decoded(self, data: Any) -> Any:
        return pickle.loads(data)


def _objects(items: Any, count: int) -> np.ndarray[Any, Any]:
    listed = list(items)
    if len(listed) != count:
        raise CodecError(f"{len(listed)} elements come out, expected are {count}")
    array = np.empty(count, object)
    for i, item in enumerate(listed):
        array[i] = item
    return array


def object_codec(codec_id: str) -> type[NumcodecsObjectCodec]:
    """Return the class for one numcodecs codec; its name is in v3 form."""
    made = _classes.get(codec_id)
    if made is None:
        name = codec_id if codec_id == "vlen-array" else f"numcodecs.{codec_id}"
        names = {"name": name, "id": codec_id, "__doc__": NumcodecsObjectCodec.__doc__}
        made = _classes[codec_id] = type(
            f"Numcodecs{codec_id.title().replace('-', '')}Codec", (NumcodecsObjectCodec,), names
        )
    return made


_classes: dict[str, type[NumcodecsObjectCodec]] = {"pickle": PickleCodec}
