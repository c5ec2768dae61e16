"""An LMDB environment as a store: keys and values of its main database, as zarr-python 2 has it. Needs ``lmdb``."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from zarrfs.engine.stores.base import check_key
from zarrfs.engine.stores.keyvalue import KeyValueStore, load_library
from zarrfs.errors import KeyNameError, LocationError, StoreError

__all__ = ["LMDBStore"]

LARGEST = 1 << 40
"""How large an environment may grow. Address space, not memory or disk."""

READERS = 126
MORE_READERS = 8


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
            self._environment: Any = lmdb.open(
                self.path,
                map_size=LARGEST,
                readonly=read_only,
                subdir=os.path.isdir(self.path) or not os.path.exists(self.path),
                lock=True,
                sync=durable,
                metasync=durable,
                readahead=False,
                max_readers=READERS * MORE_READERS,
            )
        except lmdb.Error as error:
            raise LocationError(f"{self.path} cannot be opened as an LMDB environment: {error}") from error
        self._longest = self._environment.max_key_size()

    @property
    def url(self) -> str:
        return "lmdb" + Path(self.path).as_uri().removeprefix("file")

    def _begin(self, write: bool = False) -> Any:
        if self._environment is None:
            raise StoreError(f"{self.url} is closed")
        return self._environment.begin(write=write, buffers=False)

    def _read(self, key: str) -> bytes | None:
        name = key.encode()
        if len(name) > self._longest:
            return None
        try:
            with self._begin() as transaction:
                value: bytes | None = transaction.get(name)
        except self._error as error:
            raise StoreError(f"{self.path}: {key} cannot be read: {error}") from error
        return value

    def _write(self, key: str, value: bytes) -> None:
        name = key.encode()
        if len(name) > self._longest:
            raise KeyNameError(f"{key!r} is too long for LMDB, whose keys have at most {self._longest} bytes")
        try:
            with self._begin(write=True) as transaction:
                transaction.put(name, value)
        except self._error as error:
            raise StoreError(f"{self.path}: {key} cannot be written: {error}") from error

    def _remove(self, key: str) -> None:
        name = check_key(key).encode()
        try:
            with self._begin(write=True) as transaction:
                transaction.delete(name)
        except self._error as error:
            raise StoreError(f"{self.path}: {key} cannot be deleted: {error}") from error

    def _keys(self, start: str) -> Iterator[str]:
        first = start.encode()
        found = []
        with self._begin() as transaction, transaction.cursor() as cursor:
            more = cursor.set_range(first) if first else cursor.first()
            while more and cursor.key().startswith(first):
                found.append(cursor.key().decode())
                more = cursor.next()
        return iter(found)

    def close(self) -> None:
        environment, self._environment = self._environment, None
        if environment is not None:
            if not self.read_only:
                environment.sync(True)
            environment.close()

    def __reduce__(self) -> tuple[Any, ...]:
        return _reopen, (self.path, self.read_only, self.durable)


def _reopen(path: str, read_only: bool, durable: bool) -> LMDBStore:
    return LMDBStore(path, read_only=read_only, durable=durable)
