"""The properties of an image as readable text: axes, pixel sizes, extent, levels and channels. Pure functions."""

from __future__ import annotations

from math import prod
from typing import Any

from zarrfs_viewer.analysis.readout import format_bytes, short_unit
from zarrfs_viewer.images.image import Image

__all__ = ["image_summary", "stored_summary"]


def image_summary(image: Image, version: str | None = None) -> dict[str, Any]:
    """Return the properties of an image by name, in the order in which they are displayed.

    ``version`` is the version of OME-NGFF, or None. The levels and the channels are lists of texts.
    """
    shape = image.shape
    summary: dict[str, Any] = {
        "image": image.name or "without a name",
        "kind": "label image" if image.kind == "labels" else "image",
        "axes": ", ".join(_axis_text(image, axis) for axis in range(len(image.axes))),
        "shape": " x ".join(map(str, shape)),
        "data type": image.dtype.name,
        "pixel size": _sizes(image, lambda axis: abs(image.levels[0].scale[axis])),
        "extent": _sizes(image, lambda axis: abs(image.levels[0].scale[axis]) * shape[axis]),
        "size of level 0": format_bytes(prod(shape) * image.dtype.itemsize),
        "levels": [
            f"{level.path or number}: {' x '.join(map(str, level.shape))}, chunks of "
            f"{' x '.join(map(str, level.chunks))}"
            for number, level in enumerate(image.levels)
        ],
        "channels": [
            f"{channel.label or f'channel {channel.index}'} ({channel.colormap})"
            for channel in image.channels
        ],
        "label images": [entry.name for entry in image.labels],
        "OME-NGFF": version,
        "notes": list(image.notes),
    }
    return {key: _indexed(value) for key, value in summary.items() if value not in (None, [], "")}


def stored_summary(image: Image) -> dict[str, Any]:
    """Return the stored size of all levels and the compression ratio. Lists the chunks of all levels; blocks.

    Raises ZarrError.
    """
    stored = nbytes = 0
    for level in image.levels:
        count = getattr(level.array, "nbytes_stored", None)
        if count is None:
            return {}
        stored += count()
        nbytes += prod(level.shape) * level.array.dtype.itemsize
    summary = {"stored size": format_bytes(stored)}
    if stored:
        summary["compression ratio"] = f"{nbytes / stored:.2f}"
    return summary


def _indexed(value: Any) -> Any:
    """Return a list as an object with numbers as keys, which the tree displays as a branch."""
    return {str(number): entry for number, entry in enumerate(value)} if isinstance(value, list) else value


def _axis_text(image: Image, axis: int) -> str:
    name = image.axes[axis].name or f"dim {axis}"
    kind = image.axes[axis].type
    return f"{name} ({kind})" if kind is not None else name


def _sizes(image: Image, size: Any) -> str:
    """Return a size along each axis with a unit, or along all spatial axes if no axis has a unit."""
    axes = [axis for axis in range(len(image.axes)) if axis not in (image.channel_axis, image.rgb_axis)]
    measured = [axis for axis in axes if image.axes[axis].unit]
    chosen = measured or [axis for axis in axes if image.axes[axis].type == "space"]
    parts = []
    for axis in chosen:
        unit = image.axes[axis].unit
        parts.append(f"{image.axes[axis].name} {size(axis):.6g} {short_unit(unit) if unit else 'px'}")
    return ", ".join(parts)
