"""How the commands show things: tables and trees on a terminal, plain text and JSON elsewhere."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from typing import Any

import click

from zarrfs.text import safe_text as safe

__all__ = [
    "print_attributes",
    "print_facts",
    "print_json",
    "print_table",
    "progress",
    "readable_bytes",
    "safe",
]

UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")

STEP = 1024

MAX_LINE = 4000
"""The longest line of text for people, in characters."""

MAX_CELL = 300
"""The longest cell of a table, in characters."""

MAX_LINES = 2000
"""The most lines of attributes for people. JSON output is complete."""

BLOCK = 1 << 16


def readable_bytes(nbytes: int | float) -> str:
    """Return a size as people read it: ``3.2 MiB``."""
    value = float(nbytes)
    for unit in UNITS:
        if value < STEP or unit == UNITS[-1]:
            return f"{int(value)} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= STEP
    raise ValueError(nbytes)


def print_json(value: Any) -> None:
    """Print strict JSON, piece by piece: the indented text of large attributes is much larger than they are."""
    lines: list[str] = []
    nbytes = 0
    for piece in json.JSONEncoder(indent=2, allow_nan=False).iterencode(value):
        lines.append(piece)
        nbytes += len(piece)
        if nbytes > BLOCK:
            click.echo("".join(lines), nl=False)
            lines, nbytes = [], 0
    click.echo("".join(lines))


def print_attributes(attributes: dict[str, Any]) -> None:
    """Print attributes as indented JSON, at most MAX_LINES lines of it; nothing where there are none."""
    if not attributes:
        return
    click.echo("\n" + click.style("attributes", fg="cyan"))
    text = ""
    count = 0
    for piece in json.JSONEncoder(indent=2, ensure_ascii=False).iterencode(attributes):
        *lines, text = (text + piece).split("\n")
        for line in lines:
            click.echo(safe(line, MAX_LINE))
        count += len(lines)
        if count >= MAX_LINES:
            click.echo("... (there is more; --json prints all attributes)")
            return
    click.echo(safe(text, MAX_LINE))


def print_facts(facts: Iterable[tuple[str, str | list[str]]]) -> None:
    """Print names and values in two columns; a value of several lines stays in its column."""
    rows = [(name, value if isinstance(value, list) else [value]) for name, value in facts]
    width = max((len(name) for name, _ in rows), default=0)
    for name, lines in rows:
        click.echo(f"{click.style(name.ljust(width), fg='cyan')}  {safe(lines[0], MAX_LINE)}")
        for line in lines[1:]:
            click.echo(f"{'':{width}}  {safe(line, MAX_LINE)}")


def print_table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print rows in columns as wide as they need to be."""
    cells = [[safe(cell, MAX_CELL) for cell in row] for row in rows]
    widths = [max(len(row[i]) for row in [list(header), *cells]) for i in range(len(header))]
    line = "  ".join(name.ljust(width) for name, width in zip(header, widths, strict=True)).rstrip()
    click.echo(click.style(line, fg="cyan"))
    for row in cells:
        click.echo("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


def progress(items: Iterable[Any], what: str) -> Iterable[Any]:
    """Yield the items; on a terminal a counter is shown on standard error while it takes long."""
    if not sys.stderr.isatty():
        yield from items
        return
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.description} {task.completed:,}"), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=None)
        for count, item in enumerate(items):
            if count % 1000 == 0:
                bar.update(task, completed=count)
            yield item
