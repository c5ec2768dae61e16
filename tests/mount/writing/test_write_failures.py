"""Stores that fail, and the bounds and merging of dirty chunks."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zarrfs
from tests.mount.test_operations import errno_of
from tests.mount.writing.layouts import LAYOUTS, create_array, operations_of
from tests.threads import run_in_threads
from zarrfs.engine.stores.memory import MemoryStore
from zarrfs.errors import StoreError
from zarrfs.mount.writing.write_buffer import IDLE_SECONDS, RETRY_SECONDS, WriteBuffer
from zarrfs.testing import FailingStore, LatencyStore


def chunk_writes(number: int) -> Callable[[str, str], Exception | None]:
    """Return a function that lets writes of chunks fail with an error number."""

    def failure(operation: str, key: str) -> Exception | None:
        is_chunk = not key.endswith("zarr.json")
        return StoreError("the write failed", number) if operation.startswith("set") and is_chunk else None

    return failure


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EROFS])
def test_an_error_reaches_the_program_and_the_bytes_are_kept(
    number: int, caplog: pytest.LogCaptureFixture
) -> None:
    store = MemoryStore()
    expected = bytearray(create_array(store, "compressed").tobytes())
    failures = [chunk_writes(number)]
    failing = FailingStore(store, lambda operation, key: failures[0](operation, key))
    operations = operations_of(failing)
    handle = operations.open("/img.raw", os.O_RDWR)
    assert operations.write("/img.raw", b"abc", 100, handle) == 3
    expected[100:103] = b"abc"
    assert errno_of(operations.fsync, "/img.raw", 0, handle) == number
    assert errno_of(operations.flush, "/img.raw", handle) == number
    assert bytes(operations.read("/img.raw", 5000, 0, handle)) == expected
    assert operations.write("/img.raw", b"xyz", 101, handle) == 3
    expected[101:104] = b"xyz"
    failures[0] = lambda operation, key: None
    operations.flush("/img.raw", handle)
    assert bytes(zarrfs.open_array(store, "img").read_bytes(0, len(expected))) == expected
    assert number == errno.EROFS or "the write failed" in caplog.text
    operations.destroy("/")


def test_a_full_store_is_reported_by_write_and_the_buffer_stays_bounded(
    caplog: pytest.LogCaptureFixture,
) -> None:
    store = MemoryStore()
    create_array(store, "uncompressed")
    buffer = WriteBuffer(1000)
    operations = operations_of(FailingStore(store, chunk_writes(errno.ENOSPC)), buffer)
    handle = operations.open("/img.raw", os.O_RDWR)
    numbers = set()
    for start in range(0, 1980, 220):
        try:
            operations.write("/img.raw", bytes(220), start, handle)
        except OSError as error:
            numbers.add(error.errno)
        assert buffer.nbytes <= 1000 + 2 * 4 * 5 * 6 * 2
    assert numbers == {errno.ENOSPC}
    assert "the write failed" in caplog.text
    operations.destroy("/")


def test_bytes_that_cannot_be_stored_before_the_mount_ends_are_reported(
    caplog: pytest.LogCaptureFixture,
) -> None:
    store = MemoryStore()
    create_array(store, "compressed")
    operations = operations_of(FailingStore(store, chunk_writes(errno.EIO)))
    handle = operations.open("/img.raw", os.O_RDWR)
    operations.write("/img.raw", b"abc", 100, handle)
    operations.destroy("/")
    assert "/img: the data written to 1 chunks of the array are lost ((0, 0, 1))" in caplog.text
    assert len(operations.lost) == 1


def test_a_corrupt_chunk_is_not_replaced_by_a_partial_write(caplog: pytest.LogCaptureFixture) -> None:
    store = MemoryStore()
    create_array(store, "compressed")
    store.set("img/c/0/0/0", b"corrupt")
    operations = operations_of(store)
    handle = operations.open("/img.raw", os.O_RDWR)
    operations.write("/img.raw", b"abc", 0, handle)
    assert errno_of(operations.fsync, "/img.raw", 0, handle) == errno.EIO
    assert bytes(store.get("img/c/0/0/0") or b"") == b"corrupt"
    assert "corrupt" in caplog.text or "broken" in caplog.text
    operations.destroy("/")


def test_an_array_that_is_removed_by_another_program_is_reported(caplog: pytest.LogCaptureFixture) -> None:
    store = MemoryStore()
    create_array(store, "compressed")
    operations = operations_of(store)
    handle = operations.open("/img.raw", os.O_RDWR)
    operations.write("/img.raw", b"abc", 0, handle)
    del zarrfs.open_group(store, mode="r+")["img"]
    assert errno_of(operations.flush, "/img.raw", handle) == errno.EIO
    operations.destroy("/")
    assert list(store.list_prefix("img")) == []
    assert "are lost" in caplog.text


@pytest.mark.parametrize("layout", ["uncompressed", "compressed", "sharded"])
def test_a_sequential_write_reads_no_chunk_and_writes_each_once(layout: str) -> None:
    store = MemoryStore()
    data = create_array(store, layout)
    calls: list[tuple[str, str]] = []
    operations = operations_of(LatencyStore(store, lambda operation, key: calls.append((operation, key))))
    handle = operations.open("/img.raw", os.O_RDWR)
    calls.clear()
    content = (data + 1).tobytes()
    for start in range(0, len(content), 100):
        operations.write("/img.raw", content[start : start + 100], start, handle)
    operations.flush("/img.raw", handle)
    chunks = [call for call in calls if "/c/" in call[1]]
    assert {operation for operation, _ in chunks} <= {"set", "set_parts"}
    assert (
        len(chunks)
        == len({key for _, key in chunks})
        == zarrfs.open_array(store, "img").storage.grid_shape[0]
        * int(np.prod(zarrfs.open_array(store, "img").storage.grid_shape[1:]))
    )
    operations.destroy("/")
    np.testing.assert_array_equal(zarrfs.open_array(store, "img")[...], data + 1)


def test_idle_chunks_are_stored_in_the_background(caplog: pytest.LogCaptureFixture) -> None:
    store = MemoryStore()
    create_array(store, "compressed")
    now = [0.0]
    failures = [chunk_writes(errno.EIO)]
    buffer = WriteBuffer(clock=lambda: now[0])
    operations = operations_of(FailingStore(store, lambda *arguments: failures[0](*arguments)), buffer)
    handle = operations.open("/img.raw", os.O_RDWR)
    operations.write("/img.raw", b"abc", 0, handle)
    buffer.flush_idle()
    assert buffer.nbytes, "the chunk was written a moment ago"
    now[0] += IDLE_SECONDS
    buffer.flush_idle()
    assert buffer.nbytes
    assert "kept in memory" in caplog.text
    failures[0] = lambda operation, key: None
    now[0] += RETRY_SECONDS
    buffer.flush_idle()
    assert not buffer.nbytes
    assert bytes(zarrfs.open_array(store, "img").read_bytes(0, 3)) == b"abc"
    operations.destroy("/")


def test_bytes_that_are_written_after_closing_are_stored_with_the_last_reference(
    caplog: pytest.LogCaptureFixture,
) -> None:
    store = MemoryStore()
    create_array(store, "compressed")
    failures = [chunk_writes(errno.EIO)]
    operations = operations_of(FailingStore(store, lambda *arguments: failures[0](*arguments)))
    for fails in (True, False):
        handle = operations.open("/img.raw", os.O_RDWR)
        operations.write("/img.raw", b"abc", 0, handle)
        operations.release("/img.raw", handle)
        assert ("is kept" in caplog.text) == fails
        assert (bytes(zarrfs.open_array(store, "img").read_bytes(0, 3)) == b"abc") == (not fails)
        failures[0] = lambda operation, key: None
        caplog.clear()
    operations.destroy("/")


@pytest.mark.parametrize("layout", LAYOUTS)
def test_threads_write_different_bytes_of_one_array(layout: str, tmp_path: Path) -> None:
    expected = bytearray(create_array(tmp_path / "a.zarr", layout).tobytes())
    operations = operations_of(tmp_path / "a.zarr", WriteBuffer(2000))
    handle = operations.open("/img.raw", os.O_RDWR)

    def write(first: int) -> None:
        rng = np.random.default_rng(first)
        for start in rng.permutation(np.arange(first, len(expected), 97 * 4)).tolist():
            value = rng.bytes(min(97, len(expected) - start))
            operations.write("/img.raw", value, start, handle)
            assert bytes(operations.read("/img.raw", len(value), start, handle)) == value
            expected[start : start + len(value)] = value
            if start % 5 == 0:
                operations.fsync("/img.raw", 0, handle)

    run_in_threads(write, range(0, 4 * 97, 97))
    operations.destroy("/")
    assert bytes(zarrfs.open_array(tmp_path / "a.zarr", "img").read_bytes(0, len(expected))) == expected


def test_bytes_after_the_elements_are_read_back_before_they_become_rows() -> None:
    store = MemoryStore()
    data = create_array(store, "uncompressed")
    operations = operations_of(store)
    row = data[4].tobytes()
    expected, end = data.tobytes() + row[:100], data.nbytes
    handle = operations.open("/img.raw", os.O_RDWR)
    operations.write("/img.raw", row[:100], end, handle)
    for offset, size in ((0, end + 100), (end - 10, 50), (end, 100), (end + 20, 30), (end + 90, 50)):
        assert bytes(operations.read("/img.raw", size, offset, handle)) == expected[offset : offset + size]
    operations.write("/img.raw", row[100:], end + 100, handle)
    operations.flush("/img.raw", handle)
    operations.release("/img.raw", handle)
    array = zarrfs.open_array(store, "img")
    assert array.shape == (len(data) + 1, *data.shape[1:])
    assert np.array_equal(array[-1], data[4])


def test_a_store_that_is_read_only_is_not_changed(tmp_path: Path) -> None:
    with zarrfs.open_group(tmp_path / "a.zip", mode="w") as root:
        root.create_array("img", data=np.arange(10, dtype="u1"))
    with zarrfs.open_group(tmp_path / "a.zip", mode="r") as archive:
        assert archive.store.read_only
        operations = operations_of(archive.store)
        refused: list[tuple[Any, ...]] = [
            (operations.open, "/img.raw", os.O_RDWR),
            (operations.open, "/img.npy", os.O_WRONLY | os.O_TRUNC),
            (operations.create, "/new.npy", 0o644),
            (operations.mkdir, "/new", 0o755),
            (operations.truncate, "/img.raw", 5),
            (operations.rename, "/img.npy", "/new.npy"),
            (operations.setxattr, "/img.npy", "user.zarr.attrs.a", b"1", 0),
        ]
        for arguments in refused:
            assert errno_of(*arguments) == errno.EROFS, arguments
        assert sorted(operations.readdir("/", 0)[2:]) == [".group.json", "img.json", "img.npy", "img.raw"]
        operations.destroy("/")


@pytest.mark.parametrize("suffix", [".raw", ".npy"])
@pytest.mark.parametrize("rows", [2, 4, 8])
def test_a_file_whose_array_another_program_resizes_has_no_bytes_of_two_versions(
    rows: int, suffix: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """As in a read-only mount: more rows continue a .raw file, and any other change is ESTALE."""
    root = zarrfs.create_group(tmp_path / "a.zarr")
    array = root.create_array("img", data=np.arange(4 * 100, dtype="<u2").reshape(4, 100), chunks=(1, 100))
    operations = operations_of(tmp_path / "a.zarr")
    handle = operations.open(f"/img{suffix}", os.O_RDONLY)
    size = operations.getattr(f"/img{suffix}")["st_size"]
    before = bytes(operations.read(f"/img{suffix}", size - 200, 0, handle))
    array.attrs["a"] = 1
    array.resize((rows, 100))
    if rows == 4 or (rows == 8 and suffix == ".raw"):
        for _ in range(2):
            rest = bytes(operations.read(f"/img{suffix}", 2000, len(before), handle))
            assert len(before + rest) == size + (rows - 4) * 200
            assert (before + rest)[size - 800 : size] == np.arange(400, dtype="<u2").tobytes()
    else:
        for _ in range(2):
            assert errno_of(operations.read, f"/img{suffix}", 200, len(before), handle) == errno.ESTALE
    operations.release(f"/img{suffix}", handle)
    assert operations.getattr(f"/img{suffix}")["st_size"] in (size, size + (rows - 4) * 200)
    operations.destroy("/")
