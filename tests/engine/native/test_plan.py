"""The arrays of a native plan and the chunk projections of the Python executor describe the same read."""

from __future__ import annotations

from math import prod
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import zarrfs
from tests.engine.native.executors import native
from zarrfs.engine.indexing.axes import RegularAxis
from zarrfs.engine.indexing.normalized import OrthogonalSelection, Span
from zarrfs.engine.indexing.projections import ChunkProjection, ChunkProjections, span_projections
from zarrfs.engine.indexing.selections import fancy_selection
from zarrfs.engine.read.native_reading import native_array, native_chunks


@st.composite
def spans(draw: st.DrawFn) -> tuple[Span, RegularAxis]:
    """A Span that is not empty, and the dimension that it selects from."""
    length = draw(st.integers(1, 60))
    start = draw(st.integers(0, length - 1))
    step = draw(st.integers(1, 12))
    count = draw(st.integers(1, (length - 1 - start) // step + 1))
    return Span(start, step, count), RegularAxis(length, draw(st.integers(1, 70)))


@given(spans())
def test_a_dimension_is_projected_equally(case: tuple[Span, RegularAxis]) -> None:
    span, axis = case
    selection = OrthogonalSelection((span,), (span.count,), (slice(None),))
    expected = list(ChunkProjections(selection, [axis]))
    entries = span_projections(span, axis)
    assert [(chunk,) for chunk in entries.chunks] == [part.chunk_coords for part in expected]
    assert list(entries.starts) == [part.chunk_region[0].start for part in expected]
    assert list(entries.targets) == [part.target[0].start for part in expected]
    assert list(entries.counts) == [part.target[0].stop - part.target[0].start for part in expected]


@given(spans())
def test_the_projections_contain_each_element_once(case: tuple[Span, RegularAxis]) -> None:
    span, axis = case
    found = [
        axis.begin(chunk) + start + i * span.step
        for chunk, start, count in zip(*span_projections(span, axis)[:3], strict=True)
        for i in range(count)
    ]
    assert found == list(range(span.start, span.last + 1, span.step))


@st.composite
def reads(draw: st.DrawFn) -> tuple[dict[str, Any], tuple[slice, ...]]:
    """The options of an array, and a selection that is not empty."""
    ndim = draw(st.integers(1, 3))
    shape = tuple(draw(st.integers(1, 20)) for _ in range(ndim))
    chunks = tuple(draw(st.integers(1, 8)) for _ in range(ndim))
    shards = None
    if draw(st.booleans()):
        shards = tuple(chunk * draw(st.integers(1, 3)) for chunk in chunks)
    selection = []
    for length in shape:
        start = draw(st.integers(0, length - 1))
        selection.append(slice(start, draw(st.integers(start + 1, length)), draw(st.integers(1, 4))))
    return {"shape": shape, "chunks": chunks, "shards": shards}, tuple(selection)


def element_count(part: ChunkProjection) -> int:
    """Return the number of elements of a projection."""
    return prod(target.stop - target.start for target in part.target)


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return tmp_path_factory.mktemp("plans")


@given(read=reads())
def test_the_values_of_a_plan_are_equal(
    read: tuple[dict[str, Any], tuple[slice, ...]], directory: Any
) -> None:
    options, index = read
    array = zarrfs.create_array(directory / "a", dtype="u2", overwrite=True, **options)
    storage = array._storage
    selection = fancy_selection(index, array.shape)
    assert isinstance(selection, OrthogonalSelection)
    with native():
        described = native_array(storage)
    assert described is not None
    plan = native_chunks(described, ChunkProjections(selection, storage.axes))
    assert plan is not None
    expected = list(ChunkProjections(selection, storage.axes))
    assert plan.coords() == [part.chunk_coords for part in expected]
    assert plan.selected_counts().tolist() == [element_count(part) for part in expected]
    assert plan.whole() == [part.whole for part in expected]
    assert storage.cache_keys(plan.coords()) == storage.cache_keys(part.chunk_coords for part in expected)
