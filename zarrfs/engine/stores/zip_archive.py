"""Reading what a zip file holds, wherever it is: its members as keys and values.

The central directory is taken once; stored (uncompressed) members are then read at their offset, in part too. Which
file that is, and writing, is for those who inherit from this.
"""

from __future__ import annotations

import struct
import zipfile
import zlib
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
from zarrfs.engine.stores.zip_records import LOCAL_HEADER, Member, Readable, origin_of
from zarrfs.errors import KeyNameError, LocationError, StoreError
from zarrfs.logs import logger

__all__ = ["ArchiveStore"]

T = TypeVar("T")

ENCRYPTED = 0x1
MOST_EXPANSION = 1032
"""Deflate cannot make more than this of one byte; a member that says so lies."""


class ArchiveStore(Store):
    """The members of a zip file as values, to be read.

    ``_where`` is the file, for messages; ``_size`` how many bytes it had when it was opened. ``_members`` may be
    changed, and be replaced, while others read.
    """

    _where: str
    _size = 0
    _closed = False

    def __init__(self) -> None:
        self._members: dict[str, Member] = {}
        self._listing: dict[str, Listing] | None = None

    @contextmanager
    def _opening(self) -> Iterator[None]:
        """Make a LocationError of what goes wrong while the directory of the archive is read."""
        try:
            yield
        except StoreError:
            raise
        except (
            zipfile.BadZipFile,
            EOFError,
            struct.error,
            ValueError,
            NotImplementedError,
            UnicodeDecodeError,
        ) as error:
            raise LocationError(
                f"{self._where} is no zip file that can be read: {error}; it may be truncated"
            ) from error
        except OSError as error:
            raise LocationError(f"{self._where} cannot be opened: {error.strerror or error}") from error

    def _take(
        self, infos: Sequence[zipfile.ZipInfo], file: Readable, origins: bool
    ) -> list[tuple[str, Member]]:
        """Take the members that are values; return those that cannot be, but for directories. ``origins`` says
        whether what else the directory says of them is to be kept.
        """
        others: list[tuple[str, Member]] = []
        for info in infos:
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
                origin=origin_of(info) if origins else None,
            )
            try:
                check_key(info.filename)
                if "\\" in info.filename:
                    raise KeyNameError(info.filename)
            except KeyNameError:
                logger.warning(
                    "%s: member %r is ignored: its name leaves the archive", self._where, info.filename
                )
                others.append((info.filename, member))
                continue
            # Of several members of one name the last one counts, as for every program that appends.
            self._members[info.filename] = member
        return others

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
        return [self._part(key, member, start, max(0, stop - start)) for start, stop in spans]

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
        if member.size > member.packed * MOST_EXPANSION + 1024:
            raise StoreError(
                f"{self._where}: member {key!r} claims {member.size} bytes, more than it can hold"
            )

    def _data_offset(self, key: str, member: Member) -> int:
        """Return where the member's bytes begin; its local header is looked at once."""
        if member.data < 0:
            self._note_offset(key, member, member.file.read_at(member.offset, LOCAL_HEADER.size))
        return member.data

    def _note_offset(self, key: str, member: Member, header: bytes) -> None:
        if len(header) < LOCAL_HEADER.size or header[:4] != b"PK\x03\x04":
            raise StoreError(f"{self._where}: the header of member {key!r} is broken")
        fields = LOCAL_HEADER.unpack(header[: LOCAL_HEADER.size])
        offset = member.offset + LOCAL_HEADER.size + fields[9] + fields[10]
        if offset + member.packed > self._size:
            raise StoreError(f"{self._where}: member {key!r} reaches past the end; the file is truncated")
        member.data = offset

    def _part(self, key: str, member: Member, start: int, size: int) -> bytes:
        """Return bytes of the member as they are stored."""
        try:
            data = member.file.read_at(self._data_offset(key, member) + start, size)
        except StoreError:
            raise
        except OSError as error:
            raise StoreError(f"{self._where} cannot be read: {error.strerror}", error.errno) from error
        if len(data) != size:
            raise StoreError(f"{self._where}: member {key!r} is cut short; the file is truncated")
        return data

    def _decoded(self, key: str, member: Member, packed: bytes) -> bytes:
        """Return the value of a member of which the bytes are these."""
        if member.method == zipfile.ZIP_STORED:
            return packed
        decoder = zlib.decompressobj(-15)
        try:
            data = decoder.decompress(packed, member.size + 1)
        except zlib.error as error:
            raise StoreError(f"{self._where}: member {key!r} is broken: {error}") from error
        if len(data) != member.size or zlib.crc32(data) != member.crc:
            raise StoreError(
                f"{self._where}: member {key!r} is broken: size or checksum do not agree with the directory"
            )
        return data

    # -- listing -----------------------------------------------------------------------------------------------

    def list_dir(self, prefix: str = "") -> Listing:
        self._check_open()
        listing = self._listing
        if listing is None:
            listing = self._listing = _index(list(self._members))
        return listing.get(prefix, Listing([], []))

    def list_prefix(self, prefix: str = "") -> Iterator[str]:
        self._check_open()
        start = prefix + "/" if prefix else ""
        return iter([key for key in list(self._members) if key.startswith(start)])


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
