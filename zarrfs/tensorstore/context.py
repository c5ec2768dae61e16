"""Resources that the arrays of a context share: chunk cache, metadata cache, concurrency limit, memory store."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

from zarrfs.engine.cache import ChunkCache, default_cache
from zarrfs.engine.json_checks import expect_object
from zarrfs.engine.model import NodeSpec
from zarrfs.engine.stores.base import Store
from zarrfs.engine.stores.memory import MemoryStore
from zarrfs.errors import MetadataError
from zarrfs.text import short_repr

__all__ = ["Context", "MetadataCache"]

METADATA_NBYTES = 16 << 20
"""The default capacity of the metadata cache."""


class MetadataCache:
    """LRU cache of node metadata with the time of reading. ``capacity`` limits the size of the documents.
    Thread-safe.
    """

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self._entries: OrderedDict[tuple[str, str], tuple[NodeSpec, float, int]] = OrderedDict()
        self._nbytes = 0
        self._lock = threading.Lock()

    def get(self, store: Store, path: str) -> tuple[NodeSpec, float] | None:
        """Return the spec of a node and the time of reading in seconds since 1970; None if it is not cached."""
        with self._lock:
            resource = self._entries.get((store.url, path))
            if resource is None:
                return None
            self._entries.move_to_end((store.url, path))
            return resource[:2]

    def put(self, store: Store, path: str, spec: NodeSpec, read_at: float) -> None:
        """Cache the spec of a node."""
        nbytes = len(repr(spec.document))
        key = store.url, path
        with self._lock:
            if key in self._entries:
                self._nbytes -= self._entries.pop(key)[2]
            if nbytes > self.capacity:
                return
            self._entries[key] = spec, read_at, nbytes
            self._nbytes += nbytes
            while self._nbytes > self.capacity:
                self._nbytes -= self._entries.popitem(last=False)[1][2]


class Context:
    """Resources that arrays share, by the names that specs use.

    Examples: ``Context({"cache_pool": {"total_bytes_limit": 100_000_000}})``, ``metadata_cache_pool`` likewise, and
    ``{"data_copy_concurrency": {"limit": 4}}``. A name may have an identifier, as in ``"cache_pool#labels"``. Without
    a ``cache_pool`` the chunk cache of the process is used.
    """

    def __init__(self, spec: Mapping[str, Any] | None = None, parent: Context | None = None) -> None:
        self._spec = {} if spec is None else dict(expect_object(spec, "context"))
        self._parent = parent
        self._resources: dict[str, Any] = {}
        self._lock = threading.RLock()
        for name, value in self._spec.items():
            if value is not None and value != name.partition("#")[0]:
                expect_object(value, f"context/{name}")

    def cache(self, reference: Any = None) -> ChunkCache:
        """Return the chunk cache that ``cache_pool`` of a spec refers to."""
        resource: ChunkCache | None = self._resource("cache_pool", reference, _chunk_cache)
        return default_cache() if resource is None else resource

    def metadata(self, reference: Any = None, cache_pool: Any = None) -> MetadataCache:
        """Return the metadata cache. It has the size of the cache pool unless ``metadata_cache_pool`` is specified."""
        resource: MetadataCache | None = self._resource("metadata_cache_pool", reference, _metadata_cache)
        if resource is None:
            resource = self._resource(
                "cache_pool", cache_pool, _metadata_cache, kind="metadata of cache_pool"
            )
        return self._root()._default_metadata() if resource is None else resource

    def concurrency(self, reference: Any = None) -> int | None:
        """Return the maximum number of threads of one read or write; None for the default."""
        limit: int | None = self._resource("data_copy_concurrency", reference, _limit)
        return limit

    @property
    def memory(self) -> MemoryStore:
        """The store of the key-value driver "memory"."""
        root = self._root()
        with root._lock:
            store: MemoryStore = root._resources.setdefault("memory", MemoryStore())
        return store

    def _root(self) -> Context:
        return self if self._parent is None else self._parent._root()

    def _default_metadata(self) -> MetadataCache:
        with self._lock:
            cache: MetadataCache = self._resources.setdefault("metadata", MetadataCache(METADATA_NBYTES))
        return cache

    def _resource(self, name: str, reference: Any, create: Any, kind: str = "") -> Any:
        if isinstance(reference, Mapping):
            return create(reference, name)
        if reference is None:
            reference = name
        if not isinstance(reference, str) or reference.partition("#")[0] != name:
            raise MetadataError(
                f"{name}: expected an object or the name of a resource, found {short_repr(reference)}"
            )
        with self._lock:
            if isinstance(self._spec.get(reference), Mapping):
                key = f"{kind or name} {reference}"
                if key not in self._resources:
                    self._resources[key] = create(self._spec[reference], reference)
                return self._resources[key]
        if self._parent is not None:
            return self._parent._resource(name, reference, create, kind)
        if "#" in reference:
            raise MetadataError(f"{reference}: the context does not define this resource")
        return None


def _bytes_limit(value: Mapping[str, Any], where: str) -> int:
    limit = value.get("total_bytes_limit", 0)
    if isinstance(limit, bool) or not isinstance(limit, int) or limit < 0:
        raise MetadataError(
            f"{where}/total_bytes_limit: expected an integer of at least 0, found {short_repr(limit)}"
        )
    return limit


def _chunk_cache(value: Mapping[str, Any], where: str) -> ChunkCache:
    return ChunkCache(_bytes_limit(value, where))


def _metadata_cache(value: Mapping[str, Any], where: str) -> MetadataCache:
    return MetadataCache(_bytes_limit(value, where))


def _limit(value: Mapping[str, Any], where: str) -> int | None:
    limit = value.get("limit", "shared")
    if limit == "shared":
        return None
    if isinstance(limit, bool) or not isinstance(limit, int) or limit < 1:
        raise MetadataError(
            f"{where}/limit: expected 'shared' or an integer of at least 1, found {short_repr(limit)}"
        )
    return limit
