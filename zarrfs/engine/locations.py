"""A location -> a store, and the path in it that the location points to.

A location is a path, a ``file://`` URL, a store (of zarr-python too), or a dictionary that serves as one. A path may
point into a hierarchy, and through a zip file into what it holds (``image.zarr.zip/labels/0``). The name of a metadata
document means the directory it is in.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Mapping, MutableMapping
from importlib import import_module
from typing import Any
from urllib.parse import quote, unquote, urlsplit

from zarrfs.engine.node import StoredNode
from zarrfs.engine.stores.base import Store
from zarrfs.engine.stores.local import LocalStore
from zarrfs.engine.stores.memory import MemoryStore
from zarrfs.engine.stores.zarr_python import adapt_zarr_python
from zarrfs.errors import LocationError, LocationNotFoundError
from zarrfs.plugins import find_plugin

__all__ = ["METADATA_NAMES", "Location", "open_store", "split_options"]

Location = str | os.PathLike[str] | Store | MutableMapping[str, bytes] | StoredNode[Any]
"""A path, a URL, a store, a dictionary that serves as one, or a node: what is below it."""

METADATA_NAMES = ("zarr.json", ".zarray", ".zgroup", ".zattrs", ".zmetadata", "attributes.json")

ZIP_MAGIC = (b"PK\x03\x04", b"PK\x05\x06")

SQLITE_MAGIC = b"SQLite format 3\0"

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


DURABLE = {"lmdb"}
"""Databases that have the option ``durable``, as directories and archives have."""

Options = Mapping[str, Any] | None


def open_store(location: Location, *, mode: str = "r", storage_options: Options = None) -> tuple[Store, str]:
    """Return a store and the path in it that the location points to.

    ``mode`` is ``"r"``, ``"r+"`` (there must be something, to be changed), ``"a"`` (made if absent) or ``"w"``.
    ``storage_options`` are credentials and the like for a URL that fsspec opens; directories, archives and LMDB know
    ``durable`` (a bool: wait until what is written has reached the disk), others none. The caller owns the store,
    except one that was given, which comes back as it is.

    Raises LocationError, which says what to do.
    """
    if isinstance(location, Store):
        _known_options(f"{location!r}, which is open,", storage_options)
        return location, ""
    if isinstance(location, StoredNode):
        _known_options(f"{location!r}, which is open,", storage_options)
        return location.store, location.path
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
        return _open_url(text, scheme, mode, storage_options)
    return _open_path(os.path.expanduser(_path_of(text) if scheme else text), mode, storage_options)


def split_options(options: Options, source: Location, target: Location) -> tuple[Options, Options]:
    """Return what of storage options that were given once is for a location that is read, and for one that is
    written: each takes what it knows. What neither knows both get, so that opening refuses it.
    """
    if not options:
        return None, None
    durable = {name: value for name, value in options.items() if name == "durable"}
    others = {name: value for name, value in options.items() if name != "durable"}
    known = [_is_remote(source), _is_remote(target)]
    return (
        others if known[0] or not any(known) else None,
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


def _open_url(url: str, scheme: str, mode: str, storage_options: Options) -> tuple[Store, str]:
    read_only = mode == "r"
    if scheme == "temporary":
        _known_options("a temporary directory", storage_options)
        return _open_temporary(url, mode), ""
    if scheme in DATABASES:
        module, name = DATABASES[scheme]
        switches = _known_options(
            f"a {scheme} location", storage_options, *({"durable"} if scheme in DURABLE else ())
        )
        maker: Any = getattr(import_module(f"zarrfs.engine.stores.{module}"), name)
        place = _path_of(f"file://{url.partition('://')[2]}") if module in FILES else url
        return maker(place, read_only=read_only, **switches), ""
    opener: Any = find_plugin(ENTRY_POINTS, scheme, Callable)
    if opener is not None:
        _known_options(f"a {scheme} location", storage_options)
        opened = opener(url, mode)
        if not isinstance(opened, Store):
            raise LocationError(
                f"{url}: the entry point {scheme!r} of the group {ENTRY_POINTS} returned {opened!r}, expected a Store"
            )
        return opened, ""
    return _open_remote(url, scheme, read_only, storage_options)


def _open_temporary(url: str, mode: str) -> Store:
    from zarrfs.engine.stores.temporary import TemporaryStore

    if mode not in ("a", "w"):
        raise LocationError(f"{url}: a temporary directory is made anew, and holds nothing to be opened")
    path = _path_of(f"file://{url.partition('://')[2]}")
    if path and not os.path.isdir(path):
        raise LocationError(f"{url}: {path} is no directory to make a temporary one in")
    return TemporaryStore(path or None)


def _open_remote(url: str, scheme: str, read_only: bool, storage_options: Options) -> tuple[Store, str]:
    """Open a URL by fsspec. A zip file is gone into by itself; the name of a document means what it is in."""
    from zarrfs.engine.stores.remote import RemoteStore, is_known

    if not all(is_known(part) for part in scheme.split("::")):
        raise LocationError(
            f"{url}: no store is known for {scheme!r} URLs; expected a path, or a URL such as file://, https:// or s3://"
        )
    if "durable" in (storage_options or {}):
        raise LocationError(
            f"{scheme} locations know no storage option 'durable', which is for files of this machine"
        )
    if scheme.startswith("zip::"):
        return _open_remote_zip(url.removeprefix("zip::"), read_only, storage_options), ""
    if scheme == "zip" and "::" in url:  # zip://path/in/it::s3://bucket/a.zip
        inner, _, archive = url.removeprefix("zip://").partition("::")
        return _open_remote_zip(archive, read_only, storage_options), inner.strip("/")
    bare, mark, query = url.partition("?")
    head, _, last = bare.rpartition("/")
    if last in METADATA_NAMES:
        bare = head
    elif last.endswith(".zip") and "::" not in scheme:
        return _open_remote_zip(url, read_only, storage_options), ""
    return RemoteStore(bare + mark + query, read_only=read_only, storage_options=storage_options), ""


def _open_remote_zip(url: str, read_only: bool, storage_options: Options) -> Store:
    """Open a zip file that lies at a URL. Options for ``zip`` itself, which fsspec would take, mean nothing here."""
    from zarrfs.engine.stores.remote import RemoteStore
    from zarrfs.engine.stores.remote_zip import RemoteZipStore

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
    return RemoteZipStore(RemoteStore(folder + mark + query, read_only=True, storage_options=options), name)


def _open_path(path: str, mode: str, options: Options) -> tuple[Store, str]:
    path = os.path.abspath(path)
    head, name = os.path.split(path)
    if name in METADATA_NAMES and not os.path.isdir(path):
        path = head
    found = _stat(path)
    if found is not None and stat.S_ISDIR(found.st_mode):
        if os.path.isfile(os.path.join(path, "data.mdb")):
            return _open_url(f"lmdb://{quote(path)}", "lmdb", mode, options)
        return LocalStore(
            path, read_only=mode == "r", **_known_options("a directory", options, "durable")
        ), ""
    if found is not None:
        return _open_file(path, "", mode, options)
    # Perhaps a file along the way is a zip file, and the rest a path in it.
    above, inner = os.path.split(path)
    while above and above != os.path.dirname(above):
        parent = _stat(above)
        if parent is not None:
            if stat.S_ISREG(parent.st_mode):
                return _open_file(above, inner.replace(os.sep, "/"), mode, options)
            break
        above, last = os.path.split(above)
        inner = f"{last}/{inner}"
    if mode in ("a", "w"):
        if path.endswith(".zip"):
            return _open_zip(path, mode, options), ""
        return LocalStore(path, **_known_options("a directory", options, "durable")), ""
    raise LocationNotFoundError(f"{path}: no such file or directory{_nearby(path)}")


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
    try:
        with open(path, "rb") as file:
            magic = file.read(len(SQLITE_MAGIC))
    except OSError as error:
        raise LocationError(f"{path} cannot be opened: {error.strerror}") from error
    if magic == SQLITE_MAGIC:
        return _open_url(f"sqlite://{quote(path)}", "sqlite", mode, options)[0], inner
    if magic[:4] not in ZIP_MAGIC:
        size = os.path.getsize(path)
        what = "is empty" if size == 0 else "is a file, but no zip file"
        raise LocationError(f"{path} {what}; expected a directory or a zip file that holds a Zarr hierarchy")
    return _open_zip(path, "r" if mode == "r" else "w" if mode == "w" else "a", options), inner


def _open_zip(path: str, mode: str, options: Options) -> Store:
    from zarrfs.engine.stores.zip import ZipStore

    return ZipStore(path, mode, **_known_options("an archive", options, "durable"))


def _nearby(path: str) -> str:
    """Say how far along the path one gets, to help find the misspelt part."""
    above = os.path.dirname(path)
    while above != os.path.dirname(above) and not os.path.isdir(above):
        above = os.path.dirname(above)
    return f"; {above} is there" if above != os.path.dirname(path) else ""
