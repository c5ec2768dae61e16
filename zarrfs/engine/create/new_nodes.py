"""Creation of nodes: metadata documents of groups, arrays and their missing ancestors are written to a store.

A creation that fails leaves the store unchanged, including a node that was to be replaced.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from math import inf
from typing import Any

import numpy as np

from zarrfs.engine.access import ReadWriteOptions
from zarrfs.engine.array.array import Array
from zarrfs.engine.cache import ChunkCache
from zarrfs.engine.chunks.chunk_grids import RegularGrid
from zarrfs.engine.create.array_options import (
    ArrayOptions,
    check_option_names,
    check_option_types,
    described,
)
from zarrfs.engine.create.array_spec import array_spec, data_type_of_option, shape_of
from zarrfs.engine.create.similar_arrays import copy_values
from zarrfs.engine.dtypes import data_type_from_numpy
from zarrfs.engine.formats import api as formats
from zarrfs.engine.formats.json_document import dump_json
from zarrfs.engine.hierarchy.consolidation_warnings import warn_of_change
from zarrfs.engine.model import ArraySpec, GroupSpec
from zarrfs.engine.stores.base import Store
from zarrfs.engine.stores.wrappers.undo import UndoStore
from zarrfs.engine.values import as_values, converted, describe_value
from zarrfs.errors import DataError, MetadataError, NodeExistsError, NodeTypeError

__all__ = ["check_required", "create_ancestors", "create_array", "create_array_node", "create_group_node"]

# -- groups ----------------------------------------------------------------------------------------------------


def create_group_node(
    store: Store, path: str, zarr_format: int | str, attributes: Mapping[str, Any], overwrite: bool
) -> GroupSpec:
    """Write a group and its missing ancestors; return the spec of the group. A failure leaves the store unchanged.

    Raises NodeExistsError if there is a node and ``overwrite`` is False, NodeTypeError if an ancestor is an array,
    MetadataError for invalid attributes, and KeyNameError for an invalid path.
    """
    formats.check_format(zarr_format)
    formats.check_path(store, path, zarr_format)
    given = GroupSpec(zarr_format, _checked_attributes(attributes))
    formats.check_writable(given)
    with _creating(store, path, zarr_format, overwrite) as target:
        spec: GroupSpec = formats.write_node(target, path, given)
    return spec


def create_ancestors(store: Store, path: str, zarr_format: int | str) -> None:
    """Write the missing ancestors of ``path``. Raises NodeTypeError if an ancestor is an array."""
    for ancestor in _missing_ancestors(store, path, zarr_format):
        formats.write_node(store, ancestor, GroupSpec(zarr_format))


def _missing_ancestors(store: Store, path: str, zarr_format: int | str) -> list[str]:
    """Return the paths of the missing ancestors of ``path``, from the root down."""
    missing = []
    parts = path.split("/")[:-1] if path else []
    for depth in range(len(parts) + (1 if path else 0)):
        ancestor = "/".join(parts[:depth])
        kind = formats.read_kind(store, ancestor, zarr_format)
        if kind == "array":
            raise NodeTypeError(
                f"{store.url}: {ancestor or '/'!r} is an array, nothing can be created below it as {path!r}"
            )
        if kind is None:
            missing.append(ancestor)
    return missing


@contextmanager
def _creating(store: Store, path: str, zarr_format: int | str, overwrite: bool) -> Iterator[Store]:
    """Write the missing ancestors of ``path``, and yield a store in which the caller creates the node at ``path``.
    Then log a warning if consolidated metadata should include the node.

    If the block raises an exception, the store is restored: the written keys are deleted, and an existing node is
    unchanged.
    """
    documents = store
    if store.is_remote:
        from zarrfs.engine.stores.wrappers.caching import MetadataCacheStore

        documents = MetadataCacheStore(store, inf)  # The same documents are requested several times.
    if overwrite:
        from zarrfs.engine.hierarchy.staging import locked_exchanges, replacing

        with locked_exchanges(store):  # The node is missing for a moment while another thread replaces it.
            kind = formats.read_kind(documents, path, zarr_format)
    else:
        kind = formats.read_kind(documents, path, zarr_format)
    if kind is not None and not overwrite:
        raise NodeExistsError(
            f"{store.url}: there is already {'an array' if kind == 'array' else 'a group'} at {path or '/'!r}; "
            "give overwrite=True to replace it with all that is below"
        )
    missing = _missing_ancestors(documents, path, zarr_format)
    target = UndoStore(documents)
    try:
        for ancestor in missing:
            formats.write_node(target, ancestor, GroupSpec(zarr_format))
        if kind is None:
            yield target
        else:
            with replacing(store, path) as aside:
                yield aside
    except BaseException as error:
        try:
            target.undo()
        except Exception as undo_error:
            error.add_note(f"the keys written for {path or '/'!r} could not be deleted either: {undo_error}")
        raise
    warn_of_change(documents, path, zarr_format)


def _checked_attributes(attributes: Any) -> dict[str, Any]:
    """Return the attributes as a dictionary. Raises MetadataError for values that JSON cannot represent."""
    if attributes is None:
        return {}
    if not isinstance(attributes, Mapping):
        raise MetadataError(
            f"attributes: expected a mapping of names to values, found {describe_value(attributes)}"
        )
    for name in attributes:
        if not isinstance(name, str):
            raise MetadataError(f"attributes: names must be strings, found {describe_value(name)}")
    dump_json(dict(attributes), "attributes")
    return dict(attributes)


# -- arrays ----------------------------------------------------------------------------------------------------


def create_array(
    store: Store,
    path: str,
    cache: ChunkCache,
    *,
    write_empty_chunks: bool | None = None,
    access: ReadWriteOptions | None = None,
    **options: Any,
) -> Array:
    """Create an array and its missing ancestors. A failure leaves the store unchanged.

    Args:
        cache: the chunk cache of the returned array.
        write_empty_chunks: whether chunks that contain only the fill value are stored. None: as in ``access``.
        access: the access options of the returned array.
        options: the other arguments of ``create_array_node``, such as the shape and the data type, as
            ``engine_options`` returns them.
    """
    check_option_names("create_array()", options, described(ArrayOptions))
    check_option_types({"access": access})
    access = access or ReadWriteOptions()
    if write_empty_chunks is not None:
        access = replace(access, write_empty_chunks=write_empty_chunks)
    spec = create_array_node(store, path, access, **options)
    return Array(store, path, spec, cache, False, access)


def create_array_node(
    store: Store,
    path: str,
    access: ReadWriteOptions,
    *,
    data: Any = None,
    copy_from: Any = None,
    overwrite: bool = False,
    **options: Any,
) -> ArraySpec:
    """Write an array and its missing ancestors; return the spec of the array. A failure leaves the store unchanged.

    Args:
        access: the access options with which values are written.
        data: the values to write. Shape, dtype and chunks are taken from it if they are not given.
        copy_from: an array of the same shape whose values are written. They are copied one stored chunk at a time, so
            that neither array is in memory as a whole. Excludes ``data``.
        overwrite: whether an existing node is replaced, with everything below it; if False it raises NodeExistsError.
            The new array is written below a temporary prefix first and then moved, which copies the chunks in stores
            that cannot rename. A failure leaves the old node; see ``replacing`` for large nodes in such stores.
        options: the options of ``array_spec``.
    """
    options["attributes"] = _checked_attributes(options.get("attributes"))
    if data is None:
        spec, values = array_spec(**options), None
    else:
        spec, values = _spec_and_values(data, options, f"{store.url}/{path}".rstrip("/"))
    # Check everything before the store is changed.
    formats.check_path(store, path, spec.zarr_format)
    formats.check_writable(spec)
    Array(store, path, spec, ChunkCache(0), False)
    with _creating(store, path, spec.zarr_format, overwrite) as target:
        written = formats.write_node(target, path, spec)
        if values is not None:
            if isinstance(target, UndoStore):
                target.keep_old = False
            Array(target, path, written, ChunkCache(0), False, access)._write_all(values)
        elif copy_from is not None:
            if isinstance(target, UndoStore):
                target.keep_old = False
            copy_values(copy_from, Array(target, path, written, ChunkCache(0), False, access))
    return written


def _spec_and_values(data: Any, options: dict[str, Any], where: str) -> tuple[ArraySpec, Any]:
    """Return the spec of an array for the data, and the data converted to its data type and shape."""
    values = _array_like(data, options.get("dtype"), where)
    if options.get("shape") is None:
        options["shape"] = tuple(int(n) for n in values.shape)
    if options.get("dtype") is None:
        options["dtype"] = _dtype_of(data, values)
    if shape_of(options["shape"]) == tuple(values.shape):
        options |= _chunks_of(values, options)
    spec = array_spec(**options)
    return spec, as_values(values, spec.data_type, spec.shape, where)


def _array_like(data: Any, dtype: Any, where: str) -> Any:
    """Return the data as an object that has a shape and a NumPy dtype. Raises DataError."""
    if hasattr(data, "shape") and isinstance(getattr(data, "dtype", None), np.dtype):
        return data
    data_type = None if dtype is None else data_type_of_option(dtype)
    if data_type is not None and not data_type.numpy.hasobject:
        return converted(data, data_type, where)
    if data_type is not None and data_type.name == "object" and isinstance(data, list | tuple):
        # Each item is one element, even if it is a sequence.
        elements = np.empty(len(data), object)
        for index, item in enumerate(data):
            elements[index] = item
        return elements
    try:
        array = np.asarray(data)
    except (TypeError, ValueError) as error:
        raise DataError(
            f"{where}: {describe_value(data)} cannot be converted to an array: {error}"
        ) from error
    return array.astype(object) if array.dtype.kind == "U" else array


def _dtype_of(data: Any, values: Any) -> Any:
    """Return the dtype option for data. Lists of strings become variable-length strings."""
    if isinstance(values, Array):
        return values.spec.data_type
    if values.dtype != object or values is data:
        return values.dtype
    kinds = set(map(type, np.asarray(values).reshape(-1).tolist()))
    return str if kinds and all(issubclass(kind, str) for kind in kinds) else values.dtype


def _chunks_of(data: Any, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options ``chunks`` and ``shards`` of chunked data; nothing if the options already contain one."""
    chunks = getattr(data, "chunks", None)
    ndim = len(data.shape)
    if (
        {"chunks", "shards"} & set(options)
        or not isinstance(chunks, tuple)
        or len(chunks) != ndim
        or not ndim
    ):
        return {}
    shards = getattr(data, "shards", None)
    features = formats.features(options.get("zarr_format", 3))
    chunk_shape: list[int] = []
    for lengths in chunks:
        if isinstance(lengths, tuple | list) and not all(isinstance(n, int) and n > 0 for n in lengths):
            return {}
        # Dask and rectilinear grids give the lengths of all chunks of each dimension; the last one may be shorter.
        chunk_shape.append(max(lengths, default=1) if isinstance(lengths, tuple | list) else int(lengths))
    if isinstance(data, Array) and features.chunk_grids and not isinstance(data.spec.chunk_grid, RegularGrid):
        return {"chunks": data.spec.chunk_grid}
    if isinstance(shards, tuple) and features.sharding:
        return (
            {"chunks": shards}
            if options.get("codecs") is not None
            else {"chunks": tuple(chunk_shape), "shards": shards}
        )
    return {"chunks": tuple(chunk_shape)}


# -- requirements ----------------------------------------------------------------------------------------------


def check_required(array: Array, shape: Any, dtype: Any, exact: bool) -> None:
    """Raise NodeTypeError unless the array has the shape, and a dtype to which ``dtype`` can be cast safely.

    With ``exact`` it must have the dtype itself. A dtype of None allows any dtype.
    """
    required_shape = shape_of(shape)
    if array.shape != required_shape:
        raise NodeTypeError(f"{array.name} has shape {array.shape}, required is {required_shape}")
    if dtype is None:
        return
    required_dtype = data_type_from_numpy(dtype).numpy
    fits = array.dtype == required_dtype if exact else np.can_cast(required_dtype, array.dtype)
    if not fits:
        raise NodeTypeError(f"{array.name} has dtype {array.dtype}, required is {required_dtype}")
