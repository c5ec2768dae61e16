"""Detection of a node's format, and paths and names of nodes."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

import zarrfs
from zarrfs.engine.chunks.chunk_grids import RectilinearGrid, RegularGrid
from zarrfs.engine.chunks.chunk_key_encodings import V2Keys
from zarrfs.engine.codecs.registry import codecs_from_json
from zarrfs.engine.formats import api as formats
from zarrfs.engine.formats.paths import check_node_name, join, normalize_path
from zarrfs.engine.model import ArraySpec, GroupSpec
from zarrfs.engine.stores.memory import MemoryStore
from zarrfs.errors import KeyNameError, MetadataError, UnsupportedError

GROUP_V3 = {"zarr_format": 3, "node_type": "group", "attributes": {}}
ARRAY_V3 = {
    "zarr_format": 3,
    "node_type": "array",
    "shape": [4],
    "data_type": "uint8",
    "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [2]}},
    "chunk_key_encoding": "default",
    "fill_value": 0,
    "codecs": ["bytes"],
}


def store_of(**documents: Any) -> MemoryStore:
    return MemoryStore({key: json.dumps(value).encode() for key, value in documents.items()})


def array() -> ArraySpec:
    spec = formats.read_node(store_of(**{"zarr.json": ARRAY_V3}), "")
    assert isinstance(spec, ArraySpec)
    return spec


def test_a_path_without_a_node() -> None:
    store = store_of(**{"a/zarr.json": GROUP_V3, "b/c/.zgroup": {"zarr_format": 2}})
    assert formats.read_node(store, "") is None
    assert formats.read_node(store, "b") is None
    assert formats.read_kind(store, "") is None


def test_the_format_is_detected() -> None:
    store = store_of(**{"three/zarr.json": GROUP_V3, "two/.zgroup": {"zarr_format": 2}})
    assert formats.read_node(store, "three") == GroupSpec(3, {}, None, GROUP_V3)
    assert formats.read_node(store, "two") == GroupSpec(2, {}, None, {"zarr_format": 2})


def test_v3_takes_precedence_over_v2_with_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    store = store_of(**{"a/zarr.json": ARRAY_V3, "a/.zgroup": {"zarr_format": 2}})
    assert isinstance(formats.read_node(store, "a"), ArraySpec)
    assert "'a' has metadata of both Zarr v3 and v2" in caplog.text


def test_an_invalid_document_is_an_error_if_another_format_is_valid() -> None:
    store = store_of(**{"a/.zgroup": {"zarr_format": 2}})
    store.values["a/zarr.json"] = b"{"
    for read in (formats.read_node, formats.read_kind):
        with pytest.raises(MetadataError, match=r"a/zarr\.json: not JSON"):
            read(store, "a")


def test_chunk_prefixes_and_child_names() -> None:
    store = store_of(**{"g/zarr.json": GROUP_V3, "g/a/zarr.json": ARRAY_V3, "g/b/x": 1})
    group = formats.read_node(store, "g")
    assert isinstance(group, GroupSpec)
    assert formats.child_names(store, "g", group) == ["a", "b"]
    assert (formats.chunk_prefix(array(), ""), formats.chunk_prefix(array(), "g/a")) == ("", "g/a/")


def test_check_writable_raises_and_writes_nothing() -> None:
    formats.check_writable(array())
    formats.check_writable(GroupSpec(2))
    with pytest.raises(UnsupportedError, match="fill value"):
        formats.check_writable(replace(array(), fill_value=None))
    with pytest.raises(UnsupportedError, match="zarr_format 9 is not supported"):
        formats.check_writable(GroupSpec(9))


@pytest.mark.parametrize("zarr_format", [2, 3, "n5", "draft2019"])
def test_an_adapted_spec_can_be_written(zarr_format: int | str) -> None:
    gzip = {"name": "gzip", "configuration": {"level": 1}}
    changes: dict[str, Any] = {
        "zarr_format": zarr_format,
        "codecs": codecs_from_json(["bytes", gzip], "codecs"),
        "document": {},
    }
    if zarr_format == 2:
        changes["chunk_key_encoding"] = V2Keys(".")
    spec = formats.with_prescribed_encoding(replace(array(), **changes))
    formats.check_writable(spec)
    store = MemoryStore()
    formats.write_node(store, "a", spec)
    opened = zarrfs.open_array(store, "a", mode="r+")
    opened[...] = [1, 2, 3, 4]
    assert zarrfs.open_array(store, "a")[...].tolist() == [1, 2, 3, 4]
    assert any(b"\x1f\x8b" in value for value in store.values.values())
    assert formats.with_prescribed_encoding(spec) == spec


def test_resized_changes_only_the_shape() -> None:
    resized = formats.resized(array(), (9,))
    assert (resized.shape, resized.chunk_grid) == ((9,), RegularGrid((2,)))
    irregular = replace(array(), chunk_grid=RectilinearGrid((((1, 4),),)))
    assert formats.resized(irregular, (9,)).chunk_grid == RectilinearGrid((((1, 4), (5, 1)),))


@pytest.mark.parametrize(
    ("path", "normal"),
    [
        ("", ""),
        ("/", ""),
        ("foo/bar", "foo/bar"),
        ("/foo/bar/", "foo/bar"),
        ("foo//bar", "foo/bar"),
        ("\\foo\\\\bar\\", "foo/bar"),
        ("...", "..."),
        (".hidden/a b/ü", ".hidden/a b/ü"),
    ],
)
def test_paths_are_normalized(path: str, normal: str) -> None:
    assert normalize_path(path) == normal
    assert normalize_path(normal) == normal


@pytest.mark.parametrize("path", [".", "..", "a/../b", "a/./b", "a\\..\\b", "/..", "a\0b"])
def test_invalid_paths(path: str) -> None:
    with pytest.raises(KeyNameError):
        normalize_path(path)


@pytest.mark.parametrize("name", ["", ".", "..", "...", "a/b", "__zarr", "__x", "a\0"])
def test_invalid_node_names(name: str) -> None:
    with pytest.raises(KeyNameError):
        check_node_name(name)


@pytest.mark.parametrize("name", ["a", ".a", "a.", "_a", "a__", "ü", "zarr.json ", "c"])
def test_valid_node_names(name: str) -> None:
    assert check_node_name(name) == name


def test_join() -> None:
    assert (join("", "zarr.json"), join("a/b", "zarr.json")) == ("zarr.json", "a/b/zarr.json")
