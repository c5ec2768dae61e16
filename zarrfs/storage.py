"""The stores, for use as locations: ``zarrfs.open(ZipStore("image.zarr.zip"))``. A path or URL opens the right one.

The names that differ in zarr-python 2 and mean the same here are there too. A store is imported when it is first
used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from zarrfs.engine.locations import Location as StoreLike
from zarrfs.engine.stores.base import Buffer, ByteRange, Listing, Store, Usage
from zarrfs.engine.stores.local import LocalStore
from zarrfs.engine.stores.memory import MemoryStore

if TYPE_CHECKING:
    from zarrfs.engine.stores.caching import LRUStore, MetadataCacheStore
    from zarrfs.engine.stores.caching import LRUStore as LRUStoreCache
    from zarrfs.engine.stores.dbm import DBMStore
    from zarrfs.engine.stores.lmdb import LMDBStore
    from zarrfs.engine.stores.local import LocalStore as DirectoryStore
    from zarrfs.engine.stores.memory import MemoryStore as DictStore
    from zarrfs.engine.stores.memory import MemoryStore as KVStore
    from zarrfs.engine.stores.mongodb import MongoDBStore
    from zarrfs.engine.stores.prefixed import PrefixStore
    from zarrfs.engine.stores.redis import RedisStore
    from zarrfs.engine.stores.remote import RemoteStore
    from zarrfs.engine.stores.retrying import RetryStore
    from zarrfs.engine.stores.sqlite import SQLiteStore
    from zarrfs.engine.stores.temporary import TemporaryStore
    from zarrfs.engine.stores.temporary import TemporaryStore as TempStore
    from zarrfs.engine.stores.wrappers import WrapperStore
    from zarrfs.engine.stores.zip import ZipStore

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

PLACES = {
    "DBMStore": "dbm:DBMStore",
    "DictStore": "memory:MemoryStore",
    "DirectoryStore": "local:LocalStore",
    "KVStore": "memory:MemoryStore",
    "LMDBStore": "lmdb:LMDBStore",
    "LRUStore": "caching:LRUStore",
    "LRUStoreCache": "caching:LRUStore",
    "MetadataCacheStore": "caching:MetadataCacheStore",
    "MongoDBStore": "mongodb:MongoDBStore",
    "PrefixStore": "prefixed:PrefixStore",
    "RedisStore": "redis:RedisStore",
    "RemoteStore": "remote:RemoteStore",
    "RetryStore": "retrying:RetryStore",
    "SQLiteStore": "sqlite:SQLiteStore",
    "TempStore": "temporary:TemporaryStore",
    "TemporaryStore": "temporary:TemporaryStore",
    "WrapperStore": "wrappers:WrapperStore",
    "ZipStore": "zip:ZipStore",
}
"""Name -> module and class, for those that are imported when they are asked for."""


def __getattr__(name: str) -> Any:
    if name not in PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, _, attribute = PLACES[name].partition(":")
    return getattr(import_module(f"zarrfs.engine.stores.{module}"), attribute)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
