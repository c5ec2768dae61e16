""".vrt: a GDAL virtual data set whose bands are planes of the .raw file.

Specification: https://gdal.org/en/stable/drivers/raster/vrt.html (VRTRawRasterBand). The axes x and y are samples and
lines wherever they are in the array; without such axes these are the last two dimensions.
"""

from __future__ import annotations

from typing import ClassVar

from zarrfs.files.byte_order import byte_order
from zarrfs.files.content.content import BytesSegment, VirtualFileContent
from zarrfs.files.hdf5.h5_view import has_position
from zarrfs.files.rasters.bands import Raster, raster, raster_unsupported_reason
from zarrfs.files.raw.view import RawView
from zarrfs.files.view import PresentedArray, View
from zarrfs.files.xml_text import escape

__all__ = ["VrtView"]

TYPES = {
    "bool": "Byte",
    "uint8": "Byte",
    "int8": "Int8",
    "uint16": "UInt16",
    "int16": "Int16",
    "uint32": "UInt32",
    "int32": "Int32",
    "uint64": "UInt64",
    "int64": "Int64",
    "float32": "Float32",
    "float64": "Float64",
    "complex64": "CFloat32",
    "complex128": "CFloat64",
}
"""Name of a NumPy dtype -> GDAL data type."""


class VrtView(View):
    """A GDAL virtual data set."""

    suffix: ClassVar[str] = ".vrt"
    needs_attributes: ClassVar[bool] = False

    def unsupported_reason(self, presented: PresentedArray) -> str | None:
        return raster_unsupported_reason(presented, TYPES, "GDAL")

    def content(self, presented: PresentedArray) -> VirtualFileContent:
        array = presented.array
        grid = raster(presented, keep_order=False)
        source = escape(presented.name + RawView.suffix)
        order = "MSB" if byte_order(array.dtype) == "big" else "LSB"
        data_type = TYPES[array.dtype.name]
        lines = [f'<VRTDataset rasterXSize="{grid.width}" rasterYSize="{grid.height}">', *_position(grid)]
        for number, (offset, name) in enumerate(zip(grid.band_offsets, grid.band_names, strict=True), 1):
            lines += [
                f'<VRTRasterBand dataType="{data_type}" band="{number}" subClass="VRTRawRasterBand">',
                *([f"<Description>{escape(name)}</Description>"] if name else []),
                f'<SourceFilename relativeToVRT="1">{source}</SourceFilename>',
                f"<ImageOffset>{offset * array.itemsize}</ImageOffset>",
                f"<PixelOffset>{grid.pixel_stride * array.itemsize}</PixelOffset>",
                f"<LineOffset>{grid.line_stride * array.itemsize}</LineOffset>",
                f"<ByteOrder>{order}</ByteOrder>",
                "</VRTRasterBand>",
            ]
        lines.append("</VRTDataset>")
        return VirtualFileContent([BytesSegment(("\n".join(lines) + "\n").encode())])


def _position(grid: Raster) -> list[str]:
    """Return the elements with the position of the corner of the first pixel, the pixel size, and the unit."""
    x, y = grid.x, grid.y
    if not (has_position(x) or has_position(y)):
        return []
    numbers = (x.translation - x.scale / 2, x.scale, 0.0, y.translation - y.scale / 2, 0.0, y.scale)
    lines = [f"<GeoTransform>{', '.join(map(repr, numbers))}</GeoTransform>"]
    if x.unit is not None and x.unit == y.unit:
        lines.append(f'<Metadata><MDI key="UNIT">{escape(x.unit)}</MDI></Metadata>')
    return lines
