"""zarr-python 3 as one side of the comparison: small arrays with all its codecs and data types, and reading our
arrays.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count, product
from typing import Any

import numpy as np
import zarr
import zarr.codecs as zc
from zarr.core.buffer import default_buffer_prototype
from zarr.storage import MemoryStore

from tests.interop.samples import Data, Factors, sample

SHAPE = (5, 7)
CHUNKS = (2, 3)
SHARDS = (4, 6)

NUMBERS = ["bool", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "c8", "c16"]
TIMES = ["M8[s]", "M8[ns]", "M8[D]", "M8[10us]", "m8[ms]", "m8[h]"]
FIXED = ["U6", "S5", "V3"]
STRUCTURED = [
    [("a", "i4"), ("b", "f8"), ("s", "S3")],
    [("a", "u1"), ("n", [("x", "u2"), ("y", "f4")]), ("t", "U2")],
]
VARIABLE = ["text", "blobs"]
DTYPES: list[Any] = [*NUMBERS, *TIMES, *FIXED, *STRUCTURED, *VARIABLE]
SWAPPED = [">i2", ">i4", ">u8", ">f2", ">f4", ">f8", ">c8", ">c16", ">M8[ns]", ">m8[s]", ">U6"]


@dataclass(frozen=True)
class Case:
    """One array to write. ``create`` contains the arguments of ``zarr.create_array`` except for store and dtype.
    ``factors`` is for ``pairwise``.
    """

    name: str
    dtype: Any
    create: dict[str, Any] = field(hash=False)
    factors: Factors
    lossy: bool = False
    readable: bool = True
    """Whether zarr-python can read our array, which follows the specification."""

    def __str__(self) -> str:
        return self.name

    @property
    def data(self) -> Data:
        return sample(self.dtype, self.create["shape"])


@contextmanager
def quietly() -> Iterator[None]:
    """Suppress the warnings of zarr-python about data types and codecs without a final specification."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def write(case: Case) -> dict[str, bytes]:
    """Write the array of a case with zarr-python. Returns keys and values."""
    dtype: Any = case.dtype
    if dtype == "text":
        dtype = "string"
    elif dtype == "blobs":
        dtype = zarr.dtype.VariableLengthBytes()
    store: dict[str, Any] = {}
    with quietly():
        array = zarr.create_array(MemoryStore(store), dtype=dtype, **case.create)
        array[...] = case.data
    return {key: value.to_bytes() for key, value in store.items()}


def read(store: dict[str, bytes]) -> Data:
    """Read the array at the root with zarr-python."""
    make = default_buffer_prototype().buffer.from_bytes
    with quietly():
        array = zarr.open_array(
            MemoryStore({key: make(bytes(value)) for key, value in store.items()}), mode="r"
        )
        return np.asarray(array[...])


def tables() -> list[list[Case]]:
    """Return the possible cases of v2, of v3, and of the shapes and keys of v3."""
    with quietly():
        return [list(cases_v2()), list(cases_v3()), list(layouts_v3())]


# -- codecs --------------------------------------------------------------------------------------------------


def codecs_v3(dtype: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """Name and arguments of each codec chain that fits the dtype."""
    yield "none", {"compressors": None}
    yield "gzip", {"compressors": zc.GzipCodec(level=3)}
    yield "zstd", {"compressors": zc.ZstdCodec(level=3)}
    yield "zstd-checksum", {"compressors": zc.ZstdCodec(level=-1, checksum=True)}
    yield "crc32c", {"compressors": zc.Crc32cCodec()}
    yield "gzip+crc32c", {"compressors": [zc.GzipCodec(level=0), zc.Crc32cCodec()]}
    for cname, shuffle in zip(
        ("lz4", "lz4hc", "blosclz", "zlib", "zstd"), ("shuffle", "bitshuffle", "noshuffle") * 2, strict=False
    ):
        yield (
            f"blosc-{cname}-{shuffle}",
            {"compressors": zc.BloscCodec(cname=cname, shuffle=shuffle, typesize=4)},
        )
    for name in ("BZ2", "LZ4", "LZMA", "Zlib", "GZip", "Zstd", "Blosc"):
        yield f"numcodecs-{name}", {"compressors": getattr(zc, name)()}
    for name in ("CRC32", "CRC32C", "Adler32", "Fletcher32", "JenkinsLookup3"):
        yield f"numcodecs-{name}", {"compressors": [zc.Zlib(level=1), getattr(zc, name)()]}
    if dtype not in VARIABLE:
        shuffle = zc.Shuffle(elementsize=np.dtype(dtype).itemsize)
        yield "numcodecs-Shuffle", {"compressors": [shuffle, zc.Zstd(level=1)]}
    if dtype in NUMBERS[1:11]:
        yield "numcodecs-Delta", {"filters": zc.Delta(dtype=np.dtype(dtype).str)}
    if dtype in ("f4", "f8"):
        yield "numcodecs-Quantize", {"filters": zc.Quantize(digits=3, dtype=np.dtype(dtype).str)}
        yield "numcodecs-BitRound", {"filters": zc.BitRound(keepbits=7)}
    if dtype in ("i4", "f4", "f8"):
        yield "numcodecs-PCodec", {"serializer": zc.PCodec(level=3), "compressors": None}
    if dtype == "bool":
        yield "numcodecs-PackBits", {"filters": zc.PackBits()}
    if dtype == "u2":
        offset = {"offset": 10, "scale": 2, "dtype": "<u2", "astype": "<f8"}
        yield "numcodecs-FixedScaleOffset", {"filters": zc.FixedScaleOffset(**offset)}
        yield "numcodecs-AsType", {"filters": zc.AsType(encode_dtype="<u4", decode_dtype="<u2")}
    if dtype in NUMBERS or dtype in TIMES or dtype == "U6":
        yield "big-endian", {"serializer": zc.BytesCodec(endian="big"), "compressors": zc.ZstdCodec()}


def codecs_v2(dtype: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield what ``codecs_v3`` yields, with the compressors and filters of numcodecs."""
    import numcodecs as nc

    yield "none", {"compressors": None}
    for name in ("zlib", "gzip", "bz2", "lzma", "lz4", "zstd"):
        yield name, {"compressors": nc.get_codec({"id": name})}
    for cname, shuffle in zip(("lz4", "lz4hc", "blosclz", "zlib", "zstd"), (1, 2, 0, -1, 1), strict=True):
        yield f"blosc-{cname}", {"compressors": nc.Blosc(cname=cname, shuffle=shuffle)}
    if dtype in VARIABLE:
        return
    compressed = {"compressors": nc.Zlib(level=1)}
    for name in ("crc32", "crc32c", "adler32", "fletcher32", "jenkins_lookup3"):
        yield f"filter-{name}", {"filters": [nc.get_codec({"id": name})], **compressed}
    yield "filter-shuffle", {"filters": [nc.Shuffle(elementsize=np.dtype(dtype).itemsize)], **compressed}
    if dtype in NUMBERS[1:11] or dtype in SWAPPED[:6]:
        yield "delta", {"filters": [nc.Delta(dtype=np.dtype(dtype).str)], **compressed}
    if dtype in ("f4", "f8"):
        yield "quantize", {"filters": [nc.Quantize(digits=3, dtype=dtype)], **compressed}
        yield "bitround", {"filters": [nc.BitRound(keepbits=7)], **compressed}
    if dtype in ("i4", "f4", "f8"):
        yield "pcodec", {"compressors": nc.get_codec({"id": "pcodec"})}
    if dtype == "bool":
        yield "packbits", {"filters": [nc.PackBits()], **compressed}
    if dtype == "u2":
        offset = nc.FixedScaleOffset(offset=10, scale=2, dtype="<u2", astype="<f8")
        yield "fixedscaleoffset", {"filters": [offset], **compressed}
        yield "astype+delta", {"filters": [nc.AsType("<u4", "<u2"), nc.Delta("<u4")], **compressed}


# -- the matrix ----------------------------------------------------------------------------------------------

KEYS_V3 = [(name, separator) for name in ("default", "v2") for separator in "/."]


def cases_v3() -> Iterator[Case]:
    """Yield every combination of dtype, codec, order and sharding.

    The four chunk key encodings alternate, because they do not affect the bytes of a chunk; ``layouts_v3`` combines
    them all.
    """
    numbers = count()
    for dtype in DTYPES:
        for (codec, arguments), order, shards in product(codecs_v3(dtype), "CF", (None, SHARDS)):
            if _is_beyond_zarr_python(dtype, arguments, order, shards):
                continue
            create = _create_v3(arguments, order, shards, KEYS_V3[next(numbers) % 4])
            name = _name("v3", dtype, codec, order, "shards" if shards else "")
            # We write the registered names struct, r24 and bitround. zarr-python reads only its own names for them.
            is_readable = isinstance(dtype, str) and dtype != "V3" and "BitRound" not in codec
            factors = _factors(dtype, codec, arguments, f"{order} {shards}")
            yield Case(name, dtype, create, factors, _is_lossy(codec, dtype), readable=is_readable)


def _factors(dtype: Any, codec: str, arguments: dict[str, Any], layout: str) -> Factors:
    """Return the factors of a case for ``pairwise``. Codecs of bytes know only the size of the elements."""
    of_arrays = "filters" in arguments or "serializer" in arguments or dtype in VARIABLE
    element = str(dtype) if of_arrays else np.dtype(dtype).itemsize
    return ((str(dtype), layout), (element, codec), (codec, layout))


def _is_lossy(codec: str, dtype: Any) -> bool:
    """Return whether a codec changes values. Delta accumulates rounding errors of floats."""
    name = codec.rpartition("-")[2].lower()
    return name in ("quantize", "bitround", "fixedscaleoffset") or (name == "delta" and "f" in str(dtype))


def _is_beyond_zarr_python(dtype: Any, arguments: dict[str, Any], order: str, shards: Any) -> bool:
    """Return whether zarr-python 3.1 cannot read its own array.

    Its filters and variable-length codecs flatten a transposed array in memory order, and it cannot hash the fill value
    of a shard with void elements.
    """
    void = not isinstance(dtype, str) or dtype.startswith("V")
    flattened = (
        "filters" in arguments or dtype in VARIABLE or isinstance(arguments.get("serializer"), zc.PCodec)
    )
    return (order == "F" and flattened) or (void and shards is not None)


def _create_v3(
    arguments: dict[str, Any], order: str, shards: Any, keys: tuple[str, str], **more: Any
) -> dict[str, Any]:
    create = {"shape": SHAPE, "chunks": CHUNKS, "zarr_format": 3, "shards": shards, **arguments, **more}
    create["chunk_key_encoding"] = {"name": keys[0], "separator": keys[1]}
    if order == "F":
        filters = create.get("filters", ())
        filters = filters if isinstance(filters, list | tuple) else [filters]
        axes = tuple(range(len(create["shape"])))[::-1]
        create["filters"] = [zc.TransposeCodec(order=axes), *filters]
    return create


def layouts_v3() -> Iterator[Case]:
    """Yield every combination of order, key encoding, sharding and shape of array and chunks, for one dtype and
    codec.
    """
    inner = [zc.BytesCodec(), zc.ZstdCodec(level=1)]
    shapes = [((), (), ()), ((7,), (2,), (4,)), ((3, 4, 5), (2, 2, 3), (2, 4, 6)), ((0, 3), (2, 2), (2, 4))]
    shapes += [
        ((5, 7), (5, 7), (5, 7)),
        ((5, 7), (8, 9), (16, 9)),
        ((6, 8), (2, 4), (6, 8)),
        ((1, 1), (1, 1), (2, 3)),
    ]
    for (shape, chunks, shards), keys, order in product(shapes, KEYS_V3, "CF"):
        for kind in ("none", "end", "start", "nested"):
            arguments: dict[str, Any] = {
                "shape": shape,
                "chunks": chunks,
                "compressors": zc.GzipCodec(level=1),
            }
            if kind != "none" and not shape:
                continue
            if (
                kind == "nested"
                and order == "F"
                and any(n % c for n, c in zip(shards, chunks[::-1], strict=True))
            ):
                continue  # zarr-python compares the shapes with the shape before the transpose codec
            if kind == "nested":
                # In F order the transpose codec comes first, so that the dimensions of these codecs are reversed.
                innermost = zc.ShardingCodec(
                    chunk_shape=(1,) * len(shape), codecs=inner, index_location="start"
                )
                outer = zc.ShardingCodec(
                    chunk_shape=chunks[::-1] if order == "F" else chunks, codecs=[innermost]
                )
                arguments |= {"chunks": shards, "serializer": outer, "compressors": None}
            elif kind != "none":
                arguments["shards"] = {"shape": shards, "index_location": kind}
            create = _create_v3(arguments, order, arguments.pop("shards", None), keys)
            sizes = f"{'x'.join(map(str, shape))}-by-{'x'.join(map(str, chunks))}"
            factors = ((f"{sizes} {kind}", order, keys),)
            yield Case(_name("v3", sizes, *keys, order, kind), "u2", create, factors)


def cases_v2() -> Iterator[Case]:
    """Yield every combination of dtype, byte order, codec and order. The two separators alternate."""
    numbers = count()
    for dtype in [*DTYPES, *SWAPPED]:
        for (codec, arguments), order in product(codecs_v2(dtype), "CF"):
            if codec == "bitround" and order == "F":
                continue  # zarr-python writes the elements in the wrong order
            separator = "./"[next(numbers) // 3 % 2]
            create = {"shape": SHAPE, "chunks": CHUNKS, "zarr_format": 2, "order": order, **arguments}
            create["chunk_key_encoding"] = {"name": "v2", "separator": separator}
            name = _name("v2", dtype, codec, order, separator)
            nested = isinstance(dtype, list) and any(isinstance(entry[1], list) for entry in dtype)
            factors = _factors(dtype, codec, arguments, f"{order} {separator}")
            yield Case(name, dtype, create, factors, _is_lossy(codec, dtype), readable=not nested)


def _name(*parts: Any) -> str:
    words = ("dot" if p == "." else "slash" if p == "/" else str(p) for p in parts if str(p))
    return " ".join("struct" + str(len(w)) if w.startswith("[") else w for w in words)
