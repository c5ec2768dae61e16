"""PNG and JPEG files: one for each plane of an array."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from zarrfs.engine.array.array import Array
from zarrfs.errors import UnsupportedError
from zarrfs.files.output_files import check_new, new_file
from zarrfs.files.view import PresentedArray
from zarrfs.plugins import install_hint

__all__ = ["PLANE_SUFFIXES", "write_planes"]

PLANE_SUFFIXES = (".png", ".jpg", ".jpeg")

DATA_TYPES = {".png": ("bool", "uint8", "uint16"), ".jpg": ("uint8",), ".jpeg": ("uint8",)}

SAMPLE_COUNTS = {".png": (3, 4), ".jpg": (3,), ".jpeg": (3,)}
"""The lengths of a last dimension that are the samples of a colour: RGB and RGBA."""

MAX_READ_NBYTES = 64 << 20
"""Planes are read together up to this size, but at least one."""

MAX_PLANES = 1_000_000


def write_planes(
    presented: PresentedArray, file: str, replace: bool, progress: Callable[[str, int, int], object] | None
) -> list[str]:
    """Write the planes of the last two dimensions as image files. Return their names.

    An array of one plane is written to ``file``. The planes of other arrays are ``stem_0000.png``, or
    ``stem_c0_z0000.png`` if the dimensions have names: with the index along each dimension, with leading zeros. A last
    dimension of length 3 or 4 is the samples of a colour if it is not a spatial one.

    Raises UnsupportedError for other data types than those of the format, and if Pillow is missing.
    """
    try:
        from PIL import Image
    except ImportError as error:
        raise UnsupportedError(f"writing image files needs Pillow: {install_hint('images')}") from error
    array = presented.array
    stem, suffix = os.path.splitext(file)
    suffix = suffix.lower()
    if array.dtype.name not in DATA_TYPES[suffix]:
        expected = " or ".join(DATA_TYPES[suffix])
        raise UnsupportedError(
            f"{array.name} cannot be written as {suffix}: its data type is {array.spec.data_type.name}, "
            f"expected {expected}"
        )
    if array.ndim < 2 or min(array.shape) == 0:
        raise UnsupportedError(
            f"{array.name} cannot be written as {suffix}: shape {array.shape} has no planes"
        )
    leading = _leading(presented, suffix)
    lengths = array.shape[:leading]
    count = int(np.prod(lengths, dtype=object))
    if count > MAX_PLANES:
        raise UnsupportedError(f"{array.name} has {count} planes; at most {MAX_PLANES} files are written")
    names = [axis.name or "" for axis in presented.geometry.axes[:leading]]
    files = {index: _file_name(stem, suffix, index, lengths, names) for index in np.ndindex(*lengths)}
    for name in files.values():
        check_new(name, replace)
    for done, (index, plane) in enumerate(_planes(array, leading), 1):
        with new_file(files[index], replace) as stream:
            Image.fromarray(plane).save(stream, "PNG" if suffix == ".png" else "JPEG", quality=95)
        if progress is not None:
            progress(os.path.basename(file), done * plane.nbytes, count * plane.nbytes)
    return list(files.values())


def _leading(presented: PresentedArray, suffix: str) -> int:
    """Return the number of dimensions before those of a plane."""
    array = presented.array
    if array.ndim > 2 and array.shape[-1] in SAMPLE_COUNTS[suffix]:
        axis = presented.geometry.axes[-1]
        if axis.type != "space" and axis.name not in ("x", "y", "z") and array.dtype.name == "uint8":
            return array.ndim - 3
    return array.ndim - 2


def _file_name(
    stem: str, suffix: str, index: tuple[int, ...], lengths: tuple[int, ...], names: list[str]
) -> str:
    parts = [
        f"_{name if name.isalnum() else ''}{number:0{max(len(str(length - 1)), 1)}}"
        for name, number, length in zip(names, index, lengths, strict=True)
    ]
    return f"{stem}{''.join(parts)}{suffix}"


def _planes(array: Array, leading: int) -> Iterator[tuple[tuple[int, ...], np.ndarray[Any, Any]]]:
    """Yield each plane with its index. The planes of one row of chunks are read together if they are small."""
    lengths = array.shape[:leading]
    if not leading:
        yield (), np.asarray(array[...])
        return
    plane_nbytes = int(np.prod(array.shape[leading:])) * array.itemsize
    chunk = array.chunks[leading - 1]
    longest = max(chunk) if isinstance(chunk, tuple) else chunk
    thickness = max(1, min(longest, MAX_READ_NBYTES // max(1, plane_nbytes)))
    for outer in itertools.product(*map(range, lengths[:-1])):
        for start in range(0, lengths[-1], thickness):
            planes = np.asarray(array[(*outer, slice(start, start + thickness))])
            for offset, plane in enumerate(planes):
                yield (*outer, start + offset), plane
