"""Conversion of NumPy dtypes, and of other values that specify one, to data types."""

from __future__ import annotations

from typing import Any

import numpy as np

from zarrfs.engine.dtypes.base import DataType
from zarrfs.engine.dtypes.floats import COMPLEX_NAMES, FLOAT_NAMES
from zarrfs.engine.dtypes.integers import SMALL_INTEGER_NAMES
from zarrfs.engine.dtypes.raw import FIXED_BYTES, FIXED_TEXT, RAW
from zarrfs.engine.dtypes.registry import STRUCTS, data_type_from_v3
from zarrfs.engine.dtypes.structs import Field
from zarrfs.engine.dtypes.times import TIMES
from zarrfs.errors import UnsupportedError

__all__ = ["data_type_from_numpy", "data_type_of"]

_NUMPY_FLOATS = ("float16", "float32", "float64")
_ML_NAMES = {
    **{name: name for name in (*SMALL_INTEGER_NAMES, *FLOAT_NAMES) if name not in _NUMPY_FLOATS},
    "complex32": "complex_float16",
    "bcomplex32": "complex_bfloat16",
}
"""The v3 names by the names of the dtypes of ml_dtypes."""

_V3_ONLY_NAMES = {"string", "bytes", *COMPLEX_NAMES, *_ML_NAMES.values()} - {"complex64", "complex128"}


def data_type_from_numpy(dtype: Any) -> DataType:
    """Return the data type of a NumPy dtype or of a value that specifies one: ``"uint16"``, ``float``, a list of
    fields.

    ``str``, ``"string"`` and NumPy's StringDType are strings of variable length. ``bytes`` and ``"bytes"`` are byte
    strings of variable length. v3 names that NumPy does not define (``"bfloat16"``, ``"r24"``), v3 objects and
    DataTypes are accepted too. Padding in a structured dtype is dropped.

    Raises UnsupportedError for a dtype that cannot be stored.
    """
    if isinstance(dtype, DataType):
        return dtype
    if isinstance(dtype, dict) and "name" in dtype:
        return data_type_from_v3(dtype, "dtype")
    if isinstance(dtype, str) and dtype in _V3_ONLY_NAMES:
        return data_type_from_v3(dtype, "dtype")
    try:
        numpy = np.dtype(dtype)
    except (TypeError, ValueError) as error:
        if isinstance(dtype, str):
            return data_type_from_v3(dtype, "dtype")
        raise UnsupportedError(f"{dtype!r} is not a dtype: {error}") from error
    if numpy.kind in "US" and numpy.itemsize == 0:
        # np.dtype(str) and "U" have no length: the elements have variable length.
        return data_type_from_v3("string" if numpy.kind == "U" else "bytes", "dtype")
    if numpy.itemsize == 0 and numpy.kind == "V" and numpy.names is None and numpy.subdtype is None:
        raise UnsupportedError(
            f"{dtype!r} has no length, so that elements would have no bytes; state the number of bytes, as in 'V8'"
        )
    return data_type_of(numpy)


def data_type_of(dtype: np.dtype[Any]) -> DataType:
    """Return the data type of a NumPy dtype. Raises UnsupportedError for a dtype that cannot be stored."""
    if dtype.kind == "T":
        return data_type_from_v3("string", "dtype")
    if dtype.name in _ML_NAMES:
        return data_type_from_v3(_ML_NAMES[dtype.name], "dtype")
    if dtype.kind in "biufc":
        return DataType(dtype.name, dtype)
    if dtype.kind in "mM":
        return TIMES.of_numpy(dtype)
    if dtype.kind == "S":
        return FIXED_BYTES.of_length(dtype.itemsize)
    if dtype.kind == "U":
        text = FIXED_TEXT.of_length(dtype.itemsize // 4)
        return DataType(text.name, dtype, text.configuration)
    if dtype.kind == "O":
        return DataType("object", dtype)
    if dtype.subdtype is not None:
        raise UnsupportedError(
            f"{dtype} is a sub-array dtype, which an array cannot have; add its shape to the shape of the array"
        )
    if dtype.names is not None:
        fields = []
        for name in dtype.names:
            part: np.dtype[Any] = dtype[name]
            fields.append(Field(name, data_type_of(part.base), part.shape))
        return STRUCTS.of_fields(fields, "dtype")
    if dtype.kind == "V":
        return RAW.of_length(dtype.itemsize)
    raise UnsupportedError(f"{dtype} has no Zarr data type")
