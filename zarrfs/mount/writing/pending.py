"""Files of a writable mount that are not part of the hierarchy: new files that are not complete yet, and the temporary
files of editors and copy programs.
"""

from __future__ import annotations

import errno
import os
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from math import prod
from typing import Any, Literal

import numpy as np

from zarrfs.mount.fuse.error_numbers import RefusedError

__all__ = ["PendingFile", "PendingFiles"]

MAX_IN_MEMORY_NBYTES = 1 << 20
"""A larger file is kept in the directory of temporary files."""

MAX_PENDING_FILES = 1000


class PendingFile:
    """The bytes of a file, in memory or in a temporary file. Thread-safe.

    Attributes:
        path: the path in the mount. It changes if the file is renamed.
        options: the extended attributes ``user.zarr.*`` that were set, without the prefix.
        attributes: the user attributes that were set.
        is_changed: whether there are bytes that have not become part of the hierarchy.
        is_tried: whether it was tried to store the bytes since they were written last.
        is_removed: whether the file was removed or replaced, so that it is not stored.
        replaces: whether the path is that of a file of the hierarchy, which is replaced.
        modified: the time of the last change in seconds since the epoch.
    """

    def __init__(self, path: str, content: bytes = b"") -> None:
        self.path = path
        self.options: dict[str, str] = {}
        self.attributes: dict[str, Any] = {}
        self.is_changed = False
        self.is_tried = False
        self.is_removed = False
        self.replaces = False
        self.modified = time.time()
        self.lock = threading.RLock()
        self._users = 0
        self._file = tempfile.SpooledTemporaryFile(MAX_IN_MEMORY_NBYTES)  # noqa: SIM115
        self._file.write(content)
        self.size = len(content)

    def read(self, offset: int, size: int) -> bytes:
        """Return at most ``size`` bytes from ``offset``."""
        with self.lock:
            self._file.seek(offset)
            return self._file.read(max(0, size))

    def write(self, offset: int, data: bytes) -> int:
        """Write all bytes at ``offset``. Raises OSError if there is no space for temporary files."""
        with self.lock:
            if offset > self.size:
                self.truncate(offset)
            self._file.seek(offset)
            self._file.write(data)
            self.size = max(self.size, offset + len(data))
            self._changed()
        return len(data)

    def truncate(self, size: int) -> None:
        """Cut the file, or extend it by zeros."""
        with self.lock:
            if size > MAX_IN_MEMORY_NBYTES:
                self._file.rollover()
            elif size > self.size:
                self._file.seek(self.size)
                self._file.write(bytes(size - self.size))
            self._file.truncate(size)
            self.size = size
            self._changed()

    def _changed(self) -> None:
        self.is_changed = True
        self.is_tried = False
        self.modified = time.time()

    def mapped(
        self, dtype: np.dtype[Any], offset: int, shape: tuple[int, ...], order: Literal["C", "F"]
    ) -> np.ndarray[Any, Any]:
        """Return a read-only array whose memory is a mapping of the file from ``offset``."""
        if not prod(shape) or not dtype.itemsize:
            return np.zeros(shape, dtype)
        with self.lock, os.fdopen(os.dup(self._file.fileno()), "rb") as opened:
            self._file.flush()
            return np.memmap(opened, dtype, "r", offset, shape, order)

    @contextmanager
    def linked(self, name: str) -> Iterator[str]:
        """Yield a path of the file, whose last part is ``name``, in a directory that contains nothing else.

        Programs that open files by path and recognize them by their names can read it.
        """
        with self.lock, tempfile.TemporaryDirectory(prefix="zarrfs-") as directory:
            path = os.path.join(directory, name)
            os.symlink(f"/proc/self/fd/{self._file.fileno()}", path)
            self._file.flush()
            yield path

    def acquire(self) -> None:
        """Add a user: an open handle, or the directory that contains the file."""
        with self.lock:
            self._users += 1

    def release(self) -> None:
        """Remove a user. The last one closes the file."""
        with self.lock:
            self._users -= 1
            if not self._users:
                self._file.close()

    @property
    def is_shared(self) -> bool:
        """Whether there are several open handles."""
        return self._users > 2


class PendingFiles:
    """The pending files of a mount by path. Thread-safe."""

    def __init__(self) -> None:
        self._files: dict[str, PendingFile] = {}
        self._lock = threading.Lock()

    def __iter__(self) -> Any:
        return iter(list(self._files.values()))

    def get(self, path: str) -> PendingFile | None:
        """Return the file at a path of the mount, or None."""
        return self._files.get(path)

    def add(self, file: PendingFile) -> None:
        """Add a file at its path. Raises RefusedError if there are too many; a file without users is closed then."""
        file.acquire()
        with self._lock:
            if len(self._files) >= MAX_PENDING_FILES:
                file.release()
                raise RefusedError(
                    f"{file.path}: there are {MAX_PENDING_FILES} files that are not stored; remove some of them",
                    errno.ENOSPC,
                )
            old = self._files.get(file.path)
            self._files[file.path] = file
        if old is not None:
            old.release()

    def remove(self, file: PendingFile) -> None:
        """Remove a file. Open handles keep its bytes."""
        with self._lock:
            if self._files.get(file.path) is not file:
                return
            del self._files[file.path]
        file.release()

    def delete(self, file: PendingFile) -> None:
        """Remove a file that is not to be stored. Open handles keep its bytes."""
        file.is_removed = True
        self.remove(file)

    def rename(self, file: PendingFile, path: str) -> None:
        """Change the path of a file. A file at the new path is removed."""
        with self._lock:
            old = self._files.get(path)
            if self._files.get(file.path) is file:
                del self._files[file.path]
            else:
                file.acquire()
            file.path = path
            self._files[path] = file
        if old is not None and old is not file:
            old.is_removed = True
            old.release()

    def names(self, directory: str) -> list[str]:
        """Return the names of the files in a directory of the mount."""
        prefix = directory.rstrip("/") + "/"
        names = [path[len(prefix) :] for path in list(self._files) if path.startswith(prefix)]
        return [name for name in names if "/" not in name]
