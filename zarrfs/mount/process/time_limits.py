"""Programs that are abandoned after a time limit: a system call on a mount whose server hangs may never return."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress

__all__ = ["access_mount", "run_with_limit"]

END_SECONDS = 1.0
"""A killed process is waited for this long. It cannot end while its request is being served."""

_abandoned: list[subprocess.Popen[bytes]] = []
"""Processes that had not ended, in order to collect their status later."""

_lock = threading.Lock()

ACCESS = """
import os, sys
function, path = sys.argv[1:]
try:
    if function == "read":
        with open(path, "rb") as file:
            data = file.read()
    else:
        os.statvfs(path)
        data = b""
    number = 0
except OSError as error:
    data, number = b"", error.errno
sys.stdout.buffer.write(str(number).encode() + b"\\n" + data)
"""
"""A program that calls ``statvfs`` of a path or reads a file. It imports nothing from outside the standard library."""


def run_with_limit(command: Sequence[str], seconds: float) -> subprocess.CompletedProcess[bytes] | None:
    """Run a program with messages in English. Return None if it has not ended after ``seconds``; it is then killed.

    A program that cannot be killed at once is left behind: a process in a system call on a mount ends with the call,
    and a process that waits for it would hang too. This includes the exit of a process with a thread in such a call.
    """
    with _lock:
        _abandoned[:] = [process for process in _abandoned if process.poll() is None]
    process = subprocess.Popen(
        list(command),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "LC_ALL": "C"},
    )
    assert process.stdout is not None
    assert process.stderr is not None
    with process.stdout, process.stderr:
        try:
            output, error = process.communicate(timeout=seconds)
            return subprocess.CompletedProcess(process.args, process.returncode, output, error)
        except BaseException as error:
            process.kill()
            with suppress(subprocess.TimeoutExpired):
                process.wait(END_SECONDS)
            if process.returncode is None:
                with _lock:
                    _abandoned.append(process)
            if isinstance(error, subprocess.TimeoutExpired):
                return None
            raise


def access_mount(path: str, seconds: float, *, reads: bool = False) -> bytes | None:
    """Access a path of a mount: read the file (``reads``), otherwise call statvfs, which the kernel always passes on.

    Return the bytes, or None if the mount has not responded after ``seconds``. Raises OSError.
    """
    function = "read" if reads else "statvfs"
    done = run_with_limit([sys.executable, "-I", "-S", "-c", ACCESS, function, path], seconds)
    if done is None:
        return None
    first, separator, data = done.stdout.partition(b"\n")
    if done.returncode or not separator:
        raise OSError(f"the process that accesses it failed: {done.stderr.decode(errors='replace').strip()}")
    if number := int(first):
        raise OSError(number, os.strerror(number))
    return data
