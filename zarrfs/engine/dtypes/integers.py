"""Boolean and integer data types of the Zarr v3 core specification, and ``int2``, ``int4``, ``uint2`` and ``uint4`` of
the zarr-extensions registry.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from zarrfs.engine.dtypes.base import DataType, DataTypeFamily, check_no_configuration
from zarrfs.engine.json_checks import expect_integer, unexpected_value

__all__ = ["BOOLEAN", "INTEGERS", "INTEGER_NAMES", "SMALL_INTEGERS", "SMALL_INTEGER_NAMES", "integer_bounds"]

INTEGER_NAMES = tuple(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64))
SMALL_INTEGER_NAMES = ("int2", "int4", "uint2", "uint4")


def integer_bounds(name: str) -> tuple[int, int]:
    """Return the smallest and the largest value of the integer data type (``uint4`` -> 0, 15)."""
    bits = int(name.rpartition("int")[2])
    return (0, 2**bits - 1) if name.startswith("u") else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


class BooleanFamily(DataTypeFamily):
    """``bool``."""

    def from_configuration(self, name: str, configuration: Mapping[str, Any], where: str) -> DataType:
        check_no_configuration(name, configuration, where)
        return DataType(name, np.dtype(bool))

    def fill_from_json(self, data_type: DataType, value: Any, where: str) -> Any:
        if not isinstance(value, bool):
            raise unexpected_value(where, "true or false for the data type bool", value)
        return np.bool_(value)

    def fill_to_json(self, data_type: DataType, value: Any) -> Any:
        return bool(value)


class IntegerFamily(DataTypeFamily):
    """``int8`` to ``uint64``, little-endian in memory."""

    def numpy(self, name: str) -> np.dtype[Any]:
        """Return the dtype of the data type ``name``."""
        return np.dtype(name).newbyteorder("<")

    def from_configuration(self, name: str, configuration: Mapping[str, Any], where: str) -> DataType:
        check_no_configuration(name, configuration, where)
        return DataType(name, self.numpy(name))

    def fill_from_json(self, data_type: DataType, value: Any, where: str) -> Any:
        low, high = integer_bounds(data_type.name)
        return np.array(expect_integer(value, where, low, high), data_type.numpy)[()]

    def fill_to_json(self, data_type: DataType, value: Any) -> Any:
        return int(value)


class SmallIntegerFamily(IntegerFamily):
    """Integers of fewer than 8 bits, the dtypes of ml_dtypes. Each element has one byte in memory."""

    def numpy(self, name: str) -> np.dtype[Any]:
        import ml_dtypes

        dtype: np.dtype[Any] = np.dtype(getattr(ml_dtypes, name))
        return dtype


BOOLEAN = BooleanFamily()
INTEGERS = IntegerFamily()
SMALL_INTEGERS = SmallIntegerFamily()
