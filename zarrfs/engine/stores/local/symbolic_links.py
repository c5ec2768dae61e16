"""Which symbolic links a directory store follows, and opening of files below its root."""

from __future__ import annotations

import errno
import os
import stat
from functools import cached_property

from zarrfs.engine.stores.regular_files import READ_FLAGS
from zarrfs.errors import StoreError

__all__ = ["LinkPolicy"]

NO_FOLLOW_FLAGS = READ_FLAGS | getattr(os, "O_NOFOLLOW", 0)

METADATA_NAMES = ("zarr.json", ".zgroup", ".zarray", ".zattrs", "attributes.json")
"""A parent directory that contains one of these files belongs to the same hierarchy."""

MAX_CHECKED_DIRECTORIES = 100_000


class LinkPolicy:
    """Follows symbolic links below ``root`` whose targets are in the hierarchy, or all of them if ``allow_external``.

    Links may lead to any place in the hierarchy that contains the root: the parent directories that contain metadata
    documents belong to it. Safe to use from several threads.
    """

    def __init__(self, root: str, allow_external: bool) -> None:
        self.root = root
        self._top = root.rstrip("/")
        # Directories whose path below the root contains no link that leads out of the store. None: checks are off.
        self._checked: set[str] | None = None if allow_external else {self._top}

    def open_file(self, path: str) -> int:
        """Return a file descriptor, which the caller closes. Raises OSError, and StoreError for an external link."""
        checked = self._checked
        if checked is None:
            return os.open(path, READ_FLAGS)
        if path.rpartition("/")[0] not in checked:
            self.check_directory(path.rpartition("/")[0])
        try:
            return os.open(path, NO_FOLLOW_FLAGS)
        except OSError as error:
            if error.errno != errno.ELOOP:
                raise
        return os.open(self.resolve(path), NO_FOLLOW_FLAGS)

    def check_directory(self, directory: str) -> None:
        """Check that a directory and its parents below the root are in the store.

        Raises OSError, FileNotFoundError if one of them is missing, and StoreError for an external link.
        """
        checked = self._checked
        if checked is None:
            return
        pending: list[str] = []
        while directory not in checked and len(directory) > len(self.root):
            pending.append(directory)
            directory = directory.rpartition("/")[0]
        for path in reversed(pending):
            mode = os.lstat(path).st_mode
            if stat.S_ISLNK(mode):
                self.resolve(path)
            elif not stat.S_ISDIR(mode):
                return
            if len(checked) >= MAX_CHECKED_DIRECTORIES:
                self.clear()
            checked.add(path)

    def clear(self) -> None:
        """Check all directories again, because some were moved or removed."""
        if self._checked is not None:
            self._checked.clear()
            self._checked.add(self._top)

    def resolve(self, path: str) -> str:
        """Return the target of a link. Raises StoreError if the target is outside of the store."""
        target = os.path.realpath(path)
        boundary = self._boundary
        if (
            self._checked is not None
            and target != boundary
            and not target.startswith(boundary.rstrip("/") + "/")
        ):
            raise StoreError(
                f"{path} is a symbolic link that leads out of the store, to {target}: it is not followed; open the "
                "store with allow_external=True (--allow-external) if you trust the data",
                errno.EACCES,
            )
        return target

    @cached_property
    def _boundary(self) -> str:
        """The root of the hierarchy that contains the store. Links must not lead out of this directory."""
        root = os.path.realpath(self.root)
        while (parent := os.path.dirname(root)) != root and any(
            os.path.lexists(os.path.join(parent, name)) for name in METADATA_NAMES
        ):
            root = parent
        return root

    def is_external(self, path: str) -> bool:
        """Return whether the target of a link is outside of the store."""
        try:
            self.resolve(path)
        except StoreError:
            return True
        return False

    def forget(self, directory: str) -> None:
        """Check a directory again when it is used next, because it was removed."""
        if self._checked is not None:
            self._checked.discard(directory)
