"""``zarrfs convert``: copy a hierarchy into another format, or with other compression."""

from __future__ import annotations

import click

from zarrfs.cli.transfer import copy_options, progress_bar, say_lines
from zarrfs.cli.values import compression, format_name, lengths, storage_options
from zarrfs.tools import convert

__all__ = ["command"]


@click.command(short_help="Copy into another format.")
@click.argument("source")
@click.argument("destination")
@click.option(
    "--format", "zarr_format", type=click.Choice(["2", "3", "n5", "draft2019"]), help="The format to write."
)
@click.option("--chunks", help="Another chunk shape: 64, or 1,256,256; -1 for a whole dimension; auto.")
@click.option("--shards", help="Another shard shape (format 3); auto; none.")
@click.option("--compressor", help="Another compression: zstd, gzip:5, blosc, none.")
@click.option(
    "--allow-loss",
    is_flag=True,
    help="Where the format lacks a data type, write the NumPy type of its values; otherwise that is an error.",
)
@click.option("--keep-ngff", is_flag=True, help="Leave the version of OME-NGFF metadata as it is.")
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
    if_exists: str,
    verify: bool,
    dry_run: bool,
    skip_broken: bool,
    memory: int,
    dask: str | None,
    storage: tuple[str, ...],
) -> None:
    """Copy the array or hierarchy at SOURCE to DESTINATION in another format.

    Formats are 2, 3, n5 and draft2019; versions 1 and up are read. Chunks are copied as they are where only the
    documents differ (1, 2 and 3), else decoded and encoded anew. Attributes, dimension names and missing values are
    kept, each where xarray looks for it in that format. OME-NGFF 0.4 becomes 0.5 in format 3, and 0.5 becomes 0.4 in
    format 2. Shards are kept with other chunks where these fit. What is not kept is said in the line of each array. A
    copy that was interrupted goes on with --if-exists resume.

    Exit codes: 0 all was copied; 1 an error, named in one line; 2 wrong use; 3 members were left out because of
    --skip-broken; 130 interrupted.

    \b
    Examples:
      zarrfs convert old.zarr new.zarr --format 3
      zarrfs convert image.zarr image.n5 --format n5 --compressor gzip:5
      zarrfs convert image.zarr s3://bucket/image.zarr --format 3 --shards 512,512,512 --verify
    """
    with progress_bar() as progress:
        done = convert(
            source,
            destination,
            zarr_format=format_name(zarr_format),
            chunks=lengths(chunks),
            shards=lengths(shards),
            compressors=compression(compressor),
            if_exists=if_exists,  # type: ignore[arg-type]
            verify=verify,
            memory=memory,
            dry_run=dry_run,
            skip_broken=skip_broken,
            allow_loss=allow_loss,
            keep_ngff=keep_ngff,
            progress=progress,
            dask=dask,
            storage_options=storage_options(storage),
        )
    say_lines(done, dry_run)
