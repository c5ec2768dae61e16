"""The tools that draw and change shapes on a canvas: the reaction to presses, drags and clicks.

No widgets; the canvas forwards its events and draws the shape.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Literal

from zarrfs_viewer.analysis.shapes import HANDLE_RADIUS, Part, Point, Shape, grab, moved
from zarrfs_viewer.state.view_state import Viewport

__all__ = ["ShapeTools", "Tool"]

Tool = Literal["move", "point", "line", "rectangle", "ellipse", "polygon"]
"""The effect of dragging with the left button: move the image, or draw a shape. A polygon is drawn with clicks."""

MIN_VERTICES = 3


class ShapeTools:
    """The shape of a canvas, and the part of it that the user drags.

    Attributes:
        tool: the selected tool.
        shape: the shape, or None.
        is_drawing: whether a polygon is drawn. Its last vertex follows the pointer until it is finished.
    """

    def __init__(self) -> None:
        self.tool: Tool = "move"
        self.shape: Shape | None = None
        self.is_drawing = False
        self._part: Part | None = None

    def press(self, viewport: Viewport, x: float, y: float) -> Literal["none", "changed", "new", "finished"]:
        """React to a press of the left button at a device position.

        Returns ``none`` if it concerns the image; ``new`` if another shape begins; ``finished`` if a polygon ends.
        """
        point = viewport.to_data(x, y)
        if self.is_drawing and self.shape is not None:
            vertices = self.shape.points[:-1]
            if len(vertices) >= MIN_VERTICES and self._is_near(viewport, vertices[0], x, y):
                self.finish()
                return "finished"
            self.shape = replace(self.shape, points=(*vertices, point, point))
            return "changed"
        # A tool of another kind begins a shape, also inside of the present one.
        if self.shape is not None and self.tool in ("move", self.shape.kind):
            self._part = grab(self.shape, viewport, x, y)
        if self._part is not None:
            return "changed"
        if self.tool == "move":
            return "none"
        if self.tool == "polygon":
            self.shape = Shape("polygon", (point, point))
            self.is_drawing = True
        elif self.tool == "point":
            self.shape = Shape("point", (point,))
            self._part = 0
        else:
            self.shape = Shape.between(self.tool, point, point)
            self._part = 1
        return "new"

    def move(self, old: Point, new: Point) -> bool:
        """React to a movement of the pointer between two positions in data coordinates. Returns whether it is used."""
        if self.shape is None:
            return False
        if self.is_drawing:
            self.shape = replace(self.shape, points=(*self.shape.points[:-1], new))
            return True
        if self._part is None:
            return False
        self.shape = moved(self.shape, self._part, (new[0] - old[0], new[1] - old[1]))
        return True

    def release(self) -> bool:
        """React to the release of the button. Returns whether a part of the shape was dragged."""
        was_dragging, self._part = self._part is not None, None
        if was_dragging and self.shape is not None and self.shape.is_empty:
            self.shape = None
        return was_dragging

    def finish(self) -> bool:
        """Finish the polygon without the vertex that follows the pointer. Returns False if none is drawn."""
        if not self.is_drawing or self.shape is None:
            return False
        self.is_drawing = False
        vertices = tuple(dict.fromkeys(self.shape.points[:-1]))
        self.shape = replace(self.shape, points=vertices) if len(vertices) >= MIN_VERTICES else None
        return True

    def show(self, shape: Shape | None) -> None:
        """Replace the shape."""
        self.shape, self.is_drawing, self._part = shape, False, None

    @staticmethod
    def _is_near(viewport: Viewport, point: Point, x: float, y: float) -> bool:
        return math.dist(viewport.to_device(*point), (x, y)) <= HANDLE_RADIUS
