"""Reading of a flat stream in blocks: of whole chunks for sequential reads, and windows for strided reads."""

from __future__ import annotations

import errno
import itertools
import threading
import time
from collections import deque
from collections.abc import Callable, Hashable

import numpy as np

from zarrfs.engine.io.flat_blocks import Window
from zarrfs.errors import ZarrError
from zarrfs.mount.reading.blocks import MAX_REMOTE_ASSEMBLY_SECONDS, BlockPool
from zarrfs.mount.reading.published_ranges import FileRange
from zarrfs.mount.reading.streams import Bytes, FlatStream

__all__ = ["BlockReader", "is_stale"]

_reader_numbers = itertools.count()

RETRY_SECONDS = 10.0
"""A block that could not be assembled is not tried again for this time; its ranges are read directly."""

MAX_FAILURES = 1024

PASS_SECONDS = 0.5
"""A sequential access is in progress for this time after its last read."""

MAX_WINDOWS = 16
"""The number of windows of one stream that are looked up. The memory of the pool bounds their bytes."""

_Request = tuple[Hashable, int, Callable[[Bytes], None], Callable[[], Hashable | None]]
"""The arguments of ``BlockPool.get``."""


def is_stale(error: BaseException) -> bool:
    """Return whether an error means that the metadata of an open file have changed."""
    return isinstance(error, OSError) and error.errno == errno.ESTALE


class BlockReader:
    """A flat stream, read through the blocks of a pool. Thread-safe."""

    def __init__(self, stream: FlatStream, pool: BlockPool) -> None:
        self._stream = stream
        self.pool = pool
        self.grid = stream.grid(pool.max_block_nbytes)
        self._is_kept = stream.has_high_latency
        """Whether blocks are kept after they were read completely, so that requests to a server are not repeated."""
        self._key = next(_reader_numbers)
        self._failures: dict[Hashable, float] = {}
        self._windows: deque[Window] = deque(maxlen=MAX_WINDOWS)
        self._current: Window | None = None
        self._direct: dict[threading.Event, tuple[int, int]] = {}
        self._lock = threading.Lock()
        self._located = (0, 0, 0)
        """The block that was read last, with the offsets of its first byte and its end: most requests are for it."""
        self._pass = (-2, float("-inf"))
        """The last block of a sequential access, and when it was read."""

    def read(self, offset: int, size: int, *, sequential: bool, read_ahead: bool = True) -> Bytes:
        """Return ``size`` bytes at ``offset``; the range lies within the stream. The caller must not change them.

        A sequential read assembles the block that contains the range and, with ``read_ahead``, starts to assemble the
        next one. Other reads use blocks that are present and read the rest from the engine.
        """
        first, start, stop = self._located
        if not start <= offset < stop:
            first = self.grid.find(offset)
            start, stop = self.grid.bounds(first)
            self._located = first, start, stop
        if offset + size <= stop:
            data = self.pool.find_current((self._key, first), offset - start, offset - start + size)
            if data is None:
                data = self._block(first, sequential, read_ahead, offset, size)
            elif sequential or self._continues_pass(first):
                self._advance_pass(first, sequential, read_ahead)
            if data is not None:
                return data[offset - start : offset - start + size]
            return self._read_without_block(first, offset, size)
        out = np.empty(size, np.uint8)
        done = 0
        number = first
        while done < size:
            start, stop = self.grid.bounds(number)
            begin = offset + done
            count = min(size - done, stop - begin)
            data = self._block(number, sequential, read_ahead, begin, count)
            part = (
                self._read_without_block(number, begin, count)
                if data is None
                else data[begin - start :][:count]
            )
            out[done : done + count] = part
            done += count
            number += 1
        return out

    def publish(self, offset: int, file: FileRange) -> None:
        """Let the native library serve the block that contains a byte of the stream, if the block is in memory."""
        number = self.grid.find(offset)
        self.pool.publish((self._key, number), self.grid.bounds(number)[0], file)

    def read_strided(self, offset: int, size: int, stride: int, run_nbytes: int = 0) -> Bytes:
        """Return ``size`` bytes at ``offset`` of an access with runs of reads at a distance of ``stride`` bytes.

        The corresponding ranges of all planes of a layer of chunks are assembled together, and those of the next layer
        in the background. The caller must not change the bytes.
        """
        number = self.grid.find(offset)
        start, stop = self.grid.bounds(number)
        data = self._block(number, False, False, offset, size) if offset + size <= stop else None
        if data is not None:
            return data[offset - start : offset - start + size]
        wanted = max(size, run_nbytes)
        window = self._window(offset, size, stride, wanted)
        if window is not None:
            position = window.locate(offset, size) or 0
            data = self._get(self._window_request(window), (position, position + size), is_window=True)
            if data is not None:
                if window is not self._current:
                    self._current = window
                    following = self._window(
                        window.adjacent_offset(offset, forwards=stride > 0), size, stride, wanted
                    )
                    if following is not None:
                        self.pool.read_ahead(*self._window_request(following), is_window=True)
                return data[position : position + size]
        return self._read_directly(offset, size)

    def _window(self, offset: int, size: int, stride: int, wanted: int) -> Window | None:
        """Return the window of a strided read. A new one contains ``wanted`` bytes of each plane, if possible."""
        with self._lock:
            windows = list(self._windows)
        for window in reversed(windows):
            if window.locate(offset, size) is not None:
                return window
        if offset < 0 or offset + size > self._stream.nbytes:
            return None
        limit = self.pool.max_block_nbytes
        found = self._stream.window(offset, min(wanted, self._stream.nbytes - offset), stride, limit)
        if found is None and wanted > size:
            found = self._stream.window(offset, size, stride, limit)
        if found is not None:
            with self._lock:
                self._windows.append(found)
        return found

    def _window_request(self, window: Window) -> _Request:
        def assemble(out: Bytes) -> None:
            self._read_checked(lambda: self._stream.read_window(window, out))

        def version() -> Hashable | None:
            return True if self.pool.is_immutable else self._stream.window_version(window)

        return (self._key, window), window.nbytes, assemble, version

    def _block_request(self, number: int) -> _Request:
        start, stop = self.grid.bounds(number)
        return (
            (self._key, number),
            stop - start,
            lambda out: self._assemble(start, out),
            lambda: self._version(start, stop),
        )

    def _block(self, number: int, sequential: bool, read_ahead: bool, offset: int, size: int) -> Bytes | None:
        """Return a block that contains the ``size`` bytes at ``offset`` of the stream, or None."""
        is_requested = sequential
        sequential = sequential or self._continues_pass(number)
        if not sequential and (self._key, number) not in self.pool:
            return None
        request = self._block_request(number)
        start = offset - self.grid.bounds(number)[0]
        used = start, start + size
        if not sequential:
            key, _, _, version = request
            seconds = MAX_REMOTE_ASSEMBLY_SECONDS if self._stream.has_high_latency else None
            return self.pool.find(key, version, used, seconds)
        if is_requested:
            self._pass = number, time.monotonic()
        data = self._get(request, used)
        if data is not None:
            self._advance_pass(number, is_requested, read_ahead)
        return data

    def _advance_pass(self, number: int, sequential: bool, read_ahead: bool) -> None:
        """Record that a sequential access has reached a block. With ``read_ahead`` start to assemble the next one."""
        if sequential:
            self._pass = number, time.monotonic()
        following = number + 1
        if read_ahead and following < self.grid.count and (self._key, following) not in self.pool:
            self.pool.read_ahead(*self._block_request(following), is_kept=self._is_kept)

    def _continues_pass(self, number: int) -> bool:
        """Return whether a sequential access, of any open file, has reached a block or will reach it next. The last
        requests for the previous block may be late.
        """
        last, at = self._pass
        return abs(number - last) <= 1 and time.monotonic() - at < PASS_SECONDS

    def _get(self, request: _Request, used: tuple[int, int], *, is_window: bool = False) -> Bytes | None:
        """Return a block or window, which is assembled if necessary, or None if it cannot be assembled now.

        ``used`` is the range of it that the caller reads.
        """
        key, nbytes, assemble, version = request
        failed_at = self._failures.get(key)
        if failed_at is not None and time.monotonic() - failed_at < RETRY_SECONDS:
            return None
        try:
            return self.pool.get(
                key, nbytes, assemble, version, used, is_window=is_window, is_kept=is_window or self._is_kept
            )
        except (ZarrError, MemoryError) as error:
            if is_stale(error):
                raise
            # One corrupt chunk must not make its whole block unreadable: its neighbours are read directly.
            if len(self._failures) >= MAX_FAILURES:
                self._failures.clear()
            self._failures[key] = time.monotonic()
            return None

    def _assemble(self, start: int, out: Bytes) -> None:
        # The first reads of a pass are direct and may still be decoding chunks of the block, which they keep.
        with self._lock:
            direct = [
                done
                for done, (first, stop) in self._direct.items()
                if first < start + out.size and start < stop
            ]
        for done in direct:
            done.wait()
        if not self.grid.holds_whole_chunks:
            # The next blocks contain other parts of the same chunks.
            self._stream.expect_reads(start, out.size)
        # Blocks of whole chunks decode each chunk once: keeping the chunks as well would only cost memory.
        self._read_into(start, out, keep_chunks=not self.grid.holds_whole_chunks)

    def _read_without_block(self, number: int, offset: int, size: int) -> Bytes:
        """Read a range of a block that is not present."""
        data = self._read_directly(offset, size)
        start, stop = self.grid.bounds(number)
        self.pool.record_direct_read((self._key, number), stop - start, offset - start, offset - start + size)
        return data

    def _read_directly(self, offset: int, size: int) -> Bytes:
        out = np.empty(size, np.uint8)
        if self._stream.read_decoded(offset, out):
            return out
        if not self._stream.decodes_whole_chunks:
            self._read_into(offset, out, keep_chunks=True)
            return out
        # The chunks are decoded as a whole in any case. The next reads, or the block that is assembled next, use them.
        self._stream.expect_reads(offset, size)
        done = threading.Event()
        with self._lock:
            self._direct[done] = offset, offset + size
        try:
            self._read_into(offset, out, keep_chunks=True)
        finally:
            with self._lock:
                del self._direct[done]
            done.set()
        return out

    def _read_into(self, start: int, out: Bytes, keep_chunks: bool) -> None:
        self._read_checked(lambda: self._stream.read_into(start, out, keep_chunks=keep_chunks))

    def _read_checked(self, read: Callable[[], None]) -> None:
        try:
            read()
        except ZarrError:
            # A chunk of another data type or shape cannot be decoded.
            self._check_metadata()
            raise
        self._check_metadata()

    def _check_metadata(self) -> None:
        if not self.pool.is_immutable:
            self._stream.check_metadata()

    def _version(self, start: int, stop: int) -> Hashable | None:
        if self.pool.is_immutable:
            return True
        return self._stream.version(start, stop)
