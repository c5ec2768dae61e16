"""Every store and every wrapper, made anew at a path: what the contract suite and the twins run over.

A new store adds one entry to ``STORES``. Servers are started when they are first asked for.
"""

from __future__ import annotations

import tempfile
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from pathlib import Path

import mongomock
import s3fs

from tests.engine.stores.servers import ftp_server, redis_server, s3_server
from zarrfs.engine.stores.base import Store
from zarrfs.engine.stores.caching import LRUStore, MetadataCacheStore
from zarrfs.engine.stores.dbm import DBMStore
from zarrfs.engine.stores.lmdb import LMDBStore
from zarrfs.engine.stores.local import LocalStore
from zarrfs.engine.stores.memory import MemoryStore
from zarrfs.engine.stores.mongodb import MongoDBStore
from zarrfs.engine.stores.prefixed import PrefixStore
from zarrfs.engine.stores.redis import RedisStore
from zarrfs.engine.stores.remote import RemoteStore
from zarrfs.engine.stores.retrying import RetryStore
from zarrfs.engine.stores.sqlite import SQLiteStore
from zarrfs.engine.stores.synchronizers import ProcessSynchronizer, SynchronizedStore
from zarrfs.engine.stores.wrappers import CountingStore, FailingStore, LatencyStore, WrapperStore
from zarrfs.engine.stores.zip import ZipStore

__all__ = ["STORES", "end_servers"]

STORES: dict[str, Callable[[Path], Store]] = {
    "local": lambda path: LocalStore(path / "store"),
    "local, durable": lambda path: LocalStore(path / "store", durable=True),
    "memory": lambda path: MemoryStore(),
    "a dictionary": lambda path: MemoryStore({}),
    "zip": lambda path: ZipStore(path / "store.zip", "w"),
    "wrapped": lambda path: WrapperStore(MemoryStore()),
    "counting": lambda path: CountingStore(LocalStore(path / "store")),
    "latency": lambda path: LatencyStore(MemoryStore(), lambda operation, key: None),
    "failing": lambda path: FailingStore(MemoryStore(), lambda operation, key: None),
    "values kept": lambda path: LRUStore(LocalStore(path / "store"), 100),
    "metadata kept": lambda path: MetadataCacheStore(MemoryStore(), 60),
    "prefixed": lambda path: PrefixStore(MemoryStore(), "a/b"),
    "retrying": lambda path: RetryStore(MemoryStore()),
    "synchronized": lambda path: SynchronizedStore(MemoryStore(), ProcessSynchronizer(path / "locks")),
    "sqlite": lambda path: SQLiteStore(path / "store.sqldb"),
    "dbm": lambda path: DBMStore(path / "store.dbm"),
    "lmdb": lambda path: LMDBStore(path / "store.lmdb"),
    "redis": lambda path: RedisStore(f"{running('redis')}?prefix={uuid.uuid4().hex}"),
    "mongodb": lambda path: MongoDBStore("mongodb://localhost/tests", client=mongomock.MongoClient()),
    "fsspec, file": lambda path: RemoteStore(f"local://{path}/store"),
    "fsspec, memory": lambda path: RemoteStore(f"memory://{uuid.uuid4().hex}"),
    "fsspec, s3": lambda path: s3_store(),
    "fsspec, ftp": lambda path: RemoteStore(f"{running('ftp')}/{uuid.uuid4().hex}"),
}


@cache
def running(name: str) -> str:
    """Start a server, once; it ends with the session."""
    return SERVERS.enter_context({"redis": redis_server, "s3": s3_server, "ftp": ftp}[name]())


@contextmanager
def ftp() -> Iterator[str]:
    with tempfile.TemporaryDirectory() as folder, ftp_server(Path(folder)) as url:
        yield url


def s3_store() -> RemoteStore:
    bucket = f"b{uuid.uuid4().hex}"
    options = {"endpoint_url": running("s3"), "key": "x", "secret": "x"}
    s3fs.S3FileSystem(**options).mkdir(bucket)
    return RemoteStore(f"s3://{bucket}/store", storage_options=options)


SERVERS = ExitStack()


def end_servers() -> None:
    """End the servers that were started; who asks for one later has it started anew."""
    SERVERS.close()
    running.cache_clear()
