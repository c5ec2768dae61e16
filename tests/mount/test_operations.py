"""The FUSE operations, called directly without a mount."""

from __future__ import annotations

import errno
import json
import os
import stat
import tracemalloc
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import zarrfs
from tests.mount.test_members import LARGE_ATTRIBUTES, RefusingStore
from tests.threads import Clock
from zarrfs.engine.stores.base import Store
from zarrfs.engine.stores.memory import MemoryStore
from zarrfs.errors import (
    ChunkDecodeError,
    MetadataError,
    NodeNotFoundError,
    ReadOnlyError,
    StoreError,
    ZarrError,
)
from zarrfs.files.content.freshness import REVALIDATION_SECONDS
from zarrfs.mount.fuse.control import ControlOperations
from zarrfs.mount.fuse.dispatch import Dispatcher
from zarrfs.mount.fuse.error_numbers import error_number
from zarrfs.mount.fuse.operations import ZarrOperations
from zarrfs.mount.fuse.permissions import Permissions
from zarrfs.mount.statistics import RequestCounters
from zarrfs.mount.tree.tree import Tree
from zarrfs.mount.writing.operations import WritableOperations
from zarrfs.testing import CountingStore
from zarrfs.testing.stores import ObservedStore


def make_test_operations(store: Store, **options: Any) -> ZarrOperations:
    return ZarrOperations(Tree(zarrfs.open(store), **options), lambda: None, mounted_at=1000.0)


def create_store() -> MemoryStore:
    store = MemoryStore()
    root = zarrfs.create_group(store, attributes={"small": 1})
    root.create_array("img", data=np.arange(5000, dtype="u2"), chunks=1000, compressors=None)
    root.create_group("inner")
    return store


def errno_of(operation: Any, *arguments: Any) -> int:
    with pytest.raises(OSError, match=r"Errno") as error_info:
        operation(*arguments)
    number = error_info.value.errno
    assert number is not None
    return number


@pytest.mark.parametrize(
    ("error", "number"),
    [
        (NodeNotFoundError("missing"), errno.ENOENT),
        (ReadOnlyError("no"), errno.EROFS),
        (StoreError("no", errno.EACCES), errno.EACCES),
        (StoreError("no", errno.EPERM), errno.EACCES),
        (StoreError("missing", errno.ENOENT), errno.ENOENT),
        (StoreError("full", errno.EMFILE), errno.EMFILE),
        (StoreError("large", errno.EFBIG), errno.EIO),
        (StoreError("none"), errno.EIO),
        (OSError("none"), errno.EIO),
        (PermissionError(errno.EACCES, "no"), errno.EACCES),
        (MemoryError(), errno.ENOMEM),
        (MetadataError("bad"), errno.EIO),
        (ChunkDecodeError("bad"), errno.EIO),
        (ZarrError("bad"), errno.EIO),
        (ValueError("bad"), errno.EIO),
    ],
    ids=repr,
)
def test_an_exception_is_converted_to_its_error_number(error: Exception, number: int) -> None:
    assert error_number(error) == number


def test_an_unreadable_member_has_the_error_number_of_its_cause(caplog: pytest.LogCaptureFixture) -> None:
    store = create_store()
    for cause, number in ((errno.EACCES, errno.EACCES), (errno.EIO, errno.EIO), (None, errno.EIO)):
        operations = make_test_operations(RefusingStore(store, "img", StoreError("refused\n\x1b[31m", cause)))
        for _ in range(3):
            assert errno_of(operations.getattr, "/img.npy") == number
            assert errno_of(operations.open, "/img.npy", os.O_RDONLY) == number
        assert errno_of(operations.getattr, "/other.npy") == errno.ENOENT
        assert "img.error.txt" in operations.readdir("/", 0)
    assert 0 < len(caplog.records) <= 3, "each error is logged once per mount"
    for record in caplog.records:
        assert record.getMessage().isprintable()


@pytest.mark.parametrize(
    "error",
    [
        StoreError("bad"),
        StoreError("not allowed", errno.EACCES),
        OSError(errno.EFBIG, "large"),
        MemoryError(),
        RuntimeError("boom"),
    ],
    ids=repr,
)
def test_a_read_error_is_returned_as_eio_and_logged_once(
    error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    class FailingStore(ObservedStore):
        def _before(self, operation: str, key: str) -> None:
            if key == "img/c/2" and operation.startswith("get"):
                raise error

    operations = make_test_operations(FailingStore(create_store()))
    handle = operations.open("/img.raw", os.O_RDONLY)
    for _ in range(3):
        assert errno_of(operations.read, "/img.raw", 100, 4100, handle) == errno.EIO
    assert bytes(operations.read("/img.raw", 4, 0, handle)) == b"\0\0\1\0"
    assert len(caplog.records) == 1
    assert "/img.raw" in caplog.text


def test_an_incorrect_use_returns_its_error_number() -> None:
    operations = make_test_operations(create_store())
    assert errno_of(operations.open, "/inner", os.O_RDONLY) == errno.EISDIR
    assert errno_of(operations.open, "/img.npy", os.O_RDWR) == errno.EROFS
    assert errno_of(operations.open, "/img.npy", os.O_WRONLY) == errno.EROFS
    assert errno_of(operations.open, "/nothing", os.O_RDONLY) == errno.ENOENT
    assert errno_of(operations.opendir, "/img.npy") == errno.ENOTDIR
    assert errno_of(operations.readdir, "/img.npy", 0) == errno.ENOTDIR
    assert errno_of(operations.read, "/inner", 10, 0, 99) == errno.EISDIR
    assert errno_of(operations.access, "/img.npy", os.W_OK) == errno.EROFS
    assert errno_of(operations.access, "/nothing", os.R_OK) == errno.ENOENT
    assert operations.access("/img.npy", os.R_OK) == 0
    assert errno_of(operations.readlink, "/img.npy") == errno.EINVAL
    for name in ("write", "unlink", "mkdir", "chmod", "rename", "truncate", "setxattr"):
        assert errno_of(getattr(operations, name), "/img.npy", b"", 0, 0) == errno.EROFS


def test_getattr_returns_size_mode_blocks_and_time() -> None:
    store = create_store()
    operations = make_test_operations(store)
    raw = operations.getattr("/img.raw")
    assert raw["st_size"] == 10_000
    assert raw["st_mode"] == stat.S_IFREG | 0o444
    assert raw["st_nlink"] == 1
    stored = sum(len(store.get(key) or b"") for key in store.list_prefix("img"))
    assert stored > 10_000
    assert raw["st_blocks"] == -(-stored // 512)
    assert (raw["st_uid"], raw["st_gid"]) == (os.getuid(), os.getgid())
    directory = operations.getattr("/inner")
    assert directory["st_mode"] == stat.S_IFDIR | 0o555
    assert (directory["st_nlink"], directory["st_size"], directory["st_blocks"]) == (2, 0, 0)
    assert directory["st_mtime"] == int(1000.0 * 1e9), "the time of mounting if the store has no time"
    document = operations.getattr("/.group.json")
    assert document["st_blocks"] == -(-document["st_size"] // 512) == 1


def test_blocks_of_a_sparse_array_count_stored_bytes_only() -> None:
    store = MemoryStore()
    zarrfs.create_group(store)
    zarrfs.create_array(store, "sparse", shape=10**9, dtype="u1", chunks=1000)
    operations = make_test_operations(store)
    assert operations.getattr("/sparse.raw")["st_size"] == 10**9
    assert operations.getattr("/sparse.raw")["st_blocks"] <= 8


def test_the_stored_size_is_cached() -> None:
    store, clock = CountingStore(create_store()), Clock()
    operations = make_test_operations(store, clock=clock)
    operations.getattr("/img.raw")
    assert store.calls["usage"] == 1
    operations.getattr("/img.npy")
    operations.getattr("/img.raw")
    assert store.calls["usage"] == 1
    clock.now += 2 * REVALIDATION_SECONDS
    operations.getattr("/img.raw")
    assert store.calls["usage"] == 2


def test_an_expensive_stored_size_is_cached_longer() -> None:
    clock = Clock()

    class SlowStore(CountingStore):
        def _before(self, operation: str, key: str) -> None:
            super()._before(operation, key)
            if operation == "usage":
                clock.now += 2

    store = SlowStore(create_store())
    tree = Tree(zarrfs.open(store), clock=clock)
    tree.lookup("/img.raw")
    clock.now += 39
    tree.lookup("/img.raw")
    assert store.calls["usage"] == 1
    clock.now += 2
    tree.lookup("/img.raw")
    assert store.calls["usage"] == 2


def test_the_stored_size_of_high_latency_stores_is_not_determined() -> None:
    class HighLatencyStore(CountingStore):
        def __init__(self, store: Store) -> None:
            super().__init__(store)
            self.concurrency = 8
            self.is_remote = True

    store = HighLatencyStore(create_store())
    tree = Tree(zarrfs.open(store))
    file = tree.lookup("/img.raw")
    assert file is not None
    assert file.stored_nbytes == 10_000  # type: ignore[union-attr]
    assert store.calls["usage"] == 0


def test_extended_attributes_contain_the_metadata_of_the_node() -> None:
    store = create_store()
    root = zarrfs.open_group(store, mode="r+")
    root.create_array("fits", data=np.zeros(1), attributes={"text": "x" * ((64 << 10) - len('{"text": ""}'))})
    root.create_array("too_long", data=np.zeros(1), attributes={"text": "x" * (64 << 10)})
    root.create_array("large", data=np.zeros(1), attributes=LARGE_ATTRIBUTES)
    operations = make_test_operations(store)
    assert operations.getxattr("/img.npy", "user.zarr.shape") == b"[5000]"
    assert operations.getxattr("/img.npy", "user.zarr.kind") == b"array"
    assert json.loads(operations.getxattr("/", "user.zarr.attributes")) == {"small": 1}
    assert operations.getxattr("/inner", "user.zarr.kind") == b"group"
    assert len(operations.getxattr("/fits.npy", "user.zarr.attributes")) == 64 << 10
    for name in ("/too_long.npy", "/large.npy", "/large.json"):
        assert "user.zarr.attributes" not in operations.listxattr(name)
        assert "user.zarr.shape" in operations.listxattr(name)
        assert errno_of(operations.getxattr, name, "user.zarr.attributes") == errno.ENODATA
        assert errno_of(operations.getxattr, name, "user.other") == errno.ENODATA
    assert errno_of(operations.getxattr, "/img.npy", "security.capability") == errno.EOPNOTSUPP
    assert errno_of(operations.getxattr, "/img.npy", "user.zarr.nothing") == errno.ENODATA
    assert "user.zarr.shape" not in operations.listxattr("/inner")


def test_reads_end_at_the_end_of_the_file_and_handles_remain_valid() -> None:
    store, clock = create_store(), Clock()
    operations = make_test_operations(store, clock=clock)
    data = np.arange(5000, dtype="u2").tobytes()
    handle = operations.open("/img.raw", os.O_RDONLY)
    other = operations.open("/img.raw", os.O_RDONLY)
    assert handle != other
    assert bytes(operations.read("/img.raw", 100, 9950, handle)) == data[9950:]
    assert bytes(operations.read("/img.raw", 100, 10_000, handle)) == b""
    assert bytes(operations.read("/img.raw", 100, 20_000, handle)) == b""
    operations.release("/img.raw", other)
    zarrfs.open_array(store, "img", mode="r+").append(np.zeros(10, "u2"))
    clock.now += 2 * REVALIDATION_SECONDS
    assert operations.getattr("/img.raw")["st_size"] == 10_020
    assert bytes(operations.read("/img.raw", 100, 0, handle)) == data[:100]
    operations.release("/img.raw", handle)
    assert bytes(operations.read("/img.raw", 100, 9990, handle)) == data[9990:] + bytes(20), (
        "the path is looked up again"
    )


def test_a_read_only_mount_has_the_size_of_the_disk_and_no_space_for_users(tmp_path: Path) -> None:
    zarrfs.create_group(tmp_path / "s.zarr")
    status = make_test_operations(zarrfs.open(tmp_path / "s.zarr").store).statfs("/")
    disk = os.statvfs(tmp_path)
    assert (status["f_blocks"], status["f_frsize"]) == (disk.f_blocks, disk.f_frsize)
    assert 0 < status["f_bfree"] <= status["f_blocks"]
    assert status["f_bavail"] == status["f_favail"] == 0


def test_a_read_only_mount_of_another_store_has_no_free_space() -> None:
    status = make_test_operations(create_store()).statfs("/")
    assert status.pop("f_bsize") == status.pop("f_frsize") == 4096
    assert status.pop("f_namemax") == 255
    assert len(status) == 6
    assert set(status.values()) == {0}


def test_closed_files_occupy_no_memory() -> None:
    operations = WritableOperations(Tree(zarrfs.open(create_store(), mode="r+")), lambda: None)
    dispatcher: Any = Dispatcher(
        operations, {}, ControlOperations(), RequestCounters(), lambda: None, Permissions()
    )
    file = SimpleNamespace(fh=0, flags=os.O_RDWR)

    def open_and_close(count: int) -> None:
        for _ in range(count):
            dispatcher.open("/img.raw", file)
            dispatcher.release("/img.raw", file)

    open_and_close(100)
    tracemalloc.start()
    try:
        open_and_close(10)
        before, _ = tracemalloc.get_traced_memory()
        open_and_close(1000)
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert after - before < 20_000
