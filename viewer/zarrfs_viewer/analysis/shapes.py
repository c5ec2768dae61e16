"""What is drawn on the picture to measure with: a line, or the box of a rectangle or an ellipse. Pure."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal

from zarrfs_viewer.analysis.measure import Roi
from zarrfs_viewer.state.view_state import Viewport

__all__ = ["Point", "Shape", "ShapeKind", "grab", "moved"]

Point = tuple[float, float]
"""(row, column) in data coordinates."""

ShapeKind = Literal["line", "rectangle", "ellipse"]

REACH = 9.0
"""A handle is grabbed from so many device pixels away."""


@dataclass(frozen=True)
class Shape:
    """From one point to another: the ends of the line, or opposite corners of the box."""

    kind: ShapeKind
    start: Point
    end: Point

    @property
    def rect(self) -> tuple[float, float, float, float]:
        """The box (top, left, bottom, right)."""
        rows, columns = sorted((self.start[0], self.end[0])), sorted((self.start[1], self.end[1]))
        return rows[0], columns[0], rows[1], columns[1]

    @property
    def empty(self) -> bool:
        """Whether it has no extent: a click, not a drag."""
        return self.start == self.end

    def roi(self) -> Roi:
        """Return the region. Raises ValueError for a line, which has none."""
        if self.kind == "line":
            raise ValueError("a line is no region")
        return Roi(self.kind, self.rect)


Part = Literal["start", "end", "all"]


def grab(shape: Shape, viewport: Viewport, x: float, y: float) -> Part | None:
    """Return which part of a shape is below a device position: an end, the whole, or None."""
    for part, point in (("end", shape.end), ("start", shape.start)):
        if math.dist(viewport.to_device(*point), (x, y)) <= REACH:
            return "end" if part == "end" else "start"
    start, end = viewport.to_device(*shape.start), viewport.to_device(*shape.end)
    if shape.kind == "line":
        return "all" if _distance((x, y), start, end) <= REACH else None
    inside = min(start[0], end[0]) <= x <= max(start[0], end[0])
    return "all" if inside and min(start[1], end[1]) <= y <= max(start[1], end[1]) else None


def moved(shape: Shape, part: Part, by: Point) -> Shape:
    """Return the shape with a part of it moved by (rows, columns)."""
    start, end = ((point[0] + by[0], point[1] + by[1]) for point in (shape.start, shape.end))
    return replace(
        shape, start=shape.start if part == "end" else start, end=shape.end if part == "start" else end
    )


def _distance(point: Point, start: Point, end: Point) -> float:
    """Return how far a point is from the line between two others."""
    along = (end[0] - start[0], end[1] - start[1])
    length = along[0] ** 2 + along[1] ** 2
    if length == 0:
        return math.dist(point, start)
    place = ((point[0] - start[0]) * along[0] + (point[1] - start[1]) * along[1]) / length
    place = min(max(place, 0.0), 1.0)
    return math.dist(point, (start[0] + place * along[0], start[1] + place * along[1]))
