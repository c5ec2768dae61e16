"""The files of ``dbm.sqlite3``, the default library of the ``dbm`` package since Python 3.13.

The library itself cannot be used: its objects belong to one thread, and older versions of Python lack it.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing

from zarrfs.engine.stores.databases.sqlite import connect

__all__ = ["DBMSQLite3", "is_dbm_sqlite3"]


def is_dbm_sqlite3(path: str) -> bool:
    """Return whether a file is an SQLite database with the table of dbm.sqlite3, and not that of SQLiteStore."""
    try:
        with closing(connect(path, "ro")) as connection:
            names = connection.execute(
                "SELECT name FROM sqlite_master WHERE name IN ('Dict', 'zarr')"
            ).fetchall()
    except sqlite3.Error:
        return False
    return names == [("Dict",)]


class DBMSQLite3:
    """An existing file, with the methods of dbm objects. Raises sqlite3.Error.

    One thread at a time may use it. Each change is a transaction of its own.
    """

    def __init__(self, path: str, *, read_only: bool) -> None:
        self._connection = connect(path, "ro" if read_only else "rw")

    def get(self, key: bytes) -> bytes | None:
        row = self._connection.execute(
            "SELECT CAST(value AS BLOB) FROM Dict WHERE key = CAST(? AS BLOB)", (key,)
        ).fetchone()
        return None if row is None else bytes(row[0])

    def __contains__(self, key: bytes) -> bool:
        row = self._connection.execute("SELECT 1 FROM Dict WHERE key = CAST(? AS BLOB)", (key,)).fetchone()
        return row is not None

    def __setitem__(self, key: bytes, value: bytes) -> None:
        self._connection.execute(
            "REPLACE INTO Dict (key, value) VALUES (CAST(? AS BLOB), CAST(? AS BLOB))", (key, value)
        )

    def __delitem__(self, key: bytes) -> None:
        self._connection.execute("DELETE FROM Dict WHERE key = CAST(? AS BLOB)", (key,))

    def keys(self) -> list[bytes]:
        return [bytes(key) for (key,) in self._connection.execute("SELECT CAST(key AS BLOB) FROM Dict")]

    def close(self) -> None:
        self._connection.close()
