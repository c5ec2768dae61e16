"""Paths to entries, without FUSE."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import numpy as np
import pytest

import zarrfs
from zarrfs.engine.stores.local import LocalStore
from zarrfs.engine.stores.memory import MemoryStore
from zarrfs.engine.stores.wrappers.wrapper import CountingStore
from zarrfs.mount.tree import FRESH_SECONDS, Directory, Tree, VirtualFile


class Clock:
    """Time that passes when it is told to."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def hierarchy() -> MemoryStore:
    store = MemoryStore()
    root = zarrfs.create_group(store, attributes={"who": "me"})
    root.create_array("img", data=np.arange(12, dtype="u2").reshape(3, 4))
    labels = root.create_group("labels")
    labels.create_array("0", data=np.ones(3, "u1"))
    root.create_array("scalar", data=np.float32(3))
    return store


def names(tree: Tree, path: str = "/") -> list[str]:
    entry = tree.find(path)
    assert isinstance(entry, Directory)
    return tree.names(entry)


def contents(tree: Tree, path: str) -> bytes:
    entry = tree.find(path)
    assert isinstance(entry, VirtualFile), path
    return entry.layout.read(0, entry.layout.size)


def test_groups_are_directories_and_arrays_files() -> None:
    tree = Tree(zarrfs.open(hierarchy()))
    assert names(tree) == [
        *(".group.json", "img.json", "img.npy", "img.raw", "labels"),
        *("scalar.json", "scalar.npy", "scalar.raw"),
    ]
    assert names(tree, "/labels") == [".group.json", "0.json", "0.npy", "0.raw"]
    assert json.loads(contents(tree, "/.group.json"))["attributes"] == {"who": "me"}
    assert contents(tree, "/img.raw") == np.arange(12, dtype="u2").tobytes()
    assert json.loads(contents(tree, "/labels/0.json"))["shape"] == [3]
    for path in (
        "/img",
        "/img.txt",
        "/labels/1.npy",
        "/img.npy/x",
        "/nothing/0.npy",
        "/..",
        "/labels/0.npy.npy",
    ):
        assert tree.find(path) is None, path
    for name in ("..", ".", "a\0b"):
        assert tree.find(f"/{name}.error.txt") is None, "it is no name of a member"


def test_all_that_is_listed_is_found() -> None:
    for list_all in (False, True):
        tree = Tree(zarrfs.open(hierarchy()), list_all_views=list_all)
        pending = ["/"]
        while pending:
            path = pending.pop()
            for name in names(tree, path):
                entry = tree.find(f"{path.rstrip('/')}/{name}")
                assert entry is not None
                if isinstance(entry, Directory):
                    pending.append(f"{path.rstrip('/')}/{name}")
                else:
                    assert len(entry.layout.read(0, entry.layout.size)) == entry.layout.size


def test_an_array_as_the_root_is_named_after_the_store() -> None:
    array = zarrfs.create_array(MemoryStore(), data=np.arange(3))
    tree = Tree(array, "stack")
    assert names(tree) == ["stack.json", "stack.npy", "stack.raw"]
    assert contents(tree, "/stack.raw") == np.arange(3).tobytes()
    assert tree.find("/other.npy") is None
    assert tree.find("/stack.npy/x") is None


def test_a_branch_of_a_hierarchy_as_the_root() -> None:
    tree = Tree(zarrfs.open(hierarchy(), "labels"))
    assert names(tree) == [".group.json", "0.json", "0.npy", "0.raw"]
    assert contents(tree, "/0.raw") == b"\1\1\1"


def test_a_real_directory_wins_over_a_view() -> None:
    store = hierarchy()
    root = zarrfs.open_group(store, mode="r+")
    root.create_group("img.npy").create_array("inner", data=np.zeros(2))
    root.create_array("img.raw", data=np.zeros(2, "u1"))
    tree = Tree(zarrfs.open(store))
    assert isinstance(tree.find("/img.npy"), Directory)
    assert isinstance(tree.find("/img.npy/inner.npy"), VirtualFile)
    assert contents(tree, "/img.raw") == np.arange(12, dtype="u2").tobytes(), (
        "an array has no file of its own name"
    )
    assert contents(tree, "/img.raw.raw") == b"\0\0"
    listed = names(tree)
    assert len(listed) == len(set(listed))


@pytest.mark.parametrize(
    "name", ["größe", "日本語", "a b\tc", "new\nline", "-x", "\udcff\udcfe", "e\u0301", "\u00e9"]
)
def test_odd_names(name: str) -> None:
    store = MemoryStore()
    zarrfs.create_group(store)
    zarrfs.create_array(store, "plain", data=np.zeros(1))
    for key in [key for key in store.list_prefix() if key.startswith("plain")]:
        store.set(key.replace("plain", name), store.get(key) or b"")
    tree = Tree(zarrfs.open(store))
    assert f"{name}.npy" in names(tree)
    assert isinstance(tree.find(f"/{name}.npy"), VirtualFile)
    assert contents(tree, f"/{name}.json")


def test_names_too_long_for_a_file_system_are_said_and_left_out(caplog: pytest.LogCaptureFixture) -> None:
    store = MemoryStore()
    zarrfs.create_group(store)
    zarrfs.create_array(store, "x" * 253, data=np.zeros(1))
    tree = Tree(zarrfs.open(store))
    with caplog.at_level(logging.WARNING):
        assert names(tree) == [".group.json"]
        assert names(tree) == [".group.json"]
    assert len(caplog.records) == 3, "each of the three names once"


def test_a_broken_member_hides_nothing_else() -> None:
    store = hierarchy()
    store.set("bad/zarr.json", b'{"zarr_format": 3, "node_type": "array", "shape": "wide"}')
    tree = Tree(zarrfs.open(store))
    assert "bad.error.txt" in names(tree)
    assert "img.npy" in names(tree)
    assert b"zarr.json" in contents(tree, "/bad.error.txt")
    assert tree.find("/bad.npy") is None
    assert tree.find("/img.error.txt") is None


def test_changes_of_the_store_are_seen_after_a_moment() -> None:
    store, clock = hierarchy(), Clock()
    tree = Tree(zarrfs.open(store), clock=clock)
    before = tree.find("/img.npy")
    assert isinstance(before, VirtualFile)
    root = zarrfs.open_group(store, mode="r+")
    root["img"].append(np.zeros((1, 4), "u2"))  # type: ignore[union-attr]
    root.create_array("new", data=np.zeros(1))
    clock.now += 2 * FRESH_SECONDS
    after = tree.find("/img.npy")
    assert isinstance(after, VirtualFile)
    assert after.layout.size == before.layout.size + 8
    assert "new.npy" in names(tree)
    del root["img"]
    clock.now += 2 * FRESH_SECONDS
    assert tree.find("/img.npy") is None


def test_what_is_immutable_is_not_asked_again() -> None:
    inner, clock = hierarchy(), Clock()
    store = CountingStore(inner)
    tree = Tree(zarrfs.open(store), immutable=True, clock=clock)
    tree.find("/labels/0.npy")
    store.reset()
    clock.now += 1000
    assert tree.find("/labels/0.npy") is not None
    assert not store.calls


def test_blocks_and_time_follow_the_chunks() -> None:
    store, clock = MemoryStore(), Clock()
    array = zarrfs.create_array(store, "a", shape=(1000, 1000), dtype="f8", chunks=(100, 100))
    tree = Tree(zarrfs.open(store), clock=clock)
    empty = tree.find("/a.raw")
    assert isinstance(empty, VirtualFile)
    assert empty.stored < 2000 < empty.layout.size
    array[:100, :100] = np.random.default_rng(0).random((100, 100))
    clock.now += 1000
    filled = tree.find("/a.raw")
    assert isinstance(filled, VirtualFile)
    assert filled.stored > 50_000
    assert filled.modified is not None
    assert empty.modified is not None
    assert filled.modified > empty.modified


def test_a_giant_of_absent_chunks_is_shown_at_once() -> None:
    inner = MemoryStore()
    zarrfs.create_group(inner)
    zarrfs.create_array(inner, "giant", shape=(10**6, 10**9), dtype="u1", chunks=(10**3, 10**3))
    store = CountingStore(inner)
    tree = Tree(zarrfs.open(store))
    assert names(tree) == [".group.json", "giant.json", "giant.npy", "giant.raw"]
    file = tree.find("/giant.npy")
    assert isinstance(file, VirtualFile)
    assert file.layout.size == 10**15 + 128
    assert file.layout.read(10**15 - 5, 20) == bytes(20)
    assert sum(store.calls.values()) < 60


def test_the_space_that_an_array_occupies_is_counted_once_in_a_while(tmp_path: Path) -> None:
    store = CountingStore(LocalStore(tmp_path))
    zarrfs.create_group(store).create_array("img", data=np.arange(12, dtype="u2"), compressors=None)
    clock = Clock()
    tree = Tree(zarrfs.open_group(store), "t", clock=clock)

    def occupied() -> int:
        entry = tree.find("/img.raw")
        assert isinstance(entry, VirtualFile)
        return entry.stored

    first = occupied()
    assert first > 24
    store.reset()
    for _ in range(5):
        assert occupied() == first
    assert store.calls["usage"] == 0
    zarrfs.open_array(store, "img", mode="r+")[0] = 5
    store.set("img/c/extra", bytes(1000))
    store.reset()
    assert occupied() == first
    clock.now += FRESH_SECONDS + 1
    assert occupied() == first + 1000
    assert store.calls["usage"] == 1
