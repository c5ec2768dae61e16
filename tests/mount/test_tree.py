"""The lookup of paths, without FUSE."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import zarrfs
from tests.threads import Clock
from zarrfs.engine.stores.local.store import LocalStore
from zarrfs.engine.stores.memory import MemoryStore
from zarrfs.files.content.freshness import REVALIDATION_SECONDS
from zarrfs.mount.tree.entries import Directory, VirtualFile
from zarrfs.mount.tree.tree import Tree
from zarrfs.testing import CountingStore


def hierarchy() -> MemoryStore:
    store = MemoryStore()
    root = zarrfs.create_group(store, attributes={"author": "me"})
    root.create_array("img", data=np.arange(12, dtype="u2").reshape(3, 4))
    labels = root.create_group("labels")
    labels.create_array("0", data=np.ones(3, "u1"))
    root.create_array("scalar", data=np.float32(3))
    return store


def list_names(tree: Tree, path: str = "/") -> list[str]:
    """Return the names in a directory of a mount, sorted."""
    directory = tree.lookup(path)
    assert isinstance(directory, Directory)
    return sorted(entry.name for entry in tree.list_entries(directory))


def read_file(tree: Tree, path: str) -> bytes:
    entry = tree.lookup(path)
    assert isinstance(entry, VirtualFile), path
    return entry.content.read(0, entry.content.size)


def test_groups_are_directories_and_arrays_are_files() -> None:
    tree = Tree(zarrfs.open(hierarchy()))
    assert list_names(tree) == [
        *(".group.json", "img.json", "img.npy", "img.raw", "labels"),
        *("scalar.json", "scalar.npy", "scalar.raw"),
    ]
    assert list_names(tree, "/labels") == [".group.json", "0.json", "0.npy", "0.raw"]
    assert json.loads(read_file(tree, "/.group.json"))["attributes"] == {"author": "me"}
    assert read_file(tree, "/img.raw") == np.arange(12, dtype="u2").tobytes()
    assert json.loads(read_file(tree, "/labels/0.json"))["shape"] == [3]
    for path in (
        "/img",
        "/img.txt",
        "/labels/1.npy",
        "/img.npy/x",
        "/nothing/0.npy",
        "/..",
        "/labels/0.npy.npy",
    ):
        assert tree.lookup(path) is None, path
    for name in ("..", ".", "a\0b"):
        assert tree.lookup(f"/{name}.error.txt") is None, "the name is not a valid member name"


def test_every_listed_name_is_found() -> None:
    for views in (None, ("all",), ("npy", "raw")):
        tree = Tree(zarrfs.open(hierarchy()), views=views)
        pending = ["/"]
        while pending:
            path = pending.pop()
            for name in list_names(tree, path):
                entry = tree.lookup(f"{path.rstrip('/')}/{name}")
                assert entry is not None
                if isinstance(entry, Directory):
                    pending.append(f"{path.rstrip('/')}/{name}")
                else:
                    assert len(entry.content.read(0, entry.content.size)) == entry.content.size


def test_a_root_array_has_the_name_of_the_store() -> None:
    array = zarrfs.create_array(MemoryStore(), data=np.arange(3))
    tree = Tree(array, "stack")
    assert list_names(tree) == ["stack.json", "stack.npy", "stack.raw"]
    assert read_file(tree, "/stack.raw") == np.arange(3).tobytes()
    assert tree.lookup("/other.npy") is None
    assert tree.lookup("/stack.npy/x") is None


def test_a_group_inside_a_hierarchy_can_be_the_root() -> None:
    tree = Tree(zarrfs.open(hierarchy(), "labels"))
    assert list_names(tree) == [".group.json", "0.json", "0.npy", "0.raw"]
    assert read_file(tree, "/0.raw") == b"\1\1\1"


def test_a_group_takes_precedence_over_a_view_of_the_same_name() -> None:
    store = hierarchy()
    root = zarrfs.open_group(store, mode="r+")
    root.create_group("img.npy").create_array("inner", data=np.zeros(2))
    root.create_array("img.raw", data=np.zeros(2, "u1"))
    tree = Tree(zarrfs.open(store))
    assert isinstance(tree.lookup("/img.npy"), Directory)
    assert isinstance(tree.lookup("/img.npy/inner.npy"), VirtualFile)
    assert read_file(tree, "/img.raw") == np.arange(12, dtype="u2").tobytes(), (
        "an array has no file with the exact name of the array"
    )
    assert read_file(tree, "/img.raw.raw") == b"\0\0"
    listed = list_names(tree)
    assert len(listed) == len(set(listed))


@pytest.mark.parametrize(
    "name", ["größe", "日本語", "a b\tc", "new\nline", "-x", "\udcff\udcfe", "e\u0301", "\u00e9"]
)
def test_members_with_unusual_names_are_presented(name: str) -> None:
    store = MemoryStore()
    zarrfs.create_group(store)
    zarrfs.create_array(store, "plain", data=np.zeros(1))
    for key in [key for key in store.list_prefix() if key.startswith("plain")]:
        store.set(key.replace("plain", name), store.get(key) or b"")
    tree = Tree(zarrfs.open(store))
    assert f"{name}.npy" in list_names(tree)
    assert isinstance(tree.lookup(f"/{name}.npy"), VirtualFile)
    assert read_file(tree, f"/{name}.json")


@pytest.mark.parametrize("name", ["x" * 253, "x" * 255, "日" * 85, "x" * 251, "x" * 600])
def test_members_whose_names_are_too_long_for_a_file_name_have_shortened_names(name: str) -> None:
    store = MemoryStore()
    root = zarrfs.create_group(store)
    root.create_array(name, data=np.arange(3, dtype="u1"))
    root.create_group(name[:-1] + "g").create_array("inner", data=np.arange(2, dtype="u1"))
    store.set(f"{name[:-1]}b/zarr.json", b"not JSON")
    tree = Tree(zarrfs.open(store), views=("all",))
    listed = list_names(tree)
    assert all(len(each.encode()) <= 255 for each in listed)
    assert len(listed) == len(set(listed))
    assert listed == list_names(Tree(zarrfs.open(store), views=("all",))), "the names are stable"
    raw = [each for each in listed if each.endswith(".raw") and not each.endswith(".F.raw")]
    assert [read_file(tree, f"/{each}") for each in raw] == [b"\0\1\2"]
    groups = [each for each in listed if isinstance(tree.lookup(f"/{each}"), Directory)]
    inner = [each for each in groups if not each.endswith(".planes")]
    assert len(inner) == 1
    assert read_file(tree, f"/{inner[0]}/inner.raw") == b"\0\1"
    (error,) = [each for each in listed if each.endswith(".error.txt")]
    assert b"JSON" in read_file(tree, f"/{error}")
    (header,) = [each for each in listed if each.endswith(".json") and each != ".group.json"]
    document = json.loads(read_file(tree, f"/{header}"))
    for each in document["views"]:
        assert tree.lookup(f"/{each}") is not None, "the names in documents can be opened"


def test_invalid_metadata_of_a_member_does_not_affect_other_members() -> None:
    store = hierarchy()
    store.set("bad/zarr.json", b'{"zarr_format": 3, "node_type": "array", "shape": "wide"}')
    tree = Tree(zarrfs.open(store))
    assert "bad.error.txt" in list_names(tree)
    assert "img.npy" in list_names(tree)
    assert b"zarr.json" in read_file(tree, "/bad.error.txt")
    assert tree.lookup("/bad.npy") is None
    assert tree.lookup("/img.error.txt") is None


def test_changes_of_the_store_are_visible_after_revalidation() -> None:
    store, clock = hierarchy(), Clock()
    tree = Tree(zarrfs.open(store), clock=clock)
    before = tree.lookup("/img.npy")
    assert isinstance(before, VirtualFile)
    root = zarrfs.open_group(store, mode="r+")
    root["img"].append(np.zeros((1, 4), "u2"))  # type: ignore[union-attr]
    root.create_array("new", data=np.zeros(1))
    clock.now += 2 * REVALIDATION_SECONDS
    after = tree.lookup("/img.npy")
    assert isinstance(after, VirtualFile)
    assert after.content.size == before.content.size + 8
    assert "new.npy" in list_names(tree)
    del root["img"]
    clock.now += 2 * REVALIDATION_SECONDS
    assert tree.lookup("/img.npy") is None


def test_an_immutable_store_is_not_revalidated() -> None:
    inner, clock = hierarchy(), Clock()
    store = CountingStore(inner)
    tree = Tree(zarrfs.open(store), immutable=True, clock=clock)
    tree.lookup("/labels/0.npy")
    store.reset()
    clock.now += 1000
    assert tree.lookup("/labels/0.npy") is not None
    assert not store.calls


def test_stored_size_and_time_reflect_the_stored_chunks() -> None:
    store, clock = MemoryStore(), Clock()
    array = zarrfs.create_array(store, "a", shape=(1000, 1000), dtype="f8", chunks=(100, 100))
    tree = Tree(zarrfs.open(store), clock=clock)
    empty = tree.lookup("/a.raw")
    assert isinstance(empty, VirtualFile)
    assert empty.stored_nbytes < 2000 < empty.content.size
    array[:100, :100] = np.random.default_rng(0).random((100, 100))
    clock.now += 1000
    filled = tree.lookup("/a.raw")
    assert isinstance(filled, VirtualFile)
    assert filled.stored_nbytes > 50_000
    assert filled.modified is not None
    assert empty.modified is not None
    assert filled.modified > empty.modified


def test_a_very_large_array_of_missing_chunks_needs_few_requests() -> None:
    inner = MemoryStore()
    zarrfs.create_group(inner)
    zarrfs.create_array(inner, "large", shape=(10**6, 10**9), dtype="u1", chunks=(10**3, 10**3))
    store = CountingStore(inner)
    tree = Tree(zarrfs.open(store))
    assert list_names(tree) == [".group.json", "large.json", "large.npy", "large.raw"]
    file = tree.lookup("/large.npy")
    assert isinstance(file, VirtualFile)
    assert file.content.size == 10**15 + 128
    assert file.content.read(10**15 - 5, 20) == bytes(20)
    assert sum(store.calls.values()) < 60


def test_the_stored_size_is_determined_again_after_revalidation(tmp_path: Path) -> None:
    store = CountingStore(LocalStore(tmp_path))
    zarrfs.create_group(store).create_array("img", data=np.arange(12, dtype="u2"), compressors=None)
    clock = Clock()
    tree = Tree(zarrfs.open_group(store), "t", clock=clock)

    def stored_nbytes() -> int:
        entry = tree.lookup("/img.raw")
        assert isinstance(entry, VirtualFile)
        return entry.stored_nbytes

    first = stored_nbytes()
    assert first > 24
    store.reset()
    for _ in range(5):
        assert stored_nbytes() == first
    assert store.calls["usage"] == 0
    zarrfs.open_array(store, "img", mode="r+")[0] = 5
    store.set("img/c/extra", bytes(1000))
    store.reset()
    assert stored_nbytes() == first
    clock.now += REVALIDATION_SECONDS + 1
    assert stored_nbytes() == first + 1000
    assert store.calls["usage"] == 1


def test_elements_without_bytes_have_no_files_of_values() -> None:
    store = MemoryStore()
    zarrfs.create_array(store, "a", shape=(2,), dtype="V1", zarr_format=2, fill_value=None)
    # New arrays cannot have such elements.
    store.set("a/.zarray", bytes(store.get("a/.zarray") or b"").replace(b"|V1", b"|V0"))
    tree = Tree(zarrfs.open_group(store))
    assert [name for name in list_names(tree) if name.startswith("a.")] == ["a.json"]
    assert tree.lookup("/a.npy") is None


@pytest.mark.parametrize(
    "name", ["back\\slash", "a\nb", "esc\x1b[31m", "tab\t", "del\x7f", "\u202ebidi", " ", "\x01"]
)
@pytest.mark.parametrize("zarr_format", [2, 3])
def test_names_with_special_characters(name: str, zarr_format: int, tmp_path: Path) -> None:
    """A backslash is a separator in the paths of zarr libraries, so that another program has stored such a node."""
    location = tmp_path / "s.zarr"
    root = zarrfs.create_group(location, zarr_format=zarr_format)
    root.create_group("plain").create_array("plain", data=np.arange(6, dtype="u1"), chunks=2)
    for path in ("plain/plain", "plain"):
        (location / path).rename((location / path).with_name(name))
    tree = Tree(zarrfs.open(location))
    assert list_names(tree) == sorted([".group.json", name])
    assert list_names(tree, f"/{name}") == sorted(
        [".group.json", *(name + s for s in (".json", ".npy", ".raw"))]
    )
    assert read_file(tree, f"/{name}/{name}.raw") == bytes(range(6))
    assert tree.lookup(f"/{name}/{name}") is None
