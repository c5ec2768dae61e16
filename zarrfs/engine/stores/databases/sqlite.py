"""An SQLite database as a store: the table ``zarr`` with the columns ``k`` and ``v``, as in zarr-python 2."""

from __future__ import annotations

import errno
import os
import re
import sqlite3
import threading
import weakref
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, TypeVar

from zarrfs.engine.stores.base import Buffer, ByteRange, Usage, ValueTooLargeError, check_key
from zarrfs.engine.stores.databases.database_store import KeyValueStore
from zarrfs.engine.stores.regular_files import check_regular_file
from zarrfs.errors import LocationError, StoreError

__all__ = ["SQLiteStore", "connect"]

T = TypeVar("T")

BUSY_TIMEOUT_SECONDS = 30.0
"""How long a writer waits for another writer of this or another process."""

FILE_SUFFIXES = ("", "-journal", "-wal", "-shm")

LENGTH = "CASE typeof(v) WHEN 'blob' THEN length(v) ELSE length(CAST(v AS BLOB)) END"
"""The number of bytes of a value. SQLite determines that of a blob without reading the blob."""

WITHOUT_ROW_IDS = re.compile(r"\bWITHOUT\s+ROWID\b", re.IGNORECASE)

VALUE_ERRORS = (OverflowError, UnicodeEncodeError, MemoryError)
"""Errors of the module for values that are too large, and for keys that are not Unicode text."""

ERRNO_BY_RESULT_CODE = {
    sqlite3.SQLITE_FULL: errno.ENOSPC,
    sqlite3.SQLITE_READONLY: errno.EROFS,
    sqlite3.SQLITE_PERM: errno.EACCES,
    sqlite3.SQLITE_AUTH: errno.EACCES,
    sqlite3.SQLITE_NOMEM: errno.ENOMEM,
    sqlite3.SQLITE_BUSY: errno.EBUSY,
    sqlite3.SQLITE_TOOBIG: errno.EFBIG,
}


def connect(path: str, mode: str) -> sqlite3.Connection:
    """Return a connection that any thread can use, one at a time. ``mode`` is that of SQLite: ro, rw or rwc."""
    return sqlite3.connect(
        f"{Path(path).as_uri()}?mode={mode}",
        uri=True,
        timeout=BUSY_TIMEOUT_SECONDS,
        isolation_level=None,  # each statement is a separate transaction
        check_same_thread=False,
    )


class SQLiteStore(KeyValueStore):
    """Values in an SQLite database. Safe to use from several threads and processes. A statement uses a connection that
    no other thread uses. Connections do not belong to threads: those of a mount have no state that lasts.

    The database is created if it is missing, unless ``read_only`` is true. If a writer was killed, its incomplete
    transaction is rolled back by the next read, which needs write permission. Raises LocationError if the database
    cannot be opened.
    """

    def __init__(self, path: str | os.PathLike[str], *, read_only: bool = False) -> None:
        self.path = os.path.abspath(os.fspath(path))
        self.read_only = read_only
        self._lock = threading.Lock()
        self._connections: list[sqlite3.Connection] = []
        # A store that is not closed closes its connections when it is collected. Python 3.13 warns otherwise.
        weakref.finalize(self, _close_connections, self._connections, os.getpid())
        self._idle: list[sqlite3.Connection] = []
        self._observer: sqlite3.Connection | None = None
        self._observer_lock = threading.Lock()
        self._data_version: int | None = None
        self._change_count = 0
        try:
            for suffix in FILE_SUFFIXES:
                check_regular_file(self.path + suffix, missing_ok=bool(suffix) or not read_only)
        except StoreError as error:
            raise LocationError(str(error)) from error
        except OSError as error:
            reason = "no such file" if isinstance(error, FileNotFoundError) else error.strerror
            raise LocationError(f"{self.path}: {reason}; expected an SQLite database") from error
        try:
            has_table = self._query("SELECT sql FROM sqlite_master WHERE type = 'table' AND name = 'zarr'")
            if not has_table and not read_only:
                self._execute("CREATE TABLE IF NOT EXISTS zarr(k TEXT PRIMARY KEY, v BLOB)")
        except StoreError as error:
            self.close()
            raise LocationError(str(error)) from error
        if not has_table and read_only:
            self.close()
            raise LocationError(f"{self.path} is an SQLite database without the table 'zarr' of a Zarr store")
        # Only tables with row ids, which is the default, support opening of single blobs.
        self._has_row_ids = not (has_table and WITHOUT_ROW_IDS.search(str(has_table[0][0])))

    @property
    def url(self) -> str:
        return "sqlite" + Path(self.path).as_uri().removeprefix("file")

    @contextmanager
    def _connection(self) -> Iterator[sqlite3.Connection]:
        """Lend a connection for one statement."""
        self._check_open()
        try:
            connection = self._idle.pop()
        except IndexError:
            connection = self._open_connection()
        try:
            yield connection
        finally:
            self._idle.append(connection)

    def _open_connection(self) -> sqlite3.Connection:
        connection = connect(self.path, "ro" if self.read_only else "rwc")
        with self._lock:
            self._connections.append(connection)
        return connection

    def _query(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        def fetch(connection: sqlite3.Connection) -> list[tuple[Any, ...]]:
            with closing(connection.execute(statement, values)) as cursor:
                return cursor.fetchall()

        return self._with_recovery(fetch)

    def _with_recovery(self, read: Callable[[sqlite3.Connection], T]) -> T:
        """Return ``read(connection)``. Repeat it after the transaction of a killed writer was rolled back."""
        try:
            with self._connection() as connection:
                return read(connection)
        except VALUE_ERRORS as error:
            raise self._read_error(error) from error
        except sqlite3.Error as error:
            if not self.read_only or not self._has_journal():
                raise self._read_error(error) from error
            self._recover(error)
        try:
            with self._connection() as connection:
                return read(connection)
        except sqlite3.Error as error:
            raise self._read_error(error) from error

    def _read_error(self, error: Exception) -> StoreError:
        return StoreError(f"{self.path} cannot be read: {error}", _errno_of(error))

    def _has_journal(self) -> bool:
        return any(os.path.exists(self.path + suffix) for suffix in ("-journal", "-wal"))

    def _recover(self, cause: sqlite3.Error) -> None:
        """Roll back the transaction of a killed writer. SQLite does this when a writable connection reads."""
        try:
            with closing(connect(self.path, "rw")) as connection:
                connection.execute("SELECT count(*) FROM sqlite_master").close()
        except sqlite3.Error as error:
            raise StoreError(
                f"{self.path} cannot be read: a writer was killed during a transaction, and rolling it back needs "
                f"write permission for the file and its directory ({cause}; {error}). Open the database once with "
                "write permission, or copy it with its -journal or -wal file to a writable directory",
                _errno_of(error),
            ) from error

    def _execute(self, statement: str, *values: Any) -> None:
        try:
            with self._connection() as connection:
                connection.execute(statement, values).close()
        except (sqlite3.Error, *VALUE_ERRORS) as error:
            advice = (
                "; check the permissions of the file and its directory" if "readonly" in str(error) else ""
            )
            raise StoreError(f"{self.path} cannot be written: {error}{advice}", _errno_of(error)) from error
        finally:
            with self._lock:
                self._change_count += 1

    def stamp(self, key: str) -> Hashable | None:
        # The data_version of a connection changes when another connection of any thread or process has written. It
        # cannot be compared with that of another connection, so that one connection serves for all threads.
        with self._observer_lock:
            self._check_open()
            try:
                if self._observer is None:
                    self._observer = self._open_connection()
                with closing(self._observer.execute("PRAGMA data_version")) as cursor:
                    ((version,),) = cursor.fetchall()
            except sqlite3.Error as error:
                raise self._read_error(error) from error
            if version != self._data_version:
                self._data_version = version
                with self._lock:
                    self._change_count += 1
            return self._change_count

    def version(self, key: str) -> Hashable | None:
        return self.stamp(key)

    def _read(self, key: str) -> bytes | None:
        rows = self._query("SELECT CAST(v AS BLOB) FROM zarr WHERE k = ?", key)
        return self._check_bytes(key, rows[0][0]) if rows else None

    def get_within(self, key: str, max_nbytes: int | None) -> bytes | None:
        if max_nbytes is None:
            return self._read(check_key(key))
        rows = self._query(
            f"SELECT {LENGTH}, CASE WHEN {LENGTH} <= ? THEN CAST(v AS BLOB) END FROM zarr WHERE k = ?",
            max_nbytes,
            check_key(key),
        )
        if not rows:
            return None
        ((size, value),) = rows
        if size is not None and size > max_nbytes:
            raise ValueTooLargeError(size, max_nbytes)
        return self._check_bytes(key, value)

    def _check_bytes(self, key: str, value: object) -> bytes:
        if not isinstance(value, bytes):
            raise StoreError(f"{self.path}: the value of {key!r} is {value!r}, expected bytes")
        return value

    def get_ranges(self, key: str, ranges: Sequence[ByteRange]) -> list[Buffer] | None:
        """Return the bytes of each range. A blob is opened once for all of them, so that they belong to one version."""
        check_key(key)
        if self._has_row_ids:
            is_blob, buffers = self._with_recovery(lambda connection: _read_ranges(connection, key, ranges))
            if is_blob:
                return buffers
        return super().get_ranges(key, ranges)

    def size(self, key: str) -> int | None:
        rows = self._query(f"SELECT {LENGTH} FROM zarr WHERE k = ?", check_key(key))
        return int(rows[0][0] or 0) if rows else None

    def _write(self, key: str, value: bytes) -> None:
        self._execute("REPLACE INTO zarr VALUES (?, ?)", key, value)

    def _remove(self, key: str) -> None:
        self._execute("DELETE FROM zarr WHERE k = ?", key)

    def delete_prefix(self, prefix: str) -> None:
        if self.read_only:
            raise self._read_only_error(f"deleting the keys below {prefix!r}")
        self._execute(*_with_prefix_condition("DELETE FROM zarr", prefix))

    def _keys(self, start: str) -> Iterator[str]:
        rows = self._query(*_with_prefix_condition("SELECT k FROM zarr", start.rstrip("/")))
        return iter([key for (key,) in rows if isinstance(key, str)])

    def usage(self, prefix: str = "") -> Usage:
        ((keys, nbytes),) = self._query(
            *_with_prefix_condition(f"SELECT count(*), sum({LENGTH}) FROM zarr", prefix)
        )
        return Usage(keys, nbytes or 0, None)

    def close(self) -> None:
        super().close()
        with self._lock:
            _close_connections(self._connections, os.getpid())
            self._idle.clear()
            self._observer = None

    def __reduce__(self) -> tuple[Any, ...]:
        return _open_sqlite_store, (self.path, self.read_only)


def _close_connections(connections: list[sqlite3.Connection], process: int) -> None:
    """Close connections, except in a forked child: they belong to the process that opened them."""
    if os.getpid() == process:
        for connection in connections:
            connection.close()
        connections.clear()


def _read_ranges(
    connection: sqlite3.Connection, key: str, ranges: Sequence[ByteRange]
) -> tuple[bool, list[Buffer] | None]:
    """Return True and the bytes of each range, or None for a missing key. Return False if the value is not a blob.

    One transaction reads the row id and the blob, because another writer may give the id to another key.
    """
    connection.execute("BEGIN").close()
    try:
        with closing(connection.execute("SELECT rowid, typeof(v) FROM zarr WHERE k = ?", (key,))) as cursor:
            row = cursor.fetchone()
        if row is None:
            return True, None
        row_id, kind = row
        if kind != "blob":
            return False, None
        with connection.blobopen("zarr", "v", row_id, readonly=True) as blob:
            buffers: list[Buffer] = []
            for byte_range in ranges:
                start, stop = byte_range.resolve(len(blob))
                blob.seek(start)
                buffers.append(blob.read(max(0, stop - start)))
        return True, buffers
    finally:
        if connection.in_transaction:  # some errors have ended it
            connection.execute("ROLLBACK").close()


def _errno_of(error: Exception) -> int | None:
    """Return the error number that is closest to the result code of an SQLite error."""
    if isinstance(error, VALUE_ERRORS):
        return errno.EINVAL if isinstance(error, UnicodeEncodeError) else errno.EFBIG
    return ERRNO_BY_RESULT_CODE.get(getattr(error, "sqlite_errorcode", 0) & 0xFF)


def _with_prefix_condition(statement: str, prefix: str) -> tuple[str, ...]:
    """Return the statement, restricted to the keys below a prefix, and its values. The primary key serves the range."""
    if not prefix:
        return (statement,)
    return f"{statement} WHERE k >= ? AND k < ?", f"{prefix}/", f"{prefix}0"  # "0" comes after "/"


def _open_sqlite_store(path: str, read_only: bool) -> SQLiteStore:
    return SQLiteStore(path, read_only=read_only)
