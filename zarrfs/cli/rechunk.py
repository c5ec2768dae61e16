"""``zarrfs rechunk``: copy with other chunks, in bounded memory."""

from __future__ import annotations

import click

from zarrfs.cli.transfer import copy_options, progress_bar, say_lines
from zarrfs.cli.values import lengths, storage_options
from zarrfs.tools import rechunk

__all__ = ["command"]


@click.command(short_help="Copy with other chunks.")
@click.argument("source")
@click.argument("destination")
@click.option(
    "--chunks", required=True, help="Chunk shape: 64, or 1,256,256; -1 for a whole dimension; auto."
)
@click.option("--shards", help="Shard shape (format 3); auto; none.")
@copy_options
def command(
    source: str,
    destination: str,
    chunks: str,
    shards: str | None,
    if_exists: str,
    verify: bool,
    dry_run: bool,
    skip_broken: bool,
    memory: int,
    dask: str | None,
    storage: tuple[str, ...],
) -> None:
    """Copy the array or hierarchy at SOURCE to DESTINATION with chunks of another shape.

    Memory stays within --memory on each thread, and as much again for source chunks that are kept. Source chunks that
    reach across several blocks of that size are decoded once for each: more memory makes it faster. Shards are kept
    if the new chunks fit into them; otherwise --shards says what becomes of them.

    Exit codes: 0 all was copied; 1 an error, named in one line; 2 wrong use; 3 members were left out because of
    --skip-broken; 130 interrupted.

    \b
    Examples:
      zarrfs rechunk planes.zarr cubes.zarr --chunks 64,64,64 --memory 1GiB
      zarrfs rechunk image.zarr sharded.zarr --chunks 64 --shards 512
    """
    with progress_bar() as progress:
        done = rechunk(
            source,
            destination,
            lengths(chunks),
            shards=lengths(shards),
            if_exists=if_exists,
            verify=verify,
            memory=memory,
            dry_run=dry_run,
            skip_broken=skip_broken,
            progress=progress,
            dask=dask,
            storage_options=storage_options(storage),
        )
    say_lines(done, dry_run)
