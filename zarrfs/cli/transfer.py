"""What the commands that copy have in common: their options, a progress bar, and words for an interruption."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import click

from zarrfs.cli.console import safe
from zarrfs.cli.mount import SizeType

__all__ = [
    "compression",
    "copy_options",
    "format_name",
    "lengths",
    "progress_bar",
    "say_lines",
    "storage_options",
]

F = TypeVar("F", bound=Callable[..., Any])

INTERRUPTED = 130
MOST_LINES = 40


def lengths(text: str | None) -> Any:
    """Return a chunk or shard shape as typed: ``64`` or ``1,256,256`` or ``auto``; -1 for a whole dimension."""
    if text is None or text in ("auto", "none"):
        return False if text == "none" else text
    try:
        values = tuple(int(part) for part in text.replace("x", ",").split(","))
    except ValueError:
        raise click.BadParameter(f"{text!r} is no shape; expected numbers such as 64 or 1,256,256") from None
    return values[0] if len(values) == 1 else values


def format_name(text: str | None) -> int | str | None:
    """Return a format as typed."""
    return int(text) if text is not None and text.isdigit() else text


def compression(text: str | None) -> Any:
    """Return a compressor as typed: ``zstd``, ``gzip:5``, ``blosc``, ``none``."""
    if text is None or text in ("none", "auto"):
        return text
    name, colon, level = text.partition(":")
    if colon and not level.isdigit():
        raise click.BadParameter(
            f"{text!r} is no compressor; expected a name, or a name and level such as gzip:5"
        )
    if name in ("blosc",):
        return "auto"
    return {"name": name, "configuration": {"level": int(level)} if colon else DEFAULTS.get(name, {})}


DEFAULTS: dict[str, dict[str, Any]] = {"zstd": {"level": 3, "checksum": False}, "gzip": {"level": 5}}


def storage_options(given: Sequence[str]) -> dict[str, Any] | None:
    """Return KEY=VALUE pairs as a dictionary; true, false and whole numbers are taken for what they say."""
    options: dict[str, Any] = {}
    for pair in given:
        key, equals, value = pair.partition("=")
        if not equals:
            raise click.BadParameter(f"{pair!r}: expected KEY=VALUE")
        words: dict[str, Any] = {"true": True, "false": False}
        options[key] = words.get(value.lower(), int(value) if value.isdigit() else value)
    return options or None


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
                "--memory",
                type=SizeType(),
                default=256 << 20,
                help="Memory for decoded values on each thread, such as 1GiB. Default: 256MiB.",
            ),
            click.option(
                "--storage-option",
                "storage",
                multiple=True,
                metavar="KEY=VALUE",
                help="For URLs, as fsspec has it.",
            ),
        )
    ):
        function = option(function)
    return function


@contextmanager
def progress_bar() -> Iterator[Callable[[str, int, int], object] | None]:
    """Yield what shows progress on a terminal; None where there is none. Ctrl-C says how to go on."""
    try:
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
    except KeyboardInterrupt:
        click.echo("zarrfs: stopped; give the same command with --if-exists resume to go on", err=True)
        raise SystemExit(INTERRUPTED) from None


def say_lines(lines: Sequence[str], dry_run: bool) -> None:
    """Print what was done, or would be."""
    for line in lines[:MOST_LINES]:
        click.echo(("would be " if dry_run else "") + safe(line))
    if len(lines) > MOST_LINES:
        click.echo(f"... and {len(lines) - MOST_LINES} more")
