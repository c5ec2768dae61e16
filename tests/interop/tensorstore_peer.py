"""TensorStore as one side of the comparison: arrays of its zarr and zarr3 drivers, and reading our arrays."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count, product
from typing import Any, NamedTuple

import numpy as np
import tensorstore as ts

from tests.documents import sharding
from tests.interop.samples import Data, Factors, sample

SHAPE = (5, 7)
CHUNKS = (2, 3)
SHARDS = (4, 6)

NUMBERS = ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
NUMBERS += ["float16", "float32", "float64", "complex64", "complex128"]
SMALL = ["int2", "int4", "bfloat16", "float8_e3m4", "float8_e4m3b11fnuz", "float8_e4m3fn", "float8_e4m3fnuz"]
SMALL += ["float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu", "float4_e2m1fn"]


class Case(NamedTuple):
    """One array to write: the driver, its ``metadata``, the NumPy dtype, and the factors for ``pairwise``."""

    name: str
    driver: str
    dtype: np.dtype[Any]
    metadata: dict[str, Any]
    factors: Factors

    @property
    def readable(self) -> bool:
        """Whether TensorStore can read our array.

        It returns fixed-length strings and void elements as strings of length zero. For v2 arrays of float4_e2m1fn,
        and for no other number, it requires a fill value in base64.
        """
        if self.dtype.isbuiltin == 2:
            return (self.driver, self.dtype.name) != ("zarr", "float4_e2m1fn")
        return self.dtype.kind not in "SV"

    def __str__(self) -> str:
        return self.name

    @property
    def data(self) -> Data:
        return sample(self.dtype, tuple(self.metadata["shape"]))


def write(case: Case) -> dict[str, bytes]:
    """Write the array of a case with TensorStore. Returns keys and values."""
    context = ts.Context()
    spec = {"driver": case.driver, "kvstore": "memory://", "metadata": case.metadata}
    array = ts.open(spec, context=context, create=True).result()
    data = case.data
    if array.ndim > data.ndim:
        # A fixed-length string is an additional dimension of characters.
        data = data[..., None].view("S1" if array.dtype == ts.char else "V1")
    array[...] = data
    store = ts.KvStore.open("memory://", context=context).result()
    return {key.decode(): store.read(key).result().value for key in store.list().result()}


def read(store: dict[str, bytes], driver: str) -> Data:
    """Read the array at the root with TensorStore."""
    context = ts.Context()
    target = ts.KvStore.open("memory://", context=context).result()
    for key, value in store.items():
        target.write(key, bytes(value)).result()
    array = ts.open({"driver": driver, "kvstore": "memory://"}, context=context, open=True).result()
    return np.asarray(array.read().result())


# -- the matrix ----------------------------------------------------------------------------------------------


def tables() -> list[list[Case]]:
    """Return the possible cases of v2 and of v3."""
    return [list(cases_v2()), list(cases_v3())]


BLOSCS = list(
    zip(("lz4", "lz4hc", "blosclz", "zlib", "zstd"), ("shuffle", "bitshuffle", "noshuffle") * 2, strict=False)
)


def _codecs_v3(itemsize: int) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Yield the name and the bytes-to-bytes codecs of each chain."""
    yield "none", []
    for level in (0, 6):
        yield f"gzip-{level}", [{"name": "gzip", "configuration": {"level": level}}]
    for checksum in (False, True):
        yield f"zstd-{checksum}", [{"name": "zstd", "configuration": {"level": 3, "checksum": checksum}}]
    yield "crc32c", [{"name": "crc32c"}]
    yield "gzip+crc32c", [{"name": "gzip", "configuration": {"level": 1}}, {"name": "crc32c"}]
    for cname, shuffle in BLOSCS:
        options = {"cname": cname, "clevel": 5, "shuffle": shuffle, "typesize": itemsize, "blocksize": 0}
        yield f"blosc-{cname}-{shuffle}", [{"name": "blosc", "configuration": options}]


def cases_v3() -> Iterator[Case]:
    """Yield every combination of dtype, codec, order and sharding (none, index at the end, at the start, nested).

    The byte order and the four chunk key encodings alternate. The codecs process bytes: only the size of the
    elements is relevant to them.
    """
    numbers = count()
    for dtype in [*NUMBERS, *SMALL]:
        itemsize = ts.dtype(dtype).numpy_dtype.itemsize
        shards = ("none", "end", "start", "nested")
        for (codec, tail), order, shard in product(_codecs_v3(itemsize), ("C", "F", "inner F"), shards):
            if order == "inner F" and shard == "none":
                continue
            number = next(numbers)
            endian = "big" if number % 3 == 0 else "little"
            serializer = (
                {"name": "bytes", "configuration": {"endian": endian}} if itemsize > 1 else {"name": "bytes"}
            )
            transpose = {"name": "transpose", "configuration": {"order": [1, 0]}}
            chain = [*([transpose] if order == "inner F" else []), serializer, *tail]
            # A transpose codec before the sharding codec reverses the dimensions of the inner chunks.
            inner = CHUNKS[::-1] if order == "F" else CHUNKS
            if shard == "nested":
                chain = [sharding((1, 1), chain, index_location="start")]
            if shard != "none":
                chain = [sharding(inner, chain, index_location="start" if shard == "start" else "end")]
            if order == "F":
                chain = [transpose, *chain]
            metadata = {
                "shape": list(SHAPE),
                "data_type": dtype,
                "chunk_grid": {
                    "name": "regular",
                    "configuration": {"chunk_shape": list(CHUNKS if shard == "none" else SHARDS)},
                },
                "chunk_key_encoding": {
                    "name": ("default", "v2")[number % 2],
                    "configuration": {"separator": "/."[number // 2 % 2]},
                },
                "codecs": chain,
            }
            name = f"v3 {dtype} {endian} {codec} {order} {shard}"
            layout = f"{order} {shard}"
            factors = ((dtype, layout, endian), (itemsize, codec, endian, number % 4), (codec, layout))
            yield Case(name, "zarr3", ts.dtype(dtype).numpy_dtype, metadata, factors)


def cases_v2() -> Iterator[Case]:
    """Yield every combination of dtype, byte order, compressor, order and separator."""
    compressors: list[dict[str, Any] | None] = [
        None,
        *({"id": name, "level": 1} for name in ("zlib", "gzip", "bz2")),
    ]
    compressors += [{"id": "zstd", "level": 3}]
    compressors += [{"id": "blosc", "cname": cname, "clevel": 5, "shuffle": 1} for cname, _ in BLOSCS]
    swapped = [np.dtype(name).newbyteorder(">").str for name in NUMBERS if np.dtype(name).itemsize > 1]
    fixed = [np.dtype(name).str for name in NUMBERS] + swapped + ["|S5", "|V5"]
    for dtype, compressor, order, separator in product([*fixed, *SMALL], compressors, "CF", "./"):
        metadata = {
            "shape": list(SHAPE),
            "chunks": list(CHUNKS),
            "dtype": dtype,
            "compressor": compressor,
            "order": order,
            "dimension_separator": separator,
        }
        codec = "none" if compressor is None else f"{compressor['id']}-{compressor.get('cname', '')}"
        name = f"v2 {dtype} {codec} {order} {'dot' if separator == '.' else 'slash'}"
        numpy_dtype = np.dtype(dtype) if dtype not in SMALL else ts.dtype(dtype).numpy_dtype
        factors = ((dtype, order, separator), (numpy_dtype.itemsize, codec, order))
        yield Case(name, "zarr", numpy_dtype, metadata, factors)
