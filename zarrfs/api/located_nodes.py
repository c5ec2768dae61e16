"""Existing nodes at a location, and the store that is opened for them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Unpack

from zarrfs.api.open_options import MODE_ALIASES, MODES
from zarrfs.engine.access import ReadWriteOptions
from zarrfs.engine.array.array import Array
from zarrfs.engine.cache import ChunkCache, default_cache
from zarrfs.engine.chunks.chunk_key_encodings import SeparatorKeys, resembles_chunk_key
from zarrfs.engine.create.array_options import LocationOptions
from zarrfs.engine.formats import api as formats
from zarrfs.engine.formats.paths import normalize_path
from zarrfs.engine.group.group import Group, make_node
from zarrfs.engine.hierarchy.node import OpenStore, StoredNode
from zarrfs.engine.model import ArraySpec
from zarrfs.engine.stores.base import Store
from zarrfs.engine.stores.local.store import LocalStore
from zarrfs.engine.stores.locations import Location, open_store
from zarrfs.engine.stores.wrappers.synchronizers import SynchronizedStore
from zarrfs.errors import MetadataError, NodeNotFoundError
from zarrfs.logs import logger

__all__ = ["cache_of_size", "check_opened", "closing_on_failure", "located_store", "open_existing"]

MAX_COMPARED_NAMES = 8
"""The number of names in the directory of an array that are compared with its chunk keys."""


def open_existing(
    location: Location,
    path: str,
    mode: str,
    access: ReadWriteOptions,
    **options: Unpack[LocationOptions],
) -> Array | Group:
    """Open an existing node. Raises NodeNotFoundError if there is none."""
    store, inner, shared = located_store(location, "r" if mode == "r" else "r+", access, **options)
    with closing_on_failure(store, location):
        full = "/".join(part for part in (inner, normalize_path(path)) if part)
        spec = formats.read_node(
            store, full, use_consolidated=access.use_consolidated is not False, **access.reading
        )
        if spec is None:
            hint = f"; to set the mode, use mode={path!r}" if path in (*MODES, *MODE_ALIASES) else ""
            raise NodeNotFoundError(_not_found_message(store, full, describe=mode != "a") + hint)
        node = make_node(
            store,
            full,
            spec,
            cache_of_size(options.get("cache_size")),
            mode == "r" or store.read_only,
            access,
        )
        if isinstance(store, LocalStore) and isinstance(spec, ArraySpec):
            _warn_of_other_chunk_keys(store, full, spec)
        return node._share_store(shared)


def _warn_of_other_chunk_keys(store: LocalStore, path: str, spec: ArraySpec) -> None:
    """Log a warning if the chunks of an array have other keys than its metadata describe. They would read as the fill
    value. Only some names in its directory are compared, which costs little; ``verify`` compares all keys.
    """
    encoding = spec.chunk_key_encoding
    if not isinstance(encoding, SeparatorKeys):
        return
    expected = encoding.encode((0,) * len(spec.shape))
    first, _, nested = expected.partition("/")
    prefix = formats.chunk_prefix(spec, path)
    # Most arrays have a first chunk; listing takes longer.
    if os.path.lexists(f"{store.root}/{prefix}{first}"):
        return
    decode = encoding.decoder(len(spec.shape))
    found = None
    for name in store.first_names(prefix.rstrip("/"), MAX_COMPARED_NAMES):
        if name == first:
            return  # It was created in the meantime.
        if name != "c" and not resembles_chunk_key(name):
            continue
        if (first == "0" and name.isdigit()) if nested else decode(name) is not None:
            return
        found = name
    if found is not None:
        logger.warning(
            "%s: no chunks were found with keys such as %r, which the metadata describe, but %r, which looks like a "
            'chunk: chunks with other keys read as the fill value. Correct the "dimension_separator" or the '
            '"chunk_key_encoding"; zarrfs verify lists the keys',
            *(f"{store.url}/{path}" if path else store.url, expected, found),
        )


def check_opened(node: Array | Group, zarr_format: Any, use_consolidated: bool | None) -> None:
    """Raise unless the node has the requested format and, if required, consolidated metadata."""
    if zarr_format is not None and node.zarr_format != zarr_format:
        raise NodeNotFoundError(
            f"{node.store.url}: {node.name} has zarr_format {node.zarr_format!r}, expected {zarr_format!r}"
        )
    if use_consolidated and isinstance(node, Group) and node.spec.consolidated is None:
        raise MetadataError(
            f"{node.store.url}: {node.name} has no consolidated metadata; create them with consolidate_metadata, or "
            "open the group without use_consolidated"
        )


def located_store(
    location: Location,
    mode: str,
    access: ReadWriteOptions | None,
    **options: Unpack[LocationOptions],
) -> tuple[Store, str, OpenStore | None]:
    """Return the store of a location, the path in it, and the owner of the store: None if the caller passed it."""
    external = access is not None and access.allow_external
    storage_options, synchronizer = options.get("storage_options"), options.get("synchronizer")
    store, inner = open_store(location, mode=mode, storage_options=storage_options, allow_external=external)
    if access is not None and access.concurrency is not None:
        store.limit_requests(access.concurrency)
    if isinstance(location, StoredNode):
        shared = location._open_store
    else:
        shared = None if isinstance(location, Store) else OpenStore(store)
    return (store if synchronizer is None else SynchronizedStore(store, synchronizer)), inner, shared


@contextmanager
def closing_on_failure(store: Store, location: Location) -> Iterator[None]:
    """If the block raises, close a store that was opened for the location. An archive is not changed."""
    try:
        yield
    except BaseException:
        if not isinstance(location, Store | StoredNode):
            getattr(store, "discard", store.close)()
        raise


def cache_of_size(cache_size: int | None) -> ChunkCache:
    """Return a new cache of ``cache_size`` bytes, or the cache that all nodes of the process share if that is None."""
    return default_cache() if cache_size is None else ChunkCache(cache_size)


def _not_found_message(store: Store, path: str, *, describe: bool) -> str:
    """Return the message for a missing node. With ``describe`` it names what is there instead, which takes requests."""
    where = f"{store.url}/{path}" if path else store.url
    message = f"{where}: no Zarr array or group here (no zarr.json, .zarray or .zgroup)"
    if not store.listable:
        return message
    formats.check_document_files(store, path)
    if not describe:  # The caller creates the node.
        return message
    listing = store.list_dir(path)
    names = [*listing.prefixes, *listing.keys]
    if not names:
        problem = store.missing_container()
        return f"{message}; the location is empty" if problem is None else f"{where}: {problem}"
    nodes = [
        name for name in listing.prefixes[:50] if formats.read_kind(store, f"{path}/{name}" if path else name)
    ]
    if nodes:
        return f"{message}; open one of its members: {', '.join(map(repr, nodes[:5]))}"
    return f"{message}; found {', '.join(map(repr, names[:5]))}{' ...' if len(names) > 5 else ''}"
