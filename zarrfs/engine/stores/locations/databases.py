"""Databases: their URL schemes and suffixes, their path in a longer path, and opening them."""

from __future__ import annotations

import os
import stat
from importlib import import_module
from typing import Any

from zarrfs.engine.stores.base import Store
from zarrfs.engine.stores.locations.storage_options import Options, boolean_options
from zarrfs.errors import LocationError

__all__ = ["DATABASES", "FILES", "SUFFIXES", "is_lmdb", "open_database", "path_status", "split_database"]

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
    ".ozx": "zip",
    ".sqlite": "sqlite",
    ".sqlite3": "sqlite",
    ".sqldb": "sqlite",
    ".db": "sqlite",
    ".lmdb": "lmdb",
    ".dbm": "dbm",
}
"""Suffix -> what is created at a path that does not exist. Other suffixes create a directory."""

DURABLE = {"lmdb"}
"""Databases that accept the storage option ``durable``. Directories and archives accept it too."""


def open_database(scheme: str, path_or_url: str, mode: str, storage_options: Options) -> Store:
    """Open a database."""
    module, name = DATABASES[scheme]
    flags = boolean_options(
        f"a {scheme} location", storage_options, *({"durable"} if scheme in DURABLE else ())
    )
    store_class: Any = getattr(import_module(f"zarrfs.engine.stores.databases.{module}"), name)
    store: Store = store_class(path_or_url, read_only=mode == "r", **flags)
    return store


def split_database(path: str, scheme: str) -> tuple[str, str]:
    """Split a path into the path of a database and the path in it.

    The database is the file, or the directory with an LMDB environment, that is a prefix of the path. If none exists,
    it is the shortest prefix with a suffix of such databases, or else the whole path.
    """
    ancestor, inner = path.rstrip("/") or path, ""
    by_suffix: tuple[str, str] | None = None
    while ancestor and ancestor != os.path.dirname(ancestor):
        status = path_status(ancestor)
        if status is not None:
            if not stat.S_ISDIR(status.st_mode) or is_lmdb(ancestor):
                return ancestor, inner
            break
        if SUFFIXES.get(os.path.splitext(ancestor)[1]) == scheme:
            by_suffix = ancestor, inner
        ancestor, _, last = ancestor.rpartition("/")
        inner = f"{last}/{inner}".rstrip("/")
    return by_suffix or (path, "")


def is_lmdb(directory: str) -> bool:
    return os.path.lexists(os.path.join(directory, "data.mdb"))


def path_status(path: str) -> os.stat_result | None:
    try:
        return os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError) as error:
        raise LocationError(
            f"{path} cannot be opened: {getattr(error, 'strerror', None) or error}"
        ) from error
