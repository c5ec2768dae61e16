"""The cross-hair of a canvas: its position, and dragging of its lines."""

from __future__ import annotations

from PyQt6.QtCore import Qt

from zarrfs_viewer.analysis.cross_hair import CrossPart, cross_part
from zarrfs_viewer.state.view_state import Viewport

__all__ = ["CrossHair"]


class CrossHair:
    """The cross-hair at ``position`` (row, column) in data coordinates; None without a cross-hair."""

    def __init__(self) -> None:
        self.position: tuple[float, float] | None = None
        self._dragged: CrossPart | None = None

    @property
    def is_dragged(self) -> bool:
        """Whether the user drags lines of it."""
        return self._dragged is not None

    def grab(self, viewport: Viewport, x: float, y: float) -> bool:
        """Begin to drag the lines at a device position. Returns False if there are none."""
        self._dragged = None if self.position is None else cross_part(viewport, self.position, x, y)
        return self.is_dragged

    def release(self) -> bool:
        """End dragging. Returns whether lines were dragged."""
        was_dragged, self._dragged = self.is_dragged, None
        return was_dragged

    def dragged_to(self, point: tuple[float, float]) -> tuple[float | None, float | None]:
        """Return the new row and column for a pointer at (row, column); None where the position is kept."""
        row, column = point
        part = self._dragged
        return row if part in ("row", "both") else None, column if part in ("column", "both") else None

    def cursor(self, viewport: Viewport, x: float, y: float) -> Qt.CursorShape | None:
        """Return the cursor that indicates the directions in which lines at a device position can be dragged."""
        part = None if self.position is None else cross_part(viewport, self.position, x, y)
        if part is None:
            return None
        if part == "both":
            return Qt.CursorShape.SizeAllCursor
        is_horizontal = (part == "row") != (viewport.turns % 2 == 1)
        return Qt.CursorShape.SizeVerCursor if is_horizontal else Qt.CursorShape.SizeHorCursor
