"""Opening of URLs whose scheme another package registers."""

from __future__ import annotations

from collections.abc import Callable
from inspect import signature
from typing import Any

from zarrfs.engine.stores.base import Store
from zarrfs.engine.stores.locations.storage_options import Options, boolean_options
from zarrfs.engine.stores.wrappers.plugin import PluginStore
from zarrfs.errors import LocationError, ZarrError
from zarrfs.plugins import find_plugin

__all__ = ["find_opener", "has_options", "open_plugin"]

ENTRY_POINTS = "zarrfs.stores"
"""The entry point group of functions that open URLs of a scheme."""


def find_opener(scheme: str) -> Any:
    """Return the function that another package registers for a URL scheme, or None."""
    return find_plugin(ENTRY_POINTS, scheme, Callable)


def open_plugin(opener: Any, url: str, scheme: str, mode: str, storage_options: Options) -> tuple[Store, str]:
    """Open a URL with the function that another package registers for its scheme."""
    plugin = f"{url}: the entry point {scheme!r} of the group {ENTRY_POINTS}"
    options: dict[str, Any] = {}
    if has_options(opener):
        options["storage_options"] = dict(storage_options or {})
    else:
        boolean_options(f"a {scheme} location", storage_options)
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


def has_options(opener: Any) -> bool:
    """Return whether the function of another package has the parameter ``storage_options``."""
    try:
        return "storage_options" in signature(opener).parameters
    except (TypeError, ValueError):  # a callable without a signature
        return False
