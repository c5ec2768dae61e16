"""Reading an open virtual file: sequential access through blocks, other access directly."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from threading import get_ident
from typing import Any

from zarrfs.errors import ZarrError
from zarrfs.mount.reading.access_pattern import MIN_SEQUENTIAL_NBYTES, AccessPattern, Pattern
from zarrfs.mount.reading.block_reader import is_stale
from zarrfs.mount.reading.blocks import BlockPool
from zarrfs.mount.reading.content import StreamSegment, VirtualFileContent
from zarrfs.mount.reading.published_ranges import UNLIMITED, FileRange
from zarrfs.mount.reading.streams import Bytes

__all__ = ["OpenFile"]

MAX_ATTEMPTS = 3
"""The number of attempts to read a range while the metadata are being changed."""


class OpenFile:
    """A virtual file that a program has opened. Thread-safe: the kernel sends several reads at once.

    ``follow`` is called before each read and returns the current content. It raises an error if the content has another
    size or other metadata than before. Its argument is whether a change has been noticed during a read.

    With a ``handle``, which must be unique in the process, the native library may serve reads of blocks in memory until
    ``close``. ``expires`` returns the time of the monotonic clock until which the content needs no comparison with the
    store, as of the last call of ``follow``.

    Attributes:
        content: the current content.
        keeps_pages: whether the pages that the kernel had cached when the file was opened are current.
    """

    def __init__(
        self,
        content: VirtualFileContent,
        pool: BlockPool,
        follow: Callable[[bool], VirtualFileContent] | None = None,
        *,
        handle: int = 0,
        expires: Callable[[], float] = lambda: float("inf"),
    ) -> None:
        self.content = content
        self.keeps_pages = False
        self._follow = follow
        self._pool = pool
        self._pattern = AccessPattern()
        self._readers: set[int] = set()
        self._handle = handle
        self._expires = expires
        self._last_block: object = None
        """The segment and the block of the last read that was not sequential."""

    def read(self, offset: int, size: int) -> Any:
        """Return the bytes at ``offset``, at most ``size`` and as far as the file goes, as a ctypes array of bytes.

        The array may refer to the memory of a block and must not be changed.
        """
        # Adding to a set and removing from it is atomic; each thread changes its own item.
        thread = get_ident()
        self._readers.add(thread)
        try:
            return self._read_current(offset, size)
        finally:
            self._readers.discard(thread)

    @property
    def is_being_read(self) -> bool:
        """Whether a read is in progress."""
        return bool(self._readers) or self._pool.published.is_being_read(self._handle)

    def close(self) -> None:
        """Let the native library serve no more reads."""
        self._pool.published.close_file(self._handle)

    def _read_current(self, offset: int, size: int) -> Any:
        published = self._pool.published
        changes = published.changes
        follow = self._follow
        if follow is None:
            return self._read(offset, size, changes)
        self.content = follow(False)
        for _ in range(MAX_ATTEMPTS - 1):
            try:
                return self._read(offset, size, changes)
            except (ZarrError, OSError) as error:
                if not is_stale(error):
                    raise
                published.retract_all()
                changes = published.changes
                self.content = follow(True)
        return self._read(offset, size, changes)

    def _read(self, offset: int, size: int, changes: int) -> Any:
        content = self.content
        count = max(0, min(size, content.size - offset))
        if not count:
            return (ctypes.c_ubyte * 0)()
        run = self._pool.published.last_run(self._handle)
        if run is not None:
            self._pattern.record_run(*run)
        pattern = self._pattern.record(offset, count)
        segment, start, available = content.locate(offset)
        if count <= available and isinstance(segment, StreamSegment):
            data: Any = self._read_stream(segment, start, count, pattern)
            if self._handle:
                self._publish(content, segment, offset, start, pattern, changes)
            # The array keeps the memory of the data alive, and saves a copy.
            return (ctypes.c_ubyte * count).from_buffer(data)
        buffer = (ctypes.c_ubyte * count)()
        view = memoryview(buffer).cast("B")
        done = 0
        for segment, start, length in content.parts(offset, count):
            target = view[done : done + length]
            if isinstance(segment, StreamSegment):
                target[:] = self._read_stream(segment, start, length, pattern).data
            else:
                segment.read_into(start, target)
            done += length
        return buffer

    def _publish(
        self,
        content: VirtualFileContent,
        segment: StreamSegment,
        offset: int,
        start: int,
        pattern: Pattern,
        changes: int,
    ) -> None:
        """Let the native library serve further reads of the block of a read, unless ``AccessPattern`` has to see them.

        ``start`` is the offset of the read in the segment, ``changes`` the number before the content was compared.
        """
        blocks = segment.blocks(self._pool)
        if pattern is Pattern.SEQUENTIAL:
            if not self._pattern.is_long:
                return  # The next block is not read ahead yet.
            max_run = UNLIMITED
        else:
            last, self._last_block = self._last_block, (segment, blocks.grid.find(start))
            if pattern is not Pattern.RANDOM or last != self._last_block:
                return
            max_run = MIN_SEQUENTIAL_NBYTES
        bounds = content.bounds(offset)
        blocks.publish(
            start, FileRange(self._handle, *bounds, offset - start, self._expires(), max_run, changes)
        )

    def _read_stream(self, segment: StreamSegment, start: int, size: int, pattern: Pattern) -> Bytes:
        blocks = segment.blocks(self._pool)
        if pattern is not Pattern.STRIDED:
            return blocks.read(
                start, size, sequential=pattern is Pattern.SEQUENTIAL, read_ahead=self._pattern.is_long
            )
        return blocks.read_strided(start, size, self._pattern.stride, self._pattern.run_nbytes)
