"""Blocks of virtual files in memory, shared by all open files of a mount.

A block is a range of a flat byte stream that is assembled by one read of the engine, so that each chunk is
decoded once however small the requests of the kernel are. ``BlockPool`` bounds the memory of all blocks and
assembles each block once for all readers; ``block_reader`` divides streams into blocks.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Hashable
from concurrent.futures import ThreadPoolExecutor

from zarrfs.engine.parallel import CORES, limit_threads
from zarrfs.logs import logger
from zarrfs.mount.reading.block import Block, new_memory
from zarrfs.mount.reading.block_history import BlockHistory
from zarrfs.mount.reading.pool_statistics import PoolStatistics
from zarrfs.mount.reading.streams import REVALIDATION_SECONDS, Bytes

__all__ = ["DEFAULT_POOL_NBYTES", "MAX_REMOTE_ASSEMBLY_SECONDS", "BlockPool"]

DEFAULT_POOL_NBYTES = 64 << 20

MIN_BLOCKS_PER_POOL = 2
"""The pool has room for two blocks: one is read while the next one is assembled."""

MAX_BLOCK_NBYTES = 64 << 20
"""Assembling a larger block would delay the first byte too long."""

MAX_WAITING = 32
MAX_WAITING_SECONDS = 2.0
"""If all blocks are in use, this many reads wait this long for one of them."""

MAX_ASSEMBLY_SECONDS = 2.0
MAX_REMOTE_ASSEMBLY_SECONDS = 0.1
"""Reads that do not start an assembly wait for one in progress for this time. Then they read a part of the block
directly, which decodes chunks again. A block of a store with a high latency needs many requests, a part only few.
"""

MAX_READ_NBYTES = 16 << 20
"""Blocks that were read completely and are not kept may occupy this much. The memory of others is used again: new
memory, which the kernel fills with zeros, costs about as much as decoding, and the kernel has cached the pages.
"""

HURRIED_BLOCKS = 16
"""After a request had to wait for a block that was read ahead, this many blocks are read ahead with all processors."""

KEPT_SECONDS_PER_NBYTE = 10 / (1 << 30)
"""A block is kept if its assembly took at least this time per byte. Assembling it again would be slow."""

POLL_SECONDS = 0.02
"""The interval at which waiting reads search for blocks that are no longer in use."""


class BlockPool:
    """Blocks by key, in least-recently-used order, bounded in bytes. Thread-safe.

    A block is assembled by the first thread that asks for it; other threads wait for it. Memory of blocks that are
    being assembled counts. ``close`` waits for read-ahead that is in progress.

    A block that was assembled quickly is not kept after it was read completely, because the kernel has cached its
    pages: the next blocks use its memory. A block that is read again later is kept, if there is room.

    If more files are read at the same time than the pool has blocks for, they take turns: a block stays until it has
    been read, and the reads of other files wait for it. Each block would otherwise be assembled again for each request.
    """

    def __init__(
        self,
        capacity: int = DEFAULT_POOL_NBYTES,
        *,
        is_immutable: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.capacity = capacity
        self.is_immutable = is_immutable
        self.statistics = PoolStatistics()
        self._clock = clock
        self._blocks: OrderedDict[Hashable, Block] = OrderedDict()
        self._nbytes = 0
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)
        self._waiting: deque[object] = deque()
        self._history = BlockHistory()
        self._executor: ThreadPoolExecutor | None = None
        self._hurried_blocks = 0
        """The number of blocks that are read ahead next with all processors. Changed by the executor only."""
        self._closed = False

    @property
    def nbytes(self) -> int:
        """The bytes of all blocks, including those that are being assembled."""
        return self._nbytes

    @property
    def max_block_nbytes(self) -> int:
        """The size of the largest block that the pool accepts."""
        return min(MAX_BLOCK_NBYTES, self.capacity // MIN_BLOCKS_PER_POOL)

    def get(
        self,
        key: Hashable,
        nbytes: int,
        assemble: Callable[[Bytes], None],
        version: Callable[[], Hashable | None],
        used: tuple[int, int] = (0, 0),
        *,
        is_window: bool = False,
        is_kept: bool = True,
    ) -> Bytes | None:
        """Return the bytes of a block. The caller must not change them; they stay valid after an eviction.

        Return None if the pool is full of blocks that are in use for ``MAX_WAITING_SECONDS``. ``used`` is the range of
        the block that the caller uses, ``is_window`` whether a part of the block may never be used, ``is_kept`` whether
        the block is kept after it was read completely even if it was assembled quickly.
        ``assemble`` fills an array of ``nbytes`` bytes; its exception is raised in all threads that wait for the block.
        ``version`` returns the version of the data, or None where it is unknown.
        """
        block, is_new = self._claim(key, nbytes, version, waits=True, is_window=is_window, is_kept=is_kept)
        if block is None:
            return None
        data = None
        try:
            if is_new:
                self._assemble(key, block, assemble, version)
            else:
                self.statistics.hits += 1
                block.wait()
            if block.error is not None:
                raise block.error
            data = block.data
            assert data is not None
        finally:
            self._release(block, used if data is not None else (0, 0))
        return data

    def find(
        self,
        key: Hashable,
        version: Callable[[], Hashable | None],
        used: tuple[int, int] = (0, 0),
        max_seconds: float | None = None,
    ) -> Bytes | None:
        """Return the bytes of a block if it is present, else None. ``used`` is the range that the caller uses.

        If it is being assembled, wait for it for at most ``max_seconds``, by default ``MAX_ASSEMBLY_SECONDS``.
        """
        max_seconds = MAX_ASSEMBLY_SECONDS if max_seconds is None else max_seconds
        block = self._find(key)
        if block is None:
            return None
        data = None
        try:
            if block.wait(max_seconds) and block.data is not None and self._is_current(key, block, version):
                data = block.data
        finally:
            self._release(block, used if data is not None else (0, 0))
        if data is None:
            return None
        self.statistics.hits += 1
        with self._lock:
            if key in self._blocks:
                self._blocks.move_to_end(key)
        return data

    def find_current(self, key: Hashable, start: int, stop: int) -> Bytes | None:
        """Return the bytes of a block if it is present and need not be compared with the store, else None.

        The range from ``start`` to ``stop`` is the one that the caller uses.
        """
        with self._lock:
            block = self._blocks.get(key)
            if (
                block is None
                or block.data is None
                or self._clock() - block.checked_at >= REVALIDATION_SECONDS
            ):
                return None
            self._blocks.move_to_end(key)
            self.statistics.hits += 1
            block.mark_read(start, stop)
            block.used_at = time.monotonic()
            return block.data

    def __contains__(self, key: Hashable) -> bool:
        """Return whether a block is present or is being assembled."""
        return key in self._blocks

    def mark_read(self, key: Hashable, nbytes: int, start: int, stop: int) -> None:
        """Record that a range of a block of ``nbytes`` bytes was read without the block."""
        with self._lock:
            block = self._blocks.get(key)
            if block is not None:
                block.mark_read(start, stop)
                return
            self._history.record_direct_read(key, nbytes, start, stop)

    def read_ahead(
        self,
        key: Hashable,
        nbytes: int,
        assemble: Callable[[Bytes], None],
        version: Callable[[], Hashable | None],
        *,
        is_window: bool = False,
        is_kept: bool = True,
    ) -> None:
        """Start to assemble a block in the background, unless it is present or the pool is closed."""
        with self._lock:
            if self._closed or key in self._blocks:
                return
            if self._executor is None:
                self._executor = ThreadPoolExecutor(1, thread_name_prefix="zarrfs-read-ahead")
            executor = self._executor
        block, is_new = self._claim(key, nbytes, version, waits=False, is_window=is_window, is_kept=is_kept)
        if block is not None:
            self._release(block)
        if is_new and block is not None:
            self.statistics.read_ahead += 1
            try:
                executor.submit(self._assemble_ahead, key, block, assemble, version)
            except RuntimeError:  # The pool was closed at the same time.
                self._discard(key, block)
                block.error = RuntimeError("the block pool is closed")
                block.done.set()

    def clear(self) -> None:
        """Drop all blocks, and forget how they were used."""
        with self._lock:
            self._blocks.clear()
            self._history.clear()
            self._nbytes = 0

    def close(self) -> None:
        """Drop all blocks and stop reading ahead."""
        with self._lock:
            self._closed = True
            executor, self._executor = self._executor, None
        if executor is not None:
            executor.shutdown(wait=True)
        self.clear()

    # -- internals ---------------------------------------------------------------------------------------------

    def _claim(
        self,
        key: Hashable,
        nbytes: int,
        version: Callable[[], Hashable | None],
        *,
        waits: bool,
        is_window: bool,
        is_kept: bool,
    ) -> tuple[Block | None, bool]:
        """Return the block of a key, and whether the caller must assemble it. None when there is no room for it.

        The caller is a user of the block until it calls ``_release``.
        """
        block = self._find(key)
        if block is not None and (not block.done.is_set() or self._is_current(key, block, version)):
            with self._lock:
                if key in self._blocks:
                    self._blocks.move_to_end(key)
            return block, False
        if block is not None:
            self._release(block)
        with self._lock:
            present = self._blocks.get(key)
            if present is not None and present is not block:
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

    def _find(self, key: Hashable) -> Block | None:
        """Return the block of a key, if it is present. The caller is a user of it until it calls ``_release``."""
        with self._lock:
            block = self._blocks.get(key)
            if block is not None:
                block.users += 1
            return block

    def _release(self, block: Block, used: tuple[int, int] = (0, 0)) -> None:
        with self._lock:
            block.users -= 1
            if used[1]:
                block.mark_read(*used)
                block.used_at = time.monotonic()

    def _wait_for_room(self, key: Hashable, nbytes: int, memory: list[Bytes]) -> Block | None:
        """Wait until there is room, in the order of the requests, or the time is over. The lock is held.

        Return the block if another thread assembles it meanwhile.
        """
        ticket = object()
        self._waiting.append(ticket)
        try:
            deadline = time.monotonic() + MAX_WAITING_SECONDS
            while time.monotonic() < deadline and not self._closed:
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
        """Drop the least recently used blocks that are not in use until there is room. The lock is held.

        Memory of a dropped block of ``nbytes`` bytes that nothing refers to is added to ``memory``.
        """
        for key in list(self._blocks):
            if self._nbytes + nbytes <= self.capacity:
                break
            block = self._blocks[key]
            if not block.is_in_use:
                self._drop(key, block, nbytes, memory)
        return self._nbytes + nbytes <= self.capacity

    def _drop_read_blocks(self, nbytes: int, memory: list[Bytes]) -> None:
        """Drop blocks that were read completely and are not kept, but ``MAX_READ_NBYTES``. The lock is held."""
        read = [(key, block) for key, block in self._blocks.items() if not block.is_kept and block.is_read]
        surplus = sum(block.nbytes for _, block in read) - MAX_READ_NBYTES
        for key, block in read:
            if surplus <= 0:
                break
            surplus -= block.nbytes
            self._drop(key, block, nbytes, memory)

    def _drop(self, key: Hashable, block: Block, nbytes: int, memory: list[Bytes]) -> None:
        """Drop a block. Add its memory to ``memory`` if the next block, of ``nbytes`` bytes, can be assembled in it."""
        del self._blocks[key]
        self._nbytes -= block.nbytes
        self.statistics.evicted += 1
        self._history.record_drop(key, block)
        if block.nbytes == nbytes and not memory and (free := block.take_memory()) is not None:
            memory.append(free)

    def _assemble_ahead(
        self,
        key: Hashable,
        block: Block,
        assemble: Callable[[Bytes], None],
        version: Callable[[], Hashable | None],
    ) -> None:
        """Assemble a block before it is read. Leave a processor to the requests, unless they wait for such blocks."""
        has_time = not self._hurried_blocks and not block.is_kept
        with limit_threads(max(1, CORES - 1) if has_time else None):
            self._assemble(key, block, assemble, version)
        self._hurried_blocks = HURRIED_BLOCKS if block.is_awaited else max(0, self._hurried_blocks - 1)

    def _assemble(
        self,
        key: Hashable,
        block: Block,
        assemble: Callable[[Bytes], None],
        version: Callable[[], Hashable | None],
    ) -> None:
        try:
            # The version is taken first, so that a change during the read makes the block stale, never current.
            block.version = version()
            block.checked_at = self._clock()
            memory = block.unshared_memory()
            self.statistics.recycled += memory is not None
            data = new_memory(block.nbytes) if memory is None else memory
            started_at = time.perf_counter()
            assemble(data)
            if time.perf_counter() - started_at >= KEPT_SECONDS_PER_NBYTE * block.nbytes:
                block.is_kept = True
            block.data = data
            self.statistics.assembled += 1
        except BaseException as error:
            block.error = error
            logger.debug("block %r was not assembled: %s", key, error)
        if block.error is not None or block.version is None:
            # Without a version it cannot be determined later whether the block is current: only the waiting readers
            # use it.
            self._discard(key, block)
        block.done.set()

    def _discard(self, key: Hashable, block: Block) -> None:
        with self._lock:
            if self._blocks.get(key) is block:
                del self._blocks[key]
                self._nbytes -= block.nbytes

    def _is_current(self, key: Hashable, block: Block, version: Callable[[], Hashable | None]) -> bool:
        if block.error is not None:
            self._discard(key, block)
            return False
        now = self._clock()
        if now - block.checked_at < REVALIDATION_SECONDS:
            return True
        if version() == block.version:
            block.checked_at = now
            return True
        self.statistics.stale += 1
        self._discard(key, block)
        return False
