"""Byte ranges of web servers (RFC 9110, section 14), through fsspec's session."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from typing import Any

from zarrfs.engine.stores.base import Buffer, ByteRange

__all__ = ["WebRanges", "WrongRangeError"]

CONTENT_RANGE = re.compile(r"bytes (\d+)-(\d+)/(\d+|\*)$")


class WrongRangeError(Exception):
    """A server has sent another part than was asked for."""


class WebRanges:
    """Fetches ranges of one server's files. That it does not know ranges is remembered: then one whole is enough."""

    def __init__(self, files: Any) -> None:
        self._files = files
        self._wholes_only = False

    async def fetch(self, url: str, ranges: Sequence[ByteRange]) -> list[Buffer]:
        """Fetch ranges of one URL at once. A server that knows no ranges sends everything, which is then cut here."""
        if self._wholes_only:
            whole = memoryview(await self._files._cat_file(url))
            return [whole[slice(*byte_range.resolve(len(whole)))] for byte_range in ranges]
        return list(await asyncio.gather(*(self._fetch(url, byte_range) for byte_range in ranges)))

    async def _fetch(self, url: str, byte_range: ByteRange) -> Buffer:
        start, length = byte_range
        if length == 0:
            return b""
        files = self._files
        session = await files.set_session()
        asked = (
            f"{start}" if start < 0 else f"{start}-" if length is None else f"{start}-{start + length - 1}"
        )
        headers = {
            **files.kwargs.get("headers", {}),
            "Range": f"bytes={asked}",
            "Accept-Encoding": "identity",
        }
        async with session.get(files.encode_url(url), **{**files.kwargs, "headers": headers}) as answer:
            if answer.status == 404:
                raise FileNotFoundError(url)
            if answer.status == 416:  # it begins beyond the end
                return b""
            answer.raise_for_status()
            body: bytes = await answer.read()
            if answer.status == 206:
                check_part(byte_range, answer.headers.get("Content-Range", ""), len(body))
                return body
            self._wholes_only = True
            first, last = byte_range.resolve(len(body))
            return body[first:last]


def check_part(asked: ByteRange, said: str, nbytes: int) -> None:
    """Raise WrongRangeError unless ``nbytes`` bytes that a server calls ``said`` are the range that was asked for."""
    found = CONTENT_RANGE.match(said)
    if found is None:
        if asked.length == nbytes:
            return
        raise WrongRangeError(f"asked for {_words(asked)}, found {nbytes} bytes called {said!r}")
    first, last = int(found[1]), int(found[2])
    if found[3] == "*":
        fits = asked.start < 0 or first == asked.start
        fits = fits and (asked.length is None or last - first < asked.length)
    else:
        fits = (first, last + 1) == asked.resolve(int(found[3]))
    if not fits or last + 1 - first != nbytes:
        raise WrongRangeError(f"asked for {_words(asked)}, found {nbytes} bytes called {said!r}")


def _words(asked: ByteRange) -> str:
    if asked.start < 0:
        return f"the last {-asked.start} bytes"
    return f"bytes from {asked.start}" + ("" if asked.length is None else f", {asked.length} of them")
