"""The decisions of the read planner, and the requests of reads."""

from __future__ import annotations

import contextlib
import os
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zarrfs
from tests.documents import LITTLE
from tests.engine.native.executors import python
from zarrfs.engine.cache import CacheEntry, ChunkCache
from zarrfs.engine.codecs.base import ChunkSpec
from zarrfs.engine.codecs.pipeline.chain import CodecChain
from zarrfs.engine.codecs.registry import codecs_from_json
from zarrfs.engine.counters import decoded
from zarrfs.engine.indexing.selections import basic_selection
from zarrfs.engine.read.planning import ChunkMethod, cache_on_next_read, choose_method, decoded_fraction
from zarrfs.engine.stores.local.store import LocalStore
from zarrfs.engine.stores.memory import MemoryStore

BLOSC = {
    "name": "blosc",
    "configuration": {"cname": "lz4", "clevel": 5, "shuffle": "shuffle", "typesize": 2, "blocksize": 0},
}


def chain(shape: tuple[int, ...], *codecs: Any) -> CodecChain:
    return CodecChain(codecs_from_json([LITTLE, *codecs], "test"), ChunkSpec(shape, np.dtype("<u2"), 0))


def entry(keep: bool = True) -> CacheEntry:
    return CacheEntry(ChunkCache(1 << 30), (0, 0, (0,)), "stamp", keep)


LARGE = (128, 128, 128)
PLANE = (slice(0, 1, 1), slice(0, 128, 1), slice(0, 128, 1))
WHOLE = tuple(slice(0, n, 1) for n in LARGE)
FIRST_HALF_OF_ROWS = (slice(0, 128, 1), slice(0, 64, 1), slice(0, 128, 1))


@pytest.mark.parametrize("keep", [True, False])
def test_whole_chunks_are_decoded_whole(keep: bool) -> None:
    expected = ChunkMethod.CACHE if keep else ChunkMethod.WHOLE
    assert choose_method(chain(LARGE, BLOSC), WHOLE, entry(keep)) is expected
    assert choose_method(chain(LARGE), WHOLE, entry(keep)) is expected
    assert choose_method(chain(LARGE), WHOLE, None) is ChunkMethod.WHOLE


def test_regions_of_uncompressed_chunks_are_always_read_partially() -> None:
    kept = entry()
    kept.record_read()
    for cache_entry in (None, entry(), kept):
        assert choose_method(chain(LARGE), PLANE, cache_entry) is ChunkMethod.PARTIAL


def test_a_compressed_chunk_is_cached_when_the_parts_that_were_read_amount_to_half_of_it() -> None:
    fraction = decoded_fraction(chain(LARGE, BLOSC), PLANE)
    assert fraction == 1 / 128
    assert decoded_fraction(chain(LARGE, BLOSC), FIRST_HALF_OF_ROWS) == 1.0
    for recorded, count in ([0.0, 4], [0.3, 2], [1.0, 0]):
        cache_entry = entry()
        if recorded:
            cache_entry.record_read(recorded)
        for _ in range(count):
            assert choose_method(chain(LARGE, BLOSC), PLANE, cache_entry) is ChunkMethod.PARTIAL
        assert choose_method(chain(LARGE, BLOSC), PLANE, cache_entry) is ChunkMethod.CACHE
    assert choose_method(chain(LARGE, BLOSC), PLANE, None) is ChunkMethod.PARTIAL


def test_a_region_of_one_of_several_chunks_is_cached_when_it_is_read_again() -> None:
    cache_entry = entry()._replace(cache_on_first_read=False)
    assert choose_method(chain(LARGE, BLOSC), FIRST_HALF_OF_ROWS, cache_entry) is ChunkMethod.WHOLE
    assert choose_method(chain(LARGE, BLOSC), FIRST_HALF_OF_ROWS, cache_entry) is ChunkMethod.CACHE


@pytest.mark.parametrize("compressor", ["zstd", "blosc"])
def test_the_first_plane_caches_nothing_without_the_native_library(compressor: str, tmp_path: Path) -> None:
    data = np.random.default_rng(0).integers(0, 999, (64, 96, 96)).astype("u2")
    zarrfs.create_array(tmp_path / "a", data=data, chunks=(32, 32, 32), compressors=compressor)
    array = zarrfs.open_array(tmp_path / "a", cache_size=1 << 30)
    with python():
        assert (array[:, 40] == data[:, 40]).all()
        assert len(array._cache) == 0
        assert (array[:, 41] == data[:, 41]).all()
        assert len(array._cache) == 6
        before = decoded.chunks
        assert (array[:, 42] == data[:, 42]).all()
        assert decoded.chunks == before


def test_a_region_in_a_store_with_latency_is_cached_at_once() -> None:
    store = zarrfs.storage.MemoryStore()
    store.concurrency = 8
    store.is_remote = True
    data = np.arange(64 * 64, dtype="u2").reshape(64, 64)
    zarrfs.create_array(store, "a", data=data, chunks=(32, 32))
    array = zarrfs.open_array(store, "a", cache_size=1 << 30)
    assert (array[5] == data[5]).all()
    assert len(array._cache) == 2


def test_regions_that_span_most_of_a_compressed_chunk_are_decoded_whole() -> None:
    assert choose_method(chain(LARGE, BLOSC), FIRST_HALF_OF_ROWS, entry()) is ChunkMethod.CACHE
    assert choose_method(chain(LARGE, BLOSC), FIRST_HALF_OF_ROWS, entry(False)) is ChunkMethod.WHOLE


def test_small_chunks_are_decoded_whole() -> None:
    region = (slice(0, 1, 1), slice(0, 64, 1))
    assert choose_method(chain((64, 64)), region, None) is ChunkMethod.WHOLE
    assert choose_method(chain((64, 64), BLOSC), region, entry()) is ChunkMethod.CACHE


def test_a_chunk_too_large_for_the_cache_is_read_partially_each_time() -> None:
    huge = chain((1 << 10, 1 << 9, 1 << 9), BLOSC)
    region = (slice(0, 1, 1), slice(0, 1 << 9, 1), slice(0, 1 << 9, 1))
    cache_entry = entry()
    cache_entry.record_read()
    assert choose_method(huge, region, cache_entry) is ChunkMethod.PARTIAL


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """The number of calls of each system call of LocalStore, by the thread of the test."""
    zarrfs.zeros(1)[0]  # the first read of a process imports the native library
    counted: Counter[str] = Counter()
    thread = threading.get_ident()

    def count(name: str) -> None:
        function = getattr(os, name)

        def counting(*args: Any, **options: Any) -> Any:
            counted[name] += threading.get_ident() == thread
            return function(*args, **options)

        monkeypatch.setattr(os, name, counting)

    for name in ("open", "stat", "lstat", "pread", "preadv"):
        count(name)
    return counted


@pytest.mark.parametrize("cache_size", [0, 1 << 30])
def test_reading_an_inner_chunk_opens_the_shard_once(
    tmp_path: Path, calls: Counter[str], cache_size: int
) -> None:
    data = np.arange(128**2, dtype="u2").reshape(128, 128)
    zarrfs.create_array(tmp_path / "a", data=data, chunks=(16, 16), shards=(128, 128))
    array = zarrfs.open_array(tmp_path / "a", cache_size=cache_size)
    # The directories of a key are checked for links once.
    assert array.store.exists("c/0/0")
    calls.clear()
    assert array[5, 5] == data[5, 5]
    assert calls["open"] == 1
    assert calls["pread"] == 2  # the index and the inner chunk
    assert calls["stat"] + calls["lstat"] <= 2


def test_reading_a_cached_inner_chunk_opens_nothing(tmp_path: Path, calls: Counter[str]) -> None:
    data = np.arange(128**2, dtype="u2").reshape(128, 128)
    zarrfs.create_array(tmp_path / "a", data=data, chunks=(16, 16), shards=(128, 128))
    array = zarrfs.open_array(tmp_path / "a", cache_size=1 << 30)
    assert array[5, 5] == data[5, 5]
    calls.clear()
    assert array[5, 6] == data[5, 6]
    assert calls["open"] == 0
    assert calls["stat"] + calls["lstat"] <= 2


def test_reading_a_part_of_a_compressed_chunk_opens_it_once(tmp_path: Path, calls: Counter[str]) -> None:
    data = np.random.default_rng(0).integers(0, 999, LARGE).astype("u2")
    zarrfs.create_array(tmp_path / "a", data=data, chunks=LARGE, compressors=[BLOSC])
    array = zarrfs.open_array(tmp_path / "a", cache_size=0)
    assert array.store.exists("c/0/0/0")
    calls.clear()
    assert (array[7] == data[7]).all()
    assert calls["open"] == 1


def test_all_parts_come_from_one_version_of_a_replaced_value(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    store.set("key", b"old value")
    with store.open_value("key") as value:
        stamp = value.stamp()
        assert value.size() == 9
        store.set("key", b"new")
        assert value.read() == b"old value"
        assert stamp is not None
        assert value.is_unchanged(stamp)


def test_an_open_value_in_memory_is_one_version() -> None:
    store = MemoryStore()
    store.set("key", b"old value")
    with store.open_value("key") as value:
        stamp, version = value.stamp(), value.version()
        store.set("key", b"new")
        assert value.read() == b"old value"
        assert stamp is not None
        assert version is not None
        assert value.is_unchanged(stamp)
        assert value.has_version(version)


def test_a_value_changed_in_place_is_detected(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    store.set("key", b"old value")
    with store.open_value("key") as value:
        stamp = value.stamp()
        assert stamp is not None
        assert value.read() == b"old value"
        (tmp_path / "key").write_bytes(b"another value")
        assert not value.is_unchanged(stamp)


def test_a_missing_value_has_neither_size_nor_bytes(tmp_path: Path) -> None:
    with LocalStore(tmp_path).open_value("key") as value:
        assert value.stamp() is None
        assert value.size() is None
        assert value.read() is None
        assert value.read_ranges([]) is None


def test_reads_return_new_values_after_the_limit_of_counted_writes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("zarrfs.engine.array_context.MAX_WRITE_COUNTS", 3)
    array = zarrfs.create_array({}, shape=(8, 4), chunks=(1, 4), dtype="u2", cache_size=1 << 20)
    for value in range(1, 4):
        for row in range(8):
            array[row] = value
            assert (array[row] == value).all()
        assert (array[...] == value).all()


@pytest.mark.parametrize("native", [True, False])
@pytest.mark.parametrize("compressors", ["gzip", "zstd", None])
def test_expected_reads_let_the_next_read_cache_its_chunks(
    tmp_path: Path, native: bool, compressors: str | None
) -> None:
    values = np.arange(4 * 128 * 128, dtype="u2").reshape(4, 128, 128)
    zarrfs.create_array(tmp_path / "a.zarr", data=values, chunks=(4, 64, 64), compressors=compressors)
    array = zarrfs.open_array(tmp_path / "a.zarr", mode="r", cache_size=1 << 24)
    cache = array.storage.cache
    with contextlib.nullcontext() if native else python():
        cache_on_next_read(array.storage, basic_selection((slice(1, 2), slice(0, 64)), array.shape))
        assert len(cache) == 0
        assert (array[1] == values[1]).all()
        assert len(cache) == (0 if compressors is None else 2)  # only those that were expected
        assert (array[2] == values[2]).all()
