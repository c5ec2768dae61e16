"""Opening and creating arrays by TensorStore specs."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np

from zarrfs.engine.access import ReadWriteOptions
from zarrfs.engine.array.array import Array
from zarrfs.engine.create import new_nodes
from zarrfs.engine.create.array_spec import array_spec
from zarrfs.engine.dtypes import data_type_from_numpy, data_type_to_v3
from zarrfs.engine.formats import api as formats
from zarrfs.engine.json_checks import check_keys, expect_list, expect_object
from zarrfs.engine.model import ArraySpec
from zarrfs.engine.stores.base import Store
from zarrfs.errors import LocationError, MetadataError, NodeExistsError, NodeNotFoundError, NodeTypeError
from zarrfs.tensorstore.context import Context
from zarrfs.tensorstore.kvstores import open_kvstore, spec_of_url
from zarrfs.tensorstore.matching import check_array
from zarrfs.tensorstore.metadata import FORMATS, constraints_from_json
from zarrfs.tensorstore.new_arrays import creation_options
from zarrfs.tensorstore.schema import Schema, merge_schemas, schema_from_json
from zarrfs.tensorstore.units import units_from_json
from zarrfs.text import short_repr

__all__ = ["open"]

MEMBERS = (
    *("driver", "kvstore", "path", "rank", "transform", "schema", "dtype", "metadata", "context"),
    *("open", "create", "delete_existing", "assume_metadata", "assume_cached_metadata"),
    *("cache_pool", "metadata_cache_pool", "data_copy_concurrency"),
    *("recheck_cached", "recheck_cached_metadata", "recheck_cached_data"),
    *("fill_missing_data_reads", "store_data_equal_to_fill_value"),
)

FLAGS = (
    *("open", "create", "delete_existing", "assume_metadata", "assume_cached_metadata"),
    *("fill_missing_data_reads", "store_data_equal_to_fill_value"),
)

_default_context = Context()


def open(
    spec: Mapping[str, Any] | str,
    *,
    context: Context | None = None,
    read_only: bool = False,
    dtype: Any = None,
    shape: Sequence[int] | None = None,
    rank: int | None = None,
    domain: Mapping[str, Any] | None = None,
    chunk_layout: Mapping[str, Any] | None = None,
    codec: Mapping[str, Any] | None = None,
    fill_value: Any = None,
    dimension_units: Sequence[Any] | None = None,
    **members: Any,
) -> Array:
    """Open or create the array of a TensorStore spec.

    Args:
        spec: the spec as a JSON object (drivers ``zarr3``, ``zarr`` and ``zarr2``, or ``auto`` to detect the format),
            or a URL such as ``file:///data/a.zip|zip:image|zarr3:``.
        context: the resources that the array shares with others; by default a context of the process.
        read_only: open read-only. Otherwise the array is writable if the store is.
        dtype, shape, rank, domain, chunk_layout, codec, fill_value, dimension_units: schema constraints in addition
            to those of the spec.
        members: members that override those of the spec: ``open``, ``create``, ``delete_existing``,
            ``assume_metadata``, ``recheck_cached_data`` ...

    Raises:
        MetadataError: the spec is invalid, or the existing array does not match it. The message names the member.
        NodeNotFoundError, LocationError: the array does not exist.
        NodeExistsError: the array exists, and the spec does not allow opening it.
    """
    if isinstance(spec, str):
        spec = spec_of_url(spec)
    full_spec = {**spec, **members}
    check_keys(full_spec, "spec", MEMBERS)
    for name in FLAGS:
        if name in full_spec and not isinstance(full_spec[name], bool):
            raise MetadataError(f"{name}: expected true or false, found {short_repr(full_spec[name])}")
    driver = full_spec.get("driver")
    if driver not in (*FORMATS, "auto"):
        raise MetadataError(
            f"driver: expected one of {', '.join([*FORMATS, 'auto'])}, found {short_repr(driver)}"
        )
    resources = Context(full_spec.get("context"), context or _default_context)
    schema = _schema(full_spec)
    for extra in (
        {"dtype": _dtype_name(dtype)} if dtype is not None else {},
        {"domain": {"shape": list(shape)}} if shape is not None else {},
        {"domain": domain} if domain is not None else {},
        {"rank": rank, "chunk_layout": chunk_layout, "codec": codec},
    ):
        schema = merge_schemas(schema, schema_from_json(extra))
    if fill_value is not None:
        schema = merge_schemas(schema, Schema(fill_value=fill_value))
    if dimension_units is not None:
        schema = merge_schemas(
            schema, Schema(units=units_from_json(list(dimension_units), "dimension_units"))
        )
    access = _access(full_spec, resources)
    open_mode = _OpenMode(full_spec, read_only)
    store, path = _store(full_spec, open_mode, resources)
    if driver == "auto":
        driver = _detect_driver(store, path)
    constraints = constraints_from_json(driver, full_spec.get("metadata"), schema)
    cache = resources.cache(full_spec.get("cache_pool"))
    metadata_cache = resources.metadata(full_spec.get("metadata_cache_pool"), full_spec.get("cache_pool"))
    is_read_only = read_only or store.read_only

    def array(spec: ArraySpec) -> Array:
        return Array(store, path, spec, cache, is_read_only, access)

    if access.assumed is not None:
        return array(array_spec(**creation_options(constraints)))
    if open_mode.open:
        existing, read_at = _read(store, path, access, metadata_cache)
        if existing is not None:
            opened = array(existing)
            check_array(opened, constraints)
            metadata_cache.put(store, path, existing, read_at)
            return opened
        if not open_mode.create:
            raise NodeNotFoundError(f"{store.url}/{path}: no array found, and the spec does not set 'create'")
    elif not open_mode.delete and formats.read_kind(store, path) is not None:
        raise NodeExistsError(
            f"{store.url}/{path}: a node exists; set 'open' to open it, or 'delete_existing' to replace it"
        )
    options = creation_options(constraints)
    formats.check_writable(array_spec(**options))
    if open_mode.delete:
        store.delete_prefix(path)
    return new_nodes.create_array(store, path, cache, access=access, **options)


class _OpenMode:
    """The options ``open``, ``create`` and ``delete_existing``. Raises MetadataError for invalid combinations."""

    def __init__(self, spec: Mapping[str, Any], read_only: bool) -> None:
        self.create: bool = spec.get("create", False)
        self.open: bool = spec.get("open", not self.create)
        self.delete: bool = spec.get("delete_existing", False)
        if not self.open and not self.create:
            raise MetadataError("open: either open or create must be true")
        if self.delete and (self.open or not self.create):
            raise MetadataError("delete_existing: needs create to be true and open to be false")
        if self.create and read_only:
            raise MetadataError("create: a new array cannot be opened read-only")
        for name in ("assume_metadata", "assume_cached_metadata"):
            if spec.get(name) and not self.open:
                raise MetadataError(f"{name}: needs open to be true")
        assumed = spec.get("assume_metadata") or spec.get("assume_cached_metadata")
        self.mode = "r" if read_only else "a" if self.create or assumed else "r+"


def _store(spec: Mapping[str, Any], open_mode: _OpenMode, context: Context) -> tuple[Store, str]:
    if "kvstore" not in spec:
        raise MetadataError("kvstore: the member is missing; it specifies the location of the array")
    path = spec.get("path", "")
    if not isinstance(path, str):
        raise MetadataError(f"path: expected a string, found {short_repr(path)}")
    try:
        return open_kvstore(spec["kvstore"], path, open_mode.mode, context)
    except LocationError:
        if open_mode.mode == "r+":
            # A store that is read-only, such as a remote zip file, is opened for reading.
            return open_kvstore(spec["kvstore"], path, "r", context)
        raise


def _detect_driver(store: Store, path: str) -> str:
    existing = formats.read_node(store, path)
    if existing is None:
        raise NodeNotFoundError(f"{store.url}/{path}: no array found")
    drivers = {number: name for name, number in reversed(FORMATS.items())}
    if existing.zarr_format not in drivers:
        raise MetadataError(
            f"{store.url}/{path}: format {existing.zarr_format!r} is not supported by any driver"
        )
    return drivers[existing.zarr_format]


def _read(
    store: Store, path: str, access: ReadWriteOptions, metadata_cache: Any
) -> tuple[ArraySpec | None, float]:
    cached = metadata_cache.get(store, path)
    if cached is not None and access.may_reuse_metadata(cached[1]):
        existing, read_at = cached
    else:
        read_at = time.time()
        existing = formats.read_node(store, path)
    if existing is not None and not isinstance(existing, ArraySpec):
        raise NodeTypeError(f"{store.url}/{path}: expected an array, found a group")
    return existing, read_at


def _dtype_name(dtype: Any) -> Any:
    name = getattr(dtype, "name", None)
    if isinstance(name, str) and not isinstance(dtype, type | np.dtype):
        return name  # a tensorstore.dtype
    return data_type_to_v3(data_type_from_numpy(dtype))


def _schema(spec: Mapping[str, Any]) -> Schema:
    schema = schema_from_json(spec.get("schema") or {})
    extra = {name: spec[name] for name in ("dtype", "rank") if spec.get(name) is not None}
    schema = merge_schemas(schema, schema_from_json(extra, "spec"))
    transform = spec.get("transform")
    return schema if transform is None else merge_schemas(schema, _identity_domain(transform))


DOMAIN_MEMBERS = ("inclusive_min", "exclusive_max", "inclusive_max", "shape", "labels")


def _identity_domain(transform: Any) -> Schema:
    """Return the domain of an identity transform as a schema. Raises MetadataError for other transforms."""
    transform = expect_object(transform, "transform")
    for position, output in enumerate(expect_list(transform.get("output", ()), "transform/output")):
        if output != {"input_dimension": position} and output != {
            "input_dimension": position,
            "offset": 0,
            "stride": 1,
        }:
            raise MetadataError(
                f"transform/output/{position}: expected the identity for dimension {position}, "
                f"found {short_repr(output)}; "
                "index the array instead"
            )
    domain = {name: transform[f"input_{name}"] for name in DOMAIN_MEMBERS if f"input_{name}" in transform}
    existing = schema_from_json({"domain": domain, "rank": transform.get("input_rank")}, "transform")
    # The labels of a transform are not those of the array.
    return replace(existing, labels=None)


def _access(spec: Mapping[str, Any], context: Context) -> ReadWriteOptions:
    recheck_default = spec.get("recheck_cached")
    assumed: Literal["only", "cached"] | None = (
        "only" if spec.get("assume_metadata") else "cached" if spec.get("assume_cached_metadata") else None
    )
    bounds = {}
    for name, default in (("recheck_cached_metadata", "open"), ("recheck_cached_data", True)):
        value = spec.get(name, default if recheck_default is None else recheck_default)
        if value != "open" and not isinstance(value, bool | int | float):
            raise MetadataError(
                f"{name}: expected true, false, 'open' or seconds since 1970, found {short_repr(value)}"
            )
        bounds[name] = value
    return ReadWriteOptions(
        recheck_metadata=bounds["recheck_cached_metadata"],
        recheck_data=bounds["recheck_cached_data"],
        fill_missing=spec.get("fill_missing_data_reads", True),
        write_empty_chunks=spec.get("store_data_equal_to_fill_value", False),
        concurrency=context.concurrency(spec.get("data_copy_concurrency")),
        assumed=assumed,
    )
