"""Zarr v1: the examples of the specification, invalid documents, and refusal of writes."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numcodecs
import numpy as np
import pytest

import zarrfs
from zarrfs.engine.formats import api as formats
from zarrfs.engine.formats.v1 import parse_array
from zarrfs.engine.formats.v2 import array_document as array_document_v2
from zarrfs.engine.model import ArraySpec
from zarrfs.engine.stores.local.store import LocalStore
from zarrfs.engine.stores.memory import MemoryStore
from zarrfs.errors import MetadataError, UnsupportedError

HERE = "image.zarr/meta"
SPEC_EXAMPLE: dict[str, Any] = {
    "chunks": [1000, 1000],
    "compression": "blosc",
    "compression_opts": {"clevel": 5, "cname": "lz4", "shuffle": 1},
    "dtype": "<f8",
    "fill_value": None,
    "order": "C",
    "shape": [10000, 10000],
    "zarr_format": 1,
}


def document(**changes: Any) -> dict[str, Any]:
    return {key: value for key, value in (SPEC_EXAMPLE | changes).items() if value is not ...}


def store_of(meta: Any, attrs: Any = None, **chunks: bytes) -> MemoryStore:
    values = {"meta": json.dumps(meta).encode(), "attrs": json.dumps(attrs or {}).encode()}
    return MemoryStore(values | {key.lstrip("k").replace("_", "."): value for key, value in chunks.items()})


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize(
    ("compression", "options", "codec"),
    [
        (None, None, None),
        ("none", None, None),
        ("zlib", 3, {"id": "zlib", "level": 3}),
        ("zlib", None, {"id": "zlib"}),
        ("bz2", 1, {"id": "bz2", "level": 1}),
        ("lzma", {"format": 1, "check": -1, "preset": None, "filters": None}, {"id": "lzma"}),
        ("lzma", None, {"id": "lzma"}),
        (
            "blosc",
            {"cname": "zstd", "clevel": 1, "shuffle": 2},
            {"id": "blosc", "cname": "zstd", "clevel": 1, "shuffle": 2},
        ),
    ],
    ids=str,
)
def test_supported_compression(compression: Any, options: Any, codec: Any, order: str) -> None:
    data = np.arange(6, dtype=">u2").reshape(2, 3)
    raw = data.tobytes(order="F" if order == "F" else "C")
    chunk = raw if codec is None else bytes(numcodecs.get_codec(dict(codec)).encode(raw))
    meta = document(
        shape=[2, 3],
        chunks=[2, 3],
        dtype=">u2",
        order=order,
        compression=compression,
        compression_opts=options,
    )
    np.testing.assert_array_equal(zarrfs.open_array(store_of(meta, k0_0=chunk))[...], data)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"zarr_format": 2}, "/zarr_format: expected 1"),
        ({"zarr_format": True}, "/zarr_format: expected 1"),
        ({"shape": [-1, 1]}, "/shape/0"),
        ({"chunks": [0, 1]}, "/chunks/0"),
        ({"dtype": "i4"}, "/dtype"),
        ({"dtype": "|O"}, "/dtype: Zarr v1 does not specify"),
        ({"order": "A"}, "/order"),
        ({"compression": "snappy"}, '/compression: "snappy" is not supported'),
        ({"compression": 3}, "/compression: expected a string"),
        ({"compression": "zlib", "compression_opts": "much"}, "/compression_opts: expected the level"),
        ({"compression": "zlib", "compression_opts": True}, "/compression_opts: expected the level"),
        ({"compression": "blosc", "compression_opts": 5}, "/compression_opts: expected an object"),
        ({"fill_value": "none"}, "/fill_value"),
    ],
    ids=str,
)
def test_invalid_documents(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(MetadataError) as caught:
        parse_array(document(**changes), {}, HERE)
    assert str(caught.value).startswith(HERE)
    assert words in str(caught.value)


def test_unrelated_files_of_the_same_names_are_not_an_array(tmp_path: Path) -> None:
    assert formats.read_node(MemoryStore({"meta": b"words"}), "") is None
    assert formats.read_node(store_of({"some": "settings"}), "") is None
    (tmp_path / "meta").mkdir()
    (tmp_path / "attrs").mkdir()
    assert formats.read_node(LocalStore(tmp_path), "") is None
    assert formats.read_kind(LocalStore(tmp_path), "") is None


def test_v1_is_not_written_but_the_spec_can_be_written_as_v2() -> None:
    store = store_of(document())
    spec = formats.read_node(store, "")
    assert isinstance(spec, ArraySpec)
    for write in (formats.write_node, formats.write_attributes):
        with pytest.raises(UnsupportedError, match="migrate"):
            write(store, "", spec)
    with pytest.raises(UnsupportedError, match="migrate"):
        formats.check_writable(spec)
    migrated = array_document_v2(replace(spec, zarr_format=2, document={}))
    assert migrated["compressor"]["id"] == "blosc"
    assert migrated["dtype"] == "<f8"
