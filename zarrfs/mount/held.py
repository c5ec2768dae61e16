"""How much memory JSON values take once they are parsed: many times the text that they come from."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

__all__ = ["held_nbytes"]


def held_nbytes(value: Any, limit: int) -> int:
    """Return about how many bytes a JSON value takes in memory. Stops counting soon after ``limit``."""
    total = 0
    pending = [value]
    while pending and total <= limit:
        item = pending.pop()
        total += sys.getsizeof(item)
        if total > limit:
            break
        if isinstance(item, Mapping):
            # Names are often shared by many objects; each is counted, which is on the safe side.
            total += sum(map(sys.getsizeof, item))
            pending.extend(item.values())
        elif isinstance(item, list | tuple):
            pending.extend(item)
    return total
