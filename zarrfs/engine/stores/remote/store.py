"""File systems of fsspec as stores: http, s3, gs, abfs, ftp, sftp, github, references, and chains of them.

Requires ``fsspec`` and the package of the protocol. Requests of several threads run concurrently if the file system
is asynchronous (http, s3, gs, abfs). A missing key is None. A denied request, a server error or a lost connection is
a StoreError, never a missing chunk.

The differences between protocols are in their backends (``backends.py``), and how an error is recognized as a missing
key is in ``presence.py``: for most protocols by the status (404) or the error number, without another request.
"""

from __future__ import annotations

import asyncio
import errno
import os
import threading
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import partial
from typing import Any, TypeVar

from zarrfs.engine.stores.base import (
    IMMUTABLE,
    Buffer,
    ByteRange,
    Listing,
    RequestStatistics,
    Store,
    Usage,
    ValueCreatedError,
    ValueTooLargeError,
)
from zarrfs.engine.stores.remote.backend import Backend, ChangedValueError, Entry, Version
from zarrfs.engine.stores.remote.backends import is_remote_url, make_backend
from zarrfs.engine.stores.remote.file_systems import open_file_system, raise_for_options
from zarrfs.engine.stores.remote.object_backend import open_object_backend
from zarrfs.engine.stores.remote.object_errors import InvalidKeyError
from zarrfs.engine.stores.remote.object_options import SERVICES, UnsupportedError
from zarrfs.engine.stores.remote.prefetching import PrefetchingStore, PrefetchQueue
from zarrfs.engine.stores.remote.presence import (
    Presence,
    classify_error,
    error_hint,
    failure_reason,
    is_refusal,
)
from zarrfs.engine.stores.remote.protocols import copy_options, redact_url
from zarrfs.engine.stores.remote.references import ReferencePolicy, with_absolute_path
from zarrfs.engine.stores.remote.request_limit import MAX_REQUESTS
from zarrfs.engine.stores.temporary_files import TEMPORARY_PREFIX
from zarrfs.errors import ConflictError, LocationError, ReadOnlyError, ServerError, StoreError
from zarrfs.logs import logger

__all__ = ["RemoteStore"]

T = TypeVar("T")

_opening = threading.Lock()
_backends_of_parents: list[Backend] = []


def _after_fork() -> None:
    global _opening
    _opening = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


class _Compared:
    """A value that is locked. ``depth`` is how often, and ``version`` that which was read first (None: missing), and
    later the one that was written.
    """

    def __init__(self) -> None:
        self.depth = 0
        self.is_read = False
        self.version: Version | None = None


class RemoteStore(Store):
    """Values below a URL.

    A store that is open read-only treats its values as immutable, so that decoded chunks can be cached. Open the store
    again to see changes. ``storage_options`` are passed to fsspec: credentials, ``anon=True``, ``endpoint_url`` and
    others. Without them the environment variables and configuration files of each protocol apply. With
    ``allow_external`` references may name files and hosts at other locations (``references.py``), and symbolic links
    of local files are followed. Raises LocationError if the URL cannot be opened.

    A subclass that reads other values overrides ``get_within``, with which ``get`` reads, and ``get_ranges``.
    """

    def __init__(
        self,
        url: str,
        *,
        read_only: bool = False,
        storage_options: Mapping[str, Any] | None = None,
        allow_external: bool = False,
    ) -> None:
        self.allow_external = allow_external
        self._original_url, self._storage_options = with_absolute_path(url), copy_options(storage_options)
        self._display_url = redact_url(url)
        self._compared: dict[str, _Compared] = {}
        self._compared_lock = threading.Lock()
        self._open_backend()
        self.read_only = read_only or not self._backend.writable
        self.listable = self._backend.listable
        self.concurrency = MAX_REQUESTS if self._backend.supports_concurrency else 1
        self.is_remote = is_remote_url(self._original_url)

    def _open_backend(self) -> None:
        self._reference_policy: ReferencePolicy | None = None
        self._lister: Backend | None = None
        """Lists instead of the backend, which has met a key that it cannot represent."""
        try:
            self._opened_backend: Backend = open_object_backend(
                self._original_url, self._storage_options, self._display_url
            )
        except UnsupportedError as error:
            self._opened_backend = self._open_file_system(str(error))
        self._process = os.getpid()

    def _open_file_system(self, reason: str) -> Backend:
        """Return the backend of fsspec for the URL. Obstore cannot be used for this ``reason``."""
        is_object_store = self._original_url.partition("://")[0].lower() in SERVICES
        if is_object_store:
            logger.info(
                "%s: opened with fsspec, because obstore cannot be used: %s", self._display_url, reason
            )
        try:
            opened = open_file_system(
                self._original_url, self._storage_options, allow_external=self.allow_external
            )
        except LocationError as error:
            if is_object_store and isinstance(error.__cause__, ImportError):
                raise LocationError(
                    f"{error}; it is needed because obstore cannot be used: {reason}"
                ) from error
            raise
        self._reference_policy = opened.reference_policy
        return make_backend(
            opened.file_system, opened.root, self._display_url, allow_external=self.allow_external
        )

    @property
    def _backend(self) -> Backend:
        """The backend of this process. A process that was forked opens another one: it has no event loop, and must not
        use the connections of its parent.
        """
        if self._process != os.getpid():
            with _opening:
                if self._process != os.getpid():
                    # Its connections would be closed with it, in an event loop that does not run.
                    _backends_of_parents.append(self._opened_backend)
                    parent = self._opened_backend
                    self._open_backend()
                    self._opened_backend.max_repetitions = parent.max_repetitions
                    if parent.limit.permitted is not None:
                        self._opened_backend.limit.reduce(parent.limit.permitted)
        return self._opened_backend

    @property
    def url(self) -> str:
        """The URL without user, password and query."""
        return self._display_url

    def limit_requests(self, count: int) -> None:
        self._backend.limit.reduce(count)
        self.concurrency = min(self.concurrency, count)

    def repeat_requests(self, count: int) -> None:
        self._backend.max_repetitions = count

    @property
    def request_statistics(self) -> RequestStatistics:
        return self._backend.limit.statistics

    def _read_only_error(self, operation: str) -> ReadOnlyError:
        if not self._backend.writable:
            return ReadOnlyError(
                f"{self._display_url} is on a web server, which can only be read: {operation} is refused"
            )
        return super()._read_only_error(operation)

    def _path(self, key: str) -> str:
        self._check_open()
        path = self._backend.path(key)
        if self._reference_policy is not None:
            try:
                self._reference_policy.check(key, path)
            except StoreError as error:
                raise StoreError(f"{self._display_url}: {error}", error.errno) from None
        return path

    def _run(self, participle: str, key: str, operation: Callable[[], T]) -> T:
        """Return the result of an operation of the backend, which a participle such as "read" names in errors."""
        return self._run_several(participle, key, 1, lambda permitted: operation())

    def _run_several(self, participle: str, key: str, count: int, operation: Callable[[int], T]) -> T:
        """Return the result of an operation of up to ``count`` requests. It is called with the number that it may send
        at a time.
        """
        try:
            with self._backend.reserve(count) as permitted, self._backend.lock:
                result = operation(permitted)
        except (StoreError, ValueTooLargeError):
            raise
        except ChangedValueError as error:
            if participle == "written":
                raise
            raise self._converted(participle, key, error) from error
        except Exception as error:
            raise self._converted(participle, key, error) from error
        if not self._backend.limits_each_request:
            buffers = result if isinstance(result, list) else [result]
            self._backend.limit.count_bytes(
                sum(len(each) for each in buffers if isinstance(each, bytes | bytearray | memoryview))
            )
        return result

    def _converted(self, participle: str, key: str, error: Exception) -> Exception:
        """Return the error of an operation for one of the backend. The participle names the operation."""
        raise_for_options(error, self._storage_options, self._display_url)
        return self._operation_error(participle, key, error)

    def _operation_error(self, participle: str, key: str, error: BaseException) -> StoreError:
        reason = f"{failure_reason(error)}{error_hint(error)}"
        if classify_error(error) is Presence.MISSING:
            reason = self.missing_container() or reason
        message = f"{self._display_url}/{key} cannot be {participle}: {reason}"
        return StoreError(message, errno.EACCES) if is_refusal(error) else ServerError(message)

    # -- reading -----------------------------------------------------------------------------------------------

    def get(self, key: str) -> Buffer | None:
        return self.get_within(key, None)

    def get_within(self, key: str, max_nbytes: int | None) -> Buffer | None:
        path = self._path(key)
        compared = self._compared.get(key) if self._compared else None
        if compared is not None and not compared.is_read:
            stop = None if max_nbytes is None else max_nbytes + 1
            value = self._read_compared(key, path, compared, stop)
            if value is not None and max_nbytes is not None and len(value) > max_nbytes:
                raise ValueTooLargeError(len(value), max_nbytes)
            return value
        return self._run("read", key, lambda: self._backend.read(path, max_nbytes))

    def _read_compared(self, key: str, path: str, compared: _Compared, stop: int | None) -> Buffer | None:
        """Return a locked value up to a byte, and note its version."""
        value, version = self._run("read", key, lambda: self._backend.read_compared(path, stop))
        if not compared.is_read:
            compared.version, compared.is_read = version, True
        return value

    @contextmanager
    def _prefetch(
        self, loop: asyncio.AbstractEventLoop, keys: Sequence[str], max_pending: int
    ) -> Iterator[Store]:
        backend = self._backend

        def wait(key: str, result: Callable[[], Buffer]) -> Buffer | None:
            try:
                return backend.read_prefetched(self._path(key), result)
            except (StoreError, ValueTooLargeError):
                raise
            except Exception as error:
                raise self._converted("read", key, error) from error

        paths = ((key, self._path(key)) for key in keys)
        with PrefetchQueue(loop, backend.request, paths, max_pending) as queue:
            yield PrefetchingStore(self, queue, wait)

    def prefetch(self, keys: Sequence[str], max_pending: int) -> AbstractContextManager[Store] | None:
        if not (self._backend.supports_concurrency and self._backend.supports_prefetching):
            return None
        methods = RemoteStore.get, RemoteStore.get_within
        if (type(self).get, type(self).get_within) != methods:  # A subclass may read other values.
            return None
        max_pending = min(max_pending, len(keys), self.concurrency)
        if max_pending < 2:
            return None
        return self._prefetch(self._backend.loop, keys, max_pending)

    def get_ranges(self, key: str, ranges: Sequence[ByteRange]) -> list[Buffer] | None:
        path = self._path(key)
        if not ranges:
            return None if self.size(key) is None else []
        compared = self._compared.get(key) if self._compared else None
        if compared is not None and not compared.is_read:
            start, length = ranges[0]
            is_beginning = len(ranges) == 1 and start == 0 and length
            value = self._read_compared(key, path, compared, length if is_beginning else 1)
            if value is None or is_beginning:
                return None if value is None else [value]
        return self._run_several(
            "read",
            key,
            len(ranges),
            lambda permitted: self._backend.read_ranges(path, ranges, max_requests=permitted),
        )

    def size(self, key: str) -> int | None:
        path = self._path(key)
        return self._run("looked up", key, lambda: self._backend.size(path))

    def stamp(self, key: str) -> Hashable | None:
        self._check_open()
        return IMMUTABLE if self.read_only else None

    def version(self, key: str) -> Hashable | None:
        path = self._path(key)
        return self._run("looked up", key, lambda: self._backend.version(path))

    # -- listing -----------------------------------------------------------------------------------------------

    def list_dir(self, prefix: str = "") -> Listing:
        entries = self._entries(prefix)
        return Listing(
            sorted({entry.name for entry in entries if not entry.is_directory}),
            sorted({entry.name for entry in entries if entry.is_directory}),
        )

    def list_prefix(self, prefix: str = "") -> Iterator[str]:
        return iter(self._list_sizes(prefix))

    def usage(self, prefix: str = "") -> Usage:
        sizes = self._list_sizes(prefix)
        return Usage(len(sizes), sum(sizes.values()), None)

    def is_empty(self, prefix: str = "") -> bool:
        self._check_open()
        path = self._backend.directory_path(prefix)
        with self._backend.reserve(1):
            return self._backend.is_empty(path)

    def missing_container(self) -> str | None:
        self._check_open()
        with self._backend.lock:
            container = self._backend.missing_container()
        if container is None:
            return None
        return (
            f"the {container} does not exist; create it, or check its name, and the server and the account "
            "(storage options)"
        )

    def _entries(self, prefix: str) -> list[Entry]:
        """Return the entries one level below a prefix, without temporary files."""
        self._check_listable()
        entries = self._list(prefix, lambda backend: backend.entries(backend.directory_path(prefix)))
        return [
            entry
            for entry in entries
            if entry.name and (entry.is_directory or not entry.name.startswith(TEMPORARY_PREFIX))
        ]

    def _list(self, prefix: str, operation: Callable[[Backend], T]) -> T:
        """Return the result of an operation that lists the keys below a prefix."""
        try:
            return self._run("listed", prefix, lambda: operation(self._lister or self._backend))
        except ServerError as error:
            if not isinstance(error.__cause__, InvalidKeyError):
                raise
            self._lister = self._open_file_system(str(error.__cause__))
        return self._run("listed", prefix, lambda: operation(self._lister or self._backend))

    def _list_sizes(self, prefix: str) -> dict[str, int]:
        """Return the sizes of all keys below a prefix, by key."""
        self._check_listable()
        sizes = self._list(prefix, lambda backend: backend.find(backend.directory_path(prefix)))
        if sizes is None:
            return self._walk(prefix)
        start = f"{prefix}/" if prefix else ""
        return {
            key: size
            for key, size in sizes.items()
            # Keys with empty parts, which some programs create, are not keys of a store.
            if key.startswith(start)
            and "//" not in f"/{key}/"
            and not key.rpartition("/")[2].startswith(TEMPORARY_PREFIX)
        }

    def _walk(self, prefix: str) -> dict[str, int]:
        """Return the sizes of all keys below a prefix by walking over its directories."""
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
        compared = self._compared.get(key) if self._compared else None
        if compared is not None and compared.is_read:
            try:
                compared.version = self._write_compared(key, path, data, compared.version)
            except ChangedValueError:
                raise ConflictError(
                    f"{self._display_url}/{key} is not written: another writer has changed it since it was read; read "
                    "it again, and repeat the change"
                ) from None
            return
        self._run("written", key, lambda: self._backend.write(path, data))
        if not self._backend.limits_each_request:
            self._backend.limit.count_bytes(len(data))

    def _write_compared(self, key: str, path: str, data: bytes, version: Version | None) -> Version:
        return self._run("written", key, lambda: self._backend.write_compared(path, data, version))

    def create(self, key: str, parts: Sequence[Buffer]) -> None:
        if self.read_only:
            raise self._read_only_error(f"writing {key!r}")
        if not self._backend.compares_versions:
            super().create(key, parts)
            return
        try:
            self._write_compared(key, self._path(key), b"".join(parts), None)
        except ChangedValueError:
            raise ValueCreatedError(f"{self.url}/{key}") from None

    @contextmanager
    def lock(self, key: str) -> Iterator[None]:
        """Compare the versions of a value that is read and then written, if the server has conditional writes.

        Other processes are not excluded, but what they have written is not overwritten: ``set`` raises ConflictError if
        the value is no longer the one that was read first while the lock is held.
        """
        if self.read_only or not self._backend.compares_versions:
            yield
            return
        with self._compared_lock:
            compared = self._compared.setdefault(key, _Compared())
            compared.depth += 1
        try:
            yield
        finally:
            with self._compared_lock:
                compared.depth -= 1
                if not compared.depth:
                    del self._compared[key]

    def delete(self, key: str) -> None:
        if self.read_only:
            raise self._read_only_error(f"deleting {key!r}")
        path = self._path(key)
        try:
            self._run("deleted", key, lambda: self._backend.delete(path))
        except StoreError:
            if self.exists(key):
                raise

    def delete_prefix(self, prefix: str) -> None:
        super().delete_prefix(prefix)
        if self._backend.keeps_empty_directories:
            path = self._backend.directory_path(prefix)
            with self._backend.lock, suppress(Exception):
                self._backend.delete_directory(path)

    def delete_keys(self, keys: Sequence[str]) -> None:
        limit = self._backend.max_deleted_together
        for start in range(0, len(keys), limit):
            together = keys[start : start + limit]
            paths = [self._path(key) for key in together] if len(together) > 1 and not self.read_only else []
            if not paths or not self._run(
                "deleted", together[0], partial(self._backend.delete_together, paths)
            ):
                super().delete_keys(together)

    # -- closing -----------------------------------------------------------------------------------------------

    def close(self) -> None:
        super().close()
        if self._process == os.getpid():
            self._opened_backend.close()

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
