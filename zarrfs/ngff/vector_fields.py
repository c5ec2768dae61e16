"""Vectors on a regular grid, which the transformations ``displacements`` and ``coordinates`` of OME-Zarr 0.6 store."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["FieldValues"]

MAX_POINTS = 1 << 16
"""The number of points whose vectors are read at once."""

MAX_ELEMENTS = 1 << 24
"""The number of elements of a field that are read at once. Points that are further apart are read in smaller groups."""


@dataclass(frozen=True)
class FieldValues:
    """The vectors of a field.

    Attributes:
        read: returns the elements of a region of the array, in the order of its dimensions.
        shape: the shape of the array.
        vector_axis: the dimension of the array with the components of the vectors.
        scale: the distance of the grid points along each other dimension.
        translation: the position of the first grid point along each other dimension.
    """

    read: Callable[[tuple[slice, ...]], npt.NDArray[Any]]
    shape: tuple[int, ...]
    vector_axis: int
    scale: tuple[float, ...]
    translation: tuple[float, ...]

    @property
    def rank(self) -> int:
        """The number of coordinates of a point."""
        return len(self.shape) - 1

    @property
    def length(self) -> int:
        """The number of components of a vector."""
        return self.shape[self.vector_axis]

    def at(self, points: npt.NDArray[np.float64], nearest: bool = False) -> npt.NDArray[np.float64]:
        """Return the vectors at points of shape (number, rank), linearly interpolated. Those of points outside of the
        grid, by more than half the distance of its points, are NaN.
        """
        vectors = np.full((len(points), self.length), np.nan)
        sizes = np.array([size for axis, size in enumerate(self.shape) if axis != self.vector_axis])
        indices = (points - np.array(self.translation)) / np.array(self.scale)
        inside = np.flatnonzero(np.all((indices >= -0.5) & (indices <= sizes - 0.5), axis=1))
        indices = np.clip(indices, 0, sizes - 1)
        if nearest:
            indices = np.clip(np.floor(indices + 0.5), 0, sizes - 1)
        groups = [inside[i : i + MAX_POINTS] for i in range(0, len(inside), MAX_POINTS)]
        while groups:
            group = groups.pop()
            first = np.floor(indices[group].min(axis=0)).astype(int)
            last = np.minimum(np.floor(indices[group].max(axis=0)).astype(int) + 1, sizes - 1)
            extents = last - first + 1
            if len(group) > 1 and int(np.prod(extents, dtype=np.int64)) > MAX_ELEMENTS:
                order = group[np.argsort(indices[group, int(extents.argmax())], kind="stable")]
                groups += [order[: len(order) // 2], order[len(order) // 2 :]]
                continue
            vectors[group] = _interpolated(self._block(first, last), indices[group] - first)
        return vectors

    def _block(self, first: npt.NDArray[Any], last: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
        """Return the vectors of a region of the grid; their components are the last dimension."""
        region = [slice(int(low), int(high) + 1) for low, high in zip(first, last, strict=True)]
        region.insert(self.vector_axis, slice(0, self.length))
        return np.moveaxis(np.asarray(self.read(tuple(region)), np.float64), self.vector_axis, -1)


def _interpolated(
    block: npt.NDArray[np.float64], indices: npt.NDArray[np.float64]
) -> npt.NDArray[np.float64]:
    """Return the values between the elements of a block, at indices of shape (number, dimensions)."""
    sizes = np.array(block.shape[:-1])
    lower = np.floor(indices).astype(int)
    fraction = indices - lower
    result = np.zeros((len(indices), block.shape[-1]))
    for corner in product((0, 1), repeat=len(sizes)):
        upper = np.array(corner, bool)
        weights = np.prod(np.where(upper, fraction, 1 - fraction), axis=1)
        used = weights > 0  # a NaN outside of the interpolated cell has no effect
        place = np.minimum(lower[used] + upper, sizes - 1)
        result[used] += weights[used, None] * block[tuple(place.T)]
    return result
