"""The lines of the cross-hair at a position. Pure functions."""

from __future__ import annotations

from typing import Literal

from zarrfs_viewer.state.view_state import Viewport

__all__ = ["CrossPart", "cross_part"]

CrossPart = Literal["row", "column", "both"]
"""The line along a row, the line along a column, or their intersection."""

MAX_DISTANCE = 6.0
"""The distance at which a line is hit, in device pixels."""


def cross_part(viewport: Viewport, cross: tuple[float, float], x: float, y: float) -> CrossPart | None:
    """Return the lines of a cross-hair at (row, column) that are near to a device position, or None."""
    center_x, center_y = viewport.to_device(*cross)
    near_vertical, near_horizontal = abs(x - center_x) <= MAX_DISTANCE, abs(y - center_y) <= MAX_DISTANCE
    if viewport.turns % 2:
        near_row, near_column = near_vertical, near_horizontal
    else:
        near_row, near_column = near_horizontal, near_vertical
    if near_row and near_column:
        return "both"
    return "row" if near_row else "column" if near_column else None
