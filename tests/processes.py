"""Child processes of the tests: started, waited for and ended, whatever happens in between."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

__all__ = [
    "TIMEOUT",
    "child_processes",
    "end",
    "lasting",
    "lasting_processes",
    "run_together",
    "running",
    "wait_for_event",
    "wait_until",
]

TIMEOUT = 240.0
"""Seconds after which a wait has failed. It only bounds a hang, so it is long enough for any loaded machine, and
shorter than the time limit of a test, which would not say what was waited for.
"""

POLL_SECONDS = 0.01


@contextmanager
def running(command: Sequence[str | os.PathLike[str]], **options: Any) -> Iterator[subprocess.Popen[Any]]:
    """Start a process; kill it at the end if it still runs, wait for it, and close its pipes."""
    process = subprocess.Popen(list(map(os.fspath, command)), **options)
    try:
        yield process
    finally:
        end(process)


def end(process: subprocess.Popen[Any]) -> None:
    """Kill a process if it still runs, wait for it, and close its pipes."""
    process.kill()
    process.wait()
    for pipe in (process.stdin, process.stdout, process.stderr):
        if pipe is not None:
            with suppress(OSError):
                pipe.close()


def wait_until(condition: Callable[[], object], process: subprocess.Popen[Any]) -> None:
    """Wait until a condition holds that a process brings about. Fails at once when the process ends before."""
    while not condition():
        with suppress(subprocess.TimeoutExpired):
            process.wait(POLL_SECONDS)
            if condition():
                return
            raise AssertionError(f"{process.args} ended with {process.returncode}")


def wait_for_event(event: threading.Event, process: subprocess.Popen[Any]) -> None:
    """Wait for an event that a process brings about. Fails at once when the process ends before."""
    wait_until(event.is_set, process)


def run_together(program: str, arguments: Sequence[Sequence[object]]) -> None:
    """Run the text of a program once with each list of arguments, and wait for all.

    The program prints ``ready`` and reads a line. All get the line when all are ready.
    """
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", program, *map(str, own)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for own in arguments
    ]
    try:
        for process in processes:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
        for process in processes:
            assert process.stdin is not None
            process.stdin.write("go\n")
            process.stdin.flush()
        for process in processes:
            process.communicate()
            assert process.returncode == 0
    finally:
        for process in processes:
            end(process)


lasting_processes: set[tuple[int, str]] = set()
"""Children that are shared by several tests: whoever starts them ends them later."""


@contextmanager
def lasting() -> Iterator[None]:
    """Within, a child that is started may outlive the test, as a server that several tests share."""
    before = child_processes()
    try:
        yield
    finally:
        lasting_processes.update(child_processes().keys() - before.keys())


def child_processes() -> dict[tuple[int, str], str]:
    """Return the children of this process, ended ones that nobody waited for among them: (id, start time) -> command.

    Empty where the system does not list them.
    """
    found: dict[tuple[int, str], str] = {}
    for task in Path("/proc/self/task").glob("*/children"):
        with suppress(OSError):
            for number in task.read_text().split():
                with suppress(OSError):
                    stat = Path(f"/proc/{number}/stat").read_text(errors="replace")
                    command = (
                        Path(f"/proc/{number}/cmdline")
                        .read_bytes()
                        .replace(b"\0", b" ")
                        .decode(errors="replace")
                    )
                    name, _, rest = stat.rpartition(")")
                    fields = rest.split()
                    found[int(number), fields[19]] = (
                        command.strip() or f"{name.partition('(')[2]} (has ended)"
                    )
    return found
