"""Reading an open virtual file: sequential access through blocks, other access directly."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

from zarrfs.errors import ZarrError
from zarrfs.mount.access_pattern import AccessPattern
from zarrfs.mount.blocks import BlockPool, is_stale
from zarrfs.mount.content import Segment, StreamSegment, VirtualFileContent

__all__ = ["OpenFile"]

MAX_ATTEMPTS = 3
"""The number of attempts to read a range while the metadata are being changed."""


class OpenFile:
    """A virtual file that a program has opened. Thread-safe: the kernel sends several reads at once.

    ``follow`` is called before each read and returns the current content. It raises an error if the content has another
    size or other metadata than before. Its argument is whether a change has been noticed during a read.
    """

    def __init__(
        self,
        content: VirtualFileContent,
        pool: BlockPool,
        follow: Callable[[bool], VirtualFileContent] | None = None,
    ) -> None:
        self.content = content
        self._follow = follow
        self._pool = pool
        self._pattern = AccessPattern()

    def read(self, offset: int, size: int) -> Any:
        """Return the bytes at ``offset``, at most ``size`` and as far as the file goes, as a ctypes array of bytes.

        The array may refer to the memory of a block and must not be changed.
        """
        follow = self._follow
        if follow is None:
            return self._read(offset, size)
        self.content = follow(False)
        for _ in range(MAX_ATTEMPTS - 1):
            try:
                return self._read(offset, size)
            except (ZarrError, OSError) as error:
                if not is_stale(error):
                    raise
                self.content = follow(True)
        return self._read(offset, size)

    def _read(self, offset: int, size: int) -> Any:
        count = max(0, min(size, self.content.size - offset))
        if not count:
            return (ctypes.c_ubyte * 0)()
        sequential = self._pattern.is_sequential(offset, count)
        parts = list(self.content.parts(offset, count))
        if len(parts) == 1:
            segment, start, _ = parts[0]
            blocks = self._blocks(segment)
            if blocks is not None:
                # The array keeps the block alive, and saves a copy.
                data = blocks.read(start, count, sequential=sequential)
                return (ctypes.c_ubyte * count).from_buffer(data)
        buffer = (ctypes.c_ubyte * count)()
        view = memoryview(buffer).cast("B")
        done = 0
        for segment, start, length in parts:
            blocks = self._blocks(segment)
            if blocks is None:
                segment.read_into(start, view[done : done + length])
            else:
                view[done : done + length] = blocks.read(start, length, sequential=sequential).data
            done += length
        return buffer

    def _blocks(self, segment: Segment) -> Any:
        return segment.blocks(self._pool) if isinstance(segment, StreamSegment) else None
