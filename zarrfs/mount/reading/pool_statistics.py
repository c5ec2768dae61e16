"""Counters of a pool of blocks."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["PoolStatistics"]


@dataclass
class PoolStatistics:
    """Counters of a pool since it was created.

    Attributes:
        hits: reads served from a block that was present or being assembled.
        assembled: blocks that were assembled.
        read_ahead: blocks whose assembly was started before a read requested them.
        evicted: blocks that were dropped to make room.
        recycled: blocks that were assembled in the memory of an evicted one.
        stale: blocks that were dropped because the store changed.
    """

    hits: int = 0
    assembled: int = 0
    read_ahead: int = 0
    evicted: int = 0
    recycled: int = 0
    stale: int = 0
