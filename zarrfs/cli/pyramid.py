"""``zarrfs pyramid``: build an OME-NGFF multiscale image from an array."""

from __future__ import annotations

import click

from zarrfs.cli.progress import progress_bar
from zarrfs.cli.transfer import ImageOptions, execution_options, image_options, print_report
from zarrfs.cli.values import parse_numbers, parse_storage_options
from zarrfs.ngff.versions import OME_VERSIONS
from zarrfs.tools import build_pyramid

__all__ = ["command"]


@click.command(short_help="Build a multiscale image from an array.")
@click.argument("location")
@click.argument("destination", required=False)
@click.option(
    "--ome-version",
    "--ngff",
    "version",
    type=click.Choice(OME_VERSIONS),
    help="The OME-NGFF version. Default: 0.5, or that of the Zarr format of LOCATION if levels are added to it.",
)
@click.option(
    "--factors",
    multiple=True,
    help="The downsampling factors, such as 1,2,2. Repeat for each level. Default: derived from the voxel size.",
)
@click.option(
    "--max-length",
    type=click.IntRange(1),
    default=256,
    show_default=True,
    help="Without --levels: add levels until no spatial dimension is longer than this.",
)
@image_options
@execution_options
def command(
    location: str,
    destination: str | None,
    version: str | None,
    factors: tuple[str, ...],
    max_length: int,
    image: ImageOptions,
    verify: bool,
    dry_run: bool,
    sample_writes: bool,
    memory: int,
    dask: str | None,
    task_timeout: float | None,
    storage: tuple[str, ...],
) -> None:
    """Build an OME-NGFF multiscale image (pyramid) from the array at LOCATION.

    LOCATION is an array, an OME-NGFF image, or a group with one array. The image is written to DESTINATION. Without
    DESTINATION, the levels are written next to the array, into the group that contains it.

    The data are read once. Spatial dimensions are halved, those with the smallest voxel size first, so that anisotropic
    images become isotropic. The metadata of the image are written when all levels are complete.

    Exit codes: 0 success; 1 error; 2 incorrect usage; 130 interrupted.

    \b
    Examples:
      zarrfs pyramid stack.zarr image.ome.zarr --axes zyx --scale 2,0.65,0.65 --unit micrometer
      zarrfs pyramid image.ome.zarr --method max --levels 4
      zarrfs pyramid cells.zarr/labels image.ome.zarr/labels/cells --method mode
    """
    with progress_bar() as progress:
        report = build_pyramid(
            location,
            destination,
            version=version,
            factors=_factors(factors),
            max_length=max_length,
            **image,
            verify=verify,
            memory=memory,
            progress=progress.show,
            worker_progress=progress.show_workers,
            dry_run=dry_run,
            sample_writes=sample_writes,
            storage_options=parse_storage_options(storage),
            dask=dask,
            task_timeout=task_timeout,
        )
    print_report(report, dry_run)


def _factors(texts: tuple[str, ...]) -> list[int] | list[list[int]] | None:
    listed = [[int(number) for number in parse_numbers(text, "--factors", integers=True)] for text in texts]
    if not listed:
        return None
    return listed[0] if len(listed) == 1 else listed
