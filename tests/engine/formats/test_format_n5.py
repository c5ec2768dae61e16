"""N5: the examples of its specification, reading and writing documents, invalid blocks, and TensorStore."""

from __future__ import annotations

import bz2
import gzip
import json
import struct
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorstore
import xxhash
from hypothesis import given
from hypothesis import strategies as st

import zarrfs
from zarrfs.engine.chunks.chunk_grids import RegularGrid
from zarrfs.engine.chunks.chunk_key_encodings import V2Keys
from zarrfs.engine.codecs.base import ChunkSpec, CodecError
from zarrfs.engine.codecs.n5.lz4 import N5Lz4Codec
from zarrfs.engine.codecs.pipeline.pipeline import CodecPipeline
from zarrfs.engine.codecs.registry import codecs_from_json
from zarrfs.engine.formats import api as formats
from zarrfs.engine.formats.n5 import N5Keys, array_attributes, block_codecs, parse_array
from zarrfs.engine.model import ArraySpec, GroupSpec
from zarrfs.engine.stores.memory import MemoryStore
from zarrfs.errors import ChunkDecodeError, ChunkEncodeError, MetadataError, UnsupportedError

HERE = "image.n5/attributes.json"
EXAMPLE: dict[str, Any] = {
    "dimensions": [1, 2, 3],
    "blockSize": [1, 2, 3],
    "dataType": "uint16",
    "compression": {"type": "raw"},
}
HEADER = bytes.fromhex("0000 0003 00000001 00000002 00000003")
BLOCKS = {
    "raw": "0001 0002 0003 0004 0005 0006",
    "bzip2": "425a6839 31415926 5359023e 0dd20000 0040007f 00200031 0c010d31 a8739433 7c5dc914 e1424008 f83748",
    "gzip": "1f8b0800 00000000 00006360 64606260 66606160 65600300 aaea6dbf 0c000000",
    "xz": (
        "fd377a58 5a000004 e6d6b446 02002101 16000000 742fe5a3 01000b00 01000200 03000400 05000600 0d0309ca "
        "34ec15a7 0001240c a618d8d8 1fb6f37d 01000000 0004595a"
    ),
}
"""The blocks that are printed in the specification."""


def document(**changes: Any) -> dict[str, Any]:
    return {key: value for key, value in (EXAMPLE | changes).items() if value is not ...}


def store_of(attributes: dict[str, Any], **blocks: bytes) -> MemoryStore:
    values = {"attributes.json": json.dumps(attributes).encode()}
    return MemoryStore(values | {key.lstrip("b").replace("_", "/"): value for key, value in blocks.items()})


# -- blocks --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("compression", BLOCKS)
def test_the_block_example_of_the_specification_is_read(compression: str) -> None:
    block = HEADER + bytes.fromhex(BLOCKS[compression])
    array = zarrfs.open_array(store_of(document(compression={"type": compression}), b0_0_0=block))
    assert (array.shape, array.dtype) == ((3, 2, 1), np.dtype("uint16"))
    np.testing.assert_array_equal(array[...].ravel(), [1, 2, 3, 4, 5, 6])


def test_the_block_example_of_the_specification_is_written() -> None:
    store = store_of(EXAMPLE)
    zarrfs.open_array(store, mode="r+")[...] = np.arange(1, 7, dtype="u2").reshape(3, 2, 1)
    assert store.values["0/0/0"] == HEADER + bytes.fromhex(BLOCKS["raw"])


def test_block_keys_have_the_fastest_dimension_first() -> None:
    store = store_of(document(dimensions=[7, 5], blockSize=[3, 2]))
    data = np.arange(35, dtype="u2").reshape(5, 7)
    zarrfs.open_array(store, mode="r+")[...] = data
    assert sorted(key for key in store.values if key[0].isdigit()) == [
        f"{x}/{y}" for x in range(3) for y in range(3)
    ]
    assert N5Keys().encode((1, 23, 45)) == "45/23/1"
    assert N5Keys().decode("45/23/1") == (1, 23, 45)
    assert N5Keys().decode("attributes.json") is None
    np.testing.assert_array_equal(zarrfs.open_array(store)[1:4, 2:6], data[1:4, 2:6])


def test_edge_blocks_may_be_shorter() -> None:
    def block(*shape: int) -> bytes:
        size = int(np.prod(shape))
        return (
            struct.pack(f">HH{len(shape)}I", 0, len(shape), *shape) + np.arange(size, dtype=">u2").tobytes()
        )

    attributes = document(dimensions=[5, 3], blockSize=[3, 2])
    store = store_of(attributes, b0_0=block(3, 2), b1_0=block(2, 2), b0_1=block(3, 1), b1_1=block(2, 1))
    expected = [[0, 1, 2, 0, 1], [3, 4, 5, 2, 3], [0, 1, 2, 0, 1]]
    np.testing.assert_array_equal(zarrfs.open_array(store)[...], expected)
    del store.values["1/0"]
    np.testing.assert_array_equal(zarrfs.open_array(store)[0], [0, 1, 2, 0, 0])


def test_varlength_blocks_with_one_element_per_position() -> None:
    header = struct.pack(">HH3II", 1, 3, 1, 2, 3, 6)
    store = store_of(EXAMPLE, b0_0_0=header + bytes.fromhex(BLOCKS["raw"]))
    np.testing.assert_array_equal(zarrfs.open_array(store)[...].ravel(), [1, 2, 3, 4, 5, 6])


@pytest.mark.parametrize(
    ("block", "words"),
    [
        (b"", "the block is truncated"),
        (HEADER[:10], "the block is truncated"),
        (struct.pack(">HH3I", 2, 3, 1, 2, 3), "mode 2"),
        (struct.pack(">HH3I", 9, 3, 1, 2, 3), "mode 9"),
        (struct.pack(">HH3I", 0, 2, 1, 2, 3), "2 dimensions, the array has 3"),
        (struct.pack(">HH3I", 0, 3, 1, 2, 2**32 - 1), "expected at most the chunk shape"),
        (struct.pack(">HH3I", 0, 3, 1, 2, 4) + bytes(16), "expected at most the chunk shape"),
        (struct.pack(">HH3I", 0, 3, 0, 2, 3), "expected at most the chunk shape"),
        (struct.pack(">HH3I", 1, 3, 1, 2, 3), "the block is truncated"),
        (struct.pack(">HH3II", 1, 3, 1, 2, 3, 100), "has 100 elements"),
        (HEADER + bytes(11), "11 bytes"),
        (HEADER + bytes(13), "13 bytes"),
    ],
    ids=repr,
)
def test_invalid_blocks(block: bytes, words: str) -> None:
    with pytest.raises(ChunkDecodeError, match=words) as caught:
        zarrfs.open_array(store_of(EXAMPLE, b0_0_0=block))[...]
    assert "'0/0/0'" in str(caught.value)


def test_a_decompression_bomb_in_a_block() -> None:
    block = HEADER + gzip.compress(bytes(1 << 26))
    with pytest.raises(ChunkDecodeError):
        zarrfs.open_array(store_of(document(compression={"type": "gzip"}), b0_0_0=block))[...]


def test_the_codec_of_the_extension_registry() -> None:
    entry = {
        "name": "n5_default",
        "configuration": {
            "codecs": [
                {"name": "transpose", "configuration": {"order": [1, 0]}},
                {"name": "bytes", "configuration": {"endian": "big"}},
                {"name": "zstd", "configuration": {"level": 0, "checksum": False}},
            ]
        },
    }
    data = np.arange(6, dtype="<i4").reshape(2, 3)
    array = zarrfs.create_array({}, data=data, chunks=(2, 2), codecs=[entry])
    np.testing.assert_array_equal(array[...], data)


@pytest.mark.parametrize(
    ("codecs", "dtype", "words"),
    [
        ([{"name": "bytes", "configuration": {"endian": "big"}}], "u2", "first codec must be 'transpose'"),
        ([{"name": "transpose", "configuration": {"order": [0, 1]}}, "bytes"], "u1", "must be 'transpose'"),
        (
            [{"name": "transpose", "configuration": {"order": [1, 0]}}, "packbits"],
            "u1",
            "followed by 'bytes'",
        ),
        ([{"name": "transpose", "configuration": {"order": [1, 0]}}, "bytes"], "u2", "endian 'big'"),
        (
            [{"name": "transpose", "configuration": {"order": [1, 0]}}, "bytes", "crc32c", "crc32c"],
            "u1",
            "at most one compressor",
        ),
        (
            [{"name": "transpose", "configuration": {"order": [1, 0]}}, "bytes"],
            "?",
            "integers, float32 and float64",
        ),
    ],
    ids=str,
)
def test_invalid_codec_configurations(codecs: list[Any], dtype: str, words: str) -> None:
    (codec,) = codecs_from_json([{"name": "n5_default", "configuration": {"codecs": codecs}}], "codecs")
    with pytest.raises(MetadataError, match=words):
        CodecPipeline([codec], ChunkSpec((2, 3), np.dtype(dtype), 0))


# -- lz4 of the Java implementation --------------------------------------------------------------------


@given(st.binary(max_size=400), st.sampled_from([64, 100, 1 << 16]), st.integers(1, 30))
def test_lz4_round_trip(data: bytes, block_size: int, repeats: int) -> None:
    codec = N5Lz4Codec(block_size)
    plain = data * repeats
    encoded = codec.encode(plain)
    assert codec.decode(encoded, len(plain)) == plain
    assert codec.decode(encoded, None) == plain


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda data: data[:-1], "expected another frame"),
        (lambda data: data[:10], "expected another frame"),
        (lambda data: b"X" + data[1:], "expected the magic"),
        (lambda data: data[:8] + b"\x45" + data[9:], "which is invalid"),
        (
            lambda data: data[:8] + b"\x20" + data[9:13] + struct.pack("<I", 2**31) + data[17:],
            "more than its level",
        ),
        (lambda data: data[:9] + struct.pack("<I", 2**31) + data[13:], "are left"),
        (lambda data: data[:17] + b"\0\0\0\0" + data[21:], "checksum"),
    ],
)
def test_invalid_lz4(change: Any, words: str) -> None:
    encoded = N5Lz4Codec().encode(bytes(1000))
    with pytest.raises(CodecError, match=words):
        N5Lz4Codec().decode(change(encoded), 1000)
    with pytest.raises(CodecError):
        N5Lz4Codec().decode(encoded, 999)


def test_lz4_frames_equal_those_of_the_java_implementation() -> None:
    assert N5Lz4Codec().encode(b"abc") == (
        b"LZ4Block\x16"
        + struct.pack("<3I", 3, 3, xxhash.xxh32_intdigest(b"abc", 0x9747B28C) & 0x0FFFFFFF)
        + b"abc"
        b"LZ4Block\x16" + bytes(12)
    )


def test_lz4_of_z5py_has_no_frames() -> None:
    # Written by z5py 3.0.2.
    block = bytes.fromhex(
        "00000002000000080000000813000100130101001302010013030100130401001305010013060100800707070707070707"
    )
    document = {
        "dimensions": [8, 8],
        "blockSize": [8, 8],
        "dataType": "uint8",
        "compression": {"type": "lz4", "blockSize": 6},
    }
    store = MemoryStore()
    store.set("attributes.json", json.dumps(document).encode())
    store.set("0/0", block)
    array = zarrfs.open_array(store)
    assert array[...].tolist() == [[row] * 8 for row in range(8)]
    for broken in (block[:-1], block[:-4], block[:12] + b"\xff" + block[13:]):
        store.set("0/0", broken)
        with pytest.raises(ChunkDecodeError, match="expected the magic"):
            zarrfs.open_array(store, cache_size=0)[...]


# -- documents -----------------------------------------------------------------------------------------

COMPRESSIONS: list[dict[str, Any]] = [
    {"type": "raw"},
    {"type": "gzip", "level": 3, "useZlib": False},
    {"type": "gzip", "level": 3, "useZlib": True},
    {"type": "gzip", "level": -1, "useZlib": False},
    {"type": "gzip"},
    {"type": "bzip2", "blockSize": 5},
    {"type": "xz", "preset": 3},
    {"type": "lz4", "blockSize": 65536},
    {"type": "lz4", "id": "lz4", "acceleration": 1},
    {"type": "blosc", "cname": "zstd", "clevel": 3, "shuffle": 2, "blocksize": 0, "nthreads": 4},
    {"type": "zstd", "level": 7},
]


@pytest.mark.parametrize("compression", COMPRESSIONS, ids=str)
def test_compression_is_preserved_in_both_directions(compression: dict[str, Any]) -> None:
    attributes = document(dimensions=[7, 5], blockSize=[3, 2], compression=compression, extra=[1])
    spec = parse_array(attributes, HERE)
    assert array_attributes(spec) == attributes
    anew = parse_array(array_attributes(replace(spec, document={})), HERE)
    assert anew.codecs == spec.codecs
    store = store_of(attributes)
    data = np.arange(35, dtype="u2").reshape(5, 7)
    zarrfs.open_array(store, mode="r+")[...] = data
    np.testing.assert_array_equal(zarrfs.open_array(store)[...], data)


def test_documents_older_than_version_1() -> None:
    spec = parse_array(document(compression=..., compressionType="bzip2"), HERE)
    assert spec.codecs == parse_array(document(compression={"type": "bzip2"}), HERE).codecs
    block = HEADER + bz2.compress(bytes.fromhex(BLOCKS["raw"]))
    store = store_of(document(compression=..., compressionType="bzip2"), b0_0_0=block)
    assert zarrfs.open_array(store)[2, 1, 0] == 6


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"blockSize": ...}, '"blockSize" is missing'),
        ({"compression": ...}, '"compression" is missing'),
        ({"dimensions": [-1, 2, 3]}, "/dimensions/0"),
        ({"dimensions": []}, "/blockSize: expected 0 lengths"),
        ({"dimensions": [], "blockSize": []}, "/dimensions: expected at least one dimension"),
        ({"blockSize": [0, 1, 1]}, "/blockSize/0: expected an integer from 1"),
        ({"blockSize": [1, 2]}, "/blockSize: expected 3 lengths"),
        ({"dataType": "float16"}, "/dataType: expected one of int8"),
        ({"dataType": "string"}, "Java objects"),
        ({"dataType": None}, "/dataType: expected a string"),
        ({"compression": "gzip"}, "/compression: expected an object"),
        ({"compression": {}}, "/compression/type: expected a string"),
        ({"compression": {"type": "jpeg"}}, '"jpeg" is not supported'),
    ],
    ids=str,
)
def test_invalid_documents(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(MetadataError) as caught:
        parse_array(document(**changes), HERE)
    assert words in str(caught.value)
    with pytest.raises(MetadataError):
        formats.read_node(store_of(document(**changes)), "")


def test_dimension_names_and_units() -> None:
    attributes = document(axes=["x", "y", ""], units=["nm", "um", ""], resolution=[4, 2.5, 1])
    spec = parse_array(attributes, HERE)
    assert spec.dimension_names == (None, "y", "x")
    assert spec.dimension_units == (None, "2.5 um", "4 nm")
    assert array_attributes(spec) == attributes
    named = array_attributes(replace(spec, attributes={}, document={}))
    assert (named["axes"], named["units"]) == (["x", "y", ""], ["nm", "um", ""])
    assert named["resolution"] == [4, 2.5, 1]
    exact = parse_array(document(units=["nm"] * 3, resolution=[0.1234567891, 1e300, 3]), HERE)
    assert exact.dimension_units == ("3 nm", "1e+300 nm", "0.1234567891 nm")
    for resolution in (..., [4], "4"):  # missing, or not a spacing for each dimension
        spec = parse_array(document(units=["nm", "um", ""], resolution=resolution), HERE)
        assert spec.dimension_units == (None, "um", "nm")
    for odd in ({"axes": "xyz"}, {"axes": [1, 2, 3]}, {"axes": ["x"]}, {"units": 5}):
        spec = parse_array(document(**odd), HERE)
        assert (spec.dimension_names, spec.dimension_units) == (None, None)


def test_unsupported_specs_cannot_be_written() -> None:
    spec = parse_array(EXAMPLE, HERE)
    changes: dict[str, dict[str, Any]] = {
        "chunk key encoding": {"chunk_key_encoding": V2Keys("/")},
        "fill value 0": {"fill_value": np.uint16(1)},
        "only its own block codec": {"codecs": spec.codecs[1:]},
        "no compression": {"codecs": block_codecs(3, [{"name": "crc32c"}])},
        "without dimensions": {"shape": (), "chunk_grid": RegularGrid(())},
    }
    for words, changed in changes.items():
        with pytest.raises(UnsupportedError, match=words):
            array_attributes(replace(spec, **changed))


# -- in a store ----------------------------------------------------------------------------------------


def test_every_directory_is_a_group() -> None:
    store = MemoryStore()
    for key, value in {
        "attributes.json": {"n5": "4.0.0", "a": 1},
        "g/h/set/attributes.json": EXAMPLE,
    }.items():
        store.set(key, json.dumps(value).encode())
    store.set("g/h/set/0/0/0", HEADER + bytes.fromhex(BLOCKS["raw"]))
    root = zarrfs.open_group(store)
    assert (root.zarr_format, dict(root.attrs), sorted(root)) == ("n5", {"a": 1}, ["g"])
    assert sorted(root["g"]) == ["h"]  # type: ignore[arg-type]
    assert isinstance(root["g/h/set"], zarrfs.Array)
    assert formats.read_node(store, "g/h/set/0") is None
    assert formats.read_node(store, "nowhere") is None
    assert formats.read_kind(store, "g/h") == "group"


def test_nodes_are_written_and_read_back() -> None:
    store = MemoryStore()
    group = formats.write_node(store, "g", GroupSpec("n5", {"b": 2}))
    spec = parse_array(document(comment="x"), HERE)
    written = formats.write_node(store, "g/a", replace(spec, document={}))
    assert json.loads(store.values["attributes.json"]) == {"n5": "2.0.0"}
    assert formats.read_node(store, "g") == group
    assert formats.read_node(store, "g/a") == written
    assert isinstance(written, ArraySpec)
    assert written.attributes == {"comment": "x"}
    array = zarrfs.open_array(store, "g/a", mode="r+")
    array.attrs["more"] = [1]
    assert json.loads(store.values["g/a/attributes.json"]) == document(comment="x", more=[1])
    zarrfs.open_group(store, mode="r+").attrs["of root"] = True
    assert json.loads(store.values["attributes.json"]) == {"n5": "2.0.0", "of root": True}


def test_zarr_metadata_takes_precedence() -> None:
    store = store_of(EXAMPLE)
    store.set(".zgroup", b'{"zarr_format": 2}')
    assert formats.read_node(store, "") == GroupSpec(2, document={"zarr_format": 2})


@pytest.mark.parametrize("compression", [c for c in COMPRESSIONS if c["type"] != "lz4"], ids=str)
@pytest.mark.parametrize("dtype", ["uint16", "float64", "int8"])
def test_tensorstore_compatibility_in_both_directions(
    compression: dict[str, Any], dtype: str, tmp_path: Path
) -> None:
    compression = {key: value for key, value in compression.items() if key != "nthreads"}
    metadata = {"dimensions": [7, 5], "blockSize": [3, 2], "dataType": dtype, "compression": compression}

    def theirs(name: str, **options: Any) -> Any:
        kvstore = {"driver": "file", "path": str(tmp_path / name)}
        return tensorstore.open({"driver": "n5", "kvstore": kvstore, **options}).result()

    data = (np.arange(35).reshape(5, 7) * 7 % 50).astype(dtype)
    theirs("theirs", metadata=metadata, create=True)[...] = data.T
    opened = zarrfs.open_array(tmp_path / "theirs")
    assert opened.dtype == np.dtype(dtype)
    np.testing.assert_array_equal(opened[...], data)
    (tmp_path / "ours").mkdir()
    (tmp_path / "ours" / "attributes.json").write_text(json.dumps(metadata))
    zarrfs.open_array(tmp_path / "ours", mode="r+")[...] = data
    np.testing.assert_array_equal(theirs("ours")[...].read().result(), data.T)


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("gzip", {"level": 99}),
        ("gzip", {"level": "x"}),
        ("gzip", {"level": 99, "useZlib": True}),
        ("bzip2", {"blockSize": 10}),
        ("xz", {"preset": 10}),
        ("lz4", {"blockSize": -1}),
        ("blosc", {"shuffle": True}),
        ("blosc", {"cname": 5, "clevel": 10, "blocksize": -1}),
        ("zstd", {"level": 100}),
    ],
)
def test_invalid_encoding_parameters_do_not_prevent_reading(name: str, parameters: dict[str, Any]) -> None:
    data = np.arange(24, dtype=">u2").reshape(4, 6)
    store: dict[str, bytes] = {}
    zarrfs.create_array(store, data=data, chunks=(4, 6), zarr_format="n5", compressors=N5_CODECS[name])
    attributes = json.loads(store["attributes.json"])
    if "useZlib" in parameters:
        zlibbed: dict[str, bytes] = {}
        codec = {"name": "numcodecs.zlib", "configuration": {"level": 1}}
        zarrfs.create_array(zlibbed, data=data, chunks=(4, 6), zarr_format="n5", compressors=codec)
        store = zlibbed
        attributes = json.loads(store["attributes.json"])
    assert attributes["compression"]["type"] == name
    attributes["compression"] |= parameters
    store["attributes.json"] = json.dumps(attributes).encode()
    array = zarrfs.open_array(store, mode="r+")
    np.testing.assert_array_equal(array[...], data)
    with pytest.raises(ChunkEncodeError, match="can be read, but not written"):
        array[...] = data
    array.resize((5, 6))
    kept = json.loads(store["attributes.json"])["compression"]
    assert {key: kept[key] for key in parameters} == parameters


N5_CODECS: dict[str, Any] = {
    "gzip": {"name": "gzip", "configuration": {"level": 1}},
    "bzip2": {"name": "numcodecs.bz2", "configuration": {"level": 1}},
    "xz": {"name": "numcodecs.lzma", "configuration": {"preset": 1}},
    "lz4": {"name": "n5_lz4"},
    "blosc": {"name": "blosc"},
    "zstd": {"name": "zstd"},
}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"filters": [{"name": "bitround", "configuration": {"keepbits": 3}}]}, "filters bitround: "),
        ({"order": "F"}, "order 'F': "),
        ({"dimension_separator": "."}, r"chunk keys such as 'c\.0\.0': "),
        (
            {"chunk_key_encoding": {"name": "v2", "configuration": {"separator": "."}}},
            r"keys such as '0\.0': ",
        ),
    ],
)
def test_options_that_n5_cannot_store_are_refused(options: dict[str, Any], message: str) -> None:
    store = MemoryStore()
    with pytest.raises(UnsupportedError, match=f"{message}.*N5.*omit the option"):
        zarrfs.create_array(store, shape=(4, 4), dtype="f4", zarr_format="n5", **options)
    assert list(store.list_prefix()) == []
    # Those that mean what N5 does anyway are accepted, and those of an array of another format are omitted.
    same = {"filters": [], "order": "C", "dimension_separator": "/"}
    zarrfs.create_array(store, shape=(4, 4), dtype="f4", zarr_format="n5", **same)
    source = zarrfs.create_array({}, data=np.ones((4, 4), "f4"), **options)
    for _ in range(2):
        source = zarrfs.from_array(MemoryStore(), data=source, zarr_format="n5")
        assert source[...].tolist() == [[1.0] * 4] * 4
