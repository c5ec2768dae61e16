"""Everything that fsspec opens as a store: http, s3, gs, abfs, ftp, sftp, github, references, and chains of them.

Needs ``fsspec`` and what it asks for the protocol. Requests of several threads are in flight at once where the file
system is asynchronous (http, s3, gs, abfs). A missing key is None; a refusal, a server's error or a lost connection is
a StoreError, never a missing chunk.

Whose word for absence is taken, and what it costs (``absence.py`` judges the errors):

* s3, gs, abfs, http, sftp, local files, memory: the status (404) or error number that came is looked at, which
  costs nothing. An error that claims absence because of another that need not mean it costs one look-up.
* ftp: its replies are read by ``ftp.py``, since fsspec calls them all absence. Servers that word "no such file" and
  "not allowed" alike cost a listing per absent chunk.
* references, tar and other archives: a key is absent where their index does not have it, which costs nothing. Where the
  index has it, whatever goes wrong below is trouble, "not found" included: the file that it lies in is gone.
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
from zarrfs.engine.stores.fsspec.http import WebRanges
from zarrfs.engine.stores.fsspec.presence import Presence, classify_error, hint
from zarrfs.engine.stores.fsspec.references import ReferencePolicy, find_reference_files, is_local, local_path
from zarrfs.engine.stores.regular_files import check_regular_file
from zarrfs.errors import KeyNameError, LocationError, ReadOnlyError, StoreError
from zarrfs.plugins import install_hint

__all__ = ["RemoteStore", "is_known"]

REQUESTS_AT_ONCE = 32

RENAMING = {"file", "local", "ftp", "sftp", "ssh", "hdfs", "smb", "arrow_hdfs", "webhdfs"}
"""Protocols that show a file while it is written: there a new value is written beside the old one and renamed."""

INDEXED = {"reference", "zip", "tar", "libarchive"}
"""Protocols that have an index of their keys in memory, which says what is absent; no error from below does."""

SUFFIXES = {"s3", "s3a", "gs", "gcs"}
"""Protocols that fetch the last bytes of a value without being told its size."""

ASKS_SIZE = {"s3", "s3a"}
"""Protocols that ask for the size of a value before they fetch the whole of it; not where they fetch from 0 on."""

UNSIZED = {*SUFFIXES, "abfs", "abfss", "az"}
"""Protocols that fetch a range without being told the size of the value."""

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

MARKS = set("?#\n\r\t")
"""Characters that some file systems take for parts of a URL, or leave out."""

MAX_NAME_NBYTES = 255
"""Bytes in a name, of the file systems that SFTP servers have."""

TEMPORARY = ".zarrfs-writing-"


VERSIONS = ("ETag", "etag", "e_tag", "generation", "md5Hash", "content_md5", "Content-MD5", "Digest")
"""What servers tell of a value that changes whenever it does. A time in whole seconds does not."""

FINE_TIMES = ("mtime", "created", "ino")


class RemoteStore(Store):
    """Values below a URL.

    Read-only, it takes what it has read for unchanged as long as it is open, so that chunks can be kept; open anew to
    see changes. ``storage_options`` go to fsspec: credentials, ``anon=True``, ``endpoint_url`` and the like. Without
    them, the usual environment variables and configuration files of each protocol count. With ``allow_external``
    references may name files and hosts other than their own (``references.py``), and links of local files may lead
    anywhere.
    """

    concurrency = REQUESTS_AT_ONCE

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
        self._given, self._options = url, copy_options(storage_options)
        self._shown = without_password(url)
        protocol = url.partition("://")[0].rpartition("::")[2].lower()
        fsspec = load_library("fsspec", EXTRAS.get(protocol, "remote"), f"{self._shown}:")
        asyn = load_library("fsspec.asyn", "remote", f"{self._shown}:")
        options = copy_options(self._options)
        origin, origin_protocol = _origin_of(url, options)
        if origin is not None and is_local(origin, origin_protocol):
            _check_local_file(local_path(origin))
        if url.partition("::")[0].partition("://")[0] == "reference" and not allow_external:
            # Else the references choose which protocols are used.
            known = options["reference"] if isinstance(options.get("reference"), dict) else options
            if "fs" not in known:
                known.setdefault("remote_protocol", _protocol_of(origin, origin_protocol))
        try:
            self._files, root = fsspec.core.url_to_fs(url, skip_instance_cache=True, **options)
            # Not by an option: sftp and webdav would hand it on to their servers' clients, which do not know it.
            if isinstance(getattr(self._files, "dircache", None), fsspec.dircache.DirCache):
                self._files.dircache.use_listings_cache = False
        except ImportError as error:
            extra = EXTRAS.get(protocol)
            hint = f": {install_hint(extra)}" if extra else ""
            raise LocationError(f"{self._shown}: a package is missing{hint} ({error})") from error
        except Exception as error:
            raise LocationError(f"{self._shown} cannot be opened: {error or type(error).__name__}") from error
        kinds = self._files.protocol
        self._protocols = {kinds} if isinstance(kinds, str) else set(kinds)
        self._web = bool(self._protocols & {"http", "https"})
        # Web servers have no common way to be written to.
        self.read_only = read_only or self._web
        # A web server lists nothing that could be relied on.
        self.listable = not self._web
        root, mark, query = root.partition("?") if self._web else (root, "", "")
        self._root, self._query = root.rstrip("/"), mark + query
        generic = asyn.AsyncFileSystem._find, fsspec.AbstractFileSystem.find
        own = getattr(type(self._files), "_find" if self._files.async_impl else "find")
        self._finds_all = own not in generic
        self._ranges = WebRanges(self._files)
        references = None if allow_external else find_reference_files(self._files)
        self._references = (
            None if references is None else ReferencePolicy(references, origin, origin_protocol)
        )
        self._local_root: str | None = None
        if self._protocols & {"file", "local"} and not allow_external:
            self._local_root = os.path.realpath(self._root or "/")
        self._ftp = FTPReader(self._files) if "ftp" in self._protocols else None
        self._lock: AbstractContextManager[Any] = nullcontext()
        if not getattr(self._files, "async_impl", False):
            # Most of the others talk through one connection.
            self.concurrency = 1
            self._lock = threading.RLock()

    @property
    def url(self) -> str:
        """The URL, without a password."""
        return self._shown

    def _refuse(self, what: str) -> ReadOnlyError:
        if self._web:
            return ReadOnlyError(
                f"{self._shown} is on a web server, which can only be read: {what} is refused"
            )
        return super()._refuse(what)

    def _path(self, key: str) -> str:
        self._check_open()
        path = f"{self._root}/{check_key(key)}{self._query}" if self._root else check_key(key)
        if not self._web and MARKS & set(key) and self._files._strip_protocol(path) != path:
            raise StoreError(
                f"{self._shown}: {key!r} would be taken for another name here: it has marks of URLs in it"
            )
        if not key.isascii() and not self._protocols & {"file", "local", "memory"}:
            try:
                key.encode()
            except UnicodeEncodeError as error:
                raise KeyNameError(
                    f"{self._shown}: a key must be Unicode text here, found {key!r}"
                ) from error
        if self._references is not None:
            try:
                self._references.check(key, path)
            except StoreError as error:
                raise StoreError(f"{self._shown}: {error}", error.errno) from None
        if self._protocols & {"file", "local"}:
            self._check_local(path)
        return path

    def _check_local(self, path: str) -> None:
        """Check a local file before fsspec opens it: fsspec waits for FIFOs and follows links."""
        target = os.path.realpath(path)
        root = self._local_root
        if root is not None and not f"{target}/".startswith(root.rstrip("/") + "/"):
            raise StoreError(
                f"{path} is a symbolic link that leads out of the store, to {target}: it is not followed; open the "
                "store with allow_external=True (--allow-external) if you trust these data",
                errno.EACCES,
            )
        try:
            check_regular_file(target)
        except StoreError:
            raise
        except OSError:  # fsspec meets it too; what it means is judged there
            return

    def _prefix(self, prefix: str) -> str:
        self._check_open()
        return "/".join(part for part in (self._root, prefix) if part)

    def _broken(self, what: str, key: str, error: BaseException) -> StoreError:
        reason = str(error) or type(error).__name__
        if isinstance(error, asyncio.TimeoutError | TimeoutError):
            reason = "the server does not answer in time"
        elif error.__cause__ is not None:
            reason = f"{reason} ({error.__cause__ or type(error.__cause__).__name__})"
        return StoreError(f"{self._shown}/{key} cannot be {what}: {reason}{hint(error)}")

    def _check_absent(self, what: str, key: str, path: str, error: Exception) -> None:
        """Return if ``error`` means that the key is absent, for sure; else raise StoreError."""
        verdict = classify_error(error)
        if self._protocols & INDEXED:
            absent = verdict is Presence.ABSENT and not self._is_indexed(path)
        elif "sftp" in self._protocols and _is_sftp_failure(error):
            absent = any(len(part.encode()) > MAX_NAME_NBYTES for part in key.split("/")) or self._is_no_file(
                path
            )
        elif verdict is Presence.DOUBTFUL:
            absent = self._is_no_file(path)
        else:
            absent = verdict is Presence.ABSENT
        if not absent:
            raise self._broken(what, key, error) from error

    def _is_indexed(self, path: str) -> bool:
        with self._lock:
            if "reference" in self._protocols:  # its info may ask the target, for the size
                return bool(self._files.isfile(path))
            try:
                return bool(self._files.info(path)["type"] != "directory")
            except Exception as error:
                return classify_error(error) is not Presence.ABSENT

    def _is_no_file(self, path: str) -> bool:
        try:
            with self._lock:
                return bool(self._files.info(path)["type"] == "directory")
        except Exception as error:
            return classify_error(error) is Presence.ABSENT

    # -- reading -----------------------------------------------------------------------------------------------

    def get(self, key: str) -> Buffer | None:
        path = self._path(key)
        try:
            with self._lock:
                if self._ftp is not None:
                    return self._ftp.read(path)
                if self._protocols & ASKS_SIZE:
                    pieces = self._unsized_ranges(path, [ByteRange(0)])
                    if pieces is not None:
                        return pieces[0]
                value: bytes = self._files.cat_file(path)
        except Exception as error:
            if self._ftp is not None:
                raise self._broken("read", key, error) from error
            self._check_absent("read", key, path, error)
            return None
        return value

    def get_ranges(self, key: str, ranges: Sequence[ByteRange]) -> list[Buffer] | None:
        path = self._path(key)
        try:
            if not ranges:
                return None if self.size(key) is None else []
            if self._web:
                return self._web_ranges(path, ranges)
            with self._lock:
                pieces = self._unsized_ranges(path, ranges)
                return self._sized_ranges(key, path, ranges) if pieces is None else pieces
        except StoreError:
            raise
        except Exception as error:
            if self._ftp is not None:
                raise self._broken("read", key, error) from error
            self._check_absent("read", key, path, error)
            return None

    def _web_ranges(self, path: str, ranges: Sequence[ByteRange]) -> list[Buffer]:
        from fsspec.asyn import sync

        pieces: list[Buffer] = sync(self._files.loop, self._ranges.fetch, path, ranges)
        return pieces

    def _unsized_ranges(self, path: str, ranges: Sequence[ByteRange]) -> list[Buffer] | None:
        """Fetch ranges at once, or return None where the size of the value is needed for that."""
        if not self._protocols & UNSIZED or any(span.length == 0 for span in ranges):
            return None
        if not self._protocols & SUFFIXES and any(span.start < 0 or span.length is None for span in ranges):
            return None
        starts = [span.start for span in ranges]
        stops = [None if span.length is None else span.start + span.length for span in ranges]
        found = self._files.cat_ranges([path] * len(ranges), starts, stops, on_error="return")
        for span, piece in zip(ranges, found, strict=True):
            if isinstance(piece, Exception):
                if classify_error(piece) is Presence.ABSENT:
                    raise piece
                return None  # Most likely a range that begins beyond the end, or the last bytes of nothing.
            if len(piece) > (-span.start if span.start < 0 else span.length or len(piece)):
                return None  # A server that does not know this kind of range has sent more.
        return list(found)

    def _sized_ranges(self, key: str, path: str, ranges: Sequence[ByteRange]) -> list[Buffer] | None:
        """Fetch ranges that may end beyond the value, or count from its end: its size is asked for first."""
        size = self.size(key)
        if size is None:
            return None
        spans = [byte_range.resolve(size) for byte_range in ranges]
        wanted = [span for span in spans if span[1] > span[0]]
        found = iter(self._cat_ranges(path, wanted))
        pieces: list[Buffer] = []
        for start, stop in spans:
            piece = next(found) if stop > start else b""
            if len(piece) != max(0, stop - start):
                raise StoreError(
                    f"{self._shown}/{key} cannot be read: of {size} bytes, {stop - start} were asked for from {start}, "
                    f"found {len(piece)}; it was changed meanwhile, or the connection was cut: try again"
                )
            pieces.append(piece)
        return pieces

    def _cat_ranges(self, path: str, spans: Sequence[tuple[int, int]]) -> list[bytes]:
        if not spans:
            return []
        if self._ftp is not None:
            return [self._ftp.read(path, start, stop - start) or b"" for start, stop in spans]
        starts, stops = ([span[side] for span in spans] for side in (0, 1))
        return list(self._files.cat_ranges([path] * len(spans), starts, stops, on_error="raise"))

    def size(self, key: str) -> int | None:
        path = self._path(key)
        try:
            with self._lock:
                if self._ftp is not None:
                    return self._ftp.size(path)
                found = self._files.info(path)
        except Exception as error:
            if self._ftp is not None:
                raise self._broken("looked up", key, error) from error
            self._check_absent("looked up", key, path, error)
            return None
        if found.get("type") == "directory":
            return None
        if found.get("size") is None:  # a web server need not tell
            value = self.get(key)
            return None if value is None else len(value)
        return int(found["size"])

    def stamp(self, key: str) -> Hashable | None:
        self._check_open()
        return IMMUTABLE if self.read_only else None

    def version(self, key: str) -> Hashable | None:
        path = self._path(key)
        if self._ftp is not None:
            return None
        try:
            with self._lock:
                found = self._files.info(path)
        except Exception as error:
            self._check_absent("looked up", key, path, error)
            return None
        names = (*VERSIONS, *(FINE_TIMES if self._protocols & {"file", "local", "memory"} else ()))
        known = [str(found[name]) for name in names if found.get(name)]
        return (found.get("size"), *known) if known else None

    # -- listing -----------------------------------------------------------------------------------------------

    def list_dir(self, prefix: str = "") -> Listing:
        self._check_listable()
        entries = self._entries(prefix)
        names = {name: is_directory for name, is_directory, _ in entries}
        return Listing(
            sorted(name for name, is_directory in names.items() if not is_directory),
            sorted(name for name, is_directory in names.items() if is_directory),
        )

    def _entries(self, prefix: str) -> list[tuple[str, bool, int]]:
        """Return name, whether it is a directory, and size of what lies directly below a prefix."""
        path = self._prefix(prefix)
        try:
            with self._lock:
                if self._ftp is not None:
                    listed = self._ftp.list(path or "/") or {}
                    found = [(name, entry.is_directory, entry.size or 0) for name, entry in listed.items()]
                else:
                    found = [
                        (entry["name"].strip("/"), entry["type"] == "directory", entry.get("size") or 0)
                        for entry in self._files.ls(path, detail=True)
                    ]
        except Exception as error:
            if self._ftp is None and classify_error(error) is Presence.ABSENT:
                return []
            raise self._broken("listed", prefix, error) from error
        own = path.strip("/")
        return [
            (name.rpartition("/")[2], is_directory, size)
            for name, is_directory, size in found
            if name != own and not (name.rpartition("/")[2].startswith(TEMPORARY) and not is_directory)
        ]

    def _find(self, prefix: str) -> dict[str, int]:
        """Return all keys below a prefix with their sizes."""
        self._check_listable()
        if not self._finds_all:
            return self._walk(prefix)
        path = self._prefix(prefix)
        try:
            with self._lock:
                found: dict[str, dict[str, Any]] = self._files.find(path, detail=True)
        except Exception as error:
            if classify_error(error) is Presence.ABSENT:
                return {}
            raise self._broken("listed", prefix, error) from error
        cut = len(self._root.strip("/")) + 1 if self._root.strip("/") else 0
        entries = {name.strip("/")[cut:]: entry.get("size") or 0 for name, entry in found.items()}
        start = f"{prefix}/" if prefix else ""
        return {
            key: size
            for key, size in entries.items()
            if key.startswith(start) and not key.rpartition("/")[2].startswith(TEMPORARY)
        }

    def _walk(self, prefix: str) -> dict[str, int]:
        """Go through directories. fsspec's own way leaves out, without a word, those that could not be listed."""
        found: dict[str, int] = {}
        waiting = [prefix]
        while waiting:
            at = waiting.pop()
            for name, is_directory, size in self._entries(at):
                key = f"{at}/{name}" if at else name
                if is_directory:
                    waiting.append(key)
                else:
                    found[key] = size
        return found

    def list_prefix(self, prefix: str = "") -> Iterator[str]:
        return iter(self._find(prefix))

    def usage(self, prefix: str = "") -> Usage:
        found = self._find(prefix)
        return Usage(len(found), sum(found.values()), None)

    def _check_listable(self) -> None:
        self._check_open()
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
            self._change(lambda: self._put(path, data))
        except Exception as error:
            raise self._broken("written", key, error) from error

    def _change(self, change: Callable[[], object]) -> None:
        with self._lock:
            if self._ftp is None:
                change()
            else:
                self._ftp.run(lambda connection: change(), again=False)

    def _put(self, path: str, data: bytes) -> None:
        if self._protocols & RENAMING:
            self._replace(path, data)
        else:
            self._files.pipe_file(path, data)

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
            self._change(lambda: self._files.rm_file(path))
        except Exception as error:
            if self.exists(key):
                raise self._broken("deleted", key, error) from error

    def delete_prefix(self, prefix: str) -> None:
        super().delete_prefix(prefix)
        if self._protocols & RENAMING:  # directories stay behind, empty
            with self._lock, suppress(Exception):
                self._files.rm(self._prefix(prefix), recursive=True)

    # -- life --------------------------------------------------------------------------------------------------

    def close(self) -> None:
        super().close()
        if self._ftp is not None:
            with suppress(OSError):
                self._files.ftp.close()
        elif "sftp" in self._protocols:
            self._files.client.close()
        # aiohttp's session of http, the client of Azure. s3 and gs end theirs with the process.
        for name in ("_session",) if self._web else ("service_client",):
            connection = getattr(self._files, name, None)
            if connection is not None and not getattr(connection, "closed", False):
                from fsspec.asyn import sync

                sync(self._files.loop, connection.close)

    def __reduce__(self) -> tuple[Any, ...]:
        return _reopen, (self._given, self.read_only, self._options, self.allow_external)


def _reopen(url: str, read_only: bool, options: dict[str, Any], allow_external: bool) -> RemoteStore:
    return RemoteStore(url, read_only=read_only, storage_options=options, allow_external=allow_external)


def _origin_of(url: str, options: Mapping[str, Any]) -> tuple[str | None, str | None]:
    """Return the location of the file that a chain of file systems reads (an archive, references), with the protocol
    that counts where it has none; None where there is no such file.
    """
    chain, mark, last = url.rpartition("::")
    known = options.get("reference")
    known = known if isinstance(known, Mapping) else options
    if mark and "reference" not in chain.split("::")[-1].partition("://")[0]:
        return last, None
    if mark:
        return last, known.get("target_protocol")
    for name in ("fo", "archive"):
        if isinstance(known.get(name), str):
            return known[name].rpartition("::")[2], known.get("target_protocol")
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
    """Return a copy, of what is given for each protocol of a chain too: fsspec writes into those."""
    return {key: dict(value) if type(value) is dict else value for key, value in (options or {}).items()}


def is_known(protocol: str) -> bool:
    """Whether fsspec knows a protocol, with or without the package that it takes."""
    fsspec = load_library("fsspec", EXTRAS.get(protocol.lower(), "remote"), f"{protocol}:// URLs:")
    return protocol.lower() in fsspec.available_protocols()


def _is_sftp_failure(error: BaseException) -> bool:
    """Whether it is SSH_FX_FAILURE, which is all that SFTP 3 has to say of directories and of names too long."""
    return isinstance(error, OSError) and error.errno is None


def without_password(url: str) -> str:
    """Return a URL to show: user, password and a query, which may hold a signature, are left out."""
    head, mark, last = url.rpartition("::")
    parts = urlsplit(last)
    host = parts.netloc.rpartition("@")[2]
    return head + mark + urlunsplit(parts._replace(netloc=host, query="")).rstrip("/")
