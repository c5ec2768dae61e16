"""Names of new nodes that exist because of another name.

A program that copies a tree writes each of its files. The first file of an array creates the array with all its names,
and a directory is created with its document. The other files are written later.
"""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from contextlib import suppress

__all__ = ["ImpliedNames"]

MAX_IMPLIED_NAMES = 100_000

EXCLUSIVE_PROGRAMS = ("cp", "mv", "install")
"""The programs of coreutils create each file of a directory that they created with O_EXCL, without looking for it."""

EXTRACTING_PROGRAMS = ("tar", "bsdtar", "cpio", "unzip")
"""Programs that write the files of a tree in the order of an archive, also to a directory that exists."""

RECURSIVE_OPTIONS = ("--recursive", "--archive")
RECURSIVE_LETTERS = frozenset("rRa")
"""The options of cp that copy directories, in the order of their entries, also to a directory that exists."""

NO_PROCESS = -1


class ImpliedNames:
    """The paths of files that were implied when their nodes were created. Thread-safe.

    With each path the process is kept that created the node, until the file is written. The number of a process is 0 if
    it is not known. Only the last ``MAX_IMPLIED_NAMES`` are kept.
    """

    def __init__(self) -> None:
        self._processes: OrderedDict[str, int] = OrderedDict()
        self._lock = threading.Lock()

    def __contains__(self, path: str) -> bool:
        return path in self._processes

    def add(self, path: str, process: int) -> None:
        """Add a file of a node that a process created."""
        with self._lock:
            self._processes[path] = process
            if len(self._processes) > MAX_IMPLIED_NAMES:
                self._processes.popitem(last=False)

    def is_implied_by(self, path: str, process: int) -> bool:
        """Return whether a process created the node of a file that was not written since."""
        return process > 0 and self._processes.get(path) == process

    def is_filled_by(self, path: str, process: int) -> bool:
        """Return whether a process that writes a file to a directory seems to copy a tree to it."""
        if self.is_implied_by(path, process):
            return True
        program, *arguments = _command(process)
        if program == "cp":
            return any(map(_is_recursive, arguments))
        return program in EXTRACTING_PROGRAMS

    def is_absent_for(self, path: str, process: int) -> bool:
        """Return whether a program that creates files with O_EXCL must not find a file, because it implied it."""
        return self.is_implied_by(path, process) and _command(process)[0] in EXCLUSIVE_PROGRAMS

    def mark_written(self, path: str) -> None:
        """Note that a file was written. It remains a file of a new node."""
        with self._lock:
            if path in self._processes:
                self._processes[path] = NO_PROCESS

    def discard(self, prefix: str) -> None:
        """Forget the paths that begin with ``prefix``, whose nodes are removed or renamed."""
        with self._lock:
            for path in [path for path in self._processes if path.startswith(prefix)]:
                del self._processes[path]


def _is_recursive(argument: str) -> bool:
    """Return whether an argument of cp is an option that copies directories, possibly among other letters."""
    if argument.startswith("--") or not argument.startswith("-"):
        return argument in RECURSIVE_OPTIONS
    return not RECURSIVE_LETTERS.isdisjoint(argument)


def _command(process: int) -> list[str]:
    """Return the name of the program that a process executes, or an empty string, and its arguments."""
    with suppress(OSError), open(f"/proc/{process}/cmdline", "rb") as file:
        program, *arguments = os.fsdecode(file.read()).split("\0")
        return [os.path.basename(program), *arguments]
    return [""]
