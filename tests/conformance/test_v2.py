"""Zarr storage specification, version 2: "Arrays". Groups and examples are in ``test_v2_hierarchy.py``."""

from __future__ import annotations

import base64
import re
import zlib
from pathlib import Path
from typing import Any

import numcodecs
import numpy as np
import pytest

import zarrfs
from tests.documents import V2_ARRAY, changed, read_json, store_of
from zarrfs.engine.stores.memory import MemoryStore
from zarrfs.errors import MetadataError, UnsupportedError

EXAMPLE: dict[str, Any] = {
    "chunks": [1000, 1000],
    "compressor": {"id": "blosc", "cname": "lz4", "clevel": 5, "shuffle": 1},
    "dtype": "<f8",
    "fill_value": "NaN",
    "filters": [{"id": "delta", "dtype": "<f8", "astype": "<f4"}],
    "order": "C",
    "shape": [10000, 10000],
    "zarr_format": 2,
}


def open_array(zarray: dict[str, Any], **chunks: bytes) -> zarrfs.Array:
    return zarrfs.open_array(store_of({".zarray": zarray, **chunks}))


def created(**options: Any) -> tuple[MemoryStore, zarrfs.Array]:
    store = MemoryStore()
    return store, zarrfs.create_array(store, zarr_format=2, **options)


# -- Metadata ------------------------------------------------------------------------------------------


def test_metadata_example() -> None:
    rows = np.arange(1000.0).repeat(1000).reshape(1000, 1000)
    delta = numcodecs.Delta("<f8", "<f4").encode(rows.reshape(-1))
    array = open_array(EXAMPLE, **{"0.9": numcodecs.Blosc("lz4", 5, 1).encode(delta)})
    assert (array.shape, array.chunks, array.nchunks) == ((10000, 10000), (1000, 1000), 100)
    assert (array.dtype, array.order) == (np.dtype("<f8"), "C")
    np.testing.assert_array_equal(array[:1000, 9999], np.arange(1000.0))
    assert np.isnan(array[1000, 9999])


def test_the_metadata_example_is_written() -> None:
    store, _ = created(
        shape=(10000, 10000),
        chunks=(1000, 1000),
        dtype="<f8",
        fill_value=np.nan,
        filters=[numcodecs.Delta("<f8", "<f4")],
        compressors=numcodecs.Blosc("lz4", 5, 1),
    )
    written = read_json(store, ".zarray")
    assert written.pop("dimension_separator") == "."
    assert written["compressor"].pop("blocksize") == 0
    assert written == EXAMPLE


@pytest.mark.parametrize("key", sorted(set(EXAMPLE) - {"filters"}))
def test_missing_required_metadata_keys(key: str) -> None:
    with pytest.raises(MetadataError, match=key):
        open_array(changed(EXAMPLE, **{key: ...}))


def test_missing_filters_are_read_as_null() -> None:
    """This deviates from the specification: such documents exist, and their meaning is unambiguous."""
    assert open_array(changed(V2_ARRAY, filters=...), **{"0": b"\1\2"})[:].tolist() == [1, 2, 0, 0]


@pytest.mark.parametrize("version", [1, 3, "2", 2.0, True, None])
def test_zarr_format_must_be_the_integer_2(version: Any) -> None:
    with pytest.raises(MetadataError, match="/zarr_format"):
        open_array(changed(V2_ARRAY, zarr_format=version))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"shape": 4}, "/shape: expected a list"),
        ({"shape": ["4"]}, "/shape/0: expected an integer"),
        ({"shape": [-1]}, "/shape/0: expected an integer from 0 to 2^63-1, found -1"),
        ({"shape": [1.0]}, "/shape/0: expected an integer"),
        ({"shape": [False]}, "/shape/0: expected an integer"),
        ({"shape": [1] * 65}, "/shape: expected at most 64 dimensions"),
        ({"chunks": [2.5]}, "/chunks/0: expected an integer"),
        ({"chunks": [2, 2]}, "/chunks: expected 1 lengths"),
        ({"chunks": [0]}, "/chunks/0: expected a chunk length of at least 1"),
        ({"chunks": [-1]}, "/chunks/0: expected an integer from 0"),
        ({"chunks": None}, "/chunks: expected a list"),
        ({"chunks": True}, "/chunks: expected a list"),
        ({"dtype": {"name": "u1"}}, "/dtype"),
        ({"compressor": {"level": 1}}, "/compressor"),
        ({"compressor": "zlib"}, "/compressor: expected null, or an object"),
        ({"compressor": [{"id": "zlib"}]}, "/compressor"),
        ({"filters": [{"dtype": "<u1"}]}, "/filters/0"),
        ({"filters": ["delta"]}, "/filters/0"),
        ({"filters": {"id": "delta"}}, "/filters: expected null, or a list"),
        ({"fill_value": "none"}, "/fill_value: expected an integer"),
        *[({"order": order}, '/order: expected one of "C", "F"') for order in ("c", "A", None)],
        *[
            ({"dimension_separator": separator}, '/dimension_separator: expected one of ".", "/"')
            for separator in ("_", "", "..")
        ],
    ],
    ids=str,
)
def test_metadata_values_of_invalid_types(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(MetadataError, match=rf"^memory://\d+/\.zarray: .*{re.escape(words)}"):
        open_array(changed(V2_ARRAY, **changes))


@pytest.mark.parametrize("order", ["C", "F"])
def test_metadata_order(order: Any) -> None:
    data = np.arange(24, dtype="<u2").reshape(2, 3, 4)
    zarray = changed(V2_ARRAY, shape=[2, 3, 4], chunks=[2, 3, 4], dtype="<u2", order=order)
    np.testing.assert_array_equal(open_array(zarray, **{"0.0.0": data.tobytes(order=order)})[:], data)
    store, _ = created(data=data, chunks=(2, 3, 4), order=order, compressors=None)
    assert store.values["0.0.0"] == data.tobytes(order=order)
    assert read_json(store, ".zarray")["order"] == order


def test_the_default_dimension_separator_is_a_period() -> None:
    square = changed(V2_ARRAY, shape=[2, 2], chunks=[1, 1])
    assert open_array(square, **{"0.1": b"\7"})[:].tolist() == [[0, 7], [0, 0]]
    nested = changed(square, dimension_separator="/")
    assert open_array(nested, **{"0/1": b"\7", "1.0": b"\1"})[:].tolist() == [[0, 7], [0, 0]]
    dotted = changed(square, dimension_separator=".")
    assert open_array(dotted, **{"0/1": b"\7", "1.0": b"\1"})[:].tolist() == [[0, 0], [1, 0]]


def test_the_dimension_separator_slash_creates_directories(tmp_path: Path) -> None:
    zarrfs.create_array(
        tmp_path / "a.zarr", data=np.ones((2, 2)), chunks=1, zarr_format=2, dimension_separator="/"
    )
    assert (tmp_path / "a.zarr" / "1" / "0").is_file()


def test_other_keys_are_ignored_and_not_written() -> None:
    array = open_array(changed(V2_ARRAY, codecs=[{"name": "gzip"}], must_understand=True), **{"0": b"\1\2"})
    assert array[:2].tolist() == [1, 2]
    store, _ = created(shape=3)
    assert set(read_json(store, ".zarray")) == {*EXAMPLE, "dimension_separator"}


# -- Data type encoding --------------------------------------------------------------------------------

SIMPLE = ["|b1", "|i1", "<i2", ">i4", "<i8", "|u1", ">u2", "<u4", "<u8", "<f2", ">f4", "<f8", "<c8", ">c16"]
SIMPLE += ["<m8[s]", ">M8[ns]", "<M8[D]", "<M8[25us]", "|S12", "|S1", "<U3", ">U2", "|V3", "|V16"]


@pytest.mark.parametrize("dtype", SIMPLE)
def test_simple_data_types(dtype: str) -> None:
    itemsize = np.dtype(dtype).itemsize
    raw = bytes(range(65, 65 + 8)) * itemsize if dtype[1] == "S" else bytes(8) * itemsize
    data = np.frombuffer(raw, dtype)[:8].copy()
    if dtype[1] in "biufc":
        data[:] = [0, 1, 1, 0, 0, 1, 0, 1]
    elif dtype[1] in "mM":
        data.view(dtype[0] + "i8")[:] = [0, 1, -1, 2**40, -(2**40), 5, -(2**63), 7]
    zarray = changed(V2_ARRAY, dtype=dtype, shape=[8], chunks=[8], fill_value=None)
    array = open_array(zarray, **{"0": data.tobytes()})
    assert array.dtype == np.dtype(dtype)
    assert array[:].tobytes() == data.tobytes()
    store, _ = created(data=data, chunks=8, compressors=None, write_empty_chunks=True)
    assert (read_json(store, ".zarray")["dtype"], store.values["0"]) == (dtype, data.tobytes())


@pytest.mark.parametrize("dtype", ["f8", "i4", "|u2", "c8", "M8[ns]", "|U4"])
def test_byte_order_must_be_specified(dtype: str) -> None:
    with pytest.raises(MetadataError, match="/dtype: expected a byte order"):
        open_array(changed(V2_ARRAY, dtype=dtype))


@pytest.mark.parametrize("dtype", ["<x4", "<i3", "<f1", "<i4[ns]", "<M4[s]", "", "<", "float64", 4, None, []])
def test_invalid_data_types(dtype: Any) -> None:
    with pytest.raises(MetadataError, match="/dtype"):
        open_array(changed(V2_ARRAY, dtype=dtype))


@pytest.mark.parametrize("dtype", ["M8", "m8", [("when", "M8"), ("what", "u1")]], ids=str)
def test_datetimes_without_units_are_refused(dtype: Any) -> None:
    store = MemoryStore()
    with pytest.raises(UnsupportedError, match="without a unit"):
        zarrfs.create_array(store, "a", shape=3, dtype=dtype, zarr_format=2)
    assert not store.values


STRUCTURED: list[Any] = [
    [["r", "|u1"], ["g", "|u1"], ["b", "|u1"]],
    [["x", "<f4"], ["y", "<f4"], ["z", "<f4", [2, 2]]],
    [["foo", "<f4"], ["bar", [["baz", "<f4"], ["qux", "<i4"]]]],
]
STRUCTURED_NUMPY: list[Any] = [
    [("r", "u1"), ("g", "u1"), ("b", "u1")],
    [("x", "<f4"), ("y", "<f4"), ("z", "<f4", (2, 2))],
    [("foo", "<f4"), ("bar", [("baz", "<f4"), ("qux", "<i4")])],
]


@pytest.mark.parametrize(("dtype", "numpy"), list(zip(STRUCTURED, STRUCTURED_NUMPY, strict=True)), ids=str)
def test_structured_data_type_examples(dtype: Any, numpy: Any) -> None:
    raw = np.arange(2 * np.dtype(numpy).itemsize, dtype="u1").tobytes()
    zarray = changed(V2_ARRAY, dtype=dtype, fill_value=None)
    array = open_array(zarray, **{"0": raw})
    assert array.dtype == np.dtype(numpy)
    assert array[:2].tobytes() == raw
    store, _ = created(data=np.frombuffer(raw, numpy), chunks=2, compressors=None)
    assert (read_json(store, ".zarray")["dtype"], store.values["0"]) == (dtype, raw)


# -- Fill value encoding -------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["<f2", ">f4", "<f8"])
@pytest.mark.parametrize(
    ("value", "encoded"), [(np.nan, "NaN"), (np.inf, "Infinity"), (-np.inf, "-Infinity")], ids=str
)
def test_fill_value_of_floats(value: float, encoded: str, dtype: str) -> None:
    array = open_array(changed(V2_ARRAY, dtype=dtype, fill_value=encoded))
    np.testing.assert_array_equal(array[:], np.full(4, value, dtype))
    store, _ = created(shape=4, dtype=dtype, fill_value=value)
    assert read_json(store, ".zarray")["fill_value"] == encoded
    with pytest.raises(MetadataError, match="/fill_value"):
        open_array(changed(V2_ARRAY, dtype=dtype, fill_value=f"{encoded}s"))


@pytest.mark.parametrize(
    ("dtype", "value", "encoded"),
    [
        ("|b1", True, True),
        ("<i8", -(2**63), -(2**63)),
        ("<u8", 2**64 - 1, 2**64 - 1),
        ("<f4", 0.5, 0.5),
        ("<f8", -0.0, -0.0),
        ("<c8", 1 - 2j, [1.0, -2.0]),
        ("<c16", complex(np.nan, -np.inf), ["NaN", "-Infinity"]),
        ("<U3", "äb", "äb"),
        ("<M8[s]", np.datetime64(12, "s"), 12),
    ],
    ids=str,
)
def test_fill_values_of_other_types_are_json_values(dtype: str, value: Any, encoded: Any) -> None:
    store, array = created(shape=2, dtype=dtype, fill_value=value)
    written = read_json(store, ".zarray")["fill_value"]
    assert (written, str(written)) == (encoded, str(encoded))
    expected = np.full(2, value, dtype).tobytes()
    assert array[:].tobytes() == zarrfs.open_array(store)[:].tobytes() == expected


@pytest.mark.parametrize("raw", [b"abc", b"", b"\xfb\xff\xfe", b"twelve bytes"])
def test_fill_value_of_fixed_length_bytes_is_base64(raw: bytes) -> None:
    text = base64.b64encode(raw).decode("ascii")
    array = open_array(changed(V2_ARRAY, dtype="|S12", fill_value=text))
    assert array[:].tolist() == [raw] * 4
    store, _ = created(shape=4, dtype="S12", fill_value=raw)
    assert read_json(store, ".zarray")["fill_value"] == text


def test_fill_values_use_the_standard_base64_alphabet() -> None:
    with pytest.raises(MetadataError, match="expected base64"):
        open_array(changed(V2_ARRAY, dtype="|S12", fill_value="-__-"))


@pytest.mark.parametrize(("dtype", "numpy"), list(zip(STRUCTURED, STRUCTURED_NUMPY, strict=True)), ids=str)
def test_fill_value_of_structured_types_is_base64(dtype: Any, numpy: Any) -> None:
    raw = np.arange(1, np.dtype(numpy).itemsize + 1, dtype="u1").tobytes()
    text = base64.b64encode(raw).decode("ascii")
    array = open_array(changed(V2_ARRAY, dtype=dtype, fill_value=text))
    assert array[:].tobytes() == raw * 4
    store, _ = created(shape=4, dtype=numpy, fill_value=np.frombuffer(raw, numpy)[0])
    assert read_json(store, ".zarray")["fill_value"] == text
    with pytest.raises(MetadataError, match="expected base64"):
        open_array(changed(V2_ARRAY, dtype=dtype, fill_value=text[:-4]))


@pytest.mark.parametrize("dtype", ["<f8", "|S12", [["a", "<i4"]], "|b1", "<M8[ns]"], ids=str)
def test_a_null_fill_value_is_undefined(dtype: Any) -> None:
    store = store_of({".zarray": changed(V2_ARRAY, dtype=dtype, fill_value=None)})
    array = zarrfs.open_array(store, mode="r+")
    assert array.fill_value is None
    assert array[:].shape == (4,)
    array.resize(6)
    assert read_json(store, ".zarray")["fill_value"] is None


@pytest.mark.parametrize("dtype", ["<M8[ns]", "<m8[s]", ">M8[D]", "<M8"])
def test_times_of_missing_chunks_are_nat_if_the_fill_value_is_undefined(dtype: str) -> None:
    """The specification leaves the value open. zarr-python reads NaT."""
    store = store_of({".zarray": changed(V2_ARRAY, dtype=dtype, fill_value=None)})
    array = zarrfs.open_array(store, mode="r+")
    assert np.isnat(array[...]).all()
    if dtype != "<M8":
        array[1] = np.array(86400, dtype)
        assert np.isnat(array[...]).tolist() == [True, False, True, True]


def test_chunks_of_zeros_are_stored_if_the_fill_value_is_undefined() -> None:
    """The content of a missing chunk is undefined in this case, so chunks of zeros must be stored."""
    store = store_of({".zarray": changed(V2_ARRAY, fill_value=None)})
    zarrfs.open_array(store, mode="r+")[:] = 0
    assert (store.values["0"], store.values["1"]) == (bytes(2), bytes(2))


# -- Chunks --------------------------------------------------------------------------------------------


def test_no_header_is_added_to_the_compressed_bytes() -> None:
    data = np.arange(1000, dtype="<i4")
    store, _ = created(data=data, chunks=1000, compressors={"id": "zlib", "level": 1})
    assert store.values["0"] == zlib.compress(data.tobytes(), 1)
    store, _ = created(data=data, chunks=1000, compressors=None)
    assert store.values["0"] == data.tobytes()


def test_blosc_data_begin_with_a_16_byte_header() -> None:
    data = np.arange(1000, dtype="<i4")
    store, _ = created(data=data, chunks=1000, compressors=numcodecs.Blosc("lz4", 5, 1))
    header = np.frombuffer(store.values["0"], "<u4", 3, 4)
    assert (header[0], header[2], store.values["0"][3]) == (4000, len(store.values["0"]), 4)
    np.testing.assert_array_equal(np.frombuffer(numcodecs.Blosc().decode(store.values["0"]), "<i4"), data)


def test_chunk_keys() -> None:
    chunk = np.full((1000, 1000), 7, "u1").tobytes()
    array = open_array(changed(V2_ARRAY, shape=[10000, 10000], chunks=[1000, 1000]), **{"2.4": chunk})
    assert (array[2000:3000, 4000:5000] == 7).all()
    assert array[1999, 4000] == array[3000, 4000] == array[2000, 3999] == array[2000, 5000] == 0
    assert (array.nchunks, array.nchunks_initialized) == (100, 1)


def test_a_scalar_has_one_chunk() -> None:
    """The specification does not define this; in all implementations the key is "0"."""
    assert open_array(changed(V2_ARRAY, shape=[], chunks=[]), **{"0": b"\7"})[()] == 7


def test_uninitialized_chunks_read_as_the_fill_value() -> None:
    assert open_array(changed(V2_ARRAY, fill_value=9), **{"1": b"\1\2"})[:].tolist() == [9, 9, 1, 2]


def test_edge_chunks_are_stored_with_the_full_chunk_shape() -> None:
    data = np.arange(15, dtype="u1").reshape(3, 5)
    store, _ = created(data=data, chunks=(2, 2), compressors=None, fill_value=9)
    assert {key: len(value) for key, value in store.values.items() if key[0] != "."} == dict.fromkeys(
        ["0.0", "0.1", "0.2", "1.0", "1.1", "1.2"], 4
    )
    # Elements beyond the array are undefined and must not be visible.
    store.set("1.2", bytes([14, 255, 255, 255]))
    np.testing.assert_array_equal(zarrfs.open_array(store)[:], data)


# -- Filters -------------------------------------------------------------------------------------------


def test_filters_encode_in_order_and_decode_in_reverse_order() -> None:
    filters = [
        {"id": "fixedscaleoffset", "offset": 0, "scale": 10, "dtype": "<f8", "astype": "<i2"},
        {"id": "delta", "dtype": "<i2"},
    ]
    stored = zlib.compress(np.array([5, 1, 2, 3], "<i2").tobytes(), 1)
    zarray = changed(
        V2_ARRAY, dtype="<f8", chunks=[4], filters=filters, compressor={"id": "zlib", "level": 1}
    )
    np.testing.assert_allclose(open_array(zarray, **{"0": stored})[:], [0.5, 0.6, 0.8, 1.1])
    store, _ = created(
        data=np.array([0.5, 0.6, 0.8, 1.1]),
        chunks=4,
        filters=filters,
        compressors={"id": "zlib", "level": 1},
    )
    assert store.values["0"] == stored
    assert [entry["id"] for entry in read_json(store, ".zarray")["filters"]] == ["fixedscaleoffset", "delta"]


def test_filters_on_bytes_are_applied_before_the_compressor() -> None:
    raw = np.array([1, 2, 3, 4], "<u2").tobytes()
    checked = zlib.crc32(raw).to_bytes(4, "little") + raw
    zarray = changed(
        V2_ARRAY, dtype="<u2", chunks=[4], filters=[{"id": "crc32"}], compressor={"id": "zlib", "level": 1}
    )
    assert open_array(zarray, **{"0": zlib.compress(checked)})[:].tolist() == [1, 2, 3, 4]
