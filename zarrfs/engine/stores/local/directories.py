"""The directories of a directory store: listing and walking, deletion, moving, and removal of empty parents."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import TypeVar

from zarrfs.engine.stores.base import Listing, Usage
from zarrfs.engine.stores.local.files import MISSING_ERRNOS, raise_unless_missing
from zarrfs.engine.stores.local.symbolic_links import LinkPolicy
from zarrfs.engine.stores.temporary_files import TEMPORARY_PREFIX, remove_abandoned, sync_directory
from zarrfs.errors import StoreError

__all__ = ["DirectoryListing", "DirectoryTree"]

T = TypeVar("T")


class _LinkError(Exception):
    """There is a symbolic link."""


class _TooManyEntriesError(Exception):
    """There are more entries than the limit."""


class DirectoryListing:
    """Lists the files below the root of ``links``. Temporary files are omitted. Prefixes are checked by the caller."""

    def __init__(self, links: LinkPolicy) -> None:
        self._links = links

    def path_of(self, prefix: str) -> str:
        root = self._links.root
        return f"{root.rstrip('/')}/{prefix}" if prefix else root

    def list_dir(self, prefix: str) -> Listing:
        """Return the files and directories of a directory; none if it is missing."""
        keys: list[str] = []
        prefixes: list[str] = []
        for entry in self.scan(self.path_of(prefix)):
            if not _is_directory(entry):
                keys.append(entry.name)
            elif not (entry.is_symlink() and self._is_ancestor(entry.stat(), entry.path)):
                # A link to a parent directory would make the hierarchy infinite.
                prefixes.append(entry.name)
        return Listing(sorted(keys), sorted(prefixes))

    def keys(self, prefix: str) -> Iterator[str]:
        """Yield all full keys below the prefix. See ``_walk`` for the errors."""
        return self._walk(prefix, lambda key, entry: key, self._links.resolve)

    def usage(self, prefix: str) -> Usage:
        """Return the usage below the prefix. Directories outside of the store, behind links, are not counted."""
        usage = self.usage_within(prefix, None)
        assert usage is not None
        return usage

    def usage_within(self, prefix: str, max_entries: int | None) -> Usage | None:
        """Return the usage below the prefix, or None if there are more than ``max_entries`` files and directories.

        The limit does not apply if there are symbolic links.
        """
        try:
            return self._usage_without_links(prefix, max_entries)
        except _TooManyEntriesError:
            return None
        except _LinkError:
            return self._usage_with_links(prefix)

    def _usage_without_links(self, prefix: str, max_entries: int | None) -> Usage:
        """Return the usage below the prefix. Raises _LinkError and _TooManyEntriesError."""
        entry_count = keys = nbytes = newest = 0
        top = self.path_of(prefix)
        try:
            self._links.check_directory(top)
        except OSError as error:
            raise_unless_missing(error, top)
            return Usage(0, 0, None)
        pending = [top]
        while pending:
            directory = pending.pop()
            try:
                with os.scandir(directory) as entries:
                    for entry in entries:
                        if entry.is_symlink():
                            raise _LinkError
                        if entry.name.startswith(TEMPORARY_PREFIX):
                            continue
                        entry_count += 1
                        if max_entries is not None and entry_count > max_entries:
                            raise _TooManyEntriesError
                        if entry.is_dir(follow_symlinks=False):
                            pending.append(entry.path)
                            continue
                        try:
                            status = entry.stat(follow_symlinks=False)
                        except FileNotFoundError:  # It was deleted.
                            continue
                        keys += 1
                        nbytes += status.st_size
                        newest = max(newest, status.st_mtime_ns)
            except OSError as error:
                raise_unless_missing(error, directory)
        return Usage(keys, nbytes, newest / 1e9 if keys else None)

    def _usage_with_links(self, prefix: str) -> Usage:
        links = self._links

        def status(key: str, entry: os.DirEntry[str]) -> os.stat_result:
            return entry.stat(follow_symlinks=not (entry.is_symlink() and links.is_external(entry.path)))

        keys = nbytes = 0
        newest: float | None = None
        for entry in self._walk(prefix, status, lambda path: None if links.is_external(path) else path):
            keys += 1
            nbytes += entry.st_size
            newest = entry.st_mtime if newest is None else max(newest, entry.st_mtime)
        return Usage(keys, nbytes, newest)

    def _walk(
        self,
        prefix: str,
        visit: Callable[[str, os.DirEntry[str]], T],
        resolve_link: Callable[[str], str | None],
    ) -> Iterator[T]:
        """Yield ``visit(key, entry)`` for each file below the prefix.

        Files that are deleted during the walk are omitted. ``resolve_link`` returns None for a link to a directory
        that is not to be walked.

        Raises StoreError for a directory that cannot be read, after everything else was yielded.
        """
        pending = [prefix]
        seen: set[tuple[int, int]] = set()
        first_error: StoreError | None = None
        while pending:
            directory = pending.pop()
            try:
                entries = self.scan(self.path_of(directory))
            except StoreError as error:
                first_error = first_error or error
                continue
            for entry in entries:
                key = f"{directory}/{entry.name}" if directory else entry.name
                if not _is_directory(entry):
                    with suppress(OSError):  # It was deleted, or it is a link in a cycle.
                        yield visit(key, entry)
                    continue
                if entry.is_symlink():
                    if resolve_link(entry.path) is None:
                        continue
                    # A link can lead to a parent directory. Each directory behind a link is walked once.
                    status = entry.stat()
                    if (status.st_dev, status.st_ino) in seen or self._is_ancestor(status, entry.path):
                        continue
                    seen.add((status.st_dev, status.st_ino))
                pending.append(key)
        if first_error is not None:
            raise first_error

    def _is_ancestor(self, status: os.stat_result, path: str) -> bool:
        parent = os.path.dirname(path)
        while len(parent) >= len(self._links.root):
            with suppress(OSError):
                if os.path.samestat(status, os.stat(parent)):
                    return True
            parent = os.path.dirname(parent)
        return False

    def scan(self, path: str) -> list[os.DirEntry[str]]:
        """Return the entries of a directory; none if it is missing."""
        try:
            self._links.check_directory(path)
            with os.scandir(path) as entries:
                return [entry for entry in entries if not entry.name.startswith(TEMPORARY_PREFIX)]
        except OSError as error:
            raise_unless_missing(error, path)
            return []


def _is_directory(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:
        return False


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
