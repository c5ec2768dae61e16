"""A dbm file as a store, for all libraries of the ``dbm`` package of Python. The layout is that of zarr-python 2."""

from __future__ import annotations

import dbm
import os
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import nullcontext, suppress
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from zarrfs.engine.stores.databases.database_store import KeyValueStore, decode_key, encode_key
from zarrfs.engine.stores.databases.dbm_sqlite3 import DBMSQLite3, is_dbm_sqlite3
from zarrfs.engine.stores.regular_files import check_regular_file
from zarrfs.errors import LocationError, StoreError

__all__ = ["DBMStore"]

ERRORS: tuple[type[Exception], ...] = (
    *(dbm.error if isinstance(dbm.error, tuple) else (dbm.error,)),
    OSError,
    sqlite3.Error,
)

PREFERRED_LIBRARIES = ("dbm.gnu", "dbm.ndbm", "dbm.dumb")
"""The libraries for new files. The first one that is available is used."""

SQLITE3 = "dbm.sqlite3"
"""The library of Python 3.13 and newer, whose files DBMSQLite3 opens. For new files, SQLiteStore is better."""


def _import_library(library_name: str | None) -> ModuleType:
    for name in PREFERRED_LIBRARIES if library_name is None else (library_name,):
        try:
            return import_module(name)
        except ImportError:
            if name == PREFERRED_LIBRARIES[-1] or library_name is not None:
                raise
    raise ImportError("no dbm library is available")


FILE_SUFFIXES = ("", ".pag", ".dir", ".db", ".dat", ".bak")
"""The suffixes that the libraries append to the path of a database."""


def find_library_name(path: str) -> str | None:
    """Return the name of the library that created a dbm file: "" if it is unknown, None if the file is missing.

    Raises OSError or StoreError if one of the files is not a regular file.
    """
    for suffix in FILE_SUFFIXES:
        with suppress(IsADirectoryError) if suffix else nullcontext():
            check_regular_file(path + suffix)
    library_name = dbm.whichdb(path)
    if library_name in ("", SQLITE3):
        return SQLITE3 if is_dbm_sqlite3(path) else ""
    return library_name


def _open_database(path: str, library_name: str | None, read_only: bool) -> Any:
    if library_name == SQLITE3:
        return DBMSQLite3(path, read_only=read_only)
    return _import_library(library_name).open(path, "r" if read_only else "c")


class DBMStore(KeyValueStore):
    """Values in a dbm file. Safe to use from several threads; a lock serializes them. Only one process may write.

    The libraries return complete values only, so that a value is read before its size is compared with a limit.

    Raises LocationError if the file cannot be opened or its library is not supported.
    """

    def __init__(self, path: str | os.PathLike[str], *, read_only: bool = False) -> None:
        self.path = os.path.abspath(os.fspath(path))
        self.read_only = read_only
        self._lock = threading.RLock()
        try:
            library_name = find_library_name(self.path)
        except OSError as error:
            raise LocationError(
                str(error)
                if isinstance(error, StoreError)
                else f"{self.path} cannot be opened as a dbm file: {error.strerror}"
            ) from error
        if library_name == "" or (library_name is None and read_only):
            raise LocationError(
                f"{self.path} is not a dbm file; expected a file of one of the libraries "
                f"{', '.join((*PREFERRED_LIBRARIES, SQLITE3))}"
            )
        try:
            self._database: Any = _open_database(self.path, library_name, read_only)
        except ERRORS as error:
            raise LocationError(f"{self.path} cannot be opened as a dbm file: {error}") from error

    @property
    def url(self) -> str:
        return "dbm" + Path(self.path).as_uri().removeprefix("file")

    def _read(self, key: str) -> bytes | None:
        with self._lock:
            try:
                value: bytes | None = self._open_database().get(encode_key(key))
            except StoreError:
                raise
            except ERRORS as error:
                raise StoreError(f"{self.path}: {key} cannot be read: {error}") from error
        return value

    def _write(self, key: str, value: bytes) -> None:
        with self._lock:
            try:
                database = self._open_database()
                database[encode_key(key)] = value
                if not value and encode_key(key) not in database:
                    # dbm.ndbm on Berkeley DB stores such a key, lists it, and then reports that it is missing.
                    with suppress(KeyError):
                        del database[encode_key(key)]
                    raise StoreError(
                        f"{self.path}: {key} cannot be written: the dbm library of this file does not support empty "
                        "values; use a file of dbm.gnu, or another store"
                    )
                self._sync()
            except StoreError:
                raise
            except ERRORS as error:
                raise StoreError(f"{self.path}: {key} cannot be written: {error}") from error

    def _remove(self, key: str) -> None:
        with self._lock:
            try:
                if encode_key(key) in self._open_database():
                    del self._open_database()[encode_key(key)]
                    self._sync()
            except StoreError:
                raise
            except ERRORS as error:
                raise StoreError(f"{self.path}: {key} cannot be deleted: {error}") from error

    def _keys(self, start: str) -> Iterator[str]:
        with self._lock:
            try:
                keys = [decode_key(bytes(key)) for key in self._open_database().keys()]  # noqa: SIM118 - not every library supports iteration
            except StoreError:
                raise
            except ERRORS as error:
                raise StoreError(f"{self.path} cannot be listed: {error}") from error
        return (key for key in keys if key.startswith(start))

    def _open_database(self) -> Any:
        self._check_open()
        return self._database

    def _sync(self) -> None:
        if hasattr(self._database, "sync"):
            self._database.sync()

    def close(self) -> None:
        with self._lock:
            super().close()
            values, self._database = self._database, None
            if values is not None:
                try:
                    values.close()
                except ERRORS as error:
                    raise StoreError(f"{self.path} cannot be closed: {error}") from error

    def __reduce__(self) -> tuple[Any, ...]:
        return _open_dbm_store, (self.path, self.read_only)


def _open_dbm_store(path: str, read_only: bool) -> DBMStore:
    return DBMStore(path, read_only=read_only)
