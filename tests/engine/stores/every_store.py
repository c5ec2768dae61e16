"""Factories of all stores and wrappers, for the contract suite and other tests.

A new store adds one entry to ``STORES``. Servers are started when they are first used.
"""

from __future__ import annotations

import dbm.dumb
import itertools
import sqlite3
import tempfile
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager, suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import fsspec
import mongomock
import obstore.store
import pytest
import zarr

from tests.engine.stores.icechunk_repositories import ChunkKeyStore
from tests.engine.stores.servers import (
    AZURITE,
    azure_server,
    ftp_server,
    gcs_server,
    google_server,
    redis_server,
    s3_server,
    sftp_server,
)
from tests.processes import lasting
from zarrfs.engine.stores.base import Store
from zarrfs.engine.stores.databases.dbm import DBMStore
from zarrfs.engine.stores.databases.lmdb import LMDBStore
from zarrfs.engine.stores.databases.mongodb import MongoDBStore
from zarrfs.engine.stores.databases.redis import RedisStore
from zarrfs.engine.stores.databases.sqlite import SQLiteStore
from zarrfs.engine.stores.local.store import LocalStore
from zarrfs.engine.stores.local.temporary import TemporaryStore
from zarrfs.engine.stores.memory import MemoryStore
from zarrfs.engine.stores.remote.store import RemoteStore
from zarrfs.engine.stores.wrappers.caching import LRUStore, MetadataCacheStore
from zarrfs.engine.stores.wrappers.prefix import PrefixStore
from zarrfs.engine.stores.wrappers.retrying import RetryStore
from zarrfs.engine.stores.wrappers.synchronizers import ProcessSynchronizer, SynchronizedStore
from zarrfs.engine.stores.wrappers.timeout import TimeoutStore
from zarrfs.engine.stores.wrappers.wrapper import ReadOnlyStore, WrapperStore
from zarrfs.engine.stores.zarr_python import ZarrPythonStore
from zarrfs.engine.stores.zip.store import ZipStore
from zarrfs.errors import StoreError
from zarrfs.testing import CountingStore, FailingStore, LatencyStore

__all__ = [
    "FSSPEC_AZURE",
    "FSSPEC_S3",
    "STORES",
    "ReadOnlyWithWrites",
    "azure_options",
    "gcs_options",
    "gcs_store",
    "s3_options",
    "s3_store",
    "stop_all_servers",
]


class ReadOnlyWithWrites(ReadOnlyStore):
    """A read-only wrapper with writing enabled, so that the contract suite covers its read methods."""

    perform = WrapperStore.perform


def fail_every_other_operation() -> Callable[[str, str], Exception | None]:
    """Return a failure function for FailingStore. Every second operation fails."""
    count = itertools.count()
    return lambda operation, key: StoreError("busy") if next(count) % 2 else None


def dbm_store(path: Path) -> DBMStore:
    """Return a store of dbm.gnu or dbm.dumb: not every dbm.ndbm supports empty values."""
    with suppress(ImportError):
        import_module("dbm.gnu")
        return DBMStore(path)
    dbm.dumb.open(str(path), "c").close()
    return DBMStore(path)


def dbm_sqlite3_store(path: Path) -> DBMStore:
    """Return a store in a file of dbm.sqlite3, which Python creates by default since version 3.13."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE Dict (key BLOB UNIQUE NOT NULL, value BLOB NOT NULL)")
    return DBMStore(path)


def refuse_to_wait(seconds: float) -> None:
    raise AssertionError(f"waits {seconds} s before an operation that cannot succeed")


STORES: dict[str, Callable[[Path], Store]] = {
    "local": lambda path: LocalStore(path / "store"),
    "local, durable": lambda path: LocalStore(path / "store", durable=True),
    "temporary": lambda path: TemporaryStore(path),
    "memory": lambda path: MemoryStore(),
    "dictionary": lambda path: MemoryStore({}),
    "zip": lambda path: ZipStore(path / "store.zip", "w"),
    "zip, existing": lambda path: existing_archive(path / "store.zip"),
    "wrapper": lambda path: WrapperStore(MemoryStore()),
    "counting": lambda path: CountingStore(LocalStore(path / "store")),
    "latency": lambda path: LatencyStore(MemoryStore(), lambda operation, key: None),
    "failing": lambda path: FailingStore(MemoryStore(), lambda operation, key: None),
    "LRU": lambda path: LRUStore(LocalStore(path / "store"), 100),
    "metadata cache": lambda path: MetadataCacheStore(MemoryStore(), 60),
    "prefix": lambda path: PrefixStore(MemoryStore(), "a/b"),
    "retrying": lambda path: RetryStore(MemoryStore(), sleep=refuse_to_wait),
    "timeout": lambda path: TimeoutStore(MemoryStore(), 60, lambda key: key.endswith("zarr.json")),
    "retrying, failing": lambda path: RetryStore(
        FailingStore(MemoryStore(), fail_every_other_operation()), sleep=lambda seconds: None
    ),
    "read-only": lambda path: ReadOnlyWithWrites(LocalStore(path / "store")),
    "LRU, retrying, fsspec": lambda path: LRUStore(
        RetryStore(RemoteStore(f"memory://{uuid.uuid4().hex}"), sleep=refuse_to_wait), 1000
    ),
    "synchronized": lambda path: SynchronizedStore(MemoryStore(), ProcessSynchronizer(path / "locks")),
    "sqlite": lambda path: SQLiteStore(path / "store.sqldb"),
    "dbm": lambda path: dbm_store(path / "store.dbm"),
    "dbm, sqlite3": lambda path: dbm_sqlite3_store(path / "store.dbm"),
    "lmdb": lambda path: LMDBStore(path / "store.lmdb"),
    "icechunk": lambda path: ChunkKeyStore(path / "repository"),
    "redis": lambda path: RedisStore(f"{server_url('redis')}?prefix={uuid.uuid4().hex}"),
    "mongodb": lambda path: MongoDBStore("mongodb://localhost/tests", client=mongomock.MongoClient()),
    "zarr-python, memory": lambda path: ZarrPythonStore(zarr.storage.MemoryStore()),
    "zarr-python, wrapper": lambda path: ZarrPythonStore(
        zarr.storage.WrapperStore(zarr.storage.MemoryStore())
    ),
    "zarr-python, obstore": lambda path: ZarrPythonStore(
        zarr.storage.ObjectStore(obstore.store.MemoryStore())
    ),
    "zarr-python, fsspec": lambda path: ZarrPythonStore(
        zarr.storage.FsspecStore.from_url(f"memory://{uuid.uuid4().hex}")
    ),
    "fsspec, file": lambda path: RemoteStore(f"local://{path}/store"),
    "fsspec, memory": lambda path: RemoteStore(f"memory://{uuid.uuid4().hex}"),
    "s3": lambda path: s3_store(),
    "azure": lambda path: azure_store(),
    "gs": lambda path: google_store(),
    "fsspec, s3": lambda path: s3_store(FSSPEC_S3),
    "fsspec, ftp": lambda path: RemoteStore(f"{server_url('ftp')}/{uuid.uuid4().hex}"),
    "fsspec, sftp": lambda path: RemoteStore(f"{server_url('sftp')}/{uuid.uuid4().hex}"),
    "fsspec, azure": lambda path: azure_store(FSSPEC_AZURE),
    "fsspec, gcs": lambda path: gcs_store(),
}


def existing_archive(path: Path) -> ZipStore:
    """Return a store for an existing archive whose member was deleted."""
    with ZipStore(path, "w") as store:
        store.set("old", b"1234" * 100)
    store = ZipStore(path, "a")
    store.delete("old")
    return store


@cache
def server_url(name: str) -> str:
    """Return the URL of a server. It is started once and stopped by ``stop_all_servers``."""
    with lasting():
        return SERVERS.enter_context(
            {
                "redis": redis_server,
                "s3": s3_server,
                "azure": azure_server,
                "gcs": gcs_server,
                "objects": google_server,
                "ftp": lambda: serve_temporary_folder(ftp_server),
                "sftp": lambda: serve_temporary_folder(sftp_server),
            }[name]()
        )


@contextmanager
def serve_temporary_folder(server: Callable[[Path], AbstractContextManager[str]]) -> Iterator[str]:
    with tempfile.TemporaryDirectory() as folder, server(Path(folder)) as url:
        yield url


def azure_options() -> dict[str, str]:
    """Return the storage options of the emulator of Azure. Skips the test if it is not installed."""
    if not AZURITE.exists():
        pytest.skip(
            f"Azurite is not installed ({AZURITE}): packaging/setup.sh installs it if npm is available"
        )
    return {"connection_string": server_url("azure")}


def gcs_options() -> dict[str, str]:
    """Return the storage options of the emulator of Google Cloud Storage."""
    return {"endpoint_url": server_url("gcs"), "token": "anon", "project": "tests"}


def s3_options() -> dict[str, str]:
    """Return the storage options of the emulator of S3."""
    return {"endpoint_url": server_url("s3"), "key": "x", "secret": "x"}


FSSPEC_S3 = {"config_kwargs": {"user_agent_extra": "tests"}}
"""A storage option of s3fs that obstore does not have, so that fsspec is used."""

FSSPEC_AZURE = {"version_aware": True}


def azure_store(more: Mapping[str, Any] | None = None) -> RemoteStore:
    import adlfs

    options: dict[str, Any] = azure_options()
    container = f"c{uuid.uuid4().hex}"
    file_system = adlfs.AzureBlobFileSystem(**options, skip_instance_cache=True)
    file_system.mkdir(container)
    fsspec.asyn.sync(file_system.loop, file_system.service_client.close)
    return RemoteStore(f"abfs://{container}/store", storage_options={**options, **(more or {})})


def google_store() -> RemoteStore:
    """Return a store in a server with the XML interface of Google, which the emulator does not have."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GOOGLE_BASE_URL", server_url("objects"))
        return RemoteStore(f"gs://bucket/{uuid.uuid4().hex}", storage_options={"token": "token"})


def gcs_store() -> RemoteStore:
    options = gcs_options()
    bucket = f"b{uuid.uuid4().hex}"
    fsspec.filesystem("gs", **options).mkdir(bucket)
    return RemoteStore(f"gs://{bucket}/store", storage_options=options)


def s3_store(more: Mapping[str, Any] | None = None) -> RemoteStore:
    import s3fs

    bucket = f"b{uuid.uuid4().hex}"
    options = s3_options()
    s3fs.S3FileSystem(**options).mkdir(bucket)
    return RemoteStore(f"s3://{bucket}/store", storage_options={**options, **(more or {})})


SERVERS = ExitStack()


def stop_all_servers() -> None:
    """Stop all started servers. They are started again when they are used again."""
    SERVERS.close()
    server_url.cache_clear()
