"""The chunks of an array that are in the cache, each compared with the store once per ``max_age``."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from math import prod
from typing import Any

from zarrfs.engine.codecs.base import BytesBytesCodec
from zarrfs.engine.codecs.sharding.codec import ShardingCodec
from zarrfs.engine.codecs.sharding.fetching import MISSING
from zarrfs.engine.io.storage import ArrayStorage

__all__ = ["NOT_STORED", "CachedChunks"]

Coords = tuple[int, ...]
_Key = tuple[Hashable, ...]

MAX_CHECKED = 1 << 16
"""The maximum number of stored values whose last comparison with the store is remembered."""

NOT_STORED = object()
"""Stands for a chunk that is not stored, and for the stamp of a stored value that does not exist."""


class CachedChunks:
    """The decoded chunks (inner chunks, if the array is sharded) of one array that are in the cache. Thread-safe.

    ``check_metadata`` is called after comparisons with the store. It raises an error if the array has been replaced or
    removed, because a missing chunk then does not mean the fill value.

    Attributes:
        chunk_shape: the shape of the chunks; None if chunks of this array cannot be used without a plan.
        decodes_whole_chunks: whether the codecs of the chunks cannot decode a part of them.
    """

    def __init__(self, storage: ArrayStorage, check_metadata: Callable[[], None]) -> None:
        self._storage = storage
        self._check_metadata = check_metadata
        self._shards = _shard_grid(storage)
        self.chunk_shape = _chunk_shape(storage)
        self.decodes_whole_chunks = self.chunk_shape is not None and _decodes_whole_chunks(storage)
        self._checked: dict[Hashable, tuple[float, Hashable]] = {}

    def find(self, coords: list[Coords], now: float, oldest: float) -> tuple[list[Any], float] | None:
        """Return the decoded chunks at the coordinates (NOT_STORED for each missing chunk), and the time of the
        earliest of their comparisons with the store. Return None if a chunk is not cached or has changed.

        ``now`` is the current time. Comparisons that were made at or before ``oldest`` are repeated. Requires that
        ``chunk_shape`` is not None.
        """
        storage = self._storage
        values, keys = self.keys(coords)
        is_checked = False
        earliest = now
        chunks: list[Any] = []
        for value, key, entry in zip(values, keys, storage.cache.find(keys), strict=True):
            known = self._checked.get(value)
            # An entry with another stamp was added after the last comparison.
            if known is None or known[0] <= oldest or (entry is not None and entry[0] != known[1]):
                known = self._check(value, now)
                is_checked = True
            earliest = min(earliest, known[0])
            if entry is not None:
                if entry[0] != known[1]:
                    return None
                chunks.append(entry[1])
            elif storage.access.fill_missing and (known[1] is NOT_STORED or self._is_empty(key, known[1])):
                chunks.append(NOT_STORED)
            else:
                return None
        if is_checked:
            self._check_metadata()
        return chunks, earliest

    def keys(self, coords: list[Coords]) -> tuple[list[_Key], list[_Key]]:
        """Return the cache keys of the stored values that contain the chunks, and the cache keys of the chunks."""
        grid = self._shards
        if grid is None:
            keys = self._storage.cache_keys(coords)
            return keys, keys
        values = self._storage.cache_keys(
            tuple([c // n for c, n in zip(each, grid, strict=True)]) for each in coords
        )
        inner = [tuple([c % n for c, n in zip(each, grid, strict=True)]) for each in coords]
        return values, [(*value, part) for value, part in zip(values, inner, strict=True)]

    def _check(self, key: _Key, now: float) -> tuple[float, Hashable]:
        """Look up the stamp of a stored value, by its cache key. Return ``now``, and the stamp or NOT_STORED."""
        store, access = self._storage.store, self._storage.access
        coords: Any = key[-1]
        name = self._storage.key(coords)
        with store.open_value(name) as value:
            stamp = access.stamp(value)
        has_unknown_version = stamp is None or access.assumes_unchanged_data
        if has_unknown_version and store.concurrency == 1 and not store.exists(name):
            stamp = NOT_STORED
        checked = (now, object() if stamp is None else stamp)
        if len(self._checked) >= MAX_CHECKED:
            self._checked.clear()
        self._checked[key] = checked
        return checked

    def _is_empty(self, key: _Key, stamp: Hashable) -> bool:
        """Return whether the cached index of the shard states that an inner chunk is missing."""
        if self._shards is None:
            return False
        (found,) = self._storage.cache.find([(*key[:-1], "index")])
        if found is None or found[0] != stamp:
            return False
        return bool((found[1][key[-1]] == MISSING).all())


def _shard_grid(storage: ArrayStorage) -> Coords | None:
    """Return the number of inner chunks of a shard in each dimension, or None if the array is not sharded."""
    sharding = storage.sharding()
    if sharding is None or storage.chunk_shape is None:
        return None
    return tuple(-(-n // part) for n, part in zip(storage.chunk_shape, sharding[1], strict=True))


def _chunk_shape(storage: ArrayStorage) -> Coords | None:
    """Return the shape of the chunks (of the inner chunks) that the cache holds, or None if it is not used."""
    if storage.pipeline is None or storage.dtype.hasobject or not storage.dtype.itemsize:
        return None
    if not storage.spec.shape or not prod(storage.spec.shape) or storage.chunk_shape is None:
        return None
    if storage.store.concurrency > 1 and not storage.access.assumes_unchanged_data:
        return None
    if not storage.pipeline.chain.sharded:
        return tuple(max(1, length) for length in storage.chunk_shape)
    codecs = storage.spec.codecs
    if len(codecs) != 1 or not isinstance(codecs[0], ShardingCodec):
        return None
    if any(isinstance(codec, ShardingCodec) for codec in codecs[0].codecs):
        return None
    return codecs[0].chunk_shape


def _decodes_whole_chunks(storage: ArrayStorage) -> bool:
    codecs = storage.spec.codecs
    if len(codecs) == 1 and isinstance(codecs[0], ShardingCodec):
        return not all(codec.partial for codec in codecs[0].codecs if isinstance(codec, BytesBytesCodec))
    return storage.pipeline is not None and not storage.pipeline.chain.supports_partial
