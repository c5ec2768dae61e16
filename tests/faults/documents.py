"""Invalid and hostile metadata documents. Opening each of them raises ZarrError."""

from __future__ import annotations

import json
import lzma
from collections.abc import Iterator
from functools import partial
from typing import Any

from tests.documents import named, sharding
from tests.faults.hostile import Case, grid, little, raw, v2, v3

DEEP = 100_000


def cases() -> Iterator[Case]:
    yield from _invalid_json()
    yield from _invalid_shapes()
    yield from _invalid_data_types()
    yield from _invalid_codecs()
    yield from _invalid_keys()


def _raw(name: str, document: bytes) -> Iterator[Case]:
    """Yield the same bytes as each kind of v3 and v2 document."""
    for key in ("zarr.json", ".zarray", ".zgroup"):
        yield Case(f"{name} in {key}", partial(raw, key, document))


def _invalid_json() -> Iterator[Case]:
    yield from _raw("empty", b"")
    yield from _raw("NULs", bytes(1000))
    yield from _raw("not UTF-8", b'{"zarr_format": "\xff\xfe"}')
    yield from _raw("a number", b"3")
    yield from _raw("null", b"null")
    yield from _raw("a list", b"[]")
    yield from _raw("empty object", b"{}")
    yield from _raw("lists nested deep", b"[" * DEEP)
    yield from _raw("lists nested deep and closed", b"[" * DEEP + b"]" * DEEP)
    yield from _raw("objects nested deep", b'{"a":' * DEEP)
    yield from _raw("number of many digits", b'{"zarr_format": ' + b"9" * DEEP + b"}")
    yield from _raw("wrong format number", b'{"zarr_format": 99, "node_type": "array"}')
    yield from _raw("format as text", b'{"zarr_format": "3", "node_type": "array"}')
    for name, store, key in (("v3", v3(), "zarr.json"), ("v2", v2(), ".zarray")):
        whole = store[key]
        for cut in (1, len(whole) // 2, len(whole) - 1):
            yield Case(f"{name} cut at {cut}", partial(raw, key, whole[:cut]))
        yield Case(f"{name} twice", partial(raw, key, whole * 2))
    deep = json.dumps({"zarr_format": 3, "node_type": "group", "attributes": "HERE"})
    nested = deep.replace('"HERE"', '{"a":' * DEEP + "1" + "}" * DEEP).encode()
    yield Case("attributes nested deep", partial(raw, "zarr.json", nested))
    yield Case("unknown node type", partial(v3, node_type="picture"), ("node_type",))


def _invalid_shapes() -> Iterator[Case]:
    bad: dict[str, Any] = {
        "negative": [-1, 6],
        "fractions": [4.5, 6],
        "true": [True, 6],
        "text": ["4", 6],
        "null": None,
        "a number": 4,
        "missing": ...,
        "an object": {"0": 4},
        "nested": [[4], 6],
        "beyond any integer": [10**400, 6],
        "other rank": [4, 6, 1],
        "rank 100000": [1] * 100_000,
    }
    for name, value in bad.items():
        yield Case(f"v3 shape {name}", partial(v3, shape=value))
        yield Case(f"v2 shape {name}", partial(v2, shape=value))
    for name, value in (bad | {"zero": [0, 6]}).items():
        chunk_grid = {"name": "regular", "configuration": {"chunk_shape": value}}
        if value is ...:
            chunk_grid = {"name": "regular"}
        yield Case(f"v3 chunks {name}", partial(v3, chunk_grid=chunk_grid))
        yield Case(f"v2 chunks {name}", partial(v2, chunks=value))
    yield Case("v3 grid unknown", partial(v3, chunk_grid={"name": "hexagonal"}), ("hexagonal",))
    yield Case("v3 grid null", partial(v3, chunk_grid=None))
    rectilinear = {
        "name": "rectilinear",
        "configuration": {"kind": "inline", "chunk_shapes": [[[1, 10**30]], [6]]},
    }
    yield Case("v3 grid with too many chunks", partial(v3, chunk_grid=rectilinear))


def _invalid_data_types() -> Iterator[Case]:
    for dtype in (
        "evil",
        "",
        "<u3",
        "|V10000000000000",
        "<U999999999999",
        "|S-1",
        None,
        5,
        {},
        [],
        "<M8[parsec]",
    ):
        yield Case(f"v2 dtype {dtype!r}", partial(v2, dtype=dtype))
    yield Case("v2 dtype with an empty field name", partial(v2, dtype=[["", "<u2"]]), ())
    yield Case("v2 dtype with a duplicate field name", partial(v2, dtype=[["a", "<u2"], ["a", "<u2"]]))
    yield Case("v2 dtype with a huge sub-array", partial(v2, dtype=[["a", "<u2", [10**9, 10**9]]]))
    yield Case("v2 dtype nested deep", partial(v2, dtype=_nested_fields(250)))
    for name in (
        "evil",
        "",
        None,
        5,
        [],
        "r7",
        "r0",
        "r-8",
        f"r{8 * 10**15}",
        {"name": "uint16", "configuration": 3},
    ):
        yield Case(f"v3 data type {name!r}", partial(v3, data_type=name))
    for length in (-4, 3, 10**18, "4", None):
        text = named("fixed_length_utf32", length_bytes=length)
        yield Case(f"v3 text of length {length!r}", partial(v3, data_type=text, fill_value=""))
    for unit, factor in (("s", 0), ("s", -1), ("s", 2**40), ("fortnight", 1), (None, 1), ("s", None)):
        time = named("numpy.datetime64", unit=unit, scale_factor=factor)
        yield Case(f"v3 time in {factor} {unit}", partial(v3, data_type=time))
    for fill in ("evil", None, [1], {}, -1, 70000, 1.5, "0x123456", True, ...):
        yield Case(f"v3 fill value {fill!r}", partial(v3, fill_value=fill))
    yield Case("v2 fill value of text", partial(v2, fill_value="evil"))
    yield Case("v2 fill value not base64", partial(v2, dtype="|V4", fill_value="!!!"))


def _nested_fields(depth: int) -> Any:
    fields: Any = "<u2"
    for _ in range(depth):
        fields = [["a", fields]]
    return fields


def _invalid_codecs() -> Iterator[Case]:
    transposed = [named("transpose", order=[0, 0]), little()]
    chains: dict[str, Any] = {
        "none": [],
        "null": None,
        "missing": ...,
        "text": "bytes",
        "a number in the list": [5],
        "unknown": [named("evil")],
        "unknown after bytes": [little(), named("evil")],
        "no array to bytes": [named("gzip", level=5)],
        "two arrays to bytes": [little(), little()],
        "wrong order": [named("gzip", level=5), little()],
        "no endian": ["bytes"],
        "evil endian": [named("bytes", endian="middle")],
        "transpose not a permutation": transposed,
        "transpose of other rank": [named("transpose", order=[0]), little()],
        "transpose text": [named("transpose", order="F"), little()],
        "gzip with an unknown key": [little(), named("gzip", level=5, window=1)],
        "shard of other rank": [sharding([2], [little()])],
        "shard that does not divide": [sharding([3, 3], [little()])],
        "shard of nothing": [sharding([0, 3], [little()])],
        "shard of negative": [sharding([-2, 3], [little()])],
        "shard without codecs": [sharding([2, 3], [])],
        "shard without index codecs": [sharding([2, 3], [little()], index_codecs=[])],
        "shard with index of varying size": [
            sharding([2, 3], [little()], index_codecs=[little(), named("gzip", level=1)])
        ],
        "shard nested deep": [_nested_shards(200)],
        "pickle": [little(), named("numcodecs.pickle")],
        "ten thousand": [little(), *[named("crc32c")] * 10_000],
    }
    for name, chain in chains.items():
        yield Case(f"v3 codecs {name}", partial(v3, codecs=chain))
    entries = {"unknown": {"id": "evil"}, "no id": {"level": 1}, "text": "zlib", "pickle": {"id": "pickle"}}
    for name, entry in entries.items():
        yield Case(f"v2 compressor {name}", partial(v2, compressor=entry))
        yield Case(f"v2 filter {name}", partial(v2, filters=[entry]))
    yield from _misplaced_codecs()
    dictionary = {
        "id": "lzma",
        "format": lzma.FORMAT_RAW,
        "filters": [{"id": lzma.FILTER_LZMA2, "dict_size": 1 << 30}],
    }
    yield Case("v2 lzma with a dictionary of a gigabyte", partial(v2, compressor=dictionary))
    pickled = {"dtype": "|O", "filters": [{"id": "pickle"}], "fill_value": None}
    yield Case(
        "v2 objects by pickle", partial(v2, **pickled, chunk=b"cos\nsystem\n(S'true'\ntR."), ("pickle",)
    )
    yield Case("v2 objects without codec", partial(v2, dtype="|O", fill_value=None))
    yield Case("v2 order", partial(v2, order="Z"))
    yield Case("v3 storage transformers", partial(v3, storage_transformers=[{"name": "evil"}]))
    yield Case("v3 unknown key", partial(v3, evil={"name": "evil"}), ("evil",))
    yield Case(
        "v3 unknown key that must be understood", partial(v3, evil={"must_understand": True}), ("evil",)
    )
    huge = {"shape": [10**9, 10**9], **grid(10**9, 10**9), "codecs": [sharding([1, 1], [little()])]}
    yield Case("v3 shard with an index of exabytes", partial(v3, **huge))


def _misplaced_codecs() -> Iterator[Case]:
    """Yield array codecs after bytes-to-bytes codecs, and object codecs for numbers."""
    text = {"dtype": "|O", "fill_value": None}
    arrays: dict[str, dict[str, Any]] = {
        "zfpy": {},
        "pcodec": {},
        "vlen-utf8": {},
        "vlen-bytes": {},
        "vlen-array": {"dtype": "<u2"},
        "json2": {},
        "msgpack2": {},
        "categorize": {"labels": ["a"], "dtype": "|O"},
        "packbits": {},
        "delta": {"dtype": "<u2"},
        "astype": {"encode_dtype": "<u8", "decode_dtype": "<u2"},
        "quantize": {"digits": 1, "dtype": "<f4"},
        "fixedscaleoffset": {"offset": 0, "scale": 1, "dtype": "<f4"},
        "bitround": {"keepbits": 3},
    }
    for name, options in arrays.items():
        entry = {"id": name, **options}
        words = ("cannot follow 'shuffle'", repr(name))
        shuffled = {"filters": [{"id": "shuffle", "elementsize": 2}], "compressor": entry}
        yield Case(f"v2 {name} after shuffle", partial(v2, **shuffled), words)
        filters = [{"id": "vlen-utf8"}, entry]
        yield Case(f"v2 {name} after vlen-utf8", partial(v2, **text, filters=filters), ("cannot follow",))
    for name in ("vlen-utf8", "vlen-bytes", "vlen-array"):
        entry = {"id": name, **arrays[name]}
        for dtype in ("<u8", "<U4", "|S3"):
            yield Case(f"v2 {name} of {dtype}", partial(v2, dtype=dtype, fill_value=None, compressor=entry))
    yield Case(
        "v2 categorize of numbers", partial(v2, compressor={"id": "categorize", **arrays["categorize"]})
    )
    many = [{"id": "zlib"}] * 100
    yield Case("v2 a hundred filters", partial(v2, filters=many), ("at most 64 codecs",))
    wide = {"labels": ["a"], "dtype": "|O", "astype": "|V1000000"}
    yield Case("v2 categorize as a megabyte", partial(v2, **text, filters=[{"id": "categorize", **wide}]))
    objects = {"encode_dtype": "|O", "decode_dtype": "<u2"}
    yield Case("v2 astype objects", partial(v2, filters=[{"id": "astype", **objects}]))
    huge = {"encode_dtype": "|V2000000000", "decode_dtype": "<u2"}
    yield Case("v2 astype of gigabytes", partial(v2, filters=[{"id": "astype", **huge}]))
    for identity in ([], {}, None, 5, "", "\0", "a" * 10_000):
        yield Case(f"v2 codec with id {str(identity)[:9]!r}", partial(v2, filters=[{"id": identity}]))
        options = {**text, "filters": [{"id": identity}]}
        yield Case(f"v2 object codec with id {str(identity)[:9]!r}", partial(v2, **options))


def _nested_shards(depth: int) -> dict[str, Any]:
    inner = sharding([2, 3], [little()])
    for _ in range(depth):
        inner = sharding([2, 3], [inner])
    return inner


def _invalid_keys() -> Iterator[Case]:
    for separator in ("..", "/../", "", None, 5, "\0"):
        keys = {"name": "default", "configuration": {"separator": separator}}
        yield Case(f"v3 separator {separator!r}", partial(v3, chunk_key_encoding=keys))
        if separator is not None:
            over = {"dimension_separator": separator}
            yield Case(f"v2 separator {separator!r}", partial(v2, **over))
    yield Case("v3 key encoding unknown", partial(v3, chunk_key_encoding={"name": "evil"}), ("evil",))
    yield Case("v3 names of dimensions", partial(v3, dimension_names=["y"]))
    yield Case("v3 numbers as names of dimensions", partial(v3, dimension_names=[1, 2]))
