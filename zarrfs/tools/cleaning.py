"""Removal of what killed processes left behind: hidden files with parts of values or of an archive, and staging
prefixes.
"""

from __future__ import annotations

from typing import Any

from zarrfs.engine.locations import open_store
from zarrfs.engine.nodes.staging import clean_staging
from zarrfs.engine.open import Location
from zarrfs.engine.stores.base import Store

__all__ = ["clean"]


def clean(
    location: Location,
    *,
    dry_run: bool = False,
    other_machines: bool = False,
    storage_options: dict[str, Any] | None = None,
) -> list[str]:
    """Remove what killed processes left at a location, and return the paths or URLs. ``dry_run`` only returns them.

    These are the hidden files of writers below a directory or next to an archive, and the names ``.zarrfs-copy-...`` of
    interrupted replacements, dry runs and checks of a cluster: below a directory, or in the root of any other store.

    What running processes of this machine write is not removed. Hidden files of another machine are removed if they
    have not changed for a day and are not locked. The other names of another machine are removed if ``other_machines``
    is True: then no process of another machine may be writing to the location. Raises LocationError, and StoreError if
    something cannot be removed.
    """
    store, _ = open_store(location, mode="r" if dry_run else "r+", storage_options=storage_options)
    try:
        staged = clean_staging(store, dry_run=dry_run, other_machines=other_machines)
        files = store.clean(dry_run=dry_run)
        return staged + [path for path in files if not any(path.startswith(f"{name}/") for name in staged)]
    finally:
        if not isinstance(location, Store):
            store.close()
