"""The mounts of zarrfs on this system, and their statistics."""

from __future__ import annotations

import errno
import json
import os
from dataclasses import dataclass
from typing import Any

from zarrfs.engine.stores.wrappers.timeout import DaemonThreads
from zarrfs.errors import MountError
from zarrfs.mount.fuse.control import CONTROL_DIRECTORY, STATISTICS_NAME
from zarrfs.mount.system.mount_table import MOUNT_TYPES, find_mountpoint, mounts
from zarrfs.mount.system.records import find_record

__all__ = ["MountInformation", "list_mounts", "read_statistics"]

RESPONSE_SECONDS = 10.0


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
    for entry in mounts():
        if entry.type_name not in MOUNT_TYPES:
            continue
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
    task = DaemonThreads(1).start(lambda: _read(os.path.join(mountpoint, CONTROL_DIRECTORY, STATISTICS_NAME)))
    if not task.done.wait(RESPONSE_SECONDS):
        raise MountError(f"{mountpoint}: the mount did not respond within {RESPONSE_SECONDS:.0f} s")
    if isinstance(task.error, OSError):
        number = task.error.errno
        hint = {
            errno.ENOTCONN: f". Its process no longer exists; remove the mount with `zarrfs umount {mountpoint}`",
            errno.EACCES: ". Only the user who mounted it can read them, unless it is mounted with --allow-other",
            errno.ENOENT: ". It was mounted by a version of zarrfs without statistics",
        }.get(number or 0, "")
        raise MountError(
            f"{mountpoint}: the statistics cannot be read: {task.error.strerror}{hint}"
        ) from task.error
    if task.error is not None:
        raise MountError(f"{mountpoint}: the statistics cannot be read: {task.error}") from task.error
    statistics: dict[str, Any] = task.result
    return statistics


def _read(path: str) -> dict[str, Any]:
    with open(path, "rb") as file:
        document: dict[str, Any] = json.load(file)
    return document
