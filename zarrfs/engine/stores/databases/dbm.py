"""A dbm file as a store, of whichever kind the ``dbm`` package of Python finds or makes, as zarr-python 2 has it."""

from __future__ import annotations

import dbm
import os
import threading
from collections.abc import Iterator
from contextlib import nullcontext, suppress
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from zarrfs.engine.stores.databases.base import KeyValueStore, decode_key, encode_key
from zarrfs.engine.stores.regular_files import check_regular_file
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


FILE_SUFFIXES = ("", ".pag", ".dir", ".db", ".dat", ".bak")
"""What the libraries append to the path for their files."""


def find_kind(path: str) -> str | None:
    """Return which library made a dbm file: "" if that is not known, None if there is no file. Raises OSError or
    StoreError if one of its files is not a regular file.
    """
    for suffix in FILE_SUFFIXES:
        with suppress(IsADirectoryError) if suffix else nullcontext():
            check_regular_file(path + suffix)
    return dbm.whichdb(path)


class DBMStore(KeyValueStore):
    """Values in a dbm file. Safe under threads by a lock; of processes only one at a time may write."""

    def __init__(self, path: str | os.PathLike[str], *, read_only: bool = False) -> None:
        self.path = os.path.abspath(os.fspath(path))
        self.read_only = read_only
        self._lock = threading.RLock()
        try:
            kind = find_kind(self.path)
        except OSError as error:
            raise LocationError(
                str(error)
                if isinstance(error, StoreError)
                else f"{self.path} cannot be opened as a dbm file: {error.strerror}"
            ) from error
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
                value: bytes | None = self._open().get(encode_key(key))
            except StoreError:
                raise
            except ERRORS as error:
                raise StoreError(f"{self.path}: {key} cannot be read: {error}") from error
        return value

    def _write(self, key: str, value: bytes) -> None:
        with self._lock:
            try:
                self._open()[encode_key(key)] = value
                self._sync()
            except StoreError:
                raise
            except ERRORS as error:
                raise StoreError(f"{self.path}: {key} cannot be written: {error}") from error

    def _remove(self, key: str) -> None:
        with self._lock:
            try:
                if encode_key(key) in self._open():
                    del self._open()[encode_key(key)]
                    self._sync()
            except StoreError:
                raise
            except ERRORS as error:
                raise StoreError(f"{self.path}: {key} cannot be deleted: {error}") from error

    def _keys(self, start: str) -> Iterator[str]:
        with self._lock:
            try:
                keys = [decode_key(bytes(key)) for key in self._open().keys()]  # noqa: SIM118 - not every dbm iterates
            except StoreError:
                raise
            except ERRORS as error:
                raise StoreError(f"{self.path} cannot be listed: {error}") from error
        return (key for key in keys if key.startswith(start))

    def _open(self) -> Any:
        self._check_open()
        return self._values

    def _sync(self) -> None:
        if hasattr(self._values, "sync"):
            self._values.sync()

    def close(self) -> None:
        with self._lock:
            super().close()
            values, self._values = self._values, None
            if values is not None:
                try:
                    values.close()
                except ERRORS as error:
                    raise StoreError(f"{self.path} cannot be closed: {error}") from error

    def __reduce__(self) -> tuple[Any, ...]:
        return _reopen, (self.path, self.read_only)


def _reopen(path: str, read_only: bool) -> DBMStore:
    return DBMStore(path, read_only=read_only)
