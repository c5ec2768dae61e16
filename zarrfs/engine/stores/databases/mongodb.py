"""A MongoDB collection as a store: documents ``{key, value}``, as in zarr-python 2. Requires ``pymongo``."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qs, urlsplit, urlunsplit

from zarrfs.engine.stores.databases.database_store import KeyValueStore
from zarrfs.errors import LocationError, ServerError, StoreError
from zarrfs.libraries import load_library

__all__ = ["MongoDBStore"]

DEFAULT_DATABASE, DEFAULT_COLLECTION = "mongodb_zarr", "zarr_collection"
CONNECT_TIMEOUT_MILLISECONDS = 5000
MAX_VALUE_NBYTES = 16 << 20


class MongoDBStore(KeyValueStore):
    """Values in one collection. Safe to use from several threads and processes. A value has less than 16 MiB.

    Because of this limit of the server, the size of a value is compared with other limits after it has been read.

    ``url`` is ``mongodb://[USER:PASSWORD@]HOST[:PORT][/DATABASE][?collection=COLLECTION]``. If a ``client`` is given,
    it is used and not closed. Raises LocationError if the server does not respond.
    """

    concurrency = 8
    is_remote = True

    def __init__(self, url: str, *, read_only: bool = False, client: Any = None) -> None:
        self.read_only = read_only
        parts = urlsplit(url)
        options = parse_qs(parts.query)
        (collection,) = options.pop("collection", [DEFAULT_COLLECTION])
        query = "&".join(f"{key}={value}" for key, values in options.items() for value in values)
        database = parts.path.strip("/") or DEFAULT_DATABASE
        self._original_url = url
        port = f":{parts.port}" if parts.port else ""
        self._display_url = f"{parts.scheme}://{parts.hostname}{port}/{database}?collection={collection}"
        pymongo = load_library("pymongo", "mongodb", "a MongoDB store")
        bson = load_library("bson", "mongodb", "a MongoDB store")
        self._error = (pymongo.errors.PyMongoError, bson.errors.BSONError, UnicodeEncodeError)
        self._owned = client is None
        try:
            if client is None:
                client = pymongo.MongoClient(
                    urlunsplit(parts._replace(query=query)),
                    serverSelectionTimeoutMS=CONNECT_TIMEOUT_MILLISECONDS,
                )
                client.admin.command("ping")
            self._client: Any = client
            self._collection: Any = client[database][collection]
            if not read_only:
                self._collection.create_index("key", unique=True)
        except self._error as error:
            raise LocationError(f"{self._display_url}: the server does not respond: {error}") from error

    @property
    def url(self) -> str:
        """The URL without user and password."""
        return self._display_url

    def _read(self, key: str) -> bytes | None:
        try:
            document = self._collection.find_one({"key": key})
        except self._error as error:
            raise ServerError(f"{self._display_url}: {key} cannot be read: {error}") from error
        if document is None:
            return None
        value = document.get("value")
        if not isinstance(value, bytes):
            raise StoreError(
                f"{self._display_url}: {key} is stored as {type(value).__name__}, expected binary data"
            )
        return bytes(value)

    def _write(self, key: str, value: bytes) -> None:
        if len(value) >= MAX_VALUE_NBYTES:
            raise StoreError(
                f"{self._display_url}: {key} has {len(value):,} bytes; a value in MongoDB must have less than "
                f"{MAX_VALUE_NBYTES:,}; choose smaller chunks"
            )
        try:
            self._collection.replace_one({"key": key}, {"key": key, "value": value}, upsert=True)
        except self._error as error:
            raise ServerError(f"{self._display_url}: {key} cannot be written: {error}") from error

    def _remove(self, key: str) -> None:
        try:
            self._collection.delete_many({"key": key})
        except self._error as error:
            raise ServerError(f"{self._display_url}: {key} cannot be deleted: {error}") from error

    def _keys(self, start: str) -> Iterator[str]:
        filters = {"key": {"$regex": f"^{re.escape(start)}"}} if start else {}
        try:
            keys = [
                document["key"]
                for document in self._collection.find(filters, {"key": 1})
                if isinstance(document.get("key"), str)
            ]
        except self._error as error:
            raise ServerError(f"{self._display_url} cannot be listed: {error}") from error
        return iter(keys)

    def close(self) -> None:
        super().close()
        if self._owned:
            self._client.close()

    def __reduce__(self) -> tuple[Any, ...]:
        return _open_mongodb_store, (self._original_url, self.read_only)


def _open_mongodb_store(url: str, read_only: bool) -> MongoDBStore:
    return MongoDBStore(url, read_only=read_only)
