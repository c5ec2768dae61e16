"""An archive that is being written: values go to a temporary file, which replaces the archive atomically.

The temporary file has the layout of the new archive. The members of the old archive keep their offsets. The beginning
of the file is a hole until ``complete`` copies the old members there. The kernel copies them, and file systems that
share blocks between files copy nothing. New members follow the old ones. Each is written once, when it is set.
"""

from __future__ import annotations

import errno
import os
from array import array
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise

from zarrfs.engine.stores.base import Buffer
from zarrfs.engine.stores.temporary_files import create_temporary, lock_file, sync_directory
from zarrfs.engine.stores.zip.free_space import FreeSpace
from zarrfs.engine.stores.zip.records import (
    LOCAL_HEADER,
    PADDING_FIELD,
    ArchiveFile,
    Member,
    ReadableFile,
    central_directory,
    local_header,
    name_flags,
    padded_header,
)

__all__ = ["OldArchive", "Spool"]

MAX_BUFFERS_PER_CALL = 1024
"""The number of buffers that ``pwritev`` accepts in one call (IOV_MAX on Linux)."""

MAX_KERNEL_COPY_NBYTES = 1 << 30
COPY_BUFFER_NBYTES = 4 << 20

BLOCK_NBYTES = 1 << 20
"""A multiple of the block sizes of file systems. Only whole blocks can be shared between files."""

MAX_WASTE_NBYTES = 64 << 10
MIN_SIZE_PER_WASTE = 4
"""An archive is compacted if its waste exceeds MAX_WASTE_NBYTES, and its other bytes are fewer than this times it."""

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


class Spool:
    """The temporary file that becomes the archive. Only reading the returned members is safe from several threads.

    The space of replaced and deleted values is reused. A reader must check after reading that its member still belongs
    to the key, and otherwise read again.
    """

    def __init__(self, directory: str, old: OldArchive | None) -> None:
        fd, self.path = create_temporary(directory, os.O_RDWR)
        lock_file(fd)
        self.file = ArchiveFile(fd)
        self._old = old
        self.end = self._base = 0 if old is None else old.end
        self._free_space = FreeSpace()
        self._pinned = self._base
        self._unusable: list[tuple[int, int]] = []
        self._padded_members: dict[int, tuple[str, Member]] = {}

    def write(self, name: str, parts: Sequence[Buffer], size: int, crc: int, write_number: int) -> Member:
        """Write a value and return its member. Raises OSError; the space is freed then."""
        header = local_header(name, size, crc)
        nbytes = len(header) + size
        start = self._free_space.allocate(nbytes, PADDING_FIELD.size)
        if start is None:
            start, self.end = self.end, self.end + nbytes
        try:
            _write(self.file.fd, [header, *parts], start)
        except BaseException:
            self._free(start, start + nbytes)
            raise
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
        """Free the space of a replaced or deleted member. A member of the old archive has no space in this file."""
        if member.file is self.file:
            self._padded_members.pop(member.header_offset, None)
            self._free(member.header_offset, member.data_offset + member.compressed_size)

    def pin(self) -> None:
        """Never overwrite the current content of the file, because a forked process continues to read it."""
        self._unusable += self._free_space
        self._free_space = FreeSpace()
        self._pinned = self.end

    def _free(self, start: int, stop: int) -> None:
        if start < self._pinned:
            self._unusable.append((start, stop))
            return
        start, stop = self._free_space.free(start, stop)
        if stop == self.end:
            self._free_space.remove(start)
            self.end = start

    def discard(self) -> None:
        """Delete the temporary file."""
        with suppress(OSError):
            os.unlink(self.path)

    # -- completing --------------------------------------------------------------------------------------------

    def complete(
        self, members: dict[str, Member], target: str, durable: bool
    ) -> tuple[dict[str, Member], OldArchive]:
        """Replace the archive ``target`` by one with these old and new members.

        Returns the members of the new archive, and the archive. Raises OSError; the target is unchanged then, and the
        call can be repeated.
        """
        for name, member in self._padded_members.values():  # restore headers that a failed attempt has padded
            _write(self.file.fd, [local_header(name, member.size, member.crc)], member.header_offset)
        self._padded_members = {}
        wasted = self._find_waste(members)
        waste = sum(stop - start for start, stop in wasted)
        if waste > MAX_WASTE_NBYTES and waste * MIN_SIZE_PER_WASTE > self.end - waste:
            return self._complete_compacted(members, target, durable)
        header_offsets = self._fill_gaps(members, wasted)
        end = self.end
        if wasted and wasted[-1][1] == end and not self._unusable:
            end = wasted[-1][0]
        rows = [
            (
                name,
                member
                if member.file is self.file and name not in header_offsets
                else member.moved(
                    self.file, header_offsets.get(name, member.header_offset) - member.header_offset
                ),
            )
            for name, member in members.items()
        ]
        others = [(name, member.moved(self.file, 0)) for name, member in self._other_members]
        return dict(rows), self._finish(self.file, self.path, rows, others, end, target, durable)

    @property
    def _other_members(self) -> list[tuple[str, Member]]:
        return [] if self._old is None else self._old.others

    def _find_waste(self, members: dict[str, Member]) -> list[tuple[int, int]]:
        """Return the unused ranges, merged. Returns none if the layout of the old archive is unknown."""
        if not self._is_contiguous(members):
            return []
        free = [*self._free_space, *self._unusable]
        if self._old is not None:
            used = {member.header_offset for member in members.values() if member.file is self._old.file}
            used |= {member.header_offset for _, member in self._other_members}
            free += [run for run in self._old_extents() if run[0] not in used]
        return _merge_adjacent(sorted(free))

    def _old_extents(self) -> Iterator[tuple[int, int]]:
        """Yield ``(start, stop)`` of each member of the old archive. A member extends to the next one."""
        if self._old is not None:
            yield from pairwise([*self._old.offsets, self._old.end])

    def _is_contiguous(self, members: dict[str, Member]) -> bool:
        """Return whether no member of the old archive extends beyond the start of the next one."""
        if self._old is None:
            return True
        stops = dict(self._old_extents())
        return all(
            member.header_offset
            + LOCAL_HEADER.size
            + len(member.directory_fields.name)
            + member.compressed_size
            <= stops.get(member.header_offset, 0)
            for member in [*members.values(), *(member for _, member in self._other_members)]
            if member.directory_fields is not None and member.file is self._old.file
        )

    def _fill_gaps(self, members: dict[str, Member], wasted: list[tuple[int, int]]) -> dict[str, int]:
        """Copy the old members into this file and fill small gaps by padding.

        A gap is filled by extending the local header of the member after it, so that programs that read an archive
        sequentially find only members. Returns the new header offsets of these members by name.
        """
        if self._old is not None:
            _copy(self._old.file.fd, 0, self.file.fd, 0, self._base)
        # Pinned content must not be modified, so its gaps remain.
        gaps = {stop: start for start, stop in wasted if stop <= self._base or not self._unusable}
        names_after_gap: dict[int, list[str]] = {}
        for name, member in members.items() if gaps else ():
            if member.header_offset in gaps:
                names_after_gap.setdefault(member.header_offset, []).append(name)
        header_offsets = {}
        for stop, (name, *other_names) in names_after_gap.items():
            start, member = gaps[stop], members[name]
            is_new = member.file is self.file
            header = local_header(name, member.size, member.crc) if is_new else _read_local_header(member)
            header = header and padded_header(header, stop - start)
            if header is None or other_names:
                continue
            if is_new:
                self._padded_members[member.header_offset] = name, member
            _write(self.file.fd, [header], start)
            header_offsets[name] = start
        return header_offsets

    def _complete_compacted(
        self, members: dict[str, Member], target: str, durable: bool
    ) -> tuple[dict[str, Member], OldArchive]:
        """Copy the retained members without gaps to another temporary file, which replaces the archive."""
        fd, path = create_temporary(os.path.dirname(self.path), os.O_RDWR)
        file = ArchiveFile(fd)
        try:
            lock_file(fd)
            shifts: dict[tuple[ReadableFile, int], int] = {}
            position = 0
            for source, start, stop, offsets in self._retained_runs(members):
                _copy(source.fd, start, file.fd, position, stop - start)
                shifts.update({(source, offset): position - start for offset in offsets})
                position += stop - start
            rows = [(name, _move_member(member, file, shifts)) for name, member in members.items()]
            others = [(name, _move_member(member, file, shifts)) for name, member in self._other_members]
            archive = self._finish(file, path, rows, others, position, target, durable)
        except BaseException:
            with suppress(OSError):
                os.unlink(path)
            raise
        self.discard()
        return dict(rows), archive

    def _retained_runs(self, members: dict[str, Member]) -> Iterator[tuple[ArchiveFile, int, int, list[int]]]:
        """Yield ``(file, start, stop, member offsets)`` of each contiguous range that is retained."""
        ranges: list[tuple[ArchiveFile, int, int]] = []
        if self._old is not None and self._old.offsets:
            # The bytes before the first member can be a program, in a self-extracting archive.
            ranges.append((self._old.file, 0, self._old.offsets[0]))
            used = {member.header_offset for member in members.values() if member.file is self._old.file}
            used |= {member.header_offset for _, member in self._other_members}
            ranges += [(self._old.file, start, stop) for start, stop in self._old_extents() if start in used]
        new_ranges = sorted(
            (member.header_offset, member.data_offset + member.compressed_size)
            for member in members.values()
            if member.file is self.file
        )
        ranges += [(self.file, start, stop) for start, stop in new_ranges]
        run: tuple[ArchiveFile, int, int, list[int]] | None = None
        for file, start, stop in ranges:
            if run is not None and run[0] is file and run[2] == start:
                run[3].append(start)
                run = (file, run[1], stop, run[3])
                continue
            if run is not None:
                yield run
            run = (file, start, stop, [start])
        if run is not None:
            yield run

    def _finish(
        self,
        file: ArchiveFile,
        path: str,
        rows: list[tuple[str, Member]],
        others: list[tuple[str, Member]],
        end: int,
        target: str,
        durable: bool,
    ) -> OldArchive:
        """Write the central directory, rename the file over the target, and return the new archive."""
        comment = b"" if self._old is None else self._old.comment
        entries = sorted([*rows, *others], key=lambda row: row[1].header_offset)
        position = end
        for block in central_directory(entries, end, comment):
            _write(file.fd, [block], position)
            position += len(block)
        os.ftruncate(file.fd, position)
        with suppress(OSError):  # The target does not exist, or the file system has no permissions.
            os.fchmod(file.fd, os.stat(target).st_mode & 0o777)
        if durable:
            os.fsync(file.fd)
        os.replace(path, target)
        if durable:
            sync_directory(os.path.dirname(target))
        offsets = sorted({member.header_offset for _, member in entries})
        file.record_offsets = array("Q", [*offsets, end])
        return OldArchive(file, end, offsets, comment, others)


def _move_member(member: Member, file: ArchiveFile, shifts: dict[tuple[ReadableFile, int], int]) -> Member:
    shift = shifts[member.file, member.header_offset]
    moved = member.moved(file, shift)
    if moved.data_offset >= 0:
        moved.data_offset += shift
    return moved


def _merge_adjacent(ranges: list[tuple[int, int]]) -> list[tuple[int, int]]:
    merged: list[tuple[int, int]] = []
    for start, stop in ranges:
        if merged and merged[-1][1] == start:
            merged[-1] = merged[-1][0], stop
        else:
            merged.append((start, stop))
    return merged


def _read_local_header(member: Member) -> bytes | None:
    """Return the local header of a member, including name and extra fields; None if it is truncated."""
    header = member.file.read_at(member.header_offset, LOCAL_HEADER.size)
    if len(header) < LOCAL_HEADER.size:
        return None
    fields = LOCAL_HEADER.unpack(header)
    size = LOCAL_HEADER.size + fields[9] + fields[10]
    header = member.file.read_at(member.header_offset, size)
    return header if len(header) == size else None


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
