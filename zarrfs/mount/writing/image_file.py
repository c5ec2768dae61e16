"""Reading of a complete image file as an array with the meaning of its dimensions, one slab of it at a time."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

import zarrfs
from zarrfs.engine.array.array import Array
from zarrfs.errors import ZarrError, describe_error
from zarrfs.files.foreign_store import ForeignStore
from zarrfs.files.image_groups import ImageAxis
from zarrfs.files.importing.images import find_images, image_of_group
from zarrfs.files.metaimage.reader import open_metaimage
from zarrfs.files.nifti.reader import open_nifti
from zarrfs.files.nrrd.reader import open_nrrd
from zarrfs.files.tiff.reader import open_tiff
from zarrfs.mount.writing.pending import PendingFile
from zarrfs.ngff.array_transforms import transform_attribute
from zarrfs.ngff.orientation import directions_attribute

__all__ = ["IMAGE_SUFFIXES", "ImageFileError", "SourceImage", "opened_image"]

OPENERS: dict[str, Callable[[str], ForeignStore]] = {
    ".nii": open_nifti,
    ".nrrd": open_nrrd,
    ".mha": open_metaimage,
    ".ome.tif": lambda path: open_tiff(path, is_complete=True),
    ".tif": lambda path: open_tiff(path, is_complete=True),
}
"""The functions that open image files, by the suffix of the file of the mount that presents the same format."""

IMAGE_SUFFIXES = (*OPENERS,)

MAX_SLAB_NBYTES = 64 << 20
"""Parts of this size are read and kept, because the chunks of the new array cross the planes or strips of the file."""


class ImageFileError(Exception):
    """The bytes are not a complete image file of the format that the suffix names, or the format is not supported."""


@dataclass(frozen=True)
class SourceImage:
    """The image in a file.

    Attributes:
        values: an object with shape and data type, whose regions can be read.
        dimension_names: the names of the dimensions, or None if they are not unique.
        attributes: the user attributes of the new array: distances, position, units and orientation of the elements.
    """

    values: _Slabs
    dimension_names: tuple[str, ...] | None
    attributes: dict[str, Any]


@contextmanager
def opened_image(file: PendingFile, suffix: str) -> Iterator[SourceImage]:
    """Open the image in a file. The values can be read in the block. Raises ImageFileError, also while they are read.

    ``suffix`` is one of ``IMAGE_SUFFIXES``. A file contains one image; of a pyramid the largest level is read.
    """
    with file.linked(f"image{suffix}") as path, ExitStack() as stack:
        try:
            store = stack.enter_context(OPENERS[suffix](path))
            image = _image_of(store)
        except (ZarrError, OSError) as error:
            # The path is that of a link, which is of no interest to the user.
            text = describe_error(error).replace(f"{path}: ", "").replace(path, "the file")
            raise ImageFileError(text) from error
        yield image


def _image_of(store: ForeignStore) -> SourceImage:
    images = find_images(zarrfs.open(store))
    if len(images) != 1:
        raise ImageFileError(
            f"it contains {len(images)} images, expected one; `zarrfs import` writes a group of several images"
        )
    (group,) = images.values()
    image = image_of_group(group)
    axes = image.axes
    names = tuple(axis.name for axis in axes)
    has_names = all(names) and len(set(names)) == len(names)
    has_axis_metadata = any(axis != ImageAxis(axis.name) for axis in axes)
    return SourceImage(
        _Slabs(image.array),
        names if has_names else None,
        {"transform": transform_attribute(axes), **directions_attribute(axes)} if has_axis_metadata else {},
    )


class _Slabs:
    """An array that is read in slabs of whole trailing dimensions, of which the last one is kept.

    Regions are requested in the order of the chunks of another array in C order.
    """

    def __init__(self, array: Array) -> None:
        self._array = array
        self.shape, self.dtype, self.ndim = array.shape, array.dtype, array.ndim
        self._slab: npt.NDArray[Any] | None = None
        self._start: tuple[int, ...] = ()

    def __getitem__(self, region: tuple[slice, ...]) -> npt.NDArray[Any]:
        """Return the values of a region: slices with start and stop. Raises ZarrError, ImageFileError for damage."""
        if self._slab is None or not self._contains(region):
            self._slab = None  # the memory of the old slab is released before the new one is read
            slab = self._extended(region)
            try:
                self._slab = np.asarray(self._array[slab])
            except ZarrError as error:
                text = re.sub(r"^.*? cannot be read: ", "", describe_error(error))
                raise ImageFileError(f"its elements cannot be read: {text}") from error
            self._start = tuple(part.start for part in slab)
        return self._slab[
            tuple(
                slice(part.start - first, part.stop - first)
                for part, first in zip(region, self._start, strict=True)
            )
        ]

    def _contains(self, region: tuple[slice, ...]) -> bool:
        assert self._slab is not None
        return all(
            first <= part.start and part.stop <= first + length
            for part, first, length in zip(region, self._start, self._slab.shape, strict=True)
        )

    def _extended(self, region: tuple[slice, ...]) -> tuple[slice, ...]:
        """Return a region with whole trailing dimensions, as far as they fit into a slab."""
        found = list(region)
        for dimension in reversed(range(self.ndim)):
            whole = [*found]
            whole[dimension] = slice(0, self.shape[dimension])
            if prod(part.stop - part.start for part in whole) * self.dtype.itemsize > MAX_SLAB_NBYTES:
                break
            found = whole
        return tuple(found)
