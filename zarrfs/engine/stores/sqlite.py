"""An SQLite database as a store: the table ``zarr`` with columns ``k`` and ``v``, as zarr-python 2 has it."""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Hashable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from zarrfs.engine.stores.base import Buffer, ByteRange, Usage, check_key
from zarrfs.engine.stores.keyvalue import KeyValueStore
from zarrfs.errors import LocationError, StoreError

__all__ = ["SQLiteStore"]

PATIENCE_SECONDS = 30.0
"""A writer waits so long for another one, of this or another process."""


class SQLiteStore(KeyValueStore):
    """Values in one file. Safe under threads and processes: each thread has its own connection.

    ``path`` is made unless ``read_only``.
    """

    def __init__(self, path: str | os.PathLike[str], *, read_only: bool = False) -> None:
        self.path = os.path.abspath(os.fspath(path))
        self.read_only = read_only
        self._local = threading.local()
        self._lock = threading.Lock()
        self._connections: list[sqlite3.Connection] = []
        self._closed = False
        self._changes = 0
        if read_only and not os.path.exists(self.path):
            raise LocationError(f"{self.path}: no such file")
        found = self._ask("SELECT name FROM sqlite_master WHERE type = 'table' AND name = 'zarr'")
        if not found and read_only:
            raise LocationError(f"{self.path} is an SQLite database without the table 'zarr' of a Zarr store")
        if not found:
            self._do("CREATE TABLE IF NOT EXISTS zarr(k TEXT PRIMARY KEY, v BLOB)")

    @property
    def url(self) -> str:
        return "sqlite" + Path(self.path).as_uri().removeprefix("file")

    def _connection(self) -> sqlite3.Connection:
        found: sqlite3.Connection | None = getattr(self._local, "connection", None)
        if found is None or self._closed:
            if self._closed:
                raise StoreError(f"{self.url} is closed")
            mode = "ro" if self.read_only else "rwc"
            found = sqlite3.connect(
                f"{Path(self.path).as_uri()}?mode={mode}",
                uri=True,
                timeout=PATIENCE_SECONDS,
                isolation_level=None,  # each statement is a transaction of its own
                check_same_thread=False,  # closing is another thread's
            )
            self._local.connection = found
            with self._lock:
                self._connections.append(found)
        return found

    def _ask(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        try:
            with closing(self._connection().execute(statement, values)) as cursor:
                return cursor.fetchall()
        except sqlite3.Error as error:
            raise StoreError(f"{self.path} cannot be read: {error}") from error

    def _do(self, statement: str, *values: Any) -> None:
        try:
            self._connection().execute(statement, values).close()
        except sqlite3.Error as error:
            raise StoreError(f"{self.path} cannot be written: {error}") from error
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
        found = self._ask("SELECT v FROM zarr WHERE k = ?", key)
        return bytes(found[0][0]) if found else None

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
            pieces.append(bytes(found[0][0]) if found and stop > start else b"")
        return pieces

    def size(self, key: str) -> int | None:
        found = self._ask("SELECT length(CAST(v AS BLOB)) FROM zarr WHERE k = ?", check_key(key))
        return int(found[0][0]) if found else None

    def _write(self, key: str, value: bytes) -> None:
        self._do("REPLACE INTO zarr VALUES (?, ?)", key, value)

    def _remove(self, key: str) -> None:
        self._do("DELETE FROM zarr WHERE k = ?", key)

    def delete_prefix(self, prefix: str) -> None:
        if self.read_only:
            raise self._refuse(f"deleting what is below {prefix!r}")
        self._do(*_below("DELETE FROM zarr", prefix))

    def _keys(self, start: str) -> Iterator[str]:
        for (key,) in self._ask(*_below("SELECT k FROM zarr", start.rstrip("/"))):
            yield key

    def usage(self, prefix: str = "") -> Usage:
        ((keys, nbytes),) = self._ask(
            *_below("SELECT count(*), sum(length(CAST(v AS BLOB))) FROM zarr", prefix)
        )
        return Usage(keys, nbytes or 0, None)

    def close(self) -> None:
        self._closed = True
        with self._lock:
            for connection in self._connections:
                connection.close()
            self._connections.clear()

    def __reduce__(self) -> tuple[Any, ...]:
        return _reopen, (self.path, self.read_only)


def _below(statement: str, prefix: str) -> tuple[str, ...]:
    """Return a statement about the keys below a prefix, and its values: a range of the primary key."""
    if not prefix:
        return (statement,)
    return f"{statement} WHERE k >= ? AND k < ?", f"{prefix}/", f"{prefix}0"  # "0" comes after "/"


def _reopen(path: str, read_only: bool) -> SQLiteStore:
    return SQLiteStore(path, read_only=read_only)
