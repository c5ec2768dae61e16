"""``zarrfs rechunk``: copy with another chunk shape in bounded memory."""

from __future__ import annotations

from typing import Any

import click

from zarrfs.cli.creation_options import creation_option
from zarrfs.cli.progress import progress_bar
from zarrfs.cli.transfer import CopyOptions, copy_options, print_report
from zarrfs.tools import rechunk

__all__ = ["command"]


@click.command()
@click.argument("source")
@click.argument("destination")
@creation_option("named chunks", "--chunks", required=True)
@creation_option("shards", "--shards")
@copy_options
def command(
    source: str,
    destination: str,
    chunks: Any,
    shards: Any,
    copying: CopyOptions,
) -> None:
    """Copy the array or hierarchy at SOURCE to DESTINATION with another chunk shape.

    Each thread uses at most --memory for a block of values, and the same amount for cached source chunks. A source
    chunk that overlaps several blocks is decoded once for each of them, so more memory can make the copy faster.
    Shards are preserved if the new chunks fit into them. Otherwise --shards is required. With sizes along named
    dimensions, other dimensions and arrays without these dimensions keep their chunks.

    Exit codes: 0 success; 1 error; 2 incorrect usage; 3 members were skipped because of --skip-broken;
    130 interrupted.

    \b
    Examples:
      zarrfs rechunk planes.zarr cubes.zarr --chunks 64,64,64 --memory 1GiB
      zarrfs rechunk image.zarr sharded.zarr --chunks 64 --shards 512
      zarrfs rechunk weather.zarr series.zarr --chunks time=30,lat=2
    """
    with progress_bar() as progress:
        report = rechunk(
            source,
            destination,
            chunks,
            shards=shards,
            progress=progress.show,
            worker_progress=progress.show_workers,
            **copying,
        )
    print_report(report, copying["dry_run"])
