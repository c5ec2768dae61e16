"""What is the SQLite store's alone: writers that were killed, and tables that hold what they should not."""

from __future__ import annotations

import shutil
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from zarrfs.engine.locations import open_store
from zarrfs.engine.stores.databases.sqlite import SQLiteStore
from zarrfs.errors import LocationError, StoreError

KILLED = """
import os, signal, sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("PRAGMA cache_size = 1")
connection.execute("BEGIN")
connection.execute("UPDATE zarr SET v = zeroblob(10000)")
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture
def left(tmp_path: Path) -> Path:
    """A database that a writer was killed in the middle of a change of."""
    path = tmp_path / "a.sqldb"
    with SQLiteStore(path) as store:
        for number in range(100):
            store.set(f"c/{number}", b"%04d" % number * 2500)
    done = subprocess.run([sys.executable, "-c", KILLED, path], check=False)
    assert done.returncode == -signal.SIGKILL
    assert (tmp_path / "a.sqldb-journal").stat().st_size > 0
    return path


def test_reading_undoes_what_a_killed_writer_left_half_done(left: Path) -> None:
    store, _ = open_store(left)
    with store:
        assert store.read_only
        assert len(list(store.list_prefix("c"))) == 100
        for number in range(100):
            assert store.get(f"c/{number}") == b"%04d" % number * 2500


def test_a_reader_that_is_open_goes_on_after_a_writer_was_killed(tmp_path: Path) -> None:
    path = tmp_path / "a.sqldb"
    with SQLiteStore(path) as store:
        for number in range(100):
            store.set(f"c/{number}", b"%04d" % number * 2500)
    with SQLiteStore(path, read_only=True) as store:
        assert store.get("c/7") == b"0007" * 2500
        subprocess.run([sys.executable, "-c", KILLED, path], check=False)
        assert store.get("c/7") == b"0007" * 2500
        assert store.get("c/8") == b"0008" * 2500


def test_the_error_says_how_to_recover_where_that_takes_permission(
    left: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    connect = sqlite3.connect

    def read_only(name: str, **options: object) -> sqlite3.Connection:
        # As root, who may write anything, only another mode shows what others meet.
        return connect(name.replace("mode=rw", "mode=ro"), **options)  # type: ignore[call-overload,no-any-return]

    monkeypatch.setattr(sqlite3, "connect", read_only)
    with pytest.raises(LocationError, match=r"a writer was killed during a transaction.*Open the database once"):
        SQLiteStore(left, read_only=True)


def test_a_journal_without_its_database_is_no_trouble(left: Path, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    shutil.copy(left, tmp_path / "other" / "a.sqldb")
    shutil.copy(f"{left}-journal", tmp_path / "other" / "a.sqldb-journal")
    with SQLiteStore(tmp_path / "other" / "a.sqldb", read_only=True) as store:
        assert store.get("c/99") == b"0099" * 2500


@pytest.mark.parametrize("value", [None, 1 << 40, 1.5, "text"])
def test_values_of_other_types_are_not_taken_for_sizes(value: object, tmp_path: Path) -> None:
    path = tmp_path / "a.sqldb"
    SQLiteStore(path).close()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("INSERT INTO zarr VALUES ('a', ?)", (value,))
        connection.execute("INSERT INTO zarr VALUES (?, ?)", (5, b"1"))
        connection.execute("INSERT INTO zarr VALUES (?, ?)", (b"bytes", b"1"))
        connection.execute("INSERT INTO zarr VALUES (?, ?)", (None, b"1"))
        connection.commit()
    with SQLiteStore(path, read_only=True) as store:
        if value is None:
            with pytest.raises(StoreError, match="expected bytes"):
                store.get("a")
        else:
            assert store.get("a") == str(value).encode()
        assert "a" in list(store.list_prefix())
        assert "a" in store.list_dir().keys
