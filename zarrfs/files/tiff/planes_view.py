""".planes: a directory with one TIFF file for each plane, such as ``img.planes/t0007_c1_z012.tif``.

The plane consists of the axes y and x, or of the last two dimensions. The names contain the indices in the other
dimensions, in the order of the array, with as many digits as the largest index has. A single plane is ``plane.tif``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import product
from math import prod
from typing import ClassVar

from zarrfs.files.content.content import ArraySegment, BytesSegment, PartSegment, VirtualFileContent
from zarrfs.files.tiff.directories import MAX_LONG, ImageTags, TiffForm
from zarrfs.files.tiff.plane_order import image_stack, plane_tags, stack_unsupported_reason
from zarrfs.files.view import PresentedArray
from zarrfs.ngff.geometry import ArrayAxis

__all__ = ["PlaneDirectory", "PlanesView"]

MAX_PLANES = 1 << 20
"""The maximum number of files. A listing of the directory contains all names."""

SINGLE_PLANE = "plane"
EXTENSION = ".tif"
ALIGNMENT = 64
MAX_PREFIX_LENGTH = 16

TYPES = frozenset(
    (
        *("bool", "uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64"),
        *("float16", "float32", "float64", "complex64", "complex128"),
    )
)
"""The names of dtypes that TIFF can represent."""


class PlanesView:
    """A directory of TIFF files with one plane each, which presents an array.

    Attributes:
        suffix: the suffix that is appended to the name of the array, including the dot.
        listed: whether directory listings contain the directory by default. It can always be opened by name.
    """

    suffix: ClassVar[str] = ".planes"
    listed: ClassVar[bool] = False

    def unsupported_reason(self, presented: PresentedArray) -> str | None:
        """Return the reason why there is no such directory for the array, or None if there is one."""
        unsupported_reason = stack_unsupported_reason(presented.array, TYPES, "TIFF")
        if unsupported_reason is not None:
            return unsupported_reason
        stack = image_stack(presented)
        width, height, count = stack.sizes["x"], stack.sizes["y"], stack.plane_count
        if max(width, height) > MAX_LONG:
            return f"a plane of {width} x {height} elements exceeds the limits of TIFF"
        if count > MAX_PLANES:
            return f"its {count:,} planes exceed the maximum number of files ({MAX_PLANES:,})"
        return None

    def directory(self, presented: PresentedArray) -> PlaneDirectory:
        """Return the files. Called only if ``unsupported_reason`` returns None for the array, which may lack user
        attributes.
        """
        array, geometry = presented.array, presented.geometry
        stack = image_stack(presented)
        plane = [stack.dimensions[role] for role in ("y", "x") if role in stack.dimensions]
        outer = [number for number in range(array.ndim) if number not in plane]
        order = (*outer, *plane)
        is_big = stack.sizes["x"] * stack.sizes["y"] * array.itemsize > MAX_LONG // 2
        segment = ArraySegment(array, "C" if order == tuple(range(array.ndim)) else order)
        return PlaneDirectory(
            _prefixes([geometry.axes[number] for number in outer]),
            [array.shape[number] for number in outer],
            segment,
            plane_tags(presented, stack, TiffForm.of(array.dtype, is_big)),
        )


class PlaneDirectory:
    """The files of the planes. ``segment`` contains the planes one after the other, in the order of the names.

    The number of files may be large: each one is created when it is looked up.
    """

    def __init__(
        self, prefixes: Sequence[str], lengths: Sequence[int], segment: ArraySegment, image: ImageTags
    ) -> None:
        self._prefixes = prefixes
        self._lengths = lengths
        self._widths = [len(str(length - 1)) for length in lengths]
        self._segment = segment
        form = image.form
        end = form.header_nbytes + form.directory_nbytes(image.tags(0))
        start = -(-end // ALIGNMENT) * ALIGNMENT
        header = form.header() + form.directory(image.tags(start), form.header_nbytes, 0)
        self._header = BytesSegment(header.ljust(start, b"\0"))
        self._plane_nbytes = segment.nbytes // prod(lengths)
        parts = [f"{prefix}([0-9]{{{width}}})" for prefix, width in zip(prefixes, self._widths, strict=True)]
        self._pattern = re.compile(("_".join(parts) or SINGLE_PLANE) + re.escape(EXTENSION))

    def names(self) -> list[str]:
        """Return the names of all files, sorted."""
        parts = [
            [f"{prefix}{index:0{width}}" for index in range(length)]
            for prefix, width, length in zip(self._prefixes, self._widths, self._lengths, strict=True)
        ]
        return [("_".join(indices) or SINGLE_PLANE) + EXTENSION for indices in product(*parts)]

    def find(self, name: str) -> VirtualFileContent | None:
        """Return the content of the file ``name``, or None if there is no such file."""
        match = self._pattern.fullmatch(name)
        if match is None:
            return None
        number = 0
        for text, length in zip(match.groups(), self._lengths, strict=True):
            index = int(text)
            if index >= length:
                return None
            number = number * length + index
        return VirtualFileContent(
            [self._header, PartSegment(self._segment, number * self._plane_nbytes, self._plane_nbytes)]
        )


def _prefixes(axes: Sequence[ArrayAxis]) -> list[str]:
    """Return the text before the index in each dimension: the name or the role of the axis."""
    prefixes: list[str] = []
    for number, axis in enumerate(axes):
        prefix = axis.name or axis.role or ""
        is_valid = prefix.isascii() and prefix.isalpha() and len(prefix) <= MAX_PREFIX_LENGTH
        prefixes.append(prefix if is_valid and prefix not in prefixes else f"d{number}n")
    return prefixes
