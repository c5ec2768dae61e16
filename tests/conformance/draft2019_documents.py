"""Documents of the editor's draft of Zarr v3 of 19 June 2019: the examples of the specification."""

from __future__ import annotations

from typing import Any

__all__ = ["BOOTSTRAP", "CORE", "EXAMPLE", "GZIP"]

CORE = "https://purl.org/zarr/spec/protocol/core/3.0"
BOOTSTRAP: dict[str, Any] = {
    "zarr_format": CORE,
    "metadata_encoding": "application/json",
    "extensions": [],
}
GZIP = {"codec": "http://purl.org/zarr/spec/codec/gzip", "configuration": {"level": 1}}
EXAMPLE: dict[str, Any] = {
    "shape": [10000, 1000],
    "data_type": "<f8",
    "chunk_grid": {"type": "regular", "chunk_shape": [1000, 100]},
    "chunk_memory_layout": "C",
    "compressor": GZIP,
    "fill_value": "NaN",
    "extensions": [],
    "attributes": {"foo": 42, "bar": "apples", "baz": [1, 2, 3, 4]},
}
