"""n5_default: a chunk as a block of N5, which is a header with the shape of the block and the encoded elements.

Specification: https://github.com/zarr-developers/zarr-extensions/tree/main/codecs/n5_default, and
https://github.com/saalfeldlab/n5#file-system-specification

Names: ``n5_default``.

Example::

    {
      "name": "n5_default",
      "configuration": {
        "codecs": [
          {"name": "transpose", "configuration": {"order": [2, 1, 0]}},
          {"name": "bytes", "configuration": {"endian": "big"}},
          {"name": "gzip", "configuration": {"level": 5}}
        ]
      }
    }

A block at the edge of the array may be smaller than the chunk. The other elements of the chunk are the fill value.
Blocks are written in the full shape of the chunk, as by most implementations except the one in Java. The mode
``varlength`` is supported if the number of elements agrees with the shape of the block. The mode ``object`` contains
Java objects and is refused.
"""

from __future__ import annotations

import struct
import threading
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np

from zarrfs.engine.codecs.array_to_array.transpose import TransposeCodec
from zarrfs.engine.codecs.array_to_bytes.bytes import BytesCodec
from zarrfs.engine.codecs.base import ArrayBytesCodec, Buffer, BytesBytesCodec, ChunkSpec, Codec, CodecError
from zarrfs.engine.codecs.configuration import check_keys
from zarrfs.engine.codecs.pipeline.pipeline import CodecPipeline
from zarrfs.engine.codecs.registry import codec_to_json, codecs_from_json
from zarrfs.errors import MetadataError
from zarrfs.text import short_repr

__all__ = ["N5BlockCodec"]

DEFAULT, VARLENGTH, OBJECT = range(3)
_START = struct.Struct(">HH")

MAX_PIPELINES = 64
"""The number of cached pipelines. The blocks of an array of n dimensions have at most 2^n shapes in valid data."""


class N5BlockCodec(ArrayBytesCodec):
    """array -> bytes: header and encoded elements of an N5 block.

    In N5 the first dimension varies fastest. ``codecs`` therefore begin with a transposition that reverses the
    dimensions.
    """

    name: ClassVar[str] = "n5_default"

    def __init__(self, codecs: Sequence[Codec]) -> None:
        self.codecs = tuple(codecs)
        self._pipelines: dict[tuple[Any, ...], CodecPipeline] = {}
        self._lock = threading.Lock()

    @classmethod
    def from_configuration(cls, configuration: Mapping[str, Any]) -> Self:
        check_keys(cls.name, configuration, ("codecs",))
        if "codecs" not in configuration:
            raise MetadataError(f"codec {cls.name!r}: configuration key 'codecs' is missing")
        return cls(codecs_from_json(configuration["codecs"], f"codec {cls.name!r}: codecs"))

    def configuration(self) -> dict[str, Any]:
        return {"codecs": [codec_to_json(codec) for codec in self.codecs]}

    def check(self, spec: ChunkSpec) -> None:
        ndim = len(spec.shape)
        rest = list(self.codecs)
        reverse = tuple(range(ndim))[::-1]
        if rest and isinstance(rest[0], TransposeCodec) and rest[0].order == reverse:
            rest.pop(0)
        elif ndim > 1:
            raise MetadataError(
                f"codec {self.name!r}: the first codec must be 'transpose' with order {list(reverse)}, "
                f"found {short_repr(self.codecs[0])}"
            )
        if not rest or not isinstance(rest[0], BytesCodec):
            raise MetadataError(f"codec {self.name!r}: 'transpose' must be followed by 'bytes'")
        if spec.dtype.itemsize > 1 and rest[0].endian != "big":
            raise MetadataError(
                f"codec {self.name!r}: 'bytes' must have endian 'big', found {rest[0].endian!r}"
            )
        if len(rest) > 2 or not all(isinstance(codec, BytesBytesCodec) for codec in rest[1:]):
            raise MetadataError(f"codec {self.name!r}: expected at most one compressor after 'bytes'")
        if (
            spec.dtype.kind not in "iuf"
            or spec.dtype.itemsize not in (1, 2, 4, 8)
            or spec.dtype == np.float16
        ):
            raise MetadataError(
                f"codec {self.name!r}: N5 supports integers, float32 and float64, not {spec.dtype}"
            )
        if not 0 < ndim < 2**16 or any(not 0 < length < 2**32 for length in spec.shape):
            raise MetadataError(
                f"codec {self.name!r}: N5 does not support blocks of shape {list(spec.shape)}"
            )
        self._pipeline(spec, spec.shape)

    def check_encoding(self) -> None:
        for codec in self.codecs:
            codec.check_encoding()

    def _pipeline(self, spec: ChunkSpec, shape: tuple[int, ...]) -> CodecPipeline:
        key = (shape, spec.dtype)
        pipeline = self._pipelines.get(key)
        if pipeline is None:
            pipeline = CodecPipeline(self.codecs, ChunkSpec(shape, spec.dtype, spec.fill_value))
            with self._lock:
                if len(self._pipelines) >= MAX_PIPELINES:
                    self._pipelines.clear()
                self._pipelines[key] = pipeline
        return pipeline

    def encoded_size(self, spec: ChunkSpec) -> int | None:
        size = self._pipeline(spec, spec.shape).chain.encoded_size
        return None if size is None else size + _START.size + 4 * len(spec.shape)

    def encode(self, array: np.ndarray[Any, Any], spec: ChunkSpec) -> Buffer:
        header = _START.pack(DEFAULT, len(spec.shape)) + struct.pack(f">{len(spec.shape)}I", *spec.shape)
        return header + bytes(self._pipeline(spec, spec.shape).encoder.encode(array))

    def decode(self, data: Buffer, spec: ChunkSpec) -> np.ndarray[Any, Any]:
        view = memoryview(data).cast("B")
        shape, start = _header(view, spec.shape)
        block = self._pipeline(spec, shape).decoder.decode(view[start:])
        if shape == spec.shape:
            return block
        # np.zeros does not touch the memory: the metadata may declare far larger blocks than are stored.
        whole = np.zeros(spec.shape, spec.dtype)
        if whole.dtype.type(spec.fill_value).tobytes().strip(b"\0"):
            whole[...] = spec.fill_value
        whole[tuple(slice(0, length) for length in shape)] = block
        return whole


def _header(data: memoryview, chunk_shape: tuple[int, ...]) -> tuple[tuple[int, ...], int]:
    """Return the shape of the block and the offset of its elements. Raises CodecError for an invalid header."""
    ndim = len(chunk_shape)
    size = _START.size + 4 * ndim
    if len(data) < size:
        raise CodecError(f"the block is truncated: it has {len(data)} bytes, expected a header of {size}")
    mode, block_ndim = _START.unpack_from(data)
    if mode not in (DEFAULT, VARLENGTH):
        raise CodecError(
            f"the block has mode {mode}; expected {DEFAULT} (default) or {VARLENGTH} (varlength)"
        )
    if block_ndim != ndim:
        raise CodecError(f"the block has {block_ndim} dimensions, the array has {ndim}")
    shape = struct.unpack_from(f">{ndim}I", data, _START.size)
    if any(not 0 < length <= full for length, full in zip(shape, chunk_shape, strict=True)):
        raise CodecError(
            f"the block has shape {list(shape)}, expected at most the chunk shape {list(chunk_shape)}"
        )
    if mode == VARLENGTH:
        if len(data) < size + 4:
            raise CodecError(
                f"the block is truncated: it has {len(data)} bytes, expected a header of {size + 4}"
            )
        (count,) = struct.unpack_from(">I", data, size)
        expected = 1
        for length in shape:
            expected *= length
        if count != expected:
            raise CodecError(
                f"the block of mode varlength has {count} elements, expected {expected} for its shape; other blocks "
                "cannot be read as arrays"
            )
        size += 4
    return shape, size
