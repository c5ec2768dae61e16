"""Databases: locations in messages, and failures of the database itself."""

from __future__ import annotations

import errno
import pickle
import sqlite3
import tracemalloc
from contextlib import closing
from pathlib import Path

import mongomock
import pytest

from tests.engine.stores.every_store import STORES
from zarrfs.engine.stores.base import ValueTooLargeError
from zarrfs.engine.stores.databases.dbm import DBMStore
from zarrfs.engine.stores.databases.mongodb import MongoDBStore
from zarrfs.engine.stores.databases.sqlite import SQLiteStore
from zarrfs.errors import StoreError


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("mongodb://localhost", "mongodb://localhost/mongodb_zarr?collection=zarr_collection"),
        ("mongodb://localhost/", "mongodb://localhost/mongodb_zarr?collection=zarr_collection"),
        ("mongodb://localhost:99/images", "mongodb://localhost:99/images?collection=zarr_collection"),
        ("mongodb://me:secret@localhost/a?collection=b&tls=true", "mongodb://localhost/a?collection=b"),
    ],
)
def test_the_url_of_mongodb_names_database_and_collection(url: str, expected: str) -> None:
    client = mongomock.MongoClient()
    with MongoDBStore(url, client=client) as store:
        assert store.url == expected
        store.set("a", b"1")
    database, _, collection = expected.rpartition("/")[2].partition("?collection=")
    assert client[database][collection].count_documents({}) == 1


@pytest.mark.parametrize("kind", ["sqlite", "lmdb", "redis"])
def test_a_value_that_is_too_large_is_not_read(kind: str, tmp_path: Path) -> None:
    with closing(STORES[kind](tmp_path)) as store:
        store.set("a", bytes(1 << 25))
        tracemalloc.start()
        try:
            with pytest.raises(ValueTooLargeError):
                store.get_within("a", 1000)
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert peak < 1 << 20


@pytest.mark.parametrize("kind", ["sqlite", "dbm", "dbm, sqlite3", "lmdb", "redis"])
def test_a_pickled_store_opens_the_same_database_in_the_same_mode(kind: str, tmp_path: Path) -> None:
    with closing(STORES[kind](tmp_path)) as store:
        store.set("a", b"1")
        pickled = pickle.dumps(store)
    with closing(pickle.loads(pickled)) as store:
        assert not store.read_only
        assert store.get("a") == b"1"
        store.set("b", b"2")


def test_the_size_of_a_text_in_sqlite_is_in_bytes(tmp_path: Path) -> None:
    with SQLiteStore(tmp_path / "a.sqlite") as store:
        store.set("a", b"1")
        with closing(sqlite3.connect(tmp_path / "a.sqlite")) as connection, connection:
            connection.execute("UPDATE zarr SET v = 'ü'")
        assert (store.size("a"), store.get("a"), store.usage().nbytes) == (2, "ü".encode(), 2)
        assert store.get_within("a", 2) == "ü".encode()
        with pytest.raises(ValueTooLargeError, match="2 bytes"):
            store.get_within("a", 1)


class WithoutEmptyValues(dict[bytes, bytes]):
    """What dbm.ndbm on Berkeley DB does: a key with an empty value is listed, and missing."""

    def __contains__(self, key: object) -> bool:
        return bool(super().get(key, b""))  # type: ignore[arg-type]

    def close(self) -> None: ...


def test_an_empty_value_that_dbm_does_not_support_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with DBMStore(tmp_path / "a.dbm") as store:
        real, database = store._database, WithoutEmptyValues()
        store._database = database
        try:
            store.set("a", b"1")
            with pytest.raises(StoreError, match=r"b cannot be written: .* empty values"):
                store.set("b", b"")
            assert list(store.list_prefix()) == ["a"]
        finally:
            store._database = real


@pytest.mark.parametrize("operation", ["set", "delete"])
def test_a_failed_write_of_dbm_is_an_error(
    operation: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with DBMStore(str(tmp_path / "a.dbm")) as store:
        store.set("a", b"1")

        def fail() -> None:
            raise StoreError("no space left", errno.ENOSPC)

        monkeypatch.setattr(store, "_sync", fail)
        with pytest.raises(StoreError, match="no space left"):
            store.delete("a") if operation == "delete" else store.set("b", b"2")
        monkeypatch.undo()
