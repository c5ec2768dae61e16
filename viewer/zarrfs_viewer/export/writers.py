"""Writing the values of a region to files: TIFF, npy or OME-Zarr. Pictures are in ``picture``. Blocks: use a
worker.

Values are written piece by piece, so that memory does not bound the size of a region, and appear under their
name only when complete.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise, product
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import zarrfs
from zarrfs.errors import NodeExistsError, UnsupportedError
from zarrfs_viewer.export.metadata import OME_DTYPES, ngff_document, physical_sizes, tiff_axes
from zarrfs_viewer.export.replacing import replacing
from zarrfs_viewer.images.image import Image
from zarrfs_viewer.images.values import to_display
from zarrfs_viewer.state.view_state import ChannelSettings, ViewIntent

__all__ = [
    "Cancelled",
    "ExportRegion",
    "export_npy",
    "export_ome_zarr",
    "export_tiff",
    "read_region",
]

Progress = Callable[[float], bool]
"""Told how much is done, 0 to 1; returns False to stop."""

PIECE_BYTES = 32 << 20
"""About so much is read at a time."""


class Cancelled(Exception):
    """The progress callback asked to stop. Nothing is left of the file."""


@dataclass(frozen=True)
class ExportRegion:
    """What to export: pixel ranges of one level, one slice per axis of the image (start, stop given, step
    1).
    """

    image: Image
    level: int
    slices: tuple[slice, ...]

    @classmethod
    def visible(
        cls, image: Image, intent: ViewIntent, rect: tuple[float, float, float, float], level: int
    ) -> ExportRegion:
        """Return the region of a rectangle (top, left, bottom, right in data coordinates) at the displayed
        slice, all channels. Raises UnsupportedError where the rectangle holds no pixel.
        """
        slices = []
        for axis, length in enumerate(image.levels[level].shape):
            if axis in intent.displayed:
                side = intent.displayed.index(axis)
                ends = sorted(image.to_level(level, axis, rect[side + offset]) for offset in (0, 2))
                start, stop = (int(np.floor(end + 0.5)) for end in ends)
                # A rectangle that ends on a pixel's border does not hold that pixel.
                stop += 1 if ends[1] + 0.5 > stop else 0
                slices.append(slice(max(0, start), min(length, stop)))
            elif axis in (image.channel_axis, image.rgb_axis):
                slices.append(slice(0, length))
            else:
                index = image.level_index(level, axis, intent.position[axis])
                slices.append(slice(index, index + 1))
        if any(part.stop <= part.start for part in slices):
            raise UnsupportedError(f"nothing to export: the rectangle {rect} lies outside of {image.name!r}")
        return cls(image, level, tuple(slices))

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of what is exported: all axes are kept."""
        return tuple(part.stop - part.start for part in self.slices)

    @property
    def scale(self) -> tuple[float, ...]:
        """The physical size of a pixel along each axis."""
        return self.image.levels[self.level].scale

    @property
    def translation(self) -> tuple[float, ...]:
        """The physical position of the first pixel's centre along each axis."""
        level = self.image.levels[self.level]
        return tuple(
            origin + size * part.start
            for origin, size, part in zip(level.translation, level.scale, self.slices, strict=True)
        )


def read_region(region: ExportRegion) -> npt.NDArray[Any]:
    """Read the values, all axes kept. Raises ZarrError."""
    return np.asarray(region.image.levels[region.level].array[region.slices])


def _pieces(
    region: ExportRegion, progress: Progress | None
) -> Iterator[tuple[tuple[slice, ...], npt.NDArray[Any]]]:
    """Yield (where in the region, values), cut along chunks, in C order."""
    level = region.image.levels[region.level]
    itemsize = max(1, level.array.dtype.itemsize)
    steps = list(level.chunks)
    for axis in reversed(range(len(steps))):  # longer along the last axes first
        others = prod(min(s, n) for s, n in zip(steps, region.shape, strict=True)) // min(
            steps[axis], region.shape[axis]
        )
        fit = max(1, PIECE_BYTES // max(1, others * itemsize * steps[axis]))
        steps[axis] *= fit
    borders = [
        [part.start, *range((part.start // step + 1) * step, part.stop, step), part.stop]
        for part, step in zip(region.slices, steps, strict=True)
    ]
    spans = [list(pairwise(border)) for border in borders]
    total = prod(len(span) for span in spans)
    for number, box in enumerate(product(*spans)):
        if progress is not None and not progress(number / total):
            raise Cancelled
        values = np.asarray(level.array[tuple(slice(start, stop) for start, stop in box)])
        where = tuple(
            slice(start - part.start, stop - part.start)
            for (start, stop), part in zip(box, region.slices, strict=True)
        )
        yield where, values
    if progress is not None:
        progress(1.0)


def export_npy(region: ExportRegion, file: Path, progress: Progress | None = None) -> None:
    """Write the values as .npy. Raises ZarrError, or Cancelled."""
    dtype = region.image.levels[region.level].array.dtype
    with replacing(file) as temporary:
        target = np.lib.format.open_memmap(temporary, "w+", dtype, region.shape)
        for where, values in _pieces(region, progress):
            target[where] = values
        target.flush()
        del target


def export_tiff(region: ExportRegion, file: Path, progress: Progress | None = None) -> None:
    """Write the values as OME-TIFF with physical sizes where the axes fit (some of t, c, z, then y, x,
    perhaps RGB samples), else as a TIFF that tells its shape and axes. Needs ``tifffile``. bool becomes 0 and
    255.

    Raises UnsupportedError without it, or for data that TIFF does not have; ZarrError; Cancelled.
    """
    try:
        import tifffile
    except ImportError as error:
        raise UnsupportedError("writing TIFF needs the package tifffile: pip install tifffile") from error
    source = region.image.levels[region.level].array.dtype
    if source.names is not None:
        raise UnsupportedError(f"TIFF has no structured data types like {source}; export as npy or OME-Zarr")
    dtype = np.dtype(np.uint8) if source.kind == "b" else to_display(np.empty(0, source)).dtype
    axes = tiff_axes(region.image)
    ome = axes is not None and dtype.name in OME_DTYPES
    metadata: dict[str, Any] = {"axes": axes if axes is not None else "Q" * len(region.shape)}
    if ome:
        metadata |= physical_sizes(region.image, region.scale) | {"Name": region.image.name}
    with replacing(file) as temporary:
        target = tifffile.memmap(
            temporary,
            shape=region.shape,
            dtype=dtype,
            bigtiff=prod(region.shape) * dtype.itemsize > 1 << 31,
            ome=ome,
            photometric="rgb" if region.image.rgb_axis is not None and axes is not None else "minisblack",
            metadata=metadata,
        )
        for where, values in _pieces(region, progress):
            shown = to_display(values)
            target[where] = shown.astype(np.uint8) * 255 if source.kind == "b" else shown
        target.flush()
        del target


def export_ome_zarr(
    region: ExportRegion,
    directory: Path,
    progress: Progress | None = None,
    channels: Sequence[ChannelSettings] = (),
) -> None:
    """Write the values as an OME-Zarr 0.5 image of one level; axes, units, scale, translation and channels
    are kept.

    Raises NodeExistsError where there is something already; ZarrError; Cancelled.
    """
    image = region.image
    source = image.levels[region.level]
    if directory.exists():
        raise NodeExistsError(f"{directory} is there already: choose another name, or delete it first")
    attributes = {"ome": ngff_document(image, region.scale, region.translation, channels)}
    try:
        zarrfs.create_group(str(directory), attributes=attributes)
        target = zarrfs.create_array(
            str(directory),
            "0",
            shape=region.shape,
            dtype=source.array.dtype,
            chunks=tuple(min(c, n) for c, n in zip(source.chunks, region.shape, strict=True)),
            dimension_names=[axis.name or None for axis in image.axes],
        )
        for where, values in _pieces(region, progress):
            target[where] = values
    except BaseException:
        shutil.rmtree(directory, ignore_errors=True)
        raise
