"""Databases: locations in messages, and failures of the database itself."""

from __future__ import annotations

import errno
from pathlib import Path

import mongomock
import pytest

from zarrfs.engine.stores.databases.dbm import DBMStore
from zarrfs.engine.stores.databases.mongodb import MongoDBStore
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
