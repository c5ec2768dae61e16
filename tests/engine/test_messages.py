"""Invalid calls of the public functions raise a ZarrError that names the invalid argument."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import zarrfs
from zarrfs.errors import (
    KeyNameError,
    MetadataError,
    NodeNotFoundError,
    NodeTypeError,
    OptionError,
    SelectionError,
    UnsupportedError,
    ZarrError,
)

NEW: list[tuple[dict[str, Any], type[ZarrError], str]] = [
    ({"chunk": 2}, OptionError, r"create_array\(\) has no option 'chunk'; did you mean 'chunks'\?"),
    ({"compresors": None}, OptionError, "did you mean 'compressors'"),
    ({"dimension_name": ["x"]}, OptionError, "did you mean 'dimension_names'"),
    ({"qqqq": 1}, OptionError, "has no option 'qqqq'; the options are access, attributes"),
    (
        {"chunks": 2.0},
        MetadataError,
        r"chunks must be an integer, an integer for each dimension.*found 2\.0 \(float\)",
    ),
    ({"chunks": object()}, MetadataError, "chunks must be an integer"),
    ({"chunks": "big"}, MetadataError, "chunks must be an integer.*found 'big'"),
    ({"chunks": (2.5,)}, MetadataError, "chunks must be positive integers"),
    ({"chunks": {}}, MetadataError, "chunks"),
    ({"shards": 2.0}, MetadataError, r"shards must be a multiple of the chunks .*found 2\.0 \(float\)"),
    ({"shards": "x"}, MetadataError, "shards must be a multiple"),
    ({"shape": 4.0}, MetadataError, r"shape must be integers of at least 0.*found 4\.0 \(float\)"),
    ({"shape": "4"}, MetadataError, "shape must be integers.*found '4'"),
    ({"shape": {}}, MetadataError, "shape must be integers"),
    ({"shape": object()}, MetadataError, "shape must be integers"),
    ({"order": "X"}, MetadataError, "order must be 'C' or 'F', found 'X'"),
    ({"dimension_names": "x"}, MetadataError, "dimension_names must be a list"),
    ({"dimension_names": 5}, MetadataError, "dimension_names must be a list"),
    ({"dimension_names": [5]}, MetadataError, "dimension_names must be strings or None, found 5"),
    ({"dimension_units": [5]}, MetadataError, "dimension_units must be strings or None"),
    ({"dimension_separator": "-"}, MetadataError, "dimension_separator must be '.' or '/', found '-'"),
    ({"filters": 5}, MetadataError, "is not a codec"),
    ({"codecs": 5}, MetadataError, "codecs: expected a list of codecs, found 5"),
    ({"codecs": "no-such-codec"}, UnsupportedError, "unknown codec 'no-such-codec'"),
    (
        {"compressors": object()},
        MetadataError,
        "is not a codec: expected a name, metadata, or a codec object",
    ),
    ({"access": 5}, OptionError, "access must be an Access, found 5"),
    ({"cache_size": "x"}, OptionError, "cache_size must be a number of bytes"),
    ({"cache_size": -1}, OptionError, "cache_size must be at least 0, found -1"),
    ({"storage_options": 5}, OptionError, "storage_options must be a mapping"),
    ({"synchronizer": 5}, OptionError, "synchronizer must be a ProcessSynchronizer"),
    ({"path": 5}, KeyNameError, r"5 \(int\) is not a valid path: expected a string"),
]


def identifier(options: Any) -> str:
    """Return a test identifier without addresses of objects, which differ between processes."""
    return re.sub(r" at 0x[0-9a-f]+", "", str(options))


@pytest.mark.parametrize(
    ("options", "kind", "message"), NEW, ids=[identifier(options) for options, _, _ in NEW]
)
def test_the_error_for_an_invalid_creation_option_names_it(
    options: dict[str, Any], kind: type[ZarrError], message: str
) -> None:
    store: dict[str, bytes] = {}
    for data in (False, True):
        given = {"data": np.zeros(4)} if data and "shape" not in options else {"shape": 4}
        with pytest.raises(kind, match=message):
            zarrfs.create_array(store, **{**given, **options})
    assert not store


def test_the_error_for_invalid_codecs_of_format_2_names_them() -> None:
    for options, message in (
        ({"compressors": object()}, "is not a codec"),
        ({"compressors": {"name": "gzip", "configuration": 5}}, "is not codec metadata"),
        ({"compressors": {"level": 5}}, "is not codec metadata"),
        ({"filters": 5}, "is not a codec"),
    ):
        with pytest.raises(MetadataError, match=message):
            zarrfs.create_array({}, shape=4, zarr_format=2, **options)
    single = zarrfs.create_array(
        {}, shape=4, dtype="i4", zarr_format=2, filters={"id": "delta", "dtype": "<i4"}
    )
    assert single.metadata["filters"] == [{"id": "delta", "dtype": "<i4"}]


def test_the_error_for_an_invalid_option_of_open_names_it() -> None:
    store: dict[str, bytes] = {}
    for function in (zarrfs.open, zarrfs.open_array):
        with pytest.raises(
            OptionError, match=rf"{function.__name__}\(\) has no option 'storage_option'; did you mean"
        ):
            function(store, storage_option={})  # type: ignore[call-arg]
    with pytest.raises(OptionError, match="did you mean 'mode'"):
        zarrfs.open("nowhere", mod="r")  # type: ignore[call-arg]
    with pytest.raises(OptionError, match=r"open_group.*'shape'"):
        zarrfs.open_group(store, mode="w", shape=3)  # type: ignore[call-arg]
    with pytest.raises(OptionError, match="did you mean 'shape'"):
        zarrfs.open_array(store, mode="w", shap=3)  # type: ignore[call-arg]
    with pytest.raises(NodeNotFoundError):
        zarrfs.open_array(store, mode="a")
    with pytest.raises(OptionError, match="needs a shape"):
        zarrfs.open_array(store, mode="w")
    assert not store


def test_the_error_for_invalid_access_and_constraint_values_names_them() -> None:
    with pytest.raises(ValueError, match="concurrency must be an integer of at least 1"):
        zarrfs.Access(concurrency="x")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"max_document must be an integer of at least 1.*'64M'"):
        zarrfs.Access(max_document="64M")  # type: ignore[arg-type]
    for options, message in (
        ({"shape": 5}, "chunk shape: expected a tuple"),
        ({"shape": ("x",)}, "expected integers of at least -1"),
        ({"elements": "x"}, "elements must be an integer"),
        ({"aspect_ratio": ("x",)}, "expected numbers of at least 0"),
    ):
        with pytest.raises(MetadataError, match=message):
            zarrfs.ChunkConstraint(**options)  # type: ignore[arg-type]


DATA = np.arange(24).reshape(4, 6)


def test_the_errors_of_array_methods_name_the_invalid_argument() -> None:
    array = zarrfs.create_array({}, data=DATA, chunks=(2, 3))
    records = zarrfs.create_array({}, shape=3, dtype=[("n", "S3"), ("k", "u1")])
    calls: list[tuple[Any, str]] = [
        (lambda: array.append(DATA, axis=2), "axis 2 is out of range for an array of 2 dimensions"),
        (lambda: array.append(DATA, axis=-3), "expected an integer from -2 to 1"),
        (lambda: array.append(DATA, axis="x"), "axis 'x'"),
        (
            lambda: array.append(DATA[0]),
            r"data of shape \(6,\) cannot be appended to \(4, 6\) in dimension 0",
        ),
        (lambda: zarrfs.create_array({}, shape=()).append(5), "nothing can be appended"),
        (lambda: array.vindex[[0, 1], :], "dimension 1: a coordinate selection takes integers.*use .oindex"),
        (lambda: array.vindex[:], "use .oindex"),
        (lambda: array.vindex[...], "use .oindex"),
        (lambda: array.vindex[[0, 1]], "needs an index for each of the 2 dimensions, found 1"),
        (lambda: array.blocks[5], "block 5 is out of bounds for dimension 0, which has 2 blocks"),
        (lambda: array.blocks[-3], "block -3 is out of bounds"),
        (lambda: array.blocks[[0]], "blocks are selected by integers and slices"),
        (lambda: array.get_basic_selection([0]), "use .oindex or .vindex"),
        (
            lambda: records.get_basic_selection(0, fields=5),
            "fields must be a name or a list of names, found 5",
        ),
        (lambda: records.field(5), "fields must be a name"),  # type: ignore[arg-type]
        (lambda: records.field([]), "fields must be a name"),
        (lambda: array.astype("f4").get_selection("x", 0), "kind must be one of basic"),  # type: ignore[arg-type]
        (
            lambda: array.resize(1),
            r"\(1,\) is not a valid shape for an array of 2 dimensions; expected 2 integers",
        ),
        (lambda: array.read_bytes("x", 2), "offset must be an integer"),  # type: ignore[arg-type]
        (lambda: array.read_bytes(0, 1.5), "size must be an integer"),  # type: ignore[arg-type]
        (lambda: array.read_bytes_into(0, b"abc"), "buffer must be writable, found bytes"),
        (lambda: array.read_bytes_into(0, "abc"), "buffer must be writable contiguous memory, found str"),
    ]
    for call, message in calls:
        with pytest.raises(SelectionError, match=message):
            call()
    with pytest.raises(MetadataError, match="names of attributes must be strings, found 5"):
        array.attrs[5] = 1  # type: ignore[index]
    np.testing.assert_array_equal(array, DATA)


@pytest.mark.parametrize("name", ["zeros", "ones", "zeros_like", "ones_like"])
def test_functions_that_determine_the_fill_value_refuse_another(name: str) -> None:
    group = zarrfs.create_group({})
    data = np.arange(3)
    first: Any = data if name.endswith("_like") else 3
    for create in (
        lambda: getattr(zarrfs, name)(first, fill_value=5),
        lambda: getattr(group, name)("a", first, fill_value=5),
    ):
        with pytest.raises(OptionError, match=rf"^{name}\(\) has no option 'fill_value'.*'full'"):
            create()
    assert list(group) == []


def test_append_accepts_a_negative_axis() -> None:
    array = zarrfs.create_array({}, data=DATA, chunks=(2, 3))
    assert array.append(DATA, axis=-1) == (4, 12)
    assert array.append(np.hstack([DATA, DATA]), axis=-2) == (8, 12)
    np.testing.assert_array_equal(array, np.block([[DATA, DATA], [DATA, DATA]]))


def test_invalid_names_of_members_are_refused() -> None:
    group = zarrfs.create_group({})
    for call in (
        lambda: group[5],  # type: ignore[index]
        lambda: group.create_array(5, shape=3),  # type: ignore[arg-type]
        lambda: group.create_group(None),  # type: ignore[arg-type]
        lambda: group.__setitem__(5, [1]),  # type: ignore[index]
    ):
        with pytest.raises(KeyNameError, match="is not a valid path: expected a string"):
            call()
    with pytest.raises(OptionError, match="did you mean 'shape'"):
        group.create_array("a", shap=3)  # type: ignore[call-arg]
    assert list(group) == []
    group["a"] = [1]
    with pytest.raises(NodeTypeError, match="an array"):
        group.create_group("a/b")


def test_the_error_for_pickled_objects_names_the_option_that_allows_them() -> None:
    store: dict[str, bytes] = {}
    group = zarrfs.create_group(store, zarr_format=2)
    group.create_array("a", shape=2, dtype=str)
    store["a/.zarray"] = store["a/.zarray"].replace(b'"vlen-utf8"', b'"pickle"')
    with pytest.raises(UnsupportedError, match=r"use zarrfs\.open\(\.\.\., allow_pickle=True\) in Python"):
        group["a"]


def test_the_zero_of_strings_is_the_empty_string() -> None:
    for dtype, empty in ((str, ""), (bytes, b"")):
        array = zarrfs.zeros(2, dtype=dtype)
        assert array.fill_value == empty
        assert zarrfs.open_array(array.store)[...].tolist() == [empty, empty]
