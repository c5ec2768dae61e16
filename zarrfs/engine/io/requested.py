"""Reads from stores with latency: the chunks of a plan are requested before they are decoded.

All requests are sent by the event loop of the store. Otherwise one thread for each request sends it and waits, which
takes more processor time.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy

from zarrfs.engine.io.planning import ReadPlan
from zarrfs.engine.io.storage import ArrayStorage
from zarrfs.engine.parallel import CORES, permitted_threads

__all__ = ["MAX_KEYS", "chunks_requested"]

MAX_KEYS = 1 << 20
"""A read of more chunks does not request them in advance, because the list of their keys takes too much memory."""


@contextmanager
def chunks_requested(plan: ReadPlan) -> Iterator[tuple[ArrayStorage, int]]:
    """Request the chunks of a plan, if possible. The value of the context is the storage from which they are read, and
    the number of threads that read them.
    """
    storage = plan.storage
    count = permitted_threads(plan.workers)
    context = None
    if storage.store.concurrency > 1 and count > 1 and plan.max_chunks <= MAX_KEYS:
        keys = _keys(plan)
        context = storage.store.requested(keys, count) if keys else None
    if context is None:
        yield storage, plan.workers
        return
    with context as store:
        requested = copy(storage)
        requested.store = store
        yield requested, min(count, CORES)


def _keys(plan: ReadPlan) -> list[str]:
    """Return the keys of the chunks that are not cached, if each of them is read with one request for the whole value;
    otherwise an empty list.
    """
    storage, access = plan.storage, plan.storage.access
    # Other reads ask for the versions of chunks as well. A chunk that is requested before its version is known must not
    # be cached if this process can change it meanwhile.
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
