"""Parsing of command line values: sizes, numbers, names of dimensions, and storage options."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import click

from zarrfs.engine.formats.json_document import LIMIT_VARIABLE
from zarrfs.text import short_repr

__all__ = [
    "MountedPath",
    "SizeType",
    "allows_external",
    "document_option",
    "location_options",
    "message_option",
    "parse_axis_names",
    "parse_numbers",
    "parse_storage_options",
    "storage_option",
]

F = TypeVar("F", bound=Callable[..., Any])

EXTERNAL = "allow_external"
MESSAGE = "message"
"""Names of storage options that have an option of their own."""


def storage_option(function: F) -> F:
    """Add the options of stores. ``parse_storage_options`` parses them."""
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


def message_option(function: F) -> F:
    """Add the message of a commit. ``parse_storage_options`` adds it to the storage options."""
    return click.option(
        "--message",
        expose_value=False,
        callback=_note_message,
        metavar="TEXT",
        help="The message of the snapshot, if the destination is a branch of an Icechunk repository.",
    )(function)


def _note_message(context: click.Context, parameter: click.Parameter, value: str | None) -> None:
    if value is not None:
        context.meta[MESSAGE] = value


def _note_external(context: click.Context, parameter: click.Parameter, value: bool) -> None:
    if value:
        context.meta[EXTERNAL] = True


INTEGER_PATTERN = r"[0-9]{1,18}"
"""A non-negative integer that fits into 64 bits."""

SIZE_PATTERN = r"(\d{1,18}(?:\.\d{1,18})?)\s*([kmgt]?)(?:i?b)?"
"""A number of bytes, with a unit."""

UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}


class MountedPath(click.Path):
    """A path that may lie in a mount. It is not accessed: a mount may hang, and a stale one cannot be read."""

    def convert(
        self,
        value: str | os.PathLike[str],
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> str:
        return os.fspath(value)


class SizeType(click.ParamType):  # type: ignore[type-arg]  # generic only to newer versions of click
    """A number of bytes such as ``0``, ``500M`` or ``2GiB``, at least ``minimum``."""

    name = "size"

    def __init__(self, minimum: int = 0) -> None:
        self.minimum = minimum

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, int):
            return value
        match = re.fullmatch(SIZE_PATTERN, str(value).strip(), re.IGNORECASE | re.ASCII)
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


def document_option(**settings: Any) -> Callable[[F], F]:
    """Return the option of commands that read metadata, with these settings of click."""
    return click.option(
        "--max-document",
        type=SizeType(minimum=1),
        default=None,
        help="Reject larger metadata documents. Default: $ZARRFS_MAX_DOCUMENT, or 64M if it is not set.",
        **settings,
    )


def location_options(function: F) -> F:
    """Add the options of commands that open locations: those of ``storage_option``, and ``--max-document``.

    The limit of documents applies to the process while the command runs.
    """
    return document_option(expose_value=False, callback=_set_document_limit)(storage_option(function))


def _set_document_limit(context: click.Context, parameter: click.Parameter, value: int | None) -> None:
    if value is None:
        return
    previous = os.environ.get(LIMIT_VARIABLE)

    def restore() -> None:
        if previous is None:
            os.environ.pop(LIMIT_VARIABLE, None)
        else:
            os.environ[LIMIT_VARIABLE] = previous

    # Threads and processes that the command starts use the variable too.
    os.environ[LIMIT_VARIABLE] = str(value)
    context.call_on_close(restore)


def allows_external() -> bool:
    """Return whether ``--allow-external`` was given to the current command."""
    context = click.get_current_context(silent=True)
    return context is not None and bool(context.meta.get(EXTERNAL))


def _bad_value(option: str, message: str) -> click.BadParameter:
    return click.BadParameter(message, param_hint=f"'{option}'")


def parse_axis_names(text: str) -> list[str]:
    """Parse the names of dimensions: ``czyx`` or ``c,z,y,x``."""
    return [name.strip() for name in text.split(",")] if "," in text else list(text)


def parse_numbers(text: str, option: str, *, integers: bool = False) -> list[float]:
    """Parse numbers separated by commas. ``option`` is the name of the option, for messages."""
    try:
        return [(int if integers else float)(part) for part in text.split(",")]
    except ValueError:
        expected = "integers such as 1,2,2" if integers else "numbers such as 1,0.5,0.5"
        raise _bad_value(option, f"expected {expected}, found {short_repr(text)}") from None


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
    context = click.get_current_context(silent=True)
    message = None if context is None else context.meta.get(MESSAGE)
    if message is not None:
        options[MESSAGE] = message
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
