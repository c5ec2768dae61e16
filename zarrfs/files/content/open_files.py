"""Reading an open virtual file in the way that suits the access pattern."""

from __future__ import annotations

import ctypes
import os
import time
from collections.abc import Callable
from typing import Any

from zarrfs.errors import ZarrError
from zarrfs.files.content.access_pattern import AccessPattern, Pattern
from zarrfs.files.content.block_reader import is_stale
from zarrfs.files.content.blocks import BlockPool
from zarrfs.files.content.content import StreamSegment, VirtualFileContent
from zarrfs.files.content.freshness import REVALIDATION_SECONDS
from zarrfs.files.content.streams import Bytes

__all__ = ["OpenFile"]

MAX_ATTEMPTS = 3
"""The number of attempts to read a range while the metadata are being changed."""


class OpenFile:
    """A virtual file that a program has opened. Thread-safe: the kernel sends several reads at once.

    ``follow`` is called before each read and returns the current content. It raises an error if the content has another
    size or other metadata than before. Its argument is whether a change has been noticed during a read.

    Attributes:
        content: the current content.
        keeps_pages: whether the pages that the kernel had cached when the file was opened are current.
    """

    def __init__(
        self,
        content: VirtualFileContent,
        pool: BlockPool,
        follow: Callable[[bool], VirtualFileContent] | None = None,
    ) -> None:
        self.content = content
        self.keeps_pages = False
        self._follow = follow
        self._pool = pool
        self._pattern = AccessPattern()
        self._reads: set[object] = set()
        self._data_ranges: tuple[VirtualFileContent | None, list[tuple[int, int]], float] = (None, [], 0.0)

    @property
    def is_being_read(self) -> bool:
        """Whether a read is in progress."""
        return bool(self._reads)

    def read(self, offset: int, size: int) -> Any:
        """Return the bytes at ``offset``, at most ``size`` and as far as the file goes, as a ctypes array of bytes.

        The array may refer to the memory of a block and must not be changed.
        """
        # Adding to a set and removing from it is atomic; each read changes its own item.
        this = object()
        self._reads.add(this)
        try:
            for attempt in range(MAX_ATTEMPTS):
                content = self.content
                if self._follow is not None:
                    content = self.content = self._follow(attempt > 0)
                try:
                    return self._read(content, offset, size)
                except (ZarrError, OSError) as error:
                    if self._follow is None or attempt == MAX_ATTEMPTS - 1 or not is_stale(error):
                        raise
        finally:
            self._reads.discard(this)

    def seek(self, offset: int, whence: int) -> int | None:
        """Return the offset of the next data or hole from ``offset`` on, for ``os.SEEK_DATA`` or ``os.SEEK_HOLE``.

        Holes are missing chunks whose elements are 0. The end of the file is a hole. None if there is no data, or
        ``offset`` is outside of the file. Raises ZarrError and OSError if the store cannot be listed.
        """
        content = self.content if self._follow is None else self._follow(False)
        known, ranges, since = self._data_ranges
        if known is not content or time.monotonic() - since >= REVALIDATION_SECONDS:
            ranges = content.data_ranges()
            self._data_ranges = content, ranges, time.monotonic()
        if not 0 <= offset < content.size:
            return None
        for start, stop in ranges:
            if offset < stop:
                if whence == os.SEEK_DATA:
                    return max(offset, start)
                return offset if offset < start else stop
        return None if whence == os.SEEK_DATA else offset

    def _read(self, content: VirtualFileContent, offset: int, size: int) -> Any:
        count = max(0, min(size, content.size - offset))
        if not count:
            return (ctypes.c_ubyte * 0)()
        pattern = self._pattern.record(offset, count)
        segment, start, available = content.locate(offset)
        if count <= available and isinstance(segment, StreamSegment):
            data: Any = self._read_stream(segment, start, count, pattern)
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

    def _read_stream(self, segment: StreamSegment, start: int, size: int, pattern: Pattern) -> Bytes:
        blocks = segment.blocks(self._pool)
        if pattern is not Pattern.STRIDED:
            read_ahead = self._pattern.is_long(blocks.grid.block)
            return blocks.read(start, size, sequential=pattern is Pattern.SEQUENTIAL, read_ahead=read_ahead)
        return blocks.read_strided(start, size, self._pattern.stride, self._pattern.run_nbytes)
