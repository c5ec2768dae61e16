"""Reading of plane regions for all axis orders, slabs and data types, compared with NumPy."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import numpy as np
import pytest
from zarrfs_viewer.images.reading import read_plane_region, uniform_chunks
from zarrfs_viewer.images.tile_grid import ALL, PlaneKey, Slab

from tests.viewer.core.doubles import FakeArray, random_values

DATA = random_values((5, 6, 7, 8))


@pytest.mark.parametrize("displayed", list(permutations(range(4), 2)))
def test_any_two_axes_can_be_displayed_in_any_order(displayed: tuple[int, int]) -> None:
    array = FakeArray(DATA, (2, 3, 4, 5))
    others = [axis for axis in range(4) if axis not in displayed]
    indices = [0, 0, 0, 0]
    for axis in others:
        indices[axis] = 3
    rows, columns = slice(1, 4), slice(2, 5)
    result = read_plane_region(array, PlaneKey(1, 0, displayed, tuple(indices)), rows, columns)
    moved = DATA.transpose([*displayed, *others])
    np.testing.assert_array_equal(result, moved[rows, columns, 3, 3])
    assert result.flags.c_contiguous


def test_samples_are_the_last_axis_of_the_result() -> None:
    array = FakeArray(random_values((3, 9, 10)))
    result = read_plane_region(array, PlaneKey(1, 0, (1, 2), (ALL, 0, 0)), slice(0, 9), slice(0, 10))
    np.testing.assert_array_equal(result, array.data.transpose(1, 2, 0))


@pytest.mark.parametrize("mode", ["max", "mean"])
@pytest.mark.parametrize("dtype", ["uint8", "int16", "float32", "float64", "complex64", "bool", ">u2"])
def test_slabs_are_projected_chunk_by_chunk(mode: Any, dtype: str) -> None:
    data = random_values((9, 4, 5), dtype)
    array = FakeArray(data, (4, 4, 5))
    plane = PlaneKey(1, 0, (1, 2), (0, 0, 0), Slab(0, 1, 8, mode))
    result = read_plane_region(array, plane, slice(0, 4), slice(0, 5))
    slab = data[1:8]
    if mode == "mean":
        np.testing.assert_allclose(result, slab.mean(axis=0), rtol=1e-5, atol=1e-6)
    elif dtype == "complex64":
        np.testing.assert_array_equal(np.abs(result), np.abs(slab).max(axis=0))
    else:
        np.testing.assert_array_equal(result, slab.max(axis=0))
    assert [selection[0] for selection in array.reads] == [slice(1, 4), slice(4, 8)]


@pytest.mark.parametrize("mode", ["max", "mean"])
def test_slabs_of_structures_are_projected_field_by_field(mode: Any) -> None:
    data = np.zeros((4, 2, 2), [("a", "u1"), ("b", "f8")])
    data["a"] = np.arange(16).reshape(4, 2, 2)
    data["b"] = -np.arange(16).reshape(4, 2, 2)
    plane = PlaneKey(1, 0, (1, 2), (0, 0, 0), Slab(0, 0, 4, mode))
    result = read_plane_region(FakeArray(data), plane, slice(0, 2), slice(0, 2))
    for field in ("a", "b"):
        expected = data[field].max(0) if mode == "max" else data[field].mean(0)
        np.testing.assert_array_equal(result[field], expected)


def test_a_maximum_projection_ignores_nan() -> None:
    data = np.array([[[np.nan]], [[2.0]], [[1.0]]])
    plane = PlaneKey(1, 0, (1, 2), (0, 0, 0), Slab(0, 0, 3, "max"))
    assert read_plane_region(FakeArray(data), plane, slice(0, 1), slice(0, 1)) == 2.0


def test_times_become_counts_of_their_unit_and_nat_becomes_nan() -> None:
    data = np.array([["2020-01-01", "NaT"]], "datetime64[D]")
    result = read_plane_region(FakeArray(data), PlaneKey(1, 0, (0, 1), (0, 0)), slice(0, 1), slice(0, 2))
    assert result[0, 0] == 18262
    assert np.isnan(result[0, 1])


def test_the_chunk_length_of_a_rectilinear_grid_is_the_longest() -> None:
    array = FakeArray(random_values((10, 10)))
    array.chunks = ((4, 6), (10,))  # type: ignore[assignment]
    assert uniform_chunks(array) == (6, 10)
    array.chunks = (99, 3)
    assert uniform_chunks(array) == (10, 3)


def test_the_mean_of_structures_adds_the_parts_of_all_chunks() -> None:
    data = np.zeros((5, 2, 2), [("a", "u1"), ("b", "f8")])
    data["a"] = np.arange(20).reshape(5, 2, 2)
    data["b"] = -np.arange(20).reshape(5, 2, 2)
    plane = PlaneKey(1, 0, (1, 2), (0, 0, 0), Slab(0, 0, 5, "mean"))
    result = read_plane_region(FakeArray(data, (2, 2, 2)), plane, slice(0, 2), slice(0, 2))
    for name in ("a", "b"):
        np.testing.assert_allclose(result[name], data[name].mean(axis=0))
