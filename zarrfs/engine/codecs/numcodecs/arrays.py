"""numcodecs' array->array codecs: what Zarr v2 calls filters.

Specification: https://numcodecs.readthedocs.io

Names: ``numcodecs.`` and the numcodecs name (``delta``, ``fixedscaleoffset``, ``quantize``, ``astype``, ``packbits``);
in Zarr v2 the bare name.

Example::

    {"name": "numcodecs.delta", "configuration": {"dtype": "<i4"}}

They see the elements of a chunk in its memory order, as one line.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np

from zarrfs.engine.codecs.base import ArrayArrayCodec, ChunkSpec, Region
from zarrfs.engine.codecs.numcodecs.instances import make_numcodec
from zarrfs.errors import MetadataError

__all__ = ["ARRAY_CODECS", "NumcodecsArrayCodec", "array_codec"]

ARRAY_CODECS = ("delta", "fixedscaleoffset", "quantize", "astype", "packbits")

ELEMENTWISE = ("fixedscaleoffset", "quantize", "astype")
"""Each element by itself, so that a region can be decoded without the rest."""

KINDS = "biufcmMSU"
MAX_ITEMSIZE = 1 << 16
"""Elements that the parameters of a codec may ask for: an object would be a pointer made of data, a huge one memory."""


class NumcodecsArrayCodec(ArrayArrayCodec):
    """array -> array: the codec that numcodecs registers as ``id``, with numcodecs' own parameters."""

    name: ClassVar[str] = "numcodecs"
    id: ClassVar[str] = ""

    def __init__(self, options: Mapping[str, Any]) -> None:
        self._options = dict(options)
        self._made: dict[str, Any] = {}

    @classmethod
    def from_configuration(cls, configuration: Mapping[str, Any]) -> Self:
        return cls(configuration)

    def configuration(self) -> dict[str, Any]:
        return dict(self._options)

    def _codec(self, spec: ChunkSpec) -> Any:
        codec = self._made.get(spec.dtype.str)
        if codec is None:
            options = dict(self._options)
            if self.id in ("delta", "fixedscaleoffset", "quantize"):
                options.setdefault("dtype", spec.dtype.str)
            if self.id == "astype":
                options.setdefault("decode_dtype", spec.dtype.str)
            codec = self._made[spec.dtype.str] = make_numcodec(self.id, options)
        return codec

    def check(self, spec: ChunkSpec) -> None:
        if spec.dtype.hasobject:
            raise MetadataError(f"codec {self.name!r} cannot take elements of varying length")
        codec = self._codec(spec)
        for attribute in ("dtype", "astype", "encode_dtype", "decode_dtype"):
            self._check_dtype(getattr(codec, attribute, None))
        given = getattr(codec, "decode_dtype" if self.id == "astype" else "dtype", None)
        if given is not None and np.dtype(given).itemsize != spec.dtype.itemsize:
            raise MetadataError(
                f"codec {self.name!r} is for {np.dtype(given)}, but gets elements of {spec.dtype}"
            )

    def _check_dtype(self, dtype: Any) -> None:
        if dtype is not None and (
            np.dtype(dtype).kind not in KINDS or np.dtype(dtype).itemsize > MAX_ITEMSIZE
        ):
            raise MetadataError(
                f"codec {self.name!r}: elements of {np.dtype(dtype)} are not numbers or short text"
            )

    def encoded_spec(self, spec: ChunkSpec) -> ChunkSpec:
        if self.id == "packbits":
            return ChunkSpec((1 + -(-spec.size // 8),), np.dtype("u1"), np.uint8(0))
        codec = self._codec(spec)
        dtype = np.dtype(codec.encode_dtype if self.id == "astype" else codec.astype)
        # No chunk is ever filled on the encoded side; the value is there for form.
        return ChunkSpec(spec.shape, dtype, np.zeros((), dtype)[()])

    def encode(self, array: np.ndarray[Any, Any], spec: ChunkSpec) -> np.ndarray[Any, Any]:
        encoded_spec = self.encoded_spec(spec)
        flat = np.ascontiguousarray(array, spec.dtype).reshape(-1)
        with np.errstate(all="ignore"):  # NaN and infinity in data are nothing to warn of.
            encoded = np.asarray(self._codec(spec).encode(flat))
        return encoded.view(encoded_spec.dtype).reshape(encoded_spec.shape)

    def decode(self, array: np.ndarray[Any, Any], spec: ChunkSpec) -> np.ndarray[Any, Any]:
        shape = spec.shape if self.id not in ELEMENTWISE else array.shape
        # numcodecs looks at the bytes, so that they must be in the byte order that it counts on.
        flat = np.ascontiguousarray(array, self.encoded_spec(spec).dtype).reshape(-1)
        with np.errstate(all="ignore"):
            decoded = np.asarray(self._codec(spec).decode(flat))
        return decoded.view(spec.dtype).reshape(shape)

    def encoded_region(self, region: Region, spec: ChunkSpec) -> Region | None:
        return region if self.id in ELEMENTWISE else None


def array_codec(codec_id: str) -> type[NumcodecsArrayCodec]:
    """Return the class for one numcodecs codec; its name is in v3 form."""
    made = _classes.get(codec_id)
    if made is None:
        names = {"name": f"numcodecs.{codec_id}", "id": codec_id, "__doc__": NumcodecsArrayCodec.__doc__}
        made = _classes[codec_id] = type(f"Numcodecs{codec_id.title()}Codec", (NumcodecsArrayCodec,), names)
    return made


_classes: dict[str, type[NumcodecsArrayCodec]] = {}
