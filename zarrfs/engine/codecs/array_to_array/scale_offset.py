"""scale_offset: a linear transformation in the data type of the array.

Specification: https://github.com/zarr-developers/zarr-extensions, codecs/scale_offset

Names: ``scale_offset``.

Example::

    {"name": "scale_offset", "configuration": {"offset": 1000, "scale": 10}}

Encoding computes ``(x - offset) * scale``, decoding ``x / scale + offset``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Self

import numpy as np

from zarrfs.engine.codecs.base import ArrayArrayCodec, ChunkSpec, CodecError, Region
from zarrfs.engine.codecs.configuration import check_keys
from zarrfs.engine.dtypes import data_type_from_numpy, fill_from_v3
from zarrfs.errors import MetadataError

__all__ = ["ScaleOffsetCodec"]


class ScaleOffsetCodec(ArrayArrayCodec):
    """array -> array: subtracts ``offset`` and multiplies by ``scale``.

    Raises CodecError if the result for an integer data type is out of range or not an integer.
    """

    name: ClassVar[str] = "scale_offset"

    def __init__(self, configuration: Mapping[str, Any]) -> None:
        self._configuration = dict(configuration)
        self._numbers: dict[np.dtype[Any], tuple[Any, Any]] = {}

    @classmethod
    def from_configuration(cls, configuration: Mapping[str, Any]) -> Self:
        check_keys(cls.name, configuration, ("offset", "scale"))
        return cls(configuration)

    def configuration(self) -> dict[str, Any]:
        return dict(self._configuration)

    def check(self, spec: ChunkSpec) -> None:
        if spec.dtype.hasobject or spec.dtype.kind not in "iufc" or spec.dtype.names is not None:
            raise MetadataError(f"codec 'scale_offset' supports numbers, not {spec.dtype}")
        if self._offset_and_scale(spec.dtype)[1] == 0:
            raise MetadataError(
                "codec 'scale_offset': a scale of 0 cannot be decoded; expected another number"
            )

    def _offset_and_scale(self, dtype: np.dtype[Any]) -> tuple[Any, Any]:
        """Return offset and scale as numbers of the data type."""
        numbers = self._numbers.get(dtype)
        if numbers is None:
            data_type = data_type_from_numpy(dtype.newbyteorder("="))
            values = [
                fill_from_v3(data_type, self._configuration[key], f"codec 'scale_offset': {key}")
                if key in self._configuration
                else data_type.numpy.type(default)
                for key, default in (("offset", 0), ("scale", 1))
            ]
            numbers = self._numbers[dtype] = (values[0], values[1])
        return numbers

    def encoded_spec(self, spec: ChunkSpec) -> ChunkSpec:
        return ChunkSpec(spec.shape, spec.dtype, self.encoded_fill_value(spec))

    def encode(self, array: np.ndarray[Any, Any], spec: ChunkSpec) -> np.ndarray[Any, Any]:
        offset, scale = self._offset_and_scale(spec.dtype)
        if spec.dtype.kind in "iu":
            _check_range(array, spec.dtype, lambda value: (value - int(offset)) * int(scale))
        # If the final result is in range, it is correct even if an intermediate result wrapped around.
        with np.errstate(over="ignore", invalid="ignore"):
            return np.asarray((array - offset) * scale, spec.dtype)

    def decode(self, array: np.ndarray[Any, Any], spec: ChunkSpec) -> np.ndarray[Any, Any]:
        offset, scale = self._offset_and_scale(spec.dtype)
        if spec.dtype.kind not in "iu":
            with np.errstate(over="ignore", invalid="ignore"):
                return np.asarray(array / scale + offset, spec.dtype)
        quotient, remainder = np.divmod(array, scale)
        if remainder.any():
            raise CodecError(
                f"the stored value {array[remainder != 0].flat[0]} is not a multiple of the scale {scale}"
            )
        _check_range(quotient, spec.dtype, lambda value: value + int(offset))
        return np.asarray(quotient + offset, spec.dtype)

    def encoded_region(self, region: Region, spec: ChunkSpec) -> Region:
        return region


def _check_range(array: np.ndarray[Any, Any], dtype: np.dtype[Any], transform: Callable[[int], int]) -> None:
    """Raise CodecError if ``transform``, which is monotonic, maps an element out of the range of the data type."""
    if array.size:
        info = np.iinfo(dtype)
        for value in (int(array.min()), int(array.max())):
            if not info.min <= transform(value) <= info.max:
                raise CodecError(f"{value} becomes {transform(value)}, which is out of the range of {dtype}")
