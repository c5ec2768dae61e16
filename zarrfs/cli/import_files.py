"""``zarrfs import``: write files of other formats to a Zarr hierarchy."""

from __future__ import annotations

import click

from zarrfs.cli.progress import progress_bar
from zarrfs.cli.transfer import ImageOptions, block_options, image_options, print_report
from zarrfs.cli.values import parse_numbers, parse_storage_options
from zarrfs.files.importing import import_files
from zarrfs.ngff.versions import OME_VERSIONS

__all__ = ["command"]


@click.command("import", short_help="Write files of other formats to a Zarr hierarchy.")
@click.argument("files", nargs=-1, required=True)
@click.argument("destination")
@click.option(
    "--pattern",
    help="The names of the files of a stack: {t}, {c} and {z} stand for positions, * for any text: '*_{c}_{z}.tif'.",
)
@click.option(
    "--plain", is_flag=True, help="Copy the arrays as they are, without OME-NGFF metadata and levels."
)
@click.option(
    "--ome-version",
    "--ngff",
    "version",
    type=click.Choice(OME_VERSIONS),
    help="The OME-NGFF version. Default: 0.5.",
)
@click.option("--shape", help="The shape of a raw file, such as 64,512,512.")
@click.option("--dtype", help="The data type of a raw file, such as uint16 or >f4.")
@click.option(
    "--offset", type=click.IntRange(0), default=0, help="The size of the header of a raw file in bytes."
)
@image_options
@click.option(
    "--skip-broken",
    is_flag=True,
    help="Omit images and arrays that Zarr cannot represent. If any are omitted, the exit code is 3.",
)
@block_options
def command(
    files: tuple[str, ...],
    destination: str,
    pattern: str | None,
    plain: bool,
    version: str | None,
    shape: str | None,
    dtype: str | None,
    offset: int,
    image: ImageOptions,
    verify: bool,
    memory: int,
    dry_run: bool,
    sample_writes: bool,
    skip_broken: bool,
    storage: tuple[str, ...],
) -> None:
    """Write FILE... to a new Zarr hierarchy at DESTINATION.

    Images become OME-NGFF images with their axes, pixel sizes, units and channels, and further levels of a pyramid:
    TIFF, OME-TIFF, ImageJ hyperstacks, NRRD, MetaImage, NIfTI, NPY, PNG, JPEG. A raw file needs --shape and --dtype.
    HDF5 and NPZ files become groups with the same names.

    Several files, such as "slices/*.png", or a directory of TIFF, PNG or JPEG files, are a stack. The numbers in their
    names are the positions along time, channel and z, as in img_t02_c1_z003.tif. What was recognized is printed; with
    --dry-run nothing else is done. If the names are not clear, describe them with --pattern.

    Exit codes: 0 success; 1 error; 2 incorrect usage; 3 members were skipped (--skip-broken); 130 interrupted.

    \b
    Examples:
      zarrfs import stack.ome.tif image.ome.zarr
      zarrfs import "stack/*.tif" image.ome.zarr --pattern "scan_{t}_{z}_{c}.tif"
      zarrfs import "slices/*.png" image.ome.zarr --scale 2,0.65,0.65 --unit micrometer
      zarrfs import volume.raw image.ome.zarr --shape 64,512,512 --dtype uint16
      zarrfs import table.h5 table.zarr
    """
    with progress_bar() as progress:
        report = import_files(
            files,
            destination,
            pattern=pattern,
            plain=plain,
            version=version,
            shape=None
            if shape is None
            else [int(length) for length in parse_numbers(shape, "--shape", integers=True)],
            dtype=dtype,
            offset=offset,
            **image,
            verify=verify,
            memory=memory,
            progress=progress.show,
            dry_run=dry_run,
            sample_writes=sample_writes,
            skip_broken=skip_broken,
            storage_options=parse_storage_options(storage),
        )
    print_report(report, dry_run)
