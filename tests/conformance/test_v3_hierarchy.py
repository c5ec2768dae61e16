"""Zarr core specification 3.1: "Stored representation", "Node names" and "Storage"."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zarrfs
from tests.documents import V3_ARRAY, V3_GROUP, changed, read_json, store_of
from zarrfs.engine.stores.local.store import LocalStore
from zarrfs.engine.stores.memory import MemoryStore
from zarrfs.errors import KeyNameError, NodeNotFoundError, NodeTypeError

# -- Stored representation -----------------------------------------------------------------------------


@pytest.mark.parametrize(("path", "prefix"), [("/", ""), ("/foo", "foo/"), ("/foo/bar", "foo/bar/")])
@pytest.mark.parametrize("kind", ["array", "group"])
def test_metadata_and_data_keys(path: str, prefix: str, kind: str) -> None:
    store = MemoryStore()
    if kind == "group":
        node: Any = zarrfs.create_group(store, path)
    else:
        node = zarrfs.create_array(store, path, data=np.ones((2, 1), "u1"), chunks=1, compressors=None)
    assert node.name == path
    assert read_json(store, f"{prefix}zarr.json")["node_type"] == kind
    own = {key for key in store.values if key.startswith(prefix) and not key.endswith("zarr.json")}
    assert own == ({f"{prefix}c/0/0", f"{prefix}c/1/0"} if kind == "array" else set())
    assert type(zarrfs.open(store, path)) is type(node)


def test_data_key_example() -> None:
    document = changed(
        V3_ARRAY,
        shape=[4, 4],
        chunk_grid={"name": "regular", "configuration": {"chunk_shape": [2, 4]}},
    )
    store = store_of({"zarr.json": V3_GROUP, "foo/zarr.json": V3_GROUP, "foo/baz/zarr.json": document})
    store.set("foo/baz/c/1/0", bytes(range(8)))
    assert zarrfs.open_array(store, "/foo/baz")[2:].tolist() == [[0, 1, 2, 3], [4, 5, 6, 7]]


# -- Node names ----------------------------------------------------------------------------------------

BAD_NAMES = ["...", "....", "__", "__zarr", "__foo"]


@pytest.mark.parametrize("name", BAD_NAMES)
def test_names_are_checked_on_creation(name: str) -> None:
    store = store_of({"zarr.json": V3_GROUP, "foo/zarr.json": V3_GROUP})
    keys = sorted(store.values)
    group = zarrfs.open_group(store, mode="r+")
    for attempt in (
        lambda: zarrfs.create_group(store, name),
        lambda: zarrfs.create_array(store, name, shape=1),
        lambda: zarrfs.create_array(store, f"{name}/deeper", shape=1),
        lambda: zarrfs.open(store, name, mode="a", shape=1),
        lambda: group.create_group(f"new/{name}"),
        lambda: group.create_array(name, shape=1),
        lambda: group.require_group(name),
        lambda: group.__setitem__(name, np.ones(3)),
        lambda: group.move("foo", name),
        lambda: group.move("foo", f"new/{name}"),
    ):
        with pytest.raises(KeyNameError, match="is not a valid node name"):
            attempt()
    assert sorted(store.values) == keys


@pytest.mark.parametrize("name", BAD_NAMES)
@pytest.mark.parametrize("document", [V3_ARRAY, V3_GROUP], ids=["array", "group"])
def test_nodes_with_invalid_names_are_read_with_a_warning(
    name: str, document: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    store = store_of({"zarr.json": V3_GROUP, f"{name}/zarr.json": document})
    with caplog.at_level(logging.WARNING, "zarrfs"):
        assert zarrfs.open(store, name).basename == name
    (record,) = caplog.records
    assert repr(name) in record.getMessage()
    assert "read nevertheless" in record.getMessage()


GOOD_NAMES = [
    "a",
    "A-Z_0.9",
    ".hidden",
    "_",
    "_x",
    "x__",
    "..a",
    "c",
    "with space",
    "ñandú",
    "日本語",
    "𝛼",
    "0",
]


@pytest.mark.parametrize("name", GOOD_NAMES)
def test_names_of_any_other_characters_are_valid(name: str, tmp_path: Path) -> None:
    zarrfs.create_group(tmp_path / "h.zarr").create_group(name).create_array("a", data=[1, 2])
    root = zarrfs.open_group(tmp_path / "h.zarr")
    assert list(root) == [name]
    assert root[f"{name}/a"][:].tolist() == [1, 2]  # type: ignore[index, union-attr]
    # UTF-8 is the default encoding of keys in stores that use bytes.
    assert (tmp_path / "h.zarr").joinpath(name).is_dir()
    assert name.encode() in [entry.name.encode() for entry in (tmp_path / "h.zarr").iterdir()]


def test_names_are_case_sensitive() -> None:
    root = zarrfs.create_group(MemoryStore())
    root.create_group("foo", attributes={"a": 1})
    root.create_group("FOO", attributes={"a": 2})
    assert list(root) == ["FOO", "foo"]
    assert (root["foo"].attrs["a"], root["FOO"].attrs["a"]) == (1, 2)


def test_unicode_names_are_not_normalized() -> None:
    composed, decomposed = "é", "e\u0301"
    root = zarrfs.create_group(MemoryStore())
    root.create_group(composed)
    root.create_group(decomposed)
    assert sorted(root) == sorted([composed, decomposed])


# -- Storage: operations -------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["array", "group"])
def test_ancestors_are_created(kind: str) -> None:
    store = MemoryStore()
    if kind == "group":
        zarrfs.create_group(store, "foo/bar/baz")
    else:
        zarrfs.create_array(store, "foo/bar/baz", shape=1)
    assert sorted(store.values) == [
        "foo/bar/baz/zarr.json",
        "foo/bar/zarr.json",
        "foo/zarr.json",
        "zarr.json",
    ]
    for path in ("", "foo/", "foo/bar/"):
        assert read_json(store, f"{path}zarr.json") == V3_GROUP | {"attributes": {}}


def test_groups_are_not_implied() -> None:
    store = store_of(
        {"zarr.json": V3_GROUP, "foo/bar/zarr.json": V3_GROUP, "foo/baz/qux/zarr.json": V3_ARRAY}
    )
    root = zarrfs.open_group(store)
    assert list(root) == []
    assert "foo" not in root
    for path in ("foo", "foo/baz"):
        with pytest.raises(NodeNotFoundError):
            zarrfs.open(store, path)
    assert isinstance(zarrfs.open(store, "foo/bar"), zarrfs.Group)
    assert isinstance(zarrfs.open(store, "foo/baz/qux"), zarrfs.Array)


def test_the_root_exists_only_if_its_document_exists() -> None:
    with pytest.raises(NodeNotFoundError):
        zarrfs.open(store_of({"foo/zarr.json": V3_GROUP}))


def test_creating_a_node_creates_the_documents_of_its_ancestors() -> None:
    store = store_of({"foo/bar/zarr.json": V3_ARRAY})
    zarrfs.create_group(store, "foo/new")
    assert [path for path, _ in zarrfs.open_group(store).walk()] == ["foo", "foo/bar", "foo/new"]


def test_children_are_prefixes_with_a_document() -> None:
    store = store_of(
        {
            "zarr.json": V3_GROUP,
            "foo/zarr.json": V3_GROUP,
            "foo/bar/zarr.json": V3_GROUP,
            "foo/baz/zarr.json": V3_ARRAY,
            "foo/baz/c/0": b"\1\2",
            "foo/notes/readme.txt": b"",
            "foo/file": b"",
            "foo/__extension/zarr.json": V3_GROUP,
            "foo/__zarr/data": b"",
        }
    )
    foo = zarrfs.open_group(store, "foo")
    assert [(name, type(node).__name__) for name, node in foo.members()] == [
        ("bar", "Group"),
        ("baz", "Array"),
    ]
    assert [path for path, _ in zarrfs.open_group(store).walk()] == ["foo", "foo/bar", "foo/baz"]


@pytest.mark.parametrize("path", ["a/b", "a/c/d"])
def test_nodes_cannot_be_created_below_an_array(path: str) -> None:
    store = store_of({"zarr.json": V3_GROUP, "a/zarr.json": V3_ARRAY})
    with pytest.raises(NodeTypeError, match="is an array"):
        zarrfs.create_group(store, path)
    with pytest.raises(NodeTypeError, match="is an array"):
        zarrfs.create_array(store, path, shape=1)
    assert sorted(store.values) == ["a/zarr.json", "zarr.json"]


@pytest.mark.parametrize("name", ["array", "group"])
def test_deleting_a_node_deletes_its_prefix(name: str) -> None:
    store = store_of(
        {
            "zarr.json": V3_GROUP,
            "array/zarr.json": V3_ARRAY,
            "array/c/0": b"\1\2",
            "group/zarr.json": V3_GROUP,
            "group/below/zarr.json": V3_ARRAY,
            f"{name}s/zarr.json": V3_GROUP,
        }
    )
    group = zarrfs.open_group(store, mode="r+")
    del group[name]
    assert name not in group
    assert not [key for key in store.values if key.startswith(f"{name}/")]
    assert f"{name}s" in group


def test_two_siblings_cannot_have_the_same_name(tmp_path: Path) -> None:
    group = zarrfs.create_group(LocalStore(tmp_path))
    group.create_array("a", data=[1])
    for create in (lambda: group.create_group("a"), lambda: group.create_array("a", shape=1)):
        with pytest.raises(FileExistsError):
            create()
    assert zarrfs.open_array(tmp_path / "a")[:].tolist() == [1]
