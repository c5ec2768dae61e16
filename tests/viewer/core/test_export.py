"""Exported files, read by other libraries."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from zarrfs_viewer.analysis.image_summary import image_summary
from zarrfs_viewer.display.resolve import plane_key
from zarrfs_viewer.export.picture import render_region
from zarrfs_viewer.export.writers import (
    Cancelled,
    ExportRegion,
    export_npy,
    export_ome_zarr,
    export_tiff,
    read_region,
)
from zarrfs_viewer.images.dataset import initial_settings, open_dataset
from zarrfs_viewer.rendering.compose import compose
from zarrfs_viewer.state.view_state import (
    ChannelSettings,
    Projection,
    with_channel,
    with_position,
    with_projection,
)

import zarrfs
from tests.viewer.core.doubles import array_image, open_pyramid, pyramid, random_values
from zarrfs.errors import NodeExistsError, UnsupportedError
from zarrfs.ngff import check_node


def xml2dict(document: str) -> dict[str, Any]:
    """Return an OME-XML document as nested dictionaries with converted numbers."""
    result: dict[str, Any] = pytest.importorskip("tifffile").xml2dict(document)
    return result


WHOLE = (-0.5, -0.5, 1e6, 1e6)


def region(
    data: np.ndarray,
    axes: str = "czyx",
    rect: tuple[float, float, float, float] = WHOLE,
    level: int = 0,
    **options: Any,
) -> ExportRegion:
    image = open_pyramid(pyramid(data, axes, 2, **options))
    return ExportRegion.visible(image, initial_settings(image), rect, level)


@pytest.mark.parametrize("level", [0, 1])
def test_a_rendered_region_has_one_pixel_per_pixel_of_the_level(level: int) -> None:
    data = random_values((2, 3, 40, 60))
    image = open_pyramid(pyramid(data, "czyx", 2, (1, 1, 16, 16)))
    settings = with_position(initial_settings(image), 1, 2)
    for number in range(2):
        settings = with_channel(settings, number, limits=(0.0, 65535.0))
    chosen = ExportRegion.visible(image, settings, (7.5, 11.5, 30.5, 50.5), level)
    step = 2**level
    rows, columns = chosen.slices[2], chosen.slices[3]
    assert (rows, columns) == ((slice(8, 31), slice(12, 51)) if level == 0 else (slice(4, 16), slice(6, 26)))
    planes = [np.ascontiguousarray(data[c, 2, ::step, ::step][rows, columns]) for c in range(2)]
    np.testing.assert_array_equal(render_region(chosen, settings), compose(planes, settings.channels))


def test_the_visible_region_has_all_channels_of_one_slice() -> None:
    chosen = region(random_values((2, 9, 20, 30)), rect=(3.4, -7.0, 8.6, 9.0))
    assert chosen.slices == (slice(0, 2), slice(4, 5), slice(3, 10), slice(0, 10))
    assert chosen.shape == (2, 1, 7, 10)
    with pytest.raises(UnsupportedError, match="nothing to export"):
        region(random_values((2, 9, 20, 30)), rect=(100, 100, 120, 120))


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "float32", "complex64", "bool", "int64"])
def test_an_npy_file_has_the_values_of_the_region(
    tmp_path: Path, dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("zarrfs_viewer.export.writers.BLOCK_NBYTES", 1024)
    data = random_values((2, 3, 40, 60), dtype)
    chosen = region(data, chunks=(1, 1, 16, 16), rect=(5, 5, 33, 47))
    progress: list[float] = []
    export_npy(chosen, tmp_path / "a.npy", lambda done: not progress.append(done))
    np.testing.assert_array_equal(np.load(tmp_path / "a.npy"), data[chosen.slices])
    np.testing.assert_array_equal(read_region(chosen), data[chosen.slices])
    assert progress == sorted(progress)
    assert progress[-1] == 1.0
    assert len(progress) > 2


def test_a_cancelled_export_leaves_no_file(tmp_path: Path) -> None:
    chosen = region(random_values((2, 3, 40, 60)))
    for export in (export_npy, export_tiff, export_ome_zarr):
        with pytest.raises(Cancelled):
            export(chosen, tmp_path / "a", lambda done: False)
    assert list(tmp_path.iterdir()) == []


def test_a_cancelled_export_does_not_change_an_existing_file(tmp_path: Path) -> None:
    (tmp_path / "a.npy").write_bytes(b"existing")
    with pytest.raises(Cancelled):
        export_npy(region(random_values((2, 3, 40, 60))), tmp_path / "a.npy", lambda done: False)
    assert (tmp_path / "a.npy").read_bytes() == b"existing"


@pytest.mark.parametrize("dtype", ["uint8", "int16", "uint16", "float32", ">u2", "bool", "int64"])
@pytest.mark.parametrize("axes", ["yx", "zyx", "czyx", "tczyx"])
def test_a_tiff_file_has_the_values_and_the_pixel_sizes(tmp_path: Path, dtype: str, axes: str) -> None:
    tifffile = pytest.importorskip("tifffile")
    shape = {"t": 2, "c": 2, "z": 3, "y": 20, "x": 30}
    data = random_values([shape[name] for name in axes], dtype)
    chosen = region(data, axes, scale=[0.5] * len(axes))
    file = tmp_path / "a.ome.tif"
    export_tiff(chosen, file)
    with tifffile.TiffFile(file) as tiff:
        result = tiff.series[0].asarray().reshape(chosen.shape)
        expected = data[chosen.slices]
        np.testing.assert_array_equal(
            result, expected.astype(np.uint8) * 255 if dtype == "bool" else expected
        )
        if dtype != "int64":
            assert tiff.is_ome
            assert 'PhysicalSizeX="0.5"' in tiff.ome_metadata
            assert 'PhysicalSizeXUnit="µm"' in tiff.ome_metadata


def test_rgb_and_other_axes_are_exported_as_tiff_and_structured_data_types_are_not(tmp_path: Path) -> None:
    tifffile = pytest.importorskip("tifffile")
    rgb = array_image(random_values((20, 30, 3), np.uint8))
    export_tiff(ExportRegion.visible(rgb, initial_settings(rgb), WHOLE, 0), tmp_path / "rgb.tif")
    np.testing.assert_array_equal(tifffile.imread(tmp_path / "rgb.tif"), rgb.levels[0].array[:, :, :])
    angles = array_image(random_values((4, 20, 30)), names=["angle", "y", "x"])
    export_tiff(ExportRegion.visible(angles, initial_settings(angles), WHOLE, 0), tmp_path / "angles.tif")
    assert tifffile.imread(tmp_path / "angles.tif").squeeze().shape == (20, 30)
    record = array_image(np.zeros((4, 4), [("a", "u1")]))
    with pytest.raises(UnsupportedError, match="does not support the data type"):
        export_tiff(ExportRegion.visible(record, initial_settings(record), WHOLE, 0), tmp_path / "record.tif")


def test_an_exported_ome_zarr_image_has_the_values_positions_and_channels(tmp_path: Path) -> None:
    data = random_values((2, 3, 40, 60))
    omero = {
        "channels": [
            {"label": "DAPI", "color": "0000FF", "window": {"start": 1, "end": 9, "min": 0, "max": 99}},
            {"color": "FF0000"},
        ]
    }
    image = open_pyramid(pyramid(data, "czyx", 2, (1, 1, 16, 16), scale=(1.0, 2.0, 0.5, 0.5), omero=omero))
    chosen = ExportRegion.visible(image, with_position(initial_settings(image), 1, 2), (8, 10, 30, 50), 0)
    export_ome_zarr(chosen, tmp_path / "a.zarr")
    exported = open_dataset(str(tmp_path / "a.zarr")).open_image()
    np.testing.assert_array_equal(exported.levels[0].array[:, :, :, :], data[chosen.slices])
    assert exported.axes == image.axes
    assert exported.levels[0].scale == (1.0, 2.0, 0.5, 0.5)
    assert [exported.to_physical(axis, 0) for axis in range(4)] == [0.0, 4.0, 4.0, 5.0]
    assert (exported.channels[0].label, exported.channels[0].limits) == ("DAPI", (1, 9))
    assert exported.channels[1].colormap == "#FF0000"
    with pytest.raises(NodeExistsError, match="choose another name"):
        export_ome_zarr(chosen, tmp_path / "a.zarr")


def test_an_exported_ome_zarr_image_keeps_the_orientation(tmp_path: Path) -> None:
    axes = [
        {"name": name, "type": "space", "orientation": {"type": "anatomical", "value": value}}
        for name, value in (("y", "anterior-to-posterior"), ("x", "left-to-right"))
    ]
    datasets = [{"path": "0", "coordinateTransformations": [{"type": "scale", "scale": [2.0, 1.0]}]}]
    directions = {
        "space": "right-anterior-superior",
        "axes": ["y", "x"],
        "directions": [[0.6, -0.8, 0.0], [0.8, 0.6, 0.0]],
    }
    attributes = {
        "ome": {"version": "0.5", "multiscales": [{"axes": axes, "datasets": datasets}]},
        "anatomical_directions": directions,
    }
    group = zarrfs.create_group(tmp_path / "a.zarr", attributes=attributes)
    group.create_array("0", data=random_values((40, 60)))
    image = open_dataset(str(tmp_path / "a.zarr")).open_image()
    assert image_summary(image)["Orientation"] == {"y": "anterior-to-posterior", "x": "left-to-right"}
    export_ome_zarr(ExportRegion.visible(image, initial_settings(image), WHOLE, 0), tmp_path / "b.zarr")
    exported = open_dataset(str(tmp_path / "b.zarr")).open_image()
    assert exported.axes == image.axes
    assert exported.axes[1].direction == (0.8, 0.6, 0.0)
    assert zarrfs.open_group(tmp_path / "b.zarr").attrs["anatomical_directions"] == directions


@pytest.mark.parametrize("axes", ["yx", "zyx", "czyx", "tyx"])
def test_an_exported_ome_zarr_image_is_valid(tmp_path: Path, axes: str) -> None:
    pytest.importorskip("yaozarrs")
    shape = {"t": 2, "c": 2, "z": 3, "y": 20, "x": 30}
    export_ome_zarr(region(random_values([shape[name] for name in axes]), axes), tmp_path / "a.zarr")
    report = check_node(zarrfs.open(str(tmp_path / "a.zarr")))
    assert report.valid, report.messages
    assert [m for m in report.messages if m.tier == "semantic"] == []


def test_an_ome_zarr_image_is_exported_to_a_single_file(tmp_path: Path) -> None:
    pytest.importorskip("yaozarrs")
    data = random_values([20, 30])
    export_ome_zarr(region(data, "yx"), tmp_path / "a.ozx")
    assert (tmp_path / "a.ozx").is_file()
    with zarrfs.open_group(tmp_path / "a.ozx") as group:
        np.testing.assert_array_equal(group["0"][...], data)
        assert [each for each in check_node(group).messages if each.tier == "semantic"] == []
    with pytest.raises(Cancelled):
        export_ome_zarr(region(data, "yx"), tmp_path / "b.ozx", lambda done: False)
    assert [path.name for path in tmp_path.iterdir()] == ["a.ozx"]


PROJECTIONS = [Projection(1, "max", 3.0), Projection(1, "mean", 4.0), Projection(1, "max", 100.0)]


@pytest.mark.parametrize("projection", PROJECTIONS)
@pytest.mark.parametrize("level", [0, 1])
def test_exported_values_are_those_of_the_displayed_projection(
    tmp_path: Path, projection: Projection, level: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    tifffile = pytest.importorskip("tifffile")
    monkeypatch.setattr("zarrfs_viewer.export.writers.BLOCK_NBYTES", 1024)
    data = random_values((2, 9, 40, 60))
    image = open_pyramid(pyramid(data, "czyx", 2, (1, 2, 16, 16), scale=(1.0, 2.0, 0.5, 0.5)))
    settings = with_projection(with_position(initial_settings(image), 1, 5), projection)
    chosen = ExportRegion.visible(image, settings, (8, 10, 30, 50), level)
    slab = plane_key(image, level, settings).slab
    assert slab is not None
    step = 2**level
    rows, columns = chosen.slices[2:]
    block = data[:, slab.start : slab.stop, ::step, ::step][:, :, rows, columns]
    expected = block.max(1, keepdims=True) if projection.mode == "max" else block.mean(1, keepdims=True)
    dtype = np.dtype("u2" if projection.mode == "max" else "f4")
    assert chosen.shape == expected.shape
    assert chosen.dtype == dtype
    np.testing.assert_array_equal(read_region(chosen), expected.astype(dtype))
    shown = image.read_region(plane_key(image, level, settings, 1), rows, columns)
    np.testing.assert_array_equal(shown, expected[1, 0].astype(dtype))
    export_npy(chosen, tmp_path / "a.npy")
    np.testing.assert_array_equal(np.load(tmp_path / "a.npy"), expected.astype(dtype))
    export_tiff(chosen, tmp_path / "a.ome.tif")
    read = tifffile.imread(tmp_path / "a.ome.tif").reshape(expected.shape)
    np.testing.assert_array_equal(read, expected.astype(dtype))
    export_ome_zarr(chosen, tmp_path / "a.zarr")
    exported = open_dataset(str(tmp_path / "a.zarr")).open_image()
    np.testing.assert_array_equal(exported.levels[0].array[:, :, :, :], expected.astype(dtype))
    depth = slab.stop - slab.start
    assert exported.levels[0].scale[1] == 2.0 * depth
    assert exported.levels[0].translation[1] == 2.0 * (slab.start + slab.stop - 1) / 2


def test_an_ome_tiff_has_the_names_and_colours_of_the_channels(tmp_path: Path) -> None:
    tifffile = pytest.importorskip("tifffile")
    omero = {"channels": [{"label": "DAPI <&\"'\n", "color": "0000FF"}, {"color": "FF8000"}]}
    image = open_pyramid(pyramid(random_values((2, 3, 40, 60)), "czyx", 1, omero=omero))
    settings = initial_settings(image)
    chosen = ExportRegion.visible(image, settings, WHOLE, 0)
    file = tmp_path / "a.ome.tif"
    export_tiff(chosen, file, None, with_channel(settings, 1, colormap="#12ABEF").channels)
    with tifffile.TiffFile(file) as tiff:
        document = xml2dict(tiff.ome_metadata)
    pixels = document["OME"]["Image"]["Pixels"]
    channels = pixels["Channel"]
    assert [channel["Name"] for channel in channels] == ["DAPI <&\"'\\n", "Channel 1"]
    assert [channel["Color"] & 0xFFFFFFFF for channel in channels] == [0x0000FFFF, 0x12ABEFFF]
    assert (pixels["PhysicalSizeX"], pixels["PhysicalSizeXUnit"]) == (1, "µm")


def test_an_ome_tiff_has_the_position_of_each_plane(tmp_path: Path) -> None:
    tifffile = pytest.importorskip("tifffile")
    image = open_pyramid(pyramid(random_values((2, 5, 40, 60)), "czyx", 1, scale=[1.0, 2.0, 0.5, 0.25]))
    settings = initial_settings(image)
    chosen = ExportRegion.visible(image, settings, (9.5, 19.5, 29.5, 39.5), 0, {1: (1.0, 3.0)})
    export_tiff(chosen, tmp_path / "a.ome.tif")
    with tifffile.TiffFile(tmp_path / "a.ome.tif") as tiff:
        planes = xml2dict(tiff.ome_metadata)["OME"]["Image"]["Pixels"]["Plane"]
    assert {(plane["TheC"], plane["TheZ"]) for plane in planes} == {
        (c, z) for c in range(2) for z in range(3)
    }
    for plane in planes:
        found = [plane[f"Position{letter}"] for letter in "XYZ"]
        assert found == [5.0, 5.0, 2.0 + 2.0 * plane["TheZ"]]
        assert {plane[f"Position{letter}Unit"] for letter in "XYZ"} == {"µm"}


def test_an_ome_tiff_without_channels_has_a_name_and_a_colour(tmp_path: Path) -> None:
    tifffile = pytest.importorskip("tifffile")
    chosen = region(random_values((3, 20, 30)), "zyx")
    export_tiff(chosen, tmp_path / "a.ome.tif", None, (ChannelSettings(label="actin", colormap="#FF0000"),))
    with tifffile.TiffFile(tmp_path / "a.ome.tif") as tiff:
        channel = xml2dict(tiff.ome_metadata)["OME"]["Image"]["Pixels"]["Channel"]
    assert (channel["Name"], channel["Color"] & 0xFFFFFFFF) == ("actin", 0xFF0000FF)
