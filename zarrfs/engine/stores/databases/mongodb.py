"""A MongoDB collection as a store: documents ``{key, value}``, as zarr-python 2 has it. Needs ``pymongo``."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qs, urlsplit, urlunsplit

from zarrfs.engine.stores.databases.base import KeyValueStore, load_library
from zarrfs.errors import LocationError, StoreError

__all__ = ["MongoDBStore"]

DATABASE, COLLECTION = "mongodb_zarr", "zarr_collection"
PATIENCE_MILLISECONDS = 5000
LARGEST_VALUE = 16 << 20


class MongoDBStore(KeyValueStore):
    """Values of one collection. Safe under threads and processes. A document, and so a value, has at most 16 MiB.

    ``url`` is ``mongodb://[USER:PASSWORD@]HOST[:PORT][/DATABASE][?collection=COLLECTION]``. A ``client`` that is
    given is used, and stays the caller's.
    """

    concurrency = 8

    def __init__(self, url: str, *, read_only: bool = False, client: Any = None) -> None:
        self.read_only = read_only
        parts = urlsplit(url)
        options = parse_qs(parts.query)
        (collection,) = options.pop("collection", [COLLECTION])
        rest = "&".join(f"{key}={value}" for key, values in options.items() for value in values)
        database = parts.path.strip("/") or DATABASE
        self._given = url
        port = f":{parts.port}" if parts.port else ""
        self._shown = f"{parts.scheme}://{parts.hostname}{port}/{database}?collection={collection}"
        pymongo = load_library("pymongo", "mongodb", "a MongoDB store")
        bson = load_library("bson", "mongodb", "a MongoDB store")
        self._error = (pymongo.errors.PyMongoError, bson.errors.BSONError, UnicodeEncodeError)
        self._owned = client is None
        try:
            if client is None:
                client = pymongo.MongoClient(
                    urlunsplit(parts._replace(query=rest)), serverSelectionTimeoutMS=PATIENCE_MILLISECONDS
                )
                client.admin.command("ping")
            self._client: Any = client
            self._collection: Any = client[database][collection]
            if not read_only:
                self._collection.create_index("key", unique=True)
        except self._error as error:
            raise LocationError(f"{self._shown}: the server does not answer: {error}") from error

    @property
    def url(self) -> str:
        """The URL without user and password."""
        return self._shown

    def _read(self, key: str) -> bytes | None:
        try:
            found = self._collection.find_one({"key": key})
        except self._error as error:
            raise StoreError(f"{self._shown}: {key} cannot be read: {error}") from error
        if found is None:
            return None
        value = found.get("value")
        if not isinstance(value, bytes):
            raise StoreError(
                f"{self._shown}: {key} is stored as {type(value).__name__}, expected binary data"
            )
        return bytes(value)

    def _write(self, key: str, value: bytes) -> None:
        if len(value) >= LARGEST_VALUE:
            raise StoreError(
                f"{self._shown}: {key} has {len(value)} bytes, a document of MongoDB holds less than {LARGEST_VALUE}: "
                "choose smaller chunks"
            )
        try:
            self._collection.replace_one({"key": key}, {"key": key, "value": value}, upsert=True)
        except self._error as error:
            raise StoreError(f"{self._shown}: {key} cannot be written: {error}") from error

    def _remove(self, key: str) -> None:
        try:
            self._collection.delete_many({"key": key})
        except self._error as error:
            raise StoreError(f"{self._shown}: {key} cannot be deleted: {error}") from error

    def _keys(self, start: str) -> Iterator[str]:
        wanted = {"key": {"$regex": f"^{re.escape(start)}"}} if start else {}
        try:
            found = [
                entry["key"]
                for entry in self._collection.find(wanted, {"key": 1})
                if isinstance(entry.get("key"), str)
            ]
        except self._error as error:
            raise StoreError(f"{self._shown} cannot be listed: {error}") from error
        return iter(found)

    def close(self) -> None:
        super().close()
        if self._owned:
            self._client.close()

    def __reduce__(self) -> tuple[Any, ...]:
        return _reopen, (self._given, self.read_only)


def _reopen(url: str, read_only: bool) -> MongoDBStore:
    return MongoDBStore(url, read_only=read_only)
