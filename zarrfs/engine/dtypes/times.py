"""``numpy.datetime64`` and ``numpy.timedelta64`` of the zarr-extensions registry."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from zarrfs.engine.dtypes.base import DataType, DataTypeFamily
from zarrfs.engine.json_checks import check_keys, expect_integer, expect_string, unexpected_value
from zarrfs.errors import MetadataError

__all__ = ["TIMES", "TIME_NAMES", "time_from_json", "time_to_json"]

TIME_NAMES = ("numpy.datetime64", "numpy.timedelta64")

_UNITS = ("Y", "M", "W", "D", "h", "m", "s", "ms", "us", "μs", "ns", "ps", "fs", "as", "generic")
_NAT = -(2**63)


def time_from_json(dtype: np.dtype[Any], value: Any, where: str) -> Any:
    """Return the scalar of a datetime64 or timedelta64 dtype. ``value`` is "NaT" or an integer."""
    if value == "NaT":
        number = _NAT
    elif isinstance(value, int) and not isinstance(value, bool):
        number = expect_integer(value, where, _NAT, 2**63 - 1)
    else:
        raise unexpected_value(where, 'an integer, or "NaT"', value)
    return np.array(number, "=i8").view(dtype.newbyteorder("="))[()]


def time_to_json(value: Any) -> int | str:
    """Return the fill value of a scalar for JSON. ``time_from_json`` returns an equal scalar for it."""
    number = int(np.asarray(value).view(np.asarray(value).dtype.str[0] + "i8"))
    return "NaT" if number == _NAT else number


class TimeFamily(DataTypeFamily):
    """``numpy.datetime64`` and ``numpy.timedelta64``: 64-bit counts of ``scale_factor`` units."""

    def from_configuration(self, name: str, configuration: Mapping[str, Any], where: str) -> DataType:
        check_keys(configuration, where, ("unit", "scale_factor"))
        for key in ("unit", "scale_factor"):
            if key not in configuration:
                raise MetadataError(f'{where}: "{key}" is missing; {name} needs "unit" and "scale_factor"')
        unit = expect_string(configuration["unit"], f"{where}/unit", _UNITS)
        scale = expect_integer(configuration["scale_factor"], f"{where}/scale_factor", 1, 2**31 - 1)
        code = "M8" if name == "numpy.datetime64" else "m8"
        numpy_unit = "us" if unit == "μs" else unit
        dtype = np.dtype(f"<{code}" if unit == "generic" else f"<{code}[{scale}{numpy_unit}]")
        return DataType(name, dtype, {"unit": unit, "scale_factor": scale})

    def of_numpy(self, dtype: np.dtype[Any]) -> DataType:
        """Return the data type of a datetime64 or timedelta64 dtype."""
        unit, scale = np.datetime_data(dtype)
        name = "numpy.datetime64" if dtype.kind == "M" else "numpy.timedelta64"
        return DataType(name, dtype, {"unit": unit, "scale_factor": scale})

    def fill_from_json(self, data_type: DataType, value: Any, where: str) -> Any:
        return time_from_json(data_type.numpy, value, where)

    def fill_to_json(self, data_type: DataType, value: Any) -> Any:
        return time_to_json(value)

    def default_fill(self, data_type: DataType) -> Any:
        return np.array(_NAT, "=i8").view(data_type.numpy.newbyteorder("="))[()]


TIMES = TimeFamily()
