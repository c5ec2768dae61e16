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
@copy_options
def command(
    source: str,
    destination: str,
    zarr_format: str | None,
    chunks: str | None,
    shards: str | None,
    compressor: str | None,
    if_exists: str,
    verify: bool,
    dry_run: bool,
    memory: int,
    dask: str | None,
    storage: tuple[str, ...],
) -> None:
    """Copy the array or hierarchy at SOURCE to DESTINATION in another format.

    Formats are 2, 3, n5 and draft2019; versions 1 and up are read. Chunks are copied as they are where only the
    documents differ (1, 2 and 3), else decoded and encoded anew. Attributes and dimension names are kept. A copy that
    was interrupted goes on with --if-exists resume.

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
            progress=progress,
            dask=dask,
            storage_options=storage_options(storage),
        )
    say_lines(done, dry_run)
