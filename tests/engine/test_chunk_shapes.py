"""Chunk shapes chosen from constraints, compared with those of TensorStore."""

from __future__ import annotations

from math import prod
from typing import Any

import pytest
import tensorstore
from hypothesis import given, settings
from hypothesis import strategies as st

import zarrfs
from zarrfs.engine.create.chunk_shapes import ChunkConstraint, choose_read_write
from zarrfs.engine.stores.memory import MemoryStore


def tensorstore_shapes(
    shape: tuple[int, ...], read: dict[str, Any], write: dict[str, Any]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    wanted = {f"read_chunk_{key}": value for key, value in read.items()}
    wanted |= {f"write_chunk_{key}": value for key, value in write.items()}
    made = tensorstore.open(
        {"driver": "zarr3", "kvstore": {"driver": "memory"}},
        create=True,
        dtype="uint8",
        shape=shape,
        chunk_layout=tensorstore.ChunkLayout(**wanted),
    ).result()
    layout = made.chunk_layout
    return tuple(layout.read_chunk.shape or ()), tuple(layout.write_chunk.shape or ())


def test_the_examples_of_the_tensorstore_documentation() -> None:
    """ "Selection of chunk layout when creating a new array", zarr3 driver of TensorStore."""
    shape = (1000, 2000, 3000)
    assert choose_read_write(shape, ChunkConstraint(), ChunkConstraint()) == (
        (101, 101, 101),
        (101, 101, 101),
    )
    read = ChunkConstraint(aspect_ratio=(2, 1, 1), elements=2_000_000)
    write = ChunkConstraint(aspect_ratio=(2, 1, 1), elements=1_000_000_000)
    assert choose_read_write(shape, read, write) == ((200, 100, 100), (1000, 1000, 1000))
    read, write = ChunkConstraint((64, 64, 64)), ChunkConstraint((512, 512, 512))
    assert choose_read_write(shape, read, write) == ((64, 64, 64), (512, 512, 512))


lengths = st.sampled_from([1, 2, 7, 10, 64, 100, 101, 300, 1000, 1024, 30_000])
given_lengths = st.sampled_from([0, 0, -1, 1, 2, 3, 7, 10, 12, 16, 64, 100, 300, 512])
elements = st.none() | st.sampled_from([1, 10, 1000, 10**5, 10**7]) | st.integers(1, 10**6)


def constraints(rank: int, ratios: st.SearchStrategy[float]) -> st.SearchStrategy[dict[str, Any]]:
    optional = {
        "shape": st.tuples(*[given_lengths] * rank),
        "aspect_ratio": st.tuples(*[ratios] * rank),
        "elements": elements.filter(lambda value: value is not None),
    }
    return st.fixed_dictionaries({}, optional=optional)


@st.composite
def examples(draw: st.DrawFn, ratios: st.SearchStrategy[float]) -> tuple[Any, Any, Any]:
    rank = draw(st.integers(1, 4))
    return (
        draw(st.tuples(*[lengths] * rank)),
        draw(constraints(rank, ratios)),
        draw(constraints(rank, ratios)),
    )


def results(example: tuple[Any, Any, Any]) -> tuple[Any, Any]:
    shape, read, write = example
    try:
        zarrfs_result: Any = choose_read_write(shape, ChunkConstraint(**read), ChunkConstraint(**write))
    except zarrfs.MetadataError:
        zarrfs_result = "refused"
    try:
        tensorstore_result: Any = tensorstore_shapes(shape, read, write)
    except ValueError as error:
        tensorstore_result = "too many chunks" if "grid shape" in str(error) else "refused"
    return zarrfs_result, tensorstore_result


@given(examples(st.sampled_from([0.0, 1.0])))
@settings(deadline=None, max_examples=300)
def test_shapes_equal_those_of_tensorstore(example: tuple[Any, Any, Any]) -> None:
    zarrfs_result, tensorstore_result = results(example)
    if tensorstore_result != "too many chunks":
        assert zarrfs_result == tensorstore_result


@given(examples(st.sampled_from([0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 10.0])))
@settings(deadline=None, max_examples=300)
def test_a_length_with_an_aspect_ratio_exceeds_that_of_tensorstore_at_most_by_one(
    example: tuple[Any, Any, Any],
) -> None:
    """TensorStore searches in steps and may stop one below the maximum. The constraints are never exceeded."""
    zarrfs_result, tensorstore_result = results(example)
    if "refused" in (zarrfs_result, tensorstore_result) or tensorstore_result == "too many chunks":
        assert tensorstore_result in (zarrfs_result, "too many chunks")
        return
    for length, other in zip(zarrfs_result[0], tensorstore_result[0], strict=True):
        assert 0 <= length - other <= 1
    _, read, write = example
    wanted = read.get("elements", 1 << 20)
    given_read, given_write = read.get("shape", ()), write.get("shape", ())
    if not any(given_read) and not any(given_write):
        assert prod(zarrfs_result[0]) <= wanted
    assert all(large % small == 0 for small, large in zip(*zarrfs_result, strict=True))


@pytest.mark.parametrize(
    ("constraint", "message"),
    [
        ({"shape": (4, -2)}, "at least -1"),
        ({"shape": (4, 1.5)}, "integers"),
        ({"aspect_ratio": (1, -1)}, "aspect_ratio"),
        ({"aspect_ratio": (1, float("inf"))}, "aspect_ratio"),
        ({"elements": 0}, "elements"),
    ],
)
def test_invalid_constraints(constraint: dict[str, Any], message: str) -> None:
    with pytest.raises(zarrfs.MetadataError, match=message):
        ChunkConstraint(**constraint)


def test_contradictory_constraints() -> None:
    with pytest.raises(zarrfs.MetadataError, match=r"read_chunk shape \[1, 2\] has 2 dimensions, expected 3"):
        choose_read_write((4, 4, 4), ChunkConstraint((1, 2)), ChunkConstraint())
    with pytest.raises(
        zarrfs.MetadataError, match=r"write_chunk shape \[6\] is not a multiple of read_chunk shape \[4\]"
    ):
        choose_read_write((10,), ChunkConstraint((4,)), ChunkConstraint((6,)))


def test_arrays_can_be_created_with_constraints() -> None:
    """Shards are created if the write chunks are larger than the read chunks."""
    read, write = ChunkConstraint(elements=1000), ChunkConstraint(elements=64_000)
    array = zarrfs.create_array(MemoryStore(), shape=(100, 100, 100), dtype="u1", chunks=read, shards=write)
    assert (array.chunks, array.shards) == ((10, 10, 10), (40, 40, 40))
    equivalent_specs = zarrfs.create_array(
        MemoryStore(), shape=(100, 100), dtype="u1", chunks=read, shards=read
    )
    assert (equivalent_specs.chunks, equivalent_specs.shards) == ((31, 31), None)
    plain = zarrfs.create_array(MemoryStore(), shape=(100, 100), dtype="u1", chunks=read, zarr_format=2)
    assert plain.chunks == (31, 31)
    mixed = zarrfs.create_array(MemoryStore(), shape=(100, 100), chunks=(10, 10), shards=write, dtype="u1")
    assert (mixed.chunks, mixed.shards) == ((10, 10), (100, 100))
