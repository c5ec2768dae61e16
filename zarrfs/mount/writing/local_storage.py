"""Whether a store can be mounted for writing, and waiting until its data are on the disk."""

from __future__ import annotations

import ctypes
import os

from zarrfs.engine.stores.base import Store
from zarrfs.engine.stores.local.store import LocalStore
from zarrfs.engine.stores.wrappers.wrapper import unwrapped
from zarrfs.engine.stores.zip.archive import ArchiveStore
from zarrfs.errors import MountError, StoreError

__all__ = ["check_store", "synchronize"]


def synchronize(store: Store) -> None:
    """Wait until the data of a directory are on the disk. Raises StoreError. Other stores have no such operation."""
    local = unwrapped(store)
    if not isinstance(local, LocalStore) or local.durable:
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


def check_store(store: Store) -> None:
    """Raise MountError if a store cannot be mounted for writing."""
    if isinstance(unwrapped(store), ArchiveStore):
        raise MountError(
            f"{store.url} is an archive, which is only complete when it is closed. It cannot be mounted with --rw; "
            "copy it to a directory with `zarrfs copy` and mount that"
        )
    if store.directory is not None and _is_on_read_only_file_system(store.directory):
        raise MountError(
            f"{store.url} is on a read-only file system, so that it cannot be mounted with --rw; mount it without --rw"
        )


def _is_on_read_only_file_system(path: str) -> bool:
    try:
        return bool(os.statvfs(path).f_flag & os.ST_RDONLY)
    except OSError:
        return False
