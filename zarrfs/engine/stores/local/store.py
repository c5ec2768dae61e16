"""A directory as a store: keys are relative paths, values are files.

This is the file system store of the Zarr v3 specification and the DirectoryStore of Zarr v2. Writes are atomic: a
value is written to a temporary file in the same directory, which is renamed over the target. A writer that is killed
leaves the temporary file. Such files are never listed. ``clean`` removes them, and so does deleting their directory.
Opening a store does not search for them, because that requires a walk over all files.

Keys never leave the root. A symbolic link is followed only if its target is in the store; the root itself may be a
link. Links that lead out of the store are refused unless ``allow_external`` is true. If the store was opened below the
root of a hierarchy, links may lead to any place in that hierarchy: the parent directories that contain metadata
documents belong to it. A link is checked when it is accessed, and each directory is checked once. This protects
against received data that contain such links. It does not protect against a process that changes the directories
at the same time.
"""

from __future__ import annotations

import errno
import os
import stat
import time
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import AbstractContextManager, suppress
from itertools import islice
from typing import Any, TypeVar
from urllib.parse import quote_from_bytes

from zarrfs.engine.stores.base import (
    DOCUMENT_NAMES,
    Buffer,
    ByteRange,
    Listing,
    Store,
    StoredValue,
    Usage,
    ValueCreatedError,
    ValueTooLargeError,
    check_key,
    segment_below,
)
from zarrfs.engine.stores.local.directories import DirectoryListing, DirectoryTree
from zarrfs.engine.stores.local.files import (
    LocalValue,
    create_file,
    raise_unless_missing,
    read_at,
    replace_file,
    stamp_from_status,
)
from zarrfs.engine.stores.local.symbolic_links import LinkPolicy
from zarrfs.engine.stores.locks import locked_directory, locked_file
from zarrfs.engine.stores.regular_files import (
    check_regular_file,
    describe_file_type,
    regular_file_stat,
)
from zarrfs.engine.stores.temporary_files import find_abandoned
from zarrfs.errors import LocationError, StoreError

__all__ = ["LocalStore"]

T = TypeVar("T")

MIN_UNCHANGED_NS = 2_000_000_000
"""The modification time of a directory identifies its listing if it is at least this many nanoseconds in the past. File
systems store times with a resolution of up to two seconds.
"""


class LocalStore(Store):
    """Values in files below ``root``. Keeps no files open. Safe to use from several threads and processes.

    With ``durable`` a write returns after the data have reached the disk (fsync). Without it a crash of the machine
    can lose the latest writes and, depending on the file system, leave empty or incomplete files; a crash of the
    program leaves each file either old or new. With ``allow_external`` symbolic links that lead out of the store are
    followed.

    Raises LocationError if ``root`` exists and is not a directory.
    """

    synchronized = True
    checks_size_first = True
    renames = True

    def __init__(
        self,
        root: str | os.PathLike[str],
        *,
        read_only: bool = False,
        durable: bool = False,
        allow_external: bool = False,
    ) -> None:
        self.root = os.path.abspath(os.fspath(root))
        self.read_only = read_only
        self.durable = durable
        self.allow_external = allow_external
        self._base = self.root.rstrip("/") + "/"
        self._url = "file://" + quote_from_bytes(os.fsencode(self.root))
        self._links = LinkPolicy(self.root, allow_external)
        self._listing = DirectoryListing(self._links)
        self._tree = DirectoryTree(self._links, self._listing, durable)
        with suppress(OSError, ValueError):
            mode = os.stat(self.root).st_mode
            if not stat.S_ISDIR(mode):
                raise LocationError(f"{self.root} is {describe_file_type(mode)}; expected a directory")

    @property
    def url(self) -> str:
        return self._url

    @property
    def directory(self) -> str:
        return self.root

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LocalStore) and self.root == other.root

    def __hash__(self) -> int:
        return hash(self.root)

    def _path(self, key: str) -> str:
        if self._closed:
            self._check_open()
        # This runs once for each chunk, so the full check runs only if the key could leave the root.
        if ".." in key or "\0" in key or not key:
            check_key(key)
        return self._base + key

    # -- reading -----------------------------------------------------------------------------------------------

    def get(self, key: str) -> bytes | None:
        return self.get_within(key, None)

    def get_within(self, key: str, max_nbytes: int | None) -> bytes | None:
        def read(fd: int, size: int) -> bytes:
            if max_nbytes is not None and size > max_nbytes:
                raise ValueTooLargeError(size, max_nbytes)
            return read_at(fd, size, 0)

        return self._read_file(key, read)

    def get_into(self, key: str, out: memoryview) -> int | None:
        def read(fd: int, size: int) -> int:
            done = 0
            while size == len(out) and done < size:
                count = os.preadv(fd, [out[done:]], done)
                if not count:
                    return done
                done += count
            return size

        return self._read_file(key, read)

    def get_ranges(self, key: str, ranges: Sequence[ByteRange]) -> list[Buffer] | None:
        def read(fd: int, size: int) -> list[Buffer]:
            bounds = [byte_range.resolve(size) for byte_range in ranges]
            return [read_at(fd, max(0, stop - start), start) for start, stop in bounds]

        return self._read_file(key, read)

    def _read_file(self, key: str, read: Callable[[int, int], T]) -> T | None:
        """Return ``read(fd, size)`` for the file of a key, or None if it is missing."""
        path = self._path(key)
        try:
            fd = self._links.open_file(path)
            try:
                return read(fd, regular_file_stat(fd, path).st_size)
            finally:
                os.close(fd)
        except OSError as error:
            raise_unless_missing(error, path)
            return None

    def open_value(self, key: str, max_nbytes: int | None = None) -> StoredValue:
        return LocalValue(self, key, max_nbytes, self._path(key), self._links)

    def size(self, key: str) -> int | None:
        status = self._stat(key)
        return None if status is None else status.st_size

    def stamp(self, key: str) -> Hashable | None:
        status = self._stat(key)
        return None if status is None else stamp_from_status(status)

    def _stat(self, key: str) -> os.stat_result | None:
        path = self._path(key)
        try:
            self._links.check_directory(path.rpartition("/")[0])
            status = os.lstat(path)
            if stat.S_ISREG(status.st_mode):
                return status
            if stat.S_ISLNK(status.st_mode):
                status = os.stat(self._links.resolve(path))
                if stat.S_ISREG(status.st_mode):
                    return status
        except OSError as error:
            raise_unless_missing(error, path)
            return None
        if not stat.S_ISDIR(status.st_mode):
            check_regular_file(path)
        return None

    # -- listing -----------------------------------------------------------------------------------------------

    def first_names(self, prefix: str, count: int) -> list[str]:
        """Return at most ``count`` names in a directory, in no order; none if it cannot be listed."""
        path = self._listing.path_of(prefix)
        try:
            self._links.check_directory(path)
            with os.scandir(path) as entries:
                return [entry.name for entry in islice(entries, count)]
        except OSError:
            return []

    def list_dir(self, prefix: str = "") -> Listing:
        self._check_prefix(prefix)
        return self._listing.list_dir(prefix)

    def listing_stamp(self, prefix: str = "") -> Hashable | None:
        """Return the stamp of the directory. None if it was changed just now: its time may not show the next change."""
        path = self._path(prefix) if prefix else self.root
        try:
            self._links.check_directory(path)
            status = os.stat(path)
        except OSError:
            return None
        if not stat.S_ISDIR(status.st_mode) or abs(time.time_ns() - status.st_mtime_ns) < MIN_UNCHANGED_NS:
            return None
        return stamp_from_status(status)

    def invalidate_directory_checks(self) -> None:
        """Check each directory again for links when it is accessed next, because directories were removed."""
        self._links.clear()

    def list_prefix(self, prefix: str = "") -> Iterator[str]:
        """Yield all full keys below the prefix. Raises StoreError for a link to a directory outside of the store, and,
        after all keys that can be listed, for a directory that cannot be read.
        """
        self._check_prefix(prefix)
        return self._listing.keys(prefix)

    def usage(self, prefix: str = "") -> Usage:
        """Return the usage below the prefix. Directories outside of the store, behind links, are not counted."""
        self._check_prefix(prefix)
        return self._listing.usage(prefix)

    def usage_within(self, prefix: str, max_entries: int) -> Usage | None:
        """Return what ``usage`` returns, or None if there are more than ``max_entries`` files and directories.

        The limit does not apply if there are symbolic links.
        """
        self._check_prefix(prefix)
        return self._listing.usage_within(prefix, max_entries)

    def open_directory(self, prefix: str) -> int | None:
        """Return a file descriptor of the directory of a prefix, which the caller closes; None if it is missing.

        Links are followed as in ``get``. Raises StoreError for a link that leads out of the store.
        """
        path = self._path(prefix) if prefix else self.root
        self._check_open()
        try:
            self._links.check_directory(path)
            return os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError as error:
            raise_unless_missing(error, path)
            return None

    def _check_prefix(self, prefix: str) -> None:
        self._check_open()
        if prefix:
            self._path(prefix)

    def is_irregular(self, key: str) -> bool:
        path = self._path(key)
        return os.path.lexists(path) and not os.path.isfile(path)

    # -- writing -----------------------------------------------------------------------------------------------

    def set(self, key: str, value: Buffer) -> None:
        self.set_parts(key, (value,))

    def set_parts(self, key: str, parts: Sequence[Buffer]) -> None:
        self._write(key, parts, replace_file)

    def create(self, key: str, parts: Sequence[Buffer]) -> None:
        if type(self).set_parts is not LocalStore.set_parts:
            super().create(key, parts)  # A subclass changes how values are written.
            return
        try:
            self._write(key, parts, create_file)
        except StoreError as error:
            if isinstance(error.__cause__, FileExistsError):
                raise ValueCreatedError(key) from error
            raise

    def _write(
        self, key: str, parts: Sequence[Buffer], write: Callable[[str, Sequence[Buffer], bool], None]
    ) -> None:
        """Write a file with ``write(path, parts, durable)``."""
        if self.read_only:
            raise self._read_only_error(f"writing {key!r}")
        self._check_open()
        path = self._base + check_key(key)
        try:
            with suppress(FileNotFoundError):
                self._links.check_directory(path.rpartition("/")[0])
            write(path, parts, self.durable)
        except StoreError:
            raise
        except RecursionError as error:  # os.makedirs recurses once for each new directory
            raise StoreError(
                f"{path} cannot be written: it contains too many nested directories", errno.ENAMETOOLONG
            ) from error
        except OSError as error:
            raise StoreError(f"{path} cannot be written: {error.strerror}", error.errno) from error

    def delete(self, key: str) -> None:
        if self.read_only:
            raise self._read_only_error(f"deleting {key!r}")
        path = self._path(check_key(key))
        self._tree.unlink(path)
        self._tree.prune(os.path.dirname(path))

    def delete_prefix(self, prefix: str) -> None:
        """Delete all keys below the prefix. Links to directories are deleted, but not their targets."""
        if self.read_only:
            raise self._read_only_error(f"deleting the keys below {prefix!r}")
        self._check_open()
        path = self._path(check_key(prefix)) if prefix else self.root
        if prefix and os.path.islink(path):
            self._tree.unlink(path)
        else:
            self._tree.delete_below(path)
        if prefix:
            self._tree.prune(os.path.dirname(path))
        self._links.clear()

    def move_prefix(self, prefix: str, target: str) -> None:
        if self.read_only:
            raise self._read_only_error(f"moving the keys below {prefix!r}")
        self._check_open()
        self._links.clear()
        old = self._path(check_key(prefix)) if prefix else ""
        new = self._path(check_key(target)) if target else ""
        if old and not target and os.path.isdir(old):
            self._move_to_root(prefix, old)
            return
        if new and segment_below(prefix, target) is not None and not os.path.lexists(new):
            self._tree.move_into((self._base + prefix).rstrip("/"), new, segment_below(prefix, target))
            return
        if not old or not new or os.path.lexists(new) or not os.path.isdir(old):
            super().move_prefix(prefix, target)
            return
        self._tree.rename(old, new)

    def _move_to_root(self, prefix: str, old: str) -> None:
        """Move the contents of a directory to the root by renaming, which needs no disk space."""
        for name in self._tree.move_to_root(old):
            super().move_prefix(f"{prefix}/{name}", name)
        self._tree.prune(old)

    def lock(self, key: str) -> AbstractContextManager[Any]:
        """Return the lock of the file of a key. Of a metadata document, whose file can be missing, it is that of the
        directory, which the same thread can hold several times. A chunk that is missing is created with ``create``.
        """
        directory, _, name = key.rpartition("/")
        if name in DOCUMENT_NAMES:
            return locked_directory(lambda: self.open_directory(directory))
        path = self._path(check_key(key))
        return locked_file(path, lambda: self._links.open_file(path))

    def clean(self, *, dry_run: bool = False) -> list[str]:
        if self.read_only and not dry_run:
            raise self._read_only_error("removing files")
        self._check_open()
        abandoned = sorted(find_abandoned(self.root))
        for path in abandoned if not dry_run else ():
            try:
                os.unlink(path)
            except FileNotFoundError:  # Another process removed it.
                continue
            except OSError as error:
                raise StoreError(f"{path} cannot be removed: {error.strerror}", error.errno) from error
            self._tree.prune(os.path.dirname(path))
        return abandoned
