"""``zarrfs export``: write an array to a file of another format."""

from __future__ import annotations

import click

from zarrfs.cli.console import safe
from zarrfs.cli.progress import progress_bar
from zarrfs.cli.values import SizeType, location_options, parse_storage_options
from zarrfs.files.exporting import export

__all__ = ["command"]


@click.command(short_help="Write an array to a file of another format.")
@click.argument("location")
@click.argument("file")
@click.option(
    "--level", type=click.IntRange(0), default=0, show_default=True, help="The level of an OME-NGFF image."
)
@click.option(
    "--coordinate-system",
    help="The positions are those in this coordinate system of the image or of the scene that contains it (OME-Zarr "
    "0.6). Default: the first one of the scene, otherwise the one of the image.",
)
@click.option(
    "--dtype",
    help="Convert the values to this data type, such as uint32. Integers that do not fit are an error, "
    "floating-point numbers are rounded.",
)
@click.option(
    "--if-exists",
    type=click.Choice(["raise", "replace"]),
    default="raise",
    show_default=True,
    help="What to do if the file exists.",
)
@click.option(
    "--memory",
    type=SizeType(),
    help="Memory for decoded chunks, such as 256MiB. Default: an eighth of the memory, at most 2GiB.",
)
@location_options
def command(
    location: str,
    file: str,
    level: int,
    coordinate_system: str | None,
    dtype: str | None,
    if_exists: str,
    memory: int | None,
    storage: tuple[str, ...],
) -> None:
    """Write the array at LOCATION to FILE, in the format of its suffix.

    LOCATION is an array, an OME-NGFF image, or a group with one array. The formats are those of the files of a mount
    (.npy .raw .tif .ome.tif .nii .nrrd .mha .vti .h5 .nc .fits .csv .txt .safetensors ...), .nii.gz, .npz (all arrays
    of a group), and .png or .jpg (one file for each plane). The headers .mhd, .nhdr, .hdr and .vrt are written with a
    second file, .raw, that contains the elements.

    The values are read part by part. A file appears under its name when it is complete.

    Exit codes: 0 success; 1 error; 2 incorrect usage; 130 interrupted.

    \b
    Examples:
      zarrfs export image.ome.zarr image.ome.tif
      zarrfs export image.ome.zarr small.nii.gz --level 2
      zarrfs export image.ome.zarr/labels/cells cells.png
      zarrfs export image.ome.zarr/labels/cells cells.tif --dtype uint32
    """
    with progress_bar(None) as progress:
        files = export(
            location,
            file,
            level=level,
            coordinate_system=coordinate_system,
            dtype=dtype,
            if_exists=if_exists,  # type: ignore[arg-type]  # one of the choices
            memory=memory,
            progress=progress.show,
            storage_options=parse_storage_options(storage),
        )
    click.echo(safe(files[0]) if len(files) == 1 else safe(f"{files[0]} and {len(files) - 1} more"))
