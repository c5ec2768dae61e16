"""The bounded memory of a pool of blocks: which blocks are present, who uses them, and which are dropped for others."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict, deque
from collections.abc import Hashable

from zarrfs.mount.native.library import NativeReads
from zarrfs.mount.reading.block import Block
from zarrfs.mount.reading.block_history import BlockHistory
from zarrfs.mount.reading.pool_statistics import PoolStatistics
from zarrfs.mount.reading.published_ranges import FileRange, PublishedRanges
from zarrfs.mount.reading.streams import Bytes

__all__ = ["BlockStore"]

MAX_WAITING = 32
MAX_WAITING_SECONDS = 2.0
"""If all blocks are in use, this many reads wait this long for one of them."""

MAX_READ_NBYTES = 16 << 20
"""Blocks that were read completely and are not kept may occupy this many bytes; the kernel has cached their pages. The
memory of further ones is reused: new memory, which the kernel fills with zeros, costs about as much as decoding.
"""

POLL_SECONDS = 0.02
"""The interval at which waiting reads search for blocks that are no longer in use."""


class BlockStore:
    """Blocks by key, in least-recently-used order, bounded in bytes. Thread-safe: one lock protects all blocks.

    A block is present, and its bytes count, from the moment in which a thread claims it in order to assemble it.
    A thread that has found or claimed a block is a user of it until it calls ``release``: the memory of the block is
    not used again meanwhile.

    Attributes:
        capacity: the maximum number of bytes of all blocks.
        idle_nbytes: if blocks occupy more than this, and there are more than two, those not in use are dropped.
        published: the ranges of blocks that the native library may serve.
    """

    def __init__(
        self,
        capacity: int,
        idle_nbytes: int,
        statistics: PoolStatistics,
        library: NativeReads | None = None,
    ) -> None:
        self.capacity = capacity
        self.idle_nbytes = idle_nbytes
        self._statistics = statistics
        self._blocks: OrderedDict[Hashable, Block] = OrderedDict()
        self._nbytes = 0
        self._lock = threading.RLock()
        self._changed = threading.Condition(self._lock)
        self._waiting: deque[object] = deque()
        self._history = BlockHistory()
        self._is_closing = False
        self.published = PublishedRanges(library, self._lock)

    @property
    def nbytes(self) -> int:
        """The bytes of all blocks, including those that are being assembled."""
        return self._nbytes

    def __contains__(self, key: Hashable) -> bool:
        """Return whether a block is present or is being assembled."""
        return key in self._blocks

    def find(self, key: Hashable) -> Block | None:
        """Return the block of a key, if it is present. The caller becomes a user of it."""
        with self._lock:
            block = self._blocks.get(key)
            if block is not None:
                block.users += 1
            return block

    def read(self, key: Hashable, start: int, stop: int, checked_after: float) -> Bytes | None:
        """Return the bytes of a block that is assembled and was compared with the data after a time, else None.

        The range from ``start`` to ``stop`` is recorded as used. The caller does not become a user: the memory of the
        bytes is not used again as long as it refers to them.
        """
        with self._lock:
            block = self._blocks.get(key)
            if block is None or block.data is None or block.checked_at <= checked_after:
                return None
            self._record_use(key, block, start, stop)
            return block.data

    def claim(
        self, key: Hashable, nbytes: int, stale: Block | None, *, waits: bool, is_window: bool, is_kept: bool
    ) -> tuple[Block | None, bool]:
        """Return the block of a key, and whether it is new, so that the caller must assemble it.

        The caller becomes a user of the block. None means that there is no room for it: all blocks are in use, with
        ``waits`` for ``MAX_WAITING_SECONDS``. ``stale`` is a block of the key that the caller does not use, because the
        data have changed.
        """
        with self._lock:
            present = self._blocks.get(key)
            if present is not None and present is not stale:
                present.users += 1
                return present, False
            if self._history.was_dropped_early(key) and self._nbytes + nbytes > self.capacity:
                # It is read too slowly to be kept. Assembling it for each request would cost more than direct reads.
                return None, False
            memory: list[Bytes] = []
            if not is_kept and not self._history.was_read(key):
                self._drop_read_blocks(nbytes, memory)
            if self._waiting or not self._make_room(nbytes, memory):
                if not waits or nbytes > self.capacity or len(self._waiting) >= MAX_WAITING:
                    return None, False
                present = self._wait_for_room(key, nbytes, memory)
                if present is not None:
                    present.users += 1
                    return present, False
                if not self._make_room(nbytes, memory):
                    return None, False
            block = self._blocks[key] = Block(
                nbytes, 1, memory[0] if memory else None, is_window=is_window, is_kept=is_kept
            )
            self._history.begin(key, block)
            self._nbytes += nbytes
        return block, True

    def release(self, key: Hashable, block: Block, used: tuple[int, int] = (0, 0)) -> None:
        """End the use of a block, of which the range ``used`` was read."""
        with self._lock:
            block.users -= 1
            if used[1]:
                self._record_use(key, block, *used)

    def record_direct_read(self, key: Hashable, nbytes: int, start: int, stop: int) -> None:
        """Record that a range of a block of ``nbytes`` bytes was read without the block."""
        with self._lock:
            block = self._blocks.get(key)
            if block is not None:
                block.mark_read(start, stop)
            else:
                self._history.record_direct_read(key, nbytes, start, stop)

    def discard(self, key: Hashable, block: Block) -> None:
        """Remove a block that cannot be used, if it is present."""
        with self._lock:
            if self._blocks.get(key) is block:
                self.published.retract(block)
                del self._blocks[key]
                self._nbytes -= block.nbytes

    def clear(self) -> None:
        """Remove all blocks, and forget how they were used."""
        with self._lock:
            self.published.retract_all()
            self._blocks.clear()
            self._history.clear()
            self._nbytes = 0

    def end_waiting(self) -> None:
        """Let no thread wait for room any more."""
        with self._lock:
            self._is_closing = True
            self._changed.notify_all()

    def publish(self, key: Hashable, offset: int, file: FileRange, max_age: float) -> None:
        """Let the native library serve the part of a block in a file, if the block is present and assembled.

        ``offset`` is the offset of the block in the stream. The block is compared with the data after ``max_age``.
        """
        with self._lock:
            block = self._blocks.get(key)
            if block is not None:
                self.published.publish(key, block, offset, file, block.checked_at + max_age)

    # -- internals; the lock is held ---------------------------------------------------------------------------

    def _collect_uses(self) -> None:
        """Record what was read of published blocks."""
        for key in self.published.collect():
            self._blocks.move_to_end(key)

    def _record_use(self, key: Hashable, block: Block, start: int, stop: int) -> None:
        block.mark_read(start, stop)
        block.used_at = time.monotonic()
        if key in self._blocks:
            self._blocks.move_to_end(key)

    def _wait_for_room(self, key: Hashable, nbytes: int, memory: list[Bytes]) -> Block | None:
        """Wait until there is room, in the order of the requests, or until the time limit.

        Return the block if another thread assembles it meanwhile.
        """
        ticket = object()
        self._waiting.append(ticket)
        try:
            deadline = time.monotonic() + MAX_WAITING_SECONDS
            while time.monotonic() < deadline and not self._is_closing:
                if key in self._blocks:
                    return self._blocks[key]
                if self._waiting[0] is ticket and self._make_room(nbytes, memory):
                    break
                self._changed.wait(POLL_SECONDS)
        finally:
            self._waiting.remove(ticket)
            self._changed.notify_all()
        return None

    def _make_room(self, nbytes: int, memory: list[Bytes]) -> bool:
        """Drop the least recently used blocks that are not in use until there is room. Return whether there is.

        Blocks that are in use may occupy the whole capacity, others less. Memory of a dropped block of ``nbytes`` bytes
        that nothing refers to is added to ``memory``.
        """
        self._collect_uses()
        limit = min(self.capacity, max(self.idle_nbytes, 2 * nbytes))
        for key in list(self._blocks):
            if self._nbytes + nbytes <= limit:
                break
            block = self._blocks[key]
            if not block.is_in_use:
                self._drop(key, block, nbytes, memory)
        return self._nbytes + nbytes <= self.capacity

    def _drop_read_blocks(self, nbytes: int, memory: list[Bytes]) -> None:
        """Drop blocks that were read completely and are not kept, except for ``MAX_READ_NBYTES``."""
        self._collect_uses()
        read = [(key, block) for key, block in self._blocks.items() if not block.is_kept and block.is_read]
        surplus = sum(block.nbytes for _, block in read) - MAX_READ_NBYTES
        for key, block in read:
            if surplus <= 0:
                break
            surplus -= block.nbytes
            self._drop(key, block, nbytes, memory)

    def _drop(self, key: Hashable, block: Block, nbytes: int, memory: list[Bytes]) -> None:
        """Drop a block. Add its memory to ``memory`` if the next block, of ``nbytes`` bytes, can be assembled in it."""
        self.published.retract(block)
        del self._blocks[key]
        self._nbytes -= block.nbytes
        self._statistics.evicted += 1
        self._history.record_drop(key, block)
        if block.nbytes == nbytes and not memory and (free := block.take_memory()) is not None:
            memory.append(free)
