"""The editor's draft of June 2019: its examples, the rules for its documents, implied groups, and later drafts."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import zarrfs
from tests.conformance.draft2019_documents import BOOTSTRAP, CORE, EXAMPLE
from zarrfs.engine.chunks.chunk_grids import RectilinearGrid
from zarrfs.engine.chunks.chunk_key_encodings import DefaultKeys
from zarrfs.engine.formats import api as formats
from zarrfs.engine.formats import v2
from zarrfs.engine.formats.draft2019_arrays import DraftKeys, array_document, parse_array
from zarrfs.engine.model import GroupSpec
from zarrfs.engine.stores.memory import MemoryStore
from zarrfs.errors import MetadataError, UnsupportedError

HERE = "memory://1/meta/root/foo.array"
EXTENSION = {"extension": "http://example.org/zarr/extension/foo", "configuration": {"foo": "bar"}}
DATETIME = {
    "extension": "http://purl.org/zarr/spec/protocol/extensions/datetime-dtypes/1.0",
    "type": "<M8[ns]",
    "fallback": "<i8",
}


def document(**changes: Any) -> dict[str, Any]:
    return {key: value for key, value in (EXAMPLE | changes).items() if value is not ...}


def store_of(**documents: Any) -> MemoryStore:
    store = MemoryStore()
    for key, value in ({"zarr.json": BOOTSTRAP} | documents).items():
        store.set(key, value if isinstance(value, bytes) else json.dumps(value).encode())
    return store


# -- bootstrap document --------------------------------------------------------------------------------


# -- array and group documents -------------------------------------------------------------------------


CORE_TYPES = ["bool", "i1", "<i2", "<i4", "<i8", ">i2", ">i4", ">i8", "u1", "<u2", "<u4", "<u8"]
CORE_TYPES += ["<f2", "<f4", "<f8", ">f2", ">f4", ">f8"]


def test_complex_numbers_are_an_extension() -> None:
    complex_type = {
        "extension": "http://purl.org/zarr/spec/protocol/extensions/complex-dtypes/1.0",
        "type": "<c8",
    }
    spec = parse_array(document(data_type=complex_type, fill_value=[1.0, "NaN"]), HERE)
    assert spec.data_type.numpy == np.dtype("<c8")
    assert array_document(spec)["data_type"] == complex_type
    assert array_document(spec)["fill_value"] == [1.0, "NaN"]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"shape": [1.5, 2]}, "/shape/0"),
        ({"chunk_grid": {"type": "hexagonal"}}, '/chunk_grid/type: expected one of "regular"'),
        (
            {"chunk_grid": {"type": "x", "extension": "http://example.org/x"}},
            "the extension http://example.org/x",
        ),
        ({"chunk_grid": {"type": "regular"}}, "/chunk_grid/chunk_shape: expected a list"),
        ({"chunk_grid": {"type": "regular", "chunk_shape": [1]}}, "expected 2 lengths"),
        (
            {"chunk_grid": {"type": "regular", "chunk_shape": [1, 1], "separator": ".."}},
            "/chunk_grid/separator",
        ),
        ({"chunk_memory_layout": "Z"}, "/chunk_memory_layout: expected one of"),
        ({"chunk_memory_layout": {"extension": "http://x.org/morton", "type": "z"}}, "http://x.org/morton"),
        ({"data_type": "string"}, "/data_type"),
        ({"data_type": 3}, "/data_type: expected the name"),
        ({"data_type": {"extension": "http://x.org"}}, '"type" is missing'),
        (
            {"compressor": {"codec": "http://x.org/evil"}},
            "/compressor/codec: http://x.org/evil is not supported",
        ),
        ({"compressor": {"codec": "http://purl.org/zarr/spec/codec/evil"}}, "/compressor/codec"),
        ({"compressor": {}}, "/compressor/codec: expected a string"),
        ({"compressor": "gzip"}, "/compressor: expected an object"),
        ({"fill_value": "none"}, "/fill_value"),
        ({"attributes": None}, "/attributes: expected an object"),
        ({"extensions": [EXTENSION | {"must_understand": True}]}, "/extensions/0"),
    ],
    ids=str,
)
def test_invalid_array_documents(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(MetadataError) as caught:
        parse_array(document(**changes), HERE)
    assert str(caught.value).startswith(HERE)
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"chunk_grid": RectilinearGrid((5, 5))}, "regular chunks only"),
        ({"chunk_key_encoding": DefaultKeys("/")}, 'not support the chunk key encoding "default"'),
    ],
    ids=str,
)
def test_unsupported_specs_cannot_be_written(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(UnsupportedError, match=words):
        array_document(replace(parse_array(EXAMPLE, HERE), **changes))


def test_filters_and_strings_cannot_be_written() -> None:
    zarray = {
        "zarr_format": 2,
        "shape": [4],
        "chunks": [2],
        "order": "C",
        "fill_value": 0,
        "compressor": None,
    }
    delta = zarray | {"dtype": "<i4", "filters": [{"id": "delta", "dtype": "<i4"}]}
    with pytest.raises(UnsupportedError, match="no filters; found 'delta'"):
        array_document(v2.parse_array(delta, {}, ".zarray"))
    with pytest.raises(UnsupportedError, match="no data type for fixed_length_utf32"):
        array_document(v2.parse_array(zarray | {"dtype": "<U4", "filters": None}, {}, ".zarray"))


# -- in a store ----------------------------------------------------------------------------------------

SMALL = document(
    shape=[4, 3], chunk_grid={"type": "regular", "chunk_shape": [2, 3]}, data_type="<i2", fill_value=7
)


@pytest.mark.parametrize("suffix", ["", ".json"])
def test_nodes_are_written_and_read_back(suffix: str) -> None:
    bootstrap = BOOTSTRAP | ({"metadata_key_suffix": suffix} if suffix else {})
    store = store_of(**({"zarr.json": bootstrap} if suffix else {}))
    spec = replace(parse_array(SMALL, HERE), document={})
    written = formats.write_node(store, "a/b", spec)
    formats.write_node(store, "g", GroupSpec("draft2019", {"x": 1}))
    assert json.loads(store.values["zarr.json"]) == bootstrap
    assert f"meta/root/a/b.array{suffix}" in store.values
    assert f"meta/root/g.group{suffix}" in store.values
    assert formats.read_node(store, "a/b") == written
    data = np.arange(12, dtype="<i2").reshape(4, 3)
    array = zarrfs.open_array(store, "a/b", mode="r+")
    array[...] = data
    assert ("data/root/a/b/c1.0" if suffix else "data/a/b/1.0") in store.values
    np.testing.assert_array_equal(zarrfs.open_array(store, "a/b")[...], data)
    array.attrs["new"] = [1]
    assert zarrfs.open_array(store, "a/b").attrs["new"] == [1]
    assert zarrfs.open_array(store, "a/b").shape == (4, 3)


def test_attributes_of_an_implied_group_make_it_explicit() -> None:
    store = store_of(**{"meta/root/a/b.array": SMALL})
    zarrfs.open_group(store, "a", mode="r+").attrs["x"] = 1
    assert json.loads(store.values["meta/root/a.group"]) == {"extensions": [], "attributes": {"x": 1}}


def test_writing_into_a_hierarchy_of_another_format_is_refused() -> None:
    store = MemoryStore()
    formats.write_node(store, "", GroupSpec(3))
    with pytest.raises(MetadataError, match="belongs to another format"):
        formats.write_node(store, "a", GroupSpec("draft2019"))


def test_hierarchies_of_zarr_pythons_experimental_v3() -> None:
    array = {
        "attributes": {"a": 1},
        "chunk_grid": {"chunk_shape": [2, 3], "separator": "/", "type": "regular"},
        "chunk_memory_layout": "C",
        "compressor": {"codec": "https://purl.org/zarr/spec/codec/gzip/1.0", "configuration": {"level": 3}},
        "data_type": "<u2",
        "extensions": [],
        "fill_value": 9,
        "shape": [4, 3],
    }
    store = store_of(
        **{
            "zarr.json": {
                "extensions": [],
                "metadata_encoding": CORE,
                "metadata_key_suffix": ".json",
                "zarr_format": CORE,
            },
            "meta/root.group.json": {"attributes": {"r": 1}},
            "meta/root/foo/bar.array.json": array,
            "data/root/foo/bar/c0/0": gzip.compress(np.arange(6, dtype="<u2").tobytes()),
        }
    )
    root = zarrfs.open_group(store)
    assert (dict(root.attrs), sorted(root), sorted(root["foo"])) == ({"r": 1}, ["foo"], ["bar"])  # type: ignore[arg-type]
    opened = root["foo/bar"]
    assert isinstance(opened, zarrfs.Array)
    np.testing.assert_array_equal(opened[...], [[0, 1, 2], [3, 4, 5], [9, 9, 9], [9, 9, 9]])
    assert array_document(opened.spec, is_later=True) == array


@pytest.mark.parametrize("separator", [".", "/"])
def test_chunk_keys_of_later_drafts(separator: Any) -> None:
    keys = DraftKeys(separator)
    assert keys.encode((1, 23, 45)) == f"c1{separator}23{separator}45"
    assert keys.decode(f"c1{separator}23{separator}45") == (1, 23, 45)
    assert (keys.encode(()), keys.decode("c")) == ("c", ())
    assert keys.decode("1/2") is None
    assert keys.decode("cx") is None
    assert DraftKeys.from_configuration(keys.configuration(), "") == keys
