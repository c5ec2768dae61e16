"""The location of an array's chunks in a store, prepared when the array is opened: keys, chunk grid, codec
pipelines and cache.

Reading and writing use this class and no other part of the metadata. It performs no reads or writes of chunks itself;
``reading.py`` and ``writing.py`` do.
"""

from __future__ import annotations

import itertools
import os
import threading
from collections.abc import Hashable, Iterable, Iterator
from functools import cached_property
from math import prod
from typing import Any

import numpy as np

from zarrfs.engine.access import ReadWriteOptions
from zarrfs.engine.cache import CacheEntry, ChunkCache
from zarrfs.engine.chunks.chunk_grids import RegularGrid
from zarrfs.engine.codecs.base import ArrayArrayCodec, BytesBytesCodec, ChunkSpec, CodecError
from zarrfs.engine.codecs.pipeline.pipeline import CodecPipeline
from zarrfs.engine.codecs.sharding.codec import ShardingCodec
from zarrfs.engine.dtypes import default_fill
from zarrfs.engine.indexing.axes import Axis, RegularAxis
from zarrfs.engine.model import ArraySpec
from zarrfs.engine.stores.base import Store, StoredValue
from zarrfs.errors import ChunkDecodeError, ChunkEncodeError

__all__ = ["ArrayContext"]

_tokens = itertools.count()

MAX_WRITE_COUNTS = 1 << 16
"""The maximum number of chunks whose writes are counted individually."""

_WriteCounts = tuple[int, dict[tuple[int, ...], int]]
"""A token that identifies the array object in the cache, and the number of writes to each chunk through that object.
Both are part of the cache key. They are replaced together, so that a reader never combines an old token with new
counts.
"""

MAX_LOCKS = 4096

_locks: dict[int, threading.RLock] = {}
"""Locks for chunks, selected by the hash of the array's location and the chunk coordinates. Different chunks may share
a lock; one chunk always has the same lock. A native write holds the locks of hundreds of chunks at a time. A lock is
created when it is first needed: all of them occupy 600 KiB.
"""


def _renew_locks() -> None:
    # In a forked process no thread is left to release the locks that other threads held.
    _locks.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_locks)


MAX_SHARED_PIPELINES = 256

_shared_pipelines: dict[Hashable, tuple[CodecPipeline, tuple[Any, ...]]] = {}
"""Pipelines of arrays whose specifications share their codecs, with the objects whose identities are in the key."""


def _shared_pipeline(spec: ArraySpec, chunk: ChunkSpec) -> CodecPipeline:
    """Return the pipeline for chunks of an array: that of another array if it has the same codecs and fill value.

    Objects are compared by identity, which is the case for documents that differ in their attributes only. Raises
    MetadataError.
    """
    if spec.fill_value is None:
        return CodecPipeline(spec.codecs, chunk)  # The fill value of the chunk is a new object.
    parts = spec.codecs, spec.data_type, spec.fill_value
    key = *map(id, parts), chunk.shape
    found = _shared_pipelines.get(key)
    if found is not None:
        return found[0]
    pipeline = CodecPipeline(spec.codecs, chunk)
    if len(_shared_pipelines) >= MAX_SHARED_PIPELINES:
        _shared_pipelines.clear()
    _shared_pipelines[key] = pipeline, parts
    return pipeline


class ArrayContext:
    """Where an array's chunks are stored and how they are encoded.

    May be used by several threads. It does not own the store or the cache.

    Attributes:
        store, prefix: the store, and the prefix of the chunk keys in it, which is empty or ends with a slash.
        spec: the array's metadata.
        dtype: the dtype in memory.
        effective_fill_value: the value of elements of missing chunks; zero, or NaT for times, if the metadata do not
            define a fill value.
        chunk_shape: the shape of all chunks of a regular grid (of the shards, if the array is sharded), or None.
        axes: the chunk grid of each dimension.
        pipeline: the codec pipeline of all chunks of a regular grid, or None.
        cache: the cache of decoded chunks.
        access: when cached chunks are revalidated, and whether a missing chunk is an error.
        where: the array's location, for messages.
    """

    def __init__(
        self,
        store: Store,
        path: str,
        prefix: str,
        spec: ArraySpec,
        cache: ChunkCache,
        access: ReadWriteOptions,
    ) -> None:
        self.store = store
        self.prefix = prefix
        self.spec = spec
        self.cache = cache
        self.access = access
        self.where = f"{store.url}/{path}" if path else store.url
        self.dtype = spec.data_type.numpy
        self.effective_fill_value: Any = spec.fill_value
        if self.effective_fill_value is None and spec.data_type.name != "object":
            self.effective_fill_value = default_fill(spec.data_type)
        self._encode_key = spec.chunk_key_encoding.encoder(len(spec.shape))
        self._written: _WriteCounts = (next(_tokens), {})
        self.changes = next(_tokens)
        self._pipelines: dict[tuple[int, ...], CodecPipeline] = {}
        grid = spec.chunk_grid
        self.chunk_shape: tuple[int, ...] | None = grid.chunk_shape
        self.axes: tuple[Axis, ...]
        if isinstance(grid, RegularGrid):
            self.axes = tuple(
                RegularAxis(length, max(1, chunk))
                for length, chunk in zip(spec.shape, grid.chunk_shape, strict=True)
            )
            self.pipeline: CodecPipeline | None = self._pipeline(tuple(grid.chunk_shape))
        else:
            self.axes = tuple(grid.axis(axis, length) for axis, length in enumerate(spec.shape))
            self.pipeline = None
            if prod(self.grid_shape):
                self._pipeline(self.shape_of((0,) * len(self.axes)))

    def _pipeline(self, shape: tuple[int, ...]) -> CodecPipeline:
        pipeline = self._pipelines.get(shape)
        if pipeline is None:
            pipeline = _shared_pipeline(self.spec, ChunkSpec(shape, self.dtype, self.effective_fill_value))
            self._pipelines[shape] = pipeline
        return pipeline

    def pipeline_of(self, coords: tuple[int, ...]) -> CodecPipeline:
        """Return the codec pipeline for the shape of a chunk."""
        return self.pipeline or self._pipeline(self.shape_of(coords))

    def shape_of(self, coords: tuple[int, ...]) -> tuple[int, ...]:
        """Return the encoded shape of a chunk, which may extend beyond the array's shape."""
        return tuple(axis.size(chunk) for axis, chunk in zip(self.axes, coords, strict=True))

    @property
    def grid_shape(self) -> tuple[int, ...]:
        """The number of chunks in each dimension; of shards, if the array is sharded."""
        return tuple(axis.find(axis.length - 1) + 1 if axis.length else 0 for axis in self.axes)

    @cached_property
    def typical_nbytes(self) -> int:
        """The decoded size of a chunk in bytes: of the first one, if sizes differ. An estimate for variable-length
        elements.
        """
        shape = self.chunk_shape or (self.shape_of((0,) * len(self.axes)) if prod(self.grid_shape) else ())
        return prod(shape) * (64 if self.dtype.hasobject else self.dtype.itemsize)

    @cached_property
    def is_sharded(self) -> bool:
        """Whether the chunks are shards."""
        return self.sharding() is not None

    @cached_property
    def inner_chunk_shape(self) -> tuple[int, ...] | None:
        """The shape of the inner chunks of the outermost sharding codec, in the order of the array's dimensions; None
        if the array is not sharded.
        """
        sharding = self.sharding()
        return None if sharding is None else sharding[1]

    def sharding(self) -> tuple[ShardingCodec, tuple[int, ...]] | None:
        """Return the outermost sharding codec, and its inner chunk shape in the order of the array's dimensions.

        None if the array is not sharded.
        """
        shape: tuple[int, ...] | None = None
        for index, codec in enumerate(self.spec.codecs):
            if isinstance(codec, ShardingCodec):
                shape = codec.chunk_shape
                for preceding in reversed(self.spec.codecs[:index]):
                    order = getattr(preceding, "order", None)
                    if isinstance(preceding, ArrayArrayCodec) and order is not None and shape is not None:
                        shape = tuple(shape[list(order).index(axis)] for axis in range(len(shape)))
                return (codec, shape) if shape is not None else None
            if isinstance(codec, BytesBytesCodec):
                return None
        return None

    @property
    def compressed(self) -> bool:
        """Whether decoding is more than a copy."""
        return self.pipeline is None or self.pipeline.chain.compressed

    # -- keys and cache ----------------------------------------------------------------------------------------

    def key(self, coords: tuple[int, ...]) -> str:
        """Return the store key of a chunk."""
        return self.prefix + self._encode_key(coords)

    def stamp(self, coords: tuple[int, ...]) -> Hashable | None:
        """Return the version stamp under which data of a stored chunk are cached, without opening the chunk."""
        return self.access.stamp(StoredValue(self.store, self.key(coords), None))

    def cache_entry(
        self,
        coords: tuple[int, ...],
        value: StoredValue,
        may_cache: bool,
        cache_on_first_read: bool = True,
        current: Hashable = None,
    ) -> CacheEntry:
        """Return the cache entry of a chunk. Without ``may_cache`` it is only looked up; without
        ``cache_on_first_read`` it is not added when a part of it is read for the first time.

        Call this before reading the chunk. The entry has the version stamp of that time, so that data older than
        the stamp are never cached under it. ``current`` is ``value.stamp()``, if the caller has asked for it.
        """
        token, counts = self._written
        is_known = current is not None and self.access.recheck_data is None
        stamp = current if is_known else self.access.stamp(value)
        if stamp is None:
            # The version is unknown, so cached data cannot be validated: use none and add none.
            stamp, may_cache = object(), False
        return CacheEntry(
            self.cache, (token, counts.get(coords, 0), coords), stamp, may_cache, cache_on_first_read
        )

    def cache_keys(self, chunks: Iterable[tuple[int, ...]]) -> list[tuple[Hashable, ...]]:
        """Return the keys of the cache entries of chunks. Call this before reading the chunks."""
        token, counts = self._written
        return [(token, counts.get(coords, 0), coords) for coords in chunks]

    def open_chunk(self, coords: tuple[int, ...], pipeline: CodecPipeline) -> StoredValue:
        """Return a handle of the encoded chunk, which can be read in parts. The caller closes it."""
        return self.store.open_value(self.key(coords), pipeline.chain.max_encoded_size)

    def invalidate(self, coords: tuple[int, ...]) -> None:
        """Invalidate the cached data of a chunk, because it was written."""
        _, counts = self._written
        if len(counts) >= MAX_WRITE_COUNTS:
            # A new token makes all cached chunks of this array unreachable. The cache evicts them later.
            self._written = (next(_tokens), {})
        else:
            counts[coords] = counts.get(coords, 0) + 1
        self.changes = next(_tokens)

    def invalidate_all(self, chunks: Iterable[tuple[int, ...]]) -> None:
        """Invalidate the cached data of several chunks."""
        for coords in chunks:
            self.invalidate(coords)

    def lock(self, coords: Hashable) -> threading.RLock:
        """Return the lock for a read-modify-write of one chunk. All array objects of this process share it."""
        number = hash((self.where, coords)) % MAX_LOCKS
        lock = _locks.get(number)
        return _locks.setdefault(number, threading.RLock()) if lock is None else lock

    def stored_chunks(self) -> Iterator[tuple[int, ...]]:
        """Yield the coordinates of the stored chunks, in the order of the store's listing."""
        return (coords for _, coords in self.stored_keys() if coords is not None)

    def stored_keys(self) -> Iterator[tuple[str, tuple[int, ...] | None]]:
        """Yield all keys below the array's prefix, relative to it, in the order of the store's listing: with the
        coordinates of the chunk, or with None if the key is not that of a chunk of the grid.
        """
        grid = self.grid_shape
        decode = self.spec.chunk_key_encoding.decoder(len(grid))
        prefix_length = len(self.prefix)
        for full_key in self.store.list_prefix(self.prefix.rstrip("/")):
            key = full_key[prefix_length:]
            coords = decode(key)
            if coords is not None and not (
                len(coords) == len(grid) and all(0 <= c < n for c, n in zip(coords, grid, strict=True))
            ):
                coords = None
            yield key, coords

    def present_chunks(self) -> Iterable[tuple[int, ...]]:
        """Return the coordinates of the stored chunks in C order; of all chunks, if the store cannot list."""
        return sorted(self.stored_chunks()) if self.store.listable else np.ndindex(*self.grid_shape)

    # -- errors ------------------------------------------------------------------------------------------------

    def decode_error(self, coords: tuple[int, ...], error: CodecError) -> ChunkDecodeError:
        """Return the public error for a chunk that cannot be decoded."""
        return ChunkDecodeError(f"{self.where}: chunk {coords} (key {self.key(coords)!r}) is broken: {error}")

    def encode_error(self, coords: tuple[int, ...], error: CodecError) -> ChunkEncodeError:
        """Return the public error for a chunk that cannot be encoded."""
        return ChunkEncodeError(f"{self.where}: chunk {coords} cannot be encoded: {error}")
