"""Blocks of virtual files in memory, shared by all open files of a mount.

A block is a range of a flat byte stream that is assembled by one read of the engine, so that each chunk is
decoded once however small the requests of the kernel are. ``BlockPool`` assembles each block once for all readers, also
in the background, and compares it with the data; ``BlockStore`` bounds the memory of all blocks, and ``block_reader``
divides streams into blocks.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Hashable
from concurrent.futures import ThreadPoolExecutor

from zarrfs.engine.parallel import CORES, limit_threads
from zarrfs.logs import logger
from zarrfs.mount.native.library import NativeReads
from zarrfs.mount.reading.block import Block, new_memory
from zarrfs.mount.reading.block_store import BlockStore
from zarrfs.mount.reading.pool_statistics import PoolStatistics
from zarrfs.mount.reading.published_ranges import FileRange
from zarrfs.mount.reading.streams import REVALIDATION_SECONDS, Bytes

__all__ = ["DEFAULT_IDLE_NBYTES", "DEFAULT_POOL_NBYTES", "MAX_REMOTE_ASSEMBLY_SECONDS", "BlockPool"]

DEFAULT_POOL_NBYTES = 64 << 20
DEFAULT_IDLE_NBYTES = 40 << 20
"""The limits of the memory for blocks if it is not a part of the cache. A pass may need 64 MiB in addition to the
cache, and the encoded chunks, the buffers of the decoders and of the requests need some 20 MiB of them.
"""

MIN_BLOCKS_PER_POOL = 2
"""The pool has room for two blocks: one is read while the next one is assembled."""

MAX_BLOCK_NBYTES = 64 << 20
"""Assembling a larger block would delay the first byte too long."""

MAX_ASSEMBLY_SECONDS = 2.0
MAX_REMOTE_ASSEMBLY_SECONDS = 0.1
"""Reads that do not start an assembly wait for one in progress for this time. Then they read a part of the block
directly, which decodes chunks again. The longer time is for stores with a high latency: a block needs many requests, a
part of it only a few.
"""

HURRIED_BLOCKS = 16
"""After a request had to wait for a block that was read ahead, this many blocks are read ahead with all processors."""

KEPT_SECONDS_PER_NBYTE = 10 / (1 << 30)
"""A block is kept if its assembly took at least this time per byte. Assembling it again would be slow."""


class BlockPool:
    """Blocks by key, bounded in bytes. Thread-safe.

    A block is assembled by the first thread that requests it; other threads wait for it. Blocks that are being
    assembled count towards the capacity. ``close`` waits for read-ahead that is in progress.

    A block that was assembled quickly is not kept after it was read completely, because the kernel has cached its
    pages: the next blocks use its memory. A block that is read again later is kept, if there is room.

    If more files are read at the same time than the pool has blocks for, they take turns: a block stays until it has
    been read, and the reads of other files wait for it. Each block would otherwise be assembled again for each request.

    ``idle_nbytes`` limits the memory of blocks that are kept although no read in progress needs them, by default to the
    capacity. Two blocks may always be present.

    With ``library`` ranges of blocks are published, which the library then serves without the interpreter.
    """

    def __init__(
        self,
        capacity: int = DEFAULT_POOL_NBYTES,
        *,
        idle_nbytes: int | None = None,
        is_immutable: bool = False,
        clock: Callable[[], float] = time.monotonic,
        library: NativeReads | None = None,
    ) -> None:
        self.is_immutable = is_immutable
        self.statistics = PoolStatistics()
        self._clock = clock
        self._store = BlockStore(
            capacity, capacity if idle_nbytes is None else idle_nbytes, self.statistics, library
        )
        self.published = self._store.published
        self._lock = threading.Lock()
        self._executor: ThreadPoolExecutor | None = None
        self._hurried_blocks = 0
        """The number of blocks that are read ahead next with all processors. Changed by the executor only."""
        self._is_closed = False

    @property
    def capacity(self) -> int:
        """The maximum of ``nbytes``."""
        return self._store.capacity

    @property
    def nbytes(self) -> int:
        """The bytes of all blocks, including those that are being assembled."""
        return self._store.nbytes

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
            self._store.release(key, block, used if data is not None else (0, 0))
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
        block = self._store.find(key)
        if block is None:
            return None
        data = None
        try:
            if block.wait(max_seconds) and block.data is not None and self._is_current(key, block, version):
                data = block.data
        finally:
            self._store.release(key, block, used if data is not None else (0, 0))
        if data is not None:
            self.statistics.hits += 1
        return data

    def find_current(self, key: Hashable, start: int, stop: int) -> Bytes | None:
        """Return the bytes of a block if it is present and need not be compared with the store, else None.

        The range from ``start`` to ``stop`` is the one that the caller uses.
        """
        data = self._store.read(key, start, stop, self._clock() - REVALIDATION_SECONDS)
        if data is not None:
            self.statistics.hits += 1
        return data

    def publish(self, key: Hashable, offset: int, file: FileRange) -> None:
        """Let the library serve the part of a block in a file. ``offset`` is the offset of the block in the stream."""
        self._store.publish(key, offset, file, REVALIDATION_SECONDS)

    def __contains__(self, key: Hashable) -> bool:
        """Return whether a block is present or is being assembled."""
        return key in self._store

    def record_direct_read(self, key: Hashable, nbytes: int, start: int, stop: int) -> None:
        """Record that a range of a block of ``nbytes`` bytes was read without the block."""
        self._store.record_direct_read(key, nbytes, start, stop)

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
        if key in self._store:
            return
        with self._lock:
            if self._is_closed:
                return
            if self._executor is None:
                self._executor = ThreadPoolExecutor(1, thread_name_prefix="zarrfs-read-ahead")
            executor = self._executor
        block, is_new = self._claim(key, nbytes, version, waits=False, is_window=is_window, is_kept=is_kept)
        if block is not None:
            self._store.release(key, block)
        if is_new and block is not None:
            self.statistics.read_ahead += 1
            try:
                executor.submit(self._assemble_ahead, key, block, assemble, version)
            except RuntimeError:  # The pool was closed at the same time.
                self._store.discard(key, block)
                block.error = RuntimeError("the block pool is closed")
                block.done.set()

    def clear(self) -> None:
        """Drop all blocks, and forget how they were used."""
        self._store.clear()

    def close(self) -> None:
        """Drop all blocks and stop reading ahead."""
        with self._lock:
            self._is_closed = True
            executor, self._executor = self._executor, None
        self._store.end_waiting()
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
        """Return the current block of a key, and whether the caller must assemble it; see ``BlockStore.claim``."""
        block = self._store.find(key)
        if block is not None:
            if not block.done.is_set() or self._is_current(key, block, version):
                return block, False
            self._store.release(key, block)
        return self._store.claim(key, nbytes, block, waits=waits, is_window=is_window, is_kept=is_kept)

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
            # Without a version it cannot be determined later whether the block is current, so only the waiting readers
            # use it.
            self._store.discard(key, block)
        block.done.set()

    def _is_current(self, key: Hashable, block: Block, version: Callable[[], Hashable | None]) -> bool:
        if block.error is not None:
            self._store.discard(key, block)
            return False
        now = self._clock()
        if now - block.checked_at < REVALIDATION_SECONDS:
            return True
        if version() == block.version:
            block.checked_at = now
            return True
        self.statistics.stale += 1
        self._store.discard(key, block)
        return False
