"""File systems of fsspec as stores: http, s3, gs, abfs, ftp, sftp, github, references, and chains of them.

Requires ``fsspec`` and the package of the protocol. Requests of several threads run concurrently if the file system
is asynchronous (http, s3, gs, abfs). A missing key is None. A denied request, a server error or a lost connection is
a StoreError, never a missing chunk.

How a missing key is recognized (``presence.py`` classifies the errors):

* s3, gs, abfs, http, sftp, local files, memory: by the status (404) or the error number, without another request. If
  the cause of the error can have another meaning, one lookup is needed.
* ftp: by the replies, which ``ftp.py`` parses, because fsspec reports every negative reply as a missing file. If a
  server uses the same text for "no such file" and "not allowed", one listing is needed for each missing chunk.
* references, tar and other archives: by their index, without another request. If the index contains the key, every
  error is a failure, including "not found": the file that contains the value is missing.
"""

from __future__ import annotations

import asyncio
import errno
import os
import threading
import uuid
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from zarrfs.engine.stores.base import IMMUTABLE, Buffer, ByteRange, Listing, Store, Usage, check_key
from zarrfs.engine.stores.databases.base import load_library
from zarrfs.engine.stores.fsspec.ftp import FTPReader
from zarrfs.engine.stores.fsspec.http import HTTPRangeReader
from zarrfs.engine.stores.fsspec.presence import Presence, classify_error, error_hint
from zarrfs.engine.stores.fsspec.references import (
    ReferencePolicy,
    find_reference_file_system,
    is_local_url,
    local_path,
)
from zarrfs.engine.stores.regular_files import check_regular_file
from zarrfs.engine.stores.temporary_files import TEMPORARY_PREFIX
from zarrfs.errors import KeyNameError, LocationError, ReadOnlyError, StoreError
from zarrfs.plugins import install_hint

__all__ = ["RemoteStore", "is_known_protocol"]

MAX_CONCURRENT_REQUESTS = 32

RENAME_PROTOCOLS = {"file", "local", "ftp", "sftp", "ssh", "hdfs", "smb", "arrow_hdfs", "webhdfs"}
"""Protocols with non-atomic writes: a value is written to a temporary file, which is renamed over the target."""

INDEXED_PROTOCOLS = {"reference", "zip", "tar", "libarchive"}
"""Protocols with an index of the keys in memory. Only the index decides whether a key is missing."""

SUFFIX_RANGE_PROTOCOLS = {"s3", "s3a", "gs", "gcs"}
"""Protocols that can fetch the last bytes of a value without knowing its size (suffix ranges)."""

SIZE_BEFORE_READ_PROTOCOLS = {"s3", "s3a"}
"""Protocols whose ``cat_file`` requests the size first. The range from 0 to the end avoids this request."""

UNSIZED_RANGE_PROTOCOLS = {*SUFFIX_RANGE_PROTOCOLS, "abfs", "abfss", "az"}
"""Protocols that can fetch a range without knowing the size of the value."""

EXTRAS_BY_PROTOCOL = {
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

URL_DELIMITERS = set("?#\n\r\t")
"""Characters that some file systems parse as delimiters of a URL or remove."""

MAX_NAME_NBYTES = 255
"""The maximum length of a file name in the file systems of SFTP servers."""

VERSION_FIELDS = ("ETag", "etag", "e_tag", "generation", "md5Hash", "content_md5", "Content-MD5", "Digest")
"""Fields of ``info`` that change whenever the value changes. Times are not used; they can have whole seconds."""

LOCAL_VERSION_FIELDS = ("mtime", "created", "ino")


class RemoteStore(Store):
    """Values below a URL.

    A store that is open read-only treats its values as immutable, so that decoded chunks can be cached. Open the store
    again to see changes. ``storage_options`` are passed to fsspec: credentials, ``anon=True``, ``endpoint_url`` and
    others. Without them the environment variables and configuration files of each protocol apply. With
    ``allow_external`` references may name files and hosts at other locations (``references.py``), and symbolic links
    of local files are followed. Raises LocationError if the URL cannot be opened.
    """

    concurrency = MAX_CONCURRENT_REQUESTS

    def __init__(
        self,
        url: str,
        *,
        read_only: bool = False,
        storage_options: Mapping[str, Any] | None = None,
        allow_external: bool = False,
    ) -> None:
        self.read_only = read_only
        self.allow_external = allow_external
        self._original_url, self._storage_options = url, copy_options(storage_options)
        self._display_url = redact_url(url)
        protocol = url.partition("://")[0].rpartition("::")[2].lower()
        fsspec = load_library("fsspec", EXTRAS_BY_PROTOCOL.get(protocol, "remote"), f"{self._display_url}:")
        asyn = load_library("fsspec.asyn", "remote", f"{self._display_url}:")
        options = copy_options(self._storage_options)
        origin, origin_protocol = _find_origin(url, options)
        if origin is not None and is_local_url(origin, origin_protocol):
            _check_local_file(local_path(origin))
        if url.partition("::")[0].partition("://")[0] == "reference" and not allow_external:
            # Without this option the references choose the protocols.
            reference_options = (
                options["reference"] if isinstance(options.get("reference"), dict) else options
            )
            if "fs" not in reference_options:
                reference_options.setdefault("remote_protocol", _protocol_of(origin, origin_protocol))
        try:
            self._file_system, root = fsspec.core.url_to_fs(url, skip_instance_cache=True, **options)
            # There is an option for this, but sftp and webdav pass it on to client libraries that do not accept it.
            if isinstance(getattr(self._file_system, "dircache", None), fsspec.dircache.DirCache):
                self._file_system.dircache.use_listings_cache = False
        except ImportError as error:
            extra = EXTRAS_BY_PROTOCOL.get(protocol)
            advice = f": {install_hint(extra)}" if extra else ""
            raise LocationError(f"{self._display_url}: a package is missing{advice} ({error})") from error
        except Exception as error:
            raise LocationError(
                f"{self._display_url} cannot be opened: {error or type(error).__name__}"
            ) from error
        protocols = self._file_system.protocol
        self._protocols = {protocols} if isinstance(protocols, str) else set(protocols)
        self._is_http = bool(self._protocols & {"http", "https"})
        # HTTP servers have no common protocol for writing.
        self.read_only = read_only or self._is_http
        # HTTP servers have no reliable listing.
        self.listable = not self._is_http
        root, delimiter, query = root.partition("?") if self._is_http else (root, "", "")
        self._root, self._query = root.rstrip("/"), delimiter + query
        generic_methods = asyn.AsyncFileSystem._find, fsspec.AbstractFileSystem.find
        find_method = getattr(type(self._file_system), "_find" if self._file_system.async_impl else "find")
        self._has_native_find = find_method not in generic_methods
        self._range_reader = HTTPRangeReader(self._file_system)
        reference_files = None if allow_external else find_reference_file_system(self._file_system)
        self._reference_policy = (
            None if reference_files is None else ReferencePolicy(reference_files, origin, origin_protocol)
        )
        self._local_root: str | None = None
        if self._protocols & {"file", "local"} and not allow_external:
            self._local_root = os.path.realpath(self._root or "/")
        self._ftp = FTPReader(self._file_system) if "ftp" in self._protocols else None
        self._lock: AbstractContextManager[Any] = nullcontext()
        if not getattr(self._file_system, "async_impl", False):
            # Most synchronous file systems use one connection.
            self.concurrency = 1
            self._lock = threading.RLock()

    @property
    def url(self) -> str:
        """The URL without user, password and query."""
        return self._display_url

    def _read_only_error(self, operation: str) -> ReadOnlyError:
        if self._is_http:
            return ReadOnlyError(
                f"{self._display_url} is on a web server, which can only be read: {operation} is refused"
            )
        return super()._read_only_error(operation)

    def _path(self, key: str) -> str:
        self._check_open()
        path = f"{self._root}/{check_key(key)}{self._query}" if self._root else check_key(key)
        if (
            not self._is_http
            and URL_DELIMITERS & set(key)
            and self._file_system._strip_protocol(path) != path
        ):
            raise StoreError(
                f"{self._display_url}: this protocol does not support the key {key!r}, because it contains delimiters "
                "of URLs"
            )
        if not key.isascii() and not self._protocols & {"file", "local", "memory"}:
            try:
                key.encode()
            except UnicodeEncodeError as error:
                raise KeyNameError(
                    f"{self._display_url}: a key of a remote store must be Unicode text, found {key!r}"
                ) from error
        if self._reference_policy is not None:
            try:
                self._reference_policy.check(key, path)
            except StoreError as error:
                raise StoreError(f"{self._display_url}: {error}", error.errno) from None
        if self._protocols & {"file", "local"}:
            self._check_local_path(path)
        return path

    def _check_local_path(self, path: str) -> None:
        """Check a local file before fsspec opens it, because fsspec waits for FIFOs and follows all links."""
        target = os.path.realpath(path)
        root = self._local_root
        if root is not None and not f"{target}/".startswith(root.rstrip("/") + "/"):
            raise StoreError(
                f"{path} is a symbolic link that leads out of the store, to {target}: it is not followed; open the "
                "store with allow_external=True (--allow-external) if you trust the data",
                errno.EACCES,
            )
        try:
            check_regular_file(target)
        except StoreError:
            raise
        except OSError:  # fsspec raises it too, and it is classified there
            return

    def _prefix(self, prefix: str) -> str:
        self._check_open()
        return "/".join(part for part in (self._root, prefix) if part)

    def _operation_error(self, participle: str, key: str, error: BaseException) -> StoreError:
        """Return the error for an operation, given as a participle such as "read", that has failed with ``error``."""
        reason = str(error) or type(error).__name__
        if isinstance(error, asyncio.TimeoutError | TimeoutError):
            reason = "the server did not respond in time"
        elif error.__cause__ is not None:
            reason = f"{reason} ({error.__cause__ or type(error.__cause__).__name__})"
        return StoreError(f"{self._display_url}/{key} cannot be {participle}: {reason}{error_hint(error)}")

    def _raise_unless_missing(self, participle: str, key: str, path: str, error: Exception) -> None:
        """Return if ``error`` reliably means that the key is missing. Otherwise raise StoreError."""
        presence = classify_error(error)
        if self._protocols & INDEXED_PROTOCOLS:
            is_missing = presence is Presence.MISSING and not self._is_indexed(path)
        elif "sftp" in self._protocols and _is_sftp_failure(error):
            is_too_long = any(len(part.encode()) > MAX_NAME_NBYTES for part in key.split("/"))
            is_missing = is_too_long or self._is_missing_file(path)
        elif presence is Presence.UNCERTAIN:
            is_missing = self._is_missing_file(path)
        else:
            is_missing = presence is Presence.MISSING
        if not is_missing:
            raise self._operation_error(participle, key, error) from error

    def _is_indexed(self, path: str) -> bool:
        with self._lock:
            if "reference" in self._protocols:  # ``info`` can request the size from the target
                return bool(self._file_system.isfile(path))
            try:
                return bool(self._file_system.info(path)["type"] != "directory")
            except Exception as error:
                return classify_error(error) is not Presence.MISSING

    def _is_missing_file(self, path: str) -> bool:
        try:
            with self._lock:
                return bool(self._file_system.info(path)["type"] == "directory")
        except Exception as error:
            return classify_error(error) is Presence.MISSING

    # -- reading -----------------------------------------------------------------------------------------------

    def get(self, key: str) -> Buffer | None:
        path = self._path(key)
        try:
            with self._lock:
                if self._ftp is not None:
                    return self._ftp.read(path)
                if self._protocols & SIZE_BEFORE_READ_PROTOCOLS:
                    buffers = self._unsized_ranges(path, [ByteRange(0)])
                    if buffers is not None:
                        return buffers[0]
                value: bytes = self._file_system.cat_file(path)
        except Exception as error:
            if self._ftp is not None:
                raise self._operation_error("read", key, error) from error
            self._raise_unless_missing("read", key, path, error)
            return None
        return value

    def get_ranges(self, key: str, ranges: Sequence[ByteRange]) -> list[Buffer] | None:
        path = self._path(key)
        try:
            if not ranges:
                return None if self.size(key) is None else []
            if self._is_http:
                return self._http_ranges(path, ranges)
            with self._lock:
                buffers = self._unsized_ranges(path, ranges)
                return self._sized_ranges(key, path, ranges) if buffers is None else buffers
        except StoreError:
            raise
        except Exception as error:
            if self._ftp is not None:
                raise self._operation_error("read", key, error) from error
            self._raise_unless_missing("read", key, path, error)
            return None

    def _http_ranges(self, path: str, ranges: Sequence[ByteRange]) -> list[Buffer]:
        from fsspec.asyn import sync

        buffers: list[Buffer] = sync(self._file_system.loop, self._range_reader.fetch, path, ranges)
        return buffers

    def _unsized_ranges(self, path: str, ranges: Sequence[ByteRange]) -> list[Buffer] | None:
        """Return the bytes of the ranges, or None if the size of the value is needed to fetch them."""
        if not self._protocols & UNSIZED_RANGE_PROTOCOLS or any(length == 0 for _, length in ranges):
            return None
        if not self._protocols & SUFFIX_RANGE_PROTOCOLS and any(
            start < 0 or length is None for start, length in ranges
        ):
            return None
        starts = [start for start, _ in ranges]
        stops = [None if length is None else start + length for start, length in ranges]
        results = self._file_system.cat_ranges([path] * len(ranges), starts, stops, on_error="return")
        for (start, length), result in zip(ranges, results, strict=True):
            if isinstance(result, Exception):
                if classify_error(result) is Presence.MISSING:
                    raise result
                return (
                    None  # Usually a range that starts beyond the end, or a suffix range of an empty value.
                )
            if len(result) > (-start if start < 0 else length or len(result)):
                return None  # The server does not support this kind of range and has sent more bytes.
        return list(results)

    def _sized_ranges(self, key: str, path: str, ranges: Sequence[ByteRange]) -> list[Buffer] | None:
        """Return the bytes of the ranges, clipped to the value. Requests the size of the value first."""
        size = self.size(key)
        if size is None:
            return None
        resolved = [byte_range.resolve(size) for byte_range in ranges]
        results = iter(self._cat_ranges(path, [(start, stop) for start, stop in resolved if stop > start]))
        buffers: list[Buffer] = []
        for start, stop in resolved:
            buffer = next(results) if stop > start else b""
            if len(buffer) != max(0, stop - start):
                raise StoreError(
                    f"{self._display_url}/{key} cannot be read: requested {stop - start} bytes from {start} of {size}, "
                    f"found {len(buffer)}; the value has changed or the connection was lost: try again"
                )
            buffers.append(buffer)
        return buffers

    def _cat_ranges(self, path: str, bounds: Sequence[tuple[int, int]]) -> list[bytes]:
        """Return the bytes of ``(start, stop)`` ranges, which are not empty."""
        if not bounds:
            return []
        if self._ftp is not None:
            return [self._ftp.read(path, start, stop - start) or b"" for start, stop in bounds]
        starts, stops = ([pair[side] for pair in bounds] for side in (0, 1))
        return list(self._file_system.cat_ranges([path] * len(bounds), starts, stops, on_error="raise"))

    def size(self, key: str) -> int | None:
        path = self._path(key)
        try:
            with self._lock:
                if self._ftp is not None:
                    return self._ftp.size(path)
                info = self._file_system.info(path)
        except Exception as error:
            if self._ftp is not None:
                raise self._operation_error("looked up", key, error) from error
            self._raise_unless_missing("looked up", key, path, error)
            return None
        if info.get("type") == "directory":
            return None
        if info.get("size") is None:  # an HTTP server need not report the size
            value = self.get(key)
            return None if value is None else len(value)
        return int(info["size"])

    def stamp(self, key: str) -> Hashable | None:
        self._check_open()
        return IMMUTABLE if self.read_only else None

    def version(self, key: str) -> Hashable | None:
        path = self._path(key)
        if self._ftp is not None:
            return None
        try:
            with self._lock:
                info = self._file_system.info(path)
        except Exception as error:
            self._raise_unless_missing("looked up", key, path, error)
            return None
        names = (
            *VERSION_FIELDS,
            *(LOCAL_VERSION_FIELDS if self._protocols & {"file", "local", "memory"} else ()),
        )
        values = [str(info[name]) for name in names if info.get(name)]
        return (info.get("size"), *values) if values else None

    # -- listing -----------------------------------------------------------------------------------------------

    def list_dir(self, prefix: str = "") -> Listing:
        self._check_listable()
        names = {name: is_directory for name, is_directory, _ in self._entries(prefix)}
        return Listing(
            sorted(name for name, is_directory in names.items() if not is_directory),
            sorted(name for name, is_directory in names.items() if is_directory),
        )

    def _entries(self, prefix: str) -> list[tuple[str, bool, int]]:
        """Return ``(name, is_directory, size)`` of each entry one level below a prefix."""
        path = self._prefix(prefix)
        try:
            with self._lock:
                if self._ftp is not None:
                    listing = self._ftp.list(path or "/") or {}
                    entries = [(name, entry.is_directory, entry.size or 0) for name, entry in listing.items()]
                else:
                    entries = [
                        (entry["name"].strip("/"), entry["type"] == "directory", entry.get("size") or 0)
                        for entry in self._file_system.ls(path, detail=True)
                    ]
        except Exception as error:
            if self._ftp is None and classify_error(error) is Presence.MISSING:
                return []
            raise self._operation_error("listed", prefix, error) from error
        own_name = path.strip("/")
        return [
            (name.rpartition("/")[2], is_directory, size)
            for name, is_directory, size in entries
            if name != own_name
            and not (name.rpartition("/")[2].startswith(TEMPORARY_PREFIX) and not is_directory)
        ]

    def _list_sizes(self, prefix: str) -> dict[str, int]:
        """Return the sizes of all keys below a prefix, by key."""
        self._check_listable()
        if not self._has_native_find:
            return self._walk(prefix)
        path = self._prefix(prefix)
        try:
            with self._lock:
                infos: dict[str, dict[str, Any]] = self._file_system.find(path, detail=True)
        except Exception as error:
            if classify_error(error) is Presence.MISSING:
                return {}
            raise self._operation_error("listed", prefix, error) from error
        root_length = len(self._root.strip("/")) + 1 if self._root.strip("/") else 0
        sizes = {name.strip("/")[root_length:]: info.get("size") or 0 for name, info in infos.items()}
        start = f"{prefix}/" if prefix else ""
        return {
            key: size
            for key, size in sizes.items()
            if key.startswith(start) and not key.rpartition("/")[2].startswith(TEMPORARY_PREFIX)
        }

    def _walk(self, prefix: str) -> dict[str, int]:
        """Return the sizes of all keys below a prefix by walking over its directories.

        ``find`` of fsspec is not used: it silently omits directories that cannot be listed.
        """
        sizes: dict[str, int] = {}
        pending = [prefix]
        while pending:
            directory = pending.pop()
            for name, is_directory, size in self._entries(directory):
                key = f"{directory}/{name}" if directory else name
                if is_directory:
                    pending.append(key)
                else:
                    sizes[key] = size
        return sizes

    def list_prefix(self, prefix: str = "") -> Iterator[str]:
        return iter(self._list_sizes(prefix))

    def usage(self, prefix: str = "") -> Usage:
        sizes = self._list_sizes(prefix)
        return Usage(len(sizes), sum(sizes.values()), None)

    def _check_listable(self) -> None:
        self._check_open()
        if not self.listable:
            raise StoreError(
                f"{self._display_url} cannot be listed: it is on a web server. The members of a group are found only "
                "if its metadata are consolidated or its OME-NGFF metadata name them"
            )

    # -- writing -----------------------------------------------------------------------------------------------

    def set(self, key: str, value: Buffer) -> None:
        if self.read_only:
            raise self._read_only_error(f"writing {key!r}")
        path = self._path(key)
        data = bytes(value)
        try:
            self._modify(lambda: self._write(path, data))
        except Exception as error:
            raise self._operation_error("written", key, error) from error

    def _modify(self, change: Callable[[], object]) -> None:
        with self._lock:
            if self._ftp is None:
                change()
            else:
                self._ftp.run(lambda connection: change(), retry=False)

    def _write(self, path: str, data: bytes) -> None:
        if self._protocols & RENAME_PROTOCOLS:
            self._write_and_rename(path, data)
        else:
            self._file_system.pipe_file(path, data)

    def _write_and_rename(self, path: str, data: bytes) -> None:
        """Write a temporary file in the same directory and rename it over the target."""
        folder, _, name = path.rpartition("/")
        self._file_system.makedirs(folder, exist_ok=True)
        temporary = f"{folder}/{TEMPORARY_PREFIX}{uuid.uuid4().hex}-{name[:100]}"
        try:
            self._file_system.pipe_file(temporary, data)
            self._file_system.mv(temporary, path)
        except BaseException:
            if self._file_system.exists(temporary):
                self._file_system.rm_file(temporary)
            raise

    def delete(self, key: str) -> None:
        if self.read_only:
            raise self._read_only_error(f"deleting {key!r}")
        path = self._path(key)
        try:
            self._modify(lambda: self._file_system.rm_file(path))
        except Exception as error:
            if self.exists(key):
                raise self._operation_error("deleted", key, error) from error

    def delete_prefix(self, prefix: str) -> None:
        super().delete_prefix(prefix)
        if self._protocols & RENAME_PROTOCOLS:  # empty directories remain
            with self._lock, suppress(Exception):
                self._file_system.rm(self._prefix(prefix), recursive=True)

    # -- closing -----------------------------------------------------------------------------------------------

    def close(self) -> None:
        super().close()
        if self._ftp is not None:
            with suppress(OSError):
                self._file_system.ftp.close()
        elif "sftp" in self._protocols:
            self._file_system.client.close()
        # The aiohttp session of http, and the client of Azure. s3 and gs close theirs when the process exits.
        for name in ("_session",) if self._is_http else ("service_client",):
            connection = getattr(self._file_system, name, None)
            if connection is not None and not getattr(connection, "closed", False):
                from fsspec.asyn import sync

                sync(self._file_system.loop, connection.close)

    def __reduce__(self) -> tuple[Any, ...]:
        return _open_remote_store, (
            self._original_url,
            self.read_only,
            self._storage_options,
            self.allow_external,
        )


def _open_remote_store(
    url: str, read_only: bool, options: dict[str, Any], allow_external: bool
) -> RemoteStore:
    return RemoteStore(url, read_only=read_only, storage_options=options, allow_external=allow_external)


def _find_origin(url: str, options: Mapping[str, Any]) -> tuple[str | None, str | None]:
    """Return the location and the default protocol of the file that a chain of file systems reads.

    This is an archive or a file of references. Both are None if there is no such file.
    """
    chain, separator, last = url.rpartition("::")
    nested_options = options.get("reference")
    nested_options = nested_options if isinstance(nested_options, Mapping) else options
    if separator and "reference" not in chain.split("::")[-1].partition("://")[0]:
        return last, None
    if separator:
        return last, nested_options.get("target_protocol")
    for name in ("fo", "archive"):
        if isinstance(nested_options.get(name), str):
            return nested_options[name].rpartition("::")[2], nested_options.get("target_protocol")
    return None, None


def _protocol_of(origin: str | None, protocol: str | None) -> str:
    if origin is None:
        return "file"
    return origin.partition("://")[0] if "://" in origin else protocol or "file"


def _check_local_file(path: str) -> None:
    try:
        with suppress(IsADirectoryError):
            check_regular_file(path)
    except StoreError as error:
        raise LocationError(str(error)) from error
    except OSError as error:
        raise LocationError(f"{path} cannot be opened: {error.strerror}") from error


def copy_options(options: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return a copy of the options and of the options of each protocol in them. fsspec modifies both."""
    return {key: dict(value) if type(value) is dict else value for key, value in (options or {}).items()}


def is_known_protocol(protocol: str) -> bool:
    """Return whether fsspec knows a protocol. The package of the protocol need not be installed."""
    fsspec = load_library(
        "fsspec", EXTRAS_BY_PROTOCOL.get(protocol.lower(), "remote"), f"{protocol}:// URLs:"
    )
    return protocol.lower() in fsspec.available_protocols()


def _is_sftp_failure(error: BaseException) -> bool:
    """Return whether the error is SSH_FX_FAILURE. SFTP 3 has no other code for directories and for too long names."""
    return isinstance(error, OSError) and error.errno is None


def redact_url(url: str) -> str:
    """Return a URL for display, without user, password and query. A query can contain a signature."""
    chain, separator, last = url.rpartition("::")
    parts = urlsplit(last)
    host = parts.netloc.rpartition("@")[2]
    return chain + separator + urlunsplit(parts._replace(netloc=host, query="")).rstrip("/")
