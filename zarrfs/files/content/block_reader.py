"""Reading of a flat stream in blocks: of whole chunks for sequential reads, and windows for strided reads."""

from __future__ import annotations

import errno
import itertools
import threading
import time
from collections import deque
from collections.abc import Hashable
from functools import partial

import numpy as np

from zarrfs.engine.read.flat_blocks import Window
from zarrfs.errors import ZarrError
from zarrfs.files.content.block import Retention
from zarrfs.files.content.blocks import BlockPool, BlockRequest
from zarrfs.files.content.streams import Bytes, FlatStream

__all__ = ["BlockReader", "is_stale"]

_reader_numbers = itertools.count()

RETRY_SECONDS = 10.0
"""A block that could not be assembled is not tried again for this time; its ranges are read directly."""

MAX_FAILURES = 1024

MAX_ASSEMBLY_SECONDS = 2.0
MAX_REMOTE_ASSEMBLY_SECONDS = 0.1
"""Reads that do not start an assembly wait for one in progress for this time. Then they read a part of the block
directly, which decodes chunks again. The longer time is for local stores: in stores with a high latency a block needs
many requests, a part of it only a few.
"""

PASS_SECONDS = 0.5
"""A sequential access is in progress for this time after its last read."""

MAX_WINDOWS = 16
"""The number of windows of one stream that are looked up. The memory of the pool bounds their bytes."""


def is_stale(error: BaseException) -> bool:
    """Return whether an error means that the metadata of an open file have changed."""
    return isinstance(error, OSError) and error.errno == errno.ESTALE


class BlockReader:
    """A flat stream, read through the blocks of a pool. Thread-safe."""

    def __init__(self, stream: FlatStream, pool: BlockPool) -> None:
        self._stream = stream
        self.pool = pool
        self.grid = stream.grid(pool.max_block_nbytes)
        # Requests to a server are not repeated.
        self._retention = Retention.KEPT if stream.has_high_latency else Retention.READ_ONCE
        self._key = next(_reader_numbers)
        self._failures: dict[Hashable, float] = {}
        self._windows: deque[Window] = deque(maxlen=MAX_WINDOWS)
        self._current: Window | None = None
        self._direct: dict[threading.Lock, tuple[int, int]] = {}
        """The ranges that are read from the engine, by locks that are held as long as the reads take."""
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
        number, start, stop = self._located
        if not start <= offset < stop:
            number = self.grid.find(offset)
            start, stop = self.grid.bounds(number)
            self._located = number, start, stop
        if offset + size <= stop:
            return self._read_in_block(number, start, stop, offset, size, sequential, read_ahead)
        out = np.empty(size, np.uint8)
        done = 0
        while done < size:
            start, stop = self.grid.bounds(number)
            count = min(size - done, stop - offset - done)
            out[done : done + count] = self._read_in_block(
                number, start, stop, offset + done, count, sequential, read_ahead
            )
            done += count
            number += 1
        return out

    def _read_in_block(
        self, number: int, start: int, stop: int, offset: int, size: int, sequential: bool, read_ahead: bool
    ) -> Bytes:
        """Return a range that lies in the block from ``start`` to ``stop``."""
        used = offset - start, offset - start + size
        data = self.pool.find_current((self._key, number), *used)
        if sequential or self._continues_pass(number):
            if data is None:
                data = self._get(self._block_request(number, start, stop), used)
            if data is not None:
                self._advance_pass(number, sequential, read_ahead)
        elif data is None:
            data = self._find(number, start, stop, used)
        return self._read_part(offset, size) if data is None else data[used[0] : used[1]]

    def read_strided(self, offset: int, size: int, stride: int, run_nbytes: int = 0) -> Bytes:
        """Return ``size`` bytes at ``offset`` of an access with runs of reads at a distance of ``stride`` bytes.

        The corresponding ranges of all planes of a layer of chunks are assembled together, and those of the next layer
        in the background. The caller must not change the bytes.
        """
        number = self.grid.find(offset)
        start, stop = self.grid.bounds(number)
        if offset + size <= stop:
            used = offset - start, offset - start + size
            if self._continues_pass(number):
                data = self._get(self._block_request(number, start, stop), used)
            else:
                data = self._find(number, start, stop, used)
            if data is not None:
                return data[used[0] : used[1]]
        wanted = max(size, run_nbytes)
        window = self._window(offset, size, stride, wanted)
        if window is not None:
            position = window.locate(offset, size) or 0
            data = self._get(self._window_request(window), (position, position + size))
            if data is not None:
                if window is not self._current:
                    self._current = window
                    following = self._window(
                        window.adjacent_offset(offset, forwards=stride > 0), size, stride, wanted
                    )
                    if following is not None:
                        self.pool.read_ahead(self._window_request(following))
                return data[position : position + size]
        return self._read_part(offset, size)

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

    def _window_request(self, window: Window) -> BlockRequest:
        return BlockRequest(
            (self._key, window),
            window.nbytes,
            partial(self._stream.read_window, window),
            lambda: True if self.pool.is_immutable else self._stream.window_version(window),
            Retention.WINDOW,
        )

    def _block_request(self, number: int, start: int, stop: int) -> BlockRequest:
        return BlockRequest(
            (self._key, number),
            stop - start,
            partial(self._assemble, start),
            lambda: True if self.pool.is_immutable else self._stream.version(start, stop),
            self._retention,
        )

    def _find(self, number: int, start: int, stop: int, used: tuple[int, int]) -> Bytes | None:
        """Return a block if it is present, or is assembled in a short time. ``used`` is the range that is read."""
        if (self._key, number) not in self.pool:
            return None
        seconds = MAX_REMOTE_ASSEMBLY_SECONDS if self._stream.has_high_latency else MAX_ASSEMBLY_SECONDS
        return self.pool.find(self._block_request(number, start, stop), used, seconds)

    def _advance_pass(self, number: int, sequential: bool, read_ahead: bool) -> None:
        """Record that a sequential access has reached a block. With ``read_ahead`` start to assemble the next one."""
        if sequential:
            self._pass = number, time.monotonic()
        following = number + 1
        if read_ahead and following < self.grid.count and (self._key, following) not in self.pool:
            self.pool.read_ahead(self._block_request(following, *self.grid.bounds(following)))

    def _continues_pass(self, number: int) -> bool:
        """Return whether a sequential access, of any open file, has reached a block or will reach it next. The last
        requests for the previous block may be late.
        """
        last, at = self._pass
        return abs(number - last) <= 1 and time.monotonic() - at < PASS_SECONDS

    def _get(self, request: BlockRequest, used: tuple[int, int]) -> Bytes | None:
        """Return a block or window, which is assembled if necessary, or None if it cannot be assembled now.

        ``used`` is the range of it that the caller reads.
        """
        failed_at = self._failures.get(request.key)
        if failed_at is not None and time.monotonic() - failed_at < RETRY_SECONDS:
            return None
        try:
            return self.pool.get(request, used)
        except (ZarrError, MemoryError) as error:
            if is_stale(error):
                raise
            # One corrupt chunk must not make its whole block unreadable: its neighbours are read directly.
            if len(self._failures) >= MAX_FAILURES:
                self._failures.clear()
            self._failures[request.key] = time.monotonic()
            return None

    def _assemble(self, start: int, out: Bytes) -> None:
        # The first reads of a pass are direct and may still be decoding chunks of the block, which they keep.
        with self._lock:
            direct = [
                running
                for running, (first, stop) in self._direct.items()
                if first < start + out.size and start < stop
            ]
        for running in direct:
            with running:
                pass
        self._stream.read_block(start, out, holds_whole_chunks=self.grid.holds_whole_chunks)

    def _read_part(self, offset: int, size: int) -> Bytes:
        """Read a range from the engine. A block that is assembled at the same time waits for it."""
        out = np.empty(size, np.uint8)
        running = threading.Lock()
        with running:
            with self._lock:
                self._direct[running] = offset, offset + size
            try:
                self._stream.read_part(offset, out)
            finally:
                with self._lock:
                    del self._direct[running]
        return out
