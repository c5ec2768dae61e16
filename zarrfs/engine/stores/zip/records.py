"""The records of a zip file: parsing of end records, central directory records and local headers, and their encoding.

This follows PKWARE's APPNOTE.TXT 6.3, sections 4.3 and 4.5.3 (zip64, for numbers that do not fit into 16 or 32 bits).
``zipfile`` encodes local headers (``ZipInfo.FileHeader``). The other records are processed here, because the only
public interface of ``zipfile`` to them is ``ZipFile``, which makes a ``ZipInfo`` of 700 bytes for each member.
"""

from __future__ import annotations

import stat
import struct
import zlib
from collections.abc import Callable, Iterator
from typing import NamedTuple
from zipfile import ZIP_STORED, BadZipFile, ZipInfo

__all__ = [
    "CENTRAL_HEADER",
    "CENTRAL_SIGNATURE",
    "LOCAL_HEADER",
    "MAX_UINT32",
    "MAX_UINT64",
    "UTF8",
    "EndRecord",
    "central_record",
    "decode_key",
    "end_records",
    "local_header",
    "moved_record",
    "read_end_record",
    "zip64_values",
]

LOCAL_HEADER = struct.Struct("<4s5H3L2H")
CENTRAL_HEADER = struct.Struct("<4s6H3L5H2L")
END = struct.Struct("<4s4H2LH")
ZIP64_END = struct.Struct("<4sQ2H2L4Q")
ZIP64_LOCATOR = struct.Struct("<4sLQL")

CENTRAL_SIGNATURE = b"PK\1\2"
END_SIGNATURE = b"PK\5\6"
ZIP64_END_SIGNATURE = b"PK\6\6"
ZIP64_LOCATOR_SIGNATURE = b"PK\6\7"

UTF8 = 0x800
"""The flag for names in UTF-8. Names without it are in code page 437."""

DOS_EPOCH_DATE = 1 << 5 | 1
"""1 January 1980, which ``ZipInfo`` has too. A constant date, so that equal data give equal archives."""

UNIX_SYSTEM = 3
REGULAR_FILE = stat.S_IFREG | 0o644
ZIP64_VERSION = 45
DEFAULT_VERSION = 20
MAX_UINT64 = (1 << 64) - 1
MAX_UINT32 = 0xFFFFFFFF
MAX_UINT16 = 0xFFFF
ZIP64_FIELD_ID = 1
UNICODE_PATH_FIELD_ID = 0x7075


class EndRecord(NamedTuple):
    """What the records at the end of an archive state of its central directory.

    ``start`` is its offset in the file, and ``shift`` is added to the offsets that it contains, because other data can
    precede the archive. ``is_zip64`` is whether there is a zip64 end record.
    """

    start: int
    size: int
    shift: int
    comment: bytes
    is_zip64: bool


# -- parsing -----------------------------------------------------------------------------------------------------


def read_end_record(read_at: Callable[[int, int], bytes], file_size: int) -> EndRecord:
    """Find the end record of an archive, and the zip64 end record before it. Raises BadZipFile."""
    # Most archives have no comment. The record is the end of the file then.
    position = max(0, file_size - END.size)
    tail = read_at(position, END.size)
    found = 0 if tail[:4] == END_SIGNATURE and tail[-2:] == b"\0\0" else -1
    if found < 0:
        position = max(0, file_size - END.size - MAX_UINT16)
        tail = read_at(position, END.size + MAX_UINT16)
        found = tail.rfind(END_SIGNATURE)
    if found < 0 or len(tail) - found < END.size:
        raise BadZipFile("it has no end record")
    _, disk, directory_disk, *_, size, offset, comment_size = END.unpack_from(tail, found)
    if {disk, directory_disk} - {0, MAX_UINT16}:  # MAX_UINT16: the number is in the zip64 record
        raise BadZipFile("it spans several files, which is not supported")
    comment = tail[found + END.size : found + END.size + comment_size]
    stop = position + found
    zip64_start = stop - ZIP64_LOCATOR.size - ZIP64_END.size
    is_zip64 = False
    records = read_at(zip64_start, ZIP64_END.size + ZIP64_LOCATOR.size) if zip64_start >= 0 else b""
    if records[ZIP64_END.size : ZIP64_END.size + 4] == ZIP64_LOCATOR_SIGNATURE:
        _, disk, _, disk_count = ZIP64_LOCATOR.unpack_from(records, ZIP64_END.size)
        if disk or disk_count > 1:
            raise BadZipFile("it spans several files, which is not supported")
        if records[:4] == ZIP64_END_SIGNATURE:
            *_, size, offset = ZIP64_END.unpack_from(records)
            stop = zip64_start
            is_zip64 = True
    if size > stop:
        raise BadZipFile(
            f"its central directory has {size} bytes, but the file has {stop} before the end record"
        )
    return EndRecord(stop - size, size, stop - size - offset, comment, is_zip64)


def decode_key(name: bytes, flags: int, extra: bytes) -> str | None:
    """Return the key of an encoded name, or None if the name is not the UTF-8 that it declares.

    As in ``zipfile``, a Unicode path in the extra field (0x7075) replaces the name, and the name ends at a NUL.
    """
    if b"up" in extra:  # the identifier of the field
        for field_id, data in _extra_fields(extra):
            if field_id == UNICODE_PATH_FIELD_ID and data[:5] == struct.pack("<BL", 1, zlib.crc32(name)):
                name, flags = data[5:] or name, flags | UTF8
    try:
        key = name.decode("utf-8" if flags & UTF8 else "cp437")
    except UnicodeDecodeError:
        return None
    return key.partition("\0")[0]


def zip64_values(extra: bytes, size: int, compressed_size: int, offset: int) -> tuple[int, int, int]:
    """Return the same values of a record, where the extra field contains those that are MAX_UINT32.

    As in ``zipfile``, they are the values if there is no zip64 field. Raises BadZipFile if the field is too short.
    """
    data = next((data for field_id, data in _extra_fields(extra) if field_id == ZIP64_FIELD_ID), None)
    values = [size, compressed_size, offset]
    position = 0
    for index, value in enumerate(values):
        if data is not None and value == MAX_UINT32:
            if position + 8 > len(data):
                raise BadZipFile("its central directory has a zip64 field that is too short")
            values[index] = int.from_bytes(data[position : position + 8], "little")
            position += 8
    return values[0], values[1], values[2]


def _extra_fields(extra: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield the identifier and the data of each complete extra field."""
    position = 0
    while position + 4 <= len(extra):
        field_id, size = struct.unpack_from("<2H", extra, position)
        data = extra[position + 4 : position + 4 + size]
        if len(data) == size:
            yield field_id, data
        position += 4 + size


# -- encoding ----------------------------------------------------------------------------------------------------


def local_header(key: str, size: int, crc: int) -> bytes:
    """Return the local header of a stored member."""
    info = ZipInfo(key)
    info.file_size = info.compress_size = size
    info.CRC = crc
    return info.FileHeader()


def central_record(name: bytes, flags: int, crc: int, size: int, offset: int) -> bytes:
    """Return the central directory record of a stored member. The other fields are as ``zipfile`` writes them."""
    return _encode_record(
        UNIX_SYSTEM << 8 | ZIP64_VERSION,
        DEFAULT_VERSION,
        flags,
        ZIP_STORED,
        (0, DOS_EPOCH_DATE),
        crc,
        (size, size, offset),
        (0, REGULAR_FILE << 16),
        (name, b"", b""),
    )


def moved_record(record: bytes, offset: int) -> bytes:
    """Return a record of a central directory with another offset of the local header. Raises BadZipFile."""
    fields = CENTRAL_HEADER.unpack_from(record)
    _, made_by, needed, flags, method, time, date, crc, compressed_size, size = fields[:10]
    name_size, extra_size, _, _, internal, external, old_offset = fields[10:]
    name_end = CENTRAL_HEADER.size + name_size
    extra = record[name_end : name_end + extra_size]
    size, compressed_size, _ = zip64_values(extra, size, compressed_size, old_offset)
    other_fields = b"".join(
        struct.pack("<2H", field_id, len(data)) + data
        for field_id, data in _extra_fields(extra)
        if field_id != ZIP64_FIELD_ID
    )
    return _encode_record(
        made_by,
        needed,
        flags,
        method,
        (time, date),
        crc,
        (size, compressed_size, offset),
        (internal, external),
        (record[CENTRAL_HEADER.size : name_end], other_fields, record[name_end + extra_size :]),
    )


def _encode_record(
    made_by: int,
    needed: int,
    flags: int,
    method: int,
    modified: tuple[int, int],
    crc: int,
    values: tuple[int, int, int],
    attributes: tuple[int, int],
    parts: tuple[bytes, bytes, bytes],
) -> bytes:
    """Return a record. ``values``: size, compressed size and offset; ``parts``: name, extra field and comment."""
    name, extra, comment = parts
    large_values = [value for value in values if value >= MAX_UINT32]
    if large_values:
        needed = max(needed, ZIP64_VERSION)
        extra = (
            struct.pack(f"<2H{len(large_values)}Q", ZIP64_FIELD_ID, 8 * len(large_values), *large_values)
            + extra
        )
    size, compressed_size, offset = (min(value, MAX_UINT32) for value in values)
    header = CENTRAL_HEADER.pack(
        CENTRAL_SIGNATURE,
        made_by,
        needed,
        flags,
        method,
        *modified,
        crc,
        compressed_size,
        size,
        len(name),
        len(extra),
        len(comment),
        0,
        *attributes,
        offset,
    )
    return header + name + extra + comment


def end_records(start: int, size: int, count: int, comment: bytes, *, zip64_always: bool = False) -> bytes:
    """Return the records that follow a central directory of ``count`` records and ``size`` bytes at ``start``.

    Zip64 records are written if the numbers need them, or with ``zip64_always``.
    """
    zip64 = b""
    if zip64_always or count >= MAX_UINT16 or size >= MAX_UINT32 or start >= MAX_UINT32:
        zip64 = ZIP64_END.pack(
            ZIP64_END_SIGNATURE, 44, ZIP64_VERSION, ZIP64_VERSION, 0, 0, count, count, size, start
        ) + ZIP64_LOCATOR.pack(ZIP64_LOCATOR_SIGNATURE, 0, start + size, 1)
    count = min(count, MAX_UINT16)
    end = END.pack(
        END_SIGNATURE, 0, 0, count, count, min(size, MAX_UINT32), min(start, MAX_UINT32), len(comment)
    )
    return zip64 + end + comment
