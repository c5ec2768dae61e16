"""FITS images, read with astropy."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from astropy.io import fits
from astropy.wcs import WCS

import zarrfs
from tests.files.views.presented import axes_of, make_array, present, refused, sample, write_file
from zarrfs.engine.stores.memory import MemoryStore
from zarrfs.files.content.blocks import BlockPool
from zarrfs.files.content.open_files import OpenFile

TYPES = (
    *("|u1", "|i1", "<i2", ">i2", "<u2", ">u2", "<i4", ">u4", "<u4", ">i8", "<i8", "<u8", ">u8"),
    *("<f4", ">f4", "<f8", ">f8"),
)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", TYPES)
def test_astropy_reads_the_values(dtype: str, order: str, tmp_path: Path) -> None:
    data = sample(dtype, (3, 4, 5))
    path = write_file(make_array(data, order=order), ".fits", tmp_path)
    with fits.open(path) as (unit,):
        unit.verify("exception")
        assert unit.data.dtype.newbyteorder("=") == data.dtype.newbyteorder("=")
        assert np.array_equal(unit.data, data)
        assert unit.header["EXTNAME"] == "img"
    assert path.stat().st_size % 2880 == 0


@pytest.mark.parametrize("shape", [(7,), (2, 3, 4, 5, 6), (1440,)])
def test_other_shapes(shape: tuple[int, ...], tmp_path: Path) -> None:
    data = sample("<u2", shape)
    assert np.array_equal(fits.getdata(write_file(make_array(data), ".fits", tmp_path)), data)


def test_scalars_booleans_and_empty_arrays(tmp_path: Path) -> None:
    assert fits.getdata(write_file(make_array(np.array(7, "<u2")), ".fits", tmp_path)).tolist() == [7]
    data = sample("?", (4, 5))
    assert np.array_equal(fits.getdata(write_file(make_array(data), ".fits", tmp_path)), data)
    with fits.open(write_file(make_array(np.zeros((0, 3), "<f4")), ".fits", tmp_path)) as (unit,):
        assert unit.header["NAXIS1"] == 3
        assert unit.header["NAXIS2"] == 0


def test_positions_are_world_coordinates(tmp_path: Path) -> None:
    known = axes_of("c", "y", "x", y=(-0.5, "micrometer"), x=(1e-7, "micrometer"))()
    moved = replace(known.axes[1], translation=12.25)
    geometry = replace(known, axes=(known.axes[0], moved, known.axes[2]))
    path = write_file(make_array(sample("<f4", (2, 3, 4))), ".fits", tmp_path, geometry=lambda: geometry)
    with fits.open(path) as (unit,):
        unit.verify("exception")
        assert [unit.header[f"CTYPE{number}"] for number in (1, 2, 3)] == ["x", "y", "c"]
        assert [unit.header[f"CDELT{number}"] for number in (1, 2)] == [1e-7, -0.5]
        assert unit.header["CRVAL2"] == 12.25
        assert unit.header["CUNIT1"] == "um"
        coordinates = WCS(unit.header)
        # If one axis has a reference point, fitsverify expects one for each.
        assert [unit.header[f"CRPIX{number}"] for number in (1, 2, 3)] == [1.0, 1.0, 1.0]
    x, y, c = coordinates.wcs_pix2world([[3, 2, 1]], 0)[0]
    assert np.allclose((x, y, c), (3e-7, 11.25, 1.0), rtol=1e-12, atol=0)


@pytest.mark.parametrize("name", ["a'b''c", "größe", "x" * 200, "'" * 100, "a/b = c"])
def test_names(name: str, tmp_path: Path) -> None:
    content = present(make_array(sample("<u2", (3, 4))), ".fits", name)
    path = tmp_path / "a.fits"
    path.write_bytes(content.read(0, content.size))
    with fits.open(path) as (unit,):
        unit.verify("exception")
        stored = unit.header["EXTNAME"]
    expected = name.encode("ascii", "backslashreplace").decode().upper()
    assert stored
    assert expected.startswith(stored.upper())


@pytest.mark.parametrize("dtype", ["<u2", ">u4", "|i1", "<f8"])
def test_any_ranges_through_blocks(dtype: str) -> None:
    array = make_array(sample(dtype, (5, 6, 7)))
    content = present(array, ".fits")
    whole = content.read(0, content.size)
    pool = BlockPool(1 << 20)
    file = OpenFile(content, pool)
    for size in (1, 7, 100, 1000):
        parts = [bytes(file.read(offset, size)) for offset in range(0, content.size, size)]
        assert b"".join(parts) == whole
        assert b"".join(content.read(offset, size) for offset in range(0, content.size, size)) == whole
    pool.close()


@pytest.mark.parametrize("dtype", ["<f2", "<c8", "|S3", "<M8[s]", [("x", "<i4")]], ids=str)
def test_types_without_equivalent_are_absent(dtype: Any) -> None:
    assert "FITS has no data type" in refused(make_array(np.zeros((3, 4), dtype)), ".fits")


def test_a_large_array_costs_no_memory() -> None:
    array = zarrfs.create_array(MemoryStore(), shape=(1 << 20,) * 3, chunks=(1, 1024, 1024), dtype="u2")
    assert present(array, ".fits").memory_nbytes <= 3 * 2880
