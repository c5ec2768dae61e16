"""An image with its pyramid: geometry as frozen values, and reading of its tiles.

Images are created by ``images.open_image``.
"""

from __future__ import annotations

import itertools
from collections.abc import Hashable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from zarrfs.ngff import Axis, ImageLabel
from zarrfs_viewer.images.packing import Packing
from zarrfs_viewer.images.reading import SourceArray, cache_on_next_read, read_plane_region, uniform_chunks
from zarrfs_viewer.images.tile_grid import ALL, PlaneKey, TileGrid, TileKey
from zarrfs_viewer.state.view_state import ChannelSettings

__all__ = ["Image", "ImageEntry", "ImageLevel", "next_uid"]

_uids = itertools.count(1)


def next_uid() -> int:
    """Return an identifier that is unique in the process. Thread-safe."""
    return next(_uids)


@dataclass(frozen=True, eq=False)
class ImageLevel:
    """One pyramid level. The rank is at least two; see ``PaddedArray``.

    ``scale`` and ``translation`` map pixel indices to physical units: ``physical = translation + scale * index``.
    """

    path: str
    array: SourceArray
    scale: tuple[float, ...]
    translation: tuple[float, ...]

    # The geometry of an image does not change while it is displayed. An array reads its metadata again after some time.

    @cached_property
    def shape(self) -> tuple[int, ...]:
        return self.array.shape

    @cached_property
    def chunks(self) -> tuple[int, ...]:
        """The shape of the smallest unit of decoding: the inner chunk if the array is sharded."""
        return uniform_chunks(self.array)


@dataclass(frozen=True)
class ImageEntry:
    """An image that can be opened. ``path`` is the argument for ``Dataset.open_image``. ``size`` is the number of
    elements, 0 if it is not known: the largest image is opened first.
    """

    name: str
    path: str
    kind: Literal["image", "labels"] = "image"
    size: int = 0


@dataclass(frozen=True, eq=False)
class Image:
    """An image with its pyramid. Level 0 is the finest.

    ``uid`` is unique in the process. ``channel_axis`` is None if the image has no channel axis. ``rgb_axis`` is
    set if the samples along an axis are drawn as RGB(A). ``channels`` are the initial settings; ``limits`` is
    None where auto-contrast sets them. ``labels`` lists the label images. ``notes`` describes problems of the
    metadata that were corrected. ``packing`` is set if the values are stored in packed form; all values are
    unpacked. ``value_unit`` is the unit of the values, or None. ``is_placed`` means that the positions are those of a
    coordinate system that was chosen, so that pixels of two such images are never matched by their indices.
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
    packing: Packing | None = None
    value_unit: str | None = None
    is_placed: bool = False

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of level 0."""
        return self.levels[0].shape

    @cached_property
    def dtype(self) -> np.dtype[Any]:
        """Data type of the values of level 0."""
        return self.levels[0].array.dtype

    @cached_property
    def pixel_nbytes(self) -> int:
        """The size of a pixel in memory, with all samples of an RGB image."""
        return self.dtype.itemsize * (1 if self.rgb_axis is None else self.shape[self.rgb_axis])

    @property
    def slider_axes(self) -> tuple[int, ...]:
        """The axes that can be displayed or have a slider: all except the channel axis and the RGB axis."""
        return tuple(axis for axis in range(len(self.axes)) if axis not in (self.channel_axis, self.rgb_axis))

    def to_physical(self, axis: int, value: float) -> float:
        """Return the physical coordinate of a data coordinate, in ``axes[axis].unit``."""
        finest = self.levels[0]
        return finest.translation[axis] + finest.scale[axis] * value

    def from_physical(self, axis: int, value: float) -> float:
        """Return the data coordinate of a physical coordinate."""
        finest = self.levels[0]
        return (value - finest.translation[axis]) / finest.scale[axis]

    def to_level(self, level: int, axis: int, value: float) -> float:
        """Return the fractional pixel index of a data coordinate in a level. It is not clipped."""
        if level == 0:
            return value
        coarse = self.levels[level]
        return (self.to_physical(axis, value) - coarse.translation[axis]) / coarse.scale[axis]

    def from_level(self, level: int, axis: int, value: float) -> float:
        """Return the data coordinate of a fractional pixel index of a level."""
        if level == 0:
            return value
        coarse = self.levels[level]
        return self.from_physical(axis, coarse.translation[axis] + coarse.scale[axis] * value)

    def level_index(self, level: int, axis: int, value: float) -> int:
        """Return the pixel index of a level that is nearest to a data coordinate, clipped to the level."""
        # 1e-9 makes coordinates half way between two pixels round up in spite of rounding errors.
        nearest = int(np.floor(self.to_level(level, axis, value) + 0.5 + 1e-9))
        return min(max(nearest, 0), self.levels[level].shape[axis] - 1)

    def downsampling(self, level: int, axis: int) -> float:
        """Return the number of data pixels that one pixel of a level covers along an axis."""
        return abs(self.levels[level].scale[axis] / self.levels[0].scale[axis])

    def grid(self, level: int, displayed: tuple[int, int], steps: tuple[int, int] = (1, 1)) -> TileGrid:
        """Return the tile grid of the planes of a level, or of every ``steps``-th pixel of them."""
        row, column = displayed
        shape, chunks = self.levels[level].shape, self.levels[level].chunks
        return TileGrid.for_plane(
            (shape[row], shape[column]), (chunks[row], chunks[column]), steps, self.pixel_nbytes
        )

    def rect(self, key: TileKey) -> tuple[slice, slice]:
        """Return the rows and columns of its plane that a tile covers."""
        plane = key.plane
        return self.grid(plane.level, plane.displayed, plane.steps).rect(key.row, key.column)

    def read_tile(self, key: TileKey) -> npt.NDArray[Any]:
        """Read one tile. Blocks. Raises ZarrError.

        The result has shape (rows, columns), or (rows, columns, samples) for RGB. It has native byte order, is
        C-contiguous and belongs to the caller.
        """
        return self.read_region(key.plane, *self.rect(key))

    def read_region(self, plane: PlaneKey, rows: slice, columns: slice) -> npt.NDArray[Any]:
        """Read a region of a plane, given in pixels of the plane, as a new array of shape (rows, columns), or
        (rows, columns, samples) for RGB. Blocks. Raises ZarrError.
        """
        return read_plane_region(self.levels[plane.level].array, plane, rows, columns)

    def cache_on_next_read(self, key: TileKey) -> None:
        """Let the next read of a tile cache the chunks of the tile, because other planes of them follow."""
        cache_on_next_read(self.levels[key.plane.level].array, key.plane, *self.rect(key))

    def chunks_of(self, key: TileKey) -> Hashable:
        """Return a value that is equal for two tiles if they need the same chunks."""
        plane = key.plane
        if plane.slab is not None:
            return key
        pairs = zip(plane.indices, self.levels[plane.level].chunks, strict=True)
        coords = tuple(index if index == ALL else index // length for index, length in pairs)
        return plane._replace(indices=coords), key.row, key.column
