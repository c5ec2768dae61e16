"""Waiting until the data of a store are on the disk."""

from __future__ import annotations

import ctypes
import os

from zarrfs.engine.stores.base import Store
from zarrfs.errors import StoreError
from zarrfs.mount.fuse.disk_space import local_store

__all__ = ["synchronize"]


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
