"""Tests of cache revalidation: one handle writes, another one reads and must not return stale data."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zarrfs
from tests.engine.stores.servers import redis_server, s3_server
from tests.processes import lasting
from zarrfs.engine.stores.base import Store
from zarrfs.engine.stores.local.store import LocalStore
from zarrfs.engine.stores.memory import MemoryStore
from zarrfs.engine.stores.wrappers.caching import LRUStore
from zarrfs.engine.stores.wrappers.wrapper import WrapperStore
from zarrfs.testing import CountingStore

LOCATIONS: dict[str, Callable[[Path], Any]] = {
    "directory": lambda path: path / "a.zarr",
    "sqlite": lambda path: f"sqlite://{path}/a.sqldb",
    "lmdb": lambda path: f"lmdb://{path}/a.lmdb",
    "redis": lambda path: server_url("redis"),
    "fsspec, file": lambda path: f"local://{path}/a.zarr",
    "fsspec, s3": lambda path: "s3://freshness/a.zarr",
}

CHUNKINGS = {"chunks": {"chunks": (8, 8)}, "shards": {"chunks": (2, 2), "shards": (8, 8)}}

SERVERS = {"redis": redis_server, "s3": s3_server}

_server_urls: dict[str, str] = {}
_running_servers = ExitStack()


def server_url(name: str) -> str:
    if name not in _server_urls:
        with lasting():
            _server_urls[name] = _running_servers.enter_context(SERVERS[name]())
    return _server_urls[name]


@pytest.fixture(scope="module", autouse=True)
def stop_servers() -> Iterator[None]:
    yield
    _running_servers.close()
    _server_urls.clear()


def options(location: Any) -> dict[str, Any]:
    if not str(location).startswith("s3:"):
        return {}
    import s3fs

    storage_options = {"endpoint_url": server_url("s3"), "key": "x", "secret": "x"}
    s3fs.S3FileSystem(**storage_options).makedirs("freshness", exist_ok=True)
    return {"storage_options": storage_options}


@pytest.mark.parametrize("chunking", CHUNKINGS)
@pytest.mark.parametrize("name", LOCATIONS)
def test_changes_by_another_handle_are_read(name: str, chunking: str, tmp_path: Path) -> None:
    location = LOCATIONS[name](tmp_path)
    storage = options(location)
    writer = zarrfs.create_array(
        location, "x", shape=(16, 16), dtype="i4", overwrite=True, **CHUNKINGS[chunking], **storage
    )
    reader = zarrfs.open_array(location, "x", mode="r+", **storage)
    with writer.store, reader.store:
        for number in range(1, 4):
            writer[...] = number
            assert (reader[...] == number).all()
            assert (reader[3:5, 2] == number).all()
            assert reader[0, 0] == number


def test_an_lmdb_environment_is_open_until_its_last_store_is_closed(tmp_path: Path) -> None:
    location = f"lmdb://{tmp_path}/a.lmdb"
    first = zarrfs.create_array(location, data=np.arange(4))
    second = zarrfs.open_array(location)
    first.store.close()
    assert second[...].tolist() == [0, 1, 2, 3]
    second.store.close()
    with pytest.raises(zarrfs.StoreError, match="closed"):
        second[...]


class ReplacingStore(WrapperStore):
    """Replaces a value after each range request for it, as another writer could."""

    def __init__(self, store: Store, key: str, values: list[bytes]) -> None:
        super().__init__(store)
        self.key, self.values = key, values

    def get_ranges(self, key: str, ranges: Any) -> Any:
        buffers = super().get_ranges(key, ranges)
        if key == self.key and self.values:
            self.store.set(key, self.values.pop(0))
        return buffers


@pytest.mark.parametrize("replacements", [1, 3, 40])
@pytest.mark.parametrize("size", [0, None])
def test_a_read_of_a_replaced_shard_returns_one_version(replacements: int, size: int | None) -> None:
    """The inner chunks have other offsets in the new shard, so the index of the old one would select other chunks."""
    inner = MemoryStore()
    array = zarrfs.create_array(
        inner, shape=(8,), chunks=2, shards=8, dtype="i4", compressors=None, fill_value=0
    )
    array[...] = [1, 1, 2, 2, 3, 3, 4, 4]
    old = bytes(inner.get("c/0") or b"")
    array[...] = [0, 0, 12, 12, 13, 13, 14, 14]
    new = bytes(inner.get("c/0") or b"")
    inner.set("c/0", old)
    assert len(old) != len(new)
    store = ReplacingStore(inner, "c/0", [new, old] * replacements)
    reader = zarrfs.open_array(store, cache_size=size)
    assert reader[4:6].tolist() in ([3, 3], [13, 13])


def test_a_cached_value_keeps_its_old_stamp() -> None:
    inner = MemoryStore()
    writer = zarrfs.create_array(inner, data=np.zeros(4, "i4"), write_empty_chunks=True)
    cached = LRUStore(inner, 1 << 20)
    reader = zarrfs.open_array(cached)
    assert reader[...].tolist() == [0, 0, 0, 0]
    writer[...] = 1
    assert reader[...].tolist() == [0, 0, 0, 0]
    cached.invalidate()
    assert reader[...].tolist() == [1, 1, 1, 1]


# -- revalidation options --------------------------------------------------------------------------------------


def array_with_counting_reader(
    tmp_path: Path, **access: Any
) -> tuple[zarrfs.Array, zarrfs.Array, CountingStore]:
    """Return a writable array, the same array opened for reading, and the counting store of the latter."""
    writer = zarrfs.create_array(tmp_path / "a.zarr", data=np.zeros(4, "i4"), write_empty_chunks=True)
    store = CountingStore(LocalStore(tmp_path / "a.zarr"))
    reader = zarrfs.open_array(store, access=zarrfs.Access(**access))
    assert reader[...].tolist() == [0, 0, 0, 0]
    store.reset()
    return writer, reader, store


@pytest.mark.parametrize("recheck", [None, True])
def test_cached_data_are_revalidated_by_default(recheck: bool | None, tmp_path: Path) -> None:
    writer, reader, store = array_with_counting_reader(tmp_path, recheck_data=recheck)
    assert reader[...].tolist() == [0, 0, 0, 0]
    assert store.bytes_read == 0
    writer[...] = 1
    assert reader[...].tolist() == [1, 1, 1, 1]


@pytest.mark.parametrize("recheck", [False, "open"])
def test_revalidation_can_be_disabled(recheck: Any, tmp_path: Path) -> None:
    writer, reader, store = array_with_counting_reader(tmp_path, recheck_data=recheck)
    writer[...] = 1
    assert reader[...].tolist() == [0, 0, 0, 0]
    assert not store.calls
    reopened = zarrfs.open_array(tmp_path / "a.zarr", access=zarrfs.Access(recheck_data=recheck))
    assert reopened[...].tolist() == [1, 1, 1, 1]


def test_data_cached_before_a_point_in_time_are_revalidated(tmp_path: Path) -> None:
    point_in_time = datetime.now(UTC) + timedelta(days=1)
    writer, reader, _ = array_with_counting_reader(tmp_path, recheck_data=point_in_time)
    writer[...] = 1
    assert reader[...].tolist() == [1, 1, 1, 1]
    for past in (datetime(2020, 1, 1, tzinfo=UTC), 0, 1.5):
        writer, reader, _ = array_with_counting_reader(tmp_path.joinpath(str(past)), recheck_data=past)
        writer[...] = 1
        assert reader[...].tolist() == [0, 0, 0, 0]


def test_data_older_than_an_age_are_revalidated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [1000.0]
    monkeypatch.setattr("zarrfs.engine.access.time.monotonic", lambda: clock[0])
    writer, reader, _ = array_with_counting_reader(tmp_path, recheck_data=timedelta(seconds=10))
    writer[...] = 1
    assert reader[...].tolist() == [0, 0, 0, 0]
    clock[0] += 10
    assert reader[...].tolist() == [1, 1, 1, 1]


@pytest.mark.parametrize(
    "invalid", [{"recheck_data": "sometimes"}, {"recheck_metadata": timedelta(0)}, {"concurrency": 0}]
)
def test_invalid_options_are_refused(invalid: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(invalid))):
        zarrfs.Access(**invalid)


# -- metadata --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("zarr_format", [2, 3, "n5", "draft2019"])
def test_a_changed_shape_is_visible_with_recheck_metadata_or_refresh(
    zarr_format: Any, tmp_path: Path
) -> None:
    writer = zarrfs.create_array(tmp_path / "a", data=np.arange(4), chunks=2, zarr_format=zarr_format)
    unchecked = zarrfs.open_array(tmp_path / "a")
    rechecked = zarrfs.open_array(tmp_path / "a", mode="r+", access=zarrfs.Access(recheck_metadata=True))
    writer.append(np.array([7, 8]))
    writer.attrs["unit"] = "nm"
    assert unchecked[...].tolist() == [0, 1, 2, 3]
    assert rechecked[...].tolist() == [0, 1, 2, 3, 7, 8]
    assert rechecked.shape == (6,)
    assert rechecked.attrs["unit"] == "nm"
    rechecked.append(np.array([9]))
    unchecked.refresh()
    assert unchecked[...].tolist() == [0, 1, 2, 3, 7, 8, 9]


def test_changed_attributes_do_not_invalidate_cached_chunks(tmp_path: Path) -> None:
    writer, reader, store = array_with_counting_reader(tmp_path, recheck_metadata=True)
    writer.attrs["a"] = 1
    assert reader[...].tolist() == [0, 0, 0, 0]
    assert reader.attrs["a"] == 1
    assert "c/0" not in store.keys


def test_a_replaced_node_is_an_error_that_names_the_difference(tmp_path: Path) -> None:
    def open_new_array() -> zarrfs.Array:
        zarrfs.create_array(tmp_path / "a", data=np.arange(4), overwrite=True)
        return zarrfs.open_array(tmp_path / "a", access=zarrfs.Access(recheck_metadata=True))

    for other, message in (
        ({"dtype": "u1", "shape": 4}, "data type has changed"),
        ({"dtype": "i8", "shape": (4, 4)}, "number of dimensions has changed from 1 to 2"),
        ({"dtype": "i8", "shape": 4, "chunks": 2}, "chunk shape has changed"),
        ({"dtype": "i8", "shape": 4, "compressors": None}, "codecs has changed"),
        ({"dtype": "i8", "shape": 4, "fill_value": 1}, "fill value has changed"),
    ):
        array = open_new_array()
        zarrfs.create_array(tmp_path / "a", overwrite=True, **other)  # type: ignore[arg-type]
        with pytest.raises(zarrfs.MetadataError, match=f"{message}.*open it again"):
            array[...]
    array = open_new_array()
    zarrfs.create_group(tmp_path / "a", overwrite=True)
    with pytest.raises(zarrfs.MetadataError, match="has changed from an array to a group"):
        array[...]
    array = open_new_array()
    (tmp_path / "a" / "zarr.json").unlink()
    with pytest.raises(zarrfs.NodeNotFoundError, match="were deleted"):
        array[...]


# -- missing chunks --------------------------------------------------------------------------------------------


def test_a_missing_chunk_is_an_error_without_fill_missing() -> None:
    store = MemoryStore()
    strict = zarrfs.Access(fill_missing=False)
    array = zarrfs.create_array(store, shape=(4, 4), chunks=2, dtype="i4", access=strict)
    array[:2, :2] = 1
    assert array[:2, :2].sum() == 4
    with pytest.raises(zarrfs.MissingChunkError, match=r"chunk \(0, 1\) \(key 'c/0/1'\) is missing"):
        array[:2, 1:3]
    array[3, 3] = 5  # the rest of the chunk is filled
    assert array[2:, 2:].tolist() == [[0, 0], [0, 5]]
    lenient = zarrfs.open_array(store)
    assert lenient[...].sum() == 9


@pytest.mark.parametrize("shards", [(4, 4), (8, 8)])
def test_a_missing_inner_chunk_is_an_error_without_fill_missing(shards: tuple[int, int]) -> None:
    strict = zarrfs.Access(fill_missing=False)
    array = zarrfs.create_array(
        MemoryStore(), shape=(8, 8), chunks=2, shards=shards, dtype="i4", access=strict, order="F"
    )
    array[:2, :2] = 1
    assert array[:2, :2].sum() == 4
    with pytest.raises(zarrfs.MissingChunkError, match=r"inner chunk .* of chunk \(0, 0\)"):
        array[1:3, :2]
    array.write_empty_chunks = True
    array[2:4, :2] = 0
    assert array[1:3, :2].tolist() == [[1, 1], [0, 0]]


def test_a_missing_nested_inner_chunk_is_named() -> None:
    index = [{"name": "bytes", "configuration": {"endian": "little"}}]

    def sharding(shape: int, codecs: list[Any]) -> dict[str, Any]:
        inner = {"chunk_shape": [shape], "codecs": codecs, "index_codecs": index, "index_location": "end"}
        return {"name": "sharding_indexed", "configuration": inner}

    codecs = [sharding(4, [sharding(2, [{"name": "bytes", "configuration": {"endian": "little"}}])])]
    strict = zarrfs.Access(fill_missing=False)
    array = zarrfs.create_array(MemoryStore(), shape=8, chunks=8, codecs=codecs, dtype="i4", access=strict)
    array[4:6] = 1
    assert array[4:6].tolist() == [1, 1]
    with pytest.raises(zarrfs.MissingChunkError, match=r"inner chunk \(1, 1\) of chunk \(0,\)"):
        array[4:8]


def test_access_is_inherited_and_pickled(tmp_path: Path) -> None:
    import pickle

    strict = zarrfs.Access(fill_missing=False, write_empty_chunks=True, concurrency=1)
    group = zarrfs.create_group(tmp_path / "a", access=strict)
    created = group.create_array("x", shape=2, dtype="i4")
    for node in (
        created,
        group["x"],
        pickle.loads(pickle.dumps(created)),
        zarrfs.open(tmp_path / "a", access=strict)["x"],
    ):
        assert node.access == strict
        assert node.write_empty_chunks


def test_concurrency_limits_the_threads_of_a_read(tmp_path: Path) -> None:
    import threading

    thread_names: set[str] = set()

    class ThreadRecordingStore(LocalStore):
        def get(self, key: str) -> Any:
            thread_names.add(threading.current_thread().name)
            return super().get(key)

        def get_ranges(self, key: str, ranges: Any) -> Any:
            thread_names.add(threading.current_thread().name)
            return super().get_ranges(key, ranges)

    data = np.random.default_rng(0).integers(0, 99, (256, 256), "i4")
    store = ThreadRecordingStore(tmp_path / "a")
    store.concurrency = 16
    store.is_remote = True
    one = zarrfs.create_array(store, data=data, chunks=32, access=zarrfs.Access(concurrency=1))
    assert (one[...] == data).all()
    assert thread_names <= {threading.current_thread().name}
