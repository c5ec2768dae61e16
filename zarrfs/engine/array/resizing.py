"""Changes of an array's shape: checks of the new shape, and removal of the elements outside it.

Chunks that are entirely outside the new shape are deleted. In those that the new shape divides, the elements outside it
are set to the fill value. Otherwise they would reappear when the array grows again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Any

import numpy as np

from zarrfs.engine.array_context import ArrayContext
from zarrfs.engine.codecs.base import CodecError, Region
from zarrfs.engine.model import ArraySpec
from zarrfs.engine.parallel import for_each, limit_threads
from zarrfs.engine.write.writing import clear_regions, writing_threads
from zarrfs.errors import ChunkDecodeError, DataShapeError, SelectionError

__all__ = ["Remainder", "appended_shape", "checked_axis", "checked_shape"]

MAX_REQUESTS = 1000
"""The number of chunks that are looked up one by one. To find the stored ones of more chunks, the keys are listed."""


def checked_shape(arguments: Sequence[Any], ndim: int, where: str) -> tuple[int, ...]:
    """Return the shape that the arguments of ``resize`` state: one integer per dimension, or one tuple of them.

    ``where`` names the array in messages. Raises SelectionError if they are not ``ndim`` non-negative integers.
    """
    is_tuple = len(arguments) == 1 and isinstance(arguments[0], tuple | list)
    shape = tuple(arguments[0]) if is_tuple else tuple(arguments)
    if len(shape) != ndim or not all(isinstance(n, int | np.integer) and n >= 0 for n in shape):
        raise SelectionError(
            f"{where}: {shape} is not a valid shape for an array of {ndim} dimensions; expected {ndim} integers of at "
            "least 0"
        )
    return tuple(int(n) for n in shape)


def checked_axis(axis: Any, ndim: int, where: str) -> int:
    """Return the dimension along which data are appended, from 0. Raises SelectionError if there is no such one."""
    if not ndim:
        raise SelectionError(f"{where}: nothing can be appended to an array without dimensions")
    if not isinstance(axis, int | np.integer) or not -ndim <= axis < ndim:
        raise SelectionError(
            f"{where}: axis {axis!r} is out of range for an array of {ndim} dimensions; expected an integer from "
            f"{-ndim} to {ndim - 1}"
        )
    return int(axis) % ndim


def appended_shape(
    shape: tuple[int, ...], data_shape: tuple[int, ...], axis: int, where: str
) -> tuple[int, ...]:
    """Return the shape after data are appended along ``axis``.

    Raises DataShapeError if the data differ from the array in another dimension.
    """
    if len(data_shape) != len(shape) or any(i != axis and n != data_shape[i] for i, n in enumerate(shape)):
        raise DataShapeError(
            f"{where}: data of shape {data_shape} cannot be appended to {shape} in dimension {axis}; the other "
            "dimensions must be the same"
        )
    return tuple(n + data_shape[i] if i == axis else n for i, n in enumerate(shape))


@dataclass(frozen=True)
class Remainder:
    """What remains of the elements outside the new shape when an array shrinks: in which chunks they are stored.

    Attributes:
        grid_shape: the number of chunks in each dimension that are inside both shapes, at least in part.
        cuts: for each dimension in which the new shape divides chunks, the number of the divided chunk and its part
            outside the new shape.
        stored: the coordinates of the stored chunks before the change, or None if they were not listed.
    """

    grid_shape: tuple[int, ...]
    cuts: Mapping[int, tuple[int, slice]]
    stored: frozenset[tuple[int, ...]] | None

    @classmethod
    def find(cls, old: ArrayContext, spec: ArraySpec) -> Remainder | None:
        """Return what remains outside the shape of ``spec``, the metadata after the change. None if nothing does.

        Lists the stored chunks if some may have to be deleted. Raises ChunkEncodeError if chunks are divided that
        cannot be encoded.
        """
        pairs = list(zip(spec.shape, old.spec.shape, strict=True))
        if all(new >= before for new, before in pairs) or not prod(old.spec.shape):
            return None
        counts = zip(spec.chunk_grid.grid_shape(spec.shape), old.grid_shape, strict=True)
        grid_shape = tuple(min(count) for count in counts)
        cuts = {}
        for dimension, (new, before) in enumerate(pairs):
            if prod(grid_shape) and new < before:
                axis = spec.chunk_grid.axis(dimension, new)
                chunk = axis.find(new - 1)
                part = slice(new - axis.begin(chunk), axis.size(chunk), 1)
                if part.start < part.stop:
                    cuts[dimension] = chunk, part
        divided = cls(grid_shape, cuts, None)
        if cuts:
            coords = next(divided.divided_chunks())
            try:
                _ = old.pipeline_of(coords).encoder
            except CodecError as error:
                raise old.encode_error(coords, error) from error
        is_looked_up = grid_shape == old.grid_shape and divided.count() <= MAX_REQUESTS
        return divided if is_looked_up else cls(grid_shape, cuts, frozenset(old.stored_chunks()))

    def count(self) -> int:
        """Return the number of chunks that the new shape divides."""
        undivided = (count - (i in self.cuts) for i, count in enumerate(self.grid_shape))
        return prod(self.grid_shape) - prod(undivided)

    def divided_chunks(self) -> Iterator[tuple[int, ...]]:
        """Yield the coordinates of the chunks that the new shape divides, each once."""
        ranges = [range(count) for count in self.grid_shape]
        for dimension, (chunk, _) in self.cuts.items():
            ranges[dimension] = range(chunk, chunk + 1)
            yield from product(*ranges)
            ranges[dimension] = range(chunk)

    def remove(self, storage: ArrayContext, write_empty: bool) -> None:
        """Delete the stored chunks outside the new shape, and clear the parts of the divided ones that are outside it.

        ``storage`` has the new shape. Raises ChunkDecodeError if a divided chunk cannot be decoded, after all others
        are cleared, ChunkEncodeError and StoreError.
        """
        divided = self.divided_chunks()
        if self.stored is not None:
            for coords in self.stored:
                if any(c >= n for c, n in zip(coords, self.grid_shape, strict=True)):
                    storage.store.delete(storage.key(coords))
            divided = (
                coords
                for coords in self.stored
                if all(c < n for c, n in zip(coords, self.grid_shape, strict=True))
                and any(coords[dimension] == chunk for dimension, (chunk, _) in self.cuts.items())
            )
        broken: list[ChunkDecodeError] = []

        def clear(coords: tuple[int, ...]) -> None:
            try:
                clear_regions(storage, coords, self._regions(storage, coords), write_empty)
            except ChunkDecodeError as error:
                broken.append(error)

        with limit_threads(storage.access.concurrency):
            for_each(clear, divided, writing_threads(storage))
        if broken:
            raise ChunkDecodeError(
                f"{broken[0]}; the array has its new shape, but the elements of this chunk outside it could not be set "
                "to the fill value"
            ) from broken[0]

    def _regions(self, storage: ArrayContext, coords: tuple[int, ...]) -> Iterator[Region]:
        """Yield the regions of a divided chunk that are outside the new shape. They may overlap."""
        whole = [slice(0, length, 1) for length in storage.shape_of(coords)]
        for dimension, (chunk, part) in self.cuts.items():
            if coords[dimension] == chunk:
                yield tuple(part if i == dimension else each for i, each in enumerate(whole))
