"""An open file of a writable mount whose content contains the elements of an array."""

from __future__ import annotations

import ctypes
import errno
from typing import Any

import numpy as np

from zarrfs.files.content.blocks import BlockPool
from zarrfs.files.content.content import ArraySegment, BytesSegment, VirtualFileContent
from zarrfs.files.content.open_files import OpenFile
from zarrfs.mount.fuse.error_numbers import RefusedError
from zarrfs.mount.writing.pending import PendingFile
from zarrfs.mount.writing.write_buffer import WriteBuffer

__all__ = ["ArrayFile"]


class ArrayFile(OpenFile):
    """A file whose bytes can be changed in place. All files of a mount share the write buffer.

    Bytes that do not belong to an element, such as a header, can only be written with their current value.

    Attributes:
        path: the path in the mount. It changes if the array is renamed.
        can_grow: whether bytes that are written at the end become rows of the array.
        appended: the bytes that were written at the end by this file or another one, if this file wrote some of them
            that are not rows yet.
        is_stale: whether the node was changed, so that the content has to be looked up again.
        is_outdated: whether another program has replaced or resized the array, so that reads fail.
        is_dirty: whether bytes were written to this file since it was flushed.
    """

    def __init__(
        self, path: str, content: VirtualFileContent, pool: BlockPool, write_buffer: WriteBuffer
    ) -> None:
        super().__init__(content, pool)
        self.path = path
        self.can_grow = False
        self.appended: PendingFile | None = None
        self._write_buffer = write_buffer
        self.is_stale = False
        self.is_outdated = False
        self.is_dirty = False

    def presents(self, top: str) -> bool:
        """Return whether the file presents a node at or below a path of the store. A file without elements may."""
        paths = [array.path for array in self.content.arrays]
        return not paths or any(not top or path == top or path.startswith(f"{top}/") for path in paths)

    def follow(self, content: VirtualFileContent) -> None:
        """Present other content from now on."""
        self.is_stale = False
        self.content = content

    def read(self, offset: int, size: int) -> Any:
        count = max(0, min(size, self.content.size - offset))
        parts = list(self.content.parts(offset, count))
        arrays = [segment.array for segment, _, _ in parts if isinstance(segment, ArraySegment)]
        if all(self._write_buffer.is_settled(array) for array in arrays):
            return super().read(offset, size)
        buffer = (ctypes.c_ubyte * count)()
        out = np.frombuffer(memoryview(buffer), np.uint8)
        done = 0
        for segment, start, length in parts:
            part = out[done : done + length]
            if isinstance(segment, ArraySegment):
                overlay = self._write_buffer.overlay(
                    segment.array, segment.order, segment.swap_width, start, length
                )
                if overlay is None or not overlay.is_complete:
                    segment.read_into(start, part.data)
                if overlay is not None:
                    overlay.apply(part)
            else:
                segment.read_into(start, part.data)
            done += length
        return buffer

    def write(self, offset: int, data: bytes) -> int:
        """Write bytes at ``offset``. Return their number, which is smaller than ``len(data)`` at the end of the file.

        Raises RefusedError with EFBIG at or after the end of the file, with EPERM for bytes that cannot be changed.
        Nothing is written then.
        """
        count = min(len(data), self.content.size - offset)
        if count <= 0:
            if not data:
                return 0
            raise RefusedError(
                f"{self.path}: byte {offset} is outside the file of {self.content.size} bytes, whose size is "
                "determined by the shape of the array; truncate the .raw file to change the shape",
                errno.EFBIG,
            )
        view = memoryview(data)
        parts = list(self.content.parts(offset, count))
        done = 0
        for segment, start, length in parts:
            if not isinstance(segment, ArraySegment):
                self._check_unchanged(segment, start, view[done : done + length])
            done += length
        done = 0
        self.is_dirty = True
        for segment, start, length in parts:
            if isinstance(segment, ArraySegment):
                self._write_buffer.write(
                    segment.array, segment.order, segment.swap_width, start, view[done : done + length]
                )
            done += length
        return count

    def _check_unchanged(self, segment: Any, start: int, new: memoryview) -> None:
        if not isinstance(segment, BytesSegment):
            raise RefusedError(
                f"{self.path}: the file is encoded and cannot be changed in place", errno.EPERM
            )
        old = bytearray(len(new))
        segment.read_into(start, memoryview(old))
        if old != new:
            raise RefusedError(
                f"{self.path}: the write changes bytes of the header, which is computed from the metadata; only the "
                "elements can be changed in place",
                errno.EPERM,
            )

    def flush(self) -> None:
        """Write the dirty chunks of the arrays of this file to the store. Raises the first error."""
        self.is_dirty = False
        try:
            for array in self.content.arrays:
                self._write_buffer.flush(array)
        except BaseException:
            self.is_dirty = True
            raise
