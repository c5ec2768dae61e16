"""HDF5 to Zarr and back. Needs ``h5py``.

Groups, datasets, attributes, chunk shapes, fill values and the names of dimensions (labels, else the names of their
scales) are carried over; values block by block, so that memory does not bound a dataset, and only those that are
stored. What the other side cannot hold, as references and arrays of varying length in one dataset, is reported, and
makes the copy incomplete.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from zarrfs.engine.nodes.array import Array
from zarrfs.engine.nodes.group import Group
from zarrfs.engine.nodes.node import StoredNode
from zarrfs.engine.open import Location, create_group, open_group
from zarrfs.engine.stores.base import Store
from zarrfs.engine.stores.databases.base import load_library
from zarrfs.errors import NodeExistsError, StoreError, UnsupportedError, ZarrError
from zarrfs.tools.copying.block_grid import Block, stored_boxes, stored_part
from zarrfs.tools.copying.reports import CopyReport, incomplete
from zarrfs.tools.copying.walking import readable_nodes
from zarrfs.tools.hdf5.objects import BLOCK_NBYTES, Entry, check_internal, objects, stored_blocks
from zarrfs.tools.hdf5.output import HDF5Output

__all__ = ["from_hdf5", "is_hdf5", "to_hdf5"]

SUFFIXES = (".h5", ".hdf5", ".hdf", ".nc", ".he5", ".nwb", ".ims")
OWN_ATTRIBUTES = ("CLASS", "NAME", "DIMENSION_LIST", "REFERENCE_LIST", "_Netcdf4Dimid", "_Netcdf4Coordinates")
"""What HDF5 and netCDF keep about dimension scales; the names of dimensions say the same."""


def is_hdf5(location: object) -> bool:
    """Whether a location is named like an HDF5 file."""
    return isinstance(location, str | os.PathLike) and os.fspath(location).lower().endswith(SUFFIXES)


def from_hdf5(
    file: str | os.PathLike[str],
    target: Location,
    *,
    skip_broken: bool = False,
    allow_external: bool = False,
    **options: Any,
) -> CopyReport:
    """Copy an HDF5 file into a new group at ``target``; ``options`` go to ``create_array`` (``shards``,
    ``compressors``, ``zarr_format`` ...). Returns a line for each object. A file that names data of other files
    (external links, external storage, virtual datasets) is refused unless ``allow_external``.

    An object with several names is copied once; its other names are reported as links, soft links likewise.

    Args:
        skip_broken: do not raise for objects that cannot be copied; they are in ``missing`` of the result.
        allow_external: follow links to other files and read values that are in other files.

    Raises NodeExistsError where there is something already; StoreError for a file that cannot be read;
    IncompleteCopyError for objects that Zarr cannot hold or that are broken, when all others are copied.
    """
    h5py = load_library("h5py", "hdf5", "reading HDF5")
    path = os.fspath(file)
    done = CopyReport()
    with _opened(h5py, path) as source:
        attributes, lost = _attributes(source)
        root = create_group(target, zarr_format=options.get("zarr_format", 3), attributes=attributes)
        try:
            done.extend(f"/: {line}" for line in lost)
            for entry in objects(h5py, source, allow_external):
                _copy_entry(h5py, entry, root, options, allow_external, done)
        finally:
            if not isinstance(target, Store | Mapping | StoredNode):
                root.store.close()  # of a zip file, it is complete only then
    if done.missing and not skip_broken:
        raise incomplete(path, "all that can be copied was copied", done.missing)
    return done


def _opened(h5py: Any, path: str) -> Any:
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            raise StoreError(f"{path} is not a regular file, expected an HDF5 file")
        return h5py.File(path, "r")
    except StoreError:
        raise
    except OSError as error:
        raise StoreError(f"{path} cannot be opened as HDF5: {error}") from error


def _copy_entry(
    h5py: Any, entry: Entry, root: Group, options: Mapping[str, Any], allow_external: bool, done: CopyReport
) -> None:
    path, item = entry.path, entry.item
    if entry.kind == "link":
        done.append(f"{path}: {entry.reason}")
        return
    reason = entry.reason
    try:
        if entry.kind == "group":
            attributes, lost = _attributes(item)
            root.create_group(path, attributes=attributes)
            done.append(f"{path}: group")
        elif entry.kind == "dataset":
            if not allow_external:
                check_internal(item)
            attributes, lost = _attributes(item)
            done.append(_copy_dataset(h5py, item, root, path, attributes, options))
        else:
            lost = []
        done.extend(f"{path}: {line}" for line in lost)
    except (StoreError, NodeExistsError):
        raise
    except (ZarrError, TypeError, ValueError, OverflowError, RuntimeError, OSError) as error:
        # h5py raises OSError and RuntimeError for what it cannot read; ours are StoreErrors.
        reason = str(error)
        if path in root:
            del root[path]
    if reason:
        done.missing[path] = reason
        done.append(f"{path}: left out: {reason}")


def _copy_dataset(
    h5py: Any, item: Any, root: Group, path: str, attributes: dict[str, Any], options: Mapping[str, Any]
) -> str:
    if item.shape is None:
        raise UnsupportedError("it has no values at all")
    is_text = h5py.check_string_dtype(item.dtype) is not None and item.dtype.kind == "O"
    if item.dtype.hasobject and not is_text:
        raise UnsupportedError(f"Zarr has nothing like its data type {item.dtype}")
    made: dict[str, Any] = {
        "shape": item.shape,
        "dtype": "string" if is_text else item.dtype,
        "attributes": attributes,
        "dimension_names": _dimension_names(item),
        "chunks": item.chunks or "auto",
    }
    keeps_fill = (
        not is_text and item.dtype.names is None and options.get("zarr_format") not in ("n5", "draft2019")
    )
    if keeps_fill and item.fillvalue is not None:
        made["fill_value"] = item.fillvalue
    array = root.create_array(path, **{**made, **options})
    source = item.asstr() if is_text else item
    everything = not keeps_fill and not _is_zero(item.fillvalue)
    for block in stored_blocks(item, _sides(item.chunks or array.chunks), everything=everything):
        array[block] = source[block]
    return f"{path}: {' x '.join(map(str, item.shape)) or 'scalar'} {made['dtype']}"


def _is_zero(fill: Any) -> bool:
    """Whether a fill value of HDF5 is what Zarr takes by default."""
    if fill is None or isinstance(fill, str | bytes):
        return not fill
    array = np.asarray(fill)
    return array.dtype.hasobject or not any(array.tobytes())


def _sides(chunks: Any) -> tuple[int, ...]:
    """Return the lengths of chunks; of chunks of several shapes those of the first."""
    return tuple(side if isinstance(side, int) else side[0] for side in chunks)


def _dimension_names(item: Any) -> list[str | None] | None:
    names: list[str | None] = []
    for dimension in item.dims:
        scale = dimension[0].name.rpartition("/")[2] if len(dimension) else ""
        names.append(dimension.label or scale or None)
    if not any(names):
        own = item.name.rpartition("/")[2]
        return [own] if item.is_scale and len(item.shape) == 1 else None
    return names


def _attributes(item: Any) -> tuple[dict[str, Any], list[str]]:
    """Return the attributes that JSON can hold, and a sentence for each other one."""
    found: dict[str, Any] = {}
    lost = []
    for key in item.attrs:
        if key in OWN_ATTRIBUTES:
            continue
        try:
            value = _plain(item.attrs[key])
        except (OSError, RuntimeError, TypeError, ValueError) as error:
            lost.append(f"attribute {key!r} left out: it cannot be read: {error}")
            continue
        if value is _NOTHING:
            lost.append(f"attribute {key!r} left out: Zarr has nothing like its data type")
        else:
            found[key] = value
    return found, lost


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


def to_hdf5(
    source: Location,
    file: str | os.PathLike[str],
    *,
    compression: str | None = "gzip",
    skip_broken: bool = False,
) -> CopyReport:
    """Copy a group with all below it into a new HDF5 file. Returns a line for each node.

    ``skip_broken`` leaves out members that are broken or that HDF5 cannot hold; they are in ``missing`` of the result.

    Raises NodeExistsError where the file is there; IncompleteCopyError for members that cannot be copied; StoreError
    for a file that cannot be written. Nothing is left of a file that could not be completed.
    """
    h5py = load_library("h5py", "hdf5", "writing HDF5")
    path = os.fspath(file)
    if os.path.lexists(path):
        raise NodeExistsError(f"{path} is there already: choose another name, or delete it first")
    group = open_group(source)
    done = CopyReport()
    nodes = readable_nodes(group, skip_broken, done)
    temporary = f"{path}.{os.getpid()}.tmp"
    try:
        output = HDF5Output(temporary)
        try:
            with h5py.File(output, "w") as target:
                _set_attributes(target, group.attrs)
                for name, node in nodes:
                    _write_node(h5py, target, name, node, compression, output, done)
                    output.check()
                target.flush()
                output.check()
        finally:
            output.close()
        if done.missing and not skip_broken:
            raise incomplete(group.store.url, "nothing was written", done.missing)
        os.replace(temporary, path)
    except OSError as error:
        if isinstance(error, StoreError) and not str(error).startswith(temporary):
            raise
        reason = error.strerror or str(error).removeprefix(f"{temporary}: ")
        raise StoreError(f"{path} cannot be written: {reason}; nothing is left of it", error.errno) from error
    finally:
        if os.path.lexists(temporary):
            os.unlink(temporary)
    return done


def _write_node(
    h5py: Any,
    target: Any,
    name: str,
    node: Array | Group,
    compression: str | None,
    output: HDF5Output,
    done: CopyReport,
) -> None:
    try:
        if isinstance(node, Group):
            _set_attributes(target.create_group(name), node.attrs)
            done.append(f"{name}: group")
        else:
            done.append(_write_dataset(h5py, target, name, node, compression, output))
    except UnsupportedError as error:
        done.missing[name] = str(error)
        done.append(f"{name}: left out: {error}")


def _write_dataset(
    h5py: Any, target: Any, name: str, array: Array, compression: str | None, output: HDF5Output
) -> str:
    is_text = array.spec.data_type.name == "string"
    if array.dtype.hasobject and not is_text:
        raise UnsupportedError(f"HDF5 has nothing like {array.spec.data_type.name}")
    chunks = _sides(array.chunks)
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
    except (TypeError, ValueError) as error:
        raise UnsupportedError(
            f"HDF5 has nothing like {array.dtype} in chunks of {chunks} ({error})"
        ) from error
    keeps_fill = not is_text and array.dtype.names is None
    for block in _present_blocks(array, chunks, keeps_fill or _is_zero(array.fill_value)):
        made[block] = array[block]
        output.check()
    for number, label in enumerate(array.dimension_names or ()):
        if label:
            made.dims[number].label = label
    _set_attributes(made, array.attrs)
    return f"{name}: {' x '.join(map(str, array.shape)) or 'scalar'} {array.spec.data_type.name}"


def _present_blocks(array: Array, chunks: tuple[int, ...], only_stored: bool) -> Sequence[Block]:
    """Return the blocks to copy: those that hold stored chunks, or all where absent ones have other values."""
    boxes = stored_boxes(array) if only_stored and array.store.listable else None
    return stored_part(array.shape, chunks, max(1, array.dtype.itemsize), BLOCK_NBYTES, boxes)


def _set_attributes(target: Any, attributes: Mapping[str, Any]) -> None:
    """Set attributes; what HDF5 has no value for is kept as JSON text."""
    for key, value in attributes.items():
        simple = isinstance(value, str | int | float | bool)
        listed = isinstance(value, list) and value and all(type(entry) is type(value[0]) for entry in value)
        if simple or (listed and isinstance(value[0], int | float | str)):
            target.attrs[key] = value
        else:
            target.attrs[key] = json.dumps(value, ensure_ascii=False)
