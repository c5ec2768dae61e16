"""An LMDB environment as a store: keys and values of its main database, as zarr-python 2 has it. Needs ``lmdb``."""

from __future__ import annotations

import os
import threading
from collections.abc import Hashable, Iterator
from pathlib import Path
from typing import Any, ClassVar

from zarrfs.engine.stores.base import check_key
from zarrfs.engine.stores.databases.base import KeyValueStore, decode_key, encode_key, load_library
from zarrfs.engine.stores.regular_files import check_regular_file
from zarrfs.errors import KeyNameError, LocationError, StoreError

__all__ = ["LMDBStore"]

LARGEST = 1 << 40
"""How large an environment may grow. Address space, not memory or disk."""

FILE_NAMES = ("data.mdb", "lock.mdb")

READERS = 126
MORE_READERS = 8


class _Environment:
    """An open environment. LMDB lets a process open a file once, so that all stores of it share one."""

    _open: ClassVar[dict[str, _Environment]] = {}
    _lock: ClassVar[threading.Lock] = threading.Lock()

    def __init__(self, path: str, handle: Any) -> None:
        self.path = path
        self.handle = handle
        self._users = 0

    @classmethod
    def of(cls, library: Any, path: str, read_only: bool) -> _Environment:
        """Return the environment of the file, opened if it is not. To be released once for each call."""
        real = os.path.realpath(path)
        with cls._lock:
            found = cls._open.get(real)
            if found is None:
                handle = library.open(
                    real,
                    map_size=LARGEST,
                    # A store that writes may join later, so that only want of permission makes it read-only.
                    readonly=read_only and not os.access(real, os.W_OK),
                    subdir=os.path.isdir(real) or not os.path.exists(real),
                    lock=True,
                    sync=False,
                    metasync=False,
                    readahead=False,
                    max_readers=READERS * MORE_READERS,
                )
                found = cls._open[real] = cls(real, handle)
            found._users += 1
            return found

    def release(self) -> None:
        """Close the environment if this was its last user."""
        with self._lock:
            self._users -= 1
            if self._users == 0:
                del self._open[self.path]
                self.handle.close()

    @classmethod
    def forget(cls) -> None:
        """Leave what was opened before a fork to the parent process."""
        cls._open = {}
        cls._lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_Environment.forget)


class LMDBStore(KeyValueStore):
    """Values in one memory-mapped B-tree. Safe under threads and processes; one writer at a time, readers never wait.

    With ``durable`` each write waits for the disk.
    """

    def __init__(
        self, path: str | os.PathLike[str], *, read_only: bool = False, durable: bool = False
    ) -> None:
        self.path = os.path.abspath(os.fspath(path))
        self.read_only = read_only
        self.durable = durable
        lmdb = load_library("lmdb", "lmdb", "an LMDB store")
        if read_only and not os.path.exists(self.path):
            raise LocationError(f"{self.path}: no such directory")
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
            self._environment: _Environment | None = _Environment.of(lmdb, self.path, read_only)
        except (lmdb.Error, OSError) as error:
            reason = getattr(error, "strerror", None) or error
            raise LocationError(f"{self.path} cannot be opened as an LMDB environment: {reason}") from error
        self._longest = self._environment.handle.max_key_size()

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
        # One number for the whole environment, which every write by whomever makes larger.
        try:
            return self._handle().info()["last_txnid"]  # type: ignore[no-any-return]
        except self._error as error:
            raise StoreError(f"{self.path} cannot be read: {error}") from error

    def version(self, key: str) -> Hashable | None:
        return self.stamp(key)

    def _read(self, key: str) -> bytes | None:
        name = encode_key(key)
        if len(name) > self._longest:
            return None
        try:
            with self._begin() as transaction:
                value: bytes | None = transaction.get(name)
        except self._error as error:
            raise StoreError(f"{self.path}: {key} cannot be read: {error}") from error
        return value

    def _write(self, key: str, value: bytes) -> None:
        name = encode_key(key)
        if len(name) > self._longest:
            raise KeyNameError(f"{key!r} is too long for LMDB, whose keys have at most {self._longest} bytes")
        try:
            with self._begin(write=True) as transaction:
                transaction.put(name, value)
            self._settle()
        except self._error as error:
            raise StoreError(f"{self.path}: {key} cannot be written: {error}") from error

    def _remove(self, key: str) -> None:
        name = encode_key(check_key(key))
        if len(name) > self._longest:
            return
        try:
            with self._begin(write=True) as transaction:
                transaction.delete(name)
            self._settle()
        except self._error as error:
            raise StoreError(f"{self.path}: {key} cannot be deleted: {error}") from error

    def _settle(self) -> None:
        if self.durable:
            self._handle().sync(True)

    def _keys(self, start: str) -> Iterator[str]:
        first = encode_key(start)
        found = []
        try:
            with self._begin() as transaction, transaction.cursor() as cursor:
                more = cursor.set_range(first) if first else cursor.first()
                while more and cursor.key().startswith(first):
                    found.append(decode_key(cursor.key()))
                    more = cursor.next()
        except self._error as error:
            raise StoreError(f"{self.path} cannot be listed: {error}") from error
        return iter(found)

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
        return _reopen, (self.path, self.read_only, self.durable)


def _reopen(path: str, read_only: bool, durable: bool) -> LMDBStore:
    return LMDBStore(path, read_only=read_only, durable=durable)
