"""cast_value: stores numbers in another data type.

Specification: https://github.com/zarr-developers/zarr-extensions, codecs/cast_value

Names: ``cast_value``.

Example::

    {"name": "cast_value", "configuration": {"data_type": "uint8", "rounding": "nearest-even", "out_of_range": "clamp",
     "scalar_map": {"encode": [["NaN", 255]], "decode": [[255, "NaN"]]}}}
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np

from zarrfs.engine.codecs.array_to_array.casting import (
    OUT_OF_RANGE,
    ROUNDING,
    cast_array,
    is_integer,
    is_number,
)
from zarrfs.engine.codecs.base import ArrayArrayCodec, ChunkSpec, Region
from zarrfs.engine.codecs.configuration import check_keys, choice
from zarrfs.engine.dtypes import DataType, data_type_from_numpy, data_type_from_v3, fill_from_v3
from zarrfs.errors import MetadataError

__all__ = ["CastValueCodec"]

DIRECTIONS = ("encode", "decode")


class CastValueCodec(ArrayArrayCodec):
    """array -> array: casts integers and floats, also those of fewer than 16 bits, to another data type.

    Encoding and decoding follow the same rules. With ``out_of_range`` None (``"error"`` in metadata) a value outside of
    the range of the target raises CodecError. ``"wrap"`` applies to casts to integers: ``data_type`` must be an integer
    type, and a value that decoding casts to a float type whose range it exceeds raises CodecError.
    """

    name: ClassVar[str] = "cast_value"

    def __init__(
        self, data_type: DataType, rounding: str, out_of_range: str | None, configuration: Mapping[str, Any]
    ) -> None:
        self.data_type = data_type
        self.rounding = rounding
        self.out_of_range = out_of_range
        self._configuration = dict(configuration)
        self._scalar_maps: dict[np.dtype[Any], dict[str, list[tuple[Any, Any]]]] = {}

    @classmethod
    def from_configuration(cls, configuration: Mapping[str, Any]) -> Self:
        check_keys(cls.name, configuration, ("data_type", "rounding", "out_of_range", "scalar_map"))
        if "data_type" not in configuration:
            raise MetadataError("codec 'cast_value': configuration key 'data_type' is missing")
        data_type = data_type_from_v3(configuration["data_type"], "codec 'cast_value': data_type")
        rounding = choice(cls.name, configuration, "rounding", ROUNDING, ROUNDING[0])
        out_of_range = None
        if configuration.get("out_of_range") not in (None, "error"):
            out_of_range = choice(cls.name, configuration, "out_of_range", OUT_OF_RANGE)
        if out_of_range == "wrap" and not is_integer(data_type.numpy):
            raise MetadataError(
                f"codec 'cast_value': out_of_range 'wrap' needs an integer data_type, found {data_type.name}"
            )
        scalar_map = configuration.get("scalar_map") or {}
        if not isinstance(scalar_map, Mapping) or not set(scalar_map) <= set(DIRECTIONS):
            raise MetadataError(
                "codec 'cast_value': scalar_map must be an object with the keys 'encode' and 'decode'"
            )
        for direction, entries in scalar_map.items():
            pairs = isinstance(entries, list | tuple) and all(
                isinstance(entry, list | tuple) and len(entry) == 2 for entry in entries
            )
            if not pairs:
                raise MetadataError(
                    f"codec 'cast_value': scalar_map/{direction} must be a list of pairs [from, to]"
                )
        return cls(data_type, rounding, out_of_range, configuration)

    def configuration(self) -> dict[str, Any]:
        return dict(self._configuration)

    def check(self, spec: ChunkSpec) -> None:
        for dtype in (spec.dtype, self.data_type.numpy):
            if not is_number(dtype):
                raise MetadataError(f"codec 'cast_value' supports integers and floats, not {dtype}")
        self._scalar_map(spec.dtype)

    def _scalar_map(self, dtype: np.dtype[Any]) -> dict[str, list[tuple[Any, Any]]]:
        scalar_map = self._scalar_maps.get(dtype)
        if scalar_map is None:
            decoded = data_type_from_numpy(dtype.newbyteorder("="))
            types = {"encode": (decoded, self.data_type), "decode": (self.data_type, decoded)}
            entries = self._configuration.get("scalar_map") or {}
            scalar_map = {
                direction: [
                    (
                        fill_from_v3(types[direction][0], old, f"codec 'cast_value': scalar_map/{direction}"),
                        fill_from_v3(types[direction][1], new, f"codec 'cast_value': scalar_map/{direction}"),
                    )
                    for old, new in entries.get(direction, ())
                ]
                for direction in DIRECTIONS
            }
            self._scalar_maps[dtype] = scalar_map
        return scalar_map

    def encoded_spec(self, spec: ChunkSpec) -> ChunkSpec:
        return ChunkSpec(spec.shape, self.data_type.numpy, self.encoded_fill_value(spec))

    def encode(self, array: np.ndarray[Any, Any], spec: ChunkSpec) -> np.ndarray[Any, Any]:
        return cast_array(
            array,
            self.data_type.numpy,
            self.rounding,
            self.out_of_range,
            self._scalar_map(spec.dtype)["encode"],
        )

    def decode(self, array: np.ndarray[Any, Any], spec: ChunkSpec) -> np.ndarray[Any, Any]:
        return cast_array(
            array, spec.dtype, self.rounding, self.out_of_range, self._scalar_map(spec.dtype)["decode"]
        )

    def encoded_region(self, region: Region, spec: ChunkSpec) -> Region:
        return region
