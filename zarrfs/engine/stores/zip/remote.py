"""A zip file that lies in another store, read in parts: its directory once, then of each member no more than is asked.

fsspec's own ``zip::`` reads ahead by megabytes, whatever is wanted, and decodes members from their beginning.
"""

from __future__ import annotations

import io
import zipfile
from array import array
from collections.abc import Callable, Sequence

from zarrfs.engine.stores.base import Buffer, ByteRange, Store
from zarrfs.engine.stores.zip.archive import ArchiveStore
from zarrfs.engine.stores.zip.records import LOCAL_HEADER, Member
from zarrfs.errors import LocationError, StoreError

__all__ = ["RemoteZipStore"]

TAIL = 64 << 10
"""How much of the end is fetched at once: the end record, and the directory of about 500 members."""

SLACK = 64
"""Bytes that the extra field of a local header may be longer than that of the directory, to save a request."""


class RemoteZipStore(ArchiveStore):
    """Values in a zip file that is the value of ``key`` in ``store``, which this store then owns. Read-only.

    Opening takes three requests (one more for a directory of more than ``TAIL`` bytes), a member one, ranges of a
    stored member one each (and one before the first time).
    """

    read_only = True

    def __init__(self, store: Store, key: str) -> None:
        super().__init__()
        self.starts: array[int] = array("Q")
        self._store, self._key = store, key
        self.concurrency = store.concurrency
        self._where = self.url
        size = store.size(key)
        if size is None:
            raise LocationError(f"{self.url}: there is no such file")
        self._state.size = size
        with self._opening(), _Tail(size, self.read_at) as file, zipfile.ZipFile(file) as archive:
            infos, end = archive.infolist(), archive.start_dir
        self._take(infos, self, end, origins=True)

    @property
    def url(self) -> str:
        return f"zip::{self._store.url}/{self._key}"

    def __reduce__(self) -> tuple[object, ...]:
        return RemoteZipStore, (self._store, self._key)

    def close(self) -> None:
        super().close()
        self._store.close()

    # -- reading -----------------------------------------------------------------------------------------------

    def read_at(self, offset: int, size: int) -> bytes:
        """Return ``size`` bytes of the archive, fewer at its end."""
        return bytes(self._read_all([(offset, size)])[0])

    def _read_all(self, spans: Sequence[tuple[int, int]]) -> list[Buffer]:
        pieces = self._store.get_ranges(self._key, [ByteRange(*span) for span in spans])
        if pieces is None:
            raise StoreError(f"{self.url} is gone: it was there when it was opened; open it anew")
        return pieces

    def _value(self, key: str, member: Member) -> bytes:
        if member.data >= 0 or member.origin is None:
            return super()._value(key, member)
        self._check(key, member)
        # Its local header and itself at once; the header is longer than the directory says, if at all, by its extra.
        reach = LOCAL_HEADER.size + len(member.origin.name) + len(member.origin.extra) + SLACK
        start, stop = member.offset, min(self._state.size, member.offset + reach + member.packed)
        read = self.read_at(start, stop - start)
        self._note_offset(key, member, read)
        begin = member.data - start
        if begin + member.packed > len(read):
            return super()._value(key, member)
        return self._decoded(key, member, read[begin : begin + member.packed])

    def _pieces(self, key: str, member: Member, ranges: Sequence[ByteRange]) -> list[Buffer]:
        if member.method != zipfile.ZIP_STORED:
            return super()._pieces(key, member, ranges)
        self._check(key, member)
        spans = [byte_range.resolve(member.size) for byte_range in ranges]
        if member.data < 0 and 2 * sum(stop - start for start, stop in spans) > member.size:
            value = memoryview(self._value(key, member))  # With all of it, its header costs no request.
            return [value[start:stop] for start, stop in spans]
        begin = self._data_offset(key, member)
        wanted = [(begin + start, stop - start) for start, stop in spans if stop > start]
        found = iter(self._read_all(wanted) if wanted else ())
        pieces: list[Buffer] = []
        for start, stop in spans:
            piece = next(found) if stop > start else b""
            if len(piece) != max(0, stop - start):
                raise StoreError(f"{self.url}: member {key!r} is cut short; the file is truncated")
            pieces.append(piece)
        return pieces


class _Tail(io.RawIOBase):
    """A file of which the end is read at once, for the directory; the rest as it is asked for."""

    def __init__(self, size: int, read_at: Callable[[int, int], bytes]) -> None:
        super().__init__()
        self._size, self._read_at, self._position = size, read_at, 0
        self._start = max(0, size - TAIL)
        self._kept = read_at(self._start, size - self._start) if size else b""

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        position = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size}[whence]
        if position < 0:
            raise OSError(22, "a position before the beginning")
        self._position = position
        return position

    def read(self, size: int | None = -1) -> bytes:
        left = max(0, self._size - self._position)
        size = left if size is None or size < 0 else min(size, left)
        at = self._position
        if at >= self._start:
            data = self._kept[at - self._start : at - self._start + size]
        else:
            data = self._read_at(at, size) if size else b""
        self._position += len(data)
        return data
