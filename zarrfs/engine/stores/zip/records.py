"""Encoding of the records of a zip file: local headers, central directory and end records.

This follows PKWARE's APPNOTE.TXT 6.3, sections 4.3 and 4.5.3 (zip64, for numbers that do not fit into 16 or 32 bits).
The module ``zipfile`` parses the records.
"""

from __future__ import annotations

import os
import stat
import struct
from array import array
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol
from zipfile import ZipInfo

__all__ = [
    "LOCAL_HEADER",
    "MAX_UINT32",
    "MAX_UINT64",
    "ArchiveFile",
    "DirectoryFields",
    "Member",
    "ReadableFile",
    "central_directory",
    "local_header",
    "name_bytes",
    "name_flags",
    "read_directory_fields",
]

LOCAL_HEADER = struct.Struct("<4s5H3L2H")
CENTRAL_HEADER = struct.Struct("<4s6H3L5H2L")
END = struct.Struct("<4s4H2LH")
ZIP64_END = struct.Struct("<4sQ2H2L4Q")
ZIP64_LOCATOR = struct.Struct("<4sLQL")

UTF8 = 0x800
"""The flag for names in UTF-8. Names without it are in code page 437."""

DOS_EPOCH_DATE = 1 << 5 | 1
"""1 January 1980. A constant date, so that equal data give equal archives."""

UNIX_SYSTEM = 3
ZIP64_VERSION = 45
DEFAULT_VERSION = 20
MAX_UINT64 = (1 << 64) - 1
MAX_UINT32 = 0xFFFFFFFF
MAX_UINT16 = 0xFFFF
ZIP64_FIELD_ID = 1

ENTRIES_PER_BLOCK = 4096


class ReadableFile(Protocol):
    """The interface for reading the bytes of an archive.

    Attributes:
        record_offsets: the offsets of all local headers and of the central directory, sorted.
    """

    record_offsets: array[int]

    def read_at(self, offset: int, size: int) -> bytes:
        """Return ``size`` bytes, fewer at the end of the archive. Raises OSError."""


class ArchiveFile:
    """Owns a file descriptor, which is closed when the object is garbage collected."""

    def __init__(self, fd: int) -> None:
        self.fd = fd
        self.record_offsets: array[int] = array("Q")

    def __del__(self) -> None:
        os.close(self.fd)

    def read_at(self, offset: int, size: int) -> bytes:
        """Return ``size`` bytes, fewer at the end of the file. Raises OSError."""
        content = os.pread(self.fd, size, offset)
        while len(content) < size and (more := os.pread(self.fd, size - len(content), offset + len(content))):
            content += more
        return content


@dataclass(frozen=True, slots=True)
class DirectoryFields:
    """Fields of a member in the central directory that are copied unchanged when another program wrote the member."""

    name: bytes
    made_by: int
    needed: int
    time: int
    date: int
    internal: int
    external: int
    extra: bytes
    comment: bytes


DEFAULT_FIELDS = DirectoryFields(
    b"",
    UNIX_SYSTEM << 8 | ZIP64_VERSION,
    DEFAULT_VERSION,
    0,
    DOS_EPOCH_DATE,
    0,
    (stat.S_IFREG | 0o644) << 16,
    b"",
    b"",
)
"""The fields of the members that this package writes, except for the name."""


@dataclass(slots=True, eq=False)
class Member:
    """A member of an archive: the location of its bytes and its fields in the central directory.

    Attributes:
        file: the file that contains the member.
        header_offset: the offset of the local header.
        data_offset: the offset of the data, or -1 if the local header has not been read yet.
        size, compressed_size: the number of bytes before and after compression.
        write_number: the number of the write that created the member, or 0 for a member of the existing archive.
        directory_fields: the fields of a member that another program wrote, otherwise None.
    """

    file: ReadableFile
    header_offset: int
    data_offset: int
    size: int
    compressed_size: int
    crc: int
    method: int = 0
    flags: int = 0
    write_number: int = 0
    directory_fields: DirectoryFields | None = None

    def moved(self, file: ReadableFile, shift: int) -> Member:
        """Return the member in another file, ``shift`` bytes later."""
        # ``dataclasses.replace`` is ten times slower, and an archive can have millions of members.
        return Member(
            file,
            self.header_offset + shift,
            self.data_offset if self.data_offset < 0 else self.data_offset + shift,
            self.size,
            self.compressed_size,
            self.crc,
            self.method,
            self.flags,
            self.write_number,
            self.directory_fields,
        )


def read_directory_fields(info: ZipInfo) -> DirectoryFields:
    """Return the fields of a member that are copied unchanged."""
    year, month, day, hour, minute, second = info.date_time
    return DirectoryFields(
        info.orig_filename.encode("utf-8" if info.flag_bits & UTF8 else "cp437"),
        info.create_system << 8 | info.create_version,
        info.extract_version,
        hour << 11 | minute << 5 | second // 2,
        (year - 1980) << 9 | month << 5 | day,
        info.internal_attr,
        info.external_attr,
        _without_zip64(info.extra),
        info.comment,
    )


def _without_zip64(extra: bytes) -> bytes:
    """Return the extra fields except for zip64, which is written again where it is needed."""
    others = b""
    while len(extra) >= 4:
        field_id, size = struct.unpack_from("<2H", extra)
        if field_id != ZIP64_FIELD_ID:
            others += extra[: 4 + size]
        extra = extra[4 + size :]
    return others


def name_bytes(key: str, member: Member) -> bytes:
    """Return the encoded name of a member in the archive."""
    return key.encode() if member.directory_fields is None else member.directory_fields.name


def name_flags(name: str) -> int:
    """Return the flags for a new member with this name."""
    return 0 if name.isascii() else UTF8


def local_header(name: str, size: int, crc: int) -> bytes:
    """Return the local header of a stored member. Raises ValueError if the name is too long."""
    encoded = name.encode()
    if len(encoded) > MAX_UINT16:
        raise ValueError(f"a name in a zip file has at most {MAX_UINT16} bytes, found {len(encoded)}")
    needs_zip64 = size >= MAX_UINT32
    extra = struct.pack("<2H2Q", ZIP64_FIELD_ID, 16, size, size) if needs_zip64 else b""
    size_field = MAX_UINT32 if needs_zip64 else size
    version = ZIP64_VERSION if needs_zip64 else DEFAULT_VERSION
    return (
        LOCAL_HEADER.pack(
            b"PK\x03\x04",
            version,
            name_flags(name),
            0,
            0,
            DOS_EPOCH_DATE,
            crc,
            size_field,
            size_field,
            len(encoded),
            len(extra),
        )
        + encoded
        + extra
    )


def central_directory(members: Iterable[tuple[str, Member]], start: int, comment: bytes) -> Iterator[bytes]:
    """Yield the central directory, which is written at the offset ``start``, and the end records, in blocks."""
    count = size = 0
    records: list[bytes] = []
    for name, member in members:
        records.append(_central_header(name, member))
        count += 1
        size += len(records[-1])
        if len(records) == ENTRIES_PER_BLOCK:
            yield b"".join(records)
            records.clear()
    if count >= MAX_UINT16 or size >= MAX_UINT32 or start >= MAX_UINT32:
        records.append(
            ZIP64_END.pack(b"PK\x06\x06", 44, ZIP64_VERSION, ZIP64_VERSION, 0, 0, count, count, size, start)
        )
        records.append(ZIP64_LOCATOR.pack(b"PK\x06\x07", 0, start + size, 1))
    count_field = min(count, MAX_UINT16)
    records.append(
        END.pack(
            b"PK\x05\x06",
            0,
            0,
            count_field,
            count_field,
            min(size, MAX_UINT32),
            min(start, MAX_UINT32),
            len(comment),
        )
    )
    yield b"".join(records) + comment


def _central_header(name: str, member: Member) -> bytes:
    directory_fields = member.directory_fields or DEFAULT_FIELDS
    encoded = name.encode() if directory_fields is DEFAULT_FIELDS else directory_fields.name
    zip64_values = [
        value for value in (member.size, member.compressed_size, member.header_offset) if value >= MAX_UINT32
    ]
    extra = directory_fields.extra
    if zip64_values:
        extra = (
            struct.pack(f"<2H{len(zip64_values)}Q", ZIP64_FIELD_ID, 8 * len(zip64_values), *zip64_values)
            + extra
        )
    return (
        CENTRAL_HEADER.pack(
            b"PK\x01\x02",
            directory_fields.made_by,
            max(directory_fields.needed, ZIP64_VERSION) if zip64_values else directory_fields.needed,
            member.flags,
            member.method,
            directory_fields.time,
            directory_fields.date,
            member.crc,
            min(member.compressed_size, MAX_UINT32),
            min(member.size, MAX_UINT32),
            len(encoded),
            len(extra),
            len(directory_fields.comment),
            0,
            directory_fields.internal,
            directory_fields.external,
            min(member.header_offset, MAX_UINT32),
        )
        + encoded
        + extra
        + directory_fields.comment
    )
