"""Random options of arrays: formats, data types, chunk grids, codecs and fill values.

All codecs are lossless, so that the values that are read are bitwise equal to the written ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from hypothesis import strategies as st

from tests.documents import CRC32C, named, sharding
from tests.interop.samples import sample

__all__ = ["MAX_LENGTH", "Kind", "kinds", "palette"]

Kind = dict[str, Any]
"""The options of ``zarrfs.create_array``."""

MAX_LENGTH = 9
"""The maximum length of a dimension."""

INTEGERS = ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8"]
FLOATS = ["f4", "f8"]
NUMBERS = ["?", *INTEGERS, "f2", *FLOATS, "c8", "c16"]
SMALL = ["int2", "uint4", "int4", "bfloat16", "float8_e4m3fn", "float8_e5m2", "float4_e2m1fn"]
FIXED: list[Any] = ["M8[ns]", "M8[10us]", "m8[h]", "U6", "S5", "V3"]
RECORDS: list[Any] = [
    [("a", "<i4"), ("b", "<f8"), ("c", "S3")],
    [("a", "u1"), ("b", [("x", "<u2"), ("y", "<f4")]), ("c", "<U2")],
    [("a", "<i2", (2,)), ("b", "<M8[s]"), ("c", "?")],
]
SWAPPED = [">i2", ">u4", ">f8", ">c8", ">M8[s]", ">U3"]
VARIABLE = [str, bytes]


def palette(dtype: Any) -> np.ndarray[Any, Any]:
    """Return values of a data type, including extreme ones. The first is zero or its equivalent."""
    if dtype in VARIABLE:
        return sample("text" if dtype is str else "blobs", (8,))
    values = sample(dtype, (12,)).copy()
    values[0] = np.zeros((), values.dtype)
    return values


def _named(dtype: Any) -> np.dtype[Any]:
    """Return the NumPy dtype of one of the names above."""
    if dtype in SMALL:
        import ml_dtypes

        return np.dtype(getattr(ml_dtypes, dtype))
    return np.dtype(object) if dtype in VARIABLE else np.dtype(dtype)


@st.composite
def kinds(draw: st.DrawFn) -> tuple[Kind, np.ndarray[Any, Any]]:
    """Draw the options of an array to create, and the palette of its values."""
    zarr_format = draw(st.sampled_from([3, 3, 3, 2, 2, "n5", "draft2019"]))
    dtype = draw(st.sampled_from(_dtypes(zarr_format)))
    rank = draw(st.sampled_from([1, 1, 2, 2, 2, 3, 4] if zarr_format == "n5" else [0, 1, 1, 2, 2, 2, 3, 4]))
    shape = draw(st.lists(st.integers(0, MAX_LENGTH if rank < 3 else 4), min_size=rank, max_size=rank))
    chunks = draw(st.lists(st.integers(1, 5), min_size=rank, max_size=rank))
    numpy = _named(dtype)
    values = palette(numpy if dtype in SMALL else dtype)
    kind: Kind = {"shape": shape, "dtype": dtype, "zarr_format": zarr_format, "chunks": chunks}
    if zarr_format != "n5":
        kind["fill_value"] = values[draw(st.integers(0, len(values) - 1))]
    if draw(st.booleans()):
        kind["write_empty_chunks"] = draw(st.booleans())
    if zarr_format == 3:
        kind |= draw(_v3(dtype, numpy, tuple(shape), tuple(chunks)))
    elif zarr_format == 2:
        kind |= draw(_v2(dtype, numpy))
    elif zarr_format == "n5":
        kind["compressors"] = draw(st.sampled_from([None, "gzip", "zstd", BLOSC, {"id": "bz2", "level": 1}]))
    else:
        kind["order"] = draw(st.sampled_from("CF"))
        kind["compressors"] = draw(st.sampled_from([None, "gzip", {"id": "zlib", "level": 1}, BLOSC]))
    if zarr_format in (2, "draft2019") and draw(st.booleans()):
        kind["dimension_separator"] = draw(st.sampled_from("./"))
    return kind, values


def _dtypes(zarr_format: int | str) -> list[Any]:
    if zarr_format == "n5":
        return [*INTEGERS, *FLOATS]
    if zarr_format == "draft2019":
        return [*NUMBERS, ">i4", ">f8"]
    if zarr_format == 3:
        # Zarr v3 has no data type for a field that is an array.
        return [*NUMBERS, *FIXED, *RECORDS[:2], *VARIABLE, *SMALL]
    return [*NUMBERS, *FIXED, *RECORDS, *VARIABLE, *SWAPPED]


# -- codecs ----------------------------------------------------------------------------------------------------

BLOSC = {"id": "blosc", "cname": "lz4", "clevel": 3, "shuffle": 1, "blocksize": 0}


def _v3_tails(itemsize: int) -> list[list[Any]]:
    """Return chains of bytes->bytes codecs."""
    blosc = {"cname": "zstd", "clevel": 2, "shuffle": "bitshuffle", "typesize": itemsize, "blocksize": 0}
    return [
        [],
        [named("gzip", level=1)],
        [named("zstd", level=1, checksum=True)],
        [CRC32C],
        [named("blosc", **blosc)],
        [named("blosc", **(blosc | {"cname": "lz4", "shuffle": "shuffle", "blocksize": 32}))],
        [named("numcodecs.shuffle", elementsize=itemsize), named("numcodecs.zlib", level=1)],
        [named("numcodecs.lz4", acceleration=1), CRC32C],
        [named("numcodecs.fletcher32")],
    ]


def _serializers(dtype: Any) -> list[dict[str, Any]]:
    """Return the array->bytes codecs that take a data type."""
    if dtype is str:
        return [named("vlen-utf8")]
    if dtype is bytes:
        return [named("vlen-bytes")]
    found = [named("bytes", endian="little"), named("bytes", endian="big")]
    if dtype == "?" or dtype in ("u1", "u2", "i4", *SMALL[:3]):
        found.append(named("packbits"))
    if dtype in ("i4", "u8", "f4", "f8"):
        found.append(named("numcodecs.pcodec", level=3, mode_spec="auto"))
    return found


@st.composite
def _v3(
    draw: st.DrawFn,
    dtype: Any,
    numpy: np.dtype[Any],
    shape: tuple[int, ...],
    chunks: tuple[int, ...],
) -> Kind:
    rank = len(shape)
    orders = st.permutations(range(rank))

    def chain(inner: Sequence[dict[str, Any]] | None = None) -> list[dict[str, Any]]:
        head = []
        if rank and draw(st.booleans()):
            head.append(named("transpose", order=list(draw(orders))))
        if inner is not None:
            return [*head, *inner]
        if dtype in ("i4", "u8") and draw(st.booleans()):
            head.append(named("numcodecs.delta", dtype=f"<{dtype}"))
        serializer = draw(st.sampled_from(_serializers(dtype)))
        itemsize = numpy.itemsize if serializer["name"] == "bytes" else 1
        return [*head, serializer, *draw(st.sampled_from(_v3_tails(itemsize)))]

    separators = st.sampled_from("./")
    kind: Kind = {
        "chunk_key_encoding": named(draw(st.sampled_from(["default", "v2"])), separator=draw(separators)),
        "dimension_names": [None if i % 2 else f"d{i}" for i in range(rank)],
    }
    layout = draw(st.sampled_from(["plain", "plain", "options", "shards", "nested", "rectilinear", "runs"]))
    if layout == "options":
        kind["order"] = draw(st.sampled_from("CF"))
        return kind
    if layout == "plain":
        return kind | {"codecs": chain()}
    if layout == "rectilinear" or (layout == "runs" and not rank):
        return kind | {"chunks": _grid([draw(_edges(length)) for length in shape]), "codecs": chain()}
    # Shards of one or two inner chunks per dimension; nested shards have inner chunks of one element.
    times = draw(st.lists(st.integers(1, 2), min_size=rank, max_size=rank))
    shards = [length * count for length, count in zip(chunks, times, strict=True)]
    order = list(draw(orders))
    deepest = chain()
    if layout == "nested":
        deepest = [sharding([1] * rank, deepest, index_location=draw(st.sampled_from(["start", "end"])))]
    # The inner chunk shape is given in the order of the dimensions after the transposition.
    inner = [chunks[axis] for axis in order]
    codecs = [
        named("transpose", order=order),
        sharding(inner, deepest, index_location=draw(st.sampled_from(["start", "end"]))),
    ]
    if order == sorted(order):
        codecs = codecs[1:]
    grid: Any = shards
    if layout == "runs":
        # Shards of several lengths, each a multiple of the inner chunk.
        grid = _grid([[[length, 2], length * 2, [length, MAX_LENGTH]] for length in chunks])
    if draw(st.sampled_from([False, False, True])):
        codecs = [*codecs, CRC32C]
    return kind | {"chunks": grid, "codecs": codecs}


def _grid(edges: Sequence[Any]) -> dict[str, Any]:
    return named("rectilinear", kind="inline", chunk_shapes=list(edges))


@st.composite
def _edges(draw: st.DrawFn, length: int) -> Any:
    """Draw the chunk lengths of a dimension: one for all, or a list that sums up to its length at least."""
    if draw(st.booleans()):
        return draw(st.integers(1, 4))
    listed: list[Any] = []
    total = 0
    while total < length:
        size, count = draw(st.integers(1, 5)), draw(st.integers(1, 2))
        listed.append(size if count == 1 else [size, count])
        total += size * count
    return listed


@st.composite
def _v2(draw: st.DrawFn, dtype: Any, numpy: np.dtype[Any]) -> Kind:
    kind: Kind = {"order": draw(st.sampled_from("CF"))}
    compressors = [
        None,
        {"id": "zlib", "level": 1},
        {"id": "zstd", "level": 1},
        BLOSC,
        {"id": "bz2", "level": 1},
    ]
    kind["compressors"] = draw(st.sampled_from([*compressors, {"id": "lz4", "acceleration": 1}]))
    if dtype in VARIABLE:
        return kind
    filters: list[Any] = [None, [{"id": "crc32"}], [{"id": "shuffle", "elementsize": numpy.itemsize}]]
    if dtype in (*INTEGERS, ">i2", ">u4"):
        filters.append([{"id": "delta", "dtype": numpy.str}])
    if dtype == "?":
        filters.append([{"id": "packbits"}])
    kind["filters"] = draw(st.sampled_from(filters))
    if draw(st.sampled_from([False, False, False, True])) and not numpy.hasobject:
        del kind["filters"]
    return kind
