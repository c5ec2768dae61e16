"""Opening of local files that a user or a store names. Only regular files are opened.

Opening a FIFO waits for a writer, reading a device can continue forever, and opening a device can have side effects. A
path in untrusted data can name any of them. Each path from a user or a store is opened by this module, or checked by
this module before a library opens it.
"""

from __future__ import annotations

import errno
import os
import stat

from zarrfs.errors import StoreError

__all__ = ["READ_FLAGS", "check_regular_file", "describe_file_type", "open_regular_file", "regular_file_stat"]

READ_FLAGS = os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
# Opening a FIFO would wait for a writer. Reading a regular file is not affected by this flag.
READ_FLAGS |= getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0)

FILE_TYPES = (
    (stat.S_ISREG, "a file"),
    (stat.S_ISDIR, "a directory"),
    (stat.S_ISFIFO, "a FIFO (named pipe)"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a character device"),
    (stat.S_ISBLK, "a block device"),
    (stat.S_ISLNK, "a symbolic link"),
)


def describe_file_type(mode: int) -> str:
    """Return the name of a file type, from ``st_mode``."""
    return next((name for test, name in FILE_TYPES if test(mode)), "a special file")


def regular_file_stat(fd: int, path: str) -> os.stat_result:
    """Return the status of an open file.

    Raises IsADirectoryError for a directory, and StoreError for a FIFO, a socket or a device.
    """
    status = os.fstat(fd)
    if not stat.S_ISREG(status.st_mode):
        _raise_not_regular(status.st_mode, path)
    return status


def open_regular_file(path: str | os.PathLike[str]) -> int:
    """Return a file descriptor of a regular file, opened for reading. The caller closes it. Never blocks.

    Raises StoreError for a FIFO, a socket or a device, IsADirectoryError for a directory, and OSError as ``os.open``.
    """
    name = os.fspath(path)
    try:
        fd = os.open(name, READ_FLAGS)
    except OSError as error:
        if error.errno == errno.ENXIO:  # opening a socket fails with this error
            check_regular_file(name)
        raise
    try:
        regular_file_stat(fd, name)
    except BaseException:
        os.close(fd)
        raise
    return fd


def check_regular_file(path: str | os.PathLike[str], *, missing_ok: bool = True) -> None:
    """Check a path before a library opens it. Raises the errors of ``open_regular_file``.

    A missing file is an error only if ``missing_ok`` is false.
    """
    name = os.fspath(path)
    try:
        status = os.stat(name)
    except (FileNotFoundError, NotADirectoryError):
        if missing_ok:
            return
        raise
    if not stat.S_ISREG(status.st_mode):
        _raise_not_regular(status.st_mode, name)


def _raise_not_regular(mode: int, path: str) -> None:
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
    raise StoreError(f"{path} is {describe_file_type(mode)}; expected a regular file", errno.EINVAL)
