"""Opening: a location and a path -> an array or a group. Creating is in ``creation.py``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Literal, Unpack

import numpy as np

from zarrfs.engine.cache import ChunkCache, default_cache
from zarrfs.engine.creation.array_options import (
    ArrayOptions,
    engine_options,
    lists_options,
    without_defaults,
)
from zarrfs.engine.formats import api as formats
from zarrfs.engine.formats.paths import normalise_path
from zarrfs.engine.io.access import Access
from zarrfs.engine.locations import Location, open_store
from zarrfs.engine.nodes import creation
from zarrfs.engine.nodes.array import Array
from zarrfs.engine.nodes.group import Group, make_node
from zarrfs.engine.nodes.node import OpenStore, StoredNode
from zarrfs.engine.options import check_names, check_type
from zarrfs.engine.stores.base import Store
from zarrfs.engine.stores.memory import MemoryStore
from zarrfs.engine.stores.wrappers.synchronizers import SynchronizedStore, Synchronizer
from zarrfs.engine.values import describe_value
from zarrfs.errors import LocationError, MetadataError, NodeNotFoundError, NodeTypeError, OptionError

__all__ = [
    "Location",
    "Mode",
    "create_array",
    "create_group",
    "group",
    "open",
    "open_array",
    "open_consolidated",
    "open_group",
]

Mode = Literal["r", "r+", "a", "w", "w-", "x"]

MODES = ("r", "r+", "a", "w", "w-")

MODE_ALIASES = {"x": "w-"}

DEFAULT_MODE: Mode = "r"
"""The mode where none is given and nothing says that a node is to be created. zarr-python has ``"a"``: a mistyped path
then makes an empty group, and data that are only read can be changed by mistake.
"""

FOR_OPENING = (
    "config",
    "write_empty_chunks",
    "cache_metadata",
    "cache_attrs",
    "partial_decompress",
    "access",
)
"""Options of ``ArrayOptions`` that say how a node is used, so that they have a meaning for one that exists."""

OPEN_OPTIONS = {
    "path",
    "mode",
    "cache_size",
    "allow_pickle",
    "allow_external",
    "storage_options",
    "synchronizer",
}
"""Options that only functions that open have, for the advice on unknown names."""


@lists_options(ArrayOptions)
def open(
    store: Location | None = None,
    path: str | None = "",
    mode: Mode | None = None,
    *,
    cache_size: int | None = None,
    allow_pickle: bool = False,
    allow_external: bool = False,
    storage_options: dict[str, Any] | None = None,
    synchronizer: Synchronizer | None = None,
    use_consolidated: bool | None = None,
    **options: Unpack[ArrayOptions],
) -> Array | Group:
    """Open the array or group at ``path`` in ``store``; the format is found out. Or create one.

    Args:
        store: a path or URL, which may point into a hierarchy (``image.zarr/labels/0``), a store, a dict, or a node;
            a store of zarr-python too. None creates a node in memory.
        path: the path of the node below the location.
        mode: ``"r"`` to read; ``"r+"`` to read and write; ``"a"`` to read and write, created if there is nothing;
            ``"w"`` to create it anew, deleting what is there; ``"w-"`` or ``"x"`` to create it, an error if there is
            something. The default is ``"a"`` if options for creating are given, else ``"r"``.
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
        use_consolidated: whether consolidated metadata say what is in a group: True, and it is an error if there are
            none; False; or None, where asking the store is slow.
        options: ``access`` says when metadata and chunks are compared with the store again, whether missing chunks
            are an error, and how many threads read; see ``Access``. ``zarr_format`` accepts only nodes of that format.
            Others are for creating: the options of ``create_array`` if there is ``shape`` or ``data`` among them,
            else those of ``create_group``.

    Raises:
        LocationError: there is no such store.
        NodeNotFoundError: there is nothing at the path.
        NodeExistsError: mode is ``"w-"``, and there is something.
        MetadataError: there is something, but its metadata are broken or ask for what is not supported.
    """
    _check_common(cache_size, storage_options, synchronizer, options.get("access"))
    _check_names("open()", options)
    given = without_defaults(options)
    chosen = _mode(mode, store, given)
    zarr_format = given.get("zarr_format", given.get("zarr_version"))
    creating = {name: value for name, value in given.items() if name not in FOR_OPENING}
    unfit = [name for name in creating if name not in ("zarr_format", "zarr_version")]
    if chosen in ("r", "r+") and unfit:
        raise LocationError(
            f"mode {chosen!r} opens what is there and takes no {', '.join(unfit)}; mode 'a', 'w' or 'w-' makes nodes"
        )
    access = _access(given, allow_pickle, allow_external, use_consolidated)
    if chosen in ("r", "r+", "a") and store is not None:
        try:
            node = _open(store, path or "", chosen, cache_size, storage_options, synchronizer, access)
        except (NodeNotFoundError, LocationError):
            if chosen != "a":
                raise
        else:
            _check_opened(node, zarr_format, use_consolidated)
            return node
    common: dict[str, Any] = {
        "cache_size": cache_size,
        "storage_options": storage_options,
        "synchronizer": synchronizer,
        "overwrite": chosen == "w",
    }
    place: Location = MemoryStore() if store is None else store
    if "shape" in given or "data" in given:
        return create_array(place, path, **{**given, "access": access, **common})
    return create_group(place, path, **{**creating, "access": access, **common})


def _mode(mode: str | None, store: Location | None, given: Mapping[str, Any]) -> str:
    if mode is None:
        creating = [name for name in given if name not in (*FOR_OPENING, "zarr_format", "zarr_version")]
        return "a" if creating or store is None else DEFAULT_MODE
    mode = MODE_ALIASES.get(mode, mode)
    if mode not in MODES:
        raise LocationError(f"mode must be one of {', '.join(map(repr, MODES))}, found {mode!r}")
    if store is None and mode in ("r", "r+"):
        raise LocationError(f"mode {mode!r} opens what is there: give a location")
    return mode


def _access(
    given: Mapping[str, Any], allow_pickle: bool, allow_external: bool, use_consolidated: bool | None
) -> Access:
    """Return how the node is to be used, of all options that say so."""
    translated = engine_options({name: given[name] for name in FOR_OPENING if name in given})
    access: Access = translated.get("access") or Access()
    changes: dict[str, Any] = {}
    if "write_empty_chunks" in translated and translated["write_empty_chunks"] is not None:
        changes["write_empty_chunks"] = translated["write_empty_chunks"]
    if allow_pickle:
        changes["allow_pickle"] = True
    if allow_external:
        changes["allow_external"] = True
    if use_consolidated is not None:
        changes["use_consolidated"] = use_consolidated
    return replace(access, **changes) if changes else access


def _check_opened(node: Array | Group, zarr_format: Any, use_consolidated: bool | None) -> None:
    """Raise unless the node has the format, and the consolidated metadata, that were asked for."""
    if zarr_format is not None and node.zarr_format != zarr_format:
        raise NodeNotFoundError(
            f"{node.store.url}: {node.name} has zarr_format {node.zarr_format!r}, {zarr_format!r} was asked for"
        )
    if use_consolidated and isinstance(node, Group) and node.spec.consolidated is None:
        raise MetadataError(
            f"{node.store.url}: {node.name} has no consolidated metadata; make them by consolidate_metadata, or open "
            "the group without use_consolidated"
        )


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
        spec = formats.read_node(
            store, full, use_consolidated=access.use_consolidated is not False, **access.reading
        )
        if spec is None:
            hint = f"; for the mode, write mode={path!r}" if path in (*MODES, *MODE_ALIASES) else ""
            raise NodeNotFoundError(_nothing_there(store, full) + hint)
        node = make_node(store, full, spec, _cache(cache_size), mode == "r" or store.read_only, access)
        return node._share_store(shared)


@lists_options(ArrayOptions)
def open_array(
    store: Location | None = None,
    path: str | None = "",
    mode: Mode | None = None,
    *,
    cache_size: int | None = None,
    allow_pickle: bool = False,
    allow_external: bool = False,
    storage_options: dict[str, Any] | None = None,
    synchronizer: Synchronizer | None = None,
    **options: Unpack[ArrayOptions],
) -> Array:
    """Open, or create, the array at ``path`` in ``store``; arguments and errors as ``open``. A group is a
    NodeTypeError; an array that is to be created needs a ``shape`` or ``data``.
    """
    _check_names("open_array()", options)
    unshaped = options.get("shape") is None and options.get("data") is None
    if unshaped and (mode in ("w", "w-", "x") or store is None):
        raise LocationError(
            f"mode {mode or 'a'!r} makes an array, which needs a shape, or data to take it from"
        )
    if unshaped and mode == "a":
        # There must be an array: none can be created.
        mode = "r+"
        options = {name: value for name, value in options.items() if name in FOR_OPENING}  # type: ignore[assignment]
    node = open(
        store,
        path,
        mode,
        cache_size=cache_size,
        allow_pickle=allow_pickle,
        allow_external=allow_external,
        storage_options=storage_options,
        synchronizer=synchronizer,
        **options,
    )
    if isinstance(node, Group):
        raise NodeTypeError(
            f"{node.store.url}: {node.name} is a group, an array was asked for; it has {node._some_names()}"
        )
    return node


def open_group(
    store: Location | None = None,
    path: str | None = "",
    mode: Mode | None = None,
    *,
    cache_size: int | None = None,
    allow_pickle: bool = False,
    allow_external: bool = False,
    storage_options: dict[str, Any] | None = None,
    synchronizer: Synchronizer | None = None,
    access: Access | None = None,
    use_consolidated: bool | None = None,
    zarr_format: int | str | None = None,
    zarr_version: int | None = None,
    attributes: Mapping[str, Any] | None = None,
    cache_attrs: bool | None = None,
    chunk_store: None = None,
    meta_array: None = None,
) -> Group:
    """Open, or create, the group at ``path`` in ``store``; arguments and errors as ``open``. An array is a
    NodeTypeError.
    """
    node = open(
        store,
        path,
        mode,
        cache_size=cache_size,
        allow_pickle=allow_pickle,
        allow_external=allow_external,
        storage_options=storage_options,
        synchronizer=synchronizer,
        use_consolidated=use_consolidated,
        access=access,
        zarr_format=zarr_format,
        zarr_version=zarr_version,
        attributes=attributes,
        cache_attrs=cache_attrs,
        chunk_store=chunk_store,
        meta_array=meta_array,
    )
    if isinstance(node, Array):
        raise NodeTypeError(
            f"{node.store.url}: {node.name} is an array, a group was asked for; use open_array"
        )
    return node


def open_consolidated(
    store: Location,
    path: str | None = "",
    mode: Mode | None = None,
    *,
    cache_size: int | None = None,
    allow_pickle: bool = False,
    storage_options: dict[str, Any] | None = None,
    synchronizer: Synchronizer | None = None,
    access: Access | None = None,
    zarr_format: int | str | None = None,
    use_consolidated: Literal[True] = True,
) -> Group:
    """Open a group that has consolidated metadata, and let them say what is in it; arguments as ``open_group``.

    Raises MetadataError if it has none.
    """
    if use_consolidated is not True:
        raise TypeError("open_consolidated uses consolidated metadata; open_group has use_consolidated=False")
    return open_group(
        store,
        path,
        mode,
        cache_size=cache_size,
        allow_pickle=allow_pickle,
        storage_options=storage_options,
        synchronizer=synchronizer,
        access=access,
        zarr_format=zarr_format,
        use_consolidated=True,
    )


def group(
    store: Location | None = None,
    path: str | None = "",
    *,
    overwrite: bool = False,
    zarr_format: int | str | None = None,
    zarr_version: int | None = None,
    attributes: Mapping[str, Any] | None = None,
    storage_options: dict[str, Any] | None = None,
    synchronizer: Synchronizer | None = None,
    cache_attrs: bool | None = None,
    chunk_store: None = None,
    meta_array: None = None,
) -> Group:
    """Open the group at ``path`` in ``store`` for reading and writing, created if there is none; in memory if no
    location is given. ``overwrite`` deletes what is there first.
    """
    return open_group(
        store,
        path,
        "w" if overwrite else "a",
        zarr_format=zarr_format,
        zarr_version=zarr_version,
        attributes=attributes,
        storage_options=storage_options,
        synchronizer=synchronizer,
        cache_attrs=cache_attrs,
        chunk_store=chunk_store,
        meta_array=meta_array,
    )


def create_group(
    store: Location | None = None,
    path: str | None = "",
    *,
    zarr_format: int | str | None = None,
    zarr_version: int | None = None,
    attributes: Mapping[str, Any] | None = None,
    overwrite: bool = False,
    cache_size: int | None = None,
    storage_options: dict[str, Any] | None = None,
    synchronizer: Synchronizer | None = None,
    access: Access | None = None,
    chunk_store: None = None,
    meta_array: None = None,
) -> Group:
    """Create a group, with groups on the way to it; in memory if no location is given.

    Raises NodeExistsError if there is a node already, unless ``overwrite`` deletes it with all below.
    """
    _check_common(cache_size, storage_options, synchronizer, access)
    translated = engine_options(
        {
            "zarr_format": zarr_format,
            "zarr_version": zarr_version,
            "chunk_store": chunk_store,
            "meta_array": meta_array,
        }
    )
    location: Location = MemoryStore() if store is None else store
    place, inner, shared = _store(location, "a", storage_options, synchronizer, access)
    with _closing_on_failure(place, location):
        full = "/".join(part for part in (inner, normalise_path(path or "")) if part)
        spec = creation.create_group_node(
            place, full, translated.get("zarr_format", 3), attributes or {}, overwrite
        )
        return Group(place, full, spec, _cache(cache_size), False, access)._share_store(shared)


@lists_options(ArrayOptions)
def create_array(
    store: Location | None = None,
    path: str | None = "",
    *,
    name: str | None = None,
    cache_size: int | None = None,
    storage_options: dict[str, Any] | None = None,
    synchronizer: Synchronizer | None = None,
    **options: Unpack[ArrayOptions],
) -> Array:
    """Create an array, with groups on the way to it; in memory if no location is given.

    Args:
        store: a path or URL, a store, a dict, or a node.
        path, name: the path of the array below the location; ``name`` is zarr-python's word for it.
        options: those of ``creation.create_array_node`` and ``new_arrays.array_spec``. The usual ones: ``shape`` and
            ``dtype`` (or ``data``), ``chunks``, ``shards``, ``codecs`` or ``filters``, ``serializer`` and
            ``compressors``, ``fill_value``, ``order``, ``dimension_names``, ``dimension_units``, ``attributes``,
            ``zarr_format``, ``overwrite`` and ``access``.
            ``write_data=False`` takes only shape and dtype from ``data``. ``compressor``, ``object_codec``,
            ``chunk_shape``, ``config``, ``cache_metadata``, ``read_only`` and ``zarr_version`` mean what they mean in
            zarr-python.
    """
    _check_common(cache_size, storage_options, synchronizer, options.get("access"))
    _check_names("create_array()", options)
    if name is not None and path:
        raise LocationError(f"give either path or name, found {path!r} and {name!r}")
    translated = engine_options(options)
    location: Location = MemoryStore() if store is None else store
    place, inner, shared = _store(location, "a", storage_options, synchronizer, options.get("access"))
    with _closing_on_failure(place, location):
        full = "/".join(part for part in (inner, normalise_path(name or path or "")) if part)
        array = creation.create_array_node(place, full, _cache(cache_size), **translated)
        array._read_only = bool(options.get("read_only"))
        return array._share_store(shared)


def _check_names(function: str, options: Mapping[str, Any]) -> None:
    known = set(ArrayOptions.__annotations__) | creation.ARRAY_OPTIONS
    check_names(function, options, known if function == "create_array()" else known | OPEN_OPTIONS)


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
        name for name in listing.prefixes[:50] if formats.read_kind(store, f"{path}/{name}" if path else name)
    ]
    if inside:
        return f"{message}; but there is one in {', '.join(map(repr, inside[:5]))}: open that"
    return f"{message}; found {', '.join(map(repr, found[:5]))}{' ...' if len(found) > 5 else ''}"
