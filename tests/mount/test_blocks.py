"""Blocks of virtual files: values, sharing, limits, changes and faults."""

from __future__ import annotations

import errno
import mmap
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import zarrfs
from tests.processes import TIMEOUT
from tests.threads import Clock
from zarrfs.engine.counters import decoded
from zarrfs.engine.indexing.flat_ranges import FlatOrder, flat_axes
from zarrfs.engine.parallel import permitted_threads
from zarrfs.engine.read.flat_blocks import flat_block_grid
from zarrfs.engine.stores.memory import MemoryStore
from zarrfs.errors import ChunkDecodeError
from zarrfs.files.content import block, block_reader, blocks
from zarrfs.files.content.access_pattern import AccessPattern, Pattern
from zarrfs.files.content.block import Retention
from zarrfs.files.content.block_reader import BlockReader
from zarrfs.files.content.blocks import BlockPool, BlockRequest
from zarrfs.files.content.content import ArraySegment, BytesSegment, VirtualFileContent
from zarrfs.files.content.freshness import REVALIDATION_SECONDS
from zarrfs.files.content.open_files import OpenFile
from zarrfs.files.content.streams import ArrayStream
from zarrfs.testing import CountingStore, LatencyStore

KIB = 1 << 10
MIB = 1 << 20

NOISE = np.random.default_rng(0).integers(0, 1000, (64, 64, 256), dtype="u2")  # 2 MiB


def counted(**options: Any) -> tuple[CountingStore, zarrfs.Array]:
    """Return an array of noise without a chunk cache, and its store, which counts."""
    memory = MemoryStore()
    zarrfs.create_array(memory, data=NOISE, **options)
    store = CountingStore(memory)
    return store, zarrfs.open_array(store, cache_size=0)


def request(
    key: Any,
    nbytes: int,
    assemble: Callable[[Any], None] = lambda data: None,
    retention: Retention = Retention.KEPT,
    version: Callable[[], Any] = lambda: 1,
) -> BlockRequest:
    return BlockRequest(key, nbytes, assemble, version, retention)


# -- the division into blocks ----------------------------------------------------------------------------------


@given(
    shape=st.lists(st.integers(1, 9), min_size=1, max_size=4),
    chunks=st.lists(st.integers(1, 5), min_size=4, max_size=4),
    order=st.sampled_from(["C", "F"]) | st.permutations(range(4)),
    limit=st.integers(2, 400),
    offset=st.integers(0, 10_000),
)
def test_blocks_cover_the_stream_and_hold_whole_chunks(
    shape: list[int], chunks: list[int], order: Literal["C", "F"] | list[int], limit: int, offset: int
) -> None:
    axes: FlatOrder = order if isinstance(order, str) else tuple(axis for axis in order if axis < len(shape))
    array = zarrfs.create_array({}, shape=tuple(shape), chunks=tuple(chunks[: len(shape)]), dtype="u2")
    grid = flat_block_grid(array.storage, axes, limit)
    bounds = [grid.bounds(number) for number in range(grid.count)]
    assert bounds[0][0] == 0
    assert bounds[-1][1] == array.nbytes
    assert all(stop == start for (_, stop), (start, _) in pairwise(bounds))
    assert all(stop - start > 0 for start, stop in bounds)
    start, stop = grid.bounds(grid.find(offset % array.nbytes))
    assert start <= offset % array.nbytes < stop
    if grid.holds_whole_chunks:
        slowest_first = flat_axes(axes, len(shape))
        permuted = np.arange(array.size).reshape([shape[axis] for axis in slowest_first])
        flat = permuted.transpose(np.argsort(slowest_first))
        lengths = [range(0, n, c) for n, c in zip(shape, chunks, strict=False)]
        for corner in np.stack(np.meshgrid(*lengths, indexing="ij"), -1).reshape(-1, len(shape)):
            region = tuple(slice(a, a + c) for a, c in zip(corner, chunks, strict=False))
            blocks = {grid.find(int(index) * 2) for index in flat[region].reshape(-1)}
            assert len(blocks) == 1


def test_blocks_are_not_larger_than_the_limit() -> None:
    array = zarrfs.create_array({}, data=NOISE, chunks=(64, 8, 8))
    grid = flat_block_grid(array.storage, "C", MIB)
    assert not grid.holds_whole_chunks
    assert all(stop - start <= MIB for start, stop in map(grid.bounds, range(grid.count)))


# -- reading ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{}, {"shards": (32, 64, 256)}], ids=["chunks", "shards"])
def test_a_sequential_pass_decodes_each_chunk_once(options: dict[str, Any]) -> None:
    store, array = counted(chunks=(16, 16, 16), **options)
    pool = BlockPool(4 * MIB)
    file = OpenFile(VirtualFileContent([BytesSegment(b"header"), ArraySegment(array)]), pool)
    store.reset()
    size = 4 * KIB
    data = b"".join(bytes(file.read(offset, size)) for offset in range(0, file.content.size, size))
    assert data == b"header" + NOISE.tobytes()
    pool.close()
    # The reads before the access is recognized as sequential are direct.
    direct = 256 * KIB // size
    assert store.bytes_read < (direct + 2) * array.nbytes_stored() // 8 + 2 * array.nbytes_stored()
    repeated = [key for key, count in store.keys.items() if count > direct + 2]
    assert repeated == [] or options


@pytest.mark.parametrize("options", [{}, {"shards": (32, 64, 256)}], ids=["chunks", "shards"])
def test_a_pass_with_a_small_cache_decodes_chunks_without_partial_decoding_once(
    options: dict[str, Any],
) -> None:
    memory = MemoryStore()
    codec = zarrfs.codecs.ZstdCodec(level=1)
    zarrfs.create_array(memory, data=NOISE, chunks=(16, 32, 64), compressors=codec, **options)
    array = zarrfs.open_array(memory, cache_size=MIB)  # half of the data
    pool = BlockPool(2 * MIB)
    file = OpenFile(VirtualFileContent([BytesSegment(b"header"), ArraySegment(array)]), pool)
    before = decoded.nbytes
    size = 64 * KIB
    data = b"".join(bytes(file.read(offset, size)) for offset in range(0, file.content.size, size))
    pool.close()
    assert data == b"header" + NOISE.tobytes()
    # The indexes of shards are decoded too.
    assert NOISE.nbytes <= decoded.nbytes - before <= NOISE.nbytes + KIB


def test_a_pass_in_blocks_of_parts_of_chunks_decodes_each_chunk_once_if_the_cache_holds_a_layer(
    tmp_path: Path,
) -> None:
    path = tmp_path / "a.zarr"
    codec = zarrfs.codecs.BloscCodec(cname="lz4", shuffle="shuffle", blocksize=8 * KIB)
    zarrfs.create_array(path, data=NOISE, chunks=(32, 64, 64), compressors=codec)
    array = zarrfs.open_array(path, cache_size=4 * MIB)
    pool = BlockPool(256 * KIB)
    file = OpenFile(VirtualFileContent([ArraySegment(array)]), pool)
    before = decoded.chunks
    size = 128 * KIB
    data = b"".join(bytes(file.read(offset, size)) for offset in range(0, file.content.size, size))
    pool.close()
    assert data == NOISE.tobytes()
    assert decoded.chunks - before == NOISE.nbytes // (32 * 64 * 64 * NOISE.itemsize)


@given(
    st.lists(
        st.tuples(st.integers(0, NOISE.nbytes + 10), st.integers(0, 300 * KIB), st.booleans()), max_size=8
    )
)
def test_any_reads_give_the_bytes_of_the_array(reads: list[tuple[int, int, bool]]) -> None:
    _, array = counted(chunks=(16, 64, 64))
    pool = BlockPool(2 * MIB)
    file = OpenFile(VirtualFileContent([BytesSegment(b"12345"), ArraySegment(array)]), pool)
    expected = b"12345" + NOISE.tobytes()
    for offset, size, follow in reads:
        assert bytes(file.read(offset, size)) == expected[offset : offset + size]
        if follow:
            for step in range(1, 4):
                start = offset + step * size
                assert bytes(file.read(start, size)) == expected[start : start + size]
    pool.close()


@pytest.mark.parametrize("dtype", ["<u2", "<c16", "<M8[s]"])
def test_swapped_elements_in_another_order_are_read_in_blocks(dtype: str) -> None:
    numbers = np.arange(64 * 64 * 64, dtype="i8").astype(dtype).reshape(64, 64, 64)
    array = zarrfs.create_array({}, data=numbers, chunks=(16, 64, 16))
    pool = BlockPool(4 * MIB)
    file = OpenFile(VirtualFileContent([ArraySegment(array, (2, 0, 1), swap=True)]), pool)
    size = 100 * KIB + 1
    data = b"".join(bytes(file.read(offset, size)) for offset in range(0, file.content.size, size))
    assert data == numbers.transpose(2, 0, 1).byteswap().tobytes()
    assert pool.statistics.assembled > 0
    pool.close()


def test_blocks_that_are_not_in_use_occupy_less_than_those_in_use(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(block, "IN_USE_SECONDS", TIMEOUT)
    monkeypatch.setattr(block, "LATE_SECONDS", TIMEOUT)
    pool = BlockPool(800, idle_nbytes=400)

    def get(key: int, nbytes: int, read: int) -> int:
        assert pool.get(request(key, nbytes), (0, read)) is not None
        return pool.nbytes

    assert [get(key, 100, 100) for key in range(6)] == [100, 200, 300, 400, 400, 400]
    assert [get(key, 100, 50) for key in range(6, 14)] == [400, 400, 400, 400, 500, 600, 700, 800]
    pool.clear()
    assert [get(key, 300, 300) for key in range(3)] == [300, 600, 600], "there is room for two blocks"
    pool.close()


def test_random_reads_assemble_no_blocks() -> None:
    _, array = counted(chunks=(16, 64, 64))
    pool = BlockPool(4 * MIB)
    reader = BlockReader(ArrayStream(array), pool)
    for offset in (10, 900_000, 300_000):
        assert bytes(reader.read(offset, 100, sequential=False)) == NOISE.tobytes()[offset : offset + 100]
    assert pool.statistics.assembled == 0
    pool.close()


def test_threads_that_read_one_block_share_its_assembly() -> None:
    _, array = counted(chunks=(64, 64, 256))
    pool = BlockPool(8 * MIB)
    reader = BlockReader(ArrayStream(array), pool)
    results: list[bytes] = []
    threads = [
        threading.Thread(target=lambda: results.append(bytes(reader.read(5, 1000, sequential=True))))
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(TIMEOUT)
    assert results == [NOISE.tobytes()[5:1005]] * 8
    assert pool.statistics.assembled == 1
    pool.close()


def test_the_next_block_is_assembled_in_advance() -> None:
    _, array = counted(chunks=(16, 64, 256))
    pool = BlockPool(2 * MIB)
    reader = BlockReader(ArrayStream(array), pool)
    assert reader.grid.count > 1
    reader.read(0, 100, sequential=True)
    pool.close()  # waits for the read-ahead
    assert pool.statistics.read_ahead == 1
    assert pool.statistics.assembled == 2


# -- limits ----------------------------------------------------------------------------------------------------


def test_memory_stays_within_the_capacity() -> None:
    _, array = counted(chunks=(8, 64, 256))
    pool = BlockPool(MIB)
    reader = BlockReader(ArrayStream(array), pool)
    for offset in range(0, NOISE.nbytes, 64 * KIB):
        reader.read(offset, 64 * KIB, sequential=True)
        assert pool.nbytes <= pool.capacity
    assert pool.statistics.evicted > 0
    pool.close()
    assert pool.nbytes == 0


def test_a_pool_without_room_reads_directly() -> None:
    pool = BlockPool(100)
    started, release = threading.Event(), threading.Event()

    def assemble(out: Any) -> None:
        started.set()
        assert release.wait(TIMEOUT)

    thread = threading.Thread(target=pool.get, args=[request("a", 100, assemble)])
    thread.start()
    assert started.wait(TIMEOUT)
    assert pool.get(request("b", 50, assemble)) is None
    release.set()
    thread.join(TIMEOUT)
    assert pool.nbytes == 100
    pool.close()


def test_readers_of_more_blocks_than_fit_take_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(block, "IN_USE_SECONDS", TIMEOUT)
    monkeypatch.setattr(block, "LATE_SECONDS", TIMEOUT)
    monkeypatch.setattr(blocks, "MAX_WAITING_SECONDS", TIMEOUT)
    _, array = counted(chunks=(8, 64, 256))
    pool = BlockPool(MIB // 2)  # two blocks
    reader = BlockReader(ArrayStream(array), pool)
    assert reader.grid.count == 8
    wrong: list[int] = []

    def read(number: int) -> None:
        start, stop = reader.grid.bounds(number)
        for offset in range(start, stop, 16 * KIB):
            data = reader.read(offset, 16 * KIB, sequential=True, read_ahead=False)
            if bytes(data) != NOISE.tobytes()[offset : offset + 16 * KIB]:
                wrong.append(offset)

    threads = [threading.Thread(target=read, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(TIMEOUT)
    assert wrong == []
    assert pool.statistics.assembled == 8
    pool.close()


def test_a_read_of_a_block_that_is_being_assembled_decodes_no_chunk_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The reads of one of several concurrent readers are not sequential: the kernel has the pages of the others."""
    monkeypatch.setattr(block_reader, "MAX_ASSEMBLY_SECONDS", TIMEOUT)
    memory = MemoryStore()
    zarrfs.create_array(memory, data=NOISE, chunks=(16, 16, 64))
    is_reading, may_read = threading.Event(), threading.Event()

    def wait(operation: str, key: str) -> None:
        if key == "c/0/0/0" and operation.startswith("get"):
            is_reading.set()
            assert may_read.wait(TIMEOUT)

    counting = CountingStore(LatencyStore(memory, wait))
    pool = BlockPool(16 * MIB)
    reader = BlockReader(ArrayStream(zarrfs.open_array(counting, cache_size=0)), pool)
    found: list[bool] = []

    def read(offset: int, size: int, sequential: bool) -> None:
        data = reader.read(offset, size, sequential=sequential, read_ahead=False)
        found.append(bytes(data) == NOISE.tobytes()[offset : offset + size])

    threads = [threading.Thread(target=read, args=(0, 64 * KIB, True))]
    threads[0].start()
    assert is_reading.wait(TIMEOUT)
    threads += [threading.Thread(target=read, args=(number * KIB, KIB, False)) for number in (10, 300)]
    for thread in threads[1:]:
        thread.start()
    may_read.set()
    for thread in threads:
        thread.join(TIMEOUT)
    assert found == [True] * 3
    assert {count for key, count in counting.keys.items() if key.startswith("c/")} == {1}
    pool.close()


def test_a_block_stays_until_each_range_of_it_was_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """The last reads of a block may arrive after those of the next one."""
    monkeypatch.setattr(block, "IN_USE_SECONDS", TIMEOUT)
    monkeypatch.setattr(block, "LATE_SECONDS", TIMEOUT)
    store, array = counted(chunks=(8, 64, 256))
    pool = BlockPool(MIB // 2)  # two blocks
    reader = BlockReader(ArrayStream(array), pool)
    size, part = MIB // 4, 64 * KIB
    expected = NOISE.tobytes()

    def read(offset: int) -> None:
        data = reader.read(offset, part, sequential=True, read_ahead=True)
        assert bytes(data) == expected[offset : offset + part]

    store.reset()
    # The range at 2 * part is read twice, that at 3 * part is the last one.
    for offset in (0, part, 2 * part, 2 * part, size, size + part):
        read(offset)
    assert (reader._key, 0) in pool
    assert (reader._key, 2) not in pool
    read(3 * part)
    read(size + 2 * part)
    assert (reader._key, 0) not in pool
    assert (reader._key, 2) in pool
    for offset in range(size + 3 * part, NOISE.nbytes, part):
        read(offset)
    pool.close()
    assert pool.statistics.assembled == 8
    assert set(store.keys.values()) == {1}, store.keys


@pytest.mark.parametrize("readers", [1, 8])
@pytest.mark.parametrize("options", [{}, {"shards": (32, 64, 256)}], ids=["chunks", "shards"])
def test_requests_in_any_order_decode_each_chunk_once(
    options: dict[str, Any], readers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kernel asks for each page once, for any of the readers, with several requests at the same time."""
    for name in ("IN_USE_SECONDS", "LATE_SECONDS"):
        monkeypatch.setattr(block, name, TIMEOUT)
    monkeypatch.setattr(block_reader, "MAX_ASSEMBLY_SECONDS", TIMEOUT)
    monkeypatch.setattr(blocks, "MAX_WAITING_SECONDS", TIMEOUT)
    monkeypatch.setattr(block_reader, "PASS_SECONDS", TIMEOUT)
    store, array = counted(chunks=(16, 32, 64), **options)
    pool = BlockPool(16 * MIB if readers > 1 else MIB)  # two blocks for one reader
    content = VirtualFileContent([ArraySegment(array)])
    files = [OpenFile(content, pool) for _ in range(readers)]
    rng = np.random.default_rng(readers)
    size, window = 128 * KIB, 2
    offsets = np.arange(0, NOISE.nbytes, size)
    arrivals = offsets[np.argsort(np.arange(len(offsets)) + rng.uniform(0, window, len(offsets)))]
    expected = NOISE.tobytes()
    store.reset()

    def read(offset: int, number: int) -> bool:
        return bytes(files[number].read(offset, size)) == expected[offset : offset + size]

    with ThreadPoolExecutor(3) as executor:
        numbers = rng.integers(readers, size=len(arrivals))
        assert all(executor.map(read, map(int, arrivals), map(int, numbers)))
    pool.close()
    chunk_count = NOISE.nbytes // (16 * 32 * 64 * 2)
    if not options:
        assert {count for key, count in store.keys.items() if key.startswith("c/")} == {1}
        assert len(store.keys) >= chunk_count
    assert store.bytes_read <= array.nbytes_stored() * 1.01


def test_a_read_of_the_next_block_of_a_pass_assembles_it() -> None:
    """Several programs read a file, and the kernel sends a request of one of them that has not read much before."""
    store, array = counted(chunks=(8, 64, 256))
    pool = BlockPool(2 * MIB)
    reader = BlockReader(ArrayStream(array), pool)
    expected = NOISE.tobytes()
    size, part = MIB // 4, 64 * KIB
    store.reset()
    for offset, sequential in ((0, True), (size, False), (size + part, True), (4 * size, False)):
        data = reader.read(offset, part, sequential=sequential, read_ahead=False)
        assert bytes(data) == expected[offset : offset + part]
    assert (reader._key, 1) in pool
    assert (reader._key, 4) not in pool
    assert {store.keys[f"c/{number}/0/0"] for number in range(2)} == {1}
    pool.close()


@given(st.integers(1, 500), st.lists(st.integers(0, 500), max_size=8), st.randoms())
def test_a_block_is_read_when_the_end_of_each_unit_was_read(
    nbytes: int, cuts: list[int], random: Any
) -> None:
    scale = block.UNIT_NBYTES // 64
    edges = sorted({0, nbytes, *(cut for cut in cuts if cut < nbytes)})
    ranges = list(pairwise(edges))
    random.shuffle(ranges)
    found = block.Block(nbytes * scale)
    missing = {*range(63, nbytes, 64), nbytes - 1}
    for start, stop in ranges:
        assert found.is_read == (not missing)
        found.mark_read(start * scale, stop * scale)
        missing -= set(range(start, stop))
    assert found.is_read


@pytest.mark.parametrize("is_mapped", [False, True], ids=["allocated", "mapped"])
def test_the_memory_of_an_evicted_block_is_used_again_unless_a_reader_refers_to_it(
    is_mapped: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if is_mapped:
        monkeypatch.setattr(block, "HUGE_PAGE_NBYTES", MIB // 4)
    _, array = counted(chunks=(8, 64, 256))
    pool = BlockPool(MIB // 2)  # two blocks
    reader = BlockReader(ArrayStream(array), pool)
    size = MIB // 4
    for number in range(4):
        data = reader.read(number * size, size, sequential=True, read_ahead=False)
        assert bytes(data) == NOISE.tobytes()[number * size :][:size]
        del data
    assert pool.statistics.evicted == pool.statistics.recycled == 2
    held = [reader.read(number * size, size, sequential=True, read_ahead=False) for number in range(4, 8)]
    part = held[0][5:10]
    assert b"".join(map(bytes, held)) == NOISE.tobytes()[4 * size : 8 * size]
    # Only blocks 2 and 3, to which nothing refers, gave their memory.
    assert pool.statistics.recycled == 4
    del held
    for number in range(4):
        reader.read(number * size, size, sequential=True, read_ahead=False)
    assert bytes(part) == NOISE.tobytes()[4 * size + 5 :][:5]
    pool.close()


def read_blocks(reader: BlockReader) -> None:
    """Read a stream once from start to end, in requests of 64 KiB."""
    expected = NOISE.tobytes()
    for offset in range(0, len(expected), 64 * KIB):
        data = reader.read(offset, 64 * KIB, sequential=True)
        assert bytes(data) == expected[offset : offset + 64 * KIB]


def test_blocks_that_are_read_once_use_the_same_memory_and_blocks_that_are_read_again_are_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(blocks, "MAX_READ_NBYTES", 0)
    monkeypatch.setattr(blocks, "MAX_BLOCK_NBYTES", MIB // 4)
    monkeypatch.setattr(blocks, "KEPT_SECONDS_PER_NBYTE", float("inf"))
    store, array = counted(chunks=(8, 64, 256))
    pool = BlockPool(16 * MIB)
    reader = BlockReader(ArrayStream(array), pool)
    read_blocks(reader)
    assert pool.nbytes <= 2 * MIB // 4
    assert pool.statistics.recycled >= 5
    for _ in range(2):
        read_blocks(reader)
    assert pool.nbytes == NOISE.nbytes
    nbytes = store.bytes_read
    assert 8 < pool.statistics.assembled <= 16
    read_blocks(reader)
    assert store.bytes_read == nbytes
    pool.clear()
    read_blocks(reader)
    assert pool.nbytes <= 2 * MIB // 4, "a pool that was cleared has no memory of what was read"
    pool.close()


def test_reading_ahead_leaves_a_processor_to_requests_unless_they_wait_for_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(blocks, "CORES", 4)
    monkeypatch.setattr(blocks, "HURRIED_BLOCKS", 2)
    pool = BlockPool(MIB)
    threads: list[int] = []
    is_reading, may_read = threading.Event(), threading.Event()

    def note(out: Any) -> None:
        threads.append(permitted_threads(100))

    def note_and_wait(out: Any) -> None:
        note(out)
        is_reading.set()
        assert may_read.wait(TIMEOUT)

    def read_ahead(key: int, assemble: Any, retention: Retention = Retention.READ_ONCE) -> None:
        pool.read_ahead(request(key, 10, assemble, retention))

    read_ahead(0, note)
    read_ahead(1, note_and_wait)
    assert is_reading.wait(TIMEOUT)
    with ThreadPoolExecutor(1) as executor:
        waiting = executor.submit(pool.get, request(1, 10, note))
        while not pool._blocks[1].is_awaited:
            time.sleep(0.001)
        may_read.set()
        assert waiting.result(TIMEOUT) is not None
    for key in range(2, 5):
        read_ahead(key, note)
    read_ahead(5, note, Retention.KEPT)
    for key in range(2, 6):
        pool.get(request(key, 10, note))
    assert threads[:2] == [3, 3]
    assert threads[2:4] == [100, 100]
    assert threads[5] == 100, "requests of a server are not limited"
    pool.close()


@pytest.mark.parametrize("reason", ["slow", "remote", "read again at once"])
def test_blocks_that_are_costly_or_read_again_at_once_are_kept(
    reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(blocks, "MAX_READ_NBYTES", 0)
    monkeypatch.setattr(blocks, "MAX_BLOCK_NBYTES", MIB // 4)
    monkeypatch.setattr(blocks, "KEPT_SECONDS_PER_NBYTE", 0.0 if reason == "slow" else float("inf"))
    store, array = counted(chunks=(8, 64, 256))
    if reason == "remote":
        store.concurrency = 8
        store.is_remote = True
    pool = BlockPool(16 * MIB)
    reader = BlockReader(ArrayStream(array), pool)
    if reason == "read again at once":
        for _ in range(2):
            reader.read(0, MIB // 4, sequential=True, read_ahead=False)
    read_blocks(reader)
    kept = MIB // 4 if reason == "read again at once" else NOISE.nbytes
    assert kept <= pool.nbytes <= kept + 2 * MIB // 4
    assert (reader._key, 0) in pool
    pool.close()


@pytest.mark.skipif(not hasattr(mmap, "MAP_ANONYMOUS"), reason="the system has no anonymous memory")
def test_memory_of_whole_huge_pages_is_mapped(monkeypatch: pytest.MonkeyPatch) -> None:
    for nbytes in (1, 1000, 2 * MIB - 1, 2 * MIB, 4 * MIB):
        memory = block.new_memory(nbytes)
        assert memory.nbytes == nbytes
        assert (memory.base is not None) == (nbytes % (2 * MIB) == 0)
        memory[...] = 7
        assert int(memory[-1]) == 7

    def fail(*args: Any, **options: Any) -> None:
        raise OSError(errno.ENOMEM, "")

    monkeypatch.setattr(mmap, "mmap", fail)
    with pytest.raises(MemoryError, match="cannot be mapped"):
        block.new_memory(2 * MIB)


def test_readers_that_evict_the_blocks_of_each_other_read_the_bytes_of_the_array() -> None:
    _, array = counted(chunks=(8, 64, 256))
    pool = BlockPool(MIB // 2)
    reader = BlockReader(ArrayStream(array), pool)
    expected = NOISE.tobytes()
    wrong: list[int] = []

    def read(seed: int) -> None:
        rng = np.random.default_rng(seed)
        for number in rng.integers(0, 8, 40):
            start = int(number) * (MIB // 4)
            for offset in range(start, start + MIB // 4, 64 * KIB):
                data = reader.read(offset, 64 * KIB, sequential=True)
                if bytes(data) != expected[offset : offset + 64 * KIB]:
                    wrong.append(offset)

    threads = [threading.Thread(target=read, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(TIMEOUT)
    assert wrong == []
    assert pool.statistics.recycled > 0
    pool.close()


def test_a_block_that_is_read_slowly_is_not_assembled_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(block, "IN_USE_SECONDS", 0.0)
    _, array = counted(chunks=(8, 64, 256))
    pool = BlockPool(MIB // 2)  # two blocks
    reader = BlockReader(ArrayStream(array), pool)
    for step in range(4):
        for number in range(8):
            start, _ = reader.grid.bounds(number)
            offset = start + step * KIB
            data = reader.read(offset, KIB, sequential=True, read_ahead=False)
            assert bytes(data) == NOISE.tobytes()[offset : offset + KIB]
    assert pool.statistics.assembled == 8
    pool.close()


def test_a_block_is_assembled_from_chunks_that_a_direct_read_is_decoding() -> None:
    """The kernel sends the first requests of a pass at the same time."""
    memory = MemoryStore()
    chunks = (16, 16, 64)
    zarrfs.create_array(memory, data=NOISE, chunks=chunks, compressors=zarrfs.codecs.ZstdCodec(level=1))
    is_reading, may_read, is_assembling = threading.Event(), threading.Event(), threading.Event()

    def wait(operation: str, key: str) -> None:
        if key == "c/0/0/0" and operation.startswith("get"):
            is_reading.set()
            assert may_read.wait(TIMEOUT)

    counting = CountingStore(LatencyStore(memory, wait))
    array = zarrfs.open_array(counting, cache_size=16 * MIB)
    pool = BlockPool(16 * MIB)
    reader = BlockReader(ArrayStream(array), pool)
    read_block = reader._stream.read_block

    def assemble(start: int, out: Any, *, holds_whole_chunks: bool) -> None:
        is_assembling.set()
        read_block(start, out, holds_whole_chunks=holds_whole_chunks)

    reader._stream.read_block = assemble  # type: ignore[method-assign]
    found: list[bytes] = []
    direct = threading.Thread(
        target=lambda: found.append(bytes(reader.read(0, KIB, sequential=False))),
    )
    sequential = threading.Thread(
        target=lambda: found.append(bytes(reader.read(KIB, 64 * KIB, sequential=True))),
    )
    direct.start()
    assert is_reading.wait(TIMEOUT)
    sequential.start()
    assert not is_assembling.wait(0.01), "the block waits for the direct read"
    may_read.set()
    for thread in (direct, sequential):
        thread.join(TIMEOUT)
    assert sorted(map(len, found)) == [KIB, 64 * KIB]
    assert b"".join(sorted(found, key=len)) == NOISE.tobytes()[: 65 * KIB]
    assert set(counting.keys.values()) <= {1}, counting.keys
    pool.close()


# -- changes and faults ----------------------------------------------------------------------------------------


def test_a_changed_chunk_is_seen_after_the_revalidation_time(tmp_path: Path) -> None:
    zarrfs.create_array(tmp_path / "a", data=NOISE, chunks=(16, 64, 256))
    array = zarrfs.open_array(tmp_path / "a")
    clock = Clock()
    pool = BlockPool(8 * MIB, clock=clock)
    reader = BlockReader(ArrayStream(array), pool)
    assert bytes(reader.read(0, 2, sequential=True)) == NOISE.tobytes()[:2]
    zarrfs.open_array(tmp_path / "a", mode="r+")[0, 0, 0] = 54321
    clock.now += REVALIDATION_SECONDS
    assert bytes(reader.read(0, 2, sequential=True)) == np.uint16(54321).tobytes()
    assert pool.statistics.stale == 1
    pool.close()


def test_a_missing_chunk_that_is_written_is_seen_after_the_revalidation_time(tmp_path: Path) -> None:
    zarrfs.create_array(tmp_path / "a", shape=NOISE.shape, dtype="u2", chunks=(16, 64, 256))
    array = zarrfs.open_array(tmp_path / "a")
    clock = Clock()
    pool = BlockPool(8 * MIB, clock=clock)
    reader = BlockReader(ArrayStream(array), pool)
    assert bytes(reader.read(0, 2, sequential=True)) == b"\0\0"
    zarrfs.open_array(tmp_path / "a", mode="r+")[0, 0, 0] = 54321
    clock.now += REVALIDATION_SECONDS
    assert bytes(reader.read(0, 2, sequential=True)) == np.uint16(54321).tobytes()
    pool.close()


def test_a_block_of_unknown_version_is_used_for_the_revalidation_time_after_its_assembly() -> None:
    clock = Clock()
    start = clock.now
    pool = BlockPool(1000, clock=clock)
    calls: list[float] = []

    def assemble(data: Any) -> None:
        calls.append(clock.now - start)
        clock.now += 10

    block_request = request("a", 100, assemble, version=lambda: None)
    for seconds in (0.0, REVALIDATION_SECONDS / 2, REVALIDATION_SECONDS):
        clock.now += seconds
        assert pool.get(block_request) is not None
        assert pool.find_current("a", 0, 1) is not None
    assert calls == [0, 10 + 1.5 * REVALIDATION_SECONDS]
    pool.close()


def test_an_immutable_pool_does_not_ask_the_store() -> None:
    store, array = counted(chunks=(64, 64, 256))
    clock = Clock()
    pool = BlockPool(8 * MIB, is_immutable=True, clock=clock)
    reader = BlockReader(ArrayStream(array), pool)
    reader.read(0, 2, sequential=True)
    store.reset()
    clock.now += 10 * REVALIDATION_SECONDS
    reader.read(2, 2, sequential=True)
    assert sum(store.keys.values()) == 0
    pool.close()


def test_a_corrupt_chunk_affects_only_its_own_bytes(tmp_path: Path) -> None:
    zarrfs.create_array(tmp_path / "a", data=NOISE, chunks=(16, 64, 128))
    chunk = tmp_path / "a" / "c" / "1" / "0" / "1"
    chunk.write_bytes(chunk.read_bytes()[:-10])
    array = zarrfs.open_array(tmp_path / "a")
    pool = BlockPool(8 * MIB)
    file = OpenFile(VirtualFileContent([ArraySegment(array)]), pool)
    row = 256 * 2
    failed = 0
    for offset in range(0, NOISE.nbytes, row // 2):
        z, column = offset // (64 * row), offset % row
        if 16 <= z < 32 and column >= row // 2:
            with pytest.raises(ChunkDecodeError, match=r"chunk \(1, 0, 1\)"):
                file.read(offset, row // 2)
            failed += 1
        else:
            assert bytes(file.read(offset, row // 2)) == NOISE.tobytes()[offset : offset + row // 2]
    assert failed == 16 * 64
    pool.close()


# -- the access pattern ----------------------------------------------------------------------------------------


def test_consecutive_reads_are_sequential_in_any_order_of_arrival() -> None:
    pattern = AccessPattern()
    found = [pattern.record(offset * KIB, 128 * KIB) for offset in (0, 128, 384, 256, 512)]
    assert found == [Pattern.SEQUENTIAL] * 5


@pytest.mark.parametrize("offset", [0, 128, 256])
def test_a_program_that_reads_a_file_from_its_beginning_reads_sequentially(offset: int) -> None:
    """The kernel sends several requests at once, and any of them may arrive first."""
    pattern = AccessPattern()
    assert pattern.record(offset * KIB, 128 * KIB) is Pattern.SEQUENTIAL
    assert pattern.record(128 * KIB, 128 * KIB) is Pattern.SEQUENTIAL


def test_a_program_that_reads_a_header_or_another_part_reads_at_random() -> None:
    for offset, size in ((0, 64 * KIB), (MIB, 128 * KIB)):
        pattern = AccessPattern()
        assert pattern.record(offset, size) is Pattern.RANDOM
        assert pattern.record(offset + size, 4 * KIB) is Pattern.RANDOM


def test_distant_reads_are_not_sequential() -> None:
    pattern = AccessPattern()
    rng = np.random.default_rng(0)
    for number in rng.permutation(20):
        assert pattern.record(int(number) * MIB, 128 * KIB) is Pattern.RANDOM


def test_a_sequential_access_ends_with_a_distant_read() -> None:
    pattern = AccessPattern()
    for number in range(4):
        pattern.record(number * 128 * KIB, 128 * KIB)
    assert pattern.record(100 * MIB, 4 * KIB) is Pattern.RANDOM


@pytest.mark.parametrize("stride", [MIB, -MIB])
@pytest.mark.parametrize("run", [1, 3])
def test_runs_of_reads_at_equal_distances_are_strided(stride: int, run: int) -> None:
    pattern = AccessPattern()
    starts = [50 * MIB + number * stride for number in range(10)]
    found = [pattern.record(start + page * 4 * KIB, 4 * KIB) for start in starts for page in range(run)]
    assert found[5 * run :] == [Pattern.STRIDED] * 5 * run
    assert found[:run] == [Pattern.RANDOM] * run
    assert pattern.stride == stride


def test_a_stride_of_another_length_ends_a_strided_access() -> None:
    pattern = AccessPattern()
    for number in range(5):
        pattern.record(number * MIB, 4 * KIB)
    assert pattern.record(20 * MIB, 4 * KIB) is Pattern.RANDOM


def test_a_block_that_another_thread_adds_between_the_steps_of_a_request_is_used(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A request looks for the block and then adds it. Another request for it can be complete in between."""
    pool = BlockPool(MIB)
    find = pool._find

    def fill(data: Any) -> None:
        data[:] = ord("a")

    def find_before_another_request(key: Any) -> Any:
        monkeypatch.setattr(pool, "_find", find)
        found = find(key)
        assert pool.get(request("key", 100, fill)) is not None
        return found

    def never(data: Any) -> None:
        raise AssertionError("the block was assembled twice")

    monkeypatch.setattr(pool, "_find", find_before_another_request)
    data = pool.get(request("key", 100, never))
    assert data is not None
    assert bytes(data) == b"a" * 100
    assert pool.nbytes == 100
    # It is in use by nobody, so that there is room for a block of the whole capacity.
    assert pool._blocks["key"].users == 0
    assert pool.get(request("other", MIB)) is not None
    assert "key" not in pool
    pool.close()


@pytest.mark.parametrize("distance", [32, 128, 256])
def test_short_reads_at_short_distances_are_strided(distance: int) -> None:
    """Rows of a plane of a small array: they are closer to each other than reads that arrive in another order."""
    pattern = AccessPattern()
    found = {pattern.record(MIB + number * distance * KIB, 4 * KIB) for number in range(200)}
    assert found == {Pattern.RANDOM, Pattern.STRIDED}
    assert pattern.stride == distance * KIB


def test_the_next_block_is_read_ahead_after_a_part_of_a_large_block() -> None:
    pattern = AccessPattern()
    for number in range(16):
        assert not pattern.is_long(8 * MIB)
        pattern.record(number * 64 * KIB, 64 * KIB)
    assert pattern.is_long(8 * MIB)
    assert not pattern.is_long(64 * MIB)
    for number in range(16, 64):
        pattern.record(number * 64 * KIB, 64 * KIB)
    assert pattern.is_long(64 * MIB)
