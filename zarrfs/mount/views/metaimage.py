""".mhd: a MetaImage header that refers to the .raw file. .mha: the same with the elements in one file, x first.

Specification: https://itk.org/Wiki/ITK/MetaIO/Documentation. The channels are components of each pixel if they are
adjacent in the bytes, as in an RGB image, and an axis of the image otherwise. A complex number is two components.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from zarrfs.mount.reading.content import ArraySegment, BytesSegment, VirtualFileContent
from zarrfs.mount.views.base import PresentedArray, View
from zarrfs.mount.views.byte_order import byte_order
from zarrfs.mount.views.pixel_grids import PixelGrid, image_refusal, ordered_grid, stored_grid
from zarrfs.mount.views.raw import RawView, raw_reference_refusal

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

    def refusal(self, presented: PresentedArray) -> str | None:
        return image_refusal(presented, TYPES, "MetaImage", MAX_AXES, MAX_LENGTH) or raw_reference_refusal(
            presented
        )

    def content(self, presented: PresentedArray) -> VirtualFileContent:
        header = _header(presented.array.dtype, stored_grid(presented), presented.name + RawView.suffix)
        return VirtualFileContent([BytesSegment(header)])


class MetaImageView(View):
    """A MetaImage file. Its axes are x, y, z, t, c and others."""

    suffix: ClassVar[str] = ".mha"
    needs_attributes: ClassVar[bool] = False

    def refusal(self, presented: PresentedArray) -> str | None:
        return image_refusal(presented, TYPES, "MetaImage", MAX_AXES, MAX_LENGTH)

    def content(self, presented: PresentedArray) -> VirtualFileContent:
        grid = ordered_grid(presented)
        header = _header(presented.array.dtype, grid, "LOCAL")
        return VirtualFileContent([BytesSegment(header), ArraySegment(presented.array, grid.order)])


def _header(dtype: np.dtype[Any], grid: PixelGrid, data_file: str) -> bytes:
    axes = list(grid.axes)
    components = 2 if dtype.kind == "c" else 1
    if axes[0].kind == "channel":
        components *= axes.pop(0).size
    by_world = sorted(axes, key=lambda axis: axis.world)
    # Each row is the direction of an axis. ITK requires positive spacings.
    directions = [
        (0 if other is not axis else 1 if axis.scale > 0 else -1) for axis in axes for other in by_world
    ]
    fields = {
        "ObjectType": "Image",
        "NDims": len(axes),
        "BinaryData": "True",
        "BinaryDataByteOrderMSB": byte_order(dtype) == "big",
        "CompressedData": "False",
        "TransformMatrix": " ".join(map(str, directions)),
        "Offset": " ".join(repr(axis.origin) for axis in by_world),
        "CenterOfRotation": " ".join("0" for _ in axes),
        "ElementSpacing": " ".join(repr(abs(axis.scale)) for axis in axes),
        "DimSize": " ".join(str(axis.size) for axis in axes),
        "ElementNumberOfChannels": components,
        "ElementType": TYPES[dtype.name],
        # Readers regard this field as the end of the header.
        "ElementDataFile": data_file,
    }
    return "".join(f"{key} = {value}\n" for key, value in fields.items()).encode()
