"""Backends of file systems with directories: local files, memory, SFTP, and others that can rename files."""

from __future__ import annotations

import errno
import os
import uuid
from typing import Any

from zarrfs.engine.stores.regular_files import check_regular_file
from zarrfs.engine.stores.remote.backend import VERSION_FIELDS, FileSystemBackend
from zarrfs.engine.stores.temporary_files import TEMPORARY_PREFIX
from zarrfs.errors import StoreError

__all__ = ["LocalBackend", "MemoryBackend", "RenamingBackend", "SFTPBackend"]

LOCAL_VERSION_FIELDS = (*VERSION_FIELDS, "mtime", "created", "ino")

MAX_NAME_NBYTES = 255
"""The maximum length of a file name in the file systems of SFTP servers."""


class MemoryBackend(FileSystemBackend):
    """The memory of this process."""

    unicode_keys = False
    version_fields = LOCAL_VERSION_FIELDS


class RenamingBackend(FileSystemBackend):
    """A file system whose writes are not atomic. A value is written to a temporary file, which is renamed."""

    keeps_empty_directories = True

    def write(self, path: str, data: bytes) -> None:
        """Write a temporary file in the same directory and rename it over the target."""
        folder, _, name = path.rpartition("/")
        self.file_system.makedirs(folder, exist_ok=True)
        temporary = f"{folder}/{TEMPORARY_PREFIX}{uuid.uuid4().hex}-{name[:100]}"
        try:
            self.file_system.pipe_file(temporary, data)
            self.file_system.mv(temporary, path)
        except BaseException:
            if self.file_system.exists(temporary):
                self.file_system.rm_file(temporary)
            raise


class LocalBackend(RenamingBackend):
    """Local files. Symbolic links that leave the root are followed only with ``allow_external``."""

    unicode_keys = False
    version_fields = LOCAL_VERSION_FIELDS

    def __init__(self, file_system: Any, root: str, url: str, *, allow_external: bool) -> None:
        super().__init__(file_system, root, url)
        self._real_root = None if allow_external else os.path.realpath(self._root or "/")

    def path(self, key: str) -> str:
        """Return the path of a key. Raises StoreError unless it is a regular file in the root, or missing.

        This is checked before fsspec opens the file, because fsspec waits for FIFOs and follows all links.
        """
        path = super().path(key)
        target = os.path.realpath(path)
        root = self._real_root
        if root is not None and not f"{target}/".startswith(root.rstrip("/") + "/"):
            raise StoreError(
                f"{path} is a symbolic link that leads out of the store, to {target}: it is not followed; open the "
                "store with allow_external=True (--allow-external) if you trust the data",
                errno.EACCES,
            )
        try:
            check_regular_file(target)
        except StoreError:
            raise
        except OSError:  # fsspec raises it too, and it is classified there
            pass
        return path


class SFTPBackend(RenamingBackend):
    """Files of an SSH server."""

    def _is_missing(self, path: str, error: Exception) -> bool:
        if not (isinstance(error, OSError) and error.errno is None):
            return super()._is_missing(path, error)
        # SSH_FX_FAILURE. SFTP 3 has no other code for directories and for names that are too long.
        is_too_long = any(len(part.encode()) > MAX_NAME_NBYTES for part in path.split("/"))
        return is_too_long or self._looks_missing(path)

    def close(self) -> None:
        """Close the connection."""
        self.file_system.client.close()
