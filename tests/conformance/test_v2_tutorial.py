"""Features of zarr-python 2 that its tutorial documents but the version 2 specification does not.

Strings, objects, ragged arrays, hierarchies, resizing, chunks.
"""

from __future__ import annotations

import io
import json
import pickle
import struct
from pathlib import Path
from typing import Any

import numcodecs
import numpy as np
import pytest

import zarrfs
from tests.documents import V2_ARRAY, changed, read_json, store_of
from zarrfs.engine.stores.memory import MemoryStore
from zarrfs.errors import ChunkEncodeError, MetadataError, NodeTypeError, ReadOnlyError, UnsupportedError

GREETINGS = [
    "Hola mundo!",
    "Hej Världen!",
    "Servus Woid!",
    "Helló, világ!",
    "Zdravo svete!",
    "こんにちは世界",
]


def created(**options: Any) -> tuple[MemoryStore, zarrfs.Array]:
    store = MemoryStore()
    return store, zarrfs.create_array(store, zarr_format=2, compressors=None, **options)


def vlen(items: list[bytes]) -> bytes:
    """Return the encoding of the codecs vlen-*: the number of items, then each item preceded by its length."""
    return struct.pack("<I", len(items)) + b"".join(struct.pack("<I", len(item)) + item for item in items)


# -- String arrays -------------------------------------------------------------------------------------


def test_strings_of_fixed_length_bytes() -> None:
    store, array = created(shape=10, dtype="S6")
    assert read_json(store, ".zarray")["fill_value"] == ""
    array[0] = b"Hello"
    array[1] = b"world!"
    assert array[:].tolist() == [b"Hello", b"world!", *[b""] * 8]


def test_strings_of_fixed_length_unicode() -> None:
    store, array = created(data=np.array(GREETINGS * 10, "U20"))
    assert read_json(store, ".zarray")["dtype"] == "<U20"
    assert array[:].tolist() == GREETINGS * 10


OBJECTS = np.array(GREETINGS, object)


@pytest.mark.parametrize(
    "options",
    [
        {"data": GREETINGS},
        {"data": GREETINGS, "dtype": str},
        {"data": OBJECTS, "dtype": str},
        {"data": OBJECTS, "filters": [numcodecs.VLenUTF8()]},
        {"data": GREETINGS, "dtype": object, "filters": [{"id": "vlen-utf8"}]},
    ],
    ids=str,
)
def test_strings_of_variable_length(options: dict[str, Any]) -> None:
    store, array = created(chunks=6, **options)
    zarray = read_json(store, ".zarray")
    assert (zarray["dtype"], zarray["filters"]) == ("|O", [{"id": "vlen-utf8"}])
    assert store.values["0"] == vlen([text.encode() for text in GREETINGS])
    assert array[:].tolist() == GREETINGS
    assert zarrfs.open_array(store)[:].tolist() == GREETINGS
    assert zarrfs.open_array(store).dtype == object


@pytest.mark.parametrize(
    "options", [{"dtype": bytes}, {"dtype": object, "filters": [numcodecs.VLenBytes()]}], ids=str
)
def test_bytes_of_variable_length(options: dict[str, Any]) -> None:
    items = [text.encode() for text in GREETINGS]
    store, array = created(data=np.array(items, object), chunks=6, **options)
    assert read_json(store, ".zarray")["filters"] == [{"id": "vlen-bytes"}]
    assert store.values["0"] == vlen(items)
    assert array[:].tolist() == zarrfs.open_array(store)[:].tolist() == items


def test_strings_as_categories() -> None:
    labels = sorted(set(GREETINGS))
    store, _ = created(
        data=np.array(GREETINGS, object),
        dtype=object,
        chunks=6,
        filters=[numcodecs.Categorize(labels, dtype=object)],
    )
    (entry,) = read_json(store, ".zarray")["filters"]
    assert entry == {"id": "categorize", "labels": labels, "dtype": "|O", "astype": "|u1"}
    assert list(store.values["0"]) == [labels.index(text) + 1 for text in GREETINGS]
    assert zarrfs.open_array(store)[:].tolist() == GREETINGS


def test_the_integer_0_among_strings_is_an_element_that_was_never_set() -> None:
    _, array = created(shape=3, dtype=str)
    array[:] = np.array(["a", 0, "b"], object)
    assert array[:].tolist() == ["a", "", "b"]


def test_values_that_are_not_strings_are_refused() -> None:
    _, array = created(shape=3, dtype=str)
    with pytest.raises(ChunkEncodeError):
        array[0] = 3


# -- Object arrays -------------------------------------------------------------------------------------

MIXED = [42, "foo", ["bar", "baz", "qux"], {"a": 1, "b": 2.2}, None]


@pytest.mark.parametrize("codec", [numcodecs.JSON(), numcodecs.MsgPack()], ids=lambda codec: codec.codec_id)
def test_objects_of_mixed_types(codec: Any) -> None:
    store, array = created(shape=5, dtype=object, filters=[codec])
    for index, item in enumerate(MIXED[:-1]):
        array[index] = item
    assert array[:].tolist() == MIXED
    assert zarrfs.open_array(store)[:].tolist() == MIXED
    assert read_json(store, ".zarray")["filters"][0]["id"] == codec.codec_id


def test_objects_as_json_are_stored_with_their_shape() -> None:
    store, array = created(shape=2, chunks=2, dtype=object, filters=[numcodecs.JSON()])
    array[:] = np.array([1, "a"], object)
    assert json.loads(store.values["0"]) == [1, "a", "|O", [2]]


def test_objects_need_a_codec() -> None:
    store = MemoryStore()
    with pytest.raises(MetadataError, match="encodes objects"):
        zarrfs.create_array(store, shape=3, dtype=object, zarr_format=2)
    with pytest.raises(MetadataError, match="encodes objects"):
        zarrfs.open(store_of({".zarray": changed(V2_ARRAY, dtype="|O")}))
    assert not store.values


def test_pickled_objects_are_read_only_if_allowed() -> None:
    items = np.array([1, {2: 3}], object)
    stored = pickle.dumps(items, protocol=5)
    zarray = changed(
        V2_ARRAY, shape=[2], dtype="|O", fill_value=None, filters=[{"id": "pickle", "protocol": 5}]
    )
    store = store_of({".zarray": zarray, "0": stored})
    with pytest.raises(UnsupportedError, match="allow_pickle"):
        zarrfs.open(store)
    array = zarrfs.open_array(store, allow_pickle=True)
    assert array[:].tolist() == items.tolist()


# -- Ragged arrays -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options",
    [
        {"dtype": object, "filters": [numcodecs.VLenArray("<i4")]},
        {"dtype": "array:<i4"},
        {"dtype": "array:i4"},
    ],
    ids=str,
)
def test_ragged_arrays(options: dict[str, Any]) -> None:
    store, array = created(shape=4, chunks=4, **options)
    array[0] = np.array([1, 3, 5])
    array[1] = np.array([4])
    array[2] = np.array([7, 9, 14])
    lines = [[1, 3, 5], [4], [7, 9, 14], []]
    assert read_json(store, ".zarray")["filters"] == [{"id": "vlen-array", "dtype": "<i4"}]
    assert read_json(store, ".zarray")["dtype"] == "|O"
    assert store.values["0"] == vlen([np.array(line, "<i4").tobytes() for line in lines])
    for reader in (array, zarrfs.open_array(store)):
        assert [line.tolist() for line in reader[:]] == lines
        assert {line.dtype for line in reader[:]} == {np.dtype("<i4")}
        assert reader[2].tolist() == [7, 9, 14]


def test_ragged_arrays_are_refused_in_other_formats() -> None:
    for options in ({"zarr_format": 3}, {"zarr_format": 2, "dtype": "array:zzz"}):
        store = MemoryStore()
        with pytest.raises(MetadataError):
            zarrfs.create_array(store, shape=2, **{"dtype": "array:<i4"} | options)
        assert not store.values


def test_ragged_arrays_from_a_list() -> None:
    store, array = created(shape=3, dtype="array:<f8", chunks=2)
    array[:] = [np.array([1.5]), np.array([]), np.array([2.5, 3.5])]
    assert [line.tolist() for line in zarrfs.open_array(store)[:]] == [[1.5], [], [2.5, 3.5]]
    array[1:] = [np.array([7.0, 8.0]), np.array([9.0, 10.0])]
    assert [line.tolist() for line in zarrfs.open_array(store)[:]] == [[1.5], [7.0, 8.0], [9.0, 10.0]]
    _, single = created(shape=1, dtype="array:<f8", chunks=1)
    single[:] = [np.array([1.5, 2.5])]
    assert [line.tolist() for line in single[:]] == [[1.5, 2.5]]


# -- Datetimes and timedeltas --------------------------------------------------------------------------


def test_datetimes_with_units() -> None:
    dates = np.array(["2007-07-13", "2006-01-13", "NaT"], "M8[D]")
    store, array = created(data=dates, chunks=3)
    assert read_json(store, ".zarray")["dtype"] == "<M8[D]"
    assert store.values["0"] == dates.astype("<M8[D]").tobytes()
    np.testing.assert_array_equal(array[:], dates)
    array[0] = "1999-12-31"
    assert array[0] == np.datetime64("1999-12-31", "D")


# -- Persistence, resizing, chunks ---------------------------------------------------------------------


def test_shrinking_deletes_chunks_beyond_the_array() -> None:
    store, array = created(data=np.ones((4, 4), "u1"), chunks=(2, 2))
    array.resize(2, 3)
    assert {key for key in store.values if key[0] != "."} == {"0.0", "0.1"}
    assert read_json(store, ".zarray")["shape"] == [2, 3]
    array.resize(4, 4)
    assert array[2:].tolist() == [[0] * 4] * 2


def test_resizing_does_not_move_elements() -> None:
    store, array = created(data=np.arange(16, dtype="u1").reshape(4, 4), chunks=(2, 2))
    before = {key: value for key, value in store.values.items() if key[0] != "."}
    array.resize(6, 8)
    assert {key: store.values[key] for key in before} == before
    assert array[:4, :4].tolist() == np.arange(16).reshape(4, 4).tolist()
    assert not array[4:].any()


def test_appending() -> None:
    data = np.arange(12, dtype="i4").reshape(4, 3)
    _, array = created(data=data, chunks=(2, 2))
    assert array.append(data) == (8, 3)
    assert array.append(np.vstack([data, data]), axis=1) == (8, 6)
    np.testing.assert_array_equal(array[:], np.tile(data, (2, 2)))


@pytest.mark.parametrize(
    ("chunks", "expected"),
    [((100, None), (100, 400)), ((None, 100), (300, 100)), (100, (100, 100)), (False, (300, 400))],
    ids=str,
)
def test_chunks_across_whole_dimensions(chunks: Any, expected: tuple[int, ...]) -> None:
    assert created(shape=(300, 400), chunks=chunks)[1].chunks == expected


@pytest.mark.parametrize("shape", [(0,), (3, 0), (0, 0, 4), ()], ids=str)
def test_0_dimensional_arrays_and_dimensions_of_length_0(shape: tuple[int, ...]) -> None:
    store, array = created(shape=shape, dtype="i4", fill_value=5)
    array[...] = 7
    np.testing.assert_array_equal(zarrfs.open_array(store)[...], np.full(shape, 7, "i4"))


def test_chunks_of_only_the_fill_value_are_not_stored() -> None:
    store, array = created(data=np.ones(4, "u1"), chunks=2)
    array[:2] = 0
    assert [key for key in store.values if key[0] != "."] == ["1"]
    store, array = created(data=np.zeros(4, "u1"), chunks=2, write_empty_chunks=True)
    assert [key for key in store.values if key[0] != "."] == ["0", "1"]


def test_fields_of_a_structured_array() -> None:
    dtype = [("foo", "S3"), ("bar", "<i4"), ("baz", "<f8")]
    rows = [(b"aaa", 1, 4.2), (b"bbb", 2, 8.4), (b"ccc", 3, 12.6)]
    _, array = created(data=np.array(rows, dtype))
    assert array["foo"].tolist() == [b"aaa", b"bbb", b"ccc"]
    assert array.get_basic_selection(slice(0, 2), fields="bar").tolist() == [1, 2]
    assert array.get_coordinate_selection([0, 2], fields=["foo", "baz"]).tolist() == [
        (b"aaa", 4.2),
        (b"ccc", 12.6),
    ]
    array["bar"] = [7, 8, 9]
    assert array[1].item() == (b"bbb", 8, 8.4)


def test_attributes_must_be_json() -> None:
    store, array = created(shape=3)
    with pytest.raises(MetadataError, match="JSON"):
        array.attrs["file"] = io.BytesIO()
    assert ".zattrs" not in store.values
    assert "file" not in array.attrs


# -- Groups --------------------------------------------------------------------------------------------


def test_nested_groups_and_arrays() -> None:
    root = zarrfs.create_group(MemoryStore(), zarr_format=2)
    bar = root.create_group("foo").create_group("bar")
    made = bar.create_array("baz", shape=(100, 100), chunks=(10, 10), dtype="i4")
    assert made.name == "/foo/bar/baz"
    assert root["foo/bar/baz"] == root["foo"]["bar"]["baz"] == made
    assert root.require_group("foo/bar") == bar
    assert bar.require_array("baz", shape=(100, 100), dtype="i4") == made
    with pytest.raises(NodeTypeError):
        bar.require_array("baz", shape=(100, 101), dtype="i4")
    assert [name for name, _ in root.walk()] == ["foo", "foo/bar", "foo/bar/baz"]


def test_groups_on_disk_are_reopened(tmp_path: Path) -> None:
    root = zarrfs.open_group(tmp_path / "group.zarr", mode="w", zarr_format=2)
    root.create_array("foo/bar/baz", shape=4, dtype="i4")
    reopened = zarrfs.open(tmp_path / "group.zarr" / "foo" / "bar")
    assert isinstance(reopened, zarrfs.Group)
    assert list(reopened) == ["baz"]
    with pytest.raises(ReadOnlyError):
        reopened.create_group("other")


def test_members_are_moved_and_deleted_with_all_descendants() -> None:
    store = MemoryStore()
    root = zarrfs.create_group(store, zarr_format=2)
    root.create_array("a/b/c", data=np.arange(3))
    root.move("a/b", "x/y")
    assert [name for name, _ in root.walk()] == ["a", "x", "x/y", "x/y/c"]
    assert "x/.zgroup" in store.values
    del root["x"]
    assert sorted(store.values) == [".zgroup", "a/.zgroup"]
