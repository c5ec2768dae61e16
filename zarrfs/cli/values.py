"""What is typed -> values: sizes, shapes, compressors, formats, options for URLs."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import click

from zarrfs.text import short_repr

__all__ = [
    "SizeType",
    "allows_external",
    "compression",
    "document_option",
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


WHOLE = r"[0-9]{1,18}"
"""A whole number that is typed."""

UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}


class SizeType(click.ParamType):  # type: ignore[type-arg]  # generic only to newer versions of click
    """A number of bytes: ``0``, ``500M``, ``2GiB``; at least ``minimum``."""

    name = "size"

    def __init__(self, minimum: int = 0) -> None:
        self.minimum = minimum

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, int):
            return value
        pattern = r"\s*(\d{1,18}(?:\.\d{1,18})?)\s*([kmgt]?)(?:i?b)?\s*"
        match = re.fullmatch(pattern, str(value), re.IGNORECASE | re.ASCII)
        if match is None:
            self.fail(
                f"{short_repr(value)} is no size; expected a number of bytes such as 500M or 2GiB", param, ctx
            )
        size = int(float(match[1]) * UNITS[match[2].lower()])
        if size < self.minimum:
            self.fail(f"{value!r} is too small; expected at least {self.minimum} byte", param, ctx)
        return size


document_option = click.option(
    "--max-document",
    type=SizeType(minimum=1),
    default=None,
    help="Refuse metadata documents larger than this, such as 256M. Default: 64M, or $ZARRFS_MAX_DOCUMENT.",
)
"""The option of commands that read metadata; ``Access`` takes it."""


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
        raise click.BadParameter(
            f"{short_repr(text)} is no shape; expected numbers such as 64 or 1,256,256"
        ) from None
    return values[0] if len(values) == 1 else values


def format_name(text: str | None) -> int | str | None:
    """Return a format as typed."""
    return int(text) if text is not None and re.fullmatch(WHOLE, text) else text


def compression(text: str | None) -> Any:
    """Return a compressor as typed: ``zstd``, ``gzip:5``, ``blosc``, ``none``."""
    if text is None or text in ("none", "auto"):
        return text
    name, colon, level = text.partition(":")
    if colon and not re.fullmatch(WHOLE, level):
        raise click.BadParameter(
            f"{short_repr(text)} is no compressor; expected a name, or a name and level such as gzip:5"
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
            raise click.BadParameter(f"{short_repr(pair)}: expected KEY=VALUE")
        words: dict[str, Any] = {"true": True, "false": False}
        options[key] = words.get(value.lower(), int(value) if re.fullmatch(WHOLE, value) else value)
    if allows_external():
        options[EXTERNAL] = True
    return options or None
