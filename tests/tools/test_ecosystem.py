"""Dask and xarray with arrays of zarrfs, compared with xarray's own Zarr engine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import dask.array
import dask.base
import numpy as np
import pandas
import pytest
import xarray

import zarrfs
from zarrfs.errors import MetadataError


def dataset() -> xarray.Dataset:
    rng = np.random.default_rng(0)
    temperature = rng.normal(15, 8, (6, 4, 5)).astype("f4")
    temperature[0, 0] = np.nan
    return xarray.Dataset(
        {
            "temperature": (("time", "y", "x"), temperature, {"units": "degC"}),
            "count": (("y", "x"), rng.integers(0, 99, (4, 5)).astype("i2")),
        },
        {
            "time": pandas.date_range("2020-02-27", periods=6),
            "lat": (("y", "x"), rng.normal(size=(4, 5))),
            "x": np.arange(5) * 10.0,
            "station": ("y", np.array(["a", "bb", "ccc", "d"], object)),
        },
        {"title": "made up"},
    )


@pytest.fixture(params=[2, 3])
def dataset_path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    path = tmp_path / "d.zarr"
    encoding = {"temperature": {"chunks": (2, 4, 3), "_FillValue": -999.0}, "count": {"chunks": (2, 5)}}
    dataset().drop_vars("station").to_zarr(
        path, zarr_format=request.param, consolidated=False, encoding=encoding
    )
    return path


def test_a_dataset_equals_that_of_the_zarr_engine(dataset_path: Path) -> None:
    with (
        xarray.open_dataset(dataset_path, engine="zarrfs") as opened,
        xarray.open_zarr(dataset_path, consolidated=False) as expected,
    ):
        xarray.testing.assert_identical(opened.load(), expected.load())
        assert set(opened.coords) == {"time", "lat", "x"}


def test_variables_are_lazy_and_support_all_indexers(dataset_path: Path) -> None:
    with xarray.open_dataset(dataset_path, engine="zarrfs") as opened:
        expected_array = dataset()["temperature"]
        lazy = opened["temperature"]
        assert not lazy.variable._in_memory
        for indexers in (
            {"time": 3},
            {"time": slice(1, None, 2), "x": slice(None, None, -1)},
            {"time": [0, 4, 2], "x": [1, 1]},
            {"y": xarray.DataArray([0, 3], dims="p"), "x": xarray.DataArray([4, 0], dims="p")},
        ):
            np.testing.assert_allclose(lazy.isel(indexers).values, expected_array.isel(indexers).values)


def test_dask_chunks_are_those_of_the_array(dataset_path: Path) -> None:
    with xarray.open_dataset(dataset_path, engine="zarrfs", chunks={}) as opened:
        assert opened["temperature"].chunks == ((2, 2, 2), (4,), (3, 2))
        xarray.testing.assert_allclose(
            opened["temperature"].mean().compute(), dataset()["temperature"].mean()
        )


def test_groups_open_as_datatree(tmp_path: Path) -> None:
    path = tmp_path / "t.zarr"
    flat = dataset().drop_vars("station")
    flat.to_zarr(path, group="a/b", consolidated=False)
    with xarray.open_dataset(path, engine="zarrfs", group="a/b") as opened:
        xarray.testing.assert_allclose(opened.load(), flat)
    with xarray.open_datatree(path, engine="zarrfs") as tree:
        xarray.testing.assert_allclose(tree["a/b"].to_dataset().load(), flat)


def test_missing_dimension_names_are_an_error(tmp_path: Path) -> None:
    zarrfs.create_group(tmp_path / "n.zarr").create_array("a", data=np.eye(3))
    with pytest.raises(MetadataError, match="dimension_names"):
        xarray.open_dataset(tmp_path / "n.zarr", engine="zarrfs")


@pytest.mark.parametrize("zarr_format", [2, 3, "n5"])
def test_dask_reads_and_writes_arrays(zarr_format: Any, tmp_path: Path) -> None:
    data = np.arange(20 * 30).reshape(20, 30)
    array = zarrfs.create_array(tmp_path / "a", data=data, chunks=(7, 8), zarr_format=zarr_format)
    assert all(
        size % side == 0 for size, side in zip(dask.array.from_array(array).chunksize, (20, 30), strict=True)
    )
    lazy = dask.array.from_array(array, chunks=array.chunks)
    assert lazy.chunks == ((7, 7, 6), (8, 8, 8, 6))
    assert np.array_equal(lazy[3:15, ::3].compute(), data[3:15, ::3])
    target = zarrfs.zeros_like(array, tmp_path / "b")
    dask.array.store(lazy * 2, target)
    assert np.array_equal(target[...], data * 2)


def test_a_dask_token_depends_on_location_and_metadata(tmp_path: Path) -> None:
    array = zarrfs.create_array(tmp_path / "a", data=np.arange(9), chunks=(3,))
    reopened = zarrfs.open_array(tmp_path / "a", mode="r+")
    assert dask.base.tokenize(array) == dask.base.tokenize(reopened)
    reopened.resize(12)
    assert dask.base.tokenize(array) != dask.base.tokenize(reopened)


def test_numpy_functions_accept_arrays() -> None:
    array = zarrfs.array(np.arange(6).reshape(2, 3))
    assert np.array_equal(np.asarray(array), np.arange(6).reshape(2, 3))
    assert np.asarray(array, dtype="f4").dtype == np.dtype("f4")
    assert float(np.mean(array)) == 2.5
