"""Committing the changes of a mounted branch, from another process."""

from __future__ import annotations

import os

from zarrfs.errors import MountError
from zarrfs.mount.fuse.control import COMMIT_NAME, CONTROL_DIRECTORY
from zarrfs.mount.process.records import find_record

__all__ = ["commit_mount"]


def commit_mount(mountpoint: str, message: str = "") -> str:
    """Commit what was written through a mount, and return a description of the snapshot.

    ``message`` describes the snapshot; the default is that of the mount. Raises MountError.
    """
    path = os.path.abspath(os.path.expanduser(mountpoint))
    record = find_record(path)
    if record is None or not record.is_running:
        raise MountError(f"{path} is not a mount of zarrfs that is running; `zarrfs mounts` lists the mounts")
    file = f"{path}/{CONTROL_DIRECTORY}/{COMMIT_NAME}"
    if not record.is_writable or not os.path.exists(file):
        raise MountError(
            f"{path} is not a writable mount of a branch of an Icechunk repository, so nothing can be committed; "
            "mount icechunk:REPOSITORY@BRANCH with --rw"
        )
    try:
        with open(file, "w") as stream:
            stream.write(f"{message}\n")
    except OSError as error:
        with open(file) as stream:
            reason = stream.read().strip()
        raise MountError(reason or f"{path}: the commit failed: {error.strerror}") from error
    with open(file) as stream:
        return stream.read().strip()
