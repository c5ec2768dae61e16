"""``zarrfs.dask``: Dask arrays of every kind of location, with the parameters of Dask's own functions."""

from __future__ import annotations

import inspect
import threading
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import numpy as np
import pytest
import zarr
from hypothesis import given
from hypothesis import strategies as st

import zarrfs
from zarrfs.dask import from_zarr, to_zarr
from zarrfs.engine.stores.local.store import LocalStore
from zarrfs.engine.stores.memory import MemoryStore
from zarrfs.errors import (
    DataShapeError,
    LocationNotFoundError,
    NodeExistsError,
    NodeTypeError,
    OptionError,
    UnsupportedError,
)
from zarrfs.testing import CountingStore, LatencyStore

DATA = np.arange(35, dtype="u2").reshape(5, 7)


@pytest.fixture(params=["array", "group", "store", "dictionary", "path", "sqlite", "zarr-python"])
def location(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    if request.param in ("array", "group"):
        return zarrfs.group(tmp_path / "a")
    return {
        "store": LocalStore(tmp_path / "a"),
        "dictionary": {},
        "path": tmp_path / "a",
        "sqlite": f"sqlite://{tmp_path}/a.sqldb",
        "zarr-python": zarr.storage.MemoryStore(),
    }[request.param]


@pytest.mark.parametrize("path", ["a", "b/c"])
def test_every_location_is_written_and_read(path: str, location: Any) -> None:
    lazy = da.from_array(DATA, chunks=(2, 3))
    assert to_zarr(lazy, location, path, compressors=None) is None
    array = zarrfs.open_array(location, path)
    assert array.chunks == (2, 3)
    assert array.dtype == DATA.dtype
    assert array.compressors == ()
    result = from_zarr(location, path)
    assert result.chunks == ((2, 2, 1), (3, 3, 1))
    assert np.array_equal(result.compute(), DATA)
    assert np.array_equal(from_zarr(array, chunks=(5, 2)).compute(), DATA)
    assert from_zarr(array).name == from_zarr(array).name != from_zarr(array, chunks=4).name
    assert from_zarr(array, name="x").name == "x"


def test_the_parameters_are_those_of_dask() -> None:
    for ours, theirs in ((from_zarr, da.from_zarr), (to_zarr, da.to_zarr)):
        expected = inspect.signature(theirs).parameters.values()
        found = inspect.signature(ours).parameters.values()
        assert [(p.name, p.default) for p in found][:-1] == [(p.name, p.default) for p in expected][:-1]


def test_modes() -> None:
    lazy, store = da.from_array(DATA), dict[str, bytes]()
    with pytest.raises(LocationNotFoundError):
        to_zarr(lazy, "/nowhere/a.zarr", mode="r+")
    to_zarr(lazy, store)
    for mode in ("a", "w-"):
        with pytest.raises(NodeExistsError):
            to_zarr(lazy + 1, store, mode=mode)
    assert np.array_equal(from_zarr(store).compute(), DATA)
    to_zarr(lazy + 1, store, mode="w")
    assert np.array_equal(from_zarr(store).compute(), DATA + 1)
    with pytest.raises(NodeTypeError):
        to_zarr(lazy, store, "a", mode="r+")
    with pytest.raises(OptionError, match="mode must be one of 'r\\+', 'a', 'w', 'w-', found 'r'"):
        to_zarr(lazy, store, mode="r")
    with pytest.raises(OptionError, match="either component or name"):
        to_zarr(lazy, {}, "a", name="b")
    group = zarrfs.group()
    to_zarr(lazy, group, name="b", mode="r+")
    assert np.array_equal(from_zarr(group["b"]).compute(), DATA)


def test_invalid_arguments_write_nothing(tmp_path: Path) -> None:
    lazy = da.from_array(DATA)
    target = zarrfs.zeros((5, 8), store=tmp_path / "a", chunks=2, dtype="u2")
    with pytest.raises(DataShapeError, match=r"has the shape \(5, 7\), the target has \(5, 8\)"):
        to_zarr(lazy, target)
    with pytest.raises(DataShapeError, match="compute_chunk_sizes"):
        to_zarr(lazy[lazy > 3], target)
    with pytest.raises(OptionError, match="region is a part of an existing array"):
        to_zarr(lazy, tmp_path / "b", region=slice(0, 5))
    for region in (slice(None, None, -1), 9, [1, 2], True, (0, 0, 0)):
        with pytest.raises(OptionError, match="region"):
            to_zarr(lazy, target, region=region)
    assert target.nchunks_initialized == 0
    assert not (tmp_path / "b").exists()
    with pytest.raises(NodeTypeError):
        from_zarr(zarrfs.group())


def test_an_array_in_memory_is_refused_by_schedulers_of_other_processes() -> None:
    target = zarrfs.zeros(DATA.shape, dtype="u2")
    with (
        dask.config.set(scheduler="processes"),
        pytest.raises(UnsupportedError, match="memory of this process"),
    ):
        to_zarr(da.from_array(DATA), target)
    assert not target[...].any()
    for scheduler in ("threads", "sync"):
        with dask.config.set(scheduler=scheduler):
            to_zarr(da.from_array(DATA), target)
    assert np.array_equal(target[...], DATA)


def test_chunks_are_written_at_the_same_time() -> None:
    barrier = threading.Barrier(2)

    def wait(operation: str, key: str) -> None:
        if operation == "set" and key.startswith("c/"):
            barrier.wait(60)  # Raises BrokenBarrierError unless another chunk is being written.

    store = LatencyStore(MemoryStore(), wait)
    target = zarrfs.zeros((4, 7), store=store, dtype="u2", chunks=(2, 7))
    with dask.config.set(scheduler="threads", num_workers=2):
        to_zarr(da.from_array(DATA[:4], chunks=(2, 7)), target)
    assert np.array_equal(target[...], DATA[:4])


def test_a_delayed_write_and_the_stored_array() -> None:
    target = zarrfs.zeros(DATA.shape, dtype="u2", chunks=(2, 3))
    delayed = to_zarr(da.from_array(DATA), target, compute=False)
    assert not target[...].any()
    delayed.compute()
    assert np.array_equal(target[...], DATA)
    stored = to_zarr(da.from_array(DATA + 1), target, return_stored=True)
    assert np.array_equal(stored.compute(), DATA + 1)


@pytest.mark.parametrize("shape", [(), (0, 3), (1,)])
def test_arrays_without_elements_or_dimensions(shape: tuple[int, ...]) -> None:
    store: dict[str, bytes] = {}
    to_zarr(da.ones(shape, dtype="i4"), store)
    assert np.array_equal(from_zarr(store).compute(), np.ones(shape))
    assert zarrfs.open_array(store).chunks == tuple(max(1, length) for length in shape)


GRIDS: list[dict[str, Any]] = [
    {"chunks": (4, 3)},
    {"chunks": (2, 1), "shards": (6, 4)},
    {"chunks": ((1, 7, 5), (2, 2, 6))},
]


@given(
    options=st.sampled_from(GRIDS),
    start=st.tuples(st.integers(0, 12), st.integers(0, 9)),
    length=st.tuples(st.integers(1, 13), st.integers(1, 10)),
    step=st.tuples(st.integers(1, 3), st.integers(1, 3)),
    chunks=st.tuples(st.integers(1, 13), st.integers(1, 10)),
)
def test_each_stored_chunk_is_written_by_one_task(
    options: dict[str, Any], start: Any, length: Any, step: Any, chunks: Any
) -> None:
    region = tuple(
        slice(*values) for values in zip(start, map(sum, zip(start, length, strict=True)), step, strict=True)
    )
    expected = np.zeros((13, 10), "i4")
    values = np.arange(1, expected[region].size + 1).reshape(expected[region].shape)
    expected[region] = values
    store = CountingStore(MemoryStore())
    target = zarrfs.create_array(store, shape=(13, 10), dtype="i4", compressors=None, **options)
    writes = store.calls["set"]
    to_zarr(da.from_array(values, chunks=chunks), target, region=region)
    assert np.array_equal(target[...], expected)
    assert store.calls["set"] - writes == target.nshards_initialized


def test_an_integer_in_a_region_selects_one_position() -> None:
    target = zarrfs.zeros((3, *DATA.shape), dtype="u2", chunks=(2, 2, 3))
    to_zarr(da.from_array(DATA, chunks=1), target, region=(-1,))
    assert np.array_equal(target[2], DATA)
    assert not target[:2].any()
