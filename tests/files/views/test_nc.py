"""netCDF files, read with xarray and h5netcdf, and with the netCDF library of GDAL."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import h5netcdf
import h5py
import numpy as np
import pytest
import rasterio
import xarray as xr

import zarrfs
from tests.files.views.presented import refused, sample, write_file
from zarrfs.engine.stores.memory import MemoryStore

NUMBERS = ("|i1", "|u1", "<i2", ">u2", "<i4", ">u4", ">i8", "<u8", "<f4", ">f4", "<f8", ">f8")


def make(
    data: np.ndarray[Any, Any], names: tuple[str, ...] = ("z", "y", "x"), **options: Any
) -> zarrfs.Array:
    options = {"zarr_format": 3 if "dimension_units" in options else 2, **options}
    return zarrfs.create_array(
        MemoryStore(), "img", data=data, dimension_names=names[-data.ndim :], **options
    )


def load(path: Path, **options: Any) -> xr.Dataset:
    with xr.open_dataset(path, engine="h5netcdf", **options) as dataset:
        return dataset.load()


@pytest.mark.parametrize("shape", [(0, 3), (5,), (3, 4, 5)])
@pytest.mark.parametrize("dtype", NUMBERS)
def test_xarray_reads_the_values(dtype: str, shape: tuple[int, ...], tmp_path: Path) -> None:
    data = sample(dtype, shape)
    variable = load(write_file(make(data), ".nc", tmp_path))["img"]
    assert variable.dtype == data.dtype.newbyteorder("=")
    assert variable.dims == ("z", "y", "x")[-len(shape) :]
    assert np.array_equal(variable.values, data)


def test_scalars(tmp_path: Path) -> None:
    array = zarrfs.create_array(MemoryStore(), "img", data=np.float32(2.5))
    assert load(write_file(array, ".nc", tmp_path))["img"].item() == 2.5


def test_boolean_values(tmp_path: Path) -> None:
    data = sample("?", (4, 5))
    variable = load(write_file(make(data), ".nc", tmp_path))["img"]
    assert variable.dtype == np.bool_
    assert np.array_equal(variable.values, data)


@pytest.mark.parametrize("dtype", ["<M8[ns]", ">M8[s]", "<M8[D]", "<M8[ms]"])
def test_times(dtype: str, tmp_path: Path) -> None:
    data = np.array(["2020-01-02", "1969-07-20", "NaT"], "M8[D]").astype(dtype)
    values = load(write_file(make(data), ".nc", tmp_path))["img"].values
    assert np.array_equal(values.astype("M8[ns]"), data.astype("M8[ns]"), equal_nan=True)


def test_durations(tmp_path: Path) -> None:
    data = np.array([1, -5, "NaT"], "m8[ms]")
    values = load(write_file(make(data), ".nc", tmp_path))["img"].values
    assert np.array_equal(values, data, equal_nan=True)


def test_fixed_length_text(tmp_path: Path) -> None:
    data = np.array([[b"abc", b""], [b"x", b"hello"], [b"1", b"22"]])
    variable = load(write_file(make(data), ".nc", tmp_path))["img"]
    assert variable.dims == ("y", "x")
    assert np.array_equal(variable.values, data)


def test_coordinates_and_units(tmp_path: Path) -> None:
    array = make(sample("<f4", (2, 3, 4)), dimension_units=("2 um", "0.5 um", None))
    dataset = load(write_file(array, ".nc", tmp_path))
    assert dataset["z"].values.tolist() == [0, 2]
    assert dataset["y"].values.tolist() == [0, 0.5, 1]
    assert dataset["y"].attrs["units"] == "um"
    assert "x" not in dataset.coords
    assert dict(dataset.sizes) == {"z": 2, "y": 3, "x": 4}


def test_an_array_with_the_name_of_its_dimension_is_a_coordinate(tmp_path: Path) -> None:
    array = make(np.array([1.5, 2, 4]), ("time",), attributes={"units": "days since 2020-01-01"})
    dataset = load(write_file(array, ".nc", tmp_path, "time"))
    assert list(dataset.data_vars) == []
    expected = np.array(["2020-01-02T12", "2020-01-03", "2020-01-05"], "M8[ns]")
    assert np.array_equal(dataset["time"].values, expected)


def test_attributes(tmp_path: Path) -> None:
    attributes = {
        "long_name": "temperature",
        "units": "K",
        "scale_factor": 0.5,
        "add_offset": 10,
        "_FillValue": 7,
        "missing_value": 1.5,
        "valid_range": [0, 100],
        "flag": True,
        "DIMENSION_LIST": "x",
    }
    array = make(np.array([[7, 8], [10, 20]], "<i2"), attributes=attributes)
    path = write_file(array, ".nc", tmp_path)
    variable = load(path)["img"]
    assert variable.values[0, 1] == 14
    assert np.isnan(variable.values[0, 0])
    raw = load(path, mask_and_scale=False)["img"]
    assert raw.attrs["_FillValue"] == 7
    assert raw.attrs["_FillValue"].dtype == np.int16
    assert "missing_value" not in raw.attrs  # 1.5 is not an integer
    assert raw.attrs["valid_range"].tolist() == [0, 100]
    assert raw.attrs["flag"] == 1
    assert raw.attrs["long_name"] == "temperature"


def test_text_attributes_have_a_fixed_length(tmp_path: Path) -> None:
    """Such attributes have the netCDF type NC_CHAR, which programs read that do not know NC_STRING."""
    attributes = {"long_name": "Höhe", "empty": "", "unit": "m"}
    times = np.array(["2020-01-02"], "M8[s]")
    array = make(times, ("t",), attributes=attributes, zarr_format=3, dimension_units=["second"])
    with h5py.File(write_file(array, ".nc", tmp_path)) as file:
        stored = file["img"].attrs
        assert stored["long_name"] == "Höhe".encode()
        assert stored["units"] == b"seconds since 1970-01-01"
        for name in ("long_name", "unit", "units", "calendar"):
            assert h5py.check_string_dtype(stored.get_id(name).dtype).length is not None, name
        assert stored["empty"] == ""


def test_h5netcdf_finds_the_dimensions(tmp_path: Path) -> None:
    path = write_file(make(sample("<u2", (3, 4, 5))), ".nc", tmp_path)
    with h5netcdf.File(path) as file:
        assert {name: dimension.size for name, dimension in file.dimensions.items()} == {
            "z": 3,
            "y": 4,
            "x": 5,
        }
        assert list(file.variables) == ["img"]
        assert file["img"].dimensions == ("z", "y", "x")


@pytest.mark.parametrize("dtype", ["<u2", ">i4", ">f8"])
def test_the_netcdf_library_reads_the_values(dtype: str, tmp_path: Path) -> None:
    data = sample(dtype, (3, 4, 5))
    array = make(data, dimension_units=("2 um", None, None), attributes={"long_name": "temperature"})
    path = write_file(array, ".nc", tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", rasterio.errors.NotGeoreferencedWarning)
        with rasterio.open(f"netcdf:{path}:img") as file:
            # GDAL turns the rows over: y increases upwards in CF.
            assert np.array_equal(file.read()[:, ::-1], data)
            assert file.tags(1)["NETCDF_DIM_z"] == "0"
            assert file.tags()["img#long_name"] == "temperature"


@pytest.mark.parametrize("dtype", ["<c8", "<f2", "<U3", "|V3", "<M8[M]", "<M8[10s]", [("x", "<i4")]], ids=str)
def test_types_without_equivalent_are_absent(dtype: Any) -> None:
    assert "netCDF has no data type for its elements" in refused(make(np.zeros(3, dtype)), ".nc")


def test_dimensions_need_names() -> None:
    unnamed = zarrfs.create_array(MemoryStore(), "img", data=sample("<u2", (3, 4)))
    assert refused(unnamed, ".nc") == "not all of its dimensions have a name"
    assert "'a'" in refused(make(sample("<u2", (3, 4)), ("a", "a")), ".nc")
    assert "'a/b'" in refused(make(sample("<u2", (3,)), ("a/b",)), ".nc")
    assert "'img'" in refused(make(sample("<u2", (3, 4)), ("y", "img")), ".nc")
