"""Reads of open files that are not sequential: copies from decoded chunks, and windows for strided reads."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import zarrfs
from tests.mount.test_blocks import KIB, MIB
from tests.threads import Clock
from zarrfs.engine.indexing.flat_ranges import FlatOrder, flat_axes
from zarrfs.engine.read.cached_stream import CachedStream
from zarrfs.engine.read.flat_blocks import strided_window
from zarrfs.engine.stores.local.store import LocalStore
from zarrfs.engine.stores.memory import MemoryStore
from zarrfs.errors import ChunkDecodeError
from zarrfs.files.content.access_pattern import MIN_EQUAL_STRIDES, REORDERING_WINDOW
from zarrfs.files.content.block_reader import BlockReader
from zarrfs.files.content.blocks import BlockPool
from zarrfs.files.content.content import ArraySegment, BytesSegment, VirtualFileContent
from zarrfs.files.content.freshness import REVALIDATION_SECONDS
from zarrfs.files.content.open_files import OpenFile
from zarrfs.files.content.streams import ArrayStream
from zarrfs.testing import CountingStore

ZSTD = zarrfs.codecs.ZstdCodec(level=1)
LAYOUTS: dict[str, dict[str, Any]] = {
    "blosc": {},
    "zstd": {"compressors": ZSTD},
    "uncompressed": {"compressors": None},
    "shards": {"shards": (8, 12, 14)},
    "zstd in shards": {"shards": (8, 12, 14), "compressors": ZSTD},
}
SHAPE, CHUNKS = (13, 17, 29), (4, 6, 7)


def numbers(shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    """Return numbers of which the part at the beginning is the fill value, so that chunks of it are not stored."""
    values = np.random.default_rng(1).integers(1, 2**16, shape, dtype="u2")
    values[tuple(slice(0, n // 2) for n in shape)] = 0
    return values


def flat_bytes(values: np.ndarray[Any, Any], order: FlatOrder) -> bytes:
    return values.transpose(flat_axes(order, values.ndim)).tobytes()


def counted_array(
    tmp_path: Path, values: np.ndarray[Any, Any], **options: Any
) -> tuple[CountingStore, zarrfs.Array]:
    zarrfs.create_array(tmp_path / "a", data=values, **options)
    store = CountingStore(LocalStore(tmp_path / "a"))
    return store, zarrfs.open_array(store, cache_size=64 * MIB)


# -- decoded chunks --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("layout", LAYOUTS)
@settings(max_examples=15)
@given(
    order=st.sampled_from(["C", "F", (1, 2, 0), (2, 0, 1)]),
    ranges=st.lists(st.tuples(st.integers(0, 13_000), st.integers(1, 4000)), min_size=1, max_size=4),
)
def test_decoded_chunks_are_copied(layout: str, order: FlatOrder, ranges: list[tuple[int, int]]) -> None:
    values = numbers(SHAPE)
    array = zarrfs.create_array(MemoryStore(), data=values, chunks=CHUNKS, **LAYOUTS[layout])
    array = zarrfs.open_array(array.store, cache_size=MIB)
    expected = flat_bytes(values, order)
    stream = CachedStream(array.storage, order, 1.0)
    for offset, size in ranges:
        offset = min(offset, len(expected) - 1)
        size = min(size, len(expected) - offset)
        out = np.empty(size, np.uint8)
        found = [stream.copy(offset, out)]
        if not found[0]:
            stream.cache_on_next_read(offset, size)
            array.read_bytes_into(offset, out, order)
            assert bytes(out) == expected[offset : offset + size]
            found.append(stream.copy(offset, out))
        if found[-1]:
            assert bytes(out) == expected[offset : offset + size]
        # Uncompressed chunks do not enter the cache.
        assert found[-1] or layout == "uncompressed"


@pytest.mark.parametrize("layout", [name for name in LAYOUTS if name != "uncompressed"])
def test_a_repeated_read_sends_no_request_to_the_store(layout: str, tmp_path: Path) -> None:
    values = numbers((40, 60, 70))
    store, array = counted_array(
        tmp_path,
        values,
        chunks=(20, 30, 35),
        **{**LAYOUTS[layout], **({"shards": (40, 60, 70)} if "shards" in LAYOUTS[layout] else {})},
    )
    clock = Clock()
    stream = CachedStream(array.storage, "C", 1.0, clock=clock)
    out = np.empty(4 * KIB, np.uint8)
    stream.cache_on_next_read(100_000, out.size)
    array.read_bytes_into(100_000, out)
    assert stream.copy(100_000, out)
    store.reset()
    assert stream.copy(100_000, out)
    assert sum(store.keys.values()) == 0
    clock.now += 1.0
    assert stream.copy(100_000, out)
    assert store.bytes_read == 0
    assert bytes(out) == values.tobytes()[100_000 : 100_000 + out.size]


def test_a_changed_chunk_is_seen_after_the_revalidation_time(tmp_path: Path) -> None:
    values = numbers((32, 32, 32))
    _, array = counted_array(tmp_path, values, chunks=(16, 16, 16), compressors=ZSTD)
    clock = Clock()
    stream = CachedStream(array.storage, "C", REVALIDATION_SECONDS, clock=clock)
    out = np.empty(2, np.uint8)

    def read() -> int:
        if not stream.copy(values.nbytes - 2, out):
            array.read_bytes_into(values.nbytes - 2, out)
        return int(out.view("u2")[0])

    assert [read(), read(), read()] == [values[-1, -1, -1]] * 3
    writer = zarrfs.open_array(tmp_path / "a", mode="r+")
    for number in (1, 2, 0):  # 0 is the fill value
        writer[16:, 16:, 16:] = number
        clock.now += REVALIDATION_SECONDS
        assert [read(), read(), read()] == [number] * 3


def test_a_missing_chunk_that_is_written_is_seen_after_the_revalidation_time(tmp_path: Path) -> None:
    array = zarrfs.create_array(tmp_path / "a", shape=(32, 32), chunks=(16, 16), dtype="u2", fill_value=7)
    clock = Clock()
    stream = CachedStream(array.storage, "C", REVALIDATION_SECONDS, clock=clock)
    out = np.empty(4, np.uint8)
    assert stream.copy(0, out)
    assert out.view("u2").tolist() == [7, 7]
    zarrfs.open_array(tmp_path / "a", mode="r+")[0, 0] = 8
    clock.now += REVALIDATION_SECONDS
    assert not stream.copy(0, out)


def test_a_chunk_that_this_process_writes_is_seen_at_once() -> None:
    array = zarrfs.create_array(MemoryStore(), shape=(32, 32), chunks=(16, 16), dtype="u2", fill_value=7)
    stream = CachedStream(array.storage, "C", 1000.0)
    out = np.empty(4, np.uint8)
    assert stream.copy(0, out)
    array[0, 0] = 8
    assert not stream.copy(0, out)


def test_a_missing_chunk_is_an_error_without_fill_missing() -> None:
    array = zarrfs.create_array(MemoryStore(), shape=(32, 32), chunks=(16, 16), dtype="u2")
    array = zarrfs.open_array(array.store, access=zarrfs.Access(fill_missing=False))
    assert not CachedStream(array.storage, "C", 1.0).copy(0, np.empty(4, np.uint8))


def test_the_metadata_are_checked_when_chunks_are_compared_with_the_store() -> None:
    array = zarrfs.create_array(MemoryStore(), shape=(32, 32), chunks=(16, 16), dtype="u2")
    clock, calls = Clock(), []
    stream = CachedStream(array.storage, "C", 1.0, lambda: calls.append(clock.now), clock)
    out = np.empty(4, np.uint8)
    for now in (0.0, 0.5, 1.0, 1.5, 2.5):
        clock.now = now
        assert stream.copy(0, out)
    assert calls == [0.0, 1.0, 2.5]


# -- windows ---------------------------------------------------------------------------------------------------


@given(
    shape=st.lists(st.integers(1, 9), min_size=1, max_size=4),
    chunks=st.lists(st.integers(1, 5), min_size=4, max_size=4),
    order=st.sampled_from(["C", "F"]),
    offset=st.integers(0, 10_000),
    size=st.integers(1, 50),
    stride=st.integers(-6000, 6000),
)
def test_a_window_is_a_box_of_the_stream(
    shape: list[int], chunks: list[int], order: FlatOrder, offset: int, size: int, stride: int
) -> None:
    values = np.arange(np.prod(shape), dtype="u2").reshape(shape)
    array = zarrfs.create_array({}, data=values, chunks=tuple(chunks[: len(shape)]))
    expected = flat_bytes(values, order)
    offset %= len(expected)
    size = min(size, len(expected) - offset)
    window = strided_window(array.storage, order, offset, size, stride, MIB)
    if window is None:
        return
    permuted = values.transpose(flat_axes(order, values.ndim))
    data = permuted[tuple(slice(low, high) for low, high in window.box)].tobytes()
    assert len(data) == window.nbytes
    assert window.locate(offset, size) is not None
    for start, length in product(range(0, len(expected), 3), (1, size)):
        position = window.locate(start, length)
        if position is not None:
            assert data[position : position + length] == expected[start : start + length]


VOLUME = np.random.default_rng(2).integers(0, 1000, (40, 300, 1024), dtype="u2")  # 24 MiB
PLANE_NBYTES = 300 * 1024 * 2
LARGE_CHUNKS = (16, 32, 256)


@pytest.mark.parametrize("cache_size", [0, 64 * MIB], ids=["no cache", "cache"])
@pytest.mark.parametrize("swap", [False, True], ids=["", "swapped"])
@pytest.mark.parametrize("size", [4 * KIB, 128 * KIB])
def test_a_plane_decodes_each_chunk_once(cache_size: int, swap: bool, size: int) -> None:
    store = CountingStore(MemoryStore())
    zarrfs.create_array(store, data=VOLUME, chunks=LARGE_CHUNKS, compressors=ZSTD)
    array = zarrfs.open_array(store, cache_size=cache_size)
    pool = BlockPool(64 * MIB)
    file = OpenFile(VirtualFileContent([BytesSegment(b"x" * 128), ArraySegment(array, swap=swap)]), pool)
    expected = b"x" * 128 + (VOLUME.byteswap() if swap else VOLUME).tobytes()
    assert PLANE_NBYTES - size > REORDERING_WINDOW
    starts = [(150 * 2048 + plane * PLANE_NBYTES) // 4096 * 4096 for plane in range(40)]
    store.reset()
    for start in starts:
        assert bytes(file.read(start, size)) == expected[start : start + size]
    pool.close()
    # The first reads are direct, before the access is recognized. Each of them consists of parts of two rows.
    direct = 0 if cache_size else 2 * (MIN_EQUAL_STRIDES + 1)
    assert max(count for key, count in store.keys.items() if key.startswith("c/0/")) <= direct + 2
    others = [count for key, count in store.keys.items() if key.startswith(("c/1/", "c/2/"))]
    assert others
    assert set(others) == {1}


def test_backward_planes_and_runs_of_pages_have_the_bytes_of_the_array() -> None:
    array = zarrfs.create_array(MemoryStore(), data=VOLUME, chunks=LARGE_CHUNKS)
    pool = BlockPool(64 * MIB)
    file = OpenFile(VirtualFileContent([ArraySegment(array)]), pool)
    expected = VOLUME.tobytes()
    for plane in reversed(range(40)):
        for page in range(3):
            start = 299 * 2048 // 4096 * 4096 - 8192 + plane * PLANE_NBYTES + page * 4096
            assert bytes(file.read(start, 4096)) == expected[start : start + 4096]
    pool.close()
    # One window for each layer of chunks.
    assert pool.statistics.assembled == 3


def test_strided_reads_use_a_block_that_is_present_up_to_its_end_and_assemble_windows_otherwise() -> None:
    pool = BlockPool(64 * MIB)
    array = zarrfs.create_array(MemoryStore(), data=VOLUME, chunks=LARGE_CHUNKS)
    reader = BlockReader(ArrayStream(array), pool)
    expected = VOLUME.tobytes()
    start, stop = reader.grid.bounds(1)
    reader.read(start, 4 * KIB, sequential=True, read_ahead=False)
    assert pool.statistics.assembled == 1
    for offset in (stop - 8 * KIB, stop - 4 * KIB):
        found = bytes(reader.read_strided(offset, 4 * KIB, PLANE_NBYTES))
        assert found == expected[offset : offset + 4 * KIB]
    assert pool.statistics.assembled == 1
    offset = stop - 2 * KIB
    assert bytes(reader.read_strided(offset, 4 * KIB, PLANE_NBYTES)) == expected[offset : offset + 4 * KIB]
    pool.close()
    pool = BlockPool(64 * MIB)
    reader = BlockReader(ArrayStream(array), pool)
    assert bytes(reader.read_strided(4 * KIB, 4 * KIB, PLANE_NBYTES)) == expected[4 * KIB : 8 * KIB]
    assert pool.nbytes < (stop - start) // 2, "a whole block was assembled"
    pool.close()


def test_a_window_is_not_assembled_from_chunks_that_were_compared_with_the_store_before_its_version_was_determined(
    tmp_path: Path,
) -> None:
    _, array = counted_array(tmp_path, VOLUME, chunks=LARGE_CHUNKS, compressors=ZSTD)
    clock = Clock()
    pool = BlockPool(64 * MIB, clock=clock)
    stream = ArrayStream(array)
    reader = BlockReader(stream, pool)
    out = np.empty(4 * KIB, np.uint8)
    for plane in range(2):
        stream.read_part(plane * PLANE_NBYTES, out)
        assert stream._cached.copy(plane * PLANE_NBYTES, out), "its chunks are in the cache"
    zarrfs.open_array(tmp_path / "a", mode="r+")[0, 0, 0] = 54321
    reader.read_strided(0, 4 * KIB, PLANE_NBYTES)
    clock.now += REVALIDATION_SECONDS
    assert bytes(reader.read_strided(0, 4 * KIB, PLANE_NBYTES))[:2] == np.uint16(54321).tobytes()
    pool.close()


def test_a_corrupt_chunk_in_a_window_affects_only_its_own_bytes(tmp_path: Path) -> None:
    zarrfs.create_array(tmp_path / "a", data=VOLUME, chunks=LARGE_CHUNKS)
    chunk = tmp_path / "a" / "c" / "1" / "4" / "3"
    chunk.write_bytes(chunk.read_bytes()[:-10])
    pool = BlockPool(64 * MIB)
    file = OpenFile(VirtualFileContent([ArraySegment(zarrfs.open_array(tmp_path / "a"))]), pool)
    expected = VOLUME.tobytes()
    for plane in range(40):
        start = 140 * 2048 + plane * PLANE_NBYTES
        assert bytes(file.read(start, 1024)) == expected[start : start + 1024]
    for plane in range(40):
        start = 140 * 2048 + 1800 + plane * PLANE_NBYTES
        if 16 <= plane < 32:
            with pytest.raises(ChunkDecodeError, match=r"chunk \(1, 4, 3\)"):
                file.read(start, 8)
        else:
            assert bytes(file.read(start, 8)) == expected[start : start + 8]
    pool.close()
