"""Parsing of command line values: sizes, shapes, compressors, formats, and storage options."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import click

from zarrfs.engine.formats.json_document import LIMIT_VARIABLE
from zarrfs.errors import ZarrError
from zarrfs.text import short_repr

__all__ = [
    "MountedPath",
    "SizeType",
    "allows_external",
    "document_option",
    "location_options",
    "parse_axis_names",
    "parse_chunks",
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


def _note_external(context: click.Context, parameter: click.Parameter, value: bool) -> None:
    if value:
        context.meta[EXTERNAL] = True


WHOLE_DIMENSION = -1

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


def parse_shape(text: str | None, option: str) -> Any:
    """Parse a chunk or shard shape: ``64``, ``1,256,256``, ``auto`` or ``none``. -1 means the whole dimension.

    ``option`` is the name of the option, for messages.
    """
    if text is None or text in ("auto", "none"):
        return False if text == "none" else text
    try:
        values = tuple(int(part) for part in text.replace("x", ",").split(","))
    except ValueError:
        values = (0,)
    if any(value < 1 and value != WHOLE_DIMENSION for value in values):
        raise _bad_value(
            option, f"{short_repr(text)} is not a shape; expected positive integers such as 64 or 1,256,256"
        )
    return values[0] if len(values) == 1 else values


def parse_chunks(text: str | None, option: str) -> Any:
    """Parse a chunk shape as ``parse_shape`` does, or sizes of named dimensions: ``time=30,lat=2``."""
    if text is None or "=" not in text:
        return parse_shape(text, option)
    sizes: dict[str, int] = {}
    for part in text.split(","):
        name, _, number = (word.strip() for word in part.rpartition("="))
        size = parse_shape(number, option) if number.lstrip("-").isdecimal() else None
        if not name or not isinstance(size, int) or name in sizes:
            raise _bad_value(
                option,
                f"{short_repr(text)} are not sizes of dimensions; expected names and sizes such as time=30,lat=2",
            )
        sizes[name] = size
    return sizes


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


def parse_format(text: str | None) -> int | str | None:
    """Parse the name of a format."""
    return int(text) if text is not None and re.fullmatch(INTEGER_PATTERN, text) else text


def parse_compressor(text: str | None, option: str) -> Any:
    """Parse a compressor such as ``zstd``, ``gzip:5``, ``lz4`` or ``none``.

    Names are those of codecs of v3 and of numcodecs. ``option`` is the name of the option, for messages.
    """
    if text is None or text in ("none", "auto"):
        return text
    from zarrfs.engine.codecs.base import BytesBytesCodec
    from zarrfs.engine.codecs.registry import PREFIX, codec_class, codec_from_json

    name, colon, level = text.partition(":")
    if colon and not re.fullmatch(INTEGER_PATTERN, level):
        raise _bad_value(
            option,
            f"{short_repr(text)} is not a compressor; expected a name, or a name and a level such as gzip:5",
        )
    if name == "blosc" and not colon:
        return "auto"
    if codec_class(name) is None and codec_class(PREFIX + name) is not None:
        name = PREFIX + name
    configuration = {**DEFAULT_CONFIGURATIONS.get(name, {})}
    if colon:
        configuration[LEVELS.get(name, "level")] = int(level)
    compressor = {"name": name, "configuration": configuration}
    # Blosc requires the size of elements, which creating an array adds.
    required = {"typesize": 1} if name == "blosc" else {}
    try:
        codec = codec_from_json(
            {**compressor, "configuration": {**configuration, **required}}, short_repr(text)
        )
        if not isinstance(codec, BytesBytesCodec):
            raise _bad_value(
                option, f"{short_repr(name)} is not a compressor; expected one such as zstd or gzip"
            )
        codec.check_encoding()
    except ZarrError as error:
        raise _bad_value(option, str(error)) from None
    return compressor


DEFAULT_CONFIGURATIONS: dict[str, dict[str, Any]] = {
    "zstd": {"level": 3, "checksum": False},
    "gzip": {"level": 5},
    "blosc": {"cname": "zstd", "shuffle": "shuffle", "blocksize": 0},
}

LEVELS = {"blosc": "clevel", "numcodecs.lz4": "acceleration", "numcodecs.lzma": "preset"}
"""The names of the parameter that a level sets, by codec; "level" for others."""


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
