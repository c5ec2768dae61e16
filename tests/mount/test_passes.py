"""Passes over files through the operations of a mount: what is assembled, read ahead, kept and decoded."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zarrfs
from tests.processes import TIMEOUT
from tests.threads import Clock
from zarrfs.engine.counters import decoded
from zarrfs.engine.read import flat_blocks
from zarrfs.engine.stores.local.store import LocalStore
from zarrfs.files.content.blocks import BlockPool
from zarrfs.files.content.freshness import REVALIDATION_SECONDS
from zarrfs.mount.fuse.operations import ZarrOperations
from zarrfs.mount.tree.tree import Tree
from zarrfs.testing import CountingStore, LatencyStore

KIB, MIB = 1 << 10, 1 << 20
BLOCK = 2 * MIB  # one layer of chunks
REQUEST = 128 * KIB
DATA = np.random.default_rng(3).integers(0, 2**16, (64, 128, 512), dtype="u2")  # 8 MiB
OTHER = DATA[::-1].copy()


class Mount:
    """Operations on a group. The pool has room for three blocks."""

    def __init__(self, store: Any) -> None:
        self.clock = Clock()
        self.pool = BlockPool(7 * MIB, clock=self.clock)
        self.tree = Tree(zarrfs.open_group(store, mode="r", cache_size=0), "root", clock=self.clock)
        self.operations = ZarrOperations(self.tree, lambda: None, pool=self.pool)

    def open(self, path: str = "/a.raw") -> int:
        return int(self.operations.open(path, os.O_RDONLY))

    def read(self, handle: int, offset: int, size: int = REQUEST, path: str = "/a.raw") -> bytes:
        return bytes(self.operations.read(path, size, offset, handle))

    def read_all(self, handle: int, path: str = "/a.raw", size: int = REQUEST) -> bytes:
        parts = []
        start = 0
        while part := self.read(handle, start, size, path):
            parts.append(part)
            start += len(part)
        return b"".join(parts)


@pytest.fixture
def location(tmp_path: Path) -> Path:
    group = zarrfs.create_group(tmp_path / "s.zarr")
    group.create_array("a", data=DATA, chunks=(16, 64, 64))
    group.create_array("b", data=OTHER, chunks=(16, 64, 64))
    return tmp_path / "s.zarr"


@pytest.fixture
def mount(location: Path) -> Iterator[Mount]:
    mount = Mount(location)
    yield mount
    mount.operations.destroy("/")


@pytest.mark.parametrize(
    "name", ["a.raw", "a.npy", "a.F.npy", "a.nii", "a.nrrd", "a.tif", "a.h5", "a.fits", "a.vti"]
)
@pytest.mark.parametrize("size", [REQUEST, REQUEST - 4095])
def test_a_pass_returns_the_bytes_of_each_view(mount: Mount, name: str, size: int) -> None:
    handle = mount.open(f"/{name}")
    entry: Any = mount.tree.lookup(f"/{name}")
    expected = entry.content.read(0, entry.content.size)
    for _ in range(2):
        assert mount.read_all(handle, f"/{name}", size) == expected
    assert mount.pool.statistics.hits > len(expected) // size


def test_a_pass_reads_ahead_and_assembles_each_block_once(mount: Mount) -> None:
    assert mount.read_all(mount.open()) == DATA.tobytes()
    statistics = mount.pool.statistics
    assert statistics.assembled == DATA.nbytes // BLOCK
    # The first block is assembled by the first requests, which are not known to be a pass.
    assert statistics.read_ahead >= statistics.assembled - 2


def test_small_reads_in_the_middle_of_a_file_become_a_pass(mount: Mount) -> None:
    handle = mount.open()
    for offset in range(BLOCK, DATA.nbytes, 16 * KIB):
        assert mount.read(handle, offset, 16 * KIB) == DATA.tobytes()[offset : offset + 16 * KIB]
    assert mount.pool.statistics.assembled == DATA.nbytes // BLOCK - 1
    assert mount.pool.statistics.read_ahead


def test_a_block_that_is_read_again_and_again_is_not_the_least_recently_used(
    location: Path, mount: Mount
) -> None:
    zarrfs.open_group(location, mode="r+").create_array("c", data=DATA[:16], chunks=(16, 64, 64))
    first, second = mount.open("/c.raw"), mount.open("/b.raw")
    for _ in range(2):  # blocks that are read again are kept
        for offset in range(0, BLOCK, REQUEST):
            mount.read(first, offset, path="/c.raw")
    for offset in range(0, DATA.nbytes, REQUEST):
        mount.read(second, offset, path="/b.raw")
        mount.read(first, offset % BLOCK, path="/c.raw")
    # The block of the first file was assembled once, and those of the second one.
    assert mount.pool.statistics.evicted
    assert mount.pool.statistics.assembled == 1 + DATA.nbytes // BLOCK


def test_a_file_is_being_read_until_its_read_has_ended(location: Path) -> None:
    is_reading, may_read = threading.Event(), threading.Event()

    def wait(operation: str, key: str) -> None:
        if "a/c/" in key and operation.startswith("get"):
            is_reading.set()
            assert may_read.wait(TIMEOUT)

    mount = Mount(LatencyStore(LocalStore(location, read_only=True), wait))
    handle = mount.open()
    file = mount.operations._files[handle]
    thread = threading.Thread(target=mount.read, args=(handle, 0))
    assert not file.is_being_read
    thread.start()
    assert is_reading.wait(TIMEOUT)
    assert file.is_being_read
    may_read.set()
    thread.join(TIMEOUT)
    assert not file.is_being_read
    mount.operations.destroy("/")


@pytest.mark.parametrize("is_stored", [False, True], ids=["missing", "stored"])
def test_a_pass_over_very_many_chunks_reads_each_once(
    is_stored: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The version of a block of so many chunks is not determined."""
    monkeypatch.setattr(flat_blocks, "MAX_VERSIONED_CHUNKS", 32)
    monkeypatch.setattr(flat_blocks, "MAX_BLOCK_CHUNKS", 64)
    shape = (64, 16, 2048)
    array = zarrfs.create_array(
        tmp_path / "a", shape=shape, chunks=(1, 1, 2048), dtype="u2", fill_value=3, compressors=None
    )
    if is_stored:
        array[...] = 5
    counting = CountingStore(LocalStore(tmp_path, read_only=True))
    zarrfs.create_group(tmp_path)
    mount = Mount(counting)
    handle = mount.open()
    counting.reset()
    before = decoded.nbytes
    assert mount.read_all(handle) == np.full(shape, 5 if is_stored else 3, "u2").tobytes()
    assert decoded.nbytes - before == (array.nbytes if is_stored else 0)
    assert mount.pool.statistics.assembled == 16
    assert {count for key, count in counting.keys.items() if "/c/" in key} == {1}
    if is_stored:
        array[0, 0, 0] = 7
        mount.clock.now += REVALIDATION_SECONDS
        assert mount.read(handle, 0, 2) == b"\7\0"
    mount.operations.destroy("/")


@pytest.mark.parametrize("options", [{}, {"compressors": None}], ids=["compressed", "uncompressed"])
def test_the_kernel_keeps_the_pages_of_an_unchanged_array_of_one_chunk(
    options: dict[str, Any], tmp_path: Path
) -> None:
    zarrfs.create_group(tmp_path).create_array("a", data=DATA, chunks=DATA.shape, **options)
    for item in [tmp_path, *tmp_path.rglob("*")]:
        os.utime(item, (10**9, 10**9))  # Pages of data that were changed just now are not kept.
    mount = Mount(tmp_path)
    kept = []
    for _ in range(3):
        handle = mount.open()
        kept.append(mount.operations.keeps_pages(handle))
        mount.read(handle, 0)
        mount.operations.release("/a.raw", handle)
        mount.clock.now += 2 * REVALIDATION_SECONDS
    assert kept == [False, True, True]
    mount.operations.destroy("/")
