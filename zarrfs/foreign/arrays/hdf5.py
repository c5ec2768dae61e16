"""HDF5 files as hierarchies."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from zarrfs.engine.stores.databases.base import load_library
from zarrfs.errors import LocationError, UnsupportedError, ZarrError
from zarrfs.foreign.contiguous import path_stamp
from zarrfs.foreign.presented_store import (
    MAX_CHUNK_NBYTES,
    PresentedArray,
    PresentedStore,
    is_presentable,
    plane_chunks,
)
from zarrfs.tools.hdf5.objects import (
    check_internal,
    dimension_labels,
    is_node_name,
    objects,
    stored_regions,
)

__all__ = ["open_hdf5"]

MAX_OBJECTS = 100_000
MAX_ATTRIBUTE_VALUES = 1000
"""Longer attributes are not presented."""


def open_hdf5(path: str, allow_external: bool = False) -> PresentedStore:
    """Return a store with the groups and numeric datasets of an HDF5 file.

    Other objects are members that raise UnsupportedError when they are opened, and so are links to other files and
    datasets with values in other files, unless ``allow_external`` is set. Raises LocationError if the file cannot be
    read, and StoreError if h5py is missing.
    """
    h5py = load_library("h5py", "hdf5", "reading HDF5")
    try:
        file = h5py.File(path, "r")
    except (OSError, RuntimeError, ValueError) as error:
        raise LocationError(f"{path} cannot be read as HDF5: {error}") from error
    # The library is not safe to use from several threads, and closing a file while it is read can crash.
    lock = threading.Lock()
    try:
        nodes: dict[str, PresentedArray | dict[str, Any] | ZarrError] = {"": _attributes(file)}
        for count, entry in enumerate(objects(h5py, file, allow_external)):
            if count >= MAX_OBJECTS:
                raise LocationError(f"{path} has more than {MAX_OBJECTS} objects; it is not presented")
            if entry.kind == "group":
                nodes[entry.path] = _attributes(entry.item)
            elif entry.kind == "dataset":
                try:
                    nodes[entry.path] = _array(entry.item, lock, allow_external)
                except UnsupportedError as error:
                    nodes[entry.path] = UnsupportedError(f"{path}: {entry.path}: {error}")
            elif entry.kind == "broken":
                nodes[_member(entry.path)] = UnsupportedError(f"{path}: {entry.path}: {entry.reason}")
    except ZarrError:
        file.close()
        raise
    except (OSError, RuntimeError, ValueError, KeyError, TypeError) as error:
        file.close()
        raise LocationError(f"{path} cannot be read as HDF5: {error}") from error

    def close() -> None:
        with lock:
            file.close()

    return PresentedStore(f"file://{path}", nodes, lambda: path_stamp(path), close)


def _member(path: str) -> str:
    """Return the path under which an object is reported. Its own name may be invalid in Zarr."""
    parent, _, name = path.rpartition("/")
    shown = name if is_node_name(name) else f"invalid name {name}".replace("\\", "_")
    return f"{parent}/{shown}" if parent else shown


def _array(dataset: Any, lock: threading.Lock, allow_external: bool) -> PresentedArray:
    """Return a dataset of numbers. Raises UnsupportedError for all others."""
    dtype, shape = np.dtype(dataset.dtype), dataset.shape
    if shape is None:
        raise UnsupportedError("the dataset has a null dataspace and no values")
    if not is_presentable(dtype):
        raise UnsupportedError(f"the data type {dtype} is not numeric; zarrfs copy copies texts and records")
    if not allow_external:
        check_internal(dataset)
    chunks = dataset.chunks
    if chunks is None or math.prod(chunks) * dtype.itemsize > MAX_CHUNK_NBYTES:
        chunks = plane_chunks(shape, dtype.itemsize)
    stored = _stored_chunks(dataset, lock, tuple(chunks))

    def read(region: tuple[slice, ...]) -> npt.NDArray[Any]:
        with lock:
            if not dataset.id.valid:
                raise OSError(0, "the file is closed")
            return np.asarray(dataset[region])

    labels = tuple(dimension_labels(dataset))
    names = labels if labels and all(labels) else None
    return PresentedArray(tuple(shape), tuple(chunks), dtype, read, names, _attributes(dataset), stored)


def _stored_chunks(
    dataset: Any, lock: threading.Lock, chunks: tuple[int, ...]
) -> Callable[[], Iterator[tuple[int, ...]]] | None:
    """Return a function that returns the coordinates of the chunks that a dataset contains; None if it contains all.

    A small file can declare a dataset of any size.
    """
    if dataset.is_virtual or dataset.external or np.any(dataset.fillvalue):
        return None

    def stored() -> Iterator[tuple[int, ...]]:
        with lock:
            if not dataset.id.valid:
                raise OSError(0, "the file is closed")
            regions = list(stored_regions(dataset) or ())
        return (
            tuple(part.start // length for part, length in zip(region, chunks, strict=True))
            for region in regions
        )

    is_empty = dataset.chunks is None and dataset.id.get_storage_size() == 0
    return stored if is_empty or dataset.chunks == chunks else None


def _attributes(item: Any) -> dict[str, Any]:
    """Return the attributes that JSON can represent."""
    attributes: dict[str, Any] = {}
    for name in item.attrs:
        try:
            value = item.attrs[name]
        except (OSError, RuntimeError, TypeError, ValueError, KeyError):
            continue  # a data type that h5py cannot read
        if isinstance(value, bytes):
            value = value.decode("utf-8", "replace")
        if isinstance(value, np.ndarray | np.generic):
            if value.dtype.kind not in "biufUS" or value.size > MAX_ATTRIBUTE_VALUES:
                continue
            value = value.astype(str).tolist() if value.dtype.kind == "S" else value.tolist()
        if isinstance(value, str | bool | int | float | list):
            attributes[str(name)] = value
    return attributes
