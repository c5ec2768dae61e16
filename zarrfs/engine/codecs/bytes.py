"""bytes: the elements one after the other, in C order.

Specification: https://zarr-specs.readthedocs.io/en/latest/v3/codecs/bytes/ (version 1.0)

Names: ``bytes``; ``endian`` in drafts of the specification.

Example::

    {"name": "bytes", "configuration": {"endian": "little"}}

A region is read by as few byte ranges as it has contiguous runs; runs with small gaps between them are read as one.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from typing import Any, ClassVar, Literal, Self

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
from zarrfs.errors import MetadataError

__all__ = ["BytesCodec"]

GAP = 16 << 10
"""Runs that are less apart than this are read as one: asking once more costs as much as copying so many bytes."""

ORDERS: dict[str, Literal["<", ">"]] = {"little": "<", "big": ">"}


class BytesCodec(ArrayBytesCodec):
    """array -> bytes: C order, in the byte order ``endian``.

    ``endian`` None leaves the byte order to the dtype: for single bytes, and for structured dtypes of v2, whose fields
    each have their own.
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
                "codec 'bytes': elements of varying length have no fixed bytes; expected 'vlen-utf8' or 'vlen-bytes'"
            )

    def stored_dtype(self, dtype: np.dtype[Any]) -> np.dtype[Any]:
        """Return the dtype of the stored bytes."""
        return dtype if self.endian is None else dtype.newbyteorder(ORDERS[self.endian])

    def encoded_size(self, spec: ChunkSpec) -> int | None:
        return spec.nbytes

    def encode(self, array: np.ndarray[Any, Any], spec: ChunkSpec) -> Buffer:
        return np.ascontiguousarray(array, self.stored_dtype(spec.dtype)).tobytes()

    def decode(self, data: Buffer, spec: ChunkSpec) -> np.ndarray[Any, Any]:
        check_size(memoryview(data).nbytes, spec.nbytes)
        return self._array(data, spec, spec.shape, None)

    def _array(
        self, data: Buffer, spec: ChunkSpec, shape: tuple[int, ...], strides: tuple[int, ...] | None
    ) -> np.ndarray[Any, Any]:
        if spec.dtype.kind == "b":
            # Any byte but 0 is true; NumPy must not see it as it is, as it counts on 0 and 1.
            raw: np.ndarray[Any, Any] = np.ndarray(shape, np.uint8, data, 0, strides)
            return np.asarray(raw != 0)  # without dimensions, a comparison gives a scalar
        if spec.dtype.itemsize == 0:
            return np.zeros(shape, spec.dtype)
        return np.ndarray(shape, self.stored_dtype(spec.dtype), data, 0, strides)

    def decode_region(
        self, source: ByteSource, region: Region, spec: ChunkSpec
    ) -> np.ndarray[Any, Any] | None:
        lengths = tuple(part.stop - part.start for part in region)
        strides = [spec.dtype.itemsize] * len(lengths)
        for axis in range(len(lengths) - 2, -1, -1):
            strides[axis] = strides[axis + 1] * spec.shape[axis + 1]
        # From the last dimension outwards, join what lies close together into one span of bytes.
        span = spec.dtype.itemsize
        joined = len(lengths)
        while joined and (lengths[joined - 1] == 1 or strides[joined - 1] - span <= GAP):
            joined -= 1
            span += (lengths[joined] - 1) * strides[joined]
        base = sum(part.start * stride for part, stride in zip(region, strides, strict=True))
        starts = [
            base + sum(i * stride for i, stride in zip(index, strides, strict=False))
            for index in product(*(range(n) for n in lengths[:joined]))
        ]
        pieces = source.read_ranges([ByteRange(start, span) for start in starts])
        if pieces is None:
            return None
        for start, piece in zip(starts, pieces, strict=True):
            if len(piece) != span:
                raise CodecError(
                    f"the chunk ends {span - len(piece)} bytes too early at byte {start + len(piece)}; expected are "
                    f"{spec.nbytes} bytes"
                )
        inner = tuple(strides[joined:])
        if not joined:
            return self._array(pieces[0], spec, lengths, inner)
        out = np.empty((len(pieces), *lengths[joined:]), spec.dtype)
        for i, piece in enumerate(pieces):
            out[i] = self._array(piece, spec, lengths[joined:], inner)
        return out.reshape(lengths)
