"""Entries of an index expression, one per dimension: conversion, checks against the shape, and their product."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from types import EllipsisType
from typing import Any

import numpy as np

from zarrfs.engine.indexing.normalized import Indices, OrthogonalSelection, Span
from zarrfs.engine.values import describe_value
from zarrfs.errors import SelectionError

__all__ = [
    "as_index_array",
    "describe_index",
    "dimension_indices",
    "expand",
    "normalize_entry",
    "orthogonal_product",
    "wrap_indices",
]


def expand(selection: Any, shape: tuple[int, ...]) -> list[Any]:
    """Return one int, slice or ndarray per dimension. Ellipsis is expanded, and missing entries become ``:``."""
    parts = list(selection) if isinstance(selection, tuple) else [selection]
    ellipses = [i for i, part in enumerate(parts) if part is Ellipsis or isinstance(part, EllipsisType)]
    if len(ellipses) > 1:
        raise SelectionError("an index can contain only one Ellipsis ('...')")
    given = len(parts) - len(ellipses)
    if given > len(shape):
        raise SelectionError(f"{given} indices for an array of {len(shape)} dimensions (shape {shape})")
    missing: list[Any] = [slice(None)] * (len(shape) - given)
    if ellipses:
        parts[ellipses[0] : ellipses[0] + 1] = missing
    else:
        parts += missing
    return [normalize_entry(part, axis) for axis, part in enumerate(parts)]


def normalize_entry(part: Any, axis: int) -> Any:
    if isinstance(part, slice):
        return part
    if isinstance(part, int | np.integer) and not isinstance(part, bool):
        return int(part)
    if part is None:
        raise SelectionError(
            "newaxis (None) is not supported: select first, then add the dimension to the result"
        )
    array = as_index_array(part)
    if array is not None and array.ndim:
        if array.dtype.kind not in "iub":
            raise SelectionError(
                f"dimension {axis}: indices must be integers or booleans, found {describe_index(part)}"
            )
        return array
    if isinstance(part, bool) or (array is not None and array.dtype == bool):
        raise SelectionError(
            f"dimension {axis}: a single boolean ({part!r}) is not an index; expected an integer, slice, Ellipsis or "
            "array"
        )
    try:
        return operator.index(part if array is None else array.item())
    except TypeError:
        raise SelectionError(
            f"dimension {axis}: {describe_value(part)} is not an index; expected an integer, slice, Ellipsis or array"
        ) from None


def as_index_array(part: Any) -> np.ndarray[Any, Any] | None:
    """Return an array or a sequence as a NumPy array; None for any other value. Raises SelectionError.

    Objects with ``__array__`` are arrays: those of NumPy, pandas, xarray and Zarr. Arrays of integer or boolean objects
    are converted to an integer or boolean dtype, and an empty sequence to ``intp``.
    """
    if isinstance(part, np.ndarray):
        array: np.ndarray[Any, Any] = part
    elif hasattr(part, "__array__") or (isinstance(part, Sequence) and not isinstance(part, str | bytes)):
        try:
            array = np.asarray(part)
        except ValueError as error:
            raise SelectionError(f"{describe_value(part)} is not an index array: {error}") from error
    else:
        return None
    if array.dtype == object:
        items = array.reshape(-1).tolist()
        if items and all(isinstance(item, bool | np.bool_) for item in items):
            return array.astype(bool)
        if items and all(isinstance(item, int | np.integer) and not isinstance(item, bool) for item in items):
            return array.astype(np.int64)
    return array.astype(np.intp) if array.size == 0 and array.dtype.kind in "fO" else array


def describe_index(part: Any) -> str:
    array = as_index_array(part)
    if array is None or array.ndim == 0:
        return describe_value(part)
    return f"{type(part).__name__} of {array.dtype} and shape {array.shape}"


def orthogonal_product(parts: Sequence[Any], shape: tuple[int, ...]) -> OrthogonalSelection:
    selectors: list[Span | Indices] = []
    view: list[Any] = []
    counts: list[int] = []
    for axis, (part, length) in enumerate(zip(parts, shape, strict=True)):
        if isinstance(part, int):
            selectors.append(Span(_wrap_int(part, axis, length), 1, 1))
            view.append(0)
            counts.append(1)
            continue
        if isinstance(part, slice):
            span, reverse = _span(part, axis, length)
            selectors.append(span)
            view.append(slice(None, None, -1) if reverse else slice(None))
            counts.append(span.count)
            continue
        indices = dimension_indices(part, axis, length)
        selectors.append(indices)
        view.append(slice(None))
        counts.append(len(indices))
    return OrthogonalSelection(tuple(selectors), tuple(counts), tuple(view))


def _span(part: slice, axis: int, length: int) -> tuple[Span, bool]:
    try:
        start, stop, step = part.indices(length)
    except (TypeError, ValueError) as error:
        raise SelectionError(f"dimension {axis}: {part}: {error}") from error
    count = len(range(start, stop, step))
    if step < 0:
        return Span(start + (count - 1) * step if count else 0, -step, count), True
    return Span(start, step, count), False


def dimension_indices(array: np.ndarray[Any, Any], axis: int, length: int) -> Indices:
    if array.dtype == bool:
        if len(array) != length:
            raise SelectionError(
                f"dimension {axis}: a boolean array of {len(array)} elements does not match the length {length}"
            )
        return np.nonzero(array)[0]
    return wrap_indices(array, axis, length)


def wrap_indices(array: np.ndarray[Any, Any], axis: int, length: int) -> Indices:
    """Return the indices as non-negative ``intp``. Raises SelectionError if an index is out of bounds."""
    if array.size:
        low, high = int(array.min()), int(array.max())
        if low < -length or high >= length:
            invalid = high if high >= length else low
            raise SelectionError(f"index {invalid} is out of bounds for dimension {axis} of length {length}")
        array = array.astype(np.intp)
        if low < 0:
            array = np.where(array < 0, array + length, array)
    return array.astype(np.intp, copy=False)


def _wrap_int(index: int, axis: int, length: int) -> int:
    if index < -length or index >= length:
        raise SelectionError(f"index {index} is out of bounds for dimension {axis} of length {length}")
    return index + length if index < 0 else index
