"""A directory as a store: keys are relative paths, values are files.

After the file system store of the Zarr v3 specification (also what v2 calls a DirectoryStore). Writes are atomic: a
temporary file beside the target, renamed over it; a writer that is killed leaves that file, which is never listed,
and goes with ``clean`` or when all around it is deleted. It is not looked for on opening: that would take a walk
over all files. Symbolic links are followed, keys never leave the root.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from zarrfs.engine.stores.base import (
    Buffer,
    ByteRange,
    Listing,
    Store,
    Usage,
    ValueTooLargeError,
    check_key,
)
from zarrfs.engine.stores.leftovers import (
    TEMPORARY_PREFIX,
    create_temporary,
    find_abandoned,
    remove_abandoned,
    sync_directory,
)
from zarrfs.errors import StoreError

__all__ = ["LocalStore"]

T = TypeVar("T")

ABSENT = {errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.ENAMETOOLONG}
"""What the system answers when there is no file of that name."""

READ_FLAGS = os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
# Opening a pipe would wait for somebody to write to it.
READ_FLAGS |= getattr(os, "O_NONBLOCK", 0)

MOST_PARTS = 1024
"""How many pieces of memory a system call takes."""


class LocalStore(Store):
    """Values in files below ``root``. Holds nothing open; safe to use from threads and processes.

    With ``durable`` a write returns only after the data have reached the disk (fsync); without, a crash of the
    machine may lose the latest writes, but a file is still either the old one or the new one.
    """

    def __init__(
        self, root: str | os.PathLike[str], *, read_only: bool = False, durable: bool = False
    ) -> None:
        self.root = os.path.abspath(os.fspath(root))
        self.read_only = read_only
        self.durable = durable
        self._base = self.root.rstrip("/") + "/"

    @property
    def url(self) -> str:
        return Path(self.root).as_uri()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LocalStore) and self.root == other.root

    def __hash__(self) -> int:
        return hash(self.root)

    def _path(self, key: str) -> str:
        # The cheap test first, as this runs once for every chunk: what it lets through cannot leave the root.
        if ".." in key or "\0" in key or not key:
            check_key(key)
        return self._base + key

    # -- reading -----------------------------------------------------------------------------------------------

    def get(self, key: str) -> bytes | None:
        return self.get_within(key, None)

    def get_within(self, key: str, most: int | None) -> bytes | None:
        path = self._path(key)
        try:
            fd = os.open(path, READ_FLAGS)
        except OSError as error:
            self._check_absent(error, path)
            return None
        try:
            size = _file_size(fd, path)
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
            fd = os.open(path, READ_FLAGS)
        except OSError as error:
            self._check_absent(error, path)
            return None
        try:
            size = _file_size(fd, path)
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
            fd = os.open(path, READ_FLAGS)
        except OSError as error:
            self._check_absent(error, path)
            return None
        try:
            size = _file_size(fd, path)
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

    def size(self, key: str) -> int | None:
        found = self._stat(key)
        return None if found is None else found.st_size

    def stamp(self, key: str) -> Hashable | None:
        found = self._stat(key)
        return None if found is None else (found.st_mtime_ns, found.st_size, found.st_ino)

    def _stat(self, key: str) -> os.stat_result | None:
        path = self._path(key)
        try:
            found = os.stat(path)
        except OSError as error:
            self._check_absent(error, path)
            return None
        return None if stat.S_ISDIR(found.st_mode) else found

    def _check_absent(self, error: OSError, path: str) -> None:
        """Raise what went wrong, unless the error just means that there is no such file."""
        if isinstance(error, StoreError):
            raise error
        if error.errno not in ABSENT:
            raise StoreError(f"{path} cannot be read: {error.strerror}", error.errno) from error

    # -- listing -----------------------------------------------------------------------------------------------

    def list_dir(self, prefix: str = "") -> Listing:
        keys: list[str] = []
        prefixes: list[str] = []
        for entry in self._scan(self._path(prefix) if prefix else self.root):
            if not _is_directory(entry):
                keys.append(entry.name)
            elif not (entry.is_symlink() and self._is_ancestor(entry.stat(), entry.path)):
                # A link that leads back up would make the hierarchy endless.
                prefixes.append(entry.name)
        return Listing(sorted(keys), sorted(prefixes))

    def list_prefix(self, prefix: str = "") -> Iterator[str]:
        return self._walk(prefix, lambda key, entry: key)

    def usage(self, prefix: str = "") -> Usage:
        keys = nbytes = 0
        newest: float | None = None
        for found in self._walk(prefix, lambda key, entry: entry.stat()):
            keys += 1
            nbytes += found.st_size
            newest = found.st_mtime if newest is None else max(newest, found.st_mtime)
        return Usage(keys, nbytes, newest)

    def _walk(self, prefix: str, what: Callable[[str, os.DirEntry[str]], T]) -> Iterator[T]:
        """Yield ``what`` of every file below; a file that vanishes meanwhile is left out."""
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
        path = self._base + check_key(key)
        try:
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
        except OSError as error:
            raise StoreError(f"{path} cannot be written: {error.strerror}", error.errno) from error

    def delete(self, key: str) -> None:
        if self.read_only:
            raise self._refuse(f"deleting {key!r}")
        path = self._path(check_key(key))
        try:
            os.unlink(path)
        except OSError as error:
            if error.errno not in ABSENT:
                raise StoreError(f"{path} cannot be deleted: {error.strerror}", error.errno) from error
            return
        if self.durable:
            with suppress(FileNotFoundError):  # Others removed it, as it was empty.
                sync_directory(os.path.dirname(path))
        self._prune(os.path.dirname(path))

    def delete_prefix(self, prefix: str) -> None:
        super().delete_prefix(prefix)
        if prefix:
            for directory, _, files in os.walk(self._path(prefix), topdown=False):
                if files:  # hidden ones, of writers that were killed
                    remove_abandoned(directory)
                with suppress(OSError):
                    os.rmdir(directory)
            self._prune(os.path.dirname(self._path(prefix)))

    def move_prefix(self, prefix: str, target: str) -> None:
        if self.read_only:
            raise self._refuse(f"moving what is below {prefix!r}")
        old = self._path(check_key(prefix)) if prefix else ""
        new = self._path(check_key(target)) if target else ""
        if old and not target and os.path.isdir(old):
            self._move_to_root(old)
            return
        if not old or not new or os.path.lexists(new) or not os.path.isdir(old):
            super().move_prefix(prefix, target)
            return
        try:
            os.makedirs(os.path.dirname(new), exist_ok=True)
            os.rename(old, new)
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
            directory = os.path.dirname(directory)


def _file_size(fd: int, path: str) -> int:
    """Return the size of an open file. Devices, pipes and sockets are no values."""
    found = os.fstat(fd)
    if not stat.S_ISREG(found.st_mode):
        if stat.S_ISDIR(found.st_mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
        raise StoreError(f"{path} is a device, pipe or socket; expected a regular file", errno.EINVAL)
    return found.st_size


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
    for first in range(0, len(parts), MOST_PARTS):
        some = parts[first : first + MOST_PARTS]
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
