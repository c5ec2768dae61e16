"""The sources of a mount: opening of locations, with a time limit for those on servers, and their names."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import quote

import zarrfs
from zarrfs.credentials import hide_credentials, register_secrets, register_url
from zarrfs.engine.array.array import Array
from zarrfs.engine.cache import ChunkCache
from zarrfs.engine.group.group import Group, make_node
from zarrfs.engine.stores.base import DOCUMENT_NAMES, Store
from zarrfs.engine.stores.icechunk.addresses import PREFIX, is_icechunk
from zarrfs.engine.stores.icechunk.addresses import absolute_location as absolute_icechunk_location
from zarrfs.engine.stores.locations import open_store
from zarrfs.engine.stores.remote.object_options import SERVICES
from zarrfs.engine.stores.wrappers.retrying import RetryStore
from zarrfs.engine.stores.wrappers.timeout import DaemonExecutor, DaemonThreads, TimeoutStore
from zarrfs.errors import MountError
from zarrfs.mount.fuse.control import CONTROL_DIRECTORY
from zarrfs.mount.options import MountOptions
from zarrfs.mount.writing.local_storage import check_store
from zarrfs.ngff.members import member_names

__all__ = [
    "absolute_location",
    "display_location",
    "is_on_server",
    "limited_in_time",
    "open_sources",
    "source_names",
    "with_password",
]

LOCAL_SCHEMES = frozenset({"", "file", "local", "memory", "sqlite", "dbm", "lmdb", "temporary"})

PASSWORD_OPTIONS = {
    "s3": "secret",
    "s3a": "secret",
    "gs": "token",
    "gcs": "token",
    "az": "account_key",
    "abfs": "account_key",
    "abfss": "account_key",
    "ftp": "password",
    "sftp": "password",
    "ssh": "password",
    "smb": "password",
    "github": "token",
}
"""Protocol -> the storage option that has the password. For other protocols it becomes part of the URL."""


def scheme_of(location: str) -> str:
    """Return the scheme of the last part of a URL in lower case; an empty string for a path."""
    head, separator, _ = location.removeprefix(PREFIX).rpartition("::")[2].partition("://")
    return head.lower() if separator and "/" not in head else ""


def is_on_server(location: str | Store) -> bool:
    """Return whether reading the location sends requests to a server."""
    return isinstance(location, str) and scheme_of(location) not in LOCAL_SCHEMES


def absolute_location(location: str) -> str:
    """Return the location, a relative path as an absolute one: the process of the mount has another directory."""
    if is_icechunk(location):
        return absolute_icechunk_location(location)
    return location if "://" in location or not location else os.path.abspath(os.path.expanduser(location))


def display_location(location: str | Store) -> str:
    """Return the location without credentials."""
    return hide_credentials(location.url if isinstance(location, Store) else location)


def root_name(location: str) -> str:
    """Return the file name of an array that is the root of a store: its name without .zarr, .n5, .zip and .ozx."""
    name = Path(hide_credentials(location).rstrip("/")).name
    for suffix in (".zip", ".ozx", ".zarr", ".n5"):
        name = name.removesuffix(suffix)
    return name or "array"


def source_names(locations: Sequence[str | Store]) -> list[str]:
    """Return a different name for each source: that of the location, with a number if it is used already."""
    names: list[str] = []
    for location in locations:
        base = root_name(display_location(location))
        name, number = base, 1
        while name in (*names, CONTROL_DIRECTORY, ".", ".."):
            number += 1
            name = f"{base}-{number}"
        names.append(name)
    return names


def with_password(location: str, options: MountOptions) -> tuple[str, dict[str, object] | None]:
    """Return the location and the storage options with the password of the options, if there is one."""
    storage: dict[str, object] = dict(options.storage_options or {})
    register_secrets(storage)
    register_url(location)
    if options.password is None:
        return location, storage or None
    scheme = scheme_of(location)
    if scheme in LOCAL_SCHEMES:
        raise MountError(f"{location} is not a URL, so it has no password (--password-file)")
    if scheme in PASSWORD_OPTIONS:
        storage[PASSWORD_OPTIONS[scheme]] = options.password
        register_secrets(storage)
        return location, storage
    chain, separator, url = location.rpartition("::")
    head, _, rest = url.partition("://")
    authority, slash, path = rest.partition("/")
    user, _, host = authority.rpartition("@")
    user = user.partition(":")[0]
    located = f"{chain}{separator}{head}://{user}:{quote(options.password, safe='')}@{host}{slash}{path}"
    register_url(located)
    return located, storage or None


def open_sources(
    locations: Sequence[str | Store], options: MountOptions, cache_size: int, access: zarrfs.Access
) -> list[Array | Group]:
    """Open the node of each location. They share one cache of decoded chunks of ``cache_size`` bytes.

    The caller closes the stores of the nodes. Raises ZarrError.
    """
    nodes: list[Array | Group] = []
    try:
        for location in locations:
            nodes.append(
                _open_source(location, options, nodes[0]._cache if nodes else None, cache_size, access)
            )
    except BaseException:
        for node in nodes:
            node.store.close()
        raise
    return nodes


def _open_source(
    location: str | Store,
    options: MountOptions,
    cache: ChunkCache | None,
    cache_size: int,
    access: zarrfs.Access,
) -> Array | Group:
    path = options.path
    storage = options.storage_options
    opened: str | Store = location
    if isinstance(location, str):
        located, storage = with_password(location, options)
        opened = located
        if is_on_server(location):
            store, inner = _open_on_server(located, storage, options)
            opened, storage = store, None
            path = "/".join(part for part in (inner, path) if part)
    try:
        synchronizer = None
        if options.writable:
            with zarrfs.open(opened, path, "r", storage_options=storage) as probe:
                check_store(probe.store)
            if options.synchronizer is not None:
                synchronizer = zarrfs.ProcessSynchronizer(options.synchronizer)
        node = zarrfs.open(
            opened,
            path,
            "r+" if options.writable else "r",
            cache_size=cache_size,
            storage_options=storage,
            synchronizer=synchronizer,
            access=access,
        )
        if isinstance(node, Group) and isinstance(opened, TimeoutStore):
            # A server that cannot list is reported now, not when the first program finds the directory empty.
            member_names(node)
    except BaseException:
        if isinstance(opened, TimeoutStore):
            opened.close()
        raise
    if cache is None:
        return node
    return make_node(node.store, node.path, node.spec, cache, not options.writable, node.access)


def _open_on_server(
    location: str, storage: dict[str, object] | None, options: MountOptions
) -> tuple[TimeoutStore, str]:
    """Return a store whose operations are repeated and limited in time, and the path in it."""
    mode = "r+" if options.writable else "r"
    if not is_icechunk(location):
        storage = _with_client_timeout(location, storage, options.timeout)
        _import_client(scheme_of(location))
    task = DaemonThreads(1).start(lambda: open_store(location, mode=mode, storage_options=storage))
    if not task.done.wait(options.timeout):
        raise MountError(
            f"{location}: the server did not respond within {options.timeout:g} s (--timeout). Check the address, and "
            "the connection"
        )
    if task.error is not None:
        raise task.error
    store, inner = task.result
    return limited_in_time(store, options), inner


def limited_in_time(store: Store, options: MountOptions) -> TimeoutStore:
    """Return a store whose operations are repeated and limited in time."""
    store.repeat_requests(0)
    retrying = RetryStore(store, attempts=options.retries + 1) if options.retries else store
    return TimeoutStore(retrying, options.timeout, _is_metadata)


def _import_client(scheme: str) -> None:
    """Import the client library of a protocol outside of the time limit for requests: this takes seconds on a busy
    machine. Its look-ups of names of servers do not delay the exit of the process.
    """
    with suppress(ImportError, ValueError):  # reported when the store is opened
        from fsspec import get_filesystem_class
        from fsspec.asyn import get_loop

        if scheme not in SERVICES or find_spec("obstore") is None:
            get_filesystem_class(scheme)
        get_loop().set_default_executor(DaemonExecutor())


def _with_client_timeout(
    location: str, storage: dict[str, object] | None, timeout: float
) -> dict[str, object] | None:
    """Return the storage options with a time limit for the requests of the client. Limits that the user has set are
    kept.

    Without this limit, an abandoned request occupies its connection and its thread for minutes if the connection was
    lost silently, and delays new requests when the server can be reached again.
    """
    options = dict(storage or {})
    scheme = scheme_of(location)
    if scheme in ("http", "https", "gs", "gcs"):
        try:
            from aiohttp import ClientTimeout
        except ImportError:  # reported when the store is opened
            return storage
        limit = ClientTimeout(total=timeout)
        if scheme in ("gs", "gcs"):
            options.setdefault("requests_timeout", limit)
        else:
            _set_members(options, "client_kwargs", timeout=limit)
    elif scheme in ("s3", "s3a"):
        _set_members(options, "config_kwargs", connect_timeout=timeout, read_timeout=timeout)
    else:
        return storage
    return options


def _set_members(options: dict[str, object], name: str, **defaults: object) -> None:
    """Add members to an option that is a mapping, or missing. Members that exist are kept."""
    given = options.get(name) or {}
    if isinstance(given, Mapping):
        options[name] = {**defaults, **given}


def _is_metadata(key: str) -> bool:
    return key.rpartition("/")[2] in DOCUMENT_NAMES or key.startswith("meta/")
