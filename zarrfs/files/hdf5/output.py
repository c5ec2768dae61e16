"""The output file of HDF5. Write errors are hidden from HDF5, because it crashes the process when it closes a file that
it could not flush (HDF5 2.0: a segmentation fault at exit).
"""

from __future__ import annotations

import os
from typing import Any

from zarrfs.errors import StoreError

__all__ = ["HDF5Output"]


class HDF5Output:
    """A new file with the interface that h5py expects of Python file objects. The data of a failed write is buffered in
    memory, so that HDF5 continues, and ``check`` raises the error. The caller calls ``check`` after each step and
    stops on an error, so that little data is buffered.

    Attributes:
        path: the path of the file.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
        self._position = 0
        self._size = 0
        self._error: BaseException | None = None
        self._failed_writes: list[tuple[int, bytes]] = []

    def check(self) -> None:
        """Raise the first error of a write: a StoreError, or an interruption such as KeyboardInterrupt."""
        error = self._error
        if isinstance(error, OSError):
            raise StoreError(f"{self.path}: {error.strerror or error}", error.errno) from error
        if error is not None:
            raise error

    def close(self) -> None:
        """Synchronize and close the file. Raises the first error of a write or of the synchronization."""
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

    # -- the file object interface -----------------------------------------------------------------------------

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
        except BaseException as error:  # including an interruption
            self._error = self._error or error
            self._failed_writes.append((start, bytes(view)))
        self._position = start + len(view)
        self._size = max(self._size, self._position)
        return len(view)

    def _write(self, view: memoryview, start: int) -> None:
        if self._error is not None:
            raise self._error
        written = 0
        while written < len(view):
            written += os.pwrite(self._fd, view[written:], start + written)

    def readinto(self, buffer: Any) -> int:
        view = memoryview(buffer).cast("B")
        start, count = self._position, max(0, min(len(view), self._size - self._position))
        view[:count] = bytes(count)
        data_read = os.pread(self._fd, count, start)
        view[: len(data_read)] = data_read
        for offset, data in self._failed_writes:
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
        """Do nothing: writes are not buffered in this process."""
