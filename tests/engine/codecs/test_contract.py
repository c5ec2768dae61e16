"""The contract of all codecs: round trips, encoded sizes, regions, and untrusted bytes."""

from __future__ import annotations

import copy
import json
import re
import zlib
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.documents import blosc, named
from zarrfs.engine.codecs.base import (
    ArrayArrayCodec,
    ArrayBytesCodec,
    Buffer,
    BufferSource,
    ByteRange,
    BytesBytesCodec,
    ChunkSpec,
    Codec,
    CodecError,
)
from zarrfs.engine.codecs.limits import VARIABLE_LIMIT_VARIABLE
from zarrfs.engine.codecs.pipeline.pipeline import CodecPipeline
from zarrfs.engine.codecs.registry import (
    BUILT_IN,
    codec_from_json,
    codec_names,
    codec_to_json,
    codecs_from_json,
)
from zarrfs.errors import MetadataError, UnsupportedError

DECODE_ERRORS = (CodecError, ValueError, RuntimeError, TypeError, EOFError, OSError, IndexError)
"""What codecs may raise for invalid data. The pipeline converts all of them to CodecError."""

LITTLE = [{"name": "bytes", "configuration": {"endian": "little"}}]


BYTES_CODECS: list[dict[str, Any]] = [
    named("gzip", level=1),
    named("gzip", level=0),
    named("zstd", level=3, checksum=False),
    named("zstd", level=-5, checksum=True),
    *(blosc(cname=name) for name in ("lz4", "lz4hc", "blosclz", "zstd", "zlib")),
    blosc(shuffle="bitshuffle", blocksize=512),
    blosc(shuffle="noshuffle", typesize=1),
    blosc(clevel=0),
    named("crc32c"),
    *(
        named(f"numcodecs.{name}")
        for name in ("zlib", "bz2", "lzma", "lz4", "crc32", "adler32", "fletcher32")
    ),
    *(
        named(f"numcodecs.{name}")
        for name in ("jenkins_lookup3", "base64", "gzip", "zstd", "blosc", "crc32c")
    ),
    named("numcodecs.shuffle", elementsize=4),
    named("conditional", codecs=[named("numcodecs.shuffle", elementsize=4), named("gzip", level=5)]),
    named("conditional", codecs=[named("zstd", level=1), "crc32c"], header_bits=24),
    named("numcodecs.blosc", cname="zstd", clevel=1, shuffle=-1, blocksize=0),
]

NUMBERS = [
    "bool",
    "int8",
    "uint16",
    "int32",
    "uint64",
    "float16",
    "float32",
    "float64",
    "complex64",
    "complex128",
]
ARRAY_BYTES: list[tuple[dict[str, Any], Sequence[str]]] = [
    (named("bytes", endian="little"), NUMBERS),
    (named("bytes", endian="big"), [*NUMBERS, "datetime64[ns]", "U3", "S5", "V3"]),
    (
        named("packbits"),
        ["bool", "int8", "uint16", "int64", "float32", "complex64", "int4", "uint2", "float6_e2m3fn"],
    ),
    (named("packbits", padding_encoding="first_byte"), ["bool", "uint8"]),
    (named("packbits", padding_encoding="last_byte", first_bit=0, last_bit=11), ["uint16", "int16"]),
    (
        {
            "name": "sharding_indexed",
            "configuration": {"chunk_shape": [2, 1, 5], "codecs": LITTLE, "index_codecs": LITTLE},
        },
        NUMBERS,
    ),
    (
        {
            "name": "sharding_indexed",
            "configuration": {
                "chunk_shape": [2, 3, 5],
                "codecs": [*LITTLE, named("gzip", level=1)],
                "index_codecs": [*LITTLE, named("crc32c")],
                "index_location": "start",
            },
        },
        ["uint16", "float64"],
    ),
    (
        named("zfp", mode="reversible"),
        [*NUMBERS[1:8], "uint8", "int16", "uint32", "int64", "bfloat16", "datetime64[s]"],
    ),
    (named("zfp", mode="fixed_rate", rate=64), ["float32"]),
    (named("zfp", mode="fixed_precision", precision=64), ["float32"]),
    (named("zfp", mode="fixed_accuracy", tolerance=0.001), ["float32"]),
    (named("numcodecs.zfpy", mode=4, tolerance=0.001), ["float32", "float64"]),
    (named("numcodecs.pcodec"), ["uint16", "int32", "uint64", "float16", "float32", "float64"]),
    (named("numcodecs.pcodec", level=2, mode_spec="classic", delta_encoding_order=1), ["int64"]),
    (named("vlen-utf8"), ["str"]),
    (named("vlen-bytes"), ["bytes"]),
    (named("numcodecs.json2"), ["str"]),
    (named("numcodecs.msgpack2"), ["str"]),
    (named("vlen-array", dtype="<i4"), ["arrays"]),
    (named("numcodecs.categorize", labels=["a", "b", "c"], dtype="|O"), ["labels"]),
]
ARRAY_ARRAYS: list[tuple[dict[str, Any], Sequence[str]]] = [
    (named("transpose", order=[2, 0, 1]), [*NUMBERS, "S5"]),
    (named("bitround", keepbits=52), ["float64", "complex128", "bfloat16"]),
    (named("bitround", keepbits=11), ["int32", "uint16", "datetime64[s]"]),
    (named("reshape", shape=[[0, 1], -1]), [*NUMBERS, "S5"]),
    (named("reshape", shape=[4, [1], -1]), ["uint16"]),
    (named("cast_value", data_type="int64"), ["int32", "uint16"]),
    (named("cast_value", data_type="float64"), ["float32"]),
    (named("scale_offset"), ["int32", "uint16", "float64"]),
    (named("numcodecs.delta", dtype="<i4"), ["int32"]),
    (named("numcodecs.astype", encode_dtype="<f8", decode_dtype="<f4"), ["float32"]),
    (named("numcodecs.packbits"), ["bool"]),
    (named("numcodecs.fixedscaleoffset", offset=0, scale=1, dtype="<f8", astype="<i4"), ["float64"]),
]
SHAPE = (4, 3, 5)


def make(entry: Any) -> Codec:
    codec = codec_from_json(entry, "test")
    assert codec is not None
    return codec


def chunk(kind: str, seed: int = 0, shape: tuple[int, ...] = SHAPE) -> np.ndarray:
    rng = np.random.default_rng(seed)
    count = int(np.prod(shape))
    objects: dict[str, Any] = {
        "str": lambda i: "größe" * (i % 4),
        "bytes": lambda i: bytes(range(i % 7)),
        "labels": lambda i: "abc"[i % 3],
        "arrays": lambda i: np.arange(i % 5, dtype="i4"),
    }
    if kind in objects:
        array = np.empty(count, object)
        for i in range(count):
            array[i] = objects[kind](i)
        return array.reshape(shape)
    dtype = np.dtype(getattr(ml_dtypes, kind)) if hasattr(ml_dtypes, kind) else np.dtype(kind)
    if dtype.kind == "b":
        return rng.integers(0, 2, shape).astype(bool)
    if hasattr(ml_dtypes, kind):
        return rng.integers(0, 2, shape).astype(dtype)
    if dtype.kind in "SUV":
        return (
            np.array(["a", "bc", "def"] * count)[:count].astype("S3").view("V3").reshape(shape)
            if dtype.kind == "V"
            else (np.array(["a", "bc", "def"] * count)[:count].astype(dtype).reshape(shape))
        )
    limit = 100 if dtype.itemsize == 1 else 2000
    return rng.integers(0, limit, shape).astype(dtype)


def spec_of(array: np.ndarray) -> ChunkSpec:
    fill = "" if array.dtype.hasobject else np.zeros((), array.dtype)[()]
    return ChunkSpec(array.shape, array.dtype, fill)


def assert_same(actual: np.ndarray, expected: np.ndarray) -> None:
    assert actual.shape == expected.shape
    if expected.dtype.hasobject:
        for element, expected_element in zip(actual.reshape(-1), expected.reshape(-1), strict=True):
            np.testing.assert_array_equal(element, expected_element)
    else:
        assert actual.astype(expected.dtype).tobytes() == expected.tobytes()


class CountingSource(BufferSource):
    """A source that codecs treat as not in memory. It counts the bytes that are read."""

    in_memory = False

    def __init__(self, data: Buffer) -> None:
        super().__init__(data)
        self.count = 0

    def read(self) -> Buffer:
        self.count += self.size()
        return super().read()

    def read_ranges(self, ranges: Sequence[ByteRange]) -> list[Buffer]:
        buffers = super().read_ranges(ranges)
        self.count += sum(map(len, buffers))
        return buffers


# -- metadata ------------------------------------------------------------------------------------------------------

ALL = [*BYTES_CODECS, *(entry for entry, _ in [*ARRAY_BYTES, *ARRAY_ARRAYS])]


@pytest.mark.parametrize("entry", ALL, ids=str)
def test_metadata_round_trips(entry: dict[str, Any]) -> None:
    codec = make(entry)
    written = codec_to_json(codec)
    assert make(json.loads(json.dumps(written))) == codec
    assert hash(make(written)) == hash(codec)
    with pytest.raises(MetadataError):
        make({**entry, "surplus": 1})
    if not codec.name.startswith("numcodecs") and codec.name != "vlen-array":
        with pytest.raises(MetadataError, match="surplus"):
            make({"name": codec.name, "configuration": {**codec.configuration(), "surplus": 1}})


@pytest.mark.parametrize("entry", BYTES_CODECS, ids=str)
def test_codecs_are_not_changed_by_the_arrays_that_use_them(entry: dict[str, Any]) -> None:
    codec = make(entry)
    before = copy.deepcopy({name: value for name, value in vars(codec).items() if name != "_codec"})
    for dtype in ("u1", "f8"):
        pipeline = CodecPipeline([make(LITTLE[0]), codec], spec_of(np.zeros(8, dtype)))
        assert pipeline.chain.bytes_codecs[0][0] == codec
    assert {name: value for name, value in vars(codec).items() if name != "_codec"} == before


@pytest.mark.parametrize("module", sorted({path.partition(":")[0] for path in BUILT_IN.values()}))
def test_the_example_in_the_docstring_is_valid_metadata(module: str) -> None:
    text = import_module(f"zarrfs.engine.codecs.{module}").__doc__ or ""
    assert "\nSpecification: " in text
    assert "\nNames: ``" in text
    match = re.search(r"Example::\n\n((?:    .*\n|\n)+)", text)
    assert match is not None
    entry = json.loads(match[1])
    assert codec_to_json(make(entry))["name"] == entry["name"]


def test_names_aliases_and_must_understand_follow_the_specification() -> None:
    assert make("bytes") == make({"name": "bytes"}) == make({"name": "endian"})
    assert make({"name": "numcodecs.bitround", "configuration": {"keepbits": 3}}).name == "bitround"
    assert codec_from_json({"name": "nobody.knows", "must_understand": False}, "here") is None
    with pytest.raises(UnsupportedError, match=r"here.*'nobody\.knows'.*gzip"):
        codec_from_json({"name": "nobody.knows"}, "here")
    for entry in (5, None, [], {"name": 5}, {}, {"name": ""}, {"name": "gzip", "configuration": []}):
        with pytest.raises(MetadataError):
            codec_from_json(entry, "here")
    for chain in (
        [],
        ["gzip"],
        ["bytes", "bytes"],
        ["gzip", "bytes"],
        ["bytes", named("transpose", order=[0])],
        "bytes",
        5,
    ):
        with pytest.raises(MetadataError):
            codecs_from_json(chain, "here")
    assert {"bytes", "blosc", "numcodecs.delta"} <= set(codec_names())


@pytest.mark.parametrize(
    "entry",
    [
        named("gzip", level=10),
        named("gzip", level=True),
        named("zstd", level=23),
        named("zstd", checksum=1),
        blosc(cname="best"),
        blosc(shuffle=1),
        blosc(clevel="5"),
        blosc(typesize=0),
        named("blosc", cname="lz4", clevel=5, shuffle="shuffle", blocksize=0),
        named("bytes", endian="middle"),
        named("transpose", order=[0, 2]),
        named("transpose", order="F"),
        named("transpose"),
        named("reshape"),
        named("reshape", shape=[-1, -1]),
        named("reshape", shape=[[1, 0], -1]),
        named("reshape", shape=[0]),
        named("bitround"),
        named("bitround", keepbits=-1),
        named("zfp"),
        named("zfp", mode="fixed_rate"),
        named("zfp", mode="fixed_rate", rate=float("inf")),
        named("zfp", mode="reversible", rate=1),
        named("zfp", mode="expert", minbits=1, maxbits=13, maxprec=0, minexp=0),
        named("conditional"),
        named("conditional", codecs=["bytes"]),
        named("conditional", codecs=["crc32c"], header_bits=12),
        named("cast_value"),
        named("cast_value", data_type="uint7"),
        named("cast_value", data_type="float32", out_of_range="wrap"),
        named("cast_value", data_type="uint8", rounding="up"),
        named("cast_value", data_type="uint8", scalar_map={"encode": [1]}),
        named("scale_offset", factor=2),
        named("packbits", padding_encoding="both"),
        named("packbits", first_bit=-1),
        named("sharding_indexed", chunk_shape=[0], codecs=LITTLE, index_codecs=LITTLE),
        named("sharding_indexed", chunk_shape=[1], codecs=[], index_codecs=LITTLE),
        named(
            "sharding_indexed", chunk_shape=[1], codecs=LITTLE, index_codecs=LITTLE, index_location="middle"
        ),
        named("numcodecs.zlib", levels=1),
        named("numcodecs.pickle"),
    ],
    ids=str,
)
def test_invalid_configurations_are_rejected(entry: dict[str, Any]) -> None:
    """Parameters that decoding uses are rejected when the codec is created, the others by ``check_encoding``."""
    with pytest.raises(MetadataError):
        make(entry).check_encoding()


# -- bytes -> bytes ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("entry", BYTES_CODECS, ids=str)
@given(data=st.binary(min_size=4, max_size=600), repeat=st.integers(1, 20))
def test_bytes_round_trip(entry: dict[str, Any], data: bytes, repeat: int) -> None:
    codec = make(entry)
    assert isinstance(codec, BytesBytesCodec)
    data = data[: len(data) // 4 * 4] * repeat
    encoded = codec.encode(data)
    size = codec.encoded_size(len(data))
    assert size is None or size == memoryview(encoded).nbytes
    assert bytes(codec.decode(encoded, len(data))) == data
    assert bytes(codec.decode(memoryview(bytes(encoded)), None)) == data
    out = bytearray(len(data))
    result = codec.decode(encoded, len(data), memoryview(out))
    assert bytes(result) == data
    for wrong_size in (len(data) - 1, len(data) + 1, 10 * len(data)):
        with pytest.raises((CodecError, ValueError, RuntimeError)):
            codec.decode(encoded, wrong_size)


@pytest.mark.parametrize("entry", BYTES_CODECS, ids=str)
def test_truncated_bytes_are_rejected(entry: dict[str, Any]) -> None:
    codec = make(entry)
    assert isinstance(codec, BytesBytesCodec)
    data = np.arange(2000, dtype="u4").tobytes()
    encoded = bytes(codec.encode(data))
    for cut in (0, 1, 3, len(encoded) // 2, len(encoded) - 1):
        with pytest.raises(DECODE_ERRORS):
            codec.decode(encoded[:cut], len(data))


@pytest.mark.parametrize("entry", [e for e in BYTES_CODECS if "shuffle" not in str(e["name"])], ids=str)
@given(flips=st.lists(st.tuples(st.integers(0, 10**6), st.integers(1, 255)), min_size=1, max_size=4))
def test_corrupt_bytes_are_rejected_or_decode_to_the_expected_size(
    entry: dict[str, Any], flips: list[tuple[int, int]]
) -> None:
    codec = make(entry)
    assert isinstance(codec, BytesBytesCodec)
    data = np.arange(500, dtype="u4").tobytes()
    encoded = bytearray(codec.encode(data))
    for position, change in flips:
        encoded[position % len(encoded)] ^= change
    decoded: Buffer | None = None
    with suppress(*DECODE_ERRORS):
        decoded = codec.decode(bytes(encoded), len(data))
    assert decoded is None or memoryview(decoded).nbytes == len(data)


@pytest.mark.parametrize(
    "entry", [blosc(), blosc(cname="zstd", blocksize=1024), blosc(clevel=0), blosc(blocksize=512)], ids=str
)
@given(data=st.data())
def test_any_ranges_of_a_blosc_buffer_can_be_read(entry: dict[str, Any], data: st.DataObject) -> None:
    codec = make(entry)
    assert isinstance(codec, BytesBytesCodec)
    size = data.draw(st.sampled_from([16, 1000, 1024, 5000, 5120, 40_000])) // 4 * 4
    decoded = np.random.default_rng(size).integers(0, 300, size // 4, "u4").tobytes()
    source = codec.open_source(BufferSource(codec.encode(decoded)), len(decoded))
    assert source is not None
    assert source.size() == len(decoded)
    ranges = data.draw(
        st.lists(
            st.tuples(st.integers(0, size - 1), st.integers(1, size)).map(lambda r: ByteRange(*r)),
            min_size=1,
            max_size=4,
        )
    )
    buffers = source.read_ranges(ranges)
    assert buffers is not None
    for (start, length), buffer in zip(ranges, buffers, strict=True):
        assert bytes(buffer) == decoded[start : start + (length or 0)]


def test_reading_a_part_of_a_blosc_buffer_reads_only_its_blocks() -> None:
    codec = make(blosc(blocksize=4096))
    assert isinstance(codec, BytesBytesCodec)
    decoded = np.random.default_rng(0).integers(0, 2**32, 100_000, "u4").tobytes()
    counting = CountingSource(codec.encode(decoded))
    source = codec.open_source(counting, len(decoded))
    assert source is not None
    buffers = source.read_ranges([ByteRange(200_000, 100)])
    assert buffers is not None
    assert bytes(buffers[0]) == decoded[200_000:200_100]
    assert counting.count < 16_000


def test_the_source_of_a_missing_blosc_buffer_is_missing() -> None:
    class MissingSource(BufferSource):
        def size(self) -> None:  # type: ignore[override]
            return None

    codec = make(blosc())
    assert isinstance(codec, BytesBytesCodec)
    source = codec.open_source(MissingSource(b""), 100)
    assert source is not None
    assert source.read_ranges([ByteRange(0, 10)]) is None


def test_streams_of_unknown_size_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE_LIMIT_VARIABLE, "100000")
    for entry in (
        named("gzip", level=9),
        named("zstd", level=3),
        named("numcodecs.bz2"),
        named("numcodecs.lzma"),
    ):
        codec = make(entry)
        assert isinstance(codec, BytesBytesCodec)
        assert len(codec.decode(codec.encode(bytes(99_999)), None)) == 99_999
        with pytest.raises(CodecError, match=VARIABLE_LIMIT_VARIABLE):
            codec.decode(codec.encode(bytes(100_001)), None)


def test_consecutive_frames_and_members_are_one_stream() -> None:
    import gzip

    import zstandard

    codec = make("gzip")
    assert isinstance(codec, BytesBytesCodec)
    assert codec.decode(gzip.compress(b"abc") + gzip.compress(b"defg"), 7) == b"abcdefg"
    assert codec.decode(gzip.compress(b"abc") + bytes(8), 3) == b"abc"
    with pytest.raises(CodecError):
        codec.decode(gzip.compress(b"abc") + b"garbage", 3)
    codec = make("zstd")
    assert isinstance(codec, BytesBytesCodec)
    frames = zstandard.ZstdCompressor().compress(b"abc") + zstandard.ZstdCompressor().compress(b"defg")
    assert codec.decode(frames, 7) == b"abcdefg"
    unsized = zstandard.ZstdCompressor(write_content_size=False).compress(b"abc" * 1000)
    assert codec.decode(unsized, 3000) == b"abc" * 1000
    with pytest.raises(CodecError):
        codec.decode(unsized, 2999)
    with pytest.raises(CodecError, match="truncated"):
        codec.decode(b"", None)


def test_gzip_streams_are_decoded_by_zlib() -> None:
    codec = make(named("gzip", level=6))
    assert isinstance(codec, BytesBytesCodec)
    assert zlib.decompress(codec.encode(b"hello" * 100), 31) == b"hello" * 100


def test_a_wrong_checksum_is_rejected() -> None:
    codec = make("crc32c")
    assert isinstance(codec, BytesBytesCodec)
    # RFC 3720, B.4: 32 bytes of zeros.
    assert bytes(codec.encode(bytes(32)))[-4:].hex() == "aa36918a"
    with pytest.raises(CodecError, match="checksum"):
        codec.decode(bytes(32) + b"\0\0\0\0", 32)


# -- arrays --------------------------------------------------------------------------------------------------------

ARRAY_CASES = [(entry, kind) for entry, kinds in ARRAY_BYTES for kind in kinds]


@pytest.mark.parametrize(("entry", "kind"), ARRAY_CASES, ids=str)
def test_arrays_and_regions_round_trip_and_truncated_chunks_are_rejected(
    entry: dict[str, Any], kind: str
) -> None:
    codec = make(entry)
    assert isinstance(codec, ArrayBytesCodec)
    array = chunk(kind)
    if "last_bit" in str(entry):
        array = array % 1000
    spec = spec_of(array)
    codec.check(spec)
    encoded = codec.encode(array, spec)
    size = codec.encoded_size(spec)
    assert size is None or size == memoryview(encoded).nbytes
    assert_same(codec.decode(encoded, spec), array)
    rng = np.random.default_rng(1)
    for _ in range(20):
        lows = [int(rng.integers(0, n)) for n in SHAPE]
        region = tuple(
            slice(low, int(rng.integers(low + 1, n + 1)), 1) for low, n in zip(lows, SHAPE, strict=True)
        )
        part = codec.decode_region(CountingSource(encoded), region, spec)
        assert part is not None
        assert_same(part, array[region])
    whole = memoryview(encoded).nbytes
    # The last words of a zfp stream may be padding.
    for cut in (0, 1, whole // 2 if "zfp" in codec.name else whole - 1):
        with pytest.raises(DECODE_ERRORS):
            codec.decode(bytes(encoded)[:cut], spec)


@pytest.mark.parametrize(("entry", "kind"), [(e, k) for e, kinds in ARRAY_ARRAYS for k in kinds], ids=str)
def test_array_codecs_round_trip(entry: dict[str, Any], kind: str) -> None:
    codec = make(entry)
    assert isinstance(codec, ArrayArrayCodec)
    array = chunk(kind)
    spec = spec_of(array)
    codec.check(spec)
    original = array.copy()
    encoded = codec.encode(array, spec)
    encoded_spec = codec.encoded_spec(spec)
    assert (encoded.shape, encoded.dtype) == (encoded_spec.shape, encoded_spec.dtype)
    assert_same(codec.decode(encoded, spec), original)
    assert_same(array, original)
    region = (slice(1, 3, 1), slice(0, 2, 1), slice(2, 5, 1))
    inner = codec.encoded_region(region, spec)
    if inner is not None:
        assert_same(codec.decode(encoded[inner], spec), array[region])
    view = codec.view(array)
    if view is not None:
        assert_same(np.ascontiguousarray(view), np.ascontiguousarray(encoded))


@pytest.mark.parametrize(("entry", "kind"), [(e, k) for e, kinds in ARRAY_ARRAYS for k in kinds], ids=str)
@pytest.mark.parametrize("endian", ["little", "big"])
def test_array_codecs_round_trip_in_both_byte_orders(entry: dict[str, Any], kind: str, endian: str) -> None:
    array = chunk(kind)
    pipeline = CodecPipeline(codecs_from_json([entry, named("bytes", endian=endian)], "test"), spec_of(array))
    assert_same(pipeline.decoder.decode(pipeline.encoder.encode(array)), array)


def test_reading_a_plane_of_an_uncompressed_chunk_reads_only_its_bytes() -> None:
    codec = make(named("bytes", endian="little"))
    assert isinstance(codec, ArrayBytesCodec)
    array = np.arange(40 * 50 * 60, dtype="u2").reshape(40, 50, 60)
    source = CountingSource(codec.encode(array, spec_of(array)))
    part = codec.decode_region(source, (slice(7, 8, 1), slice(0, 50, 1), slice(0, 60, 1)), spec_of(array))
    assert part is not None
    assert_same(part, array[7:8])
    assert source.count == 50 * 60 * 2


def test_stored_bytes_other_than_0_and_1_are_true_booleans() -> None:
    codec = make("bytes")
    assert isinstance(codec, ArrayBytesCodec)
    spec = ChunkSpec((4,), np.dtype(bool), False)
    assert codec.decode(b"\0\1\2\xff", spec).tolist() == [False, True, True, True]


def test_vlen_utf8_has_the_format_of_the_specification() -> None:
    codec = make("vlen-utf8")
    assert isinstance(codec, ArrayBytesCodec)
    array = np.array(["", "ab"], object)
    assert bytes(codec.encode(array, spec_of(array))).hex() == "02000000" + "00000000" + "02000000" + "6162"
    with pytest.raises(CodecError, match="UTF-8"):
        codec.decode(bytes.fromhex("0100000001000000ff"), spec_of(array[:1]))
    with pytest.raises(CodecError, match="expected a string"):
        codec.encode(np.array([5.5], object), spec_of(array[:1]))


def test_packbits_of_booleans_has_the_format_of_the_specification() -> None:
    codec = make(named("packbits", padding_encoding="last_byte"))
    assert isinstance(codec, ArrayBytesCodec)
    array = np.array([1, 0, 1, 1, 0, 0, 0, 0, 1, 1], bool)
    assert bytes(codec.encode(array, spec_of(array))) == bytes([0b00001101, 0b00000011, 6])
