"""scale_offset: numbers moved and stretched, in their own data type.

Specification: https://github.com/zarr-developers/zarr-extensions, codecs/scale_offset

Names: ``scale_offset``.

Example::

    {"name": "scale_offset", "configuration": {"offset": 1000, "scale": 10}}

Encoding gives ``(x - offset) * scale``, decoding ``x / scale + offset``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np

from zarrfs.engine.codecs.base import ArrayArrayCodec, ChunkSpec, CodecError, Region
from zarrfs.engine.codecs.configuration import check_keys
from zarrfs.engine.dtypes import data_type_from_numpy, fill_from_v3
from zarrfs.errors import MetadataError

__all__ = ["ScaleOffsetCodec"]


class ScaleOffsetCodec(ArrayArrayCodec):
    """array -> array. Integers must come out whole and in range, or it is an error."""

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
            raise MetadataError(f"codec 'scale_offset' scales numbers, not {spec.dtype}")
        if self._of(spec.dtype)[1] == 0:
            raise MetadataError("codec 'scale_offset': a scale of 0 could not be undone")

    def _of(self, dtype: np.dtype[Any]) -> tuple[Any, Any]:
        """Return offset and scale as numbers of the data type."""
        found = self._numbers.get(dtype)
        if found is None:
            data_type = data_type_from_numpy(dtype.newbyteorder("="))
            values = [
                fill_from_v3(data_type, self._configuration[key], f"codec 'scale_offset': {key}")
                if key in self._configuration
                else data_type.numpy.type(usual)
                for key, usual in (("offset", 0), ("scale", 1))
            ]
            found = self._numbers[dtype] = (values[0], values[1])
        return found

    def encoded_spec(self, spec: ChunkSpec) -> ChunkSpec:
        fill = spec.fill_value
        if fill is not None:
            try:
                fill = self.encode(np.array([fill], spec.dtype), spec)[0]
            except CodecError as error:
                raise MetadataError(f"codec 'scale_offset': the fill value has no place: {error}") from error
        return ChunkSpec(spec.shape, spec.dtype, fill)

    def encode(self, array: np.ndarray[Any, Any], spec: ChunkSpec) -> np.ndarray[Any, Any]:
        offset, scale = self._of(spec.dtype)
        if spec.dtype.kind in "iu":
            _check_ends(array, spec.dtype, lambda value: (value - int(offset)) * int(scale))
        # What fits in the end is right even where a step on the way wrapped around.
        with np.errstate(over="ignore", invalid="ignore"):
            return np.asarray((array - offset) * scale, spec.dtype)

    def decode(self, array: np.ndarray[Any, Any], spec: ChunkSpec) -> np.ndarray[Any, Any]:
        offset, scale = self._of(spec.dtype)
        if spec.dtype.kind not in "iu":
            with np.errstate(over="ignore", invalid="ignore"):
                return np.asarray(array / scale + offset, spec.dtype)
        whole, rest = np.divmod(array, scale)
        if rest.any():
            raise CodecError(
                f"a stored value, {array[rest != 0].flat[0]}, is no multiple of the scale {scale}"
            )
        _check_ends(whole, spec.dtype, lambda value: value + int(offset))
        return np.asarray(whole + offset, spec.dtype)

    def encoded_region(self, region: Region, spec: ChunkSpec) -> Region:
        return region


def _check_ends(array: np.ndarray[Any, Any], dtype: np.dtype[Any], change: Any) -> None:
    """Raise CodecError if the least or the greatest value leaves the data type; those between do not either."""
    if array.size:
        info = np.iinfo(dtype)
        for value in (int(array.min()), int(array.max())):
            if not info.min <= change(value) <= info.max:
                raise CodecError(f"{value} becomes {change(value)}, which is out of the range of {dtype}")
