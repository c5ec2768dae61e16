"""The properties of an image as readable text: axes, pixel sizes, extent, levels and channels. Pure functions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import prod
from typing import Any

import zarrfs
from zarrfs_viewer.analysis.node_summary import compression
from zarrfs_viewer.analysis.readout import format_bytes, short_unit
from zarrfs_viewer.images.image import Image
from zarrfs_viewer.images.reading import stored_array
from zarrfs_viewer.images.resampling import source_array
from zarrfs_viewer.state.colormaps import colormap_title

__all__ = ["image_summary", "stored_summary"]


def image_summary(image: Image, version: str | None = None) -> dict[str, Any]:
    """Return the properties of an image by name, in the order in which they are displayed.

    ``version`` is the version of OME-NGFF, or None. The values are texts, or objects of texts.
    """
    image = _stored(image)
    shape = image.shape
    summary: dict[str, Any] = {
        "Label image" if image.kind == "labels" else "Image": image.name or "without a name",
        "OME-NGFF": version,
        "Axes": " ".join(axis.name or f"dim{number}" for number, axis in enumerate(image.axes)),
        "Shape": " x ".join(map(str, shape)),
        "Data type": image.dtype.name,
        "Unit of the values": image.value_unit,
        "Packing": None if image.packing is None else image.packing.summary(),
        "Pixel size": _sizes(image, lambda axis: abs(image.levels[0].scale[axis])),
        "Orientation": {axis.name: axis.orientation for axis in image.axes if axis.orientation is not None},
        "Extent": _sizes(image, lambda axis: abs(image.levels[0].scale[axis]) * shape[axis]),
        "Size of level 0": format_bytes(prod(shape) * stored_array(image.levels[0].array).dtype.itemsize),
        "Chunks": " x ".join(map(str, image.levels[0].chunks)),
        "Compression": _compression(image),
        "Levels": [" x ".join(map(str, level.shape)) for level in image.levels],
        "Channels": [
            f"{channel.label or f'channel {channel.index}'} ({colormap_title(channel.colormap)})"
            for channel in image.channels
        ],
        "Label images": [entry.name for entry in image.labels],
        "Notes": list(image.notes),
    }
    return {key: _indexed(value) for key, value in summary.items() if value not in (None, [], {}, "")}


def stored_summary(image: Image) -> dict[str, Any]:
    """Return the stored size of all levels and the compression ratio. Lists the chunks of all levels; blocks.

    Raises ZarrError.
    """
    stored = nbytes = 0
    image = _stored(image)
    for level in image.levels:
        array: Any = stored_array(level.array)
        count = getattr(array, "nbytes_stored", None)
        if count is None:
            return {}
        stored += count()
        nbytes += prod(level.shape) * array.dtype.itemsize
    summary = {"Stored size": format_bytes(stored)}
    if stored:
        summary["Compression ratio"] = f"{nbytes / stored:.2f}"
    return summary


def _stored(image: Image) -> Image:
    """Return an image with the shapes of its arrays as they are stored, also if it is resampled for display."""
    levels = {
        level.path: replace(level, array=source_array(level.array)) for level in image.levels
    }  # levels that are finer than the pyramid have the path of its finest level, which follows them
    return replace(image, levels=tuple(levels.values()))


def _compression(image: Image) -> str | None:
    """Return the compression of level 0, or None if its array is not one of zarrfs."""
    array = stored_array(image.levels[0].array)
    return compression(array).get("Compression") if isinstance(array, zarrfs.Array) else None


def _indexed(value: Any) -> Any:
    """Return a list as an object with numbers as keys, which the attribute tree displays as a branch."""
    return {str(number): entry for number, entry in enumerate(value)} if isinstance(value, list) else value


def _sizes(image: Image, size: Callable[[int], float]) -> dict[str, str]:
    """Return a size along each axis with a unit, or along all spatial axes if no axis has a unit."""
    axes = [axis for axis in range(len(image.axes)) if axis not in (image.channel_axis, image.rgb_axis)]
    measured = [axis for axis in axes if image.axes[axis].unit]
    chosen = measured or [axis for axis in axes if image.axes[axis].type == "space"]
    return {
        image.axes[axis].name: f"{size(axis):.6g} {short_unit(image.axes[axis].unit or 'px')}"
        for axis in chosen
    }
