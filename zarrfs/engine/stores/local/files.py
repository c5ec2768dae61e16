"""Reading and writing of the files of a directory store."""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Callable, Hashable, Sequence
from contextlib import suppress

from zarrfs.engine.stores.base import Buffer, ByteRange, Store, StoredValue, ValueTooLargeError
from zarrfs.engine.stores.local.symbolic_links import LinkPolicy
from zarrfs.engine.stores.regular_files import check_regular_file, regular_file_stat
from zarrfs.engine.stores.temporary_files import create_temporary, sync_directory
from zarrfs.errors import StoreError

__all__ = [
    "MAX_BUFFERS_PER_CALL",
    "MISSING_ERRNOS",
    "LocalValue",
    "create_file",
    "raise_unless_missing",
    "read_at",
    "replace_file",
    "stamp_from_status",
    "write_parts",
]

MISSING_ERRNOS = {errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.ENAMETOOLONG}
"""Errors of the operating system that mean that a file does not exist."""

NO_LINKS_ERRNOS = {errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK, errno.EINVAL}
"""Errors of the operating system that mean that a file system has no hard links."""

MAX_BUFFERS_PER_CALL = 1024
"""The number of buffers that ``writev`` accepts in one call (IOV_MAX on Linux)."""


class LocalValue(StoredValue):
    """A file that is opened once, by the first request for bytes. All parts belong to the same version."""

    def __init__(self, store: Store, key: str, max_nbytes: int | None, path: str, links: LinkPolicy) -> None:
        super().__init__(store, key, max_nbytes)
        self._path = path
        self._links = links
        self._fd = -1
        self._size = 0
        self._lock = threading.Lock()

    def _open(self) -> bool:
        """Open the file unless it is open. Return False if it is missing."""
        with self._lock:
            if self._fd >= 0:
                return True
            try:
                fd = self._links.open_file(self._path)
                try:
                    self._size = regular_file_stat(fd, self._path).st_size
                except BaseException:
                    os.close(fd)
                    raise
            except OSError as error:
                raise_unless_missing(error, self._path)
                return False
            self._fd = fd
            return True

    def is_unchanged(self, stamp: Hashable) -> bool:
        # A value that was never opened has returned no bytes, so no version was read.
        return self._fd < 0 or stamp_from_status(os.fstat(self._fd)) == stamp

    def size(self) -> int | None:
        return self._size if self._open() else None

    def read(self) -> Buffer | None:
        if not self._open():
            return None
        if self._max_nbytes is not None and self._size > self._max_nbytes:
            raise ValueTooLargeError(self._size, self._max_nbytes)
        return self._read(self._size, 0)

    def read_ranges(self, ranges: Sequence[ByteRange]) -> list[Buffer] | None:
        if not self._open():
            return None
        buffers: list[Buffer] = []
        for byte_range in ranges:
            start, stop = byte_range.resolve(self._size)
            buffers.append(self._read(max(0, stop - start), start))
        return buffers

    def _read(self, size: int, offset: int) -> bytes:
        try:
            return read_at(self._fd, size, offset)
        except OSError as error:
            raise_unless_missing(error, self._path)
            raise StoreError(f"{self._path} cannot be read: {error.strerror}", error.errno) from error

    def close(self) -> None:
        with self._lock:
            if self._fd >= 0:
                os.close(self._fd)
                self._fd = -1


def raise_unless_missing(error: OSError, path: str) -> None:
    """Return if the error means that the file does not exist. Otherwise raise StoreError."""
    if isinstance(error, StoreError):
        raise error
    if error.errno == errno.ENXIO:  # opening a socket fails with this error
        check_regular_file(path)
    if error.errno not in MISSING_ERRNOS:
        raise StoreError(f"{path} cannot be read: {error.strerror}", error.errno) from error


def stamp_from_status(status: os.stat_result) -> Hashable:
    return status.st_mtime_ns, status.st_size, status.st_ino


def read_at(fd: int, size: int, offset: int) -> bytes:
    """Read ``size`` bytes at ``offset``, fewer at the end of the file. One system call reads at most 2 GiB."""
    try:
        data = os.pread(fd, size, offset)
    except (MemoryError, OverflowError) as error:
        raise StoreError(
            f"a file cannot be read: {size:,} bytes do not fit into memory", errno.EFBIG
        ) from error
    if len(data) == size:
        return data
    parts = [data]
    while data and (done := sum(map(len, parts))) < size:
        data = os.pread(fd, size - done, offset + done)
        parts.append(data)
    return b"".join(parts)


def replace_file(path: str, parts: Sequence[Buffer], durable: bool) -> None:
    """Write the parts to a temporary file in the same directory and rename it to ``path``. Missing directories are
    created.

    With ``durable`` the data, the name and new directories have reached the disk when the function returns. Raises
    OSError, after which the old file is unchanged and the temporary file is removed.
    """
    _write_file(path, parts, durable, os.replace)


def create_file(path: str, parts: Sequence[Buffer], durable: bool) -> None:
    """Write a file as ``replace_file`` does. Raises FileExistsError if it exists, also if another process creates it
    meanwhile.
    """
    _write_file(path, parts, durable, _rename_to_new)


def _rename_to_new(temporary: str, path: str) -> None:
    """Rename a file. Raises FileExistsError if the new name is that of a file."""
    try:
        os.link(temporary, path)
    except FileExistsError:
        if os.path.exists(path):
            raise
        os.replace(temporary, path)  # a symbolic link without target
    except OSError as error:
        if error.errno not in NO_LINKS_ERRNOS:
            raise
        if os.path.exists(path):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), path) from error
        os.replace(temporary, path)
    else:
        os.unlink(temporary)


def _write_file(
    path: str, parts: Sequence[Buffer], durable: bool, rename: Callable[[str, str], None]
) -> None:
    directory = os.path.dirname(path)
    if durable:
        _make_directories_durably(directory)
    fd, temporary = create_temporary(directory)
    try:
        try:
            write_parts(fd, parts)
            if durable:
                os.fsync(fd)
        finally:
            os.close(fd)
        rename(temporary, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)
        raise
    if durable:
        sync_directory(directory)


def _make_directories_durably(directory: str) -> None:
    """Create a directory and its missing parents, and wait until each has reached the disk."""
    if os.path.isdir(directory):
        return
    parent = os.path.dirname(directory)
    _make_directories_durably(parent)
    with suppress(FileExistsError):  # Another writer created it.
        os.mkdir(directory)
    sync_directory(parent)


def write_parts(fd: int, parts: Sequence[Buffer]) -> None:
    """Write all parts. One system call accepts MAX_BUFFERS_PER_CALL buffers and writes at most 2 GiB."""
    for first in range(0, len(parts), MAX_BUFFERS_PER_CALL):
        batch = parts[first : first + MAX_BUFFERS_PER_CALL]
        written = os.write(fd, batch[0]) if len(batch) == 1 else os.writev(fd, batch)
        for part in batch:
            size = memoryview(part).nbytes
            if written >= size:
                written -= size
                continue
            rest = memoryview(part).cast("B")[written:]
            while rest:
                rest = rest[os.write(fd, rest) :]
            written = 0
