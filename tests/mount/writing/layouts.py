"""Arrays of every layout, and operations of a writable mount, for the tests of this package."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

import zarrfs
from zarrfs.engine.stores.base import Store
from zarrfs.mount.tree.tree import Tree
from zarrfs.mount.writing.operations import WritableOperations
from zarrfs.mount.writing.write_buffer import WriteBuffer

__all__ = ["LAYOUTS", "SHAPE", "create_array", "operations_of", "read_file", "write_file"]

SHAPE = (9, 10, 11)

LAYOUTS: dict[str, dict[str, Any]] = {
    "uncompressed": {"chunks": (4, 5, 6), "compressors": None},
    "compressed": {"chunks": (4, 5, 6)},
    "sharded": {"chunks": (2, 5, 3), "shards": (4, 10, 12)},
    "F order": {"chunks": (4, 5, 6), "order": "F", "zarr_format": 2},
    "big-endian": {"chunks": (4, 5, 6), "dtype": ">u2", "zarr_format": 2},
    "n5": {"chunks": (4, 5, 6), "zarr_format": "n5"},
    "one chunk": {"chunks": SHAPE, "dtype": "<f8"},
}


def create_array(location: Store | str | Path, layout: str, name: str = "img") -> np.ndarray[Any, Any]:
    """Create a group with one array of a layout. Return its elements."""
    options = dict(LAYOUTS[layout])
    dtype = options.pop("dtype", "<u2")
    data = np.arange(np.prod(SHAPE)).reshape(SHAPE).astype(dtype)
    place: Any = location
    root = zarrfs.create_group(place, zarr_format=options.get("zarr_format", 3))
    root.create_array(name, data=data, **options)
    return data


def operations_of(
    location: Store | str | Path, write_buffer: WriteBuffer | None = None, **options: Any
) -> WritableOperations:
    """Return the operations of a writable mount of a store."""
    place: Any = location
    tree = Tree(zarrfs.open(place, mode="r+"))
    return WritableOperations(tree, lambda: None, write_buffer=write_buffer, **options)


def write_file(operations: WritableOperations, path: str, content: bytes, size: int = 1 << 20) -> None:
    """Write a new file as ``cp`` does. Raises the error of closing it."""
    handle = operations.create(path, 0o644)
    try:
        for start in range(0, len(content), size):
            operations.write(path, content[start : start + size], start, handle)
        operations.flush(path, handle)
    finally:
        operations.release(path, handle)


def read_file(operations: WritableOperations, path: str) -> bytes:
    """Return the content of a file."""
    handle = operations.open(path, 0)
    try:
        return bytes(operations.read(path, operations.getattr(path)["st_size"], 0, handle))
    finally:
        operations.release(path, handle)
