"""The records of a zip file, packed: local headers, central directory, end. After PKWARE's APPNOTE.TXT 6.3,
sections 4.3 and 4.5.3 (zip64: where a number does not fit into 16 or 32 bits). Unpacking is ``zipfile``'s.
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
    "MAX_32",
    "MAX_64",
    "PADDING",
    "Member",
    "OpenFile",
    "Origin",
    "Readable",
    "central_directory",
    "local_header",
    "name_bytes",
    "name_flags",
    "origin_of",
    "padded_header",
]

LOCAL_HEADER = struct.Struct("<4s5H3L2H")
CENTRAL_HEADER = struct.Struct("<4s6H3L5H2L")
END = struct.Struct("<4s4H2LH")
ZIP64_END = struct.Struct("<4sQ2H2L4Q")
ZIP64_LOCATOR = struct.Struct("<4sLQL")

UTF8 = 0x800
"""The flag of names in UTF-8; without it they are in code page 437."""

NO_DATE = 1 << 5 | 1
"""The first day of 1980. The same data make the same archive."""

UNIX = 3
ZIP64_VERSION = 45
PLAIN_VERSION = 20
MAX_64 = (1 << 64) - 1
MAX_32 = 0xFFFFFFFF
MAX_16 = 0xFFFF
ZIP64_ID = 1

PADDING = struct.Struct("<3H")
PADDING_ID = 0xD935
"""An extra field that holds nothing but padding, as Android's zipalign makes it: id, size, alignment, zeros."""

ENTRIES_AT_ONCE = 4096


class Readable(Protocol):
    """What an archive is read from.

    Attributes:
        starts: where local headers begin and where the central directory does, sorted.
    """

    starts: array[int]

    def read_at(self, offset: int, size: int) -> bytes:
        """Return ``size`` bytes, fewer at the end. Raises OSError."""


class OpenFile:
    """A file descriptor that is closed when the last one who reads by it has let it go."""

    def __init__(self, fd: int) -> None:
        self.fd = fd
        self.starts: array[int] = array("Q")

    def __del__(self) -> None:
        os.close(self.fd)

    def read_at(self, offset: int, size: int) -> bytes:
        """Return ``size`` bytes, fewer at the end."""
        data = os.pread(self.fd, size, offset)
        while len(data) < size and (more := os.pread(self.fd, size - len(data), offset + len(data))):
            data += more
        return data


@dataclass(frozen=True, slots=True)
class Origin:
    """What the central directory says of a member that another program wrote, to be handed on as it is."""

    name: bytes
    made_by: int
    needed: int
    time: int
    date: int
    internal: int
    external: int
    extra: bytes
    comment: bytes


OURS = Origin(
    b"",
    UNIX << 8 | ZIP64_VERSION,
    PLAIN_VERSION,
    0,
    NO_DATE,
    0,
    (stat.S_IFREG | 0o644) << 16,
    b"",
    b"",
)
"""What the directory says of members that we write, but for their names."""


@dataclass(slots=True, eq=False)
class Member:
    """Where a value is and what is known of it.

    Attributes:
        file: the file that it is in.
        offset: where its local header begins.
        data: where its bytes begin; -1: not looked up yet.
        size, packed: bytes as they are, and as they are stored.
        number: counts the writes of this store; 0 for what was there before.
    """

    file: Readable
    offset: int
    data: int
    size: int
    packed: int
    crc: int
    method: int = 0
    flags: int = 0
    number: int = 0
    origin: Origin | None = None

    def at(self, file: Readable, shift: int) -> Member:
        """Return the member where it is in another file, with its header so many bytes further on."""
        # By hand: ``dataclasses.replace`` takes ten times as long, for each of millions of members.
        return Member(
            file,
            self.offset + shift,
            self.data,
            self.size,
            self.packed,
            self.crc,
            self.method,
            self.flags,
            self.number,
            self.origin,
        )


def origin_of(info: ZipInfo) -> Origin:
    """Return what is to be handed on of a member."""
    year, month, day, hour, minute, second = info.date_time
    return Origin(
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
    kept = b""
    while len(extra) >= 4:
        kind, size = struct.unpack_from("<2H", extra)
        if kind != ZIP64_ID:
            kept += extra[: 4 + size]
        extra = extra[4 + size :]
    return kept


def name_bytes(key: str, member: Member) -> bytes:
    """Return the name of a member as the archive has it."""
    return key.encode() if member.origin is None else member.origin.name


def name_flags(name: str) -> int:
    """Return the flags of a member of this name that we write."""
    return 0 if name.isascii() else UTF8


def local_header(name: str, size: int, crc: int, padding: int = 0) -> bytes:
    """Return the header of a stored member, with so many bytes of padding (none, or 6 to 65000) before its data."""
    encoded = name.encode()
    if len(encoded) > MAX_16:
        raise ValueError(f"a name in a zip file has at most {MAX_16} bytes, found {len(encoded)}")
    large = size >= MAX_32
    extra = struct.pack("<2H2Q", ZIP64_ID, 16, size, size) if large else b""
    extra += _padding(padding)
    shown = MAX_32 if large else size
    version = ZIP64_VERSION if large else PLAIN_VERSION
    return (
        LOCAL_HEADER.pack(
            b"PK\x03\x04",
            version,
            name_flags(name),
            0,
            0,
            NO_DATE,
            crc,
            shown,
            shown,
            len(encoded),
            len(extra),
        )
        + encoded
        + extra
    )


def _padding(size: int) -> bytes:
    return PADDING.pack(PADDING_ID, size - 4, 1).ljust(size, b"\0") if size else b""


def padded_header(header: bytes, padding: int) -> bytes | None:
    """Return a local header (with its name and extra fields) made longer by padding; None where that cannot be."""
    fields = list(LOCAL_HEADER.unpack_from(header))
    if fields[0] != b"PK\x03\x04" or padding < PADDING.size or fields[10] + padding > MAX_16:
        return None
    fields[10] += padding
    return LOCAL_HEADER.pack(*fields) + header[LOCAL_HEADER.size :] + _padding(padding)


def central_directory(members: Iterable[tuple[str, Member]], start: int, comment: bytes) -> Iterator[bytes]:
    """Yield the central directory, which is to be at ``start``, and the end of the archive, in pieces."""
    count = size = 0
    piece: list[bytes] = []
    for name, member in members:
        piece.append(_central_header(name, member))
        count += 1
        size += len(piece[-1])
        if len(piece) == ENTRIES_AT_ONCE:
            yield b"".join(piece)
            piece.clear()
    if count >= MAX_16 or size >= MAX_32 or start >= MAX_32:
        piece.append(
            ZIP64_END.pack(b"PK\x06\x06", 44, ZIP64_VERSION, ZIP64_VERSION, 0, 0, count, count, size, start)
        )
        piece.append(ZIP64_LOCATOR.pack(b"PK\x06\x07", 0, start + size, 1))
    few = min(count, MAX_16)
    piece.append(END.pack(b"PK\x05\x06", 0, 0, few, few, min(size, MAX_32), min(start, MAX_32), len(comment)))
    yield b"".join(piece) + comment


def _central_header(name: str, member: Member) -> bytes:
    origin = member.origin or OURS
    encoded = name.encode() if origin is OURS else origin.name
    large = [number for number in (member.size, member.packed, member.offset) if number >= MAX_32]
    extra = origin.extra
    if large:
        extra = struct.pack(f"<2H{len(large)}Q", ZIP64_ID, 8 * len(large), *large) + extra
    return (
        CENTRAL_HEADER.pack(
            b"PK\x01\x02",
            origin.made_by,
            max(origin.needed, ZIP64_VERSION) if large else origin.needed,
            member.flags,
            member.method,
            origin.time,
            origin.date,
            member.crc,
            min(member.packed, MAX_32),
            min(member.size, MAX_32),
            len(encoded),
            len(extra),
            len(origin.comment),
            0,
            origin.internal,
            origin.external,
            min(member.offset, MAX_32),
        )
        + encoded
        + extra
        + origin.comment
    )
