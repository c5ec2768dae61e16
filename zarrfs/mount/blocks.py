"""Blocks of virtual files in memory, shared by all open files of a mount.

A block is a range of a flat byte stream that is assembled by one read of the engine, so that each chunk is
decoded once however small the requests of the kernel are. ``BlockPool`` bounds the memory of all blocks and
assembles each block once for all readers; ``BlockReader`` divides one stream into blocks.
"""

from __future__ import annotations

import errno
import itertools
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field

import numpy as np

from zarrfs.errors import ZarrError
from zarrfs.logs import logger
from zarrfs.mount.streams import REVALIDATION_SECONDS, Bytes, FlatStream

__all__ = ["DEFAULT_POOL_NBYTES", "BlockPool", "BlockReader", "PoolStatistics", "is_stale"]

_reader_numbers = itertools.count()

DEFAULT_POOL_NBYTES = 64 << 20

MIN_BLOCKS_PER_POOL = 2
"""The pool has room for two blocks: one is read while the next one is assembled."""

MAX_BLOCK_NBYTES = 64 << 20
"""Assembling a larger block would delay the first byte too long."""

RETRY_SECONDS = 10.0
"""A block that could not be assembled is not tried again for this time; its ranges are read directly."""

MAX_FAILURES = 1024


@dataclass
class PoolStatistics:
    """Counters of a pool since it was created.

    Attributes:
        hits: reads served from a block that was present or being assembled.
        assembled: blocks that were assembled.
        read_ahead: blocks whose assembly was started before a read asked for them.
        evicted: blocks that were dropped to make room.
        stale: blocks that were dropped because the store changed.
    """

    hits: int = 0
    assembled: int = 0
    read_ahead: int = 0
    evicted: int = 0
    stale: int = 0


@dataclass(eq=False)
class _Block:
    """A block and the state of its assembly."""

    nbytes: int
    done: threading.Event = field(default_factory=threading.Event)
    data: Bytes | None = None
    error: BaseException | None = None
    version: Hashable | None = None
    checked_at: float = 0.0


class BlockPool:
    """Blocks by key, in least-recently-used order, bounded in bytes. Thread-safe.

    A block is assembled by the first thread that asks for it; other threads wait for it. Memory of blocks that are
    being assembled counts. ``close`` waits for read-ahead that is in progress.
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
        self._blocks: OrderedDict[Hashable, _Block] = OrderedDict()
        self._nbytes = 0
        self._lock = threading.Lock()
        self._executor: ThreadPoolExecutor | None = None
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
    ) -> Bytes | None:
        """Return the bytes of a block. The caller must not change them; they stay valid after an eviction.

        Return None when the pool is full of blocks that are being assembled.
        ``assemble`` fills an array of ``nbytes`` bytes; its exception is raised in all threads that wait for the block.
        ``version`` returns the version of the data, or None where it is unknown.
        """
        block, is_new = self._claim(key, nbytes, version)
        if block is None:
            return None
        if is_new:
            self._assemble(key, block, assemble, version)
        else:
            self.statistics.hits += 1
            block.done.wait()
        if block.error is not None:
            raise block.error
        assert block.data is not None
        return block.data

    def find(self, key: Hashable, version: Callable[[], Hashable | None]) -> Bytes | None:
        """Return the bytes of a block if it is present and assembled, else None."""
        with self._lock:
            block = self._blocks.get(key)
        if block is None or not block.done.is_set() or block.data is None:
            return None
        if not self._is_current(key, block, version):
            return None
        self.statistics.hits += 1
        with self._lock:
            if key in self._blocks:
                self._blocks.move_to_end(key)
        return block.data

    def read_ahead(
        self,
        key: Hashable,
        nbytes: int,
        assemble: Callable[[Bytes], None],
        version: Callable[[], Hashable | None],
    ) -> None:
        """Start to assemble a block in the background, unless it is present or the pool is closed."""
        with self._lock:
            if self._closed or key in self._blocks:
                return
            executor = self._executor_for_read_ahead()
        block, is_new = self._claim(key, nbytes, version)
        if is_new and block is not None:
            self.statistics.read_ahead += 1
            try:
                executor.submit(self._assemble, key, block, assemble, version)
            except RuntimeError:  # The pool was closed at the same time.
                self._discard(key, block)
                block.error = RuntimeError("the block pool is closed")
                block.done.set()

    def submit(self, work: Callable[[], None]) -> Future[None] | None:
        """Run a function in the background. Return None if the pool is closed."""
        with self._lock:
            return None if self._closed else self._executor_for_read_ahead().submit(work)

    def clear(self) -> None:
        """Drop all blocks."""
        with self._lock:
            self._blocks.clear()
            self._nbytes = 0

    def close(self) -> None:
        """Drop all blocks and stop reading ahead."""
        with self._lock:
            self._closed = True
            executor, self._executor = self._executor, None
        if executor is not None:
            executor.shutdown(wait=True)
        self.clear()

    def _executor_for_read_ahead(self) -> ThreadPoolExecutor:
        """Return the thread pool. The lock is held."""
        if self._executor is None:
            self._executor = ThreadPoolExecutor(1, thread_name_prefix="zarrfs-read-ahead")
        return self._executor

    # -- internals ---------------------------------------------------------------------------------------------

    def _claim(
        self, key: Hashable, nbytes: int, version: Callable[[], Hashable | None]
    ) -> tuple[_Block | None, bool]:
        """Return the block of a key, and whether the caller must assemble it. None when there is no room for it."""
        with self._lock:
            block = self._blocks.get(key)
        if block is not None and (not block.done.is_set() or self._is_current(key, block, version)):
            with self._lock:
                if key in self._blocks:
                    self._blocks.move_to_end(key)
            return block, False
        with self._lock:
            present = self._blocks.get(key)
            if present is not None and present is not block:
                return present, False
            if not self._make_room(nbytes):
                return None, False
            block = self._blocks[key] = _Block(nbytes)
            self._nbytes += nbytes
        return block, True

    def _make_room(self, nbytes: int) -> bool:
        """Drop the least recently used assembled blocks until there is room. The lock is held."""
        for key in list(self._blocks):
            if self._nbytes + nbytes <= self.capacity:
                break
            block = self._blocks[key]
            if block.done.is_set():
                del self._blocks[key]
                self._nbytes -= block.nbytes
                self.statistics.evicted += 1
        return self._nbytes + nbytes <= self.capacity

    def _assemble(
        self,
        key: Hashable,
        block: _Block,
        assemble: Callable[[Bytes], None],
        version: Callable[[], Hashable | None],
    ) -> None:
        try:
            # The version is taken first, so that a change during the read makes the block stale, never current.
            block.version = version()
            block.checked_at = self._clock()
            data = np.empty(block.nbytes, np.uint8)
            assemble(data)
            block.data = data
            self.statistics.assembled += 1
        except BaseException as error:
            block.error = error
            logger.debug("block %r was not assembled: %s", key, error)
        if block.error is not None or block.version is None:
            # Without a version nothing could tell later whether the block is current: it serves the waiting readers
            # only.
            self._discard(key, block)
        block.done.set()

    def _discard(self, key: Hashable, block: _Block) -> None:
        with self._lock:
            if self._blocks.get(key) is block:
                del self._blocks[key]
                self._nbytes -= block.nbytes

    def _is_current(self, key: Hashable, block: _Block, version: Callable[[], Hashable | None]) -> bool:
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


def is_stale(error: BaseException) -> bool:
    """Return whether an error means that the metadata of an open file have changed."""
    return isinstance(error, OSError) and error.errno == errno.ESTALE


class BlockReader:
    """A flat stream, read through the blocks of a pool. Thread-safe."""

    def __init__(self, stream: FlatStream, pool: BlockPool) -> None:
        self._stream = stream
        self.pool = pool
        self.grid = stream.grid(pool.max_block_nbytes)
        self._key = next(_reader_numbers)
        self._failures: dict[int, float] = {}
        self._ahead: Future[None] | None = None

    def read(self, offset: int, size: int, *, sequential: bool, read_ahead: bool = True) -> Bytes:
        """Return ``size`` bytes at ``offset``; the range lies within the stream. The caller must not change them.

        A sequential read assembles the block that contains the range and, with ``read_ahead``, starts to assemble the
        next one. Other reads use blocks that are present and read the rest from the engine.
        """
        first = self.grid.find(offset)
        start, stop = self.grid.bounds(first)
        if offset + size <= stop:
            data = self._block(first, sequential, read_ahead)
            if data is not None:
                return data[offset - start : offset - start + size]
            return self._read_directly(offset, size)
        out = np.empty(size, np.uint8)
        done = 0
        number = first
        while done < size:
            start, stop = self.grid.bounds(number)
            begin = offset + done
            count = min(size - done, stop - begin)
            data = self._block(number, sequential, read_ahead)
            part = self._read_directly(begin, count) if data is None else data[begin - start :][:count]
            out[done : done + count] = part
            done += count
            number += 1
        return out

    def read_strided(self, offset: int, size: int) -> Bytes:
        """Return ``size`` bytes at ``offset`` as ``read`` does. The chunks are decoded whole and kept, if they fit."""
        number = self.grid.find(offset)
        start, stop = self.grid.bounds(number)
        block = self._block(number, False, False) if offset + size <= stop else None
        if block is not None:
            return block[offset - start : offset - start + size]
        out = np.empty(size, np.uint8)
        if self._stream.read_decoded(offset, out):
            return out
        ahead = self._ahead
        if ahead is not None and not ahead.done():
            # It probably decodes the same chunks.
            ahead.result()
        self._read_keeping(offset, out)
        return out

    def _read_keeping(self, offset: int, out: Bytes) -> None:
        if not self._stream.read_decoded(offset, out):
            self._stream.expect(offset, out.size)
            self._read_into(offset, out, keep_chunks=True)

    def strides_to_next_chunk(self, offset: int, stride: int) -> int | None:
        """Return after how many strides of ``stride`` bytes ``offset`` is in another chunk, or None."""
        return self._stream.strides_to_next_chunk(offset, stride)

    def read_strided_ahead(self, offset: int, size: int) -> None:
        """Decode the chunks of a range in the background, as far as it lies in the stream."""
        count = min(size, self._stream.nbytes - offset)

        def work() -> None:
            try:
                self._read_keeping(offset, np.empty(count, np.uint8))
            except Exception as error:  # The read of the program will raise it.
                logger.debug("reading ahead at %d failed: %s", offset, error)

        if offset >= 0 and count > 0 and (self._ahead is None or self._ahead.done()):
            self._ahead = self.pool.submit(work)

    def _block(self, number: int, sequential: bool, read_ahead: bool) -> Bytes | None:
        start, stop = self.grid.bounds(number)
        key = (self._key, number)
        if not sequential:
            return self.pool.find(key, lambda: self._version(start, stop))
        failed_at = self._failures.get(number)
        if failed_at is not None and time.monotonic() - failed_at < RETRY_SECONDS:
            return None
        try:
            data = self.pool.get(
                key, stop - start, lambda out: self._assemble(start, out), lambda: self._version(start, stop)
            )
        except (ZarrError, MemoryError) as error:
            if is_stale(error):
                raise
            # One corrupt chunk must not make its whole block unreadable: its neighbours are read directly.
            if len(self._failures) >= MAX_FAILURES:
                self._failures.clear()
            self._failures[number] = time.monotonic()
            return None
        if read_ahead and number + 1 < self.grid.count:
            begin, end = self.grid.bounds(number + 1)
            self.pool.read_ahead(
                (self._key, number + 1),
                end - begin,
                lambda out: self._assemble(begin, out),
                lambda: self._version(begin, end),
            )
        return data

    def _assemble(self, start: int, out: Bytes) -> None:
        # Blocks of whole chunks decode each chunk once: keeping the chunks as well would only cost memory.
        self._read_into(start, out, keep_chunks=not self.grid.holds_whole_chunks)

    def _read_directly(self, offset: int, size: int) -> Bytes:
        out = np.empty(size, np.uint8)
        if not self._stream.read_decoded(offset, out):
            if self._stream.decodes_whole_chunks:
                # They are decoded anyway. The next reads, or the block that is assembled next, use them.
                self._stream.expect(offset, size)
            self._read_into(offset, out, keep_chunks=True)
        return out

    def _read_into(self, start: int, out: Bytes, keep_chunks: bool) -> None:
        try:
            self._stream.read_into(start, out, keep_chunks=keep_chunks)
        except ZarrError:
            # A chunk of another data type or shape cannot be decoded.
            self._confirm()
            raise
        self._confirm()

    def _confirm(self) -> None:
        if not self.pool.is_immutable:
            self._stream.confirm()

    def _version(self, start: int, stop: int) -> Hashable | None:
        if self.pool.is_immutable:
            return True
        return self._stream.version(start, stop)
