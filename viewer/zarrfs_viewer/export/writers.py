"""Export of the values of a region as TIFF, npy or OME-Zarr. Pictures are in ``export.picture``.

The functions block; call them from a worker thread. Values are written block by block, so that a region can be
larger than the memory. TIFF and npy files replace an existing file when they are complete.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise, product
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import zarrfs
from zarrfs.errors import NodeExistsError, UnsupportedError
from zarrfs.ngff.orientation import directions_attribute
from zarrfs.plugins import install_hint
from zarrfs.text import safe_text
from zarrfs_viewer.display.resolve import plane_key
from zarrfs_viewer.export.metadata import (
    OME_DTYPES,
    ngff_document,
    physical_sizes,
    plane_positions,
    tiff_axes,
    tiff_channels,
)
from zarrfs_viewer.export.replacing import replacing
from zarrfs_viewer.images.image import Image
from zarrfs_viewer.images.reading import projected_dtype, read_projection
from zarrfs_viewer.images.tile_grid import Slab
from zarrfs_viewer.images.values import to_display
from zarrfs_viewer.state.view_state import ChannelSettings, DisplaySettings

__all__ = [
    "Cancelled",
    "ExportRegion",
    "export_npy",
    "export_ome_zarr",
    "export_tiff",
    "read_region",
]

Progress = Callable[[float], bool]
"""Called with the completed fraction, 0 to 1. Returns False to cancel."""

BLOCK_NBYTES = 32 << 20
"""The approximate size of the blocks that are read."""


class Cancelled(Exception):
    """The progress callback cancelled the export. The incomplete file has been deleted."""


@dataclass(frozen=True)
class ExportRegion:
    """The region to export: pixels of one level, as one slice with ``start`` and ``stop`` per axis.

    With ``slab`` the exported array is the projection of the slab, and has length 1 along its axis.
    """

    image: Image
    level: int
    slices: tuple[slice, ...]
    slab: Slab | None = None

    @classmethod
    def visible(
        cls,
        image: Image,
        settings: DisplaySettings,
        rect: tuple[float, float, float, float],
        level: int,
        ranges: Mapping[int, tuple[float, float]] | None = None,
    ) -> ExportRegion:
        """Return the region of a rectangle (top, left, bottom, right in data coordinates) in the displayed slice or
        projection, with all channels. Raises UnsupportedError if the rectangle contains no pixel.

        ``ranges`` has the first and the last position along axes that are not displayed, in data coordinates. Then
        slices are exported without projection.
        """
        slab = None if ranges else plane_key(image, level, settings).slab
        slices = []
        for axis, length in enumerate(image.levels[level].shape):
            if axis in settings.displayed:
                side = settings.displayed.index(axis)
                ends = sorted(image.to_level(level, axis, rect[side + offset]) for offset in (0, 2))
                start, stop = (int(np.floor(end + 0.5)) for end in ends)
                # A pixel is not included if the rectangle ends exactly at the pixel's border.
                stop += 1 if ends[1] + 0.5 > stop else 0
                slices.append(slice(max(0, start), min(length, stop)))
            elif axis in (image.channel_axis, image.rgb_axis):
                slices.append(slice(0, length))
            elif ranges is not None and axis in ranges:
                first, last = (image.level_index(level, axis, value) for value in sorted(ranges[axis]))
                slices.append(slice(first, last + 1))
            elif slab is not None and axis == slab.axis:
                slices.append(slice(slab.start, slab.stop))
            else:
                index = image.level_index(level, axis, settings.position[axis])
                slices.append(slice(index, index + 1))
        if any(span.stop <= span.start for span in slices):
            raise UnsupportedError(f"nothing to export: the rectangle {rect} is outside of {image.name!r}")
        return cls(image, level, tuple(slices), slab)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the exported array, which has all axes of the image."""
        return tuple(
            (span.stop - span.start) // depth for span, depth in zip(self.slices, self._depths, strict=True)
        )

    @property
    def dtype(self) -> np.dtype[Any]:
        """The data type of the exported array: that of the level, or of the displayed projection."""
        array = self.image.levels[self.level].array
        return array.dtype if self.slab is None else projected_dtype(array.dtype, self.slab)

    @property
    def scale(self) -> tuple[float, ...]:
        """The physical size of a pixel along each axis: the thickness of the slab along its axis."""
        level = self.image.levels[self.level]
        return tuple(size * depth for size, depth in zip(level.scale, self._depths, strict=True))

    @property
    def translation(self) -> tuple[float, ...]:
        """The physical position of the first pixel's centre along each axis."""
        level = self.image.levels[self.level]
        return tuple(
            origin + size * (span.start + (depth - 1) / 2)
            for origin, size, span, depth in zip(
                level.translation, level.scale, self.slices, self._depths, strict=True
            )
        )

    @property
    def _depths(self) -> tuple[int, ...]:
        """The number of pixels of the level in one exported pixel, per axis."""
        slab = self.slab
        return tuple(
            span.stop - span.start if slab is not None and axis == slab.axis else 1
            for axis, span in enumerate(self.slices)
        )

    def read(self, box: tuple[slice, ...]) -> npt.NDArray[Any]:
        """Return the values of a box of pixels of the level. Blocks. Raises ZarrError."""
        array = self.image.levels[self.level].array
        return np.asarray(array[box]) if self.slab is None else read_projection(array, self.slab, box)


def read_region(region: ExportRegion) -> npt.NDArray[Any]:
    """Return the values of a region with all axes of the image. Blocks. Raises ZarrError."""
    return region.read(region.slices)


def _blocks(
    region: ExportRegion, progress: Progress | None
) -> Iterator[tuple[tuple[slice, ...], npt.NDArray[Any]]]:
    """Yield (selection in the region, values) in C order. Blocks begin and end at chunk borders."""
    level = region.image.levels[region.level]
    itemsize = max(1, level.array.dtype.itemsize)
    steps = list(level.chunks)
    for axis in reversed(range(len(steps))):  # blocks are extended along the last axes first
        other_axes = prod(min(s, n) for s, n in zip(steps, region.shape, strict=True)) // min(
            steps[axis], region.shape[axis]
        )
        steps[axis] *= max(1, BLOCK_NBYTES // max(1, other_axes * itemsize * steps[axis]))
    borders = [
        [span.start, *range((span.start // step + 1) * step, span.stop, step), span.stop]
        for span, step in zip(region.slices, steps, strict=True)
    ]
    if region.slab is not None:  # a projection needs the whole slab; it is read chunk by chunk
        borders[region.slab.axis] = [region.slab.start, region.slab.stop]
    intervals = [list(pairwise(border)) for border in borders]
    total = prod(len(axis_intervals) for axis_intervals in intervals)
    for number, box in enumerate(product(*intervals)):
        if progress is not None and not progress(number / total):
            raise Cancelled
        values = region.read(tuple(slice(start, stop) for start, stop in box))
        selection = tuple(
            slice(start - span.start, start - span.start + length)
            for (start, _), span, length in zip(box, region.slices, values.shape, strict=True)
        )
        yield selection, values
    if progress is not None:
        progress(1.0)


def export_npy(region: ExportRegion, file: Path, progress: Progress | None = None) -> None:
    """Write the values as an npy file. Blocks. Raises ZarrError, or Cancelled."""
    with replacing(file) as temporary:
        target = np.lib.format.open_memmap(temporary, "w+", region.dtype, region.shape)
        for selection, values in _blocks(region, progress):
            target[selection] = values
        target.flush()
        del target


def export_tiff(
    region: ExportRegion,
    file: Path,
    progress: Progress | None = None,
    channels: Sequence[ChannelSettings] = (),
) -> None:
    """Write the values as a TIFF file. Blocks. Needs ``tifffile``.

    The file is an OME-TIFF with physical sizes, the positions of the planes, and the names and colours of the channels
    if the axes are some of t, c, z, then y, x, and possibly RGB samples. Otherwise it is a TIFF with the shape and the
    axes as metadata of ``tifffile``. bool becomes 0 and 255. ``channels`` are by default the initial channels of the
    image.

    Raises UnsupportedError if ``tifffile`` is not installed or the data type is structured; ZarrError; Cancelled.
    """
    try:
        import tifffile
    except ImportError as error:
        raise UnsupportedError(f"TIFF export needs the package tifffile: {install_hint('tiff')}") from error
    source = region.dtype
    if source.names is not None:
        raise UnsupportedError(f"TIFF does not support the data type {source}; export as npy or OME-Zarr")
    dtype = np.dtype(np.uint8) if source.kind == "b" else to_display(np.empty(0, source)).dtype
    axes = tiff_axes(region.image)
    ome = axes is not None and dtype.name in OME_DTYPES
    metadata: dict[str, Any] = {"axes": axes if axes is not None else "Q" * len(region.shape)}
    if ome:
        metadata |= physical_sizes(region.image, region.scale) | {"Name": safe_text(region.image.name)}
        metadata |= tiff_channels(region.image, channels)
        metadata |= plane_positions(region.image, region.shape, region.scale, region.translation)
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
        for selection, values in _blocks(region, progress):
            converted = to_display(values)
            target[selection] = converted.astype(np.uint8) * 255 if source.kind == "b" else converted
        target.flush()
        del target


def export_ome_zarr(
    region: ExportRegion,
    path: Path,
    progress: Progress | None = None,
    channels: Sequence[ChannelSettings] = (),
) -> None:
    """Write the values as an OME-Zarr 0.5 image with one level: a directory, or one file if the name ends with
    ``.ozx``, which then has shards. Blocks.

    Axes, units, scale, translation and channels are written as metadata. On failure what was written is deleted.

    Raises NodeExistsError if the path exists; ZarrError; Cancelled.
    """
    image = region.image
    source = image.levels[region.level]
    if path.exists():
        raise NodeExistsError(f"{path} exists; choose another name, or delete it first")
    document = ngff_document(image, region.scale, region.translation, channels)
    attributes = {"ome": document, **directions_attribute(image.axes)}
    try:
        with (
            zarrfs.create_group(str(path), attributes=attributes) as group,
            group.create_array(
                "0",
                shape=region.shape,
                dtype=region.dtype,
                chunks=tuple(min(c, n) for c, n in zip(source.chunks, region.shape, strict=True)),
                shards="auto" if path.suffix.lower() == ".ozx" else None,
                dimension_names=[axis.name or None for axis in image.axes],
            ) as target,
        ):
            for selection, values in _blocks(region, progress):
                target[selection] = values
    except BaseException:
        import shutil

        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)
        raise
