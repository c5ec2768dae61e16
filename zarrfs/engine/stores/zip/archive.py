"""Reading the members of a zip file as values, independent of the location of the file.

The central directory is read once. Stored (uncompressed) members are read at their offset, also in part. Subclasses
open the file and implement writing.

``zipfile`` does not read the members. It decompresses more than the size that the directory declares before it drops
the rest, it does not compare the sizes and the checksum of the local header with the directory, and it reads a part of
a member only from the beginning.
"""

from __future__ import annotations

import errno
import zipfile
import zlib
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

from zarrfs.engine.stores.base import (
    Buffer,
    ByteRange,
    Listing,
    Store,
    ValueTooLargeError,
)
from zarrfs.engine.stores.zip.directory import Directory, Member, Members, ReadableFile
from zarrfs.engine.stores.zip.records import LOCAL_HEADER, MAX_UINT32
from zarrfs.errors import LocationError, StoreError, ZarrError
from zarrfs.logs import logger

__all__ = ["ArchiveState", "ArchiveStore"]

T = TypeVar("T")

ENCRYPTED_FLAG = 0x1
DATA_DESCRIPTOR = 0x8
"""The flag of members whose checksum and sizes follow the data instead of being in the local header."""

MAX_DEFLATE_RATIO = 1032
"""The maximum ratio of decompressed to compressed size that deflate can reach."""


EXTRA_FIELD_SLACK_NBYTES = 64
"""How much longer the extra field may be in a local header than in the directory without another read."""


class ArchiveState:
    """The content of an archive. Several stores can share it.

    Attributes:
        members: the members. The object is replaced when the archive is completed.
    """

    def __init__(self) -> None:
        self.members = Members()


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
        except zipfile.BadZipFile as error:
            raise LocationError(
                f"{self._display_path} is not a readable zip file: {error}; it may be truncated"
            ) from error

    def _read_directory(
        self, file: ReadableFile, file_size: int, first_nbytes: int | None = None
    ) -> Directory:
        """Read the central directory, or its beginning, and warn of members without a valid key.

        Raises LocationError.
        """
        with self._opening_errors():
            directory = Directory(file, file_size, first_nbytes=first_nbytes)
        for name, reason in directory.ignored:
            logger.warning("%s: member %s is ignored: its name %s", self._display_path, name, reason)
        return directory

    @property
    def central_directory(self) -> Directory | None:
        """The central directory of the archive as it was opened or completed; None for a new archive."""
        return self._members().directory

    def _members(self) -> Members:
        """Return all members."""
        return self._state.members

    def _find(self, key: str) -> Member | None:
        """Return the member of a key, or None."""
        return self._members().get(key)

    # -- reading -----------------------------------------------------------------------------------------------

    def _read_current(self, key: str, read: Callable[[Member], T]) -> T | None:
        """Return ``read(member)`` for the member of the key, or None if the key is missing.

        The bytes of a member never change, so it can be read while the key is written or deleted.
        """
        member = self._find(key)
        if member is None:
            self._check_open()
            return None
        return read(member)

    def get(self, key: str) -> Buffer | None:
        return self._read_current(key, lambda member: self._read_member(key, member))

    def get_within(self, key: str, max_nbytes: int | None) -> Buffer | None:
        def read(member: Member) -> Buffer:
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
        return self._read_current(key, lambda member: member.stamp)

    # -- one member --------------------------------------------------------------------------------------------

    def _read_member(self, key: str, member: Member) -> Buffer:
        self._check_member(key, member)
        if member.unchecked is not None:
            # The local header and the data are read together. The size of the header is an estimate, because its
            # extra field can be longer than the one in the central directory.
            header_nbytes = (
                LOCAL_HEADER.size + len(member.name) + member.extra_size + EXTRA_FIELD_SLACK_NBYTES
            )
            data = self._read_header(key, member, header_nbytes + member.compressed_size)
            stop = member.header_size + member.compressed_size
            if stop <= len(data):
                return self._decompress(key, member, memoryview(data)[member.header_size : stop])
        (data,) = self._read_stored_bytes(key, member, [(0, member.compressed_size)])
        return self._decompress(key, member, data)

    def _read_member_ranges(self, key: str, member: Member, ranges: Sequence[ByteRange]) -> list[Buffer]:
        self._check_member(key, member)
        bounds = [byte_range.resolve(member.size) for byte_range in ranges]
        if (
            member.method != zipfile.ZIP_STORED
            # Only whole members can be compared with the checksum.
            or (0, member.size) in bounds
            # Reading the whole member needs no separate read of the local header.
            or (member.unchecked and 2 * sum(stop - start for start, stop in bounds) > member.size)
        ):
            value = memoryview(self._read_member(key, member))
            return [value[start:stop] for start, stop in bounds]
        if member.unchecked:
            self._read_header(key, member, LOCAL_HEADER.size + len(member.name))
        requests = [(start, stop - start) for start, stop in bounds if stop > start]
        found = iter(self._read_stored_bytes(key, member, requests) if requests else ())
        return [next(found) if stop > start else b"" for start, stop in bounds]

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

    def _read_header(self, key: str, member: Member, size: int) -> bytes:
        """Compare the local header with the directory. Return ``size`` bytes from its start, fewer at the end."""
        if member.unchecked is None:
            return b""
        directory, slot = member.unchecked
        if not 0 <= member.offset <= directory.file_size - LOCAL_HEADER.size - member.compressed_size:
            raise self._truncation_error(key)
        (data,) = self._read(key, member, [(member.offset, min(size, directory.file_size - member.offset))])
        if len(data) < LOCAL_HEADER.size or data[:4] != b"PK\x03\x04":
            raise StoreError(f"{self._display_path}: the local header of member {key!r} is corrupt")
        _, _, flags, method, _, _, crc, compressed_size, value_size, name_size, extra_size = (
            LOCAL_HEADER.unpack_from(data)
        )
        header_size = LOCAL_HEADER.size + name_size + extra_size
        stop = member.offset + header_size + member.compressed_size
        if stop > directory.file_size:
            raise self._truncation_error(key)
        mismatches = []
        if data[LOCAL_HEADER.size : LOCAL_HEADER.size + name_size] != member.name:
            mismatches.append("name")
        if method != member.method or (flags ^ member.flags) & ENCRYPTED_FLAG:
            mismatches.append("method")
        if not flags & DATA_DESCRIPTOR:
            # 0: unknown when the header was written. The maximum: the value is in the zip64 extra field.
            if crc not in (member.crc, 0):
                mismatches.append("checksum")
            if compressed_size not in (member.compressed_size, 0, MAX_UINT32) or value_size not in (
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
        if stop > directory.next_offset(member.offset):
            raise StoreError(
                f"{self._display_path}: member {key!r} overlaps the next member or the central directory; the archive "
                "is corrupt or malicious"
            )
        directory.store_header_size(member, slot, header_size)
        return data

    def _truncation_error(self, key: str) -> StoreError:
        return StoreError(
            f"{self._display_path}: member {key!r} extends past the end of the file; the file is truncated"
        )

    def _read_stored_bytes(self, key: str, member: Member, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        """Return ``(start, size)`` ranges of the data of a member, as they are stored. Its header has been read."""
        first = member.offset + member.header_size
        buffers = self._read(key, member, [(first + start, size) for start, size in ranges])
        for buffer, (_, size) in zip(buffers, ranges, strict=True):
            if len(buffer) != size:
                raise StoreError(
                    f"{self._display_path}: member {key!r} has {len(buffer)} of {size} bytes; the file is truncated"
                )
        return buffers

    def _read(self, key: str, member: Member, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        """Return ``(offset, size)`` ranges of the file that contains a member. Raises StoreError."""
        try:
            return member.file.read_ranges(ranges)
        except StoreError:
            raise
        except OSError as error:
            raise StoreError(f"{self._display_path} cannot be read: {error.strerror}", error.errno) from error
        except (MemoryError, OverflowError) as error:
            size = sum(size for _, size in ranges)
            raise StoreError(
                f"{self._display_path}: {size:,} bytes of member {key!r} do not fit into memory", errno.EFBIG
            ) from error

    def _decompress(self, key: str, member: Member, compressed: Buffer) -> Buffer:
        """Return the value of a member from its stored bytes. Checks its size and checksum."""
        data: Buffer = compressed
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
        return self._members().list_dir(prefix)

    def list_prefix(self, prefix: str = "") -> Iterator[str]:
        self._check_open()
        return self._members().list_prefix(prefix)
