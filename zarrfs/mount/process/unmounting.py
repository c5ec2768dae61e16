"""Unmounting, also of stale mounts, whose process no longer exists."""

from __future__ import annotations

import errno
import os
import select
import shutil
import time
from typing import Literal

from zarrfs.errors import MountError
from zarrfs.logs import logger
from zarrfs.mount.process.mount_table import is_mounted, resolve_path
from zarrfs.mount.process.records import MountRecord, find_record, lost_error, remove_record
from zarrfs.mount.process.time_limits import access_mount, run_with_limit

__all__ = ["connection_state", "unmount"]

POLL_SECONDS = 0.01

RESPONSE_SECONDS = 5.0

UNMOUNT_SECONDS = 30.0
"""The time limit of a program that unmounts."""


def unmount(
    mountpoint: str, *, lazy: bool = False, timeout: float = 10.0, waits_for_process: bool = True
) -> None:
    """Remove a zarrfs mount, and return when it is removed. Stale mounts are removed too.

    Raises MountError if it cannot be removed. If written data could not be stored, the mount is removed, and the
    MountError names what is lost.

    ``lazy`` detaches the mount immediately even if files are open. Open files remain readable until they are closed.
    ``timeout`` is the maximum time in seconds to wait until the mount is removed, and until its process has exited.
    """
    target = resolve_path(mountpoint)
    if not is_mounted(target):
        _check_record(target, find_record(target))
        raise MountError(f"{target} is not a zarrfs mount. `zarrfs mounts` lists the mounts")
    record = find_record(target)
    if record is not None and not record.is_running:
        if record.is_writable:
            logger.warning(
                "%s: its process was killed; data that were written last may not be stored", target
            )
        remove_record(target)
        record = None
    message = _run_commands(target, lazy)
    if message is not None and "busy" in message.lower() and not lazy and connection_state(target) == "stale":
        message = _run_commands(target, lazy=True)
    # Another program may have unmounted it at the same time.
    if message is not None and is_mounted(target):
        hint = (
            ". Close the files that are open (lsof lists them) or use --lazy"
            if "busy" in message.lower()
            else ""
        )
        raise MountError(f"{target} cannot be unmounted: {message.rstrip('.')}{hint}")
    deadline = time.monotonic() + timeout
    while is_mounted(target):
        if time.monotonic() > deadline:
            raise MountError(f"{target} is still mounted {timeout:.0f} s after the unmount command")
        time.sleep(POLL_SECONDS)
    # With --lazy the process serves the files that are still open.
    if record is not None and waits_for_process and not lazy:
        _wait_for_exit(record.pid, max(0.0, deadline - time.monotonic()))
        if record.is_running:
            logger.warning(
                "%s: the process %d of the mount is still running. What it cannot store is named in its log",
                target,
                record.pid,
            )
        else:
            _check_record(target, record)


def _check_record(target: str, record: MountRecord | None) -> None:
    """Raise MountError, and remove the record of a mount, if its process has ended and has not stored all data.

    ``record`` is the record of the mount before it was unmounted.
    """
    last = find_record(target)
    if record is None or last is None or last.is_running:
        return
    error = lost_error(last) if (last.pid, last.started) == (record.pid, record.started) else None
    if error is not None:
        remove_record(target)
        raise error


def _run_commands(target: str, lazy: bool) -> str | None:
    """Run the unmount programs until one succeeds. Return None, or the message of the last one."""
    message = "no unmount program was found (fusermount3, fusermount or umount)"
    for command in _unmount_commands(target, lazy):
        if shutil.which(command[0]) is None:
            continue
        completed = run_with_limit(command, UNMOUNT_SECONDS)
        if completed is None:
            message = f"{command[0]} did not end within {UNMOUNT_SECONDS:.0f} s"
        elif completed.returncode == 0:
            return None
        else:
            message = (
                completed.stderr.decode(errors="replace").strip()
                or f"{command[0]} exited with status {completed.returncode}"
            )
    return message


def _unmount_commands(target: str, lazy: bool) -> list[list[str]]:
    fusermount = [["fusermount3", "-u"], ["fusermount", "-u"]]
    umount = [["umount"]]
    # Without -c (--no-canonicalize) umount accesses the mount, and waits if its process has stopped. Implementations
    # other than that of util-linux do not know the option, so fusermount is next.
    commands = [["umount", "-c"], *fusermount, *umount] if os.geteuid() == 0 else fusermount + umount
    lazy_flags = {"fusermount3": "-z", "fusermount": "-z", "umount": "-l"}
    return [[*command, *([lazy_flags[command[0]]] if lazy else []), target] for command in commands]


def _wait_for_exit(pid: int, timeout: float) -> None:
    """Wait until a process has exited, at most ``timeout`` seconds."""
    try:
        descriptor = os.pidfd_open(pid)
    except OSError:  # It has exited.
        return
    try:
        select.select([descriptor], [], [], timeout)
    finally:
        os.close(descriptor)


def connection_state(target: str) -> Literal["accessible", "stale", "unresponsive"]:
    """Return whether the process of a mount exists and responds. Mounts that this user must not access count as
    accessible.

    A mount is stale if its process no longer exists ("Transport endpoint is not connected"), and unresponsive if its
    process does not answer within ``RESPONSE_SECONDS``.
    """
    try:
        is_answered = access_mount(target, RESPONSE_SECONDS) is not None
    except OSError as error:
        return "stale" if error.errno == errno.ENOTCONN else "accessible"
    return "accessible" if is_answered else "unresponsive"
