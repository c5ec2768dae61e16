"""The progress of a command on a terminal: a bar for each array, and a line for each worker of a Dask cluster."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from typing import Any

import click

from zarrfs.cli.console import readable_bytes, safe
from zarrfs.tools.copying.cluster.results import Statistics

__all__ = ["ProgressDisplay", "progress_bar", "worker_lines"]

INTERRUPTED_STATUS = 130

MAX_WORKERS = 16
"""The maximum number of workers that are displayed while a command runs."""


class ProgressDisplay:
    """Displays progress; the callbacks of the functions of ``zarrfs.tools``. They display nothing if standard error is
    not a terminal.
    """

    def __init__(self) -> None:
        self._bar: Any = None
        self._tasks: dict[str, Any] = {}
        self._lock = threading.Lock()

    @contextmanager
    def shown(self) -> Iterator[None]:
        """Display the progress within the context."""
        if not sys.stderr.isatty():
            yield
            return
        with _new_bar() as self._bar:
            yield

    def show(self, name: str, done: int, total: int) -> None:
        """Show the progress of an array or a step. See ``Progress``."""
        if self._bar is None:
            return
        with self._lock:
            if name not in self._tasks:
                self._tasks[name] = self._bar.add_task(safe(name), total=total)
        self._bar.update(self._tasks[name], completed=done, visible=done < total)

    def show_workers(self, statistics: Statistics) -> None:
        """Show the throughput of workers. See ``WorkerProgress``."""
        if self._bar is None:
            return
        lines = list(islice(worker_lines(statistics), MAX_WORKERS))
        if len(statistics) > MAX_WORKERS:
            lines.append(f"and {len(statistics) - MAX_WORKERS} more workers")
        self._bar.lines = lines


@contextmanager
def progress_bar(resume: str | None = "with --if-exists resume") -> Iterator[ProgressDisplay]:
    """Yield a display of the progress.

    Ctrl-C prints how to resume, and exits. ``resume`` names the options for it, or is None if the command begins again.
    """
    display = ProgressDisplay()
    try:
        with display.shown():
            yield display
    except KeyboardInterrupt:
        hint = "" if resume is None else f"; run the same command {resume} to continue"
        click.echo(f"zarrfs: interrupted{hint}", err=True)
        raise SystemExit(INTERRUPTED_STATUS) from None


def worker_lines(workers: Statistics) -> Iterator[str]:
    """Yield a line with the throughput of each worker."""
    for address, worker in sorted(workers.items()):
        yield (
            f"worker {safe(address)}: {worker.tasks} tasks, {readable_bytes(round(worker.nbytes))} in "
            f"{worker.seconds:.1f} s, {readable_bytes(round(worker.rate))} per second"
        )


def _new_bar() -> Any:
    """Return a display with a bar for each task, and lines of text below them. Importing rich takes some time."""
    from rich.console import Console, RenderableType
    from rich.progress import (
        BarColumn,
        DownloadColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
        TransferSpeedColumn,
    )
    from rich.text import Text

    class Bar(Progress):
        lines: list[str] = []  # noqa: RUF012 - replaced, never changed

        def get_renderables(self) -> Iterator[RenderableType]:
            yield from super().get_renderables()
            yield from map(Text, self.lines)

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
    )
    return Bar(*columns, console=Console(stderr=True), transient=True)
