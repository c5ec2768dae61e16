"""xarray reads the same dataset before and after a conversion: dimension names, missing values, scaled values."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray

import zarrfs
from zarrfs.tools import convert, migrate
from zarrfs.tools.copying.conventions import decode_missing, encode_missing

N5_UNSUPPORTED = ["words", "fixed", "flags", "complex", "scalar", "spatial_ref"]
DRAFT_UNSUPPORTED = ["words", "fixed"]


def dataset() -> xarray.Dataset:
    grid = np.arange(12).reshape(3, 4)
    return xarray.Dataset(
        {
            "plain": (("y", "x"), grid.astype("i4")),
            "masked": (("y", "x"), np.where(grid % 5, grid, np.nan), {"units": "m"}),
            "nan": ("x", np.array([np.nan, 1, 2, 0])),
            "scaled": ("x", np.array([0, 0.1, np.nan, 0.3])),
            "three_is_missing": ("x", np.array([0, 1, 2, 3], "u1")),
            "zero_is_missing": ("x", np.array([0, 1, 2, 3], "u1")),
            "words": ("x", np.array(["a", "", "c", "d"], object)),
            "fixed": ("x", np.array([b"a", b"", b"c", b"d"], "S2")),
            "flags": ("x", np.array([True, False, True, False])),
            "complex": ("x", np.array([0, 1j, 2, 3], "c8")),
            "scalar": ((), 3),
            "spatial_ref": ((), 0, {"crs": "EPSG:4326"}),
        },
        {"time": ("x", np.arange("2000-01-01", "2000-01-05", dtype="M8[D]").astype("M8[ns]"))},
        {"title": "all kinds"},
    )


ENCODING: dict[str, dict[str, Any]] = {
    "masked": {"_FillValue": -9.0},
    "scaled": {"dtype": "i2", "scale_factor": 0.1, "_FillValue": -1},
    "three_is_missing": {"_FillValue": np.uint8(3)},
    "zero_is_missing": {"_FillValue": np.uint8(0)},
    "complex": {"_FillValue": 0j},
}


def write_dataset(path: Path, zarr_format: int, excluded: list[str]) -> None:
    supported = dataset().drop_vars(excluded)
    encoding = {name: options for name, options in ENCODING.items() if name in supported}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # zarr-python warns about data types without a specification
        supported.to_zarr(path, zarr_format=zarr_format, encoding=encoding, consolidated=False)


def assert_xarray_reads_equal(one: Path, other: Path) -> None:
    for mask_and_scale in (True, False):
        options: dict[str, Any] = {"mask_and_scale": mask_and_scale, "consolidated": False, "chunks": None}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            first, second = (xarray.open_zarr(path, **options).load() for path in (one, other))
        assert dict(second.attrs) == dict(first.attrs)
        assert sorted(second.variables) == sorted(first.variables)
        for name, variable in first.variables.items():
            found = second.variables[name]
            assert found.equals(variable), (name, mask_and_scale, found.values, variable.values)
            assert found.dtype == variable.dtype
            expected, attributes = variable.attrs, found.attrs
            assert repr(sorted(map(as_python_value, attributes.items()))) == repr(
                sorted(map(as_python_value, expected.items()))
            )


def as_python_value(item: tuple[str, Any]) -> tuple[str, Any]:
    """Return an attribute with NumPy scalars converted to Python numbers."""
    return item[0], item[1].item() if isinstance(item[1], np.generic) else item[1]


@pytest.mark.parametrize("target", [2, 3])
@pytest.mark.parametrize("source", [2, 3])
@pytest.mark.parametrize("options", [{}, {"compressors": "gzip"}], ids=["unchanged", "re-encoded"])
def test_xarray_reads_the_same_after_conversion(
    source: int, target: int, options: dict[str, Any], tmp_path: Path
) -> None:
    write_dataset(tmp_path / "s", source, [])
    convert(tmp_path / "s", tmp_path / "t", zarr_format=target, verify=True, **options)
    assert_xarray_reads_equal(tmp_path / "s", tmp_path / "t")


@pytest.mark.parametrize(
    ("intermediate_format", "unsupported"), [("n5", N5_UNSUPPORTED), ("draft2019", DRAFT_UNSUPPORTED)]
)
@pytest.mark.parametrize("source", [2, 3])
@pytest.mark.parametrize("target", [2, 3])
def test_xarray_reads_the_same_after_conversion_by_n5_and_draft(
    source: int, intermediate_format: str, unsupported: list[str], target: int, tmp_path: Path
) -> None:
    write_dataset(tmp_path / "s", source, unsupported)
    convert(tmp_path / "s", tmp_path / "intermediate", zarr_format=intermediate_format, verify=True)
    convert(tmp_path / "intermediate", tmp_path / "t", zarr_format=target, verify=True)
    assert_xarray_reads_equal(tmp_path / "s", tmp_path / "t")
    for _, array in zarrfs.open_group(tmp_path / "t").arrays():
        assert not {"axes", "units_of_axes", "resolution"} & set(array.attrs)


def test_the_zarrfs_engine_reads_a_converted_n5_like_its_source(tmp_path: Path) -> None:
    write_dataset(tmp_path / "s", 2, N5_UNSUPPORTED)
    convert(tmp_path / "s", tmp_path / "t", zarr_format="n5")
    for mask_and_scale in (True, False):
        first, second = (
            xarray.open_dataset(tmp_path / name, engine="zarrfs", mask_and_scale=mask_and_scale).load()
            for name in "st"
        )
        assert second.identical(first)


def test_xarray_reads_the_same_after_migration(tmp_path: Path) -> None:
    for name in ("s", "t"):
        write_dataset(tmp_path / name, 2, [])
    migrate(tmp_path / "t", remove_old=True)
    assert_xarray_reads_equal(tmp_path / "s", tmp_path / "t")


def test_dimension_names_and_fill_values_are_stored_by_the_convention_of_the_format(tmp_path: Path) -> None:
    write_dataset(tmp_path / "two", 2, [])
    convert(tmp_path / "two", tmp_path / "three", zarr_format=3)
    document = json.loads((tmp_path / "three" / "plain" / "zarr.json").read_text())
    assert document["dimension_names"] == ["y", "x"]
    assert document["attributes"] == {"coordinates": "time"}
    masked = json.loads((tmp_path / "three" / "masked" / "zarr.json").read_text())
    assert masked["attributes"] == {
        "units": "m",
        "coordinates": "time",
        "_FillValue": "AAAAAAAAIsA=",
    }
    convert(tmp_path / "three", tmp_path / "back", zarr_format=2)
    attributes = json.loads((tmp_path / "back" / "masked" / ".zattrs").read_text())
    assert attributes == {"units": "m", "coordinates": "time", "_ARRAY_DIMENSIONS": ["y", "x"]}
    fills = {
        name: json.loads((tmp_path / "back" / name / ".zarray").read_text())["fill_value"]
        for name in ("plain", "masked", "three_is_missing", "zero_is_missing", "spatial_ref", "words")
    }
    assert fills == {
        "plain": None,
        "masked": -9.0,
        "three_is_missing": 3,
        "zero_is_missing": 0,
        "spatial_ref": None,
        "words": None,
    }


def test_arrays_without_dimension_names_keep_their_fill_value(tmp_path: Path) -> None:
    zarrfs.create_array(tmp_path / "s", shape=(6,), dtype="u1", chunks=(2,), fill_value=7, zarr_format=2)
    convert(tmp_path / "s", tmp_path / "t", zarr_format=3)
    format_3 = zarrfs.open_array(tmp_path / "t")
    assert (dict(format_3.attrs), format_3.fill_value) == ({}, 7)
    convert(tmp_path / "t", tmp_path / "u", zarr_format=2)
    assert zarrfs.open_array(tmp_path / "u").fill_value == 7


@pytest.mark.parametrize("missing", [None, 5])
def test_missing_chunks_are_stored_if_their_value_cannot_be_the_fill_value(
    missing: int | None, tmp_path: Path
) -> None:
    """In format 3 the fill value 7 is a value and 5 is the missing value. In format 2 the fill value is missing."""
    attributes = {} if missing is None else {"_FillValue": missing}
    array = zarrfs.create_array(
        tmp_path / "s",
        shape=(6,),
        dtype="u1",
        chunks=(2,),
        fill_value=7,
        dimension_names=["x"],
        attributes=attributes,
    )
    array[:2] = [5, 0]
    convert(tmp_path / "s", tmp_path / "t", zarr_format=2, verify=True)
    format_2 = zarrfs.open_array(tmp_path / "t")
    assert format_2.fill_value is None
    assert dict(format_2.attrs) == {"_ARRAY_DIMENSIONS": ["x"], **attributes}
    assert format_2[...].tolist() == [5, 0, 7, 7, 7, 7]
    assert sorted(format_2.storage.stored_chunks()) == [(0,), (1,), (2,)]


def test_dimension_units_are_converted(tmp_path: Path) -> None:
    names, units = ["y", "x"], ["4 nm", "8 nm"]
    options: dict[str, Any] = {"dimension_names": names, "dimension_units": units}
    zarrfs.create_array(tmp_path / "s", data=np.ones((4, 4)), zarr_format="n5", **options)
    convert(tmp_path / "s", tmp_path / "t", zarr_format=3)
    format_3 = zarrfs.open_array(tmp_path / "t")
    assert format_3.spec.dimension_units == ("4 nm", "8 nm")
    assert dict(format_3.attrs) == {"dimension_units": units}
    assert format_3.dimension_names == ("y", "x")


@pytest.mark.parametrize(
    ("value", "dtype"), [(b"ab", "S3"), ("ab", "U3"), (-1.5, "f4"), (1 - 2j, "c8"), (-3, "i2"), (True, "?")]
)
def test_a_missing_value_is_encoded_and_decoded(value: Any, dtype: str) -> None:
    encoded = encode_missing(np.array(value, dtype)[()], np.dtype(dtype))
    assert decode_missing(json.loads(json.dumps(encoded)), np.dtype(dtype)) == value


@pytest.mark.parametrize("value", ["no number", [], {}, 300, True, None, "AAA"])
@pytest.mark.parametrize("dtype", ["f4", "u1", "S2", "c8", "U2", "?"])
def test_an_invalid_missing_value_is_unchanged(value: Any, dtype: str, tmp_path: Path) -> None:
    zarrfs.create_array(
        tmp_path / "s",
        data=np.zeros(3, dtype),
        dimension_names=["x"],
        attributes={"_FillValue": value},
        zarr_format=2 if dtype == "S2" else 3,
    )
    convert(tmp_path / "s", tmp_path / "t", zarr_format=2, verify=True)
    found = zarrfs.open_array(tmp_path / "t")
    if found.fill_value is None:
        assert found.attrs["_FillValue"] == value


def test_no_fill_value_is_null_in_format_2_and_zero_elsewhere(tmp_path: Path) -> None:
    for number in (2, 3):
        options: dict[str, Any] = {"shape": (4,), "dtype": "i2", "zarr_format": number}
        assert zarrfs.create_array(tmp_path / f"d{number}", **options).fill_value == 0
        none = zarrfs.create_array(tmp_path / f"n{number}", fill_value=None, **options)
        assert none.fill_value == (None if number == 2 else 0)
        assert none[...].tolist() == [0] * 4
    words = zarrfs.create_array(tmp_path / "w", shape=2, dtype=str, fill_value=None, zarr_format=2)
    assert words[...].tolist() == ["", ""]
    assert json.loads((tmp_path / "n2" / ".zarray").read_text())["fill_value"] is None
