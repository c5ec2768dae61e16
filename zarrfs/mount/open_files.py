"""Reading an open virtual file: sequential access through blocks, other access directly."""

from __future__ import annotations

import ctypes
from typing import Any

from zarrfs.mount.access_pattern import AccessPattern
from zarrfs.mount.blocks import BlockPool
from zarrfs.mount.content import Segment, StreamSegment, VirtualFileContent

__all__ = ["OpenFile"]


class OpenFile:
    """A virtual file that a program has opened. Thread-safe: the kernel sends several reads at once."""

    def __init__(self, content: VirtualFileContent, pool: BlockPool) -> None:
        self.content = content
        self._pool = pool
        self._pattern = AccessPattern()

    def read(self, offset: int, size: int) -> Any:
        """Return the bytes at ``offset``, at most ``size`` and as far as the file goes, as a ctypes array of bytes.

        The array may refer to the memory of a block and must not be changed.
        """
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
