"""Creation functions and open modes, compared with zarr-python where it has the same function."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr

import zarrfs
from zarrfs.engine.create.similar_arrays import copy_values
from zarrfs.engine.stores.memory import MemoryStore
from zarrfs.errors import (
    LocationError,
    NodeExistsError,
    NodeNotFoundError,
    NodeTypeError,
    OptionError,
    ReadOnlyError,
    StoreError,
)

FORMATS: list[Any] = [2, 3, "n5", "draft2019"]


@pytest.mark.parametrize("dtype", ["u1", "<i4", ">f8", "bool", "c8"])
@pytest.mark.parametrize("name", ["zeros", "ones", "empty"])
def test_arrays_read_the_same_as_those_of_zarr_python(name: str, dtype: str) -> None:
    ours = getattr(zarrfs, name)((5, 7), dtype=dtype, chunks=(2, 3))
    theirs = getattr(zarr, name)(shape=(5, 7), dtype=dtype, chunks=(2, 3))
    assert (ours.shape, ours.chunks) == (theirs.shape, theirs.chunks)
    assert np.array_equal(ours[...], np.asarray(theirs[...]))
    assert ours.nchunks_initialized == 0


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_zarr_python_reads_what_full_and_array_create(zarr_format: int, tmp_path: Path) -> None:
    ours = zarrfs.full((4, 4), 42, tmp_path / "f", dtype="i2", zarr_format=zarr_format)
    assert (ours[...] == 42).all()
    assert (np.asarray(zarr.open_array(tmp_path / "f", mode="r")[...]) == 42).all()
    made = zarrfs.array([[1, 2], [3, 4]], tmp_path / "g", "deep/er", zarr_format=zarr_format)
    assert np.array_equal(made[...], [[1, 2], [3, 4]])
    assert np.array_equal(
        np.asarray(zarr.open_group(tmp_path / "g", mode="r")["deep/er"][...]), [[1, 2], [3, 4]]
    )


@pytest.mark.parametrize("zarr_format", FORMATS)
def test_like_functions_keep_the_metadata_of_a_zarrfs_array(zarr_format: Any) -> None:
    options = {"dimension_names": ["a", "b"], "shards": (6, 4)} if zarr_format == 3 else {}
    source = zarrfs.zeros((9, 8), chunks=(3, 2), dtype="u2", zarr_format=zarr_format, **options)
    for like in (zarrfs.zeros_like, zarrfs.empty_like):
        made = like(source)
        assert (made.shape, made.chunks, made.shards, made.dtype) == (
            source.shape,
            source.chunks,
            source.shards,
            source.dtype,
        )
        assert made.zarr_format == zarr_format
        assert made.dimension_names == source.dimension_names
    other = zarrfs.ones_like(source, zarr_format=2)
    assert other.shards is None
    assert (other[...] == 1).all()


def test_the_functions_of_groups_create_arrays_like_others() -> None:
    group = zarrfs.create_group({})
    source = zarrfs.full((4, 6), 7, chunks=(2, 3), dtype="u1", attributes={"a": 1})
    for name, options, expected in (
        ("empty_like", {}, 7),
        ("zeros_like", {}, 0),
        ("ones_like", {}, 1),
        ("full_like", {}, 7),
        ("full_like", {"fill_value": 9}, 9),
    ):
        made = getattr(group, name)(f"{name}{expected}", source, **options)
        assert made == group[f"{name}{expected}"]
        assert (made.shape, made.chunks, made.dtype) == (source.shape, source.chunks, source.dtype)
        assert (made[...] == expected).all()


def test_like_functions_accept_other_arrays(tmp_path: Path) -> None:
    made = zarrfs.full_like(np.zeros((3, 4), "f4"), 2.5)
    assert (made.shape, made.dtype) == ((3, 4), np.dtype("f4"))
    assert (made[...] == 2.5).all()
    theirs = zarr.zeros(shape=(6, 6), chunks=(2, 3), dtype="u1")
    assert zarrfs.zeros_like(theirs).chunks == (2, 3)
    opened = zarrfs.open_like(theirs, tmp_path / "o")
    opened[0, 0] = 9
    assert zarrfs.open_like(theirs, tmp_path / "o")[0, 0] == 9


@pytest.mark.parametrize(
    ("chunks", "expected"),
    [
        (False, (30, 40)),
        (None, (30, 40)),
        (-1, (30, 40)),
        (10, (10, 10)),
        ((7, -1), (7, 40)),
        ((None, 5), (30, 5)),
    ],
)
def test_special_chunk_lengths_select_the_whole_dimension(chunks: Any, expected: tuple[int, int]) -> None:
    assert zarrfs.zeros((30, 40), chunks=chunks).chunks == expected


def test_each_mode_opens_or_creates_nodes_as_documented(tmp_path: Path) -> None:
    place = tmp_path / "x.zarr"
    for mode in ("r", "r+"):
        with pytest.raises((LocationError, NodeNotFoundError)):
            zarrfs.open(place, mode=mode)  # type: ignore[arg-type]
    made = zarrfs.open(place, mode="a", shape=(10,), chunks=(5,), dtype="i4")
    assert isinstance(made, zarrfs.Array)
    made[:] = 7
    again = zarrfs.open(place, mode="a", shape=(99,))
    assert isinstance(again, zarrfs.Array)
    assert (again[...] == 7).all()
    with pytest.raises(NodeExistsError):
        zarrfs.open(place, mode="w-", shape=(10,))
    with pytest.raises(ReadOnlyError):
        zarrfs.open_array(place)[0] = 1
    zarrfs.open_array(place, mode="r+")[0] = 1
    assert zarrfs.open_array(place)[0] == 1
    fresh = zarrfs.open(place, mode="w", shape=(3,))
    assert isinstance(fresh, zarrfs.Array)
    assert (fresh[...] == 0).all()
    group = zarrfs.open_group(tmp_path / "g", mode="w-", attributes={"a": 1})
    assert dict(group.attrs) == {"a": 1}
    with pytest.raises(NodeExistsError):
        zarrfs.open_group(tmp_path / "g", mode="w-")
    with pytest.raises(NodeTypeError):
        zarrfs.open_group(place, mode="a")
    assert zarrfs.open_group(tmp_path / "g", mode="w").attrs.asdict() == {}


def test_invalid_modes_raise_an_error(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="mode must be one of"):
        zarrfs.open(tmp_path, mode="q")  # type: ignore[arg-type]
    with pytest.raises(OptionError, match="does not accept shape"):
        zarrfs.open(tmp_path, mode="r", shape=(3,))
    with pytest.raises(OptionError, match="needs a shape"):
        zarrfs.open_array(tmp_path / "y", mode="w")


def test_nodes_are_pickled(tmp_path: Path) -> None:
    group = zarrfs.create_group(tmp_path / "g")
    array = group.create_array("a", data=np.arange(12).reshape(3, 4), chunks=(2, 2))
    copied = pickle.loads(pickle.dumps(array))
    assert copied == array
    assert np.array_equal(copied[...], array[...])
    copied[0, 0] = 99
    assert array[0, 0] == 99
    assert "a" in pickle.loads(pickle.dumps(group))
    reading = pickle.loads(pickle.dumps(zarrfs.open_array(tmp_path / "g", "a")))
    with pytest.raises(ReadOnlyError):
        reading[0, 0] = 1
    inside = pickle.loads(pickle.dumps(zarrfs.array([1, 2, 3])))
    assert np.array_equal(inside[...], [1, 2, 3])


def test_an_archive_is_pickled_to_read_only(tmp_path: Path) -> None:
    array = zarrfs.array([1, 2, 3], tmp_path / "a.zarr.zip")
    with pytest.raises(StoreError, match="cannot be pickled"):
        pickle.dumps(array)
    array.store.close()
    opened = zarrfs.open_array(tmp_path / "a.zarr.zip")
    assert np.array_equal(pickle.loads(pickle.dumps(opened))[...], [1, 2, 3])


def test_nodes_at_the_same_location_are_equal(tmp_path: Path) -> None:
    zarrfs.array([1, 2], tmp_path / "a")
    one, other = zarrfs.open_array(tmp_path / "a"), zarrfs.open_array(tmp_path / "a")
    assert one == other
    assert len({one, other}) == 1
    assert zarrfs.array([1], MemoryStore()) != zarrfs.array([1], MemoryStore())


@pytest.mark.parametrize("zarr_format", [3, 2, "n5"])
def test_an_array_created_from_chunked_data_has_their_chunks(zarr_format: Any) -> None:
    data = np.arange(60, dtype="u2").reshape(6, 10)
    plain = zarrfs.create_array({}, data=data, chunks=(2, 5))
    sharded = zarrfs.create_array({}, data=data, chunks=(2, 5), shards=(4, 10))
    uneven = zarrfs.create_array({}, data=data, chunks=((1, 5), (4, 6)))
    dask = pytest.importorskip("dask.array")
    group = zarrfs.create_group({}, zarr_format=zarr_format)
    for source in (
        plain,
        sharded,
        dask.from_array(data, chunks=(2, 5)),
        zarr.create_array({}, data=data, chunks=(2, 5)),
    ):
        group["b"] = source
        for made in (zarrfs.array(source, zarr_format=zarr_format), group["b"]):
            assert isinstance(made, zarrfs.Array)
            assert made.chunks == (2, 5)
            assert made.shards == ((4, 10) if source is sharded and zarr_format == 3 else None)
            np.testing.assert_array_equal(made, data)
    made = zarrfs.array(uneven, zarr_format=zarr_format)
    assert made.chunks == (uneven.chunks if zarr_format == 3 else (5, 6))
    assert zarrfs.array(plain, zarr_format=zarr_format, chunks=(3, 10)).chunks == (3, 10)
    # Data that are broadcast have other chunks.
    assert zarrfs.create_array({}, data=plain[0], shape=(2, 10), zarr_format=zarr_format).chunks == (2, 10)
    strings = zarrfs.create_array({}, data=["a", "b", "c"], chunks=2)
    assert zarrfs.array(strings)[...].tolist() == ["a", "b", "c"]
    assert zarrfs.array(strings).chunks == (2,)


def test_values_are_copied_to_an_irregular_grid_one_chunk_at_a_time() -> None:
    data = np.arange(60).reshape(10, 6)
    sizes: list[int] = []

    class Source:
        def __getitem__(self, region: Any) -> Any:
            sizes.append(data[region].size)
            return data[region]

    target = zarrfs.create_array({}, shape=data.shape, dtype=data.dtype, chunks=((3, 4, 3), (5, 1)))
    copy_values(Source(), target)
    np.testing.assert_array_equal(target, data)
    assert sizes == [15, 3, 20, 4, 15, 3]


def test_loaded_groups_have_a_length() -> None:
    store: dict[str, bytes] = {}
    zarrfs.save(store, np.arange(3), b=np.ones(2))
    assert len(zarrfs.load(store)) == 2


def test_an_array_is_saved_with_storage_options() -> None:
    """They are neither the name of an array nor a reason to save a group."""
    zarrfs.save("memory://saved.zarr", np.arange(3), storage_options={})
    assert zarrfs.load("memory://saved.zarr", storage_options={}).tolist() == [0, 1, 2]
