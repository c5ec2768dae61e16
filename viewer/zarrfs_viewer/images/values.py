"""Conversion of array elements to the data types that are drawn and measured. Pure functions.

These data types are bool, integers, float32, float64 and complex numbers in native byte order, and structured
types with such fields.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from zarrfs_viewer.state.view_state import Component

__all__ = [
    "component",
    "data_limits",
    "fields",
    "is_displayable",
    "time_value",
    "to_display",
    "unsigned_offsets",
]

AnyArray = npt.NDArray[Any]

TIME_UNITS = ("as", "fs", "ps", "ns", "us", "ms", "s")
"""Units of NumPy that are a thousandth of the next one."""


def is_displayable(dtype: np.dtype[Any]) -> bool:
    """Return whether elements of this data type can be drawn. Strings, raw bytes and objects cannot."""
    if dtype.names is not None:
        return bool(fields(dtype))
    return dtype.kind in "biufcmM" or _is_ml_dtype(dtype)


def fields(dtype: np.dtype[Any]) -> tuple[str, ...]:
    """Return the fields of a structured data type that can be drawn. Nested structures cannot."""
    if dtype.names is None or dtype.fields is None:
        return ()
    return tuple(
        name
        for name in dtype.names
        if dtype.fields[name][0].names is None and is_displayable(dtype.fields[name][0])
    )


def _is_ml_dtype(dtype: np.dtype[Any]) -> bool:
    """Return whether the data type is defined by ml_dtypes. NumPy reports these types as kind ``V``."""
    return dtype.type.__module__.partition(".")[0] == "ml_dtypes"


def to_display(values: AnyArray) -> AnyArray:
    """Return ``values`` converted for display, C-contiguous and in native byte order. May be the same array.

    float16, bfloat16 and smaller floats become float32, 4-bit integers become int8, and long double becomes
    float64. All but the last are exact. Times become float64 counts of their unit; NaT becomes NaN.
    """
    dtype = values.dtype
    if dtype.kind in "mM":
        counts = np.ascontiguousarray(values).astype(dtype.newbyteorder("=")).view(np.int64)
        return np.where(counts == np.iinfo(np.int64).min, np.nan, counts)
    if _is_ml_dtype(dtype):
        return values.astype(np.int8 if "int" in dtype.name else np.float32)
    if dtype.kind == "f" and dtype.itemsize not in (4, 8):
        return values.astype(np.float32 if dtype.itemsize == 2 else np.float64)
    if dtype.kind == "c" and dtype.itemsize not in (8, 16):
        return values.astype(np.complex128)
    return np.ascontiguousarray(values, dtype.newbyteorder("="))


def time_value(count: float, dtype: np.dtype[Any]) -> np.datetime64 | np.timedelta64:
    """Return the time of a count that ``to_display`` returned for a data type; NaT for NaN.

    A float64 does not represent all large counts. The time has the finest unit of which it represents all near counts,
    so that no digit is wrong: microseconds for the nanoseconds since 1970 of a date of this century.
    """
    kind: Any = np.datetime64 if dtype.kind == "M" else np.timedelta64
    unit, multiple = np.datetime_data(dtype)
    time: np.datetime64 | np.timedelta64
    if np.isnan(count):
        time = kind("NaT")
        return time
    exact, spacing = round(count), float(np.spacing(abs(count)))
    while spacing > 1 and unit in TIME_UNITS[:-1]:
        exact, spacing, multiple = (exact * multiple + 500) // 1000, spacing * multiple / 1000, 1
        unit = TIME_UNITS[TIME_UNITS.index(unit) + 1]
    limit = np.iinfo(np.int64).max  # the nearest float64 may be one above it; the minimum is NaT
    time = kind(min(max(exact, -limit), limit), (unit, multiple))
    return time


def component(values: AnyArray, part: Component = "value", field: str | None = None) -> AnyArray:
    """Return the real numbers to draw: a field of a structured data type, or a component of complex numbers.

    ``value`` of complex numbers is the magnitude. Every component of real numbers is the number itself.
    """
    if values.dtype.names is not None:
        names = fields(values.dtype)
        values = to_display(values[field if field in names else names[0]])
    if values.dtype.kind != "c":
        return values
    if part == "phase":
        return np.angle(values)
    if part == "real":
        return np.ascontiguousarray(values.real)
    if part == "imag":
        return np.ascontiguousarray(values.imag)
    return np.abs(values)


def unsigned_offsets(values: AnyArray, base: int) -> AnyArray:
    """Return the exact differences of integers from ``base``, which is not above any of them, as unsigned integers."""
    # In two's complement, the unsigned difference is correct for all signs.
    unsigned = np.dtype(f"u{values.dtype.itemsize}")
    offsets: AnyArray = values.view(unsigned) - np.array(base, values.dtype).view(unsigned)
    return offsets


def data_limits(dtype: np.dtype[Any]) -> tuple[float, float]:
    """Return the default limits: the range of an integer data type as ints, (0, 1) for all other data types."""
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        return int(info.min), int(info.max)
    return 0.0, 1.0
