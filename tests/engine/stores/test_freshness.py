"""What is kept in memory is never shown stale: two handles to one place, one writes, the other reads."""

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
from zarrfs.engine.stores.local import LocalStore
from zarrfs.engine.stores.memory import MemoryStore
from zarrfs.engine.stores.wrappers.caching import LRUStore
from zarrfs.engine.stores.wrappers.wrapper import CountingStore, WrapperStore

PLACES: dict[str, Callable[[Path], Any]] = {
    "directory": lambda path: path / "a.zarr",
    "sqlite": lambda path: f"sqlite://{path}/a.sqldb",
    "lmdb": lambda path: f"lmdb://{path}/a.lmdb",
    "redis": lambda path: servers()["redis"],
    "fsspec, file": lambda path: f"local://{path}/a.zarr",
    "fsspec, s3": lambda path: "s3://freshness/a.zarr",
}

SHAPES = {"chunks": {"chunks": (8, 8)}, "shards": {"chunks": (2, 2), "shards": (8, 8)}}

_servers: dict[str, str] = {}
_ended = ExitStack()


def servers() -> dict[str, str]:
    if not _servers:
        with lasting():
            _servers["redis"] = _ended.enter_context(redis_server())
            _servers["s3"] = _ended.enter_context(s3_server())
    return _servers


@pytest.fixture(scope="module", autouse=True)
def ended() -> Iterator[None]:
    yield
    _ended.close()
    _servers.clear()


def options(place: Any) -> dict[str, Any]:
    if not str(place).startswith("s3:"):
        return {}
    import s3fs

    found = {"endpoint_url": servers()["s3"], "key": "x", "secret": "x"}
    s3fs.S3FileSystem(**found).makedirs("freshness", exist_ok=True)
    return {"storage_options": found}


@pytest.mark.parametrize("form", SHAPES)
@pytest.mark.parametrize("name", PLACES)
def test_what_another_handle_writes_is_read(name: str, form: str, tmp_path: Path) -> None:
    place = PLACES[name](tmp_path)
    given = options(place)
    writer = zarrfs.create_array(
        place, "x", shape=(16, 16), dtype="i4", overwrite=True, **SHAPES[form], **given
    )
    reader = zarrfs.open_array(place, "x", mode="r+", **given)
    with writer.store, reader.store:
        for number in range(1, 4):
            writer[...] = number
            assert (reader[...] == number).all()
            assert (reader[3:5, 2] == number).all()
            assert reader[0, 0] == number


def test_an_environment_of_lmdb_is_shared_and_stays_open_for_the_last(tmp_path: Path) -> None:
    place = f"lmdb://{tmp_path}/a.lmdb"
    first = zarrfs.create_array(place, data=np.arange(4))
    second = zarrfs.open_array(place)
    first.store.close()
    assert second[...].tolist() == [0, 1, 2, 3]
    second.store.close()
    with pytest.raises(zarrfs.StoreError, match="closed"):
        second[...]


class ReplacingStore(WrapperStore):
    """Another program replaces a shard between two requests for parts of it."""

    def __init__(self, store: Store, key: str, values: list[bytes]) -> None:
        super().__init__(store)
        self.key, self.values = key, values

    def get_ranges(self, key: str, ranges: Any) -> Any:
        found = super().get_ranges(key, ranges)
        if key == self.key and self.values:
            self.store.set(key, self.values.pop(0))
        return found


@pytest.mark.parametrize("often", [1, 3, 40])
@pytest.mark.parametrize("size", [0, None])
def test_a_shard_that_is_replaced_while_it_is_read_is_old_or_new(often: int, size: int | None) -> None:
    """Its inner chunks lie elsewhere in the new one, so that an index of the old one finds other chunks there."""
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
    store = ReplacingStore(inner, "c/0", [new, old] * often)
    reader = zarrfs.open_array(store, cache_size=size)
    assert reader[4:6].tolist() in ([3, 3], [13, 13])


def test_a_store_that_keeps_values_does_not_label_old_ones_as_new() -> None:
    inner = MemoryStore()
    writer = zarrfs.create_array(inner, data=np.zeros(4, "i4"), write_empty_chunks=True)
    kept = LRUStore(inner, 1 << 20)
    reader = zarrfs.open_array(kept)
    assert reader[...].tolist() == [0, 0, 0, 0]
    writer[...] = 1
    assert reader[...].tolist() == [0, 0, 0, 0]
    kept.forget()
    assert reader[...].tolist() == [1, 1, 1, 1]


# -- by choice -------------------------------------------------------------------------------------------------


def counted(tmp_path: Path, **access: Any) -> tuple[zarrfs.Array, zarrfs.Array, CountingStore]:
    """Return an array to write to, the same one opened to read, and a store that counts what the latter asks."""
    writer = zarrfs.create_array(tmp_path / "a.zarr", data=np.zeros(4, "i4"), write_empty_chunks=True)
    store = CountingStore(LocalStore(tmp_path / "a.zarr"))
    reader = zarrfs.open_array(store, access=zarrfs.Access(**access))
    assert reader[...].tolist() == [0, 0, 0, 0]
    store.reset()
    return writer, reader, store


@pytest.mark.parametrize("recheck", [None, True])
def test_by_default_data_are_compared_with_the_store(recheck: bool | None, tmp_path: Path) -> None:
    writer, reader, store = counted(tmp_path, recheck_data=recheck)
    assert reader[...].tolist() == [0, 0, 0, 0]
    assert store.bytes_read == 0
    writer[...] = 1
    assert reader[...].tolist() == [1, 1, 1, 1]


@pytest.mark.parametrize("recheck", [False, "open"])
def test_data_may_be_taken_for_settled(recheck: Any, tmp_path: Path) -> None:
    writer, reader, store = counted(tmp_path, recheck_data=recheck)
    writer[...] = 1
    assert reader[...].tolist() == [0, 0, 0, 0]
    assert not store.calls
    reopened = zarrfs.open_array(tmp_path / "a.zarr", access=zarrfs.Access(recheck_data=recheck))
    assert reopened[...].tolist() == [1, 1, 1, 1]


def test_what_is_older_than_a_moment_is_read_again(tmp_path: Path) -> None:
    moment = datetime.now(UTC) + timedelta(days=1)
    writer, reader, _ = counted(tmp_path, recheck_data=moment)
    writer[...] = 1
    assert reader[...].tolist() == [1, 1, 1, 1]
    for past in (datetime(2020, 1, 1, tzinfo=UTC), 0, 1.5):
        writer, reader, _ = counted(tmp_path.joinpath(str(past)), recheck_data=past)
        writer[...] = 1
        assert reader[...].tolist() == [0, 0, 0, 0]


def test_what_is_older_than_an_age_is_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [1000.0]
    monkeypatch.setattr("zarrfs.engine.io.access.time.monotonic", lambda: clock[0])
    writer, reader, _ = counted(tmp_path, recheck_data=timedelta(seconds=10))
    writer[...] = 1
    assert reader[...].tolist() == [0, 0, 0, 0]
    clock[0] += 10
    assert reader[...].tolist() == [1, 1, 1, 1]


@pytest.mark.parametrize(
    "wrong", [{"recheck_data": "sometimes"}, {"recheck_metadata": timedelta(0)}, {"concurrency": 0}]
)
def test_nonsense_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        zarrfs.Access(**wrong)


# -- metadata --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("zarr_format", [2, 3, "n5", "draft2019"])
def test_a_changed_shape_is_seen_where_that_is_asked_for(zarr_format: Any, tmp_path: Path) -> None:
    writer = zarrfs.create_array(tmp_path / "a", data=np.arange(4), chunks=2, zarr_format=zarr_format)
    settled = zarrfs.open_array(tmp_path / "a")
    watching = zarrfs.open_array(tmp_path / "a", mode="r+", access=zarrfs.Access(recheck_metadata=True))
    writer.append(np.array([7, 8]))
    writer.attrs["unit"] = "nm"
    assert settled[...].tolist() == [0, 1, 2, 3]
    assert watching[...].tolist() == [0, 1, 2, 3, 7, 8]
    assert watching.shape == (6,)
    assert watching.attrs["unit"] == "nm"
    watching.append(np.array([9]))
    settled.refresh()
    assert settled[...].tolist() == [0, 1, 2, 3, 7, 8, 9]


def test_changed_attributes_leave_what_is_kept_of_chunks(tmp_path: Path) -> None:
    writer, reader, store = counted(tmp_path, recheck_metadata=True)
    writer.attrs["a"] = 1
    assert reader[...].tolist() == [0, 0, 0, 0]
    assert reader.attrs["a"] == 1
    assert "c/0" not in store.keys


def test_another_array_in_the_place_is_an_error_that_says_what_has_changed(tmp_path: Path) -> None:
    def opened() -> zarrfs.Array:
        zarrfs.create_array(tmp_path / "a", data=np.arange(4), overwrite=True)
        return zarrfs.open_array(tmp_path / "a", access=zarrfs.Access(recheck_metadata=True))

    for other, said in (
        ({"dtype": "u1", "shape": 4}, "data type has changed"),
        ({"dtype": "i8", "shape": (4, 4)}, "number of dimensions has changed from 1 to 2"),
        ({"dtype": "i8", "shape": 4, "chunks": 2}, "chunk shape has changed"),
        ({"dtype": "i8", "shape": 4, "compressors": None}, "codecs has changed"),
        ({"dtype": "i8", "shape": 4, "fill_value": 1}, "fill value has changed"),
    ):
        array = opened()
        zarrfs.create_array(tmp_path / "a", overwrite=True, **other)  # type: ignore[arg-type]
        with pytest.raises(zarrfs.MetadataError, match=f"{said}.*open it again"):
            array[...]
    array = opened()
    zarrfs.create_group(tmp_path / "a", overwrite=True)
    with pytest.raises(zarrfs.MetadataError, match="has changed from an array to a group"):
        array[...]
    array = opened()
    (tmp_path / "a" / "zarr.json").unlink()
    with pytest.raises(zarrfs.NodeNotFoundError, match="were deleted"):
        array[...]


# -- absence ---------------------------------------------------------------------------------------------------


def test_a_missing_chunk_may_be_an_error() -> None:
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
def test_a_missing_inner_chunk_may_be_an_error(shards: tuple[int, int]) -> None:
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


def test_a_nested_shard_says_which_part_is_missing() -> None:
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


def test_access_is_handed_down_and_survives_pickling(tmp_path: Path) -> None:
    import pickle

    strict = zarrfs.Access(fill_missing=False, write_empty_chunks=True, concurrency=1)
    group = zarrfs.create_group(tmp_path / "a", access=strict)
    made = group.create_array("x", shape=2, dtype="i4")
    for node in (
        made,
        group["x"],
        pickle.loads(pickle.dumps(made)),
        zarrfs.open(tmp_path / "a", access=strict)["x"],
    ):
        assert node.access == strict
        assert node.write_empty_chunks


def test_concurrency_bounds_the_threads_of_a_read(tmp_path: Path) -> None:
    import threading

    seen: set[str] = set()

    class Watching(LocalStore):
        def get(self, key: str) -> Any:
            seen.add(threading.current_thread().name)
            return super().get(key)

        def get_ranges(self, key: str, ranges: Any) -> Any:
            seen.add(threading.current_thread().name)
            return super().get_ranges(key, ranges)

    data = np.random.default_rng(0).integers(0, 99, (256, 256), "i4")
    store = Watching(tmp_path / "a")
    store.concurrency = 16
    one = zarrfs.create_array(store, data=data, chunks=32, access=zarrfs.Access(concurrency=1))
    assert (one[...] == data).all()
    assert seen <= {threading.current_thread().name}
