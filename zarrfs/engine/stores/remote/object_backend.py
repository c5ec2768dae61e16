"""S3, Google Cloud Storage and Azure Blob Storage through obstore.

All requests run in the event loop of fsspec, so that a thread that waits for one can be interrupted, and many can be
sent before the first response. obstore sends them in threads of its own.
"""

from __future__ import annotations

import asyncio
import atexit
import itertools
import os
import sys
import threading
import time
from collections.abc import Callable, Coroutine, Hashable, Mapping, Sequence
from datetime import timedelta
from functools import partial
from typing import Any, TypeVar

from zarrfs.engine.stores.base import Buffer, ByteRange, ValueTooLargeError
from zarrfs.engine.stores.remote.backend import (
    MAX_UNDIVIDED_NBYTES,
    Backend,
    ChangedValueError,
    Entry,
    Version,
    check_length,
    gather,
    of_one_version,
    read_in_parts,
)
from zarrfs.engine.stores.remote.clients import shared_client
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
from zarrfs.engine.stores.remote.presence import (
    Presence,
    classify_error,
    is_temporary,
    names_missing_container,
)
from zarrfs.engine.stores.wrappers.retrying import retry_delay
from zarrfs.errors import LocationError, StoreError
from zarrfs.libraries import import_library
from zarrfs.logs import logger

__all__ = ["ObjectBackend", "open_object_backend"]

T = TypeVar("T")

RANGE_END = 1 << 50
"""A range to this offset is the rest of any value. One request for a range takes half the processor time of a request
for the whole value, because obstore then returns the bytes without an object for the response.
"""

WRITTEN_PART_NBYTES = 8 << 20
"""The size of the parts in which larger values are written. S3 requires 5 MiB or more, and at most 10,000 parts."""

MAX_PARTS_AT_A_TIME = 8

REGION_SECONDS = 10.0

CALLBACK_SECONDS = 5.0
"""The maximum time for which the end of the program waits for threads that pass results to Python."""

UNCONDITIONAL = (
    "the server has no conditional writes, which keep the changes of several writers; if nobody else writes, open it "
    "with the storage option conditional_put='disabled'"
)

RETRY_SECONDS = 0.1
"""The first delay before a request is repeated."""

_process: int | None = None
"""The process that has created clients. Their threads do not exist in processes that are forked from it."""


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
    _process = os.getpid()
    return shared_client(
        (location._replace(prefix=""), deletes_together), lambda: _new_client(location, deletes_together)
    )


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
            retry_config={"max_retries": 0},  # ``_send`` repeats requests.
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
    limits_each_request = True

    def __init__(self, location: ObjectLocation, url: str) -> None:
        super().__init__(location.prefix, url, location._replace(prefix=""))
        self._location = location
        self.max_repetitions = location.max_retries
        self.compares_versions = location.compares_versions
        self._repeat_seconds = max(dict(location.client)["read_timeout"], 1.0)
        self._api = import_library("obstore")
        fsspec_asyn = import_library("fsspec.asyn")
        self._loop: asyncio.AbstractEventLoop = fsspec_asyn.get_loop()
        self._sync: Callable[..., Any] = fsspec_asyn.sync
        self._client = _client(location)
        self._ignores_ranges = False
        self._has_versions = True

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

    async def _send(
        self,
        operation: Callable[[Any], Coroutine[Any, Any, T]],
        *,
        nbytes: int = 0,
        is_reserved: bool = False,
        is_repeatable: bool = True,
    ) -> T:
        """Return the result of ``operation(client)``, which sends a request, and ``nbytes`` bytes with it.

        A request that fails for a reason that may pass is repeated, for as long as one request may take. Raises the
        errors of ``convert_error``. ``is_reserved`` is whether the caller has reserved the request.
        """
        start = time.monotonic()
        for attempt in itertools.count(1):
            try:
                if is_reserved:
                    return await self._attempt(operation)
                return await self.limit.send(lambda: self._attempt(operation), nbytes)
            except Exception as error:
                is_late = time.monotonic() - start >= self._repeat_seconds
                if not is_repeatable or attempt > self.max_repetitions or is_late or not is_temporary(error):
                    raise
                delay = retry_delay(attempt, RETRY_SECONDS)
                logger.info(
                    "%s: %s; trying again in %.2g s (%d of %d)",
                    *(self._url, error, delay, attempt, self.max_repetitions),
                )
            self.limit.count_retry()
            await asyncio.sleep(delay)
        raise AssertionError  # The loop does not end.

    async def _attempt(self, operation: Callable[[Any], Coroutine[Any, Any, T]]) -> T:
        """Return the result of an operation. If the bucket of S3 is in another region, its client is replaced once."""
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
        if max_nbytes is None or max_nbytes > MAX_UNDIVIDED_NBYTES:
            return self._none_if_missing(lambda: self._run(self._request_value, path, max_nbytes))
        value = self._none_if_missing(lambda: self._run(self._request_until, path, max_nbytes + 1))
        if value is not None and len(value) > max_nbytes:
            raise ValueTooLargeError(self.size(path) or len(value), max_nbytes)
        return value

    async def _request_value(self, path: str, max_nbytes: int | None) -> Buffer:
        """Return a value of any size. Its first part is requested, and the others when its size is known."""
        if self._has_versions and not self._ignores_ranges:
            try:
                value = await of_one_version(
                    lambda: read_in_parts(0, RANGE_END, partial(self._request_part, path), max_nbytes)
                )
            except RequestError as error:
                # An empty value has no range.
                if error.status != EMPTY_STATUS and not error.ignored_range:
                    raise
                self._ignores_ranges = error.ignored_range
            else:
                if value is not None:
                    return value
                self._has_versions = False
        return await self._request_until(path, RANGE_END)

    async def _request_part(
        self, path: str, start: int, stop: int, size: asyncio.Future[int] | None = None
    ) -> tuple[Buffer, str | None]:
        """Return a range of a value, clipped to it, and its ETag; see ``RequestPart``. Raises ShortReadError if the
        response states another range than it contains.
        """
        version: str | None = None

        async def fetch(client: Any) -> Buffer:
            nonlocal version
            response = await self._api.get_async(client, path, options={"range": (start, stop)})
            version = response.meta.get("e_tag")
            if size is not None and not size.done():
                size.set_result(response.meta["size"])
            first, last = response.range
            value = memoryview(await response.bytes_async())
            check_length(first, last - first, len(value))
            return value

        return await self._send(fetch), version

    def read_ranges(
        self, path: str, ranges: Sequence[ByteRange], *, max_requests: int
    ) -> list[Buffer] | None:
        return self._none_if_missing(lambda: self._run(self._request_ranges, path, ranges))

    async def _request_ranges(self, path: str, ranges: Sequence[ByteRange]) -> list[Buffer]:
        """Return ranges of a value, which are fetched concurrently and clipped to the value."""
        if not self._ignores_ranges:
            ranges = await self._without_suffixes(path, ranges)
            try:
                return await gather(self._request_range(path, byte_range) for byte_range in ranges)
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
        if length is not None and length > MAX_UNDIVIDED_NBYTES and start >= 0 and self._has_versions:
            divided = await self._request_divided(path, start, end)
            if divided is not None:
                return divided
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

    async def _request_divided(self, path: str, start: int, stop: int) -> Buffer | None:
        """Return a large range of a value in parts, or None if it has to be requested at once."""
        try:
            value = await of_one_version(
                lambda: read_in_parts(start, stop, partial(self._request_part, path))
            )
        except RequestError as error:
            if error.status == EMPTY_STATUS:  # the range starts beyond the end
                return b""
            raise
        self._has_versions = value is not None
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
        parts = -(-len(data) // WRITTEN_PART_NBYTES)
        if parts > 1:
            with self.limit.reserve(min(parts, MAX_PARTS_AT_A_TIME)) as permitted:
                self._run(self._put_parts, path, data, permitted)
            self.limit.count_bytes(len(data))
        else:
            self._run(self._put, path, data)

    async def _put(self, path: str, data: bytes) -> None:
        await self._send(
            lambda client: self._api.put_async(client, path, data, use_multipart=False), nbytes=len(data)
        )

    async def _put_parts(self, path: str, data: bytes, permitted: int) -> None:
        await self._send(
            lambda client: self._api.put_async(
                client, path, data, chunk_size=WRITTEN_PART_NBYTES, max_concurrency=permitted
            ),
            is_reserved=True,
        )

    def read_compared(self, path: str, stop: int | None) -> tuple[Buffer | None, Version | None]:
        return self._none_if_missing(lambda: self._run(self._request_compared, path, stop)) or (None, None)

    async def _request_compared(self, path: str, stop: int | None) -> tuple[Buffer, Version]:
        async def fetch(client: Any, *, whole: bool = False) -> tuple[Buffer, Version]:
            options = {} if whole else {"range": (0, RANGE_END if stop is None else stop)}
            response = await self._api.get_async(client, path, options=options)
            value = memoryview(await response.bytes_async())
            check_length(0, response.range[1] - response.range[0], len(value))
            return value, Version(response.meta.get("e_tag"), response.meta.get("version"))

        try:
            return await self._send(fetch)
        except RequestError as error:
            # An empty value has no range.
            if error.status != EMPTY_STATUS and not error.ignored_range:
                raise
        return await self._send(partial(fetch, whole=True))

    def write_compared(self, path: str, data: bytes, version: Version | None) -> Version:
        self._check_may_write()
        return self._run(self._put_compared, path, data, version)

    async def _put_compared(self, path: str, data: bytes, version: Version | None) -> Version:
        errors = import_library("obstore.exceptions")
        mode: Any = "create"
        if version is not None:
            parts = {"e_tag": version.e_tag, "version": version.generation}
            mode = {name: value for name, value in parts.items() if value is not None}

        async def put(client: Any) -> Any:
            try:
                return await self._api.put_async(client, path, data, mode=mode, use_multipart=False)
            except (errors.AlreadyExistsError, errors.PreconditionError):
                raise ChangedValueError from None
            except errors.NotSupportedError as error:
                raise RequestError(f"{UNCONDITIONAL}: {error}") from None

        try:
            found = await self._send(put, nbytes=len(data))
        except RequestError as error:
            if error.status == 501 or error.error_code == "NotImplemented":
                raise RequestError(f"{UNCONDITIONAL} ({error})", status=error.status) from None
            raise
        return Version(found.get("e_tag"), found.get("version"))

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
        await self.limit.send(lambda: self._api.delete_async(client, paths))


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
