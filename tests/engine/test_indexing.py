"""Selections and grid arithmetic against NumPy, without stores or codecs."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from zarrfs.engine.indexing.projections import (
    IrregularAxis,
    RegularAxis,
    chunk_projections,
    count_chunks,
    flat_boxes,
)
from zarrfs.engine.indexing.selections import (
    OrthogonalSelection,
    basic_selection,
    block_selection,
    coordinate_selection,
    fancy_selection,
    mask_selection,
    orthogonal_selection,
    pop_fields,
)
from zarrfs.errors import SelectionError

shapes = hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=9)


@st.composite
def grids(draw: st.DrawFn, shape: tuple[int, ...]) -> tuple[Any, ...]:
    """Cut each dimension into chunks of one length, or of several."""
    axes: list[Any] = []
    for length in shape:
        if draw(st.booleans()):
            axes.append(RegularAxis(length, draw(st.integers(1, 5))))
            continue
        edges = [0]
        while edges[-1] < max(1, length):
            edges.append(edges[-1] + draw(st.integers(1, 4)))
        axes.append(IrregularAxis(length, np.array(edges)))
    return tuple(axes)


def read(array: np.ndarray, axes: tuple[Any, ...], plain: Any) -> np.ndarray:
    """Read a selection chunk by chunk, with chunks taken from a padded array."""
    padded = np.full([n + 8 for n in array.shape], -1)
    padded[tuple(slice(0, n) for n in array.shape)] = array
    outer = isinstance(plain, OrthogonalSelection)
    laid = np.full(plain.shape if outer else (prod(plain.shape),), -2)
    parts = list(chunk_projections(plain, axes))
    assert len(parts) <= count_chunks(plain, axes) or laid.size == 0
    assert len({part.coords for part in parts}) == len(parts)
    for part in parts:
        begins = [axis.begin(c) for axis, c in zip(axes, part.coords, strict=True)]
        sizes = [axis.size(c) for axis, c in zip(axes, part.coords, strict=True)]
        chunk = padded[tuple(slice(b, b + s) for b, s in zip(begins, sizes, strict=True))]
        assert all(
            0 <= r.start < r.stop <= s and r.step == 1 for r, s in zip(part.region, sizes, strict=True)
        )
        valid = [min(s, axis.length - b) for b, s, axis in zip(begins, sizes, axes, strict=True)]
        covers = all((r.start, r.stop) == (0, v) for r, v in zip(part.region, valid, strict=True))
        if part.whole:
            assert covers
        elif part.local is None:
            assert not covers or isinstance(plain, OrthogonalSelection)
        box = chunk[part.region]
        laid[part.target] = box if part.local is None else box[part.local]
    return plain.result(laid) if outer else laid.reshape(plain.shape)


def numbered(shape: tuple[int, ...]) -> np.ndarray:
    return np.arange(prod(shape)).reshape(shape)


@given(st.data(), shapes)
def test_basic_selections_agree_with_numpy(data: st.DataObject, shape: tuple[int, ...]) -> None:
    array = numbered(shape)
    index = data.draw(hnp.basic_indices(shape, allow_newaxis=False, allow_ellipsis=True))
    expected = array[index]
    plain = basic_selection(index, shape)
    assert plain.result_shape == np.shape(expected)
    np.testing.assert_array_equal(read(array, data.draw(grids(shape)), plain), expected)


@given(st.data(), hnp.array_shapes(min_dims=1, max_dims=4, min_side=1, max_side=9))
def test_orthogonal_selections_are_outer_products(data: st.DataObject, shape: tuple[int, ...]) -> None:
    parts: list[Any] = []
    plainly: list[Any] = []
    for length in shape:
        kind = data.draw(st.sampled_from(["int", "slice", "ints", "mask"]))
        if kind == "int":
            parts.append(data.draw(st.integers(-length, length - 1)))
            plainly.append([parts[-1]])
        elif kind == "slice":
            parts.append(data.draw(st.slices(length)))
            plainly.append(np.arange(length)[parts[-1]])
        elif kind == "ints":
            parts.append(data.draw(st.lists(st.integers(-length, length - 1), max_size=8)))
            plainly.append(np.array(parts[-1], int))
        else:
            parts.append(np.array(data.draw(st.lists(st.booleans(), min_size=length, max_size=length))))
            plainly.append(np.nonzero(parts[-1])[0])
    array = numbered(shape)
    drop = tuple(i for i, part in enumerate(parts) if isinstance(part, int))
    expected = array[np.ix_(*plainly)].squeeze(drop)
    plain = orthogonal_selection(tuple(parts), shape)
    np.testing.assert_array_equal(read(array, data.draw(grids(shape)), plain), expected)


@given(st.data(), hnp.array_shapes(min_dims=1, max_dims=3, min_side=1, max_side=9))
def test_coordinate_selections_agree_with_numpy(data: st.DataObject, shape: tuple[int, ...]) -> None:
    array = numbered(shape)
    result_shape = hnp.array_shapes(min_dims=1, max_dims=2, max_side=7)
    index = data.draw(hnp.integer_array_indices(shape, result_shape=result_shape))
    plain = coordinate_selection(index, shape)
    np.testing.assert_array_equal(read(array, data.draw(grids(shape)), plain), array[index])


@given(st.data(), hnp.array_shapes(min_dims=1, max_dims=3, min_side=0, max_side=7))
def test_mask_selections_agree_with_numpy(data: st.DataObject, shape: tuple[int, ...]) -> None:
    array = numbered(shape)
    mask = data.draw(hnp.arrays(bool, shape))
    for plain in (mask_selection(mask, shape), fancy_selection(mask, shape)):
        np.testing.assert_array_equal(read(array, data.draw(grids(shape)), plain), array[mask])


@given(st.data(), hnp.array_shapes(min_dims=1, max_dims=4, min_side=1, max_side=6))
def test_fancy_selections_agree_with_numpy(data: st.DataObject, shape: tuple[int, ...]) -> None:
    """One index array of any rank among integers and slices. Its axes have the same position as in NumPy."""
    array = numbered(shape)
    axis = data.draw(st.integers(0, len(shape) - 1))
    parts: list[Any] = []
    for i, length in enumerate(shape):
        if i == axis:
            kind = hnp.array_shapes(min_dims=1, max_dims=2, max_side=4)
            parts.append(data.draw(hnp.arrays(np.intp, kind, elements=st.integers(-length, length - 1))))
        else:
            parts.append(data.draw(st.one_of(st.integers(-length, length - 1), st.slices(length))))
    index = tuple(parts)
    plain = fancy_selection(index, shape)
    expected = array[index]
    result = read(array, data.draw(grids(shape)), plain)
    assert result.shape == expected.shape
    np.testing.assert_array_equal(result, expected)
    if isinstance(plain, OrthogonalSelection):
        laid = plain.to_buffer(expected)
        assert np.broadcast_shapes(laid.shape, plain.shape) == plain.shape
        np.testing.assert_array_equal(plain.result(np.broadcast_to(laid, plain.shape)), expected)


@given(st.data(), hnp.array_shapes(min_dims=1, max_dims=3, min_side=1, max_side=9))
def test_block_selections_select_whole_chunks(data: st.DataObject, shape: tuple[int, ...]) -> None:
    axes = data.draw(grids(shape))
    edges = []
    for axis, length in zip(axes, shape, strict=True):
        count = axis.find(length - 1) + 1
        edges.append([axis.begin(i) for i in range(count)] + [length])
    parts: list[Any] = []
    for e in edges:
        count = len(e) - 1
        forward = st.slices(count).filter(lambda s: s.step in (None, 1))
        parts.append(data.draw(st.one_of(st.integers(-count, count - 1), forward)))
    index = []
    for part, e in zip(parts, edges, strict=True):
        start, stop, _ = (part, part + 1, 1) if isinstance(part, int) and part >= 0 else (0, 0, 1)
        if isinstance(part, int):
            start = part % (len(e) - 1)
            stop = start + 1
        else:
            start, stop, _ = part.indices(len(e) - 1)
            stop = max(start, stop)
        index.append(slice(e[start], e[stop]))
    array = numbered(shape)
    plain = block_selection(tuple(parts), shape, edges)
    np.testing.assert_array_equal(read(array, axes, plain), array[tuple(index)])


@given(st.data(), hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=5))
def test_a_flat_range_is_cut_into_contiguous_boxes(data: st.DataObject, shape: tuple[int, ...]) -> None:
    array = numbered(shape)
    start = data.draw(st.integers(0, array.size))
    stop = data.draw(st.integers(start, array.size))
    boxes = list(flat_boxes(start, stop, shape))
    assert len(boxes) <= max(1, 2 * len(shape))
    flat = np.full(array.size, -1)
    for position, box in boxes:
        piece = array[box].reshape(-1)
        flat[position : position + piece.size] = piece
    np.testing.assert_array_equal(flat[start:stop], np.arange(start, stop))
    assert (flat == -1).sum() == array.size - (stop - start)


@pytest.mark.parametrize(
    ("index", "message"),
    [
        (None, "newaxis"),
        ((0, 0, 0), "3 indices for an array of 2 dimensions"),
        (4, "index 4 is out of bounds for dimension 0 of length 4"),
        ((0, -7), "index -7 is out of bounds for dimension 1 of length 6"),
        ((..., ...), "only one Ellipsis"),
        (1.5, "1.5 (float) is no index"),
        (True, "single boolean"),
        (slice(None, None, 0), "step"),
        ([0, 9], "index 9 is out of bounds"),
        (([0, 1], slice(None), 0), "3 indices"),
        (([True, False],), "boolean array of 2 elements for a length of 4"),
        (np.zeros((2, 2), bool), "boolean array of the array's shape"),
        ((["a"],), "indices must be integers"),
    ],
)
def test_the_error_for_an_invalid_index_states_the_reason(index: Any, message: str) -> None:
    with pytest.raises(SelectionError) as caught:
        fancy_selection(index, (4, 6))
    assert message in str(caught.value)


def test_a_selection_error_is_an_index_error() -> None:
    with pytest.raises(IndexError):
        basic_selection([0], (4,))
    with pytest.raises(SelectionError, match="slices"):
        fancy_selection(([0], [1], slice(None)), (4, 4, 4))
    with pytest.raises(SelectionError, match="broadcast"):
        coordinate_selection(([0, 1], [0, 1, 2]), (4, 4))


def test_field_names_are_separated_from_the_selection() -> None:
    dtype = np.dtype([("a", "i4"), ("b", "f8")])
    assert pop_fields("a", dtype) == ("a", ())
    assert pop_fields(["a", "b"], dtype) == (["a", "b"], ())
    assert pop_fields(("a", slice(3)), dtype) == ("a", (slice(3),))
    assert pop_fields([0, 1], dtype) == (None, [0, 1])
    with pytest.raises(SelectionError, match="the fields are 'a', 'b'"):
        pop_fields("c", dtype)
    with pytest.raises(SelectionError, match="no fields"):
        pop_fields("c", np.dtype("i4"))
