"""Data types as they are shown: what an array's elements become before they are drawn or measured.

Everything shown is a native bool, integer, float32/float64 or complex, or a structured type of such fields.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from zarrfs_viewer.state.view_state import Component

__all__ = ["component", "data_limits", "fields", "is_showable", "to_display"]

AnyArray = npt.NDArray[Any]


def is_showable(dtype: np.dtype[Any]) -> bool:
    """Tell whether elements of this type can be drawn; strings, raw bytes and objects cannot."""
    if dtype.names is not None:
        return bool(fields(dtype))
    return dtype.kind in "biufcmM" or _is_small(dtype)


def fields(dtype: np.dtype[Any]) -> tuple[str, ...]:
    """Return the fields of a structured type that can be drawn: numbers, one per element."""
    if dtype.names is None or dtype.fields is None:
        return ()
    return tuple(
        name
        for name in dtype.names
        if dtype.fields[name][0].names is None and is_showable(dtype.fields[name][0])
    )


def _is_small(dtype: np.dtype[Any]) -> bool:
    """Whether it is one of the small number types of ml_dtypes, which NumPy only knows as opaque bytes."""
    return dtype.type.__module__.partition(".")[0] == "ml_dtypes"


def to_display(values: AnyArray) -> AnyArray:
    """Return ``values`` as they are shown: native byte order, C-contiguous; may be the same array.

    float16, bfloat16 and smaller become float32, int4 int8, long double float64 (exact but for the last);
    times become float64 counts of their unit, NaT being NaN.
    """
    dtype = values.dtype
    if dtype.kind in "mM":
        counts = np.ascontiguousarray(values).astype(dtype.newbyteorder("=")).view(np.int64)
        return np.where(counts == np.iinfo(np.int64).min, np.nan, counts)
    if _is_small(dtype):
        return values.astype(np.int8 if "int" in dtype.name else np.float32)
    if dtype.kind == "f" and dtype.itemsize not in (4, 8):
        return values.astype(np.float32 if dtype.itemsize == 2 else np.float64)
    if dtype.kind == "c" and dtype.itemsize not in (8, 16):
        return values.astype(np.complex128)
    return np.ascontiguousarray(values, dtype.newbyteorder("="))


def component(values: AnyArray, what: Component = "value", field: str | None = None) -> AnyArray:
    """Return the real numbers to draw: a field of a structured type, a component of complex numbers.

    ``value`` of complex numbers is their magnitude; other components of real numbers are the numbers
    themselves.
    """
    if values.dtype.names is not None:
        names = fields(values.dtype)
        values = to_display(values[field if field in names else names[0]])
    if values.dtype.kind != "c":
        return values
    if what == "phase":
        return np.angle(values)
    if what == "real":
        return np.ascontiguousarray(values.real)
    if what == "imag":
        return np.ascontiguousarray(values.imag)
    return np.abs(values)


def data_limits(dtype: np.dtype[Any]) -> tuple[float, float]:
    """Return the range of an integer type, (0, 1) for the others: the limits where nothing better is
    known.
    """
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        return float(info.min), float(info.max)
    return 0.0, 1.0
