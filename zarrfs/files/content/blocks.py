"""The buffer of a mount: blocks of virtual files in bounded memory, shared by all open files.

A block is a range of a flat byte stream that is assembled by one read of the engine, so that each chunk is decoded once
however small the requests of the kernel are. ``block_reader`` divides streams into blocks.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Hashable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import NamedTuple

from zarrfs.engine.parallel import CORES, limit_threads
from zarrfs.files.content.block import Block, Retention, new_memory
from zarrfs.files.content.freshness import REVALIDATION_SECONDS
from zarrfs.files.content.streams import Bytes
from zarrfs.logs import logger

__all__ = ["DEFAULT_IDLE_NBYTES", "DEFAULT_POOL_NBYTES", "BlockPool", "BlockRequest", "PoolStatistics"]

DEFAULT_POOL_NBYTES = 64 << 20
DEFAULT_IDLE_NBYTES = 40 << 20
"""The limits of the memory for blocks if it is not a part of the cache. A pass may need 64 MiB in addition to the
cache, and the encoded chunks, the buffers of the decoders and of the requests need some 20 MiB of them.
"""

MIN_BLOCKS_PER_POOL = 2
"""The pool has room for two blocks: one is read while the next one is assembled."""

MAX_BLOCK_NBYTES = 64 << 20
"""Assembling a larger block would delay the first byte too long."""

MAX_READ_NBYTES = 16 << 20
"""Blocks that were read completely and are not kept may occupy this many bytes; the kernel has cached their pages. The
memory of further ones is reused: new memory, which the kernel fills with zeros, costs about as much as decoding. A pass
over 268 MB needs 0.26 s of processor time with reused memory, 0.39 s with new memory.
"""

KEPT_SECONDS_PER_NBYTE = 10 / (1 << 30)
"""A block is kept if its assembly took at least this time per byte. Assembling it again would be slow."""

MAX_RECORDED = 16_384
"""The maximum number of dropped blocks whose use is remembered."""

MAX_WAITING = 32
MAX_WAITING_SECONDS = 2.0
"""If all blocks are in use, this many reads wait this long for one of them."""

POLL_SECONDS = 0.02
"""The interval at which waiting reads search for blocks that are no longer in use."""

HURRIED_BLOCKS = 16
"""After a request had to wait for a block that was read ahead, this many blocks are read ahead with all processors."""


class BlockRequest(NamedTuple):
    """A block, and how it is assembled.

    Attributes:
        key: identifies the block among all blocks of the pool.
        nbytes: its size.
        assemble: fills an array of ``nbytes`` bytes. Its exception is raised in all threads that wait for the block.
        version: returns the version of the data, or None where it is unknown.
        retention: how long it stays in memory after it was read completely. A block whose assembly was slow, or that is
            read again, is kept in any case.
    """

    key: Hashable
    nbytes: int
    assemble: Callable[[Bytes], None]
    version: Callable[[], Hashable | None]
    retention: Retention = Retention.KEPT


@dataclass
class PoolStatistics:
    """Counters of a pool since it was created.

    Attributes:
        hits: reads served from a block that was present or being assembled.
        assembled: blocks that were assembled.
        read_ahead: blocks whose assembly was started before a read requested them.
        evicted: blocks that were dropped to make room.
        recycled: blocks that were assembled in the memory of an evicted one.
        stale: blocks that were dropped because the store changed, or because they have no version.
    """

    hits: int = 0
    assembled: int = 0
    read_ahead: int = 0
    evicted: int = 0
    recycled: int = 0
    stale: int = 0


class BlockPool:
    """Blocks by key, in least-recently-used order, bounded in bytes. Thread-safe: one lock protects all blocks.

    A block is assembled by the first thread that requests it; other threads wait for it. Its bytes count from then on.
    A thread that has found or claimed a block is a user of it until it releases it: the memory of the block is not used
    again meanwhile.

    A block whose version is unknown is used for ``REVALIDATION_SECONDS`` after its assembly, others as long as the
    version is equal.

    If more files are read at the same time than the pool has blocks for, they take turns: a block stays until it has
    been read, and the reads of other files wait for it. Each block would otherwise be assembled again for each request.

    ``idle_nbytes`` limits the memory of blocks that are kept although no read in progress needs them, by default to the
    capacity. Two blocks may always be present.

    Attributes:
        capacity: the maximum of ``nbytes``.
        nbytes: the bytes of all blocks, including those that are being assembled.
    """

    def __init__(
        self,
        capacity: int = DEFAULT_POOL_NBYTES,
        *,
        idle_nbytes: int | None = None,
        is_immutable: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.capacity = capacity
        self.nbytes = 0
        self.is_immutable = is_immutable
        self.statistics = PoolStatistics()
        self._idle_nbytes = capacity if idle_nbytes is None else idle_nbytes
        self._clock = clock
        self._blocks: OrderedDict[Hashable, Block] = OrderedDict()
        self._dropped: OrderedDict[Hashable, bool] = OrderedDict()
        """By key of a dropped block of which something was read, whether it was read completely."""
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)
        self._waiting: deque[object] = deque()
        self._executor: ThreadPoolExecutor | None = None
        self._hurried_blocks = 0
        """The number of blocks that are read ahead next with all processors. Changed by the executor only."""
        self._is_closed = False

    @property
    def max_block_nbytes(self) -> int:
        """The size of the largest block that the pool accepts."""
        return min(MAX_BLOCK_NBYTES, self.capacity // MIN_BLOCKS_PER_POOL)

    def __contains__(self, key: Hashable) -> bool:
        """Return whether a block is present or is being assembled."""
        return key in self._blocks

    def find_current(self, key: Hashable, start: int, stop: int) -> Bytes | None:
        """Return the bytes of a block if it is present and need not be compared with the store, else None.

        The range from ``start`` to ``stop`` is the one that the caller uses. The memory of the bytes is not used again
        as long as the caller refers to it.
        """
        with self._lock:
            block = self._blocks.get(key)
            if block is None or block.data is None:
                return None
            if self._clock() - block.checked_at >= REVALIDATION_SECONDS:
                return None
            self._record_use(key, block, start, stop)
            self.statistics.hits += 1
            return block.data

    def find(self, request: BlockRequest, used: tuple[int, int], max_seconds: float) -> Bytes | None:
        """Return the bytes of a block if it is present, else None. ``used`` is the range that the caller uses.

        If it is being assembled, wait for it for at most ``max_seconds``.
        """
        block = self._find(request.key)
        if block is None:
            return None
        data = None
        try:
            if block.wait(max_seconds) and self._is_current(request, block):
                data = block.data
        finally:
            self._release(request.key, block, used if data is not None else (0, 0))
        self.statistics.hits += data is not None
        return data

    def get(self, request: BlockRequest, used: tuple[int, int] = (0, 0)) -> Bytes | None:
        """Return the bytes of a block. The caller must not change them; they stay valid after an eviction.

        Return None if the pool is full of blocks that are in use for ``MAX_WAITING_SECONDS``. ``used`` is the range of
        the block that the caller uses.
        """
        block, is_new = self._claim(request, waits=True)
        if block is None:
            return None
        data = None
        try:
            if is_new:
                self._assemble(request, block)
            else:
                self.statistics.hits += 1
                block.wait()
            if block.error is not None:
                raise block.error
            data = block.data
        finally:
            self._release(request.key, block, used if data is not None else (0, 0))
        return data

    def read_ahead(self, request: BlockRequest) -> None:
        """Start to assemble a block in the background, unless it is present or the pool is closed."""
        if request.key in self._blocks:
            return
        with self._lock:
            if self._is_closed:
                return
            if self._executor is None:
                self._executor = ThreadPoolExecutor(1, thread_name_prefix="zarrfs-read-ahead")
            executor = self._executor
        block, is_new = self._claim(request, waits=False)
        if block is not None:
            self._release(request.key, block)
        if is_new and block is not None:
            self.statistics.read_ahead += 1
            try:
                executor.submit(self._assemble_ahead, request, block)
            except RuntimeError:  # The pool was closed at the same time.
                self._discard(request.key, block)
                block.error = RuntimeError("the block pool is closed")
                block.done.set()

    def clear(self) -> None:
        """Drop all blocks, and forget how they were used."""
        with self._lock:
            self._blocks.clear()
            self._dropped.clear()
            self.nbytes = 0

    def close(self) -> None:
        """Drop all blocks and stop reading ahead. Waits for a block that is being read ahead."""
        with self._lock:
            self._is_closed = True
            executor, self._executor = self._executor, None
        if executor is not None:
            executor.shutdown(wait=True)
        self.clear()

    # -- assembly ----------------------------------------------------------------------------------------------

    def _assemble_ahead(self, request: BlockRequest, block: Block) -> None:
        """Assemble a block before it is read. Leave a processor to the requests, unless they wait for such blocks."""
        has_time = not self._hurried_blocks and block.retention is Retention.READ_ONCE
        with limit_threads(max(1, CORES - 1) if has_time else None):
            self._assemble(request, block)
        self._hurried_blocks = HURRIED_BLOCKS if block.is_awaited else max(0, self._hurried_blocks - 1)

    def _assemble(self, request: BlockRequest, block: Block) -> None:
        try:
            # The version is taken first, so that a change during the read makes the block stale, never current.
            block.version = request.version()
            block.checked_at = self._clock()
            memory = block.unshared_memory()
            self.statistics.recycled += memory is not None
            data = new_memory(block.nbytes) if memory is None else memory
            started_at = time.perf_counter()
            request.assemble(data)
            if time.perf_counter() - started_at >= KEPT_SECONDS_PER_NBYTE * block.nbytes:
                block.keep()
            if block.version is None:
                block.checked_at = (
                    self._clock()
                )  # Otherwise a block that is assembled slowly could not be used.
            block.data = data
            self.statistics.assembled += 1
        except BaseException as error:
            block.error = error
            self._discard(request.key, block)
            logger.debug("block %r was not assembled: %s", request.key, error)
        block.done.set()

    def _is_current(self, request: BlockRequest, block: Block) -> bool:
        """Return whether a block can be used, and drop it if it cannot. It is compared with the data if that is due."""
        if block.error is not None:
            return False
        now = self._clock()
        if now - block.checked_at < REVALIDATION_SECONDS:
            return True
        if block.version is not None and request.version() == block.version:
            block.checked_at = now
            return True
        self.statistics.stale += 1
        self._discard(request.key, block)
        return False

    def _find(self, key: Hashable) -> Block | None:
        """Return the block of a key, if it is present. The caller becomes a user of it."""
        with self._lock:
            block = self._blocks.get(key)
            if block is not None:
                block.users += 1
            return block

    def _claim(self, request: BlockRequest, *, waits: bool) -> tuple[Block | None, bool]:
        """Return the current block of a key, and whether it is new, so that the caller must assemble it.

        The caller becomes a user of the block. None means that there is no room for it: all blocks are in use, with
        ``waits`` for ``MAX_WAITING_SECONDS``.
        """
        stale = self._find(request.key)
        if stale is not None:
            if not stale.done.is_set() or self._is_current(request, stale):
                return stale, False
            self._release(request.key, stale)
        with self._lock:
            memory: list[Bytes] = []
            has_room = request.key not in self._blocks and self._wait_for_room(request, memory, waits=waits)
            present = self._blocks.get(request.key)
            if present is not None:  # Another thread assembles it.
                present.users += 1
                return present, False
            return (self._add(request, memory), True) if has_room else (None, False)

    def _release(self, key: Hashable, block: Block, used: tuple[int, int] = (0, 0)) -> None:
        """End the use of a block, of which the range ``used`` was read."""
        with self._lock:
            block.users -= 1
            if used[1]:
                self._record_use(key, block, *used)

    def _discard(self, key: Hashable, block: Block) -> None:
        """Remove a block that cannot be used, if it is present."""
        with self._lock:
            if self._blocks.get(key) is block:
                del self._blocks[key]
                self.nbytes -= block.nbytes

    # -- the blocks; the lock is held --------------------------------------------------------------------------

    def _record_use(self, key: Hashable, block: Block, start: int, stop: int) -> None:
        block.mark_read(start, stop)
        if key in self._blocks:
            self._blocks.move_to_end(key)

    def _add(self, request: BlockRequest, memory: list[Bytes]) -> Block:
        """Add a new block, of which the caller becomes a user."""
        block = Block(request.nbytes, request.retention, 1, memory[0] if memory else None)
        if self._dropped.pop(request.key, False):
            block.keep()  # It is read a second time, so the kernel has dropped the pages that it cached.
        self._blocks[request.key] = block
        self.nbytes += request.nbytes
        return block

    def _wait_for_room(self, request: BlockRequest, memory: list[Bytes], *, waits: bool) -> bool:
        """Make room for a block that is not present. Return whether there is room.

        With ``waits`` wait for it, in the order of the requests, until the time limit or until another thread assembles
        the block.
        """
        key, nbytes = request.key, request.nbytes
        was_read = self._dropped.get(key)
        if was_read is False and self.nbytes + nbytes > self.capacity:
            # It is read too slowly to be kept. Assembling it for each request would cost more than direct reads.
            return False
        if request.retention is Retention.READ_ONCE and not was_read:
            self._drop_read_blocks(nbytes, memory)
        if not self._waiting and self._make_room(nbytes, memory):
            return True
        if not waits or nbytes > self.capacity or len(self._waiting) >= MAX_WAITING:
            return False
        ticket = object()
        self._waiting.append(ticket)
        try:
            deadline = time.monotonic() + MAX_WAITING_SECONDS
            while time.monotonic() < deadline and not self._is_closed and key not in self._blocks:
                if self._waiting[0] is ticket and self._make_room(nbytes, memory):
                    return True
                self._changed.wait(POLL_SECONDS)
        finally:
            self._waiting.remove(ticket)
            self._changed.notify_all()
        return False

    def _make_room(self, nbytes: int, memory: list[Bytes]) -> bool:
        """Drop the least recently used blocks that are not in use until there is room. Return whether there is.

        Blocks that are in use may occupy the whole capacity, others less. Memory of a dropped block of ``nbytes`` bytes
        that nothing refers to is added to ``memory``.
        """
        limit = min(self.capacity, max(self._idle_nbytes, 2 * nbytes))
        for key in list(self._blocks):
            if self.nbytes + nbytes <= limit:
                break
            block = self._blocks[key]
            if not block.is_in_use:
                self._drop(key, block, nbytes, memory)
        return self.nbytes + nbytes <= self.capacity

    def _drop_read_blocks(self, nbytes: int, memory: list[Bytes]) -> None:
        """Drop blocks that were read completely and are not kept, except for ``MAX_READ_NBYTES``."""
        read = [
            (key, block)
            for key, block in self._blocks.items()
            if block.retention is Retention.READ_ONCE and block.is_read
        ]
        surplus = sum(block.nbytes for _, block in read) - MAX_READ_NBYTES
        for key, block in read:
            if surplus <= 0:
                break
            surplus -= block.nbytes
            self._drop(key, block, nbytes, memory)

    def _drop(self, key: Hashable, block: Block, nbytes: int, memory: list[Bytes]) -> None:
        """Drop a block. Add its memory to ``memory`` if the next block, of ``nbytes`` bytes, can be assembled in it."""
        del self._blocks[key]
        self.nbytes -= block.nbytes
        self.statistics.evicted += 1
        is_read = block.is_read
        if is_read or block.served_nbytes:
            self._dropped[key] = is_read
            self._dropped.move_to_end(key)
            if len(self._dropped) > MAX_RECORDED:
                self._dropped.popitem(last=False)
        if block.nbytes == nbytes and not memory and (free := block.take_memory()) is not None:
            memory.append(free)
