"""The destination of a copy as it is, before anything is written: looking at it creates nothing."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from urllib.parse import unquote

from zarrfs.engine.locations import Location, open_store
from zarrfs.engine.stores.base import Store
from zarrfs.engine.stores.local import LocalStore
from zarrfs.engine.stores.memory import MemoryStore

__all__ = ["as_it_is"]

FILE_SCHEMES = ("", "file", "sqlite", "dbm", "lmdb")
"""Schemes of locations that are files or directories."""

DBM_ENDINGS = ("", ".db", ".dat", ".dir", ".pag")
"""What the libraries of dbm add to the name of a file."""


@contextmanager
def as_it_is(location: Location, options: Mapping[str, Any] | None) -> Iterator[tuple[Store, str]]:
    """Yield a store and a path in it to look at what is at a location, if anything is. The store is closed then, except
    one that was given.
    """
    if not isinstance(location, str | os.PathLike):
        yield open_store(location, mode="a", storage_options=options)
        return
    store, path = _nothing_there(location) or open_store(location, mode="r", storage_options=options)
    with store:
        yield store, path


def _nothing_there(location: str | os.PathLike[str]) -> tuple[Store, str] | None:
    """Return an empty store for a location at which there is nothing; None where there is something."""
    text = os.fsdecode(location)
    scheme, separator, rest = text.partition("://")
    if not separator or "/" in scheme:
        scheme, rest = "", text
    if scheme == "temporary":
        return MemoryStore(), ""
    if scheme.lower() not in FILE_SCHEMES or not rest:
        return None
    path = os.path.abspath(os.path.expanduser(unquote(rest) if scheme else rest))
    if _is_there(path, DBM_ENDINGS if scheme == "dbm" else ("",)):
        return None
    return LocalStore(path, read_only=True), ""


def _is_there(path: str, endings: tuple[str, ...]) -> bool:
    """Whether there is a file or directory of that name, or a file in place of a directory above it, which then may
    hold what is meant.
    """
    if any(os.path.lexists(path + ending) for ending in endings):
        return True
    above = os.path.dirname(path)
    while above != os.path.dirname(above) and not os.path.lexists(above):
        above = os.path.dirname(above)
    return not os.path.isdir(above)
