"""Regions as ROI of ImageJ, with the package roifile."""

from __future__ import annotations

import math
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from zarrfs.errors import UnsupportedError, ZarrError
from zarrfs.plugins import install_hint
from zarrfs_viewer.analysis.regions import Region, unique_name
from zarrfs_viewer.analysis.shapes import Point, Shape

__all__ = ["read_rois", "write_rois"]

CORNER = 0.5
"""The coordinate of the centre of the first pixel, for areas; for lines and points it is 0."""

MAX_ROI_NBYTES = 1 << 26


def _roifile() -> Any:
    try:
        return import_module("roifile")
    except ModuleNotFoundError as error:
        raise UnsupportedError(f"ImageJ ROIs need the package roifile: {install_hint('roi')}") from error


def write_rois(file: Path, regions: Sequence[Region], is_set: bool) -> None:
    """Write a .roi file with one region, or a set of regions as .zip. Blocks. Raises ZarrError, OSError."""
    library = _roifile()
    contents = [(region.name, _to_roi(library, region).tobytes()) for region in regions]
    if not is_set:
        file.write_bytes(contents[0][1])
        return
    import zipfile

    members: list[str] = []
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in contents:
            member = unique_name(name.replace("/", "_").replace("\\", "_"), members)
            members.append(member)
            archive.writestr(f"{member}.roi", content)


def _to_roi(library: Any, region: Region) -> Any:
    """Return the ROI of a region, with sub-pixel coordinates."""
    shape, types = region.shape, library.ROI_TYPE
    top, left, bottom, right = (value + CORNER for value in shape.rect)
    if shape.kind == "polygon":
        roi = library.ImagejRoi.frompoints([(float(x) + CORNER, float(y) + CORNER) for y, x in shape.points])
        roi.roitype = types.POLYGON
    elif shape.kind == "point":
        roi = library.ImagejRoi.frompoints([(float(shape.start[1]), float(shape.start[0]))])
        roi.roitype = types.POINT
    else:
        roi = library.ImagejRoi()
        roi.options = library.ROI_OPTIONS.SUB_PIXEL_RESOLUTION
        roi.left, roi.top = math.floor(left), math.floor(top)
        roi.right, roi.bottom = math.ceil(right), math.ceil(bottom)
        if shape.kind == "line":
            roi.roitype = types.LINE
            (roi.y1, roi.x1), (roi.y2, roi.x2) = shape.start, shape.end
        else:
            roi.roitype = types.RECT if shape.kind == "rectangle" else types.OVAL
            roi.xd, roi.yd, roi.widthd, roi.heightd = left, top, right - left, bottom - top
    roi.name = region.name
    return roi


def read_rois(file: Path, max_regions: int) -> tuple[list[Region], list[str]]:
    """Return the regions of a .roi file or of a set, and the names of the regions that have no equivalent. Blocks.

    Raises ZarrError, OSError, or ValueError if the content is not valid.
    """
    library = _roifile()
    regions, skipped = [], []
    for member, content in _contents(file, max_regions):
        try:
            roi = library.ImagejRoi.frombytes(content)
        except Exception as error:  # struct.error and others, for damaged files
            raise ValueError(f"{member} cannot be read: {error}") from error
        name = roi.name or member
        shape = _to_shape(library, roi)
        if shape is None:
            skipped.append(name)
        else:
            regions.append(Region(name, shape))
    return regions, skipped


def _contents(file: Path, max_regions: int) -> list[tuple[str, bytes]]:
    """Return the names and the contents of the ROI in a file."""
    if file.suffix.lower() != ".zip":
        return [(file.stem, file.read_bytes())]
    import zipfile

    try:
        with zipfile.ZipFile(file) as archive:
            members = [info for info in archive.infolist() if info.filename.lower().endswith(".roi")]
            total = sum(info.file_size for info in members)
            if total > MAX_ROI_NBYTES or len(members) > max_regions:
                raise ZarrError(
                    f"{file} contains {len(members)} regions with {total} bytes; "
                    f"expected at most {max_regions} with {MAX_ROI_NBYTES}"
                )
            return [(Path(info.filename).stem, archive.read(info)) for info in members]
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError) as error:
        raise ValueError(f"the archive is damaged: {error}") from error


def _to_shape(library: Any, roi: Any) -> Shape | None:
    """Return the shape of a ROI, or None for kinds without equivalent, such as text, angles and composite shapes."""
    types, subtypes = library.ROI_TYPE, library.ROI_SUBTYPE
    if roi.multi_coordinates is not None or roi.subtype not in (subtypes.UNDEFINED,):
        return None
    if roi.roitype == types.LINE:
        return Shape("line", ((float(roi.y1), float(roi.x1)), (float(roi.y2), float(roi.x2))))
    if roi.roitype in (types.RECT, types.OVAL):
        kind = "rectangle" if roi.roitype == types.RECT else "ellipse"
        left, top, width, height = float(roi.xd), float(roi.yd), float(roi.widthd), float(roi.heightd)
        if not (roi.options & library.ROI_OPTIONS.SUB_PIXEL_RESOLUTION) or width <= 0 or height <= 0:
            left, top, width, height = roi.left, roi.top, roi.right - roi.left, roi.bottom - roi.top
        corners = (top - CORNER, left - CORNER), (top + height - CORNER, left + width - CORNER)
        return Shape("rectangle" if kind == "rectangle" else "ellipse", corners)
    points: list[tuple[float, float]] = [(float(x), float(y)) for x, y in roi.coordinates()]
    if roi.roitype == types.POINT and len(points) == 1:
        return Shape("point", ((points[0][1], points[0][0]),))
    if roi.roitype in (types.POLYGON, types.FREEHAND, types.TRACED) and len(points) >= 3:
        vertices: tuple[Point, ...] = tuple((y - CORNER, x - CORNER) for x, y in points)
        return Shape("polygon", vertices)
    return None
