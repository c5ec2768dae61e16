"""Masks of regions: which pixels of a box have their centre in an ellipse or a polygon. Pure functions."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

__all__ = ["ellipse_mask", "polygon_mask"]

Box = tuple[slice, slice]
"""(rows, columns), in pixels."""


def ellipse_mask(box: Box, rect: tuple[float, float, float, float]) -> npt.NDArray[np.bool_]:
    """Return which pixels of a box are in the ellipse inscribed in a rectangle (top, left, bottom, right)."""
    top, left, bottom, right = rect
    squares = []
    for span, low, high in ((box[0], top, bottom), (box[1], left, right)):
        half = max((high - low) / 2, 1e-12)
        squares.append(((np.arange(span.start, span.stop) - (low + high) / 2) / half) ** 2)
    return np.asarray(squares[0][:, None] + squares[1] <= 1.0)


def polygon_mask(box: Box, points: Sequence[tuple[float, float]]) -> npt.NDArray[np.bool_]:
    """Return which pixels of a box are in a polygon, given by its vertices (row, column), by the even-odd rule.

    Of two polygons that share an edge, exactly one contains a pixel on that edge. The time is proportional to the size
    of the box plus the number of rows that the edges cross.
    """
    rows, columns = box
    height, width = max(0, rows.stop - rows.start), max(0, columns.stop - columns.start)
    # An edge that crosses a row inverts all pixels at and to the right of the crossing.
    inverted = np.zeros((height, width + 1), np.bool_)
    for (row, column), (next_row, next_column) in zip(points, [*points[1:], *points[:1]], strict=True):
        low, high = min(row, next_row), max(row, next_row)
        first = max(math.ceil(low), rows.start)
        stop = min(math.ceil(high), rows.stop)
        if first >= stop:
            continue
        crossed = np.arange(first, stop)
        crossings = column + (crossed - row) * ((next_column - column) / (next_row - row))
        starts = np.clip(np.ceil(crossings) - columns.start, 0, width).astype(np.intp)
        inverted[crossed - rows.start, starts] ^= True
    return np.logical_xor.accumulate(inverted, axis=1)[:, :width]
