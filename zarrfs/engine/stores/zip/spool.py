"""An archive that is being written: values are appended to a temporary file, which replaces the archive atomically.

The temporary file has the layout of the new archive. The members of the old archive keep their offsets: the beginning
of the file is empty until ``complete`` copies them there. New members follow. No byte of a member is modified after it
was written, so readers need no lock. Replaced and deleted values are dropped by copying the others to a new file.
"""

from __future__ import annotations

import errno
import itertools
import os
import zlib
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import islice
from zipfile import ZIP_STORED

from zarrfs.engine.stores.base import Buffer
from zarrfs.engine.stores.temporary_files import create_temporary, lock_file, sync_directory
from zarrfs.engine.stores.zip.directory import ArchiveFile, Directory, Member, Members
from zarrfs.engine.stores.zip.records import (
    UTF8,
    central_record,
    end_records,
    local_header,
    moved_record,
)
from zarrfs.engine.stores.zip.single_file import Layout

__all__ = ["Spool"]

MAX_BUFFERS_PER_CALL = 1024
"""The number of buffers that ``pwritev`` accepts in one call (IOV_MAX on Linux)."""

MAX_KERNEL_COPY_NBYTES = 1 << 30
COPY_BUFFER_NBYTES = 4 << 20

BLOCK_NBYTES = 1 << 20
"""A multiple of the block sizes of file systems. Only whole blocks can be shared between files."""

MIN_COMPACTED_NBYTES = 64 << 20
"""The temporary file is compacted while it is written if more than this, and more than half of it, is unused."""

MIN_SIZE_PER_WASTE = 4
"""A completed archive is compacted if its unused bytes, multiplied by this, exceed the used ones."""

COPY_UNSUPPORTED_ERRNOS = {
    errno.EXDEV,
    errno.ENOSYS,
    errno.EINVAL,
    errno.EOPNOTSUPP,
    errno.EPERM,
    errno.ETXTBSY,
}


RECORDS_PER_WRITE = 4096
"""The number of records of the central directory that are written together."""


class Spool:
    """The temporary file that becomes the archive. Only reading the returned members is safe from several threads.

    ``start`` is the size of the old members, which precede the new ones, and ``end`` is where the next member is
    written. Members keep the file open that contains them, so they can be read after the file was deleted or compacted.
    """

    def __init__(self, directory: str, old_file: ArchiveFile | None, start: int) -> None:
        fd, self.path = create_temporary(directory, os.O_RDWR)
        self.file = ArchiveFile(fd)
        lock_file(fd)
        self._old_file = old_file
        self.start = self.end = start
        self._dropped_nbytes = 0

    def write(self, key: str, parts: Sequence[Buffer], size: int, crc: int, write_number: int) -> Member:
        """Append a value and return its member. After an OSError the next value is written in the same place."""
        header = local_header(key, size, crc)
        start = self.end
        _write(self.file.fd, [header, *parts], start)
        self.end = start + len(header) + size
        flags = 0 if key.isascii() else UTF8
        return Member(
            self.file, key.encode(), start, len(header), size, size, crc, ZIP_STORED, flags, 0, write_number
        )

    def drop(self, member: Member) -> None:
        """Count the bytes of a replaced or deleted member as unused. Ignores members of the old archive."""
        if member.file is self.file:
            self._dropped_nbytes += member.header_size + member.compressed_size

    @property
    def needs_compaction(self) -> bool:
        unused = self._dropped_nbytes
        return unused > MIN_COMPACTED_NBYTES and 2 * unused > self.end - self.start

    def discard(self) -> None:
        """Delete the temporary file."""
        with suppress(OSError):
            os.unlink(self.path)

    # -- copying -----------------------------------------------------------------------------------------------

    def compacted(self, members: Members) -> tuple[Spool, list[Member]]:
        """Return a copy of this file without unused bytes, and the written members in it.

        Raises OSError; this file can be used further then.
        """
        copy = Spool(os.path.dirname(self.path), self._old_file, self.start)
        written = members.written()
        try:
            moves = copy._append(self.file, _extents(written))
        except BaseException:
            copy.discard()
            raise
        return copy, [
            replace(member, file=copy.file, offset=moves.new_offset(member.offset)) for member in written
        ]

    def complete(
        self, members: Members, target: str, durable: bool, stamp: int, layout: Layout | None = None
    ) -> tuple[ArchiveFile, Directory]:
        """Replace the archive ``target`` by one with these old and new members. All values have ``stamp`` then.

        With a ``layout``, its documents precede the other members, which are copied to a new file after them.

        Returns the new archive and its directory. Raises OSError and BadZipFile; the target is unchanged then, and the
        call can be repeated.
        """
        documents = (
            frozenset(key.encode() for key, _ in layout.documents) if layout is not None else frozenset()
        )
        old_extents, old_records = (
            ([], iter(()))
            if members.directory is None
            else members.directory.retained({*members.changes, *documents})
        )
        written = [member for member in members.written() if member.name not in documents]
        new_extents = _extents(written)
        size = sum(stop - start for start, stop in [*old_extents, *new_extents])
        if layout is None and (self.end - size) * MIN_SIZE_PER_WASTE <= size:
            if self._old_file is not None:
                _copy(self._old_file.fd, 0, self.file.fd, 0, self.start)
            return self.file, self._replace(
                target, _records(old_records, _Moves(), written, _Moves()), members, durable, stamp
            )
        copy = Spool(os.path.dirname(self.path), None, 0)
        try:
            first = copy._write_documents(layout) if layout is not None else []
            old_moves = _Moves() if self._old_file is None else copy._append(self._old_file, old_extents)
            moves = copy._append(self.file, new_extents)
            records = itertools.chain(first, _records(old_records, old_moves, written, moves))
            directory = copy._replace(target, records, members, durable, stamp, layout)
        except BaseException:
            copy.discard()
            raise
        self.discard()
        return copy.file, directory

    def _write_documents(self, layout: Layout) -> list[bytes]:
        """Append the documents of a layout. Return their records of the central directory."""
        records = []
        for key, value in layout.documents:
            member = self.write(key, [value], memoryview(value).nbytes, zlib.crc32(value), 0)
            records.append(central_record(member.name, member.flags, member.crc, member.size, member.offset))
        return records

    def _append(self, source: ArchiveFile, extents: Sequence[tuple[int, int]]) -> _Moves:
        """Copy ranges of another file to the end of this one. Returns where they are."""
        moves = _Moves()
        for start, stop in extents:
            _copy(source.fd, start, self.file.fd, self.end, stop - start)
            moves.add(start, self.end)
            self.end += stop - start
        return moves

    def _replace(
        self,
        target: str,
        records: Iterator[bytes],
        members: Members,
        durable: bool,
        stamp: int,
        layout: Layout | None = None,
    ) -> Directory:
        """Write the central directory, and rename this file, which contains all members, over the target."""
        comment = b"" if members.directory is None else members.directory.comment
        if layout is not None:
            comment = layout.comment
        position, count = self.end, 0
        while block := list(islice(records, RECORDS_PER_WRITE)):
            _write(self.file.fd, block, position)
            position += sum(map(len, block))
            count += len(block)
        end = end_records(self.end, position - self.end, count, comment, zip64_always=layout is not None)
        _write(self.file.fd, [end], position)
        os.ftruncate(self.file.fd, position + len(end))
        # The directory is read from the file, so that the target is replaced only by an archive that can be read.
        directory = Directory(self.file, position + len(end), stamp)
        with suppress(OSError):  # The target does not exist, or the file system has no permissions.
            os.fchmod(self.file.fd, os.stat(target).st_mode & 0o777)
        if durable:
            os.fsync(self.file.fd)
        os.replace(self.path, target)
        if durable:
            sync_directory(os.path.dirname(target))
        return directory


class _Moves:
    """The ranges of a file that were copied to another file, and where they are."""

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._shifts: list[int] = []

    def add(self, start: int, new_start: int) -> None:
        """Add a range. Ranges are added in order."""
        self._starts.append(start)
        self._shifts.append(new_start - start)

    def new_offset(self, offset: int) -> int:
        """Return the new place of an offset. Without ranges it is unchanged."""
        return offset + self._shifts[bisect_right(self._starts, offset) - 1] if self._starts else offset


def _records(
    old_records: Iterator[tuple[int, bytes]], old_moves: _Moves, written: Iterable[Member], moves: _Moves
) -> Iterator[bytes]:
    """Yield the records of the new central directory. Those of old members are changed only if the member moves."""
    for offset, record in old_records:
        new_offset = old_moves.new_offset(offset)
        yield record if new_offset == offset else moved_record(record, new_offset)
    for member in written:
        yield central_record(
            member.name, member.flags, member.crc, member.size, moves.new_offset(member.offset)
        )


def _extents(members: Iterable[Member]) -> list[tuple[int, int]]:
    """Return the ranges of the file that contain written members, which are in the order of their offsets."""
    extents: list[tuple[int, int]] = []
    for member in members:
        start = member.offset
        if extents and extents[-1][1] == start:
            start = extents.pop()[0]
        extents.append((start, member.offset + member.header_size + member.compressed_size))
    return extents


def _write(fd: int, parts: Sequence[Buffer], offset: int) -> None:
    """Write all parts at an offset. One call accepts MAX_BUFFERS_PER_CALL buffers and writes at most 2 GiB."""
    pending = [view for part in parts if (view := memoryview(part).cast("B"))]
    first = 0
    while first < len(pending):
        written = os.pwritev(fd, pending[first : first + MAX_BUFFERS_PER_CALL], offset)
        offset += written
        while first < len(pending) and written >= len(pending[first]):
            written -= len(pending[first])
            first += 1
        if written:
            pending[first] = pending[first][written:]


def _copy(source: int, start: int, target: int, offset: int, size: int) -> None:
    """Copy a range of one file to another, by ``copy_file_range`` if possible.

    Raises OSError, also if the source is shorter than the range.
    """
    aligned_size = size // BLOCK_NBYTES * BLOCK_NBYTES
    for first, stop in ((0, aligned_size), (aligned_size, size)):
        _copy_range(source, start + first, target, offset + first, stop - first)


def _copy_range(source: int, start: int, target: int, offset: int, size: int) -> None:
    kernel_copy: Callable[..., int] | None = getattr(os, "copy_file_range", None)
    copied = 0
    while copied < size:
        rest = size - copied
        if kernel_copy is not None:
            try:
                count = kernel_copy(
                    source, target, min(MAX_KERNEL_COPY_NBYTES, rest), start + copied, offset + copied
                )
            except OSError as error:
                if error.errno not in COPY_UNSUPPORTED_ERRNOS:
                    raise
                kernel_copy = None
                continue
        else:
            content = os.pread(source, min(COPY_BUFFER_NBYTES, rest), start + copied)
            count = len(content)
            if content:
                _write(target, [content], offset + copied)
        if not count:
            raise OSError(errno.EIO, "the old archive became shorter while it was copied")
        copied += count
