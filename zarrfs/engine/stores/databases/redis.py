"""A Redis server as a store: one string per key, named ``PREFIX:KEY`` as in zarr-python 2. Requires ``redis``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any
from urllib.parse import parse_qs, urlsplit, urlunsplit

from zarrfs.engine.stores.base import Buffer, ByteRange, ValueTooLargeError, check_key
from zarrfs.engine.stores.databases.database_store import KeyValueStore, decode_key, encode_key
from zarrfs.errors import LocationError, ServerError
from zarrfs.libraries import load_library

__all__ = ["RedisStore"]

DEFAULT_PREFIX = "zarr"
SCAN_COUNT = 1000


class RedisStore(KeyValueStore):
    """Values on one server. Safe to use from several threads and processes.

    ``url`` is ``redis://[USER:PASSWORD@]HOST[:PORT][/DATABASE][?prefix=PREFIX]`` (``rediss`` for TLS, ``unix`` for a
    socket). The default prefix is ``zarr``. Raises LocationError if the server does not respond.
    """

    concurrency = 8
    is_remote = True

    def __init__(self, url: str, *, read_only: bool = False) -> None:
        self.read_only = read_only
        parts = urlsplit(url)
        options = parse_qs(parts.query)
        (prefix,) = options.pop("prefix", [DEFAULT_PREFIX])
        query = "&".join(f"{key}={value}" for key, values in options.items() for value in values)
        self._original_url = url
        self._key_prefix = f"{prefix}:"
        redis = load_library("redis", "redis", "a Redis store")
        self._error: type[Exception] = redis.RedisError
        host = parts.hostname or ""
        self._display_url = (
            f"{parts.scheme}://{host}{f':{parts.port}' if parts.port else ''}{parts.path}?prefix={prefix}"
        )
        try:
            self._client: Any = redis.Redis.from_url(urlunsplit(parts._replace(query=query)))
            self._client.ping()
        except (redis.RedisError, ValueError) as error:
            raise LocationError(f"{self._display_url}: the server does not respond: {error}") from error

    @property
    def url(self) -> str:
        """The URL without user and password."""
        return self._display_url

    def _call(self, command: str, key: str, *values: Any, **options: Any) -> Any:
        self._check_open()
        try:
            return getattr(self._client, command)(encode_key(self._key_prefix + key), *values, **options)
        except self._error as error:
            raise ServerError(f"{self._display_url}: {key}: {error}") from error

    def _read(self, key: str) -> bytes | None:
        value: bytes | None = self._call("get", key)
        return value

    def get_within(self, key: str, max_nbytes: int | None) -> Buffer | None:
        """Return the value. The server sends at most ``max_nbytes`` and one more byte of a value that is too large."""
        if max_nbytes is None:
            return self.get(key)
        found = self._read_ranges(key, [ByteRange(0, max_nbytes + 1)])
        if found is None:
            return None
        nbytes, (value,) = found
        if nbytes > max_nbytes:
            raise ValueTooLargeError(nbytes, max_nbytes)
        return value

    def get_ranges(self, key: str, ranges: Sequence[ByteRange]) -> list[Buffer] | None:
        """Return the bytes of each range."""
        found = self._read_ranges(key, ranges)
        return None if found is None else list(found[1])

    def _read_ranges(self, key: str, ranges: Sequence[ByteRange]) -> tuple[int, list[bytes]] | None:
        """Return the size of a value and the bytes of each range, None if the key is missing.

        One transaction reads all of them: one round trip, and one version.
        """
        self._check_open()
        name = encode_key(self._key_prefix + check_key(key))
        try:
            with self._client.pipeline(transaction=True) as pipeline:
                pipeline.exists(name)
                pipeline.strlen(name)
                for start, length in ranges:
                    # The last byte is inclusive, and -1 is that of the value. A range without bytes cannot be stated.
                    pipeline.getrange(name, start, -1 if length is None else max(0, start + length - 1))
                exists, nbytes, *values = pipeline.execute()
        except self._error as error:
            raise ServerError(f"{self._display_url}: {key}: {error}") from error
        if not exists:
            return None
        parts = zip(ranges, values, strict=True)
        return int(nbytes), [value if length != 0 else b"" for (_, length), value in parts]

    def size(self, key: str) -> int | None:
        length = int(self._call("strlen", check_key(key)))
        return length if length or self._call("exists", key) else None

    def _write(self, key: str, value: bytes) -> None:
        self._call("set", key, value)

    def _remove(self, key: str) -> None:
        self._call("delete", key)

    def _keys(self, start: str) -> Iterator[str]:
        self._check_open()
        # Special characters of Redis patterns are escaped.
        pattern = "".join(f"\\{char}" if char in "*?[]^\\" else char for char in self._key_prefix + start)
        prefix_length = len(encode_key(self._key_prefix))
        try:
            # A scan can return a key several times.
            keys = {
                bytes(name)[prefix_length:]
                for name in self._client.scan_iter(f"{pattern}*", count=SCAN_COUNT)
            }
        except self._error as error:
            raise ServerError(f"{self._display_url} cannot be listed: {error}") from error
        return iter([decode_key(key) for key in keys])

    def close(self) -> None:
        super().close()
        self._client.close()

    def __reduce__(self) -> tuple[Any, ...]:
        return _open_redis_store, (self._original_url, self.read_only)


def _open_redis_store(url: str, read_only: bool) -> RedisStore:
    return RedisStore(url, read_only=read_only)
