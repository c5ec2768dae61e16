"""zfp: compression of floats and integers in one to four dimensions.

Specification: https://github.com/zarr-developers/zarr-extensions/tree/main/codecs/zfp

Names: ``zfp``.

Example::

    {"name": "zfp", "configuration": {"mode": "fixed_accuracy", "tolerance": 0.05}}

The stream has no header: mode, shape and data type come from the metadata. Needs the package ``zfpy``, the extra
``zfp``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np

from zarrfs.engine.codecs.array_to_bytes import zfp_stream
from zarrfs.engine.codecs.base import ArrayBytesCodec, Buffer, ChunkSpec, CodecError
from zarrfs.engine.codecs.configuration import check_keys, choice, integer, number
from zarrfs.errors import MetadataError

__all__ = ["ZfpCodec"]

MODES = {
    "reversible": (),
    "expert": ("minbits", "maxbits", "maxprec", "minexp"),
    "fixed_accuracy": ("tolerance",),
    "fixed_rate": ("rate",),
    "fixed_precision": ("precision",),
}
EXPERT_BOUNDS = {
    "minbits": (0, 1 << 15),
    "maxbits": (0, 1 << 15),
    "maxprec": (1, 64),
    "minexp": (-1074, 16383),
}


class ZfpCodec(ArrayBytesCodec):
    """array -> bytes: a zfp stream without a header.

    Integers of 8 and 16 bits are promoted to 32 bits as zfp's own functions do, half floats to float32. Unsigned
    integers of 32 and 64 bits are stored as signed ones and must be in their range.

    Expert mode can be read but not written, because zfpy does not write it.
    """

    name: ClassVar[str] = "zfp"

    def __init__(self, mode: str, parameters: Mapping[str, Any]) -> None:
        self.mode = mode
        self.parameters = dict(parameters)
        zfp_stream.zfpy()

    @classmethod
    def from_configuration(cls, configuration: Mapping[str, Any]) -> Self:
        mode = choice(cls.name, configuration, "mode", tuple(MODES))
        check_keys(cls.name, configuration, ("mode", *MODES[mode]))
        parameters: dict[str, Any] = {}
        for key in MODES[mode]:
            if key in EXPERT_BOUNDS:
                parameters[key] = integer(cls.name, configuration, key, *EXPERT_BOUNDS[key])
            elif key == "precision":
                parameters[key] = integer(cls.name, configuration, key, 0, 64)
            else:
                parameters[key] = number(cls.name, configuration, key, 0)
        return cls(mode, parameters)

    def configuration(self) -> dict[str, Any]:
        return {"mode": self.mode, **self.parameters}

    def check(self, spec: ChunkSpec) -> None:
        if _stored(spec.dtype) is None:
            raise MetadataError(f"codec 'zfp' supports integers and floats, not {spec.dtype}")
        if len(spec.shape) > 4:
            raise MetadataError(
                f"codec 'zfp' supports at most four dimensions, the chunk has {len(spec.shape)}; merge dimensions "
                "with a codec 'reshape' before it"
            )

    def encode(self, array: np.ndarray[Any, Any], spec: ChunkSpec) -> Buffer:
        if self.mode == "expert":
            raise CodecError("zfp's expert mode can be read, not written; choose another mode")
        promoted = _promoted(array, spec.dtype).reshape(spec.shape or (1,))
        if self.mode == "fixed_accuracy" and promoted.dtype.kind == "i":
            raise CodecError("zfp's mode fixed_accuracy is for floats; choose another mode for integers")
        if self.mode != "reversible":
            zfp_stream.check_range(promoted)
        return zfp_stream.compress(promoted, self.parameters)

    def decode(self, data: Buffer, spec: ChunkSpec) -> np.ndarray[Any, Any]:
        stored = _stored(spec.dtype)
        if stored is None:
            raise CodecError(f"{spec.dtype} cannot be stored by zfp")
        shape = spec.shape or (1,)
        if self.mode == "expert":
            promoted = zfp_stream.decompress_expert(data, stored, shape, self.parameters)
        else:
            promoted = zfp_stream.decompress(data, stored, shape, self.parameters)
        return _demoted(promoted, spec.dtype).reshape(spec.shape)


def _stored(dtype: np.dtype[Any]) -> np.dtype[Any] | None:
    """Return the zfp data type (int32, int64, float32, float64) in which the elements are stored, or None."""
    if dtype.names is not None:
        return None
    if dtype.kind in "iu":
        return np.dtype("i8" if dtype.itemsize == 8 else "i4")
    if dtype.kind in "mM":
        return np.dtype("i8")
    if dtype.name in ("float16", "bfloat16", "float32"):
        return np.dtype("f4")
    return np.dtype("f8") if dtype.name == "float64" else None


def _promoted(array: np.ndarray[Any, Any], dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    stored = _stored(dtype)
    native = np.ascontiguousarray(array, dtype.newbyteorder("="))
    if dtype.kind in "mM":
        return native.view("i8")
    if dtype.kind not in "iu":
        return native.astype(stored, copy=False)
    bits = 8 * dtype.itemsize
    if bits >= 32:
        if dtype.kind == "u" and native.size and int(native.max()) >> (bits - 1):
            raise CodecError(
                f"{native.max()} is too large: zfp supports unsigned integers below {1 << (bits - 1)}"
            )
        return native.astype(stored, copy=False)
    offset = (1 << (bits - 1)) if dtype.kind == "u" else 0
    return (native.astype("i4") - np.int32(offset)) << np.int32(31 - bits)


def _demoted(array: np.ndarray[Any, Any], dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    native = dtype.newbyteorder("=")
    if dtype.kind in "mM":
        return array.view(native)
    if dtype.kind not in "iu":
        return array.astype(native, copy=False)
    bits = 8 * dtype.itemsize
    if bits >= 32:
        return (np.maximum(array, 0) if dtype.kind == "u" else array).astype(native, copy=False)
    offset = (1 << (bits - 1)) if dtype.kind == "u" else 0
    info = np.iinfo(native)
    integers = (array >> np.int32(31 - bits)) + np.int32(offset)
    return np.asarray(np.clip(integers, info.min, info.max), native)
