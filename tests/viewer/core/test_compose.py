"""Composition of channels, compared with floating-point arithmetic for every data type."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from zarrfs_viewer.images.values import component, data_limits
from zarrfs_viewer.rendering.compose import NAN_COLOR, compose, compose_rgb
from zarrfs_viewer.rendering.lookup import INDEX_BITS
from zarrfs_viewer.state.colormaps import (
    CHOICES,
    COLOR_BLIND_SAFE,
    NAMES,
    colormap_title,
    is_colormap,
    lookup,
)
from zarrfs_viewer.state.view_state import ChannelSettings

from tests.viewer.core.doubles import random_values

DTYPES = [
    "bool",
    "int8",
    "uint8",
    "int16",
    "uint16",
    "int32",
    "uint32",
    "int64",
    "uint64",
    "float32",
    "float64",
]
COLORMAPS = ["gray", "viridis", "turbo", "#00FF00", "#FF8000", "magma"]


def reference(
    planes: list[npt.NDArray[Any]], channels: list[ChannelSettings], shift: float = 0.0
) -> npt.NDArray[np.float64]:
    """Return the sum of all channels as RGB from 0 to 255, in double precision.

    Colours are interpolated. The values are shifted by ``shift`` times the range of the limits.
    """
    total = np.zeros((*planes[0].shape, 3))
    for plane, channel in zip(planes, channels, strict=True):
        low, high = channel.limits if channel.limits is not None else data_limits(plane.dtype)
        values = plane.astype(np.float64)
        with np.errstate(invalid="ignore"):
            scaled = np.clip((values - low) / (high - low) + shift, 0, 1) ** channel.gamma
        if channel.invert:
            scaled = 1 - scaled
        table = lookup(channel.colormap).astype(np.float64)
        color = np.stack(
            [np.interp(scaled * 255, np.arange(256), table[:, part]) for part in range(3)], axis=-1
        )
        color[np.isnan(values)] = NAN_COLOR
        total += color
    return np.minimum(total, 255)


def rgb(pixels: npt.NDArray[np.uint32]) -> npt.NDArray[np.float64]:
    assert (pixels >> 24 == 255).all()
    return np.stack([(pixels >> shift & 255).astype(np.float64) for shift in (16, 8, 0)], axis=-1)


channel_settings = st.builds(
    ChannelSettings,
    colormap=st.sampled_from(COLORMAPS),
    gamma=st.sampled_from([0.2, 0.5, 0.8, 1.0, 1.7, 3.0]),
    invert=st.booleans(),
)


@pytest.mark.parametrize("dtype", DTYPES)
@settings(max_examples=25)
@given(
    channels=st.lists(channel_settings, min_size=1, max_size=9),
    seed=st.integers(0, 99),
    relative_limits=st.tuples(st.floats(0, 1), st.floats(0, 1)),
)
def test_composition_differs_from_exact_arithmetic_by_at_most_one_grey_level(
    dtype: str, channels: list[ChannelSettings], seed: int, relative_limits: tuple[float, float]
) -> None:
    planes = [random_values((7, 11), dtype, seed + number) for number in range(len(channels))]
    drawn = []
    for plane, channel in zip(planes, channels, strict=True):
        values = plane.astype(np.float64)
        low, high = sorted(values.min() + fraction * np.ptp(values) for fraction in relative_limits)
        if high - low < np.ptp(values) * 1e-3 or high <= low:
            high = low + max(1.0, np.ptp(values))
        drawn.append(ChannelSettings(**{**channel.__dict__, "limits": (low, high)}))
    result = rgb(compose(planes, drawn))
    # A value is rounded to one of 2**14 table entries. Values that differ by half an entry are therefore equal, which
    # is visible where a small gamma is steep.
    allowed = [reference(planes, drawn, shift / (1 << INDEX_BITS)) for shift in (-0.5, 0.0, 0.5)]
    assert (result >= np.min(allowed, axis=0) - 1.0).all()
    assert (result <= np.max(allowed, axis=0) + 1.0).all()


def test_nan_has_its_own_colour_and_infinities_have_the_end_colours() -> None:
    plane = np.array([[np.nan, -np.inf, 0.0, 1.0, np.inf]], np.float32)
    result = rgb(compose([plane], [ChannelSettings(limits=(0.0, 1.0))]))
    assert result[0, 0].tolist() == list(NAN_COLOR)
    assert result[0, 1:].tolist() == [[0] * 3, [0] * 3, [255] * 3, [255] * 3]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    "limits",
    [
        (-3e38, 3e38),
        (0.0, 1e-42),
        (1e30, 2e30),
        (1e6, 1e6 + 1),
        (5.0, 5.0),
        (-1.7e308, 1.7e308),
        (0.0, 5e-324),
    ],
)
def test_extreme_limits_cause_neither_warnings_nor_overflow(dtype: str, limits: tuple[float, float]) -> None:
    plane = np.array([[limits[0], limits[1], -np.inf, np.inf]]).astype(np.float64)
    with np.errstate(over="ignore"):
        plane = plane.astype(dtype)
    result = rgb(compose([plane], [ChannelSettings(limits=limits)]))[..., 0]
    assert result[0, 2] == 0
    assert result[0, 3] == 255
    assert result[0, 0] <= result[0, 1]


@pytest.mark.parametrize("dtype", ["int64", "uint64"])
def test_large_integers_are_scaled_exactly(dtype: str) -> None:
    base = 1 << 62
    plane = np.array([[base, base + 1, base + 2, base + 4, base + 100]], dtype)
    result = rgb(compose([plane], [ChannelSettings(limits=(base, base + 4))]))[0, :, 0]
    assert result.tolist() == [0, 64, 128, 255, 255]


@pytest.mark.parametrize("dtype", DTYPES)
def test_equal_limits_are_a_threshold(dtype: str) -> None:
    plane = np.array([[0, 1]], dtype)
    result = rgb(compose([plane], [ChannelSettings(limits=(0, 0))]))[0, :, 0]
    assert result.tolist() == [0, 255]


@pytest.mark.parametrize("part", ["value", "abs", "phase", "real", "imag"])
@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_every_component_of_complex_numbers_is_drawn(part: Any, dtype: str) -> None:
    plane = random_values((5, 6), dtype)
    function = {"value": np.abs, "abs": np.abs, "phase": np.angle, "real": np.real, "imag": np.imag}[part]
    expected = function(plane)
    np.testing.assert_array_equal(component(plane, part), expected)
    channel = ChannelSettings(component=part, limits=(-math.pi, math.pi))
    assert np.abs(rgb(compose([plane], [channel])) - reference([expected], [channel])).max() <= 1


def test_the_default_limits_of_a_phase_are_minus_pi_and_pi() -> None:
    plane = np.exp(1j * np.linspace(-3.14159, 3.14159, 9))[None]
    result = rgb(compose([plane], [ChannelSettings(component="phase")]))[0, :, 0]
    assert result[0] == 0
    assert result[-1] == 255
    assert (np.diff(result) > 20).all()


def test_fields_of_structured_data_types_are_drawn() -> None:
    plane = np.zeros((2, 3), [("a", ">u2"), ("b", "<f4"), ("name", "S3")])
    plane["a"] = [[1, 2, 3], [4, 5, 6]]
    plane["b"] = 0.5
    both = [
        ChannelSettings(field="a", limits=(0, 6), colormap="#FF0000"),
        ChannelSettings(field="b", limits=(0, 1), colormap="#0000FF"),
    ]
    result = rgb(compose([plane, plane], both))
    np.testing.assert_allclose(result[..., 0], plane["a"] / 6 * 255, atol=1)
    np.testing.assert_allclose(result[..., 2], 127.5, atol=1)


@pytest.mark.parametrize("count", [1, 4, 5, 8, 9, 16, 17, 33, 64])
def test_the_sum_of_many_channels_saturates(count: int) -> None:
    plane = np.array([[0, 1, 2, 255]], np.uint8)
    channels = [ChannelSettings(limits=(0, 255))] * count
    result = rgb(compose([plane] * count, channels))[0, :, 0]
    assert result.tolist() == [min(255, value * count) for value in (0, 1, 2, 255)]


def test_pixels_that_are_not_covered_add_nothing_to_the_sum() -> None:
    planes = [np.full((3, 2), 200, np.uint8), np.zeros((3, 2), np.uint8)]
    channels = [ChannelSettings(limits=(0, 255)), ChannelSettings(limits=(0, 255), invert=True)]
    covered = np.array([[True, False]] * 3)
    pixels = compose(planes, channels, covered=[None, covered])
    np.testing.assert_array_equal(pixels, [[0xFFFFFFFF, 0xFFC8C8C8]] * 3)


def test_the_picture_is_written_to_out() -> None:
    plane = random_values((40, 30), "uint16")
    out = np.zeros((40, 30), np.uint32)
    assert compose([plane], [ChannelSettings()], out) is out
    np.testing.assert_array_equal(out, compose([plane], [ChannelSettings()]))


def test_arguments_that_do_not_match_are_rejected() -> None:
    with pytest.raises(ValueError, match="differ in shape"):
        compose([np.zeros((2, 2)), np.zeros((3, 3))], [ChannelSettings()] * 2)
    with pytest.raises(ValueError, match="0 planes"):
        compose([], [])
    with pytest.raises(ValueError, match="3 or 4"):
        compose_rgb(np.zeros((2, 2, 5)), ChannelSettings())


def test_uint8_rgb_is_unchanged_and_alpha_is_blended_with_black() -> None:
    samples = random_values((6, 7, 3), "uint8")
    np.testing.assert_array_equal(rgb(compose_rgb(samples, ChannelSettings())), samples)
    alpha = np.dstack([samples, np.full((6, 7), 128, np.uint8)])
    np.testing.assert_allclose(rgb(compose_rgb(alpha, ChannelSettings())), samples * (128 / 255), atol=0.51)
    transparent = np.dstack([samples, np.zeros((6, 7), np.uint8)])
    assert not rgb(compose_rgb(transparent, ChannelSettings())).any()


@pytest.mark.parametrize("dtype", ["uint16", "float32"])
def test_limits_and_inversion_apply_to_rgb_of_other_data_types(dtype: str) -> None:
    samples = random_values((6, 7, 3), "uint8").astype(dtype)
    result = rgb(compose_rgb(samples, ChannelSettings(limits=(0, 255))))
    np.testing.assert_allclose(result, samples, atol=0.51)
    inverted = rgb(compose_rgb(samples, ChannelSettings(limits=(0, 255), invert=True)))
    np.testing.assert_allclose(inverted, 255 - samples.astype(float), atol=0.51)


@pytest.mark.parametrize("name", [*NAMES, "#123456"])
def test_every_colour_map_is_a_read_only_table_of_256_colours(name: str) -> None:
    table = lookup(name)
    assert table.shape == (256, 3)
    assert table.dtype == np.uint8
    assert not table.flags.writeable
    assert is_colormap(name)


def test_selected_colours_of_the_colour_maps() -> None:
    assert lookup("gray")[[0, 128, 255]].tolist() == [[0] * 3, [128] * 3, [255] * 3]
    assert lookup("#80FF00")[255].tolist() == [128, 255, 0]
    assert lookup("#80FF00")[0].tolist() == [0, 0, 0]
    assert lookup("viridis")[[0, 255]].tolist() == [[68, 1, 84], [253, 231, 37]]
    assert lookup("hilo")[[0, 1, 255]].tolist() == [[0, 64, 255], [1, 1, 1], [255, 0, 0]]
    assert set(NAMES) > COLOR_BLIND_SAFE
    assert not is_colormap("#12345")
    with pytest.raises(ValueError, match="unknown colour map 'jet'"):
        lookup("jet")


@pytest.mark.parametrize("name", sorted(COLOR_BLIND_SAFE))
def test_the_luminance_of_colour_blind_safe_maps_increases(name: str) -> None:
    red, green, blue = (lookup(name).astype(float)[:, part] / 255 for part in range(3))
    luminance = 0.2126 * red**2.2 + 0.7152 * green**2.2 + 0.0722 * blue**2.2
    assert (np.diff(luminance[::16]) > 0).all()


def test_the_end_colours_of_hilo_are_not_interpolated() -> None:
    plane = np.array([[0, 1, 254, 255]], np.uint8)
    result = rgb(compose([plane], [ChannelSettings(colormap="hilo", limits=(0, 255))]))[0]
    assert result[0].tolist() == [0, 64, 255]
    assert result[1].tolist() == [1, 1, 1]
    assert result[3].tolist() == [255, 0, 0]


def test_colour_maps_are_named_as_people_call_them() -> None:
    """The colours of fluorescence are offered first, and no title is a hexadecimal number."""
    titles = [colormap_title(name) for name in CHOICES]
    assert titles[:7] == ["red", "green", "blue", "cyan", "magenta", "yellow", "grey"]
    assert set(NAMES) < set(CHOICES)
    assert colormap_title("#00FF00") == "green"
    assert colormap_title("#ff4040") == "light red"
    assert colormap_title("#00fe10") == "custom, green"
