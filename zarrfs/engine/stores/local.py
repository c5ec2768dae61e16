"""A directory as a store: keys are relative paths, values are files.

After the file system store of the Zarr v3 specification (also what v2 calls a DirectoryStore). Writes are atomic: a
temporary file beside the target, renamed over it; a writer that is killed leaves that file, which is never listed,
and goes with ``clean`` or when all around it is deleted. It is not looked for on opening: that would take a walk
over all files.

Keys never leave the root. A symbolic link is followed only if its target lies in the store; the root itself may be a
link. Links that lead out of the store are refused unless ``allow_external`` is given. The store of a node below the
root of a hierarchy is that whole hierarchy: the parent directories that hold metadata documents too. Links are checked
when they are met, and each directory once, so that this protects against data that were received with such links, not
against a process that changes the directories at the same time.
"""

from __future__ import annotations

import errno
import os
import stat
import threading
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

ABSENT = {errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.ENAMETOOLONG}
"""What the system answers when there is no file of that name."""

NO_FOLLOW = READ_FLAGS | getattr(os, "O_NOFOLLOW", 0)

METADATA_NAMES = ("zarr.json", ".zgroup", ".zarray", ".zattrs", "attributes.json")
"""What marks a parent directory as a part of the same hierarchy."""

MAX_CHECKED_DIRECTORIES = 100_000

MAX_PARTS = 1024
"""How many pieces of memory a system call takes."""


class LocalStore(Store):
    """Values in files below ``root``. Holds nothing open; safe to use from threads and processes.

    With ``durable`` a write returns only after the data have reached the disk (fsync); without, a crash of the
    machine may lose the latest writes, but a file is still either the old one or the new one. With ``allow_external``
    symbolic links that lead out of the store are followed.

    Raises LocationError if there is a file at ``root``.
    """

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
        # Directories in which no component below the root is a link that leads out of the store. None: not checked.
        self._checked: set[str] | None = None if allow_external else {self._base[:-1]}
        with suppress(OSError, ValueError):
            mode = os.stat(self.root).st_mode
            if not stat.S_ISDIR(mode):
                raise LocationError(f"{self.root} is {describe_file_type(mode)}; expected a directory")

    @property
    def url(self) -> str:
        return Path(self.root).as_uri()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LocalStore) and self.root == other.root

    def __hash__(self) -> int:
        return hash(self.root)

    def _path(self, key: str) -> str:
        if self._closed:
            self._check_open()
        # The cheap test first, as this runs once for every chunk: what it lets through cannot leave the root.
        if ".." in key or "\0" in key or not key:
            check_key(key)
        return self._base + key

    # -- symbolic links ----------------------------------------------------------------------------------------

    def _open_value(self, path: str) -> int:
        """Return a descriptor of the file of a value. Raises OSError, StoreError for a link that leads out."""
        checked = self._checked
        if checked is None:
            return os.open(path, READ_FLAGS)
        if path.rpartition("/")[0] not in checked:
            self._check_directory(path.rpartition("/")[0])
        try:
            return os.open(path, NO_FOLLOW)
        except OSError as error:
            if error.errno != errno.ELOOP:
                raise
        return os.open(self._resolve(path), NO_FOLLOW)

    def _check_directory(self, directory: str) -> None:
        """Check that a directory below the root, and those on the way to it, are in the store. Raises OSError,
        FileNotFoundError for one that is missing.
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
                self._forget_checks()
            checked.add(path)

    def _forget_checks(self) -> None:
        if self._checked is not None:
            self._checked.clear()
            self._checked.add(self._base[:-1])

    def _resolve(self, path: str) -> str:
        """Return the target of a link. Raises StoreError if it leads out of the store."""
        target = os.path.realpath(path)
        boundary = self._boundary
        if (
            self._checked is not None
            and target != boundary
            and not target.startswith(boundary.rstrip("/") + "/")
        ):
            raise StoreError(
                f"{path} is a symbolic link that leads out of the store, to {target}: it is not followed; open the "
                "store with allow_external=True (--allow-external) if you trust these data",
                errno.EACCES,
            )
        return target

    @cached_property
    def _boundary(self) -> str:
        """The directory that links may not leave: the root of the hierarchy that the store is in."""
        root = os.path.realpath(self.root)
        while (parent := os.path.dirname(root)) != root and any(
            os.path.lexists(os.path.join(parent, name)) for name in METADATA_NAMES
        ):
            root = parent
        return root

    def _leads_out(self, path: str) -> bool:
        try:
            self._resolve(path)
        except StoreError:
            return True
        return False

    # -- reading -----------------------------------------------------------------------------------------------

    def get(self, key: str) -> bytes | None:
        return self.get_within(key, None)

    def get_within(self, key: str, most: int | None) -> bytes | None:
        path = self._path(key)
        try:
            fd = self._open_value(path)
        except OSError as error:
            self._check_absent(error, path)
            return None
        try:
            size = regular_file_stat(fd, path).st_size
            if most is not None and size > most:
                raise ValueTooLargeError(size, most)
            return _read(fd, size, 0)
        except OSError as error:
            self._check_absent(error, path)
            return None
        finally:
            os.close(fd)

    def get_into(self, key: str, out: memoryview) -> int | None:
        path = self._path(key)
        try:
            fd = self._open_value(path)
        except OSError as error:
            self._check_absent(error, path)
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
            self._check_absent(error, path)
            return None
        finally:
            os.close(fd)

    def get_ranges(self, key: str, ranges: Sequence[ByteRange]) -> list[Buffer] | None:
        path = self._path(key)
        try:
            fd = self._open_value(path)
        except OSError as error:
            self._check_absent(error, path)
            return None
        try:
            size = regular_file_stat(fd, path).st_size
            pieces: list[Buffer] = []
            for byte_range in ranges:
                start, stop = byte_range.resolve(size)
                pieces.append(_read(fd, max(0, stop - start), start))
            return pieces
        except OSError as error:
            self._check_absent(error, path)
            return None
        finally:
            os.close(fd)

    def open_value(self, key: str, max_nbytes: int | None = None) -> StoredValue:
        return _LocalValue(self, key, max_nbytes)

    def size(self, key: str) -> int | None:
        found = self._stat(key)
        return None if found is None else found.st_size

    def stamp(self, key: str) -> Hashable | None:
        found = self._stat(key)
        return None if found is None else _stamp_of(found)

    def _stat(self, key: str) -> os.stat_result | None:
        path = self._path(key)
        try:
            if self._checked is not None and path.rpartition("/")[0] not in self._checked:
                self._check_directory(path.rpartition("/")[0])
            found = os.lstat(path)
            if stat.S_ISLNK(found.st_mode):
                found = os.stat(self._resolve(path))
        except OSError as error:
            self._check_absent(error, path)
            return None
        if stat.S_ISREG(found.st_mode):
            return found
        if not stat.S_ISDIR(found.st_mode):
            check_regular_file(path)
        return None

    def _check_absent(self, error: OSError, path: str) -> None:
        """Raise what went wrong, unless the error just means that there is no such file."""
        if isinstance(error, StoreError):
            raise error
        if error.errno == errno.ENXIO:  # what opening a socket answers
            check_regular_file(path)
        if error.errno not in ABSENT:
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
                # A link that leads back up would make the hierarchy endless.
                prefixes.append(entry.name)
        return Listing(sorted(keys), sorted(prefixes))

    def list_prefix(self, prefix: str = "") -> Iterator[str]:
        """Yield all full keys below the prefix. Raises StoreError for a directory that a link leads out of the store
        to.
        """
        return self._walk(prefix, lambda key, entry: key, self._resolve)

    def usage(self, prefix: str = "") -> Usage:
        """Return what is stored below the prefix. Directories that links lead out of the store to are not counted."""

        def status(key: str, entry: os.DirEntry[str]) -> os.stat_result:
            return entry.stat(follow_symlinks=not (entry.is_symlink() and self._leads_out(entry.path)))

        keys = nbytes = 0
        newest: float | None = None
        for found in self._walk(prefix, status, lambda path: None if self._leads_out(path) else path):
            keys += 1
            nbytes += found.st_size
            newest = found.st_mtime if newest is None else max(newest, found.st_mtime)
        return Usage(keys, nbytes, newest)

    def _walk(
        self,
        prefix: str,
        what: Callable[[str, os.DirEntry[str]], T],
        enter: Callable[[str], str | None],
    ) -> Iterator[T]:
        """Yield ``what`` of every file below; a file that vanishes meanwhile is left out. ``enter`` tells whether to
        go into a directory behind a link.
        """
        self._check_open()
        pending = [prefix]
        seen: set[tuple[int, int]] = set()
        while pending:
            at = pending.pop()
            for entry in self._scan(self._path(at) if at else self.root):
                key = f"{at}/{entry.name}" if at else entry.name
                if not _is_directory(entry):
                    with suppress(OSError):  # It may be gone meanwhile, or a link in a circle.
                        yield what(key, entry)
                    continue
                if entry.is_symlink():
                    if enter(entry.path) is None:
                        continue
                    # A link may lead back up; each directory behind one is walked once.
                    found = entry.stat()
                    if (found.st_dev, found.st_ino) in seen or self._is_ancestor(found, entry.path):
                        continue
                    seen.add((found.st_dev, found.st_ino))
                pending.append(key)

    def _is_ancestor(self, found: os.stat_result, path: str) -> bool:
        parent = os.path.dirname(path)
        while len(parent) >= len(self.root):
            with suppress(OSError):
                if os.path.samestat(found, os.stat(parent)):
                    return True
            parent = os.path.dirname(parent)
        return False

    def _scan(self, path: str) -> list[os.DirEntry[str]]:
        try:
            self._check_directory(path)
            with os.scandir(path) as entries:
                return [entry for entry in entries if not entry.name.startswith(TEMPORARY_PREFIX)]
        except OSError as error:
            self._check_absent(error, path)
            return []

    # -- writing -----------------------------------------------------------------------------------------------

    def set(self, key: str, value: Buffer) -> None:
        self.set_parts(key, (value,))

    def set_parts(self, key: str, parts: Sequence[Buffer]) -> None:
        if self.read_only:
            raise self._refuse(f"writing {key!r}")
        self._check_open()
        path = self._base + check_key(key)
        try:
            with suppress(FileNotFoundError):
                self._check_directory(path.rpartition("/")[0])
            if self.durable:
                _make_durably(path.rpartition("/")[0])
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
        except RecursionError as error:  # of os.makedirs, for a path of about a thousand new directories
            raise StoreError(f"{path} cannot be written: it is too deep", errno.ENAMETOOLONG) from error
        except OSError as error:
            raise StoreError(f"{path} cannot be written: {error.strerror}", error.errno) from error

    def delete(self, key: str) -> None:
        if self.read_only:
            raise self._refuse(f"deleting {key!r}")
        path = self._path(check_key(key))
        self._unlink(path)
        self._prune(os.path.dirname(path))

    def _unlink(self, path: str) -> None:
        try:
            self._check_directory(path.rpartition("/")[0])
            os.unlink(path)
            if self.durable:
                with suppress(FileNotFoundError):  # Others removed it, as it was empty.
                    sync_directory(os.path.dirname(path))
        except StoreError:
            raise
        except OSError as error:
            if error.errno not in ABSENT:
                raise StoreError(f"{path} cannot be deleted: {error.strerror}", error.errno) from error

    def delete_prefix(self, prefix: str) -> None:
        """Delete all keys below the prefix. Links to directories are deleted, and not what they lead to."""
        if self.read_only:
            raise self._refuse(f"deleting what is below {prefix!r}")
        self._check_open()
        path = self._path(check_key(prefix)) if prefix else self.root
        if prefix and os.path.islink(path):
            self._unlink(path)
        else:
            self._delete_below(path)
        if prefix:
            self._prune(os.path.dirname(path))
        self._forget_checks()

    def _delete_below(self, top: str) -> None:
        """Delete the files in a directory and below it, and then the directories. Follows no links."""
        directories = [top]
        for directory in directories:  # grows
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
            raise self._refuse(f"moving what is below {prefix!r}")
        self._check_open()
        self._forget_checks()
        old = self._path(check_key(prefix)) if prefix else ""
        new = self._path(check_key(target)) if target else ""
        if old and not target and os.path.isdir(old):
            self._move_to_root(old)
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
            self._forget_checks()
        except StoreError:
            raise
        except OSError as error:
            raise StoreError(f"{old} cannot be moved to {new}: {error.strerror}", error.errno) from error
        self._prune(os.path.dirname(old))

    def _move_to_root(self, old: str) -> None:
        """Move what is in a directory to the root. Renaming takes no space, so that a full disk does not stop it."""
        prefix = old[len(self._base) :]
        for name in sorted(os.listdir(old)):
            source, place = f"{old}/{name}", self._base + name
            if os.path.isdir(source) and os.path.lexists(place):
                super().move_prefix(f"{prefix}/{name}", name)
                continue
            try:
                os.replace(source, place)
            except OSError as error:
                raise StoreError(
                    f"{source} cannot be moved to {place}: {error.strerror}", error.errno
                ) from error
        self._prune(old)

    def clean(self, *, dry_run: bool = False) -> list[str]:
        if self.read_only and not dry_run:
            raise self._refuse("removing files")
        self._check_open()
        found = sorted(find_abandoned(self.root))
        for path in found if not dry_run else ():
            try:
                os.unlink(path)
            except FileNotFoundError:  # Another one is at it too.
                continue
            except OSError as error:
                raise StoreError(f"{path} cannot be removed: {error.strerror}", error.errno) from error
            self._prune(os.path.dirname(path))
        return found

    def _prune(self, directory: str) -> None:
        """Remove directories that hold nothing any more, up to the root."""
        while len(directory) > len(self.root):
            try:
                os.rmdir(directory)
            except OSError:
                return
            if self._checked is not None:
                self._checked.discard(directory)
            directory = os.path.dirname(directory)


class _LocalValue(StoredValue):
    """A file that is opened once, by the first request for bytes: all parts belong to the same version."""

    def __init__(self, store: LocalStore, key: str, max_nbytes: int | None) -> None:
        super().__init__(store, key, max_nbytes)
        self._local_store = store
        self._path = store._path(key)
        self._fd = -1
        self._size = 0
        self._lock = threading.Lock()

    def _open(self) -> bool:
        """Open the file unless it is open. Return False when it is missing."""
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
                self._local_store._check_absent(error, self._path)
                return False
            self._fd = fd
            return True

    def is_unchanged(self, stamp: Hashable) -> bool:
        # A value that was never opened has given no bytes.
        return self._fd < 0 or _stamp_of(os.fstat(self._fd)) == stamp

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
        pieces: list[Buffer] = []
        for byte_range in ranges:
            start, stop = byte_range.resolve(self._size)
            pieces.append(self._read(max(0, stop - start), start))
        return pieces

    def _read(self, size: int, offset: int) -> bytes:
        try:
            return _read(self._fd, size, offset)
        except OSError as error:
            self._local_store._check_absent(error, self._path)
            raise StoreError(f"{self._path} cannot be read: {error.strerror}", error.errno) from error

    def close(self) -> None:
        with self._lock:
            if self._fd >= 0:
                os.close(self._fd)
                self._fd = -1


def _stamp_of(found: os.stat_result) -> Hashable:
    return found.st_mtime_ns, found.st_size, found.st_ino


def _read(fd: int, size: int, offset: int) -> bytes:
    """Read ``size`` bytes at ``offset``, or what there is. One call moves at most 2 GiB."""
    try:
        data = os.pread(fd, size, offset)
    except (MemoryError, OverflowError) as error:
        raise StoreError(f"{size:,} bytes of one file do not fit into memory", errno.EFBIG) from error
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


def _make_durably(directory: str) -> None:
    """Make a directory, and those on the way to it, each of which has reached the disk then."""
    if os.path.isdir(directory):
        return
    parent = os.path.dirname(directory)
    _make_durably(parent)
    with suppress(FileExistsError):  # Another one was faster.
        os.mkdir(directory)
    sync_directory(parent)


def _write(fd: int, parts: Sequence[Buffer]) -> None:
    """Write it all. One call takes so many parts and moves at most 2 GiB."""
    for first in range(0, len(parts), MAX_PARTS):
        some = parts[first : first + MAX_PARTS]
        done = os.write(fd, some[0]) if len(some) == 1 else os.writev(fd, some)
        for part in some:
            size = memoryview(part).nbytes
            if done >= size:
                done -= size
                continue
            rest = memoryview(part).cast("B")[done:]
            while rest:
                rest = rest[os.write(fd, rest) :]
            done = 0
