"""Detecting chunks that contain only the fill value, which need not be stored."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["is_filled"]

Array = np.ndarray[Any, Any]


def is_filled(array: Array, fill_value: Any) -> bool:
    """Return whether every element is bitwise equal to the fill value.

    The comparison is bitwise: -0.0 differs from 0.0, and a NaN equals only a NaN with the same payload.
    """
    if array.dtype.hasobject:
        return fill_value is not None and all(_same_object(item, fill_value) for item in array.flat)
    if fill_value is None or array.size == 0:
        return False
    # Most chunks with data differ in their first element. The comparison needs an array, because a scalar has lost the
    # byte order of its dtype and the padding of fixed-length text.
    fill = np.asarray(fill_value, array.dtype)
    first: Array = array[tuple(slice(0, 1) for _ in array.shape) or Ellipsis]
    if first.tobytes() != fill.tobytes():
        return False
    itemsize = array.dtype.itemsize
    if itemsize in (1, 2, 4, 8):
        kind = f"u{itemsize}"
        bits, fill_bits = array.view(kind), fill.reshape(1).view(kind)[0]
    else:
        raw = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        bits, fill_bits = raw.reshape(-1, itemsize), np.frombuffer(fill.tobytes(), np.uint8)
    # Row by row: an image with one dark corner is not compared completely.
    if bits.ndim > 1:
        return all(bool((row == fill_bits).all()) for row in bits)
    return bool((bits == fill_bits).all())


def _same_object(item: Any, fill_value: Any) -> bool:
    return type(item) is type(fill_value) and not isinstance(item, np.ndarray) and bool(item == fill_value)
