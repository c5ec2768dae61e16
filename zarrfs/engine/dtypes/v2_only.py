"""Data types that only Zarr v2 supports: Python objects, and extended floats (C's long double)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from zarrfs.engine.dtypes.base import DataType, DataTypeFamily
from zarrfs.errors import UnsupportedError

__all__ = ["EXTENDED", "OBJECT"]


class V2OnlyFamily(DataTypeFamily):
    """A data type without a v3 name. Parsing and writing v3 metadata raises UnsupportedError."""

    advice = "use zarr_format=2"

    def from_configuration(self, name: str, configuration: Mapping[str, Any], where: str) -> DataType:
        raise UnsupportedError(f'{where}: "{name}" is not a Zarr v3 data type')

    def fill_from_json(self, data_type: DataType, value: Any, where: str) -> Any:
        return value

    def fill_to_json(self, data_type: DataType, value: Any) -> Any:
        return value

    def to_json(self, data_type: DataType) -> Any:
        raise UnsupportedError(f"Zarr v3 has no data type for {data_type.name}; {self.advice}")


class ObjectFamily(V2OnlyFamily):
    """``object``: Python objects that a v2 object codec decodes (JSON, MessagePack, ragged arrays)."""

    advice = "use strings or bytes of variable length, or zarr_format=2 with an object codec"

    def default_fill(self, data_type: DataType) -> Any:
        return None


class ExtendedFloatFamily(V2OnlyFamily):
    """``float96``, ``float128``, ``complex192`` and ``complex256``: long double, whose format depends on the
    machine.
    """

    advice = "use float64, or zarr_format=2"

    def fill_from_json(self, data_type: DataType, value: Any, where: str) -> Any:
        return np.array(value, data_type.numpy)[()]


OBJECT = ObjectFamily()
EXTENDED = ExtendedFloatFamily()
