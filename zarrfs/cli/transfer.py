"""What the commands that copy have in common: their options, a progress bar, and words for an interruption."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import click

from zarrfs.cli.console import safe
from zarrfs.cli.values import SizeType, storage_option
from zarrfs.tools.copying.advice import command_line
from zarrfs.tools.copying.reports import CopyReport

__all__ = ["copy_options", "progress_bar", "say_lines"]

F = TypeVar("F", bound=Callable[..., Any])

INCOMPLETE = 3
"""The exit code of a copy that lacks members because of --skip-broken."""

INTERRUPTED = 130
MAX_LINES = 40


def copy_options(function: F) -> F:
    """Add the options of all commands that copy."""
    for option in reversed(
        (
            click.option(
                "--if-exists",
                type=click.Choice(["raise", "replace", "skip", "resume"]),
                default="raise",
                show_default=True,
                help="What to do about what is at the destination; resume goes on with an interrupted copy.",
            ),
            click.option("--verify", is_flag=True, help="Read both afterwards and compare."),
            click.option("--dry-run", is_flag=True, help="Say what would be done; change nothing."),
            click.option(
                "--skip-broken",
                is_flag=True,
                help="Leave out members that cannot be copied, name them, and exit with 3; otherwise that is an error.",
            ),
            click.option(
                "--memory",
                type=SizeType(),
                default=256 << 20,
                help="Memory for decoded values on each thread, such as 1GiB. Default: 256MiB.",
            ),
            click.option(
                "--dask",
                metavar="ADDRESS",
                help="Copy on the Dask cluster of the scheduler at this address, such as tcp://host:8786.",
            ),
            storage_option,
        )
    ):
        function = option(function)
    return function


@contextmanager
def progress_bar() -> Iterator[Callable[[str, int, int], object] | None]:
    """Yield what shows progress on a terminal; None where there is none. Ctrl-C says how to go on. Within, messages
    name the options of the command.
    """
    try:
        with command_line(), _bar() as show:
            yield show
    except KeyboardInterrupt:
        click.echo("zarrfs: stopped; give the same command with --if-exists resume to go on", err=True)
        raise SystemExit(INTERRUPTED) from None


@contextmanager
def _bar() -> Iterator[Callable[[str, int, int], object] | None]:
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        tasks: dict[str, Any] = {}
        lock = threading.Lock()

        def show(name: str, done: int, total: int) -> None:
            with lock:
                if name not in tasks:
                    tasks[name] = bar.add_task(safe(name), total=total)
            bar.update(tasks[name], completed=done, visible=done < total)

        yield show


def say_lines(lines: Sequence[str], dry_run: bool) -> None:
    """Print what was done, or would be. Exits with 3 when something is missing from a copy."""
    for line in lines[:MAX_LINES]:
        click.echo(("would be " if dry_run else "") + safe(line))
    if len(lines) > MAX_LINES:
        click.echo(f"... and {len(lines) - MAX_LINES} more")
    missing = lines.missing if isinstance(lines, CopyReport) else {}
    for path, reason in missing.items():
        click.echo(f"zarrfs: left out: {safe(path)}: {safe(reason)}", err=True)
    if missing:
        raise SystemExit(INCOMPLETE)
