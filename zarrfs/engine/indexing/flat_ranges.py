"""Ranges of the flat stream of an array's elements, divided into boxes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod
from typing import Literal

__all__ = ["FlatOrder", "flat_axes", "flat_boxes"]

FlatOrder = Literal["C", "F"] | tuple[int, ...]
"""The order of the elements in a flat stream: C or F order, or the dimensions from the slowest to the fastest one."""


def flat_axes(order: FlatOrder, ndim: int) -> tuple[int, ...]:
    """Return the dimensions from the slowest to the fastest one. Raises ValueError for an unknown order."""
    if order == "C":
        return tuple(range(ndim))
    if order == "F":
        return tuple(reversed(range(ndim)))
    if not isinstance(order, tuple) or sorted(order) != list(range(ndim)):
        raise ValueError(f"order must be 'C', 'F' or a permutation of the {ndim} dimensions, found {order!r}")
    return order


def flat_boxes(start: int, stop: int, shape: Sequence[int]) -> Iterator[tuple[int, tuple[slice, ...]]]:
    """Divide the elements ``start`` to ``stop``, counted in C order, into boxes that are contiguous in C order.

    Yields (flat index of the first element of the box, box as slices). There are at most two boxes per dimension.
    """
    if start >= stop:
        return
    if not shape:
        yield start, ()
        return
    inner = prod(shape[1:])
    if inner == 0:
        return
    first, first_rest = divmod(start, inner)
    last, last_rest = divmod(stop, inner)
    rest = shape[1:]
    if first == last:
        for position, box in flat_boxes(first_rest, last_rest, rest):
            yield first * inner + position, (slice(first, first + 1), *box)
        return
    if first_rest:
        for position, box in flat_boxes(first_rest, inner, rest):
            yield first * inner + position, (slice(first, first + 1), *box)
        first += 1
    if last > first:
        yield first * inner, (slice(first, last), *(slice(0, length) for length in rest))
    if last_rest:
        for position, box in flat_boxes(0, last_rest, rest):
            yield last * inner + position, (slice(last, last + 1), *box)
