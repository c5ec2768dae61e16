"""Verification of one chunk: it can be decoded, and has the same values as in another array."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from math import prod

import numpy as np

from zarrfs.engine.codecs.base import CodecError
from zarrfs.engine.nodes.array import Array
from zarrfs.errors import ChunkDecodeError, StoreError, ZarrError
from zarrfs.tools.copying.block_grid import Block, Coords
from zarrfs.tools.copying.copy_tasks import have_equal_values
from zarrfs.tools.verification.problems import Problem, ProblemKind

__all__ = ["ChunkVerifier"]


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
