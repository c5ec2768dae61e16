"""Adapters for stores of zarr-python 3.

This module does not import zarr-python unless the caller has already imported it to create a store. The stores of
zarr-python are asynchronous. They are called on the event loop of zarr-python, because their file systems and
connections belong to it.
"""

from __future__ import annotations

import errno
import re
import sys
from collections.abc import Callable, Coroutine, Hashable, Iterator, Sequence
from typing import Any

from zarrfs.engine.stores.base import DOCUMENT_NAMES, Buffer, ByteRange, Listing, Store, check_key
from zarrfs.engine.stores.local.store import LocalStore
from zarrfs.engine.stores.memory import list_keys
from zarrfs.errors import ServerError, StoreError

__all__ = ["ZarrPythonStore", "adapt_zarr_python"]

MAX_CONCURRENT_REQUESTS = 16
"""The maximum number of concurrent requests to a store that can be remote."""

LOW_LATENCY_STORES = ("MemoryStore", "ZipStore", "GpuMemoryStore")
"""Names of the store classes without network latency."""

ICECHUNK_KEY = re.compile(r"(.*/)?(zarr\.json|c(/\d+)*)")
"""The keys that icechunk can have. It raises errors for all others."""

_UNKNOWN = object()

MISSING_ERRNOS = (errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.ENAMETOOLONG)
"""Errors of file systems that mean that a key is missing."""


def adapt_zarr_python(location: Any) -> tuple[Store, str] | None:
    """Return a store and a path in it for a store, a StorePath, an array or a group of zarr-python 3.

    Returns None for other locations. A LocalStore of zarr-python, and an ObjectStore of a directory, become a
    LocalStore of this package.
    """
    module = sys.modules.get("zarr.abc.store")
    if module is None:
        return None  # zarr-python was not imported, so the location cannot be one of its objects
    if isinstance(location, module.Store):
        return _adapt_store(location), ""
    store_path = getattr(location, "store_path", location)
    is_store_path = type(store_path).__module__.startswith("zarr.") and isinstance(
        getattr(store_path, "store", None), module.Store
    )
    return (_adapt_store(store_path.store), store_path.path) if is_store_path else None


def _adapt_store(store: Any) -> Store:
    if type(store).__name__ == "LocalStore" and type(store).__module__.startswith("zarr."):
        return LocalStore(str(store.root), read_only=store.read_only)
    object_store: Any = getattr(store, "store", None)
    if type(object_store).__name__ == "LocalStore" and type(object_store).__module__.startswith("obstore"):
        return LocalStore(str(object_store.prefix or "/"), read_only=store.read_only)
    return ZarrPythonStore(store)


class ZarrPythonStore(Store):
    """Adapts a store of zarr-python 3, which it does not close. Decoded chunks are not cached: there are no stamps."""

    def __init__(self, store: Any) -> None:
        from zarr.core.buffer import default_buffer_prototype
        from zarr.core.sync import sync

        self._sync: Callable[[Coroutine[Any, Any, Any]], Any] = sync
        self.zarr_store = store
        self._prototype = default_buffer_prototype()
        self.read_only = store.read_only
        self.listable = store.supports_listing
        self.is_remote = type(store).__name__ not in LOW_LATENCY_STORES
        self.concurrency = MAX_CONCURRENT_REQUESTS if self.is_remote else 1
        # The file system of an FsspecStore. Its ``exists`` does not distinguish keys from prefixes.
        self._file_system = getattr(store, "fs", None)
        self._is_object_store = type(store).__name__ == "ObjectStore"
        # icechunk refuses keys and prefixes that do not belong to a node, and chunks of a node that does not exist yet.
        self._is_icechunk = type(store).__name__ == "IcechunkStore"
        self.documents_before_chunks = self._is_icechunk
        # Stores that compute their values, such as tifffile's, support no ranges. There is no attribute for this.
        self._supports_ranges = True
        self._run("opening", store._ensure_open())

    @property
    def url(self) -> str:
        return str(self.zarr_store)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ZarrPythonStore) and bool(self.zarr_store == other.zarr_store)

    def __hash__(self) -> int:
        return hash(self.url)

    def __reduce__(self) -> tuple[Any, ...]:
        return ZarrPythonStore, (self.zarr_store,)

    def _run(self, operation: str, coroutine: Coroutine[Any, Any, Any]) -> Any:
        if self._closed:
            coroutine.close()
            self._check_open()
        try:
            return self._sync(coroutine)
        except Exception as error:
            kind = ServerError if self.is_remote else StoreError
            raise kind(f"{self.url}: {operation} failed: {self._reason(error)}") from error

    def _reason(self, error: Exception) -> str:
        """Return the text of an error of the store."""
        return f"{type(error).__name__}: {error}"

    # -- reading -----------------------------------------------------------------------------------------------

    def get(self, key: str) -> Buffer | None:
        self._check_open()
        if not self._is_possible(key):
            return None
        value = self._run(f"reading {key!r}", self._get_or_none(key))
        return None if value is None else _bytes(value)

    async def _get_or_none(self, key: str, request: Any = None) -> Any:
        try:
            return await self.zarr_store.get(key, self._prototype, request)
        except KeyError:  # of stores for keys that no node can have, such as documents of v2 in icechunk
            return None
        except OSError as error:
            if error.errno in MISSING_ERRNOS:
                return None
            raise
        except ValueError:
            if self._is_object_store:
                return None  # obstore refuses keys that no object can have
            raise

    def get_ranges(self, key: str, ranges: Sequence[ByteRange]) -> list[Buffer] | None:
        from asyncio import gather

        from zarr.abc.store import RangeByteRequest

        if not self._supports_ranges:
            return super().get_ranges(key, ranges)
        first = self._get_beginning(key, ranges)
        if first is not _UNKNOWN:
            return None if first is None else [first]
        # Ranges are clipped by the size, because stores differ for requests past the end of a value.
        size = self.size(key)
        if size is None:
            return None
        bounds = [byte_range.resolve(size) for byte_range in ranges]

        async def read() -> list[Any]:
            requests = [RangeByteRequest(start, stop) for start, stop in bounds if start < stop]
            return await gather(*(self.zarr_store.get(key, self._prototype, request) for request in requests))

        try:
            values = iter(self._run(f"reading {key!r}", read()))
        except StoreError as error:
            if not isinstance(error.__cause__, NotImplementedError):
                raise
            self._supports_ranges = False
            return super().get_ranges(key, ranges)
        buffers: list[Buffer] = []
        for start, stop in bounds:
            value = next(values) if start < stop else None
            if value is None and start < stop:
                return None  # the value was deleted between the requests
            buffers.append(b"" if value is None else _bytes(value))
        return buffers

    def _get_beginning(self, key: str, ranges: Sequence[ByteRange]) -> Any:
        """Return the bytes of a single range at the beginning of a document by one request, without the size. None if
        the key is missing, ``_UNKNOWN`` for other ranges, and if the size is needed to tell what is there.
        """
        from zarr.abc.store import RangeByteRequest

        is_document = key.rpartition("/")[2] in DOCUMENT_NAMES
        if not is_document or len(ranges) != 1 or ranges[0].start != 0 or not ranges[0].length:
            return _UNKNOWN
        self._check_open()
        if not self._is_possible(key):
            return None
        length = ranges[0].length
        # icechunk ends the request of a range past the end by a panic. It has parsed the documents itself.
        request = None if self._is_icechunk else RangeByteRequest(0, length)
        try:
            value = self._sync(self._get_or_none(key, request))
        except Exception:  # such as a range of an empty value; the request for the size raises other errors
            return _UNKNOWN
        return None if value is None else memoryview(_bytes(value))[:length]

    def stamp(self, key: str) -> Hashable | None:
        self._check_open()
        return None

    def _is_possible(self, key: str) -> bool:
        """Return whether the store can have a key. Some stores raise errors for other keys."""
        return "\0" not in key and (not self._is_icechunk or ICECHUNK_KEY.fullmatch(key) is not None)

    def size(self, key: str) -> int | None:
        self._check_open()
        if not self._is_possible(key):
            return None
        size: int | None = self._run(f"looking up {key!r}", self._get_size(key))
        return size

    async def _get_size(self, key: str) -> int | None:
        try:
            if self._file_system is not None:
                entry = await self._file_system._info(self._file_system_path(key))
                return int(entry["size"]) if entry["type"] == "file" else None
            if not await self.zarr_store.exists(key):
                return None
            return int(await self.zarr_store.getsize(key))
        except KeyError:
            return None
        except OSError as error:
            if error.errno in MISSING_ERRNOS or isinstance(error, FileNotFoundError):
                return None
            raise
        except ValueError:
            if self._is_object_store:
                return None
            raise

    def _file_system_path(self, key: str) -> str:
        """Return the path of a key in the fsspec file system."""
        return f"{self.zarr_store.path.rstrip('/')}/{key}".rstrip("/")

    # -- listing -----------------------------------------------------------------------------------------------

    def list_dir(self, prefix: str = "") -> Listing:
        if not self.is_remote:
            return list_keys(self.list_prefix(prefix), prefix)
        names = self._run(f"listing {prefix!r}", self._list_names(prefix))
        return Listing(
            sorted({name for name, is_key in names if is_key}),
            sorted({name for name, is_key in names if not is_key}),
        )

    async def _list_names(self, prefix: str) -> list[tuple[str, bool]]:
        """Return ``(name, is_key)`` for each name one level below a prefix. zarr-python lists only the names."""
        from asyncio import Semaphore, gather

        if self._file_system is not None:
            try:
                entries = await self._file_system._ls(self._file_system_path(prefix), detail=True)
            except (FileNotFoundError, NotADirectoryError):
                return []
            return [
                (entry["name"].rstrip("/").rpartition("/")[2], entry["type"] == "file") for entry in entries
            ]
        names = [name.strip("/") async for name in self.zarr_store.list_dir(prefix)]
        limit = Semaphore(MAX_CONCURRENT_REQUESTS)

        async def is_key(name: str) -> bool:
            async with limit:
                key = f"{prefix}/{name}" if prefix else name
                return self._is_possible(key) and bool(await self.zarr_store.exists(key))

        return list(zip(names, await gather(*map(is_key, names)), strict=True))

    def list_prefix(self, prefix: str = "") -> Iterator[str]:
        # The prefix ends with a slash, because some stores compare it as text and others as a directory.
        start = f"{prefix}/" if prefix else ""

        async def collect() -> list[str]:
            if self._is_icechunk and prefix and not await self.zarr_store.exists(f"{prefix}/zarr.json"):
                return []
            return [key async for key in self.zarr_store.list_prefix(start)]

        return iter([key for key in self._run(f"listing {prefix!r}", collect()) if key.startswith(start)])

    # -- writing -----------------------------------------------------------------------------------------------

    def set(self, key: str, value: Buffer) -> None:
        if self.read_only:
            raise self._read_only_error(f"writing {key!r}")
        buffer = self._prototype.buffer.from_bytes(bytes(value))
        self._run(f"writing {key!r}", self.zarr_store.set(check_key(key), buffer))

    def delete(self, key: str) -> None:
        if self.read_only:
            raise self._read_only_error(f"deleting {key!r}")
        if self.exists(key):
            if not self.zarr_store.supports_deletes:
                raise StoreError(
                    f"{self.url}: {key!r} cannot be deleted: this store does not support deletion"
                )
            self._run(f"deleting {key!r}", self.zarr_store.delete(key))


def _bytes(value: Any) -> Buffer:
    data: bytes = value.to_bytes()
    return data
