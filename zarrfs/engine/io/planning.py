"""Planning of reads: which chunks are read, which of them are cached, and how many threads are used.

This is the only module that decides about the cache. It performs no I/O and decodes nothing; ``reading.py``
executes plans.

The policy, with the measurements that justify it in ``benchmarks/``:

* A read of few whole chunks is likely to be repeated, so its chunks are cached. A read of many chunks is a pass over
  the data. Caching its chunks would cost more (newly mapped memory) than decoding them again.
* For a region of an uncompressed chunk only that region is read, because repeating the read costs nothing extra. A
  region of a large compressed chunk is decoded partially at first. When the parts that were read amount to half of the
  chunk (a scan in small steps), the whole chunk is decoded and cached.
* Caching costs newly mapped memory, which takes as long as fast decoders need. A region of several chunks is therefore
  not cached by the first read but by the next one. Chunks of slow stores, a single chunk, and the chunks of a range of
  the flat stream, which is likely to be continued, are cached at once.
* A caller that will read further parts of the same chunks, such as the viewer before the slice moves, calls
  ``expect_reads``: the next read then decodes these chunks completely and caches them.
* When shards are read again, the Python executor reads them, which caches the index and the inner chunks one by one.
* A short system call releases the interpreter lock and has to wait for it again, so small chunks are read on one
  thread. Large chunks spend their time in decompressors that run without the lock.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from typing import NamedTuple

from zarrfs.engine.cache import MAX_RECENT_READS, MAX_SHARE, CacheEntry
from zarrfs.engine.codecs.base import Region
from zarrfs.engine.codecs.pipeline.chain import CodecChain
from zarrfs.engine.indexing.normalized import CoordinateSelection, OrthogonalSelection
from zarrfs.engine.indexing.projections import ChunkProjection, chunk_projections, count_chunks
from zarrfs.engine.io.storage import ArrayStorage
from zarrfs.engine.parallel import CORES

__all__ = [
    "MIN_PARALLEL_COMPRESSED_NBYTES",
    "MIN_PARALLEL_UNCOMPRESSED_NBYTES",
    "ChunkMethod",
    "ChunkPolicy",
    "NativeMethods",
    "ReadPlan",
    "choose_method",
    "choose_native_methods",
    "decoded_share",
    "expect_reads",
    "natively_decoded_share",
    "plan_read",
    "single_chunk_policy",
]

MIN_PARALLEL_COMPRESSED_NBYTES = 16 << 10
"""Compressed chunks of at least this many bytes are decoded on several threads."""

MIN_PARALLEL_UNCOMPRESSED_NBYTES = 256 << 10
"""Uncompressed chunks of at least this many bytes are read on several threads. Reading them is only a copy, so the
threshold is higher than for compressed chunks.
"""

MIN_DIVIDED_NBYTES = 256 << 10
"""Smaller Blosc buffers usually consist of one block."""

MAX_KEPT_CHUNKS = 64
MAX_KEPT_NBYTES = 32 << 20
"""A read of at most this many chunks and bytes is assumed to be repeated; a larger one is a pass over the data."""


class ChunkMethod(Enum):
    """How the requested region of one chunk is decoded."""

    PARTIAL = "decode only the region"
    WHOLE = "decode the whole chunk without caching it"
    KEEP = "decode the whole chunk and cache it"


@dataclass(frozen=True)
class ChunkPolicy:
    """How the chunks of one array are read. Immutable; valid as long as the metadata of the array do not change.

    Attributes:
        keep_whole: whether chunks that are requested as a whole are cached.
        keep_partial: whether chunks of which a region is requested may be cached.
        eager: whether a chunk of which a region is requested is cached when it is read for the first time.
        look_up: whether the cache may contain chunks of this read.
        sharded: whether the chunks are shards, so that one read of a chunk takes several requests.
    """

    keep_whole: bool
    keep_partial: bool
    eager: bool
    look_up: bool
    sharded: bool

    def keeps(self, chunk: ChunkProjection) -> bool:
        """Return whether the decoded chunk, or its inner chunks, may enter the cache."""
        return self.keep_whole if chunk.whole else self.keep_partial

    def needs_parts(self, chunk: ChunkProjection, chain: CodecChain) -> bool:
        """Return whether reading the chunk takes several requests, which must see the same version of its value."""
        return self.sharded or (
            chain.supports_partial
            and chain.compressed
            and not chunk.whole
            and chain.prefers_partial(chunk.chunk_region)
        )

    def is_streamed(self, chunk: ChunkProjection, chain: CodecChain) -> bool:
        """Return whether the whole chunk is decoded and the cache is not involved."""
        return (
            not self.keeps(chunk)
            and not self.look_up
            and (
                chain.is_whole(chunk.chunk_region)
                or (chain.compressed and not chain.prefers_partial(chunk.chunk_region))
            )
        )


@dataclass(frozen=True)
class ReadPlan(ChunkPolicy):
    """How one selection is read.

    Attributes:
        selection: the elements to read.
        storage: the array.
        max_chunks: an upper bound of the number of chunks.
        flat: whether the read is a range of the flat stream, of which the following range is likely to be read next.
        workers: the number of threads.
    """

    selection: OrthogonalSelection | CoordinateSelection
    storage: ArrayStorage
    max_chunks: int
    flat: bool
    workers: int

    def chunks(self) -> Iterator[ChunkProjection]:
        """Yield the projection of the selection onto each chunk, in C order of the chunks."""
        return chunk_projections(self.selection, self.storage.axes)


def single_chunk_policy(storage: ArrayStorage, out_nbytes: int) -> ChunkPolicy:
    """Return the policy of ``plan_read`` for a selection within one chunk.

    ``out_nbytes`` is the size of the output in bytes.
    """
    keep_whole, keep_partial = _may_keep(storage, 1, out_nbytes)
    return _chunk_policy(keep_whole, keep_partial, True, len(storage.cache) > 0, storage.is_sharded)


_chunk_policy = lru_cache(maxsize=32)(ChunkPolicy)
"""There are 32 policies. Constructing one takes longer than finding it."""


def _may_keep(storage: ArrayStorage, count: int, out_nbytes: int) -> tuple[bool, bool]:
    """Return whether the chunks of a read of ``count`` chunks may enter the cache: those that are requested as a whole,
    and the others.
    """
    touched = count * storage.typical_nbytes
    if storage.is_sharded:
        touched = min(touched, out_nbytes * 2)
    capacity = storage.cache.capacity
    is_repeated = count <= MAX_KEPT_CHUNKS and touched <= MAX_KEPT_NBYTES
    return is_repeated and touched * 8 <= capacity, touched * 2 <= capacity


def plan_read(
    storage: ArrayStorage,
    selection: OrthogonalSelection | CoordinateSelection,
    out_nbytes: int,
    keep_chunks: bool = True,
    flat: bool = False,
) -> ReadPlan:
    """Return the plan for a read that fills ``out_nbytes`` bytes of output.

    With ``keep_chunks=False`` decoded chunks do not enter the cache. ``flat`` is the attribute of the plan.
    """
    count = count_chunks(selection, storage.axes)
    keep_whole, keep_partial = _may_keep(storage, count, out_nbytes)
    return ReadPlan(
        selection=selection,
        storage=storage,
        max_chunks=count,
        keep_whole=keep_chunks and keep_whole,
        keep_partial=keep_chunks and keep_partial,
        eager=flat or count <= 1 or storage.store.concurrency > 1 or storage.dtype.hasobject,
        flat=flat,
        look_up=len(storage.cache) > 0,
        sharded=storage.is_sharded,
        workers=_workers(storage, count, storage.typical_nbytes),
    )


def expect_reads(storage: ArrayStorage, selection: OrthogonalSelection) -> None:
    """Record that the chunks of a selection will be read repeatedly: the next read of a part of them caches them.

    Without this, a chunk is cached when parts of it have been read before. Has no effect on uncompressed chunks, which
    are not cached. Performs no I/O.
    """
    if storage.compressed:
        keys = storage.cache_keys(chunk.chunk_coords for chunk in chunk_projections(selection, storage.axes))
        if len(keys) <= MAX_RECENT_READS:
            storage.cache.record_reads(keys)


def _workers(storage: ArrayStorage, count: int, chunk_nbytes: int) -> int:
    if count <= 1:
        return 1
    if storage.store.concurrency > 1:
        return storage.store.concurrency
    compressed = storage.compressed
    threshold = MIN_PARALLEL_COMPRESSED_NBYTES if compressed else MIN_PARALLEL_UNCOMPRESSED_NBYTES
    return CORES if chunk_nbytes >= threshold else 1


def choose_method(chain: CodecChain, region: Region, entry: CacheEntry | None) -> ChunkMethod:
    """Return how to obtain a region of a chunk (or inner chunk) that is not cached.

    ``entry`` is the cache entry of the chunk, or None where the cache is not used.
    """
    keep = entry is not None and entry.keep
    if chain.is_whole(region):
        return ChunkMethod.KEEP if keep else ChunkMethod.WHOLE
    is_partial = chain.prefers_partial(region)
    if is_partial and (not chain.compressed or chain.must_decode_parts):
        return ChunkMethod.PARTIAL
    if entry is not None and keep and ((entry.eager and not is_partial) or entry.was_read_recently()):
        return ChunkMethod.KEEP
    return ChunkMethod.PARTIAL if is_partial else ChunkMethod.WHOLE


def decoded_share(chain: CodecChain, region: Region) -> float:
    """Return which share of a chunk is decoded to read a region, by ``choose_method``, without caching the chunk."""
    nbytes = chain.nbytes
    return chain.span(region) / nbytes if nbytes and chain.prefers_partial(region) else 1.0


def natively_decoded_share(chain: CodecChain, region: Region) -> float:
    """Return about which share of a chunk the native library decodes to read a region. It decodes single Blosc blocks
    also of chunks for which ``choose_method`` does not.
    """
    nbytes = chain.nbytes or 0
    is_divided = chain.supports_partial and nbytes >= MIN_DIVIDED_NBYTES
    return min(1.0, chain.span(region) / nbytes) if is_divided else 1.0


class NativeMethods(NamedTuple):
    """How the native library reads the chunks (or shards) of a plan; positions are those of ``ReadPlan.chunks``.

    Attributes:
        others: the chunks that the Python executor reads, because they are, or will be, in the cache.
        kept: the chunks that the library decodes whole, so that they can be cached.
    """

    others: list[int]
    kept: list[int]


def choose_native_methods(
    plan: ReadPlan, keys: Sequence[tuple[Hashable, ...]], is_whole: Sequence[bool], share: float = 1.0
) -> NativeMethods:
    """Return how to read the chunks with these cache keys. ``is_whole`` is whether a chunk is requested as a whole, and
    ``share`` the share of each of the others that the library decodes.

    Partial reads are recorded.
    """
    cache = plan.storage.cache
    others: list[int] = []
    kept: list[int] = []
    if plan.sharded:
        cached = cache.cached_among([(*key, "index") for key in keys]) if plan.look_up else set()
        partial = [
            key
            for key, whole in zip(keys, is_whole, strict=True)
            if (plan.keep_whole if whole else plan.keep_partial)
        ]
        recent = cache.record_reads(partial) if len(partial) <= MAX_RECENT_READS else set()
        others = [i for i, key in enumerate(keys) if key in recent or (*key, "index") in cached]
        return NativeMethods(others, kept)
    cached = cache.cached_among(keys) if plan.look_up else set()
    recent = set()
    if plan.keep_partial and plan.storage.compressed:
        partial = [key for key, whole in zip(keys, is_whole, strict=True) if not whole]
        if len(partial) <= MAX_RECENT_READS:
            recent = cache.record_reads(partial, share)
    eager = plan.flat and plan.keep_partial and plan.storage.compressed and share >= MAX_SHARE
    for position, (key, whole) in enumerate(zip(keys, is_whole, strict=True)):
        if key in cached:
            others.append(position)
        elif plan.keep_whole if whole else eager or key in recent:
            kept.append(position)
    return NativeMethods(others, kept)
