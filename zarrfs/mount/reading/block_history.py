"""The recorded use of blocks that are not in memory."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from typing import TypeVar

from zarrfs.mount.reading.block import Block, units_of

__all__ = ["BlockHistory"]

MAX_DIRECT = 256
"""The maximum number of recorded blocks of which parts were read without the block."""

MAX_DROPPED = 1024
"""The maximum number of recorded blocks that were dropped before they were read completely."""

MAX_READ = 16_384
"""The maximum number of recorded blocks that were dropped after they were read completely."""

V = TypeVar("V")


class BlockHistory:
    """The recorded use of blocks that are not in memory. The caller holds the lock of the pool."""

    def __init__(self) -> None:
        self._direct: OrderedDict[Hashable, int] = OrderedDict()
        self._dropped: OrderedDict[Hashable, None] = OrderedDict()
        self._read: OrderedDict[Hashable, None] = OrderedDict()

    def record_direct_read(self, key: Hashable, nbytes: int, start: int, stop: int) -> None:
        """Record that a range of a block of ``nbytes`` bytes was read without the block."""
        units = self._direct.pop(key, 0) | units_of(start, stop, nbytes)
        _remember(self._direct, key, units, MAX_DIRECT)

    def record_drop(self, key: Hashable, block: Block) -> None:
        """Record that a block was dropped to make room, or to use its memory again."""
        if block.is_read:
            _remember(self._read, key, None, MAX_READ)
        elif block.served_nbytes:
            _remember(self._dropped, key, None, MAX_DROPPED)

    def was_dropped_early(self, key: Hashable) -> bool:
        """Whether the block was dropped before it was read completely."""
        return key in self._dropped

    def was_read(self, key: Hashable) -> bool:
        """Whether the block was dropped after it was read completely."""
        return key in self._read

    def begin(self, key: Hashable, block: Block) -> None:
        """Apply the recorded use to a block that is added to the pool, and remove the record."""
        self._dropped.pop(key, None)
        block.units = self._direct.pop(key, 0)
        # The block is read a second time, so the kernel has dropped the pages that it cached at the first read.
        block.is_kept = block.is_kept or key in self._read

    def clear(self) -> None:
        """Forget everything."""
        for keys in (self._direct, self._dropped, self._read):
            keys.clear()


def _remember(keys: OrderedDict[Hashable, V], key: Hashable, value: V, max_count: int) -> None:
    keys[key] = value
    keys.move_to_end(key)
    if len(keys) > max_count:
        keys.popitem(last=False)
