"""Conversion of user-supplied values to NumPy arrays of an array's data type, by the rules of NumPy 2. Pure functions.

Python numbers, and lists of them, must be in the range of the data type. NumPy arrays and scalars are cast as in a
NumPy assignment, which may wrap or round. Elements of variable length are checked before anything is written. Missing
values, which the encodings cannot represent, are refused: masked elements, and None among strings or bytes.
"""

from __future__ import annotations

import reprlib
import sys
from math import isfinite
from typing import Any

import numpy as np

from zarrfs.engine.dtypes import DataType
from zarrfs.errors import DataError, DataShapeError, FillValueError, SelectionError

__all__ = [
    "as_values",
    "assign_fields",
    "check_unmasked",
    "converted",
    "describe_value",
    "fill_scalar",
    "is_masked_array",
    "readable_memory",
    "writable_memory",
]

Array = np.ndarray[Any, Any]

SMALL_INTEGER_RANGES = {"int2": (-2, 1), "int4": (-8, 7), "uint2": (0, 3), "uint4": (0, 15)}
"""The ranges of the ml_dtypes integers. ml_dtypes wraps Python numbers for which NumPy raises OverflowError."""

VARIABLE_LENGTH_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "bytes": (bytes, bytearray, memoryview),
}
"""The accepted Python types of variable-length elements."""

EMPTY_ELEMENTS: dict[str, Any] = {"string": "", "bytes": b""}
"""The variable-length elements that a fill value of 0 means, as in ``numpy.zeros(3, str)``."""

CONVERSION_ERRORS = (TypeError, ValueError, OverflowError, RuntimeError)

_repr = reprlib.Repr()
_repr.maxstring = _repr.maxother = 60


def describe_value(value: Any) -> str:
    """Return a short description of a value for messages."""
    if isinstance(value, np.ndarray):
        return f"an array of {value.dtype} of shape {value.shape}"
    return f"{_repr.repr(value)} ({type(value).__name__})"


def readable_memory(data: Any) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """Return contiguous memory as its bytes, without a copy. Raises SelectionError if ``data`` is not contiguous."""
    try:
        return np.frombuffer(data, np.uint8) if len(memoryview(data)) else np.empty(0, np.uint8)
    except (TypeError, ValueError, AttributeError, BufferError) as error:
        raise SelectionError(f"data must be contiguous memory, found {type(data).__name__}") from error


def writable_memory(buffer: Any) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """Return writable contiguous memory as its bytes, without a copy. Raises SelectionError for any other object."""
    try:
        view = np.frombuffer(buffer, np.uint8)
    except (TypeError, ValueError, AttributeError, BufferError) as error:
        raise SelectionError(
            f"buffer must be writable contiguous memory, found {type(buffer).__name__}"
        ) from error
    if not view.flags.writeable:
        raise SelectionError(f"buffer must be writable, found {type(buffer).__name__}, which is read-only")
    return view


def is_masked_array(value: Any) -> bool:
    """Return whether a value is a masked array, possibly without masked elements."""
    # NumPy imports the module when it is used. Before that there are no masked arrays.
    module = sys.modules.get("numpy.ma")
    return module is not None and isinstance(value, module.MaskedArray)


def check_unmasked(value: Any) -> None:
    """Raise TypeError if a value is a masked array with masked elements."""
    count = int(sys.modules["numpy.ma"].getmaskarray(value).sum()) if is_masked_array(value) else 0
    if count:
        raise TypeError(
            f"{count} elements are masked, which Zarr does not represent; store value.filled(...), "
            "and the mask as an array of its own if it is needed"
        )


def as_values(value: Any, data_type: DataType, shape: tuple[int, ...], where: str) -> Array:
    """Return ``value`` as an array of the data type, broadcast to ``shape`` as in a NumPy assignment.

    The result may be a view of ``value``. Raises DataError if a value cannot be converted to the data type, and
    DataShapeError if the shape cannot be broadcast.
    """
    if not data_type.numpy.hasobject:
        array = converted(value, data_type, where)
    else:
        try:
            array = _objects(value, data_type, shape)
        except CONVERSION_ERRORS as error:
            raise _data_error(value, data_type, where, error) from error
    while array.ndim > len(shape) and array.shape[0] == 1:
        array = array[0]
    try:
        return np.broadcast_to(array, shape)
    except ValueError as error:
        raise DataShapeError(
            f"{where}: data of shape {array.shape} do not match a selection of shape {shape}; nothing was written"
        ) from error


def converted(value: Any, data_type: DataType, where: str) -> Array:
    """Return ``value`` as an array of a fixed-size data type, in its own shape. Raises DataError."""
    try:
        return _converted(value, data_type.numpy)
    except CONVERSION_ERRORS as error:
        raise _data_error(value, data_type, where, error) from error


def _data_error(value: Any, data_type: DataType, where: str, error: Exception) -> DataError:
    return DataError(
        f"{where}: {describe_value(value)} cannot be stored as {_type_name(data_type)}: {error}; nothing was written"
    )


def assign_fields(records: Array, fields: str | list[str], value: Any, where: str) -> Array:
    """Assign ``value`` to one or more fields of ``records``, in place; return ``records``.

    Raises DataError and DataShapeError as ``as_values`` does.
    """
    target = records[fields]
    try:
        array = _converted(value, target.dtype)
    except CONVERSION_ERRORS as error:
        raise DataError(
            f"{where}: {describe_value(value)} cannot be stored in {fields!r} of {records.dtype}: {error}; "
            "nothing was written"
        ) from error
    try:
        records[fields] = array
    except ValueError as error:
        raise DataShapeError(
            f"{where}: data of shape {array.shape} do not match the fields {fields!r} of shape {target.shape}; "
            "nothing was written"
        ) from error
    return records


def fill_scalar(value: Any, data_type: DataType) -> Any:
    """Return a fill value as a scalar of the data type. Raises FillValueError for a value outside of its range.

    The rules for Python numbers also apply to NumPy integers, floats and complex numbers: a fill value that would wrap
    or lose its imaginary part is an error. Bytes are the bytes of a record; missing ones are zero.
    """
    dtype = data_type.numpy
    try:
        check_unmasked(value)
        if dtype.names is not None and isinstance(value, bytes) and not dtype.hasobject:
            if len(value) > dtype.itemsize:
                raise ValueError(f"{len(value)} bytes for a record of {dtype.itemsize}")
            return np.frombuffer(value.ljust(dtype.itemsize, b"\0"), dtype)[0]
        if dtype.hasobject:
            if type(value) is int and value == 0 and data_type.name in EMPTY_ELEMENTS:
                return EMPTY_ELEMENTS[data_type.name]
            _check_variable([value], data_type)
            return value
        given = value
        if isinstance(value, np.generic | np.ndarray) and value.dtype.kind in "iufc" and value.ndim == 0:
            given = value.item()
        scalar = _converted(given, dtype)
    except CONVERSION_ERRORS as error:
        raise FillValueError(
            f"fill_value {describe_value(value)} is not valid for {_type_name(data_type)}: {error}"
        ) from error
    if scalar.ndim:
        raise FillValueError(
            f"fill_value must be one value of {_type_name(data_type)}, found {describe_value(value)}"
        )
    return scalar[()]


def _type_name(data_type: DataType) -> str:
    return data_type.name if data_type.numpy.hasobject else str(data_type.numpy)


def _converted(value: Any, dtype: np.dtype[Any]) -> Array:
    """Return ``value`` with a fixed-size dtype. NumPy arrays are cast; other values are checked."""
    check_unmasked(value)
    if isinstance(value, np.ndarray):
        return value.astype(dtype, copy=False)
    if isinstance(value, np.generic):
        # NumPy is stricter in an assignment than in a conversion: it refuses NaN for an integer.
        scalar: Array = np.empty((), dtype)
        scalar[()] = value
        return scalar
    bounds = SMALL_INTEGER_RANGES.get(dtype.name)
    if bounds is not None and not hasattr(value, "__array__"):
        _check_range(np.asarray(value), bounds, dtype)
    return np.asarray(value, dtype)


def _check_range(array: Array, bounds: tuple[int, int], dtype: np.dtype[Any]) -> None:
    low, high = bounds
    for number in (array.min(), array.max()) if array.size and array.dtype.kind in "iufO" else ():
        if isfinite(number) and not low <= int(number) <= high:
            raise OverflowError(f"Python number {number} out of bounds for {dtype}, from {low} to {high}")


# -- elements of variable length -------------------------------------------------------------------------------


def _objects(value: Any, data_type: DataType, shape: tuple[int, ...]) -> Array:
    check_unmasked(value)
    if hasattr(value, "__array__") and not isinstance(value, np.ndarray | np.generic):
        value = np.asarray(value)
    is_element = isinstance(value, np.ndarray) and shape == () and value.dtype.kind in "biufcmM"
    if isinstance(value, np.ndarray) and not (is_element and value.ndim):
        array = value.astype(object)
    else:
        array = _object_array(value, shape)
    _check_variable(array.reshape(-1).tolist(), data_type)
    return array


def _check_variable(values: list[Any], data_type: DataType) -> None:
    """Raise TypeError for an element of a type that the data type does not accept.

    The codec would also refuse it, but possibly after other chunks have been written.
    """
    expected = VARIABLE_LENGTH_TYPES.get(data_type.name)
    if expected is None or all(issubclass(kind, expected) for kind in set(map(type, values))):
        return
    # In Zarr v2, elements that were never set are the int 0.
    invalid = [v for v in values if not isinstance(v, expected) and not (type(v) is int and v == 0)]
    if invalid:
        expected_type = "a string" if data_type.name == "string" else "bytes"
        hint = (
            "; use an empty element, or another one that means a missing value" if invalid[0] is None else ""
        )
        raise TypeError(f"expected {expected_type}, found {describe_value(invalid[0])}{hint}")


def _object_array(value: Any, shape: tuple[int, ...]) -> Array:
    """Return an object array of ``value``. If ``shape`` is ``()``, a sequence becomes a single element."""
    if isinstance(value, str | bytes) or shape == () or not hasattr(value, "__len__"):
        array: Array = np.empty((), object)
        array[()] = value
        return array
    if len(shape) == 1:
        line = np.empty(len(value), object)
        for i, item in enumerate(value):
            line[i] = item
        return line
    return np.asarray(value, object)
