"""The backend of web servers, with byte range requests (RFC 9110, section 14) through the session of fsspec."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Coroutine, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

from zarrfs.engine.stores.base import Buffer, ByteRange, ValueTooLargeError, check_key
from zarrfs.engine.stores.remote.backend import (
    MAX_UNDIVIDED_NBYTES,
    FileSystemBackend,
    gather,
    of_one_version,
    read_in_parts,
)

__all__ = ["HTTPBackend", "RangeMismatchError", "new_session"]

T = TypeVar("T")

CONTENT_RANGE = re.compile(r"bytes (\d{1,19})-(\d{1,19})/(\d{1,19}|\*)$")


class RangeMismatchError(Exception):
    """A server has sent another range than the requested one."""


class HTTPBackend(FileSystemBackend):
    """A web server.

    HTTP servers have no reliable listing and no common protocol for writing. The query of the URL, which can contain a
    signature, belongs to every request. If the server ignores range requests, this is remembered, and each later read
    of ranges fetches the whole value once.
    """

    listable = False
    writable = False
    limits_each_request = True

    def __init__(self, file_system: Any, root: str, url: str) -> None:
        root, delimiter, query = root.partition("?")
        super().__init__(file_system, root, url)
        self._query = delimiter + query
        self._ignores_ranges = False
        self._divides_ranges = False
        """Whether the server has answered a request for a range, so that large ranges are requested in parts."""

    def path(self, key: str) -> str:
        """Return the URL of a key."""
        self._check_unicode(key)
        return f"{self._root}/{check_key(key)}{self._query}"

    def _run(self, coroutine: Callable[..., Coroutine[Any, Any, T]], *arguments: Any) -> T:
        """Return the result of a coroutine function, which runs in the event loop of the session."""
        from fsspec.asyn import sync

        result: T = sync(self.file_system.loop, coroutine, *arguments)
        return result

    def _fetch(self, path: str, max_nbytes: int | None) -> Buffer:
        if max_nbytes is None:
            return self._run(self.request, path)
        value: Buffer = self._run(self.limit.send, lambda: self._request_within(path, max_nbytes))
        return value

    def _information(self, path: str) -> Mapping[str, Any]:
        found: Mapping[str, Any] = self._run(self.limit.send, lambda: self.file_system._info(path))
        return found

    async def _request_within(self, url: str, max_nbytes: int) -> Buffer:
        """Return the value at a URL. What is larger than the limit is not received.

        Raises FileNotFoundError for status 404, ValueTooLargeError, and the errors of aiohttp.
        """
        file_system = self.file_system
        session = await file_system.set_session()
        async with session.get(file_system.encode_url(url), **file_system.kwargs) as response:
            if response.status == 404:
                raise FileNotFoundError(url)
            response.raise_for_status()
            # The declared length of a response that the server compresses is that of the compressed value.
            declared = None if "Content-Encoding" in response.headers else response.content_length
            received = bytearray()
            if declared is None or declared <= max_nbytes:
                async for part in response.content.iter_any():
                    received += part
                    if len(received) > max_nbytes:
                        break
                else:
                    return received
            response.close()
            raise ValueTooLargeError(declared or len(received), max_nbytes)

    def _fetch_ranges(self, path: str, ranges: Sequence[ByteRange], max_requests: int) -> list[Buffer] | None:
        return self._run(self._request_ranges, path, ranges)

    def close(self) -> None:
        """Do nothing: other stores use the session."""

    async def _request_ranges(self, url: str, ranges: Sequence[ByteRange]) -> list[Buffer]:
        """Return ranges of one URL, fetched concurrently and clipped to the value.

        Raises FileNotFoundError for status 404, RangeMismatchError, ChangedValueError, and the errors of aiohttp.
        """
        if self._ignores_ranges:
            value = memoryview(await self.request(url))
            return [value[slice(*byte_range.resolve(len(value)))] for byte_range in ranges]
        return await gather(self._request_range(url, byte_range) for byte_range in ranges)

    async def _request_range(self, url: str, byte_range: ByteRange) -> Buffer:
        start, length = byte_range
        if length == 0:
            return b""
        if self._divides_ranges and length is not None and length > MAX_UNDIVIDED_NBYTES and start >= 0:
            value = await of_one_version(
                lambda: read_in_parts(start, start + length, partial(self._request_part, url))
            )
            if value is not None:
                return value
            self._divides_ranges = False  # The server has no ETags.
        return (await self._send_range(url, byte_range))[0]

    async def _request_part(
        self, url: str, start: int, stop: int, size: asyncio.Future[int] | None
    ) -> tuple[Buffer, str | None]:
        return await self._send_range(url, ByteRange(start, stop - start), size)

    async def _send_range(
        self, url: str, byte_range: ByteRange, size: asyncio.Future[int] | None = None
    ) -> tuple[Buffer, str | None]:
        """Return a range of a value with one request, and its ETag; see ``RequestPart``."""
        version: str | None = None

        async def send() -> Buffer:
            nonlocal version
            value, version = await self._receive_range(url, byte_range, size)
            return value

        return await self.limit.send(send), version

    async def _receive_range(
        self, url: str, byte_range: ByteRange, size: asyncio.Future[int] | None
    ) -> tuple[Buffer, str | None]:
        start, length = byte_range
        file_system = self.file_system
        session = await file_system.set_session()
        byte_spec = (
            f"{start}" if start < 0 else f"{start}-" if length is None else f"{start}-{start + length - 1}"
        )
        headers = {
            **file_system.kwargs.get("headers", {}),
            "Range": f"bytes={byte_spec}",
            "Accept-Encoding": "identity",
        }
        async with session.get(
            file_system.encode_url(url), **{**file_system.kwargs, "headers": headers}
        ) as response:
            if response.status == 404:
                raise FileNotFoundError(url)
            if response.status == 416:  # the range starts beyond the end
                return b"", None
            response.raise_for_status()
            if size is not None and response.status == 206 and not size.done():
                match = CONTENT_RANGE.match(response.headers.get("Content-Range", ""))
                if match is not None and match[3] != "*":
                    size.set_result(int(match[3]))
            body: bytes = await response.read()
            version = response.headers.get("ETag")
            if response.status == 206:
                check_content_range(byte_range, response.headers.get("Content-Range", ""), len(body))
                self._divides_ranges = version is not None
                return body, version
            # Status 200: the server has ignored the range and sent the whole value.
            self._ignores_ranges = True
            first, last = byte_range.resolve(len(body))
            return body[first:last], version


async def new_session(loop: Any = None, **options: Any) -> Any:
    """Return a session of aiohttp, whose connections the limit of requests limits."""
    import aiohttp

    return aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0), **options)


def check_content_range(requested: ByteRange, content_range: str, nbytes: int) -> None:
    """Raise RangeMismatchError unless a response of ``nbytes`` bytes with this Content-Range is the requested range."""
    match = CONTENT_RANGE.match(content_range)
    if match is None:
        if requested.length == nbytes:
            return
        raise RangeMismatchError(
            f"requested {_describe_range(requested)}, found {nbytes} bytes with the Content-Range {content_range!r}"
        )
    first, last = int(match[1]), int(match[2])
    if match[3] == "*":
        matches = requested.start < 0 or first == requested.start
        matches = matches and (requested.length is None or last - first < requested.length)
    else:
        matches = (first, last + 1) == requested.resolve(int(match[3]))
    if not matches or last + 1 - first != nbytes:
        raise RangeMismatchError(
            f"requested {_describe_range(requested)}, found {nbytes} bytes with the Content-Range {content_range!r}"
        )


def _describe_range(requested: ByteRange) -> str:
    if requested.start < 0:
        return f"the last {-requested.start} bytes"
    if requested.length is None:
        return f"the bytes from {requested.start}"
    return f"{requested.length} bytes from {requested.start}"
