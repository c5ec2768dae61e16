"""What the kernel is answered, asked of the operations themselves, without a mount."""

from __future__ import annotations

import errno
import json
import os
import stat
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import zarrfs
from tests.mount.test_members import LARGE, RefusingStore
from tests.mount.test_tree import Clock
from zarrfs.engine.stores.base import Store
from zarrfs.engine.stores.memory import MemoryStore
from zarrfs.engine.stores.wrappers.wrapper import CountingStore, WrapperStore
from zarrfs.errors import (
    ChunkDecodeError,
    MetadataError,
    MountError,
    NodeNotFoundError,
    ReadOnlyError,
    StoreError,
    ZarrError,
)
from zarrfs.mount.binding import load_binding
from zarrfs.mount.operations import error_number, make_operations
from zarrfs.mount.tree import FRESH_SECONDS, Tree


@pytest.fixture(scope="module")
def binding() -> ModuleType:
    try:
        return load_binding()
    except MountError as error:
        pytest.skip(str(error))


def operations(binding: ModuleType, store: Store, **options: Any) -> Any:
    return make_operations(binding, Tree(zarrfs.open(store), **options), lambda: None, mounted_at=1000.0)


def image() -> MemoryStore:
    store = MemoryStore()
    root = zarrfs.create_group(store, attributes={"small": 1})
    root.create_array("img", data=np.arange(5000, dtype="u2"), chunks=1000, compressors=None)
    root.create_group("inner")
    return store


def number_of(binding: ModuleType, operation: Any, *arguments: Any) -> int:
    with pytest.raises(binding.FuseOSError) as caught:
        operation(*arguments)
    number: int = caught.value.errno
    return number


@pytest.mark.parametrize(
    ("error", "number"),
    [
        (NodeNotFoundError("gone"), errno.ENOENT),
        (ReadOnlyError("no"), errno.EROFS),
        (StoreError("no", errno.EACCES), errno.EACCES),
        (StoreError("no", errno.EPERM), errno.EACCES),
        (StoreError("gone", errno.ENOENT), errno.ENOENT),
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
def test_each_exception_has_its_error_number(error: Exception, number: int) -> None:
    assert error_number(error) == number


def test_an_unreadable_member_has_the_error_number_of_its_cause(
    binding: ModuleType, caplog: pytest.LogCaptureFixture
) -> None:
    store = image()
    for cause, number in ((errno.EACCES, errno.EACCES), (errno.EIO, errno.EIO), (None, errno.EIO)):
        found = operations(binding, RefusingStore(store, "img", StoreError("refused\n\x1b[31m", cause)))
        for _ in range(3):
            assert number_of(binding, found.getattr, "/img.npy") == number
            assert number_of(binding, found.open, "/img.npy", os.O_RDONLY) == number
        assert number_of(binding, found.getattr, "/other.npy") == errno.ENOENT
        assert "img.error.txt" in found.readdir("/", 0)
    assert 0 < len(caplog.records) <= 3, "each error is logged once for a mount"
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
def test_an_error_while_reading_is_an_input_output_error_and_logged_once(
    error: Exception, binding: ModuleType, caplog: pytest.LogCaptureFixture
) -> None:
    class Failing(WrapperStore):
        def _before(self, operation: str, key: str) -> None:
            if key == "img/c/2" and operation.startswith("get"):
                raise error

    found = operations(binding, Failing(image()))
    handle = found.open("/img.raw", os.O_RDONLY)
    for _ in range(3):
        assert number_of(binding, found.read, "/img.raw", 100, 4100, handle) == errno.EIO
    assert bytes(found.read("/img.raw", 4, 0, handle)) == b"\0\0\1\0"
    assert len(caplog.records) == 1
    assert "/img.raw" in caplog.text


def test_wrong_uses_have_their_error_numbers(binding: ModuleType) -> None:
    found = operations(binding, image())
    assert number_of(binding, found.open, "/inner", os.O_RDONLY) == errno.EISDIR
    assert number_of(binding, found.open, "/img.npy", os.O_RDWR) == errno.EROFS
    assert number_of(binding, found.open, "/img.npy", os.O_WRONLY) == errno.EROFS
    assert number_of(binding, found.open, "/nothing", os.O_RDONLY) == errno.ENOENT
    assert number_of(binding, found.opendir, "/img.npy") == errno.ENOTDIR
    assert number_of(binding, found.readdir, "/img.npy", 0) == errno.ENOTDIR
    assert number_of(binding, found.read, "/inner", 10, 0, 99) == errno.EISDIR
    assert number_of(binding, found.access, "/img.npy", os.W_OK) == errno.EROFS
    assert number_of(binding, found.access, "/nothing", os.R_OK) == errno.ENOENT
    assert found.access("/img.npy", os.R_OK) == 0
    assert number_of(binding, found.readlink, "/img.npy") == errno.EINVAL
    for name in ("write", "unlink", "mkdir", "chmod", "rename", "truncate", "setxattr"):
        assert number_of(binding, getattr(found, name), "/img.npy", b"", 0, 0) == errno.EROFS


def test_the_size_mode_blocks_and_time_of_files(binding: ModuleType) -> None:
    store = image()
    found = operations(binding, store)
    raw = found.getattr("/img.raw")
    assert raw["st_size"] == 10_000
    assert raw["st_mode"] == stat.S_IFREG | 0o444
    assert raw["st_nlink"] == 1
    stored = sum(len(store.get(key) or b"") for key in store.list_prefix("img"))
    assert stored > 10_000
    assert raw["st_blocks"] == -(-stored // 512)
    assert (raw["st_uid"], raw["st_gid"]) == (os.getuid(), os.getgid())
    directory = found.getattr("/inner")
    assert directory["st_mode"] == stat.S_IFDIR | 0o555
    assert (directory["st_nlink"], directory["st_size"], directory["st_blocks"]) == (2, 0, 0)
    assert directory["st_mtime"] == int(1000.0 * 1e9), "the time of mounting, where the store has none"
    document = found.getattr("/.group.json")
    assert document["st_blocks"] == -(-document["st_size"] // 512) == 1


def test_blocks_of_a_sparse_array_are_those_of_what_is_stored(binding: ModuleType) -> None:
    store = MemoryStore()
    zarrfs.create_group(store)
    zarrfs.create_array(store, "sparse", shape=10**9, dtype="u1", chunks=1000)
    found = operations(binding, store)
    assert found.getattr("/sparse.raw")["st_size"] == 10**9
    assert found.getattr("/sparse.raw")["st_blocks"] <= 8


def test_the_count_of_what_is_stored_is_used_again(binding: ModuleType) -> None:
    store, clock = CountingStore(image()), Clock()
    found = operations(binding, store, clock=clock)
    found.getattr("/img.raw")
    assert store.calls["usage"] == 1
    found.getattr("/img.npy")
    found.getattr("/img.raw")
    assert store.calls["usage"] == 1
    clock.now += 2 * FRESH_SECONDS
    found.getattr("/img.raw")
    assert store.calls["usage"] == 2


def test_the_longer_a_count_takes_the_longer_it_is_used() -> None:
    clock = Clock()

    class Slow(CountingStore):
        def _before(self, operation: str, key: str) -> None:
            super()._before(operation, key)
            if operation == "usage":
                clock.now += 2

    store = Slow(image())
    tree = Tree(zarrfs.open(store), clock=clock)
    tree.find("/img.raw")
    clock.now += 39
    tree.find("/img.raw")
    assert store.calls["usage"] == 1
    clock.now += 2
    tree.find("/img.raw")
    assert store.calls["usage"] == 2


def test_stores_far_away_are_not_counted() -> None:
    class FarOff(CountingStore):
        def __init__(self, store: Store) -> None:
            super().__init__(store)
            self.concurrency = 8

    store = FarOff(image())
    tree = Tree(zarrfs.open(store))
    file = tree.find("/img.raw")
    assert file is not None
    assert file.stored == 10_000  # type: ignore[union-attr]
    assert store.calls["usage"] == 0


def test_extended_attributes_are_the_facts_of_the_node(binding: ModuleType) -> None:
    store = image()
    root = zarrfs.open_group(store, mode="r+")
    root.create_array("fits", data=np.zeros(1), attributes={"text": "x" * ((64 << 10) - len('{"text": ""}'))})
    root.create_array("too_long", data=np.zeros(1), attributes={"text": "x" * (64 << 10)})
    root.create_array("large", data=np.zeros(1), attributes=LARGE)
    found = operations(binding, store)
    assert found.getxattr("/img.npy", "user.zarr.shape") == b"[5000]"
    assert found.getxattr("/img.npy", "user.zarr.kind") == b"array"
    assert json.loads(found.getxattr("/", "user.zarr.attributes")) == {"small": 1}
    assert found.getxattr("/inner", "user.zarr.kind") == b"group"
    assert len(found.getxattr("/fits.npy", "user.zarr.attributes")) == 64 << 10
    for name in ("/too_long.npy", "/large.npy", "/large.json"):
        assert "user.zarr.attributes" not in found.listxattr(name)
        assert "user.zarr.shape" in found.listxattr(name)
        assert number_of(binding, found.getxattr, name, "user.zarr.attributes") == errno.ENODATA
    assert number_of(binding, found.getxattr, "/img.npy", "security.capability") == errno.ENODATA
    assert number_of(binding, found.getxattr, "/img.npy", "user.zarr.nothing") == errno.ENODATA
    assert "user.zarr.shape" not in found.listxattr("/inner")


def test_reads_are_cut_at_the_end_and_handles_stay_valid(binding: ModuleType) -> None:
    store, clock = image(), Clock()
    found = operations(binding, store, clock=clock)
    data = np.arange(5000, dtype="u2").tobytes()
    handle = found.open("/img.raw", os.O_RDONLY)
    other = found.open("/img.raw", os.O_RDONLY)
    assert handle != other
    assert bytes(found.read("/img.raw", 100, 9950, handle)) == data[9950:]
    assert bytes(found.read("/img.raw", 100, 10_000, handle)) == b""
    assert bytes(found.read("/img.raw", 100, 20_000, handle)) == b""
    found.release("/img.raw", other)
    zarrfs.open_array(store, "img", mode="r+").append(np.zeros(10, "u2"))
    clock.now += 2 * FRESH_SECONDS
    assert found.getattr("/img.raw")["st_size"] == 10_020
    assert bytes(found.read("/img.raw", 100, 0, handle)) == data[:100]
    found.release("/img.raw", handle)
    assert bytes(found.read("/img.raw", 100, 9990, handle)) == data[9990:] + bytes(20), "looked up again"
