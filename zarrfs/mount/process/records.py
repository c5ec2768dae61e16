"""Records of running mounts: one small JSON file per mount, in the state directory of the user.

The mount table of the system has the source and the mount point. A record adds the process, the time and the size of
the cache. It is written when the mount is ready and removed when its process exits. The record of a killed process
remains, which shows that the mount is stale. If written data are lost, the process replaces the record by one that
names them, and the program that unmounts removes it.
"""

from __future__ import annotations

import hashlib
import json
import os
from contextlib import suppress
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path

from zarrfs.errors import MountError
from zarrfs.logs import logger

__all__ = ["MountRecord", "find_record", "lost_error", "remove_record", "state_directory", "write_record"]

MAX_RECORD_NBYTES = 1 << 20


@dataclass(frozen=True)
class MountRecord:
    """A mount and the process that serves it.

    Attributes:
        mountpoint: the absolute path of the mount point.
        sources: the locations, without credentials.
        pid: the process that serves the mount.
        started: the start time of the process in clock ticks. A later process with the same ID has another one.
        boot: the identification of the boot of the machine on which the process runs.
        since: the time of mounting in seconds since the epoch.
        cache_size: the limit of the caches in bytes.
        is_created: whether the mount point was created for the mount, so that it is removed with it.
        subtype: the type of the mount in the mount table, after ``fuse.``.
        is_writable: whether files can be changed.
        lost: descriptions of written data that could not be stored at the end of the mount.
    """

    mountpoint: str
    sources: list[str]
    pid: int
    started: str
    boot: str
    since: float
    cache_size: int
    is_created: bool = False
    subtype: str = "zarrfs"
    is_writable: bool = False
    lost: list[str] = field(default_factory=list)

    @property
    def is_running(self) -> bool:
        """Whether the process still runs."""
        return self.boot == boot_identifier() and self.started == start_time(self.pid) != ""


def lost_error(record: MountRecord) -> MountError | None:
    """Return the error that a writable mount ended with, as far as its last record shows it; None if there is none.

    The process has ended. It would have removed the record if all data were stored.
    """
    if record.lost:
        text = "; ".join(map(str, record.lost))
        return MountError(
            f"{record.mountpoint}: written data could not be stored before the mount ended. {text}"
        )
    if record.is_writable:
        return MountError(
            f"{record.mountpoint}: the process {record.pid} of the mount ended without stating that all written data "
            "are stored. Its log may have the reason; check the last files that were written"
        )
    return None


def state_directory() -> Path:
    """Return the directory for logs and records of the user. It may not exist."""
    return Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "zarrfs"


def start_time(pid: int) -> str:
    """Return the start time of a process in clock ticks since the boot; an empty string if there is no such process."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except OSError:
        return ""
    # The name of the command, in parentheses, may contain spaces and parentheses.
    rest = text.rpartition(")")[2].split()
    is_zombie = rest[:1] == ["Z"]
    return rest[19] if len(rest) > 19 and not is_zombie else ""


def boot_identifier() -> str:
    """Return the identification of the current boot, or an empty string if the system has none."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


def _path(mountpoint: str) -> Path:
    digest = hashlib.sha256(mountpoint.encode("utf-8", "surrogateescape")).hexdigest()[:24]
    return state_directory() / "mounts" / f"{digest}.json"


def write_record(record: MountRecord) -> None:
    """Write a record. A failure is only logged, because the mount works without the record."""
    try:
        path = _path(record.mountpoint)
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_suffix(f".{os.getpid()}.tmp")
        try:
            temporary.write_text(json.dumps(asdict(record)))
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)
    except (OSError, RuntimeError) as error:
        logger.info("the record of the mount %s cannot be written: %s", record.mountpoint, error)


def find_record(mountpoint: str) -> MountRecord | None:
    """Return the record of a mount, or None if there is none or it is invalid."""
    try:
        with open(_path(mountpoint), "rb") as file:
            document = json.loads(file.read(MAX_RECORD_NBYTES))
        record = MountRecord(
            **{each.name: document[each.name] for each in fields(MountRecord) if each.name in document}
        )
    except (OSError, ValueError, KeyError, TypeError, RuntimeError):
        return None
    is_valid = (
        record.mountpoint == mountpoint
        and isinstance(record.pid, int)
        and isinstance(record.since, int | float)
        and isinstance(record.cache_size, int)
        and isinstance(record.sources, list)
        and isinstance(record.lost, list)
    )
    return record if is_valid else None


def remove_record(mountpoint: str) -> None:
    """Remove the record of a mount, if there is one."""
    with suppress(OSError, RuntimeError):
        _path(mountpoint).unlink(missing_ok=True)
