"""Zarr v3 codecs of the core: blosc, bytes, crc32c, gzip and transpose, version 1.0 each."""

from __future__ import annotations

import gzip
import zlib
from typing import Any

import numcodecs
import numpy as np
import pytest
from numcodecs import blosc

import zarrfs
from tests.documents import BIG, LITTLE, V3_ARRAY, changed, named, read_json, regular, sharding, store_of
from zarrfs.engine.stores.memory import MemoryStore
from zarrfs.errors import ChunkDecodeError, MetadataError


def stored(data: np.ndarray[Any, Any], *codecs: Any) -> MemoryStore:
    """Return a store with an array of one chunk that zarrfs wrote with these codecs."""
    store = MemoryStore()
    zarrfs.create_array(store, data=data, chunks=data.shape, codecs=list(codecs), write_empty_chunks=True)
    return store


def chunk_of(store: MemoryStore) -> bytes:
    (key,) = (key for key in store.values if key.startswith("c"))
    return store.values[key]


def decoded(chunk: bytes, shape: tuple[int, ...], data_type: str, *codecs: Any) -> np.ndarray[Any, Any]:
    """Return the array that zarrfs reads from a given chunk."""
    document = changed(
        V3_ARRAY, shape=list(shape), chunk_grid=regular(*shape), data_type=data_type, codecs=list(codecs)
    )
    if data_type.startswith("complex"):
        document["fill_value"] = [0, 0]
    elif data_type == "bool":
        document["fill_value"] = False
    elif data_type[0] == "r":
        document["fill_value"] = [0] * (int(data_type[1:]) // 8)
    result: np.ndarray[Any, Any] = zarrfs.open_array(
        store_of({"zarr.json": document, "/".join(["c", *("0" for _ in shape)]): chunk})
    )[...]
    return result


def refused(*codecs: Any, data_type: str = "uint16") -> None:
    with pytest.raises(MetadataError, match="codec"):
        zarrfs.open(store_of({"zarr.json": changed(V3_ARRAY, data_type=data_type, codecs=list(codecs))}))


# -- bytes ---------------------------------------------------------------------------------------------

MULTIBYTE = [
    *("int16", "int32", "int64", "uint16", "uint32", "uint64"),
    *("float16", "float32", "float64", "complex64", "complex128"),
]


@pytest.mark.parametrize("name", MULTIBYTE)
@pytest.mark.parametrize(("endian", "order"), [("little", "<"), ("big", ">")])
def test_bytes_in_either_byte_order(name: str, endian: str, order: Any) -> None:
    data = np.array([[0, 1, 2], [3, 100, 5]], name)
    if name.startswith("complex"):
        data = data + 7j * data
    raw = data.astype(data.dtype.newbyteorder(order)).tobytes()
    assert chunk_of(stored(data, named("bytes", endian=endian))) == raw
    np.testing.assert_array_equal(decoded(raw, (2, 3), name, named("bytes", endian=endian)), data)


def test_bytes_examples() -> None:
    assert chunk_of(stored(np.array([-2], "i4"), BIG)) == b"\xff\xff\xff\xfe"
    assert chunk_of(stored(np.array([1 - 2j], "c16"), BIG)) == bytes.fromhex(
        "3ff0000000000000c000000000000000"
    )


@pytest.mark.parametrize("endian", [None, "little", "big"])
@pytest.mark.parametrize(
    ("name", "raw"), [("int8", b"\xff\x00\x7f"), ("uint8", b"\xff\x00\x7f"), ("bool", b"\1\0\1")]
)
def test_bytes_of_single_bytes_need_no_byte_order(name: str, raw: bytes, endian: Any) -> None:
    codec = {"name": "bytes"} if endian is None else named("bytes", endian=endian)
    data = np.frombuffer(raw, name)
    assert decoded(raw, (3,), name, codec).tolist() == data.tolist()
    assert chunk_of(stored(data, codec)) == raw


@pytest.mark.parametrize("codec", [{"name": "bytes"}, LITTLE, BIG], ids=str)
def test_bytes_of_raw_bits_have_no_byte_order(codec: Any) -> None:
    raw = bytes(range(6))
    assert decoded(raw, (2,), "r24", codec).tobytes() == raw
    assert chunk_of(stored(np.frombuffer(raw, "V3"), codec)) == raw


@pytest.mark.parametrize("name", MULTIBYTE)
def test_bytes_of_multibyte_elements_need_a_byte_order(name: str) -> None:
    document = changed(V3_ARRAY, data_type=name, fill_value=[0, 0] if name.startswith("complex") else 0)
    for codecs, place in (
        (["bytes"], "/codecs/0"),
        ([named("transpose", order=[0]), "bytes"], "/codecs/1"),
        ([sharding([2], ["bytes"])], "/codecs/0/configuration/codecs/0"),
        ([sharding([2], index_codecs=["bytes"])], "/codecs/0/configuration/index_codecs/0"),
    ):
        expected = rf'{place}/configuration/endian: expected "little" or "big"'
        with pytest.raises(MetadataError, match=expected):
            zarrfs.open(store_of({"zarr.json": document | {"codecs": codecs}}))


@pytest.mark.parametrize("endian", ["native", "LITTLE", "<", 1, None])
def test_bytes_refuse_other_byte_orders(endian: Any) -> None:
    refused(named("bytes", endian=endian))


# -- transpose -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("order", [[0, 1, 2], [2, 0, 1], [1, 2, 0], [2, 1, 0]], ids=str)
def test_transpose(order: list[int]) -> None:
    data = np.arange(24, dtype="u1").reshape(2, 3, 4)
    codecs = (named("transpose", order=order), {"name": "bytes"})
    # As specified: B_shape[i] = A_shape[order[i]], and B[B_pos] = A[A_pos] where B_pos[i] = A_pos[order[i]].
    encoded = np.zeros([data.shape[axis] for axis in order], "u1")
    for position in np.ndindex(data.shape):
        encoded[tuple(position[axis] for axis in order)] = data[position]
    assert chunk_of(stored(data, *codecs)) == encoded.tobytes()
    np.testing.assert_array_equal(decoded(encoded.tobytes(), (2, 3, 4), "uint8", *codecs), data)


@pytest.mark.parametrize("order", ["C", "F", [1], [0, 0], [0, 1], [-1], [0.0], None])
def test_transpose_requires_a_permutation(order: Any) -> None:
    refused(named("transpose", order=order), LITTLE)


def test_transpose_requires_an_order() -> None:
    refused("transpose", LITTLE)
    refused(named("transpose"), LITTLE)


# -- gzip ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("level", range(10))
def test_gzip(level: int) -> None:
    data = np.arange(500, dtype="<u2")
    chunk = chunk_of(stored(data, LITTLE, named("gzip", level=level)))
    assert chunk[:3] == b"\x1f\x8b\x08"
    assert gzip.decompress(chunk) == data.tobytes()
    assert (len(chunk) > data.nbytes) == (level == 0)
    result = decoded(
        gzip.compress(data.tobytes(), level), (500,), "uint16", LITTLE, named("gzip", level=level)
    )
    np.testing.assert_array_equal(result, data)


@pytest.mark.parametrize("level", [-1, 10, 1.0, "1", True, None])
def test_invalid_gzip_levels_are_refused_for_writing(level: Any) -> None:
    with pytest.raises(MetadataError, match="level"):
        stored(np.arange(5, dtype="<u2"), LITTLE, named("gzip", level=level))


def test_gzip_is_not_zlib() -> None:
    with pytest.raises(ChunkDecodeError, match="gzip"):
        decoded(zlib.compress(bytes(4)), (4,), "uint8", "bytes", named("gzip", level=1))


# -- crc32c --------------------------------------------------------------------------------------------


def test_crc32c_is_appended_in_little_endian() -> None:
    """The check value of the checksum: 0xE3069283 for the digits 1 to 9."""
    data = np.frombuffer(b"123456789", "u1")
    assert chunk_of(stored(data, "bytes", "crc32c")) == b"123456789" + bytes.fromhex("839206e3")
    # RFC 3720, B.4: 32 bytes of zero.
    zeros = chunk_of(stored(np.zeros(32, "u1"), "bytes", "crc32c"))
    assert zeros[32:] == bytes.fromhex("aa36918a")


def test_a_wrong_crc32c_checksum_is_an_error() -> None:
    good = b"123456789" + bytes.fromhex("839206e3")
    assert decoded(good, (9,), "uint8", "bytes", "crc32c").tobytes() == b"123456789"
    for broken in (b"023456789" + good[9:], good[:9] + good[:8:-1], good[:9]):
        with pytest.raises(ChunkDecodeError, match="crc32c"):
            decoded(broken, (9,), "uint8", "bytes", "crc32c")


def test_crc32c_has_no_configuration() -> None:
    refused(LITTLE, named("crc32c", level=1))
    store = stored(np.ones(3, "u1"), "bytes", named("crc32c"))
    assert read_json(store, "zarr.json")["codecs"][1] == {"name": "crc32c"}


# -- blosc ---------------------------------------------------------------------------------------------

BLOSC = {"cname": "lz4", "clevel": 1, "shuffle": "shuffle", "typesize": 4, "blocksize": 0}
SHUFFLES = {"noshuffle": 0, "shuffle": 1, "bitshuffle": 2}


def test_blosc_example() -> None:
    data = np.arange(1000, dtype="<i4")
    store = stored(data, LITTLE, named("blosc", **BLOSC))
    assert read_json(store, "zarr.json")["codecs"][1] == named("blosc", **BLOSC)
    assert chunk_of(store) == bytes(numcodecs.Blosc("lz4", 1, 1).encode(data))


CNAMES = [
    name for name in ("lz4", "lz4hc", "blosclz", "zstd", "snappy", "zlib") if name in blosc.list_compressors()
]
"""Some builds of Blosc lack Snappy."""


@pytest.mark.parametrize("cname", CNAMES)
@pytest.mark.parametrize("shuffle", SHUFFLES)
def test_blosc_compressors_and_shuffles(cname: str, shuffle: str) -> None:
    data = np.arange(5000, dtype="<i4")
    codec = named("blosc", **BLOSC | {"cname": cname, "shuffle": shuffle})
    theirs = numcodecs.Blosc(cname, 5, SHUFFLES[shuffle])
    np.testing.assert_array_equal(decoded(theirs.encode(data), (5000,), "int32", LITTLE, codec), data)
    chunk = chunk_of(stored(data, LITTLE, codec))
    np.testing.assert_array_equal(np.frombuffer(theirs.decode(chunk), "<i4"), data)
    assert chunk[2] & 0b101 == {"noshuffle": 0, "shuffle": 1, "bitshuffle": 4}[shuffle]


@pytest.mark.parametrize("clevel", range(10))
def test_blosc_levels(clevel: int) -> None:
    data = np.arange(5000, dtype="<i4")
    chunk = chunk_of(stored(data, LITTLE, named("blosc", **BLOSC | {"clevel": clevel})))
    assert (len(chunk) > data.nbytes) == (clevel == 0)
    assert numcodecs.Blosc().decode(chunk) == data.tobytes()


def test_blosc_uses_the_configured_type_size_and_block_size() -> None:
    """Blosc rounds the block size up, so the expected size is that of Blosc for the same request."""
    data = np.arange(100000, dtype="<i2")
    codec = named("blosc", **BLOSC | {"typesize": 2, "blocksize": 131072})
    chunk = chunk_of(stored(data, LITTLE, codec))
    assert chunk[3] == 2
    assert chunk == bytes(numcodecs.Blosc("lz4", 1, 1, blocksize=131072).encode(data))
    assert chunk[8:12] != bytes(numcodecs.Blosc("lz4", 1, 1).encode(data))[8:12]


@pytest.mark.parametrize(
    "changes",
    [
        {"cname": "gzip"},
        {"cname": None},
        {"clevel": 10},
        {"clevel": -1},
        {"clevel": "5"},
        {"shuffle": 1},
        {"shuffle": "auto"},
        {"typesize": 0},
        {"typesize": None},
        {"blocksize": -1},
        {"blocksize": "auto"},
        {"nthreads": 4},
    ],
    ids=str,
)
def test_invalid_blosc_configurations_are_refused_for_writing(changes: dict[str, Any]) -> None:
    """Reading does not use the configuration: the header of the buffer contains all parameters."""
    with pytest.raises(MetadataError):
        stored(np.arange(5, dtype="<u2"), LITTLE, named("blosc", **changed(BLOSC, **changes)))


@pytest.mark.parametrize("typesize", [..., 0, -4, None, 7, "any"])
def test_blosc_without_shuffling_ignores_the_typesize(typesize: Any) -> None:
    data = np.arange(1000, dtype="<i4")
    codec = named("blosc", **changed(BLOSC, shuffle="noshuffle", typesize=typesize))
    chunk = numcodecs.Blosc("lz4", 1, 0).encode(data)
    np.testing.assert_array_equal(decoded(chunk, (1000,), "int32", LITTLE, codec), data)


@pytest.mark.parametrize(("dtype", "shuffle", "typesize"), [("i4", "shuffle", 4), ("u1", "bitshuffle", 1)])
@pytest.mark.parametrize(
    "compressors", ["auto", "blosc", {"name": "blosc"}, named("blosc", cname="lz4")], ids=str
)
def test_chosen_blosc_options_are_stored_in_the_metadata(
    compressors: Any, dtype: str, shuffle: str, typesize: int
) -> None:
    store = MemoryStore()
    zarrfs.create_array(store, shape=10, dtype=dtype, compressors=compressors)
    codec = read_json(store, "zarr.json")["codecs"][-1]
    assert (codec["name"], set(codec["configuration"])) == ("blosc", set(BLOSC))
    assert (codec["configuration"]["shuffle"], codec["configuration"]["typesize"]) == (shuffle, typesize)
