"""Two images displayed together: the viewports and rectangles of one in the data coordinates of the other.

Pure functions. The images are registered as label images are: axes by name, positions by physical coordinates.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from zarrfs_viewer.display.overlay import level_map, translate_settings
from zarrfs_viewer.images.image import Image
from zarrfs_viewer.state.view_state import DisplaySettings, Viewport

__all__ = ["Pairing", "Rect", "intersect", "pair"]

Rect = tuple[float, float, float, float]


@dataclass(frozen=True)
class Pairing:
    """The mapping of the displayed plane of an image to that of a second one.

    ``rows`` and ``columns`` are (factor, offset): ``second = factor * first + offset`` in data coordinates.
    ``settings`` has the axes and the position of the first settings, in those of the second image. ``shape`` are the
    lengths of its displayed axes. ``is_at_position`` is unset if the position is outside of the second image, and both
    are in the same coordinate system.
    """

    settings: DisplaySettings
    rows: tuple[float, float]
    columns: tuple[float, float]
    shape: tuple[int, int]
    is_at_position: bool = True

    @property
    def rect(self) -> Rect:
        """The rectangle (top, left, bottom, right) of the second image in data coordinates of the first one."""
        rows, columns = self.shape
        return self.rect_to_first((-0.5, -0.5, rows - 0.5, columns - 0.5))

    def is_displayed(self, viewport: Viewport) -> bool:
        """Return whether a part of the second image is visible in a viewport of the first one."""
        return self.is_at_position and intersect(self.rect, viewport.rect)

    def to_second(self, viewport: Viewport) -> Viewport:
        """Return the viewport of the second image that shows the same region."""
        (row_factor, row_offset), (column_factor, column_offset) = self.rows, self.columns
        row, column = viewport.center
        return replace(
            viewport,
            center=(row_factor * row + row_offset, column_factor * column + column_offset),
            zoom=viewport.zoom / abs(column_factor),
            aspect=viewport.aspect * abs(column_factor / row_factor),
            **self._flipped(viewport),
        )

    def to_first(self, viewport: Viewport) -> Viewport:
        """Return the viewport of the first image that shows the same region."""
        (row_factor, row_offset), (column_factor, column_offset) = self.rows, self.columns
        row, column = viewport.center
        return replace(
            viewport,
            center=((row - row_offset) / row_factor, (column - column_offset) / column_factor),
            zoom=viewport.zoom * abs(column_factor),
            aspect=viewport.aspect * abs(row_factor / column_factor),
            **self._flipped(viewport),
        )

    def point_to_second(self, row: float, column: float) -> tuple[float, float]:
        """Return a point of the first image in data coordinates of the second one."""
        return self.rows[0] * row + self.rows[1], self.columns[0] * column + self.columns[1]

    def _flipped(self, viewport: Viewport) -> dict[str, Any]:
        """Return the orientation of a viewport in the other image, whose axes may have the opposite direction."""
        by_rows, by_columns = self.mirrored
        # Reversed rows are a picture that is mirrored from left to right and rotated by two quarter turns.
        turns = (viewport.turns + (2 if by_rows else 0)) % 4
        return {"turns": turns, "mirrored": viewport.mirrored ^ by_rows ^ by_columns}

    def rect_to_first(self, rect: Rect) -> Rect:
        """Return a rectangle (top, left, bottom, right) of the second image in coordinates of the first."""
        top, left, bottom, right = rect
        rows = sorted((value - self.rows[1]) / self.rows[0] for value in (top, bottom))
        columns = sorted((value - self.columns[1]) / self.columns[0] for value in (left, right))
        return rows[0], columns[0], rows[1], columns[1]

    @property
    def mirrored(self) -> tuple[bool, bool]:
        """Whether the second image is mirrored along (rows, columns)."""
        return self.rows[0] < 0, self.columns[0] < 0


def pair(first: Image, settings: DisplaySettings, second: Image) -> Pairing | None:
    """Return the mapping for the displayed axes and position of settings, or None if an axis is missing."""
    translated = translate_settings(settings, first, second)
    if translated is None:
        return None
    rows, columns = (
        level_map(first, second, 0, front_axis, axis)
        for front_axis, axis in zip(settings.displayed, translated.displayed, strict=True)
    )
    row_axis, column_axis = translated.displayed
    shape = second.shape[row_axis], second.shape[column_axis]
    return Pairing(translated, rows, columns, shape, _is_at_position(first, second, translated))


def intersect(one: Rect, other: Rect) -> bool:
    """Return whether two rectangles (top, left, bottom, right) have a common area."""
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


def _is_at_position(first: Image, second: Image, settings: DisplaySettings) -> bool:
    """Return whether the position is within the second image. Otherwise its slice would be far from the displayed one.

    Images that are not in the same coordinate system show their nearest slice.
    """
    if not (first.is_placed and second.is_placed):
        return True
    for axis in second.slider_axes:
        if axis in settings.displayed:
            continue
        half = 0.0
        if settings.projection is not None and settings.projection.axis == axis:
            half = (settings.projection.thickness - 1) / 2
        position = settings.position[axis]
        if position + half < -0.5 - 1e-9 or position - half >= second.shape[axis] - 0.5 - 1e-9:
            return False
    return True
