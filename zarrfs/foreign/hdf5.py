"""HDF5 files as hierarchies."""

from __future__ import annotations

import math
import threading
from typing import Any

import numpy as np
import numpy.typing as npt

from zarrfs.engine.stores.databases.base import load_library
from zarrfs.errors import LocationError, ZarrError
from zarrfs.foreign.contiguous import path_stamp
from zarrfs.foreign.presented_store import (
    MAX_CHUNK_NBYTES,
    PresentedArray,
    PresentedStore,
    is_presentable,
    plane_chunks,
)
from zarrfs.tools.hdf5.objects import check_internal, objects

__all__ = ["open_hdf5"]

MAX_OBJECTS = 100_000
MAX_ATTRIBUTE_VALUES = 1000
"""Longer attributes are not presented."""


def open_hdf5(path: str) -> PresentedStore:
    """Return a store with the groups and numeric datasets of an HDF5 file.

    Links to other files, and datasets with values in other files, are not followed. Raises LocationError if the file
    cannot be read, and StoreError if h5py is missing.
    """
    h5py = load_library("h5py", "hdf5", "reading HDF5")
    try:
        file = h5py.File(path, "r")
    except (OSError, RuntimeError, ValueError) as error:
        raise LocationError(f"{path} cannot be read as HDF5: {error}") from error
    # The library is not safe to use from several threads, and closing a file while it is read can crash.
    lock = threading.Lock()
    try:
        nodes: dict[str, PresentedArray | dict[str, Any]] = {"": _attributes(file)}
        for count, entry in enumerate(objects(h5py, file, False)):
            if count >= MAX_OBJECTS:
                raise LocationError(f"{path} has more than {MAX_OBJECTS} objects; it is not presented")
            if entry.kind == "group":
                nodes[entry.path] = _attributes(entry.item)
            elif entry.kind == "dataset":
                array = _array(entry.item, lock)
                if array is not None:
                    nodes[entry.path] = array
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


def _array(dataset: Any, lock: threading.Lock) -> PresentedArray | None:
    """Return a dataset of numbers, or None for all others."""
    dtype, shape = np.dtype(dataset.dtype), dataset.shape
    if shape is None or not is_presentable(dtype):
        return None
    try:
        check_internal(dataset)
    except ZarrError:
        return None
    chunks = dataset.chunks
    if chunks is None or math.prod(chunks) * dtype.itemsize > MAX_CHUNK_NBYTES:
        chunks = plane_chunks(shape, dtype.itemsize)

    def read(region: tuple[slice, ...]) -> npt.NDArray[Any]:
        with lock:
            if not dataset.id.valid:
                raise OSError(0, "the file is closed")
            return np.asarray(dataset[region])

    labels = tuple(str(dimension.label) for dimension in dataset.dims)
    names = labels if labels and all(labels) else None
    return PresentedArray(tuple(shape), tuple(chunks), dtype, read, names, _attributes(dataset))


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
