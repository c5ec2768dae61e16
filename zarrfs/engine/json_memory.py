"""Estimating the memory that parsed JSON values occupy, which is many times the size of their text."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

__all__ = ["json_memory_nbytes"]


def json_memory_nbytes(value: Any, limit: int) -> int:
    """Return the approximate number of bytes that a parsed JSON value occupies. Counting stops soon after ``limit``."""
    total = 0
    pending = [value]
    while pending and total <= limit:
        item = pending.pop()
        total += sys.getsizeof(item)
        if total > limit:
            break
        kind = type(item)
        if kind is str or kind is int or kind is float:
            continue
        if kind is dict or isinstance(item, Mapping):
            # Keys are often shared by many objects. Each occurrence is counted, so that the estimate is an upper bound.
            total += sum(map(sys.getsizeof, item))
            pending.extend(item.values())
        elif isinstance(item, list | tuple):
            pending.extend(item)
    return total
