"""The values of level 0 around a point, at any zoom."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from zarrfs_viewer.display.resolve import plane_key
from zarrfs_viewer.images.image import Image
from zarrfs_viewer.images.packing import Packing
from zarrfs_viewer.images.reading import read_plane_region
from zarrfs_viewer.images.values import time_value, to_display
from zarrfs_viewer.state.view_state import DisplaySettings

__all__ = ["Neighbourhood", "read_neighbourhood"]


@dataclass(frozen=True, eq=False)
class Neighbourhood:
    """Values of one channel: rows and columns of the displayed plane, with the indices of the first ones.

    ``center`` is the index (row, column) of the pixel at the point. ``values`` has a third axis for RGB samples.
    ``dtype`` is the stored data type: ``values`` of times are counts of its unit.
    """

    name: str
    first: tuple[int, int]
    center: tuple[int, int]
    values: npt.NDArray[Any]
    dtype: np.dtype[Any]
    packing: Packing | None = None

    def value(self, row: int, column: int) -> Any:
        """Return a value as an object of Python, a tuple of RGB samples, or a time of NumPy."""
        value = self.values[row, column]
        if self.dtype.kind in "mM":
            return time_value(value.item(), self.dtype)
        if value.ndim:
            return tuple(value.tolist())
        return value.item() if self.packing is None else self.packing.exact(value.item())


def read_neighbourhood(
    image: Image, settings: DisplaySettings, row: float, column: float, size: tuple[int, int]
) -> Neighbourhood | None:
    """Read at most ``size`` (rows, columns) values of the first visible channel around a point in data coordinates.

    Returns None outside of the image. Reads the chunks that contain the pixels, usually from the cache. Blocks.
    """
    center = round(row), round(column)
    lengths = image.shape[settings.displayed[0]], image.shape[settings.displayed[1]]
    if not all(0 <= index < length for index, length in zip(center, lengths, strict=True)):
        return None
    spans = []
    for index, length, count in zip(center, lengths, size, strict=True):
        first = max(0, min(index - count // 2, length - count))
        spans.append(slice(first, min(first + count, length)))
    visible = [channel for channel in settings.channels if channel.visible]
    channel = visible[0] if visible else None
    plane = plane_key(image, 0, settings, channel.index if channel is not None else 0)
    values = read_plane_region(image.levels[0].array, plane, spans[0], spans[1])
    dtype = image.dtype
    if channel is not None and channel.field is not None:
        values, dtype = to_display(values[channel.field]), dtype[channel.field]
    packing = image.packing if plane.slab is None else None
    name = channel.label if channel is not None else image.name
    return Neighbourhood(name, (spans[0].start, spans[1].start), center, values, dtype, packing)
