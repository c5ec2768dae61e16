"""The open files of a writable mount by handle."""

from __future__ import annotations

import errno
from collections.abc import Iterator

from zarrfs.mount.fuse.error_numbers import os_error
from zarrfs.mount.reading.blocks import BlockPool
from zarrfs.mount.reading.content import VirtualFileContent
from zarrfs.mount.reading.open_files import OpenFile
from zarrfs.mount.tree.entries import VirtualFile
from zarrfs.mount.tree.tree import Tree
from zarrfs.mount.writing.array_file import ArrayFile
from zarrfs.mount.writing.pending import PendingFile
from zarrfs.mount.writing.write_buffer import WriteBuffer

__all__ = ["FileHandles"]


class FileHandles:
    """Handles of files of arrays, which are changed in place, and of pending files. Thread-safe.

    ``files`` is the table of the mount's operations from handles to open files. Handles of pending files are not in it.
    ``numbers`` yields unused handles.
    """

    def __init__(
        self,
        tree: Tree,
        files: dict[int, OpenFile],
        numbers: Iterator[int],
        pool: BlockPool,
        write_buffer: WriteBuffer,
    ) -> None:
        self._tree = tree
        self._files = files
        self._pending: dict[int, PendingFile] = {}
        self._numbers = numbers
        self._pool = pool
        self._write_buffer = write_buffer

    def add_array_file(self, path: str, content: VirtualFileContent) -> int:
        """Open a file of an array, and return its handle."""
        handle = next(self._numbers)
        self._files[handle] = self._open(path, content)
        return handle

    def add_pending(self, file: PendingFile) -> int:
        """Open a pending file, and return its handle."""
        handle = next(self._numbers)
        file.acquire()
        self._pending[handle] = file
        return handle

    def pending(self, handle: int) -> PendingFile | None:
        """Return the pending file of a handle, or None if it is the handle of another file."""
        return self._pending.get(handle)

    def pop_pending(self, handle: int) -> PendingFile | None:
        """Remove the handle of a pending file, and return the file, which the caller releases; None for others."""
        return self._pending.pop(handle, None)

    def dirty_array_file(self, handle: int) -> ArrayFile | None:
        """Return the file of an array if bytes were written to it since it was flushed, otherwise None."""
        file = self._files.get(handle)
        return file if isinstance(file, ArrayFile) and file.is_dirty else None

    def array_file(self, path: str, handle: int) -> ArrayFile:
        """Return the open file of a handle. It follows the array if that was replaced, renamed or resized.

        Raises OSError with ESTALE if there is no longer a file at the path.
        """
        file = self._files.get(handle)
        if isinstance(file, ArrayFile) and not file.is_stale:
            return file
        entry = self._tree.lookup(path)
        if not isinstance(entry, VirtualFile):
            raise os_error(errno.ESTALE)
        file = self._open(path, entry.content)
        if handle in self._files:
            self._files[handle] = file
        return file

    def mark_stale(self, top: str) -> None:
        """Let open files of the nodes at or below a path of the store look up their content again."""
        for file in list(self._files.values()):
            if isinstance(file, ArrayFile):
                file.mark_stale(top)

    def continue_in_place(self, file: PendingFile) -> None:
        """Let the handles of a file that became an array write to the array, if the array has a file of equal bytes.

        A program may write to a mapping of a file that it has closed. The caller holds the lock of the file.
        """
        entry = self._tree.lookup(file.path)
        if not isinstance(entry, VirtualFile) or entry.content.size != file.size:
            return
        header_nbytes = file.size - sum(array.nbytes for array in entry.content.arrays)
        if file.path.endswith(".json") or entry.content.read(0, header_nbytes) != file.read(0, header_nbytes):
            return
        for handle, pending in list(self._pending.items()):
            if pending is file:
                self._files[handle] = self._open(file.path, entry.content)
                del self._pending[handle]
                file.release()

    def _open(self, path: str, content: VirtualFileContent) -> ArrayFile:
        return ArrayFile(path, content, self._pool, self._write_buffer)
