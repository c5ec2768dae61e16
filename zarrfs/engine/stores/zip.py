"""A zip file as a store: keys are member names.

Reading takes the central directory once; stored (uncompressed) members are then read straight from the file at their
offset, in part too.

Writing never touches the archive that is there. Values go, as they are set, as stored members to a file beside it
(see ``zip_spool.py``), so that memory holds no more than the directory: some hundred bytes for each key. They are
read from there at once, by the same store. ``close`` (or ``flush``, or the end of the interpreter) copies what the
old archive holds to the beginning of that file as it is, packed or not, writes the directory and renames the file
over the archive. So at any moment there is the old archive or the new one, whole: a writer that is killed leaves
the old one and a hidden file, which the next writer there removes (``temporaries.py``), and who has the old archive
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
import struct
import threading
import weakref
import zipfile
import zlib
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import TypeVar

from zarrfs.engine.stores.base import (
    IMMUTABLE,
    Buffer,
    ByteRange,
    Listing,
    Store,
    Usage,
    ValueTooLargeError,
    check_key,
)
from zarrfs.engine.stores.temporaries import is_abandoned, remove_abandoned
from zarrfs.engine.stores.zip_records import LOCAL_HEADER, Member, OpenFile, origin_of
from zarrfs.engine.stores.zip_spool import OldArchive, Spool
from zarrfs.errors import KeyNameError, LocationError, StoreError
from zarrfs.logs import logger

__all__ = ["ZipStore"]

T = TypeVar("T")

ENCRYPTED = 0x1
MOST_EXPANSION = 1032
"""Deflate cannot make more than this of one byte; a member that says so lies."""

MOST_NAME_NBYTES = 0xFFFF


class ZipStore(Store):
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
        self.path = os.path.abspath(os.fspath(path))
        if mode not in ("r", "a", "w"):
            raise LocationError(f"{self.path}: mode must be 'r', 'a' or 'w', found {mode!r}")
        self.read_only = mode == "r"
        self.durable = durable
        self._lock = threading.RLock()
        self._process = os.getpid()
        self._members: dict[str, Member] = {}
        self._old: OldArchive | None = None
        self._spool: Spool | None = None
        self._listing: dict[str, Listing] | None = None
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
        try:
            file = OpenFile(os.open(self._target, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0)))
            with open(file.fd, "rb", closefd=False) as stream, zipfile.ZipFile(stream) as archive:
                members, end, comment = archive.infolist(), archive.start_dir, archive.comment
            self._size = os.fstat(file.fd).st_size
        except (
            zipfile.BadZipFile,
            EOFError,
            struct.error,
            ValueError,
            NotImplementedError,
            UnicodeDecodeError,
        ) as error:
            raise LocationError(
                f"{self.path} is no zip file that can be read: {error}; it may be truncated"
            ) from error
        except OSError as error:
            raise LocationError(f"{self.path} cannot be opened: {error.strerror or error}") from error
        others: list[tuple[str, Member]] = []
        for info in members:
            if info.is_dir():
                continue
            member = Member(
                file,
                info.header_offset,
                -1,
                info.file_size,
                info.compress_size,
                info.CRC,
                info.compress_type,
                info.flag_bits,
                origin=None if self.read_only else origin_of(info),
            )
            try:
                check_key(info.filename)
                if "\\" in info.filename:
                    raise KeyNameError(info.filename)
            except KeyNameError:
                logger.warning(
                    "%s: member %r is ignored: its name leaves the archive", self.path, info.filename
                )
                others.append((info.filename, member))
                continue
            # Of several members of one name the last one counts, as for every program that appends.
            self._members[info.filename] = member
        offsets = [] if self.read_only else sorted({info.header_offset for info in members})
        self._old = OldArchive(file, end, offsets, comment, others)

    @property
    def url(self) -> str:
        return Path(self.path).as_uri()

    # -- reading -----------------------------------------------------------------------------------------------

    def _read(self, key: str, read: Callable[[Member], T]) -> T | None:
        """Return what ``read`` makes of the key's member, None where there is none."""
        while True:
            member = self._members.get(key)
            if member is None:
                self._check_open()
                return None
            try:
                result = read(member)
            except StoreError:
                if self._members.get(key) is member or self._closed:
                    raise
                continue
            # Set or deleted meanwhile, its place may have gone to another value.
            if self._members.get(key) is member or self._closed:
                return result

    def _check_open(self) -> None:
        if self._closed:
            raise StoreError(f"{self.url} is closed")

    def get(self, key: str) -> Buffer | None:
        return self._read(key, lambda member: self._value(key, member))

    def get_within(self, key: str, most: int | None) -> Buffer | None:
        def read(member: Member) -> bytes:
            if most is not None and member.size > most:
                raise ValueTooLargeError(member.size, most)
            return self._value(key, member)

        return self._read(key, read)

    def get_into(self, key: str, out: memoryview) -> int | None:
        def read(member: Member) -> int:
            if member.size == len(out):
                out[:] = self._value(key, member)
            return member.size

        return self._read(key, read)

    def _value(self, key: str, member: Member) -> bytes:
        if member.method == zipfile.ZIP_STORED:
            return self._pread(key, member, 0, self._stored_size(key, member))
        return self._inflate(key, member)

    def get_ranges(self, key: str, ranges: Sequence[ByteRange]) -> list[Buffer] | None:
        return self._read(key, lambda member: self._pieces(key, member, ranges))

    def _pieces(self, key: str, member: Member, ranges: Sequence[ByteRange]) -> list[Buffer]:
        value = None
        if member.method != zipfile.ZIP_STORED:
            value = self._inflate(key, member)
        size = self._stored_size(key, member) if value is None else len(value)
        pieces: list[Buffer] = []
        for byte_range in ranges:
            start, stop = byte_range.resolve(size)
            if value is None:
                pieces.append(self._pread(key, member, start, max(0, stop - start)))
            else:
                pieces.append(memoryview(value)[start:stop])
        return pieces

    def _stored_size(self, key: str, member: Member) -> int:
        if member.flags & ENCRYPTED:
            raise StoreError(f"{self.path}: member {key!r} is encrypted; extract the archive first")
        if member.size != member.packed:
            raise StoreError(f"{self.path}: member {key!r} has contradictory sizes; the archive is broken")
        return member.size

    def _data_offset(self, key: str, member: Member) -> int:
        """Return where the member's bytes begin; its local header is looked at once."""
        if member.data < 0:
            header = os.pread(member.file.fd, LOCAL_HEADER.size, member.offset)
            if len(header) < LOCAL_HEADER.size or header[:4] != b"PK\x03\x04":
                raise StoreError(f"{self.path}: the header of member {key!r} is broken")
            fields = LOCAL_HEADER.unpack(header)
            offset = member.offset + LOCAL_HEADER.size + fields[9] + fields[10]
            if offset + member.packed > self._size:
                raise StoreError(f"{self.path}: member {key!r} reaches past the end; the file is truncated")
            member.data = offset
        return member.data

    def _pread(self, key: str, member: Member, start: int, size: int) -> bytes:
        try:
            begin = self._data_offset(key, member) + start
            data = os.pread(member.file.fd, size, begin)
            while len(data) < size and (
                more := os.pread(member.file.fd, size - len(data), begin + len(data))
            ):
                data += more
        except StoreError:
            raise
        except OSError as error:
            raise StoreError(f"{self.path} cannot be read: {error.strerror}", error.errno) from error
        if len(data) != size:
            raise StoreError(f"{self.path}: member {key!r} is cut short; the file is truncated")
        return data

    def _inflate(self, key: str, member: Member) -> bytes:
        if member.flags & ENCRYPTED:
            raise StoreError(f"{self.path}: member {key!r} is encrypted; extract the archive first")
        if member.method != zipfile.ZIP_DEFLATED:
            raise StoreError(
                f"{self.path}: member {key!r} has method {member.method}, neither stored nor deflated"
            )
        if member.size > member.packed * MOST_EXPANSION + 1024:
            raise StoreError(f"{self.path}: member {key!r} claims {member.size} bytes, more than it can hold")
        packed = self._pread(key, member, 0, member.packed)
        decoder = zlib.decompressobj(-15)
        try:
            data = decoder.decompress(packed, member.size + 1)
        except zlib.error as error:
            raise StoreError(f"{self.path}: member {key!r} is broken: {error}") from error
        if len(data) != member.size or zlib.crc32(data) != member.crc:
            raise StoreError(
                f"{self.path}: member {key!r} is broken: size or checksum do not agree with the directory"
            )
        return data

    def size(self, key: str) -> int | None:
        return self._read(key, lambda member: member.size)

    def stamp(self, key: str) -> Hashable | None:
        return self._read(key, lambda member: member.number or IMMUTABLE)

    # -- listing -----------------------------------------------------------------------------------------------

    def list_dir(self, prefix: str = "") -> Listing:
        self._check_open()
        with self._lock:
            if self._listing is None:
                self._listing = _index(self._members)
            return self._listing.get(prefix, Listing([], []))

    def list_prefix(self, prefix: str = "") -> Iterator[str]:
        self._check_open()
        start = prefix + "/" if prefix else ""
        return iter([key for key in list(self._members) if key.startswith(start)])

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


def _index(members: dict[str, Member]) -> dict[str, Listing]:
    """Return the listing of every directory, made in one pass over the names."""
    keys: dict[str, set[str]] = {}
    prefixes: dict[str, set[str]] = {}
    for name in members:
        parent, _, last = name.rpartition("/")
        keys.setdefault(parent, set()).add(last)
        while parent:
            above, _, last = parent.rpartition("/")
            below = prefixes.setdefault(above, set())
            if last in below:
                break
            below.add(last)
            parent = above
    return {at: Listing(sorted(keys.get(at, ())), sorted(prefixes.get(at, ()))) for at in {*keys, *prefixes}}
