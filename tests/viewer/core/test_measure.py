"""Readouts, profiles, statistics of regions and scale bars, compared with NumPy."""

from __future__ import annotations

import csv
import io
import math
import threading
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from zarrfs_viewer.analysis.measure import (
    Roi,
    line_profile,
    profile_csv,
    readout,
    roi_statistics,
    scale_bar,
    statistics_csv,
)
from zarrfs_viewer.analysis.neighbourhood import read_neighbourhood
from zarrfs_viewer.analysis.readout import format_value, short_unit
from zarrfs_viewer.analysis.statistics import RunningStatistics
from zarrfs_viewer.display.resolve import DisplayState, resolve
from zarrfs_viewer.images.dataset import describe, initial_settings
from zarrfs_viewer.images.image import Image
from zarrfs_viewer.images.tile_grid import TileRequest
from zarrfs_viewer.state.view_state import DisplaySettings, fit, with_position
from zarrfs_viewer.streaming.streamer import TileStreamer

import zarrfs
from tests.processes import TIMEOUT
from tests.viewer.core.doubles import FakeArray, array_image, open_pyramid, pyramid, random_values


def load(streamer: TileStreamer, state: DisplayState, requests: list[TileRequest] | None = None) -> None:
    """Read tiles of a state to the cache, by default the visible ones."""
    done = threading.Event()
    stream = streamer.open(on_finished=lambda generation: done.set())
    stream.show(state.images, list(state.tiles) if requests is None else requests)
    assert done.wait(TIMEOUT)


def state_of(image: Image, *overlays: Image, settings: DisplaySettings | None = None) -> DisplayState:
    rows, columns = (image.shape[axis] for axis in image.default_displayed)
    return resolve(settings or initial_settings(image), image, fit(columns, rows, rows, columns), overlays)


def test_a_readout_has_position_values_labels_and_chunk(streamer: TileStreamer) -> None:
    data = random_values((2, 4, 16, 16))
    label_data = np.zeros((4, 16, 16), np.uint8)
    label_data[1, 5, 6] = 9
    properties = [{"label-value": 9, "class": "mitotic"}]
    labels = pyramid(label_data, "zyx", 1, image_label={"properties": properties}, scale=(2.0, 0.5, 0.5))
    group = pyramid(data, "czyx", 1, (1, 2, 8, 8), scale=(1.0, 2.0, 0.5, 0.5), labels={"cells": labels})
    image, overlay = open_pyramid(group), open_pyramid(labels)
    settings = with_position(initial_settings(image), 1, 1)
    state = state_of(image, overlay, settings=settings)
    before = readout(state, streamer, 5, 6)
    assert before is not None
    assert [value for _, value in before.values] == [None, None]
    load(streamer, state)
    result = readout(state, streamer, 5.2, 5.8)
    assert result is not None
    assert result.pixel == (0, 1, 5, 6)
    assert result.physical == (("z", 2.0, "micrometer"), ("y", 2.6, "micrometer"), ("x", 2.9, "micrometer"))
    assert result.values == (("Channel 0", data[0, 1, 5, 6]), ("Channel 1", data[1, 1, 5, 6]))
    assert (result.labels[0].value, result.labels[0].properties) == (9, {"class": "mitotic"})
    assert result.chunk is None, "the test double has no store"
    text = result.text()
    for part in (
        "y 2.6 µm",
        "pixel (0, 1, 5, 6) of level 0",
        f"Channel 1: {data[1, 1, 5, 6]}",
        "test image: 9 (class=mitotic)",
    ):
        assert part in text
    assert readout(state, streamer, -0.6, 3) is None
    assert readout(state, streamer, 3, 15.5) is None


def test_a_readout_has_the_store_key_of_the_chunk(streamer: TileStreamer) -> None:
    store: dict[str, bytes] = {}
    zarrfs.create_array(
        store, data=random_values((4, 30, 30)), chunks=(2, 10, 10), dimension_names=["z", "y", "x"]
    )
    image = describe(zarrfs.open(store)).open_image()
    state = state_of(image, settings=with_position(initial_settings(image), 0, 3))
    result = readout(state, streamer, 25, 11)
    assert result is not None
    assert result.chunk == "c/1/2/1"
    assert result.chunk in store


def test_a_readout_has_no_value_of_a_coarser_level_while_the_displayed_one_is_loaded(
    streamer: TileStreamer,
) -> None:
    data = random_values((32, 32))
    image = open_pyramid(pyramid(data, "yx", 2))
    state = state_of(image)
    load(streamer, state, [request for request in state.tiles if request.key.plane.level == 1])
    result = readout(state, streamer, 20, 10)
    assert result is not None
    assert result.values[0][1] is None


@pytest.mark.parametrize(
    ("dtype", "text"),
    [
        ("float32", "0.333333"),
        ("bool", "True"),
        ("complex64", "0.333333+0j"),
        ("uint64", "18446744073709551615"),
    ],
)
def test_values_of_all_data_types_are_formatted(streamer: TileStreamer, dtype: str, text: str) -> None:
    value: Any = {"bool": True, "uint64": 2**64 - 1}.get(dtype, 1 / 3)
    image = array_image(np.full((4, 4), value, dtype))
    state = state_of(image)
    load(streamer, state)
    result = readout(state, streamer, 1, 1)
    assert result is not None
    assert format_value(result.values[0][1]) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (np.datetime64("2020-01-02T03:04:05.678901", "ns"), "2020-01-02T03:04:05.678901"),
        (np.datetime64("1970-01-01T00:00:00.000000007", "ns"), "1970-01-01T00:00:00.000000007"),
        (np.datetime64("2020-01-02", "D"), "2020-01-02"),
        (np.datetime64("1969-12-31T23:59:58", "10s"), "1969-12-31T23:59:50"),
        (np.datetime64("NaT", "ns"), "NaT"),
        (np.timedelta64(2**63 - 1, "D"), "9223372036854775807 days"),
        (np.timedelta64(-1500, "ms"), "-1500 milliseconds"),
    ],
)
def test_times_are_not_numbers(streamer: TileStreamer, value: Any, text: str) -> None:
    record = np.zeros((4, 4), [("number", "u2"), ("time", value.dtype)])
    record["time"] = value
    for data in (np.full((4, 4), value), record):
        image = array_image(data)
        state = state_of(image)
        load(streamer, state)
        result = readout(state, streamer, 1, 1)
        assert result is not None
        assert format_value(result.values[-1][1]) == text
        settings = replace(state.settings, channels=state.settings.channels[-1:])
        found = read_neighbourhood(image, settings, 1, 1, (3, 3))
        assert found is not None
        assert format_value(found.value(0, 0)) == text


def test_a_readout_has_rgb_samples_and_fields_of_structures(streamer: TileStreamer) -> None:
    rgb = array_image(random_values((20, 20, 3), np.uint8))
    array = rgb.levels[0].array
    assert isinstance(array, FakeArray)
    state = state_of(rgb)
    load(streamer, state)
    result = readout(state, streamer, 3, 4)
    assert result is not None
    assert result.values[0][1] == tuple(array.data[3, 4].tolist())
    record = np.zeros((4, 4), [("a", ">u2"), ("b", "f4")])
    record["a"] = 7
    structured = array_image(record)
    state = state_of(structured)
    load(streamer, state)
    result = readout(state, streamer, 1, 1)
    assert result is not None
    assert result.values == (("a", 7), ("b", 0.0))


def test_a_profile_is_bilinear_with_physical_distances() -> None:
    data = np.add.outer(np.arange(40.0) * 3, np.arange(50.0))
    image = open_pyramid(pyramid(data, "yx", 1, (8, 8), scale=(0.5, 0.5)))
    profile = line_profile(image, initial_settings(image), (2.0, 3.0), (32.0, 43.0))
    assert profile.unit == "micrometer"
    assert profile.distance[-1] == pytest.approx(25.0)
    assert len(profile.distance) == 51
    row = np.linspace(2, 32, 51)
    column = np.linspace(3, 43, 51)
    np.testing.assert_allclose(profile.values[0], row * 3 + column)
    table = list(csv.reader(io.StringIO(profile_csv(profile))))
    assert table[0] == ["distance [micrometer]", "Channel 0"]
    assert len(table) == 52
    lines = profile_csv(profile).split("\n")
    assert lines[1] == "0.0,9.0"
    assert lines[-1] == ""
    assert "\r" not in profile_csv(profile)


def test_a_profile_has_all_channels_and_is_nan_outside() -> None:
    data = random_values((3, 16, 16))
    image = open_pyramid(pyramid(data, "cyx", 1, (1, 4, 4)))
    profile = line_profile(image, initial_settings(image), (5.0, -4.0), (5.0, 20.0))
    assert profile.values.shape == (3, 25)
    assert np.isnan(profile.values[:, :3]).all()
    np.testing.assert_allclose(profile.values[:, 4:20], data[:, 5].astype(float))
    rgb = line_profile(*image_and_settings(array_image(random_values((20, 20, 3), np.uint8))), (0, 0), (0, 9))
    assert rgb.channels == ("red", "green", "blue")


def image_and_settings(image: Image) -> tuple[Image, DisplaySettings]:
    return image, initial_settings(image)


def test_interpolation_ignores_nan_neighbours_with_weight_zero() -> None:
    data = np.array([[0.0, 1.0, np.nan, 3.0], [np.nan] * 4])
    profile = line_profile(*image_and_settings(array_image(data)), (0, 0), (0, 3))
    np.testing.assert_array_equal(profile.values[0], [0, 1, np.nan, 3])


def test_a_profile_reads_only_the_tiles_that_it_intersects() -> None:
    image = array_image(random_values((1024, 1024)), (256, 256))
    array = image.levels[0].array
    assert isinstance(array, FakeArray)
    line_profile(image, initial_settings(image), (10, 10), (10, 500))
    assert len(array.reads) == 2


def test_a_profile_between_equal_points_has_length_zero() -> None:
    profile = line_profile(*image_and_settings(array_image(random_values((8, 8)))), (3, 3), (3, 3))
    assert profile.distance.tolist() == [0, 0]


def mask(roi: Roi, shape: tuple[int, int]) -> np.ndarray:
    top, left, bottom, right = roi.rect
    row, column = np.mgrid[: shape[0], : shape[1]]
    if roi.shape == "rectangle":
        return (row >= top) & (row <= bottom) & (column >= left) & (column <= right)
    return ((row - (top + bottom) / 2) / ((bottom - top) / 2)) ** 2 + (
        (column - (left + right) / 2) / ((right - left) / 2)
    ) ** 2 <= 1


@pytest.mark.parametrize("shape", ["rectangle", "ellipse"])
@pytest.mark.parametrize(
    "rect", [(2.2, 3.0, 30.7, 25.1), (-9.0, -9.0, 99.0, 99.0), (10.4, 10.4, 10.6, 10.6), (5.0, 5.0, 9.0, 9.0)]
)
@pytest.mark.parametrize("dtype", ["uint16", "int64", "float32", "bool"])
def test_the_statistics_of_a_region_equal_those_of_numpy(
    shape: Any, rect: tuple[float, float, float, float], dtype: str
) -> None:
    data = random_values((2, 40, 45), dtype)
    if dtype == "float32":
        data[:, 7, 7] = np.nan
    image = open_pyramid(pyramid(data, "cyx", 1, (1, 8, 8), scale=(1.0, 0.5, 0.5)))
    roi = Roi(shape, rect)
    result = list(roi_statistics(image, initial_settings(image), roi))
    for statistics, plane in zip(result, data, strict=True):
        values = plane[mask(roi, (40, 45))]
        valid = values[~np.isnan(values)] if dtype == "float32" else values
        assert statistics.count == valid.size
        assert statistics.nans == values.size - valid.size
        assert statistics.area == pytest.approx(values.size * 0.25)
        assert statistics.unit == "micrometer"
        if not valid.size:
            assert math.isnan(statistics.mean)
            continue
        exact = valid.astype(np.float64)
        assert statistics.mean == pytest.approx(exact.mean(), rel=1e-6, abs=1e-9)
        assert statistics.std == pytest.approx(exact.std(), rel=1e-6, abs=1e-9)
        assert (statistics.minimum, statistics.maximum) == (valid.min(), valid.max())
        assert statistics.median == pytest.approx(np.median(exact), rel=1e-6)
        if dtype != "float32":
            assert statistics.sum == sum(int(value) for value in valid)
    table = list(csv.DictReader(io.StringIO(statistics_csv(result))))
    assert [row["channel"] for row in table] == ["Channel 0", "Channel 1"]
    assert int(table[0]["count"]) == result[0].count
    assert "\r" not in statistics_csv(result)
    assert statistics_csv(result).endswith("\n")


def test_a_region_is_read_tile_by_tile_during_iteration() -> None:
    image = array_image(random_values((1024, 1024)), (256, 256))
    array = image.levels[0].array
    assert isinstance(array, FakeArray)
    statistics = roi_statistics(image, initial_settings(image), Roi("rectangle", (0, 0, 1023, 1023)))
    assert array.reads == []
    assert next(statistics).count == 1 << 20
    assert len(array.reads) == 16


@given(st.lists(st.lists(st.integers(-(2**63), 2**63 - 1), max_size=20), max_size=6))
def test_sums_of_large_integers_are_exact(blocks: list[list[int]]) -> None:
    running = RunningStatistics()
    for block in blocks:
        running.add(np.array(block, np.int64))
    assert running.result().sum == sum(map(sum, blocks))


def test_the_standard_deviation_of_values_with_a_large_offset_is_accurate() -> None:
    running = RunningStatistics()
    values = 1e9 + np.random.default_rng(0).normal(size=100_000)
    for block in np.array_split(values, 7):
        running.add(block)
    assert running.result().std == pytest.approx(values.std(), rel=1e-9)


def test_the_median_of_many_values_is_that_of_an_evenly_spaced_sample(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("zarrfs_viewer.analysis.statistics.MAX_MEDIAN_VALUES", 1000)
    running = RunningStatistics()
    values = np.arange(50_000)
    for block in np.array_split(values, 37):
        running.add(block)
    result = running.result()
    assert result.median == pytest.approx(np.median(values), rel=0.01)
    assert result.count == 50_000


@given(
    st.floats(1e-4, 1e6),
    st.floats(0.01, 50),
    st.sampled_from(["micrometer", "nanometer", "second", "parsec", None]),
)
def test_the_length_of_a_scale_bar_is_round_and_close_to_the_target(
    scale: float, zoom: float, unit: str | None
) -> None:
    group = pyramid(random_values((4, 4)), "yx", 1, scale=(scale, scale))
    for axis in group.attrs["multiscales"][0]["axes"]:
        axis.pop("unit")
        if unit:
            axis["unit"] = unit
    bar = scale_bar(open_pyramid(group), 1, zoom)
    assert 120 / 2.5 - 1e-6 <= bar.pixels <= 120 + 1e-6
    number, symbol = bar.text.split(" ")
    mantissa = f"{float(number):e}".split("e")[0]
    assert float(mantissa) in (1.0, 2.0, 5.0)
    assert symbol


def test_a_scale_bar_has_a_suitable_si_prefix() -> None:
    image = open_pyramid(pyramid(random_values((4, 4)), "yx", 1, scale=(0.5, 0.5)))
    assert scale_bar(image, 1, 1.0, 120).text == "50 µm"
    assert scale_bar(image, 1, 1.0, 120).pixels == pytest.approx(100)
    assert scale_bar(image, 1, 0.01, 120).text == "5 mm"
    assert scale_bar(image, 1, 300.0, 120).text == "200 nm"
    assert scale_bar(array_image(random_values((4, 4))), 1, 1.0, 120).text == "100 px"


def test_known_units_have_symbols() -> None:
    symbols = [
        short_unit(unit)
        for unit in ("micrometer", "nanometer", "second", "millisecond", "angstrom", "minute", "furlong")
    ]
    assert symbols == ["µm", "nm", "s", "ms", "Å", "min", "furlong"]
