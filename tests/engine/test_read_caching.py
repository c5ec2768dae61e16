"""Caches of reads: what they hold, what they evict, and what is read from the store again."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

import zarrfs
from zarrfs.engine.cache import ChunkCache, as_cacheable, held_nbytes
from zarrfs.engine.stores.memory import MemoryStore
from zarrfs.testing import CountingStore

ENTRY = 256
"""The size of a cache entry in bytes in addition to its array."""

NOISE = np.random.default_rng(0).integers(0, 1000, (1000, 1000), dtype="u2")


class Reading:
    """An array with its own cache in a store that counts requests."""

    def __init__(self, cache_size: int = 64 << 20, **options: Any) -> None:
        memory = MemoryStore()
        zarrfs.create_array(memory, **options)
        self.data: np.ndarray[Any, Any] = options["data"]
        self.store = CountingStore(memory)
        self.array = zarrfs.open_array(self.store, cache_size=cache_size)
        self.cache: ChunkCache = self.array._cache

    def read(self, selection: Any) -> tuple[int, int]:
        """Read a selection; return the number of requests and the number of bytes read from the store."""
        self.store.reset()
        np.testing.assert_array_equal(self.array[selection], self.data[selection])
        return sum(self.store.keys.values()), self.store.bytes_read


def test_a_decoded_chunk_is_cached_and_used_again() -> None:
    reading = Reading(data=NOISE[:100, :100], chunks=(50, 100))
    assert reading.read(np.s_[0:3])[0] == 1
    assert reading.cache.nbytes == 50 * 100 * 2 + ENTRY
    for selection in (np.s_[0:3], np.s_[40:50], np.s_[7, 7], np.s_[0:50]):
        assert reading.read(selection) == (0, 0)
    assert len(reading.cache) == 1
    assert reading.read(np.s_[...])[0] == 1, "only the other chunk"
    assert reading.cache.nbytes == 2 * (50 * 100 * 2 + ENTRY)
    assert reading.read(np.s_[...]) == (0, 0)


def test_nothing_is_cached_without_a_cache() -> None:
    reading = Reading(data=NOISE[:100, :100], chunks=(50, 100), cache_size=0)
    first = reading.read(np.s_[0:3])
    assert first[0] == 1
    assert reading.read(np.s_[0:3]) == first
    assert len(reading.cache) == 0


def test_a_write_invalidates_the_cached_chunk() -> None:
    store = CountingStore(MemoryStore())
    array = zarrfs.create_array(store, data=NOISE[:100, :100], chunks=(50, 100), cache_size=64 << 20)
    array[0:3]
    array[60:63]
    array[0, 0] = 7
    store.reset()
    assert array[0, 0] == 7
    assert sum(store.keys.values()) == 1
    store.reset()
    assert array[60, 0] == NOISE[60, 0]
    assert sum(store.keys.values()) == 0, "the other chunk is still cached"


@pytest.mark.parametrize(("length", "partial"), [(8192, True), (8191, False)])
def test_uncompressed_chunks_of_16_kib_or_more_are_read_partially(length: int, partial: bool) -> None:
    data = np.arange(length, dtype="<u2")
    reading = Reading(data=data, chunks=length, compressors=None)
    expected = 20 if partial else data.nbytes
    assert reading.read(np.s_[100:110]) == (1, expected)
    assert reading.cache.nbytes == (0 if partial else data.nbytes + ENTRY)
    assert reading.read(np.s_[200:210]) == ((1, 20) if partial else (0, 0))


def test_adjacent_byte_ranges_are_read_as_one() -> None:
    reading = Reading(data=NOISE, chunks=NOISE.shape, compressors=None)
    assert reading.read(np.s_[5:8]) == (1, 3 * 2000)
    assert reading.read(np.s_[:3, 10:12]) == (1, 2 * 2000 + 4)
    assert reading.cache.nbytes == 0


def test_a_large_compressed_chunk_is_read_partially_at_first_and_then_cached() -> None:
    reading = Reading(data=NOISE, chunks=NOISE.shape)
    whole = reading.array.usage().nbytes
    for start in (0, 20, 40, 60):
        assert reading.read(np.s_[start : start + 3])[1] < whole / 5
        assert reading.cache.nbytes == 0
    count, nbytes = reading.read(np.s_[3:6])
    assert count == 1
    assert nbytes > whole / 2
    assert reading.cache.nbytes == NOISE.nbytes + ENTRY
    assert reading.read(np.s_[6:9]) == (0, 0)


def test_a_chunk_is_read_whole_if_most_of_it_is_requested() -> None:
    reading = Reading(data=NOISE, chunks=NOISE.shape)
    assert reading.read(np.s_[:600])[0] == 1
    assert reading.cache.nbytes == NOISE.nbytes + ENTRY
    assert reading.read(np.s_[900:]) == (0, 0)


def test_a_compressed_chunk_below_a_mebibyte_is_read_whole() -> None:
    small = NOISE[:500]
    assert small.nbytes < 1 << 20
    reading = Reading(data=small, chunks=small.shape)
    assert reading.read(np.s_[0:1])[0] == 1
    assert reading.cache.nbytes == small.nbytes + ENTRY


def test_a_chunk_without_partial_decoding_is_cached_on_the_first_read() -> None:
    reading = Reading(data=NOISE, chunks=NOISE.shape, compressors="gzip")
    assert reading.read(np.s_[0:1])[0] == 1
    assert reading.cache.nbytes == NOISE.nbytes + ENTRY
    assert reading.read(np.s_[5:6]) == (0, 0)


@pytest.mark.parametrize("compressors", ["zstd", None])
def test_reading_a_shard_reads_the_index_and_the_requested_inner_chunks(compressors: str | None) -> None:
    reading = Reading(data=NOISE[:100, :100], chunks=(10, 10), shards=(100, 100), compressors=compressors)
    index = 100 * 16 + 4
    count, nbytes = reading.read(np.s_[0:3, 0:3])
    assert count == 2
    assert index < nbytes <= index + 200 + 100
    assert reading.cache.nbytes == 200 + 1600 + 2 * ENTRY
    assert reading.read(np.s_[4:9, 4:9]) == (0, 0)
    assert reading.read(np.s_[0:3, 10:13])[0] == 1, "the index is cached"
    assert reading.read(np.s_[...])[0] == 1
    total = 100 * (200 + ENTRY) + 1600 + ENTRY
    assert reading.cache.nbytes == total
    assert reading.read(np.s_[...]) == (0, 0)


def test_a_small_view_of_a_large_buffer_is_copied() -> None:
    large = bytes(1 << 20)
    numbers = np.zeros(1 << 17, "<M8[s]")
    for array in (
        np.frombuffer(large, np.uint8)[:4096],
        np.frombuffer(memoryview(large)[:4096], np.uint8),
        np.frombuffer(memoryview(memoryview(large)[100:])[:4096], np.uint8),
        np.ndarray((4096,), np.uint8, memoryview(large), 7),
        np.frombuffer(memoryview(bytearray(large))[:4096], "<u2").reshape(2, -1)[:1],
        numbers[:100],
    ):
        assert held_nbytes(array) == 1 << 20
        kept, nbytes = as_cacheable(array)
        assert held_nbytes(kept) == array.nbytes
        assert nbytes == array.nbytes + ENTRY


def test_an_array_that_fills_its_buffer_is_not_copied() -> None:
    buffer = bytes(1 << 16)
    array = np.frombuffer(buffer, "<u2")
    kept, nbytes = as_cacheable(array)
    assert np.shares_memory(kept, array)
    assert nbytes == len(buffer) + ENTRY


def test_the_size_of_objects_includes_their_content() -> None:
    array = np.array(["x" * 100_000, b"y" * 50_000, np.zeros(10_000)], object)
    assert 230_000 < as_cacheable(array)[1] < 232_000


def test_the_length_of_strings_counts_towards_the_capacity() -> None:
    data = np.array(["a" * 100_000, "b" * 100_000, "c" * 100_000, "d" * 100_000], object)
    reading = Reading(data=data, dtype=str, chunks=1, cache_size=250_000)
    for index in range(4):
        reading.read(np.s_[index])
    assert len(reading.cache) == 2
    assert 200_000 < reading.cache.nbytes <= 250_000
    assert reading.read(np.s_[3]) == (0, 0)
    assert reading.read(np.s_[0])[0] == 1


@pytest.mark.parametrize("dtype", ["|S0", "|V0", "<U0"])
@pytest.mark.parametrize("compressor", [None, {"id": "zlib"}, {"id": "blosc"}, {"id": "zstd"}], ids=str)
@pytest.mark.parametrize("order", ["C", "F"])
def test_elements_of_size_0_are_read_and_written(dtype: str, compressor: Any, order: str) -> None:
    document = {
        "zarr_format": 2,
        "shape": [3, 5],
        "chunks": [2, 2],
        "dtype": dtype,
        "compressor": compressor,
        "filters": None,
        "fill_value": None,
        "order": order,
    }
    store = {".zarray": json.dumps(document).encode()}
    array = zarrfs.open_array(store, mode="r+", access=zarrfs.Access(write_empty_chunks=True))
    assert array.dtype.itemsize == 0
    array[...] = np.zeros((3, 5), dtype)
    assert "2.4" not in store
    assert "1.2" in store
    for selection in (np.s_[...], np.s_[1], np.s_[:, 1:4], np.s_[2, 4]):
        found = np.asarray(array[selection])
        expected = np.asarray(np.zeros((3, 5), dtype)[selection])  # NumPy converts "S0" to "S1"
        assert found.shape == expected.shape
        assert found.tolist() == expected.tolist()
    assert array.nbytes == 0
    assert bytes(array.read_bytes(0, 10)) == b""
