"""Costs of reads: requests to the store, round trips with latency, and checks of changed metadata."""

from __future__ import annotations

import threading
from collections.abc import Hashable, Iterator, MutableMapping
from typing import Any

import numpy as np
import pytest

import zarrfs
from zarrfs.engine.access import ReadWriteOptions
from zarrfs.engine.cache import ChunkCache
from zarrfs.engine.group.group import make_node
from zarrfs.engine.stores.base import IMMUTABLE, StoredValue
from zarrfs.engine.stores.local.store import LocalStore
from zarrfs.engine.stores.memory import MemoryStore
from zarrfs.testing import CountingStore

DATA = np.arange(64 * 64, dtype="u4").reshape(64, 64)

CHAINS: dict[str, dict[str, Any]] = {
    "uncompressed": {"compressors": None},
    "gzip": {"compressors": "gzip"},
    "blosc": {},
    "sharded": {"shards": (64, 64), "chunks": (8, 8)},
    "transposed": {"order": "F"},
    "v2": {"zarr_format": 2},
}


class Counted(MutableMapping[str, bytes]):
    """A mapping that counts lookups, which are slow for a mapping over a network."""

    def __init__(self) -> None:
        self.values_: dict[str, bytes] = {}
        self.gets: list[str] = []

    def __getitem__(self, key: str) -> bytes:
        self.gets.append(key)
        return self.values_[key]

    def __setitem__(self, key: str, value: bytes) -> None:
        self.values_[key] = value

    def __delitem__(self, key: str) -> None:
        del self.values_[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self.values_)

    def __len__(self) -> int:
        return len(self.values_)


@pytest.mark.parametrize("cache_size", [None, 0])
@pytest.mark.parametrize("chain", CHAINS)
def test_each_chunk_is_looked_up_once_in_a_mapping(chain: str, cache_size: int | None) -> None:
    mapping = Counted()
    options = {"chunks": (32, 32), **CHAINS[chain]}
    zarrfs.create_array(mapping, data=DATA, **options)
    array = zarrfs.open_array(mapping, cache_size=cache_size)
    chunks = 1 if chain == "sharded" else 4
    for selection, touched in [
        ((slice(3, 5), slice(3, 5)), 1),
        (slice(None), chunks),
        ((7, 9), 1),
        (..., chunks),
    ]:
        mapping.gets.clear()
        np.testing.assert_array_equal(array[selection], DATA[selection])
        assert len(mapping.gets) == touched, selection
        assert len(set(mapping.gets)) == touched


@pytest.mark.parametrize("chain", CHAINS)
def test_external_changes_of_a_mapping_are_read(chain: str) -> None:
    mapping = Counted()
    options = {"chunks": (32, 32), **CHAINS[chain]}
    array = zarrfs.create_array(mapping, data=DATA, **options)
    np.testing.assert_array_equal(array[:9, :9], DATA[:9, :9])
    other: dict[str, bytes] = {}
    zarrfs.create_array(other, data=DATA + 1, **options)
    mapping.values_.update(other)
    np.testing.assert_array_equal(array[:9, :9], DATA[:9, :9] + 1)


def counting(
    array: zarrfs.Array, capacity: int, access: ReadWriteOptions | None = None
) -> tuple[zarrfs.Array, CountingStore]:
    store = CountingStore(array.store)
    node = make_node(store, array.path, array.spec, ChunkCache(capacity), True, access)
    assert isinstance(node, zarrfs.Array)
    return node, store


@pytest.mark.parametrize("chain", CHAINS)
def test_a_cached_chunk_is_not_read_again(chain: str, tmp_path: Any) -> None:
    options = {"chunks": (32, 32), **CHAINS[chain]}
    made = zarrfs.create_array(LocalStore(tmp_path), data=DATA, **options)
    array, store = counting(made, 1 << 20)
    for _ in range(2):
        np.testing.assert_array_equal(array[:32, :32], DATA[:32, :32])
    assert store.bytes_read > 0
    held = array._cache.nbytes
    # The inner chunks of a shard are cached individually, together with its index.
    assert 32 * 32 * 4 <= held <= 32 * 32 * 4 * (3 if chain == "sharded" else 1.1)
    store.reset()
    np.testing.assert_array_equal(array[:32, :32], DATA[:32, :32])
    assert array[5, 6] == DATA[5, 6]
    assert store.bytes_read == 0
    assert array._cache.nbytes == held
    # Written data are read again and replace the cached data.
    with_writer = zarrfs.open_array(LocalStore(tmp_path), mode="r+")
    with_writer[0, 0] = 99
    store.reset()
    assert array[0, 0] == 99
    assert store.bytes_read > 0


def test_without_a_cache_each_read_reads_the_bytes_of_its_chunks(tmp_path: Any) -> None:
    made = zarrfs.create_array(LocalStore(tmp_path), data=DATA, chunks=(32, 32), compressors=None)
    array, store = counting(made, 0)
    for _ in range(3):
        store.reset()
        np.testing.assert_array_equal(array[:32, :32], DATA[:32, :32])
        assert store.bytes_read == 32 * 32 * 4
    assert array._cache.nbytes == 0


def test_cached_data_without_revalidation_cause_no_requests(tmp_path: Any) -> None:
    made = zarrfs.create_array(LocalStore(tmp_path), data=DATA, chunks=(32, 32))
    array, store = counting(made, 1 << 20, ReadWriteOptions(recheck_data=False))
    for _ in range(2):
        np.testing.assert_array_equal(array[:32, :32], DATA[:32, :32])
    store.reset()
    made[0, 0] = 99
    assert array[0, 0] == 0
    assert store.bytes_read == 0
    assert not {"get", "get_ranges", "get_into", "size", "version"} & set(store.calls)


@pytest.mark.parametrize("recheck", [True, "open", False])
def test_metadata_are_rechecked_by_every_property(recheck: Any) -> None:
    store = MemoryStore()
    writer = zarrfs.create_array(
        store, data=np.zeros((4, 6), "u2"), chunks=(2, 3), dimension_names=["a", "b"]
    )
    seen: dict[str, Any] = {
        "shape": lambda z: z.shape,
        "size": lambda z: z.size,
        "nbytes": lambda z: z.nbytes,
        "len": len,
        "cdata_shape": lambda z: z.cdata_shape,
        "nchunks": lambda z: z.nchunks,
        "nchunks_initialized": lambda z: z.nchunks_initialized,
        "attrs": lambda z: dict(z.attrs),
        "metadata": lambda z: z.metadata["shape"],
        "info": lambda z: z.info["shape"],
        "read": lambda z: z[...].shape,
        "iteration": lambda z: len(list(z)),
        "view": lambda z: z.astype("f4").shape,
        "cast": lambda z: len(z.astype("f4")),
    }
    readers = {
        name: zarrfs.open_array(store, access=ReadWriteOptions(recheck_metadata=recheck)) for name in seen
    }
    before = {name: read(readers[name]) for name, read in seen.items()}
    writer.resize(8, 9)
    writer[...] = 1
    writer.attrs["new"] = 1
    after = {name: read(zarrfs.open_array(store)) for name, read in seen.items()}
    found = {name: read(readers[name]) for name, read in seen.items()}
    data = {"nchunks_initialized"}  # lists the chunks of the known grid
    expected = after if recheck is True else before
    assert {n: v for n, v in found.items() if n not in data} == {
        n: v for n, v in expected.items() if n not in data
    }
    assert all(before[name] != after[name] for name in seen)


def test_rechecking_metadata_of_a_deleted_array_raises_except_in_repr() -> None:
    store = MemoryStore()
    zarrfs.create_array(store, "a", shape=(4, 6))
    array = zarrfs.open_array(store, "a", access=ReadWriteOptions(recheck_metadata=True))
    store.values.clear()
    with pytest.raises(zarrfs.NodeNotFoundError, match="were deleted"):
        array.shape
    assert "4 x 6" in repr(array)


class WaitingStore(MemoryStore):
    """A remote store that is assumed not to change. It answers a request when as many requests are waiting as
    the barrier expects.
    """

    concurrency = 32
    is_remote = True
    in_process = False

    def __init__(self) -> None:
        super().__init__()
        self.barrier: threading.Barrier | None = None
        self.requests: list[tuple[str, str]] = []

    def request(self, kind: str, key: str) -> None:
        if self.barrier is not None:
            self.requests.append((kind, key))
            self.barrier.wait(timeout=60)

    def get(self, key: str) -> Any:
        self.request("get", key)
        return super().get(key)

    def get_ranges(self, key: str, ranges: Any) -> Any:
        self.request("get_ranges", key)
        data = super().get(key)
        return None if data is None else [data[slice(*r.resolve(len(data)))] for r in ranges]

    def size(self, key: str) -> int | None:
        self.request("size", key)
        return super().size(key)

    def stamp(self, key: str) -> Hashable:
        return IMMUTABLE

    def version(self, key: str) -> Hashable:
        self.request("version", key)
        return super().version(key)

    def open_value(self, key: str, max_nbytes: int | None = None) -> StoredValue:
        # The value of a MemoryStore does not call the methods above.
        return StoredValue(self, key, max_nbytes)


def requested(store: WaitingStore, kind: str) -> int:
    return sum(k == kind for k, _ in store.requests)


@pytest.mark.parametrize("cache_size", [0, 1 << 30])
def test_a_plane_of_blosc_chunks_with_latency_takes_one_request_for_each(cache_size: int) -> None:
    """Parts of a Blosc buffer would take three requests, one after the other."""
    store = WaitingStore()
    data = np.random.default_rng(2).integers(0, 60000, (64, 64, 512), "u2")
    zarrfs.create_array(store, data=data, chunks=(64, 64, 128), compressors=zarrfs.codecs.BloscCodec())
    array = zarrfs.open_array(store, mode="r", cache_size=cache_size)
    store.barrier = threading.Barrier(4)
    assert np.array_equal(array[5], data[5])
    assert len(store.requests) == 4


@pytest.mark.parametrize("cache_size", [0, 1 << 30])
def test_64_chunks_with_latency_take_two_round_trips(cache_size: int) -> None:
    store = WaitingStore()
    data = np.arange(32**3, dtype="u2").reshape(32, 32, 32)
    zarrfs.create_array(store, "a", data=data, chunks=(8, 8, 8), compressors="zstd")
    array = zarrfs.open_array(store, "a", cache_size=cache_size)
    # Fewer concurrent requests than this would wait for ever, and the barrier raises an error.
    store.barrier = threading.Barrier(32)
    assert np.array_equal(array[...], data)
    assert len(store.requests) == len(set(store.requests)) == requested(store, "get") == 64
    store.barrier, store.requests = threading.Barrier(16), []
    assert np.array_equal(array[9], data[9])
    assert len(store.requests) == (16 if cache_size == 0 else 0)


@pytest.mark.parametrize("cache_size", [0, 1 << 30])
@pytest.mark.parametrize("shards", [1, 16])
def test_a_plane_of_shards_with_latency_takes_two_round_trips(shards: int, cache_size: int) -> None:
    store = WaitingStore()
    side = {1: 32, 16: 128}[shards]
    data = np.arange(8 * side * side, dtype="u2").reshape(8, side, side)
    zarrfs.create_array(store, "a", data=data, chunks=(4, 8, 8), shards=(8, 32, 32))
    array = zarrfs.open_array(store, "a", cache_size=cache_size)
    # All indexes are requested at once, and then all inner chunks of each shard in one request.
    store.barrier = threading.Barrier(shards)
    assert np.array_equal(array[5], data[5])
    assert len(store.requests) == requested(store, "get_ranges") == 2 * shards


@pytest.mark.parametrize("codec", ["blosc", "zstd", None])
@pytest.mark.parametrize("axis", [0, 2])
def test_large_inner_chunks_with_latency_are_fetched_in_one_request(axis: int, codec: str | None) -> None:
    store = WaitingStore()
    data = np.random.default_rng(1).integers(0, 1 << 12, (8, 512, 256), "u2")
    zarrfs.create_array(store, "a", data=data, chunks=(4, 128, 128), shards=data.shape, compressors=codec)
    array = zarrfs.open_array(store, "a", cache_size=0)
    store.barrier = threading.Barrier(1)
    plane = (slice(None),) * axis + (5,)
    assert np.array_equal(array[plane], data[plane])
    assert [kind for kind, _ in store.requests] == ["get_ranges"] * 2


def test_parts_of_uncompressed_inner_chunks_with_latency_are_requested_at_the_same_time() -> None:
    store = WaitingStore()
    data = np.arange(8 << 20, dtype="u2").reshape(8, 1024, 1024)
    zarrfs.create_array(store, "a", data=data, chunks=(4, 512, 512), shards=data.shape, compressors=None)
    array = zarrfs.open_array(store, "a", cache_size=0)
    array[0, 0, 0]  # Without a cache the index is read again below.
    store.barrier = threading.Barrier(1)
    region = (slice(2, 6), slice(500, 520), slice(500, 520))
    found = array[region]
    assert np.array_equal(found, data[region])
    assert requested(store, "get_ranges") == 9
