"""Choosing chunk shapes: from a number of elements, an aspect ratio, and what is given of the shape. Pure.

``choose_read_write`` gives the shapes that TensorStore gives ("Selection of chunk layout when creating a new array"
in the documentation of its zarr3 driver), so that a program can change hands between the two; where TensorStore, which
searches in steps, stops one short of what fits, a length here may be one more.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from math import isfinite, prod

from zarrfs.errors import MetadataError

__all__ = ["ChunkConstraint", "choose_read_write", "guess_chunks"]

DEFAULT_ELEMENTS = 1 << 20

MAX_SIZE = 1 << 62


@dataclass(frozen=True)
class ChunkConstraint:
    """What is asked of a chunk shape.

    Attributes:
        shape: for each dimension its length; 0 leaves it open, -1 is the whole dimension. Empty leaves all open.
        aspect_ratio: how long the open dimensions are in relation to each other; 0 is 1. Empty: all alike.
        elements: how many elements a chunk has at most, where the given lengths allow; None: about a million.
    """

    shape: tuple[int, ...] = ()
    aspect_ratio: tuple[float, ...] = ()
    elements: int | None = None

    def __post_init__(self) -> None:
        for name, value in (("chunk shape", self.shape), ("aspect_ratio", self.aspect_ratio)):
            if not isinstance(value, tuple | list):
                raise MetadataError(f"{name}: expected a tuple of numbers, found {value!r}")
        if any(isinstance(n, bool) or not isinstance(n, int) or n < -1 for n in self.shape):
            raise MetadataError(f"chunk shape {list(self.shape)}: expected integers of at least -1")
        if any(
            not isinstance(ratio, int | float) or not isfinite(ratio) or ratio < 0
            for ratio in self.aspect_ratio
        ):
            raise MetadataError(f"aspect_ratio {list(self.aspect_ratio)}: expected numbers of at least 0")
        if self.elements is not None and (
            isinstance(self.elements, bool) or not isinstance(self.elements, int) or self.elements < 1
        ):
            raise MetadataError(f"elements must be an integer of at least 1, found {self.elements!r}")


Rounding = Callable[[int, int], int]
"""(dimension, length) -> the nearest length that is allowed."""


def choose_read_write(
    shape: Sequence[int], read: ChunkConstraint, write: ChunkConstraint
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the shape of what is read as one and of what is written as one, a multiple of it in each dimension.

    Open lengths of read chunks are divisors of the given ones of write chunks. Where both shapes come out the same
    there is no need for shards.

    Raises MetadataError for constraints of another rank, or where a given write shape is no multiple of a given read
    shape.
    """
    inner, outer = _given(shape, read, "read_chunk"), _given(shape, write, "write_chunk")
    for small, large in zip(inner, outer, strict=True):
        if small > 0 and large > 0 and large % small:
            raise MetadataError(
                f"write_chunk shape {list(outer)} is no multiple of read_chunk shape {list(inner)}"
            )

    def dividing(dimension: int, length: int) -> int:
        large = outer[dimension] if outer[dimension] >= 0 else max(1, shape[dimension])
        return length if not large else _nearest(length, _divisors(large))

    chunks = _fill(shape, inner, read, dividing)

    def multiple(dimension: int, length: int) -> int:
        unit = chunks[dimension]
        below = max(1, length // unit) * unit
        return below if length - below <= below + unit - length else below + unit

    return chunks, _fill(shape, outer, write, multiple)


def _given(shape: Sequence[int], constraint: ChunkConstraint, what: str) -> tuple[int, ...]:
    """Return the lengths that are given, as in ``ChunkConstraint``."""
    for name, value in (("shape", constraint.shape), ("aspect_ratio", constraint.aspect_ratio)):
        if value and len(value) != len(shape):
            raise MetadataError(f"{what} {name} {list(value)} has {len(value)} dimensions, not {len(shape)}")
    return constraint.shape or (0,) * len(shape)


def _fill(
    shape: Sequence[int], given: tuple[int, ...], constraint: ChunkConstraint, rounding: Rounding
) -> tuple[int, ...]:
    """Return ``given`` with the open lengths chosen: as large as the number of elements allows, in the proportions
    of the aspect ratio, none longer than the array.
    """
    given = tuple(
        rounding(dimension, max(1, shape[dimension])) if length == -1 else length
        for dimension, length in enumerate(given)
    )
    open_dimensions = [dimension for dimension, length in enumerate(given) if not length]
    if not open_dimensions:
        return given
    ratios = [ratio or 1.0 for ratio in constraint.aspect_ratio] or [1.0] * len(shape)
    most = [min(max(1, length), MAX_SIZE) for length in shape]

    def sized(factor: float) -> tuple[int, ...]:
        return tuple(
            length or rounding(dimension, max(1, int(min(ratios[dimension] * factor, most[dimension]))))
            for dimension, length in enumerate(given)
        )

    wanted = constraint.elements or DEFAULT_ELEMENTS
    low, high = 0.0, 2 * max(most[dimension] / ratios[dimension] for dimension in open_dimensions)
    # Lengths grow with the factor: the largest one that fits, as exactly as numbers can be told apart.
    while low < (middle := low + (high - low) / 2) < high:
        if prod(sized(middle)) <= wanted:
            low = middle
        else:
            high = middle
    return sized(low)


def _nearest(length: int, allowed: Sequence[int]) -> int:
    return min(allowed, key=lambda n: (abs(n - length), n))


@cache
def _divisors(number: int) -> tuple[int, ...]:
    small = [n for n in range(1, int(number**0.5) + 1) if number % n == 0]
    return tuple(sorted({*small, *(number // n for n in small)}))


def guess_chunks(shape: tuple[int, ...], itemsize: int, target: int = 1 << 20) -> tuple[int, ...]:
    """Return a chunk shape of at most ``target`` bytes, its sides as equal as the array allows, powers of two where
    they do not span a whole dimension. Cubes serve slices along every axis alike.
    """
    chunks = [max(1, n) for n in shape]
    itemsize = max(1, itemsize)
    while chunks and prod(chunks) * itemsize > target and max(chunks) > 1:
        axis = chunks.index(max(chunks))
        length = chunks[axis]
        power = 1 << ((length - 1).bit_length() - 1)
        chunks[axis] = max(1, power)
    return tuple(chunks)
