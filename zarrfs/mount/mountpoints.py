"""Mount points: the checks before a mount."""

from __future__ import annotations

import errno
import os
import stat

from zarrfs.errors import MountError
from zarrfs.logs import logger
from zarrfs.mount.mount_table import is_mounted
from zarrfs.mount.unmounting import unmount

__all__ = ["prepare_mountpoint"]


def prepare_mountpoint(mountpoint: str) -> str:
    """Return the absolute path of a mount point. A stale mount at the path is removed. Raises MountError."""
    target = os.path.abspath(mountpoint)
    try:
        status = os.stat(target)
    except FileNotFoundError:
        raise MountError(f"{target}: no such directory. Create it first (mkdir {target})") from None
    except OSError as error:
        if error.errno != errno.ENOTCONN:
            raise MountError(f"{target} cannot be used as a mount point: {error.strerror}") from error
        logger.info("%s: removing a stale mount (its process no longer exists)", target)
        unmount(target)
        status = os.stat(target)
    if not stat.S_ISDIR(status.st_mode):
        raise MountError(f"{target} is not a directory")
    if is_mounted(target):
        raise MountError(f"{target} is already a zarrfs mount. Unmount it with `zarrfs umount {target}`")
    if os.listdir(target):
        raise MountError(
            f"{target} is not empty, and a mount would hide its content. Choose an empty directory"
        )
    return target
