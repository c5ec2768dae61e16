"""The file that HDF5 writes to. HDF5 must not see a write fail: it crashes the process when it closes a file that it
could not flush (HDF5 2.0: a segmentation fault at exit).
"""

from __future__ import annotations

import os
from typing import Any

from zarrfs.errors import StoreError

__all__ = ["HDF5Output"]


class HDF5Output:
    """A new file, as h5py takes Python files. A write that fails is kept in memory instead, so that HDF5 goes on with
    what it has to write, and ``check`` raises the error. Whoever writes calls ``check`` after each step and stops:
    what is kept is then little.

    Attributes:
        path: where the file is.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
        self._position = 0
        self._size = 0
        self._error: BaseException | None = None
        self._kept: list[tuple[int, bytes]] = []

    def check(self) -> None:
        """Raise the first error of a write: StoreError, or an interruption."""
        error = self._error
        if isinstance(error, OSError):
            raise StoreError(f"{self.path}: {error.strerror or error}", error.errno) from error
        if error is not None:
            raise error

    def close(self) -> None:
        """Close the file. Raises the first error of a write, and what the disk says when all is to be written."""
        fd, self._fd = self._fd, -1
        if fd < 0:
            return
        try:
            if self._error is None:
                os.fsync(fd)
        except OSError as error:
            self._error = error
        finally:
            os.close(fd)
        self.check()

    # -- what h5py calls ---------------------------------------------------------------------------------------

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        start = {os.SEEK_SET: 0, os.SEEK_CUR: self._position, os.SEEK_END: self._size}[whence]
        self._position = start + offset
        return self._position

    def tell(self) -> int:
        return self._position

    def write(self, data: Any) -> int:
        view = memoryview(data).cast("B")
        start = self._position
        try:
            self._write(view, start)
        except BaseException as error:  # an interruption may come here too
            self._error = self._error or error
            self._kept.append((start, bytes(view)))
        self._position = start + len(view)
        self._size = max(self._size, self._position)
        return len(view)

    def _write(self, view: memoryview, start: int) -> None:
        if self._error is not None:
            raise self._error
        done = 0
        while done < len(view):
            done += os.pwrite(self._fd, view[done:], start + done)

    def readinto(self, buffer: Any) -> int:
        view = memoryview(buffer).cast("B")
        start, count = self._position, max(0, min(len(view), self._size - self._position))
        view[:count] = bytes(count)
        found = os.pread(self._fd, count, start)
        view[: len(found)] = found
        for offset, data in self._kept:
            first, last = max(offset, start), min(offset + len(data), start + count)
            if first < last:
                view[first - start : last - start] = data[first - offset : last - offset]
        self._position += count
        return count

    def read(self, size: int = -1) -> bytes:
        buffer = bytearray(max(0, self._size - self._position if size < 0 else size))
        return bytes(buffer[: self.readinto(buffer)])

    def truncate(self, size: int | None = None) -> int:
        size = self._position if size is None else size
        try:
            if self._error is None:
                os.ftruncate(self._fd, size)
        except BaseException as error:
            self._error = error
        self._size = size
        return size

    def flush(self) -> None:
        """Do nothing: what was written is with the operating system."""
