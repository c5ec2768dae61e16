"""Reading what a zip file holds, wherever it is: its members as keys and values.

The central directory is taken once; stored (uncompressed) members are then read at their offset, in part too. Which
file that is, and writing, is for those who inherit from this.
"""

from __future__ import annotations

import errno
import zipfile
import zlib
from array import array
from bisect import bisect_right
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

from zarrfs.engine.stores.base import (
    IMMUTABLE,
    Buffer,
    ByteRange,
    Listing,
    Store,
    ValueTooLargeError,
    check_key,
)
from zarrfs.engine.stores.zip.records import (
    LOCAL_HEADER,
    MAX_32,
    MAX_64,
    Member,
    Readable,
    name_bytes,
    origin_of,
)
from zarrfs.errors import KeyNameError, LocationError, StoreError, ZarrError
from zarrfs.logs import logger

__all__ = ["ArchiveState", "ArchiveStore"]

T = TypeVar("T")

ENCRYPTED = 0x1
SIZES_FOLLOW = 0x8
"""The flag of members whose checksum and sizes stand after the data and not in the local header."""

MAX_EXPANSION = 1032
"""Deflate cannot make more than this of one byte; a member that says so lies."""


class ArchiveState:
    """What is known of an archive; several stores may share it.

    Attributes:
        members: by key. It may be changed, and be replaced, while others read.
        listing: of each directory, made when it is first asked for.
        size: how many bytes the file had when it was opened.
    """

    def __init__(self) -> None:
        self.members: dict[str, Member] = {}
        self.listing: dict[str, Listing] | None = None
        self.size = 0


class ArchiveStore(Store):
    """The members of a zip file as values, to be read. ``_where`` is the file, for messages."""

    _where: str

    def __init__(self) -> None:
        self._state = ArchiveState()

    @contextmanager
    def _opening(self) -> Iterator[None]:
        """Make a LocationError of what goes wrong while the directory of the archive is read."""
        try:
            yield
        except ZarrError:
            raise
        except OSError as error:
            raise LocationError(f"{self._where} cannot be opened: {error.strerror or error}") from error
        except Exception as error:  # zipfile raises errors of many kinds for archives that are broken
            raise LocationError(
                f"{self._where} is no zip file that can be read: {error or type(error).__name__}; it may be truncated"
            ) from error

    def _take(
        self, infos: Sequence[zipfile.ZipInfo], file: Readable, end: int, origins: bool
    ) -> list[tuple[str, Member]]:
        """Take the members that are values; return those that cannot be, but for directories. ``end`` is where the
        central directory begins. ``origins`` says whether what else it says of members is to be kept.
        """
        others: list[tuple[str, Member]] = []
        file.starts = array("Q", sorted({end, *(min(max(0, info.header_offset), MAX_64) for info in infos)}))
        for info in infos:
            if info.filename.endswith("/"):
                continue
            # Names that are not ASCII can be stored in several ways; then the bytes of the name are kept.
            same = info.filename.isascii() and info.orig_filename == info.filename
            member = Member(
                file,
                info.header_offset,
                -1,
                info.file_size,
                info.compress_size,
                info.CRC,
                info.compress_type,
                info.flag_bits,
                origin=origin_of(info) if origins or not same else None,
            )
            try:
                check_key(info.filename)
                if "\\" in info.filename:
                    raise KeyNameError(info.filename)
            except KeyNameError:
                what = "leaves the archive" if info.filename else "is empty"
                logger.warning("%s: member %r is ignored: its name %s", self._where, info.filename, what)
                others.append((info.filename, member))
                continue
            # Of several members of one name the last one counts, as for every program that appends.
            self._state.members[info.filename] = member
        return others

    # -- reading -----------------------------------------------------------------------------------------------

    def _read(self, key: str, read: Callable[[Member], T]) -> T | None:
        """Return what ``read`` makes of the key's member, None where there is none."""
        while True:
            member = self._state.members.get(key)
            if member is None:
                self._check_open()
                return None
            try:
                result = read(member)
            except StoreError:
                if self._state.members.get(key) is member or self._closed:
                    raise
                continue
            # Set or deleted meanwhile, its place may have gone to another value.
            if self._state.members.get(key) is member or self._closed:
                return result

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

    def get_ranges(self, key: str, ranges: Sequence[ByteRange]) -> list[Buffer] | None:
        return self._read(key, lambda member: self._pieces(key, member, ranges))

    def size(self, key: str) -> int | None:
        return self._read(key, lambda member: member.size)

    def stamp(self, key: str) -> Hashable | None:
        return self._read(key, lambda member: member.number or IMMUTABLE)

    # -- one member --------------------------------------------------------------------------------------------

    def _value(self, key: str, member: Member) -> bytes:
        self._check(key, member)
        return self._decoded(key, member, self._part(key, member, 0, member.packed))

    def _pieces(self, key: str, member: Member, ranges: Sequence[ByteRange]) -> list[Buffer]:
        if member.method != zipfile.ZIP_STORED:
            value = memoryview(self._value(key, member))
            spans = [byte_range.resolve(len(value)) for byte_range in ranges]
            return [value[start:stop] for start, stop in spans]
        self._check(key, member)
        spans = [byte_range.resolve(member.size) for byte_range in ranges]
        return [
            # The checksum can be checked only of a whole member.
            self._value(key, member)
            if (start, stop) == (0, member.size)
            else self._part(key, member, start, max(0, stop - start))
            for start, stop in spans
        ]

    def _check(self, key: str, member: Member) -> None:
        """Raise StoreError for what cannot be decoded or cannot be true, before anything of it is read."""
        if member.flags & ENCRYPTED:
            raise StoreError(f"{self._where}: member {key!r} is encrypted; extract the archive first")
        if member.method == zipfile.ZIP_STORED:
            if member.size != member.packed:
                raise StoreError(
                    f"{self._where}: member {key!r} has contradictory sizes; the archive is broken"
                )
            return
        if member.method != zipfile.ZIP_DEFLATED:
            raise StoreError(
                f"{self._where}: member {key!r} has method {member.method}, neither stored nor deflated"
            )
        if member.size > member.packed * MAX_EXPANSION + 1024:
            raise StoreError(
                f"{self._where}: member {key!r} claims {member.size} bytes, more than it can hold"
            )

    def _data_offset(self, key: str, member: Member) -> int:
        """Return where the member's bytes begin; its local header is looked at once."""
        if member.data < 0:
            if not 0 <= member.offset < self._state.size:
                raise StoreError(f"{self._where}: member {key!r} reaches past the end; the file is truncated")
            size = LOCAL_HEADER.size + len(name_bytes(key, member))
            self._note_offset(key, member, member.file.read_at(member.offset, size))
        return member.data

    def _note_offset(self, key: str, member: Member, header: bytes) -> None:
        """Check the local header of a member against the central directory, and note where its data begin."""
        if len(header) < LOCAL_HEADER.size or header[:4] != b"PK\x03\x04":
            raise StoreError(f"{self._where}: the header of member {key!r} is broken")
        _, _, flags, method, _, _, crc, packed, size, name_size, extra_size = LOCAL_HEADER.unpack_from(header)
        offset = member.offset + LOCAL_HEADER.size + name_size + extra_size
        if offset + member.packed > self._state.size:
            raise StoreError(f"{self._where}: member {key!r} reaches past the end; the file is truncated")
        name = name_bytes(key, member)
        wrong = []
        if header[LOCAL_HEADER.size : LOCAL_HEADER.size + name_size] != name:
            wrong.append("name")
        if method != member.method or (flags ^ member.flags) & ENCRYPTED:
            wrong.append("method")
        if not flags & SIZES_FOLLOW:
            # Zero: not known when the header was written. The largest number: it stands in an extra field.
            if crc not in (member.crc, 0):
                wrong.append("checksum")
            if packed not in (member.packed, 0, MAX_32) or size not in (member.size, 0, MAX_32):
                wrong.append("size")
        if wrong:
            raise StoreError(
                f"{self._where}: member {key!r} has another {' and '.join(wrong)} in its own header than in the "
                "directory of the archive; the archive is broken or was made to deceive"
            )
        starts = member.file.starts
        following = bisect_right(starts, member.offset)
        if following < len(starts) and offset + member.packed > starts[following]:
            raise StoreError(
                f"{self._where}: member {key!r} overlaps the next member or the directory of the archive; the archive "
                "is broken or was made to deceive"
            )
        member.data = offset

    def _part(self, key: str, member: Member, start: int, size: int) -> bytes:
        """Return bytes of the member as they are stored."""
        try:
            data = member.file.read_at(self._data_offset(key, member) + start, size)
        except StoreError:
            raise
        except OSError as error:
            raise StoreError(f"{self._where} cannot be read: {error.strerror}", error.errno) from error
        except (MemoryError, OverflowError) as error:
            raise StoreError(
                f"{self._where}: {size:,} bytes of member {key!r} do not fit into memory", errno.EFBIG
            ) from error
        if len(data) != size:
            raise StoreError(f"{self._where}: member {key!r} is cut short; the file is truncated")
        return data

    def _decoded(self, key: str, member: Member, packed: bytes) -> bytes:
        """Return the value of a member of which the bytes are these."""
        data = packed
        if member.method != zipfile.ZIP_STORED:
            decoder = zlib.decompressobj(-15)
            try:
                data = decoder.decompress(packed, member.size + 1)
            except zlib.error as error:
                raise StoreError(f"{self._where}: member {key!r} is broken: {error}") from error
            except (MemoryError, OverflowError) as error:
                raise StoreError(
                    f"{self._where}: {member.size:,} bytes of member {key!r} do not fit into memory",
                    errno.EFBIG,
                ) from error
        if len(data) != member.size or zlib.crc32(data) != member.crc:
            raise StoreError(
                f"{self._where}: member {key!r} is broken: size or checksum do not agree with the directory"
            )
        return data

    # -- listing -----------------------------------------------------------------------------------------------

    def list_dir(self, prefix: str = "") -> Listing:
        self._check_open()
        listing = self._state.listing
        if listing is None:
            listing = self._state.listing = _index(list(self._state.members))
        return listing.get(prefix, Listing([], []))

    def list_prefix(self, prefix: str = "") -> Iterator[str]:
        self._check_open()
        start = prefix + "/" if prefix else ""
        return iter([key for key in list(self._state.members) if key.startswith(start)])


def _index(names: list[str]) -> dict[str, Listing]:
    """Return the listing of every directory, made in one pass over the names."""
    keys: dict[str, set[str]] = {}
    prefixes: dict[str, set[str]] = {}
    for name in names:
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
