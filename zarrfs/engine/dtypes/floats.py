"""Floating-point and complex data types.

These are the data types of the Zarr v3 core specification ("Data types", "Permitted fill values"), and ``bfloat16``,
``float8_*``, ``float6_*``, ``float4_e2m1fn`` and ``complex_*`` of the zarr-extensions registry with the dtypes of
ml_dtypes.

The bits of fill values are preserved. A NaN is created from its bits without arithmetic, which could change a
signalling NaN to a quiet one.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from zarrfs.engine.dtypes.base import DataType, DataTypeFamily, check_no_configuration, no_numpy_dtype_error
from zarrfs.engine.json_checks import expect_list, unexpected_value
from zarrfs.errors import MetadataError
from zarrfs.text import short_repr

__all__ = ["COMPLEX", "COMPLEX_NAMES", "FLOATS", "FLOAT_NAMES", "float_from_json", "float_to_json"]

_NAN_BITS = {
    "float16": 0x7E00,
    "float32": 0x7FC00000,
    "float64": 0x7FF8000000000000,
    "bfloat16": 0x7FC0,
    "float8_e3m4": 0x78,
    "float8_e4m3": 0x7C,
    "float8_e4m3b11fnuz": 0x80,
    "float8_e4m3fn": 0x7F,
    "float8_e4m3fnuz": 0x80,
    "float8_e5m2": 0x7E,
    "float8_e5m2fnuz": 0x80,
    "float8_e8m0fnu": 0xFF,
    "float6_e2m3fn": None,
    "float6_e3m2fn": None,
    "float4_e2m1fn": None,
}
"""The bits of the fill value "NaN" by data type; None for data types without NaN."""

_BITS = {"float6_e2m3fn": 6, "float6_e3m2fn": 6, "float4_e2m1fn": 4}
"""The number of bits of the data types that do not fill a byte."""

_WITH_INFINITY = {"float16", "float32", "float64", "bfloat16", "float8_e3m4", "float8_e4m3", "float8_e5m2"}

FLOAT_NAMES = tuple(_NAN_BITS)

_COMPONENTS = {
    "complex64": "float32",
    "complex128": "float64",
    "complex_float16": "float16",
    "complex_bfloat16": "bfloat16",
}
COMPLEX_NAMES = tuple(_COMPONENTS)

_HEX = re.compile("0x[0-9a-fA-F]+", re.ASCII)
_SPECIAL = {"Infinity": math.inf, "-Infinity": -math.inf}


def _float_dtype(name: str) -> np.dtype[Any]:
    if name in ("float16", "float32", "float64"):
        return np.dtype(name).newbyteorder("<")
    import ml_dtypes

    dtype: np.dtype[Any] = np.dtype(getattr(ml_dtypes, name))
    return dtype


def _from_bits(bits: int, dtype: np.dtype[Any]) -> Any:
    return np.array(bits, f"=u{dtype.itemsize}").view(dtype.newbyteorder("="))[()]


def _to_bits(value: Any, dtype: np.dtype[Any]) -> int:
    native = dtype.newbyteorder("=")
    return int(np.asarray(value, native).reshape(1).view(f"=u{dtype.itemsize}")[0])


def _rounded(value: int | float, name: str, dtype: np.dtype[Any], where: str) -> Any:
    """Return the scalar nearest to a JSON number. A number that is too large becomes infinity, as in IEEE 754.

    Raises MetadataError if the number is too large for a data type without infinity.
    """
    if name == "float8_e8m0fnu" and value == 0:
        # The data type has no zero. TensorStore writes 0 for its smallest number, 2**-127.
        return _from_bits(0, dtype)
    try:
        number = float(value)
    except OverflowError:
        number = math.inf if value > 0 else -math.inf
    with np.errstate(over="ignore", invalid="ignore"):
        scalar = np.array(number, np.float64).astype(dtype.newbyteorder("="))[()]
    if name not in _WITH_INFINITY and (math.isinf(number) or float(scalar) != float(scalar)):
        raise unexpected_value(where, f"a number that {name} can hold", value)
    return scalar


def float_from_json(name: str, value: Any, where: str) -> Any:
    """Return the scalar of a v3 fill value of the float data type ``name``, in native byte order.

    ``value`` is a number, "NaN", "Infinity", "-Infinity" or the bits as "0x...". Raises MetadataError.
    """
    dtype = _float_dtype(name)
    if isinstance(value, int | float) and not isinstance(value, bool):
        if value != value:
            return _nan(name, dtype, where, value)
        return _rounded(value, name, dtype, where)
    if isinstance(value, str):
        if value == "NaN":
            return _nan(name, dtype, where, value)
        if value in _SPECIAL:
            if name not in _WITH_INFINITY:
                raise MetadataError(f"{where}: {name} has no infinity, found {short_repr(value)}")
            return np.array(_SPECIAL[value], np.float64).astype(dtype.newbyteorder("="))[()]
        digits = dtype.itemsize * 2
        if _HEX.fullmatch(value) and len(value) == digits + 2:
            bits = int(value, 16)
            if bits >> _BITS.get(name, dtype.itemsize * 8) == 0:
                return _from_bits(bits, dtype)
        raise unexpected_value(
            where, f'a number, "NaN", "Infinity", "-Infinity", or "0x" and {digits} digits for {name}', value
        )
    raise unexpected_value(
        where, f'a number, "NaN", "Infinity", "-Infinity" or "0x..." for the data type {name}', value
    )


def _nan(name: str, dtype: np.dtype[Any], where: str, value: Any) -> Any:
    bits = _NAN_BITS[name]
    if bits is None:
        raise MetadataError(f"{where}: {name} has no NaN, found {short_repr(value)}")
    return _from_bits(bits, dtype)


def float_to_json(name: str, value: Any) -> int | float | str:
    """Return the v3 fill value of a scalar. ``float_from_json`` returns a scalar with the same bits for it."""
    dtype = _float_dtype(name)
    number = float(value)
    if number != number:
        bits = _to_bits(value, dtype)
        return "NaN" if bits == _NAN_BITS[name] else f"0x{bits:0{dtype.itemsize * 2}x}"
    if math.isinf(number):
        return "Infinity" if number > 0 else "-Infinity"
    return number


class FloatFamily(DataTypeFamily):
    """``float16``, ``float32``, ``float64``, and the floats of ml_dtypes."""

    def from_configuration(self, name: str, configuration: Mapping[str, Any], where: str) -> DataType:
        check_no_configuration(name, configuration, where)
        return DataType(name, _float_dtype(name))

    def fill_from_json(self, data_type: DataType, value: Any, where: str) -> Any:
        return float_from_json(data_type.name, value, where)

    def fill_to_json(self, data_type: DataType, value: Any) -> Any:
        return float_to_json(data_type.name, value)


class ComplexFamily(DataTypeFamily):
    """Complex numbers, which are pairs of floats."""

    def _dtype(self, name: str, where: str) -> np.dtype[Any]:
        if name in ("complex64", "complex128"):
            return np.dtype(name).newbyteorder("<")
        import ml_dtypes

        attribute = {"complex_float16": "complex32", "complex_bfloat16": "bcomplex32"}[name]
        if not hasattr(ml_dtypes, attribute):
            raise no_numpy_dtype_error(name, where, "install ml_dtypes 0.6 or newer, which has one")
        dtype: np.dtype[Any] = np.dtype(getattr(ml_dtypes, attribute))
        return dtype

    def from_configuration(self, name: str, configuration: Mapping[str, Any], where: str) -> DataType:
        check_no_configuration(name, configuration, where)
        return DataType(name, self._dtype(name, where))

    def fill_from_json(self, data_type: DataType, value: Any, where: str) -> Any:
        expected = f"a list of two numbers, real and imaginary part, for the data type {data_type.name}"
        parts = expect_list(value, where, expected)
        if len(parts) != 2:
            raise unexpected_value(where, expected, value)
        component = _COMPONENTS[data_type.name]
        pair = [float_from_json(component, part, f"{where}/{index}") for index, part in enumerate(parts)]
        raw = b"".join(np.asarray(part).tobytes() for part in pair)
        return np.frombuffer(raw, data_type.numpy.newbyteorder("="))[0]

    def fill_to_json(self, data_type: DataType, value: Any) -> Any:
        component = _COMPONENTS[data_type.name]
        raw = np.asarray(value, data_type.numpy.newbyteorder("=")).tobytes()
        return [
            float_to_json(component, part)
            for part in np.frombuffer(raw, _float_dtype(component).newbyteorder("="))
        ]


FLOATS = FloatFamily()
COMPLEX = ComplexFamily()
