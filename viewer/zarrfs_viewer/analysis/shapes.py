"""The shapes of the measuring tools: point, line, rectangle, ellipse and polygon. Pure functions."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal

from zarrfs_viewer.analysis.measure import Roi
from zarrfs_viewer.state.view_state import Viewport

__all__ = ["Part", "Point", "Shape", "ShapeKind", "contains", "grab", "moved"]

Point = tuple[float, float]
"""(row, column) in data coordinates."""

ShapeKind = Literal["point", "line", "rectangle", "ellipse", "polygon"]

HANDLE_RADIUS = 9.0
"""The distance at which a handle or a line is hit, in device pixels."""

MIN_POINTS = {"point": 1, "line": 2, "rectangle": 2, "ellipse": 2, "polygon": 3}


@dataclass(frozen=True)
class Shape:
    """A shape given by its points.

    These are the point itself, the ends of a line, opposite corners of a rectangle or of the rectangle around an
    ellipse, or the vertices of a polygon.
    """

    kind: ShapeKind
    points: tuple[Point, ...]

    @classmethod
    def between(cls, kind: ShapeKind, start: Point, end: Point) -> Shape:
        """Return a line, rectangle or ellipse between two points."""
        return cls(kind, (start, end))

    @property
    def start(self) -> Point:
        """The first point."""
        return self.points[0]

    @property
    def end(self) -> Point:
        """The last point."""
        return self.points[-1]

    @property
    def rect(self) -> tuple[float, float, float, float]:
        """The bounding rectangle (top, left, bottom, right)."""
        rows, columns = zip(*self.points, strict=True)
        return min(rows), min(columns), max(rows), max(columns)

    @property
    def is_empty(self) -> bool:
        """Whether the shape has no extent, because of a click without a drag, or has too few points."""
        if self.kind == "point":
            return False
        return len(self.points) < MIN_POINTS[self.kind] or len(set(self.points)) < 2

    @property
    def is_region(self) -> bool:
        """Whether the shape contains pixels. A line does not."""
        return self.kind != "line"

    def roi(self) -> Roi:
        """Return the region of the shape; that of a point is one pixel. Raises ValueError for a line."""
        if self.kind == "line":
            raise ValueError("a line is not a region; expected a point, rectangle, ellipse or polygon")
        if self.kind == "point":
            row, column = (float(math.floor(value + 0.5)) for value in self.start)
            return Roi("rectangle", (row, column, row, column))
        return Roi(self.kind, self.rect, self.points if self.kind == "polygon" else ())


Part = int | Literal["all"]
"""The number of a point, or the whole shape."""


def grab(shape: Shape, viewport: Viewport, x: float, y: float) -> Part | None:
    """Return the part of a shape at a device position: one of its points, the whole shape, or None."""
    for number in range(len(shape.points) - 1, -1, -1):
        if math.dist(viewport.to_device(*shape.points[number]), (x, y)) <= HANDLE_RADIUS:
            return number
    if shape.kind == "line":
        start, end = viewport.to_device(*shape.start), viewport.to_device(*shape.end)
        return "all" if _distance_to_segment((x, y), start, end) <= HANDLE_RADIUS else None
    return "all" if contains(shape, viewport.to_data(x, y)) else None


def contains(shape: Shape, point: Point) -> bool:
    """Return whether a point is in a rectangle, in the rectangle around an ellipse, or in a polygon."""
    top, left, bottom, right = shape.rect
    row, column = point
    if shape.kind in ("point", "line") or not (top <= row <= bottom and left <= column <= right):
        return False
    if shape.kind != "polygon":
        return True
    inside = False
    for (row1, column1), (row2, column2) in zip(
        shape.points, (*shape.points[1:], *shape.points[:1]), strict=True
    ):
        if (row1 > row) != (row2 > row):
            inside ^= column < column1 + (row - row1) * (column2 - column1) / (row2 - row1)
    return inside


def moved(shape: Shape, part: Part, offset: Point) -> Shape:
    """Return the shape with one part moved by an offset (rows, columns)."""
    return replace(
        shape,
        points=tuple(
            (row + offset[0], column + offset[1]) if part in ("all", number) else (row, column)
            for number, (row, column) in enumerate(shape.points)
        ),
    )


def _distance_to_segment(point: Point, start: Point, end: Point) -> float:
    direction = (end[0] - start[0], end[1] - start[1])
    squared_length = direction[0] ** 2 + direction[1] ** 2
    if squared_length == 0:
        return math.dist(point, start)
    offset = (point[0] - start[0]) * direction[0] + (point[1] - start[1]) * direction[1]
    fraction = min(max(offset / squared_length, 0.0), 1.0)
    return math.dist(point, (start[0] + fraction * direction[0], start[1] + fraction * direction[1]))
