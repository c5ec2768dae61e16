"""The v2 arrays that zarrfs and zarr-python 2 exchange: every data type with every codec that supports it."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import Any, NamedTuple

import numpy as np

from tests.interop.samples import Data, sample

__all__ = ["COMPRESSORS", "Case", "array_cases", "fill_cases", "object_cases"]

SHAPE = (5, 7)
CHUNKS = (2, 3)

INTEGERS = ["|i1", "|u1", *(f"{order}{kind}{size}" for kind in "iu" for size in (2, 4, 8) for order in "<>")]
FLOATS = [f"{order}f{size}" for size in (2, 4, 8) for order in "<>"]
COMPLEX = [f"{order}c{size}" for size in (8, 16) for order in "<>"]
TIMES = ["<M8[ns]", ">M8[s]", "<M8[D]", "<m8[us]", ">m8[h]", "<m8[10s]"]
TEXT = ["|S5", "|S1", "<U6", ">U3", "|V7"]
RECORDS: list[Any] = [
    [("a", "<i4"), ("b", ">f8"), ("c", "|S3")],
    [("x", "<u2"), ("time", "<M8[s]"), ("label", "<U4"), ("raw", "|V3")],
    [("inner", [("p", "<f4"), ("q", "|b1")]), ("table", "<i2", (2, 3))],
]
DTYPES: list[Any] = ["|b1", *INTEGERS, *FLOATS, *COMPLEX, *TIMES, *TEXT, *RECORDS]

COMPRESSORS: dict[str, dict[str, Any] | None] = {
    "none": None,
    "zlib": {"id": "zlib", "level": 1},
    "gzip": {"id": "gzip", "level": 1},
    "bz2": {"id": "bz2", "level": 1},
    "lzma": {"id": "lzma", "format": 1, "check": -1, "preset": None, "filters": None},
    "lz4": {"id": "lz4", "acceleration": 1},
    "zstd": {"id": "zstd", "level": 1, "checksum": False},
} | {
    f"blosc-{cname}-{shuffle}": {
        "id": "blosc",
        "cname": cname,
        "clevel": 5,
        "shuffle": shuffle,
        "blocksize": 0,
    }
    for cname, shuffle in [("lz4", 1), ("lz4hc", 2), ("blosclz", 0), ("zlib", -1), ("zstd", 2), ("zstd", 1)]
}
CHECKSUMS = ("crc32", "adler32", "fletcher32", "jenkins_lookup3")
ZLIB = COMPRESSORS["zlib"]


class Case(NamedTuple):
    """One array: its options for zarr-python 2, which are ours under other names.

    ``lossy`` where what is read differs from what was written.
    """

    name: str
    dtype: Any
    options: dict[str, Any]
    data: Data
    lossy: bool = False

    def __str__(self) -> str:
        return self.name

    @property
    def mixed_up(self) -> bool:
        """Whether zarr-python 2 reads its own elements in the wrong order."""
        codec = self.options.get("object_codec", {}).get("id")
        return self.options["order"] == "F" and codec in ("json2", "msgpack2")

    @property
    def theirs(self) -> dict[str, Any]:
        """The options of ``zarr.create``."""
        return {"dtype": self.numpy, "shape": self.data.shape, **self.options}

    @property
    def ours(self) -> dict[str, Any]:
        """The options of ``zarrfs.create_array``."""
        options = dict(self.options)
        options["compressors"] = options.pop("compressor")
        if "object_codec" in options:
            options["filters"] = [options.pop("object_codec"), *(options.get("filters") or ())]
        return {"dtype": self.numpy, "shape": self.data.shape, "zarr_format": 2, **options}

    @property
    def numpy(self) -> Any:
        return self.dtype if self.dtype is object else np.dtype(self.dtype)


def _name(dtype: Any, *parts: str) -> str:
    text = f"record{RECORDS.index(dtype)}" if isinstance(dtype, list) else str(dtype)
    return "-".join([text, *("slash" if part == "/" else "dot" if part == "." else part for part in parts)])


def filters_of(dtype: Any) -> Iterator[tuple[str, list[dict[str, Any]], bool]]:
    """Yield (name, filters, whether they are lossy) for all filters that support the data type."""
    itemsize = np.dtype(dtype).itemsize
    for name in CHECKSUMS:
        # jenkins_lookup3 of numcodecs has more configuration keys than the other checksums.
        more = {"initval": 0, "prefix": None} if name == "jenkins_lookup3" else {}
        yield name, [{"id": name, **more}], False
    yield "shuffle", [{"id": "shuffle", "elementsize": itemsize}], False
    yield "base64", [{"id": "base64"}], False
    if isinstance(dtype, list):
        return
    kind = dtype[1]
    if kind in "iuf":
        # Sums of differences of floats have rounding errors.
        yield "delta", [{"id": "delta", "dtype": dtype, "astype": dtype}], kind == "f"
    if kind in "iu" and itemsize < 8:
        yield "delta-astype", [{"id": "delta", "dtype": dtype, "astype": f"<i{itemsize * 2}"}], False
        yield "astype", [{"id": "astype", "encode_dtype": "<i8", "decode_dtype": dtype}], False
        wide = {"id": "astype", "encode_dtype": "<f8", "decode_dtype": dtype}
        yield "astype-delta-shuffle", [wide, {"id": "shuffle", "elementsize": 8}], False
    if kind == "u":
        offset = {"id": "fixedscaleoffset", "offset": 10, "scale": 2, "dtype": dtype, "astype": "<f8"}
        yield "fixedscaleoffset", [offset], True
    if kind == "f" and itemsize > 2:
        yield "quantize", [{"id": "quantize", "digits": 3, "dtype": dtype, "astype": dtype}], True
    if kind == "f" and dtype[0] == "<":
        yield "bitround", [{"id": "bitround", "keepbits": 7}], True
    if kind == "b":
        yield "packbits", [{"id": "packbits"}], False


def array_cases() -> Iterator[Case]:
    """Yield every data type with every compressor and every filter. Orders and separators alternate, because they are
    independent of the data type and the codecs.
    """
    numbers = count()
    for dtype in DTYPES:
        codecs = [(name, None, compressor, False) for name, compressor in COMPRESSORS.items()]
        codecs += [(name, filters, ZLIB, lossy) for name, filters, lossy in filters_of(dtype)]
        for name, filters, compressor, lossy in codecs:
            if name == "gzip" and "M8" in str(dtype) and isinstance(dtype, list):
                continue  # numcodecs refuses records with dates
            number = next(numbers)
            order, separator = "CF"[number % 2], "./"[number // 2 % 2]
            if name == "bitround" and order == "F":
                order = "C"  # in F order numcodecs mixes up the elements as it writes
            options = {
                "chunks": CHUNKS,
                "order": order,
                "dimension_separator": separator,
                "filters": filters,
                "compressor": compressor,
                "fill_value": np.zeros((), dtype)[()],  # of dates the defaults differ: 1970 there, NaT here
            }
            yield Case(_name(dtype, name, order, separator), dtype, options, sample(dtype, SHAPE), lossy)
    for shape, chunks in (((), ()), ((0,), (1,)), ((7,), (3,)), ((3, 4, 5), (2, 2, 3)), ((2, 3), (4, 5))):
        for order in "CF":
            for separator in "./":
                options = {"chunks": chunks, "order": order, "dimension_separator": separator}
                # zarr-python 2 never compresses a single value.
                options |= {"filters": None, "compressor": ZLIB if shape else None}
                sizes = "x".join(map(str, shape)) or "scalar"
                yield Case(_name("<i4", sizes, order, separator), "<i4", options, sample("<i4", shape))


TEXTS = ["", "a", "Ångström", "零", "🧬 cells", "x" * 300, "e\u0301"]
BLOBS = [b"", b"\0", b"abc", b"\xff\xfe", b"trailing\0", bytes(range(40)), b"z"]
VALUES = [1, "two", None, [3, 4.5], {"six": [7]}, True, ""]


def objects(values: list[Any], shape: tuple[int, ...] = SHAPE) -> Data:
    """Return an object array that repeats the values."""
    data = np.empty(int(np.prod(shape)), object)
    for index in range(len(data)):
        data[index] = values[index % len(values)]
    return data.reshape(shape)


def ragged(dtype: str) -> Data:
    """Return an object array of arrays of increasing length."""
    return objects([np.arange(length).astype(dtype) for length in range(7)])


def object_cases() -> Iterator[Case]:
    """Yield every object codec in both orders, with compressors, filters and fill values."""
    json = {
        "id": "json2",
        "encoding": "utf-8",
        "skipkeys": False,
        "ensure_ascii": True,
        "check_circular": True,
    }
    json |= {"allow_nan": True, "sort_keys": True, "indent": None, "separators": [",", ":"], "strict": True}
    msgpack = {"id": "msgpack2", "use_single_float": False, "use_bin_type": True, "raw": False}
    labels = [text for text in TEXTS if text]
    kinds: list[tuple[str, dict[str, Any], Data, Any]] = [
        ("vlen-utf8", {"id": "vlen-utf8"}, objects(TEXTS), ""),
        ("vlen-bytes", {"id": "vlen-bytes"}, objects(BLOBS), 0),  # b"" is no JSON there
        ("vlen-array-i4", {"id": "vlen-array", "dtype": "<i4"}, ragged("<i4"), None),
        ("vlen-array-f8", {"id": "vlen-array", "dtype": "<f8"}, ragged("<f8"), 0),
        ("json", json, objects(VALUES), None),
        ("msgpack", msgpack, objects(VALUES), None),
        (
            "categorize",
            {"id": "categorize", "dtype": "|O", "astype": "|u1", "labels": labels},
            objects(labels),
            "",
        ),
    ]
    for name, codec, data, fill in kinds:
        for order, separator, compressor in (
            ("C", ".", "zstd"),
            ("F", "/", "blosc-lz4-1"),
            ("F", ".", "none"),
        ):
            options = {
                "chunks": CHUNKS,
                "order": order,
                "dimension_separator": separator,
                "object_codec": codec,
                "compressor": COMPRESSORS[compressor],
                "fill_value": fill,
            }
            yield Case(_name(name, order, separator, compressor), object, options, data)
    options = {"chunks": CHUNKS, "object_codec": {"id": "vlen-utf8"}, "compressor": ZLIB, "fill_value": ""}
    options |= {"filters": [{"id": "crc32"}], "order": "C", "dimension_separator": "."}
    yield Case("vlen-utf8-crc32", object, options, objects(TEXTS))


def fill_cases() -> Iterator[tuple[Any, Any]]:
    """Yield (data type, fill value) with a special representation in documents."""
    yield from [("|b1", True), ("|b1", False), ("<i8", -(2**63)), ("<u8", 2**64 - 1), ("<i4", 42)]
    yield from [(dtype, value) for dtype in FLOATS for value in (0.1, np.nan, np.inf, -np.inf)]
    yield from [(dtype, 1.5 - 2j) for dtype in COMPLEX] + [("<c16", complex(np.nan, np.inf))]
    yield from [("<M8[s]", np.datetime64("2020-01-02", "s")), ("<M8[ns]", np.datetime64("NaT", "ns"))]
    yield from [("<m8[h]", np.timedelta64(-5, "h")), ("|S5", b"abc"), ("|S3", b"\xff\0a"), ("<U6", "零x")]
    yield from [(">U3", "yes"), ("|V7", np.frombuffer(b"\1\2\3\4\5\6\7", "V7")[0])]
    for record in RECORDS:
        yield record, sample(record, (3,))[2]
    yield from [
        (dtype, None) for dtype in ("|b1", "<i4", "<f8", "<c8", "|S5", "<U6", "|V7", "<M8[s]", *RECORDS)
    ]
