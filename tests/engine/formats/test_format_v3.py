"""Zarr v3 documents: each MUST of "Metadata" and "Extensions", deviations, round trips, other implementations."""

from __future__ import annotations

import copy
import json
import logging
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorstore
import zarr
from hypothesis import given
from hypothesis import strategies as st

from tests.documents import LITTLE
from zarrfs.engine.formats import api as formats
from zarrfs.engine.formats import v3
from zarrfs.engine.formats.v3 import group_document, parse_group
from zarrfs.engine.formats.v3_arrays import array_document, parse_array
from zarrfs.engine.model import ArraySpec, GroupSpec
from zarrfs.engine.stores.local.store import LocalStore
from zarrfs.engine.stores.memory import MemoryStore
from zarrfs.errors import MetadataError, UnsupportedError

HERE = "image.zarr/zarr.json"

SPEC_EXAMPLE: dict[str, Any] = {
    "zarr_format": 3,
    "node_type": "array",
    "shape": [10000, 1000],
    "dimension_names": ["rows", "columns"],
    "data_type": "float64",
    "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [1000, 100]}},
    "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
    "codecs": [LITTLE],
    "fill_value": "NaN",
    "attributes": {"foo": 42, "bar": "apples", "baz": [1, 2, 3, 4]},
}
SPEC_GROUP = {"zarr_format": 3, "node_type": "group", "attributes": {"spam": "ham", "eggs": 42}}
SHARDING = {
    "name": "sharding_indexed",
    "configuration": {
        "chunk_shape": [100, 10],
        "codecs": [LITTLE, {"name": "gzip", "configuration": {"level": 5}}],
        "index_codecs": [LITTLE, {"name": "crc32c"}],
        "index_location": "end",
    },
}


TRANSPOSE = {"name": "transpose", "configuration": {"order": [1, 0]}}


def shards(**changes: Any) -> dict[str, Any]:
    """Return metadata of the sharding codec with its configuration changed."""
    return SHARDING | {"configuration": SHARDING["configuration"] | changes}


def document(**changes: Any) -> dict[str, Any]:
    """Return the example of the specification with keys changed; the value ``...`` removes a key."""
    changed = copy.deepcopy(SPEC_EXAMPLE) | changes
    return {key: value for key, value in changed.items() if value is not ...}


# -- required keys -------------------------------------------------------------------------------------


# -- optional keys -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "changes",
    [
        {"codecs": [LITTLE, "crc32c"]},
        {"codecs": [LITTLE, {"name": "crc32c"}]},
        {"codecs": [SHARDING]},
        {"data_type": {"name": "float64"}},
        {"data_type": "uint8", "fill_value": 0, "codecs": ["bytes"]},
        {"data_type": "r16", "fill_value": [0, 0], "codecs": ["bytes"]},
        {"data_type": "int4", "fill_value": 0, "codecs": ["packbits"]},
        {"chunk_key_encoding": "default"},
        {"chunk_key_encoding": {"name": "v2"}},
        {"storage_transformers": []},
        {"dimension_names": [None, "x"]},
        {"dimension_names": ["x", "x"]},
        {"dimension_names": None},
        {"shape": [10**18, 10**18]},
        {"shape": [0, 10]},
        {"chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [10**12, 10**12]}}},
        {"fill_value": "0x7ff8000000000001"},
    ],
    ids=str,
)
def test_accepted_deviations_from_the_specification(changes: dict[str, Any]) -> None:
    spec = parse_array(document(**changes), HERE)
    reparsed = parse_array(json.loads(json.dumps(array_document(spec))), HERE)
    assert np.asarray(reparsed.fill_value).tobytes() == np.asarray(spec.fill_value).tobytes()
    ignored = {"document": {}, "fill_value": 0}
    assert replace(reparsed, **ignored) == replace(spec, **ignored)


def test_a_reversing_transpose_is_reported_as_order_f() -> None:
    assert parse_array(document(codecs=[TRANSPOSE, LITTLE]), HERE).order == "F"
    assert parse_array(SPEC_EXAMPLE, HERE).order == "C"


def test_dimension_units_are_read_from_the_tensorstore_attribute() -> None:
    attributes = {"dimension_units": ["4 nm", None]}
    spec = parse_array(document(attributes=attributes), HERE)
    assert spec.dimension_units == ("4 nm", None)
    assert array_document(spec)["attributes"] == attributes
    assert array_document(replace(spec, attributes={}))["attributes"] == attributes
    for odd in (["nm"], "nm", [1, 2]):
        assert parse_array(document(attributes={"dimension_units": odd}), HERE).dimension_units is None


@pytest.mark.parametrize("name", ["struct", "structured"])
def test_structured_elements_without_endian_are_little_endian(
    name: str, caplog: pytest.LogCaptureFixture
) -> None:
    fields = [["a", "int32"], ["b", "float64"]]
    data_type = {"name": name, "configuration": {"fields": fields}}
    for codecs in (["bytes"], [{"name": "bytes"}], [{"name": "bytes", "configuration": {}}]):
        spec = parse_array(document(data_type=data_type, fill_value={"a": 1, "b": 2}, codecs=codecs), HERE)
        assert array_document(spec)["codecs"] == [LITTLE]
    sharded = [shards(codecs=["bytes"])]
    spec = parse_array(document(data_type=data_type, fill_value="AAAAAAAAAAAAAAAA", codecs=sharded), HERE)
    assert array_document(spec)["codecs"][0]["configuration"]["codecs"] == [LITTLE]
    assert caplog.text.count("assumed to be little-endian") == 4
    assert "/codecs/0/configuration/codecs/0" in caplog.text


def test_structured_elements_of_single_bytes_need_no_endian() -> None:
    fields = [{"name": "a", "data_type": "uint8"}, {"name": "b", "data_type": "r16"}]
    data_type = {"name": "struct", "configuration": {"fields": fields}}
    spec = parse_array(
        document(data_type=data_type, fill_value={"a": 1, "b": [2, 3]}, codecs=["bytes"]), HERE
    )
    assert array_document(spec)["codecs"] == [{"name": "bytes"}]


def test_unsupported_specs_cannot_be_written() -> None:
    spec = parse_array(SPEC_EXAMPLE, HERE)
    with pytest.raises(UnsupportedError, match="must have a fill value"):
        array_document(replace(spec, fill_value=None))


# -- consolidated metadata -----------------------------------------------------------------------------


def consolidated(value: Any) -> GroupSpec:
    return parse_group(SPEC_GROUP | {"consolidated_metadata": value}, HERE)


def test_consolidated_metadata_is_parsed_on_access() -> None:
    entries = {
        "a": SPEC_GROUP,
        "a/b": SPEC_EXAMPLE,
        "a/c": SPEC_GROUP | {"consolidated_metadata": {"kind": "inline", "metadata": {}}},
        "broken": document(shape=[-1, 1]),
    }
    spec = consolidated({"kind": "inline", "must_understand": False, "metadata": entries})
    nodes = spec.consolidated
    assert nodes is not None
    assert sorted(nodes) == ["a", "a/b", "a/c", "broken"]
    assert len(nodes) == 4
    assert isinstance(nodes["a/b"], ArraySpec)
    below = nodes["a"].consolidated  # type: ignore[union-attr]
    assert sorted(below) == ["b", "c"]
    assert below["b"].document == nodes["a/b"].document == SPEC_EXAMPLE
    assert "z" not in nodes
    assert nodes.get("z") is None
    with pytest.raises(MetadataError, match=r"/consolidated_metadata/metadata/broken: /shape/0|broken"):
        nodes["broken"]
    assert group_document(spec)["consolidated_metadata"]["metadata"] == entries


@pytest.mark.parametrize("value", [None, {"metadata": {}}, {"kind": "inline", "metadata": {}}], ids=str)
def test_common_variants_of_consolidated_metadata(value: Any) -> None:
    spec = consolidated(value)
    if value is None:
        assert spec.consolidated is None
    else:
        assert spec.consolidated is not None
        assert dict(spec.consolidated) == {}


@pytest.mark.parametrize(
    "value", [{"kind": "remote"}, {"kind": "inline"}, {"metadata": {"a": 3}}, 5], ids=str
)
def test_unusable_consolidated_metadata_is_ignored(value: Any, caplog: pytest.LogCaptureFixture) -> None:
    assert consolidated(value).consolidated is None
    assert "ignored" in caplog.text


# -- in a store ----------------------------------------------------------------------------------------


def test_nodes_are_written_and_read_back() -> None:
    store = MemoryStore()
    spec = parse_array(SPEC_EXAMPLE, HERE)
    written = formats.write_node(store, "a/b", replace(spec, document={}))
    assert list(store.list_prefix()) == ["a/b/zarr.json"]
    assert written.document == SPEC_EXAMPLE
    assert formats.read_kind(store, "a/b") == "array"
    assert json.loads(store.values["a/b/zarr.json"]) == SPEC_EXAMPLE
    group = formats.write_node(store, "", GroupSpec(3, {"x": 1}))
    assert formats.read_node(store, "") == group
    assert formats.read_kind(store, "") == "group"
    assert formats.read_kind(store, "nowhere") is None


def test_write_attributes_changes_only_the_attributes() -> None:
    store = MemoryStore()
    extra = {"name": "x", "must_understand": False}
    store.set("zarr.json", json.dumps(document(extension=extra)).encode())
    opened = formats.read_node(store, "")
    assert isinstance(opened, ArraySpec)
    resized = formats.resized(opened, (20000, 1000))
    formats.write_node(store, "", resized)
    changed = formats.write_attributes(store, "", replace(opened, attributes={"new": [1]}))
    assert changed.attributes == {"new": [1]}
    expected = document(extension=extra, shape=[20000, 1000], attributes={"new": [1]})
    assert json.loads(store.values["zarr.json"]) == expected


def test_errors_name_the_location() -> None:
    store = MemoryStore()
    store.set("a/zarr.json", json.dumps(document(shape=[1, 2.5])).encode())
    with pytest.raises(MetadataError, match=r"^memory://\d+/a/zarr\.json: /shape/1: expected an integer"):
        formats.read_node(store, "a")
    store.set("a/zarr.json", b'{"zarr_format": 3,')
    with pytest.raises(MetadataError, match=r"a/zarr\.json: not JSON: line 1, column 19"):
        formats.read_node(store, "a")


# -- compatibility with other implementations ----------------------------------------------------------

OTHERS: dict[str, dict[str, Any]] = {
    "plain": {"dtype": "uint16", "shape": (30, 20), "chunks": (7, 20)},
    "sharded": {"dtype": "float32", "shape": (32, 32), "chunks": (4, 4), "shards": (16, 16)},
    "separator": {
        "dtype": "int8",
        "shape": (3,),
        "chunks": (2,),
        "chunk_key_encoding": {"name": "v2", "separator": "/"},
    },
    "scalar": {"dtype": "complex64", "shape": (), "chunks": ()},
    "empty": {"dtype": "bool", "shape": (0, 4), "chunks": (1, 4)},
    "names": {"dtype": "float64", "shape": (3, 4), "chunks": (2, 2), "dimension_names": ["y", None]},
    "filled": {"dtype": "float32", "shape": (3,), "chunks": (3,), "fill_value": np.inf},
    "compressed": {
        "dtype": "int64",
        "shape": (3,),
        "chunks": (3,),
        "compressors": [zarr.codecs.BloscCodec()],
    },
}


@pytest.mark.parametrize("options", OTHERS.values(), ids=list(OTHERS))
def test_documents_are_equivalent_to_those_of_zarr_python(options: dict[str, Any], tmp_path: Path) -> None:
    theirs = zarr.create_array(str(tmp_path / "theirs"), attributes={"a": [1, None]}, **options)
    store = LocalStore(tmp_path)
    spec = formats.read_node(store, "theirs")
    assert isinstance(spec, ArraySpec)
    assert (spec.shape, spec.data_type.numpy) == (theirs.shape, theirs.dtype)
    assert spec.dimension_names == getattr(theirs.metadata, "dimension_names", None)
    formats.write_node(store, "ours", replace(spec, document={}))
    assert zarr.open_array(str(tmp_path / "ours"), mode="r").metadata.to_dict() == theirs.metadata.to_dict()


def test_consolidated_groups_of_zarr_python(tmp_path: Path) -> None:
    group = zarr.create_group(str(tmp_path / "g"))
    group.create_group("a").create_array("b", shape=(4,), chunks=(2,), dtype="i4")
    with pytest.warns(UserWarning, match="Consolidated metadata"):
        zarr.consolidate_metadata(str(tmp_path / "g"))
    spec = formats.read_node(LocalStore(tmp_path), "g")
    assert isinstance(spec, GroupSpec)
    assert spec.consolidated is not None
    assert sorted(spec.consolidated) == ["a", "a/b"]
    assert isinstance(spec.consolidated["a/b"], ArraySpec)
    ignored = formats.read_node(LocalStore(tmp_path), "g", use_consolidated=False)
    assert isinstance(ignored, GroupSpec)
    assert ignored.consolidated is None


@pytest.mark.parametrize(
    "dtype", ["bool", "uint8", "int16", "uint64", "bfloat16", "float64", "complex64", "int4"]
)
def test_documents_are_equivalent_to_those_of_tensorstore(dtype: str, tmp_path: Path) -> None:
    location = {"driver": "zarr3", "kvstore": {"driver": "file", "path": str(tmp_path / "theirs")}}
    metadata = {
        "shape": [30, 20],
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [10, 7]}},
        "data_type": dtype,
        "dimension_names": ["y", "x"],
        "attributes": {"dimension_units": ["2 nm", None]},
    }
    tensorstore.open(location | {"metadata": metadata, "create": True}).result()
    store = LocalStore(tmp_path)
    spec = formats.read_node(store, "theirs")
    assert isinstance(spec, ArraySpec)
    assert spec.data_type.name == dtype
    assert (spec.dimension_names, spec.dimension_units) == (("y", "x"), ("2 nm", None))
    formats.write_node(store, "ours", replace(spec, document={}))
    location["kvstore"]["path"] = str(tmp_path / "ours")  # type: ignore[index]
    ours = tensorstore.open(location).result()
    assert ours.spec().to_json()["metadata"]["data_type"] == dtype
    assert ours.shape == (30, 20)


# -- properties ----------------------------------------------------------------------------------------

NAMES = st.text(max_size=4)
LENGTHS = st.lists(st.tuples(st.integers(0, 2**40), st.integers(1, 2**40)), max_size=4)
ATTRIBUTES = st.dictionaries(
    NAMES, st.none() | st.integers() | st.text(max_size=3) | st.lists(st.booleans(), max_size=2)
)


@given(LENGTHS, st.sampled_from(["int16", "uint64", "complex64", "r24"]), ATTRIBUTES, st.data())
def test_a_written_document_is_parsed_to_the_same_spec(
    lengths: list[tuple[int, int]], data_type: str, attributes: dict[str, Any], data: st.DataObject
) -> None:
    fill = {"int16": -3, "uint64": 2**64 - 1, "complex64": ["0x7f800001", -0.0], "r24": [1, 2, 3]}[data_type]
    names = data.draw(st.none() | st.lists(st.none() | NAMES, min_size=len(lengths), max_size=len(lengths)))
    separator = data.draw(st.sampled_from(["/", "."]))
    given_document = document(
        shape=[length for length, _ in lengths],
        chunk_grid={"name": "regular", "configuration": {"chunk_shape": [chunk for _, chunk in lengths]}},
        chunk_key_encoding={"name": "default", "configuration": {"separator": separator}},
        data_type=data_type,
        fill_value=fill,
        attributes=attributes,
        dimension_names=names if names is not None else ...,
    )
    spec = parse_array(given_document, HERE)
    assert array_document(spec) == given_document
    reparsed = parse_array(json.loads(json.dumps(array_document(replace(spec, document={})))), HERE)
    assert np.asarray(reparsed.fill_value).tobytes() == np.asarray(spec.fill_value).tobytes()
    assert replace(reparsed, fill_value=0) == replace(spec, fill_value=0)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


@given(st.sampled_from(sorted(SPEC_EXAMPLE)), JSON)
def test_any_value_of_any_key_is_accepted_or_a_metadata_error(key: str, value: Any) -> None:
    logging.getLogger("zarrfs").disabled = True
    try:
        spec = v3.parse_node(document(**{key: value}), HERE)
    except MetadataError as error:
        message = str(error)
    else:
        message = HERE
        assert isinstance(spec, ArraySpec | GroupSpec)
    finally:
        logging.getLogger("zarrfs").disabled = False
    assert message.startswith(HERE)
