"""Selections and grid arithmetic against NumPy, without stores or codecs."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from zarrfs.engine.chunks.chunk_grids import RunsAxis
from zarrfs.engine.indexing.axes import RegularAxis
from zarrfs.engine.indexing.fields import pop_fields
from zarrfs.engine.indexing.flat_ranges import flat_boxes
from zarrfs.engine.indexing.normalized import OrthogonalSelection
from zarrfs.engine.indexing.projections import ChunkProjections
from zarrfs.engine.indexing.selections import (
    basic_selection,
    block_selection,
    coordinate_selection,
    fancy_selection,
    mask_selection,
    orthogonal_selection,
)
from zarrfs.errors import SelectionError

shapes = hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=9)


@st.composite
def grids(draw: st.DrawFn, shape: tuple[int, ...]) -> tuple[Any, ...]:
    """Draw a division of each dimension into chunks of equal or of different lengths."""
    axes: list[Any] = []
    for length in shape:
        if draw(st.booleans()):
            axes.append(RegularAxis(length, draw(st.integers(1, 5))))
            continue
        runs = []
        while sum(size * count for size, count in runs) < max(1, length):
            runs.append((draw(st.integers(1, 4)), draw(st.integers(1, 2))))
        axes.append(RunsAxis.of_runs(length, runs))
    return tuple(axes)


def read(array: np.ndarray, axes: tuple[Any, ...], selection: Any) -> np.ndarray:
    """Emulate reading with chunks that are slices of a padded array."""
    padded = np.full([n + 8 for n in array.shape], -1)
    padded[tuple(slice(0, n) for n in array.shape)] = array
    is_orthogonal = isinstance(selection, OrthogonalSelection)
    buffer = np.full(selection.shape if is_orthogonal else (prod(selection.shape),), -2)
    projections = list(ChunkProjections(selection, axes))
    assert len(projections) <= ChunkProjections(selection, axes).count or buffer.size == 0
    assert len({projection.chunk_coords for projection in projections}) == len(projections)
    for projection in projections:
        begins = [axis.begin(c) for axis, c in zip(axes, projection.chunk_coords, strict=True)]
        sizes = [axis.size(c) for axis, c in zip(axes, projection.chunk_coords, strict=True)]
        chunk = padded[tuple(slice(b, b + s) for b, s in zip(begins, sizes, strict=True))]
        assert all(
            0 <= r.start < r.stop <= s and r.step == 1
            for r, s in zip(projection.chunk_region, sizes, strict=True)
        )
        valid = [min(s, axis.length - b) for b, s, axis in zip(begins, sizes, axes, strict=True)]
        covers = all((r.start, r.stop) == (0, v) for r, v in zip(projection.chunk_region, valid, strict=True))
        if projection.whole:
            assert covers
        elif projection.local is None:
            assert not covers or isinstance(selection, OrthogonalSelection)
        box = chunk[projection.chunk_region]
        buffer[projection.target] = box if projection.local is None else box[projection.local]
    return selection.result(buffer) if is_orthogonal else buffer.reshape(selection.shape)


def numbered(shape: tuple[int, ...]) -> np.ndarray:
    return np.arange(prod(shape)).reshape(shape)


@given(st.data(), shapes)
def test_basic_selections_equal_numpy(data: st.DataObject, shape: tuple[int, ...]) -> None:
    array = numbered(shape)
    index = data.draw(hnp.basic_indices(shape, allow_newaxis=False, allow_ellipsis=True))
    expected = array[index]
    selection = basic_selection(index, shape)
    assert selection.result_shape == np.shape(expected)
    np.testing.assert_array_equal(read(array, data.draw(grids(shape)), selection), expected)


@given(st.data(), hnp.array_shapes(min_dims=1, max_dims=4, min_side=1, max_side=9))
def test_orthogonal_selections_equal_products_of_indices(data: st.DataObject, shape: tuple[int, ...]) -> None:
    entries: list[Any] = []
    numpy_index: list[Any] = []
    for length in shape:
        kind = data.draw(st.sampled_from(["int", "slice", "ints", "mask"]))
        if kind == "int":
            entries.append(data.draw(st.integers(-length, length - 1)))
            numpy_index.append([entries[-1]])
        elif kind == "slice":
            entries.append(data.draw(st.slices(length)))
            numpy_index.append(np.arange(length)[entries[-1]])
        elif kind == "ints":
            entries.append(data.draw(st.lists(st.integers(-length, length - 1), max_size=8)))
            numpy_index.append(np.array(entries[-1], int))
        else:
            entries.append(np.array(data.draw(st.lists(st.booleans(), min_size=length, max_size=length))))
            numpy_index.append(np.nonzero(entries[-1])[0])
    array = numbered(shape)
    drop = tuple(i for i, entry in enumerate(entries) if isinstance(entry, int))
    expected = array[np.ix_(*numpy_index)].squeeze(drop)
    selection = orthogonal_selection(tuple(entries), shape)
    np.testing.assert_array_equal(read(array, data.draw(grids(shape)), selection), expected)


@given(st.data(), hnp.array_shapes(min_dims=1, max_dims=3, min_side=1, max_side=9))
def test_coordinate_selections_equal_numpy(data: st.DataObject, shape: tuple[int, ...]) -> None:
    array = numbered(shape)
    result_shape = hnp.array_shapes(min_dims=1, max_dims=2, max_side=7)
    index = data.draw(hnp.integer_array_indices(shape, result_shape=result_shape))
    selection = coordinate_selection(index, shape)
    np.testing.assert_array_equal(read(array, data.draw(grids(shape)), selection), array[index])


@given(st.data(), hnp.array_shapes(min_dims=1, max_dims=3, min_side=0, max_side=7))
def test_mask_selections_equal_numpy(data: st.DataObject, shape: tuple[int, ...]) -> None:
    array = numbered(shape)
    mask = data.draw(hnp.arrays(bool, shape))
    for selection in (mask_selection(mask, shape), fancy_selection(mask, shape)):
        np.testing.assert_array_equal(read(array, data.draw(grids(shape)), selection), array[mask])


@given(st.data(), hnp.array_shapes(min_dims=1, max_dims=4, min_side=1, max_side=6))
@pytest.mark.filterwarnings("ignore::zarrfs.CompatibilityWarning")
def test_fancy_selections_equal_numpy(data: st.DataObject, shape: tuple[int, ...]) -> None:
    """Select with one index array of any rank, integers and slices. The order of axes must equal NumPy's."""
    array = numbered(shape)
    axis = data.draw(st.integers(0, len(shape) - 1))
    entries: list[Any] = []
    for i, length in enumerate(shape):
        if i == axis:
            kind = hnp.array_shapes(min_dims=1, max_dims=2, max_side=4)
            entries.append(data.draw(hnp.arrays(np.intp, kind, elements=st.integers(-length, length - 1))))
        else:
            entries.append(data.draw(st.one_of(st.integers(-length, length - 1), st.slices(length))))
    index = tuple(entries)
    selection = fancy_selection(index, shape)
    expected = array[index]
    result = read(array, data.draw(grids(shape)), selection)
    assert result.shape == expected.shape
    np.testing.assert_array_equal(result, expected)
    if isinstance(selection, OrthogonalSelection):
        buffer = selection.to_buffer(expected)
        assert np.broadcast_shapes(buffer.shape, selection.shape) == selection.shape
        np.testing.assert_array_equal(selection.result(np.broadcast_to(buffer, selection.shape)), expected)


@given(st.data(), hnp.array_shapes(min_dims=1, max_dims=3, min_side=1, max_side=9))
def test_block_selections_select_chunks(data: st.DataObject, shape: tuple[int, ...]) -> None:
    axes = data.draw(grids(shape))
    edges = []
    for axis, length in zip(axes, shape, strict=True):
        count = axis.find(length - 1) + 1
        edges.append([axis.begin(i) for i in range(count)] + [length])
    entries: list[Any] = []
    for e in edges:
        count = len(e) - 1
        forward = st.slices(count).filter(lambda s: s.step in (None, 1))
        entries.append(data.draw(st.one_of(st.integers(-count, count - 1), forward)))
    index = []
    for entry, e in zip(entries, edges, strict=True):
        start, stop, _ = (entry, entry + 1, 1) if isinstance(entry, int) and entry >= 0 else (0, 0, 1)
        if isinstance(entry, int):
            start = entry % (len(e) - 1)
            stop = start + 1
        else:
            start, stop, _ = entry.indices(len(e) - 1)
            stop = max(start, stop)
        index.append(slice(e[start], e[stop]))
    array = numbered(shape)
    selection = block_selection(tuple(entries), shape, axes, tuple(len(e) - 1 for e in edges))
    np.testing.assert_array_equal(read(array, axes, selection), array[tuple(index)])


@given(st.data(), hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=5))
def test_flat_ranges_are_divided_into_contiguous_boxes(data: st.DataObject, shape: tuple[int, ...]) -> None:
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
        (1.5, "1.5 (float) is not an index"),
        (True, "single boolean"),
        (slice(None, None, 0), "step"),
        ([0, 9], "index 9 is out of bounds"),
        (([0, 1], slice(None), 0), "3 indices"),
        (([True, False],), "boolean array of 2 elements does not match the length 4"),
        (np.zeros((2, 2), bool), "boolean array of the array's shape"),
        ((["a"],), "indices must be integers"),
    ],
)
def test_invalid_selections(index: Any, message: str) -> None:
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


def test_field_names_are_split_from_the_selection() -> None:
    dtype = np.dtype([("a", "i4"), ("b", "f8")])
    assert pop_fields("a", dtype) == ("a", ())
    assert pop_fields(["a", "b"], dtype) == (["a", "b"], ())
    assert pop_fields(("a", slice(3)), dtype) == ("a", (slice(3),))
    assert pop_fields([0, 1], dtype) == (None, [0, 1])
    with pytest.raises(SelectionError, match="the fields are 'a', 'b'"):
        pop_fields("c", dtype)
    with pytest.raises(SelectionError, match="no fields"):
        pop_fields("c", np.dtype("i4"))
