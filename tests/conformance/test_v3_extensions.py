"""Zarr core specification 3.1: "Extensions" and "Storage transformers"."""

from __future__ import annotations

import struct
from typing import Any

import google_crc32c
import numpy as np
import pytest
import zstandard

import zarrfs
from tests.documents import LITTLE, V3_ARRAY, V3_GROUP, changed, read_json, regular, store_of
from zarrfs.errors import MetadataError, UnsupportedError

TRANSFORMER = {"name": "example.cache", "configuration": {"size": 10}}


def open_array(document: dict[str, Any], mode: Any = "r", **values: bytes) -> zarrfs.Array:
    return zarrfs.open_array(store_of({"zarr.json": document, **values}), mode=mode)


# -- Extension definition: objects and short-hand names ------------------------------------------------


@pytest.mark.parametrize("name", [None, 3, ["bytes"], ""], ids=str)
@pytest.mark.parametrize("point", ["data_type", "chunk_grid", "chunk_key_encoding", "codecs"])
def test_names_are_plain_strings(point: str, name: Any) -> None:
    extension: Any = {"name": name, "configuration": {}}
    with pytest.raises(MetadataError, match=f"/{point}"):
        open_array(changed(V3_ARRAY, **{point: [extension] if point == "codecs" else extension}))


@pytest.mark.parametrize("configuration", [None, [], "x", 3], ids=str)
@pytest.mark.parametrize("point", ["data_type", "chunk_grid", "chunk_key_encoding", "codecs"])
def test_configurations_are_objects(point: str, configuration: Any) -> None:
    name = {"data_type": "uint8", "chunk_grid": "regular", "chunk_key_encoding": "default", "codecs": "bytes"}
    extension: Any = {"name": name[point], "configuration": configuration}
    with pytest.raises(MetadataError, match=f"/{point}.*configuration"):
        open_array(changed(V3_ARRAY, **{point: [extension] if point == "codecs" else extension}))


@pytest.mark.parametrize(
    "changes",
    [
        {"data_type": {"name": "uint8"}},
        {"data_type": {"name": "uint8", "configuration": {}}},
        {"chunk_key_encoding": "default"},
        {"chunk_key_encoding": {"name": "default", "configuration": {}}},
        {"codecs": ["bytes"]},
        {"codecs": [{"name": "bytes", "configuration": {}}]},
        {"codecs": [{"name": "bytes", "must_understand": True}]},
    ],
    ids=str,
)
def test_a_short_hand_name_equals_an_object_with_a_name(changes: dict[str, Any]) -> None:
    assert open_array(changed(V3_ARRAY, **changes), **{"c/1": b"\1\2"})[:].tolist() == [0, 0, 1, 2]


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({"data_type": "example.unknown"}, "example.unknown"),
        ({"data_type": {"name": "https://example.org/type"}}, "https://example.org/type"),
        ({"chunk_grid": {"name": "example.unknown", "configuration": {"a": 1}}}, "example.unknown"),
        ({"chunk_key_encoding": "example.unknown"}, "example.unknown"),
        ({"codecs": ["bytes", "example.unknown"]}, "example.unknown"),
        ({"codecs": ["bytes", {"name": "https://example.org/codec"}]}, "https://example.org/codec"),
        ({"storage_transformers": [TRANSFORMER]}, "example.cache"),
        ({"storage_transformers": ["example.cache"]}, "example.cache"),
        ({"storage_transformers": [TRANSFORMER | {"must_understand": True}]}, "example.cache"),
    ],
    ids=str,
)
def test_unknown_extensions_are_refused_by_name(changes: dict[str, Any], name: str) -> None:
    with pytest.raises(UnsupportedError, match=name.replace(".", r"\.")):
        open_array(changed(V3_ARRAY, **changes))


# -- must_understand -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "value",
    [
        {"name": "example"},
        {"name": "example", "must_understand": True},
        {"name": "example", "must_understand": None},
        {"name": "example", "must_understand": 0},
        {"name": "example", "must_understand": "false"},
        {},
        [],
        "example",
        None,
        False,
        [{"must_understand": False}],
    ],
    ids=str,
)
@pytest.mark.parametrize("document", [V3_ARRAY, V3_GROUP], ids=["array", "group"])
def test_unknown_fields_are_refused(document: dict[str, Any], value: Any) -> None:
    with pytest.raises(UnsupportedError, match='"example_field"'):
        zarrfs.open(store_of({"zarr.json": document | {"example_field": value}}))


@pytest.mark.parametrize("document", [V3_ARRAY, V3_GROUP], ids=["array", "group"])
def test_unknown_optional_fields_are_preserved(document: dict[str, Any]) -> None:
    extra = {"name": "example", "must_understand": False, "configuration": {"a": [1]}}
    store = store_of({"zarr.json": document | {"example_field": extra}})
    node = zarrfs.open(store, mode="r+")
    node.attrs["new"] = 1
    if isinstance(node, zarrfs.Array):
        node.resize(6)
    assert read_json(store, "zarr.json")["example_field"] == extra


@pytest.mark.parametrize("point", ["data_type", "chunk_grid", "chunk_key_encoding"])
def test_must_understand_false_is_refused_where_it_is_not_allowed(point: str) -> None:
    for name in ("example.unknown", {"data_type": "uint8", "chunk_grid": "regular"}.get(point, "default")):
        configuration = {"chunk_shape": [2]} if name == "regular" else {}
        extension = {"name": name, "configuration": configuration, "must_understand": False}
        with pytest.raises(MetadataError, match=f"/{point}"):
            open_array(changed(V3_ARRAY, **{point: extension}))


def test_optional_codecs_are_ignored_with_a_warning_and_preserved(
    caplog: pytest.LogCaptureFixture,
) -> None:
    hint = {"name": "example.hint", "configuration": {"a": 1}, "must_understand": False}
    codecs = [hint, {"name": "bytes"}, hint | {"name": "example.other"}, {"name": "crc32c"}]
    document = changed(V3_ARRAY, codecs=codecs)
    store = store_of({"zarr.json": document})
    array = zarrfs.open_array(store, mode="r+")
    assert [record.levelname for record in caplog.records] == ["WARNING", "WARNING"]
    for record, name in zip(caplog.records, ("example.hint", "example.other"), strict=True):
        assert name in record.getMessage()
        assert "must_understand" in record.getMessage()
    array[:2] = [1, 2]
    assert store.values["c/0"] == b"\1\2" + google_crc32c.value(b"\1\2").to_bytes(4, "little")
    array.resize(8)
    assert read_json(store, "zarr.json")["codecs"] == codecs
    assert zarrfs.open_array(store)[:3].tolist() == [1, 2, 0]


def test_optional_storage_transformers_are_ignored_and_preserved() -> None:
    transformers = [TRANSFORMER | {"must_understand": False}]
    store = store_of({"zarr.json": changed(V3_ARRAY, storage_transformers=transformers), "c/0": b"\1\2"})
    array = zarrfs.open_array(store, mode="r+")
    assert array[:].tolist() == [1, 2, 0, 0]
    array.resize(6)
    assert read_json(store, "zarr.json")["storage_transformers"] == transformers


def test_an_empty_list_of_storage_transformers() -> None:
    assert open_array(changed(V3_ARRAY, storage_transformers=[])).shape == (4,)


# -- Extension example ---------------------------------------------------------------------------------


def test_extension_example() -> None:
    """The example of the section, with the two required keys that it omits."""
    document = {
        "zarr_format": 3,
        "node_type": "array",
        "fill_value": "",
        "data_type": "string",
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "."}},
        "codecs": [
            {"name": "vlen-utf8"},
            {"name": "zstd", "configuration": {"level": 3, "checksum": False}},
        ],
        "chunk_grid": regular(32),
        "shape": [128],
        "dimension_names": ["x"],
        "attributes": {"a": 1},
    }
    texts = [f"{i}€" for i in range(32)]
    items = [text.encode() for text in texts]
    plain = struct.pack("<I", 32) + b"".join(struct.pack("<I", len(item)) + item for item in items)
    store = store_of({"zarr.json": document, "c.3": zstandard.compress(plain)})
    array = zarrfs.open_array(store, mode="r+")
    assert array[95:].tolist() == ["", *texts]
    array[0:32] = np.array(texts, object)
    assert zstandard.decompress(store.values["c.0"]) == plain


# -- Fill values are not an extension point ------------------------------------------------------------


def test_fill_values_are_not_an_extension_point() -> None:
    with pytest.raises(MetadataError, match="/fill_value"):
        open_array(changed(V3_ARRAY, fill_value={"name": "zero", "must_understand": False}))


# -- Stability policy ----------------------------------------------------------------------------------


def test_metadata_contains_only_the_major_version() -> None:
    with pytest.raises(MetadataError, match="/zarr_format"):
        open_array(changed(V3_ARRAY, zarr_format=3.1, codecs=[LITTLE]))
