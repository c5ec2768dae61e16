"""The disk below a store: free space, and waiting until data are on the disk."""

from __future__ import annotations

import ctypes
import os

from zarrfs.engine.stores.base import Store
from zarrfs.engine.stores.local import LocalStore
from zarrfs.engine.stores.wrappers.wrapper import WrapperStore
from zarrfs.errors import StoreError

__all__ = ["free_space", "local_store", "synchronize", "unwrapped"]


def local_store(store: Store) -> LocalStore | None:
    """Return the directory below wrappers of a store, or None if it is another kind of store."""
    inner = unwrapped(store)
    return inner if isinstance(inner, LocalStore) else None


def unwrapped(store: Store) -> Store:
    """Return the store below wrappers."""
    while isinstance(store, WrapperStore):
        store = store.store
    return store


def free_space(store: Store) -> dict[str, int] | None:
    """Return the result of statvfs for the disk of a store, or None if the store is not a directory."""
    local = local_store(store)
    if local is None:
        return None
    status = os.statvfs(local.root)
    names = (
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
    return {name: getattr(status, name) for name in names}


def synchronize(store: Store) -> None:
    """Wait until the data of a directory are on the disk. Raises StoreError. Other stores have no such operation."""
    local = local_store(store)
    if local is None or local.durable:
        return
    try:
        descriptor = os.open(local.root, os.O_RDONLY | os.O_DIRECTORY)
    except OSError as error:
        raise StoreError(f"{local.root} cannot be synchronized: {error.strerror}", error.errno) from error
    try:
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.syncfs(descriptor):
            number = ctypes.get_errno()
            raise StoreError(f"{local.root} cannot be synchronized: {os.strerror(number)}", number)
    finally:
        os.close(descriptor)
