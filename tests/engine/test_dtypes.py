"""Data types and fill values: conversion from and to v2 metadata, v3 metadata and NumPy dtypes."""

from __future__ import annotations

import json
from collections.abc import Callable
from importlib.metadata import EntryPoint, EntryPoints
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from zarrfs import plugins
from zarrfs.engine.dtypes import (
    DataType,
    data_type_from_numpy,
    data_type_from_v2,
    data_type_from_v3,
    data_type_to_v2,
    data_type_to_v3,
    default_fill,
    fill_from_v2,
    fill_from_v3,
    fill_to_v2,
    fill_to_v3,
    registry,
)
from zarrfs.engine.dtypes.variable import StringFamily
from zarrfs.errors import MetadataError, UnsupportedError

HERE = "image.zarr/zarr.json: /data_type"
FILL = "image.zarr/zarr.json: /fill_value"


def to_bytes(value: Any) -> bytes:
    """Return the bytes of a scalar, to compare NaNs exactly."""
    return np.asarray(value).tobytes()


def v3(value: Any) -> DataType:
    return data_type_from_v3(value, HERE)


def v2(value: Any) -> DataType:
    return data_type_from_v2(value, "image.zarr/.zarray: /dtype")


def struct(*fields: tuple[str, Any]) -> dict[str, Any]:
    entries = [{"name": name, "data_type": kind} for name, kind in fields]
    return {"name": "struct", "configuration": {"fields": entries}}


# -- Zarr v3: names ------------------------------------------------------------------------------------

PLAIN = [
    *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float16", "float32", "float64", "complex64", "complex128"),
]
SMALL = [
    *("int2", "int4", "uint2", "uint4", "bfloat16", "float4_e2m1fn", "float6_e2m3fn", "float6_e3m2fn"),
    *("float8_e3m4", "float8_e4m3", "float8_e4m3b11fnuz", "float8_e4m3fn", "float8_e4m3fnuz"),
    *("float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu"),
]
CONFIGURED: list[tuple[Any, str]] = [
    ("r8", "V1"),
    ("r24", "V3"),
    ({"name": "fixed_length_utf32", "configuration": {"length_bytes": 20}}, "<U5"),
    ({"name": "null_terminated_bytes", "configuration": {"length_bytes": 7}}, "S7"),
    ({"name": "numpy.datetime64", "configuration": {"unit": "us", "scale_factor": 10}}, "<M8[10us]"),
    ({"name": "numpy.datetime64", "configuration": {"unit": "generic", "scale_factor": 1}}, "<M8"),
    ({"name": "numpy.timedelta64", "configuration": {"unit": "D", "scale_factor": 1}}, "<m8[D]"),
    ("string", "O"),
    ("bytes", "O"),
]


@pytest.mark.parametrize("name", PLAIN)
def test_a_core_data_type_is_the_little_endian_numpy_dtype_of_that_name(name: str) -> None:
    assert v3(name) == DataType(name, np.dtype(name).newbyteorder("<"))
    assert data_type_to_v3(v3(name)) == name
    assert v3({"name": name}) == v3({"name": name, "configuration": {}}) == v3(name)


@pytest.mark.parametrize("name", SMALL)
def test_small_data_types_are_the_dtypes_of_ml_dtypes(name: str) -> None:
    assert v3(name).numpy == np.dtype(getattr(ml_dtypes, name))
    assert data_type_to_v3(v3(name)) == name
    assert data_type_from_numpy(v3(name).numpy) == data_type_from_numpy(name) == v3(name)


@pytest.mark.parametrize(("metadata", "dtype"), CONFIGURED, ids=str)
def test_data_types_with_a_configuration_round_trip(metadata: Any, dtype: str) -> None:
    data_type = v3(metadata)
    assert data_type.numpy == np.dtype(dtype)
    assert data_type_to_v3(data_type) == metadata
    assert hash(data_type) == hash(v3(metadata))


@pytest.mark.parametrize(
    ("alias", "name"),
    [
        ("variable_length_bytes", "bytes"),
        ("binary", "bytes"),
        ({"name": "raw_bytes", "configuration": {"length_bytes": 3}}, "r24"),
        ("complex_float32", "complex64"),
        ("complex_float64", "complex128"),
    ],
    ids=str,
)
def test_an_alias_is_read_and_the_registered_name_is_written(alias: Any, name: str) -> None:
    assert v3(alias) == v3(name)
    assert data_type_to_v3(v3(alias)) == name


@pytest.mark.skipif(not hasattr(ml_dtypes, "complex32"), reason="this ml_dtypes has no complex32")
@pytest.mark.parametrize("name", ["complex_float16", "complex_bfloat16"])
def test_small_complex_data_types_round_trip(name: str) -> None:
    data_type = v3(name)
    assert data_type.numpy.itemsize == 4
    assert data_type_from_numpy(data_type.numpy) == data_type
    fill = fill_from_v3(data_type, [1, "NaN"], FILL)
    assert fill_to_v3(data_type, fill) == [1.0, "NaN"]
    with pytest.raises(UnsupportedError, match="zarr_format=3"):
        data_type_to_v2(data_type)


@pytest.mark.parametrize("name", ["complex_float8_e4m3", "complex_float4_e2m1fn", "complex_float6_e3m2fn"])
def test_a_data_type_without_a_numpy_dtype_is_unsupported(name: str) -> None:
    with pytest.raises(UnsupportedError, match=f'"{name}" has no NumPy dtype'):
        v3(name)


@pytest.mark.parametrize(
    ("metadata", "words"),
    [
        ("float65", 'unknown data type "float65"'),
        ("Float64", "unknown data type"),
        ("r7", "multiple of 8"),
        ("r0", "multiple of 8"),
        ("r", "unknown data type"),
        ("r08", "unknown data type"),
        ("r99999999992", "more than"),
        ("object", "not a Zarr v3 data type"),
        (None, "found null"),
        (3, "found 3"),
        ([], "expected the name of a data type"),
        ({}, 'no "name"'),
        ({"name": 5}, "/name: expected a string"),
        ({"name": "int8", "configuration": None}, "/configuration: expected an object"),
        ({"name": "int8", "configuration": {"endian": "little"}}, "/configuration/endian: unknown key"),
        ({"name": "int8", "must_understand": False}, "must be understood"),
        ({"name": "int8", "extra": 1}, "/extra: unknown key"),
        ("fixed_length_utf32", '"length_bytes" is missing'),
        ({"name": "fixed_length_utf32", "configuration": {"length_bytes": 6}}, "multiple of 4"),
        ({"name": "fixed_length_utf32", "configuration": {"length_bytes": -4}}, "from 0 to"),
        ({"name": "fixed_length_utf32", "configuration": {"length_bytes": 2**31 - 4}}, "more than"),
        ({"name": "null_terminated_bytes", "configuration": {"length_bytes": True}}, "expected an integer"),
        ("numpy.datetime64", '"unit" is missing'),
        ({"name": "numpy.datetime64", "configuration": {"unit": "s"}}, '"scale_factor" is missing'),
        (
            {"name": "numpy.datetime64", "configuration": {"unit": "x", "scale_factor": 1}},
            "/unit: expected one",
        ),
        ({"name": "numpy.datetime64", "configuration": {"unit": "s", "scale_factor": 0}}, "from 1 to"),
        ({"name": "numpy.datetime64", "configuration": {"unit": "s", "scale_factor": 2**31}}, "from 1 to"),
        (struct(), "at least one field"),
        (struct(("", "int8")), "field name that is not empty"),
        (struct(("a", "int8"), ("a", "int8")), "unique"),
        (struct(("a", "string")), "variable length"),
        (struct(("a", "nonsense")), "/configuration/fields/0/data_type"),
        (struct(("a", "r134217728"), ("b", "r134217728")), "records of more than"),
        ({"name": "struct", "configuration": {"fields": [{"name": "a"}]}}, 'no "data_type"'),
        ({"name": "struct", "configuration": {"fields": [["a"]]}}, "a list of name and data type"),
        ({"name": "struct", "configuration": {"fields": 1}}, "a list of fields"),
        ({"name": "struct", "configuration": {}}, "a list of fields"),
    ],
    ids=str,
)
def test_the_error_for_an_invalid_data_type_names_the_location(metadata: Any, words: str) -> None:
    with pytest.raises(MetadataError) as caught:
        v3(metadata)
    assert str(caught.value).startswith(HERE)
    assert words in str(caught.value)


def test_both_names_of_structs_are_read() -> None:
    time = {"name": "numpy.datetime64", "configuration": {"unit": "s", "scale_factor": 1}}
    point = struct(("x", "float32"), ("y", "float32"))
    metadata = struct(("point", point), ("value", "float64"), ("when", time))
    data_type = v3(metadata)
    inner = [("x", "<f4"), ("y", "<f4")]
    assert data_type.numpy == np.dtype([("point", inner), ("value", "<f8"), ("when", "<M8[s]")])
    assert data_type_to_v3(data_type) == metadata
    older = {
        "name": "structured",
        "configuration": {
            "fields": [
                [
                    "point",
                    {"name": "structured", "configuration": {"fields": [["x", "float32"], ["y", "float32"]]}},
                ],
                ["value", "float64"],
                ["when", time],
            ]
        },
    }
    assert v3(older) == data_type


def test_the_fields_of_a_struct_are_packed_without_padding() -> None:
    data_type = v3(struct(("id", "int32"), ("flags", "uint8"), ("value", "float64")))
    assert data_type.numpy.itemsize == 13
    offsets = [data_type.numpy.fields[name][1] for name in ("id", "flags", "value")]  # type: ignore[index]
    assert offsets == [0, 4, 5]


# -- Zarr v3: fill values ------------------------------------------------------------------------------

GOOD_FILLS: list[tuple[Any, Any, Any]] = [
    ("bool", True, np.True_),
    ("int8", -128, np.int8(-128)),
    ("uint64", 2**64 - 1, np.uint64(2**64 - 1)),
    ("int64", -(2**63), np.int64(-(2**63))),
    ("float16", "0x7e00", np.float16("nan")),
    ("float32", "Infinity", np.float32("inf")),
    ("float64", "-Infinity", np.float64("-inf")),
    ("float64", 3, np.float64(3)),
    ("float64", 2**60, np.float64(2**60)),
    ("float64", -0.0, np.float64(-0.0)),
    ("float32", 0.1, np.float32(0.1)),
    ("float32", 1e300, np.float32("inf")),
    ("float64", 10**400, np.float64("inf")),
    ("complex64", [1, -2.5], np.complex64(1 - 2.5j)),
    ("complex128", ["-Infinity", 0], np.complex128(complex(-np.inf, 0))),
    ("r24", [0, 128, 255], np.void(b"\x00\x80\xff")),
    ("r16", "AP8=", np.void(b"\x00\xff")),
    ("string", "a\u0000µ", "a\u0000µ"),
    ("bytes", [0, 255], b"\x00\xff"),
    ("bytes", "AP8=", b"\x00\xff"),
    ("bytes", "", b""),
    ("int4", -8, ml_dtypes.int4(-8)),
    ("uint2", 3, ml_dtypes.uint2(3)),
    ("float4_e2m1fn", 6, ml_dtypes.float4_e2m1fn(6)),
    ({"name": "fixed_length_utf32", "configuration": {"length_bytes": 8}}, "ab", np.str_("ab")),
    ({"name": "null_terminated_bytes", "configuration": {"length_bytes": 3}}, "YWI=", np.bytes_(b"ab")),
    (CONFIGURED[4][0], 5, np.datetime64(50, "us")),
    (CONFIGURED[4][0], "NaT", np.datetime64("NaT", "us")),
    (CONFIGURED[6][0], -(2**63), np.timedelta64("NaT", "D")),
]


@pytest.mark.parametrize(("metadata", "value", "expected"), GOOD_FILLS, ids=str)
def test_a_fill_value_round_trips(metadata: Any, value: Any, expected: Any) -> None:
    data_type = v3(metadata)
    fill = fill_from_v3(data_type, value, FILL)
    if data_type.numpy.kind in "mM":
        assert to_bytes(fill) == to_bytes(np.asarray(expected).astype(data_type.numpy))
    else:
        assert type(fill) is type(expected)
        assert fill == expected if isinstance(fill, str | bytes) else to_bytes(fill) == to_bytes(expected)
    again = json.loads(json.dumps(fill_to_v3(data_type, fill)))
    assert to_bytes(fill_from_v3(data_type, again, FILL)) == to_bytes(fill)


BAD_FILLS: list[tuple[Any, Any, str]] = [
    ("bool", 0, "expected true or false"),
    ("bool", "true", "expected true or false"),
    ("int8", 128, "from -128 to 127"),
    ("int8", -129, "from -128 to 127"),
    ("uint8", -1, "from 0 to 255"),
    ("uint64", 2**64, "from 0 to"),
    ("int8", 1.0, "expected an integer"),
    ("int8", True, "expected an integer"),
    ("int8", "1", "expected an integer"),
    ("int8", None, "found null"),
    ("int8", 10**500, "an integer of"),
    ("int4", 8, "from -8 to 7"),
    ("float32", True, "for the data type float32"),
    ("float32", "nan", "expected a number"),
    ("float32", "inf", "expected a number"),
    ("float32", "0x7fc0", "8 digits"),
    ("float32", "0x7fc0000000", "8 digits"),
    ("float32", "0x7fc0000g", "8 digits"),
    ("float32", "0x-0000001", "8 digits"),
    ("float32", None, "found null"),
    ("float32", [], "found []"),
    ("float8_e4m3fn", 1e9, "that float8_e4m3fn can hold"),
    ("float8_e4m3fn", "Infinity", "has no infinity"),
    ("float8_e8m0fnu", -1, "that float8_e8m0fnu can hold"),
    ("float4_e2m1fn", "NaN", "has no NaN"),
    ("float4_e2m1fn", "0x10", "2 digits"),
    ("float6_e2m3fn", "0xff", "2 digits"),
    ("complex64", 1, "a list of two numbers"),
    ("complex64", [1], "a list of two numbers"),
    ("complex64", [1, "x"], "/fill_value/1"),
    ("r16", [1], "expected 2 bytes"),
    ("r16", [1, 256], "from 0 to 255"),
    ("r16", [1, 2.0], "expected an integer"),
    ("r16", "!!", "expected base64"),
    ("r16", 0, "a list of integers"),
    ("string", 0, "expected a string"),
    ("bytes", 0, "a list of integers"),
    ({"name": "fixed_length_utf32", "configuration": {"length_bytes": 4}}, "ab", "at most 1 characters"),
    ({"name": "null_terminated_bytes", "configuration": {"length_bytes": 1}}, "YWI=", "at most 1 bytes"),
    (CONFIGURED[4][0], "2020-01-01", '"NaT"'),
    (CONFIGURED[4][0], 2**63, "from -9223372036854775808"),
    (CONFIGURED[4][0], 1.5, '"NaT"'),
    (struct(("a", "int8")), {}, 'field "a" is missing'),
    (struct(("a", "int8")), {"a": 1, "b": 2}, "/b: unknown key"),
    (struct(("a", "int8")), {"a": 1000}, "/fill_value/a"),
    (struct(("a", "int8")), 0, "an object with the fill value of each field"),
    (struct(("a", "int8")), "AAA=", "found 2 bytes"),
]


@pytest.mark.parametrize(("metadata", "value", "words"), BAD_FILLS, ids=str)
def test_the_error_for_an_invalid_fill_value_names_location_and_expected_value(
    metadata: Any, value: Any, words: str
) -> None:
    with pytest.raises(MetadataError) as caught:
        fill_from_v3(v3(metadata), value, FILL)
    assert str(caught.value).startswith(FILL)
    assert words in str(caught.value)


@pytest.mark.parametrize("name", ["float16", "float32", "float64", "bfloat16", *SMALL[5:]])
def test_every_bit_pattern_of_a_float_round_trips(name: str) -> None:
    data_type = v3(name)
    size = data_type.numpy.itemsize
    width = {"float4_e2m1fn": 4, "float6_e2m3fn": 6, "float6_e3m2fn": 6}.get(name, size * 8)
    generator = np.random.default_rng(3)
    patterns = (
        range(2**width) if width <= 8 else map(int, generator.integers(0, 2**width, 300, np.uint64, False))
    )
    special = (
        [0x7F800001, 0xFFC12345] if name == "float32" else [0x7FF0000000000001] if name == "float64" else []
    )
    for pattern in [*patterns, *special]:
        text = f"0x{pattern:0{size * 2}x}"
        fill = fill_from_v3(data_type, text, FILL)
        assert to_bytes(fill) == pattern.to_bytes(size, "little")
        written = json.loads(json.dumps(fill_to_v3(data_type, fill)))
        assert to_bytes(fill_from_v3(data_type, written, FILL)) == to_bytes(fill)


@pytest.mark.parametrize("name", ["float16", "float32", "float64", "bfloat16"])
def test_nan_is_the_quiet_nan_of_the_specification(name: str) -> None:
    data_type = v3(name)
    expected = {
        "float16": "0x7e00",
        "float32": "0x7fc00000",
        "float64": "0x7ff8000000000000",
        "bfloat16": "0x7fc0",
    }
    assert to_bytes(fill_from_v3(data_type, "NaN", FILL)) == to_bytes(
        fill_from_v3(data_type, expected[name], FILL)
    )
    assert fill_to_v3(data_type, fill_from_v3(data_type, expected[name], FILL)) == "NaN"


@pytest.mark.parametrize("name", [name for name in SMALL[4:] if not name.startswith(("float4", "float6"))])
def test_nan_of_small_floats_is_that_of_ml_dtypes(name: str) -> None:
    data_type = v3(name)
    assert to_bytes(fill_from_v3(data_type, "NaN", FILL)) == to_bytes(
        np.array(np.nan).astype(data_type.numpy)
    )


def test_a_signalling_nan_in_a_struct_or_complex_number_round_trips() -> None:
    data_type = v3(struct(("a", "float32"), ("b", "complex64")))
    value = {"a": "0x7f800001", "b": ["0xff812345", "NaN"]}
    assert fill_to_v3(data_type, fill_from_v3(data_type, value, FILL)) == value


def test_the_fill_value_of_a_struct_is_base64_text_or_an_object() -> None:
    data_type = v3(struct(("p", struct(("x", "int16"), ("y", "uint8"))), ("z", "r16")))
    fill = fill_from_v3(data_type, {"p": {"x": -2, "y": 7}, "z": [1, 2]}, FILL)
    assert to_bytes(fill) == b"\xfe\xff\x07\x01\x02"
    assert to_bytes(fill_from_v3(data_type, "/v8HAQI=", FILL)) == to_bytes(fill)
    assert fill_to_v3(data_type, fill) == {"p": {"x": -2, "y": 7}, "z": [1, 2]}


# -- Zarr v2 -------------------------------------------------------------------------------------------

V2_TYPES = [
    *("|b1", "|i1", "|u1", "<i2", ">i2", "<u2", ">u4", "<i8", ">u8"),
    *("<f2", ">f2", "<f4", ">f8", "<c8", ">c16", "<f16", ">c32"),
    *("<M8[ns]", ">M8[25s]", "<m8[D]", "<m8[us]", "<M8", "|S1", "|S12", "<U5", ">U3", "|V1", "|V9", "|O"),
]
V2_STRUCTS: list[Any] = [
    [["r", "|u1"], ["g", "|u1"], ["b", "|u1"]],
    [["x", "<f4"], ["y", "<f4"], ["z", "<f4", [2, 2]]],
    [["outer", [["a", ">i2"], ["b", "|S3", [2]]]], ["t", "<M8[s]"]],
    [["nested", [["a", "<f4"]], [3, 2]], ["long", "<f16"], ["raw", "|V2"]],
]


@pytest.mark.parametrize("text", V2_TYPES)
def test_v2_data_types_round_trip(text: str) -> None:
    data_type = v2(text)
    assert data_type.numpy == np.dtype(text)
    assert data_type.numpy.str == np.dtype(text).str
    assert data_type_to_v2(data_type) == text


@pytest.mark.parametrize("fields", V2_STRUCTS, ids=str)
def test_v2_structs_and_their_fill_values_round_trip(fields: Any) -> None:
    data_type = v2(fields)
    assert data_type_to_v2(data_type) == fields
    assert data_type_from_numpy(data_type.numpy) == data_type
    generator = np.random.default_rng(1)
    raw = generator.bytes(data_type.numpy.itemsize)
    fill = np.frombuffer(raw, data_type.numpy)[0]
    assert to_bytes(fill_from_v2(data_type, fill_to_v2(data_type, fill), FILL)) == raw


@pytest.mark.parametrize("name", ["bfloat16", "float8_e4m3fn", "int4"])
def test_v2_data_types_written_by_tensorstore_round_trip(name: str) -> None:
    assert v2(name) == v3(name)
    assert data_type_to_v2(v2(name)) == name


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("i4", "byte order"),
        ("|i4", "byte order"),
        ("=i4", "byte order"),
        ("U3", "byte order"),
        ("<i3", "a NumPy type string"),
        ("<b2", "a NumPy type string"),
        ("<u", "a NumPy type string"),
        ("int32", "a NumPy type string"),
        ("<x4", "a NumPy type string"),
        ("<i4[s]", "a NumPy type string"),
        ("<M8[parsec]", "no dtype"),
        ("|S99999999999", "a NumPy type string"),
        ("<U2000000000", "a NumPy type string"),
        ("i4,i4", "a NumPy type string"),
        ("", "a NumPy type string"),
        (4, "found 4"),
        (None, "found null"),
        ({"name": "x"}, "a NumPy type string"),
        ([], "at least one field"),
        ([["a"]], "/dtype/0"),
        ([["a", "<i4", [-1]]], "from 0 to 2^63-1"),
        ([["a", "<i4", [10**9, 10**9]]], "/dtype"),
        ([["a", "<i4", [10**7]]], "records of more than"),
        ([[1, "<i4"]], "/dtype/0/0"),
        ([["a", "|O"]], "variable length"),
        ([["a", "<i4"], ["a", "<i4"]], "unique"),
    ],
    ids=str,
)
def test_the_error_for_an_invalid_v2_data_type_names_the_location(value: Any, words: str) -> None:
    with pytest.raises(MetadataError) as caught:
        v2(value)
    assert str(caught.value).startswith("image.zarr/.zarray: /dtype")
    assert words in str(caught.value)


V2_FILLS: list[tuple[Any, Any, Any]] = [
    ("<f4", "NaN", np.float32("nan")),
    ("<f4", float("nan"), np.float32("nan")),
    (">f8", "-Infinity", np.float64("-inf")),
    ("<f4", float("inf"), np.float32("inf")),
    ("<f16", "Infinity", np.longdouble("inf")),
    ("<f16", 1.5, np.longdouble(1.5)),
    ("<c32", [1, "NaN"], np.clongdouble(complex(1, np.nan))),
    ("<c8", [0.0, 1], np.complex64(1j)),
    ("<c8", 0, np.complex64(0)),
    ("|b1", 0, np.False_),
    ("|b1", 1, np.True_),
    ("<i4", 3.0, np.int32(3)),
    ("<i4", False, np.int32(0)),
    ("|S3", 0, np.bytes_(b"")),
    ("|S3", "AAEC", np.bytes_(b"\x00\x01\x02")),
    ("<U3", 0, np.str_("")),
    (">U3", "ab", np.str_("ab")),
    ("|V2", "AP8=", np.void(b"\x00\xff")),
    ("|V2", 0, np.void(b"\x00\x00")),
    ("<M8[s]", "NaT", np.datetime64("NaT", "s")),
    (">M8[s]", 12, np.datetime64(12, "s")),
    ("|O", {"any": ["json"]}, {"any": ["json"]}),
]


@pytest.mark.parametrize(("dtype", "value", "expected"), V2_FILLS, ids=str)
def test_a_v2_fill_value_round_trips(dtype: str, value: Any, expected: Any) -> None:
    data_type = v2(dtype)
    fill = fill_from_v2(data_type, value, FILL)
    assert type(fill) is type(expected)
    assert str(fill) == str(expected)
    again = fill_from_v2(data_type, json.loads(json.dumps(fill_to_v2(data_type, fill))), FILL)
    assert str(again) == str(fill)


def test_the_v2_fill_value_of_a_record_is_zero_or_a_list() -> None:
    data_type = v2([["a", ">i2"], ["b", "<f4", [2]]])
    zero = bytes(10)
    assert to_bytes(fill_from_v2(data_type, 0, FILL)) == zero
    assert to_bytes(fill_from_v2(data_type, [258, 0], FILL)) == b"\x01\x02" + bytes(8)
    with pytest.raises(MetadataError, match="2 values, one for each field"):
        fill_from_v2(data_type, [1], FILL)


@pytest.mark.parametrize("dtype", V2_TYPES)
def test_an_undefined_v2_fill_value_round_trips(dtype: str) -> None:
    assert fill_from_v2(v2(dtype), None, FILL) is None
    assert fill_to_v2(v2(dtype), None) is None


@pytest.mark.parametrize(
    ("dtype", "value"),
    [
        ("<i4", 1.5),
        ("<i4", float("nan")),
        ("<i4", 2**31),
        ("<i4", "3.5"),
        ("|b1", 2),
        ("|b1", "true"),
        ("<f4", "x"),
        ("<f4", [1]),
        ("<f16", "x"),
        ("<c32", [1]),
        ("<c8", [1, 2, 3]),
        ("|S3", "a"),
        ("|S3", 5),
        ("<U1", "ab"),
        ("|V2", "AAAA"),
        ("<M8[s]", "yesterday"),
    ],
    ids=str,
)
def test_the_error_for_an_invalid_v2_fill_value_names_the_location(dtype: str, value: Any) -> None:
    with pytest.raises(MetadataError) as caught:
        fill_from_v2(v2(dtype), value, FILL)
    assert str(caught.value).startswith(FILL)


# -- from NumPy ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given_type", "name"),
    [
        (str, "string"),
        ("string", "string"),
        ("str", "string"),
        (np.dtypes.StringDType() if hasattr(np.dtypes, "StringDType") else str, "string"),
        (bytes, "bytes"),
        ("bytes", "bytes"),
        (float, "float64"),
        (bool, "bool"),
        ("uint16", "uint16"),
        (np.uint16, "uint16"),
        (">i4", "int32"),
        ("U7", "fixed_length_utf32"),
        ("S7", "null_terminated_bytes"),
        ("V3", "r24"),
        ("r24", "r24"),
        ("M8[ms]", "numpy.datetime64"),
        (object, "object"),
        ([("a", "i4"), ("b", "f8", (2,))], "struct"),
        (
            {"name": "numpy.timedelta64", "configuration": {"unit": "s", "scale_factor": 2}},
            "numpy.timedelta64",
        ),
        (ml_dtypes.bfloat16, "bfloat16"),
    ],
    ids=str,
)
def test_data_type_from_numpy_accepts_dtypes_and_names(given_type: Any, name: str) -> None:
    data_type = data_type_from_numpy(given_type)
    assert data_type.name == name
    assert data_type_from_numpy(data_type) is data_type


def test_padding_of_an_aligned_dtype_is_dropped() -> None:
    aligned = np.dtype([("a", "u1"), ("b", "f8")], align=True)
    assert data_type_from_numpy(aligned).numpy == np.dtype([("a", "u1"), ("b", "f8")])


@pytest.mark.parametrize(
    "given_type", ["nonsense", 12, (np.int32, (2, 2)), object()], ids=["name", "int", "subarray", "object"]
)
def test_data_type_from_numpy_rejects_other_values(given_type: Any) -> None:
    with pytest.raises(UnsupportedError):
        data_type_from_numpy(given_type)


@pytest.mark.parametrize("dtype", ["|O", "<f16", V2_STRUCTS[1]], ids=str)
def test_v2_data_types_without_a_v3_name_are_unsupported_in_v3(dtype: Any) -> None:
    with pytest.raises(UnsupportedError, match="v3"):
        data_type_to_v3(v2(dtype))


@pytest.mark.parametrize("text", [t for t in V2_TYPES if t not in ("|O", "<f16", ">c32")])
def test_other_v2_data_types_have_a_v3_name(text: str) -> None:
    data_type = v2(text)
    assert v3(data_type_to_v3(data_type)).numpy == data_type.numpy.newbyteorder("<")


@pytest.mark.parametrize("name", [*PLAIN, *SMALL, *[entry for entry, _ in CONFIGURED]], ids=str)
def test_the_default_fill_value_round_trips(name: Any) -> None:
    data_type = v3(name)
    fill = default_fill(data_type)
    assert to_bytes(fill_from_v3(data_type, fill_to_v3(data_type, fill), FILL)) == to_bytes(fill)


# -- properties ----------------------------------------------------------------------------------------

SIMPLE = st.sampled_from([*PLAIN, *SMALL, "r8", "r40", *[e for e, dtype in CONFIGURED if dtype != "O"]])
NESTED = st.recursive(
    SIMPLE,
    lambda inner: st.lists(inner, min_size=1, max_size=4).map(
        lambda kinds: struct(*((f"field {i}", kind) for i, kind in enumerate(kinds)))
    ),
    max_leaves=6,
)


@given(NESTED)
def test_any_record_and_its_default_fill_value_round_trip_in_v3(metadata: Any) -> None:
    data_type = v3(metadata)
    assert v3(json.loads(json.dumps(data_type_to_v3(data_type)))) == data_type
    fill = default_fill(data_type)
    written = json.loads(json.dumps(fill_to_v3(data_type, fill)))
    assert to_bytes(fill_from_v3(data_type, written, FILL)) == to_bytes(fill)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


def outcome(function: Callable[..., Any], *arguments: Any) -> Any:
    """Return the result of the function, or the MetadataError that it raises."""
    try:
        return function(*arguments)
    except MetadataError as error:
        return error


@given(SIMPLE | NESTED, JSON)
def test_any_json_is_a_fill_value_or_a_metadata_error(metadata: Any, value: Any) -> None:
    data_type = v3(metadata)
    fill = outcome(fill_from_v3, data_type, value, FILL)
    if isinstance(fill, MetadataError):
        assert str(fill).startswith(FILL)
    else:
        assert np.asarray(fill).dtype.itemsize <= max(1, data_type.numpy.itemsize)


@given(st.sampled_from([*V2_TYPES, *V2_STRUCTS]), JSON)
def test_any_json_is_a_v2_fill_value_or_a_metadata_error(dtype: Any, value: Any) -> None:
    data_type = v2(dtype)
    fill = outcome(fill_from_v2, data_type, value, FILL)
    if isinstance(fill, MetadataError):
        assert str(fill).startswith(FILL)
    else:
        assert (fill is None) == (value is None) or data_type.name == "object"


@given(JSON)
def test_any_json_is_a_data_type_or_a_metadata_error(value: Any) -> None:
    for parse in (v2, v3):
        data_type = outcome(parse, value)
        assert isinstance(data_type, DataType) or str(data_type).startswith("image.zarr/")


# -- data types of other packages ----------------------------------------------------------------------


class UpperCaseFamily(StringFamily):
    def from_configuration(self, name: str, configuration: Any, where: str) -> DataType:
        return DataType(name, np.dtype(object))

    def fill_from_json(self, data_type: DataType, value: Any, where: str) -> Any:
        return str(value).upper()


UPPER_CASE = UpperCaseFamily()


def test_another_package_can_register_a_data_type(monkeypatch: pytest.MonkeyPatch) -> None:
    entry = EntryPoint("test.upper_case", f"{__name__}:UPPER_CASE", registry.ENTRY_POINTS)
    monkeypatch.setattr(plugins, "_entry_points", lambda group: EntryPoints([entry]).select(group=group))
    monkeypatch.setattr(registry, "_FAMILIES", dict(registry._FAMILIES))
    data_type = v3("test.upper_case")
    assert data_type_to_v3(data_type) == "test.upper_case"
    assert fill_from_v3(data_type, "abc", FILL) == "ABC"
    with pytest.raises(UnsupportedError):
        v3("test.lower_case")


def test_the_configuration_of_a_record_type_contains_the_shapes_of_fields() -> None:
    data_type = data_type_from_numpy(np.dtype([("x", "<i4"), ("y", "<f8", (2, 3))]))
    assert data_type.configuration["fields"] == [
        {"name": "x", "data_type": "int32"},
        {"name": "y", "data_type": "float64", "shape": [2, 3]},
    ]


def test_fill_values_of_records_with_many_fields_take_linear_time() -> None:
    """Each key of the fill value is looked up in the names of the fields, not searched in a list of them."""

    class CountedName(str):
        comparisons = 0
        __slots__ = ()
        __hash__ = str.__hash__

        def __eq__(self, other: object) -> bool:
            CountedName.comparisons += 1
            return str.__eq__(self, other)

    count = 300
    configuration = {"fields": [{"name": f"f{i}", "data_type": "int16"} for i in range(count)]}
    data_type = data_type_from_v3({"name": "struct", "configuration": configuration}, "here")
    value = {CountedName(f"f{i}"): i for i in range(count)}
    CountedName.comparisons = 0
    assert fill_from_v3(data_type, value, "here")[-1] == count - 1
    assert CountedName.comparisons < 10 * count
