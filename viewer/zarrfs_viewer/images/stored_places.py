"""Where the data of an image are: the slice that is displayed first, and the next slice with stored chunks.

The functions block on the store; call them from a worker thread.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt

from zarrfs.errors import UnsupportedError, ZarrError
from zarrfs_viewer.images.chunk_keys import lists_chunks, stored, stored_regions
from zarrfs_viewer.images.image import Image
from zarrfs_viewer.images.reading import stored_array

__all__ = ["at_data", "has_stored_chunk", "next_stored_slice"]

MAX_VALUES = 1 << 22
"""The coarsest level is searched for data if it has at most this number of values."""
SAMPLED_CHUNKS = (1 / 2, 1 / 6, 5 / 6)
"""The places along both displayed axes at which chunks are looked up before the keys of the store are listed."""


def at_data(image: Image) -> Image:
    """Return the image with a default position at which it has data: the nearest slice in the coarsest level, or with
    a stored chunk. The image is returned unchanged if its default slice has data, or if that is not known.
    """
    axes = _slice_axes(image)
    if not axes:
        return image
    try:
        found = _place(image, axes)
    except ZarrError:
        return image  # the reason is reported when the picture is read
    return image if found is None else replace(image, default_position=found)


def _place(image: Image, axes: Sequence[int]) -> tuple[float, ...] | None:
    """Return another position than the default one for ``at_data``, or None."""
    level = len(image.levels) - 1
    shape = image.levels[level].shape
    size = math.prod(length for axis, length in enumerate(shape) if axis != image.channel_axis)
    if level and size <= MAX_VALUES and image.dtype.names is None:
        default = [image.level_index(level, axis, image.default_position[axis]) for axis in axes]
        if _data_in_coarsest(image, axes, [slice(index, index + 1) for index in default]).any():
            return None
        places = np.argwhere(_data_in_coarsest(image, axes, [slice(None)] * len(axes)))
        if len(places):
            nearest = places[np.abs(places - np.array(default)).sum(axis=1).argmin()]
            return _position_in_coarsest(image, axes, nearest.tolist())
    return _nearest_chunk(image, axes)


def _slice_axes(image: Image) -> tuple[int, ...]:
    displayed = image.default_displayed
    return tuple(axis for axis in image.slider_axes if axis not in displayed and image.shape[axis] > 1)


def _data_in_coarsest(image: Image, axes: Sequence[int], parts: Sequence[slice]) -> npt.NDArray[np.bool_]:
    """Return for each slice of a part of the coarsest level, in the order of ``axes``, whether the first channel has
    values other than zero, NaN and the fill value.
    """
    coarsest = image.levels[-1]
    selection: list[Any] = [slice(None)] * len(coarsest.shape)
    if image.channel_axis is not None:
        selection[image.channel_axis] = slice(0, 1)
    for axis, part in zip(axes, parts, strict=True):
        selection[axis] = part
    fill = getattr(stored_array(coarsest.array), "fill_value", 0)
    data = _has_data(np.asarray(coarsest.array[tuple(selection)]), fill)
    others = tuple(axis for axis in range(data.ndim) if axis not in axes)
    return np.asarray(data.any(axis=others), np.bool_)


def _position_in_coarsest(image: Image, axes: Sequence[int], indices: Sequence[int]) -> tuple[float, ...]:
    """Return the default position with the indices of slices of the coarsest level along ``axes``."""
    position = list(image.default_position)
    for axis, index in zip(axes, indices, strict=True):
        value = round(image.from_level(len(image.levels) - 1, axis, index))
        position[axis] = float(min(max(value, 0), image.shape[axis] - 1))
    return tuple(position)


def _has_data(values: npt.NDArray[Any], fill: Any) -> npt.NDArray[np.bool_]:
    found = values != 0
    if values.dtype.kind in "fc":
        found &= ~np.isnan(values)
    if isinstance(fill, int | float | complex | np.generic):
        found &= values != fill
    return np.asarray(found, np.bool_)


def _nearest_chunk(image: Image, axes: Sequence[int]) -> tuple[float, ...] | None:
    whole = [(0, image.shape[axis]) for axis in image.default_displayed]
    if _is_sampled_chunk_stored(image, image.default_position, image.default_displayed, whole):
        return None
    best: tuple[float, tuple[float, ...]] | None = None
    for region in stored_regions(image.levels[0].array):
        position = list(image.default_position)
        for axis in axes:
            position[axis] = min(max(position[axis], region[axis].start), region[axis].stop - 1)
        moves = zip(position, image.default_position, strict=True)
        distance = sum(abs(new - old) for new, old in moves)
        if not distance:
            return None  # the default slice has data elsewhere
        if best is None or distance < best[0]:
            best = distance, tuple(position)
    return None if best is None else best[1]


def _is_sampled_chunk_stored(
    image: Image,
    position: Sequence[float],
    displayed: tuple[int, int],
    spans: Sequence[tuple[float, float]],
    level: int = 0,
) -> bool:
    """Return whether one of some chunks of a slice is stored; True if the array has no store."""
    shape = image.levels[level].shape
    element = [
        0 if axis in (image.channel_axis, image.rgb_axis) else image.level_index(level, axis, value)
        for axis, value in enumerate(position)
    ]
    for fractions in product(SAMPLED_CHUNKS, repeat=2):
        for axis, (low, high), part in zip(displayed, spans, fractions, strict=True):
            element[axis] = min(max(int(low + (high - low) * part), 0), shape[axis] - 1)
        if stored(image.levels[level].array, [element])[0]:
            return True
    return False


def has_stored_chunk(
    image: Image,
    position: Sequence[float],
    displayed: tuple[int, int],
    level: int,
    rect: tuple[float, float, float, float],
) -> bool:
    """Return whether a chunk of a part of a slice is stored in a level, of any channel; True if that is not known.

    ``rect`` is (top, left, bottom, right) in data coordinates. Raises ZarrError.
    """
    spans = []
    for axis, low, high in zip(displayed, rect[:2], rect[2:], strict=True):
        ends = sorted(image.to_level(level, axis, edge) for edge in (low, high))
        spans.append((max(ends[0], 0.0), min(ends[1], image.levels[level].shape[axis] - 1.0)))
    array = image.levels[level].array
    if not lists_chunks(array) or _is_sampled_chunk_stored(image, position, displayed, spans, level):
        return True
    at = {
        axis: float(image.level_index(level, axis, value))
        for axis, value in enumerate(position)
        if axis not in (image.channel_axis, image.rgb_axis)
    }
    ranges = {axis: (value, value) for axis, value in at.items()} | dict(zip(displayed, spans, strict=True))
    return any(
        all(region[axis].start <= high and low < region[axis].stop for axis, (low, high) in ranges.items())
        for region in stored_regions(array)
    )


def next_stored_slice(
    image: Image, position: Sequence[float], displayed: tuple[int, int], axis: int, step: int
) -> int | None:
    """Return the nearest slice along an axis with a stored chunk of level 0, in the direction of ``step`` and at least
    this distance away. None if there is none.

    The slices along the other axes with sliders remain. Raises UnsupportedError if the chunks are not known.
    """
    if not lists_chunks(image.levels[0].array):
        raise UnsupportedError(
            "The store does not list its chunks, so it is not known which planes are stored."
        )
    here = round(position[axis])
    others = [
        (other, round(position[other])) for other in image.slider_axes if other not in (axis, *displayed)
    ]
    best: int | None = None
    for region in stored_regions(image.levels[0].array):
        if not all(region[other].start <= index < region[other].stop for other, index in others):
            continue
        first, last = region[axis].start, region[axis].stop - 1
        found = max(first, here + step) if step > 0 else min(last, here + step)
        if first <= found <= last and (best is None or abs(found - here) < abs(best - here)):
            best = found
    return best
