"""A Redis server as a store: one string per key, named ``PREFIX:KEY`` as zarr-python 2 has it. Needs ``redis``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any
from urllib.parse import parse_qs, urlsplit, urlunsplit

from zarrfs.engine.stores.base import Buffer, ByteRange, check_key
from zarrfs.engine.stores.databases.base import KeyValueStore, decode_key, encode_key, load_library
from zarrfs.errors import LocationError, StoreError

__all__ = ["RedisStore"]

USUAL_PREFIX = "zarr"
AT_ONCE = 1000


class RedisStore(KeyValueStore):
    """Values of one server. Safe under threads and processes.

    ``url`` is ``redis://[USER:PASSWORD@]HOST[:PORT][/DATABASE][?prefix=PREFIX]`` (``rediss`` for TLS, ``unix`` for a
    socket); the prefix is ``zarr`` if none is given.
    """

    concurrency = 8

    def __init__(self, url: str, *, read_only: bool = False) -> None:
        self.read_only = read_only
        parts = urlsplit(url)
        options = parse_qs(parts.query)
        (prefix,) = options.pop("prefix", [USUAL_PREFIX])
        rest = "&".join(f"{key}={value}" for key, values in options.items() for value in values)
        self._given = url
        self._start = f"{prefix}:"
        redis = load_library("redis", "redis", "a Redis store")
        self._error: type[Exception] = redis.RedisError
        host = parts.hostname or ""
        self._shown = (
            f"{parts.scheme}://{host}{f':{parts.port}' if parts.port else ''}{parts.path}?prefix={prefix}"
        )
        try:
            self._client: Any = redis.Redis.from_url(urlunsplit(parts._replace(query=rest)))
            self._client.ping()
        except (redis.RedisError, ValueError) as error:
            raise LocationError(f"{self._shown}: the server does not answer: {error}") from error

    @property
    def url(self) -> str:
        """The URL without user and password."""
        return self._shown

    def _call(self, what: str, key: str, *values: Any, **options: Any) -> Any:
        self._check_open()
        try:
            return getattr(self._client, what)(encode_key(self._start + key), *values, **options)
        except self._error as error:
            raise StoreError(f"{self._shown}: {key}: {error}") from error

    def _read(self, key: str) -> bytes | None:
        value: bytes | None = self._call("get", key)
        return value

    def get_ranges(self, key: str, ranges: Sequence[ByteRange]) -> list[Buffer] | None:
        size = self.size(key)
        if size is None:
            return None
        pieces: list[Buffer] = []
        for byte_range in ranges:
            start, stop = byte_range.resolve(size)
            pieces.append(self._call("getrange", key, start, stop - 1) if stop > start else b"")
        return pieces

    def size(self, key: str) -> int | None:
        length = int(self._call("strlen", check_key(key)))
        return length if length or self._call("exists", key) else None

    def _write(self, key: str, value: bytes) -> None:
        self._call("set", key, value)

    def _remove(self, key: str) -> None:
        self._call("delete", key)

    def _keys(self, start: str) -> Iterator[str]:
        self._check_open()
        # What stands for any text in a pattern of Redis must stand for itself here.
        pattern = "".join(f"\\{letter}" if letter in "*?[]^\\" else letter for letter in self._start + start)
        cut = len(encode_key(self._start))
        try:
            found = {bytes(key)[cut:] for key in self._client.scan_iter(f"{pattern}*", count=AT_ONCE)}
        except self._error as error:
            raise StoreError(f"{self._shown} cannot be listed: {error}") from error
        return iter([decode_key(key) for key in found])

    def close(self) -> None:
        super().close()
        self._client.close()

    def __reduce__(self) -> tuple[Any, ...]:
        return _reopen, (self._given, self.read_only)


def _reopen(url: str, read_only: bool) -> RedisStore:
    return RedisStore(url, read_only=read_only)
