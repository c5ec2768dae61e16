"""Metadata documents of the formats, codecs as they are written in them, and stores with given values."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping, Sequence
from typing import Any

from zarrfs.engine.stores.memory import MemoryStore


def named(name: str, **configuration: Any) -> dict[str, Any]:
    """Return the metadata of a codec, or of another extension, of Zarr v3."""
    return {"name": name, "configuration": configuration}


LITTLE, BIG = named("bytes", endian="little"), named("bytes", endian="big")
CRC32C = {"name": "crc32c"}


def blosc(**changes: Any) -> dict[str, Any]:
    """Return the metadata of the Blosc codec, for elements of 4 bytes unless changed."""
    options = {"cname": "lz4", "clevel": 5, "shuffle": "shuffle", "typesize": 4, "blocksize": 0}
    return named("blosc", **options | changes)


def sharding(
    chunk_shape: Sequence[int], codecs: Sequence[Any] = (LITTLE,), /, **changes: Any
) -> dict[str, Any]:
    """Return the metadata of the sharding codec. Its configuration is changed; the value ``...`` removes a key."""
    options = {
        "chunk_shape": list(chunk_shape),
        "codecs": list(codecs),
        "index_codecs": [LITTLE, CRC32C],
        **changes,
    }
    return named("sharding_indexed", **{key: value for key, value in options.items() if value is not ...})


V1_ARRAY: dict[str, Any] = {
    "zarr_format": 1,
    "shape": [20, 20],
    "chunks": [10, 10],
    "dtype": "<i4",
    "compression": "zlib",
    "compression_opts": 1,
    "fill_value": 42,
    "order": "C",
}
V2_ARRAY: dict[str, Any] = {
    "zarr_format": 2,
    "shape": [4],
    "chunks": [2],
    "dtype": "|u1",
    "compressor": None,
    "fill_value": 0,
    "order": "C",
    "filters": None,
}
V3_ARRAY: dict[str, Any] = {
    "zarr_format": 3,
    "node_type": "array",
    "shape": [4],
    "data_type": "uint8",
    "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [2]}},
    "chunk_key_encoding": {"name": "default"},
    "fill_value": 0,
    "codecs": [{"name": "bytes"}],
}
V3_GROUP: dict[str, Any] = {"zarr_format": 3, "node_type": "group"}


def changed(document: Mapping[str, Any], **changes: Any) -> dict[str, Any]:
    """Return a copy of a document with keys changed; the value ``...`` removes a key."""
    whole = copy.deepcopy(dict(document)) | changes
    return {key: value for key, value in whole.items() if value is not ...}


def store_of(values: Mapping[str, Any]) -> MemoryStore:
    """Return a store with these values: bytes unchanged, other values as JSON."""
    store = MemoryStore()
    for key, value in values.items():
        store.set(key, value if isinstance(value, bytes) else json.dumps(value).encode())
    return store


def read_json(store: MemoryStore, key: str) -> Any:
    """Return the JSON document that is stored under the key."""
    return json.loads(bytes(store.values[key]))


def regular(*chunk_shape: int) -> dict[str, Any]:
    """Return the ``chunk_grid`` of Zarr v3 with chunks of this shape."""
    return {"name": "regular", "configuration": {"chunk_shape": list(chunk_shape)}}
