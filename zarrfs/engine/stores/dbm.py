"""A dbm file as a store, of whichever kind the ``dbm`` package of Python finds or makes, as zarr-python 2 has it."""

from __future__ import annotations

import dbm
import os
import threading
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from zarrfs.engine.stores.keyvalue import KeyValueStore
from zarrfs.errors import LocationError, StoreError

__all__ = ["DBMStore"]

ERRORS: tuple[type[Exception], ...] = (
    *(dbm.error if isinstance(dbm.error, tuple) else (dbm.error,)),
    OSError,
)


KINDS = ("dbm.gnu", "dbm.ndbm", "dbm.dumb")
"""What a new file is made as, whichever this Python has first."""

UNSUITABLE = ("dbm.sqlite3",)
"""Its objects belong to one thread; there is a store of its own for SQLite."""


def _library(kind: str | None) -> ModuleType:
    for name in KINDS if kind is None else (kind,):
        try:
            return import_module(name)
        except ImportError:
            if name == KINDS[-1] or kind is not None:
                raise
    raise ImportError("there is no dbm library")


class DBMStore(KeyValueStore):
    """Values in a dbm file. Safe under threads by a lock; of processes only one at a time may write."""

    def __init__(self, path: str | os.PathLike[str], *, read_only: bool = False) -> None:
        self.path = os.path.abspath(os.fspath(path))
        self.read_only = read_only
        self._lock = threading.RLock()
        kind = dbm.whichdb(self.path)
        if kind in ("", *UNSUITABLE) or (kind is None and read_only):
            raise LocationError(
                f"{self.path} is no dbm file that can be used here (it is {kind or 'of no known kind'})"
            )
        try:
            self._values: Any = _library(kind).open(self.path, "r" if read_only else "c")
        except ERRORS as error:
            raise LocationError(f"{self.path} cannot be opened as a dbm file: {error}") from error

    @property
    def url(self) -> str:
        return "dbm" + Path(self.path).as_uri().removeprefix("file")

    def _read(self, key: str) -> bytes | None:
        with self._lock:
            try:
                value: bytes | None = self._open().get(key.encode())
            except ERRORS as error:
                raise StoreError(f"{self.path}: {key} cannot be read: {error}") from error
        return value

    def _write(self, key: str, value: bytes) -> None:
        with self._lock:
            try:
                self._open()[key.encode()] = value
                self._sync()
            except ERRORS as error:
                raise StoreError(f"{self.path}: {key} cannot be written: {error}") from error

    def _remove(self, key: str) -> None:
        with self._lock:
            if key.encode() in self._open():
                del self._open()[key.encode()]
                self._sync()

    def _keys(self, start: str) -> Iterator[str]:
        with self._lock:
            keys = [bytes(key).decode() for key in self._open().keys()]  # noqa: SIM118 - not every dbm iterates
        return (key for key in keys if key.startswith(start))

    def _open(self) -> Any:
        if self._values is None:
            raise StoreError(f"{self.url} is closed")
        return self._values

    def _sync(self) -> None:
        if hasattr(self._values, "sync"):
            self._values.sync()

    def close(self) -> None:
        with self._lock:
            values, self._values = self._values, None
            if values is not None:
                values.close()

    def __reduce__(self) -> tuple[Any, ...]:
        return _reopen, (self.path, self.read_only)


def _reopen(path: str, read_only: bool) -> DBMStore:
    return DBMStore(path, read_only=read_only)
