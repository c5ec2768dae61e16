"""Reads and writes of all kinds of selections compared with NumPy: negative steps, repeated and negative indices,
dimensions of length zero, and arrays without dimensions.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np
import pandas as pd
import pytest
import xarray
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import zarrfs
from zarrfs.errors import SelectionError

shapes = hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=7)


@st.composite
def arrays(draw: st.DrawFn) -> tuple[zarrfs.Array, np.ndarray[Any, Any]]:
    """Draw an array and an equal NumPy array."""
    shape = draw(shapes)
    data = np.arange(1, prod(shape) + 1, dtype="i4").reshape(shape)
    chunks = tuple(draw(st.integers(1, 4)) for _ in shape)
    options: dict[str, Any] = {"chunks": chunks}
    kind = draw(st.sampled_from(["plain", "blosc", "sharded", "order F", "v2", "uneven"]))
    if kind == "plain":
        options["compressors"] = None
    elif kind == "sharded" and shape:
        options["shards"] = tuple(n * draw(st.integers(1, 3)) for n in chunks)
    elif kind == "order F":
        options["order"] = "F"
    elif kind == "v2":
        options["zarr_format"] = 2
    elif kind == "uneven" and shape and all(shape):
        cuts = [draw(st.integers(1, n)) for n in shape]
        options["chunks"] = tuple(
            (cut, n - cut) if cut < n else (n,) for cut, n in zip(cuts, shape, strict=True)
        )
    cache_size = draw(st.sampled_from([0, 1 << 20]))
    return zarrfs.create_array({}, data=data, cache_size=cache_size, **options), data.copy()


def basic(draw: st.DrawFn, shape: tuple[int, ...]) -> tuple[Any, Any]:
    index = draw(hnp.basic_indices(shape, allow_newaxis=False, allow_ellipsis=True))
    return index, index


def orthogonal(draw: st.DrawFn, shape: tuple[int, ...]) -> tuple[Any, Any]:
    """Return a selection, the equivalent NumPy index arrays, and the axes that are dropped from the result."""
    parts: list[Any] = []
    plainly: list[Any] = []
    for length in shape:
        kind = draw(st.sampled_from(["slice", "ints", "mask", *(["int"] if length else [])]))
        if kind == "int":
            part: Any = draw(st.integers(-length, length - 1))
            plainly.append(np.array([part]))
        elif kind == "slice":
            part = draw(st.slices(length))
            plainly.append(np.arange(length)[part])
        elif kind == "ints":
            part = draw(st.lists(st.integers(-length, length - 1), max_size=6)) if length else []
            plainly.append(np.array(part, int) % max(1, length))
        else:
            part = np.array(draw(st.lists(st.booleans(), min_size=length, max_size=length)), bool)
            plainly.append(np.nonzero(part)[0])
        parts.append(part)
    return tuple(parts), np.ix_(*plainly) if plainly else ()


def points(draw: st.DrawFn, shape: tuple[int, ...]) -> tuple[Any, Any]:
    result = draw(hnp.array_shapes(min_dims=1, max_dims=2, max_side=6))
    if not shape or not all(shape):
        empty = tuple(np.zeros(0, int) for _ in shape)
        return empty, empty
    index = draw(hnp.integer_array_indices(shape, result_shape=st.just(result)))
    return index, index


def mask(draw: st.DrawFn, shape: tuple[int, ...]) -> tuple[Any, Any]:
    found = draw(hnp.arrays(bool, shape))
    return found, found


def like(draw: st.DrawFn, shape: tuple[int, ...]) -> Any:
    """Draw values that broadcast to the shape: one number, all of them, or fewer dimensions, or lengths of one."""
    kind = draw(st.sampled_from(["number", "full", "list", "broadcast"]))
    if kind == "number":
        return draw(st.integers(-1000, -1))
    start = draw(st.integers(-2000, -1001))
    if kind == "broadcast" and shape:
        cut = draw(st.integers(0, len(shape)))
        shape = tuple(1 if draw(st.booleans()) else n for n in shape[cut:])
    values = (
        np.arange(prod(shape), dtype=draw(st.sampled_from(["i4", "i8", ">i2", "f8"]))).reshape(shape) + start
    )
    return values.tolist() if kind == "list" and values.size else values


KINDS: dict[str, tuple[Callable[..., Any], Callable[..., Any], Callable[..., Any]]] = {
    "brackets": (basic, lambda z, i: z[i], lambda z, i, v: z.__setitem__(i, v)),
    "basic": (basic, lambda z, i: z.get_basic_selection(i), lambda z, i, v: z.set_basic_selection(i, v)),
    "oindex": (orthogonal, lambda z, i: z.oindex[i], lambda z, i, v: z.oindex.__setitem__(i, v)),
    "orthogonal": (
        orthogonal,
        lambda z, i: z.get_orthogonal_selection(i),
        lambda z, i, v: z.set_orthogonal_selection(i, v),
    ),
    "vindex": (points, lambda z, i: z.vindex[i], lambda z, i, v: z.vindex.__setitem__(i, v)),
    "coordinates": (
        points,
        lambda z, i: z.get_coordinate_selection(i),
        lambda z, i, v: z.set_coordinate_selection(i, v),
    ),
    "mask": (mask, lambda z, i: z.get_mask_selection(i), lambda z, i, v: z.set_mask_selection(i, v)),
    "brackets with a mask": (mask, lambda z, i: z[i], lambda z, i, v: z.__setitem__(i, v)),
    "vindex with a mask": (mask, lambda z, i: z.vindex[i], lambda z, i, v: z.vindex.__setitem__(i, v)),
}


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=40)
@given(data=st.data())
def test_selections_agree_with_numpy(kind: str, data: st.DataObject) -> None:
    select, get, put = KINDS[kind]
    array, twin = data.draw(arrays())
    if kind == "brackets with a mask" and not array.shape:
        return  # a single boolean is not a valid index
    if kind == "vindex" and not array.shape:
        return
    if kind == "coordinates" and not array.shape:
        return
    for _ in range(3):
        index, plainly = data.draw(st.composite(select)(array.shape))
        expected = twin[plainly]
        if select is orthogonal:
            dropped = tuple(i for i, part in enumerate(index) if isinstance(part, int))
            expected = expected.squeeze(dropped)
        found = get(array, index)
        assert np.shape(found) == np.shape(expected)
        np.testing.assert_array_equal(found, expected)
        value = data.draw(st.composite(like)(np.shape(expected)))
        put(array, index, value)
        if select is orthogonal:
            laid = np.broadcast_to(value, expected.shape)
            for axis in dropped:
                laid = np.expand_dims(laid, axis)
            twin[plainly] = laid
        else:
            twin[plainly] = value
        np.testing.assert_array_equal(array[...], twin)
    np.testing.assert_array_equal(zarrfs.open_array(array.store)[...], twin)


@given(data=st.data())
def test_block_selections_are_slices_along_chunk_boundaries(data: st.DataObject) -> None:
    array, twin = data.draw(arrays())
    grid = array.storage.grid_shape
    if not all(grid):
        return
    stored = array.shards or array.chunks
    edges = [
        np.cumsum([0, *side]) if isinstance(side, tuple) else np.arange(count + 1) * side
        for side, count in zip(stored, grid, strict=True)
    ]
    blocks: list[Any] = []
    slices = []
    for edge, count in zip(edges, grid, strict=True):
        if data.draw(st.booleans()):
            block = data.draw(st.integers(-count, count - 1))
            blocks.append(block)
            slices.append(slice(edge[block % count], edge[block % count + 1]))
        else:
            low, high = sorted((data.draw(st.integers(0, count)), data.draw(st.integers(0, count))))
            blocks.append(slice(low, high))
            slices.append(slice(edge[low], edge[high]))
    np.testing.assert_array_equal(array.blocks[tuple(blocks)], twin[tuple(slices)])
    value = data.draw(st.composite(like)(twin[tuple(slices)].shape))
    array.blocks[tuple(blocks)] = value
    twin[tuple(slices)] = value
    np.testing.assert_array_equal(array[...], twin)
    np.testing.assert_array_equal(array.get_block_selection(tuple(blocks)), twin[tuple(slices)])


def test_scalar_arrays_accept_the_same_selections_as_numpy() -> None:
    for zarr_format in (2, 3):
        array = zarrfs.create_array({}, data=np.array(5), zarr_format=zarr_format)
        assert array[()] == array[...] == 5
        array[()] = 6
        array[...] = 7
        array.set_basic_selection((), 8)
        assert array.oindex[()] == array.get_basic_selection() == 8
        array.oindex[...] = 9
        assert array.vindex[()] == 9
        array.vindex[()] = 10
        assert array.get_mask_selection(np.array(True)).tolist() == [10]
        assert array.get_mask_selection(np.array(False)).tolist() == []
        array.set_mask_selection(np.array(False), 11)
        assert array[()] == 10
        array.set_mask_selection(np.array(True), 12)
        assert array.blocks[()] == 12
        with pytest.raises(SelectionError, match="1 indices for an array of 0 dimensions"):
            array[0]


# -- types of indices ------------------------------------------------------------------------------------------

DATA = np.arange(20).reshape(4, 5)
ROWS = [3, 0, -2]
ROW_MASK = [True, False, False, True]


def indices(values: list[Any]) -> list[Any]:
    dtype = "boolean" if isinstance(values[0], bool) else "Int64"
    return [
        *(
            values,
            tuple(values),
            np.array(values),
            np.array(values, object),
            pd.Series(values),
            pd.Index(values),
        ),
        *(
            pd.array(values, dtype=dtype),
            xarray.DataArray(values),
            zarrfs.array(values),
            zarrfs.array(np.array(values)),
        ),
        *(zarrfs.array(np.array(values)).astype(bool if dtype == "boolean" else "i1"), Protocol(values)),
    ]


class Protocol:
    """Has nothing but ``__array__``."""

    def __init__(self, values: list[Any]) -> None:
        self.values = values

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        return np.array(self.values, dtype)


@pytest.mark.parametrize("values", [ROWS, ROW_MASK], ids=["integers", "booleans"])
def test_arrays_and_sequences_are_accepted_as_indices(values: list[Any]) -> None:
    expected = DATA[values]
    for index in indices(values):
        array = zarrfs.create_array({}, data=DATA, chunks=2)
        columns = [1, 2, 4] if values is ROWS else [1, 2]
        assert array[index, :].tolist() == expected.tolist(), type(index)
        if not isinstance(index, tuple):
            assert array[index].tolist() == expected.tolist()
            assert array.oindex[index].tolist() == expected.tolist()
        assert array.oindex[index, columns].tolist() == expected[:, columns].tolist()
        assert array.vindex[index, columns].tolist() == DATA[values, columns].tolist()
        assert array.get_coordinate_selection((index, columns)).tolist() == DATA[values, columns].tolist()
        assert array.get_orthogonal_selection((index, 1)).tolist() == expected[:, 1].tolist()
        twin = DATA.copy()
        for put in (array, array.oindex):
            put[index, :] = -1
            twin[values] = -1
            np.testing.assert_array_equal(array, twin)
        array.vindex[index, columns] = -2
        twin[values, columns] = -2
        np.testing.assert_array_equal(array, twin)


def test_array_likes_are_accepted_as_masks() -> None:
    mask = DATA % 3 == 0
    for given_mask in (
        *(
            mask,
            mask.tolist(),
            mask.astype(object),
            xarray.DataArray(mask),
            pd.DataFrame(mask),
            zarrfs.array(mask),
        ),
        Protocol(mask.tolist()),
    ):
        array = zarrfs.create_array({}, data=DATA, chunks=2)
        for found in (array[given_mask], array.vindex[given_mask], array.get_mask_selection(given_mask)):
            assert found.tolist() == DATA[mask].tolist(), type(given_mask)
        array[given_mask] = -1
        np.testing.assert_array_equal(array, np.where(mask, -1, DATA))
        array.set_mask_selection(given_mask, -2)
        np.testing.assert_array_equal(array, np.where(mask, -2, DATA))


def test_invalid_indices_are_refused() -> None:
    array = zarrfs.create_array({}, data=DATA, chunks=2)
    for wrong, said in (
        (pd.Series([0.5, 1]), "found Series of float64"),
        (pd.Series(["a"]), "indices must be integers or booleans"),
        (xarray.DataArray([1.5]), "found DataArray of float64"),
        (["a"], "which has no fields"),
        ([[0], [1, 2]], "is no index array"),
        ([None], "indices must be integers"),
        ([True, 1.5], "indices must be integers"),
        (np.array([1, None]), "indices must be integers"),
        (b"ab", "is no index"),
        (np.array(1.5), "is no index"),
        (zarrfs.array(True), "a single boolean"),
        ({0: 1}, "is no index"),
    ):
        for way in (array, array.oindex):
            with pytest.raises(SelectionError, match=said):
                way[wrong]
    assert array[np.array(2)].tolist() == array[zarrfs.array(2)].tolist() == DATA[2].tolist()
