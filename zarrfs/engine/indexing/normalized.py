"""Normalized selections: a product of one selector per dimension, or a list of points.

Both describe how the result is obtained from the buffer that is read. Chunks are not considered here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from zarrfs.engine.json_checks import MAX_RANK

__all__ = ["CoordinateSelection", "Indices", "OrthogonalSelection", "Span"]

Indices = np.ndarray[Any, np.dtype[np.intp]]


class Span(NamedTuple):
    """``count`` indices: every ``step``-th index from ``start``. ``step`` is positive."""

    start: int
    step: int
    count: int  # type: ignore[assignment]

    @property
    def last(self) -> int:
        """The last selected index. Undefined if ``count`` is 0."""
        return self.start + (self.count - 1) * self.step


@dataclass(frozen=True, slots=True)
class OrthogonalSelection:
    """The product of one selector per dimension.

    Attributes:
        selectors: a Span or an array of non-negative indices for each dimension of the array.
        shape: the number of indices selected in each dimension, which is the shape of the buffer.
        view: the index that converts the buffer to the result: it drops and reverses dimensions.
        transpose: the order of the axes, applied after ``view``, or None.
        reshape: the shape of the result, applied last, or None.
    """

    selectors: tuple[Span | Indices, ...]
    shape: tuple[int, ...]
    view: tuple[Any, ...]
    transpose: tuple[int, ...] | None = None
    reshape: tuple[int, ...] | None = None

    def result(self, buffer: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """Convert a buffer of ``shape`` to the result that NumPy would return, as a view if possible."""
        # With the Ellipsis, a single element is returned as a 0-dimensional view and not as a scalar.
        if len(self.view) < MAX_RANK:
            out: np.ndarray[Any, Any] = buffer[(*self.view, Ellipsis)]
        else:  # NumPy does not accept an index of more than MAX_RANK entries
            slices = tuple(part if isinstance(part, slice) else slice(None) for part in self.view)
            dropped = tuple(axis for axis, part in enumerate(self.view) if not isinstance(part, slice))
            out = buffer[slices].squeeze(dropped)
        if self.transpose is not None:
            out = out.transpose(self.transpose)
        return out if self.reshape is None else out.reshape(self.reshape)

    @property
    def result_shape(self) -> tuple[int, ...]:
        """The shape of the result."""
        shape: tuple[int, ...] = self.result(np.broadcast_to(np.empty((), np.uint8), self.shape)).shape
        return shape

    def to_buffer(self, value: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """Convert values of ``result_shape`` to an array of ``shape``: the inverse of ``result``."""
        if self.reshape is not None:
            dropped = [i for i, part in enumerate(self.view) if part == 0 and not isinstance(part, slice)]
            kept_lengths = [n for i, n in enumerate(self.shape) if i not in dropped]
            if self.transpose is not None:
                kept_lengths = [kept_lengths[axis] for axis in self.transpose]
            value = value.reshape(kept_lengths)
        if self.transpose is not None:
            value = value.transpose(np.argsort(self.transpose))
        return value[tuple(part if isinstance(part, slice) else None for part in self.view) or Ellipsis]


@dataclass(frozen=True, slots=True)
class CoordinateSelection:
    """A list of points: one flat array of non-negative indices per dimension, and the shape of the result."""

    points: tuple[Indices, ...]
    shape: tuple[int, ...]
