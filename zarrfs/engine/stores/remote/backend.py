"""The operations that a remote store needs (``Backend``), and these through the file systems of fsspec
(``FileSystemBackend``). Subclasses of the latter adapt single protocols; ``object_backend.py`` uses another library.

Backends return None for a missing key and raise the errors of the libraries otherwise. ``store.py`` converts these to
StoreError.
"""

from __future__ import annotations

import asyncio
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine, Hashable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from typing import Any, NamedTuple, TypeVar
from urllib.parse import urlsplit

import numpy as np

from zarrfs.engine.stores.base import Buffer, ByteRange, ValueTooLargeError, check_key
from zarrfs.engine.stores.remote.presence import Presence, classify_error, names_missing_container
from zarrfs.engine.stores.remote.request_limit import RequestLimit
from zarrfs.errors import KeyNameError, StoreError

__all__ = [
    "MAX_UNDIVIDED_NBYTES",
    "PART_NBYTES",
    "Backend",
    "ChangedValueError",
    "Entry",
    "FileSystemBackend",
    "ShortReadError",
    "Version",
    "check_length",
    "gather",
    "of_one_version",
    "read_in_parts",
]

T = TypeVar("T")

URL_DELIMITERS = set("?#\n\r\t")
"""Characters that some file systems parse as delimiters of a URL or remove."""

VERSION_FIELDS = ("ETag", "etag", "e_tag", "generation", "md5Hash", "content_md5", "Content-MD5", "Digest")
"""Fields of ``info`` that change whenever the value changes. Times are not used; they can have whole seconds."""


MAX_UNDIVIDED_NBYTES = 8 << 20
"""Larger ranges are read in parts, on several connections: servers send 50 to 100 MB/s on each."""

PART_NBYTES = 4 << 20
"""The size of the parts in which a range is read. On one connection the latency takes a fifth of their time or less."""

MAX_VERSIONS = 4
"""How often the parts of a value are requested if it is replaced meanwhile."""


class Entry(NamedTuple):
    """An entry of a directory: the last part of its name. ``size`` is 0 if it is unknown."""

    name: str
    is_directory: bool
    size: int


class Version(NamedTuple):
    """What identifies the version of a value for a server: its ETag, and what Google calls its generation."""

    e_tag: str | None
    generation: str | None


class ShortReadError(Exception):
    """A server has sent fewer bytes than the value has according to its size."""


def check_length(start: int, expected: int, found: int) -> None:
    """Raise ShortReadError unless a response has the number of bytes that were requested from ``start``."""
    if found != expected:
        raise ShortReadError(
            f"requested {expected} bytes from {start}, found {found}; the value has changed or the connection was "
            "lost: try again"
        )


class ChangedValueError(Exception):
    """A value was replaced while its parts were read, or between the read and the write of a change."""


async def gather(coroutines: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """Return the results of coroutines, which run at the same time. The others are cancelled if one of them fails."""
    tasks = [asyncio.ensure_future(coroutine) for coroutine in coroutines]
    try:
        return list(await asyncio.gather(*tasks))
    except BaseException:
        for task in tasks:
            task.cancel()
        raise


RequestPart = Callable[[int, int, asyncio.Future[int] | None], Coroutine[Any, Any, tuple[Buffer, str | None]]]
"""Returns the bytes of a value from one offset to another, clipped to it, and its ETag. The future is set to the size
of the value before they are received.
"""


async def read_in_parts(
    start: int, stop: int, request: RequestPart, max_nbytes: int | None = None
) -> Buffer | None:
    """Return a range of a value, clipped to it. The first part tells the size; the others are requested while it is
    received, at the same time.

    None: the server has no strong ETags, so that parts of different versions are not recognized. Raises
    ChangedValueError if the parts belong to different versions, ShortReadError for a part that does not end at the next
    one, and ValueTooLargeError if the value has more than ``max_nbytes`` bytes.
    """
    size: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    first = asyncio.ensure_future(request(start, min(start + PART_NBYTES, stop), size))
    try:
        await asyncio.wait((size, first), return_when=asyncio.FIRST_COMPLETED)
        if not size.done():
            value, _ = await first
            return value if len(value) < PART_NBYTES else None
        if max_nbytes is not None and size.result() > max_nbytes:
            raise ValueTooLargeError(size.result(), max_nbytes)
        stop = min(stop, size.result())
        if stop <= start + PART_NBYTES:
            return (await first)[0]
        out = np.empty(stop - start, "u1").data  # a bytearray would be filled with zeros first
        versions: set[str | None] = set()

        async def fetch(offset: int) -> int:
            end = min(offset + PART_NBYTES, stop)
            value, version = await (first if offset == start else request(offset, end, None))
            versions.add(version)
            out[offset - start : offset - start + len(value)] = value
            return len(value)

        offsets = range(start, stop, PART_NBYTES)
        lengths = await gather(map(fetch, offsets))
    finally:
        first.cancel()
        size.cancel()
    if any(version is None or version.startswith("W/") for version in versions):
        return None
    if len(versions) > 1:
        raise ChangedValueError("it is replaced each time while its parts are read; try again later")
    for offset, length in zip(offsets, lengths, strict=True):
        check_length(offset, min(PART_NBYTES, stop - offset), length)
    return out


async def of_one_version(read: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Return the result of ``read()``, which is repeated if the value is replaced meanwhile."""
    for _ in range(MAX_VERSIONS - 1):
        with suppress(ChangedValueError):
            return await read()
    return await read()


class Backend(ABC):
    """What a remote store needs of a server. Paths are those of the server (``path``).

    ``root`` is the path of the store on it, and ``url`` names the store in messages.
    """

    listable = True
    writable = True
    supports_concurrency = True
    """Whether several threads can use the backend at a time."""
    supports_prefetching = True
    """Whether ``request`` can be used. ``supports_concurrency`` is required too."""
    unicode_keys = True
    """Whether keys have to be Unicode text."""
    max_deleted_together = 1
    """The number of values that ``delete_together`` can delete."""
    keeps_empty_directories = False
    """Whether directories remain when the last file in them is deleted."""
    limits_each_request = False
    """Whether each request waits for its place in ``limit``. Otherwise only those of ``request`` do, and the caller
    reserves the others with ``reserve``.
    """
    max_repetitions = 0
    """How often a request that failed for a reason that may pass is repeated. Most libraries do not repeat requests."""
    lock: AbstractContextManager[Any]
    """Has to be held during each operation. It does nothing if concurrent requests are supported."""

    def __init__(self, root: str, url: str, server: Hashable) -> None:
        self._url = url
        self._root = root.rstrip("/")
        self.lock = nullcontext()
        self.limit = RequestLimit(server)

    def reserve(self, count: int) -> AbstractContextManager[int]:
        """Return a context manager that reserves up to ``count`` requests for an operation, and yields their number."""
        return nullcontext(count) if self.limits_each_request else self.limit.reserve(count)

    # -- names -------------------------------------------------------------------------------------------------

    def path(self, key: str) -> str:
        """Return the path of a key. Raises KeyNameError or StoreError if the protocol does not support the key."""
        path = f"{self._root}/{check_key(key)}" if self._root else check_key(key)
        self._check_unicode(key)
        return path

    def _check_unicode(self, key: str) -> None:
        if not self.unicode_keys or key.isascii():
            return
        try:
            key.encode()
        except UnicodeEncodeError as error:
            raise KeyNameError(
                f"{self._url}: a key of a remote store must be Unicode text, found {key!r}"
            ) from error

    def directory_path(self, prefix: str) -> str:
        """Return the path of the directory for a prefix, ``""`` for the root of the server."""
        return "/".join(part for part in (self._root, prefix) if part)

    # -- reading -----------------------------------------------------------------------------------------------

    @property
    @abstractmethod
    def loop(self) -> asyncio.AbstractEventLoop:
        """The event loop in which ``request`` runs. It belongs to another thread."""

    @abstractmethod
    async def request(self, path: str) -> Buffer:
        """Return a value, as ``read``, in the event loop of the backend. Raises the errors of the library."""

    @abstractmethod
    def read_prefetched(self, path: str, result: Callable[[], Buffer]) -> Buffer | None:
        """Return a value, or None if it is missing. ``result`` waits for the result of its ``request``."""

    @abstractmethod
    def read(self, path: str, max_nbytes: int | None = None) -> Buffer | None:
        """Return a value, or None if it is missing. Raises ValueTooLargeError if it has more than ``max_nbytes`` bytes;
        None is no limit.
        """

    @abstractmethod
    def read_ranges(
        self, path: str, ranges: Sequence[ByteRange], *, max_requests: int
    ) -> list[Buffer] | None:
        """Return ranges of a value, at least one, clipped to the value; None if the value is missing.

        At most ``max_requests`` requests are sent at a time.
        """

    @abstractmethod
    def size(self, path: str) -> int | None:
        """Return the size of a value, or None if it is missing."""

    @abstractmethod
    def version(self, path: str) -> Hashable | None:
        """Return an object that changes whenever the value changes, or None if the server reports nothing like it."""

    # -- listing -----------------------------------------------------------------------------------------------

    @abstractmethod
    def entries(self, path: str) -> list[Entry]:
        """Return the entries of a directory. There are none if the directory is missing."""

    @abstractmethod
    def find(self, path: str) -> dict[str, int] | None:
        """Return the sizes of all files below a directory, by their key in the store. None: ``entries`` of each
        directory is used.
        """

    def is_empty(self, path: str) -> bool:
        """Return whether one request proves that a directory is empty or missing."""
        return False

    def missing_container(self) -> str | None:
        """Return the name of the bucket of the store with its kind if the server states that it does not exist, else
        None: also if looking it up is not permitted.
        """
        return None

    # -- writing -----------------------------------------------------------------------------------------------

    @abstractmethod
    def write(self, path: str, data: bytes) -> None:
        """Store a value atomically."""

    # A backend with conditional writes has these three methods.

    compares_versions = False
    """Whether ``write_compared`` is supported."""

    def read_compared(self, path: str, stop: int | None) -> tuple[Buffer | None, Version | None]:
        """Return a value up to the byte ``stop``, and its version for ``write_compared``. Both are None if it is
        missing.
        """
        raise NotImplementedError

    def write_compared(self, path: str, data: bytes, version: Version | None) -> Version:
        """Store a value atomically if it still has this version, or is still missing (None), and return its new
        version. Otherwise raise ChangedValueError.
        """
        raise NotImplementedError

    @abstractmethod
    def delete(self, path: str) -> None:
        """Delete a value."""

    def delete_together(self, paths: Sequence[str]) -> bool:
        """Delete values with one request, and return whether this was possible. Some may have been deleted if not.

        ``max_deleted_together`` is the maximum number of paths.
        """
        return False

    def delete_directory(self, path: str) -> None:  # noqa: B027 - only file systems have directories
        """Delete a directory and everything in it."""

    def close(self) -> None:  # noqa: B027 - not every library has connections to close
        """Close the connections."""


class FileSystemBackend(Backend):
    """A file system of fsspec, by its generic methods."""

    version_fields: tuple[str, ...] = VERSION_FIELDS

    def __init__(self, file_system: Any, root: str, url: str) -> None:
        from fsspec import AbstractFileSystem
        from fsspec.asyn import AsyncFileSystem

        super().__init__(
            root, url, url.partition("://")[0] + "://" + urlsplit(url.rpartition("::")[2]).netloc
        )
        self.file_system = file_system
        # A cache of fsspec (simplecache::) has the attributes of the cached file system, but only synchronous methods.
        self.supports_concurrency = isinstance(file_system, AsyncFileSystem) and bool(file_system.async_impl)
        if not self.supports_concurrency:  # Most synchronous file systems use one connection.
            self.lock = threading.RLock()
        generic_methods = AsyncFileSystem._find, AbstractFileSystem.find
        find_method = getattr(type(file_system), "_find" if self.supports_concurrency else "find")
        self._has_native_find = find_method not in generic_methods

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        loop: asyncio.AbstractEventLoop = self.file_system.loop
        return loop

    # -- names -------------------------------------------------------------------------------------------------

    def path(self, key: str) -> str:
        path = super().path(key)
        if URL_DELIMITERS & set(key) and self.file_system._strip_protocol(path) != path:
            raise StoreError(
                f"{self._url}: this protocol does not support the key {key!r}, because it contains delimiters of URLs"
            )
        return path

    # -- reading -----------------------------------------------------------------------------------------------

    def read(self, path: str, max_nbytes: int | None = None) -> Buffer | None:
        def fetch() -> Buffer:
            value = self._fetch(path, max_nbytes)
            if max_nbytes is not None and len(value) > max_nbytes:
                raise ValueTooLargeError(len(value), max_nbytes)
            return value

        return self._none_if_missing(path, fetch)

    async def request(self, path: str) -> Buffer:
        value: bytes = await self.limit.send(lambda: self.file_system._cat_file(path))
        return value

    def read_prefetched(self, path: str, result: Callable[[], Buffer]) -> Buffer | None:
        return self._none_if_missing(path, result)

    def read_ranges(
        self, path: str, ranges: Sequence[ByteRange], *, max_requests: int
    ) -> list[Buffer] | None:
        return self._none_if_missing(path, lambda: self._fetch_ranges(path, ranges, max_requests))

    def size(self, path: str) -> int | None:
        info = self._none_if_missing(path, lambda: self._information(path))
        if info is None or info.get("type") == "directory":
            return None
        if info.get("size") is None:  # an HTTP server need not report the size
            value = self.read(path)
            return None if value is None else len(value)
        return int(info["size"])

    def version(self, path: str) -> Hashable | None:
        info = self._none_if_missing(path, lambda: self._information(path))
        if info is None:
            return None
        values = [str(info[name]) for name in self.version_fields if info.get(name)]
        return (info.get("size"), *values) if values else None

    def _information(self, path: str) -> Mapping[str, Any]:
        """Return the type and size of a value, and the fields that identify its version, as ``info`` of fsspec does.
        Raises the errors of the library if it is missing.
        """
        found: Mapping[str, Any] = self.file_system.info(path)
        return found

    def _fetch(self, path: str, max_nbytes: int | None) -> Buffer:
        """Return a value. What exceeds ``max_nbytes`` need not be received; ``read`` compares the size with it.

        Raises ValueTooLargeError if the value is not received because of its size.
        """
        value: bytes = self.file_system.cat_file(path)
        return value

    def _fetch_ranges(self, path: str, ranges: Sequence[ByteRange], max_requests: int) -> list[Buffer] | None:
        """Return ranges, clipped to the value. Requests the size of the value first."""
        size = self.size(path)
        if size is None:
            return None
        resolved = [byte_range.resolve(size) for byte_range in ranges]
        bounds = [(start, stop) for start, stop in resolved if stop > start]
        results = iter(self._fetch_bounds(path, bounds, max_requests))
        buffers: list[Buffer] = []
        for start, stop in resolved:
            buffer = next(results) if stop > start else b""
            check_length(start, max(0, stop - start), len(buffer))
            buffers.append(buffer)
        return buffers

    def _fetch_bounds(self, path: str, bounds: Sequence[tuple[int, int]], max_requests: int) -> list[bytes]:
        """Return the bytes of ``(start, stop)`` ranges, which are not empty."""
        if not bounds:
            return []
        starts, stops = ([pair[side] for pair in bounds] for side in (0, 1))
        return self._cat_ranges([path] * len(bounds), starts, stops, max_requests, on_error="raise")

    def _cat_ranges(
        self,
        paths: list[str],
        starts: list[int],
        stops: list[int | None] | list[int],
        max_requests: int,
        on_error: str,
    ) -> list[Any]:
        """Return the results of the method of the file system."""
        options = {"batch_size": max_requests} if self.supports_concurrency else {}
        return list(self.file_system.cat_ranges(paths, starts, stops, on_error=on_error, **options))

    # -- missing keys ------------------------------------------------------------------------------------------

    def _none_if_missing(self, path: str, operation: Callable[[], T]) -> T | None:
        """Return the result of ``operation``, or None if its error reliably means that the value is missing."""
        try:
            return operation()
        except Exception as error:
            if self._is_missing(path, error):
                return None
            raise

    def _is_missing(self, path: str, error: Exception) -> bool:
        # A bucket that was deleted while its arrays are read: the chunks are not missing.
        if names_missing_container(error):
            return False
        presence = classify_error(error)
        return presence is Presence.MISSING or (presence is Presence.UNCERTAIN and self._looks_missing(path))

    def _looks_missing(self, path: str) -> bool:
        """Return whether a lookup confirms that there is no value at the path."""
        try:
            return bool(self.file_system.info(path)["type"] == "directory")
        except Exception as error:
            return classify_error(error) is Presence.MISSING

    # -- listing -----------------------------------------------------------------------------------------------

    def entries(self, path: str) -> list[Entry]:
        try:
            infos = self.file_system.ls(path, detail=True)
        except Exception as error:
            if classify_error(error) is Presence.MISSING:
                return []
            raise
        own_name = path.strip("/")
        named = [(info["name"].strip("/"), info) for info in infos]
        return [
            Entry(name.rpartition("/")[2], info["type"] == "directory", info.get("size") or 0)
            for name, info in named
            if name != own_name
        ]

    def find(self, path: str) -> dict[str, int] | None:
        """Return the sizes of all files below a directory, by their key in the store.

        None means that the file system has no method of its own for this. The generic method of fsspec is not used: it
        silently omits directories that cannot be listed.
        """
        if not self._has_native_find:
            return None
        try:
            infos: dict[str, dict[str, Any]] = self.file_system.find(path, detail=True)
        except Exception as error:
            if classify_error(error) is Presence.MISSING:
                return {}
            raise
        root = self._root.strip("/")
        root_length = len(root) + 1 if root else 0
        return {name.strip("/")[root_length:]: info.get("size") or 0 for name, info in infos.items()}

    # -- writing -----------------------------------------------------------------------------------------------

    def write(self, path: str, data: bytes) -> None:
        self.file_system.pipe_file(path, data)

    def delete(self, path: str) -> None:
        self.file_system.rm_file(path)

    def delete_directory(self, path: str) -> None:
        self.file_system.rm(path, recursive=True)

    def close(self) -> None:
        """Close the connections. s3 and gs close theirs when the process exits."""
        self._close_client("service_client")  # of Azure, also below a cache

    def _close_client(self, attribute: str) -> None:
        """Close an asynchronous client of the file system, if it has one."""
        client = getattr(self.file_system, attribute, None)
        if client is not None and not getattr(client, "closed", False):
            from fsspec.asyn import sync

            sync(self.file_system.loop, client.close)
