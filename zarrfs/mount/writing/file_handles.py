"""The open files of a writable mount by handle."""

from __future__ import annotations

import errno
from collections.abc import Iterator

from zarrfs.files.content.blocks import BlockPool
from zarrfs.files.content.content import VirtualFileContent
from zarrfs.files.content.open_files import OpenFile
from zarrfs.mount.fuse.error_numbers import os_error
from zarrfs.mount.tree.entries import VirtualFile
from zarrfs.mount.tree.node_records import same_data
from zarrfs.mount.tree.tree import Tree
from zarrfs.mount.writing.array_file import ArrayFile
from zarrfs.mount.writing.pending import PendingFile
from zarrfs.mount.writing.write_buffer import WriteBuffer

__all__ = ["FileHandles", "is_raw"]


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
        self._writers: dict[int, int] = {}
        self._numbers = numbers
        self._pool = pool
        self._write_buffer = write_buffer

    def add_array_file(self, path: str, content: VirtualFileContent, writer: int | None) -> int:
        """Open a file of an array, and return its handle. ``writer`` is the process if it opens it for writing."""
        handle = self._new_handle(writer)
        self._files[handle] = self._open(path, content)
        return handle

    def add_pending(self, file: PendingFile, writer: int | None) -> int:
        """Open a pending file, and return its handle. ``writer`` is the process if it opens the file for writing."""
        handle = self._new_handle(writer)
        file.acquire()
        self._pending[handle] = file
        return handle

    def _new_handle(self, writer: int | None) -> int:
        handle = next(self._numbers)
        if writer is not None:
            self._writers[handle] = writer
        return handle

    def is_writer(self, handle: int) -> bool:
        """Return whether a file was opened for writing."""
        return handle in self._writers

    def may_be_last(self, handle: int, process: int) -> bool:
        """Return whether no writes are expected after a process has closed a descriptor of a handle.

        Programs that a shell or another program starts close the descriptors that they inherited, and the process that
        opened the file continues. The number of a process is 0 if it is not known.
        """
        writer = self._writers.get(handle, 0)
        return not process or writer in (0, process)

    def path(self, handle: int) -> str | None:
        """Return the present path of an open file, also if it was removed, or None if there is no such handle."""
        pending = self._pending.get(handle)
        file = self._files.get(handle) if pending is None else pending
        return file.path if isinstance(file, ArrayFile | PendingFile) else None

    def discard(self, handle: int) -> None:
        """Forget who opened a handle, which is closed."""
        self._writers.pop(handle, None)

    def is_written(self, file: PendingFile) -> bool:
        """Return whether a pending file is open for writing."""
        return any(each is file and handle in self._writers for handle, each in list(self._pending.items()))

    def pending(self, handle: int) -> PendingFile | None:
        """Return the pending file of a handle, or None if it is the handle of another file."""
        return self._pending.get(handle)

    def pop_pending(self, handle: int) -> PendingFile | None:
        """Remove the handle of a pending file, and return the file, which the caller releases; None for others."""
        return self._pending.pop(handle, None)

    def array_file(self, path: str, handle: int) -> ArrayFile:
        """Return the open file of a handle. It follows the array if that was replaced, renamed or resized.

        ``path`` is used only if there is no such handle. Raises OSError with ESTALE if there is no longer a file at the
        path, or if another program has changed the array so that the content is no longer that of the handle.
        """
        file = self._files.get(handle)
        if isinstance(file, ArrayFile):
            if file.is_outdated:
                raise os_error(errno.ESTALE)
            if not file.is_stale:
                return file
            path = file.path
        entry = self._tree.lookup(path)
        if not isinstance(entry, VirtualFile):
            raise os_error(errno.ESTALE)
        if not isinstance(file, ArrayFile):
            return self._open(path, entry.content)
        file.follow(entry.content)
        return file

    def changed_file(self, handle: int) -> ArrayFile:
        """Return the open file of a handle whose array another program has changed, with its present content.

        Raises OSError with ESTALE unless it continues the content that the program may have read.
        """
        file = self._files.get(handle)
        if isinstance(file, ArrayFile):
            self._tree.rescan()
            entry = self._tree.lookup(file.path)
            if isinstance(entry, VirtualFile) and _continues(file.content, entry.content):
                file.follow(entry.content)
                return file
            file.is_outdated = True
        raise os_error(errno.ESTALE)

    def mark_stale(self, top: str) -> None:
        """Let open files of the nodes at or below a path of the store look up their content again."""
        for file in self._array_files():
            if file.presents(top):
                file.is_stale = True

    def move(self, source: str, target: str, top: str) -> None:
        """Let open files follow a node, at the path ``top`` of the store, that was moved with everything below it."""
        for file in self._array_files():
            rest = file.path.removeprefix(f"/{source}")
            if rest != file.path and rest[:1] in (".", "/") and file.presents(top):
                file.path = f"/{target}{rest}"
                file.is_stale = True

    def writers_of_end(self, appended: PendingFile) -> list[ArrayFile]:
        """Return the open files that wrote to the bytes after the end of an array."""
        return [file for file in self._array_files() if file.appended is appended]

    def _array_files(self) -> list[ArrayFile]:
        return [file for file in list(self._files.values()) if isinstance(file, ArrayFile)]

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
        file = ArrayFile(path, content, self._pool, self._write_buffer)
        file.can_grow = is_raw(path, content)
        return file


def _continues(old: VirtualFileContent, new: VirtualFileContent) -> bool:
    are_same = len(old.arrays) == len(new.arrays) and all(map(same_data, old.arrays, new.arrays))
    return are_same and old.has_same_layout(new)


def is_raw(path: str, content: VirtualFileContent) -> bool:
    """Return whether a file contains the elements of an array in C order and nothing else, so that its size determines
    the length of the first dimension, which is the slowest one.
    """
    # A file without elements has no order.
    return (
        path.endswith(".raw") and content.is_c_ordered and bool(content.size or not path.endswith(".F.raw"))
    )
