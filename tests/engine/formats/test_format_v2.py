"""Zarr v2 documents: each MUST of the specification, accepted deviations, round trips, other implementations."""

from __future__ import annotations

import copy
import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numcodecs
import numpy as np
import pytest
import tensorstore
import zarr
from hypothesis import given
from hypothesis import strategies as st

import zarrfs
from zarrfs.engine.chunks.chunk_grids import RectilinearGrid
from zarrfs.engine.chunks.chunk_key_encodings import DefaultKeys, V2Keys
from zarrfs.engine.formats import api as formats
from zarrfs.engine.formats.v2 import array_document, parse_array
from zarrfs.engine.formats.v3_arrays import parse_array as parse_array_v3
from zarrfs.engine.model import ArraySpec, GroupSpec
from zarrfs.engine.stores.local.store import LocalStore
from zarrfs.engine.stores.memory import MemoryStore
from zarrfs.errors import MetadataError, UnsupportedError

HERE = "image.zarr/.zarray"
BLOSC = {"id": "blosc", "cname": "lz4", "clevel": 5, "shuffle": 1, "blocksize": 0}

SPEC_EXAMPLE: dict[str, Any] = {
    "chunks": [1000, 1000],
    "compressor": BLOSC,
    "dtype": "<f8",
    "fill_value": "NaN",
    "filters": [{"id": "delta", "dtype": "<f8", "astype": "<f4"}],
    "order": "C",
    "shape": [10000, 10000],
    "zarr_format": 2,
    "dimension_separator": ".",
}


def document(**changes: Any) -> dict[str, Any]:
    """Return a simple ``.zarray`` with keys changed; the value ``...`` removes a key."""
    plain = copy.deepcopy(SPEC_EXAMPLE) | {"filters": None, "compressor": None} | changes
    return {key: value for key, value in plain.items() if value is not ...}


def parse(given_document: dict[str, Any], **attributes: Any) -> ArraySpec:
    return parse_array(given_document, attributes, HERE)


# -- required keys -------------------------------------------------------------------------------------


def test_the_error_for_an_unknown_codec_names_it() -> None:
    for changes in ({"compressor": {"id": "evil"}}, {"filters": [{"id": "evil"}]}):
        with pytest.raises(UnsupportedError, match="evil"):
            parse(document(**changes))


def test_the_element_size_of_a_filter_is_limited() -> None:
    filters = [{"id": "astype", "encode_dtype": "|S65536", "decode_dtype": "<f8"}]
    parse(document(filters=filters))
    filters[0]["encode_dtype"] = "|S65537"
    with pytest.raises(MetadataError, match=r"/filters/0: .* does not support elements of .*S65537"):
        parse(document(filters=filters))


# -- optional keys -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "changes",
    [
        {"filters": []},
        {"filters": ...},
        {"fill_value": None},
        {"fill_value": 0, "dtype": "|S3"},
        {"fill_value": 0, "dtype": "<U3"},
        {"fill_value": 0, "dtype": "|b1"},
        {"dtype": ">u2", "fill_value": 7},
        {"order": "F"},
        {"dimension_separator": "/"},
        {"shape": [0, 3], "chunks": [0, 3]},
        {"shape": [], "chunks": []},
        {"shape": [5], "chunks": [2], "order": "F"},
        {"shape": [10**18, 10**18], "chunks": [10**12, 10**12]},
        {"dtype": [["a", ">i2"], ["b", "<f4", [2, 3]]], "fill_value": None},
        {"compressor": {"id": "zstd", "level": 1, "checksum": False}},
        {"compressor": BLOSC},
        {"compressor": {"id": "zlib", "level": 1}, "filters": [{"id": "delta", "dtype": "<f8"}]},
        {"dtype": "|O", "filters": [{"id": "vlen-utf8"}], "fill_value": ""},
    ],
    ids=str,
)
def test_accepted_deviations_from_the_specification(changes: dict[str, Any]) -> None:
    spec = parse(document(**changes))
    written = json.loads(json.dumps(array_document(spec)))
    reparsed = parse(written)
    assert np.asarray(reparsed.fill_value).tobytes() == np.asarray(spec.fill_value).tobytes()
    assert replace(reparsed, document={}, fill_value=0) == replace(spec, document={}, fill_value=0)


@pytest.mark.parametrize(
    ("dtype", "text", "expected"),
    [
        ("<f4", "1.0", 1.0),
        ("<f8", "-1e3", -1000.0),
        (">f8", ".5", 0.5),
        ("<f2", "7", 7.0),
        ("<f8", "-Infinity", float("-inf")),
        ("<c8", ["1.0", "-2"], 1 - 2j),
        ("<c16", "1.5", 1.5),
        ("<i4", "-3", -3),
        ("|u1", "255", 255),
        ("<f16", "2.5", 2.5),
    ],
)
def test_numbers_as_strings_are_accepted_as_fill_values(dtype: str, text: Any, expected: complex) -> None:
    fill = parse(document(dtype=dtype, fill_value=text)).fill_value
    np.testing.assert_array_equal(fill, np.array(expected, dtype))


@pytest.mark.parametrize(
    ("dtype", "text"),
    [
        *(("<f8", text) for text in ("", "one", "1.0.0", "1,5", "0b1", " 1", "1_0", "NaNs", "1" * 1000)),
        *(("<i4", text) for text in ("1.5", "nan", "3000000000", "0x1", "1e99")),
        ("|b1", "true"),
        ("<c8", ["1.0", "x"]),
    ],
)
def test_other_strings_are_not_fill_values_of_numbers(dtype: str, text: Any) -> None:
    with pytest.raises(MetadataError, match="/fill_value"):
        parse(document(dtype=dtype, fill_value=text))


def test_unknown_keys_are_ignored_and_preserved() -> None:
    spec = parse(document(_nczarr_array={"storage": "chunked"}))
    assert array_document(spec)["_nczarr_array"] == {"storage": "chunked"}


@pytest.mark.parametrize(
    ("codec", "name", "fill"),
    [("vlen-utf8", "string", ""), ("vlen-bytes", "bytes", b""), ("json2", "object", 0)],
)
@pytest.mark.parametrize("key", ["filter", "compressor"])
def test_the_object_codec_determines_the_data_type(codec: str, name: str, fill: Any, key: str) -> None:
    configuration = numcodecs.get_codec({"id": codec}).get_config()
    changes = {"filters": [configuration]} if key == "filter" else {"compressor": configuration}
    spec = parse(document(dtype="|O", fill_value=0, **changes))
    assert (spec.data_type.name, spec.data_type.numpy) == (name, np.dtype(object))
    assert spec.fill_value == fill


@pytest.mark.parametrize(
    ("attributes", "names"),
    [
        ({"_ARRAY_DIMENSIONS": ["y", "x"]}, ("y", "x")),
        ({"_ARRAY_DIMENSIONS": ["y"]}, None),
        ({"_ARRAY_DIMENSIONS": "yx"}, None),
        ({"_ARRAY_DIMENSIONS": [1, 2]}, None),
        ({}, None),
    ],
    ids=str,
)
def test_dimension_names_are_read_from_the_xarray_attribute(attributes: dict[str, Any], names: Any) -> None:
    spec = parse_array(document(), attributes, HERE)
    assert spec.dimension_names == names
    assert spec.attributes == attributes


@pytest.mark.parametrize(("endian", "dtype"), [("big", ">u2"), ("little", "<u2")])
def test_the_byte_order_of_the_codec_is_written_to_the_dtype(endian: str, dtype: str) -> None:
    v3 = {
        "zarr_format": 3,
        "node_type": "array",
        "shape": [4],
        "data_type": "uint16",
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [2]}},
        "chunk_key_encoding": "v2",
        "fill_value": 258,
        "codecs": [{"name": "bytes", "configuration": {"endian": endian}}],
    }
    spec = parse_array_v3(v3, "zarr.json")
    written = array_document(replace(spec, document={}))
    assert (written["dtype"], written["fill_value"]) == (dtype, 258)


def test_unsupported_specs_cannot_be_written() -> None:
    spec = parse(document())
    for changes, words in (
        ({"chunk_grid": RectilinearGrid((5, 5))}, "regular chunks only"),
        ({"chunk_key_encoding": DefaultKeys("/")}, "chunk key encoding"),
    ):
        with pytest.raises(UnsupportedError, match=words):
            array_document(replace(spec, **changes))  # type: ignore[arg-type]


# -- in a store ----------------------------------------------------------------------------------------


def store_with(**documents: Any) -> MemoryStore:
    """Return a store with JSON documents: ``a_zarray`` is the key ``a/.zarray``."""
    store = MemoryStore()
    for name, value in documents.items():
        path, _, key = name.rpartition("_")
        store.set(f"{path}/.{key}" if path else f".{key}", json.dumps(value).encode())
    return store


def test_nodes_are_written_and_read_back() -> None:
    store = store_with(
        a_zarray=document(fill_value=0), a_zattrs={"_ARRAY_DIMENSIONS": ["y", "x"]}, zgroup={"zarr_format": 2}
    )
    spec = formats.read_node(store, "a")
    assert isinstance(spec, ArraySpec)
    assert spec.dimension_names == ("y", "x")
    assert (formats.read_kind(store, ""), formats.read_kind(store, "a")) == ("group", "array")
    copy_of = MemoryStore()
    assert formats.write_node(copy_of, "a", replace(spec, document={})) == spec
    assert {key: json.loads(value) for key, value in copy_of.values.items()} == {
        "a/.zarray": document(fill_value=0),
        "a/.zattrs": {"_ARRAY_DIMENSIONS": ["y", "x"]},
    }
    group = formats.write_node(copy_of, "", GroupSpec(2))
    assert group == formats.read_node(copy_of, "")
    assert ".zattrs" not in copy_of.values


def test_dimension_names_are_written_to_the_xarray_attribute() -> None:
    store = MemoryStore()
    spec = replace(parse(document(fill_value=0)), dimension_names=("y", "x"), document={})
    written = formats.write_node(store, "", spec)
    assert json.loads(store.values[".zattrs"]) == {"_ARRAY_DIMENSIONS": ["y", "x"]}
    assert formats.read_node(store, "") == written


def test_write_attributes_changes_only_the_attributes() -> None:
    store = store_with(zarray=document(fill_value=0, extra=1))
    spec = formats.read_node(store, "")
    assert isinstance(spec, ArraySpec)
    before = store.values[".zarray"]
    changed = formats.write_attributes(store, "", replace(spec, attributes={"a": 1}))
    assert formats.read_node(store, "") == changed
    assert store.values[".zarray"] == before
    emptied = formats.write_attributes(store, "", replace(changed, attributes={}))
    assert formats.read_node(store, "") == emptied
    assert json.loads(store.values[".zattrs"]) == {}


def test_errors_name_the_location() -> None:
    store = store_with(a_zarray=document(shape=[1, 2.5]), b_zarray=document(), c_zgroup={})
    with pytest.raises(MetadataError, match=r"^memory://\d+/a/\.zarray: /shape/1: expected an integer"):
        formats.read_node(store, "a")
    store.set("b/.zattrs", b"[]")
    with pytest.raises(MetadataError, match=r"b/\.zattrs: expected a JSON object"):
        formats.read_node(store, "b")
    with pytest.raises(MetadataError, match=r"c/\.zgroup: /zarr_format: expected 2, found null"):
        formats.read_node(store, "c")


@pytest.mark.parametrize("key", ["a/0/1", "a/0/0", "a/3/2"])
def test_nested_chunks_without_separator_are_recognised_with_a_warning(
    key: str, caplog: pytest.LogCaptureFixture
) -> None:
    store = store_with(a_zarray=document(dimension_separator=...))
    store.set(key, b"chunk")
    spec = formats.read_node(store, "a")
    assert isinstance(spec, ArraySpec)
    assert spec.chunk_key_encoding == V2Keys("/")
    assert "dimension_separator" in caplog.text
    assert array_document(spec)["dimension_separator"] == "/"


@pytest.mark.parametrize("keys", [["a/0.0", "a/0/0"], ["a/5.3"], [], ["a/.other", "a/x/0"]], ids=str)
def test_the_default_separator_is_a_period(keys: list[str]) -> None:
    store = store_with(a_zarray=document(dimension_separator=...))
    for key in keys:
        store.set(key, b"chunk")
    spec = formats.read_node(store, "a")
    assert isinstance(spec, ArraySpec)
    assert spec.chunk_key_encoding == V2Keys(".")


def test_a_declared_separator_is_not_probed() -> None:
    store = store_with(a_zarray=document(dimension_separator="."))
    store.set("a/0/0", b"chunk")
    spec = formats.read_node(store, "a")
    assert isinstance(spec, ArraySpec)
    assert spec.chunk_key_encoding == V2Keys(".")


# -- consolidated metadata -----------------------------------------------------------------------------


def consolidated(metadata: Any) -> GroupSpec:
    zmetadata = {"zarr_consolidated_format": 1, "metadata": metadata}
    spec = formats.read_node(store_with(zgroup={"zarr_format": 2}, zmetadata=zmetadata), "")
    assert isinstance(spec, GroupSpec)
    return spec


def test_consolidated_metadata() -> None:
    nodes = consolidated(
        {
            ".zgroup": {"zarr_format": 2},
            ".zattrs": {"a": 1},
            "g/.zgroup": {"zarr_format": 2},
            "g/b/.zarray": document(fill_value=0),
            "g/b/.zattrs": {"_ARRAY_DIMENSIONS": ["y", "x"]},
            "stray/.zattrs": {},
            "broken/.zarray": document(shape=[-1, 1]),
        }
    ).consolidated
    assert nodes is not None
    assert sorted(nodes) == ["", "broken", "g", "g/b"]
    array = nodes["g/b"]
    assert isinstance(array, ArraySpec)
    assert array.dimension_names == ("y", "x")
    assert nodes["g"].consolidated == {"b": array}  # type: ignore[union-attr]
    with pytest.raises(MetadataError, match=r"\.zmetadata: /metadata/broken/\.zarray: /shape/0"):
        nodes["broken"]


@pytest.mark.parametrize("value", [b"{", b"[]", b"{}", b'{"metadata": 5}'])
def test_invalid_consolidated_metadata_is_ignored(value: bytes, caplog: pytest.LogCaptureFixture) -> None:
    store = store_with(zgroup={"zarr_format": 2})
    store.set(".zmetadata", value)
    spec = formats.read_node(store, "")
    assert isinstance(spec, GroupSpec)
    assert spec.consolidated is not None
    assert len(spec.consolidated) == 0
    assert "consolidated metadata is invalid and is ignored" in caplog.text


# -- compatibility with other implementations ----------------------------------------------------------

OTHERS: dict[str, dict[str, Any]] = {
    "plain": {"dtype": "<u2", "shape": (30, 20), "chunks": (7, 20)},
    "big-endian": {"dtype": ">f8", "shape": (30,), "chunks": (7,), "fill_value": 1.5},
    "order F": {"dtype": "<i4", "shape": (6, 4), "chunks": (2, 4), "order": "F"},
    "separator": {
        "dtype": "|i1",
        "shape": (3, 3),
        "chunks": (2, 2),
        "chunk_key_encoding": {"name": "v2", "separator": "/"},
    },
    "filters": {"dtype": "<i8", "shape": (9,), "chunks": (4,), "filters": [numcodecs.Delta("<i8")]},
    "compressor": {"dtype": "<i8", "shape": (9,), "chunks": (4,), "compressors": numcodecs.Zlib(3)},
    "times": {"dtype": "<M8[ns]", "shape": (9,), "chunks": (4,)},
    "text": {"dtype": "<U4", "shape": (9,), "chunks": (4,), "fill_value": "ab"},
    "bytes": {"dtype": "|S4", "shape": (9,), "chunks": (4,), "fill_value": b"ab"},
    "records": {"dtype": [("a", "<i2"), ("b", "<f4")], "shape": (9,), "chunks": (4,)},
    "scalar": {"dtype": "<c16", "shape": (), "chunks": ()},
}


@pytest.mark.parametrize("options", OTHERS.values(), ids=list(OTHERS))
def test_documents_are_equivalent_to_those_of_zarr_python(options: dict[str, Any], tmp_path: Path) -> None:
    theirs = zarr.create_array(
        str(tmp_path / "theirs"), zarr_format=2, attributes={"a": [1, None]}, **options
    )
    store = LocalStore(tmp_path)
    spec = formats.read_node(store, "theirs")
    assert isinstance(spec, ArraySpec)
    assert (spec.shape, spec.data_type.numpy) == (theirs.shape, theirs.dtype)
    formats.write_node(store, "ours", replace(spec, document={}))
    ours = zarr.open_array(str(tmp_path / "ours"), mode="r", zarr_format=2)
    assert str(ours.metadata.to_dict()) == str(theirs.metadata.to_dict())


def test_consolidated_groups_of_zarr_python(tmp_path: Path) -> None:
    group = zarr.create_group(str(tmp_path / "g"), zarr_format=2)
    group.create_group("a").create_array("b", shape=(4,), chunks=(2,), dtype="i4")
    zarr.consolidate_metadata(str(tmp_path / "g"), zarr_format=2)
    spec = formats.read_node(LocalStore(tmp_path), "g")
    assert isinstance(spec, GroupSpec)
    assert spec.consolidated is not None
    assert sorted(spec.consolidated) == ["", "a", "a/b"]
    assert isinstance(spec.consolidated["a/b"], ArraySpec)


@pytest.mark.parametrize("dtype", ["|b1", "|u1", "<i2", ">u4", "<u8", "<f2", ">f8", "<c8", "bfloat16"])
def test_documents_are_equivalent_to_those_of_tensorstore(dtype: str, tmp_path: Path) -> None:
    location = {"driver": "zarr", "kvstore": {"driver": "file", "path": str(tmp_path / "theirs")}}
    metadata = {
        "shape": [30, 20],
        "chunks": [10, 7],
        "dtype": dtype,
        "order": "F",
        "dimension_separator": "/",
    }
    tensorstore.open(location | {"metadata": metadata, "create": True}).result()
    store = LocalStore(tmp_path)
    spec = formats.read_node(store, "theirs")
    assert isinstance(spec, ArraySpec)
    formats.write_node(store, "ours", replace(spec, document={}))
    location["kvstore"]["path"] = str(tmp_path / "ours")  # type: ignore[index]
    ours = tensorstore.open(location).result().spec().to_json()["metadata"]
    assert {key: ours[key] for key in metadata} == metadata


# -- properties ----------------------------------------------------------------------------------------

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


LENGTHS = st.lists(st.tuples(st.integers(0, 2**40), st.integers(1, 2**40)), max_size=4)


@given(
    LENGTHS,
    st.sampled_from([("<i2", -3), (">u8", 2**64 - 1), ("<c8", ["0x7f800001", -0.0]), ("|V3", "AQID")]),
    st.data(),
)
def test_a_written_document_is_parsed_to_the_same_spec(
    lengths: list[tuple[int, int]], typed: tuple[str, Any], data: st.DataObject
) -> None:
    given_document = document(
        shape=[length for length, _ in lengths],
        chunks=[chunk for _, chunk in lengths],
        dtype=typed[0],
        fill_value=data.draw(st.sampled_from([None, typed[1]])),
        order=data.draw(st.sampled_from("CF")),
        dimension_separator=data.draw(st.sampled_from("./")),
        compressor=data.draw(st.sampled_from([None, {"id": "zlib", "level": 1}])),
    )
    spec = parse(given_document)
    assert array_document(spec) == given_document
    reparsed = parse(json.loads(json.dumps(array_document(replace(spec, document={})))))
    assert np.asarray(reparsed.fill_value).tobytes() == np.asarray(spec.fill_value).tobytes()
    assert replace(reparsed, fill_value=0) == replace(spec, fill_value=0)


def outcome(given_document: dict[str, Any]) -> ArraySpec | MetadataError:
    try:
        return parse(given_document)
    except MetadataError as error:
        return error


@given(st.sampled_from(sorted(SPEC_EXAMPLE)), JSON)
def test_any_value_of_any_key_is_accepted_or_a_metadata_error(key: str, value: Any) -> None:
    parsed = outcome(document(**{key: value}))
    assert isinstance(parsed, ArraySpec) or str(parsed).startswith(HERE)


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_the_chunk_of_a_0_dimensional_array_is_read(zarr_format: int) -> None:
    array = zarrfs.create_array({}, data=np.array(5), zarr_format=zarr_format)
    assert array.nchunks_initialized == 1


KEY_OPTIONS = [(3, "/"), (3, "."), (2, "/"), (2, ".")]


@pytest.mark.parametrize("written", KEY_OPTIONS)
@pytest.mark.parametrize("described", KEY_OPTIONS)
def test_opening_warns_of_chunks_with_other_keys(
    written: tuple[int, str], described: tuple[int, str], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def create(name: str, keys: tuple[int, str], **options: Any) -> zarrfs.Array:
        encoding = {"name": "default" if keys[0] == 3 else "v2", "configuration": {"separator": keys[1]}}
        return zarrfs.create_array(
            tmp_path / name, "a", chunks=(1, 1), chunk_key_encoding=encoding, **options
        )

    create("s", written, data=np.ones((2, 2)))
    create("t", described, shape=(2, 2), dtype="f8")
    shutil.copy(tmp_path / "t/a/zarr.json", tmp_path / "s/a/zarr.json")
    values = zarrfs.open_array(tmp_path / "s", "a")[...]
    assert values.all() == (written == described)
    warned = [record.getMessage() for record in caplog.records]
    assert len(warned) == (0 if written == described else 1)
    assert all(
        "no chunks were found with keys such as" in message and "s/a: " in message for message in warned
    )


@pytest.mark.parametrize("key_options", KEY_OPTIONS)
def test_a_chunk_that_is_written_while_the_array_is_opened_causes_no_warning(
    key_options: tuple[int, str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    encoding = {
        "name": "default" if key_options[0] == 3 else "v2",
        "configuration": {"separator": key_options[1]},
    }
    array = zarrfs.create_array(
        tmp_path, shape=(2, 2), dtype="f8", chunks=(1, 1), chunk_key_encoding=encoding
    )
    first_names = LocalStore.first_names

    def after_a_write(store: LocalStore, prefix: str, count: int) -> list[str]:
        array[0, 0] = 1
        return first_names(store, prefix, count)

    monkeypatch.setattr(LocalStore, "first_names", after_a_write)
    assert zarrfs.open_array(tmp_path)[0, 0] == 1
    assert not caplog.records
