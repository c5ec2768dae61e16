"""Choice of chunk shapes from a number of elements, an aspect ratio, and a partially specified shape. Pure functions.

``choose_read_write`` returns the same shapes as TensorStore ("Selection of chunk layout when creating a new array" in
the documentation of its zarr3 driver), so that programs behave the same with both. TensorStore searches in steps and
may stop one below the largest length; a length can then be greater by one here.
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
    """Constraints on a chunk shape.

    Attributes:
        shape: the length for each dimension; 0 is unconstrained, -1 is the whole dimension. Empty: all unconstrained.
        aspect_ratio: the relative lengths of the unconstrained dimensions; 0 means 1. Empty: all equal.
        elements: the maximum number of elements of a chunk, if the fixed lengths allow it; None means 2^20.
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
"""A function (dimension, length) -> the nearest allowed length."""


def choose_read_write(
    shape: Sequence[int], read: ChunkConstraint, write: ChunkConstraint
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the shapes of read chunks and of write chunks. Write chunks are a multiple of read chunks.

    Unconstrained lengths of read chunks are divisors of the fixed lengths of write chunks. If both shapes are equal,
    shards are not needed.

    Raises MetadataError for constraints of another rank, or if a fixed write length is not a multiple of the fixed read
    length.
    """
    inner, outer = _fixed_lengths(shape, read, "read_chunk"), _fixed_lengths(shape, write, "write_chunk")
    for small, large in zip(inner, outer, strict=True):
        if small > 0 and large > 0 and large % small:
            raise MetadataError(
                f"write_chunk shape {list(outer)} is not a multiple of read_chunk shape {list(inner)}"
            )

    def nearest_divisor(dimension: int, length: int) -> int:
        large = outer[dimension] if outer[dimension] >= 0 else max(1, shape[dimension])
        return length if not large else _nearest(length, _divisors(large))

    chunks = _fill(shape, inner, read, nearest_divisor)

    def nearest_multiple(dimension: int, length: int) -> int:
        unit = chunks[dimension]
        below = max(1, length // unit) * unit
        return below if length - below <= below + unit - length else below + unit

    return chunks, _fill(shape, outer, write, nearest_multiple)


def _fixed_lengths(shape: Sequence[int], constraint: ChunkConstraint, option: str) -> tuple[int, ...]:
    """Return the ``shape`` of the constraint, with the rank of ``shape``. Raises MetadataError for another rank."""
    for name, value in (("shape", constraint.shape), ("aspect_ratio", constraint.aspect_ratio)):
        if value and len(value) != len(shape):
            raise MetadataError(
                f"{option} {name} {list(value)} has {len(value)} dimensions, expected {len(shape)}"
            )
    return constraint.shape or (0,) * len(shape)


def _fill(
    shape: Sequence[int], fixed: tuple[int, ...], constraint: ChunkConstraint, rounding: Rounding
) -> tuple[int, ...]:
    """Return ``fixed`` with the unconstrained lengths filled in.

    They are as large as the number of elements allows, have the proportions of the aspect ratio, and are at most the
    length of the array.
    """
    fixed = tuple(
        rounding(dimension, max(1, shape[dimension])) if length == -1 else length
        for dimension, length in enumerate(fixed)
    )
    open_dimensions = [dimension for dimension, length in enumerate(fixed) if not length]
    if not open_dimensions:
        return fixed
    ratios = [ratio or 1.0 for ratio in constraint.aspect_ratio] or [1.0] * len(shape)
    limits = [min(max(1, length), MAX_SIZE) for length in shape]

    def sized(factor: float) -> tuple[int, ...]:
        return tuple(
            length or rounding(dimension, max(1, int(min(ratios[dimension] * factor, limits[dimension]))))
            for dimension, length in enumerate(fixed)
        )

    max_elements = constraint.elements or DEFAULT_ELEMENTS
    low, high = 0.0, 2 * max(limits[dimension] / ratios[dimension] for dimension in open_dimensions)
    # Lengths grow with the factor. Bisect for the largest factor that fits, to the precision of floats.
    while low < (middle := low + (high - low) / 2) < high:
        if prod(sized(middle)) <= max_elements:
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
    """Return a chunk shape of at most ``target`` bytes.

    The lengths are as equal as the array allows, so that slices along all axes are equally fast. Lengths that do not
    span a whole dimension are powers of two.
    """
    chunks = [max(1, n) for n in shape]
    itemsize = max(1, itemsize)
    while chunks and prod(chunks) * itemsize > target and max(chunks) > 1:
        axis = chunks.index(max(chunks))
        length = chunks[axis]
        power = 1 << ((length - 1).bit_length() - 1)
        chunks[axis] = max(1, power)
    return tuple(chunks)
