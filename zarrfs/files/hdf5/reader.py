"""HDF5 files as hierarchies."""

from __future__ import annotations

import itertools
import math
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from zarrfs.errors import LocationError, MetadataError, UnsupportedError, ZarrError
from zarrfs.files.contiguous import path_stamp
from zarrfs.files.foreign_array import (
    MAX_CHUNK_NBYTES,
    EncodedForeignArray,
    ForeignArray,
    is_presentable,
    plane_chunks,
)
from zarrfs.files.foreign_store import ForeignStore
from zarrfs.files.hdf5.attributes import FILL_VALUE, attributes_of, dimension_names, encoded_missing
from zarrfs.files.hdf5.objects import Entry, check_internal, is_node_name, objects, stored_regions
from zarrfs.files.hdf5.records import RecordDimensions, has_record_dimensions
from zarrfs.libraries import load_library
from zarrfs.logs import logger

__all__ = ["open_hdf5"]

MAX_OBJECTS = 100_000
MAX_NAMED_ATTRIBUTES = 5
"""The maximum number of attributes that a message names."""


def open_hdf5(path: str, allow_external: bool = False) -> ForeignStore:
    """Return a store with the groups of an HDF5 file, and its datasets of numbers, texts and records.

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
        lost: list[str] = []
        entries = list(itertools.islice(objects(h5py, file, allow_external), MAX_OBJECTS + 1))
        if len(entries) > MAX_OBJECTS:
            raise LocationError(f"{path} has more than {MAX_OBJECTS} objects; it is not presented")
        datasets = [entry.item for entry in entries if entry.kind == "dataset"]
        records = RecordDimensions(h5py, datasets if has_record_dimensions(h5py, file) else ())
        nodes: dict[str, ForeignArray | dict[str, Any] | ZarrError] = {
            "": _attributes(file, "/", lost) | records.attributes("")
        }
        for entry in entries:
            if entry.kind == "group":
                nodes[entry.path] = _attributes(entry.item, entry.path, lost) | records.attributes(entry.path)
            elif entry.kind == "dataset":
                try:
                    nodes[entry.path] = _array(entry, lock, allow_external, lost, records)
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

    if lost:
        more = f"; and {len(lost) - MAX_NAMED_ATTRIBUTES} more" if len(lost) > MAX_NAMED_ATTRIBUTES else ""
        logger.warning("%s: %s%s", path, "; ".join(lost[:MAX_NAMED_ATTRIBUTES]), more)

    def close() -> None:
        with lock:
            file.close()

    return ForeignStore(f"file://{path}", nodes, lambda: path_stamp(path), close)


def _member(path: str) -> str:
    """Return the path under which an object is reported. Its own name may be invalid in Zarr."""
    parent, _, name = path.rpartition("/")
    shown = name if is_node_name(name) else f"invalid name {name}".replace("\\", "_")
    return f"{parent}/{shown}" if parent else shown


def _attributes(item: Any, path: str, lost: list[str]) -> dict[str, Any]:
    """Return the attributes that JSON can represent. The messages about others are added to ``lost``."""
    attributes, messages = attributes_of(item)
    lost += [f"{path}: {message}" for message in messages]
    return attributes


def _array(
    entry: Entry, lock: threading.Lock, allow_external: bool, lost: list[str], records: RecordDimensions
) -> ForeignArray:
    """Return a dataset of numbers, texts, bytes of a fixed length or records. Raises UnsupportedError for others."""
    dataset = entry.item
    dtype, shape = np.dtype(dataset.dtype), dataset.shape
    if shape is None:
        raise UnsupportedError("the dataset has a null dataspace and no values")
    is_text = dtype.kind == "O" and dtype.metadata is not None and dtype.metadata.get("vlen") in (str, bytes)
    if dtype.hasobject and not is_text:
        raise UnsupportedError(f"Zarr has no data type for {dtype}")
    if not allow_external:
        check_internal(dataset)
    stored_shape, shape = tuple(shape), records.shape(dataset)
    chunks = dataset.chunks
    if chunks is None or math.prod(chunks) * dtype.itemsize > MAX_CHUNK_NBYTES:
        chunks = plane_chunks(shape, dtype.itemsize)
    values = dataset.asstr() if is_text else dataset
    stored = _stored_chunks(dataset, lock, tuple(chunks))

    def read(region: tuple[slice, ...]) -> npt.NDArray[Any]:
        with lock:
            if not dataset.id.valid:
                raise OSError(0, "the file is closed")
            if shape == stored_shape:
                return np.asarray(values[region], dtype)
            # A variable of netCDF that is shorter than its unlimited dimension.
            out = np.full(
                [part.stop - part.start for part in region], "" if is_text else dataset.fillvalue, dtype
            )
            inside = tuple(
                slice(part.start, max(part.start, min(part.stop, length)))
                for part, length in zip(region, stored_shape, strict=True)
            )
            out[tuple(slice(0, part.stop - part.start) for part in inside)] = values[inside]
            return out

    attributes = _attributes(dataset, entry.path, lost)
    if FILL_VALUE in attributes:
        attributes[FILL_VALUE] = encoded_missing(dataset, attributes[FILL_VALUE])
    names = dimension_names(dataset)
    described = (
        tuple(shape),
        tuple(chunks),
        dtype,
        read,
        None if names is None else tuple(names),
        attributes,
        stored,
    )
    if is_presentable(dtype):
        return ForeignArray(*described, fill_value=dataset.fillvalue)
    array = EncodedForeignArray(*described)
    try:
        array.check()
    except (MetadataError, UnsupportedError) as error:
        raise UnsupportedError(f"Zarr has no data type for {dtype}: {error}") from error
    return array


def _stored_chunks(
    dataset: Any, lock: threading.Lock, chunks: tuple[int, ...]
) -> Callable[[], Iterator[tuple[int, ...]]] | None:
    """Return a function that returns the coordinates of the chunks that a dataset contains; None if it contains all.

    A small file can declare a dataset of any size.
    """
    if dataset.is_virtual or dataset.external:
        return None
    is_record = not is_presentable(np.dtype(dataset.dtype)) and not dataset.dtype.hasobject
    if is_record and any(np.asarray(dataset.fillvalue).tobytes()):
        return None  # the fill value of records is not presented

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
