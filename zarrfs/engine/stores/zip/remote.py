"""A zip file in another store, read by byte ranges: the central directory once, then only the requested bytes.

The ``zip::`` protocol of fsspec is not used. It reads ahead by megabytes and decodes members from their beginning.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence

from zarrfs.engine.stores.base import ByteRange, RequestStatistics, Store
from zarrfs.engine.stores.zip.archive import ArchiveState, ArchiveStore
from zarrfs.engine.stores.zip.directory import Directory, Member, Members
from zarrfs.engine.stores.zip.records import read_end_record
from zarrfs.engine.stores.zip.single_file import has_documents_first, is_document
from zarrfs.errors import LocationError, StoreError

__all__ = ["RemoteZipStore"]

DOCUMENTS_NBYTES = 64 << 10
"""The number of bytes at the beginning of a large directory in which all metadata documents are expected."""

FORMAT_2_NAMES = (".zarray", ".zgroup", ".zattrs", ".zmetadata")

TAIL_NBYTES = 64 << 10
"""The number of bytes at the end that are fetched first: the end record and the directory of about 500 members."""


class RemoteZipStore(ArchiveStore):
    """Values in a zip file that is the value of ``key`` in ``store``. Owns ``store``. Read-only.

    Opening takes two requests, and one more for each 16 MiB of the directory if it is larger than ``TAIL_NBYTES``. If
    the comment states ``jsonFirst`` (``single_file.py``), opening takes three requests, and such a directory is read
    when a chunk or a listing is requested first.

    Reading a member takes one request. Each range of a stored member takes one request, and the first one another
    request for the local header.

    Raises LocationError if the key is missing or is not a zip file.
    """

    read_only = True

    def __init__(self, store: Store, key: str) -> None:
        super().__init__()
        self._store, self._key = store, key
        self.concurrency = store.concurrency
        self.is_remote = store.is_remote
        self._display_path = self.url
        size = store.size(key)
        if size is None:
            problem = store.missing_container()
            raise LocationError(f"{self.url} does not exist" + (f": {problem}" if problem else ""))
        self._file, self._file_size = RemoteFile(store, key, self.url), size
        self._loading = threading.Lock()
        with self._opening_errors():
            self._file.fetch_tail(size)
        self._documents = self._read_documents()
        if self._documents is None:
            self._state.members = Members(self._read_directory(self._file, size))
        self._file.forget_tail()

    def _read_documents(self) -> Directory | None:
        """Return the beginning of the directory if it has all metadata documents and the rest has not been fetched."""
        with self._opening_errors():
            end = read_end_record(
                lambda start, size: self._file.read_ranges([(start, size)])[0], self._file_size
            )
        if not has_documents_first(end.comment) or end.start >= self._file_size - TAIL_NBYTES:
            return None
        directory = self._read_directory(self._file, self._file_size, DOCUMENTS_NBYTES)
        keys = [key for key, _ in directory.members()]
        return directory if keys and not is_document(keys[-1]) else None

    def _members(self) -> Members:
        with self._loading:
            if self._documents is not None and not self._closed:
                self._state.members = Members(self._read_directory(self._file, self._file_size))
                self._documents = None
        return self._state.members

    def _find(self, key: str) -> Member | None:
        documents = self._documents
        if documents is None:
            return self._members().get(key)
        if key.rpartition("/")[2] in FORMAT_2_NAMES:
            return None  # single-file OME-Zarr has format 3 only
        if not is_document(key):
            return self._members().get(key)
        return Members(documents).get(key)

    @property
    def url(self) -> str:
        return f"zip::{self._store.url}/{self._key}"

    def limit_requests(self, count: int) -> None:
        self._store.limit_requests(count)
        self.concurrency = self._store.concurrency

    def repeat_requests(self, count: int) -> None:
        self._store.repeat_requests(count)

    @property
    def request_statistics(self) -> RequestStatistics:
        return self._store.request_statistics

    def __reduce__(self) -> tuple[object, ...]:
        return RemoteZipStore, (self._store, self._key)

    def close(self) -> None:
        super().close()
        self._documents = None
        self._state = ArchiveState()  # no operation finds a member anymore
        self._store.close()


class RemoteFile:
    """The value of a key in a store, as a file. While an archive is opened, it holds the end of the file."""

    def __init__(self, store: Store, key: str, url: str) -> None:
        self._store, self._key, self._url = store, key, url
        self._tail, self._tail_start = b"", 0

    def fetch_tail(self, file_size: int) -> None:
        """Read the end of a file of this size in advance."""
        start = max(0, file_size - TAIL_NBYTES)
        if file_size:
            (self._tail,) = self.read_ranges([(start, file_size - start)])
        self._tail_start = start

    def forget_tail(self) -> None:
        """Release the end of the file."""
        self._tail = b""

    def read_ranges(self, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        """Return the bytes of ``(offset, size)`` ranges, fewer at the end of the file. Raises StoreError."""
        if self._tail and all(offset >= self._tail_start for offset, _ in ranges):
            return [
                self._tail[offset - self._tail_start : offset - self._tail_start + size]
                for offset, size in ranges
            ]
        buffers = self._store.get_ranges(self._key, [ByteRange(*byte_range) for byte_range in ranges])
        if buffers is None:
            raise StoreError(f"{self._url} was deleted after it was opened; open it again")
        return [bytes(buffer) for buffer in buffers]
