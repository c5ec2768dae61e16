"""The byte order of dtypes, compared with the byte order that a file format prescribes."""

from __future__ import annotations

import sys
from typing import Any, Literal

import numpy as np

__all__ = ["byte_order", "differs_from"]

_ORDERS: dict[str, Literal["little", "big"]] = {"<": "little", ">": "big", "=": sys.byteorder}


def byte_order(dtype: np.dtype[Any]) -> Literal["little", "big"] | None:
    """Return the byte order of a dtype, or None if its elements have none (one byte, raw bytes, structured)."""
    return _ORDERS.get(dtype.byteorder) if dtype.itemsize > 1 else None


def differs_from(dtype: np.dtype[Any], order: Literal["little", "big"]) -> bool:
    """Return whether elements of a dtype must be swapped for a file in the byte order ``order``."""
    own = byte_order(dtype)
    return own is not None and own != order
