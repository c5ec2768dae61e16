"""Creation of temporary files, and recognition of temporary files that were abandoned by killed writers.

A value is written to a temporary file in the same directory, which is renamed over the target. A writer that is killed
leaves this file. Its name identifies the writer: ``.zarrfs-writing-MACHINE-PROCESS-START-NUMBER``. MACHINE identifies
the machine, its boot and its process id namespace. PROCESS and START are the id and the start time of the process.
The names are therefore unique, and whether a writer of this machine is alive is known reliably.

For files of other machines this is unknown. They count as abandoned if they were not modified for a day and nobody
holds a lock on them (``lock_file``). Writing a value takes much less time; writers that take longer hold a lock.
"""

from __future__ import annotations

import fcntl
import itertools
import os
import stat
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from enum import Enum
from functools import cache

__all__ = [
    "TEMPORARY_PREFIX",
    "Owner",
    "create_temporary",
    "find_abandoned",
    "is_abandoned",
    "lock_file",
    "owned_name",
    "owner",
    "remove_abandoned",
    "sync_directory",
    "unique_prefix",
]

TEMPORARY_PREFIX = ".zarrfs-writing-"

CREATE_FLAGS = os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)

MAX_CREATE_ATTEMPTS = 100
"""How often a directory is created again if other writers remove it."""

MAX_UNLOCKED_AGE_SECONDS = 24 * 60 * 60

_numbers = itertools.count()
_cached_prefix: tuple[int, str] = (-1, "")
"""The process id and the prefix of the names of its files. Both are different after a fork."""


def create_temporary(directory: str, access: int = os.O_WRONLY) -> tuple[int, str]:
    """Create a file with the default permissions, and its directory if needed. Return its descriptor and its path.

    ``tempfile`` is not used, because it is slower and sets other permissions.
    """
    attempts = 0
    while True:
        temporary = f"{directory}/{_prefix()}{next(_numbers):x}"
        try:
            return os.open(temporary, access | CREATE_FLAGS, 0o666), temporary
        except FileNotFoundError:
            # This can happen repeatedly: other writers remove a directory when they delete its last file.
            attempts += 1
            try:
                os.makedirs(directory, exist_ok=True)
            except (
                FileNotFoundError,
                FileExistsError,
            ):  # FileExistsError: the directory was removed after ``makedirs`` had found it.
                if attempts == MAX_CREATE_ATTEMPTS:
                    raise
        except FileExistsError:
            continue


class Owner(Enum):
    """What is known of the process that a temporary name identifies."""

    RUNNING = "running"
    GONE = "gone"
    OTHER_MACHINE = "other machine"


def owned_name(prefix: str) -> str:
    """Return a name that begins with ``prefix`` and identifies this process. No other call returns it."""
    return f"{prefix}{unique_prefix().removeprefix(TEMPORARY_PREFIX).rstrip('.')}"


def owner(name: str, prefix: str) -> Owner | None:
    """Return the state of the process that a name with this prefix identifies; None if it identifies none.

    The four parts that identify it can be followed by others.
    """
    parts = name.removeprefix(prefix).split("-")
    if not name.startswith(prefix) or len(parts) < 4:
        return None
    try:
        process, start = int(parts[1], 16), int(parts[2], 16)
    except ValueError:
        return None
    if parts[0] != _machine_id():
        return Owner.OTHER_MACHINE
    return Owner.RUNNING if _process_alive(process, start) else Owner.GONE


def unique_prefix() -> str:
    """Return the beginning of names of temporary files that no other call in this process returns."""
    return f"{_prefix()}{next(_numbers):x}."


def _prefix() -> str:
    global _cached_prefix
    process = os.getpid()
    if _cached_prefix[0] != process:
        _cached_prefix = (
            process,
            f"{TEMPORARY_PREFIX}{_machine_id()}-{process:x}-{_process_start_time(process) or 0:x}-",
        )
    return _cached_prefix[1]


def lock_file(fd: int) -> None:
    """Lock a file until it is closed, so that other machines do not take it for abandoned."""
    with suppress(OSError):  # Not every file system supports locks.
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)


def sync_directory(directory: str) -> None:
    """Wait until the entries of a directory have reached the disk. Raises OSError."""
    fd = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


# -- abandoned files -------------------------------------------------------------------------------------------


def find_abandoned(directory: str) -> Iterator[str]:
    """Yield the paths of all abandoned files below a directory. Links are not followed."""
    pending = [directory]
    while pending:
        with suppress(OSError), os.scandir(pending.pop()) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    pending.append(entry.path)
                elif is_abandoned(entry.path):
                    yield entry.path


def remove_abandoned(directory: str) -> None:
    """Remove the abandoned files in a directory, not in its subdirectories."""
    with suppress(OSError), os.scandir(directory) as entries:
        for entry in entries:
            if is_abandoned(entry.path):
                with suppress(OSError):  # Another process may have removed it.
                    os.unlink(entry.path)


def is_abandoned(path: str) -> bool:
    """Return whether a file is a temporary file of a writer that no longer runs."""
    name = os.path.basename(path)
    if not name.startswith(TEMPORARY_PREFIX):
        return False
    state = owner(name, TEMPORARY_PREFIX)
    if state in (Owner.RUNNING, Owner.GONE):
        return state is Owner.GONE
    try:
        status = os.lstat(path)
    except OSError:
        return False
    age = time.time() - status.st_mtime
    return stat.S_ISREG(status.st_mode) and age > MAX_UNLOCKED_AGE_SECONDS and not _is_locked(path)


def _is_locked(path: str) -> bool:
    try:
        fd = os.open(path, os.O_RDWR)
    except OSError:
        return True
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    finally:
        os.close(fd)
    return False


@cache
def _machine_id() -> str:
    """Return an identifier of the machine, its boot and its process id namespace."""
    parts = [os.uname().nodename if hasattr(os, "uname") else sys.platform]
    with suppress(OSError):
        if os.readlink("/proc/self") != str(os.getpid()):
            # /proc belongs to another process id namespace, so other processes cannot be looked up there.
            parts.append(os.urandom(8).hex())
    with suppress(OSError), open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
        parts.append(file.read())
    with suppress(OSError):
        parts.append(os.readlink("/proc/self/ns/pid"))
    import hashlib  # loads OpenSSL

    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:12]


def _process_alive(process: int, start: int) -> bool:
    """Return whether a process of this machine still runs. A later process with the same id does not count."""
    start_now = _process_start_time(process)
    if start_now is not None:
        return start_now == start
    # The /proc entry of another user's process can be hidden. The process can still be found by a signal.
    return os.name != "posix" or _process_exists(process)


def _process_start_time(process: int) -> int | None:
    """Return the start time of a process in clock ticks since the boot (proc(5)).

    Returns -1 for a zombie, and None if the process does not exist or its start time is not available.
    """
    try:
        with open(f"/proc/{process}/stat", "rb") as file:
            text = file.read()
    except OSError:
        return None
    # The name of the program is in parentheses and can contain any character.
    fields = text[text.rindex(b")") + 1 :].split()
    return -1 if fields[0] in (b"Z", b"X") else int(fields[19])


def _process_exists(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True
