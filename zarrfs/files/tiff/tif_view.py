""".tif: an ImageJ hyperstack.

The file has one image file directory, which describes the first plane. All planes follow each other in the order XYCZT,
also beyond 4 GiB. The description and the tags with colours and display ranges are those of ``ij.io.FileInfo`` and
``ij.io.TiffEncoder`` of https://github.com/imagej/ImageJ.
"""

from __future__ import annotations

import struct
from typing import ClassVar

from zarrfs.files.content.content import BytesSegment, VirtualFileContent
from zarrfs.files.tiff.directories import ASCII, BYTE, LONG, MAX_LONG, ImageTags, Tag, TiffForm
from zarrfs.files.tiff.plane_order import ImageStack, image_stack, plane_resolution, stack_unsupported_reason
from zarrfs.files.view import PresentedArray, View
from zarrfs.ngff.geometry import Geometry, Role
from zarrfs.ngff.model import Channel

__all__ = ["TifView"]

TYPES = frozenset(("bool", "uint8", "uint16", "int16", "uint32", "int32", "float32"))
"""The names of dtypes that ImageJ opens with the right values."""

VERSION = "1.54f"
MAX_IMAGES = 2**31 - 1
MAX_COMPOSITE_CHANNELS = 7
ALIGNMENT = 64

DESCRIPTION = 270
METADATA_COUNTS, METADATA = 50838, 50839
MAGIC, RANGES, LUTS = b"IJIJ", b"rang", b"luts"
LUT_LENGTH = 256


class TifView(View):
    """A hyperstack as written by ImageJ."""

    suffix: ClassVar[str] = ".tif"
    needs_attributes: ClassVar[bool] = False

    def unsupported_reason(self, presented: PresentedArray) -> str | None:
        array = presented.array
        unsupported_reason = stack_unsupported_reason(array, TYPES, "ImageJ")
        if unsupported_reason is not None:
            return unsupported_reason
        stack = image_stack(presented, may_be_rgb=True)
        width, height = stack.sizes["x"], stack.sizes["y"]
        if width * height * array.itemsize * stack.samples > MAX_LONG or width * height > MAX_IMAGES:
            return f"a plane of {width} x {height} elements exceeds the limits of ImageJ; use .ome.tif"
        if stack.plane_count > MAX_IMAGES:
            return f"its {stack.plane_count:,} planes exceed the maximum of ImageJ ({MAX_IMAGES:,})"
        return None

    def content(self, presented: PresentedArray) -> VirtualFileContent:
        array, geometry = presented.array, presented.geometry
        stack = image_stack(presented, may_be_rgb=True)
        form = TiffForm.of(array.dtype, is_big=False)
        lines, scale = _calibration(geometry, stack)
        description = "".join(f"{line}\n" for line in [*_dimensions(stack), *lines]).encode() + b"\0"
        extra = [Tag(DESCRIPTION, ASCII, description)]
        if stack.samples == 1:
            extra += _display_tags(form, geometry.channels, stack.sizes["c"])
        image = ImageTags(
            form,
            array.dtype,
            stack.sizes["x"],
            stack.sizes["y"],
            None if scale is None else plane_resolution({"x": scale[0], "y": scale[1]}),
            samples=stack.samples,
        )
        end = form.header_nbytes + form.directory_nbytes(image.tags(0, extra))
        start = -(-end // ALIGNMENT) * ALIGNMENT
        header = form.header() + form.directory(image.tags(start, extra), form.header_nbytes, 0)
        return VirtualFileContent([BytesSegment(header.ljust(start, b"\0")), stack.segment(array)])


def _dimensions(stack: ImageStack) -> list[str]:
    """Return the lines of the description that define the shape of the hyperstack."""
    lines = [f"ImageJ={VERSION}"]
    if stack.plane_count > 1:
        lines.append(f"images={stack.plane_count}")
    sizes = {"channels": stack.sizes["c"], "slices": stack.sizes["z"], "frames": stack.sizes["t"]}
    lines += [f"{name}={size}" for name, size in sizes.items() if size > 1]
    if sum(size > 1 for size in sizes.values()) > 1:
        lines.append("hyperstack=true")
    if sizes["channels"] > 1:
        is_composite = sizes["channels"] <= MAX_COMPOSITE_CHANNELS
        lines.append(f"mode={'composite' if is_composite else 'grayscale'}")
    return lines


def _calibration(geometry: Geometry, stack: ImageStack) -> tuple[list[str], tuple[float, float] | None]:
    """Return the lines of the description about distances, and the distances in x and y; None if they are unknown."""
    lines = []
    roles: list[Role] = [role for role in ("x", "y", "z") if role in stack.dimensions]
    grid = geometry.physical_grid([stack.dimensions[role] for role in roles], "micrometer")
    scale = {role: abs(distance) for role, distance in zip(roles, grid.scale, strict=True)}
    if roles and grid.unit is not None:
        lines.append("unit=micron")
    if "z" in scale and (grid.unit is not None or scale["z"] != 1):
        lines.append(f"spacing={scale['z']!r}")
    for role, distance, position in zip(roles, grid.scale, grid.translation, strict=True):
        if position:
            # The index of the element at the origin of the coordinates.
            lines.append(f"{role}origin={-position / distance!r}")
    if "t" in stack.dimensions and len(stack.order) == len(stack.dimensions):
        interval = geometry.physical_grid([stack.dimensions["t"]], "second")
        if interval.unit is not None:
            lines.append(f"finterval={abs(interval.scale[0])!r}")
    lines.append("loop=false")
    if grid.unit is None and all(distance == 1 for distance in scale.values()):
        return lines, None
    return lines, (scale.get("x", 1.0), scale.get("y", scale.get("x", 1.0)))


def _display_tags(form: TiffForm, channels: tuple[Channel, ...], count: int) -> list[Tag]:
    """Return the tags with the display range and the lookup table of each channel.

    ImageJ ignores incomplete lists, so that a kind is omitted unless all channels have it.
    """
    channels = channels[:count]
    if len(channels) < count:
        return []
    items: list[tuple[bytes, list[bytes]]] = []
    limits = [
        (channel.window.start, channel.window.end) for channel in channels if channel.window is not None
    ]
    if len(limits) == count:
        items.append(
            (RANGES, [struct.pack(f"{form.order}{2 * count}d", *(n for pair in limits for n in pair))])
        )
    colors = [channel.color for channel in channels if channel.color is not None]
    if len(colors) == count:
        items.append((LUTS, [_lookup_table(color) for color in colors]))
    if not items:
        return []
    header = MAGIC if form.order == ">" else MAGIC[::-1]
    for kind, values in items:
        header += struct.pack(f"{form.order}4sI", kind if form.order == ">" else kind[::-1], len(values))
    counts = [len(header), *(len(value) for _, values in items for value in values)]
    data = header + b"".join(value for _, values in items for value in values)
    return [Tag(METADATA_COUNTS, LONG, counts), Tag(METADATA, BYTE, data)]


def _lookup_table(color: tuple[int, int, int]) -> bytes:
    """Return the red, green and blue values of a table from black to a colour."""
    return bytes(part * index // (LUT_LENGTH - 1) for part in color for index in range(LUT_LENGTH))
