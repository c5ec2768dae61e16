"""A zip file that lies in another store, read in parts: its directory once, then of each member no more than is asked.

fsspec's own ``zip::`` reads ahead by megabytes, whatever is wanted, and decodes members from their beginning.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable, Sequence

from zarrfs.engine.stores.base import Buffer, ByteRange, Store
from zarrfs.engine.stores.zip import LOCAL_HEADER, ZipStore
from zarrfs.errors import LocationError, StoreError

__all__ = ["RemoteZipStore"]

TAIL = 64 << 10
"""How much of the end is fetched at once: the end record, and the directory of about 500 members."""

SLACK = 64
"""Bytes that the extra field of a local header may be longer than that of the directory, to save a request."""


class RemoteZipStore(ZipStore):
    """Values in a zip file that is the value of ``key`` in ``store``, which this store then owns. Read-only.

    Opening takes three requests (one more for a directory of more than ``TAIL`` bytes), a member one, ranges of a
    stored member one each (and one before the first time).
    """

    def __init__(self, store: Store, key: str) -> None:
        self._store, self._key = store, key
        self.concurrency = store.concurrency
        super().__init__(f"/{key}", "r")
        self.path = self.url

    @property
    def url(self) -> str:
        return f"zip::{self._store.url}/{self._key}"

    def __reduce__(self) -> tuple[object, ...]:
        return RemoteZipStore, (self._store, self._key)

    def _load(self) -> list[zipfile.ZipInfo]:
        size = self._store.size(self._key)
        if size is None:
            raise LocationError(f"{self.url}: there is no such file")
        self._size = size
        with _Tail(size, self._read_at) as file, zipfile.ZipFile(file) as archive:
            return archive.infolist()

    def _release(self) -> None:
        self._store.close()

    def __del__(self) -> None:
        """Leave the store to its own end."""

    # -- reading -----------------------------------------------------------------------------------------------

    def _read_at(self, offset: int, size: int) -> bytes:
        return bytes(self._read_all([(offset, size)])[0])

    def _read_all(self, spans: Sequence[tuple[int, int]]) -> list[Buffer]:
        pieces = self._store.get_ranges(self._key, [ByteRange(*span) for span in spans])
        if pieces is None:
            raise StoreError(f"{self.url} is gone: it was there when it was opened; open it anew")
        return pieces

    def get(self, key: str) -> Buffer | None:
        member = self._members.get(key)
        if member is None or key in self._offsets:
            return super().get(key)
        self._check(member)
        # Its local header and itself at once; the header is longer than the directory says, if at all, by its extra.
        reach = LOCAL_HEADER.size + len(member.orig_filename.encode()) + len(member.extra) + SLACK
        start, stop = (
            member.header_offset,
            min(self._size, member.header_offset + reach + member.compress_size),
        )
        read = self._read_at(start, stop - start)
        begin = self._note_offset(member, read[: LOCAL_HEADER.size]) - start
        if begin + member.compress_size > len(read):
            return super().get(key)
        return self._member_value(member, read[begin : begin + member.compress_size])

    def get_ranges(self, key: str, ranges: Sequence[ByteRange]) -> list[Buffer] | None:
        member = self._members.get(key)
        if member is None or member.compress_type != zipfile.ZIP_STORED:
            return super().get_ranges(key, ranges)
        size = self._stored_size(member)
        spans = [byte_range.resolve(size) for byte_range in ranges]
        if key not in self._offsets and 2 * sum(stop - start for start, stop in spans) > size:
            return super(ZipStore, self).get_ranges(
                key, ranges
            )  # With all of it, its header costs no request.
        begin = self._data_offset(member)
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
