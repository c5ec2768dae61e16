""".mhd: a MetaImage header that refers to the .raw file. .mha: the same with the elements in one file, x first.

Specification: https://itk.org/Wiki/ITK/MetaIO/Documentation. The channels are components of each pixel if they are
adjacent in the bytes, as in an RGB image, and an axis of the image otherwise. A complex number is two components. The
matrix and the offset are in the space that ITK defines: left, posterior, superior.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from zarrfs.files.byte_order import byte_order
from zarrfs.files.content.content import ArraySegment, BytesSegment, VirtualFileContent
from zarrfs.files.pixel_grids import GridAxis, PixelGrid, image_unsupported_reason, ordered_grid, stored_grid
from zarrfs.files.raw.view import RawView, raw_reference_unsupported_reason
from zarrfs.files.view import PresentedArray, View
from zarrfs.ngff.orientation import nearest_orientations

__all__ = ["MetaImageHeaderView", "MetaImageView"]

MAX_AXES = 10
"""The maximum number of axes of MetaIO."""

MAX_LENGTH = 2**31 - 1
"""MetaIO stores the lengths of the axes as 32-bit integers."""

TYPES = {
    "bool": "MET_UCHAR",
    "int8": "MET_CHAR",
    "uint8": "MET_UCHAR",
    "int16": "MET_SHORT",
    "uint16": "MET_USHORT",
    "int32": "MET_INT",
    "uint32": "MET_UINT",
    "int64": "MET_LONG_LONG",
    "uint64": "MET_ULONG_LONG",
    "float32": "MET_FLOAT",
    "float64": "MET_DOUBLE",
    "complex64": "MET_FLOAT",
    "complex128": "MET_DOUBLE",
}
"""The MetaImage type of each NumPy dtype."""


class MetaImageHeaderView(View):
    """A MetaImage header of the .raw file. Its axes are the dimensions of the array, the last one first."""

    suffix: ClassVar[str] = ".mhd"
    needs_attributes: ClassVar[bool] = False

    def unsupported_reason(self, presented: PresentedArray) -> str | None:
        return image_unsupported_reason(
            presented, TYPES, "MetaImage", MAX_AXES, MAX_LENGTH
        ) or raw_reference_unsupported_reason(presented)

    def content(self, presented: PresentedArray) -> VirtualFileContent:
        header = _header(presented.array.dtype, stored_grid(presented), presented.name + RawView.suffix)
        return VirtualFileContent([BytesSegment(header)])


class MetaImageView(View):
    """A MetaImage file. Its axes are x, y, z, t, c and others."""

    suffix: ClassVar[str] = ".mha"
    needs_attributes: ClassVar[bool] = False

    def unsupported_reason(self, presented: PresentedArray) -> str | None:
        return image_unsupported_reason(presented, TYPES, "MetaImage", MAX_AXES, MAX_LENGTH)

    def content(self, presented: PresentedArray) -> VirtualFileContent:
        grid = ordered_grid(presented)
        header = _header(presented.array.dtype, grid, "LOCAL")
        return VirtualFileContent([BytesSegment(header), ArraySegment(presented.array, grid.order)])


def _header(dtype: np.dtype[Any], grid: PixelGrid, data_file: str) -> bytes:
    axes = list(grid.axes)
    components = 2 if dtype.kind == "c" else 1
    if axes[0].kind == "channel":
        components *= axes.pop(0).size
    world = grid.world(axes)
    # Each row is the direction of an axis. ITK requires positive spacings.
    directions = [
        part if axis.scale > 0 else 0.0 - part
        for axis, vector in zip(axes, world.directions, strict=True)
        for part in vector
    ]
    fields = {
        "ObjectType": "Image",
        "NDims": len(axes),
        "BinaryData": "True",
        "BinaryDataByteOrderMSB": byte_order(dtype) == "big",
        "CompressedData": "False",
        "TransformMatrix": " ".join(f"{part:.17g}" for part in directions),
        "Offset": " ".join(map(repr, world.origin)),
        "CenterOfRotation": " ".join("0" for _ in axes),
        **_anatomical_orientation(axes, grid),
        "ElementSpacing": " ".join(repr(abs(axis.scale)) for axis in axes),
        "DimSize": " ".join(str(axis.size) for axis in axes),
        "ElementNumberOfChannels": components,
        "ElementType": TYPES[dtype.name],
        # Readers regard this field as the end of the header.
        "ElementDataFile": data_file,
    }
    return "".join(f"{key} = {value}\n" for key, value in fields.items()).encode()


def _anatomical_orientation(axes: Sequence[GridAxis], grid: PixelGrid) -> dict[str, str]:
    """Return the field that states where each spatial axis comes from: right, anterior, inferior, or the opposites.

    It is absent if the image states no orientation.
    """
    vectors = [axis.direction for axis in axes if axis.direction is not None]
    if not grid.frame.is_anatomical or len(vectors) != len(axes):
        return {}
    signs = [math.copysign(1, axis.scale) for axis in axes]
    directions = [(-sign * x, -sign * y, sign * z) for sign, (x, y, z) in zip(signs, vectors, strict=True)]
    letters = [item.value[0].upper() for item in nearest_orientations(directions)]
    return {"AnatomicalOrientation": "".join(letters)}
