"""Zarr core specification 3.1: "Metadata", "Data types" and "Permitted fill values"."""

from __future__ import annotations

import re
import struct
from typing import Any

import numpy as np
import pytest

import zarrfs
from tests.documents import LITTLE, V3_ARRAY, V3_GROUP, changed, read_json, regular, store_of
from zarrfs.engine.stores.memory import MemoryStore
from zarrfs.errors import MetadataError, UnsupportedError

EXAMPLE: dict[str, Any] = {
    "zarr_format": 3,
    "node_type": "array",
    "shape": [10000, 1000],
    "dimension_names": ["rows", "columns"],
    "data_type": "float64",
    "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [1000, 100]}},
    "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
    "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}],
    "fill_value": "NaN",
    "attributes": {"foo": 42, "bar": "apples", "baz": [1, 2, 3, 4]},
}
GROUP_EXAMPLE: dict[str, Any] = {
    "zarr_format": 3,
    "node_type": "group",
    "attributes": {"spam": "ham", "eggs": 42},
}


def open_array(document: dict[str, Any], **chunks: bytes) -> zarrfs.Array:
    values = {f"c/{coords}": chunk for coords, chunk in chunks.items()}
    return zarrfs.open_array(store_of({"zarr.json": document, **values}))


def created(**options: Any) -> tuple[MemoryStore, zarrfs.Array]:
    store = MemoryStore()
    return store, zarrfs.create_array(store, **options)


# -- Array metadata ------------------------------------------------------------------------------------


def test_array_example() -> None:
    rows = np.arange(100000.0).reshape(1000, 100)
    array = open_array(EXAMPLE, **{"9/3": rows.tobytes()})
    assert (array.shape, array.chunks, array.nchunks) == ((10000, 1000), (1000, 100), 100)
    assert array.dimension_names == ("rows", "columns")
    assert array.attrs.asdict() == {"foo": 42, "bar": "apples", "baz": [1, 2, 3, 4]}
    np.testing.assert_array_equal(array[9000:, 300:400], rows)
    assert np.isnan(array[8999, 300])


def test_the_array_example_is_written() -> None:
    store, _ = created(
        shape=(10000, 1000),
        dtype="float64",
        chunks=(1000, 100),
        compressors=None,
        fill_value=np.nan,
        dimension_names=["rows", "columns"],
        attributes=EXAMPLE["attributes"],
    )
    assert read_json(store, "zarr.json") == EXAMPLE


def test_the_fictional_data_type_of_the_example_is_refused_by_name() -> None:
    made_up = {"name": "urn:example:datetime", "configuration": {"unit": "ns"}}
    document = changed(EXAMPLE, data_type=made_up, fill_value=None, dimension_names=..., attributes=...)
    with pytest.raises(UnsupportedError, match="urn:example:datetime"):
        open_array(document)


MANDATORY = sorted(set(EXAMPLE) - {"dimension_names", "attributes"})


@pytest.mark.parametrize("name", MANDATORY)
def test_missing_required_keys(name: str) -> None:
    with pytest.raises(MetadataError, match=name):
        open_array(changed(EXAMPLE, **{name: ...}))


def test_optional_keys_may_be_missing() -> None:
    array = open_array(changed(EXAMPLE, dimension_names=..., attributes=...))
    assert (array.dimension_names, array.attrs.asdict()) == (None, {})


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        *[({"zarr_format": version}, "/zarr_format: expected 3") for version in (2, "3", 3.0, True, None)],
        *[
            ({"node_type": kind}, '/node_type: expected one of "array", "group"')
            for kind in ("Array", None, 3)
        ],
        ({"node_type": "group"}, "shape"),
        *[({"shape": shape}, "/shape: expected a list") for shape in (4, None, {"x": 4})],
        *[({"shape": [length]}, "/shape/0: expected an integer") for length in (4.0, "4", True, 10**400)],
        ({"shape": [-1]}, "/shape/0: expected an integer from 0 to 2^63-1, found -1"),
        ({"shape": [1] * 65}, "/shape: expected at most 64 dimensions, found 65"),
        ({"data_type": 8}, "/data_type"),
        ({"data_type": "<f8"}, "/data_type"),
        ({"chunk_grid": {"configuration": {"chunk_shape": [2]}}}, "/chunk_grid"),
        ({"chunk_grid": "regular"}, "chunk_shape"),
        ({"chunk_grid": regular(2, 2)}, "/chunk_grid/configuration/chunk_shape: expected 1 lengths"),
        ({"chunk_grid": regular(0)}, "chunk_shape"),
        ({"chunk_key_encoding": {"name": "default", "configuration": {"separator": "-"}}}, "separator"),
        ({"fill_value": "nan"}, "/fill_value: expected an integer"),
        ({"fill_value": None}, "/fill_value: expected an integer"),
        ({"codecs": []}, "/codecs: expected at least one codec"),
        ({"codecs": ["bytes", *["crc32c"] * 64]}, "/codecs: expected at most 64 codecs, found 65"),
        *[({"codecs": codecs}, "/codecs: expected a list") for codecs in ({"name": "bytes"}, "bytes", None)],
        *[({"attributes": value}, "/attributes: expected an object") for value in (["a"], None)],
        ({"dimension_names": ["x", "y"]}, "/dimension_names: expected 1 names"),
        ({"dimension_names": [1]}, "/dimension_names/0: expected a string"),
        ({"dimension_names": "x"}, "/dimension_names: expected a list"),
        ({"storage_transformers": {}}, "/storage_transformers: expected a list"),
    ],
    ids=lambda value: str(value)[:80],
)
def test_values_of_invalid_types(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(MetadataError, match=rf"^memory://\d+/zarr\.json: .*{re.escape(words)}"):
        open_array(changed(V3_ARRAY, **changes))


def test_dimension_names_may_be_null_and_need_not_be_distinct() -> None:
    square = changed(V3_ARRAY, shape=[2, 2, 2], chunk_grid=regular(1, 1, 1))
    names = ["x", None, "x"]
    assert open_array(changed(square, dimension_names=names)).dimension_names == ("x", None, "x")
    store, _ = created(shape=(2, 2, 2), dimension_names=names)
    assert read_json(store, "zarr.json")["dimension_names"] == names


def test_attributes_may_be_any_json_values() -> None:
    attributes = {"": None, "a/b": [1, [2.5, {"c": False}]], "名前": "λ", "zarr_format": 2}
    assert open_array(changed(V3_ARRAY, attributes=attributes)).attrs.asdict() == attributes
    store, array = created(shape=1)
    array.attrs.update(attributes)
    assert read_json(store, "zarr.json")["attributes"] == attributes


@pytest.mark.parametrize("dtype", ["bool", "int16", "float32", "complex64", "r24", "string"])
def test_the_default_fill_value_is_stored_in_the_metadata(dtype: str) -> None:
    store, array = created(shape=2, dtype=dtype)
    assert "fill_value" in read_json(store, "zarr.json")
    assert zarrfs.open_array(store)[:].tolist() == array[:].tolist()


def test_0_dimensional_arrays_have_an_empty_shape() -> None:
    document = changed(V3_ARRAY, shape=[], chunk_grid=regular(), dimension_names=[])
    store = store_of({"zarr.json": document, "c": b"\7"})
    assert zarrfs.open_array(store)[()] == 7
    assert zarrfs.open_array(store).shape == ()


# -- Group metadata ------------------------------------------------------------------------------------


def test_group_example() -> None:
    group = zarrfs.open_group(store_of({"zarr.json": GROUP_EXAMPLE}))
    assert group.attrs.asdict() == {"spam": "ham", "eggs": 42}
    store = MemoryStore()
    zarrfs.create_group(store, attributes=GROUP_EXAMPLE["attributes"])
    assert read_json(store, "zarr.json") == GROUP_EXAMPLE


@pytest.mark.parametrize(
    ("changes", "pointer"),
    [
        ({"zarr_format": ...}, "/zarr_format"),
        ({"zarr_format": 4}, "/zarr_format"),
        ({"node_type": ...}, "/node_type"),
        ({"node_type": "folder"}, "/node_type"),
        ({"attributes": "none"}, "/attributes"),
        ({"shape": [1]}, '"shape", which is not supported'),
    ],
    ids=str,
)
def test_invalid_group_documents(changes: dict[str, Any], pointer: str) -> None:
    with pytest.raises(MetadataError, match=pointer):
        zarrfs.open(store_of({"zarr.json": changed(V3_GROUP, **changes)}))


def test_group_attributes_may_be_missing() -> None:
    assert zarrfs.open_group(store_of({"zarr.json": V3_GROUP})).attrs.asdict() == {}


@pytest.mark.parametrize("text", [b"", b"{", b"[]", b"3", b'{"zarr_format": 3,}', b"\xff"])
def test_documents_must_be_json_objects(text: bytes) -> None:
    with pytest.raises(MetadataError, match=r"zarr\.json"):
        zarrfs.open(store_of({"zarr.json": text}))


# -- Data types ----------------------------------------------------------------------------------------

INTEGERS = {f"{sign}int{bits}": bits for sign in ("", "u") for bits in (8, 16, 32, 64)}
RAW_BITS = {"r8": 1, "r16": 2, "r24": 3, "r128": 16}
TYPES = ["bool", *INTEGERS, "float16", "float32", "float64", "complex64", "complex128", *RAW_BITS]


def zero(name: str) -> Any:
    """The fill value zero of a data type, as JSON."""
    if name == "bool":
        return False
    if name.startswith("complex"):
        return [0, 0]
    return [0] * RAW_BITS[name] if name in RAW_BITS else 0


@pytest.mark.parametrize("name", TYPES)
def test_core_data_types(name: str) -> None:
    document = changed(V3_ARRAY, data_type=name, codecs=[LITTLE], fill_value=zero(name))
    array = open_array(document)
    assert array.dtype == (np.dtype(f"V{RAW_BITS[name]}") if name in RAW_BITS else np.dtype(name))
    store, _ = created(shape=4, chunks=2, dtype=name, compressors=None)
    written = read_json(store, "zarr.json")
    assert (written["data_type"], written["fill_value"]) == (name, zero(name))


@pytest.mark.parametrize(
    "name", ["int128", "uint24", "float8", "float128", "r", "r7", "r0", "r08", "R8", "Bool"]
)
def test_invalid_data_types(name: str) -> None:
    with pytest.raises(UnsupportedError, match="/data_type"):
        open_array(changed(V3_ARRAY, data_type=name))


# -- Permitted fill values -----------------------------------------------------------------------------


def opened_fill(name: str, value: Any) -> Any:
    """Return the value that an array without chunks has for this fill value."""
    return open_array(changed(V3_ARRAY, data_type=name, codecs=[LITTLE], fill_value=value))[0]


@pytest.mark.parametrize("value", [False, True])
def test_fill_values_of_bool(value: bool) -> None:
    assert opened_fill("bool", value) == value
    assert read_json(created(shape=1, dtype=bool, fill_value=value)[0], "zarr.json")["fill_value"] is value


@pytest.mark.parametrize("value", [0, 1, "true", None, 1.0, [True]])
def test_invalid_fill_values_of_bool(value: Any) -> None:
    with pytest.raises(MetadataError, match="/fill_value"):
        opened_fill("bool", value)


@pytest.mark.parametrize("name", INTEGERS)
def test_fill_values_of_integers(name: str) -> None:
    low, high = int(np.iinfo(name).min), int(np.iinfo(name).max)
    for value in (low, high):
        assert opened_fill(name, value) == value
        written = read_json(created(shape=1, dtype=name, fill_value=value)[0], "zarr.json")["fill_value"]
        assert (written, type(written)) == (value, int)
    for invalid in (low - 1, high + 1, 1.0, 1.5, "1", True, None, [1], "0x01"):
        with pytest.raises(MetadataError, match="/fill_value"):
            opened_fill(name, invalid)


@pytest.mark.parametrize("text", [b"1.0", b"1e0", b"10E-1"])
def test_invalid_fill_values_of_integers(text: bytes) -> None:
    document = store_of({"zarr.json": changed(V3_ARRAY, fill_value=12345)}).values["zarr.json"]
    store = store_of({"zarr.json": document.replace(b"12345", text)})
    with pytest.raises(MetadataError, match="/fill_value"):
        zarrfs.open(store)


FLOATS = [
    ("float16", "<e", "0x7e00"),
    ("float32", "<f", "0x7fc00000"),
    ("float64", "<d", "0x7ff8000000000000"),
]


@pytest.mark.parametrize(("name", "code", "nan"), FLOATS)
def test_fill_values_of_floats(name: str, code: str, nan: str) -> None:
    nbytes = struct.calcsize(code)
    for value, number in ((1, 1.0), (-0.0, -0.0), (1.5, 1.5), ("Infinity", np.inf), ("-Infinity", -np.inf)):
        assert opened_fill(name, value).tobytes() == struct.pack(code, number)
    quiet = int(nan, 16).to_bytes(nbytes, "little")
    assert opened_fill(name, "NaN").tobytes() == opened_fill(name, nan).tobytes() == quiet


@pytest.mark.parametrize(("name", "code", "nan"), FLOATS)
def test_fill_values_of_floats_as_hexadecimal_bits(name: str, code: str, nan: str) -> None:
    digits = len(nan) - 2
    one = struct.pack(code.replace("<", ">"), 1.0).hex()
    for bits in (one, "f" * digits, "0" * (digits - 1) + "1", "8" + "0" * (digits - 1), nan[2:-1] + "1"):
        scalar = opened_fill(name, f"0x{bits}")
        assert scalar.tobytes() == bytes.fromhex(bits)[::-1]
        store, _ = created(shape=1, dtype=name, fill_value=scalar)
        assert zarrfs.open_array(store)[0].tobytes() == scalar.tobytes()


def test_all_bits_of_nan_fill_values_are_written() -> None:
    for bits, written in ((0x7FC00000, "NaN"), (0xFFC00000, "0xffc00000"), (0x7FC00001, "0x7fc00001")):
        scalar = np.array(bits, "<u4").view("<f4")[()]
        store, _ = created(shape=1, dtype="float32", fill_value=scalar)
        assert read_json(store, "zarr.json")["fill_value"] == written


def test_fill_values_of_floats_are_rounded_to_the_nearest() -> None:
    assert opened_fill("float16", 2049) == 2048
    assert opened_fill("float32", 0.1) == np.float32(0.1)
    assert opened_fill("float32", 16777219) == 16777220
    assert opened_fill("float32", 1e39) == np.inf


@pytest.mark.parametrize(
    "value",
    [
        "nan",
        "inf",
        "+Infinity",
        "0x",
        "0x7fc0",
        "7fc00000",
        "0x7fc0000g",
        "1.0",
        None,
        True,
        [1],
        "0x7FC000000",
    ],
)
def test_invalid_fill_values_of_floats(value: Any) -> None:
    with pytest.raises(MetadataError, match="/fill_value"):
        opened_fill("float32", value)


@pytest.mark.parametrize(("name", "code"), [("complex64", "<ff"), ("complex128", "<dd")])
def test_fill_values_of_complex_numbers(name: str, code: str) -> None:
    assert opened_fill(name, [1, 2]).tobytes() == struct.pack(code, 1, 2)
    one = "0x3f800000" if name == "complex64" else "0x3ff0000000000000"
    assert opened_fill(name, [one, "Infinity"]).tobytes() == struct.pack(code, 1, np.inf)
    scalar = opened_fill(name, ["-Infinity", "NaN"])
    assert (scalar.real, np.isnan(scalar.imag)) == (-np.inf, True)
    store, _ = created(shape=1, dtype=name, fill_value=scalar)
    assert read_json(store, "zarr.json")["fill_value"] == ["-Infinity", "NaN"]
    for value in (1, [1], [1, 2, 3], ["1", 2], "1+2j", None, {"real": 1, "imag": 2}):
        with pytest.raises(MetadataError, match="/fill_value"):
            opened_fill(name, value)


@pytest.mark.parametrize(("name", "nbytes"), RAW_BITS.items())
def test_fill_values_of_raw_bits(name: str, nbytes: int) -> None:
    value = [255 - i for i in range(nbytes)]
    assert opened_fill(name, value).tobytes() == bytes(value)
    store, _ = created(shape=1, dtype=name, fill_value=np.void(bytes(value)))
    assert read_json(store, "zarr.json")["fill_value"] == value
    for invalid in (
        [*value, 0],
        value[:-1],
        [256] * nbytes,
        [-1] * nbytes,
        [1.0] * nbytes,
        [True] * nbytes,
        0,
        None,
    ):
        with pytest.raises(MetadataError, match="/fill_value"):
            opened_fill(name, invalid)
