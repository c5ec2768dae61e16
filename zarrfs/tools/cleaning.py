"""Removal of temporary files that killed writers left behind: hidden files with parts of values or of an archive."""

from __future__ import annotations

from typing import Any

from zarrfs.engine.locations import open_store
from zarrfs.engine.open import Location
from zarrfs.engine.stores.base import Store

__all__ = ["clean"]


def clean(
    location: Location, *, dry_run: bool = False, storage_options: dict[str, Any] | None = None
) -> list[str]:
    """Remove the hidden files of killed writers below a directory, or next to an archive, and return
    their paths. ``dry_run`` only returns them. Other stores leave no such files.

    Files of running processes of this machine are not removed. Files of another machine are removed if they have not
    changed for a day and are not locked. Raises LocationError, and StoreError if a file cannot be removed.
    """
    store, _ = open_store(location, mode="r" if dry_run else "r+", storage_options=storage_options)
    try:
        return store.clean(dry_run=dry_run)
    finally:
        if not isinstance(location, Store):
            store.close()
