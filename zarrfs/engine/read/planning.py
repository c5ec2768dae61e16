"""Planning of reads: which chunks are read, how, by which executor, which of them are cached, and on how many threads.

This is the only module that decides. It performs no I/O and decodes nothing. ``reading.py`` executes plans, and
``native_reading.py`` the part of them that the native library reads. The thresholds are in ``read_limits.py``.

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
  ``cache_on_next_read``: the next read then decodes these chunks completely and caches them.
* When shards are read again, the Python executor reads them, which caches the index and the inner chunks one by one.
* A short system call releases the interpreter lock and has to wait for it again, so small chunks are read on one
  thread. Large chunks spend their time in decompressors that run without the lock.
* The native library reads several chunks of local files. For one chunk the Python executor is as fast, and it keeps the
  index of a shard.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from math import prod
from typing import TYPE_CHECKING, NamedTuple

from zarrfs.engine.array_context import ArrayContext
from zarrfs.engine.cache import MAX_RECENT_READS, MAX_SHARE, CacheEntry
from zarrfs.engine.codecs.base import ByteSource, Region
from zarrfs.engine.codecs.pipeline.chain import CodecChain
from zarrfs.engine.codecs.sharding.fetching import InnerChunk
from zarrfs.engine.indexing.normalized import CoordinateSelection, OrthogonalSelection, Span
from zarrfs.engine.indexing.projections import ChunkProjection, ChunkProjections
from zarrfs.engine.parallel import CORES, permitted_threads
from zarrfs.engine.read_limits import (
    INNER_CHUNK_GAP,
    MAX_CONCURRENT_PARTS,
    MAX_FETCHED_FRACTION,
    MAX_PENDING_NBYTES,
    MAX_PREFETCHED_CHUNK_NBYTES,
    MAX_REMOTE_WHOLE_NBYTES,
    MIN_DIVIDED_NBYTES,
    MIN_PARALLEL_COMPRESSED_NBYTES,
    MIN_PARALLEL_INNER_NBYTES,
    MIN_PARALLEL_UNCOMPRESSED_NBYTES,
    MIN_PENDING_CHUNKS,
    MIN_REMOTE_PART_NBYTES,
)
from zarrfs.errors import import_failure

if TYPE_CHECKING:
    from zarrfs.engine.read.native_reading import NativeArray, NativeChunks, NativePlan

__all__ = [
    "ChunkMethod",
    "ChunkRequest",
    "FetchPlan",
    "ReadPlan",
    "cache_on_next_read",
    "choose_method",
    "decoded_fraction",
    "native_decoded_fraction",
    "native_threads",
    "plan_box",
    "plan_fetch",
    "plan_read",
]

MAX_CACHED_CHUNKS = 64
MAX_CACHED_NBYTES = 32 << 20
"""A read of at most this many chunks and bytes is assumed to be repeated; a larger one is a pass over the data."""

MAX_SERIAL_CHUNKS = 64
MAX_SERIAL_NBYTES = 4 << 20
"""A read of at most this many chunks and bytes that are all cached is done on the calling thread. Copying takes less
time than a native read, or than passing the interpreter lock from thread to thread.
"""

MAX_PREFETCHED_CHUNKS = 1 << 20
"""A read of more chunks does not prefetch them, because the list of their keys would take too much memory."""

MIN_NATIVE_CHUNKS = 2
"""Reads of fewer chunks (inner chunks, if the array is sharded) are left to the Python executor."""

MAX_NATIVE_VALUES = 1 << 24
"""The largest number of chunks or shards of one native read; each takes a byte of memory."""

MAX_NATIVE_ENTRIES = 1 << 20
"""The largest number of chunks (or inner chunks) along one dimension; each takes about 200 bytes of memory."""

MAX_SPARSE_INDEX_NBYTES = 1 << 20
"""The library reads the whole index of each shard and keeps none. Larger indexes are read only for whole arrays."""

MIN_TASK_NBYTES = 128 << 10
MIN_TASK_FILES = 32
"""The library uses one thread per this many decoded bytes or files: starting another thread takes as long as reading
them.
"""

MAX_SCRATCH_NBYTES = 512 << 20
"""The maximum scratch memory of all threads of the library together."""


class ChunkMethod(Enum):
    """How the requested region of one chunk is decoded."""

    PARTIAL = "decode only the region"
    WHOLE = "decode the whole chunk without caching it"
    CACHE = "decode the whole chunk and cache it"


class ChunkRequest(Enum):
    """How the stored value of one chunk is requested."""

    BYPASS_CACHE = "one request for the whole value, which is decoded without the cache"
    VALUE = "one request for what the cache does not have"
    PARTS = "several requests, which must see the same version of the value"


@dataclass(slots=True)
class ReadPlan:
    """How one selection is read. Not changed after the planner has returned it.

    Attributes:
        storage: the array.
        chunks: the projection of the selection onto each chunk, in C order of the chunks.
        max_chunks: an upper bound of the number of chunks.
        may_cache_whole: whether chunks that are requested as a whole are cached.
        may_cache_parts: whether chunks of which a region is requested may be cached.
        cache_on_first_read: whether a chunk of which a region is requested is cached when it is read for the first
            time.
        may_be_cached: whether the cache may contain chunks of this read.
        workers: the number of threads of the Python executor.
        prefetched: the chunks that are requested from the store before the first one is decoded.
        native: what the native library reads; None: the Python executor reads everything.
    """

    storage: ArrayContext
    chunks: Iterable[ChunkProjection]
    max_chunks: int
    may_cache_whole: bool
    may_cache_parts: bool
    cache_on_first_read: bool
    may_be_cached: bool
    workers: int = 1
    prefetched: Sequence[tuple[int, ...]] = ()
    native: NativePlan | None = None

    @property
    def is_serial(self) -> bool:
        """Whether few chunks are read on the calling thread. Such a read takes milliseconds and is not interrupted."""
        return self.workers == 1 and self.native is None and self.max_chunks <= MAX_SERIAL_CHUNKS

    def request(self, chunk: ChunkProjection, chain: CodecChain) -> ChunkRequest:
        """Return how the stored value of a chunk is requested."""
        if chain.sharded:
            return ChunkRequest.PARTS
        _, region, _, _, whole = chunk
        is_partial = chain.compressed and chain.prefers_partial(
            region, high_latency=self.storage.store.is_remote
        )
        if is_partial and not whole:
            return ChunkRequest.PARTS
        if self.may_be_cached or (self.may_cache_whole if whole else self.may_cache_parts):
            return ChunkRequest.VALUE
        is_whole = (chain.compressed and not is_partial) or chain.is_whole(region)
        return ChunkRequest.BYPASS_CACHE if is_whole else ChunkRequest.VALUE


# -- plans of the Python executor ------------------------------------------------------------------------------


_ALL = slice(None)
_WHOLE_OUTPUT = (Ellipsis,)


def plan_box(
    storage: ArrayContext, selection: Sequence[int | slice]
) -> tuple[ReadPlan, tuple[int, ...], tuple[int | slice, ...]] | None:
    """Return the plan of an index expression of integers and slices, by the rules of NumPy, the shape of the buffer,
    and the index that drops the dimensions of the integers from it.

    For a box in one chunk, which takes as long to normalize as to read, the projection results from the same loop; for
    others ``plan_read`` makes the plan. Return None for what has to be normalized first: the number
    of entries differs from that of the dimensions, an index is out of bounds, or a slice is empty, invalid or has a
    step.
    """
    axes = storage.axes
    if len(selection) != len(axes):
        return None
    coords: list[int] = []
    region: list[slice] = []
    shape: list[int] = []
    view: list[int | slice] = []
    starts: list[int] = []
    inner = storage.inner_chunk_shape
    is_whole = is_within = True
    for dimension, part in enumerate(selection):
        axis = axes[dimension]
        length = axis.length
        if isinstance(part, slice):
            try:
                start, stop, step = part.indices(length)
            except (TypeError, ValueError):
                return None
            if step != 1 or start >= stop:
                return None
            view.append(_ALL)
        else:
            start = part + length if part < 0 else part
            if not 0 <= start < length:
                return None
            stop = start + 1
            view.append(0)
        starts.append(start)
        shape.append(stop - start)
        if is_within:
            chunk = axis.find(start)
            begin = axis.begin(chunk)
            size = axis.size(chunk)
            low, high = start - begin, stop - begin
            is_within = high <= size
            if inner is not None:
                is_within &= low // inner[dimension] == (high - 1) // inner[dimension]
            coords.append(chunk)
            region.append(slice(low, high, 1))
            if low or (high < size and stop < length):
                is_whole = False
    if is_within:
        projection = ChunkProjection(tuple(coords), tuple(region), None, _WHOLE_OUTPUT, is_whole)
        plan = _plan_chunks(storage, (projection,), 1, prod(shape) * storage.dtype.itemsize, True, False)
    else:
        spans = tuple([Span(start, 1, count) for start, count in zip(starts, shape, strict=True)])
        selected = OrthogonalSelection(spans, tuple(shape), tuple(view))
        plan = plan_read(storage, selected, prod(shape) * storage.dtype.itemsize)
    return plan, tuple(shape), tuple(view)


def plan_read(
    storage: ArrayContext,
    selection: OrthogonalSelection | CoordinateSelection,
    out_nbytes: int,
    may_cache: bool = True,
    continues: bool = False,
) -> ReadPlan:
    """Return the plan for a read that fills ``out_nbytes`` bytes of output.

    With ``may_cache=False`` decoded chunks do not enter the cache. ``continues`` is whether the read is a range of the
    flat stream, of which the following range is likely to be read next.
    """
    chunks = ChunkProjections(selection, storage.axes)
    plan = _plan_chunks(storage, chunks, chunks.count, out_nbytes, may_cache, continues)
    if storage.store.is_remote:
        if plan.workers > 1:
            plan.prefetched = _prefetched(plan)
        return plan
    if chunks.count < MIN_NATIVE_CHUNKS and not storage.is_sharded:
        return plan
    keys: Sequence[tuple[Hashable, ...]] = ()
    cached: set[Hashable] = set()
    is_small = chunks.count <= MAX_SERIAL_CHUNKS and out_nbytes <= MAX_SERIAL_NBYTES
    if is_small and plan.may_be_cached and not storage.is_sharded:
        keys = storage.cache_keys(chunks.coords())
        cached = storage.cache.cached_among(keys)
        if len(cached) == len(keys):
            plan.workers = 1
            return plan
    plan.native = _plan_native(plan, chunks, out_nbytes, keys, cached, continues)
    return plan


def _plan_chunks(
    storage: ArrayContext,
    chunks: Iterable[ChunkProjection],
    count: int,
    out_nbytes: int,
    may_cache: bool,
    continues: bool,
) -> ReadPlan:
    """Return the plan of the Python executor."""
    cache = storage.cache
    typical_nbytes = storage.typical_nbytes
    touched = count * typical_nbytes
    if storage.is_sharded:
        touched = min(touched, out_nbytes * 2)
    capacity = cache.capacity
    is_repeated = count <= MAX_CACHED_CHUNKS and touched <= MAX_CACHED_NBYTES
    may_cache_whole = may_cache and is_repeated and touched * 8 <= capacity
    may_cache_parts = may_cache and touched * 2 <= capacity
    if count <= 1:
        return ReadPlan(storage, chunks, count, may_cache_whole, may_cache_parts, True, len(cache) > 0)
    concurrency = storage.store.concurrency
    threshold = MIN_PARALLEL_COMPRESSED_NBYTES if storage.compressed else MIN_PARALLEL_UNCOMPRESSED_NBYTES
    return ReadPlan(
        storage,
        chunks,
        count,
        may_cache_whole,
        may_cache_parts,
        continues or concurrency > 1 or storage.dtype.hasobject,
        len(cache) > 0,
        _pending_chunks(concurrency, typical_nbytes)
        if concurrency > 1
        else CORES
        if typical_nbytes >= threshold
        else 1,
    )


def _pending_chunks(concurrency: int, nbytes: int) -> int:
    """Return how many chunks of this size are requested at a time from a store that permits so many requests."""
    return min(concurrency, max(MIN_PENDING_CHUNKS, MAX_PENDING_NBYTES // max(1, nbytes)))


def _prefetched(plan: ReadPlan) -> Sequence[tuple[int, ...]]:
    """Return the chunks that are not cached, if each of them is read with one request for the whole value; otherwise
    none.
    """
    storage, access = plan.storage, plan.storage.access
    # Other reads also request the versions of chunks. A chunk that is requested before its version is known must not be
    # cached if this process can change it in the meantime.
    is_simple = access.recheck_data is None or (access.assumes_unchanged_data and storage.store.read_only)
    if (
        storage.is_sharded
        or not access.fill_missing
        or not is_simple
        or plan.max_chunks > MAX_PREFETCHED_CHUNKS
        or storage.typical_nbytes > MAX_PREFETCHED_CHUNK_NBYTES
    ):
        return ()
    coords = []
    for chunk in plan.chunks:
        region = chunk.chunk_region
        chain = storage.pipeline_of(chunk.chunk_coords).chain
        is_whole = chain.is_whole(region) or (
            chain.compressed and not chain.prefers_partial(region, high_latency=True)
        )
        if not is_whole or plan.request(chunk, chain) is ChunkRequest.PARTS:
            return ()
        coords.append(chunk.chunk_coords)
    if plan.may_be_cached:
        keys = storage.cache_keys(coords)
        cached = storage.cache.cached_among(keys)
        return [each for each, key in zip(coords, keys, strict=True) if key not in cached]
    return coords


def cache_on_next_read(storage: ArrayContext, selection: OrthogonalSelection) -> None:
    """Record that the chunks of a selection will be read repeatedly: the next read of a part of them caches them.

    Without this, a chunk is cached when parts of it have been read before. Has no effect on uncompressed chunks, which
    are not cached. Performs no I/O.
    """
    if storage.compressed:
        keys = storage.cache_keys(ChunkProjections(selection, storage.axes).coords())
        if len(keys) <= MAX_RECENT_READS:
            storage.cache.record_reads(keys)


def choose_method(
    chain: CodecChain, region: Region, entry: CacheEntry | None, *, high_latency: bool = False
) -> ChunkMethod:
    """Return how to obtain a region of a chunk (or inner chunk) that is not cached. ``high_latency`` is whether each
    request takes a network round trip.

    ``entry`` is the cache entry of the chunk, or None where the cache is not used. If a part of the chunk is decoded
    that may be cached later, this is recorded.
    """
    may_cache = entry is not None and entry.may_cache
    if chain.is_whole(region):
        return ChunkMethod.CACHE if may_cache else ChunkMethod.WHOLE
    is_partial = chain.prefers_partial(region, high_latency=high_latency)
    if is_partial and not chain.compressed:
        return ChunkMethod.PARTIAL
    if entry is not None and may_cache:
        is_due = (entry.cache_on_first_read and not is_partial) or entry.half_was_decoded()
        if is_due and not (is_partial and chain.must_decode_parts):
            return ChunkMethod.CACHE
        if chain.compressed:
            entry.record_read(decoded_fraction(chain, region) if is_partial else 1.0)
    return ChunkMethod.PARTIAL if is_partial else ChunkMethod.WHOLE


class FetchPlan(NamedTuple):
    """How inner chunks of a shard are fetched.

    Attributes:
        whole: whether the shard is fetched whole.
        at_once: otherwise, the inner chunks that are fetched before they are decoded. Of the others the codecs request
            the ranges that they need.
        workers: the number of threads that decode the inner chunks.
    """

    whole: bool
    at_once: Sequence[InnerChunk]
    workers: int


def plan_fetch(source: ByteSource, chunks: Sequence[InnerChunk], nbytes: int, chain: CodecChain) -> FetchPlan:
    """Return how to fetch inner chunks from a shard, whose inner chunks have ``nbytes`` bytes together.

    If each request needs a network round trip, larger inner chunks are fetched whole, so that a read needs fewer
    requests. ``chain`` is the codec chain of the inner chunks.
    """
    inner_nbytes = chain.nbytes
    workers = CORES if inner_nbytes is not None and inner_nbytes >= MIN_PARALLEL_INNER_NBYTES else 1
    if source.in_memory:
        return FetchPlan(True, chunks, workers)
    at_once = chunks
    if chain.supports_partial or chain.sharded:
        limit = INNER_CHUNK_GAP
        if source.high_latency:
            limit = MAX_REMOTE_WHOLE_NBYTES if chain.compressed else MIN_REMOTE_PART_NBYTES
        at_once = [c for c in chunks if c.nbytes < limit or not _is_partial(chain, c.region)]
    if sum([c.nbytes for c in at_once]) >= MAX_FETCHED_FRACTION * nbytes:
        return FetchPlan(True, chunks, workers)
    if source.high_latency and len(at_once) < len(chunks):
        workers = MAX_CONCURRENT_PARTS
    return FetchPlan(False, at_once, workers)


def _is_partial(chain: CodecChain, region: Region) -> bool:
    """Return whether a region of an inner chunk can be decoded from a part of its bytes."""
    return not chain.is_whole(region) if chain.sharded else chain.prefers_partial(region)


def decoded_fraction(chain: CodecChain, region: Region) -> float:
    """Return which fraction of a chunk is decoded to read a region, by ``choose_method``, without caching the chunk."""
    nbytes = chain.nbytes
    return chain.span(region) / nbytes if nbytes and chain.prefers_partial(region) else 1.0


# -- plans of the native library -------------------------------------------------------------------------------


def _plan_native(
    plan: ReadPlan,
    projections: ChunkProjections,
    out_nbytes: int,
    keys: Sequence[tuple[Hashable, ...]],
    cached: set[Hashable],
    continues: bool,
) -> NativePlan | None:
    """Return what the native library reads of a plan. ``keys`` are the cache keys of the chunks, and ``cached`` those
    that are in the cache; they are determined here if ``keys`` is empty.
    """
    if not projections.spans or plan.max_chunks > MAX_NATIVE_VALUES:
        return None
    # ctypes and the codec libraries are imported with the first read and not with the package.
    try:
        from zarrfs.engine.read.native_reading import NativePlan, native_array, native_chunks
    except OSError as error:
        raise import_failure(error) from error
    storage = plan.storage
    array = native_array(storage)
    if array is None:
        return None
    chunks = native_chunks(array, projections)
    if chunks is None or chunks.count < MIN_NATIVE_CHUNKS:
        return None
    if max([len(span.chunks) for span in chunks.spans]) > MAX_NATIVE_ENTRIES:
        return None
    shard = array.native.shard
    if shard.present and shard.index_nbytes > MAX_SPARSE_INDEX_NBYTES and out_nbytes < array.nbytes:
        return None
    others: list[int] = []
    to_cache: dict[int, tuple[Hashable, ...]] = {}
    if plan.may_be_cached or plan.may_cache_whole or (plan.may_cache_parts and not chunks.all_whole):
        if not keys:
            keys = storage.cache_keys(projections.coords())
            cached = storage.cache.cached_among(keys) if plan.may_be_cached and not shard.present else set()
        if shard.present:
            others = _shards_to_cache(plan, keys, chunks.whole())
        else:
            others, to_cache = _chunks_to_cache(plan, keys, cached, chunks, continues)
        if len(others) == len(keys):
            return None
    threads = native_threads(storage, chunks, array, 2, MIN_TASK_NBYTES, MIN_TASK_FILES)
    parts = 1
    if shard.present and threads > 1 and plan.max_chunks < 4 * threads:
        parts = min(4 * threads, -(-chunks.count // plan.max_chunks))
    return NativePlan(array, chunks, others, to_cache, keys, threads, parts)


def native_threads(
    storage: ArrayContext,
    chunks: NativeChunks,
    array: NativeArray,
    buffers: int,
    min_nbytes: int,
    min_files: int,
) -> int:
    """Return the number of threads with which the library reads or writes chunks.

    Each thread has ``buffers`` buffers of the size of a chunk. One thread is used per ``min_nbytes`` decoded bytes or
    ``min_files`` files.
    """
    nbytes = array.native.chain.nbytes
    tasks = max(1, chunks.count * nbytes // min_nbytes, chunks.value_count // min_files)
    in_memory = max(1, MAX_SCRATCH_NBYTES // (buffers * nbytes))
    permitted = permitted_threads(min(CORES, chunks.count, tasks, in_memory))
    concurrency = storage.access.concurrency
    return permitted if concurrency is None else min(permitted, concurrency)


def _shards_to_cache(
    plan: ReadPlan, keys: Sequence[tuple[Hashable, ...]], whole: Sequence[bool]
) -> list[int]:
    """Return the shards that are cached or were read before, which the Python executor reads. Record the reads."""
    cache = plan.storage.cache
    cached = cache.cached_among([(*key, "index") for key in keys]) if plan.may_be_cached else set()
    cacheable = [
        key
        for key, is_whole in zip(keys, whole, strict=True)
        if (plan.may_cache_whole if is_whole else plan.may_cache_parts)
    ]
    recent = cache.record_reads(cacheable) if len(cacheable) <= MAX_RECENT_READS else set()
    return [i for i, key in enumerate(keys) if key in recent or (*key, "index") in cached]


def _chunks_to_cache(
    plan: ReadPlan,
    keys: Sequence[tuple[Hashable, ...]],
    cached: set[Hashable],
    chunks: NativeChunks,
    continues: bool,
) -> tuple[list[int], dict[int, tuple[Hashable, ...]]]:
    """Return the chunks that are cached, and those that the library decodes whole, so that they are cached. Partial
    reads of the others are recorded.
    """
    pipeline = plan.storage.pipeline
    whole = chunks.whole()
    caches_parts = plan.may_cache_parts and plan.storage.compressed and pipeline is not None
    recent: set[Hashable] = set()
    caches_at_once = False
    if caches_parts and pipeline is not None:
        fraction = native_decoded_fraction(pipeline.chain, chunks.largest_region())
        partial = [key for key, is_whole in zip(keys, whole, strict=True) if not is_whole]
        if len(partial) <= MAX_RECENT_READS:
            recent = plan.storage.cache.record_reads(partial, fraction)
        caches_at_once = continues and fraction >= MAX_SHARE
    others: list[int] = []
    to_cache: dict[int, tuple[Hashable, ...]] = {}
    for position, (key, is_whole) in enumerate(zip(keys, whole, strict=True)):
        if key in cached:
            others.append(position)
        elif plan.may_cache_whole if is_whole else caches_at_once or key in recent:
            to_cache[position] = key
    return others, to_cache


def native_decoded_fraction(chain: CodecChain, region: Region) -> float:
    """Return about which fraction of a chunk the native library decodes to read a region. It decodes single Blosc
    blocks also of chunks for which ``choose_method`` does not.
    """
    nbytes = chain.nbytes or 0
    is_divided = chain.supports_partial and nbytes >= MIN_DIVIDED_NBYTES
    return min(1.0, chain.span(region) / nbytes) if is_divided else 1.0
