""".ome.tif: OME-TIFF, a BigTIFF file with one directory per plane and OME-XML in the first one.

Specification: https://docs.openmicroscopy.org/ome-model/latest/ome-tiff/specification.html. All directories precede the
pixels, so that a program that lists them does not read any chunk.
"""

from __future__ import annotations

from typing import Any, ClassVar

from zarrfs.files.content.content import BytesSegment, Segment, VirtualFileContent
from zarrfs.files.record_segments import RecordSegment
from zarrfs.files.tiff.directories import ASCII, Tag, TiffForm
from zarrfs.files.tiff.plane_order import (
    MAX_LENGTH,
    ImageStack,
    image_stack,
    plane_tags,
    stack_unsupported_reason,
)
from zarrfs.files.view import PresentedArray, View
from zarrfs.files.xml_text import quoteattr
from zarrfs.ngff.geometry import Geometry, Role
from zarrfs.ngff.model import Channel
from zarrfs.text import safe_text

__all__ = ["OmeTifView"]

PIXEL_TYPES = {
    "bool": "uint8",
    "uint8": "uint8",
    "int8": "int8",
    "uint16": "uint16",
    "int16": "int16",
    "uint32": "uint32",
    "int32": "int32",
    "float32": "float",
    "float64": "double",
    "complex64": "complex",
    "complex128": "double-complex",
}
"""Name of a NumPy dtype -> pixel type of OME."""

NAMESPACE = "http://www.openmicroscopy.org/Schemas/OME/2016-06"
DESCRIPTION = 270
MAX_CHANNELS = 1 << 16
ALIGNMENT = 4096
MAX_TEXT_LENGTH = 1000
OPAQUE = 255


class OmeTifView(View):
    """An OME-TIFF file."""

    suffix: ClassVar[str] = ".ome.tif"
    needs_attributes: ClassVar[bool] = False

    def unsupported_reason(self, presented: PresentedArray) -> str | None:
        unsupported_reason = stack_unsupported_reason(presented.array, PIXEL_TYPES, "OME-TIFF")
        if unsupported_reason is not None:
            return unsupported_reason
        sizes = image_stack(presented, keep_order=True, may_be_rgb=True).sizes
        if max(sizes.values()) > MAX_LENGTH:
            return f"the length {max(sizes.values()):,} of an axis exceeds the maximum of OME-TIFF ({MAX_LENGTH:,})"
        if sizes["c"] > MAX_CHANNELS:
            return f"its {sizes['c']:,} channels exceed the maximum of this format ({MAX_CHANNELS:,})"
        return None

    def content(self, presented: PresentedArray) -> VirtualFileContent:
        array = presented.array
        stack = image_stack(presented, keep_order=True, may_be_rgb=True)
        form = TiffForm.of(array.dtype, is_big=True)
        xml = _ome_xml(presented, stack, form).encode() + b"\0"
        description = [Tag(DESCRIPTION, ASCII, xml)]
        image = plane_tags(presented, stack, form)
        plane_nbytes = stack.sizes["x"] * stack.sizes["y"] * array.itemsize * stack.samples
        second = form.header_nbytes + form.directory_nbytes(image.tags(0, description))
        directory_nbytes = form.directory_nbytes(image.tags(0))
        last = stack.plane_count - 1
        end = second + last * directory_nbytes
        start = -(-end // ALIGNMENT) * ALIGNMENT

        def encode_directories(first: int, stop: int) -> bytes:
            return b"".join(
                form.directory(
                    image.tags(start + (number + 1) * plane_nbytes),
                    second + number * directory_nbytes,
                    second + (number + 1) * directory_nbytes if number + 1 < last else 0,
                )
                for number in range(first, stop)
            )

        header = form.header() + form.directory(
            image.tags(start, description), form.header_nbytes, second if last else 0
        )
        segments: list[Segment] = [
            BytesSegment(header),
            RecordSegment(last, directory_nbytes, encode_directories),
            BytesSegment(bytes(start - end)),
            stack.segment(array),
        ]
        return VirtualFileContent(segments)


def _ome_xml(presented: PresentedArray, stack: ImageStack, form: TiffForm) -> str:
    """Return the OME-XML document.

    It contains no character references: Bio-Formats replaces ``&#`` by spaces and does not find the unit ``&#181;m``.
    """
    geometry = presented.geometry
    sizes = stack.sizes
    pixels: dict[str, Any] = {
        "ID": "Pixels:0",
        # The document lists the axes from the fastest one to the slowest one.
        "DimensionOrder": "XY" + "".join(reversed(stack.stack_axes)).upper(),
        "Type": PIXEL_TYPES[presented.array.dtype.name],
        "BigEndian": "true" if form.order == ">" else "false",
        "Interleaved": "false" if stack.samples == 1 else "true",
        **{f"Size{role.upper()}": sizes[role] for role in ("x", "y", "z", "c", "t")},
        "SizeC": sizes["c"] * stack.samples,
        **_physical_sizes(geometry, stack),
    }
    name = geometry.image_name or presented.name
    channels = "".join(
        _channel(
            number, geometry.channels[number] if number < len(geometry.channels) else None, stack.samples
        )
        for number in range(sizes["c"])
    )
    return (
        '<?xml version="1.0" encoding="UTF-8"?>'
        f'<OME xmlns="{NAMESPACE}" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" '
        f'xsi:schemaLocation="{NAMESPACE} {NAMESPACE}/ome.xsd" Creator="zarrfs">'
        f'<Image ID="Image:0" Name={_quoted(name)}>'
        f"<Pixels {_attributes(pixels)}>{channels}"
        f'<TiffData IFD="0" PlaneCount="{stack.plane_count}"/></Pixels></Image></OME>'
    )


def _physical_sizes(geometry: Geometry, stack: ImageStack) -> dict[str, Any]:
    sizes: dict[str, Any] = {}
    roles: list[Role] = [role for role in ("x", "y", "z") if role in stack.dimensions]
    grid = geometry.physical_grid([stack.dimensions[role] for role in roles], "micrometer")
    for role, scale in zip(roles, grid.scale, strict=True):
        if grid.unit is not None:
            sizes[f"PhysicalSize{role.upper()}"] = repr(abs(scale))
            sizes[f"PhysicalSize{role.upper()}Unit"] = "µm"
        elif any(distance != 1 for distance in grid.scale):
            sizes[f"PhysicalSize{role.upper()}"] = repr(abs(scale))
            sizes[f"PhysicalSize{role.upper()}Unit"] = "reference frame"
    if "t" in stack.dimensions and len(stack.order) == len(stack.dimensions):
        interval = geometry.physical_grid([stack.dimensions["t"]], "second")
        if interval.unit is not None:
            sizes["TimeIncrement"] = repr(abs(interval.scale[0]))
            sizes["TimeIncrementUnit"] = "s"
    return sizes


def _channel(number: int, channel: Channel | None, samples: int) -> str:
    attributes: dict[str, Any] = {"ID": f"Channel:0:{number}"}
    if samples > 1:
        channel = None  # it describes one of the samples
    if channel is not None and channel.label:
        attributes["Name"] = channel.label
    attributes["SamplesPerPixel"] = samples
    if channel is not None and channel.color is not None:
        # RGBA as a signed integer.
        rgba = int.from_bytes(bytes((*channel.color, OPAQUE)), "big")
        attributes["Color"] = rgba - (1 << 32 if rgba >= 1 << 31 else 0)
    return f"<Channel {_attributes(attributes)}/>"


def _attributes(values: dict[str, Any]) -> str:
    return " ".join(f"{name}={_quoted(str(value))}" for name, value in values.items())


def _quoted(text: str) -> str:
    """Return an attribute value in quotes, without the characters that XML does not allow."""
    return quoteattr(safe_text(text, MAX_TEXT_LENGTH))
