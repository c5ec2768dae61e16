"""The disk that contains a store, and the free space on it, for ``df``."""

from __future__ import annotations

import os

from zarrfs.engine.stores.base import Store

__all__ = ["disk_space"]

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


def disk_space(store: Store) -> dict[str, int] | None:
    """Return the result of statvfs for the disk of a store, or None if the store is not a directory. Raises OSError."""
    if store.directory is None:
        return None
    status = os.statvfs(store.directory)
    return {name: getattr(status, name) for name in FIELDS}
