"""Adapters for the array->bytes codecs of numcodecs for numbers: pcodec and zfpy.

Specification: https://numcodecs.readthedocs.io/en/stable/compression/pcodec.html and ``zfpy.html``

Names: ``numcodecs.pcodec``, ``numcodecs.zfpy``; in Zarr v2 the bare names, as compressor or filter.

Example::

    {"name": "numcodecs.pcodec", "configuration": {"level": 8, "mode_spec": "auto"}}

They need the packages of these names, which the extras ``pcodec`` and ``zfp`` install. The streams declare the
number of elements. It is checked before memory is allocated.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from zarrfs.engine.codecs.array_to_bytes import zfp_stream
from zarrfs.engine.codecs.base import ArrayBytesCodec, Buffer, ChunkSpec, CodecError
from zarrfs.engine.codecs.numcodecs.instances import NumcodecsOptions, make_numcodec
from zarrfs.engine.json_checks import describe_json
from zarrfs.errors import MetadataError, UnsupportedError
from zarrfs.libraries import import_library

__all__ = ["NumcodecsPcodecCodec", "NumcodecsZfpyCodec"]


class _NumbersCodec(NumcodecsOptions, ArrayBytesCodec):
    id: ClassVar[str]
    types: ClassVar[tuple[str, ...]]

    def __init__(self, options: Mapping[str, Any]) -> None:
        super().__init__(options)
        self._codec = make_numcodec(self.id, self._options)

    def check(self, spec: ChunkSpec) -> None:
        if spec.dtype.str[1:] not in self.types:
            raise MetadataError(
                f"codec {self.name!r} supports elements of {', '.join(self.types)}, not {spec.dtype}"
            )

    def check_encoding(self) -> None:
        # numcodecs checks the parameters when it encodes. Decoding reads all parameters from the stream.
        try:
            self._codec.encode(np.zeros(4, self.types[-1]))
        except Exception as error:
            raise MetadataError(
                f"codec {self.name!r}: invalid configuration {describe_json(self._options)}: {error}"
            ) from error

    def _native(self, array: np.ndarray[Any, Any], spec: ChunkSpec) -> np.ndarray[Any, Any]:
        return np.ascontiguousarray(array, spec.dtype.newbyteorder("="))


class NumcodecsPcodecCodec(_NumbersCodec):
    """array -> bytes: pcodec's standalone format, the elements in C order."""

    name: ClassVar[str] = "numcodecs.pcodec"
    id: ClassVar[str] = "pcodec"
    types: ClassVar[tuple[str, ...]] = ("i2", "i4", "i8", "u2", "u4", "u8", "f2", "f4", "f8")

    def encode(self, array: np.ndarray[Any, Any], spec: ChunkSpec) -> Buffer:
        return bytes(self._codec.encode(self._native(array, spec)))

    def decode(self, data: Buffer, spec: ChunkSpec) -> np.ndarray[Any, Any]:
        standalone = import_library("pcodec.standalone")
        out = np.empty(spec.size, spec.dtype.newbyteorder("="))
        progress = standalone.simple_decompress_into(bytes(data), out)
        if not progress.finished or progress.n_processed != spec.size:
            count = f"{progress.n_processed}" if progress.finished else f"more than {progress.n_processed}"
            raise CodecError(f"the data decode to {count} elements, expected {spec.size}")
        return out.reshape(spec.shape)


class NumcodecsZfpyCodec(_NumbersCodec):
    """array -> bytes: a zfp stream with a header."""

    name: ClassVar[str] = "numcodecs.zfpy"
    id: ClassVar[str] = "zfpy"
    types: ClassVar[tuple[str, ...]] = ("i4", "i8", "f4", "f8")

    def __init__(self, options: Mapping[str, Any]) -> None:
        zfp_stream.zfpy()
        super().__init__(options)

    def check(self, spec: ChunkSpec) -> None:
        super().check(spec)
        if len(spec.shape) > 4:
            raise UnsupportedError(
                f"codec {self.name!r} supports at most four dimensions, the chunk has {len(spec.shape)}"
            )

    def encode(self, array: np.ndarray[Any, Any], spec: ChunkSpec) -> Buffer:
        native = self._native(array, spec).reshape(spec.shape or (1,))
        if native.dtype.kind == "i" and "tolerance" in self._codec.compression_kwargs:
            raise CodecError("zfp's mode fixed_accuracy is for floats; choose another mode for integers")
        zfp_stream.check_range(native)
        return zfp_stream.compress(native, self._codec.compression_kwargs, header=True)

    def decode(self, data: Buffer, spec: ChunkSpec) -> np.ndarray[Any, Any]:
        array = zfp_stream.decompress_headed(data, spec.dtype.newbyteorder("="), spec.size)
        return array.reshape(spec.shape)
