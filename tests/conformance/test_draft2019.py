"""Zarr core protocol (version 3.0), editor's draft of 19 June 2019."""

from __future__ import annotations

import gzip
from typing import Any

import numpy as np
import pytest

import zarrfs
from tests.conformance.draft2019_documents import BOOTSTRAP, EXAMPLE
from tests.documents import changed, read_json, store_of
from zarrfs.engine.stores.memory import MemoryStore
from zarrfs.errors import KeyNameError, MetadataError, NodeNotFoundError, NodeTypeError, UnsupportedError

EXTENSION: dict[str, Any] = {
    "extension": "http://example.org/zarr/extension/foo",
    "must_understand": False,
    "configuration": {"foo": "bar"},
}
SMALL: dict[str, Any] = {
    "shape": [4, 3],
    "data_type": "u1",
    "chunk_grid": {"type": "regular", "chunk_shape": [2, 3]},
    "chunk_memory_layout": "C",
    "fill_value": 0,
    "extensions": [],
    "attributes": {},
}
GROUP: dict[str, Any] = {"extensions": [], "attributes": {"spam": "ham", "eggs": 42}}


def hierarchy(**values: Any) -> MemoryStore:
    """Return a store with the bootstrap document and these values."""
    return store_of({"zarr.json": BOOTSTRAP, **values})


def open_array(document: dict[str, Any], **chunks: bytes) -> zarrfs.Array:
    """Open an array at /a with chunks given by identifier."""
    values = {f"data/a/{identifier}": chunk for identifier, chunk in chunks.items()}
    return zarrfs.open_array(hierarchy(**{"meta/root/a.array": document, **values}), "a")


def created(**options: Any) -> tuple[MemoryStore, zarrfs.Array]:
    store = MemoryStore()
    return store, zarrfs.create_array(store, "a", zarr_format="draft2019", **options)


# -- Node names ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["a", "Z9", "-_.", ".a", "a" * 255, "__a", "0.0"])
def test_valid_node_names(name: str) -> None:
    store = MemoryStore()
    zarrfs.create_group(store, f"x/{name}", zarr_format="draft2019")
    assert list(zarrfs.open_group(store, "x")) == [name]


@pytest.mark.parametrize("name", ["...", "a b", "ü", "a" * 256, "a*", "a:b"])
@pytest.mark.parametrize("place", ["{}", "x/{}", "{}/x"])
def test_invalid_node_names(name: str, place: str) -> None:
    store = MemoryStore()
    with pytest.raises(KeyNameError):
        zarrfs.create_group(store, place.format(name), zarr_format="draft2019")
    with pytest.raises(KeyNameError):
        zarrfs.create_array(store, place.format(name), shape=1, zarr_format="draft2019")
    assert not store.values


def test_sibling_names_that_differ_only_in_case_are_refused() -> None:
    store = MemoryStore()
    root = zarrfs.create_group(store, zarr_format="draft2019")
    root.create_group("foo/bar")
    root.create_group("other")
    keys = sorted(store.values)
    for attempt in (
        lambda: root.create_group("FOO"),
        lambda: root.create_array("Foo/new", shape=1),
        lambda: root.create_array("foo/BAR", shape=1),
        lambda: root.move("other", "fOO"),
    ):
        with pytest.raises(KeyNameError, match="case"):
            attempt()
    assert sorted(store.values) == keys
    root.create_group("foo/foo")


# -- Data types ----------------------------------------------------------------------------------------

CORE_TYPES = ["i1", "<i2", "<i4", "<i8", ">i2", ">i4", ">i8", "u1", "<u2", "<u4", "<u8"]
CORE_TYPES += ["<f2", "<f4", "<f8", ">f2", ">f4", ">f8"]


@pytest.mark.parametrize("name", CORE_TYPES)
def test_core_data_types(name: str) -> None:
    data = np.array([[0, 1, 2], [3, 4, 127]], name)
    array = open_array(changed(SMALL, data_type=name), **{"1.0": data.tobytes()})
    assert array.dtype == np.dtype(name)
    np.testing.assert_array_equal(array[2:], data)
    store, _ = created(data=data, chunks=(2, 3), compressors=None)
    assert read_json(store, "meta/root/a.array")["data_type"] == name
    assert store.values["data/a/0.0"] == data.tobytes()


def test_booleans_are_stored_as_bytes_0_and_1() -> None:
    array = open_array(changed(SMALL, data_type="bool", fill_value=True), **{"0.0": b"\0\1\0\1\1\0"})
    assert array[1:3].tolist() == [[True, True, False], [True, True, True]]
    store, _ = created(data=np.array([False, True]), compressors=None, fill_value=True)
    assert store.values["data/a/0"] == b"\0\1"
    assert read_json(store, "meta/root/a.array")["data_type"] == "bool"


# -- Chunk grids ---------------------------------------------------------------------------------------


def test_regular_grid_example() -> None:
    grid = {"type": "regular", "chunk_shape": [5, 20, 400]}
    chunk = np.zeros((5, 20, 400), "u1")
    chunk[2, 10, 100] = 7
    array = open_array(changed(SMALL, shape=[10, 200, 3000], chunk_grid=grid), **{"1.7.2": chunk.tobytes()})
    assert array[7, 150, 900] == 7
    assert array[5:, 140:160, 800:1200].sum() == 7
    assert array.nchunks == 2 * 10 * 8


@pytest.mark.parametrize("separator", [None, ".", "/"])
def test_chunk_identifiers(separator: Any) -> None:
    grid = {"type": "regular", "chunk_shape": [1, 1, 1]} | ({"separator": separator} if separator else {})
    key = (separator or ".").join(["1", "23", "45"])
    array = open_array(changed(SMALL, shape=[2, 30, 50], chunk_grid=grid), **{key: b"\7"})
    assert array[1, 23, 45] == 7
    options = {"dimension_separator": separator} if separator else {}
    store, array = created(shape=(2, 30, 50), chunks=1, dtype="u1", compressors=None, **options)
    array[1, 23, 45] = 7
    assert store.values[f"data/a/{key}"] == b"\7"


def test_extension_chunk_grids_are_refused_by_name() -> None:
    grid = {"extension": "http://example.org/grids/hexagonal", "type": "hexagonal"}
    with pytest.raises(UnsupportedError, match=r"http://example\.org/grids/hexagonal"):
        open_array(changed(SMALL, chunk_grid=grid))


# -- Chunk memory layouts ------------------------------------------------------------------------------


@pytest.mark.parametrize("order", ["C", "F"])
def test_contiguous_memory_layouts(order: Any) -> None:
    data = np.arange(6, dtype="u1").reshape(2, 3)
    stored = bytes([0, 1, 2, 3, 4, 5] if order == "C" else [0, 3, 1, 4, 2, 5])
    array = open_array(changed(SMALL, chunk_memory_layout=order), **{"0.0": stored})
    np.testing.assert_array_equal(array[:2], data)
    store, _ = created(data=data, chunks=(2, 3), order=order, compressors=None)
    assert store.values["data/a/0.0"] == stored
    assert read_json(store, "meta/root/a.array")["chunk_memory_layout"] == order


def test_extension_memory_layouts_are_refused_by_name() -> None:
    layout = {"extension": "http://example.org/layouts/morton", "type": "Z"}
    with pytest.raises(UnsupportedError, match=r"http://example\.org/layouts/morton"):
        open_array(changed(SMALL, chunk_memory_layout=layout))


# -- Bootstrap metadata --------------------------------------------------------------------------------


@pytest.mark.parametrize("extensions", [[], [EXTENSION]], ids=["plain", "ignorable"])
def test_bootstrap_examples(extensions: list[Any]) -> None:
    store = store_of({"zarr.json": BOOTSTRAP | {"extensions": extensions}, "meta/root/a.array": SMALL})
    assert list(zarrfs.open_group(store)) == ["a"]
    zarrfs.open_group(store, mode="r+").create_group("b")
    assert read_json(store, "zarr.json")["extensions"] == extensions


def test_the_bootstrap_example_is_written() -> None:
    assert read_json(created(shape=1)[0], "zarr.json") == BOOTSTRAP


def test_a_later_minor_version_is_read_and_its_unknown_keys_are_ignored() -> None:
    later = BOOTSTRAP | {
        "zarr_format": "https://purl.org/zarr/spec/protocol/core/3.12",
        "colours": ["red"],
    }
    store = store_of({"zarr.json": later, "meta/root/a.array": changed(SMALL, colour="red")})
    assert zarrfs.open_array(store, "a").shape == (4, 3)


@pytest.mark.parametrize(
    "changes",
    [
        {"zarr_format": "https://purl.org/zarr/spec/protocol/core/4.0"},
        {"metadata_encoding": "application/msgpack"},
        {"extensions": [EXTENSION | {"must_understand": True}]},
    ],
    ids=str,
)
def test_unsupported_bootstrap_documents(changes: dict[str, Any]) -> None:
    with pytest.raises(UnsupportedError, match=r"zarr\.json"):
        zarrfs.open(store_of({"zarr.json": BOOTSTRAP | changes, "meta/root.group": GROUP}))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"zarr_format": "https://example.org/"}, "/zarr_format: expected"),
        ({"metadata_encoding": ...}, "metadata_encoding"),
        ({"metadata_encoding": None}, "/metadata_encoding: expected a string"),
        ({"metadata_key_suffix": ".cbor"}, "/metadata_key_suffix: expected"),
        ({"extensions": [{"must_understand": False}]}, "/extensions/0/extension: expected a string"),
        (
            {"extensions": [changed(EXTENSION, must_understand=...)]},
            "/extensions/0/must_understand: expected",
        ),
        ({"extensions": [EXTENSION | {"must_understand": "no"}]}, "/extensions/0/must_understand: expected"),
        ({"extensions": [3]}, "/extensions/0: expected an object"),
        ({"extensions": {}}, "/extensions: expected a list"),
        ({"extensions": None}, "/extensions: expected a list"),
    ],
    ids=str,
)
def test_invalid_bootstrap_documents(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(MetadataError, match=rf"zarr\.json: .*{words}"):
        zarrfs.open(store_of({"zarr.json": changed(BOOTSTRAP, **changes), "meta/root.group": GROUP}))


# -- Array metadata ------------------------------------------------------------------------------------


def test_array_example() -> None:
    rows = np.arange(100000.0).reshape(1000, 100)
    array = open_array(EXAMPLE, **{"9.3": gzip.compress(rows.tobytes(), 1)})
    assert (array.shape, array.chunks, array.nchunks) == ((10000, 1000), (1000, 100), 100)
    assert array.attrs.asdict() == {"foo": 42, "bar": "apples", "baz": [1, 2, 3, 4]}
    np.testing.assert_array_equal(array[9000:, 300:400], rows)
    assert np.isnan(array[8999, 300])


def test_the_array_example_is_written() -> None:
    store, _ = created(
        shape=(10000, 1000),
        dtype="<f8",
        chunks=(1000, 100),
        compressors={"name": "gzip", "configuration": {"level": 1}},
        fill_value=np.nan,
        attributes=EXAMPLE["attributes"],
    )
    written = read_json(store, "meta/root/a.array")
    assert written["chunk_grid"].pop("separator") == "."
    assert written == EXAMPLE


DATETIME: dict[str, Any] = {
    "extension": "http://purl.org/zarr/spec/protocol/extensions/datetime-dtypes/1.0",
    "type": "<M8[ns]",
    "fallback": "<i8",
}


def test_the_array_example_with_an_extension_data_type() -> None:
    document = changed(EXAMPLE, data_type=DATETIME, fill_value=None, attributes={})
    stored = np.arange(100000, dtype="<i8").tobytes()
    array = open_array(document, **{"0.0": gzip.compress(stored)})
    assert array.dtype == np.dtype("<M8[ns]")
    assert array[0, 99] == np.datetime64(99, "ns")
    assert array.fill_value is None
    assert array.metadata["data_type"] == DATETIME


def test_unknown_data_type_extensions_use_the_fallback() -> None:
    unknown = DATETIME | {
        "extension": "http://example.org/colours",
        "type": {"name": "red"},
        "fallback": ">i2",
    }
    array = open_array(changed(SMALL, data_type=unknown), **{"0.0": np.arange(6, dtype=">i2").tobytes()})
    assert array.dtype == np.dtype(">i2")
    assert array[1].tolist() == [3, 4, 5]
    with pytest.raises(UnsupportedError, match=r"http://example\.org/colours"):
        open_array(changed(SMALL, data_type=changed(unknown, fallback=...)))
    with pytest.raises(UnsupportedError, match="it has no fallback"):
        open_array(changed(SMALL, data_type=unknown | {"fallback": None}))
    with pytest.raises(MetadataError, match="/data_type/fallback"):
        open_array(changed(SMALL, data_type=unknown | {"fallback": "string"}))


@pytest.mark.parametrize("name", ["shape", "data_type", "chunk_grid", "chunk_memory_layout", "fill_value"])
def test_missing_required_keys(name: str) -> None:
    with pytest.raises(MetadataError, match=f'"{name}"'):
        open_array(changed(SMALL, **{name: ...}))


def test_codecs_are_uris() -> None:
    with pytest.raises(UnsupportedError, match=r"http://example\.org/evil"):
        open_array(changed(SMALL, compressor={"codec": "http://example.org/evil"}))
    with pytest.raises(MetadataError, match="/compressor/codec"):
        open_array(changed(SMALL, compressor={"configuration": {}}))


@pytest.mark.parametrize(
    ("data_type", "fill_value"),
    [("bool", "true"), ("bool", 2), ("u1", 256), ("u1", -1), ("u1", 1.5), ("<i8", 2**63), ("<i2", "one")],
    ids=str,
)
def test_fill_values_that_are_not_valid_for_the_data_type(data_type: str, fill_value: Any) -> None:
    with pytest.raises(MetadataError, match="/fill_value"):
        open_array(changed(SMALL, data_type=data_type, fill_value=fill_value))


@pytest.mark.parametrize("data_type", ["bool", "<i8", "<f4", "u1"])
def test_a_fill_value_of_null_is_undefined(data_type: str) -> None:
    array = open_array(changed(SMALL, data_type=data_type, fill_value=None))
    assert array.fill_value is None
    assert array[:].shape == (4, 3)


def test_array_extensions_that_must_be_understood() -> None:
    assert open_array(changed(SMALL, extensions=[EXTENSION])).shape == (4, 3)
    with pytest.raises(UnsupportedError, match=r"http://example\.org/zarr/extension/foo"):
        open_array(changed(SMALL, extensions=[EXTENSION | {"must_understand": True}]))


# -- Group metadata ------------------------------------------------------------------------------------


def test_group_example() -> None:
    store = hierarchy(**{"meta/root/foo/bar.group": GROUP})
    group = zarrfs.open_group(store, "foo/bar", mode="r+")
    assert group.attrs.asdict() == {"spam": "ham", "eggs": 42}
    group.attrs["new"] = 1
    assert read_json(store, "meta/root/foo/bar.group") == {
        "extensions": [],
        "attributes": {"spam": "ham", "eggs": 42, "new": 1},
    }


def test_group_metadata_has_extensions_and_attributes() -> None:
    store = MemoryStore()
    zarrfs.create_group(store, "foo", zarr_format="draft2019")
    assert read_json(store, "meta/root/foo.group") == {"extensions": [], "attributes": {}}


# -- Storage keys --------------------------------------------------------------------------------------


def test_keys_of_nodes_that_are_not_the_root() -> None:
    store = MemoryStore()
    root = zarrfs.create_group(store, zarr_format="draft2019")
    root.create_group("foo/bar")
    root.create_array("foo/baz", data=np.ones((2, 2), "u1"), chunks=1, compressors=None)
    assert {"zarr.json", "meta/root.group", "meta/root/foo/bar.group", "meta/root/foo/baz.array"} <= set(
        store.values
    )
    assert {key for key in store.values if key.startswith("data/")} == {
        f"data/foo/baz/{i}.{j}" for i in (0, 1) for j in (0, 1)
    }


def test_keys_of_a_root_array() -> None:
    store = MemoryStore()
    zarrfs.create_array(store, data=np.ones((2, 3), "u1"), compressors=None, zarr_format="draft2019")
    assert sorted(store.values) == ["data/0.0", "meta/root.array", "zarr.json"]
    assert zarrfs.open_array(store)[:].tolist() == [[1] * 3] * 2


# -- Protocol operations -------------------------------------------------------------------------------


def test_groups_are_implied_by_descendants() -> None:
    store = hierarchy(**{"meta/root/foo/bar.group": GROUP, "meta/root/foo/baz/qux.array": SMALL})
    for path, members in {"": ["foo"], "foo": ["bar", "baz"], "foo/baz": ["qux"], "foo/bar": []}.items():
        node = zarrfs.open(store, path)
        assert isinstance(node, zarrfs.Group)
        assert list(node) == members
    assert zarrfs.open_group(store, "foo").attrs.asdict() == {}
    assert isinstance(zarrfs.open(store, "foo/baz/qux"), zarrfs.Array)
    with pytest.raises(NodeNotFoundError):
        zarrfs.open(store, "foo/qux")


def test_nodes_can_be_created_without_ancestor_documents() -> None:
    store = hierarchy(**{"meta/root/foo/baz/qux.array": SMALL})
    zarrfs.create_group(store, "foo/baz/new", zarr_format="draft2019")
    assert sorted(store.values) == ["meta/root/foo/baz/new.group", "meta/root/foo/baz/qux.array", "zarr.json"]


def test_nodes_cannot_be_created_below_an_array() -> None:
    store = hierarchy(**{"meta/root/a.array": SMALL})
    with pytest.raises(NodeTypeError, match="is an array"):
        zarrfs.create_group(store, "a/b", zarr_format="draft2019")
