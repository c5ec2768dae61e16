"""Two images displayed together: the viewports and rectangles of one in the data coordinates of the other.

Pure functions. The images are registered as label images are: axes by name, positions by physical coordinates.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from zarrfs_viewer.display.overlay import level_map, translate_settings
from zarrfs_viewer.images.image import Image
from zarrfs_viewer.state.view_state import DisplaySettings, Viewport

__all__ = ["Pairing", "pair"]

Rect = tuple[float, float, float, float]


@dataclass(frozen=True)
class Pairing:
    """The mapping of the displayed plane of an image to that of a second one.

    ``rows`` and ``columns`` are (factor, offset): ``second = factor * first + offset`` in data coordinates.
    ``settings`` has the axes and the position of the first settings, in those of the second image.
    """

    settings: DisplaySettings
    rows: tuple[float, float]
    columns: tuple[float, float]

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
    return Pairing(translated, rows, columns)
