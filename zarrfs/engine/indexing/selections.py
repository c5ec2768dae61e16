"""Normalization of index expressions by NumPy's rules, checked against the shape of the array.

The result is one of two normalized forms. An ``OrthogonalSelection`` has one selector per dimension (a ``Span`` or an
array of indices) and selects their product. A ``CoordinateSelection`` is a list of points. Both describe how the
result is obtained from the buffer that is read. Chunks are not considered here.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass
from types import EllipsisType
from typing import Any, NamedTuple

import numpy as np

from zarrfs.engine.json_checks import MAX_RANK
from zarrfs.engine.values import describe_value
from zarrfs.errors import SelectionError

__all__ = [
    "CoordinateSelection",
    "OrthogonalSelection",
    "Span",
    "basic_selection",
    "block_selection",
    "check_fields",
    "coordinate_selection",
    "fancy_selection",
    "mask_selection",
    "orthogonal_selection",
    "pop_fields",
    "vectorized_selection",
]

Indices = np.ndarray[Any, np.dtype[np.intp]]


class Span(NamedTuple):
    """``count`` indices: every ``step``-th index from ``start``. ``step`` is positive."""

    start: int
    step: int
    count: int  # type: ignore[assignment]

    @property
    def last(self) -> int:
        """The last selected index. Undefined if ``count`` is 0."""
        return self.start + (self.count - 1) * self.step


@dataclass(frozen=True, slots=True)
class OrthogonalSelection:
    """The product of one selector per dimension.

    Attributes:
        selectors: a Span or an array of non-negative indices for each dimension of the array.
        shape: the number of indices selected in each dimension, which is the shape of the buffer.
        view: the index that converts the buffer to the result: it drops and reverses dimensions.
        transpose: the order of the axes, applied after ``view``, or None.
        reshape: the shape of the result, applied last, or None.
    """

    selectors: tuple[Span | Indices, ...]
    shape: tuple[int, ...]
    view: tuple[Any, ...]
    transpose: tuple[int, ...] | None = None
    reshape: tuple[int, ...] | None = None

    def result(self, buffer: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """Convert a buffer of ``shape`` to the result that NumPy would return, as a view if possible."""
        # With the Ellipsis, a single element is returned as a 0-dimensional view and not as a scalar.
        if len(self.view) < MAX_RANK:
            out: np.ndarray[Any, Any] = buffer[(*self.view, Ellipsis)]
        else:  # NumPy does not accept an index of more than MAX_RANK entries
            slices = tuple(part if isinstance(part, slice) else slice(None) for part in self.view)
            dropped = tuple(axis for axis, part in enumerate(self.view) if not isinstance(part, slice))
            out = buffer[slices].squeeze(dropped)
        if self.transpose is not None:
            out = out.transpose(self.transpose)
        return out if self.reshape is None else out.reshape(self.reshape)

    @property
    def result_shape(self) -> tuple[int, ...]:
        """The shape of the result."""
        shape: tuple[int, ...] = self.result(np.broadcast_to(np.empty((), np.uint8), self.shape)).shape
        return shape

    def to_buffer(self, value: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """Convert values of ``result_shape`` to an array of ``shape``: the inverse of ``result``."""
        if self.reshape is not None:
            dropped = [i for i, part in enumerate(self.view) if part == 0 and not isinstance(part, slice)]
            kept_lengths = [n for i, n in enumerate(self.shape) if i not in dropped]
            if self.transpose is not None:
                kept_lengths = [kept_lengths[axis] for axis in self.transpose]
            value = value.reshape(kept_lengths)
        if self.transpose is not None:
            value = value.transpose(np.argsort(self.transpose))
        return value[tuple(part if isinstance(part, slice) else None for part in self.view) or Ellipsis]


@dataclass(frozen=True, slots=True)
class CoordinateSelection:
    """A list of points: one flat array of non-negative indices per dimension, and the shape of the result."""

    points: tuple[Indices, ...]
    shape: tuple[int, ...]


def pop_fields(selection: Any, dtype: np.dtype[Any]) -> tuple[str | list[str] | None, Any]:
    """Split a selection into its field names (a name, a list of names, or None) and the remaining selection."""
    if isinstance(selection, str):
        return check_fields(selection, dtype), ()
    if isinstance(selection, list) and selection and all(isinstance(part, str) for part in selection):
        return check_fields(selection, dtype), ()
    if isinstance(selection, tuple):
        names = [part for part in selection if isinstance(part, str)]
        if names:
            rest = tuple(part for part in selection if not isinstance(part, str))
            return check_fields(names[0] if len(names) == 1 else names, dtype), rest
    return None, selection


def check_fields(fields: str | list[str], dtype: np.dtype[Any]) -> str | list[str]:
    """Return the field names if the dtype has them. Raises SelectionError."""
    if not isinstance(fields, str) and not (
        isinstance(fields, list) and fields and all(isinstance(name, str) for name in fields)
    ):
        raise SelectionError(f"fields must be a name or a list of names, found {describe_value(fields)}")
    for name in [fields] if isinstance(fields, str) else fields:
        if dtype.names is None:
            raise SelectionError(f"field {name!r} cannot be selected: an array of {dtype} has no fields")
        if name not in dtype.names:
            raise SelectionError(
                f"there is no field {name!r}; the fields are {', '.join(map(repr, dtype.names))}"
            )
    return fields


def basic_selection(selection: Any, shape: tuple[int, ...]) -> OrthogonalSelection:
    """Normalize a selection by integers, slices with any step, and Ellipsis. Raises SelectionError."""
    parts = _expand(selection, shape)
    for part in parts:
        if not isinstance(part, slice | int):
            raise SelectionError(
                f"expected integers, slices or Ellipsis, found {describe_value(part)}; "
                "use .oindex or .vindex for index arrays"
            )
    return _orthogonal(parts, shape)


def orthogonal_selection(selection: Any, shape: tuple[int, ...]) -> OrthogonalSelection:
    """Normalize a selection by one integer, slice, index array or boolean array per dimension, combined as a product.

    Raises SelectionError.
    """
    parts = _expand(selection, shape)
    for axis, part in enumerate(parts):
        if isinstance(part, np.ndarray) and part.ndim != 1:
            raise SelectionError(
                f"dimension {axis}: an orthogonal selection takes 1-dimensional index arrays, found an array of "
                f"{part.ndim} dimensions; use .vindex for points"
            )
    return _orthogonal(parts, shape)


def fancy_selection(selection: Any, shape: tuple[int, ...]) -> OrthogonalSelection | CoordinateSelection:
    """Normalize a NumPy index expression that selects a product or a list of points. The result equals NumPy's.

    Raises SelectionError for expressions that NumPy refuses, and for several index arrays combined with slices.
    """
    whole_mask = _whole_mask(selection, shape)
    if whole_mask is not None:
        return mask_selection(whole_mask, shape)
    parts = _expand(selection, shape)
    arrays = [axis for axis, part in enumerate(parts) if isinstance(part, np.ndarray)]
    if not arrays:
        return _orthogonal(parts, shape)
    if len(arrays) == 1:
        return _single_array(parts, arrays[0], shape)
    if all(not isinstance(part, slice) for part in parts):
        return coordinate_selection(tuple(parts), shape)
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
    orthogonal = _orthogonal(flat, shape)
    advanced = [i for i, part in enumerate(parts) if not isinstance(part, slice)]
    kept_axes = [i for i, part in enumerate(parts) if not isinstance(part, int)]
    transpose = None
    order = kept_axes
    if advanced != list(range(advanced[0], advanced[-1] + 1)):
        order = [axis, *(i for i in kept_axes if i != axis)]
        transpose = tuple(kept_axes.index(i) for i in order)
    reshape = None
    if array.ndim != 1:
        lengths: list[int] = []
        for i in order:
            lengths += list(array.shape) if i == axis else [orthogonal.shape[i]]
        reshape = tuple(lengths)
    return OrthogonalSelection(orthogonal.selectors, orthogonal.shape, orthogonal.view, transpose, reshape)


def _whole_mask(selection: Any, shape: tuple[int, ...]) -> np.ndarray[Any, Any] | None:
    if isinstance(selection, tuple):
        if len(selection) != 1:
            return None
        selection = selection[0]
    if isinstance(selection, slice | int):
        return None
    array = _as_array(selection)
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
        array = _as_array(part)
        if array is None:
            array = np.asarray(_normalize_entry(part, axis))
        if array.dtype == bool and array.ndim == 1:
            array = _indices(array, axis, length)
        if array.dtype.kind not in "iu":
            raise SelectionError(
                f"dimension {axis}: a coordinate selection takes integers, found {_describe(part)}"
            )
        arrays.append(_wrap(array, axis, length))
    try:
        broadcast = np.broadcast_arrays(*arrays) if arrays else []
    except ValueError as error:
        raise SelectionError(
            f"index arrays of shapes {[a.shape for a in arrays]} cannot be broadcast together"
        ) from error
    result = broadcast[0].shape if broadcast else ()
    return CoordinateSelection(tuple(np.ascontiguousarray(a).reshape(-1) for a in broadcast), result)


def vectorized_selection(selection: Any, shape: tuple[int, ...]) -> CoordinateSelection:
    """Normalize points given by their coordinates or by a mask of the array's shape. Raises SelectionError."""
    if not isinstance(selection, tuple | slice | int | EllipsisType):
        array = _as_array(selection)
        if array is not None and array.dtype == bool:
            return mask_selection(array, shape)
    return coordinate_selection(selection, shape)


def mask_selection(mask: Any, shape: tuple[int, ...]) -> CoordinateSelection:
    """Normalize a boolean array of the array's shape: it selects true elements in C order. Raises SelectionError."""
    array = np.asarray(mask) if isinstance(mask, bool | np.bool_) else _as_array(mask)
    if array is None or array.dtype != bool or array.shape != shape:
        description = describe_value(mask) if array is None else f"{array.dtype} of shape {array.shape}"
        raise SelectionError(
            f"a mask must be a boolean array of the array's shape {shape}, found {description}"
        )
    points = np.nonzero(array) if array.ndim else ()
    count = len(points[0]) if points else int(array)
    return CoordinateSelection(tuple(np.asarray(p, np.intp) for p in points), (count,))


def block_selection(
    selection: Any, shape: tuple[int, ...], edges: Sequence[Sequence[int] | Any]
) -> OrthogonalSelection:
    """Normalize a selection of whole chunks by their coordinates: an integer or a slice of step 1 per dimension.

    ``edges[axis]`` has the first index of each chunk along the dimension, followed by the length of the dimension.
    Raises SelectionError.
    """
    counts = tuple(len(e) - 1 for e in edges)
    parts = _expand(selection, counts)
    slices: list[Any] = []
    for axis, (part, count) in enumerate(zip(parts, counts, strict=True)):
        if isinstance(part, slice):
            start, stop, step = part.indices(count)
            if step != 1:
                raise SelectionError(
                    f"dimension {axis}: blocks are selected by slices of step 1, found step {step}"
                )
            stop = max(start, stop)
        elif isinstance(part, int):
            if not -count <= part < count:
                raise SelectionError(
                    f"block {part} is out of bounds for dimension {axis}, which has {count} blocks"
                )
            start = part + count if part < 0 else part
            stop = start + 1
        else:
            raise SelectionError(
                f"dimension {axis}: blocks are selected by integers and slices, found {describe_value(part)}"
            )
        slices.append(slice(int(edges[axis][start]), int(edges[axis][stop])))
    return _orthogonal(slices, shape)


# -- entries of an index expression ----------------------------------------------------------------------------


def _expand(selection: Any, shape: tuple[int, ...]) -> list[Any]:
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
    return [_normalize_entry(part, axis) for axis, part in enumerate(parts)]


def _normalize_entry(part: Any, axis: int) -> Any:
    if isinstance(part, slice):
        return part
    if isinstance(part, int | np.integer) and not isinstance(part, bool):
        return int(part)
    if part is None:
        raise SelectionError(
            "newaxis (None) is not supported: select first, then add the dimension to the result"
        )
    array = _as_array(part)
    if array is not None and array.ndim:
        if array.dtype.kind not in "iub":
            raise SelectionError(
                f"dimension {axis}: indices must be integers or booleans, found {_describe(part)}"
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


def _as_array(part: Any) -> np.ndarray[Any, Any] | None:
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


def _describe(part: Any) -> str:
    array = _as_array(part)
    if array is None or array.ndim == 0:
        return describe_value(part)
    return f"{type(part).__name__} of {array.dtype} and shape {array.shape}"


def _orthogonal(parts: Sequence[Any], shape: tuple[int, ...]) -> OrthogonalSelection:
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
        indices = _indices(part, axis, length)
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


def _indices(array: np.ndarray[Any, Any], axis: int, length: int) -> Indices:
    if array.dtype == bool:
        if len(array) != length:
            raise SelectionError(
                f"dimension {axis}: a boolean array of {len(array)} elements does not match the length {length}"
            )
        return np.nonzero(array)[0]
    return _wrap(array, axis, length)


def _wrap(array: np.ndarray[Any, Any], axis: int, length: int) -> Indices:
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
