"""Making nodes: groups and arrays and the groups on the way to them, written to the store."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from zarrfs.engine.access import Access
from zarrfs.engine.array import Array
from zarrfs.engine.cache import ChunkCache
from zarrfs.engine.dtypes import data_type_from_numpy
from zarrfs.engine.formats import detect
from zarrfs.engine.hierarchy import delete_node
from zarrfs.engine.model import ArraySpec, GroupSpec
from zarrfs.engine.new_arrays import array_spec, check_format, shape_of
from zarrfs.engine.staleness import warn_of_change
from zarrfs.engine.stores.base import Store
from zarrfs.errors import NodeExistsError, NodeTypeError

__all__ = ["check_required", "create_ancestors", "create_array_node", "create_group_node"]


# -- groups ----------------------------------------------------------------------------------------------------


def create_group_node(
    store: Store, path: str, zarr_format: int | str, attributes: Mapping[str, Any], overwrite: bool
) -> GroupSpec:
    """Write a group and the groups on the way to it; return its spec."""
    check_format(zarr_format)
    detect.check_path(store, path, zarr_format)
    _make_room(store, path, overwrite)
    create_ancestors(store, path, zarr_format)
    spec = detect.write_node(store, path, GroupSpec(zarr_format, dict(attributes)))
    warn_of_change(store, path, zarr_format)
    if not isinstance(spec, GroupSpec):
        raise TypeError(f"{type(spec).__name__} came back for a group")
    return spec


def create_ancestors(store: Store, path: str, zarr_format: int | str) -> None:
    """Write the groups on the way to ``path`` that are not there. An array on the way is a NodeTypeError."""
    parts = path.split("/")[:-1] if path else []
    for depth in range(len(parts) + (1 if path else 0)):
        ancestor = "/".join(parts[:depth])
        kind = detect.read_kind(store, ancestor)
        if kind == "array":
            raise NodeTypeError(
                f"{store.url}: {ancestor or '/'!r} is an array, nothing can be created below it as {path!r}"
            )
        if kind is None:
            detect.write_node(store, ancestor, GroupSpec(zarr_format))


def _make_room(store: Store, path: str, overwrite: bool) -> None:
    kind = detect.read_kind(store, path)
    if kind is None:
        return
    if not overwrite:
        raise NodeExistsError(
            f"{store.url}: there is already {'an array' if kind == 'array' else 'a group'} at {path or '/'!r}; "
            "give overwrite=True to replace it with all that is below"
        )
    delete_node(store, path)


# -- arrays ----------------------------------------------------------------------------------------------------


def create_array_node(
    store: Store,
    path: str,
    cache: ChunkCache,
    *,
    data: Any = None,
    overwrite: bool = False,
    write_empty_chunks: bool | None = None,
    access: Access | None = None,
    **options: Any,
) -> Array:
    """Create an array and the groups on the way to it.

    Args:
        data: what to write, and where shape and dtype come from if they are not given.
        overwrite: delete a node that is there; otherwise that is a NodeExistsError.
        write_empty_chunks: store chunks that hold nothing but the fill value.
        access: how the array is looked at from then on.
        options: of ``array_spec``.
    """
    values = None if data is None else _values(data)
    if values is not None:
        options.setdefault("shape", tuple(int(n) for n in values.shape))
        if options.get("dtype") is None:
            options["dtype"] = _dtype_of(data, values)
    spec = array_spec(**options)
    detect.check_path(store, path, spec.zarr_format)
    access = access or Access()
    if write_empty_chunks is not None:
        access = replace(access, write_empty_chunks=write_empty_chunks)
    # All is checked before anything is changed in the store.
    detect.check_writable(spec)
    Array(store, path, spec, cache, False)
    _make_room(store, path, overwrite)
    create_ancestors(store, path, spec.zarr_format)
    written = detect.write_node(store, path, spec)
    warn_of_change(store, path, spec.zarr_format)
    if not isinstance(written, ArraySpec):
        raise TypeError(f"{type(written).__name__} came back for an array")
    array = Array(store, path, written, cache, False, access)
    if values is not None:
        array[...] = values
    return array


def _values(data: Any) -> Any:
    if hasattr(data, "shape") and hasattr(data, "dtype"):
        return data
    array = np.asarray(data)
    return array.astype(object) if array.dtype.kind == "U" else array


def _dtype_of(data: Any, values: Any) -> Any:
    """Return the dtype for data that come without one: strings of a list may be of any length."""
    is_text = values.dtype == object and data is not values and np.asarray(data).dtype.kind == "U"
    return str if is_text else values.dtype


# -- requirements ----------------------------------------------------------------------------------------------


def check_required(array: Array, shape: Any, dtype: Any, exact: bool) -> None:
    """Raise unless the array has the shape, and a dtype that serves for ``dtype``."""
    lengths = shape_of(shape)
    if array.shape != lengths:
        raise NodeTypeError(f"{array.name} has shape {array.shape}, required is {lengths}")
    if dtype is None:
        return
    wanted = data_type_from_numpy(dtype).numpy
    fits = array.dtype == wanted if exact else np.can_cast(wanted, array.dtype)
    if not fits:
        raise NodeTypeError(f"{array.name} has dtype {array.dtype}, required is {wanted}")
