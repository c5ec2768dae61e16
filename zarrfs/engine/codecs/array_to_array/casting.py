"""Casting numbers between data types with explicit rules for rounding, overflow and single values.

The data types of fewer than 8 bits and the small floats are those of ml_dtypes. Used by ``cast_value``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from zarrfs.engine.codecs.base import CodecError

__all__ = ["OUT_OF_RANGE", "ROUNDING", "cast_array", "is_integer", "is_number"]

Numbers = np.ndarray[Any, Any]

ROUNDING = ("nearest-even", "towards-zero", "towards-positive", "towards-negative", "nearest-away")
OUT_OF_RANGE = ("clamp", "wrap")

SMALL_INTEGERS = {"int2": (2, True), "int4": (4, True), "uint2": (2, False), "uint4": (4, False)}


def is_integer(dtype: np.dtype[Any]) -> bool:
    """Return whether this is an integer data type."""
    return dtype.kind in "iu" or dtype.name in SMALL_INTEGERS


def is_number(dtype: np.dtype[Any]) -> bool:
    """Return whether this is an integer or real floating-point data type that can be cast."""
    return is_integer(dtype) or dtype.kind == "f" or _is_small_float(dtype)


def _is_small_float(dtype: np.dtype[Any]) -> bool:
    # float8_e8m0fnu holds powers of two. It has neither zero nor sign, so no range of numbers can be cast to it.
    return (
        dtype.isbuiltin == 2 and dtype.name.startswith(("bfloat", "float")) and dtype.name != "float8_e8m0fnu"
    )


def cast_array(
    array: Numbers,
    target: np.dtype[Any],
    rounding: str,
    out_of_range: str | None,
    scalar_map: Sequence[tuple[Any, Any]] = (),
) -> Numbers:
    """Return the array in another integer or float data type.

    Values that ``scalar_map`` contains are replaced; NaN matches NaN. The others are rounded according to ``rounding``.
    Values out of range raise CodecError with the first such value (``out_of_range`` None), are clamped, or wrapped.
    Wrapping applies to integer targets; for float targets it raises CodecError.
    """
    # NumPy warns of a signalling NaN.
    with np.errstate(invalid="ignore"):
        return _cast_mapped(array, target, rounding, out_of_range, scalar_map)


def _cast_mapped(
    array: Numbers,
    target: np.dtype[Any],
    rounding: str,
    out_of_range: str | None,
    scalar_map: Sequence[tuple[Any, Any]],
) -> Numbers:
    if not scalar_map:
        return _cast(array, target, rounding, out_of_range)
    result = np.empty(array.shape, target)
    unmapped = np.ones(array.shape, np.bool_)
    for old, new in scalar_map:
        matches = np.isnan(array) if old != old else array == old
        matches &= unmapped
        result[matches] = new
        unmapped &= ~matches
    result[unmapped] = _cast(array[unmapped], target, rounding, out_of_range)
    return result


def _cast(array: Numbers, target: np.dtype[Any], rounding: str, out_of_range: str | None) -> Numbers:
    if array.dtype == target:
        return array
    if array.dtype.name in SMALL_INTEGERS:
        array = array.astype(np.int8)
    elif _is_small_float(array.dtype):
        array = array.astype(np.float32)
    if not is_integer(target):
        return _to_float(array, target, rounding, out_of_range)
    if array.dtype.kind == "f":
        return _float_to_integer(array, target, rounding, out_of_range)
    return _integer_to_integer(array, target, out_of_range)


def _bounds(dtype: np.dtype[Any]) -> tuple[int, int]:
    if dtype.name in SMALL_INTEGERS:
        bits, signed = SMALL_INTEGERS[dtype.name]
        return (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if signed else (0, (1 << bits) - 1)
    info = np.iinfo(dtype)
    return int(info.min), int(info.max)


def _cast_error(array: Numbers, invalid: Numbers, target: np.dtype[Any], reason: str) -> CodecError:
    return CodecError(
        f"{int(invalid.sum())} values cannot be cast from {array.dtype} to {target}: "
        f"{array[invalid].flat[0]!s} {reason}"
    )


def _integer_to_integer(array: Numbers, target: np.dtype[Any], out_of_range: str | None) -> Numbers:
    own, other = _bounds(array.dtype), _bounds(target)
    low, high = max(own[0], other[0]), min(own[1], other[1])
    kind = array.dtype.type
    if out_of_range == "clamp":
        return np.clip(array, kind(low), kind(high)).astype(target)
    if out_of_range is None:
        invalid = (array < kind(low)) | (array > kind(high))
        if invalid.any():
            raise _cast_error(array, invalid, target, "is out of range")
    return _wrapped(array, target)


def _wrapped(array: Numbers, target: np.dtype[Any]) -> Numbers:
    """Return integers modulo the number of values of the data type."""
    if target.name not in SMALL_INTEGERS:
        return array.astype(target)
    bits, signed = SMALL_INTEGERS[target.name]
    low = array.astype(np.uint8) & np.uint8((1 << bits) - 1)
    if not signed:
        return low.astype(target)
    half = np.int8(1 << (bits - 1))
    return ((low.astype(np.int8) ^ half) - half).astype(target)


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
    is_nan = np.isnan(array)
    if is_nan.any():
        raise _cast_error(array, is_nan, target, "has no integer value; add an entry for it to scalar_map")
    with np.errstate(invalid="ignore"):  # Infinities are out of range and handled below.
        rounded = _rounded(array.astype(np.float64), rounding)
    low, high = _bounds(target)
    # low and high + 1 are powers of two or zero, and therefore exact as floats.
    under, over = rounded < float(low), rounded >= float(high + 1)
    invalid = under | over
    wide = np.dtype(np.int8) if target.name in SMALL_INTEGERS else target
    if not invalid.any():
        return rounded.astype(wide).astype(target)
    if out_of_range is None:
        raise _cast_error(array, invalid, target, "is out of range")
    if out_of_range == "clamp":
        result = np.where(invalid, 0.0, rounded).astype(wide)
        result[under], result[over] = low, high
        return result.astype(target)
    infinite = np.isinf(rounded)
    if infinite.any():
        raise _cast_error(array, infinite, target, "cannot be wrapped")
    size = np.abs(np.fmod(rounded, 2.0 ** (8 * wide.itemsize))).astype(np.uint64)
    return _wrapped(np.where(rounded < 0, np.uint64(0) - size, size), target)


def _to_float(array: Numbers, target: np.dtype[Any], rounding: str, out_of_range: str | None) -> Numbers:
    small = _is_small_float(target)
    with np.errstate(over="ignore"):
        result = (_rounded_to_odd(array) if small else array).astype(target)
    if small and array.dtype.kind == "f":
        lost_nan = np.isnan(array) & ~np.isnan(result)
        if lost_nan.any():
            raise _cast_error(
                array, lost_nan, target, "is not in the target; add an entry for it to scalar_map"
            )
    overflow = _overflow(array, result, target)
    if overflow.any():
        if out_of_range != "clamp":
            raise _cast_error(array, overflow, target, "is out of range")
        low, high = _limits(target)
        with np.errstate(invalid="ignore"):
            ends = np.where(array > 0, high, low)
        result = np.where(overflow, ends, result).astype(target)
    if rounding == "nearest-even" or (not small and _is_exact(array.dtype, target)):
        return result
    return _rerounded(array, result, rounding, overflow)


def _is_exact(source: np.dtype[Any], target: np.dtype[Any]) -> bool:
    """Return whether every number of ``source`` is one of the float data type ``target``.

    NumPy regards casts of 64-bit integers to float64 as safe, although they are not exact.
    """
    has_64_bits = source.kind in "iu" and source.itemsize == 8
    return np.can_cast(source, target) and not has_64_bits


def _limits(target: np.dtype[Any]) -> tuple[Any, Any]:
    """Return the smallest and the largest finite number of the float data type."""
    if not _is_small_float(target):
        return np.finfo(target).min, np.finfo(target).max
    import ml_dtypes

    info = ml_dtypes.finfo(target)
    return info.min, info.max


def _overflow(array: Numbers, result: Numbers, target: np.dtype[Any]) -> Numbers:
    """Return which values are outside of the range of the float data type ``target``.

    Their result is infinite, or, for a data type without infinity, NaN or the largest number.
    """
    if not _is_small_float(target):
        finite = np.isfinite(array) if array.dtype.kind == "f" else True
        return np.asarray(np.isinf(result) & finite)
    with np.errstate(over="ignore", invalid="ignore"):
        has_infinity = np.isinf(np.array([np.inf], np.float32).astype(target))[0]
        low, high = (float(limit) for limit in _limits(target))
        outside = (array < low) | (array > high)
    if has_infinity:
        return np.asarray(outside & np.isinf(result) & np.isfinite(array))
    stays_finite = np.isfinite(result) & np.isfinite(array)
    half_step = _half_step(target)
    rounds_to_limit = (array > low - half_step) & (array < high + half_step)
    return np.asarray(outside & ~(stays_finite & rounds_to_limit))


def _half_step(target: np.dtype[Any]) -> float:
    """Return half the distance of the two largest numbers. A number that exceeds the largest by less rounds to it."""
    high = _limits(target)[1]
    return (float(high) - float(np.nextafter(np.array([high], target), np.array([0], target))[0])) / 2


def _rounded_to_odd(array: Numbers) -> Numbers:
    """Return the array as float32. Inexact values are rounded to the neighbour with an odd last bit.

    Rounding the result to fewer bits is then equal to rounding once, without the error of double rounding.
    """
    if array.dtype == np.float32 or np.can_cast(array.dtype, np.float32):
        return array.astype(np.float32)
    with np.errstate(over="ignore"):
        nearest = array.astype(np.float32)
    exact, rounded = array.astype(np.longdouble), nearest.astype(np.longdouble)
    even = nearest.view(np.uint32) & 1 == 0
    direction = np.where(exact > rounded, np.float32(np.inf), np.float32(-np.inf))
    inexact = (exact != rounded) & np.isfinite(nearest)
    return np.where(inexact & even, np.nextafter(nearest, direction), nearest).astype(np.float32)


def _rerounded(array: Numbers, nearest: Numbers, rounding: str, skipped: Numbers) -> Numbers:
    """Return the array rounded according to another rule. ``nearest`` is the array rounded to the nearest numbers.

    Elements where ``skipped`` is true are unchanged.
    """
    # Exact for both, on most machines also for 64-bit integers.
    wide = np.longdouble
    small = _is_small_float(nearest.dtype)
    exact = array.astype(wide)
    rounded = nearest.astype(np.float32).astype(wide) if small else nearest.astype(wide)
    down, up = (np.full(nearest.shape, end, nearest.dtype) for end in _limits(nearest.dtype))
    zero = np.zeros(nearest.shape, nearest.dtype)
    if rounding == "towards-zero":
        wrong, direction = np.abs(rounded) > np.abs(exact), zero
    elif rounding == "towards-positive":
        wrong, direction = rounded < exact, up
    elif rounding == "towards-negative":
        wrong, direction = rounded > exact, down
    else:
        direction = np.where(exact < 0, down, up)
        neighbour = np.nextafter(nearest, direction)
        away = neighbour.astype(np.float32).astype(wide) if small else neighbour.astype(wide)
        wrong = (np.abs(rounded) < np.abs(exact)) & (np.abs(exact - rounded) == np.abs(away - exact))
    wrong &= ~skipped
    return np.where(wrong, np.nextafter(nearest, direction), nearest).astype(nearest.dtype)
