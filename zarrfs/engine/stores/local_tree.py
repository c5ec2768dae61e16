"""Changes of the directories of a directory store: deletion, moving, and removal of empty parents."""

from __future__ import annotations

import os
from contextlib import suppress

from zarrfs.engine.stores.local_files import MISSING_ERRNOS
from zarrfs.engine.stores.local_listing import DirectoryListing
from zarrfs.engine.stores.symbolic_links import LinkPolicy
from zarrfs.engine.stores.temporary_files import remove_abandoned, sync_directory
from zarrfs.errors import StoreError

__all__ = ["DirectoryTree"]


class DirectoryTree:
    """Changes the directories below the root of ``links``. Paths are checked by the caller.

    With ``durable`` a deletion returns after it has reached the disk (fsync).
    """

    def __init__(self, links: LinkPolicy, listing: DirectoryListing, durable: bool) -> None:
        self._links = links
        self._listing = listing
        self._durable = durable

    def unlink(self, path: str) -> None:
        """Delete a file. A missing one is ignored."""
        try:
            self._links.check_directory(path.rpartition("/")[0])
            os.unlink(path)
            if self._durable:
                with suppress(FileNotFoundError):  # Another writer removed the empty directory.
                    sync_directory(os.path.dirname(path))
        except StoreError:
            raise
        except OSError as error:
            if error.errno not in MISSING_ERRNOS:
                raise StoreError(f"{path} cannot be deleted: {error.strerror}", error.errno) from error

    def delete_below(self, top: str) -> None:
        """Delete all files below a directory, then the directories. Links are not followed."""
        directories = [top]
        for directory in directories:  # the list grows during the iteration
            for entry in self._listing.scan(directory):
                if entry.is_dir(follow_symlinks=False):
                    directories.append(entry.path)
                else:
                    self.unlink(entry.path)
            remove_abandoned(directory)
        for directory in reversed(directories):
            if directory != self._links.root:
                with suppress(OSError):
                    os.rmdir(directory)

    def prune(self, directory: str) -> None:
        """Remove a directory and its parents below the root as long as they are empty."""
        while len(directory) > len(self._links.root):
            try:
                os.rmdir(directory)
            except OSError:
                return
            self._links.forget(directory)
            directory = os.path.dirname(directory)

    def rename(self, old: str, new: str) -> None:
        """Rename a directory. Missing parents of the new path are created, and empty ones of the old path removed."""
        try:
            for path in (old, new):
                with suppress(FileNotFoundError):
                    self._links.check_directory(path.rpartition("/")[0])
            os.makedirs(os.path.dirname(new), exist_ok=True)
            os.rename(old, new)
            self._links.clear()
        except StoreError:
            raise
        except OSError as error:
            raise StoreError(f"{old} cannot be moved to {new}: {error.strerror}", error.errno) from error
        self.prune(os.path.dirname(old))

    def move_to_root(self, old: str) -> list[str]:
        """Move the contents of a directory to the root by renaming.

        Returns the names of the subdirectories that were not moved, because the root has an entry of this name.
        """
        root = self._links.root.rstrip("/")
        remaining = []
        for name in sorted(os.listdir(old)):
            source, target = f"{old}/{name}", f"{root}/{name}"
            if os.path.isdir(source) and os.path.lexists(target):
                remaining.append(name)
                continue
            try:
                os.replace(source, target)
            except OSError as error:
                raise StoreError(
                    f"{source} cannot be moved to {target}: {error.strerror}", error.errno
                ) from error
        return remaining

    def move_into(self, old: str, new: str, segment: str | None) -> None:
        """Move the contents of a directory to a directory below it by renaming.

        ``segment`` is the name of the entry of ``old`` that contains ``new``. It is not moved.
        """
        names = {entry.name for entry in self._listing.scan(old)} - {segment}
        try:
            with suppress(FileNotFoundError):
                self._links.check_directory(new.rpartition("/")[0])
            if names:
                os.makedirs(new, exist_ok=True)
            for name in sorted(names):
                os.rename(f"{old}/{name}", f"{new}/{name}")
        except StoreError:
            raise
        except OSError as error:
            raise StoreError(f"{old} cannot be moved to {new}: {error.strerror}", error.errno) from error
        finally:
            self._links.clear()
