"""Groups: members, creation, deletion, moving, attributes, and errors."""

from __future__ import annotations

import gc
import json
import logging
import re
import threading
import weakref
from contextlib import nullcontext
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr
from click.testing import CliRunner

import zarrfs
from tests.processes import TIMEOUT
from zarrfs.cli.main import main
from zarrfs.engine.stores.base import Store
from zarrfs.engine.stores.memory import MemoryStore
from zarrfs.engine.stores.wrappers.wrapper import WrapperStore
from zarrfs.errors import (
    KeyNameError,
    MetadataError,
    NodeExistsError,
    NodeNotFoundError,
    NodeTypeError,
    ReadOnlyError,
    ZarrError,
)
from zarrfs.testing import CountingStore, LatencyStore
from zarrfs.testing.stores import ObservedStore

FORMATS = [2, 3]


def hierarchy(zarr_format: int = 3) -> zarrfs.Group:
    root = zarrfs.create_group(MemoryStore(), zarr_format=zarr_format, attributes={"a": 1})
    root.create_array("x", data=np.arange(6).reshape(2, 3), chunks=(1, 3))
    root.create_group("g").create_array("y", shape=(5,), dtype="f4", fill_value=1)
    root.create_array("g/h/z", data=np.zeros(2))
    return root


@pytest.mark.parametrize("zarr_format", FORMATS)
def test_a_group_is_a_mapping(zarr_format: int) -> None:
    root = hierarchy(zarr_format)
    assert list(root) == ["g", "x"]
    assert len(root) == 2
    assert "x" in root
    assert "g/h/z" in root
    assert "nothing" not in root
    assert 5 not in root  # type: ignore[comparison-overlap]
    assert isinstance(root["g"], zarrfs.Group)
    assert root["g/h"]["z"].shape == (2,)  # type: ignore[index, union-attr]
    assert root["/g//y/"].path == "g/y"
    assert root.get("nothing") is None
    assert dict(root.arrays()).keys() == {"x"}
    assert dict(root.groups()).keys() == {"g"}
    assert list(root.array_keys()) == ["x"]
    assert list(root.group_keys()) == ["g"]
    assert [path for path, _ in root.walk()] == ["g", "g/h", "g/h/z", "g/y", "x"]
    assert [path for path, _ in root.walk(1)] == ["g", "x"]
    assert root.visit(lambda path: path if path.endswith("z") else None) == "g/h/z"
    assert root.visititems(lambda path, node: None) is None
    assert root.visitkeys(lambda path: path if "h" in path else None) == "g/h"
    assert root.visitvalues(lambda node: node.name if node.name.endswith("y") else None) == "/g/y"
    assert root.tree().splitlines() == [
        *(
            "/",
            "├── g",
            "│   ├── h",
            "│   │   └── z (2,) float64",
            "│   └── y (5,) float32",
            "└── x (2, 3) int64",
        )
    ]
    assert len(root.tree(level=1).splitlines()) == 3
    assert root == zarrfs.open_group(root.store)
    assert root.info["attributes"] == {"a": 1}
    assert "shape" in repr(root["x"].info)


@pytest.mark.parametrize("zarr_format", FORMATS)
def test_the_error_for_a_missing_member_names_the_existing_ones(zarr_format: int) -> None:
    root = hierarchy(zarr_format)
    with pytest.raises(NodeNotFoundError, match=r"no array or group 'nothing'.*'g', 'x'"):
        root["nothing"]
    with pytest.raises(KeyError):
        root["nothing"]
    with pytest.raises(KeyNameError):
        root["../x"]
    with pytest.raises(NodeTypeError, match="is a group, expected an array"):
        zarrfs.open_array(root.store, "g")
    with pytest.raises(NodeTypeError, match="is an array, expected a group"):
        zarrfs.open_group(root.store, "x")


@pytest.mark.parametrize("zarr_format", FORMATS)
def test_members_are_created_deleted_and_moved(zarr_format: int) -> None:
    root = hierarchy(zarr_format)
    with pytest.raises(NodeExistsError, match="overwrite=True"):
        root.create_array("x", shape=3, dtype="u1")
    with pytest.raises(NodeExistsError):
        root.create_group("g")
    with pytest.raises(NodeTypeError, match="nothing can be created below it"):
        root.create_array("x/below", shape=3, dtype="u1")
    root.create_array("x", shape=3, dtype="u1", overwrite=True)
    assert root["x"].shape == (3,)  # type: ignore[union-attr]
    root["numbers"] = np.arange(4)
    np.testing.assert_array_equal(root["numbers"], np.arange(4))
    root.move("g", "deep/er/g")
    assert "g" not in root
    np.testing.assert_array_equal(root["deep/er/g/y"], np.ones(5, "f4"))
    assert isinstance(root["deep/er"], zarrfs.Group)
    with pytest.raises(NodeExistsError):
        root.move("x", "numbers")
    with pytest.raises(NodeExistsError, match="into itself"):
        root.move("deep", "deep/er/er")
    with pytest.raises(NodeNotFoundError):
        root.move("nothing", "somewhere")
    del root["deep"]
    assert list(root) == ["numbers", "x"]
    with pytest.raises(NodeNotFoundError):
        del root["deep"]


@pytest.mark.parametrize("zarr_format", FORMATS)
def test_require_returns_an_existing_node_or_creates_one(zarr_format: int) -> None:
    root = hierarchy(zarr_format)
    assert root.require_group("g").path == "g"
    assert root.require_group("new").path == "new"
    assert root.require_array("x", shape=(2, 3), dtype="i4").path == "x"
    assert root.require_array("more", shape=4, dtype="i4").shape == (4,)
    for wrong in (
        {"shape": (2, 4)},
        {"shape": (2, 3), "dtype": "c8"},
        {"shape": (2, 3), "dtype": "i4", "exact": True},
    ):
        with pytest.raises(NodeTypeError):
            root.require_array("x", **wrong)  # type: ignore[arg-type]
    with pytest.raises(NodeTypeError):
        root.require_group("x")
    with pytest.raises(NodeTypeError):
        root.require_array("g", shape=1)


@pytest.mark.parametrize("zarr_format", FORMATS)
def test_changes_of_attributes_are_written_to_the_store(zarr_format: int, tmp_path: Path) -> None:
    zarrfs.create_group(tmp_path / "s", zarr_format=zarr_format).create_array("x", data=np.arange(3))
    for path in ("", "x"):
        node = zarrfs.open(tmp_path / "s", path, mode="r+")
        node.attrs["one"] = 1
        node.attrs.update(two=[2, {"deep": None}], three="größe")
        del node.attrs["one"]
        assert zarrfs.open(tmp_path / "s", path).attrs == {"two": [2, {"deep": None}], "three": "größe"}
        theirs = zarr.open(tmp_path / "s", path=path, mode="r", zarr_format=zarr_format)
        assert dict(theirs.attrs) == {"two": [2, {"deep": None}], "three": "größe"}
        node.attrs.put({"only": True})
        assert zarrfs.open(tmp_path / "s", path).attrs.asdict() == {"only": True}
        with pytest.raises(KeyError):
            del node.attrs["nothing"]
        with pytest.raises(ZarrError, match="JSON"):
            node.attrs["bad"] = object()
        assert node.attrs == {"only": True}
    with pytest.raises(ReadOnlyError):
        zarrfs.open(tmp_path / "s").attrs["x"] = 1
    np.testing.assert_array_equal(zarrfs.open(tmp_path / "s", "x"), np.arange(3))


def test_a_read_only_group_refuses_all_changes() -> None:
    store = hierarchy().store
    root = zarrfs.open_group(store)
    for change in (
        lambda: root.create_group("n"),
        lambda: root.create_array("n", shape=1),
        lambda: root.move("x", "n"),
        lambda: root.__delitem__("x"),
        lambda: root.__setitem__("n", np.zeros(1)),
        lambda: root.require_group("n"),
    ):
        with pytest.raises(ReadOnlyError):
            change()
    assert list(root) == ["g", "x"]
    assert root["x"].read_only


def test_names_that_the_specification_forbids_are_refused() -> None:
    root = hierarchy()
    for name in ("__hidden", "a/__b", "...", ".."):
        with pytest.raises(ZarrError):
            root.create_group(name)
    assert list(root) == ["g", "x"]


def test_a_member_with_invalid_metadata_is_omitted_with_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    root = hierarchy()
    root.store.set("bad/zarr.json", b"{")
    with caplog.at_level(logging.WARNING):
        assert list(root) == ["g", "x"]
    assert "'bad' is left out" in caplog.text
    assert "bad" in root.names()
    with pytest.raises(MetadataError, match=r"bad/zarr\.json"):
        root["bad"]


class UnlistableStore(WrapperStore):
    """A store that cannot be listed, as a plain HTTP server cannot."""

    def __init__(self, store: MemoryStore) -> None:
        super().__init__(store)
        self.listable = False


@pytest.mark.parametrize("zarr_format", FORMATS)
def test_consolidated_metadata_replace_listings(zarr_format: int, tmp_path: Path) -> None:
    theirs = zarr.create_group(tmp_path / "s", zarr_format=zarr_format)
    theirs.create_array("x", shape=(3,), dtype="u2", chunks=(2,))[:] = np.arange(3)
    theirs.create_group("g").create_array("y", shape=(4,), dtype="u1", chunks=(2,))
    with pytest.warns(UserWarning, match="Consolidated metadata") if zarr_format == 3 else nullcontext():
        zarr.consolidate_metadata(tmp_path / "s")
    values = {
        str(f.relative_to(tmp_path / "s")): f.read_bytes() for f in (tmp_path / "s").rglob("*") if f.is_file()
    }
    counting = CountingStore(UnlistableStore(MemoryStore(values)))  # type: ignore[arg-type]
    counting.listable = False
    root = zarrfs.open_group(counting)
    counting.reset()
    assert list(root) == ["g", "x"]
    assert root["g/y"].shape == (4,)  # type: ignore[union-attr]
    assert sum(counting.calls.values()) <= 2, "only the consolidated document is read"
    np.testing.assert_array_equal(root["x"], np.arange(3))


@pytest.mark.parametrize("zarr_format", [2, 3, "n5", "draft2019"])
def test_replacing_deleting_and_moving_leave_no_keys_behind(zarr_format: Any) -> None:
    """Remaining chunks would be read by a later array at the same path. The 2019 draft stores chunks and documents
    below different prefixes.
    """
    store = MemoryStore()
    root = zarrfs.create_group(store, zarr_format=zarr_format)
    before = sorted(store.list_prefix())
    old = {"data": np.arange(1, 11), "chunks": (5,)}
    new = {"shape": (10,), "dtype": "i8", "chunks": (5,)}
    root.create_array("a", **old)
    assert not root.create_array("a", overwrite=True, **new)[...].any()
    del root["a"]
    assert sorted(store.list_prefix()) == before
    root.create_array("b/a", **old)
    root.move("b", "c/d")
    assert root["c/d/a"][...].tolist() == list(range(1, 11))
    assert "b" not in root
    assert not root.create_array("b/a", **new)[...].any()
    root.move("c/d/a", "ab")
    assert root["ab"][...].tolist() == list(range(1, 11))


class Failing(ObservedStore):
    """Refuses one operation on one prefix."""

    def __init__(self, store: Store, operation: str, prefix: str, error: Exception) -> None:
        super().__init__(store)
        self.operation, self.prefix, self.error = operation, prefix, error

    def _before(self, operation: str, key: str) -> None:
        if operation == self.operation and (key == self.prefix or key.startswith(f"{self.prefix}/")):
            raise self.error


def three_groups() -> MemoryStore:
    store = MemoryStore()
    root = zarrfs.create_group(store)
    for name in "abc":
        root.create_group(name).create_array("x", data=np.zeros(1))
    return store


def test_listing_the_names_reads_each_document_once() -> None:
    counting = CountingStore(three_groups())
    group = zarrfs.open_group(counting)
    counting.reset()
    assert [name for name in group] == ["a", "b", "c"]  # noqa: C416 - without the length
    once = dict(counting.calls)
    counting.reset()
    assert list(group) == ["a", "b", "c"]
    assert dict(counting.calls) == once
    names = iter(group)
    assert next(names) == "a"
    assert len(group) == 3
    assert list(names) == ["b", "c"]


def test_members_of_a_remote_store_are_opened_at_the_same_time() -> None:
    """The requests of all three members arrive before the first one is answered."""
    barrier = threading.Barrier(3, timeout=TIMEOUT)
    open_names: list[str] = []

    def wait(operation: str, key: str) -> None:
        if armed and key.endswith("/zarr.json") and key not in open_names:
            open_names.append(key)
            barrier.wait()

    armed = False
    store = LatencyStore(three_groups(), wait)
    store.concurrency = 8
    store.is_remote = True
    group = zarrfs.open_group(store)
    armed = True
    assert [name for name, _ in group.members()] == ["a", "b", "c"]


ALL = ["a", "a/x", "b", "b/x", "c", "c/x"]


def test_walk_visits_as_many_levels_as_depth() -> None:
    group = zarrfs.open_group(three_groups())
    assert [path for path, _ in group.walk()] == ALL
    assert [path for path, _ in group.walk(1)] == ["a", "b", "c"]
    assert [path for path, _ in group.walk(2)] == ALL


@pytest.mark.parametrize("error", [zarrfs.StoreError("refused", 13), OSError(5, "broken")], ids=repr)
def test_walk_omits_a_member_that_cannot_be_read(error: Exception, caplog: pytest.LogCaptureFixture) -> None:
    group = zarrfs.open_group(Failing(three_groups(), "size", "b", error))
    assert [path for path, _ in group.walk()] == ["a", "a/x", "c", "c/x"]
    assert "member 'b' is left out" in caplog.text


def test_walk_and_tree_continue_after_a_group_that_cannot_be_listed(caplog: pytest.LogCaptureFixture) -> None:
    group = zarrfs.open_group(Failing(three_groups(), "list_dir", "b", zarrfs.StoreError("refused", 13)))
    assert [path for path, _ in group.walk()] == ["a", "a/x", "b", "c", "c/x"]
    assert "the members of /b are left out: refused" in caplog.text
    assert "cannot be listed: refused" in group.tree()
    assert group.tree().count("x (1,)") == 2
    whole = zarrfs.open_group(Failing(three_groups(), "list_dir", "", zarrfs.StoreError("refused", 13)))
    with pytest.raises(zarrfs.StoreError, match="refused"):
        list(whole.walk())


def test_get_does_not_list_and_raises_for_invalid_metadata() -> None:
    store = three_groups()
    store.set("broken/zarr.json", b"{")
    counting = CountingStore(store)
    group = zarrfs.open_group(counting)
    assert group.get("nothing") is None
    assert group.get("nothing", 5) == 5
    assert group.get("a/x").shape == (1,)
    assert "nothing" not in group
    assert counting.calls["list_dir"] == 0
    with pytest.raises(zarrfs.MetadataError):
        group.get("broken")


def test_an_unexpected_exception_becomes_a_metadata_error(caplog: pytest.LogCaptureFixture) -> None:
    group = zarrfs.open_group(Failing(three_groups(), "size", "b", RuntimeError("boom")))
    with pytest.raises(
        zarrfs.MetadataError, match="/b: the metadata cannot be interpreted: RuntimeError: boom"
    ):
        group["b"]
    assert [path for path, _ in group.walk()] == ["a", "a/x", "c", "c/x"]
    assert "left out" in caplog.text


@pytest.mark.parametrize("name", ["a", "a/x"])
def test_a_node_is_freed_without_the_garbage_collector(name: str) -> None:
    """A node may contain large metadata, so it must not be part of a reference cycle."""
    node = zarrfs.open_group(three_groups())[name]
    assert dict(node.attrs) == {}
    reference = weakref.ref(node)
    gc.disable()
    try:
        del node
        assert reference() is None
    finally:
        gc.enable()


def test_a_tree_has_a_maximum_depth_of_at_least_zero() -> None:
    root = zarrfs.group()
    root.create_group("a/b")
    assert str(root.tree(level=0)) == "/"
    assert str(root.tree(level=1)).count("\n") == 1
    assert str(root.tree(max_nodes=0)).startswith("/\n... only 0 nodes")
    with pytest.raises(ValueError, match="level must be at least 0"):
        root.tree(level=-1)


GROUP_DOCUMENT = b'{"zarr_format": 3, "node_type": "group"}'


@pytest.mark.parametrize(
    "key",
    ["/", "/zarr.json", "a//zarr.json", "./zarr.json", "a/../zarr.json", "\\/zarr.json", "a/b\\c/zarr.json"],
)
def test_keys_with_segments_that_are_not_names_are_no_members(key: str) -> None:
    """An empty name denotes the group itself, so that a walk would never end."""
    group = zarrfs.open_group(
        {"zarr.json": GROUP_DOCUMENT, "a/zarr.json": GROUP_DOCUMENT, key: GROUP_DOCUMENT}
    )
    assert [path for path, _ in islice(group.walk(), 5)] == ["a"]
    assert group["a"].names() == []


@pytest.mark.parametrize("path", ["", "/", "a//", ".", "a/..", "\\"])
def test_consolidated_paths_with_segments_that_are_not_names_are_no_members(path: str) -> None:
    entry = {"zarr_format": 3, "node_type": "group", "attributes": {}}
    document = {
        **entry,
        "consolidated_metadata": {
            "kind": "inline",
            "must_understand": False,
            "metadata": {"a": entry, path: entry},
        },
    }
    group = zarrfs.open_consolidated({"zarr.json": json.dumps(document).encode()})
    assert [path for path, _ in islice(group.walk(), 5)] == ["a"]


def test_a_local_directory_with_the_name_of_a_separator_is_no_member(tmp_path: Path) -> None:
    for folder in (tmp_path, tmp_path / "a", tmp_path / "\\", tmp_path / "b\\c"):
        folder.mkdir(exist_ok=True)
        (folder / "zarr.json").write_bytes(GROUP_DOCUMENT)
    assert [path for path, _ in islice(zarrfs.open_group(tmp_path).walk(), 5)] == ["a"]


@pytest.mark.parametrize("kind", ["directory", "link without target"])
@pytest.mark.parametrize("name", ["zarr.json", ".zarray", ".zgroup", "attributes.json"])
def test_a_document_that_is_not_a_file_is_an_error(name: str, kind: str, tmp_path: Path) -> None:
    """Such a member was omitted from listings."""
    zarrfs.create_group(tmp_path / "g").create_array("a", data=[1])
    document = tmp_path / "g" / "bad" / name
    document.parent.mkdir()
    if kind == "directory":
        document.mkdir()
    else:
        document.symlink_to("missing")
    group = zarrfs.open_group(tmp_path / "g")
    for access in (
        lambda: group["bad"],
        lambda: group.get("bad"),
        lambda: zarrfs.open(tmp_path / "g" / "bad"),
    ):
        with pytest.raises(zarrfs.MetadataError, match=f"bad/{re.escape(name)} is not a regular file"):
            access()
    result = CliRunner().invoke(main, ["tree", str(tmp_path / "g")])
    assert f"bad/{name} is not a regular file; expected a metadata document" in result.output
