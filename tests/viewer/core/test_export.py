"""Exported regions are what other programs read back."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from zarrfs_viewer.export.picture import render_region, write_png
from zarrfs_viewer.export.writers import (
    Cancelled,
    ExportRegion,
    export_npy,
    export_ome_zarr,
    export_tiff,
    read_region,
)
from zarrfs_viewer.images.dataset import initial_intent, open_dataset
from zarrfs_viewer.rendering.compose import compose
from zarrfs_viewer.state.view_state import with_channel, with_position

import zarrfs
from tests.viewer.core.doubles import numbers, open_pyramid, plain, pyramid
from zarrfs.errors import NodeExistsError, StoreError, UnsupportedError
from zarrfs.ngff import check_node

WHOLE = (-0.5, -0.5, 1e6, 1e6)


def region(
    data: np.ndarray,
    axes: str = "czyx",
    rect: tuple[float, float, float, float] = WHOLE,
    level: int = 0,
    **options: Any,
) -> ExportRegion:
    image = open_pyramid(pyramid(data, axes, 2, **options))
    return ExportRegion.visible(image, initial_intent(image), rect, level)


def read_png(file: Path) -> np.ndarray:
    """A decoder of the little that is written: 8-bit RGB, rows without filter."""
    data = file.read_bytes()
    assert data.startswith(b"\x89PNG\r\n\x1a\n")
    place, parts = 8, {}
    while place < len(data):
        length, kind = struct.unpack(">I4s", data[place : place + 8])
        body = data[place + 8 : place + 8 + length]
        assert struct.unpack(">I", data[place + 8 + length : place + 12 + length])[0] == zlib.crc32(
            kind + body
        )
        parts[kind] = body
        place += 12 + length
    width, height, depth, color = struct.unpack(">IIBB", parts[b"IHDR"][:10])
    assert (depth, color) == (8, 2)
    rows = np.frombuffer(zlib.decompress(parts[b"IDAT"]), np.uint8).reshape(height, 1 + 3 * width)
    assert not rows[:, 0].any()
    return rows[:, 1:].reshape(height, width, 3)


def test_png(tmp_path: Path) -> None:
    pixels = numbers((7, 5), np.uint32) | np.uint32(0xFF000000)
    write_png(tmp_path / "a.png", pixels)
    expected = np.stack([pixels >> shift & 255 for shift in (16, 8, 0)], axis=-1)
    np.testing.assert_array_equal(read_png(tmp_path / "a.png"), expected)
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.png"]
    with pytest.raises(StoreError, match="cannot be written"):
        write_png(tmp_path / "missing" / "a.png", pixels)


@pytest.mark.parametrize("level", [0, 1])
def test_a_region_is_drawn_pixel_for_pixel(level: int) -> None:
    data = numbers((2, 3, 40, 60))
    image = open_pyramid(pyramid(data, "czyx", 2, (1, 1, 16, 16)))
    intent = with_position(initial_intent(image), 1, 2)
    for number in range(2):
        intent = with_channel(intent, number, limits=(0.0, 65535.0))
    chosen = ExportRegion.visible(image, intent, (7.5, 11.5, 30.5, 50.5), level)
    step = 2**level
    rows, columns = chosen.slices[2], chosen.slices[3]
    assert (rows, columns) == ((slice(8, 31), slice(12, 51)) if level == 0 else (slice(4, 16), slice(6, 26)))
    planes = [np.ascontiguousarray(data[c, 2, ::step, ::step][rows, columns]) for c in range(2)]
    np.testing.assert_array_equal(render_region(chosen, intent), compose(planes, intent.channels))


def test_the_visible_region_has_all_channels_of_one_slice() -> None:
    chosen = region(numbers((2, 9, 20, 30)), rect=(3.4, -7.0, 8.6, 9.0))
    assert chosen.slices == (slice(0, 2), slice(4, 5), slice(3, 10), slice(0, 10))
    assert chosen.shape == (2, 1, 7, 10)
    with pytest.raises(UnsupportedError, match="nothing to export"):
        region(numbers((2, 9, 20, 30)), rect=(100, 100, 120, 120))


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "float32", "complex64", "bool", "int64"])
def test_npy_has_the_values(tmp_path: Path, dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("zarrfs_viewer.export.writers.PIECE_BYTES", 1024)
    data = numbers((2, 3, 40, 60), dtype)
    chosen = region(data, chunks=(1, 1, 16, 16), rect=(5, 5, 33, 47))
    progress: list[float] = []
    export_npy(chosen, tmp_path / "a.npy", lambda done: not progress.append(done))
    np.testing.assert_array_equal(np.load(tmp_path / "a.npy"), data[chosen.slices])
    np.testing.assert_array_equal(read_region(chosen), data[chosen.slices])
    assert progress == sorted(progress)
    assert progress[-1] == 1.0
    assert len(progress) > 2


def test_stopping_leaves_nothing(tmp_path: Path) -> None:
    chosen = region(numbers((2, 3, 40, 60)))
    for export in (export_npy, export_tiff, export_ome_zarr):
        with pytest.raises(Cancelled):
            export(chosen, tmp_path / "a", lambda done: False)
    assert list(tmp_path.iterdir()) == []


def test_an_export_does_not_spoil_what_was_there_when_it_fails(tmp_path: Path) -> None:
    (tmp_path / "a.npy").write_bytes(b"precious")
    with pytest.raises(Cancelled):
        export_npy(region(numbers((2, 3, 40, 60))), tmp_path / "a.npy", lambda done: False)
    assert (tmp_path / "a.npy").read_bytes() == b"precious"


@pytest.mark.parametrize("dtype", ["uint8", "int16", "uint16", "float32", ">u2", "bool", "int64"])
@pytest.mark.parametrize("axes", ["yx", "zyx", "czyx", "tczyx"])
def test_tiff_has_values_axes_and_sizes(tmp_path: Path, dtype: str, axes: str) -> None:
    tifffile = pytest.importorskip("tifffile")
    shape = {"t": 2, "c": 2, "z": 3, "y": 20, "x": 30}
    data = numbers([shape[name] for name in axes], dtype)
    chosen = region(data, axes, scale=[0.5] * len(axes))
    file = tmp_path / "a.ome.tif"
    export_tiff(chosen, file)
    with tifffile.TiffFile(file) as tiff:
        found = tiff.series[0].asarray().reshape(chosen.shape)
        expected = data[chosen.slices]
        np.testing.assert_array_equal(found, expected.astype(np.uint8) * 255 if dtype == "bool" else expected)
        if dtype != "int64":
            assert tiff.is_ome
            assert 'PhysicalSizeX="0.5"' in tiff.ome_metadata
            assert 'PhysicalSizeXUnit="µm"' in tiff.ome_metadata


def test_tiff_of_rgb_and_of_odd_axes(tmp_path: Path) -> None:
    tifffile = pytest.importorskip("tifffile")
    rgb = plain(numbers((20, 30, 3), np.uint8))
    export_tiff(ExportRegion.visible(rgb, initial_intent(rgb), WHOLE, 0), tmp_path / "rgb.tif")
    np.testing.assert_array_equal(tifffile.imread(tmp_path / "rgb.tif"), rgb.levels[0].array[:, :, :])
    odd = plain(numbers((4, 20, 30)), names=["angle", "y", "x"])
    export_tiff(ExportRegion.visible(odd, initial_intent(odd), WHOLE, 0), tmp_path / "odd.tif")
    assert tifffile.imread(tmp_path / "odd.tif").squeeze().shape == (20, 30)
    record = plain(np.zeros((4, 4), [("a", "u1")]))
    with pytest.raises(UnsupportedError, match="structured"):
        export_tiff(ExportRegion.visible(record, initial_intent(record), WHOLE, 0), tmp_path / "no.tif")


def test_ome_zarr_opens_again_where_it_was(tmp_path: Path) -> None:
    data = numbers((2, 3, 40, 60))
    omero = {
        "channels": [
            {"label": "DAPI", "color": "0000FF", "window": {"start": 1, "end": 9, "min": 0, "max": 99}},
            {"color": "FF0000"},
        ]
    }
    image = open_pyramid(pyramid(data, "czyx", 2, (1, 1, 16, 16), scale=(1.0, 2.0, 0.5, 0.5), omero=omero))
    chosen = ExportRegion.visible(image, with_position(initial_intent(image), 1, 2), (8, 10, 30, 50), 0)
    export_ome_zarr(chosen, tmp_path / "a.zarr")
    again = open_dataset(str(tmp_path / "a.zarr")).open_image()
    np.testing.assert_array_equal(again.levels[0].array[:, :, :, :], data[chosen.slices])
    assert again.axes == image.axes
    assert again.levels[0].scale == (1.0, 2.0, 0.5, 0.5)
    assert [again.to_physical(axis, 0) for axis in range(4)] == [0.0, 4.0, 4.0, 5.0]
    assert (again.channels[0].label, again.channels[0].limits) == ("DAPI", (1, 9))
    assert again.channels[1].colormap == "#FF0000"
    with pytest.raises(NodeExistsError):
        export_ome_zarr(chosen, tmp_path / "a.zarr")


@pytest.mark.parametrize("axes", ["yx", "zyx", "czyx", "tyx"])
def test_ome_zarr_is_valid(tmp_path: Path, axes: str) -> None:
    pytest.importorskip("yaozarrs")
    shape = {"t": 2, "c": 2, "z": 3, "y": 20, "x": 30}
    export_ome_zarr(region(numbers([shape[name] for name in axes]), axes), tmp_path / "a.zarr")
    report = check_node(zarrfs.open(str(tmp_path / "a.zarr")))
    assert report.valid, report.messages
    assert [m for m in report.messages if m.tier == "semantic"] == []
