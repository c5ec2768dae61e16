"""An archive that is being made: values go into a file beside its place, which becomes the archive in one step.

The file is laid out as the archive will be. What the old archive holds keeps its place, so that the beginning of
the file stays free (a hole of the file system, which costs nothing) until ``complete`` copies it there as it is, by
the kernel, which on file systems that share blocks copies nothing. New members come after it, each once, as it is
set.
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
from zarrfs.engine.stores.temporary_files import create_temporary, hold, sync_directory
from zarrfs.engine.stores.zip.holes import Holes
from zarrfs.engine.stores.zip.records import (
    LOCAL_HEADER,
    PADDING,
    Member,
    OpenFile,
    Readable,
    central_directory,
    local_header,
    name_flags,
    padded_header,
)

__all__ = ["OldArchive", "Spool"]

MAX_PARTS = 1024
"""How many pieces of memory a system call takes."""

COPY_NBYTES = 1 << 30
BUFFER_NBYTES = 4 << 20

BLOCK_NBYTES = 1 << 20
"""Whole blocks can be shared between files: a multiple of the sizes that file systems have."""

WASTE_NBYTES = 64 << 10
WASTE_SHARE = 4
"""More waste than this, and than the archive's WASTE_SHARE-th part, is not left in the archive."""

CANNOT_COPY = {errno.EXDEV, errno.ENOSYS, errno.EINVAL, errno.EOPNOTSUPP, errno.EPERM, errno.ETXTBSY}


@dataclass(frozen=True)
class OldArchive:
    """The archive that is there already.

    Attributes:
        end: where its central directory begins.
        offsets: where its members begin, also those that are no values, sorted, each once.
        comment: the archive's.
        others: members that are no values of the store, which are kept.
    """

    file: OpenFile
    end: int
    offsets: list[int]
    comment: bytes
    others: list[tuple[str, Member]]


class Spool:
    """The file that is to become the archive. Not safe under threads, but for reading the members it returned.

    Space of values that were replaced or deleted is used again. Who read such a value meanwhile must notice that it
    is no longer the key's and read again.
    """

    def __init__(self, directory: str, old: OldArchive | None) -> None:
        fd, self.path = create_temporary(directory, os.O_RDWR)
        hold(fd)
        self.file = OpenFile(fd)
        self._old = old
        self.end = self._base = 0 if old is None else old.end
        self._holes = Holes()
        self._pinned = self._base
        self._dead: list[tuple[int, int]] = []
        self._shifted: dict[int, tuple[str, Member]] = {}

    def write(self, name: str, parts: Sequence[Buffer], size: int, crc: int, number: int) -> Member:
        """Write a value; return where it is. Raises OSError, and takes no space then."""
        header = local_header(name, size, crc)
        nbytes = len(header) + size
        start = self._holes.take(nbytes, PADDING.size)
        if start is None:
            start, self.end = self.end, self.end + nbytes
        try:
            _write(self.file.fd, [header, *parts], start)
        except BaseException:
            self._give(start, start + nbytes)
            raise
        return Member(
            self.file, start, start + len(header), size, size, crc, flags=name_flags(name), number=number
        )

    def drop(self, member: Member) -> None:
        """Free the space of a member that was replaced or deleted. One of the old archive has none here."""
        if member.file is self.file:
            self._shifted.pop(member.offset, None)
            self._give(member.offset, member.data + member.packed)

    def pin(self) -> None:
        """Leave all that is there as it is, since a process that was forked off goes on reading it."""
        self._dead += self._holes
        self._holes = Holes()
        self._pinned = self.end

    def _give(self, start: int, stop: int) -> None:
        if start < self._pinned:
            self._dead.append((start, stop))
            return
        start, stop = self._holes.give(start, stop)
        if stop == self.end:
            self._holes.remove(start)
            self.end = start

    def discard(self) -> None:
        """Remove the file."""
        with suppress(OSError):
            os.unlink(self.path)

    # -- the end -----------------------------------------------------------------------------------------------

    def complete(
        self, members: dict[str, Member], target: str, durable: bool
    ) -> tuple[dict[str, Member], OldArchive]:
        """Make the archive of these members, old ones and new ones, and put it in its place; return the members as
        they are there, and the archive. Raises OSError; then nothing has happened, and it may be tried again.
        """
        for name, member in self._shifted.values():  # in an attempt that failed
            _write(self.file.fd, [local_header(name, member.size, member.crc)], member.offset)
        self._shifted = {}
        wasted = self._wasted(members)
        waste = sum(stop - start for start, stop in wasted)
        if waste > WASTE_NBYTES and waste * WASTE_SHARE > self.end - waste:
            return self._complete_anew(members, target, durable)
        moved = self._fill(members, wasted)
        end = self.end
        if wasted and wasted[-1][1] == end and not self._dead:
            end = wasted[-1][0]
        rows = [
            (
                name,
                member
                if member.file is self.file and name not in moved
                else member.at(self.file, moved.get(name, member.offset) - member.offset),
            )
            for name, member in members.items()
        ]
        others = [(name, member.at(self.file, 0)) for name, member in self._others]
        return dict(rows), self._finish(self.file, self.path, rows, others, end, target, durable)

    @property
    def _others(self) -> list[tuple[str, Member]]:
        return [] if self._old is None else self._old.others

    def _wasted(self, members: dict[str, Member]) -> list[tuple[int, int]]:
        """Return the ranges that nothing is in, neighbours joined; none if that cannot be told."""
        if not self._is_tidy(members):
            return []
        free = [*self._holes, *self._dead]
        if self._old is not None:
            used = {member.offset for member in members.values() if member.file is self._old.file}
            used |= {member.offset for _, member in self._others}
            free += [run for run in self._extents() if run[0] not in used]
        return _joined(sorted(free))

    def _extents(self) -> Iterator[tuple[int, int]]:
        """Yield what each member of the old archive takes up: all that is before the next one."""
        if self._old is not None:
            yield from pairwise([*self._old.offsets, self._old.end])

    def _is_tidy(self, members: dict[str, Member]) -> bool:
        """Tell whether the members of the old archive lie one after the other, as far as can be seen."""
        if self._old is None:
            return True
        stops = dict(self._extents())
        return all(
            member.offset + LOCAL_HEADER.size + len(member.origin.name) + member.packed
            <= stops.get(member.offset, 0)
            for member in [*members.values(), *(member for _, member in self._others)]
            if member.origin is not None and member.file is self._old.file
        )

    def _fill(self, members: dict[str, Member], wasted: list[tuple[int, int]]) -> dict[str, int]:
        """Put what the old archive holds into its place, and close small gaps by making the header of the member
        after each of them longer, so that those who read archives from the front find no rubbish; return where the
        headers of those members are now.
        """
        if self._old is not None:
            _copy(self._old.file.fd, 0, self.file.fd, 0, self._base)
        # What is pinned stays as it is, rubbish or not.
        gaps = {stop: start for start, stop in wasted if stop <= self._base or not self._dead}
        after: dict[int, list[str]] = {}
        for name, member in members.items() if gaps else ():
            if member.offset in gaps:
                after.setdefault(member.offset, []).append(name)
        moved = {}
        for stop, (name, *same) in after.items():
            start, member = gaps[stop], members[name]
            ours = member.file is self.file
            header = local_header(name, member.size, member.crc) if ours else _old_header(member)
            header = header and padded_header(header, stop - start)
            if header is None or same:
                continue
            if ours:
                self._shifted[member.offset] = name, member
            _write(self.file.fd, [header], start)
            moved[name] = start
        return moved

    def _complete_anew(
        self, members: dict[str, Member], target: str, durable: bool
    ) -> tuple[dict[str, Member], OldArchive]:
        """Copy what is to stay to a further file, one after the other."""
        fd, path = create_temporary(os.path.dirname(self.path), os.O_RDWR)
        file = OpenFile(fd)
        try:
            hold(fd)
            shifts: dict[tuple[Readable, int], int] = {}
            position = 0
            for source, start, stop, offsets in self._runs(members):
                _copy(source.fd, start, file.fd, position, stop - start)
                shifts.update({(source, offset): position - start for offset in offsets})
                position += stop - start
            rows = [(name, _shifted(member, file, shifts)) for name, member in members.items()]
            others = [(name, _shifted(member, file, shifts)) for name, member in self._others]
            archive = self._finish(file, path, rows, others, position, target, durable)
        except BaseException:
            with suppress(OSError):
                os.unlink(path)
            raise
        self.discard()
        return dict(rows), archive

    def _runs(self, members: dict[str, Member]) -> Iterator[tuple[OpenFile, int, int, list[int]]]:
        """Yield what is to stay: file, start, stop, and where members begin in it. Neighbours are one."""
        pieces: list[tuple[OpenFile, int, int]] = []
        if self._old is not None and self._old.offsets:
            # A program may be before the first member, which unpacks the archive.
            pieces.append((self._old.file, 0, self._old.offsets[0]))
            used = {member.offset for member in members.values() if member.file is self._old.file}
            used |= {member.offset for _, member in self._others}
            pieces += [(self._old.file, start, stop) for start, stop in self._extents() if start in used]
        ours = sorted((m.offset, m.data + m.packed) for m in members.values() if m.file is self.file)
        pieces += [(self.file, start, stop) for start, stop in ours]
        run: tuple[OpenFile, int, int, list[int]] | None = None
        for file, start, stop in pieces:
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
        file: OpenFile,
        path: str,
        rows: list[tuple[str, Member]],
        others: list[tuple[str, Member]],
        end: int,
        target: str,
        durable: bool,
    ) -> OldArchive:
        """Write the central directory, put the file into its place, and return the archive that it is."""
        comment = b"" if self._old is None else self._old.comment
        entries = sorted([*rows, *others], key=lambda row: row[1].offset)
        position = end
        for piece in central_directory(entries, end, comment):
            _write(file.fd, [piece], position)
            position += len(piece)
        os.ftruncate(file.fd, position)
        with suppress(OSError):  # There is none yet, or the file system knows no permissions.
            os.fchmod(file.fd, os.stat(target).st_mode & 0o777)
        if durable:
            os.fsync(file.fd)
        os.replace(path, target)
        if durable:
            sync_directory(os.path.dirname(target))
        offsets = sorted({member.offset for _, member in entries})
        file.starts = array("Q", [*offsets, end])
        return OldArchive(file, end, offsets, comment, others)


def _shifted(member: Member, file: OpenFile, shifts: dict[tuple[Readable, int], int]) -> Member:
    shift = shifts[member.file, member.offset]
    found = member.at(file, shift)
    if found.data >= 0:
        found.data += shift
    return found


def _joined(ranges: list[tuple[int, int]]) -> list[tuple[int, int]]:
    joined: list[tuple[int, int]] = []
    for start, stop in ranges:
        if joined and joined[-1][1] == start:
            joined[-1] = joined[-1][0], stop
        else:
            joined.append((start, stop))
    return joined


def _old_header(member: Member) -> bytes | None:
    """Return the local header of a member, with name and extra fields; None where there is none."""
    header = member.file.read_at(member.offset, LOCAL_HEADER.size)
    if len(header) < LOCAL_HEADER.size:
        return None
    fields = LOCAL_HEADER.unpack(header)
    size = LOCAL_HEADER.size + fields[9] + fields[10]
    header = member.file.read_at(member.offset, size)
    return header if len(header) == size else None


def _write(fd: int, parts: Sequence[Buffer], offset: int) -> None:
    """Write it all at an offset. One call takes so many parts and moves at most 2 GiB."""
    pending = [view for part in parts if (view := memoryview(part).cast("B"))]
    first = 0
    while first < len(pending):
        done = os.pwritev(fd, pending[first : first + MAX_PARTS], offset)
        offset += done
        while first < len(pending) and done >= len(pending[first]):
            done -= len(pending[first])
            first += 1
        if done:
            pending[first] = pending[first][done:]


def _copy(source: int, start: int, target: int, offset: int, size: int) -> None:
    """Copy a range of one file to another, by the kernel where it can. Raises OSError, also if there is less."""
    whole = size // BLOCK_NBYTES * BLOCK_NBYTES
    for begin, stop in ((0, whole), (whole, size)):
        _copy_range(source, start + begin, target, offset + begin, stop - begin)


def _copy_range(source: int, start: int, target: int, offset: int, size: int) -> None:
    by_kernel: Callable[..., int] | None = getattr(os, "copy_file_range", None)
    done = 0
    while done < size:
        if by_kernel is not None:
            try:
                count = by_kernel(source, target, min(COPY_NBYTES, size - done), start + done, offset + done)
            except OSError as error:
                if error.errno not in CANNOT_COPY:
                    raise
                by_kernel = None
                continue
        else:
            data = os.pread(source, min(BUFFER_NBYTES, size - done), start + done)
            count = len(data)
            if data:
                _write(target, [data], offset + done)
        if not count:
            raise OSError(errno.EIO, "the old archive became shorter while it was copied")
        done += count
