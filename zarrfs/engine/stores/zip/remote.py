"""A zip file in another store, read by byte ranges: the central directory once, then only the requested bytes.

The ``zip::`` protocol of fsspec is not used. It reads ahead by megabytes and decodes members from their beginning.
"""

from __future__ import annotations

import errno
import io
import zipfile
from array import array
from collections.abc import Callable, Sequence

from zarrfs.engine.stores.base import Buffer, ByteRange, Store
from zarrfs.engine.stores.zip.archive import ArchiveState, ArchiveStore
from zarrfs.engine.stores.zip.records import LOCAL_HEADER, Member
from zarrfs.errors import LocationError, StoreError

__all__ = ["RemoteZipStore"]

TAIL_NBYTES = 64 << 10
"""The number of bytes at the end that are fetched first: the end record and the directory of about 500 members."""

EXTRA_FIELD_SLACK_NBYTES = 64
"""How much longer the extra field may be in a local header than in the directory without another request."""


class RemoteZipStore(ArchiveStore):
    """Values in a zip file that is the value of ``key`` in ``store``. Owns ``store``. Read-only.

    Opening takes two requests, and one more if the directory is larger than ``TAIL_NBYTES``. Reading a member takes one
    request. Each range of a stored member takes one request, and the first one another request for the local header.

    Raises LocationError if the key is missing or is not a zip file.
    """

    read_only = True

    def __init__(self, store: Store, key: str) -> None:
        super().__init__()
        self.record_offsets: array[int] = array("Q")
        self._store, self._key = store, key
        self.concurrency = store.concurrency
        self._display_path = self.url
        size = store.size(key)
        if size is None:
            problem = store.missing_container()
            raise LocationError(f"{self.url} does not exist" + (f": {problem}" if problem else ""))
        self._state.size = size
        with (
            self._opening_errors(),
            _TailBufferedFile(size, self.read_at) as file,
            zipfile.ZipFile(file) as archive,
        ):
            infos, end = archive.infolist(), archive.start_dir
        self._load_members(infos, self, end, keep_fields=True)

    @property
    def url(self) -> str:
        return f"zip::{self._store.url}/{self._key}"

    def limit_requests(self, count: int) -> None:
        self._store.limit_requests(count)
        self.concurrency = self._store.concurrency

    def __reduce__(self) -> tuple[object, ...]:
        return RemoteZipStore, (self._store, self._key)

    def close(self) -> None:
        super().close()
        self._state = ArchiveState()  # no operation finds a member anymore
        self._store.close()

    # -- reading -----------------------------------------------------------------------------------------------

    def read_at(self, offset: int, size: int) -> bytes:
        """Return ``size`` bytes of the archive, fewer at its end."""
        return bytes(self._fetch([(offset, size)])[0])

    def _fetch(self, ranges: Sequence[tuple[int, int]]) -> list[Buffer]:
        """Return the bytes of ``(offset, size)`` ranges of the archive."""
        buffers = self._store.get_ranges(self._key, [ByteRange(*byte_range) for byte_range in ranges])
        if buffers is None:
            raise StoreError(f"{self.url} was deleted after it was opened; open it again")
        return buffers

    def _read_member(self, key: str, member: Member) -> bytes:
        if member.data_offset >= 0 or member.directory_fields is None:
            return super()._read_member(key, member)
        self._check_member(key, member)
        # The local header and the data are fetched by one request. The size of the header is an estimate, because its
        # extra field can be longer than the one in the central directory.
        header_nbytes = (
            LOCAL_HEADER.size
            + len(member.directory_fields.name)
            + len(member.directory_fields.extra)
            + EXTRA_FIELD_SLACK_NBYTES
        )
        start = member.header_offset
        stop = min(self._state.size, start + header_nbytes + member.compressed_size)
        data = self.read_at(start, stop - start)
        self._check_local_header(key, member, data)
        first = member.data_offset - start
        if first + member.compressed_size > len(data):
            return super()._read_member(key, member)
        return self._decompress(key, member, data[first : first + member.compressed_size])

    def _read_member_ranges(self, key: str, member: Member, ranges: Sequence[ByteRange]) -> list[Buffer]:
        if member.method != zipfile.ZIP_STORED:
            return super()._read_member_ranges(key, member, ranges)
        self._check_member(key, member)
        bounds = [byte_range.resolve(member.size) for byte_range in ranges]
        if member.data_offset < 0 and 2 * sum(stop - start for start, stop in bounds) > member.size:
            # Reading the whole member needs no separate request for the local header.
            value = memoryview(self._read_member(key, member))
            return [value[start:stop] for start, stop in bounds]
        first = self._data_offset(key, member)
        requests = [(first + start, stop - start) for start, stop in bounds if stop > start]
        results = iter(self._fetch(requests) if requests else ())
        buffers: list[Buffer] = []
        for start, stop in bounds:
            buffer = next(results) if stop > start else b""
            if len(buffer) != max(0, stop - start):
                raise StoreError(
                    f"{self.url}: member {key!r} has {len(buffer)} of {stop - start} requested bytes; the file is "
                    "truncated"
                )
            buffers.append(buffer)
        return buffers


class _TailBufferedFile(io.RawIOBase):
    """A file object for ``zipfile``. The end of the file is read in advance, other parts are read on request."""

    def __init__(self, size: int, read_at: Callable[[int, int], bytes]) -> None:
        super().__init__()
        self._size, self._read_at, self._position = size, read_at, 0
        self._start = max(0, size - TAIL_NBYTES)
        self._tail = read_at(self._start, size - self._start) if size else b""

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        position = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size}[whence]
        if position < 0:
            raise OSError(errno.EINVAL, f"the position {position} is negative")
        self._position = position
        return position

    def read(self, size: int | None = -1) -> bytes:
        remaining = max(0, self._size - self._position)
        size = remaining if size is None or size < 0 else min(size, remaining)
        position = self._position
        if position >= self._start:
            data = self._tail[position - self._start : position - self._start + size]
        else:
            data = self._read_at(position, size) if size else b""
        self._position += len(data)
        return data
