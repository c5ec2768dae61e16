"""Opening and creating arrays by a spec."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np

from zarrfs.engine.creation.array_spec import array_spec
from zarrfs.engine.dtypes import data_type_from_numpy, data_type_to_v3
from zarrfs.engine.formats import api as formats
from zarrfs.engine.io.access import Access
from zarrfs.engine.model import ArraySpec
from zarrfs.engine.nodes import creation
from zarrfs.engine.nodes.array import Array
from zarrfs.engine.stores.base import Store
from zarrfs.errors import LocationError, MetadataError, NodeExistsError, NodeNotFoundError, NodeTypeError
from zarrfs.tensorstore.context import Context
from zarrfs.tensorstore.kvstores import open_kvstore, spec_of_url
from zarrfs.tensorstore.metadata import FORMATS, check, creation_options, wanted_from_json
from zarrfs.tensorstore.schema import Schema, merged, schema_from_json
from zarrfs.tensorstore.units import units_from_json

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

_usual_context = Context()


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
    """Open or create the array that a spec of TensorStore describes.

    Args:
        spec: the JSON of a spec as an object (drivers ``zarr3``, ``zarr``, ``zarr2``, and ``auto`` for what is there),
            or a URL such as ``file:///data/a.zip|zip:image|zarr3:``.
        context: what the array shares with others; by default one for the whole process.
        read_only: refuse writing; otherwise the array can be written where the store can.
        dtype, shape, rank, domain, chunk_layout, codec, fill_value, dimension_units: constraints as in a schema,
            besides those of the spec.
        members: of the spec, instead of those that it has: ``open``, ``create``, ``delete_existing``,
            ``assume_metadata``, ``recheck_cached_data`` ...

    Raises:
        MetadataError: the spec is wrong, or the array that is there does not meet it; says which member.
        NodeNotFoundError, LocationError: there is nothing to open.
        NodeExistsError: there is something, and the spec says to create only.
    """
    if isinstance(spec, str):
        spec = spec_of_url(spec)
    given = {**spec, **members}
    for name in given:
        if name not in MEMBERS:
            raise MetadataError(f"{name}: a spec has no such member; there are {', '.join(MEMBERS)}")
    for name in FLAGS:
        if name in given and not isinstance(given[name], bool):
            raise MetadataError(f"{name}: expected true or false, found {given[name]!r}")
    driver = given.get("driver")
    if driver not in (*FORMATS, "auto"):
        raise MetadataError(f"driver: expected one of {', '.join([*FORMATS, 'auto'])}, found {driver!r}")
    resources = Context(given.get("context"), context or _usual_context)
    schema = _schema(given)
    for extra in (
        {"dtype": _dtype_name(dtype)} if dtype is not None else {},
        {"domain": {"shape": list(shape)}} if shape is not None else {},
        {"domain": domain} if domain is not None else {},
        {"rank": rank, "chunk_layout": chunk_layout, "codec": codec},
    ):
        schema = merged(schema, schema_from_json(extra))
    if fill_value is not None:
        schema = merged(schema, Schema(fill_value=fill_value))
    if dimension_units is not None:
        schema = merged(schema, Schema(units=units_from_json(list(dimension_units), "dimension_units")))
    access = _access(given, resources)
    wants = _Wants(given, read_only)
    store, path = _store(given, wants, resources)
    if driver == "auto":
        driver = _found_driver(store, path)
    wanted = wanted_from_json(driver, given.get("metadata"), schema)
    cache = resources.cache(given.get("cache_pool"))
    kept = resources.metadata(given.get("metadata_cache_pool"), given.get("cache_pool"))
    closed_to_writing = read_only or store.read_only

    def array(spec: ArraySpec) -> Array:
        return Array(store, path, spec, cache, closed_to_writing, access)

    if access.assumed is not None:
        return array(array_spec(**creation_options(wanted)))
    if wants.open:
        found, read_at = _read(store, path, access, kept)
        if found is not None:
            opened = array(found)
            check(opened, wanted)
            kept.put(store, path, found, read_at)
            return opened
        if not wants.create:
            raise NodeNotFoundError(
                f"{store.url}/{path}: there is no array, and the spec does not say to create one"
            )
    elif not wants.delete and formats.read_kind(store, path) is not None:
        raise NodeExistsError(
            f"{store.url}/{path}: there is something already; say 'open' to open it, or 'delete_existing'"
        )
    options = creation_options(wanted)
    formats.check_writable(array_spec(**options))
    if wants.delete:
        store.delete_prefix(path)
    return creation.create_array_node(store, path, cache, access=access, **options)


class _Wants:
    """Whether to open, create or delete, checked for sense."""

    def __init__(self, given: Mapping[str, Any], read_only: bool) -> None:
        self.create: bool = given.get("create", False)
        self.open: bool = given.get("open", not self.create)
        self.delete: bool = given.get("delete_existing", False)
        if not self.open and not self.create:
            raise MetadataError("open: either open or create must be true")
        if self.delete and (self.open or not self.create):
            raise MetadataError("delete_existing: needs create to be true and open to be false")
        if self.create and read_only:
            raise MetadataError("create: an array that is created cannot be read-only")
        for name in ("assume_metadata", "assume_cached_metadata"):
            if given.get(name) and not self.open:
                raise MetadataError(f"{name}: needs open to be true")
        assumed = given.get("assume_metadata") or given.get("assume_cached_metadata")
        self.mode = "r" if read_only else "a" if self.create or assumed else "r+"


def _store(given: Mapping[str, Any], wants: _Wants, context: Context) -> tuple[Store, str]:
    if "kvstore" not in given:
        raise MetadataError("kvstore: is missing; it says where the array is")
    path = given.get("path", "")
    if not isinstance(path, str):
        raise MetadataError(f"path: expected a string, found {path!r}")
    try:
        return open_kvstore(given["kvstore"], path, wants.mode, context)
    except LocationError:
        if wants.mode == "r+":
            # What can only be read, such as a zip file on a server, is opened to be read.
            return open_kvstore(given["kvstore"], path, "r", context)
        raise


def _found_driver(store: Store, path: str) -> str:
    found = formats.read_node(store, path)
    if found is None:
        raise NodeNotFoundError(f"{store.url}/{path}: there is no array")
    drivers = {number: name for name, number in reversed(FORMATS.items())}
    if found.zarr_format not in drivers:
        raise MetadataError(f"{store.url}/{path}: format {found.zarr_format!r} has no driver here")
    return drivers[found.zarr_format]


def _read(store: Store, path: str, access: Access, kept: Any) -> tuple[ArraySpec | None, float]:
    remembered = kept.get(store, path)
    if remembered is not None and access.may_reuse_metadata(remembered[1]):
        found, read_at = remembered
    else:
        read_at = time.time()
        found = formats.read_node(store, path)
    if found is not None and not isinstance(found, ArraySpec):
        raise NodeTypeError(f"{store.url}/{path}: there is a group, the spec is of an array")
    return found, read_at


def _dtype_name(dtype: Any) -> Any:
    name = getattr(dtype, "name", None)
    if isinstance(name, str) and not isinstance(dtype, type | np.dtype):
        return name  # TensorStore's own
    return data_type_to_v3(data_type_from_numpy(dtype))


def _schema(given: Mapping[str, Any]) -> Schema:
    schema = schema_from_json(given.get("schema") or {})
    extra = {name: given[name] for name in ("dtype", "rank") if given.get(name) is not None}
    schema = merged(schema, schema_from_json(extra, "spec"))
    transform = given.get("transform")
    return schema if transform is None else merged(schema, _identity(transform))


INPUT = ("inclusive_min", "exclusive_max", "inclusive_max", "shape", "labels")


def _identity(transform: Any) -> Schema:
    """Return the domain of a transform that changes nothing, as a schema. Others are refused: index the array."""
    if not isinstance(transform, Mapping):
        raise MetadataError(f"transform: expected an object, found {transform!r}")
    for position, output in enumerate(transform.get("output", ())):
        if output != {"input_dimension": position} and output != {
            "input_dimension": position,
            "offset": 0,
            "stride": 1,
        }:
            raise MetadataError(
                f"transform/output/{position}: expected dimension {position} as it is, found {output!r}; "
                "index the array instead"
            )
    domain = {name: transform[f"input_{name}"] for name in INPUT if f"input_{name}" in transform}
    found = schema_from_json({"domain": domain, "rank": transform.get("input_rank")}, "transform")
    # Labels of a transform are its own, not the array's.
    return replace(found, labels=None)


def _access(given: Mapping[str, Any], context: Context) -> Access:
    both = given.get("recheck_cached")
    assumed: Literal["only", "cached"] | None = (
        "only" if given.get("assume_metadata") else "cached" if given.get("assume_cached_metadata") else None
    )
    bounds = {}
    for name, usual in (("recheck_cached_metadata", "open"), ("recheck_cached_data", True)):
        value = given.get(name, usual if both is None else both)
        if value != "open" and not isinstance(value, bool | int | float):
            raise MetadataError(
                f"{name}: expected true, false, 'open' or seconds since 1970, found {value!r}"
            )
        bounds[name] = value
    return Access(
        recheck_metadata=bounds["recheck_cached_metadata"],
        recheck_data=bounds["recheck_cached_data"],
        fill_missing=given.get("fill_missing_data_reads", True),
        write_empty_chunks=given.get("store_data_equal_to_fill_value", False),
        concurrency=context.concurrency(given.get("data_copy_concurrency")),
        assumed=assumed,
    )
