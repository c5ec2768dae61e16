"""PNG and JPEG files as images. They are read with Pillow."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import numpy.typing as npt

from zarrfs.engine.stores.regular_files import open_regular_file
from zarrfs.errors import LocationError, UnsupportedError
from zarrfs.files.contiguous import path_stamp
from zarrfs.files.foreign_array import ForeignArray
from zarrfs.files.foreign_store import ForeignStore
from zarrfs.files.image_groups import ImageAxis, image_nodes
from zarrfs.libraries import load_library

__all__ = ["is_image_file", "open_image_file"]

PNG_MAGIC = b"\x89PNG\r\n\x1a\n"
JPEG_MAGIC = b"\xff\xd8\xff"

PNG_HEADER_NBYTES = 26
"""The magic number and the chunk IHDR up to the bit depth and the colour type (PNG, section 11.2.1)."""

PNG_DEPTH_16 = 16
PNG_GRAY = 0

MAX_PIXELS = 1 << 30
"""The largest number of pixels of one file. A small damaged file could otherwise need all memory."""

MODES = {
    "1": ("bool", 1),
    "L": ("uint8", 1),
    "I;16": ("uint16", 1),
    "I;16B": ("uint16", 1),
    "I": ("uint16", 1),
}
MODES |= {
    "RGB": ("uint8", 3),
    "RGBA": ("uint8", 4),
    "LA": ("uint8", 4),
    "P": ("uint8", 4),
    "CMYK": ("uint8", 3),
}
"""The data type and the number of samples of each mode of Pillow, after the conversion in ``_read``."""

CONVERTED = {"LA": "RGBA", "P": "RGBA", "CMYK": "RGB"}


def is_image_file(head: bytes) -> bool:
    """Return whether the first bytes of a file are those of a PNG or JPEG file."""
    return head.startswith((PNG_MAGIC, JPEG_MAGIC))


def open_image_file(path: str) -> ForeignStore:
    """Return a store with the image of a PNG or JPEG file. The axes are y, x, and c at the end for colours.

    Raises LocationError for a damaged file, UnsupportedError for modes that are not supported.
    """
    pillow: Any = load_library("PIL.Image", "images", "reading PNG and JPEG")
    (width, height), mode = _header(pillow, path)
    name, samples = MODES[mode]
    colors = (samples,) if samples > 1 else ()
    shape = (height, width, *colors)

    def read(region: tuple[slice, ...]) -> npt.NDArray[Any]:
        return _read(pillow, path, mode, name)[region]

    array = ForeignArray(shape, shape, np.dtype(name), read)
    axes = [ImageAxis(axis) for axis in "yx"] + [ImageAxis("c")] * bool(colors)
    title = os.path.splitext(os.path.basename(path))[0]
    nodes = image_nodes(array, axes, title)
    return ForeignStore(f"file://{os.path.abspath(path)}", nodes, lambda: path_stamp(path), lambda: None)


def _header(pillow: Any, path: str) -> tuple[tuple[int, int], str]:
    with open(path, "rb", opener=lambda name, _: open_regular_file(name)) as file:  # not a FIFO or a device
        head = file.read(PNG_HEADER_NBYTES)
    try:
        with pillow.open(path, formats=("PNG", "JPEG")) as image:
            size, mode = image.size, image.mode
            frames = getattr(image, "n_frames", 1) if image.format == "PNG" else 1
    except Exception as error:  # Pillow raises errors of many kinds for damaged files
        raise LocationError(f"{path} cannot be read as PNG or JPEG: {error}") from error
    if mode not in MODES:
        raise UnsupportedError(f"{path}: images of mode {mode} are not supported")
    if head.startswith(PNG_MAGIC) and head[-2] == PNG_DEPTH_16 and head[-1] != PNG_GRAY:
        raise UnsupportedError(
            f"{path} has colours of 16 bits, of which Pillow reads 8; convert it to TIFF, or to a gray image for each "
            "channel"
        )
    if frames > 1:
        raise UnsupportedError(f"{path} is an animation of {frames} images; write each to a file of its own")
    if size[0] * size[1] > MAX_PIXELS:
        raise UnsupportedError(f"{path} has {size[0]} x {size[1]} pixels; at most {MAX_PIXELS} are read")
    return size, mode


def _read(pillow: Any, path: str, mode: str, dtype: str) -> npt.NDArray[Any]:
    with pillow.open(path, formats=("PNG", "JPEG")) as image:
        if image.mode != mode:
            raise OSError(0, f"{path} has changed: mode {image.mode}, expected {mode}")
        converted = image.convert(CONVERTED[mode]) if mode in CONVERTED else image
        return np.asarray(converted).astype(dtype, copy=False)
