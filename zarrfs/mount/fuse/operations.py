"""FUSE operations on a Tree."""

from __future__ import annotations

import errno
import itertools
import os
import stat
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NoReturn

from zarrfs.engine.array.array import Array
from zarrfs.engine.group.group import Group
from zarrfs.files.content.blocks import BlockPool
from zarrfs.files.content.freshness import REVALIDATION_SECONDS
from zarrfs.files.content.open_files import OpenFile
from zarrfs.mount.fuse.disk_space import disk_space
from zarrfs.mount.fuse.error_numbers import (
    ErrorLog,
    entries_with_errno,
    error_number,
    errors_to_errno,
    os_error,
)
from zarrfs.mount.fuse.extended_attributes import XATTR_PREFIX, extended_attributes
from zarrfs.mount.fuse.open_directories import ATTRIBUTES, DirectoryEntry, OpenDirectory
from zarrfs.mount.fuse.page_versions import PageVersions
from zarrfs.mount.fuse.permissions import DOCUMENT_ACCESS
from zarrfs.mount.fuse.reported_sizes import ReportedSizes
from zarrfs.mount.tree.entries import Directory, Entry, FileSummary, ListedEntry, VirtualFile
from zarrfs.mount.tree.tree import Tree

__all__ = ["ZarrOperations"]

BLOCK_NBYTES = 512
"""The unit of ``st_blocks`` in bytes, independent of the file system."""
PREFERRED_READ_NBYTES = 1 << 20
MAX_NAME_NBYTES = 255

_handles = itertools.count(1 << 32)
"""The handles of open files, unique in all sources of a mount: the dispatcher finds the source of a file without a path
by its handle. Control files have smaller handles.
"""

WRITE_OPERATIONS = [
    "chmod",
    "chown",
    "create",
    "link",
    "mkdir",
    "mknod",
    "removexattr",
    "rename",
    "rmdir",
    "setxattr",
    "symlink",
    "truncate",
    "unlink",
    "utimens",
    "write",
    "fallocate",
]


class ZarrOperations:
    """Read-only operations on a Tree. libfuse calls them from several threads concurrently.

    An operation that fails raises OSError with an error number. ``ready`` is called when libfuse has initialized the
    mount, ``mounted_at`` is the time in seconds that files without a modification time have.
    """

    use_ns = True

    file_mode = 0o444
    directory_mode = 0o555

    def __init__(
        self,
        tree: Tree,
        ready: Callable[[], None],
        mounted_at: float | None = None,
        pool: BlockPool | None = None,
    ) -> None:
        self._tree = tree
        self._ready = ready
        self._files: dict[int, OpenFile] = {}
        self._directories: dict[int, OpenDirectory] = {}
        self._read_directories: dict[str, OpenDirectory] = {}
        """By path, the directories that were opened last and are still open."""
        self._pool = BlockPool() if pool is None else pool
        self._handles = _handles
        self._started = time.time() if mounted_at is None else mounted_at
        self._owner = (os.getuid(), os.getgid())
        self._error_log = ErrorLog()
        self._page_versions = PageVersions()
        self._reported_sizes = ReportedSizes(
            2 * REVALIDATION_SECONDS
        )  # the kernel counts from the time at which it receives the attributes

    # -- initialization and destruction ------------------------------------------------------------------

    def init(self, path: str) -> None:
        self._ready()

    def init_with_config(self, connection: Any, config: Any) -> None:
        self._ready()

    def destroy(self, path: str) -> None:
        self._files.clear()
        self._directories.clear()
        self._read_directories.clear()
        self._pool.close()

    # -- lookup ------------------------------------------------------------------------------------------

    def find_node(self, path: str) -> Array | Group | None:
        """Return the array or group that the file or directory at a path presents, or None."""
        entry = self._tree.lookup(path)
        return None if entry is None else entry.node

    def _entry(self, path: str) -> Entry:
        entry = self._tree.lookup(path)
        if entry is None:
            raise os_error(errno.ENOENT)
        return entry

    @errors_to_errno
    def getattr(self, path: str, fh: Any = None) -> dict[str, Any]:
        directory = self._read_directories.get(path.rpartition("/")[0])
        if directory is not None:
            directory.is_looked_up = True
        summary = self._tree.summarize(path)
        status = self._status(self._entry(path)) if summary is None else self._summary_status(summary)
        return self._reported(path, status)

    def _reported(self, path: str, status: dict[str, Any]) -> dict[str, Any]:
        self._reported_sizes.report(path, status["st_size"])
        return status

    def _summary_status(self, summary: FileSummary) -> dict[str, Any]:
        modified = self._summary_modified(summary)
        if summary.nbytes is None:
            return self._directory_status(modified)
        status = self._file_status(summary.nbytes, summary.stored_nbytes, modified)
        if summary.access is not None:
            status[DOCUMENT_ACCESS] = summary.access
        return status

    def _summary_modified(self, summary: FileSummary) -> float:
        return summary.modified or self._started

    def _status(self, entry: Entry) -> dict[str, Any]:
        modified = self._modified(entry)
        if isinstance(entry, VirtualFile):
            status = self._file_status(entry.content.size, entry.stored_nbytes, modified)
        else:
            status = self._directory_status(modified)
        if entry.is_foreign:
            status["st_mode"] &= ~0o222
        if entry.access is not None:
            status[DOCUMENT_ACCESS] = entry.access
        return status

    def _modified(self, entry: Entry) -> float:
        return entry.modified or self._started

    def _directory_status(self, modified: float) -> dict[str, Any]:
        return {
            "st_mode": stat.S_IFDIR | self.directory_mode,
            "st_nlink": 2,
            "st_size": 0,
            "st_blocks": 0,
            **self._times_and_owner(modified),
        }

    def _file_status(self, size: int, stored_nbytes: int, modified: float) -> dict[str, Any]:
        status = self._times_and_owner(modified)
        status["st_mode"] = stat.S_IFREG | self.file_mode
        status["st_nlink"] = 1
        status["st_size"] = size
        status["st_blocks"] = -(-stored_nbytes // BLOCK_NBYTES)
        status["st_blksize"] = PREFERRED_READ_NBYTES
        return status

    def _times_and_owner(self, modified: float) -> dict[str, Any]:
        stamp = int(modified * 1e9)
        return {
            "st_uid": self._owner[0],
            "st_gid": self._owner[1],
            "st_atime": stamp,
            "st_mtime": stamp,
            "st_ctime": stamp,
        }

    @errors_to_errno
    def access(self, path: str, mode: int) -> int:
        entry = self._entry(path)
        if mode & os.W_OK:
            raise os_error(errno.EROFS)
        if mode & os.X_OK and not isinstance(entry, Directory):
            raise os_error(errno.EACCES)
        return 0

    @errors_to_errno
    def opendir(self, path: str) -> int:
        if not isinstance(self._entry(path), Directory):
            raise os_error(errno.ENOTDIR)
        handle = next(self._handles)
        directory = self._directories[handle] = self._open_directory(path)
        self._read_directories[path.rstrip("/")] = directory
        return handle

    def releasedir(self, path: str, fh: Any) -> int:
        directory = self._directories.pop(fh, None)
        if self._read_directories.get(path.rstrip("/")) is directory:
            self._read_directories.pop(path.rstrip("/"), None)
        return 0

    @entries_with_errno
    def read_directory(
        self, path: str, fh: int, offset: int, with_attributes: bool
    ) -> Iterator[DirectoryEntry]:
        """Yield the entries of a directory from ``offset`` on. With 0 as the offset the directory is listed again."""
        directory = self._directories.get(fh) or self._open_directory(path)
        yield from directory.read(offset, with_attributes)

    def readdir(self, path: str, fh: Any) -> list[str]:
        """Return the names in a directory, those of itself and its parent first."""
        return [entry.name for entry in self.read_directory(path, 0, 0, False)]

    def _open_directory(self, path: str) -> OpenDirectory:
        return OpenDirectory(partial(self._list, path), partial(self._listed_status, path.rstrip("/") + "/"))

    def _list(self, path: str, needs_sizes: Callable[[int], bool]) -> Iterator[ListedEntry]:
        """Return the entries of a directory. Raises StoreError, at the latest before the first entry, if it cannot be
        listed.
        """
        directory = self._entry(path)
        if not isinstance(directory, Directory):
            raise os_error(errno.ENOTDIR)
        return self._tree.list_entries(directory, needs_sizes)

    def _listed_status(self, parent: str, listed: ListedEntry) -> ATTRIBUTES | None:
        """Return the attributes of an entry, and the node that it presents. ``parent`` ends with a slash."""
        path = parent + listed.name
        summary = None if listed.summarize is None else listed.summarize()
        if summary is not None:
            return self._reported(path, self._summary_status(summary)), None
        entry = listed.find()
        return None if entry is None else (self._reported(path, self._status(entry)), entry.node)

    def readlink(self, path: str) -> NoReturn:
        raise os_error(errno.EINVAL)

    @errors_to_errno
    def statfs(self, path: str) -> dict[str, int]:
        # The file system is read-only, so no blocks are available to users.
        space = disk_space(self._tree.root.store)
        if space is not None:
            return {**space, "f_bavail": 0, "f_favail": 0, "f_namemax": MAX_NAME_NBYTES}
        return {
            "f_bsize": 4096,
            "f_frsize": 4096,
            "f_blocks": 0,
            "f_bfree": 0,
            "f_bavail": 0,
            "f_files": 0,
            "f_ffree": 0,
            "f_favail": 0,
            "f_namemax": MAX_NAME_NBYTES,
        }

    # -- extended attributes -----------------------------------------------------------------------------

    def _attributes(self, path: str) -> dict[str, bytes]:
        return extended_attributes(self._entry(path))

    @errors_to_errno
    def getxattr(self, path: str, name: str, position: int = 0) -> bytes:
        if not name.startswith("user."):
            # Programs such as ls then stop asking for access control lists and security labels of each file.
            raise os_error(errno.EOPNOTSUPP)
        value = self._attributes(path).get(name) if name.startswith(XATTR_PREFIX) else None
        if value is None:
            raise os_error(errno.ENODATA)
        return value

    @errors_to_errno
    def listxattr(self, path: str) -> list[str]:
        return sorted(self._attributes(path))

    # -- reading -----------------------------------------------------------------------------------------

    @errors_to_errno
    def open(self, path: str, flags: int) -> int:
        if flags & (os.O_WRONLY | os.O_RDWR | os.O_APPEND | os.O_TRUNC | os.O_CREAT):
            raise os_error(errno.EROFS)
        entry = self._entry(path)
        if not isinstance(entry, VirtualFile):
            raise os_error(errno.EISDIR)
        delay = self._reported_sizes.delay(path, entry.content.size)
        if delay is not None:
            self._tree.drop_summaries()
            time.sleep(delay)
            raise os_error(errno.ESTALE)
        handle = next(self._handles)
        file = OpenFile(entry.content, self._pool, self._tree.follower(path, entry))
        file.keeps_pages = self._page_versions.are_current(path, entry, lambda: self._is_being_read(entry))
        self._files[handle] = file
        return handle

    def _is_being_read(self, entry: VirtualFile) -> bool:
        return any(
            file.content is entry.content and file.is_being_read for file in list(self._files.values())
        )

    def keeps_pages(self, handle: int) -> bool:
        """Return whether the pages of an open file that the kernel has cached before it was opened are current."""
        file = self._files.get(handle)
        return file is not None and file.keeps_pages

    @errors_to_errno
    def read(self, path: str, size: int, offset: int, fh: int) -> Any:
        file = self._files.get(fh)
        if file is None:
            entry = self._entry(path)
            if not isinstance(entry, VirtualFile):
                raise os_error(errno.EISDIR)
            file = OpenFile(entry.content, self._pool)
        try:
            return file.read(offset, size)
        except Exception as error:
            self._error_log.report(path, error)
            # Other error numbers, such as ENOENT, would not describe a file that is open.
            number = error_number(error)
            if isinstance(error, OSError) and error.errno == errno.ESTALE:
                number = errno.ESTALE
            reported = (errno.ETIMEDOUT, errno.ESTALE)
            raise os_error(number if number in reported else errno.EIO) from error

    @errors_to_errno
    def lseek(self, path: str, offset: int, whence: int, fh: int) -> int:
        file = self._files.get(fh)
        if file is None or whence not in (os.SEEK_DATA, os.SEEK_HOLE):
            raise os_error(errno.EINVAL)
        found = file.seek(offset, whence)
        if found is None:
            raise os_error(errno.ENXIO)
        return found

    def flush(self, path: str, fh: Any) -> int:
        return 0

    def fsync(self, path: str, datasync: int, fh: Any) -> int:
        return 0

    def release(self, path: str, fh: int) -> int:
        self._files.pop(fh, None)
        return 0


def _refuse(self: Any, *args: Any) -> NoReturn:
    raise os_error(errno.EROFS)


for _name in WRITE_OPERATIONS:
    setattr(ZarrOperations, _name, _refuse)
