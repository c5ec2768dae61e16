"""``zarrfs convert``: copy a hierarchy to another format or with another compression."""

from __future__ import annotations

import click

from zarrfs.cli.progress import progress_bar
from zarrfs.cli.transfer import CopyOptions, copy_options, print_report
from zarrfs.cli.values import parse_chunks, parse_compressor, parse_format, parse_shape
from zarrfs.tools import convert

__all__ = ["command"]


@click.command()
@click.argument("source")
@click.argument("destination")
@click.option(
    "--format",
    "zarr_format",
    type=click.Choice(["2", "3", "n5", "draft2019"]),
    help="The format to write. Default: the format of the source.",
)
@click.option(
    "--chunks",
    help="The new chunk shape: 64, 1,256,256, or auto, or sizes along named dimensions: time=30,lat=2. "
    "-1 means the whole dimension.",
)
@click.option("--shards", help="The new shard shape (format 3), auto, or none.")
@click.option("--compressor", help="The new compression, such as zstd, gzip:5, blosc, or none.")
@click.option(
    "--allow-loss",
    is_flag=True,
    help="If the format does not support a data type, write the NumPy type of its values instead of failing.",
)
@click.option("--keep-ngff", is_flag=True, help="Do not change the version of OME-NGFF metadata.")
@copy_options
def command(
    source: str,
    destination: str,
    zarr_format: str | None,
    chunks: str | None,
    shards: str | None,
    compressor: str | None,
    allow_loss: bool,
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
            zarr_format=parse_format(zarr_format),
            chunks=parse_chunks(chunks, "--chunks"),
            shards=parse_shape(shards, "--shards"),
            compressors=parse_compressor(compressor, "--compressor"),
            allow_loss=allow_loss,
            keep_ngff=keep_ngff,
            progress=progress.show,
            worker_progress=progress.show_workers,
            **copying,
        )
    print_report(report, copying["dry_run"])
