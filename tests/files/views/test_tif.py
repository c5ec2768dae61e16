"""ImageJ hyperstacks, read with tifffile. Fiji reads the same description and tags."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import PIL.Image
import pytest
import tifffile
from hypothesis import given
from hypothesis import strategies as st

import zarrfs
from tests.files.views.presented import (
    ContentFile,
    axes_of,
    make_array,
    present,
    refused,
    sample,
    write_file,
)
from zarrfs.engine.stores.memory import MemoryStore
from zarrfs.files.tiff.directories import fraction_tag_values
from zarrfs.ngff.model import Channel, Window

TYPES = ("|u1", "<u2", ">u2", "<i2", ">i2", "<u4", ">u4", "<i4", ">i4", "<f4", ">f4")


def read(path: Path) -> tuple[np.ndarray[Any, Any], str]:
    """Return the values and the axes. The file can also be mapped into memory."""
    with tifffile.TiffFile(path) as file:
        assert file.is_imagej
        (series,) = file.series
        values, axes = series.asarray(), series.axes
    mapped = tifffile.memmap(path, mode="r")
    assert np.array_equal(mapped, values)
    return values, axes


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", TYPES)
def test_tifffile_reads_the_values(dtype: str, order: str, tmp_path: Path) -> None:
    data = sample(dtype, (3, 4, 5, 6))
    path = write_file(make_array(data, order=order), ".tif", tmp_path, geometry=axes_of("t", "z", "y", "x"))
    values, axes = read(path)
    assert (axes, values.shape) == ("TZYX", data.shape)
    assert values.dtype == data.dtype.newbyteorder("=")
    assert np.array_equal(values, data)


@pytest.mark.parametrize(
    ("axes", "stored", "expected"),
    [
        ("yx", "YX", "yx"),
        ("xy", "YX", "yx"),
        ("czyx", "ZCYX", "zcyx"),
        ("ctyx", "TCYX", "tcyx"),
        ("xyzct", "TZCYX", "tzcyx"),
        ("yxc", "CYX", "cyx"),
        ("tx", "YX", "tx"),
        ("x", "YX", "x"),
        ("tczyx", "TZCYX", "tzcyx"),
    ],
)
def test_axes_are_ordered_by_their_meaning(axes: str, stored: str, expected: str, tmp_path: Path) -> None:
    lengths = {"t": 2, "z": 3, "c": 4, "y": 5, "x": 6}
    data = sample("<u2", tuple(lengths[axis] for axis in axes))
    path = write_file(make_array(data), ".tif", tmp_path, geometry=axes_of(*axes))
    values, found = read(path)
    transposed = data.transpose([axes.index(axis) for axis in expected])
    assert found == stored
    assert np.array_equal(values, transposed.reshape(values.shape))


RGB = [Channel(color=color) for color in ((255, 0, 0), (0, 255, 0), (0, 0, 255))]


@pytest.mark.parametrize("suffix", [".tif", ".ome.tif"])
@pytest.mark.parametrize(
    ("axes", "samples", "stored"),
    [("yxc", 3, "YXS"), ("yxc", 4, "YXS"), ("zyxc", 3, "ZYXS"), ("tzyxc", 4, "TZYXS")],
)
@pytest.mark.parametrize("channels", [(), RGB])
def test_colours_of_8_bits_are_an_rgb_image(
    axes: str, samples: int, stored: str, channels: list[Channel], suffix: str, tmp_path: Path
) -> None:
    lengths = {"t": 2, "z": 3, "y": 5, "x": 6, "c": samples}
    data = sample("u1", tuple(lengths[axis] for axis in axes))
    geometry = replace(axes_of(*axes)(), channels=tuple(channels))
    path = write_file(make_array(data), suffix, tmp_path, geometry=lambda: geometry)
    with tifffile.TiffFile(path) as file:
        (series,) = file.series
        assert series.axes == stored
        assert file.pages[0].photometric == tifffile.PHOTOMETRIC.RGB  # type: ignore[union-attr]
        assert np.array_equal(series.asarray(), data)
    with PIL.Image.open(path) as image:
        assert image.mode == "RGBA"[:samples]
        assert np.array_equal(np.asarray(image), data.reshape(-1, *data.shape[-3:])[0])


@pytest.mark.parametrize(
    ("axes", "shape", "dtype", "channels"),
    [
        ("yxc", (5, 6, 3), "u2", ()),
        ("yxc", (5, 6, 2), "u1", ()),
        ("cyx", (3, 5, 6), "u1", ()),
        ("xyc", (5, 6, 3), "u1", ()),
        ("yxc", (5, 6, 3), "u1", RGB[::-1]),
    ],
)
def test_other_channels_are_planes(
    axes: str, shape: tuple[int, ...], dtype: str, channels: list[Channel], tmp_path: Path
) -> None:
    data = sample(dtype, shape)
    geometry = replace(axes_of(*axes)(), channels=tuple(channels))
    values, found = read(write_file(make_array(data), ".tif", tmp_path, geometry=lambda: geometry))
    assert found == "CYX"
    assert np.array_equal(values, data.transpose([axes.index(axis) for axis in "cyx"]))


def test_other_dimensions_are_frames(tmp_path: Path) -> None:
    data = sample("<u2", (2, 3, 4, 5, 6))
    path = write_file(make_array(data), ".tif", tmp_path, geometry=axes_of("angle", "t", "z", "y", "x"))
    values, axes = read(path)
    assert (axes, values.shape) == ("TZYX", (6, 4, 5, 6))
    assert np.array_equal(values, data.reshape(values.shape))
    unnamed = make_array(sample("<u2", (2, 3, 4, 5, 6)))
    assert np.array_equal(read(write_file(unnamed, ".tif", tmp_path))[0], data.reshape(6, 4, 5, 6))


def test_boolean_values_are_bytes(tmp_path: Path) -> None:
    data = sample("?", (4, 5))
    values, _ = read(write_file(make_array(data), ".tif", tmp_path))
    assert values.dtype == np.uint8
    assert np.array_equal(values, data)


def test_scalars_are_one_pixel(tmp_path: Path) -> None:
    values, _ = read(write_file(make_array(np.array(7, "<u2")), ".tif", tmp_path))
    assert values.tolist() == [[7]]


def description(path: Path) -> Mapping[str, Any]:
    with tifffile.TiffFile(path) as file:
        metadata = file.imagej_metadata
        assert metadata is not None
        return metadata


def test_distances_and_units(tmp_path: Path) -> None:
    geometry = axes_of(
        *("t", "c", "z", "y", "x"),
        t=(2500, "millisecond"),
        z=(2, "micrometer"),
        y=(500, "nanometer"),
        x=(0.25, "micrometer"),
    )
    array = make_array(sample("<u2", (3, 2, 4, 5, 6)))
    path = write_file(array, ".tif", tmp_path, geometry=geometry)
    assert dict(description(path)) == {
        "ImageJ": "1.54f",
        "images": 24,
        "channels": 2,
        "slices": 4,
        "frames": 3,
        "hyperstack": True,
        "mode": "composite",
        "unit": "micron",
        "spacing": 2.0,
        "finterval": 2.5,
        "loop": False,
    }
    with tifffile.TiffFile(path) as file:
        assert file.pages.first.tags["XResolution"].value == (4, 1)
        assert file.pages.first.tags["YResolution"].value == (2, 1)
        assert file.pages.first.tags["ResolutionUnit"].value == 1


def test_unknown_units(tmp_path: Path) -> None:
    geometry = axes_of("z", "y", "x", z=(3, None), y=(0.5, None), x=(0.5, None))
    path = write_file(make_array(sample("<u2", (2, 4, 5))), ".tif", tmp_path, geometry=geometry)
    assert description(path)["spacing"] == 3
    assert "unit" not in description(path)
    with tifffile.TiffFile(path) as file:
        assert file.pages.first.tags["XResolution"].value == (2, 1)
    path = write_file(make_array(sample("<u2", (4, 5))), ".tif", tmp_path)
    with tifffile.TiffFile(path) as file:
        assert "XResolution" not in file.pages.first.tags


def test_the_origin(tmp_path: Path) -> None:
    known = axes_of("y", "x", y=(0.5, "um"), x=(0.5, "um"))()
    axes = tuple(replace(axis, translation=-10.0) for axis in known.axes)
    path = write_file(
        make_array(sample("<u2", (4, 5))), ".tif", tmp_path, geometry=lambda: replace(known, axes=axes)
    )
    assert description(path)["xorigin"] == 20
    assert description(path)["yorigin"] == 20


@pytest.mark.parametrize("dtype", ["<u2", ">u2"])
def test_display_ranges_and_colors(dtype: str, tmp_path: Path) -> None:
    channels = (
        Channel("a", (255, 0, 0), Window(10, 200, 0, 65535)),
        Channel("b", (0, 128, 255), Window(1.5, 7, 0, 65535)),
    )
    known = replace(axes_of("c", "y", "x")(), channels=channels)
    path = write_file(make_array(sample(dtype, (2, 4, 5))), ".tif", tmp_path, geometry=lambda: known)
    metadata = description(path)
    assert metadata["Ranges"] == (10, 200, 1.5, 7)
    red, blue = metadata["LUTs"]
    assert red[:, 255].tolist() == [255, 0, 0]
    assert blue[:, 255].tolist() == [0, 128, 255]
    assert blue[:, 0].tolist() == [0, 0, 0]
    assert np.array_equal(read(path)[0], sample(dtype, (2, 4, 5)))


@pytest.mark.parametrize("dtype", ["|u1", "<u2", ">u2", "<f4"])
def test_libtiff_reads_the_first_plane(dtype: str, tmp_path: Path) -> None:
    data = sample(dtype, (3, 4, 5))
    with PIL.Image.open(write_file(make_array(data), ".tif", tmp_path)) as image:
        assert np.array_equal(np.asarray(image), data[0])


def test_more_than_4_gib() -> None:
    shape = (1000, 2048, 2048)
    array = zarrfs.create_array(
        MemoryStore(), "img", shape=shape, chunks=(1, 256, 256), dtype="u2", fill_value=9
    )
    array[-1, -1, -1] = 77
    content = present(array, ".tif", geometry=axes_of("z", "y", "x"))
    assert content.size > 7 << 30
    assert content.size - math.prod(shape) * 2 < 1000
    with tifffile.TiffFile(ContentFile(content)) as file:
        (series,) = file.series
        assert (series.axes, series.shape) == ("ZYX", shape)
    assert content.read(content.size - 4, 4) == b"\x09\x00\x4d\x00"


@pytest.mark.parametrize(
    "dtype", ["|i1", "<i8", "<u8", "<f8", "<f2", "<c8", "|S3", "<M8[s]", [("x", "<i4")]], ids=str
)
def test_types_that_imagej_does_not_open_are_absent(dtype: Any) -> None:
    assert refused(make_array(np.zeros((3, 4), dtype)), ".tif").startswith("ImageJ has no data type")


def test_limits() -> None:
    assert refused(make_array(np.zeros((0, 4), "u1")), ".tif") == "it has no elements"
    wide = zarrfs.create_array(MemoryStore(), "img", shape=(1 << 16, 1 << 15), chunks=(256, 256), dtype="u4")
    assert "use .ome.tif" in refused(wide, ".tif")


@given(st.fractions(min_value=Fraction(1, 10**12), max_value=10**12))
def test_resolutions_are_rounded(value: Fraction) -> None:
    pair = fraction_tag_values(value)
    if pair is None:
        assert value < Fraction(1, 2**31) or value > 2**30
    else:
        assert all(0 < part < 2**31 for part in pair)
        assert abs(Fraction(*pair) - value) <= max(value * Fraction(1, 2**15), Fraction(1, 2**31))
