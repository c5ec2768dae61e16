"""The disk that contains a store, and the free space on it, for ``df``."""

from __future__ import annotations

import os

from zarrfs.engine.stores.base import Store
from zarrfs.engine.stores.local.store import LocalStore
from zarrfs.engine.stores.wrappers.wrapper import WrapperStore

__all__ = ["disk_space", "local_store", "unwrapped"]

FIELDS = (
    "f_bsize",
    "f_frsize",
    "f_blocks",
    "f_bfree",
    "f_bavail",
    "f_files",
    "f_ffree",
    "f_favail",
    "f_namemax",
)


def local_store(store: Store) -> LocalStore | None:
    """Return the LocalStore inside the wrappers of a store, or None if it is another kind of store."""
    inner = unwrapped(store)
    return inner if isinstance(inner, LocalStore) else None


def unwrapped(store: Store) -> Store:
    """Return the store inside all wrappers."""
    while isinstance(store, WrapperStore):
        store = store.store
    return store


def disk_space(store: Store) -> dict[str, int] | None:
    """Return the result of statvfs for the disk of a store, or None if the store is not a directory. Raises OSError."""
    local = local_store(store)
    if local is None:
        return None
    status = os.statvfs(local.root)
    return {name: getattr(status, name) for name in FIELDS}
