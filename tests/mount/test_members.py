"""What is wrong with one member costs that member and nothing else; and what is kept of members is bounded."""

from __future__ import annotations

import errno
import gc
import json
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zarrfs
from tests.mount.test_tree import Clock, contents, hierarchy, names
from zarrfs.engine.stores.memory import MemoryStore
from zarrfs.engine.stores.wrappers.wrapper import CountingStore, WrapperStore
from zarrfs.errors import StoreError
from zarrfs.mount.tree import FRESH_SECONDS, Directory, Tree, VirtualFile


class RefusingStore(WrapperStore):
    """Raises an error for every key below a prefix, while there is one."""

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
    (OSError(errno.ENODEV, "the device is gone"), errno.EIO),
    (MemoryError(), errno.ENOMEM),
]


@pytest.mark.parametrize(("error", "number"), ERRORS, ids=str)
def test_an_unreadable_member_hides_nothing_else(error: Exception, number: int) -> None:
    store = hierarchy()
    zarrfs.create_array(store, "bad", data=np.zeros(3))
    refusing, clock = RefusingStore(store, "bad", error), Clock()
    tree = Tree(zarrfs.open(refusing), clock=clock)
    listed = names(tree)
    assert {"bad.error.txt", "img.npy", "labels"} <= set(listed)
    assert not {"bad.npy", "bad"} & set(listed)
    expected = str(error) or "not enough memory"
    assert expected in contents(tree, "/bad.error.txt").decode()
    assert contents(tree, "/img.raw") == np.arange(12, dtype="u2").tobytes()
    for path in ("/bad", "/bad.npy", "/bad/x", "/bad/x.npy"):
        with pytest.raises(StoreError) as caught:
            tree.find(path)
        assert caught.value.errno == number
    assert tree.find("/other.npy") is None
    refusing.error = None
    assert "bad.error.txt" in names(tree), "it is asked again after a while"
    clock.now += 2 * FRESH_SECONDS
    assert "bad.npy" in names(tree)
    assert contents(tree, "/bad.raw") == bytes(24)
    assert tree.find("/bad.error.txt") is None


def test_an_error_that_nobody_foresaw_hides_nothing_else_and_is_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    store = hierarchy()
    zarrfs.create_array(store, "bad", data=np.zeros(3))
    tree = Tree(zarrfs.open(RefusingStore(store, "bad", RuntimeError("boom\n\x1b[31mred"))))
    assert {"bad.error.txt", "img.npy"} <= set(names(tree))
    assert contents(tree, "/bad.error.txt").decode().count("\n") == 1
    assert "RuntimeError: boom" in contents(tree, "/bad.error.txt").decode()
    assert "\x1b" not in caplog.text


def test_a_group_whose_members_cannot_be_listed_is_an_error_of_that_directory_alone() -> None:
    class Unlistable(WrapperStore):
        def _before(self, operation: str, key: str) -> None:
            if operation == "list_dir" and key == "labels":
                raise StoreError("you may not", errno.EACCES)

    tree = Tree(zarrfs.open(Unlistable(hierarchy())))
    assert "labels" in names(tree)
    with pytest.raises(StoreError, match="you may not"):
        names(tree, "/labels")
    assert contents(tree, "/labels/0.raw") == b"\1\1\1"


def test_what_cannot_be_counted_stays_readable(caplog: pytest.LogCaptureFixture) -> None:
    class Uncountable(WrapperStore):
        def _before(self, operation: str, key: str) -> None:
            if operation == "usage":
                raise StoreError("you may not", errno.EACCES)

    tree = Tree(zarrfs.open(Uncountable(hierarchy())))
    file = tree.find("/img.raw")
    assert isinstance(file, VirtualFile)
    assert (file.layout.size, file.stored, file.modified) == (24, 24, None)
    tree.find("/img.npy")
    assert len(caplog.records) == 1


@pytest.mark.parametrize(
    "kind", ["fifo", "device", "null device", "directory", "dangling link", "endless link"]
)
def test_a_document_that_is_no_regular_file_hides_nothing_else(
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
    listed = set(names(tree))
    assert {"good.npy", "good.raw"} <= listed
    assert contents(tree, "/good.raw") == b"\0\1\2"
    assert [name for name in listed if name.startswith("bad")] in ([], ["bad.error.txt"])
    assert [name for name, _ in group.walk()] == ["good"]
    assert all("member 'bad' is left out" in record.getMessage() for record in caplog.records)


def test_looking_up_lists_no_group() -> None:
    inner, clock = hierarchy(), Clock()
    store = CountingStore(inner)
    tree = Tree(zarrfs.open(store), clock=clock)
    store.reset()
    for path in ("/img.npy", "/labels/0.raw", "/nothing", "/nothing.npy", "/labels/nothing.json", "/.xdg"):
        tree.find(path)
    assert store.calls["list_dir"] == store.calls["list_prefix"] == 0


def test_unchanged_documents_are_not_read_again() -> None:
    inner, clock = hierarchy(), Clock()
    store = CountingStore(inner)
    tree = Tree(zarrfs.open(store), clock=clock)
    first = tree.find("/img.npy")
    store.reset()
    clock.now += 2 * FRESH_SECONDS
    second = tree.find("/img.npy")
    assert isinstance(first, VirtualFile)
    assert isinstance(second, VirtualFile)
    assert first.layout is second.layout
    assert store.keys["img/zarr.json"] == 0
    assert store.calls["stamp"] > 0


LARGE: dict[str, Any] = {"list": [{} for _ in range(40_000)]}


def large_members(count: int) -> MemoryStore:
    store = MemoryStore()
    root = zarrfs.create_group(store)
    for number in range(count):
        attributes = {**LARGE, "number": number}
        root.create_array(f"a{number}", data=np.arange(3, dtype="u1") + number, attributes=attributes)
        root.create_group(f"g{number}", attributes=attributes)
    return store


def test_large_attributes_are_not_kept_but_shown() -> None:
    assert len(json.dumps(LARGE)) > 64 << 10, "too large for an extended attribute"
    tree = Tree(zarrfs.open(large_members(2)))
    for number in range(2):
        assert contents(tree, f"/a{number}.raw") == bytes([number, number + 1, number + 2])
        expected = {**LARGE, "number": number}
        assert json.loads(contents(tree, f"/a{number}.json"))["attributes"] == expected
        assert json.loads(contents(tree, f"/g{number}/.group.json"))["attributes"] == expected
        for path in (f"/a{number}.npy", f"/g{number}", f"/g{number}/.group.json"):
            entry = tree.find(path)
            assert entry is not None
            assert not entry.complete
            assert entry.node is not None
            assert len(entry.node.attrs) == 0


def test_memory_for_metadata_is_bounded() -> None:
    """Nothing waits for the garbage collector either: it may come after gigabytes."""
    count, limit, clock = 8, 1 << 20, Clock()
    tree = Tree(zarrfs.open(large_members(count)), max_metadata=limit, clock=clock)
    gc.collect()
    gc.disable()
    try:
        before = sys.getallocatedblocks()
        for _ in range(2):
            for name in names(tree):
                entry = tree.find(f"/{name}")
                if isinstance(entry, Directory):
                    contents(tree, f"/{name}/.group.json")
                assert tree.kept_nbytes <= limit
            clock.now += 2 * FRESH_SECONDS
        assert sys.getallocatedblocks() - before < len(LARGE["list"])
    finally:
        gc.enable()


def test_small_nodes_are_forgotten_oldest_first() -> None:
    store = MemoryStore()
    root = zarrfs.create_group(store)
    for number in range(40):
        root.create_array(f"{number:02}", data=np.zeros(1))
    counting = CountingStore(store)
    tree = Tree(zarrfs.open(counting), max_metadata=400_000, immutable=True)
    names(tree)
    assert 0 < tree.kept_nbytes <= 400_000
    counting.reset()
    tree.find("/39.npy")
    assert counting.keys["39/zarr.json"] == 0
    tree.find("/00.npy")
    assert counting.keys["00/zarr.json"] == 1


def test_a_document_above_the_limit_is_an_error_of_its_member_alone() -> None:
    store = hierarchy()
    zarrfs.create_array(store, "big", data=np.zeros(1), attributes={"text": "x" * 10_000})
    counting = CountingStore(store)
    tree = Tree(zarrfs.open(counting, access=zarrfs.Access(max_document=5000)))
    counting.reset()
    assert {"big.error.txt", "img.npy"} <= set(names(tree))
    assert counting.bytes_read < 10_000, "it is not read"
    reason = contents(tree, "/big.error.txt").decode()
    assert "at most 5,000 bytes" in reason
    assert "ZARRFS_MAX_DOCUMENT" in reason


def test_a_changed_attribute_is_seen() -> None:
    store, clock = large_members(1), Clock()
    tree = Tree(zarrfs.open(store), clock=clock)
    assert json.loads(contents(tree, "/a0.json"))["attributes"]["number"] == 0
    zarrfs.open(store, "a0", "r+").attrs["number"] = 5
    clock.now += 2 * FRESH_SECONDS
    assert json.loads(contents(tree, "/a0.json"))["attributes"]["number"] == 5


def test_a_new_node_is_seen_whatever_its_documents_are_called() -> None:
    store, clock = MemoryStore(), Clock()
    root = zarrfs.create_group(store, zarr_format="draft2019")
    tree = Tree(zarrfs.open(store), clock=clock)
    assert tree.find("/new.npy") is None
    array = root.create_array("new", data=np.arange(3, dtype="u1"))
    clock.now += 2 * FRESH_SECONDS
    assert contents(tree, "/new.raw") == b"\0\1\2"
    array.append(np.zeros(1, "u1"))
    clock.now += 2 * FRESH_SECONDS
    assert contents(tree, "/new.raw") == b"\0\1\2\0"


def test_stores_far_away_are_not_asked_for_stamps() -> None:
    store = CountingStore(hierarchy())
    store.concurrency = 8
    clock = Clock()
    tree = Tree(zarrfs.open(store), clock=clock)
    for _ in range(2):
        assert tree.find("/img.npy") is not None
        clock.now += 2 * FRESH_SECONDS
    assert store.calls["stamp"] == 0
