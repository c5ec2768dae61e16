"""Prefetching of the chunks of a plan from stores with latency: they are requested before they are decoded.

The event loop of the store sends all requests. Without prefetching each request is sent by a thread, which then waits
for the response; this takes more processor time.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy

from zarrfs.engine.io.planning import ReadPlan
from zarrfs.engine.io.storage import ArrayStorage
from zarrfs.engine.parallel import CORES, permitted_threads

__all__ = ["MAX_KEYS", "prefetched_chunks"]

MAX_KEYS = 1 << 20
"""A read of more chunks does not prefetch them, because the list of their keys would take too much memory."""


@contextmanager
def prefetched_chunks(plan: ReadPlan) -> Iterator[tuple[ArrayStorage, int]]:
    """Prefetch the chunks of a plan, if possible. Yields the storage from which they are read, and the number of
    threads that read them.
    """
    storage = plan.storage
    count = permitted_threads(plan.workers)
    context = None
    if storage.store.concurrency > 1 and count > 1 and plan.max_chunks <= MAX_KEYS:
        keys = _keys(plan)
        context = storage.store.prefetch(keys, count) if keys else None
    if context is None:
        yield storage, plan.workers
        return
    with context as store:
        prefetched = copy(storage)
        prefetched.store = store
        yield prefetched, min(count, CORES)


def _keys(plan: ReadPlan) -> list[str]:
    """Return the keys of the chunks that are not cached, if each of them is read with one request for the whole value;
    otherwise an empty list.
    """
    storage, access = plan.storage, plan.storage.access
    # Other reads also request the versions of chunks. A chunk that is requested before its version is known must not be
    # cached if this process can change it in the meantime.
    is_simple = access.recheck_data is None or (access.assumes_unchanged_data and storage.store.read_only)
    if plan.sharded or not access.fill_missing or not is_simple:
        return []
    chunks = list(plan.chunks())
    for chunk in chunks:
        coords, region = chunk.chunk_coords, chunk.chunk_region
        chain = (storage.pipeline or storage.pipeline_of(coords)).chain
        is_whole = chain.is_whole(region) or (chain.compressed and not chain.prefers_partial(region))
        if not is_whole or plan.needs_parts(chunk, chain):
            return []
    if plan.look_up:
        keys = storage.cache_keys([chunk.chunk_coords for chunk in chunks])
        cached = storage.cache.cached_among(keys)
        chunks = [chunk for chunk, key in zip(chunks, keys, strict=True) if key not in cached]
    return [storage.key(chunk.chunk_coords) for chunk in chunks]
