"""Files of regions: ImageJ ROI, GeoJSON, and the CSV table of vertices that napari reads.

Regions are in data coordinates, in which the centre of the first pixel is 0. ImageJ and GeoJSON (as QuPath writes it)
count areas from the corner of the first pixel, so that their coordinates are larger by 0.5; lines and points of ImageJ
refer to centres of pixels. Coordinates of napari are those of the viewer.
"""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from zarrfs.errors import StoreError, ZarrError
from zarrfs_viewer.analysis.regions import Region, unique_name
from zarrfs_viewer.analysis.shapes import Point, Shape, ShapeKind
from zarrfs_viewer.export.imagej_rois import read_rois, write_rois
from zarrfs_viewer.export.replacing import replacing

__all__ = ["SUFFIXES", "read_regions", "write_regions"]

SUFFIXES = {
    ".geojson": "GeoJSON",
    ".csv": "CSV of vertices (napari)",
    ".zip": "ImageJ ROI set",
    ".roi": "ImageJ ROI",
}
"""The formats, which are recognized by the suffix of the file."""

MAX_FILE_NBYTES = 1 << 26
MAX_REGIONS = 10_000
MAX_VERTICES = 1_000_000
ELLIPSE_VERTICES = 64
CSV_HEADER = ("index", "shape-type", "vertex-index", "axis-0", "axis-1", "name")
KINDS: tuple[ShapeKind, ...] = ("point", "line", "rectangle", "ellipse", "polygon")
CORNER = 0.5
"""The coordinate of the centre of the first pixel where its corner is 0."""


def write_regions(file: Path, regions: Sequence[Region]) -> None:
    """Write regions in the format of the suffix. The file is replaced atomically. Blocks.

    Raises StoreError if the file cannot be written, and ZarrError if the suffix is unknown or a package is missing.
    """
    suffix = _known_suffix(file)
    if suffix == ".roi" and len(regions) != 1:
        raise ZarrError(
            f"{file}: a .roi file has one region, found {len(regions)}; save several regions as .zip"
        )
    with replacing(file) as temporary:
        if suffix == ".geojson":
            temporary.write_text(_to_geojson(regions), encoding="utf-8")
        elif suffix == ".csv":
            temporary.write_bytes(_to_csv(regions).encode("utf-8"))
        else:
            write_rois(temporary, regions, is_set=suffix == ".zip")


def read_regions(file: Path) -> tuple[list[Region], list[str]]:
    """Return the regions of a file, and the names of the regions that the viewer cannot represent. Blocks.

    Names are made unique. Raises StoreError if the file cannot be read, and ZarrError if its content is not valid.
    """
    suffix = _known_suffix(file)
    try:
        size = file.stat().st_size
        if size > MAX_FILE_NBYTES:
            raise ZarrError(
                f"{file} has {size} bytes; expected a file of regions with at most {MAX_FILE_NBYTES}"
            )
        if suffix in (".roi", ".zip"):
            found, skipped = read_rois(file, MAX_REGIONS)
        else:
            text = file.read_text(encoding="utf-8-sig")
            found, skipped = _from_geojson(text) if suffix == ".geojson" else _from_csv(text)
    except OSError as error:
        raise StoreError(f"{file} cannot be read: {error.strerror or error}", error.errno) from error
    except (ValueError, KeyError, TypeError, IndexError, OverflowError, RecursionError) as error:
        raise ZarrError(f"{file} is not a valid file of the format {SUFFIXES[suffix]}: {error}") from error
    if len(found) > MAX_REGIONS:
        raise ZarrError(f"{file} has {len(found)} regions; expected at most {MAX_REGIONS}")
    return _checked(file, found), skipped


def _known_suffix(file: Path) -> str:
    suffix = file.suffix.lower()
    suffix = ".geojson" if suffix == ".json" else suffix
    if suffix not in SUFFIXES:
        raise ZarrError(f"{file}: the suffix {file.suffix!r} is not known; expected {', '.join(SUFFIXES)}")
    return suffix


def _checked(file: Path, regions: Iterable[Region]) -> list[Region]:
    """Check that all coordinates are finite, and make the names unique."""
    checked: list[Region] = []
    names: list[str] = []
    for region in regions:
        points = region.shape.points
        if len(points) > MAX_VERTICES or not all(math.isfinite(v) for point in points for v in point):
            raise ZarrError(
                f"{file}: the region {region.name!r} has invalid coordinates; expected finite numbers"
            )
        if region.shape.is_empty:
            continue
        name = unique_name(region.name or f"{region.shape.kind} {len(names) + 1}", names)
        names.append(name)
        checked.append(Region(name, region.shape))
    return checked


# -- GeoJSON ---------------------------------------------------------------------------------------------------


def _to_geojson(regions: Sequence[Region]) -> str:
    features = []
    for region in regions:
        kind = region.shape.kind
        positions = [[x + CORNER, y + CORNER] for y, x in _outline(region.shape)]
        geometry: dict[str, Any]
        if kind == "point":
            geometry = {"type": "Point", "coordinates": positions[0]}
        elif kind == "line":
            geometry = {"type": "LineString", "coordinates": positions}
        else:
            geometry = {"type": "Polygon", "coordinates": [[*positions, positions[0]]]}
        properties = {"objectType": "annotation", "name": region.name, "shape": kind}
        features.append({"type": "Feature", "properties": properties, "geometry": geometry})
    return json.dumps({"type": "FeatureCollection", "features": features}, indent=1) + "\n"


def _outline(shape: Shape) -> list[Point]:
    """Return the vertices of a shape. Those of an ellipse include the four where it touches its rectangle."""
    top, left, bottom, right = shape.rect
    if shape.kind == "rectangle":
        return [(top, left), (top, right), (bottom, right), (bottom, left)]
    if shape.kind != "ellipse":
        return list(shape.points)
    angles = [2 * math.pi * number / ELLIPSE_VERTICES for number in range(ELLIPSE_VERTICES)]
    center, half = ((top + bottom) / 2, (left + right) / 2), ((bottom - top) / 2, (right - left) / 2)
    return [(center[0] + half[0] * math.sin(a), center[1] + half[1] * math.cos(a)) for a in angles]


def _from_geojson(text: str) -> tuple[list[Region], list[str]]:
    document = json.loads(text)
    if isinstance(document, dict) and document.get("type") == "Feature":
        features = [document]
    elif isinstance(document, dict):
        features = document["features"]
    else:
        features = document  # QuPath also writes a list of features
    regions, skipped = [], []
    for number, feature in enumerate(features, 1):
        geometry, properties = feature["geometry"], feature.get("properties") or {}
        name = str(properties.get("name") or f"region {number}")
        type_, coordinates = geometry["type"], geometry["coordinates"]
        if type_ == "Polygon" and len(coordinates) == 1:
            points = _points(coordinates[0])
            points = points[:-1] if len(points) > 1 and points[0] == points[-1] else points
            regions.append(Region(name, _polygon_or(properties.get("shape"), points)))
        elif type_ == "LineString" and len(coordinates) == 2:
            regions.append(Region(name, Shape("line", _points(coordinates))))
        elif type_ == "Point":
            regions.append(Region(name, Shape("point", _points([coordinates]))))
        else:  # polygons with holes, several polygons, lines with more points
            skipped.append(name)
    return regions, skipped


def _points(positions: Sequence[Sequence[Any]]) -> tuple[Point, ...]:
    return tuple((float(position[1]) - CORNER, float(position[0]) - CORNER) for position in positions)


def _polygon_or(kind: object, points: tuple[Point, ...]) -> Shape:
    """Return a polygon, or the rectangle or ellipse from which its vertices were made."""
    polygon = Shape("polygon", points)
    if kind in ("rectangle", "ellipse") and points:
        top, left, bottom, right = polygon.rect
        return Shape("rectangle" if kind == "rectangle" else "ellipse", ((top, left), (bottom, right)))
    return polygon


# -- CSV -------------------------------------------------------------------------------------------------------


def _to_csv(regions: Sequence[Region]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(CSV_HEADER)
    for index, region in enumerate(regions):
        shape = region.shape
        top, left, bottom, right = shape.rect
        corners = [(top, left), (top, right), (bottom, right), (bottom, left)]
        points = corners if shape.kind in ("rectangle", "ellipse") else shape.points
        for vertex, (row, column) in enumerate(points):
            writer.writerow([index, shape.kind, vertex, repr(row), repr(column), region.name])
    return text.getvalue()


def _from_csv(text: str) -> tuple[list[Region], list[str]]:
    reader = csv.DictReader(io.StringIO(text))
    missing = [name for name in CSV_HEADER[:-1] if name not in (reader.fieldnames or ())]
    if missing:
        raise ValueError(f"the column {missing[0]!r} is missing; expected {', '.join(CSV_HEADER)}")
    groups: dict[str, list[dict[str, str]]] = {}
    for row in reader:
        groups.setdefault(row["index"], []).append(row)
    regions, skipped = [], []
    for index, rows in groups.items():
        kind, name = rows[0]["shape-type"], rows[0].get("name") or f"region {index}"
        rows.sort(key=lambda row: float(row["vertex-index"]))
        points = tuple((float(row["axis-0"]), float(row["axis-1"])) for row in rows)
        if kind in ("rectangle", "ellipse"):
            regions.append(Region(name, _polygon_or(kind, points)))
        elif kind in KINDS and (kind != "line" or len(points) == 2):
            regions.append(Region(name, Shape(next(known for known in KINDS if known == kind), points)))
        else:  # paths of napari
            skipped.append(name)
    return regions, skipped
