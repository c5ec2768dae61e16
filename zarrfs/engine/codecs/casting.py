"""Casting numbers from one data type to another with nothing left to chance: rounding, range and single values as said.

Pure NumPy. Used by ``cast_value``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from zarrfs.engine.codecs.base import CodecError

__all__ = ["OUT_OF_RANGE", "ROUNDING", "cast_array"]

Numbers = np.ndarray[Any, Any]

ROUNDING = ("nearest-even", "towards-zero", "towards-positive", "towards-negative", "nearest-away")
OUT_OF_RANGE = ("clamp", "wrap")


def cast_array(
    array: Numbers,
    target: np.dtype[Any],
    rounding: str,
    out_of_range: str | None,
    scalar_map: Sequence[tuple[Any, Any]] = (),
) -> Numbers:
    """Return the array in another integer or float data type.

    Values of ``scalar_map`` become what it says, NaN matching NaN. Of the others integers are rounded as ``rounding``
    says; those out of range are an error, or clamped, or for integers wrapped. Raises CodecError naming the first value
    that has no place.
    """
    if not scalar_map:
        return _cast(array, target, rounding, out_of_range)
    result = np.empty(array.shape, target)
    left = np.ones(array.shape, np.bool_)
    for old, new in scalar_map:
        found = np.isnan(array) if old != old else array == old
        found &= left
        result[found] = new
        left &= ~found
    result[left] = _cast(array[left], target, rounding, out_of_range)
    return result


def _cast(array: Numbers, target: np.dtype[Any], rounding: str, out_of_range: str | None) -> Numbers:
    if target.kind == "f":
        return _to_float(array, target, rounding, out_of_range)
    if array.dtype.kind == "f":
        return _float_to_integer(array, target, rounding, out_of_range)
    return _integer_to_integer(array, target, out_of_range)


def _refuse(array: Numbers, bad: Numbers, target: np.dtype[Any], why: str) -> CodecError:
    return CodecError(
        f"{int(bad.sum())} values cannot be cast from {array.dtype} to {target}: {array[bad].flat[0]!s} {why}"
    )


def _integer_to_integer(array: Numbers, target: np.dtype[Any], out_of_range: str | None) -> Numbers:
    own, other = np.iinfo(array.dtype), np.iinfo(target)
    low, high = max(int(own.min), int(other.min)), min(int(own.max), int(other.max))
    kind = array.dtype.type
    if out_of_range == "clamp":
        return np.clip(array, kind(low), kind(high)).astype(target)
    if out_of_range is None:
        bad = (array < kind(low)) | (array > kind(high))
        if bad.any():
            raise _refuse(array, bad, target, "is out of range")
    return array.astype(target)


def _rounded(array: Numbers, rounding: str) -> Numbers:
    if rounding == "nearest-even":
        return np.asarray(np.rint(array))
    if rounding == "towards-zero":
        return np.asarray(np.trunc(array))
    if rounding == "towards-positive":
        return np.asarray(np.ceil(array))
    if rounding == "towards-negative":
        return np.asarray(np.floor(array))
    whole = np.trunc(array)
    return np.asarray(whole + np.copysign(np.abs(array - whole) >= 0.5, array))


def _float_to_integer(
    array: Numbers, target: np.dtype[Any], rounding: str, out_of_range: str | None
) -> Numbers:
    missing = np.isnan(array)
    if missing.any():
        raise _refuse(array, missing, target, "has no integer; a scalar_map can say what it becomes")
    with np.errstate(invalid="ignore"):  # infinities are told below
        whole = _rounded(array.astype(np.float64), rounding)
    info = np.iinfo(target)
    # Both bounds are powers of two or zero, and so exact as floats.
    under, over = whole < float(info.min), whole >= float(int(info.max) + 1)
    bad = under | over
    if not bad.any():
        return whole.astype(target)
    if out_of_range is None:
        raise _refuse(array, bad, target, "is out of range")
    if out_of_range == "clamp":
        result = np.where(bad, 0.0, whole).astype(target)
        result[under], result[over] = info.min, info.max
        return result
    endless = np.isinf(whole)
    if endless.any():
        raise _refuse(array, endless, target, "cannot be wrapped")
    size = np.abs(np.fmod(whole, 2.0 ** (8 * target.itemsize))).astype(np.uint64)
    return np.where(whole < 0, np.uint64(0) - size, size).astype(target)


def _to_float(array: Numbers, target: np.dtype[Any], rounding: str, out_of_range: str | None) -> Numbers:
    with np.errstate(over="ignore"):
        result = array.astype(target)
    over = np.isinf(result) & (np.isfinite(array) if array.dtype.kind == "f" else True)
    if np.asarray(over).any():
        if out_of_range is None:
            raise _refuse(array, np.asarray(over), target, "is out of range")
        largest = np.finfo(target).max
        result = np.where(over, np.copysign(largest, result), result).astype(target)
    if rounding == "nearest-even" or np.can_cast(array.dtype, target):
        return result
    return _rerounded(array, result, rounding, np.asarray(over))


def _rerounded(array: Numbers, nearest: Numbers, rounding: str, skipped: Numbers) -> Numbers:
    """Move what was rounded to the nearest to where another rule says."""
    # Wide enough for both, on most machines for 64-bit integers too.
    wide = np.longdouble
    exact, found = array.astype(wide), nearest.astype(wide)
    zero, up, down = nearest.dtype.type(0), nearest.dtype.type(np.inf), nearest.dtype.type(-np.inf)
    if rounding == "towards-zero":
        wrong, goal = np.abs(found) > np.abs(exact), np.full(nearest.shape, zero)
    elif rounding == "towards-positive":
        wrong, goal = found < exact, np.full(nearest.shape, up)
    elif rounding == "towards-negative":
        wrong, goal = found > exact, np.full(nearest.shape, down)
    else:
        goal = np.where(exact < 0, down, up)
        further = np.nextafter(nearest, goal).astype(wide)
        wrong = (np.abs(found) < np.abs(exact)) & (np.abs(exact - found) == np.abs(further - exact))
    wrong &= ~skipped
    return np.where(wrong, np.nextafter(nearest, goal), nearest).astype(nearest.dtype)
