"""The shapes of the measuring tools: a line, a rectangle or an ellipse. Pure functions."""

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

HANDLE_RADIUS = 9.0
"""The distance at which a handle or a line is hit, in device pixels."""


@dataclass(frozen=True)
class Shape:
    """A shape between two points: the ends of the line, or opposite corners of the rectangle around the shape."""

    kind: ShapeKind
    start: Point
    end: Point

    @property
    def rect(self) -> tuple[float, float, float, float]:
        """The bounding rectangle (top, left, bottom, right)."""
        rows, columns = sorted((self.start[0], self.end[0])), sorted((self.start[1], self.end[1]))
        return rows[0], columns[0], rows[1], columns[1]

    @property
    def empty(self) -> bool:
        """Whether the shape has no extent, because of a click without a drag."""
        return self.start == self.end

    def roi(self) -> Roi:
        """Return the region of a rectangle or an ellipse. Raises ValueError for a line."""
        if self.kind == "line":
            raise ValueError("a line is not a region; expected a rectangle or an ellipse")
        return Roi(self.kind, self.rect)


Part = Literal["start", "end", "all"]


def grab(shape: Shape, viewport: Viewport, x: float, y: float) -> Part | None:
    """Return the part of a shape at a device position: one of its points, the whole shape, or None."""
    for part, point in (("end", shape.end), ("start", shape.start)):
        if math.dist(viewport.to_device(*point), (x, y)) <= HANDLE_RADIUS:
            return "end" if part == "end" else "start"
    start, end = viewport.to_device(*shape.start), viewport.to_device(*shape.end)
    if shape.kind == "line":
        return "all" if _distance_to_segment((x, y), start, end) <= HANDLE_RADIUS else None
    inside = min(start[0], end[0]) <= x <= max(start[0], end[0])
    return "all" if inside and min(start[1], end[1]) <= y <= max(start[1], end[1]) else None


def moved(shape: Shape, part: Part, offset: Point) -> Shape:
    """Return the shape with one part moved by an offset (rows, columns)."""
    start, end = ((point[0] + offset[0], point[1] + offset[1]) for point in (shape.start, shape.end))
    return replace(
        shape, start=shape.start if part == "end" else start, end=shape.end if part == "start" else end
    )


def _distance_to_segment(point: Point, start: Point, end: Point) -> float:
    direction = (end[0] - start[0], end[1] - start[1])
    squared_length = direction[0] ** 2 + direction[1] ** 2
    if squared_length == 0:
        return math.dist(point, start)
    offset = (point[0] - start[0]) * direction[0] + (point[1] - start[1]) * direction[1]
    fraction = min(max(offset / squared_length, 0.0), 1.0)
    return math.dist(point, (start[0] + fraction * direction[0], start[1] + fraction * direction[1]))
