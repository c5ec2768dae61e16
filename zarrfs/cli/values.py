"""Parsing of command line values: sizes, shapes, compressors, formats, and storage options."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import click

from zarrfs.text import short_repr

__all__ = [
    "SizeType",
    "allows_external",
    "document_option",
    "parse_axis_names",
    "parse_compressor",
    "parse_format",
    "parse_numbers",
    "parse_shape",
    "parse_storage_options",
    "storage_option",
]

F = TypeVar("F", bound=Callable[..., Any])

EXTERNAL = "allow_external"


def storage_option(function: F) -> F:
    """Add the options of all commands that take a location. ``parse_storage_options`` parses them."""
    add_external = click.option(
        "--allow-external",
        is_flag=True,
        expose_value=False,
        callback=_note_external,
        help="Follow references in the data to other hosts and files, and links that lead out of the store.",
    )
    add_storage = click.option(
        "--storage-option",
        "storage",
        multiple=True,
        metavar="KEY=VALUE",
        help="An fsspec option for a URL (objects as JSON); durable=true for files. Repeatable.",
    )
    return add_storage(add_external(function))


def _note_external(context: click.Context, parameter: click.Parameter, value: bool) -> None:
    if value:
        context.meta[EXTERNAL] = True


INTEGER_PATTERN = r"[0-9]{1,18}"
"""A non-negative integer that fits into 64 bits."""

UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}


class SizeType(click.ParamType):  # type: ignore[type-arg]  # generic only to newer versions of click
    """A number of bytes such as ``0``, ``500M`` or ``2GiB``, at least ``minimum``."""

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
                f"{short_repr(value)} is not a size; expected a number of bytes such as 500M or 2GiB",
                param,
                ctx,
            )
        size = int(float(match[1]) * UNITS[match[2].lower()])
        if size < self.minimum:
            self.fail(f"{value!r} is too small; expected at least {self.minimum} byte", param, ctx)
        return size


document_option = click.option(
    "--max-document",
    type=SizeType(minimum=1),
    default=None,
    help="Reject larger metadata documents. Default: $ZARRFS_MAX_DOCUMENT, or 64M if it is not set.",
)
"""The option of commands that read metadata. Its value is passed to ``Access``."""


def allows_external() -> bool:
    """Return whether ``--allow-external`` was given to the current command."""
    context = click.get_current_context(silent=True)
    return context is not None and bool(context.meta.get(EXTERNAL))


def parse_shape(text: str | None) -> Any:
    """Parse a chunk or shard shape: ``64``, ``1,256,256``, ``auto`` or ``none``. -1 means the whole dimension."""
    if text is None or text in ("auto", "none"):
        return False if text == "none" else text
    try:
        values = tuple(int(part) for part in text.replace("x", ",").split(","))
    except ValueError:
        raise click.BadParameter(
            f"{short_repr(text)} is not a shape; expected integers such as 64 or 1,256,256"
        ) from None
    return values[0] if len(values) == 1 else values


def parse_axis_names(text: str) -> list[str]:
    """Parse the names of dimensions: ``czyx`` or ``c,z,y,x``."""
    return [name.strip() for name in text.split(",")] if "," in text else list(text)


def parse_numbers(text: str, integers: bool = False) -> list[float]:
    """Parse numbers separated by commas."""
    try:
        return [(int if integers else float)(part) for part in text.split(",")]
    except ValueError:
        expected = "integers such as 1,2,2" if integers else "numbers such as 1,0.5,0.5"
        raise click.BadParameter(f"{short_repr(text)}: expected {expected}") from None


def parse_format(text: str | None) -> int | str | None:
    """Parse the name of a format."""
    return int(text) if text is not None and re.fullmatch(INTEGER_PATTERN, text) else text


def parse_compressor(text: str | None) -> Any:
    """Parse a compressor such as ``zstd``, ``gzip:5``, ``blosc`` or ``none``."""
    if text is None or text in ("none", "auto"):
        return text
    name, colon, level = text.partition(":")
    if colon and not re.fullmatch(INTEGER_PATTERN, level):
        raise click.BadParameter(
            f"{short_repr(text)} is not a compressor; expected a name, or a name and a level such as gzip:5"
        )
    if name in ("blosc",):
        return "auto"
    return {
        "name": name,
        "configuration": {"level": int(level)} if colon else DEFAULT_CONFIGURATIONS.get(name, {}),
    }


DEFAULT_CONFIGURATIONS: dict[str, dict[str, Any]] = {
    "zstd": {"level": 3, "checksum": False},
    "gzip": {"level": 5},
}


def parse_storage_options(pairs: Sequence[str]) -> dict[str, Any] | None:
    """Parse KEY=VALUE pairs to a dictionary.

    The values true, false and integers are converted, and a value that begins with { or [ is JSON: options such as
    ``client_kwargs`` of s3fs are dictionaries.
    """
    options: dict[str, Any] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals:
            # The text may be a password, so the message does not repeat it.
            raise click.BadParameter("a --storage-option has no '='; expected KEY=VALUE")
        options[key] = _parse_storage_value(key, value)
    if allows_external():
        options[EXTERNAL] = True
    return options or None


def _parse_storage_value(key: str, value: str) -> Any:
    booleans = {"true": True, "false": False}
    if value.lower() in booleans:
        return booleans[value.lower()]
    if re.fullmatch(INTEGER_PATTERN, value):
        return int(value)
    if value.startswith(("{", "[")):
        try:
            return json.loads(value)
        except (ValueError, RecursionError) as error:
            # The value may contain a password, so the message does not repeat it.
            raise click.BadParameter(f"the value of {short_repr(key)} is not valid JSON: {error}") from None
    return value
