"""ENVI headers and GDAL virtual data sets, read with GDAL."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import rasterio

import zarrfs
from tests.files.views.presented import axes_of, make_array, present, refused, sample, write_file
from zarrfs.engine.stores.memory import MemoryStore

TYPES = ("|b1", "|u1", "<i2", ">u2", "<i4", ">u4", "<i8", ">u8", "<f4", ">f4", "<f8", "<c8", ">c16")


@contextmanager
def opened(path: Path) -> Iterator[Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", rasterio.errors.NotGeoreferencedWarning)
        with rasterio.open(path) as file:
            yield file


def write(array: zarrfs.Array, suffix: str, directory: Path, **options: Any) -> Path:
    """Write the .raw file and a header; return the path that programs open."""
    raw = write_file(array, ".raw", directory, **options)
    header = write_file(array, suffix, directory, **options)
    return raw if suffix == ".hdr" else header


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("suffix", [".hdr", ".vrt"])
@pytest.mark.parametrize("dtype", TYPES)
def test_gdal_reads_the_values(dtype: str, suffix: str, order: str, tmp_path: Path) -> None:
    data = sample(dtype, (2, 3, 4, 5))
    with opened(write(make_array(data, order=order), suffix, tmp_path)) as file:
        assert file.driver == {".hdr": "ENVI", ".vrt": "VRT"}[suffix]
        values = file.read()
        expected = np.dtype("u1") if dtype == "|b1" else data.dtype.newbyteorder("=")
        assert values.dtype == expected
        assert np.array_equal(values, data.reshape(6, 4, 5))


def test_signed_bytes(tmp_path: Path) -> None:
    data = sample("|i1", (3, 4))
    with opened(write(make_array(data), ".vrt", tmp_path)) as file:
        assert np.array_equal(file.read(1), data)
    assert "int8" in refused(make_array(data), ".hdr")


@pytest.mark.parametrize("suffix", [".hdr", ".vrt"])
@pytest.mark.parametrize("shape", [(), (7,), (3, 4)])
def test_few_dimensions(shape: tuple[int, ...], suffix: str, tmp_path: Path) -> None:
    data = sample("<u2", shape)
    with opened(write(make_array(data), suffix, tmp_path)) as file:
        assert np.array_equal(file.read(1), np.atleast_2d(data))


@pytest.mark.parametrize("axes", [*map("".join, itertools.permutations("zyx")), "cyxt", "xtyc"])
def test_virtual_data_sets_find_the_plane(axes: str, tmp_path: Path) -> None:
    data = sample("<u2", tuple({"t": 2, "c": 3, "z": 4, "y": 5, "x": 6}[axis] for axis in axes))
    with opened(write(make_array(data), ".vrt", tmp_path, geometry=axes_of(*axes))) as file:
        outer = [axis for axis in axes if axis not in "xy"]
        expected = data.transpose([axes.index(axis) for axis in (*outer, "y", "x")]).reshape(-1, 5, 6)
        assert np.array_equal(file.read(), expected)


def test_names_of_bands(tmp_path: Path) -> None:
    data = sample("<u2", (2, 3, 4, 5))
    names = tuple(f"c{c} z{z}" for c in range(2) for z in range(3))
    for suffix in (".hdr", ".vrt"):
        path = write(make_array(data), suffix, tmp_path, geometry=axes_of("c", "z", "y", "x"))
        with opened(path) as file:
            assert file.descriptions == names


def test_positions(tmp_path: Path) -> None:
    geometry = axes_of("z", "y", "x", y=(0.5, "um"), x=(0.25, "um"))
    path = write(make_array(sample("<u2", (2, 4, 5))), ".vrt", tmp_path, geometry=geometry)
    with opened(path) as file:
        assert file.transform.to_gdal() == (-0.125, 0.25, 0, -0.25, 0, 0.5)
        assert file.tags()["UNIT"] == "um"
    path = write(make_array(sample("<u2", (2, 4, 5))), ".hdr", tmp_path, geometry=geometry)
    assert "\npixel size = {2.5e-07, 5e-07, units=Meters}\n" in path.with_suffix(".hdr").read_text()


@pytest.mark.parametrize(
    ("unit", "expected"), [("um", "pixel size = {1e-06, 1e-06, units=Meters}"), (None, None)]
)
def test_a_pixel_of_one_unit_has_a_size_if_the_unit_is_known(
    unit: str | None, expected: str | None, tmp_path: Path
) -> None:
    geometry = axes_of("y", "x", y=(1.0, unit), x=(1.0, unit))
    path = write(make_array(sample("<u2", (4, 5))), ".hdr", tmp_path, geometry=geometry)
    lines = path.with_suffix(".hdr").read_text().splitlines()
    found = next((line for line in lines if line.startswith("pixel size")), None)
    assert found == expected


def test_names_are_escaped(tmp_path: Path) -> None:
    data = sample("<u2", (3, 4))
    with opened(write(make_array(data), ".vrt", tmp_path, name="a & <größe> {1}")) as file:
        assert np.array_equal(file.read(1), data)
    with opened(write(make_array(data), ".hdr", tmp_path, name="a & <größe> {1}")) as file:
        assert np.array_equal(file.read(1), data)


def test_a_large_array_costs_no_memory() -> None:
    array = zarrfs.create_array(
        MemoryStore(), "img", shape=(100, 1 << 20, 1 << 20), chunks=(1, 1024, 1024), dtype="u2"
    )
    assert present(array, ".vrt").size < 50_000
    assert present(array, ".hdr").size < 5_000


@pytest.mark.parametrize("suffix", [".hdr", ".vrt"])
def test_absent_headers(suffix: str) -> None:
    for dtype in ("<f2", "|S3", "<M8[s]"):
        assert "has no data type" in refused(make_array(np.zeros((2, 3), dtype)), suffix)
    assert "fields" in refused(make_array(np.zeros(2, [("x", "u1")])), suffix)
    assert "length 0" in refused(make_array(np.zeros((0, 3), "u1")), suffix)
    many = zarrfs.create_array(
        MemoryStore(), "img", shape=(1 << 16, 2, 2), chunks=(1 << 16, 2, 2), dtype="u1"
    )
    assert "bands" in refused(many, suffix)
