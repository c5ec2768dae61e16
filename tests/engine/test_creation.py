"""Creation of arrays with the same options in each writable format."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorstore

import zarrfs
from zarrfs.engine.create.chunk_shapes import guess_chunks
from zarrfs.engine.formats.api import WRITABLE_FORMATS
from zarrfs.engine.stores.memory import MemoryStore
from zarrfs.errors import MetadataError, UnsupportedError

DATA = np.arange(4 * 6 * 5, dtype="u2").reshape(4, 6, 5)
COMPRESSORS: list[Any] = [None, "gzip", "auto", {"name": "zstd", "configuration": {"level": 3}}]


@pytest.mark.parametrize("compressors", COMPRESSORS, ids=str)
@pytest.mark.parametrize("zarr_format", WRITABLE_FORMATS)
def test_the_same_options_create_an_array_in_each_format(
    zarr_format: int | str, compressors: Any, tmp_path: Path
) -> None:
    root = zarrfs.create_group(tmp_path / "s", zarr_format=zarr_format, attributes={"who": "me"})
    array = root.create_array(
        "inner/img", data=DATA, chunks=(2, 3, 2), compressors=compressors, attributes={"k": 1}
    )
    array[1, 2, 3] = 777
    expected = DATA.copy()
    expected[1, 2, 3] = 777
    opened = zarrfs.open_group(tmp_path / "s")["inner"]["img"]  # type: ignore[index]
    assert isinstance(opened, zarrfs.Array)
    assert opened.zarr_format == zarr_format
    assert opened.attrs["k"] == 1
    assert opened.chunks == (2, 3, 2)
    np.testing.assert_array_equal(opened, expected)
    assert zarrfs.open_group(tmp_path / "s").attrs["who"] == "me"


@pytest.mark.parametrize("compressors", COMPRESSORS, ids=str)
def test_tensorstore_reads_n5_arrays(compressors: Any, tmp_path: Path) -> None:
    zarrfs.create_group(tmp_path / "s", zarr_format="n5").create_array(
        "img", data=DATA, chunks=(2, 4, 2), compressors=compressors
    )
    spec = {"driver": "n5", "kvstore": {"driver": "file", "path": str(tmp_path / "s" / "img")}}
    values = tensorstore.open(spec, open=True).result().read().result()
    np.testing.assert_array_equal(values.T, DATA)


def test_values_of_the_chunks_option() -> None:
    for given, expected in [
        ("auto", (100, 100)),
        (True, (100, 100)),
        (None, (100, 100)),
        (False, (100, 100)),
        (30, (30, 30)),
        ((-1, 10), (100, 10)),
        ((None, 10), (100, 10)),
    ]:
        assert zarrfs.create_array(MemoryStore(), shape=(100, 100), chunks=given).chunks == expected
    big = guess_chunks((10_000, 10_000, 10_000), 2)
    assert np.prod(big) * 2 <= 1 << 20
    assert max(big) <= 2 * min(big)
    assert guess_chunks((10**9, 3), 8)[1] == 3
    auto = zarrfs.create_array(MemoryStore(), shape=(1000, 1000), dtype="f8", shards="auto")
    assert auto.shards is not None
    assert all(s % c == 0 for s, c in zip(auto.shards, auto.chunks, strict=True))


@pytest.mark.parametrize(
    "options",
    [
        {"shape": (-1,)},
        {"shape": 2.5},
        {},
        {"shape": (4, 4), "chunks": (2,)},
        {"shape": 4, "chunks": 0},
        {"shape": 4, "chunks": 2, "shards": 3},
        {"shape": 4, "codecs": ["gzip"]},
        {"shape": 4, "codecs": ["bytes"], "compressors": None},
        {"shape": 4, "dimension_names": ["a", "b"]},
        {"shape": 4, "dtype": "i2", "fill_value": "x"},
        {"shape": 4, "compressors": 5},
        {"shape": 4, "zarr_format": 2, "compressors": ["gzip", "zstd"]},
        {"shape": 4, "zarr_format": 2, "codecs": ["bytes"]},
        {"shape": 4, "chunk_key_encoding": "nonsense"},
    ],
    ids=str,
)
def test_invalid_options_are_refused_before_anything_is_written(options: dict[str, Any]) -> None:
    store = MemoryStore()
    with pytest.raises((MetadataError, TypeError)):
        zarrfs.create_array(store, **options)
    assert not list(store.list_prefix())


def test_shards_are_refused_in_formats_without_shards() -> None:
    for zarr_format in (2, "n5", "draft2019"):
        with pytest.raises(UnsupportedError, match="shards"):
            zarrfs.create_array(MemoryStore(), shape=4, shards=4, zarr_format=zarr_format)
    with pytest.raises(UnsupportedError, match="cannot be written"):
        zarrfs.create_array(MemoryStore(), shape=4, zarr_format=1)


RECTILINEAR = [
    ((3, 4, 3), (5, 2)),
    ([3, 4, 3], 5),
    ([[3, 2], 4], -1),
    {"name": "rectilinear", "configuration": {"kind": "inline", "chunk_shapes": [[3, 4, 3], 5]}},
]


@pytest.mark.parametrize("chunks", RECTILINEAR)
def test_chunk_lengths_per_dimension_create_a_rectilinear_grid(chunks: Any) -> None:
    data = np.arange(70).reshape(10, 7)
    array = zarrfs.create_array(MemoryStore(), data=data, chunks=chunks)
    assert array.metadata["chunk_grid"]["name"] == "rectilinear"
    assert (array[...] == data).all()
    array[2:8, 3:] = 0
    data[2:8, 3:] = 0
    reopened = zarrfs.open_array(array.store)
    assert (reopened[...] == data).all()
    assert (reopened.blocks[1, 0] == data[3 : 3 + reopened.chunks[0][1]][:, : reopened.chunks[1][0]]).all()  # type: ignore[index]


def test_invalid_chunk_lengths() -> None:
    for chunks, message in (
        (((3, 4), (5, 2)), "sum to at least 10"),
        (((3, 4, 3),), "1 dimensions"),
        (((3, 4, 0), 7), "chunk_shapes"),
        ((("a",), 7), "chunk_shapes"),
        ({"name": "hexagonal"}, "hexagonal"),
    ):
        with pytest.raises(MetadataError, match=message):
            zarrfs.create_array(MemoryStore(), shape=(10, 7), chunks=chunks)
    with pytest.raises(UnsupportedError, match="zarr_format 3"):
        zarrfs.create_array(MemoryStore(), shape=(10, 7), chunks=((5, 5), 7), zarr_format=2)
    with pytest.raises(MetadataError, match="either shards"):
        zarrfs.create_array(MemoryStore(), shape=(10, 7), chunks=((5, 5), 7), shards=(10, 7))


def test_the_chosen_byte_order_is_stored_in_the_metadata() -> None:
    for options in (
        {"codecs": ["bytes"]},
        {"serializer": "bytes"},
        {"codecs": [{"name": "bytes"}, "crc32c"]},
    ):
        store: dict[str, bytes] = {}
        zarrfs.create_array(store, data=np.arange(3), **options)
        assert zarrfs.open_array(store)[...].tolist() == [0, 1, 2]
        assert b'"endian": "little"' in store["zarr.json"]
    inner = {"chunk_shape": [1], "codecs": ["bytes"], "index_codecs": [{"name": "bytes"}, "crc32c"]}
    store = {}
    with pytest.raises(zarrfs.MetadataError, match="endian"):
        zarrfs.create_array(
            store, data=np.arange(3), codecs=[{"name": "sharding_indexed", "configuration": inner}]
        )
    assert not store
