"""Read access to the destination of a copy before anything is written. Opening it creates no files."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from urllib.parse import unquote

from zarrfs.engine.stores.base import Store
from zarrfs.engine.stores.icechunk.addresses import is_icechunk, path_in_new_repository
from zarrfs.engine.stores.local.store import LocalStore
from zarrfs.engine.stores.locations import Location, open_store, split_options
from zarrfs.engine.stores.memory import MemoryStore
from zarrfs.engine.stores.wrappers.prefix import PrefixStore
from zarrfs.errors import LocationNotFoundError

__all__ = ["file_path", "one_transaction", "open_for_inspection"]

FILE_SCHEMES = ("", "file", "sqlite", "dbm", "lmdb")
"""URL schemes of locations that are files or directories."""

DBM_SUFFIXES = ("", ".db", ".dat", ".dir", ".pag")
"""Suffixes that dbm libraries append to a file name."""


@contextmanager
def open_for_inspection(location: Location, options: Mapping[str, Any] | None) -> Iterator[tuple[Store, str]]:
    """Yield a store and the path in it for reading a location, or an empty store if nothing exists there. The store is
    closed on exit, unless the location is a store. Raises LocationNotFoundError if its bucket does not exist.
    """
    if not isinstance(location, str | os.PathLike):
        yield open_store(location, mode="a", storage_options=options)
        return
    try:
        store, path = _empty_store(location) or open_store(location, mode="r", storage_options=options)
    except LocationNotFoundError:
        if not is_icechunk(location):
            raise
        store, path = MemoryStore(), path_in_new_repository(str(location))
    with store:
        problem = store.missing_container()
        if problem is not None:
            raise LocationNotFoundError(f"{store.url}: {problem}")
        yield store, path


@contextmanager
def one_transaction(
    location: Location, options: dict[str, Any] | None, *, dry_run: bool
) -> Iterator[tuple[Location, dict[str, Any] | None]]:
    """Yield the location and the options with which several operations write to it.

    A branch of a repository of Icechunk is opened, so that they become one snapshot, or none after a failure.
    """
    if dry_run or not is_icechunk(location):
        yield location, options
        return
    _, writing = split_options(options, "", location)
    store, path = open_store(location, mode="a", storage_options=writing)
    with store:
        yield PrefixStore(store, path) if path else store, None


def file_path(location: object) -> str | None:
    """Return the absolute path of a location that is a file or a directory, or in one; None for any other location."""
    if isinstance(location, LocalStore):
        return location.root
    if not isinstance(location, str | os.PathLike):
        return None
    text = os.fsdecode(location)
    scheme, rest = _split_scheme(text)
    if is_icechunk(text) or scheme.lower() not in FILE_SCHEMES or not rest:
        return None
    return os.path.abspath(os.path.expanduser(unquote(rest) if scheme else rest))


def _split_scheme(text: str) -> tuple[str, str]:
    scheme, separator, rest = text.partition("://")
    return ("", text) if not separator or "/" in scheme else (scheme, rest)


def _empty_store(location: str | os.PathLike[str]) -> tuple[Store, str] | None:
    """Return an empty store and path if nothing exists at a location, else None."""
    scheme, _ = _split_scheme(os.fsdecode(location))
    if scheme == "temporary":
        return MemoryStore(), ""
    path = file_path(location)
    if path is None or _path_exists(path, DBM_SUFFIXES if scheme == "dbm" else ("",)):
        return None
    return LocalStore(path, read_only=True), ""


def _path_exists(path: str, suffixes: tuple[str, ...]) -> bool:
    """Return whether a file or directory of that name exists. Also True if one of the directories above it is a file,
    which may be an archive that contains the node.
    """
    if any(os.path.lexists(path + suffix) for suffix in suffixes):
        return True
    parent = os.path.dirname(path)
    while parent != os.path.dirname(parent) and not os.path.lexists(parent):
        parent = os.path.dirname(parent)
    return not os.path.isdir(parent)
