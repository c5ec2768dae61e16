"""The command line options for new arrays: one description of each, for all commands, and the parsing of its values."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import click

from zarrfs.cli.values import INTEGER_PATTERN
from zarrfs.errors import ZarrError
from zarrfs.text import short_repr

__all__ = ["CompressorType", "FormatType", "ShapeType", "creation_option"]

F = TypeVar("F", bound=Callable[..., Any])

WHOLE_DIMENSION = -1

DEFAULT_CONFIGURATIONS: dict[str, dict[str, Any]] = {
    "zstd": {"level": 3, "checksum": False},
    "gzip": {"level": 5},
    "blosc": {"cname": "zstd", "shuffle": "shuffle", "blocksize": 0},
}

LEVELS = {"blosc": "clevel", "numcodecs.lz4": "acceleration", "numcodecs.lzma": "preset"}
"""The names of the parameter that a level sets, by codec; "level" for others."""


class FormatType(click.Choice):  # type: ignore[type-arg]  # generic only to newer versions of click
    """The name of a format that can be written, converted to the ``zarr_format`` of the library."""

    def __init__(self) -> None:
        super().__init__(["2", "3", "n5", "draft2019"])

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        name = super().convert(value, param, ctx)
        return int(name) if name.isdecimal() else name


class ShapeType(click.ParamType):  # type: ignore[type-arg]  # generic only to newer versions of click
    """A chunk or shard shape: ``64``, ``1,256,256``, ``auto`` or ``none``. -1 means the whole dimension.

    With ``may_name_dimensions`` also sizes of named dimensions: ``time=30,lat=2``, which become a dictionary.
    """

    name = "shape"

    def __init__(self, *, may_name_dimensions: bool = False) -> None:
        self.may_name_dimensions = may_name_dimensions

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not isinstance(value, str):
            return value
        if value in ("auto", "none"):
            return False if value == "none" else value
        if "=" in value and self.may_name_dimensions:
            return self._named_sizes(value, param, ctx)
        try:
            sizes = tuple(int(part) for part in value.replace("x", ",").split(","))
        except ValueError:
            sizes = (0,)
        if any(size < 1 and size != WHOLE_DIMENSION for size in sizes):
            self.fail(
                f"{short_repr(value)} is not a shape; expected positive integers such as 64 or 1,256,256",
                param,
                ctx,
            )
        return sizes[0] if len(sizes) == 1 else sizes

    def _named_sizes(
        self, text: str, param: click.Parameter | None, ctx: click.Context | None
    ) -> dict[str, int]:
        sizes: dict[str, int] = {}
        for part in text.split(","):
            name, _, number = (word.strip() for word in part.rpartition("="))
            size = self.convert(number, param, ctx) if number.lstrip("-").isdecimal() else None
            if not name or not isinstance(size, int) or name in sizes:
                self.fail(
                    f"{short_repr(text)} are not sizes of dimensions; expected names and sizes such as time=30,lat=2",
                    param,
                    ctx,
                )
            sizes[name] = size
        return sizes


class CompressorType(click.ParamType):  # type: ignore[type-arg]  # generic only to newer versions of click
    """A compressor such as ``zstd``, ``gzip:5``, ``lz4`` or ``none``. The names are those of v3 and of numcodecs."""

    name = "codec"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not isinstance(value, str) or value in ("none", "auto"):
            return value
        from zarrfs.engine.codecs.base import BytesBytesCodec
        from zarrfs.engine.codecs.registry import PREFIX, codec_class, codec_from_json

        name, colon, level = value.partition(":")
        if colon and not re.fullmatch(INTEGER_PATTERN, level):
            self.fail(
                f"{short_repr(value)} is not a compressor; expected a name, or a name and a level such as gzip:5",
                param,
                ctx,
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
                {**compressor, "configuration": {**configuration, **required}}, short_repr(value)
            )
            if not isinstance(codec, BytesBytesCodec):
                self.fail(
                    f"{short_repr(name)} is not a compressor; expected one such as zstd or gzip", param, ctx
                )
            codec.check_encoding()
        except ZarrError as error:
            self.fail(str(error), param, ctx)
        return compressor


class CreationOption(NamedTuple):
    """An option for new arrays. ``parameter`` is the option of the library that it sets."""

    parameter: str
    type: click.ParamType  # type: ignore[type-arg]
    help: str


OPTIONS = {
    "zarr_format": CreationOption("zarr_format", FormatType(), "The Zarr format of new arrays."),
    "chunks": CreationOption(
        "chunks", ShapeType(), "The chunk shape: 64, 1,256,256, or auto. -1 means the whole dimension."
    ),
    "named chunks": CreationOption(
        "chunks",
        ShapeType(may_name_dimensions=True),
        "The chunk shape: 64, 1,256,256, or auto, or sizes along named dimensions: time=30,lat=2. "
        "-1 means the whole dimension.",
    ),
    "shards": CreationOption("shards", ShapeType(), "The shard shape (format 3), auto, or none."),
    "compressors": CreationOption(
        "compressors", CompressorType(), "The compression, such as zstd, gzip:5, blosc, or none."
    ),
}


def creation_option(
    name: str, *flags: str, condition: str = "", default: str = "", required: bool = False
) -> Callable[[F], F]:
    """Return the option ``name`` of ``OPTIONS`` for a command, which receives its value as the library expects it.

    ``flags`` are its names on the command line. ``condition`` precedes the help text (``With --rw``), and ``default``
    states what holds without the option.
    """
    option = OPTIONS[name]
    text = f"{condition}: {option.help[0].lower()}{option.help[1:]}" if condition else option.help
    if default:
        text += f" Default: {default}."
    # Without a parameter of its own an option has the name of that of the library.
    names = flags if any(not flag.startswith("-") for flag in flags) else (*flags, option.parameter)
    return click.option(*names, type=option.type, required=required, help=text)
