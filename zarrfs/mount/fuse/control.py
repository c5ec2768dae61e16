"""Directories of the mount that belong to no store: the root of several sources, and ``.zarrfs`` with the statistics
and the commands.

They are operations of the same form as ``ZarrOperations``. Only the files of commands can be written.
"""

from __future__ import annotations

import errno
import itertools
import os
import stat
import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

from zarrfs.errors import ZarrError
from zarrfs.logs import logger
from zarrfs.mount.fuse.open_directories import DirectoryEntry

__all__ = ["COMMIT_NAME", "CONTROL_DIRECTORY", "STATISTICS_NAME", "ControlOperations"]

CONTROL_DIRECTORY = ".zarrfs"
"""The name of the directory in the root of a mount. It is not listed."""

STATISTICS_NAME = "stats.json"

COMMIT_NAME = "commit"
"""The file to which the message of a commit is written. It then contains the result."""

MAX_NAME_NBYTES = 255

MAX_COMMAND_NBYTES = 64 << 10

WRITING_FLAGS = os.O_WRONLY | os.O_RDWR | os.O_APPEND | os.O_TRUNC | os.O_CREAT


class ControlOperations:
    """One directory with files whose bytes are computed when they are opened, and with names of subdirectories.

    ``files`` maps names to functions that return the bytes. ``directories`` returns the names of the subdirectories,
    whose content belongs to other operations. Files have the size 0, because their size is known only when they are
    opened; they are read with direct I/O.

    ``commands`` maps names of other files to functions. What is written to such a file is passed to the function when
    the file is closed, and the text that it returns can be read from the file then. If it raises ZarrError, the text is
    that of the error, and closing the file fails with EIO.
    """

    direct_io = True

    def __init__(
        self,
        files: Mapping[str, Callable[[], bytes]] | None = None,
        directories: Callable[[], list[str]] = list,
        commands: Mapping[str, Callable[[str], str]] | None = None,
    ) -> None:
        self._commands = dict(commands or {})
        self._results = dict.fromkeys(self._commands, b"")
        self._files: dict[str, Callable[[], bytes]] = {
            **(files or {}),
            **{name: partial(self._results.__getitem__, name) for name in self._commands},
        }
        self._written: dict[int, bytearray] = {}
        self._directories = directories
        self._open: dict[int, bytes] = {}
        self._handles = itertools.count(1)
        self._owner = {"st_uid": os.getuid(), "st_gid": os.getgid()}
        self._started = time.time_ns()

    def getattr(self, path: str, fh: Any = None) -> dict[str, Any]:
        """Return the attributes of the directory or of a file."""
        if path == "/":
            times = dict.fromkeys(("st_atime", "st_mtime", "st_ctime"), self._started)
            return {"st_mode": stat.S_IFDIR | 0o555, "st_nlink": 2, "st_size": 0, **self._owner, **times}
        self._file(path)
        times = dict.fromkeys(("st_atime", "st_mtime", "st_ctime"), time.time_ns())
        mode = stat.S_IFREG | (0o644 if self._is_command(path) else 0o444)
        return {"st_mode": mode, "st_nlink": 1, "st_size": 0, **self._owner, **times}

    def access(self, path: str, mode: int) -> int:
        """Refuse writing, and executing files."""
        if path != "/":
            self._file(path)
        if mode & os.W_OK and not self._is_command(path):
            raise OSError(errno.EROFS, os.strerror(errno.EROFS))
        if mode & os.X_OK and path != "/":
            raise OSError(errno.EACCES, os.strerror(errno.EACCES))
        return 0

    def statfs(self, path: str) -> dict[str, int]:
        """Return that no space is free."""
        return {"f_bsize": 4096, "f_frsize": 4096, "f_namemax": MAX_NAME_NBYTES}

    def opendir(self, path: str) -> int:
        """Accept the directory itself only."""
        if path != "/":
            self._file(path)
            raise OSError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
        return 0

    def releasedir(self, path: str, fh: Any) -> int:
        """Do nothing."""
        return 0

    def readdir(self, path: str, fh: Any) -> list[str]:
        """Return the names of the files and subdirectories."""
        return [".", "..", *sorted({*self._files, *self._directories()})]

    def read_directory(
        self, path: str, fh: int, offset: int, with_attributes: bool
    ) -> Iterator[DirectoryEntry]:
        """Yield the entries from ``offset`` on, without attributes."""
        for name in self.readdir(path, fh)[offset:]:
            yield DirectoryEntry(name, stat.S_IFREG if name in self._files else stat.S_IFDIR)

    def open(self, path: str, flags: int) -> int:
        """Compute the bytes of a file."""
        make = self._file(path)
        is_command = self._is_command(path)
        if flags & WRITING_FLAGS and not is_command:
            raise OSError(errno.EROFS, os.strerror(errno.EROFS))
        handle = next(self._handles)
        self._open[handle] = make()
        if is_command and flags & os.O_ACCMODE:
            self._written[handle] = bytearray()
        return handle

    def read(self, path: str, size: int, offset: int, fh: int) -> bytes:
        """Return bytes of an open file."""
        data = self._open.get(fh, b"")
        return data[offset : offset + size]

    def lseek(self, path: str, offset: int, whence: int, fh: int) -> int:
        """Return the offset of the next data or hole. A file has no holes except its end."""
        size = len(self._open.get(fh, b""))
        if not 0 <= offset < size:
            raise OSError(errno.ENXIO, os.strerror(errno.ENXIO))
        return offset if whence == os.SEEK_DATA else size

    def release(self, path: str, fh: int) -> int:
        """Release an open file."""
        self._open.pop(fh, None)
        self._written.pop(fh, None)
        return 0

    def truncate(self, path: str, length: int, fh: Any = None) -> int:
        """Accept the file of a command, which has no bytes that could be removed."""
        if not self._is_command(path):
            raise OSError(errno.EROFS, os.strerror(errno.EROFS))
        return 0

    def write(self, path: str, data: bytes, offset: int, fh: int) -> int:
        """Add bytes to the argument of a command."""
        written = self._written.get(fh)
        if written is None:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))
        if len(written) + len(data) > MAX_COMMAND_NBYTES:
            raise OSError(errno.EFBIG, os.strerror(errno.EFBIG))
        written += data
        return len(data)

    def flush(self, path: str, fh: int) -> int:
        """Run the command of a file that was written."""
        written = self._written.get(fh)
        if written:
            argument = written.decode(errors="replace").strip()
            written.clear()
            name = path.strip("/")
            try:
                self._results[name] = self._commands[name](argument).encode() + b"\n"
            except ZarrError as error:
                logger.error("%s", error)
                self._results[name] = f"{error}\n".encode()
                raise OSError(errno.EIO, os.strerror(errno.EIO)) from error
        return 0

    def fsync(self, path: str, datasync: int, fh: int) -> int:
        """Do nothing."""
        return 0

    def getxattr(self, path: str, name: str, position: int = 0) -> bytes:
        """There are no extended attributes."""
        raise OSError(errno.ENODATA, os.strerror(errno.ENODATA))

    def listxattr(self, path: str) -> list[str]:
        """There are no extended attributes."""
        return []

    def _is_command(self, path: str) -> bool:
        return path.strip("/") in self._commands

    def _file(self, path: str) -> Callable[[], bytes]:
        make = self._files.get(path.strip("/"))
        if make is None:
            raise OSError(errno.ENOENT, os.strerror(errno.ENOENT))
        return make
