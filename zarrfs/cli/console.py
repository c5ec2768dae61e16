"""Output of the commands: tables, properties, JSON, progress, and messages of the library."""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import Iterable, Sequence
from typing import Any

import click

from zarrfs.text import safe_text

__all__ = [
    "print_attributes",
    "print_json",
    "print_lines",
    "print_properties",
    "print_table",
    "progress",
    "readable_bytes",
    "safe",
    "safe_message",
    "with_command_options",
]

UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")

UNIT_FACTOR = 1024

MAX_LINE = 4000
"""The maximum length of a line of text output in characters."""

MAX_CELL = 300
"""The maximum length of a table cell in characters."""

MAX_LINES = 2000
"""The maximum number of lines of attributes in text output. JSON output is complete."""

KEYWORD = re.compile(r"(?<![\w.\-/'\"])([a-z]\w*)=('[^']*'|True|False|None)(?: \(--[a-z-]+\))?")
"""A keyword argument in a message of the library, and the same as an option of a command if the message has both."""

OPTION = re.compile(r"\boption ([a-z]\w*)\b")

OUTPUT_BUFFER_LENGTH = 1 << 16

OUTPUT_SECONDS = 0.1


def safe(text: str, limit: int = MAX_LINE) -> str:
    """Return text from a store as one printable line of at most ``limit`` characters. See ``safe_text``."""
    return safe_text(text, limit)


def with_command_options(text: str, command: click.Command) -> str:
    """Return a message of the library with the options of the command as they are typed.

    The library names keyword arguments. ``if_exists='skip'`` becomes ``--if-exists skip``, ``verify=True`` becomes
    ``--verify``, and ``option dtype`` becomes ``option --dtype``. Other names are unchanged.
    """
    options = {p.name: max(p.opts, key=len) for p in command.params if isinstance(p, click.Option)}

    def keyword(match: re.Match[str]) -> str:
        if match[1] not in options:
            return match[0]
        value = {"True": "", "False": " none", "None": " none"}.get(match[2], f" {match[2][1:-1]}")
        return options[match[1]] + value

    text = KEYWORD.sub(keyword, text)
    return OPTION.sub(lambda match: f"option {options.get(match[1], match[1])}", text)


def safe_message(text: str) -> str:
    """Return a message of the library as one printable line, with the options of the command that runs."""
    context = click.get_current_context(silent=True)
    return safe(text if context is None else with_command_options(text, context.command))


def readable_bytes(nbytes: int | float) -> str:
    """Return a size with a binary unit, such as ``3.2 MiB``."""
    value = float(nbytes)
    for unit in UNITS:
        if value < UNIT_FACTOR or unit == UNITS[-1]:
            return f"{int(value)} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= UNIT_FACTOR
    raise ValueError(nbytes)


def print_json(value: Any) -> None:
    """Print strict JSON incrementally. The indented text of large attributes is much larger than the values."""
    lines: list[str] = []
    nbytes = 0
    for fragment in json.JSONEncoder(indent=2, allow_nan=False).iterencode(value):
        lines.append(fragment)
        nbytes += len(fragment)
        if nbytes > OUTPUT_BUFFER_LENGTH:
            click.echo("".join(lines), nl=False)
            lines, nbytes = [], 0
    click.echo("".join(lines))


def print_lines(lines: Iterable[str]) -> None:
    """Print lines with few writes. A line waits for others for at most ``OUTPUT_SECONDS`` before it is printed, unless
    the next one takes longer.
    """
    waiting: list[str] = []
    nbytes = 0
    flushed = time.monotonic()
    try:
        for line in lines:
            waiting.append(line)
            nbytes += len(line)
            if nbytes > OUTPUT_BUFFER_LENGTH or time.monotonic() - flushed > OUTPUT_SECONDS:
                click.echo("\n".join(waiting))
                waiting, nbytes, flushed = [], 0, time.monotonic()
    finally:
        if waiting:
            click.echo("\n".join(waiting))


def print_attributes(attributes: dict[str, Any]) -> None:
    """Print attributes as indented JSON, at most MAX_LINES lines. Nothing is printed if there are none."""
    if not attributes:
        return
    click.echo("\n" + click.style("attributes", fg="cyan"))
    text = ""
    count = 0
    for fragment in json.JSONEncoder(indent=2, ensure_ascii=False).iterencode(attributes):
        *lines, text = (text + fragment).split("\n")
        for line in lines:
            click.echo(safe(line))
        count += len(lines)
        if count >= MAX_LINES:
            click.echo("... (truncated; --json prints all attributes)")
            return
    click.echo(safe(text))


def print_properties(properties: Iterable[tuple[str, str | list[str]]]) -> None:
    """Print names and values in two columns. The lines of a multi-line value are aligned."""
    rows = [(name, value if isinstance(value, list) else [value]) for name, value in properties]
    width = max((len(name) for name, _ in rows), default=0)
    for name, lines in rows:
        click.echo(f"{click.style(name.ljust(width), fg='cyan')}  {safe(lines[0])}")
        for line in lines[1:]:
            click.echo(f"{'':{width}}  {safe(line)}")


def print_table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print rows in aligned columns."""
    cells = [[safe(cell, MAX_CELL) for cell in row] for row in rows]
    widths = [max(len(row[i]) for row in [list(header), *cells]) for i in range(len(header))]
    line = "  ".join(name.ljust(width) for name, width in zip(header, widths, strict=True)).rstrip()
    click.echo(click.style(line, fg="cyan"))
    for row in cells:
        click.echo("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


def progress(items: Iterable[Any], description: str) -> Iterable[Any]:
    """Yield the items. If standard error is a terminal, a counter is displayed there."""
    if not sys.stderr.isatty():
        yield from items
        return
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.description} {task.completed:,}"), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(description, total=None)
        for count, item in enumerate(items):
            if count % 1000 == 0:
                bar.update(task, completed=count)
            yield item
