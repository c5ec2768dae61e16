"""Casting numbers from one data type to another with nothing left to chance: rounding, range and single values as said.

Pure NumPy; the small data types are those of ml_dtypes. Used by ``cast_value``.
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
    """Tell whether this is an integer data type."""
    return dtype.kind in "iu" or dtype.name in SMALL_INTEGERS


def is_number(dtype: np.dtype[Any]) -> bool:
    """Tell whether this is an integer or a real float."""
    return is_integer(dtype) or dtype.kind == "f" or _is_small_float(dtype)


def _is_small_float(dtype: np.dtype[Any]) -> bool:
    # Scales of powers of two, float8_e8m0fnu, have neither zero nor sign: no number has its place in them.
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

    Values of ``scalar_map`` become what it says, NaN matching NaN. Of the others integers are rounded as ``rounding``
    says; those out of range are an error, or clamped, or for integers wrapped. Raises CodecError naming the first value
    that has no place.
    """
    # A signalling NaN is nothing to warn of.
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
    left = np.ones(array.shape, np.bool_)
    for old, new in scalar_map:
        found = np.isnan(array) if old != old else array == old
        found &= left
        result[found] = new
        left &= ~found
    result[left] = _cast(array[left], target, rounding, out_of_range)
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


def _refuse(array: Numbers, bad: Numbers, target: np.dtype[Any], why: str) -> CodecError:
    return CodecError(
        f"{int(bad.sum())} values cannot be cast from {array.dtype} to {target}: {array[bad].flat[0]!s} {why}"
    )


def _integer_to_integer(array: Numbers, target: np.dtype[Any], out_of_range: str | None) -> Numbers:
    own, other = _bounds(array.dtype), _bounds(target)
    low, high = max(own[0], other[0]), min(own[1], other[1])
    kind = array.dtype.type
    if out_of_range == "clamp":
        return np.clip(array, kind(low), kind(high)).astype(target)
    if out_of_range is None:
        bad = (array < kind(low)) | (array > kind(high))
        if bad.any():
            raise _refuse(array, bad, target, "is out of range")
    return _wrapped(array, target)


def _wrapped(array: Numbers, target: np.dtype[Any]) -> Numbers:
    """Return integers modulo the number of values that the data type has."""
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
    missing = np.isnan(array)
    if missing.any():
        raise _refuse(array, missing, target, "has no integer; a scalar_map can say what it becomes")
    with np.errstate(invalid="ignore"):  # infinities are told below
        whole = _rounded(array.astype(np.float64), rounding)
    least, most = _bounds(target)
    # Both bounds are powers of two or zero, and so exact as floats.
    under, over = whole < float(least), whole >= float(most + 1)
    bad = under | over
    wide = np.dtype(np.int8) if target.name in SMALL_INTEGERS else target
    if not bad.any():
        return whole.astype(wide).astype(target)
    if out_of_range is None:
        raise _refuse(array, bad, target, "is out of range")
    if out_of_range == "clamp":
        result = np.where(bad, 0.0, whole).astype(wide)
        result[under], result[over] = least, most
        return result.astype(target)
    endless = np.isinf(whole)
    if endless.any():
        raise _refuse(array, endless, target, "cannot be wrapped")
    size = np.abs(np.fmod(whole, 2.0 ** (8 * wide.itemsize))).astype(np.uint64)
    return _wrapped(np.where(whole < 0, np.uint64(0) - size, size), target)


def _to_float(array: Numbers, target: np.dtype[Any], rounding: str, out_of_range: str | None) -> Numbers:
    small = _is_small_float(target)
    with np.errstate(over="ignore"):
        result = (_rounded_to_odd(array) if small else array).astype(target)
    if small:
        missing = (
            np.isnan(array) if array.dtype.kind == "f" else np.zeros(array.shape, np.bool_)
        ) & ~np.isnan(result)
        if missing.any():
            raise _refuse(array, missing, target, "has no place; a scalar_map can say what it becomes")
    over = _beyond(array, result, target)
    if over.any():
        if out_of_range is None:
            raise _refuse(array, over, target, "is out of range")
        largest = _limits(target)
        with np.errstate(invalid="ignore"):
            ends = np.where(array > 0, largest[1], largest[0])
        result = np.where(over, ends, result).astype(target)
    if rounding == "nearest-even" or (not small and np.can_cast(array.dtype, target)):
        return result
    return _rerounded(array, result, rounding, over)


def _limits(target: np.dtype[Any]) -> tuple[Any, Any]:
    """Return the least and the greatest finite number of the float data type."""
    if not _is_small_float(target):
        return np.finfo(target).min, np.finfo(target).max
    import ml_dtypes

    info = ml_dtypes.finfo(target)
    return info.min, info.max


def _beyond(array: Numbers, result: Numbers, target: np.dtype[Any]) -> Numbers:
    """Tell which values leave the range of the float data type: those that became infinite, or what stands for it where
    there is no infinity (NaN, or the last number).
    """
    if not _is_small_float(target):
        finite = np.isfinite(array) if array.dtype.kind == "f" else True
        return np.asarray(np.isinf(result) & finite)
    with np.errstate(over="ignore", invalid="ignore"):
        infinite = np.isinf(np.array([np.inf], np.float32).astype(target))[0]
        least, most = (float(limit) for limit in _limits(target))
        outside = (array < least) | (array > most)
    if infinite:
        return np.asarray(outside & np.isinf(result) & np.isfinite(array))
    rounds_back = np.isfinite(result) & np.isfinite(array)
    step = _step(target)
    near = (array > least - step) & (array < most + step)
    return np.asarray(outside & ~(rounds_back & near))


def _step(target: np.dtype[Any]) -> float:
    """Return half the distance of the two largest numbers: what is less far beyond the last rounds to it."""
    most = _limits(target)[1]
    return (float(most) - float(np.nextafter(np.array([most], target), np.array([0], target))[0])) / 2


def _rounded_to_odd(array: Numbers) -> Numbers:
    """Return the array as float32, what is inexact rounded to the neighbour with an odd last bit.

    What is then rounded to fewer bits comes out as if it had been rounded once.
    """
    if array.dtype == np.float32 or np.can_cast(array.dtype, np.float32):
        return array.astype(np.float32)
    with np.errstate(over="ignore"):
        nearest = array.astype(np.float32)
    exact, found = array.astype(np.longdouble), nearest.astype(np.longdouble)
    even = nearest.view(np.uint32) & 1 == 0
    goal = np.where(exact > found, np.float32(np.inf), np.float32(-np.inf))
    inexact = (exact != found) & np.isfinite(nearest)
    return np.where(inexact & even, np.nextafter(nearest, goal), nearest).astype(np.float32)


def _rerounded(array: Numbers, nearest: Numbers, rounding: str, skipped: Numbers) -> Numbers:
    """Move what was rounded to the nearest to where another rule says."""
    # Wide enough for both, on most machines for 64-bit integers too.
    wide = np.longdouble
    small = _is_small_float(nearest.dtype)
    exact = array.astype(wide)
    found = nearest.astype(np.float32).astype(wide) if small else nearest.astype(wide)
    down, up = (np.full(nearest.shape, end, nearest.dtype) for end in _limits(nearest.dtype))
    zero = np.zeros(nearest.shape, nearest.dtype)
    if rounding == "towards-zero":
        wrong, goal = np.abs(found) > np.abs(exact), zero
    elif rounding == "towards-positive":
        wrong, goal = found < exact, up
    elif rounding == "towards-negative":
        wrong, goal = found > exact, down
    else:
        goal = np.where(exact < 0, down, up)
        further = np.nextafter(nearest, goal)
        beyond = further.astype(np.float32).astype(wide) if small else further.astype(wide)
        wrong = (np.abs(found) < np.abs(exact)) & (np.abs(exact - found) == np.abs(beyond - exact))
    wrong &= ~skipped
    return np.where(wrong, np.nextafter(nearest, goal), nearest).astype(nearest.dtype)
