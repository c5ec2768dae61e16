"""Opening: a location and a path -> an array or a group. Creating is in ``creation.py``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Literal

import numpy as np

from zarrfs.engine import creation
from zarrfs.engine.access import Access
from zarrfs.engine.array import Array
from zarrfs.engine.cache import ChunkCache, default_cache
from zarrfs.engine.formats import detect
from zarrfs.engine.formats.paths import normalise_path
from zarrfs.engine.group import Group, make_node
from zarrfs.engine.locations import Location, open_store
from zarrfs.engine.node import OpenStore, StoredNode
from zarrfs.engine.options import check_names, check_type
from zarrfs.engine.stores.base import Store
from zarrfs.engine.stores.synchronizers import SynchronizedStore, Synchronizer
from zarrfs.engine.values import describe_value
from zarrfs.errors import LocationError, NodeNotFoundError, NodeTypeError, OptionError

__all__ = ["Location", "Mode", "create_array", "create_group", "open", "open_array", "open_group"]

Mode = Literal["r", "r+", "a", "w", "w-"]

MODES = ("r", "r+", "a", "w", "w-")

CREATION_OPTIONS = creation.ARRAY_OPTIONS
"""The options of a new array."""

_GROUP_OPTIONS = {"zarr_format", "attributes", "overwrite"}

_OPEN_OPTIONS = {"path", "mode", "cache_size", "allow_pickle", "storage_options", "synchronizer", "access"}


def open(
    location: Location,
    path: str = "",
    mode: Mode = "r",
    *,
    cache_size: int | None = None,
    allow_pickle: bool = False,
    allow_external: bool = False,
    storage_options: dict[str, Any] | None = None,
    synchronizer: Synchronizer | None = None,
    access: Access | None = None,
    **creation: Any,
) -> Array | Group:
    """Open the array or group at ``path`` in ``location``; the format is found out. Or make one.

    Args:
        location: a path or URL, which may point into a hierarchy (``image.zarr/labels/0``), a store, a dict, or a node.
        path: the path of the node below the location.
        mode: ``"r"`` to read; ``"r+"`` to read and write; ``"a"`` to read and write, made if there is nothing; ``"w"``
            to make it anew, deleting what is there; ``"w-"`` to make it, an error if there is something.
        cache_size: bytes of decoded chunks kept for this node and those reached from it; 0 keeps none. By default
            the process shares one cache.
        allow_pickle: whether object arrays that were stored by pickle may be read, the node itself and those below it.
            Unpickling runs code that the data choose; say yes only to data of your own.
        allow_external: whether data outside the store may be read that the store names: through symbolic links that
            lead out of it, and references to other hosts or directories. Only for data that you trust.
        storage_options: credentials and the like for a URL, as fsspec takes them: ``anon``, ``key``, ``headers`` ...
            For directories, archives and LMDB ``durable``: with True each write waits until it has reached the disk
            (fsync), in an archive all at once when it is closed.
        synchronizer: by what writers take turns; a ``ProcessSynchronizer`` where several processes write to parts of
            one chunk or shard. Threads take turns without.
        access: when metadata and chunks are compared with the store again, whether missing chunks are an error, and
            how many threads read; see ``Access``.
        creation: of what is made: the options of ``create_array`` if there is ``shape`` or ``data`` among them, else
            those of ``create_group``.

    Raises:
        LocationError: there is no such store.
        NodeNotFoundError: there is nothing at the path.
        NodeExistsError: mode is ``"w-"``, and there is something.
        MetadataError: there is something, but its metadata are broken or ask for what is not supported.
    """
    if mode not in MODES:
        raise LocationError(f"mode must be one of {', '.join(map(repr, MODES))}, found {mode!r}")
    _check_common(cache_size, storage_options, synchronizer, access)
    check_names("open()", creation, CREATION_OPTIONS | _GROUP_OPTIONS | _OPEN_OPTIONS)
    if mode in ("r", "r+") and creation:
        raise LocationError(
            f"mode {mode!r} opens what is there and takes no {', '.join(creation)}; mode 'a', 'w' or 'w-' makes nodes"
        )
    access = access or Access()
    if allow_pickle:
        access = replace(access, allow_pickle=True)
    if allow_external:
        access = replace(access, allow_external=True)
    common: dict[str, Any] = {
        "cache_size": cache_size,
        "storage_options": storage_options,
        "synchronizer": synchronizer,
        "access": access,
    }
    if mode in ("r", "r+", "a"):
        try:
            return _open(location, path, mode, cache_size, storage_options, synchronizer, access)
        except (NodeNotFoundError, LocationError):
            if mode != "a":
                raise
    creation["overwrite"] = mode == "w"
    if "shape" in creation or "data" in creation:
        return create_array(location, path, **common, **creation)
    return create_group(location, path, **common, **creation)


def _open(
    location: Location,
    path: str,
    mode: str,
    cache_size: int | None,
    storage_options: dict[str, Any] | None,
    synchronizer: Synchronizer | None,
    access: Access,
) -> Array | Group:
    """Open what is there."""
    store, inner, shared = _store(
        location, "r" if mode == "r" else "r+", storage_options, synchronizer, access
    )
    with _closing_on_failure(store, location):
        full = "/".join(part for part in (inner, normalise_path(path)) if part)
        spec = detect.read_node(store, full, **access.reading)
        if spec is None:
            raise NodeNotFoundError(_nothing_there(store, full))
        node = make_node(store, full, spec, _cache(cache_size), mode == "r" or store.read_only, access)
        return node._share_store(shared)


def open_array(location: Location, path: str = "", mode: Mode = "r", **options: Any) -> Array:
    """Open, or make, the array at ``path`` in ``location``; arguments and errors as ``open``. A group is a
    NodeTypeError; an array that is to be made needs a ``shape`` or ``data``.
    """
    check_names("open_array()", options, CREATION_OPTIONS | _OPEN_OPTIONS)
    if options.get("shape") is None and options.get("data") is None:
        if mode in ("w", "w-"):
            raise LocationError(f"mode {mode!r} makes an array, which needs a shape, or data to take it from")
        if mode == "a":
            # There must be an array: none can be made.
            mode = "r+"
            options = {name: value for name, value in options.items() if name in _OPEN_OPTIONS}
    node = open(location, path, mode, **options)
    if isinstance(node, Group):
        raise NodeTypeError(
            f"{node.store.url}: {node.name} is a group, an array was asked for; it has {node._some_names()}"
        )
    return node


def open_group(location: Location, path: str = "", mode: Mode = "r", **options: Any) -> Group:
    """Open, or make, the group at ``path`` in ``location``; arguments and errors as ``open``. An array is a
    NodeTypeError.
    """
    check_names("open_group()", options, _GROUP_OPTIONS | _OPEN_OPTIONS)
    node = open(location, path, mode, **options)
    if isinstance(node, Array):
        raise NodeTypeError(
            f"{node.store.url}: {node.name} is an array, a group was asked for; use open_array"
        )
    return node


def create_group(
    location: Location,
    path: str = "",
    *,
    zarr_format: int | str = 3,
    attributes: dict[str, Any] | None = None,
    overwrite: bool = False,
    cache_size: int | None = None,
    storage_options: dict[str, Any] | None = None,
    synchronizer: Synchronizer | None = None,
    access: Access | None = None,
) -> Group:
    """Create a group, with groups on the way to it.

    Raises NodeExistsError if there is a node already, unless ``overwrite`` deletes it with all below.
    """
    _check_common(cache_size, storage_options, synchronizer, access)
    store, inner, shared = _store(location, "a", storage_options, synchronizer, access)
    with _closing_on_failure(store, location):
        full = "/".join(part for part in (inner, normalise_path(path)) if part)
        spec = creation.create_group_node(store, full, zarr_format, attributes or {}, overwrite)
        return Group(store, full, spec, _cache(cache_size), False, access)._share_store(shared)


def create_array(
    location: Location,
    path: str = "",
    *,
    cache_size: int | None = None,
    storage_options: dict[str, Any] | None = None,
    synchronizer: Synchronizer | None = None,
    **options: Any,
) -> Array:
    """Create an array, with groups on the way to it; the options are those of ``creation.create_array_node`` and
    ``new_arrays.array_spec``.

    The usual ones: ``shape`` and ``dtype`` (or ``data``), ``chunks``, ``shards``, ``codecs`` or ``filters``,
    ``serializer`` and ``compressors``, ``fill_value``, ``order``, ``dimension_names``, ``dimension_units``,
    ``attributes``, ``zarr_format``, ``overwrite`` and ``access``.
    """
    _check_common(cache_size, storage_options, synchronizer, options.get("access"))
    store, inner, shared = _store(location, "a", storage_options, synchronizer, options.get("access"))
    with _closing_on_failure(store, location):
        full = "/".join(part for part in (inner, normalise_path(path)) if part)
        return creation.create_array_node(store, full, _cache(cache_size), **options)._share_store(shared)


def _check_common(cache_size: Any, storage_options: Any, synchronizer: Any, access: Any) -> None:
    check_type(
        "cache_size",
        cache_size,
        (int, np.integer),
        "a number of bytes, 0 to keep nothing, or None for the shared cache",
    )
    if cache_size is not None and cache_size < 0:
        raise OptionError(f"cache_size must be at least 0, found {cache_size}; 0 keeps nothing")
    check_type("storage_options", storage_options, Mapping, "a mapping of names to values")
    check_type("access", access, Access, "an Access")
    if synchronizer is not None and not hasattr(synchronizer, "lock"):
        raise OptionError(
            f"synchronizer must be a ProcessSynchronizer or ThreadSynchronizer, found {describe_value(synchronizer)}"
        )


def _store(
    location: Location,
    mode: str,
    storage_options: dict[str, Any] | None,
    synchronizer: Synchronizer | None,
    access: Access | None,
) -> tuple[Store, str, OpenStore | None]:
    """Return a store, the path in it, and whose the store is: None for one that was given, which stays open."""
    external = access is not None and access.allow_external
    store, inner = open_store(location, mode=mode, storage_options=storage_options, allow_external=external)
    if isinstance(location, StoredNode):
        shared = location._open_store
    else:
        shared = None if isinstance(location, Store) else OpenStore(store)
    return (store if synchronizer is None else SynchronizedStore(store, synchronizer)), inner, shared


@contextmanager
def _closing_on_failure(store: Store, location: Location) -> Iterator[None]:
    """Release a store that was opened for a node when there is to be no node. An archive stays as it was."""
    try:
        yield
    except BaseException:
        if not isinstance(location, Store | StoredNode):
            getattr(store, "discard", store.close)()
        raise


def _cache(cache_size: int | None) -> ChunkCache:
    return default_cache() if cache_size is None else ChunkCache(cache_size)


def _nothing_there(store: Store, path: str) -> str:
    where = f"{store.url}/{path}" if path else store.url
    message = f"{where}: no Zarr array or group here (no zarr.json, .zarray or .zgroup)"
    if not store.listable:
        return message
    listing = store.list_dir(path)
    found = [*listing.prefixes, *listing.keys]
    if not found:
        return f"{message}; nothing is stored there at all"
    inside = [
        name for name in listing.prefixes[:50] if detect.read_kind(store, f"{path}/{name}" if path else name)
    ]
    if inside:
        return f"{message}; but there is one in {', '.join(map(repr, inside[:5]))}: open that"
    return f"{message}; found {', '.join(map(repr, found[:5]))}{' ...' if len(found) > 5 else ''}"
