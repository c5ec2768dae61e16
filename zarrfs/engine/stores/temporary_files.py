"""Names of files that are being written, and which of them were left behind by writers that were killed.

A value is written to a file beside its place and renamed over it; a writer that is killed (or whose machine stops)
leaves that file. Its name says who wrote it: ``.zarrfs-writing-MACHINE-PROCESS-START-NUMBER``, where MACHINE stands
for this boot of this machine (and the process numbers of this container), PROCESS and START for one process of it. So
nobody ever makes the same name, and that a writer is dead is known for sure where MACHINE is ours. Files of other
machines, of which nobody here knows what lives, count as left behind when they were not changed for a day and nobody
holds a lock on them (``hold``): a value takes moments to write, and who takes longer holds one.
"""

from __future__ import annotations

import fcntl
import hashlib
import itertools
import os
import stat
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from functools import cache

__all__ = [
    "TEMPORARY_PREFIX",
    "create_temporary",
    "find_abandoned",
    "hold",
    "is_abandoned",
    "remove_abandoned",
    "sync_directory",
]

TEMPORARY_PREFIX = ".zarrfs-writing-"

CREATE_FLAGS = os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)

MAX_ATTEMPTS = 100
"""How often a directory is made again that others remove meanwhile."""

DAY_SECONDS = 24 * 60 * 60

_numbers = itertools.count()
_own: tuple[int, str] = (-1, "")
"""This process's number, and how its names begin; a fork changes both."""


def create_temporary(directory: str, access: int = os.O_WRONLY) -> tuple[int, str]:
    """Return descriptor and path of a new file, with the permissions that new files have; makes the directory if need
    be. ``tempfile`` does the same with many more steps, and permissions that must then be undone.
    """
    attempts = 0
    while True:
        temporary = f"{directory}/{_prefix()}{next(_numbers):x}"
        try:
            return os.open(temporary, access | CREATE_FLAGS, 0o666), temporary
        except FileNotFoundError:
            # Perhaps again and again: others remove a directory when they delete its last file.
            attempts += 1
            try:
                os.makedirs(directory, exist_ok=True)
            except (
                FileNotFoundError,
                FileExistsError,
            ):  # The latter when it goes just after it was found there.
                if attempts == MAX_ATTEMPTS:
                    raise
        except FileExistsError:
            continue


def _prefix() -> str:
    global _own
    process = os.getpid()
    if _own[0] != process:
        _own = process, f"{TEMPORARY_PREFIX}{_machine()}-{process:x}-{_start_of(process) or 0:x}-"
    return _own[1]


def hold(fd: int) -> None:
    """Lock a file for as long as it stays open, so that its age is not taken for neglect by other machines."""
    with suppress(OSError):  # Not every file system has locks.
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)


def sync_directory(directory: str) -> None:
    """Wait until the names in a directory have reached the disk."""
    fd = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


# -- what is left behind ---------------------------------------------------------------------------------------


def find_abandoned(directory: str) -> Iterator[str]:
    """Yield the paths of files in a directory and below it that killed writers left behind. Follows no links."""
    pending = [directory]
    while pending:
        with suppress(OSError), os.scandir(pending.pop()) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    pending.append(entry.path)
                elif is_abandoned(entry.path):
                    yield entry.path


def remove_abandoned(directory: str) -> None:
    """Remove the files right in a directory, not below it, that killed writers left behind."""
    with suppress(OSError), os.scandir(directory) as entries:
        for entry in entries:
            if is_abandoned(entry.path):
                with suppress(OSError):  # Another one may be at it too.
                    os.unlink(entry.path)


def is_abandoned(path: str) -> bool:
    """Tell whether a file is one that was being written by somebody who is gone."""
    name = os.path.basename(path)
    if not name.startswith(TEMPORARY_PREFIX):
        return False
    parts = name.removeprefix(TEMPORARY_PREFIX).split("-")
    if len(parts) == 4 and parts[0] == _machine():
        with suppress(ValueError):
            return not _process_alive(int(parts[1], 16), int(parts[2], 16))
    try:
        found = os.lstat(path)
    except OSError:
        return False
    return stat.S_ISREG(found.st_mode) and time.time() - found.st_mtime > DAY_SECONDS and not _is_held(path)


def _is_held(path: str) -> bool:
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
def _machine() -> str:
    """Return what tells apart the machines, boots and containers whose process numbers mean different processes."""
    known = [os.uname().nodename if hasattr(os, "uname") else sys.platform]
    with suppress(OSError):
        if os.readlink("/proc/self") != str(os.getpid()):
            # The numbers there are not those that this process knows: then nothing can be told of others.
            known.append(os.urandom(8).hex())
    with suppress(OSError), open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
        known.append(file.read())
    with suppress(OSError):
        known.append(os.readlink("/proc/self/ns/pid"))
    return hashlib.sha256("\n".join(known).encode()).hexdigest()[:12]


def _process_alive(process: int, start: int) -> bool:
    """Tell whether a process of this machine still runs, and is not another one that got its number."""
    found = _start_of(process)
    # A process of somebody else may be hidden, but it answers.
    return found == start if found is not None else os.name != "posix" or _answers(process)


def _start_of(process: int) -> int | None:
    """Return when a process began, in ticks since the boot (proc(5)); -1 for one that ended and was not yet waited
    for, None where there is none or no way to know.
    """
    try:
        with open(f"/proc/{process}/stat", "rb") as file:
            text = file.read()
    except OSError:
        return None
    # The name of the program, in parentheses, may hold anything.
    fields = text[text.rindex(b")") + 1 :].split()
    return -1 if fields[0] in (b"Z", b"X") else int(fields[19])


def _answers(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True
