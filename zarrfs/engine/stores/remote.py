"""Everything that fsspec opens as a store: http, s3, gs, abfs, ftp, sftp, github, references, and chains of them.

Needs ``fsspec`` and what it asks for the protocol. Requests of several threads are in flight at once where the file
system is asynchronous (http, s3, gs, abfs). A missing key is None; a refusal, a server's error or a lost connection is
a StoreError, never a missing chunk.
"""

from __future__ import annotations

import asyncio
import errno
import threading
import uuid
from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from zarrfs.engine.stores.base import IMMUTABLE, Buffer, ByteRange, Listing, Store, Usage, check_key
from zarrfs.engine.stores.keyvalue import load_library
from zarrfs.errors import LocationError, StoreError

__all__ = ["RemoteStore", "is_known"]

REQUESTS_AT_ONCE = 32

RENAMING = {"file", "local", "ftp", "sftp", "ssh", "hdfs", "smb", "arrow_hdfs", "webhdfs"}
"""Protocols that show a file while it is written: there a new value is written beside the old one and renamed."""

EXTRAS = {
    "http": "http",
    "https": "http",
    "s3": "s3",
    "s3a": "s3",
    "gs": "gcs",
    "gcs": "gcs",
    "abfs": "azure",
    "abfss": "azure",
    "az": "azure",
    "adl": "azure",
    "sftp": "sftp",
    "ssh": "sftp",
}

TEMPORARY = ".zarrfs-writing-"


VERSIONS = ("ETag", "etag", "e_tag", "generation", "md5Hash", "content_md5", "Content-MD5", "Digest")
"""What servers tell of a value that changes whenever it does. A time in whole seconds does not."""

FINE_TIMES = ("mtime", "created", "ino")


class RemoteStore(Store):
    """Values below a URL.

    Read-only, it takes what it has read for unchanged as long as it is open, so that chunks can be kept; open anew to
    see changes. ``storage_options`` go to fsspec: credentials, ``anon=True``, ``endpoint_url`` and the like. Without
    them, the usual environment variables and configuration files of each protocol count.
    """

    concurrency = REQUESTS_AT_ONCE

    def __init__(
        self, url: str, *, read_only: bool = False, storage_options: Mapping[str, Any] | None = None
    ) -> None:
        self.read_only = read_only
        self._given, self._options = url, dict(storage_options or {})
        self._shown = without_password(url)
        protocol = url.partition("://")[0].rpartition("::")[2].lower()
        fsspec = load_library("fsspec", EXTRAS.get(protocol, "remote"), f"{self._shown}:")
        try:
            self._files, root = fsspec.core.url_to_fs(
                url, use_listings_cache=False, skip_instance_cache=True, **self._options
            )
        except ImportError as error:
            extra = EXTRAS.get(protocol)
            hint = f": pip install 'zarrfs[{extra}]'" if extra else ""
            raise LocationError(f"{self._shown}: a package is missing{hint} ({error})") from error
        except Exception as error:
            raise LocationError(f"{self._shown} cannot be opened: {error or type(error).__name__}") from error
        kinds = self._files.protocol
        self._protocols = {kinds} if isinstance(kinds, str) else set(kinds)
        self._web = bool(self._protocols & {"http", "https"})
        # A web server lists nothing that could be relied on.
        self.listable = not self._web
        root, mark, query = root.partition("?") if self._web else (root, "", "")
        self._root, self._query = root.rstrip("/"), mark + query
        self._lock: AbstractContextManager[Any] = nullcontext()
        if not getattr(self._files, "async_impl", False):
            # Most of the others talk through one connection.
            self.concurrency = 1
            self._lock = threading.RLock()

    @property
    def url(self) -> str:
        """The URL, without a password."""
        return self._shown

    def _path(self, key: str) -> str:
        return f"{self._root}/{check_key(key)}{self._query}" if self._root else check_key(key)

    def _prefix(self, prefix: str) -> str:
        return "/".join(part for part in (self._root, prefix) if part)

    def _broken(self, what: str, key: str, error: BaseException) -> StoreError:
        reason = str(error) or type(error).__name__
        if isinstance(error, asyncio.TimeoutError | TimeoutError):
            reason = "the server does not answer in time"
        return StoreError(f"{self._shown}/{key} cannot be {what}: {reason}")

    # -- reading -----------------------------------------------------------------------------------------------

    def get(self, key: str) -> Buffer | None:
        path = self._path(key)
        try:
            with self._lock:
                value: bytes = self._files.cat_file(path)
        except Exception as error:
            if _is_absence(error):
                return None
            raise self._broken("read", key, error) from error
        return value

    def get_ranges(self, key: str, ranges: Sequence[ByteRange]) -> list[Buffer] | None:
        path = self._path(key)
        try:
            if self._web:
                return self._web_ranges(path, ranges)
            with self._lock:
                return self._cat_ranges(key, path, ranges)
        except StoreError:
            raise
        except Exception as error:
            if _is_absence(error):
                return None
            raise self._broken("read", key, error) from error

    def _cat_ranges(self, key: str, path: str, ranges: Sequence[ByteRange]) -> list[Buffer] | None:
        """Fetch ranges at once. Those that end beyond the value, or count from its end, need its size first."""
        size = self.size(key)
        if size is None:
            return None
        spans = [byte_range.resolve(size) for byte_range in ranges]
        wanted = [span for span in spans if span[1] > span[0]]
        if not wanted:
            return [b"" for _ in spans]
        starts, stops = ([span[side] for span in wanted] for side in (0, 1))
        found = iter(self._files.cat_ranges([path] * len(wanted), starts, stops, on_error="raise"))
        return [next(found) if stop > start else b"" for start, stop in spans]

    def _web_ranges(self, path: str, ranges: Sequence[ByteRange]) -> list[Buffer] | None:
        if not ranges:
            return [] if self._files.exists(path) else None
        from fsspec.asyn import sync

        pieces: list[Buffer] = sync(self._files.loop, _fetch_ranges, self._files, path, ranges)
        return pieces

    def size(self, key: str) -> int | None:
        path = self._path(key)
        try:
            with self._lock:
                found = self._files.info(path)
        except Exception as error:
            if _is_absence(error):
                return None
            raise self._broken("looked up", key, error) from error
        if found.get("type") == "directory":
            return None
        if found.get("size") is None:  # a web server need not tell
            value = self.get(key)
            return None if value is None else len(value)
        return int(found["size"])

    def stamp(self, key: str) -> Hashable | None:
        return IMMUTABLE if self.read_only else None

    def version(self, key: str) -> Hashable | None:
        try:
            with self._lock:
                found = self._files.info(self._path(key))
        except Exception as error:
            if _is_absence(error):
                return None
            raise self._broken("looked up", key, error) from error
        names = (*VERSIONS, *(FINE_TIMES if self._protocols & {"file", "local", "memory"} else ()))
        known = [str(found[name]) for name in names if found.get(name)]
        return (found.get("size"), *known) if known else None

    # -- listing -----------------------------------------------------------------------------------------------

    def list_dir(self, prefix: str = "") -> Listing:
        self._check_listable()
        keys: list[str] = []
        prefixes: list[str] = []
        try:
            with self._lock:
                found = self._files.ls(self._prefix(prefix), detail=True)
        except (FileNotFoundError, NotADirectoryError):
            return Listing([], [])
        except Exception as error:
            raise self._broken("listed", prefix, error) from error
        own = self._prefix(prefix).strip("/")
        for entry in found:
            name = entry["name"].strip("/")
            if name == own:
                continue
            last = name.rpartition("/")[2]
            if entry["type"] == "directory":
                prefixes.append(last)
            elif not last.startswith(TEMPORARY):
                keys.append(last)
        return Listing(sorted(keys), sorted(prefixes))

    def _find(self, prefix: str) -> dict[str, dict[str, Any]]:
        self._check_listable()
        try:
            with self._lock:
                found: dict[str, dict[str, Any]] = self._files.find(self._prefix(prefix), detail=True)
        except (FileNotFoundError, NotADirectoryError):
            return {}
        except Exception as error:
            raise self._broken("listed", prefix, error) from error
        cut = len(self._root.strip("/")) + 1 if self._root.strip("/") else 0
        entries = {name.strip("/")[cut:]: entry for name, entry in found.items()}
        start = f"{prefix}/" if prefix else ""
        return {
            key: entry
            for key, entry in entries.items()
            if key.startswith(start) and not key.rpartition("/")[2].startswith(TEMPORARY)
        }

    def list_prefix(self, prefix: str = "") -> Iterator[str]:
        return iter(self._find(prefix))

    def usage(self, prefix: str = "") -> Usage:
        found = self._find(prefix)
        return Usage(len(found), sum(entry.get("size") or 0 for entry in found.values()), None)

    def _check_listable(self) -> None:
        if not self.listable:
            raise StoreError(
                f"{self._shown} cannot be listed: a web server tells no names. Members of a group are found where its "
                "metadata are consolidated, or name them by OME-NGFF"
            )

    # -- writing -----------------------------------------------------------------------------------------------

    def set(self, key: str, value: Buffer) -> None:
        if self.read_only:
            raise self._refuse(f"writing {key!r}")
        path = self._path(key)
        data = bytes(value)
        try:
            with self._lock:
                if self._protocols & RENAMING:
                    self._replace(path, data)
                else:
                    self._files.pipe_file(path, data)
        except Exception as error:
            raise self._broken("written", key, error) from error

    def _replace(self, path: str, data: bytes) -> None:
        """Write beside the old value, then rename."""
        folder, _, name = path.rpartition("/")
        self._files.makedirs(folder, exist_ok=True)
        temporary = f"{folder}/{TEMPORARY}{uuid.uuid4().hex}-{name[:100]}"
        try:
            self._files.pipe_file(temporary, data)
            self._files.mv(temporary, path)
        except BaseException:
            if self._files.exists(temporary):
                self._files.rm_file(temporary)
            raise

    def delete(self, key: str) -> None:
        if self.read_only:
            raise self._refuse(f"deleting {key!r}")
        path = self._path(key)
        try:
            with self._lock:
                self._files.rm_file(path)
        except Exception as error:
            if not _is_absence(error) and self.exists(key):
                raise self._broken("deleted", key, error) from error

    def delete_prefix(self, prefix: str) -> None:
        super().delete_prefix(prefix)
        if self._protocols & RENAMING:  # directories stay behind, empty
            with self._lock, suppress(Exception):
                self._files.rm(self._prefix(prefix), recursive=True)

    # -- life --------------------------------------------------------------------------------------------------

    def close(self) -> None:
        session = getattr(self._files, "_session", None)
        if self._web and session is not None and not session.closed:
            from fsspec.asyn import sync

            sync(self._files.loop, session.close)

    def __reduce__(self) -> tuple[Any, ...]:
        return _reopen, (self._given, self.read_only, self._options)


def _reopen(url: str, read_only: bool, options: dict[str, Any]) -> RemoteStore:
    return RemoteStore(url, read_only=read_only, storage_options=options)


def is_known(protocol: str) -> bool:
    """Whether fsspec knows a protocol, with or without the package that it takes."""
    fsspec = load_library("fsspec", EXTRAS.get(protocol.lower(), "remote"), f"{protocol}:// URLs:")
    return protocol.lower() in fsspec.available_protocols()


def without_password(url: str) -> str:
    """Return a URL to show: user, password and a query, which may hold a signature, are left out."""
    head, mark, last = url.rpartition("::")
    parts = urlsplit(last)
    host = parts.netloc.rpartition("@")[2]
    return head + mark + urlunsplit(parts._replace(netloc=host, query="")).rstrip("/")


def _is_absence(error: BaseException) -> bool:
    """Whether a file system says in its own words that there is nothing: references and archives raise KeyError."""
    if isinstance(error, FileNotFoundError | NotADirectoryError | IsADirectoryError | KeyError):
        return True
    return getattr(error, "status", None) == 404 or getattr(error, "errno", None) == errno.ENAMETOOLONG


async def _fetch_ranges(files: Any, url: str, ranges: Sequence[ByteRange]) -> list[Buffer]:
    """Fetch ranges of one URL at once. A server that knows no ranges sends everything, which is then cut here."""
    session = await files.set_session()

    async def fetch(byte_range: ByteRange) -> Buffer:
        start, length = byte_range
        if length == 0:
            return b""
        wanted = f"{start}-" if length is None else f"{start}-{start + length - 1}"
        headers = {**files.kwargs.get("headers", {}), "Range": f"bytes={start if start < 0 else wanted}"}
        options = {**files.kwargs, "headers": {**headers, "Accept-Encoding": "identity"}}
        async with session.get(files.encode_url(url), **options) as answer:
            if answer.status == 404:
                raise FileNotFoundError(url)
            if answer.status == 416:  # it begins beyond the end
                return b""
            answer.raise_for_status()
            body: bytes = await answer.read()
            if answer.status == 206:
                return body
            first, last = byte_range.resolve(len(body))
            return body[first:last]

    return list(await asyncio.gather(*map(fetch, ranges)))
