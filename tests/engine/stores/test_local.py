"""Tests of LocalStore: atomic writes, symbolic links and unusual files."""

from __future__ import annotations

import errno
import fcntl
import gc
import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import zarrfs
from zarrfs.engine.stores import locks
from zarrfs.engine.stores.base import ByteRange, Store, ValueCreatedError
from zarrfs.engine.stores.local.store import LocalStore
from zarrfs.engine.stores.local.temporary import TemporaryStore
from zarrfs.engine.stores.locations import open_store
from zarrfs.engine.stores.temporary_files import TEMPORARY_PREFIX
from zarrfs.engine.stores.wrappers.caching import LRUStore, MetadataCacheStore
from zarrfs.engine.stores.wrappers.prefix import PrefixStore
from zarrfs.engine.stores.wrappers.synchronizers import (
    ProcessSynchronizer,
    SynchronizedStore,
    ThreadSynchronizer,
)
from zarrfs.errors import LocationError, ReadOnlyError, StoreError
from zarrfs.testing import CountingStore


def test_a_failed_write_leaves_the_old_value_and_no_temporary_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = LocalStore(tmp_path)
    store.set("a", b"old")

    def raise_no_space(*args: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "replace", raise_no_space)
    with pytest.raises(StoreError, match="No space left") as caught:
        store.set("a", b"new")
    assert caught.value.errno == errno.ENOSPC
    assert store.get("a") == b"old"
    assert os.listdir(tmp_path) == ["a"]


def test_temporary_files_are_not_listed(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    store.set("a", b"1")
    (tmp_path / f"{TEMPORARY_PREFIX}xyz").write_bytes(b"half")
    assert list(store.list_prefix()) == ["a"]
    assert store.list_dir().keys == ["a"]
    assert store.usage().keys == 1


def test_deleting_the_last_file_deletes_its_empty_directories(tmp_path: Path) -> None:
    store = LocalStore(tmp_path / "s")
    store.set("a/b/c", b"1")
    store.delete("a/b/c")
    assert os.listdir(tmp_path / "s") == []
    store.set("a/b/c", b"1")
    store.delete_prefix("a")
    assert os.listdir(tmp_path / "s") == []


def test_links_are_followed_without_cycles(tmp_path: Path) -> None:
    root = tmp_path / "s"
    (root / "elsewhere").mkdir(parents=True)
    (root / "elsewhere" / "x").write_bytes(b"1")
    (root / "link").symlink_to("elsewhere")
    (root / "file").symlink_to(root / "elsewhere" / "x")
    (root / "loop").symlink_to(root)
    (root / "self").symlink_to("self")
    (root / "dangling").symlink_to("nowhere")
    store = LocalStore(root)
    assert store.get("link/x") == store.get("file") == b"1"
    assert store.size("link/x") == store.size("file") == 1
    assert "link/x" in list(store.list_prefix())
    assert store.get("dangling") is None
    with pytest.raises(StoreError, match="Too many levels"):
        store.get("self")


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """A store with absolute and relative links to a directory and a file outside of it."""
    (tmp_path / "outside" / "deep").mkdir(parents=True)
    (tmp_path / "outside" / "x").write_bytes(b"secret")
    (tmp_path / "outside" / "deep" / "x").write_bytes(b"secret")
    root = tmp_path / "s"
    root.mkdir()
    (root / "inside").write_bytes(b"1")
    (root / "directory").symlink_to(tmp_path / "outside")
    (root / "file").symlink_to("../outside/x")
    (root / "chain").symlink_to("file")
    (root / "dangling").symlink_to("../nowhere")
    return root


@pytest.mark.parametrize("key", ["file", "chain", "directory/x", "directory/deep/x", "dangling"])
def test_an_external_link_is_refused(key: str, outside: Path) -> None:
    store = LocalStore(outside)
    for operation in (
        lambda: store.get(key),
        lambda: store.get_within(key, 100),
        lambda: store.get_into(key, memoryview(bytearray(6))),
        lambda: store.get_ranges(key, [ByteRange(0, 1)]),
        lambda: store.size(key),
        lambda: store.exists(key),
        lambda: store.stamp(key),
    ):
        with pytest.raises(StoreError, match=r"leads out of the store.*--allow-external"):
            operation()
    assert store.get("inside") == b"1"
    allowed = LocalStore(outside, allow_external=True)
    assert allowed.get(key) == (None if key == "dangling" else b"secret")


def test_external_links_are_not_used_for_writing_deleting_or_listing(outside: Path) -> None:
    store = LocalStore(outside)
    before = sorted((outside.parent / "outside").rglob("*"))
    for operation in (
        lambda: store.set("directory/new", b"1"),
        lambda: store.set("directory/new/deeper", b"1"),
        lambda: store.delete("directory/x"),
        lambda: store.list_dir("directory"),
        lambda: list(store.list_prefix()),
        lambda: list(store.list_prefix("directory/deep")),
        lambda: store.move_prefix("directory/deep", "taken"),
    ):
        with pytest.raises(StoreError, match="leads out of the store"):
            operation()
    assert store.list_dir().prefixes == ["directory"]
    assert store.usage().keys == 4
    store.set("file", b"replaced")  # the link itself
    assert store.get("file") == b"replaced"
    store.delete("chain")
    store.delete_prefix("directory")
    assert not os.path.lexists(outside / "directory")
    (outside / "directory").symlink_to("../outside")
    store.delete_prefix("")
    assert os.listdir(outside) == []
    assert sorted((outside.parent / "outside").rglob("*")) == before


@pytest.mark.parametrize("allows_external", [False, True])
def test_an_external_link_in_place_of_a_removed_directory_is_refused(
    allows_external: bool, outside: Path
) -> None:
    store = LocalStore(outside, allow_external=allows_external)
    store.set("new/x", b"1")
    assert store.get("new/x") == b"1"
    store.delete("new/x")
    assert not (outside / "new").exists(), "the empty directory remains"
    (outside / "new").symlink_to("../outside")
    if allows_external:
        assert store.get("new/x") == b"secret"
        return
    for operation in (lambda: store.get("new/x"), lambda: store.set("new/y", b"1")):
        with pytest.raises(StoreError, match="leads out of the store"):
            operation()
    assert not (outside.parent / "outside" / "y").exists()


def test_the_root_can_be_a_link_and_links_within_the_hierarchy_are_followed(tmp_path: Path) -> None:
    root = tmp_path / "real"
    group = zarrfs.create_group(root)
    group.create_array("a", data=np.arange(3), chunks=3)
    group.create_array("b", shape=3, dtype=int, chunks=3)
    (root / "b" / "c").symlink_to("../a/c")
    (tmp_path / "link").symlink_to("real")
    for location in (root, tmp_path / "link"):
        assert zarrfs.open_array(location, "b")[...].tolist() == [0, 1, 2]
        assert zarrfs.open_array(location / "b")[...].tolist() == [0, 1, 2]


def test_external_links_are_followed_with_allow_external(tmp_path: Path) -> None:
    zarrfs.create_array(tmp_path / "real", data=np.arange(3), chunks=3)
    zarrfs.create_array(tmp_path / "s", shape=3, dtype=int, chunks=3)
    (tmp_path / "s" / "c").symlink_to("../real/c")
    with pytest.raises(StoreError, match="leads out of the store"):
        zarrfs.open_array(tmp_path / "s")[...]
    assert zarrfs.open_array(tmp_path / "s", allow_external=True)[...].tolist() == [0, 1, 2]
    access = zarrfs.Access(allow_external=True)
    array = zarrfs.open_array(tmp_path / "s", access=access)
    assert array[...].tolist() == [0, 1, 2]
    assert pickle.loads(pickle.dumps(array))[...].tolist() == [0, 1, 2]
    store, _ = open_store(tmp_path / "s", allow_external=True)
    assert zarrfs.open_array(store)[...].tolist() == [0, 1, 2]


def test_a_very_deep_hierarchy_is_deleted(tmp_path: Path) -> None:
    store = LocalStore(tmp_path / "s")
    key = ""
    for _ in range(15):  # 100 levels at a time, because os.makedirs recurses
        key += "a/" * 100
        store.set(f"{key}x", b"1")
    store.delete_prefix("a")
    assert os.listdir(tmp_path / "s") == []
    with pytest.raises(StoreError, match="too many nested directories"):
        store.set("a/" * 1500 + "x", b"1")


def test_a_root_that_is_not_a_directory_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(LocationError, match="is a file; expected a directory"):
        LocalStore(tmp_path / "file")
    with pytest.raises(LocationError, match=r"is a FIFO.*; expected a directory"):
        LocalStore(tmp_path / "pipe")


def test_a_file_too_large_for_memory_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = LocalStore(tmp_path)
    (tmp_path / "a").touch()
    os.truncate(tmp_path / "a", 1 << 43)
    for operation in (
        lambda: store.get("a"),
        lambda: store.get_within("a", None),
        lambda: store.get_ranges("a", [ByteRange(0)]),
    ):
        with pytest.raises(StoreError, match="do not fit into memory") as caught:
            operation()
        assert caught.value.errno == errno.EFBIG

    def too_large(*args: object) -> bytes:
        raise OSError(errno.EFBIG, os.strerror(errno.EFBIG))

    monkeypatch.setattr(os, "pread", too_large)
    with pytest.raises(StoreError, match="a cannot be read: File too large") as caught:
        store.get_ranges("a", [ByteRange(0, 5)])
    assert caught.value.errno == errno.EFBIG


def test_an_unreadable_file_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def raise_permission_error(*args: object) -> int:
        raise PermissionError(errno.EACCES, "Permission denied")

    store = LocalStore(tmp_path)
    monkeypatch.setattr(os, "open", raise_permission_error)
    with pytest.raises(StoreError, match="Permission denied") as caught:
        store.get("a")
    assert str(tmp_path) in str(caught.value)
    assert caught.value.errno == errno.EACCES


def test_new_files_have_default_permissions(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    store.set("a", b"1")
    (tmp_path / "b").touch()
    assert (tmp_path / "a").stat().st_mode == (tmp_path / "b").stat().st_mode


def test_a_read_only_store_refuses_changes(tmp_path: Path) -> None:
    store = LocalStore(tmp_path, read_only=True)
    with pytest.raises(ReadOnlyError, match="'a'"):
        store.set("a", b"1")
    with pytest.raises(ReadOnlyError):
        store.delete("a")


def test_a_file_replaced_by_one_of_the_same_size_and_time_has_another_stamp(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    store.set("a", b"1")
    os.utime(tmp_path / "a", ns=(10**18, 10**18))
    stamp = store.stamp("a")
    store.set("b", b"2")
    os.utime(tmp_path / "b", ns=(10**18, 10**18))
    os.replace(tmp_path / "b", tmp_path / "a")
    assert store.stamp("a") != stamp


def test_a_temporary_directory_is_deleted_with_its_store(tmp_path: Path) -> None:
    array = zarrfs.create_array(f"temporary://{tmp_path}", data=np.arange(3))
    (directory,) = tmp_path.iterdir()
    copy = pickle.loads(pickle.dumps(array))
    assert copy[...].tolist() == [0, 1, 2]
    del copy
    gc.collect()
    assert directory.is_dir()
    array.store.close()
    assert not list(tmp_path.iterdir())
    unclosed = TemporaryStore(tmp_path)
    unclosed.set("a", b"1")
    del unclosed
    gc.collect()
    assert not list(tmp_path.iterdir())
    with pytest.raises(LocationError, match="is always new and empty"):
        zarrfs.open("temporary://")
    with pytest.raises(LocationError, match="is not a directory"):
        zarrfs.create_array(f"temporary://{tmp_path}/none", shape=3)


def test_a_temporary_directory_is_deleted_by_the_process_that_created_it(tmp_path: Path) -> None:
    program = f"""
import os, zarrfs
array = zarrfs.create_array("temporary://{tmp_path}", shape=3)
child = os.fork()
if child == 0:
    raise SystemExit
os.waitpid(child, 0)
array[0] = 1
assert array[0] == 1
"""
    subprocess.run([sys.executable, "-W", "error", "-c", program], check=True)
    assert not list(tmp_path.iterdir())


# -- locks of documents ----------------------------------------------------------------------------------------


def is_locked(directory: Path) -> bool:
    fd = os.open(directory, os.O_RDONLY)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(fd)
    return False


def test_documents_are_locked_and_chunks_are_not(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    with store.lock("zarr.json"):
        assert is_locked(tmp_path)
        with store.lock(".zattrs"):  # the same directory: the thread must not wait for itself
            assert is_locked(tmp_path)
        assert is_locked(tmp_path)
    assert not is_locked(tmp_path)
    with store.lock("c/0/0"), store.lock("missing/zarr.json"):
        assert not is_locked(tmp_path)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    "wrapper",
    [
        lambda store: store,
        lambda store: PrefixStore(store, "p"),
        lambda store: LRUStore(store, 100),
        lambda store: MetadataCacheStore(store, 1),
        lambda store: SynchronizedStore(store, ThreadSynchronizer()),
        CountingStore,
    ],
)
def test_the_holder_of_the_lock_of_a_missing_value_does_not_replace_it(
    wrapper: Callable[[Store], Store], tmp_path: Path
) -> None:
    """Another process creates the value meanwhile."""
    store, other = wrapper(LocalStore(tmp_path)), wrapper(LocalStore(tmp_path))
    with store.lock("c/0") as is_missing:
        assert is_missing
        other.set("c/0", b"other")
        with pytest.raises(ValueCreatedError):
            store.create("c/0", [b"o", b"wn"])
    with store.lock("c/0") as is_missing:
        assert not is_missing
    assert store.get("c/0") == b"other"
    with store.lock("c/1") as is_missing:
        assert is_missing
        store.create("c/1", [b"o", b"wn"])
    assert store.get("c/1") == b"own"


def test_a_value_that_another_thread_has_locked_can_be_written(tmp_path: Path) -> None:
    """The lock of a missing value concerns its holder only."""
    store = LocalStore(tmp_path)
    with store.lock("c/0"):
        store.set("c/0", b"1")
        store.set("c/0", b"2")
        store.delete("c/0")
    assert store.get("c/0") is None


def test_a_forked_process_does_not_hold_the_locks_of_its_parent(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    with store.lock("zarr.json"):
        child = os.fork()
        if not child:
            os._exit(len(locks._directory_locks))
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert not is_locked(tmp_path)


@pytest.mark.parametrize("synchronized", [False, True])
def test_changes_of_two_documents_of_a_node_do_not_wait_for_each_other(
    synchronized: bool, tmp_path: Path
) -> None:
    """An append holds the lock of the shape while it waits for that of the attributes."""
    options = {"synchronizer": ProcessSynchronizer(tmp_path / "locks")} if synchronized else {}
    path = tmp_path / "a.zarr"
    zarrfs.create_array(path, shape=(0,), chunks=(100,), dtype="i4", zarr_format=2)
    array = zarrfs.open_array(path, mode="r+", **options)
    other = zarrfs.open_array(path, mode="r+", **options)

    def append() -> None:
        for number in range(100):
            array.append(np.array([number]))

    thread = threading.Thread(target=append, daemon=True)
    thread.start()
    for number in range(100):
        other.attrs["number"] = number
    thread.join()
    assert zarrfs.open_array(path)[...].tolist() == list(range(100))
