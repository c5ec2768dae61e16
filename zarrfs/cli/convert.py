"""``zarrfs convert``: copy a hierarchy to another format or with another compression."""

from __future__ import annotations

from typing import Any

import click

from zarrfs.cli.creation_options import creation_option
from zarrfs.cli.progress import progress_bar
from zarrfs.cli.transfer import CopyOptions, copy_options, print_report
from zarrfs.ngff.versions import OME_VERSIONS
from zarrfs.tools import convert

__all__ = ["command"]


@click.command()
@click.argument("source")
@click.argument("destination")
@creation_option("zarr_format", "--format", default="that of the source")
@creation_option("named chunks", "--chunks", default="that of the source")
@creation_option("shards", "--shards", default="that of the source")
@creation_option("compressors", "--compressor", default="that of the source")
@click.option(
    "--allow-loss",
    is_flag=True,
    help="If the format does not support a data type, write the NumPy type of its values instead of failing. Leave "
    "out what the version of --ome-version cannot state.",
)
@click.option(
    "--ome-version",
    type=click.Choice(OME_VERSIONS),
    help="Convert OME-NGFF metadata to this version: 0.4 in format 2, 0.5 and 0.6 in format 3.",
)
@click.option("--keep-ngff", is_flag=True, help="Do not change the version of OME-NGFF metadata.")
@copy_options
def command(
    source: str,
    destination: str,
    zarr_format: int | str | None,
    chunks: Any,
    shards: Any,
    compressors: Any,
    allow_loss: bool,
    ome_version: str | None,
    keep_ngff: bool,
    copying: CopyOptions,
) -> None:
    """Copy the array or hierarchy at SOURCE to DESTINATION in another format.

    The formats 2, 3, n5 and draft2019 can be written; Zarr 1 can also be read. If only the metadata documents differ
    (formats 1, 2 and 3), chunks are copied unchanged; otherwise they are decoded and encoded again. Attributes,
    dimension names and missing values are preserved and stored where xarray expects them in the new format. OME-NGFF
    0.4 becomes 0.5 in format 3, and 0.5 becomes 0.4 in format 2. Shards are preserved if the new chunks fit into them.
    The line of each array lists what is not preserved. Use --if-exists resume to continue an interrupted copy.

    Exit codes: 0 success; 1 error; 2 incorrect usage; 3 members were skipped because of --skip-broken;
    130 interrupted.

    \b
    Examples:
      zarrfs convert old.zarr new.zarr --format 3
      zarrfs convert image.zarr image.n5 --format n5 --compressor gzip:5
      zarrfs convert image.zarr s3://bucket/image.zarr --format 3 --shards 512,512,512 --verify
    """
    with progress_bar() as progress:
        report = convert(
            source,
            destination,
            zarr_format=zarr_format,
            chunks=chunks,
            shards=shards,
            compressors=compressors,
            allow_loss=allow_loss,
            keep_ngff=keep_ngff,
            ome_version=ome_version,
            progress=progress.show,
            worker_progress=progress.show_workers,
            **copying,
        )
    print_report(report, copying["dry_run"])
