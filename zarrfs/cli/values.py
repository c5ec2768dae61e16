"""What is typed -> values: sizes, shapes, compressors, formats, options for URLs."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import click

__all__ = [
    "SizeType",
    "allows_external",
    "compression",
    "format_name",
    "lengths",
    "storage_option",
    "storage_options",
]

F = TypeVar("F", bound=Callable[..., Any])

EXTERNAL = "allow_external"


def storage_option(function: F) -> F:
    """Add the options of all commands that take a location; ``storage_options`` reads them."""
    add_external = click.option(
        "--allow-external",
        is_flag=True,
        expose_value=False,
        callback=_note_external,
        help="Also read what the data name outside themselves: links, references to other hosts and files.",
    )
    add_storage = click.option(
        "--storage-option",
        "storage",
        multiple=True,
        metavar="KEY=VALUE",
        help="For URLs, as fsspec has it; durable=true for files.",
    )
    return add_storage(add_external(function))


def _note_external(context: click.Context, parameter: click.Parameter, value: bool) -> None:
    if value:
        context.meta[EXTERNAL] = True


UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}


class SizeType(click.ParamType):  # type: ignore[type-arg]  # generic only to newer versions of click
    """A number of bytes: ``0``, ``500M``, ``2GiB``."""

    name = "size"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, int):
            return value
        match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]?)(?:i?b)?\s*", str(value), re.IGNORECASE)
        if match is None:
            self.fail(f"{value!r} is no size; expected a number of bytes such as 500M or 2GiB", param, ctx)
        return int(float(match[1]) * UNITS[match[2].lower()])


def allows_external() -> bool:
    """Return whether ``--allow-external`` was given to the command that runs."""
    context = click.get_current_context(silent=True)
    return context is not None and bool(context.meta.get(EXTERNAL))


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
    if allows_external():
        options[EXTERNAL] = True
    return options or None
