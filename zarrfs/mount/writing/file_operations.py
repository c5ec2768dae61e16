"""The FUSE operations of a writable mount that look up, open, read and write files."""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from zarrfs.engine.nodes.array import Array
from zarrfs.errors import describe_error
from zarrfs.logs import logger
from zarrfs.mount.fuse.disk_space import disk_space
from zarrfs.mount.fuse.error_numbers import errors_to_errno, os_error
from zarrfs.mount.fuse.open_directories import LazyEntry
from zarrfs.mount.fuse.operations import ZarrOperations
from zarrfs.mount.fuse.refusal import RefusedError
from zarrfs.mount.options import CreationOptions
from zarrfs.mount.reading.blocks import BlockPool
from zarrfs.mount.tree.entries import Directory, Entry, FileSummary, VirtualFile
from zarrfs.mount.tree.presentation import GROUP_DOCUMENT
from zarrfs.mount.tree.tree import Tree
from zarrfs.mount.writing.array_file import ArrayFile
from zarrfs.mount.writing.file_handles import FileHandles
from zarrfs.mount.writing.hidden_names import HiddenNames
from zarrfs.mount.writing.hierarchy_editor import HierarchyEditor
from zarrfs.mount.writing.local_storage import synchronize
from zarrfs.mount.writing.new_files import (
    CREATED_SUFFIXES,
    IncompleteFileError,
    check_creatable,
    created_suffix,
    store_file,
)
from zarrfs.mount.writing.pending import PendingFile, PendingFiles
from zarrfs.mount.writing.write_buffer import WriteBuffer

__all__ = ["FileOperations"]


class FileOperations(ZarrOperations):
    """Operations on a Tree whose files can be written.

    A file is a file of an array, which is changed in place, or a pending file, which becomes part of the hierarchy when
    it is complete. A name that was removed while other names of its node remain is hidden.
    """

    file_mode = 0o644
    directory_mode = 0o755

    def __init__(
        self,
        tree: Tree,
        ready: Callable[[], None],
        mounted_at: float | None = None,
        pool: BlockPool | None = None,
        options: CreationOptions | None = None,
        write_buffer: WriteBuffer | None = None,
    ) -> None:
        super().__init__(tree, ready, mounted_at, pool)
        self._write_buffer = WriteBuffer() if write_buffer is None else write_buffer
        self._editor = HierarchyEditor(tree, self._write_buffer, options or CreationOptions())
        self._pending = PendingFiles()
        self._hidden = HiddenNames()
        # Held while the hierarchy is changed.
        self._structure = threading.RLock()
        self._file_handles = FileHandles(tree, self._files, self._handles, self._pool, self._write_buffer)

    def destroy(self, path: str) -> None:
        for file in self._pending:
            try:
                is_stored = not file.is_changed or (file.size > 0 and store_file(file, self._editor))
            except Exception as error:
                logger.error("%s: the file is lost: %s", file.path, describe_error(error))
            else:
                if not is_stored and file.size:
                    logger.warning("%s: the temporary file of %d bytes is removed", file.path, file.size)
            self._pending.remove(file)
        self._write_buffer.close()
        super().destroy(path)

    # -- lookup ------------------------------------------------------------------------------------------------

    def _entry(self, path: str) -> Entry:
        if path in self._hidden:
            raise os_error(errno.ENOENT)
        return super()._entry(path)

    def _modified(self, entry: Entry) -> float:
        modified = super()._modified(entry)
        if isinstance(entry.node, Array):
            return max(modified, self._write_buffer.modified(entry.node.store, entry.node.path))
        return modified

    def _summary_modified(self, summary: FileSummary) -> float:
        return max(
            super()._summary_modified(summary), self._write_buffer.modified(summary.store, summary.path)
        )

    @errors_to_errno
    def getattr(self, path: str, fh: Any = None) -> dict[str, Any]:
        file = self._pending.get(path)
        if file is not None:
            return self._file_status(file.size, file.size, file.modified)
        if path in self._hidden:
            raise os_error(errno.ENOENT)
        return super().getattr(path, fh)

    @errors_to_errno
    def access(self, path: str, mode: int) -> int:
        is_file = self._pending.get(path) is not None or not isinstance(self._entry(path), Directory)
        if mode & os.X_OK and is_file:
            raise os_error(errno.EACCES)
        return 0

    def _list(self, path: str, needs_sizes: Callable[[int], bool]) -> Iterator[LazyEntry]:
        prefix = path.rstrip("/") + "/"
        pending = set(self._pending.names(path))
        for item in super()._list(path, needs_sizes):
            if prefix + item.name not in self._hidden and item.name not in pending:
                yield item
        for name in sorted(pending):
            yield LazyEntry(name, False, True, partial(self._pending_status, prefix + name))

    def _pending_status(self, path: str) -> tuple[dict[str, Any], None]:
        return self.getattr(path), None

    @errors_to_errno
    def statfs(self, path: str) -> dict[str, int]:
        return disk_space(self._tree.root.store) or super().statfs(path)

    # -- open files --------------------------------------------------------------------------------------------

    @errors_to_errno
    def open(self, path: str, flags: int) -> int:
        if flags & (os.O_ACCMODE | os.O_TRUNC):
            self._check_writable()
        file = self._pending.get(path)
        if file is not None:
            if flags & os.O_TRUNC:
                file.truncate(0)
            return self._file_handles.add_pending(file)
        entry = self._entry(path)
        if not isinstance(entry, VirtualFile):
            raise os_error(errno.EISDIR)
        if flags & os.O_ACCMODE == os.O_RDONLY:
            return self._file_handles.add_array_file(path, entry.content)
        if entry.node is None:
            raise RefusedError(f"{path}: the file describes an error and cannot be changed", errno.EPERM)
        is_document = path.endswith(".json")
        if not is_document and not flags & os.O_TRUNC:
            return self._file_handles.add_array_file(path, entry.content)
        if not path.endswith(CREATED_SUFFIXES):
            raise RefusedError(
                f"{path}: files of this kind cannot be replaced; expected {', '.join(CREATED_SUFFIXES)}",
                errno.EOPNOTSUPP,
            )
        content = b"" if flags & os.O_TRUNC else entry.content.read(0, entry.content.size)
        file = PendingFile(path, content)
        file.is_changed = bool(flags & os.O_TRUNC)
        file.replaces = True
        self._pending.add(file)
        return self._file_handles.add_pending(file)

    @errors_to_errno
    def create(self, path: str, mode: int) -> int:
        self._check_writable()
        parent = path.rpartition("/")[0]
        if not isinstance(self._entry(parent or "/"), Directory):
            raise os_error(errno.ENOTDIR)
        _ = self._editor.root
        check_creatable(path)
        file = PendingFile(path)
        self._pending.add(file)
        self._hidden.show(path)
        return self._file_handles.add_pending(file)

    def _check_writable(self) -> None:
        if self._tree.root.store.read_only:
            raise os_error(errno.EROFS)

    def _mark_stale(self, path: str) -> None:
        """Let open files of the nodes at or below a path look up their content again."""
        top = self._editor.store_path("" if isinstance(self._tree.root, Array) else path.strip("/"))
        self._file_handles.mark_stale(top)

    @errors_to_errno
    def read(self, path: str, size: int, offset: int, fh: int) -> Any:
        pending = self._file_handles.pending(fh)
        if pending is not None:
            return pending.read(offset, size)
        try:
            return self._file_handles.array_file(path, fh).read(offset, size)
        except Exception as error:
            if isinstance(error, OSError) and error.errno == errno.ESTALE:
                raise
            self._error_log.report(path, error)
            raise os_error(errno.EIO) from error

    @errors_to_errno
    def write(self, path: str, data: bytes, offset: int, fh: int) -> int:
        pending = self._file_handles.pending(fh)
        if pending is not None:
            with pending.lock:
                # Meanwhile the file can have become an array, to which the handle writes then.
                if self._file_handles.pending(fh) is not None:
                    return pending.write(offset, data)
        return self._file_handles.array_file(path, fh).write(offset, data)

    @errors_to_errno
    def flush(self, path: str, fh: Any) -> int:
        self._flush(path, fh)
        return 0

    @errors_to_errno
    def fsync(self, path: str, datasync: int, fh: Any) -> int:
        self._flush(path, fh)
        synchronize(self._tree.root.store)
        return 0

    @errors_to_errno
    def fsyncdir(self, path: str, datasync: int, fh: Any) -> int:
        synchronize(self._tree.root.store)
        return 0

    def _flush(self, path: str, fh: int) -> None:
        pending = self._file_handles.pending(fh)
        if pending is None:
            file = self._files.get(fh)
            if isinstance(file, ArrayFile):
                file.flush()
        elif pending.is_changed and pending.size:
            try:
                self._store(pending)
            except IncompleteFileError as error:
                # numpy.lib.format.open_memmap writes the header, closes the file, and opens it again.
                logger.info("%s", error)

    def _store(self, file: PendingFile) -> bool:
        """Apply a pending file to the hierarchy, and remove it. Return False if it has a temporary name."""
        with self._structure, file.lock:
            if not store_file(file, self._editor):
                return False
            self._show_stem(file.path)
            self._pending.remove(file)
            self._file_handles.continue_in_place(file)
            if file.path.endswith(".json"):
                self._store_elements(file.path.removesuffix(".json") + ".raw")
        return True

    def _store_elements(self, path: str) -> None:
        """Store a pending .raw file that was written before the JSON file of its array, if it fits."""
        elements = self._pending.get(path)
        if elements is not None and elements.is_changed and elements.size:
            elements.acquire()
            try:
                self._store(elements)
            except RefusedError as error:
                logger.error("%s", error)
            finally:
                elements.release()

    def _show_stem(self, path: str) -> None:
        """Show all names of the node that a stored file presents, and let open files of it look up their content."""
        stem = path.removesuffix(GROUP_DOCUMENT if path.endswith(GROUP_DOCUMENT) else created_suffix(path))
        self._hidden.show_all(f"{stem.rstrip('.')}.")
        self._mark_stale(stem)

    @errors_to_errno
    def release(self, path: str, fh: int) -> int:
        pending = self._file_handles.pop_pending(fh)
        if pending is None:
            file = self._file_handles.dirty_array_file(fh)
            if file is not None:
                self._flush_released(path, file)
            return super().release(path, fh)
        last = not pending.is_shared
        if last and pending.is_changed and pending.size and self._pending.get(pending.path) is not pending:
            self._store_again(path, pending)
        if last and not (pending.is_changed and pending.size) and self._is_shadow(pending):
            if pending.is_changed:
                logger.warning("%s: the file was truncated and closed empty; the array is unchanged", path)
            self._pending.remove(pending)
        pending.release()
        return 0

    def _flush_released(self, path: str, file: ArrayFile) -> None:
        """Store what was written by a mapping after the file had been closed. No program receives an error of this."""
        try:
            file.flush()
        except Exception as error:
            logger.warning(
                "%s: written data cannot be stored now and is kept: %s", path, describe_error(error)
            )

    def _store_again(self, path: str, file: PendingFile) -> None:
        """Store a file that was written by a mapping after it had been stored. No program receives an error of this."""
        try:
            self._store(file)
        except Exception as error:
            logger.error("%s: the last changes are not stored: %s", path, describe_error(error))
            if self._pending.get(file.path) is None:
                self._pending.add(file)

    def _is_shadow(self, file: PendingFile) -> bool:
        """Return whether a pending file has the path of a file of the hierarchy."""
        return self._pending.get(file.path) is file and self._tree.lookup(file.path) is not None
