"""Arrays as rasters of bands, for formats of remote sensing that describe the bytes of the .raw file.

A band is a plane of lines and samples. The dimensions other than those of the plane are merged: the last one changes
fastest from band to band.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Any

from zarrfs.files.pixel_grids import element_unsupported_reason
from zarrfs.files.raw.view import raw_reference_unsupported_reason
from zarrfs.files.view import PresentedArray, fixed_size_unsupported_reason
from zarrfs.ngff.geometry import ArrayAxis

__all__ = ["Raster", "raster", "raster_unsupported_reason"]

MAX_LENGTH = 2**31 - 1
MAX_BANDS = 1 << 15
"""The header of a file has an entry for each band."""

MAX_LABEL_LENGTH = 16

UNNAMED = ArrayAxis()


@dataclass(frozen=True)
class Raster:
    """An array as bands.

    Attributes:
        width, height: the number of samples and lines.
        x, y: the axes of samples and lines; an axis without a name if there is none.
        pixel_stride, line_stride: the distances between samples and lines in elements.
        band_offsets: the position of the first sample of each band in elements.
        band_names: the indices of each band in the other dimensions, such as ``c1 z12``.
    """

    width: int
    height: int
    x: ArrayAxis
    y: ArrayAxis
    pixel_stride: int
    line_stride: int
    band_offsets: Sequence[int]
    band_names: Sequence[str]


def raster_unsupported_reason(presented: PresentedArray, types: Mapping[str, Any], name: str) -> str | None:
    """Return why the format ``name`` cannot describe the .raw file of an array, or None if it can."""
    array = presented.array
    reason = fixed_size_unsupported_reason(array) or element_unsupported_reason(array.dtype, types, name)
    if reason is not None:
        return reason
    if array.size == 0:
        return f"its shape {array.shape} has a dimension of length 0, and {name} requires at least 1"
    if max(array.shape, default=1) > MAX_LENGTH:
        return f"the length of a dimension exceeds the maximum of {name} ({MAX_LENGTH:,})"
    if array.size // prod(array.shape[-2:]) > MAX_BANDS and _band_count(presented) > MAX_BANDS:
        return f"its {_band_count(presented):,} bands exceed the maximum number ({MAX_BANDS:,})"
    return raw_reference_unsupported_reason(presented)


def _band_count(presented: PresentedArray) -> int:
    plane = _spatial_plane(presented)
    return prod(length for number, length in enumerate(presented.array.shape) if number not in plane)


def _last_plane(ndim: int) -> tuple[int, ...]:
    return tuple(range(ndim))[-2:]


def _spatial_plane(presented: PresentedArray) -> tuple[int, ...]:
    """Return the dimensions y and x, or the last two ones if there are no such axes or the distances are too large."""
    array, geometry = presented.array, presented.geometry
    y, x = geometry.find("y"), geometry.find("x")
    if y is None or x is None:
        return _last_plane(array.ndim)
    strides = [prod(array.shape[number + 1 :]) * array.itemsize for number in (y, x)]
    return (y, x) if max(strides) <= MAX_LENGTH else _last_plane(array.ndim)


def raster(presented: PresentedArray, *, keep_order: bool) -> Raster:
    """Return an array as bands. With ``keep_order`` the plane consists of the last two dimensions in any case."""
    array, geometry = presented.array, presented.geometry
    shape = array.shape
    plane = _last_plane(array.ndim) if keep_order else _spatial_plane(presented)
    y, x = ((None, None), (None, *plane), plane)[len(plane)]
    strides = [prod(shape[number + 1 :]) for number in range(array.ndim)]
    outer = [number for number in range(array.ndim) if number not in plane]
    labels = [_label(geometry.axes[number], number) for number in outer]
    offsets, names = [], []
    for indices in product(*(range(shape[number]) for number in outer)):
        offsets.append(sum(index * strides[number] for index, number in zip(indices, outer, strict=True)))
        names.append(" ".join(f"{label}{index}" for label, index in zip(labels, indices, strict=True)))
    return Raster(
        1 if x is None else shape[x],
        1 if y is None else shape[y],
        UNNAMED if x is None else geometry.axes[x],
        UNNAMED if y is None else geometry.axes[y],
        1 if x is None else strides[x],
        array.size if y is None else strides[y],
        offsets,
        names,
    )


def _label(axis: ArrayAxis, number: int) -> str:
    name = axis.name or axis.role or ""
    is_valid = name.isascii() and name.isalpha() and len(name) <= MAX_LABEL_LENGTH
    return name if is_valid else f"d{number}n"
