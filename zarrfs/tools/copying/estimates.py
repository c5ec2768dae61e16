"""Estimates of the cost of a copy: a few of its tasks are run and measured."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from zarrfs.engine.array.array import Array
from zarrfs.tools.copying.block_grid import Block, Coords
from zarrfs.tools.copying.cells import Cells
from zarrfs.tools.copying.copy_tasks import CopyBlock, CopyChunk
from zarrfs.tools.copying.reports import ArrayEstimate
from zarrfs.tools.copying.sampling import Sampling

__all__ = ["estimate_block_copy", "estimate_chunk_copy", "stored_nbytes"]

SIZED_CHUNKS = 32
"""The number of stored chunks whose size is requested."""


def estimate_chunk_copy(
    source: Array, target: Array, coords: Sequence[Coords], sampling: Sampling, workers: int
) -> ArrayEstimate:
    """Estimate the copy of encoded chunks. ``target`` is in the store of ``sampling``."""
    measured = sampling.measure(CopyChunk(source, target, False), [target], coords, workers)
    nbytes = round(measured.nbytes_written * len(coords))
    return ArrayEstimate(
        target.path,
        len(coords),
        nbytes,
        nbytes,
        round(measured.nbytes_written),
        measured.expected_seconds(len(coords)),
        sampling.threads(workers),
        measured.tasks,
        sampling.reason,
    )


def estimate_block_copy(
    source: Array,
    target: Array,
    blocks: Sequence[Block],
    sampling: Sampling,
    workers: int,
    *,
    cache_nbytes: int,
) -> ArrayEstimate:
    """Estimate the copy of decoded blocks. ``target`` is in the store of ``sampling``."""
    measured = sampling.measure(CopyBlock(source, target, False), [target], blocks, workers)
    itemsize = max(1, source.dtype.itemsize)
    # Blocks at the end of the array can be smaller.
    largest = max((prod(part.stop - part.start for part in block) for block in blocks[:1]), default=0)
    return ArrayEstimate(
        target.path,
        len(blocks),
        stored_nbytes(source),
        round(measured.nbytes_written * len(blocks)),
        largest * itemsize + min(cache_nbytes, source.nbytes),
        measured.expected_seconds(len(blocks)),
        sampling.threads(workers),
        measured.tasks,
        sampling.reason,
    )


def stored_nbytes(source: Array) -> int:
    """Return the stored size of an array in bytes, estimated from the sizes of some of its chunks."""
    storage = source.storage
    if not source.store.listable:
        return source.nbytes
    coords = Cells(storage.grid_shape, storage.stored_chunks())
    sized = [
        source.store.size(storage.key(chunk)) or 0 for chunk in coords[:: max(1, len(coords) // SIZED_CHUNKS)]
    ]
    return round(sum(sized) / len(sized) * len(coords)) if sized else 0
