"""Zarr v3 codec ``sharding_indexed``, version 1.0."""

from __future__ import annotations

import gzip
import struct
from collections.abc import Sequence
from typing import Any

import google_crc32c
import numpy as np
import pytest

import zarrfs
from tests.documents import LITTLE, V3_ARRAY, changed, read_json, regular, sharding, store_of
from zarrfs.engine.stores.memory import MemoryStore
from zarrfs.errors import ChunkDecodeError, MetadataError

GZIP = {"name": "gzip", "configuration": {"level": 1}}
EMPTY = (2**64 - 1, 2**64 - 1)
TRANSPOSE = {"name": "transpose", "configuration": {"order": [1, 0]}}


def document(shape: Sequence[int], shard: Sequence[int], codec: Any, **changes: Any) -> dict[str, Any]:
    return changed(V3_ARRAY, shape=list(shape), chunk_grid=regular(*shard), codecs=[codec], **changes)


def index_of(entries: Sequence[tuple[int, int]], checksum: bool = True, order: str = "<") -> bytes:
    raw = b"".join(struct.pack(f"{order}QQ", *entry) for entry in entries)
    return raw + google_crc32c.value(raw).to_bytes(4, "little") if checksum else raw


def open_array(metadata: dict[str, Any], mode: Any = "r", **shards: bytes) -> zarrfs.Array:
    values = {f"c/{coords}": shard for coords, shard in shards.items()}
    return zarrfs.open_array(store_of({"zarr.json": metadata, **values}), mode=mode)


# -- Configuration parameters --------------------------------------------------------------------------


def test_the_configuration_example() -> None:
    codec = {
        "name": "sharding_indexed",
        "configuration": {
            "chunk_shape": [32, 32],
            "codecs": [LITTLE, GZIP],
            "index_codecs": [LITTLE, {"name": "crc32c"}],
            "index_location": "end",
        },
    }
    data = np.arange(64 * 64, dtype="<u2").reshape(64, 64)
    store = store_of({"zarr.json": document((64, 64), (64, 64), codec, data_type="uint16")})
    array = zarrfs.open_array(store, mode="r+")
    assert (array.shards, array.chunks) == ((64, 64), (32, 32))
    array[...] = data
    shard = store.values["c/0/0"]
    index = np.frombuffer(shard[-68:-4], "<u8").reshape(2, 2, 2)
    for i, j in np.ndindex(2, 2):
        offset, nbytes = index[i, j].tolist()
        inner = data[32 * i : 32 * i + 32, 32 * j : 32 * j + 32]
        assert gzip.decompress(shard[offset : offset + nbytes]) == inner.tobytes()
    array.resize(64, 128)
    assert read_json(store, "zarr.json")["codecs"] == [codec]
    created = MemoryStore()
    zarrfs.create_array(
        created, shape=(64, 64), dtype="u2", chunks=(32, 32), shards=(64, 64), compressors=[GZIP]
    )
    assert read_json(created, "zarr.json")["codecs"] == [codec]


def test_inner_chunks_per_shard() -> None:
    """An inner chunk shape of [32, 2] in a shard of [64, 64]: 2 along the first dimension, 32 along the second."""
    array = open_array(document((64, 64), (64, 64), sharding((32, 2))), mode="r+")
    array[...] = 1
    shard = array.store.get("c/0/0")
    assert shard is not None
    assert len(shard) == 64 * 64 + 16 * 64 + 4


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"chunk_shape": [3]}, "divide"),
        ({"chunk_shape": [8]}, "divide"),
        ({"chunk_shape": [2, 2]}, "dimensions"),
        ({"chunk_shape": []}, "dimensions"),
        ({"chunk_shape": [0]}, "chunk_shape"),
        ({"chunk_shape": [2.0]}, "chunk_shape"),
        ({"chunk_shape": 2}, "chunk_shape"),
        ({"chunk_shape": ...}, "chunk_shape"),
        ({"codecs": ...}, "codecs"),
        ({"codecs": []}, "codecs"),
        ({"codecs": [GZIP]}, "exactly one"),
        ({"codecs": ["bytes", "bytes"]}, "exactly one"),
        ({"codecs": "bytes"}, "list of codecs"),
        ({"index_codecs": ...}, "index_codecs"),
        ({"index_codecs": ["crc32c"]}, "exactly one"),
        ({"index_codecs": [LITTLE, LITTLE]}, "exactly one"),
        ({"index_codecs": ["bytes"]}, "endian"),
        ({"index_codecs": [LITTLE, GZIP]}, "cannot be compressed"),
        (
            {"index_codecs": [LITTLE, {"name": "zstd", "configuration": {"level": 1, "checksum": False}}]},
            "compres",
        ),
        ({"index_location": "middle"}, "index_location"),
        ({"index_location": None}, "index_location"),
        ({"write_order": "morton"}, "write_order"),
    ],
    ids=str,
)
def test_invalid_configurations(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(MetadataError, match=words):
        open_array(document((4,), (4,), sharding((2,), **changes)))


# -- Binary shard format -------------------------------------------------------------------------------


def test_the_index_example() -> None:
    """A shard of [64, 64] in inner chunks of [32, 32]: 16 * 4 + 4 = 68 bytes of index, in C order."""
    array = open_array(document((64, 64), (64, 64), sharding((32, 32))), mode="r+")
    array[...] = 1
    array[32:, :32] = 0
    shard = array.store.get("c/0/0")
    assert shard is not None
    shard = bytes(shard)
    assert len(shard) == 3 * 1024 + 68
    index = np.frombuffer(shard[-68:-4], "<u8").reshape(2, 2, 2)
    assert tuple(index[1, 0].tolist()) == EMPTY
    assert sorted(map(tuple, index.reshape(4, 2).tolist())) == [(0, 1024), (1024, 1024), (2048, 1024), EMPTY]
    assert int.from_bytes(shard[-4:], "little") == google_crc32c.value(shard[-68:-4])


def test_the_index_shape_is_the_chunks_per_shard_and_2() -> None:
    array = open_array(document((128, 128), (128, 128), sharding((32, 32), index_codecs=[LITTLE])), mode="r+")
    array[0, 0] = 1
    shard = array.store.get("c/0/0")
    assert shard is not None
    assert len(shard) == 32 * 32 + 4 * 4 * 2 * 8


@pytest.mark.parametrize("location", [..., "end", "start"])
@pytest.mark.parametrize(
    ("index_codecs", "checksum", "order"),
    [
        ([LITTLE, "crc32c"], True, "<"),
        ([LITTLE], False, "<"),
        ([{"name": "bytes", "configuration": {"endian": "big"}}], False, ">"),
        ([{"name": "bytes", "configuration": {"endian": "big"}}, "crc32c"], True, ">"),
    ],
    ids=str,
)
def test_index_location_and_codecs(location: Any, index_codecs: Any, checksum: bool, order: str) -> None:
    codec = sharding((2,), index_location=location, index_codecs=index_codecs)
    at_start = location == "start"
    size = 2 * 16 + 4 * checksum
    shift = size if at_start else 0
    index = index_of([(shift, 2), (shift + 2, 2)], checksum, order)
    shard = index + b"\1\2\3\4" if at_start else b"\1\2\3\4" + index
    assert open_array(document((4,), (4,), codec), **{"0": shard})[:].tolist() == [1, 2, 3, 4]
    array = open_array(document((4,), (4,), codec), mode="r+")
    array[:] = [1, 2, 3, 4]
    assert bytes(array.store.get("c/0") or b"") == shard


@pytest.mark.parametrize("location", ["end", "start"])
def test_inner_chunks_may_be_at_any_offset(location: str) -> None:
    """In any order, with unused space before, between and after, and two at the same offset."""
    codec = sharding((2,), index_location=location)
    shift = 68 if location == "start" else 0
    body = b"...\3\4.....\1\2......"
    index = index_of([(shift + 10, 2), (shift + 3, 2), EMPTY, (shift + 10, 2)])
    shard = index + body if location == "start" else body + index
    array = open_array(document((8,), (8,), codec, fill_value=9), mode="r+", **{"0": shard})
    assert array[:].tolist() == [1, 2, 3, 4, 9, 9, 1, 2]
    assert array[3] == 4
    array[0] = 7
    assert array[:].tolist() == [7, 2, 3, 4, 9, 9, 1, 2]
    assert zarrfs.open_array(array.store)[:].tolist() == [7, 2, 3, 4, 9, 9, 1, 2]


def test_empty_inner_chunks_read_as_the_fill_value() -> None:
    shard = index_of([EMPTY, EMPTY])
    array = open_array(document((4,), (4,), sharding((2,)), fill_value=7), **{"0": shard})
    assert array[:].tolist() == [7] * 4
    absent = open_array(document((4,), (4,), sharding((2,)), fill_value=7))
    assert absent[:].tolist() == [7] * 4


def test_inner_chunks_and_shards_of_only_the_fill_value_are_not_stored() -> None:
    array = open_array(document((8,), (4,), sharding((2,)), fill_value=7), mode="r+")
    array[:4] = [7, 7, 1, 2]
    assert bytes(array.store.get("c/0") or b"") == b"\1\2" + index_of([EMPTY, (0, 2)])
    array[:4] = 7
    assert not array.store.exists("c/0")


def test_the_index_of_an_edge_shard_has_its_full_shape() -> None:
    array = open_array(document((5,), (8,), sharding((2,)), fill_value=7), mode="r+")
    array[:] = [1, 2, 3, 4, 5]
    shard = b"\1\2\3\4\5\7" + index_of([(0, 2), (2, 2), (4, 2), EMPTY])
    assert bytes(array.store.get("c/0") or b"") == shard


def test_partial_writes_preserve_the_other_elements() -> None:
    codec = sharding((2,), codecs=["bytes", GZIP])
    array = open_array(document((6,), (6,), codec), mode="r+")
    array[:] = [1, 2, 3, 4, 5, 6]
    array[1:3] = [8, 9]
    assert array[:].tolist() == [1, 8, 9, 4, 5, 6]
    assert zarrfs.open_array(array.store)[:].tolist() == [1, 8, 9, 4, 5, 6]


@pytest.mark.parametrize(
    "shard",
    [
        b"",
        b"\1\2\3\4",
        b"\1\2\3\4" + index_of([(0, 2), (2, 2)])[1:],
        b"\1\2\3\4" + index_of([(0, 2), (2, 2)])[:-1] + b"\0",
        b"\1\2\3\4" + index_of([(0, 2), (2, 3)]),
        b"\1\2\3\4" + index_of([(0, 2), (2**63, 2)]),
        b"\1\2\3\4" + index_of([(0, 2), (2**64 - 1, 2)]),
        b"\1\2\3\4" + index_of([(0, 2), (2, 2**64 - 1)]),
    ],
    ids=range(8),
)
def test_corrupt_shards_do_not_read_as_the_fill_value(shard: bytes) -> None:
    array = open_array(document((4,), (4,), sharding((2,))), **{"0": shard})
    with pytest.raises(ChunkDecodeError, match="'c/0'"):
        array[2:]


# -- Sharding among other codecs -----------------------------------------------------------------------


def test_the_inner_chunk_shape_applies_to_the_input_of_the_codec() -> None:
    """After a transpose, the shard has the transposed shape."""
    data = np.arange(8, dtype="u1").reshape(2, 4)
    metadata = changed(V3_ARRAY, shape=[2, 4], chunk_grid=regular(2, 4), codecs=[TRANSPOSE, sharding((4, 1))])
    array = open_array(metadata, mode="r+")
    array[...] = data
    # The encoded array has shape (4, 2); its columns are the rows of the array.
    assert bytes(array.store.get("c/0/0") or b"") == bytes(range(8)) + index_of([(0, 4), (4, 4)])
    np.testing.assert_array_equal(zarrfs.open_array(array.store)[...], data)
    np.testing.assert_array_equal(zarrfs.open_array(array.store)[1, 1:3], data[1, 1:3])


def test_nested_shards() -> None:
    inner = sharding((1,), index_codecs=[LITTLE])
    metadata = document((4,), (4,), sharding((2,), codecs=[inner]), fill_value=0)
    array = open_array(metadata, mode="r+")
    array[:] = [1, 2, 0, 4]
    first = b"\1\2" + index_of([(0, 1), (1, 1)], checksum=False)
    second = b"\4" + index_of([EMPTY, (0, 1)], checksum=False)
    expected = first + second + index_of([(0, len(first)), (len(first), len(second))])
    assert bytes(array.store.get("c/0") or b"") == expected
    assert zarrfs.open_array(array.store)[:].tolist() == [1, 2, 0, 4]
    assert array[3] == 4


def test_bytes_to_bytes_codecs_after_the_sharding_codec() -> None:
    metadata = changed(V3_ARRAY, chunk_grid=regular(4), codecs=[sharding((2,)), GZIP])
    shard = b"\3\4\1\2" + index_of([(2, 2), (0, 2)])
    assert open_array(metadata, **{"0": gzip.compress(shard)})[:].tolist() == [1, 2, 3, 4]
