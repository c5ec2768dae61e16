"""Values that a user gives -> NumPy arrays of an array's data type, by the rules of NumPy 2. Pure.

Python numbers, and lists of them, must fit the data type. NumPy arrays and NumPy scalars are cast as NumPy's
assignment casts them, which may wrap or round. Text for elements of variable length is checked before anything is
written.
"""

from __future__ import annotations

import reprlib
from math import isfinite
from typing import Any

import numpy as np

from zarrfs.engine.dtypes import DataType
from zarrfs.errors import DataError, DataShapeError, FillValueError

__all__ = ["as_values", "converted", "describe_value", "fill_scalar", "with_fields"]

Array = np.ndarray[Any, Any]

SMALL_INTEGERS = {"int2": (-2, 1), "int4": (-8, 7), "uint2": (0, 3), "uint4": (0, 15)}
"""The ranges of the integers of ml_dtypes, which wraps Python numbers where NumPy raises an OverflowError."""

VARIABLE_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str, type(None)),
    "bytes": (bytes, bytearray, memoryview, type(None)),
}
"""The types of elements of variable length. None is stored as an empty element."""

EMPTY: dict[str, Any] = {"string": "", "bytes": b""}
"""What zero is among elements of variable length, as in ``numpy.zeros(3, str)``."""

CONVERSION_ERRORS = (TypeError, ValueError, OverflowError, RuntimeError)

_repr = reprlib.Repr()
_repr.maxstring = _repr.maxother = 60


def describe_value(value: Any) -> str:
    """Return a short description of a value, for messages."""
    if isinstance(value, np.ndarray):
        return f"an array of {value.dtype} of shape {value.shape}"
    return f"{_repr.repr(value)} ({type(value).__name__})"


def as_values(value: Any, data_type: DataType, shape: tuple[int, ...], where: str) -> Array:
    """Return ``value`` as an array of the data type, broadcast to ``shape``, as NumPy's assignment would.

    The result may be a view of ``value``. Raises DataError for a value that does not fit the data type, DataShapeError
    for data of another shape.
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
            f"{where}: data of shape {array.shape} do not fit a selection of shape {shape}; nothing was written"
        ) from error


def converted(value: Any, data_type: DataType, where: str) -> Array:
    """Return ``value`` as an array of a data type of fixed size, in the shape it has. Raises DataError."""
    try:
        return _converted(value, data_type.numpy)
    except CONVERSION_ERRORS as error:
        raise _data_error(value, data_type, where, error) from error


def _data_error(value: Any, data_type: DataType, where: str, error: Exception) -> DataError:
    return DataError(
        f"{where}: {describe_value(value)} cannot be stored as {_type_name(data_type)}: {error}; nothing was written"
    )


def with_fields(records: Array, fields: str | list[str], value: Any, where: str) -> Array:
    """Put ``value`` into one field or several of the records, which are changed; return them.

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
            f"{where}: data of shape {array.shape} do not fit {fields!r} of a selection, of shape {target.shape}; "
            "nothing was written"
        ) from error
    return records


def fill_scalar(value: Any, data_type: DataType) -> Any:
    """Return a fill value as a scalar of the data type. Raises FillValueError for a value that does not fit.

    NumPy's integers, floats and complex numbers are held to the same rules as those of Python: a fill value that
    wraps or loses its imaginary part is a mistake.
    """
    dtype = data_type.numpy
    try:
        if dtype.hasobject:
            if type(value) is int and value == 0 and data_type.name in EMPTY:
                return EMPTY[data_type.name]
            _check_variable([value], data_type)
            return value
        given = value
        if isinstance(value, np.generic | np.ndarray) and value.dtype.kind in "iufc" and value.ndim == 0:
            given = value.item()
        scalar = _converted(given, dtype)
    except CONVERSION_ERRORS as error:
        raise FillValueError(
            f"fill_value {describe_value(value)} does not fit {_type_name(data_type)}: {error}"
        ) from error
    if scalar.ndim:
        raise FillValueError(
            f"fill_value must be one value of {_type_name(data_type)}, found {describe_value(value)}"
        )
    return scalar[()]


def _type_name(data_type: DataType) -> str:
    return data_type.name if data_type.numpy.hasobject else str(data_type.numpy)


def _converted(value: Any, dtype: np.dtype[Any]) -> Array:
    """Return ``value`` with a dtype of fixed size. NumPy's arrays are cast, all others checked."""
    if isinstance(value, np.ndarray):
        return value.astype(dtype, copy=False)
    if isinstance(value, np.generic):
        # By assignment, in which NumPy refuses more than in a conversion: NaN as an integer.
        scalar: Array = np.empty((), dtype)
        scalar[()] = value
        return scalar
    bounds = SMALL_INTEGERS.get(dtype.name)
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
    if hasattr(value, "__array__") and not isinstance(value, np.ndarray | np.generic):
        value = np.asarray(value)
    is_element = isinstance(value, np.ndarray) and shape == () and value.dtype.kind in "biufcmM"
    if isinstance(value, np.ndarray) and not (is_element and value.ndim):
        array = value.astype(object)
    else:
        array = _listed(value, shape)
    _check_variable(array.reshape(-1).tolist(), data_type)
    return array


def _check_variable(values: list[Any], data_type: DataType) -> None:
    """Raise TypeError for an element that the data type does not have: a codec would refuse it, but only after other
    chunks are written.
    """
    expected = VARIABLE_TYPES.get(data_type.name)
    if expected is None or all(issubclass(kind, expected) for kind in set(map(type, values))):
        return
    # An int of 0 is what an element of Zarr v2 is that was never set.
    wrong = [v for v in values if not isinstance(v, expected) and not (type(v) is int and v == 0)]
    if wrong:
        names = "a string" if data_type.name == "string" else "bytes"
        raise TypeError(f"expected {names}, found {describe_value(wrong[0])}")


def _listed(value: Any, shape: tuple[int, ...]) -> Array:
    """Return an object array of ``value``; one value for a 0-d place stays one object even if it is a sequence."""
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
