"""The mounts of zarrfs on this system, and their statistics."""

from __future__ import annotations

import errno
import json
import os
from dataclasses import dataclass
from typing import Any

from zarrfs.errors import MountError
from zarrfs.mount.fuse.control import CONTROL_DIRECTORY, STATISTICS_NAME
from zarrfs.mount.process.mount_table import find_mountpoint, zarrfs_mounts
from zarrfs.mount.process.records import find_record
from zarrfs.mount.process.time_limits import access_mount

__all__ = ["MountInformation", "list_mounts", "read_statistics"]

RESPONSE_SECONDS = 5.0


@dataclass(frozen=True)
class MountInformation:
    """A mount. The values that only its owner can see are None for other users.

    Attributes:
        sources: the locations, without credentials.
        mountpoint: the absolute path of the mount point.
        state: ``"mounted"``, or ``"stale"`` if its process no longer exists.
        pid: the process that serves the mount.
        cache_size: the limit of its caches in bytes.
        since: the time of mounting in seconds since the epoch.
    """

    sources: list[str]
    mountpoint: str
    state: str
    pid: int | None = None
    cache_size: int | None = None
    since: float | None = None


def list_mounts() -> list[MountInformation]:
    """Return the mounts in the order of mounting. No mount is accessed, so that none can block the call."""
    listed = []
    for entry in zarrfs_mounts():
        record = find_record(entry.mountpoint)
        if record is None:
            listed.append(MountInformation([entry.source], entry.mountpoint, "mounted"))
        elif record.is_running:
            listed.append(
                MountInformation(
                    record.sources,
                    entry.mountpoint,
                    "mounted",
                    record.pid,
                    record.cache_size,
                    record.since,
                )
            )
        else:
            listed.append(MountInformation(record.sources, entry.mountpoint, "stale", since=record.since))
    return listed


def read_statistics(path: str) -> dict[str, Any]:
    """Return the statistics of the mount that contains a path; see ``MountStatistics``. Raises MountError."""
    mountpoint = find_mountpoint(path)
    if mountpoint is None:
        raise MountError(
            f"{os.path.abspath(path)} is not in a zarrfs mount. `zarrfs mounts` lists the mounts"
        )
    try:
        data = access_mount(
            os.path.join(mountpoint, CONTROL_DIRECTORY, STATISTICS_NAME), RESPONSE_SECONDS, reads=True
        )
    except OSError as error:
        hint = {
            errno.ENOTCONN: f". Its process no longer exists; remove the mount with `zarrfs umount {mountpoint}`",
            errno.EACCES: ". Only the user who mounted it can read them, unless it is mounted with --allow-other",
            errno.ENOENT: ". It was mounted by a version of zarrfs without statistics",
        }.get(error.errno or 0, "")
        reason = error.strerror or error
        raise MountError(f"{mountpoint}: the statistics cannot be read: {reason}{hint}") from error
    if data is None:
        raise MountError(
            f"{mountpoint}: the mount did not respond within {RESPONSE_SECONDS:.0f} s: its process is stopped or busy"
        )
    try:
        statistics: dict[str, Any] = json.loads(data)
    except ValueError as error:
        raise MountError(f"{mountpoint}: the statistics cannot be read: {error}") from error
    return statistics
