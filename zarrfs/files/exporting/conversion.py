"""Arrays whose elements are converted to another data type while they are read."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

import zarrfs
from zarrfs.engine.array.array import Array
from zarrfs.errors import DataError, OptionError, UnsupportedError
from zarrfs.files.foreign_array import ForeignArray as ConvertedValues
from zarrfs.files.foreign_array import is_presentable
from zarrfs.files.foreign_store import ForeignStore
from zarrfs.files.view import PresentedArray

__all__ = ["converted"]


def converted(
    presented: PresentedArray, dtype: npt.DTypeLike, cache_size: int | None = None
) -> PresentedArray:
    """Return the array with elements of another data type, converted chunk by chunk while they are read.

    Integers and booleans have to be exactly representable in the new data type, and floats in a new integer type.
    Floats are rounded to the nearest ones of a new floating-point type. ``cache_size`` is the size of the cache for
    converted chunks, as for ``open``.

    Raises OptionError if ``dtype`` is not the data type of numbers, and UnsupportedError if that of the array is not.
    A read raises DataError for a value that does not fit.
    """
    try:
        target = np.dtype(dtype)
    except TypeError as error:
        raise OptionError(
            f"option dtype: expected the name of a data type, such as uint32; found {dtype!r}"
        ) from error
    if not is_presentable(target):
        raise OptionError(f"option dtype: expected a data type of numbers, such as uint32; found {target}")
    array = presented.array
    if array.dtype.hasobject or not is_presentable(array.dtype):
        raise UnsupportedError(
            f"{array.name}: elements of type {array.spec.data_type.name} cannot be converted to {target}; expected "
            "numbers"
        )
    if array.dtype == target:
        return presented

    def read(region: tuple[slice, ...]) -> npt.NDArray[Any]:
        return _converted(np.asarray(array[region]), target, array.name)

    chunks = tuple(max(length) if isinstance(length, tuple) else length for length in array.chunks)
    values = ConvertedValues(array.shape, chunks, target, read)
    store = ForeignStore(
        f"{array.store.url}/{array.path}".rstrip("/"), {"": values}, lambda: None, lambda: None
    )
    found = zarrfs.open(store, cache_size=cache_size)
    assert isinstance(found, Array)
    return PresentedArray(found, presented.name, lambda: presented.geometry)


def _converted(values: npt.NDArray[Any], dtype: np.dtype[Any], name: str) -> npt.NDArray[Any]:
    given, wrong = values, np.zeros(values.shape, bool)
    with np.errstate(all="ignore"):
        if values.dtype.kind == "c" and dtype.kind != "c":
            values, wrong = values.real, values.imag != 0
        result = values.astype(dtype)
        if values.dtype.kind in "fc" and dtype.kind in "fc":
            wrong = wrong | (np.isfinite(values) & ~np.isfinite(result))
        else:
            # Back in the old type they are equal, and of the same sign: 2**63 as int64 is negative.
            real = result.real if dtype.kind == "c" else result
            wrong = wrong | (real.astype(values.dtype) != values)
            if values.dtype.kind in "iu" and dtype.kind in "fc":
                # 2**64 - 1 becomes 2**64, and the conversion of that to an integer is undefined.
                wrong |= real >= float(int(np.iinfo(values.dtype).max) + 1)
            elif values.dtype.kind != "b" and dtype.kind != "b":
                wrong |= (real < 0) != (values < 0)
    if wrong.any():
        raise DataError(
            f"{name}: the value {given[wrong].flat[0]} cannot be written as {dtype}; the file was not written. Choose "
            "a data type that can represent all values of the array"
        )
    return result
