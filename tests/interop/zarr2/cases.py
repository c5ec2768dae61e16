"""What zarr-python 2 writes for the recording, and what zarrfs is compared with it: arrays, selections, copies, stores.

``record.py`` imports this module in an environment without zarrfs.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator
from itertools import count, product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.lib.recfunctions import repack_fields

from tests.interop.samples import Data, Factors, pairwise, sample

ATTRIBUTES = {"a": {"b": [1]}, "c": "é"}

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
    factors: Factors = ()
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


def array_cases() -> list[Case]:
    """Return cases with each pair of factors, and arrays of all shapes."""
    return [*pairwise(combinations()), *_shapes()]


def combinations() -> Iterator[Case]:
    """Yield every data type with every compressor and every filter. Orders and separators alternate, because they are
    independent of the data type and the codecs.
    """
    numbers = count()
    for dtype in DTYPES:
        itemsize = np.dtype(dtype).itemsize
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
            # Compressors, checksums and the like know only the size of the elements.
            element = (
                str(dtype)
                if filters and set(filters[0]) & {"dtype", "astype", "decode_dtype", "keepbits"}
                else itemsize
            )
            factors = ((str(dtype), order), (str(dtype), separator), (element, name), (name, order))
            yield Case(
                _name(dtype, name, order, separator), dtype, options, sample(dtype, SHAPE), factors, lossy
            )


def _shapes() -> Iterator[Case]:
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


def fill_cases() -> dict[str, tuple[Any, Any]]:
    """Return pairs of a data type and a fill value with a special representation in documents, by name."""
    pairs = [("|b1", True), ("|b1", False), ("<i8", -(2**63)), ("<u8", 2**64 - 1), ("<i4", 42)]
    pairs += [(dtype, value) for dtype in FLOATS for value in (0.1, np.nan, np.inf, -np.inf)]
    pairs += [(dtype, 1.5 - 2j) for dtype in COMPLEX] + [("<c16", complex(np.nan, np.inf))]
    pairs += [("<M8[s]", np.datetime64("2020-01-02", "s")), ("<M8[ns]", np.datetime64("NaT", "ns"))]
    pairs += [("<m8[h]", np.timedelta64(-5, "h")), ("|S5", b"abc"), ("|S3", b"\xff\0a"), ("<U6", "零x")]
    pairs += [(">U3", "yes"), ("|V7", np.frombuffer(b"\1\2\3\4\5\6\7", "V7")[0])]
    pairs += [(record, sample(record, (3,))[2]) for record in RECORDS]
    undefined = ("|b1", "<i4", "<f8", "<c8", "|S5", "<U6", "|V7", "<M8[s]", *RECORDS)
    pairs += [(dtype, None) for dtype in undefined]
    return {f"fill {number} {_name(dtype)}": (dtype, fill) for number, (dtype, fill) in enumerate(pairs)}


def fill_options(dtype: Any, fill: Any) -> dict[str, Any]:
    return {
        "shape": (4,),
        "chunks": (2,),
        "fill_value": fill,
        "dtype": np.dtype(dtype),
        "dimension_separator": ".",
    }


PICKLED = np.array([[1, "two", 3j], [None, (3, 4), ""], [{5}, b"6", 7.5]], object)

# -- stores --------------------------------------------------------------------------------------------------

COPIED = "numbers only.zarr"
"""The source of the copies. ``copy`` of zarr-python 2 refuses text."""

STORES: dict[str, tuple[str, str, dict[str, Any]]] = {
    COPIED: ("DirectoryStore", "path", {}),
    "directory.zarr": ("DirectoryStore", "path", {}),
    "slashes.zarr": ("DirectoryStore", "path", {"dimension_separator": "/"}),
    "nested.zarr": ("NestedDirectoryStore", "path", {}),
    "fsspec.zarr": ("FSStore", "url", {}),
    "fsspec with slashes.zarr": ("FSStore", "url", {"dimension_separator": "/"}),
    "stored.zip": ("ZipStore", "path", {"compression": 0}),
    "deflated.zip": ("ZipStore", "path", {"compression": 8}),
    "a.sqldb": ("SQLiteStore", "path", {}),
    "a.lmdb": ("LMDBStore", "path", {"map_size": 1 << 20}),
    "a.dbm": ("DBMStore", "path", {}),
    "a.n5": ("N5Store", "path", {}),
    "fsspec.n5": ("N5FSStore", "url", {}),
}
"""The class of each store, the name of its argument for the location, and other arguments."""

CONSOLIDATED = ("directory.zarr", "stored.zip", "a.lmdb")
"""The stores with consolidated metadata."""

NUMBERS = np.arange(35, dtype="<i4").reshape(7, 5)
CUBE = np.arange(24, dtype="<f8").reshape(2, 3, 4)
WORDS = np.array(["a", "", "Ångström", "🧬"], object)


def nodes(store: str) -> dict[str, dict[str, Any]]:
    """Return the nodes of a store by path: attributes, and options for arrays. Members follow their group."""
    found: dict[str, dict[str, Any]] = {
        "": {"attributes": {"title": "Ångström", "list": [1, None, {"x": 2.5}]}},
        "numbers": {"data": NUMBERS, "chunks": (3, 2), "attributes": {"unit": "µm"}},
        "inner": {"attributes": {}},
        "inner/deep": {"attributes": {"deep": True}},
        "inner/deep/cube": {"data": CUBE, "chunks": (1, 2, 3), "attributes": {}},
        "inner/empty": {"attributes": {}},
    }
    if store != COPIED and not store.endswith(".n5"):
        codec = {"id": "vlen-utf8"}
        words = {
            "data": WORDS,
            "chunks": (3,),
            "object_codec": codec,
            "dtype": object,
            "attributes": {"a": {}},
        }
        found["inner/words"] = words
    return found


N5_COMPRESSORS: dict[str, Any] = {
    "raw": None,
    "gzip": {"id": "gzip", "level": 3},
    "zlib": {"id": "zlib", "level": 3},
    "bz2": {"id": "bz2", "level": 3},
    "lzma": {"id": "lzma", "format": 1, "check": -1, "preset": 1, "filters": None},
    "blosc": {"id": "blosc", "cname": "lz4", "clevel": 5, "shuffle": 1, "blocksize": 0},
    "zstd": {"id": "zstd", "level": 2, "checksum": False},
    "lz4": {"id": "lz4", "acceleration": 1},
}


def n5_arrays() -> dict[str, tuple[Data, Any]]:
    """Return the data and the compressor of arrays in N5. The data types alternate."""
    dtypes = ["u1", "i2", "u4", "i8", "f4", "f8"]
    return {
        f"{name} {dtype}": ((NUMBERS * 3).astype(dtype), compressor)
        for number, (name, compressor) in enumerate(N5_COMPRESSORS.items())
        for dtype in (dtypes[number % 6], dtypes[(number + 3) % 6])
    }


EXPERIMENTAL: dict[str, dict[str, Any]] = {
    path: {
        "shape": (7, 5),
        "dtype": "<i4",
        "chunks": (3, 2),
        "fill_value": 3,
        "order": order,
        "compressor": codec,
    }
    for path, order, codec in (
        ("plain", "C", None),
        ("group/zlib", "F", {"id": "zlib", "level": 1}),
        ("group/blosc", "C", {"id": "blosc", "cname": "zstd", "clevel": 3, "shuffle": 1, "blocksize": 0}),
    )
}
"""The options of arrays in the experimental v3 format, by path."""


def write_hdf5(h5py: Any, path: Any) -> None:
    """Write the HDF5 file that both implementations copy."""
    with h5py.File(path, "w") as file:
        file.create_dataset("inner/numbers", data=NUMBERS, chunks=(3, 2), fillvalue=3).attrs["unit"] = "µm"
        file.create_dataset("line", data=np.arange(9.0), chunks=(4,))
        file["inner"].attrs["count"] = 3


# -- copies and modes ----------------------------------------------------------------------------------------

COPIES: list[tuple[str, dict[str, Any]]] = [
    ("copy", {"source_path": "inner"}),
    ("copy", {"source_path": "inner", "name": "bar"}),
    ("copy", {"source_path": "inner", "shallow": True}),
    ("copy", {"source_path": "inner", "without_attrs": True}),
    ("copy", {"source_path": "inner", "dry_run": True}),
    ("copy", {"source_path": "numbers", "chunks": (4, 3)}),
    ("copy", {"source_path": "numbers", "compressor": None, "order": "F"}),
    ("copy_all", {}),
    ("copy_all", {"source_path": "inner"}),
    ("copy_store", {"source_path": "inner", "dest_path": "bar"}),
    ("copy_store", {"excludes": "zattrs", "includes": ["deep"]}),
    ("copy_store", {"dry_run": True}),
]


def copies() -> list[tuple[str, dict[str, Any], str | None]]:
    """Return the name of each function with its options, and ``if_exists`` of a second call or None."""
    return [
        (name, options, again)
        for name, options in COPIES
        for again in (None, "raise", "skip", "replace", "skip_initialized")
        if (name, again) != ("copy_store", "skip_initialized")
    ]


def modes_of(again: str | None) -> list[str]:
    """Return ``if_exists`` of the calls."""
    return ["raise"] if again is None else ["raise", again]


def files(folder: Path) -> dict[str, Any]:
    """Return the checksums of the stored chunks, and the parsed documents without default values, by key."""
    found: dict[str, Any] = {}
    for path in sorted(folder.rglob("*")):
        key = str(path.relative_to(folder))
        if path.name.startswith(".z"):
            document = json.loads(path.read_bytes())
            if document.get("dimension_separator") == ".":
                del document["dimension_separator"]
            if document:
                found[key] = document
        elif path.is_file():
            found[key] = zlib.crc32(path.read_bytes())
    return found


def openings() -> list[tuple[str, str, str]]:
    """Return the functions that open nodes, with each mode and each existing node."""
    functions, states = ("open_array", "open_group", "open"), ("nothing", "an array", "a group")
    return list(product(functions, ("r", "r+", "a", "w", "w-"), states))


def creation(function: str, mode: str) -> dict[str, Any]:
    """Return the options for a new node."""
    if function == "open_group" or (function == "open" and mode in ("r", "r+", "a")):
        return {}  # With a shape, ``open`` of zarr-python 2 opens only arrays; zarrfs uses it only to create one.
    return {"shape": 2, "dtype": "<i8"}


# -- selections ----------------------------------------------------------------------------------------------

Request = tuple[str, Any, Any]
"""The kind of a selection, the selection, and the fields or None."""

BOX = np.arange(7 * 5 * 6, dtype="<i4").reshape(7, 5, 6)
LINE = np.arange(23, dtype="<f8")
STRUCTS = np.zeros((6, 4), [("a", "<i4"), ("b", ">f8"), ("c", "|S3")])
STRUCTS["a"] = np.arange(24).reshape(6, 4)
STRUCTS["b"] = np.arange(24).reshape(6, 4) / 3
STRUCTS["c"] = [[f"{i}{j}".encode() for j in range(4)] for i in range(6)]
SCALAR = np.array(42, "<u2")

MASK = BOX % 5 == 0
ROWS = np.array([True, False, True, True, False, False, True])

BASIC: list[Any] = [
    (),
    ...,
    slice(None),
    0,
    -1,
    6,
    7,
    -8,
    (0, 0, 0),
    (-1, -1, -1),
    (1, ..., 2),
    (..., -2),
    (slice(1, 6), slice(None), slice(2, 4)),
    (slice(None, None, 2), 3),
    (slice(1, 6, 3), slice(4, 1), slice(0, 100)),
    (slice(-3, None), slice(None, -2), slice(-100, 100)),
    (slice(3, 3), 1, 2),
    (slice(5, 2), ...),
    (slice(0, 7, 10), slice(0, 5, 4), 5),
    (..., slice(None), slice(1, 3)),
    (np.int64(2), np.uint8(1), slice(np.int32(1), np.int16(4))),
    (0, 0, 0, 0),
    (..., ...),
    (0, 0, ..., 0, 0),
    slice(None, None, 0),
    1.5,
    "a",
    (slice(1.5, 3), 0, 0),
]

ORTHOGONAL: list[Any] = [
    ([0, 2, 6], slice(None), 3),
    ([6, 0, 2], [4, 1], [5, 0, 0]),
    ([2, 2, 1], slice(1, 4), [0, 5]),
    (ROWS, slice(None), [1, 2]),
    (ROWS, [True, False, False, True, False], slice(0, 6, 2)),
    ([-1, -7], -1, slice(None)),
    (slice(None), [3], ...),
    (np.array([1, 3]), np.array([0, 4]), 2),
    (np.zeros(7, bool), 0, 0),
    ([7], 0, 0),
    ([-8], 0, 0),
    ([[0, 1], [1, 2]], 0, 0),
    (np.ones(6, bool), 0, 0),
    ([0.5], 0, 0),
    (0, 1, 2),
    ROWS,
    [1, 4],
]

COORDINATES: list[Any] = [
    ([0, 1, 6], [4, 0, 2], [5, 5, 0]),
    ([6, 0, 6], [1, 1, 1], [2, 0, 2]),
    ([-1, -7], [-5, 4], [-6, -1]),
    ([[0, 1], [2, 3]], [[1, 1], [0, 0]], [[0, 1], [2, 3]]),
    ([0, 1], 2, [3, 4]),
    ([[0], [1]], [1, 2, 3], 0),
    ([0, 1], [0, 1]),
    ([0, 7], [0, 0], [0, 0]),
    ([0, 1], [0, 1, 2], [0, 0]),
    ([0.5], [0], [0]),
    (slice(None), [0], [0]),
]

MASKS: list[Any] = [MASK, ~MASK, MASK & False, MASK[:6], MASK[0], BOX]

BLOCKS: list[Any] = [
    0,
    (0, 1),
    (1, 0, 2),
    (-1, -1, -1),
    (slice(None), 1),
    (slice(0, 2), slice(1, 3), 0),
    slice(1, 2),
    (..., 0),
    9,
    -9,
    [0, 1],
    slice(0, 2, 2),
    (0, 0, 0, 0),
]

BRACKETS: list[Any] = [*BASIC, ([0, 1, 6], [4, 0, 2], [5, 5, 0]), ([0, 3], slice(None), 1), [2, 0]]


def asked_of_box() -> list[Request]:
    table = {
        "basic": BASIC,
        "orthogonal": ORTHOGONAL,
        "coordinate": COORDINATES,
        "mask": MASKS,
        "block": BLOCKS,
    }
    requests = [(kind, selection, None) for kind, selections in table.items() for selection in selections]
    requests += [("brackets", selection, None) for selection in BRACKETS]
    requests += [("oindex", selection, None) for selection in ORTHOGONAL]
    requests += [("vindex", selection, None) for selection in [*COORDINATES, *MASKS]]
    requests += [("blocks", selection, None) for selection in BLOCKS]
    return requests


def asked_of_line() -> list[Request]:
    requests: list[Request] = [
        (kind, [1, 20, 3], None) for kind in ("brackets", "orthogonal", "coordinate", "vindex")
    ]
    requests += [(kind, LINE > 9, None) for kind in ("orthogonal", "mask", "vindex")]
    requests += [
        ("basic", selection, None) for selection in (slice(3, 20, 7), slice(22, None), 22, 23, (5,), (5, 5))
    ]
    requests += [("blocks", selection, None) for selection in (0, 4, 5, slice(1, 3), -1)]
    requests += [("vindex", ([[0, 1], [5, 22]],), None), ("orthogonal", ([22, 0, 22],), None)]
    return requests


def asked_of_records() -> list[Request]:
    requests: list[Request] = [
        ("brackets", selection, None) for selection in ("a", ("b", slice(1, 3)), (0, "c"), ("a", "c"))
    ]
    requests += [
        ("brackets", ("a", "c", slice(2, 5), 1), None),
        ("brackets", "nothing", None),
        ("brackets", 3, None),
    ]
    requests += [("brackets", (1, 2), None), ("brackets", (1, 2, "a"), None)]
    requests += [
        ("basic", (slice(1, 4), 2), fields) for fields in ("a", ["b", "c"], ["c", "a"], "x", ["a", "x"])
    ]
    requests += [("orthogonal", ([0, 5], slice(None)), fields) for fields in ("a", ["b", "c"])]
    requests += [("coordinate", ([0, 5], [3, 1]), fields) for fields in ("b", ["a", "c"])]
    requests += [("mask", STRUCTS["a"] % 3 == 0, fields) for fields in ("c", ["a", "b"])]
    requests += [("block", (1, 0), fields) for fields in (None, "a", ["b", "c"])]
    return requests


def asked_of_scalar() -> list[Request]:
    requests: list[Request] = [
        (kind, selection, None) for kind in ("brackets", "basic") for selection in ((), ..., 0, (0,))
    ]
    return [*requests, ("brackets", slice(None), None)]


TABLES: dict[str, tuple[Any, Any, list[Request]]] = {
    "box": (BOX, (3, 2, 4), asked_of_box()),
    "line": (LINE, (5,), asked_of_line()),
    "records": (STRUCTS, (4, 3), asked_of_records()),
    "scalar": (SCALAR, (), asked_of_scalar()),
}

ASSIGNED: dict[str, Any] = {"box": 7, "line": 7, "records": STRUCTS[3, 3], "scalar": 7}
"""The value that is assigned to each selection of a table."""

INDEXERS = ("oindex", "vindex", "blocks")


def describe(values: Any) -> str:
    """Return data type, shape and checksum. Several fields are packed in zarr-python 2, and a view of whole records in
    NumPy and zarrfs; byte orders may differ.
    """
    array = np.asarray(values)
    if array.dtype.names:
        array = repack_fields(array)
    array = array.astype(array.dtype.newbyteorder("<"))
    return f"{array.dtype.descr} {array.shape} {zlib.crc32(array.tobytes()):08x}"
