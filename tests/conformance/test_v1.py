"""Zarr storage specification, version 1. Metadata is read-only; data are written to existing arrays."""

from __future__ import annotations

import json
import zlib
from pathlib import Path
from typing import Any

import numcodecs
import numpy as np
import pytest

import zarrfs
from tests.documents import V1_ARRAY, changed, store_of
from zarrfs.errors import MetadataError, NodeNotFoundError

EXAMPLE: dict[str, Any] = {
    "chunks": [1000, 1000],
    "compression": "blosc",
    "compression_opts": {"clevel": 5, "cname": "lz4", "shuffle": 1},
    "dtype": "<f8",
    "fill_value": None,
    "order": "C",
    "shape": [10000, 10000],
    "zarr_format": 1,
}


def open_array(meta: dict[str, Any], attrs: Any = None, mode: Any = "r", **chunks: bytes) -> zarrfs.Array:
    return zarrfs.open_array(store_of({"meta": meta, "attrs": attrs or {}, **chunks}), mode=mode)


# -- Metadata ------------------------------------------------------------------------------------------


def test_metadata_example() -> None:
    blosc = numcodecs.Blosc("lz4", 5, 1)
    rows = np.arange(1e6).reshape(1000, 1000)
    array = open_array(EXAMPLE, **{"2.4": blosc.encode(rows)})
    assert (array.shape, array.chunks, array.dtype, array.order) == (
        (10000, 10000),
        (1000, 1000),
        np.dtype("<f8"),
        "C",
    )
    assert array.nchunks == 100
    assert array.fill_value is None
    assert array.metadata["compression_opts"] == EXAMPLE["compression_opts"]
    np.testing.assert_array_equal(array[2000:2003, 4990:5001][:, :10], rows[:3, 990:])


@pytest.mark.parametrize("key", sorted(set(EXAMPLE) - {"zarr_format"}))
def test_missing_required_metadata_keys(key: str) -> None:
    with pytest.raises(MetadataError, match=f'"{key}"'):
        open_array(changed(EXAMPLE, **{key: ...}))


def test_metadata_without_a_version_is_not_an_array() -> None:
    with pytest.raises(NodeNotFoundError):
        open_array(changed(EXAMPLE, zarr_format=...))


def test_other_metadata_keys_are_ignored() -> None:
    array = open_array(changed(V1_ARRAY, filters=[{"id": "delta"}], dimension_separator="/"))
    assert array.chunks == (10, 10)
    assert (array[:] == 42).all()


@pytest.mark.parametrize("order", ["C", "F"])
def test_metadata_order(order: Any) -> None:
    data = np.arange(6, dtype="<i4").reshape(2, 3)
    meta = changed(V1_ARRAY, shape=[2, 3], chunks=[2, 3], order=order)
    array = open_array(meta, **{"0.0": zlib.compress(data.tobytes(order=order))})
    np.testing.assert_array_equal(array[:], data)


# -- Data type encoding --------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["<f8", ">i4", "|b1", "|S12"])
def test_data_type_examples(dtype: str) -> None:
    data = np.array([0, 1, 1, 0]).astype(dtype)
    meta = changed(V1_ARRAY, shape=[4], chunks=[4], dtype=dtype, fill_value=None, compression=None)
    array = open_array(meta, **{"0": data.tobytes()})
    assert array.dtype == np.dtype(dtype)
    np.testing.assert_array_equal(array[:], data)


def test_data_type_byte_order_must_be_specified() -> None:
    with pytest.raises(MetadataError, match="/dtype: expected a byte order"):
        open_array(changed(V1_ARRAY, dtype="i4"))


def test_data_type_structured_example() -> None:
    dtype = [["r", "|u1"], ["g", "|u1"], ["b", "|u1"]]
    meta = changed(V1_ARRAY, shape=[2], chunks=[2], dtype=dtype, fill_value=None, compression=None)
    array = open_array(meta, **{"0": b"\1\2\3\4\5\6"})
    assert array[:].tolist() == [(1, 2, 3), (4, 5, 6)]


# -- Chunks --------------------------------------------------------------------------------------------


def test_chunk_keys_and_array_regions() -> None:
    chunk = zlib.compress(np.full((1000, 1000), 7, "|u1").tobytes())
    meta = changed(V1_ARRAY, shape=[10000, 10000], chunks=[1000, 1000], dtype="|u1", fill_value=0)
    array = open_array(meta, **{"2.4": chunk})
    assert array[1999:2001, 3999:4001].tolist() == [[0, 0], [0, 7]]
    assert array[2999:3001, 4999:5001].tolist() == [[7, 0], [0, 0]]


def test_missing_chunks_read_as_the_fill_value() -> None:
    assert (open_array(V1_ARRAY)[:] == 42).all()


def test_elements_of_edge_chunks_beyond_the_array_are_ignored() -> None:
    chunk = np.full((10, 10), 99, "<i4")
    chunk[:5, :5] = 1
    array = open_array(changed(V1_ARRAY, shape=[15, 15]), **{"1.1": zlib.compress(chunk.tobytes())})
    assert (array[10:, 10:] == 1).all()
    assert array[10:, 10:].shape == (5, 5)


# -- Attributes ----------------------------------------------------------------------------------------


def test_attributes_example() -> None:
    attributes = {"foo": 42, "bar": "apples", "baz": [1, 2, 3, 4]}
    assert open_array(V1_ARRAY, attributes).attrs.asdict() == attributes


def test_the_attributes_key_is_required() -> None:
    with pytest.raises(NodeNotFoundError):
        zarrfs.open(store_of({"meta": V1_ARRAY}))


# -- Example -------------------------------------------------------------------------------------------


def test_example(tmp_path: Path) -> None:
    (tmp_path / "meta").write_text(json.dumps(V1_ARRAY))
    (tmp_path / "attrs").write_text("{}")
    array = zarrfs.open_array(tmp_path, mode="r+")
    array[0:10, 0:10] = 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["0.0", "attrs", "meta"]
    array[0:10, 10:20] = 2
    array[10:20, :] = 3
    names = ["0.0", "0.1", "1.0", "1.1", "attrs", "meta"]
    assert sorted(path.name for path in tmp_path.iterdir()) == names
    chunk = np.frombuffer(zlib.decompress((tmp_path / "0.0").read_bytes()), "<i4")
    assert chunk.tolist() == [1] * 100
    expected = np.repeat([[1, 2], [3, 3]], 10, 0).repeat(10, 1)
    np.testing.assert_array_equal(zarrfs.open_array(tmp_path)[:], expected)
