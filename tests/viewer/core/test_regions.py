"""Named regions: polygons, statistics, profiles along an axis, and their files."""

from __future__ import annotations

import csv
import io
import json
import zipfile
from pathlib import Path

import numpy as np
import pytest
import roifile
from hypothesis import given
from hypothesis import strategies as st
from zarrfs_viewer.analysis.masks import polygon_mask
from zarrfs_viewer.analysis.measure import Roi, roi_statistics
from zarrfs_viewer.analysis.regions import (
    Region,
    axis_profile,
    measure_region,
    profile_axes,
    regions_csv,
    unique_name,
)
from zarrfs_viewer.analysis.shapes import Shape, contains, grab, moved
from zarrfs_viewer.analysis.statistics import table_value
from zarrfs_viewer.export.region_files import read_regions, write_regions
from zarrfs_viewer.images.dataset import initial_settings
from zarrfs_viewer.state.view_state import Viewport, with_position

from tests.viewer.core.doubles import open_pyramid, pyramid, random_values
from zarrfs.errors import ZarrError

POLYGON = ((2.25, 3.5), (8.75, 1.25), (12.5, 9.0), (6.0, 5.5))

REGIONS = [
    Region("a", Shape("rectangle", ((1.5, 2.5), (6.5, 8.5)))),
    Region("b", Shape("ellipse", ((3.0, 4.0), (9.0, 14.0)))),
    Region("line, and more", Shape("line", ((0.25, 1.0), (7.0, 11.5)))),
    Region('"quoted"', Shape("polygon", POLYGON)),
    Region("p", Shape("point", ((3.0, 5.0),))),
]


def inside(row: float, column: float, points: list[tuple[float, float]]) -> bool:
    """The even-odd rule for one point."""
    count = 0
    for (row1, column1), (row2, column2) in zip(points, points[1:] + points[:1], strict=True):
        low, high = sorted(((row1, column1), (row2, column2)))
        if low[0] <= row < high[0]:
            count += column >= column1 + (row - row1) * ((column2 - column1) / (row2 - row1))
    return count % 2 == 1


coordinates = st.integers(-12, 40).map(lambda value: value / 4)


@given(
    st.lists(st.tuples(coordinates, coordinates), min_size=3, max_size=9),
    st.tuples(*[st.integers(-2, 4), st.integers(0, 9)] * 2),
)
def test_a_mask_contains_the_pixels_in_the_polygon(
    points: list[tuple[float, float]], box: tuple[int, int, int, int]
) -> None:
    rows, columns = slice(box[0], box[0] + box[1]), slice(box[2], box[2] + box[3])
    expected = [
        [inside(row, column, points) for column in range(columns.start, columns.stop)]
        for row in range(rows.start, rows.stop)
    ]
    mask = polygon_mask((rows, columns), points)
    assert mask.shape == (box[1], box[3])
    assert mask.tolist() == expected


def test_the_statistics_of_a_polygon_do_not_depend_on_the_tiles() -> None:
    data = random_values((40, 45), "uint16")
    points = tuple((row * 3.0, column * 3.0) for row, column in POLYGON)
    mask = np.array([[inside(row, column, list(points)) for column in range(45)] for row in range(40)])
    image = open_pyramid(pyramid(data, "yx", 1, (8, 8)))
    (found,) = roi_statistics(image, initial_settings(image), Shape("polygon", points).roi())
    assert found.count == mask.sum() > 100
    assert found.sum == data[mask].sum()
    assert isinstance(Shape("polygon", points).roi(), Roi)


def test_regions_are_measured_with_all_channels() -> None:
    data = random_values((2, 5, 30, 30), "uint16")
    image = open_pyramid(pyramid(data, "czyx", 1, (1, 1, 8, 8), scale=(1.0, 2.0, 0.5, 0.5)))
    settings = with_position(initial_settings(image), 1, 3)
    rows = [entry for region in REGIONS for entry in measure_region(image, settings, region)]
    assert [row.region for row in rows] == [region.name for region in REGIONS for _ in range(2)]
    rectangle, line, point = rows[0], rows[4], rows[-1]
    assert rectangle.count == 30
    assert rectangle.area == pytest.approx(30 * 0.25)
    assert rectangle.sum == data[0, 3, 2:7, 3:9].sum()
    assert line.area is None
    assert line.length == pytest.approx(np.hypot(6.75, 10.5) * 0.5)
    assert (point.count, point.mean) == (1, data[1, 3, 3, 5])
    table = list(csv.DictReader(io.StringIO(regions_csv(rows, [("z", 3.0)]))))
    assert [row["region"] for row in table] == [row.region for row in rows]
    assert {row["z"] for row in table} == {"3.0"}
    assert table[0]["length"] == ""
    assert table[4]["area"] == ""


@pytest.mark.parametrize("number", range(len(REGIONS)))
def test_a_profile_along_an_axis_has_the_mean_of_every_slice(number: int) -> None:
    data = random_values((3, 2, 5, 30, 30), "float32")
    data[:, :, 2, 3, 5] = np.nan
    image = open_pyramid(pyramid(data, "tczyx", 1, (1, 1, 1, 8, 8), scale=(1.0, 1.0, 2.0, 0.5, 0.5)))
    settings = with_position(initial_settings(image), 0, 1)
    assert profile_axes(image, settings) == (2, 0)
    region = REGIONS[number]
    result = axis_profile(image, settings, region.shape, 2)
    assert result is not None
    profile, level = result
    assert level == 0
    assert profile.distance.tolist() == [0.0, 2.0, 4.0, 6.0, 8.0]
    assert (profile.quantity, profile.unit) == ("z", "micrometer")
    for z in range(5):
        means = [entry.mean for entry in measure_region(image, with_position(settings, 2, z), region)]
        assert np.allclose(profile.values[:, z], means, rtol=1e-6, equal_nan=True)


def test_a_profile_along_an_axis_stops_when_its_result_is_not_needed() -> None:
    image = open_pyramid(pyramid(random_values((5, 30, 30)), "zyx", 1, (1, 8, 8)))
    answers = iter([True, True, False])
    assert axis_profile(image, initial_settings(image), REGIONS[0].shape, 0, lambda: next(answers)) is None
    assert next(answers, None) is None


@pytest.mark.parametrize("suffix", [".geojson", ".csv", ".zip"])
def test_regions_are_saved_and_loaded(suffix: str, tmp_path: Path) -> None:
    file = tmp_path / f"regions{suffix}"
    write_regions(file, REGIONS)
    found, skipped = read_regions(file)
    assert skipped == []
    assert [(region.name, region.shape.kind) for region in found] == [
        (region.name, region.shape.kind) for region in REGIONS
    ]
    for region, original in zip(found, REGIONS, strict=True):
        assert np.allclose(region.shape.points, original.shape.points, atol=1e-5)
    assert [path.name for path in tmp_path.iterdir()] == [file.name]


def test_imagej_counts_areas_from_the_corner_of_the_first_pixel(tmp_path: Path) -> None:
    write_regions(tmp_path / "a.roi", REGIONS[:1])
    roi = roifile.roiread(tmp_path / "a.roi")
    assert roi.name == "a"
    assert (roi.left, roi.top, roi.right, roi.bottom) == (3, 2, 9, 7)
    integers = roifile.ImagejRoi()
    integers.roitype = roifile.ROI_TYPE.RECT
    integers.left, integers.top, integers.right, integers.bottom = 3, 2, 9, 7
    integers.tofile(tmp_path / "b.roi")
    (region,), _ = read_regions(tmp_path / "b.roi")
    assert region == Region("b", REGIONS[0].shape)
    with pytest.raises(ZarrError, match="one region"):
        write_regions(tmp_path / "a.roi", REGIONS)


def test_regions_without_an_equivalent_are_named(tmp_path: Path) -> None:
    angle = roifile.ImagejRoi.frompoints([[1, 2], [3, 4], [5, 9]], name="an angle")
    angle.roitype = roifile.ROI_TYPE.ANGLE
    freehand = roifile.ImagejRoi.frompoints([[1, 2], [3, 4], [5, 9]], name="by hand")
    roifile.roiwrite(tmp_path / "set.zip", [angle, freehand])
    found, skipped = read_regions(tmp_path / "set.zip")
    assert found == [Region("by hand", Shape("polygon", ((1.5, 0.5), (3.5, 2.5), (8.5, 4.5))))]
    assert skipped == ["an angle"]


def test_a_polygon_of_qupath_is_read(tmp_path: Path) -> None:
    ring = [[0, 0], [10, 0], [10, 5], [0, 0]]
    geometry = {"type": "Polygon", "coordinates": [ring]}
    holes = {"type": "Polygon", "coordinates": [ring, ring]}
    features = [
        {"type": "Feature", "id": "1", "geometry": geometry, "properties": {"objectType": "annotation"}},
        {"type": "Feature", "geometry": holes, "properties": {"name": "with a hole"}},
    ]
    (tmp_path / "a.json").write_text(json.dumps(features))
    found, skipped = read_regions(tmp_path / "a.json")
    assert found == [Region("region 1", Shape("polygon", ((-0.5, -0.5), (-0.5, 9.5), (4.5, 9.5))))]
    assert skipped == ["with a hole"]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.geojson", b"{"),
        ("a.geojson", b'{"type": "FeatureCollection"}'),
        ("a.geojson", b'{"features": [{"geometry": {"type": "Point", "coordinates": ["x"]}}]}'),
        ("a.geojson", b'{"features": [{"geometry": {"type": "Point", "coordinates": [NaN, 1]}}]}'),
        ("a.geojson", b"[" * 100_000),
        ("a.geojson", b"\xff\xfe"),
        ("a.csv", b"x,y\n1,2\n"),
        ("a.csv", b"index,shape-type,vertex-index,axis-0,axis-1\n0,polygon,0,a,b\n"),
        ("a.roi", b"Iout" + bytes(20)),
        ("a.roi", b"nothing"),
        ("a.zip", b"PK\3\4 damaged"),
        ("a.txt", b""),
    ],
)
def test_a_damaged_file_is_an_error_that_names_it(name: str, content: bytes, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ZarrError, match=name):
        read_regions(tmp_path / name)


def test_a_missing_file_and_an_archive_that_is_too_large_are_errors(tmp_path: Path) -> None:
    with pytest.raises(ZarrError, match="cannot be read"):
        read_regions(tmp_path / "no.csv")
    with zipfile.ZipFile(tmp_path / "bomb.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.roi", bytes(1 << 27))
    with pytest.raises(ZarrError, match="expected at most"):
        read_regions(tmp_path / "bomb.zip")


def test_equal_names_in_a_file_are_made_unique(tmp_path: Path) -> None:
    write_regions(tmp_path / "a.geojson", [REGIONS[0], REGIONS[0]])
    found, _ = read_regions(tmp_path / "a.geojson")
    assert [region.name for region in found] == ["a", "a 2"]
    assert unique_name("a", ["a", "a 2"]) == "a 3"


def test_the_points_and_the_inside_of_a_polygon_are_grabbed_and_moved() -> None:
    shape = Shape("polygon", POLYGON)
    viewport = Viewport(400, 400, (8.0, 8.0), 20.0)
    for number, point in enumerate(POLYGON):
        assert grab(shape, viewport, *viewport.to_device(*point)) == number
    assert grab(shape, viewport, *viewport.to_device(6.0, 3.5)) == "all"
    assert grab(shape, viewport, *viewport.to_device(3.0, 8.0)) is None
    assert contains(shape, (6.0, 3.5))
    assert not contains(shape, (5.0, 7.0))
    assert moved(shape, 1, (1.0, 2.0)).points == (POLYGON[0], (9.75, 3.25), *POLYGON[2:])
    assert moved(shape, "all", (1.0, 0.0)).rect == (3.25, 1.25, 13.5, 9.0)


def test_the_last_of_two_points_and_a_line_within_the_radius_are_grabbed() -> None:
    viewport = Viewport(400, 400, (8.0, 8.0), 20.0)
    both = Shape("line", ((5.0, 5.0), (5.0, 5.2)))
    assert grab(both, viewport, *viewport.to_device(5.0, 5.0)) == 1
    line = Shape("line", ((5.0, 2.0), (5.0, 12.0)))
    x, y = viewport.to_device(5.0, 7.0)
    assert [grab(line, viewport, x, y + offset) for offset in (-9.5, -9.0, 0.0, 9.0, 9.5)] == [
        None,
        "all",
        "all",
        "all",
        None,
    ]
    x, y = viewport.to_device(*line.end)
    assert [grab(line, viewport, x + offset, y) for offset in (9.0, 9.5, 20.0)] == [1, None, None]
    point = Shape("point", ((5.0, 5.0),))
    x, y = viewport.to_device(5.0, 5.0)
    assert [grab(point, viewport, x + offset, y) for offset in (0.0, 9.0, 9.5)] == [0, 0, None]


def test_tables_have_no_digits_of_rounding_errors() -> None:
    assert table_value("area", 2590.8000000000006) == 2590.8
    assert table_value("length", None) == ""
    assert table_value("sum", 12345678901234.0) == 12345678901234.0
