"""Data types and fill values of Zarr v2 ("Data type encoding", "Fill value encoding"), and their common variants."""

from __future__ import annotations

import base64
import re
from typing import Any

import numpy as np

from zarrfs.engine.dtypes.base import DataType
from zarrfs.engine.dtypes.floats import COMPLEX_NAMES, FLOAT_NAMES
from zarrfs.engine.dtypes.integers import INTEGER_NAMES, SMALL_INTEGER_NAMES
from zarrfs.engine.dtypes.numpy_types import data_type_of
from zarrfs.engine.dtypes.raw import MAX_ITEMSIZE
from zarrfs.engine.dtypes.registry import STRUCTS, data_type_from_v3, family_of
from zarrfs.engine.dtypes.structs import Field
from zarrfs.engine.json_checks import expect_list, expect_shape, expect_string, unexpected_value
from zarrfs.errors import MetadataError, UnsupportedError

__all__ = ["data_type_from_v2", "data_type_to_v2", "fill_from_v2", "fill_to_v2"]

_SIMPLE = re.compile(r"([<>|=])?([a-zA-Z])([0-9]{0,10})(\[[0-9]*[a-zA-Zμ]+\])?")
_SIZES = {
    "b": (1,),
    "i": (1, 2, 4, 8),
    "u": (1, 2, 4, 8),
    "f": (2, 4, 8, 12, 16),
    "c": (8, 16, 24, 32),
    "m": (8,),
    "M": (8,),
}
_EXTENDED_NAMES = ("float96", "float128", "complex192", "complex256")
_EXPECTED = 'a NumPy type string such as "<u2", "|b1", "<M8[ns]", "|S12", or a list of fields'
_BARE_NAMES = ("bfloat16", *SMALL_INTEGER_NAMES)
"""Names without a byte order, as written by TensorStore."""


def data_type_from_v2(value: Any, where: str) -> DataType:
    """Return the data type of the ``dtype`` of a v2 or v1 document.

    ``|O`` is the data type ``object``: only the object codec defines the type of the elements. Raises MetadataError, or
    UnsupportedError if NumPy has no such dtype.
    """
    if isinstance(value, list | tuple):
        if not value:
            raise MetadataError(f"{where}: expected at least one field, found none")
        return STRUCTS.of_fields([_field(entry, f"{where}/{i}") for i, entry in enumerate(value)], where)
    if not isinstance(value, str):
        raise unexpected_value(where, _EXPECTED, value)
    if value in _BARE_NAMES or value.startswith(("float8_", "float6_", "float4_")):
        return data_type_from_v3(value, where)
    return data_type_of(_simple_dtype(value, where))


def _field(entry: Any, where: str) -> Field:
    parts = expect_list(entry, where, "a field: a list of name, data type and, for a sub-array, shape")
    if len(parts) not in (2, 3):
        raise unexpected_value(where, "a field: a list of name, data type and, for a sub-array, shape", entry)
    name = expect_string(parts[0], f"{where}/0")
    shape = expect_shape(parts[2], f"{where}/2") if len(parts) == 3 else ()
    return Field(name, data_type_from_v2(parts[1], f"{where}/1"), shape)


def _simple_dtype(text: str, where: str) -> np.dtype[Any]:
    match = _SIMPLE.fullmatch(text)
    if match is None:
        raise unexpected_value(where, _EXPECTED, text)
    order, kind, digits, unit = match.groups()
    if kind == "O" and not unit:
        return np.dtype(object)
    size = int(digits) if digits else -1
    allowed = _SIZES.get(kind)
    if (
        (allowed is not None and size not in allowed)
        or (allowed is None and kind not in "SUV")
        or (unit is not None and kind not in "mM")
        or size < 0
        or size * (4 if kind == "U" else 1) > MAX_ITEMSIZE
    ):
        raise unexpected_value(where, _EXPECTED, text)
    if order not in ("<", ">") and size > 1 and kind not in "SV":
        raise unexpected_value(where, f'a byte order, "<" or ">", before "{kind}{size}"', text)
    try:
        return np.dtype(text)
    except TypeError as error:
        raise UnsupportedError(f'{where}: NumPy has no dtype "{text}" on this machine: {error}') from error


def data_type_to_v2(data_type: DataType) -> Any:
    """Return the ``dtype`` of a v2 document. Raises UnsupportedError if v2 has no such data type."""
    dtype = data_type.numpy
    if data_type.name == "struct":
        fields = []
        for field in STRUCTS.fields(data_type):
            entry = [field.name, data_type_to_v2(field.data_type)]
            fields.append([*entry, list(field.shape)] if field.shape else entry)
        return fields
    if dtype.isbuiltin == 2:
        if data_type.name.startswith("complex"):
            raise UnsupportedError(f"Zarr v2 has no data type for {data_type.name}; use zarr_format=3")
        return data_type.name
    if not dtype.hasobject and data_type_of(np.dtype(dtype.str)).name != data_type.name:
        raise UnsupportedError(f"Zarr v2 has no data type for {data_type.name}; use zarr_format=3")
    return dtype.str


def fill_from_v2(data_type: DataType, value: Any, where: str, *, numbers_as_text: bool = True) -> Any:
    """Return the fill value of a v2 document as a scalar of ``data_type.numpy``; None for null, an undefined fill
    value.

    Existing data contain values that the specification does not allow. These are accepted: ``0`` for text, bytes and
    records; 0 and 1 for booleans; integral floats and booleans for integers; NaN and Infinity as numbers; a number for
    a complex number; decimal numbers as text ("1.0") where ``numbers_as_text``. Raises MetadataError.
    """
    if value is None:
        return None
    dtype = data_type.numpy
    if data_type.name == "object":
        return value
    if (
        isinstance(value, int | float)
        and value == 0
        and (dtype.kind in "SU" or (dtype.kind == "V" and dtype.isbuiltin != 2))
    ):
        return np.zeros((), dtype)[()]
    if isinstance(value, int | float) and value == 0 and dtype.hasobject:
        return family_of(data_type).default_fill(data_type)
    if numbers_as_text and data_type.name in (
        *FLOAT_NAMES,
        *COMPLEX_NAMES,
        *INTEGER_NAMES,
        *SMALL_INTEGER_NAMES,
        *_EXTENDED_NAMES,
    ):
        value = [_number(part) for part in value] if isinstance(value, list | tuple) else _number(value)
    if data_type.name in _EXTENDED_NAMES:
        return _extended_fill(data_type, value, where)
    if dtype.kind == "b" and isinstance(value, int | float) and value in (0, 1):
        value = bool(value)
    elif dtype.kind in "iu" and isinstance(value, float | bool) and value == value // 1:
        value = int(value)
    elif dtype.kind == "c" and isinstance(value, int | float | str):
        value = [value, 0.0]
    elif dtype.kind == "V" and isinstance(value, list | tuple) and dtype.names is not None:
        return _record_fill(data_type, value, where)
    return family_of(data_type).fill_from_json(data_type, value, where)


_DECIMAL = re.compile(r"[+-]?(?:[0-9]{1,400}(?:\.[0-9]{0,400})?|\.[0-9]{1,400})(?:[eE][+-]?[0-9]{1,4})?")


def _number(value: Any) -> Any:
    """Return the number of a decimal string, which some programs write. Other values are returned unchanged."""
    if not isinstance(value, str):
        return value
    if _DECIMAL.fullmatch(value):
        return float(value) if any(char in value for char in ".eE") else int(value)
    return value


def _record_fill(data_type: DataType, values: list[Any] | tuple[Any, ...], where: str) -> Any:
    """Return the record of a list with one fill value per field."""
    fields = list(STRUCTS.fields(data_type))
    if len(values) != len(fields):
        raise unexpected_value(
            where, f"base64 text, or a list of {len(fields)} values, one for each field", values
        )
    record = np.zeros((), data_type.numpy)
    for index, (field, value) in enumerate(zip(fields, values, strict=True)):
        # Only the fill value of the whole record can be undefined. A null for a single field is zero.
        if value is not None:
            record[field.name] = fill_from_v2(field.data_type, value, f"{where}/{index}")
    return record[()]


def _extended_fill(data_type: DataType, value: Any, where: str) -> Any:
    parts = value if isinstance(value, list | tuple) and data_type.numpy.kind == "c" else [value, 0.0]
    numbers = []
    for part in parts:
        if part in ("NaN", "Infinity", "-Infinity") or (
            isinstance(part, int | float) and not isinstance(part, bool)
        ):
            numbers.append(np.longdouble(part))
        else:
            raise unexpected_value(where, 'a number, "NaN", "Infinity" or "-Infinity"', value)
    if len(numbers) != 2:
        raise unexpected_value(where, "a list of two numbers, real and imaginary part", value)
    scalar = np.zeros((), data_type.numpy)
    if data_type.numpy.kind == "c":
        scalar.real, scalar.imag = numbers
    else:
        scalar[()] = numbers[0]
    return scalar[()]


def fill_to_v2(data_type: DataType, value: Any) -> Any:
    """Return the ``fill_value`` of a v2 document; None for an undefined fill value."""
    if value is None:
        return None
    dtype = data_type.numpy
    if dtype.hasobject and type(value) is int and value == 0:
        return 0  # As zarr-python 2 writes it for variable-length elements.
    if data_type.name in _EXTENDED_NAMES:
        scalar = np.asarray(value, dtype)
        parts = [_json_float(part) for part in (scalar.real, scalar.imag)]
        return parts if dtype.kind == "c" else parts[0]
    if dtype.names is not None or (dtype.kind == "V" and dtype.isbuiltin != 2):
        return base64.b64encode(np.asarray(value, dtype).tobytes()).decode("ascii")
    if dtype.kind in "mM":
        # NaT is written as a number too, as by zarr-python.
        return int(np.asarray(value, dtype.newbyteorder("=")).view("=i8"))
    return family_of(data_type).fill_to_json(data_type, value)


def _json_float(number: Any) -> float | str:
    value = float(number)
    if value != value:
        return "NaN"
    return value if abs(value) != float("inf") else "Infinity" if value > 0 else "-Infinity"
