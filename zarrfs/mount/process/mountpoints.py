"""Mount points: the checks before a mount, and mount points that are derived from the name of the source."""

from __future__ import annotations

import os
import stat

from zarrfs.errors import MountError
from zarrfs.logs import logger
from zarrfs.mount.process.mount_table import find_mountpoint, resolve_path
from zarrfs.mount.process.unmounting import connection_state, unmount

__all__ = ["derive_mountpoint", "prepare_mountpoint"]


def prepare_mountpoint(mountpoint: str, *, may_hide_files: bool = False) -> str:
    """Return the absolute path of a mount point, without symbolic links. A stale mount at the path is removed.

    Raises MountError, also for a directory that is not empty, unless the mount ``may_hide_files``.
    """
    target = resolve_path(mountpoint)
    containing = find_mountpoint(target)
    # A mount whose process has stopped must not be accessed without a time limit.
    state = None if containing is None else connection_state(containing)
    if containing == target:
        if state != "stale":
            raise MountError(f"{target} is already a zarrfs mount. Unmount it with `zarrfs umount {target}`")
        logger.info("%s: removing a stale mount (its process no longer exists)", target)
        unmount(target)
    elif state == "unresponsive":
        raise MountError(f"{target} is in the mount {containing}, whose process is stopped or busy")
    try:
        status = os.stat(target)
    except FileNotFoundError:
        raise MountError(f"{target}: no such directory. Create it first (mkdir {target})") from None
    except OSError as error:
        raise MountError(f"{target} cannot be used as a mount point: {error.strerror}") from error
    if not stat.S_ISDIR(status.st_mode):
        raise MountError(
            f"{target} is not a directory. Choose an empty directory as the mount point, which is the last argument"
        )
    try:
        content = os.listdir(target)
    except OSError as error:
        raise MountError(f"{target} cannot be used as a mount point: {error.strerror}") from error
    if content and not may_hide_files:
        raise MountError(
            f"{target} is not empty, and a mount would hide its content. Choose an empty directory as the mount point, "
            "which is the last argument, or mount with -o nonempty"
        )
    return target


def derive_mountpoint(name: str) -> tuple[str, bool]:
    """Create the directory ``name`` in the current directory. Return its path, and whether it was created.

    A directory that exists is used if it is empty. Raises MountError if it cannot be created.
    """
    target = resolve_path(name)
    try:
        os.mkdir(target)
    except FileExistsError:
        return prepare_mountpoint(target), False
    except OSError as error:
        raise MountError(
            f"the mount point {target} cannot be created: {error.strerror}. Give a MOUNTPOINT after the location"
        ) from error
    return target, True
