"""A zip file as a store: keys are member names.

Reading takes the central directory once; stored (uncompressed) members are then read straight from the file at their
offset, in part too.

Writing never touches the archive that is there. Values go, as they are set, as stored members to a file beside it
(see ``zip_spool.py``), so that memory holds no more than the directory: some hundred bytes for each key. They are
read from there at once, by the same store. ``close`` (or ``flush``, or the end of the interpreter) copies what the
old archive holds to the beginning of that file as it is, packed or not, writes the directory and renames the file
over the archive. So at any moment there is the old archive or the new one, whole: a writer that is killed leaves
the old one and a hidden file, which the next writer there removes (``leftovers.py``), and who has the old archive
open goes on reading it. No name is ever there twice.

What was considered instead: to append to the archive itself, past its directory, costs no copy of what is there,
but there is no way to do it in one step. The file must grow before its new end can be written, and a writer that is
killed between leaves a file that ends in the middle of a member, which no program reads. The copy is the kernel's:
on file systems that share blocks between files (XFS, Btrfs) it costs next to nothing, elsewhere it runs at the
speed of the disk. Who changes a large archive often is better off with a directory; who writes a new one pays
nothing.

A value that is set again, or deleted, frees its place in the file for others. What is free at the end stays as a
gap that the directory does not name, closed by padding where it is small; where it is more than a fifth of the
file, the values are copied together to a file without.
"""

from __future__ import annotations

import atexit
import os
import threading
import weakref
import zipfile
import zlib
from collections.abc import Sequence
from contextlib import nullcontext, suppress
from pathlib import Path

from zarrfs.engine.stores.base import Buffer, Listing, Usage, check_key
from zarrfs.engine.stores.leftovers import is_abandoned, remove_abandoned
from zarrfs.engine.stores.zip_archive import ArchiveStore
from zarrfs.engine.stores.zip_records import Member, OpenFile
from zarrfs.engine.stores.zip_spool import OldArchive, Spool
from zarrfs.errors import KeyNameError, LocationError, StoreError
from zarrfs.logs import logger

__all__ = ["ZipStore"]

MOST_NAME_NBYTES = 0xFFFF


class ZipStore(ArchiveStore):
    """Values in a zip file, which stays open until ``close``.

    ``mode`` is ``"r"``, ``"a"`` (made if absent) or ``"w"`` (made anew). What is written is in the file, readable
    by others, only after ``close`` or ``flush`` (or when this process opens it once more): a zip file's directory
    is its end. If that fails the old file is untouched, and it may be tried again. One store at a time may write to
    an archive: if the file was replaced meanwhile, closing is a StoreError and leaves it as it is. With
    ``durable``, closing returns only after all has reached the disk (fsync).

    A process that is forked off reads on what was there when it was made, and writes nothing.
    """

    def __init__(self, path: str | os.PathLike[str], mode: str = "r", *, durable: bool = False) -> None:
        self._closed = True
        self.path = self._where = os.path.abspath(os.fspath(path))
        if mode not in ("r", "a", "w"):
            raise LocationError(f"{self.path}: mode must be 'r', 'a' or 'w', found {mode!r}")
        self.read_only = mode == "r"
        self.durable = durable
        self._lock = threading.RLock()
        self._process = os.getpid()
        super().__init__()
        self._old: OldArchive | None = None
        self._spool: Spool | None = None
        self._count = 0
        # The file behind links: they stay.
        self._target = os.path.realpath(self.path)
        self._seen: tuple[int, ...] | None = None
        for other in list(_open_for_writing):
            # Who makes one node after the other need not know that the first one's store is still open.
            if other._target == self._target and other._seen == _identity(self._target):
                # A reader gets what is there; the writer is told when it closes.
                with suppress(StoreError) if self.read_only else nullcontext():
                    other.flush()
        self._seen = _identity(self._target)
        self._dirty = not self.read_only and (mode == "w" or self._seen is None)
        if not self._dirty:
            self._open()
        self._closed = False
        if not self.read_only:
            _open_for_writing.add(self)

    def __reduce__(self) -> tuple[object, ...]:
        if not self.read_only:
            raise StoreError(
                f"{self.url} is open for writing and cannot be pickled; close it, and open it to read"
            )
        return ZipStore, (self.path, "r")

    def _open(self) -> None:
        with self._opening():
            file = OpenFile(os.open(self._target, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0)))
            with open(file.fd, "rb", closefd=False) as stream, zipfile.ZipFile(stream) as archive:
                infos, end, comment = archive.infolist(), archive.start_dir, archive.comment
            self._size = os.fstat(file.fd).st_size
        others = self._take(infos, file, origins=not self.read_only)
        offsets = [] if self.read_only else sorted({info.header_offset for info in infos})
        self._old = OldArchive(file, end, offsets, comment, others)

    @property
    def url(self) -> str:
        return Path(self.path).as_uri()

    def list_dir(self, prefix: str = "") -> Listing:
        with self._lock:  # What is kept of a listing is of the names as they are now.
            return super().list_dir(prefix)

    def usage(self, prefix: str = "") -> Usage:
        members = [self._members.get(key) for key in self.list_prefix(prefix)]
        sizes = [member.packed for member in members if member is not None]
        try:
            modified: float | None = os.stat(self.path).st_mtime
        except OSError:
            modified = None
        return Usage(len(sizes), sum(sizes), modified)

    # -- writing -----------------------------------------------------------------------------------------------

    def set(self, key: str, value: Buffer) -> None:
        self.set_parts(key, (value,))

    def set_parts(self, key: str, parts: Sequence[Buffer]) -> None:
        self._check_writable(f"writing {key!r}")
        if len(check_key(key).encode()) > MOST_NAME_NBYTES:
            raise KeyNameError(f"a key in a zip file has at most {MOST_NAME_NBYTES:,} bytes: {key[:50]!r}...")
        size = crc = 0
        for part in parts:
            size += memoryview(part).nbytes
            crc = zlib.crc32(part, crc)
        with self._lock:
            self._check_open()
            try:
                self._count += 1
                member = self._spooled().write(key, parts, size, crc, self._count)
            except OSError as error:
                raise StoreError(f"{self.path} cannot be written: {error.strerror}", error.errno) from error
            self._replace(key, member)

    def delete(self, key: str) -> None:
        self._check_writable(f"deleting {key!r}")
        with self._lock:
            self._check_open()
            if key in self._members:
                self._replace(key, None)

    def _replace(self, key: str, member: Member | None) -> None:
        old = self._members.get(key)
        if old is None or member is None:
            self._listing = None
        if member is None:
            del self._members[key]
        else:
            self._members[key] = member
        # Only now, when readers find the new one, may others have its place.
        if old is not None and self._spool is not None:
            self._spool.drop(old)
        self._dirty = True

    def _check_writable(self, what: str) -> None:
        if self.read_only:
            raise self._refuse(what)
        if self._process != os.getpid():
            raise StoreError(
                f"{self.url} was opened for writing by another process, of which this one was forked: {what} is refused"
            )

    def _spooled(self) -> Spool:
        """Return the file that values go to."""
        if self._spool is None:
            directory = os.path.dirname(self._target)
            remove_abandoned(directory)
            self._spool = Spool(directory, self._old)
        return self._spool

    def flush(self) -> None:
        """Make the archive hold what was set and deleted, as one atomic step. Costs a copy of what it held before."""
        if self.read_only or self._process != os.getpid():
            return
        with self._lock:
            if not self._dirty or self._closed:
                return
            if _identity(self._target) != self._seen:
                raise StoreError(
                    f"{self.path} was changed by another writer since it was opened here: it stays as it is, and what "
                    "was written here is lost with this store; let one store write to it at a time"
                )
            try:
                spool = self._spooled()
                members, old = spool.complete(self._members, self._target, self.durable)
                self._seen = _identity(self._target)
            except OSError as error:
                raise StoreError(f"{self.path} cannot be written: {error.strerror}", error.errno) from error
            self._spool, self._members, self._dirty = None, members, False
            self._old, self._size = old, old.end

    def close(self) -> None:
        self.flush()
        self._release()

    def _release(self) -> None:
        """Let go of the files; who reads just now reads to the end."""
        with self._lock:
            self._closed = True
            self._members, self._old, self._spool, self._listing = {}, None, None, None

    def _pin(self) -> None:
        """Leave what is in the file as it is, for a process that is forked off. The lock is held."""
        if self._spool is not None:
            self._spool.pin()

    def clean(self, *, dry_run: bool = False) -> list[str]:
        if self.read_only and not dry_run:
            raise self._refuse("removing files")
        directory = os.path.dirname(self._target)
        found = [
            path for name in sorted(os.listdir(directory)) if is_abandoned(path := f"{directory}/{name}")
        ]
        if not dry_run:
            remove_abandoned(directory)
        return found

    def __del__(self) -> None:
        # Nothing is lost to those who forget to close.
        self._end()

    def _end(self) -> None:
        """Close where nobody can be told of a failure but by the log."""
        if self._closed:
            return
        try:
            self.close()
        except Exception as error:
            logger.error("%s", error)
            self.discard()

    def discard(self) -> None:
        """Close without keeping what was written: the archive stays as it is."""
        if self._spool is not None and self._process == os.getpid():
            self._spool.discard()
        self._release()


_open_for_writing: weakref.WeakSet[ZipStore] = weakref.WeakSet()


@atexit.register
def _close_all() -> None:
    for store in list(_open_for_writing):
        store._end()


_fork_lock = threading.Lock()
_forking: list[ZipStore] = []


def _before_fork() -> None:
    _fork_lock.acquire()
    _forking[:] = _open_for_writing
    for store in _forking:
        store._lock.acquire()
        store._pin()


def _after_fork() -> None:
    while _forking:
        _forking.pop()._lock.release()
    _fork_lock.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork)


def _identity(path: str) -> tuple[int, ...] | None:
    """Return what tells a file from what others make of it."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino, found.st_mtime_ns, found.st_size
