"""An archive that is being written: values are appended to a temporary file, which replaces the archive atomically.

The temporary file has the layout of the new archive. The members of the old archive keep their offsets: the beginning
of the file is empty until ``complete`` copies them there. New members follow. No byte of a member is modified after it
was written, so readers need no lock. Replaced and deleted values are dropped by copying the others to a new file.
"""

from __future__ import annotations

import errno
import os
from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise

from zarrfs.engine.stores.base import Buffer
from zarrfs.engine.stores.temporary_files import create_temporary, lock_file, sync_directory
from zarrfs.engine.stores.zip.records import (
    LOCAL_HEADER,
    ArchiveFile,
    Member,
    ReadableFile,
    central_directory,
    local_header,
    name_flags,
)

__all__ = ["OldArchive", "Spool"]

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


@dataclass(frozen=True)
class OldArchive:
    """The existing archive.

    Attributes:
        end: the offset of the central directory.
        offsets: the offsets of all members, including those without a valid key, sorted and without duplicates.
        comment: the comment of the archive.
        others: the members without a valid key, which are retained.
    """

    file: ArchiveFile
    end: int
    offsets: list[int]
    comment: bytes
    others: list[tuple[str, Member]]


@dataclass(frozen=True)
class _Extent:
    """A range of a file that contains whole members."""

    file: ArchiveFile
    start: int
    stop: int


class Spool:
    """The temporary file that becomes the archive. Only reading the returned members is safe from several threads.

    ``start`` is the size of the old members, which precede the new ones, and ``end`` is where the next member is
    written. Members keep the file open that contains them, so they can be read after the file was deleted or compacted.
    """

    def __init__(self, directory: str, old: OldArchive | None) -> None:
        fd, self.path = create_temporary(directory, os.O_RDWR)
        self.file = ArchiveFile(fd)
        lock_file(fd)
        self._old = old
        self.start = self.end = 0 if old is None else old.end
        self._dropped_nbytes = 0

    def write(self, name: str, parts: Sequence[Buffer], size: int, crc: int, write_number: int) -> Member:
        """Append a value and return its member. After an OSError the next value is written in the same place."""
        header = local_header(name, size, crc)
        start = self.end
        _write(self.file.fd, [header, *parts], start)
        self.end = start + len(header) + size
        return Member(
            self.file,
            start,
            start + len(header),
            size,
            size,
            crc,
            flags=name_flags(name),
            write_number=write_number,
        )

    def drop(self, member: Member) -> None:
        """Count the bytes of a replaced or deleted member as unused. Ignores members of the old archive."""
        if member.file is self.file:
            self._dropped_nbytes += member.data_offset + member.compressed_size - member.header_offset

    @property
    def needs_compaction(self) -> bool:
        unused = self._dropped_nbytes
        return unused > MIN_COMPACTED_NBYTES and 2 * unused > self.end - self.start

    def discard(self) -> None:
        """Delete the temporary file."""
        with suppress(OSError):
            os.unlink(self.path)

    # -- copying -----------------------------------------------------------------------------------------------

    def compacted(self, members: Mapping[str, Member]) -> tuple[Spool, dict[str, Member]]:
        """Return a copy of this file without unused bytes, and those of the given members that it contains.

        Raises OSError; this file can be used further then.
        """
        own = {name: member for name, member in members.items() if member.file is self.file}
        copy = Spool(os.path.dirname(self.path), self._old)
        try:
            moves = copy._append(self._own_extents(own.values()))
        except BaseException:
            copy.discard()
            raise
        return copy, {name: moves.apply(member) for name, member in own.items()}

    def complete(
        self, members: Mapping[str, Member], target: str, durable: bool
    ) -> tuple[dict[str, Member], OldArchive]:
        """Replace the archive ``target`` by one with these old and new members.

        Returns the members of the new archive, and the archive. Raises OSError; the target is unchanged then, and the
        call can be repeated.
        """
        others, comment = ([], b"") if self._old is None else (self._old.others, self._old.comment)
        retained = [*members.values(), *(member for _, member in others)]
        extents = [*self._old_extents(retained), *self._own_extents(retained)]
        size = sum(extent.stop - extent.start for extent in extents)
        if (self.end - size) * MIN_SIZE_PER_WASTE <= size:
            if self._old is not None:
                _copy(self._old.file.fd, 0, self.file.fd, 0, self.start)
            rows = [(name, member.moved(self.file, 0)) for name, member in members.items()]
            others = [(name, member.moved(self.file, 0)) for name, member in others]
            return dict(rows), self._replace(target, durable, rows, others, comment)
        copy = Spool(os.path.dirname(self.path), None)
        try:
            moves = copy._append(extents)
            rows = [(name, moves.apply(member)) for name, member in members.items()]
            others = [(name, moves.apply(member)) for name, member in others]
            archive = copy._replace(target, durable, rows, others, comment)
        except BaseException:
            copy.discard()
            raise
        self.discard()
        return dict(rows), archive

    def _own_extents(self, members: Iterable[Member]) -> list[_Extent]:
        """Return the extents of the members that are in this file."""
        return [
            _Extent(self.file, member.header_offset, member.data_offset + member.compressed_size)
            for member in sorted(members, key=lambda member: member.header_offset)
            if member.file is self.file
        ]

    def _old_extents(self, members: Sequence[Member]) -> list[_Extent]:
        """Return the extents of the old archive that contain the members: all of it if its members overlap."""
        old = self._old
        if old is None:
            return []
        stops = dict(
            pairwise([*old.offsets, old.end])
        )  # Data can be followed by a descriptor or by unused bytes.
        own = [member for member in members if member.file is old.file]
        if any(_min_stop(member) > stops[member.header_offset] for member in own):
            return [_Extent(old.file, 0, old.end)]
        # The bytes before the first member can be a program, in a self-extracting archive.
        starts = sorted({member.header_offset for member in own})
        return [
            _Extent(old.file, 0, min([*old.offsets, old.end])),
            *(_Extent(old.file, start, stops[start]) for start in starts),
        ]

    def _append(self, extents: Sequence[_Extent]) -> _Moves:
        """Copy extents of other files to the end of this one. Returns where they are."""
        moves = _Moves(self.file)
        for extent in _merge_adjacent(extents):
            size = extent.stop - extent.start
            _copy(extent.file.fd, extent.start, self.file.fd, self.end, size)
            moves.add(extent, self.end)
            self.end += size
        return moves

    def _replace(
        self,
        target: str,
        durable: bool,
        rows: list[tuple[str, Member]],
        others: list[tuple[str, Member]],
        comment: bytes,
    ) -> OldArchive:
        """Write the central directory, and rename this file, which contains all members, over the target."""
        entries = sorted([*rows, *others], key=lambda row: row[1].header_offset)
        position = self.end
        for block in central_directory(entries, self.end, comment):
            _write(self.file.fd, [block], position)
            position += len(block)
        os.ftruncate(self.file.fd, position)
        with suppress(OSError):  # The target does not exist, or the file system has no permissions.
            os.fchmod(self.file.fd, os.stat(target).st_mode & 0o777)
        if durable:
            os.fsync(self.file.fd)
        os.replace(self.path, target)
        if durable:
            sync_directory(os.path.dirname(target))
        offsets = sorted({member.header_offset for _, member in entries})
        self.file.record_offsets = array("Q", [*offsets, self.end])
        return OldArchive(self.file, self.end, offsets, comment, others)


class _Moves:
    """The extents that were copied to a file, and their new offsets."""

    def __init__(self, target: ArchiveFile) -> None:
        self._target = target
        self._starts: dict[ReadableFile, list[int]] = {}
        self._shifts: dict[ReadableFile, list[int]] = {}

    def add(self, extent: _Extent, offset: int) -> None:
        """Add an extent that is at ``offset`` now. The extents of a file are added in order."""
        self._starts.setdefault(extent.file, []).append(extent.start)
        self._shifts.setdefault(extent.file, []).append(offset - extent.start)

    def apply(self, member: Member) -> Member:
        """Return the member at its new place."""
        index = bisect_right(self._starts[member.file], member.header_offset) - 1
        return member.moved(self._target, self._shifts[member.file][index])


def _min_stop(member: Member) -> int:
    """Return a lower bound of the end of a member, whose local header was perhaps not read."""
    if member.directory_fields is None:
        return member.data_offset + member.compressed_size
    name = member.directory_fields.name
    return member.header_offset + LOCAL_HEADER.size + len(name) + member.compressed_size


def _merge_adjacent(extents: Iterable[_Extent]) -> list[_Extent]:
    merged: list[_Extent] = []
    for extent in extents:
        if merged and merged[-1].file is extent.file and merged[-1].stop == extent.start:
            extent = _Extent(extent.file, merged.pop().start, extent.stop)
        merged.append(extent)
    return merged


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
