"""An SQLite database as a store: the table ``zarr`` with columns ``k`` and ``v``, as zarr-python 2 has it."""

from __future__ import annotations

import errno
import os
import sqlite3
import threading
from collections.abc import Hashable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from zarrfs.engine.stores.base import Buffer, ByteRange, Usage, check_key
from zarrfs.engine.stores.databases.base import KeyValueStore
from zarrfs.engine.stores.regular_files import check_regular_file
from zarrfs.errors import LocationError, StoreError

__all__ = ["SQLiteStore"]

TIMEOUT_SECONDS = 30.0
"""A writer waits so long for another one, of this or another process."""


FILE_SUFFIXES = ("", "-journal", "-wal", "-shm")

VALUE_ERRORS = (OverflowError, UnicodeEncodeError, MemoryError)
"""What the module raises for values that are too large, and for keys that are no Unicode text."""

ERRNOS = {
    sqlite3.SQLITE_FULL: errno.ENOSPC,
    sqlite3.SQLITE_READONLY: errno.EROFS,
    sqlite3.SQLITE_PERM: errno.EACCES,
    sqlite3.SQLITE_AUTH: errno.EACCES,
    sqlite3.SQLITE_NOMEM: errno.ENOMEM,
    sqlite3.SQLITE_BUSY: errno.EBUSY,
    sqlite3.SQLITE_TOOBIG: errno.EFBIG,
}


class SQLiteStore(KeyValueStore):
    """Values in one file. Safe under threads and processes: each thread has its own connection.

    ``path`` is made unless ``read_only``. A change that a writer left half done, because it was killed, is undone when
    the database is read next, which takes write permission.
    """

    def __init__(self, path: str | os.PathLike[str], *, read_only: bool = False) -> None:
        self.path = os.path.abspath(os.fspath(path))
        self.read_only = read_only
        self._local = threading.local()
        self._lock = threading.Lock()
        self._connections: list[sqlite3.Connection] = []
        self._changes = 0
        try:
            for suffix in FILE_SUFFIXES:
                check_regular_file(self.path + suffix, missing_ok=bool(suffix) or not read_only)
        except StoreError as error:
            raise LocationError(str(error)) from error
        except OSError as error:
            found = "no such file" if isinstance(error, FileNotFoundError) else error.strerror
            raise LocationError(f"{self.path}: {found}; expected an SQLite database") from error
        try:
            there = self._ask("SELECT name FROM sqlite_master WHERE type = 'table' AND name = 'zarr'")
            if not there and not read_only:
                self._do("CREATE TABLE IF NOT EXISTS zarr(k TEXT PRIMARY KEY, v BLOB)")
        except StoreError as error:
            self.close()
            raise LocationError(str(error)) from error
        if not there and read_only:
            self.close()
            raise LocationError(f"{self.path} is an SQLite database without the table 'zarr' of a Zarr store")

    @property
    def url(self) -> str:
        return "sqlite" + Path(self.path).as_uri().removeprefix("file")

    def _connection(self) -> sqlite3.Connection:
        self._check_open()
        found: sqlite3.Connection | None = getattr(self._local, "connection", None)
        if found is None:
            found = self._connect("ro" if self.read_only else "rwc")
            self._local.connection = found
            with self._lock:
                self._connections.append(found)
        return found

    def _connect(self, mode: str) -> sqlite3.Connection:
        return sqlite3.connect(
            f"{Path(self.path).as_uri()}?mode={mode}",
            uri=True,
            timeout=TIMEOUT_SECONDS,
            isolation_level=None,  # each statement is a transaction of its own
            check_same_thread=False,  # closing is another thread's
        )

    def _ask(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        try:
            return self._fetch(statement, values)
        except VALUE_ERRORS as error:
            raise self._unreadable(error) from error
        except sqlite3.Error as error:
            if not self.read_only or not self._has_journal():
                raise self._unreadable(error) from error
            self._recover(error)
        try:
            return self._fetch(statement, values)
        except sqlite3.Error as error:
            raise self._unreadable(error) from error

    def _fetch(self, statement: str, values: tuple[Any, ...]) -> list[tuple[Any, ...]]:
        with closing(self._connection().execute(statement, values)) as cursor:
            return cursor.fetchall()

    def _unreadable(self, error: Exception) -> StoreError:
        return StoreError(f"{self.path} cannot be read: {error}", _errno_of(error))

    def _has_journal(self) -> bool:
        return any(os.path.exists(self.path + suffix) for suffix in ("-journal", "-wal"))

    def _recover(self, cause: sqlite3.Error) -> None:
        """Undo what a writer left half done that was killed. SQLite does so when a connection that may write reads."""
        try:
            with closing(self._connect("rw")) as connection:
                connection.execute("SELECT count(*) FROM sqlite_master").close()
        except sqlite3.Error as error:
            raise StoreError(
                f"{self.path} cannot be read: a writer ended in the middle of a change, and undoing it takes write "
                f"permission to the file and its directory, which is missing here ({cause}; {error}). Open the "
                "database once where it can be written, or copy it together with its -journal or -wal file to such a "
                "place",
                _errno_of(error),
            ) from error

    def _do(self, statement: str, *values: Any) -> None:
        try:
            self._connection().execute(statement, values).close()
        except (sqlite3.Error, *VALUE_ERRORS) as error:
            raise StoreError(f"{self.path} cannot be written: {error}", _errno_of(error)) from error
        finally:
            with self._lock:
                self._changes += 1

    def stamp(self, key: str) -> Hashable | None:
        # A connection's data_version changes when another one has written, of whichever thread or process.
        ((version,),) = self._ask("PRAGMA data_version")
        with self._lock:
            if getattr(self._local, "version", None) != version:
                self._local.version = version
                self._changes += 1
            return self._changes

    def version(self, key: str) -> Hashable | None:
        return self.stamp(key)

    def _read(self, key: str) -> bytes | None:
        found = self._ask("SELECT CAST(v AS BLOB) FROM zarr WHERE k = ?", key)
        return self._bytes(key, found[0][0]) if found else None

    def _bytes(self, key: str, value: object) -> bytes:
        if not isinstance(value, bytes):
            raise StoreError(f"{self.path}: the value of {key!r} is {value!r}, expected bytes")
        return value

    def get_ranges(self, key: str, ranges: Sequence[ByteRange]) -> list[Buffer] | None:
        size = self.size(key)
        if size is None:
            return None
        pieces: list[Buffer] = []
        for byte_range in ranges:
            start, stop = byte_range.resolve(size)
            found = self._ask(
                "SELECT substr(CAST(v AS BLOB), ?, ?) FROM zarr WHERE k = ?", start + 1, stop - start, key
            )
            pieces.append(self._bytes(key, found[0][0]) if found and stop > start else b"")
        return pieces

    def size(self, key: str) -> int | None:
        found = self._ask("SELECT length(CAST(v AS BLOB)) FROM zarr WHERE k = ?", check_key(key))
        return int(found[0][0] or 0) if found else None

    def _write(self, key: str, value: bytes) -> None:
        self._do("REPLACE INTO zarr VALUES (?, ?)", key, value)

    def _remove(self, key: str) -> None:
        self._do("DELETE FROM zarr WHERE k = ?", key)

    def delete_prefix(self, prefix: str) -> None:
        if self.read_only:
            raise self._refuse(f"deleting what is below {prefix!r}")
        self._do(*_below("DELETE FROM zarr", prefix))

    def _keys(self, start: str) -> Iterator[str]:
        found = self._ask(*_below("SELECT k FROM zarr", start.rstrip("/")))
        return iter([key for (key,) in found if isinstance(key, str)])

    def usage(self, prefix: str = "") -> Usage:
        ((keys, nbytes),) = self._ask(
            *_below("SELECT count(*), sum(length(CAST(v AS BLOB))) FROM zarr", prefix)
        )
        return Usage(keys, nbytes or 0, None)

    def close(self) -> None:
        super().close()
        with self._lock:
            for connection in self._connections:
                connection.close()
            self._connections.clear()

    def __reduce__(self) -> tuple[Any, ...]:
        return _reopen, (self.path, self.read_only)


def _errno_of(error: Exception) -> int | None:
    """Return the error number that comes closest to a result code of SQLite."""
    if isinstance(error, VALUE_ERRORS):
        return errno.EINVAL if isinstance(error, UnicodeEncodeError) else errno.EFBIG
    return ERRNOS.get(getattr(error, "sqlite_errorcode", 0) & 0xFF)


def _below(statement: str, prefix: str) -> tuple[str, ...]:
    """Return a statement about the keys below a prefix, and its values: a range of the primary key."""
    if not prefix:
        return (statement,)
    return f"{statement} WHERE k >= ? AND k < ?", f"{prefix}/", f"{prefix}0"  # "0" comes after "/"


def _reopen(path: str, read_only: bool) -> SQLiteStore:
    return SQLiteStore(path, read_only=read_only)
