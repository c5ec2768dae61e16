"""Zarr storage specification, version 2: "Hierarchies", "Attributes" and "Examples"."""

from __future__ import annotations

import json
import os
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zarrfs
from tests.documents import V2_ARRAY, changed, read_json, store_of
from zarrfs.engine.stores.memory import MemoryStore
from zarrfs.engine.stores.zip.store import ZipStore
from zarrfs.errors import KeyNameError, MetadataError, NodeNotFoundError, NodeTypeError

GROUP = {"zarr_format": 2}


# -- Logical storage paths -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "path",
    ["foo/bar", "/foo/bar", "foo/bar/", "///foo///bar///", "foo\\bar", "\\foo\\\\bar\\", "/\\foo/\\/bar"],
)
def test_logical_paths_are_normalized(path: str) -> None:
    store = MemoryStore()
    array = zarrfs.create_array(
        store, path, data=np.ones((1, 2), "u1"), chunks=1, zarr_format=2, attributes={"a": 1}
    )
    assert array.path == "foo/bar"
    assert {key for key in store.values if key.startswith("foo/bar/")} == {
        "foo/bar/.zarray",
        "foo/bar/.zattrs",
        "foo/bar/0.0",
        "foo/bar/0.1",
    }
    assert zarrfs.open_array(store, path)[:].tolist() == [[1, 1]]
    assert zarrfs.open_group(store)[path] == zarrfs.open_array(store, "foo/bar")
    assert path in zarrfs.open_group(store)


@pytest.mark.parametrize("path", ["", "/", "\\", "//\\//"])
def test_the_root_has_an_empty_path(path: str) -> None:
    store = MemoryStore()
    zarrfs.create_group(store, path, zarr_format=2)
    assert list(store.values) == [".zgroup"]
    assert zarrfs.open_group(store, path).path == ""


@pytest.mark.parametrize("path", [".", "..", "foo/./bar", "foo/../bar", "foo\\..\\bar", "/..", "foo/."])
def test_path_segments_of_periods_are_refused(path: str) -> None:
    store = store_of({".zgroup": GROUP, "foo/.zgroup": GROUP, "bar/.zgroup": GROUP})
    keys = sorted(store.values)
    group = zarrfs.open_group(store, mode="r+")
    for attempt in (
        lambda: zarrfs.open(store, path),
        lambda: zarrfs.create_group(store, path, zarr_format=2),
        lambda: zarrfs.create_array(store, path, shape=1, zarr_format=2),
        lambda: group[path],
        lambda: group.create_group(path),
        lambda: group.move("foo", path),
    ):
        with pytest.raises(KeyNameError):
            attempt()
    assert sorted(store.values) == keys


@pytest.mark.parametrize("name", ["...", ".hidden", "a.b", "0.0", "with space", "ß", "__dunder__"])
def test_other_path_segments_are_valid_names(name: str) -> None:
    store = MemoryStore()
    zarrfs.create_group(store, zarr_format=2).create_group(name)
    assert f"{name}/.zgroup" in store.values
    assert list(zarrfs.open_group(store)) == [name]


# -- Groups --------------------------------------------------------------------------------------------


def test_a_group_exists_if_its_document_exists() -> None:
    store = store_of({".zgroup": GROUP, "foo/bar/.zgroup": GROUP})
    assert isinstance(zarrfs.open(store), zarrfs.Group)
    assert isinstance(zarrfs.open(store, "foo/bar"), zarrfs.Group)
    with pytest.raises(NodeNotFoundError):
        zarrfs.open(store, "foo")
    assert list(zarrfs.open_group(store)) == []


@pytest.mark.parametrize("kind", ["group", "array"])
def test_groups_are_created_at_all_ancestor_paths(kind: str) -> None:
    store = MemoryStore()
    if kind == "group":
        zarrfs.create_group(store, "foo/bar/baz", zarr_format=2)
    else:
        zarrfs.create_array(store, "foo/bar/baz", shape=3, zarr_format=2)
    own = "foo/bar/baz/.zgroup" if kind == "group" else "foo/bar/baz/.zarray"
    assert set(store.values) == {".zgroup", "foo/.zgroup", "foo/bar/.zgroup", own}
    assert all(read_json(store, key) == GROUP for key in store.values if key.endswith(".zgroup"))


def test_existing_ancestors_are_unchanged() -> None:
    store = store_of({".zgroup": GROUP, "foo/.zgroup": GROUP, "foo/.zattrs": {"kept": 1}})
    before = dict(store.values)
    zarrfs.open_group(store, mode="r+").create_array("foo/bar", shape=3)
    assert {key: store.values[key] for key in before} == before
    assert zarrfs.open_group(store, "foo").attrs.asdict() == {"kept": 1}


def test_nodes_cannot_be_created_below_an_array() -> None:
    store = store_of({".zgroup": GROUP, "a/.zarray": V2_ARRAY})
    for create in (zarrfs.create_group, zarrfs.create_array):
        options: dict[str, Any] = {"shape": 3} if create is zarrfs.create_array else {}
        with pytest.raises(NodeTypeError, match="is an array"):
            create(store, "a/b", zarr_format=2, **options)
    assert sorted(store.values) == [".zgroup", "a/.zarray"]


@pytest.mark.parametrize(
    "document",
    [{}, {"zarr_format": 1}, {"zarr_format": 3}, {"zarr_format": "2"}, {"zarr_format": None}, [2]],
    ids=str,
)
def test_group_metadata_must_have_the_version(document: Any) -> None:
    with pytest.raises(MetadataError):
        zarrfs.open(store_of({".zgroup": document}))


def test_group_metadata_has_no_other_keys() -> None:
    store = MemoryStore()
    zarrfs.create_group(store, zarr_format=2, attributes={"a": 1}).attrs["b"] = 2
    assert read_json(store, ".zgroup") == {"zarr_format": 2}


def test_members_are_direct_children() -> None:
    store = store_of(
        {
            ".zgroup": GROUP,
            "foo/.zgroup": GROUP,
            "foo/bar/.zgroup": GROUP,
            "foo/bar/deeper/.zgroup": GROUP,
            "foo/baz/.zarray": V2_ARRAY,
            "foo/nothing/here": b"",
            "foobar/.zgroup": GROUP,
        }
    )
    foo = zarrfs.open_group(store, "foo")
    assert sorted(foo) == ["bar", "baz"]
    assert isinstance(foo["bar"], zarrfs.Group)
    assert isinstance(foo["baz"], zarrfs.Array)


# -- Attributes ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("key", [".zarray", ".zgroup"])
def test_attributes_may_be_missing(key: str) -> None:
    document = V2_ARRAY if key == ".zarray" else GROUP
    assert zarrfs.open(store_of({key: document})).attrs.asdict() == {}


@pytest.mark.parametrize("key", [".zarray", ".zgroup"])
def test_attributes_example(key: str) -> None:
    attributes = {"foo": 42, "bar": "apples", "baz": [1, 2, 3, 4]}
    document = V2_ARRAY if key == ".zarray" else GROUP
    store = store_of({key: document, ".zattrs": attributes})
    node = zarrfs.open(store, mode="r+")
    assert node.attrs.asdict() == attributes
    node.attrs["deep"] = {"null": None, "list": [True, 1.5, {"ü": "日本"}]}
    assert read_json(store, ".zattrs") == attributes | {
        "deep": {"null": None, "list": [True, 1.5, {"ü": "日本"}]}
    }
    assert read_json(store, key) == document


@pytest.mark.parametrize("attributes", [[], "text", 3], ids=str)
def test_attributes_must_be_an_object(attributes: Any) -> None:
    with pytest.raises(MetadataError, match=r"\.zattrs"):
        zarrfs.open(store_of({".zgroup": GROUP, ".zattrs": attributes}))


# -- Examples ------------------------------------------------------------------------------------------


def test_example_of_a_single_array(tmp_path: Path) -> None:
    location = tmp_path / "data" / "example.zarr"
    array = zarrfs.create_array(
        location,
        shape=(20, 20),
        chunks=(10, 10),
        dtype="i4",
        fill_value=42,
        compressors={"id": "zlib", "level": 1},
        zarr_format=2,
        overwrite=True,
    )
    assert sorted(os.listdir(location)) == [".zarray"]
    assert json.loads((location / ".zarray").read_text()) == {
        "chunks": [10, 10],
        "compressor": {"id": "zlib", "level": 1},
        "dtype": "<i4",
        "fill_value": 42,
        "filters": None,
        "order": "C",
        "shape": [20, 20],
        "zarr_format": 2,
        "dimension_separator": ".",
    }
    array[0:10, 0:10] = 1
    assert sorted(os.listdir(location)) == [".zarray", "0.0"]
    array[0:10, 10:20] = 2
    array[10:20, :] = 3
    assert sorted(os.listdir(location)) == [".zarray", "0.0", "0.1", "1.0", "1.1"]
    chunk = zlib.decompress((location / "0.0").read_bytes())
    assert np.frombuffer(chunk, "<i4").tolist() == [1] * 100
    array.attrs["foo"] = 42
    array.attrs["bar"] = "apples"
    array.attrs["baz"] = [1, 2, 3, 4]
    assert sorted(os.listdir(location)) == [".zarray", ".zattrs", "0.0", "0.1", "1.0", "1.1"]
    assert json.loads((location / ".zattrs").read_text()) == {"bar": "apples", "baz": [1, 2, 3, 4], "foo": 42}


def test_the_example_document_without_a_separator_is_read() -> None:
    """The document equals that of the example."""
    zarray = {
        "chunks": [10, 10],
        "compressor": {"id": "zlib", "level": 1},
        "dtype": "<i4",
        "fill_value": 42,
        "filters": None,
        "order": "C",
        "shape": [20, 20],
        "zarr_format": 2,
    }
    chunk = zlib.compress(np.full(100, 1, "<i4").tobytes(), 1)
    array = zarrfs.open_array(store_of({".zarray": zarray, "1.0": chunk}))
    expected = np.full((20, 20), 42)
    expected[10:, :10] = 1
    np.testing.assert_array_equal(array[:], expected)


HIERARCHY = [
    ".zgroup",
    "foo/.zgroup",
    "foo/bar/.zarray",
    "foo/bar/.zattrs",
    *(f"foo/bar/{i}.{j}" for i in range(2) for j in range(2)),
]


def fill_hierarchy(root: zarrfs.Group) -> None:
    array = root.create_group("foo").create_array("bar", shape=(20, 20), chunks=(10, 10))
    array[:] = 42
    array.attrs["comment"] = "answer to life, the universe and everything"


def test_example_of_a_hierarchy(tmp_path: Path) -> None:
    location = tmp_path / "data" / "group.zarr"
    root = zarrfs.create_group(location, zarr_format=2, overwrite=True)
    assert os.listdir(location) == [".zgroup"]
    assert json.loads((location / ".zgroup").read_text()) == {"zarr_format": 2}
    fill_hierarchy(root)
    files = sorted(path.relative_to(location).as_posix() for path in location.rglob("*") if path.is_file())
    assert files == HIERARCHY


def test_example_of_a_hierarchy_in_a_zip_file(tmp_path: Path) -> None:
    location = tmp_path / "group.zip"
    with ZipStore(location, "w") as store:
        fill_hierarchy(zarrfs.create_group(store, zarr_format=2))
    with zipfile.ZipFile(location) as archive:
        assert sorted(set(archive.namelist())) == HIERARCHY
    with ZipStore(location) as store:
        array = zarrfs.open_array(store, "foo/bar")
        assert (array[:] == 42).all()
        assert array.attrs["comment"].startswith("answer to life")


# -- Changes -------------------------------------------------------------------------------------------


def test_version_1_documents_are_not_read_as_version_2() -> None:
    with pytest.raises(MetadataError, match="/zarr_format"):
        zarrfs.open(store_of({".zarray": changed(V2_ARRAY, zarr_format=1)}))
