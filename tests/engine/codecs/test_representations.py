"""Decoded elements have a canonical representation, and Python objects have the type of the data type."""

from __future__ import annotations

import json
import struct
from typing import Any

import numpy as np
import pytest

import zarrfs
from tests.documents import LITTLE, sharding
from zarrfs.engine.codecs.base import CodecError
from zarrfs.engine.codecs.sharding.fetching import InnerChunk, check_bounds
from zarrfs.errors import ChunkDecodeError, MetadataError

SMALL = [
    ("int4", b"\xf8\x07\x98", b"\x08\x07\x08", b"\x78\x08"),
    ("int2", b"\xfe\x01\x0e", b"\x02\x01\x02", b"\x26"),
    ("uint4", b"\xff\x17\x30", b"\x0f\x07\x00", b"\x7f\x00"),
    ("uint2", b"\xff\x05\x10", b"\x03\x01\x00", b"\x07"),
    ("float4_e2m1fn", b"\xff\x17\x30", b"\x0f\x07\x00", b"\x7f\x00"),
    ("float6_e2m3fn", b"\xff\x41\x80", b"\x3f\x01\x00", b"\x7f\x00\x00"),
]


@pytest.mark.parametrize(("name", "stored", "expected", "packed"), SMALL, ids=[case[0] for case in SMALL])
@pytest.mark.parametrize("chain", [["bytes"], ["bytes", "gzip"]], ids=["uncompressed", "gzip"])
def test_unused_bits_are_zero_in_memory(
    name: str, stored: bytes, expected: bytes, packed: bytes, chain: list[str]
) -> None:
    import gzip

    store: dict[str, bytes] = {}
    zarrfs.create_array(store, shape=3, chunks=3, dtype=name, codecs=chain, fill_value=0)
    store["c/0"] = gzip.compress(stored) if "gzip" in chain else stored
    array = zarrfs.open_array(store, mode="r+")
    assert array[...].tobytes() == expected
    assert array[1:].tobytes() == expected[1:]
    assert bytes(array.read_bytes(0, 3)) == expected
    other: dict[str, bytes] = {}
    zarrfs.create_array(other, shape=3, chunks=3, dtype=name, codecs=["packbits"], fill_value=0)
    other["c/0"] = packed
    assert zarrfs.open_array(other)[...].tobytes() == expected
    # Writing values with other unused bits stores the same bytes.
    for target, expected_chunk in ((store, expected), (other, packed)):
        written = zarrfs.open_array(target, mode="r+")
        written[...] = np.frombuffer(stored, np.uint8).view(written.dtype)
        chunk = bytes(target["c/0"])
        assert (gzip.decompress(chunk) if chunk[:2] == b"\x1f\x8b" else chunk) == expected_chunk


def test_booleans_in_records_are_decoded_to_0_or_1() -> None:
    dtype = np.dtype([("a", "?"), ("b", "<u2"), ("c", "?", (2,))])
    store: dict[str, bytes] = {}
    zarrfs.create_array(store, shape=2, chunks=2, dtype=dtype, zarr_format=2, compressors=None)
    store["0"] = b"\x02\x01\x00\x04\x00" + b"\x00\x01\x00\x00\xff"
    array = zarrfs.open_array(store)
    assert array[...].tobytes() == b"\x01\x01\x00\x01\x00" + b"\x00\x01\x00\x00\x01"
    assert array[0:1].tobytes() == b"\x01\x01\x00\x01\x00"


VLEN = struct.pack("<I", 2) + b"".join(struct.pack("<I", 1) + item for item in (b"a", b"b"))


def variable_length_store(data_type: str, codecs: list[Any]) -> dict[str, bytes]:
    document = {
        "zarr_format": 3,
        "node_type": "array",
        "shape": [2],
        "data_type": data_type,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [2]}},
        "chunk_key_encoding": "default",
        "fill_value": "",
        "codecs": codecs,
    }
    return {"zarr.json": json.dumps(document).encode(), "c/0": VLEN}


@pytest.mark.parametrize(
    ("data_type", "codec"),
    [
        ("string", "vlen-bytes"),
        ("string", {"name": "vlen-array", "configuration": {"dtype": "<u2"}}),
        ("string", sharding([1], ["vlen-bytes"], index_codecs=[LITTLE])),
        ("bytes", "vlen-utf8"),
        ("bytes", {"name": "numcodecs.categorize", "configuration": {"labels": ["a"], "dtype": "|O"}}),
    ],
    ids=str,
)
def test_a_codec_for_another_element_type_is_rejected(data_type: str, codec: Any) -> None:
    with pytest.raises(MetadataError, match="elements of the type"):
        zarrfs.open_array(variable_length_store(data_type, [codec]))
    store: dict[str, bytes] = {}
    with pytest.raises(MetadataError, match="elements of the type"):
        zarrfs.create_array(store, shape=2, dtype=str if data_type == "string" else "bytes", codecs=[codec])
    assert not store


def test_elements_have_the_type_of_the_data_type() -> None:
    assert zarrfs.open_array(variable_length_store("string", ["vlen-utf8"]))[...].tolist() == ["a", "b"]
    assert zarrfs.open_array(variable_length_store("bytes", ["vlen-bytes"]))[...].tolist() == [b"a", b"b"]


def test_the_filter_vlen_bytes_is_rejected_for_strings_in_v2() -> None:
    store: dict[str, bytes] = {}
    with pytest.raises(MetadataError, match="elements of the type"):
        zarrfs.create_array(store, shape=2, dtype=str, zarr_format=2, filters=[{"id": "vlen-bytes"}])
    assert not store


@pytest.mark.parametrize("checksum", ["adler32", "crc32", "fletcher32", "jenkins_lookup3"])
def test_checksums_have_a_fixed_size_and_can_protect_the_index_of_a_shard(checksum: str) -> None:
    name = f"numcodecs.{checksum}"
    configuration = {
        "chunk_shape": [2],
        "codecs": ["bytes"],
        "index_codecs": [
            {"name": "bytes", "configuration": {"endian": "little"}},
            {"name": name, "configuration": {}},
        ],
    }
    codecs = [{"name": "sharding_indexed", "configuration": configuration}]
    store: dict[str, bytes] = {}
    array = zarrfs.create_array(store, shape=(4,), dtype="u1", chunks=(4,), codecs=codecs)
    array[...] = [1, 2, 3, 4]
    assert len(store["c/0"]) == 4 + 2 * 16 + 4
    assert zarrfs.open_array(store)[3] == 4


def test_the_index_of_a_shard_has_a_maximum_size() -> None:
    options: dict[str, Any] = {"dtype": "u1", "chunks": (1,), "shards": (2**26 - 1,)}
    zarrfs.create_array({}, shape=(2**26,), **options)
    with pytest.raises(MetadataError, match=r"needs an index of 1,073,741,8\d\d bytes"):
        zarrfs.create_array({}, shape=(2**26,), **{**options, "shards": (2**26,)})


@pytest.mark.parametrize("codec", ["delta", "fixedscaleoffset", "quantize", "astype"])
def test_the_dtype_of_a_numcodecs_codec_is_by_default_that_of_the_array(codec: str) -> None:
    configuration = {
        "fixedscaleoffset": {"scale": 1, "offset": 0, "astype": "<i4"},
        "quantize": {"digits": 3},
        "astype": {"encode_dtype": "<f8"},
    }.get(codec, {})
    entry = {"name": f"numcodecs.{codec}", "configuration": configuration}
    array = zarrfs.create_array({}, data=np.arange(4, dtype="f4"), codecs=[entry, "bytes"])
    assert array[...].tolist() == [0, 1, 2, 3]
    assert array.dtype == "f4"


@pytest.mark.parametrize("document", ["{}", "[]", "[1]", '"text"'])
def test_lists_of_numcodecs_have_a_data_type_and_a_shape(document: str) -> None:
    store: dict[str, bytes] = {}
    array = zarrfs.create_array(
        store,
        shape=(2,),
        chunks=2,
        dtype=object,
        zarr_format=2,
        object_codec={"id": "json2"},
        compressor=None,
    )
    store["0"] = document.encode()
    with pytest.raises(ChunkDecodeError, match="expected a list of elements, data type and shape"):
        array[...]


TEXT_ENCODINGS = [
    *("utf-8", "utf-8-sig", "ascii", "latin-1", "cp1252"),
    *("utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le", "utf-32-be"),
]


@pytest.mark.parametrize("encoding", TEXT_ENCODINGS)
def test_the_text_of_json2_can_have_each_documented_encoding(encoding: str) -> None:
    store: dict[str, bytes] = {}
    codec = {"id": "json2", "encoding": encoding}
    options: dict[str, Any] = {"chunks": 3, "dtype": object, "zarr_format": 2, "compressor": None}
    array = zarrfs.create_array(store, shape=(3,), object_codec=codec, **options)
    array[...] = ["a", None, {"b": [1, 2.5]}]
    assert json.loads(store["0"].decode(encoding)) == ["a", None, {"b": [1, 2.5]}, "|O", [3]]
    assert zarrfs.open_array(store)[...].tolist() == ["a", None, {"b": [1, 2.5]}]


def test_an_inner_chunk_can_have_the_maximum_number_of_bytes() -> None:
    chunk = InnerChunk((0,), 4, 6, (), ())
    check_bounds([chunk], 10, 6)
    with pytest.raises(CodecError, match="the index gives 6 bytes, expected at most 5"):
        check_bounds([chunk], 10, 5)
    with pytest.raises(CodecError, match="bytes 4 to 10, but the shard has 9 bytes"):
        check_bounds([chunk], 9, 6)
