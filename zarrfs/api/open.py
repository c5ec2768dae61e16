"""The public functions that open and create nodes at a location: ``open``, ``open_array``, ``create_array`` ...

Their options are checked in ``open_options.py``. Existing nodes are opened in ``located_nodes.py``, new ones are
written in ``engine/create/new_nodes.py``, and stores are opened in ``engine/stores/locations/``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Unpack, cast

from zarrfs.api.located_nodes import (
    cache_of_size,
    check_opened,
    closing_on_failure,
    located_store,
    open_existing,
)
from zarrfs.api.open_options import (
    FOR_OPENING,
    Mode,
    check_options,
    resolve_access,
    resolve_mode,
)
from zarrfs.engine.array.array import Array
from zarrfs.engine.create import new_nodes
from zarrfs.engine.create.array_options import (
    ArrayOptions,
    CreateArrayOptions,
    CreateGroupOptions,
    LocationOptions,
    NodeOptions,
    OpenArrayOptions,
    OpenGroupOptions,
    OpenNodeOptions,
    described,
    engine_options,
    with_options_signature,
    without_defaults,
)
from zarrfs.engine.formats.paths import normalize_path
from zarrfs.engine.group.group import Group
from zarrfs.engine.stores.locations import Location
from zarrfs.engine.stores.memory import MemoryStore
from zarrfs.errors import (
    LocationError,
    NodeExistsError,
    NodeNotFoundError,
    NodeTypeError,
    OptionError,
    ZarrError,
    import_failure,
)

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


@with_options_signature(OpenNodeOptions)
def open(
    store: Location | None = None,
    path: str | None = "",
    mode: Mode | None = None,
    **options: Unpack[OpenNodeOptions],
) -> Array | Group:
    """Open the array or group at ``path`` in ``store``, or create one. The format is detected.

    A store that is opened for the location is closed together with the returned node and the nodes reached from it. A
    store that is passed stays open.

    Args:
        store: a path or URL, which may point into a hierarchy (``image.zarr/labels/0``), a store, a store of
            zarr-python, a dictionary of keys to bytes, or an open node. None creates a node in memory.
        path: the path of the node below the location.
        mode: ``"r"`` reads an existing node; ``"r+"`` reads and writes an existing node; ``"a"`` reads and writes, and
            creates the node if it does not exist; ``"w"`` creates the node and deletes an existing one; ``"w-"`` or
            ``"x"`` creates the node and fails if one exists. The default is ``"a"`` if options for creating a node are
            given, else ``"r"``.
        options: the section on options describes each. ``access`` determines when metadata and chunks are compared with
            the store, whether missing chunks are an error, and the number of threads; see ``Access``. ``zarr_format``
            requires a format. ``cache_size``, ``storage_options``, ``synchronizer``, ``allow_pickle``,
            ``allow_external`` and ``use_consolidated`` determine how the location is opened. All others are options
            for creating a node: those of ``create_array`` if they include ``shape`` or ``data``, else those of
            ``create_group``.

    Raises:
        LocationError: the location cannot be opened as a store.
        NodeNotFoundError: there is no node at the path, or it has another format than ``zarr_format``.
        NodeExistsError: there is a node at the path and the mode is ``"w-"`` or ``"x"``.
        MetadataError: the metadata are invalid; UnsupportedError: they require an unsupported feature.
        OptionError: the mode is invalid, or an option is unknown or has an invalid value.
        StoreError: the store failed.
    """
    check_options("open()", options, OpenNodeOptions, ("path", "mode"))
    explicit = without_defaults(_options_of(ArrayOptions, options))
    chosen = resolve_mode(mode, store, explicit)
    zarr_format = explicit.get("zarr_format", explicit.get("zarr_version"))
    creating = {name: value for name, value in explicit.items() if name not in FOR_OPENING}
    invalid = [name for name in creating if name not in ("zarr_format", "zarr_version")]
    if chosen in ("r", "r+") and invalid:
        raise OptionError(
            f"mode {chosen!r} opens an existing node and does not accept {', '.join(invalid)}; use mode 'a', 'w' or "
            "'w-' to create a node"
        )
    access = resolve_access(without_defaults(options))
    located = _options_of(LocationOptions, options)
    if chosen in ("r", "r+", "a") and store is not None:
        try:
            node = open_existing(store, path or "", chosen, access, **located)
        except (NodeNotFoundError, LocationError):
            if chosen != "a":
                raise
        except OSError as error:
            if isinstance(error, ZarrError):
                raise
            # An import of a module of the format, the codecs or the store.
            raise import_failure(error) from error
        else:
            check_opened(node, zarr_format, options.get("use_consolidated"))
            return node
    common = {**located, "access": access, "overwrite": chosen == "w"}
    place: Location = MemoryStore() if store is None else store
    try:
        if "shape" in explicit or "data" in explicit:
            return create_array(place, path, **{**explicit, **common})
        return create_group(place, path, **{**creating, **common})
    except NodeExistsError:
        if chosen != "a" or store is None:
            raise
    # Another thread or process has created the node since.
    node = open_existing(store, path or "", chosen, access, **located)
    check_opened(node, zarr_format, options.get("use_consolidated"))
    return node


@with_options_signature(OpenArrayOptions)
def open_array(
    store: Location | None = None,
    path: str | None = "",
    mode: Mode | None = None,
    **options: Unpack[OpenArrayOptions],
) -> Array:
    """Open the array at ``path`` in ``store``, or create one. Arguments and errors are those of ``open``.

    Creating an array requires the option ``shape`` or ``data``. Raises NodeTypeError if there is a group at the path.
    """
    check_options("open_array()", options, OpenArrayOptions, ("path", "mode"))
    unshaped = options.get("shape") is None and options.get("data") is None
    if unshaped and (mode in ("w", "w-", "x") or store is None):
        raise OptionError(
            f"mode {mode or 'a'!r} creates an array, which needs a shape; give the option shape or data"
        )
    if unshaped and mode == "a":
        # The array must exist, because none can be created without a shape.
        mode = "r+"
        creating = described(ArrayOptions).keys() - FOR_OPENING
        kept = {name: value for name, value in options.items() if name not in creating}
        options = cast(OpenArrayOptions, kept)
    node = open(store, path, mode, **options)
    if isinstance(node, Group):
        raise NodeTypeError(
            f"{node.store.url}: {node.name} is a group, expected an array; its members are {node._some_names()}"
        )
    return node


@with_options_signature(OpenGroupOptions)
def open_group(
    store: Location | None = None,
    path: str | None = "",
    mode: Mode | None = None,
    **options: Unpack[OpenGroupOptions],
) -> Group:
    """Open the group at ``path`` in ``store``, or create one. Arguments and errors are those of ``open``.

    Raises NodeTypeError if there is an array at the path. ``attributes`` are the attributes of a new group.
    ``cache_attrs``, ``chunk_store`` and ``meta_array`` are accepted for compatibility with zarr-python.
    """
    check_options("open_group()", options, OpenGroupOptions, ("path", "mode"))
    node = open(store, path, mode, **options)
    if isinstance(node, Array):
        raise NodeTypeError(f"{node.store.url}: {node.name} is an array, expected a group; use open_array")
    return node


@with_options_signature(OpenGroupOptions)
def open_consolidated(
    store: Location,
    path: str | None = "",
    mode: Mode | None = None,
    **options: Unpack[OpenGroupOptions],
) -> Group:
    """Open a group and look up its members in its consolidated metadata. Arguments are those of ``open_group``.

    Raises MetadataError if the group has no consolidated metadata.
    """
    if options.setdefault("use_consolidated", True) is not True:
        raise TypeError("open_consolidated uses consolidated metadata; open_group has use_consolidated=False")
    return open_group(store, path, mode, **options)


@with_options_signature(OpenGroupOptions)
def group(
    store: Location | None = None,
    path: str | None = "",
    *,
    overwrite: bool = False,
    **options: Unpack[OpenGroupOptions],
) -> Group:
    """Open the group at ``path`` in ``store`` for reading and writing, and create it if it does not exist.

    Without a location the group is created in memory. ``overwrite`` replaces an existing node with everything below it.
    """
    return open_group(store, path, "w" if overwrite else "a", **options)


@with_options_signature(CreateGroupOptions)
def create_group(
    store: Location | None = None,
    path: str | None = "",
    *,
    overwrite: bool = False,
    **options: Unpack[CreateGroupOptions],
) -> Group:
    """Create a group and its missing ancestors. Without a location the group is created in memory.

    The arguments are those of ``open``, and ``attributes``. ``overwrite`` replaces an existing node with everything
    below it; otherwise NodeExistsError is raised. Raises NodeTypeError if an ancestor is an array.
    """
    check_options("create_group()", options, CreateGroupOptions)
    access = options.get("access")
    translated = engine_options(_options_of(NodeOptions, options))
    location: Location = MemoryStore() if store is None else store
    place, inner, shared = located_store(location, "a", access, **_options_of(LocationOptions, options))
    with closing_on_failure(place, location):
        full = "/".join(part for part in (inner, normalize_path(path or "")) if part)
        zarr_format, attributes = translated.get("zarr_format", 3), translated.get("attributes", {})
        spec = new_nodes.create_group_node(place, full, zarr_format, attributes, overwrite)
        cache = cache_of_size(options.get("cache_size"))
        return Group(place, full, spec, cache, False, access)._share_store(shared)


@with_options_signature(CreateArrayOptions)
def create_array(
    store: Location | None = None,
    path: str | None = "",
    *,
    name: str | None = None,
    **options: Unpack[CreateArrayOptions],
) -> Array:
    """Create an array and its missing ancestors. Without a location the array is created in memory.

    A creation that fails leaves the store unchanged. The values of ``data`` are written before the function returns.

    Args:
        store: a path or URL, a store, a dictionary of keys to bytes, or an open group.
        path, name: the path of the array below the location. ``name`` is zarr-python's name for it.
        options: the section on options describes each. The most common are ``shape`` and ``dtype``,
            or ``data``; ``chunks`` and ``shards`` (numbers of elements per dimension); ``codecs``, or ``filters``,
            ``serializer`` and ``compressors``; ``fill_value``, ``order``, ``dimension_names``, ``attributes``,
            ``zarr_format``, ``overwrite`` and ``access``. The names of zarr-python have the same meaning as there.

    Raises:
        NodeExistsError: there is a node at the path and ``overwrite`` is False.
        NodeTypeError: an ancestor is an array.
        OptionError, MetadataError: an option is unknown or has an invalid value.
        DataError: a value of ``data`` does not fit the data type.
        LocationError, StoreError: the store cannot be opened or written.
    """
    check_options("create_array()", options, CreateArrayOptions)
    if name is not None and path:
        raise OptionError(f"give either path or name, found {path!r} and {name!r}")
    translated = engine_options(_options_of(ArrayOptions, options))
    location: Location = MemoryStore() if store is None else store
    located = _options_of(LocationOptions, options)
    place, inner, shared = located_store(location, "a", options.get("access"), **located)
    with closing_on_failure(place, location):
        full = "/".join(part for part in (inner, normalize_path(name or path or "")) if part)
        cache = cache_of_size(options.get("cache_size"))
        array = new_nodes.create_array(place, full, cache, **translated)
        array._read_only = bool(options.get("read_only"))
        return array._share_store(shared)


def _options_of(kind: type, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that a typed dictionary declares."""
    return {name: options[name] for name in described(kind) if name in options}
