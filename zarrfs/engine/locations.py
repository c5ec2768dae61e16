"""Opening of the store that a location refers to, and the path in it.

A location is a path, a URL, a store, a store of zarr-python, a dictionary of keys to bytes, or an open node. A path may
point into a hierarchy, also inside a zip file or a database (``image.zarr.zip/labels/0``, ``sqlite:///data/a.sqldb/0``).
The name of a metadata document refers to the directory that contains it.

Existing directories, zip files, and SQLite, LMDB and dbm databases are recognized by their content. If nothing exists,
the suffix determines what is created: ``.zip``, ``.sqlite``, ``.lmdb`` and others (``SUFFIXES``), or else a directory.
"""

from __future__ import annotations

import os
import shlex
import stat
import sys
from collections.abc import Callable, Mapping, MutableMapping
from importlib import import_module
from typing import Any, Protocol
from urllib.parse import unquote, urlsplit

from zarrfs.engine.stores.base import Store
from zarrfs.engine.stores.local import LocalStore
from zarrfs.engine.stores.memory import MemoryStore
from zarrfs.engine.stores.regular_files import check_regular_file, describe_file_type, open_regular_file
from zarrfs.engine.stores.wrappers.plugin import PluginStore
from zarrfs.engine.stores.zarr_python import adapt_zarr_python
from zarrfs.errors import LocationError, LocationNotFoundError, OptionError, StoreError, ZarrError
from zarrfs.plugins import find_plugin

__all__ = ["METADATA_NAMES", "Location", "open_store", "split_options"]


class NodeLocation(Protocol):
    """An open array or group: a store, and the path of the node in it."""

    @property
    def store(self) -> Store: ...
    @property
    def path(self) -> str: ...


Location = str | os.PathLike[str] | Store | MutableMapping[str, bytes] | NodeLocation
"""A path, a URL, a store, a dictionary of keys to bytes, or an open node, which refers to everything below it."""

METADATA_NAMES = ("zarr.json", ".zarray", ".zgroup", ".zattrs", ".zmetadata", "attributes.json")

ZIP_MAGIC = (b"PK\x03\x04", b"PK\x05\x06")

SQLITE_MAGIC = b"SQLite format 3\0"

HDF5_MAGIC = b"\x89HDF\r\n\x1a\n"

ENTRY_POINTS = "zarrfs.stores"

DATABASES = {
    "sqlite": ("sqlite", "SQLiteStore"),
    "dbm": ("dbm", "DBMStore"),
    "lmdb": ("lmdb", "LMDBStore"),
    "redis": ("redis", "RedisStore"),
    "rediss": ("redis", "RedisStore"),
    "mongodb": ("mongodb", "MongoDBStore"),
    "mongodb+srv": ("mongodb", "MongoDBStore"),
}
"""URL scheme -> module and class of the store."""

FILES = {"sqlite", "dbm", "lmdb"}
"""Databases that are opened by a path."""

SUFFIXES = {
    ".zip": "zip",
    ".sqlite": "sqlite",
    ".sqlite3": "sqlite",
    ".sqldb": "sqlite",
    ".db": "sqlite",
    ".lmdb": "lmdb",
    ".dbm": "dbm",
}
"""Suffix -> what is created at a path that does not exist. Other suffixes create a directory."""

LMDB_MAGIC = b"\xde\xc0\xef\xbe"
LMDB_MAGIC_OFFSET = 16

DBM_KINDS = ("dbm.gnu", "dbm.ndbm")

HEADER_NBYTES = 64

EXTERNAL = "allow_external"
"""The storage option that every location accepts."""

MODES = ("r", "r+", "a", "w")

DURABLE = {"lmdb"}
"""Databases that accept the storage option ``durable``. Directories and archives accept it too."""

Options = Mapping[str, Any] | None


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
        allow_external |= _known_options("a location", given, EXTERNAL)[EXTERNAL]
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
        _known_options(f"{location!r}, which is open,", storage_options)
        return location, ""
    opened = _store_of_node(location)
    if opened is not None:
        _known_options(f"{location!r}, which is open,", storage_options)
        return opened
    adapted = adapt_zarr_python(location)
    if adapted is not None:
        _known_options(f"{location!r}, which is open,", storage_options)
        return adapted
    if isinstance(location, MutableMapping):
        _known_options("a dictionary", storage_options)
        return MemoryStore(location, read_only=mode == "r"), ""
    if not isinstance(location, str | os.PathLike):
        raise LocationError(
            f"{location!r} ({type(location).__name__}) is not a location; expected a path, a URL, a store or a "
            "dictionary"
        )
    text = os.fsdecode(location)
    if not text:
        raise LocationError("the location is empty: expected a path or a URL")
    scheme = _scheme_of(text)
    if scheme.lower() not in ("", "file"):
        try:
            urlsplit(text)
        except ValueError as error:
            raise LocationError(f"{text} is not a valid URL: {error}") from error
        return _open_url(text, scheme, mode, storage_options, external)
    path = os.path.expanduser(_path_of(text) if scheme else text)
    return _open_path(path, mode, storage_options, external)


def split_options(options: Options, source: Location, target: Location) -> tuple[Options, Options]:
    """Split storage options that were given once into those for the source and those for the target of a copy.

    Each location gets the options that it accepts. Both get the options that neither accepts, so that opening them
    raises an error.
    """
    if not options:
        return None, None
    durable = {name: value for name, value in options.items() if name == "durable"}
    external = {name: value for name, value in options.items() if name == EXTERNAL}
    others = {name: value for name, value in options.items() if name not in ("durable", EXTERNAL)}
    is_source_remote, is_target_remote = _is_remote(source), _is_remote(target)
    is_any_remote = is_source_remote or is_target_remote
    return (
        external | others if is_source_remote or not is_any_remote else external or None,
        durable | (others if is_target_remote or not is_any_remote else {}),
    )


def _is_remote(location: Location) -> bool:
    """Return whether fsspec, or a store of another package, opens the location with any option."""
    if not isinstance(location, str | os.PathLike):
        return False
    scheme = _scheme_of(os.fsdecode(location))
    if scheme.lower() in ("", "file") or scheme in DATABASES:
        return False
    opener = find_plugin(ENTRY_POINTS, scheme, Callable)
    return opener is None or _has_options(opener)


def _known_options(description: str, options: Options, *known: str) -> dict[str, bool]:
    """Return boolean storage options. Raises LocationError for one that is unknown or not a bool.

    ``description`` names the location in messages.
    """
    for name, value in (options or {}).items():
        if name not in known:
            accepted = f"it accepts {', '.join(map(repr, known))}" if known else "it accepts none"
            raise LocationError(f"{description} does not accept the storage option {name!r}; {accepted}")
        if not isinstance(value, bool):
            raise LocationError(
                f"{description}: storage option {name!r} must be true or false, found {value!r}"
            )
    return dict(options or {})


def _scheme_of(text: str) -> str:
    """Return the scheme of a URL with its case unchanged; an empty string for a path."""
    scheme, separator, _ = text.partition("://")
    bare = scheme.replace("+", "").replace("-", "").replace("_", "").replace(":", "")
    return scheme if separator and bare.isalnum() and "/" not in scheme else ""


def _path_of(url: str) -> str:
    """Return the path of a URL of a local file or directory (RFC 8089). Raises LocationError if it contains a host."""
    scheme, _, rest = url.partition("://")
    parts = urlsplit(f"file://{rest}")
    if parts.netloc not in ("", "localhost"):
        absolute = os.path.abspath(f"{parts.netloc}{parts.path}")
        raise LocationError(
            f"{url}: a {scheme} URL must not contain a host, and its path is absolute; "
            f"did you mean {scheme}://{absolute}?"
        )
    # An unescaped question mark or hash is part of the path.
    return unquote(
        url.split("://", 1)[1].removeprefix("localhost") if parts.netloc else url.split("://", 1)[1]
    )


def _open_url(
    url: str, scheme: str, mode: str, storage_options: Options, external: bool
) -> tuple[Store, str]:
    if scheme == "temporary":
        _known_options("a temporary directory", storage_options)
        return _open_temporary(url, mode), ""
    if scheme in FILES:
        path, inner = _split_database(_path_of(url), scheme)
        return _open_database(scheme, path, mode, storage_options), inner
    if scheme in DATABASES:
        return _open_database(scheme, url, mode, storage_options), ""
    opener: Any = find_plugin(ENTRY_POINTS, scheme, Callable)
    if opener is not None:
        return _open_plugin(opener, url, scheme, mode, storage_options)
    return _open_remote(url, scheme, mode == "r", storage_options, external)


def _open_database(scheme: str, path_or_url: str, mode: str, storage_options: Options) -> Store:
    """Open a database."""
    module, name = DATABASES[scheme]
    flags = _known_options(
        f"a {scheme} location", storage_options, *({"durable"} if scheme in DURABLE else ())
    )
    store_class: Any = getattr(import_module(f"zarrfs.engine.stores.databases.{module}"), name)
    store: Store = store_class(path_or_url, read_only=mode == "r", **flags)
    return store


def _split_database(path: str, scheme: str) -> tuple[str, str]:
    """Split a path into the path of a database and the path in it.

    The database is the file, or the directory with an LMDB environment, that is a prefix of the path. If none exists,
    it is the shortest prefix with a suffix of such databases, or else the whole path.
    """
    ancestor, inner = path.rstrip("/") or path, ""
    by_suffix: tuple[str, str] | None = None
    while ancestor and ancestor != os.path.dirname(ancestor):
        status = _stat(ancestor)
        if status is not None:
            if not stat.S_ISDIR(status.st_mode) or _is_lmdb(ancestor):
                return ancestor, inner
            break
        if SUFFIXES.get(os.path.splitext(ancestor)[1]) == scheme:
            by_suffix = ancestor, inner
        ancestor, _, last = ancestor.rpartition("/")
        inner = f"{last}/{inner}".rstrip("/")
    return by_suffix or (path, "")


def _is_lmdb(directory: str) -> bool:
    return os.path.lexists(os.path.join(directory, "data.mdb"))


def _open_plugin(
    opener: Any, url: str, scheme: str, mode: str, storage_options: Options
) -> tuple[Store, str]:
    """Open a URL with the function that another package registers for its scheme."""
    plugin = f"{url}: the entry point {scheme!r} of the group {ENTRY_POINTS}"
    options: dict[str, Any] = {}
    if _has_options(opener):
        options["storage_options"] = dict(storage_options or {})
    else:
        _known_options(f"a {scheme} location", storage_options)
    try:
        opened = opener(url, mode, **options)
    except ZarrError:
        raise
    except Exception as error:  # another package's code may raise anything
        raise LocationError(f"{plugin} raised {type(error).__name__}: {error}") from error
    store, path = opened if isinstance(opened, tuple) and len(opened) == 2 else (opened, "")
    if not isinstance(store, Store) or not isinstance(path, str):
        raise LocationError(f"{plugin} returned {opened!r}, expected a Store, or a Store and the path in it")
    return PluginStore(store, scheme), path.strip("/")


def _has_options(opener: Any) -> bool:
    """Return whether the function of another package has the parameter ``storage_options``."""
    from inspect import signature  # imported here because the import is slow and rarely needed

    try:
        return "storage_options" in signature(opener).parameters
    except (TypeError, ValueError):  # a callable without a signature
        return False


def _open_temporary(url: str, mode: str) -> Store:
    from zarrfs.engine.stores.temporary import TemporaryStore

    if mode not in ("a", "w"):
        raise LocationError(
            f"{url}: a temporary directory is always new and empty; open it with mode 'a' or 'w'"
        )
    path = _path_of(url)
    if path and not os.path.isdir(path):
        raise LocationError(
            f"{url}: {path} is not a directory; a temporary directory cannot be created there"
        )
    return TemporaryStore(path or None)


def _open_remote(
    url: str, scheme: str, read_only: bool, storage_options: Options, external: bool
) -> tuple[Store, str]:
    """Open a URL with fsspec. A zip file is opened as an archive; the name of a metadata document refers to the
    directory that contains it.
    """
    from zarrfs.engine.stores.fsspec.protocols import is_known_protocol
    from zarrfs.engine.stores.fsspec.store import RemoteStore

    if not all(is_known_protocol(part) for part in scheme.split("::")):
        raise LocationError(
            f"{url}: {scheme!r} URLs are not supported; expected a path, or a URL such as file://, https:// or s3://"
        )
    if "durable" in (storage_options or {}):
        raise LocationError(
            f"a {scheme} location does not accept the storage option 'durable'; it applies to local files only"
        )
    if scheme.startswith("zip::"):
        return _open_remote_zip(url.removeprefix("zip::"), read_only, storage_options, external), ""
    if scheme == "zip" and "::" in url:  # zip://path/in/it::s3://bucket/a.zip
        inner, _, archive = url.removeprefix("zip://").partition("::")
        return _open_remote_zip(archive, read_only, storage_options, external), inner.strip("/")
    bare, mark, query = url.partition("?")
    head, _, last = bare.rpartition("/")
    if last in METADATA_NAMES:
        bare = head
    elif last.endswith(".zip") and "::" not in scheme:
        return _open_remote_zip(url, read_only, storage_options, external), ""
    return RemoteStore(
        bare + mark + query, read_only=read_only, storage_options=storage_options, allow_external=external
    ), ""


def _open_remote_zip(url: str, read_only: bool, storage_options: Options, external: bool) -> Store:
    """Open a zip file at a URL. Options for the protocol ``zip`` of fsspec are ignored."""
    from zarrfs.engine.stores.fsspec.store import RemoteStore
    from zarrfs.engine.stores.zip.remote import RemoteZipStore

    if not read_only:
        raise LocationError(f"zip::{url}: a remote zip file cannot be changed; open it with mode 'r'")
    bare, mark, query = url.partition("?")
    folder, _, name = bare.rpartition("/")
    if folder.endswith(":/"):  # memory://image.zip
        folder += "/"
    if not name:
        raise LocationError(
            f"zip::{url} has no file name; expected a URL such as zip::https://host/image.zip"
        )
    options = {key: value for key, value in (storage_options or {}).items() if key != "zip"}
    store = RemoteStore(
        folder + mark + query, read_only=True, storage_options=options, allow_external=external
    )
    return RemoteZipStore(store, name)


def _open_path(path: str, mode: str, options: Options, external: bool) -> tuple[Store, str]:
    path = os.path.abspath(path)
    head, name = os.path.split(path)
    if name in METADATA_NAMES and not os.path.isdir(path):
        _check_document(path)
        path = head
    # Find the longest prefix of the path that exists. The rest is a path in it.
    ancestor, inner = path, ""
    to_create: tuple[str, str, str] | None = None
    status = _stat(ancestor)
    while status is None and ancestor != os.path.dirname(ancestor):
        if _is_being_written(ancestor):
            return _open_zip(ancestor, mode, options), inner
        suffix = os.path.splitext(ancestor)[1].lower()
        if suffix in SUFFIXES:
            to_create = SUFFIXES[suffix], ancestor, inner
        ancestor, last = os.path.split(ancestor)
        inner = f"{last}/{inner}".rstrip("/")
        status = _stat(ancestor)
    if status is not None and not stat.S_ISDIR(status.st_mode):
        return _open_file(ancestor, inner, mode, options)
    if status is not None and _is_lmdb(ancestor):
        return _open_database("lmdb", ancestor, mode, options), inner
    if status is None or inner:
        if mode not in ("a", "w"):
            raise LocationNotFoundError(f"{path}: no such file or directory{_existing_part(path)}")
        if to_create is not None:
            return _create_file(*to_create, mode, options)
    known = _known_options("a directory", options, "durable")
    return LocalStore(path, read_only=mode == "r", allow_external=external, **known), ""


def _check_document(path: str) -> None:
    """Raise LocationError if a metadata document that is given as a location is a FIFO, a socket or a device."""
    try:
        check_regular_file(path)
    except StoreError as error:
        raise LocationError(str(error)) from error
    except OSError:
        return


def _is_being_written(path: str) -> bool:
    """Return whether a store of this process is writing an archive at the path. The file exists only after a flush."""
    if "zarrfs.engine.stores.zip.store" not in sys.modules:
        return False
    from zarrfs.engine.stores.zip.store import is_being_written

    return is_being_written(path)


def _create_file(kind: str, path: str, inner: str, mode: str, options: Options) -> tuple[Store, str]:
    """Create an archive or a database."""
    if kind == "zip":
        return _open_zip(path, mode, options), inner
    return _open_database(kind, path, mode, options), inner


def _stat(path: str) -> os.stat_result | None:
    try:
        return os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError) as error:
        raise LocationError(
            f"{path} cannot be opened: {getattr(error, 'strerror', None) or error}"
        ) from error


def _open_file(path: str, inner: str, mode: str, options: Options) -> tuple[Store, str]:
    """Open an archive or a database, which is recognized by the first bytes of the file."""
    try:
        fd = open_regular_file(path)
        try:
            header = os.pread(fd, HEADER_NBYTES, 0)
            size = os.fstat(fd).st_size
        finally:
            os.close(fd)
    except StoreError as error:
        raise LocationError(
            f"{path} is {describe_file_type(os.stat(path).st_mode)}; expected a directory, a zip file or a database"
        ) from error
    except OSError as error:
        raise LocationError(f"{path} cannot be opened: {error.strerror}") from error
    if header.startswith(SQLITE_MAGIC):
        return _open_database("sqlite", path, mode, options), inner
    if header[:4] in ZIP_MAGIC:
        return _open_zip(path, mode, options), inner
    if header[LMDB_MAGIC_OFFSET:].startswith(LMDB_MAGIC):
        return _open_database("lmdb", path, mode, options), inner
    if size and _dbm_kind(path) in DBM_KINDS:
        return _open_database("dbm", path, mode, options), inner
    if size == 0 and mode in ("a", "w") and SUFFIXES.get(os.path.splitext(path)[1].lower()) == "sqlite":
        return _open_database("sqlite", path, mode, options), inner
    if header.startswith(HDF5_MAGIC):
        raise LocationError(
            f"{path} is an HDF5 file; copy it to a Zarr hierarchy first: zarrfs copy {shlex.quote(path)} NEW.zarr"
        )
    problem = "is empty" if size == 0 else "is neither a zip file nor a database"
    raise LocationError(
        f"{path} {problem}; expected a directory, a zip file or a database that contains a Zarr hierarchy"
    )


def _dbm_kind(path: str) -> str | None:
    from zarrfs.engine.stores.databases.dbm import find_library_name

    return find_library_name(path)


def _open_zip(path: str, mode: str, options: Options) -> Store:
    from zarrfs.engine.stores.zip.store import ZipStore

    return ZipStore(path, "a" if mode == "r+" else mode, **_known_options("an archive", options, "durable"))


def _existing_part(path: str) -> str:
    """Return the part of a message that names the existing directory of a path, to help find a misspelt name."""
    ancestor = os.path.dirname(path)
    while ancestor != os.path.dirname(ancestor) and not os.path.isdir(ancestor):
        ancestor = os.path.dirname(ancestor)
    return f"; {ancestor} exists" if ancestor != os.path.dirname(path) else ""
