"""Normalization of index expressions by NumPy's rules, checked against the shape of the array.

There is one function for each kind of indexing. Each returns a normalized selection; see ``normalized.py``.

The rules of ``fancy_selection`` are those of NumPy for all code, because an array that is passed to a function must not
depend on how the package was imported. Code that was written for zarr-python can expect another result without an
error, so it is warned, in each process once.
"""

from __future__ import annotations

import sys
import threading
import warnings
from collections.abc import Sequence
from types import EllipsisType
from typing import Any

import numpy as np

from zarrfs.engine.indexing.axes import Axis
from zarrfs.engine.indexing.entries import (
    as_index_array,
    describe_index,
    dimension_indices,
    expand,
    normalize_entry,
    orthogonal_product,
    wrap_indices,
)
from zarrfs.engine.indexing.normalized import CoordinateSelection, OrthogonalSelection
from zarrfs.engine.values import describe_value
from zarrfs.errors import CompatibilityWarning, SelectionError

__all__ = [
    "basic_selection",
    "block_selection",
    "coordinate_selection",
    "fancy_selection",
    "mask_selection",
    "orthogonal_selection",
    "vectorized_selection",
]

_warned = False

_lock = threading.Lock()


def basic_selection(selection: Any, shape: tuple[int, ...]) -> OrthogonalSelection:
    """Normalize a selection by integers, slices with any step, and Ellipsis. Raises SelectionError."""
    parts = expand(selection, shape)
    for part in parts:
        if not isinstance(part, slice | int):
            raise SelectionError(
                f"expected integers, slices or Ellipsis, found {describe_value(part)}; "
                "use .oindex or .vindex for index arrays"
            )
    return orthogonal_product(parts, shape)


def orthogonal_selection(selection: Any, shape: tuple[int, ...]) -> OrthogonalSelection:
    """Normalize a selection by one integer, slice, index array or boolean array per dimension, combined as a product.

    Raises SelectionError.
    """
    parts = expand(selection, shape)
    for axis, part in enumerate(parts):
        if isinstance(part, np.ndarray) and part.ndim != 1:
            raise SelectionError(
                f"dimension {axis}: an orthogonal selection takes 1-dimensional index arrays, found an array of "
                f"{part.ndim} dimensions; use .vindex for points"
            )
    return orthogonal_product(parts, shape)


def fancy_selection(selection: Any, shape: tuple[int, ...]) -> OrthogonalSelection | CoordinateSelection:
    """Normalize a NumPy index expression that selects a product or a list of points. The result equals NumPy's.

    Warns once if zarr-python selects other elements, or returns them in another order of dimensions. Raises
    SelectionError for expressions that NumPy refuses, and for several index arrays combined with slices.
    """
    whole_mask = _whole_mask(selection, shape)
    if whole_mask is not None:
        return mask_selection(whole_mask, shape)
    parts = expand(selection, shape)
    arrays = [axis for axis, part in enumerate(parts) if isinstance(part, np.ndarray)]
    if not arrays:
        return orthogonal_product(parts, shape)
    if len(arrays) == 1:
        return _single_array(parts, arrays[0], shape)
    if all(not isinstance(part, slice) for part in parts):
        selected = coordinate_selection(tuple(parts), shape)
        if len(arrays) == len(parts) and any(part.dtype == bool for part in parts):
            _warn_of_difference(
                "boolean arrays among index arrays select points, as in NumPy; in zarr-python they select the product "
                "of the dimensions. Use .oindex for the product"
            )
        return selected
    raise SelectionError(
        "several index arrays cannot be combined with slices: use .oindex to combine them as a product, or .vindex "
        "with an index for each dimension"
    )


def _single_array(parts: list[Any], axis: int, shape: tuple[int, ...]) -> OrthogonalSelection:
    """Normalize one index array combined with slices and integers. NumPy may move its axis to the front."""
    array = parts[axis]
    if array.dtype == bool and array.ndim != 1:
        raise SelectionError(
            f"a boolean array of shape {array.shape} does not match the array's shape {shape}"
        )
    flat = [part.reshape(-1) if i == axis else part for i, part in enumerate(parts)]
    orthogonal = orthogonal_product(flat, shape)
    advanced = [i for i, part in enumerate(parts) if not isinstance(part, slice)]
    kept_axes = [i for i, part in enumerate(parts) if not isinstance(part, int)]
    transpose = None
    order = kept_axes
    if advanced != list(range(advanced[0], advanced[-1] + 1)):
        order = [axis, *(i for i in kept_axes if i != axis)]
        transpose = tuple(kept_axes.index(i) for i in order)
        if order != kept_axes:
            _warn_of_difference(
                "the dimension of an index array that a slice separates from an integer comes first, as in NumPy; in "
                "zarr-python the dimensions keep their order. Use .oindex to keep it"
            )
    reshape = None
    if array.ndim != 1:
        lengths: list[int] = []
        for i in order:
            lengths += list(array.shape) if i == axis else [orthogonal.shape[i]]
        reshape = tuple(lengths)
    return OrthogonalSelection(orthogonal.selectors, orthogonal.shape, orthogonal.view, transpose, reshape)


def _warn_of_difference(message: str) -> None:
    """Warn at the line of the caller of this package, unless this process was warned of such an expression."""
    global _warned
    with _lock:
        if _warned:
            return
        _warned = True
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "zarrfs":
        level, frame = level + 1, frame.f_back
    warnings.warn(f"{message}.", CompatibilityWarning, stacklevel=level)


def _whole_mask(selection: Any, shape: tuple[int, ...]) -> np.ndarray[Any, Any] | None:
    if isinstance(selection, tuple):
        if len(selection) != 1:
            return None
        selection = selection[0]
    if isinstance(selection, slice | int):
        return None
    array = as_index_array(selection)
    if array is None or array.dtype != bool:
        return None
    return array if array.ndim > 1 or (array.ndim == len(shape) == 1) else None


def coordinate_selection(selection: Any, shape: tuple[int, ...]) -> CoordinateSelection:
    """Normalize points given by integers or integer arrays, one per dimension. Raises SelectionError."""
    parts = list(selection) if isinstance(selection, tuple) else [selection]
    for axis, part in enumerate(parts):
        if isinstance(part, slice | EllipsisType):
            raise SelectionError(
                f"dimension {axis}: a coordinate selection takes integers and integer arrays, found {part!r}; use "
                ".oindex to combine index arrays with slices"
            )
    if len(parts) != len(shape):
        raise SelectionError(
            f"a coordinate selection needs an index for each of the {len(shape)} dimensions, found {len(parts)}"
        )
    arrays = []
    for axis, (part, length) in enumerate(zip(parts, shape, strict=True)):
        array = as_index_array(part)
        if array is None:
            array = np.asarray(normalize_entry(part, axis))
        if array.dtype == bool and array.ndim == 1:
            array = dimension_indices(array, axis, length)
        if array.dtype.kind not in "iu":
            raise SelectionError(
                f"dimension {axis}: a coordinate selection takes integers, found {describe_index(part)}"
            )
        arrays.append(wrap_indices(array, axis, length))
    try:
        broadcast = np.broadcast_arrays(*arrays) if arrays else []
    except ValueError as error:
        raise SelectionError(
            f"index arrays of shapes {[a.shape for a in arrays]} cannot be broadcast together to points; use "
            ".oindex to combine them as a product"
        ) from error
    result = broadcast[0].shape if broadcast else ()
    return CoordinateSelection(tuple(np.ascontiguousarray(a).reshape(-1) for a in broadcast), result)


def vectorized_selection(selection: Any, shape: tuple[int, ...]) -> CoordinateSelection:
    """Normalize points given by their coordinates or by a mask of the array's shape. Raises SelectionError."""
    if not isinstance(selection, tuple | slice | int | EllipsisType):
        array = as_index_array(selection)
        if array is not None and array.dtype == bool:
            return mask_selection(array, shape)
    return coordinate_selection(selection, shape)


def mask_selection(mask: Any, shape: tuple[int, ...]) -> CoordinateSelection:
    """Normalize a boolean array of the array's shape: it selects true elements in C order. Raises SelectionError."""
    array = np.asarray(mask) if isinstance(mask, bool | np.bool_) else as_index_array(mask)
    if array is None or array.dtype != bool or array.shape != shape:
        description = describe_value(mask) if array is None else f"{array.dtype} of shape {array.shape}"
        raise SelectionError(
            f"a mask must be a boolean array of the array's shape {shape}, found {description}"
        )
    points = np.nonzero(array) if array.ndim else ()
    count = len(points[0]) if points else int(array)
    return CoordinateSelection(tuple(np.asarray(p, np.intp) for p in points), (count,))


def block_selection(
    selection: Any, shape: tuple[int, ...], axes: Sequence[Axis], grid_shape: tuple[int, ...]
) -> OrthogonalSelection:
    """Normalize a selection of whole chunks by their coordinates: an integer or a slice of step 1 per dimension.

    ``grid_shape`` is the number of chunks along each of ``axes``. Raises SelectionError.
    """
    slices: list[Any] = []
    for dimension, (part, axis, count) in enumerate(
        zip(expand(selection, grid_shape), axes, grid_shape, strict=True)
    ):
        if isinstance(part, slice):
            start, stop, step = part.indices(count)
            if step != 1:
                raise SelectionError(
                    f"dimension {dimension}: blocks are selected by slices of step 1, found step {step}"
                )
            stop = max(start, stop)
        elif isinstance(part, int):
            if not -count <= part < count:
                raise SelectionError(
                    f"block {part} is out of bounds for dimension {dimension}, which has {count} blocks"
                )
            start = part + count if part < 0 else part
            stop = start + 1
        else:
            raise SelectionError(
                f"dimension {dimension}: blocks are selected by integers and slices, found {describe_value(part)}"
            )
        slices.append(slice(*(int(axis.begin(i)) if i < count else axis.length for i in (start, stop))))
    return orthogonal_product(slices, shape)
