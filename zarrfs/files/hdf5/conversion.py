"""Conversion of HDF5 files to Zarr hierarchies and vice versa. Needs ``h5py``.

Groups, datasets, attributes, chunk shapes, fill values and dimension names (labels, else the names of dimension scales)
are converted. Values are copied block by block, and only stored chunks are read. Objects that the other format cannot
represent, such as references and variable-length arrays, are reported and make the copy incomplete.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import nullcontext
from typing import Any

import numpy as np

from zarrfs.api.open import Location, create_group
from zarrfs.api.open import open as open_node
from zarrfs.cf_times import integer_times
from zarrfs.engine.array.array import Array
from zarrfs.engine.formats import api as formats
from zarrfs.engine.group.group import Group
from zarrfs.engine.hierarchy.node import StoredNode
from zarrfs.engine.hierarchy.unfinished import UNFINISHED
from zarrfs.engine.stores.base import Store
from zarrfs.errors import NodeExistsError, StoreError, UnsupportedError, ZarrError
from zarrfs.files.hdf5.attributes import FILL_VALUE, attributes_of, dimension_names, encoded_missing
from zarrfs.files.hdf5.dimensions import write_dimensions
from zarrfs.files.hdf5.new_attributes import BOOL_MARK, dataset_attributes, set_attributes
from zarrfs.files.hdf5.objects import BLOCK_NBYTES, Entry, check_internal, objects, stored_blocks
from zarrfs.files.hdf5.output import HDF5Output
from zarrfs.files.hdf5.records import UNLIMITED, RecordDimensions, has_record_dimensions, unlimited_names
from zarrfs.libraries import load_library
from zarrfs.tools.copying.block_grid import Block, blocks_to_copy, stored_regions
from zarrfs.tools.copying.reports import CopyReport, incomplete_copy_error
from zarrfs.tools.copying.stored_keys import foreign_keys
from zarrfs.tools.copying.unfinished import mark_complete
from zarrfs.tools.copying.walking import readable_nodes

__all__ = ["from_hdf5", "is_hdf5", "to_hdf5"]

SUFFIXES = (".h5", ".hdf5", ".hdf", ".nc", ".he5", ".nwb", ".ims")
NETCDF_SUFFIX = ".nc"
DATASET_NAME = "data"
"""The name of the dataset if an array is copied to a file."""


def is_hdf5(location: object) -> bool:
    """Return whether a location has the suffix of an HDF5 file."""
    return isinstance(location, str | os.PathLike) and os.fspath(location).lower().endswith(SUFFIXES)


def from_hdf5(
    file: str | os.PathLike[str],
    target: Location,
    *,
    skip_broken: bool = False,
    allow_external: bool = False,
    **options: Any,
) -> CopyReport:
    """Copy an HDF5 file into a new group at ``target``. ``options`` are passed to ``create_array`` (``shards``,
    ``compressors``, ``zarr_format`` ...). Returns one line for each object.

    An object with several names is copied once. Its other names, and soft links, are reported as links. The group is
    marked as unfinished until all objects are copied; those that cannot be copied do not keep it so.

    Args:
        skip_broken: do not raise for objects that cannot be copied; they are in ``missing`` of the result.
        allow_external: follow external links, and read external storage and virtual datasets of other files.
            Otherwise such objects cannot be copied.

    Raises NodeExistsError if a node exists at ``target``; StoreError if the file cannot be read; IncompleteCopyError
    for objects that are broken or that Zarr cannot represent, after all others are copied.
    """
    h5py = load_library("h5py", "hdf5", "reading HDF5")
    path = os.fspath(file)
    report = CopyReport()
    with _open_file(h5py, path) as source:
        found = objects(h5py, source, allow_external) if has_record_dimensions(h5py, source) else ()
        records = RecordDimensions(h5py, (entry.item for entry in found if entry.kind == "dataset"))
        attributes, messages = attributes_of(source)
        attributes |= records.attributes("")
        marked = {**attributes, UNFINISHED: {"command": "copy"}}
        root = create_group(target, zarr_format=options.get("zarr_format", 3), attributes=marked)
        # Closing the store completes a zip file.
        with nullcontext() if isinstance(target, Store | Mapping | StoredNode) else root.store:
            report.extend(f"/: {line}" for line in messages)
            for entry in objects(h5py, source, allow_external):
                _copy_entry(h5py, entry, root, options, allow_external, report, records)
            mark_complete(root.store, root.path)
    if report.skipped and not skip_broken:
        raise incomplete_copy_error(path, "all other objects were copied", report.skipped)
    return report


def _open_file(h5py: Any, path: str) -> Any:
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            raise StoreError(f"{path} is not a regular file; expected an HDF5 file")
        return h5py.File(path, "r")
    except StoreError:
        raise
    except OSError as error:
        raise StoreError(f"{path} cannot be opened as HDF5: {error}") from error


def _copy_entry(
    h5py: Any,
    entry: Entry,
    root: Group,
    options: Mapping[str, Any],
    allow_external: bool,
    report: CopyReport,
    records: RecordDimensions,
) -> None:
    path, item = entry.path, entry.item
    if entry.kind == "link":
        report.append(f"{path}: {entry.reason}")
        return
    reason = entry.reason
    try:
        if entry.kind == "group":
            attributes, messages = attributes_of(item)
            root.create_group(path, attributes=attributes | records.attributes(path))
            report.append(f"{path}: group")
        elif entry.kind == "dataset":
            if not allow_external:
                check_internal(item)
            attributes, messages = attributes_of(item)
            report.append(_copy_dataset(h5py, item, root, path, attributes, options, records))
        else:
            messages = []
        report.extend(f"{path}: {line}" for line in messages)
    except (StoreError, NodeExistsError):
        raise
    except (ZarrError, TypeError, ValueError, OverflowError, RuntimeError, OSError) as error:
        # h5py raises OSError and RuntimeError if it cannot read; errors of the target store are StoreErrors.
        reason = str(error)
        if path in root:
            del root[path]
    if reason:
        report.skipped[path] = reason
        report.append(f"{path}: skipped: {reason}")


def _copy_dataset(
    h5py: Any,
    item: Any,
    root: Group,
    path: str,
    attributes: dict[str, Any],
    options: Mapping[str, Any],
    records: RecordDimensions,
) -> str:
    if item.shape is None:
        raise UnsupportedError("the dataset has a null dataspace and no values")
    is_text = h5py.check_string_dtype(item.dtype) is not None and item.dtype.kind == "O"
    if item.dtype.hasobject and not is_text:
        raise UnsupportedError(f"Zarr has no data type for {item.dtype}")
    if item.dtype.kind == "b" and attributes.items() >= BOOL_MARK.items():
        del attributes["dtype"]  # for netCDF
    features = formats.features(options.get("zarr_format", 3))
    names = dimension_names(item)
    arguments: dict[str, Any] = {
        "shape": records.shape(item),
        "dtype": "string" if is_text else item.dtype,
        "attributes": attributes,
        "dimension_names": names,
        "chunks": item.chunks or "auto",
    }
    keeps_fill_value = features.fill_value and not is_text and item.dtype.names is None
    missing = encoded_missing(item, attributes[FILL_VALUE]) if FILL_VALUE in attributes else None
    fill_is_missing = FILL_VALUE in attributes and missing == encoded_missing(item, item.fillvalue)
    if features.fill_is_missing and names is not None and not fill_is_missing:
        # Null: xarray would treat any fill value as the missing value, although the file states none.
        keeps_fill_value = False
        arguments["fill_value"] = None
    elif keeps_fill_value and item.fillvalue is not None:
        arguments["fill_value"] = item.fillvalue
    if FILL_VALUE in attributes and not features.fill_is_missing:
        attributes[FILL_VALUE] = missing
    elif keeps_fill_value and fill_is_missing:
        del attributes[FILL_VALUE]  # the fill value of the array states it
    array = root.create_array(path, **{**arguments, **options})
    source = item.asstr() if is_text else item
    include_missing = not keeps_fill_value and not _is_zero(item.fillvalue)
    for block in stored_blocks(
        item, _chunk_shape(item.chunks or array.chunks), include_missing=include_missing
    ):
        array[block] = source[block]
    if include_missing:
        # Beyond a variable of netCDF that is shorter than its unlimited dimension.
        for axis, (stored, length) in enumerate(zip(item.shape, array.shape, strict=True)):
            if stored < length:
                array[(slice(None),) * axis + (slice(stored, length),)] = item.fillvalue
    return f"{path}: {' x '.join(map(str, array.shape)) or 'scalar'} {arguments['dtype']}"


def _is_zero(fill: Any) -> bool:
    """Return whether a fill value of HDF5 equals the default fill value of Zarr."""
    if fill is None or isinstance(fill, str | bytes):
        return not fill
    array = np.asarray(fill)
    return array.dtype.hasobject or not any(array.tobytes())


def _chunk_shape(chunks: Any) -> tuple[int, ...]:
    """Return the chunk shape; that of the first chunk if the chunk grid is not regular."""
    return tuple(side if isinstance(side, int) else side[0] for side in chunks)


def _notes(files: Collection[str]) -> list[str]:
    """Return a note about the files that an HDF5 file cannot contain; none if there are no such files."""
    if not files:
        return []
    text = "1 file that belongs to no node is not copied: HDF5 cannot contain it"
    if len(files) > 1:
        text = f"{len(files)} files that belong to no node are not copied: HDF5 cannot contain them"
    return [text]


def to_hdf5(
    source: Location,
    file: str | os.PathLike[str],
    *,
    compression: str | None = "gzip",
    skip_broken: bool = False,
    nodes_only: bool = False,
) -> CopyReport:
    """Copy an array, or a group and all nodes below it, into a new HDF5 file. Returns one line for each node.

    An array becomes the dataset ``data`` in the root group. Named dimensions become dimension scales, and missing
    values the attribute ``_FillValue``, so that netCDF4 and xarray read the same dataset. A coordinate (an array with
    the name of its only dimension) is a scale; a dimension without coordinate gets a scale without values. The
    attributes of a file ``.nc`` have types of netCDF. Those of other files have types of h5py, and dimensions also have
    labels. Text is stored as UTF-8 of variable length, and times as integers with the attribute ``units``, as xarray
    stores them.

    ``skip_broken`` skips members that are broken or that HDF5 cannot represent; they are in ``missing`` of the result.
    Files that belong to no node are not copied: ``notes`` of the result states their number, unless ``nodes_only`` is
    given.

    Raises NodeExistsError if the file exists; IncompleteCopyError for members that cannot be copied; StoreError if the
    file cannot be written. An incomplete file is removed.
    """
    h5py = load_library("h5py", "hdf5", "writing HDF5")
    path = os.fspath(file)
    if os.path.lexists(path):
        raise NodeExistsError(f"{path} exists already; choose another name, or delete it")
    node = open_node(source, mode="r")
    report = CopyReport()
    if isinstance(node, Array):
        nodes: Iterable[tuple[str, Array | Group]] = [(DATASET_NAME, node)]
    else:
        nodes = readable_nodes(node, skip_broken, report)
    if not nodes_only and node.store.listable:
        members = [] if isinstance(node, Array) else nodes
        report.notes += _notes(foreign_keys(node, members, report.skipped))
    temporary = f"{path}.{os.getpid()}.tmp"
    try:
        output = HDF5Output(temporary)
        is_netcdf = path.lower().endswith(NETCDF_SUFFIX)
        dimensions: dict[str, tuple[str | None, ...]] = {}
        try:
            # Format 1.8: large lists of references, and the order of creation, which netCDF requires for writing.
            with h5py.File(output, "w", libver=("v108", "latest"), track_order=True) as target:
                unlimited: dict[str, frozenset[str]] = {}
                if isinstance(node, Group):
                    unlimited[""] = unlimited_names(node.attrs)
                    set_attributes(target, _without_unlimited(node.attrs), is_netcdf)
                for name, member in nodes:
                    if isinstance(member, Group):
                        unlimited[name] = unlimited_names(member.attrs)
                    _write_node(h5py, target, name, member, compression, is_netcdf, output, report, unlimited)
                    if isinstance(member, Array) and member.dimension_names and name not in report.skipped:
                        dimensions[name] = member.dimension_names
                    output.check()
                write_dimensions(target, dimensions, labels=not is_netcdf)
                target.flush()
                output.check()
        finally:
            output.close()
        if report.skipped and not skip_broken:
            raise incomplete_copy_error(node.store.url, "nothing was written", report.skipped)
        os.replace(temporary, path)
    except OSError as error:
        if isinstance(error, StoreError) and not str(error).startswith(temporary):
            raise
        reason = error.strerror or str(error).removeprefix(f"{temporary}: ")
        raise StoreError(
            f"{path} cannot be written: {reason}; the incomplete file was removed", error.errno
        ) from error
    finally:
        if os.path.lexists(temporary):
            os.unlink(temporary)
    return report


def _write_node(
    h5py: Any,
    target: Any,
    name: str,
    node: Array | Group,
    compression: str | None,
    is_netcdf: bool,
    output: HDF5Output,
    report: CopyReport,
    unlimited: Mapping[str, frozenset[str]],
) -> None:
    try:
        if isinstance(node, Group):
            attributes = _without_unlimited(node.attrs)
            set_attributes(target.create_group(name, track_order=True), attributes, is_netcdf)
            report.append(f"{name}: group")
        else:
            times = integer_times(node.dtype) if node.dtype.kind in "mM" else None
            maxshape = _maxshape(name, node, unlimited)
            dataset = _write_dataset(
                h5py, target, name, node, compression, output, times and times[0], maxshape
            )
            attributes = dataset_attributes(node, is_netcdf) | (times[1] if times else {})
            set_attributes(dataset, attributes, is_netcdf)
            size = " x ".join(map(str, node.shape)) or "scalar"
            report.append(f"{name}: {size} {node.spec.data_type.name}")
    except UnsupportedError as error:
        if name in target:
            del target[name]
        report.skipped[name] = str(error)
        report.append(f"{name}: skipped: {error}")


def _without_unlimited(attributes: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in attributes.items() if name != UNLIMITED}


def _maxshape(
    path: str, array: Array, unlimited: Mapping[str, frozenset[str]]
) -> tuple[int | None, ...] | None:
    """Return the maximal shape of a dataset; None if it has no unlimited dimension of its group or of one above it."""
    names, group = array.dimension_names or (), path
    found: frozenset[str] = frozenset()
    while group:
        group = group.rpartition("/")[0]
        found |= unlimited.get(group, frozenset())
    if found.isdisjoint(name for name in names if name is not None):
        return None
    return tuple(None if name in found else n for name, n in zip(names, array.shape, strict=True))


def _write_dataset(
    h5py: Any,
    target: Any,
    name: str,
    array: Array,
    compression: str | None,
    output: HDF5Output,
    time_dtype: np.dtype[Any] | None,
    maxshape: tuple[int | None, ...] | None,
) -> Any:
    """Write the values of an array. ``time_dtype`` is the dtype of integers as which times are stored, and ``maxshape``
    has None for unlimited dimensions; None: there are none.
    """
    is_text = array.spec.data_type.name == "string" or array.dtype.kind == "U"
    if array.dtype.hasobject and not is_text:
        raise UnsupportedError(f"HDF5 has no data type for {array.spec.data_type.name}")
    if array.dtype.kind in "mM" and time_dtype is None:
        raise UnsupportedError(
            f"netCDF has no unit for {array.dtype}; convert it to a unit from days to nanoseconds (D, h, m, s, ms, us, "
            "ns)"
        )
    chunks = _chunk_shape(array.chunks)
    fill_value = None if is_text or array.dtype.names is not None else array.fill_value
    if time_dtype is not None:
        fill_value = np.array(fill_value, array.dtype).view(time_dtype)[()]
    has_elements = bool(array.shape) and 0 not in array.shape
    try:
        dataset = target.create_dataset(
            name,
            array.shape,
            maxshape=maxshape,
            dtype=h5py.string_dtype() if is_text else time_dtype or array.dtype,
            chunks=tuple(min(c, n) for c, n in zip(chunks, array.shape, strict=True))
            if has_elements
            else None,
            compression=compression if has_elements else None,
            fillvalue=fill_value,
            track_order=True,
        )
    except (TypeError, ValueError) as error:
        raise UnsupportedError(f"HDF5 cannot store {array.dtype} in chunks of {chunks}: {error}") from error
    keeps_fill_value = not is_text and array.dtype.names is None
    for block in _blocks_to_copy(array, chunks, keeps_fill_value or _is_zero(array.fill_value)):
        values = array[block]
        if time_dtype is not None:
            values = np.asarray(values, array.dtype).view(time_dtype)
        try:
            dataset[block] = np.asarray(values).astype(object) if is_text else values
        except ValueError as error:
            raise UnsupportedError(f"HDF5 cannot store a value of it: {error}") from error
        output.check()
    return dataset


def _blocks_to_copy(array: Array, chunks: tuple[int, ...], only_stored: bool) -> Sequence[Block]:
    """Return the blocks to copy: those with stored chunks, or all if the fill value cannot be represented."""
    regions = stored_regions(array) if only_stored and array.store.listable else None
    return blocks_to_copy(array.shape, chunks, max(1, array.dtype.itemsize), BLOCK_NBYTES, regions)
