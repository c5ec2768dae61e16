"""Opening of the store that a location refers to, and the path in it.

A location is a path, a URL, a store, a store of zarr-python, a dictionary of keys to bytes, or an open node. A path may
point into a hierarchy, also inside a zip file or a database (``image.zarr.zip/labels/0``, ``sqlite:///data/a.sqldb/0``).
The name of a metadata document refers to the directory that contains it.

Existing directories, zip files, and SQLite, LMDB and dbm databases are recognized by their content. If nothing exists,
the suffix determines what is created: ``.zip``, ``.sqlite``, ``.lmdb`` and others (``SUFFIXES``), or else a directory.
A JSON file with references (kerchunk) is opened with the reference file system of fsspec. ``icechunk:`` and a path or
URL is a repository of Icechunk.
"""

from __future__ import annotations

import os
from collections.abc import MutableMapping
from typing import Protocol
from urllib.parse import urlsplit

from zarrfs.engine.stores.base import Store
from zarrfs.engine.stores.locations.databases import DATABASES, FILES, open_database, split_database
from zarrfs.engine.stores.locations.local import open_path, split_reference_file
from zarrfs.engine.stores.locations.storage_options import EXTERNAL, Options, boolean_options
from zarrfs.engine.stores.locations.urls import path_of, scheme_of
from zarrfs.engine.stores.memory import MemoryStore
from zarrfs.engine.stores.zarr_python import adapt_zarr_python
from zarrfs.errors import LocationError, OptionError, ZarrError

__all__ = ["Location", "open_store", "split_options"]


class NodeLocation(Protocol):
    """An open array or group: a store, and the path of the node in it."""

    @property
    def store(self) -> Store: ...
    @property
    def path(self) -> str: ...


Location = str | os.PathLike[str] | Store | MutableMapping[str, bytes] | NodeLocation
"""A path, a URL, a store, a dictionary of keys to bytes, or an open node, which refers to everything below it."""

MODES = ("r", "r+", "a", "w")

REFERENCE_PREFIX = "reference::"

WRITING = ("durable", "message")
"""Storage options that have an effect on writing only."""


def open_store(
    location: Location, *, mode: str = "r", storage_options: Options = None, allow_external: bool = False
) -> tuple[Store, str]:
    """Return the store that a location refers to, and the path in it.

    The caller owns the store and closes it. A store that is passed as the location is returned unchanged.

    Args:
        location: see ``Location``.
        mode: ``"r"`` read-only; ``"r+"`` read and write an existing store; ``"a"`` create the store if it does not
            exist; ``"w"`` create it, replacing an existing archive.
        storage_options: for a URL that fsspec opens, the options of fsspec. Directories, archives and LMDB accept
            ``durable`` (a bool: flush writes to the disk before they return). Stores of other packages state what
            they accept. Other locations accept none.
        allow_external: whether data outside the store may be read through symbolic links and references. It can also
            be given in ``storage_options``.

    Raises LocationError if the location cannot be opened, and OptionError if the mode is unknown.
    """
    if mode not in MODES:
        raise OptionError(f"mode must be one of {', '.join(map(repr, MODES))}, found {mode!r}")
    if storage_options and EXTERNAL in storage_options:
        given = {EXTERNAL: storage_options[EXTERNAL]}
        allow_external |= boolean_options("a location", given, EXTERNAL)[EXTERNAL]
        storage_options = {key: value for key, value in storage_options.items() if key != EXTERNAL} or None
    try:
        return _open_location(location, mode, storage_options, allow_external)
    except ZarrError:
        raise
    except OSError as error:  # for example if no file descriptors are left
        raise LocationError(f"{location!s} cannot be opened: {error.strerror or error}") from error


def _store_of_node(location: object) -> tuple[Store, str] | None:
    """Return the store and the path of an open node of this package, or None for any other object."""
    store = getattr(location, "store", None)
    # Nodes of zarr-python also have a store, but of another class.
    return (store, location.path) if isinstance(store, Store) and hasattr(location, "path") else None


def _open_location(
    location: Location, mode: str, storage_options: Options, external: bool
) -> tuple[Store, str]:
    if isinstance(location, Store):
        boolean_options(f"{location!r}, which is open,", storage_options)
        return location, ""
    opened = _store_of_node(location)
    if opened is not None:
        boolean_options(f"{location!r}, which is open,", storage_options)
        return opened
    adapted = adapt_zarr_python(location)
    if adapted is not None:
        boolean_options(f"{location!r}, which is open,", storage_options)
        return adapted
    if isinstance(location, MutableMapping):
        boolean_options("a dictionary", storage_options)
        return MemoryStore(location, read_only=mode == "r"), ""
    if not isinstance(location, str | os.PathLike):
        raise LocationError(
            f"{location!r} ({type(location).__name__}) is not a location; expected a path, a URL, a store or a "
            "dictionary"
        )
    text = os.fsdecode(location)
    if not text:
        raise LocationError("the location is empty: expected a path or a URL")
    if _is_spec(text) and not os.path.lexists(text):
        raise LocationError(
            f"{text}: a TensorStore spec is not a location; give the path or URL of its kvstore, or open the spec with "
            "zarrfs.tensorstore.open in Python"
        )
    scheme = scheme_of(text)
    if scheme == "icechunk":
        from zarrfs.engine.stores.icechunk.store import open_icechunk

        return open_icechunk(text, mode, storage_options, allow_external=external)
    if scheme.lower() not in ("", "file"):
        try:
            urlsplit(text)
        except ValueError as error:
            raise LocationError(f"{text} is not a valid URL: {error}") from error
        return _open_url(text, scheme, mode, storage_options, external)
    path = os.path.expanduser(path_of(text) if scheme else text)
    if path.startswith(REFERENCE_PREFIX) and not os.path.lexists(
        path
    ):  # fsspec accepts a path after the prefix
        path = os.path.expanduser(path.removeprefix(REFERENCE_PREFIX))
    references = split_reference_file(path)
    if references is not None:
        from zarrfs.engine.stores.locations.remote import open_references

        return open_references(references[0], mode, storage_options, external), references[1]
    return open_path(path, mode, storage_options, external)


def _is_spec(text: str) -> bool:
    """Return whether a text is a spec of TensorStore: JSON, or a URL whose formats are separated by ``|``."""
    return text.lstrip().startswith('{"') or (
        "://" in text and text.rstrip("/").endswith(":") and "|" in text
    )


def split_options(
    options: Options, source: Location, target: Location, *, both_external: bool = False
) -> tuple[Options, Options]:
    """Split storage options that were given once into those for the source and those for the target of a copy.

    Each location gets the options that it accepts. Both get the options that neither accepts, so that opening them
    raises an error. The target gets ``allow_external`` only if ``both_external`` is true, for two locations that are
    only read.
    """
    if not options:
        return None, None
    writing = {name: value for name, value in options.items() if name in WRITING}
    external = {name: value for name, value in options.items() if name == EXTERNAL}
    others = {name: value for name, value in options.items() if name not in (*WRITING, EXTERNAL)}
    is_source_remote, is_target_remote = _is_remote(source), _is_remote(target)
    is_any_remote = is_source_remote or is_target_remote
    return (
        external | others if is_source_remote or not is_any_remote else external or None,
        writing
        | (external if both_external else {})
        | (others if is_target_remote or not is_any_remote else {}),
    )


def _is_remote(location: Location) -> bool:
    """Return whether fsspec, or a store of another package, opens the location with any option."""
    if not isinstance(location, str | os.PathLike):
        return False
    scheme = scheme_of(os.fsdecode(location))
    if scheme.lower() in ("", "file") or scheme in DATABASES:
        return False
    from zarrfs.engine.stores.locations.registered import find_opener, has_options

    opener = find_opener(scheme)
    return opener is None or has_options(opener)


def _open_url(
    url: str, scheme: str, mode: str, storage_options: Options, external: bool
) -> tuple[Store, str]:
    if scheme == "temporary":
        boolean_options("a temporary directory", storage_options)
        return _open_temporary(url, mode), ""
    if scheme in FILES:
        path, inner = split_database(path_of(url), scheme)
        return open_database(scheme, path, mode, storage_options), inner
    if scheme in DATABASES:
        return open_database(scheme, url, mode, storage_options), ""
    # Imported here because most locations are local.
    from zarrfs.engine.stores.locations.registered import find_opener, open_plugin

    opener = find_opener(scheme)
    if opener is not None:
        return open_plugin(opener, url, scheme, mode, storage_options)
    from zarrfs.engine.stores.locations.remote import open_remote

    return open_remote(url, scheme, mode == "r", storage_options, external)


def _open_temporary(url: str, mode: str) -> Store:
    from zarrfs.engine.stores.local.temporary import TemporaryStore

    if mode not in ("a", "w"):
        raise LocationError(
            f"{url}: a temporary directory is always new and empty; open it with mode 'a' or 'w'"
        )
    path = path_of(url)
    if path and not os.path.isdir(path):
        raise LocationError(
            f"{url}: {path} is not a directory; a temporary directory cannot be created there"
        )
    return TemporaryStore(path or None)
