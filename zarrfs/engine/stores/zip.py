"""A zip file as a store: keys are member names.

Reading takes the central directory once; stored (uncompressed) members are then read straight from the file at their
offset, in part too. Writing appends stored members. A zip file cannot change or remove what it holds, so a value
that is set again, or deleted, leaves its old bytes behind until ``close`` writes the file anew without them: no member
name is ever there twice when the store was closed.
"""

from __future__ import annotations

import atexit
import os
import struct
import tempfile
import threading
import weakref
import zipfile
import zlib
from collections.abc import Hashable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from zarrfs.engine.stores.base import IMMUTABLE, Buffer, ByteRange, Listing, Store, Usage, check_key
from zarrfs.engine.stores.memory import list_keys
from zarrfs.errors import KeyNameError, LocationError, StoreError
from zarrfs.logs import logger

__all__ = ["ZipStore"]

LOCAL_HEADER = struct.Struct("<4s5H3L2H")
ENCRYPTED = 0x1
MOST_EXPANSION = 1032
"""Deflate cannot make more than this of one byte; a member that says so lies."""


class ZipStore(Store):
    """Values in a zip file, which stays open until ``close``.

    ``mode`` is ``"r"``, ``"a"`` (made if absent) or ``"w"`` (made anew). What is written is in the file, readable by
    others, only after ``close``: a zip file's directory is its end. If closing fails the old file is untouched.
    """

    def __init__(self, path: str | os.PathLike[str], mode: str = "r") -> None:
        self.path = os.path.abspath(os.fspath(path))
        if mode not in ("r", "a", "w"):
            raise LocationError(f"{self.path}: mode must be 'r', 'a' or 'w', found {mode!r}")
        self.read_only = mode == "r"
        self._lock = threading.RLock()
        self._fd = -1
        self._members: dict[str, zipfile.ZipInfo] = {}
        self._offsets: dict[str, int] = {}
        self._changed: dict[str, bytes | None] = {}
        self._dirty = mode == "w"
        self._listing: dict[str, Listing] | None = None
        self._stamps: dict[str, int] = {}
        self._count = 0
        if mode == "r" or (mode == "a" and os.path.exists(self.path)):
            self._open()
        elif mode == "a":
            self._dirty = True
        if not self.read_only:
            _open_for_writing.add(self)

    def __reduce__(self) -> tuple[object, ...]:
        if not self.read_only:
            raise StoreError(
                f"{self.url} is open for writing and cannot be pickled; close it, and open it to read"
            )
        return ZipStore, (self.path, "r")

    def _open(self) -> None:
        try:
            members = self._load()
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
                f"{self.path} is no zip file that can be read: {error}; it may be truncated"
            ) from error
        except OSError as error:
            raise LocationError(f"{self.path} cannot be opened: {error.strerror or error}") from error
        for member in members:
            if member.is_dir():
                continue
            try:
                check_key(member.filename)
                if "\\" in member.filename:
                    raise KeyNameError(member.filename)
            except KeyNameError:
                logger.warning(
                    "%s: member %r is ignored: its name leaves the archive", self.path, member.filename
                )
                continue
            # Of several members of one name the last one counts, as for every program that appends.
            self._members[member.filename] = member

    def _load(self) -> list[zipfile.ZipInfo]:
        """Open the file, note its size, and return what its directory holds."""
        with zipfile.ZipFile(self.path) as archive:
            members = archive.infolist()
        self._fd = os.open(self.path, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0))
        self._size = os.fstat(self._fd).st_size
        return members

    @property
    def url(self) -> str:
        return Path(self.path).as_uri()

    # -- reading -----------------------------------------------------------------------------------------------

    def get(self, key: str) -> Buffer | None:
        if key in self._changed:
            return self._changed[key]
        member = self._members.get(key)
        if member is None:
            return None
        self._check(member)
        return self._member_value(member, self._pread(member, 0, member.compress_size))

    def _check(self, member: zipfile.ZipInfo) -> None:
        """Raise StoreError for what cannot be decoded or cannot be true, before anything of it is read."""
        if member.compress_type == zipfile.ZIP_STORED:
            self._stored_size(member)
            return
        name = member.filename
        if member.flag_bits & ENCRYPTED:
            raise StoreError(f"{self.path}: member {name!r} is encrypted; extract the archive first")
        if member.compress_type != zipfile.ZIP_DEFLATED:
            raise StoreError(
                f"{self.path}: member {name!r} has method {member.compress_type}, neither stored nor deflated"
            )
        if member.file_size > member.compress_size * MOST_EXPANSION + 1024:
            raise StoreError(
                f"{self.path}: member {name!r} claims {member.file_size} bytes, more than it can hold"
            )

    def _member_value(self, member: zipfile.ZipInfo, packed: bytes) -> bytes:
        """Return the value of a member of which the bytes are these."""
        return packed if member.compress_type == zipfile.ZIP_STORED else self._inflate(member, packed)

    def get_ranges(self, key: str, ranges: Sequence[ByteRange]) -> list[Buffer] | None:
        member = self._members.get(key)
        if key in self._changed or member is None or member.compress_type != zipfile.ZIP_STORED:
            return super().get_ranges(key, ranges)
        size = self._stored_size(member)
        pieces: list[Buffer] = []
        for byte_range in ranges:
            start, stop = byte_range.resolve(size)
            pieces.append(self._pread(member, start, max(0, stop - start)))
        return pieces

    def _stored_size(self, member: zipfile.ZipInfo) -> int:
        if member.flag_bits & ENCRYPTED:
            raise StoreError(
                f"{self.path}: member {member.filename!r} is encrypted; extract the archive first"
            )
        if member.file_size != member.compress_size:
            raise StoreError(
                f"{self.path}: member {member.filename!r} has contradictory sizes; the archive is broken"
            )
        return member.file_size

    def _data_offset(self, member: zipfile.ZipInfo) -> int:
        """Return where the member's bytes begin; its local header is looked at once."""
        offset = self._offsets.get(member.filename)
        if offset is None:
            offset = self._note_offset(member, self._read_at(member.header_offset, LOCAL_HEADER.size))
        return offset

    def _note_offset(self, member: zipfile.ZipInfo, header: bytes) -> int:
        if len(header) < LOCAL_HEADER.size or header[:4] != b"PK\x03\x04":
            raise StoreError(f"{self.path}: the header of member {member.filename!r} is broken")
        fields = LOCAL_HEADER.unpack(header[: LOCAL_HEADER.size])
        offset: int = member.header_offset + LOCAL_HEADER.size + fields[9] + fields[10]
        if offset + member.compress_size > self._size:
            raise StoreError(
                f"{self.path}: member {member.filename!r} reaches past the end; the file is truncated"
            )
        self._offsets[member.filename] = offset
        return offset

    def _read_at(self, offset: int, size: int) -> bytes:
        """Return ``size`` bytes of the file, fewer at its end."""
        data = os.pread(self._fd, size, offset)
        while len(data) < size and (more := os.pread(self._fd, size - len(data), offset + len(data))):
            data += more
        return data

    def _pread(self, member: zipfile.ZipInfo, start: int, size: int) -> bytes:
        begin = self._data_offset(member) + start
        try:
            data = self._read_at(begin, size)
        except StoreError:
            raise
        except OSError as error:
            raise StoreError(f"{self.path} cannot be read: {error.strerror}", error.errno) from error
        if len(data) != size:
            raise StoreError(f"{self.path}: member {member.filename!r} is cut short; the file is truncated")
        return data

    def _inflate(self, member: zipfile.ZipInfo, packed: bytes) -> bytes:
        name = member.filename
        decoder = zlib.decompressobj(-15)
        try:
            data = decoder.decompress(packed, member.file_size + 1)
        except zlib.error as error:
            raise StoreError(f"{self.path}: member {name!r} is broken: {error}") from error
        if len(data) != member.file_size or zlib.crc32(data) != member.CRC:
            raise StoreError(
                f"{self.path}: member {name!r} is broken: size or checksum do not agree with the directory"
            )
        return data

    def size(self, key: str) -> int | None:
        if key in self._changed:
            value = self._changed[key]
            return None if value is None else len(value)
        member = self._members.get(key)
        return None if member is None else member.file_size

    def stamp(self, key: str) -> Hashable | None:
        if key in self._changed:
            return None if self._changed[key] is None else self._stamps[key]
        return IMMUTABLE if key in self._members else None

    # -- listing -----------------------------------------------------------------------------------------------

    def _keys(self) -> list[str]:
        if not self._changed:
            return list(self._members)
        with self._lock:
            names = {**dict.fromkeys(self._members), **dict.fromkeys(self._changed)}
            return [name for name in names if self._changed.get(name, b"") is not None]

    def list_dir(self, prefix: str = "") -> Listing:
        if self._changed:
            return list_keys(self.list_prefix(prefix), prefix)
        if self._listing is None:
            self._listing = _index(self._members)
        return self._listing.get(prefix, Listing([], []))

    def list_prefix(self, prefix: str = "") -> Iterator[str]:
        start = prefix + "/" if prefix else ""
        return iter([key for key in self._keys() if key.startswith(start)])

    def usage(self, prefix: str = "") -> Usage:
        keys = list(self.list_prefix(prefix))
        members = [self._members[key] for key in keys if key in self._members and key not in self._changed]
        nbytes = sum(m.compress_size for m in members) + sum(
            len(self._changed.get(key) or b"") for key in keys
        )
        try:
            modified: float | None = os.stat(self.path).st_mtime
        except OSError:
            modified = None
        return Usage(len(keys), nbytes, modified)

    # -- writing -----------------------------------------------------------------------------------------------

    def set(self, key: str, value: Buffer) -> None:
        if self.read_only:
            raise self._refuse(f"writing {key!r}")
        with self._lock:
            self._changed[check_key(key)] = bytes(value)
            self._count += 1
            self._stamps[key] = self._count
            self._dirty = True

    def delete(self, key: str) -> None:
        if self.read_only:
            raise self._refuse(f"deleting {key!r}")
        with self._lock:
            if key in self._members or key in self._changed:
                self._changed[key] = None
                self._dirty = True

    def flush(self) -> None:
        """Write what was set and deleted to the file, as one atomic step."""
        with self._lock:
            if not self._dirty:
                return
            directory = os.path.dirname(self.path)
            temporary = None
            try:
                os.makedirs(directory, exist_ok=True)
                fd, temporary = tempfile.mkstemp(prefix=".zarrfs-writing-", suffix=".zip", dir=directory)
                with (
                    os.fdopen(fd, "wb") as file,
                    zipfile.ZipFile(file, "w", zipfile.ZIP_STORED, allowZip64=True) as out,
                ):
                    for key in self._keys():
                        value = self.get(key)
                        if value is not None:
                            out.writestr(zipfile.ZipInfo(key, self._date(key)), value)
                os.chmod(temporary, 0o644)
                os.replace(temporary, self.path)
                temporary = None
            except OSError as error:
                raise StoreError(f"{self.path} cannot be written: {error.strerror}", error.errno) from error
            finally:
                if temporary is not None:
                    with suppress(OSError):
                        os.unlink(temporary)
            self._release()
            self._changed, self._members, self._offsets, self._listing = {}, {}, {}, None
            self._open()
            self._dirty = False

    def _date(self, key: str) -> tuple[int, int, int, int, int, int]:
        member = self._members.get(key)
        return member.date_time if member is not None and key not in self._changed else (1980, 1, 1, 0, 0, 0)

    def _release(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def close(self) -> None:
        self.flush()
        self._release()

    def __del__(self) -> None:
        # Nothing is lost to those who forget to close.
        with suppress(Exception):
            self.close()


_open_for_writing: weakref.WeakSet[ZipStore] = weakref.WeakSet()


@atexit.register
def _close_all() -> None:
    for store in list(_open_for_writing):
        store.close()


def _index(members: dict[str, zipfile.ZipInfo]) -> dict[str, Listing]:
    """Return the listing of every directory, made in one pass over the names."""
    keys: dict[str, set[str]] = {}
    prefixes: dict[str, set[str]] = {}
    for name in members:
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
