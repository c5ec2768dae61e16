"""Verification of single chunks and of batches of them, and missing chunks."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import product
from math import prod
from typing import Any

import numpy as np

from zarrfs.engine.array.array import Array
from zarrfs.engine.cache import ChunkCache
from zarrfs.engine.codecs.base import CodecError
from zarrfs.errors import ChunkDecodeError, StoreError, ZarrError
from zarrfs.tools.copying.block_grid import Block, Coords
from zarrfs.tools.copying.cells import Cells, Indices
from zarrfs.tools.copying.copy_tasks import have_equal_values
from zarrfs.tools.verification.problems import Problem, ProblemKind

__all__ = ["ChunkVerifier", "VerifyBatch", "missing_between"]

WINDOW = 1 << 18
"""The number of stored chunks whose neighbours are examined at once."""


def missing_between(stored: Cells) -> Iterator[Coords]:
    """Yield the coordinates of the chunks that are missing although all their neighbours are stored.

    The neighbours of a chunk are the previous and the next one in each dimension of the grid, as far as they exist. A
    grid of one chunk has none. Grids of more than 2^62 chunks are not examined.
    """
    grid, present = stored.counts, stored.indices
    axes = [axis for axis, count in enumerate(grid) if count > 1]
    if present is None or not len(present) or not axes:
        return
    strides = [prod(grid[axis + 1 :]) for axis in range(len(grid))]

    def is_present(indices: Indices) -> Any:
        positions = np.searchsorted(present, indices)
        return present[np.minimum(positions, len(present) - 1)] == indices

    # Each candidate follows a stored chunk in the first of the dimensions, or is the first one and precedes one.
    first = axes[0]
    for start in range(0, len(present), WINDOW):
        window = np.array(present[start : start + WINDOW])
        position = window // strides[first] % grid[first]
        candidates = np.concatenate(
            [
                window[position == 1] - strides[first],
                window[position + 1 < grid[first]] + strides[first],
            ]
        )
        candidates = candidates[~is_present(candidates)]
        for axis in axes:
            position = candidates // strides[axis] % grid[axis]
            has_next, has_previous = position + 1 < grid[axis], position > 0
            is_enclosed = np.ones(len(candidates), bool)
            is_enclosed[has_next] &= is_present(candidates[has_next] + strides[axis])
            is_enclosed[has_previous] &= is_present(candidates[has_previous] - strides[axis])
            candidates = candidates[is_enclosed]
        yield from stored.coords_of(candidates)


class ChunkVerifier:
    """Verifies the chunks of one array. Thread-safe.

    Args:
        path: the path of the array in the report.
        array: the array. Its access calls ``collect`` for each corrupt chunk.
        other: the array to compare with, of the same shape and data type, or None.
        memory: the bytes of decoded values to hold, unless one chunk (inner chunk of a shard) needs more.
        listed: the store has listed all chunks that are verified, so that a missing one is a problem.
    """

    def __init__(self, path: str, array: Array, other: Array | None, memory: int, listed: bool) -> None:
        self.path = path
        self.array = array
        self.other = other
        self.memory = memory
        self.listed = listed
        sharding = array.storage.sharding()
        self.step = None if sharding is None else sharding[1]

    def __call__(self, coords: Coords, errors: Callable[[], list[ChunkDecodeError]]) -> list[Problem]:
        """Return the problems of a chunk. ``errors`` returns and clears the errors passed to ``collect``."""
        problems = []
        try:
            if self.step is None:
                problems += self._decode(coords)
            elif self.listed and not self._exists(coords):
                return [self._gone(coords)]
            if self.step is not None or (self.other is not None and not problems):
                problems += self._read(coords, errors)
        except MemoryError:
            problems.append(self._problem(coords, "corrupt", "it does not fit into memory"))
        except StoreError as error:
            problems.append(self._problem(coords, "unreadable", str(error)))
        except ZarrError as error:
            problems.append(self._problem(coords, "corrupt", str(error)))
        return problems

    def _problem(self, coords: Coords, kind: ProblemKind, message: str) -> Problem:
        return Problem(self.path, kind, message, tuple(coords), self.array.storage.key(coords))

    def _decode(self, coords: Coords) -> list[Problem]:
        """Decode a chunk as a whole, including elements beyond the shape of the array."""
        storage = self.array.storage
        pipeline = storage.pipeline_of(coords)
        with storage.open_chunk(coords, pipeline) as value:
            data = value.read()
        if data is None:
            return [self._gone(coords)] if self.listed else []
        try:
            pipeline.decoder.decode(data)
        except CodecError as error:
            return [self._problem(coords, "corrupt", str(storage.decode_error(coords, error)))]
        return []

    def _exists(self, coords: Coords) -> bool:
        storage = self.array.storage
        return storage.store.exists(storage.key(coords))

    def _gone(self, coords: Coords) -> Problem:
        """Return the problem of a chunk that was listed, and that reads as the fill value nevertheless."""
        return self._problem(
            coords,
            "unreadable",
            "the store lists it, but it does not exist: it was deleted in the meantime, or it is a symbolic link whose "
            "target is missing",
        )

    def _read(self, coords: Coords, errors: Callable[[], list[ChunkDecodeError]]) -> list[Problem]:
        """Read the elements of a chunk, part by part, and compare them."""
        problems = []
        for region in self._regions(coords):
            values = np.asarray(self.array[region])
            found = errors()
            problems += [self._problem(coords, "corrupt", str(error)) for error in found]
            if (
                self.other is not None
                and not found
                and not have_equal_values(values, np.asarray(self.other[region]))
            ):
                bounds = ", ".join(f"{part.start}:{part.stop}" for part in region)
                problems.append(
                    self._problem(
                        coords,
                        "different",
                        f"the values at [{bounds}] differ from those in {self.other.store.url}",
                    )
                )
        return problems

    def _regions(self, coords: Coords) -> list[Block]:
        """Return regions of the array that together are the chunk: whole inner chunks of a shard."""
        axes = self.array.storage.axes
        starts = [axis.begin(chunk) for axis, chunk in zip(axes, coords, strict=True)]
        stops = [
            min(start + axis.size(chunk), axis.length)
            for start, axis, chunk in zip(starts, axes, coords, strict=True)
        ]
        sides = [stop - start for start, stop in zip(starts, stops, strict=True)]
        if self.step is not None:
            itemsize = max(1, self.array.dtype.itemsize) * (1 if self.other is None else 2)
            for axis, step in enumerate(self.step):
                rest = prod(sides[axis + 1 :])
                fitting = max(1, self.memory // (itemsize * max(1, rest)) // step) * step
                sides[axis] = min(sides[axis], fitting)
                if fitting > step:
                    break
        ranges = [
            range(start, stop, max(1, side)) for start, stop, side in zip(starts, stops, sides, strict=True)
        ]
        return [
            tuple(
                slice(start, min(start + side, stop))
                for start, side, stop in zip(origin, sides, stops, strict=True)
            )
            for origin in product(*ranges)
        ]


class VerifyBatch:
    """Verifies chunks of one array. Thread-safe and picklable. See ``ChunkVerifier`` for the parameters."""

    def __init__(self, path: str, array: Array, other: Array | None, memory: int, listed: bool) -> None:
        self.array, self.other = array, other
        self._arguments = path, array, other, memory, listed
        self._collected = _ErrorCollector()
        self._verifier = ChunkVerifier(path, self._collected.attach(array), other, memory, listed)

    def __reduce__(self) -> tuple[Any, ...]:
        return VerifyBatch, self._arguments

    def __call__(self, batch: Sequence[Coords]) -> tuple[Sequence[Coords], list[Problem]]:
        """Return the batch and the problems of its chunks."""
        return batch, [problem for chunk in batch for problem in self.verify(chunk)]

    def verify(self, chunk: Coords) -> list[Problem]:
        """Return the problems of a chunk."""
        return self._verifier(chunk, self._collected.take)


class _ErrorCollector:
    """Collects the errors of the corrupt chunks that the current thread reads."""

    def __init__(self) -> None:
        self._state = threading.local()

    def attach(self, array: Array) -> Array:
        """Return the array with an access that collects errors, reads on the calling thread, and caches nothing."""
        access = replace(array.storage.access, on_corrupt=self._add, concurrency=1)
        return Array(array.store, array.path, array.spec, ChunkCache(0), True, access)

    def _add(self, error: ChunkDecodeError) -> None:
        self._errors().append(error)

    def _errors(self) -> list[ChunkDecodeError]:
        errors: list[ChunkDecodeError] | None = getattr(self._state, "errors", None)
        if errors is None:
            errors = self._state.errors = []
        return errors

    def take(self) -> list[ChunkDecodeError]:
        """Return the errors of this thread, and clear them."""
        errors = self._errors()
        self._state.errors = []
        return errors
