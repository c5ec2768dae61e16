"""Packed values (``scale_factor``, ``add_offset``, ``_FillValue``) in all that the viewer computes, compared with
xarray, which wrote the data.
"""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray
from zarrfs_viewer.analysis.image_summary import image_summary, stored_summary
from zarrfs_viewer.analysis.measure import Roi, readout, roi_statistics
from zarrfs_viewer.analysis.neighbourhood import read_neighbourhood
from zarrfs_viewer.analysis.value_pages import read_page
from zarrfs_viewer.display.resolve import resolve
from zarrfs_viewer.images.dataset import describe, initial_settings
from zarrfs_viewer.images.image import Image
from zarrfs_viewer.images.open_image import image_from_array
from zarrfs_viewer.images.reading import PaddedArray
from zarrfs_viewer.rendering.contrast import channel_values
from zarrfs_viewer.rendering.lookup import NAN_COLOR
from zarrfs_viewer.rendering.renderer import complete_frame
from zarrfs_viewer.state.view_state import Projection, fit
from zarrfs_viewer.streaming.streamer import TileStreamer

import zarrfs
from tests.viewer.core.doubles import FakeArray, open_pyramid, pyramid
from tests.viewer.core.test_measure import load, state_of

KELVIN = 250 + np.arange(48).reshape(6, 8) * 0.75
KELVIN[1, 2] = np.nan

ENCODINGS: dict[str, dict[str, Any]] = {
    "scaled": {"dtype": "i2", "scale_factor": 0.25, "add_offset": 250.0, "_FillValue": -32768},
    "scaled without offset": {"dtype": "i4", "scale_factor": 0.25, "_FillValue": -1},
    "filled": {"dtype": "f4", "_FillValue": -999.0},
    "filled integers": {"dtype": "u2", "_FillValue": 65535},
    "unsigned": {
        "dtype": "i1",
        "_Unsigned": "true",
        "scale_factor": 0.75,
        "add_offset": 250.0,
        "_FillValue": -1,
    },
    "scaled floats": {"dtype": "f8", "scale_factor": 2.0, "_FillValue": 1e20},
    "plain": {"dtype": "f8"},
}


def stored(path: Path, name: str, zarr_format: int) -> tuple[Image, np.ndarray[Any, Any]]:
    """Return the image of data that xarray has written, and the values that xarray reads."""
    values = KELVIN.round() if name == "filled integers" else KELVIN
    encoding = ENCODINGS[name]
    data = xarray.DataArray(values, dims=("lat", "lon"), attrs={"units": "K"}).to_dataset(name="t")
    data.to_zarr(path, zarr_format=zarr_format, encoding={"t": encoding}, consolidated=False)
    expected = xarray.open_zarr(path, consolidated=False)["t"].to_numpy()
    image = describe(zarrfs.open(str(path))).open_image("t")
    return image, expected


@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize("name", ENCODINGS)
def test_values_are_those_of_xarray(
    streamer: TileStreamer, tmp_path: Path, name: str, zarr_format: int
) -> None:
    image, expected = stored(tmp_path / "a.zarr", name, zarr_format)
    assert np.isnan(expected[1, 2])
    assert image.value_unit == "K"
    settings = initial_settings(image)
    state = state_of(image)
    load(streamer, state)
    for row, column in np.ndindex(expected.shape):
        result = readout(state, streamer, row, column)
        assert result is not None
        np.testing.assert_equal(float(result.values[0][1]), float(expected[row, column]))
    found = read_neighbourhood(image, settings, 3, 4, expected.shape)
    assert found is not None
    np.testing.assert_array_equal(found.values, expected)
    np.testing.assert_array_equal(
        np.sort(channel_values(image, settings.channels[0], settings)), np.sort(expected.reshape(-1))
    )
    statistics = next(roi_statistics(image, settings, Roi("rectangle", (0, 0, 5, 7))))
    assert (statistics.count, statistics.nans) == (47, 1)
    assert statistics.mean == pytest.approx(float(np.nanmean(expected.astype(np.float64))))
    assert (statistics.minimum, statistics.maximum) == (np.nanmin(expected), np.nanmax(expected))
    frame = complete_frame(resolve(settings, image, fit(8, 6, 6, 8)))
    limits = frame.channels[0].limits
    assert limits is not None
    assert np.nanmin(expected) <= limits[0] < limits[1] <= np.nanmax(expected)
    red, green, blue = NAN_COLOR
    is_nan = frame.pixels == np.uint32(0xFF000000 | red << 16 | green << 8 | blue)
    assert np.argwhere(is_nan).tolist() == [[1, 2]]


@pytest.mark.parametrize(
    ("name", "value", "missing"),
    [
        ("scaled", "279.25 K (stored 117)", "no data (stored -32768)"),
        ("scaled without offset", "279.25 K (stored 1117)", "no data (stored -1)"),
        ("filled", "279.25 K", "no data"),
        ("filled integers", "279 K", "no data (stored 65535)"),
        ("unsigned", "279.25 K (stored 39)", "no data (stored -1)"),
        ("plain", "279.25 K", "nan"),
    ],
)
def test_the_readout_states_unit_and_stored_number(
    streamer: TileStreamer, tmp_path: Path, name: str, value: str, missing: str
) -> None:
    image, _ = stored(tmp_path / "a.zarr", name, 3)
    state = state_of(image)
    load(streamer, state)
    for position, expected in (((4, 7), value), ((1, 2), missing)):
        result = readout(state, streamer, *position)
        assert result is not None
        assert f" · {expected} · chunk" in result.text()


def test_the_metadata_state_how_values_are_stored(tmp_path: Path) -> None:
    image, _ = stored(tmp_path / "a.zarr", "scaled", 3)
    summary = image_summary(image)
    assert summary["Unit of the values"] == "K"
    assert summary["Packing"] == {
        "stored as": "int16",
        "scale_factor": "0.25",
        "add_offset": "250",
        "missing": "-32768",
    }
    assert summary["Size of level 0"] == "96 bytes"
    assert "Stored size" in stored_summary(image)


def test_projections_are_those_of_the_values(streamer: TileStreamer) -> None:
    data = np.array([[[1, 5]], [[7, -1]]], np.int16)
    array = FakeArray(data, names=("z", "y", "x"), attrs={"scale_factor": -2.0, "missing_value": [-1]})
    image = image_from_array(array)
    settings = replace(initial_settings(image), projection=Projection(0, "max", 5))
    state = state_of(image, settings=settings)
    load(streamer, state)
    results = [readout(state, streamer, 0, column) for column in (0, 1)]
    assert [result and result.values[0][1] for result in results] == [-2.0, -10.0]
    assert [result and result.stored for result in results] == [(None,), (None,)]


@pytest.mark.parametrize(
    ("attributes", "dtype"),
    [
        ({"scale_factor": "a", "add_offset": None}, "i2"),
        ({"scale_factor": 0, "_FillValue": {}}, "i2"),
        ({"_FillValue": 70000}, "u2"),
        ({"_FillValue": "AAAAAAAA+H8="}, "f8"),  # NaN, as xarray stores it
        ({"scale_factor": float("nan"), "add_offset": math.inf, "_Unsigned": "true"}, "u1"),
        ({"scale_factor": 2.0}, "c8"),
        ({"scale_factor": [1, 2]}, "?"),
    ],
)
def test_other_attributes_have_no_effect(attributes: dict[str, Any], dtype: str) -> None:
    image = image_from_array(FakeArray(np.zeros((4, 4), dtype), attrs=attributes))
    assert (image.packing, image.dtype) == (None, np.dtype(dtype))


def test_labels_colours_and_zeros_of_other_writers_are_not_unpacked(tmp_path: Path) -> None:
    attributes = {"_FillValue": 0}
    data = np.zeros((8, 8, 3), np.uint8)
    colours = image_from_array(FakeArray(data, names=("y", "x", "rgb"), attrs=attributes))
    assert colours.rgb_axis == 2
    assert colours.packing is None
    assert image_from_array(FakeArray(data[..., 0], attrs=attributes)).packing is not None
    assert image_from_array(FakeArray(data[..., 0], attrs=attributes), as_labels=True).packing is None
    array = zarrfs.create_array(
        str(tmp_path / "a"), shape=(4, 4), dtype="u1", fill_value=0, zarr_format=2,
        attributes={"_ARRAY_DIMENSIONS": ["y", "x"]},
    )  # fmt: skip
    assert image_from_array(array).packing is None


def test_all_levels_of_a_pyramid_have_the_packing_of_the_finest() -> None:
    group = pyramid(np.arange(256, dtype=np.uint8).reshape(16, 16), "yx", 2)
    group["0"].attrs["scale_factor"] = 0.5
    image = open_pyramid(group)
    assert [level.array.dtype for level in image.levels] == [np.dtype(np.float64)] * 2
    assert image.levels[1].array[3, 3] == group["1"].data[3, 3] / 2


def test_curves_and_tables_contain_the_values() -> None:
    array = FakeArray(np.array([1, 2, -1], np.int16), attrs={"scale_factor": 0.5, "_FillValue": -1})
    padded = image_from_array(array).levels[0].array
    assert isinstance(padded, PaddedArray)
    page = read_page(padded.array, (), 0)
    assert [page.text(row, 0) for row in range(3)] == ["0.5", "1.0", "nan"]
