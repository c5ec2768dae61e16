"""``zarrfs edit``: change the attributes and the OME-NGFF metadata of a node."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from typing import Any

import click

from zarrfs.cli.console import safe
from zarrfs.cli.values import location_options, parse_numbers, parse_storage_options
from zarrfs.errors import OptionError
from zarrfs.ngff import editing as ngff
from zarrfs.text import short_repr
from zarrfs.tools.editing.editing import Edit, edit
from zarrfs.tools.editing.image_edits import axis_edit, channel_edit, placement_edit
from zarrfs.tools.editing.pointers import with_value, without_value

__all__ = ["command"]


class _OrderedEditCommand(click.Command):
    """A command that records the order of its edits."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        # Values of one option do not contain those of the others: the parser returns the order of all.
        _, _, order = self.make_parser(ctx).parse_args(args=list(args))
        ctx.meta["order"] = [parameter.name for parameter in order]
        return super().parse_args(ctx, args)


def _edit_option(name: str, metavar: str, help_text: str) -> Callable[[Any], Any]:
    return click.option(name, multiple=True, metavar=metavar, help=help_text)


@click.command(cls=_OrderedEditCommand, short_help="Change attributes and OME-NGFF metadata.")
@click.argument("location")
@_edit_option(
    "--set", "NAME=VALUE", "Set an attribute. A VALUE that is not valid JSON is stored as a string."
)
@_edit_option("--delete", "NAME", "Delete an attribute.")
@_edit_option("--image-name", "NAME", "The name of the image.")
@_edit_option("--channel-name", "CHANNEL=NAME", "The name of a channel.")
@_edit_option("--channel-color", "CHANNEL=RRGGBB", "The colour of a channel.")
@_edit_option("--contrast", "CHANNEL=START,END", "The contrast limits of a channel.")
@_edit_option("--channel-active", "CHANNEL=yes|no", "Whether a channel is initially displayed.")
@_edit_option("--axis-name", "AXIS=NAME", "The name of an axis.")
@_edit_option("--unit", "AXIS=UNIT", "The unit of an axis, such as micrometer. An empty value removes it.")
@_edit_option(
    "--orientation",
    "AXIS=DIRECTION",
    "The anatomical direction of an axis, such as left-to-right. An empty value removes it.",
)
@_edit_option(
    "--scale",
    "AXIS=SIZE",
    "The pixel size of level 0. Other levels are scaled by the same factor.",
)
@_edit_option(
    "--affine",
    "SYSTEM=ROWS",
    "The affine transformation of the image to another coordinate system (0.6), as rows: 1,0,0,5;0,1,0,7;0,0,1,9.",
)
@_edit_option(
    "--place",
    "IMAGE=ROWS",
    "Place the image at the path IMAGE in the scene of the group (0.6), by an affine transformation.",
)
@click.option("--dry-run", is_flag=True, help="Show the difference, write nothing.")
@click.option("--no-check", is_flag=True, help="Do not check the OME-NGFF metadata before writing.")
@location_options
def command(location: str, dry_run: bool, no_check: bool, storage: tuple[str, ...], **values: Any) -> None:
    """Change the attributes of the group or array at LOCATION, and show the difference.

    NAME is the name of an attribute, or a JSON pointer such as /ome/omero/channels/0/label. CHANNEL and AXIS are
    numbers from 0, or names. All edits are applied in the given order and written at once.

    ROWS has one row for each axis of the system, with one number for each axis of the image and the translation.
    --place adds a scene to a group without OME-NGFF metadata.

    OME-NGFF metadata (since 0.4) are checked before they are written. An edit that makes them invalid is refused.
    Consolidated metadata that contain the node are updated.

    Exit codes: 0 success; 1 error; 2 incorrect usage.

    \b
    Examples:
      zarrfs edit image.ome.zarr --channel-name 0=DAPI --channel-color 0=0000FF --contrast 0=100,4000
      zarrfs edit image.ome.zarr --scale x=0.65 --scale y=0.65 --unit x=micrometer --dry-run
      zarrfs edit brain.ome.zarr --orientation x=left-to-right --orientation y=anterior-to-posterior
      zarrfs edit scene.zarr --place 'tile0=1,0,0;0,1,0' --place 'tile1=1,0,0;0,1,348'
      zarrfs edit experiment.zarr/run1 --set 'temperature=310.5' --set '/instrument/lens=20x' --delete draft
    """
    report = edit(
        location,
        _edits(click.get_current_context().meta["order"], values),
        dry_run=dry_run,
        check=not no_check,
        storage_options=parse_storage_options(storage),
    )
    for line in report.diff:
        click.echo(safe(line))
    for message in report.messages:
        click.echo(safe(f"{message.tier}: {message.pointer or '/'}: {message.message}"), err=True)
    if not report.diff:
        click.echo("nothing to change")
    elif dry_run:
        click.echo("nothing was written (--dry-run)")
    for group in report.consolidated:
        click.echo(f"the consolidated metadata of {safe(group)} were updated")


def _edits(order: list[str], values: dict[str, tuple[str, ...]]) -> list[Edit]:
    """Return the edits in the order of the command line."""
    remaining = {name: list(texts) for name, texts in values.items()}
    edits = [_edit(name, remaining[name].pop(0)) for name in order if remaining.get(name)]
    if not edits:
        raise click.UsageError("no edit was given, such as --set NAME=VALUE")
    return edits


def _edit(name: str, text: str) -> Edit:
    option = f"--{name.replace('_', '-')}"
    if name == "delete":
        return lambda attributes, node: without_value(attributes, text)
    if name == "image_name":
        return lambda attributes, node: ngff.with_image_name(attributes, text)
    key, separator, value = text.partition("=")
    if not separator or not key:
        raise OptionError(f"{option}: expected a name, = and a value, found {short_repr(text)}")
    if name == "set":
        parsed = _json(value)
        return lambda attributes, node: with_value(attributes, key, parsed)
    if name == "affine":
        rows = _rows(option, value)
        return lambda attributes, node: ngff.with_affine(attributes, key, rows)
    if name == "place":
        return placement_edit(key, _rows(option, value))
    if name in ("axis_name", "unit", "orientation", "scale"):
        changes: dict[str, Any] = {
            "axis_name": lambda attributes, axis: ngff.with_axis_name(attributes, axis, value),
            "unit": lambda attributes, axis: ngff.with_axis_unit(attributes, axis, value),
            "orientation": lambda attributes, axis: ngff.with_axis_orientation(attributes, axis, value),
            "scale": partial(_with_scale, option, value),
        }
        return axis_edit(changes[name], key)
    changes = {
        "channel_name": lambda attributes, channel: ngff.with_channel_label(attributes, channel, value),
        "channel_color": partial(_with_color, option, value),
        "contrast": partial(_with_contrast, option, value),
        "channel_active": partial(_with_active, option, value),
    }
    return channel_edit(changes[name], key)


def _json(text: str) -> Any:
    """Return the value of a JSON text, or the text itself. NaN and Infinity are not JSON, although Python reads and
    writes them: other programs could not read the document.
    """
    try:
        value = json.loads(text)
        json.dumps(value, allow_nan=False)
    except ValueError:
        return text
    return value


def _with_scale(option: str, text: str, attributes: Any, axis: int) -> dict[str, Any]:
    return ngff.with_pixel_size(attributes, axis, _floats(option, text, 1)[0])


def _with_color(option: str, text: str, attributes: Any, channel: int) -> dict[str, Any]:
    digits = text.removeprefix("#")
    try:
        red, green, blue = bytes.fromhex(digits)
    except ValueError:
        raise OptionError(f"{option}: expected six hexadecimal digits, found {short_repr(text)}") from None
    return ngff.with_channel_color(attributes, channel, (red, green, blue))


def _with_contrast(option: str, text: str, attributes: Any, channel: int) -> dict[str, Any]:
    start, end = _floats(option, text, 2)
    return ngff.with_channel_window(attributes, channel, start, end)


def _with_active(option: str, text: str, attributes: Any, channel: int) -> dict[str, Any]:
    if text not in ("yes", "no"):
        raise OptionError(f"{option}: expected yes or no, found {short_repr(text)}")
    return ngff.with_channel_active(attributes, channel, text == "yes")


def _rows(option: str, text: str) -> tuple[tuple[float, ...], ...]:
    return tuple(tuple(float(value) for value in parse_numbers(row, option)) for row in text.split(";"))


def _floats(option: str, text: str, count: int) -> list[float]:
    values = parse_numbers(text, option)
    if len(values) != count:
        raise OptionError(
            f"{option}: expected {count} {'number' if count == 1 else 'numbers'}, found {short_repr(text)}"
        )
    return [int(value) if float(value).is_integer() else value for value in values]
