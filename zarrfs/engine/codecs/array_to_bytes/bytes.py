"""bytes: the elements in C order, without compression.

Specification: https://zarr-specs.readthedocs.io/en/latest/v3/codecs/bytes/ (version 1.0)

Names: ``bytes``; ``endian`` in drafts of the specification.

Example::

    {"name": "bytes", "configuration": {"endian": "little"}}

A region is read in one byte range per contiguous run. Runs with small gaps between them are read in one range.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from itertools import product
from typing import Any, ClassVar, Literal, NamedTuple, Self

import numpy as np

from zarrfs.engine.codecs.base import (
    ArrayBytesCodec,
    Buffer,
    ByteRange,
    ByteSource,
    ChunkSpec,
    CodecError,
    Region,
)
from zarrfs.engine.codecs.configuration import check_keys, choice
from zarrfs.engine.codecs.limits import check_size
from zarrfs.engine.read_limits import PYTHON_DECODING
from zarrfs.errors import MetadataError

__all__ = ["BytesCodec"]

SMALL_BITS = {
    "int2": 2,
    "uint2": 2,
    "int4": 4,
    "uint4": 4,
    "float4_e2m1fn": 4,
    "float6_e2m3fn": 6,
    "float6_e3m2fn": 6,
}
"""Data types of fewer than 8 bits. The unused bits of their byte are arbitrary in storage and zero in memory."""

ORDERS: dict[str, Literal["<", ">"]] = {"little": "<", "big": ">"}


class BytesCodec(ArrayBytesCodec):
    """array -> bytes: C order, in the byte order ``endian``.

    With ``endian`` None the byte order is that of the dtype. This is for data types of one byte, and for structured
    dtypes of v2, in which each field has a byte order of its own.
    """

    name: ClassVar[str] = "bytes"
    partial: ClassVar[bool] = True

    def __init__(self, endian: str | None = None) -> None:
        self.endian = endian

    @classmethod
    def from_configuration(cls, configuration: Mapping[str, Any]) -> Self:
        check_keys(cls.name, configuration, ("endian",))
        if configuration.get("endian") is None:
            return cls(None)
        return cls(choice(cls.name, configuration, "endian", tuple(ORDERS)))

    def configuration(self) -> dict[str, Any]:
        return {} if self.endian is None else {"endian": self.endian}

    def check(self, spec: ChunkSpec) -> None:
        if spec.dtype.hasobject:
            raise MetadataError(
                "codec 'bytes' does not support variable-length elements; expected codec 'vlen-utf8' or 'vlen-bytes'"
            )

    def stored_dtype(self, dtype: np.dtype[Any]) -> np.dtype[Any]:
        """Return the dtype of the stored bytes."""
        return _ordered(dtype, self.endian)

    def encoded_size(self, spec: ChunkSpec) -> int | None:
        return spec.nbytes

    def encode(self, array: np.ndarray[Any, Any], spec: ChunkSpec) -> Buffer:
        if not spec.dtype.itemsize:
            return b""  # NumPy interprets an item size of zero as unspecified.
        stored = np.ascontiguousarray(array, self.stored_dtype(spec.dtype))
        if needs_canonical(spec.dtype):
            stored = canonical(stored)
        # This is the memory of the array itself if its order and byte order are right: at most one copy is made.
        return stored.reshape(-1).view(np.uint8).data if stored.nbytes else b""

    def decode(self, data: Buffer, spec: ChunkSpec) -> np.ndarray[Any, Any]:
        check_size(memoryview(data).nbytes, spec.nbytes)
        return self._array(data, spec, spec.shape, None)

    def _array(
        self, data: Buffer, spec: ChunkSpec, shape: tuple[int, ...], strides: tuple[int, ...] | None
    ) -> np.ndarray[Any, Any]:
        if spec.dtype.itemsize == 0:
            return np.zeros(shape, spec.dtype)
        array: np.ndarray[Any, Any] = np.ndarray(shape, self.stored_dtype(spec.dtype), data, 0, strides)
        return canonical(array) if needs_canonical(spec.dtype) else array

    def decode_region(
        self, source: ByteSource, region: Region, spec: ChunkSpec
    ) -> np.ndarray[Any, Any] | None:
        bounds = tuple([(part.start, part.stop) for part in region])
        runs = _plan_runs(bounds, spec.shape, spec.dtype.itemsize)
        buffers = source.read_ranges(runs.ranges)
        if buffers is None:
            return None
        for (start, _), buffer in zip(runs.ranges, buffers, strict=True):
            if len(buffer) != runs.span:
                raise CodecError(
                    f"the chunk is truncated: it ends at byte {start + len(buffer)}, expected {spec.nbytes} bytes"
                )
        if runs.is_single:
            return self._array(buffers[0], spec, runs.shape, runs.strides)
        out = np.empty((len(buffers), *runs.shape), spec.dtype)
        for i, buffer in enumerate(buffers):
            out[i] = self._array(buffer, spec, runs.shape, runs.strides)
        return out.reshape([stop - start for start, stop in bounds])


class _Runs(NamedTuple):
    """The byte ranges of a region, each ``span`` bytes long, and the shape and strides of the array in each of them."""

    ranges: list[ByteRange]
    span: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    is_single: bool


@lru_cache(256)
def _plan_runs(bounds: tuple[tuple[int, int], ...], shape: tuple[int, ...], itemsize: int) -> _Runs:
    """Return the byte ranges of a region. Cached, because a plane intersects many chunks in the same region."""
    lengths = tuple(stop - start for start, stop in bounds)
    strides = [itemsize] * len(lengths)
    for axis in range(len(lengths) - 2, -1, -1):
        strides[axis] = strides[axis + 1] * shape[axis + 1]
    # From the last dimension outwards, join runs that are close together to one span of bytes.
    span = itemsize
    joined = len(lengths)
    while joined and (lengths[joined - 1] == 1 or strides[joined - 1] - span <= PYTHON_DECODING.gap):
        joined -= 1
        span += (lengths[joined] - 1) * strides[joined]
    base = sum(start * stride for (start, _), stride in zip(bounds, strides, strict=True))
    ranges = [
        ByteRange(base + sum(i * stride for i, stride in zip(index, strides, strict=False)), span)
        for index in product(*(range(n) for n in lengths[:joined]))
    ]
    return _Runs(ranges, span, lengths[joined:], tuple(strides[joined:]), not joined)


@lru_cache(256)
def needs_canonical(dtype: np.dtype[Any]) -> bool:
    """Return whether one element has several representations in bytes: booleans and elements of fewer than 8 bits,
    also as fields of a record.
    """
    if dtype.subdtype is not None:
        return needs_canonical(dtype.base)
    if dtype.names is not None:
        return any(needs_canonical(dtype[name]) for name in dtype.names)
    return dtype.kind == "b" or dtype.name in SMALL_BITS


def canonical(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return the array in its canonical representation.

    Booleans are 0 or 1, on which NumPy relies. The unused bits of elements of fewer than 8 bits are zero, as in
    ml_dtypes.
    """
    if array.dtype.names is not None:
        record = array.copy()
        for name in array.dtype.names:
            if needs_canonical(array.dtype[name]):
                record[name] = canonical(array[name])
        return record
    raw = array.view(np.uint8)
    if array.dtype.kind == "b":
        return np.asarray(raw != 0)  # NumPy returns a scalar for an array without dimensions.
    return np.asarray(raw & np.uint8((1 << SMALL_BITS[array.dtype.name]) - 1)).view(array.dtype)


@lru_cache(256)
def _ordered(dtype: np.dtype[Any], endian: str | None) -> np.dtype[Any]:
    return dtype if endian is None else dtype.newbyteorder(ORDERS[endian])
