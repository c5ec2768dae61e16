"""HDF5 to Zarr and back. Needs ``h5py``.

Groups, datasets, attributes, chunk shapes, fill values and the names of dimensions (labels, else the names of their
scales) are carried over; values block by block, so that memory does not bound a dataset. What Zarr has not, references
and arrays of varying length in one dataset, is left out and said.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any

import numpy as np

from zarrfs.engine.array import Array
from zarrfs.engine.group import Group
from zarrfs.engine.open import Location, create_group, open_group
from zarrfs.engine.stores.keyvalue import load_library
from zarrfs.engine.stores.regular_files import check_regular_file
from zarrfs.errors import NodeExistsError, StoreError, UnsupportedError, ZarrError
from zarrfs.tools.hdf5_external import check_no_external_data

__all__ = ["from_hdf5", "is_hdf5", "to_hdf5"]

SUFFIXES = (".h5", ".hdf5", ".hdf", ".nc", ".he5", ".nwb", ".ims")
OWN_ATTRIBUTES = ("CLASS", "NAME", "DIMENSION_LIST", "REFERENCE_LIST", "_Netcdf4Dimid", "_Netcdf4Coordinates")
"""What HDF5 and netCDF keep about dimension scales; the names of dimensions say the same."""

BLOCK_NBYTES = 64 << 20


def is_hdf5(location: object) -> bool:
    """Whether a location is named like an HDF5 file."""
    return isinstance(location, str | os.PathLike) and os.fspath(location).lower().endswith(SUFFIXES)


def from_hdf5(
    file: str | os.PathLike[str], target: Location, *, allow_external: bool = False, **options: Any
) -> list[str]:
    """Copy an HDF5 file into a new group at ``target``; ``options`` go to ``create_array`` (``shards``,
    ``compressors``, ``zarr_format`` ...). Returns a line for each object. A file that names data of other files
    (external links, external storage, virtual datasets) is refused unless ``allow_external``.

    Raises NodeExistsError where there is something already; StoreError for a file that cannot be read.
    """
    h5py = load_library("h5py", "hdf5", "reading HDF5")
    zarr_format = options.get("zarr_format", 3)
    try:
        check_regular_file(file, missing_ok=False)
        opened = h5py.File(os.fspath(file), "r")
    except StoreError:
        raise
    except OSError as error:
        raise StoreError(f"{os.fspath(file)} cannot be opened as HDF5: {error}") from error
    done: list[str] = []
    with opened as source:
        if not allow_external:
            check_no_external_data(h5py, source)
        root = create_group(target, zarr_format=zarr_format, attributes=_attributes(source))
        for path, item in _items(source, ""):
            if isinstance(item, h5py.Group):
                root.create_group(path, attributes=_attributes(item))
                done.append(f"{path}: group")
                continue
            try:
                done.append(_copy_dataset(h5py, item, root, path, options))
            except (UnsupportedError, TypeError) as error:
                done.append(f"{path}: left out: {error}")
    return done


def _items(group: Any, start: str) -> Iterator[tuple[str, Any]]:
    for name in group:
        path = f"{start}/{name}".strip("/")
        item = group.get(name)
        if item is None:  # a link that leads nowhere
            continue
        yield path, item
        if hasattr(item, "keys"):
            yield from _items(item, path)


def _copy_dataset(h5py: Any, item: Any, root: Group, path: str, options: Mapping[str, Any]) -> str:
    if item.shape is None:
        raise UnsupportedError("it has no values at all")
    is_text = h5py.check_string_dtype(item.dtype) is not None and item.dtype.kind == "O"
    if item.dtype.hasobject and not is_text:
        raise UnsupportedError(f"Zarr has nothing like its data type {item.dtype}")
    made: dict[str, Any] = {
        "shape": item.shape,
        "dtype": "string" if is_text else item.dtype,
        "attributes": _attributes(item),
        "dimension_names": _dimension_names(item),
        "chunks": item.chunks or "auto",
    }
    if not is_text and item.dtype.names is None and item.fillvalue is not None:
        made["fill_value"] = item.fillvalue
    if options.get("zarr_format") in ("n5", "draft2019"):
        made.pop("fill_value", None)
    array = root.create_array(path, **{**made, **options})
    source = item.asstr() if is_text else item
    for block in _blocks(array.shape, item.chunks or array.chunks, max(1, item.dtype.itemsize)):
        array[block] = source[block]
    return f"{path}: {' x '.join(map(str, item.shape)) or 'scalar'} {made['dtype']}"


def _dimension_names(item: Any) -> list[str | None] | None:
    names: list[str | None] = []
    for dimension in item.dims:
        scale = dimension[0].name.rpartition("/")[2] if len(dimension) else ""
        names.append(dimension.label or scale or None)
    if not any(names):
        own = item.name.rpartition("/")[2]
        return [own] if item.is_scale and len(item.shape) == 1 else None
    return names


def _attributes(item: Any) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key in item.attrs:
        if key in OWN_ATTRIBUTES:
            continue
        value = _plain(item.attrs[key])
        if value is not _NOTHING:
            found[key] = value
    return found


_NOTHING = object()


def _plain(value: Any) -> Any:
    """Return a value of an attribute as JSON has it; ``_NOTHING`` for references and the like."""
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, np.ndarray):
        listed = [_plain(entry) for entry in value.tolist()] if value.ndim else _plain(value.item())
        return _NOTHING if isinstance(listed, list) and _NOTHING in listed else listed
    if isinstance(value, np.generic):
        return _plain(value.item())
    if isinstance(value, list | tuple):
        return [_plain(entry) for entry in value]
    return value if isinstance(value, str | int | float | bool) else _NOTHING


def _blocks(shape: tuple[int, ...], chunks: Any, itemsize: int) -> Iterator[tuple[slice, ...]]:
    """Cut a shape along chunks into blocks of a bounded size."""
    steps = [max(1, side if isinstance(side, int) else side[0]) for side in chunks]
    for axis in reversed(range(len(shape))):
        while steps[axis] < shape[axis] and int(np.prod(steps)) * itemsize * 2 <= BLOCK_NBYTES:
            steps[axis] *= 2
    spans = [
        [slice(start, min(start + step, length)) for start in range(0, length, step)]
        for length, step in zip(shape, steps, strict=True)
    ]
    return product(*spans)


def to_hdf5(source: Location, file: str | os.PathLike[str], *, compression: str | None = "gzip") -> list[str]:
    """Copy a group with all below it into a new HDF5 file. Returns a line for each node.

    Raises NodeExistsError where the file is there; nothing is left of a file that could not be completed.
    """
    h5py = load_library("h5py", "hdf5", "writing HDF5")
    path = os.fspath(file)
    if os.path.exists(path):
        raise NodeExistsError(f"{path} is there already: choose another name, or delete it first")
    group = open_group(source)
    temporary = f"{path}.{os.getpid()}.tmp"
    done: list[str] = []
    try:
        with h5py.File(temporary, "x") as target:
            _set_attributes(target, group.attrs)
            for name, node in group.walk():
                if isinstance(node, Group):
                    _set_attributes(target.create_group(name), node.attrs)
                    done.append(f"{name}: group")
                else:
                    done.append(_write_dataset(h5py, target, name, node, compression))
        os.replace(temporary, path)
    except OSError as error:
        if isinstance(error, ZarrError):
            raise
        raise StoreError(f"{path} cannot be written: {error}") from error
    finally:
        if os.path.exists(temporary):
            os.unlink(temporary)
    return done


def _write_dataset(h5py: Any, target: Any, name: str, array: Array, compression: str | None) -> str:
    is_text = array.spec.data_type.name == "string"
    if array.dtype.hasobject and not is_text:
        return f"{name}: left out: HDF5 has nothing like {array.spec.data_type.name}"
    chunks = tuple(side if isinstance(side, int) else side[0] for side in array.chunks)
    stored = bool(array.shape) and 0 not in array.shape
    try:
        made = target.create_dataset(
            name,
            array.shape,
            h5py.string_dtype() if is_text else array.dtype,
            chunks=tuple(min(c, n) for c, n in zip(chunks, array.shape, strict=True)) if stored else None,
            compression=compression if stored else None,
            fillvalue=None if is_text or array.dtype.names is not None else array.fill_value,
        )
    except TypeError as error:
        return f"{name}: left out: HDF5 has nothing like {array.dtype} ({error})"
    for block in _blocks(array.shape, chunks, max(1, array.dtype.itemsize)):
        made[block] = array[block]
    for number, label in enumerate(array.dimension_names or ()):
        if label:
            made.dims[number].label = label
    _set_attributes(made, array.attrs)
    return f"{name}: {' x '.join(map(str, array.shape)) or 'scalar'} {array.spec.data_type.name}"


def _set_attributes(target: Any, attributes: Mapping[str, Any]) -> None:
    """Set attributes; what HDF5 has no value for is kept as JSON text."""
    for key, value in attributes.items():
        simple = isinstance(value, str | int | float | bool)
        listed = isinstance(value, list) and value and all(type(entry) is type(value[0]) for entry in value)
        if simple or (listed and isinstance(value[0], int | float | str)):
            target.attrs[key] = value
        else:
            target.attrs[key] = json.dumps(value, ensure_ascii=False)
