""".hdr: an ENVI header of the .raw file, in band sequential order (bsq).

Specification: https://www.nv5geospatialsoftware.com/docs/ENVIHeaderFiles.html. Samples are the last dimension of the
array, lines the second last one, and bands all others.
"""

from __future__ import annotations

from typing import ClassVar

from zarrfs.files.byte_order import byte_order
from zarrfs.files.content.content import BytesSegment, VirtualFileContent
from zarrfs.files.rasters.bands import Raster, raster, raster_unsupported_reason
from zarrfs.files.view import PresentedArray, View
from zarrfs.ngff.units import convert

__all__ = ["EnviView"]

TYPES = {
    "bool": 1,
    "uint8": 1,
    "int16": 2,
    "int32": 3,
    "float32": 4,
    "float64": 5,
    "complex64": 6,
    "complex128": 9,
    "uint16": 12,
    "uint32": 13,
    "int64": 14,
    "uint64": 15,
}
"""Name of a NumPy dtype -> ENVI data type."""


class EnviView(View):
    """An ENVI header. Programs open the .raw file and find the header next to it."""

    suffix: ClassVar[str] = ".hdr"
    needs_attributes: ClassVar[bool] = False

    def unsupported_reason(self, presented: PresentedArray) -> str | None:
        return raster_unsupported_reason(presented, TYPES, "ENVI")

    def content(self, presented: PresentedArray) -> VirtualFileContent:
        array = presented.array
        grid = raster(presented, keep_order=True)
        description = presented.name.translate({ord(brace): None for brace in "{}"})
        fields = {
            "description": f"{{{description}}}",
            "samples": grid.width,
            "lines": grid.height,
            "bands": len(grid.band_names),
            "header offset": 0,
            "file type": "ENVI Standard",
            "data type": TYPES[array.dtype.name],
            "interleave": "bsq",
            "byte order": int(byte_order(array.dtype) == "big"),
        }
        pixel_size = _pixel_size(grid)
        if pixel_size is not None:
            fields["pixel size"] = pixel_size
        if len(grid.band_names) > 1:
            fields["band names"] = f"{{{', '.join(grid.band_names)}}}"
        text = "ENVI\n" + "".join(f"{name} = {value}\n" for name, value in fields.items())
        return VirtualFileContent([BytesSegment(text.encode())])


def _pixel_size(grid: Raster) -> str | None:
    """Return the distances of samples and lines in metres, or as stored if their unit is unknown."""
    if all(axis.unit is None and axis.scale == 1 for axis in (grid.x, grid.y)):
        return None
    meters = [convert(abs(axis.scale), axis.unit, "meter") for axis in (grid.x, grid.y)]
    if None in meters:
        return f"{{{abs(grid.x.scale)!r}, {abs(grid.y.scale)!r}}}"
    return f"{{{meters[0]!r}, {meters[1]!r}, units=Meters}}"
