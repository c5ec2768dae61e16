"""Adapters for the array->array codecs of numcodecs, which Zarr v2 uses as filters.

Specification: https://numcodecs.readthedocs.io

Names: ``numcodecs.`` and the numcodecs name (``delta``, ``fixedscaleoffset``, ``quantize``, ``astype``, ``packbits``);
in Zarr v2 the bare name.

Example::

    {"name": "numcodecs.delta", "configuration": {"dtype": "<i4"}}

The codecs receive the elements of a chunk as an array of one dimension in C order.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from zarrfs.engine.codecs.base import ArrayArrayCodec, ChunkSpec, Region
from zarrfs.engine.codecs.numcodecs.instances import NumcodecsOptions, make_numcodec
from zarrfs.errors import MetadataError

__all__ = ["AsTypeCodec", "DeltaCodec", "FixedScaleOffsetCodec", "PackBitsCodec", "QuantizeCodec"]

ELEMENTWISE = ("fixedscaleoffset", "quantize", "astype")
"""The codecs that decode each element independently, so that a region can be decoded alone."""

KINDS = "biufcmMSU"
MAX_ITEMSIZE = 1 << 16
"""The dtypes that the parameters of a codec may declare. Objects would be pointers read from data."""


class NumcodecsArrayCodec(NumcodecsOptions, ArrayArrayCodec):
    """array -> array: the codec that numcodecs registers as ``id``, with the parameters of numcodecs."""

    name: ClassVar[str] = "numcodecs"
    id: ClassVar[str] = ""

    def __init__(self, options: Mapping[str, Any]) -> None:
        super().__init__(options)
        self._codecs: dict[str, Any] = {}

    def _codec(self, spec: ChunkSpec) -> Any:
        codec = self._codecs.get(spec.dtype.str)
        if codec is None:
            options = dict(self._options)
            if self.id in ("delta", "fixedscaleoffset", "quantize"):
                options.setdefault("dtype", spec.dtype.str)
            if self.id == "astype":
                options.setdefault("decode_dtype", spec.dtype.str)
            codec = self._codecs[spec.dtype.str] = make_numcodec(self.id, options)
        return codec

    def check(self, spec: ChunkSpec) -> None:
        if spec.dtype.hasobject:
            raise MetadataError(f"codec {self.name!r} does not support variable-length elements")
        codec = self._codec(spec)
        for attribute in ("dtype", "astype", "encode_dtype", "decode_dtype"):
            self._check_dtype(getattr(codec, attribute, None))
        declared = getattr(codec, "decode_dtype" if self.id == "astype" else "dtype", None)
        if declared is not None and np.dtype(declared).itemsize != spec.dtype.itemsize:
            raise MetadataError(
                f"codec {self.name!r} is configured for elements of {np.dtype(declared)}, but the array has elements "
                f"of {spec.dtype}"
            )

    def _check_dtype(self, dtype: Any) -> None:
        if dtype is not None and (
            np.dtype(dtype).kind not in KINDS or np.dtype(dtype).itemsize > MAX_ITEMSIZE
        ):
            raise MetadataError(
                f"codec {self.name!r} does not support elements of {np.dtype(dtype)}; expected numbers or short text"
            )

    def encoded_spec(self, spec: ChunkSpec) -> ChunkSpec:
        if self.id == "packbits":
            return ChunkSpec((1 + -(-spec.size // 8),), np.dtype("u1"), np.uint8(0))
        codec = self._codec(spec)
        dtype = np.dtype(codec.encode_dtype if self.id == "astype" else codec.astype)
        # The fill value of the encoded side is never used.
        return ChunkSpec(spec.shape, dtype, np.zeros((), dtype)[()])

    def encode(self, array: np.ndarray[Any, Any], spec: ChunkSpec) -> np.ndarray[Any, Any]:
        encoded_spec = self.encoded_spec(spec)
        flat = np.ascontiguousarray(array, spec.dtype).reshape(-1)
        with np.errstate(all="ignore"):  # NumPy warns of NaN and infinity in data.
            encoded = np.asarray(self._codec(spec).encode(flat))
        return encoded.view(encoded_spec.dtype).reshape(encoded_spec.shape)

    def decode(self, array: np.ndarray[Any, Any], spec: ChunkSpec) -> np.ndarray[Any, Any]:
        shape = spec.shape if self.id not in ELEMENTWISE else array.shape
        # numcodecs interprets the bytes, so they must have the byte order of the declared dtype.
        flat = np.ascontiguousarray(array, self.encoded_spec(spec).dtype).reshape(-1)
        with np.errstate(all="ignore"):
            decoded = np.asarray(self._codec(spec).decode(flat))
        return decoded.view(spec.dtype).reshape(shape)

    def encoded_region(self, region: Region, spec: ChunkSpec) -> Region | None:
        return region if self.id in ELEMENTWISE else None


class DeltaCodec(NumcodecsArrayCodec):
    """array -> array: the differences of consecutive elements."""

    name: ClassVar[str] = "numcodecs.delta"
    id: ClassVar[str] = "delta"


class FixedScaleOffsetCodec(NumcodecsArrayCodec):
    """array -> array: elements as scaled integers."""

    name: ClassVar[str] = "numcodecs.fixedscaleoffset"
    id: ClassVar[str] = "fixedscaleoffset"


class QuantizeCodec(NumcodecsArrayCodec):
    """array -> array: floats rounded to a number of decimal digits."""

    name: ClassVar[str] = "numcodecs.quantize"
    id: ClassVar[str] = "quantize"


class AsTypeCodec(NumcodecsArrayCodec):
    """array -> array: elements in another data type."""

    name: ClassVar[str] = "numcodecs.astype"
    id: ClassVar[str] = "astype"


class PackBitsCodec(NumcodecsArrayCodec):
    """array -> array: eight booleans in each byte."""

    name: ClassVar[str] = "numcodecs.packbits"
    id: ClassVar[str] = "packbits"
