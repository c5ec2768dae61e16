"""zarrfs as one side of the comparison: read an array of another implementation, and write an equal array."""

from __future__ import annotations

import json
from typing import Any

import zarrfs
from tests.interop.samples import Data


def read(store: dict[str, bytes]) -> Data:
    """Read the array at the root without a cache."""
    data: Data = zarrfs.open_array(store, cache_size=0)[...]
    return data


def rewrite(theirs: dict[str, bytes], data: Data) -> dict[str, bytes]:
    """Create an array with the parameters of ``theirs``, write the data, and return the store."""
    ours: dict[str, bytes] = {}
    if "zarr.json" in theirs:
        document = json.loads(theirs["zarr.json"])
        options = {
            "chunks": document["chunk_grid"]["configuration"]["chunk_shape"],
            "codecs": document["codecs"],
            "chunk_key_encoding": document["chunk_key_encoding"],
        }
    else:
        document = json.loads(theirs[".zarray"])
        options = {
            "chunks": document["chunks"],
            "filters": document["filters"],
            "compressors": document["compressor"],
            "order": document["order"],
            "dimension_separator": document.get("dimension_separator", "."),
        }
    array = zarrfs.create_array(
        ours,
        shape=document["shape"],
        dtype=_dtype(theirs),
        fill_value=zarrfs.open_array(theirs).fill_value,
        zarr_format=document["zarr_format"],
        **options,
    )
    array[...] = data
    return ours


def _dtype(store: dict[str, bytes]) -> Any:
    array = zarrfs.open_array(store)
    if not array.dtype.hasobject:
        return array.dtype
    return {"string": str, "bytes": bytes}[array.spec.data_type.name]
