""".vti: VTK XML image data, which ParaView, VTK and PyVista open. The elements are appended in raw encoding.

Specification: https://docs.vtk.org/en/latest/vtk_file_formats/vtkxml_file_format.html. Each channel and
each time is an array of the points; channels that are adjacent in the bytes are the components of one array, as in an
RGB image. VTK has no units: lengths are in the unit of the x axis. The attribute ``TimeValues`` is not used, because
VTK 9 then ignores the spacing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import ClassVar

from zarrfs.engine.indexing.flat_ranges import FlatOrder
from zarrfs.files.byte_order import byte_order
from zarrfs.files.content.content import ArraySegment, BytesSegment, PartSegment, Segment, VirtualFileContent
from zarrfs.files.pixel_grids import array_unsupported_reason
from zarrfs.files.view import PresentedArray, View
from zarrfs.files.xml_text import quoteattr
from zarrfs.ngff.geometry import Geometry, Role

__all__ = ["VtiView"]

TYPES = {
    "bool": "UInt8",
    **{
        f"{sign}int{bits}": f"{prefix}Int{bits}"
        for sign, prefix in (("", ""), ("u", "U"))
        for bits in (8, 16, 32, 64)
    },
    "float32": "Float32",
    "float64": "Float64",
    "complex64": "Float32",
    "complex128": "Float64",
}
"""The VTK type of each NumPy dtype. A complex number is two components."""

MAX_ARRAYS = 1024
"""The maximum number of arrays of points: one for each time, channel and index of other dimensions."""

MAX_LENGTH = 2**31 - 1
"""The extents of VTK are 32-bit integers."""

MAX_NAME_LENGTH = 200

SPACE_ROLES: tuple[Role, ...] = ("x", "y", "z")


@dataclass(frozen=True)
class _Layout:
    """How the dimensions of an array become arrays of points.

    Attributes:
        space: the dimensions that are x, y and z, or None.
        components: the dimension whose elements are the components of an array, or None.
        outer: the dimensions that select an array, the slowest one first.
        order: the order of the dimensions in the bytes: the outer ones, z, y, x, and the components.
    """

    space: tuple[int | None, ...]
    components: int | None
    outer: tuple[int, ...]
    order: FlatOrder


class VtiView(View):
    """A VTK XML image data file."""

    suffix: ClassVar[str] = ".vti"
    needs_attributes: ClassVar[bool] = False

    def unsupported_reason(self, presented: PresentedArray) -> str | None:
        array = presented.array
        reason = array_unsupported_reason(array, TYPES, "VTK", MAX_LENGTH)
        if reason is not None:
            return reason
        count = prod(array.shape[i] for i in _layout(presented).outer)
        if count > MAX_ARRAYS:
            return (
                f"its dimensions other than x, y and z have {count:,} combinations of indices, each of which would be "
                f"an array of points, expected at most {MAX_ARRAYS:,}"
            )
        return None

    def content(self, presented: PresentedArray) -> VirtualFileContent:
        array, layout = presented.array, _layout(presented)
        blocks = prod(array.shape[i] for i in layout.outer)
        block_nbytes = array.nbytes // blocks
        body = ArraySegment(array, layout.order)
        length = BytesSegment(block_nbytes.to_bytes(8, byte_order(array.dtype) or "little"))
        segments: list[Segment] = [BytesSegment(_header(presented, layout, block_nbytes + 8))]
        for block in range(blocks):
            segments += [length, PartSegment(body, block * block_nbytes, block_nbytes)]
        return VirtualFileContent([*segments, BytesSegment(b"\n  </AppendedData>\n</VTKFile>\n")])


def _layout(presented: PresentedArray) -> _Layout:
    geometry, ndim = presented.geometry, presented.array.ndim
    space = tuple(geometry.find(role) for role in SPACE_ROLES)
    slices = [i for i in reversed(space) if i is not None]
    last = ndim - 1
    components = last if ndim > 1 and geometry.axes[last].role == "c" else None
    inner = [*slices, *([] if components is None else [components])]
    outer = tuple(i for i in range(ndim) if i not in inner)
    return _Layout(space, components, outer, (*outer, *inner))


def _header(presented: PresentedArray, layout: _Layout, stride: int) -> bytes:
    """Return the text up to the appended data, in which an array begins every ``stride`` bytes."""
    array, geometry = presented.array, presented.geometry
    present = [i for i in layout.space if i is not None]
    unit = geometry.axes[layout.space[0]].unit if layout.space[0] is not None else None
    grid = geometry.physical_grid(present, unit or "millimeter")
    scale = [1.0 if i is None else grid.scale[present.index(i)] for i in layout.space]
    origin = [0.0 if i is None else grid.translation[present.index(i)] for i in layout.space]
    extent = " ".join(f"0 {0 if i is None else array.shape[i] - 1}" for i in layout.space)
    # VTK requires positive spacings.
    direction = " ".join(
        str(0 if row != column else 1 if scale[row] > 0 else -1) for row in range(3) for column in range(3)
    )
    attributes = {
        "WholeExtent": extent,
        "Origin": " ".join(map(repr, origin)),
        "Spacing": " ".join(repr(abs(number)) for number in scale),
        "Direction": direction,
    }
    components = 1 if layout.components is None else array.shape[layout.components]
    components *= 2 if array.dtype.kind == "c" else 1
    names = list(_array_names(geometry, layout, array.shape))
    arrays = [
        f'        <DataArray type="{TYPES[array.dtype.name]}" Name={quoteattr(name)} '
        f'NumberOfComponents="{components}" format="appended" offset="{number * stride}"/>\n'
        for number, name in enumerate(names)
    ]
    endianness = {"little": "LittleEndian", "big": "BigEndian"}[byte_order(array.dtype) or "little"]
    text = (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        f'<VTKFile type="ImageData" version="1.0" byte_order="{endianness}" header_type="UInt64">\n'
        f"  <ImageData {' '.join(f'{key}={quoteattr(value)}' for key, value in attributes.items())}>\n"
        f'    <Piece Extent="{extent}">\n'
        f"      <PointData Scalars={quoteattr(names[0])}>\n{''.join(arrays)}      </PointData>\n"
        '      <CellData/>\n    </Piece>\n  </ImageData>\n  <AppendedData encoding="raw">\n   _'
    )
    return text.encode()


def _array_names(geometry: Geometry, layout: _Layout, shape: tuple[int, ...]) -> Iterator[str]:
    """Yield the name of each array of points, in the order of the bytes, such as ``DAPI, t 5``."""
    named = [i for i in layout.outer if shape[i] > 1 or geometry.axes[i].role == "c"]
    # The name of the channel comes first.
    shown = sorted(named, key=lambda i: geometry.axes[i].role != "c")
    for indices in product(*(range(shape[i]) for i in layout.outer)):
        index_of = dict(zip(layout.outer, indices, strict=True))
        yield ", ".join(_index_name(geometry, i, index_of[i]) for i in shown) or "values"


def _index_name(geometry: Geometry, dimension: int, index: int) -> str:
    axis = geometry.axes[dimension]
    if axis.role == "c":
        return _channel_name(geometry, index)
    return f"{_printable(axis.name) or f'dim {dimension}'} {index}"


def _channel_name(geometry: Geometry, index: int) -> str:
    labels: Sequence[str | None] = [channel.label for channel in geometry.channels]
    label = _printable(labels[index]) if index < len(labels) else ""
    # Names of arrays are unique.
    return label if label and labels.count(labels[index]) == 1 else f"channel {index}"


def _printable(text: str | None) -> str:
    return text if text is not None and text.isprintable() and len(text) <= MAX_NAME_LENGTH else ""
