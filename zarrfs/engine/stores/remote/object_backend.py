"""S3, Google Cloud Storage and Azure Blob Storage through obstore.

All requests run in the event loop of fsspec, so that a thread that waits for one can be interrupted, and many can be
sent before the first response. obstore sends them in threads of its own.
"""

from __future__ import annotations

import asyncio
import atexit
import os
import sys
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Coroutine, Hashable, Mapping, Sequence
from datetime import timedelta
from typing import Any, TypeVar

from zarrfs.engine.stores.base import Buffer, ByteRange, ValueTooLargeError
from zarrfs.engine.stores.remote.backend import Backend, Entry, check_length
from zarrfs.engine.stores.remote.object_errors import (
    EMPTY_STATUS,
    RequestError,
    convert_error,
    names_other_region,
)
from zarrfs.engine.stores.remote.object_options import (
    CONTAINERS,
    SERVICES,
    ObjectLocation,
    UnsupportedError,
    object_location,
)
from zarrfs.engine.stores.remote.presence import Presence, classify_error, names_missing_container
from zarrfs.errors import LocationError, StoreError
from zarrfs.libraries import import_library

__all__ = ["ObjectBackend", "open_object_backend"]

T = TypeVar("T")

MAX_CLIENTS = 32
"""The maximum number of clients that are kept for further stores. A client has the connections to one bucket."""

RANGE_END = 1 << 50
"""A range to this offset is the rest of any value. One request for a range takes half the processor time of a request
for the whole value, because obstore then returns the bytes without an object for the response.
"""

PART_NBYTES = 8 << 20
"""The size of the parts of a value that is written in parts."""

MAX_PARTS_AT_A_TIME = 8

REGION_SECONDS = 10.0

CALLBACK_SECONDS = 5.0
"""The maximum time for which the end of the program waits for threads that pass results to Python."""

_clients: OrderedDict[Hashable, Any] = OrderedDict()
_lock = threading.Lock()
_process: int | None = None
"""The process that has created the clients. Their threads do not exist in processes that are forked from it."""


def _after_fork() -> None:
    global _lock
    _lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def _wait_for_callbacks() -> None:
    """Wait until no thread of obstore executes Python code.

    Its threads pass results to the event loop, and may still be in that call when the program has the result and ends.
    Before Python 3.14 a thread that needs the interpreter lock after its end is terminated, which aborts the process if
    it is a thread of Rust.
    """
    own = {thread.ident for thread in threading.enumerate()}
    deadline = time.monotonic() + CALLBACK_SECONDS
    while not own.issuperset(sys._current_frames()) and time.monotonic() < deadline:
        time.sleep(0.001)


atexit.register(_wait_for_callbacks)


def open_object_backend(url: str, options: Mapping[str, Any], display_url: str) -> ObjectBackend:
    """Return the backend of a bucket. ``options`` are those of fsspec.

    Raises UnsupportedError with the reason if fsspec has to be used, and LocationError or OptionError.
    """
    scheme = url.partition("://")[0].lower()
    if scheme not in SERVICES:
        raise UnsupportedError(f"{scheme}:// is no service of obstore")
    if _process not in (None, os.getpid()):
        raise UnsupportedError("its threads do not exist in a process that was forked")
    try:
        import_library("obstore")
    except ImportError as error:
        raise UnsupportedError(f"the package 'obstore' is not installed ({error})") from error
    fsspec = import_library("fsspec")
    configured: dict[str, Any] = {}
    for name, service in SERVICES.items():
        if service == SERVICES[scheme]:
            configured.update(fsspec.config.conf.get(name, {}))
    try:
        location = object_location(url, {**configured, **options})
        return ObjectBackend(location, display_url)
    except LocationError as error:
        raise LocationError(f"{display_url}: {error}") from error


def _client(location: ObjectLocation, *, deletes_together: bool = False) -> Any:
    """Return the client for a bucket and its settings, with its connections. Equal locations share one client."""
    global _process
    key = (location._replace(prefix=""), deletes_together)
    with _lock:
        client = _clients.get(key)
        if client is None:
            client = _clients[key] = _new_client(location, deletes_together)
            _process = os.getpid()
            if len(_clients) > MAX_CLIENTS:
                _clients.popitem(last=False)  # Stores that use it keep it.
        _clients.move_to_end(key)
    return client


def _new_client(location: ObjectLocation, deletes_together: bool) -> Any:
    obstore = import_library("obstore.store")
    config = dict(location.config)
    client_options: dict[str, Any] = {
        "timeout": timedelta(
            days=1
        )  # of a whole value, however large; ``read_timeout`` ends what does not proceed
    }
    for name, value in location.client:
        if name.endswith("_timeout"):
            client_options[name] = timedelta(seconds=value)
        else:
            client_options[name] = dict(value) if name == "default_headers" else value
    if location.service == "s3":
        config["disable_bulk_delete"] = not deletes_together
    more: dict[str, Any] = {}
    if location.credentials is not None:
        credentials = {**dict(location.credentials), "expires_at": None}
        more["credential_provider"] = lambda: credentials
    kind = {"s3": obstore.S3Store, "gcs": obstore.GCSStore, "azure": obstore.AzureStore}[location.service]
    try:
        return kind(
            location.container,
            config=config,
            client_options=client_options,
            retry_config={
                "max_retries": location.max_retries,
                "retry_timeout": timedelta(seconds=max(dict(location.client)["read_timeout"], 1.0)),
            },
            **more,
        )
    except Exception as error:
        # A setting that this version does not have, or a value that it cannot parse, such as a key.
        converted = convert_error(error)
        if "is not valid for store" in str(error):
            raise UnsupportedError(str(converted)) from error
        raise LocationError(f"the client cannot be created: {converted}") from error


class ObjectBackend(Backend):
    """A bucket."""

    max_deleted_together = 1000

    def __init__(self, location: ObjectLocation, url: str) -> None:
        super().__init__(location.prefix, url)
        self._location = location
        self._api = import_library("obstore")
        fsspec_asyn = import_library("fsspec.asyn")
        self._loop: asyncio.AbstractEventLoop = fsspec_asyn.get_loop()
        self._sync: Callable[..., Any] = fsspec_asyn.sync
        self._client = _client(location)
        self._ignores_ranges = False

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        return self._loop

    @property
    def location(self) -> ObjectLocation:
        """The bucket and the settings of the client."""
        return self._location

    def path(self, key: str) -> str:
        path = super().path(key)
        if any(ord(character) < 0x20 or ord(character) == 0x7F for character in key):
            raise StoreError(
                f"{self._url}: object stores do not support the key {key!r}, because it contains control characters"
            )
        return path

    # -- requests ----------------------------------------------------------------------------------------------

    async def _send(self, operation: Callable[[Any], Coroutine[Any, Any, T]]) -> T:
        """Return the result of ``operation(client)``. Raises the errors of ``convert_error``.

        If the bucket is in another region, its client is replaced once.
        """
        try:
            return await operation(self._client)
        except Exception as error:
            converted = convert_error(error)
            if self._location.service != "s3" or not names_other_region(converted):
                raise converted from None
        region = await self._find_region(converted)
        if region is None or region == dict(self._location.config)["region"]:
            raise converted
        config = {**dict(self._location.config), "region": region}
        self._location = self._location._replace(config=tuple(sorted(config.items())))
        self._client = _client(self._location)
        try:
            return await operation(self._client)
        except Exception as error:
            raise convert_error(error) from None

    async def _find_region(self, error: Exception) -> str | None:
        """Return the region of the bucket of S3, from the error or by a request without credentials."""
        if isinstance(error, RequestError) and error.region is not None:
            return error.region
        config = dict(self._location.config)
        endpoint = config.get("endpoint") or f"https://s3.{config['region']}.amazonaws.com"
        return await asyncio.to_thread(_region_of_bucket, f"{endpoint}/{self._location.container}")

    def _run(self, coroutine: Callable[..., Coroutine[Any, Any, T]], *arguments: Any) -> T:
        """Return the result of a coroutine function, which runs in the event loop."""
        result: T = self._sync(self._loop, coroutine, *arguments)
        return result

    def _none_if_missing(self, operation: Callable[[], T]) -> T | None:
        try:
            return operation()
        except Exception as error:
            if classify_error(error) is Presence.MISSING and not names_missing_container(error):
                return None
            raise

    # -- reading -----------------------------------------------------------------------------------------------

    async def request(self, path: str) -> Buffer:
        return await self._request_until(path, RANGE_END)

    async def _request_until(self, path: str, end: int) -> Buffer:
        """Return the bytes of a value up to ``end``. A server that ignores ranges sends more."""
        if not self._ignores_ranges:
            try:
                return memoryview(
                    await self._send(lambda client: self._api.get_range_async(client, path, start=0, end=end))
                )
            except RequestError as error:
                # An empty value has no range.
                if error.status != EMPTY_STATUS and not error.ignored_range:
                    raise
                self._ignores_ranges = error.ignored_range
        return await self._request_whole(path)

    async def _request_whole(self, path: str) -> Buffer:
        async def fetch(client: Any) -> Buffer:
            response = await self._api.get_async(client, path)
            return memoryview(await response.bytes_async())

        return await self._send(fetch)

    def read_prefetched(self, path: str, result: Callable[[], Buffer]) -> Buffer | None:
        return self._none_if_missing(result)

    def read(self, path: str, max_nbytes: int | None = None) -> Buffer | None:
        end = RANGE_END if max_nbytes is None else max_nbytes + 1
        value = self._none_if_missing(lambda: self._run(self._request_until, path, end))
        if value is not None and max_nbytes is not None and len(value) > max_nbytes:
            raise ValueTooLargeError(self.size(path) or len(value), max_nbytes)
        return value

    def read_ranges(
        self, path: str, ranges: Sequence[ByteRange], *, max_requests: int
    ) -> list[Buffer] | None:
        return self._none_if_missing(lambda: self._run(self._request_ranges, path, ranges, max_requests))

    async def _request_ranges(
        self, path: str, ranges: Sequence[ByteRange], max_requests: int
    ) -> list[Buffer]:
        """Return ranges of a value, which are fetched concurrently and clipped to the value."""
        if not self._ignores_ranges:
            ranges = await self._without_suffixes(path, ranges)
            limit = asyncio.Semaphore(max_requests)

            async def request(byte_range: ByteRange) -> Buffer:
                async with limit:
                    return await self._request_range(path, byte_range)

            try:
                return list(await asyncio.gather(*map(request, ranges)))
            except RequestError as error:
                if not error.ignored_range:
                    raise
                self._ignores_ranges = True
        value = memoryview(await self._request_whole(path))
        return [value[slice(*byte_range.resolve(len(value)))] for byte_range in ranges]

    async def _without_suffixes(self, path: str, ranges: Sequence[ByteRange]) -> Sequence[ByteRange]:
        """Return ranges that can be requested. Azure has no suffix ranges, and empty ranges prove no value: the size is
        requested first then.
        """
        has_suffix = any(start < 0 for start, _ in ranges) and self._location.service == "azure"
        if not has_suffix and any(length != 0 for _, length in ranges):
            return ranges
        size, _ = await self._request_version(path)
        bounds = (byte_range.resolve(size) for byte_range in ranges)
        return [ByteRange(start, stop - start) for start, stop in bounds]

    async def _request_range(self, path: str, byte_range: ByteRange) -> Buffer:
        start, length = byte_range
        if length == 0:
            return b""
        end = RANGE_END if length is None else start + length
        try:
            if start < 0:
                return await self._request_checked(path, {"suffix": -start})
            if start == 0:  # the beginning of a document, which can be shorter
                return await self._request_checked(path, (0, end))
            value = memoryview(
                await self._send(lambda client: self._api.get_range_async(client, path, start=start, end=end))
            )
        except RequestError as error:
            if error.status == EMPTY_STATUS:  # the range starts beyond the end
                return b""
            raise
        if length is not None and len(value) != length:
            size, _ = await self._request_version(path)
            check_length(start, min(size, end) - start, len(value))
        return value

    async def _request_checked(self, path: str, byte_range: Any) -> Buffer:
        """Return a range of a value. Raises ShortReadError if the response states another range than it contains."""

        async def fetch(client: Any) -> Buffer:
            response = await self._api.get_async(client, path, options={"range": byte_range})
            start, stop = response.range
            value = memoryview(await response.bytes_async())
            check_length(start, stop - start, len(value))
            return value

        return await self._send(fetch)

    def size(self, path: str) -> int | None:
        found = self._none_if_missing(lambda: self._run(self._request_version, path))
        return None if found is None else found[0]

    def version(self, path: str) -> Hashable | None:
        found = self._none_if_missing(lambda: self._run(self._request_version, path))
        return None if found is None or found[1] is None else found

    async def _request_version(self, path: str) -> tuple[int, str | None]:
        """Return the size and the ETag of a value.

        The first byte is requested: the error of GET states whether the value or the bucket is missing, that of HEAD
        does not.
        """

        async def fetch(client: Any) -> Any:
            response = await self._api.get_async(client, path, options={"range": (0, 1)})
            await response.bytes_async()  # The connection is used again.
            return response.meta

        try:
            found = await self._send(fetch)
        except RequestError as error:
            # An empty value has no first byte; without a status, the response is not the requested range.
            if error.status not in (None, EMPTY_STATUS):
                raise
            found = await self._send(lambda client: self._api.head_async(client, path))
        return found["size"], found.get("e_tag")

    # -- listing -----------------------------------------------------------------------------------------------

    def entries(self, path: str) -> list[Entry]:
        return self._run(self._request_entries, path)

    async def _request_entries(self, path: str) -> list[Entry]:
        listed = await self._send(lambda client: self._api.list_with_delimiter_async(client, path or None))
        return [
            *(Entry(name.rpartition("/")[2], True, 0) for name in listed["common_prefixes"]),
            *(Entry(meta["path"].rpartition("/")[2], False, meta["size"]) for meta in listed["objects"]),
        ]

    def find(self, path: str) -> dict[str, int] | None:
        return self._run(self._request_sizes, path)

    async def _request_sizes(self, path: str) -> dict[str, int]:
        start = len(self._root) + 1 if self._root else 0

        async def collect(client: Any) -> dict[str, int]:
            return {
                meta["path"][start:]: meta["size"]
                async for page in self._api.list(client, path or None, chunk_size=1000)
                for meta in page
            }

        return await self._send(collect)

    def is_empty(self, path: str) -> bool:
        try:
            return self._run(self._has_no_objects, path)
        except Exception:
            return False  # Listing may not be permitted, and other requests report other errors.

    async def _has_no_objects(self, path: str) -> bool:
        async def first_page(client: Any) -> bool:
            async for page in self._api.list(client, path or None, chunk_size=1):
                return not page
            return True

        return await self._send(first_page)

    def missing_container(self) -> str | None:
        try:
            self._run(self._has_no_objects, self._root)
        except Exception as error:
            # Other errors, such as a missing permission, prove nothing.
            if classify_error(error) is Presence.MISSING:
                return f"{CONTAINERS[self._location.service]} {self._location.container!r}"
        return None

    # -- writing -----------------------------------------------------------------------------------------------

    def _check_may_write(self) -> None:
        """Raise PermissionError without credentials of Google: obstore would wait for those of a machine of Google."""
        if self._location.service == "gcs" and dict(self._location.config).get("skip_signature"):
            raise PermissionError("there are no credentials, without which nothing is written")

    def write(self, path: str, data: bytes) -> None:
        self._check_may_write()
        self._run(self._put, path, data)

    async def _put(self, path: str, data: bytes) -> None:
        await self._send(
            lambda client: self._api.put_async(
                client, path, data, chunk_size=PART_NBYTES, max_concurrency=MAX_PARTS_AT_A_TIME
            )
        )

    def delete(self, path: str) -> None:
        self._check_may_write()
        self._none_if_missing(lambda: self._run(self._delete, path))

    async def _delete(self, path: str) -> None:
        await self._send(lambda client: self._api.delete_async(client, path))

    def delete_together(self, paths: Sequence[str]) -> bool:
        self._check_may_write()
        try:
            self._run(self._delete_all, list(paths))
        except Exception:
            # Not all servers support this, and some credentials permit single deletions only. These report the error.
            return False
        return True

    async def _delete_all(self, paths: list[str]) -> None:
        client = _client(self._location, deletes_together=True)
        await self._api.delete_async(client, paths)


def _region_of_bucket(url: str) -> str | None:
    """Return the region that the server names for a bucket, also in its refusals."""
    import urllib.error
    import urllib.request

    request = urllib.request.Request(url, method="HEAD")
    try:
        with urllib.request.urlopen(request, timeout=REGION_SECONDS) as response:
            headers = response.headers
    except urllib.error.HTTPError as error:
        headers = error.headers
        error.close()
    except OSError:
        return None
    found = headers.get("x-amz-bucket-region")
    return str(found) if found else None
