"""The store classes, for use as locations: ``zarrfs.open(ZipStore("image.zarr.zip"))``.

Paths and URLs select the store class automatically. The names of zarr-python 2 are available as aliases. The module of
a store is imported when the store is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from zarrfs.engine.stores.base import Buffer, ByteRange, Listing, Store, Usage
from zarrfs.engine.stores.local.store import LocalStore
from zarrfs.engine.stores.locations import Location as StoreLike
from zarrfs.engine.stores.memory import MemoryStore

if TYPE_CHECKING:
    from zarrfs.engine.stores.databases.dbm import DBMStore
    from zarrfs.engine.stores.databases.lmdb import LMDBStore
    from zarrfs.engine.stores.databases.mongodb import MongoDBStore
    from zarrfs.engine.stores.databases.redis import RedisStore
    from zarrfs.engine.stores.databases.sqlite import SQLiteStore
    from zarrfs.engine.stores.local.store import LocalStore as DirectoryStore
    from zarrfs.engine.stores.local.temporary import TemporaryStore
    from zarrfs.engine.stores.local.temporary import TemporaryStore as TempStore
    from zarrfs.engine.stores.memory import MemoryStore as DictStore
    from zarrfs.engine.stores.memory import MemoryStore as KVStore
    from zarrfs.engine.stores.remote.store import RemoteStore
    from zarrfs.engine.stores.wrappers.caching import LRUStore, MetadataCacheStore
    from zarrfs.engine.stores.wrappers.caching import LRUStore as LRUStoreCache
    from zarrfs.engine.stores.wrappers.prefix import PrefixStore
    from zarrfs.engine.stores.wrappers.retrying import RetryStore
    from zarrfs.engine.stores.wrappers.wrapper import WrapperStore
    from zarrfs.engine.stores.zip.store import ZipStore

__all__ = [
    "Buffer",
    "ByteRange",
    "DBMStore",
    "DictStore",
    "DirectoryStore",
    "KVStore",
    "LMDBStore",
    "LRUStore",
    "LRUStoreCache",
    "Listing",
    "LocalStore",
    "MemoryStore",
    "MetadataCacheStore",
    "MongoDBStore",
    "PrefixStore",
    "RedisStore",
    "RemoteStore",
    "RetryStore",
    "SQLiteStore",
    "Store",
    "StoreLike",
    "TempStore",
    "TemporaryStore",
    "Usage",
    "WrapperStore",
    "ZipStore",
]

LAZY_STORES = {
    "DBMStore": "databases.dbm:DBMStore",
    "DictStore": "memory:MemoryStore",
    "DirectoryStore": "local.store:LocalStore",
    "KVStore": "memory:MemoryStore",
    "LMDBStore": "databases.lmdb:LMDBStore",
    "LRUStore": "wrappers.caching:LRUStore",
    "LRUStoreCache": "wrappers.caching:LRUStore",
    "MetadataCacheStore": "wrappers.caching:MetadataCacheStore",
    "MongoDBStore": "databases.mongodb:MongoDBStore",
    "PrefixStore": "wrappers.prefix:PrefixStore",
    "RedisStore": "databases.redis:RedisStore",
    "RemoteStore": "remote.store:RemoteStore",
    "RetryStore": "wrappers.retrying:RetryStore",
    "SQLiteStore": "databases.sqlite:SQLiteStore",
    "TempStore": "local.temporary:TemporaryStore",
    "TemporaryStore": "local.temporary:TemporaryStore",
    "WrapperStore": "wrappers.wrapper:WrapperStore",
    "ZipStore": "zip.store:ZipStore",
}
"""Name -> module and class of the stores that are imported on first use."""


def __getattr__(name: str) -> Any:
    if name not in LAZY_STORES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, _, attribute = LAZY_STORES[name].partition(":")
    return getattr(import_module(f"zarrfs.engine.stores.{module}"), attribute)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
