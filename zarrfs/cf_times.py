"""Times as netCDF and xarray store them: integers with the units of CF. For files that are exported or presented."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["integer_times"]

UNITS = {
    "D": "days",
    "h": "hours",
    "m": "minutes",
    "s": "seconds",
    "ms": "milliseconds",
    "us": "microseconds",
    "ns": "nanoseconds",
}
"""Unit of a NumPy dtype -> unit of CF."""


def integer_times(dtype: np.dtype[Any]) -> tuple[np.dtype[Any], dict[str, Any]] | None:
    """Return the integer dtype with the same bytes as a datetime64 or timedelta64 dtype, and the attributes that
    describe its values; None if CF has no unit for it. NaT is the missing value.
    """
    unit, count = np.datetime_data(dtype)
    if unit not in UNITS or count != 1:
        return None
    integers = np.dtype(np.int64).newbyteorder(dtype.byteorder)
    if dtype.kind == "m":
        attributes = {"units": UNITS[unit], "dtype": f"timedelta64[{unit}]"}
    else:
        attributes = {"units": f"{UNITS[unit]} since 1970-01-01", "calendar": "proleptic_gregorian"}
    return integers, {**attributes, "_FillValue": np.array(np.iinfo(np.int64).min, integers)[()]}
