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
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from zarrfs.engine.stores.base import Buffer, Listing, Usage, check_key
from zarrfs.engine.stores.regular_files import check_regular_file, open_regular_file
from zarrfs.engine.stores.temporary_files import is_abandoned, remove_abandoned
from zarrfs.engine.stores.zip.archive import ArchiveState, ArchiveStore
from zarrfs.engine.stores.zip.records import Member, OpenFile
from zarrfs.engine.stores.zip.spool import OldArchive, Spool
from zarrfs.errors import KeyNameError, LocationError, StoreError
from zarrfs.logs import logger

__all__ = ["ZipStore", "is_being_written"]

T = TypeVar("T")

MAX_NAME_NBYTES = 0xFFFF


class WriterState(ArchiveState):
    """An archive that is being written; all stores of this process that write to one file share it.

    Attributes:
        target: the file behind links, which stay.
        process: the process that writes.
        lock: held while anything here changes.
        old: the archive that is there; None for a new one.
        spool: where values go; made with the first one.
        count: how many values were written.
        seen: the identity of the file when it was opened or completed.
        dirty: whether the archive does not yet hold what it is to hold.
        durable: whether one of the stores waits for the disk.
    """

    def __init__(self, target: str) -> None:
        super().__init__()
        self.target = target
        self.process = os.getpid()
        self.lock = threading.RLock()
        self.old: OldArchive | None = None
        self.spool: Spool | None = None
        self.count = 0
        self.seen: tuple[int, ...] | None = None
        self.dirty = False
        self.durable = False

    def __del__(self) -> None:
        # The last store that used it is gone, and has completed the archive unless that was not possible or wanted.
        if self.spool is not None and self.process == os.getpid():
            self.spool.discard()


class ZipStore(ArchiveStore):
    """Values in a zip file, which stays open until ``close``.

    ``mode`` is ``"r"``, ``"a"`` (made if absent) or ``"w"`` (made anew). What is written is in the file, readable by
    other programs, only after ``close`` or ``flush``, because a zip file's directory is its end. A store that is not
    closed is completed when it is garbage collected, at the end of the interpreter, and when this process opens the
    file to read; a failure then is only logged, so close it, or use ``with``.

    Any number of stores and threads of one process may write to an archive at a time: they share what they write, and
    each sees it at once. Only one process may: if another one replaced the file meanwhile, closing is a StoreError and
    leaves the file as it is. If closing fails, the old file is untouched, and it may be tried again. With ``durable``,
    closing returns only after all has reached the disk (fsync).

    A process that is forked off reads on what was there when it was made, and writes nothing.
    """

    def __init__(self, path: str | os.PathLike[str], mode: str = "r", *, durable: bool = False) -> None:
        self._closed = True
        self.path = self._where = os.path.abspath(os.fspath(path))
        if mode not in ("r", "a", "w"):
            raise LocationError(f"{self.path}: mode must be 'r', 'a' or 'w', found {mode!r}")
        self.read_only = mode == "r"
        self.durable = durable
        super().__init__()
        # The file behind links: they stay.
        target = os.path.realpath(self.path)
        self._writer: WriterState | None = None
        if self.read_only:
            writer = _writers.get(target)
            if writer is not None:
                # A reader gets what is there; the writer gets the error when it closes.
                with suppress(StoreError):
                    self._complete(writer)
            self._open_archive(target)
            self._closed = False
            return
        with _writers_lock:
            writer = _writers.get(target)
            if writer is None or writer.process != os.getpid() or writer.seen != _identity(target):
                # There is none, or another process replaced the file since.
                writer = self._begin(target, mode == "w")
                _writers[target] = writer
            elif mode == "w":
                _make_empty(writer)
            writer.durable |= durable
            self._state = self._writer = writer
            self._closed = False
            _open_for_writing.add(self)

    def __reduce__(self) -> tuple[object, ...]:
        if not self.read_only:
            raise StoreError(
                f"{self.url} is open for writing and cannot be pickled; close it, and open it to read"
            )
        return ZipStore, (self.path, "r")

    def _begin(self, target: str, anew: bool) -> WriterState:
        """Return the state of an archive that nobody in this process writes to yet."""
        self._state = writer = WriterState(target)
        writer.seen = _identity(target)
        if anew and writer.seen is not None:
            with self._opening():
                _refused(check_regular_file, target)
        writer.dirty = anew or writer.seen is None
        if not writer.dirty:
            writer.old = self._open_archive(target)
        return writer

    def _open_archive(self, target: str) -> OldArchive:
        """Take the directory of the archive that is there."""
        with self._opening():
            file = OpenFile(_refused(open_regular_file, target))
            with open(file.fd, "rb", closefd=False) as stream, zipfile.ZipFile(stream) as archive:
                infos, end, comment = archive.infolist(), archive.start_dir, archive.comment
            self._state.size = os.fstat(file.fd).st_size
        others = self._take(infos, file, end, origins=not self.read_only)
        offsets = [] if self.read_only else sorted({info.header_offset for info in infos})
        return OldArchive(file, end, offsets, comment, others)

    @property
    def url(self) -> str:
        return Path(self.path).as_uri()

    def list_dir(self, prefix: str = "") -> Listing:
        writer = self._writer
        if writer is None:
            return super().list_dir(prefix)
        with writer.lock:  # What is kept of a listing is of the names as they are now.
            return super().list_dir(prefix)

    def usage(self, prefix: str = "") -> Usage:
        members = [self._state.members.get(key) for key in self.list_prefix(prefix)]
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
        writer = self._writable(f"writing {key!r}")
        try:
            encoded = check_key(key).encode()
        except UnicodeEncodeError as error:
            raise KeyNameError(f"a key in a zip file must be Unicode text, found {key!r}") from error
        if len(encoded) > MAX_NAME_NBYTES:
            raise KeyNameError(f"a key in a zip file has at most {MAX_NAME_NBYTES:,} bytes: {key[:50]!r}...")
        size = crc = 0
        for part in parts:
            size += memoryview(part).nbytes
            crc = zlib.crc32(part, crc)
        with writer.lock:
            self._check_open()
            try:
                writer.count += 1
                member = _spooled(writer).write(key, parts, size, crc, writer.count)
            except OSError as error:
                raise StoreError(f"{self.path} cannot be written: {error.strerror}", error.errno) from error
            _replace(writer, key, member)

    def delete(self, key: str) -> None:
        writer = self._writable(f"deleting {key!r}")
        with writer.lock:
            self._check_open()
            if key in writer.members:
                _replace(writer, key, None)

    def _writable(self, what: str) -> WriterState:
        writer = self._writer
        if writer is None:
            self._check_open()
            raise self._refuse(what)
        if writer.process != os.getpid():
            raise StoreError(
                f"{self.url} was opened for writing by another process, of which this one was forked: {what} is refused"
            )
        return writer

    def flush(self) -> None:
        """Make the archive hold what was set and deleted, as one atomic step. Costs a copy of what it held before."""
        if self._writer is not None and not self._closed:
            self._complete(self._writer)

    def _complete(self, writer: WriterState) -> None:
        if writer.process != os.getpid():
            return
        with writer.lock:
            if not writer.dirty:
                return
            if _identity(writer.target) != writer.seen:
                raise StoreError(
                    f"{self.path} was changed by another writer since it was opened here: it stays as it is, and what "
                    "was written here is lost with this store; let one process write to it at a time"
                )
            try:
                members, old = _spooled(writer).complete(writer.members, writer.target, writer.durable)
            except OSError as error:
                raise StoreError(f"{self.path} cannot be written: {error.strerror}", error.errno) from error
            writer.seen = _identity(writer.target)
            writer.spool, writer.members, writer.dirty = None, members, False
            writer.old, writer.size = old, old.end

    def close(self) -> None:
        self.flush()
        self._release()

    def _release(self) -> None:
        """Let go of the files; who reads just now reads to the end."""
        super().close()
        self._writer, self._state = None, ArchiveState()

    def clean(self, *, dry_run: bool = False) -> list[str]:
        self._check_open()
        if self.read_only and not dry_run:
            raise self._refuse("removing files")
        directory = os.path.dirname(os.path.realpath(self.path))
        try:
            names = sorted(os.listdir(directory))
        except OSError as error:
            raise StoreError(f"{directory} cannot be listed: {error.strerror}", error.errno) from error
        found = [path for name in names if is_abandoned(path := f"{directory}/{name}")]
        if not dry_run:
            remove_abandoned(directory)
        return found

    def __del__(self) -> None:
        # Nothing is lost to those who forget to close.
        self._end()

    def _end(self) -> None:
        """Close where a failure can only be logged."""
        if self._closed:
            return
        try:
            self.close()
        except Exception as error:
            logger.error("%s", error)
            self._release()

    def discard(self) -> None:
        """Close without keeping what was written: the archive stays as it is. What is written by other stores of this
        process to the same archive is kept, and what was written by this one with it.
        """
        self._release()


_open_for_writing: weakref.WeakSet[ZipStore] = weakref.WeakSet()

_writers: weakref.WeakValueDictionary[str, WriterState] = weakref.WeakValueDictionary()
"""By the path of the archive, without links. A state is here as long as a store uses it."""

_writers_lock = threading.RLock()
"""Held while a state is looked up or made. Who holds the lock of a state never waits for this one."""


def is_being_written(path: str) -> bool:
    """Tell whether a store of this process has the archive open for writing, which need not be there yet."""
    writer = _writers.get(os.path.realpath(path))
    return writer is not None and writer.process == os.getpid()


def _make_empty(writer: WriterState) -> None:
    """Drop all that an archive holds."""
    with writer.lock:
        if writer.spool is not None:
            writer.spool.discard()
        writer.members, writer.listing, writer.spool, writer.old = {}, None, None, None
        writer.dirty = True


def _spooled(writer: WriterState) -> Spool:
    """Return the file that values go to."""
    if writer.spool is None:
        directory = os.path.dirname(writer.target)
        remove_abandoned(directory)
        writer.spool = Spool(directory, writer.old)
    return writer.spool


def _replace(writer: WriterState, key: str, member: Member | None) -> None:
    old = writer.members.get(key)
    if old is None or member is None:
        writer.listing = None
    if member is None:
        del writer.members[key]
    else:
        writer.members[key] = member
    # Only now, when readers find the new one, may others have its place.
    if old is not None and writer.spool is not None:
        writer.spool.drop(old)
    writer.dirty = True


@atexit.register
def _close_all() -> None:
    for store in list(_open_for_writing):
        store._end()


_forking: list[WriterState] = []


def _before_fork() -> None:
    _writers_lock.acquire()
    _forking[:] = list(_writers.values())
    for writer in _forking:
        writer.lock.acquire()
        # What is in the file stays as it is, for the process that is forked off.
        if writer.spool is not None:
            writer.spool.pin()


def _after_fork() -> None:
    while _forking:
        _forking.pop().lock.release()
    _writers_lock.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork)


def _refused(check: Callable[[str], T], path: str) -> T:
    """Return what ``check`` does. Raises LocationError for a file that is no regular file."""
    try:
        return check(path)
    except StoreError as error:
        raise LocationError(str(error)) from error


def _identity(path: str) -> tuple[int, ...] | None:
    """Return what tells a file from what others make of it."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino, found.st_mtime_ns, found.st_size
