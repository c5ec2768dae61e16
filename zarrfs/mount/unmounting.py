"""Unmounting, also of stale mounts, whose process no longer exists."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import time

from zarrfs.errors import MountError
from zarrfs.mount.mount_table import is_mounted, resolve_parent

__all__ = ["unmount"]


def unmount(mountpoint: str, *, lazy: bool = False, timeout: float = 10.0) -> None:
    """Remove a zarrfs mount, and return when it is removed. Stale mounts are removed too. Raises MountError.

    ``lazy`` detaches the mount immediately even if files are open. Open files remain readable until they are closed.
    ``timeout`` is the maximum time in seconds to wait until the mount is removed.
    """
    target = resolve_parent(mountpoint)
    if not is_mounted(target):
        raise MountError(f"{target} is not a zarrfs mount")
    message = "no unmount program was found (fusermount3, fusermount or umount)"
    for command in _unmount_commands(target, lazy or _is_stale(target)):
        if shutil.which(command[0]) is None:
            continue
        completed = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
        )
        if completed.returncode == 0:
            break
        message = completed.stderr.strip() or f"{command[0]} exited with status {completed.returncode}"
    else:
        hint = (
            ". Close the files that are open (lsof lists them) or use --lazy"
            if "busy" in message.lower()
            else ""
        )
        raise MountError(f"{target} cannot be unmounted: {message}{hint}")
    deadline = time.monotonic() + timeout
    while is_mounted(target):
        if time.monotonic() > deadline:
            raise MountError(f"{target} is still mounted {timeout:.0f} s after the unmount command")
        time.sleep(0.01)


def _unmount_commands(target: str, lazy: bool) -> list[list[str]]:
    fusermount = [["fusermount3", "-u"], ["fusermount", "-u"]]
    umount = [["umount"]]
    commands = umount + fusermount if os.geteuid() == 0 else fusermount + umount
    lazy_flags = {"fusermount3": "-z", "fusermount": "-z", "umount": "-l"}
    return [[*command, *([lazy_flags[command[0]]] if lazy else []), target] for command in commands]


def _is_stale(target: str) -> bool:
    try:
        os.stat(target)
    except OSError as error:
        return error.errno == errno.ENOTCONN
    return False
