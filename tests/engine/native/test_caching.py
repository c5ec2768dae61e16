"""The cache of decoded chunks with native reads: what enters it, and when it is used."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zarrfs
from tests.engine.native.executors import native
from zarrfs.engine.cache import ChunkCache
from zarrfs.engine.stores.local.store import LocalStore

VALUES = np.random.default_rng(1).integers(0, 99, (30, 40, 50)).astype(">u2")
CHUNK_NBYTES = 10 * 16 * 20 * 2

OPTIONS: dict[str, dict[str, Any]] = {
    "zstd": {"compressors": {"id": "zstd", "level": 1}},
    "transposed": {"compressors": {"id": "blosc"}, "order": "F"},
    "n5": {"zarr_format": "n5", "dtype": "uint16"},
}


@pytest.fixture(params=OPTIONS)
def location(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    options = {"zarr_format": 2, "dtype": ">u2"} | OPTIONS[request.param]
    zarrfs.create_array(tmp_path / "a", data=VALUES, chunks=(10, 16, 20), **options)
    return tmp_path / "a"


def opened(location: Path, cache: ChunkCache | None = None, **options: Any) -> zarrfs.Array:
    array = zarrfs.open_array(location, mode="r", **{"cache_size": 1 << 24, **options})
    assert array._cache.nbytes == 0
    return array


def test_whole_chunks_enter_the_cache(location: Path) -> None:
    array = opened(location)
    with native() as record:
        np.testing.assert_array_equal(array[...], VALUES)
        assert (record.reads, record.returned) == (1, 0)
        assert len(array._cache) == 27
        assert 27 * CHUNK_NBYTES <= array._cache.nbytes <= 27 * (CHUNK_NBYTES + 1024)
        np.testing.assert_array_equal(array[...], VALUES)
        np.testing.assert_array_equal(array[3:7, 5], VALUES[3:7, 5])
        assert record.reads == 1  # All chunks are cached.


def test_room_is_made_before_the_chunks_are_allocated(
    location: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    array = opened(location, cache_size=20 * (CHUNK_NBYTES + 1024))
    cached: list[int] = []
    open_directory = LocalStore.open_directory

    def note(*arguments: Any) -> Any:
        cached.append(array._cache.nbytes)
        return open_directory(*arguments)

    monkeypatch.setattr(LocalStore, "open_directory", note)
    with native():
        for plane in (0, 1, 10, 11, 20, 21):  # The second plane of a chunk decodes it.
            np.testing.assert_array_equal(array[plane], VALUES[plane])
    assert len(cached) == 6
    assert max(cached[1::2]) + 9 * CHUNK_NBYTES <= array._cache.capacity
    assert array._cache.nbytes >= 18 * CHUNK_NBYTES


def test_regions_enter_the_cache_when_they_are_read_again(location: Path) -> None:
    array = opened(location)
    with native() as record:
        np.testing.assert_array_equal(array[4], VALUES[4])
        assert len(array._cache) == 0
        np.testing.assert_array_equal(array[5], VALUES[5])
        assert len(array._cache) == 9
        np.testing.assert_array_equal(array[6], VALUES[6])
        assert record.reads == 2
        # Some of the chunks are cached. Only the others are read by the library.
        np.testing.assert_array_equal(array[8:12], VALUES[8:12])
        assert (record.reads, record.returned) == (3, 9)
        np.testing.assert_array_equal(array[::-3, 5:30:7], VALUES[::-3, 5:30:7])


def test_a_chunk_that_was_changed_is_read_again(location: Path) -> None:
    array = opened(location)
    with native():
        for _ in range(2):
            np.testing.assert_array_equal(array[...], VALUES)
        assert len(array._cache)
        changed = zarrfs.open_array(location, mode="r+")
        changed[0:10, 0:16, 0:20] = 7
        expected = VALUES.copy()
        expected[0:10, 0:16, 0:20] = 7
        np.testing.assert_array_equal(array[...], expected)
        np.testing.assert_array_equal(array[4], expected[4])
        assert len(array._cache) == 27


def test_an_own_write_is_seen(location: Path) -> None:
    array = zarrfs.open_array(location, mode="r+", cache_size=1 << 24)
    expected = VALUES.copy()
    with native():
        for value in (5, 6):
            np.testing.assert_array_equal(array[...], expected)
            array[12, :, 3] = expected[12, :, 3] = value
        np.testing.assert_array_equal(array[...], expected)


def test_missing_chunks_are_not_cached(location: Path) -> None:
    for path in location.rglob("*"):
        if path.is_file() and path.name not in (".zarray", "attributes.json"):
            path.unlink()
    array = opened(location)
    with native():
        assert not array[...].any()
        assert not array[...].any()
    assert len(array._cache) == 0


@pytest.mark.parametrize("recheck", [False, "open", True, timedelta(hours=1), 0.0])
def test_the_options_decide_about_revalidation(recheck: Any, location: Path) -> None:
    array = opened(location, access=zarrfs.Access(recheck_data=recheck))
    with native():
        np.testing.assert_array_equal(array[...], VALUES)
        assert len(array._cache) == 27
        for path in location.rglob("*"):
            if path.is_file() and path.name not in (".zarray", "attributes.json"):
                path.unlink()
        if recheck is True:
            assert not array[...].any()
        else:
            np.testing.assert_array_equal(array[...], VALUES)


def test_cached_arrays_are_read_only_and_independent_of_the_result(location: Path) -> None:
    array = opened(location)
    with native():
        result = array[...]
        result[...] = 0
        np.testing.assert_array_equal(array[...], VALUES)
    for _, chunk, _ in array._cache._entries.values():
        assert not chunk.flags.writeable


def test_a_corrupt_chunk_is_not_cached(location: Path) -> None:
    array = opened(location)
    path = sorted(
        p for p in location.rglob("*") if p.is_file() and p.name not in (".zarray", "attributes.json")
    )[5]
    data = path.read_bytes()
    path.write_bytes(data[:-3])
    with native() as record:
        with pytest.raises(zarrfs.ChunkDecodeError):
            array[...]
        assert record.returned == 1
        path.write_bytes(data)
        np.testing.assert_array_equal(array[...], VALUES)
        np.testing.assert_array_equal(array[...], VALUES)


def test_shards_that_are_read_again_are_cached_by_inner_chunk(tmp_path: Path) -> None:
    values = VALUES.astype("u2")
    zarrfs.create_array(tmp_path, data=values, chunks=(5, 8, 10), shards=(10, 16, 20))
    array = opened(tmp_path)
    with native() as record:
        np.testing.assert_array_equal(array[...], values)
        assert (record.reads, len(array._cache)) == (1, 0)
        np.testing.assert_array_equal(array[...], values)
        assert record.reads == 1
        cached = len(array._cache)
        assert cached > 27
        np.testing.assert_array_equal(array[3], values[3])
        assert (record.reads, len(array._cache)) == (1, cached)


def test_a_pass_over_many_chunks_leaves_the_cache_as_it_is(tmp_path: Path) -> None:
    values = np.arange(100 * 100, dtype="<u4").reshape(100, 100)
    zarrfs.create_array(tmp_path, data=values, chunks=(10, 10))
    array = opened(tmp_path)
    with native() as record:
        np.testing.assert_array_equal(array[...], values)
        assert len(array._cache) == 0
        np.testing.assert_array_equal(array[5:15, 5:15], values[5:15, 5:15])
        np.testing.assert_array_equal(array[5:15, 5:15], values[5:15, 5:15])
        assert len(array._cache) == 4
        np.testing.assert_array_equal(array[...], values)
        assert record.returned == 4
        assert len(array._cache) == 4
