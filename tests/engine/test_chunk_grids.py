"""Chunk grids: the examples of the specifications, invalid configurations, and comparison with expanded lengths."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import EntryPoint, EntryPoints
from typing import Any, ClassVar, Self

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from zarrfs import plugins
from zarrfs.engine.chunks import chunk_grids
from zarrfs.engine.chunks.chunk_grids import (
    ChunkGrid,
    RectilinearGrid,
    RegularGrid,
    RunsAxis,
    chunk_grid_from_json,
    chunk_grid_to_json,
)
from zarrfs.engine.indexing.axes import Axis, RegularAxis
from zarrfs.errors import MetadataError, UnsupportedError

HERE = "image.zarr/zarr.json: /chunk_grid"


def regular(*chunk_shape: Any) -> dict[str, Any]:
    return {"name": "regular", "configuration": {"chunk_shape": list(chunk_shape)}}


def rectilinear(*chunk_shapes: Any) -> dict[str, Any]:
    return {"name": "rectilinear", "configuration": {"kind": "inline", "chunk_shapes": list(chunk_shapes)}}


def parse(value: Any, shape: Sequence[int]) -> ChunkGrid:
    return chunk_grid_from_json(value, shape, HERE)


# -- regular -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("shape", "chunk_shape", "grid_shape"),
    [
        ((10, 200, 3000), (5, 20, 400), (2, 10, 8)),
        ((), (), ()),
        ((0, 5), (0, 5), (0, 1)),
        ((0, 5), (3, 2), (0, 3)),
        ((10**18,), (1,), (10**18,)),
        ((7,), (10**12,), (1,)),
    ],
)
def test_regular_grid(
    shape: tuple[int, ...], chunk_shape: tuple[int, ...], grid_shape: tuple[int, ...]
) -> None:
    grid = parse(regular(*chunk_shape), shape)
    assert grid == RegularGrid(chunk_shape)
    assert grid.chunk_shape == chunk_shape
    assert grid.grid_shape(shape) == grid_shape
    assert chunk_grid_to_json(grid) == regular(*chunk_shape)
    grown = tuple(n + 100 for n in shape)
    grid.resized(grown).check(grown, HERE)
    assert grid.resized(grown).chunk_shape == tuple(chunk or 100 for chunk in chunk_shape)


def test_the_regular_grid_example_of_the_specification() -> None:
    grid = parse(regular(5, 20, 400), (10, 200, 3000))
    axes = [grid.axis(axis, length) for axis, length in enumerate((10, 200, 3000))]
    coords = [axis.find(index) for axis, index in zip(axes, (7, 150, 900), strict=True)]
    assert coords == [1, 7, 2]
    offsets = [i - axis.begin(c) for axis, i, c in zip(axes, (7, 150, 900), coords, strict=True)]
    assert offsets == [2, 10, 100]


# -- invalid -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("hexagonal", '"hexagonal" is not supported'),
        ("regular", '"chunk_shape"'),
        (None, "found null"),
        ({"name": "regular"}, '"chunk_shape"'),
        ({**regular(2, 3), "must_understand": False}, "must be understood"),
        ({**regular(2, 3), "extra": 1}, "/extra: unknown key"),
        (
            {"name": "regular", "configuration": {"chunk_shape": [2, 3], "x": 1}},
            "/configuration/x: unknown key",
        ),
        ({"name": "regular", "configuration": {"chunk_shape": 3}}, "/chunk_shape: expected a list"),
        (regular(2), "expected 2 lengths"),
        (regular(2, 3, 4), "expected 2 lengths"),
        (regular(0, 3), "/chunk_shape/0: expected a chunk length of at least 1"),
        (regular(2, -1), "/chunk_shape/1: expected an integer from 0"),
        (regular(2, True), "/chunk_shape/1: expected an integer"),
        (regular(2, 1.0), "/chunk_shape/1: expected an integer"),
        (regular(2, "3"), "/chunk_shape/1: expected an integer"),
        (regular(2, 10**30), "/chunk_shape/1: expected an integer"),
        (regular(*[1] * 65), "at most 64 dimensions"),
        (rectilinear([4], 6, 1), "chunk lengths of the 2 dimensions"),
        (rectilinear([3], 6), "/chunk_shapes/0: the chunk lengths must sum to at least 4"),
        (rectilinear([], 6), "/chunk_shapes/0: the chunk lengths must sum to at least 4"),
        (rectilinear([0, 4], 6), "/chunk_shapes/0/0: expected an integer from 1"),
        (rectilinear(0, 6), "/chunk_shapes/0: expected an integer from 1"),
        (rectilinear([[4]], 6), "/chunk_shapes/0/0: expected a chunk length, or"),
        (rectilinear([[4, 0]], 6), "/chunk_shapes/0/0/1: expected an integer from 1"),
        (rectilinear([[4, True]], 6), "/chunk_shapes/0/0/1: expected an integer"),
        (rectilinear("4", 6), "/chunk_shapes/0: expected an integer"),
        (
            {"name": "rectilinear", "configuration": {"chunk_shapes": [4, 6]}},
            '/kind: expected one of "inline"',
        ),
        ({"name": "rectilinear", "configuration": {"kind": "inline"}}, "/chunk_shapes: expected a list"),
    ],
    ids=str,
)
def test_errors_name_the_invalid_key_and_the_expected_value(value: Any, words: str) -> None:
    with pytest.raises(MetadataError) as caught:
        parse(value, (4, 6))
    assert str(caught.value).startswith(HERE)
    assert words in str(caught.value)


# -- rectilinear ---------------------------------------------------------------------------------------


def test_the_rectilinear_example_of_the_registry() -> None:
    shapes = [4, [1, 2, 3], [[4, 2]], [[1, 3], 3], [4, 4, 4]]
    grid = parse(rectilinear(*shapes), (6,) * 5)
    assert chunk_grid_to_json(grid) == rectilinear(*shapes)
    sizes = []
    for axis, count in enumerate(grid.grid_shape((6,) * 5)):
        sizes.append([grid.axis(axis, 6).size(chunk) for chunk in range(count)])
    assert sizes == [[4, 4], [1, 2, 3], [4, 4], [1, 1, 1, 3], [4, 4]]
    assert grid.chunk_shape is None


def test_runs_are_not_expanded_in_memory() -> None:
    grid = parse(rectilinear([[1, 10**18], 5], [7, [10**9, 10**18]]), (10**18 + 5, 10**15))
    assert grid.grid_shape((10**18 + 5, 10**15)) == (10**18 + 1, 10**6 + 1)
    axis = grid.axis(0, 10**18 + 5)
    assert (axis.find(10**18 + 4), axis.begin(10**18), axis.size(10**18)) == (10**18, 10**18, 5)


def test_growing_adds_a_chunk_only_beyond_the_end_of_the_grid() -> None:
    grid = parse(rectilinear([2, 3], 4), (5, 5))
    assert grid.resized((5, 50)) == grid
    grown = grid.resized((9, 50))
    assert chunk_grid_to_json(grown) == rectilinear([2, 3, 4], 4)
    grown.check((9, 50), HERE)
    assert grid.resized((1, 1)) == grid


RUNS = st.lists(st.tuples(st.integers(1, 7), st.integers(1, 4)), min_size=1, max_size=6)


@given(RUNS, st.data())
def test_runs_equal_the_expanded_chunk_lengths(runs: list[tuple[int, int]], data: st.DataObject) -> None:
    lengths = [size for size, count in runs for _ in range(count)]
    length = data.draw(st.integers(0, sum(lengths)))
    axis = RunsAxis.of_runs(length, runs)
    edges = np.concatenate([[0], np.cumsum(lengths)])
    indices = np.arange(length)
    expected = np.searchsorted(edges, indices, "right") - 1
    assert axis.locate(indices).tolist() == expected.tolist()
    assert [axis.find(int(i)) for i in indices] == expected.tolist()
    for chunk in set(expected.tolist()):
        assert (axis.begin(chunk), axis.size(chunk)) == (edges[chunk], lengths[chunk])


@given(st.integers(1, 9), st.integers(0, 40))
def test_a_single_length_is_a_regular_axis(chunk: int, length: int) -> None:
    grid = RectilinearGrid((chunk,))
    assert grid.axis(0, length) == RegularGrid((chunk,)).axis(0, length) == RegularAxis(length, chunk)
    assert grid.grid_shape((length,)) == RegularGrid((chunk,)).grid_shape((length,))


# -- grids of other packages ---------------------------------------------------------------------------


@dataclass(frozen=True)
class OneChunkGrid(ChunkGrid):
    name: ClassVar[str] = "test.one_chunk"
    chunk_shape: None = None

    @classmethod
    def from_configuration(cls, configuration: Mapping[str, Any], where: str) -> Self:
        return cls()

    def configuration(self) -> dict[str, Any]:
        return {}

    def axis(self, axis: int, length: int) -> Axis:
        return RegularAxis(length, max(1, length))

    def check(self, shape: Sequence[int], where: str) -> None:
        pass


def test_grids_of_other_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    entry = EntryPoint("test.one_chunk", f"{__name__}:OneChunkGrid", chunk_grids.ENTRY_POINTS)
    monkeypatch.setattr(plugins, "_entry_points", lambda group: EntryPoints([entry]).select(group=group))
    monkeypatch.setattr(chunk_grids, "_GRIDS", dict(chunk_grids._GRIDS))
    grid = parse("test.one_chunk", (5, 0))
    assert isinstance(grid, OneChunkGrid)
    assert grid.grid_shape((5, 0)) == (1, 0)
    assert chunk_grid_to_json(grid) == {"name": "test.one_chunk", "configuration": {}}
    with pytest.raises(UnsupportedError):
        parse("test.two_chunks", (5, 0))
