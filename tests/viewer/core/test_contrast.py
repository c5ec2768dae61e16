"""Automatic limits, and histograms compared with those of NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from zarrfs_viewer.display.resolve import resolve
from zarrfs_viewer.images.dataset import initial_settings
from zarrfs_viewer.rendering.contrast import auto_limits, channel_values, histogram
from zarrfs_viewer.rendering.renderer import complete_frame
from zarrfs_viewer.state.view_state import fit, with_position

from tests.viewer.core.doubles import FakeArray, array_image, open_pyramid, pyramid, random_values


@pytest.mark.parametrize("size", [(8, 8), (512, 512), (3000, 1000)])
def test_automatic_limits_ignore_a_hot_and_a_dead_pixel(size: tuple[int, int]) -> None:
    plane = np.random.default_rng(1).normal(1000, 50, size).astype(np.uint16)
    plane[3, 3], plane[5, 5] = 65535, 0
    low, high = auto_limits(plane)
    assert 700 < low < 1000 < high < 1300


@given(
    st.lists(st.floats(width=32), max_size=60)
    | st.lists(st.integers(-(2**31), 2**31 - 1), min_size=1, max_size=60)
)
def test_automatic_limits_are_finite_and_increasing(values: list[float]) -> None:
    low, high = auto_limits(np.array(values))
    assert np.isfinite([low, high]).all()
    assert low < high


def test_automatic_limits_include_small_objects_on_a_constant_background() -> None:
    plane = np.zeros((1000, 1000), np.uint16)
    plane[100:120, 100:120] = 500
    assert auto_limits(plane) == (0, 500)
    negative = np.zeros((1000, 1000))
    negative[100:120, 100:120] = -3
    assert auto_limits(negative) == (-3, 0)


def test_automatic_limits_of_empty_constant_and_not_finite_values() -> None:
    assert auto_limits(np.zeros((0,))) == (0, 1)
    assert auto_limits(np.full((5, 5), np.nan)) == (0, 1)
    assert auto_limits(np.array([True, False])) == (0, 1)
    assert auto_limits(np.full((5, 5), 7, np.uint8)) == (7, 8)
    low, high = auto_limits(np.array([np.nan, np.inf, -np.inf, *np.linspace(0, 1, 100)]))
    assert 0 <= low < high <= 1


@pytest.mark.parametrize(
    "dtype", ["uint8", "int8", "int16", "uint16", "int32", "int64", "uint64", "float32", "bool"]
)
def test_a_histogram_counts_every_value_once(dtype: str) -> None:
    values = random_values(
        (50, 40), dtype if dtype in ("float32", "bool") or dtype[-1] != "4" else "int16"
    ).astype(dtype)
    result = histogram(values, 32)
    assert len(result.edges) == len(result.counts) + 1
    assert len(result.counts) <= 32
    assert result.counts.sum() == values.size
    expected, _ = np.histogram(values.astype(float), result.origin + result.edges)
    np.testing.assert_array_equal(result.counts, expected)


LARGE = 2**63


@pytest.mark.parametrize(
    ("values", "limits"),
    [
        (np.arange(LARGE, LARGE + 1000, dtype=np.uint64), (LARGE + 1, LARGE + 998)),
        (np.arange(-LARGE, -LARGE + 1000, dtype=np.int64), (-LARGE + 1, -LARGE + 998)),
        (np.full(100, LARGE + 1, np.uint64), (LARGE + 1, LARGE + 2)),
    ],
)
def test_large_integers_are_exact(values: npt.NDArray[Any], limits: tuple[int, int]) -> None:
    found = auto_limits(values)
    assert found == limits
    assert all(isinstance(limit, int) for limit in found)
    result = histogram(values)
    assert result.origin == values.min()
    distinct = len(np.unique(values))
    assert result.counts.sum() == values.size
    assert result.edges[[0, 1]].tolist() == [-0.5, -(-distinct // 256) - 0.5]
    first = [value for value in values.tolist() if value - result.origin < result.edges[1]]
    assert result.counts[0] == len(first)


def test_a_histogram_of_all_64_bit_integers_has_a_few_bins() -> None:
    result = histogram(np.array([-LARGE, -1, 0, LARGE - 1], np.int64))
    assert (len(result.counts), result.counts.sum()) == (256, 4)
    assert result.counts[[0, 127, 128, 255]].tolist() == [1, 1, 1, 1]


def test_a_histogram_of_the_largest_floats_does_not_overflow() -> None:
    result = histogram(np.array([-1.7e308, 0.0, 1.7e308]), 3)
    assert result.counts.tolist() == [1, 1, 1]
    assert result.edges[[0, -1]].tolist() == [-1.7e308, 1.7e308]


def test_bins_of_integers_have_equal_widths() -> None:
    result = histogram(np.arange(1000, dtype=np.uint16), 256)
    assert set(np.diff(result.edges)) == {4.0}
    assert set(result.counts.tolist()) == {4}


def test_nans_are_counted_separately_and_infinities_are_not_counted() -> None:
    result = histogram(np.array([np.nan, 0.0, 1.0, np.inf, np.nan]), 4)
    assert result.nans == 2
    assert result.counts.sum() == 2
    assert histogram(np.array([np.nan])).nans == 1


def test_heights_are_relative_counts_or_their_logarithms() -> None:
    result = histogram(np.array([0, 0, 0, 1], np.uint8))
    assert result.heights().tolist() == [1.0, pytest.approx(1 / 3)]
    assert result.heights(logarithmic=True).tolist() == [1.0, pytest.approx(np.log(2) / np.log(4))]
    assert histogram(np.zeros(0)).heights().max() == 0


def test_channel_values_are_read_from_the_finest_level_that_is_small_enough() -> None:
    data = random_values((4, 64, 64))
    image = open_pyramid(pyramid(data, "zyx", 3))
    settings = with_position(initial_settings(image), 0, 2)
    channel = image.channels[0]
    assert np.array_equal(channel_values(image, channel, settings).reshape(64, 64), data[2])
    assert channel_values(image, channel, settings, max_pixels=1024).size == 32 * 32
    assert channel_values(image, channel, settings, volume=True).size == data.size
    assert channel_values(image, channel, settings, volume=True, max_pixels=2000).size == 4 * 16 * 16
    some_planes = channel_values(image, channel, settings, volume=True, max_pixels=600)
    assert some_planes.size == 2 * 16 * 16


@pytest.mark.parametrize("shape", [(3000, 2000), (6_000_000, 1), (1, 6_000_000), (2, 3_000_000)])
def test_pixels_of_the_whole_plane_represent_it_if_it_is_large_and_has_no_pyramid(
    shape: tuple[int, int],
) -> None:
    rows, columns = shape
    longer = int(columns > rows)
    data = np.where(np.arange(shape[longer]) < shape[longer] // 10, 9, 0).astype("u1")
    data = np.broadcast_to(data[:, None] if longer == 0 else data, shape)
    image = array_image(data, tuple(min(n, 500) for n in shape))
    array = image.levels[0].array
    assert isinstance(array, FakeArray)
    result = channel_values(image, image.channels[0], initial_settings(image), max_pixels=20_000)
    assert 2000 < result.size <= 20_000
    assert 0.02 < np.mean(result == 9) < 0.25
    assert len(array.reads) <= 256


def test_a_plane_of_few_pixels_is_read_completely() -> None:
    data = random_values((40, 30))
    image = array_image(data, (8, 8))
    result = channel_values(image, image.channels[0], initial_settings(image), max_pixels=1200)
    assert np.array_equal(result, data.reshape(-1))


@pytest.mark.parametrize(
    ("values", "limits"),
    [
        (np.linspace(0.2, 0.9, 600), (0.0, 1.0)),
        (np.linspace(20.0, 255.0, 600, dtype="f4"), (0.0, 254.2154)),
        (np.linspace(300, 4000, 600).astype("u2"), (0, 3987)),
    ],
)
def test_rgb_samples_that_do_not_use_the_range_of_their_type_are_visible(
    values: np.ndarray, limits: tuple[float, float]
) -> None:
    data = np.resize(values, (20, 10, 3))
    image = array_image(data, (20, 10, 3), names=("y", "x", "c"))
    assert image.rgb_axis == 2
    frame = complete_frame(resolve(initial_settings(image), image, fit(10, 20, 20, 10)))
    assert frame.channels[0].limits == pytest.approx(limits, rel=0.01)


@pytest.mark.parametrize("value", [0.0, 1e-9, 3.0, -2e6])
def test_a_histogram_of_equal_floats_has_a_small_positive_width(value: float) -> None:
    result = histogram(np.full(10, value))
    assert result.edges[0] == value
    assert 0 < result.edges[-1] - value <= max(1.0 if value == 0 else 0.0, abs(value) * 1e-5)
    assert result.counts.sum() == 10


def test_automatic_limits_ignore_a_few_different_values_but_not_many() -> None:
    values = np.zeros(100_000, "u2")
    values[:3] = 50
    assert auto_limits(values) == (0.0, 1.0)
    values[:40] = 50
    assert auto_limits(values) == (0.0, 50.0)


def test_values_of_a_volume_are_of_one_time_point() -> None:
    data = np.arange(3, dtype="u1")[:, None, None, None] * np.ones((3, 4, 8, 8), "u1")
    image = open_pyramid(pyramid(data, "tzyx", 1, (1, 1, 8, 8)))
    settings = with_position(initial_settings(image), 0, 2)
    result = channel_values(image, settings.channels[0], settings, volume=True)
    assert result.size == 4 * 8 * 8
    assert np.unique(result).tolist() == [2]


def test_evenly_spaced_planes_of_a_large_stack_are_read() -> None:
    data = np.arange(10, dtype="u1")[:, None, None] * np.ones((10, 8, 8), "u1")
    image = open_pyramid(pyramid(data, "zyx", 1, (1, 8, 8)))
    settings = initial_settings(image)
    result = channel_values(image, settings.channels[0], settings, volume=True, max_pixels=2 * 64)
    assert np.unique(result).tolist() == [2, 7]


def test_a_constant_image_has_one_bin() -> None:
    found = histogram(np.full(5, 7, np.uint8))
    assert (found.counts.tolist(), found.edges.tolist()) == ([5], [6.5, 7.5])


def test_the_span_of_an_empty_histogram_is_its_range() -> None:
    found = histogram(np.zeros(0), 4)
    assert not found.counts.any()
    assert found.span() == (0.0, 1.0)
