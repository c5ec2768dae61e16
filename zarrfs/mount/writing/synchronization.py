"""The locks that a writable mount shares with other writers of its store."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from zarrfs.engine.stores.base import Store
from zarrfs.engine.stores.wrappers.synchronizers import (
    ProcessSynchronizer,
    SingleFileSynchronizer,
    Synchronizer,
)
from zarrfs.engine.stores.zip.archive import ArchiveStore
from zarrfs.errors import MountError
from zarrfs.mount.fuse.disk_space import local_store, unwrapped

__all__ = ["check_store", "find_synchronizer"]


def find_synchronizer(store: Store, directory: str | None) -> Synchronizer | None:
    """Return the synchronizer for a writable mount of a store.

    With a directory it is a ``ProcessSynchronizer``. Otherwise all mounts of a local directory by one user share a file
    of locks in the state directory of the user; other stores have no synchronizer.
    """
    if directory is not None:
        return ProcessSynchronizer(directory)
    local = local_store(store)
    if local is None:
        return None
    state = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "zarrfs" / "locks"
    root = os.path.realpath(local.root)
    return SingleFileSynchronizer(state / hashlib.sha256(os.fsencode(root)).hexdigest()[:32])


def check_store(store: Store) -> None:
    """Raise MountError if a store cannot be mounted for writing."""
    if isinstance(unwrapped(store), ArchiveStore):
        raise MountError(
            f"{store.url} is an archive, which is only complete when it is closed. It cannot be mounted with --rw; "
            "copy it to a directory with `zarrfs copy` and mount that"
        )
    local = local_store(store)
    if local is not None and _is_on_read_only_file_system(local.root):
        raise MountError(
            f"{store.url} is on a read-only file system, so that it cannot be mounted with --rw; mount it without --rw"
        )


def _is_on_read_only_file_system(path: str) -> bool:
    try:
        return bool(os.statvfs(path).f_flag & os.ST_RDONLY)
    except OSError:
        return False
