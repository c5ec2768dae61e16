"""An LMDB environment as a store: the keys and values of its main database, as in zarr-python 2. Requires ``lmdb``."""

from __future__ import annotations

import os
import threading
from collections.abc import Hashable, Iterator
from pathlib import Path
from typing import Any, ClassVar

from zarrfs.engine.stores.base import ValueTooLargeError, check_key
from zarrfs.engine.stores.databases.database_store import KeyValueStore, decode_key, encode_key
from zarrfs.engine.stores.regular_files import check_regular_file
from zarrfs.errors import KeyNameError, LocationError, StoreError
from zarrfs.libraries import load_library

__all__ = ["LMDBStore"]

MAP_SIZE_NBYTES = 1 << 40
"""The maximum size of an environment. This reserves address space, not memory or disk space."""

FILE_NAMES = ("data.mdb", "lock.mdb")

DEFAULT_MAX_READERS = 126
MAX_READERS_FACTOR = 8


class _Environment:
    """An open environment, shared by all stores of a file. LMDB permits one open environment per file and process."""

    _environments: ClassVar[dict[str, _Environment]] = {}
    _lock: ClassVar[threading.Lock] = threading.Lock()

    def __init__(self, path: str, handle: Any) -> None:
        self.path = path
        self.handle = handle
        self._users = 0

    @classmethod
    def acquire(cls, library: Any, path: str, read_only: bool) -> _Environment:
        """Return the environment of a file. Opens it if needed. The caller calls ``release`` once for each call."""
        real_path = os.path.realpath(path)
        with cls._lock:
            environment = cls._environments.get(real_path)
            if environment is None:
                handle = library.open(
                    real_path,
                    map_size=MAP_SIZE_NBYTES,
                    # A store that writes can share the environment later, so it is read-only only if it must be.
                    readonly=read_only and not os.access(real_path, os.W_OK),
                    subdir=os.path.isdir(real_path) or not os.path.exists(real_path),
                    lock=True,
                    sync=False,
                    metasync=False,
                    readahead=False,
                    max_readers=DEFAULT_MAX_READERS * MAX_READERS_FACTOR,
                )
                environment = cls._environments[real_path] = cls(real_path, handle)
            environment._users += 1
            return environment

    def release(self) -> None:
        """Close the environment if no other store uses it."""
        with self._lock:
            self._users -= 1
            if self._users == 0:
                del self._environments[self.path]
                self.handle.close()

    @classmethod
    def _reset_after_fork(cls) -> None:
        """Drop the environments of the parent process. LMDB does not support their use after a fork."""
        cls._environments = {}
        cls._lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_Environment._reset_after_fork)


class LMDBStore(KeyValueStore):
    """Values in an LMDB environment, a memory-mapped B-tree. Safe to use from several threads and processes.

    There is one writer at a time. Readers never wait. With ``durable`` each write waits for the disk. Raises
    LocationError if the environment cannot be opened.
    """

    def __init__(
        self, path: str | os.PathLike[str], *, read_only: bool = False, durable: bool = False
    ) -> None:
        self.path = os.path.abspath(os.fspath(path))
        self.read_only = read_only
        self.durable = durable
        lmdb = load_library("lmdb", "lmdb", "an LMDB store")
        if read_only and not os.path.exists(self.path):
            raise LocationError(f"{self.path} does not exist; expected an LMDB environment")
        self._error: type[Exception] = lmdb.Error
        try:
            for name in FILE_NAMES:
                check_regular_file(os.path.join(self.path, name))
            if not os.path.isdir(self.path):
                check_regular_file(self.path)
                check_regular_file(f"{self.path}-lock")
        except StoreError as error:
            raise LocationError(str(error)) from error
        except OSError as error:
            raise LocationError(f"{self.path} cannot be opened: {error.strerror}") from error
        try:
            self._environment: _Environment | None = _Environment.acquire(lmdb, self.path, read_only)
        except (lmdb.Error, OSError) as error:
            reason = getattr(error, "strerror", None) or error
            raise LocationError(f"{self.path} cannot be opened as an LMDB environment: {reason}") from error
        self._max_key_nbytes = self._environment.handle.max_key_size()

    @property
    def url(self) -> str:
        return "lmdb" + Path(self.path).as_uri().removeprefix("file")

    def _begin(self, write: bool = False) -> Any:
        return self._handle().begin(write=write, buffers=False)

    def _handle(self) -> Any:
        environment = self._environment
        if environment is None:
            self._check_open()
            raise StoreError(f"{self.url} is closed")
        return environment.handle

    def stamp(self, key: str) -> Hashable | None:
        # The id of the last transaction. Each write of any process to the environment increases it.
        try:
            return self._handle().info()["last_txnid"]  # type: ignore[no-any-return]
        except self._error as error:
            raise StoreError(f"{self.path} cannot be read: {error}") from error

    def version(self, key: str) -> Hashable | None:
        return self.stamp(key)

    def _read(self, key: str) -> bytes | None:
        return self.get_within(key, None)

    def get_within(self, key: str, max_nbytes: int | None) -> bytes | None:
        name = encode_key(check_key(key))
        if len(name) > self._max_key_nbytes:
            return None
        try:
            with self._handle().begin(buffers=True) as transaction:
                # The memory of the database, which is valid until the transaction ends.
                value: memoryview | None = transaction.get(name)
                if value is None:
                    return None
                if max_nbytes is not None and len(value) > max_nbytes:
                    raise ValueTooLargeError(len(value), max_nbytes)
                return bytes(value)
        except self._error as error:
            raise StoreError(f"{self.path}: {key} cannot be read: {error}") from error

    def _write(self, key: str, value: bytes) -> None:
        name = encode_key(key)
        if len(name) > self._max_key_nbytes:
            raise KeyNameError(
                f"{self.path}: the key {key!r} has {len(name)} bytes; a key in LMDB has at most {self._max_key_nbytes}"
            )
        try:
            with self._begin(write=True) as transaction:
                transaction.put(name, value)
            self._sync_if_durable()
        except self._error as error:
            raise StoreError(f"{self.path}: {key} cannot be written: {error}") from error

    def _remove(self, key: str) -> None:
        name = encode_key(check_key(key))
        if len(name) > self._max_key_nbytes:
            return
        try:
            with self._begin(write=True) as transaction:
                transaction.delete(name)
            self._sync_if_durable()
        except self._error as error:
            raise StoreError(f"{self.path}: {key} cannot be deleted: {error}") from error

    def _sync_if_durable(self) -> None:
        if self.durable:
            self._handle().sync(True)

    def _keys(self, start: str) -> Iterator[str]:
        first = encode_key(start)
        keys = []
        try:
            with self._begin() as transaction, transaction.cursor() as cursor:
                has_entry = cursor.set_range(first) if first else cursor.first()
                while has_entry and cursor.key().startswith(first):
                    keys.append(decode_key(cursor.key()))
                    has_entry = cursor.next()
        except self._error as error:
            raise StoreError(f"{self.path} cannot be listed: {error}") from error
        return iter(keys)

    def close(self) -> None:
        super().close()
        environment, self._environment = self._environment, None
        if environment is not None:
            try:
                if not self.read_only:
                    environment.handle.sync(True)
            except self._error as error:
                raise StoreError(f"{self.path} cannot be written: {error}") from error
            finally:
                environment.release()

    def __reduce__(self) -> tuple[Any, ...]:
        return _open_lmdb_store, (self.path, self.read_only, self.durable)


def _open_lmdb_store(path: str, read_only: bool, durable: bool) -> LMDBStore:
    return LMDBStore(path, read_only=read_only, durable=durable)
