"""One picture with its pyramid: frozen geometry, and the reading of its tiles.

Made by ``dataset`` from a node, or by ``image_from_array`` from anything array-like.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from zarrfs.ngff import Axis, ImageLabel
from zarrfs_viewer.images.reading import SourceArray, read_plane_region, uniform_chunks
from zarrfs_viewer.images.tile_grid import PlaneKey, TileGrid, TileKey
from zarrfs_viewer.state.view_state import ChannelSettings

__all__ = ["Image", "ImageEntry", "ImageLevel", "next_uid"]

_uids = itertools.count(1)


def next_uid() -> int:
    """Return a number that no other image of this process has."""
    return next(_uids)


@dataclass(frozen=True, eq=False)
class ImageLevel:
    """One pyramid level. ``scale`` and ``translation`` lead from its pixel indices to physical units:
    ``physical = translation + scale * index``. Rank is at least two (smaller arrays are lifted).
    """

    path: str
    array: SourceArray
    scale: tuple[float, ...]
    translation: tuple[float, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        return self.array.shape

    @property
    def chunks(self) -> tuple[int, ...]:
        """Shape of what is decoded as one: the inner chunk where the array is sharded."""
        return uniform_chunks(self.array)


@dataclass(frozen=True)
class ImageEntry:
    """An image that can be opened: ``path`` within the dataset, for ``Dataset.open_image``."""

    name: str
    path: str
    kind: Literal["image", "labels"] = "image"


@dataclass(frozen=True, eq=False)
class Image:
    """One thing that can be shown as a picture, with its pyramid (level 0 is the finest).

    ``uid`` is unique in the process. ``channel_axis`` is None where there is none; ``rgb_axis`` is set where
    the samples of one pixel lie along an axis and are shown as RGB(A). ``channels`` are the settings to begin
    with (``limits`` None: auto-contrast is to choose). ``labels`` name its label images. ``notes`` say what
    was odd.
    """

    uid: int
    name: str
    path: str
    kind: Literal["image", "labels"]
    axes: tuple[Axis, ...]
    levels: tuple[ImageLevel, ...]
    channels: tuple[ChannelSettings, ...]
    channel_axis: int | None = None
    rgb_axis: int | None = None
    default_position: tuple[float, ...] = ()
    default_displayed: tuple[int, int] = (0, 1)
    labels: tuple[ImageEntry, ...] = ()
    image_label: ImageLabel | None = None
    notes: tuple[str, ...] = ()

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of level 0."""
        return self.levels[0].shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """Data type of level 0 as stored."""
        return self.levels[0].array.dtype

    @property
    def slider_axes(self) -> tuple[int, ...]:
        """Axes that can carry a slider or be displayed: all but those of channels and RGB samples."""
        return tuple(axis for axis in range(len(self.axes)) if axis not in (self.channel_axis, self.rgb_axis))

    def to_physical(self, axis: int, value: float) -> float:
        """Return the physical coordinate of a data coordinate (in ``axes[axis].unit``)."""
        finest = self.levels[0]
        return finest.translation[axis] + finest.scale[axis] * value

    def from_physical(self, axis: int, value: float) -> float:
        """Return the data coordinate of a physical coordinate."""
        finest = self.levels[0]
        return (value - finest.translation[axis]) / finest.scale[axis]

    def to_level(self, level: int, axis: int, value: float) -> float:
        """Return where a data coordinate lies among the pixels of a level (not rounded, not clipped)."""
        if level == 0:
            return value
        coarse = self.levels[level]
        return (self.to_physical(axis, value) - coarse.translation[axis]) / coarse.scale[axis]

    def from_level(self, level: int, axis: int, value: float) -> float:
        """Return the data coordinate of a (fractional) pixel index of a level."""
        if level == 0:
            return value
        coarse = self.levels[level]
        return self.from_physical(axis, coarse.translation[axis] + coarse.scale[axis] * value)

    def level_index(self, level: int, axis: int, value: float) -> int:
        """Return the pixel of a level that is nearest to a data coordinate, clipped to what there is."""
        # A hair is added so that 0.5 and 2.4999999 of the same scale, both "half way", round the same way.
        nearest = int(np.floor(self.to_level(level, axis, value) + 0.5 + 1e-9))
        return min(max(nearest, 0), self.levels[level].shape[axis] - 1)

    def downsampling(self, level: int, axis: int) -> float:
        """Return how many data pixels one pixel of a level covers along an axis."""
        return abs(self.levels[level].scale[axis] / self.levels[0].scale[axis])

    def grid(self, level: int, displayed: tuple[int, int]) -> TileGrid:
        """Return how planes of that level are cut into tiles."""
        row, column = displayed
        found = self.levels[level]
        return TileGrid.for_plane(
            (found.shape[row], found.shape[column]), (found.chunks[row], found.chunks[column])
        )

    def read_tile(self, key: TileKey) -> npt.NDArray[Any]:
        """Read one tile: (rows, columns), or (rows, columns, samples) for RGB; native byte order,
        C-contiguous, owned by the caller. Blocks. Raises ZarrError.
        """
        rows, columns = self.grid(key.plane.level, key.plane.displayed).rect(key.row, key.column)
        return self.read_region(key.plane, rows, columns)

    def read_plane(self, plane: PlaneKey) -> npt.NDArray[Any]:
        """Read a whole plane, laid out as in ``read_tile``. Blocks."""
        rows, columns = self.grid(plane.level, plane.displayed).shape
        return self.read_region(plane, slice(0, rows), slice(0, columns))

    def read_region(self, plane: PlaneKey, rows: slice, columns: slice) -> npt.NDArray[Any]:
        """Read a part of a plane, in pixels of its level, laid out as in ``read_tile``. Blocks."""
        return read_plane_region(self.levels[plane.level].array, plane, rows, columns)
