"""Downsampling of NumPy arrays: each window of elements is reduced to one element.

The windows tile the array. A window at the end of a dimension is smaller if the factor does not divide the length, so
that no element is ignored. For whole windows the results are those of ITK's BinShrinkImageFilter (mean) and of
``xarray.DataArray.coarsen`` (the other methods).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from math import prod
from typing import Any, Literal, get_args

import numpy as np

from zarrfs.errors import UnsupportedError

__all__ = ["METHODS", "Method", "check_method", "downsample"]

Values = np.ndarray[Any, Any]

Method = Literal["mean", "median", "max", "min", "mode", "nearest"]
"""How a window is reduced. Integers are rounded to the nearest one, halves upwards.

- ``mean``, ``median``, ``max``, ``min``: NaN is ignored, unless all elements of the window are NaN.
- ``mode``: the most frequent value, and the smallest one of several such values. For labels.
- ``nearest``: the first element.
"""

METHODS: tuple[Method, ...] = get_args(Method)

NUMBER_KINDS = "biufc"
ORDERED_KINDS = "biufmM"

PART_NBYTES = 2 << 20
"""The size of the values that are reduced at once. Intermediate results need up to ten times as much."""


def check_method(dtype: np.dtype[Any], method: Method) -> None:
    """Raise UnsupportedError if a method is not defined for a data type."""
    kinds = {"mean": NUMBER_KINDS, "nearest": None, "mode": ORDERED_KINDS + "SU", "median": "biuf"}.get(
        method, ORDERED_KINDS
    )
    if kinds is not None and dtype.kind not in kinds:
        raise UnsupportedError(
            f"the method {method} is not defined for data type {dtype}; use the method nearest"
        )


def downsample(values: Values, factors: Sequence[int], method: Method) -> Values:
    """Return an array of shape ceil(length / factor) with the data type of ``values``.

    ``factors`` has one positive integer for each dimension. The result is ``values`` if all are 1. Raises
    UnsupportedError as ``check_method``.
    """
    check_method(values.dtype, method)
    if all(factor == 1 for factor in factors):
        return values
    if method == "nearest":
        return np.ascontiguousarray(values[tuple(slice(None, None, factor) for factor in factors)])
    reduce = REDUCTIONS[method]
    shape = tuple(-(-length // factor) for length, factor in zip(values.shape, factors, strict=True))
    result = np.empty(shape, values.dtype)
    sides = _part_sides(values.shape, factors, values.itemsize)
    parts = [_parts(*axis) for axis in zip(values.shape, factors, sides, strict=True)]
    for part in product(*parts):
        source = tuple(axis[0] for axis in part)
        target = tuple(axis[1] for axis in part)
        result[target] = reduce(values[source], tuple(axis[2] for axis in part))
    return result


def _part_sides(shape: Sequence[int], factors: Sequence[int], itemsize: int) -> list[int]:
    """Return the number of windows along each dimension that are reduced at once: the first dimensions are divided."""
    sides = []
    before = max(1, itemsize)
    for axis, (length, factor) in enumerate(zip(shape, factors, strict=True)):
        window_nbytes = before * factor * prod(shape[axis + 1 :])
        sides.append(max(1, min(-(-length // factor), PART_NBYTES // max(1, window_nbytes))))
        before *= sides[-1] * factor
    return sides


def _parts(length: int, factor: int, side: int) -> list[tuple[slice, slice, int]]:
    """Return (source, target, window length) of at most ``side`` whole windows of a dimension each, and of the smaller
    last window.
    """
    count, rest = divmod(length, factor)
    parts = []
    for start in range(0, count, side):
        stop = min(start + side, count)
        parts.append((slice(start * factor, stop * factor), slice(start, stop), factor))
    if rest:
        parts.append((slice(count * factor, length), slice(count, count + 1), rest))
    return parts


def _combine(values: Values, factors: Sequence[int], combine: np.ufunc, dtype: np.dtype[Any]) -> Values:
    """Return a binary function such as ``np.add`` applied to the elements of each window, computed in ``dtype``."""
    result = values
    for axis, factor in enumerate(factors):
        if factor == 1:
            continue
        elements = [
            result[(slice(None),) * axis + (slice(offset, None, factor),)] for offset in range(factor)
        ]
        result = combine(elements[0], elements[1], dtype=dtype)
        for element in elements[2:]:
            combine(result, element, out=result)
    return result.astype(dtype, copy=False)


def _windows(values: Values, factors: Sequence[int]) -> Values:
    """Return a new array with the elements of each window along an additional last dimension."""
    ndim = values.ndim
    split = [
        part for pair in zip(values.shape, factors, strict=True) for part in (pair[0] // pair[1], pair[1])
    ]
    order = (*range(0, 2 * ndim, 2), *range(1, 2 * ndim, 2))
    shape = (*(n // f for n, f in zip(values.shape, factors, strict=True)), prod(factors))
    windows: Values = np.array(values.reshape(split).transpose(order)).reshape(shape)
    return windows


# -- mean ------------------------------------------------------------------------------------------------------


def _mean(values: Values, factors: Sequence[int]) -> Values:
    dtype = values.dtype
    count = prod(factors)
    if dtype.kind in "fc":
        return _float_mean(values, factors, count).astype(dtype)
    if dtype.itemsize == 8:
        return _wide_integer_mean(values, factors, count)
    kind = "i" if dtype.kind == "i" else "u"
    # A type of twice the size holds the sum of as many elements as the smaller type has values.
    size = dtype.itemsize * 2 if count < 1 << (8 * dtype.itemsize - 1) else 8
    total = _combine(values, factors, np.add, np.dtype(f"{kind}{size}"))
    total += count // 2
    if count & (count - 1):
        total //= count
    else:
        total >>= count.bit_length() - 1
    return total.astype(dtype)


def _wide_integer_mean(values: Values, factors: Sequence[int], count: int) -> Values:
    """Return the exact mean of 64-bit integers, whose sum may not fit into 64 bits."""
    dtype = values.dtype.newbyteorder("=")
    divisor = dtype.type(count)
    quotients, remainders = np.divmod(values.astype(dtype, copy=False), divisor)
    total = _combine(remainders, factors, np.add, dtype)
    mean: Values = _combine(quotients, factors, np.add, dtype) + (total + dtype.type(count // 2)) // divisor
    return mean


def _float_mean(values: Values, factors: Sequence[int], count: int) -> Values:
    dtype = np.result_type(values.dtype, np.complex128 if values.dtype.kind == "c" else np.float64)
    with np.errstate(invalid="ignore", over="ignore"):
        total = _combine(values, factors, np.add, dtype)
        if not np.isnan(total).any():
            return total / count
        is_number = ~np.isnan(values)
        total = _combine(np.where(is_number, values, values.dtype.type(0)), factors, np.add, dtype)
        counts = _combine(is_number, factors, np.add, np.dtype(np.int64))
        with np.errstate(divide="ignore"):
            result: Values = total / counts
        return result


# -- order statistics ------------------------------------------------------------------------------------------


def _median(values: Values, factors: Sequence[int]) -> Values:
    windows = _windows(values, factors)
    windows.sort(axis=-1)  # NaN is sorted to the end
    if windows.dtype.kind == "f":
        return _float_median(windows)
    count = windows.shape[-1]
    low, high = windows[..., (count - 1) // 2], windows[..., count // 2]
    if windows.dtype.kind == "b":
        return np.logical_or(low, high)
    # The distance of two signed integers fits into the unsigned type; adding half of it wraps around correctly.
    unsigned = np.dtype(f"u{windows.dtype.itemsize}")
    low, distance = low.astype(unsigned), high.astype(unsigned) - low.astype(unsigned)
    middle: Values = (low + distance // 2 + distance % 2).astype(windows.dtype)
    return middle


def _float_median(windows: Values) -> Values:
    counts = windows.shape[-1] - np.count_nonzero(np.isnan(windows), axis=-1)
    low = np.take_along_axis(windows, np.maximum(counts - 1, 0)[..., None] // 2, axis=-1)[..., 0]
    high = np.take_along_axis(windows, np.minimum(counts // 2, windows.shape[-1] - 1)[..., None], axis=-1)
    with np.errstate(invalid="ignore", over="ignore"):
        middle = low.astype(np.float64) / 2 + high[..., 0].astype(np.float64) / 2
    return np.where(low == high[..., 0], low, middle).astype(windows.dtype)


def _mode(values: Values, factors: Sequence[int]) -> Values:
    windows = _windows(values, factors)
    windows.sort(axis=-1)
    best: Values = windows[..., 0].copy()
    longest = np.ones(best.shape, np.int64)
    run = np.ones(best.shape, np.int64)
    for position in range(1, windows.shape[-1]):
        element = windows[..., position]
        run = np.where(element == windows[..., position - 1], run + 1, 1)
        is_longer = run > longest  # an equally long run of a larger value does not replace the mode
        np.copyto(longest, run, where=is_longer)
        np.copyto(best, element, where=is_longer)
    return best


def _maximum(values: Values, factors: Sequence[int]) -> Values:
    return _combine(values, factors, np.fmax, values.dtype.newbyteorder("="))


def _minimum(values: Values, factors: Sequence[int]) -> Values:
    return _combine(values, factors, np.fmin, values.dtype.newbyteorder("="))


REDUCTIONS: dict[Method, Callable[[Values, Sequence[int]], Values]] = {
    "mean": _mean,
    "median": _median,
    "max": _maximum,
    "min": _minimum,
    "mode": _mode,
}
"""Reductions of an array whose dimensions are divided by the factors."""
