"""The FUSE operations of a writable mount that look up, open, read and write files."""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from zarrfs.engine.array.array import Array
from zarrfs.errors import describe_error
from zarrfs.files.content.block_reader import is_stale
from zarrfs.files.content.blocks import BlockPool
from zarrfs.logs import logger
from zarrfs.mount.fuse.disk_space import disk_space
from zarrfs.mount.fuse.error_numbers import RefusedError, errors_to_errno, os_error
from zarrfs.mount.fuse.open_directories import ATTRIBUTES
from zarrfs.mount.fuse.operations import ZarrOperations
from zarrfs.mount.options import CreationOptions
from zarrfs.mount.tree.entries import Directory, Entry, FileSummary, ListedEntry, VirtualFile
from zarrfs.mount.tree.presentation import GROUP_DOCUMENT
from zarrfs.mount.tree.tree import Tree
from zarrfs.mount.writing.array_file import ArrayFile
from zarrfs.mount.writing.file_handles import FileHandles
from zarrfs.mount.writing.hidden_names import HiddenNames
from zarrfs.mount.writing.hierarchy_editor import HierarchyEditor, check_path
from zarrfs.mount.writing.implied_names import ImpliedNames
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

MAX_LOST = 100
"""The number of descriptions of lost data that are kept for the end of the mount."""


class FileOperations(ZarrOperations):
    """Operations on a Tree whose files can be written.

    A file is a file of an array, which is changed in place, or a pending file, which becomes part of the hierarchy when
    it is complete. A name that was removed while other names of its node remain is hidden. ``caller`` returns the
    process whose request is being served, 0 if it is not known.

    Attributes:
        lost: descriptions of written data that could not be stored and are lost. Each is also logged.
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
        caller: Callable[[], int] = lambda: 0,
    ) -> None:
        super().__init__(tree, ready, mounted_at, pool)
        self.lost: list[str] = []
        self._caller = caller
        self._write_buffer = WriteBuffer() if write_buffer is None else write_buffer
        self._editor = HierarchyEditor(tree, self._write_buffer, options or CreationOptions())
        self._pending = PendingFiles()
        # Bytes that were written at the end of .raw files and are not rows of arrays yet, used with ``_structure``.
        self._appended = PendingFiles()
        self._hidden = HiddenNames()
        self._implied = ImpliedNames()
        # The directories that were created, with the processes that created them.
        self._group_creators = ImpliedNames()
        # Held while the hierarchy is changed.
        self._structure = threading.RLock()
        self._file_handles = FileHandles(tree, self._files, self._handles, self._pool, self._write_buffer)

    def destroy(self, path: str) -> None:
        for file in self._pending:
            try:
                is_stored = not file.is_changed or (file.size > 0 and self._apply(file))
            except Exception as error:
                self._report_lost(f"{file.path}: the file is lost: {describe_error(error)}")
            else:
                if not is_stored and file.size:
                    logger.warning("%s: the temporary file of %d bytes is removed", file.path, file.size)
            self._pending.remove(file)
        for appended in self._appended:
            self._store_last_rows(appended)
        for each in self._write_buffer.close():
            self._report_lost(each)
        super().destroy(path)

    def store_changes(self) -> None:
        """Store what was written to existing arrays. Raises ZarrError."""
        for appended in list(self._appended):
            self._store_appended(appended.path)
        self._write_buffer.flush()

    def _report_lost(self, description: str) -> None:
        logger.error("%s", description)
        if len(self.lost) < MAX_LOST:
            self.lost.append(description)
        elif len(self.lost) == MAX_LOST:
            self.lost.append("more data are lost, which the log names")

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

    def open_path(self, handle: int) -> str | None:
        """Return the present path of an open file, also if it was removed; None if there is no such handle."""
        return self._file_handles.path(handle)

    @errors_to_errno
    def getattr(self, path: str, fh: Any = None) -> dict[str, Any]:
        # Another file may have the path of a pending file that was removed.
        file = self._file_handles.pending(fh) or self._pending.get(path)
        if file is not None:
            return self._file_status(file.size, file.size, file.modified)
        if path in self._hidden or (
            path in self._implied and self._implied.is_absent_for(path, self._caller())
        ):
            raise os_error(errno.ENOENT)
        if fh is not None and self._tree.lookup(path) is None:
            raise os_error(errno.ESTALE)
        status = super().getattr(path, fh)
        appended = self._appended.get(path)
        if appended is not None:
            status["st_size"] += appended.size
        return status

    @errors_to_errno
    def access(self, path: str, mode: int) -> int:
        is_file = self._pending.get(path) is not None or not isinstance(self._entry(path), Directory)
        if mode & os.X_OK and is_file:
            raise os_error(errno.EACCES)
        return 0

    def _list(self, path: str, needs_sizes: Callable[[int], bool]) -> Iterator[ListedEntry]:
        prefix = path.rstrip("/") + "/"
        pending = {*self._pending.names(path), *self._appended.names(path)}
        for item in super()._list(path, needs_sizes):
            if prefix + item.name not in self._hidden and item.name not in pending:
                yield item
        for name in sorted(pending):
            yield ListedEntry(name, False, partial(self._tree.lookup, prefix + name))

    def _listed_status(self, parent: str, listed: ListedEntry) -> ATTRIBUTES | None:
        path = parent + listed.name
        if self._pending.get(path) is None and self._appended.get(path) is None:
            return super()._listed_status(parent, listed)
        return self.getattr(path), None

    @errors_to_errno
    def lseek(self, path: str, offset: int, whence: int, fh: int) -> int:
        # Bytes that were written may not be in the store yet. The kernel regards the whole file as data.
        raise os_error(errno.ENOSYS)

    @errors_to_errno
    def statfs(self, path: str) -> dict[str, int]:
        return disk_space(self._tree.root.store) or super().statfs(path)

    # -- open files --------------------------------------------------------------------------------------------

    @errors_to_errno
    def open(self, path: str, flags: int) -> int:
        if flags & (os.O_ACCMODE | os.O_TRUNC):
            self._check_writable()
        writer = self._caller() if flags & os.O_ACCMODE != os.O_RDONLY else None
        file = self._pending.get(path)
        if file is not None:
            if flags & os.O_TRUNC:
                file.truncate(0)
            return self._file_handles.add_pending(file, writer)
        entry = self._entry(path)
        if not isinstance(entry, VirtualFile):
            raise os_error(errno.EISDIR)
        if flags & os.O_ACCMODE == os.O_RDONLY:
            return self._file_handles.add_array_file(path, entry.content, writer)
        self._check_own(path, entry)
        if entry.node is None:
            raise RefusedError(f"{path}: the file describes an error and cannot be changed", errno.EPERM)
        is_document = path.endswith(".json")
        if not is_document and not flags & os.O_TRUNC:
            return self._file_handles.add_array_file(path, entry.content, writer)
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
        if path.endswith(".raw"):
            self._discard_appended(path)
        return self._file_handles.add_pending(file, writer)

    @errors_to_errno
    def create(self, path: str, mode: int) -> int:
        self._check_writable()
        self._check_parent(path)
        _ = self._editor.root
        check_creatable(path)
        file = PendingFile(path)
        self._pending.add(file)
        self._hidden.show(path)
        return self._file_handles.add_pending(file, self._caller())

    def _check_parent(self, path: str) -> None:
        """Raise an error if nothing can be created at a path because of its name or its directory."""
        check_path(path)
        parent = path.rpartition("/")[0] or "/"
        entry = self._entry(parent)
        if not isinstance(entry, Directory):
            raise os_error(errno.ENOTDIR)
        self._check_own(parent, entry)

    def _check_own(self, path: str, entry: Entry | None) -> None:
        """Raise RefusedError with EPERM for a file or directory of another program."""
        if entry is not None and entry.is_foreign:
            raise RefusedError(
                f"{path}: files of other programs, which are no part of the hierarchy, are read-only in a mount",
                errno.EPERM,
            )

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
            file = self._file_handles.array_file(path, fh)
            if offset + size > file.content.size and self._appended.get(file.path) is not None:
                with self._structure:
                    return self._read_end(path, size, offset, fh)
            try:
                return file.read(offset, size)
            except Exception as error:
                if not is_stale(error):
                    raise
            return self._file_handles.changed_file(fh).read(offset, size)
        except Exception as error:
            self._error_log.report(path, error)
            raise os_error(errno.ESTALE if is_stale(error) else errno.EIO) from error

    @errors_to_errno
    def write(self, path: str, data: bytes, offset: int, fh: int) -> int:
        pending = self._file_handles.pending(fh)
        if pending is not None:
            with pending.lock:
                # Meanwhile the file can have become an array, to which the handle writes then.
                if self._file_handles.pending(fh) is not None:
                    return pending.write(offset, data)
        file = self._file_handles.array_file(path, fh)
        if file.can_grow and offset + len(data) > file.content.size:
            with self._structure:
                return self._write_end(path, data, offset, fh)
        return file.write(offset, data)

    def _read_end(self, path: str, size: int, offset: int, fh: int) -> bytes:
        """Read the elements of an array, and the bytes that were written after them."""
        file = self._file_handles.array_file(path, fh)
        end = file.content.size
        data = bytes(file.read(offset, size)) if offset < end else b""
        appended = self._appended.get(file.path)
        return data if appended is None else data + appended.read(max(0, offset - end), size - len(data))

    def _write_end(self, path: str, data: bytes, offset: int, fh: int) -> int:
        """Write bytes of which some are after the elements of an array. They become rows when the file is closed."""
        file = self._file_handles.array_file(path, fh)
        start = offset - file.content.size
        appended = self._appended.get(file.path)
        if start + len(data) <= 0 or start > (0 if appended is None else appended.size):
            return file.write(offset, data)
        if start < 0:
            file.write(offset, data[:-start])
        if appended is None:
            appended = PendingFile(file.path)
            self._appended.add(appended)
        appended.write(max(0, start), data[max(0, -start) :])
        file.appended = appended
        return len(data)

    def _store_appended(self, path: str) -> None:
        """Append the bytes that were written after the elements of an array, as rows.

        Raises RefusedError with EINVAL if they are not whole rows.
        """
        with self._structure:
            appended = self._appended.get(path)
            if appended is None:
                return
            node = self._entry(path).node
            assert isinstance(node, Array)
            self._editor.append(node, appended)
            self._discard_appended(path)
            self._mark_stale(path.removesuffix(".raw"))

    def _discard_appended(self, path: str) -> None:
        with self._structure:
            appended = self._appended.get(path)
            if appended is not None:
                for file in self._file_handles.writers_of_end(appended):
                    file.appended = None
                self._appended.remove(appended)

    def _store_last_rows(self, appended: PendingFile) -> None:
        """Append rows that no open file can complete. No program receives an error of this."""
        try:
            self._store_appended(appended.path)
        except Exception as error:
            self._report_lost(
                f"{appended.path}: the last {appended.size} bytes are lost: {describe_error(error)}"
            )
            self._discard_appended(appended.path)

    @errors_to_errno
    def flush(self, path: str, fh: Any) -> int:
        # The kernel requests it whenever a descriptor is closed, also a copy that another process inherited.
        if self._file_handles.is_writer(fh):
            self._flush(fh, self._file_handles.may_be_last(fh, self._caller()))
        return 0

    @errors_to_errno
    def fsync(self, path: str, datasync: int, fh: Any) -> int:
        self._flush(fh, True)
        synchronize(self._tree.root.store)
        return 0

    @errors_to_errno
    def fsyncdir(self, path: str, datasync: int, fh: Any) -> int:
        synchronize(self._tree.root.store)
        return 0

    def _flush(self, fh: int, is_complete: bool) -> None:
        """Store what was written by a handle; what is not part of an array yet only if it is complete."""
        pending = self._file_handles.pending(fh)
        if pending is None:
            file = self._files.get(fh)
            if isinstance(file, ArrayFile):
                file.flush()
                if file.appended is not None and is_complete:
                    self._store_appended(file.path)
        elif is_complete and pending.is_changed and pending.size and not pending.is_removed:
            self._store_if_complete(pending)

    def _store_if_complete(self, file: PendingFile) -> None:
        file.is_tried = True
        try:
            self._store(file)
        except IncompleteFileError as error:
            # numpy.lib.format.open_memmap writes the header, closes the file, and opens it again.
            logger.info("%s", error)

    def _store(self, file: PendingFile) -> bool:
        """Apply a pending file to the hierarchy, and remove it. Return False if it has a temporary name."""
        with self._structure, file.lock:
            if not self._apply(file):
                return False
            self._show_stem(file.path)
            self._pending.remove(file)
            self._file_handles.continue_in_place(file)
            suffix = created_suffix(file.path)
            if suffix != ".raw":
                self._store_elements(file.path.removesuffix(suffix) + ".raw")
        return True

    def _apply(self, file: PendingFile) -> bool:
        """Apply a pending file to the hierarchy. Return False if it has a temporary name."""
        path, suffix = file.path, created_suffix(file.path)
        is_group = path.endswith("/" + GROUP_DOCUMENT)
        is_created = not is_group and self._tree.lookup(path) is None
        if suffix == ".raw" and is_created and self._is_tree_copied(path):
            raise IncompleteFileError(
                f"{path}: the array does not exist yet; the file is kept until another file of the array is written",
                errno.EINVAL,
            )
        if not store_file(file, self._editor, path in self._implied):
            return False
        if is_created and suffix:
            stem, process = path.removesuffix(suffix), self._caller()
            for each in CREATED_SUFFIXES:
                self._implied.add(stem + each, process)
        self._implied.mark_written(path)
        return True

    def _is_tree_copied(self, path: str) -> bool:
        """Return whether the process that writes a file seems to copy the directory of the file."""
        return self._group_creators.is_filled_by(path.rpartition("/")[0], self._caller())

    def _store_elements(self, path: str) -> None:
        """Store a pending .raw file that was written before its array existed, if it fits."""
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
        if not path.endswith(".json"):
            self._discard_appended(f"{stem}.raw")
        self._mark_stale(stem)

    @errors_to_errno
    def release(self, path: str, fh: int) -> int:
        pending = self._file_handles.pop_pending(fh)
        self._file_handles.discard(fh)
        if pending is None:
            file = self._files.get(fh)
            if isinstance(file, ArrayFile):
                self._release_array_file(file)
            return super().release(path, fh)
        if pending.is_changed and not pending.is_tried and not self._file_handles.is_written(pending):
            self._store_released(pending)
        last = not pending.is_shared
        is_unstored = pending.is_changed and pending.size and not pending.is_removed
        if last and is_unstored and self._pending.get(pending.path) is not pending:
            self._store_again(path, pending)
        if last and not (pending.is_changed and pending.size) and self._is_shadow(pending):
            if pending.is_changed:
                logger.warning("%s: the file was truncated and closed empty; the array is unchanged", path)
            self._pending.remove(pending)
        pending.release()
        return 0

    def _release_array_file(self, file: ArrayFile) -> None:
        """Store what was written by a mapping or by another process after the file had been closed.

        No program receives an error of this.
        """
        if file.is_dirty:
            try:
                file.flush()
            except Exception as error:
                logger.warning(
                    "%s: written data cannot be stored now and is kept: %s", file.path, describe_error(error)
                )
        with self._structure:
            appended, file.appended = file.appended, None
            if appended is not None and not self._file_handles.writers_of_end(appended):
                self._store_last_rows(appended)

    def _store_released(self, file: PendingFile) -> None:
        """Store a file that another process than the one that opened it closed last, which receives no error."""
        if file.size and self._pending.get(file.path) is file:
            try:
                self._store_if_complete(file)
            except Exception as error:
                self._error_log.report(file.path, error)

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
