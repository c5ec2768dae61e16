"""Reads that the native library serves: the same bytes as those of Python, never older ones, and the same decisions."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zarrfs
from tests.engine.native.executors import require_library
from tests.mount.mounted import BINDINGS, is_library_missing, mounted, needs_fuse
from tests.mount.native_requests import ClockedReads, Requests
from tests.mount.test_changes import Clock
from tests.processes import TIMEOUT
from zarrfs.engine.native.library import DISABLING_VARIABLE
from zarrfs.errors import StoreError
from zarrfs.mount.fuse.operations import ZarrOperations
from zarrfs.mount.native import library as native_library
from zarrfs.mount.native.library import load_reads
from zarrfs.mount.nodes.node_cache import REVALIDATION_SECONDS
from zarrfs.mount.reading.blocks import BlockPool
from zarrfs.mount.serving.statistics import MountDescription, MountStatistics, prometheus_text
from zarrfs.mount.tree.tree import Tree
from zarrfs.mount.writing.operations import WritableOperations

READS = Path(native_library.__file__).with_name("reads.c")
KIB, MIB = 1 << 10, 1 << 20
BLOCK = 2 * MIB  # one layer of chunks
SMALL_POOL = 7 * MIB  # three blocks
REQUEST = 128 * KIB
DATA = np.random.default_rng(3).integers(0, 2**16, (64, 128, 512), dtype="u2")  # 8 MiB
OTHER = DATA[::-1].copy()


class Mount:
    """Operations on a directory whose reads the library serves."""

    def __init__(self, path: Path, capacity: int = 32 * MIB, *, operations: Any = ZarrOperations) -> None:
        self.path = path
        self.clock = Clock()
        self.library = ClockedReads(self.clock)
        self.pool = BlockPool(capacity, clock=self.clock, library=self.library)
        mode = "r" if operations is ZarrOperations else "r+"
        self.tree = Tree(zarrfs.open_group(path, mode=mode), "root", clock=self.clock)
        self.operations = operations(self.tree, lambda: None, pool=self.pool)
        self.requests = Requests(self.operations, self.library)
        self._before = self.library.totals().requests

    @property
    def served(self) -> int:
        """The number of requests that the library served."""
        return self.library.totals().requests - self._before

    def open(self, path: str = "/a.raw") -> int:
        return int(self.operations.open(path, os.O_RDONLY))

    def read(self, handle: int, offset: int, size: int = REQUEST, path: str = "/a.raw") -> bytes:
        return self.requests.read(path, size, offset, handle)

    def read_all(self, handle: int, path: str = "/a.raw", size: int = REQUEST, start: int = 0) -> bytes:
        parts = []
        while part := self.requests.read(path, size, start, handle):
            parts.append(part)
            start += len(part)
        return b"".join(parts)


@contextmanager
def mounting(path: Path, *arguments: Any, **options: Any) -> Iterator[Mount]:
    mount = Mount(path, *arguments, **options)
    try:
        yield mount
    finally:
        mount.operations.destroy("/")


@pytest.fixture
def location(tmp_path: Path) -> Path:
    group = zarrfs.create_group(tmp_path / "s.zarr")
    group.create_array("a", data=DATA, chunks=(16, 64, 64))
    group.create_array("b", data=OTHER, chunks=(16, 64, 64))
    return tmp_path / "s.zarr"


@pytest.fixture
def mount(location: Path) -> Iterator[Mount]:
    with mounting(location) as mount:
        yield mount


# -- the same bytes --------------------------------------------------------------------------------------------


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
    requests = 2 * len(expected) // size
    assert mount.served > requests // 2


def test_random_requests_return_the_bytes(mount: Mount) -> None:
    expected = DATA.tobytes()
    handle = mount.open()
    mount.read_all(handle)
    rng = np.random.default_rng(0)
    for _ in range(2000):
        offset, size = int(rng.integers(len(expected) + 5000)), int(rng.integers(1, 3 * REQUEST))
        assert mount.read(handle, offset, size) == expected[offset : offset + size]
    assert mount.served > 500


def test_requests_of_several_threads_return_the_bytes(location: Path) -> None:
    expected = {"/a.raw": DATA.tobytes(), "/b.raw": OTHER.tobytes()}
    wrong: list[str] = []

    def read(mount: Mount, path: str) -> None:
        handle = mount.open(path)
        wrong.extend(path for _ in range(3) if mount.read_all(handle, path) != expected[path])
        mount.operations.release(path, handle)

    # There is no room for all blocks: their memory is used again.
    with mounting(location, SMALL_POOL) as mount:
        threads = [threading.Thread(target=read, args=(mount, path)) for path in [*expected] * 3]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert mount.pool.statistics.evicted
        assert mount.served
    assert wrong == []


def test_without_the_library_python_serves_all_requests(
    location: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv(DISABLING_VARIABLE, "0")
    assert load_reads() is None
    monkeypatch.delenv(DISABLING_VARIABLE)
    assert load_reads(tmp_path / "missing.so") is None
    (tmp_path / "invalid.so").write_bytes(b"no library")
    assert load_reads(tmp_path / "invalid.so") is None
    pool = BlockPool(library=None)
    operations = ZarrOperations(Tree(zarrfs.open_group(location)), lambda: None, pool=pool)
    handle = operations.open("/a.raw", os.O_RDONLY)
    data = b"".join(
        bytes(operations.read("/a.raw", REQUEST, o, handle)) for o in range(0, DATA.nbytes, REQUEST)
    )
    assert data == DATA.tobytes()
    assert pool.published.totals().requests == 0
    operations.destroy("/")


def test_a_library_of_other_sources_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    path = ClockedReads().path
    monkeypatch.setattr(native_library, "VERSION", native_library.VERSION + 1)
    assert load_reads(path) is None


# -- changes ---------------------------------------------------------------------------------------------------


def test_requests_are_served_by_python_after_the_time_for_which_a_block_is_valid(mount: Mount) -> None:
    handle = mount.open()
    mount.read_all(handle)
    before = mount.served
    mount.read(handle, REQUEST)
    assert mount.served == before + 1
    mount.clock.now += REVALIDATION_SECONDS
    mount.read(handle, REQUEST)
    assert mount.served == before + 1


def test_changed_chunks_are_seen_when_the_block_has_expired(mount: Mount) -> None:
    handle = mount.open()
    assert mount.read_all(handle) == DATA.tobytes()
    zarrfs.open_array(mount.path / "a", mode="r+")[...] = OTHER
    mount.clock.expire()
    assert mount.read_all(handle) == OTHER.tobytes()


@pytest.mark.parametrize("is_noticed", [False, True], ids=["expired", "noticed by another request"])
def test_an_array_that_was_resized_is_not_served(
    mount: Mount, is_noticed: bool, caplog: pytest.LogCaptureFixture
) -> None:
    handle = mount.open()
    mount.read_all(handle)
    zarrfs.open_array(mount.path / "a", mode="r+").resize((32, 128, 512))
    mount.clock.expire()
    if is_noticed:
        assert mount.operations.getattr("/a.raw")["st_size"] == DATA.nbytes // 2
    with pytest.raises(OSError, match=os.strerror(errno.ESTALE)):
        mount.read(handle, REQUEST)
    assert "has changed since it was opened" in caplog.text


def test_a_range_does_not_outlive_the_metadata_that_were_compared(mount: Mount) -> None:
    handle = mount.open()
    mount.read_all(handle)
    # The blocks are compared later than the metadata, which were compared when the file was opened.
    mount.clock.now += 0.9 * REVALIDATION_SECONDS
    mount.pool.clear()
    mount.read_all(handle)
    mount.clock.now += 0.2 * REVALIDATION_SECONDS
    before = mount.served
    mount.read(handle, REQUEST)
    assert mount.served == before


def test_a_range_of_a_file_whose_metadata_have_to_be_compared_is_not_published(
    mount: Mount, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Tree, "expires", lambda *_: float("-inf"))
    assert mount.read_all(mount.open()) == DATA.tobytes()
    assert mount.served == 0


@pytest.mark.parametrize("event", ["eviction", "rescan", "error", "closing"])
def test_ranges_are_retracted(location: Path, event: str) -> None:
    with mounting(location, SMALL_POOL) as mount:
        handle = mount.open()
        mount.read_all(handle)
        # The last block, which is present.
        offset = DATA.nbytes - REQUEST
        before = mount.served
        mount.read(handle, offset)
        assert mount.served == before + 1
        if event == "eviction":
            other = mount.open("/b.raw")
            for _ in range(2):
                mount.clock.expire()
                mount.read_all(other, "/b.raw")
        elif event == "rescan":
            mount.pool.clear()
        elif event == "error":
            mount.pool.published.retract_all()
        else:
            mount.operations.release("/a.raw", handle)
        before = mount.served
        assert mount.read(handle, offset) == DATA.tobytes()[offset:]
        assert mount.served == before


def test_a_range_is_not_published_after_a_change_that_its_file_was_not_compared_with(mount: Mount) -> None:
    handle = mount.open()
    mount.read_all(handle)
    file: Any = mount.operations._files[handle]
    changes = mount.pool.published.changes
    mount.pool.published.retract_all()
    # The second read in a block would publish it.
    for offset in (500 * KIB, 1200 * KIB):
        file._read(offset, KIB, changes)
    before = mount.served
    mount.read(handle, 100 * KIB, KIB)
    assert mount.served == before
    mount.read(handle, 1900 * KIB, KIB)
    assert mount.served == before + 1


def test_a_stale_file_retracts_all_ranges(mount: Mount, monkeypatch: pytest.MonkeyPatch) -> None:
    handle = mount.open()
    mount.read_all(handle)
    changes = mount.pool.published.changes
    file: Any = mount.operations._files[handle]
    read = file._read
    errors = [StoreError("changed", errno.ESTALE)]

    def fail_once(*arguments: Any) -> Any:
        if errors:
            raise errors.pop()
        return read(*arguments)

    monkeypatch.setattr(file, "_read", fail_once)
    mount.clock.expire()
    assert mount.read(handle, 0) == DATA.tobytes()[:REQUEST]
    assert mount.pool.published.changes > changes


def test_files_that_can_be_written_are_served_by_python(location: Path) -> None:
    with mounting(location, operations=WritableOperations) as mount:
        handle = int(mount.operations.open("/a.raw", os.O_RDWR))
        assert mount.read_all(handle) == DATA.tobytes()
        assert mount.read_all(handle) == DATA.tobytes()
        mount.operations.write("/a.raw", b"new!", 5 * REQUEST, handle)
        assert mount.read(handle, 5 * REQUEST, 4) == b"new!"
        mount.operations.release("/a.raw", handle)
        assert mount.served == 0


def test_handles_are_unique_among_the_sources_of_a_mount(location: Path) -> None:
    with mounting(location) as first:
        second = ZarrOperations(first.tree, lambda: None)
        handles = [first.open(), second.open("/a.raw", os.O_RDONLY), first.open()]
        assert len(set(handles)) == 3
        # The handles of control files count from 1.
        assert min(handles) >= 1 << 32
        second.destroy("/")


@pytest.mark.parametrize("sanitizer", ["", "thread", "address,undefined"])
def test_a_retraction_waits_for_copies(tmp_path: Path, sanitizer: str) -> None:
    """A program reads in several threads while another one publishes, retracts and overwrites the memory."""
    require_library()
    program = tmp_path / "stress"
    sources = [str(Path(__file__).with_name("native_stress.c")), str(READS)]
    flags = [f"-fsanitize={sanitizer}", "-fno-sanitize-recover=all"] if sanitizer else []
    command = ["cc", "-std=gnu99", "-O1", "-g", "-pthread", *flags, "-o", str(program), *sources]
    built = subprocess.run(command, capture_output=True, text=True, check=False)
    if sanitizer and built.returncode:
        pytest.skip(f"no sanitizer: {built.stderr.strip()[-200:]}")
    assert built.returncode == 0, built.stderr
    done = subprocess.run([str(program)], capture_output=True, text=True, check=False, timeout=TIMEOUT)
    if "unexpected memory mapping" in done.stderr:
        pytest.skip("the sanitizer does not support the layout of memory of this kernel")
    assert done.returncode == 0, done.stdout + done.stderr


# -- decisions that depend on the reads ------------------------------------------------------------------------


def test_a_pass_reads_ahead_and_assembles_each_block_once(location: Path) -> None:
    with mounting(location, SMALL_POOL) as mount:
        handle = mount.open()
        assert mount.read_all(handle) == DATA.tobytes()
        statistics = mount.pool.statistics
        assert mount.served > DATA.nbytes // REQUEST // 2
        assert statistics.assembled == DATA.nbytes // BLOCK
        # The first block is assembled by the first requests, which are not known to be a pass.
        assert statistics.read_ahead >= statistics.assembled - 2


def test_what_the_library_served_continues_the_access_of_a_file(location: Path) -> None:
    with mounting(location, SMALL_POOL) as mount:
        handle = mount.open()
        for offset in range(0, BLOCK, REQUEST):
            mount.read(handle, offset)
        assert mount.served == (BLOCK - MIB) // REQUEST
        # The next block begins 1 MiB after the last read that Python has seen. It belongs to the same pass.
        ahead = mount.pool.statistics.read_ahead
        mount.read(handle, BLOCK)
        file: Any = mount.operations._files[handle]
        assert file._pattern._run == BLOCK + REQUEST
        assert mount.pool.statistics.read_ahead == ahead + 1


def test_small_reads_of_a_block_become_a_pass(location: Path) -> None:
    with mounting(location, SMALL_POOL) as mount:
        mount.read_all(mount.open())
        last = DATA.nbytes - BLOCK
        handle = mount.open()
        for offset in range(last, DATA.nbytes, 16 * KIB):
            mount.read(handle, offset, 16 * KIB)
        file: Any = mount.operations._files[handle]
        assert file._pattern.is_long
        assert mount.served > BLOCK // (16 * KIB) // 3


def test_a_block_that_the_library_serves_is_not_the_least_recently_used(location: Path) -> None:
    zarrfs.open_group(location, mode="r+").create_array("c", data=DATA[:16], chunks=(16, 64, 64))
    with mounting(location, SMALL_POOL) as mount:
        first, second = mount.open("/c.raw"), mount.open("/b.raw")
        for _ in range(2):  # blocks that are read again are kept
            for offset in range(0, BLOCK, REQUEST):
                mount.read(first, offset, path="/c.raw")
        before = mount.served
        for offset in range(0, DATA.nbytes, REQUEST):
            mount.read(second, offset, path="/b.raw")
            mount.read(first, offset % BLOCK, path="/c.raw")
        assert mount.served - before > DATA.nbytes // REQUEST
        # The block of the first file was assembled once, and those of the second one.
        assert mount.pool.statistics.evicted
        assert mount.pool.statistics.assembled == 1 + DATA.nbytes // BLOCK


def test_what_the_library_served_counts_as_read(location: Path) -> None:
    with mounting(location, SMALL_POOL) as mount:
        handle = mount.open()
        for offset in range(0, BLOCK, REQUEST):
            mount.read(handle, offset)
        mount.pool.published.retract_all()
        (block,) = [block for block in mount.pool._store._blocks.values() if block.served_nbytes]
        assert block.nbytes == BLOCK
        assert block.is_read


def test_a_file_that_the_library_serves_is_being_read(mount: Mount, monkeypatch: pytest.MonkeyPatch) -> None:
    handle = mount.open()
    file: Any = mount.operations._files[handle]
    assert not file.is_being_read
    mount.read_all(handle)
    now = time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: now)
    mount.read(handle, REQUEST)
    assert file.is_being_read
    monkeypatch.setattr(time, "monotonic", lambda: now + 10)
    assert not file.is_being_read


def test_the_statistics_contain_what_the_library_served(mount: Mount) -> None:
    mount.read_all(mount.open())
    description = MountDescription(("s",), "/mnt", os.getpid(), 0.0, 0)
    statistics = MountStatistics(description, mount.pool, [], lambda: 0)
    totals = mount.library.totals()
    snapshot = statistics.snapshot()
    assert totals.active == 0
    assert snapshot["requests"]["read"] == snapshot["blocks"]["native_hits"] == totals.requests > 0
    assert snapshot["read_nbytes"] == totals.nbytes
    assert snapshot["blocks"]["hits"] == totals.requests + mount.pool.statistics.hits
    assert f'zarrfs_block_native_hits_total{{mountpoint="/mnt"}} {totals.requests}' in prometheus_text(
        snapshot
    )


# -- mounted files ---------------------------------------------------------------------------------------------


@needs_fuse
@pytest.mark.parametrize("binding", BINDINGS)
def test_every_binding_lets_the_library_serve_reads(binding: str, location: Path, tmp_path: Path) -> None:
    if is_library_missing(binding):
        pytest.skip(f"the library of {binding} is not installed")
    with mounted(location, tmp_path / "mnt", binding=binding) as mnt:
        statistics = mnt / ".zarrfs" / "stats.json"
        for name, data in (("a", DATA), ("b", OTHER)) * 2:
            with open(mnt / f"{name}.raw", "rb", buffering=0) as file:
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
                assert b"".join(iter(lambda file=file: file.read(MIB), b"")) == data.tobytes()  # type: ignore[misc]
        found = json.loads(statistics.read_text())
        assert bool(found["blocks"]["native_hits"]) == (load_reads() is not None)
        assert found["requests"]["read"] > found["blocks"]["native_hits"]
        zarrfs.open_array(location / "a", mode="r+")[...] = OTHER
        deadline = time.monotonic() + TIMEOUT
        while (mnt / "a.raw").read_bytes() != OTHER.tobytes():
            assert time.monotonic() < deadline
