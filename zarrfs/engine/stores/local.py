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
import threading
import time
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import TypeVar

from zarrfs.engine.stores.base import (
    Buffer,
    ByteRange,
    Listing,
    Store,
    StoredValue,
    Usage,
    ValueTooLargeError,
    check_key,
    segment_below,
)
from zarrfs.engine.stores.regular_files import (
    READ_FLAGS,
    check_regular_file,
    describe_file_type,
    regular_file_stat,
)
from zarrfs.engine.stores.temporary_files import (
    TEMPORARY_PREFIX,
    create_temporary,
    find_abandoned,
    remove_abandoned,
    sync_directory,
)
from zarrfs.errors import LocationError, StoreError

__all__ = ["LocalStore"]

T = TypeVar("T")

MISSING_ERRNOS = {errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.ENAMETOOLONG}
"""Errors of the operating system that mean that a file does not exist."""

NO_FOLLOW_FLAGS = READ_FLAGS | getattr(os, "O_NOFOLLOW", 0)

METADATA_NAMES = ("zarr.json", ".zgroup", ".zarray", ".zattrs", "attributes.json")
"""A parent directory that contains one of these files belongs to the same hierarchy."""

MAX_CHECKED_DIRECTORIES = 100_000

MIN_UNCHANGED_NS = 2_000_000_000
"""The modification time of a directory identifies its names if it is at least this far in the past. File systems store
times with a resolution of up to two seconds.
"""

MAX_BUFFERS_PER_CALL = 1024
"""The number of buffers that ``writev`` accepts in one call (IOV_MAX on Linux)."""


class LocalStore(Store):
    """Values in files below ``root``. Keeps no files open. Safe to use from several threads and processes.

    With ``durable`` a write returns after the data have reached the disk (fsync). Without it a crash of the machine
    can lose the latest writes, but each file is either the old one or the new one. With ``allow_external`` symbolic
    links that lead out of the store are followed.

    Raises LocationError if ``root`` exists and is not a directory.
    """

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
        self._url = Path(self.root).as_uri()
        # Directories whose path below the root contains no link that leads out of the store. None: checks are off.
        self._checked: set[str] | None = None if allow_external else {self._base[:-1]}
        with suppress(OSError, ValueError):
            mode = os.stat(self.root).st_mode
            if not stat.S_ISDIR(mode):
                raise LocationError(f"{self.root} is {describe_file_type(mode)}; expected a directory")

    @property
    def url(self) -> str:
        return self._url

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

    # -- symbolic links ----------------------------------------------------------------------------------------

    def _open_value(self, path: str) -> int:
        """Return a file descriptor, which the caller closes. Raises OSError, and StoreError for an external link."""
        checked = self._checked
        if checked is None:
            return os.open(path, READ_FLAGS)
        if path.rpartition("/")[0] not in checked:
            self._check_directory(path.rpartition("/")[0])
        try:
            return os.open(path, NO_FOLLOW_FLAGS)
        except OSError as error:
            if error.errno != errno.ELOOP:
                raise
        return os.open(self._resolve(path), NO_FOLLOW_FLAGS)

    def open_directory(self, prefix: str) -> int | None:
        """Return a file descriptor of the directory of a prefix, which the caller closes; None if it is missing.

        Links are followed as in ``get``. Raises StoreError for a link that leads out of the store.
        """
        path = self._path(prefix) if prefix else self.root
        self._check_open()
        try:
            self._check_directory(path)
            return os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError as error:
            self._raise_unless_missing(error, path)
            return None

    def _check_directory(self, directory: str) -> None:
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
                self._resolve(path)
            elif not stat.S_ISDIR(mode):
                return
            if len(checked) >= MAX_CHECKED_DIRECTORIES:
                self._clear_checked()
            checked.add(path)

    def check_directories_again(self) -> None:
        """Check each directory again for links when it is accessed next, because directories were removed."""
        self._clear_checked()

    def _clear_checked(self) -> None:
        if self._checked is not None:
            self._checked.clear()
            self._checked.add(self._base[:-1])

    def _resolve(self, path: str) -> str:
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

    def _is_external(self, path: str) -> bool:
        try:
            self._resolve(path)
        except StoreError:
            return True
        return False

    # -- reading -----------------------------------------------------------------------------------------------

    def get(self, key: str) -> bytes | None:
        return self.get_within(key, None)

    def get_within(self, key: str, max_nbytes: int | None) -> bytes | None:
        path = self._path(key)
        try:
            fd = self._open_value(path)
        except OSError as error:
            self._raise_unless_missing(error, path)
            return None
        try:
            size = regular_file_stat(fd, path).st_size
            if max_nbytes is not None and size > max_nbytes:
                raise ValueTooLargeError(size, max_nbytes)
            return _read(fd, size, 0)
        except OSError as error:
            self._raise_unless_missing(error, path)
            return None
        finally:
            os.close(fd)

    def get_into(self, key: str, out: memoryview) -> int | None:
        path = self._path(key)
        try:
            fd = self._open_value(path)
        except OSError as error:
            self._raise_unless_missing(error, path)
            return None
        try:
            size = regular_file_stat(fd, path).st_size
            done = 0
            while size == len(out) and done < size:
                count = os.preadv(fd, [out[done:]], done)
                if not count:
                    return done
                done += count
            return size
        except OSError as error:
            self._raise_unless_missing(error, path)
            return None
        finally:
            os.close(fd)

    def get_ranges(self, key: str, ranges: Sequence[ByteRange]) -> list[Buffer] | None:
        path = self._path(key)
        try:
            fd = self._open_value(path)
        except OSError as error:
            self._raise_unless_missing(error, path)
            return None
        try:
            size = regular_file_stat(fd, path).st_size
            buffers: list[Buffer] = []
            for byte_range in ranges:
                start, stop = byte_range.resolve(size)
                buffers.append(_read(fd, max(0, stop - start), start))
            return buffers
        except OSError as error:
            self._raise_unless_missing(error, path)
            return None
        finally:
            os.close(fd)

    def open_value(self, key: str, max_nbytes: int | None = None) -> StoredValue:
        return _LocalValue(self, key, max_nbytes)

    def size(self, key: str) -> int | None:
        status = self._stat(key)
        return None if status is None else status.st_size

    def stamp(self, key: str) -> Hashable | None:
        status = self._stat(key)
        return None if status is None else _stamp_from_status(status)

    def _stat(self, key: str) -> os.stat_result | None:
        path = self._path(key)
        try:
            if self._checked is not None and path.rpartition("/")[0] not in self._checked:
                self._check_directory(path.rpartition("/")[0])
            status = os.lstat(path)
            if stat.S_ISLNK(status.st_mode):
                status = os.stat(self._resolve(path))
        except OSError as error:
            self._raise_unless_missing(error, path)
            return None
        if stat.S_ISREG(status.st_mode):
            return status
        if not stat.S_ISDIR(status.st_mode):
            check_regular_file(path)
        return None

    def _raise_unless_missing(self, error: OSError, path: str) -> None:
        """Return if the error means that the file does not exist. Otherwise raise StoreError."""
        if isinstance(error, StoreError):
            raise error
        if error.errno == errno.ENXIO:  # opening a socket fails with this error
            check_regular_file(path)
        if error.errno not in MISSING_ERRNOS:
            raise StoreError(f"{path} cannot be read: {error.strerror}", error.errno) from error

    # -- listing -----------------------------------------------------------------------------------------------

    def list_dir(self, prefix: str = "") -> Listing:
        keys: list[str] = []
        prefixes: list[str] = []
        self._check_open()
        for entry in self._scan(self._path(prefix) if prefix else self.root):
            if not _is_directory(entry):
                keys.append(entry.name)
            elif not (entry.is_symlink() and self._is_ancestor(entry.stat(), entry.path)):
                # A link to a parent directory would make the hierarchy infinite.
                prefixes.append(entry.name)
        return Listing(sorted(keys), sorted(prefixes))

    def listing_stamp(self, prefix: str = "") -> Hashable | None:
        """Return the stamp of the directory. None if it was changed just now: its time may not show the next change."""
        path = self._path(prefix) if prefix else self.root
        try:
            self._check_directory(path)
            status = os.stat(path)
        except OSError:
            return None
        if not stat.S_ISDIR(status.st_mode) or abs(time.time_ns() - status.st_mtime_ns) < MIN_UNCHANGED_NS:
            return None
        return _stamp_from_status(status)

    def list_prefix(self, prefix: str = "") -> Iterator[str]:
        """Yield all full keys below the prefix. Raises StoreError for a link to a directory outside of the store."""
        return self._walk(prefix, lambda key, entry: key, self._resolve)

    def usage(self, prefix: str = "") -> Usage:
        """Return the usage below the prefix. Directories outside of the store, behind links, are not counted."""
        return self._usage_without_links(prefix) or self._usage_with_links(prefix)

    def _usage_without_links(self, prefix: str) -> Usage | None:
        """Return the usage below the prefix, or None if there is a symbolic link."""
        self._check_open()
        keys = nbytes = newest = 0
        top = self._path(prefix) if prefix else self.root
        try:
            self._check_directory(top)
        except OSError as error:
            self._raise_unless_missing(error, top)
            return Usage(0, 0, None)
        pending = [top]
        while pending:
            directory = pending.pop()
            try:
                with os.scandir(directory) as entries:
                    for entry in entries:
                        if entry.is_symlink():
                            return None
                        if entry.is_dir(follow_symlinks=False):
                            if not entry.name.startswith(TEMPORARY_PREFIX):
                                pending.append(entry.path)
                        elif not entry.name.startswith(TEMPORARY_PREFIX):
                            try:
                                status = entry.stat(follow_symlinks=False)
                            except FileNotFoundError:  # It was deleted.
                                continue
                            keys += 1
                            nbytes += status.st_size
                            newest = max(newest, status.st_mtime_ns)
            except OSError as error:
                self._raise_unless_missing(error, directory)
        return Usage(keys, nbytes, newest / 1e9 if keys else None)

    def _usage_with_links(self, prefix: str) -> Usage:
        def status(key: str, entry: os.DirEntry[str]) -> os.stat_result:
            return entry.stat(follow_symlinks=not (entry.is_symlink() and self._is_external(entry.path)))

        keys = nbytes = 0
        newest: float | None = None
        for entry in self._walk(prefix, status, lambda path: None if self._is_external(path) else path):
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
        """
        self._check_open()
        pending = [prefix]
        seen: set[tuple[int, int]] = set()
        while pending:
            directory = pending.pop()
            for entry in self._scan(self._path(directory) if directory else self.root):
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

    def _is_ancestor(self, status: os.stat_result, path: str) -> bool:
        parent = os.path.dirname(path)
        while len(parent) >= len(self.root):
            with suppress(OSError):
                if os.path.samestat(status, os.stat(parent)):
                    return True
            parent = os.path.dirname(parent)
        return False

    def _scan(self, path: str) -> list[os.DirEntry[str]]:
        try:
            self._check_directory(path)
            with os.scandir(path) as entries:
                return [entry for entry in entries if not entry.name.startswith(TEMPORARY_PREFIX)]
        except OSError as error:
            self._raise_unless_missing(error, path)
            return []

    # -- writing -----------------------------------------------------------------------------------------------

    def set(self, key: str, value: Buffer) -> None:
        self.set_parts(key, (value,))

    def set_parts(self, key: str, parts: Sequence[Buffer]) -> None:
        if self.read_only:
            raise self._read_only_error(f"writing {key!r}")
        self._check_open()
        path = self._base + check_key(key)
        try:
            with suppress(FileNotFoundError):
                self._check_directory(path.rpartition("/")[0])
            if self.durable:
                _make_directories_durably(path.rpartition("/")[0])
            fd, temporary = create_temporary(path.rpartition("/")[0])
            try:
                try:
                    _write(fd, parts)
                    if self.durable:
                        os.fsync(fd)
                finally:
                    os.close(fd)
                os.replace(temporary, path)
            except BaseException:
                with suppress(OSError):
                    os.unlink(temporary)
                raise
            if self.durable:
                sync_directory(os.path.dirname(path))
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
        self._unlink(path)
        self._prune(os.path.dirname(path))

    def _unlink(self, path: str) -> None:
        try:
            self._check_directory(path.rpartition("/")[0])
            os.unlink(path)
            if self.durable:
                with suppress(FileNotFoundError):  # Another writer removed the empty directory.
                    sync_directory(os.path.dirname(path))
        except StoreError:
            raise
        except OSError as error:
            if error.errno not in MISSING_ERRNOS:
                raise StoreError(f"{path} cannot be deleted: {error.strerror}", error.errno) from error

    def delete_prefix(self, prefix: str) -> None:
        """Delete all keys below the prefix. Links to directories are deleted, but not their targets."""
        if self.read_only:
            raise self._read_only_error(f"deleting the keys below {prefix!r}")
        self._check_open()
        path = self._path(check_key(prefix)) if prefix else self.root
        if prefix and os.path.islink(path):
            self._unlink(path)
        else:
            self._delete_below(path)
        if prefix:
            self._prune(os.path.dirname(path))
        self._clear_checked()

    def _delete_below(self, top: str) -> None:
        """Delete all files below a directory, then the directories. Links are not followed."""
        directories = [top]
        for directory in directories:  # the list grows during the iteration
            for entry in self._scan(directory):
                if entry.is_dir(follow_symlinks=False):
                    directories.append(entry.path)
                else:
                    self._unlink(entry.path)
            remove_abandoned(directory)
        for directory in reversed(directories):
            if directory != self.root:
                with suppress(OSError):
                    os.rmdir(directory)

    def move_prefix(self, prefix: str, target: str) -> None:
        if self.read_only:
            raise self._read_only_error(f"moving the keys below {prefix!r}")
        self._check_open()
        self._clear_checked()
        old = self._path(check_key(prefix)) if prefix else ""
        new = self._path(check_key(target)) if target else ""
        if old and not target and os.path.isdir(old):
            self._move_to_root(old)
            return
        if new and segment_below(prefix, target) is not None and not os.path.lexists(new):
            self._move_into(prefix, target)
            return
        if not old or not new or os.path.lexists(new) or not os.path.isdir(old):
            super().move_prefix(prefix, target)
            return
        try:
            for path in (old, new):
                with suppress(FileNotFoundError):
                    self._check_directory(path.rpartition("/")[0])
            os.makedirs(os.path.dirname(new), exist_ok=True)
            os.rename(old, new)
            self._clear_checked()
        except StoreError:
            raise
        except OSError as error:
            raise StoreError(f"{old} cannot be moved to {new}: {error.strerror}", error.errno) from error
        self._prune(os.path.dirname(old))

    def _move_to_root(self, old: str) -> None:
        """Move the contents of a directory to the root by renaming, which needs no disk space."""
        prefix = old[len(self._base) :]
        for name in sorted(os.listdir(old)):
            source, target = f"{old}/{name}", self._base + name
            if os.path.isdir(source) and os.path.lexists(target):
                super().move_prefix(f"{prefix}/{name}", name)
                continue
            try:
                os.replace(source, target)
            except OSError as error:
                raise StoreError(
                    f"{source} cannot be moved to {target}: {error.strerror}", error.errno
                ) from error
        self._prune(old)

    def _move_into(self, prefix: str, target: str) -> None:
        """Move the contents of a directory to a directory below it by renaming."""
        old = (self._base + prefix).rstrip("/")
        new = self._base + target
        names = {entry.name for entry in self._scan(old)} - {segment_below(prefix, target)}
        try:
            with suppress(FileNotFoundError):
                self._check_directory(new.rpartition("/")[0])
            if names:
                os.makedirs(new, exist_ok=True)
            for name in sorted(names):
                os.rename(f"{old}/{name}", f"{new}/{name}")
        except StoreError:
            raise
        except OSError as error:
            raise StoreError(f"{old} cannot be moved to {new}: {error.strerror}", error.errno) from error
        finally:
            self._clear_checked()

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
            self._prune(os.path.dirname(path))
        return abandoned

    def _prune(self, directory: str) -> None:
        """Remove a directory and its parents below the root as long as they are empty."""
        while len(directory) > len(self.root):
            try:
                os.rmdir(directory)
            except OSError:
                return
            if self._checked is not None:
                self._checked.discard(directory)
            directory = os.path.dirname(directory)


class _LocalValue(StoredValue):
    """A file that is opened once, by the first request for bytes. All parts belong to the same version."""

    def __init__(self, store: LocalStore, key: str, max_nbytes: int | None) -> None:
        super().__init__(store, key, max_nbytes)
        self._local_store = store
        self._path = store._path(key)
        self._fd = -1
        self._size = 0
        self._lock = threading.Lock()

    def _open(self) -> bool:
        """Open the file unless it is open. Return False if it is missing."""
        with self._lock:
            if self._fd >= 0:
                return True
            try:
                fd = self._local_store._open_value(self._path)
                try:
                    self._size = regular_file_stat(fd, self._path).st_size
                except BaseException:
                    os.close(fd)
                    raise
            except OSError as error:
                self._local_store._raise_unless_missing(error, self._path)
                return False
            self._fd = fd
            return True

    def is_unchanged(self, stamp: Hashable) -> bool:
        # A value that was never opened has returned no bytes, so no version was read.
        return self._fd < 0 or _stamp_from_status(os.fstat(self._fd)) == stamp

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
            return _read(self._fd, size, offset)
        except OSError as error:
            self._local_store._raise_unless_missing(error, self._path)
            raise StoreError(f"{self._path} cannot be read: {error.strerror}", error.errno) from error

    def close(self) -> None:
        with self._lock:
            if self._fd >= 0:
                os.close(self._fd)
                self._fd = -1


def _stamp_from_status(status: os.stat_result) -> Hashable:
    return status.st_mtime_ns, status.st_size, status.st_ino


def _read(fd: int, size: int, offset: int) -> bytes:
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


def _is_directory(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:
        return False


def _make_directories_durably(directory: str) -> None:
    """Create a directory and its missing parents, and wait until each has reached the disk."""
    if os.path.isdir(directory):
        return
    parent = os.path.dirname(directory)
    _make_directories_durably(parent)
    with suppress(FileExistsError):  # Another writer created it.
        os.mkdir(directory)
    sync_directory(parent)


def _write(fd: int, parts: Sequence[Buffer]) -> None:
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
