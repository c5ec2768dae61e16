"""Tests of SQLiteStore: killed writers, and tables with unexpected content."""

from __future__ import annotations

import gc
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from zarrfs.engine.stores.base import ByteRange
from zarrfs.engine.stores.databases.sqlite import SQLiteStore
from zarrfs.engine.stores.locations import open_store
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
def interrupted(tmp_path: Path) -> Path:
    """A database whose writer was killed during a transaction."""
    path = tmp_path / "a.sqldb"
    with SQLiteStore(path) as store:
        for number in range(100):
            store.set(f"c/{number}", b"%04d" % number * 2500)
    writer = subprocess.run([sys.executable, "-c", KILLED, path], check=False)
    assert writer.returncode == -signal.SIGKILL
    assert (tmp_path / "a.sqldb-journal").stat().st_size > 0
    return path


def test_reading_rolls_back_the_transaction_of_a_killed_writer(interrupted: Path) -> None:
    store, _ = open_store(interrupted)
    with store:
        assert store.read_only
        assert len(list(store.list_prefix("c"))) == 100
        for number in range(100):
            assert store.get(f"c/{number}") == b"%04d" % number * 2500


def test_an_open_reader_continues_after_a_writer_was_killed(tmp_path: Path) -> None:
    path = tmp_path / "a.sqldb"
    with SQLiteStore(path) as store:
        for number in range(100):
            store.set(f"c/{number}", b"%04d" % number * 2500)
    with SQLiteStore(path, read_only=True) as store:
        assert store.get("c/7") == b"0007" * 2500
        subprocess.run([sys.executable, "-c", KILLED, path], check=False)
        assert store.get("c/7") == b"0007" * 2500
        assert store.get("c/8") == b"0008" * 2500


@pytest.fixture
def no_permission(monkeypatch: pytest.MonkeyPatch) -> None:
    """Databases are opened as if their files could not be written. Root can write all files."""
    connect = sqlite3.connect

    def connect_read_only(name: str, **options: object) -> sqlite3.Connection:
        name = name.replace("mode=rwc", "mode=ro").replace("mode=rw", "mode=ro")
        return connect(name, **options)  # type: ignore[call-overload,no-any-return]

    monkeypatch.setattr(sqlite3, "connect", connect_read_only)


def test_an_impossible_rollback_is_an_error_with_instructions(interrupted: Path, no_permission: None) -> None:
    with pytest.raises(
        LocationError, match=r"a writer was killed during a transaction.*Open the database once"
    ):
        SQLiteStore(interrupted, read_only=True)


def test_writing_to_a_read_only_database_states_what_to_check(
    tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    path = tmp_path / "a.sqldb"
    with SQLiteStore(path) as store:
        store.set("a", b"1")
    request.getfixturevalue("no_permission")
    with (
        SQLiteStore(path) as store,
        pytest.raises(
            StoreError, match=r"a readonly database; check the permissions of the file and its dir"
        ),
    ):
        store.set("a", b"2")


def test_a_copied_journal_is_rolled_back(interrupted: Path, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    shutil.copy(interrupted, tmp_path / "other" / "a.sqldb")
    shutil.copy(f"{interrupted}-journal", tmp_path / "other" / "a.sqldb-journal")
    with SQLiteStore(tmp_path / "other" / "a.sqldb", read_only=True) as store:
        assert store.get("c/99") == b"0099" * 2500


@pytest.mark.parametrize("value", [None, 1 << 40, 1.5, "text"])
def test_values_and_keys_of_other_types_are_refused_or_converted(value: object, tmp_path: Path) -> None:
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


@pytest.mark.parametrize("options", ["", "WITHOUT ROWID"])
@pytest.mark.parametrize("value", [b"0123456789", "0123456789", 9876543210])
def test_ranges_of_values_of_every_type(value: object, options: str, tmp_path: Path) -> None:
    path = tmp_path / "a.sqldb"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"CREATE TABLE zarr(k TEXT PRIMARY KEY, v BLOB) {options}")
        connection.execute("INSERT INTO zarr VALUES ('a', ?)", (value,))
        connection.commit()
    expected = value if isinstance(value, bytes) else str(value).encode()
    with SQLiteStore(path) as store:
        ranges = [
            ByteRange(2, 3),
            ByteRange(-4),
            ByteRange(8, 100),
            ByteRange(20, 5),
            ByteRange(0, 0),
            ByteRange(0),
        ]
        found = store.get_ranges("a", ranges)
        assert found is not None
        assert list(map(bytes, found)) == [expected[2:5], expected[-4:], expected[8:], b"", b"", expected]
        assert store.get_ranges("b", ranges) is None
        store.set("a", b"new")  # The transaction of the read has ended.
        assert store.get_ranges("a", [ByteRange(0)]) == [b"new"]


def run_in_threads(function: Callable[[], object], count: int = 20) -> list[object]:
    """Call a function in new threads, one after the other, as a mount does."""
    results: list[object] = []
    for _ in range(count):
        thread = threading.Thread(target=lambda: results.append(function()))
        thread.start()
        thread.join()
    return results


def test_threads_that_end_leave_no_connections_and_do_not_change_stamps(tmp_path: Path) -> None:
    with SQLiteStore(tmp_path / "a.sqldb") as store, SQLiteStore(tmp_path / "a.sqldb") as other:
        store.set("a", b"1")
        stamp = store.stamp("a")
        before = len(os.listdir("/proc/self/fd"))
        assert run_in_threads(lambda: (store.get("a"), store.stamp("a"))) == [(b"1", stamp)] * 20
        assert len(os.listdir("/proc/self/fd")) == before
        other.set("a", b"2")
        (changed, *rest) = run_in_threads(lambda: store.stamp("a"), 3)
        assert changed != stamp
        assert rest == [changed] * 2
        store.set("a", b"3")
        assert store.stamp("a") not in (stamp, changed)


def test_a_store_that_is_dropped_closes_its_connections(tmp_path: Path) -> None:
    store = SQLiteStore(tmp_path / "a.sqldb")
    store.set("a", b"1")
    connections = list(store._connections)
    del store
    gc.collect()
    for connection in connections:
        with pytest.raises(sqlite3.ProgrammingError, match="closed"):
            connection.execute("SELECT 1")
    assert connections
