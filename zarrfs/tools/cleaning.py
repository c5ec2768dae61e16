"""Removal of what killed processes left behind: hidden files with parts of values or of an archive, and staging
prefixes. On request also of keys that resemble chunks and that no array addresses.
"""

from __future__ import annotations

from typing import Any

from zarrfs.api.open import Location
from zarrfs.api.open import open as open_node
from zarrfs.engine.array.array import Array
from zarrfs.engine.group.group import Group
from zarrfs.engine.hierarchy.staging import clean_staging
from zarrfs.engine.parallel import CORES, for_each
from zarrfs.engine.stores.base import Store
from zarrfs.engine.stores.locations import open_store
from zarrfs.errors import StoreError
from zarrfs.logs import logger
from zarrfs.tools.copying.stored_keys import ArrayKeys
from zarrfs.tools.copying.walking import walk

__all__ = ["clean"]


def clean(
    location: Location,
    *,
    dry_run: bool = False,
    other_machines: bool = False,
    unreachable: bool = False,
    storage_options: dict[str, Any] | None = None,
) -> list[str]:
    """Remove what killed processes left at a location, and return the paths or URLs. ``dry_run`` only returns them.

    These are the hidden files of writers below a directory or next to an archive, and the names ``.zarrfs-copy-...`` of
    interrupted replacements, dry runs and checks of a cluster: below a directory, or in the root of any other store.

    What running processes of this machine write is not removed. Hidden files of another machine are removed if they
    have not changed for a day and are not locked. The other names of another machine are removed if ``other_machines``
    is True: then no process of another machine may be writing to the location.

    With ``unreachable`` the keys below arrays that resemble chunks, but that no chunk of the array has, are removed as
    well. They are kept, with a warning, if no chunk of the array is stored: then the metadata are probably wrong.

    Raises LocationError, StoreError if something cannot be removed, or if ``unreachable`` is given and the store cannot
    list, and with ``unreachable`` the errors of ``open``.
    """
    store, path = open_store(location, mode="r" if dry_run else "r+", storage_options=storage_options)
    try:
        staged = clean_staging(store, dry_run=dry_run, other_machines=other_machines)
        files = store.clean(dry_run=dry_run)
        removed = staged + [file for file in files if not any(file.startswith(f"{name}/") for name in staged)]
        return removed + (_clean_unreachable(store, path, dry_run) if unreachable else [])
    finally:
        if not isinstance(location, Store):
            store.close()


def _clean_unreachable(store: Store, path: str, dry_run: bool) -> list[str]:
    """Delete the unreachable keys of the array at a path, or of all arrays below it, and return their URLs."""
    if not store.listable:
        raise StoreError(f"{store.url} cannot be listed, so its unreachable keys cannot be found")
    node = open_node(store, path, "r", use_consolidated=False)
    members = walk(node) if isinstance(node, Group) else iter([("", node)])
    found: list[str] = []
    for below, member in members:
        if isinstance(member, Exception):
            logger.warning("%s: %s cannot be read, and is not cleaned: %s", store.url, below or "/", member)
        elif isinstance(member, Array):
            keys = ArrayKeys(member)
            if keys.error is not None:
                logger.warning("%s%s is not cleaned: %s", store.url, member.name, keys.error)
                continue
            if keys.unreachable and not keys.chunks:
                logger.warning("%s%s is not cleaned: %s", store.url, member.name, keys.describe_unreachable())
                continue
            found += keys.unreachable
    if not dry_run:
        for_each(store.delete, found, max(CORES, store.concurrency))
    return [f"{store.url}/{key}" for key in found]
