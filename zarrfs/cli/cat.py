"""``zarrfs cat``: write the values of an array to standard output or a file."""

from __future__ import annotations

import os
import sys

import click

import zarrfs
from zarrfs.cli.values import location_options, parse_storage_options
from zarrfs.errors import LocationError, SelectionError
from zarrfs.files.output_files import new_file
from zarrfs.tools.output.selections import parse_selection, resolve, split_location
from zarrfs.tools.output.writers import FORMATS, write_values

__all__ = ["command"]


@click.command(short_help="Write the values of an array.")
@click.argument("location")
@click.option(
    "--as",
    "output_format",
    type=click.Choice(FORMATS),
    default="npy",
    show_default=True,
    help="The output format.",
)
@click.option("--output", "-o", metavar="FILE", help="Write to this new file instead of standard output.")
@location_options
def command(location: str, output_format: str, output: str | None, storage: tuple[str, ...]) -> None:
    """Write the values of the array at LOCATION, or a part of them: LOCATION[SELECTION].

    SELECTION has an index or a slice with a positive step for each dimension, as in NumPy: [3, 10:20, ::2, ...]. Only
    the chunks that it needs are read, and written part by part.

    csv needs at most two dimensions. raw has the elements in C order. tiff needs --output and the package tifffile.

    \b
    Examples:
      zarrfs cat "image.zarr/0[0, 10:20]" > part.npy
      zarrfs cat "table.zarr[:100]" --as csv
      zarrfs cat "image.zarr/0[5]" --as tiff -o plane.tif
    """
    # A name with brackets at its end is a location.
    place, text = (location, "") if os.path.lexists(location) else split_location(location)
    try:
        items = parse_selection(text)
    except SelectionError as error:
        raise click.UsageError(str(error)) from error
    array = zarrfs.open_array(place, mode="r", storage_options=parse_storage_options(storage))
    with array:
        selection = resolve(items, array.shape)
        if output is None:
            if output_format == "tiff":
                raise click.UsageError("--as tiff needs --output")
            if output_format != "csv" and sys.stdout.isatty():
                raise click.UsageError(
                    f"{output_format} is binary; redirect the output, or use --output or --as csv"
                )
            stream = sys.stdout.buffer
            write_values(array, selection, stream, output_format)  # type: ignore[arg-type]  # a choice
            stream.flush()
            return
        if os.path.lexists(output):
            raise LocationError(f"{output} exists; choose another name")
        with new_file(output, replace=False) as file:
            write_values(array, selection, file, output_format)  # type: ignore[arg-type]  # a choice
