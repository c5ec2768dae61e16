"""A location -> a store, and the path in it that the location points to.

A location is a path, a ``file://`` URL, a store (of zarr-python too), or a dictionary that serves as one. A path
may point into a hierarchy, and through a zip file or a database into what it holds (``image.zarr.zip/labels/0``,
``sqlite:///data/a.sqldb/0``). The name of a metadata document means the directory it is in.

What exists is recognised by its content: directories, zip files, SQLite, LMDB and dbm databases. What does not exist
is made as its suffix says: ``.zip``, ``.sqlite``, ``.lmdb`` and so on (``SUFFIXES``), else as a directory.
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
from zarrfs.errors import LocationError, LocationNotFoundError, StoreError, ZarrError
from zarrfs.plugins import find_plugin

__all__ = ["METADATA_NAMES", "Location", "open_store", "split_options"]


class NodeLocation(Protocol):
    """An open array or group: a store, and the path of the node in it."""

    @property
    def store(self) -> Store: ...
    @property
    def path(self) -> str: ...


Location = str | os.PathLike[str] | Store | MutableMapping[str, bytes] | NodeLocation
"""A path, a URL, a store, a dictionary that serves as one, or a node: what is below it."""

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
"""Scheme -> module and class of its store."""

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
"""What is made at a path that does not exist; other suffixes mean a directory."""

LMDB_MAGIC = b"\xde\xc0\xef\xbe"
LMDB_MAGIC_OFFSET = 16

DBM_KINDS = ("dbm.gnu", "dbm.ndbm")

HEADER_NBYTES = 64

EXTERNAL = "allow_external"
"""The storage option that every location knows."""

MODES = ("r", "r+", "a", "w")

DURABLE = {"lmdb"}
"""Databases that have the option ``durable``, as directories and archives have."""

Options = Mapping[str, Any] | None


def open_store(
    location: Location, *, mode: str = "r", storage_options: Options = None, allow_external: bool = False
) -> tuple[Store, str]:
    """Return a store and the path in it that the location points to.

    ``mode`` is ``"r"``, ``"r+"`` (there must be something, to be changed), ``"a"`` (made if absent) or ``"w"``.
    ``storage_options`` are credentials and the like for a URL that fsspec opens; directories, archives and LMDB know
    ``durable`` (a bool: wait until what is written has reached the disk), others none. With ``allow_external`` (also
    a storage option) data outside the store that it names may be read: by symbolic links and references. The caller
    owns the store, except one that was given, which comes back as it is.

    Raises LocationError, which says what to do.
    """
    if mode not in MODES:
        raise LocationError(f"mode must be one of {', '.join(map(repr, MODES))}, found {mode!r}")
    if storage_options and EXTERNAL in storage_options:
        given = {EXTERNAL: storage_options[EXTERNAL]}
        allow_external |= _known_options("a location", given, EXTERNAL)[EXTERNAL]
        storage_options = {key: value for key, value in storage_options.items() if key != EXTERNAL} or None
    try:
        return _open_location(location, mode, storage_options, allow_external)
    except ZarrError:
        raise
    except OSError as error:  # such as no descriptors left for a library that is imported or for its files
        raise LocationError(f"{location!s} cannot be opened: {error.strerror or error}") from error


def _node_place(location: object) -> tuple[Store, str] | None:
    """Return the store and the path of an open node of this package, or None for anything else."""
    store = getattr(location, "store", None)
    # Nodes of zarr-python have a store too, of another class.
    return (store, location.path) if isinstance(store, Store) and hasattr(location, "path") else None


def _open_location(
    location: Location, mode: str, storage_options: Options, external: bool
) -> tuple[Store, str]:
    if isinstance(location, Store):
        _known_options(f"{location!r}, which is open,", storage_options)
        return location, ""
    place = _node_place(location)
    if place is not None:
        _known_options(f"{location!r}, which is open,", storage_options)
        return place
    adapted = adapt_zarr_python(location)
    if adapted is not None:
        _known_options(f"{location!r}, which is open,", storage_options)
        return adapted
    if isinstance(location, MutableMapping):
        _known_options("a dictionary", storage_options)
        return MemoryStore(location, read_only=mode == "r"), ""
    if not isinstance(location, str | os.PathLike):
        raise LocationError(
            f"{location!r} ({type(location).__name__}) is no location: expected a path, a URL, a store or a dictionary"
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
    """Return what of storage options that were given once is for a location that is read, and for one that is
    written: each takes what it knows. What neither knows both get, so that opening refuses it.
    """
    if not options:
        return None, None
    durable = {name: value for name, value in options.items() if name == "durable"}
    external = {name: value for name, value in options.items() if name == EXTERNAL}
    others = {name: value for name, value in options.items() if name not in ("durable", EXTERNAL)}
    known = [_is_remote(source), _is_remote(target)]
    return (
        external | others if known[0] or not any(known) else external or None,
        durable | (others if known[1] or not any(known) else {}),
    )


def _is_remote(location: Location) -> bool:
    """Tell whether fsspec opens the location, which takes any options."""
    if not isinstance(location, str | os.PathLike):
        return False
    scheme = _scheme_of(os.fsdecode(location))
    return (
        scheme.lower() not in ("", "file")
        and scheme not in DATABASES
        and find_plugin(ENTRY_POINTS, scheme, Callable) is None
    )


def _known_options(what: str, options: Options, *known: str) -> dict[str, bool]:
    """Return options that are switches. Raises LocationError for one that is not known, or no switch."""
    for name, value in (options or {}).items():
        if name not in known:
            there = f"there is {', '.join(map(repr, known))}" if known else "it has none"
            raise LocationError(f"{what} knows no storage option {name!r}; {there}")
        if not isinstance(value, bool):
            raise LocationError(f"{what}: storage option {name!r} must be true or false, found {value!r}")
    return dict(options or {})


def _scheme_of(text: str) -> str:
    """Return the scheme of a URL as it is written; nothing for a path."""
    scheme, separator, _ = text.partition("://")
    bare = scheme.replace("+", "").replace("-", "").replace("_", "").replace(":", "")
    return scheme if separator and bare.isalnum() and "/" not in scheme else ""


def _path_of(url: str) -> str:
    """Return the path that a ``file://`` URL names (RFC 8089)."""
    parts = urlsplit(url)
    if parts.netloc not in ("", "localhost"):
        raise LocationError(
            f"{url}: a file URL names no host; did you mean file:///{parts.netloc}{parts.path}?"
        )
    # A question mark or a hash in a path that was not escaped is meant as it is.
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
        path, inner = _split_database(_path_of(f"file://{url.partition('://')[2]}"), scheme)
        return _open_database(scheme, path, mode, storage_options), inner
    if scheme in DATABASES:
        return _open_database(scheme, url, mode, storage_options), ""
    opener: Any = find_plugin(ENTRY_POINTS, scheme, Callable)
    if opener is not None:
        _known_options(f"a {scheme} location", storage_options)
        return _open_plugin(opener, url, scheme, mode), ""
    return _open_remote(url, scheme, mode == "r", storage_options, external)


def _open_database(scheme: str, place: str, mode: str, storage_options: Options) -> Store:
    """Open a database by its path or URL."""
    module, name = DATABASES[scheme]
    switches = _known_options(
        f"a {scheme} location", storage_options, *({"durable"} if scheme in DURABLE else ())
    )
    maker: Any = getattr(import_module(f"zarrfs.engine.stores.databases.{module}"), name)
    made: Store = maker(place, read_only=mode == "r", **switches)
    return made


def _split_database(path: str, scheme: str) -> tuple[str, str]:
    """Return the path of a database and the path in it. It is the first file on the way; for LMDB also a directory
    that holds an environment; where nothing is there, the first name that has a suffix of such databases.
    """
    above, inner = path.rstrip("/") or path, ""
    named: tuple[str, str] | None = None
    while above and above != os.path.dirname(above):
        found = _stat(above)
        if found is not None:
            if not stat.S_ISDIR(found.st_mode) or _is_lmdb(above):
                return above, inner
            break
        if SUFFIXES.get(os.path.splitext(above)[1]) == scheme:
            named = above, inner
        above, _, last = above.rpartition("/")
        inner = f"{last}/{inner}".rstrip("/")
    return named or (path, "")


def _is_lmdb(directory: str) -> bool:
    return os.path.lexists(os.path.join(directory, "data.mdb"))


def _open_plugin(opener: Any, url: str, scheme: str, mode: str) -> Store:
    """Open a URL by what another package registers."""
    what = f"{url}: the entry point {scheme!r} of the group {ENTRY_POINTS}"
    try:
        opened = opener(url, mode)
    except ZarrError:
        raise
    except Exception as error:  # another package's code may raise anything
        raise LocationError(f"{what} raised {type(error).__name__}: {error}") from error
    if not isinstance(opened, Store):
        raise LocationError(f"{what} returned {opened!r}, expected a Store")
    return PluginStore(opened, scheme)


def _open_temporary(url: str, mode: str) -> Store:
    from zarrfs.engine.stores.temporary import TemporaryStore

    if mode not in ("a", "w"):
        raise LocationError(f"{url}: a temporary directory is made anew, and holds nothing to be opened")
    path = _path_of(f"file://{url.partition('://')[2]}")
    if path and not os.path.isdir(path):
        raise LocationError(f"{url}: {path} is no directory to make a temporary one in")
    return TemporaryStore(path or None)


def _open_remote(
    url: str, scheme: str, read_only: bool, storage_options: Options, external: bool
) -> tuple[Store, str]:
    """Open a URL by fsspec. A zip file is gone into by itself; the name of a document means what it is in."""
    from zarrfs.engine.stores.fsspec.store import RemoteStore, is_known

    if not all(is_known(part) for part in scheme.split("::")):
        raise LocationError(
            f"{url}: no store is known for {scheme!r} URLs; expected a path, or a URL such as file://, https:// or s3://"
        )
    if "durable" in (storage_options or {}):
        raise LocationError(
            f"{scheme} locations know no storage option 'durable', which is for files of this machine"
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
    """Open a zip file that lies at a URL. Options for ``zip`` itself, which fsspec would take, mean nothing here."""
    from zarrfs.engine.stores.fsspec.store import RemoteStore
    from zarrfs.engine.stores.zip.remote import RemoteZipStore

    if not read_only:
        raise LocationError(
            f"zip::{url}: a zip file of a server cannot be changed in place; open it with mode 'r'"
        )
    bare, mark, query = url.partition("?")
    folder, _, name = bare.rpartition("/")
    if folder.endswith(":/"):  # memory://image.zip
        folder += "/"
    if not name:
        raise LocationError(f"zip::{url} names no file; expected a URL such as zip::https://host/image.zip")
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
    # The first thing on the way that is there; the rest is a path in it.
    above, inner = path, ""
    made: tuple[str, str, str] | None = None
    found = _stat(above)
    while found is None and above != os.path.dirname(above):
        if _is_being_written(above):
            return _open_zip(above, mode, options), inner
        suffix = os.path.splitext(above)[1].lower()
        if suffix in SUFFIXES:
            made = SUFFIXES[suffix], above, inner
        above, last = os.path.split(above)
        inner = f"{last}/{inner}".rstrip("/")
        found = _stat(above)
    if found is not None and not stat.S_ISDIR(found.st_mode):
        return _open_file(above, inner, mode, options)
    if found is not None and _is_lmdb(above):
        return _open_database("lmdb", above, mode, options), inner
    if found is None or inner:
        if mode not in ("a", "w"):
            raise LocationNotFoundError(f"{path}: no such file or directory{_nearby(path)}")
        if made is not None:
            return _make_file(*made, mode, options)
    known = _known_options("a directory", options, "durable")
    return LocalStore(path, read_only=mode == "r", allow_external=external, **known), ""


def _check_document(path: str) -> None:
    """Refuse a metadata document that is given as a location and is a FIFO, a socket or a device."""
    try:
        check_regular_file(path)
    except StoreError as error:
        raise LocationError(str(error)) from error
    except OSError:
        return


def _is_being_written(path: str) -> bool:
    """Tell whether a store of this process makes an archive there, which is not there before it is flushed."""
    if "zarrfs.engine.stores.zip.store" not in sys.modules:
        return False
    from zarrfs.engine.stores.zip.store import is_being_written

    return is_being_written(path)


def _make_file(kind: str, path: str, inner: str, mode: str, options: Options) -> tuple[Store, str]:
    """Make an archive or a database."""
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
    """Open a file by what it begins with."""
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
    what = "is empty" if size == 0 else "is a file, but no zip file and no database"
    raise LocationError(
        f"{path} {what}; expected a directory, a zip file or a database that holds a Zarr hierarchy"
    )


def _dbm_kind(path: str) -> str | None:
    from zarrfs.engine.stores.databases.dbm import find_kind

    return find_kind(path)


def _open_zip(path: str, mode: str, options: Options) -> Store:
    from zarrfs.engine.stores.zip.store import ZipStore

    return ZipStore(path, "a" if mode == "r+" else mode, **_known_options("an archive", options, "durable"))


def _nearby(path: str) -> str:
    """Say how far along the path one gets, to help find the misspelt part."""
    above = os.path.dirname(path)
    while above != os.path.dirname(above) and not os.path.isdir(above):
        above = os.path.dirname(above)
    return f"; {above} is there" if above != os.path.dirname(path) else ""
