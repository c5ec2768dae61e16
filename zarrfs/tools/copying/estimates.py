"""Estimates of the cost of a copy: a few of its tasks are run and measured. Their results stay in memory."""

from __future__ import annotations

import time
from collections.abc import Sequence
from itertools import islice
from math import prod
from typing import Any

from zarrfs.engine.nodes.array import Array
from zarrfs.tools.copying.block_grid import Block, Coords
from zarrfs.tools.copying.copy_tasks import CopyBlock, CopyChunk
from zarrfs.tools.copying.reports import ArrayEstimate

__all__ = ["estimate_block_copy", "estimate_chunk_copy", "measure_tasks", "stored_nbytes"]

MAX_SAMPLES = 8
"""The maximum number of tasks that are measured."""

MAX_SAMPLE_SECONDS = 2.0
"""No further task is measured after this time."""

SIZED_CHUNKS = 32
"""The number of stored chunks whose size is requested."""


def estimate_chunk_copy(
    source: Array, target: Array, coords: Sequence[Coords], threads: int, path: str
) -> ArrayEstimate:
    """Estimate the copy of encoded chunks. ``target`` is in memory."""
    seconds, written, sampled = measure_tasks(CopyChunk(source, target, False), target, coords)
    nbytes = round(written * len(coords))
    return ArrayEstimate(
        path, len(coords), nbytes, nbytes, round(written), seconds * len(coords) / threads, threads, sampled
    )


def estimate_block_copy(
    source: Array, target: Array, blocks: Sequence[Block], threads: int, path: str, *, cache_nbytes: int
) -> ArrayEstimate:
    """Estimate the copy of decoded blocks. ``target`` is in memory."""
    seconds, written, sampled = measure_tasks(CopyBlock(source, target, False), target, blocks)
    itemsize = max(1, source.dtype.itemsize)
    largest = max((prod(part.stop - part.start for part in block) for block in _sample(blocks)), default=0)
    return ArrayEstimate(
        path,
        len(blocks),
        stored_nbytes(source),
        round(written * len(blocks)),
        largest * itemsize + min(cache_nbytes, source.nbytes),
        seconds * len(blocks) / threads,
        threads,
        sampled,
    )


def measure_tasks(work: Any, target: Array, items: Sequence[Any]) -> tuple[float, float, int]:
    """Return the mean time and the mean number of written bytes of a task, and the number of measured tasks.

    ``work`` writes to the store of ``target``, which is in memory. The items are samples of ``items``.
    """
    before = _nbytes(target)
    times: list[float] = []
    for item in _sample(items):
        start = time.perf_counter()
        work(item)
        times.append(time.perf_counter() - start)
        if len(times) > 1 and sum(times) > MAX_SAMPLE_SECONDS:
            break
    written = _nbytes(target) - before
    # The first task imports modules and opens connections. Its time counts only if there is no other.
    timed = times[1:] or times
    return sum(timed) / max(1, len(timed)), written / max(1, len(times)), len(times)


def _sample(items: Sequence[Any]) -> list[Any]:
    """Return items at equal distances, without the first and the last one: chunks at the edge of an image are often
    smaller or emptier than the others.
    """
    count = min(MAX_SAMPLES, len(items))
    return [items[(2 * number + 1) * len(items) // (2 * count)] for number in range(count)]


def _nbytes(target: Array) -> int:
    store = target.store
    return sum(store.size(key) or 0 for key in store.list_prefix())


def stored_nbytes(source: Array) -> int:
    """Return the stored size of an array in bytes, estimated from the sizes of some of its chunks."""
    storage = source.storage
    if not source.store.listable:
        return source.nbytes
    coords = list(storage.stored_chunks())
    sized = [
        source.store.size(storage.key(chunk)) or 0
        for chunk in islice(coords, 0, None, max(1, len(coords) // SIZED_CHUNKS))
    ]
    return round(sum(sized) / len(sized) * len(coords)) if sized else 0
