"""Reading the members of a zip file as values, independent of the location of the file.

The central directory is read once. Stored (uncompressed) members are read at their offset, also in part. Subclasses
open the file and implement writing.
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
    MAX_UINT32,
    MAX_UINT64,
    Member,
    ReadableFile,
    name_bytes,
    read_directory_fields,
)
from zarrfs.errors import KeyNameError, LocationError, StoreError, ZarrError
from zarrfs.logs import logger

__all__ = ["ArchiveState", "ArchiveStore"]

T = TypeVar("T")

ENCRYPTED_FLAG = 0x1
DATA_DESCRIPTOR = 0x8
"""The flag of members whose checksum and sizes follow the data instead of being in the local header."""

MAX_DEFLATE_RATIO = 1032
"""The maximum ratio of decompressed to compressed size that deflate can reach."""


class ArchiveState:
    """The content of an archive. Several stores can share it.

    Attributes:
        members: the members by key. It can be modified or replaced while other threads read.
        listing: the listing of each directory, or None until it is requested.
        size: the size of the file in bytes when it was opened.
    """

    def __init__(self) -> None:
        self.members: dict[str, Member] = {}
        self.listing: dict[str, Listing] | None = None
        self.size = 0


class ArchiveStore(Store):
    """The members of a zip file as values, read-only. ``_display_path`` is the location of the file, for messages."""

    checks_size_first = True
    _display_path: str

    def __init__(self) -> None:
        self._state = ArchiveState()

    @contextmanager
    def _opening_errors(self) -> Iterator[None]:
        """Convert errors while the archive is opened to LocationError."""
        try:
            yield
        except ZarrError:
            raise
        except OSError as error:
            raise LocationError(
                f"{self._display_path} cannot be opened: {error.strerror or error}"
            ) from error
        except Exception as error:  # zipfile raises many types of errors for corrupt archives
            raise LocationError(
                f"{self._display_path} is not a readable zip file: {error or type(error).__name__}; it may be truncated"
            ) from error

    def _load_members(
        self, infos: Sequence[zipfile.ZipInfo], file: ReadableFile, end: int, keep_fields: bool
    ) -> list[tuple[str, Member]]:
        """Add the members with valid keys to the state. Return the others, except for directories.

        ``end`` is the offset of the central directory. ``keep_fields``: whether the members retain their other
        fields of the central directory.
        """
        others: list[tuple[str, Member]] = []
        file.record_offsets = array(
            "Q", sorted({end, *(min(max(0, info.header_offset), MAX_UINT64) for info in infos)})
        )
        for info in infos:
            if info.filename.endswith("/"):
                continue
            # Names that are not ASCII have several encodings. The encoded name is retained for them.
            is_plain_name = info.filename.isascii() and info.orig_filename == info.filename
            member = Member(
                file,
                info.header_offset,
                -1,
                info.file_size,
                info.compress_size,
                info.CRC,
                info.compress_type,
                info.flag_bits,
                directory_fields=read_directory_fields(info) if keep_fields or not is_plain_name else None,
            )
            try:
                check_key(info.filename)
                if "\\" in info.filename:
                    raise KeyNameError(info.filename)
            except KeyNameError:
                reason = "leaves the archive" if info.filename else "is empty"
                logger.warning(
                    "%s: member %r is ignored: its name %s", self._display_path, info.filename, reason
                )
                others.append((info.filename, member))
                continue
            # The last member of a name replaces earlier ones, because programs append new versions.
            self._state.members[info.filename] = member
        return others

    # -- reading -----------------------------------------------------------------------------------------------

    def _read_current(self, key: str, read: Callable[[Member], T]) -> T | None:
        """Return ``read(member)`` for the member of the key, or None if the key is missing.

        The bytes of a member never change, so it can be read while the key is written or deleted.
        """
        member = self._state.members.get(key)
        if member is None:
            self._check_open()
            return None
        return read(member)

    def get(self, key: str) -> Buffer | None:
        return self._read_current(key, lambda member: self._read_member(key, member))

    def get_within(self, key: str, max_nbytes: int | None) -> Buffer | None:
        def read(member: Member) -> bytes:
            if max_nbytes is not None and member.size > max_nbytes:
                raise ValueTooLargeError(member.size, max_nbytes)
            return self._read_member(key, member)

        return self._read_current(key, read)

    def get_into(self, key: str, out: memoryview) -> int | None:
        def read(member: Member) -> int:
            if member.size == len(out):
                out[:] = self._read_member(key, member)
            return member.size

        return self._read_current(key, read)

    def get_ranges(self, key: str, ranges: Sequence[ByteRange]) -> list[Buffer] | None:
        return self._read_current(key, lambda member: self._read_member_ranges(key, member, ranges))

    def size(self, key: str) -> int | None:
        return self._read_current(key, lambda member: member.size)

    def stamp(self, key: str) -> Hashable | None:
        return self._read_current(key, lambda member: member.write_number or IMMUTABLE)

    # -- one member --------------------------------------------------------------------------------------------

    def _read_member(self, key: str, member: Member) -> bytes:
        self._check_member(key, member)
        return self._decompress(key, member, self._read_stored_bytes(key, member, 0, member.compressed_size))

    def _read_member_ranges(self, key: str, member: Member, ranges: Sequence[ByteRange]) -> list[Buffer]:
        if member.method != zipfile.ZIP_STORED:
            value = memoryview(self._read_member(key, member))
            bounds = [byte_range.resolve(len(value)) for byte_range in ranges]
            return [value[start:stop] for start, stop in bounds]
        self._check_member(key, member)
        bounds = [byte_range.resolve(member.size) for byte_range in ranges]
        return [
            # Only whole members can be compared with the checksum.
            self._read_member(key, member)
            if (start, stop) == (0, member.size)
            else self._read_stored_bytes(key, member, start, max(0, stop - start))
            for start, stop in bounds
        ]

    def _check_member(self, key: str, member: Member) -> None:
        """Raise StoreError if the member cannot be decoded or declares impossible sizes. Reads nothing."""
        if member.flags & ENCRYPTED_FLAG:
            raise StoreError(f"{self._display_path}: member {key!r} is encrypted; extract the archive first")
        if member.method == zipfile.ZIP_STORED:
            if member.size != member.compressed_size:
                raise StoreError(
                    f"{self._display_path}: member {key!r} is stored, but its compressed size is "
                    f"{member.compressed_size}, expected {member.size}; the archive is corrupt"
                )
            return
        if member.method != zipfile.ZIP_DEFLATED:
            raise StoreError(
                f"{self._display_path}: member {key!r} has the compression method {member.method}, expected 0 (stored) "
                "or 8 (deflated)"
            )
        if member.size > member.compressed_size * MAX_DEFLATE_RATIO + 1024:
            raise StoreError(
                f"{self._display_path}: member {key!r} declares {member.size} bytes, which is impossible for "
                f"{member.compressed_size} compressed bytes; the archive is corrupt or malicious"
            )

    def _data_offset(self, key: str, member: Member) -> int:
        """Return the offset of the data of a member. The local header is read and checked the first time."""
        if member.data_offset < 0:
            if not 0 <= member.header_offset < self._state.size:
                raise StoreError(
                    f"{self._display_path}: member {key!r} extends past the end of the file; the file is truncated"
                )
            size = LOCAL_HEADER.size + len(name_bytes(key, member))
            self._check_local_header(key, member, member.file.read_at(member.header_offset, size))
        return member.data_offset

    def _check_local_header(self, key: str, member: Member, header: bytes) -> None:
        """Compare the local header of a member with the central directory, and set the data offset of the member."""
        if len(header) < LOCAL_HEADER.size or header[:4] != b"PK\x03\x04":
            raise StoreError(f"{self._display_path}: the local header of member {key!r} is corrupt")
        _, _, flags, method, _, _, crc, compressed_size, size, name_size, extra_size = (
            LOCAL_HEADER.unpack_from(header)
        )
        data_offset = member.header_offset + LOCAL_HEADER.size + name_size + extra_size
        if data_offset + member.compressed_size > self._state.size:
            raise StoreError(
                f"{self._display_path}: member {key!r} extends past the end of the file; the file is truncated"
            )
        name = name_bytes(key, member)
        mismatches = []
        if header[LOCAL_HEADER.size : LOCAL_HEADER.size + name_size] != name:
            mismatches.append("name")
        if method != member.method or (flags ^ member.flags) & ENCRYPTED_FLAG:
            mismatches.append("method")
        if not flags & DATA_DESCRIPTOR:
            # 0: unknown when the header was written. The maximum: the value is in the zip64 extra field.
            if crc not in (member.crc, 0):
                mismatches.append("checksum")
            if compressed_size not in (member.compressed_size, 0, MAX_UINT32) or size not in (
                member.size,
                0,
                MAX_UINT32,
            ):
                mismatches.append("size")
        if mismatches:
            raise StoreError(
                f"{self._display_path}: the {' and '.join(mismatches)} of member {key!r} in its local header differ "
                "from the central directory; the archive is corrupt or malicious"
            )
        record_offsets = member.file.record_offsets
        next_record = bisect_right(record_offsets, member.header_offset)
        if (
            next_record < len(record_offsets)
            and data_offset + member.compressed_size > record_offsets[next_record]
        ):
            raise StoreError(
                f"{self._display_path}: member {key!r} overlaps the next member or the central directory; the archive "
                "is corrupt or malicious"
            )
        member.data_offset = data_offset

    def _read_stored_bytes(self, key: str, member: Member, start: int, size: int) -> bytes:
        """Return bytes of the member as they are stored, from ``start`` relative to its data."""
        try:
            data = member.file.read_at(self._data_offset(key, member) + start, size)
        except StoreError:
            raise
        except OSError as error:
            raise StoreError(f"{self._display_path} cannot be read: {error.strerror}", error.errno) from error
        except (MemoryError, OverflowError) as error:
            raise StoreError(
                f"{self._display_path}: {size:,} bytes of member {key!r} do not fit into memory", errno.EFBIG
            ) from error
        if len(data) != size:
            raise StoreError(
                f"{self._display_path}: member {key!r} has {len(data)} of {size} bytes; the file is truncated"
            )
        return data

    def _decompress(self, key: str, member: Member, compressed: bytes) -> bytes:
        """Return the value of a member from its stored bytes. Checks its size and checksum."""
        data = compressed
        if member.method != zipfile.ZIP_STORED:
            decoder = zlib.decompressobj(-15)
            try:
                data = decoder.decompress(compressed, member.size + 1)
            except zlib.error as error:
                raise StoreError(f"{self._display_path}: member {key!r} is corrupt: {error}") from error
            except (MemoryError, OverflowError) as error:
                raise StoreError(
                    f"{self._display_path}: {member.size:,} bytes of member {key!r} do not fit into memory",
                    errno.EFBIG,
                ) from error
        if len(data) != member.size or zlib.crc32(data) != member.crc:
            raise StoreError(
                f"{self._display_path}: member {key!r} is corrupt: its size or checksum differs from the central "
                "directory"
            )
        return data

    # -- listing -----------------------------------------------------------------------------------------------

    def list_dir(self, prefix: str = "") -> Listing:
        self._check_open()
        listing = self._state.listing
        if listing is None:
            listing = self._state.listing = _index_directories(list(self._state.members))
        return listing.get(prefix, Listing([], []))

    def list_prefix(self, prefix: str = "") -> Iterator[str]:
        self._check_open()
        start = prefix + "/" if prefix else ""
        return iter([key for key in list(self._state.members) if key.startswith(start)])


def _index_directories(names: list[str]) -> dict[str, Listing]:
    """Return the listings of all directories, in one pass over the names."""
    keys: dict[str, set[str]] = {}
    prefixes: dict[str, set[str]] = {}
    for name in names:
        parent, _, last = name.rpartition("/")
        keys.setdefault(parent, set()).add(last)
        while parent:
            grandparent, _, last = parent.rpartition("/")
            siblings = prefixes.setdefault(grandparent, set())
            if last in siblings:
                break
            siblings.add(last)
            parent = grandparent
    return {
        directory: Listing(sorted(keys.get(directory, ())), sorted(prefixes.get(directory, ())))
        for directory in {*keys, *prefixes}
    }
