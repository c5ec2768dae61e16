"""The central directory of an archive in memory, and the members of an archive that is being changed.

A directory holds the bytes of its records, unchanged, and arrays with some numbers of each record: a million members
with names of 20 bytes take 100 MB. An object for each member, as in ``zipfile``, takes 700 MB. A record is parsed when
its member is requested.
"""

from __future__ import annotations

import os
import re
import struct
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Container, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol
from zipfile import BadZipFile

import numpy as np

from zarrfs.engine.stores.base import IMMUTABLE, Listing, check_key
from zarrfs.engine.stores.zip.records import (
    CENTRAL_HEADER,
    CENTRAL_SIGNATURE,
    LOCAL_HEADER,
    MAX_UINT32,
    MAX_UINT64,
    decode_key,
    moved_record,
    read_end_record,
    zip64_values,
)
from zarrfs.errors import KeyNameError

__all__ = ["ArchiveFile", "Directory", "Member", "Members", "ReadableFile"]

BLOCK_BITS = 24
BLOCK_NBYTES = 1 << BLOCK_BITS
BLOCK_MASK = BLOCK_NBYTES - 1
"""The directory is read in blocks of at most this size, so that a wrong size in an end record allocates no more."""

FIELDS = struct.Struct("<4s4x2H4x3L3H8xL")
"""The fields of a record: signature, flags, method, checksum, compressed size, size, the sizes of name, extra field and
comment, and the offset of the local header."""

VARIABLE_SIZES = struct.Struct("<3H")
"""The sizes of name, extra field and comment."""
VARIABLE_SIZES_OFFSET = 28

PLAIN_NAME = re.compile(
    rb"[^/.\\\0\x80-\xff][^/\\\0\x80-\xff]*(?:/[^/.\\\0\x80-\xff][^/\\\0\x80-\xff]*)*"
).fullmatch
"""Most names. The others are decoded and checked one by one."""

MAX_BUCKETS = 64

AFTER_SLASH = b"0"
"""The character after the slash, so that it follows all names below a prefix."""


class ReadableFile(Protocol):
    """The interface for reading the bytes of an archive."""

    def read_ranges(self, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        """Return the bytes of ``(offset, size)`` ranges, fewer at the end of the archive. Raises OSError."""


class ArchiveFile:
    """Owns a file descriptor, which is closed when the object is garbage collected."""

    def __init__(self, fd: int) -> None:
        self.fd = fd

    def __del__(self) -> None:
        os.close(self.fd)

    def read_ranges(self, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        """Return the bytes of ``(offset, size)`` ranges, fewer at the end of the file. Raises OSError."""
        return [self._read_at(offset, size) for offset, size in ranges]

    def _read_at(self, offset: int, size: int) -> bytes:
        content = os.pread(self.fd, size, offset)
        while len(content) < size and (more := os.pread(self.fd, size - len(content), offset + len(content))):
            content += more
        return content


@dataclass(slots=True, eq=False)
class Member:
    """A member of an archive: the location of its bytes, and what is known of them.

    Attributes:
        file: the file that contains the member.
        name: the name as it is encoded in the archive.
        offset: the offset of the local header.
        header_size: the size of the local header in bytes, or 0 if it has not been read yet.
        size, compressed_size: the number of bytes before and after compression.
        extra_size: the size of the extra field in the central directory in bytes.
        stamp: the stamp of the value.
        unchecked: the directory and the slot, if the local header has not been compared with the directory yet.
    """

    file: ReadableFile
    name: bytes
    offset: int
    header_size: int
    size: int
    compressed_size: int
    crc: int
    method: int
    flags: int
    extra_size: int
    stamp: Hashable
    unchecked: tuple[Directory, int] | None = None


class Directory:
    """The central directory of an archive. Immutable, except for the sizes of the local headers that were checked.

    A position is the place of a record: the number of its block and the offset in the block. A slot is the rank of a
    member in the order of the hashes of the keys. Only the last member of a name has a slot, because programs append
    new versions. Directories (names that end with a slash) and members without a valid key have none.

    Attributes:
        file: the file that contains the members.
        file_size: the size of the file in bytes when the directory was read.
        end: the offset of the directory, which is the end of the members.
        comment: the comment of the archive.
        is_zip64: whether the archive has a zip64 end record.
        nbytes: the size of the directory.
        stamp: the stamp of all values.
        ignored: the names of the members without a valid key, and why.
    """

    def __init__(
        self,
        file: ReadableFile,
        file_size: int,
        stamp: Hashable = IMMUTABLE,
        *,
        first_nbytes: int | None = None,
    ) -> None:
        """Read the directory, or only the records within its first ``first_nbytes`` bytes. Raises OSError and
        BadZipFile.
        """
        self.file = file
        self.file_size = file_size
        self.stamp = stamp
        self.end, size, self._shift, self.comment, self.is_zip64 = read_end_record(
            lambda start, size: file.read_ranges([(start, size)])[0], file_size
        )
        self.ignored: list[tuple[str, str]] = []
        self._ignored_positions: list[int] = []
        self._irregular_keys: dict[int, bytes] = {}
        self._blocks: list[bytes] = []
        self._hashes, self._positions = array("q"), array("Q")
        self._record_offsets = array("Q", [self.end])
        start = self.end
        self.nbytes = size
        if first_nbytes is not None and first_nbytes < size:
            (block,) = file.read_ranges([(start, first_nbytes)])
            self._index_block(block)
            start = self.end + size
        while start < self.end + size:
            (block,) = file.read_ranges([(start, min(BLOCK_NBYTES, self.end + size - start))])
            used = self._index_block(block)
            if not used:
                raise BadZipFile("its central directory is truncated")
            start += used
        self._sort()
        self._header_sizes = array("I", bytes(4 * len(self._hashes)))
        self._slots_by_key: array[int] | None = None

    def _index_block(self, block: bytes) -> int:
        """Add the records of a block, except for an incomplete one at its end. Return how many bytes they are."""
        first = len(self._blocks) << BLOCK_BITS
        self._blocks.append(block)
        block_size, shift, unpack = len(block), self._shift, FIELDS.unpack_from
        add_hash, add_position, add_offset = (
            numbers.append for numbers in (self._hashes, self._positions, self._record_offsets)
        )
        at = 0
        while at + CENTRAL_HEADER.size <= block_size:
            (
                signature,
                flags,
                _,
                _,
                compressed_size,
                size,
                name_size,
                extra_size,
                comment_size,
                offset,
            ) = unpack(block, at)
            if signature != CENTRAL_SIGNATURE:
                raise BadZipFile(f"its central directory has no record at the offset {at:,}")
            name_end = at + CENTRAL_HEADER.size + name_size
            stop = name_end + extra_size + comment_size
            if stop > block_size:
                break
            if MAX_UINT32 in (compressed_size, size, offset):
                offset = zip64_values(block[name_end : name_end + extra_size], size, compressed_size, offset)[
                    2
                ]
            add_offset(_clipped(offset + shift))
            name = block[at + CENTRAL_HEADER.size : name_end]
            if not extra_size and PLAIN_NAME(name):
                add_hash(hash(name))
                add_position(first + at)
            else:
                self._index_name(name, flags, block[name_end : name_end + extra_size], first + at)
            at = stop
        return at

    def _index_name(self, name: bytes, flags: int, extra: bytes, position: int) -> None:
        """Add a record whose name has to be decoded and checked."""
        key = decode_key(name, flags, extra)
        if key is None:
            self._ignore(repr(name), "is not UTF-8", position)
            return
        if key.endswith("/"):
            return
        try:
            check_key(key)
            if "\\" in key:
                raise KeyNameError(key)
        except KeyNameError:
            self._ignore(repr(key), "leaves the archive" if key else "is empty", position)
            return
        encoded = key.encode()
        if encoded != name:
            self._irregular_keys[position] = encoded
        self._hashes.append(hash(encoded))
        self._positions.append(position)

    def _ignore(self, name: str, reason: str, position: int) -> None:
        self.ignored.append((name, reason))
        self._ignored_positions.append(position)

    def _sort(self) -> None:
        """Sort the arrays. Of several members with a key, the last one is retained."""
        self._record_offsets = array("Q", np.unique(np.frombuffer(self._record_offsets, "u8")).tobytes())
        order = np.argsort(np.frombuffer(self._hashes, "i8"), kind="stable")
        positions = np.frombuffer(self._positions, "u8")[order]
        hashes = np.frombuffer(self._hashes, "i8")[order]
        replaced = [
            slot
            for slot in np.flatnonzero(hashes[1:] == hashes[:-1]).tolist()
            if self._key_at(int(positions[slot])) == self._key_at(int(positions[slot + 1]))
        ]
        self._positions = array("Q", np.delete(positions, replaced).tobytes())
        self._hashes = array("q", np.delete(hashes, replaced).tobytes())

    # -- members -----------------------------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self._positions)

    def find(self, key: bytes) -> Member | None:
        """Return the member of an encoded key, or None."""
        slot = self._slot(key)
        return None if slot is None else self._member(self._positions[slot], self._header_sizes[slot], slot)

    def members(self) -> Iterator[tuple[str, Member]]:
        """Yield the keys and members in the order of the central directory."""
        for position in sorted(self._positions):
            yield self._key_at(position).decode(), self._member(position)

    def _slot(self, key: bytes) -> int | None:
        hashes = self._hashes
        key_hash = hash(key)
        slot = bisect_left(hashes, key_hash)
        while slot < len(hashes) and hashes[slot] == key_hash:
            if self._key_at(self._positions[slot]) == key:
                return slot
            slot += 1
        return None

    def _member(self, position: int, header_size: int = 0, slot: int = -1) -> Member:
        block, at = self._blocks[position >> BLOCK_BITS], position & BLOCK_MASK
        _, flags, method, crc, compressed_size, size, name_size, extra_size, _, offset = FIELDS.unpack_from(
            block, at
        )
        name_end = at + CENTRAL_HEADER.size + name_size
        if MAX_UINT32 in (compressed_size, size, offset):
            size, compressed_size, offset = zip64_values(
                block[name_end : name_end + extra_size], size, compressed_size, offset
            )
        return Member(
            self.file,
            block[at + CENTRAL_HEADER.size : name_end],
            offset + self._shift,
            header_size,
            size,
            compressed_size,
            crc,
            method,
            flags,
            extra_size,
            self.stamp,
            None if header_size else (self, slot),
        )

    def _record(self, position: int) -> bytes:
        block, at = self._blocks[position >> BLOCK_BITS], position & BLOCK_MASK
        sizes = VARIABLE_SIZES.unpack_from(block, at + VARIABLE_SIZES_OFFSET)
        return block[at : at + CENTRAL_HEADER.size + sum(sizes)]

    def _key_at(self, position: int) -> bytes:
        if position in self._irregular_keys:
            return self._irregular_keys[position]
        block, at = self._blocks[position >> BLOCK_BITS], position & BLOCK_MASK
        name_size, _, _ = VARIABLE_SIZES.unpack_from(block, at + VARIABLE_SIZES_OFFSET)
        return block[at + CENTRAL_HEADER.size : at + CENTRAL_HEADER.size + name_size]

    def store_header_size(self, member: Member, slot: int, header_size: int) -> None:
        """Store the size of a local header that was compared with the directory."""
        self._header_sizes[slot] = member.header_size = header_size
        member.unchecked = None

    def next_offset(self, offset: int) -> int:
        """Return the offset of the next local header or of the directory, or the size of the file."""
        index = bisect_right(self._record_offsets, offset)
        return self._record_offsets[index] if index < len(self._record_offsets) else self.file_size

    # -- keys --------------------------------------------------------------------------------------------------

    @property
    def sorted_keys(self) -> _SortedKeys:
        """All keys, sorted. The order is computed when it is requested first."""
        if self._slots_by_key is None:
            self._slots_by_key = self._sort_slots()
        return _SortedKeys(self._key_at, self._positions, self._slots_by_key)

    def _sort_slots(self) -> array[int]:
        # All keys at once would take as much memory as the directory. They are divided into buckets by some of the
        # keys, and each bucket is sorted. Slots are in the order of hashes, so each step of them is a random sample.
        positions, key_at = self._positions, self._key_at

        def key_of(slot: int) -> bytes:
            return key_at(positions[slot])

        count = len(positions)
        limits = sorted(key_of(slot) for slot in range(0, count, count // MAX_BUCKETS + 1))
        buckets = [array("I") for _ in range(len(limits) + 1)]
        for slot in range(count):
            buckets[bisect_right(limits, key_of(slot))].append(slot)
        slots = array("I")
        for bucket in buckets:
            slots.extend(sorted(bucket, key=key_of))
        return slots

    # -- copying -----------------------------------------------------------------------------------------------

    def retained(self, hidden: Iterable[bytes]) -> tuple[list[tuple[int, int]], Iterator[tuple[int, bytes]]]:
        """Return what is copied to another archive: all members except for those with hidden keys.

        The first result are the ranges ``(start, stop)`` of the file that contain the members, sorted. A member ends at
        the next one, because a descriptor or unused bytes can follow its data. If members overlap, the only range is
        that of all members. The bytes before the first member are in a range, because they can be a program in a
        self-extracting archive.

        The second result are the offsets of the local headers and the records, in the order of the offsets. Members
        without a valid key are included.
        """
        hidden_positions = {self._positions[slot] for slot in map(self._slot, hidden) if slot is not None}
        positions = array("Q", self._ignored_positions)
        positions.extend(position for position in self._positions if position not in hidden_positions)
        offsets, min_stops = array("Q"), array("Q")
        for position in positions:
            member = self._member(position)
            offset = _clipped(member.offset)
            offsets.append(offset)
            min_stops.append(_clipped(offset + LOCAL_HEADER.size + len(member.name) + member.compressed_size))
        return self._extents(offsets, min_stops), self._records(positions, offsets)

    def _extents(self, offsets: array[int], min_stops: array[int]) -> list[tuple[int, int]]:
        bounds = np.frombuffer(self._record_offsets, "u8")
        indexes = np.searchsorted(bounds, np.frombuffer(offsets, "u8"))
        stops = np.append(bounds[1:], np.uint64(0))[indexes]
        if np.any(np.frombuffer(min_stops, "u8") > np.minimum(stops, np.uint64(self.end))):
            return [(0, self.end)]
        is_retained = np.zeros(len(bounds) + 1, bool)  # of the bytes before each bound
        is_retained[0] = True
        is_retained[indexes + 1] = True
        edges = np.flatnonzero(is_retained[1:] != is_retained[:-1])
        limits = [0, *bounds[edges].tolist()]
        return list(zip(limits[::2], limits[1::2], strict=True))

    def _records(self, positions: array[int], offsets: array[int]) -> Iterator[tuple[int, bytes]]:
        for index in np.argsort(np.frombuffer(offsets, "u8"), kind="stable"):
            record, offset = self._record(positions[index]), offsets[index]
            yield offset, moved_record(record, offset) if self._shift else record


def _clipped(offset: int) -> int:
    """Return an offset that the arrays can contain. A corrupt directory can have others."""
    return min(max(0, offset), MAX_UINT64)


class _SortedKeys:
    """The keys of a directory in sorted order. They are read from its records."""

    def __init__(self, key_at: Callable[[int], bytes], positions: array[int], slots: array[int]) -> None:
        self._key_at, self._positions, self._slots = key_at, positions, slots

    def __len__(self) -> int:
        return len(self._slots)

    def __getitem__(self, index: int) -> bytes:
        return self._key_at(self._positions[self._slots[index]])


class Members:
    """The members of an archive: those of its directory, and those that were written or deleted since it was read.

    Reading is safe while another thread writes. Writers exclude each other.

    Attributes:
        directory: the directory of the existing archive, or None.
        changes: the members that were written, by encoded key; None for a key that was deleted.
    """

    def __init__(self, directory: Directory | None = None) -> None:
        self.directory = directory
        self.changes: dict[bytes, Member | None] = {}
        self._snapshot: tuple[list[bytes], frozenset[bytes]] | None = None

    def get(self, key: str) -> Member | None:
        """Return the member of a key, or None."""
        try:
            encoded = key.encode()
        except UnicodeEncodeError:
            return None
        if encoded in self.changes:
            return self.changes[encoded]
        return None if self.directory is None else self.directory.find(encoded)

    def set(self, key: str, member: Member | None) -> None:
        """Set or, with None, delete a member."""
        encoded = key.encode()
        is_listed = self.changes.get(encoded) is not None
        if encoded not in self.changes or is_listed != (member is not None):
            self._snapshot = None
        self.changes[encoded] = member

    def written(self) -> list[Member]:
        """Return the members that were written and not deleted, in the order of their places in the file."""
        members = [member for member in self.changes.values() if member is not None]
        return sorted(members, key=lambda member: member.offset)

    def list_dir(self, prefix: str) -> Listing:
        """Return the names directly below a prefix."""
        start = _start(prefix)
        keys: set[bytes] = set()
        prefixes: set[bytes] = set()
        for names, hidden in self._names():
            index = bisect_left(names, start)
            while index < len(names) and (name := names[index]).startswith(start):
                child, slash, _ = name[len(start) :].partition(b"/")
                if name in hidden:
                    index += 1
                elif slash:
                    prefixes.add(child)
                    index = _skip(names, index, start + child + AFTER_SLASH)
                else:
                    keys.add(child)
                    index += 1
        return Listing(*(sorted(name.decode() for name in found) for found in (keys, prefixes)))

    def list_prefix(self, prefix: str) -> Iterator[str]:
        """Return all keys below a prefix. Later changes have no effect on them."""
        return _keys_below(self._names(), _start(prefix))

    def _names(self) -> list[tuple[_SortedKeys | list[bytes], Container[bytes]]]:
        """Return sorted keys, and keys that they contain but that do not count. The caller excludes writers."""
        if self._snapshot is None:
            written = sorted(key for key, member in self.changes.items() if member is not None)
            self._snapshot = written, frozenset(self.changes)
        written, hidden = self._snapshot
        if self.directory is None:
            return [(written, ())]
        return [(self.directory.sorted_keys, hidden), (written, ())]


def _keys_below(
    names: list[tuple[_SortedKeys | list[bytes], Container[bytes]]], start: bytes
) -> Iterator[str]:
    for keys, hidden in names:
        index = bisect_left(keys, start)
        while index < len(keys) and (key := keys[index]).startswith(start):
            if key not in hidden:
                yield key.decode()
            index += 1


def _start(prefix: str) -> bytes:
    """Return how the keys below a prefix begin."""
    return f"{prefix}/".encode(errors="surrogatepass") if prefix else b""


def _skip(names: _SortedKeys | list[bytes], index: int, bound: bytes) -> int:
    """Return the index of the first name that is not less than a bound, from ``index``. It is probably near."""
    step = 1
    while index + step < len(names) and names[index + step] < bound:
        index += step
        step *= 2
    return bisect_left(names, bound, index, min(index + step, len(names)))
