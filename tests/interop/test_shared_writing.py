"""Two implementations write overlapping regions of one array, and all implementations read the same values.

The implementations are zarrfs, zarr-python 3, zarr-python 3 with the Rust codec pipeline of zarrs, and TensorStore.
They access the same directory. Elements that are not written have the fill value. The regions begin and end within
chunks, so that the second implementation must decode the chunks of the first one and keep their other elements.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import tensorstore as ts
import zarr

import zarrfs
from tests.documents import BIG, CRC32C, LITTLE, blosc, named, sharding
from tests.interop.samples import Data, same_bits, sample
from tests.interop.zarr_python import quietly

SHAPE = (9, 8)
CHUNKS = (4, 3)
FIRST = np.s_[0:6, 1:7]
SECOND = np.s_[3:8, 0:5]

NUMBERS = ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
NUMBERS += ["float16", "float32", "float64", "complex64", "complex128"]
SMALL = ["int4", "bfloat16", "float8_e4m3fn", "float8_e5m2", "float8_e3m4"]


class Case(NamedTuple):
    """The options of ``zarrfs.create_array``, and the implementations that can write and read the array."""

    name: str
    options: dict[str, Any]
    peers: tuple[str, ...]

    def __str__(self) -> str:
        return self.name


# -- the peers -----------------------------------------------------------------------------------------------------


class Zarrfs:
    def __init__(self, path: Path, case: Case) -> None:
        self.array = zarrfs.open_array(path, mode="r+", cache_size=0)

    def read(self) -> Data:
        data: Data = self.array[...]
        return data

    def write(self, region: Any, data: Data) -> None:
        self.array[region] = data


class ZarrPython:
    pipeline = "zarr.core.codec_pipeline.BatchedCodecPipeline"

    def __init__(self, path: Path, case: Case) -> None:
        with quietly(), zarr.config.set({"codec_pipeline.path": self.pipeline}):
            self.array = zarr.open_array(path, mode="r+")
        assert type(self.array._async_array.codec_pipeline).__name__ == self.pipeline.rpartition(".")[2]

    def read(self) -> Data:
        with quietly():
            return np.asarray(self.array[...])

    def write(self, region: Any, data: Data) -> None:
        with quietly():
            self.array[region] = data


class Zarrs(ZarrPython):
    pipeline = "zarrs.ZarrsCodecPipeline"


class TensorStore:
    drivers = {3: "zarr3", 2: "zarr", "n5": "n5"}  # noqa: RUF012 - read only

    def __init__(self, path: Path, case: Case) -> None:
        driver = self.drivers[case.options["zarr_format"]]
        spec = {"driver": driver, "kvstore": {"driver": "file", "path": f"{path}/"}}
        array = ts.open(spec, open=True).result()
        # TensorStore keeps the dimension order of N5, with the fastest dimension first.
        self.array = array.T if driver == "n5" else array

    def read(self) -> Data:
        return np.asarray(self.array.read().result())

    def write(self, region: Any, data: Data) -> None:
        self.array[region] = data


IMPLEMENTATIONS: dict[str, Callable[[Path, Case], Any]] = {
    "zarrfs": Zarrfs,
    "zarr-python": ZarrPython,
    "zarrs": Zarrs,
    "tensorstore": TensorStore,
}
ALL = ("zarrfs", "zarr-python", "zarrs", "tensorstore")
ALL_BUT_ZARRS = ("zarrfs", "zarr-python", "tensorstore")
"""For v2 arrays with F order or big-endian elements, which zarrs does not support."""


# -- the table -----------------------------------------------------------------------------------------------------


TRANSPOSE = named("transpose", order=[1, 0])
GZIP, ZSTD = named("gzip", level=2), named("zstd", level=1, checksum=False)
CHECKED = named("zstd", level=1, checksum=True)


CHAINS: dict[str, list[Any]] = {
    "bytes": [LITTLE],
    "big": [BIG],
    "transpose": [TRANSPOSE, LITTLE, GZIP],
    "gzip": [LITTLE, GZIP],
    "zstd": [LITTLE, ZSTD],
    "zstd checked": [LITTLE, CHECKED],
    "crc32c": [LITTLE, CRC32C],
    "gzip crc32c": [BIG, GZIP, CRC32C],
    **{
        f"blosc {cname} {shuffle}": [LITTLE, blosc(cname=cname, shuffle=shuffle, typesize=2)]
        for cname, shuffle in [
            ("lz4", "shuffle"),
            ("lz4hc", "noshuffle"),
            ("blosclz", "bitshuffle"),
            ("zlib", "shuffle"),
            ("zstd", "bitshuffle"),
        ]
    },
    "shards": [sharding((2, 3), [LITTLE, ZSTD])],
    "shards, index at start": [sharding((2, 1), [LITTLE, CRC32C], index_location="start")],
    "shards, transposed inside": [sharding((4, 1), [TRANSPOSE, BIG, GZIP])],
    "shards, transposed outside": [TRANSPOSE, sharding((3, 4))],
    "shards in shards": [sharding((4, 3), [sharding((2, 1), [LITTLE, ZSTD], index_location="start")])],
    "shards of a chunk": [sharding((4, 3), [LITTLE, CHECKED, CRC32C])],
}


def _fills(dtype: str) -> Iterator[Any]:
    """Yield the limits of the data type, and values without a JSON number."""
    if dtype == "bool":
        yield from (False, True)
    elif "int" in dtype and dtype not in SMALL:
        info = np.iinfo(dtype)
        yield from (int(info.min), int(info.max))
    elif dtype.startswith("complex"):
        yield from (0, complex("nan+infj"), complex(-0.0, 1.5))
    elif dtype in SMALL:
        yield from (0, -2)
    else:
        yield from (0, float("nan"), float("-inf"), -0.0)


def cases() -> Iterator[Case]:
    for dtype in [*NUMBERS, *SMALL]:
        peers = ("zarrfs", "tensorstore") if dtype in SMALL else ALL
        for fill in _fills(dtype):
            options = {"zarr_format": 3, "dtype": dtype, "chunks": CHUNKS, "fill_value": fill}
            plain = {"name": "bytes"} if np.dtype(_numpy(dtype)).itemsize == 1 else LITTLE
            yield Case(f"v3 {dtype} fill {fill}", options | {"codecs": [plain, ZSTD]}, peers)
        yield Case(f"v3 {dtype} shards", options | {"codecs": [sharding((2, 3), [plain, CRC32C])]}, peers)
    for name, codecs in CHAINS.items():
        given = {"dimension_names": ["y", None], "codecs": codecs}
        # zarr-python compares the shape of the inner chunks with the shape before the transpose codec.
        peers = ("zarrfs", "tensorstore") if name == "shards, transposed outside" else ALL
        yield Case(
            f"v3 {name}",
            {"zarr_format": 3, "dtype": "uint16", "chunks": CHUNKS, "fill_value": 7} | given,
            peers,
        )
    for encoding in (
        named("v2", separator="."),
        named("v2", separator="/"),
        named("default", separator="."),
    ):
        options = {"zarr_format": 3, "dtype": "uint16", "chunks": CHUNKS, "chunk_key_encoding": encoding}
        yield Case(f"v3 keys {encoding}", options | {"codecs": [LITTLE]}, ALL)
    for dtype in ("string", "bytes", "M8[ns]", "m8[10us]", "U4", "S3"):
        options = {"zarr_format": 3, "dtype": dtype, "chunks": CHUNKS}
        yield Case(f"v3 {dtype}", options, ("zarrfs", "zarr-python"))
    yield from _cases_v2()
    yield from _cases_n5()


def _cases_v2() -> Iterator[Case]:
    compressors: list[Any] = [
        None,
        {"id": "zlib", "level": 1},
        {"id": "bz2", "level": 1},
        {"id": "zstd", "level": 1},
    ]
    compressors += [
        {"id": "blosc", "cname": "lz4", "clevel": 3, "shuffle": 1, "blocksize": 0},
        {"id": "gzip", "level": 1},
    ]
    for number, dtype in enumerate([*NUMBERS, ">i2", ">u4", ">f8", ">c8"]):
        order, separator = "CF"[number % 2], "./"[number // 2 % 2]
        options = {"zarr_format": 2, "dtype": dtype, "chunks": CHUNKS, "order": order}
        options |= {"dimension_separator": separator, "compressors": compressors[number % len(compressors)]}
        for fill in list(_fills(np.dtype(dtype).name))[:2]:
            peers = ALL if order == "C" and dtype[0] != ">" else ALL_BUT_ZARRS
            yield Case(f"v2 {dtype} {order} {separator} fill {fill}", options | {"fill_value": fill}, peers)
    for compressor in compressors:
        for order in "CF":
            options = {
                "zarr_format": 2,
                "dtype": "uint16",
                "chunks": CHUNKS,
                "order": order,
                "compressors": compressor,
            }
            yield Case(
                f"v2 {compressor and compressor['id']} {order}",
                options,
                ALL if order == "C" else ALL_BUT_ZARRS,
            )
    records = [("a", "<i2"), ("b", "<f8"), ("s", "S3")]
    dtypes: list[Any] = ["U4", "S3", "M8[s]", "m8[ns]", records, "string"]
    for dtype in dtypes:
        yield Case(
            f"v2 {dtype}", {"zarr_format": 2, "dtype": dtype, "chunks": CHUNKS}, ("zarrfs", "zarr-python")
        )


def _cases_n5() -> Iterator[Case]:
    both = ("zarrfs", "tensorstore")
    for dtype in [*NUMBERS[1:9], "float32", "float64"]:
        yield Case(f"n5 {dtype}", {"zarr_format": "n5", "dtype": dtype, "chunks": CHUNKS}, both)
    blosc = {"id": "blosc", "cname": "lz4", "clevel": 3, "shuffle": 1, "blocksize": 0}
    xz = {"id": "lzma", "format": 1, "check": -1, "preset": 1, "filters": None}
    for compressor in (None, "gzip", {"id": "bz2", "level": 1}, blosc, xz, "zstd"):
        options = {"zarr_format": "n5", "dtype": "int16", "chunks": CHUNKS, "compressors": compressor}
        units = {"dimension_names": ["y", "x"], "dimension_units": ["4 nm", "2.5 um"]}
        yield Case(f"n5 {compressor}", options | units, both)


def _numpy(dtype: Any) -> Any:
    if dtype in SMALL:
        return ts.dtype(dtype).numpy_dtype
    return {"string": "text", "bytes": "blobs"}.get(dtype, dtype) if isinstance(dtype, str) else dtype


def writers(number: int, case: Case) -> Iterator[tuple[str, str]]:
    """Yield the first and the second writer of a case: zarrfs and another implementation, in both orders.

    Each codec chain is written by all implementations. In the other cases they alternate, because all of them read
    the result.
    """
    others = case.peers[1:]
    for other in others if case.name.removeprefix("v3 ") in CHAINS else [others[number % len(others)]]:
        yield "zarrfs", other
        yield other, "zarrfs"


TABLE = [
    pytest.param(case, first, second, id=f"{case}, {first} then {second}")
    for number, case in enumerate(cases())
    for first, second in writers(number, case)
]


@pytest.mark.parametrize(("case", "first", "second"), TABLE)
def test_two_implementations_write_regions_of_one_array(
    case: Case, first: str, second: str, tmp_path: Path
) -> None:
    path = tmp_path / "a"
    created = zarrfs.create_array(path, shape=SHAPE, **case.options)
    expected_values = np.empty(SHAPE, created.dtype)
    expected_values[...] = created.fill_value
    values = sample(_numpy(case.options["dtype"]), (2, *SHAPE))
    for name, region, data in ((first, FIRST, values[0]), (second, SECOND, values[1])):
        IMPLEMENTATIONS[name](path, case).write(region, data[region])
        expected_values[region] = data[region]
    for name in case.peers:
        found = IMPLEMENTATIONS[name](path, case).read()
        if case.options["dtype"] == "int4":  # the upper four bits of the byte are undefined
            found, expected = np.asarray(found, "i1"), expected_values.astype("i1")
        else:
            found, expected = np.asarray(found, expected_values.dtype), expected_values
        assert same_bits(found, expected), f"{name} reads other values"
