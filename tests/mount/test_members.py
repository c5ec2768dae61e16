"""Members that cannot be read do not affect other members, and the metadata cache is bounded and revalidated."""

from __future__ import annotations

import errno
import gc
import json
import os
import stat
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zarrfs
from tests.mount.test_tree import hierarchy, list_names, read_file
from tests.threads import Clock
from zarrfs.engine.stores.memory import MemoryStore
from zarrfs.errors import MountError, StoreError
from zarrfs.files.content.freshness import REVALIDATION_SECONDS
from zarrfs.mount.fuse.permissions import Permissions
from zarrfs.mount.statistics import RequestCounters
from zarrfs.mount.tree.entries import Directory, VirtualFile
from zarrfs.mount.tree.node_opening import reopen
from zarrfs.mount.tree.node_records import BrokenNode
from zarrfs.mount.tree.tree import Tree
from zarrfs.mount.writing.local_storage import check_store
from zarrfs.testing import CountingStore
from zarrfs.testing.stores import ObservedStore


class RefusingStore(ObservedStore):
    """Raises ``error``, unless it is None, for every key below a prefix."""

    def __init__(self, store: MemoryStore, prefix: str, error: Exception) -> None:
        super().__init__(store)
        self.prefix = prefix
        self.error: Exception | None = error

    def _before(self, operation: str, key: str) -> None:
        if self.error is not None and (key == self.prefix or key.startswith(f"{self.prefix}/")):
            raise self.error


ERRORS = [
    (StoreError("the disk is broken", errno.EIO), errno.EIO),
    (StoreError("you may not", errno.EACCES), errno.EACCES),
    (StoreError("you may not", errno.EPERM), errno.EACCES),
    (StoreError("the server does not answer"), errno.EIO),
    (OSError(errno.ENODEV, "no such device"), errno.EIO),
    (MemoryError(), errno.ENOMEM),
]


@pytest.mark.parametrize(("error", "number"), ERRORS, ids=str)
def test_an_unreadable_member_does_not_affect_other_members(error: Exception, number: int) -> None:
    store = hierarchy()
    zarrfs.create_array(store, "bad", data=np.zeros(3))
    refusing, clock = RefusingStore(store, "bad", error), Clock()
    tree = Tree(zarrfs.open(refusing), clock=clock)
    listed = list_names(tree)
    assert {"bad.error.txt", "img.npy", "labels"} <= set(listed)
    assert not {"bad.npy", "bad"} & set(listed)
    expected = str(error) or "not enough memory"
    assert expected in read_file(tree, "/bad.error.txt").decode()
    assert read_file(tree, "/img.raw") == np.arange(12, dtype="u2").tobytes()
    for path in ("/bad", "/bad.npy", "/bad/x", "/bad/x.npy"):
        with pytest.raises(StoreError) as error_info:
            tree.lookup(path)
        assert error_info.value.errno == number
    assert tree.lookup("/other.npy") is None
    refusing.error = None
    assert "bad.error.txt" in list_names(tree), "the record is still valid"
    clock.now += 2 * REVALIDATION_SECONDS
    assert "bad.npy" in list_names(tree)
    assert read_file(tree, "/bad.raw") == bytes(24)
    assert tree.lookup("/bad.error.txt") is None


def test_an_unexpected_error_in_a_member_is_logged_and_does_not_affect_other_members(
    caplog: pytest.LogCaptureFixture,
) -> None:
    store = hierarchy()
    zarrfs.create_array(store, "bad", data=np.zeros(3))
    tree = Tree(zarrfs.open(RefusingStore(store, "bad", RuntimeError("boom\n\x1b[31mred"))))
    assert {"bad.error.txt", "img.npy"} <= set(list_names(tree))
    assert read_file(tree, "/bad.error.txt").decode().count("\n") == 1
    assert "RuntimeError: boom" in read_file(tree, "/bad.error.txt").decode()
    assert "\x1b" not in caplog.text


def test_a_group_that_cannot_be_listed_does_not_affect_other_directories() -> None:
    class Unlistable(ObservedStore):
        def _before(self, operation: str, key: str) -> None:
            if operation == "list_dir" and key == "labels":
                raise StoreError("you may not", errno.EACCES)

    tree = Tree(zarrfs.open(Unlistable(hierarchy())))
    assert "labels" in list_names(tree)
    with pytest.raises(StoreError, match="you may not"):
        list_names(tree, "/labels")
    assert read_file(tree, "/labels/0.raw") == b"\1\1\1"


def test_an_array_whose_stored_size_is_unknown_is_readable(caplog: pytest.LogCaptureFixture) -> None:
    class Uncountable(ObservedStore):
        def _before(self, operation: str, key: str) -> None:
            if operation == "usage":
                raise StoreError("you may not", errno.EACCES)

    tree = Tree(zarrfs.open(Uncountable(hierarchy())))
    file = tree.lookup("/img.raw")
    assert isinstance(file, VirtualFile)
    assert (file.content.size, file.stored_nbytes, file.modified) == (24, 24, None)
    tree.lookup("/img.npy")
    assert len(caplog.records) == 1


@pytest.mark.parametrize(
    "kind", ["fifo", "device", "null device", "directory", "dangling link", "endless link"]
)
def test_a_document_that_is_not_a_regular_file_does_not_affect_other_members(
    kind: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    group = zarrfs.create_group(tmp_path / "s.zarr")
    group.create_array("good", data=np.arange(3, dtype="u1"))
    bad = tmp_path / "s.zarr" / "bad"
    bad.mkdir()
    document = bad / "zarr.json"
    if kind == "fifo":
        os.mkfifo(document)
    elif kind == "directory":
        document.mkdir()
    else:
        target = {"device": "/dev/zero", "null device": "/dev/null", "dangling link": "nowhere"}
        document.symlink_to(target.get(kind, "zarr.json"))
    tree = Tree(zarrfs.open(tmp_path / "s.zarr"))
    listed = set(list_names(tree))
    assert {"good.npy", "good.raw"} <= listed
    assert read_file(tree, "/good.raw") == b"\0\1\2"
    assert [name for name in listed if name.startswith("bad")] in ([], ["bad.error.txt"])
    assert [name for name, _ in group.walk()] == ["good"]
    assert all("member 'bad' is left out" in record.getMessage() for record in caplog.records)


def test_a_lookup_does_not_list_groups() -> None:
    inner, clock = hierarchy(), Clock()
    store = CountingStore(inner)
    tree = Tree(zarrfs.open(store), clock=clock)
    store.reset()
    for path in ("/img.npy", "/labels/0.raw", "/nothing", "/nothing.npy", "/labels/nothing.json", "/.xdg"):
        tree.lookup(path)
    assert store.calls["list_prefix"] == 0
    # A name that is no member can be a directory of another program.
    assert store.calls["list_dir"] == 4
    assert store.keys[""] == store.keys["labels"] == 0


def test_unchanged_documents_are_not_read_again() -> None:
    inner, clock = hierarchy(), Clock()
    store = CountingStore(inner)
    tree = Tree(zarrfs.open(store), clock=clock)
    first = tree.lookup("/img.npy")
    store.reset()
    clock.now += 2 * REVALIDATION_SECONDS
    second = tree.lookup("/img.npy")
    assert isinstance(first, VirtualFile)
    assert isinstance(second, VirtualFile)
    assert first.content is second.content
    assert store.keys["img/zarr.json"] == 0
    assert store.calls["stamp"] > 0


LARGE_ATTRIBUTES: dict[str, Any] = {"list": [{} for _ in range(40_000)]}


def large_members(count: int) -> MemoryStore:
    store = MemoryStore()
    root = zarrfs.create_group(store)
    for number in range(count):
        attributes = {**LARGE_ATTRIBUTES, "number": number}
        root.create_array(f"a{number}", data=np.arange(3, dtype="u1") + number, attributes=attributes)
        root.create_group(f"g{number}", attributes=attributes)
    return store


def test_large_attributes_are_not_cached_and_are_still_presented() -> None:
    assert len(json.dumps(LARGE_ATTRIBUTES)) > 64 << 10, (
        "the attributes must not fit into an extended attribute"
    )
    tree = Tree(zarrfs.open(large_members(2)))
    for number in range(2):
        assert read_file(tree, f"/a{number}.raw") == bytes([number, number + 1, number + 2])
        expected = {**LARGE_ATTRIBUTES, "number": number}
        assert json.loads(read_file(tree, f"/a{number}.json"))["attributes"] == expected
        assert json.loads(read_file(tree, f"/g{number}/.group.json"))["attributes"] == expected
        for path in (f"/a{number}.npy", f"/g{number}", f"/g{number}/.group.json"):
            entry = tree.lookup(path)
            assert entry is not None
            assert not entry.has_attributes
            assert entry.node is not None
            assert len(entry.node.attrs) == 0


def test_the_memory_of_the_metadata_cache_is_bounded() -> None:
    """Memory is released without the garbage collector, which may run only after gigabytes have been allocated."""
    count, limit, clock = 8, 1 << 20, Clock()
    tree = Tree(zarrfs.open(large_members(count)), max_metadata=limit, clock=clock)
    gc.collect()
    gc.disable()
    try:
        before = sys.getallocatedblocks()
        for _ in range(2):
            for name in list_names(tree):
                entry = tree.lookup(f"/{name}")
                if isinstance(entry, Directory):
                    read_file(tree, f"/{name}/.group.json")
                assert tree.cached_nbytes <= limit
            clock.now += 2 * REVALIDATION_SECONDS
        assert sys.getallocatedblocks() - before < len(LARGE_ATTRIBUTES["list"])
    finally:
        gc.enable()


def test_the_least_recently_used_node_is_evicted_first() -> None:
    store = MemoryStore()
    root = zarrfs.create_group(store)
    for number in range(40):
        root.create_array(f"{number:02}", data=np.zeros(1))
    counting = CountingStore(store)
    tree = Tree(zarrfs.open(counting), max_metadata=120_000, immutable=True, summarizes_arrays=False)
    list_names(tree)
    assert 0 < tree.cached_nbytes <= 120_000
    counting.reset()
    tree.lookup("/39.npy")
    assert counting.keys["39/zarr.json"] == 0
    tree.lookup("/00.npy")
    assert counting.keys["00/zarr.json"] == 1


def test_a_document_above_the_limit_does_not_affect_other_members() -> None:
    store = hierarchy()
    zarrfs.create_array(store, "big", data=np.zeros(1), attributes={"text": "x" * 10_000})
    counting = CountingStore(store)
    tree = Tree(zarrfs.open(counting, access=zarrfs.Access(max_document=5000)))
    counting.reset()
    assert {"big.error.txt", "img.npy"} <= set(list_names(tree))
    assert counting.bytes_read < 10_000, "the document must not be read"
    reason = read_file(tree, "/big.error.txt").decode()
    assert "at most 5,000 bytes" in reason
    assert "ZARRFS_MAX_DOCUMENT" in reason


def test_a_changed_attribute_is_visible_after_revalidation() -> None:
    store, clock = large_members(1), Clock()
    tree = Tree(zarrfs.open(store), clock=clock)
    assert json.loads(read_file(tree, "/a0.json"))["attributes"]["number"] == 0
    zarrfs.open(store, "a0", "r+").attrs["number"] = 5
    clock.now += 2 * REVALIDATION_SECONDS
    assert json.loads(read_file(tree, "/a0.json"))["attributes"]["number"] == 5


def test_a_new_node_of_the_2019_draft_is_visible_after_revalidation() -> None:
    store, clock = MemoryStore(), Clock()
    root = zarrfs.create_group(store, zarr_format="draft2019")
    tree = Tree(zarrfs.open(store), clock=clock)
    assert tree.lookup("/new.npy") is None
    array = root.create_array("new", data=np.arange(3, dtype="u1"))
    clock.now += 2 * REVALIDATION_SECONDS
    assert read_file(tree, "/new.raw") == b"\0\1\2"
    array.append(np.zeros(1, "u1"))
    clock.now += 2 * REVALIDATION_SECONDS
    assert read_file(tree, "/new.raw") == b"\0\1\2\0"


def test_high_latency_stores_are_not_queried_for_stamps() -> None:
    store = CountingStore(hierarchy())
    store.concurrency = 8
    store.is_remote = True
    clock = Clock()
    tree = Tree(zarrfs.open(store), clock=clock)
    for _ in range(2):
        assert tree.lookup("/img.npy") is not None
        clock.now += 2 * REVALIDATION_SECONDS
    assert store.calls["stamp"] == 0


def test_a_node_whose_metadata_became_invalid_is_broken() -> None:
    store = MemoryStore()
    array = zarrfs.create_array(store, "a", data=np.zeros(1))
    assert isinstance(reopen(store, array), zarrfs.Array)
    store.set("a/zarr.json", b"{")
    found = reopen(store, array)
    assert isinstance(found, BrokenNode)
    assert "not JSON" in found.reason
    store.delete("a/zarr.json")
    found = reopen(store, array)
    assert isinstance(found, BrokenNode)
    assert "deleted since it was mounted" in found.reason


def test_errors_without_a_number_are_counted_as_unknown() -> None:
    counters = RequestCounters()
    for number in (None, errno.EIO, errno.EIO):
        counters.begin("read")
        counters.fail(number)
    snapshot = counters.snapshot()
    assert snapshot["errors"] == {"EIO": 2, "unknown": 1}
    assert snapshot["queue"] == {"active": 0, "max_active": 1}


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o644])
def test_the_permissions_of_an_archive_are_those_of_its_nodes(mode: int, tmp_path: Path) -> None:
    with zarrfs.open_group(tmp_path / "a.zip", mode="w") as root:
        root["x"] = np.zeros(1)
    (tmp_path / "a.zip").chmod(mode)
    permissions = Permissions(follow_store=True)
    with zarrfs.open_group(tmp_path / "a.zip") as root:
        directory = permissions.apply({"st_mode": stat.S_IFDIR | 0o555, "st_uid": 9, "st_gid": 9}, root)
        file = permissions.apply({"st_mode": stat.S_IFREG | 0o444, "st_uid": 9, "st_gid": 9}, root["x"])
    readable = mode & 0o444
    assert directory["st_mode"] == stat.S_IFDIR | readable | readable >> 2
    assert file["st_mode"] == stat.S_IFREG | readable
    assert directory["st_uid"] == file["st_uid"] == os.getuid()


def test_an_archive_cannot_be_mounted_for_writing(tmp_path: Path) -> None:
    zarrfs.create_group(tmp_path / "a.zip").store.close()
    with (
        zarrfs.open_group(tmp_path / "a.zip") as root,
        pytest.raises(MountError, match=r"is an archive.*--rw"),
    ):
        check_store(root.store)
    check_store(MemoryStore())
