"""Stores of zarr-python 3 as stores of this package.

zarr-python is imported by whoever made the store, never here. Its stores are asynchronous: calls go to the event loop
that zarr-python itself uses, on which their file systems and connections live.
"""

from __future__ import annotations

import errno
import sys
from collections.abc import Callable, Coroutine, Hashable, Iterator, Sequence
from typing import Any

from zarrfs.engine.stores.base import Buffer, ByteRange, Listing, Store, check_key
from zarrfs.engine.stores.local import LocalStore
from zarrfs.engine.stores.memory import list_keys
from zarrfs.errors import StoreError

__all__ = ["ZarrPythonStore", "adapt_zarr_python"]

REMOTE_CONCURRENCY = 16
"""How many requests are in flight at once to a store that may be remote."""

IN_MEMORY_OR_FILE = ("MemoryStore", "ZipStore", "GpuMemoryStore")
"""Classes of stores that answer at once."""

ABSENT = (errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.ENAMETOOLONG)
"""Errors of files that mean that there is no such key."""


def adapt_zarr_python(location: Any) -> tuple[Store, str] | None:
    """Return a store and a path in it for a store, a StorePath, an array or a group of zarr-python 3; None for any
    other location.

    A LocalStore becomes ours, for the same directory.
    """
    module = sys.modules.get("zarr.abc.store")
    if module is None:
        return None  # nobody has imported zarr-python, so that nothing can be of it
    if isinstance(location, module.Store):
        return _adapted(location), ""
    place = getattr(location, "store_path", location)
    is_place = type(place).__module__.startswith("zarr.") and isinstance(
        getattr(place, "store", None), module.Store
    )
    return (_adapted(place.store), place.path) if is_place else None


def _adapted(store: Any) -> Store:
    if type(store).__name__ == "LocalStore" and type(store).__module__.startswith("zarr."):
        return LocalStore(str(store.root), read_only=store.read_only)
    return ZarrPythonStore(store)


class ZarrPythonStore(Store):
    """A store of zarr-python 3, which stays the caller's to close. What is decoded of it is not kept: it has no
    version stamps.
    """

    def __init__(self, store: Any) -> None:
        from zarr.core.buffer import default_buffer_prototype
        from zarr.core.sync import sync

        self._sync: Callable[[Coroutine[Any, Any, Any]], Any] = sync
        self.zarr_store = store
        self._prototype = default_buffer_prototype()
        self.read_only = store.read_only
        self.listable = store.supports_listing
        self.concurrency = 1 if type(store).__name__ in IN_MEMORY_OR_FILE else REMOTE_CONCURRENCY
        # Of its FsspecStore, whose ``exists`` does not tell a key from a prefix.
        self._files = getattr(store, "fs", None)
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

    def _run(self, what: str, call: Coroutine[Any, Any, Any]) -> Any:
        if self._closed:
            call.close()
            self._check_open()
        try:
            return self._sync(call)
        except Exception as error:
            raise StoreError(f"{self.url}: {what} failed: {type(error).__name__}: {error}") from error

    # -- reading -----------------------------------------------------------------------------------------------

    def get(self, key: str) -> Buffer | None:
        if "\0" in key:
            return None  # no store can hold it, and some raise
        value = self._run(f"reading {key!r}", self._find(key))
        return None if value is None else _bytes(value)

    async def _find(self, key: str) -> Any:
        try:
            return await self.zarr_store.get(key, self._prototype)
        except OSError as error:
            if error.errno in ABSENT:
                return None
            raise

    def get_ranges(self, key: str, ranges: Sequence[ByteRange]) -> list[Buffer] | None:
        from asyncio import gather

        from zarr.abc.store import RangeByteRequest

        # By the size, so that no request reaches past the end: stores differ in what they do then.
        size = self.size(key)
        if size is None:
            return None
        bounds = [byte_range.resolve(size) for byte_range in ranges]

        async def read() -> list[Any]:
            requests = [RangeByteRequest(start, stop) for start, stop in bounds if start < stop]
            return await gather(*(self.zarr_store.get(key, self._prototype, request) for request in requests))

        values = iter(self._run(f"reading {key!r}", read()))
        pieces: list[Buffer] = []
        for start, stop in bounds:
            value = next(values) if start < stop else None
            if value is None and start < stop:
                return None  # it has been deleted
            pieces.append(b"" if value is None else _bytes(value))
        return pieces

    def stamp(self, key: str) -> Hashable | None:
        self._check_open()
        return None

    def size(self, key: str) -> int | None:
        found: int | None = self._run(f"looking for {key!r}", self._find_size(key))
        return found

    async def _find_size(self, key: str) -> int | None:
        try:
            if self._files is not None:
                entry = await self._files._info(self._place(key))
                return int(entry["size"]) if entry["type"] == "file" else None
            if not await self.zarr_store.exists(key):
                return None
            return int(await self.zarr_store.getsize(key))
        except OSError as error:
            if error.errno in ABSENT or isinstance(error, FileNotFoundError):
                return None
            raise

    def _place(self, key: str) -> str:
        """Return the path of a key in the file system of fsspec."""
        return f"{self.zarr_store.path.rstrip('/')}/{key}".rstrip("/")

    # -- listing -----------------------------------------------------------------------------------------------

    def list_dir(self, prefix: str = "") -> Listing:
        if self.concurrency == 1:
            return list_keys(self.list_prefix(prefix), prefix)
        names = self._run(f"listing {prefix!r}", self._names(prefix))
        return Listing(
            sorted({name for name, is_key in names if is_key}),
            sorted({name for name, is_key in names if not is_key}),
        )

    async def _names(self, prefix: str) -> list[tuple[str, bool]]:
        """Return the names one level below a prefix, and which are keys: zarr-python only lists names."""
        from asyncio import Semaphore, gather

        if self._files is not None:
            try:
                entries = await self._files._ls(self._place(prefix), detail=True)
            except (FileNotFoundError, NotADirectoryError):
                return []
            return [
                (entry["name"].rstrip("/").rpartition("/")[2], entry["type"] == "file") for entry in entries
            ]
        names = [name.strip("/") async for name in self.zarr_store.list_dir(prefix)]
        limit = Semaphore(REMOTE_CONCURRENCY)

        async def is_key(name: str) -> bool:
            async with limit:
                return bool(await self.zarr_store.exists(f"{prefix}/{name}" if prefix else name))

        return list(zip(names, await gather(*map(is_key, names)), strict=True))

    def list_prefix(self, prefix: str = "") -> Iterator[str]:
        # With a slash, as some of its stores take the prefix as text and others as a directory.
        start = f"{prefix}/" if prefix else ""

        async def collect() -> list[str]:
            return [key async for key in self.zarr_store.list_prefix(start)]

        return iter([key for key in self._run(f"listing {prefix!r}", collect()) if key.startswith(start)])

    # -- writing -----------------------------------------------------------------------------------------------

    def set(self, key: str, value: Buffer) -> None:
        if self.read_only:
            raise self._refuse(f"writing {key!r}")
        made = self._prototype.buffer.from_bytes(bytes(value))
        self._run(f"writing {key!r}", self.zarr_store.set(check_key(key), made))

    def delete(self, key: str) -> None:
        if self.read_only:
            raise self._refuse(f"deleting {key!r}")
        if not self.zarr_store.supports_deletes:
            raise StoreError(f"{self.url}: deleting {key!r} is not possible in this kind of store")
        if self.exists(key):
            self._run(f"deleting {key!r}", self.zarr_store.delete(key))


def _bytes(value: Any) -> Buffer:
    data: bytes = value.to_bytes()
    return data
