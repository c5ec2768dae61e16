"""Functions that start child processes, wait for them and end them."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

__all__ = [
    "TIMEOUT",
    "child_ids",
    "child_processes",
    "end",
    "lasting",
    "lasting_processes",
    "output_of",
    "run_together",
    "running",
    "wait_for_event",
    "wait_until",
]

TIMEOUT = 240.0
"""The time limit of a wait in seconds. It is long enough for a loaded machine, and shorter than the time limit of a
test, whose failure does not name the condition.
"""

POLL_SECONDS = 0.01


@contextmanager
def running(command: Sequence[str | os.PathLike[str]], **options: Any) -> Iterator[subprocess.Popen[Any]]:
    """Start a process. Afterwards it is killed if it still runs, waited for, and its pipes are closed."""
    process = subprocess.Popen(list(map(os.fspath, command)), **options)
    try:
        yield process
    finally:
        end(process)


def output_of(
    command: Sequence[str | os.PathLike[str]], *, cwd: str | Path | None, env: Mapping[str, str]
) -> str:
    """Run a program without input and return what it prints. Raises AssertionError with its messages if it fails."""
    done = subprocess.run(
        list(map(str, command)),
        cwd=cwd,
        env=env,
        capture_output=True,
        text=True,
        check=False,
        timeout=TIMEOUT,
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def end(process: subprocess.Popen[Any]) -> None:
    """Kill a process if it still runs, wait for it, and close its pipes."""
    process.kill()
    process.wait()
    for pipe in (process.stdin, process.stdout, process.stderr):
        if pipe is not None:
            with suppress(OSError):
                pipe.close()


def wait_until(condition: Callable[[], object], process: subprocess.Popen[Any]) -> None:
    """Wait until a condition is true. Raises AssertionError at once if the process exits before."""
    while not condition():
        with suppress(subprocess.TimeoutExpired):
            process.wait(POLL_SECONDS)
            if condition():
                return
            raise AssertionError(f"{process.args!r} exited with {process.returncode}")


def wait_for_event(event: threading.Event, process: subprocess.Popen[Any]) -> None:
    """Wait for an event. Raises AssertionError at once if the process exits before."""
    wait_until(event.is_set, process)


def run_together(program: str, arguments: Sequence[Sequence[object]]) -> None:
    """Run Python code in one process for each list of arguments, and wait for all processes.

    The code must print ``ready`` and then read a line. The processes get the line when all are ready.
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
"""Processes that several tests share. The fixture that starts them ends them."""


@contextmanager
def lasting() -> Iterator[None]:
    """Allow the processes that are started in this context to outlive the test."""
    before = child_processes()
    try:
        yield
    finally:
        lasting_processes.update(child_processes().keys() - before.keys())


def child_ids() -> set[int]:
    """Return the process ids of the child processes. This is quick, because it is called before and after each test."""
    found: set[int] = set()
    with suppress(OSError):
        for task in os.listdir("/proc/self/task"):
            with suppress(OSError), open(f"/proc/self/task/{task}/children", "rb") as file:
                found.update(map(int, file.read().split()))
    return found


def child_processes() -> dict[tuple[int, str], str]:
    """Return the child processes with their commands, by (process id, start time).

    Processes that have exited but were not waited for are included. The result is empty without ``/proc``.
    """
    commands: dict[tuple[int, str], str] = {}
    for task in Path("/proc/self/task").glob("*/children"):
        with suppress(OSError):
            for pid in task.read_text().split():
                with suppress(OSError):
                    stat = Path(f"/proc/{pid}/stat").read_text(errors="replace")
                    command = (
                        Path(f"/proc/{pid}/cmdline")
                        .read_bytes()
                        .replace(b"\0", b" ")
                        .decode(errors="replace")
                    )
                    name, _, rest = stat.rpartition(")")
                    fields = rest.split()
                    commands[int(pid), fields[19]] = (
                        command.strip() or f"{name.partition('(')[2]} (has exited)"
                    )
    return commands
