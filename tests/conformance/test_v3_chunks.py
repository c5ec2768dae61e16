"""Zarr core specification 3.1: "Chunk grids", chunk key encodings, "Chunk encoding", and "Resizing"."""

from __future__ import annotations

import gzip
from typing import Any

import numpy as np
import pytest

import zarrfs
from tests.documents import LITTLE, V3_ARRAY, changed, read_json, regular, store_of
from zarrfs.engine.stores.memory import MemoryStore
from zarrfs.errors import ChunkDecodeError, MetadataError, UnsupportedError

TRANSPOSE = {"name": "transpose", "configuration": {"order": [0]}}
GZIP = {"name": "gzip", "configuration": {"level": 1}}


def created(**options: Any) -> tuple[MemoryStore, zarrfs.Array]:
    store = MemoryStore()
    return store, zarrfs.create_array(store, compressors=None, **options)


def chunk_keys(store: MemoryStore) -> set[str]:
    return {key for key in store.values if not key.endswith("zarr.json")}


# -- Regular grid --------------------------------------------------------------------------------------


def test_regular_grid_example() -> None:
    store, array = created(shape=(10, 200, 3000), chunks=(5, 20, 400), dtype="u1")
    assert array.nchunks == 2 * 10 * 8
    array[7, 150, 900] = 7
    assert chunk_keys(store) == {"c/1/7/2"}
    chunk = np.frombuffer(store.values["c/1/7/2"], "u1").reshape(5, 20, 400)
    assert np.argwhere(chunk).tolist() == [[2, 10, 100]]
    array[9, 199, 2999] = 1
    array[0, 0, 0] = 1
    assert chunk_keys(store) == {"c/0/0/0", "c/1/7/2", "c/1/9/7"}


def test_edge_chunks_have_the_full_shape_and_are_padded_with_the_fill_value() -> None:
    store, array = created(shape=(30, 30), chunks=(16, 16), dtype="u1", fill_value=9)
    array[...] = 1
    chunk = np.frombuffer(store.values["c/0/1"], "u1").reshape(16, 16)
    assert (chunk[:, :14] == 1).all()
    assert (chunk[:, 14:] == 9).all()
    corner = np.frombuffer(store.values["c/1/1"], "u1").reshape(16, 16)
    assert np.argwhere(corner == 1).max() == 13


def test_elements_of_edge_chunks_beyond_the_array_are_ignored() -> None:
    document = changed(V3_ARRAY, shape=[3], fill_value=5)
    array = zarrfs.open_array(store_of({"zarr.json": document, "c/1": b"\1\xff"}))
    assert array[:].tolist() == [5, 5, 1]


def test_uninitialized_elements_read_as_the_fill_value() -> None:
    document = changed(V3_ARRAY, fill_value=7)
    assert zarrfs.open_array(store_of({"zarr.json": document}))[:].tolist() == [7] * 4


def test_dimensions_of_length_0() -> None:
    document = changed(V3_ARRAY, shape=[0, 4], chunk_grid=regular(0, 2))
    array = zarrfs.open_array(store_of({"zarr.json": document}))
    assert array[...].shape == (0, 4)
    with pytest.raises(MetadataError, match="chunk_shape"):
        zarrfs.open_array(store_of({"zarr.json": changed(document, shape=[1, 4])}))


# -- Chunk key encodings -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("encoding", "key", "scalar"),
    [
        ("default", "c/1/23/45", "c"),
        ({"name": "default"}, "c/1/23/45", "c"),
        ({"name": "default", "configuration": {"separator": "/"}}, "c/1/23/45", "c"),
        ({"name": "default", "configuration": {"separator": "."}}, "c.1.23.45", "c"),
        ("v2", "1.23.45", "0"),
        ({"name": "v2", "configuration": {"separator": "."}}, "1.23.45", "0"),
        ({"name": "v2", "configuration": {"separator": "/"}}, "1/23/45", "0"),
    ],
    ids=str,
)
def test_chunk_key_encodings(encoding: Any, key: str, scalar: str) -> None:
    cube = changed(V3_ARRAY, shape=[2, 30, 50], chunk_grid=regular(1, 1, 1), chunk_key_encoding=encoding)
    assert zarrfs.open_array(store_of({"zarr.json": cube, key: b"\7"}))[1, 23, 45] == 7
    point = changed(V3_ARRAY, shape=[], chunk_grid=regular(), chunk_key_encoding=encoding)
    assert zarrfs.open_array(store_of({"zarr.json": point, scalar: b"\7"}))[()] == 7
    store, array = created(shape=(2, 30, 50), chunks=1, dtype="u1", chunk_key_encoding=encoding)
    array[1, 23, 45] = 7
    assert chunk_keys(store) == {key}
    assert zarrfs.open_array(store).nchunks_initialized == 1
    store, _ = created(data=np.uint8(7), chunk_key_encoding=encoding)
    assert chunk_keys(store) == {scalar}


@pytest.mark.parametrize("name", ["default", "v2"])
@pytest.mark.parametrize(
    "configuration", [{"separator": ""}, {"separator": "-"}, {"separator": None}, {"sep": "/"}]
)
def test_invalid_chunk_key_encodings(name: str, configuration: Any) -> None:
    encoding = {"name": name, "configuration": configuration}
    with pytest.raises(MetadataError, match="/chunk_key_encoding/configuration"):
        zarrfs.open(store_of({"zarr.json": changed(V3_ARRAY, chunk_key_encoding=encoding)}))


def test_new_arrays_have_the_default_encoding() -> None:
    store, _ = created(shape=4)
    assert read_json(store, "zarr.json")["chunk_key_encoding"] == {
        "name": "default",
        "configuration": {"separator": "/"},
    }


# -- Codecs --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "codecs",
    [
        [LITTLE],
        [TRANSPOSE, LITTLE],
        [TRANSPOSE, TRANSPOSE, LITTLE, GZIP, "crc32c"],
        [LITTLE, "crc32c", GZIP],
    ],
    ids=str,
)
def test_valid_codec_lists(codecs: Any) -> None:
    store = store_of({"zarr.json": changed(V3_ARRAY, codecs=codecs)})
    zarrfs.open_array(store, mode="r+")[:] = [1, 2, 3, 4]
    assert zarrfs.open_array(store)[:].tolist() == [1, 2, 3, 4]


@pytest.mark.parametrize(
    "codecs",
    [
        [],
        [TRANSPOSE],
        [GZIP],
        [LITTLE, LITTLE],
        [LITTLE, TRANSPOSE],
        [GZIP, LITTLE],
        [TRANSPOSE, GZIP, LITTLE],
        [LITTLE, GZIP, TRANSPOSE],
        [TRANSPOSE, GZIP],
    ],
    ids=str,
)
def test_invalid_codec_lists(codecs: Any) -> None:
    with pytest.raises(MetadataError, match="/codecs"):
        zarrfs.open(store_of({"zarr.json": changed(V3_ARRAY, codecs=codecs)}))


def test_codecs_encode_in_order_and_decode_in_reverse_order() -> None:
    data = np.arange(6, dtype="<u2").reshape(2, 3)
    codecs = [{"name": "transpose", "configuration": {"order": [1, 0]}}, LITTLE, GZIP, "crc32c"]
    document = changed(V3_ARRAY, shape=[2, 3], chunk_grid=regular(2, 3), data_type="uint16", codecs=codecs)
    store = store_of({"zarr.json": document})
    zarrfs.open_array(store, mode="r+")[...] = data
    assert gzip.decompress(store.values["c/0/0"][:-4]) == data.T.tobytes()
    np.testing.assert_array_equal(zarrfs.open_array(store)[...], data)


@pytest.mark.parametrize(
    ("data_type", "fill_value", "codec"),
    [
        ("string", "", {"name": "bytes"}),
        ("uint8", 0, {"name": "vlen-utf8"}),
        (
            "uint8",
            0,
            {
                "name": "sharding_indexed",
                "configuration": {"chunk_shape": [3], "codecs": ["bytes"], "index_codecs": [LITTLE]},
            },
        ),
    ],
    ids=str,
)
def test_codecs_that_do_not_support_the_decoded_representation(
    data_type: str, fill_value: Any, codec: Any
) -> None:
    document = changed(V3_ARRAY, data_type=data_type, fill_value=fill_value, codecs=[codec])
    with pytest.raises(MetadataError):
        zarrfs.open(store_of({"zarr.json": document}))


@pytest.mark.parametrize("chunk", [b"", b"\1", b"\1\2\3"])
def test_chunks_of_the_wrong_size_are_errors_and_not_missing(chunk: bytes) -> None:
    array = zarrfs.open_array(store_of({"zarr.json": V3_ARRAY, "c/0": chunk, "c/1": b"\7\7"}))
    with pytest.raises(ChunkDecodeError, match="'c/0'"):
        array[0:2]
    assert array[2:].tolist() == [7, 7]


# -- Implementation notes: resizing --------------------------------------------------------------------


def test_growing_writes_no_chunks_and_new_elements_read_as_the_fill_value() -> None:
    store, array = created(data=np.ones(3, "u1"), chunks=2, fill_value=9)
    before = {key: store.values[key] for key in chunk_keys(store)}
    array.resize(8)
    assert {key: store.values[key] for key in chunk_keys(store)} == before
    assert array[:].tolist() == [1, 1, 1, 9, 9, 9, 9, 9]
    assert read_json(store, "zarr.json")["shape"] == [8]


@pytest.mark.parametrize("delete", [True, False])
def test_shrinking_deletes_chunks_or_retains_them(delete: bool) -> None:
    store, array = created(data=np.ones(8, "u1"), chunks=2)
    array.resize(4, delete=delete)
    assert chunk_keys(store) == {f"c/{i}" for i in range(2 if delete else 4)}
    array.resize(8)
    assert array[4:].tolist() == [0 if delete else 1] * 4


# -- Rectilinear grids of the zarr-extensions registry --------------------------------------------------


def test_rectilinear_grids() -> None:
    grid = {"name": "rectilinear", "configuration": {"kind": "inline", "chunk_shapes": [[1, 3]]}}
    store = store_of({"zarr.json": changed(V3_ARRAY, chunk_grid=grid), "c/0": b"\7", "c/1": b"\1\2\3"})
    assert zarrfs.open_array(store)[:].tolist() == [7, 1, 2, 3]
    with pytest.raises(UnsupportedError, match="hexagonal"):
        zarrfs.open(store_of({"zarr.json": changed(V3_ARRAY, chunk_grid="hexagonal")}))
